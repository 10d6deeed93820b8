//! Standard normal numbers from Philox by Box–Muller, and uniform ones, in blocks of 64 that stay in registers and L1.
//!
//! Element `e` of a stream takes word `k = (e mod 64) / 16` of the Philox block with counter `16·(e / 64) + e mod 16`. Sixteen
//! counters run side by side in vector lanes, and each of the four words fills sixteen neighbouring elements.

use super::math::{ln, sin_cos_eighth};
use super::simd;
use crate::rng::{MULTIPLIER, Stream, WEYL};

const LANES: usize = 16;
/// Normals made at a time.
pub const BLOCK: usize = 4 * LANES;

/// The words of the `index`-th sixteen Philox blocks of a stream, word by word.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // An iterator over the lanes of four arrays is no loop that vectorises.
fn words(stream: &Stream, index: usize) -> [[u32; LANES]; 4] {
    let first = (index * LANES) as u32;
    // Words stand in the lower halves of 64 bits: what is above them costs nothing, since a product of two lower halves is one instruction.
    let low = |x: u64| x & 0xffff_ffff;
    let mut out = [[0; LANES]; 4];
    for l in 0..LANES {
        let mut c0 = first.wrapping_add(l as u32) as u64;
        let [c1, c2, c3] = stream.high;
        let (mut c1, mut c2, mut c3) = (c1 as u64, c2 as u64, c3 as u64);
        let [mut k0, mut k1] = stream.key;
        for _ in 0..10 {
            let p0 = MULTIPLIER[0] as u64 * low(c0);
            let p1 = MULTIPLIER[1] as u64 * low(c2);
            c0 = (p1 >> 32) ^ c1 ^ k0 as u64;
            c1 = p1;
            c2 = (p0 >> 32) ^ c3 ^ k1 as u64;
            c3 = p0;
            k0 = k0.wrapping_add(WEYL[0]);
            k1 = k1.wrapping_add(WEYL[1]);
        }
        out[0][l] = c0 as u32;
        out[1][l] = c1 as u32;
        out[2][l] = c2 as u32;
        out[3][l] = c3 as u32;
    }
    out
}

/// The `index`-th block of 64 normals of a stream.
#[inline(always)]
pub fn normal_block(stream: &Stream, index: usize) -> [f32; BLOCK] {
    let [c0, c1, c2, c3] = words(stream, index);
    let mut out = [0f32; BLOCK];
    box_muller(&c0, &c1, 0, &mut out);
    box_muller(&c2, &c3, 2 * LANES, &mut out);
    out
}

/// Two normals per lane: radius from `a`, angle from `b`.
#[inline(always)]
fn box_muller(a: &[u32; LANES], b: &[u32; LANES], at: usize, out: &mut [f32; BLOCK]) {
    const SCALE: f32 = 1.0 / 4_294_967_296.0;
    for l in 0..LANES {
        // (0, 1], with full relative precision near 0: the tail reaches 6.7 standard deviations.
        let u = (a[l] as f32 + 0.5) * SCALE;
        let r = (-2.0 * ln(u)).sqrt();
        // The two top bits choose the quadrant, the rest the angle within ±π/4 of its axis.
        let turn = ((b[l] & 0x3fff_ffff) as i32 - 0x2000_0000) as f32 * SCALE;
        let (s, c) = sin_cos_eighth(turn);
        let swap = b[l] & 0x4000_0000 != 0;
        let sign = f32::from_bits(r.to_bits() | (b[l] & 0x8000_0000));
        out[at + l] = sign * if swap { s } else { c };
        out[at + LANES + l] = sign * if swap { -c } else { s };
    }
}

simd! {
    /// Fill `out` with the first `out.len()` normals of `stream`.
    pub fn fill_normal(stream: &Stream, out: &mut [f32]) {
        for (i, chunk) in out.chunks_mut(BLOCK).enumerate() {
            chunk.copy_from_slice(&normal_block(stream, i)[..chunk.len()]);
        }
    }
}

simd! {
    /// Fill `out` with uniform numbers of `stream` in (-limit, limit).
    pub fn fill_uniform(stream: &Stream, limit: f32, out: &mut [f32]) {
        // Half-integers of 24 bits: symmetric, and never an end of the interval.
        let scale = limit / 8_388_608.0;
        for (i, chunk) in out.chunks_mut(BLOCK).enumerate() {
            let words = words(stream, i);
            let mut block = [0f32; BLOCK];
            for (part, words) in block.chunks_exact_mut(LANES).zip(&words) {
                for (x, w) in part.iter_mut().zip(words) {
                    *x = ((w >> 8) as f32 + 0.5 - 8_388_608.0) * scale;
                }
            }
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    fn draws(n: usize) -> Vec<f32> {
        let mut out = vec![0.0; n];
        fill_normal(&Stream::new(3, Purpose::Noise, 1, 5), &mut out);
        out
    }

    #[test]
    fn a_block_matches_the_scalar_generator() {
        let s = Stream::new(3, Purpose::Noise, 1, 5);
        let out = draws(200);
        for e in [0usize, 15, 17, 40, 63, 64, 130, 199] {
            let words = s.block((16 * (e / 64) + e % 16) as u32);
            let k = (e % 64) / 16;
            let (a, b) = if k < 2 {
                (words[0], words[1])
            } else {
                (words[2], words[3])
            };
            let r = (-2.0 * ((a as f64 + 0.5) / 2f64.powi(32)).ln()).sqrt();
            let quadrant = (b >> 30) as f64;
            let turn = ((b & 0x3fff_ffff) as f64 - 2f64.powi(29)) / 2f64.powi(32);
            // Top bits 00, 01, 10, 11 are the rotations by 0, -90, 180, 90 degrees.
            let angle = std::f64::consts::TAU * (turn + [0.0, -0.25, 0.5, 0.25][quadrant as usize]);
            let expected = r * if k % 2 == 0 { angle.cos() } else { angle.sin() };
            assert!(
                (out[e] as f64 - expected).abs() < 2e-6 * r.max(1.0),
                "element {e}"
            );
        }
    }

    /// Null: standard normal. Standard errors of mean, variance, third and fourth moment are sqrt(1, 2, 15, 96)/sqrt(n).
    #[test]
    fn moments_and_tails_are_normal() {
        let n = 4_000_000;
        let x = draws(n);
        let moment = |k: i32| x.iter().map(|&v| (v as f64).powi(k)).sum::<f64>() / n as f64;
        let se = |v: f64| 4.0 * (v / n as f64).sqrt();
        assert!(moment(1).abs() < se(1.0));
        assert!((moment(2) - 1.0).abs() < se(2.0));
        assert!(moment(3).abs() < se(15.0));
        assert!((moment(4) - 3.0).abs() < se(96.0));
        let beyond = |t: f32| x.iter().filter(|v| v.abs() > t).count() as f64;
        for (t, p) in [(1.0, 0.317_310_5), (3.0, 2.699_796e-3), (4.5, 6.795_346e-6)] {
            let expected = p * n as f64;
            assert!(
                (beyond(t) - expected).abs() < 4.0 * expected.sqrt(),
                "tail {t}"
            );
        }
    }

    /// Null: no correlation between neighbours, whatever the distance within and across blocks.
    #[test]
    fn elements_are_uncorrelated() {
        let n = 1_000_000;
        let x = draws(n + 200);
        for lag in [1usize, 15, 16, 17, 32, 48, 64, 128] {
            let c: f64 = (0..n).map(|i| x[i] as f64 * x[i + lag] as f64).sum::<f64>() / n as f64;
            assert!(c.abs() < 4.0 / (n as f64).sqrt(), "lag {lag}: {c}");
        }
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let s = Stream::new(9, Purpose::Noise, 0, 1);
        let mut best = vec![0.0; 1000];
        fill_normal(&s, &mut best);
        let plain: Vec<f32> = (0..16)
            .flat_map(|i| normal_block(&s, i))
            .take(1000)
            .collect();
        assert_eq!(best, plain);
    }

    #[test]
    fn uniform_numbers_are_those_of_the_words_and_stay_inside() {
        let s = Stream::new(3, Purpose::Dataset, 1, 5);
        let mut out = vec![0.0; 200];
        fill_uniform(&s, 10.0, &mut out);
        for e in [0usize, 15, 17, 40, 63, 64, 130, 199] {
            let word = s.block((16 * (e / 64) + e % 16) as u32)[(e % 64) / 16];
            let expected = ((word >> 8) as f64 + 0.5) / 2f64.powi(23) - 1.0;
            assert!((out[e] as f64 - 10.0 * expected).abs() < 1e-5, "{e}");
        }
        let mut many = vec![0.0; 1 << 16];
        fill_uniform(&s, 1.0, &mut many);
        assert!(many.iter().all(|x| x.abs() < 1.0));
        // The mean of n numbers has the variance 1/3n, that of their squares 4/45n.
        let n = many.len() as f64;
        let mean = many.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let square = many.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / n;
        assert!(mean.abs() < 4.0 * (1.0 / (3.0 * n)).sqrt(), "{mean}");
        assert!(
            (square - 1.0 / 3.0).abs() < 4.0 * (4.0 / (45.0 * n)).sqrt(),
            "{square}"
        );
    }
}
