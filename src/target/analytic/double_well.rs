//! Independent double wells.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked_dim, vector};
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::double_well`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "double_well",
    doc: "Independent double wells: U = Σ barrier·(w_i² - 1)² + tilt·w_i.\n\n\
          The weight of the left well is known by one-dimensional quadrature.",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(1.0)),
            "1",
            "Number of parameters, one well pair each.",
        ),
        option(
            "barrier",
            Kind::Float(Range::Positive),
            "1",
            "Height of the barrier at w = 0.",
        ),
        option(
            "tilt",
            Kind::Float(Range::Any),
            "0.3",
            "Energy difference per unit of w.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::double_well(#{ barrier: 2.0 })",
    build: |o| {
        let (barrier, tilt) = (o.float("barrier")?, o.float("tilt")?);
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let well = |x: f32| x as f64 * x as f64 - 1.0;
            if let Some(g) = grad {
                for (g, w) in g.iter_mut().zip(w) {
                    *g = (4.0 * barrier * *w as f64 * well(*w) + tilt) as f32;
                }
            }
            w.iter()
                .map(|w| barrier * well(*w).powi(2) + tilt * *w as f64)
                .sum()
        };
        Analytic::build(
            o,
            format!("double well, barrier {barrier}, tilt {tilt}"),
            vector(checked_dim(o)?),
            Box::new(energy),
        )
    },
};
