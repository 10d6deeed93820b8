//! The weights of a folder: in one file, or in several that an index lists.

use crate::error::Result;
use crate::memory;
use crate::store::weights::Found;
use crate::store::{disk, named, read_json};
use anyhow::{Context, anyhow, bail, ensure};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// The names of one file, in the order in which they are looked for; the index of several has `.index.json` behind.
const NAMES: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// All tensors of a folder, in single precision.
pub fn read(folder: &Path) -> Result<Found> {
    let files = files(folder)?;
    let mut bytes = 0;
    for file in &files {
        let about = disk::open(file).and_then(|f| f.metadata());
        bytes += about
            .with_context(|| format!("'{}'", file.display()))?
            .len();
    }
    // Half precision doubles; of single precision there will be a copy: the point at which a run begins.
    memory::check(2 * u128::from(bytes), "the weights")?;
    let mut all = Found::default();
    for file in &files {
        let found = named::read(file, None)?;
        for (name, _, _) in &found.tensors {
            let twice = all.tensors.iter().any(|(n, _, _)| n == name);
            ensure!(
                !twice,
                "'{}' has '{name}', as an earlier file of the folder does",
                file.display()
            );
        }
        all.tensors.extend(found.tensors);
        all.others.extend(found.others);
    }
    Ok(all)
}

/// Which files they are in.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    for name in NAMES {
        let one = folder.join(name);
        if one.exists() {
            return Ok(vec![one]);
        }
        let index = format!("{name}.index.json");
        if folder.join(&index).exists() {
            return listed(folder, &index);
        }
    }
    bail!(
        "it has no weights: neither {}; save them by model.save_pretrained(folder)",
        NAMES
            .map(|n| format!("{n} nor {n}.index.json"))
            .join(" nor ")
    )
}

/// The files that an index names, each once.
fn listed(folder: &Path, index: &str) -> Result<Vec<PathBuf>> {
    let content: Value = read_json(&folder.join(index))?;
    let map = content.get("weight_map").and_then(Value::as_object);
    let map =
        map.ok_or_else(|| anyhow!("{index} has no 'weight_map', which says where each tensor is"))?;
    let mut names = Vec::new();
    for (tensor, file) in map {
        let file = file.as_str().ok_or_else(|| {
            anyhow!("{index}: '{tensor}' is in {file}, which is no name of a file")
        })?;
        let within = Path::new(file).components();
        ensure!(
            within.count() == 1
                && matches!(
                    Path::new(file).components().next(),
                    Some(Component::Normal(_))
                ),
            "{index}: '{tensor}' is in '{file}', which is not within the folder"
        );
        if !names.contains(&file) {
            names.push(file);
        }
    }
    ensure!(!names.is_empty(), "{index} names no files");
    names.sort_unstable();
    Ok(names.into_iter().map(|n| folder.join(n)).collect())
}
