//! Probes of the law: gradients of their own, from which a chain reports what [`law`](crate::engine::law) tests.

use super::gradient::Estimator;
use crate::engine::Vector::{self, Gradient, Params, Scratch};
use crate::engine::law::PROBED;
use crate::engine::{Chains, PerChain};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{DISTANCE_DOT, DOT, SQUARED_DISTANCE};
use crate::rng::Purpose;

/// Steps between two probes, each of four minibatch gradients.
pub const PROBE: u64 = 100;

/// The state scalar that holds ΔU/N as it was found in burn-in.
pub const CURVATURE: &str = "curvature";

/// Part of the thermal width sqrt(T/(ΔU/N)) over which gradients are compared.
const SPAN: f64 = 0.1;

kernel! {
    /// The next value of a running mean.
    APPROACH = approach(c; w; ; part) {
        c += part * (w - c);
    }
}

kernel! {
    /// Random signs.
    SIGNS = random_signs(z; ; eta; ) {
        z = choose(eta > 0.0, 1.0, -1.0);
    }
}

kernel! {
    /// A point beside another: `w ← home + h·z`.
    BESIDE = point_beside(w; home, z; ; h) {
        w = home + h * z;
    }
}

/// Samples of the parameters that make the centre, at most.
const SAMPLES: u64 = 200;

/// Let the centre follow the chains in the second half of burn-in.
pub fn follow(chains: &mut Chains, centre: Vector) -> Result<()> {
    let begin = chains.burn_in / 2;
    let stride = (chains.burn_in - begin).div_ceil(SAMPLES).max(1);
    if chains.step < begin || chains.step >= chains.burn_in {
        return Ok(());
    }
    let since = chains.step - begin;
    if !since.is_multiple_of(stride) {
        return Ok(());
    }
    let part = 1.0 / (since / stride + 1) as f32;
    chains.map(&APPROACH, &[centre, Params], |_, _| [part])
}

/// What no sampler, no estimator of the gradient uses.
const ASIDE: Vector = Scratch(42);

/// Take the gradients of a probe, report what they say, and give back the variance of the minibatch gradient, averaged over the components.
/// The scalar `curvature` of every chain follows in burn-in.
pub fn probe(chains: &mut Chains, gradient: &Estimator, curvature: usize) -> Result<Vec<f64>> {
    let n = chains.dim() as f64;
    let probed = chains.slots.find(PROBED[0]).is_some();
    let Some(centre) = chains.slots.centre.filter(|_| probed) else {
        return gradient.variance(chains);
    };
    gradient.estimate(chains, Purpose::Probe, 0)?;
    chains.copy(Gradient, ASIDE)?;
    let mut virials = chains.sum(&DISTANCE_DOT, &[Params, centre, Gradient])?;
    let (products, squares) = match gradient.batch() {
        None => (chains.sum(&DOT, &[Gradient, Gradient])?, PerChain::new()),
        Some(_) => {
            gradient.estimate(chains, Purpose::Probe, 1)?;
            let second = chains.sum(&DISTANCE_DOT, &[Params, centre, Gradient])?;
            virials
                .iter_mut()
                .zip(second)
                .for_each(|(v, s)| *v = 0.5 * (*v + s));
            (
                chains.sum(&DOT, &[ASIDE, Gradient])?,
                chains.sum(&SQUARED_DISTANCE, &[ASIDE, Gradient])?,
            )
        }
    };
    let distances = chains.sum(&SQUARED_DISTANCE, &[Params, centre])?;
    let sizes = chains.sum(&DOT, &[Params, Params])?;
    let widths: Vec<f64> = (0..chains.len())
        .map(|c| {
            let (found, t) = (chains.scalars(c)[curvature], chains.members[c].temperature);
            match found > 0.0 {
                true => SPAN * (t / found).sqrt(),
                false => 1e-3 * (sizes[c] / n).sqrt().max(1e-3),
            }
        })
        .collect();
    let laplacians = laplacian(chains, gradient, &widths)?;
    if chains.step < chains.burn_in {
        for (c, found) in laplacians.iter().enumerate() {
            let kept = &mut chains.scalars(c)[curvature];
            let now = (found / n).abs();
            if now.is_finite() {
                *kept = if *kept > 0.0 {
                    0.7 * *kept + 0.3 * now
                } else {
                    now
                };
            }
        }
    }
    // So that means over steps are means over probes.
    let weight = PROBE as f64;
    let mut report = |k: usize, f: &dyn Fn(usize) -> f64| {
        let values: Vec<_> = (0..widths.len()).map(|c| weight * f(c)).collect();
        chains.report_values(PROBED[k], &values)
    };
    report(0, &|c| products[c] / n)?;
    report(1, &|c| laplacians[c] / n)?;
    report(2, &|c| distances[c] * virials[c] / (n + 2.0))?;
    report(3, &|c| distances[c])?;
    Ok(squares.into_iter().map(|s| s / (2.0 * n)).collect())
}

/// zᵀHz of every chain, from gradients a `width` on either side. Of a large network every vector counts: the signs z are drawn anew where they are
/// needed, into whichever vector is free.
fn laplacian(chains: &mut Chains, gradient: &Estimator, widths: &[f64]) -> Result<Vec<f64>> {
    let signs = |chains: &mut Chains, to: Vector| {
        let noise = (Purpose::Probe, 2);
        chains.map_with_noise(&SIGNS, &[to], noise, |_, _| -> [f32; 0] { [] })
    };
    let home = ASIDE;
    chains.copy(Params, home)?;
    let mut along = |side: f64| {
        signs(chains, Gradient)?;
        chains.map(&BESIDE, &[Params, home, Gradient], |c, _| {
            [(side * widths[c]) as f32]
        })?;
        gradient.estimate(chains, Purpose::Probe, 0)?;
        signs(chains, Params)?;
        chains.sum(&DOT, &[Params, Gradient])
    };
    let (ahead, behind) = (along(1.0)?, along(-1.0)?);
    chains.copy(home, Params)?;
    let slope = |c: usize| (ahead[c] - behind[c]) / (2.0 * widths[c] as f32 as f64);
    Ok((0..widths.len()).map(slope).collect())
}
