//! Element-wise passes around the matrix products: bias and activation, their derivatives, softmax, column sums.

use super::gemm::Part;
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

/// Numbers that are worked on side by side.
const SIDE: usize = 16;

/// `z ← f(z)`, for an f that is cheap.
#[inline(always)]
fn change(z: &mut Part, f: impl Fn(f32) -> f32) {
    for i in 0..z.pieces() {
        z.piece(i).iter_mut().for_each(|z| *z = f(*z));
    }
}

/// `z ← f(z)`, for an f that is worth padding what is left at the end, so that also that goes side by side.
#[inline(always)]
fn change_padded(z: &mut Part, f: impl Fn(f32) -> f32) {
    for i in 0..z.pieces() {
        let z = z.piece(i);
        let whole = z.len() / SIDE * SIDE;
        let (z, rest) = z.split_at_mut(whole);
        z.iter_mut().for_each(|z| *z = f(*z));
        if !rest.is_empty() {
            let mut last = [0.0; SIDE];
            last[..rest.len()].copy_from_slice(rest);
            last.iter_mut().for_each(|z| *z = f(*z));
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

/// `z ← f(z, x)`; `x` has the numbers of all the matrix of which z is a part.
#[inline(always)]
fn change_by(z: &mut Part, x: &[f32], f: impl Fn(f32, f32) -> f32) {
    let (x, stride) = (&x[z.first()..], z.stride());
    for i in 0..z.pieces() {
        let pairs = z.piece(i).iter_mut().zip(&x[i * stride..]);
        pairs.for_each(|(z, x)| *z = f(*z, *x));
    }
}

simd! {
    /// `z ← f(z + bias)` for a part of a matrix; a bias is that of all its columns. `before`, of which z is a part too, gets `z + bias` where the derivative needs it.
    pub fn bias_and_activation(z: &mut Part, bias: &[f32], f: Activation, before: &mut Part) {
        if !bias.is_empty() {
            let bias = &bias[z.columns.clone()];
            for i in 0..z.rows.len() {
                for (z, b) in z.row(i).iter_mut().zip(bias) {
                    *z += *b;
                }
            }
        }
        match f {
            Activation::Relu => change(z, |z| if z < 0.0 { 0.0 } else { z }),
            Activation::Tanh => change_padded(z, math::tanh),
            Activation::Logistic => change_padded(z, math::logistic),
            Activation::Gelu => {
                let row = z.rows.start - before.rows.start;
                let column = z.columns.start - before.columns.start;
                for i in 0..z.rows.len() {
                    let z = z.row(i);
                    before.row(row + i)[column..][..z.len()].copy_from_slice(z);
                }
                change(z, |z| z * normal_cdf(z));
            }
            Activation::Identity => {}
        }
    }
}

simd! {
    /// `delta ← delta · f'`, from the outputs `a` (and for GELU the inputs `before`) of all the matrix of which `delta` is a part.
    pub fn times_derivative(delta: &mut Part, a: &[f32], before: &[f32], f: Activation) {
        match f {
            // Not `a > 0.0`: a NaN must stay visible.
            Activation::Relu => change_by(delta, a, |d, a| if a <= 0.0 { 0.0 } else { d }),
            Activation::Tanh => change_by(delta, a, |d, a| d * (1.0 - a * a)),
            Activation::Logistic => change_by(delta, a, |d, a| d * (a * (1.0 - a))),
            Activation::Gelu => change_by(delta, before, |d, x| {
                let density = 0.398_942_3 * (-0.5 * x * x).exp();
                d * (normal_cdf(x) + x * density)
            }),
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

/// Columns up to which rows are worked on side by side: of so few, each row alone would keep no register full.
const FEW: usize = 32;

simd! {
    /// Turn rows of logits into probabilities; `log_sum[r]` gets max + ln Σ exp(z - max) of row `r`.
    pub fn softmax_rows(z: &mut [f32], columns: usize, log_sum: &mut [f64]) {
        let more = |most: f32, x: f32| if x > most { x } else { most };
        if columns > FEW {
            for (row, l) in z.chunks_exact_mut(columns).zip(log_sum) {
                let most = row.iter().copied().fold(f32::NEG_INFINITY, more);
                row.iter_mut().for_each(|z| *z = math::exp(*z - most));
                let sum: f32 = row.iter().sum();
                *l = most as f64 + (sum as f64).ln();
                let inverse = 1.0 / sum;
                row.iter_mut().for_each(|z| *z *= inverse);
            }
            return;
        }
        let mut room = [[0f32; SIDE]; FEW];
        let block = &mut room[..columns];
        for (rows, log_sum) in z.chunks_mut(SIDE * columns).zip(log_sum.chunks_mut(SIDE)) {
            for (r, row) in rows.chunks_exact(columns).enumerate() {
                for (column, x) in block.iter_mut().zip(row) {
                    column[r] = *x;
                }
            }
            let (mut most, mut sum) = ([f32::NEG_INFINITY; SIDE], [0f32; SIDE]);
            for column in block.iter() {
                for (most, x) in most.iter_mut().zip(column) {
                    *most = more(*most, *x);
                }
            }
            for column in block.iter_mut() {
                for ((x, most), sum) in column.iter_mut().zip(&most).zip(&mut sum) {
                    *x = math::exp(*x - *most);
                    *sum += *x;
                }
            }
            for ((l, most), sum) in log_sum.iter_mut().zip(most).zip(sum) {
                *l = most as f64 + (sum as f64).ln();
            }
            let inverse = sum.map(|sum| 1.0 / sum);
            for (r, row) in rows.chunks_exact_mut(columns).enumerate() {
                for (x, column) in row.iter_mut().zip(block.iter()) {
                    *x = column[r] * inverse[r];
                }
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
