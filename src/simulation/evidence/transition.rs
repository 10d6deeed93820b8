//! The transition temperature of a ladder: where its heat capacity is highest.

use super::Energies;
use crate::diagnostic::evidence::{
    BootstrapOptions, HeatCapacityPeak, Mbar, block_length, heat_capacity_peak,
};
use crate::error::Result;
use crate::rng::{Purpose, Stream};
use crate::simulation::run::Run;
use crate::simulation::summary::with_error;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::fmt;

/// Resampled ladders for the error bar.
const REPLICATES: usize = 100;

/// Draws per rung and chain above which the bootstrap works on every k-th: it solves for all of them a hundred times.
const MOST_DRAWS: usize = 1000;

/// The heat capacity along a ladder, by MBAR, and its peak.
#[derive(Debug, Clone)]
pub struct Transition {
    /// Temperatures at which the heat capacity is given, increasing.
    pub temperatures: Vec<f64>,
    /// C = Var(E)/T² at these, and its standard error.
    pub heat_capacity: Vec<(f64, f64)>,
    /// Its peak, where it lies within the ladder; otherwise why there is none.
    pub peak: std::result::Result<HeatCapacityPeak, String>,
}

/// The heat capacity of a run between its rungs, and where it peaks.
pub fn transition(run: &Run) -> Result<Transition> {
    let mut energies = Energies::at_rungs(run)?;
    let draws = energies
        .draws
        .iter()
        .flatten()
        .map(Vec::len)
        .min()
        .unwrap_or(0);
    let stride = draws.div_ceil(MOST_DRAWS).max(1);
    for chain in energies.draws.iter_mut().flatten() {
        *chain = chain.iter().step_by(stride).copied().collect();
    }
    let ladder = energies
        .ladder()
        .with_context(|| format!("run '{}'", run.info.name))?;
    let mbar = Mbar::solve(&ladder)?;
    let options = BootstrapOptions {
        replicates: REPLICATES,
        block: block_length(&ladder),
        replicas: energies.replicas,
    };
    let uniform = |replicate: u64, element: u32| {
        Stream::new(run.info.seed, Purpose::Bootstrap, 0, replicate).uniform(element)
    };
    let peak = heat_capacity_peak(&mbar, options, uniform).map_err(|e| format!("{e:#}"));
    let betas: Vec<f64> = energies
        .betas
        .iter()
        .copied()
        .filter(|b| *b > 0.0)
        .collect();
    let mut out = Transition {
        temperatures: Vec::new(),
        heat_capacity: Vec::new(),
        peak,
    };
    for beta in between(&betas).into_iter().rev() {
        let c = mbar.energy(beta, energies.replicas)?.heat_capacity;
        out.temperatures.push(1.0 / beta);
        out.heat_capacity.push((c.value, c.standard_error));
    }
    Ok(out)
}

impl Transition {
    /// As a map.
    pub fn to_map(&self) -> Map<String, Value> {
        let number =
            |f: &dyn Fn(&HeatCapacityPeak) -> f64| json!(self.peak.as_ref().map_or(f64::NAN, f));
        let (c, errors): (Vec<f64>, Vec<f64>) = self.heat_capacity.iter().copied().unzip();
        let entries = [
            ("temperatures", json!(self.temperatures)),
            ("heat_capacity", json!(c)),
            ("heat_capacity_error", json!(errors)),
            ("temperature", number(&|p| p.temperature.value)),
            (
                "temperature_error",
                number(&|p| p.temperature.standard_error),
            ),
            ("low", number(&|p| p.interval.0)),
            ("high", number(&|p| p.interval.1)),
            ("height", number(&|p| p.heat_capacity.value)),
            ("height_error", number(&|p| p.heat_capacity.standard_error)),
            ("reason", json!(self.peak.as_ref().err())),
        ];
        entries
            .map(|(k, v)| (k.to_string(), v))
            .into_iter()
            .collect()
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.peak {
            Ok(p) => write!(
                f,
                "heat capacity peaks at T = {} (68 %: {:.4e} … {:.4e}) with {}; {:.0} % of the resampled ladders have their highest at an end",
                with_error(p.temperature.value, p.temperature.standard_error),
                p.interval.0,
                p.interval.1,
                with_error(p.heat_capacity.value, p.heat_capacity.standard_error),
                100.0 * p.share_at_an_end
            ),
            Err(reason) => write!(f, "no transition: {reason}"),
        }
    }
}

/// Every rung and three points between neighbours, evenly spaced in ln β.
fn between(betas: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = betas
        .windows(2)
        .flat_map(|two| (0..4).map(|k| two[0] * (two[1] / two[0]).powf(f64::from(k) / 4.0)))
        .collect();
    out.extend(betas.last());
    out
}

crate::object::object! {
    Transition: "Transition",
    entries: to_map, "transition.to_map() -> map", "All fields as a map.", "the transition",
}
