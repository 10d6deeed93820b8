use super::*;
use crate::simulation::exchange::pairs::swap_by;

const MODEL: Harmonic = Harmonic { k: 3, c: 0.02 };
const BETAS: [f64; 5] = [1.0, 0.4, 0.15, 0.05, 0.0];

/// The largest |z| over all rungs of the means of E and E² after `sweeps` swaps from exact draws, without new draws between
/// them: what a wrong swap changes adds up.
fn largest_z(pairs: Pairs, log_ratio: impl Fn([f64; 2], [f64; 2]) -> f64) -> f64 {
    let (trials, sweeps) = (20_000, 6);
    let mut moments = vec![Vec::with_capacity(trials); 2 * BETAS.len()];
    for trial in 0..trials as u64 {
        let mut assignment = Assignment::new(BETAS.len());
        let energies: Vec<f64> = (0..BETAS.len())
            .map(|rung| MODEL.draw(BETAS[rung], 11, trial, rung))
            .collect();
        for sweep in 0..sweeps {
            let u = |element| uniform(12, trial * sweeps + sweep, element);
            swap_by(
                &log_ratio,
                pairs,
                sweep,
                &BETAS,
                &energies,
                &mut assignment,
                u,
            );
        }
        for (rung, replica) in assignment.replica_at().iter().enumerate() {
            let e = energies[*replica] * MODEL.rate(BETAS[rung]);
            moments[2 * rung].push(e);
            moments[2 * rung + 1].push(e * e);
        }
    }
    let k = f64::from(MODEL.k);
    let exact = |i: usize| {
        if i.is_multiple_of(2) {
            k
        } else {
            k * (k + 1.0)
        }
    };
    (0..moments.len()).fold(0.0, |most, i| {
        let (mean, error) = mean_and_error(&moments[i]);
        most.max(((mean - exact(i)) / error).abs())
    })
}

/// Null: after swaps every rung still has its own Gamma law; mean and mean square of E within 4 standard errors, measured from
/// independent trials. The wrong sign, a factor ½ and no rejection at all must each be far outside.
#[test]
fn swaps_leave_the_law_of_every_rung_as_it_is() {
    type Ratio = fn([f64; 2], [f64; 2]) -> f64;
    let right: Ratio = |b, e| (b[0] - b[1]) * (e[0] - e[1]);
    let wrong: [Ratio; 4] = [
        |b, e| -(b[0] - b[1]) * (e[0] - e[1]),
        |b, e| 0.5 * (b[0] - b[1]) * (e[0] - e[1]),
        |b, e| 2.0 * (b[0] - b[1]) * (e[0] - e[1]),
        |_, _| 0.0,
    ];
    for pairs in [Pairs::Alternating, Pairs::Random] {
        let z = largest_z(pairs, right);
        assert!(z < 4.0, "{pairs:?}: {z}");
        for (i, ratio) in wrong.iter().enumerate() {
            let z = largest_z(pairs, ratio);
            assert!(z > 8.0, "{pairs:?}, wrong ratio {i}: {z}");
        }
    }
    // The ratio that was tested is the one in use.
    for (b, e) in [([1.0, 0.3], [2.0, 1.0]), ([0.3, 0.0], [1.0, 4.5])] {
        let ratio = right(b, e);
        assert_eq!(
            acceptance(b, e),
            if ratio > 0.0 { 1.0 } else { ratio.exp() }
        );
    }
}

#[test]
fn known_decisions() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(acceptance([2.0, 1.0], [3.0, 1.0]), 1.0);
    assert_eq!(acceptance([2.0, 1.0], [1.0, 3.0]), (-2f64).exp());
    assert_eq!(acceptance([2.0, 1.0], [1.0, 1.0]), 1.0);
    assert_eq!(acceptance([2.0, 0.0], [1.0, inf]), 0.0);
    assert_eq!(acceptance([2.0, 0.0], [inf, 1.0]), 1.0);
    assert_eq!(acceptance([1e300, 0.0], [1e300, 1.0]), 1.0);
    for energies in [[nan, 1.0], [1.0, nan], [inf, inf]] {
        assert!(acceptance([2.0, 1.0], energies).is_nan());
    }
}

#[test]
fn alternating_pairs_take_turns_and_random_ones_come_equally_often() {
    let betas: Vec<f64> = (0..7).rev().map(f64::from).collect();
    let energies = [1.0; 7];
    let tried = |pairs, sweep| -> Vec<usize> {
        let u = |element| uniform(1, sweep, element);
        let mut assignment = Assignment::new(7);
        let attempts = swap(pairs, sweep, &betas, &energies, &mut assignment, u).unwrap();
        attempts.iter().map(|a| a.pair).collect()
    };
    assert_eq!(tried(Pairs::Alternating, 8), [0, 2, 4]);
    assert_eq!(tried(Pairs::Alternating, 9), [1, 3, 5]);
    // Null: uniform over 6 pairs, 7 a sweep; chi-squared with 5 degrees of freedom, 4 standard deviations.
    let mut counts = [0.0f64; 6];
    for sweep in 0..10_000 {
        let pairs = tried(Pairs::Random, sweep);
        assert_eq!(pairs.len(), 7);
        pairs.iter().for_each(|pair| counts[*pair] += 1.0);
    }
    let expected = 70_000.0f64 / 6.0;
    let chi2: f64 = counts
        .iter()
        .map(|c| (c - expected).powi(2) / expected)
        .sum();
    assert!(chi2 < 5.0 + 4.0 * 10f64.sqrt(), "{chi2}");
}

#[test]
fn a_decision_depends_on_its_own_pair_only_and_a_failed_replica_stays() {
    let u = |element| uniform(3, 0, element);
    let betas = [1.0, 0.7, 0.5, 0.2];
    let run = |energies: [f64; 4]| {
        let mut assignment = Assignment::new(4);
        let attempts = swap(Pairs::Alternating, 0, &betas, &energies, &mut assignment, u).unwrap();
        (attempts, assignment)
    };
    let (a, _) = run([1.0, 2.0, 3.0, 4.0]);
    let (b, _) = run([9.0, -7.0, 3.0, 4.0]);
    assert_eq!(a[1], b[1]);
    let (c, assignment) = run([f64::NAN, -1e9, 3.0, 2.0]);
    assert!(c[0].acceptance.is_nan() && !c[0].accepted && c[1].accepted);
    assert_eq!(assignment.replica_at(), [0, 1, 3, 2]);
    assert_eq!(assignment.rung_of(), [0, 1, 3, 2]);
}

#[test]
fn an_assignment_comes_back_and_a_broken_one_is_refused() {
    let mut assignment = Assignment::new(6);
    let mut index = IndexProcess::new(&assignment).unwrap();
    let betas = MODEL.equal_ladder(1.0, 0.0, 6);
    MODEL.run(
        (Pairs::Random, &betas),
        5,
        0..50,
        (&mut assignment, &mut index),
    );
    assert_ne!(assignment, Assignment::new(6));
    for (rung, replica) in assignment.replica_at().iter().enumerate() {
        assert_eq!(assignment.rung_of()[*replica], rung);
    }
    let back = Assignment::from_numbers(&assignment.to_numbers()).unwrap();
    assert_eq!(back, assignment);
    for whole in [vec![0, 0], vec![0, 2], vec![u64::MAX, 0]] {
        let numbers = Numbers {
            whole,
            real: vec![],
        };
        assert!(Assignment::from_numbers(&numbers).is_err());
    }
}

#[test]
fn what_is_no_ladder_is_refused() {
    let inf = f64::INFINITY;
    let mut assignment = Assignment::new(2);
    for betas in [
        [1.0, 1.0],
        [1.0, 2.0],
        [1.0, -0.5],
        [inf, 1.0],
        [1.0, f64::NAN],
    ] {
        let done = swap(Pairs::Random, 0, &betas, &[0.0; 2], &mut assignment, |_| {
            0.5
        });
        assert!(done.is_err(), "{betas:?}");
    }
    assert!(
        swap(
            Pairs::Random,
            0,
            &[2.0, 1.0],
            &[0.0],
            &mut assignment,
            |_| 0.5
        )
        .is_err()
    );
    assert!(check_ladder(&[1.0]).is_err());
    assert_eq!(betas_of(&[0.5, 1.0, inf]).unwrap(), [2.0, 1.0, 0.0]);
    for temperatures in [
        [1.0, 0.5],
        [0.0, 1.0],
        [-1.0, 1.0],
        [inf, inf],
        [1.0, f64::NAN],
    ] {
        assert!(betas_of(&temperatures).is_err(), "{temperatures:?}");
    }
}
