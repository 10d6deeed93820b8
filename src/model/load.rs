//! Parameters of a model and files of weights: which tensor is which, there and back.

use super::naming::{Naming, is_weight};
use super::{Layout, Model, TensorSpec};
use crate::error::{Result, did_you_mean, listed};
use crate::store::named;
use crate::store::weights::{Found, NamedTensor, load_weights};
use anyhow::{anyhow, bail, ensure};
use std::path::Path;

/// A tensor as it is saved: its name, its shape, its numbers.
pub type Saved = (String, Vec<usize>, Vec<f32>);

/// Parameters from a file, and what is to be said of it.
pub struct Loaded {
    /// The parameter vector.
    pub w: Vec<f32>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// A tensor of a file, the one of the model that it is, and whether it is stored the other way round.
struct Pair<'a> {
    stored: &'a NamedTensor,
    tensor: &'a TensorSpec,
    transposed: bool,
}

/// The parameter vector of a layout from a safetensors file that has its tensors under its names, in any order, and no others.
pub fn weights(layout: &Layout, path: &Path) -> Result<Vec<f32>> {
    let found = load_weights(path)?;
    let named = by_name(layout, &path.display().to_string(), &found, |name| {
        name.into()
    })?;
    let mut w = vec![0f32; layout.len()];
    for (tensor, (_, shape, values)) in named {
        let wrong = || misfit(&path.display().to_string(), tensor, &tensor.name, shape);
        ensure!(*shape == tensor.shape, wrong());
        w[tensor.range.clone()].copy_from_slice(values);
    }
    Ok(w)
}

/// The parameter vector of a model from a file of any format, by the names that were given.
pub fn load(
    model: &dyn Model,
    path: &Path,
    naming: &mut Naming,
    key: Option<&str>,
) -> Result<Loaded> {
    let mut found = named::read(path, key)?;
    let mut notes = Vec::new();
    let statistics = statistics(model.layout(), &mut found, naming);
    if !statistics.is_empty() {
        let names: Vec<_> = statistics.iter().map(|t| &t.0).collect();
        notes.push(format!(
            "left out, as statistics of batch norms are constants of a model: {}; give them to nn::batch_norm, with tensor::load(\"{}\", \"{}\")",
            listed(&names),
            path.display(),
            names[0]
        ));
    }
    let pairs = pairs(model, path, &found, naming, &mut notes)?;
    let mut w = vec![0f32; model.layout().len()];
    for p in &pairs {
        let (name, shape, values) = p.stored;
        let odd = values.iter().filter(|x| !x.is_finite()).count();
        ensure!(
            odd == 0,
            "'{}': {} of the {} numbers of '{name}' are not finite",
            path.display(),
            odd,
            values.len()
        );
        let own = &mut w[p.tensor.range.clone()];
        match p.transposed {
            true => own.copy_from_slice(&transposed(values, shape)),
            false => own.copy_from_slice(values),
        }
    }
    if !found.others.is_empty() {
        let others = found.others.iter();
        let others: Vec<_> = others
            .map(|(name, kind)| format!("{name} ({kind})"))
            .collect();
        notes.push(format!(
            "left out, because they are no floats: {}",
            listed(&others)
        ));
    }
    Ok(Loaded { w, notes })
}

/// The tensors of a parameter vector as [`load`] finds them again in this file with the same options.
pub fn saved(model: &dyn Model, w: &[f32], path: &Path, naming: &Naming) -> Result<Vec<Saved>> {
    let tensors = model.layout().tensors();
    let names: Vec<_> = tensors.iter().map(|t| naming.of_file(&t.name)).collect();
    let files: Vec<_> = names.iter().map(String::as_str).collect();
    let pairs: Vec<_> = files.iter().copied().zip(tensors).collect();
    naming.check_names(&files, model.layout())?;
    naming.check_matrices(&pairs)?;
    let known = |(name, t): &(&str, &'_ TensorSpec)| naming.transposes(model, t, name);
    let all = pairs.iter().map(|p| (p.1, known(p)));
    certain(model, &path.display().to_string(), all)?;
    let one = |p: &(&str, &TensorSpec)| {
        let flip = known(p).unwrap_or(false);
        one(p.0, p.1, &w[p.1.range.clone()], flip)
    };
    Ok(pairs.iter().map(one).collect())
}

/// The same under the names, and in the order, of another file.
pub fn saved_like(
    model: &dyn Model,
    w: &[f32],
    like: &Path,
    naming: &mut Naming,
    key: Option<&str>,
) -> Result<Vec<Saved>> {
    let mut found = named::read(like, key)?;
    let statistics = statistics(model.layout(), &mut found, naming);
    let mut pairs = pairs(model, like, &found, naming, &mut Vec::new())?;
    let place = |p: &Pair| found.tensors.iter().position(|t| t.0 == p.stored.0);
    pairs.sort_by_key(place);
    let one = |p: &Pair| {
        one(
            &p.stored.0,
            p.tensor,
            &w[p.tensor.range.clone()],
            p.transposed,
        )
    };
    Ok(pairs.iter().map(one).chain(statistics).collect())
}

/// Take out what a batch norm has measured, which is no parameter: `running_mean` and `running_var` beside a weight or bias of the model.
fn statistics(layout: &Layout, found: &mut Found, naming: &Naming) -> Vec<NamedTensor> {
    let measured = |t: &mut NamedTensor| {
        let name = naming.of_model(&t.0);
        let of = ["running_mean", "running_var"]
            .iter()
            .find_map(|s| name.strip_suffix(s));
        of.is_some_and(|of| {
            layout.tensor(&name).is_err()
                && ["weight", "bias"]
                    .iter()
                    .any(|p| layout.tensor(&format!("{of}{p}")).is_ok())
        })
    };
    found.tensors.extract_if(.., measured).collect()
}

fn one(name: &str, t: &TensorSpec, values: &[f32], flip: bool) -> Saved {
    match flip {
        true => (name.into(), turned(&t.shape), transposed(values, &t.shape)),
        false => (name.into(), t.shape.clone(), values.to_vec()),
    }
}

/// The shape of a transposed matrix; others stay.
fn turned(shape: &[usize]) -> Vec<usize> {
    match *shape {
        [rows, columns] => vec![columns, rows],
        _ => shape.to_vec(),
    }
}

/// The numbers of a transposed matrix.
fn transposed(values: &[f32], shape: &[usize]) -> Vec<f32> {
    let columns = shape.last().copied().unwrap_or(1);
    let column = |j| values.iter().skip(j).step_by(columns).copied();
    (0..columns).flat_map(column).collect()
}

fn misfit(file: &str, tensor: &TensorSpec, name: &str, shape: &[usize]) -> anyhow::Error {
    let called = match name == tensor.name {
        true => format!("'{name}'"),
        false => format!("'{name}', the model's '{}',", tensor.name),
    };
    anyhow!(
        "'{file}': tensor {called} has shape {shape:?}, but the model's has {:?}",
        tensor.shape
    )
}

/// Each tensor of a layout with the one of the file that is called so.
fn by_name<'a>(
    layout: &'a Layout,
    file: &str,
    found: &'a Found,
    called: impl Fn(&str) -> String,
) -> Result<Vec<(&'a TensorSpec, &'a NamedTensor)>> {
    let names: Vec<_> = found.tensors.iter().map(|t| called(&t.0)).collect();
    let mut out = Vec::new();
    for t in layout.tensors() {
        let mut of_name = names
            .iter()
            .zip(&found.tensors)
            .filter(|(n, _)| **n == t.name);
        let Some((_, stored)) = of_name.next() else {
            let other = found.others.iter().find(|(n, _)| called(n) == t.name);
            match other {
                Some((_, kind)) => bail!(
                    "'{file}': tensor '{}' is of type {kind}, but must be of floats; convert it first (in PyTorch: tensor.float())",
                    t.name
                ),
                None => bail!(
                    "'{file}' has no tensor '{}', which the model has; the file must hold every tensor of the model{}",
                    t.name,
                    did_you_mean(&t.name, names.iter().map(String::as_str))
                ),
            }
        };
        if let Some((_, second)) = of_name.next() {
            bail!(
                "'{file}': both '{}' and '{}' are '{}' of the model",
                stored.0,
                second.0,
                t.name
            );
        }
        out.push((t, stored));
    }
    if let Some(name) = names.iter().find(|n| layout.tensor(n).is_err()) {
        bail!(
            "'{file}' has a tensor '{name}', which the model does not have; is it from another model?"
        );
    }
    Ok(out)
}

/// Which tensor of the file is which of the model. Names that are found out become those of the options.
fn pairs<'a>(
    model: &'a dyn Model,
    path: &Path,
    found: &'a Found,
    naming: &mut Naming,
    notes: &mut Vec<String>,
) -> Result<Vec<Pair<'a>>> {
    let (file, layout) = (path.display().to_string(), model.layout());
    let names = || found.tensors.iter().map(|t| t.0.as_str());
    let at = |e| anyhow!("'{file}': {e}");
    let others = found.others.iter().map(|o| o.0.as_str());
    let all: Vec<_> = names().chain(others).collect();
    naming.check_names(&all, layout).map_err(at)?;
    if !names().any(|n| layout.tensor(&naming.of_model(n)).is_ok()) {
        let others = by_shape(model, found);
        let written = |pairs: &[(String, String)]| {
            let each = pairs.iter().map(|(from, to)| format!("{from:?}: {to:?}"));
            format!("rename: #{{ {} }}", each.collect::<Vec<_>>().join(", "))
        };
        match others {
            Ok((pairs, true)) => {
                notes.push(format!(
                    "tensors go by shape and number, as with #{{ {} }}",
                    written(&pairs)
                ));
                naming.rename = pairs;
            }
            Ok((pairs, false)) => bail!(
                "'{file}' has none of the model's names, and its tensors fit in more than one way; say which is which, for example by #{{ {} }}",
                written(&pairs)
            ),
            Err(e) => bail!("'{file}' has none of the model's names, and {e}"),
        }
    }
    let named = by_name(layout, &file, found, |name| naming.of_model(name))?;
    let each: Vec<_> = named.iter().map(|(t, s)| (s.0.as_str(), *t)).collect();
    naming.check_matrices(&each).map_err(at)?;
    let pair = |(tensor, stored): &(&'a TensorSpec, &'a NamedTensor)| {
        let transposed = naming.transposes(model, tensor, &stored.0);
        (*tensor, *stored, transposed)
    };
    let all: Vec<_> = named.iter().map(pair).collect();
    let known: Vec<_> = all.iter().map(|(t, _, known)| (*t, *known)).collect();
    let pairs = oriented(&file, all, naming.says_matrices())?;
    certain(model, &file, known.into_iter())?;
    Ok(pairs)
}

/// Tensors whose shapes fit, or what must be said so that they do. `given` tells whether it was said which matrices are transposed.
fn oriented<'a>(
    file: &str,
    all: Vec<(&'a TensorSpec, &'a NamedTensor, Option<bool>)>,
    given: bool,
) -> Result<Vec<Pair<'a>>> {
    let (mut wrong, mut turn, mut square) = (vec![], vec![], vec![]);
    for (t, stored, known) in &all {
        let (shape, flip) = (&stored.1, known.unwrap_or(false));
        let straight = (*shape == t.shape, turned(shape) == t.shape);
        let (fits, other) = if flip {
            (straight.1, straight.0)
        } else {
            straight
        };
        ensure!(fits || other, misfit(file, t, &stored.0, shape));
        if !fits {
            wrong.push(&t.name);
        }
        if flip == fits {
            turn.push(&t.name);
        }
        if fits && other && shape.len() == 2 {
            square.push(&t.name);
        }
    }
    if let [first, ..] = &wrong[..] {
        // A list that leaves out square matrices would load, and perhaps be wrong.
        let say = match (&square[..], given) {
            ([], _) => format!("say #{{ transpose: {turn:?} }}"),
            (_, true) => "leave the option 'transpose' out, which is enough for what torch.nn.Linear has saved, or name all that are transposed".into(),
            (_, false) => "name all that are transposed in the option 'transpose'".into(),
        };
        let doubt = match &square[..] {
            [] => String::new(),
            names => format!(
                "; of {}, which fit both ways, the shape does not tell",
                listed(names)
            ),
        };
        bail!("'{file}': '{first}' fits the other way round only; {say}{doubt}");
    }
    let pair = |(tensor, stored, flip): (_, _, Option<bool>)| Pair {
        stored,
        tensor,
        transposed: flip.unwrap_or(false),
    };
    Ok(all.into_iter().map(pair).collect())
}

/// Fail if the shapes of square matrices do not say whether they are transposed, and nothing else does.
fn certain<'a>(
    model: &dyn Model,
    file: &str,
    all: impl Iterator<Item = (&'a TensorSpec, Option<bool>)>,
) -> Result<()> {
    let oblong = |t: &&TensorSpec| t.shape.len() == 2 && t.shape[0] != t.shape[1];
    // Layers are all stored in one way, and the shapes of others were compared.
    if model.dense().is_some() && model.layout().tensors().iter().any(|t| oblong(&t)) {
        return Ok(());
    }
    let unknown = all.filter(|(t, known)| known.is_none() && !oblong(t));
    let unknown: Vec<_> = unknown.map(|(t, _)| &t.name).collect();
    if let [first, ..] = &unknown[..] {
        bail!(
            "'{file}': '{first}' is square, so its shape does not say whether it is as in the model or transposed (a Linear of PyTorch has [out, in], x.matmul(w) needs [in, out]); \
             say #{{ transpose: {unknown:?} }} or, if they are as in the model, #{{ transpose: [] }}"
        );
    }
    Ok(())
}

/// A name without its numbers, and these.
fn numbered(name: &str) -> (String, Vec<u64>) {
    let (mut text, mut numbers) = (String::new(), Vec::new());
    for part in name.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        if !digits.is_empty() {
            numbers.push(digits.parse().unwrap_or(u64::MAX));
            text.push('#');
        }
        text += &part[digits.len()..];
    }
    (text, numbers)
}

/// Names of the file and of the model, by shapes and the order of numbers in names, and whether there is no other reading.
fn by_shape(model: &dyn Model, found: &Found) -> Result<(Vec<(String, String)>, bool)> {
    let shapes = |all: &mut dyn Iterator<Item = (&str, &[usize])>| {
        let each: Vec<_> = all
            .map(|(name, shape)| format!("{name} {shape:?}"))
            .collect();
        listed(&each)
    };
    let layout = model.layout();
    let matrices = || found.tensors.iter().filter(|t| t.1.len() == 2);
    let layers = model
        .dense()
        .filter(|_| matrices().all(|t| is_weight(&t.0)));
    // What a file has for a tensor of that shape. Without knowing the layers, a matrix may be either way round.
    let class = |shape: &[usize], flipped: bool| match (&layers, shape) {
        (None, [a, b]) => vec![*a.min(b), *a.max(b)],
        _ if flipped => turned(shape),
        _ => shape.to_vec(),
    };
    let mut files: Vec<_> = found.tensors.iter().map(|t| (numbered(&t.0), t)).collect();
    let mut sure = true;
    let mut out = Vec::new();
    for t in layout.tensors() {
        let layer = layers.iter().flatten().find(|l| l.weight == t.range);
        let wanted = class(&t.shape, layer.is_some_and(|l| l.flipped));
        let fitting: Vec<_> = (0..files.len())
            .filter(|k| class(&files[*k].1.1, false) == wanted)
            .collect();
        let Some(first) = fitting.first() else {
            bail!(
                "their shapes are not the model's: it has {}; the model has {}",
                shapes(&mut found.tensors.iter().map(|t| (t.0.as_str(), &t.1[..]))),
                shapes(
                    &mut layout
                        .tensors()
                        .iter()
                        .map(|t| (t.name.as_str(), &t.shape[..]))
                )
            );
        };
        let alike = |k: &&usize| files[**k].0.0 == files[*first].0.0;
        sure &= fitting.iter().all(|k| alike(&k));
        // Numbers count where all else is the same: files have 10 before 2.
        let next = fitting.iter().filter(alike).min_by_key(|k| &files[**k].0.1);
        let next = *next.unwrap_or(first);
        out.push((files.remove(next).1.0.clone(), t.name.clone()));
    }
    ensure!(
        files.is_empty(),
        "it has more tensors than the model: {}",
        listed(&files.iter().map(|f| f.1.0.as_str()).collect::<Vec<_>>())
    );
    Ok((out, sure))
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
