//! Runs that go on until their chains have converged.

use super::support::{Scratch, evaluate};
use ergodic::diagnostic::Verdict;
use ergodic::prelude::{Arc, Run, Settings as Session, Target, Until, potential, sample, sampler};
use ergodic::script::Interpreter;
use std::collections::BTreeMap;
use std::path::Path;

/// A session that writes here, on so many threads.
fn session(out: &Path, threads: usize) -> Session {
    let mut session = Session::new(out.into());
    session.threads = threads;
    session
}

/// The run that a script ends with.
fn run_in(session: Session, source: &str) -> Arc<Run> {
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let value = interpreter.run("until.rhai", source);
    let value = value.unwrap_or_else(|e| panic!("{source}: {e}"));
    value.try_cast().unwrap()
}

fn run(source: &str) -> Arc<Run> {
    run_in(session(&Scratch::new().join("out"), 1), source)
}

/// Draws of all observables, to the bit, and where the chains ended.
fn draws(run: &Run) -> Vec<Vec<u64>> {
    let columns = run
        .info
        .columns
        .iter()
        .filter(|c| c.name == "cost" || c.name == "norm2" || c.name == "tempered_energy");
    let mut out = Vec::new();
    for column in columns {
        for chain in 0..run.records.len() {
            let trace = run.trace(&column.name, 0, chain).unwrap();
            out.push(trace.iter().map(|x| x.to_bits()).collect());
        }
    }
    out.extend(
        run.params
            .iter()
            .map(|w| w.iter().map(|x| u64::from(x.to_bits())).collect()),
    );
    out
}

/// A call of a verb, with more options.
fn call((begin, options): (&str, &str), more: &str) -> String {
    format!(
        "let net = target(model::mlp(#{{ layers: [64, 6, 10] }}), dataset::digits(#{{ per_class: 10 }}), #{{ prior: prior::l2(10.0) }});
         let posterior = target(model::mlp(#{{ layers: [64, 6, 10] }}), dataset::digits(#{{ per_class: 10 }}), #{{ energy: \"sum\", prior: prior::gaussian(1.0) }});
         {begin}, #{{ {options}, seed: 5, {more} }})"
    )
}

/// Verbs, each with what it has beside steps.
const CALLS: &[(&str, &str)] = &[
    (
        "sample(net, sampler::sgld(#{ step: 1e-3, batch: 20 })",
        "temperature: 1e-3, chains: 2, every: 20",
    ),
    (
        "sweep(net, sampler::hmc(#{ leapfrog: 3 })",
        "temperatures: [1e-4, 1e-3], chains: 2, every: 5, predict: \"test\"",
    ),
    (
        "exchange(posterior, sampler::hmc(#{ leapfrog: 3 })",
        "temperatures: [1.0, 1.5, 2.5], chains: 2, every: 3, swap_every: 7, tune: 2",
    ),
];

/// Null: where a run ends does not change its draws, nor do threads.
#[test]
fn draws_are_those_of_one_run_of_that_length() {
    for this in CALLS {
        let until = call(*this, "steps: 300, until: #{ ess: 1e5, at_most: 700 }");
        let long = run(&until);
        assert_eq!((long.info.steps, long.done()), (700, true), "{until}");
        let fixed = run(&call(*this, "steps: 700, burn_in: 150"));
        assert!(draws(&long) == draws(&fixed), "{until}");
        let again = run_in(session(&Scratch::new().join("out"), 3), &until);
        assert!(draws(&long) == draws(&again), "{until}");
    }
}

/// A run that has ended goes on where more is asked of it, and so does one that was told how long to be: as if it had never ended.
#[test]
fn what_has_ended_goes_on() {
    for this in CALLS {
        let asked = "steps: 300, until: #{ ess: 1e5, at_most: 700 }";
        let whole = run(&call(*this, asked));
        let more = [
            "steps: 300, until: #{ ess: 1e5, at_most: 430 }",
            "steps: 300, burn_in: 150",
        ];
        for first in more {
            let out = Scratch::new();
            let part = run_in(session(&out.join("a"), 1), &call(*this, first));
            let folder = part.folder.display().to_string();
            let asked = format!("burn_in: 150, {asked}, resume: {folder:?}");
            let more = run_in(session(&out.join("b"), 1), &call(*this, &asked));
            assert!(draws(&more) == draws(&whole), "{first}");
            assert_eq!(more.info.steps, 700);
        }
        // What samplers adapt to must be the same.
        let out = Scratch::new();
        let part = run_in(session(&out.join("a"), 1), &call(*this, "steps: 300"));
        let folder = part.folder.display().to_string();
        let other = call(*this, &format!("burn_in: 100, {asked}, resume: {folder:?}"));
        let mut interpreter = Interpreter::new(session(&out.join("b"), 1), BTreeMap::new());
        let refused = interpreter.run("until.rhai", &other).unwrap_err();
        assert!(
            refused.message.contains("burn_in was 150, is 100"),
            "{}",
            refused.message
        );
    }
}

const GAUSSIAN: &str = "target(potential::gaussian(#{ dim: 4, condition: 5.0 }))";

#[test]
fn it_ends_when_nothing_is_missing() {
    let long = run(&format!(
        "sample({GAUSSIAN}, sampler::hmc(), #{{ every: 1, chains: 4, steps: 60, until: #{{}} }})"
    ));
    let summary = long.summary().unwrap();
    assert_eq!(summary.verdict(), Verdict::Converged, "{summary}");
    // Four chains of a hundred draws can have an ESS of 400, and with rejections need more; more than ten times that is not needed.
    assert!((160..2000).contains(&long.info.steps), "{summary}");
    let text = summary.to_string();
    assert!(
        text.contains("it went on until R̂ ≤ 1.01 and ESS ≥ 400, at most 6000 steps"),
        "{text}"
    );
    // More is asked for, and given.
    let longer = run(&format!(
        "sample({GAUSSIAN}, sampler::hmc(), #{{ every: 1, chains: 4, steps: 60, until: #{{ ess: 3000.0, at_most: 100_000 }} }})"
    ));
    let least = longer.summary().unwrap().least_ess(0).unwrap().0;
    assert!((3000.0..9000.0).contains(&least), "{least}");
    // Less is asked for.
    let short = run(&format!(
        "sample({GAUSSIAN}, sampler::hmc(), #{{ every: 1, chains: 4, steps: 60, until: #{{ ess: 60.0, rhat: 1.2 }} }})"
    ));
    assert!(short.info.steps < long.info.steps);
    // Records too rare for a verdict: it ends at the limit, and says what is missing.
    let limited = run(&format!(
        "sample({GAUSSIAN}, sampler::hmc(), #{{ every: 10, chains: 4, steps: 60, until: #{{ at_most: 200 }} }})"
    ));
    let summary = limited.summary().unwrap();
    assert_eq!(limited.info.steps, 200);
    assert_eq!(summary.verdict(), Verdict::NotYet, "{summary}");
}

/// Chains that start far away: burn-in ends where they have come to the law. Null: the mean of the draws is that of the law. Without the search the
/// chains would have converged to another one.
#[test]
fn burn_in_goes_on_while_chains_drift() {
    let far = "parameters([40.0, 40.0, 40.0, 40.0])";
    let source = format!(
        "sample(target(potential::gaussian(#{{ dim: 4 }})), sampler::langevin(#{{ dt: 0.05, friction: 20.0 }}),
            #{{ every: 20, chains: 4, start: {far}, burn_in: 20, steps: 2000, seed: 3, observe: [observable::parameter(0)], until: #{{ at_most: 1_000_000 }} }})"
    );
    let found = run(&source);
    let summary = found.summary().unwrap();
    assert_eq!(summary.verdict(), Verdict::Converged, "{summary}");
    // The start relaxes with the time 20 (400 steps), and is below 0.1 standard deviations after 6 of them.
    assert!(found.info.burn_in >= 1200, "{summary}");
    let row = &summary.rows[0].numbers[0];
    assert!((row.mean - 1.0).abs() < 4.0 * row.mcse_mean, "{summary}");
    assert!(row.mcse_mean < 0.06, "{summary}");
}

/// Null: chains in equilibrium are not taken to drift. At four standard errors one run in eight thousand is, with two observables; the error of few effective
/// draws makes it more. With 200 runs none or one.
#[test]
fn chains_in_equilibrium_lose_nothing() {
    let mut dropped = 0;
    for seed in 0..200 {
        let found = run(&format!(
            "sample(target(potential::gaussian(#{{ dim: 2 }})), sampler::sgld(#{{ step: 0.2, gradient: gradient::full() }}),
                #{{ every: 2, chains: 4, start: parameters([[1.3, 0.0], [2.0, 1.2], [0.5, 1.6], [0.1, 0.9]]), burn_in: 100, steps: 1100, seed: {seed}, until: #{{ at_most: 1101 }} }})"
        ));
        dropped += usize::from(found.info.burn_in > 100);
    }
    assert!(dropped <= 1, "{dropped}");
}

#[test]
fn what_cannot_be_is_said() {
    let of = |options: &str| {
        let source = format!("sample({GAUSSIAN}, sampler::hmc(), #{{ {options} }})");
        evaluate(&source).unwrap_err().message
    };
    for (options, message) in [
        (
            "every: 1",
            "sample needs the option 'steps' (integer): steps per chain, burn-in included; or 'until', to go on until the chains have converged",
        ),
        (
            "until: 400",
            "option 'until' is 400, but must be a map, #{…}",
        ),
        (
            "until: #{ rhat: 1.0 }",
            "option 'until' has the entry 'rhat', which is 1.0, but must be > 1",
        ),
        (
            "until: #{ es: 400 }",
            "option 'until' has no entry 'es'; did you mean 'ess'?",
        ),
        (
            "steps: 500, until: #{ at_most: 400 }",
            "option 'until' has the entry 'at_most', which is 400, but the first look is after 500 steps",
        ),
        ("keep_draws: 10, until: #{}", "give 'keep'"),
        (
            "temperature: schedule::linear(1.0, 2.0, 100), until: #{}",
            "temperatures that do not change",
        ),
    ] {
        let found = of(options);
        assert!(found.contains(message), "{options}: {found}");
    }
}

#[test]
fn rust_asks_for_it_with_a_struct() {
    let scratch = Scratch::new();
    session(&scratch.join("out"), 1).make_current();
    let target = Target::of_potential(potential::Gaussian::new().dim(3).build().unwrap());
    let target = target.run().unwrap();
    let hmc = sampler::Hmc::new().build().unwrap();
    let until = Until {
        ess: 500.0,
        ..Until::default()
    };
    let run = sample(&target, &hmc).every(1).until(until).run().unwrap();
    assert!(run.summary().unwrap().least_ess(0).unwrap().0 >= 500.0);
}
