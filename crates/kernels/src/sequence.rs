//! Sequences: embeddings, layer norms, the softmax of causal attention and that of many classes, around the matrix products.
//!
//! Sums run in sixteen lanes: that vectorises, and has one order on every SIMD level.

use super::math;
use super::simd;

const LANES: usize = 16;

/// What layer norms add to a variance, as PyTorch and TransformerLens do.
pub const EPSILON: f32 = 1e-5;

/// Exponential of what is not positive, 0 where that is far below what single precision can add to 1: products with numbers too small to
/// be normal take the processor a hundred times as long.
#[inline(always)]
fn exp_or_zero(x: f32) -> f32 {
    let e = math::exp(x);
    if e < 1e-20 { 0.0 } else { e }
}

/// Fold lanes in pairs.
#[inline(always)]
fn join(lanes: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> f32 {
    // Otherwise the compiler would have them in pieces all the way, for the sake of these few operations.
    let lanes = std::hint::black_box(lanes);
    let eight: [f32; 8] = std::array::from_fn(|i| f(lanes[i], lanes[i + 8]));
    let four: [f32; 4] = std::array::from_fn(|i| f(eight[i], eight[i + 4]));
    f(f(four[0], four[2]), f(four[1], four[3]))
}

/// Σ f(a, b, c) over slices of one length.
#[inline(always)]
pub(crate) fn sum(a: &[f32], b: &[f32], c: &[f32], f: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let (c, c_rest) = c.as_chunks::<LANES>();
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        for i in 0..LANES {
            lanes[i] += f(a[i], b[i], c[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).zip(c_rest);
    let rest: f32 = rest.map(|((a, b), c)| f(*a, *b, *c)).sum();
    join(lanes, |a, b| a + b) + rest
}

/// The largest number; NaN is passed over.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (x, rest) = x.as_chunks::<LANES>();
    for x in x {
        for i in 0..LANES {
            lanes[i] = larger(lanes[i], x[i]);
        }
    }
    rest.iter().copied().fold(join(lanes, larger), larger)
}

/// Rows of `table` (`width` columns) in the order of `tokens`; or else the first index of `tokens` that is no row of it.
pub fn embed(
    tokens: &[f32],
    table: &[f32],
    width: usize,
    out: &mut [f32],
) -> std::result::Result<(), usize> {
    let rows = table.len() / width;
    for (i, (token, out)) in tokens.iter().zip(out.chunks_exact_mut(width)).enumerate() {
        // A cast of NaN and of what is out of range ends within it, and is then not the same number.
        let row = *token as usize;
        if row >= rows || row as f32 != *token {
            return Err(i);
        }
        out.copy_from_slice(&table[row * width..][..width]);
    }
    Ok(())
}

simd! {
    /// Add each row of `deltas` (`width` columns) to the row of its token in `table`, which begins with the row of token `first`;
    /// tokens whose rows are elsewhere are passed over.
    pub fn add_by_token(tokens: &[f32], deltas: &[f32], width: usize, first: usize, table: &mut [f32]) {
        for (token, delta) in tokens.iter().zip(deltas.chunks_exact(width)) {
            let row = (*token as usize).wrapping_sub(first);
            if row < table.len() / width {
                for (o, d) in table[row * width..][..width].iter_mut().zip(delta) {
                    *o += *d;
                }
            }
        }
    }
}

simd! {
    /// `out = x + rows`, where `rows` is repeated as often as needed.
    pub fn add_repeated(x: &[f32], rows: &[f32], out: &mut [f32]) {
        for (out, x) in out.chunks_exact_mut(rows.len()).zip(x.chunks_exact(rows.len())) {
            for ((o, x), r) in out.iter_mut().zip(x).zip(rows) {
                *o = *x + *r;
            }
        }
    }
}

simd! {
    /// Layer norm of every row of `x` (`weight.len()` columns): `(x - mean)/√(variance + ε) · weight + bias`. `moments` keeps mean and
    /// 1/√(variance + ε) of each row.
    pub fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], out: &mut [f32], moments: &mut [f32]) {
        let width = weight.len();
        let each = x.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((x, out), moments) in each.zip(moments.chunks_exact_mut(2)) {
            let mean = sum(x, x, x, |x, _, _| x) / width as f32;
            let variance = sum(x, x, x, |x, _, _| (x - mean) * (x - mean)) / width as f32;
            let inverse = 1.0 / (variance + EPSILON).sqrt();
            for (((o, x), w), b) in out.iter_mut().zip(x).zip(weight).zip(bias) {
                *o = (*x - mean) * inverse * *w + *b;
            }
            moments[0] = mean;
            moments[1] = inverse;
        }
    }
}

simd! {
    /// From the gradient `delta` with respect to the output of [`layer_norm`]: adds that with respect to `x` to `out`, and those with
    /// respect to weight and bias, one after the other, to `sums`.
    pub fn layer_norm_backward(delta: &[f32], x: &[f32], moments: &[f32], weight: &[f32], out: &mut [f32], sums: &mut [f32]) {
        let width = weight.len();
        let (by_weight, by_bias) = sums.split_at_mut(width);
        let each = delta.chunks_exact(width).zip(x.chunks_exact(width)).zip(moments.chunks_exact(2));
        for (((d, x), moments), out) in each.zip(out.chunks_exact_mut(width)) {
            let (mean, inverse) = (moments[0], moments[1]);
            let first = sum(d, weight, d, |d, w, _| d * w) / width as f32;
            let second = sum(d, weight, x, |d, w, x| d * w * ((x - mean) * inverse)) / width as f32;
            for (((o, d), w), x) in out.iter_mut().zip(d).zip(weight).zip(x) {
                let normal = (*x - mean) * inverse;
                *o += inverse * (*d * *w - first - normal * second);
            }
            for (((s, b), d), x) in by_weight.iter_mut().zip(by_bias.iter_mut()).zip(d).zip(x) {
                *s += *d * ((*x - mean) * inverse);
                *b += *d;
            }
        }
    }
}

simd! {
    /// From scores to probabilities, row by row of `keys` columns: row i, whose query is at position `first` + i, sees the columns up to
    /// that one and gets the softmax of `scale`·score over them; the others become 0. `log_sums`, if long enough, get
    /// ln Σ exp(scale·score).
    pub fn causal_softmax(scores: &mut [f32], keys: usize, first: usize, scale: f32, log_sums: &mut [f32]) {
        for (i, row) in scores.chunks_exact_mut(keys).enumerate() {
            let seen = first + i + 1;
            // Whole vectors: what the last one has too much becomes 0.
            let padded = seen.next_multiple_of(LANES).min(keys);
            row[seen..padded].fill(f32::NEG_INFINITY);
            let z = &mut row[..padded];
            let most = scale * largest(z);
            z.iter_mut().for_each(|z| *z = exp_or_zero(scale * *z - most));
            let total = sum(z, z, z, |z, _, _| z);
            let inverse = 1.0 / total;
            z.iter_mut().for_each(|z| *z *= inverse);
            row[padded..].fill(0.0);
            if let Some(l) = log_sums.get_mut(i) {
                *l = most + math::ln(total);
            }
        }
    }
}

simd! {
    /// The probabilities of [`causal_softmax`] once more, from scores and the `log_sums` that it gave.
    pub fn causal_softmax_again(scores: &mut [f32], keys: usize, first: usize, scale: f32, log_sums: &[f32]) {
        for ((i, row), l) in scores.chunks_exact_mut(keys).enumerate().zip(log_sums) {
            let seen = first + i + 1;
            let padded = seen.next_multiple_of(LANES).min(keys);
            row[..padded].iter_mut().for_each(|z| *z = exp_or_zero(scale * *z - *l));
            row[seen..].fill(0.0);
        }
    }
}

simd! {
    /// From probabilities of [`causal_softmax`] and the gradient with respect to them, that with respect to the scores, in its place.
    pub fn causal_softmax_backward(probabilities: &[f32], deltas: &mut [f32], keys: usize, first: usize, scale: f32) {
        let rows = probabilities.chunks_exact(keys).zip(deltas.chunks_exact_mut(keys));
        for (i, (p, d)) in rows.enumerate() {
            let padded = (first + i + 1).next_multiple_of(LANES).min(keys);
            let (d, hidden) = d.split_at_mut(padded);
            let p = &p[..padded];
            let mean = sum(p, d, d, |p, d, _| p * d);
            for (d, p) in d.iter_mut().zip(p) {
                *d = scale * (*p * (*d - mean));
            }
            hidden.fill(0.0);
        }
    }
}

simd! {
    /// Turn rows of logits into probabilities times `share`; `log_sum[r]` gets max + ln Σ exp(z - max) of row `r`. For many columns.
    pub fn softmax_shares(z: &mut [f32], columns: usize, log_sum: &mut [f64], share: f32) {
        for (row, l) in z.chunks_exact_mut(columns).zip(log_sum.iter_mut()) {
            let max = largest(row);
            row.iter_mut().for_each(|z| *z = exp_or_zero(*z - max));
            let total = sum(row, row, row, |z, _, _| z);
            let inverse = share / total;
            row.iter_mut().for_each(|z| *z *= inverse);
            *l = max as f64 + (total as f64).ln();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::fill_normal;
    use crate::rng::{Purpose, Stream};

    fn normals(n: usize, step: u64) -> Vec<f32> {
        let mut x = vec![0.0; n];
        fill_normal(&Stream::new(4, Purpose::Dataset, 0, step), &mut x);
        x
    }

    fn close(a: &[f32], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            assert!(
                (*a as f64 - b).abs() < 2e-5 * (1.0 + b.abs()),
                "{i}: {a} for {b}"
            );
        }
    }

    /// Probabilities of one row in double precision.
    fn softmax(z: &[f32], scale: f64) -> (Vec<f64>, f64) {
        let e: Vec<f64> = z.iter().map(|z| (scale * *z as f64).exp()).collect();
        let total: f64 = e.iter().sum();
        (e.iter().map(|e| e / total).collect(), total.ln())
    }

    #[test]
    fn causal_softmax_sees_only_what_came_before_also_the_second_time() {
        for (keys, first) in [(1, 0), (5, 2), (16, 10), (40, 0), (70, 37)] {
            let queries = keys - first;
            let scores = normals(queries * keys, keys as u64);
            let (mut p, mut l) = (scores.clone(), vec![0.0; queries]);
            causal_softmax(&mut p, keys, first, 0.7, &mut l);
            let mut again = scores.clone();
            causal_softmax_again(&mut again, keys, first, 0.7, &l);
            let upstream = normals(queries * keys, 99);
            let mut back = upstream.clone();
            causal_softmax_backward(&p, &mut back, keys, first, 0.7);
            for i in 0..queries {
                let (row, seen) = (i * keys..(i + 1) * keys, first + i + 1);
                let (mut exact, log_sum) = softmax(&scores[row.clone()][..seen], 0.7);
                exact.resize(keys, 0.0);
                close(&p[row.clone()], &exact);
                close(&again[row.clone()], &exact);
                close(&l[i..=i], &[log_sum]);
                let pairs = || exact.iter().zip(&upstream[row.clone()]);
                let mean: f64 = pairs().map(|(p, d)| p * *d as f64).sum();
                let expected: Vec<f64> =
                    pairs().map(|(p, d)| 0.7 * p * (*d as f64 - mean)).collect();
                close(&back[row.clone()], &expected);
                assert!(p[row][seen..].iter().all(|p| *p == 0.0));
            }
        }
    }

    #[test]
    fn scores_of_any_size_stay_finite_and_nan_is_seen() {
        let mut z = vec![3e38, -3e38, 1e4, 1e4];
        causal_softmax(&mut z, 2, 0, 1.0, &mut []);
        assert_eq!(z[..2], [1.0, 0.0]);
        close(&z[2..], &[0.5, 0.5]);
        let mut z = [f32::NAN, 0.0];
        causal_softmax(&mut z[..1], 1, 0, 1.0, &mut []);
        assert!(z[0].is_nan());
        // Nothing is too small to be normal: it is 0 then.
        let mut z: Vec<f32> = (0..200).map(|i| -(i as f32)).collect();
        softmax_shares(&mut z, 200, &mut [0.0], 1e-4);
        assert!(z.iter().all(|p| *p == 0.0 || p.is_normal()) && z[199] == 0.0);
    }

    #[test]
    fn shares_are_the_softmax_of_wide_rows() {
        let z = normals(3 * 37, 1);
        let (mut out, mut l) = (z.clone(), vec![0.0; 3]);
        softmax_shares(&mut out, 37, &mut l, 0.25);
        for r in 0..3 {
            let (p, log_sum) = softmax(&z[r * 37..][..37], 1.0);
            close(
                &out[r * 37..][..37],
                &p.iter().map(|p| 0.25 * p).collect::<Vec<_>>(),
            );
            assert!((l[r] - log_sum).abs() < 1e-6);
        }
    }

    /// A layer norm in double precision.
    fn exact_norm(x: &[f64], w: &[f64], b: &[f64]) -> Vec<f64> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let inverse = 1.0 / (variance + EPSILON as f64).sqrt();
        let each = x.iter().zip(w).zip(b);
        each.map(|((x, w), b)| (x - mean) * inverse * w + b)
            .collect()
    }

    #[test]
    fn layer_norms_and_their_gradients_are_exact() {
        for width in [1, 7, 16, 50] {
            let x = normals(2 * width, 1);
            let (w, b, d) = (normals(width, 2), normals(width, 3), normals(2 * width, 4));
            let (mut out, mut moments) = (vec![0.0; 2 * width], vec![0.0; 4]);
            layer_norm(&x, &w, &b, &mut out, &mut moments);
            let (mut back, mut sums) = (vec![1.0; 2 * width], vec![0.0; 2 * width]);
            layer_norm_backward(&d, &x, &moments, &w, &mut back, &mut sums);
            let double = |x: &[f32]| x.iter().map(|x| *x as f64).collect::<Vec<_>>();
            let (wd, bd) = (double(&w), double(&b));
            let mut by_parameter = vec![0.0; 2 * width];
            for r in 0..2 {
                let row = r * width..(r + 1) * width;
                let (xd, dd) = (double(&x[row.clone()]), double(&d[row.clone()]));
                close(&out[row.clone()], &exact_norm(&xd, &wd, &bd));
                let along = |x: &[f64]| -> f64 {
                    exact_norm(x, &wd, &bd)
                        .iter()
                        .zip(&dd)
                        .map(|(y, d)| y * d)
                        .sum()
                };
                let h = 1e-6;
                let by_x = (0..width).map(|i| {
                    let (mut up, mut down) = (xd.clone(), xd.clone());
                    (up[i], down[i]) = (up[i] + h, down[i] - h);
                    1.0 + (along(&up) - along(&down)) / (2.0 * h)
                });
                close(&back[row], &by_x.collect::<Vec<_>>());
                let plain = exact_norm(&xd, &vec![1.0; width], &vec![0.0; width]);
                for i in 0..width {
                    by_parameter[i] += plain[i] * dd[i];
                    by_parameter[width + i] += dd[i];
                }
            }
            close(&sums, &by_parameter);
        }
    }

    #[test]
    fn tokens_are_looked_up_and_their_gradients_added() {
        let table = [0.0, 1.0, 10.0, 11.0, 20.0, 21.0];
        let mut out = [0.0; 6];
        assert_eq!(embed(&[2.0, 0.0, 2.0], &table, 2, &mut out), Ok(()));
        assert_eq!(out, [20.0, 21.0, 0.0, 1.0, 20.0, 21.0]);
        for (bad, at) in [(3.0, 1), (-1.0, 1), (0.5, 1), (f32::NAN, 1), (1e30, 1)] {
            assert_eq!(embed(&[0.0, bad, 0.0], &table, 2, &mut out), Err(at));
        }
        let mut grad = [0.0; 4]; // Rows 1 and 2.
        let deltas = [1.0, 2.0, 5.0, 5.0, 3.0, 4.0];
        add_by_token(&[2.0, 0.0, 2.0], &deltas, 2, 1, &mut grad);
        assert_eq!(grad, [0.0, 0.0, 4.0, 6.0]);
        let mut out = [0.0; 4];
        add_repeated(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0], &mut out);
        assert_eq!(out, [11.0, 22.0, 13.0, 24.0]);
    }
}
