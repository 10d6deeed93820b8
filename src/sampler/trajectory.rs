//! Trajectories that are accepted or rejected as a whole.

use super::adaptation::{ENERGY, GRADIENT};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report;
use crate::engine::{Chains, PerChain, few};
use crate::error::Result;
use crate::rng::Purpose;

/// What one trajectory of a chain did.
pub struct Outcome {
    /// ΔH/T, or what stands in its place; infinite where it is no number.
    pub error: f64,
    /// U at its end.
    pub energy: f64,
}

/// Where chains have decided.
pub struct Decided {
    /// The probability of acceptance.
    pub accept: PerChain<f64>,
    /// Whether the end was accepted.
    pub accepted: PerChain<bool>,
}

/// Accept each trajectory with probability min(1, exp(-error)). Its end is in the parameters, with the gradient there, and the chain was at `home` before.
pub fn decide(chains: &mut Chains, outcomes: &[Outcome], home: Vector) -> Result<Decided> {
    let accept: PerChain<f64> = few(outcomes.iter().map(|o| (-o.error).exp().min(1.0)));
    let uniform = chains.uniform(Purpose::Accept);
    let accepted: PerChain<bool> = few(uniform.iter().zip(&accept).map(|(u, a)| u < a));
    let rejected: PerChain<bool> = few(accepted.iter().map(|a| !a));
    chains.engine.copy(Gradient, GRADIENT, &accepted)?;
    chains.engine.copy(home, Params, &rejected)?;
    for (c, o) in outcomes.iter().enumerate().filter(|(c, _)| accepted[*c]) {
        chains.scalars(c)[ENERGY] = o.energy;
    }
    Ok(Decided { accept, accepted })
}

/// Report what was decided.
pub fn report(chains: &mut Chains, outcomes: &[Outcome], accept: &[f64]) -> Result<()> {
    let mut report = |which, f: &dyn Fn(&Outcome) -> f64| {
        let values: PerChain<f64> = few(outcomes.iter().map(f));
        chains.report_values(which, &values)
    };
    report(report::ENERGY_ERROR, &|o| o.error.clamp(-1000.0, 1000.0))?;
    report(report::EXP_ENERGY_ERROR, &|o| (-o.error).exp())?;
    report(report::DIVERGING, &|o| {
        f64::from(u8::from(o.error >= 1000.0))
    })?;
    chains.report_values(report::ACCEPTANCE_RATE, accept)
}
