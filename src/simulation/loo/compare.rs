//! Models compared by leave-one-out cross-validation on the same data.

use super::Loo;
use crate::diagnostic::psis::sum_with_error;
use crate::error::Result;
use crate::simulation::standing::Judged;
use crate::simulation::summary::with_error;
use crate::table::Table;
use anyhow::ensure;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Models, and how well each predicts examples that it has not seen.
#[derive(Debug, Clone)]
pub struct LooComparison {
    /// Names, the best first.
    pub names: Vec<String>,
    /// The estimates.
    pub models: Vec<Arc<Loo>>,
}

/// Compare models that were conditioned on the same examples.
///
/// # Errors
/// If there are fewer than two, two have one name, or their examples differ.
pub fn compare(mut models: Vec<(String, Arc<Loo>)>) -> Result<LooComparison> {
    ensure!(
        models.len() >= 2,
        "compare: at least two models are needed, and there are {}",
        models.len()
    );
    let (first_name, first) = &models[0];
    for (k, (name, loo)) in models.iter().enumerate() {
        ensure!(
            models[..k].iter().all(|(other, _)| other != name),
            "compare: two models are named '{name}'; give them names, as in compare(#{{ small: …, large: … }})"
        );
        ensure!(
            loo.rows == first.rows && loo.targets == first.targets,
            "compare: '{name}' and '{first_name}' predict other examples; leaving one out compares models on the same data"
        );
    }
    models.sort_by(|a, b| b.1.elpd_loo().0.total_cmp(&a.1.elpd_loo().0));
    let (names, models) = models.into_iter().unzip();
    Ok(LooComparison { names, models })
}

impl LooComparison {
    /// elpd of model `a` minus that of `b`, and its standard error, as of a sum over examples: both are of the same.
    pub fn difference(&self, a: usize, b: usize) -> (f64, f64) {
        let each = self.models[a].elpd.iter().zip(&self.models[b].elpd);
        sum_with_error(&each.map(|(x, y)| x - y).collect::<Vec<_>>())
    }

    /// How far the whole can be relied on: no further than any of its models.
    pub fn judged(&self) -> Judged {
        let mut out = Judged::converged();
        for (name, model) in self.names.iter().zip(&self.models) {
            let of = &model.judged;
            if !of.reasons.is_empty() {
                out.add(of.verdict, format!("{name}: {}", of.reasons.join("; ")));
            }
        }
        out
    }

    /// A map per model, the best first.
    pub fn to_json(&self) -> Value {
        let one = |a: usize| {
            let pair = |b: usize| {
                let (difference, se) = self.difference(a, b);
                let both = json!({ "difference": difference, "se": se });
                (self.names[b].clone(), both)
            };
            let others = (0..self.names.len()).filter(|b| *b != a).map(pair);
            let model = &self.models[a];
            let ((elpd, se), (difference, difference_se)) =
                (model.elpd_loo(), self.difference(a, 0));
            json!({
                "name": self.names[a],
                "elpd_loo": elpd,
                "elpd_se": se,
                "difference": difference,
                "difference_se": difference_se,
                "p_loo": model.p_loo().0,
                "unreliable": model.unreliable().len(),
                "against": others.collect::<Map<_, _>>(),
                "verdict": model.judged.verdict,
            })
        };
        (0..self.names.len()).map(one).collect()
    }

    /// A row per model, the best first.
    pub fn table(&self) -> Table {
        let number = |(value, error)| with_error(value, error);
        let mut out = Table::new([
            "model",
            "elpd_loo",
            "difference",
            "p_loo",
            "k̂ too large",
            "verdict",
        ]);
        out.above.extend(self.judged().line("comparison"));
        for (a, model) in self.models.iter().enumerate() {
            out.push([
                self.names[a].clone(),
                number(model.elpd_loo()),
                match a {
                    0 => "0".to_string(),
                    _ => number(self.difference(a, 0)),
                },
                number(model.p_loo()),
                model.unreliable().len().to_string(),
                model.judged.verdict.to_string(),
            ]);
        }
        out.below.push(
            "difference: elpd_loo relative to the best, with the standard error of the difference over the same examples".into(),
        );
        out
    }
}

impl fmt::Display for LooComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    LooComparison: "LooComparison",
    fields: { "verdict" => |c| c.judged().verdict.to_string().into() },
    entries: to_json, "loocomparison.to_array() -> array", "A map per model, the best first.\n\nname, elpd_loo, elpd_se, difference (to the best) and difference_se, p_loo, unreliable (how many examples), verdict, and against, the difference to each other model and its se.",
    table: table,
}
