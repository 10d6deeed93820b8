//! Whether an estimate of the learning coefficient is one yet, in words.

use super::Estimate;
use super::halved::Short;
use crate::diagnostic::verdict::MOST_ERROR;
use crate::diagnostic::{Heat, Verdict};
use crate::simulation::judge::{ALONE, Mixing, lacking, percent};
use crate::simulation::look::Seen;
use crate::simulation::standing::Judged;

/// Steps in words that nobody takes for exact.
fn about(steps: f64) -> String {
    let unit = 10f64.powf(steps.log10().floor());
    format!("{:.0}", (steps / unit).ceil() * unit)
}

impl Estimate {
    /// Whether the error of the temperature is too large for a verdict.
    fn blurred(&self) -> bool {
        self.virial.verdict == Heat::Undecided && !self.run.info.exact
    }

    /// What is seen of it while its run may go on.
    pub(super) fn seen(&self) -> Seen {
        let named = |x: f64| (x, "the loss".to_string());
        Seen {
            mixing: Mixing {
                r_hat: named(self.rhat),
                bulk: named(self.ess_bulk),
                tail: named(self.ess_tail),
            },
            lacks: self.blurred() || self.lambda < 0.0,
        }
    }

    /// How far it can be relied on, and why no further.
    pub fn judged(&self) -> Judged {
        if let Some(levels) = &self.levels {
            return levels.judged();
        }
        let mut out = Judged::converged();
        if let Some(failed) = self.run.failed_chains(0) {
            out.add(Verdict::NotYet, format!("{failed} and are left out"));
        }
        if self.run.chains_here(0) == 1 {
            out.add(Verdict::NotYet, ALONE);
        }
        let read = &self.virial;
        let lacks = lacking("the loss", [self.rhat, self.ess_bulk, self.ess_tail]);
        let relaxes = lacks.is_some();
        // Chains that have only begun to spread are cold, whatever the sampler.
        let wrong = if relaxes {
            Verdict::NotYet
        } else {
            Verdict::Wrong
        };
        let blurred = self.blurred();
        if relaxes || blurred {
            let (mut missing, mut factor) =
                lacks.map_or((Vec::new(), Some(1.0)), |(m, f)| (vec![m], f));
            if blurred {
                missing.push(format!(
                    "the error of the temperature around w0 is {} (at most {})",
                    percent(read.mcse),
                    percent(MOST_ERROR)
                ));
                factor = factor.map(|f| f64::max(f, (read.mcse / MOST_ERROR).powi(2)));
            }
            let steps = match factor {
                Some(f) => format!("about {}", about(f * self.run.info.steps as f64)),
                None => "more".to_string(),
            };
            out.add(
                Verdict::NotYet,
                format!("{}, so take {steps} steps", missing.join(", ")),
            );
        }
        let temperature = format!(
            "the temperature around w0 is {:.3} ± {:.2}, not 1",
            read.temperature,
            Short(read.mcse)
        );
        match read.verdict {
            Heat::Hot => out.add(
                Verdict::Wrong,
                format!("{temperature}: the step is too large"),
            ),
            Heat::Cold => out.add(
                wrong,
                format!(
                    "{temperature}: chains have not spread over the directions that only γ holds back, so take more steps, a larger γ, or masses that adapt (sampler::hmc)"
                ),
            ),
            _ => {}
        }
        if let Some(objection) = self.halved.as_ref().and_then(|h| h.objection(self)) {
            out.add(wrong, objection);
        }
        if self.lambda < 0.0 {
            let clear = !relaxes && self.lambda < -4.0 * self.mcse;
            out.add(
                if clear { Verdict::Wrong } else { Verdict::NotYet },
                format!(
                    "λ̂ is negative: the mean loss is below that at w0, so w0 is not a local minimum at nβ = {:.4}, γ = {}; train further, start where these chains ended (estimate.run.at(0)), or take a larger γ",
                    self.point.nbeta, self.point.gamma
                ),
            );
        }
        out
    }
}
