//! `model::onnx`: a network that another program has saved as an ONNX file.
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | from a file to a model |
//! | `proto.rs`, `numbers.rs` | the messages of a file; its numbers |
//! | `parameters.rs` | which of these are parameters |
//! | `value.rs` | what flows through a graph, and where its rows are |
//! | `node.rs`, `operators.rs` | one node; the operators that are known |
//! | `elements.rs`, `layers.rs`, `axes.rs`, `sequences.rs` | functions of elements, layers, what moves numbers about, lists of tensors |

mod axes;
mod elements;
mod layers;
mod node;
mod numbers;
mod operators;
mod parameters;
mod proto;
mod sequences;
#[cfg(test)]
mod tests;
mod value;

use super::Model;
use super::custom::{CHECKPOINT, Custom, Declared, Parameters, Start};
use super::freeze::{FREEZE, Freeze};
use super::initialise::Initialise;
use crate::error::{Result, did_you_mean, in_file, listed};
use crate::kernels::tensor::{Symbol, Tensor};
use crate::memory;
use crate::options::required;
use crate::options::{Entry, Kind, Options, Range, optional};
use crate::store::disk;
use anyhow::{Context, anyhow, bail, ensure};
use node::Node;
use numbers::Numbers;
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use value::Value;

/// `model::onnx`.
pub const ENTRY: Entry<Arc<dyn Model>> = Entry {
    name: "onnx",
    doc: "A network from an ONNX file, as torch.onnx.export writes it; it begins with the numbers of the file.\n\n\
          The graph is traced and compiled with its derivatives, as that of model::custom is: no other runtime is involved. The file has one input, whose first axis is that of the examples; \
          export it in evaluation mode with an open length there: `torch.onnx.export(net.eval(), (x,), \"net.onnx\", dynamic_shapes=({0: torch.export.Dim(\"rows\")},), optimize=False)`. \
          Without `optimize=False` PyTorch transposes some matrices and calls them val_7, and of equal ones keeps one. \
          Operators of versions 7 to 23; one that is not supported is named with its node. Numbers in a file of their own are read from the folder of the model.\n\n\
          Parameters have the names of the file, in its order: those of the state dict for what PyTorch writes. Which numbers are parameters is what PyTorch remarks; where nobody does, weights and biases of layers are, \
          and other floats with a name of their own that are added or multiplied. Statistics of batch norms, masks, buffers and single numbers are not. `net.weights()` gives their numbers, to begin with \
          or to restrict to. Inputs are the numbers of a row of the data set, in the order of the input's axes.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        optional(
            "output",
            Kind::Text,
            "the first output",
            "Name of the output, or of any value within: [rows, outputs] or [rows, positions, outputs].",
        ),
        FREEZE,
        CHECKPOINT,
        optional(
            "parameters",
            Kind::Anything("name, or array of names"),
            "none",
            "Tensors that are parameters, too, which nobody says of them; `print(net)` names those that may be.",
        ),
        optional(
            "inputs",
            Kind::Ints(Range::AtLeast(1.0)),
            "as the file says",
            "Lengths of the axes of an input without the rows, where the file leaves them open.",
        ),
    ],
    example: "let net = model::onnx(\"tests/data/onnx/mlp.onnx\");\n\
              let data = dataset::digits();\n\
              target(net, data).energies(net.weights()).loss",
    build: |o| {
        let path = o.text("path")?;
        in_file(path, build(o, Path::new(path)))
    },
};

fn build(o: &Options, path: &Path) -> Result<Arc<dyn Model>> {
    let mut file = disk::open(path)?;
    memory::check(u128::from(file.metadata()?.len()) * 2, "the model")?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let message = proto::Model::decode(prost::bytes::Bytes::from(bytes))
        .map_err(|e| anyhow!("it is no ONNX file: {e}"))?;
    let name = path.file_stem().map(|n| n.to_string_lossy().into_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    let network = Network::new(message, folder)?;
    network.model(Wanted {
        name: name.unwrap_or_default(),
        output: o.opt_text("output"),
        freeze: Freeze::from_options(o)?,
        parameters: o.names("parameters")?,
        inputs: o.sizes("inputs"),
        checkpoint: o.bool("checkpoint")?,
    })
}

/// The options.
#[derive(Default)]
struct Wanted<'a> {
    name: String,
    output: Option<&'a str>,
    freeze: Freeze,
    parameters: Vec<String>,
    inputs: Option<Vec<usize>>,
    checkpoint: bool,
}

/// What a file has.
struct Network<'a> {
    graph: proto::Graph,
    opset: i64,
    numbers: HashMap<String, Numbers>,
    folder: &'a Path,
}

/// The input of a network.
struct Input {
    name: String,
    /// How many rows the file has been made for, if it says so.
    batch: Option<usize>,
    /// The other axes.
    dims: Vec<usize>,
    /// Whether it is integers.
    whole: bool,
}

impl<'a> Network<'a> {
    fn new(message: proto::Model, folder: &'a Path) -> Result<Self> {
        let of_onnx = message
            .opsets
            .iter()
            .find(|o| matches!(&*o.domain, "" | "ai.onnx"));
        let opset = of_onnx.map_or(0, |o| o.version);
        let mut graph = message
            .graph
            .ok_or_else(|| anyhow!("it is no ONNX file: it has no graph"))?;
        ensure!(
            opset >= 7,
            "its operators are of version {opset}; versions from 7 on are read"
        );
        let mut all = HashMap::new();
        for t in &mut graph.initializers {
            all.insert(t.name.clone(), numbers::numbers(t, folder)?);
            // Kept once.
            t.raw = Default::default();
            t.floats = Vec::new();
        }
        Ok(Self {
            graph,
            opset,
            numbers: all,
            folder,
        })
    }

    /// The names of values that another one follows from, itself included.
    fn needed(&self, output: &str) -> HashSet<String> {
        let mut needed = HashSet::from([output.to_string()]);
        for node in self.graph.nodes.iter().rev() {
            if node.outputs.iter().any(|o| needed.contains(o)) {
                needed.extend(node.inputs.iter().cloned());
            }
        }
        needed
    }

    fn input(&self, needed: &HashSet<String>, given: Option<&[usize]>) -> Result<Input> {
        let inputs = self.graph.inputs.iter();
        let free =
            |i: &&proto::Named| needed.contains(&i.name) && !self.numbers.contains_key(&i.name);
        let free: Vec<_> = inputs.filter(free).collect();
        let [input] = free[..] else {
            let all: Vec<_> = free.iter().map(|i| &i.name).collect();
            bail!(
                "it has {} inputs{}{}; export a module whose forward takes the inputs of a row alone",
                all.len(),
                if all.is_empty() { "" } else { ": " },
                listed(&all)
            );
        };
        let kind = input.kind.as_ref().and_then(|k| k.tensor.as_ref());
        let shape = kind.and_then(|k| k.shape.as_ref());
        let dims = shape.map(|s| &s.dims[..]).unwrap_or_default();
        let length = |d: &proto::Length| usize::try_from(d.value).ok().filter(|n| *n > 0);
        let rest = dims.get(1..).unwrap_or_default();
        let name = &input.name;
        let wrong = |given: &[usize]| {
            let known = rest
                .iter()
                .map(|d| length(d).map_or(d.name.clone(), |n| n.to_string()));
            anyhow!(
                "option 'inputs' is {given:?}, but the axes of the input '{name}' besides the rows are [{}]",
                known.collect::<Vec<_>>().join(", ")
            )
        };
        let dims_given = match given {
            Some(given) => {
                let fits = given.len() == rest.len()
                    && given
                        .iter()
                        .zip(rest)
                        .all(|(g, d)| length(d).is_none_or(|n| n == *g));
                ensure!(fits || dims.is_empty(), wrong(given));
                given.to_vec()
            }
            None => {
                let all: Option<Vec<_>> = rest.iter().map(length).collect();
                all.filter(|a| !a.is_empty()).ok_or_else(|| {
                    let open = rest.iter().filter(|d| length(d).is_none());
                    let open: Vec<_> = open.map(|d| &d.name).collect();
                    anyhow!(
                        "the file leaves lengths of the input '{name}' open: {}; say them without the rows, e.g. inputs: [3, 32, 32]",
                        listed(&open)
                    )
                })?
            }
        };
        Ok(Input {
            name: name.clone(),
            batch: dims.first().and_then(length),
            dims: dims_given,
            whole: kind
                .is_some_and(|k| k.kind != 1 && k.kind != 10 && k.kind != 11 && k.kind != 16),
        })
    }

    fn model(mut self, mut wanted: Wanted) -> Result<Arc<dyn Model>> {
        let first = self.graph.outputs.first().map(|o| o.name.clone());
        let made = self.graph.nodes.iter().flat_map(|n| &n.outputs);
        let output = match wanted.output {
            None => first.ok_or_else(|| anyhow!("it has no outputs"))?,
            Some(wanted) => {
                let known: Vec<_> = made.filter(|n| !n.is_empty()).map(String::as_str).collect();
                ensure!(
                    known.contains(&wanted),
                    "option 'output': there is no value '{wanted}'{}",
                    did_you_mean(wanted, known.iter().copied())
                );
                wanted.to_string()
            }
        };
        let needed = self.needed(&output);
        let input = self.input(&needed, wanted.inputs.as_deref())?;
        let (freeze, more) = (&mut wanted.freeze, &wanted.parameters);
        let found = parameters::parameters(&self.graph, &self.numbers, freeze, more)?;
        let constants: Vec<_> = found
            .constants
            .iter()
            .filter(|c| needed.contains(*c))
            .collect();
        let note = match &constants[..] {
            [] => String::new(),
            all => format!(", constants {}", listed(all)),
        };
        let mut parameters = found.parameters;
        parameters.retain(|p| needed.contains(p));
        // Some of them may be looked at for their shape alone, or compared, as masks are.
        let (symbol, width) = loop {
            let traced = self.trace(&needed, &input, &parameters, &output)?;
            let graph = crate::kernels::tensor::Graph::new(&traced.0)?;
            let used: Vec<_> = (0..parameters.len()).map(|i| graph.depends_on(i)).collect();
            if used.iter().all(|u| *u) {
                break traced;
            }
            let mut used = used.into_iter();
            parameters.retain(|_| used.next().unwrap_or(false));
            ensure!(
                !parameters.is_empty(),
                "'{output}' depends on no parameters"
            );
        };
        let mut taken = HashSet::new();
        let declared = parameters.iter().map(|p| {
            let mut name = parameters::plain(p);
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            let n = self
                .numbers
                .remove(p)
                .ok_or_else(|| anyhow!("there is no tensor '{p}'"))?;
            Ok(Declared {
                name,
                shape: n.dims,
                start: Start::Numbers(n.data.into_f32()),
            })
        });
        let declared = declared.collect::<Result<Vec<_>>>()?;
        let all = Parameters::new(Some(&wanted.name), declared, Initialise::Pytorch)?;
        let all = all.of_kind("onnx").with_note(note);
        let model = Custom::new(all, &symbol, Some(width))?;
        Ok(Arc::new(model.with_checkpoints(wanted.checkpoint)))
    }

    /// The output, and the numbers of an input.
    fn trace(
        &self,
        needed: &HashSet<String>,
        input: &Input,
        parameters: &[String],
        output: &str,
    ) -> Result<(Symbol, usize)> {
        let mut values: HashMap<&str, Value> = HashMap::new();
        let mut sequences: HashMap<&str, Vec<Value>> = HashMap::new();
        for t in self
            .graph
            .initializers
            .iter()
            .filter(|t| needed.contains(&t.name))
        {
            let Some(n) = self.numbers.get(&t.name) else {
                continue;
            };
            let value = match parameters.iter().position(|p| *p == t.name) {
                Some(i) => Value::fixed(Symbol::parameter(i, &n.dims).into(), false),
                None => n.clone().into_value()?,
            };
            values.insert(&t.name, value);
        }
        let width = input.dims.iter().product();
        let x = Tensor::from(Symbol::input(Some(width)));
        let dims: Vec<_> = [-1]
            .into_iter()
            .chain(input.dims.iter().map(|n| *n as i64))
            .collect();
        values.insert(&input.name, Value::per_row(x.reshape(&dims)?, input.whole));
        for message in &self.graph.nodes {
            if !message.outputs.iter().any(|o| needed.contains(o)) {
                continue;
            }
            let operands = message.inputs.iter().map(|i| match &**i {
                "" => Ok(None),
                name => match values.get(name) {
                    Some(v) => Ok(Some(v.clone())),
                    None if sequences.contains_key(name) => Ok(None),
                    None => bail!("it uses '{name}', which nothing has made"),
                },
            });
            let first = message.inputs.first();
            let made = || {
                let operator = operators::find(&message.domain, &message.operator)?;
                let made = operator.apply(&Node {
                    message,
                    inputs: operands.collect::<Result<_>>()?,
                    sequence: first.and_then(|i| sequences.get(&**i)).cloned(),
                    opset: self.opset,
                    batch: input.batch,
                    folder: self.folder,
                })?;
                Ok::<_, anyhow::Error>((operator, made))
            };
            let (operator, made) = made().with_context(|| {
                let name = match &*message.name {
                    "" => message.outputs.first().map_or("", |o| o),
                    name => name,
                };
                format!("the node '{name}' ({})", message.operator)
            })?;
            let mut outputs = message.outputs.iter().map(|o| &**o);
            match operator {
                operators::Operator::Sequence(_) => {
                    sequences.extend(outputs.next().map(|name| (name, made)));
                }
                _ => values.extend(outputs.zip(made)),
            }
        }
        let out = values
            .remove(output)
            .ok_or_else(|| anyhow!("nothing makes the output '{output}'"))?;
        let found = out
            .output()
            .with_context(|| format!("the output '{output}'"))?;
        Ok((found.symbol()?, width))
    }
}
