//! Hybrid (Hamiltonian) Monte Carlo.

use super::adaptation::{self, ADAPT, ADAPT_MASS, Adaptation, DT, ENERGY, LEVELS, MASS, find_step};
use super::gradient::{self, Estimator};
use super::{Accuracy, Before, ConfiguredSampler, Sampler, levels};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::update::{DRAW_MOMENTUM, KICK, KICK_AND_DRIFT, TWICE_KINETIC};
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use std::sync::Arc;

/// Samples exp(-U/T) exactly: velocity-Verlet trajectories, accepted with min(1, exp(-ΔH/T)).
pub(super) struct Hmc {
    pub name: &'static str,
    pub leapfrog: usize,
    pub dt: Option<f64>,
    pub jitter: f64,
    pub gradient: Estimator,
    pub adaptation: Adaptation,
}

/// `sampler::hmc`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "hmc",
    doc: "Samples exp(-U/T) exactly, by hybrid Monte Carlo.\n\n\
          Momenta p ~ N(0, MT), `leapfrog` velocity-Verlet steps of `dt`, accepted with probability min(1, exp(-ΔH/T)); \
          H = ½pᵀM⁻¹p + U, ΔH in double precision. Duane et al. (1987); Zambon et al. (2026), §II.2. One step is one trajectory.\n\n\
          With `batch` or `gradient`, trajectories follow the gradient of a minibatch that is drawn once per trajectory, and are accepted by U over \
          all examples: still exact, but a trajectory that follows another energy is soon rejected (mb-hMC of Zambon et al.).\n\n\
          During burn-in the step size is adapted to `acceptance` by dual averaging (Hoffman & Gelman 2014), and the variances of the \
          parameters are collected in windows of growing length for diagonal masses M_i = T/Var(w_i). Both are frozen afterwards. \
          For an exact sampler ⟨exp(-ΔH/T)⟩ = 1: see `exp_energy_error` in the sample \
          statistics. At the walls of prior::uniform_box a coordinate is reflected and its momentum reversed, which keeps the law. `energy_error` is ΔH/T, cut at ±1000, and `diverging` the \
          share of trajectories that reached the cut: the step is too large where they went. `hamiltonian` is H at the start of a trajectory \
          (`energy` in the files for ArviZ), `bfmi` the Bayesian fraction of missing information of all trajectories of the chain after burn-in \
          (Betancourt 2016): below 0.3 fresh momenta do not carry the chain between levels of the energy, as in funnels.",
    arguments: &[],
    options: &[
        option(
            "leapfrog",
            Kind::Int(Range::Between(1.0, 60_000.0)),
            "10",
            "Velocity-Verlet steps per trajectory.",
        ),
        optional(
            "dt",
            Kind::Float(Range::Positive),
            "found at the start",
            "Step size (the first one, if adapted).",
        ),
        option(
            "acceptance",
            Kind::Float(Range::Open01),
            "0.8",
            "Acceptance that the step size is adapted to.",
        ),
        ADAPT,
        ADAPT_MASS,
        option(
            "jitter",
            Kind::Float(Range::From0To1),
            "0.1",
            "Relative half width of a uniform factor on dt, drawn per trajectory, against resonances.",
        ),
        gradient::BATCH_OR_ALL,
        gradient::GRADIENT_OR_ALL,
    ],
    example: "sampler::hmc(#{ leapfrog: 20, acceptance: 0.9 })",
    build: |o| {
        let hmc = Hmc {
            name: "hmc",
            leapfrog: o.size("leapfrog")?,
            dt: o.opt_float("dt"),
            jitter: o.float("jitter")?,
            gradient: Estimator::or(o, Estimator::FULL)?,
            adaptation: Adaptation::from_options(o)?,
        };
        Ok(ConfiguredSampler::new(hmc, o))
    },
};

// Vectors of the state, after those of the adaptation, and of a step.
const GRADIENT: Vector = Vector::State(adaptation::VECTORS.len());
const MOMENTUM: Vector = Vector::Scratch(0);
const HOME: Vector = Vector::Scratch(1);

/// What one trajectory of a chain did.
struct Outcome {
    /// ΔH/T; infinite when the trajectory diverged.
    error: f64,
    /// U at its end.
    energy: f64,
    /// H at its start.
    level: f64,
    /// (1/N) Σ p²/M at its start and at its end.
    kinetic: [f64; 2],
}

impl Hmc {
    /// Integrate from where the chains are with fresh momenta; leaves the end points in the parameters and the gradients there.
    fn trajectory(
        &self,
        chains: &mut Chains,
        leapfrog: usize,
        dt: &[f64],
        sub: u16,
    ) -> Result<Vec<Outcome>> {
        let n = chains.dim() as f64;
        chains.map_with_noise(
            &DRAW_MOMENTUM,
            &[MOMENTUM, MASS],
            (Purpose::Momentum, sub),
            |_, m| [m.temperature as f32],
        )?;
        match self.gradient.batch() {
            None => chains.copy(GRADIENT, Gradient)?,
            Some(_) => self.gradient.estimate(chains, Purpose::Minibatch, sub)?,
        }
        // Only trajectories that count are reported, not those that look for a step size.
        if sub == 0 {
            chains.report_virial(Gradient)?;
        }
        let before = chains.sum(&TWICE_KINETIC, &[MOMENTUM, MASS])?;
        for i in 0..leapfrog {
            let kick = if i == 0 { 0.5 } else { 1.0 };
            chains.map(
                &KICK_AND_DRIFT,
                &[Params, MOMENTUM, Gradient, MASS],
                |c, _| [(kick * dt[c]) as f32, dt[c] as f32],
            )?;
            // At a wall a coordinate is mirrored and its momentum turned: reversible, and no volume is lost.
            chains.engine.reflect(Some(MOMENTUM))?;
            self.gradient.estimate(chains, Purpose::Minibatch, sub)?;
        }
        chains.map(&KICK, &[MOMENTUM, Gradient], |c, _| [(0.5 * dt[c]) as f32])?;
        let after = chains.sum(&TWICE_KINETIC, &[MOMENTUM, MASS])?;
        if self.gradient.batch().is_some() {
            chains.engine.evaluate()?;
        }
        let energies = chains.engine.energies()?;
        let start = chains.scalar(ENERGY);
        let outcome = |(c, energy): (usize, f64)| {
            let difference = energy + 0.5 * after[c] - start[c] - 0.5 * before[c];
            Outcome {
                error: adaptation::relative(difference, chains.members[c].temperature),
                energy,
                level: start[c] + 0.5 * before[c],
                kinetic: [before[c] / n, after[c] / n],
            }
        };
        Ok(energies.into_iter().enumerate().map(outcome).collect())
    }

    /// Usable step sizes, from a first guess.
    fn find_dt(&self, chains: &mut Chains, first: f64) -> Result<Vec<f64>> {
        chains.copy(Params, HOME)?;
        find_step(chains, first, |chains, dt, trial| {
            let outcomes = self.trajectory(chains, 1, dt, trial)?;
            chains.copy(HOME, Params)?;
            Ok(outcomes.iter().map(|o| o.error).collect())
        })
    }
}

impl Sampler for Hmc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["mass", "warmup_mean", "warmup_m2", "gradient"]
    }

    fn scalars(&self) -> &'static [&'static str] {
        &adaptation::WITH_LEVELS
    }

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::KINETIC,
            report::ACCEPTANCE_RATE,
            report::ENERGY_ERROR,
            report::EXP_ENERGY_ERROR,
            report::STEP_SIZE,
            report::DIVERGING,
            report::HAMILTONIAN,
            report::BFMI,
        ]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        Adaptation::init_masses(chains)?;
        chains.engine.gradient()?;
        chains.copy(Gradient, GRADIENT)?;
        Adaptation::note_energies(chains)?;
        let dt = match self.dt {
            Some(dt) => vec![dt; chains.len()],
            None => self.find_dt(chains, 0.1)?,
        };
        Adaptation::restart(chains, &dt);
        Ok(())
    }

    fn scalars_of_temperature(&self) -> std::ops::Range<usize> {
        adaptation::LEVELS_OF_TEMPERATURE
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Exact
    }

    fn energy_scalar(&self) -> Option<usize> {
        Some(ENERGY)
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        levels::change_temperature(chains, LEVELS, before);
        self.adaptation
            .change_temperature(chains, before, Some(GRADIENT))
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        chains.copy(Params, HOME)?;
        let jitter = chains.uniform(Purpose::Jitter);
        let dt: Vec<_> = chains
            .scalar(DT)
            .iter()
            .zip(jitter)
            .map(|(dt, u)| dt * (1.0 + self.jitter * (2.0 * u - 1.0)))
            .collect();
        let outcomes = self.trajectory(chains, self.leapfrog, &dt, 0)?;
        let accept: Vec<_> = outcomes.iter().map(|o| (-o.error).exp().min(1.0)).collect();
        let uniform = chains.uniform(Purpose::Accept);
        let accepted: Vec<_> = uniform.iter().zip(&accept).map(|(u, a)| u < a).collect();
        let rejected: Vec<_> = accepted.iter().map(|a| !a).collect();
        chains.engine.copy(Gradient, GRADIENT, &accepted)?;
        chains.engine.copy(HOME, Params, &rejected)?;
        for (c, o) in outcomes.iter().enumerate().filter(|(c, _)| accepted[*c]) {
            chains.scalars(c)[ENERGY] = o.energy;
        }
        let hamiltonians: Vec<_> = outcomes.iter().map(|o| o.level).collect();
        let fractions = levels::note(chains, LEVELS, &hamiltonians);
        let mut report = |which, f: &dyn Fn(usize, &Outcome) -> f64| {
            let values: Vec<_> = outcomes.iter().enumerate().map(|(c, o)| f(c, o)).collect();
            chains.report_values(which, &values)
        };
        // The momentum of the state the chain is in now: only then is its mean T.
        report(report::KINETIC, &|c, o| o.kinetic[usize::from(accepted[c])])?;
        report(report::ACCEPTANCE_RATE, &|c, _| accept[c])?;
        report(report::ENERGY_ERROR, &|_, o| o.error.clamp(-1000.0, 1000.0))?;
        report(report::EXP_ENERGY_ERROR, &|_, o| (-o.error).exp())?;
        // That of MALA is ε = δt².
        let squared = self.name == "mala";
        report(report::STEP_SIZE, &|c, _| {
            if squared { dt[c] * dt[c] } else { dt[c] }
        })?;
        report(report::DIVERGING, &|_, o| {
            f64::from(u8::from(o.error >= 1000.0))
        })?;
        report(report::HAMILTONIAN, &|c, _| hamiltonians[c])?;
        report(report::BFMI, &|c, _| fractions[c])?;
        let find = |chains: &mut Chains, first| self.find_dt(chains, first);
        self.adaptation.after(chains, &accept, find)
    }
}
