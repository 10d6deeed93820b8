//! Isotropic Gaussians side by side: modes of known weight, far apart.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked_dim, vector};
use crate::options::{Entry, Kind, Options, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::gaussian_mixture`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "gaussian_mixture",
    doc: "A mixture of isotropic Gaussians whose means lie on the first axis: U = -ln Σ_k a_k N(w; c_k e_1, σ²), a = `weights` (made to sum to 1), \
          c = `centres`, σ = `sigma`.\n\n\
          Exact: at T = 1 without a prior mode k has the weight a_k, and ∫ e^-U dw = 1. With prior::gaussian(1/τ²) it has a weight ∝ a_k N(c_k; 0, σ² + τ²), \
          and the evidence is ∫ e^-U p(w) dw = (2π(σ² + τ²))^(-N/2) Σ_k a_k exp(-c_k²/2(σ² + τ²)). With prior::uniform_box around all modes the weights are \
          a_k and the evidence is the inverse of its volume.",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(1.0)),
            "2",
            "Number of parameters.",
        ),
        option(
            "weights",
            Kind::Floats(Range::Positive),
            "[0.7, 0.3]",
            "a, the weight of each mode.",
        ),
        option(
            "centres",
            Kind::Floats(Range::Any),
            "[-3, 3]",
            "c, the first coordinate of each mean.",
        ),
        option(
            "sigma",
            Kind::Float(Range::Positive),
            "0.5",
            "σ, the standard deviation of every mode in every direction.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "target(potential::gaussian_mixture(#{ dim: 10 }), #{ prior: prior::gaussian(0.25) })",
    build: |o| {
        let (dim, sigma) = (checked_dim(o)?, o.float("sigma")?);
        let modes = modes(o)?;
        let inverse = sigma.powi(-2);
        let constant = 0.5 * dim as f64 * (std::f64::consts::TAU * sigma * sigma).ln();
        let text = format!("mixture of Gaussians, ln weights and centres {modes:?}, sigma {sigma}");
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let x = f64::from(w[0]);
            let ln =
                |(ln_weight, centre): &(f64, f64)| ln_weight - 0.5 * inverse * (x - centre).powi(2);
            let most = modes.iter().map(ln).fold(f64::NEG_INFINITY, f64::max);
            let (mut sum, mut mean) = (0.0, 0.0);
            for mode in &modes {
                let p = (ln(mode) - most).exp();
                sum += p;
                mean += p * mode.1;
            }
            if let Some(g) = grad {
                for (g, w) in g.iter_mut().zip(w) {
                    *g = (inverse * f64::from(*w)) as f32;
                }
                g[0] = (inverse * (x - mean / sum)) as f32;
            }
            let others: f64 = w[1..].iter().map(|w| f64::from(*w).powi(2)).sum();
            0.5 * inverse * others - most - sum.ln() + constant
        };
        Analytic::build(o, text, vector(dim), Box::new(energy))
    },
};

/// ln of the weight, and the centre, of each mode.
fn modes(o: &Options) -> crate::error::Result<Vec<(f64, f64)>> {
    let weights = o.floats("weights").unwrap_or_default();
    let centres = o.floats("centres").unwrap_or_default();
    anyhow::ensure!(
        !weights.is_empty() && weights.len() == centres.len(),
        "{}: options 'weights' and 'centres' have {} and {} numbers, but must have one per mode each",
        o.owner(),
        weights.len(),
        centres.len()
    );
    let total: f64 = weights.iter().sum();
    let modes = weights.iter().zip(centres);
    Ok(modes.map(|(a, c)| ((a / total).ln(), c)).collect())
}
