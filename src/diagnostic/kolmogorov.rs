//! The one-sample Kolmogorov-Smirnov test: whether independent draws come from a given distribution.
//!
//! With F the distribution function and x_1 <= ... <= x_n the sorted draws, the statistic is the largest distance of
//! the empirical distribution from F: D = max over i of max(i/n - F(x_i), F(x_i) - (i-1)/n), dimensionless, at most 1.
//! Its distribution does not depend on F when F is continuous. **The draws must be independent**: those of a chain are
//! not, and their p-values come out too small; thin them to one per autocorrelation time first.

use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

/// Largest sample with an exact p-value.
const EXACT: usize = 1000;

/// Largest sample whose tail is summed term by term.
const SUMMED: usize = 100_000;

/// What a Kolmogorov-Smirnov test found.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct KolmogorovSmirnov {
    /// D, the largest distance between the two distribution functions, dimensionless, 0 to 1.
    pub statistic: f64,
    /// Probability of a D at least this large when the draws do come from the distribution (two-sided).
    pub p_value: f64,
}

/// Tests `draws` against the distribution function `cdf`; NaN for both numbers without draws or when one is NaN.
pub fn kolmogorov_smirnov(draws: &[f64], cdf: impl Fn(f64) -> f64) -> KolmogorovSmirnov {
    let mut below: Vec<f64> = draws.iter().map(|x| cdf(*x)).collect();
    // A distribution function is monotone: sorting its values sorts the draws.
    below.sort_unstable_by(f64::total_cmp);
    let n = below.len() as f64;
    let statistic = if below.is_empty() || below.iter().any(|f| f.is_nan()) {
        f64::NAN
    } else {
        let distances = below.iter().enumerate().map(|(i, f)| {
            let i = i as f64;
            ((i + 1.0) / n - f).max(f - i / n)
        });
        distances.fold(0.0, f64::max)
    };
    KolmogorovSmirnov {
        statistic,
        p_value: kolmogorov_survival(below.len(), statistic),
    }
}

/// Tests `draws`, in units of their standard deviation, against the standard normal distribution.
pub fn kolmogorov_smirnov_normal(draws: &[f64]) -> KolmogorovSmirnov {
    kolmogorov_smirnov(draws, normal_cdf)
}

/// Probability that a standard normal variable falls below `x`: erfc(-x / sqrt 2) / 2.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// P(D_n >= d) for `n` independent draws from a continuous distribution; NaN for n = 0 and for a NaN.
///
/// - n up to 1000: exact. Durbin's matrix (Marsaglia, Tsang and Wang, "Evaluating Kolmogorov's distribution", Journal
///   of Statistical Software 8 (2003) 18) for n d^2 < 4; above, twice the one-sided probability, which counts the case
///   of both sides twice: too large by a relative exp(-6 n d^2) < 4e-11.
/// - n above: Kolmogorov's limit K at z + 1/(6 sqrt n) + (z - 1)/(4n), z = d sqrt n (Vrbik, "Small-sample corrections
///   to Kolmogorov-Smirnov test statistic", Pioneer Journal of Theoretical and Applied Statistics 15 (2018) 15):
///   relative error below 5e-4 down to p = 1e-10. (With the correction of Stephens (1970), z + 0.12 d + 0.11 d/sqrt n,
///   it would be 6e-3 at n = 1001 and p = 0.5, more in the tail.) Where n d^2 >= 2.2 and n is at most 100 000, twice
///   the one-sided probability (relative error 2e-6).
pub fn kolmogorov_survival(n: usize, d: f64) -> f64 {
    if n == 0 || d.is_nan() {
        return f64::NAN;
    }
    let size = n as f64;
    if size * d <= 0.5 {
        return 1.0;
    }
    if d >= 1.0 {
        return 0.0;
    }
    let squared = size * d * d;
    let p = if squared >= 4.0 && n <= EXACT || squared >= 2.2 && n > EXACT && n <= SUMMED {
        2.0 * one_sided(n, d)
    } else if n <= EXACT {
        1.0 - durbin(n, d)
    } else {
        let z = d * size.sqrt();
        limit(z + 1.0 / (6.0 * size.sqrt()) + (z - 1.0) / (4.0 * size))
    };
    p.clamp(0.0, 1.0)
}

/// P(D_n < d), exactly: n!/n^n times the middle element of the n-th power of Durbin's matrix H.
///
/// n products of H with a vector, rather than powers of H: 8 n^2 multiplications while n d^2 < 4.
fn durbin(n: usize, d: f64) -> f64 {
    let size = n as f64;
    let k = (size * d).ceil() as usize;
    let h = k as f64 - size * d;
    let m = 2 * k - 1;
    // H, scaled such that its powers neither over- nor underflow.
    const SCALE: f64 = 0.375;
    let mut matrix = vec![0.0; m * m];
    let mut inverse_factorial = vec![SCALE; m + 1];
    for j in 1..=m {
        inverse_factorial[j] = inverse_factorial[j - 1] / j as f64;
    }
    for i in 0..m {
        for j in 0..m.min(i + 2) {
            matrix[i * m + j] = inverse_factorial[i + 1 - j];
        }
    }
    // The first column and the last row.
    let mut power = 1.0;
    for i in 0..m {
        power *= h;
        let corner = (1.0 - power) * inverse_factorial[i + 1];
        matrix[i * m] = corner;
        matrix[m * m - 1 - i] = corner;
    }
    let both = (2.0 * h - 1.0).max(0.0).powf(m as f64);
    matrix[(m - 1) * m] = (1.0 - 2.0 * power + both) * inverse_factorial[m];

    let mut vector = vec![0.0; m];
    let mut next = vec![0.0; m];
    vector[k - 1] = 1.0;
    let mut factor = 1.0;
    for step in 1..=n {
        for (i, (out, row)) in next.iter_mut().zip(matrix.chunks_exact(m)).enumerate() {
            let until = m.min(i + 2);
            *out = row[..until].iter().zip(&vector).map(|(a, b)| a * b).sum();
        }
        std::mem::swap(&mut vector, &mut next);
        factor *= step as f64 / (size * SCALE);
    }
    vector[k - 1] * factor
}

/// P(D_n^+ >= d) of the one-sided statistic, exactly (Birnbaum and Tingey 1951): a sum of positive terms.
///
/// d sum over j <= n (1 - d) of C(n, j) (d + j/n)^(j-1) (1 - d - j/n)^(n-j).
fn one_sided(n: usize, d: f64) -> f64 {
    let size = n as f64;
    let last = (size * (1.0 - d)).floor().max(0.0) as usize;
    let terms = (0..=last.min(n)).map(|j| {
        let (up, down) = (j as f64, (n - j) as f64);
        let low = d + up / size;
        let powers = (up - 1.0) * low.ln() + down * (-low.min(1.0)).ln_1p();
        (ln_choose(n, j) + powers).exp()
    });
    d * terms.sum::<f64>()
}

/// Logarithm of the number of ways to choose `k` of `n`, for k <= n.
pub(super) fn ln_choose(n: usize, k: usize) -> f64 {
    let ln_factorial = |x: usize| libm::lgamma(x as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// 1 - K(z), K the limit of the distribution of D_n sqrt n (Kolmogorov 1933), by the series that is short at `z`.
fn limit(z: f64) -> f64 {
    let terms = 1..=20;
    if z < 1.0 {
        let exponent = |k: i32| -f64::from((2 * k - 1).pow(2)) * PI * PI / (8.0 * z * z);
        1.0 - TAU.sqrt() / z * terms.map(|k| exponent(k).exp()).sum::<f64>()
    } else {
        let sign = |k: i32| if k % 2 == 1 { 2.0 } else { -2.0 };
        let term = |k: i32| sign(k) * (-2.0 * f64::from(k * k) * z * z).exp();
        terms.map(term).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::normal_draws;
    use super::*;

    /// n, d, survival.
    fn check(known: &[(usize, f64, f64)], tolerance: f64) {
        for &(n, d, want) in known {
            let got = kolmogorov_survival(n, d);
            let off = (got / want - 1.0).abs();
            assert!(off < tolerance, "{n} {d}: {got} and not {want}, {off:e}");
        }
    }

    #[test]
    fn up_to_a_thousand_draws_the_survival_is_exact() {
        // Durbin's matrix in 60 digits (mpmath). SciPy 1.17.1 agrees to 3e-12 up to n = 140, to 8e-7 above.
        check(
            &[
                (2, 0.6, 0.32),
                (2, 0.9, 0.02),
                (5, 0.15, 0.9988),
                (5, 0.4, 0.3088),
                (5, 0.8, 0.00064),
                (5, 0.23, 0.90080608),
                (10, 0.13, 0.9874829346609387),
                (10, 0.274, 0.3715203845434956),
                (10, 0.55, 0.0022805103214843725),
                (20, 0.2, 0.35272017362341596),
                (50, 0.1, 0.6623112704658185),
                (50, 0.25, 0.003065762019870634),
                (100, 0.08, 0.5182193645480669),
                (100, 0.17, 0.005376406596380499),
                (140, 0.16, 0.0013440163244218624),
                (200, 0.05, 0.6802627254395576),
                (200, 0.13, 0.0020871252350418705),
                (500, 0.03, 0.7473166221808437),
                (500, 0.06, 0.05243459577150842),
                (500, 0.08, 0.003130505809148269),
                (500, 0.0894, 0.0006300963871205595),
                (500, 0.095, 0.0002227392119394615),
                (1000, 0.02, 0.8108971310702121),
                (1000, 0.045, 0.033783028682297524),
                (1000, 0.0632, 0.0006472089374796533),
                (1000, 0.07, 0.00010494206285957543),
            ],
            1e-9,
        );
    }

    #[test]
    fn above_it_is_near() {
        // scipy.stats.kstwo.sf, SciPy 1.17.1.
        check(
            &[
                (1001, 0.0158035, 0.9605630642641761),
                (1001, 0.0252856, 0.5356941881437813),
                (1001, 0.031607, 0.2644112401629658),
                (1001, 0.0442498, 0.03849541361848963),
                (1001, 0.0467783, 0.02423368349660371),
                (10000, 0.005, 0.9628778025204304),
                (10000, 0.008, 0.5414432241521093),
                (10000, 0.01, 0.2682191277029192),
                (10000, 0.014, 0.039309941227450795),
                (10000, 0.0148, 0.02478199615804111),
                (1000000, 0.0005, 0.9638386310076212),
                (1000000, 0.0008, 0.5438713666611479),
                (1000000, 0.001, 0.26982107442589376),
                (1000000, 0.0014, 0.039644828095589335),
                (1000000, 0.0016, 0.011939282537735608),
                (1000000, 0.002, 0.0006700277103670718),
                (1000000, 0.003, 3.039812751939269e-08),
            ],
            5e-4,
        );
        check(
            &[
                (1001, 0.0505712, 0.011534954508250813),
                (1001, 0.063214, 0.0006397743674129349),
                (1001, 0.0948209, 2.7685711568601433e-08),
                (10000, 0.016, 0.011823127020348706),
                (10000, 0.02, 0.0006616848639387309),
                (10000, 0.03, 2.9761211950626197e-08),
            ],
            2e-6,
        );
    }

    #[test]
    fn one_draw_is_elementary() {
        // D = max(F, 1 - F) of a uniform F: P(D >= d) = 2 (1 - d).
        for d in [0.5, 0.6, 0.75, 0.99] {
            assert!((kolmogorov_survival(1, d) - 2.0 * (1.0 - d)).abs() < 1e-15);
        }
        let one = kolmogorov_smirnov(&[0.25], |x| x);
        assert_eq!(one.statistic, 0.75);
        assert!((one.p_value - 0.5).abs() < 1e-15);
    }

    #[test]
    fn p_values_of_independent_draws_are_uniform() {
        let p: Vec<f64> = (0..300)
            .map(|seed| kolmogorov_smirnov_normal(&normal_draws(seed, 50)).p_value)
            .collect();
        assert!(kolmogorov_smirnov(&p, |x| x.clamp(0.0, 1.0)).p_value > 0.01);
        // And wrong draws are found out.
        let wide: Vec<f64> = normal_draws(1, 2000).iter().map(|x| 1.3 * x).collect();
        let right = kolmogorov_smirnov_normal(&normal_draws(1, 2000)).p_value;
        let wrong = kolmogorov_smirnov_normal(&wide).p_value;
        assert!(right > 0.05 && wrong < 1e-3, "{right} {wrong}");
    }

    #[test]
    fn the_edges() {
        for draws in [&[][..], &[f64::NAN], &[0.0, f64::NAN, 1.0]] {
            let none = kolmogorov_smirnov_normal(draws);
            assert!(none.statistic.is_nan() && none.p_value.is_nan());
        }
        let infinite = kolmogorov_smirnov_normal(&[f64::NEG_INFINITY, f64::INFINITY]);
        assert_eq!(infinite.statistic, 0.5);
        let far = kolmogorov_smirnov_normal(&[f64::INFINITY; 3]);
        assert_eq!((far.statistic, far.p_value), (1.0, 0.0));
        assert!(kolmogorov_survival(0, 0.5).is_nan());
        assert_eq!(kolmogorov_survival(10, 0.0), 1.0);
        assert_eq!(kolmogorov_survival(10, 1.5), 0.0);
    }
}
