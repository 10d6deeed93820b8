//! Element-wise passes around the matrix products: bias and activation, their derivatives, softmax, column sums.

use super::math;
use super::simd;

/// What a neuron does to its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// max(0, x)
    Relu,
    /// tanh x
    Tanh,
    /// 1/(1+e^-x)
    Logistic,
    /// x Φ(x), with the exact normal distribution function
    Gelu,
    /// x
    Identity,
}

impl Activation {
    /// Names, as in scripts.
    pub const NAMES: &'static [&'static str] = &["relu", "tanh", "logistic", "gelu", "identity"];

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "relu" => Self::Relu,
            "tanh" => Self::Tanh,
            "logistic" => Self::Logistic,
            "gelu" => Self::Gelu,
            "identity" => Self::Identity,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[match self {
            Self::Relu => 0,
            Self::Tanh => 1,
            Self::Logistic => 2,
            Self::Gelu => 3,
            Self::Identity => 4,
        }]
    }

    /// Whether the derivative needs the input (the others are functions of the output).
    pub fn needs_input(self) -> bool {
        self == Self::Gelu
    }
}

/// Φ(x), the normal distribution function.
pub fn normal_cdf(x: f32) -> f32 {
    0.5 * libm::erfcf(-x * std::f32::consts::FRAC_1_SQRT_2)
}

/// `z ← f(z + bias)`, row by row.
#[inline(always)]
fn rows(z: &mut [f32], bias: &[f32], columns: usize, f: impl Fn(f32) -> f32) {
    if bias.is_empty() {
        return z.iter_mut().for_each(|z| *z = f(*z));
    }
    for row in z.chunks_exact_mut(columns) {
        for (z, b) in row.iter_mut().zip(bias) {
            *z = f(*z + *b);
        }
    }
}

simd! {
    /// `z ← f(z + bias)` over rows of `bias.len()` columns (`columns` when there is no bias); `before` keeps `z + bias`.
    pub fn bias_and_activation(z: &mut [f32], bias: &[f32], columns: usize, f: Activation, before: &mut [f32]) {
        match f {
            Activation::Relu => rows(z, bias, columns, |z| if z < 0.0 { 0.0 } else { z }),
            Activation::Tanh => rows(z, bias, columns, math::tanh),
            Activation::Logistic => rows(z, bias, columns, math::logistic),
            Activation::Gelu => {
                rows(z, bias, columns, |z| z);
                before[..z.len()].copy_from_slice(z);
                rows(z, &[], columns, |z| z * normal_cdf(z));
            }
            Activation::Identity => rows(z, bias, columns, |z| z),
        }
    }
}

simd! {
    /// `delta ← delta · f'`, from the output `a` (and for GELU the input `before`).
    pub fn times_derivative(delta: &mut [f32], a: &[f32], before: &[f32], f: Activation) {
        let pairs = delta.iter_mut().zip(a);
        match f {
            // Not `a > 0.0`: a NaN must stay visible.
            Activation::Relu => pairs.for_each(|(d, a)| *d = if *a <= 0.0 { 0.0 } else { *d }),
            Activation::Tanh => pairs.for_each(|(d, a)| *d *= 1.0 - *a * *a),
            Activation::Logistic => pairs.for_each(|(d, a)| *d *= *a * (1.0 - *a)),
            Activation::Gelu => {
                for (d, x) in delta.iter_mut().zip(before) {
                    let density = 0.398_942_3 * (-0.5 * *x * *x).exp();
                    *d *= normal_cdf(*x) + *x * density;
                }
            }
            Activation::Identity => {}
        }
    }
}

simd! {
    /// `out += column sums` of a matrix with `out.len()` columns.
    pub fn add_column_sums(out: &mut [f32], matrix: &[f32]) {
        for row in matrix.chunks_exact(out.len()) {
            for (o, x) in out.iter_mut().zip(row) {
                *o += *x;
            }
        }
    }
}

simd! {
    /// Turn rows of logits into probabilities; `log_sum[r]` gets max + ln Σ exp(z - max) of row `r`.
    pub fn softmax_rows(z: &mut [f32], columns: usize, log_sum: &mut [f64]) {
        for (row, l) in z.chunks_exact_mut(columns).zip(log_sum.iter_mut()) {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, |a, b| if b > a { b } else { a });
            *l = max as f64;
            for z in row.iter_mut() {
                *z -= max;
            }
        }
        z.iter_mut().for_each(|z| *z = math::exp(*z));
        for (row, l) in z.chunks_exact_mut(columns).zip(log_sum.iter_mut()) {
            let sum: f32 = row.iter().sum();
            *l += (sum as f64).ln();
            let inverse = 1.0 / sum;
            for z in row.iter_mut() {
                *z *= inverse;
            }
        }
    }
}

simd! {
    /// Whether the first of the largest outputs is another than that of the label.
    pub fn misclassified(z: &[f32], label: usize) -> bool {
        let own = z[label];
        let (before, after) = z.split_at(label);
        let ties = before.iter().filter(|x| **x >= own).count();
        ties + after.iter().filter(|x| **x > own).count() > 0
    }
}

simd! {
    /// `out = 2x`.
    pub fn double(x: &[f32], out: &mut [f32]) {
        for (o, x) in out.iter_mut().zip(x) {
            *o = 2.0 * *x;
        }
    }
}

simd! {
    /// Σ (x-y)² in double precision, and `out = 2(x-y)`.
    pub fn squared_error(x: &[f32], y: &[f32], out: &mut [f32]) -> f64 {
        for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
            *o = 2.0 * (*x - *y);
        }
        0.25 * super::map::sum(out.len(), |i| out[i] as f64 * out[i] as f64)
    }
}
