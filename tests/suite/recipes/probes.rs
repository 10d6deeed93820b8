//! Free energies around a reference, and responses to a field, against closed forms of harmonic systems.

use super::{found, ln_gamma, near, number, numbers, refused};

/// Null: of ½|w - 1|² in N = 10 dimensions at T the distance to the minimum has the density of √T χ_N, far into its tail, and with the reference 1 + a, ln Z(k) - ln Z(0) =
/// -(N/2) ln(1 + k) - ½ k/(1 + k)·|a|²/T; the mean of the squared distance is N T/(1 + k) + |a|²/(1 + k)².
#[test]
fn potentials_of_franz_and_parisi_are_those_of_a_gaussian() {
    let value = found(
        "import \"local_entropy\" as local_entropy;
         let t = target(potential::gaussian(#{ dim: 10, condition: 1.0 }));
         let o = #{ temperature: 0.5, couplings: [0, 1, 3, 8, 20, 50], steps: 2000, every: 1, bins: 20 };
         let near = local_entropy::potential(t, parameters(tensor::ones([10])), sampler::hmc(), o);
         let far = local_entropy::potential(t, parameters(tensor::full([10], 1.3)), sampler::hmc(), o);
         let held = local_entropy::potential(t, parameters(tensor::ones([10])), sampler::hmc(), o + #{ couplings: [2, 5] });
         far.figure.save(\"f.svg\");
         #{ held: #{ d: held.distance, v: held.free_energy },
            near: #{ d: near.distance, v: near.free_energy, e: near.free_energy_error },
            far: #{ s: far.local_entropy, e: far.local_entropy_error, d2: far.mean_distance2, d2e: far.mean_distance2_error, k: far.couplings, rhat: far.worst_rhat } }",
    );
    let (d, v, e) = (
        numbers(&value["near"]["d"]),
        numbers(&value["near"]["v"]),
        numbers(&value["near"]["e"]),
    );
    let (temperature, n) = (0.5f64, 10.0f64);
    let width = d[1] - d[0];
    // From far below the typical distance of 2.2.
    assert!(d.len() >= 15 && d[0] < 0.5, "{d:?}");
    for ((d, v), e) in d.iter().zip(&v).zip(&e) {
        let density = |x: f64| {
            let ln =
                (n - 1.0) * x.ln() - x * x / (2.0 * temperature) - 4.0 * 2f64.ln() - ln_gamma(5);
            (ln - 0.5 * n * temperature.ln()).exp()
        };
        let at = |k: f64| density(d + width * (k - 50.0) / 100.0);
        let mean = (0..100).map(|k| at(f64::from(k) + 0.5)).sum::<f64>() / 100.0;
        near(&format!("V({d})"), (*v, *e), -temperature * mean.ln());
        assert!(*e < 0.2, "{e}");
    }
    // A density wherever the couplings begin, but for the bins without ten draws.
    let (d, v) = (numbers(&value["held"]["d"]), numbers(&value["held"]["v"]));
    let all: f64 = v
        .iter()
        .map(|v| (-v / temperature).exp() * (d[1] - d[0]))
        .sum();
    assert!((all - 1.0).abs() < 0.03, "{all}");
    let far = &value["far"];
    let (s, se, k) = (numbers(&far["s"]), numbers(&far["e"]), numbers(&far["k"]));
    let (d2, d2e) = (numbers(&far["d2"]), numbers(&far["d2e"]));
    for i in 0..k.len() {
        let (k, a2) = (k[i], 0.9);
        near(
            "⟨d²⟩",
            (d2[i], d2e[i]),
            n * temperature / (1.0 + k) + a2 / (1.0 + k).powi(2),
        );
        if i > 0 {
            near(
                "ln Z(k)",
                (s[i], se[i]),
                -0.5 * n * (1.0 + k).ln() - 0.5 * k / (1.0 + k) * a2 / temperature,
            );
            assert!(se[i] < 0.2);
        }
    }
    assert!(number(far, "rhat") < 1.05);
}

/// Null: SGLD with the step ε is w' = a w + (1 - a)h + noise with a = 1 - ε/2, of stationary variance v T with v = 1/(1 - ε/4). A field has the response 1 - a^τ whatever the state, and a chain that was at the origin
/// at time 0 has C(t, t) = v T (1 - a^2t). So X = 1/v in equilibrium, and less while it ages.
#[test]
fn fluctuation_and_response_are_those_of_a_langevin_chain() {
    let value = found(
        "import \"response\" as response;
         let t = target(potential::closure(200, |w| 0.5 * w.norm2()));
         let f = response::ratio(t, sampler::sgld(#{ step: 0.2, batch: 1 }), #{
             temperature: 0.5, waiting: [0, 5, 150], steps: 30, points: 5, chains: 24, start: parameters(tensor::zeros([200])), center: parameters(tensor::zeros([200])) });
         f.figure.save(\"response.svg\");
         f.curves",
    );
    let (a, v) = (0.9f64, 1.0 / 0.95);
    for curve in value.as_array().unwrap() {
        let waited = number(curve, "waiting") as i32;
        let of = |name: &str| numbers(&curve[name]);
        let times = of("times");
        assert_eq!(times.last(), Some(&30.0));
        for (k, time) in times.iter().enumerate() {
            let decay = a.powi(*time as i32);
            let variance = |t: i32| v * 0.5 * (1.0 - a.powi(2 * t));
            let all = variance(waited + *time as i32);
            let common = decay * variance(waited);
            let response = 0.5 * (1.0 - decay);
            // Common random numbers leave rounding alone.
            assert!((of("response")[k] - response).abs() < 1e-4, "{curve}");
            let of = |name: &str| (of(name)[k], of(&format!("{name}_error"))[k]);
            near("C(t,t)", of("square"), all);
            if waited > 0 {
                near("C(t,t_w)", of("correlation"), common);
            }
            near("X", of("ratio"), response / (all - common));
            assert!(of("ratio").1 < 0.07, "{curve}");
        }
    }
    assert!(
        refused("import \"response\" as r; r::ratio(target(potential::gaussian()), sampler::sgld(#{ step: 0.1, batch: 1 }), #{ waiting: [0] })")
            .contains("option 'start' must be parameters")
    );
}
