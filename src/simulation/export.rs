//! A run on disk: traces for ArviZ, weights for PyTorch, run.json for people.

use super::draws;
use super::run::{Column, Group, Run, versions};
use super::summary::Summary;
use crate::diagnostic::Verdict;
use crate::engine::report::HAMILTONIAN;
use crate::error::Result;
use crate::model::Layout;
use crate::store::{self, weights, zarr};
use anyhow::Context;
use serde_json::{Map, json};
use std::path::Path;

/// The file of the last parameters.
const WEIGHTS: &str = "weights.safetensors";

/// Numbers of a run up to which judging it takes no long time.
const FEW: usize = 20_000_000;

/// Numbers judged in a second, at the least (two cores of 2024: 6.4 million).
const JUDGED_PER_SECOND: f64 = 5e6;

/// Share of a run's time that it may take to judge it when it is written.
const MOST_JUDGING: f64 = 0.1;

impl Run {
    /// The verdict that lists of runs show, where it takes no long time.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        Some(self.briefly()?.verdict())
    }

    /// The summary, where it takes no long time.
    fn briefly(&self) -> Option<Summary> {
        (!self.is_large()).then(|| Summary::new(self).ok())?
    }

    /// Whether it takes a long time to judge it.
    pub(super) fn is_large(&self) -> bool {
        self.numbers() > FEW
    }

    /// The summary, where it takes no long time beside the run itself.
    fn in_proportion(&self) -> Option<Summary> {
        let seconds = self.numbers() as f64 / JUDGED_PER_SECOND;
        let judged = !self.is_large() || seconds <= MOST_JUDGING * self.seconds;
        judged.then(|| Summary::new(self).ok())?
    }

    /// How many numbers were recorded.
    fn numbers(&self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }

    /// Write traces, weights, run.json and the summary into the run's folder.
    pub fn write(&self) -> Result<()> {
        let summary = self.in_proportion();
        zarr::write(&self.folder.join("trace.zarr"), &self.zarr())?;
        self.write_weights()?;
        let rate =
            (self.info.steps as f64 * self.info.all_chains() as f64) / self.seconds.max(1e-9);
        store::write_json(
            &self.folder.join("run.json"),
            &json!({
                "run": self.info,
                "notes": self.notes,
                "failures": self.failures,
                "predictions": self.scores,
                "verdict": summary.as_ref().map(Summary::verdict),
                "timings": { "seconds": self.seconds, "chain_steps_per_second": rate },
                "versions": versions(),
            }),
        )?;
        summary.map_or(Ok(()), |s| self.remember(&s))
    }

    /// The last parameters in one file: a tensor `[chain, …]` of each of the model's, `[chain, temperature, …]` where there are temperatures.
    fn write_weights(&self) -> Result<()> {
        let info = &self.info;
        let (chains, temperatures) = (info.chains, info.temperatures.len());
        let lead = match info.has_temperatures() {
            true => vec![chains, temperatures],
            false => vec![chains],
        };
        let layout = Layout::new(info.tensors.iter().cloned());
        let places = (0..chains).flat_map(|c| (0..temperatures).map(move |t| t * chains + c));
        let views: Vec<_> = places.map(|i| layout.views(&self.params[i])).collect();
        let stack = |(k, (name, shape)): (usize, &(String, Vec<usize>))| {
            let rows = views.iter().map(|tensors| tensors[k].2).collect();
            (name.clone(), [&lead[..], shape].concat(), rows)
        };
        let stacks: Vec<_> = info.tensors.iter().enumerate().map(stack).collect();
        let temperatures: Vec<_> = info.temperatures.iter().map(|t| format!("{t:e}")).collect();
        let metadata = [
            ("temperatures", temperatures.join(", ")),
            ("run", info.name.clone()),
        ];
        let metadata = metadata.map(|(key, text)| (key.to_string(), text));
        weights::save_stacks(&self.folder.join(WEIGHTS), &stacks, &metadata)
    }

    /// The files of a finished run that are damaged, each with what to do.
    pub fn damage(&self) -> Vec<String> {
        damage(&self.folder, Some(self))
    }

    /// The traces as ArviZ reads them: dims chain and draw, and temperature for a sweep.
    fn zarr(&self) -> zarr::Group {
        let sweep = self.info.has_temperatures();
        let (chains, temperatures) = (self.info.chains, self.info.temperatures.len());
        let part = |name: &str, group: Group, first: usize, draws: usize| {
            let mut arrays = vec![
                zarr::Array::new(
                    "chain",
                    &["chain"],
                    &[chains],
                    zarr::Data::I64((0..chains as i64).collect()),
                ),
                zarr::Array::new(
                    "draw",
                    &["draw"],
                    &[draws],
                    zarr::Data::I64((0..draws as i64).collect()),
                ),
            ];
            if sweep {
                let t = zarr::Data::F64(self.info.temperatures.clone());
                arrays.push(zarr::Array::new(
                    "temperature",
                    &["temperature"],
                    &[temperatures],
                    t,
                ));
            }
            for (column, data) in self.columns_of(group, first, draws) {
                arrays.push(self.zarr_array(column, draws, data));
                if let Some((dim, labels)) = &column.components
                    && !arrays.iter().any(|a| a.name == *dim)
                {
                    arrays.push(zarr::Array::new(
                        dim,
                        &[dim],
                        &[labels.len()],
                        zarr::Data::Str(labels.clone()),
                    ));
                }
            }
            let mut attributes = Map::new();
            attributes.insert("inference_library".into(), json!("ergodic"));
            attributes.insert(
                "inference_library_version".into(),
                json!(env!("CARGO_PKG_VERSION")),
            );
            attributes.insert("sampling_time".into(), json!(self.seconds));
            zarr::Group {
                name: name.into(),
                attributes,
                arrays,
                groups: Vec::new(),
            }
        };
        let (warm, draws) = (self.info.warm_draws, self.info.draws);
        let mut groups = vec![
            part("posterior", Group::Posterior, warm, draws),
            part("sample_stats", Group::SampleStats, warm, draws),
        ];
        if warm > 0 {
            groups.push(part("warmup_posterior", Group::Posterior, 0, warm));
            groups.push(part("warmup_sample_stats", Group::SampleStats, 0, warm));
        }
        let mut attributes = Map::new();
        attributes.insert("creation_library".into(), json!("ergodic"));
        attributes.insert("run".into(), json!(self.info.name));
        zarr::Group {
            name: "trace".into(),
            attributes,
            arrays: Vec::new(),
            groups,
        }
    }

    /// So many draws of the columns of a group, from the `first`: `[chain, draw, temperature, component]`; NaN where a chain has failed before.
    fn columns_of(&self, group: Group, first: usize, draws: usize) -> Vec<(&Column, Vec<f64>)> {
        let (chains, temperatures) = (self.info.chains, self.info.temperatures.len());
        let (mut out, mut places, mut at) = (Vec::new(), Vec::new(), 0);
        for column in &self.info.columns {
            let k = column.width();
            if column.group == group {
                out.push((column, vec![f64::NAN; chains * draws * temperatures * k]));
                places.push(at..at + k);
            }
            at += k;
        }
        // Row by row: there may be more of them than fit into the cache.
        for (i, records) in self.records.iter().enumerate() {
            let (t, c) = (i / chains, i % chains);
            let rows = records.chunks_exact(self.info.width().max(1));
            for (d, row) in rows.skip(first).take(draws).enumerate() {
                let to = (c * draws + d) * temperatures + t;
                for ((_, data), place) in out.iter_mut().zip(&places) {
                    let k = place.len();
                    data[to * k..(to + 1) * k].copy_from_slice(&row[place.clone()]);
                }
            }
        }
        out
    }

    fn zarr_array(&self, column: &Column, draws: usize, data: Vec<f64>) -> zarr::Array {
        let (chains, temperatures) = (self.info.chains, self.info.temperatures.len());
        let mut dims = vec!["chain", "draw"];
        let mut shape = vec![chains, draws];
        if self.info.has_temperatures() {
            dims.push("temperature");
            shape.push(temperatures);
        }
        if let Some((dim, _)) = &column.components {
            dims.push(dim);
            shape.push(column.width());
        }
        // ArviZ knows H by another name, which is that of U here.
        let name = match column.name.as_str() {
            name if name == HAMILTONIAN.0 && column.group == Group::SampleStats => "energy",
            name => name,
        };
        zarr::Array::new(name, &dims, &shape, zarr::Data::F64(data))
    }
}

/// The files in the folder of a finished run that are damaged, each with what to do. The numbers of a run are those of its checkpoint, which has a checksum of its own.
pub(super) fn damage(folder: &Path, run: Option<&Run>) -> Vec<String> {
    let mut out = Vec::new();
    let trace = folder.join("trace.zarr");
    if trace.exists() {
        out.extend(zarr::check(&trace).err());
    }
    let weights = folder.join(WEIGHTS);
    if weights.exists() {
        let checked = weights::check_weights(&weights);
        let named = || format!("'{}'", weights.display());
        out.extend(checked.with_context(named).err());
    }
    let advice =
        "the numbers here are from the checkpoint, which is intact; --resume rewrites this file";
    let rewritten = out.iter().map(|e| format!("{e:#}; {advice}"));
    let kept = draws::check_files(folder, run)
        .err()
        .map(|e| format!("{e:#}"));
    rewritten.chain(kept).collect()
}
