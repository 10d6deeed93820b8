//! Calibration without a known answer: the sweep over step sizes and nβ that is otherwise judged by eye, with the signs of a step that is
//! too large (a hot virial, an estimate that halving changes, failed chains) or too small (a cold virial, chains that disagree) read off
//! at each point. What is looked for is a plateau: estimates that neighbouring steps, and neighbouring nβ, confirm.

use super::calibration::Calibration;
use super::grid::{self, PILOT, Search, is_stable, search};
use super::plateau::{across, against, plateau, steadiest, unconfirmed};
use super::protocol::{BASELINE, Baseline, Point, Prepared};
use super::trial::{Found, Trial};
use super::{nbeta, one_point};
use crate::error::{Interrupted, Result};
use crate::options::{Kind, Options, Range, Spec, option, optional, required};
use crate::sampler::ConfiguredSampler;
use crate::simulation::job::{Job, Record, Standing, drive};
use crate::simulation::plan::{self, Plan};
use crate::simulation::run_in_memory;
use crate::simulation::session::{self, Session};
use crate::store::archive::{Archive, Kept};
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use crate::verb::{Call, RESUME, Verb};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Options of `calibrate_llc(target, sampler, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    required("start", Kind::Object("Parameters"), "w0, as in `llc`."),
    optional(
        "step_sizes",
        Kind::Floats(Range::Positive),
        "7, by halving the largest stable one",
        "Step sizes to try, in place of the sampler's own (for `pseudo_langevin`, its ratio). If they are not given, short runs go from the sampler's own step, by factors of four, to \
         the largest at which chains survive and are less than twice too hot; samplers that accept or reject are tried around their own step.",
    ),
    optional(
        "nbeta",
        Kind::Float(Range::Positive),
        "n/ln n",
        "The nβ at which a step is wanted.",
    ),
    optional(
        "nbetas",
        Kind::Floats(Range::Positive),
        "`nbeta`, and as many decades around it as `decades` says",
        "Values of nβ to try.",
    ),
    option(
        "decades",
        Kind::Int(Range::Between(0.0, 4.0)),
        "0",
        "Decades of nβ to try below and above `nbeta`, where `nbetas` is not given.",
    ),
    optional(
        "gammas",
        Kind::Floats(Range::NonNegative),
        "`gamma` if it is given, else 1, 10, … to N/|w0|², at most 1000",
        "Values of γ to try. The default goes from 1, the usual one, by decades to where 1/√γ is the size of a weight: a weaker γ lets flat directions go further than weights are large.",
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
    optional(
        "gamma",
        Kind::Float(Range::NonNegative),
        "several are tried",
        "The only γ to try.",
    ),
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
    RESUME,
];

/// Try all step sizes at all nβ and γ.
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
    let usual = nbeta(o, target.likelihood_n());
    let mut nbetas = match o.floats("nbetas") {
        Some(list) => list,
        None => {
            let (usual, decades) = (
                *usual.as_ref().map_err(|e| anyhow::anyhow!("{e}"))?,
                o.int("decades")? as i32,
            );
            (-decades..=decades)
                .map(|k| usual * 10f64.powi(k))
                .collect()
        }
    };
    nbetas.sort_by(f64::total_cmp);
    let mut gammas = match (o.floats("gammas"), o.opt_float("gamma")) {
        (Some(_), Some(_)) => anyhow::bail!(
            "{}: options 'gamma' and 'gammas' are both given; give only one",
            o.owner()
        ),
        (Some(list), _) => list,
        (None, Some(gamma)) => vec![gamma],
        (None, None) => grid::gammas(&start),
    };
    gammas.sort_by(f64::total_cmp);
    let steps = o.floats("step_sizes").map(|mut steps| {
        steps.sort_by(f64::total_cmp);
        steps
    });
    anyhow::ensure!(
        !nbetas.is_empty() && !gammas.is_empty() && steps.as_ref().is_none_or(|s| !s.is_empty()),
        "{}: there is nothing to try: options 'step_sizes', 'nbetas' and 'gammas' need at least one number each",
        o.owner()
    );
    let mut hash = target.hashed();
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
        usual: usual.unwrap_or(nbetas[0]),
        nbetas,
        gammas,
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
    /// The nβ at which a step is wanted.
    usual: f64,
    nbetas: Vec<f64>,
    gammas: Vec<f64>,
    /// Increasing; none as long as they are looked for.
    steps: Option<Vec<f64>>,
    /// Step sizes that were run to look for them, and whether they are stable.
    pilots: Vec<(f64, bool)>,
    /// Trials so far: at all step sizes for one nβ after the other, and all nβ for one γ after the other.
    trials: Vec<Trial>,
}

impl Calibrating<'_> {
    /// Run at a step size, for so many steps at most.
    fn trial(&self, step: f64, (nbeta, gamma): (f64, f64), most: u64) -> Result<Trial> {
        let changed = self.sampler.with(self.option, step)?;
        let changed = changed.unwrap_or_else(|| self.sampler.clone());
        let point = Point {
            nbeta,
            gamma,
            baseline: Baseline::from_options(self.o)?,
        };
        let prepared = Prepared::new(self.target, &changed, &self.start, point, None)?;
        let (session, threads) = (self.session, self.session.threads);
        let plan = plan(self.o, &prepared, session, most)?;
        let run = run_in_memory((&plan, &prepared.target, &prepared.sampler, session, threads))?;
        let found = match run.failures.iter().all(Option::is_some) {
            true => None,
            false => Some(prepared.estimate(Arc::new(run), session)?),
        };
        Ok(Trial {
            gamma,
            step,
            nbeta,
            estimate: found.as_ref().map(Found::of),
            against: Vec::new(),
        })
    }

    /// Pairs of nβ and γ.
    fn places(&self) -> usize {
        self.nbetas.len() * self.gammas.len()
    }

    /// The next run that the search for step sizes needs.
    fn pilot(&mut self, step: f64) -> Result<()> {
        // Where the potential is steepest.
        let last = |all: &[f64]| all.last().copied().unwrap_or(f64::NAN);
        let steepest = (last(&self.nbetas), last(&self.gammas));
        let stable = match self.trial(step, steepest, PILOT) {
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
        ("estimates", (steps * self.places()) as u64)
    }

    fn standing(&self) -> Standing {
        let (done, steps) = (self.trials.len(), self.steps.as_ref().map(Vec::len));
        Standing {
            done: done as u64,
            more: steps.is_none_or(|steps| done < steps * self.places()),
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
                let (row, column) = (i / self.nbetas.len(), i % self.nbetas.len());
                let place = (self.nbetas[column], self.gammas[row]);
                let trial = self.trial(steps[k], place, u64::MAX);
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
        let of_gamma = steps * self.nbetas.len();
        let at = |row: usize| {
            let here = row * of_gamma..(row + 1) * of_gamma;
            plateau((&trials, here), (&self.nbetas, self.usual), tolerance)
        };
        let (each, disagree): (Vec<_>, Vec<_>) = (0..self.gammas.len()).map(at).unzip();
        let (recommended, gammas_disagree) = across(&trials, &each, tolerance);
        Ok(Calibration {
            steadiest: steadiest(&trials, tolerance),
            option: self.option,
            nbetas_disagree: recommended.is_none() && disagree.contains(&true),
            gammas_disagree,
            trials,
            recommended,
        })
    }
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

/// The verb `calibrate_llc`.
pub static CALIBRATE: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Calibration>> =
    Verb {
        name: "calibrate_llc",
        arguments: &["target", "sampler"],
        options: OPTIONS,
        doc: "Find the step size (and nβ and γ) for a learning coefficient, without knowing the answer.\n\n\
         Every step size is tried at every nβ and γ, and objections to it are named: failed chains, a virial that is hot (the step is too large) or cold (chains have not \
         relaxed), chains that have not converged, an estimate that the next smaller step does not confirm, a wide error bar. Recommended is a trial on a plateau: there is no objection to it, a neighbouring \
         step gives the same, and of several nβ a neighbouring one does too; among these, the one with the smallest error bar at the nβ nearest to `nbeta`. Of several γ it is the weakest whose estimate the next stronger one confirms, or the only one at which a trial qualifies. Error bars of different nβ are not ranked: they belong to different quantities. Where no trial qualifies, as for large singular models whose flat directions do not relax in any affordable number of steps, `steadiest` is the trial at which the estimate changes least \
         with the step size, which is what one would choose by eye: a provisional estimate; `to_map()` has all of it. `plot::llc_calibration(calibration)` draws λ̂ over step size and γ as a heat map.",
        example: "calibrate_llc(target(potential::gaussian(#{ dim: 3, condition: 1, examples: 1000 })), sampler::sgld(#{ gradient: gradient::full() }), #{ start: parameters([1, 1, 1]), steps: 400 })",
        call: Call::Checked(|(target, sampler), o, session| {
            calibrate(&target, &sampler, o, session).map(Arc::new)
        }),
    };
