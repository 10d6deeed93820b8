//! Models: what a parameter vector computes.
//!
//! [`Model`] is the contract and [`REGISTRY`] the list of kinds. A model sees one [`Tile`] of rows at a time. [`Model::forward`] and
//! [`Model::backward`] work on a [`Block`] of its rows, each on one thread; [`Model::gradient`] then sums over all rows of the tile,
//! split over the parameters. So no thread needs a gradient of its own. Losses live in [`loss`] and know no model. A model that only
//! has [`Model::forward_tensor`] gets all of it from candle's autograd.

pub(crate) mod autograd;
pub(crate) mod custom;
pub mod deep_linear;
pub(crate) mod dense;
pub mod formula;
pub(crate) mod freeze;
pub mod from_candle;
pub mod initialise;
pub mod likelihood;
pub(crate) mod load;
pub mod loss;
pub mod losses;
pub mod mlp;
pub mod named;
pub(crate) mod naming;
pub(crate) mod onnx;
pub mod part;
pub mod place;
pub(crate) mod pretrained;
pub(crate) mod rows;
pub mod support;
pub(crate) mod teacher;
pub mod transformer;

use crate::error::Result;
use crate::kernels::gemm_baseline::Product;
use crate::kernels::tensor::{Program, Symbol, Tensor};
use crate::kernels::thread_pool::Team;
use crate::options::Entry;
use crate::rng::Stream;
pub use dense::Dense;
use initialise::Role;
use named::Named;
pub use part::Part;
use std::ops::Range;
use std::sync::Arc;
use support::Support;

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

/// A parameter as it is declared: name, shape and which values it may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its shape; empty for a number.
    pub shape: Vec<usize>,
    /// Its values.
    pub support: Support,
}

/// Where each named tensor lies in the flat parameter vector of length N.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
    /// Values that are not their own coordinates: as tensors with the names that were declared, and where they may lie.
    values: Vec<(TensorSpec, Support)>,
    /// Further names of parts, and the slices that each is made of: see [`Layout::with_part`].
    parts: Vec<(String, Vec<String>)>,
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
        Self {
            tensors,
            values: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The same with more tensors at its end. One whose values have bounds is there as its coordinates: `log_sigma` for a positive `sigma`.
    ///
    /// # Errors
    /// If two have one name.
    pub fn and(mut self, declared: impl IntoIterator<Item = Declared>) -> Result<Self> {
        for d in declared {
            let at = self.len();
            let value = TensorSpec {
                range: at..at + d.shape.iter().product::<usize>(),
                name: d.name,
                shape: d.shape,
            };
            let tensor = TensorSpec {
                name: d.support.coordinate(&value.name),
                ..value.clone()
            };
            let names = |t: &TensorSpec| t.name == tensor.name || t.name == value.name;
            let twice = self.tensors.iter().any(names) || self.values.iter().any(|v| names(&v.0));
            anyhow::ensure!(!twice, "two parameters are called '{}'", value.name);
            if d.support != Support::Real {
                self.values.push((value, d.support));
            }
            self.tensors.push(tensor);
        }
        Ok(self)
    }

    /// Whether some values are not their own coordinates.
    pub fn has_supports(&self) -> bool {
        !self.values.is_empty()
    }

    /// Where the values of this range of coordinates may lie.
    pub fn support(&self, range: &Range<usize>) -> Support {
        let here = |v: &&(TensorSpec, Support)| {
            v.0.range.start <= range.start && range.end <= v.0.range.end
        };
        self.values.iter().find(here).map_or(Support::Real, |v| v.1)
    }

    /// What the values of a tensor are called.
    pub fn value_name<'a>(&'a self, tensor: &'a TensorSpec) -> &'a str {
        let value = self.values.iter().find(|v| v.0.range == tensor.range);
        value.map_or(&tensor.name, |v| &v.0.name)
    }

    /// The parameter whose values have this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn value(&self, name: &str) -> Result<&TensorSpec> {
        match self.values.iter().find(|v| v.0.name == name) {
            Some((value, _)) => Ok(value),
            None => self.tensor(name),
        }
    }

    /// All values by name, traced in double precision from a vector of coordinates.
    pub(crate) fn traced(&self) -> Result<Named> {
        let all = Tensor::from(Symbol::vector(self.len()));
        let each = self.tensors.iter().map(|t| {
            let own = all.entries(t.range.start as i64, t.range.len() as i64)?;
            let values = self.support(&t.range).of_tensor(&own)?;
            let shape: Vec<_> = t.shape.iter().map(|n| *n as i64).collect();
            Ok((self.value_name(t).to_string(), values.reshape(&shape)?))
        });
        Ok(Named::new(each.collect::<Result<Vec<_>>>()?))
    }

    /// The values of a parameter, or the coordinates of a tensor, by name; and their shape.
    ///
    /// # Errors
    /// If there is neither of that name.
    pub(crate) fn numbers(&self, name: &str, w: &[f32]) -> Result<(Vec<f64>, &[usize])> {
        if let Some(values) = self.values_of(name, w) {
            return Ok(values);
        }
        let found = self.tensor(name)?;
        let own = w[found.range.clone()].iter().map(|x| f64::from(*x));
        Ok((own.collect(), &found.shape))
    }

    /// The values of a parameter at these coordinates, if they are not the coordinates themselves, and their shape.
    pub fn values_of(&self, name: &str, w: &[f32]) -> Option<(Vec<f64>, &[usize])> {
        let (value, support) = self.values.iter().find(|v| v.0.name == name)?;
        let mut x = vec![0.0; value.range.len()];
        support.values(&w[value.range.clone()], &mut x);
        Some((x, &value.shape))
    }

    /// Give a name to some slices that belong together, as the four of an attention head.
    pub fn with_part(mut self, name: String, slices: Vec<String>) -> Self {
        self.parts.push((name, slices));
        self
    }

    /// N, the number of parameters.
    #[inline]
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

    /// The tensors of a parameter vector with their names and shapes, as files of weights have them.
    pub fn views<'a>(&self, w: &'a [f32]) -> Vec<(String, Vec<usize>, &'a [f32])> {
        let each = self.tensors.iter();
        each.map(|t| (t.name.clone(), t.shape.clone(), &w[t.range.clone()]))
            .collect()
    }

    /// The tensor of that name; the error lists the names there are.
    pub fn tensor(&self, name: &str) -> Result<&TensorSpec> {
        self.tensors.iter().find(|t| t.name == name).ok_or_else(|| {
            let names: Vec<_> = self.tensors.iter().map(|t| t.name.as_str()).collect();
            let parts = match (self.parts.first(), self.parts.last()) {
                (Some((first, _)), Some((last, _))) => format!(", and parts {first} … {last}"),
                _ => String::new(),
            };
            anyhow::anyhow!(
                "the model has no tensor '{name}'; it has {}{parts}",
                crate::error::listed(&names)
            )
        })
    }
}

/// Numbers per row that a model keeps of a tile, buffer by buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Widths {
    /// Outputs of the layers; the last is the model's output.
    pub activations: Vec<usize>,
    /// Inputs of the activation functions, where a derivative needs them.
    pub before: Vec<usize>,
    /// Gradients with respect to the inputs of the activation functions; the last has the model's output width.
    pub deltas: Vec<usize>,
    /// Of a model that is computed pass by pass: everything but outputs and their gradient.
    pub memory: usize,
}

/// Buffers for a tile of rows, row-major; grown on first use, then reused.
#[derive(Debug, Default)]
pub struct Tile {
    /// Rows in use.
    pub rows: usize,
    /// `[rows, inputs]`.
    pub inputs: Vec<f32>,
    /// See [`Widths::activations`].
    pub activations: Vec<Vec<f32>>,
    /// See [`Widths::before`].
    pub before: Vec<Vec<f32>>,
    /// See [`Widths::deltas`].
    pub deltas: Vec<Vec<f32>>,
    /// A number per position for the loss.
    pub row: Vec<f64>,
    /// See [`Model::shared`].
    pub shared: Arc<Vec<f32>>,
    /// See [`Widths::memory`].
    pub memory: Vec<f32>,
}

/// Some rows of a tile, lent to a thread.
#[derive(Debug)]
pub struct Block<'a> {
    /// The first row within the tile.
    pub first: usize,
    /// Number of rows.
    pub rows: usize,
    /// `[rows, inputs]`.
    pub inputs: &'a mut [f32],
    /// See [`Widths::activations`].
    pub activations: Vec<&'a mut [f32]>,
    /// See [`Widths::before`].
    pub before: Vec<&'a mut [f32]>,
    /// See [`Widths::deltas`].
    pub deltas: Vec<&'a mut [f32]>,
    /// A number per position for the loss.
    pub row: &'a mut [f64],
    /// See [`Model::shared`].
    pub shared: &'a [f32],
}

impl Tile {
    /// Make room for `rows` rows and lend them in `count` blocks; without `gradient`, there are no deltas but the last.
    pub fn blocks(
        &mut self,
        model: &dyn Model,
        rows: usize,
        count: usize,
        gradient: bool,
    ) -> Vec<Block<'_>> {
        let mut widths = model.widths();
        if !gradient {
            let last = widths.deltas.len().saturating_sub(1);
            widths.deltas[..last].fill(0);
        }
        self.rows = rows;
        let bounds: Vec<_> = (0..=count).map(|k| k * rows / count).collect();
        let sizes: Vec<_> = bounds.windows(2).map(|b| b[1] - b[0]).collect();
        let mut blocks: Vec<_> = split(&mut self.inputs, model.inputs(), &sizes)
            .zip(split(&mut self.row, model.positions(), &sizes))
            .zip(bounds.iter().zip(&sizes))
            .map(|((inputs, row), (first, rows))| Block {
                first: *first,
                rows: *rows,
                inputs,
                activations: Vec::new(),
                before: Vec::new(),
                deltas: Vec::new(),
                row,
                shared: &self.shared,
            })
            .collect();
        fn deal<'a>(
            from: &'a mut Vec<Vec<f32>>,
            widths: &[usize],
            sizes: &[usize],
            blocks: &mut [Block<'a>],
            to: for<'b> fn(&'b mut Block<'a>) -> &'b mut Vec<&'a mut [f32]>,
        ) {
            from.resize_with(widths.len(), Vec::new);
            for (buffer, width) in from.iter_mut().zip(widths) {
                for (block, part) in blocks.iter_mut().zip(split(buffer, *width, sizes)) {
                    to(block).push(part);
                }
            }
        }
        deal(
            &mut self.activations,
            &widths.activations,
            &sizes,
            &mut blocks,
            |b| &mut b.activations,
        );
        deal(&mut self.before, &widths.before, &sizes, &mut blocks, |b| {
            &mut b.before
        });
        deal(&mut self.deltas, &widths.deltas, &sizes, &mut blocks, |b| {
            &mut b.deltas
        });
        blocks
    }
}

/// Cut a buffer into parts of so many rows, after making it long enough.
fn split<'a, T: Clone + Default>(
    buffer: &'a mut Vec<T>,
    width: usize,
    sizes: &[usize],
) -> impl Iterator<Item = &'a mut [T]> {
    let needed = width * sizes.iter().sum::<usize>();
    if buffer.len() < needed {
        buffer.resize(needed, T::default());
    }
    let mut rest = &mut buffer[..];
    sizes.iter().map(move |rows| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(rows * width);
        rest = after;
        part
    })
}

/// A differentiable function of parameters and inputs.
pub trait Model: Send + Sync {
    /// One line: kind, widths, activation, N.
    fn describe(&self) -> String;

    /// The named tensors of the parameter vector.
    fn layout(&self) -> &Layout;

    /// Components of an input.
    fn inputs(&self) -> usize;

    /// Components of an output, of all positions together.
    fn outputs(&self) -> usize;

    /// Positions of a row, each with outputs and a target of its own: `[positions, outputs / positions]`.
    fn positions(&self) -> usize {
        1
    }

    /// How many tokens it knows, if its inputs are numbers of tokens.
    fn vocabulary(&self) -> Option<usize> {
        None
    }

    /// The layers, if that is all it is.
    fn dense(&self) -> Option<Vec<Dense>> {
        None
    }

    /// From inputs to outputs, as an accelerator computes it for all chains together.
    ///
    /// # Errors
    /// If no accelerator does.
    fn program(&self) -> Result<Program> {
        match self.dense() {
            Some(layers) => Ok(dense::program(&layers)),
            None => anyhow::bail!("no device computes {}; take --device cpu", self.describe()),
        }
    }

    /// The matrix products of [`Model::forward`] and [`Model::backward`], for benchmarks; empty if they are not known.
    fn products(&self) -> Vec<Product> {
        Vec::new()
    }

    /// What [`Model::forward`], [`Model::backward`] and [`Model::gradient`] keep per row.
    fn widths(&self) -> Widths {
        Widths {
            activations: vec![self.outputs()],
            before: Vec::new(),
            deltas: vec![self.outputs()],
            memory: 0,
        }
    }

    /// What tells it from another model with the same description.
    fn fingerprint(&self, _hash: &mut crc32fast::Hasher) {}

    /// What each tensor is in its layer.
    fn roles(&self) -> Vec<Role> {
        initialise::roles(self.layout())
    }

    /// Initial parameters, of length N.
    fn initialise(&self, stream: Stream) -> Vec<f32>;

    /// Outputs `[rows, outputs]` of candle tensors: params `[N]`, inputs `[rows, inputs]`. Differentiable.
    fn forward_tensor(
        &self,
        params: &candle_core::Tensor,
        inputs: &candle_core::Tensor,
    ) -> candle_core::Result<candle_core::Tensor>;

    /// Numbers that no row changes, computed once per call: blocks and tiles have them in `shared`.
    fn shared(&self, _params: &[f32]) -> Vec<f32> {
        Vec::new()
    }

    /// Whether threads share each of its passes, because rows are large: [`Model::forward_whole`] and [`Model::gradient_whole`] take a tile where
    /// [`Model::forward`], [`Model::backward`] and [`Model::gradient`] would take its blocks.
    fn whole(&self) -> bool {
        false
    }

    /// Compute the outputs of a tile, to be followed by [`Model::gradient_whole`] or not.
    fn forward_whole(&self, _params: &[f32], _tile: &mut Tile, _gradient: bool, _team: &Team) {}

    /// From the gradient with respect to the outputs of a tile, that of the parameters: into `grad`, or added to it.
    fn gradient_whole(
        &self,
        _params: &[f32],
        _tile: &mut Tile,
        _grad: &mut [f32],
        _add: bool,
        _team: &Team,
    ) {
    }

    /// Compute the outputs of `block.inputs` into the last of `block.activations`.
    fn forward(&self, params: &[f32], block: &mut Block) -> Result<()> {
        autograd::forward(self, params, block)
    }

    /// From the gradient with respect to the outputs, in the last of `block.deltas`, compute what [`Model::gradient`] needs of these
    /// rows, after [`Model::forward`].
    fn backward(&self, _params: &[f32], _block: &mut Block) -> Result<()> {
        Ok(())
    }

    /// The gradient of `Σ outputs·delta` over a whole tile, all blocks of which went [`Model::backward`]: into `grad`, or added to it.
    fn gradient(
        &self,
        params: &[f32],
        tile: &Tile,
        grad: &mut [f32],
        add: bool,
        _team: &Team,
    ) -> Result<()> {
        autograd::gradient(self, params, tile, grad, add)
    }
}

impl std::fmt::Debug for dyn Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Every kind of model a script can build.
pub const REGISTRY: &[Entry<Arc<dyn Model>>] = &[
    mlp::ENTRY,
    deep_linear::ENTRY,
    transformer::ENTRY,
    onnx::ENTRY,
    pretrained::ENTRY,
];

crate::object::object! {
    dyn Model: "Model",
    text: |m| m.describe(),
    fields: {
        "parameters" => |m| m.layout().len().into(),
        "inputs" => |m| m.inputs().into(),
        "vocabulary" => |m| m.vocabulary().unwrap_or(0).into(),
    },
}
crate::object::held!(Arc<dyn Model> => dyn Model, |m| &**m);
