//! Random-walk Metropolis.

use super::adaptation::{self, Adaptation, DT, ENERGY, find_step};
use super::{Accuracy, Before, ConfiguredSampler, OfTemperature, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use std::sync::Arc;

/// Samples exp(-U/T) exactly: a random step, accepted with min(1, exp(-ΔU/T)).
struct Metropolis {
    sigma: Option<f64>,
    adaptation: Adaptation,
    thermometer: u64,
}

/// `sampler::metropolis`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "metropolis",
    doc: "Samples exp(-U/T) exactly, by a random walk: proposes `w + σ η`, accepted with probability min(1, exp(-ΔU/T)).\n\n\
          Metropolis et al. (1953); Iwagaki & Watanabe, §2.4. U is computed over all examples, in double precision; no gradient is needed, but for \
          the virial thermometer, which takes one every `thermometer` steps and holds its last value in between.",
    arguments: &[],
    options: &[
        optional(
            "sigma",
            Kind::Float(Range::Positive),
            "adapted during burn-in",
            "σ, the standard deviation of a proposal, per parameter; fixed if it is given.",
        ),
        option(
            "acceptance",
            Kind::Float(Range::Open01),
            "0.234",
            "Acceptance that σ is adapted to; 0.234 is best in high dimension (Roberts, Gelman & Gilks 1997).",
        ),
        option(
            "thermometer",
            Kind::Int(Range::AtLeast(1.0)),
            "50",
            "Steps between two gradients for the virial thermometer.",
        ),
    ],
    example: "sampler::metropolis(#{ sigma: 0.001 })",
    build: |o| {
        let sigma = o.opt_float("sigma");
        let metropolis = Metropolis {
            sigma,
            adaptation: Adaptation::of_step(
                o.float("acceptance")?,
                sigma.is_none(),
                &["virial", "virial_scale"],
            ),
            thermometer: o.int("thermometer")?,
        };
        Ok(ConfiguredSampler::new(metropolis, o))
    },
};

/// Scalars of the state, after those of the adaptation, whose step size is σ: the virial, and its scale.
const VIRIAL: usize = adaptation::SCALARS.len();

const HOME: Vector = Vector::Scratch(0);

kernel! {
    /// `w ← w + sigma·η`.
    PROPOSE = metropolis_propose(w; ; eta; sigma) {
        w += sigma * eta;
    }
}

impl Metropolis {
    /// Make a proposal; leaves it in the parameters, and where the chains were in `HOME`. Returns U there, and ΔU/T.
    fn propose(&self, chains: &mut Chains, sigma: &[f64], sub: u16) -> Result<Vec<(f64, f64)>> {
        chains.copy(Params, HOME)?;
        let noise = (Purpose::Proposal, sub);
        chains.map_with_noise(&PROPOSE, &[Params], noise, |c, _| [sigma[c] as f32])?;
        chains.engine.evaluate()?;
        let before = chains.scalar(ENERGY);
        let error = |(c, energy): (usize, f64)| {
            let difference = energy - before[c];
            (
                energy,
                adaptation::relative(difference, chains.members[c].temperature),
            )
        };
        Ok(chains
            .engine
            .energies()?
            .into_iter()
            .enumerate()
            .map(error)
            .collect())
    }
}

impl Sampler for Metropolis {
    fn name(&self) -> &'static str {
        "metropolis"
    }

    fn scalars(&self) -> &'static [&'static str] {
        self.adaptation.scalars
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL, report::ACCEPTANCE_RATE, report::STEP_SIZE]
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        chains.engine.evaluate()?;
        Adaptation::note_energies(chains)?;
        let sigma = match self.sigma {
            Some(sigma) => vec![sigma; chains.len()],
            None => find_step(chains, 0.01, |chains, sigma, trial| {
                let proposed = self.propose(chains, sigma, trial)?;
                chains.copy(HOME, Params)?;
                Ok(proposed.into_iter().map(|(_, error)| error).collect())
            })?,
        };
        Adaptation::restart(chains, &sigma);
        Ok(())
    }

    fn of_temperature(&self) -> OfTemperature {
        // The virial too: until it is measured again, it is that of a draw at this temperature.
        self.adaptation.of_temperature()
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Exact
    }

    fn energy_scalar(&self) -> Option<usize> {
        Some(ENERGY)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        self.adaptation.change_temperature(chains, before, None)
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        if chains.step.is_multiple_of(self.thermometer) {
            chains.engine.gradient()?;
            for (c, [virial, scale]) in chains.virial(Gradient)?.into_iter().enumerate() {
                let kept = chains.scalars(c);
                (kept[VIRIAL], kept[VIRIAL + 1]) = (virial, scale);
            }
        }
        let sigma = chains.scalar(DT);
        let proposed = self.propose(chains, &sigma, 0)?;
        let accept: Vec<_> = proposed.iter().map(|(_, e)| (-e).exp().min(1.0)).collect();
        let uniform = chains.uniform(Purpose::Accept);
        let rejected: Vec<_> = uniform.iter().zip(&accept).map(|(u, a)| u >= a).collect();
        chains.engine.copy(HOME, Params, &rejected)?;
        for (c, (energy, _)) in proposed.iter().enumerate().filter(|(c, _)| !rejected[*c]) {
            chains.scalars(c)[ENERGY] = *energy;
        }
        chains.report_scalar(report::VIRIAL, VIRIAL)?;
        if chains.slots.find(report::VIRIAL_SCALE).is_some() {
            chains.report_scalar(report::VIRIAL_SCALE, VIRIAL + 1)?;
        }
        chains.report_values(report::ACCEPTANCE_RATE, &accept)?;
        chains.report_values(report::STEP_SIZE, &sigma)?;
        self.adaptation
            .after(chains, &accept, |_, _| Ok(Vec::new()))
    }
}
