//! Stepping-stone sampling: ln Z as a sum of importance-sampling estimates between neighbouring rungs.

use super::ladder::{Estimate, Ladder, Replicas, ln_sum_exp};
use crate::diagnostic::psis::is_unreliable;
use crate::error::Result;

/// What [`stepping_stone`] finds; log evidences are ln Z(beta_R) - ln Z(beta_1), dimensionless.
#[derive(Debug, Clone, PartialEq)]
pub struct SteppingStone {
    /// From the draws at the lower inverse temperature of each step; too low on average.
    pub forward: Estimate,
    /// From the draws at the higher inverse temperature of each step; too high on average.
    ///
    /// Its weights exp(+h E) have the heavier tail. Where h exceeds half the distance to the inverse temperature at
    /// which Z diverges, their variance is infinite. Where the tail of the weights of a step says that their mean is not
    /// to be [relied on](is_unreliable), there is no error bar: the standard error is NaN.
    pub backward: Estimate,
    /// Half forward, half backward: their biases cancel to leading order. Its error counts a rung once that both use; NaN
    /// where there is none of `backward`.
    pub average: Estimate,
    /// Share of draws that carry weight in each forward step, from 0 to 1 (Kish: (Σw)²/(n Σw²)).
    pub forward_share: Vec<f64>,
    /// The same for each backward step. Below a few per cent a step is too wide.
    pub backward_share: Vec<f64>,
}

/// Chains importance-sampling estimates up and down the ladder.
///
/// Forward, Z_(k+1)/Z_k = ⟨exp(-h E)⟩ at beta_k, with h = beta_(k+1) - beta_k (Xie, Lewis, Fan, Kuo and Chen, "Improving
/// marginal likelihood estimation for Bayesian phylogenetic model selection", Systematic Biology 60 (2011) 150);
/// backward, Z_k/Z_(k+1) = ⟨exp(+h E)⟩ at beta_(k+1). Sums of exponentials are taken in logarithms.
///
/// Errors: [`Replicas::Exchanging`] with rungs of different shape.
pub fn stepping_stone(ladder: &Ladder, replicas: Replicas) -> Result<SteppingStone> {
    let steps: Vec<f64> = ladder.betas().windows(2).map(|b| b[1] - b[0]).collect();
    let up: Vec<Mean> = (0..steps.len())
        .map(|k| Mean::of(ladder, k, -steps[k]))
        .collect();
    let down: Vec<Mean> = (0..steps.len())
        .map(|k| Mean::of(ladder, k + 1, steps[k]))
        .collect();
    let estimate = |forward: f64, backward: f64| -> Result<Estimate> {
        let terms = up.iter().zip(&down);
        Ok(Estimate {
            value: terms.map(|(u, d)| forward * u.ln - backward * d.ln).sum(),
            standard_error: ladder.standard_error(replicas, |rung, _, _, energy| {
                let up = up.get(rung).map_or(0.0, |m| m.weight(energy));
                let below = rung.checked_sub(1);
                let down = below.map_or(0.0, |k| down[k].weight(energy));
                forward * up - backward * down
            })?,
        })
    };
    let heavy = |(k, h): (usize, &f64)| is_unreliable(ladder.energies(k + 1).map(|e| h * e));
    let heavy = steps.iter().enumerate().any(heavy);
    let with_tail = |estimate: Estimate| match heavy {
        true => Estimate {
            standard_error: f64::NAN,
            ..estimate
        },
        false => estimate,
    };
    Ok(SteppingStone {
        forward: estimate(1.0, 0.0)?,
        backward: with_tail(estimate(0.0, 1.0)?),
        average: with_tail(estimate(0.5, 0.5)?),
        forward_share: up.iter().map(|m| m.share).collect(),
        backward_share: down.iter().map(|m| m.share).collect(),
    })
}

/// The mean of exp(slope·E) over the draws of a rung.
struct Mean {
    slope: f64,
    ln: f64,
    share: f64,
}

impl Mean {
    fn of(ladder: &Ladder, rung: usize, slope: f64) -> Self {
        let n = (ladder.draws(rung) as f64).ln();
        let sum = |p: f64| ln_sum_exp(ladder.energies(rung).map(|e| p * slope * e));
        let (first, second) = (sum(1.0), sum(2.0));
        Self {
            slope,
            ln: first - n,
            share: (2.0 * first - second - n).exp(),
        }
    }

    /// A draw's exp(slope·E) over its mean.
    fn weight(&self, energy: f64) -> f64 {
        (self.slope * energy - self.ln).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_of_the_energy_is_exact_however_large() {
        let small = [
            vec![vec![1.0, 2.0, 0.5, 3.0, 1.5]],
            vec![vec![0.5, 1.0, 0.25, 1.5, 2.0]],
        ];
        let offset = 1e6;
        let large = small
            .clone()
            .map(|r| vec![r[0].iter().map(|e| e + offset).collect()]);
        let of = |energies: &[Vec<Vec<f64>>]| {
            let ladder = Ladder::new(&[0.5, 1.25], energies).unwrap();
            stepping_stone(&ladder, Replicas::Independent).unwrap()
        };
        let (small, large) = (of(&small), of(&large));
        for pick in [
            |s: &SteppingStone| s.forward,
            |s: &SteppingStone| s.backward,
            |s: &SteppingStone| s.average,
        ] {
            let (small, large) = (pick(&small), pick(&large));
            assert!((large.value - small.value + 0.75 * offset).abs() < 1e-8);
            assert!((large.standard_error / small.standard_error - 1.0).abs() < 1e-8);
        }
        assert!(small.forward_share[0] > 0.2 && small.forward_share[0] < 1.0);
    }
}
