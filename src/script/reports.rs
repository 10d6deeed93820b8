//! Reports, in scripts.

use super::binder::Binder;
use super::explore::tokens::paint;
use super::{Bound, Context, OrRaise};
use crate::report;
use crate::report::read::Results;
use crate::report::record::Record;
use crate::simulation::run::{Run, versions};
use serde_json::Value;
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "run.report(name) -> string",
        "Write everything about a run into one HTML page: verdicts, tables with error bars, figures, the script; returns its path.\n\n\
         The page needs no other file and no network, and reads well on a phone and in print. It goes into the folder of the results (or to an absolute path). \
         `ergodic report RUN` writes the same from the command line, for finished and unfinished runs.",
        move |r: &mut Arc<Run>, name: &str| -> Bound<String> {
            let path = context.session.place("run.report", "", name).or_raise()?;
            if context.session.leads() {
                let results = Results::of_run(r, record(&context)).or_raise()?;
                report::write(&[results], &path, paint).or_raise()?;
            }
            Ok(path.display().to_string())
        },
    )
    .with(
        &[],
        "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 100, every: 1 }).report(\"report.html\")",
    );
}

/// What is known of a script that has not ended yet.
fn record(context: &Context) -> Record {
    let session = &context.session;
    let versions = match versions() {
        Value::Object(map) => map,
        _ => Default::default(),
    };
    let (script, source) = context
        .script
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .clone();
    Record {
        script,
        source,
        settings: context.settings().into_iter().collect(),
        seed: Some(session.seed),
        threads: Some(session.threads as u64),
        device: session.device.0.clone(),
        quick: session.quick,
        versions,
        ..Record::default()
    }
}
