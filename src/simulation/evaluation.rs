//! Losses at one point: on the session's device if it has one.

use crate::engine::batched::Batched;
use crate::engine::report::Slots;
use crate::engine::{Engine, Vector};
use crate::error::Result;
use crate::kernels::device::Device;
use crate::target::{Target, Workspace};

/// A target, to be evaluated at a point.
pub(super) struct Evaluation<'a> {
    target: &'a Target,
    w: &'a [f32],
    device: Option<Batched<'a>>,
    work: Workspace,
}

impl<'a> Evaluation<'a> {
    /// On the first of these devices, or on so many threads.
    pub fn new(
        target: &'a Target,
        w: &'a [f32],
        devices: Option<&'a [Box<dyn Device>]>,
        threads: usize,
    ) -> Result<Self> {
        let on_device = |d| {
            let mut device = Batched::new(d, target, 1, 0, &Slots::NONE)?;
            device.write(Vector::Params, w)?;
            Ok::<_, anyhow::Error>(device)
        };
        Ok(Self {
            target,
            w,
            device: devices.map(on_device).transpose()?,
            work: Workspace::new(threads),
        })
    }

    /// L, the mean loss over all examples.
    pub fn loss(&mut self) -> Result<f64> {
        match &mut self.device {
            Some(device) => {
                device.evaluate()?;
                device.mean_loss()
            }
            None => Ok(self.target.energies(self.w, &mut self.work)?.loss),
        }
    }

    /// The mean loss over some examples.
    pub fn loss_of(&mut self, rows: &[u32]) -> Result<f64> {
        match &mut self.device {
            Some(device) => {
                device.losses_of(rows)?;
                device.mean_loss()
            }
            None => self.target.minibatch_loss(self.w, rows, &mut self.work),
        }
    }
}
