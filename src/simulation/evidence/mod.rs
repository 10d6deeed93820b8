//! Evidence: what the draws of a ladder integrate to, by several estimators, and models compared by it.

mod compare;
pub(crate) mod laplace;
mod transition;

pub use compare::{ModelComparison, compare};
pub use laplace::{Laplace, laplace};
pub use transition::{Transition, transition};

use super::exchange::Ladders;
use super::run::{Run, TEMPERED_ENERGY};
use super::smc::Smc;
use super::standing::{Judged, lacking};
use super::summary::with_error;
use crate::diagnostic::evidence::{
    Estimate, Ladder, Mbar, Replicas, stepping_stone, thermodynamic_integration,
};
use crate::diagnostic::{self, Verdict};
use crate::error::Result;
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

/// The energies of a run as the estimators take them: inverse temperatures, increasing, and draws of each.
pub struct Energies {
    betas: Vec<f64>,
    draws: Vec<Vec<Vec<f64>>>,
    replicas: Replicas,
}

impl Energies {
    /// Of a ladder, or of a sweep whose prior is flat (then all of U is likelihood): what evidence follows from.
    pub fn of(run: &Run) -> Result<Self> {
        let info = &run.info;
        anyhow::ensure!(!info.prior_tempered, Self::refused(run));
        Self::at_rungs(run)
    }

    fn refused(run: &Run) -> anyhow::Error {
        anyhow::anyhow!(
            "run '{}' is of the kind '{}', in which the prior is tempered too, so that it says nothing about the evidence; use exchange(…) with temper: \"likelihood\", or a sweep with a uniform_box prior that observes cost",
            run.info.name,
            run.info.kind
        )
    }

    /// What temperatures divide, whatever that is.
    pub fn at_rungs(run: &Run) -> Result<Self> {
        let info = &run.info;
        let (name, factor, replicas) = match &info.ladder {
            Some(_) => (TEMPERED_ENERGY, 1.0, Replicas::Exchanging),
            None if info.walls => ("cost", info.scale, Replicas::Independent),
            None => return Err(Self::refused(run)),
        };
        let mut out = Self {
            betas: Vec::new(),
            draws: Vec::new(),
            replicas,
        };
        // From hot to cold, in whatever order a sweep has them.
        let mut order: Vec<usize> = (0..info.temperatures.len()).collect();
        order.sort_by(|a, b| info.temperatures[*b].total_cmp(&info.temperatures[*a]));
        for rung in order {
            let mut draws = run.draws(name, 0, rung, false)?;
            draws.iter_mut().flatten().for_each(|e| *e *= factor);
            let t = info.temperatures[rung];
            anyhow::ensure!(
                draws.iter().flatten().all(|e| e.is_finite()) || t.is_finite(),
                "run '{}': a draw of the prior has no finite energy; ln Z by a ladder needs one everywhere, `smc` does not",
                info.name
            );
            out.betas.push(1.0 / info.temperatures[rung]);
            out.draws.push(draws);
        }
        // A ladder that has lost a replica is no longer one; the others are not the worse for it.
        let chains = info.chains;
        let sound = |c: &usize| {
            (0..info.temperatures.len()).all(|t| run.failures[t * chains + c].is_none())
        };
        let keep: Vec<usize> = (0..chains).filter(sound).collect();
        anyhow::ensure!(
            !keep.is_empty(),
            "run '{}': every ladder has a chain that failed",
            info.name
        );
        for draws in &mut out.draws {
            *draws = keep
                .iter()
                .map(|c| std::mem::take(&mut draws[*c]))
                .collect();
        }
        Ok(out)
    }

    /// The rungs from the hottest to `temperature`; whether that is one of them.
    fn up_to(mut self, temperature: f64) -> (Self, bool) {
        let beta = 1.0 / temperature;
        let close = |b: f64| (b / beta - 1.0).abs() < 1e-9;
        match self.betas.iter().position(|b| close(*b)) {
            Some(at) => {
                self.betas.truncate(at + 1);
                self.draws.truncate(at + 1);
                (self, true)
            }
            None => (self, false),
        }
    }

    /// What the worst rung lacks of convergence, in words; none if none lacks anything. Draws of the prior are independent.
    fn lacking(&self) -> Option<String> {
        let of = |(beta, draws): (&f64, &Vec<Vec<f64>>)| {
            let numbers = [
                diagnostic::rhat_rank(draws),
                diagnostic::ess_bulk(draws),
                diagnostic::ess_tail(draws),
            ];
            let (says, factor) = lacking("the energy", numbers)?;
            Some((1.0 / beta, says, factor.unwrap_or(f64::INFINITY)))
        };
        let rungs = self.betas.iter().zip(&self.draws);
        let each = rungs.filter(|(beta, _)| **beta > 0.0).filter_map(of);
        let (t, says, factor) = each.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let times = match factor.is_finite() {
            true => format!(", so take {factor:.0} times the steps or so"),
            false => String::new(),
        };
        Some(format!("at T = {t:.4e} {says}{times}"))
    }

    fn ladder(&self) -> Result<Ladder<'_>> {
        Ladder::new(&self.betas, &self.draws)
    }
}

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
    let beta = 1.0 / temperature;
    anyhow::ensure!(
        (energies.betas[0]..=energies.betas[last] * (1.0 + 1e-9)).contains(&beta),
        "{}: T = {temperature} is not within its ladder, from {} to {}",
        of(),
        1.0 / energies.betas[last],
        1.0 / energies.betas[0]
    );
    let mbar = Mbar::solve(&ladder).with_context(of)?;
    let mut lines = Vec::new();
    let mut bounds = (f64::NAN, f64::NAN);
    let mut judged = Judged::converged();
    if is_rung {
        let integral = thermodynamic_integration(&ladder, replicas)?;
        let stones = stepping_stone(&ladder, replicas)?;
        bounds = integral.bounds;
        for (name, what, q) in [
            (
                "trapezoid",
                "thermodynamic integration, trapezoid",
                integral.trapezoid,
            ),
            (
                "thermodynamic_integration",
                "thermodynamic integration, corrected",
                integral.corrected,
            ),
        ] {
            lines.push(Line {
                name,
                what,
                ln_z: Estimate {
                    value: q.ln_z.value,
                    standard_error: q.total_error(),
                },
                note: format!(
                    "of the error {:.2} are from the draws, {:.2} from the spacing of the rungs",
                    q.ln_z.standard_error,
                    q.discretisation.value.abs()
                ),
            });
        }
        let least = |shares: &[f64]| shares.iter().copied().fold(1.0, f64::min);
        let share = |s: f64| {
            format!(
                "{:.0} % of the draws of the worst step carry weight",
                100.0 * s
            )
        };
        let (forward, backward) = (least(&stones.forward_share), least(&stones.backward_share));
        for (name, what, ln_z, note) in [
            (
                "stepping_stone_forward",
                "stepping stone, from hot to cold",
                stones.forward,
                share(forward),
            ),
            (
                "stepping_stone_backward",
                "stepping stone, from cold to hot",
                stones.backward,
                share(backward),
            ),
            (
                "stepping_stone",
                "stepping stone, average of both",
                stones.average,
                String::new(),
            ),
        ] {
            lines.push(Line {
                name,
                what,
                ln_z,
                note,
            });
        }
        if forward < 0.02 {
            let says = format!(
                "the rungs are too far apart for stepping stones: {:.1} % of the draws carry weight; put more rungs where swaps are rare",
                100.0 * forward
            );
            judged.add(Verdict::NotYet, says);
        }
    }
    let (ln_z, note) = match is_rung {
        true => (mbar.log_evidence(replicas)?, String::new()),
        false => {
            let at = mbar.ln_z_at(beta, replicas)?;
            let note = format!(
                "no rung is at T = {temperature}: reweighted to it, {:.0} effective draws",
                at.effective_draws
            );
            (at.estimate, note)
        }
    };
    lines.push(Line {
        name: "mbar",
        what: "multistate Bennett acceptance ratio (MBAR)",
        ln_z,
        note,
    });
    if let Some(says) = disagreement(&lines) {
        judged.add(Verdict::Wrong, says);
    }
    let of_ladders = run.ladders.as_ref().and_then(Ladders::lacking);
    for says in of_ladders.into_iter().chain(energies.lacking()) {
        judged.add(Verdict::NotYet, says);
    }
    let mut notes = Vec::new();
    if !ladder.starts_at_prior() {
        notes.push(format!(
            "the ladder begins at T = {:.4e}, not at the prior: ln Z is relative to that; use prior_rung: true for the evidence",
            1.0 / energies.betas[0]
        ));
    }
    Ok(Evidence {
        name: run.info.name.clone(),
        target: run.info.target.clone(),
        parameters: run.info.parameters,
        examples: run.info.n,
        temperature,
        relative_to: 1.0 / energies.betas[0],
        rungs: energies.betas.len(),
        lines,
        bounds,
        judged,
        notes,
    })
}

/// Joint standard errors beyond which two estimators contradict each other. They share their draws, so that their true difference is smaller
/// still.
const MOST_APART: f64 = 4.0;

/// Which of the best estimators of each kind contradict each other, in words.
fn disagreement(lines: &[Line]) -> Option<String> {
    let best = ["thermodynamic_integration", "stepping_stone", "mbar"];
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
        "{} and {} are {errors:.1} joint errors apart: put more rungs between those there are",
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
            write!(f, "{:>42}  {low:.4} … {high:.4}", "bounds (but for noise)")?;
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
         By thermodynamic integration (trapezoid, and with its curvature corrected; the error holds draws and spacing), stepping stones from hot to cold, from cold to hot and their \
         average, and MBAR, each with its standard error. They use the same draws, so that they agree more than their errors say; where they do not, rungs are too far apart.\n\n\
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
