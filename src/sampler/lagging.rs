//! Momenta that are half a step behind the parameters, when chains change temperature.

use super::Before;
use super::gradient::Estimator;
use crate::engine::{Chains, Vector};
use crate::error::Result;
use crate::kernels::map::{kernel, single};
use crate::rng::Purpose;

kernel! {
    /// `p ← root·p + fresh·η + half·g + prior·r`.
    CHANGE_MOMENTA = change_momenta(p; g, r; eta; root, fresh, half, prior) {
        p = choose(root > 0.0, root * p, 0.0) + fresh * eta + half * g + prior * r;
    }
}

/// Momenta that are half a step behind the parameters.
pub(super) struct Lagging<'a> {
    /// How ∇U is estimated.
    pub gradient: &'a Estimator,
    /// h: p = p_0 + h ∇U, where p_0 is independent of the parameters.
    pub half: f64,
    /// The variance of p_0 at T = 1.
    pub mass: f64,
    /// What multiplies ∇U where momenta are in units of their own.
    pub scale: Option<Vector>,
}

kernel! {
    /// `x ← scale·x`.
    SCALE_BY = scale_by(x; scale; ; ) {
        x *= scale;
    }
}

impl<'a> Lagging<'a> {
    /// Of samplers whose step is ε: they move parameters by their momentum, of variance εT.
    pub fn of_step(gradient: &'a Estimator, epsilon: f64) -> Self {
        Self {
            gradient,
            half: 0.5 * epsilon,
            mass: epsilon,
            scale: None,
        }
    }

    /// Bring momenta to other temperatures: p_0 is multiplied by sqrt(T_now/T_before), or drawn afresh where the parameters are others.
    ///
    /// Without the gradient's part, momenta and parameters would be wrongly correlated after every change, an error of the order of the step.
    pub fn change(&self, chains: &mut Chains, momentum: Vector, before: &[Before]) -> Result<()> {
        const PRIOR: Vector = Vector::Scratch(1);
        // Sub-stream 3: no step and no start draws this minibatch, nor these momenta.
        self.gradient.estimate(chains, Purpose::Minibatch, 3)?;
        chains.engine.prior_gradient(PRIOR)?;
        if let Some(scale) = self.scale {
            for v in [Vector::Gradient, PRIOR] {
                chains.map(&SCALE_BY, &[v, scale], |_, _| -> [f32; 0] { [] })?;
            }
        }
        let vectors = [momentum, Vector::Gradient, PRIOR];
        chains.map_with_noise(&CHANGE_MOMENTA, &vectors, (Purpose::Momentum, 3), |c, m| {
            let (b, h) = (before[c], self.half);
            if b.redrawn {
                return single([0.0, (self.mass * m.temperature).sqrt(), h, 0.0]);
            }
            let root = (m.temperature / b.temperature).sqrt();
            // What has changed of ∇U is the prior's part, T_before/T_now of what it is now.
            let changed = if b.stale {
                b.temperature / m.temperature - 1.0
            } else {
                0.0
            };
            single([root, 0.0, h * (1.0 - root), -h * root * changed])
        })
    }
}
