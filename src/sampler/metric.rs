//! Masses that are a diagonal and, along some directions, something else.
//!
//! M⁻¹ = D⁻¹ + Σ_j (λ_j - 1) b_j b_jᵀ, where D is the diagonal and b_iᵀ D b_j = δ_ij. In the coordinates in which D is 1 the directions are orthonormal, and λ_j is the variance
//! along one of them. Networks have a few stiff ones, which limit the step, and hierarchies a few long ones, which limit how far it goes.

use crate::engine::Vector::{self, Params};
use crate::engine::{Chains, PerChain};
use crate::error::Result;
use crate::kernels::map::{kernel, reduction};
use crate::kernels::update::{DOT, DRAW_MOMENTUM};
use crate::rng::Purpose;

/// Where the masses of chains are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Metric {
    /// How many directions there are at most.
    pub rank: usize,
    /// The state vector that is the first direction.
    pub vector: usize,
    /// The scalar that is λ - 1 of the first, 0 where the diagonal is all there is.
    pub scalar: usize,
}

/// The diagonal: a state vector.
pub const MASS: Vector = Vector::State(0);

reduction! {
    /// Σ a·b/M of a diagonal.
    pub PRODUCT = sum metric_product(a, b, mass) { a * b / mass }
}

reduction! {
    /// Σ M (x-c)·b of a diagonal.
    pub ALONG_DRAW = sum metric_along_draw(b, x, centre, mass) { mass * ((x - centre) * b) }
}

reduction! {
    /// Σ M a·b of a diagonal.
    pub INNER = sum metric_inner(a, b, mass) { mass * (a * b) }
}

kernel! {
    /// `b ← by·b`, 0 where by is 0.
    pub SCALE = metric_scale(b; ; ; by) {
        b = choose(by > 0.0, by * b, 0.0);
    }
}

kernel! {
    /// `w ← w + by·b`.
    pub ADD_DIRECTION = metric_add_direction(w; b; ; by) {
        w += by * b;
    }
}

kernel! {
    /// `p ← p + by·M b`, M a diagonal.
    ADD_HEAVY = metric_add_heavy(p; b, mass; ; by) {
        p += by * (mass * b);
    }
}

impl Metric {
    /// The j-th direction.
    pub fn direction(&self, j: usize) -> Vector {
        Vector::State(self.vector + j)
    }

    /// λ_j - 1 of every chain; none if there is no such direction.
    fn beyond(&self, chains: &Chains, j: usize) -> Option<PerChain<f64>> {
        let found = (j < self.rank).then(|| chains.scalar(self.scalar + j))?;
        // Directions that are used come first.
        found.iter().any(|l| *l != 0.0).then_some(found)
    }

    /// The directions that a chain has, by their number, with λ - 1 of every chain.
    fn directions(&self, chains: &Chains) -> Vec<(Vector, PerChain<f64>)> {
        let each = (0..self.rank).map_while(|j| Some((self.direction(j), self.beyond(chains, j)?)));
        each.collect()
    }

    /// Fresh momenta, N(0, M temperature).
    pub fn draw(
        &self,
        chains: &mut Chains,
        momentum: Vector,
        stream: (Purpose, u16),
        temperature: impl Fn(f64) -> f64,
    ) -> Result<()> {
        chains.map_with_noise(&DRAW_MOMENTUM, &[momentum, MASS], stream, |_, m| {
            [temperature(m.temperature) as f32]
        })?;
        self.colour(chains, momentum)
    }

    /// Make N(0, M) of what is N(0, D).
    fn colour(&self, chains: &mut Chains, momentum: Vector) -> Result<()> {
        for (b, beyond) in self.directions(chains) {
            let along = chains.sum(&DOT, &[b, momentum])?;
            chains.map(&ADD_HEAVY, &[momentum, b, MASS], |c, _| {
                [(((1.0 + beyond[c]).powf(-0.5) - 1.0) * along[c]) as f32]
            })?;
        }
        Ok(())
    }

    /// aᵀ M⁻¹ b of every chain.
    pub fn product(&self, chains: &mut Chains, a: Vector, b: Vector) -> Result<PerChain<f64>> {
        let mut out = chains.sum(&PRODUCT, &[a, b, MASS])?;
        for (direction, beyond) in self.directions(chains) {
            let of_a = chains.sum(&DOT, &[direction, a])?;
            let of_b = match a == b {
                true => of_a.clone(),
                false => chains.sum(&DOT, &[direction, b])?,
            };
            for (c, out) in out.iter_mut().enumerate() {
                *out += beyond[c] * of_a[c] * of_b[c];
            }
        }
        Ok(out)
    }

    /// Go on from w + step·D⁻¹p to w + step·M⁻¹p.
    pub fn drift(
        &self,
        chains: &mut Chains,
        momentum: Vector,
        step: impl Fn(usize) -> f64,
    ) -> Result<()> {
        for (b, beyond) in self.directions(chains) {
            let along = chains.sum(&DOT, &[b, momentum])?;
            chains.map(&ADD_DIRECTION, &[Params, b], |c, _| {
                [(step(c) * beyond[c] * along[c]) as f32]
            })?;
        }
        Ok(())
    }

    /// bᵀ M (x-c) of every chain.
    pub fn along(
        &self,
        chains: &mut Chains,
        b: Vector,
        x: Vector,
        c: Vector,
    ) -> Result<PerChain<f64>> {
        let mut out = chains.sum(&ALONG_DRAW, &[b, x, c, MASS])?;
        for (own, beyond) in self.directions(chains) {
            let of_b = chains.sum(&INNER, &[b, own, MASS])?;
            let of_x = chains.sum(&ALONG_DRAW, &[own, x, c, MASS])?;
            for (c, out) in out.iter_mut().enumerate() {
                *out += (1.0 / (1.0 + beyond[c]) - 1.0) * of_b[c] * of_x[c];
            }
        }
        Ok(out)
    }

    /// Give b the length 1, bᵀ M b = 1.
    pub fn normalise(&self, chains: &mut Chains, b: Vector) -> Result<()> {
        let mut squares = chains.sum(&INNER, &[b, b, MASS])?;
        for (own, beyond) in self.directions(chains) {
            let along = chains.sum(&INNER, &[b, own, MASS])?;
            for (c, square) in squares.iter_mut().enumerate() {
                *square += (1.0 / (1.0 + beyond[c]) - 1.0) * along[c].powi(2);
            }
        }
        chains.map(&SCALE, &[b], |c, _| [squares[c].powf(-0.5) as f32])
    }
}
