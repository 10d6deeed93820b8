//! Hybrid (Hamiltonian) Monte Carlo.

use super::adaptation::{
    self, ADAPT, ADAPT_MASS, Adaptation, DT, ENERGY, GRADIENT, LEVELS, MASSES, RANK, find_step,
};
use super::gradient::{self, Estimator};
use super::length::{self, Length};
use super::metric::MASS;
use super::trajectory::{self, Decided};
use super::{Accuracy, Before, ConfiguredSampler, OfTemperature, Sampler, levels};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::engine::{Chains, PerChain, few};
use crate::error::Result;
use crate::kernels::update::{KICK, KICK_AND_DRIFT};
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) exactly: velocity-Verlet trajectories, accepted with min(1, exp(-ΔH/T)).
pub(super) struct Hmc {
    pub name: &'static str,
    pub length: Length,
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
        RANK,
        MASSES,
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
            length: Length::Steps(o.size("leapfrog")? as u64),
            dt: o.opt_float("dt"),
            jitter: o.float("jitter")?,
            gradient: Estimator::or(o, Estimator::FULL)?,
            adaptation: Adaptation::from_options(o, (&[], &levels::SCALARS))?,
        };
        Ok(ConfiguredSampler::new(hmc, o))
    },
};

// Vectors of a step.
const MOMENTUM: Vector = Vector::Scratch(0);
const HOME: Vector = Vector::Scratch(1);

/// What one trajectory of a chain did.
struct Outcome {
    /// Its error and energy.
    end: trajectory::Outcome,
    /// H at its start.
    level: f64,
    /// (1/N) Σ p²/M at its start and at its end.
    kinetic: [f64; 2],
    /// Where it was along the principal direction, from its start on, if that is to be known.
    path: Vec<f64>,
}

/// Step sizes, numbers of steps, and what came of them.
type Proposed = (PerChain<f64>, PerChain<u64>, PerChain<Outcome>);

impl Hmc {
    /// Go `counts[c]` steps of `dt[c]` from where the chains are with fresh momenta; leaves the end points in the parameters and the gradients there.
    fn trajectory(
        &self,
        chains: &mut Chains,
        (dt, counts): (&[f64], &[u64]),
        sub: u16,
    ) -> Result<PerChain<Outcome>> {
        let (n, metric) = (chains.dim() as f64, self.adaptation.metric);
        metric.draw(chains, MOMENTUM, (Purpose::Momentum, sub), |t| t)?;
        match self.gradient.batch() {
            None => chains.copy(GRADIENT, Gradient)?,
            Some(_) => self.gradient.estimate(chains, Purpose::Minibatch, sub)?,
        }
        // Only trajectories that count are reported, not those that look for a step size.
        if sub == 0 {
            chains.report_virial(Gradient)?;
        }
        let before = metric.product(chains, MOMENTUM, MOMENTUM)?;
        let mut paths = chains.each(|_| Vec::new());
        let follows = sub == 0 && self.learns(chains);
        if follows {
            let at = length::coordinate(chains, &metric)?;
            paths = few(at.into_iter().map(|x| vec![x]));
        }
        for i in 0..counts.iter().copied().max().unwrap_or(0) {
            let kick = if i == 0 { 0.5 } else { 1.0 };
            let step = |c: usize| if i < counts[c] { dt[c] } else { 0.0 };
            chains.map(
                &KICK_AND_DRIFT,
                &[Params, MOMENTUM, Gradient, MASS],
                |c, _| [(kick * step(c)) as f32, step(c) as f32],
            )?;
            metric.drift(chains, MOMENTUM, step)?;
            // At a wall a coordinate is mirrored and its momentum turned: reversible, and no volume is lost.
            chains.engine.reflect(Some(MOMENTUM))?;
            if follows {
                let at = length::coordinate(chains, &metric)?;
                let all = paths.iter_mut().zip(at).zip(counts);
                let going = all.filter(|(_, count)| i < **count);
                going.for_each(|((path, x), _)| path.push(x));
            }
            self.gradient.estimate(chains, Purpose::Minibatch, sub)?;
        }
        chains.map(&KICK, &[MOMENTUM, Gradient], |c, _| [(0.5 * dt[c]) as f32])?;
        let after = metric.product(chains, MOMENTUM, MOMENTUM)?;
        if self.gradient.batch().is_some() {
            chains.engine.evaluate()?;
        }
        let energies = chains.engine.energies()?;
        let start = chains.scalar(ENERGY);
        let mut outcome = |(c, energy): (usize, f64)| {
            let difference = energy + 0.5 * after[c] - start[c] - 0.5 * before[c];
            Outcome {
                end: trajectory::Outcome {
                    error: adaptation::relative(difference, chains.members[c].temperature),
                    energy,
                },
                level: start[c] + 0.5 * before[c],
                kinetic: [before[c] / n, after[c] / n],
                path: std::mem::take(&mut paths[c]),
            }
        };
        Ok(few(energies.into_iter().enumerate().map(&mut outcome)))
    }

    /// What brings chains to the typical set for samplers that cannot get there themselves, as those whose speed is the same wherever they are.
    pub fn approaching(adaptation: &Adaptation) -> Self {
        Self {
            name: "hmc",
            length: Length::Steps(10),
            dt: None,
            jitter: 0.1,
            gradient: Estimator::FULL,
            adaptation: adaptation.to(0.8),
        }
    }

    /// Begin to approach.
    pub fn begin(&self, chains: &mut Chains) -> Result<()> {
        let dt = self.find_dt(chains, 0.1)?;
        Adaptation::restart(chains, &dt);
        Ok(())
    }

    /// A step of the approach, its size and its gradients reported; what the trajectories did, and their probabilities of acceptance.
    pub fn approach(
        &self,
        chains: &mut Chains,
    ) -> Result<(PerChain<trajectory::Outcome>, PerChain<f64>)> {
        let (dt, counts, outcomes) = self.proposed(chains)?;
        let ends: PerChain<_> = few(outcomes.into_iter().map(|o| o.end));
        let Decided { accept, .. } = trajectory::decide(chains, &ends, HOME)?;
        self.adaptation.learn_step(chains, &accept);
        chains.report_values(report::STEP_SIZE, &dt)?;
        let gradients: Vec<_> = counts.iter().map(|n| *n as f64).collect();
        chains.report_values(report::LEAPFROG, &gradients)?;
        Ok((ends, accept))
    }

    /// A trajectory from where the chains are, which is in `HOME` afterwards, with its step sizes and their numbers.
    fn proposed(&self, chains: &mut Chains) -> Result<Proposed> {
        chains.copy(Params, HOME)?;
        let jitter = chains.uniform(Purpose::Jitter);
        let both = chains.scalar(DT).into_iter().zip(jitter);
        let dt: PerChain<f64> = few(both.map(|(dt, u)| dt * (1.0 + self.jitter * (2.0 * u - 1.0))));
        let counts = self.length.counts(chains, self.learns(chains));
        let outcomes = self.trajectory(chains, (&dt, &counts), 0)?;
        Ok((dt, counts, outcomes))
    }

    /// Whether the length of trajectories is being learnt.
    fn learns(&self, chains: &Chains) -> bool {
        let learnt = self.length == Length::Learnt;
        learnt && self.adaptation.step && chains.step < chains.burn_in
    }

    /// Usable step sizes, from a first guess.
    fn find_dt(&self, chains: &mut Chains, first: f64) -> Result<Vec<f64>> {
        chains.copy(Params, HOME)?;
        let once = vec![1; chains.len()];
        find_step(chains, first, |chains, dt, trial| {
            let outcomes = self.trajectory(chains, (dt, &once), trial)?;
            chains.copy(HOME, Params)?;
            Ok(outcomes.iter().map(|o| o.end.error).collect())
        })
    }
}

impl Sampler for Hmc {
    fn name(&self) -> &'static str {
        self.name
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

    fn check(&self, target: &Target) -> Result<()> {
        let minibatches = self.gradient.batch().is_some();
        self.adaptation.check(self.name, target, minibatches)
    }

    fn info(&self) -> &'static [Report] {
        const ALL: [Report; 10] = [
            report::VIRIAL,
            report::KINETIC,
            report::ACCEPTANCE_RATE,
            report::ENERGY_ERROR,
            report::EXP_ENERGY_ERROR,
            report::STEP_SIZE,
            report::DIVERGING,
            report::HAMILTONIAN,
            report::BFMI,
            report::LEAPFROG,
        ];
        match self.length {
            Length::Steps(_) => &ALL[..9],
            Length::Learnt => &ALL,
        }
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.adaptation.init_masses(chains)?;
        chains.engine.gradient()?;
        chains.copy(Gradient, GRADIENT)?;
        Adaptation::note_energies(chains)?;
        let dt = match self.dt {
            Some(dt) => vec![dt; chains.len()],
            None => self.find_dt(chains, 0.1)?,
        };
        Adaptation::restart(chains, &dt);
        match self.length {
            Length::Steps(_) => Ok(()),
            Length::Learnt => length::init(chains, &self.adaptation.metric),
        }
    }

    fn of_temperature(&self) -> OfTemperature {
        let mut out = self.adaptation.of_temperature();
        if self.length == Length::Learnt {
            out.learning.extend(length::PLACES);
        }
        out
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
        let (dt, counts, mut outcomes) = self.proposed(chains)?;
        if self.learns(chains) {
            let accept = |o: &Outcome| (-o.end.error).exp().min(1.0);
            let accept: Vec<_> = outcomes.iter().map(accept).collect();
            let paths: Vec<_> = outcomes
                .iter_mut()
                .map(|o| std::mem::take(&mut o.path))
                .collect();
            let metric = &self.adaptation.metric;
            length::learn(chains, metric, HOME, (&paths, &accept))?;
        }
        let levels: PerChain<f64> = few(outcomes.iter().map(|o| o.level));
        let kinetic: PerChain<[f64; 2]> = few(outcomes.iter().map(|o| o.kinetic));
        let ends: PerChain<_> = few(outcomes.into_iter().map(|o| o.end));
        let Decided { accept, accepted } = trajectory::decide(chains, &ends, HOME)?;
        trajectory::report(chains, &ends, &accept)?;
        let fractions = levels::note(chains, LEVELS, &levels);
        // The momentum of the state the chain is in now: only then is its mean T.
        let now = kinetic.iter().zip(&accepted);
        let now: PerChain<f64> = few(now.map(|(k, accepted)| k[usize::from(*accepted)]));
        chains.report_values(report::KINETIC, &now)?;
        // That of MALA is ε = δt².
        let power = if self.name == "mala" { 2 } else { 1 };
        let steps: PerChain<f64> = few(dt.iter().map(|dt| dt.powi(power)));
        chains.report_values(report::STEP_SIZE, &steps)?;
        chains.report_values(report::HAMILTONIAN, &levels)?;
        chains.report_values(report::BFMI, &fractions)?;
        if self.length == Length::Learnt {
            let counts: Vec<_> = counts.iter().map(|n| *n as f64).collect();
            chains.report_values(report::LEAPFROG, &counts)?;
        }
        let find = |chains: &mut Chains, first| {
            if self.length == Length::Learnt {
                length::restart(chains, &self.adaptation.metric)?;
            }
            self.find_dt(chains, first)
        };
        self.adaptation.after(chains, &accept, find)
    }
}
