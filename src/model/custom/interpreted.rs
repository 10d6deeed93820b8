//! A custom model whose function is called at every step, with numbers.

use super::Parameters;
use crate::error::Result;
use crate::kernels::tensor::Shape;
use crate::model::{Layout, Model};
use crate::rng::{Purpose, Stream};
use anyhow::ensure;
use candle_core::{Device, Tensor};
use std::sync::Arc;

/// The outputs from the parameters, in their order, and the inputs `[rows, inputs]`; differentiable.
pub type Forward = Arc<dyn Fn(&[Tensor], &Tensor) -> Result<Tensor> + Send + Sync>;

/// A model that is a function of candle tensors; gradients are those of candle.
pub struct Interpreted {
    parameters: Parameters,
    forward: Forward,
    inputs: usize,
    outputs: usize,
}

/// Rows that the function is tried with.
const ROWS: usize = 3;

impl Interpreted {
    /// The function is called once, to see how many outputs there are.
    pub fn new(parameters: Parameters, inputs: usize, forward: Forward) -> Result<Self> {
        let mut out = Self {
            parameters,
            forward,
            inputs,
            outputs: 1,
        };
        let w = out.initialise(Stream::new(1, Purpose::Initialise, 0, 0));
        let w = Tensor::from_slice(&w, w.len(), &Device::Cpu)?;
        let x: Vec<f32> = (0..ROWS * inputs).map(|i| (i % 7) as f32 / 7.0).collect();
        let x = Tensor::from_slice(&x, (ROWS, inputs), &Device::Cpu)?;
        let found = (out.forward)(&out.parameters.cut(&w)?, &x)?;
        let shape = Shape::fixed(found.dims());
        ensure!(
            shape.dims.len() == 2 && shape.dims[0] == ROWS,
            "model::custom: for {ROWS} rows forward gives a tensor of shape {shape}, but must give [rows, outputs]"
        );
        out.outputs = shape.dims[1];
        Ok(out)
    }
}

impl Model for Interpreted {
    fn describe(&self) -> String {
        format!(
            "{}, {} inputs, {} outputs, interpreted at every step, N = {}",
            self.parameters.describe(),
            self.inputs,
            self.outputs,
            self.layout().len()
        )
    }

    fn layout(&self) -> &Layout {
        self.parameters.layout()
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.parameters.draw(stream)
    }

    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor> {
        let wrong = |e: anyhow::Error| candle_core::Error::Msg(format!("{e:#}"));
        let out = (self.forward)(&self.parameters.cut(params)?, inputs).map_err(wrong)?;
        let rows = inputs.dims()[0];
        if out.dims() != [rows, self.outputs] {
            let shape = Shape::fixed(out.dims());
            candle_core::bail!(
                "model::custom: for {rows} rows forward gives a tensor of shape {shape}, not [{rows}, {}] as before",
                self.outputs
            );
        }
        Ok(out)
    }
}
