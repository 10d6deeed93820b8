//! Where a target is computed: by kernels of the session's devices, by candle on one of them, or on this machine.

use super::session::Session;
use crate::error::Result;
use crate::kernels::device::Device;
use crate::target::Target;
use std::borrow::Cow;

/// A target where it is computed.
pub(crate) struct Placed<'t> {
    /// The target; candle computes its model on the session's device if that has no kernels for it.
    pub target: Cow<'t, Target>,
    /// Devices whose kernels compute all of it; none where this machine steps its chains.
    pub devices: Option<Vec<Box<dyn Device>>>,
}

impl Session {
    /// A target, ready to be computed on the session's devices if there are some.
    ///
    /// # Errors
    /// If a device does not open, or has neither kernels nor candle for the model.
    pub(crate) fn placed<'t>(&self, target: &'t Target) -> Result<Placed<'t>> {
        let here = Placed {
            target: Cow::Borrowed(target),
            devices: None,
        };
        if target.is_by_candle() {
            return Ok(here);
        }
        let Some(devices) = self.open_device()? else {
            return Ok(here);
        };
        let candle = || match &devices[..] {
            [only] => only.candle(),
            several => anyhow::bail!("candle computes it on one device, not on {}", several.len()),
        };
        Ok(match target.by_candle(&candle)? {
            Some(moved) => {
                self.computes_here(
                    "losses and priors of a model that candle computes there, and the steps of its chains",
                );
                Placed {
                    target: Cow::Owned(moved),
                    devices: None,
                }
            }
            None => Placed {
                devices: Some(devices),
                ..here
            },
        })
    }
}
