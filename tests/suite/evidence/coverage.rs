//! Error bars over many synthetic data sets: a bar of one standard error contains the truth in 68 % of them.

use super::synthetic::{Energies, Gaussian, uniform};
use ergodic::diagnostic::evidence::*;
use std::collections::BTreeMap;

const SETS: u64 = 200;

/// What was found for one quantity over all data sets.
#[derive(Default)]
pub struct Record {
    found: Vec<(Estimate, f64)>,
}

impl Record {
    /// Without an error there is no interval.
    pub fn push(&mut self, estimate: Estimate, truth: f64) {
        if !estimate.standard_error.is_nan() {
            self.found.push((estimate, truth));
        }
    }

    fn share(&self) -> f64 {
        let inside = |(e, truth): &&(Estimate, f64)| (e.value - truth).abs() < e.standard_error;
        self.found.iter().filter(inside).count() as f64 / self.found.len() as f64
    }

    /// Mean reported variance over the observed one about the truth.
    fn calibration(&self) -> f64 {
        let reported: f64 = self
            .found
            .iter()
            .map(|(e, _)| e.standard_error.powi(2))
            .sum();
        let observed: f64 = self.found.iter().map(|(e, t)| (e.value - t).powi(2)).sum();
        reported / observed
    }

    fn bias(&self) -> f64 {
        let z = self
            .found
            .iter()
            .map(|(e, t)| (e.value - t) / e.standard_error);
        z.sum::<f64>() / self.found.len() as f64
    }
}

pub type Records = BTreeMap<&'static str, Record>;

/// Prints what was measured; fails where the share of bars with the truth in them is 4 binomial deviations off 68 %.
pub fn check(title: &str, records: &Records) {
    for (name, record) in records {
        println!(
            "{title:32} {name:24} coverage {:5.1} %  reported/observed variance {:.2}  mean z {:+.2}",
            100.0 * record.share(),
            record.calibration(),
            record.bias()
        );
    }
    for (name, record) in records {
        let n = record.found.len() as f64;
        assert!(n >= 0.5 * SETS as f64, "{title}, {name}: {n} intervals");
        let bound = 4.0 * (0.68 * 0.32 / n).sqrt();
        assert!(
            (record.share() - 0.68).abs() < bound,
            "{title}, {name}: {}",
            record.share()
        );
    }
}

/// Everything that estimates ln Z(beta_R) - ln Z(beta_1), and two reweighted energies.
fn record(
    problem: Gaussian,
    betas: &[f64],
    energies: &Energies,
    replicas: Replicas,
    into: &mut Records,
) {
    let ladder = Ladder::new(betas, energies).unwrap();
    let last = betas[betas.len() - 1];
    let exact = problem.ln_z(last) - problem.ln_z(betas[0]);
    let trapezoid: f64 = betas
        .windows(2)
        .map(|b| -0.5 * (b[1] - b[0]) * (problem.mean(b[0]) + problem.mean(b[1])))
        .sum();
    let mut push = |name, estimate, truth| into.entry(name).or_default().push(estimate, truth);
    let integral = thermodynamic_integration(&ladder, replicas).unwrap();
    push("trapezoid", integral.trapezoid.ln_z, trapezoid);
    push("corrected trapezoid", integral.corrected.ln_z, exact);
    let stones = stepping_stone(&ladder, replicas).unwrap();
    push("stepping stone forward", stones.forward, exact);
    push("stepping stone backward", stones.backward, exact);
    push("stepping stone average", stones.average, exact);
    let mbar = Mbar::solve(&ladder).unwrap();
    push("MBAR", mbar.log_evidence(replicas).unwrap(), exact);
    let end = betas.len() - 1;
    let asymptotic = Estimate {
        value: mbar.ln_z[end],
        standard_error: mbar.covariance[end][end].sqrt(),
    };
    push("MBAR asymptotic", asymptotic, exact);
    // Off the rungs.
    let beta = 0.5 * (betas[1] + betas[2]);
    let moments = mbar.energy(beta, replicas).unwrap();
    push("reweighted <E>", moments.mean, problem.mean(beta));
    let capacity = beta * beta * problem.variance(beta);
    push("reweighted C", moments.heat_capacity, capacity);
    let root: Energies = energies
        .iter()
        .map(|chains| {
            chains
                .iter()
                .map(|c| c.iter().map(|e| (-e).exp()).collect())
                .collect()
        })
        .collect();
    let shifted = problem.ln_z(beta + 1.0) - problem.ln_z(beta);
    let found = mbar.expectation(beta, &root, replicas).unwrap().estimate;
    push("reweighted <exp(-E)>", found, shifted.exp());
    push(
        "MBAR ln Z off the rungs",
        mbar.ln_z_at(beta, replicas).unwrap().estimate,
        problem.ln_z(beta) - problem.ln_z(betas[0]),
    );
}

/// Null: the bars of every estimator contain the truth in 68 % of data sets, for independent rungs of autocorrelated
/// draws (autocorrelation time of E: 4.6) and of independent ones.
#[test]
#[ignore = "long: tests/run"]
fn error_bars_cover_for_independent_rungs() {
    for (dim, rungs, first, phi, draws) in [
        (2, 8, 0.0, 0.8, 500),
        (10, 7, 0.3, 0.8, 500),
        (50, 14, 0.0, 0.0, 200),
    ] {
        let problem = Gaussian {
            dim,
            prior_variance: 4.0,
        };
        let betas = problem.ladder(first, 2.5, rungs);
        let mut records = Records::new();
        for seed in 0..SETS {
            let energies = problem.draws(&betas, (2, draws), (phi, 0.0), 1000 * dim as u64 + seed);
            record(
                problem,
                &betas,
                &energies,
                Replicas::Independent,
                &mut records,
            );
        }
        check(&format!("d {dim}, first {first}, phi {phi}"), &records);
    }
}

/// Null: the bars cover for replica exchange, whose rungs are correlated.
#[test]
#[ignore = "long: tests/run"]
fn error_bars_cover_for_replica_exchange() {
    let problem = Gaussian {
        dim: 4,
        prior_variance: 4.0,
    };
    let betas = problem.ladder(0.0, 2.5, 7);
    let mut records = Records::new();
    let mut apart = Records::new();
    for seed in 0..SETS {
        let energies = problem.exchange(&betas, (2, 600), 0.9, 5000 + seed);
        record(
            problem,
            &betas,
            &energies,
            Replicas::Exchanging,
            &mut records,
        );
        record(
            problem,
            &betas,
            &energies,
            Replicas::Independent,
            &mut apart,
        );
    }
    records.remove("MBAR asymptotic");
    check("replica exchange", &records);
    for (name, record) in &apart {
        println!(
            "taken for independent            {name:24} coverage {:5.1} %  reported/observed variance {:.2}",
            100.0 * record.share(),
            record.calibration()
        );
    }
}

/// Null: rungs that share 80 % of their noise are as good as independent. Taken for independent, the bars of the
/// integral must be too short by more than the coverage test can miss; taken for what they are, they must cover.
#[test]
#[ignore = "long: tests/run"]
fn correlated_rungs_are_told_from_independent_ones() {
    let problem = Gaussian {
        dim: 10,
        prior_variance: 4.0,
    };
    let betas = problem.ladder(0.0, 2.5, 9);
    let (mut together, mut apart) = (Records::new(), Records::new());
    for seed in 0..SETS {
        let energies = problem.draws(&betas, (2, 500), (0.8, 0.8), 9000 + seed);
        record(
            problem,
            &betas,
            &energies,
            Replicas::Exchanging,
            &mut together,
        );
        record(
            problem,
            &betas,
            &energies,
            Replicas::Independent,
            &mut apart,
        );
    }
    together.remove("MBAR asymptotic");
    check("common noise", &together);
    for name in ["trapezoid", "corrected trapezoid", "MBAR"] {
        println!(
            "common noise, as independent: {name} {:.3}",
            apart[name].share()
        );
        assert!(apart[name].share() < 0.68 - 4.0 * (0.68 * 0.32 / SETS as f64).sqrt());
    }
}

/// Null: bootstrap errors of two estimators cover, over blocks of all rungs together where replicas exchange and of each
/// rung alone where they do not.
#[test]
#[ignore = "long: tests/run"]
fn the_block_bootstrap_covers() {
    let problem = Gaussian {
        dim: 4,
        prior_variance: 4.0,
    };
    let betas = problem.ladder(0.0, 2.5, 5);
    for (title, replicas) in [
        ("bootstrap, exchange", Replicas::Exchanging),
        ("bootstrap, independent", Replicas::Independent),
    ] {
        let mut records = Records::new();
        for seed in 0..SETS {
            let shape = (2, 300);
            let energies = match replicas {
                Replicas::Exchanging => problem.exchange(&betas, shape, 0.8, 20_000 + seed),
                Replicas::Independent => problem.draws(&betas, shape, (0.8, 0.0), 30_000 + seed),
            };
            let ladder = Ladder::new(&betas, &energies).unwrap();
            let mbar = Mbar::solve(&ladder).unwrap();
            let statistic = |ladder: &Ladder, _: &Blocks| {
                let mbar = mbar.solve_again(ladder)?;
                Ok(vec![
                    stepping_stone(ladder, replicas)?.average.value,
                    mbar.ln_z[mbar.ln_z.len() - 1],
                ])
            };
            let options = BootstrapOptions {
                replicates: 30,
                block: block_length(&ladder),
                replicas,
            };
            let values = statistic(&ladder, &Blocks::default()).unwrap();
            let spread = block_bootstrap(&ladder, options, uniform(seed), statistic).unwrap();
            let names = ["stepping stone average", "MBAR"];
            for ((name, value), spread) in names.into_iter().zip(values).zip(spread) {
                assert_eq!(spread.failed, 0);
                let estimate = Estimate {
                    value,
                    standard_error: spread.standard_error,
                };
                records
                    .entry(name)
                    .or_default()
                    .push(estimate, problem.ln_z(2.5));
            }
        }
        check(title, &records);
    }
}
