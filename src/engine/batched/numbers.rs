//! Numbers that follow from parameters alone, as observables do, on a device.

use super::OneDevice;
use super::memory::{Buffer, bytes_mut};
use crate::error::Result;
use crate::kernels::device::{Device, ELEMENTS};
use crate::kernels::tensor::Numbers;
use crate::kernels::tensor::device::{Place, Step, run};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Compiled numbers with their memory.
pub(super) struct OnOne<'d> {
    pub of: Arc<Numbers>,
    steps: Vec<Step>,
    memory: BTreeMap<Place, Buffer<'d>>,
    /// Where the numbers of the first chain begin, and how far those of the next are from there.
    at: (usize, usize),
}

impl<'d> OnOne<'d> {
    /// Compile them for so many chains, whose parameters are `dim` numbers apart.
    pub fn new(
        device: &'d dyn Device,
        of: Arc<Numbers>,
        chains: usize,
        dim: usize,
    ) -> Result<Self> {
        let (program, start) = of.on_device();
        let (source, names) = program.kernels();
        if !names.is_empty() {
            device.compile(&format!("{ELEMENTS}\n{source}"), &names)?;
        }
        let plan = program.plan(0, chains, dim);
        let mut memory = BTreeMap::new();
        memory.insert(Place::Constants, Buffer::of(device, program.constants())?);
        memory.insert(Place::Lists, Buffer::of(device, program.lists())?);
        for place in [Place::Shared, Place::Scratch, Place::Addresses] {
            memory.insert(place, Buffer::new(device, plan.bytes_of(place))?);
        }
        Ok(Self {
            at: (start, start + of.count()),
            of,
            steps: plan.prepare,
            memory,
        })
    }

    /// The numbers of every chain.
    pub fn evaluate(&self, all: &OneDevice) -> Result<Vec<Vec<f64>>> {
        run(&self.steps, all.device, all.chains, |place| {
            let own = self.memory.get(&place).map(|b| b.at);
            match place {
                Place::Parameters => Ok(all.params.at),
                _ => own.ok_or_else(|| anyhow::anyhow!("{place:?} has no memory on the device")),
            }
        })?;
        let (start, length) = self.at;
        let mut out = Vec::with_capacity(all.chains);
        for chain in 0..all.chains {
            let mut own = vec![0f32; length - start];
            let from = self.memory[&Place::Shared].at;
            let from = from.offset(4 * (chain * length + start));
            all.device.download(from, bytes_mut(&mut own))?;
            out.push(own.into_iter().map(f64::from).collect());
        }
        Ok(out)
    }
}
