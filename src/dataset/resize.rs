//! Images at another resolution.

/// An image `[height, width]` at the resolution of `side`×`side` pixels: bilinear between pixel centres, constant beyond the outermost ones.
pub fn bilinear(image: &[f32], (height, width): (usize, usize), side: usize) -> Vec<f32> {
    // The two old pixels around the centre of a new one, and their weights.
    let source = |i: usize, old: usize| {
        let centre = (i as f32 + 0.5) * old as f32 / side as f32 - 0.5;
        let below = centre.floor();
        let far = centre - below;
        let clamp = |x: f32| (x.max(0.0) as usize).min(old - 1);
        [(clamp(below), 1.0 - far), (clamp(below + 1.0), far)]
    };
    let mut out = Vec::with_capacity(side * side);
    for i in 0..side {
        for j in 0..side {
            let mut sum = 0.0;
            for (row, a) in source(i, height) {
                for (column, b) in source(j, width) {
                    sum += a * b * image[row * width + column];
                }
            }
            out.push(sum);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_stays_one_and_the_edge_is_constant() {
        let plane = |i: f32, j: f32| 2.0 + 3.0 * i - j;
        let image: Vec<f32> = (0..7 * 5)
            .map(|k| plane((k / 5) as f32, (k % 5) as f32))
            .collect();
        let side = 4;
        for (k, x) in bilinear(&image, (7, 5), side).iter().enumerate() {
            let at = |i: usize, old: f32| {
                let centre = (i as f32 + 0.5) * old / side as f32 - 0.5;
                centre.clamp(0.0, old - 1.0)
            };
            let expected = plane(at(k / side, 7.0), at(k % side, 5.0));
            assert!((x - expected).abs() < 1e-5, "{k}: {x}, not {expected}");
        }
        assert_eq!(bilinear(&image[..5], (1, 5), 5)[..5], image[..5]);
    }
}
