//! A multivariate Student-t distribution.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked_dim, vector};
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::student_t`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "student_t",
    doc: "A multivariate Student-t distribution, heavy-tailed: U = ½ (ν + N) ln(1 + |w|²/(ν s²)), ν = `nu`, s = `scale`.\n\n\
          Exact at temperature T: the same with ν' = (ν + N)/T - N degrees of freedom, if that is positive, and no distribution otherwise. Each \
          parameter has mean 0 for ν' > 1 and variance ν s²/(ν' - 2) for ν' > 2. Parameters are uncorrelated but not independent.\n\n\
          Source: Kotz & Nadarajah 2004, Multivariate t distributions, eq. 1.1.",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(1.0)),
            "2",
            "Number of parameters.",
        ),
        option(
            "nu",
            Kind::Float(Range::Positive),
            "5",
            "ν, degrees of freedom at T = 1: the smaller, the heavier the tails.",
        ),
        option(
            "scale",
            Kind::Float(Range::Positive),
            "1",
            "s, the width of the centre.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::student_t(#{ dim: 3, nu: 4.0 })",
    build: |o| {
        let (dim, nu, s) = (checked_dim(o)?, o.float("nu")?, o.float("scale")?);
        let power = nu + dim as f64;
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let square: f64 = w.iter().map(|w| *w as f64 * *w as f64).sum();
            let reduced = square / (nu * s * s);
            if let Some(g) = grad {
                let slope = power / (nu * s * s * (1.0 + reduced));
                for (g, w) in g.iter_mut().zip(w) {
                    *g = (slope * *w as f64) as f32;
                }
            }
            0.5 * power * reduced.ln_1p()
        };
        let name = format!("Student t, nu {nu}, scale {s}");
        Analytic::build(o, name, vector(dim), Box::new(energy))
    },
};
