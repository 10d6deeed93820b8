//! The points of a curve: checkpoints of a training, parameters, or files of weights.

use crate::access;
use crate::error::Result;
use crate::model::load::load;
use crate::model::naming::Naming;
use crate::options::{Options, Value};
use crate::simulation::trained::Trained;
use crate::store::disk;
use crate::target::Target;
use crate::target::prior::Parameters;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Endings of files of weights.
const ENDINGS: [&str; 4] = ["safetensors", "pt", "pth", "npz"];

/// A point of a curve.
pub(super) struct Place {
    /// Its name.
    pub label: String,
    /// Where it is along the curve.
    pub at: f64,
    source: Source,
}

enum Source {
    Here(Arc<Vec<f32>>),
    /// A chain of a training after an epoch.
    Epoch(Arc<Trained>, u64, usize),
    File(PathBuf),
}

/// The points of a curve, and what their places count: "epoch", "step" or "point".
pub(super) type Places = (Vec<Place>, &'static str);

/// The checkpoints of a training, of the chain in the option `chain`.
pub(super) fn of_training(trained: &Arc<Trained>, o: &Options) -> Result<Places> {
    let (chain, chains) = (o.size("chain")?, trained.history.len());
    anyhow::ensure!(
        !trained.checkpoints.is_empty(),
        "{}: training '{}' kept no checkpoints; give train the option `checkpoints`",
        o.owner(),
        trained.name
    );
    anyhow::ensure!(
        chain < chains,
        "{}: option 'chain' is {chain}, but training '{}' has the chains 0 … {}",
        o.owner(),
        trained.name,
        chains - 1
    );
    let place = |epoch: &u64| Place {
        label: epoch.to_string(),
        at: *epoch as f64,
        source: Source::Epoch(trained.clone(), *epoch, chain),
    };
    let mut epochs = trained.checkpoints.clone();
    epochs.sort_unstable();
    Ok((epochs.iter().map(place).collect(), "epoch"))
}

/// A folder of files, an array of parameters, or parameters of several vectors.
pub(super) fn of_value(value: &Value, o: &Options) -> Result<Places> {
    let owner = o.owner();
    let mut vectors = Vec::new();
    match value {
        Value::Text(folder) => return of_folder(Path::new(folder), owner),
        Value::List(all) => {
            for (k, one) in all.iter().enumerate() {
                let found = one.as_object::<Parameters>();
                let found = found.as_ref().map_or(&[][..], |p| &p.vectors);
                anyhow::ensure!(
                    found.len() == 1,
                    "{owner}: entry {k} of the array is {}, but must be parameters of one point; choose one of several by .at(0)",
                    match found.len() {
                        0 => one.describe(),
                        n => format!("{n} points"),
                    }
                );
                vectors.push(found[0].clone());
            }
        }
        other => {
            let found = other.as_object::<Parameters>();
            let wrong = || {
                anyhow::anyhow!(
                    "{owner} takes a training, an array of parameters, or a folder of files of weights, not {}",
                    other.describe()
                )
            };
            vectors.extend(found.ok_or_else(wrong)?.vectors.iter().cloned());
        }
    }
    anyhow::ensure!(!vectors.is_empty(), "{owner}: there are no points");
    let place = |(k, w)| Place {
        label: format!("{k}"),
        at: k as f64,
        source: Source::Here(w),
    };
    Ok((
        vectors.into_iter().enumerate().map(place).collect(),
        "point",
    ))
}

/// All files of weights in a folder, and those alone in folders in it; at the steps that their names have, else in the order of their names.
fn of_folder(folder: &Path, owner: &str) -> Result<Places> {
    let shown = folder.display();
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let all = disk::entries(folder);
        all.map(|e| e.path()).collect()
    };
    let is_weights = |p: &PathBuf| {
        let ending = p.extension().and_then(|e| e.to_str());
        p.is_file() && ending.is_some_and(|e| ENDINGS.contains(&e))
    };
    access::read(folder).with_context(|| format!("{owner}: {shown}"))?;
    anyhow::ensure!(folder.is_dir(), "{owner}: {shown}: there is no such folder");
    let mut found = Vec::new();
    for path in entries(folder) {
        if is_weights(&path) {
            let name = path.file_stem().unwrap_or_default();
            found.push((name.to_string_lossy().into_owned(), path));
        } else if path.is_dir() {
            let mut inner: Vec<_> = entries(&path).into_iter().filter(is_weights).collect();
            if let (Some(file), true) = (inner.pop(), inner.is_empty()) {
                let name = path.file_name().unwrap_or_default();
                found.push((name.to_string_lossy().into_owned(), file));
            }
        }
    }
    anyhow::ensure!(
        !found.is_empty(),
        "{owner}: {shown}: there are no files of weights here; they end with .{}",
        ENDINGS.join(", .")
    );
    found.sort_by_key(|(name, _)| natural(name));
    let numbers: Option<Vec<f64>> = found.iter().map(|(name, _)| step(name)).collect();
    let numbers = numbers.filter(|all| {
        let mut sorted = all.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.windows(2).all(|two| two[0] < two[1])
    });
    let axis = if numbers.is_some() { "step" } else { "point" };
    let at = |k: usize| numbers.as_ref().map_or(k as f64, |all| all[k]);
    let all = found.into_iter().enumerate();
    let mut places: Vec<_> = all
        .map(|(k, (label, path))| Place {
            label,
            at: at(k),
            source: Source::File(path),
        })
        .collect();
    places.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok((places, axis))
}

/// The pieces of a name, digits as numbers: `run-10` comes after `run-9`.
fn natural(name: &str) -> Vec<(u64, String)> {
    let digits = |c: &char| c.is_ascii_digit();
    let characters: Vec<char> = name.chars().collect();
    let pieces = characters.chunk_by(|a, b| digits(a) == digits(b));
    let piece = |p: &[char]| {
        let text: String = p.iter().collect();
        (text.parse().unwrap_or(u64::MAX), text)
    };
    pieces.map(piece).collect()
}

/// The step in the name of a file: the number after the word "step", else the last one.
fn step(name: &str) -> Option<f64> {
    let after = name.to_ascii_lowercase().rfind("step");
    let number = |text: &str, last: bool| {
        let mut all = text.split(|c: char| !c.is_ascii_digit());
        let full = |t: &&str| !t.is_empty();
        let found = match last {
            true => all.rfind(full),
            false => all.find(full),
        };
        found?.parse::<f64>().ok()
    };
    let named = after.and_then(|at| number(&name[at..], false));
    named.or_else(|| number(name, true))
}

impl Place {
    /// The parameters there.
    ///
    /// # Errors
    /// If they cannot be read, or are not those of the target.
    pub fn parameters(&self, target: &Target, o: &Options) -> Result<Arc<Vec<f32>>> {
        let w = match &self.source {
            Source::Here(w) => w.clone(),
            Source::Epoch(trained, epoch, chain) => {
                trained.checkpoint(*epoch)?.vectors[*chain].clone()
            }
            Source::File(path) => {
                let model = target.network(o.owner())?.model();
                let mut naming = Naming::from_options(o)?;
                Arc::new(load(&**model, path, &mut naming, o.opt_text("key"))?.w)
            }
        };
        anyhow::ensure!(
            w.len() == target.dim(),
            "{}: point {} has {} parameters, but the target has {}",
            o.owner(),
            self.label,
            w.len(),
            target.dim()
        );
        Ok(w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_steps() {
        for (name, expected) in [
            ("step_1000", Some(1000.0)),
            ("checkpoint-20", Some(20.0)),
            ("epoch=3-step=400-loss=0.25", Some(400.0)),
            ("v2-17", Some(17.0)),
            ("final", None),
        ] {
            assert_eq!(step(name), expected, "{name}");
        }
        let mut names = ["net-10", "net-9", "final", "net-9b"];
        names.sort_by_key(|n| natural(n));
        assert_eq!(names, ["final", "net-9", "net-9b", "net-10"]);
    }
}
