//! Runs, trainings and summaries in scripts.

use super::binder::Binder;
use super::convert::map;
use super::{Bound, OrRaise, raise};
use crate::error::Result;
use crate::kernels::tensor::Tensor;
use crate::simulation::draws::KeptDraws;
use crate::simulation::evidence::{self, Laplace, Transition};
use crate::simulation::exchange::LadderReport;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::simulation::summary::Summary;
use crate::simulation::trained::Trained;
use crate::target::prior::Parameters;
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

fn floats(x: Vec<f64>) -> Array {
    x.into_iter().map(Dynamic::from).collect()
}

fn index(i: i64) -> Bound<usize> {
    usize::try_from(i).map_err(|_| raise(anyhow!("{i} is not an index; indices count from 0")))
}

fn prediction(run: &Run, split: &str, temperature: i64) -> Bound<Map> {
    let scores = run.prediction(split, index(temperature)?).or_raise()?;
    Ok(map(scores))
}

/// All draws of a tensor of a chain.
fn kept(run: &Run, name: &str, chain: usize) -> Result<Tensor> {
    let (values, shape) = KeptDraws::of(run)?.tensor(&run.info, name, chain)?;
    let draws = values.len() / shape.iter().product::<usize>().max(1);
    Tensor::from_f32(values, &[&[draws], &shape[..]].concat())
}

fn health(run: &Run, temperature: i64) -> Bound<Map> {
    let at = index(temperature)?;
    if at >= run.info.temperatures.len() {
        let count = run.info.temperatures.len();
        return Err(raise(anyhow!(
            "run.health: run '{}' has {count} temperatures, so there is none with index {at}",
            run.info.name
        )));
    }
    let health = run.health(at).or_raise()?;
    let mut out = match serde_json::to_value(&health) {
        Ok(serde_json::Value::Object(fields)) => map(&fields),
        _ => Map::new(),
    };
    let remarks = health.remarks().into_iter().map(Dynamic::from);
    out.insert("remarks".into(), remarks.collect::<Array>().into());
    Ok(out)
}

pub(super) fn bind(b: &mut Binder) {
    b.function(
        "run.summary() -> Summary",
        "Means with Monte Carlo standard errors, R̂, ESS and the virial thermometer with a verdict, per temperature.\n\n\
         It prints as a table: `0.1234(12)` is 0.1234 ± 0.0012. `T virial` is (1/N)⟨(w-c)·∇U⟩, which must be T. The verdict is \"converged\", \"not yet\", \
         \"wrong\" or \"not judged\", with what is missing or wrong below the table (`ergodic docs samplers`). Failed chains are named and left out. `summary.cost` or `summary[\"cost_mcse\"]` gives single entries.",
        |r: &mut Arc<Run>| -> Bound<Arc<Summary>> { r.summary().or_raise() },
    )
    .defaulted(
        "run.health(temperature) -> map",
        "What the traces say about the health of the run at one temperature (by its index; 0 if it is left out).\n\n\
         `divergences` and `cut_short` (trajectories that NUTS's `max_depth` ended), each with count, of and share; `bfmi` per chain (worrying below 0.3); \
         `collective_ratio` of pseudo-Langevin (worrying above 0.1); \
         `equilibration`, the prefix of the draws after burn-in without which the effective sample size of an observable is largest (Chodera 2016), the longest of all; \
         `geweke`, the largest score of all; `remarks`, what is wrong in words. NaN where the sampler does not report it.",
        0,
        |r: &mut Arc<Run>, t: i64| -> Bound<Map> { health(r, t) },
    )
    .defaulted(
        "run.prediction(split, temperature) -> map",
        "Scores of the posterior prediction on a split that the option `predict` named, over all draws after burn-in of all healthy chains at one \
         temperature (by its index; 0 if it is left out).\n\n\
         For classes: error, nll, brier, ece of the averaged probabilities and the table `reliability` (`rows`, `confidence` and `accuracy` in 15 bins of the confidence). For real targets: squared_error of the averaged \
         output, and generalisation_error, (1/2m) Σ |truth - averaged output|², where the data set knows the truth (Iwagaki & Watanabe, eq. 25). For both: \
         nll_se (the standard error of nll over the rows), gibbs_loss, waic, p_waic, functional_variance, singular_fluctuation (Watanabe 2010), elpd_waic and elpd_se, and largest_variance: above 0.4 do not trust WAIC. The likelihood is that of the \
         target: β = s/nT for classes; for squared errors a Gaussian of variance nT/2s, at β = 1. How the first of these change along the run is in the traces \
         `running_error_test` and so on.",
        0,
        |r: &mut Arc<Run>, split: &str, t: i64| -> Bound<Map> { prediction(r, split, t) },
    )
    .function("run.params() -> Parameters", "The last parameters of every chain, for `start`.", |r: &mut Arc<Run>| {
        Arc::new(Parameters { vectors: r.params.clone() })
    })
    .function(
        "run.trace(name, chain) -> array",
        "All recorded values of one chain, burn-in included; the chains of the first temperature come first. For a vector, an array per record; a component has a name of its own, as summaries show it.",
        |r: &mut Arc<Run>, name: &str, chain: i64| -> Bound<Array> {
            let chain = index(chain)?;
            components(r, name, |k| Ok(vec![r.trace(name, k, chain)?])).map(|mut chains| chains.swap_remove(0)).or_raise()
        },
    )
    .function(
        "run.draws(name, temperature) -> array",
        "The values after burn-in of all healthy chains at one temperature (by its index), as one array per chain. For a vector, an array per record.",
        |r: &mut Arc<Run>, name: &str, t: i64| -> Bound<Array> {
            let t = index(t)?;
            let chains = components(r, name, |k| r.draws(name, k, t, true)).or_raise()?;
            Ok(chains.into_iter().map(Dynamic::from).collect())
        },
    )
    .defaulted(
        "trained.history(name, chain) -> array",
        "One column of the training history, per epoch: epoch, lr, loss, loss_test, error_test, loss_validation, error_validation.",
        0,
        |t: &mut Arc<Trained>, name: &str, chain: i64| -> Bound<Array> { t.column(name, index(chain)?).map(floats).or_raise() },
    )
    .function(
        "trained.kept(name) -> array",
        "One column of the history at the epoch whose parameters were kept, per chain.",
        |t: &mut Arc<Trained>, name: &str| -> Bound<Array> {
            t.column(name, 0).or_raise()?;
            let at = |c: usize| t.kept(c).into_iter().find(|(k, _)| k == name).map_or(f64::NAN, |(_, v)| v);
            Ok(floats((0..t.history.len()).map(at).collect()))
        },
    )
    .function(
        "trained.checkpoint(epoch) -> Parameters",
        "The parameters after an epoch that the option `checkpoints` of train named, one vector per chain; 0 is the start. `trained.checkpoints` are the epochs there are.",
        |t: &mut Arc<Trained>, epoch: i64| -> Bound<Arc<Parameters>> { t.checkpoint(index(epoch)? as u64).map(Arc::new).or_raise() },
    )
    .function("trained.params() -> Parameters", "The kept parameters, one vector per chain.", |t: &mut Arc<Trained>| t.params.clone());
}

/// Draws that were kept.
pub(super) fn draws(b: &mut Binder) {
    b.function(
        "run.draw(chain, i) -> Parameters",
        "The i-th draw that a run with the option `keep` has kept of a chain, all parameters; chains are ordered by temperature, then by number.",
        |r: &mut Arc<Run>, chain: i64, i: i64| -> Bound<Arc<Parameters>> { r.draw(index(chain)?, index(i)?).or_raise() },
    )
    .with(&[], "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, keep: 10 });\nr.draw(1, 4)")
    .function(
        "run.kept(name, chain) -> tensor",
        "All draws of one tensor that a run with the option `keep` has kept of a chain, as a tensor `[draws, …]`.",
        |r: &mut Arc<Run>, name: &str, chain: i64| -> Bound<Tensor> { kept(r, name, index(chain)?).or_raise() },
    )
    .with(&[], "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, keep: 10 });\nr.kept(\"w\", 0).shape()")
    .function(
        "run.moments() -> map",
        "`mean` and `sd` of each parameter over the draws that a run with the option `keep` has kept at its lowest temperature, as Parameters.",
        |r: &mut Arc<Run>| -> Bound<Map> {
            let [mean, sd] = r.moments().or_raise()?;
            let point = |x: Vec<f32>| Dynamic::from(Arc::new(Parameters { vectors: vec![Arc::new(x)] }));
            Ok(Map::from([("mean".into(), point(mean)), ("sd".into(), point(sd))]))
        },
    )
    .with(&[], "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, keep: 10 });\nr.moments().sd")
    .function(
        "run.thin(n) -> Run",
        "The same run with one record of n, and one kept draw of n: the last of every n, as if it had been recorded that much more rarely. Nothing on disk changes.\n\n\
         What the sampler reported is then that of the records that are left, not an average over those between. Thinning saves time where draws are \
         looked at again; means are better with all draws.",
        |r: &mut Arc<Run>, n: i64| -> Bound<Arc<Run>> { r.thin(index(n)?).map(Arc::new).or_raise() },
    )
    .with(&[], "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 2, keep: 10, every: 10 });\nobserve(r.thin(2), [observable::energy()]).summary()");
}

/// The records of a trace, chain by chain, from those of its components: numbers, or an array each for a vector.
fn components(
    r: &Run,
    name: &str,
    of: impl Fn(usize) -> Result<Vec<Vec<f64>>>,
) -> Result<Vec<Array>> {
    let column = r.info.column(name).ok().map(|(_, column)| column);
    let Some(column) = column.filter(|c| c.components.is_some()) else {
        return Ok(of(0)?.into_iter().map(floats).collect());
    };
    let each = (0..column.width()).map(of).collect::<Result<Vec<_>>>()?;
    let chains = each.first().map_or(0, Vec::len);
    let record = |c: usize, i: usize| Dynamic::from(floats(each.iter().map(|k| k[c][i]).collect()));
    let chain = |c: usize| (0..each[0][c].len()).map(|i| record(c, i)).collect();
    Ok((0..chains).map(chain).collect())
}

/// What ladders tell of a run.
pub(super) fn ladders(b: &mut Binder) {
    b.function(
        "run.ladder() -> Ladder",
        "How the ladder of an exchange works: swap rates, round trips, the communication barrier, flow, energies and heat capacities.\n\n\
         Everything is counted after burn-in. `print(ladder)` is a table with a line per rung. `ergodic docs ladders` says what to look at. Fields: temperatures, ladders, sweeps (swaps), acceptance and \
         acceptance_mcse (per pair, by the mean of the acceptance probabilities), overlap (of the histograms of E of neighbours), barrier (Λ, the sum of all rejections; \
         Syed et al. 2022) and barrier_mcse, local_barrier (dΛ/dβ), recommended_rungs (2Λ + 1), round_trips (cold → hot → cold), restarts, \
         round_trips_per_1000, _ideal (were every step a fresh draw) and _limit (on infinitely many rungs), flow (share of replicas from the cold end; Katzgraber et al. 2006), \
         energy, energy_mcse, energy_ess, heat_capacity and heat_capacity_mcse (Var(E)/T²). For the next run, `run.temperatures` is the tuned ladder.",
        |r: &mut Arc<Run>| -> Bound<Arc<LadderReport>> { LadderReport::new(r).map(Arc::new).or_raise() },
    )
    .function(
        "run.transition() -> Transition",
        "The heat capacity C = Var(E)/T² along a ladder, also between its rungs (by MBAR), and the temperature where it peaks, with error bars by block bootstrap.\n\n\
         Of an exchange, or of a sweep that observes energy (cost with `temper: \"likelihood\"`) and whose neighbours overlap; where they do not, `transition::heat_capacity(run)` has C at the temperatures themselves. C/N is the specific heat.\n\n\
         Fields: temperatures, heat_capacity, heat_capacity_error; temperature and temperature_error of the peak, its 68 % interval low, high, height and height_error; \
         these are NaN where the heat capacity is highest at an end of the ladder, and `reason` says so.",
        |r: &mut Arc<Run>| -> Bound<Arc<Transition>> { evidence::transition(r).map(Arc::new).or_raise() },
    );
}

/// What is asked of Gaussian approximations.
pub(super) fn approximations(b: &mut Binder) {
    b.function(
        "laplace.draws(n, seed) -> Parameters",
        "So many parameter vectors from the Gaussian, where `laplace` was given a structure; the i-th is the same for any n.",
        |l: &mut Arc<Laplace>, n: i64, seed: i64| l.draws(n, seed).map(Arc::new).or_raise(),
    )
    .with(&[], "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 5 }), #{ energy: \"sum\", prior: prior::gaussian(1) });\n\
         let l = laplace(t, train(t, optimizer::adam(#{ epochs: 20 })), #{ structure: \"kronecker\" });\n\
         t.prediction(l.draws(20, 1), \"test\").nll")
    .function(
        "laplace.params() -> Parameters",
        "The optimum, as a parameter vector.",
        |l: &mut Arc<Laplace>| {
            Arc::new(Parameters { vectors: vec![l.mode.clone()] })
        },
    )
    .with(&[], "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 5 }), #{ energy: \"sum\", prior: prior::gaussian(1) });\n\
         let l = laplace(t, train(t, optimizer::adam(#{ epochs: 20 })), #{ structure: \"kronecker\" });\n\
         t.energies(l.params()).loss");
}

/// What is asked of populations.
pub(super) fn populations(b: &mut Binder) {
    b.function(
        "smc.params() -> Parameters",
        "The particles of all populations, for `start`; each counts the same.",
        |s: &mut Arc<Smc>| -> Arc<Parameters> { s.params.clone() },
    );
}
