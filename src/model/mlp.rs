//! Fully connected networks: `dense` layers, with gradients derived by hand.

use super::initialise::{self, Initialise};
use super::{Block, Dense, Layout, Model, Tile, Widths, dense};
use crate::error::Result;
use crate::kernels::elementwise::Activation;
use crate::kernels::gemm_baseline::Product;
use crate::kernels::thread_pool::Team;
use crate::options::{Entry, Kind, Options, Range, option, required};
use crate::rng::Stream;
use candle_core::Tensor;
use std::sync::Arc;

/// A fully connected network.
pub struct Mlp {
    kind: &'static str,
    widths: Vec<usize>,
    hidden: Activation,
    output: Activation,
    layout: Layout,
    layers: Vec<Dense>,
    initialise: Initialise,
}

/// `model::mlp`.
pub const ENTRY: Entry<Arc<dyn Model>> = Entry {
    name: "mlp",
    doc: "A fully connected network: `a_l = f(W_l a_{l-1} + b_l)`, any widths.\n\n\
          Tensors are named `w1` [out, in], `b1` [out], `w2`, …, in this order. Zambon (2026) uses ReLU on the output too: \
          `output: \"relu\"`; Baldock & Marzari (2019) use a logistic output. Gradients are derived by hand.",
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
        let count = widths.len() - 1;
        let layer = |(l, r): (usize, &[std::ops::Range<usize>])| Dense {
            fan_in: widths[l],
            fan_out: widths[l + 1],
            weight: r[0].clone(),
            flipped: false,
            bias: r.get(1).cloned().unwrap_or(r[0].end..r[0].end),
            activation: if l + 1 == count { output } else { hidden },
        };
        let layers = ranges
            .chunks(if bias { 2 } else { 1 })
            .enumerate()
            .map(layer)
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
        Some(self.layers.clone())
    }

    fn products(&self) -> Vec<Product> {
        dense::products(&self.layers)
    }

    fn widths(&self) -> Widths {
        dense::widths(&self.layers)
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.initialise.draw(&self.layout, stream)
    }

    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor> {
        let mut a = inputs.clone();
        for layer in &self.layers {
            let shape = (layer.fan_out, layer.fan_in);
            let (weight, bias) = (&layer.weight, &layer.bias);
            let w = params
                .narrow(0, weight.start, weight.len())?
                .reshape(shape)?;
            let mut z = a.matmul(&w.t()?.contiguous()?)?;
            if !bias.is_empty() {
                z = z.broadcast_add(&params.narrow(0, bias.start, bias.len())?)?;
            }
            a = match layer.activation {
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
        dense::forward(&self.layers, params, b);
        Ok(())
    }

    fn backward(&self, params: &[f32], b: &mut Block) -> Result<()> {
        dense::backward(&self.layers, params, b);
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
        dense::gradient(&self.layers, tile, grad, add, team);
        Ok(())
    }
}
