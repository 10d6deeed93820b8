//! The energies of a run, rung by rung, as estimators of its evidence take them.

use crate::diagnostic;
use crate::diagnostic::evidence::{Ladder, Replicas};
use crate::error::Result;
use crate::simulation::judge::lacking;
use crate::simulation::run::{Run, TEMPERED_ENERGY};
use crate::simulation::temper::Temper;

/// The energies of a run as the estimators take them: inverse temperatures, increasing, and draws of each.
pub struct Energies {
    pub(super) betas: Vec<f64>,
    pub(super) draws: Vec<Vec<Vec<f64>>>,
    pub(super) replicas: Replicas,
}

impl Energies {
    /// Of a ladder, or of a sweep whose prior is flat (then all of U is likelihood): what evidence follows from.
    pub fn of(run: &Run) -> Result<Self> {
        let info = &run.info;
        let whole = info.ladder.is_none() && info.law() == Temper::Energy && !info.walls;
        anyhow::ensure!(!info.prior_tempered && !whole, Self::refused(run));
        Self::at_rungs(run)
    }

    fn refused(run: &Run) -> anyhow::Error {
        anyhow::anyhow!(
            "run '{}' is of the kind '{}', in which the prior is tempered too, so that it says nothing about the evidence; use exchange(…) with temper: \"likelihood\", or a sweep with temper: \"likelihood\" (or a uniform_box prior) that observes cost",
            run.info.name,
            run.info.kind
        )
    }

    /// What temperatures divide, whatever that is.
    pub fn at_rungs(run: &Run) -> Result<Self> {
        let info = &run.info;
        let (name, factor, replicas) = match &info.ladder {
            Some(_) => (TEMPERED_ENERGY, 1.0, Replicas::Exchanging),
            None => {
                anyhow::ensure!(
                    info.has_temperatures(),
                    "run '{}' is a sample at one temperature; use sweep(…) or exchange(…)",
                    info.name
                );
                // Where R is flat, U and s·L differ by a constant at most.
                let flat = info.walls && !info.prior_tempered;
                let cost = ("cost", info.scale, Replicas::Independent);
                let energy = ("energy", 1.0, Replicas::Independent);
                match info.law() {
                    Temper::Likelihood => cost,
                    Temper::Energy if flat && info.column("energy").is_err() => cost,
                    Temper::Energy => energy,
                    Temper::Prior => return Err(Self::refused(run)),
                }
            }
        };
        let known = info.ladder.is_some() || info.column(name).is_ok();
        anyhow::ensure!(
            known,
            "run '{}' does not record {name}: give `observe: [observable::{name}()]` to the sweep",
            info.name
        );
        let mut out = Self {
            betas: Vec::new(),
            draws: Vec::new(),
            replicas,
        };
        // From hot to cold, in whatever order a sweep has them.
        let mut order: Vec<usize> = (0..info.temperatures.len()).collect();
        order.sort_by(|a, b| info.temperatures[*b].total_cmp(&info.temperatures[*a]));
        for rung in order {
            let mut draws = run.draws(name, 0, rung, false)?;
            draws.iter_mut().flatten().for_each(|e| *e *= factor);
            let t = info.temperatures[rung];
            anyhow::ensure!(
                draws.iter().flatten().all(|e| e.is_finite()) || t.is_finite(),
                "run '{}': the energy of a draw from the prior is not finite; ln Z from a ladder needs finite energies everywhere, `smc` does not",
                info.name
            );
            out.betas.push(1.0 / info.temperatures[rung]);
            out.draws.push(draws);
        }
        // A ladder that has lost a replica is no longer one; the others are not the worse for it.
        let chains = info.chains;
        let sound = |c: &usize| {
            (0..info.temperatures.len()).all(|t| run.failures[t * chains + c].is_none())
        };
        let keep: Vec<usize> = (0..chains).filter(sound).collect();
        anyhow::ensure!(
            !keep.is_empty(),
            "run '{}': every ladder has a chain that failed",
            info.name
        );
        for draws in &mut out.draws {
            *draws = keep
                .iter()
                .map(|c| std::mem::take(&mut draws[*c]))
                .collect();
        }
        Ok(out)
    }

    /// The rungs from the hottest to `temperature`; whether that is one of them.
    pub(super) fn up_to(mut self, temperature: f64) -> (Self, bool) {
        let beta = 1.0 / temperature;
        let close = |b: f64| (b / beta - 1.0).abs() < 1e-9;
        match self.betas.iter().position(|b| close(*b)) {
            Some(at) => {
                self.betas.truncate(at + 1);
                self.draws.truncate(at + 1);
                (self, true)
            }
            None => (self, false),
        }
    }

    /// What the worst rung lacks of convergence, in words; none if none lacks anything. Draws of the prior are independent.
    pub(super) fn lacking(&self) -> Option<String> {
        let of = |(beta, draws): (&f64, &Vec<Vec<f64>>)| {
            let numbers = [
                diagnostic::rhat_rank(draws),
                diagnostic::ess_bulk(draws),
                diagnostic::ess_tail(draws),
            ];
            let (says, factor) = lacking("the energy", numbers)?;
            Some((1.0 / beta, says, factor.unwrap_or(f64::INFINITY)))
        };
        let rungs = self.betas.iter().zip(&self.draws);
        let each = rungs.filter(|(beta, _)| **beta > 0.0).filter_map(of);
        let (t, says, factor) = each.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let times = match factor.is_finite() {
            true => format!(", so take about {factor:.0} times as many steps"),
            false => String::new(),
        };
        Some(format!("at T = {t:.4e}: {says}{times}"))
    }

    pub(super) fn ladder(&self) -> Result<Ladder<'_>> {
        Ladder::new(&self.betas, &self.draws)
    }
}
