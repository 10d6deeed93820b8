//! The verbs that make runs: `sample`, `sweep` and `exchange`; `open`, which reads one back; and `grid::posterior`, what they sample.

use super::origin::Origin;
use super::plan::{EXCHANGE_OPTIONS, Plan, SAMPLE_OPTIONS, SWEEP_OPTIONS};
use super::run::Run;
use super::session::Session;
use crate::diagnostic::Grid;
use crate::error::Result;
use crate::sampler::ConfiguredSampler;
use crate::target::{Target, grid};
use crate::verb::{Call, Verb};
use std::path::Path;
use std::sync::Arc;

/// Run a plan; the run remembers what made it.
fn start(
    plan: Plan,
    target: Arc<Target>,
    sampler: Arc<ConfiguredSampler>,
    session: &Session,
) -> Result<Arc<Run>> {
    if let (Some(full), false) = (plan.full_steps, session.quiet) {
        let (name, steps) = (&plan.name, plan.steps);
        let text = match plan.course {
            None => format!("--quick: '{name}' does {steps} steps instead of {full}"),
            Some(_) => format!(
                "--quick: '{name}' is a smoke run of {steps} steps, whether its chains have converged or not"
            ),
        };
        session.console.remark(&text);
    }
    // On a ladder directions would move from chain to chain at every swap.
    let sampler = match plan.exchange {
        None => sampler.suited(&target)?,
        Some(_) => sampler,
    };
    let mut run = super::run(&plan, &target, &sampler, session)?;
    if let Some(own) = Arc::get_mut(&mut run) {
        own.origin = Some(Origin {
            target,
            sampler,
            observables: plan.observables,
        });
    }
    Ok(run)
}

/// The verb `sample`.
pub static SAMPLE: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Run>> = Verb {
    name: "sample",
    arguments: &["target", "sampler"],
    options: SAMPLE_OPTIONS,
    doc: "Sample at one temperature (a number or a schedule).\n\n\
         Chains run in parallel, are recorded, saved while they run, and can be resumed bit for bit, with `--resume` or the option `resume`. A chain that meets NaN or \
         leaves its region is stopped, reported and left out of averages.",
    example: "sample(target(potential::gaussian(#{ dim: 3 })), sampler::hmc(), #{ temperature: 2.0, steps: 400, chains: 2, every: 1 })",
    call: Call::Checked(|(target, sampler), o, session| {
        start(
            Plan::from_options("sample", o, session)?,
            target,
            sampler,
            session,
        )
    }),
};

/// The verb `sweep`.
pub static SWEEP: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Run>> = Verb {
    name: "sweep",
    arguments: &["target", "sampler"],
    options: SWEEP_OPTIONS,
    doc: "Sample at several temperatures at once, with `chains` chains each.\n\nThe trace store has the dims chain, draw, temperature.",
    example: "sweep(target(potential::double_well()), sampler::hmc(), #{ temperatures: [0.2, 1.0], steps: 400, chains: 2, every: 1 })",
    call: Call::Checked(|(target, sampler), o, session| {
        start(
            Plan::from_options("sweep", o, session)?,
            target,
            sampler,
            session,
        )
    }),
};

/// The verb `exchange`.
pub static EXCHANGE: Verb<Session, (Arc<Target>, Arc<ConfiguredSampler>), Arc<Run>> = Verb {
    name: "exchange",
    arguments: &["target", "sampler"],
    options: EXCHANGE_OPTIONS,
    doc: "Replica exchange: sample at all temperatures of a ladder at once, and let neighbours swap theirs.\n\n\
         A swap of the replicas on rungs i and j is accepted with probability min(1, exp[(1/T_i - 1/T_j)(E_i - E_j)]), which leaves the law of every rung unchanged \
         (Swendsen & Wang 1986; Baldock 2019, algorithm 1); E is what T divides, over all examples. Temperatures move, parameters stay. So a \
         replica that is stuck at a low temperature escapes at a high one and comes back elsewhere.\n\n\
         With any sampler: exact ones stay exact, also between swaps; those that use minibatches keep their bias at each temperature, \
         and swap by the energy over all examples. Step sizes, lengths and masses that a sampler adapts belong to the rung: they are adapted there during burn-in, and frozen.\n\n\
         The run has the dims chain, draw, temperature, as a sweep: a chain is an independent ladder, its draws at a temperature those of whichever replica was \
         there (`replica`), with the energy `tempered_energy`. `run.ladder()` shows how well the ladder works, `evidence(run)` gives ln Z.",
    example: "exchange(target(potential::double_well()), sampler::hmc(), #{ temperatures: [0.2, 0.5, 1.0], steps: 400, chains: 2 })",
    call: Call::Checked(|(target, sampler), o, session| {
        let plan = Plan::exchanging(o, &sampler, session)?;
        sampler.check_exchanging(&target, plan.hottest())?;
        start(plan, target, sampler, session)
    }),
};

/// The verb `open`.
pub static OPEN: Verb<Session, (String,), Arc<Run>> = Verb {
    name: "open",
    arguments: &["folder"],
    options: &[],
    doc: "A saved run, finished or not, read from its folder: the same object as in the session that made it, with the draws so far.\n\n\
         `run.done` says whether it is finished, `run.step` how far it is. One that is not finished goes on when its script is run with --resume, \
         by `%continue FOLDER` in a session, and where a verb has the option `resume`.",
    example: "let t = target(potential::gaussian());\nlet run = sample(t, sampler::hmc(), #{ steps: 200, chains: 2 });\nopen(run.folder).summary()",
    call: Call::Checked(|(folder,), _, session| {
        let run = Run::open(Path::new(&folder))?;
        for note in run.notes.iter().cloned().chain(run.damage()) {
            let name = &run.info.name;
            session.console.remark(&format!("NOTE: '{name}': {note}"));
        }
        Ok(Arc::new(run))
    }),
};

/// The verb `grid::posterior`.
pub static POSTERIOR: Verb<Session, (Arc<Target>,), Arc<Grid>> = Verb {
    name: "grid::posterior",
    arguments: &["target"],
    options: grid::OPTIONS,
    doc: "The exact law exp(-U/T) of a target of two parameters, on a grid: to compare samples with, or to draw as contours below them.",
    example: "grid::posterior(target(potential::banana()), #{ x: [-20, 20], y: [-10, 10], cells: 50 })",
    call: Call::Checked(|(target,), o, session| {
        session.computes_here("grid::posterior");
        grid::posterior(&target, o).map(Arc::new)
    }),
};
