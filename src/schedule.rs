//! Schedules: how a temperature or a step size varies with the step number.

use crate::error::Result;
use std::fmt;

/// A value that may change with the step.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// The same value at every step.
    Constant(f64),
    /// `a · (b + t)^-kappa` (Welling & Teh 2011; Ohzeki & Ichiki 2015 use κ = 0.55).
    Power {
        /// Scale.
        a: f64,
        /// Offset of the step number, > 0.
        b: f64,
        /// Exponent, ≥ 0.
        kappa: f64,
    },
    /// From `from` to `to` over `steps` steps on a straight line, constant afterwards.
    Linear {
        /// Value at step 0.
        from: f64,
        /// Value from step `steps` on.
        to: f64,
        /// Length of the ramp.
        steps: u64,
    },
    /// From `from` to `to` over `steps` steps by a constant factor per step, constant afterwards.
    Geometric {
        /// Value at step 0, > 0.
        from: f64,
        /// Value from step `steps` on, > 0.
        to: f64,
        /// Length of the ramp.
        steps: u64,
    },
    /// `start · factor^floor(t / every)`: the usual learning-rate decay.
    Decay {
        /// Value at step 0.
        start: f64,
        /// Factor applied every `every` steps.
        factor: f64,
        /// Steps (for an optimiser: epochs) between two applications.
        every: u64,
    },
}

impl Schedule {
    /// The value at step `t`.
    pub fn at(&self, t: u64) -> f64 {
        let ramp = |steps: u64| {
            if steps == 0 {
                1.0
            } else {
                (t as f64 / steps as f64).min(1.0)
            }
        };
        match *self {
            Schedule::Constant(x) => x,
            Schedule::Power { a, b, kappa } => a * (b + t as f64).powf(-kappa),
            Schedule::Linear { from, to, steps } => from + (to - from) * ramp(steps),
            Schedule::Geometric { from, to, steps } => from * (to / from).powf(ramp(steps)),
            Schedule::Decay {
                start,
                factor,
                every,
            } => start * factor.powi((t / every.max(1)).min(i32::MAX as u64) as i32),
        }
    }

    /// The constant value, if there is one.
    pub fn constant(&self) -> Option<f64> {
        match self {
            Schedule::Constant(x) => Some(*x),
            _ => None,
        }
    }

    /// Fail unless every value the schedule can take satisfies `ok`; all kinds are monotonic, so both ends decide.
    pub fn check(&self, ok: impl Fn(f64) -> bool) -> Result<()> {
        for t in [0, u64::MAX >> 16] {
            let x = self.at(t);
            // A decay to exactly zero in the limit is what a power law is for: only the start must be positive.
            let vanishes = t > 0 && x == 0.0;
            anyhow::ensure!(ok(x) || vanishes, "the schedule reaches {x}");
        }
        Ok(())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Constant(x) => write!(f, "{x:?}"),
            Schedule::Power { a, b, kappa } => write!(f, "{a:?}·({b:?}+t)^-{kappa:?}"),
            Schedule::Linear { from, to, steps } => {
                write!(f, "{from:?} → {to:?} linearly over {steps} steps")
            }
            Schedule::Geometric { from, to, steps } => {
                write!(f, "{from:?} → {to:?} geometrically over {steps} steps")
            }
            Schedule::Decay {
                start,
                factor,
                every,
            } => {
                write!(f, "{start:?} ×{factor:?} every {every}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_start_and_end_where_they_say() {
        let linear = Schedule::Linear {
            from: 1.0,
            to: 3.0,
            steps: 10,
        };
        assert_eq!((linear.at(0), linear.at(5), linear.at(99)), (1.0, 2.0, 3.0));
        let geometric = Schedule::Geometric {
            from: 1.0,
            to: 4.0,
            steps: 2,
        };
        assert!((geometric.at(1) - 2.0).abs() < 1e-12);
        let decay = Schedule::Decay {
            start: 1.0,
            factor: 0.5,
            every: 10,
        };
        assert_eq!((decay.at(9), decay.at(10), decay.at(25)), (1.0, 0.5, 0.25));
        let power = Schedule::Power {
            a: 2.0,
            b: 1.0,
            kappa: 0.5,
        };
        assert_eq!((power.at(0), power.at(3)), (2.0, 1.0));
        assert!(linear.check(|x| x > 2.0).is_err() && power.check(|x| x > 0.0).is_ok());
    }
}
