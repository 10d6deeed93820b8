//! Pseudo-Langevin: underdamped Langevin dynamics that takes the minibatch noise for part of its heat bath (Zambon 2026).

use super::gradient_noise::{self, Precision};
use super::{BATCH, Chain, Configured, Sampler, configured};
use crate::error::{Result, chain_failed};
use crate::kernels::update::{self, PseudoLangevin as Step};
use crate::options::{Entry, Kind, Options, Range, option, optional};
use crate::rng::Purpose;
use crate::target::{Target, Workspace};
use std::sync::Arc;

/// Samples exp(-U/T) for small temperature ratio 𝒯 and friction (Zambon 2026, eq. 23).
///
/// One step takes the gradient at w on a fresh minibatch, then
/// `Π ← c1²Π - ½(1+c1²)δt g + σR`, `w ← w + M⁻¹Π δt`, δt = 1 unless asked otherwise.
struct PseudoLangevin {
    batch: usize,
    /// c1², what a step leaves of the momentum.
    keep: f64,
    dt: f64,
    ratio: f64,
    ratio_max: f64,
    refresh: u64,
    refresh_max: u64,
    reset: f64,
    floor: Option<f64>,
    precision: Precision,
    /// Whether masses follow the noise (pL) or are all equal (naive-pL).
    uniform: bool,
}

/// `sampler::pseudo_langevin`.
pub const ENTRY: Entry<Arc<Configured>> = Entry {
    name: "pseudo_langevin",
    doc: "Samples exp(-U/T) for a small temperature ratio, with minibatch gradients whose noise is part of the heat bath.\n\n\
          Zambon, Caruso, Zecchina & Tiana (2026), eq. 23: `Π ← c1²Π - ½(1+c1²)δt g + σR`, `w ← w + M⁻¹Π δt`, with \
          `σ² = (1+c1²)[(1-c1²)MT - (1+c1²)(δt/2)²V]`. V, the variance of the minibatch gradient, is measured at the start and at every refresh; \
          the masses `M_i = δt² V_i / (4(1-c1²)T·ratio)` make the temperature ratio 𝒯_i = `ratio` for every parameter. At a refresh, masses whose 𝒯_i \
          grew past `ratio_max` are raised and their momenta redrawn, and with probability `reset` all are set anew. While V stays \
          within 10 %, the interval is multiplied by the length of that streak. A chain whose kinetic temperature exceeds T by half (or five \
          standard deviations) is hotter than V explains: it is refreshed at once.\n\n\
          V enters masses clamped from below, so that weights that see no gradient keep a finite mass, and a mass is never so small that the \
          prior's oscillation is badly resolved (M ≥ 25 δt²·precision) or that thermal motion moves a weight by more than 5 % of the weights' \
          root mean square per step (M ≥ 400 δt²·T/⟨w²⟩).",
    arguments: &[],
    options: &[
        BATCH,
        option(
            "ratio",
            Kind::Float(Range::Between(1e-6, 0.5)),
            "0.03",
            "𝒯, share of the heat bath that the minibatch noise makes up.",
        ),
        optional(
            "ratio_max",
            Kind::Float(Range::Between(1e-6, 0.5)),
            "2 × ratio",
            "𝒯_max, above which a mass is raised at a refresh; at most 1/(1+c1²).",
        ),
        option(
            "friction",
            Kind::Float(Range::Between(0.01, 0.99)),
            "0.1",
            "m1 = sqrt(1-c1²), friction per step; c1 = exp(-γδt/2).",
        ),
        option(
            "dt",
            Kind::Float(Range::Positive),
            "1",
            "δt. Masses scale with its square, so it changes nothing unless masses are \"uniform\".",
        ),
        option(
            "refresh",
            Kind::Int(Range::AtLeast(1.0)),
            "200",
            "Usual steps between two measurements of V; fewer (from 10 on) while V changes fast, more while it is steady.",
        ),
        option(
            "refresh_max",
            Kind::Int(Range::AtLeast(1.0)),
            "16_000",
            "Longest interval between two measurements of V, in steps.",
        ),
        option(
            "reset",
            Kind::Float(Range::Closed01),
            "0.0",
            "ρ_reset, probability that a refresh sets all masses and momenta anew.",
        ),
        optional(
            "variance_floor",
            Kind::Float(Range::NonNegative),
            "10 % of the tensor's mean",
            "Lower clamp of V_i in the masses (Zambon et al. use 1e-8).",
        ),
        option(
            "variance_tolerance",
            Kind::Float(Range::Positive),
            "0.1",
            "V has converged when sqrt(V_i) of 99 % of the parameters changes by less than this over 100 minibatches.",
        ),
        option(
            "variance_batches",
            Kind::Int(Range::Between(2.0, 10_000.0)),
            "1000",
            "Minibatches at most for one measurement of V.",
        ),
        option(
            "masses",
            Kind::Choice(&["noise", "uniform"]),
            "noise",
            "\"noise\": from V (pL) · \"uniform\": all 1 with a small dt (naive-pL).",
        ),
    ],
    example: "sampler::pseudo_langevin(#{ batch: 50, ratio: 0.03 })",
    build: |o| Ok(configured(PseudoLangevin::from_options(o)?, o)),
};

// Scalars of the state.
const NEXT: usize = 0;
const INTERVAL: usize = 1;
const STREAK: usize = 2;
const RESETS: usize = 3;
const RAISED: usize = 4;
const RATIO_MEAN: usize = 5;
const RATIO_MAX: usize = 6;
const BATCHES: usize = 7;
const LAST: usize = 8;

/// Steps that a chain is left alone after a refresh before it is refreshed for being hot.
const COOLING: f64 = 10.0;

/// Steps to the first refresh, and between refreshes while V changes by more than a factor of two.
const FIRST: f64 = 10.0;

impl PseudoLangevin {
    fn from_options(o: &Options) -> Result<Self> {
        let friction = o.float("friction")?;
        let keep = 1.0 - friction * friction;
        let ratio = o.float("ratio")?;
        let limit = 1.0 / (1.0 + keep);
        let ratio_max = o.opt_float("ratio_max").unwrap_or((2.0 * ratio).min(limit));
        anyhow::ensure!(
            ratio <= ratio_max && ratio_max <= limit,
            "{}: need ratio ≤ ratio_max ≤ 1/(1+c1²) = {limit:.4}, but ratio is {ratio} and ratio_max {ratio_max}",
            o.owner()
        );
        let most = o.size("variance_batches")?;
        Ok(Self {
            batch: o.size("batch")?,
            keep,
            dt: o.float("dt")?,
            ratio,
            ratio_max,
            refresh: o.int("refresh")?,
            refresh_max: o.int("refresh_max")?.max(o.int("refresh")?),
            reset: o.float("reset")?,
            floor: o.opt_float("variance_floor"),
            precision: Precision {
                block: most.min(100),
                most,
                tolerance: o.float("variance_tolerance")?,
            },
            uniform: o.text("masses")? == "uniform",
        })
    }

    /// The scalars of a step at temperature `t` (theory §1).
    fn coefficients(&self, t: f64) -> Step {
        let (c, dt) = (self.keep, self.dt);
        Step {
            keep: c as f32,
            force: (0.5 * (1.0 + c) * dt) as f32,
            heat: ((1.0 + c) * (1.0 - c) * t) as f32,
            relief: ((1.0 + c) * (1.0 + c) * dt * dt / 4.0) as f32,
            dt: dt as f32,
        }
    }

    /// 𝒯_i = V_i · this / M_i (eq. 18).
    fn ratio_per_variance(&self, t: f64) -> f64 {
        self.dt * self.dt / (4.0 * (1.0 - self.keep) * t)
    }

    /// The least mass whatever V is. V is measured where the chain is, and says nothing about where light weights would run:
    /// they must resolve the prior's oscillation (ωδt ≤ 1/5) and move by no more than 5 % of the weights' size per step.
    fn lightest(&self, w: &[f32], temperature: f64, target: &Target) -> f64 {
        let square = update::dot(w, w) / w.len() as f64;
        let thermal = if square > 0.0 {
            400.0 * temperature / square
        } else {
            0.0
        };
        self.dt * self.dt * thermal.max(25.0 * target.prior().pull().0)
    }

    /// Set every mass for the ratio 𝒯, from the clamped V.
    fn set_masses(&self, chain: &mut Chain, target: &Target) -> Result<()> {
        let lightest = self.lightest(chain.w, chain.temperature, target);
        let [_, mass, variance] = &mut chain.vectors[..] else {
            unreachable!("three vectors")
        };
        if self.uniform {
            mass.fill(1.0);
            return Ok(());
        }
        let mean = |v: &[f32]| v.iter().map(|v| *v as f64).sum::<f64>() / v.len().max(1) as f64;
        let overall = mean(variance);
        if !overall.is_finite() {
            return chain_failed("the minibatch gradient is not finite");
        }
        anyhow::ensure!(
            overall > 0.0,
            "sampler::pseudo_langevin: the minibatch gradient has no noise (is there only one example?); use a full-batch sampler"
        );
        let per_variance = self.ratio_per_variance(chain.temperature) / self.ratio;
        for tensor in target.layout().tensors() {
            let v = &variance[tensor.range.clone()];
            // A tensor without any noise borrows from the others.
            let own = mean(v);
            let floor = self
                .floor
                .unwrap_or(0.1 * if own > 0.0 { own } else { overall })
                .max(f32::MIN_POSITIVE as f64);
            for (m, v) in mass[tensor.range.clone()].iter_mut().zip(v) {
                *m = ((*v as f64).max(floor) * per_variance).max(lightest) as f32;
            }
        }
        Ok(())
    }

    fn measure_variance(
        &self,
        chain: &mut Chain,
        target: &Target,
        work: &mut Workspace,
    ) -> Result<()> {
        // The estimate reads the chain while it writes one of its vectors.
        let Some(variance) = chain.vectors.pop() else {
            unreachable!("three vectors")
        };
        let batches =
            gradient_noise::estimate(chain, self.batch, self.precision, 0, target, work, variance);
        chain.vectors.push(variance);
        chain.scalars[BATCHES] += batches? as f64;
        Ok(())
    }

    /// Raise the masses whose ratio is above the maximum and redraw their momenta; returns how many.
    fn raise_masses(&self, chain: &mut Chain) -> usize {
        let per_variance = self.ratio_per_variance(chain.temperature);
        let (stream, t) = (chain.stream(Purpose::Momentum), chain.temperature);
        let [momentum, mass, variance] = &mut chain.vectors[..] else {
            unreachable!("three vectors")
        };
        let mut raised = 0;
        for (i, (m, v)) in mass.iter_mut().zip(variance.iter()).enumerate() {
            let least = *v as f64 * per_variance / self.ratio_max;
            if !self.uniform && (*m as f64) < least {
                *m = least as f32;
                momentum[i] = ((t * least).sqrt() * stream.normal(i as u32)) as f32;
                raised += 1;
            }
        }
        raised
    }

    fn note_ratios(&self, chain: &mut Chain) {
        let per_variance = self.ratio_per_variance(chain.temperature);
        let ratios = chain.vectors[2]
            .iter()
            .zip(chain.vectors[1].iter())
            .map(|(v, m)| *v as f64 * per_variance / *m as f64);
        let (sum, max) = ratios.fold((0.0, 0.0f64), |(s, m), r| (s + r, m.max(r)));
        chain.scalars[RATIO_MEAN] = sum / chain.w.len() as f64;
        chain.scalars[RATIO_MAX] = max;
    }

    /// Measure V again, control the ratios, and choose when to do so next.
    fn refresh(&self, chain: &mut Chain, target: &Target, work: &mut Workspace) -> Result<()> {
        let mean_variance = |chain: &Chain| -> Vec<f64> {
            let tensors = target.layout().tensors().iter();
            tensors
                .map(|t| {
                    chain.vectors[2][t.range.clone()]
                        .iter()
                        .map(|v| *v as f64)
                        .sum()
                })
                .collect()
        };
        let before = mean_variance(chain);
        self.measure_variance(chain, target, work)?;
        if !mean_variance(chain).iter().all(|v| v.is_finite()) {
            return chain_failed("the minibatch gradient is not finite");
        }
        let change = before
            .iter()
            .zip(mean_variance(chain))
            .map(|(old, new)| (new / old).max(old / new))
            .fold(1.0, f64::max);
        let raised = self.raise_masses(chain);
        if chain.stream(Purpose::Reset).uniform(0) < self.reset {
            self.set_masses(chain, target)?;
            let stream = chain.stream(Purpose::Momentum).sub_stream(1);
            let t = chain.temperature as f32;
            let [momentum, mass, _] = &mut chain.vectors[..] else {
                unreachable!("three vectors")
            };
            update::draw_momentum(momentum, mass, t, &stream);
            chain.scalars[RESETS] += 1.0;
        }
        chain.scalars[RAISED] = raised as f64 / chain.w.len() as f64;
        self.note_ratios(chain);
        // Within 10 % the interval grows with the streak; past a factor of two it shrinks; in between it is the usual one at most.
        let (interval, refresh) = (chain.scalars[INTERVAL], self.refresh as f64);
        let first = FIRST.min(refresh);
        let (streak, interval) = if change <= 1.1 {
            let streak = chain.scalars[STREAK] + 1.0;
            (streak, (interval * streak).min(self.refresh_max as f64))
        } else if change <= 2.0 {
            (1.0, (2.0 * interval).min(refresh))
        } else {
            (1.0, (interval / 2.0).clamp(first, refresh))
        };
        chain.scalars[STREAK] = streak;
        chain.scalars[INTERVAL] = interval;
        chain.scalars[LAST] = chain.step as f64;
        chain.scalars[NEXT] = chain.step as f64 + interval;
        Ok(())
    }
}

impl Sampler for PseudoLangevin {
    fn name(&self) -> &'static str {
        "pseudo_langevin"
    }

    fn vectors(&self) -> &'static [&'static str] {
        &["momentum", "mass", "variance"]
    }

    fn scalars(&self) -> &'static [&'static str] {
        &[
            "next_refresh",
            "interval",
            "streak",
            "resets",
            "raised",
            "ratio_mean",
            "ratio_max",
            "variance_batches",
            "last_refresh",
        ]
    }

    fn info(&self) -> &'static [&'static str] {
        &[
            "virial",
            "kinetic",
            "minibatch_loss",
            "ratio_mean",
            "ratio_max",
            "refresh_interval",
            "raised",
            "resets",
        ]
    }

    fn batch(&self) -> Option<usize> {
        Some(self.batch)
    }

    fn init(&self, chain: &mut Chain, target: &Target, work: &mut Workspace) -> Result<()> {
        self.measure_variance(chain, target, work)?;
        self.set_masses(chain, target)?;
        self.note_ratios(chain);
        chain.scalars[STREAK] = 1.0;
        // A start from an optimiser's minimum is far from equilibrium: look again soon.
        chain.scalars[INTERVAL] = FIRST.min(self.refresh as f64);
        chain.scalars[NEXT] = chain.step as f64 + chain.scalars[INTERVAL];
        // p ~ N(0, MT), then the first Π = c1 p - (δt/2) g + K R (eq. 24); sub-streams keep this apart from the first step.
        let t = chain.temperature;
        let streams = [Purpose::Momentum, Purpose::Minibatch, Purpose::Noise]
            .map(|p| chain.stream(p).sub_stream(2));
        let mut grad = work.take_grad(chain.w.len());
        chain.minibatch_gradient(streams[1], self.batch, target, &mut grad, work)?;
        let [momentum, mass, variance] = &mut chain.vectors[..] else {
            unreachable!("three vectors")
        };
        update::draw_momentum(momentum, mass, t as f32, &streams[0]);
        let half = self.dt / 2.0;
        for i in 0..grad.len() {
            let k2 = (1.0 - self.keep) * mass[i] as f64 * t - half * half * variance[i] as f64;
            let kick = k2.max(0.0).sqrt() * streams[2].normal(i as u32) - half * grad[i] as f64;
            momentum[i] = (self.keep.sqrt() * momentum[i] as f64 + kick) as f32;
            chain.w[i] += (self.dt * momentum[i] as f64 / mass[i] as f64) as f32;
        }
        target.prior().reflect(chain.w, Some(momentum));
        work.grad = grad;
        Ok(())
    }

    fn step(
        &self,
        chain: &mut Chain,
        target: &Target,
        work: &mut Workspace,
        info: &mut [f64],
    ) -> Result<()> {
        if chain.step as f64 >= chain.scalars[NEXT] {
            self.refresh(chain, target, work)?;
        }
        let n = chain.w.len() as f64;
        let mut grad = work.take_grad(chain.w.len());
        let loss = chain.minibatch_gradient(
            chain.stream(Purpose::Minibatch),
            self.batch,
            target,
            &mut grad,
            work,
        )?;
        info[0] = update::dot(chain.w, &grad) / n;
        let (k, stream) = (
            self.coefficients(chain.temperature),
            chain.stream(Purpose::Noise),
        );
        let [momentum, mass, variance] = &mut chain.vectors[..] else {
            unreachable!("three vectors")
        };
        update::pseudo_langevin(chain.w, momentum, &grad, mass, variance, &k, &stream);
        target.prior().reflect(chain.w, Some(momentum));
        info[1] = update::twice_kinetic(momentum, mass) / n;
        info[2] = loss;
        let margin = 0.5f64.max(5.0 * (2.0 / n).sqrt());
        if info[1] > (1.0 + margin) * chain.temperature
            && chain.step as f64 >= chain.scalars[LAST] + COOLING
        {
            chain.scalars[NEXT] = chain.step as f64 + 1.0;
        }
        for (info, scalar) in info[3..]
            .iter_mut()
            .zip([RATIO_MEAN, RATIO_MAX, INTERVAL, RAISED, RESETS])
        {
            *info = chain.scalars[scalar];
        }
        work.grad = grad;
        Ok(())
    }
}
