//! Learning coefficients along a training: an estimate at every checkpoint, in one job.
//!
//! The chains of a point start at its own checkpoint and are localised there, so that each point has a target of its own. Points step side by
//! side where there are more threads than chains. All of them are saved while they step: what is interrupted or killed goes on within its points.

pub(crate) mod found;
mod places;

use super::protocol::{BASELINE, Baseline, GAMMA, Point, Prepared};
use super::workers::side_by_side;
use super::{BETA, BURN_IN, CHAINS, EVERY, Estimate, RESTRICT, nbeta, restriction};
use crate::diagnostic::{self, Verdict};
use crate::engine::report::ACCEPTANCE_RATE;
use crate::error::{EveryChainFailed, Result};
use crate::model::naming::{RENAME, TRANSPOSE};
use crate::options::{Kind, Options, Range, Spec, Value as Given, option, optional};
use crate::sampler::ConfiguredSampler;
use crate::simulation::in_memory::{InMemory, Subject};
use crate::simulation::job::{Job, Record, Standing, described, drive};
use crate::simulation::plan::{self, Plan};
use crate::simulation::run::Failure;
use crate::simulation::session::{self, Session};
use crate::simulation::trained::Trained;
use crate::simulation::weights::KEY;
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint::{self, Tensors};
use crate::store::write_json;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::trigger::Trigger;
use crate::verb::{Call, Either, RESUME, Verb};
pub use found::{Curve, CurvePoint};
use places::{Place, Places};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What its checkpoints say that they are of.
const JOB: &str = "llc_curve";

/// Options of `llc_curve(checkpoints, target, sampler, #{…})`.
pub(crate) const OPTIONS: &[Spec] = &[
    CHAINS,
    option(
        "steps",
        Kind::Int(Range::Between(2.0, 1e12)),
        "5000",
        "Steps per chain at every point, burn-in included.",
    ),
    BURN_IN,
    EVERY,
    GAMMA,
    BETA,
    optional(
        "nbeta",
        Kind::Float(Range::Positive),
        "n·beta",
        "nβ, in place of `beta`.",
    ),
    BASELINE,
    RESTRICT,
    option(
        "chain",
        Kind::Int(Range::NonNegative),
        "0",
        "Which chain of a training of several.",
    ),
    optional(
        "at",
        Kind::Floats(Range::Any),
        "epochs of a training, steps in the names of files, else 0, 1, 2, …",
        "Where the points are along the curve, increasing.",
    ),
    RENAME,
    TRANSPOSE,
    KEY,
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed and the name of the curve",
        "Seed, from which every point has its own.",
    ),
    optional(
        "name",
        Kind::Text,
        "llc_curve-1, …",
        "Name of the curve and of its folder.",
    ),
    RESUME,
];

/// Estimate at all places.
fn curve(
    target: &Target,
    sampler: &Arc<ConfiguredSampler>,
    (mut places, axis): Places,
    o: &Options,
    session: &Session,
) -> Result<Curve> {
    if let Some(at) = o.floats("at") {
        anyhow::ensure!(
            at.len() == places.len() && at.is_sorted_by(|a, b| a < b),
            "{}: option 'at' has {} numbers, but must have one for each of the {} points, increasing",
            o.owner(),
            at.len(),
            places.len()
        );
        places.iter_mut().zip(at).for_each(|(p, at)| p.at = at);
    }
    let mut steps = o.int("steps")?;
    if session.quick {
        steps = steps.min((steps / 50).max(400));
    }
    let name = session.name_run("llc_curve", o.opt_text("name"))?;
    let master = || session::seed_of(session.seed, &name);
    let seed = o.opt_int("seed").unwrap_or_else(master);
    let mut hash = target.hashed();
    // All of them are read once, so that what is wrong with one is said before the first step.
    for place in &places {
        let w = place.parameters(target, o)?;
        w.iter().for_each(|x| hash.update(&x.to_le_bytes()));
    }
    let point = Point {
        nbeta: nbeta(o, target.likelihood_n())?,
        gamma: o.float("gamma")?,
        baseline: Baseline::from_options(o)?,
    };
    let chains = o.size("chains")?;
    // A device steps one point after the other.
    let workers = match session.device.1 {
        Some(_) => 1,
        None => (session.threads / chains).clamp(1, places.len()),
    };
    let mut given = o.describe();
    given.retain(|(k, _)| !["name", "steps", "nbeta", "beta", "gamma"].contains(&k.as_str()));
    let what = json!({
        "job": JOB, "given": given, "steps": steps, "nbeta": point.nbeta, "gamma": point.gamma, "axis": axis, "seed": seed, "quick": session.quick,
        "target": target.describe(), "sampler": sampler.name(), "options": sampler.options,
        "at": places.iter().map(|p| json!([p.label, p.at])).collect::<Vec<_>>(), "fingerprint": hash.finalize(),
    });
    let job = Tracing {
        points: places.iter().map(|_| None).collect(),
        going: (0..workers).map(|_| None).collect(),
        rules: Rules {
            places,
            target,
            sampler,
            o,
            session,
            point,
            steps,
            chains,
            seed,
            threads: (session.threads / workers).max(1),
        },
        name,
        what,
    };
    drive(job, session)
}

/// How every point is measured.
struct Rules<'a> {
    places: Vec<Place>,
    target: &'a Target,
    sampler: &'a Arc<ConfiguredSampler>,
    o: &'a Options,
    session: &'a Session,
    point: Point,
    steps: u64,
    chains: usize,
    seed: u64,
    /// Threads of a point.
    threads: usize,
}

/// A point whose chains step.
struct Going {
    index: usize,
    plan: Plan,
    prepared: Prepared,
    run: InMemory,
}

/// A curve that goes on.
struct Tracing<'a> {
    name: String,
    what: Value,
    rules: Rules<'a>,
    /// What is found so far, by place.
    points: Vec<Option<CurvePoint>>,
    /// What each worker is at.
    going: Vec<Option<Going>>,
}

impl Rules<'_> {
    fn subject<'a>(&'a self, plan: &'a Plan, prepared: &'a Prepared) -> Subject<'a> {
        let (target, sampler) = (&*prepared.target, &*prepared.sampler);
        (plan, target, sampler, self.session, self.threads)
    }

    fn seed_of(&self, index: usize) -> u64 {
        session::seed_of(self.seed, &format!("point {index}"))
    }

    /// Chains at a point, ready for their first step.
    fn begin(&self, index: usize) -> Result<Going> {
        let (o, w) = (self.o, self.places[index].parameters(self.target, self.o)?);
        let free = restriction(o, self.target)?;
        let prepared = Prepared::new(self.target, self.sampler, &w, self.point, free)?;
        let vectors = vec![prepared.start.clone()];
        let start = Some(Arc::new(Parameters { vectors }));
        let every = o.opt_int("every").unwrap_or(prepared.every());
        let seed = self.seed_of(index);
        let plan = Plan {
            name: format!("point {index}"),
            burn_in: plan::burn_in(o.owner(), o, self.steps)?,
            every: Trigger::Every(every.min(self.steps)),
            observables: prepared.observables()?,
            ..Plan::bare(JOB, (self.chains, start), self.steps, seed)
        };
        let run = InMemory::new(self.subject(&plan, &prepared))?;
        Ok(Going {
            index,
            plan,
            prepared,
            run,
        })
    }

    /// What a point has come to.
    fn found(&self, going: Going) -> Result<CurvePoint> {
        let Going {
            index,
            plan,
            prepared,
            run,
        } = going;
        let (place, run) = (&self.places[index], Arc::new(run.finish(&plan)));
        let loss = prepared.loss_at_start(self.session)?;
        let mut out = CurvePoint {
            label: place.label.clone(),
            at: place.at,
            loss,
            estimate: f64::NAN,
            mcse: f64::NAN,
            chains: vec![f64::NAN; self.chains],
            rhat: f64::NAN,
            ess: f64::NAN,
            virial: f64::NAN,
            virial_mcse: f64::NAN,
            acceptance: f64::NAN,
            failed: Vec::new(),
            verdict: Verdict::Wrong,
            reasons: Vec::new(),
            seed: self.seed_of(index),
            seconds: run.seconds,
        };
        if run.failures.iter().all(Option::is_some) {
            let first = run.failures.iter().flatten().next();
            let first = first.map_or(String::new(), |f| {
                format!(
                    "every chain failed, the first one at step {}: {}",
                    f.step, f.reason
                )
            });
            out.reasons.push(first);
            return Ok(out);
        }
        let rates = run.draws(ACCEPTANCE_RATE.0, 0, 0, true);
        let e: Estimate = prepared.estimate(run, self.session)?;
        let judged = e.judged();
        Ok(CurvePoint {
            estimate: e.lambda,
            mcse: e.mcse,
            rhat: e.rhat,
            ess: e.ess.min(e.ess_bulk).min(e.ess_tail),
            virial: e.virial.temperature,
            virial_mcse: e.virial.mcse,
            acceptance: rates.map_or(f64::NAN, |rates| diagnostic::mean(&rates)),
            chains: e.chains,
            failed: e.failed,
            verdict: judged.verdict,
            reasons: judged.reasons,
            ..out
        })
    }
}

impl Tracing<'_> {
    /// Steps of all chains of a point.
    fn per_point(&self) -> u64 {
        self.rules.steps * self.rules.chains as u64
    }

    /// The points that nobody has begun.
    fn todo(&self) -> VecDeque<usize> {
        let at = |i: &usize| self.going.iter().flatten().any(|g| g.index == *i);
        let all = 0..self.points.len();
        all.filter(|i| self.points[*i].is_none() && !at(i))
            .collect()
    }
}

impl Kept for Tracing<'_> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        let mut going = self.going.iter_mut().flatten();
        going.try_for_each(|g| archive.within(&format!("{}.", g.index), &mut g.run))
    }
}

impl Job for Tracing<'_> {
    type Output = Curve;

    fn name(&self) -> &str {
        &self.name
    }

    fn whose(&self) -> &'static str {
        "this curve was"
    }

    fn fingerprint(&self) -> Value {
        self.what.clone()
    }

    fn size(&self) -> (&'static str, u64) {
        let points = self.points.len() as u64;
        ("chain-steps", points * self.per_point())
    }

    fn standing(&self) -> Standing {
        let done = self.points.iter().flatten().count();
        let going = self.going.iter().flatten();
        let failed = |g: &Going| g.run.said().0.iter().flatten().count();
        let last = self.points.iter().flatten().last();
        Standing {
            done: done as u64 * self.per_point()
                + going.clone().map(|g| g.run.steps()).sum::<u64>(),
            failed: going.map(failed).sum(),
            more: done < self.points.len(),
            watched: last.map(|p| ("λ̂".to_string(), p.estimate)),
            said: Some(format!("point {} of {}", done + 1, self.points.len())),
            ..Standing::default()
        }
    }

    fn place(&self) -> String {
        let done = self.points.iter().flatten().count();
        format!("with {done} of {} points finished", self.points.len())
    }

    fn advance(&mut self, mut until: Instant) -> Result<()> {
        if self.rules.session.device.1.is_some() {
            // A device gets the data anew every time.
            until = until.max(Instant::now() + Duration::from_secs(5));
        }
        let (rules, todo) = (&self.rules, Mutex::new(self.todo()));
        let points = Mutex::new(&mut self.points);
        let interrupted = || rules.session.interrupt.interrupted();
        let work = |slot: &mut Option<Going>| -> Result<()> {
            while !interrupted() && Instant::now() < until {
                if slot.is_none() {
                    let next = todo.lock().unwrap_or_else(|e| e.into_inner()).pop_front();
                    let Some(index) = next else {
                        return Ok(());
                    };
                    *slot = Some(rules.begin(index)?);
                }
                let Some(mut going) = slot.take() else {
                    return Ok(());
                };
                let subject = rules.subject(&going.plan, &going.prepared);
                if going.run.advance(subject, Some(until))? {
                    *slot = Some(going);
                    continue;
                }
                let index = going.index;
                let found = rules.found(going)?;
                points.lock().unwrap_or_else(|e| e.into_inner())[index] = Some(found);
            }
            Ok(())
        };
        side_by_side(&mut self.going, work)
    }

    fn describe(&self, _: bool) -> Result<Map<String, Value>> {
        let going = |g: &Going| json!([g.index, g.run.said()]);
        let going: Vec<_> = self.going.iter().flatten().map(going).collect();
        Ok(Map::from_iter([
            ("what".to_string(), self.fingerprint()),
            ("points".to_string(), serde_json::to_value(&self.points)?),
            ("going".to_string(), going.into()),
        ]))
    }

    fn restore(&mut self, tensors: Tensors, meta: &Value, _: &Path) -> Result<()> {
        self.points = Deserialize::deserialize(&meta["points"])?;
        type Said = (usize, (Vec<Option<Failure>>, f64));
        let going = Vec::<Said>::deserialize(&meta["going"])?;
        // There may be fewer threads than before.
        let slots = self.going.len().max(going.len());
        self.going.resize_with(slots, || None);
        for (slot, (index, said)) in self.going.iter_mut().zip(going) {
            let mut begun = self.rules.begin(index)?;
            begun.run.take(said);
            *slot = Some(begun);
        }
        Archive::restore(self, tensors)
    }

    fn save(&mut self, folder: &Path, record: &Record, session: &Session) -> Result<()> {
        let meta = described(self.describe(record.done)?, record);
        match session.leads() {
            true => {
                let archive = Archive::of(self)?;
                checkpoint::save(&folder.join("checkpoint"), &meta, &archive.tensors())
            }
            false => Ok(()),
        }
    }

    fn finish(self, folder: &Path, record: Record, session: &Session) -> Result<Curve> {
        let meta = described(self.describe(record.done)?, &record);
        let curve = Curve::of(&meta)?;
        let curve = curve.ok_or_else(|| anyhow::anyhow!("'{}' is no curve", self.name))?;
        if session.leads() {
            write_json(&folder.join("llc_curve.json"), &curve.to_json())?;
        }
        let failed = |p: &CurvePoint| p.estimate.is_nan();
        match curve.points.first() {
            Some(first) if curve.points.iter().all(failed) => Err(EveryChainFailed {
                run: self.name,
                reason: first.reasons.join("; "),
                what: "chain",
            }
            .into()),
            _ => Ok(curve),
        }
    }
}

/// What a curve is of: a training, or anything that has points.
pub type Of = Either<
    (Arc<Trained>, Arc<Target>, Arc<ConfiguredSampler>),
    (Given, Arc<Target>, Arc<ConfiguredSampler>),
>;

/// The verb `llc_curve`.
pub static LLC_CURVE: Verb<Session, Of, Arc<Curve>> = Verb {
    name: "llc_curve",
    arguments: &["checkpoints", "target", "sampler"],
    options: OPTIONS,
    doc: "Estimate the local learning coefficient at every checkpoint of a training: λ̂ with its error bar against epoch or step.\n\n\
         `checkpoints` is a training that kept some (`train(…, #{ checkpoints: [0, 1, 3, 10] })`), an array of parameters, or the path of a folder of files of weights (.safetensors, .pt, .pth, .npz, or a folder with one \
         such file for each), as PyTorch users have them: they are read as by `model.load`, and their steps are in their names (\"step-1000\", \"checkpoint-1000\"). At every point it is the estimate of `llc`, with chains that start there and are \
         localised there. All points are one job with one folder, one checkpoint and one progress: it is interrupted and continued within a point. Points step side by side where there are more threads than chains.\n\n\
         `print(curve)` is a table with R̂, ESS, thermometer and verdict of every point, `plot::llc_curve(curve)` draws λ̂ and the loss. Where training has not ended w0 is no minimum, and λ̂ can be negative: the verdict says so. \
         Fields, arrays in order of the points: `at`, `estimate`, `mcse`, `loss`, `rhat`, `ess`, `virial`; `verdict` (the worst) and `reasons`; `to_map()` has all numbers, with the seed by which `llc` gives the same estimate.",
    example: "let t = target(model::mlp(#{ layers: [64, 4, 10] }), dataset::digits(#{ per_class: 10 }));\n\
              let trained = train(t, optimizer::adam(#{ epochs: 4, batch: 20 }), #{ checkpoints: [1, 4] });\n\
              llc_curve(trained, t, sampler::sgld(#{ step: 1e-4, batch: 20 }), #{ gamma: 100, steps: 100, chains: 2 })",
    call: Call::Checked(|of, o, session| {
        let (target, sampler, places) = match of {
            Either::First((trained, target, sampler)) => {
                (target, sampler, places::of_training(&trained, o)?)
            }
            Either::Second((points, target, sampler)) => {
                (target, sampler, places::of_value(&points, o)?)
            }
        };
        curve(&target, &sampler, places, o, session).map(Arc::new)
    }),
};
