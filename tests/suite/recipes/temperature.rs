//! Transitions and annealing, against quadrature and the law of the chain.

use super::{found, ln_gamma, near, number, numbers};

/// Heat capacity of a well pair (w² - 1)² + 0.3 w at T, by quadrature.
fn heat_capacity(t: f64) -> f64 {
    let grid = (0..=20_000).map(|i| -4.0 + i as f64 * 4e-4);
    let energies: Vec<f64> = grid.map(|w: f64| (w * w - 1.0).powi(2) + 0.3 * w).collect();
    let lowest = energies.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = |f: &dyn Fn(f64) -> f64| {
        let weight = |u: &f64| (-(u - lowest) / t).exp();
        let z: f64 = energies.iter().map(weight).sum();
        energies.iter().map(|u| weight(u) * f(*u)).sum::<f64>() / z
    };
    let first = mean(&|u| u);
    mean(&|u| (u - first).powi(2)) / (t * t)
}

#[test]
#[ignore = "long: tests/run"]
fn a_transition_is_bracketed_where_the_heat_capacity_peaks() {
    let value = found(
        "import \"transition\" as transition;
         let t = target(potential::double_well(#{ dim: 4 }));
         let f = transition::find(t, sampler::hmc(#{ leapfrog: 15 }), #{ low: 0.03, high: 10.0, points: 9, width: 2.0, steps: 4000, burn_in: 0.2, every: 2, exchange: true });
         #{ low: f.low, high: f.high, ratio: f.ratio, verdict: f.verdict, curve: f.curve, rounds: f.rounds.len(), panels: f.figure.to_string() }",
    );
    let fine = (0..2000).map(|i| 0.03 * (10.0f64 / 0.03).powf(i as f64 / 1999.0));
    let peak = fine
        .max_by(|a, b| heat_capacity(*a).total_cmp(&heat_capacity(*b)))
        .unwrap();
    assert!((peak - 0.2418).abs() < 1e-3);
    let (low, high) = (number(&value, "low"), number(&value, "high"));
    assert!(low < peak && peak < high, "{low} {high}: {peak}");
    assert!(value["verdict"] == "narrow" && high / low <= 2.0, "{value}");
    // The curve is that of four well pairs, also where chains alone would not cross the barrier.
    let (t, c) = (
        numbers(&value["curve"]["temperature"]),
        numbers(&value["curve"]["value"]),
    );
    let errors = numbers(&value["curve"]["error"]);
    let mut compared = 0;
    for ((t, c), e) in t.iter().zip(&c).zip(&errors) {
        near(&format!("C at {t}"), (*c, *e), 4.0 * heat_capacity(*t));
        assert!(*e < 0.2 * c, "{e} of {c}");
        compared += 1;
    }
    assert!(compared >= 18);
}

/// By its steepest change too, and where there is none at all.
#[test]
fn a_curve_without_a_peak_has_no_transition() {
    // Of a Gaussian U is N T/2: C is the same everywhere, and d⟨U⟩/d ln T is largest at the hot end.
    let value = found(
        "import \"transition\" as t;
         let g = target(potential::gaussian(#{ dim: 5, condition: 1.0 }));
         let o = #{ low: 0.1, high: 10, points: 5, steps: 2000, every: 1 };
         let a = t::find(g, sampler::hmc(), o);
         let b = t::find(g, sampler::hmc(), o + #{ of: \"cost\" });
         let c = t::change(b.runs[0], \"cost\");
         #{ flat: a.verdict, ratio: a.ratio, rising: b.verdict, slopes: c.map(|p| p.y), errors: c.map(|p| p.error), at: b.runs[0].temperatures }",
    );
    assert_eq!(value["rising"], "at the hot end");
    assert_eq!(value["flat"], "limited by error bars");
    assert!(number(&value, "ratio") > 3.0, "{value}");
    let (at, slopes, errors) = (
        numbers(&value["at"]),
        numbers(&value["slopes"]),
        numbers(&value["errors"]),
    );
    for k in 0..slopes.len() {
        let exact = 2.5 * (at[k + 1] - at[k]) / (at[k + 1] / at[k]).ln();
        near("d⟨U⟩/d ln T", (slopes[k], errors[k]), exact);
    }
}

/// Weight of the left well of (w² - 1)² + 0.3 w after SGLD steps of ε from w = 1 at these temperatures: the chain's law itself, on a grid.
fn left_after(temperatures: &[f64], epsilon: f64) -> f64 {
    const CELLS: usize = 600;
    let (low, width) = (-2.4, 4.8 / CELLS as f64);
    let at = |i: usize| low + (i as f64 + 0.5) * width;
    let drift = |w: f64| w - 0.5 * epsilon * (4.0 * w * (w * w - 1.0) + 0.3);
    let step = |law: &[(f64, f64)], t: f64| -> Vec<f64> {
        let sd = (epsilon * t).sqrt();
        let mut out = vec![0.0; CELLS];
        for (w, p) in law.iter().filter(|(_, p)| *p > 1e-14) {
            let to = drift(*w);
            let reach = (7.0 * sd / width).ceil() as i64;
            let middle = ((to - low) / width) as i64;
            let cells = (middle - reach).max(0)..=(middle + reach).min(CELLS as i64 - 1);
            let weight = |i: i64| (-0.5 * ((at(i as usize) - to) / sd).powi(2)).exp();
            let total: f64 = cells.clone().map(weight).sum();
            for i in cells {
                out[i as usize] += p * weight(i) / total;
            }
        }
        out
    };
    let mut law = vec![(1.0, 1.0)];
    for t in temperatures {
        let next = step(&law, *t);
        law = next
            .into_iter()
            .enumerate()
            .map(|(i, p)| (at(i), p))
            .collect();
    }
    law.iter().filter(|(w, _)| *w < 0.0).map(|(_, p)| p).sum()
}

#[test]
#[ignore = "long: tests/run"]
fn annealing_finds_the_better_well_as_often_as_the_chain_must() {
    let run = |schedule: &str| {
        found(&format!(
            "import \"annealing\" as annealing;
             let t = target(potential::double_well());
             let f = annealing::minimise(t, sampler::sgld(#{{ step: 0.1, gradient: gradient::full() }}), #{{
                 hot: 1.0, cold: 0.1, schedule: \"{schedule}\", steps: 300, restarts: 2000, start: parameters([1.0]), within: 0.4, every: 100 }});
             let left = |p| {{ let n = 0; for i in 0..p.len() {{ if p.vector(i)[0] < 0.0 {{ n += 1; }} }} n }};
             #{{ left: left.call(f.ends), quenched: left.call(f.quench.ends), n: f.ends.len(), success: f.success, mcse: f.success_mcse, energy: f.energy,
                best: f.best.vector(0)[0], energies: f.energies, text: f.text }}"
        ))
    };
    for schedule in ["geometric", "linear"] {
        let value = run(schedule);
        let at = |k: usize| {
            let part = (k as f64 / 270.0).min(1.0);
            match schedule {
                "linear" => 1.0 + part * (0.1 - 1.0),
                _ => 0.1f64.powf(part),
            }
        };
        // Whether the first step is at `hot` or one later is of no matter at this size.
        let cooled: Vec<f64> = (0..300).map(at).collect();
        let n = number(&value, "n");
        assert_eq!(n, 2000.0);
        for (key, law) in [("left", cooled), ("quenched", vec![0.1; 300])] {
            let p = left_after(&law, 0.1);
            let share = number(&value, key) / n;
            near(
                &format!("{schedule} {key}"),
                (share, (p * (1.0 - p) / n).sqrt()),
                p,
            );
        }
        // The recipe's own count: an energy below the right well's bottom is one in the left well.
        assert!(
            (number(&value, "success") - number(&value, "left") / n).abs() < 0.02,
            "{value}"
        );
        let lowest = numbers(&value["energies"])
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        assert_eq!(number(&value, "energy"), lowest);
        assert!(number(&value, "best") < -0.9);
        assert!(
            number(&value, "left") > number(&value, "quenched") + 400.0,
            "{value}"
        );
    }
}

/// Where every chain fails there is no number, and no bracket is made of it.
#[test]
fn a_transition_leaves_out_chains_that_failed() {
    let verdict = found(
        "import \"transition\" as transition;
         let t = target(potential::double_well(#{ dim: 2 }));
         let f = transition::find(t, sampler::langevin(#{ dt: 0.35 }), #{ low: 0.01, high: 1000, points: 6, rounds: 1, steps: 2000, every: 1 });
         [f.verdict, f.high < 1000]",
    );
    let text = verdict[0].as_str().unwrap();
    assert!(
        text.contains("points left out because their chains failed"),
        "{text}"
    );
    assert_eq!(verdict[1], true, "the hot end is where chains fail");
}

/// Null: of ½|w|² in 50 dimensions energies at β have the law Gamma(25, β), so that a swap between β < β' is accepted with the probability 2 I_x(25, 25), x = β/(β + β'). The number of rungs is
/// 2Λ + 1 where each rejection is ½.
#[test]
fn a_ladder_gets_the_rungs_that_its_barrier_asks_for() {
    let value = found(
        "import \"ladder\" as ladder;
         let t = target(potential::gaussian(#{ dim: 50, condition: 1.0 }));
         let f = ladder::adapted(t, sampler::hmc(), #{ temperatures: logspace(0.1, 10, 4), pilot: 400, exchange: #{ temper: \"energy\", steps: 4000, seed: 3 } });
         let l = f.run.ladder();
         #{ rungs: f.rungs, settled: f.settled, temperatures: f.temperatures, acceptance: l[\"acceptance\"], error: l[\"acceptance_mcse\"] }",
    );
    assert!(value["settled"] == true, "{value}");
    let (rungs, t) = (numbers(&value["rungs"]), numbers(&value["temperatures"]));
    assert!(rungs[0] == 4.0 && t[0] == 0.1 && *t.last().unwrap() == 10.0);
    let accepted = |x: f64| {
        let ln_choose = |j: u32| ln_gamma(50) - ln_gamma(j + 1) - ln_gamma(50 - j);
        let term = |j: u32| ln_choose(j) + f64::from(j) * x.ln() + f64::from(49 - j) * (-x).ln_1p();
        2.0 * (25..50).map(|j| term(j).exp()).sum::<f64>()
    };
    let (found, errors) = (numbers(&value["acceptance"]), numbers(&value["error"]));
    for k in 0..found.len() {
        assert!(errors[k] < 0.03, "{errors:?}");
        let expected = accepted(t[k] / (t[k] + t[k + 1]));
        near("acceptance", (found[k], errors[k]), expected);
    }
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    assert!((mean - 0.5).abs() < 0.06, "{mean}: {rungs:?}");
}
