//! Hybrid (Hamiltonian) Monte Carlo with the full-batch gradient.

use super::{Configured, Sampler, configured};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{
    DRAW_MOMENTUM, FILL, KICK, KICK_AND_DRIFT, TOTAL, TWICE_KINETIC, WELFORD,
};
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use std::sync::Arc;

/// Samples exp(-U/T) exactly: velocity-Verlet trajectories, accepted with min(1, exp(-ΔH/T)).
struct Hmc {
    leapfrog: usize,
    dt: Option<f64>,
    acceptance: f64,
    adapt: bool,
    adapt_mass: bool,
    jitter: f64,
}

/// `sampler::hmc`.
pub const ENTRY: Entry<Arc<Configured>> = Entry {
    name: "hmc",
    doc: "Samples exp(-U/T) exactly, by hybrid Monte Carlo with the full-batch gradient.\n\n\
          Momenta p ~ N(0, MT), `leapfrog` velocity-Verlet steps of `dt`, accepted with probability min(1, exp(-ΔH/T)); \
          H = ½pᵀM⁻¹p + U, ΔH in double precision. Duane et al. (1987); Zambon et al. (2026), §II.2. One step is one trajectory.\n\n\
          During burn-in the step size is adapted to `acceptance` by dual averaging (Hoffman & Gelman 2014) and, between 15 % and 75 % of \
          burn-in, the variances of the parameters are collected for diagonal masses M_i = T/Var(w_i). Both are frozen afterwards. \
          For an exact sampler ⟨exp(-ΔH/T)⟩ = 1: see `exp_energy_error` in the sample \
          statistics (not with hard walls: a trajectory that ends outside counts 0). `energy_error` is ΔH/T, cut at ±1000.",
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
        option(
            "adapt",
            Kind::Bool,
            "true",
            "Adapt the step size during burn-in.",
        ),
        option(
            "adapt_mass",
            Kind::Bool,
            "true",
            "Adapt the masses during burn-in, if it has at least 50 trajectories and the step size is adapted.",
        ),
        option(
            "jitter",
            Kind::Float(Range::From0To1),
            "0.1",
            "Relative half width of a uniform factor on dt, drawn per trajectory, against resonances.",
        ),
    ],
    example: "sampler::hmc(#{ leapfrog: 20, acceptance: 0.9 })",
    build: |o| {
        let hmc = Hmc {
            leapfrog: o.size("leapfrog")?,
            dt: o.opt_float("dt"),
            acceptance: o.float("acceptance")?,
            adapt: o.bool("adapt")?,
            adapt_mass: o.bool("adapt_mass")? && o.bool("adapt")?,
            jitter: o.float("jitter")?,
        };
        Ok(configured(hmc, o))
    },
};

// Scalars of the state.
const DT: usize = 0;
const ENERGY: usize = 1;
const LOG_MEAN: usize = 2;
const H_BAR: usize = 3;
const MU: usize = 4;
const COUNT: usize = 5;
const COLLECTED: usize = 6;

// Vectors of the state, and of a step.
const MASS: Vector = Vector::State(0);
const GRADIENT: Vector = Vector::State(1);
const MEAN: Vector = Vector::State(2);
const M2: Vector = Vector::State(3);
const MOMENTUM: Vector = Vector::Scratch(0);
const HOME: Vector = Vector::Scratch(1);

kernel! {
    /// Masses T/Var(w), with the variances shrunk towards their mean as five pseudo-observations would.
    SET_MASS = hmc_set_mass(mass; m2; ; own, pull, temperature, on) {
        mass = choose(on > 0.0, temperature / (own * m2 + pull), mass);
    }
}

/// What one trajectory of a chain did.
struct Outcome {
    /// ΔH/T; infinite when the trajectory diverged.
    error: f64,
    /// U at its end.
    energy: f64,
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
        chains.copy(GRADIENT, Gradient)?;
        let before = chains.sum(&TWICE_KINETIC, &[MOMENTUM, MASS])?;
        for i in 0..leapfrog {
            let kick = if i == 0 { 0.5 } else { 1.0 };
            chains.map(
                &KICK_AND_DRIFT,
                &[Params, MOMENTUM, Gradient, MASS],
                |c, _| [(kick * dt[c]) as f32, dt[c] as f32],
            )?;
            chains.engine.gradient()?;
        }
        chains.map(&KICK, &[MOMENTUM, Gradient], |c, _| [(0.5 * dt[c]) as f32])?;
        let after = chains.sum(&TWICE_KINETIC, &[MOMENTUM, MASS])?;
        let energies = chains.engine.energies()?;
        let start = chains.scalar(ENERGY);
        let outcome = |(c, energy): (usize, f64)| {
            let difference = energy + 0.5 * after[c] - start[c] - 0.5 * before[c];
            let error = difference / chains.members[c].temperature;
            Outcome {
                // A trajectory that ran into NaN or a wall is one of infinite energy: rejected, and worth exp(-∞) = 0.
                error: if error.is_nan() { f64::INFINITY } else { error },
                energy,
                kinetic: [before[c] / n, after[c] / n],
            }
        };
        Ok(energies.into_iter().enumerate().map(outcome).collect())
    }

    /// From each dt, double or halve it until a single step's acceptance crosses one half.
    fn find_dt(&self, chains: &mut Chains, first: f64) -> Result<Vec<f64>> {
        let mut dt = vec![first; chains.len()];
        let mut direction = vec![0.0; chains.len()];
        let mut found = vec![false; chains.len()];
        chains.copy(Params, HOME)?;
        for sub in 1..60 {
            let outcomes = self.trajectory(chains, 1, &dt, sub)?;
            chains.copy(HOME, Params)?;
            for (c, outcome) in outcomes.iter().enumerate() {
                if found[c] {
                    continue;
                }
                let wanted = if outcome.error < std::f64::consts::LN_2 {
                    1.0
                } else {
                    -1.0
                };
                if direction[c] == 0.0 {
                    direction[c] = wanted;
                }
                found[c] = wanted != direction[c];
                if !found[c] {
                    dt[c] *= 2f64.powf(wanted);
                } else if wanted < 0.0 {
                    dt[c] /= 2.0;
                }
            }
            if found.iter().all(|f| *f) {
                break;
            }
        }
        for c in (0..chains.len()).filter(|c| !found[*c]) {
            chains.fail(c, "no usable step size was found");
        }
        Ok(dt)
    }

    fn restart_averaging(s: &mut [f64], dt: f64) {
        s[DT] = dt;
        s[LOG_MEAN] = dt.ln();
        s[MU] = (10.0 * dt).ln();
        s[H_BAR] = 0.0;
        s[COUNT] = 0.0;
    }

    /// Dual averaging (Hoffman & Gelman 2014, §3.2.1) with their constants.
    fn adapt_step(&self, s: &mut [f64], accept: f64) {
        s[COUNT] += 1.0;
        let m = s[COUNT];
        let eta = 1.0 / (m + 10.0);
        s[H_BAR] = (1.0 - eta) * s[H_BAR] + eta * (self.acceptance - accept);
        let log_dt = s[MU] - m.sqrt() / 0.05 * s[H_BAR];
        let weight = m.powf(-0.75);
        s[LOG_MEAN] = weight * log_dt + (1.0 - weight) * s[LOG_MEAN];
        s[DT] = log_dt.exp();
    }

    fn set_masses(chains: &mut Chains) -> Result<()> {
        let size = chains.dim() as f64;
        let means = chains.sum(&TOTAL, &[M2])?;
        let counts = chains.scalar(COLLECTED);
        chains.map(&SET_MASS, &[MASS, M2], |c, m| {
            let n = counts[c];
            let mean = means[c] / size / (n - 1.0);
            let own = n / (n - 1.0) / (n + 5.0);
            let on = if mean > 0.0 { 1.0 } else { 0.0 };
            [
                own as f32,
                (5.0 * mean / (n + 5.0)) as f32,
                m.temperature as f32,
                on,
            ]
        })
    }

    fn adapt(&self, chains: &mut Chains, accept: &[f64]) -> Result<()> {
        let (warm, done) = (chains.burn_in, chains.step + 1);
        if done > warm || !self.adapt {
            return Ok(());
        }
        for (c, accept) in accept.iter().enumerate() {
            self.adapt_step(chains.scalars(c), *accept);
        }
        if self.adapt_mass && warm >= 50 {
            let (first, last) = (warm * 15 / 100, warm * 75 / 100);
            if (first..last).contains(&done) {
                (0..chains.len()).for_each(|c| chains.scalars(c)[COLLECTED] += 1.0);
                let counts = chains.scalar(COLLECTED);
                chains.map(&WELFORD, &[MEAN, M2, Params], |c, _| {
                    [1.0 / counts[c] as f32]
                })?;
            } else if done == last {
                Self::set_masses(chains)?;
                // The new masses make every frequency about 1.
                let dt = self.find_dt(chains, 0.1)?;
                for (c, dt) in dt.iter().enumerate() {
                    Self::restart_averaging(chains.scalars(c), *dt);
                }
            }
        }
        if done == warm {
            for c in 0..chains.len() {
                let s = chains.scalars(c);
                s[DT] = s[LOG_MEAN].exp();
            }
        }
        Ok(())
    }
}

impl Sampler for Hmc {
    fn name(&self) -> &'static str {
        "hmc"
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["mass", "gradient", "warmup_mean", "warmup_m2"]
    }

    fn scalars(&self) -> &'static [&'static str] {
        &[
            "dt",
            "energy",
            "log_mean_dt",
            "h_bar",
            "mu",
            "count",
            "collected",
        ]
    }

    fn info(&self) -> &'static [&'static str] {
        &[
            "virial",
            "kinetic",
            "acceptance_rate",
            "energy_error",
            "exp_energy_error",
            "step_size",
            "diverging",
        ]
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        chains.map(&FILL, &[MASS], |_, _| [1.0])?;
        chains.engine.gradient()?;
        chains.copy(Gradient, GRADIENT)?;
        for (c, energy) in chains.engine.energies()?.into_iter().enumerate() {
            chains.scalars(c)[ENERGY] = energy;
            if !energy.is_finite() {
                chains.fail(c, format!("the energy at its starting point is {energy}"));
            }
        }
        let dt = match self.dt {
            Some(dt) => vec![dt; chains.len()],
            None => self.find_dt(chains, 0.1)?,
        };
        for (c, dt) in dt.iter().enumerate() {
            Self::restart_averaging(chains.scalars(c), *dt);
        }
        Ok(())
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
        let accept: Vec<_> = outcomes
            .iter()
            .map(|o| {
                if o.error.is_finite() {
                    (-o.error).exp().min(1.0)
                } else {
                    0.0
                }
            })
            .collect();
        let uniform = chains.uniform(Purpose::Accept);
        let accepted: Vec<_> = uniform.iter().zip(&accept).map(|(u, a)| u < a).collect();
        let rejected: Vec<_> = accepted.iter().map(|a| !a).collect();
        chains.engine.copy(Gradient, GRADIENT, &accepted)?;
        chains.engine.copy(HOME, Params, &rejected)?;
        for (c, o) in outcomes.iter().enumerate().filter(|(c, _)| accepted[*c]) {
            chains.scalars(c)[ENERGY] = o.energy;
        }
        chains.report_virial(0, GRADIENT)?;
        let mut report = |slot, f: &dyn Fn(usize, &Outcome) -> f64| {
            let values: Vec<_> = outcomes.iter().enumerate().map(|(c, o)| f(c, o)).collect();
            chains.engine.report(slot, &values)
        };
        // The momentum of the state the chain is in now: only then is its mean T.
        report(1, &|c, o| o.kinetic[usize::from(accepted[c])])?;
        report(2, &|c, _| accept[c])?;
        report(3, &|_, o| o.error.clamp(-1000.0, 1000.0))?;
        report(4, &|_, o| (-o.error).exp())?;
        report(5, &|c, _| dt[c])?;
        report(6, &|_, o| f64::from(u8::from(o.error >= 1000.0)))?;
        self.adapt(chains, &accept)
    }
}
