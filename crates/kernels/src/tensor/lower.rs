//! From a graph to passes: what layers are made of is put together, views need no copies, and what no row changes is done once.

use super::attention::{Attention, Place};
use super::element::Element;
use super::elements::Spread;
use super::graph::{Graph, ValueKind};
use super::norm::Norm;
use super::operation::{Binary, NOWHERE, Operation, Unary, matrices};
use super::pass::{Dense, Pass};
use super::program::{Instruction, Operand, Program, Source};
use super::shape::{Shape, around, reshaped, sources, strides, walk};
use crate::Result;
use crate::elementwise::Activation;
use std::ops::Range;

/// What several values are made one pass of, and the values that it is computed from.
type Fused = (Pass, Vec<usize>);

struct Lowering<'a> {
    graph: &'a Graph,
    /// Layers and attention, at their last value.
    fused: Vec<Option<Fused>>,
    /// Where the numbers of each value are.
    sources: Vec<Option<Source>>,
    out: Program,
    /// Its constants in double precision.
    exact: Vec<f64>,
}

impl Program {
    /// Compile a graph whose parameters lie at these ranges of a vector.
    pub fn compile(graph: &Graph, parameters: &[Range<usize>]) -> Result<Self> {
        let mut all = Lowering::new(graph, parameters)?;
        all.finish();
        Ok(all.out)
    }

    /// Compile a graph without rows: with its constants in double precision, and where its result is.
    pub(super) fn compile_alone(
        graph: &Graph,
        parameters: &[Range<usize>],
    ) -> Result<(Self, Vec<f64>, Operand)> {
        let all = Lowering::new(graph, parameters)?;
        let output = Operand {
            source: all.sources[graph.output].clone().unwrap_or(Source::Input),
            width: graph.shape().count(),
            active: false,
            first: false,
        };
        Ok((all.out, all.exact, output))
    }
}

impl<'a> Lowering<'a> {
    fn new(graph: &'a Graph, parameters: &[Range<usize>]) -> Result<Self> {
        let mut all = Self {
            graph,
            fused: vec![None; graph.values.len()],
            sources: vec![None; graph.values.len()],
            out: Program::default(),
            exact: Vec::new(),
        };
        all.fuse()?;
        let needed = all.needed();
        for v in (0..graph.values.len()).filter(|v| needed[*v]) {
            all.add(v, parameters)?;
        }
        Ok(all)
    }

    /// The value whose numbers these are, in another shape perhaps.
    fn root(&self, mut v: usize) -> usize {
        while let ValueKind::Apply(Operation::Reshape(_)) = self.graph.values[v].kind {
            v = self.graph.values[v].operands[0];
        }
        v
    }

    fn shape(&self, v: usize) -> &Shape {
        &self.graph.values[v].shape
    }

    /// Find the layers.
    fn fuse(&mut self) -> Result<()> {
        let values = &self.graph.values;
        let mut users = vec![Vec::new(); values.len()];
        let mut needed = vec![false; values.len()];
        needed[self.graph.output] = true;
        for v in (0..values.len()).rev().filter(|v| *v <= self.graph.output) {
            if needed[v] {
                for o in &values[v].operands {
                    needed[*o] = true;
                    users[*o].push(v);
                }
            }
        }
        let only = |v: usize| match users[v][..] {
            [user] if v != self.graph.output => Some(user),
            _ => None,
        };
        for v in (0..values.len()).filter(|v| needed[*v]) {
            if let ValueKind::Apply(Operation::Attention { .. }) = &values[v].kind {
                let (last, found) = self.graph.attention(v, only(v))?;
                self.fused[last] = Some(found);
                continue;
            }
            if let ValueKind::Apply(Operation::Normalise { .. } | Operation::Convolve(_)) =
                &values[v].kind
            {
                let (last, found) = self.graph.with_channels(v, only)?;
                self.fused[last] = Some(found);
                continue;
            }
            let (ValueKind::Apply(Operation::Product), [a, b]) =
                (&values[v].kind, &values[v].operands[..])
            else {
                continue;
            };
            let (left, right) = (self.shape(*a), self.shape(*b));
            if !left.rows || right.rows || right.dims.len() > 2 {
                continue;
            }
            let [_, n, k] = matrices(left, right)?.shape;
            let (weight, transposed) = match values[*b].kind {
                ValueKind::Apply(Operation::Transpose(..)) => (values[*b].operands[0], true),
                _ => (*b, false),
            };
            let mut operands = vec![*a, weight];
            let mut dense = Dense {
                per_row: left.count() / k,
                fan: (k, n),
                transposed,
                activation: Activation::Identity,
            };
            let mut last = v;
            if let Some(user) = only(last)
                && let ValueKind::Apply(Operation::Binary(Binary::Add)) = values[user].kind
                && let Some(other) = values[user].operands.iter().find(|o| **o != last)
                && !self.shape(*other).rows
                && self.shape(*other).count() == n
                && self
                    .shape(*other)
                    .dims
                    .iter()
                    .rev()
                    .skip(1)
                    .all(|d| *d == 1)
                && *self.shape(user) == values[v].shape
                && (n == 1 || self.shape(v).dims.last() == Some(&n))
            {
                operands.push(*other);
                last = user;
            }
            if let Some(user) = only(last)
                && let ValueKind::Apply(Operation::Unary(f)) = values[user].kind
                && let Some(activation) = activation(f)
            {
                dense.activation = activation;
                last = user;
            }
            self.fused[last] = Some((Pass::Dense(dense), operands));
        }
        Ok(())
    }

    /// What a value is computed from.
    fn operands(&self, v: usize) -> Vec<usize> {
        match &self.fused[v] {
            Some((_, operands)) => operands.clone(),
            None => self.graph.values[v].operands.clone(),
        }
    }

    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.graph.values.len()];
        needed[self.graph.output] = true;
        for v in (0..=self.graph.output).rev() {
            if needed[v] {
                for o in self.operands(v) {
                    needed[o] = true;
                }
            }
        }
        needed
    }

    fn add(&mut self, v: usize, parameters: &[Range<usize>]) -> Result<()> {
        let value = &self.graph.values[v];
        let source = match &value.kind {
            ValueKind::Input => Source::Input,
            ValueKind::Columns(_) => anyhow::bail!("a model has no columns of one example"),
            ValueKind::Parameter(p) => Source::Parameter(parameters[*p].clone()),
            ValueKind::Constant(numbers) => {
                let start = self.out.constants.len();
                self.out.constants.extend(numbers.iter().map(|x| *x as f32));
                self.exact.extend(numbers.iter());
                Source::Constant(start..self.out.constants.len())
            }
            ValueKind::Apply(Operation::Reshape(_)) => match self.sources[self.root(v)].clone() {
                Some(source) => source,
                None => anyhow::bail!("a value is used before it is computed"),
            },
            ValueKind::Apply(operation) => {
                let instruction = self.instruction(v, operation)?;
                self.push(instruction, value.shape.rows)
            }
        };
        self.sources[v] = Some(source);
        Ok(())
    }

    /// Give a result its place.
    fn push(&mut self, mut instruction: Instruction, rows: bool) -> Source {
        let out = &mut self.out;
        if !rows {
            let start = out.shared_length;
            out.shared_length += instruction.width;
            instruction.out = start;
            let source = Source::Shared(start..out.shared_length);
            out.shared.push(instruction);
            return source;
        }
        instruction.out = out.widths.len();
        out.widths.push(instruction.width);
        out.before.push(instruction.pass.before(instruction.width));
        out.active.push(instruction.active);
        let source = Source::Buffer(instruction.out);
        out.rows.push(instruction);
        source
    }

    fn instruction(&self, v: usize, operation: &Operation) -> Result<Instruction> {
        let value = &self.graph.values[v];
        let of = self.operands(v);
        let pass = match &self.fused[v] {
            Some((pass, _)) => pass.clone(),
            None => self.graph.pass(v, operation, &of)?,
        };
        let operands = of.iter().enumerate().map(|(i, o)| Operand {
            source: self.sources[*o].clone().unwrap_or(Source::Input),
            width: self.shape(*o).count(),
            // The condition of a choice has no gradient, nor have the numbers of rows.
            active: value.active
                && self.graph.values[*o].active
                && !(i == 0 && matches!(operation, Operation::Choose | Operation::Embed)),
            first: false,
        });
        Ok(Instruction {
            pass,
            operands: operands.collect(),
            out: 0,
            width: value.shape.count(),
            active: value.active,
        })
    }

    /// See that the result is the last buffer, and which gradient comes first where several are added up.
    fn finish(&mut self) {
        let output = self.graph.output;
        let last = self.out.widths.len().checked_sub(1).map(Source::Buffer);
        if self.sources[output] != last {
            // The inputs themselves.
            let width = self.shape(output).count();
            let operand = Operand {
                source: self.sources[output].clone().unwrap_or(Source::Input),
                width,
                active: false,
                first: false,
            };
            let instruction = Instruction {
                pass: Pass::Copy {
                    from: vec![0],
                    run: width,
                },
                operands: vec![operand],
                out: 0,
                width,
                active: false,
            };
            self.push(instruction, true);
        }
        let mut seen = vec![false; self.out.widths.len()];
        if let Some(last) = seen.last_mut() {
            *last = true;
        }
        // Where reached results of passes that are done once begin.
        let mut shared = Vec::new();
        // What only comparisons use gets no gradient, so it has none to pass on.
        let cut = |instruction: &mut Instruction| {
            instruction.active = false;
            instruction
                .operands
                .iter_mut()
                .for_each(|o| o.active = false);
        };
        for instruction in self.out.rows.iter_mut().rev() {
            if !seen[instruction.out] {
                cut(instruction);
                self.out.active[instruction.out] = false;
            }
            for operand in instruction.operands.iter_mut().filter(|o| o.active) {
                match &operand.source {
                    Source::Buffer(i) => operand.first = !std::mem::replace(&mut seen[*i], true),
                    Source::Shared(range) => shared.push(range.start),
                    _ => {}
                }
            }
        }
        for instruction in self.out.shared.iter_mut().rev() {
            if !shared.contains(&instruction.out) {
                cut(instruction);
            }
            for operand in instruction.operands.iter().filter(|o| o.active) {
                if let Source::Shared(range) = &operand.source {
                    shared.push(range.start);
                }
            }
        }
    }
}

impl Graph {
    /// A norm with weights and biases, or a convolution with biases, where that is all that is done with it: the last value of it, and the pass.
    fn with_channels(
        &self,
        v: usize,
        only: impl Fn(usize) -> Option<usize>,
    ) -> Result<(usize, Fused)> {
        let value = &self.values[v];
        let mut operands = value.operands.clone();
        let ValueKind::Apply(operation) = &value.kind else {
            anyhow::bail!("a norm that is no operation");
        };
        let mut pass = self.pass(v, operation, &operands)?;
        let mut last = v;
        if let Pass::Norm(n) = &mut pass {
            let mut at = v;
            while let Some(user) = only(at)
                && let ValueKind::Apply(Operation::Reshape(_)) = self.values[user].kind
            {
                at = user;
            }
            if let Some((user, weight, [channels, inner])) =
                self.channels(at, Binary::Multiply, &only)
                && (if inner == 1 {
                    n.size % channels == 0
                } else {
                    n.size % inner == 0
                })
            {
                (n.channels, n.inner) = (channels, inner);
                operands.push(weight);
                last = user;
                if let Some((user, bias, found)) = self.channels(user, Binary::Add, &only)
                    && found == [channels, inner]
                {
                    operands.push(bias);
                    last = user;
                }
            }
        }
        if let Pass::Convolve(c) = &pass
            && let Some((user, bias, found)) = self.channels(v, Binary::Add, &only)
            && found == [c.groups * c.filters, c.columns().1]
        {
            operands.push(bias);
            last = user;
        }
        Ok((last, (pass, operands)))
    }

    /// The only user of a value, if that is this function of it and of numbers that no row changes, one for each entry along one axis: the user,
    /// those numbers, and the length of the axis and of what lies behind it.
    fn channels(
        &self,
        v: usize,
        f: Binary,
        only: &impl Fn(usize) -> Option<usize>,
    ) -> Option<(usize, usize, [usize; 2])> {
        let user = only(v)?;
        let to = &self.values[user];
        let ValueKind::Apply(Operation::Binary(found)) = &to.kind else {
            return None;
        };
        let other = *to.operands.iter().find(|o| **o != v)?;
        let (of, shape) = (&self.values[other].shape, &self.values[v].shape);
        let longer = of.dims.len() > shape.dims.len();
        let same = *found == f && !of.rows && shape.rows && to.shape == *shape;
        if longer {
            return None;
        }
        let mut long = (0..of.dims.len()).filter(|i| of.dims[*i] != 1);
        let (axis, None) = (long.next()?, long.next()) else {
            return None;
        };
        let at = axis + shape.dims.len() - of.dims.len();
        let fits = same && shape.dims[at] == of.dims[axis];
        let inner = shape.dims[at + 1..].iter().product();
        fits.then_some((user, other, [of.dims[axis], inner]))
    }

    /// Attention that reads its operands where they lie, through slices and exchanged axes, and writes where its only user would: the last
    /// value of it, and the pass.
    fn attention(&self, v: usize, user: Option<usize>) -> Result<(usize, Fused)> {
        let value = &self.values[v];
        let mut operands = value.operands.clone();
        let ValueKind::Apply(operation) = &value.kind else {
            anyhow::bail!("attention that is no operation");
        };
        let Pass::Attention(mut a) = self.pass(v, operation, &operands)? else {
            anyhow::bail!("attention that is another pass");
        };
        for (which, operand) in operands.iter_mut().enumerate() {
            let [.., positions, width] = self.values[*operand].shape.dims[..] else {
                continue;
            };
            let heads = if which == 0 { a.heads } else { a.groups };
            let (base, start, steps) = self.view(*operand);
            let dims = &self.values[*operand].shape.dims;
            let Some(steps) = reshaped(dims, &steps, &[heads, positions, width]) else {
                continue;
            };
            if let [head, step, 1] = steps[..] {
                a.places[which] = Place { start, head, step };
                *operand = base;
            }
        }
        let mut last = v;
        // `[heads, positions, width]` to `[positions, heads, width]`.
        if let (Some(user), [heads, _, width]) = (user, &value.shape.dims[..])
            && let ValueKind::Apply(Operation::Transpose(0, 1)) = self.values[user].kind
        {
            a.places[3] = Place {
                start: 0,
                head: *width,
                step: heads * width,
            };
            last = user;
        }
        Ok((last, (Pass::Attention(a), operands)))
    }

    /// The value that these numbers are some of, where the first of them is, and the distances between neighbours along each axis.
    fn view(&self, v: usize) -> (usize, usize, Vec<usize>) {
        let value = &self.values[v];
        let own = || (v, 0, strides(&value.shape.dims));
        let ValueKind::Apply(operation) = &value.kind else {
            return own();
        };
        match operation {
            Operation::Transpose(a, b) => {
                let (base, start, mut steps) = self.view(value.operands[0]);
                steps.swap(*a, *b);
                (base, start, steps)
            }
            Operation::Slice { axis, start, .. } => {
                let (base, first, steps) = self.view(value.operands[0]);
                (base, first + start * steps[*axis], steps)
            }
            Operation::Reshape(dims) => {
                let below = value.operands[0];
                let (base, start, steps) = self.view(below);
                match reshaped(&self.values[below].shape.dims, &steps, dims) {
                    Some(steps) => (base, start, steps),
                    None => own(),
                }
            }
            _ => own(),
        }
    }

    /// What is done for a value, from these others.
    pub(super) fn pass(&self, v: usize, operation: &Operation, of: &[usize]) -> Result<Pass> {
        let dims = |v: usize| &self.values[v].shape.dims;
        let to = dims(v);
        let element = |f| {
            let each = of.iter().map(|o| spread(dims(*o), to));
            Pass::Element(f, each.collect())
        };
        let first = dims(of[0]);
        Ok(match operation {
            Operation::Unary(f) => element(Element::One(*f)),
            Operation::Binary(f) => element(Element::Two(*f)),
            Operation::Choose => element(Element::Choose),
            Operation::Product => {
                let found = matrices(&self.values[of[0]].shape, &self.values[of[1]].shape)?;
                let [m, n, k] = found.shape;
                let places = |batch: &[usize], size: usize| -> Vec<usize> {
                    let at = sources(batch, &found.batch[2]);
                    at.into_iter().map(|i| i as usize * size).collect()
                };
                let left = places(&found.batch[0], m * k);
                let right = places(&found.batch[1], k * n);
                Pass::Products {
                    shape: found.shape,
                    pairs: left.into_iter().zip(right).collect(),
                }
            }
            Operation::Reshape(_) => Pass::Copy {
                from: vec![0],
                run: first.iter().product(),
            },
            Operation::Transpose(a, b) => {
                let mut steps = strides(first);
                steps.swap(*a, *b);
                // Axes behind both stay together.
                let run: usize = first[b + 1..].iter().product();
                Pass::Copy {
                    from: walk(&to[..=*b], &steps[..=*b]),
                    run,
                }
            }
            Operation::Slice { axis, start, count } => {
                let (outer, length, inner) = around(first, *axis);
                let from = (0..outer).map(|o| ((o * length + start) * inner) as u32);
                Pass::Copy {
                    from: from.collect(),
                    run: count * inner,
                }
            }
            Operation::Normalise { centre, epsilon } => Pass::Norm(Norm {
                size: first.last().copied().unwrap_or(1),
                centre: *centre,
                epsilon: f64::from_bits(*epsilon) as f32,
                inner: 1,
                channels: 0,
            }),
            Operation::Attention { causal, scale } => {
                let [q, k, v] = [0, 1, 2].map(|i: usize| &self.values[of[i]].shape);
                Pass::Attention(Attention::new(q, k, v, f64::from_bits(*scale), *causal)?)
            }
            Operation::Concat(axis) => {
                let run = |o: &usize| {
                    let (_, length, inner) = around(dims(*o), *axis);
                    length * inner
                };
                Pass::Concat(of.iter().map(run).collect())
            }
            Operation::Take { from, fill, .. } => match from.contains(&NOWHERE) {
                true => Pass::Take {
                    from: from.clone(),
                    fill: f32::from_bits(*fill),
                },
                false => Pass::Copy {
                    from: from.to_vec(),
                    run: 1,
                },
            },
            Operation::Convolve(c) => Pass::Convolve(c.clone()),
            Operation::Embed => {
                let table = dims(of[1]);
                Pass::Embed {
                    words: table[0],
                    width: table[1],
                }
            }
            Operation::Reduce(how, axis) => {
                let (_, m, inner) = around(first, *axis);
                Pass::Reduce(*how, m, inner)
            }
            Operation::Softmax(axis) | Operation::LogSoftmax(axis) => {
                let (_, m, inner) = around(first, *axis);
                Pass::Softmax {
                    m,
                    inner,
                    logarithm: matches!(operation, Operation::LogSoftmax(_)),
                }
            }
        })
    }
}

fn activation(f: Unary) -> Option<Activation> {
    Some(match f {
        Unary::Relu => Activation::Relu,
        Unary::Tanh => Activation::Tanh,
        Unary::Sigmoid => Activation::Logistic,
        Unary::Gelu => Activation::Gelu,
        _ => return None,
    })
}

/// How an operand of these lengths is repeated.
fn spread(from: &[usize], to: &[usize]) -> Spread {
    let count = |d: &[usize]| d.iter().product::<usize>();
    if count(from) == count(to) {
        return Spread::Same;
    }
    if count(from) == 1 {
        return Spread::One;
    }
    let ones = from.iter().take_while(|d| **d == 1).count();
    match to.ends_with(&from[ones..]) {
        true => Spread::Again,
        false => Spread::Listed(sources(from, to)),
    }
}
