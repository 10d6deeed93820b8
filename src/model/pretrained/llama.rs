//! Llama (Touvron et al. 2023) and what has its shape: `LlamaForCausalLM`, `MistralForCausalLM`, `Qwen2ForCausalLM`.

use super::config::Config;
use super::parts::{Attention, Lies, add, heads, linear, rms_norm, times};
use super::rotary::Frequencies;
use super::weights::Weights;
use super::{Decoder, Size};
use crate::error::Result;
use crate::kernels::tensor::{Tensor, Unary};
use anyhow::{bail, ensure};
use serde_json::Value;

/// What config.json says.
pub struct Llama {
    size: Size,
    /// Keys and values, each for several queries.
    groups: usize,
    head: usize,
    hidden: usize,
    activation: Unary,
    epsilon: f64,
    tied: bool,
    frequencies: Frequencies,
    /// Whether there are biases: of queries, keys and values; of the output of attention; of the perceptron.
    biases: [bool; 3],
    /// Positions that attention looks back over, if not all.
    window: Option<usize>,
}

impl Llama {
    pub fn new(c: &Config, family: &str) -> Result<Self> {
        let (width, heads) = (c.size("hidden_size")?, c.size("num_attention_heads")?);
        let head = match c.opt_size("head_dim")? {
            Some(head) => head,
            None => Config::head(width, heads)?,
        };
        let groups = c.opt_size("num_key_value_heads")?.unwrap_or(heads);
        ensure!(
            heads.is_multiple_of(groups),
            "config.json: {heads} heads of queries do not divide among {groups} of keys and values"
        );
        let all = c.bool("attention_bias", false)?;
        let biases = match family {
            "llama" => [all, all, c.bool("mlp_bias", false)?],
            "qwen2" => [true, false, false],
            _ => [false; 3],
        };
        Ok(Self {
            size: Size {
                layers: c.size("num_hidden_layers")?,
                width,
                heads,
                words: c.size("vocab_size")?,
                positions: c.size("max_position_embeddings")?,
            },
            groups,
            head,
            hidden: c.size("intermediate_size")?,
            activation: c.activation("hidden_act", "silu")?,
            epsilon: c.positive("rms_norm_eps", 1e-6)?,
            tied: c.bool("tie_word_embeddings", false)?,
            frequencies: c.frequencies(head, 1.0)?,
            biases,
            window: window(c, family)?,
        })
    }

    fn attention(&self, w: &mut Weights, name: &str, context: usize, x: &Tensor) -> Result<Tensor> {
        let (width, [inner, outer, _]) = (self.size.width, self.biases);
        let mut part = |part: &str, count: usize| {
            let sizes = [width, count * self.head];
            let all = linear(
                w,
                &format!("{name}.{part}_proj"),
                Lies::Linear,
                sizes,
                inner,
                x,
            )?;
            heads(&all, context, count, self.head)
        };
        let a = Attention {
            queries: part("q", self.size.heads)?,
            keys: part("k", self.groups)?,
            values: part("v", self.groups)?,
        };
        let out = a.turned(&self.frequencies)?.causal()?;
        let sizes = [self.size.heads * self.head, width];
        linear(
            w,
            &format!("{name}.o_proj"),
            Lies::Linear,
            sizes,
            outer,
            &out,
        )
    }

    /// A gated perceptron: down(f(gate x) · up x).
    fn gated(&self, w: &mut Weights, name: &str, x: &Tensor) -> Result<Tensor> {
        let (width, hidden, bias) = (self.size.width, self.hidden, self.biases[2]);
        let mut part = |part: &str, x: &Tensor, sizes| {
            linear(
                w,
                &format!("{name}.{part}_proj"),
                Lies::Linear,
                sizes,
                bias,
                x,
            )
        };
        let gate = part("gate", x, [width, hidden])?.unary(self.activation)?;
        let up = part("up", x, [width, hidden])?;
        part("down", &times(&gate, &up)?, [hidden, width])
    }
}

/// Positions that attention looks back over, if not all.
fn window(c: &Config, family: &str) -> Result<Option<usize>> {
    match family {
        "mistral" if c.has("sliding_window") => c.opt_size("sliding_window"),
        "mistral" => Ok(Some(4096)),
        "qwen2" => {
            let slides = |layers: &Vec<Value>| layers.iter().any(|l| l == "sliding_attention");
            let some = match c.get("layer_types") {
                Some(Value::Array(layers)) => slides(layers),
                Some(other) => bail!("config.json: 'layer_types' is {other}, but must be an array"),
                None => c.bool("use_sliding_window", false)?,
            };
            Ok(if some {
                c.opt_size("sliding_window")?
            } else {
                None
            })
        }
        _ => Ok(None),
    }
}

impl Decoder for Llama {
    fn size(&self) -> &Size {
        &self.size
    }

    fn body(&self) -> &'static str {
        "model."
    }

    fn buffers(&self) -> &'static [&'static str] {
        &[".rotary_emb.inv_freq"]
    }

    fn head(&self, layer: usize, head: usize) -> (String, Vec<String>) {
        let own = |i: usize| format!("{}..{}", i * self.head, (i + 1) * self.head);
        let group = head / (self.size.heads / self.groups);
        let of = [("q", head), ("k", group), ("v", group)];
        let inner = |end: &'static str| of.map(|(p, i)| format!("{p}_proj.{end}[{}]", own(i)));
        let mut slices = inner("weight").to_vec();
        if self.biases[0] {
            slices.extend(inner("bias"));
        }
        slices.push(format!("o_proj.weight[:, {}]", own(head)));
        (format!("layers.{layer}.self_attn"), slices)
    }

    fn trace(&self, w: &mut Weights, x: &Tensor, context: usize) -> Result<Tensor> {
        if let Some(window) = self.window.filter(|w| *w < context) {
            bail!(
                "its attention looks back over {window} positions only (config.json: 'sliding_window'), which is not supported; give a context of at most {window}, where that makes no difference"
            );
        }
        let Size {
            layers,
            width,
            words,
            ..
        } = self.size;
        let table = w.body("embed_tokens.weight", &[words, width])?;
        let mut h = x.embedding(&table)?;
        for layer in 0..layers {
            let name = |part: &str| format!("layers.{layer}.{part}");
            let norm = |w: &mut Weights, part: &str, h: &Tensor| {
                rms_norm(w, &name(part), width, self.epsilon, h)
            };
            let y = norm(w, "input_layernorm", &h)?;
            h = add(&h, &self.attention(w, &name("self_attn"), context, &y)?)?;
            let y = norm(w, "post_attention_layernorm", &h)?;
            h = add(&h, &self.gated(w, &name("mlp"), &y)?)?;
        }
        let h = rms_norm(w, "norm", width, self.epsilon, &h)?;
        let scores = w.scores(&["lm_head.weight"], &table, self.tied, &[words, width])?;
        h.matmul(&scores.t()?)
    }
}
