//! Thermodynamic integration: ln Z from the mean energies along the ladder.

use super::super::moments::mean_of;
use super::ladder::{Estimate, Ladder, Replicas};
use crate::error::Result;

/// An integral over the ladder, dimensionless.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quadrature {
    /// ln Z(beta_R) - ln Z(beta_1) and its Monte Carlo error.
    pub ln_z: Estimate,
    /// What the next higher rule would add: an estimate of the discretisation error, with its own Monte Carlo error.
    ///
    /// Signed: the truth is about `ln_z.value + discretisation.value`. Where it is lost in its own error, all that
    /// is known is that the ladder is fine enough for these draws.
    pub discretisation: Estimate,
}

impl Quadrature {
    /// Monte Carlo and discretisation error together, in quadrature.
    pub fn total_error(&self) -> f64 {
        self.ln_z.standard_error.hypot(self.discretisation.value)
    }
}

/// What [`thermodynamic_integration`] finds.
#[derive(Debug, Clone, PartialEq)]
pub struct ThermodynamicIntegration {
    /// The trapezoid rule: error of order spacing³ per interval.
    pub trapezoid: Quadrature,
    /// The trapezoid rule with its curvature correction: error of order spacing⁵ per interval.
    pub corrected: Quadrature,
    /// Lower and upper bound of ln Z(beta_R) - ln Z(beta_1), exact but for Monte Carlo error.
    ///
    /// ⟨E⟩ falls with beta, so that it is largest at the left and least at the right end of every interval
    /// (Gibbs-Bogoliubov).
    pub bounds: (f64, f64),
    /// ⟨E⟩ at every rung, in energy: the integrand, up to its sign.
    pub mean_energy: Vec<Estimate>,
}

/// Integrates the mean energy over the ladder: ln Z(beta_R) - ln Z(beta_1) = -∫ ⟨E⟩_beta d beta.
///
/// With h the width of an interval and a, b its ends, the trapezoid rule is -h/2 (⟨E⟩_a + ⟨E⟩_b). Since
/// d⟨E⟩/d beta = -Var(E), the variances at hand correct it for curvature by -h²/12 (Var_b - Var_a) (Friel, Hurn and
/// Wyse, "Improving power posterior estimation of statistical evidence", Statistics and Computing 24 (2014) 709;
/// theirs is log L = -E). The discretisation error of the first rule is that correction; that of the second is what
/// two-point Hermite quadrature with the second derivative, the third cumulant of E, would add.
///
/// Errors: [`Replicas::Exchanging`] with rungs of different shape.
pub fn thermodynamic_integration(
    ladder: &Ladder,
    replicas: Replicas,
) -> Result<ThermodynamicIntegration> {
    let rungs: Vec<Cumulants> = (0..ladder.rungs())
        .map(|rung| Cumulants::of(ladder.energies(rung)))
        .collect();
    let rules = Rules::of(ladder.betas());
    // An integral is linear in the cumulants, and so is its error in theirs.
    let estimate = |weights: &[[f64; 3]]| -> Result<Estimate> {
        let terms = rungs.iter().zip(weights);
        let value = terms.map(|(c, w)| w[0] * c.mean + w[1] * c.variance + w[2] * c.third);
        Ok(Estimate {
            value: value.sum(),
            standard_error: ladder.standard_error(replicas, |rung, _, _, energy| {
                rungs[rung].influence(energy, &weights[rung])
            })?,
        })
    };
    let widths = || ladder.betas().windows(2).map(|pair| pair[1] - pair[0]);
    let mean_energy = |rung: usize| -> Result<Estimate> {
        let mut only = vec![[0.0; 3]; rungs.len()];
        only[rung][0] = 1.0;
        estimate(&only)
    };
    Ok(ThermodynamicIntegration {
        trapezoid: Quadrature {
            ln_z: estimate(&rules.trapezoid)?,
            discretisation: estimate(&rules.correction)?,
        },
        corrected: Quadrature {
            ln_z: estimate(&sum(&rules.trapezoid, &rules.correction))?,
            discretisation: estimate(&rules.next)?,
        },
        bounds: (
            -widths().zip(&rungs).map(|(h, c)| h * c.mean).sum::<f64>(),
            -widths()
                .zip(&rungs[1..])
                .map(|(h, c)| h * c.mean)
                .sum::<f64>(),
        ),
        mean_energy: (0..rungs.len()).map(mean_energy).collect::<Result<_>>()?,
    })
}

/// Mean, variance and third cumulant of the energy at a rung, in energy, energy² and energy³.
struct Cumulants {
    mean: f64,
    variance: f64,
    third: f64,
}

impl Cumulants {
    fn of(energies: impl Iterator<Item = f64> + Clone) -> Self {
        let mean = mean_of(energies.clone());
        let n = energies.clone().count() as f64;
        let power = |p| energies.clone().map(|e| (e - mean).powi(p)).sum::<f64>();
        Self {
            mean,
            variance: power(2) / (n - 1.0),
            third: power(3) * n / ((n - 1.0) * (n - 2.0)),
        }
    }

    /// What a draw moves the weighted sum of the cumulants by, times the number of draws.
    fn influence(&self, energy: f64, weights: &[f64; 3]) -> f64 {
        let d = energy - self.mean;
        weights[0] * d
            + weights[1] * (d * d - self.variance)
            + weights[2] * (d * d * d - self.third - 3.0 * self.variance * d)
    }
}

/// Weights of mean, variance and third cumulant at every rung.
struct Rules {
    trapezoid: Vec<[f64; 3]>,
    /// What the corrected rule adds.
    correction: Vec<[f64; 3]>,
    /// What the rule after that adds.
    next: Vec<[f64; 3]>,
}

impl Rules {
    fn of(betas: &[f64]) -> Self {
        let zero = vec![[0.0; 3]; betas.len()];
        let (mut trapezoid, mut correction, mut next) = (zero.clone(), zero.clone(), zero);
        for (left, pair) in betas.windows(2).enumerate() {
            let h = pair[1] - pair[0];
            // With f = ⟨E⟩, f' = -variance and f'' = third cumulant, the three rules for ∫ f over the interval are
            // h/2 (f_a + f_b), that plus h²/12 (f'_a - f'_b), and h/2 (f_a + f_b) + h²/10 (f'_a - f'_b) +
            // h³/120 (f''_a + f''_b).
            for (rung, sign) in [(left, 1.0), (left + 1, -1.0)] {
                trapezoid[rung][0] -= h / 2.0;
                correction[rung][1] += sign * h * h / 12.0;
                next[rung][1] += sign * h * h / 60.0;
                next[rung][2] -= h * h * h / 120.0;
            }
        }
        Self {
            trapezoid,
            correction,
            next,
        }
    }
}

fn sum(a: &[[f64; 3]], b: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(a, b)| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f = exp(-beta), whose derivatives are known, integrated by the weights themselves.
    #[test]
    fn the_rules_have_the_orders_they_claim() {
        let error = |intervals: usize, rule: fn(&Rules) -> Vec<[f64; 3]>| {
            // Unequal widths, so that neighbours do not cancel.
            let x = |k: usize| (k as f64 / intervals as f64).powf(1.5);
            let betas: Vec<f64> = (0..=intervals).map(x).collect();
            let weights = rule(&Rules::of(&betas));
            let terms = betas.iter().zip(&weights);
            let got: f64 = terms.map(|(b, w)| (-b).exp() * (w[0] + w[1] + w[2])).sum();
            (got - ((-1f64).exp() - 1.0)).abs()
        };
        type Rule = fn(&Rules) -> Vec<[f64; 3]>;
        let rules: [(Rule, f64); 3] = [
            (|r| r.trapezoid.clone(), 2.0),
            (|r| sum(&r.trapezoid, &r.correction), 4.0),
            (|r| sum(&sum(&r.trapezoid, &r.correction), &r.next), 6.0),
        ];
        for (rule, order) in rules {
            let got = (error(8, rule) / error(16, rule)).log2();
            assert!((got - order).abs() < 0.3, "{got}, {order}");
        }
    }

    #[test]
    fn a_constant_energy_has_no_error() {
        let energies = vec![vec![vec![3.0; 8]; 2]; 2];
        let ladder = Ladder::new(&[0.0, 2.0], &energies).unwrap();
        for replicas in [Replicas::Independent, Replicas::Exchanging] {
            let found = thermodynamic_integration(&ladder, replicas).unwrap();
            for rule in [found.trapezoid, found.corrected] {
                assert_eq!(rule.ln_z.value, -6.0);
                assert_eq!(rule.total_error(), 0.0);
            }
            assert_eq!(found.bounds, (-6.0, -6.0));
        }
    }
}
