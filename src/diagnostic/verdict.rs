//! Verdicts: what may be said of the numbers of a run, with known rates of error.
//!
//! A run is *converged* where its chains agree and hold enough independent draws, *not yet* where something is missing, *wrong* where a
//! test of the law of its sampler failed. What cannot be judged is not called good.

use super::ess::ess_mean;
use super::kolmogorov::normal_cdf;
use super::mcse::mcse_mean;
use super::moments::mean;
use super::student::as_normal;
use std::fmt;

/// R̂ (rank-normalised, split) above which chains disagree (Vehtari et al. 2021, §4).
pub const MOST_R_HAT: f64 = 1.01;

/// Effective draws, in the bulk and in the tails, below which error bars are not to be trusted (Vehtari et al. 2021, §4).
pub const LEAST_ESS: f64 = 400.0;

/// Relative error of the temperature above which the thermometer says nothing.
pub(crate) const MOST_ERROR: f64 = 0.02;

/// Standard errors beyond which a test fails; more of them where many tests are made.
pub(crate) const MOST_SIGMA: f64 = 4.0;

/// How often at most any of the tests of a good run may fail.
pub(crate) const FALSE_ALARMS: f64 = 0.01;

/// What may be said of a run's numbers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Verdict {
    /// R̂ at most 1.01, bulk and tail ESS at least 400, and no test of the law failed.
    #[serde(rename = "converged")]
    Converged,
    /// There is nothing to judge: no draws, or no law that could be tested.
    #[serde(rename = "not judged")]
    NotJudged,
    /// Something is missing, which more steps may bring.
    #[serde(rename = "not yet")]
    NotYet,
    /// A test of the law failed.
    #[serde(rename = "wrong")]
    Wrong,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Converged => "converged",
            Self::NotJudged => "not judged",
            Self::NotYet => "not yet",
            Self::Wrong => "wrong",
        })
    }
}

/// A test of the law: an identity that holds in equilibrium, and by how much a run misses it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Test {
    /// What is tested.
    pub name: String,
    /// How far its two sides are apart, relative to the second.
    pub deviation: f64,
    /// Monte Carlo standard error of `deviation`.
    pub error: f64,
    /// Deviations up to this matter to nobody: a discretised sampler is off by a bias that grows with its step, and a longer run would
    /// condemn it for that.
    pub tolerance: f64,
    /// Effective draws that `error` is from.
    pub ess: f64,
}

impl Test {
    /// The test that `left` and `right`, which are recorded side by side, have the same mean; one trace per chain.
    pub fn new<C: AsRef<[f64]>>(
        name: impl Into<String>,
        left: &[C],
        right: &[C],
        tolerance: f64,
    ) -> Self {
        let difference: Vec<Vec<f64>> = left
            .iter()
            .zip(right)
            .map(|(l, r)| {
                let both = l.as_ref().iter().zip(r.as_ref());
                both.map(|(l, r)| l - r).collect()
            })
            .collect();
        let scale = mean(right);
        let difference = blocks(&difference);
        Self {
            name: name.into(),
            deviation: mean(&difference) / scale,
            error: mcse_mean(&difference) / scale.abs(),
            tolerance,
            ess: ess_mean(&difference),
        }
    }

    /// By how many standard errors the sides are apart: the quantile of a normal number that is as rare, if the error had to be estimated
    /// from so few draws (Wallace 1959, for Student's t).
    pub fn sigma(&self) -> f64 {
        let freedom = (self.ess / 4.0).max(1.0);
        let t = self.deviation.abs() / self.error;
        if !t.is_finite() {
            return f64::NAN;
        }
        as_normal(t, freedom)
    }

    /// Whether it fails, as one of `count` tests.
    pub fn fails(&self, count: usize) -> bool {
        self.sigma() > most_sigma(count) && self.deviation.abs() > self.tolerance
    }

    /// The least relative deviation that it would have found.
    pub fn power(&self, count: usize) -> f64 {
        (most_sigma(count) * self.error).max(self.tolerance)
    }
}

/// Blocks of draws per chain, in which what is slow shows beside what is noise.
const BLOCKS: usize = 100;

/// Means of blocks of draws: white noise, as of minibatches, would hide slow changes from the estimate of the autocorrelation.
fn blocks(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let shortest = chains.iter().map(Vec::len).min().unwrap_or(0);
    let length = shortest.div_ceil(BLOCKS).max(1);
    let of = |c: &Vec<f64>| {
        let whole = c[..shortest].chunks_exact(length);
        whole
            .map(|b| b.iter().sum::<f64>() / length as f64)
            .collect()
    };
    chains.iter().map(of).collect()
}

/// Standard errors beyond which one of `count` tests fails: at least 4, and so many that one of all fails by chance in one run of a hundred
/// (Bonferroni).
pub(crate) fn most_sigma(count: usize) -> f64 {
    let each = FALSE_ALARMS / count.max(1) as f64;
    let (mut low, mut high) = (MOST_SIGMA, 10.0);
    if 2.0 * normal_cdf(-low) <= each {
        return low;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match 2.0 * normal_cdf(-middle) > each {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// How many times as many draws bring R̂ and the effective sizes to their limits: errors fall as 1/√n, and R̂ - 1 as 1/n. None where R̂ is so
/// large that the chains are in different places, which no number of draws is known to cure.
pub(crate) fn factor((r_hat, ess): (f64, f64), (most_r_hat, least_ess): (f64, f64)) -> Option<f64> {
    const APART: f64 = 1.1;
    if r_hat > APART {
        return None;
    }
    let of_r_hat = (r_hat - 1.0) / (most_r_hat - 1.0);
    let of_ess = match ess < 1.0 {
        true => least_ess,
        false => least_ess / ess,
    };
    Some(
        [of_r_hat, of_ess]
            .into_iter()
            .filter(|x| !x.is_nan())
            .fold(1.0, f64::max),
    )
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    fn pair(shift: f64, noise: f64, seed: u64) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let chain = |c: u64| normal_draws(10 * seed + c, 300);
        let left = (0..4).map(|c| chain(c).iter().map(|x| 2.0 + shift + noise * x).collect());
        (left.collect(), vec![vec![2.0; 300]; 4])
    }

    #[test]
    fn a_deviation_fails_beyond_its_error_and_its_tolerance() {
        let test = |shift, noise| {
            let (left, right) = pair(shift, noise, 1);
            Test::new("x", &left, &right, 0.01)
        };
        // Its error is 0.1/2/sqrt(1200) = 0.0014.
        let off = test(0.06, 0.1);
        assert!((off.error / 0.00144 - 1.0).abs() < 0.2, "{off:?}");
        assert!(
            (off.deviation - 0.03).abs() < 0.006 && off.fails(1),
            "{off:?}"
        );
        // 5 standard errors and more, but less than matters.
        let small = test(0.016, 0.1);
        assert!(small.sigma() > 4.0 && !small.fails(1), "{small:?}");
        // Much, but within the error.
        let wide = test(0.1, 2.0);
        assert!((0.02..0.04).contains(&wide.error), "{wide:?}");
        assert!(wide.deviation > 0.01 && !wide.fails(1), "{wide:?}");
        assert!(
            wide.power(1) > 0.1 && off.power(1) == 0.01,
            "{}",
            off.power(1)
        );
    }

    #[test]
    fn many_tests_ask_for_more_sigma() {
        assert_eq!(most_sigma(1), 4.0);
        assert_eq!(most_sigma(100), 4.0);
        // 2·(1 - Φ(4.4172)) = 1e-5.
        assert!(
            (most_sigma(1000) - 4.417_17).abs() < 1e-3,
            "{}",
            most_sigma(1000)
        );
    }

    #[test]
    fn few_draws_ask_for_more_sigma() {
        // Student's density of 5 degrees of freedom, integrated numerically: 4 is as rare as 2.5648 of a normal number.
        let of = |ess| Test {
            name: "x".into(),
            deviation: 4.0,
            error: 1.0,
            tolerance: 0.0,
            ess,
        };
        assert!(
            (of(20.0).sigma() - 2.5648).abs() < 0.02,
            "{}",
            of(20.0).sigma()
        );
        assert!((of(1e9).sigma() - 4.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_missing_is_counted() {
        let usual = |r_hat, ess| factor((r_hat, ess), (MOST_R_HAT, LEAST_ESS));
        assert_eq!(usual(1.0, 800.0), Some(1.0));
        assert_eq!(usual(1.0, 100.0), Some(4.0));
        assert!((usual(1.05, 400.0).unwrap() - 5.0).abs() < 1e-9);
        assert_eq!(usual(1.5, 400.0), None);
        assert_eq!(usual(f64::NAN, f64::NAN), Some(1.0));
        assert_eq!(factor((1.0, 400.0), (1.01, 1000.0)), Some(2.5));
    }
}
