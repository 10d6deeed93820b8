//! The variance of the minibatch gradient, per component.

use super::gradient::Estimator;
use crate::engine::Chains;
use crate::engine::Vector::{self, Gradient, Scratch};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{FILL, TOTAL, WELFORD};
use crate::rng::Purpose;

/// When an estimate is good enough.
#[derive(Debug, Clone, Copy)]
pub struct Precision {
    /// Minibatches per block.
    pub block: usize,
    /// Minibatches at most.
    pub most: usize,
    /// Converged when sqrt(V_i) of 99 % of the components changed by less than this over the last block; infinite: one block.
    pub tolerance: f64,
}

// What `estimate` keeps while it works.
const MEAN: Vector = Scratch(0);
const M2: Vector = Scratch(1);
/// A place for V that nothing else uses.
pub const ESTIMATE: Vector = Scratch(2);

kernel! {
    /// The next estimate of V, and whether sqrt(V) changed by more than the factor whose square is `limit`.
    NEXT = next_variance(v, moved; m2; ; inverse, limit) {
        let next = m2 * inverse;
        moved = choose(next > limit * v || next * limit < v, 1.0, 0.0);
        v = next;
    }
}

/// Estimate V_i, the variance of component i of the minibatch gradient of U at the chains' parameters, in all chains.
///
/// Minibatches come in blocks until the estimate converges in all chains that are `due` (Zambon 2026, §II.3). Returns their number.
/// `first_sub` keeps the random streams of different callers within one step apart. The gradient is overwritten.
pub fn estimate(
    chains: &mut Chains,
    gradient: &Estimator,
    precision: Precision,
    first_sub: u16,
    due: &[bool],
    into: Vector,
) -> Result<usize> {
    for v in [MEAN, M2, into] {
        chains.map(&FILL, &[v], |_, _| [0.0])?;
    }
    let n = chains.dim() as f64;
    let limit = ((1.0 + precision.tolerance) * (1.0 + precision.tolerance)) as f32;
    let mut count = 0;
    loop {
        for _ in 0..precision.block.max(2) {
            gradient.estimate(chains, Purpose::Variance, first_sub + count as u16)?;
            count += 1;
            chains.map(&WELFORD, &[MEAN, M2, Gradient], |_, _| [1.0 / count as f32])?;
        }
        // From here on the gradient's place holds which components moved.
        chains.map(&NEXT, &[into, Gradient, M2], |_, _| {
            [1.0 / (count - 1) as f32, limit]
        })?;
        let moved = chains.sum(&TOTAL, &[Gradient])?;
        let converged = precision.tolerance.is_infinite()
            || moved.iter().zip(due).all(|(m, due)| !due || m * 100.0 <= n);
        if converged || count + precision.block > precision.most {
            return Ok(count);
        }
    }
}
