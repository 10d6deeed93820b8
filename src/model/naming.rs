//! What tensors are called in a file of weights, and which of them it has the other way round.

use crate::error::{Result, did_you_mean};
use crate::model::{Layout, Model, TensorSpec};
use crate::options::{Kind, Options, Spec, Value, optional};
use anyhow::{bail, ensure};

/// The option of names.
pub const RENAME: Spec = optional(
    "rename",
    Kind::Anything("map from names in the file to names of the model"),
    "names are the model's; where none of the file is, its tensors are taken by shape and number if there is one reading only",
    "What each tensor of the file is in the model: #{ \"0.weight\": \"w1\", \"0.bias\": \"b1\" }. One * on both sides stands for any text: \"module.*\": \"*\" takes a beginning away. \
     Names that are not mentioned stay as they are.",
);
/// The option of matrices that are stored the other way round.
pub const TRANSPOSE: Spec = optional(
    "transpose",
    Kind::Anything("array of names, or true for all matrices"),
    "none of those that have the model's names; of others called ….weight those that the layers of the model multiply as [in, out], since PyTorch's Linear is [out, in]",
    "Matrices that are transposed on the way, by their names in the file or in the model; a * stands for any text, [] is none.",
);

/// Names and orders that the options of a file of weights ask for.
#[derive(Debug, Default)]
pub struct Naming {
    /// Names in the file and in the model; each has one * or none.
    pub rename: Vec<(String, String)>,
    transpose: Option<Vec<String>>,
}

/// The text that * stands for, if a name is of that pattern.
fn starred<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        Some((before, behind)) => name.strip_prefix(before)?.strip_suffix(behind),
        None => (pattern == name).then_some(""),
    }
}

/// A name by the first pair of which it has the one side, as the other side; without * first.
fn turned<'a>(name: &str, pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let of = |stars: bool| {
        let mut pairs = pairs
            .clone()
            .filter(move |(from, _)| from.contains('*') == stars);
        pairs.find_map(|(from, to)| Some(to.replacen('*', starred(from, name)?, 1)))
    };
    of(false)
        .or_else(|| of(true))
        .unwrap_or_else(|| name.into())
}

impl Naming {
    /// What the options say.
    pub fn from_options(o: &Options) -> Result<Self> {
        let owner = o.owner();
        let mut rename = Vec::new();
        match o.get("rename") {
            None => {}
            Some(Value::Map(pairs)) => {
                for (from, to) in pairs {
                    let Value::Text(to) = to else {
                        bail!(
                            "{owner}: option 'rename': \"{from}\" is {}, but must be a name of the model",
                            to.describe()
                        );
                    };
                    let stars = [from, to].map(|name| name.matches('*').count());
                    ensure!(
                        stars == [0, 0] || stars == [1, 1],
                        "{owner}: option 'rename': \"{from}\": \"{to}\" must have one * on both sides or none"
                    );
                    rename.push((from.clone(), to.clone()));
                }
            }
            Some(other) => bail!(
                "{owner}: option 'rename' is {}, but must be a map such as #{{ \"0.weight\": \"w1\" }}",
                other.describe()
            ),
        }
        let name = |v: &Value| match v {
            Value::Text(name) => Ok(name.clone()),
            other => bail!(
                "{owner}: option 'transpose' has {}, but must have names",
                other.describe()
            ),
        };
        let transpose = match o.get("transpose") {
            None => None,
            Some(Value::Bool(all)) => Some(all.then(|| "*".into()).into_iter().collect()),
            Some(Value::List(names)) => Some(names.iter().map(name).collect::<Result<_>>()?),
            Some(one) => Some(vec![name(one)?]),
        };
        Ok(Self { rename, transpose })
    }

    /// What a tensor of the file is called in the model.
    pub fn of_model(&self, file: &str) -> String {
        let pairs = self.rename.iter();
        turned(file, pairs.map(|(from, to)| (from.as_str(), to.as_str())))
    }

    /// What a tensor of the model is called in the file.
    pub fn of_file(&self, model: &str) -> String {
        let pairs = self.rename.iter();
        turned(model, pairs.map(|(from, to)| (to.as_str(), from.as_str())))
    }

    /// Whether the options say which matrices are stored the other way round.
    pub fn says_matrices(&self) -> bool {
        self.transpose.is_some()
    }

    /// Whether a tensor is stored the other way round under a name; none if that is not known.
    pub fn transposes(&self, model: &dyn Model, tensor: &TensorSpec, file: &str) -> Option<bool> {
        if tensor.shape.len() != 2 {
            return Some(false);
        }
        if let Some(given) = &self.transpose {
            let named = |p: &String| starred(p, file).or(starred(p, &tensor.name)).is_some();
            return Some(given.iter().any(named));
        }
        if file == tensor.name {
            return Some(false);
        }
        let layers = model.dense().filter(|_| is_weight(file))?;
        let layer = layers.iter().find(|l| l.weight == tensor.range)?;
        Some(layer.flipped)
    }

    /// Fail if names of the option are neither in the file nor in the model.
    pub fn check_names(&self, files: &[&str], layout: &Layout) -> Result<()> {
        let own = || layout.tensors().iter().map(|t| t.name.as_str());
        for (from, to) in &self.rename {
            ensure!(
                own().any(|name| starred(to, name).is_some()),
                "the option 'rename' has \"{to}\", which the model does not have{}",
                did_you_mean(to, own())
            );
            ensure!(
                files.iter().any(|name| starred(from, name).is_some()),
                "the option 'rename' has \"{from}\", but there is no such tensor{}",
                did_you_mean(from, files.iter().copied())
            );
        }
        Ok(())
    }

    /// Fail if the option of matrices names others. `pairs` has the names of each tensor in the file and in the model.
    pub fn check_matrices(&self, pairs: &[(&str, &TensorSpec)]) -> Result<()> {
        for given in self.transpose.iter().flatten().filter(|g| *g != "*") {
            let is = |name: &str| starred(given, name).is_some();
            let all: Vec<_> = pairs.iter().filter(|(f, t)| is(f) || is(&t.name)).collect();
            let names = pairs.iter().flat_map(|(f, t)| [*f, t.name.as_str()]);
            ensure!(
                !all.is_empty(),
                "the option 'transpose' has \"{given}\", but there is no such tensor{}",
                did_you_mean(given, names)
            );
            if let (false, [(_, t)]) = (given.contains('*'), &all[..]) {
                ensure!(
                    t.shape.len() == 2,
                    "the option 'transpose' has \"{given}\", which is no matrix: its shape is {:?}",
                    t.shape
                );
            }
        }
        Ok(())
    }
}

/// Whether a name is that of the weight of a layer of PyTorch.
pub fn is_weight(name: &str) -> bool {
    name.rsplit('.').next() == Some("weight")
}
