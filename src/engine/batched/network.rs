//! Networks on a device: forward and backward passes of all chains at once.

use super::OneDevice;
use super::data::{Data, Which};
use super::loss::{Losses, Places};
use super::memory::Buffer;
use crate::error::Result;
use crate::kernels::device::{Arg, Device, ELEMENTS, Pointer};
use crate::kernels::tensor::device::{At, OnDevice, Place, Plan, Step, run};
use crate::target::network::{Accelerated, Free};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

/// Rows of a tile at most.
const ROWS: usize = 1 << 16;

/// A network on the device, with its data.
pub(super) struct Network<'d> {
    pub program: OnDevice,
    /// What is done for tiles of so many rows.
    plans: HashMap<usize, Rc<Plan>>,
    /// Training split first.
    pub splits: Vec<(&'static str, Data<'d>)>,
    pub losses: Losses<'d>,
    /// Rows of each chain that are computed together.
    tile: usize,
    memory: BTreeMap<Place, Buffer<'d>>,
    free: Option<Free>,
}

impl<'d> Network<'d> {
    /// Put a program and its data on a device, for so many chains.
    pub fn new(
        device: &'d dyn Device,
        net: Accelerated,
        chains: usize,
        dim: usize,
    ) -> Result<Self> {
        let program = OnDevice::new(net.program);
        let (source, names) = program.kernels();
        if !names.is_empty() {
            device.compile(&format!("{ELEMENTS}\n{source}"), &names)?;
        }
        let labels = net.dataset.train.values().is_none();
        let sizes = [net.positions, program.outputs() / net.positions];
        let losses = Losses::new(device, net.loss, sizes, net.own, labels)?;
        let mut splits = Vec::new();
        for (name, split) in net.dataset.splits() {
            splits.push((name, Data::new(device, split)?));
        }
        let mut memory = BTreeMap::new();
        memory.insert(Place::Constants, Buffer::of(device, program.constants())?);
        memory.insert(Place::Lists, Buffer::of(device, program.lists())?);
        let dim = match &net.free {
            Some(free) => {
                let all = free.fixed.repeat(chains);
                memory.insert(Place::Parameters, Buffer::of(device, &all)?);
                memory.insert(Place::Gradient, Buffer::new(device, 4 * all.len())?);
                free.fixed.len()
            }
            None => dim,
        };
        let mut out = Self {
            program,
            plans: HashMap::new(),
            losses,
            tile: 1,
            memory,
            splits,
            free: net.free,
        };
        out.tile = out.rows_that_fit(device, chains, dim)?;
        Ok(out)
    }

    /// The most rows of each chain for which there is room: in half of what is free.
    fn rows_that_fit(&self, device: &dyn Device, chains: usize, dim: usize) -> Result<usize> {
        let room = device.free_memory()? as usize / 2;
        let data = &self.splits[0].1;
        let given = 4 * data.dim + 4 * data.per_row + self.losses.bytes();
        // Kernels count the numbers of a chain in 32 bits.
        let widest = self.program.widest().max(data.dim).max(1);
        let most = self.splits.iter().map(|s| s.1.rows).max().unwrap_or(1);
        let mut rows = most.min(ROWS).min((1 << 30) / widest).max(1);
        let bytes = |rows| self.program.plan(rows, chains, dim).bytes() + given * chains * rows;
        while rows > 1 && bytes(rows) > room {
            rows /= 2;
        }
        anyhow::ensure!(
            bytes(rows) <= room,
            "one row of {chains} chains takes {:.1} GiB on the device, which has {:.1} GiB left for that; use fewer chains, or --device cpu",
            bytes(rows) as f64 / (1u64 << 30) as f64,
            room as f64 / (1u64 << 30) as f64
        );
        Ok(rows)
    }

    /// Numbers from the parameters of one chain to those of the next.
    pub fn dim(&self, all: &OneDevice) -> usize {
        self.free.as_ref().map_or(all.dim, |f| f.fixed.len())
    }

    fn plan(&mut self, rows: usize, all: &OneDevice) -> Rc<Plan> {
        let dim = self.dim(all);
        let (program, chains) = (&self.program, all.chains);
        let plan = self.plans.entry(rows);
        plan.or_insert_with(|| Rc::new(program.plan(rows, chains, dim)))
            .clone()
    }

    /// Sums of the losses over rows, and with `gradient` the summed gradients, of all chains; returns the number of rows. `each` sees every tile.
    pub fn pass(
        &mut self,
        all: &OneDevice<'d>,
        which: Which,
        gradient: bool,
        each: &mut dyn FnMut(&Self, Range<usize>) -> Result<()>,
    ) -> Result<usize> {
        let (split, rows) = match which {
            Which::All(split) => (split, self.splits[split].1.rows),
            Which::Given(split, rows) => (split, rows),
        };
        self.take_parameters(all)?;
        if gradient {
            let dim = self.dim(all);
            self.clear(all, Place::Gradient, all.chains * dim)?;
        }
        let tiles = rows.div_ceil(self.tile).max(1);
        for k in 0..tiles {
            let range = k * rows / tiles..(k + 1) * rows / tiles;
            let plan = self.plan(range.len(), all);
            for place in plan.sizes.keys() {
                let bytes = plan.bytes_of(*place);
                match self.memory.get_mut(place) {
                    Some(buffer) => drop(buffer.grow(bytes)?),
                    None => {
                        let buffer = Buffer::new(all.device, bytes)?;
                        self.memory.insert(*place, buffer);
                    }
                }
            }
            if k == 0 {
                self.run(all, &plan.prepare)?;
                if gradient && !plan.finish.is_empty() {
                    self.clear(all, Place::Common, plan.sizes[&Place::Common])?;
                }
            }
            let count = range.len();
            self.fetch(all, which, range.clone())?;
            self.run(all, &plan.forward)?;
            let last = self.program.last();
            let places = Places {
                outputs: self.at(all, Place::Value(last))?,
                delta: match gradient {
                    true => self.at(all, Place::Delta(last))?,
                    false => Pointer::NULL,
                },
                parameters: self.at(all, Place::Parameters)?,
                gradient: self.at(all, Place::Gradient)?,
                dim: self.dim(all),
            };
            let data = &self.splits[split].1;
            self.losses.evaluate(all, data, count, &places, k > 0)?;
            each(self, range)?;
            if gradient {
                self.run(all, &plan.backward)?;
                if k + 1 == tiles {
                    self.run(all, &plan.finish)?;
                }
            }
        }
        if gradient {
            self.give_gradient(all)?;
        }
        Ok(rows)
    }

    /// Where a place of its own begins.
    pub fn memory(&self, place: Place) -> Result<Pointer> {
        let found = self.memory.get(&place).map(|buffer| buffer.at);
        found.ok_or_else(|| anyhow::anyhow!("{place:?} has no memory on the device"))
    }

    /// Where a place begins.
    pub fn at(&self, all: &OneDevice, place: Place) -> Result<Pointer> {
        match place {
            Place::Parameters if self.free.is_none() => Ok(all.params.at),
            Place::Gradient if self.free.is_none() => Ok(all.gradient.at),
            place => self.memory(place),
        }
    }

    fn clear(&self, all: &OneDevice, place: Place, count: usize) -> Result<()> {
        let step = Step::Clear(At { place, offset: 0 }, count);
        self.run(all, &[step])
    }

    fn run(&self, all: &OneDevice, steps: &[Step]) -> Result<()> {
        run(steps, all.device, all.chains, |place| self.at(all, place))
    }

    /// Put those parameters that move where all of them are.
    fn take_parameters(&self, all: &OneDevice) -> Result<()> {
        self.exchange(all, Place::Parameters, all.params.at, true)
    }

    /// Their gradient.
    fn give_gradient(&self, all: &OneDevice) -> Result<()> {
        self.exchange(all, Place::Gradient, all.gradient.at, false)
    }

    fn exchange(&self, all: &OneDevice, place: Place, own: Pointer, into: bool) -> Result<()> {
        let Some(free) = &self.free else {
            return Ok(());
        };
        let whole = self.at(all, place)?;
        for (part, among) in &free.parts {
            let (own, own_dim) = (own.offset(4 * part.start), all.dim as u64);
            let (whole, dim) = (whole.offset(4 * among.start), free.fixed.len() as u64);
            let (from, to) = match into {
                true => ((own, own_dim), (whole, dim)),
                false => ((whole, dim), (own, own_dim)),
            };
            let args = [
                Arg::Pointer(from.0),
                Arg::Long(from.1),
                Arg::Pointer(to.0),
                Arg::Long(to.1),
                Arg::Int(all.chains as i32),
                Arg::Long(part.len() as u64),
            ];
            all.device
                .launch("copy_part", part.len(), all.chains, &args)?;
        }
        Ok(())
    }

    /// Inputs, targets and weights of a tile.
    fn fetch(&mut self, all: &OneDevice<'d>, which: Which, range: Range<usize>) -> Result<()> {
        let (chains, rows) = (all.chains, range.len());
        let split = match which {
            Which::All(split) | Which::Given(split, _) => split,
        };
        let data = &self.splits[split].1;
        let inputs = 4 * chains * rows * data.dim;
        let inputs = match self.memory.get_mut(&Place::Inputs) {
            Some(buffer) => buffer.grow(inputs)?,
            None => {
                let buffer = Buffer::new(all.device, inputs)?;
                self.memory.entry(Place::Inputs).or_insert(buffer).at
            }
        };
        let targets = self.losses.targets.grow(4 * data.per_row * chains * rows)?;
        let mut copies = vec![
            (data.inputs.at, data.kind, data.dim, inputs),
            (data.targets.at, data.target_kind, data.per_row, targets),
        ];
        if let Some(weights) = &data.weights {
            copies.push((
                weights.at,
                "f32",
                1,
                self.losses.weights.grow(4 * chains * rows)?,
            ));
        }
        let (c, r) = (Arg::Int(chains as i32), Arg::Int(rows as i32));
        for (from, kind, dim, to) in copies {
            let (from, dim, to) = (
                Arg::Pointer(from),
                (dim, Arg::Int(dim as i32)),
                Arg::Pointer(to),
            );
            let (name, args) = match (which, kind) {
                (Which::Given(_, m), kind) => {
                    let numbers = Arg::Pointer(all.indices.at.offset(4 * range.start));
                    let args = vec![from, dim.1, numbers, Arg::Int(m as i32), c, r, to];
                    (format!("gather_{kind}"), args)
                }
                (Which::All(_), kind) => {
                    let name = match kind {
                        "labels" => "copy_labels".to_string(),
                        kind => format!("copy_rows_{kind}"),
                    };
                    let start = Arg::Long(range.start as u64);
                    (name, vec![from, dim.1, start, c, r, to])
                }
            };
            all.device.launch(&name, rows * dim.0, chains, &args)?;
        }
        Ok(())
    }
}
