use super::*;

const MODEL: Harmonic = Harmonic { k: 2, c: 1e-2 };

/// Temperatures from 1e-2 to 1e3 and the prior: the hot half of the ladder is wasted.
fn start() -> Vec<f64> {
    let mut temperatures: Vec<f64> = (0..11)
        .map(|k| 10f64.powf(-2.0 + 0.5 * f64::from(k)))
        .collect();
    temperatures.push(f64::INFINITY);
    betas_of(&temperatures).unwrap()
}

fn tuned(rounds: &Rounds, seed: u64) -> Tuned {
    let mut round = 0;
    tune_ladder(rounds, &start(), |betas, sweeps| {
        round += 1;
        Ok(MODEL
            .new_run((Pairs::Alternating, betas), seed + round, sweeps)
            .pairs())
    })
    .unwrap()
}

/// Null: all rejections on the tuned ladder are equal. They are known exactly, so that what is left is the noise of the round
/// that placed the rungs, and the tolerance: the ladder passed with |r - mean| ≤ tolerance, measured to one standard
/// error e, so that the exact spread is at most tolerance + 4e.
#[test]
fn tuning_makes_rejections_equal_and_stops() {
    let rounds = Rounds {
        first: 64,
        most: 14,
        tolerance: 0.02,
    };
    let result = tuned(&rounds, 70);
    for round in &result.rounds {
        println!(
            "round {}: {} sweeps, Λ = {:.3}, spread {:.4}",
            round.number, round.sweeps, round.barrier, round.spread
        );
    }
    let last = result.rounds.last().unwrap();
    assert!(result.equal && result.rounds.len() < 14 && result.betas == last.betas);
    assert_eq!((result.betas[0], result.betas[11]), (start()[0], 0.0));
    let exact = MODEL.rejections(&result.betas);
    let mean = exact.iter().sum::<f64>() / 11.0;
    for (r, e) in exact.iter().zip(&last.errors) {
        assert!(
            (r - mean).abs() < rounds.tolerance + 4.0 * e,
            "{r} {mean} {e}"
        );
    }
    let first = &result.rounds[0];
    assert!(first.spread > 0.2, "the ladder to tune is good already");
    assert!((last.barrier - mean * 11.0).abs() < 0.1);
    assert_eq!(
        last.recommended_rungs,
        1 + (2.0 * last.barrier).ceil() as usize
    );
    for (number, round) in result.rounds.iter().enumerate() {
        assert_eq!(
            (round.number as usize, round.sweeps),
            (number, 64 << number)
        );
    }
}

/// Null: a ladder that was re-spaced from a measurement has equal rejections, within what the measurement was worth. A new
/// measurement on it, of its own error, differs from its mean by that and by the noise of the rejections that placed the
/// rungs: 4 times both together, for every pair.
#[test]
fn a_re_spaced_ladder_has_equal_rejections_within_errors() {
    let rounds = Rounds {
        first: 512,
        most: 6,
        tolerance: 1e-4,
    };
    let result = tuned(&rounds, 170);
    assert!(
        !result.equal && result.rounds.len() == 6,
        "no noise is below 1e-4"
    );
    let placed = result.rounds[5]
        .errors
        .iter()
        .fold(0.0, |most: f64, e| most.max(*e));
    let check = MODEL
        .new_run((Pairs::Alternating, &result.betas), 999, 40_000)
        .pairs();
    let mean = check.iter().map(PairStatistics::rejection).sum::<f64>() / 11.0;
    for pair in &check {
        let off = (pair.rejection() - mean).abs();
        println!(
            "{:.4} +- {:.4}, mean {mean:.4}, rungs placed to {placed:.4}",
            pair.rejection(),
            pair.error
        );
        assert!(off < 4.0 * pair.error.hypot(placed), "{off}");
    }
    // The same bound condemns the ladder it began with.
    let before = MODEL
        .new_run((Pairs::Alternating, &start()), 998, 40_000)
        .pairs();
    let worst = before
        .iter()
        .map(|p| (p.rejection() - mean).abs() / p.error.hypot(placed));
    assert!(worst.fold(0.0, f64::max) > 40.0);
}

#[test]
fn few_sweeps_are_never_enough_to_stop() {
    let statistics = |acceptance, error, attempts, blocked| PairStatistics {
        attempts,
        accepted: 0,
        blocked,
        acceptance,
        error,
    };
    let rounds = Rounds {
        first: 2,
        most: 3,
        tolerance: 0.05,
    };
    let betas = [1.0, 0.5, 0.1];
    let after = |number, pairs: [PairStatistics; 2]| rounds.after(number, &betas, &pairs);
    // Equal, but known to 0.02 only, or not at all.
    for error in [0.02, f64::NAN] {
        let pairs = [statistics(0.6, error, 1000, 0); 2];
        assert!(matches!(
            after(0, pairs).unwrap().1,
            Next::Again { sweeps: 4, .. }
        ));
        assert!(matches!(
            after(2, pairs).unwrap().1,
            Next::OutOfRounds { .. }
        ));
    }
    let pairs = [statistics(0.6, 0.01, 1000, 0); 2];
    assert_eq!(after(0, pairs).unwrap().1, Next::Equal);
    // A pair that was only ever blocked is an error; one that was not tried yet is not.
    let never = statistics(f64::NAN, f64::NAN, 0, 0);
    assert!(after(0, [never, pairs[0]]).is_ok());
    let blocked = statistics(f64::NAN, f64::NAN, 0, 7);
    assert!(
        after(0, [blocked, pairs[0]])
            .unwrap_err()
            .to_string()
            .contains("stands in the way")
    );
    for wrong in [
        Rounds { first: 1, ..rounds },
        Rounds { most: 0, ..rounds },
        Rounds { most: 64, ..rounds },
        Rounds {
            tolerance: 0.0,
            ..rounds
        },
        Rounds {
            tolerance: f64::NAN,
            ..rounds
        },
    ] {
        assert!(wrong.check().is_err());
    }
}

/// A tuned ladder.
#[derive(Debug, Clone, PartialEq)]
struct Tuned {
    /// The ladder.
    betas: Vec<f64>,
    /// Whether a round found its rejections equal; if not, the ladder is what the last round suggests.
    equal: bool,
    /// All rounds.
    rounds: Vec<Round>,
}

/// Tune the ladder `betas` by rounds; `run` makes this many sweeps on a ladder and says what the pairs did.
fn tune_ladder(
    rounds: &Rounds,
    betas: &[f64],
    mut run: impl FnMut(&[f64], u64) -> Result<Vec<PairStatistics>>,
) -> Result<Tuned> {
    rounds.check()?;
    let mut done = Vec::new();
    let (mut betas, mut sweeps) = (betas.to_vec(), rounds.first);
    loop {
        let pairs = run(&betas, sweeps)?;
        let (round, next) = rounds.after(done.len() as u32, &betas, &pairs)?;
        done.push(round);
        let equal = next == Next::Equal;
        match next {
            Next::Again {
                betas: better,
                sweeps: more,
            } => {
                (betas, sweeps) = (better, more);
                continue;
            }
            Next::OutOfRounds { betas: better } => betas = better,
            Next::Equal => {}
        }
        return Ok(Tuned {
            betas,
            equal,
            rounds: done,
        });
    }
}
