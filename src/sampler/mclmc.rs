//! Microcanonical Langevin Monte Carlo.

use super::adaptation::{
    self, ADAPT, ADAPT_MASS, Adaptation, DT, ENERGY, GRADIENT, LOG_MEAN, MASSES, RANK,
};
use super::hmc::Hmc;
use super::microcanonical::{Direction, GRADIENTS, rounding};
use super::{Accuracy, Before, ConfiguredSampler, OfTemperature, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::options::{Entry, Kind, Range, option, optional};
use crate::target::Target;
use std::sync::Arc;

/// Samples exp(-U/T) as the step goes to 0, by microcanonical dynamics whose direction is slowly forgotten.
struct Mclmc {
    dt: Option<f64>,
    /// Distance after which the direction is forgotten, as a part of √N standard deviations.
    length: f64,
    /// The same in steps, if that is given.
    steps: Option<f64>,
    /// Var(Δ)/N that the step size is adapted to.
    variance: f64,
    adaptation: Adaptation,
    /// What brings chains to the typical set.
    hmc: Hmc,
}

/// `sampler::mclmc`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "mclmc",
    doc: "Samples exp(-U/T) as δt → 0, by microcanonical Langevin dynamics (MCLMC).\n\n\
          A point moves at constant speed, |u| = 1; the gradient turns its direction, and noise lets it forget: `u ← (u + νη)/|u + νη|` with ν² = (e^(2δt/L) - 1)/N \
          (Robnik, De Luca, Silverstein & Seljak 2023; Robnik & Seljak 2024). One step of the minimal-norm scheme takes two gradients over all examples, and nothing is rejected. \
          What a finite step adds to the law grows with Var(Δ)/N, where Δ is the error of the energy in a step \
          (`energy_variance`): the step size is adapted to `variance` in burn-in. sampler::mams is the same with rejections, and exact.\n\n\
          Burn-in begins with trajectories of sampler::hmc, which find the typical set from anywhere. The variances of the parameters are collected in burn-in for diagonal masses, as of sampler::hmc; L is then `length` times √N in units of the standard deviations. At the \
          walls of prior::uniform_box the direction is reflected. Needs two parameters or more.",
    arguments: &[],
    options: &[
        option(
            "variance",
            Kind::Float(Range::Positive),
            "1e-6",
            "Var(Δ)/N that the step size is adapted to. The step goes with its sixth root, and what it adds to the law with its third. The authors take 5e-4: the energy of a \
             Gaussian of 50 dimensions and condition 4 is then 2.4 % too small.",
        ),
        option(
            "length",
            Kind::Float(Range::Positive),
            "1.0",
            "L, the distance after which the direction is forgotten, over √N standard deviations.",
        ),
        optional(
            "steps",
            Kind::Float(Range::AtLeast(1.0)),
            "by `length`; 100 until masses are given or adapted",
            "Steps after which the direction is forgotten, in the place of `length`.",
        ),
        optional(
            "dt",
            Kind::Float(Range::Positive),
            "found at the start",
            "Distance of a step, in standard deviations where masses are adapted (the first one, if adapted).",
        ),
        ADAPT,
        ADAPT_MASS,
        RANK,
        MASSES,
    ],
    example: "sampler::mclmc(#{ variance: 1e-5 })",
    build: |o| {
        let (dt, adapts) = (o.opt_float("dt"), o.bool("adapt")?);
        anyhow::ensure!(
            dt.is_some() || adapts,
            "{}: option 'adapt' is false, and there is no 'dt'",
            o.owner()
        );
        let adaptation = Adaptation::from_options(o, (&["momentum"], &SCALARS))?;
        let mclmc = Mclmc {
            hmc: Hmc::approaching(&adaptation),
            adaptation,
            dt,
            length: o.float("length")?,
            steps: o.opt_float("steps"),
            variance: o.float("variance")?,
        };
        Ok(ConfiguredSampler::new(mclmc, o))
    },
};

/// The first step, where none is given.
const FIRST: f64 = 0.1;

/// Steps after which the direction is forgotten where the standard deviations are not known.
const STEPS: f64 = 100.0;

/// Steps that the estimate of the step size remembers, and how far from the variance that is wanted an error still counts (Robnik et al. 2023, §4).
const REMEMBERED: f64 = 150.0;
const TRUST: f64 = 1.5;

/// Names of the scalars after those of the adaptation: L (0 while it is not known), and the weighted mean of Var(Δ)/(N δt⁶) with its weight.
const SCALARS: [&str; 3] = ["length", "weighted_variance", "weight"];
const LENGTH: usize = adaptation::SCALARS.len();
const WEIGHTED: usize = LENGTH + 1;
const WEIGHT: usize = LENGTH + 2;

/// The direction: a vector of the state, after those of the adaptation.
const DIRECTION: Vector = Vector::State(adaptation::VECTORS.len());
const HOME: [Vector; 2] = [Vector::Scratch(0), Vector::Scratch(1)];

impl Mclmc {
    /// Begin from the typical set.
    fn begin(&self, chains: &mut Chains) {
        Adaptation::restart(chains, &vec![self.dt.unwrap_or(FIRST); chains.len()]);
    }

    fn direction(&self) -> Direction {
        Direction {
            vector: DIRECTION,
            metric: self.adaptation.metric,
        }
    }

    /// Whether the energy changes by less in a step than it fluctuates: a step in burn-in that is not small is taken back.
    fn is_small(&self, error: f64, n: f64) -> bool {
        error * error <= n.max(10.0)
    }

    /// A step size from this step's error of the energy, which goes with the third power of the step, but for what rounding adds.
    fn adapt(&self, s: &mut [f64], (error, rounding): (f64, f64), n: f64) {
        if !self.is_small(error, n) {
            s[DT] *= 0.5;
            (s[WEIGHTED], s[WEIGHT]) = (0.0, 0.0);
            return;
        }
        let of_step = (error * error - rounding * rounding).max(0.0);
        let found = of_step / n / self.variance + 1e-8;
        let weight = (-0.5 * (found.ln() / (6.0 * TRUST)).powi(2)).exp();
        let kept = (REMEMBERED - 1.0) / (REMEMBERED + 1.0);
        s[WEIGHTED] = kept * s[WEIGHTED] + weight * found / s[DT].powi(6);
        s[WEIGHT] = kept * s[WEIGHT] + weight;
        s[DT] = (s[WEIGHTED] / s[WEIGHT]).powf(-1.0 / 6.0);
        // What it starts again from where rungs move.
        s[LOG_MEAN] = s[DT].ln();
    }
}

impl Sampler for Mclmc {
    fn name(&self) -> &'static str {
        "mclmc"
    }

    fn vectors(&self) -> &'static [&'static str] {
        self.adaptation.vectors
    }

    fn scalars(&self) -> &'static [&'static str] {
        self.adaptation.scalars
    }

    fn scratch(&self) -> usize {
        4 + self.adaptation.scratch()
    }

    fn info(&self) -> &'static [Report] {
        &[
            report::VIRIAL,
            report::ENERGY_VARIANCE,
            report::STEP_SIZE,
            report::LEAPFROG,
        ]
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Order(2)
    }

    fn check(&self, target: &Target) -> Result<()> {
        Direction::check(self.name(), target)?;
        self.adaptation.check(self.name(), target, false)
    }

    fn note(&self, _burn_in: u64) -> Option<&'static str> {
        (self.adaptation.step && self.variance >= 1e-7).then_some(
            "a finite step makes energies too small: with variance 1e-6 by 0.4 % for a Gaussian of 50 dimensions, by 0.02(5) % for a network of 75 parameters, and in proportion to its \
             third root; sampler::mams has no such error",
        )
    }

    fn init(&self, chains: &mut Chains) -> Result<()> {
        self.adaptation.init_masses(chains)?;
        chains.engine.gradient()?;
        chains.copy(Gradient, GRADIENT)?;
        Adaptation::note_energies(chains)?;
        match self.adaptation.approaches(chains, 0) {
            true => self.hmc.begin(chains)?,
            false => self.begin(chains),
        }
        let n = chains.dim() as f64;
        for c in 0..chains.len() {
            chains.scalars(c)[LENGTH..=WEIGHT].fill(0.0);
            if self.adaptation.first.is_some() {
                chains.scalars(c)[LENGTH] = self.length * n.sqrt();
            }
        }
        self.direction().draw(chains, 0)
    }

    fn of_temperature(&self) -> OfTemperature {
        self.adaptation.of_temperature()
    }

    fn change_temperature(&self, chains: &mut Chains, before: &[Before]) -> Result<()> {
        // A direction is one with respect to the masses, and these are others now.
        const FRESH: Vector = Vector::Scratch(0);
        let fresh = Direction {
            vector: FRESH,
            metric: self.adaptation.metric,
        };
        fresh.draw(chains, 2)?;
        let moved = Before::moved(chains, before);
        chains.engine.copy(FRESH, DIRECTION, &moved)?;
        self.adaptation
            .change_temperature(chains, before, Some(GRADIENT))
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let adapts = self.adaptation.step && chains.step < chains.burn_in;
        let n = chains.dim() as f64;
        if self.adaptation.approaches(chains, 0) {
            self.hmc.approach(chains)?;
            if !self.adaptation.approaches(chains, 1) {
                self.begin(chains);
            }
            return chains.report(report::ENERGY_VARIANCE, |_| f64::NAN);
        }
        chains.copy(GRADIENT, Gradient)?;
        chains.report_virial(Gradient)?;
        let mut rounded = Vec::new();
        if adapts {
            chains.copy(Params, HOME[0])?;
            chains.copy(DIRECTION, HOME[1])?;
            rounded = rounding(chains)?;
        }
        let (dt, once) = (chains.scalar(DT), vec![1; chains.len()]);
        let direction = self.direction();
        let norms = direction.norms(chains)?;
        let gained = direction.go(chains, (&dt, &once), norms)?;
        let (energies, start) = (chains.engine.energies()?, chains.scalar(ENERGY));
        let error = |c: usize| {
            let change = (energies[c] - start[c]) / chains.members[c].temperature;
            change + gained[c]
        };
        let errors: Vec<f64> = (0..chains.len()).map(error).collect();
        let good: Vec<bool> = errors
            .iter()
            .map(|e| e.is_finite() && (!adapts || self.is_small(*e, n)))
            .collect();
        let bad: Vec<bool> = good.iter().map(|g| !g).collect();
        chains.engine.copy(Gradient, GRADIENT, &good)?;
        for c in 0..chains.len() {
            if good[c] {
                chains.scalars(c)[ENERGY] = energies[c];
            } else if !adapts {
                chains.fail(c, "a step led to where the energy is no number: take a smaller `variance` or `dt`");
            }
        }
        if adapts && bad.contains(&true) {
            chains.engine.copy(HOME[0], Params, &bad)?;
            chains.engine.copy(HOME[1], DIRECTION, &bad)?;
        }
        let forgotten = |m: &crate::engine::Member| match (self.steps, m.scalars[LENGTH] > 0.0) {
            (Some(steps), _) => 1.0 / steps,
            (None, true) => m.scalars[DT] / m.scalars[LENGTH],
            (None, false) => 1.0 / STEPS,
        };
        let part = |m: &crate::engine::Member| ((2.0 * forgotten(m)).exp_m1() / n).sqrt();
        direction.refresh(chains, part)?;
        let variances: Vec<_> = errors.iter().map(|e| e * e / n).collect();
        chains.report_values(report::ENERGY_VARIANCE, &variances)?;
        chains.report_values(report::STEP_SIZE, &dt)?;
        chains.report(report::LEAPFROG, |_| GRADIENTS as f64)?;
        if !adapts {
            return Ok(());
        }
        for (c, rounding) in rounded.into_iter().enumerate() {
            self.adapt(chains.scalars(c), (errors[c], rounding), n);
        }
        let windows = adaptation::long_windows(chains.burn_in);
        self.adaptation
            .collect_masses(chains, windows, |chains, _| {
                // In units of the standard deviations: the length is known, and the step of the old units a first guess.
                for c in 0..chains.len() {
                    let s = chains.scalars(c);
                    s[LENGTH..=WEIGHT].fill(0.0);
                    s[LENGTH] = self.length * n.sqrt();
                }
                direction.draw(chains, 1)?;
                Ok(vec![FIRST * n.sqrt().max(1.0); chains.len()])
            })
    }
}
