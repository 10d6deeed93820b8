//! Random programs of tensors: what our compiler makes of them has the values and the gradients that candle's autograd has.
//!
//! `PROGRAMS=5000` tries so many; a program that differs is printed, and its number is its seed.

use super::support::Scratch;
use ergodic::script::Interpreter;
use ergodic::simulation::session::Session;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A tensor of a program: its name, whether its first axis is that of the examples, and its other axes.
#[derive(Clone, PartialEq)]
struct Node {
    name: String,
    batch: bool,
    shape: Vec<usize>,
}

/// A program that is being written.
struct Program {
    dice: StdRng,
    params: Vec<(String, Vec<usize>)>,
    lines: String,
    nodes: Vec<Node>,
}

const UNARY: &[&str] = &[
    "tanh()",
    "sigmoid()",
    "relu()",
    "softplus()",
    "gelu()",
    "gelu_tanh()",
    "silu()",
    "sin()",
    "cos()",
    "atan()",
    "erf()",
    "abs()",
    "elu(0.5)",
    "leaky_relu(0.1)",
    "clamp(-0.7, 0.6)",
    "tanh().exp()",
    "tanh().square()",
    "pow(3).tanh()",
];

/// Functions along an axis that keep it.
const ALONG: &[&str] = &["softmax", "log_softmax", "cumsum"];

/// Functions that sum an axis up.
const OVER: &[&str] = &["max", "min", "sum", "mean", "log_sum_exp"];

/// The shape of a sum of tensors, as NumPy has it; none if they do not fit.
fn broadcast(a: &Node, b: &Node) -> Option<(bool, Vec<usize>)> {
    // The axis of the examples comes first, and must meet itself or nothing.
    let fits = match (a.batch, b.batch) {
        (true, true) => a.shape.len() == b.shape.len(),
        (true, false) => a.shape.len() >= b.shape.len(),
        (false, true) => a.shape.len() <= b.shape.len(),
        (false, false) => true,
    };
    let rank = a.shape.len().max(b.shape.len());
    let at = |s: &[usize], k: usize| (k + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    let shape = (0..rank).map(|k| match (at(&a.shape, k), at(&b.shape, k)) {
        (m, n) if m == n || n == 1 => Some(m),
        (1, n) => Some(n),
        _ => None,
    });
    let shape: Option<Vec<_>> = shape.collect();
    fits.then_some((a.batch || b.batch, shape?))
}

impl Program {
    fn of(seed: u64) -> Self {
        let mut program = Self {
            dice: StdRng::seed_from_u64(seed),
            params: Vec::new(),
            lines: String::new(),
            nodes: Vec::new(),
        };
        let shape = [vec![6], vec![2, 3], vec![3, 2], vec![1, 2, 3]]
            .choose(&mut program.dice)
            .unwrap()
            .clone();
        let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
        program.put(
            format!("x.reshape([-1, {}])", sizes.join(", ")),
            true,
            shape,
        );
        for _ in 0..program.dice.random_range(3..14) {
            program.step();
        }
        program
    }

    fn put(&mut self, code: String, batch: bool, shape: Vec<usize>) {
        let name = format!("t{}", self.nodes.len());
        writeln!(self.lines, "let {name} = {code};").unwrap();
        self.nodes.push(Node { name, batch, shape });
    }

    fn param(&mut self, shape: Vec<usize>) -> Node {
        let name = format!("w{}", self.params.len());
        self.params.push((name.clone(), shape.clone()));
        Node {
            name: format!("p.{name}"),
            batch: false,
            shape,
        }
    }

    /// One more line, if what is drawn fits.
    fn step(&mut self) {
        // Rather the last ones than the first.
        let from = self.nodes.len().saturating_sub(3);
        let Node { name, batch, shape } =
            self.nodes[from..].choose(&mut self.dice).unwrap().clone();
        let rank = shape.len();
        let axis = (rank > 0).then(|| self.dice.random_range(0..rank));
        // Counted from the end, where the axis of the examples does not matter.
        let from_end = axis.map_or(0, |a| a as i64 - rank as i64);
        match (self.dice.random_range(0..11), axis) {
            (0 | 1, _) => {
                let f = UNARY.choose(&mut self.dice).unwrap();
                self.put(format!("{name}.{f}"), batch, shape);
            }
            (2 | 3, _) => self.combine(Node { name, batch, shape }),
            (4, Some(a)) => {
                // Of equal numbers, which concatenation makes, each gets the whole derivative from candle.
                let first = if self.lines.contains("concat") { 2 } else { 0 };
                let f = OVER[first..].choose(&mut self.dice).unwrap();
                let keep: bool = self.dice.random();
                let mut rest = shape;
                rest[a] = 1;
                if !keep {
                    rest.remove(a);
                }
                self.put(format!("{name}.{f}({from_end}, {keep})"), batch, rest);
            }
            (5, Some(_)) => {
                let f = ALONG.choose(&mut self.dice).unwrap();
                self.put(format!("{name}.{f}({from_end})"), batch, shape);
            }
            (6, Some(a)) if rank >= 2 => {
                let b = self.dice.random_range(0..rank);
                let mut rest = shape;
                rest.swap(a, b);
                self.put(
                    format!("{name}.transpose({from_end}, {})", b as i64 - rank as i64),
                    batch,
                    rest,
                );
            }
            (7, Some(a)) => {
                let (n, mut rest) = (shape[a], shape);
                let k = self.dice.random_range(0..n);
                if self.dice.random() {
                    rest.remove(a);
                    self.put(format!("{name}.select({from_end}, {k})"), batch, rest);
                } else {
                    let end = self.dice.random_range(k + 1..=n);
                    rest[a] = end - k;
                    self.put(format!("{name}.slice({from_end}, {k}, {end})"), batch, rest);
                }
            }
            // A product of vectors has no axis of rows.
            (8, Some(_)) if batch || rank >= 2 => {
                let n = self.dice.random_range(1..5);
                let w = self.param(vec![shape[rank - 1], n]);
                let mut rest = shape;
                rest[rank - 1] = n;
                let product = format!("({name}.matmul({}) * 0.5).tanh()", w.name);
                self.put(product, batch, rest);
            }
            (9, Some(_)) if rank >= 2 => {
                let mut rest = shape;
                rest[rank - 1] = rest[rank - 2];
                self.put(
                    format!("({name}.matmul({name}.t()) * 0.3).tanh()"),
                    batch,
                    rest,
                );
            }
            (10, Some(a)) => {
                let others = self.nodes.iter().filter(|o| {
                    let same = |(k, n): (usize, &usize)| k == a || shape[k] == *n;
                    o.batch == batch
                        && o.shape.len() == rank
                        && o.shape.iter().enumerate().all(same)
                });
                let other = others
                    .collect::<Vec<_>>()
                    .choose(&mut self.dice)
                    .map(|o| (*o).clone())
                    .unwrap();
                let mut rest = shape;
                rest[a] += other.shape[a];
                if rest.iter().product::<usize>() < 60 {
                    self.put(
                        format!("tensor::concat([{name}, {}], {from_end})", other.name),
                        batch,
                        rest,
                    );
                }
            }
            _ => {}
        }
    }

    /// Two tensors, element by element.
    fn combine(&mut self, a: Node) {
        let other = match self.dice.random() {
            // A parameter with axes of one here and there.
            true => {
                let (kept, rank) = (a.shape.clone(), a.shape.len());
                let first = self.dice.random_range(0..=rank);
                let shape = kept[first..]
                    .iter()
                    .map(|n| if self.dice.random() { *n } else { 1 })
                    .collect::<Vec<_>>();
                let shape = if shape.is_empty() { vec![1] } else { shape };
                self.param(shape)
            }
            false => self.nodes.choose(&mut self.dice).unwrap().clone(),
        };
        let Some((batch, shape)) = broadcast(&a, &other) else {
            return;
        };
        let (a, b) = (&a.name, &other.name);
        let mut ways = vec![
            format!("{a} + {b}"),
            format!("{b} - {a}"),
            format!("({a} * {b}).tanh()"),
            format!("{a} / ({b}.square() + 1)"),
            format!("{a}.ln_add_exp({b})"),
        ];
        // Numbers of which one comes from the other may be equal, and then either may have the derivative.
        if b.contains('w') {
            ways.extend([format!("{a}.maximum({b})"), format!("{a}.minimum({b})")]);
        }
        let way = ways.choose(&mut self.dice).unwrap().clone();
        self.put(way, batch, shape);
    }

    /// The options of the model: the last tensors of examples give the outputs, and no parameter is left over.
    fn model(mut self) -> String {
        let last: Vec<_> = self
            .nodes
            .iter()
            .rev()
            .filter(|n| n.batch)
            .take(3)
            .cloned()
            .collect();
        let mut terms: Vec<_> = self
            .params
            .iter()
            .map(|(name, _)| format!("p.{name}.square().sum()"))
            .collect();
        for node in last {
            let width = node.shape.iter().product();
            let out = self.param(vec![3, width]);
            terms.push(format!(
                "{}.reshape([-1, {width}]).matmul({}.t())",
                node.name, out.name
            ));
        }
        let params: Vec<_> = self
            .params
            .iter()
            .map(|(name, shape)| format!("{name}: {shape:?}"))
            .collect();
        let (params, outputs) = (params.join(", "), terms.join(" + "));
        format!(
            "params: #{{ {params} }}, inputs: 6, forward: |p, x| {{\n{}{outputs} }}",
            self.lines
        )
    }
}

/// Null: both are the same but for rounding. What rounding can do to a program is measured by candle itself, at parameters that differ by it.
#[test]
#[ignore = "long: tests/run"]
fn random_programs_have_the_values_and_gradients_of_candle() {
    let count = std::env::var("PROGRAMS").map_or(300, |n| n.parse().unwrap());
    let scratch = Scratch::new();
    let mut interpreter = Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new());
    let data = "let data = dataset::spin_vectors(#{ dim: 6, classes: 3, train: 20, test: 5 });";
    let _ = interpreter.run("data.rhai", data).unwrap();
    let (mut compared, mut operations) = (0, 0);
    for seed in 0..count {
        let model = Program::of(seed).model();
        let mut run = |interpret: bool, step: &str| {
            // Where it is interpreted, how weights are used is not known, and they are drawn otherwise.
            let source = format!(
                "let made = |i| model::custom(#{{ interpret: i, {model} }});
                 let t = target(made.call({interpret}), data, #{{ prior: prior::gaussian(1.0) }});
                 let r = sample(t, sampler::sgld(#{{ step: {step}, batch: 4 }}), #{{ start: made.call(false).weights(), steps: 3, every: 1, burn_in: 0, chains: 1,
                    temperature: 0.1, seed: 5, observe: [observable::cost(), observable::gradient_norm2()] }});
                 [r.trace(\"cost\", 0), r.trace(\"gradient_norm2\", 0)]"
            );
            let value = interpreter.run("program.rhai", &source);
            let value = value.unwrap_or_else(|e| panic!("program {seed}: {e}\n{model}"));
            let mut all = Vec::new();
            numbers(&interpreter.json(&value), &mut all);
            all
        };
        let (ours, theirs, nudged) = (run(false, "0.01"), run(true, "0.01"), run(true, "0.010001"));
        assert_eq!(ours.len(), theirs.len());
        for ((a, b), c) in ours.iter().zip(&theirs).zip(&nudged) {
            let rounding = 1e-5 * (1.0 + b.abs()) + 3.0 * (b - c).abs();
            assert!(
                (a - b).abs() <= rounding,
                "program {seed}: {a} is not candle's {b} ({rounding:e})\n{model}"
            );
            compared += usize::from(rounding < 1e-3 * (1.0 + b.abs()));
        }
        operations += model.matches("let t").count();
    }
    println!("{count} programs of {operations} lines");
    // Not where rounding hides everything.
    assert!(
        compared as f64 > 0.98 * 6.0 * count as f64,
        "{compared} of {}",
        6 * count
    );
}

fn numbers(value: &serde_json::Value, out: &mut Vec<f64>) {
    match value {
        serde_json::Value::Array(all) => all.iter().for_each(|v| numbers(v, out)),
        value => out.push(value.as_f64().unwrap_or(f64::NAN)),
    }
}
