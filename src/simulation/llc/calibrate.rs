//! Calibration without a known answer: the sweep over step sizes and nβ that is otherwise judged by eye, with the signs of a step that is
//! too large (a hot virial, an estimate that halving changes, failed chains) or too small (a cold virial, chains that disagree) read off
//! at each point. What is looked for is a plateau: estimates that neighbouring steps, and neighbouring nβ, confirm.

use super::grid::{self, PILOT, Search, is_stable, search};
use super::protocol::{BASELINE, Baseline, GAMMA, Point, Prepared};
use super::trial::{Found, Trial};
use super::{nbeta, one_point};
use crate::error::{Interrupted, Result};
use crate::options::{Kind, Options, Range, Spec, option, optional, required};
use crate::sampler::ConfiguredSampler;
use crate::simulation::job::{Job, Record, Standing, drive};
use crate::simulation::plan::{self, Plan};
use crate::simulation::run_in_memory;
use crate::simulation::session::{self, Session};
use crate::simulation::standing::lacking;
use crate::store::archive::{Archive, Kept};
use crate::table::Table;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use crate::verb::{Call, Verb};
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Options of `calibrate_llc(target, sampler, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    required("start", Kind::Object("Parameters"), "w0, as in `llc`."),
    optional(
        "step_sizes",
        Kind::Floats(Range::Positive),
        "7, halved from the largest stable one",
        "Step sizes to try, in place of the sampler's own (of `pseudo_langevin` its ratio). If they are not given, short runs find the largest step, four times more or less than the \
         sampler's own again and again, at which chains survive and are not twice too hot; around the own step of samplers that accept or reject.",
    ),
    optional(
        "nbetas",
        Kind::Floats(Range::Positive),
        "n/ln n alone",
        "Values of nβ to try.",
    ),
    option(
        "chains",
        Kind::Int(Range::Between(2.0, 1e5)),
        "4",
        "Chains at each point.",
    ),
    option(
        "steps",
        Kind::Int(Range::Between(20.0, 1e12)),
        "5000",
        "Steps per chain, burn-in included.",
    ),
    option(
        "burn_in",
        Kind::Float(Range::Open01),
        "0.5",
        "Part of the steps that is not averaged.",
    ),
    GAMMA,
    BASELINE,
    option(
        "tolerance",
        Kind::Float(Range::Positive),
        "0.05",
        "Relative error of discretisation and relaxation that is tolerated.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed",
        "Seed of all trials.",
    ),
    optional(
        "name",
        Kind::Text,
        "calibrate_llc-1, …",
        "Name, and that of the folder of its checkpoint.",
    ),
];

/// R̂ from which on chains disagree so much that their mean says nothing.
const MOST_RHAT: f64 = 1.2;

/// All trials, and which of them is recommended.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// In order of nβ, then of the step size.
    pub trials: Vec<Trial>,
    /// The sampler's option that was varied.
    pub option: &'static str,
    /// The trial on a plateau: of those that nothing speaks against and a neighbouring step confirms, the one with the smallest error bar at
    /// its nβ; of several nβ the one nearest to n/ln n that a neighbouring nβ confirms. None if there is none.
    pub recommended: Option<usize>,
    /// Whether several nβ have a plateau each, and no two neighbours of them agree.
    pub nbetas_disagree: bool,
    /// The trial at which the estimate changes least with the step size, of those that are not plainly wrong: what there is to take where
    /// directions that only γ holds back need more steps than can be made.
    pub steadiest: Option<usize>,
}

/// Try all step sizes at all nβ.
pub(crate) fn calibrate(
    target: &Target,
    sampler: &Arc<ConfiguredSampler>,
    o: &Options,
    session: &Session,
) -> Result<Calibration> {
    let start = one_point(o, target)?;
    let Some((option, _)) = sampler.step_size() else {
        anyhow::bail!(
            "{}: sampler::{} has no fixed step size that could be varied; give it one",
            o.owner(),
            sampler.name()
        )
    };
    let mut nbetas = match o.floats("nbetas") {
        Some(list) => list,
        None => vec![nbeta(o, target.likelihood_n())?],
    };
    nbetas.sort_by(f64::total_cmp);
    let steps = o.floats("step_sizes").map(|mut steps| {
        steps.sort_by(f64::total_cmp);
        steps
    });
    anyhow::ensure!(
        !nbetas.is_empty() && steps.as_ref().is_none_or(|s| !s.is_empty()),
        "{}: there is nothing to try: options 'step_sizes' and 'nbetas' need at least one number each",
        o.owner()
    );
    let mut hash = crc32fast::Hasher::new();
    target.fingerprint(&mut hash);
    start.iter().for_each(|x| hash.update(&x.to_le_bytes()));
    let job = Calibrating {
        name: session.name_run("calibrate_llc", o.opt_text("name"))?,
        what: json!({
            "job": "calibration", "given": o.describe(), "fingerprint": hash.finalize(), "target": target.describe(),
            "sampler": sampler.name(), "options": sampler.options, "quick": session.quick, "seed": session.seed,
        }),
        target,
        sampler,
        o,
        session,
        start,
        option,
        nbetas,
        steps,
        pilots: Vec::new(),
        trials: Vec::new(),
    };
    drive(job, session)
}

/// A calibration that goes on.
struct Calibrating<'a> {
    name: String,
    what: Value,
    target: &'a Target,
    sampler: &'a Arc<ConfiguredSampler>,
    o: &'a Options,
    session: &'a Session,
    start: Arc<Vec<f32>>,
    option: &'static str,
    nbetas: Vec<f64>,
    /// Increasing; none as long as they are looked for.
    steps: Option<Vec<f64>>,
    /// Step sizes that were run to look for them, and whether they are stable.
    pilots: Vec<(f64, bool)>,
    /// Trials so far: at all step sizes for one nβ after the other.
    trials: Vec<Trial>,
}

impl Calibrating<'_> {
    /// Run at a step size, for so many steps at most.
    fn trial(&self, step: f64, nbeta: f64, most: u64) -> Result<Trial> {
        let changed = self.sampler.with(self.option, step)?;
        let changed = changed.unwrap_or_else(|| self.sampler.clone());
        let point = Point {
            nbeta,
            gamma: self.o.float("gamma")?,
            baseline: Baseline::from_options(self.o)?,
        };
        let prepared = Prepared::new(self.target, &changed, &self.start, point, None)?;
        let (session, threads) = (self.session, self.session.threads);
        let plan = plan(self.o, &prepared, session, most)?;
        let run = run_in_memory((&plan, &prepared.target, &prepared.sampler, session, threads))?;
        let found = match run.failures.iter().all(Option::is_some) {
            true => None,
            false => Some(prepared.estimate(Arc::new(run), threads)?),
        };
        Ok(Trial {
            step,
            nbeta,
            estimate: found.as_ref().map(Found::of),
            against: Vec::new(),
        })
    }

    /// The next run that the search for step sizes needs.
    fn pilot(&mut self, step: f64) -> Result<()> {
        // Where the potential is steepest.
        let nbeta = self.nbetas.last().copied().unwrap_or(f64::NAN);
        let stable = match self.trial(step, nbeta, PILOT) {
            Ok(trial) => trial.estimate.as_ref().is_some_and(is_stable),
            // What is wrong with all of them is said; an option out of its range is an end of the search, as any other is.
            Err(e) if self.pilots.is_empty() || Interrupted::is(&e) => return Err(e),
            Err(_) => false,
        };
        self.pilots.push((step, stable));
        Ok(())
    }
}

impl Kept for Calibrating<'_> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        archive.table(
            "pilots",
            &mut self.pilots,
            |(step, stable)| [*step, f64::from(u8::from(*stable))],
            |[step, stable]| (*step, *stable > 0.0),
        )?;
        archive.table(
            "trials",
            &mut self.trials,
            Trial::numbers,
            Trial::of_numbers,
        )
    }
}

impl Job for Calibrating<'_> {
    type Output = Calibration;

    fn name(&self) -> &str {
        &self.name
    }

    fn whose(&self) -> &'static str {
        "this calibration was"
    }

    fn fingerprint(&self) -> Value {
        self.what.clone()
    }

    fn size(&self) -> (&'static str, u64) {
        let steps = self.steps.as_ref().map_or(grid::COUNT as usize, Vec::len);
        ("estimates", (steps * self.nbetas.len()) as u64)
    }

    fn standing(&self) -> Standing {
        let (done, steps) = (self.trials.len(), self.steps.as_ref().map(Vec::len));
        Standing {
            done: done as u64,
            more: steps.is_none_or(|steps| done < steps * self.nbetas.len()),
            ..Standing::default()
        }
    }

    fn place(&self) -> String {
        format!("after {} of {} estimates", self.trials.len(), self.size().1)
    }

    /// A run. One that is interrupted is lost.
    fn advance(&mut self, _: Instant) -> Result<()> {
        let done = match (&self.steps, search(self.sampler, &self.pilots)) {
            (None, Search::Try(step)) => self.pilot(step),
            (None, Search::Found(mut steps)) => {
                steps.sort_by(f64::total_cmp);
                self.steps = Some(steps);
                Ok(())
            }
            (Some(steps), _) => {
                let (i, k) = (
                    self.trials.len() / steps.len(),
                    self.trials.len() % steps.len(),
                );
                let trial = self.trial(steps[k], self.nbetas[i], u64::MAX);
                trial.map(|trial| self.trials.push(trial))
            }
        };
        match done {
            Err(e) if Interrupted::is(&e) => Ok(()),
            other => other,
        }
    }

    fn finish(self, _: &Path, _: Record, _: &Session) -> Result<Calibration> {
        let (mut trials, steps) = (self.trials, self.steps.map_or(1, |steps| steps.len()));
        let tolerance = self.o.float("tolerance")?;
        for i in 0..trials.len() {
            let smaller = (i % steps > 0).then(|| trials[i - 1].clone());
            trials[i].against = against(&trials[i], smaller.as_ref(), tolerance);
        }
        unconfirmed(&mut trials, tolerance);
        let usual = nbeta(self.o, self.target.likelihood_n()).unwrap_or(self.nbetas[0]);
        let (recommended, nbetas_disagree) = plateau(&trials, (&self.nbetas, usual), tolerance);
        Ok(Calibration {
            steadiest: steadiest(&trials, tolerance),
            option: self.option,
            trials,
            recommended,
            nbetas_disagree,
        })
    }
}

/// Whether two estimates are the same, within two joint errors or what is tolerated.
fn agree(a: &Found, b: &Found, tolerance: f64) -> bool {
    let noise = 2.0 * a.mcse.hypot(b.mcse);
    (a.lambda - b.lambda).abs() <= noise.max(tolerance * a.lambda.abs())
}

/// Note where nothing speaks against a trial, but no neighbouring step that is as good confirms it.
fn unconfirmed(trials: &mut [Trial], tolerance: f64) {
    let confirms = |i: usize, j: Option<usize>| {
        let fine = |k: usize| trials.get(k).filter(|t| t.against.is_empty());
        let (Some(a), Some(b)) = (fine(i), j.and_then(fine)) else {
            return false;
        };
        let both = a.estimate.as_ref().zip(b.estimate.as_ref());
        a.nbeta == b.nbeta && both.is_some_and(|(a, b)| agree(a, b, tolerance))
    };
    let alone = |i: usize| {
        let neighbours = [i.checked_sub(1), Some(i + 1)];
        trials[i].against.is_empty() && !neighbours.into_iter().any(|j| confirms(i, j))
    };
    let which: Vec<_> = (0..trials.len()).filter(|i| alone(*i)).collect();
    for i in which {
        trials[i]
            .against
            .push("no neighbouring step confirms it".into());
    }
}

/// See [`Calibration::recommended`] and [`Calibration::nbetas_disagree`]. Error bars are compared at one nβ only: those of different nβ are of
/// different things.
fn plateau(
    trials: &[Trial],
    (nbetas, usual): (&[f64], f64),
    tolerance: f64,
) -> (Option<usize>, bool) {
    let best = |nbeta: &f64| {
        let there = (0..trials.len()).filter(|i| trials[*i].nbeta == *nbeta);
        let fine = there.filter(|i| trials[*i].against.is_empty());
        let each = fine.filter_map(|i| Some((i, trials[i].estimate.as_ref()?)));
        each.min_by(|a, b| a.1.mcse.total_cmp(&b.1.mcse))
    };
    let each: Vec<_> = nbetas.iter().map(best).collect();
    if let [one] = each[..] {
        return (one.map(|(i, _)| i), false);
    }
    let confirmed = |k: usize| {
        let (i, own) = each[k]?;
        let neighbours = [k.checked_sub(1), Some(k + 1)].into_iter().flatten();
        let mut others = neighbours.filter_map(|j| *each.get(j)?);
        others.any(|(_, e)| agree(own, e, tolerance)).then_some(i)
    };
    let far = |i: &usize| (trials[*i].nbeta / usual).ln().abs();
    let found = (0..each.len()).filter_map(confirmed);
    let found = found.min_by(|a, b| far(a).total_cmp(&far(b)));
    (found, found.is_none() && each.iter().flatten().count() > 1)
}

/// See [`Calibration::steadiest`]. Trials with the same nβ are neighbours.
fn steadiest(trials: &[Trial], tolerance: f64) -> Option<usize> {
    let usable = |i: usize| {
        let e = trials.get(i)?.estimate.as_ref()?;
        let hot = e.temperature > 1.0 + tolerance.max(2.0 * e.temperature_mcse);
        let fit = e.failed == 0 && !hot && e.rhat < MOST_RHAT && e.lambda > 0.0;
        fit.then_some((trials[i].nbeta, e.lambda, e.mcse))
    };
    let score = |i: usize| {
        let (nbeta, lambda, mcse) = usable(i)?;
        let change = |other: Option<(f64, f64, f64)>| {
            other
                .filter(|o| o.0 == nbeta)
                .map(|o| (o.1 / lambda).ln().abs())
        };
        // Where the next larger step is no longer usable this one is at the edge, and steady by chance.
        let larger = change(usable(i + 1))?;
        let smaller = change(i.checked_sub(1).and_then(usable)).unwrap_or(0.0);
        let largest = larger.max(smaller);
        Some(largest.hypot(mcse / lambda))
    };
    let scored = (0..trials.len()).filter_map(|i| Some((i, score(i)?)));
    let best = scored.min_by(|a, b| a.1.total_cmp(&b.1));
    best.map(|(i, _)| i)
}

/// Records per chain that are enough for an effective sample size.
const RECORDS: u64 = 1000;

/// The plan of a trial, of at most so many steps.
fn plan(o: &Options, prepared: &Prepared, session: &Session, most: u64) -> Result<Plan> {
    let mut steps = o.int("steps")?.min(most);
    if session.quick {
        steps = steps.min(400);
    }
    let seed = o
        .opt_int("seed")
        .unwrap_or_else(|| session::seed_of(session.seed, "calibrate_llc"));
    let start = Some(Arc::new(Parameters {
        vectors: vec![prepared.start.clone()],
    }));
    let burn_in = plan::burn_in(o.owner(), o, steps)?;
    Ok(Plan {
        name: "trial".into(),
        burn_in,
        every: Trigger::Every(((steps - burn_in) / RECORDS).clamp(1, prepared.every())),
        observables: prepared.observables()?,
        ..Plan::bare("calibrate_llc", (o.size("chains")?, start), steps, seed)
    })
}

/// Whether chains have not relaxed, which says nothing of larger steps.
fn is_cold(e: &Found, tolerance: f64) -> bool {
    e.temperature < 1.0 - tolerance.max(2.0 * e.temperature_mcse)
}

/// What speaks against a trial; `smaller` is the one with the next smaller step.
fn against(trial: &Trial, smaller: Option<&Trial>, tolerance: f64) -> Vec<String> {
    let Some(e) = &trial.estimate else {
        return vec!["every chain failed".into()];
    };
    let mut out = Vec::new();
    if !e.failed == 0 {
        out.push(format!("{} of {} chains failed", e.failed, e.chains));
    }
    let off = e.temperature - 1.0;
    let clear = off.abs() > tolerance.max(2.0 * e.temperature_mcse);
    match e.undecided {
        true if e.temperature_mcse > tolerance => {
            out.push("the virial is too noisy to tell".into())
        }
        _ if clear && off > 0.0 => out.push("hot: the step is too large".into()),
        _ if clear => out.push("cold: chains have not relaxed".into()),
        _ => {}
    }
    if let Some((says, factor)) = lacking("the loss", [e.rhat, e.ess[0], e.ess[1]]) {
        let times = factor.map_or(String::new(), |f| format!(", {f:.1} times the steps or so"));
        out.push(format!("not converged: {says}{times}"));
    }
    if let Some(s) = smaller
        .and_then(|t| t.estimate.as_ref())
        .filter(|s| !is_cold(s, tolerance))
        && !agree(e, s, tolerance)
    {
        out.push("the next smaller step gives another estimate".into());
    }
    if e.mcse > tolerance * e.lambda.abs() {
        out.push("the error bar is wide".into());
    }
    out
}

impl Calibration {
    /// As a map, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let trial = |t: &Trial| {
            let e = t.estimate.as_ref();
            json!({
                "step": t.step, "nbeta": t.nbeta, "against": t.against,
                "estimate": e.map(|e| e.lambda), "mcse": e.map(|e| e.mcse),
                "virial": e.map(|e| e.temperature), "rhat": e.map(|e| e.rhat), "ess": e.map(|e| e.ess[0].min(e.ess[1])),
            })
        };
        json!({
            "option": self.option,
            "nbetas_disagree": self.nbetas_disagree,
            "trials": self.trials.iter().map(trial).collect::<Vec<_>>(),
            "recommended": self.recommended.map(|i| trial(&self.trials[i])),
            "steadiest": self.steadiest.map(|i| trial(&self.trials[i])),
        })
    }
}

impl Calibration {
    /// A row per trial, and what to make of them.
    pub fn table(&self) -> Table {
        let mut out = Table::new([
            "nβ",
            self.option,
            "estimate",
            "virial",
            "R̂",
            "ESS",
            "remarks",
        ]);
        for (i, t) in self.trials.iter().enumerate() {
            let of =
                |text: &dyn Fn(&Found) -> String| t.estimate.as_ref().map_or(String::new(), text);
            out.push([
                format!("{:.4e}", t.nbeta),
                format!("{:.3e}", t.step),
                of(&|e| format!("{:.4} ± {:.4}", e.lambda, e.mcse)),
                of(&|e| format!("{:.3} ± {:.3}", e.temperature, e.temperature_mcse)),
                of(&|e| format!("{:.3}", e.rhat)),
                of(&|e| format!("{:.0}", e.ess[0].min(e.ess[1]))),
                match (self.recommended == Some(i), t.against.is_empty()) {
                    (true, _) => "← recommended".into(),
                    (_, true) => "on a plateau".into(),
                    _ => t.against.join("; "),
                },
            ]);
        }
        if self.nbetas_disagree {
            out.below.push("nothing is recommended: neighbouring nβ give different estimates, so that there is no one coefficient here; try other nβ or γ".into());
        } else if self.recommended.is_none() {
            out.below.push(
                "nothing is recommended: take more steps, or other step sizes, as the remarks say"
                    .into(),
            );
            if let Some(t) = self.steadiest.map(|i| &self.trials[i])
                && let Some(e) = &t.estimate
            {
                out.below.push(format!(
                    "the estimate changes least with the {} at {:.3e}: {:.4} ± {:.4}, provisionally",
                    self.option, t.step, e.lambda, e.mcse
                ));
            }
        }
        out
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Calibration: "Calibration",
    entries: to_json, "calibration.to_map() -> map", "`trials`, a map for each, and `recommended` and `steadiest`, each one of them (NaN if there is none).",
    table: table,
}

/// The verb `calibrate_llc`.
pub static CALIBRATE: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Calibration>> =
    Verb {
        name: "calibrate_llc",
        arguments: &["target", "sampler"],
        options: OPTIONS,
        doc: "Find the step size (and nβ) for a learning coefficient, without knowing the answer.\n\n\
         Every step size is tried at every nβ, and what speaks against it is said: failed chains, a virial that is hot (the step is too large) or cold (chains have not \
         relaxed), chains that have not converged, an estimate that the next smaller step does not confirm, a wide error bar. Recommended is what is on a plateau: nothing speaks against it, a neighbouring \
         step gives the same, and of several nβ a neighbouring one does too; there the one with the smallest error bar at the nβ nearest to n/ln n. Error bars of different nβ are not ranked: they are of different things. Where there is none, as of large singular models whose flat directions do not relax in any affordable number of steps, `steadiest` is the trial at which the estimate changes least \
         with the step size, which is what one would choose by eye: a provisional estimate; `to_map()` has all of it.",
        example: "calibrate_llc(target(potential::gaussian(#{ dim: 3, condition: 1, examples: 1000 })), sampler::sgld(#{ gradient: gradient::full() }), #{ start: parameters([1, 1, 1]), steps: 400 })",
        call: Call::Checked(|(target, sampler), o, session| {
            calibrate(&target, &sampler, o, session).map(Arc::new)
        }),
    };
