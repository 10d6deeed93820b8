//! Where the values of a parameter may lie: chains move on the whole line, and their coordinates u are mapped to values x(u).

use crate::error::Result;
use crate::kernels::tensor::{Binary, Reduce, Tensor, Unary};
use crate::options::{Entry, Kind, Options, Range, option, required};
use std::sync::Arc;

/// The values that a parameter may have. Densities are those of the values; the logarithm of |dx/du| is added to them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Support {
    /// All numbers: x = u.
    #[default]
    Real,
    /// x > 0: x = exp(u).
    Positive,
    /// From one number to another: x = from + (to - from)/(1 + exp(-u)).
    Interval(f64, f64),
    /// Each value greater than the one before: x_0 = u_0, x_k = x_(k-1) + exp(u_k).
    Ordered,
}

impl Support {
    /// What the coordinates are called, of values with this name.
    pub fn coordinate(self, name: &str) -> String {
        match self {
            Self::Real => name.into(),
            Self::Positive => format!("log_{name}"),
            Self::Interval(..) => format!("logit_{name}"),
            Self::Ordered => format!("steps_{name}"),
        }
    }

    /// In words, to follow a name.
    pub fn describe(self) -> String {
        match self {
            Self::Real => "a real number".into(),
            Self::Positive => "positive".into(),
            Self::Interval(from, to) => format!("between {from} and {to}"),
            Self::Ordered => "in increasing order".into(),
        }
    }

    /// The values at these coordinates.
    pub fn values(self, u: &[f32], x: &mut [f64]) {
        let mut last = 0.0;
        for (i, (x, u)) in x.iter_mut().zip(u).enumerate() {
            let u = f64::from(*u);
            *x = match self {
                Self::Real => u,
                Self::Positive => u.exp(),
                Self::Interval(from, to) => from + (to - from) * logistic(u),
                Self::Ordered if i == 0 => u,
                Self::Ordered => last + u.exp(),
            };
            last = *x;
        }
    }

    /// The coordinates of these values.
    pub fn coordinates(self, x: &[f64], u: &mut [f32]) {
        let mut last = 0.0;
        for (i, (u, &x)) in u.iter_mut().zip(x).enumerate() {
            // A value that lies on an end to rounding stays finite.
            let finite = |u: f64| u.clamp(-700.0, 700.0) as f32;
            *u = match self {
                Self::Real => x as f32,
                Self::Positive => finite(x.ln()),
                Self::Interval(from, to) => finite(((x - from) / (to - x)).ln()),
                Self::Ordered if i == 0 => x as f32,
                Self::Ordered => finite((x - last).ln()),
            };
            last = x;
        }
    }

    /// ln |dx/du|, summed.
    pub fn ln_jacobian(self, u: &[f32]) -> f64 {
        let each = u.iter().map(|u| f64::from(*u));
        match self {
            Self::Real => 0.0,
            Self::Positive => each.sum(),
            Self::Ordered => each.skip(1).sum(),
            Self::Interval(from, to) => {
                // ln σ(u) + ln σ(-u) = -|u| - 2 ln(1 + exp(-|u|))
                let of = |u: f64| (to - from).ln() - u.abs() - 2.0 * (-u.abs()).exp().ln_1p();
                each.map(of).sum()
            }
        }
    }

    /// -ln |dx/du|, summed, as a tensor that can be traced, from a vector of coordinates.
    pub fn jacobian_of_tensor(self, u: &Tensor) -> Result<Tensor> {
        let sum = |each: &Tensor| each.reduce_all(Reduce::Sum);
        Ok(match self {
            Self::Real => Tensor::number(0.0, u)?,
            Self::Positive => sum(&u.unary(Unary::Negate)?)?,
            Self::Ordered => {
                let steps = u.entries(1, u.length()? as i64 - 1)?;
                sum(&steps.unary(Unary::Negate)?)?
            }
            Self::Interval(from, to) => {
                let both = u.unary(Unary::Softplus)?.binary(
                    Binary::Add,
                    &u.unary(Unary::Negate)?.unary(Unary::Softplus)?,
                )?;
                sum(&both.binary(Binary::Subtract, &Tensor::number((to - from).ln(), u)?)?)?
            }
        })
    }

    /// From ∂E/∂x to the gradient of E(x(u)) - ln |dx/du| with respect to u, in place.
    pub fn pull_back(self, u: &[f32], slopes: &mut [f64]) {
        match self {
            Self::Real => {}
            Self::Positive => {
                for (d, u) in slopes.iter_mut().zip(u) {
                    *d = *d * f64::from(*u).exp() - 1.0;
                }
            }
            Self::Interval(from, to) => {
                for (d, u) in slopes.iter_mut().zip(u) {
                    let s = logistic(f64::from(*u));
                    *d = *d * (to - from) * s * (1.0 - s) - (1.0 - 2.0 * s);
                }
            }
            Self::Ordered => {
                // A step moves its own value and all behind it.
                let mut behind = 0.0;
                for (i, (d, u)) in slopes.iter_mut().zip(u).enumerate().rev() {
                    behind += *d;
                    *d = match i {
                        0 => behind,
                        _ => behind * f64::from(*u).exp() - 1.0,
                    };
                }
            }
        }
    }

    /// The values as tensors that can be traced, from a vector of coordinates.
    pub fn of_tensor(self, u: &Tensor) -> Result<Tensor> {
        let number = |x: f64| Tensor::number(x, u);
        Ok(match self {
            Self::Real => u.clone(),
            Self::Positive => u.unary(Unary::Exp)?,
            Self::Interval(from, to) => u
                .unary(Unary::Sigmoid)?
                .binary(Binary::Multiply, &number(to - from)?)?
                .binary(Binary::Add, &number(from)?)?,
            Self::Ordered => {
                let count = u.length()? as i64;
                let mut all = vec![u.entries(0, 1)?];
                for i in 1..count {
                    let step = u.entries(i, 1)?.unary(Unary::Exp)?;
                    all.push(all[i as usize - 1].binary(Binary::Add, &step)?);
                }
                Tensor::concat(&all.iter().collect::<Vec<_>>(), 0)?
            }
        })
    }
}

/// A parameter before it has a name: its shape, and where its values may lie.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    /// Its shape; empty for a number.
    pub shape: Vec<usize>,
    /// Its values.
    pub support: Support,
}

impl Space {
    fn new(o: &Options, support: Support) -> Result<Arc<Self>> {
        let shape = o.sizes("shape").unwrap_or_default();
        Ok(Arc::new(Self { shape, support }))
    }
}

crate::object::object! {
    Space: "Support",
    text: |s| format!("{} of shape {:?}", s.support.describe(), s.shape),
}

const SHAPE: crate::options::Spec = option(
    "shape",
    Kind::Ints(Range::AtLeast(1.0)),
    "[]",
    "Shape; [] is a number.",
);

/// `support::…`.
pub const REGISTRY: &[Entry<Arc<Space>>] = &[
    Entry {
        name: "positive",
        doc: "A parameter of positive values x, for potential::closure and prior::closure. Chains move in u = ln x; densities are those of x, with the term -ln |dx/du| of R.",
        arguments: &["shape"],
        options: &[SHAPE],
        example: "support::positive([8])",
        build: |o| Space::new(o, Support::Positive),
    },
    Entry {
        name: "interval",
        doc: "A parameter of values between two numbers, for potential::closure and prior::closure. Chains move in u = ln((x - from)/(to - x)); densities are those of x, with the term -ln |dx/du| of R.",
        arguments: &["from", "to", "shape"],
        options: &[
            required("from", Kind::Float(Range::Any), "The lower end."),
            required("to", Kind::Float(Range::Any), "The upper end."),
            SHAPE,
        ],
        example: "support::interval(0, 1)",
        build: |o| {
            let (from, to) = (o.float("from")?, o.float("to")?);
            anyhow::ensure!(from < to, "{}: 'from' must be less than 'to'", o.owner());
            Space::new(o, Support::Interval(from, to))
        },
    },
    Entry {
        name: "ordered",
        doc: "A vector of increasing values x, for potential::closure and prior::closure: each is greater than the one before, as the means of a mixture whose parts must not change places.\n\nChains move in x_0 and the logarithms of the steps; densities are those of x.",
        arguments: &["count"],
        options: &[required(
            "count",
            Kind::Int(Range::AtLeast(1.0)),
            "How many.",
        )],
        example: "support::ordered(2)",
        build: |o| {
            Ok(Arc::new(Space {
                shape: vec![o.size("count")?],
                support: Support::Ordered,
            }))
        },
    },
];

fn logistic(u: f64) -> f64 {
    1.0 / (1.0 + (-u).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Support; 4] = [
        Support::Real,
        Support::Positive,
        Support::Interval(-1.0, 3.0),
        Support::Ordered,
    ];

    #[test]
    fn coordinates_and_values_are_each_other_s_inverse_and_tensors_agree() {
        let u = [0.3f32, -1.2, 0.7];
        for support in ALL {
            let (mut x, mut back) = ([0.0; 3], [0.0f32; 3]);
            support.values(&u, &mut x);
            support.coordinates(&x, &mut back);
            for (a, b) in u.iter().zip(back) {
                assert!((a - b).abs() < 1e-5, "{support:?}: {u:?} became {back:?}");
            }
            let traced = u.map(f64::from).to_vec();
            let traced = support.of_tensor(&Tensor::from_f64(traced, &[3]).unwrap());
            let traced = traced.unwrap().to_f64("test").unwrap();
            for (a, b) in x.iter().zip(traced) {
                assert!((a - b).abs() < 1e-12, "{support:?}");
            }
            let traced = Tensor::from_f64(u.map(f64::from).to_vec(), &[3]).unwrap();
            let traced = support.jacobian_of_tensor(&traced).unwrap();
            let (traced, plain) = (traced.item("test").unwrap(), -support.ln_jacobian(&u));
            assert!(
                (traced - plain).abs() < 1e-12,
                "{support:?}: {traced} {plain}"
            );
        }
    }

    /// E(x) = Σ c_i x_i: the gradient of E - ln|dx/du| by differences, and |dx/du| as the determinant of dx/du by differences.
    #[test]
    fn gradients_and_jacobians_are_those_of_differences() {
        let u = [0.3f32, -1.25, 0.75];
        let c = [1.5, -0.5, 2.0];
        let h = 1.0 / 64.0;
        let at = |support: Support, k: usize, by: f32| {
            let (mut moved, mut x) = (u, [0.0; 3]);
            moved[k] += by;
            support.values(&moved, &mut x);
            (x, support.ln_jacobian(&moved))
        };
        for support in ALL {
            let mut slopes = c;
            support.pull_back(&u, &mut slopes);
            let mut ln_det = 0.0;
            for k in 0..3 {
                let ((right, jr), (left, jl)) = (at(support, k, h), at(support, k, -h));
                let energy = |x: [f64; 3]| x.iter().zip(c).map(|(x, c)| x * c).sum::<f64>();
                let slope = (energy(right) - jr - energy(left) + jl) / (2.0 * f64::from(h));
                assert!(
                    (slope - slopes[k]).abs() < 2e-3,
                    "{support:?} {k}: {slope} {slopes:?}"
                );
                // Triangular: the determinant is the product of the diagonal.
                ln_det += ((right[k] - left[k]) / (2.0 * f64::from(h))).ln();
            }
            assert!(
                (ln_det - support.ln_jacobian(&u)).abs() < 1e-3,
                "{support:?}"
            );
        }
    }
}
