//! Validation of pseudo-Langevin: is the minibatch noise what its equations take it for? (Zambon 2026, §III.1, Fig. 3a–c)
//!
//! Along short trajectories the integration is stopped now and then: the full gradient and many minibatch gradients there give the
//! scaled noise `R_i = (∇U_B - ∇U)_i / sqrt(V_i)` with the V that the sampler uses (eq. 22). It should be normal, uncorrelated once the
//! white noise is added, and without memory.

mod noise;

use self::noise::{Findings, Look, ratios};
use super::Plan;
use super::job::{Job, Record, Standing, drive};
use super::session::{self, Interrupt, Session};
use super::state::{Lent, State};
use crate::engine::Block;
use crate::engine::Chains;
use crate::engine::Vector::Gradient;
use crate::engine::report::Slots;
use crate::error::Result;
use crate::memory;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::{Purpose, Stream};
use crate::sampler::ConfiguredSampler;
use crate::sampler::pseudo_langevin::RATIO_OF_NOISE;
use crate::store::archive::{Archive, Kept};
use crate::target::{Target, Workspace};
use crate::verb::{Call, RESUME, Verb};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Options of `validate(target, sampler, #{…})`.
pub const OPTIONS: &[Spec] = &[
    option(
        "temperature",
        Kind::Float(Range::Positive),
        "1",
        "Temperature T.",
    ),
    optional(
        "start",
        Kind::Object("Parameters"),
        "drawn by the model",
        "Where chains start; preferably in equilibrium.",
    ),
    option(
        "chains",
        Kind::Int(Range::Between(1.0, 1000.0)),
        "3",
        "Independent trajectories.",
    ),
    option(
        "stops",
        Kind::Int(Range::Between(1.0, 1000.0)),
        "6",
        "How often each is stopped to look at the noise.",
    ),
    option(
        "steps",
        Kind::Int(Range::AtLeast(1.0)),
        "1000",
        "Steps between two stops.",
    ),
    option(
        "draws",
        Kind::Int(Range::Between(20.0, 10_000.0)),
        "250",
        "Minibatch gradients at each stop.",
    ),
    option(
        "components",
        Kind::Int(Range::Between(2.0, 1e6)),
        "20_000",
        "Parameters whose noise is tested, at most; evenly spaced.",
    ),
    option(
        "correlated",
        Kind::Int(Range::Between(2.0, 1000.0)),
        "200",
        "Parameters whose correlations are computed, at most.",
    ),
    option(
        "lags",
        Kind::Int(Range::Between(1.0, 1000.0)),
        "10",
        "Largest lag of the autocorrelation, in steps.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed",
        "Seed of the trajectories.",
    ),
    optional(
        "name",
        Kind::Text,
        "validate-1, …",
        "Name, and that of the folder of its checkpoint.",
    ),
    RESUME,
];

/// Sub-streams of `Purpose::Probe` from here on: the sampler's own measurement of its noise has the first.
const FIRST: u16 = 16;

/// The parameters that are looked at: evenly spaced.
fn spaced(n: usize, most: usize) -> Vec<usize> {
    let count = n.min(most);
    (0..count).map(|i| i * n / count).collect()
}

/// Validate, and say what was found.
pub fn validate(
    target: &Target,
    sampler: &ConfiguredSampler,
    o: &Options,
    session: &Session,
) -> Result<Value> {
    let which = |name: &str| sampler.vectors.iter().position(|v| *v == name);
    let (Some(variance), Some(mass)) = (which("variance"), which("mass")) else {
        anyhow::bail!(
            "validate: sampler::{} does not estimate the variance of its gradient; sampler::pseudo_langevin does",
            sampler.name()
        )
    };
    sampler.check(target)?;
    session.computes_here("validate");
    let (stops, interval) = (o.size("stops")?, o.int("steps")?);
    let (stops, interval) = match session.quick {
        true => (stops.min(2), interval.min(50)),
        false => (stops, interval),
    };
    let seed = o
        .opt_int("seed")
        .unwrap_or_else(|| session::seed_of(session.seed, "validate"));
    let plan = Plan::unrecorded("validate", o, interval * stops as u64, seed)?;
    let size = Size {
        draws: o.size("draws")?,
        components: o.size("components")?,
        correlated: o.size("correlated")?,
        lags: o.size("lags")?,
    };
    size.check(target.dim())?;
    let starts = plan.starts(target)?;
    let mut state = State::new((0..starts.count).collect(), target, sampler, &[]);
    state.start(&starts, target);
    let mut hash = target.hashed();
    let points = state.params.iter().map(|x| x.to_le_bytes());
    points.for_each(|x| hash.update(&x));
    let what = json!({
        "job": "validation", "given": o.describe(), "fingerprint": hash.finalize(), "target": target.describe(),
        "sampler": sampler.name(), "options": sampler.options, "seed": seed, "stops": stops, "steps": interval,
    });
    let job = Validation {
        name: session.name_run("validate", o.opt_text("name"))?,
        what,
        plan,
        temperature: o.float("temperature")?,
        stops,
        interval,
        visitor: Visitor {
            target,
            sampler,
            work: Workspace::new(session.threads),
            slots: sampler.slots(target),
            variance,
            mass,
            size,
            seed,
            findings: Findings::new(size.lags),
        },
        state,
        chain: 0,
        interrupt: session.interrupt.clone(),
    };
    drive(job, session)
}

/// A validation that goes on.
struct Validation<'a> {
    name: String,
    what: Value,
    plan: Plan,
    temperature: f64,
    /// Stops per chain.
    stops: usize,
    /// Steps between two of them.
    interval: u64,
    visitor: Visitor<'a>,
    state: State,
    /// The chain that is followed now; those before it have made all their stops.
    chain: u64,
    interrupt: Interrupt,
}

impl Kept for Validation<'_> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        archive.values("chain", [&mut self.chain])?;
        self.visitor.findings.keep(archive)?;
        self.state.keep(archive)
    }
}

impl Job for Validation<'_> {
    type Output = Value;

    fn name(&self) -> &str {
        &self.name
    }

    fn whose(&self) -> &'static str {
        "this validation was"
    }

    fn fingerprint(&self) -> Value {
        self.what.clone()
    }

    fn size(&self) -> (&'static str, u64) {
        ("checks", (self.state.chains * self.stops) as u64)
    }

    fn standing(&self) -> Standing {
        let done = self.visitor.findings.stops();
        Standing {
            done: done as u64,
            more: done < self.state.chains * self.stops,
            ..Standing::default()
        }
    }

    fn place(&self) -> String {
        let all = self.state.chains * self.stops;
        format!("after {} of {all} checks", self.visitor.findings.stops())
    }

    fn advance(&mut self, until: Instant) -> Result<()> {
        let at = self.chain as usize;
        let mut chains = self.state.lend(&self.plan, None, false);
        let Some(Lent { block, logs }) = chains.get_mut(at) else {
            return Ok(());
        };
        let (visitor, log) = (&mut self.visitor, &mut logs[0]);
        block.members[0].temperature = self.temperature;
        // Steps of a chain that its stops have not made: a stop steps on for as many steps as there are lags, and one.
        let own = (visitor.findings.stops() - at * self.stops) as u64;
        let pause = visitor.size.lags as u64 + 1;
        let next = (own + 1) * self.interval + own * pause;
        if block.step == 0 {
            let sampler = visitor.sampler;
            visitor.sample(block, |c| sampler.init(c))?;
        }
        while block.step < next {
            visitor.step(block)?;
            *log.steps = block.step;
            if Instant::now() >= until || self.interrupt.interrupted() {
                return Ok(());
            }
        }
        visitor.stop(block)?;
        *log.steps = block.step;
        if own + 1 == self.stops as u64 {
            self.chain += 1;
        }
        Ok(())
    }

    fn finish(self, _: &Path, _: Record, _: &Session) -> Result<Value> {
        Ok(self.visitor.findings.report(self.visitor.size.draws))
    }
}

/// How much is looked at.
#[derive(Clone, Copy)]
struct Size {
    draws: usize,
    components: usize,
    correlated: usize,
    lags: usize,
}

impl Size {
    /// Whether it fits into memory.
    fn check(&self, dim: usize) -> Result<()> {
        let (tests, others) = (self.components.min(dim), self.correlated.min(dim));
        let floats = self.draws * (tests + 6 * others) + 2 * (self.lags + 1) * tests;
        memory::check(4 * floats as u128, "the noise of a validation")
    }
}

/// Goes along with chains, and stops to look at their noise.
struct Visitor<'a> {
    target: &'a Target,
    sampler: &'a ConfiguredSampler,
    work: Workspace,
    slots: Slots,
    /// Which of the sampler's vectors hold V and M.
    variance: usize,
    mass: usize,
    size: Size,
    seed: u64,
    findings: Findings,
}

impl Visitor<'_> {
    /// Let the sampler do something with a block of one chain, whose sums are then what it has reported.
    fn sample(
        &mut self,
        chain: &mut Block,
        f: impl FnOnce(&mut Chains) -> Result<()>,
    ) -> Result<()> {
        chain.rows[0].sums.fill(0.0);
        let work = std::slice::from_mut(&mut self.work);
        chain.work(self.target, work, (&self.slots, true), f)?;
        match &chain.members[0].failure {
            Some(reason) => anyhow::bail!("validate: a chain failed: {reason}"),
            None => Ok(()),
        }
    }

    fn step(&mut self, chain: &mut Block) -> Result<()> {
        let sampler = self.sampler;
        self.sample(chain, |c| sampler.step(c))?;
        anyhow::ensure!(
            chain.rows[0].broken.is_none(),
            "validate: a chain met a number that is not finite"
        );
        chain.step += 1;
        Ok(())
    }

    /// Look at the noise where the chain is, and along its next steps.
    fn stop(&mut self, chain: &mut Block) -> Result<()> {
        let (sampler, draws) = (self.sampler, self.size.draws);
        let estimator = sampler.estimator();
        // The sampler's own V and M at this moment.
        let row = &chain.rows[0];
        let v: Vec<f32> = row.vectors[self.variance].to_vec();
        let ratio_mean = self
            .slots
            .find(RATIO_OF_NOISE)
            .map_or(f64::NAN, |at| row.sums[at]);
        let ratios = ratios(&v, row.vectors[self.mass], ratio_mean);
        // Weights that see no gradient have no noise to be tested.
        let live: Vec<usize> = (0..v.len()).filter(|i| v[*i] > 0.0).collect();
        let of_live = |most| spaced(live.len(), most).into_iter().map(|k| live[k]);
        let tested: Vec<usize> = of_live(self.size.components).collect();
        let correlated: Vec<usize> = of_live(self.size.correlated).collect();
        anyhow::ensure!(
            correlated.len() > 1,
            "validate: the minibatch gradient has noise in {} parameters only",
            live.len()
        );
        let scaled = |one: &[f32], exact: &[f32], i: usize| {
            f64::from(one[i] - exact[i]) / f64::from(v[i]).sqrt()
        };
        let mut rows = vec![0f32; draws * tested.len()];
        let mut side = vec![0f64; draws * correlated.len()];
        self.sample(chain, |c| {
            let exact = gradient(c, |c| c.engine.gradient())?;
            for d in 0..draws {
                let sub = FIRST + d as u16;
                let one = gradient(c, |c| estimator.estimate(c, Purpose::Probe, sub))?;
                for (k, i) in tested.iter().enumerate() {
                    rows[k * draws + d] = scaled(&one, &exact, *i) as f32;
                }
                for (k, i) in correlated.iter().enumerate() {
                    side[d * correlated.len() + k] = scaled(&one, &exact, *i);
                }
            }
            Ok(())
        })?;
        self.findings.look(Look {
            step: chain.step,
            rows: &rows,
            side: &side,
            draws,
            ratios: correlated.iter().map(|i| ratios[*i]).collect(),
            all: ratios,
            white: Stream::new(
                self.seed,
                Purpose::Probe,
                chain.members[0].index,
                chain.step,
            )
            .sub_stream(1 << 15),
        });
        // The very minibatches that the sampler takes, for as many steps as there are lags.
        for _ in 0..=self.size.lags {
            let mut noise = Vec::new();
            self.sample(chain, |c| {
                let exact = gradient(c, |c| c.engine.gradient())?;
                let one = gradient(c, |c| estimator.estimate(c, Purpose::Minibatch, 0))?;
                noise = tested.iter().map(|i| scaled(&one, &exact, *i)).collect();
                Ok(())
            })?;
            self.findings.autocorrelation.add(noise);
            self.step(chain)?;
        }
        self.findings.autocorrelation.end();
        Ok(())
    }
}

/// A gradient as it comes out.
fn gradient(c: &mut Chains, f: impl FnOnce(&mut Chains) -> Result<()>) -> Result<Vec<f32>> {
    f(c)?;
    let mut out = vec![0f32; c.dim()];
    c.engine.download(Gradient, &mut out)?;
    Ok(out)
}

/// The verb `validate`.
pub static VALIDATE: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Value> = Verb {
    name: "validate",
    arguments: &["target", "sampler"],
    options: OPTIONS,
    doc: "Test the assumptions of pseudo-Langevin along short trajectories (Zambon et al. 2026, §III.1 and Fig. 3a to c).\n\n\
         `ks_fraction`: of Kolmogorov–Smirnov tests of the scaled minibatch noise of single parameters against N(0,1), those with p > 0.05 (0.95 if it \
         is normal with the V in use; the paper has 0.946). `noise`: its distribution, `x` and `density`, and `by_stop`. `correlation`: distributions over pairs of parameters, `rms` and \
         `largest_eigenvalue` of the minibatch noise, of white noise and of both in their proportion in the heat bath (eq. 24), which should look like white noise. \
         `autocorrelation` of the noise in time, which should vanish from lag 1 on. `ratio`: distribution of 𝒯. Compare averages with those of \
         hybrid Monte Carlo by `compare(reference, run)`.",
    example: "validate(target(potential::gaussian(#{ dim: 20, examples: 500, noise: 2.0 })), sampler::pseudo_langevin(#{ batch: 50 }), #{ stops: 1, steps: 5, draws: 40 })",
    call: Call::Checked(|(target, sampler), o, session| validate(&target, &sampler, o, session)),
};
