//! Populations that are brought from one inverse temperature to the next by weights: how far to go, who survives, and what
//! the weights say of ln Z.
//!
//! Sources: Del Moral, Doucet and Jasra, "Sequential Monte Carlo samplers", Journal of the Royal Statistical Society B 68
//! (2006) 411; for the adaptive step, Jasra, Stephens, Doucet and Tsagaris, Scandinavian Journal of Statistics 38 (2011) 1;
//! systematic resampling, Kitagawa, Journal of Computational and Graphical Statistics 5 (1996) 1; families, Wang, Machta and Katzgraber, Physical Review E 92 (2015) 063307.

use super::ladder::Estimate;
use crate::diagnostic::student::widening;

/// Weights exp(-δE), relative to the largest, and the exponent of that; an energy that is not finite weighs nothing.
fn weights(energies: &[f64], delta: f64) -> (Vec<f64>, f64) {
    let finite = energies.iter().copied().filter(|e| e.is_finite());
    let least = finite.fold(f64::INFINITY, f64::min);
    let weight = |e: &f64| match e.is_finite() {
        true => (-delta * (e - least)).exp(),
        false => 0.0,
    };
    (energies.iter().map(weight).collect(), -delta * least)
}

/// The effective sample size of weights exp(-δE), as a share of the members whose energy is finite: (Σv)²/(n Σv²). Those
/// without any likelihood are lost at the first step, however short it is, and say nothing of how long it may be.
pub fn effective_share(energies: &[f64], delta: f64) -> f64 {
    let (v, _) = weights(energies, delta);
    let sum: f64 = v.iter().sum();
    let squares: f64 = v.iter().map(|v| v * v).sum();
    let finite = energies.iter().filter(|e| e.is_finite()).count();
    match squares > 0.0 {
        true => sum * sum / (squares * finite as f64),
        false => 0.0,
    }
}

/// The inverse temperature up to `end` at which the effective sample size, in the mean over populations, has fallen to
/// `share`; `end` if it does not.
pub fn next_beta(populations: &[&[f64]], beta: f64, end: f64, share: f64) -> f64 {
    let mean = |delta: f64| {
        let all = populations.iter().map(|e| effective_share(e, delta));
        all.sum::<f64>() / populations.len() as f64
    };
    let (mut low, mut high) = (0.0, end - beta);
    if mean(high) >= share {
        return end;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match mean(middle) >= share {
            true => low = middle,
            false => high = middle,
        }
    }
    // Where even the smallest number is too far, on to the next one: it must end.
    (beta + high).clamp(beta.next_up(), end)
}

/// ln of the mean of exp(-δE): what a stage adds to ln Z.
pub fn ln_mean_weight(energies: &[f64], delta: f64) -> f64 {
    let (v, most) = weights(energies, delta);
    most + (v.iter().sum::<f64>() / v.len() as f64).ln()
}

/// Systematic resampling: member i survives n·v_i/Σv times, rounded down or up; `u` is uniform in [0, 1). The indices of
/// the survivors, in order. Without any weight all survive.
pub fn systematic(energies: &[f64], delta: f64, u: f64) -> Vec<usize> {
    let (v, _) = weights(energies, delta);
    let total: f64 = v.iter().sum();
    if total <= 0.0 {
        return (0..v.len()).collect();
    }
    let (mut out, mut sum, mut i) = (Vec::with_capacity(v.len()), v[0], 0);
    for k in 0..v.len() {
        let at = (k as f64 + u) * total / v.len() as f64;
        while sum <= at && i + 1 < v.len() {
            i += 1;
            sum += v[i];
        }
        out.push(i);
    }
    out
}

/// Families of a population: the members that descend from one first member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Families {
    /// How many there are left.
    pub count: usize,
    /// ρ_t = R Σ ν², the mean square family size, with ν the share of each family in the R members; 1 if nobody has been copied, R of one family.
    pub mean_square: f64,
    /// ρ_s = R exp(Σ ν ln ν), the entropic family size: R/ρ_s is an effective number of families.
    pub entropic: f64,
}

/// Effective number of families of all populations together from which on population annealing counts as equilibrated: a family entropy of ln 100.
pub const ENOUGH_FAMILIES: f64 = 100.0;

/// The families of members that descend from these first ones.
pub fn families(roots: &[u64]) -> Families {
    let mut sorted = roots.to_vec();
    sorted.sort_unstable();
    let r = roots.len() as f64;
    let shares: Vec<f64> = sorted
        .chunk_by(|a, b| a == b)
        .map(|f| f.len() as f64 / r)
        .collect();
    Families {
        count: shares.len(),
        mean_square: r * shares.iter().map(|v| v * v).sum::<f64>(),
        entropic: r * shares.iter().map(|v| v * v.ln()).sum::<f64>().exp(),
    }
}

/// Standard deviation of ln Z over populations above which their mean is that of the few largest.
pub const DISAGREE: f64 = 1.0;

/// The standard deviation of ln Z over populations.
pub fn scatter(ln_z: &[f64]) -> f64 {
    let n = ln_z.len() as f64;
    let mean = ln_z.iter().sum::<f64>() / n;
    let squares: f64 = ln_z.iter().map(|l| (l - mean).powi(2)).sum();
    (squares / (n - 1.0)).sqrt()
}

/// ln of the mean of Z over populations that have each found ln Z; the error from their scatter, NaN for one alone.
///
/// On a ladder that is given, Z is estimated without bias (Del Moral, Doucet and Jasra 2006), on one that the particles choose up
/// to O(1/n); ln Z is not: its mean would be too small by half its variance. The error is that of the mean to first order, as wide
/// as so few populations make it, which without that can never be above 1: where populations [disagree](DISAGREE) by more, their scatter stands in its place.
pub fn ln_mean(ln_z: &[f64]) -> Estimate {
    let n = ln_z.len() as f64;
    let most = ln_z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let z: Vec<f64> = ln_z.iter().map(|l| (l - most).exp()).collect();
    let mean = z.iter().sum::<f64>() / n;
    let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let scatter = scatter(ln_z);
    Estimate {
        value: most + mean.ln(),
        standard_error: match scatter > DISAGREE {
            true => scatter,
            false => widening(n - 1.0) * (variance / n).sqrt() / mean,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_temperature_leaves_the_asked_share() {
        let energies: Vec<f64> = (0..500).map(|i| f64::from(i * i) * 0.01).collect();
        let more: Vec<f64> = energies.iter().map(|e| 1e6 + 3.0 * e).collect();
        let populations = [&energies[..], &more];
        let beta = next_beta(&populations, 0.25, 1.0, 0.5);
        let mean = 0.5
            * populations
                .iter()
                .map(|e| effective_share(e, beta - 0.25))
                .sum::<f64>();
        assert!((mean - 0.5).abs() < 1e-9, "{beta} {mean}");
        assert_eq!(next_beta(&populations, 0.25, 0.25 + 1e-9, 0.5), 0.25 + 1e-9);
        // Equal energies never lose anything.
        assert_eq!(next_beta(&[&[7.0; 9]], 0.0, 3.0, 0.9), 3.0);
        // What is infinitely far above all others is no reason to go slowly.
        assert_eq!(effective_share(&[1.0, f64::INFINITY], 0.5), 1.0);
        assert_eq!(effective_share(&[f64::INFINITY; 2], 0.5), 0.0);
    }

    #[test]
    fn survivors_are_the_weights_rounded() {
        let energies = [0.0, 2f64.ln(), f64::NAN, 4f64.ln(), 0.0, 60.0];
        let v = [1.0, 0.5, 0.0, 0.25, 1.0, 0.0];
        let mut mean = [0.0; 6];
        let tries = 2000;
        for k in 0..tries {
            let kept = systematic(&energies, 1.0, (f64::from(k) + 0.5) / f64::from(tries));
            assert_eq!(kept.len(), 6);
            for i in 0..6 {
                let copies = kept.iter().filter(|j| **j == i).count() as f64;
                let expected = 6.0 * v[i] / 2.75;
                assert!((copies - expected).abs() < 1.0, "{i}: {copies} {expected}");
                mean[i] += copies / f64::from(tries);
            }
        }
        for i in 0..6 {
            assert!((mean[i] - 6.0 * v[i] / 2.75).abs() < 1e-2, "{mean:?}");
        }
        assert_eq!(systematic(&[f64::NAN; 3], 1.0, 0.4), [0, 1, 2]);
    }

    #[test]
    fn families_are_counted_by_their_members() {
        // Shares of ½, ¼, ¼.
        let found = families(&[7, 3, 7, 9]);
        assert_eq!(found.count, 3);
        assert!((found.mean_square - 1.5).abs() < 1e-12);
        assert!((found.entropic - 2f64.sqrt()).abs() < 1e-12);
        let all = families(&[1, 2, 3, 4, 5]);
        assert!((all.mean_square - 1.0).abs() < 1e-12 && (all.entropic - 1.0).abs() < 1e-12);
        let one = families(&[2; 5]);
        assert!((one.mean_square - 5.0).abs() < 1e-12 && (one.entropic - 5.0).abs() < 1e-12);
    }

    #[test]
    fn means_of_weights_are_logarithms_of_means() {
        let energies = [1000.0, 1000.0 + 2f64.ln(), f64::INFINITY];
        let exact = -1000.0 + 0.5f64.ln();
        assert!((ln_mean_weight(&energies, 1.0) - exact).abs() < 1e-9);
        let found = ln_mean(&[-1000.0, -1000.0 + 3f64.ln()]);
        assert!((found.value - (-1000.0 + 2f64.ln())).abs() < 1e-12);
        // Z of 1 and 3: mean 2, standard deviation sqrt 2, of the mean 1; two numbers have one degree of freedom.
        assert!((found.standard_error - 0.5 * widening(1.0)).abs() < 1e-12);
        // Where one population is all there is to the mean, the error is as large as they are apart.
        let apart = ln_mean(&[-10.0, -50.0]);
        assert!((apart.standard_error - 20.0 * 2f64.sqrt()).abs() < 1e-9);
        assert!(ln_mean(&[2.0]).standard_error.is_nan());
    }
}
