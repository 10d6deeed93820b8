//! Simulations: the one loop that moves chains, records them and saves them.
//!
//! [`run`] works for any sampler and any number of chains: tune → step → record → checkpoint, each behind its trigger. Chains
//! run in parallel, one thread each; threads always take up the chain that is furthest behind. Results do not depend on the
//! number of threads or on interruptions, because nothing but the state and the counters of the random streams enters a step.

pub mod optimizer;
pub mod progress;
pub mod run;
pub mod session;
pub mod state;
pub mod summary;
pub mod train;

use crate::error::{EveryChainFailed, Interrupted, Result};
use crate::kernels::update::dot;
use crate::observable::{Handle, Observable, View};
use crate::options::{Kind, Options, Range, Spec, option, optional, required};
use crate::rng::{MAX_CHAINS, Purpose, Stream};
use crate::sampler::Configured;
use crate::schedule::Schedule;
use crate::store::checkpoint;
use crate::target::prior::Parameters;
use crate::target::{Target, Workspace};
use crate::trigger::Trigger;
use progress::Progress;
use run::{Column, Failure, Group, Meta, Run, RunInfo, save_checkpoint};
use session::Session;
use state::{Slot, State};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Options that `sample` and `sweep` share.
macro_rules! run_options {
    ($first:expr) => {
        &[
            $first,
            required("steps", Kind::Int(Range::Between(1.0, 1e14)), "Steps per chain, burn-in included."),
            option("chains", Kind::Int(Range::Between(1.0, 1e6)), "4", "Chains per temperature."),
            optional("start", Kind::Object("Parameters"), "drawn by the model, differently for each chain", "Where chains start: a result of `train`, `run.params()` or `parameters([…])`; vectors are dealt out in turn."),
            option("burn_in", Kind::Float(Range::NonNegative), "0.5", "Part of the steps (below 1) or number of steps (from 1) that is not used; adaptive samplers adapt in it."),
            option("every", Kind::Trigger, "100", "When to make a record: every so many steps, or a trigger."),
            optional("observe", Kind::Objects("Observable"), "[observable::cost(), observable::norm2()]", "What to record."),
            option("region", Kind::Float(Range::Positive), "1000", "A chain whose |w| exceeds this many times max(|w_start|, √N) has left its region and is stopped as failed."),
            optional("seed", Kind::Int(Range::NonNegative), "from --seed and the name of the run", "Seed of this run. Runs of equal seed share their noise, step by step."),
            optional("name", Kind::Text, "sample-1, sweep-1, …", "Name of the run and of its folder."),
        ]
    };
}

/// Options of `sample(target, sampler, #{…})`.
pub const SAMPLE_OPTIONS: &[Spec] = run_options!(option(
    "temperature",
    Kind::Schedule(Range::Positive),
    "1",
    "T, a number or a schedule."
));

/// Options of `sweep(target, sampler, #{…})`.
pub const SWEEP_OPTIONS: &[Spec] = run_options!(required(
    "temperatures",
    Kind::Floats(Range::Positive),
    "The temperatures; each has its own chains."
));

/// Everything that defines a run.
pub struct Plan {
    /// "sample" or "sweep".
    pub kind: &'static str,
    /// Name of the run.
    pub name: String,
    /// One per group of chains.
    pub temperatures: Vec<Schedule>,
    /// Chains per temperature.
    pub chains: usize,
    /// Where chains start.
    pub start: Option<Arc<Parameters>>,
    /// Steps per chain.
    pub steps: u64,
    /// Steps of burn-in.
    pub burn_in: u64,
    /// When to record.
    pub every: Trigger,
    /// What to record.
    pub observables: Vec<Handle>,
    /// See the option `region`.
    pub region: f64,
    /// Seed.
    pub seed: u64,
    /// Steps before --quick cut them, if it did.
    pub full_steps: Option<u64>,
}

impl Plan {
    /// From the checked options of `sample` or `sweep`.
    pub fn from_options(kind: &'static str, o: &Options, session: &Session) -> Result<Self> {
        let temperatures = match o.floats("temperatures") {
            Some(t) => t.into_iter().map(Schedule::Constant).collect(),
            None => vec![o.schedule("temperature")?],
        };
        anyhow::ensure!(
            !temperatures.is_empty(),
            "{kind}: option 'temperatures' is empty"
        );
        let mut steps = o.int("steps")?;
        let mut every = match o.get("every") {
            Some(crate::options::Value::Object(t, _)) => t.downcast_ref::<Trigger>().cloned(),
            _ => None,
        }
        .unwrap_or(Trigger::Every(o.opt_int("every").unwrap_or(100)));
        let fraction = o.float("burn_in")?;
        let burn_in = |steps: u64| {
            if fraction < 1.0 {
                (fraction * steps as f64) as u64
            } else {
                fraction as u64
            }
        };
        anyhow::ensure!(
            burn_in(steps) < steps,
            "{kind}: option 'burn_in' is {fraction}, which leaves nothing of {steps} steps"
        );
        let mut warm = burn_in(steps);
        let mut full_steps = None;
        if session.quick && steps > 400 {
            full_steps = Some(steps);
            let cut = (steps / 50).max(400);
            warm = (warm as f64 / steps as f64 * cut as f64) as u64;
            steps = cut;
            // Fewer steps between records, so that twenty are made, but no more records than need be: they cost data passes.
            match &mut every {
                Trigger::Every(n) => *n = (*n / 5).min((cut - warm) / 20).max(1),
                Trigger::At(at) => at.iter_mut().for_each(|s| {
                    *s = (*s as f64 * cut as f64 / o.int("steps").unwrap_or(1) as f64).ceil() as u64
                }),
                Trigger::Logarithmic { .. } => {}
            }
        }
        let mut observables: Vec<Handle> = o.objects::<Box<dyn Observable>>("observe");
        if o.get("observe").is_none() {
            let none = Options::check("observable", &[], Vec::new())?;
            observables.push((crate::observable::basic::COST.build)(&none)?);
            observables.push((crate::observable::basic::NORM2.build)(&none)?);
        }
        let name = session.name_run(kind, o.opt_text("name"))?;
        Ok(Self {
            kind,
            name: name.clone(),
            temperatures,
            chains: o.size("chains")?,
            start: o.object("start"),
            steps,
            burn_in: warm,
            every,
            observables,
            region: o.float("region")?,
            seed: o
                .opt_int("seed")
                .unwrap_or_else(|| session::seed_of(session.seed, &name)),
            full_steps,
        })
    }

    /// The points where the chains start.
    fn starts(&self, target: &Target) -> Result<Vec<Arc<Vec<f32>>>> {
        let count = self.temperatures.len() * self.chains;
        let dim = target.dim();
        match &self.start {
            Some(p) => {
                anyhow::ensure!(
                    !p.vectors.is_empty(),
                    "{}: option 'start' holds no parameters",
                    self.kind
                );
                for v in &p.vectors {
                    anyhow::ensure!(
                        v.len() == dim,
                        "{}: option 'start' has {} parameters, but the model has {dim}",
                        self.kind,
                        v.len()
                    );
                }
                // As many vectors as chains: one each. Otherwise the chains of every temperature get them in turn.
                let one_each = p.vectors.len() == count;
                let pick = |i: usize| {
                    if one_each {
                        i
                    } else {
                        i % self.chains % p.vectors.len()
                    }
                };
                Ok((0..count).map(|i| p.vectors[pick(i)].clone()).collect())
            }
            None => {
                let draw = |i| {
                    target
                        .potential()
                        .initialise(Stream::new(self.seed, Purpose::Initialise, i, 0))
                };
                Ok((0..count).map(|i| Arc::new(draw(i))).collect())
            }
        }
    }

    fn columns(&self, target: &Target, sampler: &Configured) -> Result<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        for o in &self.observables {
            o.check(target)?;
            columns.push(Column {
                name: o.name(),
                group: Group::Posterior,
                components: o.components(target),
            });
        }
        let stats = sampler.sampler.info().iter();
        columns.extend(stats.map(|n| Column {
            name: n.to_string(),
            group: Group::SampleStats,
            components: None,
        }));
        let dims: Vec<_> = columns
            .iter()
            .filter_map(|c| c.components.as_ref().map(|(d, _)| d.as_str()))
            .collect();
        for (i, c) in columns.iter().enumerate() {
            let name = c.name.as_str();
            anyhow::ensure!(
                !columns[..i].iter().any(|d| d.name == name)
                    && !["chain", "draw", "temperature"].contains(&name)
                    && !dims.contains(&name),
                "{}: two traces would be called '{}'; name one with observable::named(\"name\", …)",
                self.kind,
                c.name
            );
        }
        Ok(columns)
    }

    /// A checksum of what defines the run and is not in words: data, starting points, triggers. A closure counts by its name only.
    fn fingerprint(&self, target: &Target, starts: &[Arc<Vec<f32>>]) -> String {
        let mut hash = crc32fast::Hasher::new();
        hash.update(
            format!("{:?} {:?} {:?}", self.every, self.region, self.temperatures).as_bytes(),
        );
        target.fingerprint(&mut hash);
        for w in starts {
            w.iter().for_each(|x| hash.update(&x.to_le_bytes()));
        }
        format!("{:08x}", hash.finalize())
    }

    fn info(
        &self,
        target: &Target,
        sampler: &Configured,
        columns: Vec<Column>,
        starts: &[Arc<Vec<f32>>],
    ) -> Result<RunInfo> {
        for t in &self.temperatures {
            anyhow::ensure!(
                t.at(self.steps) > 0.0,
                "{}: the temperature schedule reaches {} at the last step, but must stay > 0",
                self.kind,
                t.at(self.steps)
            );
        }
        let warm_draws = self.every.count(self.burn_in);
        let all = self.every.count(self.steps);
        anyhow::ensure!(
            all > warm_draws,
            "{}: no record is made after burn-in (records {}, {} steps, {} of them burn-in); lower 'every' or take more steps",
            self.kind,
            self.every,
            self.steps,
            self.burn_in
        );
        Ok(RunInfo {
            name: self.name.clone(),
            kind: self.kind.into(),
            target: target.describe(),
            sampler: sampler.sampler.name().into(),
            options: sampler.options.clone(),
            temperatures: self.temperatures.iter().map(|t| t.at(self.steps)).collect(),
            schedules: self
                .temperatures
                .iter()
                .filter(|t| t.constant().is_none())
                .map(Schedule::to_string)
                .collect(),
            chains: self.chains,
            steps: self.steps,
            burn_in: self.burn_in,
            every: self.every.to_string(),
            warm_draws,
            draws: all - warm_draws,
            columns,
            n: target.examples(),
            m: sampler.sampler.batch(),
            scale: target.scale(),
            parameters: target.dim(),
            tensors: target
                .layout()
                .tensors()
                .iter()
                .map(|t| (t.name.clone(), t.shape.clone()))
                .collect(),
            walls: target.prior().has_walls(),
            steady: self
                .temperatures
                .iter()
                .all(|t| t.at(self.burn_in) == t.at(self.steps)),
            fingerprint: self.fingerprint(target, starts),
            seed: self.seed,
            quick: self.full_steps.is_some(),
        })
    }
}

/// What the threads of a run share.
struct Shared<'a> {
    plan: &'a Plan,
    target: &'a Target,
    sampler: &'a Configured,
    /// Numbers per record.
    width: usize,
    /// |w|² above which a chain has left its region, per chain.
    limits: Vec<f64>,
}

/// Run a plan to its end, or until it is interrupted; then its checkpoint is on disk.
pub fn run(
    plan: &Plan,
    target: &Target,
    sampler: &Configured,
    session: &Session,
) -> Result<Arc<Run>> {
    sampler.sampler.check(target)?;
    let chains = plan.temperatures.len() * plan.chains;
    anyhow::ensure!(
        chains < MAX_CHAINS,
        "{}: {chains} chains are more than {MAX_CHAINS}",
        plan.kind
    );
    let columns = plan.columns(target, sampler)?;
    check_size(plan, &columns, target, sampler, session)?;
    let folder = session.folder(&plan.name);
    let starts = plan.starts(target)?;
    let info = plan.info(target, sampler, columns, &starts)?;
    let mut state = State::new(&starts, &*sampler.sampler);
    let mut seconds = 0.0;
    let mut fresh = true;
    if let Some(meta) = resume(&folder, &info, &mut state, sampler, session)? {
        if meta.done {
            return finish(&folder);
        }
        seconds = meta.seconds;
        fresh = false;
    }
    let square = |w: &[f32]| dot(w, w).max(w.len() as f64);
    let limits = starts
        .iter()
        .map(|w| plan.region * plan.region * square(w))
        .collect();
    let shared = Shared {
        plan,
        target,
        sampler,
        width: info.width(),
        limits,
    };
    let workers = session.threads.clamp(1, chains);
    let mut work: Vec<Workspace> = (0..workers)
        .map(|_| Workspace {
            parallel: chains < session.threads,
            ..Workspace::default()
        })
        .collect();
    let begin = Instant::now();
    let save = |state: &State, done: bool| -> Result<()> {
        let seconds = seconds + begin.elapsed().as_secs_f64();
        let meta = Meta {
            info: info.clone(),
            failures: state.failures.clone(),
            seconds,
            done,
        };
        save_checkpoint(&folder, &meta, state.tensors(&*sampler.sampler))
    };
    if fresh {
        advance(&shared, &mut state, &starts, &mut work, None)?;
        save(&state, false)?;
    }
    let progress = Progress::new(
        &plan.name,
        plan.steps * chains as u64,
        session.quiet,
        state.steps.iter().sum(),
    );
    let mut saved = Instant::now();
    loop {
        let left = (0..chains).any(|c| state.failures[c].is_none() && state.steps[c] < plan.steps);
        if !left {
            break;
        }
        if session::interrupted() {
            save(&state, false)?;
            progress.finish();
            let least = state.steps.iter().min().copied().unwrap_or(0);
            let what = format!(
                "'{}' at step {least} of {}; continue with --resume",
                plan.name, plan.steps
            );
            return Err(Interrupted { what }.into());
        }
        if saved.elapsed().as_secs_f64() >= session.checkpoint_every {
            save(&state, false)?;
            saved = Instant::now();
        }
        let slice = Duration::from_secs_f64(session.checkpoint_every.clamp(0.01, 0.25));
        advance(
            &shared,
            &mut state,
            &starts,
            &mut work,
            Some(Instant::now() + slice),
        )?;
        progress.set(
            state.steps.iter().sum(),
            state.failures.iter().flatten().count(),
        );
    }
    progress.finish();
    save(&state, true)?;
    finish(&folder)
}

/// The finished run, with its traces, weights and record on disk; an error if no chain survived.
fn finish(folder: &std::path::Path) -> Result<Arc<Run>> {
    let Some((run, _)) = Run::load(folder)? else {
        anyhow::bail!("{}: this folder belongs to a training", folder.display())
    };
    run.write()?;
    match run.failures.iter().flatten().next() {
        Some(f) if run.failures.iter().all(Option::is_some) => Err(EveryChainFailed {
            run: run.info.name.clone(),
            reason: format!("{} at step {}", f.reason, f.step),
        }
        .into()),
        _ => Ok(Arc::new(run)),
    }
}

/// Put the state of an earlier session back, if `--resume` asks for it and there is one.
fn resume(
    folder: &std::path::Path,
    info: &RunInfo,
    state: &mut State,
    sampler: &Configured,
    session: &Session,
) -> Result<Option<Meta>> {
    if !session.resume {
        return Ok(None);
    }
    let Some((saved, _)) = checkpoint::load(&folder.join("checkpoint"))? else {
        return Ok(None);
    };
    let meta: Meta = serde_json::from_value(saved.meta).map_err(|e| {
        anyhow::anyhow!(
            "{}: the checkpoint is of another version ({e})",
            folder.display()
        )
    })?;
    let same = meta.info == *info;
    anyhow::ensure!(
        same,
        "{}: this run was started with other settings{}; resume with the same script and --set values, or choose another --out",
        folder.display(),
        difference(&meta.info, info)
    );
    state.restore(saved.tensors, &*sampler.sampler)?;
    state.failures.clone_from(&meta.failures);
    Ok(Some(meta))
}

/// A value in few words.
fn short(value: &serde_json::Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 100 {
        format!("{}…", text.chars().take(100).collect::<String>())
    } else {
        text
    }
}

/// " (steps was 100, is 200)": the first field in which two runs differ.
fn difference(old: &RunInfo, new: &RunInfo) -> String {
    let (old, new) = (
        serde_json::to_value(old).unwrap_or_default(),
        serde_json::to_value(new).unwrap_or_default(),
    );
    let fields = old.as_object().into_iter().flatten();
    fields
        .filter_map(|(k, v)| {
            new.get(k)
                .filter(|w| *w != v)
                .map(|w| format!(" ({k} was {}, is {})", short(v), short(w)))
        })
        .next()
        .unwrap_or_default()
}

/// Fail early if the run cannot fit into memory.
fn check_size(
    plan: &Plan,
    columns: &[Column],
    target: &Target,
    sampler: &Configured,
    session: &Session,
) -> Result<()> {
    let (chains, n) = (
        (plan.temperatures.len() * plan.chains) as u128,
        target.dim() as u128,
    );
    let vectors = 2 + sampler.sampler.vectors().len() as u128;
    let draws = plan.every.count(plan.steps) as u128;
    let width = columns.iter().map(Column::width).sum::<usize>() as u128;
    // Per thread: gradient, a shard's gradient and a few vectors of the sampler. Records are held twice while they are written.
    let threads = session.threads as u128 * 6 * n;
    let what = format!(
        "'{}' ({chains} chains of {n} parameters, {draws} records each)",
        plan.name
    );
    session::check_memory(
        4 * (chains * n * vectors + threads) + 16 * chains * draws * width,
        &what,
    )
}

/// Let every chain run until `deadline`; without one, prepare the chains for their first step instead.
fn advance(
    shared: &Shared,
    state: &mut State,
    starts: &[Arc<Vec<f32>>],
    work: &mut [Workspace],
    deadline: Option<Instant>,
) -> Result<()> {
    let slots = state.slots(starts, shared.plan.seed, shared.plan.burn_in);
    let waiting = Mutex::new(slots);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let take = || {
        let mut waiting = waiting.lock().unwrap_or_else(|e| e.into_inner());
        if deadline.is_none() {
            return waiting.pop();
        }
        let ready = waiting
            .iter()
            .enumerate()
            .filter(|(_, s)| s.failure.is_none() && *s.steps < shared.plan.steps);
        let next = ready
            .min_by_key(|(_, s)| (*s.steps, s.chain.index))
            .map(|(i, _)| i);
        next.map(|i| waiting.swap_remove(i))
    };
    let body = |work: &mut Workspace| {
        while deadline.is_none_or(|d| Instant::now() < d)
            && !(deadline.is_some() && session::interrupted())
            && let Some(mut slot) = take()
        {
            let result = match deadline {
                None => shared.prepare(&mut slot, work),
                // Short turns keep the chains together and the threads busy to the end.
                Some(d) => shared.turn(
                    &mut slot,
                    work,
                    d.min(Instant::now() + Duration::from_millis(20)),
                ),
            };
            if let Err(e) = result {
                failed
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .get_or_insert(e);
                return;
            }
            if deadline.is_some() {
                waiting.lock().unwrap_or_else(|e| e.into_inner()).push(slot);
            }
        }
    };
    match work {
        [only] => body(only),
        many => std::thread::scope(|s| {
            for w in many {
                s.spawn(|| body(w));
            }
        }),
    }
    match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(e) => Err(e),
        None => Ok(()),
    }
}

impl Shared<'_> {
    fn temperature(&self, chain: usize, step: u64) -> f64 {
        self.plan.temperatures[chain / self.plan.chains].at(step)
    }

    fn prepare(&self, slot: &mut Slot, work: &mut Workspace) -> Result<()> {
        slot.chain.temperature = self.temperature(slot.chain.index, 0);
        if session::interrupted() {
            let what = format!("'{}' before its first step", self.plan.name);
            return Err(Interrupted { what }.into());
        }
        match self
            .sampler
            .sampler
            .init(&mut slot.chain, self.target, work)
        {
            Ok(()) => Ok(()),
            Err(e) => slot.fail(e),
        }
    }

    /// Step one chain until `until`, at least once.
    fn turn(&self, slot: &mut Slot, work: &mut Workspace, until: Instant) -> Result<()> {
        let sampler = &*self.sampler.sampler;
        let mut info = vec![0.0; slot.info_sums.len()];
        let virial = sampler.info().iter().position(|n| *n == "virial");
        loop {
            slot.chain.temperature = self.temperature(slot.chain.index, slot.chain.step);
            if let Err(e) = sampler.step(&mut slot.chain, self.target, work, &mut info) {
                return slot.fail(e);
            }
            slot.chain.step += 1;
            *slot.steps = slot.chain.step;
            slot.info_sums
                .iter_mut()
                .zip(&info)
                .for_each(|(s, i)| *s += i);
            *slot.info_count += 1;
            // The virial touches every parameter and every component of the gradient: one number tells of any NaN.
            if virial.is_some_and(|v| !info[v].is_finite()) {
                *slot.failure = Some(Failure {
                    step: slot.chain.step,
                    reason: "met a number that is not finite".into(),
                });
                return Ok(());
            }
            if self.plan.every.fires(slot.chain.step) {
                self.record(slot, work)?;
                if slot.failure.is_some() {
                    return Ok(());
                }
            }
            if slot.chain.step == self.plan.burn_in {
                // What the sampler reported in burn-in must not enter the first record after it.
                slot.info_sums.fill(0.0);
                *slot.info_count = 0;
            }
            if slot.chain.step >= self.plan.steps
                || Instant::now() >= until
                || session::interrupted()
            {
                return Ok(());
            }
        }
    }

    fn record(&self, slot: &mut Slot, work: &mut Workspace) -> Result<()> {
        let square = dot(slot.chain.w, slot.chain.w);
        if square.is_nan() || square > self.limits[slot.chain.index] {
            let reason = format!("left its region: |w| = {:.3e}", square.sqrt());
            *slot.failure = Some(Failure {
                step: slot.chain.step,
                reason,
            });
            return Ok(());
        }
        let count = (*slot.info_count).max(1) as f64;
        let info: Vec<f64> = slot.info_sums.iter().map(|s| s / count).collect();
        slot.info_sums.fill(0.0);
        *slot.info_count = 0;
        let mut row = vec![f64::NAN; self.width];
        let sampler = &*self.sampler.sampler;
        let mut view = View {
            chain: &slot.chain,
            vector_names: sampler.vectors(),
            info: (sampler.info(), &info),
            batch: sampler.batch(),
            start: &slot.start,
            target: self.target,
            work,
            energies: None,
            splits: Vec::new(),
        };
        let mut at = 0;
        for o in &self.plan.observables {
            let width = o.components(self.target).map_or(1, |(_, l)| l.len());
            o.measure(&mut view, &mut row[at..at + width])?;
            at += width;
        }
        row[at..].copy_from_slice(&info);
        slot.records.extend_from_slice(&row);
        Ok(())
    }
}
