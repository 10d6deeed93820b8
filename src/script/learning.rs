//! Learning coefficients, in scripts.

use super::binder::Binder;
use super::{Bound, OrRaise, raise};
use crate::dataset::Dataset;
use crate::plot::Figure;
use crate::report::figures;
use crate::simulation::llc::Estimate;
use crate::simulation::llc::calibration::Calibration;
use crate::simulation::llc::curve::Curve;
use crate::simulation::llc::problems::Posed;
use crate::simulation::llc::table::Benchmark;
use crate::simulation::run::Run;
use crate::target::prior::Parameters;
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    fluctuations(b);
    traces(b);
    points(b);
    problem(b);
    benchmarks(b);
}

fn benchmarks(b: &mut Binder) {
    b.function(
        "plot::llc_benchmark(benchmark) -> Figure",
        "A benchmark of learning coefficients, in four panels (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).\n\n\
         Mean relative error against step size with its standard deviation over problems, the share of failed problems, standard deviation against mean where fewer than a \
         tenth failed, and the share of pairs of problems in the right order.",
        |x: Arc<Benchmark>| -> Figure {
            figures::llc_benchmark(&x)
        },
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

fn matrices(found: crate::error::Result<[Vec<Vec<f64>>; 2]>) -> Bound<Map> {
    let rows = |rows: Vec<Vec<f64>>| rows.into_iter().map(floats).collect::<Array>();
    let [estimate, mcse] = found.or_raise()?.map(rows);
    Ok(beside(estimate, mcse))
}

fn susceptibilities(e: &Estimate, split: &str) -> Bound<Map> {
    let found = e.susceptibilities(split).or_raise()?;
    let mut out = beside(floats(found.estimate), floats(found.mcse));
    out.insert("correlation".into(), floats(found.correlation));
    out.insert("correlation_mcse".into(), floats(found.correlation_mcse));
    Ok(out)
}

fn with_mcse((value, mcse): (f64, f64)) -> Map {
    beside(value, mcse)
}

/// What covariances and means of the observed losses tell.
fn fluctuations(b: &mut Binder) {
    b.defaulted(
        "estimate.influence(split) -> map",
        "How the mean loss of example j responds to the weight of example i: `-β Cov(ℓ_i, ℓ_j)` (Kreer et al. 2025, Bayesian influence, times β).\n\n\
         `#{ estimate, mcse }`, arrays of arrays: numbers and their standard errors, from the scatter over blocks of draws. Negative where seeing more of i helps with j. Without `split` it is that of the training split. Needs `observe: [observable::example_losses()]`. Of positions, -β/P Cov: each \
         has a P-th of its row's weight.",
        "train",
        |e: &mut Arc<Estimate>, split: &str| matrices(e.influence(split)),
    );
    b.defaulted(
        "estimate.correlations(split) -> map",
        "`Corr(ℓ_i, ℓ_j)`: influence on a scale from -1 to 1, where examples that are learnt together have 1.\n\n\
         `#{ estimate, mcse }`, arrays of arrays: numbers and their standard errors, by the delta method from the scatter over blocks of draws. Without `split` it is that of the training split. \
         Needs `observe: [observable::example_losses()]`.",
        "train",
        |e: &mut Arc<Estimate>, split: &str| matrices(e.correlations(split)),
    )
    .with(&[], "let p = llc_problem(#{ widths: [1, 3], n: 100 });\nlet e = llc(p.target, sampler::hmc(), #{ start: p.start, chains: 2, steps: 200, observe: [observable::example_losses(#{ rows: 5 })] });\ne.correlations().estimate");
    b.defaulted(
        "plot::correlations(estimate, split) -> Figure",
        "The correlations of the losses of examples as a heat map, from blue (-1) through white to red (1), with numbers where there is room.",
        "train",
        |e: Arc<Estimate>, split: &str| e.correlations_figure(split).or_raise(),
    )
    .with(&[], "let p = llc_problem(#{ widths: [1, 3], n: 100 });\nlet e = llc(p.target, sampler::hmc(), #{ start: p.start, chains: 2, steps: 200, observe: [observable::example_losses(#{ rows: 5 })] });\nplot::correlations(e)");
    b.defaulted(
        "estimate.susceptibilities(split) -> map",
        "`-Cov(L, ℓ_i - L)` of every observed example: how ⟨L⟩ responds when the data shift towards it, over nβ (Baker et al. 2025).\n\n\
         `#{ estimate, mcse, correlation, correlation_mcse }`, arrays: numbers and their standard errors, from the scatter over blocks of draws; the correlations are the same on a scale from -1 to 1, `-Corr(L, ℓ_i - L)`. With `restrict: \"block2.attn.head3\"` they are those of the head. Needs `observe: [observable::example_losses(), observable::cost()]`, with \
         `each: \"position\"` for single tokens; without the cost, L is the mean over the other observed examples. Without `split` it is the training split.",
        "train",
        |e: &mut Arc<Estimate>, split: &str| susceptibilities(e, split),
    );
    b.function(
        "estimate.singular_fluctuation() -> map",
        "`½ β Σ_i Var(ℓ_i)`, the singular fluctuation ν (Watanabe 2010): `#{ estimate, mcse }`.\n\n\
         If fewer than n examples are observed, it is scaled by n over their number, and the error bar includes their choice. Needs `observe: [observable::example_losses()]`.",
        |e: &mut Arc<Estimate>| e.singular_fluctuation().map(with_mcse).or_raise(),
    );
    let context = b.context.clone();
    b.function(
        "estimate.wbic() -> map",
        "`n⟨L⟩` at β = 1/ln n, the widely applicable Bayesian information criterion (Watanabe 2013): `#{ estimate, mcse }`.\n\n\
         From n·L(w0) + λ̂/β, which is more precise than the mean of noisy losses. It estimates the free energy -ln ∫ exp(-nL) of the neighbourhood that γ leaves, if L is a negative \
         log-likelihood.",
        move |e: &mut Arc<Estimate>| e.wbic(&context.session).map(with_mcse).or_raise(),
    );
}

fn traces(b: &mut Binder) {
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
        "The loss of every chain along the steps, and below it the estimate so far, with 95 % of the final one and the exact value; of an estimate at several nβ the mean loss against 1/nβ, and λ̂ at each.",
        |e: Arc<Estimate>| -> Figure { e.figure() },
    );
    b.function(
        "plot::llc_calibration(calibration) -> Figure",
        "λ̂ of a calibration over step size and γ, a heat map for each nβ.\n\nWhite is the recommended estimate (else the provisional one), blue half of it and less, red half as much again and more. Crossed are trials in which every chain failed.",
        |c: Arc<Calibration>| -> Figure { c.figure() },
    )
    .with(
        &[],
        "let t = target(potential::gaussian(#{ dim: 3, condition: 1, examples: 1000 }));\n\
         plot::llc_calibration(calibrate_llc(t, sampler::sgld(#{ gradient: gradient::full() }), #{ start: parameters([1, 1, 1]), steps: 400, gammas: [1, 10] }))",
    );
    b.function(
        "plot::llc_curve(curve) -> Figure",
        "λ̂ with its error bars against epoch or step, and below it the loss.\n\nPoints that have not converged are marked. Places that span decades are on a logarithmic axis.",
        |c: Arc<Curve>| -> Figure { c.figure() },
    )
    .with(
        &[],
        "let points = parameters([[0.0, 1.0], [1.0, 0.0]]);\n\
         plot::llc_curve(llc_curve(points, target(potential::normal_crossing([1, 2])), sampler::hmc(), #{ nbeta: 1e3, gamma: 30, steps: 200 }))",
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
}

/// Parameters that a learning coefficient can be estimated at.
fn points(b: &mut Binder) {
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
        |t: &mut Arc<crate::simulation::trained::Trained>, i: i64| at(&t.params, i),
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
