//! Observables of draws that were kept.

use super::draws::{KeptDraws, TARGET};
use super::run::{Column, Group, Run, RunInfo};
use super::session::Session;
use super::standing::Judged;
use super::summary::Summary;
use crate::engine::ChainRef;
use crate::error::Result;
use crate::observable::{First, Handle, LossCache, Observable, View};
use crate::options::Value;
use crate::target::{Target, Workspace};
use crate::verb::{Call, Verb};
use anyhow::{anyhow, bail, ensure};
use rayon::prelude::*;
use std::sync::Arc;

/// The verb `observe`.
pub static OBSERVE: Verb<Session, (Arc<Run>, Vec<Value>), Arc<Run>> = Verb {
    name: "observe",
    arguments: &["run", "observables"],
    options: &[TARGET],
    doc: "Compute observables of the draws that a run has kept (its option `keep`), as a run of these: with summary, traces, draws and figures. Its verdict is no better than that of the run.\n\n\
          The numbers are those that the run would have recorded after the same steps, to the last bit (but keep_as: \"f16\" rounds). What is known only while \
          a run goes on, as momenta, what the sampler reports or where chains started, is refused. Chains that failed have the draws before that.",
    example: "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, keep: 10 });\n\
              observe(r, [observable::energy(), |s| s.params.norm2()]).summary().energy",
    call: Call::Checked(|(run, observables), o, session| {
        session.computes_here("observe");
        let target = run.target(o)?;
        observe(&run, &target, handles(observables)?).map(Arc::new)
    }),
};

/// The observables in a list.
fn handles(list: Vec<Value>) -> Result<Vec<Handle>> {
    let wrong = |x: &Value| {
        anyhow!(
            "observe: the list has {} in it, where observables or closures are needed",
            x.describe()
        )
    };
    let one = |x: &Value| x.as_object::<Box<dyn Observable>>().ok_or_else(|| wrong(x));
    list.iter().map(one).collect()
}

/// A run of these observables, measured on the kept draws of another.
///
/// # Errors
/// If the run has kept no draws, the target is another one, or an observable needs more than parameters.
pub fn observe(run: &Run, target: &Target, observables: Vec<Handle>) -> Result<Run> {
    ensure!(
        !observables.is_empty(),
        "observe: the list of observables is empty"
    );
    let info = &run.info;
    let draws = KeptDraws::of(run)?;
    let some = (0..run.params.len()).find(|c| draws.count(*c) > 0);
    let Some(some) = some else {
        bail!("observe: run '{}' has not made a draw yet", info.name);
    };
    let first = Arc::new(draws.draw(info, some, 0)?);
    let mut columns = Vec::new();
    for o in &observables {
        ensure!(
            o.of_parameters(),
            "observe: '{}' needs what is known only while a run goes on; record it by the option observe of the run",
            o.name()
        );
        o.check(target)?;
        o.begin(&First {
            target,
            start: &|| first.clone(),
            step: draws.steps()[0],
            temperature: info.temperatures[some / info.chains],
            info: &[],
        })?;
        columns.push(Column {
            name: o.name(),
            group: Group::Posterior,
            components: o.components(target),
        });
    }
    let info = RunInfo {
        columns,
        every: "at the kept draws".into(),
        warm_draws: 0,
        draws: draws.steps().len(),
        ladder: None,
        ..info.clone()
    };
    let judgements = Summary::new(run)?.judgements.into_iter();
    let of_source = judgements.map(|j| Judged {
        verdict: j.verdict,
        reasons: match j.reasons.is_empty() {
            true => Vec::new(),
            false => vec![format!("run '{}': {}", info.name, j.says())],
        },
    });
    let of_source = of_source.collect();
    let of = |chain| measure(&info, &draws, chain, target, &observables, &first);
    let records = (0..run.params.len()).into_par_iter().map(of);
    let records = records.collect::<Result<Vec<_>>>()?;
    Ok(Run {
        records,
        folder: run.folder.clone(),
        failures: run.failures.clone(),
        params: run.params.clone(),
        steps: run.steps.clone(),
        scores: Vec::new(),
        ladders: None,
        notes: run.notes.clone(),
        seconds: run.seconds,
        origin: run.origin.clone(),
        of_source,
        whole: false,
        info,
    })
}

/// The records of a chain, one after the other.
fn measure(
    info: &RunInfo,
    draws: &KeptDraws,
    chain: usize,
    target: &Target,
    observables: &[Handle],
    first: &Arc<Vec<f32>>,
) -> Result<Vec<f64>> {
    // Of a schedule that goes on after burn-in only the end is known.
    let temperature = match info.steady {
        true => info.temperatures[chain / info.chains],
        false => f64::NAN,
    };
    let mut work = Workspace::new(1);
    let mut records = Vec::with_capacity(draws.count(chain) * info.width());
    let mut kept = draws.chain(info, chain)?;
    for i in 0..draws.count(chain) {
        let w = kept.draw(i)?;
        let mut view = View {
            chain: ChainRef {
                index: chain,
                seed: info.seed,
                step: draws.steps()[i],
                temperature,
                w: &w,
                vectors: &[],
            },
            vector_names: &[],
            info: (&[], &[]),
            batch: info.m,
            start: &|| first.clone(),
            target,
            work: &mut work,
            known: LossCache::default(),
        };
        let mut record = vec![f64::NAN; info.width()];
        let mut rest = &mut record[..];
        for (o, column) in observables.iter().zip(&info.columns) {
            let (own, after) = rest.split_at_mut(column.width());
            o.measure(&mut view, own)?;
            rest = after;
        }
        records.extend(record);
    }
    Ok(records)
}
