//! The tables of a report. Numbers come from the summaries that scripts have.

use super::html::{Cell, Table};
use super::verdict::{Level, temperature};
use crate::diagnostic::Summary as Numbers;
use crate::simulation::evidence::Evidence;
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::summary::{
    LEAST_ESS, MOST_R_HAT, Row, Summary, WIDEST, first_scores, with_error,
};
use crate::simulation::trained::Trained;

/// Rows of a table beyond which a page is no place for them.
const MOST_ROWS: usize = 400;

fn text(x: impl Into<String>) -> Cell {
    Cell::Text(x.into())
}

/// A mean with its error; nothing for NaN.
fn mean(mean: f64, error: f64) -> Cell {
    match mean.is_nan() {
        true => text("n/a"),
        false => text(with_error(mean, error)),
    }
}

fn words(x: impl Into<String>) -> Cell {
    Cell::Words(x.into())
}

/// A number with so many digits; nothing for NaN.
pub(super) fn number(x: f64, digits: usize) -> String {
    match x.is_nan() {
        true => "n/a".into(),
        false => format!("{x:.digits$}"),
    }
}

/// Six digits, as numbers without an error have them.
pub(super) fn plain(x: f64) -> String {
    match x.is_nan() {
        true => "n/a".into(),
        false => with_error(x, f64::NAN),
    }
}

/// A number and whether it is within its limit.
fn limited(x: Option<f64>, digits: usize, fine: impl Fn(f64) -> bool) -> Cell {
    match x {
        None => Cell::Verdict(Level::Open, "n/a".into()),
        Some(x) if fine(x) => Cell::Verdict(Level::Good, number(x, digits)),
        Some(x) => Cell::Verdict(Level::Look, number(x, digits)),
    }
}

/// Thermometer, R̂, ESS and failures at every temperature.
pub fn verdicts(run: &Run, s: &Summary) -> Table {
    let mut table = Table::new(
        format!("Verdicts of {}", run.info.name),
        &[
            "T",
            "verdict",
            "T virial",
            "off by",
            "thermometer",
            "worst R̂",
            "that of",
            "least ESS, bulk",
            "that of",
            "least ESS, tail",
            "failed chains",
        ],
    );
    for (t, reading) in s.temperatures.iter().zip(&s.thermometers).enumerate() {
        let (set, reading) = reading;
        let said = s.judgements[t].verdict;
        let (r_hat, ess) = (s.worst_r_hat(t), s.least_ess(t));
        let name = |of: Option<(f64, &str)>| words(of.map_or("", |(_, name)| name));
        let off = match reading.relative_deviation {
            x if x.is_nan() => String::new(),
            x => format!("{:+.1} %", 100.0 * x),
        };
        table.rows.push(vec![
            text(temperature(*set)),
            Cell::Verdict(Level::of(said), said.to_string()),
            mean(reading.temperature, reading.mcse),
            text(off),
            text(reading.verdict.to_string()),
            limited(r_hat.map(|(x, _)| x), 3, |x| x <= MOST_R_HAT),
            name(r_hat),
            limited(ess.map(|(x, _)| x), 0, |x| x >= LEAST_ESS),
            name(ess),
            limited(s.least_tail_ess(t).map(|(x, _)| x), 0, |x| x >= LEAST_ESS),
            match s.failed[t] {
                0 => text("0"),
                n => Cell::Verdict(Level::Bad, n.to_string()),
            },
        ]);
    }
    table
}

fn narrow(row: &&Row) -> bool {
    row.component_of.is_none_or(|n| n <= WIDEST)
}

/// Means with their errors: a row per temperature, or per observable where there is one temperature.
pub fn means(run: &Run, s: &Summary) -> Table {
    let rows: Vec<_> = s.rows.iter().filter(narrow).collect();
    if s.temperatures.len() == 1 {
        let caption = format!("Means of {}, with standard errors", run.info.name);
        return numbers(
            caption,
            rows.iter()
                .flat_map(|r| Some((r.name.clone(), r.numbers.first()?))),
        );
    }
    let caption = format!(
        "Means of {}; in brackets the standard error of the last digits",
        run.info.name
    );
    let mut table = Table::new(caption, &["T"]);
    table.head.extend(rows.iter().map(|r| r.name.clone()));
    for (t, set) in s.temperatures.iter().enumerate() {
        let of = |r: &&Row| mean(r.numbers[t].mean, r.numbers[t].mcse_mean);
        let mut row = vec![text(temperature(*set))];
        row.extend(rows.iter().map(of));
        table.rows.push(row);
    }
    table
}

/// All numbers of quantities.
fn numbers<'a>(caption: String, of: impl Iterator<Item = (String, &'a Numbers)>) -> Table {
    let head = [
        "",
        "mean",
        "MCSE",
        "sd",
        "ESS, bulk",
        "ESS, tail",
        "R̂",
        "τ in draws",
    ];
    let mut table = Table::new(caption, &head);
    table.head[0] = "quantity".into();
    for (name, n) in of.take(MOST_ROWS) {
        table.rows.push(vec![
            text(name),
            mean(n.mean, n.mcse_mean),
            text(match n.mcse_mean.is_nan() {
                true => "n/a".into(),
                false => format!("{:.2e}", n.mcse_mean),
            }),
            text(plain(n.sd)),
            text(number(n.ess_bulk, 0)),
            text(number(n.ess_tail, 0)),
            text(number(n.r_hat, 3)),
            text(number(n.autocorrelation_time, 1)),
        ]);
    }
    table
}

/// All numbers of all observables at all temperatures, or of what the sampler reports.
pub fn everything(caption: String, s: &Summary, rows: &[Row]) -> Table {
    let several = s.temperatures.len() > 1;
    let each = rows.iter().filter(narrow).flat_map(|r| {
        let named = s.temperatures.iter().zip(&r.numbers);
        named.map(move |(t, n)| {
            let name = match several {
                true => format!("{}, T = {}", r.name, temperature(*t)),
                false => r.name.clone(),
            };
            (name, n)
        })
    });
    numbers(caption, each)
}

/// The scores of the posterior prediction.
pub fn predictions(run: &Run) -> Option<Table> {
    let mut table = Table::new(
        format!("Posterior prediction of {}", run.info.name),
        &["split, T"],
    );
    for scores in &run.scores {
        for (t, map) in run.info.temperatures.iter().zip(&scores.temperatures) {
            let found = first_scores(map);
            for (name, _) in &found {
                if !table.head[1..].iter().any(|h| h == name) {
                    table.head.push(name.to_string());
                }
            }
            let mut row = vec![text(format!("{}, {}", scores.split, temperature(*t)))];
            for title in &table.head[1..] {
                let score = found.iter().find(|(name, _)| name == title);
                row.push(text(score.map_or("", |(_, x)| x)));
            }
            table.rows.push(row);
        }
    }
    let width = table.head.len();
    table
        .rows
        .iter_mut()
        .for_each(|r| r.resize(width, text("")));
    (!table.rows.is_empty()).then_some(table)
}

/// A row per rung.
pub fn ladder(l: &LadderReport) -> Table {
    let mut table = Table::new(
        format!(
            "Ladder of {}: swap rate and overlap are those with the next hotter rung",
            l.name
        ),
        &[
            "T",
            "swap rate",
            "overlap",
            "flow from the cold end",
            "E",
            "ESS of E",
            "C = Var(E)/T²",
            "dΛ/dβ",
        ],
    );
    for (k, t) in l.temperatures.iter().enumerate() {
        let e = &l.energies[k];
        let rate = l.pairs.get(k);
        table.rows.push(vec![
            text(temperature(*t)),
            text(rate.map_or(String::new(), |p| with_error(p.acceptance, p.error))),
            text(l.overlaps.get(k).map_or(String::new(), |o| number(*o, 3))),
            text(number(l.flow[k], 3)),
            mean(e.mean.0, e.mean.1),
            text(number(e.ess, 0)),
            mean(e.heat_capacity.0, e.heat_capacity.1),
            text(match l.local_barrier[k] {
                x if x.is_nan() => "n/a".into(),
                x => format!("{x:.3e}"),
            }),
        ]);
    }
    table
}

/// ln Z by all estimators.
pub fn evidence(e: &Evidence) -> Table {
    let from = match e.relative_to.is_finite() {
        true => format!(" - ln Z(T = {:.4e})", e.relative_to),
        false => String::new(),
    };
    let caption = format!(
        "ln Z(T = {}){from} of {}, {} rungs",
        e.temperature, e.name, e.rungs
    );
    let mut table = Table::new(caption, &["estimator", "ln Z", "remarks"]);
    for l in &e.lines {
        table.rows.push(vec![
            text(l.what),
            text(with_error(l.ln_z.value, l.ln_z.standard_error)),
            words(l.note.clone()),
        ]);
    }
    if e.bounds.0.is_finite() {
        let (low, high) = e.bounds;
        table.rows.push(vec![
            text("bounds (Gibbs-Bogoliubov)"),
            text(format!("{low:.4} … {high:.4}")),
            words("exact up to noise"),
        ]);
    }
    table
}

/// The kept epoch of every chain.
pub fn training(t: &Trained) -> Table {
    let mut table = Table::new(format!("What was kept of {}", t.name), &["chain"]);
    table.head.extend(t.columns.iter().cloned());
    for c in 0..t.history.len().min(MOST_ROWS) {
        let mut row = vec![text(c.to_string())];
        let values = t.kept(c).into_iter();
        row.extend(values.map(|(_, v)| match v.fract() == 0.0 {
            true => text(format!("{v:.0}")),
            false => text(plain(v)),
        }));
        row.resize(table.head.len(), text(""));
        table.rows.push(row);
    }
    table
}

/// A row per stage.
pub fn stages(s: &Smc) -> Table {
    let mut table = Table::new(
        format!("Stages of {}", s.name),
        &["stage", "T", "effective share", "acceptance", "step size"],
    );
    for (k, stage) in s.stages.iter().enumerate().take(MOST_ROWS) {
        table.rows.push(vec![
            text((k + 1).to_string()),
            text(temperature(stage.temperature)),
            text(format!("{:.0} %", 100.0 * stage.effective_share)),
            text(number(stage.acceptance, 3)),
            text(format!("{:.3e}", stage.step_size)),
        ]);
    }
    table
}

/// A row per population.
pub fn populations(s: &Smc) -> Table {
    let mut table = Table::new(
        format!("Populations of {}", s.name),
        &["population", "ln Z", "prior draws it descends from"],
    );
    let both = s.ln_z.iter().zip(&s.families);
    for (k, (ln_z, families)) in both.enumerate().take(MOST_ROWS) {
        table.rows.push(vec![
            text((k + 1).to_string()),
            text(plain(*ln_z)),
            text(families.count.to_string()),
        ]);
    }
    table
}

/// A row per sampler and step size.
pub fn benchmark(b: &Benchmark, name: &str) -> Table {
    let mut table = Table::new(
        format!("{name}: relative error of λ̂ over the problems"),
        &[
            "sampler, step size",
            "failed",
            "mean error",
            "sd",
            "median",
            "against the local bound",
            "in order",
            "coverage",
            "local coverage",
            "MCSE/λ",
            "ms per step",
        ],
    );
    for l in b.lines().into_iter().take(MOST_ROWS) {
        let signed = |x: f64| match x.is_nan() {
            true => text("n/a"),
            false => text(format!("{x:+.3}")),
        };
        table.rows.push(vec![
            text(format!("{}, {:.1e}", l.sampler, l.step)),
            text(format!("{:.0} %", 100.0 * l.failed)),
            signed(l.error),
            text(number(l.sd, 3)),
            signed(l.median),
            signed(l.local_error),
            text(number(l.order, 3)),
            text(number(l.coverage, 2)),
            text(number(l.local_coverage, 2)),
            text(number(l.mcse, 4)),
            text(number(l.milliseconds, 3)),
        ]);
    }
    table
}
