//! The same network as a traced graph, which an accelerator computes.

use super::{Settings, Transformer};
use crate::error::Result;
use crate::kernels::sequence::EPSILON;
use crate::kernels::tensor::{Binary, Graph, Program, Symbol, Tensor};
use std::ops::Range;

/// Where each parameter of a graph is, and its shape.
type Shaped = Vec<(Range<usize>, Vec<usize>)>;

/// Parameters, in the order in which they are used.
#[derive(Default)]
struct Parameters(Shaped);

impl Parameters {
    fn tensor(&mut self, at: &Range<usize>, shape: &[usize]) -> Tensor {
        self.0.push((at.clone(), shape.to_vec()));
        Symbol::parameter(self.0.len() - 1, shape).into()
    }

    /// The sum with a vector of these parameters; the tensor itself if there are none.
    fn plus(&mut self, x: Tensor, bias: &Range<usize>) -> Result<Tensor> {
        match bias.is_empty() {
            true => Ok(x),
            false => x.binary(Binary::Add, &self.tensor(bias, &[bias.len()])),
        }
    }

    /// The layer norm whose weight and bias are here; the tensor itself if there are none.
    fn norm(&mut self, x: &Tensor, at: &Range<usize>) -> Result<Tensor> {
        if at.is_empty() {
            return Ok(x.clone());
        }
        let middle = at.start + at.len() / 2;
        let weight = self.tensor(&(at.start..middle), &[at.len() / 2]);
        let normed = x.normalised(f64::from(EPSILON), true)?;
        self.plus(normed.binary(Binary::Multiply, &weight)?, &(middle..at.end))
    }
}

/// The graph, and its parameters.
pub fn graph(model: &Transformer) -> Result<(Graph, Shaped)> {
    let (s, places) = (&model.settings, &model.places);
    let Settings {
        vocabulary,
        context,
        width,
        heads,
        head_width,
        ..
    } = *s;
    let attention = s.attention();
    let mut p = Parameters::default();
    let tokens = Tensor::from(Symbol::input(Some(context)));
    let mut x = tokens.embedding(&p.tensor(&places.embed, &[vocabulary, width]))?;
    let position = p.tensor(&places.position, &[context, width]);
    for at in &places.blocks {
        let normed = p.norm(&x, &at.norm)?;
        let query_key = p.tensor(&at.query_key, &[2 * attention, width]).t()?;
        let placed = normed.binary(Binary::Add, &position)?;
        let query_key = p.plus(placed.matmul(&query_key)?, &at.query_key_bias)?;
        let value = p.tensor(&at.value, &[attention, width]).t()?;
        let value = p.plus(normed.matmul(&value)?, &at.value_bias)?;
        let of_heads = |t: &Tensor, from: usize| {
            t.slice(-1, from as i64, (from + attention) as i64)?
                .reshape(&[-1, context as i64, heads as i64, head_width as i64])?
                .transpose(1, 2)
        };
        let (q, k) = (of_heads(&query_key, 0)?, of_heads(&query_key, attention)?);
        let read = q.attention(&k, &of_heads(&value, 0)?, true)?;
        let read = read
            .transpose(1, 2)?
            .reshape(&[-1, context as i64, attention as i64])?;
        let out = p.tensor(&at.out, &[attention, width]);
        let out = p.plus(read.matmul(&out)?, &at.out_bias)?;
        x = x.binary(Binary::Add, &out)?;
    }
    let normed = p.norm(&x, &places.final_norm)?;
    let unembed = p.tensor(&places.unembed, &[vocabulary, width]).t()?;
    let logits = p.plus(normed.matmul(&unembed)?, &places.unembed_bias)?;
    Ok((Graph::new(&logits.symbol()?)?, p.0))
}

/// Its program.
pub fn program(model: &Transformer) -> Result<Program> {
    let (graph, parameters) = graph(model)?;
    let ranges: Vec<_> = parameters.into_iter().map(|(range, _)| range).collect();
    Program::compile(&graph, &ranges)
}
