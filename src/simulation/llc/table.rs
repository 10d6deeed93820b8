//! The table of the benchmark: what was measured of each problem, and a line per sampler and step size.

use crate::diagnostic;
use crate::error::Result;
use crate::simulation::transcript::GOES_ON;
use crate::store::checkpoint;
use crate::store::read_json;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

/// One problem, one sampler, one step size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Index of the problem.
    pub problem: u64,
    /// Which sampler.
    pub sampler: usize,
    /// Which of its step sizes.
    pub step: usize,
    /// λ̂; none if every chain failed.
    pub estimate: Option<f64>,
    /// Its standard error; none if there are too few draws for one.
    pub mcse: Option<f64>,
    /// Virial temperature, set 1.
    pub virial: Option<f64>,
    /// Why chains failed.
    pub failed: Vec<String>,
    /// Seconds of the chains.
    pub seconds: f64,
}

/// What is known of a problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Its index.
    pub problem: u64,
    /// Widths.
    pub widths: Vec<usize>,
    /// Rank of the product.
    pub rank: usize,
    /// λ.
    pub truth: f64,
    /// Half the rank of the Jacobian at the weights.
    pub regular: f64,
    /// N.
    pub parameters: usize,
}

/// A benchmark, finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Everything that defines it, in words.
    pub setting: serde_json::Value,
    /// Names of the samplers.
    pub samplers: Vec<String>,
    /// Step sizes of each.
    pub step_sizes: Vec<Vec<f64>>,
    /// Steps per chain, times chains.
    pub steps: u64,
    /// The problems.
    pub problems: Vec<Known>,
    /// What was measured, problem by problem.
    pub cells: Vec<Cell>,
}

/// A sampler at a step size, over all problems.
#[derive(Debug, Clone)]
pub struct Line {
    /// Sampler.
    pub sampler: String,
    /// Step size.
    pub step: f64,
    /// Problems.
    pub problems: usize,
    /// Share of problems without an estimate.
    pub failed: f64,
    /// Mean of (λ̂-λ)/λ over the others, its standard deviation, and its median.
    pub error: f64,
    /// See `error`.
    pub sd: f64,
    /// See `error`.
    pub median: f64,
    /// The same mean against the larger of λ and half the Jacobian's rank.
    pub local_error: f64,
    /// Share of pairs of problems whose estimates are in the order of their λ, of all pairs with different λ; a failed one is in no order.
    pub order: f64,
    /// Share of estimates within 1.96 standard errors of λ, and of that larger bound.
    pub coverage: f64,
    /// See `coverage`.
    pub local_coverage: f64,
    /// Median standard error over λ.
    pub mcse: f64,
    /// Milliseconds per step of a chain, mean over problems.
    pub milliseconds: f64,
}

/// Its file.
pub(crate) const FILE: &str = "benchmark.json";

impl Benchmark {
    /// That of a folder, with the cells it has so far; none if the folder is that of something else.
    ///
    /// # Errors
    /// If what is there is damaged.
    pub fn load(folder: &Path) -> Result<Option<Self>> {
        let file = folder.join(FILE);
        if file.is_file() {
            return read_json(&file).map(Some);
        }
        let saved = folder.join("checkpoint");
        // A run may be large: its numbers are not read for nothing.
        if checkpoint::description(&saved).is_none_or(|meta| meta.get("benchmark").is_none()) {
            return Ok(None);
        }
        let Some((saved, _)) = checkpoint::load(&saved)? else {
            return Ok(None);
        };
        let so_far = saved.meta.get("benchmark");
        Ok(so_far.map(Self::deserialize).transpose()?)
    }

    /// Take over cells that are not there yet.
    pub(super) fn take(&mut self, cells: Vec<Cell>) {
        let key = |c: &Cell| (c.problem, c.sampler, c.step);
        for cell in cells {
            if !self.cells.iter().any(|c| key(c) == key(&cell)) {
                self.cells.push(cell);
            }
        }
    }

    /// One line per sampler and step size.
    pub fn lines(&self) -> Vec<Line> {
        let mut out = Vec::new();
        for (s, name) in self.samplers.iter().enumerate() {
            for (k, step) in self.step_sizes[s].iter().enumerate() {
                let of = |c: &&Cell| c.sampler == s && c.step == k;
                let cells: Vec<_> = self.cells.iter().filter(of).collect();
                if !cells.is_empty() {
                    out.push(self.line(name, *step, &cells));
                }
            }
        }
        out
    }

    fn line(&self, name: &str, step: f64, cells: &[&Cell]) -> Line {
        let known = |c: &Cell| self.problems.iter().find(|k| k.problem == c.problem);
        // λ = 0 (a product of rank 0 through a single unit has none) leaves no relative error.
        let found: Vec<_> = cells
            .iter()
            .filter_map(|c| Some((known(c)?, c.estimate?, c.mcse)))
            .filter(|(k, ..)| k.truth > 0.0)
            .collect();
        let local = |k: &Known| k.truth.max(k.regular);
        let errors: Vec<_> = found.iter().map(|(k, e, _)| e / k.truth - 1.0).collect();
        let locals: Vec<_> = found.iter().map(|(k, e, _)| e / local(k) - 1.0).collect();
        let relative = found
            .iter()
            .filter_map(|(k, _, m)| Some(m.as_ref()? / k.truth));
        let within = |of: &dyn Fn(&Known) -> f64| {
            let hit = |(k, e, m): &&(&Known, f64, Option<f64>)| {
                m.is_some_and(|m| (e - of(k)).abs() <= 1.96 * m)
            };
            found.iter().filter(hit).count() as f64 / found.len() as f64
        };
        let (mut pairs, mut right) = (0.0, 0.0);
        for (i, a) in cells.iter().enumerate() {
            for b in &cells[..i] {
                let (Some(ka), Some(kb)) = (known(a), known(b)) else {
                    continue;
                };
                if ka.truth == kb.truth {
                    continue;
                }
                pairs += 1.0;
                if let (Some(x), Some(y)) = (a.estimate, b.estimate) {
                    right += f64::from(u8::from((x > y) == (ka.truth > kb.truth) && x != y));
                }
            }
        }
        let seconds: f64 = cells.iter().map(|c| c.seconds).sum();
        Line {
            sampler: name.into(),
            step,
            problems: cells.len(),
            failed: cells.iter().filter(|c| c.estimate.is_none()).count() as f64
                / cells.len() as f64,
            error: diagnostic::mean(&[&errors]),
            sd: diagnostic::sd(&[&errors]),
            median: diagnostic::median(errors),
            local_error: diagnostic::mean(&[locals]),
            order: right / pairs,
            coverage: within(&|k| k.truth),
            local_coverage: within(&local),
            mcse: diagnostic::median(relative.collect()),
            milliseconds: 1e3 * seconds / (cells.len() as u64 * self.steps) as f64,
        }
    }

    /// As a map, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let line = |l: Line| {
            json!({
                "sampler": l.sampler, "step": l.step, "problems": l.problems, "failed": l.failed,
                "error": l.error, "sd": l.sd, "median": l.median, "local_error": l.local_error, "order": l.order,
                "coverage": l.coverage, "local_coverage": l.local_coverage, "mcse": l.mcse, "milliseconds": l.milliseconds,
            })
        };
        let lines: Vec<_> = self.lines().into_iter().map(line).collect();
        json!({ "lines": lines, "problems": self.problems, "cells": self.cells })
    }
}

impl Benchmark {
    /// A row per sampler and step size.
    pub fn table(&self) -> Table {
        let above = |k: &&Known| k.regular > 1.01 * k.truth;
        let above = self.problems.iter().filter(above).count();
        let whole = self.problems.len() * self.step_sizes.iter().map(Vec::len).sum::<usize>();
        let unfinished = match self.cells.len() {
            n if n < whole => {
                format!("; UNFINISHED: {n} of {whole} estimates, {GOES_ON}")
            }
            _ => String::new(),
        };
        let mut out = Table::new([
            "sampler",
            "step",
            "failed",
            "error ± sd",
            "median",
            "local",
            "order",
            "coverage",
            "(local)",
            "mcse/λ",
            "ms/step",
        ])
        .line_above(format!(
            "{} problems, {} steps each; at {above} of them the local coefficient is above λ by more than 1 %{unfinished}",
            self.problems.len(),
            self.steps
        ));
        for l in self.lines() {
            out.push([
                l.sampler.clone(),
                format!("{:.1e}", l.step),
                format!("{:.0}%", 100.0 * l.failed),
                format!("{:+.3} ±{:>6.3}", l.error, l.sd),
                format!("{:+.3}", l.median),
                format!("{:+.3}", l.local_error),
                format!("{:.3}", l.order),
                format!("{:.2}", l.coverage),
                format!("{:.2}", l.local_coverage),
                format!("{:.4}", l.mcse),
                format!("{:.3}", l.milliseconds),
            ]);
        }
        out
    }
}

impl std::fmt::Display for Benchmark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Benchmark: "LlcBenchmark",
    entries: to_json, "llcbenchmark.to_map() -> map", "`lines` (a map per line of the table), `problems` and `cells`, all as measured.",
    table: table,
}
