//! The stages: populations are weighed, resampled and moved from one temperature to the next.

use super::Stage;
use super::state::State;
use crate::diagnostic::evidence::annealing;
use crate::diagnostic::{ess_bulk, rhat_rank};
use crate::error::Result;
use crate::rng::{Purpose, Stream};
use crate::sampler::ConfiguredSampler;
use crate::schedule::Schedule;
use crate::simulation::plan::Plan;
use crate::simulation::run::Run;
use crate::simulation::run_in_memory;
use crate::simulation::session::{self, Session};
use crate::simulation::until::Until;
use crate::target::prior::Parameters;
use crate::target::{Target, Workspace};
use crate::trigger::Trigger;
use rayon::prelude::*;
use std::sync::Arc;

/// Chains and steps that look for the first step size.
const PILOTS: (usize, u64) = (32, 100);

/// Name of a report of every sampler that accepts or rejects.
const ACCEPTANCE: &str = "acceptance_rate";

/// How populations are brought to the end.
pub(super) struct Tempering<'a> {
    pub target: &'a Target,
    pub sampler: Arc<ConfiguredSampler>,
    /// [`ConfiguredSampler::adapted_step`]. All particles have the same masses and the same step size: one that each finds where it is would depend on where that is, and the
    /// moves would not leave the law what it is.
    pub adapts: Option<(&'static str, f64, f64)>,
    pub populations: usize,
    pub moves: u64,
    /// What is asked of the particles before the next stage begins.
    pub until: Option<Until>,
    pub share: f64,
    /// T at the end.
    pub coldest: f64,
    /// T of every stage, if they are given.
    pub schedule: Option<Vec<f64>>,
    pub seed: u64,
    pub session: &'a Session,
}

impl Tempering<'_> {
    /// 1/T there.
    pub fn end(&self) -> f64 {
        1.0 / self.coldest
    }

    /// Draws from the prior.
    pub fn prior(&self, count: usize) -> Result<State> {
        let draw = |i| {
            let mut w = vec![0.0; self.target.dim()];
            let stream = Stream::new(self.seed, Purpose::Prior, i, 0);
            self.target.prior().draw(&stream, &mut w);
            Arc::new(w)
        };
        let w: Vec<_> = (0..count).map(draw).collect();
        Ok(State {
            energies: self.energies(&w)?,
            w,
            roots: (0..count as u64).collect(),
            ln_z: vec![0.0; self.populations],
            beta: 0.0,
            step: f64::NAN,
            failed: 0,
            stages: Vec::new(),
        })
    }

    /// s·L of each; infinite where it is no number.
    fn energies(&self, w: &[Arc<Vec<f32>>]) -> Result<Vec<f64>> {
        let energy = |work: &mut Workspace, w: &Arc<Vec<f32>>| {
            let e = self.target.energies(w, work)?.likelihood;
            Ok(if e.is_finite() { e } else { f64::INFINITY })
        };
        w.par_iter()
            .map_init(|| Workspace::new(1), energy)
            .collect()
    }

    /// Weigh, resample, move. Nothing of the state changes if that fails.
    pub fn stage(&self, state: &mut State) -> Result<()> {
        let particles = state.w.len() / self.populations;
        let each: Vec<_> = state.energies.chunks_exact(particles).collect();
        for (p, energies) in each.iter().enumerate() {
            anyhow::ensure!(
                energies.iter().any(|e| e.is_finite()),
                "smc: every particle of population {p} has failed at T = {:.4e}",
                1.0 / state.beta
            );
        }
        let number = state.stages.len() as u64;
        let beta = match &self.schedule {
            Some(temperatures) => {
                1.0 / temperatures[state.stages.len().min(temperatures.len() - 1)]
            }
            None => annealing::next_beta(&each, state.beta, self.end(), self.share),
        };
        let delta = beta - state.beta;
        let mut survivors = Vec::with_capacity(state.w.len());
        for (p, energies) in each.iter().enumerate() {
            let stream = Stream::new(self.seed, Purpose::Resample, p, number);
            let kept = annealing::systematic(energies, delta, stream.uniform(0));
            survivors.extend(kept.into_iter().map(|i| p * particles + i));
        }
        let shares = each.iter().map(|e| annealing::effective_share(e, delta));
        let effective_share = shares.sum::<f64>() / each.len() as f64;
        let ln_z = state.ln_z.iter().zip(&each);
        let ln_z = ln_z.map(|(l, e)| l + annealing::ln_mean_weight(e, delta));
        let ln_z = ln_z.collect();
        // The inverse of the inverse may be another number.
        let temperature = match beta == self.end() {
            true => self.coldest,
            false => 1.0 / beta,
        };
        let start: Vec<_> = survivors.iter().map(|i| state.w[*i].clone()).collect();
        let sampler = match self.sampler.adapts_masses() {
            true => self.sampler.with_masses(masses(&start, temperature))?,
            false => self.sampler.clone(),
        };
        let step = match state.step.is_nan() {
            true => self.first_step(&sampler, &start, temperature)?,
            false => state.step,
        };
        let moved = self.moves(&sampler, start, (step, temperature), number)?;
        let mut energies = moved.energies;
        state.failed += moved.failed.iter().filter(|f| **f).count() as u64;
        let dead = energies.iter_mut().zip(moved.failed).filter(|(_, f)| *f);
        dead.for_each(|(e, _)| *e = f64::INFINITY);
        state.roots = survivors.iter().map(|i| state.roots[*i]).collect();
        (state.w, state.energies, state.ln_z) = (moved.w, energies, ln_z);
        (state.beta, state.step) = (beta, moved.step);
        state.stages.push(Stage {
            temperature,
            effective_share,
            acceptance: moved.acceptance,
            step_size: moved.used,
            moves: moved.done,
        });
        Ok(())
    }

    /// The sampler's step size at a temperature.
    fn at(&self, step: f64, temperature: f64) -> f64 {
        match self.adapts {
            Some((_, power, _)) => step * temperature.powf(power),
            None => self.sampler.step_size().map_or(f64::NAN, |(_, s)| s),
        }
    }

    fn plan(&self, w: Vec<Arc<Vec<f32>>>, temperature: f64, steps: u64, seed: u64) -> Plan {
        let start = Arc::new(Parameters { vectors: w });
        let chains = (start.vectors.len(), Some(start));
        Plan {
            temperatures: vec![Schedule::Constant(temperature)],
            every: Trigger::At(vec![steps]),
            ..Plan::bare("smc", chains, steps, seed)
        }
    }

    /// A run in memory of what is sampled at a temperature, exp(-sL/T - R).
    fn run(&self, plan: &Plan, sampler: &ConfiguredSampler, temperature: f64) -> Result<Run> {
        let target = self.target.tempered(temperature);
        let threads = self.session.threads;
        run_in_memory((plan, &target, sampler, self.session, threads))
    }

    /// The first step size, adapted by a few particles.
    fn first_step(
        &self,
        sampler: &ConfiguredSampler,
        w: &[Arc<Vec<f32>>],
        temperature: f64,
    ) -> Result<f64> {
        let Some((_, power, _)) = self.adapts else {
            return Ok(0.0);
        };
        let (chains, steps) = PILOTS;
        let apart = (w.len() / chains).max(1);
        let some = w.iter().step_by(apart).take(chains).cloned().collect();
        let mut plan = self.plan(some, temperature, steps, self.seed_of("pilot"));
        plan.burn_in = steps - 1;
        let run = self.run(&plan, sampler, temperature)?;
        let found = run.draws("step_size", 0, 0, true)?;
        let mut found: Vec<f64> = found.into_iter().flatten().collect();
        anyhow::ensure!(
            !found.is_empty(),
            "smc: no particle survives {steps} steps at T = {temperature:.4e}"
        );
        found.sort_unstable_by(f64::total_cmp);
        Ok(found[found.len() / 2] * temperature.powf(-power))
    }

    fn seed_of(&self, what: &str) -> u64 {
        session::seed_of(self.seed, what)
    }

    /// Move all, in longer and longer blocks, after each of which the step size follows the acceptance.
    fn moves(
        &self,
        sampler: &ConfiguredSampler,
        w: Vec<Arc<Vec<f32>>>,
        (step, temperature): (f64, f64),
        stage: u64,
    ) -> Result<Moved> {
        let mut out = Moved {
            failed: vec![false; w.len()],
            energies: Vec::new(),
            w,
            step,
            used: step,
            acceptance: 0.0,
            done: 0,
        };
        let most = self.until.and_then(|u| u.at_most).unwrap_or(self.moves);
        while out.done < most {
            let done = out.done;
            let steps = match done < self.moves {
                true => done.max(1).min(self.moves - done),
                // A quarter more each time.
                false => done.div_ceil(4).min(most - done),
            };
            let seed = self.seed_of(&format!("stage {stage} from {done}"));
            let plan = self.plan(out.w, temperature, steps, seed);
            out.used = self.at(out.step, temperature);
            let changed = match self.adapts {
                Some((name, _, _)) => sampler.with(name, out.used)?,
                None => None,
            };
            let now = changed.as_deref().unwrap_or(sampler);
            let run = self.run(&plan, now, temperature)?;
            let rates = run.draws(ACCEPTANCE, 0, 0, true)?;
            let rates: Vec<f64> = rates.into_iter().flatten().collect();
            let rate = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
            for (failed, f) in out.failed.iter_mut().zip(&run.failures) {
                *failed |= f.is_some();
            }
            out.w = run.params;
            out.acceptance += rate * steps as f64;
            out.done += steps;
            if let Some((name, _, wanted)) = self.adapts {
                // That of MALA is the square of a time.
                let gain = if name == "step" { 2.0 } else { 1.0 };
                out.step *= (gain * (rate - wanted)).exp();
            }
            if out.done >= self.moves {
                out.energies = self.energies(&out.w)?;
                if self
                    .until
                    .is_none_or(|until| self.settled(&out.energies, &until))
                {
                    break;
                }
            }
        }
        out.acceptance /= out.done as f64;
        Ok(out)
    }

    /// Whether the populations agree about the energy, and so many of all particles are effective: copies stand side by side, and are as draws that depend on
    /// each other.
    fn settled(&self, energies: &[f64], until: &Until) -> bool {
        let particles = energies.len() / self.populations;
        let healthy = |all: &[f64]| -> Vec<f64> {
            let finite = all.iter().copied().filter(|e| e.is_finite());
            finite.collect()
        };
        let each: Vec<_> = energies.chunks_exact(particles).map(healthy).collect();
        rhat_rank(&each) <= until.rhat && ess_bulk(&each) >= until.ess
    }
}

/// Masses T/Var(w_i) of all particles; where all are the same, by a small part of the mean variance.
fn masses(w: &[Arc<Vec<f32>>], temperature: f64) -> Arc<Vec<f32>> {
    let n = w.len() as f64;
    let variance = |i: usize| {
        let each = w.iter().map(|w| f64::from(w[i]));
        let mean = each.clone().sum::<f64>() / n;
        each.map(|x| (x - mean).powi(2)).sum::<f64>() / n
    };
    let variances: Vec<_> = (0..w[0].len()).into_par_iter().map(variance).collect();
    let mean = variances.iter().sum::<f64>() / variances.len() as f64;
    let least = if mean > 0.0 {
        1e-3 * mean / n
    } else {
        temperature
    };
    let mass = |v: &f64| (temperature / (v + least)) as f32;
    Arc::new(variances.iter().map(mass).collect())
}

/// Particles after the moves of a stage.
struct Moved {
    w: Vec<Arc<Vec<f32>>>,
    /// s·L of each.
    energies: Vec<f64>,
    failed: Vec<bool>,
    /// The step for the next moves, as in the state.
    step: f64,
    /// The step size of the last moves.
    used: f64,
    acceptance: f64,
    /// How many moves there were.
    done: u64,
}
