//! The list of all constructors, verbs and objects: what scripts can call and hold, and what Rust code can make and see.
//!
//! Each is described in its own file. Whoever has to know all of them, as scripts and notebooks do, is a [`Visitor`].

use crate::dataset::{self, Dataset};
use crate::diagnostic::Grid;
use crate::model::{self, Model};
use crate::object::{Held, Object};
use crate::observable::{self, Observable};
use crate::options::Entry;
use crate::plot::Figure;
use crate::sampler::gradient::{self, Estimator};
use crate::sampler::{self, Configured};
use crate::schedule::Schedule;
use crate::simulation::compare::{self, Comparison};
use crate::simulation::evidence::{self, Evidence, Laplace, ModelComparison, Transition, laplace};
use crate::simulation::exchange::LadderReport;
use crate::simulation::llc::calibrate::{self, Calibration};
use crate::simulation::llc::problems::{self, Posed};
use crate::simulation::llc::table::Benchmark;
use crate::simulation::llc::{self, Estimate};
use crate::simulation::optimizer::{self, Optimizer};
use crate::simulation::run::Run;
use crate::simulation::session::Session;
use crate::simulation::smc::{self, Smc};
use crate::simulation::summary::Summary;
use crate::simulation::train::{self, Trained};
use crate::simulation::verify::{self, Verification};
use crate::simulation::{benchmark, validate, verbs};
use crate::target::prior::{self, Parameters, Prior};
use crate::target::{Potential, Target, analytic, build, grid};
use crate::trigger::Trigger;
use crate::verb::{Arguments, Outcome, Verb};
use std::sync::Arc;

/// One that has to know everything in the list.
pub trait Visitor {
    /// A type of objects, in the form in which scripts hold it.
    fn held<H: Held>(&mut self) {}

    /// A type of objects that scripts hold as `Arc<T>`.
    fn object<T: Object>(&mut self) {
        self.held::<Arc<T>>();
    }

    /// The constructors of a namespace.
    fn constructors<H: Held>(&mut self, _namespace: &'static str, _entries: &'static [Entry<H>]) {}

    /// A verb.
    fn verb<S, A: Arguments, R: Outcome>(&mut self, _verb: &'static Verb<S, A, R>)
    where
        Session: AsRef<S>,
    {
    }
}

/// All types of objects.
pub fn objects(v: &mut impl Visitor) {
    v.object::<Dataset>();
    v.held::<Arc<dyn Model>>();
    v.object::<Target>();
    v.held::<Arc<dyn Potential>>();
    v.object::<Prior>();
    v.object::<Configured>();
    v.object::<Estimator>();
    v.object::<Optimizer>();
    v.object::<Box<dyn Observable>>();
    v.object::<Schedule>();
    v.object::<Trigger>();
    v.object::<Parameters>();
    v.object::<Run>();
    v.object::<Summary>();
    v.object::<Trained>();
    v.object::<Comparison>();
    v.object::<Verification>();
    v.object::<Grid>();
    v.object::<Estimate>();
    v.object::<Posed>();
    v.object::<Benchmark>();
    v.object::<Calibration>();
    v.object::<LadderReport>();
    v.object::<Transition>();
    v.object::<Evidence>();
    v.object::<Laplace>();
    v.object::<ModelComparison>();
    v.object::<Smc>();
    v.held::<Figure>();
}

/// All constructors.
pub fn constructors(v: &mut impl Visitor) {
    v.constructors("dataset", dataset::REGISTRY);
    v.constructors("dataset", &[model::teacher::ENTRY]);
    v.constructors("model", model::REGISTRY);
    v.constructors("prior", prior::REGISTRY);
    v.constructors("potential", analytic::REGISTRY);
    v.constructors("optimizer", optimizer::REGISTRY);
    v.constructors("gradient", gradient::REGISTRY);
    v.constructors("sampler", sampler::REGISTRY);
    for entry in sampler::registered() {
        v.constructors("sampler", std::slice::from_ref(entry));
    }
    v.constructors("observable", observable::REGISTRY);
}

/// The verbs that make targets and runs, and look at them.
pub fn runs(v: &mut impl Visitor) {
    v.verb(&build::TARGET);
    v.verb(&build::ANALYTIC);
    v.verb(&train::TRAIN);
    v.verb(&verbs::SAMPLE);
    v.verb(&verbs::SWEEP);
    v.verb(&verbs::EXCHANGE);
    v.verb(&benchmark::BENCHMARK);
    v.verb(&validate::VALIDATE);
    v.verb(&verify::VERIFY);
    v.verb(&compare::COMPARE);
    v.verb(&grid::POSTERIOR);
}

/// The verbs of learning coefficients, and `open`.
pub fn coefficients(v: &mut impl Visitor) {
    v.verb(&verbs::OPEN);
    v.verb(&llc::LLC);
    v.verb(&problems::LLC_PROBLEM);
    v.verb(&problems::LEARNING_COEFFICIENT);
    v.verb(&llc::benchmark::LLC_BENCHMARK);
    v.verb(&calibrate::CALIBRATE);
}

/// The verbs of evidence from ladders.
pub fn evidences(v: &mut impl Visitor) {
    v.verb(&evidence::EVIDENCE);
    v.verb(&laplace::LAPLACE);
}

/// The verbs of populations.
pub fn populations(v: &mut impl Visitor) {
    v.verb(&smc::SMC);
    v.verb(&evidence::EVIDENCE_OF_POPULATIONS);
}
