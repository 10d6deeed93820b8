//! Which part of a run computes where.

use super::Plan;
use crate::error::Result;
use crate::observable::Handle;
use crate::schedule::Schedule;
use crate::simulation::session::{Session, words};
use crate::target::Target;

impl Plan {
    /// Where an accelerator computes: a line for it, and one for what is left to this machine.
    pub(super) fn places(&self, target: &Target, session: &Session) -> Result<Vec<String>> {
        let (name, Some(_)) = &session.device else {
            return Ok(Vec::new());
        };
        if target.is_by_candle() {
            return Ok(self.places_by_candle(name, target));
        }
        // Losses, and what samplers report.
        let there = |o: &Handle| {
            Ok::<_, anyhow::Error>(
                o.split().or(o.outputs()).is_some()
                    || o.numbers().is_some()
                    || o.examples(target)?.is_some()
                    || !o.of_parameters(),
            )
        };
        let mut names = [Vec::new(), Vec::new()];
        for o in &self.observables {
            names[usize::from(!there(o)?)].push(o.name());
        }
        let [there, here] = names.map(|n| n.join(", "));
        let mut device = vec!["model, loss and gradients, data, steps of all chains".to_string()];
        if !target.prior().is_flat() {
            device.push("prior".into());
        }
        if !there.is_empty() {
            device.push(format!("observables {there}"));
        }
        if !self.predict.is_empty() {
            device.push("outputs for predictions".into());
        }
        let mut rest = Vec::new();
        let prior_rung = |t: &Schedule| t.at(0).is_infinite();
        if self.temperatures.iter().any(prior_rung) {
            rest.push("draws from the prior on its rung".to_string());
        }
        if !here.is_empty() {
            rest.push(format!(
                "observables {here}, from parameters that are copied"
            ));
        }
        if !self.predict.is_empty() {
            rest.push("scores of predictions".into());
        }
        let mut out = vec![format!("on {name}: {}", device.join("; "))];
        for device in name.split(',') {
            if let Some((precision, bits)) = words(device).1.rounding() {
                out.push(format!(
                    "products in {precision} on {device}: factors are rounded to {bits} bits behind the leading one, and sums are in single precision; \
                     the virial is made of the same products and need not show what that costs; verify(run) measures the bias"
                ));
            }
        }
        if !rest.is_empty() {
            out.push(format!("on this machine: {}", rest.join("; ")));
        }
        Ok(out)
    }

    /// The same, of a model that candle computes on the device.
    fn places_by_candle(&self, name: &str, target: &Target) -> Vec<String> {
        let mut rest = vec!["losses of the outputs, steps of all chains".to_string()];
        if !target.prior().is_flat() {
            rest.push("prior".into());
        }
        if !self.observables.is_empty() {
            let names: Vec<_> = self.observables.iter().map(|o| o.name()).collect();
            rest.push(format!("observables {}", names.join(", ")));
        }
        if !self.predict.is_empty() {
            rest.push("scores of predictions".into());
        }
        vec![
            format!("on {name}, through candle: outputs and gradients of the model, inputs"),
            format!("on this machine: {}", rest.join("; ")),
        ]
    }
}
