//! What a chain reports so that its law can be tested, from identities that hold for exp(-U/T) whatever U is.
//!
//! Integration by parts gives ⟨f·∇U⟩ = T⟨∇·f⟩ for every smooth f that grows slowly enough, and vanishes at hard walls. A minibatch
//! gradient may stand for ∇U wherever it enters linearly and is drawn independently of w. Three choices of f are reported:
//!
//! | f | identity | sees |
//! |---|---|---|
//! | w - c, per tensor; in a box (w_i - c_i)(1 - w_i²/h_i²), h_i half its width | ⟨(w-c)·∇U⟩ = NT | heat, chains that have not spread |
//! | (w - c)·\|w - c\|² | ⟨\|w-c\|² (w-c)·∇U⟩ = (N+2) T ⟨\|w-c\|²⟩ | wrong tails |
//! | ∇U | ⟨\|∇U\|²⟩ = T⟨ΔU⟩ | stiff directions, step sizes that depend on w |
//!
//! c is any constant: the mean of the second half of burn-in, the start without burn-in. All c have the same mean, and the error bar
//! is least near the mean of w. The first is reported at every step; the others, which need gradients of their own, every `PROBE` steps,
//! by samplers that make no accept/reject decision. |∇U|² is the product of two independent minibatch gradients, ΔU is zᵀHz with random
//! signs z (Hutchinson 1989), H z by central differences of gradients on the same rows.

use super::report::{
    CUBIC_VIRIAL, Column, LAPLACIAN, Report, SQUARED_DISTANCE_TO_CENTRE, SQUARED_GRADIENT,
    VIRIAL_BY_TENSOR, VIRIAL_SCALE, VIRIAL_SCALE_BY_TENSOR,
};
use super::{Chains, Vector};
use crate::error::Result;
use crate::kernels::update::{CUBIC_DOT, DISTANCE_DOT, DOT};
use crate::target::Target;
use std::ops::Range;

/// Tensors beyond which the virial is reported of all parameters together only.
const MOST_TENSORS: usize = 100;

/// The numbers of a probe.
pub const PROBED: [Report; 4] = [
    SQUARED_GRADIENT,
    LAPLACIAN,
    CUBIC_VIRIAL,
    SQUARED_DISTANCE_TO_CENTRE,
];

/// What a sampler reports of its law on this target beside its own virial. `exact` says that it accepts or rejects on U itself.
pub fn columns(target: &Target, exact: bool) -> Vec<Column> {
    let walls = target.prior().has_walls();
    let tensors = target.layout().tensors();
    let by_tensor = !exact && (2..=MOST_TENSORS).contains(&tensors.len());
    let names: Vec<_> = tensors.iter().map(|t| t.name.clone()).collect();
    let vector = |report, here: bool| here.then(|| (report, Some(names.clone())));
    let mut out = Vec::new();
    out.extend(walls.then_some((VIRIAL_SCALE, None)));
    out.extend(vector(VIRIAL_BY_TENSOR, by_tensor));
    out.extend(vector(VIRIAL_SCALE_BY_TENSOR, by_tensor && walls));
    if !exact && !walls {
        out.extend(PROBED.map(|report| (report, None)));
    }
    out
}

/// Σ f_i g_i and Σ ∂f_i/∂w_i over some elements, per chain; `half` is half the width of their box, infinite without walls.
pub fn in_box(
    chains: &mut Chains,
    centre: Vector,
    gradient: Vector,
    range: Range<usize>,
    half: f64,
) -> Result<Vec<[f64; 2]>> {
    let n = range.len() as f64;
    let mut sum =
        |reduction, vectors: &[Vector]| chains.engine.sum(reduction, vectors, range.clone());
    let plain = sum(&DISTANCE_DOT, &[Vector::Params, centre, gradient])?;
    if half.is_infinite() {
        return Ok(plain.into_iter().map(|v| [v, n]).collect());
    }
    let cubic = sum(&CUBIC_DOT, &[Vector::Params, centre, gradient])?;
    let square = sum(&DOT, &[Vector::Params, Vector::Params])?;
    let along = sum(&DOT, &[Vector::Params, centre])?;
    let inverse = half.powi(-2);
    let of = |c: usize| {
        [
            plain[c] - inverse * cubic[c],
            n - inverse * (3.0 * square[c] - 2.0 * along[c]),
        ]
    };
    Ok((0..plain.len()).map(of).collect())
}
