//! An estimate of the learning coefficient on disk, beside its run.

use super::Estimate;
use super::protocol::Losses;
use crate::error::Result;
use crate::plot::Figure;
use crate::plot::learning::{self, Online};
use crate::simulation::run::Run;
use crate::store;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The file in the folder of the run.
const FILE: &str = "llc.json";

/// What is on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    /// All numbers of the estimate, as scripts have them.
    pub estimate: Map<String, Value>,
    /// Where its losses are in the run.
    pub losses: Losses,
}

impl Saved {
    /// That of a run, if there is one.
    pub fn of(run: &Run) -> Result<Option<Self>> {
        let path = run.folder.join(FILE);
        match path.exists() {
            true => store::read_json(&path).map(Some),
            false => Ok(None),
        }
    }

    /// One of the numbers; NaN if it is not there.
    pub fn number(&self, name: &str) -> f64 {
        let found = self.estimate.get(name).and_then(Value::as_f64);
        found.unwrap_or(f64::NAN)
    }

    /// One of the words.
    pub fn word(&self, name: &str) -> &str {
        let found = self.estimate.get(name).and_then(Value::as_str);
        found.unwrap_or_default()
    }
}

impl Estimate {
    /// Write it into the folder of its run.
    pub(super) fn write(&self) -> Result<()> {
        let estimate = match self.to_json() {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let losses = self.losses.clone();
        store::write_json(&self.run.folder.join(FILE), &Saved { estimate, losses })
    }
}

/// λ̂ from the steps so far, after burn-in: steps and running means over all healthy chains, of traces of nβ(L - L(w0)).
pub fn online(run: &Run, traces: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let info = &run.info;
    let healthy: Vec<_> = (0..traces.len())
        .filter(|c| run.failures[*c].is_none())
        .map(|c| traces[c].get(info.warm_draws..).unwrap_or_default())
        .collect();
    let draws = healthy.iter().map(|t| t.len()).min().unwrap_or(0);
    let every = (info.steps - info.burn_in) as f64 / info.draws as f64;
    let mut sum = 0.0;
    let mean = |i: usize| {
        sum += healthy.iter().map(|t| t[i]).sum::<f64>() / healthy.len() as f64;
        sum / (i + 1) as f64
    };
    let steps = (0..draws).map(|i| info.burn_in as f64 + every * (i + 1) as f64);
    (steps.collect(), (0..draws).map(mean).collect())
}

/// The loss of every chain along the steps, and below it the estimate so far, with the final one and its standard error, and the exact value.
pub fn drawn(run: &Run, traces: &[Vec<f64>], estimate: (f64, f64), truth: Option<f64>) -> Figure {
    let info = &run.info;
    let longest = traces.iter().map(Vec::len).max().unwrap_or(0);
    let every = info.steps as f64 / (info.warm_draws + info.draws) as f64;
    let steps: Vec<f64> = (0..longest).map(|i| every * (i + 1) as f64).collect();
    learning::online(Online {
        steps: &steps,
        traces,
        burn_in: info.burn_in as f64,
        online: online(run, traces),
        estimate,
        truth,
    })
}
