//! An estimate at half the step size, and what the two tell of none at all.

use super::Estimate;
use crate::diagnostic::verdict::{MOST_ERROR, MOST_SIGMA};
use crate::sampler::Accuracy;
use crate::simulation::judge::percent;
use std::fmt;

/// The estimate at half the step size.
#[derive(Debug, Clone)]
pub struct Halved {
    /// The sampler's option that was halved.
    pub option: &'static str,
    /// How the sampler's error goes with it.
    pub accuracy: Accuracy,
    /// What came out.
    pub estimate: Box<Estimate>,
}

/// An estimate without the leading error of discretisation.
#[derive(Debug, Clone, Copy)]
pub struct Extrapolated {
    /// λ̂ at no step at all.
    pub value: f64,
    /// Its standard error from the draws.
    pub mcse: f64,
    /// How far it may be off because the error has higher orders too: half of what was added to the estimate at half the step. In a
    /// harmonic well of stiffness k, SGLD is off by the part x/(1-x), x = εk/4, and Langevin dynamics with x = δt²k/4M; then
    /// the extrapolated value is off by x of what was added, and x = 1 is where steps are no longer stable.
    pub next_order: f64,
}

impl Extrapolated {
    /// Both together.
    pub fn error(&self) -> f64 {
        self.mcse.hypot(self.next_order)
    }
}

impl Halved {
    /// From this and the estimate at the whole step (Richardson); none where the order of the error is not known, or there is no error.
    pub fn extrapolated(&self, whole: &Estimate) -> Option<Extrapolated> {
        let Accuracy::Order(order) = self.accuracy else {
            return None;
        };
        let (half, gain) = (&self.estimate, 2f64.powi(order));
        let added = (half.lambda - whole.lambda) / (gain - 1.0);
        Some(Extrapolated {
            value: half.lambda + added,
            mcse: (gain * half.mcse).hypot(whole.mcse) / (gain - 1.0),
            next_order: added.abs() / 2.0,
        })
    }

    /// The objection that the estimate changes with the step; none within 4 joint errors or 2 %.
    pub(super) fn objection(&self, whole: &Estimate) -> Option<String> {
        let half = &self.estimate;
        let change = half.lambda - whole.lambda;
        let clear = change.abs() > MOST_SIGMA * whole.mcse.hypot(half.mcse)
            && change.abs() > MOST_ERROR * half.lambda.abs();
        clear.then(|| {
            format!(
                "half the {} gives {:.5} ± {:.2}, {} {}: the step is too large",
                self.option,
                half.lambda,
                Short(half.mcse),
                percent((change / whole.lambda).abs()),
                if change < 0.0 { "less" } else { "more" }
            )
        })
    }

    /// A line for tables.
    pub(super) fn in_words(&self, whole: &Estimate) -> String {
        let half = &self.estimate;
        let found = format!(
            "with half the {} {:.5} ± {:.2}",
            self.option,
            half.lambda,
            Short(half.mcse)
        );
        match (self.accuracy, self.extrapolated(whole)) {
            (Accuracy::Order(order), Some(e)) => format!(
                "{found}, extrapolated to zero {:.5} ± {:.2} (error of order {}{}; the next order may be {:.2})",
                e.value,
                Short(e.error()),
                self.option,
                if order == 1 {
                    String::new()
                } else {
                    format!("^{order}")
                },
                Short(e.next_order)
            ),
            (Accuracy::Unknown(why), _) => format!("{found}; not extrapolated: {why}"),
            _ => format!("{found}; the sampler is exact at any step, so both estimate the same"),
        }
    }
}

/// A standard error in two digits.
pub(super) struct Short(pub f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            x if x.is_finite() && x > 0.0 => (1.0 - x.log10().floor()).clamp(0.0, 12.0) as usize,
            _ => 2,
        };
        write!(f, "{:.digits$}", self.0)
    }
}
