//! The list of all constructors, verbs and objects: what scripts can call and hold, and what Rust code can make and see.
//!
//! Each is described in its own file. Whoever has to know all of them, as scripts and notebooks do, is a [`Visitor`].

use crate::model::Model;
use crate::object::{Held, Object};
use crate::options::Entry;
use crate::plot::Figure;
use crate::simulation::session::Session;
use crate::target::Potential;
use crate::verb::{Arguments, Needed, Outcome, Verb};
use std::sync::Arc;

/// One that has to know everything in the list.
pub trait Visitor {
    /// A type of objects, in the form in which scripts hold it, and what Rust code calls it.
    fn held<H: Held>(&mut self, _path: &'static str) {}

    /// A type of objects that scripts hold as `Arc<T>`.
    fn object<T: Object>(&mut self, path: &'static str) {
        self.held::<Arc<T>>(path);
    }

    /// Constructors of a namespace, and where their table is; nowhere if they were registered at run time.
    fn constructors<H: Held>(
        &mut self,
        _namespace: &'static str,
        _path: &'static str,
        _entries: &'static [Entry<H>],
    ) {
    }

    /// A verb, and where it is declared.
    fn verb<S: Needed, A: Arguments, R: Outcome>(
        &mut self,
        _path: &'static str,
        _verb: &'static Verb<S, A, R>,
    ) where
        Session: AsRef<S>,
    {
    }
}

/// All types of objects.
pub(crate) fn objects(v: &mut impl Visitor) {
    macro_rules! objects {
        ($($type:ty),* $(,)?) => {
            $(v.object::<$type>(stringify!($type));)*
        };
    }
    v.held::<Arc<dyn Model>>("dyn crate::model::Model");
    v.held::<Arc<dyn Potential>>("dyn crate::target::Potential");
    v.held::<Figure>("crate::plot::Figure");
    objects! {
        crate::dataset::Dataset,
        crate::target::Target,
        crate::target::prior::Prior,
        crate::target::prior::Parameters,
        crate::model::support::Space,
        crate::model::losses::Chosen,
        crate::diagnostic::Grid,
        crate::sampler::ConfiguredSampler,
        crate::sampler::gradient::Estimator,
        Box<dyn crate::observable::Observable>,
        crate::object::Shown,
        crate::schedule::Schedule,
        crate::trigger::Trigger,
        crate::simulation::optimizer::Optimizer,
        crate::simulation::trained::Trained,
        crate::simulation::run::Run,
        crate::simulation::summary::Summary,
        crate::simulation::compare::Comparison,
        crate::simulation::loo::Loo,
        crate::simulation::loo::LooComparison,
        crate::simulation::verify::Verification,
        crate::simulation::llc::Estimate,
        crate::simulation::llc::curve::Curve,
        crate::simulation::llc::problems::Posed,
        crate::simulation::llc::table::Benchmark,
        crate::simulation::llc::calibration::Calibration,
        crate::simulation::exchange::LadderReport,
        crate::simulation::evidence::Transition,
        crate::simulation::evidence::Evidence,
        crate::simulation::evidence::Laplace,
        crate::simulation::evidence::ModelComparison,
        crate::simulation::smc::Smc,
        crate::simulation::cells::Cells,
        crate::report::runs::Runs,
    }
}

macro_rules! constructors {
    ($v:ident: $($namespace:literal $registry:path),* $(,)?) => {
        $($v.constructors($namespace, stringify!($registry), $registry);)*
    };
}

/// All constructors.
pub(crate) fn constructors(v: &mut impl Visitor) {
    constructors! { v:
        "dataset" crate::dataset::REGISTRY,
        "dataset" crate::model::teacher::REGISTRY,
        "model" crate::model::REGISTRY,
        "loss" crate::model::losses::REGISTRY,
        "support" crate::model::support::REGISTRY,
        "prior" crate::target::prior::REGISTRY,
        "potential" crate::target::analytic::REGISTRY,
        "optimizer" crate::simulation::optimizer::REGISTRY,
        "gradient" crate::sampler::gradient::REGISTRY,
        "sampler" crate::sampler::REGISTRY,
    }
    for entry in crate::sampler::registered() {
        v.constructors("sampler", "", std::slice::from_ref(entry));
    }
    constructors!(v: "observable" crate::observable::REGISTRY);
}

/// A function that visits verbs.
macro_rules! verbs {
    ($(#[$doc:meta])* $name:ident: $($verb:path),* $(,)?) => {
        $(#[$doc])*
        pub fn $name<V: Visitor>(v: &mut V) {
            $(v.verb(stringify!($verb), &$verb);)*
        }
    };
}
verbs! {
    /// The verbs that make targets and runs, and look at them.
    runs:
    crate::target::build::TARGET,
    crate::target::build::ANALYTIC,
    crate::simulation::train::TRAIN,
    crate::simulation::verbs::SAMPLE,
    crate::simulation::verbs::SWEEP,
    crate::simulation::verbs::EXCHANGE,
    crate::simulation::benchmark::BENCHMARK,
    crate::simulation::validate::VALIDATE,
    crate::simulation::verify::VERIFY,
    crate::simulation::compare::COMPARE,
    crate::simulation::autocorrelation::AUTOCORRELATION,
    crate::simulation::observe::OBSERVE,
    crate::simulation::overlaps::OVERLAPS,
    crate::simulation::two_time::TWO_TIME,
    crate::simulation::predict::PREDICT,
    crate::simulation::loo::LOO,
    crate::simulation::weights::WEIGHTS,
    crate::simulation::weights::LOAD,
    crate::simulation::weights::SAVE,
    crate::simulation::verbs::POSTERIOR,
}
verbs! {
    /// The verbs of learning coefficients, and those that find and read what is on disk.
    coefficients:
    crate::simulation::verbs::OPEN,
    crate::report::runs::LIST,
    crate::simulation::llc::LLC,
    crate::simulation::llc::curve::LLC_CURVE,
    crate::simulation::llc::problems::LLC_PROBLEM,
    crate::simulation::llc::problems::LEARNING_COEFFICIENT,
    crate::simulation::llc::benchmark::LLC_BENCHMARK,
    crate::simulation::llc::calibrate::CALIBRATE,
}
verbs! {
    /// The verbs of evidence from ladders.
    evidences:
    crate::simulation::evidence::EVIDENCE,
    crate::simulation::evidence::DENSITY_OF_STATES,
    crate::simulation::evidence::laplace::LAPLACE,
}
verbs! {
    /// The verbs of populations.
    populations:
    crate::simulation::smc::SMC,
}
verbs! {
    /// What is made of populations.
    of_populations:
    crate::simulation::evidence::EVIDENCE_OF_POPULATIONS,
}
