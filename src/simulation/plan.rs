//! Plans: everything that defines a run, checked before its first step.

use super::exchange::{self, Exchange, Pairs};
use super::prediction::Predictor;
use super::run::{Column, Group, REPLICA, RunInfo, TEMPERED_ENERGY};
use super::session::{self, Session};
use super::state::State;
use crate::error::Result;
use crate::kernels::update::dot;
use crate::memory;
use crate::observable::{Handle, Observable};
use crate::options::{Kind, Options, Range, Spec, Value, option, optional, required};
use crate::rng::{Purpose, Stream};
use crate::sampler::Configured;
use crate::schedule::Schedule;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use anyhow::Context;
use std::sync::Arc;

/// Options that `sample`, `sweep` and `exchange` share.
macro_rules! run_options {
    ($($own:expr),+; $every:expr) => {
        &[
            $($own,)+
            required("steps", Kind::Int(Range::Between(1.0, 1e14)), "Steps per chain, burn-in included."),
            option("chains", Kind::Int(Range::Between(1.0, 1e6)), "4", "Chains per temperature."),
            optional("start", Kind::Object("Parameters"), "drawn by the model, differently for each chain", "Where chains start: a result of `train`, `run.params()` or `parameters([…])`; vectors are dealt out in turn."),
            option("burn_in", Kind::Float(Range::NonNegative), "0.5", "Part of the steps (below 1) or number of steps (from 1) that is not used; adaptive samplers adapt in it."),
            $every,
            optional("observe", Kind::Objects("Observable"), "[observable::cost(), observable::norm2()]", "What to record."),
            optional("predict", Kind::Anything("name of a split, or array of them"), "none", "Splits (\"train\", \"test\", \"validation\") on which the posterior prediction is averaged over the recorded draws after burn-in, without keeping them; see run.prediction."),
            option("region", Kind::Float(Range::Positive), "1000", "A chain whose |w| exceeds this many times max(|w_start|, √N) has left its region and is stopped as failed."),
            optional("seed", Kind::Int(Range::NonNegative), "from --seed and the name of the run", "Seed of this run. Runs of equal seed share their noise, step by step."),
            optional("name", Kind::Text, "sample-1, sweep-1, …", "Name of the run and of its folder."),
        ]
    };
}

const EVERY: Spec = option(
    "every",
    Kind::Trigger,
    "100",
    "When to make a record: every so many steps, or a trigger.",
);

/// Options of `sample(target, sampler, #{…})`.
pub const SAMPLE_OPTIONS: &[Spec] = run_options!(option(
    "temperature",
    Kind::Schedule(Range::Positive),
    "1",
    "T, a number or a schedule."
); EVERY);

/// Options of `sweep(target, sampler, #{…})`.
pub const SWEEP_OPTIONS: &[Spec] = run_options!(required(
    "temperatures",
    Kind::Floats(Range::Positive),
    "The temperatures; each has its own chains."
); EVERY);

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
        "Rounds of doubling length, during burn-in, after each of which the rungs between the ends are spaced to equal rejection."
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
        Kind::Choice(&["likelihood", "energy"]),
        "likelihood",
        "What is divided by T: s·L only, exp(-s·L/T - R), so that the hot end is the prior; or all of U, as sample and sweep do."
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

/// Everything that defines a run.
pub struct Plan {
    /// "sample", "sweep" or "exchange".
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
    /// Splits whose posterior prediction is averaged.
    pub predict: Vec<String>,
    /// See the option `region`.
    pub region: f64,
    /// Seed.
    pub seed: u64,
    /// Steps before --quick cut them, if it did.
    pub full_steps: Option<u64>,
    /// How chains exchange temperatures, if they do.
    pub exchange: Option<Exchange>,
}

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

/// Where chains start. Points that the model draws are drawn again whenever they are asked for, instead of being kept.
#[derive(Clone)]
pub struct Starts {
    given: Option<Arc<Parameters>>,
    /// Number of chains.
    pub count: usize,
    per_temperature: usize,
    seed: u64,
    from_prior: bool,
}

impl Starts {
    /// The start of one chain.
    pub fn of(&self, chain: usize, target: &Target) -> Arc<Vec<f32>> {
        let Some(p) = &self.given else {
            let stream = Stream::new(self.seed, Purpose::Initialise, chain, 0);
            if self.from_prior {
                let mut w = vec![0.0; target.dim()];
                target.prior().draw(&stream, &mut w);
                return Arc::new(w);
            }
            return Arc::new(target.potential().initialise(stream));
        };
        // As many vectors as chains: one each. Otherwise the chains of every temperature get them in turn.
        let turn = chain % self.per_temperature % p.vectors.len();
        p.vectors[if p.vectors.len() == self.count {
            chain
        } else {
            turn
        }]
        .clone()
    }
}

impl Plan {
    /// Chains at temperature 1 without burn-in, of which nothing is recorded: what other plans are made from.
    pub fn bare(
        kind: &'static str,
        (chains, start): (usize, Option<Arc<Parameters>>),
        steps: u64,
        seed: u64,
    ) -> Self {
        Self {
            kind,
            name: kind.into(),
            temperatures: vec![Schedule::Constant(1.0)],
            chains,
            start,
            steps,
            burn_in: 0,
            every: Trigger::At(Vec::new()),
            observables: Vec::new(),
            predict: Vec::new(),
            region: 1000.0,
            seed,
            full_steps: None,
            exchange: None,
        }
    }

    /// The same at another temperature: `o` has `temperature`, `chains`, `start`.
    pub fn unrecorded(kind: &'static str, o: &Options, steps: u64, seed: u64) -> Result<Self> {
        let chains = (o.size("chains")?, o.object::<Parameters>("start"));
        Ok(Self {
            temperatures: vec![Schedule::Constant(o.float("temperature")?)],
            ..Self::bare(kind, chains, steps, seed)
        })
    }

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
            Some(Value::Object(t, _)) => t.downcast_ref::<Trigger>().cloned(),
            _ => None,
        }
        .unwrap_or(Trigger::Every(o.opt_int("every").unwrap_or(100)));
        let mut warm = burn_in(kind, o, steps)?;
        let mut full_steps = None;
        if session.quick && steps > 400 {
            full_steps = Some(steps);
            let mut cut = (steps / 50).max(400);
            if let Trigger::Cyclical { cycle, .. } = every {
                // Two cycles, or nothing would be recorded.
                cut = cut.max(2 * cycle).min(steps);
            }
            warm = (warm as f64 / steps as f64 * cut as f64) as u64;
            steps = cut;
            // Fewer steps between records, so that twenty are made, but no more records than need be: they cost data passes.
            match &mut every {
                Trigger::Every(n) => *n = (*n / 5).min((cut - warm) / 20).max(1),
                Trigger::At(at) => at.iter_mut().for_each(|s| {
                    *s = (*s as f64 * cut as f64 / o.int("steps").unwrap_or(1) as f64).ceil() as u64
                }),
                Trigger::Logarithmic { .. } | Trigger::Cyclical { .. } => {}
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
            predict: splits(o)?,
            region: o.float("region")?,
            seed: o
                .opt_int("seed")
                .unwrap_or_else(|| session::seed_of(session.seed, &name)),
            full_steps,
            exchange: None,
        })
    }

    /// From the checked options of `exchange`.
    pub fn exchanging(o: &Options, sampler: &Configured, session: &Session) -> Result<Self> {
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
            whole: o.text("temper")? == "energy",
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

    /// The highest finite temperature that the likelihood alone is divided by.
    pub fn hottest(&self) -> Option<f64> {
        let whole = self.exchange.as_ref().is_none_or(|x| x.whole);
        let all = self.temperatures.iter().map(|t| t.at(0));
        all.filter(|t| t.is_finite() && !whole).reduce(f64::max)
    }

    /// These chains before they start.
    pub(super) fn state(
        &self,
        index: Vec<usize>,
        target: &Target,
        sampler: &Configured,
        predictors: &[Predictor],
    ) -> Result<State> {
        let mut state = State::new(index, target, sampler, predictors);
        if self.exchange.is_some() {
            let ladder: Vec<_> = self.temperatures.iter().map(|t| t.at(0)).collect();
            state.climb(&ladder, self.chains)?;
        }
        Ok(state)
    }

    /// The points where the chains start; checked.
    pub(super) fn starts(&self, target: &Target) -> Result<Starts> {
        if let Some(x) = &self.exchange {
            let infinite = self.temperatures.iter().any(|t| t.at(0).is_infinite());
            anyhow::ensure!(
                target.prior().is_proper() || !(infinite || x.from_prior),
                "{}: nothing can be drawn from the prior '{}', which is no distribution; give the target prior::gaussian or prior::uniform_box",
                self.kind,
                target.prior().describe()
            );
            anyhow::ensure!(
                !(infinite && x.whole),
                "{}: option 'prior_rung' needs temper: \"likelihood\": with all of U tempered nothing is left at β = 0",
                self.kind
            );
        }
        if let Some(p) = &self.start {
            anyhow::ensure!(
                !p.vectors.is_empty(),
                "{}: option 'start' holds no parameters",
                self.kind
            );
            for v in &p.vectors {
                anyhow::ensure!(
                    v.len() == target.dim(),
                    "{}: option 'start' has {} parameters, but the model has {}",
                    self.kind,
                    v.len(),
                    target.dim()
                );
            }
        }
        Ok(Starts {
            given: self.start.clone(),
            count: self.temperatures.len() * self.chains,
            per_temperature: self.chains,
            seed: self.seed,
            from_prior: self.exchange.as_ref().is_some_and(|x| x.from_prior),
        })
    }

    /// |w|² above which a chain has left its region, per chain of the run; those that are elsewhere have none.
    pub(super) fn limits(&self, state: &State, target: &Target) -> Vec<f64> {
        // On a ladder every chain comes to where the prior is.
        let prior = match &self.exchange {
            Some(_) => target.prior().mean_square(),
            None => 0.0,
        };
        let limit = |w: &[f32]| {
            let least = w.len() as f64 * prior.max(1.0);
            self.region * self.region * dot(w, w).max(least)
        };
        let mut limits = vec![f64::NAN; self.temperatures.len() * self.chains];
        for (w, c) in state.params.chunks_exact(state.dim).zip(&state.index) {
            limits[*c] = limit(w);
        }
        limits
    }

    /// The posterior predictions to be averaged.
    pub(super) fn predictors<'a>(&self, target: &'a Target) -> Result<Vec<Predictor<'a>>> {
        let one = |name: &String| {
            Predictor::new(target, name).with_context(|| format!("{}: option 'predict'", self.kind))
        };
        self.predict.iter().map(one).collect()
    }

    pub(super) fn columns(
        &self,
        target: &Target,
        sampler: &Configured,
        predictors: &[Predictor],
    ) -> Result<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        for o in &self.observables {
            o.check(target)?;
            columns.push(Column {
                name: o.name(),
                group: Group::Posterior,
                components: o.components(target),
            });
        }
        columns.extend(predictors.iter().flat_map(Predictor::columns));
        if self.exchange.is_some() {
            columns.extend([TEMPERED_ENERGY, REPLICA].map(|name| Column {
                name: name.into(),
                group: Group::SampleStats,
                components: None,
            }));
        }
        let stats = sampler.info.iter();
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

    /// Bytes that the run will need; `width` numbers per record, so many numbers of predictions per chain.
    pub(super) fn bytes(
        &self,
        target: &Target,
        sampler: &Configured,
        session: &Session,
        (width, predictions): (usize, usize),
    ) -> u128 {
        let (chains, n) = (
            (self.temperatures.len() * self.chains) as u128,
            target.dim() as u128,
        );
        let vectors = 1 + sampler.vectors.len() as u128;
        let draws = self.every.count(self.steps) as u128;
        // Per thread: gradient, a shard's gradient and the sampler's vectors of a step; on a device or side by side per chain.
        let together = session.device.1.is_some() || sampler.couples();
        let sets = if together {
            chains
        } else {
            session.threads as u128
        };
        let scratch = sets * (2 + sampler.scratch() as u128) * n;
        let predictions = 8 * chains * predictions as u128;
        // Records are held twice while they are written.
        4 * (chains * n * vectors + scratch) + 16 * chains * draws * width as u128 + predictions
    }

    /// Fail early if the run cannot fit into memory; otherwise say how much it needs.
    pub(super) fn check_size(
        &self,
        target: &Target,
        sampler: &Configured,
        session: &Session,
        sizes: (usize, usize),
    ) -> Result<()> {
        let what = format!(
            "'{}' ({} chains of {} parameters, {} records each)",
            self.name,
            self.temperatures.len() * self.chains,
            target.dim(),
            self.every.count(self.steps)
        );
        let bytes = self.bytes(target, sampler, session, sizes);
        memory::check(bytes, &what)?;
        if !session.quiet && bytes > 1 << 28 {
            eprintln!("{what}: about {:.1} GiB of memory", memory::gib(bytes));
        }
        Ok(())
    }

    /// A checksum of what defines the run and is not in words: data, starting points, triggers. A closure counts by its name only.
    fn fingerprint(&self, target: &Target, starts: &Starts) -> String {
        let mut hash = crc32fast::Hasher::new();
        hash.update(
            format!("{:?} {:?} {:?}", self.every, self.region, self.temperatures).as_bytes(),
        );
        if let Some(x) = &self.exchange {
            hash.update(format!("{x:?}").as_bytes());
        }
        target.fingerprint(&mut hash);
        for c in 0..starts.count {
            let w = starts.of(c, target);
            w.iter().for_each(|x| hash.update(&x.to_le_bytes()));
        }
        format!("{:08x}", hash.finalize())
    }

    pub(super) fn info(
        &self,
        target: &Target,
        sampler: &Configured,
        columns: Vec<Column>,
        starts: &Starts,
        session: &Session,
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
            sampler: sampler.name().into(),
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
            m: sampler.batch(),
            scale: target.scale(),
            parameters: target.dim(),
            tensors: target
                .layout()
                .tensors()
                .iter()
                .map(|t| (t.name.clone(), t.shape.clone()))
                .collect(),
            coupled: sampler.couples(),
            ladder: self.exchange.as_ref().map(|x| x.describe()),
            prior_tempered: match &self.exchange {
                Some(x) => x.whole && !target.prior().is_flat(),
                None => !target.prior().is_flat(),
            },
            walls: target.prior().has_walls(),
            steady: self
                .temperatures
                .iter()
                .all(|t| t.at(self.burn_in) == t.at(self.steps)),
            fingerprint: self.fingerprint(target, starts),
            seed: self.seed,
            quick: self.full_steps.is_some(),
            device: session.device.0.clone(),
        })
    }
}
