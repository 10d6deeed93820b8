//! Learning coefficients, in scripts.

use super::convert::{Call, from_json, options};
use super::{Binder, Bound, OrRaise, raise};
use crate::dataset::Dataset;
use crate::model::Model;
use crate::model::deep_linear::learning_coefficient;
use crate::plot::Figure;
use crate::report::figures::{self, Coefficient};
use crate::sampler::Configured;
use crate::simulation::llc::benchmark;
use crate::simulation::llc::calibrate::{self, Calibration};
use crate::simulation::llc::problems::{self, Posed};
use crate::simulation::llc::table::Benchmark;
use crate::simulation::llc::{self, Estimate};
use crate::simulation::run::Run;
use crate::target::Target;
use crate::target::prior::Parameters;
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    estimates(b);
    problem(b);
    benchmarks(b);
    calibrations(b);
}

fn benchmarks(b: &mut Binder) {
    b.object::<Arc<Benchmark>>("LlcBenchmark", |x| x.to_string());
    let context = b.context.clone();
    b.function(
        "llc_benchmark(#{ options }) -> LlcBenchmark",
        "Estimate the learning coefficients of many deep linear networks by several samplers at several step sizes (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).\n\n\
         `print(benchmark)` is a table with a line per sampler and step size: `failed`, the share of problems without an estimate; `error`, mean and standard deviation of \
         (λ̂-λ)/λ, and its median; `local`, the mean against the larger of λ and half the rank of the Jacobian, a lower bound of the local coefficient; `order`, the share of pairs of problems \
         that are ordered rightly; `coverage`, how often λ lies within 1.96 of our standard errors. `plot::llc_benchmark(benchmark)` draws it. What is finished is saved: \
         an interrupted benchmark goes on with `--resume`.",
        move |native: NativeCallContext, map: Map| -> Bound<Arc<Benchmark>> {
            let call = Call { context: &context, native: &native };
            options(&call, "llc_benchmark", benchmark::OPTIONS, &map)
                .and_then(|o| benchmark::run(&o, &context.session))
                .map(Arc::new)
                .or_raise()
        },
    )
    .with(benchmark::OPTIONS, "llc_benchmark(#{ problems: 2, n: 10_000, steps: 100, samplers: [sampler::sgld(#{ batch: 50 })], step_sizes: [1e-7, 1e-6] })");
    b.function(
        "plot::llc_benchmark(benchmark) -> Figure",
        "A benchmark of learning coefficients, in four panels (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).\n\n\
         Mean relative error against step size with its standard deviation over problems, the share of failed problems, standard deviation against mean where fewer than a \
         tenth failed, and the share of pairs of problems in the right order.",
        |x: Arc<Benchmark>| -> Figure {
            figures::llc_benchmark(&x)
        },
    );
    b.function(
        "llcbenchmark.to_map() -> map",
        "`lines` (a map per line of the table), `problems` and `cells`, all as measured.",
        |x: &mut Arc<Benchmark>| from_json(&x.to_json()),
    );
}

fn floats(x: impl IntoIterator<Item = f64>) -> Dynamic {
    x.into_iter().map(Dynamic::from).collect::<Array>().into()
}

/// `#{ estimate, mcse }`.
fn beside(estimate: impl Into<Dynamic>, mcse: impl Into<Dynamic>) -> Map {
    let pairs = [("estimate", estimate.into()), ("mcse", mcse.into())];
    pairs.into_iter().map(|(k, v)| (k.into(), v)).collect()
}

fn influence(e: &Estimate, split: &str) -> Bound<Map> {
    let rows = |rows: Vec<Vec<f64>>| rows.into_iter().map(floats).collect::<Array>();
    let [estimate, mcse] = e.influence(split).or_raise()?.map(rows);
    Ok(beside(estimate, mcse))
}

fn susceptibilities(e: &Estimate, split: &str) -> Bound<Map> {
    let [estimate, mcse] = e.susceptibilities(split).or_raise()?.map(floats);
    Ok(beside(estimate, mcse))
}

fn with_mcse((value, mcse): (f64, f64)) -> Map {
    beside(value, mcse)
}

fn estimates(b: &mut Binder) {
    b.object::<Arc<Estimate>>("Estimate", |e| e.to_string());
    let context = b.context.clone();
    b.function(
        "llc(target, sampler, #{ options }) -> Estimate",
        "Estimate the local learning coefficient at a point: `λ̂ = nβ(⟨L(w)⟩ - L(w0))` over `exp(-nβ L(w) - ½γ|w-w0|²)`.\n\n\
         Lau et al. (2024); Hitchcock & Hoogland (2025). L is the loss of the target; its own energy scale and prior are left out, since nβ and γ \
         take their place. Works with every sampler. Stochastic-gradient samplers give the losses of their own minibatches, compared with those at w0 \
         on the same minibatches; samplers that accept or reject give the loss over all examples.\n\n\
         `print(estimate)` shows estimate, error bar, thermometer and failed chains. Fields: `estimate`, `mcse` (standard error from the effective sample \
         size), `verdict` (\"converged\", \"not yet\" or \"wrong\") and `reasons` (what speaks against it), `chains` (one by one), `spread`, `ess`, `rhat`, `virial`, `failed`, `truth` (where it is known, else NaN), \
         `relative_error`, `run`, `halved`. An estimate that has not converged, is negative, or whose thermometer is off says so in its first line. Check the step size with \
         `halve: true`: a step that is too large makes λ̂ too large, and the thermometer hot.",
        move |native: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Arc<Estimate>> {
            let call = Call { context: &context, native: &native };
            options(&call, "llc", llc::OPTIONS, &map)
                .and_then(|o| llc::llc(&t, &s, &o, &context.session))
                .map(Arc::new)
                .or_raise()
        },
    )
    .with(
        llc::OPTIONS,
        "llc(target(potential::gaussian(#{ dim: 6, examples: 1000 })), sampler::sgld(#{ step: 1e-3, gradient: gradient::full() }), #{ start: parameters([1, 1, 1, 1, 1, 1]), steps: 2000 })",
    );
    for (name, of) in [
        ("estimate", (|e| e.lambda) as fn(&Estimate) -> f64),
        ("mcse", |e| e.mcse),
        ("spread", Estimate::spread),
        ("ess", |e| e.ess),
        ("rhat", |e| e.rhat),
        ("virial", |e| e.virial.temperature),
        ("virial_mcse", |e| e.virial.mcse),
        ("nbeta", |e| e.point.nbeta),
        ("truth", |e| e.truth.map_or(f64::NAN, |t| t.lambda)),
        ("relative_error", |e| {
            e.truth.map_or(f64::NAN, |t| e.lambda / t.lambda - 1.0)
        }),
        ("seconds", |e| e.run.seconds),
    ] {
        b.engine
            .register_get(name, move |e: &mut Arc<Estimate>| of(e));
    }
    b.engine
        .register_get("chains", |e: &mut Arc<Estimate>| {
            floats(e.chains.iter().copied())
        })
        .register_get("failed", |e: &mut Arc<Estimate>| -> Dynamic {
            let each = e.failed.iter().cloned().map(Dynamic::from);
            each.collect::<Array>().into()
        })
        .register_get("run", |e: &mut Arc<Estimate>| e.run.clone())
        .register_get("halved", |e: &mut Arc<Estimate>| match &e.halved {
            Some(half) => Dynamic::from(Arc::new(Estimate::clone(&half.estimate))),
            None => Dynamic::UNIT,
        })
        .register_get("verdict", |e: &mut Arc<Estimate>| {
            e.judged().verdict.to_string()
        })
        .register_get("reasons", |e: &mut Arc<Estimate>| -> Array {
            e.judged().reasons.into_iter().map(Dynamic::from).collect()
        });
    b.function(
        "estimate.to_map() -> map",
        "All its numbers.",
        |e: &mut Arc<Estimate>| from_json(&e.to_json()),
    );
    let of_train = |e: &mut Arc<Estimate>| influence(e, "train");
    b.function(
        "estimate.influence(split) -> map",
        "How the mean loss of example j responds to the weight of example i: `-β Cov(ℓ_i, ℓ_j)` (Kreer et al. 2025, Bayesian influence, times β).\n\n\
         `#{ estimate, mcse }`, arrays of arrays: numbers and their standard errors, from the scatter over blocks of draws. Negative where seeing more of i helps with j. Without `split` it is that of the training split. Needs `observe: [observable::example_losses()]`. Of positions, -β/P Cov: each \
         has a P-th of its row's weight.",
        |e: &mut Arc<Estimate>, split: &str| influence(e, split),
    )
    .function("estimate.influence() -> map", "", of_train);
    b.function(
        "estimate.susceptibilities(split) -> map",
        "`-Cov(L, ℓ_i - L)` of every observed example: how ⟨L⟩ responds when the data shift towards it, over nβ (Baker et al. 2025).\n\n\
         `#{ estimate, mcse }`, arrays: numbers and their standard errors, from the scatter over blocks of draws. With `restrict: \"block2.attn.head3\"` they are those of the head. Needs `observe: [observable::example_losses(), observable::cost()]`, with \
         `each: \"position\"` for single tokens; without the cost, L is the mean over the other observed examples. Without `split` it is the training split.",
        |e: &mut Arc<Estimate>, split: &str| susceptibilities(e, split),
    )
    .function("estimate.susceptibilities() -> map", "", |e: &mut Arc<Estimate>| susceptibilities(e, "train"));
    b.function(
        "estimate.singular_fluctuation() -> map",
        "`½ β Σ_i Var(ℓ_i)`, the singular fluctuation ν (Watanabe 2010): `#{ estimate, mcse }`.\n\n\
         Of observed examples that are fewer than n, times n over their number, and the choice is in the error bar. Needs `observe: [observable::example_losses()]`.",
        |e: &mut Arc<Estimate>| e.singular_fluctuation().map(with_mcse).or_raise(),
    );
    let context = b.context.clone();
    b.function(
        "estimate.wbic() -> map",
        "`n⟨L⟩` at β = 1/ln n, the widely applicable Bayesian information criterion (Watanabe 2013): `#{ estimate, mcse }`.\n\n\
         From n·L(w0) + λ̂/β, which is more precise than the mean of noisy losses. It estimates the free energy -ln ∫ exp(-nL) of the neighbourhood that γ leaves, if L is a negative \
         log-likelihood.",
        move |e: &mut Arc<Estimate>| e.wbic(context.session.threads).map(with_mcse).or_raise(),
    );
    b.function(
        "estimate.online() -> map",
        "`#{ step, mean }`: the estimate from the steps so far, after burn-in.",
        |e: &mut Arc<Estimate>| -> Map {
            let (step, mean) = e.online();
            [("step", step), ("mean", mean)]
                .into_iter()
                .map(|(k, v)| (k.into(), floats(v)))
                .collect()
        },
    );
    b.function(
        "plot::llc(estimate) -> Figure",
        "The loss of every chain along the steps, and below it the estimate so far, with 95 % of the final one and the exact value.",
        |e: Arc<Estimate>| -> Figure {
            figures::llc(Coefficient {
                run: &e.run,
                traces: &e.traces,
                online: e.online(),
                estimate: (e.lambda, e.mcse),
                truth: e.truth.map(|t| t.lambda),
            })
        },
    );
    b.function(
        "estimate.trace(chain) -> array",
        "nβ(L(w) - L(w0)) of a chain, record by record, burn-in included.",
        |e: &mut Arc<Estimate>, chain: i64| -> Bound<Dynamic> {
            let found = usize::try_from(chain).ok().and_then(|c| e.traces.get(c));
            let trace = found.ok_or_else(|| {
                raise(anyhow!(
                    "estimate.trace({chain}): there are {} chains",
                    e.traces.len()
                ))
            })?;
            Ok(floats(trace.iter().copied()))
        },
    );
    b.function(
        "parameters.at(index) -> Parameters",
        "One of the vectors, as parameters of its own: the point of a learning coefficient.",
        |p: &mut Arc<Parameters>, i: i64| -> Bound<Arc<Parameters>> { at(p, i) },
    );
    b.function(
        "run.at(chain) -> Parameters",
        "The last parameters of one chain.",
        |r: &mut Arc<Run>, i: i64| -> Bound<Arc<Parameters>> {
            let vectors = r.params.clone();
            at(&Parameters { vectors }, i)
        },
    );
    b.function(
        "trained.at(chain) -> Parameters",
        "The kept parameters of one chain.",
        |t: &mut Arc<crate::simulation::train::Trained>, i: i64| at(&t.params, i),
    );
}

fn calibrations(b: &mut Binder) {
    b.object::<Arc<Calibration>>("Calibration", |c| c.to_string());
    let context = b.context.clone();
    b.function(
        "calibrate_llc(target, sampler, #{ options }) -> Calibration",
        "Find the step size (and nβ) for a learning coefficient, without knowing the answer.\n\n\
         Every step size is tried at every nβ, and what speaks against it is said: failed chains, a virial that is hot (the step is too large) or cold (chains have not \
         relaxed), chains that have not converged, an estimate that the next smaller step does not confirm, a wide error bar. Recommended is what is on a plateau: nothing speaks against it, a neighbouring \
         step gives the same, and of several nβ a neighbouring one does too; there the one with the smallest error bar at the nβ nearest to n/ln n. Error bars of different nβ are not ranked: they are of different things. Where there is none, as of large singular models whose flat directions do not relax in any affordable number of steps, `steadiest` is the trial at which the estimate changes least \
         with the step size, which is what one would choose by eye: a provisional estimate; `to_map()` has all of it.",
        move |native: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, map: Map| -> Bound<Arc<Calibration>> {
            let call = Call { context: &context, native: &native };
            options(&call, "calibrate_llc", calibrate::OPTIONS, &map)
                .and_then(|o| calibrate::calibrate(&t, &s, &o, &context.session))
                .map(Arc::new)
                .or_raise()
        },
    )
    .with(
        calibrate::OPTIONS,
        "calibrate_llc(target(potential::gaussian(#{ dim: 3, condition: 1, examples: 1000 })), sampler::sgld(#{ gradient: gradient::full() }), #{ start: parameters([1, 1, 1]), steps: 400 })",
    );
    b.function(
        "calibration.to_map() -> map",
        "`trials`, a map for each, and `recommended` and `steadiest`, each one of them (NaN if there is none).",
        |c: &mut Arc<Calibration>| from_json(&c.to_json()),
    );
}

fn at(p: &Parameters, i: i64) -> Bound<Arc<Parameters>> {
    let found = usize::try_from(i).ok().and_then(|i| p.vectors.get(i));
    let vector = found.ok_or_else(|| {
        raise(anyhow!(
            "at({i}): there are {} parameter vectors",
            p.vectors.len()
        ))
    })?;
    let vectors = vec![vector.clone()];
    Ok(Arc::new(Parameters { vectors }))
}

fn problem(b: &mut Binder) {
    b.object::<Arc<Posed>>("Problem", |p| p.to_string());
    let context = b.context.clone();
    b.function(
        "llc_problem(#{ options }) -> Problem",
        "A deep linear network with true weights, its data, and its exact learning coefficient: a problem of the benchmark of Hitchcock & Hoogland (2025, D.1).\n\n\
         Fields: `model`, `data`, `target`, `start` (the true weights), `widths`, `rank`, `truth` (λ, Aoyagi's formula), `multiplicity`, and `regular`: half the rank of \
         the Jacobian at the weights. λ is the least coefficient over all weights with this product, and that of the weights themselves is at least `regular`: \
         where that is larger, estimates at `start` rightly lie above λ. With `widths` and `rank` the weights are those where both agree.",
        move |native: NativeCallContext, map: Map| -> Bound<Arc<Posed>> {
            let call = Call { context: &context, native: &native };
            options(&call, "llc_problem", problems::OPTIONS, &map)
                .and_then(|o| problems::pose(&o, context.session.threads))
                .map(Arc::new)
                .or_raise()
        },
    )
    .with(problems::OPTIONS, "llc_problem(#{ widths: [5, 6, 9, 4], rank: 1, n: 10_000, data: \"moments\" })");
    b.engine
        .register_get("model", |p: &mut Arc<Posed>| -> Arc<dyn Model> {
            p.model.clone()
        })
        .register_get("data", |p: &mut Arc<Posed>| -> Arc<Dataset> {
            p.data.clone()
        })
        .register_get("target", |p: &mut Arc<Posed>| p.target.clone())
        .register_get("start", |p: &mut Arc<Posed>| p.start.clone())
        .register_get("truth", |p: &mut Arc<Posed>| p.problem.truth.lambda)
        .register_get("multiplicity", |p: &mut Arc<Posed>| {
            p.problem.truth.multiplicity as i64
        })
        .register_get("regular", |p: &mut Arc<Posed>| p.problem.regular)
        .register_get("rank", |p: &mut Arc<Posed>| p.problem.rank as i64)
        .register_get("widths", |p: &mut Arc<Posed>| -> Dynamic {
            let each = p.problem.widths.iter().map(|w| Dynamic::from(*w as i64));
            each.collect::<Array>().into()
        });
    let context = b.context.clone();
    b.function(
        "problem.save(path) -> string",
        "Write the true weights as safetensors, `w1` [H_1, H_0] and so on, for other programs; a relative path is below the folder of results.\n\nA relative path that leads out of the folder, by \"..\", is an error.",
        move |p: &mut Arc<Posed>, path: &str| -> Bound<String> {
            let path = context.session.place("problem.save", "", path).or_raise()?;
            p.save(&path).or_raise()?;
            Ok(path.display().to_string())
        },
    );
    b.function(
        "learning_coefficient(widths, rank) -> map",
        "λ and multiplicity of a deep linear network of these widths whose product has this rank, exactly: `#{ lambda, multiplicity }`.\n\n\
         Aoyagi (2024), as corrected: the last condition on the set Σ has min, where Hitchcock & Hoogland (2025) print max. With three widths it is Aoyagi & \
         Watanabe's reduced-rank regression (2005).",
        |widths: Array, rank: i64| -> Bound<Map> {
            let width = |x: &Dynamic| x.as_int().ok().and_then(|x| usize::try_from(x).ok());
            let widths: Option<Vec<_>> = widths.iter().map(width).collect();
            let (Some(widths), Ok(rank)) = (widths, usize::try_from(rank)) else {
                return Err(raise(anyhow!("learning_coefficient: widths and rank must be whole numbers, not negative")));
            };
            let found = learning_coefficient(&widths, rank).or_raise()?;
            Ok([
                ("lambda".into(), found.lambda.into()),
                ("multiplicity".into(), (found.multiplicity as i64).into()),
            ]
            .into_iter()
            .collect())
        },
    )
    .with(&[], "learning_coefficient([5, 6, 9, 4], 1)");
    let context = b.context.clone();
    b.function(
        "data.moments() -> Dataset",
        "The training rows of a regression compressed to as many rows as inputs have components, with the same second moments.\n\n\
         For deep linear networks these have the same loss up to a constant, and the same gradient, at a cost that does not depend on n. nβ and ln n stay those of \
         the n rows.",
        move |d: &mut Arc<Dataset>| -> Bound<Arc<Dataset>> {
            d.moments(context.session.threads).map(Arc::new).or_raise()
        },
    );
}
