//! P(q), densities of states and probes of a system, from scripts, against laws that are known.

use super::support::evaluate;
use serde_json::Value;

fn script(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e:?}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("{value}"));
    list.iter()
        .map(|x| x.as_f64().unwrap_or(f64::NAN))
        .collect()
}

/// Within four standard errors, of which one is at most `most`.
fn near(what: &str, value: f64, error: f64, exact: f64, most: f64) {
    assert!(
        (value - exact).abs() < 4.0 * error && error < most,
        "{what}: {value} ± {error}, expected {exact}"
    );
}

/// Null: q of two standard normals of N = 6 components, or of one and a fixed vector, is that of a random direction, P(q) ∝ (1 - q²)^((N - 3)/2), with ⟨q²⟩ = 1/N and Binder's
/// cumulant 2/(N + 2).
#[test]
fn overlaps_of_random_directions_have_their_law() {
    let found = script(
        r#"
        let run = sample(target(potential::closure(6, |w| 0.5 * w.norm2())), sampler::hmc(), #{ steps: 3000, chains: 20, keep: 3 });
        let all = overlaps(run, #{ bins: 8, reference: parameters([1.0, 2.0, 0.0, 0.0, 0.0, -1.0]) });
        [all.statistics.overlap, all.reference.statistics.overlap]
        "#,
    );
    // ∫ (1 - q²)^1.5 dq, by Simpson's rule over a bin.
    let weight = |q: f64| (1.0 - q * q).max(0.0).powf(1.5);
    let over =
        |a: f64, b: f64| (b - a) / 6.0 * (weight(a) + 4.0 * weight(0.5 * (a + b)) + weight(b));
    let whole: f64 = (0..2000)
        .map(|k| over(-1.0 + 0.001 * f64::from(k), -0.999 + 0.001 * f64::from(k)))
        .sum();
    for of in found.as_array().unwrap() {
        let first = |name: &str| numbers(&of[name])[0];
        near("mean", first("mean"), first("mean_error"), 0.0, 0.02);
        near(
            "square",
            first("square"),
            first("square_error"),
            1.0 / 6.0,
            0.01,
        );
        near("binder", first("binder"), first("binder_error"), 0.25, 0.05);
        let (density, error) = (numbers(&of["density"][0]), numbers(&of["density_error"][0]));
        let edges = numbers(&of["edges"]);
        assert_eq!((edges.len(), density.len()), (9, 8));
        for k in 1..7 {
            let exact = over(edges[k], edges[k + 1]) / whole / (edges[k + 1] - edges[k]);
            near("density", density[k], error[k], exact, 0.05);
        }
        let mass: f64 = density.iter().map(|d| d * (edges[1] - edges[0])).sum();
        assert!((mass - 1.0).abs() < 1e-9);
    }
}

/// Null: of cold chains in wells w_i = ±1 that they were put into at random and never leave, q = Σ s_i s'_i/N, with ⟨q²⟩ = 1/N and Binder's cumulant 2/(3N). The draws of a chain are all alike: errors that counted them as independent would be four times
/// too small. With its own start a chain has overlap 1, which T and the barrier bound; hot chains forget it.
#[test]
fn replicas_that_are_stuck_have_the_errors_of_stuck_replicas() {
    let found = script(
        r#"
        let u = tensor::uniform([40, 4], 3) - 0.5;
        let start = parameters(u / u.abs());
        let t = target(potential::double_well(#{ dim: 4, tilt: 0.0 }));
        let o = #{ temperatures: [0.002, 5.0], steps: 2000, keep: 50, start: start };
        let run = sweep(t, sampler::hmc(#{ leapfrog: 3 }), o + #{ chains: 40 });
        let all = overlaps(run, #{ reference: start });
        plot::overlaps(all).save("p_of_q.svg");
        let one = overlaps(sweep(t, sampler::hmc(#{ leapfrog: 3 }), o + #{ chains: 1 }), #{ reference: start });
        plot::overlaps(one).save("alone.svg");
        [all.statistics.overlap, all.reference.statistics.overlap, one.reference.statistics.overlap]
        "#,
    );
    let of = |which: usize, name: &str, t: usize| numbers(&found[which][name])[t];
    near(
        "cold",
        of(0, "square", 0),
        of(0, "square_error", 0),
        0.25,
        0.03,
    );
    near(
        "cold",
        of(0, "binder", 0),
        of(0, "binder_error", 0),
        1.0 / 6.0,
        0.1,
    );
    // As uncertain as 40 · 39/2 pairs at best: √(var q²/780), with var q² = (2 - 2/N)/N².
    assert!(of(0, "square_error", 0) > 0.8 * (1.5f64 / 16.0 / 780.0).sqrt());
    assert!(
        of(1, "mean", 0) > 0.99 && of(1, "binder", 0) > 0.65,
        "{found}"
    );
    assert!(of(2, "mean", 0) > 0.99, "{found}");
    near("hot", of(1, "mean", 1), of(1, "mean_error", 1), 0.0, 0.05);
    near("hot", of(0, "mean", 1), of(0, "mean_error", 1), 0.0, 0.02);
}

/// Overlaps of outputs are those of outputs less their mean over the classes.
#[test]
fn overlaps_of_outputs_do_not_see_what_softmax_does_not() {
    let found = script(
        r#"
        let t = target(model::mlp(#{ layers: [64, 6, 10] }), dataset::digits(#{ per_class: 10 }), #{ prior: prior::l2(10.0) });
        let net = sample(t, sampler::sgld(#{ step: 0.001, batch: 20 }), #{ temperature: 1e-3, chains: 2, steps: 200, keep: 50 });
        let all = overlaps(net, #{ split: "test", reference: net });
        let outputs = |p| t.outputs(p, "test").reshape([-1]).to_array();
        [outputs.call(net.draw(0, 1)), outputs.call(net.draw(1, 1)), all.output_overlap[0][1], all.reference.output_overlap[0], all.statistics.output_overlap.mean_error]
        "#,
    );
    let centred = |z: &Value| -> Vec<f64> {
        let of = |row: &[f64]| {
            let mean = row.iter().sum::<f64>() / 10.0;
            row.iter().map(|x| x - mean).collect::<Vec<_>>()
        };
        numbers(z).chunks(10).flat_map(of).collect()
    };
    let (x, y) = (centred(&found[0]), centred(&found[1]));
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>();
    let exact = dot(&x, &y) / (dot(&x, &x) * dot(&y, &y)).sqrt();
    assert!((found[2].as_f64().unwrap() - exact).abs() < 1e-5, "{found}");
    // Each chain has its own last parameters for its reference: two draws of chain 0 come first, the last of which is that point.
    let with = numbers(&found[3]);
    assert_eq!(with.len(), 4);
    assert!(
        (with[1] - 1.0).abs() < 1e-6 && (with[3] - 1.0).abs() < 1e-6 && with[0] < 0.9999,
        "{with:?}"
    );
    // Two chains have no error bar.
    assert!(found[4][0].is_null(), "{found}");
}

/// Null: of N = 10 harmonic degrees of freedom, g = E⁴β₁⁵/Γ(5) with Z = 1 at β₁, and the heat capacity is 5; by a sweep and by an exchange, at their defaults.
#[test]
fn harmonic_densities_of_states_are_powers() {
    let found = script(
        r#"
        let t = target(potential::gaussian(#{ dim: 10, condition: 1.0 }));
        let o = #{ temperatures: [0.5, 0.8, 1.3, 2.0], steps: 4000, chains: 4, every: 2 };
        let walls = target(potential::gaussian(#{ dim: 10, condition: 1.0 }), #{ prior: prior::uniform_box(100) });
        let energy = o + #{ observe: [observable::energy()] };
        // With ½|w|² more the curvature doubles, and ½|1|²/2 is the least energy.
        let coupled = sweep(walls.coupled(1.0, parameters(tensor::zeros([10]))), sampler::hmc(), energy);
        let runs = [sweep(t, sampler::hmc(), energy), exchange(t, sampler::hmc(), o + #{ temper: "energy" }), sweep(walls, sampler::hmc(), energy), coupled];
        runs.map(|run| [density_of_states(run, #{ edges: [0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16] }), run.transition().to_map()])
        "#,
    );
    for (which, each) in found.as_array().unwrap().iter().enumerate() {
        let (s, c) = (&each[0], &each[1]);
        let heat_capacity = || {
            let (heat, heat_error) = (
                numbers(&c["heat_capacity"]),
                numbers(&c["heat_capacity_error"]),
            );
            assert!(heat.len() >= 13);
            for (h, e) in heat.iter().zip(&heat_error) {
                near("heat capacity", *h, *e, 5.0, 0.5);
            }
        };
        heat_capacity();
        if which == 3 {
            continue;
        }
        let (ln_g, error, edges) = (
            numbers(&s["ln_g"]),
            numbers(&s["ln_g_error"]),
            numbers(&s["edges"]),
        );
        for k in 0..9 {
            let mean = (edges[k + 1].powi(5) - edges[k].powi(5)) / 5.0 / (edges[k + 1] - edges[k]);
            let exact = mean.ln() - 5.0 * 2f64.ln() - 24f64.ln();
            near(
                &format!("ln g from {}", edges[k]),
                ln_g[k],
                error[k],
                exact,
                0.4,
            );
        }
        let (z, z_error) = (numbers(&s["ln_z"]), numbers(&s["ln_z_error"]));
        near("ln Z", z[3], z_error[3], 5.0 * (0.5f64 / 2.0).ln(), 0.1);
        let (beta, beta_error) = (numbers(&s["beta"]), numbers(&s["beta_error"]));
        near(
            "1/T at E = 6",
            beta[5],
            beta_error[5],
            ((8f64.powi(5) - 6f64.powi(5)) / (6f64.powi(5) - 4f64.powi(5))).ln() / 2.0,
            0.05,
        );
    }
}

#[test]
fn what_overlaps_and_probes_cannot_use_is_said() {
    let run = "let t = target(potential::gaussian(#{ dim: 3 })); let run = sweep(t, sampler::hmc(), #{ temperatures: [1, 1.5], steps: 100, chains: 2, keep: 10 });\n";
    for (rest, expected) in [
        (
            "overlaps(run, #{ reference: parameters([1.0]) })",
            "'reference' has 1 parameters, the model 3",
        ),
        (
            "plot::overlaps(overlaps(run), \"outptus\")",
            "there is no 'outptus'",
        ),
        ("density_of_states(run)", "observe: [observable::energy()]"),
        (
            "sample(t, sampler::hmc(), #{ steps: 100, every: 1 }).transition()",
            "use sweep(…) or exchange(…)",
        ),
        (
            "density_of_states([0.0, 1.0], [[[1.0]], 3])",
            "array of chains, not 3",
        ),
        (
            "density_of_states([0.0, 1.0], [[[1.0, \"a\"]]])",
            "draws must be numbers, not",
        ),
        (
            "density_of_states([1.0], [[[1.0, 2.0, 3.0, 1.0]]])",
            "at least two inverse temperatures",
        ),
        (
            "t.coupled(-1, parameters([1.0, 0.0, 0.0]))",
            "must be finite and not negative",
        ),
        (
            "t.coupled(1, parameters([1.0]))",
            "has 1 numbers, the model 3 parameters",
        ),
        ("t.in_field(7)", "takes parameters"),
        (
            "smc(t.coupled(1, parameters([1.0, 0.0, 0.0])).in_field(parameters([1.0, 0.0, 0.0])), sampler::hmc())",
            "to which a term was added",
        ),
    ] {
        let error = evaluate(&format!("{run}{rest}"))
            .err()
            .map(|e| e.message)
            .unwrap_or_default();
        assert!(error.contains(expected), "{rest}: {error}");
    }
}
