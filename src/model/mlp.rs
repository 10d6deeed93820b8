//! Fully connected networks, with gradients derived by hand.
//!
//! Layer l computes `a_l = f(a_{l-1} W_lᵀ + b_l)`. With `δ_l = dE/da_l ⊙ f'`, the gradients are `dE/dW_l = δ_lᵀ a_{l-1}`,
//! `dE/db_l = Σ_rows δ_l` and `dE/da_{l-1} = δ_l W_l`.

use super::initialise::{self, Initialise};
use super::{Layout, Model, Scratch, grow};
use crate::error::Result;
use crate::kernels::elementwise::{
    Activation, add_column_sums, bias_and_activation, times_derivative,
};
use crate::kernels::gemm::{Matrix, multiply};
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

    fn tile_rows(&self) -> usize {
        // About half a megabyte of activations, and enough rows to fill the product's micro-kernels.
        (131_072 / self.widths.iter().sum::<usize>()).clamp(96, 512) / 16 * 16
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

    fn forward(&self, params: &[f32], rows: usize, s: &mut Scratch) -> Result<()> {
        let depth = self.layers.len();
        s.activations.resize_with(depth, Vec::new);
        s.before.resize_with(depth, Vec::new);
        for (l, (weight, bias)) in self.layers.iter().enumerate() {
            let (fan_in, fan_out, f) = (self.widths[l], self.widths[l + 1], self.activation(l));
            let (below, here) = s.activations.split_at_mut(l);
            let input = if l == 0 { &s.inputs } else { &below[l - 1] };
            let out = &mut here[0];
            grow(out, rows * fan_out);
            if f.needs_input() {
                grow(&mut s.before[l], rows * fan_out);
            }
            let w = Matrix::new(&params[weight.clone()], fan_out, fan_in);
            multiply(out, Matrix::new(input, rows, fan_in), w.transposed(), false);
            bias_and_activation(
                &mut out[..rows * fan_out],
                &params[bias.clone()],
                fan_out,
                f,
                &mut s.before[l],
            );
        }
        Ok(())
    }

    fn backward(
        &self,
        params: &[f32],
        rows: usize,
        s: &mut Scratch,
        grad: &mut [f32],
    ) -> Result<()> {
        for (l, (weight, bias)) in self.layers.iter().enumerate().rev() {
            let (fan_in, fan_out, f) = (self.widths[l], self.widths[l + 1], self.activation(l));
            let delta = &mut s.delta[..rows * fan_out];
            times_derivative(delta, &s.activations[l][..rows * fan_out], &s.before[l], f);
            let input = if l == 0 {
                &s.inputs
            } else {
                &s.activations[l - 1]
            };
            let d = Matrix::new(delta, rows, fan_out);
            multiply(
                &mut grad[weight.clone()],
                d.transposed(),
                Matrix::new(input, rows, fan_in),
                true,
            );
            if !bias.is_empty() {
                add_column_sums(&mut grad[bias.clone()], delta);
            }
            if l > 0 {
                grow(&mut s.next, rows * fan_in);
                multiply(
                    &mut s.next,
                    d,
                    Matrix::new(&params[weight.clone()], fan_out, fan_in),
                    false,
                );
                std::mem::swap(&mut s.delta, &mut s.next);
            }
        }
        Ok(())
    }
}
