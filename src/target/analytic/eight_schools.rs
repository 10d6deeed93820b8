//! Eight schools: the classical hierarchical model.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked};
use crate::model::Layout;
use crate::options::{Entry, Kind, option};
use crate::target::Potential;
use std::sync::Arc;

/// Estimated effects of coaching in the eight schools.
const EFFECT: [f64; 8] = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0];
/// Their standard errors.
const ERROR: [f64; 8] = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0];
/// Scale of the half-Cauchy prior of τ, and standard deviation of the prior of μ.
const PRIOR: f64 = 5.0;

/// `potential::eight_schools`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "eight_schools",
    doc: "The posterior of the eight schools, a hierarchical model of N = 10 parameters, at T = 1.\n\n\
          y_j ~ N(θ_j, σ_j²), θ_j ~ N(μ, τ²), μ ~ N(0, 5²), τ ~ half-Cauchy(0, 5), with y = 28 8 -3 7 -1 1 18 12 and \
          σ = 15 10 16 11 9 11 10 18. The parameters are the tensors `mu`, `log_tau` = ln τ (U has the Jacobian, -ln τ) and `theta`: θ_j \
          itself if `centred`, otherwise the standard normal (θ_j - μ)/τ, `theta_trans` in posteriordb.\n\n\
          Known, by quadrature: μ has mean 4.397 and standard deviation 3.318, τ has mean 3.598, ln τ has mean 0.802, and θ_1 … θ_8 have \
          means 6.212 4.940 3.927 4.757 3.615 4.043 6.297 4.854.\n\n\
          Source: Rubin 1981; Gelman et al., Bayesian Data Analysis, section 5.5. Data and priors are those of eight_schools_centered and \
          eight_schools_noncentered in posteriordb (Magnusson et al. 2024), which samples τ through its logarithm too.",
    arguments: &[],
    options: &[
        option(
            "centred",
            Kind::Bool,
            "false",
            "Whether `theta` holds the effects θ_j themselves (a funnel, hard to sample), or (θ_j - μ)/τ (easy).",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::eight_schools(#{ centred: true })",
    build: |o| {
        let centred = o.bool("centred")?;
        checked(o, 2 + EFFECT.len())?;
        let layout = Layout::new([
            ("mu".to_string(), vec![1]),
            ("log_tau".to_string(), vec![1]),
            ("theta".to_string(), vec![EFFECT.len()]),
        ]);
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let (energy, gradient) = if centred {
                schools::<true>(w)
            } else {
                schools::<false>(w)
            };
            if let Some(g) = grad {
                for (g, exact) in g.iter_mut().zip(&gradient) {
                    *g = *exact as f32;
                }
            }
            energy
        };
        let form = if centred { "centred" } else { "not centred" };
        Analytic::build(
            o,
            format!("eight schools, {form}"),
            layout,
            Box::new(energy),
        )
    },
};

/// Energy and gradient.
fn schools<const CENTRED: bool>(w: &[f32]) -> (f64, [f64; 10]) {
    let (mu, log_tau) = (w[0] as f64, w[1] as f64);
    // ln(1 + τ²/5²) is a function of ln τ that must not overflow.
    let (cauchy, slope) = softplus(2.0 * (log_tau - PRIOR.ln()));
    let mut energy = 0.5 * (mu / PRIOR).powi(2) + cauchy - log_tau;
    let mut gradient = [0.0; 10];
    gradient[0] = mu / (PRIOR * PRIOR);
    gradient[1] = 2.0 * slope - 1.0;
    let tau = log_tau.exp();
    let precision = (-2.0 * log_tau).exp();
    for j in 0..EFFECT.len() {
        let (theta, weight) = (w[2 + j] as f64, ERROR[j].powi(-2));
        if CENTRED {
            let (off, miss) = (theta - mu, theta - EFFECT[j]);
            energy += 0.5 * (precision * off * off + weight * miss * miss) + log_tau;
            gradient[0] -= precision * off;
            gradient[1] += 1.0 - precision * off * off;
            gradient[2 + j] = precision * off + weight * miss;
        } else {
            let miss = mu + tau * theta - EFFECT[j];
            energy += 0.5 * (theta * theta + weight * miss * miss);
            gradient[0] += weight * miss;
            gradient[1] += weight * miss * tau * theta;
            gradient[2 + j] = theta + weight * miss * tau;
        }
    }
    (energy, gradient)
}

/// ln(1 + e^x) and its derivative.
fn softplus(x: f64) -> (f64, f64) {
    let small = (-x.abs()).exp();
    let slope = if x > 0.0 { 1.0 } else { small } / (1.0 + small);
    (x.max(0.0) + small.ln_1p(), slope)
}
