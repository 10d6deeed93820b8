//! Hybrid (Hamiltonian) Monte Carlo with the full-batch gradient.

use super::{Chain, Configured, Sampler, configured};
use crate::error::{Result, chain_failed};
use crate::kernels::update::{self, welford};
use crate::options::{Entry, Kind, Range, option, optional};
use crate::rng::Purpose;
use crate::target::{Target, Workspace};
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
          statistics (not with hard walls, which end trajectories). `energy_error` is ΔH/T, cut at ±1000.",
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

// Vectors of the state.
const MASS: usize = 0;
const GRADIENT: usize = 1;
const M2: usize = 3;

/// What one trajectory did.
struct Outcome {
    /// ΔH/T; infinite or NaN when the trajectory diverged.
    error: f64,
    /// U at its end.
    energy: f64,
    /// (1/N) Σ p²/M at its start and at its end.
    kinetic: [f64; 2],
}

impl Hmc {
    /// Integrate from the chain's point with fresh momenta; leaves the end point in `chain.w` and the gradient there in `grad`.
    fn trajectory(
        &self,
        chain: &mut Chain,
        target: &Target,
        work: &mut Workspace,
        (leapfrog, dt, sub): (usize, f64, u16),
        momentum: &mut [f32],
        grad: &mut [f32],
    ) -> Result<Outcome> {
        let (n, t) = (chain.w.len() as f64, chain.temperature);
        let mass = &*chain.vectors[MASS];
        update::draw_momentum(
            momentum,
            mass,
            t as f32,
            &Chain::stream(chain, Purpose::Momentum).sub_stream(sub),
        );
        grad.copy_from_slice(chain.vectors[GRADIENT]);
        let before = update::twice_kinetic(momentum, mass);
        let start = chain.scalars[ENERGY] + 0.5 * before;
        let mut energy = f64::NAN;
        for i in 0..leapfrog {
            let kick = if i == 0 { 0.5 * dt } else { dt };
            update::kick_and_drift(chain.w, momentum, grad, mass, kick as f32, dt as f32);
            energy = target.energies_and_gradient(chain.w, grad, work)?.total;
            if !energy.is_finite() {
                break;
            }
        }
        update::kick(momentum, grad, (0.5 * dt) as f32);
        let after = update::twice_kinetic(momentum, mass);
        let error = (energy + 0.5 * after - start) / t;
        // A trajectory that ran into NaN or a wall is one of infinite energy: rejected, and worth exp(-∞) = 0.
        let error = if error.is_nan() { f64::INFINITY } else { error };
        Ok(Outcome {
            error,
            energy,
            kinetic: [before / n, after / n],
        })
    }

    /// Double or halve dt from the current point until a single step's acceptance crosses one half.
    fn find_dt(
        &self,
        chain: &mut Chain,
        target: &Target,
        work: &mut Workspace,
        mut dt: f64,
    ) -> Result<f64> {
        let n = chain.w.len();
        let home = chain.w.to_vec();
        let (mut momentum, mut grad) = (vec![0.0; n], vec![0.0; n]);
        let mut direction = 0.0;
        for sub in 1..60 {
            let outcome =
                self.trajectory(chain, target, work, (1, dt, sub), &mut momentum, &mut grad)?;
            chain.w.copy_from_slice(&home);
            let wanted = if outcome.error < std::f64::consts::LN_2 {
                1.0
            } else {
                -1.0
            };
            if direction == 0.0 {
                direction = wanted;
            } else if wanted != direction {
                return Ok(if direction > 0.0 { dt / 2.0 } else { dt });
            }
            dt *= 2f64.powf(direction);
        }
        chain_failed("no usable step size was found")
    }

    fn restart_averaging(chain: &mut Chain, dt: f64) {
        chain.scalars[DT] = dt;
        chain.scalars[LOG_MEAN] = dt.ln();
        chain.scalars[MU] = (10.0 * dt).ln();
        chain.scalars[H_BAR] = 0.0;
        chain.scalars[COUNT] = 0.0;
    }

    /// Dual averaging (Hoffman & Gelman 2014, §3.2.1) with their constants.
    fn adapt_step(&self, chain: &mut Chain, accept: f64) {
        let s = &mut chain.scalars;
        s[COUNT] += 1.0;
        let m = s[COUNT];
        let eta = 1.0 / (m + 10.0);
        s[H_BAR] = (1.0 - eta) * s[H_BAR] + eta * (self.acceptance - accept);
        let log_dt = s[MU] - m.sqrt() / 0.05 * s[H_BAR];
        let weight = m.powf(-0.75);
        s[LOG_MEAN] = weight * log_dt + (1.0 - weight) * s[LOG_MEAN];
        s[DT] = log_dt.exp();
    }

    /// Masses T/Var(w), with the variances shrunk towards their mean as five pseudo-observations would.
    fn set_masses(chain: &mut Chain) {
        let (n, t) = (chain.scalars[COLLECTED], chain.temperature);
        let variance = |m2: f32| m2 as f64 / (n - 1.0);
        let mean = chain.vectors[M2]
            .iter()
            .map(|m2| variance(*m2))
            .sum::<f64>()
            / chain.w.len() as f64;
        if mean <= 0.0 || mean.is_nan() {
            return;
        }
        for i in 0..chain.w.len() {
            let shrunk = (n * variance(chain.vectors[M2][i]) + 5.0 * mean) / (n + 5.0);
            chain.vectors[MASS][i] = (t / shrunk) as f32;
        }
    }

    fn adapt(
        &self,
        chain: &mut Chain,
        accept: f64,
        target: &Target,
        work: &mut Workspace,
    ) -> Result<()> {
        let (warm, done) = (chain.burn_in, chain.step + 1);
        if done > warm {
            return Ok(());
        }
        if self.adapt {
            self.adapt_step(chain, accept);
        }
        if self.adapt_mass && warm >= 50 {
            let (first, last) = (warm * 15 / 100, warm * 75 / 100);
            if (first..last).contains(&done) {
                chain.scalars[COLLECTED] += 1.0;
                let count = chain.scalars[COLLECTED] as f32;
                let [_, _, mean, m2] = &mut chain.vectors[..] else {
                    unreachable!("four vectors")
                };
                welford(mean, m2, chain.w, count);
            } else if done == last {
                Self::set_masses(chain);
                // The new masses make every frequency about 1.
                let dt = self.find_dt(chain, target, work, 0.1)?;
                Self::restart_averaging(chain, dt);
            }
        }
        if self.adapt && done == warm {
            chain.scalars[DT] = chain.scalars[LOG_MEAN].exp();
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

    fn init(&self, chain: &mut Chain, target: &Target, work: &mut Workspace) -> Result<()> {
        chain.vectors[MASS].fill(1.0);
        let energies = target.energies_and_gradient(chain.w, chain.vectors[GRADIENT], work)?;
        chain.scalars[ENERGY] = energies.total;
        if !energies.total.is_finite() {
            return chain_failed(format!(
                "the energy at its starting point is {}",
                energies.total
            ));
        }
        let dt = match self.dt {
            Some(dt) => dt,
            None => self.find_dt(chain, target, work, 0.1)?,
        };
        Self::restart_averaging(chain, dt);
        Ok(())
    }

    fn step(
        &self,
        chain: &mut Chain,
        target: &Target,
        work: &mut Workspace,
        info: &mut [f64],
    ) -> Result<()> {
        let n = chain.w.len();
        let mut extra = std::mem::take(&mut work.extra);
        extra.resize_with(extra.len().max(3), Vec::new);
        let [momentum, grad, home, ..] = &mut extra[..] else {
            unreachable!("three were just made")
        };
        for v in [&mut *momentum, &mut *grad, &mut *home] {
            v.resize(n, 0.0);
        }
        home.copy_from_slice(chain.w);
        let jitter = 1.0 + self.jitter * (2.0 * chain.stream(Purpose::Jitter).uniform(0) - 1.0);
        let dt = chain.scalars[DT] * jitter;
        let outcome = self.trajectory(chain, target, work, (self.leapfrog, dt, 0), momentum, grad);
        let outcome = match outcome {
            Ok(o) => o,
            Err(e) => {
                work.extra = extra;
                return Err(e);
            }
        };
        let accept = if outcome.error.is_finite() {
            (-outcome.error).exp().min(1.0)
        } else {
            0.0
        };
        let accepted = chain.stream(Purpose::Accept).uniform(0) < accept;
        if accepted {
            chain.vectors[GRADIENT].copy_from_slice(grad);
            chain.scalars[ENERGY] = outcome.energy;
        } else {
            chain.w.copy_from_slice(home);
        }
        work.extra = extra;
        info[0] = update::dot(chain.w, chain.vectors[GRADIENT]) / n as f64;
        // The momentum of the state the chain is in now: only then is its mean T.
        info[1] = outcome.kinetic[usize::from(accepted)];
        info[2] = accept;
        info[3] = outcome.error.clamp(-1000.0, 1000.0);
        info[4] = (-outcome.error).exp();
        info[5] = dt;
        info[6] = f64::from(u8::from(outcome.error >= 1000.0));
        self.adapt(chain, accept, target, work)
    }
}
