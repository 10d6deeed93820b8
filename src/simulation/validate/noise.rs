//! What a validation finds out about the noise of a minibatch gradient.

use crate::diagnostic::{
    correlation_matrix, eigenvalues, kolmogorov_smirnov_normal, marchenko_pastur_edges,
};
use crate::error::Result;
use crate::rng::Stream;
use crate::store::archive::Archive;
use serde_json::{Value, json};

/// A histogram over [-limit, limit].
struct Histogram {
    limit: f64,
    counts: Vec<f64>,
}

impl Histogram {
    fn new(limit: f64, bins: usize) -> Self {
        Self {
            limit,
            counts: vec![0.0; bins],
        }
    }

    fn add(&mut self, x: f64) {
        let bins = self.counts.len();
        let at = (x + self.limit) / (2.0 * self.limit) * bins as f64;
        if at >= 0.0 && (at as usize) < bins {
            self.counts[at as usize] += 1.0;
        }
    }

    fn width(&self) -> f64 {
        2.0 * self.limit / self.counts.len() as f64
    }

    fn centres(&self) -> Vec<f64> {
        let centre = |i| -self.limit + self.width() * (i as f64 + 0.5);
        (0..self.counts.len()).map(centre).collect()
    }

    fn density(&self, total: f64) -> Vec<f64> {
        let per = 1.0 / (total * self.width());
        self.counts.iter().map(|c| c * per).collect()
    }
}

/// What one stop has shown.
struct Stop {
    step: u64,
    /// Parameters tested, the part of them that passed, and parameters whose correlations were computed.
    tested: f64,
    passed: f64,
    correlated: usize,
    noise: Vec<f64>,
    /// Largest eigenvalues and root mean squares of the correlations: minibatch noise, white noise, both together.
    largest: [f64; 3],
    spread: [f64; 3],
    ratios: Vec<f64>,
}

/// 𝒯_i of every parameter, from their mean.
pub fn ratios(variance: &[f32], mass: &[f32], mean: f64) -> Vec<f64> {
    let each: Vec<f64> = variance
        .iter()
        .zip(mass)
        .map(|(v, m)| f64::from(*v) / f64::from(*m))
        .collect();
    let scale = mean * each.len() as f64 / each.iter().sum::<f64>();
    each.into_iter().map(|r| r * scale).collect()
}

/// The noise at one stop.
pub struct Look<'a> {
    /// Step of the chain.
    pub step: u64,
    /// Scaled noise of the tested parameters, `[components, draws]`.
    pub rows: &'a [f32],
    /// Scaled noise of the correlated parameters, `[draws, correlated]`.
    pub side: &'a [f64],
    /// Minibatch gradients.
    pub draws: usize,
    /// 𝒯 of the correlated parameters, and of all.
    pub ratios: Vec<f64>,
    /// See `ratios`.
    pub all: Vec<f64>,
    /// Where the white noise comes from.
    pub white: Stream,
}

/// What all stops have shown.
pub struct Findings {
    stops: Vec<Stop>,
    pooled: Histogram,
    /// Correlations of minibatch noise, white noise, both together.
    correlations: Vec<Histogram>,
    /// Autocorrelation of the noise along the steps.
    pub autocorrelation: Memory,
}

impl Findings {
    /// Show everything to an archive.
    ///
    /// # Errors
    /// If the archive has the numbers of something else.
    pub fn keep(&mut self, archive: &mut Archive) -> Result<()> {
        archive.copied("noise", &mut self.pooled.counts)?;
        for (k, c) in self.correlations.iter_mut().enumerate() {
            archive.copied(&format!("correlations.{k}"), &mut c.counts)?;
        }
        archive.copied("autocorrelation.sums", &mut self.autocorrelation.sums)?;
        archive.copied("autocorrelation.counts", &mut self.autocorrelation.counts)?;
        archive.table(
            "stops",
            &mut self.stops,
            |s| {
                let ([a, b, c], [d, e, f]) = (s.largest, s.spread);
                let numbers = [s.step as f64, s.tested, s.passed, s.correlated as f64];
                let [step, tested, passed, correlated] = numbers;
                [step, tested, passed, correlated, a, b, c, d, e, f]
            },
            |[step, tested, passed, correlated, a, b, c, d, e, f]| Stop {
                step: *step as u64,
                tested: *tested,
                passed: *passed,
                correlated: *correlated as usize,
                noise: Vec::new(),
                largest: [*a, *b, *c],
                spread: [*d, *e, *f],
                ratios: Vec::new(),
            },
        )?;
        for (i, stop) in self.stops.iter_mut().enumerate() {
            archive.copied(&format!("noise.{i}"), &mut stop.noise)?;
            archive.copied(&format!("ratios.{i}"), &mut stop.ratios)?;
        }
        Ok(())
    }

    /// Nothing yet.
    pub fn new(lags: usize) -> Self {
        Self {
            stops: Vec::new(),
            pooled: Histogram::new(5.0, 100),
            correlations: (0..3).map(|_| Histogram::new(0.4, 80)).collect(),
            autocorrelation: Memory::new(lags),
        }
    }

    /// Stops so far.
    pub fn stops(&self) -> usize {
        self.stops.len()
    }

    /// Add a stop.
    pub fn look(&mut self, l: Look) {
        let mut own = Histogram::new(self.pooled.limit, self.pooled.counts.len());
        let mut passed = 0.0;
        let components = l.rows.len() / l.draws;
        for row in l.rows.chunks_exact(l.draws) {
            let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
            passed += f64::from(u8::from(kolmogorov_smirnov_normal(&row).p_value > 0.05));
            row.iter().for_each(|x| {
                own.add(*x);
                self.pooled.add(*x);
            });
        }
        let p = l.ratios.len();
        let white: Vec<f64> = (0..l.side.len())
            .map(|i| l.white.normal(i as u32))
            .collect();
        // Minibatch noise is the part 𝒯 of the heat bath (eqs. 18 and 24).
        let both = |i: usize| {
            let share = l.ratios[i % p].min(1.0);
            share.sqrt() * l.side[i] + (1.0 - share).sqrt() * white[i]
        };
        let total: Vec<f64> = (0..l.side.len()).map(both).collect();
        let (mut largest, mut spread) = ([0.0; 3], [0.0; 3]);
        for (k, samples) in [l.side, &white, &total].into_iter().enumerate() {
            let c = correlation_matrix(samples, p);
            for i in 0..p {
                for j in 0..i {
                    self.correlations[k].add(c[i * p + j]);
                    spread[k] += c[i * p + j].powi(2);
                }
            }
            spread[k] = (spread[k] / (p * (p - 1) / 2) as f64).sqrt();
            largest[k] = eigenvalues(&c, p).last().copied().unwrap_or(f64::NAN);
        }
        self.stops.push(Stop {
            step: l.step,
            tested: components as f64,
            passed: passed / components as f64,
            correlated: p,
            noise: own.density((components * l.draws) as f64),
            largest,
            spread,
            ratios: l.all,
        });
    }

    /// As a map, for a script.
    pub fn report(&self, draws: usize) -> Value {
        let found = &self.stops;
        let tests: f64 = found.iter().map(|s| s.tested).sum();
        let passed = found.iter().map(|s| s.passed * s.tested).sum::<f64>() / tests;
        let pairs = |s: &Stop| (s.correlated * (s.correlated - 1) / 2) as f64;
        let pairs: f64 = found.iter().map(pairs).sum();
        let edges = marchenko_pastur_edges(draws, found.last().map_or(1, |s| s.correlated));
        let mut ratios: Vec<f64> = found.iter().flat_map(|s| s.ratios.clone()).collect();
        ratios.sort_by(f64::total_cmp);
        let quantile = |q: f64| ratios[((ratios.len() - 1) as f64 * q) as usize];
        let three = |f: &dyn Fn(&Stop) -> [f64; 3]| {
            let mean = |k: usize| found.iter().map(|s| f(s)[k]).sum::<f64>() / found.len() as f64;
            json!({ "minibatch": mean(0), "white": mean(1), "total": mean(2) })
        };
        let shape = |k: usize| json!(self.correlations[k].density(pairs));
        let autocorrelation = self.autocorrelation.mean();
        json!({
            "ks_fraction": passed,
            "ks_tests": tests,
            "ks_by_stop": found.iter().map(|s| s.passed).collect::<Vec<_>>(),
            "steps": found.iter().map(|s| s.step).collect::<Vec<_>>(),
            "noise": {
                "x": self.pooled.centres(),
                "density": self.pooled.density(tests * draws as f64),
                "by_stop": found.iter().map(|s| s.noise.clone()).collect::<Vec<_>>(),
            },
            "correlation": {
                "x": self.correlations[0].centres(),
                "minibatch": shape(0), "white": shape(1), "total": shape(2),
                "rms": three(&|s| s.spread),
                "largest_eigenvalue": three(&|s| s.largest),
                "random_matrix_edge": edges.1,
            },
            "autocorrelation": {
                "lag": (0..autocorrelation.len()).collect::<Vec<_>>(),
                "minibatch": autocorrelation,
            },
            "ratio": {
                "mean": ratios.iter().sum::<f64>() / ratios.len() as f64,
                "median": quantile(0.5), "upper": quantile(0.95), "largest": quantile(1.0),
            },
        })
    }
}

/// Autocorrelation of the noise, averaged over components and starting times.
pub struct Memory {
    series: Vec<Vec<f64>>,
    sums: Vec<f64>,
    counts: Vec<f64>,
}

impl Memory {
    fn new(lags: usize) -> Self {
        Self {
            series: Vec::new(),
            sums: vec![0.0; lags + 1],
            counts: vec![0.0; lags + 1],
        }
    }

    /// The noise of the next step.
    pub fn add(&mut self, noise: Vec<f64>) {
        self.series.push(noise);
    }

    /// The series ends here.
    pub fn end(&mut self) {
        for (i, a) in self.series.iter().enumerate() {
            for (lag, b) in self.series[i..].iter().enumerate() {
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                self.sums[lag] += product / a.len() as f64;
                self.counts[lag] += 1.0;
            }
        }
        self.series.clear();
    }

    fn mean(&self) -> Vec<f64> {
        self.sums
            .iter()
            .zip(&self.counts)
            .map(|(s, n)| s / n)
            .collect()
    }
}
