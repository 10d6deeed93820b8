//! Models compared by their evidence on the same data.

use super::Evidence;
use crate::diagnostic::evidence::{Estimate, PosteriorWeight, ln_bayes_factor, posterior_weights};
use crate::error::Result;
use crate::simulation::standing::Judged;
use crate::simulation::summary::with_error;
use crate::table::Table;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Models, their evidence and how probable they are.
#[derive(Debug, Clone)]
pub struct ModelComparison {
    /// Names.
    pub names: Vec<String>,
    /// ln Z of each.
    pub ln_z: Vec<Estimate>,
    /// Posterior probability of each, all being equally probable before.
    pub weights: Vec<PosteriorWeight>,
    /// How far each ln Z can be relied on.
    pub judged: Vec<Judged>,
}

/// Compare models whose ln Z are of the same data; they are equally probable before.
pub fn compare(models: Vec<(String, Arc<Evidence>)>) -> Result<ModelComparison> {
    anyhow::ensure!(
        models.len() >= 2,
        "compare: at least two models are needed, and there are {}",
        models.len()
    );
    let first = &models[0].1;
    for (k, (name, e)) in models.iter().enumerate() {
        anyhow::ensure!(
            models[..k].iter().all(|(other, _)| other != name),
            "compare: two models are named '{name}'; give them names, as in compare(#{{ small: …, large: … }})"
        );
        anyhow::ensure!(
            e.relative_to.is_infinite(),
            "compare: ln Z of '{name}' is relative to T = {:.4e}, so it is not the evidence; use prior_rung: true",
            e.relative_to
        );
        anyhow::ensure!(
            e.best().standard_error.is_finite(),
            "compare: ln Z of '{name}' has no error bar (a single population gives none); without one the weights mean nothing"
        );
        anyhow::ensure!(
            e.examples == first.examples && (e.temperature / first.temperature - 1.0).abs() < 1e-9,
            "compare: '{name}' has seen {} examples at T = {}, '{}' {} at T = {}; evidence compares models on the same data",
            e.examples,
            e.temperature,
            models[0].0,
            first.examples,
            first.temperature
        );
        let (s, other) = (scale(e), scale(first));
        anyhow::ensure!(
            s == other,
            "compare: the energy is s·L + R with s = {s} for '{name}', {other} for '{}'; evidence compares models that weigh the data alike, all with energy: \"sum\"",
            models[0].0
        );
    }
    let judged = models.iter().map(|(_, e)| e.judged.clone()).collect();
    let (names, ln_z): (Vec<_>, Vec<_>) = models.into_iter().map(|(n, e)| (n, e.best())).unzip();
    Ok(ModelComparison {
        judged,
        weights: posterior_weights(&ln_z, None)?,
        names,
        ln_z,
    })
}

/// s of the energy s·L + R, as the description of the target has it.
fn scale(e: &Evidence) -> &str {
    let mut lines = e.target.lines();
    let energy = lines.find(|l| l.starts_with("energy ")).unwrap_or("");
    let energy = energy.split(", β").next().unwrap_or("");
    let number = energy.rsplit("= ").next().unwrap_or("");
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

impl ModelComparison {
    /// Models, the most probable first.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.names.len()).collect();
        order.sort_by(|a, b| self.ln_z[*b].value.total_cmp(&self.ln_z[*a].value));
        order
    }

    /// ln of the Bayes factor of each model against the best.
    pub fn ln_bayes_factors(&self) -> Vec<Estimate> {
        let best = self.order()[0];
        let against = |k: usize| match k == best {
            true => Estimate {
                value: 0.0,
                standard_error: 0.0,
            },
            false => ln_bayes_factor(self.ln_z[k], self.ln_z[best]),
        };
        (0..self.names.len()).map(against).collect()
    }

    /// How far the whole can be relied on: no further than any of its models.
    pub fn judged(&self) -> Judged {
        let mut out = Judged::converged();
        for (name, of) in self.names.iter().zip(&self.judged) {
            if !of.reasons.is_empty() {
                out.add(of.verdict, format!("{name}: {}", of.reasons.join("; ")));
            }
        }
        out
    }

    /// A map per model, the most probable first.
    pub fn to_json(&self) -> Value {
        let factors = self.ln_bayes_factors();
        let one = |k: usize| {
            json!({
                "name": self.names[k],
                "ln_z": self.ln_z[k].value,
                "error": self.ln_z[k].standard_error,
                "ln_bayes_factor": factors[k].value,
                "ln_bayes_factor_error": factors[k].standard_error,
                "weight": self.weights[k].weight.value,
                "weight_error": self.weights[k].weight.standard_error,
                "verdict": self.judged[k].verdict,
                "reasons": self.judged[k].reasons,
            })
        };
        Value::Array(self.order().into_iter().map(one).collect())
    }
}

impl ModelComparison {
    /// A row per model, the best first.
    pub fn table(&self) -> Table {
        let factors = self.ln_bayes_factors();
        let number = |e: &Estimate| with_error(e.value, e.standard_error);
        let mut out = Table::new(["model", "ln Z", "ln Bayes factor", "weight", "verdict"]);
        out.above.extend(self.judged().line("comparison"));
        for k in self.order() {
            out.push([
                self.names[k].clone(),
                number(&self.ln_z[k]),
                number(&factors[k]),
                number(&self.weights[k].weight),
                self.judged[k].verdict.to_string(),
            ]);
        }
        out.below.push(
            "Bayes factors relative to the best; weights: posterior probabilities of models that are equally probable a priori".into(),
        );
        out
    }
}

impl fmt::Display for ModelComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    ModelComparison: "ModelComparison",
    fields: { "verdict" => |c| c.judged().verdict.to_string().into() },
    entries: to_json, "modelcomparison.to_array() -> array", "A map per model, the most probable first.",
    table: table,
}
