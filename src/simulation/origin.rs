//! What made a run.

use crate::observable::Handle;
use crate::sampler::ConfiguredSampler;
use crate::target::Target;
use std::fmt;
use std::sync::Arc;

/// What made a run: needed to go on with it.
#[derive(Clone)]
pub struct Origin {
    /// What was sampled.
    pub target: Arc<Target>,
    /// By what.
    pub sampler: Arc<ConfiguredSampler>,
    /// What was observed.
    pub observables: Vec<Handle>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on {:?}", self.sampler, self.target)
    }
}
