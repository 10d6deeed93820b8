//! Norms: groups of neighbours of mean 0 and variance 1, times weights and plus biases that channels have.

use super::view::View;
use crate::sequence::sum;
use crate::simd;

/// `(x - mean)/√(variance + ε) · weight + bias` over groups of neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct Norm {
    /// Numbers of a group.
    pub size: usize,
    /// Whether the mean is taken off; otherwise the mean square is in the place of the variance.
    pub centre: bool,
    /// What is added to the variance.
    pub epsilon: f32,
    /// Numbers of a channel, one after the other; weight and bias, the second and third operand where there are such, have one number per
    /// channel, and begin again where they end.
    pub inner: usize,
    /// Channels; 0 without weights.
    pub channels: usize,
}

impl Norm {
    /// Numbers per row that the backward pass needs beside operands: mean and 1/√(variance + ε) of each group.
    pub fn moments(&self, width: usize) -> usize {
        2 * (width / self.size)
    }

    #[inline(always)]
    fn moments_of(&self, x: &[f32]) -> [f32; 2] {
        let per = 1.0 / self.size as f32;
        let mean = match self.centre {
            true => per * sum(x, x, x, |x, _, _| x),
            false => 0.0,
        };
        let variance = per * sum(x, x, x, |x, _, _| (x - mean) * (x - mean));
        [mean, 1.0 / (variance + self.epsilon).sqrt()]
    }

    /// Pieces of a group that begins with the number `at` of a row, each with the channels that it has: one for all of it, or one for each number.
    #[inline(always)]
    fn pieces(
        &self,
        at: usize,
        mut each: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>),
    ) {
        let (size, channels) = (self.size, self.channels.max(1));
        match self.inner {
            1 => (0..size)
                .step_by(channels.min(size))
                .for_each(|i| each(i..i + channels.min(size), 0..channels.min(size))),
            inner => (0..size).step_by(inner).for_each(|i| {
                let channel = (at + i) / inner % channels;
                each(i..i + inner, channel..channel + 1);
            }),
        }
    }
}

simd! {
    /// Compute `rows` rows; `before` keeps the moments, if it is not empty.
    pub fn forward_norm(norm: &Norm, rows: usize, of: &[View], out: &mut [f32], before: &mut [f32]) {
        let (size, width) = (norm.size, of[0].width);
        let weight = of.get(1).map_or(&[][..], |w| &w.data[..norm.channels]);
        let bias = of.get(2).map_or(&[][..], |b| &b.data[..norm.channels]);
        for r in 0..rows {
            let row = out[r * width..][..width].chunks_exact_mut(size);
            for (g, (x, y)) in of[0].row(r).chunks_exact(size).zip(row).enumerate() {
                let [mean, inverse] = norm.moments_of(x);
                if let Some(kept) = before.get_mut(2 * (r * (width / size) + g)..) && let [a, b, ..] = kept {
                    (*a, *b) = (mean, inverse);
                }
                let normal = |x: f32| (x - mean) * inverse;
                if weight.is_empty() {
                    y.iter_mut().zip(x).for_each(|(y, x)| *y = normal(*x));
                    continue;
                }
                norm.pieces(g * size, |at, of| {
                    let (y, x) = (&mut y[at.clone()], &x[at]);
                    let w = &weight[of.clone()];
                    match (w, bias.get(of)) {
                        ([w], None) => y.iter_mut().zip(x).for_each(|(y, x)| *y = normal(*x) * *w),
                        ([w], Some(b)) => {
                            let b = b[0];
                            y.iter_mut().zip(x).for_each(|(y, x)| *y = normal(*x) * *w + b);
                        }
                        (w, None) => y.iter_mut().zip(x).zip(w).for_each(|((y, x), w)| *y = normal(*x) * *w),
                        (w, Some(b)) => {
                            let each = y.iter_mut().zip(x).zip(w).zip(b);
                            each.for_each(|(((y, x), w), b)| *y = normal(*x) * *w + *b);
                        }
                    }
                });
            }
        }
    }
}

simd! {
    /// The gradient with respect to x, into `target`, or added to it; `before` are the moments, or empty.
    pub fn backward_norm(norm: &Norm, rows: usize, of: &[View], before: &[f32], delta: &[f32], target: &mut [f32], stride: usize, first: bool) {
        let (size, width) = (norm.size, of[0].width);
        let weight = of.get(1).map_or(&[][..], |w| &w.data[..norm.channels]);
        let per = 1.0 / size as f32;
        let mut room = vec![0.0; size];
        for r in 0..rows {
            let each = of[0].row(r).chunks_exact(size).zip(delta[r * width..][..width].chunks_exact(size));
            let to = target[r * stride..][..width].chunks_exact_mut(size);
            for (g, ((x, d), to)) in each.zip(to).enumerate() {
                let [mean, inverse] = match before.get(2 * (r * (width / size) + g)..) {
                    Some([a, b, ..]) => [*a, *b],
                    _ => norm.moments_of(x),
                };
                // The gradient with respect to what has mean 0 and variance 1.
                let d = match weight {
                    [] => d,
                    _ => {
                        norm.pieces(g * size, |at, of| {
                            let (out, d) = (&mut room[at.clone()], &d[at]);
                            match &weight[of] {
                                [w] => out.iter_mut().zip(d).for_each(|(o, d)| *o = *d * *w),
                                w => out.iter_mut().zip(d).zip(w).for_each(|((o, d), w)| *o = *d * *w),
                            }
                        });
                        &room[..]
                    }
                };
                let shift = match norm.centre {
                    true => per * sum(d, d, d, |d, _, _| d),
                    false => 0.0,
                };
                let slope = per * sum(d, x, d, |d, x, _| d * ((x - mean) * inverse));
                let found = |x: f32, d: f32| inverse * (d - shift - (x - mean) * inverse * slope);
                let all = to.iter_mut().zip(x).zip(d);
                match first {
                    true => all.for_each(|((o, x), d)| *o = found(*x, *d)),
                    false => all.for_each(|((o, x), d)| *o += found(*x, *d)),
                }
            }
        }
    }
}

simd! {
    /// Add the gradient with respect to the weights, or to the biases, over rows.
    pub fn add_to_channels(norm: &Norm, bias: bool, rows: usize, of: &[View], before: &[f32], delta: &[f32], out: &mut [f32]) {
        let (size, width) = (norm.size, of[0].width);
        for r in 0..rows {
            let each = of[0].row(r).chunks_exact(size).zip(delta[r * width..][..width].chunks_exact(size));
            for (g, (x, d)) in each.enumerate() {
                let [mean, inverse] = match before.get(2 * (r * (width / size) + g)..) {
                    _ if bias => [0.0, 1.0],
                    Some([a, b, ..]) => [*a, *b],
                    _ => norm.moments_of(x),
                };
                norm.pieces(g * size, |at, of| {
                    let (x, d) = (&x[at.clone()], &d[at]);
                    match (&mut out[of], bias) {
                        ([o], true) => *o += sum(d, d, d, |d, _, _| d),
                        ([o], false) => *o += sum(d, x, d, |d, x, _| d * ((x - mean) * inverse)),
                        (o, true) => o.iter_mut().zip(d).for_each(|(o, d)| *o += *d),
                        (o, false) => {
                            let each = o.iter_mut().zip(d).zip(x);
                            each.for_each(|((o, d), x)| *o += *d * ((*x - mean) * inverse));
                        }
                    }
                });
            }
        }
    }
}

simd! {
    /// Add a number to each line of so many.
    pub fn add_to_lines(out: &mut [f32], numbers: &[f32], length: usize) {
        for (line, b) in out.chunks_exact_mut(length).zip(numbers.iter().cycle()) {
            line.iter_mut().for_each(|x| *x += *b);
        }
    }
}

simd! {
    /// Add the sum of each line to a number; they begin again where they end.
    pub fn add_line_sums(lines: &[f32], length: usize, out: &mut [f32]) {
        for lines in lines.chunks_exact(length * out.len()) {
            for (o, line) in out.iter_mut().zip(lines.chunks_exact(length)) {
                *o += sum(line, line, line, |x, _, _| x);
            }
        }
    }
}
