//! The contract of samplers: every registered one, on the same targets, held to its law.
//!
//! * Anisotropic Gaussian with noisy examples: means, variances, virial and kinetic temperature against the *exact stationary
//!   law of the discrete dynamics* (linear recursions have one), so that no discretisation error has to be tolerated.
//! * Double wells: the weight of the left well against quadrature.
//! * A small network: cost and |w|² against long hybrid Monte Carlo.
//!
//! Null hypothesis of every comparison: the sampler has the stated law. The bound is four standard errors, measured from the
//! chains themselves (rank-free MCSE of the mean), and that error has a bound of its own, in `targets`: chains that are stuck measure large errors,
//! within which every law would be theirs. Seeds are fixed. A sampler is added in [`cases`].

mod cases;
mod estimators;
mod law;
mod table;
mod targets;

use super::support::Scratch;
use ergodic::diagnostic;
use ergodic::observable::Handle;
use ergodic::sampler::ConfiguredSampler;
use ergodic::schedule::Schedule;
use ergodic::script::Interpreter;
use ergodic::simulation;
use ergodic::simulation::plan::Plan;
use ergodic::simulation::run::Run;
use ergodic::simulation::session::Session;
use ergodic::target::Target;
use ergodic::trigger::Trigger;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object of the program from a line of script.
fn object<T: Clone + Send + Sync + 'static>(source: &str) -> T {
    let scratch = Scratch::new();
    let mut interpreter = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
    let value = interpreter
        .run("test.rhai", source)
        .unwrap_or_else(|e| panic!("{source}: {e}"));
    let name = value.type_name();
    value
        .try_cast()
        .unwrap_or_else(|| panic!("{source} is a {name}"))
}

fn sampler(source: &str) -> Arc<ConfiguredSampler> {
    object(source)
}

fn target(source: &str) -> Arc<Target> {
    object(source)
}

fn observe(sources: &[String]) -> Vec<Handle> {
    sources.iter().map(|s| object(s)).collect()
}

/// The parameters w0, w1, … as observables.
fn parameters(count: usize) -> Vec<String> {
    (0..count)
        .map(|i| format!("observable::parameter({i})"))
        .collect()
}

/// How long, and how often to look.
#[derive(Clone)]
struct Lengths {
    steps: u64,
    burn_in: u64,
    every: Trigger,
}

impl Lengths {
    /// With a burn-in of a tenth.
    fn new(steps: u64, every: u64) -> Self {
        Self {
            steps,
            burn_in: steps / 10,
            every: Trigger::Every(every),
        }
    }
}

/// Four chains.
fn run(
    target: &Target,
    sampler: &ConfiguredSampler,
    temperature: f64,
    lengths: &Lengths,
    observables: &[String],
) -> Arc<Run> {
    let scratch = Scratch::new();
    let session = Session::new(scratch.join("out"));
    let plan = Plan {
        kind: "sample",
        name: "contract".into(),
        temperatures: vec![Schedule::Constant(temperature)],
        chains: 4,
        start: None,
        steps: lengths.steps,
        course: None,
        burn_in: lengths.burn_in,
        every: lengths.every.clone(),
        observables: observe(observables),
        keep: None,
        predict: Vec::new(),
        region: 1e3,
        seed: 20_261_121,
        full_steps: None,
        temper: ergodic::simulation::temper::Temper::Energy,
        exchange: None,
    };
    simulation::run(&plan, target, sampler, &session).unwrap()
}

/// What checks have found: the largest deviation in standard errors, and the speed.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Deviations that were measured.
    checks: usize,
    /// The largest, in standard errors.
    worst: f64,
    /// Least bulk ESS of the parameters or observables, per second of the run.
    ess_per_second: f64,
    /// Whether the chains act on each other: then their mean is one trace.
    coupled: bool,
}

impl Found {
    fn of(run: &Run) -> Self {
        Self {
            coupled: run.info.coupled,
            ..Self::default()
        }
    }

    /// Fail unless `mean ± mcse` of the chains is within four standard errors of `expected`, and the error at most `most`.
    fn within(&mut self, what: &str, chains: &[Vec<f64>], expected: f64, most: f64) {
        let count = chains.len() as f64;
        let rows = chains
            .iter()
            .map(|c| vec![c.iter().map(|x| x / count).collect()]);
        let error = match self.coupled {
            true => diagnostic::mcse_mean(&added(rows)),
            false => diagnostic::mcse_mean(chains),
        };
        let mean = diagnostic::mean(chains);
        self.check(what, (mean, error), expected, most);
    }

    fn check(&mut self, what: &str, (mean, error): (f64, f64), expected: f64, most: f64) {
        let z = (mean - expected) / error;
        if std::env::var_os("CONTRACT_LOUD").is_some() {
            eprintln!("{what}: {mean:.6} ± {error:.1e}, expected {expected:.6}, {z:+.2}");
        }
        assert!(
            z.abs() < 4.0,
            "{what}: {mean:.6} ± {error:.1e}, expected {expected:.6}, {z:+.1} standard errors"
        );
        // Chains that are stuck have large errors, within which anything is.
        assert!(
            error <= most,
            "{what}: {mean:.6} ± {error:.1e}, but its error may be {most:.1e} at most: the chains hold too few independent draws to tell"
        );
        self.checks += 1;
        self.worst = self.worst.max(z.abs());
    }

    fn speed(&mut self, run: &Run, names: impl Iterator<Item = String>) {
        let ess = |n: String| run.summarise(run.draws(&n, 0, 0, true).unwrap()).ess_bulk;
        let least = names.map(ess).fold(f64::INFINITY, f64::min);
        self.ess_per_second = least / run.seconds;
    }
}

/// Add up traces, each multiplied: one trace per chain.
fn added(traces: impl Iterator<Item = Vec<Vec<f64>>>) -> Vec<Vec<f64>> {
    let mut out: Vec<Vec<f64>> = Vec::new();
    for trace in traces {
        if out.is_empty() {
            out = trace;
            continue;
        }
        for (sum, chain) in out.iter_mut().zip(trace) {
            sum.iter_mut().zip(chain).for_each(|(s, x)| *s += x);
        }
    }
    out
}

/// Chains that hardly move from where they started: their mean is within four of their errors of anything near.
#[test]
#[should_panic(expected = "too few independent draws")]
fn stuck_chains_do_not_pass() {
    let stuck = |c: usize| -> Vec<f64> {
        let at = [-1.2, -0.3, 0.5, 1.1][c];
        (0..1000).map(|i| at + 0.01 * f64::sin(i as f64)).collect()
    };
    let chains: Vec<_> = (0..4).map(stuck).collect();
    Found::default().within("a unit Gaussian", &chains, 0.0, targets::SHARE);
}
