//! The Metropolis-adjusted microcanonical sampler.

use super::adaptation::{
    self, ADAPT, ADAPT_MASS, Adaptation, DT, ENERGY, GRADIENT, MASSES, RANK, find_step,
};
use super::hmc::Hmc;
use super::microcanonical::{Direction, GRADIENTS, rounding};
use super::trajectory::{self, Decided, Outcome};
use super::{Accuracy, Before, ConfiguredSampler, OfTemperature, Sampler};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::engine::{Chains, PerChain, few};
use crate::error::Result;
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) exactly, by microcanonical trajectories that are accepted or rejected.
struct Mams {
    dt: Option<f64>,
    /// Mean length of a trajectory, as a part of √N standard deviations.
    length: f64,
    /// Mean number of its steps, if that is given.
    steps: Option<f64>,
    adaptation: Adaptation,
    /// What brings chains to the typical set.
    hmc: Hmc,
}

/// `sampler::mams`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "mams",
    doc: "Samples exp(-U/T) exactly, by microcanonical trajectories that are accepted or rejected (MAMS).\n\n\
          A point moves at constant speed in a random direction, which the gradient turns, and is accepted with probability min(1, exp(-Δ)), where Δ is the change of U/T and of \
          the logarithm of volume: deterministic, reversible, and exact at any step size (Robnik, Cohn-Gordon & Seljak 2025). Its speed does not depend on the energy. \
          Steps are of the minimal-norm scheme, with two gradients each over all examples. Trajectories have a random length, uniform up to twice the mean.\n\n\
          Burn-in begins with trajectories of sampler::hmc, which find the typical set from anywhere. Then the step size is adapted to `acceptance` by dual averaging, and the variances of the parameters are collected for diagonal masses, as of \
          sampler::hmc. The length is then `length` times √N in units of the standard deviations. `leapfrog` in the sample statistics is the number of gradients of a trajectory, \
          `energy_error` is Δ, and ⟨exp(-Δ)⟩ = 1 (`exp_energy_error`). At the walls of prior::uniform_box the direction is reflected. Needs two parameters or more.",
    arguments: &[],
    options: &[
        option(
            "length",
            Kind::Float(Range::Positive),
            "1.0",
            "Mean length of a trajectory, over √N standard deviations: the distance from the mean at which the chain spends its time.",
        ),
        optional(
            "steps",
            Kind::Float(Range::AtLeast(1.0)),
            "by `length`; 10 until masses are given or adapted",
            "Mean number of steps per trajectory, in the place of `length`.",
        ),
        optional(
            "dt",
            Kind::Float(Range::Positive),
            "found at the start",
            "Distance of a step, in standard deviations where masses are adapted (the first one, if adapted).",
        ),
        option(
            "acceptance",
            Kind::Float(Range::Open01),
            "0.9",
            "Acceptance that the step size is adapted to.",
        ),
        ADAPT,
        ADAPT_MASS,
        RANK,
        MASSES,
    ],
    example: "sampler::mams(#{ acceptance: 0.8 })",
    build: |o| {
        let adaptation = Adaptation::from_options(o, (&[], &["length"]))?;
        let mams = Mams {
            hmc: Hmc::approaching(&adaptation),
            adaptation,
            dt: o.opt_float("dt"),
            length: o.float("length")?,
            steps: o.opt_float("steps"),
        };
        Ok(ConfiguredSampler::new(mams, o))
    },
};

/// Steps of a trajectory where its length is not known.
const STEPS: f64 = 10.0;

/// Steps of a trajectory at most.
const MOST: f64 = 10_000.0;

/// The scalar after those of the adaptation: the mean length of a trajectory, 0 while it is not known.
const LENGTH: usize = adaptation::SCALARS.len();

const HOME: Vector = Vector::Scratch(1);

impl Mams {
    /// Go from where the chains are in a fresh direction; leaves the end points in the parameters and the gradients there.
    fn trajectory(
        &self,
        chains: &mut Chains,
        (dt, counts): (&[f64], &[u64]),
        sub: u16,
    ) -> Result<Vec<Outcome>> {
        let direction = Direction {
            vector: Vector::Scratch(0),
            metric: self.adaptation.metric,
        };
        direction.draw(chains, sub)?;
        chains.copy(GRADIENT, Gradient)?;
        // Only trajectories that count are reported, not those that look for a step size.
        if sub == 0 {
            chains.report_virial(Gradient)?;
        }
        let norms = direction.norms(chains)?;
        let gained = direction.go(chains, (dt, counts), norms)?;
        let start = chains.scalar(ENERGY);
        let energies = chains.engine.energies()?;
        let outcome = |(c, energy): (usize, f64)| {
            let change = (energy - start[c]) / chains.members[c].temperature + gained[c];
            Outcome {
                error: adaptation::relative(change, 1.0),
                energy,
            }
        };
        Ok(energies.into_iter().enumerate().map(outcome).collect())
    }

    /// Usable step sizes, from a first guess.
    fn find_dt(&self, chains: &mut Chains, first: f64) -> Result<Vec<f64>> {
        chains.copy(Params, HOME)?;
        let once = vec![1; chains.len()];
        find_step(chains, first, |chains, dt, trial| {
            chains.copy(GRADIENT, Gradient)?;
            let rounded = rounding(chains)?;
            let outcomes = self.trajectory(chains, (dt, &once), trial)?;
            chains.copy(HOME, Params)?;
            let each = outcomes.iter().zip(rounded);
            Ok(each.map(|(o, rounded)| o.error - rounded).collect())
        })
    }

    /// Begin from the typical set.
    fn begin(&self, chains: &mut Chains) -> Result<()> {
        let dt = match self.dt {
            Some(dt) => vec![dt; chains.len()],
            None => self.find_dt(chains, 0.1)?,
        };
        Adaptation::restart(chains, &dt);
        Ok(())
    }

    /// Mean length of a trajectory where the masses are those of the standard deviations.
    fn whole(&self, chains: &Chains) -> f64 {
        self.length * (chains.dim() as f64).sqrt()
    }

    /// Mean number of steps of a chain's trajectories.
    fn mean_steps(&self, scalars: &[f64]) -> f64 {
        match (self.steps, scalars[LENGTH] > 0.0) {
            (Some(steps), _) => steps,
            (None, true) => scalars[LENGTH] / scalars[DT],
            (None, false) => STEPS,
        }
    }
}

impl Sampler for Mams {
    fn name(&self) -> &'static str {
        "mams"
    }

    fn vectors(&self) -> &'static [&'static str] {
        self.adaptation.vectors
    }

    fn scalars(&self) -> &'static [&'static str] {
        self.adaptation.scalars
    }

    fn scratch(&self) -> usize {
        4 + self.adaptation.scratch()
    }

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::ACCEPTANCE_RATE,
            report::ENERGY_ERROR,
            report::EXP_ENERGY_ERROR,
            report::STEP_SIZE,
            report::DIVERGING,
            report::LEAPFROG,
        ]
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Exact
    }

    fn check(&self, target: &Target) -> Result<()> {
        Direction::check(self.name(), target)?;
        self.adaptation.check(self.name(), target, false)
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.adaptation.init_masses(chains)?;
        chains.engine.gradient()?;
        chains.copy(Gradient, GRADIENT)?;
        Adaptation::note_energies(chains)?;
        match self.adaptation.approaches(chains, 0) {
            true => self.hmc.begin(chains)?,
            false => self.begin(chains)?,
        }
        let known = self.adaptation.first.is_some();
        let length = if known { self.whole(chains) } else { 0.0 };
        (0..chains.len()).for_each(|c| chains.scalars(c)[LENGTH] = length);
        Ok(())
    }

    fn of_temperature(&self) -> OfTemperature {
        self.adaptation.of_temperature()
    }

    fn energy_scalar(&self) -> Option<usize> {
        Some(ENERGY)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        self.adaptation
            .change_temperature(chains, before, Some(GRADIENT))
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        if self.adaptation.approaches(chains, 0) {
            let (outcomes, accept) = self.hmc.approach(chains)?;
            trajectory::report(chains, &outcomes, &accept)?;
            return match self.adaptation.approaches(chains, 1) {
                true => Ok(()),
                false => self.begin(chains),
            };
        }
        chains.copy(Params, HOME)?;
        let (dt, part) = (chains.scalar(DT), chains.uniform(Purpose::Jitter));
        let count = |c: usize, m: &crate::engine::Member| {
            let steps = 2.0 * part[c] * self.mean_steps(m.scalars);
            steps.clamp(1.0, MOST).ceil() as u64
        };
        let members = chains.members.iter().enumerate();
        let counts: Vec<_> = members.map(|(c, m)| count(c, m)).collect();
        let adapts = self.adaptation.step && chains.step < chains.burn_in;
        let rounded = if adapts {
            chains.copy(GRADIENT, Gradient)?;
            rounding(chains)?
        } else {
            Vec::new()
        };
        let outcomes = self.trajectory(chains, (&dt, &counts), 0)?;
        let Decided { accept, .. } = trajectory::decide(chains, &outcomes, HOME)?;
        trajectory::report(chains, &outcomes, &accept)?;
        chains.report_values(report::STEP_SIZE, &dt)?;
        let gradients: Vec<_> = counts
            .iter()
            .map(|n| (GRADIENTS as u64 * n) as f64)
            .collect();
        chains.report_values(report::LEAPFROG, &gradients)?;
        let find = |chains: &mut Chains, first| {
            // Masses are known now, and with them the standard deviations.
            let length = self.whole(chains);
            (0..chains.len()).for_each(|c| chains.scalars(c)[LENGTH] = length);
            self.find_dt(chains, first)
        };
        // Steps that are as good as rounding lets them be need not be shorter.
        let each = outcomes.iter().zip(&rounded).zip(&counts);
        let as_exact = |((o, rounded), n): ((&Outcome, &f64), &u64)| {
            (rounded * (*n as f64).sqrt() - o.error).exp().min(1.0)
        };
        let accept: PerChain<f64> = match adapts {
            true => few(each.map(as_exact)),
            false => accept,
        };
        self.adaptation.after(chains, &accept, find)
    }
}
