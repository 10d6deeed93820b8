//! Evidence: what the draws of a ladder integrate to, by several estimators, and models compared by it.

mod compare;
mod density;
mod energies;
mod gaussian;
pub(crate) mod laplace;
mod transition;

pub use compare::{ModelComparison, compare};
pub(crate) use density::DENSITY_OF_STATES;
pub use energies::Energies;
pub use laplace::{Laplace, laplace};
pub use transition::{Transition, transition};

use super::exchange::Ladders;
use super::run::Run;
use super::smc::Smc;
use super::standing::Judged;
use super::summary::{Summary, with_error};
use crate::diagnostic::Verdict;
use crate::diagnostic::evidence::{
    Estimate, Ladder, Mbar, Quadrature, Replicas, stepping_stone, thermodynamic_integration,
};
use crate::error::{Result, count};
use crate::options::{Kind, Range, Spec, option};
use crate::verb::{Call, Verb};
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Options of `evidence(run, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[option(
    "temperature",
    Kind::Float(Range::Positive),
    "1",
    "The temperature whose ln Z is wanted: 1 for the evidence.",
)];

/// One estimate of ln Z.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name of the estimator, as in scripts.
    pub name: &'static str,
    /// What it is, in words.
    pub what: &'static str,
    /// ln Z and its standard error.
    pub ln_z: Estimate,
    /// What is to be known of it.
    pub note: String,
}

/// ln Z of a model, by all estimators.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Name of the run.
    pub name: String,
    /// The target, in words.
    pub target: String,
    /// N.
    pub parameters: usize,
    /// n.
    pub examples: usize,
    /// The temperature whose ln Z it is.
    pub temperature: f64,
    /// The temperature that it is relative to: infinite where the ladder begins at the prior, and ln Z is absolute.
    pub relative_to: f64,
    /// Rungs between them.
    pub rungs: usize,
    /// The estimates.
    pub lines: Vec<Line>,
    /// Bounds of ln Z by the Gibbs-Bogoliubov inequality, exact but for Monte Carlo error.
    pub bounds: (f64, f64),
    /// How far they can be relied on.
    pub judged: Judged,
    /// What is to be known of the estimates beside the verdict, as that ln Z is relative to a rung.
    pub notes: Vec<String>,
}

/// Share of the draws of a stepping stone that carry weight, below which rungs are too far apart for it.
const LEAST_SHARE: f64 = 0.02;

/// ln Z at a temperature, from the hottest rung of a run.
pub fn evidence(run: &Run, temperature: f64) -> Result<Evidence> {
    let of = || format!("evidence of run '{}'", run.info.name);
    let (energies, is_rung) = Energies::of(run)?.up_to(temperature);
    anyhow::ensure!(
        energies.betas.len() > 1,
        "{}: T = {temperature} is its hottest temperature; ln Z needs hotter ones, or prior_rung: true",
        of()
    );
    let ladder = energies.ladder().with_context(of)?;
    let (replicas, last) = (energies.replicas, energies.betas.len() - 1);
    let (beta, hottest) = (1.0 / temperature, 1.0 / energies.betas[0]);
    anyhow::ensure!(
        (energies.betas[0]..=energies.betas[last] * (1.0 + 1e-9)).contains(&beta),
        "{}: T = {temperature} is not within its ladder, from {} to {hottest}",
        of(),
        1.0 / energies.betas[last]
    );
    let mbar = Mbar::solve(&ladder).with_context(of)?;
    let (mut lines, mut bounds) = (Vec::new(), (f64::NAN, f64::NAN));
    let mut judged = Judged::converged();
    if is_rung {
        bounds = add_integrals(&ladder, replicas, &mut lines)?;
        let share = add_stepping_stones(&ladder, replicas, &mut lines)?;
        if share < LEAST_SHARE {
            let says = format!(
                "the rungs are too far apart for stepping stones: {:.1} % of the draws carry weight; put more rungs where swaps are rare",
                100.0 * share
            );
            judged.add(Verdict::NotYet, says);
        }
    }
    lines.push(by_mbar(&mbar, replicas, (!is_rung).then_some(temperature))?);
    if let Some(says) = disagreement(&lines) {
        judged.add(Verdict::Wrong, says);
    }
    let of_ladders = run.ladders.as_ref().and_then(Ladders::lacking);
    let all = [run.broken(), of_ladders, energies.lacking()];
    for says in all.into_iter().flatten() {
        judged.add(Verdict::NotYet, says);
    }
    for (verdict, says) in of_rungs(run)? {
        judged.add(verdict, says);
    }
    let note = (!ladder.starts_at_prior()).then(|| {
        format!(
            "the ladder begins at T = {hottest:.4e}, not at the prior: ln Z is relative to that; use prior_rung: true for the evidence"
        )
    });
    Ok(Evidence {
        name: run.info.name.clone(),
        target: run.info.target.clone(),
        parameters: run.info.parameters,
        examples: run.info.n,
        temperature,
        relative_to: hottest,
        rungs: energies.betas.len(),
        lines,
        bounds,
        judged,
        notes: note.into_iter().collect(),
    })
}

/// What there is against the law at the first rung of which there is something, and at how many it is so: that it is wrong, or that chains miss regions.
fn of_rungs(run: &Run) -> Result<Vec<(Verdict, String)>> {
    let judgements = Summary::new(run)?.judgements;
    let temperature = |k: usize| run.info.temperatures[k];
    let is_wrong = |k: usize| judgements[k].verdict == Verdict::Wrong;
    let finite = (0..judgements.len()).filter(|k| temperature(*k).is_finite());
    let wrong = finite.filter(|k| is_wrong(*k));
    let wrong: Vec<_> = wrong
        .map(|k| (k, judgements[k].reasons.join("; ")))
        .collect();
    let mut missed = run.against()?;
    missed.retain(|(k, _)| temperature(*k).is_finite() && !is_wrong(*k));
    let said = |verdict, all: Vec<(usize, String)>| {
        let (k, says) = all.first()?;
        let others = match all.len() - 1 {
            0 => String::new(),
            n => format!("; so it is at {}", count(n, "other rung")),
        };
        Some((
            verdict,
            format!("at T = {:.4e}: {says}{others}", temperature(*k)),
        ))
    };
    let both = [said(Verdict::Wrong, wrong), said(Verdict::NotYet, missed)];
    Ok(both.into_iter().flatten().collect())
}

/// Add what thermodynamic integration says; the bounds by it.
fn add_integrals(ladder: &Ladder, replicas: Replicas, lines: &mut Vec<Line>) -> Result<(f64, f64)> {
    let integral = thermodynamic_integration(ladder, replicas)?;
    let line = |name, what, q: Quadrature| Line {
        name,
        what,
        ln_z: Estimate {
            value: q.ln_z.value,
            standard_error: q.total_error(),
        },
        note: format!(
            "of the error, {:.2} comes from the draws and {:.2} from the spacing of the rungs",
            q.ln_z.standard_error,
            q.discretisation.value.abs()
        ),
    };
    lines.extend([
        line(
            "trapezoid",
            "thermodynamic integration, trapezoid",
            integral.trapezoid,
        ),
        line(
            "thermodynamic_integration",
            "thermodynamic integration, corrected",
            integral.corrected,
        ),
    ]);
    Ok(integral.bounds)
}

/// Add what stepping stones say; the least share of the draws that carry weight on the way from hot to cold.
fn add_stepping_stones(ladder: &Ladder, replicas: Replicas, lines: &mut Vec<Line>) -> Result<f64> {
    let stones = stepping_stone(ladder, replicas)?;
    let least = |shares: &[f64]| shares.iter().copied().fold(1.0, f64::min);
    let share = |s: f64| {
        format!(
            "in the worst step, {:.0} % of the draws carry weight",
            100.0 * s
        )
    };
    let line = |name, what, ln_z, note| Line {
        name,
        what,
        ln_z,
        note,
    };
    let (forward, backward) = (least(&stones.forward_share), least(&stones.backward_share));
    lines.extend([
        line(
            "stepping_stone_forward",
            "stepping stone, from hot to cold",
            stones.forward,
            share(forward),
        ),
        line(
            "stepping_stone_backward",
            "stepping stone, from cold to hot",
            stones.backward,
            match stones.backward.standard_error.is_nan() {
                true => "no error: its weights have too heavy a tail".into(),
                false => share(backward),
            },
        ),
        line(
            "stepping_stone",
            "stepping stone, average of both",
            stones.average,
            String::new(),
        ),
    ]);
    Ok(forward)
}

/// What MBAR says of the last rung, or of a temperature at which there is none.
fn by_mbar(mbar: &Mbar, replicas: Replicas, between: Option<f64>) -> Result<Line> {
    let (ln_z, note) = match between {
        None => (mbar.log_evidence(replicas)?, String::new()),
        Some(temperature) => {
            let at = mbar.ln_z_at(1.0 / temperature, replicas)?;
            let note = format!(
                "no rung is at T = {temperature}: reweighted to it, {:.0} effective draws",
                at.effective_draws
            );
            (at.estimate, note)
        }
    };
    Ok(Line {
        name: "mbar",
        what: "multistate Bennett acceptance ratio (MBAR)",
        ln_z,
        note,
    })
}

/// Joint standard errors beyond which two estimators contradict each other. They share their draws, so that their true difference is smaller
/// still.
const MOST_APART: f64 = 4.0;

/// Which of the best estimators of each kind contradict each other, in words.
fn disagreement(lines: &[Line]) -> Option<String> {
    let best = [
        "thermodynamic_integration",
        "stepping_stone_forward",
        "mbar",
    ];
    let of = |name: &&str| lines.iter().find(|l| l.name == *name);
    let found: Vec<_> = best.iter().filter_map(of).collect();
    let pairs = (0..found.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let apart = pairs.map(|(i, j)| {
        let (a, b) = (found[j], found[i]);
        let joint = a.ln_z.standard_error.hypot(b.ln_z.standard_error);
        ((a.ln_z.value - b.ln_z.value).abs() / joint, a, b)
    });
    let (errors, a, b) = apart
        .filter(|(errors, ..)| *errors > MOST_APART)
        .max_by(|x, y| x.0.total_cmp(&y.0))?;
    let shown = |l: &Line| {
        format!(
            "{} {}",
            l.what,
            with_error(l.ln_z.value, l.ln_z.standard_error)
        )
    };
    Some(format!(
        "{} and {} are {errors:.1} joint errors apart: put more rungs between the existing ones",
        shown(a),
        shown(b)
    ))
}

/// ln Z of a target, by populations that came to it from the prior.
pub(crate) fn of_populations(smc: &Smc) -> Evidence {
    let temperature = smc.stages.last().map_or(f64::NAN, |s| s.temperature);
    let (particles, populations) = (smc.particles, smc.ln_z.len());
    Evidence {
        name: smc.name.clone(),
        target: smc.target.clone(),
        parameters: smc.parameters,
        examples: smc.examples,
        temperature,
        relative_to: f64::INFINITY,
        rungs: smc.stages.len() + 1,
        lines: vec![Line {
            name: "smc",
            what: "tempered sequential Monte Carlo",
            ln_z: smc.estimate(),
            note: format!("{populations} populations of {particles} particles"),
        }],
        bounds: (f64::NAN, f64::NAN),
        judged: smc.judged(),
        notes: Vec::new(),
    }
}

impl Evidence {
    /// The estimate of that name.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|l| l.name == name)
    }

    /// ln Z by the estimator with the least error, MBAR; whether the others agree with it is in `judged`.
    pub fn best(&self) -> Estimate {
        let nothing = Estimate {
            value: f64::NAN,
            standard_error: f64::NAN,
        };
        self.lines.last().map_or(nothing, |l| l.ln_z)
    }

    /// As a map: `verdict` and `reasons`, `ln_z`, `error`, and each estimator by its name, with `_error`.
    pub fn to_map(&self) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("verdict".into(), json!(self.judged.verdict));
        out.insert("reasons".into(), json!(self.judged.reasons));
        let best = self.best();
        for (name, e) in [("ln_z", best)]
            .into_iter()
            .chain(self.lines.iter().map(|l| (l.name, l.ln_z)))
        {
            let error = match name {
                "ln_z" => "error".to_string(),
                name => format!("{name}_error"),
            };
            out.insert(name.into(), json!(e.value));
            out.insert(error, json!(e.standard_error));
        }
        out.insert("lower_bound".into(), json!(self.bounds.0));
        out.insert("upper_bound".into(), json!(self.bounds.1));
        out.insert("parameters".into(), json!(self.parameters));
        out
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.relative_to.is_finite() {
            true => format!(" - ln Z(T = {:.4e})", self.relative_to),
            false => String::new(),
        };
        if let Some(line) = self.judged.line("estimate") {
            writeln!(f, "{line}")?;
        }
        writeln!(
            f,
            "ln Z(T = {}){from} of '{}', {} rungs, N = {}",
            self.temperature, self.name, self.rungs, self.parameters
        )?;
        for l in &self.lines {
            let number = with_error(l.ln_z.value, l.ln_z.standard_error);
            writeln!(f, "{:>42}  {number:>14}  {}", l.what, l.note)?;
        }
        if self.bounds.0.is_finite() {
            let (low, high) = self.bounds;
            write!(f, "{:>42}  {low:.4} … {high:.4}", "bounds (up to noise)")?;
        }
        let mut notes = self.notes.iter();
        notes.try_for_each(|w| write!(f, "\nNOTE: {w}"))
    }
}

crate::object::object! {
    Evidence: "Evidence",
    entries: to_map, "evidence.to_map() -> map", "All fields as a map.", "the evidence",
}

/// The verb `evidence` of a ladder.
pub static EVIDENCE: Verb<(), (Arc<Run>,), Arc<Evidence>> = Verb {
    name: "evidence",
    arguments: &["run"],
    options: OPTIONS,
    doc: "ln Z of a model, from the draws of a ladder: the log evidence ln ∫ exp(-s·L(w)) p(w) dw where the hottest rung is the prior p.\n\n\
         By thermodynamic integration (trapezoid, and with its curvature corrected; the error includes draws and spacing), stepping stones from hot to cold, from cold to hot and their \
         average, and MBAR, each with its standard error. They use the same draws, so they agree better than their errors suggest; where they do not, rungs are too far apart.\n\n\
         `exchange` with `prior_rung: true` gives such a run; a `sweep` with a uniform_box prior that observes cost gives ln Z relative to its hottest temperature. \
         With energy: \"sum\" and cross-entropies exp(-s·L) is the likelihood; with squared errors it is that of a Gaussian of variance ½, up to π^(-n·outputs/2).\n\n\
         Fields: verdict (\"converged\", \"not yet\": a ladder without a round trip, a rung with R̂ or too few effective draws, rungs too far apart; \"wrong\": estimators more than 4 joint errors apart) and reasons, ln_z and error (those of MBAR), trapezoid, thermodynamic_integration, stepping_stone_forward, stepping_stone_backward, stepping_stone, mbar, each also with _error; \
         lower_bound and upper_bound (Gibbs-Bogoliubov).",
    example: "evidence(exchange(target(potential::gaussian_mixture(), #{ prior: prior::gaussian(0.25) }), sampler::hmc(), #{ temperatures: [1, 2, 4, 10, 30], prior_rung: true, steps: 2000 }))",
    call: Call::Checked(|(run,), o, ()| evidence(&run, o.float("temperature")?).map(Arc::new)),
};

/// The verb `evidence` of populations.
pub(crate) static EVIDENCE_OF_POPULATIONS: Verb<(), (Arc<Smc>,), Arc<Evidence>> = Verb {
    name: "evidence",
    arguments: &["smc"],
    options: &[],
    doc: "ln Z by tempered sequential Monte Carlo, for `compare` and tables. Fields: ln_z and error, smc and smc_error.",
    example: "",
    call: Call::Checked(|(smc,), _, ()| Ok(Arc::new(of_populations(&smc)))),
};
