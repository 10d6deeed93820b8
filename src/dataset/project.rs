//! The random projection of images on spins (Zambon et al., pseudo-Langevin, section III, eq. 28).

use super::{Use, stream};
use rayon::prelude::*;

/// The random signs of the projection, `[pixels, d]`. Each pixel has a stream of its own.
pub(super) fn signs(seed: u64, pixels: usize, d: usize) -> Vec<i16> {
    let mut p = vec![0; pixels * d];
    p.par_chunks_exact_mut(d).enumerate().for_each(|(i, row)| {
        let s = stream(seed, Use::Projection, i as u64);
        for (b, four) in row.chunks_mut(4).enumerate() {
            for (x, w) in four.iter_mut().zip(s.block(b as u32)) {
                *x = if w >> 31 == 0 { 1 } else { -1 };
            }
        }
    });
    p
}

/// `sign(Σ_i x_i P_ik)` of every image, in whole numbers and so exactly.
pub(super) fn rows(pixels: &[u8], p: &[i16], d: usize) -> Vec<i8> {
    let size = p.len() / d;
    let mut out = vec![0i8; pixels.len() / size * d];
    out.par_chunks_exact_mut(d)
        .zip(pixels.par_chunks_exact(size))
        .for_each_init(
            || (vec![0i16; d], vec![0i32; d]),
            |(part, sum), (out, image)| {
                sum.fill(0);
                // 128 pixels of at most 255 cannot overflow 16 bits, which vectorise twice as wide as 32.
                for (image, p) in image.chunks(128).zip(p.chunks(128 * d)) {
                    part.fill(0);
                    for (&x, p) in image
                        .iter()
                        .zip(p.chunks_exact(d))
                        .filter(|(x, _)| **x != 0)
                    {
                        for (a, &p) in part.iter_mut().zip(p) {
                            *a += x as i16 * p;
                        }
                    }
                    for (s, &a) in sum.iter_mut().zip(&*part) {
                        *s += a as i32;
                    }
                }
                for (o, &s) in out.iter_mut().zip(&*sum) {
                    *o = if s >= 0 { 1 } else { -1 };
                }
            },
        );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projection_is_the_sign_of_the_sums_of_eq_28() {
        // Big enough for several blocks of 16-bit sums, and the largest pixels.
        let (size, d) = (300, 13);
        let p = signs(7, size, d);
        assert!(p.iter().all(|x| x.abs() == 1));
        let mut pixels: Vec<u8> = (0..3 * size).map(|i| (i * 97 % 256) as u8).collect();
        pixels[size..2 * size].fill(255);
        pixels[2 * size..].fill(0);
        let out = rows(&pixels, &p, d);
        for (r, image) in pixels.chunks(size).enumerate() {
            for k in 0..d {
                let sum: i64 = image
                    .iter()
                    .enumerate()
                    .map(|(i, &x)| x as i64 * p[i * d + k] as i64)
                    .sum();
                assert_eq!(out[r * d + k], if sum >= 0 { 1 } else { -1 });
            }
        }
        // The blank image: sign(0) = +1.
        assert!(out[2 * d..].iter().all(|&x| x == 1));
        // Another seed gives other signs; more spins continue fewer.
        assert_ne!(p, signs(8, size, d));
        let wide = signs(7, size, 20);
        assert!((0..size).all(|i| wide[i * 20..][..d] == p[i * d..][..d]));
    }

    /// Null: signs are fair and independent; their sum over n has the standard deviation sqrt(n).
    #[test]
    fn signs_of_the_projection_are_fair() {
        let p = signs(1, 784, 100);
        let sum: f64 = p.iter().map(|&x| x as f64).sum();
        assert!(sum.abs() < 4.0 * (p.len() as f64).sqrt(), "{sum}");
    }
}
