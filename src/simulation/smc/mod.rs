//! Tempered sequential Monte Carlo: populations that go from the prior to the posterior, resampled from one temperature to the next.
//!
//! Where replica exchange has all temperatures at once and lets parameters wander between them, a population has one at a time and finds the
//! next one itself: as far as its effective sample size allows. What moves between the members is parameters, not temperatures, and how many
//! stages there will be is not known beforehand; so it is a loop of its own, over runs in memory of a few steps each, with a checkpoint per stage.

mod report;
mod state;

use super::plan::Plan;
use super::progress::Progress;
use super::session::{self, Session};
use super::unsaved;
use crate::diagnostic::evidence::{Estimate, annealing};
use crate::error::{Interrupted, Result};
use crate::memory;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::{MAX_CHAINS, Purpose, Stream};
use crate::sampler::Configured;
use crate::schedule::Schedule;
use crate::store::checkpoint;
use crate::target::prior::Parameters;
use crate::target::{Target, Workspace};
use crate::trigger::Trigger;
use rayon::prelude::*;
use serde_json::json;
use state::State;
use std::sync::Arc;
use std::time::Instant;

/// Options of `smc(target, sampler, #{…})`.
pub const OPTIONS: &[Spec] = &[
    option(
        "particles",
        Kind::Int(Range::Between(2.0, 1e6)),
        "128",
        "Members of a population.",
    ),
    option(
        "populations",
        Kind::Int(Range::Between(1.0, 1e4)),
        "8",
        "Populations that are resampled each for itself; the error bars come from their scatter.",
    ),
    option(
        "ess",
        Kind::Float(Range::Open01),
        "0.7",
        "Effective sample size, as a share of the particles, that the next temperature leaves: the larger, the more stages.",
    ),
    option(
        "moves",
        Kind::Int(Range::Between(1.0, 1e6)),
        "10",
        "Steps of the sampler at each stage.",
    ),
    option(
        "temperature",
        Kind::Float(Range::Positive),
        "1",
        "The temperature where it ends.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed and the name",
        "Seed of the populations.",
    ),
    optional(
        "name",
        Kind::Text,
        "smc-1, …",
        "Name, and that of the folder of the result.",
    ),
];

/// Bytes that a particle takes for each of its vectors, beside the numbers.
const CHAIN: usize = 100;

/// Chains and steps that look for the first step size.
const PILOTS: (usize, u64) = (32, 100);

/// Name of a report of every sampler that accepts or rejects.
const ACCEPTANCE: &str = "acceptance_rate";

/// One temperature on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// T.
    pub temperature: f64,
    /// Effective sample size of the weights that lead there, as a share, in the mean over the populations.
    pub effective_share: f64,
    /// Mean acceptance of the moves there.
    pub acceptance: f64,
    /// The sampler's step size in the last of them.
    pub step_size: f64,
}

/// Populations that have come to the end.
#[derive(Debug)]
pub struct Smc {
    /// Name of the result and of its folder.
    pub name: String,
    /// The target, in words.
    pub target: String,
    /// Name of the sampler.
    pub sampler: String,
    /// N.
    pub parameters: usize,
    /// n.
    pub examples: usize,
    /// From hot to cold.
    pub stages: Vec<Stage>,
    /// ln Z by each population.
    pub ln_z: Vec<f64>,
    /// Draws from the prior that each population descends from.
    pub families: Vec<usize>,
    /// The particles, of the populations in turn, without those that failed in the last moves.
    pub params: Arc<Parameters>,
    /// Particles per population.
    pub particles: usize,
    /// Particles that failed on the way; the others have taken their place.
    pub failed: u64,
    /// Seconds of computing, over all sessions.
    pub seconds: f64,
}

impl Smc {
    /// ln of the mean of Z over the populations.
    pub fn estimate(&self) -> Estimate {
        annealing::ln_mean(&self.ln_z)
    }
}

/// How populations are brought to the end.
struct Tempering<'a> {
    target: &'a Target,
    sampler: Arc<Configured>,
    /// [`Configured::adapted_step`]. All particles have the same step size: one that each finds where it is would depend on where that is, and the
    /// moves would not leave the law what it is.
    adapts: Option<(&'static str, f64, f64)>,
    populations: usize,
    moves: u64,
    share: f64,
    /// T at the end.
    coldest: f64,
    seed: u64,
    session: &'a Session,
}

/// Bring populations from the prior to a temperature.
pub fn smc(
    target: &Target,
    sampler: &Arc<Configured>,
    o: &Options,
    session: &Session,
) -> Result<Arc<Smc>> {
    anyhow::ensure!(
        target.prior().is_proper(),
        "smc: nothing can be drawn from the prior '{}', which is no distribution; give the target prior::gaussian or prior::uniform_box",
        target.prior().describe()
    );
    anyhow::ensure!(
        sampler.energy_scalar().is_some(),
        "smc: sampler::{} never rejects, and its error would enter ln Z; use hmc, nuts, mala or metropolis",
        sampler.name()
    );
    let name = session.name_run("smc", o.opt_text("name"))?;
    let mut particles = o.size("particles")?;
    let mut moves = o.int("moves")?;
    if session.quick {
        let least = (2.0 / o.float("ess")?).ceil() as usize;
        (particles, moves) = (particles.min(least.max(32)), moves.min(5));
    }
    let populations = o.size("populations")?;
    let share = o.float("ess")?;
    anyhow::ensure!(
        share * particles as f64 >= 2.0,
        "smc: option 'ess' is {share}, which leaves less than two of {particles} particles; take more particles or a larger ess"
    );
    let count = particles * populations;
    anyhow::ensure!(
        count < MAX_CHAINS,
        "smc: {count} particles are more than {MAX_CHAINS}"
    );
    let vectors = 3 + sampler.vectors.len() + sampler.scratch();
    memory::check(
        (count * vectors * (target.dim() * 4 + CHAIN)) as u128,
        &format!(
            "'{name}' ({count} particles of {} parameters)",
            target.dim()
        ),
    )?;
    let seed = o
        .opt_int("seed")
        .unwrap_or_else(|| session::seed_of(session.seed, &name));
    let tempering = Tempering {
        target,
        sampler: sampler.exchanging(target, None)?,
        adapts: sampler.adapted_step(),
        populations,
        moves,
        share,
        coldest: o.float("temperature")?,
        seed,
        session,
    };
    let folder = session.folder(&name);
    let mut hash = crc32fast::Hasher::new();
    target.fingerprint(&mut hash);
    let what = json!({
        "fingerprint": hash.finalize(), "target": target.describe(), "sampler": sampler.name(), "options": sampler.options, "seed": seed,
        "particles": particles, "populations": populations, "moves": moves, "ess": share, "temperature": tempering.coldest,
    });
    let begin = Instant::now();
    let mut seconds = 0.0;
    let mut state = None;
    if session.resume
        && let Some((saved, _)) = checkpoint::load(&folder.join("checkpoint"))?
    {
        anyhow::ensure!(
            saved.meta["what"] == what,
            "{}: these populations were started with other settings; resume with the same script and --set values, or choose another --out",
            folder.display()
        );
        seconds = saved.meta["seconds"].as_f64().unwrap_or(0.0);
        state = Some(State::from_checkpoint(saved, target.dim())?);
    }
    let mut state = match state {
        Some(state) => state,
        None => tempering.prior(count)?,
    };
    let keep = |state: &State| {
        let meta = json!({ "what": what, "seconds": seconds + begin.elapsed().as_secs_f64() });
        state.save(&folder, &meta)
    };
    let progress = Progress::new(&name, "‰ of ln β", 1000, session.quiet, 0);
    let mut saved = Instant::now();
    while state.beta < tempering.end() {
        match tempering.stage(&mut state) {
            Err(e) if Interrupted::is(&e) => {
                progress.finish();
                keep(&state)?;
                let at = match state.stages.last() {
                    None => "at the prior".to_string(),
                    Some(s) => format!("at T = {:.4e}", s.temperature),
                };
                let what = format!("'{name}' {at}; continue with --resume");
                return Err(Interrupted { what }.into());
            }
            other => other?,
        }
        let first = 1.0 / state.stages[0].temperature;
        let way = ((state.beta / first).ln() / (tempering.end() / first).ln()).clamp(0.0, 1.0);
        progress.set((1000.0 * way) as u64, 0);
        if saved.elapsed().as_secs_f64() >= session.checkpoint_every {
            keep(&state)?;
            saved = Instant::now();
        }
    }
    progress.finish();
    keep(&state)?;
    seconds += begin.elapsed().as_secs_f64();
    // One of each population in turn, so that the first few are of different ones.
    let turn = (0..count).map(|i| i % populations * particles + i / populations);
    let healthy = |i: &usize| state.energies[*i].is_finite();
    let kept = turn.filter(healthy).map(|i| state.w[i].clone());
    let families = state.roots.chunks_exact(particles).map(|roots| {
        let mut all = roots.to_vec();
        all.sort_unstable();
        all.dedup();
        all.len()
    });
    let vectors: Vec<_> = kept.collect();
    let out = Smc {
        name,
        target: target.describe(),
        sampler: sampler.name().into(),
        parameters: target.dim(),
        examples: target.examples(),
        particles,
        failed: state.failed,
        families: families.collect(),
        params: Arc::new(Parameters { vectors }),
        ln_z: state.ln_z,
        stages: state.stages,
        seconds,
    };
    out.write(&folder)?;
    Ok(Arc::new(out))
}

impl Tempering<'_> {
    fn end(&self) -> f64 {
        1.0 / self.coldest
    }

    /// Draws from the prior.
    fn prior(&self, count: usize) -> Result<State> {
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
    fn stage(&self, state: &mut State) -> Result<()> {
        let particles = state.w.len() / self.populations;
        let each: Vec<_> = state.energies.chunks_exact(particles).collect();
        for (p, energies) in each.iter().enumerate() {
            anyhow::ensure!(
                energies.iter().any(|e| e.is_finite()),
                "smc: every particle of population {p} has failed at T = {:.4e}",
                1.0 / state.beta
            );
        }
        let beta = annealing::next_beta(&each, state.beta, self.end(), self.share);
        let delta = beta - state.beta;
        let number = state.stages.len() as u64;
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
        let step = match state.step.is_nan() {
            true => self.first_step(&start, temperature)?,
            false => state.step,
        };
        let moved = self.moves(start, step, temperature, number)?;
        let mut energies = self.energies(&moved.w)?;
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
    fn run(&self, plan: &Plan, sampler: &Configured, temperature: f64) -> Result<super::run::Run> {
        let target = self.target.tempered(temperature);
        unsaved(plan, &target, sampler, self.session, self.session.threads)
    }

    /// The first step size, adapted by a few particles.
    fn first_step(&self, w: &[Arc<Vec<f32>>], temperature: f64) -> Result<f64> {
        let Some((_, power, _)) = self.adapts else {
            return Ok(0.0);
        };
        let (chains, steps) = PILOTS;
        let apart = (w.len() / chains).max(1);
        let some = w.iter().step_by(apart).take(chains).cloned().collect();
        let mut plan = self.plan(some, temperature, steps, self.seed_of("pilot"));
        plan.burn_in = steps - 1;
        let run = self.run(&plan, &self.sampler, temperature)?;
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
        w: Vec<Arc<Vec<f32>>>,
        step: f64,
        temperature: f64,
        stage: u64,
    ) -> Result<Moved> {
        let mut out = Moved {
            failed: vec![false; w.len()],
            w,
            step,
            used: step,
            acceptance: 0.0,
        };
        let mut done = 0;
        while done < self.moves {
            let steps = done.max(1).min(self.moves - done);
            let seed = self.seed_of(&format!("stage {stage} from {done}"));
            let plan = self.plan(out.w, temperature, steps, seed);
            out.used = self.at(out.step, temperature);
            let changed = match self.adapts {
                Some((name, _, _)) => self.sampler.with(name, out.used)?,
                None => None,
            };
            let run = self.run(
                &plan,
                changed.as_ref().unwrap_or(&self.sampler),
                temperature,
            )?;
            let rates = run.draws(ACCEPTANCE, 0, 0, true)?;
            let rates: Vec<f64> = rates.into_iter().flatten().collect();
            let rate = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
            for (failed, f) in out.failed.iter_mut().zip(&run.failures) {
                *failed |= f.is_some();
            }
            out.w = run.params;
            out.acceptance += rate * steps as f64 / self.moves as f64;
            done += steps;
            if let Some((name, _, wanted)) = self.adapts {
                // That of MALA is the square of a time.
                let gain = if name == "step" { 2.0 } else { 1.0 };
                out.step *= (gain * (rate - wanted)).exp();
            }
        }
        Ok(out)
    }
}

/// Particles after the moves of a stage.
struct Moved {
    w: Vec<Arc<Vec<f32>>>,
    failed: Vec<bool>,
    /// The step for the next moves, as in the state.
    step: f64,
    /// The step size of the last moves.
    used: f64,
    acceptance: f64,
}
