//! An estimate of the learning coefficient, and what speaks for it.

use super::halved::{Extrapolated, Halved, Short};
use super::levels::Levels;
use super::protocol::{Losses, Point, Prepared};
use super::saved::{drawn, online};
use crate::diagnostic::{self, Reading};
use crate::error::{EveryChainFailed, Result, count};
use crate::model::deep_linear::LearningCoefficient;
use crate::object::Held;
use crate::plot::Figure;
use crate::simulation::run::Run;
use crate::simulation::summary::with_error;
use crate::table::{Table, VERDICT};
use crate::target::Target;
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// An estimate of the learning coefficient, and what speaks for it.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// λ̂.
    pub lambda: f64,
    /// Standard error of λ̂: Monte Carlo error from the effective sample size, and that of the baseline.
    pub mcse: f64,
    /// λ̂ of each chain; NaN for those that failed.
    pub chains: Vec<f64>,
    /// Effective sample size of the mean loss, all chains together.
    pub ess: f64,
    /// The same of the bulk and of the tails of the loss.
    pub ess_bulk: f64,
    /// See `ess_bulk`.
    pub ess_tail: f64,
    /// R̂ of the loss.
    pub rhat: f64,
    /// The virial thermometer, whose set temperature is 1.
    pub virial: Reading,
    /// Chains that failed, in words.
    pub failed: Vec<String>,
    /// nβ, γ and the baseline.
    pub point: Point,
    /// n of the likelihood, minibatch size m, number of parameters that move.
    pub n: usize,
    /// m; none over all examples.
    pub m: Option<usize>,
    /// N.
    pub parameters: usize,
    /// The exact value, where it is known.
    pub truth: Option<LearningCoefficient>,
    /// nβ(L - L(w0)) of every chain and record, burn-in included.
    pub traces: Vec<Vec<f64>>,
    /// The estimate with half the step size.
    pub halved: Option<Halved>,
    /// The estimates at single nβ, where there are several: then λ̂ is that of the slope, R̂ and ESS are the worst of all, and what else there is belongs
    /// to the largest nβ.
    pub levels: Option<Arc<Levels>>,
    /// The run it was taken from.
    pub run: Arc<Run>,
    /// Where these come from.
    pub(super) losses: Losses,
    /// What was sampled.
    pub(super) target: Arc<Target>,
    /// w0, of the parameters that moved.
    pub(super) start: Arc<Vec<f32>>,
}

impl Estimate {
    /// From the losses of a run, and the standard error of nβ L(w0).
    pub(super) fn new(
        prepared: &Prepared,
        run: Arc<Run>,
        losses: Losses,
        of_baseline: f64,
    ) -> Result<Self> {
        let traces = losses.traces(&run)?;
        let healthy = |c: &usize| run.failures[*c].is_none();
        let draws: Vec<_> = (0..traces.len())
            .filter(healthy)
            .map(|c| &traces[c][run.info.warm_draws..])
            .collect();
        // Chains whose baselines differ have mixed where their losses have.
        let raised: Vec<Vec<f64>> = (0..traces.len())
            .filter(healthy)
            .map(|c| {
                let baseline = losses.at_start.get(c).map_or(0.0, |l| losses.nbeta * l);
                let after = &traces[c][run.info.warm_draws..];
                after.iter().map(|x| x + baseline).collect()
            })
            .collect();
        if draws.is_empty() {
            let first = run.failures.iter().flatten().next();
            let first = first.map_or(String::new(), |f| {
                format!("{} at step {}", f.reason, f.step)
            });
            return Err(EveryChainFailed {
                run: run.info.name.clone(),
                reason: first,
                what: "chain",
            }
            .into());
        }
        let failed = run.failures.iter().enumerate().filter_map(|(c, f)| {
            let f = f.as_ref()?;
            Some(format!("chain {c} at step {}: {}", f.step, f.reason))
        });
        let of_chain = |c: usize| match healthy(&c) {
            true => diagnostic::mean(&[&traces[c][run.info.warm_draws..]]),
            false => f64::NAN,
        };
        Ok(Self {
            lambda: diagnostic::mean(&draws),
            mcse: diagnostic::mcse_mean(&raised).hypot(of_baseline),
            chains: (0..traces.len()).map(of_chain).collect(),
            ess: diagnostic::ess_mean(&raised),
            ess_bulk: diagnostic::ess_bulk(&raised),
            ess_tail: diagnostic::ess_tail(&raised),
            rhat: diagnostic::rhat_rank(&raised),
            virial: prepared.thermometer(&run)?,
            failed: failed.collect(),
            point: prepared.point,
            n: prepared.n,
            m: prepared.sampler.batch(),
            parameters: prepared.target.dim(),
            truth: prepared.truth,
            halved: None,
            levels: None,
            traces,
            losses,
            run,
            target: prepared.target.clone(),
            start: prepared.start.clone(),
        })
    }

    /// Standard deviation of the estimates of the chains; NaN for a single one.
    pub fn spread(&self) -> f64 {
        let healthy: Vec<f64> = self
            .chains
            .iter()
            .copied()
            .filter(|x| x.is_finite())
            .collect();
        diagnostic::sd(&[healthy])
    }

    /// λ̂ from the steps so far, after burn-in: steps and running means over all healthy chains.
    pub fn online(&self) -> (Vec<f64>, Vec<f64>) {
        online(&self.run, &self.traces)
    }

    /// The loss of every chain along the steps, and below it the estimate so far.
    pub fn figure(&self) -> Figure {
        let truth = self.truth.map(|t| t.lambda);
        if let Some(levels) = &self.levels {
            return levels.figure(truth);
        }
        drawn(&self.run, &self.traces, (self.lambda, self.mcse), truth)
    }

    fn drawing(&self) -> Option<String> {
        self.figure().to_html().ok()
    }

    /// The verdict, the estimate and what it rests on.
    fn table(&self) -> Table {
        let (info, judged) = (&self.run.info, self.judged());
        let mut out = Table::new(["", "value"]).line_above(format!("{VERDICT}{}", judged.verdict));
        out.above.extend(judged.line("estimate"));
        let lambda = with_error(self.lambda, self.mcse);
        let mut row = |name: &str, value: String| out.push([name.to_string(), value]);
        row("learning coefficient", lambda);
        if let Some(t) = self.truth {
            let off = (self.lambda - t.lambda) / self.mcse;
            row("exact", format!("{} ({off:+.1} standard errors)", t.lambda));
        }
        row("R̂ of the loss", format!("{:.3}", self.rhat));
        row(
            "ESS of the loss, bulk, tail",
            format!(
                "{:.0}, {:.0}, {:.0}",
                self.ess, self.ess_bulk, self.ess_tail
            ),
        );
        row("spread of chains", with_error(self.spread(), f64::NAN));
        row(
            "T virial (set to 1)",
            format!(
                "{} {}",
                with_error(self.virial.temperature, self.virial.mcse),
                self.virial.verdict
            ),
        );
        row(
            "nβ, γ, baseline",
            format!(
                "{:.6}, {}, {}",
                self.point.nbeta,
                self.point.gamma,
                self.point.baseline.name()
            ),
        );
        row("n, parameters", format!("{}, {}", self.n, self.parameters));
        row("sampler", info.sampler.to_string());
        row(
            "steps",
            format!(
                "{} × {}, of them {} burn-in",
                count(info.chains, "chain"),
                info.steps,
                info.burn_in
            ),
        );
        let halved = self.halved.as_ref().map(|h| h.in_words(self).to_string());
        out.below.extend(halved);
        let levels = self.levels.as_ref().map(|l| l.in_words());
        let lines = levels.iter().flat_map(|text| text.trim_start().lines());
        out.below.extend(lines.map(|line| line.trim().to_string()));
        let failed = self.failed.iter();
        out.below
            .extend(failed.map(|f| format!("FAILED and left out: {f}")));
        if info.quick {
            out.below.push("QUICK: steps were cut by --quick".into());
        }
        out
    }

    /// The estimate without the leading error of discretisation; none unless it was halved, by a sampler that states the order of its error.
    pub fn extrapolated(&self) -> Option<Extrapolated> {
        self.halved.as_ref()?.extrapolated(self)
    }

    /// As a map, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let truth = self.truth.map(|t| t.lambda);
        let judged = self.judged();
        let mut map = json!({
            "verdict": judged.verdict,
            "reasons": judged.reasons,
            "estimate": self.lambda,
            "mcse": self.mcse,
            "chains": self.chains,
            "spread": self.spread(),
            "ess": self.ess,
            "ess_bulk": self.ess_bulk,
            "ess_tail": self.ess_tail,
            "rhat": self.rhat,
            "virial": self.virial.temperature,
            "virial_mcse": self.virial.mcse,
            "thermometer_verdict": self.virial.verdict,
            "failed": self.failed,
            "nbeta": self.point.nbeta,
            "gamma": self.point.gamma,
            "baseline": self.point.baseline.name(),
            "n": self.n,
            "m": self.m,
            "parameters": self.parameters,
            "truth": truth,
            "multiplicity": self.truth.map(|t| t.multiplicity),
            "relative_error": truth.map(|t| self.lambda / t - 1.0),
            "seconds": self.run.seconds,
        });
        if let (Some(levels), Some(map)) = (&self.levels, map.as_object_mut())
            && let serde_json::Value::Object(more) = levels.to_json()
        {
            map.extend(more);
        }
        if let (Some(half), Some(map)) = (&self.halved, map.as_object_mut()) {
            map.insert("halved".into(), half.estimate.to_json());
            if let Some(e) = half.extrapolated(self) {
                map.insert("extrapolated".into(), json!(e.value));
                map.insert("extrapolated_mcse".into(), json!(e.mcse));
                map.insert("extrapolated_error".into(), json!(e.error()));
            }
        }
        map
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = &self.run.info;
        if let Some(line) = self.judged().line("estimate") {
            writeln!(f, "{line}")?;
        }
        write!(
            f,
            "learning coefficient {:.5} ± {:.2}",
            self.lambda,
            Short(self.mcse)
        )?;
        if let Some(t) = self.truth {
            let off = (self.lambda - t.lambda) / self.mcse;
            let relative = 100.0 * (self.lambda / t.lambda - 1.0);
            write!(
                f,
                "   (exact {}, {relative:+.2} %, {off:+.1} standard errors)",
                t.lambda
            )?;
        }
        let m = self.m.map_or("all examples".into(), |m| format!("m = {m}"));
        let nbeta = format!("{:.6}", self.point.nbeta);
        let nbeta = nbeta.trim_end_matches('0').trim_end_matches('.');
        write!(
            f,
            "\n  n = {}, {m}, nβ = {nbeta}, γ = {}, baseline {}, {} parameters",
            self.n,
            self.point.gamma,
            self.point.baseline.name(),
            self.parameters
        )?;
        write!(
            f,
            "\n  {}: {} × {} steps ({} burn-in), R̂ {:.3}, ESS {:.0} (bulk {:.0}, tail {:.0}), spread of chains {:.3}, {:.1} s",
            info.sampler,
            count(info.chains, "chain"),
            info.steps,
            info.burn_in,
            self.rhat,
            self.ess,
            self.ess_bulk,
            self.ess_tail,
            self.spread(),
            self.run.seconds
        )?;
        write!(
            f,
            "\n  temperature by the virial {:.4} ± {:.4} (set to 1): {}",
            self.virial.temperature, self.virial.mcse, self.virial.verdict
        )?;
        if let Some(half) = &self.halved {
            write!(f, "\n  {}", half.in_words(self))?;
        }
        if let Some(levels) = &self.levels {
            write!(f, "{}", levels.in_words())?;
        }
        for reason in &self.failed {
            write!(f, "\n  FAILED and left out: {reason}")?;
        }
        if info.quick {
            write!(
                f,
                "\n  QUICK: steps were cut by --quick; this number is for trying things out only"
            )?;
        }
        Ok(())
    }
}

crate::object::object! {
    Estimate: "Estimate",
    fields: {
        "estimate" => |e| e.lambda.into(),
        "mcse" => |e| e.mcse.into(),
        "spread" => |e| e.spread().into(),
        "ess" => |e| e.ess.into(),
        "rhat" => |e| e.rhat.into(),
        "virial" => |e| e.virial.temperature.into(),
        "virial_mcse" => |e| e.virial.mcse.into(),
        "nbeta" => |e| e.point.nbeta.into(),
        "truth" => |e| e.truth.map_or(f64::NAN, |t| t.lambda).into(),
        "relative_error" => |e| e.truth.map_or(f64::NAN, |t| e.lambda / t.lambda - 1.0).into(),
        "seconds" => |e| e.run.seconds.into(),
        "chains" => |e| e.chains.clone().into(),
        "failed" => |e| e.failed.clone().into(),
        "run" => |e| e.run.held(),
        "levels" => |e| e.levels.as_ref().map_or(Vec::new(), |l| l.estimates.iter().cloned().map(Arc::new).collect()).into(),
        "halved" => |e| e.halved.as_ref().map(|h| Arc::new(Estimate::clone(&h.estimate))).into(),
        "verdict" => |e| e.judged().verdict.to_string().into(),
        "reasons" => |e| e.judged().reasons.into(),
    },
    entries: to_json, "estimate.to_map() -> map", "All its numbers.",
    table: table,
    drawing: drawing,
}
