//! The drift of U and of every observable under exact chains, and what it says of a run.

use crate::diagnostic::verdict::{MOST_ERROR, Test, most_sigma};
use crate::diagnostic::{Verdict, mcse_mean, mean, sd};
use crate::simulation::judge::percent;
use crate::simulation::origin::Origin;
use crate::simulation::run::Run;
use crate::simulation::summary::with_error;
use crate::table::Table;
use serde_json::{Value as Json, json};
use std::fmt;

/// One quantity at one temperature.
#[derive(Debug, Clone)]
pub struct Line {
    /// "U", or the name of an observable.
    pub name: String,
    /// T.
    pub temperature: f64,
    /// Its mean over the run's draws.
    pub mean: f64,
    /// By how much the run's mean is off, and the standard error of that.
    pub bias: (f64, f64),
    /// 1 - ρ, the part of a deviation that the moves remove.
    pub relaxed: f64,
    /// The drift, in standard errors.
    pub sigma: f64,
    /// The least bias that would have been found.
    pub power: f64,
    /// Whether the drift is beyond chance, and large enough to matter.
    pub wrong: bool,
}

/// What exact chains say of a run.
#[derive(Debug, Clone)]
pub struct Verification {
    /// Name of the run.
    pub run: String,
    /// U first, then the observables, temperature by temperature.
    pub lines: Vec<Line>,
    /// Exact chains per temperature.
    pub draws: usize,
    /// Moves of each.
    pub moves: usize,
}

/// Values of all quantities, before and after, per draw.
pub(super) type Pairs = Vec<[Vec<f64>; 2]>;

/// The drift of every quantity at every temperature.
pub(super) fn lines(run: &Run, origin: &Origin, found: &[(usize, f64, Pairs)]) -> Vec<Line> {
    let mut names = vec!["U".to_string()];
    for observable in &origin.observables {
        match observable.components(&origin.target) {
            None => names.push(observable.name()),
            Some((_, labels)) => {
                let name = observable.name();
                names.extend(labels.iter().map(|l| format!("{name}_{l}")));
            }
        }
    }
    let finite = run.info.temperatures.iter().filter(|t| t.is_finite());
    let count = names.len() * finite.clone().count();
    let mut out = Vec::new();
    for t in finite {
        let here: Vec<_> = found.iter().filter(|(_, at, _)| at == t).collect();
        for (k, name) in names.iter().enumerate() {
            let of = |part: usize| -> Vec<Vec<f64>> {
                let chain = |pairs: &Pairs| pairs.iter().map(|p| p[part][k]).collect();
                here.iter().map(|(.., pairs)| chain(pairs)).collect()
            };
            out.extend(line(name, *t, &of(0), &of(1), count));
        }
    }
    out
}

/// Of one quantity; none if it is constant, or is not finite.
fn line(
    name: &str,
    temperature: f64,
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    count: usize,
) -> Option<Line> {
    let (mean_before, mean_after) = (mean(before), mean(after));
    let (wide, wide_after) = (sd(before), sd(after));
    if !(wide > 0.0 && wide_after > 0.0 && mean_after.is_finite()) {
        return None;
    }
    let pairs = || before.iter().flatten().zip(after.iter().flatten());
    let n = pairs().count() as f64;
    let product: f64 = pairs()
        .map(|(b, a)| (b - mean_before) * (a - mean_after))
        .sum();
    let kept = product / ((n - 1.0) * wide * wide_after);
    let relaxed = (1.0 - kept).clamp(1e-3, 1.0);
    let drift: Vec<Vec<f64>> = before
        .iter()
        .zip(after)
        .map(|(b, a)| b.iter().zip(a).map(|(b, a)| a - b).collect())
        .collect();
    let test = Test {
        name: name.into(),
        deviation: mean_after - mean_before,
        error: mcse_mean(&drift),
        tolerance: 0.0,
        ess: n,
    };
    let bias = (-test.deviation / relaxed, test.error / relaxed);
    // What matters: a hundredth of the mean, or where the mean is about 0 a twentieth of the spread.
    let matters = match mean_before.abs() > wide {
        true => 0.01 * mean_before.abs(),
        false => 0.05 * wide,
    };
    Some(Line {
        name: name.into(),
        temperature,
        mean: mean_before,
        relaxed,
        sigma: test.sigma() * test.deviation.signum(),
        // Where nothing moves, nothing is tested.
        power: match test.error > 0.0 {
            true => most_sigma(count) * bias.1,
            false => f64::INFINITY,
        },
        wrong: test.fails(count) && bias.0.abs() > matters,
        bias,
    })
}

impl Verification {
    /// Wrong if anything drifts; not yet if U could be off by more than 2 % unseen.
    pub fn verdict(&self) -> Verdict {
        let of_u = self.lines.iter().filter(|l| l.name == "U");
        let blind = of_u.clone().any(|l| l.power > MOST_ERROR * l.mean.abs());
        match self.lines.iter().any(|l| l.wrong) {
            true => Verdict::Wrong,
            false if of_u.count() == 0 => Verdict::NotJudged,
            false if blind => Verdict::NotYet,
            false => Verdict::Converged,
        }
    }

    /// What was found, and what would have been, in a sentence.
    pub fn says(&self) -> String {
        let off = |l: &Line| {
            let sign = if l.bias.0 > 0.0 {
                "too large"
            } else {
                "too small"
            };
            format!(
                "{} at T = {:.3e} is {} {sign} ({:.1} standard errors)",
                l.name,
                l.temperature,
                percent(l.bias.0.abs() / l.mean.abs()),
                l.sigma.abs()
            )
        };
        let all = |which: &dyn Fn(&&Line) -> bool| -> Vec<_> {
            self.lines.iter().filter(which).map(off).collect()
        };
        let wrong = all(&|l| l.wrong);
        if !wrong.is_empty() {
            return format!("WRONG: {}", wrong.join(", "));
        }
        let small = all(&|l| l.sigma.abs() * l.bias.1 > l.power);
        let of_u = self.lines.iter().filter(|l| l.name == "U");
        let blind = of_u.map(|l| l.power / l.mean.abs()).fold(0.0, f64::max);
        match self.verdict() {
            Verdict::NotYet if blind.is_infinite() => {
                "NOT YET: the exact chains have not moved, so nothing was tested".into()
            }
            Verdict::NotYet => format!(
                "NOT YET: no drift was found, but U could be off by {} unnoticed; take more draws",
                percent(blind)
            ),
            _ if !small.is_empty() => format!("a small drift was found: {}", small.join(", ")),
            _ => format!(
                "no drift was found; a bias of {} of U would have been detected",
                percent(blind)
            ),
        }
    }

    /// As a map: `verdict`, `says` and `lines`, a map each.
    pub fn to_json(&self) -> Json {
        let line = |l: &Line| {
            json!({
                "name": l.name, "temperature": l.temperature, "mean": l.mean, "bias": l.bias.0, "bias_mcse": l.bias.1,
                "relaxed": l.relaxed, "sigma": l.sigma, "power": l.power, "wrong": l.wrong,
            })
        };
        json!({
            "run": self.run, "draws": self.draws, "moves": self.moves, "verdict": self.verdict(), "says": self.says(),
            "lines": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }

    /// A row per temperature and quantity.
    pub fn table(&self) -> Table {
        let mut out = Table::new([
            "T",
            "quantity",
            "mean",
            "bias of the run",
            "drift, σ",
            "detectable bias",
        ])
        .line_above(format!(
            "'{}' against {} exact chains of {} moves per temperature",
            self.run, self.draws, self.moves
        ));
        for l in &self.lines {
            out.push([
                format!("{:.3e}", l.temperature),
                l.name.clone(),
                with_error(l.mean, l.bias.1),
                with_error(l.bias.0, l.bias.1),
                format!("{:+.1}", l.sigma),
                with_error(l.power, f64::NAN),
            ]);
        }
        out.below.push(self.says());
        out
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Verification: "Verification",
    entries: to_json, "verification.to_map() -> map", "All fields as a map.",
    table: table,
}
