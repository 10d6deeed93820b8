//! An axis to one number, and softmax along an axis.

use super::operation::Reduce;
use crate::math;
use crate::update::add;

/// `[m, inner]` to `[inner]`.
pub fn reduce(how: Reduce, x: &[f32], out: &mut [f32]) {
    let inner = out.len();
    if inner == 1 && how == Reduce::Sum {
        out[0] = x.iter().map(|x| f64::from(*x)).sum::<f64>() as f32;
        return;
    }
    out.copy_from_slice(&x[..inner]);
    for row in x.chunks_exact(inner).skip(1) {
        let pairs = out.iter_mut().zip(row);
        match how {
            Reduce::Sum => pairs.for_each(|(o, x)| *o += *x),
            // A NaN stays visible.
            Reduce::Max => {
                pairs.for_each(|(o, x)| *o = if x.is_nan() || *x > *o { *x } else { *o })
            }
            Reduce::Min => {
                pairs.for_each(|(o, x)| *o = if x.is_nan() || *x < *o { *x } else { *o })
            }
        }
    }
}

/// Add the gradient with respect to x.
pub fn reduce_derivative(how: Reduce, x: &[f32], y: &[f32], delta: &[f32], out: &mut [f32]) {
    let inner = y.len();
    if how == Reduce::Sum {
        return out.chunks_exact_mut(inner).for_each(|o| add(o, delta));
    }
    for i in 0..inner {
        let column = || x[i..].iter().step_by(inner);
        let equal = column().filter(|x| **x == y[i]).count();
        let share = delta[i] / equal as f32;
        for (o, x) in out[i..].iter_mut().step_by(inner).zip(column()) {
            if *x == y[i] {
                *o += share;
            }
        }
    }
}

/// Over the first axis of `[m, inner]`.
pub fn softmax(x: &[f32], out: &mut [f32], inner: usize, logarithm: bool) {
    for i in 0..inner {
        let column = || x[i..].iter().step_by(inner);
        let most = column().fold(f32::NEG_INFINITY, |m, x| if *x > m { *x } else { m });
        let mut sum = 0.0;
        for (o, x) in out[i..].iter_mut().step_by(inner).zip(column()) {
            let e = math::exp(*x - most);
            sum += e;
            *o = if logarithm { *x - most } else { e };
        }
        let (shift, scale) = match logarithm {
            true => (math::ln(sum), 1.0),
            false => (0.0, 1.0 / sum),
        };
        let column = out[i..].iter_mut().step_by(inner);
        column.for_each(|o| *o = (*o - shift) * scale);
    }
}

/// Add the gradient with respect to what went in, from what came out.
pub fn softmax_derivative(
    y: &[f32],
    delta: &[f32],
    out: &mut [f32],
    inner: usize,
    logarithm: bool,
) {
    for i in 0..inner {
        let each = || {
            y[i..]
                .iter()
                .step_by(inner)
                .zip(delta[i..].iter().step_by(inner))
        };
        let sum: f32 = match logarithm {
            true => each().map(|(_, d)| d).sum(),
            false => each().map(|(y, d)| y * d).sum(),
        };
        for (o, (y, d)) in out[i..].iter_mut().step_by(inner).zip(each()) {
            *o += match logarithm {
                true => d - math::exp(*y) * sum,
                false => y * (d - sum),
            };
        }
    }
}
