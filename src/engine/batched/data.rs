//! Data on a device.

use super::memory::Buffer;
use crate::dataset::{Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::device::Device;

/// A split on the device.
pub(super) struct Data<'d> {
    pub inputs: Buffer<'d>,
    /// What inputs are, as kernels have it in their names: "f32" or "i8".
    pub kind: &'static str,
    pub targets: Buffer<'d>,
    /// "labels" or "f32".
    pub target_kind: &'static str,
    /// Labels or values of a row.
    pub per_row: usize,
    /// A weight per row, if they have some.
    pub weights: Option<Buffer<'d>>,
    /// Number of rows.
    pub rows: usize,
    /// Components of an input.
    pub dim: usize,
}

/// Which rows a pass is over.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// All rows of the split of that number.
    All(usize),
    /// So many of the split of that number, whose numbers are in the buffer of indices, for each chain.
    Given(usize, usize),
}

impl<'d> Data<'d> {
    /// Put a split on a device.
    ///
    /// # Errors
    /// If its rows are nowhere but made or read when they are needed.
    pub fn new(device: &'d dyn Device, split: &Split) -> Result<Self> {
        let (inputs, kind) = match &split.inputs {
            Inputs::F32(x) => (Buffer::of(device, x)?, "f32"),
            Inputs::I8(x) => (Buffer::of(device, x)?, "i8"),
            Inputs::Tokens(_) | Inputs::U8(..) => {
                let mut x = vec![0f32; split.rows * split.dim];
                split.copy(0..split.rows, &mut x);
                (Buffer::of(device, &x)?, "f32")
            }
            Inputs::Made(_) | Inputs::Mapped(_) | Inputs::Varied(_) => {
                anyhow::bail!("rows that are made or read when they are needed are not on a device")
            }
        };
        let (targets, target_kind) = match &split.targets {
            Targets::Classes(l) | Targets::Sequence { labels: l, .. } => {
                (Buffer::of(device, l)?, "labels")
            }
            Targets::Values { data, .. } => (Buffer::of(device, data)?, "f32"),
            Targets::Made(_) => {
                anyhow::bail!("rows that are made when they are read are not on a device")
            }
        };
        let per_row = match target_kind {
            "labels" => split.targets.positions(),
            _ => split.targets.width(),
        };
        let weights = split.weights.as_ref();
        Ok(Self {
            inputs,
            kind,
            targets,
            target_kind,
            per_row,
            weights: weights.map(|w| Buffer::of(device, w)).transpose()?,
            rows: split.rows,
            dim: split.dim,
        })
    }
}
