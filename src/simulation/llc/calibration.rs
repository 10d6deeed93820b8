//! What a calibration has found: all trials, and which of them is recommended.

use super::trial::{Found, Trial};
use crate::diagnostic;
use crate::plot::{Figure, learning};
use crate::table::Table;
use serde_json::json;
use std::fmt;

/// All trials, and which of them is recommended.
#[derive(Debug, Clone)]
pub struct Calibration {
    /// In order of γ, then of nβ, then of the step size.
    pub trials: Vec<Trial>,
    /// The sampler's option that was varied.
    pub option: &'static str,
    /// The trial on a plateau: of those that nothing speaks against and a neighbouring step confirms, the one with the smallest error bar at
    /// its nβ; of several nβ the one nearest to that asked for that a neighbouring nβ confirms; of several γ the weakest that the next one confirms, or the
    /// only one with such a trial. None if there is none.
    pub recommended: Option<usize>,
    /// Whether several nβ have a plateau each, and no two neighbours of them agree.
    pub nbetas_disagree: bool,
    /// The same of γ.
    pub gammas_disagree: bool,
    /// The trial at which the estimate changes least with the step size, of those that are not plainly wrong: what there is to take where
    /// directions that only γ holds back need more steps than can be made.
    pub steadiest: Option<usize>,
}

impl Calibration {
    /// As a map, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let trial = |t: &Trial| {
            let e = t.estimate.as_ref();
            json!({
                "step": t.step, "nbeta": t.nbeta, "gamma": t.gamma, "against": t.against,
                "estimate": e.map(|e| e.lambda), "mcse": e.map(|e| e.mcse),
                "virial": e.map(|e| e.temperature), "rhat": e.map(|e| e.rhat), "ess": e.map(|e| e.ess[0].min(e.ess[1])),
            })
        };
        json!({
            "option": self.option,
            "nbetas_disagree": self.nbetas_disagree,
            "gammas_disagree": self.gammas_disagree,
            "trials": self.trials.iter().map(trial).collect::<Vec<_>>(),
            "recommended": self.recommended.map(|i| trial(&self.trials[i])),
            "steadiest": self.steadiest.map(|i| trial(&self.trials[i])),
        })
    }

    /// λ̂ over step size and γ, a heat map for each nβ: white is the recommended estimate (else the provisional one, else the middle one), blue half of it
    /// and less, red half as much again and more. Trials in which every chain failed are crossed, those without objection have a marker.
    pub fn figure(&self) -> Figure {
        let kinds = |of: fn(&Trial) -> f64| {
            let mut all: Vec<f64> = self.trials.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all.dedup();
            all
        };
        let value = |t: &Trial| t.estimate.as_ref().map_or(f64::NAN, |e| e.lambda);
        let usual = self.recommended.or(self.steadiest);
        let all = self.trials.iter().map(value).filter(|x| x.is_finite());
        let white = match usual {
            Some(i) => value(&self.trials[i]),
            None => diagnostic::median(all.collect()),
        };
        let panel = |nbeta: &f64| {
            let here = || {
                self.trials
                    .iter()
                    .enumerate()
                    .filter(|(_, t)| t.nbeta == *nbeta)
            };
            let good =
                |(i, t): &(usize, &Trial)| t.against.is_empty() && self.recommended != Some(*i);
            let places = |of: &dyn Fn(&(usize, &Trial)) -> bool| {
                let all = here().filter(|t| of(t));
                all.map(|(_, t)| (t.step, t.gamma)).unzip()
            };
            let cells = here().map(|(_, t)| value(t)).collect();
            learning::Cells {
                title: format!("nβ = {nbeta:.4}"),
                values: cells,
                good: places(&good),
                recommended: places(&|(i, _)| self.recommended == Some(*i)),
            }
        };
        let (steps, gammas) = (kinds(|t| t.step), kinds(|t| t.gamma));
        let panels: Vec<_> = kinds(|t| t.nbeta).iter().map(panel).collect();
        learning::calibration(self.option, (&steps, &gammas), panels, white)
    }

    fn drawing(&self) -> Option<String> {
        self.figure().to_html().ok()
    }

    /// A row per trial, and what to make of them.
    pub fn table(&self) -> Table {
        let mut out = Table::new([
            "γ",
            "nβ",
            self.option,
            "estimate",
            "virial",
            "R̂",
            "ESS",
            "remarks",
        ]);
        for (i, t) in self.trials.iter().enumerate() {
            let of =
                |text: &dyn Fn(&Found) -> String| t.estimate.as_ref().map_or(String::new(), text);
            out.push([
                format!("{}", t.gamma),
                format!("{:.4e}", t.nbeta),
                format!("{:.3e}", t.step),
                of(&|e| format!("{:.4} ± {:.4}", e.lambda, e.mcse)),
                of(&|e| format!("{:.3} ± {:.3}", e.temperature, e.temperature_mcse)),
                of(&|e| format!("{:.3}", e.rhat)),
                of(&|e| format!("{:.0}", e.ess[0].min(e.ess[1]))),
                match (self.recommended == Some(i), t.against.is_empty()) {
                    (true, _) => "← recommended".into(),
                    (_, true) => "on a plateau".into(),
                    _ => t.against.join("; "),
                },
            ]);
        }
        if self.gammas_disagree {
            out.below.push("nothing is recommended: neighbouring γ give different estimates, so the localisation decides here; try stronger γ, or larger nβ".into());
        } else if self.nbetas_disagree {
            out.below.push("nothing is recommended: neighbouring nβ give different estimates, so there is no single coefficient here; try other nβ or γ".into());
        } else if self.recommended.is_none() {
            out.below.push(
                "nothing is recommended: take more steps, or other step sizes, as the remarks say"
                    .into(),
            );
            if let Some(t) = self.steadiest.map(|i| &self.trials[i])
                && let Some(e) = &t.estimate
            {
                out.below.push(format!(
                    "provisional, where the estimate changes least with the {}, at {:.3e}: {:.4} ± {:.4}",
                    self.option, t.step, e.lambda, e.mcse
                ));
            }
        }
        out
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Calibration: "Calibration",
    entries: to_json, "calibration.to_map() -> map", "`trials`, a map for each, and `recommended` and `steadiest`, each one of them (NaN if there is none).",
    table: table,
    drawing: drawing,
}
