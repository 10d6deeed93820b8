//! Models: what a parameter vector computes.
//!
//! [`Model`] is the contract and [`REGISTRY`] the list of kinds. A model sees one *tile* of inputs at a time: [`Model::forward`]
//! computes the outputs and keeps what the gradient needs in a [`Scratch`], [`Model::backward`] adds the gradient of
//! `Σ outputs·delta` to a buffer. Losses live in [`loss`] and know no model. A model that only has
//! [`Model::forward_tensor`] gets both from candle's autograd.

pub mod autograd;
pub mod deep_linear;
pub mod initialise;
pub mod loss;
pub mod mlp;

use crate::error::Result;
use crate::options::Entry;
use crate::rng::Stream;
use candle_core::Tensor;
use std::ops::Range;
use std::sync::Arc;

/// One named tensor within the flat parameter vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name, as in the safetensors files.
    pub name: String,
    /// Shape, row-major.
    pub shape: Vec<usize>,
    /// Where it is in the flat vector.
    pub range: Range<usize>,
}

/// Where each named tensor lies in the flat parameter vector of length N.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
}

impl Layout {
    /// Lay tensors out one after the other.
    pub fn new(tensors: impl IntoIterator<Item = (String, Vec<usize>)>) -> Self {
        let mut at = 0;
        let tensors = tensors
            .into_iter()
            .map(|(name, shape)| {
                let range = at..at + shape.iter().product::<usize>();
                at = range.end;
                TensorSpec { name, shape, range }
            })
            .collect();
        Self { tensors }
    }

    /// N, the number of parameters.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |t| t.range.end)
    }

    /// Whether there is no parameter at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tensors in order.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// The tensor of that name; the error lists the names there are.
    pub fn tensor(&self, name: &str) -> Result<&TensorSpec> {
        self.tensors.iter().find(|t| t.name == name).ok_or_else(|| {
            let names: Vec<_> = self.tensors.iter().map(|t| t.name.as_str()).collect();
            anyhow::anyhow!(
                "the model has no tensor '{name}'; it has {}",
                names.join(", ")
            )
        })
    }
}

/// Buffers of one thread for one tile of rows; grown on first use, then reused.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Rows of inputs, `[rows, inputs]`.
    pub inputs: Vec<f32>,
    /// Outputs of each layer; the last is the model's output `[rows, outputs]`.
    pub activations: Vec<Vec<f32>>,
    /// Inputs of the activations, for those whose derivative needs them.
    pub before: Vec<Vec<f32>>,
    /// Gradient with respect to the outputs of the current layer.
    pub delta: Vec<f32>,
    /// Gradient with respect to its inputs.
    pub next: Vec<f32>,
    /// Per-row numbers of the loss.
    pub row: Vec<f64>,
}

impl Scratch {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let floats = self.inputs.len() + self.delta.len() + self.next.len();
        let layers: usize = self
            .activations
            .iter()
            .chain(&self.before)
            .map(Vec::len)
            .sum();
        4 * (floats + layers) + 8 * self.row.len()
    }
}

/// Make `v` at least `n` long.
pub(crate) fn grow<T: Clone + Default>(v: &mut Vec<T>, n: usize) {
    if v.len() < n {
        v.resize(n, T::default());
    }
}

/// A differentiable function of parameters and inputs.
pub trait Model: Send + Sync {
    /// One line: kind, widths, activation, N.
    fn describe(&self) -> String;

    /// The named tensors of the parameter vector.
    fn layout(&self) -> &Layout;

    /// Components of an input.
    fn inputs(&self) -> usize;

    /// Components of an output.
    fn outputs(&self) -> usize;

    /// Rows that are computed together, so that a tile's activations stay in the L2 cache.
    fn tile_rows(&self) -> usize {
        128
    }

    /// Initial parameters, of length N.
    fn initialise(&self, stream: Stream) -> Vec<f32>;

    /// Outputs `[rows, outputs]` of candle tensors: params `[N]`, inputs `[rows, inputs]`. Differentiable.
    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor>;

    /// Compute the outputs of `scratch.inputs` into the last of `scratch.activations`.
    fn forward(&self, params: &[f32], rows: usize, scratch: &mut Scratch) -> Result<()> {
        autograd::forward(self, params, rows, scratch)
    }

    /// Add to `grad` the gradient of `Σ outputs·scratch.delta`, after [`Model::forward`] on the same tile.
    fn backward(
        &self,
        params: &[f32],
        rows: usize,
        scratch: &mut Scratch,
        grad: &mut [f32],
    ) -> Result<()> {
        autograd::backward(self, params, rows, scratch, grad)
    }
}

/// Every kind of model a script can build.
pub const REGISTRY: &[Entry<Arc<dyn Model>>] = &[mlp::ENTRY, deep_linear::ENTRY];
