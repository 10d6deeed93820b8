//! Benchmarks: how fast a sampler steps on a target, beside the time of its matrix products alone.

use super::plan::Plan;
use super::session::Session;
use super::state::State;
use super::stepping::Shared;
use super::threads::Workers;
use crate::engine::ChainRef;
use crate::error::{Interrupted, Result};
use crate::kernels::gemm_baseline::{self, Product};
use crate::memory;
use crate::observable::{First, Handle, LossCache, Observable, View};
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::ranks::SingleProcess;
use crate::sampler::ConfiguredSampler;
use crate::target::{Target, Workspace};
use crate::verb::{Call, Verb};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of `benchmark(target, sampler, #{…})`.
pub const OPTIONS: &[Spec] = &[
    option(
        "chains",
        Kind::Int(Range::Between(1.0, 1e6)),
        "1",
        "Chains that step side by side.",
    ),
    option(
        "temperature",
        Kind::Float(Range::Positive),
        "1",
        "T of all chains.",
    ),
    option(
        "seconds",
        Kind::Float(Range::Between(0.01, 3600.0)),
        "2",
        "Seconds to measure, after a quarter of that to warm up.",
    ),
    optional(
        "start",
        Kind::Object("Parameters"),
        "drawn by the model",
        "Where chains start.",
    ),
    optional(
        "observe",
        Kind::Objects("Observable"),
        "none",
        "Observables whose cost per record is measured, too, each for a tenth of the seconds.",
    ),
];

/// What was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Benchmark {
    /// Name of the sampler.
    pub sampler: String,
    /// N.
    pub parameters: usize,
    /// Chains side by side.
    pub chains: usize,
    /// Threads.
    pub threads: usize,
    /// Seconds per step of all chains.
    pub seconds_per_step: f64,
    /// Steps of single chains per second.
    pub steps_per_second: f64,
    /// Normal numbers per second: every sampler draws N per step.
    pub normals_per_second: f64,
    /// Seconds that the matrix products of one step of all chains take alone, in the fastest of several ways.
    pub floor_seconds: Option<f64>,
    /// Seconds that their floating point operations take at the rate of the best product of two matrices of side 1024 on all threads.
    #[serde(default)]
    pub limit_seconds: Option<f64>,
    /// Bytes of parameters, gradients, sampler state, activations of the minibatches and data: what the method needs.
    pub needed_bytes: u64,
    /// Most bytes that the whole process held up to the end of the measurement, where the system tells.
    pub peak_bytes: Option<u64>,
    /// Seconds that a record of each observable takes, of one chain on one thread.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seconds_per_record: BTreeMap<String, f64>,
}

/// Measure.
pub fn benchmark(
    target: &Target,
    sampler: &ConfiguredSampler,
    o: &Options,
    session: &Session,
) -> Result<Benchmark> {
    let chains = o.size("chains")?;
    let seconds = o.float("seconds")?;
    // Never at its end.
    let plan = Plan::unrecorded("benchmark", o, u64::MAX >> 16, session.seed)?;
    sampler.check(target)?;
    let placed = session.placed(target)?;
    let (target, device) = (&*placed.target, placed.devices.as_deref());
    plan.check_size(target, sampler, session, (0, 0))?;
    let starts = plan.starts(target)?;
    let mut state = State::new((0..chains).collect(), target, sampler, &[]);
    state.start(&starts, target);
    let shared = Shared {
        plan: &plan,
        target,
        sampler,
        slots: sampler.slots(target),
        width: 0,
        starts: &starts,
        predictors: &[],
        limits: vec![f64::INFINITY; chains],
        keeper: None,
        end: plan.steps,
        predicts_after: 0,
        ranks: &SingleProcess,
        interrupt: &session.interrupt,
    };
    let mut workers = Workers::new(&shared, device, &state, session.threads)?;
    let (elapsed, steps, rows) = measure(&mut workers, &shared, &mut state, seconds)?;
    let (threads, workers) = workers.threads();
    let steps = steps.max(1) as f64;
    let peak_bytes = memory::peak();
    let rows_per_step = rows as f64 / steps;
    let products = target.potential().products();
    let batch = sampler.batch().unwrap_or(target.examples());
    let rows = chains as f64 * rows_per_step;
    let counts = !products.is_empty() && device.is_none();
    let floor_seconds =
        counts.then(|| gemm_baseline::seconds(&products, batch, threads) * rows / batch as f64);
    let flops = rows * products.iter().map(Product::flops).sum::<f64>();
    let limit_seconds = counts.then(|| flops / gemm_baseline::rate(threads));
    let (per_row, data) = target.potential().sizes();
    let vectors = chains * (1 + sampler.vectors.len()) + workers;
    let steps_per_second = steps / elapsed;
    let observables = o.objects::<Box<dyn Observable>>("observe");
    let cost = |o: &Handle| {
        Ok((
            o.name(),
            cost_of(o, target, &starts.of(0, target), seconds / 10.0)?,
        ))
    };
    let costs = observables.iter().map(cost).collect::<Result<_>>()?;
    Ok(Benchmark {
        sampler: sampler.name().into(),
        parameters: target.dim(),
        chains,
        threads,
        seconds_per_step: chains as f64 / steps_per_second,
        steps_per_second,
        normals_per_second: steps_per_second * target.dim() as f64,
        floor_seconds,
        limit_seconds,
        needed_bytes: (4 * (vectors * target.dim() + workers * batch * per_row) + data) as u64,
        peak_bytes,
        seconds_per_record: costs,
    })
}

/// Seconds of one measurement of an observable.
fn cost_of(o: &Handle, target: &Target, w: &Arc<Vec<f32>>, seconds: f64) -> Result<f64> {
    o.check(target)?;
    o.begin(&First {
        target,
        start: &|| w.clone(),
        step: 1,
        temperature: 1.0,
        info: &[],
    })?;
    let mut out = vec![0.0; o.components(target).map_or(1, |(_, labels)| labels.len())];
    let mut work = Workspace::new(1);
    let begin = Instant::now();
    let mut count = 0u32;
    // Clocks are slow beside a small observable.
    while count < 16 || !count.is_multiple_of(16) || begin.elapsed().as_secs_f64() < seconds {
        let mut view = View {
            chain: ChainRef {
                index: 0,
                seed: 1,
                step: 1,
                temperature: 1.0,
                w,
                vectors: &[],
            },
            vector_names: &[],
            info: (&[], &[]),
            batch: None,
            start: &|| w.clone(),
            target,
            work: &mut work,
            known: LossCache::default(),
        };
        o.measure(&mut view, &mut out)?;
        count += 1;
    }
    Ok(begin.elapsed().as_secs_f64() / f64::from(count))
}

/// Seconds of stepping after warming up, and the steps and rows of gradients in them.
fn measure(
    workers: &mut Workers,
    run: &Shared,
    state: &mut State,
    seconds: f64,
) -> Result<(f64, u64, u64)> {
    workers.advance(run, state, None)?;
    // What pseudo-Langevin does now and then, measuring its noise again, is not part of a step.
    let scalars = &run.sampler.scalars;
    for (i, s) in state.scalars.iter_mut().enumerate() {
        if ["next_refresh", "last_refresh"].contains(&scalars[i % scalars.len()]) {
            *s = f64::INFINITY;
        }
    }
    let mut turn = |seconds: f64| -> Result<(f64, u64, u64)> {
        let done = |state: &State| state.steps.iter().sum::<u64>();
        let before = (done(state), workers.rows());
        let begin = Instant::now();
        let until = begin + Duration::from_secs_f64(seconds);
        workers.advance(run, state, Some(until))?;
        // A device answers only when everything that was queued is done.
        workers.fetch(run, state)?;
        let elapsed = begin.elapsed().as_secs_f64();
        Ok((elapsed, done(state) - before.0, workers.rows() - before.1))
    };
    turn(seconds / 4.0)?;
    let measured = turn(seconds)?;
    if let Some(f) = state.failures.iter().flatten().next() {
        anyhow::bail!(
            "benchmark: a chain {} at step {}; lower its step size",
            f.reason,
            f.step
        );
    }
    if run.interrupt.interrupted() {
        let what = "a benchmark, of which nothing is kept".into();
        return Err(Interrupted { what }.into());
    }
    Ok(measured)
}

/// The verb `benchmark`.
pub static BENCHMARK: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Json> = Verb {
    name: "benchmark",
    arguments: &["target", "sampler"],
    options: OPTIONS,
    doc: "Measure how fast a sampler steps on a target, without recording anything.\n\n\
         Entries: `seconds_per_step` (of all chains), `steps_per_second` (of single chains, summed), `floor_seconds` (the matrix products of one step \
         alone, in the fastest of several ways), `limit_seconds` (their floating point operations at the rate of the machine's best product), `normals_per_second`, `needed_bytes`, `peak_bytes`, `parameters`, `chains`, `threads`; with `observe` also `seconds_per_record`, by name. \
         `ergodic bench` runs a fixed list of these; `ergodic docs performance` says what to do with the numbers.",
    example: "benchmark(target(potential::gaussian(#{ dim: 4 })), sampler::sgld(#{ step: 0.1, batch: 1 }), #{ seconds: 0.02 })",
    call: Call::Checked(|(target, sampler), o, session| {
        if o.get("observe").is_some() {
            session.computes_here("benchmark: seconds_per_record");
        }
        Ok(serde_json::to_value(benchmark(
            &target, &sampler, o, session,
        )?)?)
    }),
};
