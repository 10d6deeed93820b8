//! Pseudo-Langevin: underdamped Langevin dynamics that takes the minibatch noise for part of its heat bath (Zambon 2026).

mod ratio;

use self::ratio::{COOLING, FIRST};
use super::gradient::{self, Estimator};
use super::gradient_noise::Precision;
use super::{Accuracy, Before, Bias, ConfiguredSampler, Sampler};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::engine::{Chains, Member};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{DRAW_MOMENTUM, TWICE_KINETIC};
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
    /// What masses follow.
    masses: Masses,
}

/// The choices of the option `masses`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Masses {
    /// V, and how far the noise is correlated between parameters.
    Collective,
    /// V alone, as in the paper (pL).
    Noise,
    /// Nothing: all are 1 (naive-pL).
    Uniform,
}

/// `sampler::pseudo_langevin`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
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
          root mean square per step (M ≥ 400 δt²·T/⟨w²⟩).\n\n\
          V counts the noise of each parameter alone. The noise of a network is correlated between parameters: it heats a few stiff directions far \
          more than 𝒯 says, to T·(1+(1+c1²)𝒯) in a direction where its ratio is 𝒯. The collective ratio tr Q²/tr Q, where Q is the matrix that has the \
          𝒯_i on its diagonal, is the mean of the ratios of all directions, each weighted by the noise in it; it is measured with V and reported as \
          `ratio_collective`. By default the masses are multiplied, in burn-in, until it is `ratio`. With masses: \"noise\" they follow V alone, as \
          published: chains move up to a hundred times faster, and the law is off (on digits, 64-16-10, m = 30 of 300, the collective ratio is about 1 \
          and the cost 4 to 11 % too large). The collective ratio falls with m.",
    arguments: &[],
    options: &[
        gradient::BATCH,
        gradient::GRADIENT,
        option(
            "ratio",
            Kind::Float(Range::Between(1e-6, 0.5)),
            "0.03",
            "𝒯, the variance of the minibatch noise over that of the heat bath: of all directions together, or of each parameter with masses: \"noise\".",
        ),
        optional(
            "ratio_max",
            Kind::Float(Range::Between(1e-6, 0.5)),
            "2 × ratio",
            "𝒯_max, above which a mass is raised at a refresh, or in burn-in all are; at most 1/(1+c1²).",
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
            "Usual number of steps between two measurements of V; fewer (at least 10) while V changes fast, more while it is steady.",
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
            "Largest number of minibatches for one measurement of V.",
        ),
        option(
            "masses",
            Kind::Choice(&["collective", "noise", "uniform"]),
            "collective",
            "\"collective\": from V and its correlations · \"noise\": from V alone (pL as published) · \"uniform\": all 1 with a small dt (naive-pL).",
        ),
    ],
    example: "sampler::pseudo_langevin(#{ batch: 50, ratio: 0.03 })",
    build: |o| Ok(ConfiguredSampler::new(PseudoLangevin::from_options(o)?, o)),
};

// Relative errors of the mean cost and |w|² per 𝒯, from fits to 𝒯 between 0.003 and 0.1.
const PER_COLLECTIVE_RATIO: [f64; 2] = [0.12, -0.02];
const PER_RATIO: [f64; 2] = [0.25, -0.13];

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
/// |w|² where masses were first set, or last set anew.
const SQUARES: usize = 9;
const RATIO_COLLECTIVE: usize = 10;
/// What masses are multiplied by because noise is correlated between parameters.
const FACTOR: usize = 11;

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
            masses: match o.text("masses")? {
                "collective" => Masses::Collective,
                "noise" => Masses::Noise,
                _ => Masses::Uniform,
            },
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
}

/// What is reported of the masses: each with the scalar that holds it.
const MEASURED: [(Report, usize); 6] = [
    (RATIO_OF_NOISE, RATIO_MEAN),
    (Report("ratio_max"), RATIO_MAX),
    (COLLECTIVE_RATIO, RATIO_COLLECTIVE),
    (Report("refresh_interval"), INTERVAL),
    (Report("raised"), RAISED),
    (Report("resets"), RESETS),
];

/// The ratio 𝒯, averaged over the parameters.
pub const RATIO_OF_NOISE: Report = Report("ratio_mean");

/// tr Q²/tr Q, the ratio along the directions in which the noise is correlated.
pub const COLLECTIVE_RATIO: Report = Report("ratio_collective");

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
            "squares",
            "ratio_collective",
            "factor",
        ]
    }

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::KINETIC,
            report::MINIBATCH_LOSS,
            MEASURED[0].0,
            MEASURED[1].0,
            MEASURED[2].0,
            MEASURED[3].0,
            MEASURED[4].0,
            MEASURED[5].0,
        ]
    }

    fn gradient(&self) -> Option<&Estimator> {
        Some(&self.gradient)
    }

    fn accuracy(&self) -> Accuracy {
        // Masses go like 1/ratio, and the error of the step like 1/mass.
        match self.masses {
            Masses::Collective | Masses::Noise => Accuracy::Order(1),
            Masses::Uniform => Accuracy::Unknown(
                "the noise that V does not capture adds an error of order δt to that of order δt²",
            ),
        }
    }

    fn follows_one_gradient(&self) -> bool {
        true
    }

    fn step_option(&self) -> Option<&'static str> {
        // Masses that follow the noise take δt back: what is left of the step is 𝒯, to which they are inverse.
        (self.masses != Masses::Uniform).then_some("ratio")
    }

    fn bias(&self) -> Option<Bias> {
        let (per, remedy) = match self.masses {
            Masses::Collective => (PER_COLLECTIVE_RATIO, "the error scales with `ratio`"),
            Masses::Noise => (
                PER_RATIO,
                "the error scales with `ratio_collective`, which masses: \"collective\" holds at `ratio`",
            ),
            Masses::Uniform => return None,
        };
        Some(Bias {
            cause: "the minibatch noise is subtracted from the heat bath by its variance per parameter, but it depends on w and is correlated between parameters",
            cost: per[0] * self.ratio,
            norm2: per[1] * self.ratio,
            settings: "m = 20",
            remedy,
        })
    }

    fn check(&self, _: &Target) -> Result<()> {
        anyhow::ensure!(
            self.gradient.batch().is_some(),
            "sampler::pseudo_langevin needs the noise of a minibatch; with gradient::full() use sampler::langevin"
        );
        anyhow::ensure!(
            !self.gradient.has_control_variates(),
            "sampler::pseudo_langevin sets its masses by the noise of a plain minibatch, which control variates remove; use sampler::langevin with them"
        );
        Ok(())
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        let all = vec![true; chains.len()];
        self.measure_variance(chains, &all)?;
        self.start_masses(chains, &all)?;
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

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        // Masses for the other temperature, and fresh momenta, which lag by half a step of ∇U. Masses follow from what is known of V and of the
        // size of the weights: were they to follow from where the chain now is, the law would not stay what it is.
        let changed = |b: &Before, m: &Member| b.stale || b.temperature != m.temperature;
        let which: Vec<_> = before
            .iter()
            .zip(&*chains.members)
            .map(|(b, m)| changed(b, m))
            .collect();
        self.set_masses(chains, &which)?;
        self.note_ratios(chains)?;
        self.start_momenta(chains, &which, 3)?;
        // Elsewhere the noise may be another: its variance is measured at the next step.
        let step = chains.step as f64;
        for (c, _) in before.iter().enumerate().filter(|(_, b)| b.redrawn) {
            chains.scalars(c)[NEXT] = step;
        }
        Ok(())
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
        chains.report_virial(Gradient)?;
        let vectors = [Params, MOMENTUM, Gradient, MASS, VARIANCE];
        chains.map_with_noise(&STEP, &vectors, (Purpose::Noise, 0), |_, m| {
            self.coefficients(m.temperature)
        })?;
        chains.engine.reflect(Some(MOMENTUM))?;
        let per = 1.0 / chains.dim() as f64;
        chains.report_sum(report::KINETIC, &TWICE_KINETIC, &[MOMENTUM, MASS], per)?;
        chains.report_loss(report::MINIBATCH_LOSS)?;
        for (name, scalar) in MEASURED {
            chains.report_scalar(name, scalar)?;
        }
        if chains.step.is_multiple_of(COOLING as u64) {
            self.watch_heat(chains)?;
        }
        Ok(())
    }
}
