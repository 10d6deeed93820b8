//! What executes plans.

use super::{Argument, At, Place, Side, Step};
use crate::Result;
use crate::device::{Arg, Device, Factor, Pointer, Product};

/// Do steps on a device, for so many chains; `at` says where places begin.
pub fn run(
    steps: &[Step],
    device: &dyn Device,
    chains: usize,
    at: impl Fn(Place) -> Result<Pointer>,
) -> Result<()> {
    let pointer = |a: At| {
        let size = if a.place == Place::Addresses { 8 } else { 4 };
        Ok::<_, anyhow::Error>(at(a.place)?.offset(size * a.offset))
    };
    let argument = |a: &Argument| {
        Ok(match a {
            Argument::At(at) => Arg::Pointer(pointer(*at)?),
            Argument::Nowhere => Arg::Pointer(Pointer::NULL),
            Argument::Int(x) => Arg::Int(*x),
            Argument::Long(x) => Arg::Long(*x),
            Argument::Float(x) => Arg::Float(*x),
        })
    };
    let factor = |s: &Side| {
        Ok::<_, anyhow::Error>(Factor {
            data: pointer(s.at)?,
            stride: s.stride,
            transposed: s.transposed,
        })
    };
    for step in steps {
        match step {
            Step::Launch {
                kernel,
                width,
                arguments,
            } => {
                let arguments = arguments.iter().map(argument).collect::<Result<Vec<_>>>()?;
                device.launch(kernel, *width, chains, &arguments)?;
            }
            Step::Multiply {
                shape: [m, n, k],
                sides,
                batch,
                add,
                listed,
            } => device.multiply(&Product {
                m: *m,
                n: *n,
                k: *k,
                a: factor(&sides[0])?,
                b: factor(&sides[1])?,
                out: factor(&sides[2])?,
                batch: *batch,
                add: *add,
                listed: *listed,
            })?,
            Step::Clear(at, count) => {
                let arguments = [
                    Arg::Pointer(pointer(*at)?),
                    Arg::Long(*count as u64),
                    Arg::Float(0.0),
                ];
                device.launch("fill", *count, 1, &arguments)?;
            }
        }
    }
    Ok(())
}
