//! Estimates at several nβ, and the learning coefficient that the slope of the mean loss gives.
//!
//! ⟨L⟩ = L0 + λ/nβ up to smaller terms, so λ̂ = d⟨L⟩/d(1/nβ) needs no L(w0): of two temperatures it is the estimator of Watanabe (2013, "A widely
//! applicable Bayesian information criterion", §5). The estimates at single nβ, which compare with L(w0), must agree with it.

use super::Estimate;
use super::halved::Short;
use super::protocol::Prepared;
use crate::diagnostic::{Line, Verdict, line};
use crate::error::Result;
use crate::plot::{Axis, Figure, Panel, Series};
use crate::simulation::run::Run;
use crate::simulation::session::Session;
use crate::simulation::standing::Judged;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Standard errors beyond which something is no chance.
const MOST: f64 = 4.0;

/// Estimates at several nβ, from chains that are independent of each other.
#[derive(Debug, Clone)]
pub struct Levels {
    /// The largest nβ first.
    pub estimates: Vec<Estimate>,
    /// ⟨L⟩ - L(w0) against 1/nβ.
    pub line: Line,
    /// λ̂ at single nβ against ln nβ.
    pub trend: Line,
}

impl Prepared {
    /// The estimates from a run at several nβ.
    pub(super) fn levels(&self, run: &Run, session: &Session) -> Result<Vec<Estimate>> {
        let level = |k: usize| {
            let one = Arc::new(run.at_temperature(k));
            self.estimate_at(one, k * run.info.chains, session)
        };
        (0..run.info.temperatures.len()).map(level).collect()
    }
}

impl Levels {
    /// The estimate by the slope, which has those of all levels.
    ///
    /// # Errors
    /// If a level has no error bar, as that of a single draw.
    pub(super) fn combined(estimates: Vec<Estimate>) -> Result<Estimate> {
        let through = |point: &dyn Fn(&Estimate) -> (f64, f64, f64)| {
            let points: Vec<_> = estimates.iter().map(point).collect();
            let found = line(&points);
            found.ok_or_else(|| {
                anyhow::anyhow!("llc: a level of 'nbeta' has too few draws for an error bar, so there is no slope; take more steps")
            })
        };
        let loss = through(&|e| {
            let nbeta = e.point.nbeta;
            (1.0 / nbeta, e.lambda / nbeta, e.mcse / nbeta)
        })?;
        let trend = through(&|e| (e.point.nbeta.ln(), e.lambda, e.mcse))?;
        let worst = |f: &dyn Fn(&Estimate) -> f64, g: fn(f64, f64) -> f64| {
            estimates.iter().map(f).fold(f64::NAN, g)
        };
        Ok(Estimate {
            lambda: loss.slope,
            mcse: loss.slope_error,
            rhat: worst(&|e| e.rhat, f64::max),
            ess: worst(&|e| e.ess, f64::min),
            ess_bulk: worst(&|e| e.ess_bulk, f64::min),
            ess_tail: worst(&|e| e.ess_tail, f64::min),
            levels: Some(Arc::new(Self {
                line: loss,
                trend,
                estimates: estimates.clone(),
            })),
            ..estimates[0].clone()
        })
    }

    /// How far the estimates can be relied on: as far as each of them.
    pub(super) fn judged(&self) -> Judged {
        let mut out = Judged::converged();
        for e in &self.estimates {
            let judged = e.judged();
            for reason in judged.reasons {
                out.add(
                    judged.verdict,
                    format!("at nβ = {:.4}: {reason}", e.point.nbeta),
                );
            }
        }
        let why = if self.line.bends(MOST) {
            format!(
                "the mean loss is no line in 1/nβ (χ² {:.1} of {} degrees): take larger nβ, or a γ that only directions without curvature feel",
                self.line.chi2, self.line.degrees
            )
        } else if self.line.degrees == 0 && self.has_trend() {
            format!(
                "λ̂ changes by {:.3} ± {:.2} when nβ grows e-fold: either L(w0) is not the least loss, which the slope does not see, or the mean loss is no line in 1/nβ; a third nβ tells",
                self.trend.slope,
                Short(self.trend.slope_error)
            )
        } else {
            return out;
        };
        out.add(Verdict::NotYet, why);
        out
    }

    /// Whether the estimates at single nβ differ.
    fn has_trend(&self) -> bool {
        self.trend.slope.abs() > MOST * self.trend.slope_error
    }

    /// Lines below the estimate: every level, and whether they agree.
    pub(super) fn in_words(&self) -> String {
        let mut out = String::new();
        for e in &self.estimates {
            let _ = write!(
                out,
                "\n  nβ = {:.4}: {:.5} ± {:.2}, R̂ {:.3}, ESS {:.0}",
                e.point.nbeta,
                e.lambda,
                Short(e.mcse),
                e.rhat,
                e.ess
            );
        }
        let Line {
            slope, slope_error, ..
        } = self.trend;
        let _ = write!(
            out,
            "\n  by the slope over {} nβ (χ² {:.1} of {} degrees); at single nβ it changes by {slope:.3} ± {:.2} when nβ grows e-fold",
            self.estimates.len(),
            self.line.chi2,
            self.line.degrees,
            Short(slope_error)
        );
        let above = -self.line.intercept;
        if self.line.degrees > 0 && self.has_trend() && above > MOST * self.line.intercept_error {
            let _ = write!(
                out,
                "\n  L(w0) is {above:.3e} ± {:.1e} above the least loss, as with noise in the data: estimates at single nβ are too low by nβ times that, the slope is not",
                self.line.intercept_error
            );
        }
        out
    }

    /// As maps, for scripts.
    pub(super) fn to_json(&self) -> Value {
        let levels: Vec<_> = self.estimates.iter().map(Estimate::to_json).collect();
        json!({
            "levels": levels,
            "above_least": -self.line.intercept,
            "above_least_mcse": self.line.intercept_error,
            "chi2": self.line.chi2,
            "degrees": self.line.degrees,
            "trend": self.trend.slope,
            "trend_mcse": self.trend.slope_error,
        })
    }

    /// The mean loss against 1/nβ with the line, and below it λ̂ at every nβ with that of the slope.
    pub(super) fn figure(&self, truth: Option<f64>) -> Figure {
        let list = |f: &dyn Fn(&Estimate) -> f64| self.estimates.iter().map(f).collect::<Vec<_>>();
        let inverse = list(&|e| 1.0 / e.point.nbeta);
        let line = &self.line;
        let fit = inverse
            .iter()
            .map(|x| line.intercept + line.slope * x)
            .collect();
        let losses = Series::points(
            "mean over the chains",
            inverse.clone(),
            list(&|e| e.lambda / e.point.nbeta),
        )
        .with_error(list(&|e| e.mcse / e.point.nbeta));
        let single = Series::points("at one nβ", list(&|e| e.point.nbeta), list(&|e| e.lambda))
            .with_error(list(&|e| e.mcse));
        let mut below = vec![single, Series::hline("by the slope", line.slope)];
        below.extend(truth.map(|t| Series::hline("exact", t)));
        Figure::stack(vec![
            Figure::of(Panel::new(
                Axis::linear("1/nβ"),
                Axis::linear("⟨L⟩ - L(w0)"),
                vec![losses, Series::line("its slope", inverse, fit)],
            )),
            Figure::of(Panel::new(
                Axis::log("nβ"),
                Axis::linear("learning coefficient"),
                below,
            )),
        ])
    }
}
