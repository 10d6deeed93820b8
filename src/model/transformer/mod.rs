//! Attention-only transformers, with gradients derived by hand.
//!
//! A row is a sequence of `context` tokens; every position answers with a logit per token, for the one that follows. The residual stream
//! begins as the token's embedding, `x_0 = E[t]`, and each block adds what its heads read from earlier positions:
//!
//! `n = LN(x_l)`, `q, k = (n + p) W_Qᵀ, (n + p) W_Kᵀ`, `v = n W_Vᵀ`, `x_{l+1} = x_l + Σ_heads softmax(q kᵀ/√d_head) v W_O`
//!
//! with the softmax over positions up to the own one, and the learned positions p added to the inputs of keys and queries only, in every
//! block (Press et al. 2021, "Shortformer"). At the end, logits are `LN(x_L) Uᵀ`. Without layer norms LN is the identity. This is what
//! TransformerLens builds with `attn_only`, `positional_embedding_type="shortformer"` and `normalization_type="LN"` (or `None`), which
//! Hitchcock & Hoogland (2025) used, but that biases are an option here.
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | shape, tensors, buffers |
//! | `passes.rs` | buffers, forward and backward pass of a block of rows |
//! | `gradient.rs` | gradient of a tile |
//! | `attention.rs` | one head on one sequence |
//! | `tensor.rs` | the forward pass in candle, differentiable |
//! | `graph.rs` | the same as a traced graph, for accelerators |

mod attention;
mod gradient;
mod graph;
mod passes;
mod tensor;
#[cfg(test)]
mod tests;

use super::{Block, Layout, Model, Tile, Widths};
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::kernels::tensor::Program;
use crate::kernels::thread_pool::Team;
use crate::options::{Entry, Kind, Options, Range, option, optional, required};
use crate::rng::Stream;
use candle_core::Tensor;
use std::ops::Range as Span;
use std::sync::Arc;

/// Sizes and variants of a [`Transformer`].
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Number of different tokens.
    pub vocabulary: usize,
    /// Tokens of a row.
    pub context: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Numbers per position in the residual stream, d_model.
    pub width: usize,
    /// Heads per block.
    pub heads: usize,
    /// Numbers per position in a query, key or value of a head, d_head.
    pub head_width: usize,
    /// Whether each block and the unembedding read the stream through a layer norm.
    pub layer_norm: bool,
    /// Whether queries, keys, values, outputs of blocks and logits have biases.
    pub bias: bool,
    /// Standard deviation of the initial matrices.
    pub init_scale: f64,
}

/// An attention-only transformer.
pub struct Transformer {
    settings: Settings,
    layout: Layout,
    places: Places,
}

/// Where the tensors are in the parameter vector; neighbours that are used together are one range.
struct Places {
    embed: Span<usize>,
    position: Span<usize>,
    blocks: Vec<BlockPlaces>,
    /// Weight and bias; empty without layer norms.
    final_norm: Span<usize>,
    unembed: Span<usize>,
    unembed_bias: Span<usize>,
}

/// Those of one block.
struct BlockPlaces {
    /// Weight and bias; empty without layer norms.
    norm: Span<usize>,
    query_key: Span<usize>,
    value: Span<usize>,
    out: Span<usize>,
    /// The biases, empty without.
    query_key_bias: Span<usize>,
    value_bias: Span<usize>,
    out_bias: Span<usize>,
}

/// `model::transformer`.
pub const ENTRY: Entry<Arc<dyn Model>> = Entry {
    name: "transformer",
    doc: "An attention-only transformer: a residual stream, causal heads, no MLPs; a logit per token at every position.\n\n\
          `x ← x + Σ_heads softmax(q kᵀ/√d_head) v W_O` with `q, k` from `LN(x) + position` and `v` from `LN(x)`: learned positions act on keys and \
          queries only (Press et al. 2021, \"Shortformer\"). Embedding and unembedding are not tied. The defaults are the network of Hitchcock & Hoogland \
          (2025, D.4) without biases; it had vocabulary 5000 and context 1024. Data: dataset::induction, dataset::text, dataset::tokens.\n\n\
          Tensors, in this order: `embed` [vocabulary, width], `position` [context, width]; for each block `block1.norm.weight`, `block1.norm.bias` [width], \
          `block1.attn.query`, `block1.attn.key`, `block1.attn.value`, `block1.attn.out`, all [heads, head_width, width]; `final_norm.weight`, \
          `final_norm.bias` [width], `unembed` [vocabulary, width]. So a head is one slice along the first axis of each of the four, \
          and that is what `block2.attn.head3` is a name for (the third head of the second block, for the option `restrict` of llc): query, key and value \
          are the weights of a torch.nn.Linear, out is the transpose of one (TransformerLens: W_Q, W_K, W_V with their last axes exchanged, W_O as it is). \
          With biases, a block ends with `.query_bias`, `.key_bias`, `.value_bias` [heads, head_width] and `.out_bias` [width], the model with `unembed_bias` \
          [vocabulary]. Gradients are derived by hand.",
    arguments: &[],
    options: &[
        required(
            "vocabulary",
            Kind::Int(Range::Between(2.0, 65536.0)),
            "Number of different tokens: `classes` of the data set.",
        ),
        required(
            "context",
            Kind::Int(Range::Between(1.0, 1048576.0)),
            "Tokens of a row: `dim` of the data set.",
        ),
        option(
            "layers",
            Kind::Int(Range::Between(1.0, 1000.0)),
            "4",
            "Number of blocks.",
        ),
        option(
            "width",
            Kind::Int(Range::Between(1.0, 65536.0)),
            "256",
            "Numbers per position in the residual stream, d_model.",
        ),
        option(
            "heads",
            Kind::Int(Range::Between(1.0, 65536.0)),
            "8",
            "Heads per block.",
        ),
        optional(
            "head_width",
            Kind::Int(Range::Between(1.0, 65536.0)),
            "width / heads",
            "Numbers per position in a query, key or value of a head, d_head.",
        ),
        option(
            "layer_norm",
            Kind::Bool,
            "true",
            "Whether blocks and unembedding read the stream through layer norms (ε = 1e-5).",
        ),
        option(
            "bias",
            Kind::Bool,
            "false",
            "Whether queries, keys, values, blocks and logits have biases.",
        ),
        optional(
            "init_scale",
            Kind::Float(Range::Positive),
            "0.8/√width, as in TransformerLens",
            "Standard deviation of the initial embeddings and matrices, which are normal; layer norms begin with weight 1, biases with 0.",
        ),
    ],
    example: "let data = dataset::induction(#{ vocabulary: 16, context: 24 });\n\
              let net = model::transformer(#{ vocabulary: data.classes, context: data.dim, layers: 2, width: 32, heads: 4 });\n\
              target(net, data)",
    build: |o| Ok(Arc::new(Transformer::new(settings(o)?)?)),
};

fn settings(o: &Options) -> Result<Settings> {
    let (width, heads) = (o.size("width")?, o.size("heads")?);
    let head_width = match o.opt_int("head_width") {
        Some(given) => given as usize,
        None => {
            anyhow::ensure!(
                width.is_multiple_of(heads),
                "{}: the width {width} is not a multiple of the number of heads, {heads}; change one of them or give 'head_width'",
                o.owner()
            );
            width / heads
        }
    };
    Ok(Settings {
        vocabulary: o.size("vocabulary")?,
        context: o.size("context")?,
        layers: o.size("layers")?,
        width,
        heads,
        head_width,
        layer_norm: o.bool("layer_norm")?,
        bias: o.bool("bias")?,
        init_scale: o
            .opt_float("init_scale")
            .unwrap_or(0.8 / (width as f64).sqrt()),
    })
}

impl Settings {
    /// Numbers per position in the queries of all heads.
    fn attention(&self) -> usize {
        self.heads * self.head_width
    }

    /// The named tensors, in order.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (v, c, d, h, e) = (
            self.vocabulary,
            self.context,
            self.width,
            self.heads,
            self.head_width,
        );
        let mut out = vec![
            ("embed".to_string(), vec![v, d]),
            ("position".to_string(), vec![c, d]),
        ];
        let norm = |name: &str| {
            let tensor = |part: &str| (format!("{name}.{part}"), vec![d]);
            self.layer_norm.then(|| [tensor("weight"), tensor("bias")])
        };
        for l in 1..=self.layers {
            out.extend(norm(&format!("block{l}.norm")).into_iter().flatten());
            for matrix in ["query", "key", "value", "out"] {
                out.push((format!("block{l}.attn.{matrix}"), vec![h, e, d]));
            }
            if self.bias {
                for vector in ["query_bias", "key_bias", "value_bias"] {
                    out.push((format!("block{l}.attn.{vector}"), vec![h, e]));
                }
                out.push((format!("block{l}.attn.out_bias"), vec![d]));
            }
        }
        out.extend(norm("final_norm").into_iter().flatten());
        out.push(("unembed".into(), vec![v, d]));
        if self.bias {
            out.push(("unembed_bias".into(), vec![v]));
        }
        out
    }

    /// The layout with a name for each head, "block2.attn.head3" for the third of the second block: its slices of queries, keys, values
    /// and outputs, and their biases.
    fn heads_named(&self, mut layout: Layout) -> Layout {
        let matrices = ["query", "key", "value", "out"];
        let biases = ["query_bias", "key_bias", "value_bias"];
        let biases = &biases[..if self.bias { 3 } else { 0 }];
        for l in 1..=self.layers {
            for h in 0..self.heads {
                let tensors = matrices.iter().chain(biases);
                let slices = tensors.map(|t| format!("block{l}.attn.{t}[{h}]"));
                let name = format!("block{l}.attn.head{}", h + 1);
                layout = layout.with_part(name, slices.collect());
            }
        }
        layout
    }

    /// Where the tensors of [`Settings::tensors`] are.
    fn places(&self) -> Places {
        let (d, a) = (self.width, self.attention());
        let mut at = 0;
        let mut next = |there: bool, length: usize| {
            let start = at;
            at += if there { length } else { 0 };
            start..at
        };
        Places {
            embed: next(true, self.vocabulary * d),
            position: next(true, self.context * d),
            blocks: (0..self.layers)
                .map(|_| BlockPlaces {
                    norm: next(self.layer_norm, 2 * d),
                    query_key: next(true, 2 * a * d),
                    value: next(true, a * d),
                    out: next(true, a * d),
                    query_key_bias: next(self.bias, 2 * a),
                    value_bias: next(self.bias, a),
                    out_bias: next(self.bias, d),
                })
                .collect(),
            final_norm: next(self.layer_norm, 2 * d),
            unembed: next(true, self.vocabulary * d),
            unembed_bias: next(self.bias, self.vocabulary),
        }
    }
}

impl Transformer {
    /// A transformer of these sizes; an error if they are too large.
    pub fn new(settings: Settings) -> Result<Self> {
        let s = &settings;
        let sizes = s.tensors();
        let mut products = sizes.iter().map(|(_, shape)| {
            let product = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
            product.unwrap_or(usize::MAX)
        });
        let parameters = products.try_fold(0usize, usize::checked_add);
        anyhow::ensure!(
            parameters.is_some_and(|n| n < u32::MAX as usize),
            "model::transformer: these sizes ask for more than 2^32 parameters"
        );
        // What is kept of a row must be far from overflowing; that it fits into memory is another question.
        let logits = s.context.checked_mul(s.vocabulary + s.heads * s.context);
        anyhow::ensure!(
            logits.is_some_and(|n| n < 1 << 40),
            "model::transformer: one row of {} tokens, of {} different ones, is too large to compute",
            s.context,
            s.vocabulary
        );
        Ok(Self {
            layout: s.heads_named(Layout::new(sizes)),
            places: s.places(),
            settings,
        })
    }

    /// Sizes and variants.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Model for Transformer {
    fn describe(&self) -> String {
        let s = &self.settings;
        let norm = if s.layer_norm { "" } else { ", no layer norm" };
        let bias = if s.bias { ", biases" } else { "" };
        format!(
            "transformer, layers {}, width {}, heads {} of {}, vocabulary {}, context {}{norm}{bias}, N = {}",
            s.layers,
            s.width,
            s.heads,
            s.head_width,
            s.vocabulary,
            s.context,
            self.layout.len()
        )
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn inputs(&self) -> usize {
        self.settings.context
    }

    fn outputs(&self) -> usize {
        self.settings.context * self.settings.vocabulary
    }

    fn positions(&self) -> usize {
        self.settings.context
    }

    fn vocabulary(&self) -> Option<usize> {
        Some(self.settings.vocabulary)
    }

    fn program(&self) -> Result<Program> {
        graph::program(self)
    }

    fn widths(&self) -> Widths {
        passes::widths(&self.settings)
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        let scale = self.settings.init_scale as f32;
        let mut out = vec![0f32; self.layout.len()];
        fill_normal(&stream, &mut out);
        for t in self.layout.tensors() {
            let values = &mut out[t.range.clone()];
            if t.name.ends_with("norm.weight") {
                values.fill(1.0);
            } else if t.name.ends_with("bias") {
                values.fill(0.0);
            } else {
                values.iter_mut().for_each(|v| *v *= scale);
            }
        }
        out
    }

    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor> {
        tensor::forward(self, params, inputs)
    }

    fn forward(&self, params: &[f32], block: &mut Block) -> Result<()> {
        passes::forward(self, params, block)
    }

    fn backward(&self, params: &[f32], block: &mut Block) -> Result<()> {
        passes::backward(self, params, block)
    }

    fn gradient(
        &self,
        _: &[f32],
        tile: &Tile,
        grad: &mut [f32],
        add: bool,
        team: &Team,
    ) -> Result<()> {
        gradient::gradient(self, tile, grad, add, team);
        Ok(())
    }
}
