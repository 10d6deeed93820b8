//! Targets from checked options, as scripts and Rust code ask for them.

use super::network::Network;
use super::prior::Prior;
use super::{EnergyScale, OPTIONS, Potential, Target};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::model::Model;
use crate::model::losses::Chosen;
use crate::options::{OptionMap, Options, Spec, Value};
use crate::verb::{Call, Either, Verb};
use std::sync::Arc;

impl Target {
    /// Of a potential, by `OPTIONS`.
    pub fn from_potential(potential: Arc<dyn Potential>, o: &Options) -> Result<Arc<Self>> {
        let prior = o
            .get("prior")
            .map_or(Ok(Arc::new(Prior::None)), Prior::from_value)?;
        let scale = EnergyScale::from_options(o)?;
        Self::new(potential, scale, &prior).map(Arc::new)
    }

    /// Of a network on a data set, by `OPTIONS`.
    pub fn of_network(
        model: &Arc<dyn Model>,
        data: &Arc<Dataset>,
        o: &Options,
    ) -> Result<Arc<Self>> {
        let loss = o.get("loss").map(Chosen::from_value).transpose()?;
        let network = Network::with_loss(model.clone(), data.clone(), loss.as_ref())?;
        Self::from_potential(Arc::new(network), o)
    }
}

/// A model and a data set, or a potential.
pub type Of = Either<(Arc<dyn Model>, Arc<Dataset>), (Arc<dyn Potential>,)>;

/// The verb `target`.
pub static TARGET: Verb<(), Of, Arc<Target>> = Verb {
    name: "target",
    arguments: &["model", "dataset"],
    options: OPTIONS,
    doc: "The distribution to sample: `p(w) ∝ exp(-U(w)/T)` with `U = s·L(w) + R(w)`.\n\n\
         L is the mean loss over the n training examples, s the likelihood scale (`energy`), R the prior energy. The temperature T belongs to the \
         run. Instead of model and data set, a `potential::…` may be given. `print(target)` shows n, N, s and the prior.",
    example: "target(model::mlp(#{ layers: [64, 10] }), dataset::digits(), #{ prior: prior::l2(10.0) })",
    call: Call::Checked(|of, o, ()| match of {
        Either::First((model, data)) => Target::of_network(&model, &data, o),
        Either::Second((potential,)) => Target::from_potential(potential, o),
    }),
};

/// The verb `target::analytic`.
pub static ANALYTIC: Verb<(), (String,), Arc<Target>> = Verb {
    name: "target::analytic",
    arguments: &["name"],
    options: &[],
    doc: concat!(
        "A target of known law by its name: ",
        super::analytic::names!(),
        ".\n\n\
         `target::analytic(\"funnel\", #{ dim: 5 })` is `target(potential::funnel(#{ dim: 5 }))`; the options are those of the potential and those of \
         `target`."
    ),
    example: "target::analytic(\"banana\", #{ curvature: 0.05, prior: prior::gaussian(0.1) })",
    call: Call::Given(|(name,), given, ()| analytic(&name, given)),
};

/// One of the potentials of known law, by name: the options of the potential, and those of a target.
fn analytic(name: &str, given: OptionMap) -> Result<Arc<Target>> {
    let entry = super::analytic::named(name)?;
    let owner = format!("target::analytic(\"{name}\")");
    let knows = |specs: &[Spec], key: &str| specs.iter().any(|s| s.name == key);
    // What neither knows is the potential's to refuse.
    let of_target = |(key, _): &(String, Value)| knows(OPTIONS, key) && !knows(entry.options, key);
    let (rest, own): (Vec<_>, Vec<_>) = given.into_pairs().into_iter().partition(of_target);
    let potential = (entry.build)(&Options::check(&owner, entry.options, own)?)?;
    Target::from_potential(potential, &Options::check(&owner, OPTIONS, rest)?)
}
