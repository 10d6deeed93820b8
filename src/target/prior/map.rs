//! Priors by name: which law belongs to which tensor, and which parameters the priors add.

use super::density::{Density, Each, misspelt, unknown};
use super::law::Law;
use super::{Prior, PriorEnergy};
use crate::error::{Result, listed};
use crate::kernels::tensor::{Graph, Tape};
use crate::model::initialise::Role;
use crate::model::place::Place;
use crate::model::{Declared, Layout, Part, TensorSpec};
use crate::options::Value;
use std::sync::Arc;

/// The name of all parameters that have no other.
const OTHERS: &str = "*";

impl Prior {
    /// From an option: a prior, or a map of them.
    ///
    /// # Errors
    /// If it is neither.
    pub fn from_value(value: &Value) -> Result<Arc<Prior>> {
        if let Some(prior) = value.as_object::<Prior>() {
            return Ok(prior);
        }
        let Value::Map(map) = value else {
            anyhow::bail!(
                "target: option 'prior' is {}, but must be a prior, or a map of priors by name",
                value.describe()
            );
        };
        let each = map.iter().map(|(name, value)| match value.as_object::<Prior>() {
            Some(prior) => Ok((name.clone(), prior)),
            None => anyhow::bail!(
                "target: the prior of '{name}' is {}, but must be a prior, e.g. prior::normal(0, 1)",
                value.describe()
            ),
        });
        Ok(Arc::new(Prior::Map(each.collect::<Result<_>>()?)))
    }

    /// Parameters that it has beside those of the model: names that only other priors have.
    ///
    /// # Errors
    /// If there is a name that nothing has.
    pub fn parameters(&self, layout: &Layout) -> Result<Vec<Declared>> {
        let map = match self {
            Prior::Joint { parameters, .. } => return Ok(parameters.clone()),
            Prior::Map(map) => map,
            _ => return Ok(Vec::new()),
        };
        let named: Vec<&str> = map.iter().flat_map(|(_, p)| p.named()).collect();
        for name in &named {
            let given = map.iter().any(|(n, _)| n == name);
            anyhow::ensure!(
                given || layout.value(name).is_ok(),
                "prior: a prior names '{name}', which is no parameter; give it a prior of its own: {name}: prior::half_cauchy(1)"
            );
        }
        let mut out = Vec::new();
        for (name, prior) in map.iter().filter(|(name, _)| name != OTHERS) {
            let Some(name) = unknown(layout, name) else {
                continue;
            };
            let each = match &**prior {
                Prior::Each(each) if named.contains(&name) => each,
                _ => return Err(misspelt(layout, name)),
            };
            out.push(Declared {
                name: name.into(),
                shape: Vec::new(),
                support: each.support(),
            });
        }
        Ok(out)
    }

    /// The parameters that its location and scale are.
    fn named(&self) -> Vec<&str> {
        match self {
            Prior::Each(each) => each.named().collect(),
            _ => Vec::new(),
        }
    }

    /// Put laws on the parts they are laws of.
    pub(super) fn resolve_parts(
        &self,
        layout: &Layout,
        roles: &[Role],
        out: &mut PriorEnergy,
    ) -> Result<()> {
        let mut laws: Vec<(TensorSpec, Each)> = Vec::new();
        let mut tape = None;
        match self {
            Prior::Map(map) => {
                let mut taken: Vec<TensorSpec> = Vec::new();
                for (name, prior) in map.iter().filter(|(n, _)| n != OTHERS) {
                    let parts = match layout.value(name) {
                        Ok(one) => vec![one.clone()],
                        Err(_) => layout.part(name)?.iter().flat_map(Part::tensors).collect(),
                    };
                    for part in parts {
                        let twice = taken.iter().find(|t| {
                            t.range.start < part.range.end && part.range.start < t.range.end
                        });
                        if let Some(other) = twice {
                            anyhow::bail!(
                                "prior: '{name}' and '{}' are of the same parameters",
                                other.name
                            );
                        }
                        prior.on(&part, layout, roles, &mut laws, out)?;
                        taken.push(part);
                    }
                }
                let others = map.iter().find(|(n, _)| n == OTHERS);
                if others.is_none() {
                    let touched = |t: &TensorSpec| {
                        let mut all = taken.iter();
                        all.any(|o| o.range.start < t.range.end && t.range.start < o.range.end)
                    };
                    let flat = layout.tensors().iter().filter(|t| !touched(t));
                    let flat: Vec<_> = flat.map(|t| t.name.as_str()).collect();
                    if !flat.is_empty() {
                        out.text += &format!("; flat: {}", listed(&flat));
                    }
                }
                if let Some((_, prior)) = others {
                    let free = |t: &&TensorSpec| taken.iter().all(|o| o.range != t.range);
                    for tensor in layout.tensors().iter().filter(free) {
                        let partly = taken.iter().find(|o| {
                            o.range.start < tensor.range.end && tensor.range.start < o.range.end
                        });
                        if let Some(part) = partly {
                            anyhow::bail!(
                                "prior: \"*\" is of whole tensors, but '{}' is a part of '{}'; name its other parts",
                                part.name,
                                tensor.name
                            );
                        }
                        prior.on(tensor, layout, roles, &mut laws, out)?;
                    }
                }
            }
            Prior::Joint { energy, .. } => {
                let value = energy(&layout.traced()?)?;
                let graph = Graph::new(&value.symbol()?)?;
                tape = Some(Tape::compile(&graph, layout.len(), 0)?);
                out.text = format!("{} = {}", self.describe(), graph.formula(0)?);
            }
            one => {
                for tensor in layout.tensors() {
                    one.on(tensor, layout, roles, &mut laws, out)?;
                }
            }
        }
        anyhow::ensure!(
            out.walls.is_empty() || laws.is_empty(),
            "prior: walls and laws in one map are not supported; give all parts of it prior::uniform_box, or none"
        );
        let walled = |t: &&TensorSpec| {
            out.walls
                .iter()
                .any(|(w, _)| w.start <= t.range.start && t.range.end <= w.end)
        };
        out.flat = layout
            .tensors()
            .iter()
            .find(|t| !out.walls.is_empty() && !walled(t))
            .map(|t| t.name.clone());
        if out.walls.is_empty() {
            out.rest = Some((Arc::new(Density::new(layout, laws, tape)?), 1.0));
        }
        Ok(())
    }

    /// This prior on a tensor, or on a part of one.
    fn on(
        &self,
        tensor: &TensorSpec,
        layout: &Layout,
        roles: &[Role],
        laws: &mut Vec<(TensorSpec, Each)>,
        out: &mut PriorEnergy,
    ) -> Result<()> {
        let normal = |sd: f64| Each {
            scale: Place::Number(sd),
            ..Each::of(Law::Normal)
        };
        let each = match self {
            Prior::None => return Ok(()),
            Prior::Each(each) => each.clone(),
            Prior::Gaussian { precision } if *precision == 0.0 => return Ok(()),
            Prior::Gaussian { precision } => normal(precision.powf(-0.5)),
            Prior::Scaled { weights, bias } => {
                let at = layout.tensors().iter().position(|t| {
                    t.range.start <= tensor.range.start && tensor.range.end <= t.range.end
                });
                match at.and_then(|i| roles.get(i)).filter(|role| !role.bias) {
                    Some(role) => normal(weights.variance(*role).sqrt()),
                    None => normal(*bias),
                }
            }
            Prior::Box { widths } if widths.len() == 1 => {
                out.walls
                    .push((tensor.range.clone(), (widths[0] / 2.0) as f32));
                return Ok(());
            }
            Prior::L2 { .. }
            | Prior::Localised { .. }
            | Prior::Box { .. }
            | Prior::Map(_)
            | Prior::Joint { .. } => {
                anyhow::bail!(
                    "prior: '{}' cannot be the prior of '{}' alone: it is one of all parameters; take prior::normal or prior::gaussian",
                    self.describe(),
                    tensor.name
                )
            }
        };
        laws.push((tensor.clone(), each));
        Ok(())
    }
}
