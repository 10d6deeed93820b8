//! Comparison of models by their evidence.

use super::ladder::{Estimate, ln_sum_exp};
use crate::error::Result;
use anyhow::ensure;

/// The share of one model among those compared, given the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PosteriorWeight {
    /// Posterior probability, from 0 to 1. Its error is linear, and means little beside an error of `ln` above about 1.
    pub weight: Estimate,
    /// Its logarithm, whose error holds however small the probability is.
    pub ln: Estimate,
}

/// Ln of the Bayes factor of one model over another: the difference of their log evidences on the same data.
///
/// Both must be absolute (from ladders that start at the prior) and independent of each other: squared errors add.
pub fn ln_bayes_factor(model: Estimate, over: Estimate) -> Estimate {
    Estimate {
        value: model.value - over.value,
        standard_error: model.standard_error.hypot(over.standard_error),
    }
}

/// Posterior probabilities of models with these log evidences: p_i ∝ prior_i Z_i.
///
/// `prior` has a positive probability per model, up to a common factor; none means equal ones. The log evidences are
/// absolute, on the same data, and independent: with d ln p_i = d ln Z_i - Σ_j p_j d ln Z_j, the variance of ln p_i is
/// (1 - p_i)² var_i + Σ_(j≠i) p_j² var_j.
///
/// Errors: no models; another number of priors; a log evidence, error or prior that is not finite or has the wrong sign.
pub fn posterior_weights(
    ln_evidences: &[Estimate],
    prior: Option<&[f64]>,
) -> Result<Vec<PosteriorWeight>> {
    ensure!(!ln_evidences.is_empty(), "there are no models to compare");
    for (model, ln_z) in ln_evidences.iter().enumerate() {
        ensure!(
            ln_z.value.is_finite() && ln_z.standard_error.is_finite() && ln_z.standard_error >= 0.0,
            "the log evidence of model {model} is {} ± {}",
            ln_z.value,
            ln_z.standard_error
        );
    }
    let equal = vec![1.0; ln_evidences.len()];
    let prior = prior.unwrap_or(&equal);
    ensure!(
        prior.len() == ln_evidences.len(),
        "{} prior probabilities for {} models",
        prior.len(),
        ln_evidences.len()
    );
    for (model, p) in prior.iter().enumerate() {
        ensure!(
            p.is_finite() && *p > 0.0,
            "the prior probability of model {model} is {p}; it must be positive"
        );
    }
    let joint = ln_evidences.iter().zip(prior);
    let joint: Vec<f64> = joint.map(|(ln_z, p)| ln_z.value + p.ln()).collect();
    let total = ln_sum_exp(joint.iter().copied());
    let weights: Vec<f64> = joint.iter().map(|j| (j - total).exp()).collect();
    let of_model = |i: usize| {
        let terms = ln_evidences.iter().zip(&weights).enumerate();
        let squares = terms.map(|(j, (ln_z, p))| {
            // 1 - p_i as the sum of the others: it is needed where p_i rounds to 1.
            let slope = if i == j { others(&weights, i) } else { *p };
            (slope * ln_z.standard_error).powi(2)
        });
        let error = squares.sum::<f64>().sqrt();
        PosteriorWeight {
            weight: Estimate {
                value: weights[i],
                standard_error: weights[i] * error,
            },
            ln: Estimate {
                value: joint[i] - total,
                standard_error: error,
            },
        }
    };
    Ok((0..weights.len()).map(of_model).collect())
}

fn others(weights: &[f64], i: usize) -> f64 {
    let rest = weights.iter().enumerate().filter(|(j, _)| *j != i);
    rest.map(|(_, p)| p).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, standard_error: f64) -> Estimate {
        Estimate {
            value,
            standard_error,
        }
    }

    #[test]
    fn two_models_have_the_logistic_of_their_bayes_factor() {
        let models = [estimate(-12_345.0, 0.3), estimate(-12_346.5, 0.4)];
        let ln_factor = ln_bayes_factor(models[0], models[1]);
        assert_eq!(ln_factor.value, 1.5);
        assert!((ln_factor.standard_error - 0.5).abs() < 1e-15);
        let found = posterior_weights(&models, Some(&[0.2, 0.6])).unwrap();
        let p = 1.0 / (1.0 + 3.0 * (-1.5f64).exp());
        assert!((found[0].weight.value - p).abs() < 1e-12);
        for model in &found {
            // d p = p (1 - p) d ln B for both.
            assert!((model.weight.standard_error - p * (1.0 - p) * 0.5).abs() < 1e-12);
        }
    }

    #[test]
    fn a_hopeless_model_keeps_a_finite_logarithm() {
        let models = [
            estimate(0.0, 0.1),
            estimate(-5000.0, 0.2),
            estimate(-20.0, 3.0),
        ];
        let found = posterior_weights(&models, None).unwrap();
        assert_eq!(found[1].weight.value, 0.0);
        assert!((found[1].ln.value + 5000.0).abs() < 1e-6);
        assert!((found[1].ln.standard_error - 0.05f64.sqrt()).abs() < 1e-6);
        let sum: f64 = found.iter().map(|m| m.weight.value).sum();
        assert!((sum - 1.0).abs() < 1e-15);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let fine = estimate(1.0, 0.1);
        type Case<'a> = (&'a [Estimate], Option<&'a [f64]>, &'a str);
        let bad: [Case; 6] = [
            (&[], None, "no models"),
            (&[fine, estimate(f64::NAN, 0.1)], None, "model 1"),
            (&[estimate(1.0, -0.1)], None, "-0.1"),
            (&[fine, fine], Some(&[1.0]), "1 prior probabilities"),
            (&[fine, fine], Some(&[1.0, 0.0]), "must be positive"),
            (&[fine], Some(&[f64::NAN]), "model 0"),
        ];
        for (models, prior, message) in bad {
            let error = posterior_weights(models, prior).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
