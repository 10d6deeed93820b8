//! Tempered sequential Monte Carlo, in scripts.

use super::convert::{Call, entry, map, options};
use super::{Binder, Bound, OrRaise};
use crate::sampler::Configured;
use crate::simulation::evidence::{Evidence, of_populations};
use crate::simulation::smc::{self, Smc, smc};
use crate::target::Target;
use crate::target::prior::Parameters;
use rhai::{Map, NativeCallContext};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    b.object::<Arc<Smc>>("Smc", |s| s.to_string());
    let context = b.context.clone();
    let run = move |native: &NativeCallContext, t: &Target, s: &Arc<Configured>, map: &Map| {
        let call = Call {
            context: &context,
            native,
        };
        let o = options(&call, "smc", smc::OPTIONS, map)?;
        smc(t, s, &o, &context.session)
    };
    let plain = run.clone();
    b.function(
        "smc(target, sampler, #{ options }) -> Smc",
        "Tempered sequential Monte Carlo: populations that go from draws of the prior to exp(-s·L/T - R), and ln Z on the way.\n\n\
         A stage weighs the particles by exp(-(β' - β)E), with β' = 1/T' so far on that the effective sample size falls to `ess`, resamples them systematically and moves each by `moves` \
         steps of the sampler (Del Moral, Doucet & Jasra 2006; Jasra et al. 2011). An alternative to `exchange` with a prior rung where no ladder is known: it finds one. \
         The step size follows the acceptance of the particles; masses are not adapted. With hmc, nuts, mala and metropolis, on the CPU.\n\n\
         Each population is resampled for itself, and they share temperatures and step sizes only; ln Z is that of their mean Z, and its error bar comes from their scatter alone, whatever the \
         particles of one population have in common. Where they scatter by more than 1, the scatter is the error bar, and ln Z most likely too small. A mode that no particle has found in the prior's draws is lost, which no error bar knows: compare with `exchange`.\n\n\
         `evidence(smc)` is for `compare`, `smc.params()` a start for `sample` or `exchange`, `smc[\"temperatures\"]` a ladder. Fields: ln_z, error, ln_z_populations, temperatures, effective_share, acceptance, step_size (per stage), \
         families (draws of the prior that each population descends from), scatter (standard deviation of ln Z over the populations), particles, populations, failed, parameters, seconds.",
        move |n: NativeCallContext, t: Arc<Target>, s: Arc<Configured>, m: Map| -> Bound<Arc<Smc>> { run(&n, &t, &s, &m).or_raise() },
    )
    .with(
        smc::OPTIONS,
        "smc(target(potential::gaussian_mixture(), #{ prior: prior::gaussian(0.25) }), sampler::hmc(#{ leapfrog: 3 }), #{ particles: 64, populations: 4 })",
    );
    b.function(
        "smc(target, sampler) -> Smc",
        "",
        move |n: NativeCallContext, t: Arc<Target>, s: Arc<Configured>| -> Bound<Arc<Smc>> {
            plain(&n, &t, &s, &Map::new()).or_raise()
        },
    )
    .function(
        "smc.params() -> Parameters",
        "The particles of all populations, for `start`; each counts the same.",
        |s: &mut Arc<Smc>| -> Arc<Parameters> { s.params.clone() },
    )
    .function(
        "smc.to_map() -> map",
        "All fields as a map.",
        |s: &mut Arc<Smc>| map(&s.to_map()),
    )
    .function(
        "evidence(smc) -> Evidence",
        "ln Z by tempered sequential Monte Carlo, for `compare` and tables. Fields: ln_z and error, smc and smc_error.",
        |s: Arc<Smc>| -> Arc<Evidence> { Arc::new(of_populations(&s)) },
    );
    b.engine
        .register_indexer_get(|s: &mut Arc<Smc>, name: &str| {
            entry(&s.to_map(), "the result of smc", name)
        });
}
