//! Targets from checked options, as scripts and Rust code ask for them.

use super::network::Network;
use super::prior::Prior;
use super::{EnergyScale, Potential, Target};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::model::Model;
use crate::model::loss::Loss;
use crate::options::Options;
use std::sync::Arc;

impl Target {
    /// Of a potential, by [`OPTIONS`](super::OPTIONS).
    pub fn of_potential(potential: Arc<dyn Potential>, o: &Options) -> Result<Arc<Self>> {
        let prior = o
            .object::<Prior>("prior")
            .unwrap_or_else(|| Arc::new(Prior::None));
        let scale = EnergyScale::from_options(o)?;
        Self::new(potential, scale, &prior).map(Arc::new)
    }

    /// Of a network on a data set, by [`OPTIONS`](super::OPTIONS).
    pub fn of_network(
        model: &Arc<dyn Model>,
        data: &Arc<Dataset>,
        o: &Options,
    ) -> Result<Arc<Self>> {
        let loss = o.opt_text("loss").map(|l| match l {
            "squared_error" => Loss::SquaredError,
            _ => Loss::CrossEntropy,
        });
        let network = Network::new(model.clone(), data.clone(), loss)?;
        Self::of_potential(Arc::new(network), o)
    }
}
