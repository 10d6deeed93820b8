//! What decoders are made of, over vectors [rows, positions, width].

use super::rotary::Frequencies;
use super::weights::Weights;
use crate::error::Result;
use crate::kernels::tensor::{Binary, Tensor, Unary};

/// How a weight matrix lies.
#[derive(Clone, Copy, PartialEq)]
pub enum Lies {
    /// [out, in], as torch.nn.Linear.
    Linear,
    /// [in, out], as GPT-2's Conv1D.
    Conv,
}

/// x times a matrix of the body, plus a bias where there is one.
pub fn linear(
    w: &mut Weights,
    name: &str,
    lies: Lies,
    [from, to]: [usize; 2],
    bias: bool,
    x: &Tensor,
) -> Result<Tensor> {
    let weight = format!("{name}.weight");
    let out = match lies {
        Lies::Linear => x.matmul(&w.body(&weight, &[to, from])?.t()?)?,
        Lies::Conv => x.matmul(&w.body(&weight, &[from, to])?)?,
    };
    match bias {
        true => add(&out, &w.body(&format!("{name}.bias"), &[to])?),
        false => Ok(out),
    }
}

/// Weighted layer norm over the last axis.
pub fn layer_norm(
    w: &mut Weights,
    name: &str,
    width: usize,
    epsilon: f64,
    x: &Tensor,
) -> Result<Tensor> {
    let scaled = times(
        &x.normalised(epsilon, true)?,
        &w.body(&format!("{name}.weight"), &[width])?,
    )?;
    add(&scaled, &w.body(&format!("{name}.bias"), &[width])?)
}

/// Weighted root-mean-square norm over the last axis.
pub fn rms_norm(
    w: &mut Weights,
    name: &str,
    width: usize,
    epsilon: f64,
    x: &Tensor,
) -> Result<Tensor> {
    times(
        &x.normalised(epsilon, false)?,
        &w.body(&format!("{name}.weight"), &[width])?,
    )
}

/// a + b
pub fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.binary(Binary::Add, b)
}

/// a b
pub fn times(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    a.binary(Binary::Multiply, b)
}

/// Two layers with a function between them.
pub fn perceptron(
    w: &mut Weights,
    [first, second]: [&str; 2],
    lies: Lies,
    [width, hidden]: [usize; 2],
    f: Unary,
    x: &Tensor,
) -> Result<Tensor> {
    let h = linear(w, first, lies, [width, hidden], true, x)?.unary(f)?;
    linear(w, second, lies, [hidden, width], true, &h)
}

/// Heads [rows, heads, positions, head] of vectors [rows, positions, heads · head].
pub fn heads(x: &Tensor, context: usize, heads: usize, head: usize) -> Result<Tensor> {
    let split = x.reshape(&[-1, context as i64, heads as i64, head as i64])?;
    split.transpose(1, 2)
}

/// Queries, keys and values of heads.
pub struct Attention {
    pub queries: Tensor,
    pub keys: Tensor,
    pub values: Tensor,
}

impl Attention {
    /// With the positions in their angles.
    pub fn turned(self, frequencies: &Frequencies) -> Result<Self> {
        Ok(Self {
            queries: self.queries.turned(&frequencies.0, 0)?,
            keys: self.keys.turned(&frequencies.0, 0)?,
            ..self
        })
    }

    /// Vectors [rows, positions, heads · head] of what comes before each position; of fewer keys than queries, each is for several queries in a row.
    pub fn causal(&self) -> Result<Tensor> {
        let (q, k) = (self.queries.shape()?.dims, self.keys.shape()?.dims);
        let [heads, positions, head] = [q[0], q[1], q[2]].map(|n| n as i64);
        let groups = k[0] as i64;
        let out = match groups == heads {
            true => self.queries.attention(&self.keys, &self.values, true)?,
            false => {
                let q = self
                    .queries
                    .reshape(&[-1, groups, heads / groups, positions, head])?;
                let (k, v) = (self.keys.unsqueeze(2)?, self.values.unsqueeze(2)?);
                q.attention(&k, &v, true)?
                    .reshape(&[-1, heads, positions, head])?
            }
        };
        out.transpose(1, 2)?.reshape(&[-1, positions, heads * head])
    }
}
