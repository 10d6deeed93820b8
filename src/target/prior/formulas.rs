//! Priors as formulas: what an accelerator compiles. A law of single numbers is a formula of one of them, whatever their number; what is no such
//! thing (a closure, numbers in order) is one of all parameters.

use super::density::{At, Density, Piece};
use super::law::Law;
use crate::error::Result;
use crate::kernels::tensor::{Binary, Graph, Reduce, Symbol, Tape, Tensor, Unary};
use crate::model::likelihood::{laplace, normal, student_t};
use crate::model::support::Support;
use std::f64::consts::{LN_2, PI};
use std::sync::Arc;

/// A part of R: the sum of an energy over some numbers.
#[derive(Debug)]
pub struct Term {
    /// The energy, of up to three columns, which are parameters: see [`Tape::term_kernel`].
    pub energy: Arc<Tape>,
    /// How many numbers.
    pub count: usize,
    /// Where each column begins among the parameters, and how far it is to that of the next number.
    pub columns: [(usize, usize); 3],
}

impl Density {
    /// All parts of the energy, of so many parameters.
    ///
    /// # Errors
    /// If a law has no formula.
    pub fn terms(&self, parameters: usize) -> Result<Vec<Term>> {
        let all = Tensor::from(Symbol::vector(parameters));
        let of_all = |energy: &Tensor| {
            let tape = Tape::compile(&Graph::new(&energy.symbol()?)?, parameters, 0)?;
            Ok::<_, anyhow::Error>(Arc::new(tape))
        };
        let mut out = Vec::new();
        for piece in &self.pieces {
            out.push(match self.has_order(piece) {
                true => once(of_all(&self.of_all(piece, &all)?)?),
                false => self.of_each(piece)?,
            });
        }
        for (range, support) in &self.mapped {
            out.push(match support {
                Support::Ordered => {
                    let own = all.entries(range.start as i64, range.len() as i64)?;
                    once(of_all(&support.jacobian_of_tensor(&own)?)?)
                }
                _ => Term {
                    energy: of_columns(&support.jacobian_of_tensor(&column(0)?)?)?,
                    count: range.len(),
                    columns: [(range.start, 1), (0, 0), (0, 0)],
                },
            });
        }
        out.extend(self.joint.iter().cloned().map(once));
        Ok(out)
    }

    fn support(&self, parameter: usize) -> Support {
        let mut mapped = self.mapped.iter();
        let found = mapped.find(|(range, _)| range.contains(&parameter));
        found.map_or(Support::Real, |(_, support)| *support)
    }

    /// Whether a value of this law depends on more than its own coordinate.
    fn has_order(&self, piece: &Piece) -> bool {
        let places = [piece.location.index(0), piece.scale.index(0)];
        let mut all = places.into_iter().flatten().chain([piece.range.start]);
        piece.ordered || all.any(|k| self.support(k) == Support::Ordered)
    }

    /// The energy of one of its numbers.
    fn of_each(&self, piece: &Piece) -> Result<Term> {
        let mut columns = [(piece.range.start, 1), (0, 0), (0, 0)];
        let x = self.support(piece.range.start).of_tensor(&column(0)?)?;
        let mut place = |at: &At, k: usize| {
            columns[k] = match at {
                At::Number(a) => return Tensor::number(*a, &x),
                At::One(from) => (*from, 0),
                At::Each(from) => (*from, 1),
            };
            self.support(columns[k].0).of_tensor(&column(k)?)
        };
        let (a, b) = (place(&piece.location, 1)?, place(&piece.scale, 2)?);
        let energy = piece.each.law.of_tensors(&x, &a, &b)?;
        let half = if piece.each.half { -LN_2 } else { 0.0 };
        Ok(Term {
            energy: of_columns(&plus(&energy, half)?)?,
            count: piece.range.len(),
            columns,
        })
    }

    /// The energy of all its numbers.
    fn of_all(&self, piece: &Piece, all: &Tensor) -> Result<Tensor> {
        let values = |from: usize, count: usize| {
            let mut mapped = self.mapped.iter();
            let entries = |t: &Tensor, from: usize, n: usize| t.entries(from as i64, n as i64);
            match mapped.find(|(range, _)| range.contains(&from)) {
                Some((range, support)) => {
                    let own = support.of_tensor(&entries(all, range.start, range.len())?)?;
                    entries(&own, from - range.start, count)
                }
                None => entries(all, from, count),
            }
        };
        let count = piece.range.len();
        let place = |at: &At| match at {
            At::Number(a) => Tensor::number(*a, all),
            At::One(k) => values(*k, 1),
            At::Each(k) => values(*k, count),
        };
        let x = values(piece.range.start, count)?;
        let (a, b) = (place(&piece.location)?, place(&piece.scale)?);
        let energy = piece.each.law.of_tensors(&x, &a, &b)?;
        plus(&energy, piece.constant())
    }
}

/// A column of a term, as a vector of one number.
fn column(k: usize) -> Result<Tensor> {
    Ok(Symbol::columns(k..k + 1).into())
}

fn of_columns(energy: &Tensor) -> Result<Arc<Tape>> {
    let graph = Graph::new(&energy.symbol()?)?;
    Ok(Arc::new(Tape::with_moving(&graph, 0, 3, 3)?))
}

/// An energy of all parameters.
fn once(energy: Arc<Tape>) -> Term {
    Term {
        energy,
        count: 1,
        columns: [(0, 0); 3],
    }
}

fn plus(x: &Tensor, number: f64) -> Result<Tensor> {
    x.binary(Binary::Add, &Tensor::number(number, x)?)
}

fn times(x: &Tensor, number: f64) -> Result<Tensor> {
    x.binary(Binary::Multiply, &Tensor::number(number, x)?)
}

impl Law {
    /// -ln of the density at x, as [`Law::at`] has it, summed over its components.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn of_tensors(&self, x: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let ln = |x: &Tensor| x.unary(Unary::Ln);
        let each = match self {
            Self::Normal => return normal(x, a, b),
            Self::Laplace => return laplace(x, a, b),
            Self::StudentT(nu) => return student_t(x, *nu, a, b),
            Self::Horseshoe => {
                let z = x.binary(Binary::Subtract, a)?.binary(Binary::Divide, b)?;
                let t = times(&z.power(2.0)?, 0.5)?;
                let g = ln(&scaled_exponential_integral(&t)?)?;
                plus(&ln(b)?, 0.5 * (2.0 * PI.powi(3)).ln())?.binary(Binary::Subtract, &g)?
            }
            Self::LogNormal => {
                let y = ln(x)?;
                let sum = y.reduce_all(Reduce::Sum)?;
                return normal(&y, a, b)?.binary(Binary::Add, &sum);
            }
            Self::Gamma(k) => x
                .binary(Binary::Multiply, b)?
                .binary(Binary::Subtract, &times(&ln(x)?, k - 1.0)?)?
                .binary(
                    Binary::Subtract,
                    &plus(&times(&ln(b)?, *k)?, -libm::lgamma(*k))?,
                )?,
            Self::InverseGamma(k) => b
                .binary(Binary::Divide, x)?
                .binary(Binary::Add, &times(&ln(x)?, k + 1.0)?)?
                .binary(
                    Binary::Subtract,
                    &plus(&times(&ln(b)?, *k)?, -libm::lgamma(*k))?,
                )?,
            Self::Beta {
                shapes: (p, q),
                within: (from, to),
            } => {
                let ln_beta = libm::lgamma(*p) + libm::lgamma(*q) - libm::lgamma(p + q);
                let left = plus(x, -from)?;
                let right = plus(&times(x, -1.0)?, *to)?;
                let mut sum = plus(&times(x, 0.0)?, (p + q - 1.0) * (to - from).ln() + ln_beta)?;
                // A flat end has no logarithm, not 0 times an infinite one.
                for (shape, d) in [(p, left), (q, right)].into_iter().filter(|e| *e.0 != 1.0) {
                    sum = sum.binary(Binary::Subtract, &times(&ln(&d)?, shape - 1.0)?)?;
                }
                sum
            }
            Self::Mixture(parts) => {
                let ln_density = |[p, m, s]: &[f64; 3]| {
                    let z = times(&plus(x, -m)?, s.recip())?;
                    let constant = (p / s).ln() - 0.5 * (2.0 * PI).ln();
                    plus(&times(&z.power(2.0)?, -0.5)?, constant)
                };
                let mut parts = parts.iter().map(ln_density);
                let first = parts
                    .next()
                    .ok_or_else(|| anyhow::anyhow!("a mixture of no laws has no density"))??;
                let sum =
                    parts.try_fold(first, |sum, part| sum.binary(Binary::LnAddExp, &part?))?;
                sum.unary(Unary::Negate)?
            }
        };
        each.reduce_all(Reduce::Sum)
    }
}

/// exp(t) E₁(t) for t ≥ 0 with a fixed number of operations: the power series below 1, the continued fraction above (Abramowitz & Stegun 5.1.11,
/// 5.1.22). At 0, where it is infinite, it is a very large number without a slope.
fn scaled_exponential_integral(t: &Tensor) -> Result<Tensor> {
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    let number = |x: f64| Tensor::number(x, t);
    let (one, least) = (number(1.0)?, number(1e-300)?);
    let small = t.binary(Binary::Min, &one)?.binary(Binary::Max, &least)?;
    let mut factorial = 1.0;
    let coefficients: Vec<f64> = (1..=20)
        .map(|k| {
            let k = f64::from(k);
            factorial *= -k;
            -1.0 / (k * factorial)
        })
        .collect();
    let mut sum = number(0.0)?;
    for c in coefficients.iter().rev() {
        sum = plus(&sum, *c)?.binary(Binary::Multiply, &small)?;
    }
    let sum = plus(&sum, -GAMMA)?.binary(Binary::Subtract, &small.unary(Unary::Ln)?)?;
    let near = sum.binary(Binary::Multiply, &small.unary(Unary::Exp)?)?;
    let large = t.binary(Binary::Max, &one)?;
    let terms = 60;
    let mut fraction = plus(&large, 2.0 * f64::from(terms) + 1.0)?;
    for i in (1..=terms).rev().map(f64::from) {
        let rest = number(i * i)?.binary(Binary::Divide, &fraction)?;
        fraction = plus(&large, 2.0 * i - 1.0)?.binary(Binary::Subtract, &rest)?;
    }
    let far = one.binary(Binary::Divide, &fraction)?;
    t.binary(Binary::Less, &one)?.choose(&near, &far)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::tensor::Scratch;
    use crate::target::prior::law::tests::laws;

    /// Null: a formula and its slopes are the law and its slopes, but for rounding.
    #[test]
    fn formulas_are_their_laws() {
        let [x, a, b] = [0, 1, 2].map(|k| column(k).unwrap());
        let mut all = laws();
        all.push((Law::Horseshoe, 0.0, 0.25));
        for (law, location, scale) in all {
            let tape = of_columns(&law.of_tensors(&x, &a, &b).unwrap()).unwrap();
            for at in [0.03125, 0.375, 0.9375] {
                // Both sides see the numbers in single precision.
                let row = [at, location, scale].map(|x| x as f32);
                let [x, a, b] = row.map(f64::from);
                let (mut value, mut slopes) = ([0.0], [0f32; 3]);
                let both = Some((&mut slopes[..], &mut [] as &mut [f64]));
                let mut scratch = Scratch::default();
                tape.evaluate_rows(&[] as &[f32], &row, &mut value, both, &mut scratch);
                let (energy, exact) = law.at(x, a, b);
                assert!(
                    (value[0] - energy).abs() < 1e-12 * (1.0 + energy.abs()),
                    "{law:?} at {x}: {} {energy}",
                    value[0]
                );
                for (k, (found, exact)) in slopes.iter().zip(exact).enumerate() {
                    assert!(
                        (f64::from(*found) - exact).abs() < 1e-5 * (1.0 + exact.abs()),
                        "{law:?} at {x}, {k}: {found} {exact}"
                    );
                }
            }
        }
        let t = |t: f64| Tensor::from_f64(vec![t], &[]).unwrap();
        let g = |x: f64| {
            scaled_exponential_integral(&t(x))
                .unwrap()
                .item("")
                .unwrap()
        };
        // Abramowitz & Stegun, tables 5.1 and 5.2; both sides of 1 meet; far away it is 1/t.
        assert!((g(0.5) * (-0.5f64).exp() - 0.559_773_595).abs() < 1e-8);
        assert!((10.0 * g(10.0) - 0.915_633_339).abs() < 1e-8);
        assert!((g(1.0 - 1e-12) - g(1.0)).abs() < 1e-11);
        assert!((1e8 * g(1e8) - 1.0).abs() < 1e-7);
    }
}
