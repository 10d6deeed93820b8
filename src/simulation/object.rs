//! Runs, trainings, populations and summaries as scripts hold them.

use super::run::Run;
use super::smc::Smc;
use super::summary::Summary;
use super::trained::Trained;
use crate::error::{Result, count};
use crate::object::{Entries, Field, Object, Shown, object};
use crate::options::Value;
use crate::plot::{Axis, Figure, Panel, Series};
use crate::table::{Table, number};
use crate::target::prior::Parameters;
use serde_json::Value as Json;
use std::sync::Arc;

impl Run {
    /// Means with error bars, convergence diagnostics and the thermometer, per temperature.
    pub fn summary(&self) -> Result<Arc<Summary>> {
        let summary = Summary::new(self)?;
        if self.whole && self.is_large() {
            // In a folder that cannot be written to it takes its time again.
            let _ = self.remember(&summary);
        }
        Ok(Arc::new(summary))
    }

    /// The last parameters of every chain, as a start.
    pub fn parameters(&self) -> Arc<Parameters> {
        let vectors = self.params.clone();
        Arc::new(Parameters { vectors })
    }
}

impl Object for Run {
    const NAME: &'static str = "Run";

    const FIELDS: &'static [Field<Self>] = &[
        ("name", |r| r.info.name.clone().into()),
        ("folder", |r| r.folder.display().to_string().into()),
        ("temperatures", |r| r.info.temperatures.clone().into()),
        ("seconds", |r| r.seconds.into()),
        ("step", |r| r.least_step().into()),
        ("done", |r| r.done().into()),
        ("failed", |r| r.failures.iter().flatten().count().into()),
    ];

    fn text(&self) -> String {
        format!(
            "run '{}': {} with {}, {} × {}, {} each, in {}{}",
            self.info.name,
            self.info.kind,
            self.info.sampler,
            count(self.info.temperatures.len(), "temperature"),
            count(self.info.chains, "chain"),
            count(self.info.draws, "draw"),
            self.folder.display(),
            self.unfinished()
                .map_or(String::new(), |u| format!(", {u}"))
        )
    }

    fn result(&self) -> Json {
        match self.summary() {
            Ok(summary) => summary.result(),
            Err(e) => Json::String(e.to_string()),
        }
    }

    fn table(&self) -> Option<Table> {
        self.summary().ok().map(|s| s.table())
    }

    fn as_option(&self) -> Option<Value> {
        Some(self.parameters().into())
    }

    /// Its summary, or in words if there is nothing to summarise.
    fn shown(&self) -> Shown {
        match self.summary() {
            Ok(summary) => summary.shown(),
            Err(e) => Shown::text(format!("run '{}': {e:#}", self.info.name)),
        }
    }
}

impl Object for Summary {
    const NAME: &'static str = "Summary";

    const ENTRIES: Option<Entries> = Some(Entries {
        method: "summary.to_map() -> map",
        doc: "All entries as a map: arrays over temperatures for a sweep, numbers for a sample.\n\nWith each name also `_mcse`, `_sd`, `_ess`, `_ess_tail`, `_rhat` and `_autocorrelation_time`. `verdict`, `reasons`, `more_steps` and `tests` (maps of name, deviation, error, tolerance, ess) are the judgement; `thermometer`, `thermometer_mcse` and `thermometer_verdict` (\"agrees\", \"hot\", \"cold\", \"undecided\", \"n/a\") the temperature alone.",
        index: Some("the summary"),
    });

    fn text(&self) -> String {
        self.to_string()
    }

    fn to_json(&self) -> Json {
        self.to_map().into()
    }

    fn result(&self) -> Json {
        self.to_json()
    }

    fn table(&self) -> Option<Table> {
        Some(Summary::table(self))
    }
}

impl Trained {
    /// What was kept of the history, a row per chain.
    pub fn table(&self) -> Table {
        let titles = std::iter::once("chain".to_string()).chain(self.columns.clone());
        let mut table = Table::new(titles).line_above(format!(
            "{}: {} ({:.1} s)",
            self.name, self.text, self.seconds
        ));
        for c in 0..self.history.len() {
            let numbers = self.kept(c).into_iter().map(|(_, v)| number(v));
            table.push(std::iter::once(c.to_string()).chain(numbers));
        }
        table
    }

    /// What begins like this in the history, against the epoch; a line per chain and column. None if there is nothing.
    ///
    /// # Errors
    /// If the history has no epochs.
    pub fn figure(&self, what: &str) -> Result<Option<Figure>> {
        let of = |c: &&String| c.as_str() == what || c.starts_with(&format!("{what}_"));
        let columns: Vec<_> = self.columns.iter().filter(of).collect();
        let (mut series, mut positive) = (Vec::new(), true);
        for name in &columns {
            for chain in 0..self.history.len() {
                let y = self.column(name, chain)?;
                positive &= y.iter().all(|y| *y > 0.0 || !y.is_finite());
                let label = match self.history.len() {
                    1 => (*name).clone(),
                    _ => format!("{name}, chain {chain}"),
                };
                series.push(Series::line(label, self.column("epoch", chain)?, y));
            }
        }
        if series.iter().all(|s| s.x.is_empty()) {
            return Ok(None);
        }
        let y = match positive {
            true => Axis::log(what),
            false => Axis::linear(what),
        };
        let panel = Panel::new(Axis::linear("epoch"), y, series);
        Ok(Some(Figure::of(panel)))
    }

    /// The loss against the epoch.
    fn drawing(&self) -> Option<String> {
        self.figure("loss").ok()??.to_html().ok()
    }
}

object! {
    Trained: "Trained",
    fields: {
        "seconds" => |t| t.seconds.into(),
        "checkpoints" => |t| t.checkpoints.clone().into(),
        "best_epoch" => |t| t.best_epoch.clone().into(),
    },
    table: table,
    drawing: drawing,
    option: |t| (&t.params).into(),
}

object! {
    Smc: "Smc",
    entries: to_map, "smc.to_map() -> map", "All fields as a map.", "the result of smc",
    table: table,
    option: |s| (&s.params).into(),
}
