//! Triggers: at which steps something happens.

use crate::error::count;
use std::fmt;

/// When to act. Steps are counted from 1: after the first step, `step` is 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// At every multiple of the number.
    Every(u64),
    /// At these steps (sorted).
    At(Vec<u64>),
    /// At `per_decade` steps per factor of ten, evenly spaced in the logarithm: for relaxation curves.
    Logarithmic {
        /// Points per decade.
        per_decade: u32,
    },
    /// At every multiple of `every` that lies in the last part of a cycle.
    Cyclical {
        /// Steps per cycle.
        cycle: u64,
        /// Steps of a cycle before the part that counts.
        skip: u64,
        /// See above.
        every: u64,
    },
}

impl Trigger {
    /// Whether to act after step `step`.
    pub fn fires(&self, step: u64) -> bool {
        match self {
            Trigger::Every(n) => step > 0 && step.is_multiple_of((*n).max(1)),
            Trigger::At(steps) => steps.binary_search(&step).is_ok(),
            Trigger::Logarithmic { per_decade } => {
                // The k-th point is round(10^(k/p)); step is one if its own k, found by inversion, gives it back.
                let p = (*per_decade).max(1) as f64;
                let k = ((step as f64).log10() * p).round();
                step > 0
                    && [k - 1.0, k, k + 1.0]
                        .iter()
                        .any(|k| *k >= 0.0 && 10f64.powf(k / p).round() == step as f64)
            }
            // After step t, t - 1 steps of earlier numbers are done: step t was the (t-1)-th of its cycle.
            Trigger::Cyclical { cycle, skip, every } => {
                step > 0 && step.is_multiple_of((*every).max(1)) && (step - 1) % cycle >= *skip
            }
        }
    }

    /// The steps after `after`, up to `last`, at which it fires.
    pub fn steps(&self, after: u64, last: u64) -> Vec<u64> {
        let multiples = |n: u64| (after / n * n..=last).step_by(n.max(1) as usize);
        let inside = |s: &u64| *s > after && *s <= last && self.fires(*s);
        match self {
            Trigger::Every(n) | Trigger::Cyclical { every: n, .. } => {
                multiples((*n).max(1)).filter(inside).collect()
            }
            Trigger::At(at) => at.iter().copied().filter(inside).collect(),
            Trigger::Logarithmic { per_decade } => {
                let p = (*per_decade).max(1) as f64;
                let points = (0..).map(|k| 10f64.powf(k as f64 / p).round() as u64);
                let mut all: Vec<_> = points.take_while(|s| *s <= last).filter(inside).collect();
                all.dedup();
                all
            }
        }
    }

    /// How often it fires in steps 1..=`steps`.
    pub fn count(&self, steps: u64) -> usize {
        match self {
            Trigger::Every(n) => (steps / (*n).max(1)) as usize,
            Trigger::At(at) => at.iter().filter(|s| (1..=steps).contains(*s)).count(),
            Trigger::Logarithmic { per_decade } => {
                let p = (*per_decade).max(1) as f64;
                let mut points: Vec<u64> = (0..)
                    .map(|k| 10f64.powf(k as f64 / p).round() as u64)
                    .take_while(|s| *s <= steps)
                    .collect();
                points.dedup();
                points.len()
            }
            Trigger::Cyclical { cycle, every, .. } => {
                // It repeats after the least common multiple of cycle and interval.
                let (every, mut a, mut b) = ((*every).max(1), *cycle, (*every).max(1));
                while b > 0 {
                    (a, b) = (b, a % b);
                }
                let per = (*cycle / a).max(1);
                let count = |multiples: u64| {
                    let steps = (1..=multiples).map(|k| k * every);
                    steps.filter(|s| self.fires(*s)).count()
                };
                let (periods, rest) = (steps / every / per, steps / every % per);
                let whole = if periods > 0 { count(per) } else { 0 };
                periods as usize * whole + count(rest)
            }
        }
    }
}

/// So many steps, behind "every".
fn steps(n: u64) -> String {
    match n {
        1 => "step".into(),
        n => format!("{n} steps"),
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Every(n) => write!(f, "every {}", steps(*n)),
            Trigger::At(steps) => write!(f, "at {}", count(steps.len(), "given step")),
            Trigger::Logarithmic { per_decade } => write!(f, "{per_decade} times per decade"),
            Trigger::Cyclical { cycle, skip, every } => {
                write!(
                    f,
                    "every {}, after the first {skip} of every {cycle}",
                    steps(*every)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_the_number_of_steps_that_fire() {
        let triggers = [
            Trigger::Every(7),
            Trigger::At(vec![1, 5, 90, 4000]),
            Trigger::Logarithmic { per_decade: 7 },
            Trigger::Cyclical {
                cycle: 50,
                skip: 40,
                every: 3,
            },
        ];
        for t in triggers {
            for n in [1u64, 10, 99, 1000] {
                let fired = (1..=n).filter(|s| t.fires(*s)).count();
                assert_eq!(fired, t.count(n), "{t} up to {n}");
                for after in [0, 9, n / 2] {
                    let fired: Vec<_> = (after + 1..=n).filter(|s| t.fires(*s)).collect();
                    assert_eq!(fired, t.steps(after, n), "{t} from {after} to {n}");
                }
            }
        }
    }
}
