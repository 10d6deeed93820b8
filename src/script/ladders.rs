//! Ladders and evidence, in scripts.

use super::convert::{Call, entry, from_json, map, options, parameters};
use super::words::a_kind;
use super::{Binder, Bound, OrRaise, raise};
use crate::plot::Figure;
use crate::report::figures;
use crate::simulation::evidence::{self, Evidence, Laplace, ModelComparison, Transition, laplace};
use crate::simulation::exchange::LadderReport;
use crate::simulation::run::Run;
use crate::simulation::smc::Smc;
use crate::target::Target;
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    reports(b);
    figures(b);
    evidences(b);
    comparisons(b);
}

fn reports(b: &mut Binder) {
    b.object::<Arc<LadderReport>>("Ladder", |l| l.to_string());
    b.object::<Arc<Transition>>("Transition", |t| t.to_string());
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
    .function("ladder.to_map() -> map", "All fields of the report as a map.", |l: &mut Arc<LadderReport>| map(&l.to_map()))
    .function(
        "run.transition() -> Transition",
        "The heat capacity C = Var(E)/T² along a ladder, also between its rungs (by MBAR), and the temperature where it peaks, with error bars by block bootstrap.\n\n\
         Fields: temperatures, heat_capacity, heat_capacity_error; temperature and temperature_error of the peak, its 68 % interval low, high, height and height_error; \
         these are NaN where the heat capacity is highest at an end of the ladder, and `reason` says so.",
        |r: &mut Arc<Run>| -> Bound<Arc<Transition>> { evidence::transition(r).map(Arc::new).or_raise() },
    )
    .function("transition.to_map() -> map", "All fields as a map.", |t: &mut Arc<Transition>| map(&t.to_map()));
    b.engine
        .register_indexer_get(|l: &mut Arc<LadderReport>, name: &str| {
            entry(&l.to_map(), "the ladder", name)
        })
        .register_indexer_get(|t: &mut Arc<Transition>, name: &str| {
            entry(&t.to_map(), "the transition", name)
        });
}

fn figures(b: &mut Binder) {
    b.function(
        "plot::index_process(run) -> Figure",
        "Where replicas of an exchange are, how often neighbours swap, and how replicas get through the ladder.\n\n\
         The rungs of four replicas of the first ladder in the first 250 records after burn-in; the swap rate of every pair, and the flow from the cold end beside that of equal rejections.",
        |r: Arc<Run>| -> Bound<Figure> {
            LadderReport::new(&r).map(figures::index_process).or_raise()
        },
    )
    .function(
        "plot::energies(run) -> Figure",
        "Histograms of the tempered energy of an exchange on every rung: neighbours must overlap for swaps and for evidence.",
        |r: Arc<Run>| -> Bound<Figure> { figures::energies(&r).or_raise() },
    )
    .function(
        "plot::barrier(run) -> Figure",
        "The communication barrier Λ of an exchange from the hot end up to T, and its local form -dΛ/d ln T: where it is steep, rungs must be close.",
        |r: Arc<Run>| -> Bound<Figure> { figures::barrier(&r).or_raise() },
    )
    .function(
        "plot::heat_capacity(transition) -> Figure",
        "The heat capacity along a ladder with its error, and the 68 % interval of the temperature where it peaks.",
        |t: Arc<Transition>| figures::heat_capacity(&t),
    );
}

fn evidences(b: &mut Binder) {
    b.object::<Arc<Evidence>>("Evidence", |e| e.to_string());
    let context = b.context.clone();
    let of = move |native: &NativeCallContext, r: &Run, map: &Map| {
        let call = Call {
            context: &context,
            native,
        };
        let o = options(&call, "evidence", evidence::OPTIONS, map)?;
        evidence::evidence(r, o.float("temperature")?).map(Arc::new)
    };
    let plain = of.clone();
    b.function(
        "evidence(run, #{ options }) -> Evidence",
        "ln Z of a model, from the draws of a ladder: the log evidence ln ∫ exp(-s·L(w)) p(w) dw where the hottest rung is the prior p.\n\n\
         By thermodynamic integration (trapezoid, and with its curvature corrected; the error holds draws and spacing), stepping stones from hot to cold, from cold to hot and their \
         average, and MBAR, each with its standard error. They use the same draws, so that they agree more than their errors say; where they do not, rungs are too far apart.\n\n\
         `exchange` with `prior_rung: true` gives such a run; a `sweep` with a uniform_box prior that observes cost gives ln Z relative to its hottest temperature. \
         With energy: \"sum\" and cross-entropies exp(-s·L) is the likelihood; with squared errors it is that of a Gaussian of variance ½, up to π^(-n·outputs/2).\n\n\
         Fields: verdict (\"converged\", \"not yet\": a ladder without a round trip, a rung with R̂ or too few effective draws, rungs too far apart; \"wrong\": estimators more than 4 joint errors apart) and reasons, ln_z and error (those of MBAR), trapezoid, thermodynamic_integration, stepping_stone_forward, stepping_stone_backward, stepping_stone, mbar, each also with _error; \
         lower_bound and upper_bound (Gibbs-Bogoliubov).",
        move |n: NativeCallContext, r: Arc<Run>, m: Map| -> Bound<Arc<Evidence>> { of(&n, &r, &m).or_raise() },
    )
    .with(
        evidence::OPTIONS,
        "evidence(exchange(target(potential::gaussian_mixture(), #{ prior: prior::gaussian(0.25) }), sampler::hmc(), #{ temperatures: [1, 2, 4, 10, 30], prior_rung: true, steps: 2000 }))",
    );
    b.function(
        "evidence(run) -> Evidence",
        "",
        move |n: NativeCallContext, r: Arc<Run>| -> Bound<Arc<Evidence>> {
            plain(&n, &r, &Map::new()).or_raise()
        },
    );
    b.object::<Arc<Laplace>>("Laplace", |l| l.to_string());
    let context = b.context.clone();
    let of = move |native: &NativeCallContext, t: &Target, start: &Dynamic, map: &Map| {
        let call = Call {
            context: &context,
            native,
        };
        let o = options(&call, "laplace", laplace::OPTIONS, map)?;
        let given = parameters(start).ok_or_else(|| {
            anyhow!("laplace: 'start' must be a result of train, run.params() or parameters([…])")
        })?;
        evidence::laplace(t, &given, &o, &context.session).map(Arc::new)
    };
    let plain = of.clone();
    b.function(
        "laplace(target, start, #{ options }) -> Laplace",
        "The Laplace approximation of the log evidence at the optimum below `start`: -E/T - R - ln ∫ e^-R + (N/2) ln 2π - ½ ln det H.\n\n\
         MacKay (1992); Baldock (2019), eq. 16, which leaves out (N/2) ln 2π. H is the Hessian of E/T + R; products with it are symmetric differences of gradients; ln det H is exact for small N and by \
         stochastic Lanczos quadrature (Ubaru, Chen & Saad 2017) for large. `start` is a result of `train`, `run.params()` or `parameters([…])`, of which the first vector is taken. \
         It sees one mode as a Gaussian: singular models, as networks are, have more; compare with `evidence`.\n\n\
         Fields: ln_z, error (of the quadrature only), ln_det, ln_det_error, stopping, at_floor, smallest, largest, likelihood_energy, prior_energy, largest_gradient, slack (½|g|²/λ: what a minimum nearby may be deeper).",
        move |n: NativeCallContext, t: Arc<Target>, start: Dynamic, m: Map| -> Bound<Arc<Laplace>> { of(&n, &t, &start, &m).or_raise() },
    )
    .with(
        laplace::OPTIONS,
        "laplace(target(potential::gaussian(#{ dim: 4 }), #{ prior: prior::gaussian(0.1) }), parameters([1, 1, 1, 1]), #{ polish: 100 })",
    );
    b.function(
        "laplace(target, start) -> Laplace",
        "",
        move |n: NativeCallContext, t: Arc<Target>, start: Dynamic| -> Bound<Arc<Laplace>> {
            plain(&n, &t, &start, &Map::new()).or_raise()
        },
    );
    b.function(
        "laplace.to_map() -> map",
        "All fields as a map.",
        |l: &mut Arc<Laplace>| map(&l.to_map()),
    );
    b.engine
        .register_indexer_get(|l: &mut Arc<Laplace>, name: &str| {
            entry(&l.to_map(), "the Laplace approximation", name)
        });
    b.function(
        "evidence.to_map() -> map",
        "All fields as a map.",
        |e: &mut Arc<Evidence>| map(&e.to_map()),
    );
    b.engine
        .register_indexer_get(|e: &mut Arc<Evidence>, name: &str| {
            entry(&e.to_map(), "the evidence", name)
        });
}

fn comparisons(b: &mut Binder) {
    b.object::<Arc<ModelComparison>>("ModelComparison", |c| c.to_string());
    b.function(
        "compare(models) -> ModelComparison",
        "Models by their evidence on the same data: ln Z, Bayes factors against the best, and posterior probabilities if all are equally probable before.\n\n\
         `models` is a map from names to results of `evidence`, or an array of these, which are then named after their runs. `print(compare(…))` is a table, the most probable first, below what speaks against any of them; \
         `.to_array()` has a map per model: name, ln_z, error, ln_bayes_factor, ln_bayes_factor_error, weight, weight_error, verdict, reasons (as of `evidence`). `.verdict` is the worst of them.",
        |models: Map| -> Bound<Arc<ModelComparison>> {
            let named = models.into_iter().map(|(k, v)| (Some(k.to_string()), v));
            compare(named)
        },
    )
    .function("compare(models) -> ModelComparison", "", |models: Array| -> Bound<Arc<ModelComparison>> { compare(models.into_iter().map(|v| (None, v))) })
    .function("modelcomparison.to_array() -> array", "A map per model, the most probable first.", |c: &mut Arc<ModelComparison>| from_json(&c.to_json()));
    b.engine
        .register_get("verdict", |c: &mut Arc<ModelComparison>| {
            c.judged().verdict.to_string()
        });
}

fn compare(models: impl Iterator<Item = (Option<String>, Dynamic)>) -> Bound<Arc<ModelComparison>> {
    let one = |(name, value): (Option<String>, Dynamic)| {
        let kind = match value.type_name() {
            _ if value.is::<Arc<Run>>() => "a run: write evidence(run)".into(),
            _ if value.is::<Arc<Smc>>() => "a result of smc: write evidence(p)".into(),
            other => a_kind(other),
        };
        let evidence = value.try_cast::<Arc<Evidence>>().ok_or_else(|| {
            raise(anyhow!(
                "compare: a model is {kind}, but must be a result of evidence(run)"
            ))
        })?;
        Ok((name.unwrap_or_else(|| evidence.name.clone()), evidence))
    };
    let models = models.map(one).collect::<Bound<Vec<_>>>()?;
    evidence::compare(models).map(Arc::new).or_raise()
}
