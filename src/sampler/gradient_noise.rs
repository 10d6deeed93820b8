//! The variance of the minibatch gradient, per component.

use super::Chain;
use crate::error::Result;
use crate::kernels::update::welford;
use crate::rng::Purpose;
use crate::target::{Target, Workspace};

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

/// Estimate V_i, the variance of component i of the minibatch gradient of U at the chain's parameters, into `variance`.
///
/// Minibatches come in blocks until the estimate converges (Zambon 2026, §II.3). Returns their number. `first_sub` keeps the
/// random streams of different callers within one step apart.
pub fn estimate(
    chain: &Chain,
    batch: usize,
    precision: Precision,
    first_sub: u16,
    target: &Target,
    work: &mut Workspace,
    variance: &mut [f32],
) -> Result<usize> {
    let n = chain.w.len();
    let mut grad = work.take_grad(n);
    let mut extra = std::mem::take(&mut work.extra);
    extra.resize_with(extra.len().max(2), Vec::new);
    let [mean, m2, ..] = &mut extra[..] else {
        unreachable!("two were just made")
    };
    for v in [&mut *mean, &mut *m2] {
        v.clear();
        v.resize(n, 0.0);
    }
    variance.fill(0.0);
    let mut count = 0;
    let result = loop {
        for _ in 0..precision.block.max(2) {
            let stream = chain
                .stream(Purpose::Variance)
                .sub_stream(first_sub + count as u16);
            if let Err(e) = chain.minibatch_gradient(stream, batch, target, &mut grad, work) {
                work.grad = grad;
                work.extra = extra;
                return Err(e);
            }
            count += 1;
            welford(mean, m2, &grad, count as f32);
        }
        let inverse = 1.0 / (count - 1) as f32;
        let limit = (1.0 + precision.tolerance) as f32;
        let mut moving = 0;
        for (v, m2) in variance.iter_mut().zip(m2.iter()) {
            let new = m2 * inverse;
            // |sqrt(new/old) - 1| > tolerance, without roots; components that are 0 in both do not move.
            moving += usize::from(new > limit * limit * *v || new * limit * limit < *v);
            *v = new;
        }
        let converged = precision.tolerance.is_infinite() || moving * 100 <= n;
        if converged || count + precision.block > precision.most {
            break count;
        }
    };
    work.grad = grad;
    work.extra = extra;
    Ok(result)
}
