//! Summaries: means with error bars, convergence diagnostics and the thermometer, per temperature.

pub use super::digits::with_error;
use super::header::header;
pub(crate) use super::header::{WIDEST, first_scores};
use super::health::LEAST_SPREAD;
use super::judge::{Judgement, Mixing};
use super::prediction::RUNNING;
use super::run::{Column, Group, Run};
use crate::diagnostic::Summary as Numbers;
pub use crate::diagnostic::verdict::{LEAST_ESS, MOST_R_HAT};
use crate::diagnostic::{Heat, Reading, Verdict};
use crate::engine::report::GRADIENT_VARIANCE;
use crate::error::{Result, count as count_of};
use crate::table::{Table, VERDICT, padded};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::fmt;

/// One quantity at every temperature.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name; a component of a vector has its label appended.
    pub name: String,
    /// How many components its vector has, if it is a component of one.
    pub component_of: Option<usize>,
    /// Draws that are NaN or infinite, per temperature.
    pub not_finite: Vec<usize>,
    /// Whether every draw is NaN, per temperature: nothing of the kind is known of this sampler.
    pub unknown: Vec<bool>,
    /// One per temperature.
    pub numbers: Vec<Numbers>,
}

impl Row {
    /// A component of a trace.
    fn of(run: &Run, column: &Column, k: usize) -> Result<Self> {
        let draws = |t| run.draws(&column.name, k, t, true);
        let draws = (0..run.info.temperatures.len()).map(draws);
        let draws = draws.collect::<Result<Vec<_>>>()?;
        let bad = |d: &Vec<Vec<f64>>| d.iter().flatten().filter(|x| !x.is_finite()).count();
        Ok(Self {
            name: column.name_of(k),
            component_of: column.components.as_ref().map(|_| column.width()),
            not_finite: draws.iter().map(bad).collect(),
            unknown: draws
                .iter()
                .map(|d| d.iter().flatten().all(|x| x.is_nan()))
                .collect(),
            numbers: draws.into_iter().map(|d| run.summarise(d)).collect(),
        })
    }
}

/// The summary of a run.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Temperatures.
    pub temperatures: Vec<f64>,
    /// Observables.
    pub rows: Vec<Row>,
    /// What the sampler reports.
    pub stats: Vec<Row>,
    /// The virial thermometer, per temperature.
    pub thermometers: Vec<Reading>,
    /// R̂ and effective sizes of all observables, per temperature.
    pub mixing: Vec<Mixing>,
    /// What may be said of the numbers, per temperature.
    pub judgements: Vec<Judgement>,
    /// Failed chains, per temperature.
    pub failed: Vec<usize>,
    /// What is to be known beside the verdicts.
    notes: Vec<String>,
    /// Whether there are no draws yet.
    empty: bool,
    header: Vec<String>,
    sweep: bool,
    sizes: Map<String, Value>,
}

impl Summary {
    /// Summarise a run, leaving out failed chains by name.
    pub fn new(run: &Run) -> Result<Self> {
        let info = &run.info;
        let count = info.temperatures.len();
        let rows_of = |group| -> Result<Vec<Row>> {
            let shown = |c: &&Column| c.group == group && !c.name.starts_with(RUNNING);
            let shown = info.columns.iter().filter(shown);
            let each: Vec<_> = shown
                .flat_map(|c| (0..c.width()).map(move |k| (c, k)))
                .collect();
            each.into_par_iter()
                .map(|(c, k)| Row::of(run, c, k))
                .collect()
        };
        let (rows, stats) = (rows_of(Group::Posterior)?, rows_of(Group::SampleStats)?);
        // Ranks of numbers that are infinite would look as if they mixed.
        let mixing_at = |t: usize| {
            let finite = rows.iter().filter(|r| r.not_finite[t] == 0);
            Mixing::of(finite.map(|r| (r.name.as_str(), &r.numbers[t])))
        };
        let mixing: Vec<_> = (0..count).map(mixing_at).collect();
        // What nothing is known of with this sampler is NaN; a closure that is NaN has no mean.
        let is_own = |name: &str| {
            let mut own = info.closures.keys();
            own.any(|k| {
                name.strip_prefix(k.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            })
        };
        // At the prior U may well be infinite.
        let broken_at = |t: usize| {
            let here = info.temperatures[t].is_finite();
            let bad = |r: &&Row| here && r.not_finite[t] > 0 && (!r.unknown[t] || is_own(&r.name));
            let bad: Vec<_> = rows.iter().filter(bad).collect();
            let first = bad.first()?;
            let draws = count_of(first.not_finite[t], "draw");
            let others = match bad.len() - 1 {
                0 => String::new(),
                n => format!(" and of {}", count_of(n, "other quantity")),
            };
            Some(format!("{draws} of {}{others} not finite", first.name))
        };
        let broken: Vec<_> = (0..count).map(broken_at).collect();
        let judgements = run.judge(&mixing, &broken)?;
        let mut notes: Vec<_> = info.notes.iter().map(|n| format!("NOTE: {n}")).collect();
        notes.extend(started_close(run, &judgements));
        let not_finite = rows.iter().map(|r| (&*r.name, r.not_finite.iter().sum()));
        Ok(Self {
            temperatures: info.temperatures.clone(),
            header: header(run, not_finite),
            rows,
            stats,
            thermometers: (0..count)
                .map(|t| run.thermometer(t))
                .collect::<Result<_>>()?,
            mixing,
            judgements,
            failed: (0..count).map(|t| run.failed(t)).collect(),
            notes,
            empty: !run.done() && run.draws_so_far() == 0,
            sweep: info.has_temperatures(),
            sizes: sizes(run),
        })
    }

    /// As a map: arrays over temperatures for a sweep, numbers for a sample; `x`, `x_mcse`, `x_sd`, `x_ess`, `x_rhat` per quantity.
    pub fn to_map(&self) -> Map<String, Value> {
        let mut out = Map::new();
        let mut put = |name: String, values: Vec<Value>| {
            let value = if self.sweep {
                Value::Array(values)
            } else {
                values.into_iter().next().unwrap_or(Value::Null)
            };
            out.insert(name, value);
        };
        let floats = |f: &dyn Fn(usize) -> f64| {
            (0..self.temperatures.len())
                .map(|t| json!(f(t)))
                .collect::<Vec<_>>()
        };
        put("temperature".into(), floats(&|t| self.temperatures[t]));
        for row in self.rows.iter().chain(&self.stats) {
            let n = &row.numbers;
            put(row.name.clone(), floats(&|t| n[t].mean));
            put(format!("{}_mcse", row.name), floats(&|t| n[t].mcse_mean));
            put(format!("{}_sd", row.name), floats(&|t| n[t].sd));
            put(format!("{}_ess", row.name), floats(&|t| n[t].ess_bulk));
            put(format!("{}_ess_tail", row.name), floats(&|t| n[t].ess_tail));
            put(format!("{}_rhat", row.name), floats(&|t| n[t].r_hat));
            put(
                format!("{}_autocorrelation_time", row.name),
                floats(&|t| n[t].autocorrelation_time),
            );
        }
        put(
            "thermometer".into(),
            floats(&|t| self.thermometers[t].temperature),
        );
        put(
            "thermometer_mcse".into(),
            floats(&|t| self.thermometers[t].mcse),
        );
        let each = |f: &dyn Fn(usize) -> Value| (0..self.temperatures.len()).map(f).collect();
        put(
            "thermometer_verdict".into(),
            each(&|t| json!(self.thermometers[t].verdict)),
        );
        put(
            "verdict".into(),
            each(&|t| json!(self.judgements[t].verdict)),
        );
        put(
            "reasons".into(),
            each(&|t| json!(self.judgements[t].reasons)),
        );
        put(
            "more_steps".into(),
            each(&|t| json!(self.judgements[t].more_steps)),
        );
        put("tests".into(), each(&|t| json!(self.judgements[t].tests)));
        put(
            "failed".into(),
            self.failed.iter().map(|f| json!(f)).collect(),
        );
        out.extend(self.sizes.clone());
        out
    }

    /// The largest R̂ of an observable at a temperature, and whose it is; none if nothing is known.
    pub fn worst_r_hat(&self, t: usize) -> Option<(f64, &str)> {
        known(&self.mixing[t].r_hat)
    }

    /// The least effective number of draws in the bulk at a temperature, and whose it is.
    pub fn least_ess(&self, t: usize) -> Option<(f64, &str)> {
        known(&self.mixing[t].bulk)
    }

    /// The least effective number of draws in the tails at a temperature, and whose it is.
    pub fn least_tail_ess(&self, t: usize) -> Option<(f64, &str)> {
        known(&self.mixing[t].tail)
    }

    /// Whether something is missing or wrong at a temperature.
    pub fn unconverged(&self, t: usize) -> bool {
        self.judgements[t].verdict >= Verdict::NotYet
    }

    /// The worst of the verdicts.
    pub fn verdict(&self) -> Verdict {
        let all = self.judgements.iter().map(|j| j.verdict);
        all.max().unwrap_or(Verdict::NotJudged)
    }

    /// The table's columns: title and one cell per temperature.
    fn columns(&self) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        if self.empty {
            return out;
        }
        let mut column = |title: &str, cell: &dyn Fn(usize) -> String| {
            let mut cells = vec![title.to_string()];
            cells.extend((0..self.temperatures.len()).map(cell));
            out.push(cells);
        };
        column("T", &|t| format!("{:.3e}", self.temperatures[t]));
        let narrow = |r: &&Row| r.component_of.is_none_or(|n| n <= WIDEST);
        for row in self.rows.iter().filter(narrow) {
            column(&row.name, &|t| {
                with_error(row.numbers[t].mean, row.numbers[t].mcse_mean)
            });
        }
        if !self.rows.is_empty() {
            let whose = |(x, name): &(f64, String), digits: usize| match x.is_nan() {
                true => "n/a".to_string(),
                false => format!("{x:.digits$} {name}"),
            };
            column("worst R̂", &|t| whose(&self.mixing[t].r_hat, 3));
            column("least ESS", &|t| {
                let m = &self.mixing[t];
                let tail = m.tail.0 < m.bulk.0;
                whose(if tail { &m.tail } else { &m.bulk }, 0)
            });
        }
        let readings = &self.thermometers;
        // Observables of kept draws have none.
        if readings.iter().any(|r| !r.temperature.is_nan()) {
            column("T virial", &|t| {
                with_error(readings[t].temperature, readings[t].mcse)
            });
        }
        let applies = readings.iter().any(|r| r.verdict != Heat::NotApplicable);
        let noise = self.stats.iter().find(|r| r.name == GRADIENT_VARIANCE.0);
        if let Some(noise) = noise.filter(|_| applies) {
            // What the noise of the gradient, and all else that is not exact, make of the temperature.
            column("T excess", &|t| {
                with_error(
                    readings[t].temperature - self.temperatures[t],
                    readings[t].mcse,
                )
            });
            column("noise V", &|t| {
                with_error(noise.numbers[t].mean, noise.numbers[t].mcse_mean)
            });
        }
        column("verdict", &|t| self.judgements[t].verdict.to_string());
        if self.failed.iter().any(|n| *n > 0) {
            column("failed", &|t| self.failed[t].to_string());
        }
        out
    }
}

fn known((x, name): &(f64, String)) -> Option<(f64, &str)> {
    (!x.is_nan()).then_some((*x, name.as_str()))
}

/// That converged chains started close to each other, and how close where it was closest.
fn started_close(run: &Run, judgements: &[Judgement]) -> Option<String> {
    let good = |t: &usize| judgements[*t].verdict == Verdict::Converged;
    let known = (0..judgements.len()).filter(good);
    let spreads = known.filter_map(|t| Some((t, run.relative_spread(t)?)));
    let least = spreads.min_by(|a, b| a.1.total_cmp(&b.1));
    let (t, s) = least.filter(|(_, s)| *s < LEAST_SPREAD)?;
    let apart = match s {
        0.0 => "at one point".to_string(),
        _ => format!("{s:.2} times as far apart as they ended"),
    };
    Some(format!(
        "NOTE: the chains at T = {:.3e} started {apart}; R̂ cannot reveal modes that none of them has visited",
        run.info.temperatures[t]
    ))
}

/// What a map says of the run as a whole.
fn sizes(run: &Run) -> Map<String, Value> {
    let info = &run.info;
    let entries = [
        ("n", json!(info.n)),
        ("m", json!(info.m)),
        ("scale", json!(info.scale)),
        ("parameters", json!(info.parameters)),
        ("chains", json!(info.chains)),
        ("draws", json!(run.draws_so_far())),
        ("seconds", json!(run.seconds)),
        ("quick", json!(info.quick)),
    ];
    let notes = (!run.notes.is_empty()).then(|| ("notes", json!(run.notes)));
    let open = (!run.done()).then_some(("done", json!(false)));
    let entries = entries.into_iter().chain(open).chain(notes);
    entries.map(|(k, v)| (k.to_string(), v)).collect()
}

impl Summary {
    /// A row per temperature.
    pub fn table(&self) -> Table {
        let mut columns = self.columns();
        // It must not be what falls off the edge of a page.
        if let Some(at) = columns.iter().position(|c| c[0] == "verdict") {
            columns[..=at][1..].rotate_right(1);
        }
        let cell = |row: usize| columns.iter().map(move |c| c[row].clone());
        if self.empty {
            return Table {
                above: self.header.clone(),
                below: self.notes.clone(),
                ..Table::default()
            };
        }
        let mut out = Table::new(cell(0));
        out.above.push(format!("{VERDICT}{}", self.verdicts()));
        out.above.extend(self.header.iter().cloned());
        (1..=self.temperatures.len()).for_each(|t| out.push(cell(t)));
        out.below.extend(self.below());
        out
    }

    /// The worst verdict, and at how many temperatures there are which.
    fn verdicts(&self) -> String {
        use Verdict::{Converged, NotJudged, NotYet, Wrong};
        let all = self.judgements.len();
        let with = |verdict| {
            let n = self.judgements.iter().filter(|j| j.verdict == verdict);
            match n.count() {
                0 => None,
                n if n == all => Some(verdict.to_string()),
                n => Some(format!("{verdict} at {n} of {all} temperatures")),
            }
        };
        let found = [Wrong, NotYet, NotJudged, Converged]
            .into_iter()
            .filter_map(with);
        found.collect::<Vec<_>>().join(", ")
    }

    /// What is missing and what is wrong, temperature by temperature, and what else is to be known.
    fn below(&self) -> Vec<String> {
        const MOST: usize = 8;
        let mut out = Vec::new();
        for (verdict, word) in [(Verdict::Wrong, "WRONG"), (Verdict::NotYet, "NOT YET")] {
            let each = self.judgements.iter().zip(&self.temperatures);
            let found: Vec<_> = each.filter(|(j, _)| j.verdict == verdict).collect();
            for (j, t) in found.iter().take(MOST) {
                let at = match self.sweep {
                    true => format!(" at T = {t:.3e}"),
                    false => String::new(),
                };
                out.push(format!("{word}{at}: {}", j.says()));
            }
            if found.len() > MOST {
                let more = found.len() - MOST;
                out.push(format!("{word}: and {more} more temperatures"));
            }
        }
        out.extend(self.notes.iter().cloned());
        out
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.header {
            writeln!(f, "{line}")?;
        }
        // Columns in blocks that fit on a screen, each block with its temperatures.
        let count = self.temperatures.len();
        let mut columns = self.columns().into_iter().map(|cells| -> Vec<String> {
            let width = cells.iter().map(|c| c.chars().count()).max().unwrap_or(0);
            cells.iter().map(|c| padded(c, width, true)).collect()
        });
        let Some(first) = columns.next() else {
            return self.notes.iter().try_for_each(|l| writeln!(f, "{l}"));
        };
        let mut block: Vec<Vec<String>> = vec![first.clone()];
        let width = |c: &[Vec<String>]| c.iter().map(|c| c[0].chars().count() + 2).sum::<usize>();
        let mut blocks = Vec::new();
        for column in columns {
            if width(&block) + column[0].chars().count() > 118 {
                blocks.push(std::mem::replace(&mut block, vec![first.clone()]));
            }
            block.push(column);
        }
        blocks.push(block);
        for block in blocks {
            for row in 0..=count {
                let cells: Vec<_> = block.iter().map(|c| c[row].as_str()).collect();
                writeln!(f, "{}", cells.join("  ").trim_end())?;
                if row == 0 {
                    writeln!(f, "{}", "─".repeat(width(&block) - 2))?;
                }
            }
        }
        self.below()
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}
