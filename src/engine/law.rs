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

use super::{Chains, Vector};
use crate::error::Result;
use crate::kernels::update::{CUBIC_DOT, DISTANCE_DOT, DOT};
use crate::target::Target;
use std::ops::Range;

/// Tensors beyond which the virial is reported of all parameters together only.
const MOST_TENSORS: usize = 100;

/// Names of what is reported beside the sampler's own `virial`.
pub mod names {
    /// (1/N) Σ ∂f_i/∂w_i, which is 1 without walls.
    pub const SCALE: &str = "virial_scale";
    /// The virial of each tensor.
    pub const TENSORS: &str = "virial_by_tensor";
    /// The scale of each tensor.
    pub const TENSOR_SCALES: &str = "virial_scale_by_tensor";
    /// g1·g2/N, g1 and g2 independent estimates of ∇U.
    pub const SQUARED_GRADIENT: &str = "squared_gradient";
    /// zᵀHz/N, H the second derivative of U.
    pub const LAPLACIAN: &str = "laplacian";
    /// |w-c|² (w-c)·∇U/(N+2).
    pub const CUBIC: &str = "cubic_virial";
    /// |w-c|².
    pub const DISTANCE: &str = "squared_distance_to_centre";
}

/// Where a chain keeps what its virial is taken around, and where it leaves the parts of it.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    /// c.
    pub centre: Vector,
    /// The first slot of [`names::SCALE`], where there are walls.
    pub scale: Option<usize>,
    /// The first slot of [`names::TENSORS`].
    pub tensors: Option<usize>,
    /// The first slot of [`names::TENSOR_SCALES`].
    pub tensor_scales: Option<usize>,
    /// The first slot of the four numbers of a probe.
    pub probe: Option<usize>,
}

/// A number or a vector that is reported: its name, and the tensors that its components belong to.
pub type Column = (&'static str, Option<Vec<String>>);

/// The numbers of a probe, in the order of their slots.
const PROBED: [&str; 4] = [
    names::SQUARED_GRADIENT,
    names::LAPLACIAN,
    names::CUBIC,
    names::DISTANCE,
];

/// What a sampler reports of its law on this target. `exact` says that it accepts or rejects on U itself.
pub fn columns(target: &Target, exact: bool) -> Vec<Column> {
    let slots = Slots::new(target, exact, Vector::Params, 0);
    let names = || {
        let all = target.layout().tensors().iter();
        Some(all.map(|t| t.name.clone()).collect())
    };
    let scale = slots.scale.map(|_| (names::SCALE, None));
    let tensors = slots.tensors.map(|_| (names::TENSORS, names()));
    let scales = slots.tensor_scales.map(|_| (names::TENSOR_SCALES, names()));
    let probed = slots.probe.map(|_| PROBED.map(|name| (name, None)));
    let own = [scale, tensors, scales].into_iter().flatten();
    own.chain(probed.into_iter().flatten()).collect()
}

/// How many numbers a column is.
pub fn width((_, tensors): &Column) -> usize {
    tensors.as_ref().map_or(1, Vec::len)
}

impl Slots {
    /// Where the columns are, the first of them at `first`.
    pub fn new(target: &Target, exact: bool, centre: Vector, first: usize) -> Self {
        let walls = target.prior().has_walls();
        let tensors = target.layout().tensors().len();
        let by_tensor = !exact && (2..=MOST_TENSORS).contains(&tensors);
        let mut next = first;
        let mut take = |here: bool, width: usize| {
            let at = next;
            next += if here { width } else { 0 };
            here.then_some(at)
        };
        Self {
            centre,
            scale: take(walls, 1),
            tensors: take(by_tensor, tensors),
            tensor_scales: take(by_tensor && walls, tensors),
            probe: take(!exact && !walls, PROBED.len()),
        }
    }
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
