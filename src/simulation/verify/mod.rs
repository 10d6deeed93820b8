//! Verification of a run by short exact chains: do U and the observables drift when hybrid Monte Carlo takes over from its draws?
//!
//! The run goes on beyond its end, in memory. Now and then hybrid Monte Carlo, over all examples and with its accept/reject step, starts from
//! where a chain is. If the run samples exp(-U/T), what the exact chain does leaves every mean as it is; if not, means move towards the right
//! ones. Before and after are compared draw by draw, which removes most of the noise. A move that keeps the part ρ of a deviation shows
//! (1 - ρ)·bias, so that a drift of d says that the run is off by -d/(1 - ρ).

mod drift;
mod exact;

pub use self::drift::{Line, Verification};

use self::drift::{Pairs, lines};
use self::exact::Exact;
use super::console::Task;
use super::origin::Origin;
use super::plan::Plan;
use super::progress::Progress;
use super::run::Run;
use super::session::{Interrupt, Session};
use super::state::{Lent, State};
use crate::engine::ChainRef;
use crate::engine::batched::Batched;
use crate::error::{Interrupted, Result};
use crate::kernels::device::Device;
use crate::observable::{LossCache, View};
use crate::options::{Kind, Options, Range, Spec, Value, option};
use crate::sampler::{ConfiguredSampler, named};
use crate::schedule::Schedule;
use crate::store::checkpoint::{self, TensorData};
use crate::target::{Target, Workspace};
use crate::verb::{Call, Either, Verb};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Options of `verify(run, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    option(
        "draws",
        Kind::Int(Range::Between(8.0, 1e6)),
        "200",
        "Exact chains per temperature, each started from a state of the run's chains.",
    ),
    option(
        "moves",
        Kind::Int(Range::Between(1.0, 1e4)),
        "10",
        "Accept/reject moves of each exact chain.",
    ),
    option(
        "leapfrog",
        Kind::Int(Range::Between(1.0, 1e4)),
        "10",
        "Leapfrog steps of each move, each a gradient over all examples.",
    ),
];

/// Verify a run whose target, sampler and observables are these.
pub fn verify(run: &Run, origin: &Origin, o: &Options, session: &Session) -> Result<Verification> {
    let sampler = &origin.sampler;
    check(run, origin)?;
    let placed = session.placed(&origin.target)?;
    let target = &*placed.target;
    if placed.devices.is_some() {
        session.computes_here("verify: the exact chains");
    }
    let chains = run.failures.iter().filter(|f| f.is_none()).count();
    anyhow::ensure!(chains > 0, "verify: every chain of the run failed");
    let draws = match session.quick {
        true => o.size("draws")?.min(16),
        false => o.size("draws")?,
    };
    let work = Work {
        run,
        origin,
        target,
        hmc: hmc(o.int("leapfrog")?)?,
        moves: o.int("moves")?,
        draws: draws.div_ceil(run.info.chains).max(4),
        apart: apart(run)?,
        done: AtomicU64::new(0),
        interrupt: session.interrupt.clone(),
    };
    let plan = Plan {
        temperatures: vec![Schedule::Constant(1.0); run.info.temperatures.len()],
        burn_in: run.info.burn_in,
        ..Plan::bare(
            "verify",
            (run.info.chains, None),
            run.info.steps,
            run.info.seed,
        )
    };
    let mut state = restored(run, target, sampler)?;
    let total = (chains * work.draws) as u64;
    let progress = Progress::new(
        session,
        Task {
            name: "verify".into(),
            unit: "exact chains",
            total,
            first: 0,
            goes_on: String::new(),
        },
    );
    let temperature = |chain: usize| match &run.ladders {
        Some(l) => l.temperatures[l.rung_of(chain)],
        None => run.info.temperatures[chain / run.info.chains],
    };
    let tasks = state.lend(&plan, None, false).into_iter();
    let queue = Mutex::new(tasks);
    let found = Mutex::new(Vec::new());
    let worker = |devices: Option<&[Box<dyn Device>]>, threads| -> Result<()> {
        let mut workspace = Workspace::new(threads);
        loop {
            let next = queue.lock().unwrap_or_else(|e| e.into_inner()).next();
            let Some(mut lent) = next else {
                return Ok(());
            };
            let chain = lent.block.members[0].index;
            let t = temperature(chain);
            if work.failed(chain) || !t.is_finite() {
                continue;
            }
            let pairs = work.follow(&mut lent, t, devices, &mut workspace, &progress)?;
            let mut all = found.lock().unwrap_or_else(|e| e.into_inner());
            all.push((chain, t, pairs));
        }
    };
    let outcome = match &placed.devices {
        // The run goes on where it was made, or rounding there would not be tested.
        Some(devices) => worker(Some(devices), session.threads),
        None => std::thread::scope(|scope| {
            let threads: Vec<_> = (0..session.threads.max(1))
                .map(|_| scope.spawn(|| worker(None, 1)))
                .collect();
            let each = threads.into_iter().map(|t| {
                let panicked = |_| Err(anyhow::anyhow!("verify: a thread panicked"));
                t.join().unwrap_or_else(panicked)
            });
            each.collect::<Result<()>>()
        }),
    };
    drop(progress);
    outcome?;
    let mut found = found.into_inner().unwrap_or_else(|e| e.into_inner());
    found.sort_by_key(|(chain, ..)| *chain);
    Ok(Verification {
        run: run.info.name.clone(),
        lines: lines(run, origin, &found),
        draws: work.draws * run.info.chains,
        moves: work.moves as usize,
    })
}

/// Fail unless these made the run, and it can go on chain by chain.
fn check(run: &Run, origin: &Origin) -> Result<()> {
    let (info, sampler) = (&run.info, &origin.sampler);
    anyhow::ensure!(
        info.sampler == sampler.name() && info.options == sampler.options,
        "verify: the run was made by sampler::{}, with other options than the given sampler",
        info.sampler
    );
    anyhow::ensure!(
        info.target == origin.target.describe() && info.parameters == origin.target.dim(),
        "verify: the run has another target than the given one"
    );
    anyhow::ensure!(
        !info.coupled,
        "verify: the chains of sampler::{} act on each other, and cannot be continued one by one",
        info.sampler
    );
    anyhow::ensure!(
        info.steady,
        "verify: the temperature of the run changes, so there is no fixed law to test"
    );
    Ok(())
}

/// Hybrid Monte Carlo that finds its step size in burn-in.
fn hmc(leapfrog: u64) -> Result<Arc<ConfiguredSampler>> {
    let entry = named("hmc")?;
    let given = vec![
        ("leapfrog".to_string(), Value::Int(leapfrog as i64)),
        ("adapt_mass".to_string(), Value::Bool(false)),
    ];
    (entry.build)(&Options::check("sampler::hmc", entry.options, given)?)
}

/// Steps between two draws of a chain: a quarter of the autocorrelation time of the slowest observable, but no more than the run itself had for
/// a draw in a hundred.
fn apart(run: &Run) -> Result<u64> {
    let info = &run.info;
    let steps = info.steps - info.burn_in;
    let per_draw = steps as f64 / info.draws.max(1) as f64;
    let mut slowest: f64 = 1.0;
    for column in info.columns.iter().filter(|c| c.width() == 1) {
        for t in 0..info.temperatures.len() {
            let tau = crate::diagnostic::integrated_autocorrelation_time(&run.draws(
                &column.name,
                0,
                t,
                true,
            )?);
            slowest = if tau.is_finite() {
                slowest.max(tau)
            } else {
                slowest
            };
        }
    }
    let wanted = (0.25 * slowest * per_draw).ceil() as u64;
    Ok(wanted.clamp(1, (steps / 100).max(1)))
}

/// The chains where the run left them, with all that their sampler keeps.
fn restored(run: &Run, target: &Target, sampler: &ConfiguredSampler) -> Result<State> {
    let folder = run.folder.join("checkpoint");
    let Some((saved, _)) = checkpoint::load(&folder)? else {
        anyhow::bail!("verify: {}: there is no checkpoint", folder.display())
    };
    let mut state = State::new((0..run.info.all_chains()).collect(), target, sampler, &[]);
    let wrong = |name: &str| anyhow::anyhow!("verify: the run has no '{name}' of these chains");
    let mut put = |name: &str, data: TensorData| -> Result<()> {
        let vector = name.strip_prefix("vector.");
        let place = vector.and_then(|v| sampler.vectors.iter().position(|own| *own == v));
        match (name, place, data) {
            ("params", _, TensorData::F32(x)) if x.len() == state.params.len() => state.params = x,
            ("scalars", _, TensorData::F64(x)) if x.len() == state.scalars.len() => {
                state.scalars = x
            }
            ("steps", _, TensorData::U64(x)) if x.len() == state.steps.len() => state.steps = x,
            (_, Some(k), TensorData::F32(x)) if x.len() == state.vectors[k].len() => {
                state.vectors[k] = x
            }
            ("params" | "scalars" | "steps", ..) | (_, Some(_), _) => return Err(wrong(name)),
            _ => {}
        }
        Ok(())
    };
    for (name, tensor) in saved.tensors {
        put(&name, tensor.data)?;
    }
    Ok(state)
}

/// What the threads share.
struct Work<'a> {
    run: &'a Run,
    origin: &'a Origin,
    target: &'a Target,
    hmc: Arc<ConfiguredSampler>,
    moves: u64,
    draws: usize,
    apart: u64,
    done: AtomicU64,
    interrupt: Interrupt,
}

impl Work<'_> {
    fn failed(&self, chain: usize) -> bool {
        match &self.run.ladders {
            // Failures of a run of ladders are those of places.
            Some(l) => self.run.failures[l.place_of(chain)].is_some(),
            None => self.run.failures[chain].is_some(),
        }
    }

    /// Go on with a chain, on a device if there are some, and let exact chains on this machine start from it.
    fn follow(
        &self,
        lent: &mut Lent,
        temperature: f64,
        devices: Option<&[Box<dyn Device>]>,
        work: &mut Workspace,
        progress: &Progress,
    ) -> Result<Pairs> {
        let law = self.run.info.law();
        let target = law.target_at(self.target, temperature);
        let sampler = &self.origin.sampler;
        let block = &mut lent.block;
        block.members[0].temperature = temperature;
        let mut exact = Exact::new(&target, &self.hmc, block.chain(0));
        let slots = sampler.slots(&target);
        let mut device = devices
            .map(|d| Batched::new(d, &target, 1, sampler.vectors.len(), &slots))
            .transpose()?;
        if let Some(device) = &mut device {
            device.store(&block.rows)?;
        }
        let mut out = Vec::with_capacity(self.draws);
        for _ in 0..self.draws {
            let mut since = 0;
            // A sampler that explores in between has draws in the rest of its cycle only.
            while since < self.apart || !sampler.samples(block.step - 1) {
                if self.interrupt.interrupted() {
                    let what = "a verification, of which nothing is kept".into();
                    return Err(Interrupted { what }.into());
                }
                match &mut device {
                    Some(device) => {
                        device.begin(&block.rows, block.step, false)?;
                        block.work_on(device, &slots, |chains| sampler.step(chains))?;
                    }
                    None => {
                        let own = std::slice::from_mut(&mut *work);
                        block.work(&target, own, (&slots, false), |chains| sampler.step(chains))?;
                    }
                }
                if let Some(reason) = &block.members[0].failure {
                    anyhow::bail!("verify: a chain failed: {reason}");
                }
                block.step += 1;
                since += 1;
            }
            if let Some(device) = &mut device {
                device.fetch(&mut block.rows)?;
            }
            out.push(exact.move_from(block.rows[0].w, self, &target, work)?);
            progress.set(self.done.fetch_add(1, Ordering::Relaxed) + 1, 0);
        }
        Ok(out)
    }

    /// U and the observables of a chain.
    fn measure(&self, chain: ChainRef, target: &Target, work: &mut Workspace) -> Result<Vec<f64>> {
        let home = &self.run.params[chain.index % self.run.params.len()];
        let mut view = View {
            chain,
            vector_names: &[],
            info: (&[], &[]),
            batch: None,
            start: &|| home.clone(),
            target,
            work,
            known: LossCache::default(),
        };
        let mut out = vec![view.energies()?.total];
        for observable in &self.origin.observables {
            let width = observable.components(target).map_or(1, |(_, l)| l.len());
            let at = out.len();
            out.resize(at + width, f64::NAN);
            observable.measure(&mut view, &mut out[at..])?;
        }
        Ok(out)
    }
}

/// A run, and what made it if it does not know.
pub type OfRun = Either<(Arc<Run>,), (Arc<Run>, Arc<Target>, Arc<ConfiguredSampler>)>;

/// The verb `verify`.
pub static VERIFY: Verb<Session, OfRun, Arc<Verification>> = Verb {
    name: "verify",
    arguments: &["run"],
    options: OPTIONS,
    doc: "Test the law of a run by short exact chains: do U and the observables drift when hybrid Monte Carlo takes over from its draws?\n\n\
         The run goes on beyond its end, in memory, at every temperature. Now and then hybrid Monte Carlo over all examples starts from where a chain is and makes a few \
         moves. If the run samples exp(-U/T), no mean changes; otherwise means move towards the right ones. `bias of the run` is what the drift says of the run's mean, \
         -drift/(1 - ρ), where ρ is the part of a deviation that the moves leave. Every line gives the bias that it would have detected. What all chains have missed, \
         such as a mode that none of them visited, no such test can find.\n\n\
         With `--device` the run goes on there, and the exact chains, in single precision, on this machine: with products in tf32 or bf16 the bias is also what rounding costs. \
         The cost is draws × moves × leapfrog gradients over all examples per temperature. For a run from `open(folder)`: verify(run, target, sampler), which tests U alone. \
         Fields: verdict, says, lines (maps of name, temperature, mean, bias, bias_mcse, relaxed, sigma, power, wrong).",
    example: "let t = target(potential::gaussian(#{ dim: 3 }));\nlet run = sample(t, sampler::langevin(#{ dt: 0.3 }), #{ steps: 2000, chains: 2, observe: [observable::norm2()] });\nverify(run, #{ draws: 16 })",
    call: Call::Checked(of_run),
};

impl From<&Arc<Run>> for OfRun {
    fn from(run: &Arc<Run>) -> Self {
        Self::First((run.clone(),))
    }
}

impl From<(&Arc<Run>, &Arc<Target>, &Arc<ConfiguredSampler>)> for OfRun {
    fn from((run, target, sampler): (&Arc<Run>, &Arc<Target>, &Arc<ConfiguredSampler>)) -> Self {
        Self::Second((run.clone(), target.clone(), sampler.clone()))
    }
}

fn of_run(of: OfRun, o: &Options, session: &Session) -> Result<Arc<Verification>> {
    let (run, given) = match of {
        Either::First((run,)) => (run, None),
        Either::Second((run, target, sampler)) => {
            let observables = Vec::new();
            (
                run,
                Some(Origin {
                    target,
                    sampler,
                    observables,
                }),
            )
        }
    };
    let origin = given.as_ref().or(run.origin.as_ref()).ok_or_else(|| {
        anyhow::anyhow!("verify: this run was opened from its folder; give its target and its sampler too: verify(run, target, sampler)")
    })?;
    verify(&run, origin, o, session).map(Arc::new)
}
