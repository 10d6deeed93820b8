//! Validation of pseudo-Langevin: is the minibatch noise what its equations take it for? (Zambon 2026, §III.1, Fig. 3a–c)
//!
//! Along short trajectories the integration is stopped now and then: the full gradient and many minibatch gradients there give the
//! scaled noise `R_i = (∇U_B - ∇U)_i / sqrt(V_i)` with the V that the sampler uses (eq. 22). It should be normal, uncorrelated once the
//! white noise is added, and without memory.

mod noise;

use self::noise::{Findings, Look, ratios};
use super::Plan;
use super::progress::Progress;
use super::session::{self, Session};
use super::state::State;
use crate::engine::Chains;
use crate::engine::Vector::Gradient;
use crate::engine::host::Chain;
use crate::error::{Interrupted, Result};
use crate::memory;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::{Purpose, Stream};
use crate::sampler::Configured;
use crate::target::{Target, Workspace};
use crate::verb::{Call, Verb};
use serde_json::Value;
use std::sync::Arc;

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
        "Where chains start; best where they are in equilibrium.",
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
        "Times at which each is stopped to look at the noise.",
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
    sampler: &Configured,
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
    let mut visitor = Visitor {
        target,
        sampler,
        work: Workspace::new(session.threads),
        info: vec![0.0; sampler.slots(target)],
        variance,
        mass,
        size,
        seed,
        findings: Findings::new(size.lags),
    };
    let starts = plan.starts(target)?;
    let mut state = State::new((0..starts.count).collect(), target, sampler, &[]);
    state.start(&starts, target);
    let total = (plan.chains * stops) as u64;
    let progress = Progress::new(session, "validate", "checks", total, 0);
    for slot in &mut state.slots(&plan, None, &(0..0)) {
        let chain = &mut slot.chain;
        chain.temperature = o.float("temperature")?;
        visitor.lend(chain, |c| sampler.init(c))?;
        for _ in 0..stops {
            for _ in 0..interval {
                visitor.step(chain)?;
            }
            visitor.stop(chain)?;
            progress.set(visitor.findings.stops() as u64, 0);
        }
    }
    progress.finish();
    Ok(visitor.findings.report(size.draws))
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
    sampler: &'a Configured,
    work: Workspace,
    info: Vec<f64>,
    /// Which of the sampler's vectors hold V and M.
    variance: usize,
    mass: usize,
    size: Size,
    seed: u64,
    findings: Findings,
}

impl Visitor<'_> {
    fn lend(&mut self, chain: &mut Chain, f: impl FnOnce(&mut Chains) -> Result<()>) -> Result<()> {
        match chain.lend(self.target, &mut self.work, &mut self.info, f)? {
            Some(reason) => anyhow::bail!("validate: a chain failed: {reason}"),
            None => Ok(()),
        }
    }

    fn step(&mut self, chain: &mut Chain) -> Result<()> {
        if session::interrupted() {
            let what = "a validation, of which nothing is kept".into();
            return Err(Interrupted { what }.into());
        }
        let sampler = self.sampler;
        self.lend(chain, |c| sampler.step(c))?;
        // The virial comes first.
        anyhow::ensure!(
            self.info.first().is_some_and(|virial| virial.is_finite()),
            "validate: a chain met a number that is not finite"
        );
        chain.step += 1;
        Ok(())
    }

    /// Look at the noise where the chain is, and along its next steps.
    fn stop(&mut self, chain: &mut Chain) -> Result<()> {
        let (sampler, draws) = (self.sampler, self.size.draws);
        let estimator = sampler.estimator();
        // The sampler's own V and M at this moment.
        let v: Vec<f32> = chain.vectors[self.variance].to_vec();
        let names = &sampler.info;
        let ratio_mean = names.iter().position(|n| *n == "ratio_mean").unwrap_or(0);
        let ratios = ratios(&v, chain.vectors[self.mass], self.info[ratio_mean]);
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
        self.lend(chain, |c| {
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
            white: Stream::new(self.seed, Purpose::Probe, chain.index, chain.step)
                .sub_stream(1 << 15),
        });
        // The very minibatches that the sampler takes, for as many steps as there are lags.
        for _ in 0..=self.size.lags {
            let mut noise = Vec::new();
            self.lend(chain, |c| {
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
pub static VALIDATE: Verb<Session, (Arc<Target>, Arc<Configured>), Value> = Verb {
    name: "validate",
    arguments: &["target", "sampler"],
    options: OPTIONS,
    doc: "Test what pseudo-Langevin takes for granted, along short trajectories (Zambon et al. 2026, §III.1 and Fig. 3a to c).\n\n\
         `ks_fraction`: of Kolmogorov–Smirnov tests of the scaled minibatch noise of single parameters against N(0,1), those with p > 0.05 (0.95 if it \
         is normal with the V in use; the paper has 0.946). `noise`: its distribution, `x` and `density`, and `by_stop`. `correlation`: distributions over pairs of parameters, `rms` and \
         `largest_eigenvalue` of the minibatch noise, of white noise and of both in their proportion in the heat bath (eq. 24), which should look like white noise. \
         `autocorrelation` of the noise in time, which should vanish from lag 1 on. `ratio`: distribution of 𝒯. Compare averages with those of \
         hybrid Monte Carlo by `compare(reference, run)`.",
    example: "validate(target(potential::gaussian(#{ dim: 20, examples: 500, noise: 2.0 })), sampler::pseudo_langevin(#{ batch: 50 }), #{ stops: 1, steps: 5, draws: 40 })",
    call: Call::Checked(|(target, sampler), o, session| validate(&target, &sampler, o, session)),
};
