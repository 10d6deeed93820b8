//! Verification of a run by short exact chains: do U and the observables drift when hybrid Monte Carlo takes over from its draws?
//!
//! The run goes on beyond its end, in memory. Now and then hybrid Monte Carlo, over all examples and with its accept/reject step, starts from
//! where a chain is. If the run samples exp(-U/T), what the exact chain does leaves every mean as it is; if not, means move towards the right
//! ones. Before and after are compared draw by draw, which removes most of the noise. A move that keeps the part ρ of a deviation shows
//! (1 - ρ)·bias, so that a drift of d says that the run is off by -d/(1 - ρ).

use super::judge::percent;
use super::plan::Plan;
use super::progress::Progress;
use super::run::Run;
use super::session::{self, Session};
use super::state::{Slot, State};
use super::summary::with_error;
use crate::diagnostic::verdict::{MOST_ERROR, Test, most_sigma};
use crate::diagnostic::{Verdict, mcse_mean, mean, sd};
use crate::engine::host::Chain;
use crate::error::{Interrupted, Result};
use crate::observable::{Handle, Known, View};
use crate::options::{Kind, Options, Range, Spec, Value, option};
use crate::sampler::{Configured, named};
use crate::schedule::Schedule;
use crate::store::checkpoint::{self, TensorData};
use crate::table::Table;
use crate::target::{Target, Workspace};
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Options of `verify(run, #{…})`.
pub const OPTIONS: &[Spec] = &[
    option(
        "draws",
        Kind::Int(Range::Between(8.0, 1e6)),
        "200",
        "Exact chains per temperature; as many starts as the run's chains give, one after the other.",
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

/// What made a run: needed to go on with it.
#[derive(Clone)]
pub struct Origin {
    /// What was sampled.
    pub target: Arc<Target>,
    /// By what.
    pub sampler: Arc<Configured>,
    /// What was observed.
    pub observables: Vec<Handle>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?}", self.sampler, self.target)
    }
}

/// One quantity at one temperature.
#[derive(Debug, Clone)]
pub struct Line {
    /// "U", or the name of an observable.
    pub name: String,
    /// T.
    pub temperature: f64,
    /// Its mean over the run's draws.
    pub mean: f64,
    /// By how much the run's mean is off, and the standard error of that.
    pub bias: (f64, f64),
    /// 1 - ρ, the part of a deviation that the moves remove.
    pub relaxed: f64,
    /// The drift, in standard errors.
    pub sigma: f64,
    /// The least bias that would have been found.
    pub power: f64,
    /// Whether the drift is beyond chance, and large enough to matter.
    pub wrong: bool,
}

/// What exact chains say of a run.
#[derive(Debug, Clone)]
pub struct Verification {
    /// Name of the run.
    pub run: String,
    /// U first, then the observables, temperature by temperature.
    pub lines: Vec<Line>,
    /// Exact chains per temperature.
    pub draws: usize,
    /// Moves of each.
    pub moves: usize,
}

/// Verify a run whose target, sampler and observables are these.
pub fn verify(run: &Run, origin: &Origin, o: &Options, session: &Session) -> Result<Verification> {
    let (target, sampler) = (&origin.target, &origin.sampler);
    check(run, origin)?;
    let chains = run.failures.iter().filter(|f| f.is_none()).count();
    anyhow::ensure!(chains > 0, "verify: every chain of the run failed");
    let draws = match session.quick {
        true => o.size("draws")?.min(16),
        false => o.size("draws")?,
    };
    let work = Work {
        run,
        origin,
        hmc: hmc(o.int("leapfrog")?)?,
        moves: o.int("moves")?,
        draws: draws.div_ceil(run.info.chains).max(4),
        apart: apart(run)?,
        done: AtomicU64::new(0),
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
    let progress = Progress::new(session, "verify", "exact chains", total, 0);
    let slots = state.slots(&plan, None, &(0..0));
    let temperature = |chain: usize| match &run.ladders {
        Some(l) => l.temperatures[l.rung_of(chain)],
        None => run.info.temperatures[chain / run.info.chains],
    };
    let tasks = slots.into_iter().map(|slot| {
        let t = temperature(slot.chain.index);
        (slot, t)
    });
    let queue = Mutex::new(tasks);
    let found = Mutex::new(Vec::new());
    let worker = || -> Result<()> {
        let mut workspace = Workspace::new(1);
        loop {
            let next = queue.lock().unwrap_or_else(|e| e.into_inner()).next();
            let Some((mut slot, t)) = next else {
                return Ok(());
            };
            if work.failed(slot.chain.index) || !t.is_finite() {
                continue;
            }
            let pairs = work.follow(&mut slot, t, &mut workspace, &progress)?;
            let mut all = found.lock().unwrap_or_else(|e| e.into_inner());
            all.push((slot.chain.index, t, pairs));
        }
    };
    let outcome = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..session.threads.max(1))
            .map(|_| scope.spawn(worker))
            .collect();
        let each = threads.into_iter().map(|t| {
            let panicked = |_| Err(anyhow::anyhow!("verify: a thread panicked"));
            t.join().unwrap_or_else(panicked)
        });
        each.collect::<Result<Vec<_>>>()
    });
    progress.finish();
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
        "verify: the run was made by sampler::{}, with other options than the sampler that is given",
        info.sampler
    );
    anyhow::ensure!(
        info.target == origin.target.describe() && info.parameters == origin.target.dim(),
        "verify: the run is of another target than the one that is given"
    );
    anyhow::ensure!(
        !info.coupled,
        "verify: the chains of sampler::{} act on each other, and cannot go on one by one",
        info.sampler
    );
    anyhow::ensure!(
        info.steady,
        "verify: the temperature of the run changes; there is no law to hold it to"
    );
    Ok(())
}

/// Hybrid Monte Carlo that finds its step size in burn-in.
fn hmc(leapfrog: u64) -> Result<Arc<Configured>> {
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
fn restored(run: &Run, target: &Target, sampler: &Configured) -> Result<State> {
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

/// Values of all quantities, before and after, per draw.
type Pairs = Vec<[Vec<f64>; 2]>;

/// What the threads share.
struct Work<'a> {
    run: &'a Run,
    origin: &'a Origin,
    hmc: Arc<Configured>,
    moves: u64,
    draws: usize,
    apart: u64,
    done: AtomicU64,
}

impl Work<'_> {
    fn failed(&self, chain: usize) -> bool {
        match &self.run.ladders {
            // Failures of a run of ladders are those of places.
            Some(l) => self.run.failures[l.place_of(chain)].is_some(),
            None => self.run.failures[chain].is_some(),
        }
    }

    /// Go on with a chain, and let exact chains start from it.
    fn follow(
        &self,
        slot: &mut Slot,
        temperature: f64,
        work: &mut Workspace,
        progress: &Progress,
    ) -> Result<Pairs> {
        let whole = self.run.info.ladder.is_none() || self.run.info.prior_tempered;
        let target = match whole {
            true => std::borrow::Cow::Borrowed(&*self.origin.target),
            false => self.origin.target.tempered(temperature),
        };
        let sampler = &self.origin.sampler;
        slot.chain.temperature = temperature;
        let mut exact = Exact::new(&target, &self.hmc, &slot.chain);
        let mut info = vec![0.0; sampler.slots(&target)];
        let mut out = Vec::with_capacity(self.draws);
        for _ in 0..self.draws {
            let mut since = 0;
            // A sampler that explores in between has draws in the rest of its cycle only.
            while since < self.apart || !sampler.samples(slot.chain.step - 1) {
                if session::interrupted() {
                    let what = "a verification, of which nothing is kept".into();
                    return Err(Interrupted { what }.into());
                }
                let step = |chains: &mut crate::engine::Chains| sampler.step(chains);
                if let Some(reason) = slot.chain.lend(&target, work, &mut info, step)? {
                    anyhow::bail!("verify: a chain failed: {reason}");
                }
                slot.chain.step += 1;
                since += 1;
            }
            out.push(exact.move_from(slot.chain.w, self, &target, work)?);
            progress.set(self.done.fetch_add(1, Ordering::Relaxed) + 1, 0);
        }
        Ok(out)
    }

    /// U and the observables of a chain.
    fn measure(&self, chain: &Chain, target: &Target, work: &mut Workspace) -> Result<Vec<f64>> {
        let home = &self.run.params[chain.index % self.run.params.len()];
        let mut view = View {
            chain,
            vector_names: &[],
            info: (&[], &[]),
            batch: None,
            start: &|| home.clone(),
            target,
            work,
            known: Known::default(),
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

/// An exact chain, started again and again.
struct Exact {
    hmc: Arc<Configured>,
    w: Vec<f32>,
    vectors: Vec<Vec<f32>>,
    scalars: Vec<f64>,
    info: Vec<f64>,
    /// Whether the step size was found.
    ready: bool,
    index: usize,
    seed: u64,
    temperature: f64,
    step: u64,
}

/// Moves in which the exact chain finds its step size.
const PILOT: u64 = 60;

impl Exact {
    fn new(target: &Target, hmc: &Arc<Configured>, from: &Chain) -> Self {
        let n = target.dim();
        Self {
            w: vec![0.0; n],
            vectors: vec![vec![0.0; n]; hmc.vectors.len()],
            scalars: vec![0.0; hmc.scalars.len()],
            info: vec![0.0; hmc.slots(target)],
            hmc: hmc.clone(),
            ready: false,
            index: from.index,
            // Its random numbers must be others than those of the chain.
            seed: from.seed ^ 0x7665_7269_6679,
            temperature: from.temperature,
            step: 0,
        }
    }

    fn with<R>(&mut self, burn_in: u64, f: impl FnOnce(&mut Chain, &mut [f64]) -> R) -> R {
        let mut chain = Chain {
            index: self.index,
            group: 0,
            step: self.step,
            seed: self.seed,
            temperature: self.temperature,
            burn_in,
            w: &mut self.w,
            vectors: self.vectors.iter_mut().map(Vec::as_mut_slice).collect(),
            scalars: &mut self.scalars,
        };
        f(&mut chain, &mut self.info)
    }

    fn go(
        &mut self,
        moves: u64,
        burn_in: u64,
        target: &Target,
        work: &mut Workspace,
    ) -> Result<()> {
        let hmc = self.hmc.clone();
        for _ in 0..moves {
            if session::interrupted() {
                let what = "a verification, of which nothing is kept".into();
                return Err(Interrupted { what }.into());
            }
            self.with(burn_in, |chain, info| {
                chain.lend(target, work, info, |chains| hmc.step(chains))
            })?;
            self.step += 1;
        }
        Ok(())
    }

    fn start(&mut self, w: &[f32], target: &Target, work: &mut Workspace) -> Result<()> {
        self.w.copy_from_slice(w);
        let hmc = self.hmc.clone();
        let init = |chain: &mut Chain, info: &mut [f64]| {
            chain.lend(target, work, info, |chains| hmc.init(chains))
        };
        self.with(0, init).map(drop)
    }

    /// U and the observables at `w` and after the moves.
    fn move_from(
        &mut self,
        w: &[f32],
        of: &Work,
        target: &Target,
        work: &mut Workspace,
    ) -> Result<[Vec<f64>; 2]> {
        if !self.ready {
            self.start(w, target, work)?;
            self.go(PILOT, PILOT, target, work)?;
            let at = self.hmc.scalars.iter().position(|s| *s == "dt");
            let found = at.map(|at| self.scalars[at]);
            // A step size that is given is not looked for again.
            if let Some(fixed) = found.map(|dt| self.hmc.with("dt", dt)).transpose()? {
                self.hmc = fixed.unwrap_or_else(|| self.hmc.clone());
            }
            self.ready = true;
        }
        self.start(w, target, work)?;
        let before = self.with(0, |chain, _| of.measure(chain, target, work))?;
        self.go(of.moves, 0, target, work)?;
        let after = self.with(0, |chain, _| of.measure(chain, target, work))?;
        Ok([before, after])
    }
}

/// The drift of every quantity at every temperature.
fn lines(run: &Run, origin: &Origin, found: &[(usize, f64, Pairs)]) -> Vec<Line> {
    let mut names = vec!["U".to_string()];
    for observable in &origin.observables {
        match observable.components(&origin.target) {
            None => names.push(observable.name()),
            Some((_, labels)) => {
                let name = observable.name();
                names.extend(labels.iter().map(|l| format!("{name}_{l}")));
            }
        }
    }
    let finite = run.info.temperatures.iter().filter(|t| t.is_finite());
    let count = names.len() * finite.clone().count();
    let mut out = Vec::new();
    for t in finite {
        let here: Vec<_> = found.iter().filter(|(_, at, _)| at == t).collect();
        for (k, name) in names.iter().enumerate() {
            let of = |part: usize| -> Vec<Vec<f64>> {
                let chain = |pairs: &Pairs| pairs.iter().map(|p| p[part][k]).collect();
                here.iter().map(|(.., pairs)| chain(pairs)).collect()
            };
            out.extend(line(name, *t, &of(0), &of(1), count));
        }
    }
    out
}

/// Of one quantity; none if it is constant, or is not finite.
fn line(
    name: &str,
    temperature: f64,
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    count: usize,
) -> Option<Line> {
    let (mean_before, mean_after) = (mean(before), mean(after));
    let (wide, wide_after) = (sd(before), sd(after));
    if !(wide > 0.0 && wide_after > 0.0 && mean_after.is_finite()) {
        return None;
    }
    let pairs = || before.iter().flatten().zip(after.iter().flatten());
    let n = pairs().count() as f64;
    let product: f64 = pairs()
        .map(|(b, a)| (b - mean_before) * (a - mean_after))
        .sum();
    let kept = product / ((n - 1.0) * wide * wide_after);
    let relaxed = (1.0 - kept).clamp(1e-3, 1.0);
    let drift: Vec<Vec<f64>> = before
        .iter()
        .zip(after)
        .map(|(b, a)| b.iter().zip(a).map(|(b, a)| a - b).collect())
        .collect();
    let test = Test {
        name: name.into(),
        deviation: mean_after - mean_before,
        error: mcse_mean(&drift),
        tolerance: 0.0,
        ess: n,
    };
    let bias = (-test.deviation / relaxed, test.error / relaxed);
    // What matters: a hundredth of the mean, or where the mean is about 0 a twentieth of the spread.
    let matters = match mean_before.abs() > wide {
        true => 0.01 * mean_before.abs(),
        false => 0.05 * wide,
    };
    Some(Line {
        name: name.into(),
        temperature,
        mean: mean_before,
        relaxed,
        sigma: test.sigma() * test.deviation.signum(),
        power: most_sigma(count) * bias.1,
        wrong: test.fails(count) && bias.0.abs() > matters,
        bias,
    })
}

impl Verification {
    /// Wrong if anything drifts; not yet if U could be off by more than 2 % unseen.
    pub fn verdict(&self) -> Verdict {
        let of_u = self.lines.iter().filter(|l| l.name == "U");
        let blind = of_u.clone().any(|l| l.power > MOST_ERROR * l.mean.abs());
        match self.lines.iter().any(|l| l.wrong) {
            true => Verdict::Wrong,
            false if of_u.count() == 0 => Verdict::NotJudged,
            false if blind => Verdict::NotYet,
            false => Verdict::Converged,
        }
    }

    /// What was found, and what would have been, in a sentence.
    pub fn says(&self) -> String {
        let part = |x: f64, l: &Line| percent(x / l.mean.abs());
        let wrong: Vec<_> = self
            .lines
            .iter()
            .filter(|l| l.wrong)
            .map(|l| {
                let sign = if l.bias.0 > 0.0 {
                    "too large"
                } else {
                    "too small"
                };
                let off = part(l.bias.0.abs(), l);
                format!(
                    "{} at T = {:.3e} is {off} {sign} ({:.1} standard errors)",
                    l.name,
                    l.temperature,
                    l.sigma.abs()
                )
            })
            .collect();
        if !wrong.is_empty() {
            return format!("WRONG: {}", wrong.join(", "));
        }
        let of_u = self.lines.iter().filter(|l| l.name == "U");
        let blind = of_u.map(|l| l.power / l.mean.abs()).fold(0.0, f64::max);
        match self.verdict() {
            Verdict::NotYet => format!(
                "NOT YET: nothing drifts, but U could be off by {} unseen; take more draws",
                percent(blind)
            ),
            _ => format!(
                "nothing drifts; a bias of {} of U would have been seen",
                percent(blind)
            ),
        }
    }

    /// As a map: `verdict`, `says` and `lines`, a map each.
    pub fn to_json(&self) -> Json {
        let line = |l: &Line| {
            json!({
                "name": l.name, "temperature": l.temperature, "mean": l.mean, "bias": l.bias.0, "bias_mcse": l.bias.1,
                "relaxed": l.relaxed, "sigma": l.sigma, "power": l.power, "wrong": l.wrong,
            })
        };
        json!({
            "run": self.run, "draws": self.draws, "moves": self.moves, "verdict": self.verdict(), "says": self.says(),
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }

    /// A row per temperature and quantity.
    pub fn table(&self) -> Table {
        let mut out = Table::new([
            "T",
            "quantity",
            "mean",
            "bias of the run",
            "drift, σ",
            "would have seen",
        ])
        .line_above(format!(
            "'{}' against {} exact chains of {} moves per temperature",
            self.run, self.draws, self.moves
        ));
        for l in &self.lines {
            out.push([
                format!("{:.3e}", l.temperature),
                l.name.clone(),
                with_error(l.mean, l.bias.1),
                with_error(l.bias.0, l.bias.1),
                format!("{:+.1}", l.sigma),
                with_error(l.power, f64::NAN),
            ]);
        }
        out.below.push(self.says());
        out
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}
