//! Draws of energies whose free energy is known in closed form.

/// Splitmix64 (Steele, Lea and Flood 2014): a random word that is a pure function of its counter.
fn word(counter: u64) -> u64 {
    let mut z = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A uniform number in [0, 1) of two counters, as the bootstrap wants it.
pub fn uniform(seed: u64) -> impl Fn(u64, u32) -> f64 {
    move |replicate, element| {
        let key = word(word(seed) ^ replicate);
        (word(key ^ u64::from(element)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A stream of standard normal numbers (Box–Muller).
pub struct Normal {
    key: u64,
    counter: u64,
    spare: Option<f64>,
}

impl Normal {
    pub fn new(seed: u64) -> Self {
        Self {
            key: word(seed ^ 0xabcd),
            counter: 0,
            spare: None,
        }
    }

    pub fn uniform(&mut self) -> f64 {
        self.counter += 1;
        ((word(self.key.wrapping_add(self.counter)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}

/// E = ½|w|² in `dim` dimensions under the prior N(0, σ²): at beta, E is Gamma distributed with shape dim/2 and scale
/// σ²/(1 + beta σ²), and ln Z(beta) = -(dim/2) ln(1 + beta σ²).
#[derive(Clone, Copy)]
pub struct Gaussian {
    pub dim: usize,
    pub prior_variance: f64,
}

pub type Energies = Vec<Vec<Vec<f64>>>;

impl Gaussian {
    pub fn ln_z(&self, beta: f64) -> f64 {
        -0.5 * self.dim as f64 * (1.0 + beta * self.prior_variance).ln()
    }

    /// Variance of one component of w.
    pub fn scale(&self, beta: f64) -> f64 {
        self.prior_variance / (1.0 + beta * self.prior_variance)
    }

    pub fn mean(&self, beta: f64) -> f64 {
        0.5 * self.dim as f64 * self.scale(beta)
    }

    pub fn variance(&self, beta: f64) -> f64 {
        0.5 * self.dim as f64 * self.scale(beta).powi(2)
    }

    /// `rungs` inverse temperatures from `first` to `last`, evenly spaced in ln(1/σ² + beta): equal overlap.
    pub fn ladder(&self, first: f64, last: f64, rungs: usize) -> Vec<f64> {
        let shift = 1.0 / self.prior_variance;
        let (a, b) = ((first + shift).ln(), (last + shift).ln());
        let at = |k: usize| a + (b - a) * k as f64 / (rungs - 1) as f64;
        let mut betas: Vec<f64> = (0..rungs).map(|k| at(k).exp() - shift).collect();
        betas[0] = first;
        betas
    }

    /// Exact draws: w is a stationary AR(1) process with coefficient `phi`, so that E has autocorrelation phi^(2 lag).
    ///
    /// `common` is the share of the noise that chain c has in common at all rungs: what swaps do to exchanging replicas.
    pub fn draws(
        &self,
        betas: &[f64],
        (chains, draws): (usize, usize),
        (phi, common): (f64, f64),
        seed: u64,
    ) -> Energies {
        let mut energies: Energies = betas.iter().map(|_| Vec::new()).collect();
        for chain in 0..chains {
            let stream = |rung: u64| Normal::new(word(seed) ^ (chain as u64) << 32 ^ rung);
            for (rung, beta) in betas.iter().enumerate() {
                let (mut shared, mut own) = (stream(1 << 20), stream(rung as u64));
                let mut noise =
                    || common.sqrt() * shared.draw() + (1.0 - common).sqrt() * own.draw();
                let mut w: Vec<f64> = (0..self.dim).map(|_| noise()).collect();
                let scale = self.scale(*beta);
                let mut trace = Vec::with_capacity(draws);
                for _ in 0..draws {
                    let step = (1.0 - phi * phi).sqrt();
                    w.iter_mut().for_each(|w| *w = phi * *w + step * noise());
                    trace.push(0.5 * scale * w.iter().map(|w| w * w).sum::<f64>());
                }
                energies[rung].push(trace);
            }
        }
        energies
    }

    /// Draws by replica exchange: an AR(1) move of every replica, then a swap of even or odd neighbours, accepted with
    /// min(1, exp[(beta_j - beta_k)(E_j - E_k)]).
    pub fn exchange(
        &self,
        betas: &[f64],
        (chains, draws): (usize, usize),
        phi: f64,
        seed: u64,
    ) -> Energies {
        let mut energies: Energies = vec![vec![Vec::with_capacity(draws); chains]; betas.len()];
        for chain in 0..chains {
            let mut noise = Normal::new(word(seed) ^ (chain as u64) << 32);
            let widths: Vec<f64> = betas.iter().map(|b| self.scale(*b).sqrt()).collect();
            let mut states: Vec<Vec<f64>> = widths
                .iter()
                .map(|s| (0..self.dim).map(|_| s * noise.draw()).collect())
                .collect();
            let energy = |w: &[f64]| 0.5 * w.iter().map(|w| w * w).sum::<f64>();
            for sweep in 0..draws {
                for (w, width) in states.iter_mut().zip(&widths) {
                    let step = width * (1.0 - phi * phi).sqrt();
                    w.iter_mut()
                        .for_each(|w| *w = phi * *w + step * noise.draw());
                }
                for lower in (sweep % 2..betas.len() - 1).step_by(2) {
                    let gap = energy(&states[lower]) - energy(&states[lower + 1]);
                    let log = (betas[lower] - betas[lower + 1]) * gap;
                    if noise.uniform().ln() < log {
                        states.swap(lower, lower + 1);
                    }
                }
                for (traces, w) in energies.iter_mut().zip(&states) {
                    traces[chain].push(energy(w));
                }
            }
        }
        energies
    }
}

/// A mixture of two such energies, the second with an offset: a transition between two phases.
pub struct TwoPhases {
    pub phases: [Gaussian; 2],
    /// Energy at the bottom of each phase.
    pub offsets: [f64; 2],
    /// Ln of the prior weight of each phase.
    pub ln_prior: [f64; 2],
}

impl TwoPhases {
    /// Probability of the second phase.
    fn second(&self, beta: f64) -> f64 {
        let ln = |i: usize| self.ln_prior[i] - beta * self.offsets[i] + self.phases[i].ln_z(beta);
        1.0 / (1.0 + (ln(0) - ln(1)).exp())
    }

    pub fn mean(&self, beta: f64) -> f64 {
        let p = self.second(beta);
        let of = |i: usize| self.offsets[i] + self.phases[i].mean(beta);
        (1.0 - p) * of(0) + p * of(1)
    }

    pub fn heat_capacity(&self, beta: f64) -> f64 {
        let p = self.second(beta);
        let gap = self.offsets[1] + self.phases[1].mean(beta)
            - self.offsets[0]
            - self.phases[0].mean(beta);
        let within = (1.0 - p) * self.phases[0].variance(beta) + p * self.phases[1].variance(beta);
        beta * beta * (within + p * (1.0 - p) * gap * gap)
    }

    /// Inverse temperature and height of the highest point between `low` and `high`, on a fine grid.
    pub fn peak(&self, low: f64, high: f64) -> (f64, f64) {
        let at = |k: usize| low + (high - low) * k as f64 / 1e6;
        (0..=1_000_000)
            .map(|k| (at(k), self.heat_capacity(at(k))))
            .fold((low, 0.0), |a, b| if b.1 > a.1 { b } else { a })
    }

    /// Exact draws; the phase and both energies follow AR(1) processes of coefficient `phi`.
    pub fn draws(
        &self,
        betas: &[f64],
        (chains, draws): (usize, usize),
        phi: f64,
        seed: u64,
    ) -> Energies {
        let shape = (chains, draws);
        let pair: Vec<Energies> = (0..2)
            .map(|i| self.phases[i].draws(betas, shape, (phi, 0.0), seed * 3 + i as u64))
            .collect();
        let mut energies = pair[0].clone();
        for (rung, beta) in betas.iter().enumerate() {
            let p = self.second(*beta);
            for (chain, trace) in energies[rung].iter_mut().enumerate() {
                let mut noise =
                    Normal::new(word(seed * 3 + 2) ^ ((rung as u64) << 32 | chain as u64));
                let mut z = noise.draw();
                for (draw, energy) in trace.iter_mut().enumerate() {
                    z = phi * z + (1.0 - phi * phi).sqrt() * noise.draw();
                    let phase = usize::from(normal_cdf(z) < p);
                    *energy = self.offsets[phase] + pair[phase][rung][chain][draw];
                }
            }
        }
        energies
    }
}

/// Abramowitz and Stegun 26.2.17, to 7.5e-8.
fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt() * series;
    if x > 0.0 { 1.0 - tail } else { tail }
}
