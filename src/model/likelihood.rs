//! Negative log-likelihoods, `nll::…`, as formulas of tensors: for closures of scripts, and what losses are made of.

use crate::error::Result;
use crate::kernels::tensor::{Binary, Reduce, Tensor, Unary};
use anyhow::ensure;
use std::f64::consts::{LN_2, PI};

/// -ln p(y | …), summed over the components of y.
pub struct Likelihood {
    /// Name within `nll`.
    pub name: &'static str,
    /// Names of the arguments; the first is y.
    pub arguments: &'static [&'static str],
    /// Documentation.
    pub doc: &'static str,
    /// A call that runs.
    pub example: &'static str,
    /// The formula.
    pub of: fn(&[Tensor]) -> Result<Tensor>,
}

/// `nll::…`.
pub const ALL: &[Likelihood] = &[
    Likelihood {
        name: "normal",
        arguments: &["y", "mean", "sd"],
        doc: "-ln N(y; mean, sd²) = ½((y - mean)/sd)² + ln sd + ½ ln 2π, summed over components.",
        example: "nll::normal(0.3, 0.0, 1.0)",
        of: |a| normal(&a[0], &a[1], &a[2]),
    },
    Likelihood {
        name: "laplace",
        arguments: &["y", "mean", "scale"],
        doc: "|y - mean|/scale + ln(2 scale), summed over components.",
        example: "nll::laplace(0.3, 0.0, 1.0)",
        of: |a| laplace(&a[0], &a[1], &a[2]),
    },
    Likelihood {
        name: "student_t",
        arguments: &["y", "nu", "mean", "scale"],
        doc: "-ln of Student's t at y, with ν a number.\n\n½(ν + 1) ln(1 + z²/ν) + ln scale + ln(√(νπ) Γ(ν/2)/Γ((ν + 1)/2)) with z = (y - mean)/scale, summed over components.",
        example: "nll::student_t(0.3, 4, 0.0, 1.0)",
        of: |a| student_t(&a[0], a[1].item("nll::student_t: nu")?, &a[2], &a[3]),
    },
    Likelihood {
        name: "poisson",
        arguments: &["y", "log_rate"],
        doc: "exp(log_rate) - y log_rate for counts y, summed over components; the term ln y! of the data alone is left out.",
        example: "nll::poisson(3, 1.0)",
        of: |a| poisson(&a[0], &a[1]),
    },
    Likelihood {
        name: "bernoulli",
        arguments: &["y", "logit"],
        doc: "ln(1 + exp(logit)) - y logit for y = 0 or 1, summed over components.",
        example: "nll::bernoulli(1, 0.4)",
        of: |a| bernoulli(&a[0], &a[1]),
    },
    Likelihood {
        name: "categorical",
        arguments: &["label", "logits"],
        doc: "ln Σ exp(logits) - logits[label], the cross-entropy of one label 0, 1, 2, …",
        example: "nll::categorical(2, [0.1, -0.3, 1.2])",
        of: |a| categorical(&a[0], &a[1]),
    },
    Likelihood {
        name: "ordinal",
        arguments: &["label", "location", "cuts"],
        doc: "-ln of P(label) with P(label ≤ k) = 1/(1 + exp(location - cuts[k])): ordered classes 0 … K-1, between K-1 increasing cuts.",
        example: "nll::ordinal(1, 0.2, [-1.0, 1.0])",
        of: |a| ordinal(&a[0], &a[1], &a[2]),
    },
];

fn number(x: f64, like: &Tensor) -> Result<Tensor> {
    Tensor::number(x, like)
}

fn sum(each: &Tensor) -> Result<Tensor> {
    each.reduce_all(Reduce::Sum)
}

/// (y - mean)/scale.
fn standard(y: &Tensor, mean: &Tensor, scale: &Tensor) -> Result<Tensor> {
    y.binary(Binary::Subtract, mean)?
        .binary(Binary::Divide, scale)
}

/// See `nll::normal`.
pub fn normal(y: &Tensor, mean: &Tensor, sd: &Tensor) -> Result<Tensor> {
    let z = standard(y, mean, sd)?;
    let half = z
        .binary(Binary::Multiply, &z)?
        .binary(Binary::Multiply, &number(0.5, &z)?)?;
    let rest = sd
        .unary(Unary::Ln)?
        .binary(Binary::Add, &number(0.5 * (2.0 * PI).ln(), sd)?)?;
    sum(&half.binary(Binary::Add, &rest)?)
}

/// See `nll::laplace`.
pub fn laplace(y: &Tensor, mean: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let size = standard(y, mean, scale)?.unary(Unary::Abs)?;
    let rest = scale
        .unary(Unary::Ln)?
        .binary(Binary::Add, &number(LN_2, scale)?)?;
    sum(&size.binary(Binary::Add, &rest)?)
}

/// See `nll::student_t`.
pub fn student_t(y: &Tensor, nu: f64, mean: &Tensor, scale: &Tensor) -> Result<Tensor> {
    ensure!(nu > 0.0, "nll::student_t: nu is {nu}, but must be > 0");
    let z = standard(y, mean, scale)?;
    let square = z
        .binary(Binary::Multiply, &z)?
        .binary(Binary::Divide, &number(nu, &z)?)?;
    let ln = square
        .binary(Binary::Add, &number(1.0, &z)?)?
        .unary(Unary::Ln)?;
    let constant = ln_student(nu);
    let rest = scale
        .unary(Unary::Ln)?
        .binary(Binary::Add, &number(constant, scale)?)?;
    sum(&ln
        .binary(Binary::Multiply, &number(0.5 * (nu + 1.0), &z)?)?
        .binary(Binary::Add, &rest)?)
}

/// -ln of what Student's t with scale 1 is normalised by.
pub fn ln_student(nu: f64) -> f64 {
    libm::lgamma(0.5 * nu) - libm::lgamma(0.5 * (nu + 1.0)) + 0.5 * (nu * PI).ln()
}

/// See `nll::poisson`.
pub fn poisson(y: &Tensor, log_rate: &Tensor) -> Result<Tensor> {
    let rate = log_rate.unary(Unary::Exp)?;
    sum(&rate.binary(Binary::Subtract, &y.binary(Binary::Multiply, log_rate)?)?)
}

/// See `nll::bernoulli`.
pub fn bernoulli(y: &Tensor, logit: &Tensor) -> Result<Tensor> {
    let all = logit.unary(Unary::Softplus)?;
    sum(&all.binary(Binary::Subtract, &y.binary(Binary::Multiply, logit)?)?)
}

/// The entry of that number, which may be one that is traced: `Σ_k [label = k] entries[k]`.
pub fn entry(label: &Tensor, entries: &Tensor) -> Result<Tensor> {
    let count = entries.length()?;
    let numbers = Tensor::from_f64((0..count).map(|k| k as f64).collect(), &[count])?;
    let label = label.reshape(&[1])?;
    sum(&label
        .binary(Binary::Equal, &numbers)?
        .binary(Binary::Multiply, entries)?)
}

/// See `nll::categorical`.
pub fn categorical(label: &Tensor, logits: &Tensor) -> Result<Tensor> {
    logits
        .log_sum_exp(None, false)?
        .binary(Binary::Subtract, &entry(label, logits)?)
}

/// See `nll::ordinal`.
pub fn ordinal(label: &Tensor, location: &Tensor, cuts: &Tensor) -> Result<Tensor> {
    let below = cuts
        .binary(Binary::Subtract, &location.reshape(&[1])?)?
        .unary(Unary::Sigmoid)?;
    let [zero, one] = [0.0, 1.0].map(|x| Tensor::from_f64(vec![x], &[1]));
    let upper = Tensor::concat(&[&below, &one?], 0)?;
    let lower = Tensor::concat(&[&zero?, &below], 0)?;
    let shares = upper.binary(Binary::Subtract, &lower)?;
    entry(label, &shares)?
        .unary(Unary::Ln)?
        .unary(Unary::Negate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(x: &[f64]) -> Tensor {
        match x {
            [x] => Tensor::from_f64(vec![*x], &[]).unwrap(),
            all => Tensor::from_f64(all.to_vec(), &[all.len()]).unwrap(),
        }
    }

    /// Numbers from the formulas of textbooks, by Python's math.
    #[test]
    fn likelihoods_are_those_of_textbooks() {
        let of = |name: &str, a: &[&[f64]]| {
            let found = ALL.iter().find(|l| l.name == name).unwrap();
            let arguments: Vec<_> = a.iter().map(|x| t(x)).collect();
            (found.of)(&arguments).unwrap().item("").unwrap()
        };
        let cases: [(&str, &[&[f64]], f64); 7] = [
            (
                "normal",
                &[&[0.3, 1.0], &[0.1], &[2.0]],
                2.0 * (0.918_938_533_204_672_8 + LN_2) + 0.01 / 2.0 + 0.2025 / 2.0,
            ),
            ("laplace", &[&[0.3], &[0.1], &[2.0]], 0.1 + 4f64.ln()),
            (
                "student_t",
                &[&[0.5], &[4.0], &[0.0], &[1.0]],
                1.132_390_807_552_812_9,
            ),
            ("poisson", &[&[3.0], &[1.0]], 1f64.exp() - 3.0),
            ("bernoulli", &[&[1.0], &[0.4]], 0.513_015_252_399_952_6),
            (
                "categorical",
                &[&[2.0], &[0.1, -0.3, 1.2]],
                0.442_119_225_143_097_2,
            ),
            (
                "ordinal",
                &[&[1.0], &[0.2], &[-1.0, 1.0]],
                0.779_796_591_154_667_8,
            ),
        ];
        for (name, arguments, expected) in cases {
            let found = of(name, arguments);
            assert!(
                (found - expected).abs() < 1e-12,
                "{name}: {found} {expected}"
            );
        }
        // Shares of all ordered classes sum to 1.
        let all: f64 = (0..3)
            .map(|k| (-of("ordinal", &[&[f64::from(k)], &[0.2], &[-1.0, 1.0]])).exp())
            .sum();
        assert!((all - 1.0).abs() < 1e-12);
    }
}
