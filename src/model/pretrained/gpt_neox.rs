//! GPT-NeoX (Black et al. 2022), `GPTNeoXForCausalLM`: the networks of Pythia.

use super::config::Config;
use super::parts::{Attention, Lies, add, layer_norm, linear, perceptron};
use super::rotary::Frequencies;
use super::weights::Weights;
use super::{Decoder, Size};
use crate::error::Result;
use crate::kernels::tensor::{Tensor, Unary};

/// What config.json says.
pub struct GptNeox {
    size: Size,
    head: usize,
    hidden: usize,
    activation: Unary,
    epsilon: f64,
    tied: bool,
    frequencies: Frequencies,
    /// Whether attention and perceptron of a layer both see what comes into it.
    parallel: bool,
    /// Whether attention has biases.
    bias: bool,
}

impl GptNeox {
    pub fn new(c: &Config) -> Result<Self> {
        let (width, heads) = (c.size("hidden_size")?, c.size("num_attention_heads")?);
        let head = Config::head(width, heads)?;
        Ok(Self {
            size: Size {
                layers: c.size("num_hidden_layers")?,
                width,
                heads,
                words: c.size("vocab_size")?,
                positions: c.size("max_position_embeddings")?,
            },
            head,
            hidden: c.size("intermediate_size")?,
            activation: c.activation("hidden_act", "gelu")?,
            epsilon: c.positive("layer_norm_eps", 1e-5)?,
            tied: c.bool("tie_word_embeddings", false)?,
            frequencies: c.frequencies(head, 0.25)?,
            parallel: c.bool("use_parallel_residual", true)?,
            bias: c.bool("attention_bias", true)?,
        })
    }

    fn attention(&self, w: &mut Weights, name: &str, context: usize, x: &Tensor) -> Result<Tensor> {
        let width = self.size.width;
        let all = linear(
            w,
            &format!("{name}.query_key_value"),
            Lies::Linear,
            [width, 3 * width],
            self.bias,
            x,
        )?;
        // Query, key and value of a head stand together.
        let [n, heads, head] = [context, self.size.heads, self.head].map(|n| n as i64);
        let all = all.reshape(&[-1, n, heads, 3 * head])?.transpose(1, 2)?;
        let part = |k: i64| all.slice(-1, k * head, (k + 1) * head);
        let a = Attention {
            queries: part(0)?,
            keys: part(1)?,
            values: part(2)?,
        };
        let out = a.turned(&self.frequencies)?.causal()?;
        linear(
            w,
            &format!("{name}.dense"),
            Lies::Linear,
            [width, width],
            self.bias,
            &out,
        )
    }
}

impl Decoder for GptNeox {
    fn size(&self) -> &Size {
        &self.size
    }

    fn body(&self) -> &'static str {
        "gpt_neox."
    }

    fn buffers(&self) -> &'static [&'static str] {
        &[
            ".attention.bias",
            ".attention.masked_bias",
            ".rotary_emb.inv_freq",
        ]
    }

    fn head(&self, layer: usize, head: usize) -> (String, Vec<String>) {
        let own = |width: usize| format!("{}..{}", head * width, (head + 1) * width);
        let (inner, outer) = (own(3 * self.head), own(self.head));
        let mut slices = vec![
            format!("query_key_value.weight[{inner}]"),
            format!("dense.weight[:, {outer}]"),
        ];
        if self.bias {
            slices.push(format!("query_key_value.bias[{inner}]"));
        }
        (format!("layers.{layer}.attention"), slices)
    }

    fn trace(&self, w: &mut Weights, x: &Tensor, context: usize) -> Result<Tensor> {
        let Size {
            layers,
            width,
            words,
            ..
        } = self.size;
        let table = w.body("embed_in.weight", &[words, width])?;
        let mut h = x.embedding(&table)?;
        for layer in 0..layers {
            let name = |part: &str| format!("layers.{layer}.{part}");
            let norm = |w: &mut Weights, part: &str, h: &Tensor| {
                layer_norm(w, &name(part), width, self.epsilon, h)
            };
            let y = norm(w, "input_layernorm", &h)?;
            let seen = add(&h, &self.attention(w, &name("attention"), context, &y)?)?;
            let y = norm(
                w,
                "post_attention_layernorm",
                if self.parallel { &h } else { &seen },
            )?;
            let names = [name("mlp.dense_h_to_4h"), name("mlp.dense_4h_to_h")];
            let sizes = [width, self.hidden];
            h = add(
                &seen,
                &perceptron(
                    w,
                    [&names[0], &names[1]],
                    Lies::Linear,
                    sizes,
                    self.activation,
                    &y,
                )?,
            )?;
        }
        let h = layer_norm(w, "final_layer_norm", width, self.epsilon, &h)?;
        let scores = w.scores(
            &["embed_out.weight", "lm_head.weight"],
            &table,
            self.tied,
            &[words, width],
        )?;
        h.matmul(&scores.t()?)
    }
}
