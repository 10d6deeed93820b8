//! `ergodic show`: the summary of what is on disk, finished or not.

use crate::error::Result;
use crate::report::read::{Part, Results, What};
use crate::simulation::summary::Summary;
use serde_json::{Map, Value};
use std::path::Path;

/// What a folder holds, all of it readable.
///
/// # Errors
/// If there is nothing, or a part is damaged.
pub fn parts(folder: &Path) -> Result<Vec<Part>> {
    let results = Results::of(folder)?;
    for part in &results.parts {
        if let What::Damaged(why) = &part.what {
            anyhow::bail!("{why}; `ergodic report` tells what is still there");
        }
    }
    anyhow::ensure!(
        !results.parts.is_empty(),
        "{}: no run in this folder{}",
        folder.display(),
        match results.notes.first() {
            Some(note) => format!("; {note}"),
            None => String::new(),
        }
    );
    Ok(results.parts)
}

/// The summaries of what is in a folder, as text.
pub fn text(folder: &Path) -> Result<String> {
    let mut out = String::new();
    for part in parts(folder)? {
        let name = &part.name;
        match &part.what {
            What::Run(run, done, _) => {
                if !done {
                    let step = run.least_step();
                    let phase = if step < run.info.burn_in {
                        ", still in burn-in: no draws yet"
                    } else {
                        ""
                    };
                    out += &format!(
                        "'{}' UNFINISHED at step {step} of {}{phase}; continue with --resume\n",
                        run.info.name, run.info.steps
                    );
                    if step < run.info.burn_in {
                        out.extend(run.notes.iter().map(|n| format!("NOTE: {n}\n")));
                        continue;
                    }
                }
                out += &format!("{}\n", Summary::new(run)?);
                out.extend(run.damage().iter().map(|d| format!("NOTE: {d}\n")));
            }
            What::Training(t, done) => {
                if !done {
                    out += &format!("'{name}' UNFINISHED; continue with --resume\n");
                }
                out += &format!("{t}\n");
            }
            What::Populations(s, done) => {
                if !done {
                    out += &format!(
                        "'{name}' UNFINISHED, on its way from the prior; continue with --resume\n"
                    );
                }
                out += &format!("{s}\n\n");
            }
            What::Benchmark(b) => out += &format!("'{name}': {b}\n\n"),
            What::Damaged(_) => {}
        }
    }
    Ok(out.trim_end().to_string())
}

/// The summaries of what is in a folder, by name.
pub fn json(folder: &Path) -> Result<Value> {
    let mut out = Map::new();
    for part in parts(folder)? {
        let (mut map, done) = match &part.what {
            What::Run(run, done, _) => (Summary::new(run)?.to_map(), *done),
            What::Training(t, done) => {
                let each = |c: usize| Value::Object(t.kept(c).into_iter().map(number).collect());
                let kept = (0..t.history.len()).map(each).collect();
                let seconds = Value::from(t.seconds);
                let map = [("kept".into(), kept), ("seconds".into(), seconds)];
                (map.into_iter().collect(), *done)
            }
            What::Populations(s, done) => (s.to_map(), *done),
            What::Benchmark(b) => match b.to_json() {
                Value::Object(map) => (map, true),
                _ => (Map::new(), true),
            },
            What::Damaged(_) => continue,
        };
        map.insert("done".into(), done.into());
        out.insert(part.name.clone(), Value::Object(map));
    }
    Ok(Value::Object(out))
}

fn number((name, value): (String, f64)) -> (String, Value) {
    (name, Value::from(value))
}
