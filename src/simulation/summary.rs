//! Summaries: means with error bars, convergence diagnostics and the thermometer, per temperature.

use super::parts::ELSEWHERE;
use super::prediction::RUNNING;
use super::run::{Group, Run};
use crate::diagnostic::Reading;
use crate::diagnostic::Summary as Numbers;
use crate::diagnostic::Verdict;
use crate::error::{self, Result};
use crate::sampler::NOISE;
use crate::table::Table;
use serde_json::{Map, Value, json};
use std::fmt;

/// Vectors of more components are not in the table.
pub const WIDEST: usize = 12;

/// R̂ above which chains disagree.
pub const MOST_R_HAT: f64 = 1.05;

/// Effective draws below which error bars are too small.
pub const LEAST_ESS: f64 = 100.0;

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
    /// Failed chains, per temperature.
    pub failed: Vec<usize>,
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
        let failed = (0..count)
            .map(|t| {
                run.failures[t * info.chains..(t + 1) * info.chains]
                    .iter()
                    .flatten()
                    .filter(|f| f.reason != ELSEWHERE)
                    .count()
            })
            .collect();
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
        Ok(Self {
            temperatures: info.temperatures.clone(),
            rows,
            stats,
            thermometers: thermometers?,
            failed,
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
        put(
            "verdict".into(),
            self.thermometers
                .iter()
                .map(|r| json!(r.verdict.to_string()))
                .collect(),
        );
        put(
            "failed".into(),
            self.failed.iter().map(|f| json!(f)).collect(),
        );
        out.extend(self.sizes.clone());
        out
    }

    /// Whether the chains at a temperature disagree or hold too few independent draws for their error bars.
    pub fn unmixed(&self, t: usize) -> bool {
        self.worst_r_hat(t).is_some_and(|(r, _)| r > MOST_R_HAT)
            || self.least_ess(t).is_some_and(|(n, _)| n < LEAST_ESS)
    }

    /// The largest R̂ of an observable at a temperature, and whose it is; none if there is none.
    pub fn worst_r_hat(&self, t: usize) -> Option<(f64, &str)> {
        self.of_scalars(t, |n| n.r_hat)
            .reduce(|a, b| if b.0 > a.0 { b } else { a })
    }

    /// The least effective number of draws, bulk, of an observable at a temperature, and whose it is.
    pub fn least_ess(&self, t: usize) -> Option<(f64, &str)> {
        self.of_scalars(t, |n| n.ess_bulk)
            .reduce(|a, b| if b.0 < a.0 { b } else { a })
    }

    /// The same of the tails.
    pub fn least_tail_ess(&self, t: usize) -> Option<(f64, &str)> {
        self.of_scalars(t, |n| n.ess_tail)
            .reduce(|a, b| if b.0 < a.0 { b } else { a })
    }

    /// A number of every observable that is no vector. NaN, as of a constant trace, says nothing; infinity, as of stuck chains, says a lot.
    fn of_scalars(&self, t: usize, of: fn(&Numbers) -> f64) -> impl Iterator<Item = (f64, &str)> {
        let scalars = self.rows.iter().filter(|r| r.component_of.is_none());
        let each = scalars.map(move |r| (of(&r.numbers[t]), r.name.as_str()));
        each.filter(|(x, _)| !x.is_nan())
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
        if self.rows.iter().any(|r| r.component_of.is_none()) {
            let number = |x: Option<(f64, &str)>, digits: usize| {
                x.map_or("n/a".into(), |(v, _)| format!("{v:.digits$}"))
            };
            column("worst R̂", &|t| number(self.worst_r_hat(t), 3));
            column("least ESS", &|t| number(self.least_ess(t), 0));
        }
        let readings = &self.thermometers;
        column("T virial", &|t| {
            with_error(readings[t].temperature, readings[t].mcse)
        });
        // Within walls the virial is no thermometer.
        let applies = readings.iter().any(|r| r.verdict != Verdict::NotApplicable);
        let noise = self.stats.iter().find(|r| r.name == NOISE);
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
        column("verdict", &|t| readings[t].verdict.to_string());
        if self.failed.iter().any(|n| *n > 0) {
            column("failed", &|t| self.failed[t].to_string());
        }
        out
    }
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
pub fn first_scores(scores: &Map<String, Value>) -> Vec<(&'static str, String)> {
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
        out.below.extend(self.not_mixed());
        out
    }

    /// A warning, if there are temperatures where chains have not mixed.
    fn not_mixed(&self) -> Option<String> {
        let unmixed: Vec<_> = (0..self.temperatures.len())
            .filter(|t| self.unmixed(*t))
            .map(|t| format!("{:.2e}", self.temperatures[t]))
            .collect();
        (!unmixed.is_empty()).then(|| {
            format!(
                "NOT MIXED at T = {}: R̂ above {MOST_R_HAT} or ESS below {LEAST_ESS}; the error bars there are too small, take more steps",
                unmixed.join(", ")
            )
        })
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
        if let Some(warning) = self.not_mixed() {
            writeln!(f, "{warning}")?;
        }
        Ok(())
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
