//! A curve of learning coefficients: what was found at each point.

use crate::diagnostic::Verdict;
use crate::error::Result;
use crate::plot::{Figure, learning};
use crate::simulation::job::Record;
use crate::simulation::llc::halved::Short;
use crate::simulation::summary::with_error;
use crate::store::checkpoint;
use crate::table::{Table, VERDICT};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// JSON has no NaN: it writes null.
fn or_nan<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

fn all_or_nan<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<f64>, D::Error> {
    let all = Vec::<Option<f64>>::deserialize(from)?;
    Ok(all.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
}

/// The estimate at a point of a curve. Numbers that are not known are NaN.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Name of the point.
    pub label: String,
    /// Where it is along the curve: its epoch or step.
    pub at: f64,
    /// L(w0), the loss there over all examples.
    #[serde(deserialize_with = "or_nan")]
    pub loss: f64,
    /// λ̂; NaN if every chain failed.
    #[serde(deserialize_with = "or_nan")]
    pub estimate: f64,
    /// Its standard error.
    #[serde(deserialize_with = "or_nan")]
    pub mcse: f64,
    /// λ̂ of each chain; NaN for those that failed.
    #[serde(deserialize_with = "all_or_nan")]
    pub chains: Vec<f64>,
    /// R̂ of the loss.
    #[serde(deserialize_with = "or_nan")]
    pub rhat: f64,
    /// Effective sample size of the loss, the least of that of the mean, the bulk and the tails.
    #[serde(deserialize_with = "or_nan")]
    pub ess: f64,
    /// The virial temperature around w0, set 1, and its standard error.
    #[serde(deserialize_with = "or_nan")]
    pub virial: f64,
    /// See `virial`.
    #[serde(deserialize_with = "or_nan")]
    pub virial_mcse: f64,
    /// Mean acceptance, of samplers that accept or reject.
    #[serde(deserialize_with = "or_nan")]
    pub acceptance: f64,
    /// Chains that failed, in words.
    pub failed: Vec<String>,
    /// How far the estimate can be relied on.
    pub verdict: Verdict,
    /// And why no further.
    pub reasons: Vec<String>,
    /// The seed: `llc` with it gives the same numbers.
    pub seed: u64,
    /// Seconds of computing.
    pub seconds: f64,
}

/// Learning coefficients along a training.
#[derive(Debug, Clone)]
pub struct Curve {
    /// What the places count: "epoch", "step" or "point".
    pub axis: String,
    /// nβ and γ.
    pub nbeta: f64,
    /// See `nbeta`.
    pub gamma: f64,
    /// What is estimated, in order of the places; fewer than there are points if it is not finished.
    pub points: Vec<CurvePoint>,
    /// Points, finished or not.
    pub count: usize,
    /// Whether steps were cut by --quick.
    pub quick: bool,
    /// What happened on the way, and seconds of computing.
    pub record: Record,
}

impl Curve {
    /// That of a folder, so far; none if the folder is that of something else.
    ///
    /// # Errors
    /// If the checkpoint cannot be read.
    pub fn load(folder: &Path) -> Result<Option<Self>> {
        let Some((saved, _)) = checkpoint::load(&folder.join("checkpoint"))? else {
            return Ok(None);
        };
        Self::of(&saved.meta)
    }

    /// What the description in a checkpoint says; none if it is that of something else.
    pub(super) fn of(meta: &Value) -> Result<Option<Self>> {
        let what = &meta["what"];
        if what["job"] != super::JOB {
            return Ok(None);
        }
        let points = Vec::<Option<CurvePoint>>::deserialize(&meta["points"])?;
        let number = |name: &str| what[name].as_f64().unwrap_or(f64::NAN);
        Ok(Some(Self {
            axis: what["axis"].as_str().unwrap_or_default().into(),
            nbeta: number("nbeta"),
            gamma: number("gamma"),
            count: points.len(),
            points: points.into_iter().flatten().collect(),
            quick: what["quick"] == true,
            record: Record::of(meta),
        }))
    }

    /// One number of every point.
    pub fn each(&self, of: impl Fn(&CurvePoint) -> f64) -> Vec<f64> {
        self.points.iter().map(of).collect()
    }

    /// The worst verdict of all points.
    pub fn verdict(&self) -> Verdict {
        let all = self.points.iter().map(|p| p.verdict);
        all.max().unwrap_or(Verdict::NotJudged)
    }

    /// The objections, point by point.
    pub fn reasons(&self) -> Vec<String> {
        let of = |p: &CurvePoint| {
            let said = |r: &String| format!("{} {}: {r}", self.axis, p.label);
            p.reasons.iter().map(said).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of).collect()
    }

    /// λ̂ with its error bars, and below it the loss, along the curve.
    pub fn figure(&self) -> Figure {
        learning::curve(learning::Curve {
            axis: &self.axis,
            at: &self.each(|p| p.at),
            estimates: &self.each(|p| p.estimate),
            errors: &self.each(|p| p.mcse),
            usable: &self
                .points
                .iter()
                .map(|p| p.verdict == Verdict::Converged)
                .collect::<Vec<_>>(),
            losses: &self.each(|p| p.loss),
        })
    }

    pub(crate) fn drawing(&self) -> Option<String> {
        self.figure().to_html().ok()
    }

    /// As a map, for scripts.
    pub fn to_json(&self) -> Value {
        json!({
            "verdict": self.verdict(),
            "reasons": self.reasons(),
            "axis": self.axis,
            "nbeta": self.nbeta,
            "gamma": self.gamma,
            "points": self.points,
            "seconds": self.record.seconds,
        })
    }

    /// A row per point.
    pub fn table(&self) -> Table {
        let moves = self.points.iter().any(|p| p.acceptance.is_finite());
        let mut header = vec![self.axis.as_str(), "loss", "λ̂", "R̂", "ESS", "T virial"];
        header.extend(moves.then_some("acceptance"));
        header.push("verdict");
        let mut out = Table::new(header).line_above(format!("{VERDICT}{}", self.verdict()));
        for p in &self.points {
            let mut row = vec![
                p.label.clone(),
                with_error(p.loss, f64::NAN),
                match p.estimate.is_nan() {
                    true => "n/a".into(),
                    false => format!("{:.4} ± {:.2}", p.estimate, Short(p.mcse)),
                },
                format!("{:.3}", p.rhat),
                format!("{:.0}", p.ess),
                with_error(p.virial, p.virial_mcse),
            ];
            row.extend(moves.then(|| format!("{:.2}", p.acceptance)));
            row.push(p.verdict.to_string());
            out.push(row);
        }
        out.below
            .push(format!("nβ = {:.6}, γ = {}", self.nbeta, self.gamma));
        if self.points.len() < self.count {
            let (done, all) = (self.points.len(), self.count);
            out.below
                .push(format!("UNFINISHED: {done} of {all} points"));
        }
        out.below.extend(self.reasons());
        let failed = |p: &CurvePoint| {
            let of = |f: &String| format!("FAILED and left out: {} {}, {f}", self.axis, p.label);
            p.failed.iter().map(of).collect::<Vec<_>>()
        };
        out.below.extend(self.points.iter().flat_map(failed));
        if self.quick {
            out.below.push("QUICK: steps were cut by --quick".into());
        }
        out
    }
}

impl std::fmt::Display for Curve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Curve: "LlcCurve",
    fields: {
        "at" => |c| c.each(|p| p.at).into(),
        "estimate" => |c| c.each(|p| p.estimate).into(),
        "mcse" => |c| c.each(|p| p.mcse).into(),
        "loss" => |c| c.each(|p| p.loss).into(),
        "rhat" => |c| c.each(|p| p.rhat).into(),
        "ess" => |c| c.each(|p| p.ess).into(),
        "virial" => |c| c.each(|p| p.virial).into(),
        "verdict" => |c| c.verdict().to_string().into(),
        "reasons" => |c| c.reasons().into(),
        "seconds" => |c| c.record.seconds.into(),
    },
    entries: to_json, "llccurve.to_map() -> map", "`points`, a map for each with all its numbers, and `verdict` and `reasons` of all.\n\n\
         A point has `label`, `at`, `loss`, `estimate`, `mcse`, `chains`, `rhat`, `ess`, `virial`, `acceptance`, `failed`, `verdict`, `reasons`, `seed` and `seconds`.",
    table: table,
    drawing: drawing,
}
