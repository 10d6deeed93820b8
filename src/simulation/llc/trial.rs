//! What is known of one step size of a calibration.

use super::Estimate;
use crate::diagnostic::Heat;

/// What is known of an estimate.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// λ̂ and its standard error.
    pub lambda: f64,
    /// See `lambda`.
    pub mcse: f64,
    /// The virial temperature, set 1, and its standard error.
    pub temperature: f64,
    /// See `temperature`.
    pub temperature_mcse: f64,
    /// Whether the thermometer is undecided.
    pub undecided: bool,
    /// R̂ of the loss.
    pub rhat: f64,
    /// Effective sample sizes of the loss: bulk and tail.
    pub ess: [f64; 2],
    /// Chains, and how many of them failed.
    pub chains: usize,
    /// See `chains`.
    pub failed: usize,
}

impl Found {
    pub(super) fn of(e: &Estimate) -> Self {
        Self {
            lambda: e.lambda,
            mcse: e.mcse,
            temperature: e.virial.temperature,
            temperature_mcse: e.virial.mcse,
            undecided: e.virial.verdict == Heat::Undecided,
            rhat: e.rhat,
            ess: [e.ess_bulk, e.ess_tail],
            chains: e.chains.len(),
            failed: e.failed.len(),
        }
    }
}

/// One step size at one nβ and one γ.
#[derive(Debug, Clone)]
pub struct Trial {
    /// γ.
    pub gamma: f64,
    /// Step size.
    pub step: f64,
    /// nβ.
    pub nbeta: f64,
    /// The estimate; none if every chain failed.
    pub estimate: Option<Found>,
    /// What speaks against it, in words; empty if nothing does.
    pub against: Vec<String>,
}

impl Trial {
    /// All numbers, for a checkpoint; no chain where there is no estimate.
    pub(super) fn numbers(&self) -> [f64; 13] {
        let mut out = [0.0; 13];
        (out[0], out[1], out[12]) = (self.step, self.nbeta, self.gamma);
        if let Some(e) = &self.estimate {
            let undecided = f64::from(u8::from(e.undecided));
            let (chains, failed) = (e.chains as f64, e.failed as f64);
            out[2..12].copy_from_slice(&[
                e.lambda,
                e.mcse,
                e.temperature,
                e.temperature_mcse,
                undecided,
                e.rhat,
                e.ess[0],
                e.ess[1],
                chains,
                failed,
            ]);
        }
        out
    }

    /// What [`Trial::numbers`] gave.
    pub(super) fn of_numbers(x: &[f64; 13]) -> Self {
        let found = Found {
            lambda: x[2],
            mcse: x[3],
            temperature: x[4],
            temperature_mcse: x[5],
            undecided: x[6] > 0.0,
            rhat: x[7],
            ess: [x[8], x[9]],
            chains: x[10] as usize,
            failed: x[11] as usize,
        };
        Self {
            gamma: x[12],
            step: x[0],
            nbeta: x[1],
            estimate: Some(found).filter(|f| f.chains > 0),
            against: Vec::new(),
        }
    }
}
