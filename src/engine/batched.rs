//! All chains of a run on an accelerator: every launch and every product is batched over the chains.
//!
//! Nothing is read back within a step, but for the numbers that a sampler asks for ([`Engine::sum`], [`Engine::energies`]). What a
//! sampler reports is added up on the device until [`Batched::take_info`].

use super::{Engine, Vector};
use crate::dataset::{Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::device::{Arg, Device, Factor, Pointer, Product};
use crate::kernels::map::{Kernel, Reduction};
use crate::model::loss::{Loss, Sums};
use crate::rng::Stream;
use crate::target::network::Dense;
use crate::target::{Rows, Target, Workspace};
use std::collections::HashSet;
use std::ops::Range;

/// Kernels that do not come from samplers.
const STATIC: &str = concat!(
    include_str!("../kernels/device/prelude.cu"),
    include_str!("../kernels/device/network.cu")
);
const STATIC_NAMES: &[&str] = &[
    "draw_indices",
    "gather_f32",
    "gather_i8",
    "gather_labels",
    "copy_rows_f32",
    "copy_rows_i8",
    "copy_labels",
    "bias_activation",
    "times_derivative",
    "add_column_sums",
    "cross_entropy",
    "squared_error_values",
    "squared_error_classes",
    "scale_and_pull",
    "reflect",
    "copy_where",
    "fill",
    "partial_sums",
    "partial_counts",
    "finish_sums",
];

/// Memory of the device; given back when dropped.
struct Buffer<'d> {
    device: &'d dyn Device,
    at: Pointer,
    bytes: usize,
}

impl<'d> Buffer<'d> {
    fn new(device: &'d dyn Device, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(16);
        let at = device.allocate(bytes)?;
        Ok(Self { device, at, bytes })
    }

    fn of<T: Copy>(device: &'d dyn Device, data: &[T]) -> Result<Self> {
        let buffer = Self::new(device, size_of_val(data))?;
        device.upload(bytes(data), buffer.at)?;
        Ok(buffer)
    }

    /// Make it at least this long; what it held is lost.
    fn grow(&mut self, bytes: usize) -> Result<Pointer> {
        if self.bytes < bytes {
            *self = Self::new(self.device, bytes)?;
        }
        Ok(self.at)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.device.release(self.at);
    }
}

/// Numbers as bytes.
fn bytes<T: Copy>(data: &[T]) -> &[u8] {
    // SAFETY: only called with numbers and `Stream`s, which have no padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

fn bytes_mut<T: Copy>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`; any bits are a number.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
}

/// A split on the device.
struct Data<'d> {
    inputs: Buffer<'d>,
    spins: bool,
    targets: Buffer<'d>,
    rows: usize,
    dim: usize,
}

impl<'d> Data<'d> {
    fn new(device: &'d dyn Device, split: &Split) -> Result<Self> {
        let (inputs, spins) = match &split.inputs {
            Inputs::F32(x) => (Buffer::of(device, x)?, false),
            Inputs::I8(x) => (Buffer::of(device, x)?, true),
        };
        let targets = match &split.targets {
            Targets::Classes(l) => Buffer::of(device, l)?,
            Targets::Values { data, .. } => Buffer::of(device, data)?,
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
struct Network<'d> {
    net: Dense,
    splits: Vec<(&'static str, Data<'d>)>,
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
enum Which {
    /// All rows of the split of that number.
    All(usize),
    /// Those drawn into the buffer of indices, from the first split.
    Drawn(usize),
}

/// All chains of a run.
pub struct Batched<'d> {
    device: &'d dyn Device,
    target: &'d Target,
    chains: usize,
    dim: usize,
    params: Buffer<'d>,
    gradient: Buffer<'d>,
    state: Vec<Buffer<'d>>,
    scratch: Vec<Buffer<'d>>,
    network: Option<Network<'d>>,
    centre: Option<Buffer<'d>>,
    compiled: HashSet<&'static str>,
    scalars: Buffer<'d>,
    streams: Buffer<'d>,
    indices: Buffer<'d>,
    partials: Buffer<'d>,
    which: Buffer<'d>,
    /// Sums of the losses (first the chains' losses, then their errors) of the last pass over examples.
    sums: Buffer<'d>,
    /// Examples in that pass.
    rows: usize,
    /// What samplers reported, `[chains, slots]`, summed over steps: on the device, and what was known here.
    info: Buffer<'d>,
    info_here: Vec<f64>,
    slots: usize,
    /// Buffers for targets that have no network.
    work: Workspace,
}

const PARTS: usize = Reduction::PARTIALS;

impl<'d> Batched<'d> {
    /// Put `chains` chains of a target on a device, with as many state vectors and numbers to report as the sampler has.
    pub fn new(
        device: &'d dyn Device,
        target: &'d Target,
        chains: usize,
        vectors: usize,
        slots: usize,
    ) -> Result<Self> {
        let dim = target.dim();
        let vector = || Buffer::new(device, 4 * chains * dim);
        device.compile(STATIC, STATIC_NAMES)?;
        let centre = target.prior().pull().1;
        let mut out = Self {
            device,
            target,
            chains,
            dim,
            params: vector()?,
            gradient: vector()?,
            state: (0..vectors).map(|_| vector()).collect::<Result<_>>()?,
            scratch: Vec::new(),
            network: None,
            centre: match centre {
                [] => None,
                c => Some(Buffer::of(device, c)?),
            },
            compiled: HashSet::new(),
            scalars: Buffer::new(device, 4 * chains * 8)?,
            streams: Buffer::new(device, 20 * chains)?,
            indices: Buffer::new(device, 0)?,
            partials: Buffer::new(device, 8 * chains * PARTS)?,
            which: Buffer::new(device, chains)?,
            sums: Buffer::new(device, 16 * chains)?,
            rows: 1,
            info: Buffer::new(device, 8 * chains * slots)?,
            info_here: vec![0.0; chains * slots],
            slots,
            work: Workspace::default(),
        };
        if let Some(net) = target.potential().dense() {
            out.network = Some(Network::new(device, net, chains)?);
        }
        Ok(out)
    }

    /// Write a vector of all chains, `[chains, N]`.
    pub fn write(&mut self, v: Vector, data: &[f32]) -> Result<()> {
        let at = self.at(v)?;
        self.device.upload(bytes(data), at)
    }

    /// Read a vector of all chains, `[chains, N]`.
    pub fn read(&mut self, v: Vector, data: &mut [f32]) -> Result<()> {
        let at = self.at(v)?;
        self.device.download(at, bytes_mut(data))
    }

    /// What was reported since the last call, summed over steps: `[chains, slots]`.
    pub fn take_info(&mut self) -> Result<Vec<f64>> {
        let mut sums = vec![0f64; self.chains * self.slots];
        self.device.download(self.info.at, bytes_mut(&mut sums))?;
        let zeros = vec![0f64; sums.len()];
        self.device.upload(bytes(&zeros), self.info.at)?;
        for (s, h) in sums.iter_mut().zip(&mut self.info_here) {
            *s += std::mem::take(h);
        }
        Ok(sums)
    }

    /// Sums of losses and errors over a split and its number of rows, per chain; none if the target is not computed on the device.
    pub fn split_sums(&mut self, split: &str) -> Result<Option<(Vec<Sums>, usize)>> {
        let network = self.network.as_ref();
        let found = network.and_then(|n| n.splits.iter().position(|(name, _)| *name == split));
        let Some(k) = found else { return Ok(None) };
        self.pass(Which::All(k), false)?;
        Ok(Some((self.download_sums()?, self.rows)))
    }

    fn at(&mut self, v: Vector) -> Result<Pointer> {
        Ok(match v {
            Vector::Params => self.params.at,
            Vector::Gradient => self.gradient.at,
            Vector::State(k) => self.state[k].at,
            Vector::Scratch(k) => {
                while self.scratch.len() <= k {
                    let bytes = 4 * self.chains * self.dim;
                    self.scratch.push(Buffer::new(self.device, bytes)?);
                }
                self.scratch[k].at
            }
        })
    }

    fn compile(&mut self, name: &'static str, source: impl FnOnce() -> String) -> Result<()> {
        if self.compiled.insert(name) {
            let prelude = include_str!("../kernels/device/prelude.cu");
            self.device
                .compile(&format!("{prelude}\n{}", source()), &[name])?;
        }
        Ok(())
    }

    /// Elements per chain, stride, chains: how kernels of `kernels::map` begin; then the vectors from `range` on.
    fn arguments(&mut self, vectors: &[Vector], range: &Range<usize>) -> Result<Vec<Arg>> {
        let mut args = vec![
            Arg::Long(range.len() as u64),
            Arg::Long(self.dim as u64),
            Arg::Int(self.chains as i32),
        ];
        for v in vectors {
            args.push(Arg::Pointer(self.at(*v)?.add(4 * range.start)));
        }
        Ok(args)
    }

    /// Partial results of a reduction, left on the device.
    fn reduce(
        &mut self,
        reduction: &'static Reduction,
        vectors: &[Vector],
        range: &Range<usize>,
    ) -> Result<()> {
        self.compile(reduction.name, || reduction.cuda())?;
        let mut args = self.arguments(vectors, range)?;
        args.push(Arg::Pointer(self.partials.at));
        self.device
            .launch(reduction.name, PARTS, self.chains, &args)
    }

    /// Add up what `partials` holds, into `out` (one number per chain, `stride` apart).
    fn finish(
        &self,
        parts: usize,
        out: Pointer,
        stride: usize,
        factor: f64,
        add: bool,
    ) -> Result<()> {
        let args = [
            Arg::Pointer(self.partials.at),
            Arg::Int(self.chains as i32),
            Arg::Int(parts as i32),
            Arg::Pointer(out),
            Arg::Long(stride as u64),
            Arg::Long(factor.to_bits()),
            Arg::Int(add.into()),
        ];
        self.device.launch("finish_sums", self.chains, 1, &args)
    }

    fn download_sums(&self) -> Result<Vec<Sums>> {
        let mut both = vec![0f64; 2 * self.chains];
        self.device.download(self.sums.at, bytes_mut(&mut both))?;
        let (losses, errors) = both.split_at(self.chains);
        let sums = losses.iter().zip(errors).map(|(l, e)| Sums {
            loss: *l,
            errors: *e as u64,
        });
        Ok(sums.collect())
    }

    fn prior_energies(&mut self) -> Result<Vec<f64>> {
        // Few numbers per parameter and rarely needed: here, from a copy.
        if self.target.prior().has_walls() || self.centre.is_some() {
            let mut w = vec![0f32; self.chains * self.dim];
            self.read(Vector::Params, &mut w)?;
            let each = w
                .chunks_exact(self.dim)
                .map(|w| self.target.prior().energy(w));
            return Ok(each.collect());
        }
        let half = 0.5 * self.target.prior().pull().0;
        let squares = self.sum(
            &crate::kernels::update::DOT,
            &[Vector::Params, Vector::Params],
            0..self.dim,
        )?;
        Ok(squares.into_iter().map(|s| half * s).collect())
    }

    /// Losses (and gradients) of a target that has no network here: on the host, chain by chain.
    fn on_host(&mut self, drawn: Option<(&[Stream], usize)>, gradient: bool) -> Result<()> {
        let mut w = vec![0f32; self.chains * self.dim];
        let mut g = vec![0f32; w.len()];
        self.read(Vector::Params, &mut w)?;
        let (mut losses, mut errors) = (Vec::new(), Vec::new());
        for (c, (w, g)) in w.chunks(self.dim).zip(g.chunks_mut(self.dim)).enumerate() {
            let mut indices = Vec::new();
            let rows = match drawn {
                None => Rows::All,
                Some((streams, batch)) => {
                    indices.resize(batch, 0);
                    streams[c].indices(self.target.examples(), &mut indices);
                    Rows::Indices(&indices)
                }
            };
            let g = gradient.then_some(g);
            let sums = self.target.potential().sums(w, rows, g, &mut self.work)?;
            losses.push(sums.loss);
            errors.push(sums.errors as f64);
        }
        if gradient {
            self.write(Vector::Gradient, &g)?;
        }
        losses.extend(errors);
        self.device.upload(bytes(&losses), self.sums.at)
    }

    /// Sums of losses over rows, and with `gradient` the summed gradients.
    fn pass(&mut self, which: Which, gradient: bool) -> Result<()> {
        let Some(mut network) = self.network.take() else {
            return self.on_host(None, gradient);
        };
        let result = network.pass(self, which, gradient);
        self.rows = match which {
            Which::All(split) => network.splits[split].1.rows,
            Which::Drawn(rows) => rows,
        };
        self.network = Some(network);
        result
    }

    /// From the summed loss gradient to ∇U.
    fn finish_gradient(&mut self) -> Result<()> {
        let scale = (self.target.scale() / self.rows as f64) as f32;
        let precision = self.target.prior().pull().0 as f32;
        let args = [
            Arg::Pointer(self.gradient.at),
            Arg::Pointer(self.params.at),
            Arg::Int(self.chains as i32),
            Arg::Long(self.dim as u64),
            Arg::Long(self.dim as u64),
            Arg::Float(scale),
            Arg::Float(precision),
            Arg::Pointer(self.centre.as_ref().map_or(Pointer::NULL, |c| c.at)),
        ];
        self.device
            .launch("scale_and_pull", self.dim, self.chains, &args)
    }
}

impl<'d> Network<'d> {
    fn new(device: &'d dyn Device, net: Dense, chains: usize) -> Result<Self> {
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

    fn pass(&mut self, all: &Batched, which: Which, gradient: bool) -> Result<()> {
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
        Ok(())
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
        let (device, chains, rows) = (all.device, all.chains, range.len());
        let (c, r) = (Arg::Int(chains as i32), Arg::Int(rows as i32));
        let stride = Arg::Long(all.dim as u64);
        self.fetch(all, which, range)?;
        let layers = self.net.layers.clone();
        for (l, layer) in layers.iter().enumerate() {
            let n = layer.fan_out;
            let out = self.activations[l].grow(4 * chains * rows * n)?;
            let before = if layer.activation.needs_input() {
                self.before[l].grow(4 * chains * rows * n)?
            } else {
                Pointer::NULL
            };
            device.multiply(&Product {
                m: rows,
                n,
                k: layer.fan_in,
                a: Factor {
                    data: if l == 0 {
                        self.inputs.at
                    } else {
                        self.activations[l - 1].at
                    },
                    stride: rows * layer.fan_in,
                    transposed: false,
                },
                b: Factor {
                    data: all.params.at.add(4 * layer.weight.start),
                    stride: all.dim,
                    transposed: true,
                },
                out: Factor {
                    data: out,
                    stride: rows * n,
                    transposed: false,
                },
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
                c,
                r,
                Arg::Int(n as i32),
                Arg::Pointer(all.params.at),
                stride,
                Arg::Long(bias),
                Arg::Int(layer.activation as i32),
                Arg::Pointer(before),
            ];
            device.launch("bias_activation", rows * n, chains, &args)?;
        }
        self.loss(all, rows, add)?;
        if !gradient {
            return Ok(());
        }
        for (l, layer) in layers.iter().enumerate().rev() {
            let n = layer.fan_out;
            let delta = self.deltas[l].at;
            let args = [
                Arg::Pointer(delta),
                c,
                r,
                Arg::Int(n as i32),
                Arg::Pointer(self.activations[l].at),
                Arg::Pointer(self.before[l].at),
                Arg::Int(layer.activation as i32),
            ];
            device.launch("times_derivative", rows * n, chains, &args)?;
            let delta_rows = |transposed| Factor {
                data: delta,
                stride: rows * n,
                transposed,
            };
            device.multiply(&Product {
                m: n,
                n: layer.fan_in,
                k: rows,
                a: delta_rows(true),
                b: Factor {
                    data: if l == 0 {
                        self.inputs.at
                    } else {
                        self.activations[l - 1].at
                    },
                    stride: rows * layer.fan_in,
                    transposed: false,
                },
                out: Factor {
                    data: all.gradient.at.add(4 * layer.weight.start),
                    stride: all.dim,
                    transposed: false,
                },
                batch: chains,
                add: true,
            })?;
            if !layer.bias.is_empty() {
                let args = [
                    Arg::Pointer(delta),
                    c,
                    r,
                    Arg::Int(n as i32),
                    Arg::Pointer(all.gradient.at),
                    stride,
                    Arg::Long(layer.bias.start as u64),
                ];
                device.launch("add_column_sums", n, chains, &args)?;
            }
            if l > 0 {
                let next = self.deltas[l - 1].grow(4 * chains * rows * layer.fan_in)?;
                device.multiply(&Product {
                    m: rows,
                    n: layer.fan_in,
                    k: n,
                    a: delta_rows(false),
                    b: Factor {
                        data: all.params.at.add(4 * layer.weight.start),
                        stride: all.dim,
                        transposed: false,
                    },
                    out: Factor {
                        data: next,
                        stride: rows * layer.fan_in,
                        transposed: false,
                    },
                    batch: chains,
                    add: false,
                })?;
            }
        }
        Ok(())
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
        let name = match (self.net.loss, self.classes) {
            (Loss::CrossEntropy, _) => "cross_entropy",
            (Loss::SquaredError, true) => "squared_error_classes",
            (Loss::SquaredError, false) => "squared_error_values",
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
        all.finish(parts, all.sums.at, 1, 1.0, add)?;
        device.launch(
            "partial_counts",
            parts,
            chains,
            &[Arg::Pointer(errors), c, r, p, partials],
        )?;
        all.finish(parts, all.sums.at.add(8 * chains), 1, 1.0, add)
    }
}

impl Engine for Batched<'_> {
    fn chains(&self) -> usize {
        self.chains
    }

    fn target(&self) -> &Target {
        self.target
    }

    fn minibatch_gradient(&mut self, streams: &[Stream], batch: usize) -> Result<()> {
        if self.network.is_none() {
            self.rows = batch;
            self.on_host(Some((streams, batch)), true)?;
        } else {
            self.device.upload(bytes(streams), self.streams.at)?;
            let indices = self.indices.grow(4 * self.chains * batch)?;
            let args = [
                Arg::Int(self.target.examples() as u32 as i32),
                Arg::Int(batch as i32),
                Arg::Pointer(self.streams.at),
                Arg::Int(self.chains as i32),
                Arg::Pointer(indices),
            ];
            self.device
                .launch("draw_indices", batch.div_ceil(4), self.chains, &args)?;
            self.pass(Which::Drawn(batch), true)?;
        }
        self.finish_gradient()
    }

    fn gradient(&mut self) -> Result<()> {
        self.rows = self.target.examples();
        self.pass(Which::All(0), true)?;
        self.finish_gradient()
    }

    fn energies(&mut self) -> Result<Vec<f64>> {
        let sums = self.download_sums()?;
        let priors = self.prior_energies()?;
        let total = |(s, r)| self.target.energies_from(s, r).total;
        Ok(sums.into_iter().zip(priors).map(total).collect())
    }

    fn map(
        &mut self,
        kernel: &'static Kernel,
        vectors: &[Vector],
        range: Range<usize>,
        scalars: &[f32],
        streams: &[Stream],
    ) -> Result<()> {
        self.compile(kernel.name, || kernel.cuda())?;
        let mut args = self.arguments(vectors, &range)?;
        let at = self.scalars.grow(size_of_val(scalars))?;
        self.device.upload(bytes(scalars), at)?;
        if !streams.is_empty() {
            self.device.upload(bytes(streams), self.streams.at)?;
        }
        args.extend([Arg::Pointer(at), Arg::Pointer(self.streams.at)]);
        // A thread does four elements of a block of 64.
        let width = range.len().div_ceil(64) * 16;
        self.device.launch(kernel.name, width, self.chains, &args)
    }

    fn sum(
        &mut self,
        sum: &'static Reduction,
        vectors: &[Vector],
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        self.reduce(sum, vectors, &range)?;
        let mut partials = vec![0f64; self.chains * PARTS];
        self.device
            .download(self.partials.at, bytes_mut(&mut partials))?;
        let finish = |p: &[f64]| sum.finish(p.iter().copied());
        Ok(partials.chunks_exact(PARTS).map(finish).collect())
    }

    fn copy(&mut self, from: Vector, to: Vector, which: &[bool]) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let (from, to) = (self.at(from)?, self.at(to)?);
        if which.iter().all(|w| *w) {
            return self.device.copy(from, to, 4 * self.chains * self.dim);
        }
        let which: Vec<u8> = which.iter().map(|w| (*w).into()).collect();
        self.device.upload(&which, self.which.at)?;
        let args = [
            Arg::Pointer(from),
            Arg::Pointer(to),
            Arg::Long(self.dim as u64),
            Arg::Int(self.chains as i32),
            Arg::Pointer(self.which.at),
        ];
        self.device
            .launch("copy_where", self.dim, self.chains, &args)
    }

    fn reflect(&mut self, momentum: Option<Vector>) -> Result<()> {
        let momentum = match momentum {
            Some(v) => self.at(v)?,
            None => Pointer::NULL,
        };
        for (range, half) in self.target.prior().walls() {
            let args = [
                Arg::Pointer(self.params.at),
                Arg::Pointer(momentum),
                Arg::Int(self.chains as i32),
                Arg::Long(self.dim as u64),
                Arg::Long(range.start as u64),
                Arg::Long(range.len() as u64),
                Arg::Float(*half),
            ];
            self.device
                .launch("reflect", range.len(), self.chains, &args)?;
        }
        Ok(())
    }

    fn report_sum(
        &mut self,
        slot: usize,
        sum: &'static Reduction,
        vectors: &[Vector],
        factor: f64,
    ) -> Result<()> {
        let all = 0..self.dim;
        self.reduce(sum, vectors, &all)?;
        self.finish(PARTS, self.info.at.add(8 * slot), self.slots, factor, true)
    }

    fn report_loss(&mut self, slot: usize) -> Result<()> {
        let args = [
            Arg::Pointer(self.sums.at),
            Arg::Int(self.chains as i32),
            Arg::Int(1),
            Arg::Pointer(self.info.at.add(8 * slot)),
            Arg::Long(self.slots as u64),
            Arg::Long((1.0 / self.rows as f64).to_bits()),
            Arg::Int(1),
        ];
        self.device.launch("finish_sums", self.chains, 1, &args)
    }

    fn report(&mut self, slot: usize, values: &[f64]) -> Result<()> {
        for (c, v) in values.iter().enumerate() {
            self.info_here[c * self.slots + slot] += v;
        }
        Ok(())
    }
}
