use super::*;

/// Temperatures over eight decades, with the prior on top: E is harmonic from T = 1e-4 up to where the prior takes over.
const MODEL: Harmonic = Harmonic { k: 4, c: 1e-2 };

fn decades(rungs: usize) -> Vec<f64> {
    let mut temperatures: Vec<f64> = (0..rungs - 1)
        .map(|k| 10f64.powf(-4.0 + 8.0 * k as f64 / (rungs - 2) as f64))
        .collect();
    temperatures.push(f64::INFINITY);
    betas_of(&temperatures).unwrap()
}

fn spread(rejections: &[f64]) -> f64 {
    let mean = rejections.iter().sum::<f64>() / rejections.len() as f64;
    rejections
        .iter()
        .fold(0.0, |most, r| most.max((r - mean).abs()))
}

/// Exact rejections of many rungs in: Λ(β) and λ(β) = g/(β + c) out. Of a step in x = ln(β + c) of size h the rejection is
/// gh(1 - π/12 (gh)² + …): 1.5e-3 relative at 200 rungs, gh = 0.076, and the slope of a cubic adds less.
#[test]
fn the_barrier_is_the_integral_of_the_local_one() {
    let betas = MODEL.equal_ladder(1e4, 0.0, 200);
    let barrier = Barrier::new(&betas, &MODEL.rejections(&betas)).unwrap();
    let exact = MODEL.barrier(1e4, 0.0);
    assert!((barrier.total() / exact - 1.0).abs() < 2e-3);
    for beta in [1e-3, 0.01, 0.5, 7.0, 333.0, 9e3] {
        let local = barrier.local(beta) * MODEL.rate(beta) / MODEL.g();
        assert!((local - 1.0).abs() < 5e-3, "β = {beta}: {local}");
        let cumulative = barrier.cumulative(beta) / MODEL.barrier(beta, 0.0);
        assert!((cumulative - 1.0).abs() < 5e-3, "β = {beta}: {cumulative}");
    }
    // At the prior rung λ is finite, though ln β is not.
    let at_prior = barrier.local(0.0) * MODEL.c / MODEL.g();
    assert!((at_prior - 1.0).abs() < 0.01, "{at_prior}");
    assert_eq!(
        (barrier.cumulative(0.0), barrier.total()),
        (0.0, barrier.cumulative(1e4))
    );
    assert!(barrier.local(2e4).is_nan() && barrier.cumulative(-1.0).is_nan());
    // A sum of rejections of a coarse ladder is a lower bound.
    let coarse = MODEL.equal_ladder(1e4, 0.0, 8);
    assert!(MODEL.rejections(&coarse).iter().sum::<f64>() < 0.8 * exact);
}

/// Without noise, re-spacing makes rejections equal, for more and for fewer rungs, over eight decades and up to β = 0. The
/// first time only nearly: where the old rejections were 0.6 they had missed π/12 r² = 9 % of the barrier, where they were 0
/// nothing, so that the new ones differ by some 15 % of their mean. Done again, at rejections that are nearly equal, all
/// miss the same, and what is left falls by a factor each time.
#[test]
fn the_re_spaced_ladder_has_equal_rejections() {
    let start = decades(24);
    let before = MODEL.rejections(&start);
    assert!(
        spread(&before) > 0.3,
        "the ladder to improve is good already"
    );
    let barrier = Barrier::new(&start, &before).unwrap();
    for rungs in [2, 3, 10, 24, 40, 97] {
        let ladder = barrier.ladder(rungs).unwrap();
        assert_eq!(
            (ladder.len(), ladder[0], ladder[rungs - 1]),
            (rungs, start[0], 0.0)
        );
        check_ladder(&ladder).unwrap();
        let after = MODEL.rejections(&ladder);
        println!(
            "{rungs} rungs: spread {:.4} of mean {:.4}",
            spread(&after),
            after.iter().sum::<f64>() / after.len() as f64
        );
        assert!(rungs == 2 || spread(&after) < 0.15);
    }
    let mut ladder = start.clone();
    let mut spreads = Vec::new();
    for _ in 0..5 {
        ladder = Barrier::new(&ladder, &MODEL.rejections(&ladder))
            .unwrap()
            .ladder(24)
            .unwrap();
        spreads.push(spread(&MODEL.rejections(&ladder)));
    }
    println!("spreads {spreads:?}");
    assert!(spreads[4] < 2e-3, "{spreads:?}");
    let exact = MODEL.equal_ladder(1e4, 0.0, 24);
    for (ours, exact) in ladder.iter().zip(&exact) {
        assert!((MODEL.rate(*ours) / MODEL.rate(*exact) - 1.0).abs() < 0.02);
    }
}

/// What the variable is for. Between rungs two decades apart, where Λ is known at the rungs alone, it must be found much
/// better than by the same interpolation in β itself, wherever the prior takes over: at, above or below the hottest rungs.
#[test]
fn the_variable_of_interpolation_sees_all_decades() {
    let betas = [1e4, 1e2, 1.0, 1e-2, 0.0];
    for c in [1e-4, 3e-3, 1e-2, 0.1, 10.0] {
        let model = Harmonic { k: 4, c };
        // Increments of Λ, small enough for rejections; only their proportions matter.
        let share = |cold: f64, hot: f64| 0.05 * model.barrier(cold, hot) / model.g();
        let increments: Vec<f64> = betas.windows(2).map(|b| share(b[0], b[1])).collect();
        let barrier = Barrier::new(&betas, &increments).unwrap();
        let at_rungs = betas.iter().rev().map(|b| barrier.cumulative(*b)).collect();
        let in_beta = Monotone::new(betas.iter().rev().copied().collect(), at_rungs).unwrap();
        let (mut ours, mut plain) = (0.0f64, 0.0f64);
        for i in 0..1400 {
            let beta = 10f64.powf(f64::from(i) / 200.0 - 3.0);
            let exact = share(beta, 0.0);
            ours = ours.max((barrier.cumulative(beta) - exact).abs() / barrier.total());
            plain = plain.max((in_beta.value(beta) - exact).abs() / barrier.total());
        }
        println!("c = {c}: off by {ours:.4} of Λ; in β by {plain:.4}");
        // At c = 1e-4 all happens within the hottest pair: no rung tells where.
        let known = c > 1e-3;
        assert!(ours < plain && (!known || (ours < 0.04 && plain > 0.07)));
    }
}

#[test]
fn rejections_of_zero_and_one_from_few_attempts_still_give_a_ladder() {
    assert_eq!([guarded(0.0, 0), guarded(f64::NAN, 9)], [0.5, 0.5]);
    assert_eq!([guarded(0.0, 4), guarded(1.0, 4)], [0.1, 0.9]);
    assert!((guarded(0.3, 1_000_000) - 0.3).abs() < 1e-6);
    let betas = decades(6);
    for raw in [
        [0.0; 5],
        [1.0; 5],
        [0.0, 1.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 1.0],
    ] {
        let kept = raw.map(|r| guarded(r, 3));
        let ladder = Barrier::new(&betas, &kept).unwrap().ladder(9).unwrap();
        check_ladder(&ladder).unwrap();
        // Even unguarded nothing breaks, as long as there is a barrier at all.
        let plain = Barrier::new(&betas, &raw);
        assert_eq!(plain.is_err(), raw == [0.0; 5]);
        if let Ok(barrier) = plain {
            check_ladder(&barrier.ladder(9).unwrap()).unwrap();
        }
    }
}

#[test]
fn rates_and_the_number_of_rungs() {
    assert_eq!(round_trip_rate(&[0.5, 0.5]).unwrap(), 1.0 / 6.0);
    assert_eq!(round_trip_rate(&[0.5, 1.0]).unwrap(), 0.0);
    assert_eq!(round_trip_rate_limit(3.0), 0.125);
    // Against all numbers of pairs above Λ: the most round trips per replica and sweep.
    for barrier in [0.3, 1.0, 2.2, 7.0, 31.4] {
        let per_work = |pairs: usize| {
            let rejection = vec![barrier / pairs as f64; pairs];
            round_trip_rate(&rejection).unwrap() / (pairs + 1) as f64
        };
        let least = barrier.ceil() as usize;
        let best = (least..200)
            .max_by(|a, b| per_work(*a).total_cmp(&per_work(*b)))
            .unwrap();
        let ours = recommended_rungs(barrier).unwrap() - 1;
        assert!(
            ours == best || ours == best + 1,
            "{barrier}: {ours}, {best}"
        );
    }
    assert_eq!(recommended_rungs(0.0).unwrap(), 2);
    assert!(recommended_rungs(f64::NAN).is_err() && recommended_rungs(-1.0).is_err());
}

#[test]
fn bad_input_is_refused() {
    for (betas, rejections) in [
        (vec![1.0, 0.0], vec![]),
        (vec![1.0, 0.0], vec![1.5]),
        (vec![1.0, 0.0], vec![f64::NAN]),
        (vec![1.0, 0.0], vec![0.0]),
        (vec![0.0, 1.0], vec![0.5]),
        (vec![1.0, 0.5, 0.0], vec![0.5]),
    ] {
        assert!(
            Barrier::new(&betas, &rejections).is_err(),
            "{betas:?} {rejections:?}"
        );
    }
    let barrier = Barrier::new(&[1.0 + f64::EPSILON, 1.0], &[0.5]).unwrap();
    assert!(barrier.ladder(1).is_err());
    assert!(
        barrier
            .ladder(5)
            .unwrap_err()
            .to_string()
            .contains("too close")
    );
    assert!(round_trip_rate(&[]).is_err() && round_trip_rate(&[-0.1]).is_err());
}
