//! Summaries: means with error bars, convergence diagnostics and the thermometer, per temperature.

use super::health::LEAST_SPREAD;
use super::judge::{Judgement, Mixing};
use super::prediction::RUNNING;
use super::run::ELSEWHERE;
use super::run::{Group, Run};
use crate::diagnostic::Summary as Numbers;
pub use crate::diagnostic::verdict::{LEAST_ESS, MOST_R_HAT};
use crate::diagnostic::{Heat, Reading, Verdict};
use crate::engine::report::GRADIENT_VARIANCE;
use crate::error::{self, Result};
use crate::table::Table;
use serde_json::{Map, Value, json};
use std::fmt;

/// Vectors of more components are not in the table.
pub(crate) const WIDEST: usize = 12;

/// One quantity at every temperature.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name; a component of a vector has its label appended.
    pub name: String,
    /// How many components its vector has, if it is a component of one.
    pub component_of: Option<usize>,
    /// Draws that are NaN or infinite, per temperature.
    pub not_finite: Vec<usize>,
    /// One per temperature.
    pub numbers: Vec<Numbers>,
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
    header: Vec<String>,
    sweep: bool,
    sizes: Map<String, Value>,
}

impl Summary {
    /// Summarise a run, leaving out failed chains by name.
    pub fn new(run: &Run) -> Result<Self> {
        let info = &run.info;
        let count = info.temperatures.len();
        let (mut rows, mut stats) = (Vec::new(), Vec::new());
        for column in &info.columns {
            if column.name.starts_with(RUNNING) {
                continue;
            }
            for k in 0..column.width() {
                let name = match &column.components {
                    Some((_, labels)) => format!("{}_{}", column.name, labels[k]),
                    None => column.name.clone(),
                };
                let draws: Result<Vec<_>> = (0..count)
                    .map(|t| run.draws(&column.name, k, t, true))
                    .collect();
                let draws = draws?;
                let not_finite = draws
                    .iter()
                    .map(|d| d.iter().flatten().filter(|x| !x.is_finite()).count())
                    .collect();
                let numbers = draws.into_iter().map(|d| run.summarise(d)).collect();
                let row = Row {
                    name,
                    component_of: column.components.as_ref().map(|(_, l)| l.len()),
                    not_finite,
                    numbers,
                };
                if column.group == Group::Posterior {
                    rows.push(row)
                } else {
                    stats.push(row)
                }
            }
        }
        let thermometers: Result<Vec<_>> = (0..count).map(|t| run.thermometer(t)).collect();
        let failed = (0..count).map(|t| run.failed(t)).collect();
        let named = |t: usize| {
            rows.iter()
                .map(move |r: &Row| (r.name.as_str(), &r.numbers[t]))
        };
        let mixing: Vec<_> = (0..count).map(|t| Mixing::of(named(t))).collect();
        let judgements = run.judge(&mixing)?;
        let mut notes: Vec<_> = info.notes.iter().map(|n| format!("NOTE: {n}")).collect();
        let good = |t: usize| judgements[t].verdict == Verdict::Converged;
        let known = (0..count).filter(|t| good(*t));
        let spreads = known.filter_map(|t| Some((t, run.relative_spread(t)?)));
        let least = spreads.min_by(|a, b| a.1.total_cmp(&b.1));
        notes.extend(least.filter(|(_, s)| *s < LEAST_SPREAD).map(|(t, s)| {
            let apart = match s {
                0.0 => "at one point".to_string(),
                _ => format!("{s:.2} times as far apart as they ended"),
            };
            format!(
                "NOTE: the chains at T = {:.3e} started {apart}; R̂ knows nothing of modes that none of them has visited",
                info.temperatures[t]
            )
        }));
        let options: Vec<_> = info
            .options
            .iter()
            .map(|(k, v)| format!("{k} {v}"))
            .collect();
        let m = info
            .m
            .map_or("full batch".to_string(), |m| format!("m = {m}"));
        let mut header = vec![
            format!(
                "{} '{}': {} ({})",
                info.kind,
                info.name,
                info.sampler,
                options.join(", ")
            ),
            info.target.clone(),
            format!(
                "n = {}, {m}, s = {} (nβ), N = {}",
                info.n,
                trim(info.scale),
                info.parameters
            ),
            format!(
                "{} per temperature, {} ({} burn-in), {}: {} each, {:.1} s",
                error::count(info.chains, "chain"),
                error::count(info.steps as usize, "step"),
                info.burn_in,
                info.every,
                error::count(info.draws, "draw"),
                run.seconds
            ),
        ];
        header.extend(info.ladder.clone());
        header.extend(
            info.schedules
                .iter()
                .map(|s| format!("temperature schedule: {s}")),
        );
        if info.quick {
            header.push(
                "QUICK: steps were cut by --quick; these numbers are for trying things out only"
                    .into(),
            );
        }
        let elsewhere = run
            .failures
            .iter()
            .flatten()
            .filter(|f| f.reason == ELSEWHERE)
            .count();
        if elsewhere > 0 {
            header.push(format!(
                "SHARD: {elsewhere} of {} chains are in other shards, and in no number here",
                info.all_chains()
            ));
        }
        for (c, f) in run.failures.iter().enumerate() {
            let Some(f) = f.as_ref().filter(|f| f.reason != ELSEWHERE) else {
                continue;
            };
            header.push(format!(
                "FAILED and left out: chain {} at T = {:e}, step {}: {}",
                c % info.chains,
                info.temperatures[c / info.chains],
                f.step,
                f.reason
            ));
        }
        header.extend(run.notes.iter().map(|note| format!("NOTE: {note}")));
        for column in info.columns.iter().filter(|c| c.width() > WIDEST) {
            header.push(format!(
                "{}: {} components, in run.draws(\"{}\", 0) and to_map(), not in the table",
                column.name,
                column.width(),
                column.name
            ));
        }
        for row in &rows {
            let bad: usize = row.not_finite.iter().sum();
            if bad > 0 {
                header.push(format!(
                    "NOTE: {bad} draws of {} are not finite, and so is its mean",
                    row.name
                ));
            }
        }
        for (scores, (k, t)) in run.scores.iter().flat_map(|s| {
            let temperatures = info.temperatures.iter().enumerate();
            temperatures.map(move |kt| (s, kt))
        }) {
            header.push(format!(
                "prediction on {} at T = {t:e}: {}",
                scores.split,
                shown(&scores.temperatures[k])
            ));
        }
        let mut sizes = Map::new();
        sizes.insert("n".into(), json!(info.n));
        sizes.insert("m".into(), json!(info.m));
        sizes.insert("scale".into(), json!(info.scale));
        sizes.insert("parameters".into(), json!(info.parameters));
        sizes.insert("chains".into(), json!(info.chains));
        sizes.insert("draws".into(), json!(info.draws));
        sizes.insert("seconds".into(), json!(run.seconds));
        sizes.insert("quick".into(), json!(info.quick));
        if !run.notes.is_empty() {
            sizes.insert("notes".into(), json!(run.notes));
        }
        Ok(Self {
            temperatures: info.temperatures.clone(),
            rows,
            stats,
            thermometers: thermometers?,
            mixing,
            judgements,
            failed,
            notes,
            header,
            sweep: info.has_temperatures(),
            sizes,
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
        column("T virial", &|t| {
            with_error(readings[t].temperature, readings[t].mcse)
        });
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

/// The scores a reader looks for first: as in maps, and as in words.
const SCORES: [(&str, &str); 7] = [
    ("error", "error"),
    ("generalisation_error", "generalisation error"),
    ("squared_error", "squared error"),
    ("nll", "NLL"),
    ("brier", "Brier"),
    ("ece", "ECE"),
    ("waic", "WAIC"),
];

/// Those of these scores that there are, in words.
pub(crate) fn first_scores(scores: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let number = |name: &str| scores.get(name).and_then(Value::as_f64);
    let found = SCORES.iter().filter_map(|(key, name)| {
        let x = number(key)?;
        let text = match x.abs() {
            m if m == 0.0 || (1e-3..1e5).contains(&m) => format!("{x:.4}"),
            _ => format!("{x:.3e}"),
        };
        Some((*name, text))
    });
    found.collect()
}

fn shown(scores: &Map<String, Value>) -> String {
    let texts = first_scores(scores).into_iter();
    let texts: Vec<_> = texts.map(|(name, x)| format!("{name} {x}")).collect();
    texts.join(", ")
}

/// A number without a needless fraction.
fn trim(x: f64) -> String {
    if x.fract() == 0.0 && x.abs() < 1e15 {
        format!("{x:.0}")
    } else {
        format!("{x:.4}")
    }
}

/// `mean(error)` with the error in units of the last digit, as physicists write it: 0.1234(12), 3.46(8)e-6.
pub fn with_error(mean: f64, error: f64) -> String {
    if !mean.is_finite() {
        return format!("{mean}");
    }
    if !(error.is_finite() && error > 0.0) {
        // No error to go by: six digits.
        let digits = (5 - mean.abs().max(1e-300).log10().floor() as i32).clamp(0, 12) as usize;
        return match mean.abs() {
            0.0 => "0".to_string(),
            m if (1e-4..1e6).contains(&m) => format!("{mean:.digits$}"),
            _ => format!("{mean:.5e}"),
        };
    }
    let magnitude = mean.abs().max(error).log10().floor() as i32;
    let scientific = !(-3..=5).contains(&magnitude);
    let scale = if scientific {
        10f64.powi(magnitude)
    } else {
        1.0
    };
    let (mean, error) = (mean / scale, error / scale);
    // Two digits of the error, one where the first is 3 or more.
    let lead = error.log10().floor() as i32;
    let digits = if error / 10f64.powi(lead) < 2.95 {
        lead - 1
    } else {
        lead
    };
    let decimals = (-digits).max(0) as usize;
    let unit = 10f64.powi(-(decimals as i32));
    let error = (error / unit).round() * if decimals == 0 { unit } else { 1.0 };
    let exponent = if scientific {
        format!("e{magnitude}")
    } else {
        String::new()
    };
    format!("{mean:.decimals$}({error:.0}){exponent}")
}

impl Summary {
    /// A row per temperature.
    pub fn table(&self) -> Table {
        let columns = self.columns();
        let cell = |row: usize| columns.iter().map(move |c| c[row].clone());
        let mut out = Table::new(cell(0));
        out.above.clone_from(&self.header);
        (1..=self.temperatures.len()).for_each(|t| out.push(cell(t)));
        out.below.extend(self.below());
        out
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
                out.push(format!("{word}: and {more} temperatures more"));
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
            cells.iter().map(|c| format!("{c:>width$}")).collect()
        });
        let Some(first) = columns.next() else {
            return Ok(());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_their_error_in_the_last_digits() {
        assert_eq!(with_error(0.123_45, 0.001_2), "0.1235(12)");
        assert_eq!(with_error(0.123_45, 0.004), "0.123(4)");
        assert_eq!(with_error(3.456e-6, 8e-8), "3.46(8)e-6");
        assert_eq!(with_error(1234.5, 20.0), "1234(20)");
        assert_eq!(with_error(1234.5, 2.0), "1234.5(20)");
        assert_eq!(with_error(f64::NAN, 1.0), "NaN");
        assert_eq!(with_error(0.0, 0.0), "0");
        assert_eq!(with_error(0.355_092_1, f64::NAN), "0.355092");
        assert_eq!(with_error(-2.187_36e-5, f64::NAN), "-2.18736e-5");
    }
}
