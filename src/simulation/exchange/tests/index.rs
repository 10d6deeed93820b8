use super::*;

const MODEL: Harmonic = Harmonic { k: 2, c: 1e-3 };

/// Null: the measured mean of min(1, exp(Δβ ΔE)) is the exact one, within 4 of its own standard errors. With alternating pairs
/// attempts are independent (random ones may try a pair twice on the same energies): the share of accepted swaps within 4
/// binomial errors, and larger errors than those of the mean, all pairs taken together (each is known to 13 %).
#[test]
fn rejections_are_those_of_the_gamma_laws() {
    let betas = [1.0, 0.5, 0.3, 0.1, 0.03, 0.01, 2e-3, 0.0];
    let exact = MODEL.rejections(&betas);
    for pairs in [Pairs::Alternating, Pairs::Random] {
        let index = MODEL.new_run((pairs, &betas), 21, 40_000);
        let (mut squares, mut binomials) = (0.0, 0.0);
        for (pair, exact) in index.pairs().iter().zip(&exact) {
            assert!(
                (pair.rejection() - exact).abs() < 4.0 * pair.error && pair.error < 0.01,
                "{pairs:?}: {pair:?}, {exact}"
            );
            assert_eq!(pair.blocked, 0);
            let n = pair.attempts as f64;
            let rejected = 1.0 - pair.accepted as f64 / n;
            let binomial = exact * (1.0 - exact) / n;
            if pairs == Pairs::Alternating {
                assert!((rejected - exact).powi(2) < 16.0 * binomial);
            }
            squares += pair.error * pair.error;
            binomials += binomial;
        }
        println!("{pairs:?}: {squares:e} {binomials:e}");
        assert!(pairs == Pairs::Random || squares < 0.8 * binomials);
        let (barrier, error) = index.barrier();
        assert!((barrier - exact.iter().sum::<f64>()).abs() < 4.0 * error);
    }
}

/// Null: over independent runs Λ scatters as its error says; the ratio of the variances within 4 times the sqrt(2/199) of a
/// variance from 200 runs. (The mean of squared errors is known better.)
#[test]
fn the_error_of_the_barrier_is_its_scatter() {
    let betas = MODEL.equal_ladder(1.0, 0.0, 8);
    for pairs in [Pairs::Alternating, Pairs::Random] {
        let runs: Vec<(f64, f64)> = (0..200)
            .map(|seed| MODEL.new_run((pairs, &betas), 1000 + seed, 1000).barrier())
            .collect();
        let barriers: Vec<f64> = runs.iter().map(|r| r.0).collect();
        let squared = runs.iter().map(|r| r.1 * r.1).sum::<f64>() / 200.0;
        let scatter = 200.0 * mean_and_error(&barriers).1.powi(2);
        let ratio = scatter / squared;
        println!("{pairs:?}: variance of Λ over its squared error {ratio:.3}");
        // Random pairs: the sum over a sweep also carries which pairs were drawn, so that its error is an upper bound.
        let low = if pairs == Pairs::Random { 0.3 } else { 0.6 };
        assert!(ratio > low && ratio < 1.4, "{pairs:?}: {ratio}");
    }
}

/// Restarts per sweep, mean and standard error over independent runs, after as many sweeps as make the start forgotten.
fn restarts(pairs: Pairs, betas: &[f64], sweeps: u64) -> (f64, f64) {
    let of_run = |seed| {
        let mut assignment = Assignment::new(betas.len());
        let mut index = IndexProcess::new(&assignment).unwrap();
        let mut count = |sweeps| {
            MODEL.run((pairs, betas), seed, sweeps, (&mut assignment, &mut index));
            let trips = index.trips();
            let (all, whole): (u64, u64) = (
                trips.restarts().iter().sum(),
                trips.round_trips().iter().sum(),
            );
            assert!(whole <= all && all <= whole + betas.len() as u64);
            all as f64
        };
        let start = count(0..sweeps / 4);
        (count(sweeps / 4..sweeps + sweeps / 4) - start) / sweeps as f64
    };
    let runs: Vec<f64> = (100..112).map(of_run).collect();
    mean_and_error(&runs)
}

/// Null: with perfect mixing within rungs, alternating pairs make 1/(2 + 2 Σ r/(1 - r)) round trips per sweep, exactly, on
/// equal and on unequal ladders: within 4 standard errors over independent runs. In the limit of many rungs that is
/// 1/(2 + 2Λ); at R rungs it is lower by a relative (Σ r/(1 - r) - Λ)/(1 + Σ r/(1 - r)), known from the exact rejections.
#[test]
fn round_trips_come_at_the_rate_that_theory_says() {
    for (rungs, most) in [(12, 0.4), (40, 0.16), (120, 0.06)] {
        let betas = MODEL.equal_ladder(1.0, 0.0, rungs);
        let exact = round_trip_rate(&MODEL.rejections(&betas)).unwrap();
        let limit = round_trip_rate_limit(MODEL.barrier(1.0, 0.0));
        let (rate, error) = restarts(Pairs::Alternating, &betas, 6000);
        println!("{rungs} rungs: {rate:.5} +- {error:.5}, exact {exact:.5}, limit {limit:.5}");
        assert!((rate - exact).abs() < 4.0 * error && error < 0.02 * exact);
        let short = 1.0 - exact / limit;
        assert!(short > 0.0 && short < most, "{short}");
        assert!((rate / limit - 1.0).abs() < short + 4.0 * error / limit);
    }
    let unequal = [1.0, 0.2, 0.15, 0.05, 0.03, 5e-3, 4e-3, 1e-3, 0.0];
    let exact = round_trip_rate(&MODEL.rejections(&unequal)).unwrap();
    let (rate, error) = restarts(Pairs::Alternating, &unequal, 6000);
    assert!(
        (rate - exact).abs() < 4.0 * error,
        "{rate} +- {error}, {exact}"
    );
}

/// Null of the second kind: alternating pairs are no better than random ones per sweep, although those try R pairs a sweep
/// rather than (R - 1)/2. Rejected by more than 4 standard errors, and by more the more rungs there are.
#[test]
fn alternating_pairs_make_more_round_trips_than_random_ones() {
    let mut gain = 1.0;
    for rungs in [12, 30, 60] {
        let betas = MODEL.equal_ladder(1.0, 0.0, rungs);
        let (ours, a) = restarts(Pairs::Alternating, &betas, 3000);
        let (random, b) = restarts(Pairs::Random, &betas, 3000);
        println!("{rungs} rungs: alternating {ours:.5} +- {a:.5}, random {random:.5} +- {b:.5}");
        assert!(ours - random > 4.0 * a.hypot(b));
        assert!(ours / random > gain);
        gain = ours / random;
    }
}

/// Null: on a ladder of equal rejections r the flow with alternating pairs and perfect mixing is linear between the ends. The
/// walk goes on in its direction with probability 1 - r and turns with r, and the probability that it last was at the
/// cold end is ½ + s(½(R - 1) - j) on rung 0 < j < R - 1 with s = 1/(R - 1 + (1 - r)/r): 4 standard errors over runs.
#[test]
fn the_flow_is_linear_when_rejections_are_equal() {
    let rungs = 10;
    let betas = MODEL.equal_ladder(1.0, 0.0, rungs);
    let r = MODEL.rejection(betas[0], betas[1]);
    let flows: Vec<Vec<f64>> = (0..16)
        .map(|seed| {
            let index = MODEL.new_run((Pairs::Alternating, &betas), 300 + seed, 5000);
            index.trips().flow()
        })
        .collect();
    let last = (rungs - 1) as f64;
    let slope = 1.0 / (last + (1.0 - r) / r);
    for rung in 0..rungs {
        let of_rung: Vec<f64> = flows.iter().map(|f| f[rung]).collect();
        let (mean, error) = mean_and_error(&of_rung);
        let exact = match rung {
            0 => 1.0,
            _ if rung == rungs - 1 => 0.0,
            _ => 0.5 + slope * (0.5 * last - rung as f64),
        };
        println!("rung {rung}: f = {mean:.4} +- {error:.4}, exact {exact:.4}");
        assert!((mean - exact).abs() <= 4.0 * error && error < 0.02);
    }
}

#[test]
fn it_comes_back_to_the_last_bit_and_goes_on_the_same() {
    let betas = MODEL.equal_ladder(1.0, 0.0, 9);
    for (pairs, stop) in [
        (Pairs::Alternating, 777),
        (Pairs::Random, 1),
        (Pairs::Random, 1024),
    ] {
        let whole = MODEL.new_run((pairs, &betas), 8, 2000);
        let mut assignment = Assignment::new(9);
        let mut index = IndexProcess::new(&assignment).unwrap();
        MODEL.run((pairs, &betas), 8, 0..stop, (&mut assignment, &mut index));
        let numbers = index.to_numbers();
        let mut back = IndexProcess::from_numbers(&numbers).unwrap();
        let mut place = Assignment::from_numbers(&assignment.to_numbers()).unwrap();
        assert_eq!((&back, back.to_numbers()), (&index, numbers.clone()));
        MODEL.run((pairs, &betas), 8, stop..2000, (&mut place, &mut back));
        assert_eq!(back, whole);
        assert_eq!(back.sweeps(), 2000);
        // Cut short, too long, or with its first numbers damaged: refused, without a panic.
        let mut short = numbers.clone();
        short.whole.pop();
        let mut long = numbers.clone();
        long.real.push(0.0);
        assert!(IndexProcess::from_numbers(&short).is_err());
        assert!(IndexProcess::from_numbers(&long).is_err());
        for at in 0..numbers.whole.len() {
            for value in [0, 1, 3, 600, u64::MAX] {
                let mut bad = numbers.clone();
                bad.whole[at] = value;
                // Some damage is a legal state, but none may panic, then or later.
                if let Ok(mut damaged) = IndexProcess::from_numbers(&bad) {
                    damaged.pairs();
                    damaged.barrier();
                    damaged.trips().flow();
                    let place = Assignment::new(damaged.pairs().len() + 1);
                    damaged.add(&[], &place).unwrap();
                }
            }
        }
        assert!(IndexProcess::from_numbers(&Numbers::default()).is_err());
    }
}

#[test]
fn memory_does_not_grow_with_sweeps() {
    let betas = MODEL.equal_ladder(1.0, 0.0, 4);
    for sweeps in [10_000, 20_001] {
        let numbers = MODEL
            .new_run((Pairs::Alternating, &betas), 2, sweeps)
            .to_numbers();
        assert!(numbers.whole.len() < 4 * 600 && numbers.real.len() < 4 * 70 + 10);
    }
}

#[test]
fn a_failed_replica_is_counted_and_in_no_mean() {
    let betas = [1.0, 0.5, 0.2, 0.1];
    let mut assignment = Assignment::new(4);
    let mut index = IndexProcess::new(&assignment).unwrap();
    for sweep in 0..100 {
        let energies = [f64::NAN, 1.0, 1.0, 1.0];
        let u = |element| uniform(9, sweep, element);
        let pairs = Pairs::Alternating;
        let attempts = swap(pairs, sweep, &betas, &energies, &mut assignment, u).unwrap();
        index.add(&attempts, &assignment).unwrap();
    }
    let pairs = index.pairs();
    assert_eq!((pairs[0].attempts, pairs[0].blocked), (0, 50));
    assert!(pairs[0].acceptance.is_nan() && pairs[0].error.is_nan());
    assert_eq!(
        (pairs[2].attempts, pairs[2].blocked, pairs[2].acceptance),
        (50, 0, 1.0)
    );
    let other = Assignment::new(5);
    assert!(index.add(&[], &other).is_err());
    assert_eq!(index.sweeps(), 100);
}
