//! Samplers beyond the contract: what they may be combined with, and what they say of themselves.
//!
//! Null hypothesis of every comparison of numbers: the law that the sampler states. The bound is four standard errors, measured from the
//! chains; their size has a bound too.

use super::support::evaluate;
use serde_json::Value;

fn value(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn message(source: &str) -> String {
    evaluate(source).unwrap_err().to_string()
}

/// Neal's funnel has levels that momenta do not reach, and a neck that trajectories diverge in; a Gaussian has neither.
#[test]
fn the_health_of_a_run_tells_funnels_from_gaussians() {
    let health = |target: &str, sampler: &str, more: &str| {
        value(&format!(
            "sample(target(potential::{target}), sampler::{sampler}, #{{ steps: 4000, burn_in: 1000, chains: 2, seed: 3, every: 10{more} }}).health()"
        ))
    };
    for sampler in ["hmc()", "nuts()", "mala()"] {
        let good = health("gaussian(#{ dim: 10 })", sampler, "");
        assert_eq!(good["divergences"]["count"], 0, "{sampler}: {good}");
        assert_eq!(good["divergences"]["of"], 6000, "{sampler}: {good}");
        for chain in good["bfmi"].as_array().unwrap() {
            assert!(chain.as_f64().unwrap() > 0.5, "{sampler}: {good}");
        }
        assert!(good["remarks"].as_array().unwrap().is_empty(), "{good}");
    }
    let bad = health("funnel(#{ dim: 10 })", "nuts(#{ max_depth: 3 })", "");
    let least = bad["bfmi"].as_array().unwrap().iter();
    let least = least.map(|x| x.as_f64().unwrap()).fold(9.0, f64::min);
    assert!(least < 0.3 && bad["max_depth"] == 3, "{bad}");
    assert!(bad["divergences"]["count"].as_u64().unwrap() > 0, "{bad}");
    assert!(bad["cut_short"]["share"].as_f64().unwrap() > 0.1, "{bad}");
    assert_eq!(bad["remarks"].as_array().unwrap().len(), 3, "{bad}");
    // A start far from where the chain settles.
    let slow = health(
        "gaussian(#{ dim: 2, condition: 1 })",
        "sgld(#{ step: 0.004 })",
        ", burn_in: 0, start: parameters([200.0, 200.0]), observe: [observable::norm2()]",
    );
    assert!(
        slow["equilibration"]["share"].as_f64().unwrap() > 0.25,
        "{slow}"
    );
    assert!(slow["divergences"].is_null() && slow["bfmi"].is_null());
    assert_eq!(slow["remarks"].as_array().unwrap().len(), 1, "{slow}");
}

/// The fraction of missing information counts every trajectory, however few are recorded.
#[test]
fn the_fraction_of_missing_information_is_that_of_all_trajectories() {
    let found = value(
        "let t = target(potential::gaussian(#{ dim: 3 }));
         let run = |every| sample(t, sampler::hmc(#{ leapfrog: 3 }), #{ steps: 2000, burn_in: 500, chains: 1, seed: 3, every: every });
         let all = run.call(1);
         let h = all.draws(\"hamiltonian\", 0)[0];
         let mean = h.reduce(|s, x| s + x, 0.0) / h.len(); let steps = 0.0; let variance = 0.0;
         for i in 0..h.len() { variance += (h[i] - mean) ** 2; if i > 0 { steps += (h[i] - h[i - 1]) ** 2; } }
         [all.health().bfmi[0], run.call(500).trace(\"bfmi\", 0)[3], (steps / (h.len() - 1)) / (variance / (h.len() - 1))]",
    );
    let x: Vec<f64> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect();
    assert!((x[0] / x[2] - 1.0).abs() < 1e-9, "{x:?}");
    // The mean of what it was during the last quarter.
    assert!((x[1] / x[0] - 1.0).abs() < 0.1, "{x:?}");
}
