//! Replica exchange on a ladder whose every number is known: independent exact draws from harmonic energies.
//!
//! Prior w ~ N(0, 1/c) in d = 2k dimensions and E = ½|w|²: on the rung of β, E has the law Gamma(k, rate β + c). A fresh
//! draw on every rung in every sweep is perfect mixing within the rungs, so that the index process is the Markov chain of
//! Syed et al. 2022 with acceptance 1 - r_j, exactly.

mod barrier;
mod geweke;
mod index;
mod pairs;
mod tune;

use super::*;

/// A uniform number in (0, 1), a hash of (seed, sweep, element): splitmix64's finaliser after each.
pub fn uniform(seed: u64, sweep: u64, element: u32) -> f64 {
    let mix = |x: u64| {
        let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let golden = 0x9e37_79b9_7f4a_7c15u64;
    let mut x = mix(seed.wrapping_add(1).wrapping_mul(golden));
    x = mix(x ^ sweep.wrapping_add(1).wrapping_mul(golden));
    x = mix(x ^ u64::from(element).wrapping_add(1).wrapping_mul(golden));
    ((x >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A harmonic energy of 2k degrees of freedom under a Gaussian prior of precision c.
#[derive(Debug, Clone, Copy)]
pub struct Harmonic {
    pub k: u32,
    pub c: f64,
}

impl Harmonic {
    pub fn rate(&self, beta: f64) -> f64 {
        beta + self.c
    }

    /// A draw of E on the rung of β: the sum of k exponential variables.
    pub fn draw(&self, beta: f64, seed: u64, sweep: u64, rung: usize) -> f64 {
        let first = 1000 + rung as u32 * self.k;
        let product: f64 = (0..self.k)
            .map(|i| uniform(seed, sweep, first + i))
            .product();
        -product.ln() / self.rate(beta)
    }

    /// The exact rejection of a swap between β > β': 1 - 2 P(E > E'), since exp(Δβ ΔE) is the ratio of the probabilities of
    /// (E', E) and (E, E'). P(E > E') = I_x(k, k) at x = rate'/(rate + rate'), here as a binomial sum.
    pub fn rejection(&self, cold: f64, hot: f64) -> f64 {
        let [a, b] = [self.rate(cold), self.rate(hot)];
        let (x, n) = (b / (a + b), 2 * self.k as i32 - 1);
        let mut binomial = 1.0;
        let mut below = 0.0;
        for j in 0..=n {
            if j >= self.k as i32 {
                below += binomial * x.powi(j) * (1.0 - x).powi(n - j);
            }
            binomial *= f64::from(n - j) / f64::from(j + 1);
        }
        1.0 - 2.0 * below
    }

    /// The same from its definition, 1 - ∫∫ p(E) p'(E') min(1, exp[(β - β')(E - E')]): midpoints in ln E.
    pub fn rejection_by_quadrature(&self, cold: f64, hot: f64) -> f64 {
        let k = f64::from(self.k);
        let ln_gamma: f64 = (1..self.k).map(|j| f64::from(j).ln()).sum();
        let step = 0.01;
        let points: Vec<(f64, f64)> = (0..1400)
            .map(|i| -10.0 + step * (f64::from(i) + 0.5))
            .map(|t| (t.exp(), (k * t - t.exp() - ln_gamma).exp() * step))
            .collect();
        let mut accepted = 0.0;
        for (x, p) in &points {
            for (y, q) in &points {
                let (e, f) = (x / self.rate(cold), y / self.rate(hot));
                accepted += p * q * ((cold - hot) * (e - f)).exp().min(1.0);
            }
        }
        1.0 - accepted
    }

    pub fn rejections(&self, betas: &[f64]) -> Vec<f64> {
        betas
            .windows(2)
            .map(|b| self.rejection(b[0], b[1]))
            .collect()
    }

    /// g = λ(β)·(β + c): half the mean difference of two Gamma(k, 1) variables, Γ(k + ½)/(√π Γ(k)).
    pub fn g(&self) -> f64 {
        (1..self.k).fold(0.5, |g, k| g * (f64::from(k) + 0.5) / f64::from(k))
    }

    /// Λ between two inverse temperatures: g ln(rate/rate').
    pub fn barrier(&self, cold: f64, hot: f64) -> f64 {
        self.g() * (self.rate(cold) / self.rate(hot)).ln()
    }

    /// The ladder of equal rejections: rates in geometric progression.
    pub fn equal_ladder(&self, cold: f64, hot: f64, rungs: usize) -> Vec<f64> {
        let ratio = self.rate(hot) / self.rate(cold);
        let mut betas: Vec<f64> = (0..rungs)
            .map(|k| self.rate(cold) * ratio.powf(k as f64 / (rungs - 1) as f64) - self.c)
            .collect();
        (betas[0], betas[rungs - 1]) = (cold, hot);
        betas
    }

    /// Sweeps `from` to `to` with fresh draws on every rung.
    pub fn run(
        &self,
        (pairs, betas): (Pairs, &[f64]),
        seed: u64,
        sweeps: std::ops::Range<u64>,
        (assignment, index): (&mut Assignment, &mut IndexProcess),
    ) {
        let mut energies = vec![0.0; betas.len()];
        for sweep in sweeps {
            for (rung, replica) in assignment.replica_at().iter().enumerate() {
                energies[*replica] = self.draw(betas[rung], seed, sweep, rung);
            }
            let u = |element| uniform(seed, sweep, element);
            let attempts = swap(pairs, sweep, betas, &energies, assignment, u).unwrap();
            index.add(&attempts, assignment).unwrap();
        }
    }

    /// A new run of so many sweeps.
    pub fn new_run(&self, ladder: (Pairs, &[f64]), seed: u64, sweeps: u64) -> IndexProcess {
        let mut assignment = Assignment::new(ladder.1.len());
        let mut index = IndexProcess::new(&assignment).unwrap();
        self.run(ladder, seed, 0..sweeps, (&mut assignment, &mut index));
        index
    }
}

/// Mean and standard error of independent numbers.
pub fn mean_and_error(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn the_reference_agrees_with_the_definition_of_a_rejection() {
    for (k, c, cold, hot) in [(1, 1.0, 1.0, 0.0), (3, 0.1, 2.0, 0.5), (8, 1e-3, 0.02, 0.0)] {
        let model = Harmonic { k, c };
        let (sum, quadrature) = (
            model.rejection(cold, hot),
            model.rejection_by_quadrature(cold, hot),
        );
        // Midpoints of 0.01: the kink of min(1, ·) leaves an error of order 0.01².
        assert!((sum - quadrature).abs() < 1e-4, "{sum} {quadrature}");
    }
    // λ is the limit of r/δβ.
    let model = Harmonic { k: 5, c: 0.3 };
    let slope = model.rejection(1.0 + 1e-5, 1.0) / 1e-5;
    assert!((slope * 1.3 / model.g() - 1.0).abs() < 1e-4);
}
