//! An anisotropic Gaussian.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked_dim, vector};
use crate::model::deep_linear::LearningCoefficient;
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::gaussian`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "gaussian",
    doc: "An anisotropic Gaussian: U = ½ Σ k_i (w_i - 1)², k spaced geometrically from 1 to `condition`.\n\n\
          Exact: mean 1, variance T/k_i.",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(1.0)),
            "10",
            "Number of parameters.",
        ),
        option(
            "condition",
            Kind::Float(Range::AtLeast(1.0)),
            "10",
            "Ratio of the largest to the smallest curvature.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::gaussian(#{ dim: 4, condition: 100.0 })",
    build: |o| {
        let (dim, condition) = (checked_dim(o)?, o.float("condition")?);
        let k: Vec<f64> = (0..dim).map(|i| stiffness(i, dim, condition)).collect();
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let d = |i: usize| w[i] as f64 - 1.0;
            if let Some(g) = grad {
                g.iter_mut()
                    .enumerate()
                    .for_each(|(i, g)| *g = (k[i] * d(i)) as f32);
            }
            (0..w.len()).map(|i| 0.5 * k[i] * d(i) * d(i)).sum()
        };
        // A regular model: half of its dimension.
        let coefficient = LearningCoefficient {
            lambda: dim as f64 / 2.0,
            multiplicity: 1,
        };
        Analytic::with_coefficient(
            o,
            format!("Gaussian of condition {condition}"),
            vector(dim),
            Box::new(energy),
            Some(coefficient),
        )
    },
};

/// Curvature i of a Gaussian: geometric from 1 to `condition`.
pub fn stiffness(i: usize, dim: usize, condition: f64) -> f64 {
    condition.powf(i as f64 / (dim.max(2) - 1) as f64)
}
