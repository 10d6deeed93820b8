//! Fully connected networks, with gradients derived by hand.
//!
//! Layer l computes `a_l = f(a_{l-1} W_lᵀ + b_l)`. With `δ_l = dE/da_l ⊙ f'`, the gradients are `dE/dW_l = δ_lᵀ a_{l-1}`,
//! `dE/db_l = Σ_rows δ_l` and `dE/da_{l-1} = δ_l W_l`.

use super::initialise::{self, Initialise};
use super::{Block, Dense, Layout, Model, Tile, Widths};
use crate::error::Result;
use crate::kernels::elementwise::{
    Activation, add_column_sums, bias_and_activation, times_derivative,
};
use crate::kernels::floor::Product;
use crate::kernels::gemm::{Matrix, Part, multiply};
use crate::kernels::team::Team;
use crate::options::{Entry, Kind, Options, Range, option, required};
use crate::rng::Stream;
use candle_core::Tensor;
use std::ops::Range as Span;
use std::sync::Arc;

/// A fully connected network.
pub struct Mlp {
    kind: &'static str,
    widths: Vec<usize>,
    hidden: Activation,
    output: Activation,
    layout: Layout,
    /// Ranges of weight and bias (empty without bias) per layer.
    layers: Vec<(Span<usize>, Span<usize>)>,
    initialise: Initialise,
}

/// `model::mlp`.
pub const ENTRY: Entry<Arc<dyn Model>> = Entry {
    name: "mlp",
    doc: "A fully connected network: `a_l = f(W_l a_{l-1} + b_l)`, any widths.\n\n\
          Tensors are named `w1` [out, in], `b1` [out], `w2`, …, in this order. Zambon (2026) has ReLU on the output too: \
          `output: \"relu\"`; Baldock & Marzari (2019) have a logistic one. Gradients are derived by hand.",
    arguments: &[],
    options: &[
        required(
            "layers",
            Kind::Ints(Range::AtLeast(1.0)),
            "Widths from input to output, at least two.",
        ),
        option(
            "activation",
            Kind::Choice(Activation::NAMES),
            "relu",
            "Activation of the hidden layers.",
        ),
        option(
            "output",
            Kind::Choice(Activation::NAMES),
            "identity",
            "Activation of the output layer, before the loss.",
        ),
        option("bias", Kind::Bool, "true", "Whether layers have biases."),
        initialise::OPTION,
        initialise::SCALE,
    ],
    example: "model::mlp(#{ layers: [64, 32, 10], activation: \"tanh\" })",
    build: |o| {
        let hidden = Activation::parse(o.text("activation")?).unwrap_or(Activation::Relu);
        let output = Activation::parse(o.text("output")?).unwrap_or(Activation::Identity);
        Ok(Arc::new(Mlp::new(
            "mlp",
            widths(o, "layers")?,
            hidden,
            output,
            o.bool("bias")?,
            Initialise::from_options(o)?,
        )))
    },
};

/// The widths option: at least two.
pub(super) fn widths(o: &Options, name: &str) -> Result<Vec<usize>> {
    let widths = o.sizes(name).unwrap_or_default();
    anyhow::ensure!(
        widths.len() >= 2,
        "{}: option '{name}' needs at least an input and an output width, but has {}",
        o.owner(),
        widths.len()
    );
    let parameters = widths
        .windows(2)
        .try_fold(0usize, |n, w| n.checked_add(w[0].checked_mul(w[1])?));
    anyhow::ensure!(
        parameters.is_some_and(|n| n < u32::MAX as usize),
        "{}: option '{name}' asks for more than 2^32 parameters",
        o.owner()
    );
    Ok(widths)
}

impl Mlp {
    /// A network of these widths.
    pub fn new(
        kind: &'static str,
        widths: Vec<usize>,
        hidden: Activation,
        output: Activation,
        bias: bool,
        initialise: Initialise,
    ) -> Self {
        let tensors = widths.windows(2).enumerate().flat_map(|(l, w)| {
            let weight = (format!("w{}", l + 1), vec![w[1], w[0]]);
            std::iter::once(weight).chain(bias.then(|| (format!("b{}", l + 1), vec![w[1]])))
        });
        let layout = Layout::new(tensors);
        let ranges: Vec<_> = layout.tensors().iter().map(|t| t.range.clone()).collect();
        let layers = ranges
            .chunks(if bias { 2 } else { 1 })
            .map(|r| {
                (
                    r[0].clone(),
                    r.get(1).cloned().unwrap_or(r[0].end..r[0].end),
                )
            })
            .collect();
        Self {
            kind,
            widths,
            hidden,
            output,
            layout,
            layers,
            initialise,
        }
    }

    fn activation(&self, layer: usize) -> Activation {
        if layer + 1 == self.layers.len() {
            self.output
        } else {
            self.hidden
        }
    }
}

impl Model for Mlp {
    fn describe(&self) -> String {
        let widths: Vec<_> = self.widths.iter().map(usize::to_string).collect();
        let mut text = format!("{} {}", self.kind, widths.join("-"));
        if self.kind == "mlp" {
            text += &format!(", {}, output {}", self.hidden.name(), self.output.name());
        }
        text + &*format!(", N = {}", self.layout.len())
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn inputs(&self) -> usize {
        self.widths[0]
    }

    fn outputs(&self) -> usize {
        self.widths[self.widths.len() - 1]
    }

    fn dense(&self) -> Option<Vec<Dense>> {
        let layer = |(l, (weight, bias)): (usize, &(Span<usize>, Span<usize>))| Dense {
            fan_in: self.widths[l],
            fan_out: self.widths[l + 1],
            weight: weight.clone(),
            bias: bias.clone(),
            activation: self.activation(l),
        };
        Some(self.layers.iter().enumerate().map(layer).collect())
    }

    fn products(&self) -> Vec<Product> {
        let mut out = Vec::new();
        for (l, w) in self.widths.windows(2).enumerate() {
            let product = |shape, transposed, rows| Product {
                shape,
                transposed,
                rows,
            };
            out.push(product([1, w[1], w[0]], [false, true], 0));
            out.push(product([w[1], w[0], 1], [true, false], 2));
            if l > 0 {
                out.push(product([1, w[0], w[1]], [false, false], 0));
            }
        }
        out
    }

    fn widths(&self) -> Widths {
        let activations = self.widths[1..].to_vec();
        let before = |(l, w): (usize, &usize)| {
            if self.activation(l).needs_input() {
                *w
            } else {
                0
            }
        };
        Widths {
            before: activations.iter().enumerate().map(before).collect(),
            deltas: activations.clone(),
            activations,
        }
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.initialise.draw(&self.layout, stream)
    }

    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor> {
        let mut a = inputs.clone();
        for (l, (weight, bias)) in self.layers.iter().enumerate() {
            let shape = (self.widths[l + 1], self.widths[l]);
            let w = params
                .narrow(0, weight.start, weight.len())?
                .reshape(shape)?;
            let mut z = a.matmul(&w.t()?.contiguous()?)?;
            if !bias.is_empty() {
                z = z.broadcast_add(&params.narrow(0, bias.start, bias.len())?)?;
            }
            a = match self.activation(l) {
                Activation::Relu => z.relu()?,
                Activation::Tanh => z.tanh()?,
                Activation::Logistic => candle_nn::ops::sigmoid(&z)?,
                Activation::Gelu => z.gelu_erf()?,
                Activation::Identity => z,
            };
        }
        Ok(a)
    }

    fn forward(&self, params: &[f32], b: &mut Block) -> Result<()> {
        for (l, (weight, bias)) in self.layers.iter().enumerate() {
            let (fan_in, fan_out, f) = (self.widths[l], self.widths[l + 1], self.activation(l));
            let (below, here) = b.activations.split_at_mut(l);
            let input = if l == 0 { &*b.inputs } else { &*below[l - 1] };
            let w = Matrix::new(&params[weight.clone()], fan_out, fan_in);
            multiply(
                here[0],
                Matrix::new(input, b.rows, fan_in),
                w.transposed(),
                false,
            );
            bias_and_activation(here[0], &params[bias.clone()], fan_out, f, b.before[l]);
        }
        Ok(())
    }

    fn backward(&self, params: &[f32], b: &mut Block) -> Result<()> {
        for (l, (weight, _)) in self.layers.iter().enumerate().rev() {
            let (below, here) = b.deltas.split_at_mut(l);
            let delta = &mut *here[0];
            times_derivative(delta, b.activations[l], b.before[l], self.activation(l));
            if let Some(next) = below.last_mut() {
                let (fan_in, fan_out) = (self.widths[l], self.widths[l + 1]);
                let w = Matrix::new(&params[weight.clone()], fan_out, fan_in);
                multiply(next, Matrix::new(delta, b.rows, fan_out), w, false);
            }
        }
        Ok(())
    }

    fn gradient(
        &self,
        _: &[f32],
        tile: &Tile,
        grad: &mut [f32],
        add: bool,
        team: &Team,
    ) -> Result<()> {
        let mut parts = Vec::new();
        let mut rest = grad;
        for (l, (weight, bias)) in self.layers.iter().enumerate() {
            let (fan_in, fan_out) = (self.widths[l], self.widths[l + 1]);
            let (weights, after) = rest.split_at_mut(weight.len());
            let (biases, after) = after.split_at_mut(bias.len());
            rest = after;
            // Enough parts for a few threads, each with enough to do: the count must not depend on the threads.
            let count = ((weight.len() * tile.rows) >> 23).clamp(1, 16);
            let weights = Part::split(weights, fan_out, fan_in, count);
            parts.extend(weights.into_iter().map(|part| (l, Sum::Weights(part))));
            if !biases.is_empty() {
                parts.push((l, Sum::Biases(biases)));
            }
        }
        team.for_each(&mut parts, |(l, sum)| {
            let (fan_in, fan_out) = (self.widths[*l], self.widths[*l + 1]);
            let delta = &tile.deltas[*l][..tile.rows * fan_out];
            match sum {
                Sum::Weights(part) => {
                    let input = if *l == 0 {
                        &tile.inputs
                    } else {
                        &tile.activations[*l - 1]
                    };
                    let input = Matrix::new(input, tile.rows, fan_in);
                    let delta = Matrix::new(delta, tile.rows, fan_out);
                    let left = delta.columns(part.rows.clone()).transposed();
                    part.multiply(left, input.columns(part.columns.clone()), add);
                }
                Sum::Biases(out) => {
                    if !add {
                        out.fill(0.0);
                    }
                    add_column_sums(out, delta);
                }
            }
        });
        Ok(())
    }
}

/// A part of the gradient of a layer.
enum Sum<'a> {
    /// A part of `δᵀ a`.
    Weights(Part<'a>),
    /// Column sums of δ.
    Biases(&'a mut [f32]),
}
