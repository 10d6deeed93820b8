//! Laws of single numbers: normalised densities with their slopes, and draws.

use crate::error::Result;
use crate::model::likelihood::ln_student;
use crate::model::support::Support;
use rand::RngCore;
use rand_distr::{Beta, Cauchy, Distribution, Exp1, Gamma, Normal, StandardNormal, StudentT};
use std::f64::consts::{LN_2, PI};

/// A density of a number x, with a location a and a scale b.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// N(a, b²).
    Normal,
    /// exp(-|x - a|/b)/2b.
    Laplace,
    /// Student's t with ν degrees of freedom, about a, of scale b; ν = 1 is the Cauchy law.
    StudentT(f64),
    /// N(a, b²λ²) with λ half-Cauchy, λ integrated out (Carvalho, Polson & Scott 2010).
    Horseshoe,
    /// ln x is N(a, b²).
    LogNormal,
    /// x^(k-1) exp(-b x): k is the shape, b the rate.
    Gamma(f64),
    /// x^(-k-1) exp(-b/x): k is the shape, b the scale.
    InverseGamma(f64),
    /// (x - f)^(p-1) (t - x)^(q-1) between f and t.
    Beta {
        /// Its two shapes.
        shapes: (f64, f64),
        /// Where x lies.
        within: (f64, f64),
    },
    /// A sum of normal laws: weights (which sum to 1), means, standard deviations.
    Mixture(Vec<[f64; 3]>),
}

/// -ln of a density, and its derivatives with respect to x, a and b.
type Slopes = (f64, [f64; 3]);

impl Law {
    /// Where its numbers lie.
    pub fn support(&self) -> Support {
        match self {
            Self::LogNormal | Self::Gamma(_) | Self::InverseGamma(_) => Support::Positive,
            Self::Beta {
                within: (from, to), ..
            } => Support::Interval(*from, *to),
            _ => Support::Real,
        }
    }

    /// Whether it is the same to both sides of a: then half of it is a law of positive numbers.
    pub fn is_symmetric(&self) -> bool {
        matches!(
            self,
            Self::Normal | Self::Laplace | Self::StudentT(_) | Self::Horseshoe
        )
    }

    /// Σ -ln of the density over some numbers that have a and b in common, and its derivatives with respect to a and b; those with respect to
    /// the numbers are added to `slopes`.
    pub fn sum(&self, x: &[f64], a: f64, b: f64, slopes: &mut [f64]) -> (f64, f64, f64) {
        match self {
            Self::Normal => standard_sum(x, a, b, slopes, |z| (0.5 * z * z + LN_ROOT_TAU, z)),
            Self::Laplace => standard_sum(x, a, b, slopes, laplace),
            Self::StudentT(nu) => {
                let (nu, constant) = (*nu, ln_student(*nu));
                standard_sum(x, a, b, slopes, |z| student(nu, constant, z))
            }
            other => {
                let mut sums = (0.0, 0.0, 0.0);
                for (x, slope) in x.iter().zip(slopes) {
                    let (e, [dx, da, db]) = other.at(*x, a, b);
                    sums = (sums.0 + e, sums.1 + da, sums.2 + db);
                    *slope += dx;
                }
                sums
            }
        }
    }

    /// -ln of the density at x, and its derivatives with respect to x, a and b.
    pub fn at(&self, x: f64, a: f64, b: f64) -> Slopes {
        let standard = |(e, slope): (f64, f64), z: f64| {
            (e + b.ln(), [slope / b, -slope / b, (1.0 - slope * z) / b])
        };
        let z = (x - a) / b;
        match self {
            Self::Normal => standard((0.5 * z * z + LN_ROOT_TAU, z), z),
            Self::Laplace => standard(laplace(z), z),
            Self::StudentT(nu) => standard(student(*nu, ln_student(*nu), z), z),
            Self::Horseshoe => standard(horseshoe(z), z),
            Self::LogNormal => {
                let z = (x.ln() - a) / b;
                let e = 0.5 * z * z + LN_ROOT_TAU + b.ln() + x.ln();
                (e, [(z / b + 1.0) / x, -z / b, (1.0 - z * z) / b])
            }
            Self::Gamma(k) => {
                let e = b * x - (k - 1.0) * x.ln() - k * b.ln() + libm::lgamma(*k);
                (e, [b - (k - 1.0) / x, 0.0, x - k / b])
            }
            Self::InverseGamma(k) => {
                let e = b / x + (k + 1.0) * x.ln() - k * b.ln() + libm::lgamma(*k);
                (e, [(k + 1.0) / x - b / (x * x), 0.0, 1.0 / x - k / b])
            }
            Self::Beta {
                shapes: (p, q),
                within: (from, to),
            } => {
                let (left, right, width) = (x - from, to - x, to - from);
                // A flat end has no logarithm, not 0 times an infinite one.
                let end = |shape: f64, d: f64| match shape == 1.0 {
                    true => (0.0, 0.0),
                    false => ((shape - 1.0) * d.ln(), (shape - 1.0) / d),
                };
                let ((l, dl), (r, dr)) = (end(*p, left), end(*q, right));
                let ln_beta = libm::lgamma(*p) + libm::lgamma(*q) - libm::lgamma(p + q);
                let e = (p + q - 1.0) * width.ln() + ln_beta - l - r;
                (e, [dr - dl, 0.0, 0.0])
            }
            Self::Mixture(parts) => mixture(parts, x),
        }
    }

    /// Its variance about a = 0, of scale b: infinite where it has none.
    pub fn mean_square(&self, a: f64, b: f64) -> f64 {
        a * a
            + match self {
                Self::Normal => b * b,
                Self::Laplace => 2.0 * b * b,
                Self::StudentT(nu) if *nu > 2.0 => b * b * nu / (nu - 2.0),
                Self::StudentT(_) | Self::Horseshoe => f64::INFINITY,
                Self::Mixture(parts) => parts
                    .iter()
                    .map(|[p, m, s]| p * (m * m + s * s))
                    .sum::<f64>(),
                // Of the coordinate, not the value, and only for an estimate of how far chains may go.
                Self::LogNormal | Self::Gamma(_) | Self::InverseGamma(_) | Self::Beta { .. } => {
                    return f64::INFINITY;
                }
            }
    }

    /// A draw.
    ///
    /// # Errors
    /// If a scale is not positive.
    pub fn draw(&self, a: f64, b: f64, rng: &mut impl RngCore) -> Result<f64> {
        Ok(match self {
            Self::Normal => Normal::new(a, b)?.sample(rng),
            Self::Laplace => {
                let size: f64 = Exp1.sample(rng);
                a + b * if rng.next_u32() & 1 == 0 { size } else { -size }
            }
            Self::StudentT(nu) => a + b * StudentT::new(*nu)?.sample(rng),
            Self::Horseshoe => {
                let local: f64 = Cauchy::new(0.0, 1.0)?.sample(rng);
                let normal: f64 = StandardNormal.sample(rng);
                a + b * local * normal
            }
            Self::LogNormal => Normal::new(a, b)?.sample(rng).exp(),
            Self::Gamma(k) => Gamma::new(*k, b.recip())?.sample(rng),
            Self::InverseGamma(k) => Gamma::new(*k, b.recip())?.sample(rng).recip(),
            Self::Beta {
                shapes: (p, q),
                within: (from, to),
            } => from + (to - from) * Beta::new(*p, *q)?.sample(rng),
            Self::Mixture(parts) => {
                let mut u = rng.next_u32() as f64 / 2f64.powi(32);
                let mut chosen = parts.iter();
                let [_, m, s] = loop {
                    let part = chosen.next().unwrap_or(&parts[parts.len() - 1]);
                    u -= part[0];
                    if u < 0.0 || chosen.len() == 0 {
                        break part;
                    }
                };
                Normal::new(*m, *s)?.sample(rng)
            }
        })
    }

    /// Its name and numbers, as a script has them; `a` and `b` as texts.
    pub fn describe(&self, half: bool, a: &str, b: &str) -> String {
        let half = if half { "half_" } else { "" };
        let about = if half.is_empty() {
            format!("{a}, ")
        } else {
            String::new()
        };
        match self {
            Self::Normal => format!("{half}normal({about}{b})"),
            Self::Laplace => format!("{half}laplace({about}{b})"),
            Self::StudentT(nu) if *nu == 1.0 => format!("{half}cauchy({about}{b})"),
            Self::StudentT(nu) => format!("{half}student_t({nu}, {about}{b})"),
            Self::Horseshoe => format!("horseshoe({b})"),
            Self::LogNormal => format!("lognormal({a}, {b})"),
            Self::Gamma(k) => format!("gamma({k}, {b})"),
            Self::InverseGamma(k) => format!("inverse_gamma({k}, {b})"),
            Self::Beta {
                shapes: (p, q),
                within: (from, to),
            } => match (*p, *q) {
                (1.0, 1.0) => format!("uniform({from}, {to})"),
                _ => format!("beta({p}, {q})"),
            },
            Self::Mixture(parts) => {
                let part = |[p, m, s]: &[f64; 3]| format!("{p}·normal({m}, {s})");
                parts.iter().map(part).collect::<Vec<_>>().join(" + ")
            }
        }
    }
}

/// See [`Law::sum`]: of a law in its standard form, e(z) and its slope.
#[inline]
fn standard_sum(
    x: &[f64],
    a: f64,
    b: f64,
    slopes: &mut [f64],
    form: impl Fn(f64) -> (f64, f64),
) -> (f64, f64, f64) {
    let inverse = b.recip();
    let (mut energy, mut of_slopes, mut of_products) = (0.0, 0.0, 0.0);
    for (x, slope) in x.iter().zip(slopes) {
        let z = (x - a) * inverse;
        let (e, d) = form(z);
        energy += e;
        of_slopes += d;
        of_products += d * z;
        *slope += d * inverse;
    }
    let count = x.len() as f64;
    (
        energy + count * b.ln(),
        -of_slopes * inverse,
        (count - of_products) * inverse,
    )
}

fn laplace(z: f64) -> (f64, f64) {
    (z.abs() + LN_2, if z == 0.0 { 0.0 } else { z.signum() })
}

fn student(nu: f64, constant: f64, z: f64) -> (f64, f64) {
    let e = 0.5 * (nu + 1.0) * (z * z / nu).ln_1p() + constant;
    (e, (nu + 1.0) * z / (nu + z * z))
}

/// ½ ln 2π.
const LN_ROOT_TAU: f64 = 0.918_938_533_204_672_8;

/// -ln of the horseshoe's density at z, (2π³)^(-½) exp(t) E₁(t) with t = z²/2, and its slope. It is infinite at 0, but integrable.
fn horseshoe(z: f64) -> (f64, f64) {
    let t = 0.5 * z * z;
    let g = scaled_exponential_integral(t);
    // d/dt ln(exp(t) E₁(t)) = 1 - 1/(t·exp(t) E₁(t))
    let slope = if z == 0.0 {
        0.0
    } else {
        z * (1.0 / (t * g) - 1.0)
    };
    (0.5 * (2.0 * PI.powi(3)).ln() - g.ln(), slope)
}

/// exp(t) E₁(t) for t ≥ 0: the series below 1, Lentz's continued fraction above (Abramowitz & Stegun 5.1.11, 5.1.22).
fn scaled_exponential_integral(t: f64) -> f64 {
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    if t < 1.0 {
        let (mut sum, mut term) = (-GAMMA - t.ln(), -1.0);
        for k in 1..40 {
            let k = f64::from(k);
            term *= -t / k;
            sum += term / k;
        }
        return sum * t.exp();
    }
    let (mut b, mut c) = (t + 1.0, f64::MAX);
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..200 {
        let i = f64::from(i);
        b += 2.0;
        d = 1.0 / (b - i * i * d);
        c = b - i * i / c;
        let factor = c * d;
        h *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h
}

fn mixture(parts: &[[f64; 3]], x: f64) -> Slopes {
    let (mut most, mut sum, mut slope) = (f64::NEG_INFINITY, 0.0, 0.0);
    for [p, m, s] in parts {
        let z = (x - m) / s;
        let ln = p.ln() - 0.5 * z * z - s.ln() - LN_ROOT_TAU;
        if ln > most {
            let shrink = (most - ln).exp();
            (sum, slope, most) = (sum * shrink, slope * shrink, ln);
        }
        let share = (ln - most).exp();
        sum += share;
        slope += share * z / s;
    }
    (-most - sum.ln(), [slope / sum, 0.0, 0.0])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream};

    pub fn laws() -> Vec<(Law, f64, f64)> {
        vec![
            (Law::Normal, 0.5, 1.5),
            (Law::Laplace, -0.5, 0.75),
            (Law::StudentT(1.0), 0.25, 0.5),
            (Law::StudentT(5.0), 0.25, 0.5),
            (Law::Horseshoe, 0.0, 0.8),
            (Law::LogNormal, 0.3, 0.6),
            (Law::Gamma(2.5), 0.0, 1.5),
            (Law::InverseGamma(3.0), 0.0, 2.0),
            (
                Law::Beta {
                    shapes: (2.0, 3.5),
                    within: (0.0, 1.0),
                },
                0.0,
                1.0,
            ),
            (
                Law::Beta {
                    shapes: (1.0, 1.0),
                    within: (-1.0, 3.0),
                },
                0.0,
                1.0,
            ),
            (
                Law::Mixture(vec![[0.3, -1.0, 0.5], [0.7, 2.0, 1.5]]),
                0.0,
                1.0,
            ),
        ]
    }

    #[test]
    fn slopes_are_those_of_differences() {
        let h = 1e-5;
        for (law, a, b) in laws() {
            for x in [0.11, 0.37, 0.93] {
                let (_, slopes) = law.at(x, a, b);
                let by = |dx: f64, da: f64, db: f64| {
                    (law.at(x + dx, a + da, b + db).0 - law.at(x - dx, a - da, b - db).0)
                        / (2.0 * h)
                };
                let found = [by(h, 0.0, 0.0), by(0.0, h, 0.0), by(0.0, 0.0, h)];
                for (k, (exact, found)) in slopes.iter().zip(found).enumerate() {
                    let unused =
                        k == 1 && law.support() == Support::Positive && law != Law::LogNormal;
                    assert!(
                        unused || (exact - found).abs() < 1e-6 * (1.0 + exact.abs()),
                        "{law:?} at {x}, {k}: {exact} {found}"
                    );
                }
            }
        }
    }

    /// Null: the share of draws below x is the integral of the density up to x; four standard errors, of at most 0.0026.
    #[test]
    fn draws_are_those_of_the_density_which_is_normalised() {
        let draws = 40_000;
        for (number, (law, a, b)) in laws().into_iter().enumerate() {
            let mut rng = Stream::new(7, Purpose::Prior, number, 0).rng();
            let mut all: Vec<f64> = (0..draws)
                .map(|_| law.draw(a, b, &mut rng).unwrap())
                .collect();
            all.sort_by(f64::total_cmp);
            // x = sinh(s)-like steps cover heavy tails; the midpoint rule is exact enough for these densities.
            let (mut integral, steps, reach) = (0.0, 400_000, 40.0);
            let mut cumulated = Vec::new();
            for i in 0..steps {
                let s = (i as f64 + 0.5) / steps as f64 * 2.0 * reach - reach;
                let x = s.sinh() * 1e-3;
                let inside = match law.support() {
                    Support::Positive => x > 0.0,
                    Support::Interval(from, to) => x > from && x < to,
                    _ => true,
                };
                if inside {
                    let e = law.at(x, a, b).0;
                    integral += (-e).exp() * s.cosh() * 1e-3 * 2.0 * reach / steps as f64;
                }
                cumulated.push((x, integral));
            }
            assert!((integral - 1.0).abs() < 1e-3, "{law:?}: {integral}");
            for quantile in [0.05, 0.3, 0.5, 0.8, 0.97] {
                let x = all[(quantile * draws as f64) as usize];
                let at = cumulated.partition_point(|(y, _)| *y < x);
                let exact = cumulated[at].1;
                let error = (quantile * (1.0 - quantile) / draws as f64).sqrt();
                assert!(
                    error < 0.0026 && (exact - quantile).abs() < 4.0 * error + 1e-3,
                    "{law:?}: {quantile} {exact}"
                );
            }
        }
    }

    #[test]
    fn the_exponential_integral_is_that_of_tables() {
        // Abramowitz & Stegun, tables 5.1 and 5.2: E1(0.5), E1(1), x e^x E1(x) at 10.
        let found = [
            scaled_exponential_integral(0.5) * (-0.5f64).exp(),
            scaled_exponential_integral(1.0) * (-1.0f64).exp(),
            10.0 * scaled_exponential_integral(10.0),
        ];
        let tables = [0.559_773_595, 0.219_383_934, 0.915_633_339];
        for (a, b) in found.iter().zip(tables) {
            assert!((a - b).abs() < 1e-8, "{found:?}");
        }
    }
}
