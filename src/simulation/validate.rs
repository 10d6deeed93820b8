//! Validation of pseudo-Langevin: is the minibatch noise what its equations take it for? (Zambon 2026, §III.1, Fig. 3a–c)
//!
//! Along short trajectories the integration is stopped now and then: the full gradient and many minibatch gradients there give the
//! scaled noise `R_i = (∇U_B - ∇U)_i / sqrt(V_i)` with the V that the sampler uses (eq. 22). It should be normal, uncorrelated once the
//! white noise is added, and without memory.

use super::progress::Progress;
use super::session::{self, Session};
use super::state::State;
use super::{Plan, Starts};
use crate::diagnostic::{
    correlation_matrix, eigenvalues, kolmogorov_smirnov_normal, marchenko_pastur_edges,
};
use crate::engine::Chains;
use crate::engine::Vector::Gradient;
use crate::error::{Interrupted, Result};
use crate::memory;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::{Purpose, Stream};
use crate::sampler::Configured;
use crate::schedule::Schedule;
use crate::target::prior::Parameters;
use crate::target::{Target, Workspace};
use crate::trigger::Trigger;
use serde_json::{Value, json};

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

/// A histogram over [-limit, limit].
struct Histogram {
    limit: f64,
    counts: Vec<f64>,
}

impl Histogram {
    fn new(limit: f64, bins: usize) -> Self {
        Self {
            limit,
            counts: vec![0.0; bins],
        }
    }

    fn add(&mut self, x: f64) {
        let bins = self.counts.len();
        let at = (x + self.limit) / (2.0 * self.limit) * bins as f64;
        if at >= 0.0 && (at as usize) < bins {
            self.counts[at as usize] += 1.0;
        }
    }

    fn width(&self) -> f64 {
        2.0 * self.limit / self.counts.len() as f64
    }

    fn centres(&self) -> Vec<f64> {
        let centre = |i| -self.limit + self.width() * (i as f64 + 0.5);
        (0..self.counts.len()).map(centre).collect()
    }

    fn density(&self, total: f64) -> Vec<f64> {
        let per = 1.0 / (total * self.width());
        self.counts.iter().map(|c| c * per).collect()
    }
}

/// What one stop has shown.
struct Stop {
    step: u64,
    /// Parameters tested, the part of them that passed, and parameters whose correlations were computed.
    tested: f64,
    passed: f64,
    correlated: usize,
    noise: Vec<f64>,
    /// Largest eigenvalues and root mean squares of the correlations: minibatch noise, white noise, both together.
    largest: [f64; 3],
    spread: [f64; 3],
    ratios: Vec<f64>,
}

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
    let draws = o.size("draws")?;
    let (chains, stops, interval) = (o.size("chains")?, o.size("stops")?, o.int("steps")?);
    let seed = o
        .opt_int("seed")
        .unwrap_or_else(|| session::seed_of(session.seed, "validate"));
    let (stops, interval) = match session.quick {
        true => (stops.min(2), interval.min(50)),
        false => (stops, interval),
    };
    let temperature = o.float("temperature")?;
    let plan = Plan {
        kind: "validate",
        name: "validate".into(),
        temperatures: vec![Schedule::Constant(temperature)],
        chains,
        start: o.object::<Parameters>("start"),
        steps: interval * stops as u64,
        burn_in: 0,
        every: Trigger::At(Vec::new()),
        observables: Vec::new(),
        predict: Vec::new(),
        region: 1000.0,
        seed,
        full_steps: None,
    };
    let starts: Starts = plan.starts(target)?;
    let mut state = State::new(&starts, target, sampler, &[]);
    let progress = Progress::new("validate", (chains * stops) as u64, session.quiet, 0);
    let mut work = Workspace::new(session.threads);
    let mut info = vec![0.0; sampler.info.len()];
    let (components, pairs_of) = (o.size("components")?, o.size("correlated")?);
    let lags = o.size("lags")?;
    let (tests, others) = (components.min(target.dim()), pairs_of.min(target.dim()));
    let floats = draws * (tests + 6 * others) + 2 * (lags + 1) * tests;
    memory::check(4 * floats as u128, "the noise of a validation")?;
    let mut pooled = Histogram::new(5.0, 100);
    let mut correlations: Vec<_> = (0..3).map(|_| Histogram::new(0.4, 80)).collect();
    let mut autocorrelation = Memory::new(lags);
    let (mut tests, mut pairs) = (0.0, 0.0);
    let mut found = Vec::new();
    for slot in &mut state.slots(&plan) {
        let chain = &mut slot.chain;
        chain.temperature = temperature;
        let failed = |reason: Option<String>| match reason {
            Some(r) => Err(anyhow::anyhow!("validate: a chain failed: {r}")),
            None => Ok(()),
        };
        failed(chain.lend(target, &mut work, &mut info, |c| sampler.init(c))?)?;
        for _ in 0..stops {
            for _ in 0..interval {
                if session::interrupted() {
                    let what = "a validation, of which nothing is kept".into();
                    return Err(Interrupted { what }.into());
                }
                failed(chain.lend(target, &mut work, &mut info, |c| sampler.step(c))?)?;
                finite(&info)?;
                chain.step += 1;
            }
            // The sampler's own V and M at this moment.
            let v: Vec<f32> = chain.vectors[variance].to_vec();
            let ratio_mean = info[sampler
                .info
                .iter()
                .position(|n| *n == "ratio_mean")
                .unwrap_or(0)];
            let ratios = ratios(&v, chain.vectors[mass], ratio_mean);
            // Weights that see no gradient have no noise to be tested.
            let live: Vec<usize> = (0..v.len()).filter(|i| v[*i] > 0.0).collect();
            let of_live = |most| spaced(live.len(), most).into_iter().map(|k| live[k]);
            let tested: Vec<usize> = of_live(components).collect();
            let correlated: Vec<usize> = of_live(pairs_of).collect();
            anyhow::ensure!(
                correlated.len() > 1,
                "validate: the minibatch gradient has noise in {} parameters only",
                live.len()
            );
            let p = correlated.len();
            (tests, pairs) = (
                tests + tested.len() as f64,
                pairs + (p * (p - 1) / 2) as f64,
            );
            let mut rows = vec![0f32; draws * tested.len()];
            let mut side = vec![0f64; draws * correlated.len()];
            chain.lend(target, &mut work, &mut info, |c| {
                let exact = gradient(c, |c| c.engine.gradient())?;
                for d in 0..draws {
                    let one = gradient(c, |c| {
                        sampler
                            .estimator()
                            .estimate(c, Purpose::Probe, FIRST + d as u16)
                    })?;
                    let scaled = |i: usize| (one[i] - exact[i]) as f64 / f64::from(v[i]).sqrt();
                    for (k, i) in tested.iter().enumerate() {
                        rows[k * draws + d] = scaled(*i) as f32;
                    }
                    for (k, i) in correlated.iter().enumerate() {
                        side[d * correlated.len() + k] = scaled(*i);
                    }
                }
                Ok(())
            })?;
            found.push(look(
                Look {
                    step: chain.step,
                    rows: &rows,
                    side: &side,
                    draws,
                    ratios: correlated.iter().map(|i| ratios[*i]).collect(),
                    all: ratios,
                    white: Stream::new(seed, Purpose::Probe, chain.index, chain.step)
                        .sub_stream(1 << 15),
                },
                &mut pooled,
                &mut correlations,
            ));
            // The very minibatches that the sampler takes, for as many steps as there are lags.
            for _ in 0..=lags {
                let mut noise = Vec::new();
                chain.lend(target, &mut work, &mut info, |c| {
                    let exact = gradient(c, |c| c.engine.gradient())?;
                    let one = gradient(c, |c| {
                        sampler.estimator().estimate(c, Purpose::Minibatch, 0)
                    })?;
                    let scaled = |i: &usize| {
                        (one[*i] - exact[*i]) as f64
                            / f64::from(v[*i]).sqrt().max(f64::MIN_POSITIVE)
                    };
                    noise = tested.iter().map(scaled).collect();
                    Ok(())
                })?;
                autocorrelation.add(noise);
                failed(chain.lend(target, &mut work, &mut info, |c| sampler.step(c))?)?;
                finite(&info)?;
                chain.step += 1;
            }
            autocorrelation.end();
            progress.set(found.len() as u64, 0);
        }
    }
    progress.finish();
    let passed = found.iter().map(|s| s.passed * s.tested).sum::<f64>() / tests;
    let edges = marchenko_pastur_edges(draws, found.last().map_or(1, |s| s.correlated));
    let mut ratios: Vec<f64> = found
        .iter()
        .flat_map(|s| s.ratios.iter().copied())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let quantile = |q: f64| ratios[((ratios.len() - 1) as f64 * q) as usize];
    let three = |f: &dyn Fn(&Stop) -> [f64; 3]| {
        let mean = |k: usize| found.iter().map(|s| f(s)[k]).sum::<f64>() / found.len() as f64;
        json!({ "minibatch": mean(0), "white": mean(1), "total": mean(2) })
    };
    let shape = |k: usize| json!(correlations[k].density(pairs));
    Ok(json!({
        "ks_fraction": passed,
        "ks_tests": tests,
        "ks_by_stop": found.iter().map(|s| s.passed).collect::<Vec<_>>(),
        "steps": found.iter().map(|s| s.step).collect::<Vec<_>>(),
        "noise": {
            "x": pooled.centres(),
            "density": pooled.density(tests * draws as f64),
            "by_stop": found.iter().map(|s| s.noise.clone()).collect::<Vec<_>>(),
        },
        "correlation": {
            "x": correlations[0].centres(),
            "minibatch": shape(0), "white": shape(1), "total": shape(2),
            "rms": three(&|s| s.spread),
            "largest_eigenvalue": three(&|s| s.largest),
            "random_matrix_edge": edges.1,
        },
        "autocorrelation": { "lag": (0..=lags).collect::<Vec<_>>(), "minibatch": autocorrelation.mean() },
        "ratio": {
            "mean": ratios.iter().sum::<f64>() / ratios.len() as f64,
            "median": quantile(0.5), "upper": quantile(0.95), "largest": quantile(1.0),
        },
    }))
}

/// Fail unless what a step reported, the virial first, is finite.
fn finite(info: &[f64]) -> Result<()> {
    anyhow::ensure!(
        info.first().is_some_and(|virial| virial.is_finite()),
        "validate: a chain met a number that is not finite"
    );
    Ok(())
}

/// A gradient as it comes out.
fn gradient(c: &mut Chains, f: impl FnOnce(&mut Chains) -> Result<()>) -> Result<Vec<f32>> {
    f(c)?;
    let mut out = vec![0f32; c.dim()];
    c.engine.download(Gradient, &mut out)?;
    Ok(out)
}

/// 𝒯_i of every parameter, from their mean.
fn ratios(variance: &[f32], mass: &[f32], mean: f64) -> Vec<f64> {
    let each: Vec<f64> = variance
        .iter()
        .zip(mass)
        .map(|(v, m)| f64::from(*v) / f64::from(*m))
        .collect();
    let scale = mean * each.len() as f64 / each.iter().sum::<f64>();
    each.into_iter().map(|r| r * scale).collect()
}

/// The noise at one stop.
struct Look<'a> {
    step: u64,
    /// `[components, draws]`.
    rows: &'a [f32],
    /// `[draws, correlated]`.
    side: &'a [f64],
    draws: usize,
    /// 𝒯 of the correlated parameters, and of all.
    ratios: Vec<f64>,
    all: Vec<f64>,
    white: Stream,
}

fn look(l: Look, pooled: &mut Histogram, correlations: &mut [Histogram]) -> Stop {
    let mut own = Histogram::new(pooled.limit, pooled.counts.len());
    let mut passed = 0.0;
    let components = l.rows.len() / l.draws;
    for row in l.rows.chunks_exact(l.draws) {
        let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        passed += f64::from(u8::from(kolmogorov_smirnov_normal(&row).p_value > 0.05));
        row.iter().for_each(|x| {
            own.add(*x);
            pooled.add(*x);
        });
    }
    let p = l.ratios.len();
    let white: Vec<f64> = (0..l.side.len())
        .map(|i| l.white.normal(i as u32))
        .collect();
    // Minibatch noise is the part 𝒯 of the heat bath (eqs. 18 and 24).
    let both = |i: usize| {
        let share = l.ratios[i % p].min(1.0);
        share.sqrt() * l.side[i] + (1.0 - share).sqrt() * white[i]
    };
    let total: Vec<f64> = (0..l.side.len()).map(both).collect();
    let (mut largest, mut spread) = ([0.0; 3], [0.0; 3]);
    for (k, samples) in [l.side, &white, &total].into_iter().enumerate() {
        let c = correlation_matrix(samples, p);
        for i in 0..p {
            for j in 0..i {
                correlations[k].add(c[i * p + j]);
                spread[k] += c[i * p + j].powi(2);
            }
        }
        spread[k] = (spread[k] / (p * (p - 1) / 2) as f64).sqrt();
        largest[k] = eigenvalues(&c, p).last().copied().unwrap_or(f64::NAN);
    }
    Stop {
        step: l.step,
        tested: components as f64,
        passed: passed / components as f64,
        correlated: p,
        noise: own.density((components * l.draws) as f64),
        largest,
        spread,
        ratios: l.all,
    }
}

/// Autocorrelation of the noise, averaged over components and starting times.
struct Memory {
    series: Vec<Vec<f64>>,
    sums: Vec<f64>,
    counts: Vec<f64>,
}

impl Memory {
    fn new(lags: usize) -> Self {
        Self {
            series: Vec::new(),
            sums: vec![0.0; lags + 1],
            counts: vec![0.0; lags + 1],
        }
    }

    fn add(&mut self, noise: Vec<f64>) {
        self.series.push(noise);
    }

    /// The series ends here.
    fn end(&mut self) {
        for (i, a) in self.series.iter().enumerate() {
            for (lag, b) in self.series[i..].iter().enumerate() {
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                self.sums[lag] += product / a.len() as f64;
                self.counts[lag] += 1.0;
            }
        }
        self.series.clear();
    }

    fn mean(&self) -> Vec<f64> {
        self.sums
            .iter()
            .zip(&self.counts)
            .map(|(s, n)| s / n)
            .collect()
    }
}
