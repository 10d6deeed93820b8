//! What a ladder has done since burn-in: how often neighbours swap, how far replicas get, and the energy on every rung.

use super::{
    IndexProcess, PairStatistics, RoundReport, betas_of, guarded, recommended_rungs,
    round_trip_rate, round_trip_rate_limit,
};
use crate::diagnostic::verdict::LEAST_ESS;
use crate::diagnostic::{self, Verdict};
use crate::error::{Result, count};
use crate::simulation::run::{Run, TEMPERED_ENERGY};
use crate::simulation::standing::Judged;
use crate::simulation::summary::with_error;
use crate::table::Table;
use serde_json::{Map, Value, json};
use std::fmt;

/// Bins in which energies of neighbours are compared.
const BINS: usize = 50;

/// Records whose rungs are kept for a figure: more cannot be told apart.
const SHOWN: usize = 250;

/// The energy that β multiplies, on one rung.
#[derive(Debug, Clone)]
pub struct RungEnergy {
    /// Mean and its standard error.
    pub mean: (f64, f64),
    /// Effective sample size of its mean.
    pub ess: f64,
    /// Heat capacity C = Var(E)/T² and its standard error; dimensionless. 0 on the prior rung.
    pub heat_capacity: (f64, f64),
}

/// The report of the ladders of a run.
#[derive(Debug, Clone)]
pub struct LadderReport {
    /// Name of the run.
    pub name: String,
    /// How they exchange, in words.
    pub how: String,
    /// T per rung.
    pub temperatures: Vec<f64>,
    /// Independent ladders.
    pub ladders: usize,
    /// Swaps since burn-in, per ladder.
    pub sweeps: u64,
    /// Statistics of each pair of neighbours.
    pub pairs: Vec<PairStatistics>,
    /// Λ, the sum of the rejections, and its standard error.
    pub barrier: (f64, f64),
    /// λ(β) = dΛ/dβ on each rung, in the unit of E; NaN where it is not known.
    pub local_barrier: Vec<f64>,
    /// The number of rungs with the most round trips per work, 2Λ + 1.
    pub recommended_rungs: usize,
    /// The temperatures of so many rungs between the same ends on which all rejections are equal, without that of the prior; none
    /// where no swap was rejected.
    pub recommended_temperatures: Vec<f64>,
    /// Round trips of all replicas of all ladders, cold → hot → cold.
    pub round_trips: u64,
    /// That ladders have lost a replica, in words; none if none has.
    pub broken: Option<String>,
    /// What the ladders lack in round trips, in words; none if a replica has made one.
    pub lacking: Option<String>,
    /// Arrivals at the coldest rung from the hottest.
    pub restarts: u64,
    /// Share of the replicas that came from the cold end, per rung; NaN where none is known to have come from an end.
    pub flow: Vec<f64>,
    /// Energies.
    pub energies: Vec<RungEnergy>,
    /// Overlap of the histograms of E of each pair, from 0 to 1.
    pub overlaps: Vec<f64>,
    /// Rounds of tuning.
    pub rounds: Vec<RoundReport>,
    /// The index process of the first ladder, the first records after burn-in: number of the record and rung of each replica.
    pub index: Vec<(usize, Vec<u64>)>,
}

impl LadderReport {
    /// Of a run whose chains exchanged temperatures.
    pub fn new(run: &Run) -> Result<Self> {
        let Some(ladders) = &run.ladders else {
            anyhow::bail!(
                "run '{}' is of the kind '{}', whose chains do not exchange temperatures; use exchange(…)",
                run.info.name,
                run.info.kind
            );
        };
        let betas = betas_of(&ladders.temperatures)?;
        let energies: Vec<_> = (0..betas.len())
            .map(|rung| run.draws(TEMPERED_ENERGY, 0, rung, true))
            .collect::<Result<_>>()?;
        let each = betas.iter().zip(&energies);
        let barrier = ladders.barrier();
        let curve = ladders.barrier_curve();
        let recommended_rungs = recommended_rungs(barrier.0).unwrap_or(0);
        let recommended = curve
            .as_ref()
            .ok()
            .and_then(|c| c.ladder(recommended_rungs).ok());
        let recommended = recommended.unwrap_or_default();
        let local = |beta: &f64| curve.as_ref().map_or(f64::NAN, |c| c.local(*beta));
        let trips = || ladders.going().map(IndexProcess::trips);
        let flows: Vec<_> = trips().map(|t| t.flow()).collect();
        let path = ladders.paths.first().map_or(&[][..], Vec::as_slice);
        let rows = path.chunks_exact(betas.len()).enumerate();
        let rows = rows.skip(run.info.warm_draws).take(SHOWN);
        Ok(Self {
            name: run.info.name.clone(),
            how: run.info.ladder.clone().unwrap_or_default(),
            temperatures: ladders.temperatures.clone(),
            ladders: ladders.going().count(),
            sweeps: ladders.going().next().map_or(0, IndexProcess::sweeps),
            pairs: ladders.pairs(),
            barrier,
            local_barrier: betas.iter().map(local).collect(),
            recommended_rungs,
            recommended_temperatures: recommended
                .iter()
                .filter(|b| **b > 0.0)
                .map(|b| 1.0 / b)
                .collect(),
            round_trips: ladders.round_trips(),
            broken: run.broken(),
            lacking: ladders.lacking(),
            restarts: trips().flat_map(|t| t.restarts()).sum(),
            flow: (0..betas.len())
                .map(|rung| {
                    let known = flows.iter().map(|f| f[rung]).filter(|f| f.is_finite());
                    let (sum, count) = known.fold((0.0, 0.0), |(s, n), f| (s + f, n + 1.0));
                    sum / count
                })
                .collect(),
            energies: each
                .map(|(beta, draws)| rung_energy(*beta, draws))
                .collect(),
            overlaps: energies
                .windows(2)
                .map(|two| overlap(&two[0], &two[1]))
                .collect(),
            rounds: ladders.rounds.clone(),
            index: rows
                .map(|(record, rungs)| (record, rungs.to_vec()))
                .collect(),
        })
    }

    /// How far the numbers of the ladders can be relied on, and why no further.
    pub fn judged(&self) -> Judged {
        let mut out = Judged::converged();
        for says in self.broken.iter().chain(&self.lacking) {
            out.add(Verdict::NotYet, says);
        }
        let finite = self.temperatures.iter().zip(&self.energies);
        let finite = finite.filter(|(t, e)| t.is_finite() && e.ess.is_finite());
        let least = finite.min_by(|a, b| a.1.ess.total_cmp(&b.1.ess));
        if let Some((t, e)) = least.filter(|(_, e)| e.ess < LEAST_ESS) {
            out.add(
                Verdict::NotYet,
                format!(
                    "ESS {:.0} of E at T = {t:.4e} (at least {LEAST_ESS:.0})",
                    e.ess
                ),
            );
        }
        out
    }

    /// Round trips per 1000 swaps of one ladder.
    pub fn round_trips_per_1000(&self) -> f64 {
        1000.0 * self.round_trips as f64 / (self.sweeps as f64 * self.ladders as f64)
    }

    /// What it would be, were every step of a replica a fresh draw; and on infinitely many rungs.
    pub fn ideal_round_trips_per_1000(&self) -> [f64; 2] {
        let rejections: Vec<_> = self
            .pairs
            .iter()
            .map(|p| guarded(p.rejection(), p.attempts))
            .collect();
        let rate = round_trip_rate(&rejections).unwrap_or(f64::NAN);
        [
            1000.0 * rate,
            1000.0 * round_trip_rate_limit(self.barrier.0),
        ]
    }

    /// As a map: numbers, and arrays over rungs or pairs.
    pub fn to_map(&self) -> Map<String, Value> {
        let of_pairs =
            |f: &dyn Fn(&PairStatistics) -> f64| self.pairs.iter().map(f).collect::<Vec<_>>();
        let of_rungs =
            |f: &dyn Fn(&RungEnergy) -> f64| self.energies.iter().map(f).collect::<Vec<_>>();
        let [ideal, limit] = self.ideal_round_trips_per_1000();
        let judged = self.judged();
        let map = json!({
            "verdict": judged.verdict,
            "reasons": judged.reasons,
            "temperatures": self.temperatures,
            "ladders": self.ladders,
            "sweeps": self.sweeps,
            "acceptance": of_pairs(&|p| p.acceptance),
            "acceptance_mcse": of_pairs(&|p| p.error),
            "overlap": self.overlaps,
            "barrier": self.barrier.0,
            "barrier_mcse": self.barrier.1,
            "local_barrier": self.local_barrier,
            "recommended_rungs": self.recommended_rungs,
            "recommended_temperatures": self.recommended_temperatures,
            "round_trips": self.round_trips,
            "restarts": self.restarts,
            "round_trips_per_1000": self.round_trips_per_1000(),
            "round_trips_per_1000_ideal": ideal,
            "round_trips_per_1000_limit": limit,
            "flow": self.flow,
            "energy": of_rungs(&|e| e.mean.0),
            "energy_mcse": of_rungs(&|e| e.mean.1),
            "energy_ess": of_rungs(&|e| e.ess),
            "heat_capacity": of_rungs(&|e| e.heat_capacity.0),
            "heat_capacity_mcse": of_rungs(&|e| e.heat_capacity.1),
        });
        match map {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

fn rung_energy(beta: f64, draws: &[Vec<f64>]) -> RungEnergy {
    let numbers = diagnostic::summarise(draws);
    let (variance, error) = diagnostic::variance(draws);
    RungEnergy {
        mean: (numbers.mean, numbers.mcse_mean),
        ess: (numbers.sd / numbers.mcse_mean).powi(2),
        heat_capacity: (beta * beta * variance, beta * beta * error),
    }
}

/// ∫ min(p, q) of two samples, by their histograms over common bins.
fn overlap(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let all = || {
        a.iter()
            .chain(b)
            .flatten()
            .copied()
            .filter(|x| x.is_finite())
    };
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| {
        (l.min(x), h.max(x))
    });
    let share = |sample: &[Vec<f64>]| {
        let mut bins = [0.0; BINS];
        let count = sample.iter().map(Vec::len).sum::<usize>() as f64;
        for x in sample.iter().flatten() {
            let bin = ((x - low) / (high - low) * BINS as f64) as usize;
            bins[bin.min(BINS - 1)] += 1.0 / count;
        }
        bins
    };
    let draws = |sample: &[Vec<f64>]| sample.iter().any(|chain| !chain.is_empty());
    if !draws(a) || !draws(b) {
        return f64::NAN;
    }
    if low >= high {
        // One value; or none that is finite.
        return if low == high { 1.0 } else { f64::NAN };
    }
    share(a).iter().zip(share(b)).map(|(p, q)| p.min(q)).sum()
}

/// As in tables: a temperature, or the word for that of the prior.
fn shown(t: f64) -> String {
    if t.is_finite() {
        format!("{t:.4e}")
    } else {
        "prior".into()
    }
}

impl LadderReport {
    /// A row per rung, below what holds for the whole ladder.
    pub fn table(&self) -> Table {
        let [ideal, _] = self.ideal_round_trips_per_1000();
        let mut out = Table::new([
            "T",
            "swap rate",
            "overlap",
            "flow",
            "E",
            "ESS",
            "C",
            "dΛ/dβ",
        ])
        .line_above(format!("ladder of '{}': {}", self.name, self.how));
        out.above.extend(self.judged().line("equilibrium"));
        let mut out = out
            .line_above(format!(
                "{} of {}, {} swaps each after burn-in; Λ = {}, recommended rungs {}",
                count(self.ladders, "ladder"),
                count(self.temperatures.len(), "rung"),
                self.sweeps,
                with_error(self.barrier.0, self.barrier.1),
                self.recommended_rungs
            ))
            .line_above(format!(
                "round trips {} ({:.2} per 1000 swaps; {ideal:.2} if every step were a fresh draw)",
                self.round_trips,
                self.round_trips_per_1000(),
            ));
        for (k, r) in self.rounds.iter().enumerate() {
            out.above.push(format!(
                "tuning round {}: {} swaps, Λ = {:.3}, rejections within {:.3} of their mean",
                k + 1,
                r.sweeps,
                r.barrier,
                r.spread
            ));
        }
        let blocked: u64 = self.pairs.iter().map(|p| p.blocked).sum();
        if blocked > 0 {
            out.above.push(format!(
                "NOTE: {blocked} swap attempts met a failed replica, which has no energy"
            ));
        }
        for (k, t) in self.temperatures.iter().enumerate() {
            let pair = self.pairs.get(k);
            let overlap = |o: &f64| match o.is_nan() {
                true => "n/a".into(),
                false => format!("{o:.3}"),
            };
            let e = &self.energies[k];
            out.push([
                shown(*t),
                pair.map_or(String::new(), |p| with_error(p.acceptance, p.error)),
                self.overlaps.get(k).map_or(String::new(), overlap),
                format!("{:.3}", self.flow[k]),
                with_error(e.mean.0, e.mean.1),
                format!("{:.0}", e.ess),
                with_error(e.heat_capacity.0, e.heat_capacity.1),
                format!("{:.3e}", self.local_barrier[k]),
            ]);
        }
        out.below.push(
            "swap rate and overlap: with the next hotter rung; flow: share that came from the cold end; C = Var(E)/T²".into(),
        );
        out
    }
}

impl fmt::Display for LadderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    LadderReport: "Ladder",
    entries: to_map, "ladder.to_map() -> map", "All fields of the report as a map.", "the ladder",
    table: table,
}
