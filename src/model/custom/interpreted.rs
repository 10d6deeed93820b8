//! A custom model whose function is called at every step, with numbers.

use super::Parameters;
use crate::error::Result;
use crate::kernels::tensor::{Program, Shape};
use crate::model::{Layout, Model};
use crate::rng::{Purpose, Stream};
use anyhow::{bail, ensure};
use candle_core::{DType, Device, Tensor};
use std::ops::Range;
use std::sync::Arc;

/// The outputs from the parameters, in their order, and the inputs `[rows, inputs]`; differentiable.
pub type Forward = Arc<dyn Fn(&[Tensor], &Tensor) -> Result<Tensor> + Send + Sync>;

/// A model that is a function of candle tensors; gradients are those of candle.
pub struct Interpreted {
    parameters: Parameters,
    forward: Forward,
    /// What the function follows from, as text.
    definition: String,
    inputs: usize,
    outputs: usize,
}

/// Rows that the function is tried with.
const ROWS: usize = 3;

impl Interpreted {
    /// The function is called once, to see how many outputs there are.
    pub fn new(
        parameters: Parameters,
        inputs: usize,
        definition: String,
        forward: Forward,
    ) -> Result<Self> {
        let mut out = Self {
            parameters,
            forward,
            definition,
            inputs,
            outputs: 1,
        };
        let found = out.probe(0..ROWS)?;
        let shape = Shape::fixed(found.dims());
        ensure!(
            shape.dims.len() == 2 && shape.dims[0] == ROWS,
            "model::custom: for {ROWS} rows forward gives a tensor of shape {shape}, but must give [rows, outputs]"
        );
        out.outputs = shape.dims[1];
        for row in 0..ROWS {
            let alone = out.probe(row..row + 1)?;
            let pairs = [alone.flatten_all()?, found.get(row)?].map(|t| t.to_dtype(DType::F64));
            let [alone, together] = pairs.map(|t| t.and_then(|t| t.to_vec1::<f64>()));
            let (alone, together) = (alone?, together?);
            // Products of matrices of other sizes round otherwise.
            let near = |(a, b): (&f64, &f64)| {
                (a - b).abs() <= 1e-3 * (1.0 + a.abs()) || a.is_nan() && b.is_nan() || a == b
            };
            ensure!(
                alone.len() == together.len() && alone.iter().zip(&together).all(near),
                "model::custom: forward would mix examples: it gives {alone:?} for an example alone, and {together:?} for it among {ROWS}"
            );
        }
        Ok(out)
    }

    /// What the function gives for some rows of numbers that are always the same.
    fn probe(&self, rows: Range<usize>) -> Result<Tensor> {
        let w = self.initialise(Stream::new(1, Purpose::Initialise, 0, 0));
        let w = Tensor::from_slice(&w, w.len(), &Device::Cpu)?;
        let numbers = rows.start * self.inputs..rows.end * self.inputs;
        let x: Vec<f32> = numbers
            .map(|i| (i % 7) as f32 / 7.0 + i as f32 / 50.0)
            .collect();
        let x = Tensor::from_slice(&x, (rows.len(), self.inputs), &Device::Cpu)?;
        Ok((self.forward)(&self.parameters.cut(&w)?, &x)?.detach())
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

    fn program(&self) -> Result<Program> {
        bail!(
            "no device computes a model with `interpret: true`, whose closure is called at every step; leave `interpret` out, so that it is compiled, or take --device cpu"
        )
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        hash.update(self.definition.as_bytes());
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
