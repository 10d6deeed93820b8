//! The local learning coefficient: `λ̂(w0) = nβ (⟨L(w)⟩ - L(w0))` over exp(-nβ L(w) - ½γ|w-w0|²)
//! (Lau et al. 2024; Hitchcock & Hoogland 2025, §2.2).
//!
//! [`protocol`] turns a target, a sampler and a point into a run and its traces into numbers; here are the options and what is reported.
//! [`examples`] is what the losses of single examples tell besides.

pub mod benchmark;
pub mod calibrate;
pub mod examples;
pub mod problems;
pub mod protocol;

use super::plan::{self, Plan};
use super::run::Run;
use super::session::Session;
use crate::diagnostic::{self, Reading};
use crate::error::{EveryChainFailed, Result};
use crate::model::TensorSpec;
use crate::model::deep_linear::LearningCoefficient;
use crate::options::{Kind, Options, Range, Spec, Value, option, optional, required};
use crate::sampler::Configured;
use crate::target::Target;
use crate::target::prior::Parameters;
use protocol::{BASELINE, Baseline, GAMMA, Point, Prepared};
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// Options of `llc(target, sampler, #{…})`.
pub const OPTIONS: &[Spec] = &[
    required(
        "start",
        Kind::Object("Parameters"),
        "w0, the point whose coefficient is estimated and where all chains start; one vector: of several, `start.at(0)`.",
    ),
    option(
        "chains",
        Kind::Int(Range::Between(1.0, 1e5)),
        "4",
        "Chains.",
    ),
    option(
        "steps",
        Kind::Int(Range::Between(2.0, 1e12)),
        "5000",
        "Steps per chain, burn-in included.",
    ),
    option(
        "burn_in",
        Kind::Float(Range::NonNegative),
        "0.5",
        "Part of the steps (below 1) or number of steps (from 1) that is not averaged.",
    ),
    optional(
        "every",
        Kind::Int(Range::AtLeast(1.0)),
        "10; 1 for samplers that accept or reject",
        "Steps per record. Losses of gradients are averaged over all steps in between, so nothing is lost.",
    ),
    GAMMA,
    optional(
        "beta",
        Kind::Float(Range::Positive),
        "1/ln n",
        "β, the inverse temperature of the likelihood.",
    ),
    optional(
        "nbeta",
        Kind::Float(Range::Positive),
        "n·beta",
        "nβ, in place of `beta`.",
    ),
    BASELINE,
    optional(
        "restrict",
        Kind::Anything("name of a part, or array of names"),
        "all parameters move",
        "The parameters that move (weight-restricted coefficient): names of tensors (\"w1\"), slices along their first dimension (\"w1[0]\", \"w1[2..5]\"), or \
         what several names begin with (\"block1.attn\").",
    ),
    optional(
        "observe",
        Kind::Objects("Observable"),
        "nothing",
        "What else to record along the chains, in `estimate.run`; with observable::example_losses() there are `estimate.influence()`, \
         `.susceptibilities()` and `.singular_fluctuation()`.",
    ),
    option(
        "halve",
        Kind::Bool,
        "false",
        "Whether to run again with half the step size and twice the steps: what changes is the error of discretisation.",
    ),
    option(
        "region",
        Kind::Float(Range::Positive),
        "1000",
        "A chain whose |w| exceeds this many times max(|w0|, √N) has left its region and is stopped as failed.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed and the name of the run",
        "Seed of this run.",
    ),
    optional(
        "name",
        Kind::Text,
        "llc-1, llc-2, …",
        "Name of the run and of its folder.",
    ),
];

/// An estimate of the learning coefficient, and what speaks for it.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// λ̂.
    pub lambda: f64,
    /// Standard error of λ̂: Monte Carlo error from the effective sample size, and that of the baseline.
    pub mcse: f64,
    /// λ̂ of each chain; NaN for those that failed.
    pub chains: Vec<f64>,
    /// Effective sample size of the loss, all chains together, and R̂.
    pub ess: f64,
    /// R̂ of the loss.
    pub rhat: f64,
    /// The virial thermometer, whose set temperature is 1.
    pub virial: Reading,
    /// Chains that failed, in words.
    pub failed: Vec<String>,
    /// nβ, γ and the baseline.
    pub point: Point,
    /// n of the likelihood, minibatch size m, number of parameters that move.
    pub n: usize,
    /// m; none over all examples.
    pub m: Option<usize>,
    /// N.
    pub parameters: usize,
    /// The exact value, where it is known.
    pub truth: Option<LearningCoefficient>,
    /// nβ(L - L(w0)) of every chain and record, burn-in included.
    pub traces: Vec<Vec<f64>>,
    /// The estimate with half the step size.
    pub halved: Option<Box<Estimate>>,
    /// The run it was taken from.
    pub run: Arc<Run>,
    /// What was sampled, and w0.
    target: Arc<Target>,
    start: Arc<Vec<f32>>,
}

/// Estimate.
pub fn llc(
    target: &Target,
    sampler: &Arc<Configured>,
    o: &Options,
    session: &Session,
) -> Result<Estimate> {
    let start = one_point(o)?;
    anyhow::ensure!(
        start.len() == target.dim(),
        "llc: option 'start' has {} parameters, but the model has {}",
        start.len(),
        target.dim()
    );
    let n = target.stands_for();
    let point = Point {
        nbeta: nbeta(o, n)?,
        gamma: o.float("gamma")?,
        baseline: Baseline::from_options(o)?,
    };
    let prepared = Prepared::new(target, sampler, &start, point, restriction(o, target)?)?;
    let mut estimate = one(&prepared, o, session, (o.opt_text("name"), 1))?;
    if o.bool("halve")? {
        let (option, size) = sampler.step_size().ok_or_else(|| {
            anyhow::anyhow!(
                "llc: option 'halve' needs a fixed step size, which sampler::{} does not have here",
                sampler.name()
            )
        })?;
        let finer = sampler.with(option, size / 2.0)?;
        let finer = finer.unwrap_or_else(|| sampler.clone());
        let prepared = Prepared::new(target, &finer, &start, point, restriction(o, target)?)?;
        let name = format!("{}-half", estimate.run.info.name);
        let half = one(&prepared, o, session, (Some(&name), 2))?;
        estimate.halved = Some(Box::new(half));
    }
    Ok(estimate)
}

/// One run, with `factor` times the steps.
fn one(
    prepared: &Prepared,
    o: &Options,
    session: &Session,
    named: (Option<&str>, u64),
) -> Result<Estimate> {
    let plan = plan(prepared, o, session, named)?;
    let run = super::run(&plan, &prepared.target, &prepared.sampler, session)?;
    prepared.estimate(run, session.threads)
}

/// The plan of a run, from the options of `llc`.
fn plan(
    prepared: &Prepared,
    o: &Options,
    session: &Session,
    (name, factor): (Option<&str>, u64),
) -> Result<Plan> {
    let burn_in = o.float("burn_in")?;
    let burn_in = if burn_in < 1.0 {
        burn_in
    } else {
        burn_in * factor as f64
    };
    let steps = o.int("steps")? * factor;
    let every = o.opt_int("every").unwrap_or(prepared.every()).min(steps);
    let start: Arc<Parameters> = Arc::new(Parameters {
        vectors: vec![prepared.start.clone()],
    });
    let own = prepared.observables()?.into_iter();
    let own = own.map(|o| Value::Object(o, "Observable"));
    let observe = match o.get("observe") {
        Some(Value::List(more)) => own.chain(more.iter().cloned()).collect(),
        _ => own.collect(),
    };
    let mut given = vec![
        ("start", Value::Object(start, "Parameters")),
        ("steps", Value::Int(steps as i64)),
        ("burn_in", Value::Float(burn_in)),
        ("every", Value::Int(every as i64)),
        ("observe", Value::List(observe)),
    ];
    given.extend(name.map(|n| ("name", Value::Text(n.into()))));
    for same in ["chains", "region", "seed"] {
        given.extend(o.get(same).map(|v| (same, v.clone())));
    }
    let given = given.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    let o = Options::check("llc", plan::SAMPLE_OPTIONS, given)?;
    Plan::from_options("llc", &o, session)
}

/// The point in the option `start`.
fn one_point(o: &Options) -> Result<Arc<Vec<f32>>> {
    let start = o.object::<Parameters>("start");
    match start.as_ref().map(|p| &p.vectors[..]) {
        Some([one]) => Ok(one.clone()),
        Some(many) if !many.is_empty() && many.iter().all(|v| v == &many[0]) => Ok(many[0].clone()),
        other => anyhow::bail!(
            "{}: option 'start' holds {} parameter vectors, but a learning coefficient is that of one point; choose it with .at(0)",
            o.owner(),
            other.map_or(0, <[_]>::len)
        ),
    }
}

/// nβ, from the options `beta` and `nbeta`.
fn nbeta(o: &Options, n: usize) -> Result<f64> {
    let (beta, nbeta) = (o.opt_float("beta"), o.opt_float("nbeta"));
    match (beta, nbeta) {
        (Some(_), Some(_)) => anyhow::bail!(
            "{}: options 'beta' and 'nbeta' are both given; one says it all",
            o.owner()
        ),
        (_, Some(nbeta)) => Ok(nbeta),
        (Some(beta), _) => Ok(n as f64 * beta),
        (None, None) => {
            anyhow::ensure!(
                n >= 2,
                "{}: β = 1/ln n needs at least two examples, but n = {n}; give 'nbeta'",
                o.owner()
            );
            Ok(n as f64 / (n as f64).ln())
        }
    }
}

/// The parts of the parameters in the option `restrict`.
fn restriction(o: &Options, target: &Target) -> Result<Option<Vec<TensorSpec>>> {
    let names: Vec<String> = match o.get("restrict") {
        None => return Ok(None),
        Some(Value::Text(name)) => vec![name.clone()],
        Some(Value::List(list)) => {
            let name = |v: &Value| match v {
                Value::Text(t) => Ok(t.clone()),
                _ => Err(anyhow::anyhow!(
                    "{}: option 'restrict' must be a name or an array of names",
                    o.owner()
                )),
            };
            list.iter().map(name).collect::<Result<_>>()?
        }
        Some(_) => anyhow::bail!(
            "{}: option 'restrict' must be a name or an array of names",
            o.owner()
        ),
    };
    let parts = names.iter().map(|n| target.potential().part(n));
    let parts = parts.collect::<Result<Vec<_>>>();
    let parts = parts.map_err(|e| e.context(format!("{}: option 'restrict'", o.owner())))?;
    Ok(Some(parts.concat()))
}

impl Estimate {
    /// From traces of nβ(L - L(w0)), and the standard error of L(w0) in the same unit.
    fn new(
        prepared: &Prepared,
        run: Arc<Run>,
        traces: Vec<Vec<f64>>,
        of_baseline: f64,
    ) -> Result<Self> {
        let healthy = |c: &usize| run.failures[*c].is_none();
        let draws: Vec<_> = (0..traces.len())
            .filter(healthy)
            .map(|c| &traces[c][run.info.warm_draws..])
            .collect();
        if draws.is_empty() {
            let first = run.failures.iter().flatten().next();
            let first = first.map_or(String::new(), |f| {
                format!("{} at step {}", f.reason, f.step)
            });
            return Err(EveryChainFailed {
                run: run.info.name.clone(),
                reason: first,
            }
            .into());
        }
        let failed = run.failures.iter().enumerate().filter_map(|(c, f)| {
            let f = f.as_ref()?;
            Some(format!("chain {c} at step {}: {}", f.step, f.reason))
        });
        let of_chain = |c: usize| match healthy(&c) {
            true => diagnostic::mean(&[&traces[c][run.info.warm_draws..]]),
            false => f64::NAN,
        };
        Ok(Self {
            lambda: diagnostic::mean(&draws),
            mcse: diagnostic::mcse_mean(&draws).hypot(of_baseline),
            chains: (0..traces.len()).map(of_chain).collect(),
            ess: diagnostic::ess_mean(&draws),
            rhat: diagnostic::rhat_rank(&draws),
            virial: prepared.thermometer(&run)?,
            failed: failed.collect(),
            point: prepared.point,
            n: prepared.n,
            m: prepared.sampler.batch(),
            parameters: prepared.target.dim(),
            truth: prepared.truth,
            halved: None,
            traces,
            run,
            target: prepared.target.clone(),
            start: prepared.start.clone(),
        })
    }

    /// Standard deviation of the estimates of the chains; NaN for a single one.
    pub fn spread(&self) -> f64 {
        let healthy: Vec<f64> = self
            .chains
            .iter()
            .copied()
            .filter(|x| x.is_finite())
            .collect();
        diagnostic::sd(&[healthy])
    }

    /// λ̂ from the steps so far, after burn-in: steps and running means over all healthy chains.
    pub fn online(&self) -> (Vec<f64>, Vec<f64>) {
        let info = &self.run.info;
        let healthy: Vec<_> = (0..self.traces.len())
            .filter(|c| self.run.failures[*c].is_none())
            .map(|c| &self.traces[c][info.warm_draws..])
            .collect();
        let every = (info.steps - info.burn_in) as f64 / info.draws as f64;
        let mut sum = 0.0;
        let mean = |i: usize| {
            sum += healthy.iter().map(|t| t[i]).sum::<f64>() / healthy.len() as f64;
            sum / (i + 1) as f64
        };
        let steps = (0..info.draws).map(|i| info.burn_in as f64 + every * (i + 1) as f64);
        (steps.collect(), (0..info.draws).map(mean).collect())
    }

    /// The estimate without the error of discretisation to first order in the step size, and its standard error; none unless it was halved.
    pub fn extrapolated(&self) -> Option<(f64, f64)> {
        let half = self.halved.as_ref()?;
        let value = 2.0 * half.lambda - self.lambda;
        Some((value, (2.0 * half.mcse).hypot(self.mcse)))
    }

    /// As a map, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let truth = self.truth.map(|t| t.lambda);
        let mut map = json!({
            "estimate": self.lambda,
            "mcse": self.mcse,
            "chains": self.chains,
            "spread": self.spread(),
            "ess": self.ess,
            "rhat": self.rhat,
            "virial": self.virial.temperature,
            "virial_mcse": self.virial.mcse,
            "failed": self.failed,
            "nbeta": self.point.nbeta,
            "gamma": self.point.gamma,
            "baseline": self.point.baseline.name(),
            "n": self.n,
            "m": self.m,
            "parameters": self.parameters,
            "truth": truth,
            "multiplicity": self.truth.map(|t| t.multiplicity),
            "relative_error": truth.map(|t| self.lambda / t - 1.0),
            "seconds": self.run.seconds,
        });
        if let (Some(half), Some((value, error)), Some(map)) =
            (&self.halved, self.extrapolated(), map.as_object_mut())
        {
            map.insert("halved".into(), half.to_json());
            map.insert("extrapolated".into(), json!(value));
            map.insert("extrapolated_mcse".into(), json!(error));
        }
        map
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = &self.run.info;
        write!(
            f,
            "learning coefficient {:.5} ± {:.2}",
            self.lambda,
            Short(self.mcse)
        )?;
        if let Some(t) = self.truth {
            let off = (self.lambda - t.lambda) / self.mcse;
            let relative = 100.0 * (self.lambda / t.lambda - 1.0);
            write!(
                f,
                "   (exact {}, {relative:+.2} %, {off:+.1} standard errors)",
                t.lambda
            )?;
        }
        let m = self.m.map_or("all examples".into(), |m| format!("m = {m}"));
        write!(
            f,
            "\n  n = {}, {m}, nβ = {:.6}, γ = {}, baseline {}, {} parameters",
            self.n,
            self.point.nbeta,
            self.point.gamma,
            self.point.baseline.name(),
            self.parameters
        )?;
        write!(
            f,
            "\n  {}: {} chains × {} steps ({} burn-in), R̂ {:.3}, ESS {:.0}, spread of chains {:.3}, {:.1} s",
            info.sampler,
            info.chains,
            info.steps,
            info.burn_in,
            self.rhat,
            self.ess,
            self.spread(),
            self.run.seconds
        )?;
        write!(
            f,
            "\n  temperature by the virial {:.4} ± {:.4}, set 1: {}",
            self.virial.temperature, self.virial.mcse, self.virial.verdict
        )?;
        if let (Some(half), Some((value, error))) = (&self.halved, self.extrapolated()) {
            write!(
                f,
                "\n  with half the step {:.5} ± {:.2}, extrapolated to none {value:.5} ± {:.2}",
                half.lambda,
                Short(half.mcse),
                Short(error)
            )?;
        }
        for reason in &self.failed {
            write!(f, "\n  FAILED and left out: {reason}")?;
        }
        if info.quick {
            write!(
                f,
                "\n  QUICK: steps were cut by --quick; this number is for trying things out only"
            )?;
        }
        Ok(())
    }
}

/// A standard error in two digits.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            x if x.is_finite() && x > 0.0 => (1.0 - x.log10().floor()).clamp(0.0, 12.0) as usize,
            _ => 2,
        };
        write!(f, "{:.digits$}", self.0)
    }
}
