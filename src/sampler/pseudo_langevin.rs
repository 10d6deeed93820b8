//! Pseudo-Langevin: underdamped Langevin dynamics that takes the minibatch noise for part of its heat bath (Zambon 2026).

use super::gradient::{self, Estimator};
use super::gradient_noise::{self, ESTIMATE, Precision};
use super::{Configured, Sampler};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::{Chains, Member};
use crate::error::Result;
use crate::kernels::map::{kernel, reduction};
use crate::kernels::update::{DOT, DRAW_MOMENTUM, FILL, TOTAL, TWICE_KINETIC};
use crate::options::{Entry, Kind, Options, Range, option, optional};
use crate::rng::Purpose;
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) for small temperature ratio 𝒯 and friction (Zambon 2026, eq. 23).
///
/// One step takes the gradient at w on a fresh minibatch, then
/// `Π ← c1²Π - ½(1+c1²)δt g + σR`, `w ← w + M⁻¹Π δt`, δt = 1 unless asked otherwise.
struct PseudoLangevin {
    gradient: Estimator,
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
          standard deviations), looked at every ten steps, is hotter than V explains: it is refreshed.\n\n\
          V enters masses clamped from below, so that weights that see no gradient keep a finite mass, and a mass is never so small that the \
          prior's oscillation is badly resolved (M ≥ 25 δt²·precision) or that thermal motion moves a weight by more than 5 % of the weights' \
          root mean square per step (M ≥ 400 δt²·T/⟨w²⟩).",
    arguments: &[],
    options: &[
        gradient::BATCH,
        gradient::GRADIENT,
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
    build: |o| Ok(Configured::new(PseudoLangevin::from_options(o)?, o)),
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

// Vectors of the state.
const MOMENTUM: Vector = Vector::State(0);
const MASS: Vector = Vector::State(1);
const VARIANCE: Vector = Vector::State(2);

kernel! {
    /// One step (Zambon 2026, eq. 23): `Π ← c1²Π - ½(1+c1²)δt g + σR`, then `w ← w + δt Π/M`, with
    /// `σ² = (1+c1²)[(1-c1²)MT - (1+c1²)(δt/2)²V]`.
    STEP = pseudo_langevin(w, p; g, mass, variance; eta; keep, force, heat, relief, dt) {
        let square = heat * mass - relief * variance;
        p = keep * p - force * g + root(max(square, 0.0)) * eta;
        w += dt * (p / mass);
    }
}

kernel! {
    /// The first step (eq. 24), from p ~ N(0, MT): `Π = c1 p - (δt/2) g + K R`.
    FIRST_STEP = pseudo_langevin_first(w, p; g, mass, variance; eta; c1, half, heat, dt) {
        let square = heat * mass - half * half * variance;
        p = c1 * p + root(max(square, 0.0)) * eta - half * g;
        w += dt * (p / mass);
    }
}

kernel! {
    /// Masses for the ratio 𝒯 from the clamped V, where asked for.
    SET_MASS = pseudo_langevin_set_mass(mass; variance; ; floor, per_variance, lightest, on) {
        let wanted = max(max(variance, floor) * per_variance, lightest);
        mass = choose(on > 0.0, wanted, mass);
    }
}

kernel! {
    /// Masses below their least, for 𝒯_max, are raised and their momenta redrawn, where asked for.
    RAISE_MASS = pseudo_langevin_raise_mass(mass, p, raised; variance; eta; per_variance, temperature, on) {
        let least = variance * per_variance;
        raised = choose(mass < least, on, 0.0);
        mass = choose(raised > 0.0, least, mass);
        p = choose(raised > 0.0, root(temperature * mass) * eta, p);
    }
}

kernel! {
    /// Momenta p ~ N(0, MT), where asked for.
    REDRAW = pseudo_langevin_redraw(p; mass; eta; temperature, on) {
        p = choose(on > 0.0, root(temperature * mass) * eta, p);
    }
}

reduction! {
    /// Σ V/M.
    RATIO = sum pseudo_langevin_ratio(variance, mass) { variance / mass }
}

reduction! {
    /// The largest V/M.
    LARGEST_RATIO = largest pseudo_langevin_largest_ratio(variance, mass) { variance / mass }
}

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
            gradient: Estimator::from_options(o)?,
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
    fn coefficients(&self, t: f64) -> [f32; 5] {
        let (c, dt) = (self.keep, self.dt);
        [
            c as f32,
            (0.5 * (1.0 + c) * dt) as f32,
            ((1.0 + c) * (1.0 - c) * t) as f32,
            ((1.0 + c) * (1.0 + c) * dt * dt / 4.0) as f32,
            dt as f32,
        ]
    }

    /// 𝒯_i = V_i · this / M_i (eq. 18).
    fn ratio_per_variance(&self, t: f64) -> f64 {
        self.dt * self.dt / (4.0 * (1.0 - self.keep) * t)
    }

    /// Set every mass of the chains in `which` for the ratio 𝒯, from the clamped V.
    fn set_masses(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        if self.uniform {
            return chains.map(&FILL, &[MASS], |_, _| [1.0]);
        }
        let n = chains.dim() as f64;
        // The least mass whatever V is. V is measured where the chain is, and says nothing about where light weights would run: they
        // must resolve the prior's oscillation (ωδt ≤ 1/5) and move by no more than 5 % of the weights' size per step.
        let precision = 25.0 * chains.engine.target().prior().pull().0;
        let squares = chains.sum(&DOT, &[Params, Params])?;
        let lightest = |c: usize, m: &Member| {
            let thermal = 400.0 * m.temperature * n / squares[c];
            let thermal = if thermal.is_finite() { thermal } else { 0.0 };
            self.dt * self.dt * thermal.max(precision)
        };
        let overall = chains.sum(&TOTAL, &[VARIANCE])?;
        for (c, variance) in overall.iter().enumerate() {
            if !variance.is_finite() {
                chains.fail(c, "the minibatch gradient is not finite");
            }
            anyhow::ensure!(
                *variance != 0.0,
                "sampler::pseudo_langevin: the minibatch gradient has no noise (is there only one example?); use a full-batch sampler"
            );
        }
        let tensors = chains.engine.target().layout().tensors().to_vec();
        for range in tensors.into_iter().map(|t| t.range) {
            let own = chains.engine.sum(&TOTAL, &[VARIANCE], range.clone())?;
            let size = range.len() as f64;
            chains.map_range(
                &SET_MASS,
                &[MASS, VARIANCE],
                range,
                |c, m| {
                    // A tensor without any noise borrows from the others.
                    let mean = if own[c] > 0.0 {
                        own[c] / size
                    } else {
                        overall[c] / n
                    };
                    let floor = self
                        .floor
                        .unwrap_or(0.1 * mean)
                        .max(f32::MIN_POSITIVE as f64);
                    let per_variance = self.ratio_per_variance(m.temperature) / self.ratio;
                    let on = f32::from(u8::from(which[c]));
                    [floor as f32, per_variance as f32, lightest(c, m) as f32, on]
                },
                &[],
            )?;
        }
        Ok(())
    }

    /// Measure V of the chains in `which`.
    fn measure_variance(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        let into = match which.iter().all(|w| *w) {
            true => VARIANCE,
            false => ESTIMATE,
        };
        let (gradient, precision) = (&self.gradient, self.precision);
        let batches = gradient_noise::estimate(chains, gradient, precision, 0, which, into)?;
        chains.engine.copy(into, VARIANCE, which)?;
        for c in (0..chains.len()).filter(|c| which[*c]) {
            chains.scalars(c)[BATCHES] += batches as f64;
        }
        Ok(())
    }

    /// Raise the masses whose ratio is above the maximum and redraw their momenta; returns how many, per chain.
    fn raise_masses(&self, chains: &mut Chains, which: &[bool]) -> Result<Vec<f64>> {
        if self.uniform {
            return Ok(vec![0.0; chains.len()]);
        }
        // The gradient's place is free: it holds which masses were raised.
        let vectors = [MASS, MOMENTUM, Gradient, VARIANCE];
        chains.map_with_noise(&RAISE_MASS, &vectors, (Purpose::Momentum, 0), |c, m| {
            let per_variance = self.ratio_per_variance(m.temperature) / self.ratio_max;
            let on = f32::from(u8::from(which[c]));
            [per_variance as f32, m.temperature as f32, on]
        })?;
        chains.sum(&TOTAL, &[Gradient])
    }

    fn note_ratios(&self, chains: &mut Chains) -> Result<()> {
        let sums = chains.sum(&RATIO, &[VARIANCE, MASS])?;
        let largest = chains.sum(&LARGEST_RATIO, &[VARIANCE, MASS])?;
        let n = chains.dim() as f64;
        let per_variance = chains.each(|m| self.ratio_per_variance(m.temperature));
        for c in 0..chains.len() {
            let s = chains.scalars(c);
            s[RATIO_MEAN] = per_variance[c] * sums[c] / n;
            s[RATIO_MAX] = per_variance[c] * largest[c];
        }
        Ok(())
    }

    /// Σ V over each tensor, per chain.
    fn variance_by_tensor(chains: &mut Chains) -> Result<Vec<Vec<f64>>> {
        let tensors = chains.engine.target().layout().tensors().to_vec();
        let sum = |t: crate::model::TensorSpec| chains.engine.sum(&TOTAL, &[VARIANCE], t.range);
        tensors.into_iter().map(sum).collect()
    }

    /// Measure V of the chains in `which` again, control the ratios, and choose when to do so next.
    fn refresh(&self, chains: &mut Chains, which: &[bool]) -> Result<()> {
        let before = Self::variance_by_tensor(chains)?;
        self.measure_variance(chains, which)?;
        let after = Self::variance_by_tensor(chains)?;
        let raised = self.raise_masses(chains, which)?;
        let uniform = chains.uniform(Purpose::Reset);
        let reset: Vec<_> = which
            .iter()
            .zip(&uniform)
            .map(|(w, u)| *w && *u < self.reset)
            .collect();
        if reset.iter().any(|r| *r) {
            self.set_masses(chains, &reset)?;
            chains.map_with_noise(
                &REDRAW,
                &[MOMENTUM, MASS],
                (Purpose::Momentum, 1),
                |c, m| [m.temperature as f32, f32::from(u8::from(reset[c]))],
            )?;
        }
        self.note_ratios(chains)?;
        let (n, step) = (chains.dim() as f64, chains.step as f64);
        for c in (0..chains.len()).filter(|c| which[*c]) {
            let pairs = before.iter().zip(&after).map(|(b, a)| (b[c], a[c]));
            let change = pairs
                .map(|(old, new)| (new / old).max(old / new))
                .fold(1.0, f64::max);
            if after.iter().any(|v| !v[c].is_finite()) {
                chains.fail(c, "the minibatch gradient is not finite");
            }
            let s = chains.scalars(c);
            s[RAISED] = raised[c] / n;
            s[RESETS] += f64::from(u8::from(reset[c]));
            // Within 10 % the interval grows with the streak; past a factor of two it shrinks; in between it is the usual one at most.
            let (interval, refresh) = (s[INTERVAL], self.refresh as f64);
            let first = FIRST.min(refresh);
            (s[STREAK], s[INTERVAL]) = if change <= 1.1 {
                let streak = s[STREAK] + 1.0;
                (streak, (interval * streak).min(self.refresh_max as f64))
            } else if change <= 2.0 {
                (1.0, (2.0 * interval).min(refresh))
            } else {
                (1.0, (interval / 2.0).clamp(first, refresh))
            };
            s[LAST] = step;
            s[NEXT] = step + s[INTERVAL];
        }
        Ok(())
    }

    /// Let chains that are hotter than V explains be refreshed at the next step.
    fn watch_heat(&self, chains: &mut Chains) -> Result<()> {
        let n = chains.dim() as f64;
        let limit = 1.0 + 0.5f64.max(5.0 * (2.0 / n).sqrt());
        let kinetic = chains.sum(&TWICE_KINETIC, &[MOMENTUM, MASS])?;
        let (step, temperatures) = (chains.step as f64, chains.each(|m| m.temperature));
        for c in 0..chains.len() {
            let s = chains.scalars(c);
            if kinetic[c] / n > limit * temperatures[c] && step >= s[LAST] + COOLING {
                s[NEXT] = step + 1.0;
            }
        }
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

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn check(&self, _: &Target) -> Result<()> {
        anyhow::ensure!(
            self.gradient.batch().is_some(),
            "sampler::pseudo_langevin needs the noise of a minibatch; with gradient::full() use sampler::langevin"
        );
        anyhow::ensure!(
            self.gradient.vectors().is_empty(),
            "sampler::pseudo_langevin sets its masses by the noise of a plain minibatch, which control variates take away; use sampler::langevin with them"
        );
        Ok(())
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let all = vec![true; chains.len()];
        self.measure_variance(chains, &all)?;
        self.set_masses(chains, &all)?;
        self.note_ratios(chains)?;
        let step = chains.step as f64;
        for c in 0..chains.len() {
            let s = chains.scalars(c);
            s[STREAK] = 1.0;
            // A start from an optimiser's minimum is far from equilibrium: look again soon.
            s[INTERVAL] = FIRST.min(self.refresh as f64);
            s[NEXT] = step + s[INTERVAL];
        }
        // Sub-streams keep this apart from the first step.
        self.gradient.estimate(chains, Purpose::Minibatch, 2)?;
        chains.map_with_noise(
            &DRAW_MOMENTUM,
            &[MOMENTUM, MASS],
            (Purpose::Momentum, 2),
            |_, m| [m.temperature as f32],
        )?;
        let vectors = [Params, MOMENTUM, Gradient, MASS, VARIANCE];
        chains.map_with_noise(&FIRST_STEP, &vectors, (Purpose::Noise, 2), |_, m| {
            let heat = (1.0 - self.keep) * m.temperature;
            [
                self.keep.sqrt() as f32,
                (self.dt / 2.0) as f32,
                heat as f32,
                self.dt as f32,
            ]
        })?;
        chains.engine.reflect(Some(MOMENTUM))
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let step = chains.step as f64;
        let due: Vec<_> = chains
            .scalar(NEXT)
            .iter()
            .map(|next| step >= *next)
            .collect();
        if due.iter().any(|d| *d) {
            self.refresh(chains, &due)?;
        }
        self.gradient.estimate(chains, Purpose::Minibatch, 0)?;
        chains.report_virial(0, Gradient)?;
        let vectors = [Params, MOMENTUM, Gradient, MASS, VARIANCE];
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, 0), |_, m| {
            self.coefficients(m.temperature)
        })?;
        chains.engine.reflect(Some(MOMENTUM))?;
        let n = chains.dim() as f64;
        chains
            .engine
            .report_sum(1, &TWICE_KINETIC, &[MOMENTUM, MASS], 1.0 / n)?;
        chains.engine.report_loss(2)?;
        for (slot, scalar) in (3..).zip([RATIO_MEAN, RATIO_MAX, INTERVAL, RAISED, RESETS]) {
            chains.report_scalar(slot, scalar)?;
        }
        if chains.step.is_multiple_of(COOLING as u64) {
            self.watch_heat(chains)?;
        }
        Ok(())
    }
}
