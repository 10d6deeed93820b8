//! Which numbers of an ONNX file are parameters: the file does not say.

use super::numbers::{Data, Numbers};
use super::proto::{Graph, Node};
use crate::error::{Result, did_you_mean};
use crate::model::freeze::Freeze;
use anyhow::ensure;
use std::collections::{HashMap, HashSet};

/// What an operand is to an operator.
enum Use {
    /// Weights or biases of a layer.
    Weight,
    /// An operand like any other, which may be a parameter.
    Operand,
    /// Statistics that were measured.
    Frozen,
    /// Passed on in another shape.
    Same,
    /// Anything else.
    Other,
}

fn usage(operator: &str, operand: usize) -> Use {
    match (operator, operand) {
        ("BatchNormalization", 3 | 4) => Use::Frozen,
        (
            "Conv"
            | "Gemm"
            | "BatchNormalization"
            | "LayerNormalization"
            | "GroupNormalization"
            | "RMSNormalization"
            | "SimplifiedLayerNormalization"
            | "PRelu",
            1 | 2,
        )
        | ("MatMul" | "Einsum", _)
        | ("Gather", 0) => Use::Weight,
        ("Add" | "Sub" | "Mul" | "Div" | "Sum" | "Concat" | "Expand" | "Where" | "Slice", _)
        | ("InstanceNormalization", 1 | 2) => Use::Operand,
        (
            "Identity" | "Transpose" | "Reshape" | "Unsqueeze" | "Squeeze" | "Flatten" | "Cast"
            | "CastLike",
            0,
        ) => Use::Same,
        _ => Use::Other,
    }
}

/// What PyTorch's exporter remarks of a name: whether it is a parameter. Otherwise it is a buffer, or made up.
struct Signature<'a>(Vec<(&'a str, bool)>);

impl<'a> Signature<'a> {
    fn new(graph: &'a Graph) -> Option<Self> {
        const KEY: &str = "pkg.torch.export.ExportedProgram.graph_signature";
        let text = graph.remarks.iter().find(|e| e.key == KEY)?.value.lines();
        let each = text.filter_map(|line| {
            let (kind, rest) = line.split_once(": ")?.1.split_once(" target='")?;
            Some((rest.split_once('\'')?.0, kind == "PARAMETER"))
        });
        Some(Self(each.collect()))
    }

    fn says(&self, name: &str) -> Option<bool> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, is)| *is)
    }
}

/// Whether an exporter has made this name up.
fn is_made_up(name: &str) -> bool {
    let digits = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_digit());
    let numbered = [
        "val_",
        "const_",
        "_to_copy_",
        "expand_",
        "onnx::",
        "_inlfunc_",
    ];
    name.starts_with('/')
        || name.contains("onnx::")
        || name.contains("Constant")
        || digits(name)
        || numbered.iter().any(|start| name.starts_with(start))
}

/// What the initial numbers are.
pub struct Found {
    /// Parameters.
    pub parameters: Vec<String>,
    /// Floats that an exporter has named, and that enter sums and products: they may have been parameters.
    pub constants: Vec<String>,
}

/// The initial numbers that are parameters, in the order of the file: of floats, those that are weights or biases of layers, and others that have
/// a name of their own or are `wanted`; never statistics of batch norms, single numbers, what is infinite, and what `freeze` names.
pub fn parameters(
    graph: &Graph,
    all: &HashMap<String, Numbers>,
    freeze: &mut Freeze,
    wanted: &[String],
) -> Result<Found> {
    // What each value is, of the initial numbers.
    let mut origin: HashMap<&str, &str> = all.keys().map(|n| (&**n, &**n)).collect();
    let mut weights: HashSet<String> = wanted.iter().cloned().collect();
    let mut constants = HashSet::new();
    let mut frozen = HashSet::new();
    let signature = Signature::new(graph);
    let signature = signature.filter(|s| !s.0.is_empty());
    // Of one that is an operand only, its name decides.
    let own = |name: &str| match &signature {
        Some(s) => s.says(name) == Some(true),
        None => !is_made_up(name),
    };
    let buffer = |name: &str| {
        signature
            .as_ref()
            .is_some_and(|s| s.says(name) == Some(false))
    };
    let mut pass = |node: &'_ Node, origin: &HashMap<&str, &str>| -> Option<String> {
        let mut same = None;
        for (i, input) in node.inputs.iter().enumerate() {
            let Some(first) = origin.get(&**input) else {
                continue;
            };
            match usage(&node.operator, i) {
                Use::Weight => drop(weights.insert(first.to_string())),
                Use::Operand if own(first) => drop(weights.insert(first.to_string())),
                Use::Frozen => drop(frozen.insert(first.to_string())),
                Use::Same => same = Some(first.to_string()),
                Use::Operand => drop(constants.insert(first.to_string())),
                Use::Other => {}
            }
        }
        same
    };
    for node in &graph.nodes {
        if let (Some(first), Some(out)) = (pass(node, &origin), node.outputs.first())
            && let Some((first, _)) = all.get_key_value(&first)
        {
            origin.insert(out, first);
        }
    }
    for name in wanted {
        let float = all
            .get(name)
            .is_some_and(|n| !matches!(n.data, Data::Whole(_)));
        ensure!(
            float,
            "option 'parameters': the file has no tensor of floats '{name}'{}",
            did_you_mean(name, all.keys().map(String::as_str))
        );
    }
    let known = graph.initializers.iter().map(|t| &*t.name);
    let known: Vec<_> = known.filter(|n| weights.contains(*n)).collect();
    let stays: HashSet<_> = known.iter().copied().filter(|n| freeze.has(n)).collect();
    freeze.check(&known)?;
    let is_free = |name: &&String| {
        let Some(n) = all.get(*name) else {
            return false;
        };
        let finite = match &n.data {
            Data::Single(x) => x.iter().all(|x| x.is_finite()),
            Data::Double(x) => x.iter().all(|x| x.is_finite()),
            Data::Whole(_) => false,
        };
        (!frozen.contains(*name) && !buffer(name) || wanted.contains(name))
            && !stays.contains(name.as_str())
            && !n.dims.is_empty()
            && finite
    };
    let names = || graph.initializers.iter().map(|t| &t.name).filter(is_free);
    let parameters: Vec<_> = names().filter(|n| weights.contains(*n)).cloned().collect();
    ensure!(
        !parameters.is_empty(),
        "it has no parameters: no float tensor is a weight of a layer"
    );
    let several = |n: &&String| all[*n].dims.iter().product::<usize>() > 1;
    let rest = names().filter(several);
    let rest = rest.filter(|n| constants.contains(*n) && !weights.contains(*n));
    Ok(Found {
        parameters,
        constants: rest.cloned().collect(),
    })
}

/// A name as models have them: letters, digits and underscores, with dots between.
pub fn plain(name: &str) -> String {
    let fine = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '_'
        }
    };
    let words = name.split(['.', '/']).filter(|w| !w.is_empty());
    let words: Vec<String> = words.map(|w| w.chars().map(fine).collect()).collect();
    words.join(".")
}
