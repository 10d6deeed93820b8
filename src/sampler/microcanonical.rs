//! Microcanonical dynamics: a point that moves at constant speed, and whose direction the gradient turns.
//!
//! In the coordinates y_i = w_i √(M_i/T) the direction u, |u| = 1, is turned by the gradient of S = U/T and the point goes along it (Robnik, De Luca, Silverstein & Seljak
//! 2023; Robnik & Seljak 2024). Over the time of the trajectory S minus the logarithm of the volume that the map has swept is conserved, and
//! (N-1) ln(cosh δ + (e·u) sinh δ) is what a turn by δ adds to it. What is kept is p_i = u_i √M_i, which turns along the gradient of U as it is.

use super::metric::{ADD_DIRECTION, MASS, Metric};
use crate::engine::Vector::{self, Gradient, Params};
use crate::engine::{Chains, Member};
use crate::error::Result;
use crate::kernels::map::{kernel, reduction, single};
use crate::rng::Purpose;
use crate::target::Target;

/// Parts of a step: those of a turn, and the drift after each but the last, which is the first of the next step.
///
/// The minimal-norm scheme of second order (Omelyan, Mryglod & Folk 2003; its λ by McLachlan 1995): two gradients, and an error more than ten times below that of leapfrog steps of half the size.
const TURN: [f64; 2] = [2.0 * LAMBDA, 1.0 - 2.0 * LAMBDA];
const LAMBDA: f64 = 0.193_183_327_503_783_6;
const DRIFT: f64 = 0.5;

/// Gradients per step.
pub const GRADIENTS: usize = TURN.len();

kernel! {
    /// `p ← keep·p + push·g`.
    TURN_DIRECTION = microcanonical_turn(p; g; ; keep, push) {
        p = keep * p + push * g;
    }
}

kernel! {
    /// `p ← keep·p + push·g`, `w ← w + drift·p/M`.
    TURN_AND_DRIFT = microcanonical_drift(w, p; g, mass; ; keep, push, drift) {
        p = keep * p + push * g;
        w += drift * (p / mass);
    }
}

reduction! {
    /// Σ (w g)².
    SQUARED_PRODUCTS = sum microcanonical_squared_products(w, g) { (w * g) * (w * g) }
}

/// How far the energy of a chain is off, over T, because its parameters are rounded: a unit in the last place of each, at the last gradient.
///
/// Far from the typical set, where the gradient is large, this is more than what a step may add, however short the step is. It must not shorten it.
pub fn rounding(chains: &mut Chains) -> Result<Vec<f64>> {
    let squares = chains.sum(&SQUARED_PRODUCTS, &[Params, Gradient])?;
    let temperatures = chains.each(|m| m.temperature);
    let each = squares.iter().zip(temperatures);
    Ok(each
        .map(|(s, t)| f64::from(f32::EPSILON) * s.sqrt() / t)
        .collect())
}

/// A direction.
pub struct Direction {
    /// The vector that holds p.
    pub vector: Vector,
    /// The masses M.
    pub metric: Metric,
}

/// How a turn changes the direction, and what is conserved.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Turn {
    keep: f64,
    push: f64,
    /// (N-1) ln(cosh δ + (e·u) sinh δ).
    gained: f64,
}

impl Turn {
    /// Over the distance `step`, where Σ g²/M = `squares` and Σ p·g/M = `along`, g = ∇U; p is divided by `norm` = |u|.
    fn new(step: f64, temperature: f64, (squares, along): (f64, f64), norm: f64, n: f64) -> Self {
        if squares == 0.0 {
            return Self {
                keep: 1.0 / norm,
                push: 0.0,
                gained: 0.0,
            };
        }
        let size = squares.sqrt();
        let towards = -along / (size * norm);
        let delta = step * size / temperature.sqrt() / (n - 1.0);
        // Divided through by cosh δ, which overflows where δ is large.
        let (tanh, sech) = (delta.tanh(), 1.0 / delta.cosh());
        let scale = 1.0 + towards * tanh;
        let ln_cosh = delta + (-2.0 * delta).exp().ln_1p() - std::f64::consts::LN_2;
        Self {
            keep: sech / scale / norm,
            push: -(tanh + towards * (1.0 - sech)) / scale / size,
            gained: (n - 1.0) * (ln_cosh + scale.ln()),
        }
    }
}

impl Direction {
    /// Fail on what has one parameter: there is nothing to turn.
    pub fn check(name: &str, target: &Target) -> Result<()> {
        anyhow::ensure!(
            target.dim() > 1,
            "sampler::{name}: a direction in one dimension cannot turn, and this target has one parameter; take sampler::hmc"
        );
        Ok(())
    }

    /// A fresh one, whose length is not 1.
    pub fn draw(&self, chains: &mut Chains, sub: u16) -> Result<()> {
        let stream = (Purpose::Momentum, sub);
        self.metric.draw(chains, self.vector, stream, |_| 1.0)
    }

    /// Add noise, `part` of a fresh direction's.
    pub fn refresh(&self, chains: &mut Chains, part: impl Fn(&Member) -> f64) -> Result<()> {
        const NOISE: Vector = Vector::Scratch(3);
        self.metric
            .draw(chains, NOISE, (Purpose::Noise, 0), |_| 1.0)?;
        chains.map(&ADD_DIRECTION, &[self.vector, NOISE], |_, m| {
            [part(m) as f32]
        })
    }

    /// |u| of every chain.
    pub fn norms(&self, chains: &mut Chains) -> Result<Vec<f64>> {
        let squares = self.metric.product(chains, self.vector, self.vector)?;
        Ok(squares.into_iter().map(f64::sqrt).collect())
    }

    /// Turn by `part` of the chains' distances, then drift if `drift` is not 0; adds to `gained`. A distance of 0 leaves a chain where it is.
    fn turn(
        &self,
        chains: &mut Chains,
        (part, drift): (f64, f64),
        steps: &[f64],
        norms: &mut [f64],
        gained: &mut [f64],
    ) -> Result<()> {
        let n = chains.dim() as f64;
        let squares = self.metric.product(chains, Gradient, Gradient)?;
        let along = self.metric.product(chains, self.vector, Gradient)?;
        let turns: Vec<_> = chains
            .each(|m| m.temperature)
            .iter()
            .enumerate()
            .map(|(c, t)| Turn::new(part * steps[c], *t, (squares[c], along[c]), norms[c], n))
            .collect();
        for (c, turn) in turns.iter().enumerate().filter(|(c, _)| steps[*c] > 0.0) {
            gained[c] += turn.gained;
            norms[c] = 1.0;
        }
        let still = |c: usize| steps[c] == 0.0;
        let of = |c: usize| {
            if still(c) {
                (1.0, 0.0)
            } else {
                (turns[c].keep, turns[c].push)
            }
        };
        if drift == 0.0 {
            return chains.map(&TURN_DIRECTION, &[self.vector, Gradient], |c, _| {
                let (keep, push) = of(c);
                single([keep, push])
            });
        }
        let vectors = [Params, self.vector, Gradient, MASS];
        let far = chains.each(|m| m.temperature.sqrt());
        let far = |c: usize| drift * steps[c] * far[c];
        chains.map(&TURN_AND_DRIFT, &vectors, |c, _| {
            let (keep, push) = of(c);
            single([keep, push, far(c)])
        })?;
        self.metric.drift(chains, self.vector, far)?;
        // At a wall a coordinate is mirrored and its direction turned.
        chains.engine.reflect(Some(self.vector))
    }

    /// Go `steps[c]` far per step, for `counts[c]` steps, from where the gradient is known to where it is; |u| = `norms` at the beginning, 1 at the end.
    /// Gives back what the turns have gained.
    pub fn go(
        &self,
        chains: &mut Chains,
        (steps, counts): (&[f64], &[u64]),
        mut norms: Vec<f64>,
    ) -> Result<Vec<f64>> {
        let mut gained = vec![0.0; chains.len()];
        let most = counts.iter().copied().max().unwrap_or(0);
        let going = |at: u64| -> Vec<f64> {
            let each = steps.iter().zip(counts);
            each.map(|(step, count)| if at < *count { *step } else { 0.0 })
                .collect()
        };
        for at in 0..most {
            let now = going(at);
            for (stage, part) in TURN.into_iter().enumerate() {
                let first = at == 0 && stage == 0;
                let part = if first { LAMBDA } else { part };
                self.turn(chains, (part, DRIFT), &now, &mut norms, &mut gained)?;
                chains.engine.gradient()?;
            }
            // The last turn of chains that end here; of the others it is part of their next one.
            let ends: Vec<_> = now
                .iter()
                .zip(counts)
                .map(|(step, count)| if at + 1 == *count { *step } else { 0.0 })
                .collect();
            if ends.iter().any(|step| *step > 0.0) {
                self.turn(chains, (LAMBDA, 0.0), &ends, &mut norms, &mut gained)?;
            }
        }
        Ok(gained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_keeps_the_length_and_two_turns_make_one() {
        let n = 5.0;
        let u = [0.6, 0.0, -0.8, 0.0, 0.0f64];
        let g = [1.0, 2.0, 0.5, -1.0, 3.0f64];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let turned = |u: &[f64], step: f64| {
            let t = Turn::new(step, 0.7, (dot(&g, &g), dot(u, &g)), dot(u, u).sqrt(), n);
            let out: Vec<_> = u
                .iter()
                .zip(&g)
                .map(|(u, g)| t.keep * u + t.push * g)
                .collect();
            (out, t.gained)
        };
        for step in [1e-3, 0.3, 4.0, 2000.0] {
            let (whole, gained) = turned(&u, step);
            assert!((dot(&whole, &whole) - 1.0).abs() < 1e-12, "{step}");
            let (half, first) = turned(&u, 0.25 * step);
            let (both, second) = turned(&half, 0.75 * step);
            let off = whole
                .iter()
                .zip(&both)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            assert!(off < 1e-9, "{step}: {off}");
            assert!(
                (gained - first - second).abs() < 1e-8 * (1.0 + gained.abs()),
                "{step}"
            );
        }
        // Along -g the direction stays, and the gain is that of a free fall: (n-1)δ.
        let size = dot(&g, &g).sqrt();
        let down: Vec<_> = g.iter().map(|g| -g / size).collect();
        let (same, gained) = turned(&down, 0.3);
        assert!(same.iter().zip(&down).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!((gained - 0.3 * size / 0.7f64.sqrt()).abs() < 1e-12);
    }
}
