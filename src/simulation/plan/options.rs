//! What `sample`, `sweep` and `exchange` may be told, and the plan that follows from it.

use super::Plan;
use crate::error::Result;
use crate::observable::{Handle, Observable};
use crate::options::{Kind, Options, Range, Spec, Value, option, optional, required};
use crate::sampler::ConfiguredSampler;
use crate::schedule::Schedule;
use crate::simulation::exchange::{self, Exchange, Pairs};
use crate::simulation::keep::Keep;
use crate::simulation::session::{self, Session};
use crate::simulation::temper::{self, Temper};
use crate::simulation::until::{Course, FIRST, UNTIL, Until};
use crate::trigger::Trigger;
use crate::verb::RESUME;
use anyhow::Context;

/// Options that `sample`, `sweep` and `exchange` share.
macro_rules! run_options {
    ($($own:expr),+; $every:expr) => {
        &[
            $($own,)+
            optional("steps", Kind::Int(Range::Between(1.0, 1e14)), "it must be given, unless `until` is: 1000 steps then", "Steps per chain, burn-in included; with `until` those up to the first look."),
            UNTIL,
            option("chains", Kind::Int(Range::Between(1.0, 1e6)), "4", "Chains per temperature."),
            optional("start", Kind::Object("Parameters"), "drawn by the model, differently for each chain", "Where chains start: a result of `train`, `run.params()` or `parameters([…])`; chains take its vectors in turn."),
            option("burn_in", Kind::Float(Range::NonNegative), "0.5", "Fraction of the steps (if below 1) or number of steps (if 1 or more) that is discarded; adaptive samplers adapt during it."),
            $every,
            optional("observe", Kind::Objects("Observable"), "[observable::cost(), observable::norm2()]", "What to record."),
            optional("keep", Kind::Trigger, "none", "When to keep the parameters themselves, after burn-in: every so many steps, or a trigger. They go to draws.zarr in the run's folder, which xarray opens; `run.draw`, `run.kept` and `observe` read them. A multiple of `every` keeps what is recorded."),
            optional("keep_draws", Kind::Int(Range::Between(1.0, 1e7)), "none", "Keep so many draws per chain, evenly spaced after burn-in; in the place of `keep`."),
            optional("keep_tensors", Kind::Anything("array of names"), "all", "Keep only these tensors of the model. `run.kept(name, chain)` has them; `run.draw`, `observe`, `overlaps`, `two_time` and `predict` need all."),
            option("keep_as", Kind::Choice(&["f32", "f16"]), "f32", "How draws are kept: as they are, or in half precision."),
            optional("predict", Kind::Anything("name of a split, or array of them"), "none", "Splits (\"train\", \"test\", \"validation\") on which the posterior prediction is averaged over the recorded draws after burn-in, without keeping them; see run.prediction."),
            option("region", Kind::Float(Range::Positive), "1000", "A chain whose |w| exceeds this many times max(|w_start|, √N) has left its region and is stopped as failed."),
            optional("seed", Kind::Int(Range::NonNegative), "from --seed and the name of the run", "Seed of this run. Runs with the same seed share their noise, step by step."),
            optional("name", Kind::Text, "sample-1, sweep-1, …", "Name of the run and of its folder."),
            RESUME,
        ]
    };
}

const EVERY: Spec = option(
    "every",
    Kind::Trigger,
    "100",
    "When to make a record: every so many steps, or a trigger.",
);

const TEMPER: Spec = option(
    "temper",
    Kind::Choice(temper::NAMES),
    "energy",
    "What is divided by T: all of U, exp(-(s·L + R)/T); the likelihood only, exp(-s·L/T - R); or the prior only, exp(-s·L - R/T).",
);

/// Options of `sample(target, sampler, #{…})`.
pub const SAMPLE_OPTIONS: &[Spec] = run_options!(option(
    "temperature",
    Kind::Schedule(Range::Positive),
    "1",
    "T, a number or a schedule."
), TEMPER; EVERY);

/// Options of `sweep(target, sampler, #{…})`.
pub const SWEEP_OPTIONS: &[Spec] = run_options!(required(
    "temperatures",
    Kind::Floats(Range::Positive),
    "The temperatures; each has its own chains."
), TEMPER; EVERY);

/// Options of `exchange(target, sampler, #{…})`.
pub const EXCHANGE_OPTIONS: &[Spec] = run_options!(
    required(
        "temperatures",
        Kind::Floats(Range::Positive),
        "The ladder, at least two temperatures; logspace(1.0, 1000.0, 12) is a geometric one."
    ),
    option(
        "prior_rung",
        Kind::Bool,
        "false",
        "Put one more rung on top, at β = 1/T = 0, whose parameters are drawn from the prior afresh at every step; evidence needs it."
    ),
    option(
        "tune",
        Kind::Int(Range::Between(0.0, 16.0)),
        "0",
        "Rounds of doubling length, during burn-in, after each of which the rungs between the ends are respaced so that all rejections are equal."
    ),
    optional(
        "swap_every",
        Kind::Int(Range::AtLeast(1.0)),
        "1 for samplers that accept or reject, else 100",
        "Steps from one swap to the next."
    ),
    option(
        "pairs",
        Kind::Choice(&["alternating", "random"]),
        "alternating",
        "Which neighbours try to swap: even and odd pairs in turn (Syed et al. 2022), or as many random pairs as rungs (Baldock 2019)."
    ),
    option(
        "temper",
        Kind::Choice(temper::NAMES),
        "likelihood",
        "What is divided by T: s·L only, exp(-s·L/T - R), so that the hot end is the prior; or all of U, as sample and sweep do unless told; or R only."
    ),
    option(
        "minimise",
        Kind::Int(Range::NonNegative),
        "0",
        "Steps of rough minimisation of U before burn-in, from each replica's start (Baldock 2019, algorithm 2)."
    ),
    option(
        "from_prior",
        Kind::Bool,
        "false",
        "Start at draws from the prior instead of the model's initial parameters; not with `start`."
    );
    optional("every", Kind::Trigger, "at every swap", "When to make a record: every so many steps, or a trigger.")
);

/// The names in the option `predict`.
fn splits(o: &Options) -> Result<Vec<String>> {
    let wrong = || {
        anyhow::anyhow!(
            "{}: option 'predict' must be \"train\", \"test\" or \"validation\", or an array of these",
            o.owner()
        )
    };
    let text = |v: &Value| match v {
        Value::Text(t) => Ok(t.clone()),
        _ => Err(wrong()),
    };
    match o.get("predict") {
        None => Ok(Vec::new()),
        Some(Value::List(list)) => list.iter().map(text).collect(),
        Some(one) => Ok(vec![text(one)?]),
    }
}

/// Draws that can be kept per chain.
const MOST_DRAWS: usize = 10_000_000;

/// The draws to be kept, by the options `keep`, …; `quick` divides the steps between them.
fn keep(
    kind: &str,
    o: &Options,
    (burn_in, steps): (u64, u64),
    quick: impl Fn(&mut Trigger),
) -> Result<Option<Keep>> {
    let tensors = o.names("keep_tensors")?;
    let mut trigger = trigger(o, "keep");
    let steps = match (&mut trigger, o.opt_int("keep_draws")) {
        (Some(_), Some(_)) => {
            anyhow::bail!("{kind}: options 'keep' and 'keep_draws' are both given; one says when")
        }
        (None, None) => {
            anyhow::ensure!(
                tensors.is_empty(),
                "{kind}: option 'keep_tensors' says what to keep, but not when; give 'keep' or 'keep_draws', too"
            );
            return Ok(None);
        }
        (Some(trigger), None) => {
            quick(trigger);
            let count = trigger.count(steps) - trigger.count(burn_in);
            anyhow::ensure!(
                count <= MOST_DRAWS,
                "{kind}: option 'keep' asks for {count} draws per chain; {MOST_DRAWS} are the most"
            );
            trigger.steps(burn_in, steps)
        }
        (None, Some(draws)) => {
            let left = steps - burn_in;
            let place =
                |k: u64| burn_in + (u128::from(left) * u128::from(k) / u128::from(draws)) as u64;
            let mut all: Vec<_> = (1..=draws).map(place).collect();
            all.dedup();
            all.retain(|s| *s > burn_in);
            all
        }
    };
    anyhow::ensure!(
        !steps.is_empty(),
        "{kind}: option 'keep' never comes up after burn-in; keep more often, or take more steps"
    );
    let half = o.text("keep_as")? == "f16";
    Ok(Some(Keep {
        steps,
        trigger,
        tensors,
        half,
    }))
}

/// Fewer steps from one time to the next where a run is cut, so that there are twenty, but no more than need be: records cost data passes.
fn quicken(trigger: &mut Trigger, full: u64, (burn_in, steps): (u64, u64)) {
    match trigger {
        Trigger::Every(n) => *n = (*n / 5).min((steps - burn_in) / 20).max(1),
        Trigger::At(at) => at
            .iter_mut()
            .for_each(|s| *s = (*s as f64 * steps as f64 / full as f64).ceil() as u64),
        Trigger::Logarithmic { .. } | Trigger::Cyclical { .. } => {}
    }
}

/// A trigger, if it is given.
fn trigger(o: &Options, name: &str) -> Option<Trigger> {
    match o.get(name) {
        Some(Value::Object(t, _)) => t.downcast_ref::<Trigger>().cloned(),
        _ => o.opt_int(name).map(Trigger::Every),
    }
}

/// Steps of burn-in, by the option `burn_in`: a part of the steps (below 1), or a number of them.
pub fn burn_in(kind: &str, o: &Options, steps: u64) -> Result<u64> {
    let given = o.float("burn_in")?;
    let warm = match given < 1.0 {
        true => (given * steps as f64) as u64,
        false => given as u64,
    };
    anyhow::ensure!(
        warm < steps,
        "{kind}: option 'burn_in' is {given}, which leaves nothing of {steps} steps"
    );
    Ok(warm)
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
        let mut steps = match (o.opt_int("steps"), o.get(UNTIL.name)) {
            (Some(steps), _) => steps,
            (None, Some(_)) => FIRST,
            (None, None) => anyhow::bail!(
                "{kind} needs the option 'steps' (integer): steps per chain, burn-in included; or 'until', to go on until the chains have converged"
            ),
        };
        let until = Until::from_options(o, steps)?;
        let mut every = trigger(o, "every").unwrap_or(Trigger::Every(100));
        let mut warm = burn_in(kind, o, steps)?;
        let mut full_steps = None;
        if session.quick && (steps > 400 || until.is_some()) {
            full_steps = Some(steps);
            let mut cut = (steps / 50).max(400).min(steps);
            if let Trigger::Cyclical { cycle, .. } = every {
                // Two cycles, or nothing would be recorded.
                cut = cut.max(2 * cycle).min(steps);
            }
            warm = (warm as f64 / steps as f64 * cut as f64) as u64;
            steps = cut;
        }
        let first = steps;
        let quick = |trigger: &mut Trigger| {
            if let Some(full) = full_steps {
                quicken(trigger, full, (warm, first));
            }
        };
        quick(&mut every);
        let mut observables: Vec<Handle> = o.objects::<Box<dyn Observable>>("observe");
        if o.get("observe").is_none() {
            let none = Options::check("observable", &[], Vec::new())?;
            observables.push((crate::observable::basic::COST.build)(&none)?);
            observables.push((crate::observable::basic::NORM2.build)(&none)?);
        }
        let course = until.map(|until| Course {
            until: Until {
                // A smoke run is over after its first look.
                at_most: until.at_most.filter(|_| !session.quick).or(Some(first)),
                ..until
            },
            first,
            burn_in: warm,
        });
        if let Some(course) = &course {
            anyhow::ensure!(
                o.opt_int("keep_draws").is_none(),
                "{kind}: option 'keep_draws' divides steps of which 'until' does not say how many there will be; give 'keep'"
            );
            steps = course.until.at_most.unwrap_or(steps);
        }
        let name = session.name_run(kind, o.opt_text("name"))?;
        Ok(Self {
            kind,
            name: name.clone(),
            temperatures,
            chains: o.size("chains")?,
            start: o.object("start"),
            steps,
            course,
            burn_in: warm,
            keep: keep(kind, o, (warm, steps), quick)?,
            every,
            observables,
            predict: splits(o)?,
            region: o.float("region")?,
            seed: o
                .opt_int("seed")
                .unwrap_or_else(|| session::seed_of(session.seed, &name)),
            full_steps,
            temper: Temper::named(o.text("temper")?),
            exchange: None,
        })
    }

    /// From the checked options of `exchange`.
    pub fn exchanging(o: &Options, sampler: &ConfiguredSampler, session: &Session) -> Result<Self> {
        let mut plan = Self::from_options("exchange", o, session)?;
        let kind = plan.kind;
        let mut ladder = o.floats("temperatures").unwrap_or_default();
        ladder.sort_unstable_by(f64::total_cmp);
        if o.bool("prior_rung")? {
            ladder.push(f64::INFINITY);
        }
        exchange::betas_of(&ladder).with_context(|| format!("{kind}: option 'temperatures'"))?;
        plan.temperatures = ladder.into_iter().map(Schedule::Constant).collect();
        let own = if sampler.energy_scalar().is_some() {
            1
        } else {
            100
        };
        let mut every = o.opt_int("swap_every").unwrap_or(own);
        if plan.full_steps.is_some() {
            // Twenty swaps, or there is nothing to see.
            every = every.min((plan.steps / 20).max(1));
        }
        anyhow::ensure!(
            every < plan.steps,
            "{kind}: option 'swap_every' is {every}, so that nothing is ever swapped in {} steps",
            plan.steps
        );
        if o.get("every").is_none() {
            plan.every = Trigger::Every(every);
        }
        let from_prior = o.bool("from_prior")?;
        anyhow::ensure!(
            !from_prior || plan.start.is_none(),
            "{kind}: options 'start' and 'from_prior' are both given"
        );
        let mut out = Exchange {
            every,
            pairs: match o.text("pairs")? {
                "random" => Pairs::Random,
                _ => Pairs::Alternating,
            },
            rounds: o.int("tune")? as u32,
            minimise: o.int("minimise")?,
            from_prior,
        };
        let swaps = plan.burn_in / every;
        let fits = |x: &Exchange| x.round_ends(swaps).first().is_none_or(|first| *first >= 2);
        if plan.full_steps.is_some() {
            while !fits(&out) {
                out.rounds -= 1;
            }
        }
        anyhow::ensure!(
            fits(&out),
            "{kind}: option 'tune' asks for {} rounds, for which {swaps} swaps in burn-in are too few; take more steps or fewer rounds",
            out.rounds
        );
        plan.exchange = Some(out);
        Ok(plan)
    }
}
