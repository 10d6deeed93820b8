//! Losses on a device.

use super::data::Data;
use super::memory::Buffer;
use super::{OneDevice, PARTS};
use crate::error::Result;
use crate::kernels::device::{Arg, Device, ELEMENTS, LOSSES, Pointer};
use crate::model::loss::Loss;
use std::ops::Range;

/// The kernel of a loss that is a formula.
const FORMULA: &str = "formula_loss";

/// A loss, and what it makes of a tile.
pub(super) struct Losses<'d> {
    loss: Loss,
    /// Positions of a row.
    pub positions: usize,
    /// Outputs of a position.
    outputs: usize,
    /// Where its own parameters are.
    own: Range<usize>,
    /// Targets and weights of the rows.
    pub targets: Buffer<'d>,
    pub weights: Buffer<'d>,
    /// The loss of every position.
    pub each: Buffer<'d>,
    errors: Buffer<'d>,
    /// Its derivatives with respect to its own parameters.
    slopes: Buffer<'d>,
}

/// Where a loss finds the rest: outputs, their gradient (nowhere if none is wanted), parameters and their gradient, and numbers from those of one chain to
/// those of the next.
pub(super) struct Places {
    pub outputs: Pointer,
    pub delta: Pointer,
    pub parameters: Pointer,
    pub gradient: Pointer,
    pub dim: usize,
}

impl<'d> Losses<'d> {
    /// A loss of so many positions and outputs, of labels or of numbers.
    ///
    /// # Errors
    /// If no device computes it.
    pub fn new(
        device: &'d dyn Device,
        loss: Loss,
        [positions, outputs]: [usize; 2],
        own: Range<usize>,
        labels: bool,
    ) -> Result<Self> {
        if let Loss::Formula(f) = &loss {
            let source = format!("{ELEMENTS}\n{LOSSES}\n{}", f.kernel(FORMULA, labels)?);
            device.compile(&source, &[FORMULA])?;
        }
        let empty = || Buffer::new(device, 0);
        Ok(Self {
            loss,
            positions,
            outputs,
            own,
            targets: empty()?,
            weights: empty()?,
            each: empty()?,
            errors: empty()?,
            slopes: empty()?,
        })
    }

    /// Bytes per row.
    pub fn bytes(&self) -> usize {
        (12 + 8 * self.own.len()) * self.positions + 4
    }

    /// Losses of a tile, added to the chains' sums, and the gradient with respect to the outputs.
    pub fn evaluate(
        &mut self,
        all: &OneDevice,
        data: &Data,
        rows: usize,
        at: &Places,
        add: bool,
    ) -> Result<()> {
        let chains = all.chains;
        let count = rows * self.positions;
        self.each.grow(8 * chains * count)?;
        self.errors.grow(4 * chains * count)?;
        self.slopes.grow(8 * chains * count * self.own.len())?;
        self.launch(all, data, count, at)?;
        let sizes = [chains, count].map(|n| Arg::Int(n as i32));
        if at.delta != Pointer::NULL && !self.own.is_empty() {
            let gradient = at.gradient.offset(4 * self.own.start);
            let args = [
                Arg::Pointer(self.slopes.at),
                sizes[0],
                sizes[1],
                Arg::Int(self.own.len() as i32),
                Arg::Pointer(gradient),
                Arg::Long(at.dim as u64),
            ];
            all.device
                .launch("add_slopes", self.own.len(), chains, &args)?;
        }
        let parts = count.min(PARTS);
        let share = 1.0 / self.positions as f64;
        let sums = all.sums.at;
        for (name, from, out) in [
            ("partial_sums", self.each.at, sums),
            ("partial_counts", self.errors.at, sums.offset(8 * chains)),
        ] {
            let partials = all.partials.at;
            let args = [
                Arg::Pointer(from),
                sizes[0],
                sizes[1],
                Arg::Int(parts as i32),
                Arg::Pointer(partials),
            ];
            all.device.launch(name, parts, chains, &args)?;
            let to = (out, 1, add);
            all.finish((partials, parts), to, share, (0, Pointer::NULL))?;
        }
        Ok(())
    }

    /// The loss of every position of every row.
    fn launch(&self, all: &OneDevice, data: &Data, count: usize, at: &Places) -> Result<()> {
        let int = |n: usize| Arg::Int(n as i32);
        let name = match (&self.loss, data.target_kind) {
            (Loss::CrossEntropy, _) => "cross_entropy",
            (Loss::SquaredError, "labels") => "squared_error_classes",
            (Loss::SquaredError, _) => "squared_error_values",
            (Loss::Formula(_), _) => FORMULA,
        };
        let mut args = vec![Arg::Pointer(at.outputs), int(all.chains), int(count)];
        if name != FORMULA {
            args.push(int(self.outputs));
        }
        let weights = match data.weights {
            Some(_) => self.weights.at,
            None => Pointer::NULL,
        };
        args.extend([
            int(self.positions),
            Arg::Pointer(self.targets.at),
            Arg::Pointer(weights),
        ]);
        if name == FORMULA {
            let own = at.parameters.offset(4 * self.own.start);
            args.extend([Arg::Pointer(own), Arg::Long(at.dim as u64)]);
        }
        args.extend([at.delta, self.each.at, self.errors.at].map(Arg::Pointer));
        if name == FORMULA {
            args.push(Arg::Pointer(self.slopes.at));
        }
        all.device.launch(name, count, all.chains, &args)
    }
}
