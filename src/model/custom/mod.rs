//! `model::custom`: a model written in a script, as tensors.
//!
//! The forward pass is traced once, as a graph of tensor operations, and compiled: [`Custom`] runs it forward and backward on
//! preallocated buffers. What is nothing but fully connected layers becomes those of [`dense`]: the same
//! numbers as `model::mlp`, and an accelerator takes it. [`Interpreted`] calls the script's function at every step instead.

mod interpreted;
mod parameters;

pub use interpreted::Interpreted;
pub use parameters::{Declared, Parameters, Start};

use super::initialise::Role;
use super::{Block, Dense, Layout, Model, Tile, Widths, dense, initialise};
use crate::error::Result;
use crate::kernels::gemm_baseline::Product;
use crate::kernels::tensor::{Graph, Layer, Plan, Program, Shape, Symbol, Whole};
use crate::kernels::thread_pool::Team;
use crate::options::{Kind, Range, Spec, option, optional, required};
use crate::rng::Stream;
use anyhow::{anyhow, bail, ensure};
use candle_core::Tensor;
use std::fmt::Write;

/// Options of `model::custom(#{…})`.
pub const OPTIONS: &[Spec] = &[
    required(
        "params",
        Kind::Anything("a map of shapes by name, or an array of [name, shape]"),
        "Parameters. In place of a shape: `#{ shape, init }`, with an `init` of its own: one of those below, a number, or a tensor.",
    ),
    required(
        "forward",
        Kind::Anything("a closure |p, x| …"),
        "The outputs [rows, outputs] from the parameters p.name and the inputs x [rows, inputs].",
    ),
    optional(
        "inputs",
        Kind::Int(Range::Between(1.0, 1e9)),
        "inferred from how x is used",
        "Components of an input.",
    ),
    optional(
        "name",
        Kind::Text,
        "none",
        "Name that is shown when the model is printed.",
    ),
    option(
        "interpret",
        Kind::Bool,
        "false",
        "Call the closure at every step, with numbers, for what cannot be traced; many times slower. Needs `inputs`.",
    ),
    CHECKPOINT,
    initialise::OPTION,
    initialise::SCALE,
];

/// Memory for time.
pub const CHECKPOINT: Spec = option(
    "checkpoint",
    Kind::Bool,
    "false",
    "Keep less of a row: what lies between a few layers is computed a second time on the way back. For networks that are deep and rows that are large; an accelerator leaves it out.",
);

/// How the graph is computed.
enum Body {
    /// Fully connected layers, and nothing else.
    Dense(Vec<Dense>),
    /// Passes, which threads take blocks of rows through.
    Program(Box<Program>),
    /// Passes that threads share, one after the other, with gradients and without.
    Whole(Box<Program>, Box<[Plan; 2]>),
}

/// Numbers that are kept of a row from which on threads share passes, not rows: 4 MB.
const LARGE: usize = 1 << 20;

impl Body {
    fn whole(program: Program, checkpoint: bool) -> Self {
        let plans = [program.plan(true, checkpoint), program.plan(false, false)];
        Body::Whole(Box::new(program), Box::new(plans))
    }
}

/// A model that was traced.
pub struct Custom {
    parameters: Parameters,
    graph: Graph,
    body: Body,
    inputs: usize,
    positions: usize,
    outputs: usize,
    vocabulary: Option<usize>,
}

/// Components of what a model of one row gives, `[rows, outputs]` or `[rows, positions, outputs]`: positions and all outputs.
fn outputs(shape: &Shape) -> Result<(usize, usize)> {
    ensure!(
        shape.rows,
        "model::custom: forward gives a tensor of shape {shape} that does not depend on the inputs x; it must give [rows, outputs]"
    );
    match shape.dims[..] {
        [n] => Ok((1, n)),
        [p, n] => Ok((p, p * n)),
        _ => bail!(
            "model::custom: forward gives a tensor of shape {shape}, but must give [rows, outputs]{}",
            if shape.dims.is_empty() {
                "; for one output use unsqueeze(1)"
            } else {
                ""
            }
        ),
    }
}

impl Custom {
    /// A model from what its forward pass gave for symbols; parameter i is the i-th that was declared.
    pub fn new(parameters: Parameters, forward: &Symbol, inputs: Option<usize>) -> Result<Self> {
        let graph = Graph::new(forward)?;
        let (positions, outputs) = outputs(graph.shape())?;
        let inputs = graph
            .inputs()
            .or(inputs)
            .ok_or_else(|| anyhow!("model::custom: forward does not use x"))?;
        let tensors = parameters.layout().tensors();
        for (i, t) in tensors.iter().enumerate() {
            ensure!(
                graph.uses(i),
                "model::custom: forward does not use the parameter '{}'; take it out of params",
                t.name
            );
        }
        ensure!(
            graph.is_active(),
            "model::custom: no output has a derivative with respect to a parameter: comparisons alone have none"
        );
        let ranges: Vec<_> = tensors.iter().map(|t| t.range.clone()).collect();
        let program = Program::compile(&graph, &ranges)?;
        let body = match program.layers() {
            Some(layers) => Body::Dense(layers.into_iter().map(layer).collect()),
            None => {
                let [values, before, _] = program.widths();
                match values.iter().chain(&before).sum::<usize>() >= LARGE {
                    true => Body::whole(program, false),
                    false => Body::Program(Box::new(program)),
                }
            }
        };
        Ok(Self {
            parameters: parameters.with_roles(&graph),
            graph,
            body,
            inputs,
            positions,
            outputs,
            vocabulary: None,
        })
    }

    /// This model; with `checkpoint`, segments of it are computed a second time on the way back, so that less of a row is kept.
    pub fn with_checkpoints(mut self, checkpoint: bool) -> Self {
        self.body = match self.body {
            Body::Program(p) | Body::Whole(p, _) if checkpoint => Body::whole(*p, true),
            body => body,
        };
        self
    }

    /// The same, whose inputs are numbers of so many tokens.
    pub fn with_vocabulary(mut self, tokens: usize) -> Self {
        self.vocabulary = Some(tokens);
        self
    }
}

fn layer(l: Layer) -> Dense {
    Dense {
        fan_in: l.fan.0,
        fan_out: l.fan.1,
        weight: l.weight,
        flipped: !l.transposed,
        bias: l.bias,
        activation: l.activation,
    }
}

impl Model for Custom {
    fn describe(&self) -> String {
        let mut text = self.parameters.describe();
        let _ = match &self.body {
            Body::Dense(layers) => {
                let widths = layers.iter().map(|l| l.fan_out.to_string());
                let widths: Vec<_> = std::iter::once(self.inputs.to_string())
                    .chain(widths)
                    .collect();
                let names: Vec<_> = layers.iter().map(|l| l.activation.name()).collect();
                write!(
                    text,
                    ", dense layers {}, {}",
                    widths.join("-"),
                    names.join(", ")
                )
            }
            Body::Program(p) | Body::Whole(p, _) => {
                let (rows, shared) = p.passes();
                write!(
                    text,
                    ", {} inputs, {} outputs, compiled to {rows} passes per row",
                    self.inputs, self.outputs
                )
                .and_then(|()| match shared {
                    0 => Ok(()),
                    n => write!(text, " and {n} for all rows"),
                })
                .and_then(|()| match self.widths().memory {
                    0 => Ok(()),
                    n => write!(text, ", {:.1} MB kept of each", 4e-6 * n as f64),
                })
            }
        };
        text + &*format!(", N = {}", self.layout().len())
    }

    fn layout(&self) -> &Layout {
        self.parameters.layout()
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn positions(&self) -> usize {
        self.positions
    }

    fn vocabulary(&self) -> Option<usize> {
        self.vocabulary
    }

    fn dense(&self) -> Option<Vec<Dense>> {
        match &self.body {
            Body::Dense(layers) => Some(layers.clone()),
            Body::Program(_) | Body::Whole(..) => None,
        }
    }

    fn program(&self) -> Result<Program> {
        Ok(match &self.body {
            Body::Dense(layers) => dense::program(layers),
            Body::Program(p) | Body::Whole(p, _) => (**p).clone(),
        })
    }

    fn products(&self) -> Vec<Product> {
        match &self.body {
            Body::Dense(layers) => dense::products(layers),
            Body::Program(p) | Body::Whole(p, _) => p.products(),
        }
    }

    fn widths(&self) -> Widths {
        match &self.body {
            Body::Dense(layers) => dense::widths(layers),
            Body::Program(p) => {
                let [activations, before, deltas] = p.widths();
                Widths {
                    activations,
                    before,
                    deltas,
                    memory: 0,
                }
            }
            Body::Whole(_, plans) => Widths {
                activations: vec![self.outputs],
                before: vec![0],
                deltas: vec![if plans[0].replaces() { 0 } else { self.outputs }],
                memory: plans[0].length(),
            },
        }
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        hash.update(format!("{:?}", self.graph).as_bytes());
    }

    fn roles(&self) -> Vec<Role> {
        self.parameters.roles().to_vec()
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.parameters.draw(stream)
    }

    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor> {
        let out = self.graph.evaluate(&self.parameters.cut(params)?, inputs)?;
        out.reshape(((), self.outputs))
    }

    fn shared(&self, params: &[f32]) -> Vec<f32> {
        match &self.body {
            Body::Dense(_) => Vec::new(),
            Body::Program(p) | Body::Whole(p, _) => p.prepare(params),
        }
    }

    fn forward(&self, params: &[f32], b: &mut Block) -> Result<()> {
        match &self.body {
            Body::Dense(layers) => dense::forward(layers, params, b),
            Body::Program(p) => {
                let (values, before) = (&mut b.activations, &mut b.before);
                p.forward(params, b.shared, b.rows, b.inputs, values, before);
            }
            Body::Whole(..) => unreachable!("{WHOLE}"),
        }
        Ok(())
    }

    fn backward(&self, params: &[f32], b: &mut Block) -> Result<()> {
        match &self.body {
            Body::Dense(layers) => dense::backward(layers, params, b),
            Body::Program(p) => p.backward(
                params,
                b.shared,
                b.rows,
                b.inputs,
                &b.activations,
                &b.before,
                &mut b.deltas,
            ),
            Body::Whole(..) => unreachable!("{WHOLE}"),
        }
        Ok(())
    }

    fn gradient(
        &self,
        params: &[f32],
        tile: &Tile,
        grad: &mut [f32],
        add: bool,
        team: &Team,
    ) -> Result<()> {
        match &self.body {
            Body::Dense(layers) => dense::gradient(layers, tile, grad, add, team),
            Body::Program(p) => {
                if !add {
                    grad.fill(0.0);
                }
                p.gradient(
                    params,
                    &tile.shared,
                    tile.rows,
                    &tile.inputs,
                    [&tile.activations, &tile.before, &tile.deltas],
                    grad,
                    team,
                );
            }
            Body::Whole(..) => unreachable!("{WHOLE}"),
        }
        Ok(())
    }

    fn whole(&self) -> bool {
        matches!(self.body, Body::Whole(..))
    }

    fn forward_whole(&self, params: &[f32], tile: &mut Tile, gradient: bool, team: &Team) {
        if let Body::Whole(p, plans) = &self.body {
            let plan = &plans[usize::from(!gradient)];
            p.forward_whole(plan, &mut whole(plan, params, tile), team);
        }
    }

    fn gradient_whole(
        &self,
        params: &[f32],
        tile: &mut Tile,
        grad: &mut [f32],
        add: bool,
        team: &Team,
    ) {
        if let Body::Whole(p, plans) = &self.body {
            let plan = &plans[0];
            if !add {
                grad.fill(0.0);
            }
            p.backward_whole(plan, &mut whole(plan, params, tile), grad, team);
        }
    }
}

/// Who takes a model of large rows block by block is wrong.
const WHOLE: &str = "large rows are computed pass by pass";

/// A tile as a plan takes it.
fn whole<'a>(plan: &Plan, parameters: &'a [f32], tile: &'a mut Tile) -> Whole<'a> {
    let needed = plan.length() * tile.rows;
    if tile.memory.len() < needed {
        tile.memory.resize(needed, 0.0);
    }
    let last = |buffers: &'a mut [Vec<f32>]| buffers.last_mut().map(|b| &mut b[..]);
    Whole {
        parameters,
        shared: &tile.shared,
        rows: tile.rows,
        inputs: &tile.inputs,
        outputs: last(&mut tile.activations).unwrap_or_default(),
        delta: last(&mut tile.deltas).unwrap_or_default(),
        memory: &mut tile.memory,
    }
}
