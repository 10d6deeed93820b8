//! Adaptation in burn-in, for samplers that accept or reject: dual averaging of the step size, and masses: a diagonal from the
//! variances of the parameters, and directions beside it.
//!
//! All are frozen when burn-in ends. A sampler that adapts has [`SCALARS`] first among its scalars and, if its masses adapt,
//! [`VECTORS`] first among its vectors.

mod options;

use super::directions::{self, Kept};
use super::metric::{MASS, Metric};
use super::{Before, OfTemperature};
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Params};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{FILL, WELFORD};
pub use options::{ADAPT, ADAPT_MASS, MASSES, RANK, names};
use std::sync::Arc;

/// Names of the scalars, in this order from the first.
pub const SCALARS: [&str; 7] = [
    "energy",
    "dt",
    "log_mean_dt",
    "h_bar",
    "mu",
    "count",
    "collected",
];

/// Where the levels are among the scalars, for samplers that have them.
pub const LEVELS: usize = SCALARS.len();

/// Names of the vectors, in this order from the first.
pub const VECTORS: [&str; 4] = ["mass", "warmup_mean", "warmup_m2", "gradient"];

/// The scalar that holds U at the state a chain is in.
pub const ENERGY: usize = 0;
/// The scalar that holds the step size.
pub const DT: usize = 1;
pub const LOG_MEAN: usize = 2;
const H_BAR: usize = 3;
const MU: usize = 4;
const COUNT: usize = 5;
const COLLECTED: usize = 6;

const MEAN: Vector = Vector::State(1);
const M2: Vector = Vector::State(2);
/// The gradient at the chain's parameters.
pub const GRADIENT: Vector = Vector::State(3);

kernel! {
    /// Masses T/Var(w), with five pseudo-observations of what the masses were before.
    SET_MASS = adapt_mass(mass; m2; ; own, before, temperature) {
        mass = temperature / (own * m2 + before * (temperature / mass));
    }
}

/// What is adapted, and to what.
#[derive(Debug, Clone)]
pub struct Adaptation {
    /// Acceptance that the step size is adapted to.
    pub acceptance: f64,
    /// Whether the step size is adapted.
    pub step: bool,
    /// Whether masses are adapted, if burn-in has at least [`Adaptation::LEAST`] steps.
    pub mass: bool,
    /// The diagonal that the masses begin with.
    pub first: Option<Arc<Vec<f32>>>,
    /// The masses.
    pub metric: Metric,
    /// What directions are learnt from.
    kept: Kept,
    /// Names of the state vectors of the sampler.
    pub vectors: &'static [&'static str],
    /// Names of its scalars.
    pub scalars: &'static [&'static str],
}

impl Adaptation {
    /// Steps of burn-in below which masses stay as they are.
    pub const LEAST: u64 = 50;

    /// Vectors that are needed within a step for the masses.
    pub fn scratch(&self) -> usize {
        directions::scratch(self.metric.rank)
    }

    /// What belongs to a temperature: all scalars but the energy, which belongs to the parameters, and the masses with what they are learnt from.
    pub fn of_temperature(&self) -> OfTemperature {
        let (mass, rest) = if self.mass {
            (0..1, 1..3)
        } else {
            (0..0, 0..0)
        };
        let directions = self.metric.vector..self.kept.first;
        let kept = self.kept.first..self.kept.first + 2 * self.kept.most;
        OfTemperature {
            scalars: ENERGY + 1..self.scalars.len(),
            vectors: mass.chain(directions).collect(),
            learning: rest.chain(kept).collect(),
        }
    }

    /// The same with another acceptance.
    pub fn to(&self, acceptance: f64) -> Self {
        Self {
            acceptance,
            ..self.clone()
        }
    }

    /// Start with the masses that were given, 1 otherwise.
    pub fn init_masses(&self, chains: &mut Chains) -> Result<()> {
        match &self.first {
            Some(masses) => chains.engine.write_all(MASS, masses),
            None => chains.map(&FILL, &[MASS], |_, _| [1.0]),
        }
    }

    /// Note U where chains start; a chain whose U is not finite there fails.
    pub fn note_energies(chains: &mut Chains) -> Result<()> {
        for (c, energy) in chains.engine.energies()?.into_iter().enumerate() {
            chains.scalars(c)[ENERGY] = energy;
            if !energy.is_finite() {
                chains.fail(c, format!("the energy at its starting point is {energy}"));
            }
        }
        Ok(())
    }

    /// Start, or start again, with these step sizes.
    pub fn restart(chains: &mut Chains, dt: &[f64]) {
        for (c, dt) in dt.iter().enumerate() {
            Self::restart_one(chains.scalars(c), *dt);
        }
    }

    fn restart_one(s: &mut [f64], dt: f64) {
        s[DT] = dt;
        s[LOG_MEAN] = dt.ln();
        s[MU] = (10.0 * dt).ln();
        s[H_BAR] = 0.0;
        s[COUNT] = 0.0;
    }

    /// After a change of temperature: what chains keep of U and, in `gradient`, of its gradient is computed again where it is stale.
    pub fn change_temperature(
        &self,
        chains: &mut Chains,
        before: &[Before],
        gradient: Option<Vector>,
    ) -> Result<()> {
        let stale: Vec<_> = before.iter().map(|b| b.stale).collect();
        if stale.contains(&true) {
            match gradient {
                Some(kept) => {
                    chains.engine.gradient()?;
                    chains.engine.copy(Gradient, kept, &stale)?;
                }
                None => chains.engine.evaluate()?,
            }
            for (c, energy) in chains.engine.energies()?.into_iter().enumerate() {
                if stale[c] {
                    chains.scalars(c)[ENERGY] = energy;
                }
            }
        }
        for (c, _) in before.iter().enumerate().filter(|(_, b)| b.again) {
            let s = chains.scalars(c);
            if self.step {
                Self::restart_one(s, s[LOG_MEAN].exp());
            }
        }
        Ok(())
    }

    /// Dual averaging (Hoffman & Gelman 2014, §3.2.1) with their constants.
    fn average(&self, s: &mut [f64], accept: f64) {
        s[COUNT] += 1.0;
        let m = s[COUNT];
        let eta = 1.0 / (m + 10.0);
        s[H_BAR] = (1.0 - eta) * s[H_BAR] + eta * (self.acceptance - accept);
        let log_dt = s[MU] - m.sqrt() / 0.05 * s[H_BAR];
        let weight = m.powf(-0.75);
        s[LOG_MEAN] = weight * log_dt + (1.0 - weight) * s[LOG_MEAN];
        s[DT] = log_dt.exp();
    }

    /// After a step with these acceptance probabilities; `find` gives usable step sizes, from a first guess, when masses have changed.
    pub fn after(
        &self,
        chains: &mut Chains,
        accept: &[f64],
        find: impl FnOnce(&mut Chains, f64) -> Result<Vec<f64>>,
    ) -> Result<()> {
        let (warm, done) = (chains.burn_in, chains.step + 1);
        if done > warm || !self.step {
            return Ok(());
        }
        self.learn_step(chains, accept);
        self.collect_masses(chains, windows(warm), find)?;
        if done == warm {
            for c in 0..chains.len() {
                let s = chains.scalars(c);
                s[DT] = s[LOG_MEAN].exp();
            }
        }
        Ok(())
    }

    /// Whether chains have still to find the typical set, so many steps from now.
    pub fn approaches(&self, chains: &Chains, ahead: u64) -> bool {
        self.step && chains.step + ahead < approach(chains.burn_in)
    }

    /// Step sizes from these acceptance probabilities.
    pub fn learn_step(&self, chains: &mut Chains, accept: &[f64]) {
        for (c, accept) in accept.iter().enumerate() {
            self.average(chains.scalars(c), *accept);
        }
    }

    /// After a step of burn-in: collect variances, from a step on, and change the masses where a window ends; then `find` gives usable step sizes.
    pub fn collect_masses(
        &self,
        chains: &mut Chains,
        (first, ends): (u64, Vec<u64>),
        find: impl FnOnce(&mut Chains, f64) -> Result<Vec<f64>>,
    ) -> Result<()> {
        if !self.mass || chains.burn_in < Self::LEAST {
            return Ok(());
        }
        let done = chains.step + 1;
        if done <= first || ends.last().is_none_or(|last| done > *last) {
            return Ok(());
        }
        (0..chains.len()).for_each(|c| chains.scalars(c)[COLLECTED] += 1.0);
        let counts = chains.scalar(COLLECTED);
        chains.map(&WELFORD, &[MEAN, M2, Params], |c, _| {
            [1.0 / counts[c] as f32]
        })?;
        let begin = ends.iter().rev().find(|end| **end < done).unwrap_or(&first);
        let end = ends.iter().find(|end| **end >= done).unwrap_or(&done);
        let window = end - begin;
        if self.metric.rank > 0 {
            self.kept.note(chains, done - begin, window, GRADIENT)?;
        }
        if done != *end {
            return Ok(());
        }
        chains.map(&SET_MASS, &[MASS, M2], |c, m| {
            let n = counts[c];
            let own = n / (n - 1.0) / (n + 5.0);
            [own as f32, (5.0 / (n + 5.0)) as f32, m.temperature as f32]
        })?;
        let count = self.kept.of(window);
        if self.metric.rank > 0 && count >= Kept::LEAST {
            directions::learn(&self.metric, self.kept, chains, count, MEAN)?;
        }
        for v in [MEAN, M2] {
            chains.map(&FILL, &[v], |_, _| [0.0])?;
        }
        (0..chains.len()).for_each(|c| chains.scalars(c)[COLLECTED] = 0.0);
        // The new masses make every frequency about 1.
        let dt = find(chains, 0.1)?;
        Self::restart(chains, &dt);
        Ok(())
    }
}

/// The windows of samplers whose steps are small: the typical set is found first, and windows are long.
pub fn long_windows(warm: u64) -> (u64, Vec<u64>) {
    let part = |percent: u64| warm * percent / 100;
    let first = part(30).max(approach(warm));
    let ends = [part(45), part(65), part(90)];
    // Of fewer draws nothing can be learnt.
    let long = |end: &u64| *end >= first + 16;
    (first, ends.into_iter().filter(long).collect())
}

/// Steps in which chains find the typical set, before the first window: 75 as in Stan, fewer where burn-in is short.
fn approach(warm: u64) -> u64 {
    match warm {
        150.. => 75,
        _ => warm * 15 / 100,
    }
}

/// The windows of burn-in in which variances are collected: steps before the first, and where each ends. As in Stan: 75 steps to
/// find the typical set, windows of 25, 50, 100, …, 50 steps for the step size; in proportion where burn-in is short.
fn windows(warm: u64) -> (u64, Vec<u64>) {
    let first = approach(warm);
    let (last, mut size) = match warm {
        150.. => (warm - 50, 25),
        _ => (warm - warm / 10, warm),
    };
    let (mut at, mut ends) = (first, Vec::new());
    while at < last {
        // A window that left too little for the next takes it all.
        at = if at + 3 * size > last {
            last
        } else {
            at + size
        };
        ends.push(at);
        size *= 2;
    }
    (first, ends)
}

/// A difference of energies over T; infinite where it is no number. A trajectory that ran into NaN or a wall is one of infinite energy:
/// rejected, and worth exp(-∞) = 0.
pub fn relative(difference: f64, temperature: f64) -> f64 {
    let error = difference / temperature;
    if error.is_nan() { f64::INFINITY } else { error }
}

/// From `first` for all chains, double or halve until `error` (ΔH/T of one trial step) crosses ln 2, an acceptance of one half.
///
/// `error` makes the trial steps of these sizes, numbered from 1, and puts the chains back.
pub fn find_step(
    chains: &mut Chains,
    first: f64,
    mut error: impl FnMut(&mut Chains, &[f64], u16) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let mut dt = vec![first; chains.len()];
    let mut direction = vec![0.0; chains.len()];
    let mut found = vec![false; chains.len()];
    for trial in 1..60 {
        let errors = error(chains, &dt, trial)?;
        for (c, error) in errors.iter().enumerate() {
            if found[c] {
                continue;
            }
            let wanted = if *error < std::f64::consts::LN_2 {
                1.0
            } else {
                -1.0
            };
            if direction[c] == 0.0 {
                direction[c] = wanted;
            }
            found[c] = wanted != direction[c];
            if !found[c] {
                dt[c] *= 2f64.powf(wanted);
            } else if wanted < 0.0 {
                dt[c] /= 2.0;
            }
        }
        if found.iter().all(|f| *f) {
            break;
        }
    }
    for c in (0..chains.len()).filter(|c| !found[*c]) {
        chains.fail(c, "no usable step size was found");
    }
    Ok(dt)
}

#[cfg(test)]
mod tests {
    use super::windows;

    #[test]
    fn windows_double_and_end_before_the_last_steps() {
        assert_eq!(windows(1000), (75, vec![100, 150, 250, 450, 950]));
        assert_eq!(windows(150), (75, vec![100]));
        assert_eq!(windows(60), (9, vec![54]));
    }
}
