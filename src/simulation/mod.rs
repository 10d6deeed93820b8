//! Simulations: the one loop that moves chains, records them and saves them.
//!
//! [`run()`] works for any sampler and any number of chains: tune → step → exchange → record → checkpoint, each behind its trigger.
//! Chains run in parallel, one thread each; threads always take up the chain that is furthest behind. Chains that
//! [exchange](mod@exchange) temperatures wait for each other where they swap. Results do not depend on the number of threads or on
//! interruptions, because nothing but the state and the counters of the random streams enters a step.

pub mod autocorrelation;
pub mod beginning;
pub(crate) mod benchmark;
pub mod cells;
pub mod compare;
pub mod console;
pub mod design;
mod digits;
pub(crate) mod draws;
mod evaluation;
pub mod evidence;
pub mod exchange;
mod export;
mod header;
pub mod health;
mod in_memory;
pub(crate) mod job;
pub mod judge;
pub mod keep;
pub mod llc;
pub mod loo;
pub(crate) mod look;
mod object;
pub(crate) mod observe;
pub mod optimizer;
pub(crate) mod origin;
pub(crate) mod overlaps;
pub(crate) mod place;
pub mod plan;
pub(crate) mod predict;
pub(crate) mod prediction;
pub mod progress;
pub(crate) mod remembered;
pub(crate) mod resume;
pub mod run;
mod sampling;
pub mod session;
pub(crate) mod sharding;
pub mod smc;
pub mod standing;
pub(crate) mod state;
mod stepping;
pub mod summary;
pub mod temper;
pub(crate) mod terminal;
mod threads;
pub(crate) mod train;
mod train_on_device;
pub(crate) mod trained;
mod training_state;
pub mod transcript;
pub(crate) mod two_time;
pub mod until;
pub(crate) mod validate;
pub(crate) mod verbs;
pub mod verify;
pub(crate) mod weights;

use crate::error::Result;
use crate::rng::MAX_CHAINS;
use crate::sampler::ConfiguredSampler;
use crate::target::Target;
pub(crate) use in_memory::run_in_memory;
use job::drive;
use look::Judge;
use plan::Plan;
use prediction::Predictor;
use run::Run;
use sampling::{Sampling, watched};
use session::Session;
use sharding::{Part, StateBuilder};
use std::sync::Arc;
use stepping::Shared;
use threads::Workers;

/// Run a plan to its end, or until it is interrupted; then its checkpoint is on disk.
pub fn run(
    plan: &Plan,
    target: &Target,
    sampler: &ConfiguredSampler,
    session: &Session,
) -> Result<Arc<Run>> {
    run_judged((plan, target, sampler), &look::by_observables, session)
}

/// The same; whether it goes on is judged so.
pub(crate) fn run_judged(
    (plan, target, sampler): (&Plan, &Target, &ConfiguredSampler),
    judge: &Judge,
    session: &Session,
) -> Result<Arc<Run>> {
    sampler.check(target)?;
    let chains = plan.temperatures.len() * plan.chains;
    anyhow::ensure!(
        chains < MAX_CHAINS,
        "{}: {chains} chains are more than {MAX_CHAINS}",
        plan.kind
    );
    let placed = session.placed(target)?;
    let (target, devices) = (&*placed.target, placed.devices.as_deref());
    let predictors = plan.predictors(target)?;
    let starts = plan.starts(target)?;
    let columns = plan.columns(target, sampler, &predictors, &starts)?;
    let width = columns.iter().map(run::Column::width).sum();
    let predictions = predictors.iter().map(Predictor::width).sum();
    plan.check_size(target, sampler, session, (width, predictions))?;
    let maker = StateBuilder {
        plan,
        target,
        sampler,
        predictors: &predictors,
        part: Part::of(plan, sampler, session)?,
    };
    if let Some(remark) = plan.check_keep(target, &session.out)?
        && !session.quiet
    {
        session.console.remark(&remark);
    }
    let state = maker.start(&starts)?;
    let info = plan.info(target, sampler, columns, Some(&starts), session)?;
    let run = Shared {
        plan,
        target,
        sampler,
        slots: sampler.slots(target),
        width: info.width(),
        starts: &starts,
        predictors: &predictors,
        limits: plan.limits(&state, target),
        keeper: None,
        end: plan.look_from(0),
        predicts_after: plan.burn_in,
        ranks: &*session.ranks,
        interrupt: &session.interrupt,
    };
    let job = Sampling {
        workers: Workers::new(&run, devices, &state, session.threads)?,
        watched: watched(&info),
        judge,
        seen: None,
        run,
        state,
        maker,
        info,
    };
    drive(job, session)
}
