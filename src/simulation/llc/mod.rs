//! The local learning coefficient: `λ̂(w0) = nβ (⟨L(w)⟩ - L(w0))` over exp(-nβ L(w) - ½γ|w-w0|²)
//! (Lau et al. 2024; Hitchcock & Hoogland 2025, §2.2).
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | `llc` and its options |
//! | `protocol.rs` | target, sampler and point put together, and traces turned into numbers |
//! | `estimate.rs`, `saved.rs` | the estimate, and what speaks for it; on disk |
//! | `levels.rs` | estimates at several nβ, and their slope |
//! | `curve/` | `llc_curve`: estimates along a training |
//! | `halved.rs` | what half the step size tells |
//! | `verdict.rs` | whether it is an estimate yet, in words |
//! | `examples.rs` | what the losses of single examples tell besides |
//! | `calibrate.rs`, `grid.rs` | `calibrate_llc`, and the steps that it tries |
//! | `calibration.rs`, `plateau.rs` | what it finds, and which trials are recommended |
//! | `problems.rs` | `llc_problem` |
//! | `benchmark.rs`, `table.rs` | `llc_benchmark`, and its table |
//! | `workers.rs` | estimates side by side |

pub mod benchmark;
pub mod calibrate;
pub mod calibration;
mod contenders;
pub mod curve;
pub(crate) mod estimate;
pub(crate) mod examples;
mod grid;
pub mod halved;
pub(crate) mod levels;
mod plateau;
pub mod problems;
pub mod protocol;
pub(crate) mod saved;
pub mod table;
pub mod trial;
pub(crate) mod verdict;
mod workers;

use super::plan::{self, Plan};
use super::run::Run;
use super::session::Session;
use super::until::{UNTIL, Until};
use crate::error::Result;
use crate::model::Part;
use crate::observable::Handle;
use crate::options::{Kind, Options, Range, Spec, Value, option, optional, required};
use crate::sampler::ConfiguredSampler;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::verb::{Call, RESUME, Verb};
pub use estimate::Estimate;
use halved::Halved;
use levels::Levels;
use protocol::{BASELINE, Baseline, GAMMA, Point, Prepared};
use std::sync::Arc;

/// Options of `llc(target, sampler, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    required(
        "start",
        Kind::Object("Parameters"),
        "w0, the point whose coefficient is estimated and where all chains start; a single vector: choose one of several by `start.at(0)`.",
    ),
    CHAINS,
    option(
        "steps",
        Kind::Int(Range::Between(2.0, 1e12)),
        "5000",
        "Steps per chain, burn-in included.",
    ),
    UNTIL,
    BURN_IN,
    EVERY,
    GAMMA,
    BETA,
    optional(
        "nbeta",
        Kind::Anything("number > 0, or array of several"),
        "n·beta",
        "nβ, in place of `beta`. At several nβ the chains of all step in one run, each nβ with its own, and λ̂ is the slope of the mean loss against 1/nβ.",
    ),
    BASELINE,
    RESTRICT,
    optional(
        "observe",
        Kind::Objects("Observable"),
        "nothing",
        "What else to record along the chains, in `estimate.run`; observable::example_losses() is needed for `estimate.influence()`, \
         `.susceptibilities()` and `.singular_fluctuation()`.",
    ),
    option(
        "halve",
        Kind::Bool,
        "false",
        "Whether to run again with half the step size (of `pseudo_langevin` the ratio) and twice the steps: the change shows the error of discretisation. The estimate is extrapolated \
         to step zero where the sampler states the order of its error: ε of `sgld`, `sghmc` and `ohzeki_ichiki`, δt² of `langevin` with full gradients, the ratio of `pseudo_langevin`.",
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
    RESUME,
];

/// The option `chains`.
pub(super) const CHAINS: Spec = option(
    "chains",
    Kind::Int(Range::Between(1.0, 1e5)),
    "4",
    "Chains.",
);

/// The option `burn_in`.
pub(super) const BURN_IN: Spec = option(
    "burn_in",
    Kind::Float(Range::NonNegative),
    "0.5",
    "Fraction of the steps (if below 1) or number of steps (if 1 or more) that is not averaged.",
);

/// The option `every`.
pub(super) const EVERY: Spec = optional(
    "every",
    Kind::Int(Range::AtLeast(1.0)),
    "10; 1 for samplers that accept or reject",
    "Steps per record. Losses that come with gradients are averaged over all steps in between, so nothing is lost.",
);

/// The option `beta`.
pub(super) const BETA: Spec = optional(
    "beta",
    Kind::Float(Range::Positive),
    "1/ln n",
    "β, the inverse temperature of the likelihood.",
);

/// The option `restrict`.
pub(super) const RESTRICT: Spec = optional(
    "restrict",
    Kind::Anything("name of a part, or array of names"),
    "all parameters move",
    "The parameters that move (weight-restricted coefficient): names of tensors (\"w1\"), slices (\"w1[0]\" and \"w1[2..5]\" along the first dimension, \"w1[:, 0..16]\" along the second), or \
     what several names begin with (\"block1.attn\"), or a head of a transformer (\"block2.attn.head3\", of model::pretrained \"transformer.h.1.attn.head2\").",
);

/// Estimate.
pub(crate) fn llc(
    target: &Target,
    sampler: &Arc<ConfiguredSampler>,
    o: &Options,
    session: &Session,
) -> Result<Estimate> {
    let start = one_point(o, target)?;
    let n = target.likelihood_n();
    let all = nbetas(o, n)?;
    let point = Point {
        nbeta: all[0],
        gamma: o.float("gamma")?,
        baseline: Baseline::from_options(o)?,
    };
    let halves = o.bool("halve")?;
    anyhow::ensure!(
        !halves || all.len() == 1,
        "llc: options 'halve' and several 'nbeta' are both given; check the step size at one nβ"
    );
    let prepared = Prepared::new(target, sampler, &start, point, restriction(o, target)?)?;
    let mut estimate = one(&prepared, &all, o, session, (o.opt_text("name"), 1))?;
    estimate.write()?;
    if halves {
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
        let half = one(&prepared, &all, o, session, (Some(&name), 2))?;
        half.write()?;
        estimate.halved = Some(Halved {
            option,
            accuracy: sampler.accuracy(),
            estimate: Box::new(half),
        });
        estimate.write()?;
    }
    Ok(estimate)
}

/// One run, with `factor` times the steps.
fn one(
    prepared: &Prepared,
    nbetas: &[f64],
    o: &Options,
    session: &Session,
    named: (Option<&str>, u64),
) -> Result<Estimate> {
    let plan = plan(prepared, nbetas, o, session, named)?;
    let judge = |run: &Arc<Run>| {
        let levels = prepared.levels(run, session)?;
        Ok(levels.iter().map(Estimate::seen).collect())
    };
    let what = (&plan, &*prepared.target, &*prepared.sampler);
    let run = super::run_judged(what, &judge, session)?;
    match nbetas.len() {
        1 => prepared.estimate(run, session),
        _ => Levels::combined(prepared.levels(&run, session)?),
    }
}

/// The plan of a run, from the options of `llc`.
fn plan(
    prepared: &Prepared,
    nbetas: &[f64],
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
    let wanted: Vec<Handle> = o.objects("observe");
    let mut observe = prepared.observables()?;
    observe.retain(|own| wanted.iter().all(|w| w.name() != own.name()));
    let observe = observe.into_iter().chain(wanted);
    let observe = observe.map(|o| Value::Object(o, "Observable")).collect();
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
    let until = Until::from_options(o, o.int("steps")?)?;
    given.extend(until.map(|until| ("until", until.times(factor).into())));
    let mut table = plan::SAMPLE_OPTIONS;
    if nbetas.len() > 1 {
        // γ does not go with nβ.
        let temperatures = nbetas.iter().map(|n| nbetas[0] / n).collect::<Vec<_>>();
        given.push(("temperatures", temperatures.into()));
        given.push(("temper", Value::Text("likelihood".into())));
        table = plan::SWEEP_OPTIONS;
    }
    let given = given.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    let o = Options::check("llc", table, given)?;
    Plan::from_options("llc", &o, session)
}

/// The point in the option `start`.
fn one_point(o: &Options, target: &Target) -> Result<Arc<Vec<f32>>> {
    let start = o.object::<Parameters>("start");
    let vectors = start.as_ref().map_or(&[][..], |p| &p.vectors);
    let Some(one) = vectors.first().filter(|v| vectors.iter().all(|w| w == *v)) else {
        anyhow::bail!(
            "{}: option 'start' holds {} parameter vectors, but a learning coefficient belongs to one point; choose one with .at(0)",
            o.owner(),
            vectors.len()
        )
    };
    anyhow::ensure!(
        one.len() == target.dim(),
        "{}: option 'start' has {} parameters, but the model has {}",
        o.owner(),
        one.len(),
        target.dim()
    );
    Ok(one.clone())
}

/// All nβ, from the options `beta` and `nbeta`, the largest first.
fn nbetas(o: &Options, n: usize) -> Result<Vec<f64>> {
    let wrong = |what: String| {
        anyhow::anyhow!(
            "{}: option 'nbeta' {what}, but must be a number > 0, or an array of several different ones",
            o.owner()
        )
    };
    let number = |v: &Value| {
        let found = v.number().filter(|x| *x > 0.0 && x.is_finite());
        found.ok_or_else(|| wrong(format!("has {}", v.describe())))
    };
    match o.get("nbeta") {
        Some(Value::List(list)) => {
            anyhow::ensure!(
                o.opt_float("beta").is_none(),
                "{}: options 'beta' and 'nbeta' are both given; give only one",
                o.owner()
            );
            let mut all = list.iter().map(number).collect::<Result<Vec<_>>>()?;
            all.sort_by(|a, b| b.total_cmp(a));
            let close = all.windows(2).any(|pair| pair[0] < pair[1] * (1.0 + 1e-6));
            match all.len() < 2 || close {
                true => Err(wrong(format!("is {all:?}"))),
                false => Ok(all),
            }
        }
        Some(one) => number(one).and_then(|_| nbeta(o, n)).map(|n| vec![n]),
        None => nbeta(o, n).map(|n| vec![n]),
    }
}

/// nβ, from the options `beta` and `nbeta`.
fn nbeta(o: &Options, n: usize) -> Result<f64> {
    let (beta, nbeta) = (o.opt_float("beta"), o.opt_float("nbeta"));
    match (beta, nbeta) {
        (Some(_), Some(_)) => anyhow::bail!(
            "{}: options 'beta' and 'nbeta' are both given; give only one",
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
fn restriction(o: &Options, target: &Target) -> Result<Option<Vec<Part>>> {
    if !o.was_given("restrict") {
        return Ok(None);
    }
    let names = o.names("restrict")?;
    let parts = names.iter().map(|n| target.potential().part(n));
    let parts = parts.collect::<Result<Vec<_>>>();
    let parts = parts.map_err(|e| e.context(format!("{}: option 'restrict'", o.owner())))?;
    Ok(Some(parts.concat()))
}

/// The verb `llc`.
pub static LLC: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Estimate>> = Verb {
    name: "llc",
    arguments: &["target", "sampler"],
    options: OPTIONS,
    doc: "Estimate the local learning coefficient at a point: `λ̂ = nβ(⟨L(w)⟩ - L(w0))` over `exp(-nβ L(w) - ½γ|w-w0|²)`.\n\n\
         Lau et al. (2024); Hitchcock & Hoogland (2025). L is the loss of the target; its own energy scale and prior are left out, since nβ and γ \
         take their place. Works with every sampler. Stochastic-gradient samplers give the losses of their own minibatches, compared with those at w0 \
         on the same minibatches; samplers that accept or reject give the loss over all examples.\n\n\
         `print(estimate)` shows estimate, error bar, thermometer and failed chains. Fields: `estimate`, `mcse` (standard error from the effective sample \
         size), `verdict` (\"converged\", \"not yet\" or \"wrong\") and `reasons` (what is missing or wrong), `chains` (one by one), `spread`, `ess`, `rhat`, `virial`, `failed`, `truth` (where it is known, else NaN), \
         `relative_error`, `run`, `halved`, `levels` (the estimates at single nβ, if there are several). An estimate that has not converged, is negative, or whose thermometer is off says so in its first line. Check the step size with \
         `halve: true`: a step that is too large makes λ̂ too large, and the thermometer hot.",
    example: "llc(target(potential::gaussian(#{ dim: 6, examples: 1000 })), sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ start: parameters([1, 1, 1, 1, 1, 1]), steps: 2000 })",
    call: Call::Checked(|(target, sampler), o, session| {
        llc(&target, &sampler, o, session).map(Arc::new)
    }),
};
