//! A run on disk: traces for ArviZ, weights for PyTorch, run.json for people.

use super::run::{Column, Group, Run, versions};
use super::summary::Summary;
use crate::diagnostic::Verdict;
use crate::engine::report::HAMILTONIAN;
use crate::error::Result;
use crate::model::Layout;
use crate::store::{self, weights, zarr};
use anyhow::Context;
use serde_json::{Map, json};

/// Numbers of a run up to which it is judged when it is written.
const MOST_JUDGED: usize = 20_000_000;

impl Run {
    /// The verdict that lists of runs show, where it takes no long time.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let numbers: usize = self.records.iter().map(Vec::len).sum();
        let summary = (numbers <= MOST_JUDGED).then(|| Summary::new(self));
        Some(summary?.ok()?.verdict())
    }

    /// Write traces, weights and run.json into the run's folder.
    pub fn write(&self) -> Result<()> {
        zarr::write(&self.folder.join("trace.zarr"), &self.zarr())?;
        let layout = Layout::new(self.info.tensors.iter().cloned());
        let files = self.params.iter().enumerate().map(|(i, w)| {
            let temperature = self.info.temperatures[i / self.info.chains.max(1)];
            let metadata = vec![
                ("temperature".to_string(), format!("{temperature:e}")),
                ("run".to_string(), self.info.name.clone()),
            ];
            let name = format!("chain-{i}.safetensors");
            (name, (layout.views(w), metadata))
        });
        weights::save_many(&self.folder.join("weights"), files)?;
        let rate =
            (self.info.steps as f64 * self.info.all_chains() as f64) / self.seconds.max(1e-9);
        store::write_json(
            &self.folder.join("run.json"),
            &json!({
                "run": self.info,
                "notes": self.notes,
                "failures": self.failures,
                "predictions": self.scores,
                "verdict": self.verdict(),
                "timings": { "seconds": self.seconds, "chain_steps_per_second": rate },
                "versions": versions(),
            }),
        )
    }

    /// What is not as it was written, of a finished run. The numbers of a run are those of its checkpoint, which has a checksum of its own.
    pub fn damage(&self) -> Vec<String> {
        let mut out = Vec::new();
        let trace = self.folder.join("trace.zarr");
        if trace.exists() {
            out.extend(zarr::read(&trace).err());
        }
        let entries = self.folder.join("weights").read_dir();
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "safetensors") {
                let checked = weights::check_weights(&path);
                out.extend(
                    checked
                        .with_context(|| format!("'{}'", path.display()))
                        .err(),
                );
            }
        }
        let advice = "the numbers here are from the checkpoint, which is intact; --resume rewrites this file";
        out.iter().map(|e| format!("{e:#}; {advice}")).collect()
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
            let mut at = 0;
            for column in &self.info.columns {
                if column.group == group {
                    arrays.push(self.zarr_array(column, at, first, draws, sweep));
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
                at += column.width();
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

    fn zarr_array(
        &self,
        column: &Column,
        at: usize,
        first: usize,
        draws: usize,
        sweep: bool,
    ) -> zarr::Array {
        let (chains, temperatures) = (self.info.chains, self.info.temperatures.len());
        let (k, width) = (column.width(), self.info.width());
        let mut data = vec![f64::NAN; chains * draws * temperatures * k];
        for (i, records) in self.records.iter().enumerate() {
            let (t, c) = (i / chains, i % chains);
            for (d, row) in records
                .chunks_exact(width)
                .skip(first)
                .take(draws)
                .enumerate()
            {
                let to = ((c * draws + d) * temperatures + t) * k;
                data[to..to + k].copy_from_slice(&row[at..at + k]);
            }
        }
        let mut dims = vec!["chain", "draw"];
        let mut shape = vec![chains, draws];
        if sweep {
            dims.push("temperature");
            shape.push(temperatures);
        }
        if let Some((dim, _)) = &column.components {
            dims.push(dim);
            shape.push(k);
        }
        // ArviZ knows H by another name, which is that of U here.
        let name = match column.name.as_str() {
            name if name == HAMILTONIAN.0 && column.group == Group::SampleStats => "energy",
            name => name,
        };
        zarr::Array::new(name, &dims, &shape, zarr::Data::F64(data))
    }
}
