//! Networks of dense layers on a device: forward and backward passes of all chains at once.

use super::memory::Buffer;
use super::{Batched, PARTS};
use crate::dataset::{Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::device::{Arg, Device, Factor, Pointer, Product};
use crate::model::Dense;
use crate::model::loss::Loss;
use crate::target::network;
use std::ops::Range;

/// A split on the device.
pub(super) struct Data<'d> {
    inputs: Buffer<'d>,
    spins: bool,
    targets: Buffer<'d>,
    /// Number of rows.
    pub rows: usize,
    dim: usize,
}

impl<'d> Data<'d> {
    fn new(device: &'d dyn Device, split: &Split) -> Result<Self> {
        let (inputs, spins) = match &split.inputs {
            Inputs::F32(x) => (Buffer::of(device, x)?, false),
            Inputs::I8(x) => (Buffer::of(device, x)?, true),
            Inputs::Made(_) | Inputs::Mapped(_) | Inputs::Varied(_) => {
                anyhow::bail!("rows that are made or read when they are needed are not on a device")
            }
            Inputs::Tokens(x) => {
                let x: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                (Buffer::of(device, &x)?, false)
            }
        };
        let targets = match &split.targets {
            Targets::Classes(l) | Targets::Sequence { labels: l, .. } => Buffer::of(device, l)?,
            Targets::Values { data, .. } => Buffer::of(device, data)?,
            Targets::Made(_) => {
                anyhow::bail!("rows that are made when they are read are not on a device")
            }
        };
        Ok(Self {
            inputs,
            spins,
            targets,
            rows: split.rows,
            dim: split.dim,
        })
    }
}

/// A network of dense layers on the device, with its data.
pub(super) struct Network<'d> {
    net: network::Dense,
    /// Training split first.
    pub splits: Vec<(&'static str, Data<'d>)>,
    classes: bool,
    /// Rows of all chains that are computed together.
    tile: usize,
    inputs: Buffer<'d>,
    targets: Buffer<'d>,
    activations: Vec<Buffer<'d>>,
    before: Vec<Buffer<'d>>,
    deltas: Vec<Buffer<'d>>,
    row_losses: Buffer<'d>,
    row_errors: Buffer<'d>,
}

/// Which rows a gradient is over.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// All rows of the split of that number.
    All(usize),
    /// Those drawn into the buffer of indices, from the first split.
    Drawn(usize),
}

/// W of a layer, or its gradient, of all chains.
fn weights(all: &Batched, vector: &Buffer, layer: &Dense) -> Factor {
    Factor::new(vector.at.offset(4 * layer.weight.start), all.dim)
}

/// W as [fan_in, fan_out], or the other way round.
fn by_input(all: &Batched, layer: &Dense, input: bool) -> Factor {
    let weights = weights(all, &all.params, layer);
    match layer.flipped == input {
        true => weights,
        false => weights.transposed(),
    }
}

impl<'d> Network<'d> {
    /// Put layers and data on a device, for so many chains.
    pub fn new(device: &'d dyn Device, net: network::Dense, chains: usize) -> Result<Self> {
        let mut splits = Vec::new();
        for (name, split) in net.dataset.splits() {
            splits.push((name, Data::new(device, split)?));
        }
        let per_row: usize =
            3 * net.layers.iter().map(|l| l.fan_out).sum::<usize>() + splits[0].1.dim;
        // A quarter of what is free for what is kept of rows; at least enough rows for efficient products.
        let most = device.free_memory()? as usize / 4 / (4 * per_row * chains).max(1);
        let empty = || Buffer::new(device, 0);
        let layers = || {
            net.layers
                .iter()
                .map(|_| empty())
                .collect::<Result<Vec<_>>>()
        };
        Ok(Self {
            splits,
            classes: net.dataset.classes > 0,
            tile: most.clamp(64, 1 << 16),
            inputs: empty()?,
            targets: empty()?,
            activations: layers()?,
            before: layers()?,
            deltas: layers()?,
            row_losses: empty()?,
            row_errors: empty()?,
            net,
        })
    }

    /// Sums of the losses over rows, and with `gradient` the summed gradients, of all chains; returns the number of rows.
    pub fn pass(&mut self, all: &Batched, which: Which, gradient: bool) -> Result<usize> {
        let rows = match which {
            Which::All(split) => self.splits[split].1.rows,
            Which::Drawn(rows) => rows,
        };
        if gradient {
            let all_of_it = (all.chains * all.dim) as u64;
            let args = [
                Arg::Pointer(all.gradient.at),
                Arg::Long(all_of_it),
                Arg::Float(0.0),
            ];
            all.device.launch("fill", all_of_it as usize, 1, &args)?;
        }
        // Drawn rows are numbered `[chains, rows]`, and stay together.
        let tiles = match which {
            Which::All(_) => rows.div_ceil(self.tile),
            Which::Drawn(_) => 1,
        };
        for k in 0..tiles {
            let range = k * rows / tiles..(k + 1) * rows / tiles;
            self.tile(all, which, range, k > 0, gradient)?;
        }
        Ok(rows)
    }

    /// One tile of rows: forward, loss, and with `gradient` backward.
    fn tile(
        &mut self,
        all: &Batched,
        which: Which,
        range: Range<usize>,
        add: bool,
        gradient: bool,
    ) -> Result<()> {
        let rows = range.len();
        self.fetch(all, which, range)?;
        let layers = self.net.layers.clone();
        for (l, layer) in layers.iter().enumerate() {
            self.forward(all, rows, l, layer)?;
        }
        self.loss(all, rows, add)?;
        if gradient {
            for (l, layer) in layers.iter().enumerate().rev() {
                self.backward(all, rows, l, layer)?;
            }
        }
        Ok(())
    }

    /// Outputs of layer `l` for a tile.
    fn forward(&mut self, all: &Batched, rows: usize, l: usize, layer: &Dense) -> Result<()> {
        let (chains, n) = (all.chains, layer.fan_out);
        let out = self.activations[l].grow(4 * chains * rows * n)?;
        let before = if layer.activation.needs_input() {
            self.before[l].grow(4 * chains * rows * n)?
        } else {
            Pointer::NULL
        };
        all.device.multiply(&Product {
            m: rows,
            n,
            k: layer.fan_in,
            a: self.below(l, rows * layer.fan_in),
            b: by_input(all, layer, true),
            out: Factor::new(out, rows * n),
            batch: chains,
            add: false,
        })?;
        let bias = if layer.bias.is_empty() {
            u64::MAX
        } else {
            layer.bias.start as u64
        };
        let args = [
            Arg::Pointer(out),
            Arg::Int(chains as i32),
            Arg::Int(rows as i32),
            Arg::Int(n as i32),
            Arg::Pointer(all.params.at),
            Arg::Long(all.dim as u64),
            Arg::Long(bias),
            Arg::Int(layer.activation as i32),
            Arg::Pointer(before),
        ];
        all.device
            .launch("bias_activation", rows * n, chains, &args)
    }

    /// Gradients of the parameters of layer `l`, and with respect to what it reads of a tile.
    fn backward(&mut self, all: &Batched, rows: usize, l: usize, layer: &Dense) -> Result<()> {
        let (device, chains, n) = (all.device, all.chains, layer.fan_out);
        let delta = self.deltas[l].at;
        let [d, c, r, columns] = [
            Arg::Pointer(delta),
            Arg::Int(chains as i32),
            Arg::Int(rows as i32),
            Arg::Int(n as i32),
        ];
        let args = [
            d,
            c,
            r,
            columns,
            Arg::Pointer(self.activations[l].at),
            Arg::Pointer(self.before[l].at),
            Arg::Int(layer.activation as i32),
        ];
        device.launch("times_derivative", rows * n, chains, &args)?;
        let deltas = Factor::new(delta, rows * n);
        let below = self.below(l, rows * layer.fan_in);
        let (m, width, a, b) = match layer.flipped {
            false => (n, layer.fan_in, deltas, below),
            true => (layer.fan_in, n, below, deltas),
        };
        device.multiply(&Product {
            m,
            n: width,
            k: rows,
            a: a.transposed(),
            b,
            out: weights(all, &all.gradient, layer),
            batch: chains,
            add: true,
        })?;
        if !layer.bias.is_empty() {
            let gradient = Arg::Pointer(all.gradient.at);
            let (stride, bias) = (all.dim as u64, layer.bias.start as u64);
            let args = [
                d,
                c,
                r,
                columns,
                gradient,
                Arg::Long(stride),
                Arg::Long(bias),
            ];
            device.launch("add_column_sums", n, chains, &args)?;
        }
        if l > 0 {
            let next = self.deltas[l - 1].grow(4 * chains * rows * layer.fan_in)?;
            device.multiply(&Product {
                m: rows,
                n: layer.fan_in,
                k: n,
                a: deltas,
                b: by_input(all, layer, false),
                out: Factor::new(next, rows * layer.fan_in),
                batch: chains,
                add: false,
            })?;
        }
        Ok(())
    }

    /// What layer `l` reads of a tile.
    fn below(&self, l: usize, stride: usize) -> Factor {
        let buffer = match l {
            0 => &self.inputs,
            _ => &self.activations[l - 1],
        };
        Factor::new(buffer.at, stride)
    }

    /// Inputs and targets of a tile.
    fn fetch(&mut self, all: &Batched, which: Which, range: Range<usize>) -> Result<()> {
        let (chains, rows) = (all.chains, range.len());
        let split = match which {
            Which::All(split) => split,
            Which::Drawn(_) => 0,
        };
        let data = &self.splits[split].1;
        let width = self.net.layers.last().map_or(0, |l| l.fan_out);
        let inputs = self.inputs.grow(4 * chains * rows * data.dim)?;
        let targets = self
            .targets
            .grow(if self.classes { 2 } else { 4 * width } * chains * rows)?;
        let (c, r) = (Arg::Int(chains as i32), Arg::Int(rows as i32));
        let drawn = matches!(which, Which::Drawn(_));
        let from = if drawn {
            Arg::Pointer(all.indices.at)
        } else {
            Arg::Long(range.start as u64)
        };
        let name = match (drawn, data.spins) {
            (true, true) => "gather_i8",
            (true, false) => "gather_f32",
            (false, true) => "copy_rows_i8",
            (false, false) => "copy_rows_f32",
        };
        let dim = Arg::Int(data.dim as i32);
        let args = [
            Arg::Pointer(data.inputs.at),
            dim,
            from,
            c,
            r,
            Arg::Pointer(inputs),
        ];
        all.device.launch(name, rows * data.dim, chains, &args)?;
        let (data, out) = (Arg::Pointer(data.targets.at), Arg::Pointer(targets));
        if self.classes {
            let name = if drawn {
                "gather_labels"
            } else {
                "copy_labels"
            };
            all.device
                .launch(name, rows, chains, &[data, from, c, r, out])
        } else {
            let name = if drawn { "gather_f32" } else { "copy_rows_f32" };
            let args = [data, Arg::Int(width as i32), from, c, r, out];
            all.device.launch(name, rows * width, chains, &args)
        }
    }

    /// Losses of a tile, added to the chains' sums, and the gradient with respect to the outputs.
    fn loss(&mut self, all: &Batched, rows: usize, add: bool) -> Result<()> {
        let (device, chains) = (all.device, all.chains);
        let (c, r) = (Arg::Int(chains as i32), Arg::Int(rows as i32));
        let last = self.net.layers.len() - 1;
        let width = self.net.layers[last].fan_out;
        let losses = self.row_losses.grow(8 * chains * rows)?;
        let errors = self.row_errors.grow(4 * chains * rows)?;
        let name = match (&self.net.loss, self.classes) {
            (Loss::CrossEntropy, _) => "cross_entropy",
            (Loss::SquaredError, true) => "squared_error_classes",
            (Loss::SquaredError, false) => "squared_error_values",
            (Loss::Formula(f), _) => anyhow::bail!("no device computes the loss {}", f.describe()),
        };
        let args = [
            Arg::Pointer(self.activations[last].at),
            c,
            r,
            Arg::Int(width as i32),
            Arg::Pointer(self.targets.at),
            Arg::Pointer(self.deltas[last].grow(4 * chains * rows * width)?),
            Arg::Pointer(losses),
            Arg::Pointer(errors),
        ];
        device.launch(name, rows, chains, &args)?;
        let parts = rows.min(PARTS);
        let p = Arg::Int(parts as i32);
        let partials = Arg::Pointer(all.partials.at);
        device.launch(
            "partial_sums",
            parts,
            chains,
            &[Arg::Pointer(losses), c, r, p, partials],
        )?;
        let out = all.sums.at;
        all.finish(
            (all.partials.at, parts),
            (out, 1, add),
            1.0,
            (0, Pointer::NULL),
        )?;
        device.launch(
            "partial_counts",
            parts,
            chains,
            &[Arg::Pointer(errors), c, r, p, partials],
        )?;
        let out = out.offset(8 * chains);
        all.finish(
            (all.partials.at, parts),
            (out, 1, add),
            1.0,
            (0, Pointer::NULL),
        )
    }
}
