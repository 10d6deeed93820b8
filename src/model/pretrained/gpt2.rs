//! GPT-2 (Radford et al. 2019), `GPT2LMHeadModel`.

use super::config::Config;
use super::parts::{Attention, Lies, add, heads, layer_norm, linear, perceptron, times};
use super::weights::Weights;
use super::{Decoder, Size};
use crate::error::Result;
use crate::kernels::tensor::{Tensor, Unary};

/// What config.json says.
pub struct Gpt2 {
    size: Size,
    head: usize,
    hidden: usize,
    activation: Unary,
    epsilon: f64,
    tied: bool,
    /// Whether scores are divided by the root of a head's width, and by the number of the layer.
    scaled: [bool; 2],
}

impl Gpt2 {
    pub fn new(c: &Config) -> Result<Self> {
        c.only("add_cross_attention", false)?;
        let (width, heads) = (c.size("n_embd")?, c.size("n_head")?);
        Ok(Self {
            size: Size {
                layers: c.size("n_layer")?,
                width,
                heads,
                words: c.size("vocab_size")?,
                positions: c.size("n_positions")?,
            },
            head: Config::head(width, heads)?,
            hidden: c.opt_size("n_inner")?.unwrap_or(4 * width),
            activation: c.activation("activation_function", "gelu_new")?,
            epsilon: c.positive("layer_norm_epsilon", 1e-5)?,
            tied: c.bool("tie_word_embeddings", true)?,
            scaled: [
                c.bool("scale_attn_weights", true)?,
                c.bool("scale_attn_by_inverse_layer_idx", false)?,
            ],
        })
    }

    fn attention(
        &self,
        w: &mut Weights,
        layer: usize,
        context: usize,
        x: &Tensor,
    ) -> Result<Tensor> {
        let width = self.size.width;
        let name = |part: &str| format!("h.{layer}.attn.{part}");
        let all = linear(w, &name("c_attn"), Lies::Conv, [width, 3 * width], true, x)?;
        let part = |k: usize| {
            let own = all.slice(-1, (k * width) as i64, ((k + 1) * width) as i64)?;
            heads(&own, context, self.size.heads, self.head)
        };
        let mut a = Attention {
            queries: part(0)?,
            keys: part(1)?,
            values: part(2)?,
        };
        let root = if self.scaled[0] {
            1.0
        } else {
            (self.head as f64).sqrt()
        };
        let scale = root
            / if self.scaled[1] {
                (layer + 1) as f64
            } else {
                1.0
            };
        if scale != 1.0 {
            a.queries = times(&a.queries, &Tensor::from_f32(vec![scale as f32], &[])?)?;
        }
        linear(
            w,
            &name("c_proj"),
            Lies::Conv,
            [width, width],
            true,
            &a.causal()?,
        )
    }
}

impl Decoder for Gpt2 {
    fn size(&self) -> &Size {
        &self.size
    }

    fn body(&self) -> &'static str {
        "transformer."
    }

    fn buffers(&self) -> &'static [&'static str] {
        &[".attn.bias", ".attn.masked_bias"]
    }

    fn head(&self, layer: usize, head: usize) -> (String, Vec<String>) {
        let name = format!("h.{layer}.attn");
        let own = |k: usize| {
            let from = k * self.size.width + head * self.head;
            format!("{from}..{}", from + self.head)
        };
        let inner = (0..3).flat_map(|k| {
            [
                format!("c_attn.weight[:, {}]", own(k)),
                format!("c_attn.bias[{}]", own(k)),
            ]
        });
        let slices = inner
            .chain([format!("c_proj.weight[{}]", own(0))])
            .collect();
        (name, slices)
    }

    fn trace(&self, w: &mut Weights, x: &Tensor, context: usize) -> Result<Tensor> {
        let Size {
            layers,
            width,
            words,
            positions,
            ..
        } = self.size;
        let table = w.body("wte.weight", &[words, width])?;
        let places = w.body("wpe.weight", &[positions, width])?;
        let mut h = add(&x.embedding(&table)?, &places.slice(0, 0, context as i64)?)?;
        for layer in 0..layers {
            let norm = |w: &mut Weights, k: usize, h: &Tensor| {
                layer_norm(w, &format!("h.{layer}.ln_{k}"), width, self.epsilon, h)
            };
            let y = norm(w, 1, &h)?;
            h = add(&h, &self.attention(w, layer, context, &y)?)?;
            let y = norm(w, 2, &h)?;
            let names = [
                format!("h.{layer}.mlp.c_fc"),
                format!("h.{layer}.mlp.c_proj"),
            ];
            let sizes = [width, self.hidden];
            h = add(
                &h,
                &perceptron(
                    w,
                    [&names[0], &names[1]],
                    Lies::Conv,
                    sizes,
                    self.activation,
                    &y,
                )?,
            )?;
        }
        let h = layer_norm(w, "ln_f", width, self.epsilon, &h)?;
        let scores = w.scores(&["lm_head.weight"], &table, self.tied, &[words, width])?;
        h.matmul(&scores.t()?)
    }
}
