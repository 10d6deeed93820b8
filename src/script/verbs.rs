//! The verbs at top level: `target train sample sweep benchmark validate compare param logspace linspace`.

use super::convert::{Call, from_json, options};
use super::words::a_kind;
use super::{Binder, Bound, Context, OrRaise, raise};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::model::Model;
use crate::sampler::Configured;
use crate::simulation::compare::{Comparison, compare};
use crate::simulation::optimizer::Optimizer;
use crate::simulation::plan::{self, Plan};
use crate::simulation::run::Run;
use crate::simulation::train::{self, Trained, train};
use crate::simulation::verify::{self, Origin, Verification};
use crate::simulation::{self, benchmark, validate};
use crate::target::{self, Potential, Target, analytic};
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    targets(b);
    training(b);
    runs(b);
    benchmarks(b);
    validations(b);
    numbers(b);
}

fn targets(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "target(model, dataset, #{ options }) -> Target",
        "The distribution to sample: `p(w) ∝ exp(-U(w)/T)` with `U = s·L(w) + R(w)`.\n\n\
         L is the mean loss over the n training examples, s the likelihood scale (`energy`), R the prior energy. The temperature T belongs to the \
         run. Instead of model and data set, a `potential::…` may be given. `print(target)` shows n, N, s and the prior.",
        move |native: NativeCallContext, m: Arc<dyn Model>, d: Arc<Dataset>, map: Map| -> Bound<Arc<Target>> {
            let call = Call { context: &context, native: &native };
            options(&call, "target", target::OPTIONS, &map).and_then(|o| Target::of_network(&m, &d, &o)).or_raise()
        },
    )
    .with(target::OPTIONS, "target(model::mlp(#{ layers: [64, 10] }), dataset::digits(), #{ prior: prior::l2(10.0) })");
    let default = |native: NativeCallContext, context: &Arc<Context>| {
        options(
            &Call {
                context,
                native: &native,
            },
            "target",
            target::OPTIONS,
            &Map::new(),
        )
    };
    let context = b.context.clone();
    b.function(
        "target(model, dataset) -> Target",
        "",
        move |n: NativeCallContext, m: Arc<dyn Model>, d: Arc<Dataset>| -> Bound<Arc<Target>> {
            default(n, &context)
                .and_then(|o| Target::of_network(&m, &d, &o))
                .or_raise()
        },
    );
    let context = b.context.clone();
    b.function(
        "target::analytic(name, #{ options }) -> Target",
        "A target of known law by its name: \"gaussian\", \"double_well\", \"banana\", \"funnel\", \"eight_schools\", \"normal_crossing\", \"rosenbrock\", \"mixture\", \"gaussian_mixture\".\n\n\
         `target::analytic(\"funnel\", #{ dim: 5 })` is `target(potential::funnel(#{ dim: 5 }))`; the options are those of the potential and those of \
         `target`.",
        move |native: NativeCallContext, name: &str, map: Map| -> Bound<Arc<Target>> {
            let call = Call { context: &context, native: &native };
            analytic(&call, name, &map).or_raise()
        },
    )
    .with(&[], "target::analytic(\"banana\", #{ curvature: 0.05, prior: prior::gaussian(0.1) })");
    let context = b.context.clone();
    b.function(
        "target::analytic(name) -> Target",
        "",
        move |native: NativeCallContext, name: &str| -> Bound<Arc<Target>> {
            let call = Call {
                context: &context,
                native: &native,
            };
            analytic(&call, name, &Map::new()).or_raise()
        },
    );
    let context = b.context.clone();
    b.function(
        "target(potential) -> Target",
        "",
        move |n: NativeCallContext, p: Arc<dyn Potential>| -> Bound<Arc<Target>> {
            default(n, &context)
                .and_then(|o| Target::of_potential(p, &o))
                .or_raise()
        },
    );
    let context = b.context.clone();
    b.function(
        "target(potential, #{ options }) -> Target",
        "",
        move |native: NativeCallContext, p: Arc<dyn Potential>, map: Map| -> Bound<Arc<Target>> {
            let call = Call {
                context: &context,
                native: &native,
            };
            options(&call, "target", target::OPTIONS, &map)
                .and_then(|o| Target::of_potential(p, &o))
                .or_raise()
        },
    );
}

/// `target::analytic`: one of the potentials of known law, by name.
fn analytic(call: &Call, name: &str, map: &Map) -> Result<Arc<Target>> {
    let entry = analytic::named(name)?;
    let owner = format!("target::analytic(\"{name}\")");
    let of_target = |key: &str| target::OPTIONS.iter().any(|s| s.name == key);
    let of_potential = |key: &str| entry.options.iter().any(|s| s.name == key);
    let part = |wanted: &dyn Fn(&str) -> bool| -> Map {
        let pairs = map.iter().filter(|(k, _)| wanted(k));
        pairs.map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    // What neither knows is the potential's to refuse.
    let own = part(&|k| of_potential(k) || !of_target(k));
    let rest = part(&|k| of_target(k) && !of_potential(k));
    let potential = (entry.build)(&options(call, &owner, entry.options, &own)?)?;
    Target::of_potential(potential, &options(call, &owner, target::OPTIONS, &rest)?)
}

fn training(b: &mut Binder) {
    let run = |native: &NativeCallContext,
               context: &Arc<Context>,
               t: &Target,
               o: &Optimizer,
               map: &Map| {
        let call = Call { context, native };
        options(&call, "train", train::OPTIONS, map)
            .and_then(|options| train(t, o, &options, &context.session))
            .or_raise()
    };
    let context = b.context.clone();
    b.function(
        "train(target, optimizer, #{ options }) -> Trained",
        "Optimise parameters on L + R/s: starting points for samplers, and the baseline they are compared with.\n\n\
         Every epoch's learning rate, mean minibatch loss, and loss and error on the test and validation splits are kept: \
         `trained.history(\"error_test\")`. With early stopping the best parameters on the validation split are kept, otherwise the last.",
        move |n: NativeCallContext, t: Arc<Target>, o: Arc<Optimizer>, map: Map| -> Bound<Arc<Trained>> { run(&n, &context, &t, &o, &map) },
    )
    .with(train::OPTIONS, "train(target(model::mlp(#{ layers: [64, 10] }), dataset::digits()), optimizer::adam(#{ epochs: 2 }))");
    let context = b.context.clone();
    b.function(
        "train(target, optimizer) -> Trained",
        "",
        move |n: NativeCallContext, t: Arc<Target>, o: Arc<Optimizer>| -> Bound<Arc<Trained>> {
            run(&n, &context, &t, &o, &Map::new())
        },
    );
}

fn runs(b: &mut Binder) {
    let start = |context: &Arc<Context>, plan: Plan, t: &Arc<Target>, s: &Arc<Configured>| {
        if let (Some(full), false) = (plan.full_steps, context.session.quiet) {
            let (name, steps) = (&plan.name, plan.steps);
            let text = format!("--quick: '{name}' does {steps} steps instead of {full}");
            context.session.console.remark(&text);
        }
        let mut run = simulation::run(&plan, t, s, &context.session)?;
        if let Some(own) = Arc::get_mut(&mut run) {
            own.origin = Some(Origin {
                target: t.clone(),
                sampler: s.clone(),
                observables: plan.observables,
            });
        }
        Ok(run)
    };
    let run = move |native: &NativeCallContext,
                    context: &Arc<Context>,
                    kind: &'static str,
                    t: &Arc<Target>,
                    s: &Arc<Configured>,
                    map: &Map| {
        let call = Call { context, native };
        let specs = if kind == "sweep" {
            plan::SWEEP_OPTIONS
        } else {
            plan::SAMPLE_OPTIONS
        };
        let plan = options(&call, kind, specs, map)
            .and_then(|o| Plan::from_options(kind, &o, &context.session));
        plan.and_then(|plan| start(context, plan, t, s)).or_raise()
    };
    let context = b.context.clone();
    b.function(
        "sample(target, sampler, #{ options }) -> Run",
        "Sample at one temperature (a number or a schedule).\n\n\
         Chains run in parallel, are recorded, saved while they run, and can be resumed bit for bit with `--resume`. A chain that meets NaN or \
         leaves its region is stopped, reported and left out of averages.",
        move |n: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Arc<Run>> { run(&n, &context, "sample", &t, &s, &map) },
    )
    .with(
        plan::SAMPLE_OPTIONS,
        "sample(target(potential::gaussian(#{ dim: 3 })), sampler::hmc(), #{ temperature: 2.0, steps: 400, chains: 2, every: 1 })",
    );
    let context = b.context.clone();
    b.function(
        "sweep(target, sampler, #{ options }) -> Run",
        "Sample at several temperatures at once, with `chains` chains each.\n\nThe trace store has the dims chain, draw, temperature.",
        move |n: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Arc<Run>> { run(&n, &context, "sweep", &t, &s, &map) },
    )
    .with(
        plan::SWEEP_OPTIONS,
        "sweep(target(potential::double_well()), sampler::hmc(), #{ temperatures: [0.2, 1.0], steps: 400, chains: 2, every: 1 })",
    );
    let context = b.context.clone();
    let exchanging =
        move |native: &NativeCallContext, t: &Arc<Target>, s: &Arc<Configured>, map: &Map| {
            let call = Call {
                context: &context,
                native,
            };
            let o = options(&call, "exchange", plan::EXCHANGE_OPTIONS, map)?;
            let plan = Plan::exchanging(&o, s, &context.session)?;
            let hottest = plan.hottest();
            start(&context, plan, t, &s.exchanging(t, hottest)?)
        };
    b.function(
        "exchange(target, sampler, #{ options }) -> Run",
        "Replica exchange: sample at all temperatures of a ladder at once, and let neighbours swap theirs.\n\n\
         A swap of the replicas on rungs i and j is accepted with probability min(1, exp[(1/T_i - 1/T_j)(E_i - E_j)]), which leaves the law of every rung \
         what it is (Swendsen & Wang 1986; Baldock 2019, algorithm 1); E is what T divides, over all examples. Temperatures move, parameters stay. So a \
         replica that is stuck at a low temperature gets loose at a high one and comes back elsewhere.\n\n\
         With any sampler: exact ones stay exact, also between swaps; those that follow minibatches have the bias that they have at each temperature, \
         and swap by the energy over all examples. Step sizes that a sampler adapts belong to the rung, are adapted there during burn-in and frozen; masses \
         are not adapted.\n\n\
         The run has the dims chain, draw, temperature, as a sweep: a chain is an independent ladder, its draws at a temperature those of whichever replica was \
         there (`replica`), with the energy `tempered_energy`. `run.ladder()` tells how the ladder works, `evidence(run)` what it integrates to.",
        move |n: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Arc<Run>> { exchanging(&n, &t, &s, &map).or_raise() },
    )
    .with(
        plan::EXCHANGE_OPTIONS,
        "exchange(target(potential::double_well()), sampler::hmc(), #{ temperatures: [0.2, 0.5, 1.0], steps: 400, chains: 2 })",
    );
}

fn benchmarks(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "benchmark(target, sampler, #{ options }) -> map",
        "Measure how fast a sampler steps on a target, without recording anything.\n\n\
         Entries: `seconds_per_step` (of all chains), `steps_per_second` (of single chains, summed), `floor_seconds` (the matrix products of one step \
         alone, in the fastest of several ways), `normals_per_second`, `needed_bytes`, `peak_bytes`, `parameters`, `chains`, `threads`. \
         `ergodic bench` runs a fixed list of these; `ergodic docs performance` says what to do with the numbers.",
        move |native: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Dynamic> {
            let call = Call { context: &context, native: &native };
            let measured = options(&call, "benchmark", benchmark::OPTIONS, &map)
                .and_then(|o| benchmark::benchmark(&t, &s, &o, &context.session))
                .and_then(|b| Ok(serde_json::to_value(b)?));
            measured.map(|v| from_json(&v)).or_raise()
        },
    )
    .with(
        benchmark::OPTIONS,
        "benchmark(target(potential::gaussian(#{ dim: 4 })), sampler::sgld(#{ step: 0.1, batch: 1 }), #{ seconds: 0.02 })",
    );
}

fn validations(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "validate(target, sampler, #{ options }) -> map",
        "Test what pseudo-Langevin takes for granted, along short trajectories (Zambon et al. 2026, §III.1 and Fig. 3a to c).\n\n\
         `ks_fraction`: of Kolmogorov–Smirnov tests of the scaled minibatch noise of single parameters against N(0,1), those with p > 0.05 (0.95 if it \
         is normal with the V in use; the paper has 0.946). `noise`: its distribution, `x` and `density`, and `by_stop`. `correlation`: distributions over pairs of parameters, `rms` and \
         `largest_eigenvalue` of the minibatch noise, of white noise and of both in their proportion in the heat bath (eq. 24), which should look like white noise. \
         `autocorrelation` of the noise in time, which should vanish from lag 1 on. `ratio`: distribution of 𝒯. Compare averages with those of \
         hybrid Monte Carlo by `compare(reference, run)`.",
        move |native: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Dynamic> {
            let call = Call { context: &context, native: &native };
            let found = options(&call, "validate", validate::OPTIONS, &map)
                .and_then(|o| validate::validate(&t, &s, &o, &context.session));
            found.map(|v| from_json(&v)).or_raise()
        },
    )
    .with(
        validate::OPTIONS,
        "validate(target(potential::gaussian(#{ dim: 20, examples: 500, noise: 2.0 })), sampler::pseudo_langevin(#{ batch: 50 }), #{ stops: 1, steps: 5, draws: 40 })",
    );
    verifications(b);
    b.object::<Arc<Comparison>>("Comparison", |c| c.to_string());
    b.function(
        "compare(reference, run) -> Comparison",
        "Two runs beside each other: every observable of one number that they share, at the temperatures they share, with the relative difference and its size in standard errors.\n\n\
         The first is the reference: differences are the second minus the first, as `ergodic compare` has them.",
        |reference: Arc<Run>, run: Arc<Run>| -> Bound<Arc<Comparison>> { compare(&run, &reference).map(Arc::new).or_raise() },
    );
    b.function(
        "comparison.to_array() -> array",
        "Its lines as maps: name, temperature, reference (the mean of the first run), mean (that of the second), relative_error, deviation (second minus first, in joint standard errors).",
        |c: &mut Arc<Comparison>| from_json(&c.to_json()),
    );
}

fn verifications(b: &mut Binder) {
    b.object::<Arc<Verification>>("Verification", |v| v.to_string());
    let context = b.context.clone();
    let of = move |native: &NativeCallContext, r: &Run, origin: Option<&Origin>, map: &Map| {
        let call = Call {
            context: &context,
            native,
        };
        let o = options(&call, "verify", verify::OPTIONS, map)?;
        let origin = origin.ok_or_else(|| {
            anyhow!("verify: this run was opened from its folder; give its target and its sampler too: verify(run, target, sampler)")
        })?;
        verify::verify(r, origin, &o, &context.session).map(Arc::new)
    };
    let (plain, given) = (of.clone(), of.clone());
    b.function(
        "verify(run, #{ options }) -> Verification",
        "Test the law of a run by short exact chains: do U and the observables drift when hybrid Monte Carlo takes over from its draws?\n\n\
         The run goes on beyond its end, in memory, at every temperature. Now and then hybrid Monte Carlo over all examples starts from where a chain is and makes a few \
         moves. If the run samples exp(-U/T), no mean changes; otherwise means move towards the right ones. `bias of the run` is what the drift says of the run's mean, \
         -drift/(1 - ρ), where ρ is the part of a deviation that the moves leave. Every line says which bias it would have seen. What all chains have missed, \
         as a mode that none of them visited, no such test finds.\n\n\
         The cost is draws × moves × leapfrog gradients over all examples per temperature. Of a run from `open(folder)`: verify(run, target, sampler), which looks at U alone. \
         Fields: verdict, says, lines (maps of name, temperature, mean, bias, bias_mcse, relaxed, sigma, power, wrong).",
        move |n: NativeCallContext, r: Arc<Run>, m: Map| -> Bound<Arc<Verification>> { of(&n, &r, r.origin.as_ref(), &m).or_raise() },
    )
    .with(
        verify::OPTIONS,
        "let t = target(potential::gaussian(#{ dim: 3 }));\nlet run = sample(t, sampler::langevin(#{ dt: 0.3 }), #{ steps: 2000, chains: 2, observe: [observable::norm2()] });\nverify(run, #{ draws: 16 })",
    );
    b.function(
        "verify(run) -> Verification",
        "",
        move |n: NativeCallContext, r: Arc<Run>| -> Bound<Arc<Verification>> {
            plain(&n, &r, r.origin.as_ref(), &Map::new()).or_raise()
        },
    );
    b.function(
        "verify(run, target, sampler) -> Verification",
        "",
        move |n: NativeCallContext,
              r: Arc<Run>,
              target: Arc<Target>,
              sampler: Arc<Configured>|
              -> Bound<Arc<Verification>> {
            let origin = Origin {
                target,
                sampler,
                observables: Vec::new(),
            };
            given(&n, &r, Some(&origin), &Map::new()).or_raise()
        },
    );
    b.function(
        "verification.to_map() -> map",
        "All fields as a map.",
        |v: &mut Arc<Verification>| from_json(&v.to_json()),
    );
}

fn numbers(b: &mut Binder) {
    // Rhai has these for numbers with a fraction only.
    for (name, f) in [
        ("sqrt", f64::sqrt as fn(f64) -> f64),
        ("exp", f64::exp),
        ("ln", f64::ln),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tan", f64::tan),
    ] {
        b.engine.register_fn(name, move |x: i64| f(x as f64));
    }
    fn spaced(name: &str, a: Dynamic, z: Dynamic, n: i64, log: bool) -> Bound<Array> {
        let number = |x: &Dynamic| {
            let x = x.as_float().or_else(|_| x.as_int().map(|i| i as f64));
            x.map_err(|t| {
                raise(anyhow!(
                    "{name}: both ends must be numbers, not {}",
                    a_kind(t)
                ))
            })
        };
        let (a, z) = (number(&a)?, number(&z)?);
        if log && !(a > 0.0 && z > 0.0) {
            return Err(raise(anyhow!(
                "{name}: both ends must be > 0, but are {a} and {z}"
            )));
        }
        if !(1..=1_000_000).contains(&n) {
            return Err(raise(anyhow!(
                "{name}: the count is {n}, but must be 1 … 1000000"
            )));
        }
        let at = |i: i64| {
            if n == 1 {
                0.0
            } else {
                i as f64 / (n - 1) as f64
            }
        };
        let value = |t: f64| match (t, log) {
            (0.0, _) => a,
            (1.0, _) => z,
            (t, true) => a * (z / a).powf(t),
            (t, false) => a + (z - a) * t,
        };
        Ok((0..n).map(|i| Dynamic::from(value(at(i)))).collect())
    }
    b.function(
        "logspace(first, last, count) -> array",
        "Numbers from first to last (both included) by a constant factor. Ends are the values themselves, not exponents.",
        |a: Dynamic, z: Dynamic, n: i64| spaced("logspace", a, z, n, true),
    )
    .with(&[], "logspace(1e-6, 1e-3, 4)");
    b.function(
        "linspace(first, last, count) -> array",
        "Numbers from first to last (both included) at a constant distance.",
        |a: Dynamic, z: Dynamic, n: i64| spaced("linspace", a, z, n, false),
    )
    .with(&[], "linspace(0.0, 1.0, 5)");
    let context = b.context.clone();
    b.function(
        "param(name, default) -> value",
        "",
        move |n: NativeCallContext, name: &str, default: Dynamic| {
            super::parameters::value(&context, &n, name, default)
        },
    );
    let context = b.context.clone();
    b.function(
        "param(name, default, doc) -> value",
        "A parameter of the script: its default, or what `--set name=value` says.\n\n\
         The value may be any expression of the kind of the default: `--set \"temperatures=logspace(1e-6,1e-4,9)\"`. \
         `ergodic run script.rhai --help` lists all parameters. The text `doc` may be left out.",
        move |n: NativeCallContext, name: &str, default: Dynamic, _doc: &str| super::parameters::value(&context, &n, name, default),
    )
    .with(&[], "param(\"steps\", 1000, \"steps per chain\")");
    let context = b.context.clone();
    b.function(
        "is_quick() -> bool",
        "Whether the script runs with `--quick`.",
        move || context.session.quick,
    )
    .with(&[], "is_quick()");
}
