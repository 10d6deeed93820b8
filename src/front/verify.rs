//! `ergodic doctor --check FOLDER`: whether the files of runs are as they were written, and how to get back what is not.

use crate::error::Result;
use crate::report::runs::{has_just_begun, size};
use crate::simulation::draws;
use crate::store::temp_files::is_temporary;
use crate::store::{self, checkpoint, weights, zarr};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file, or a tree of files that is read as one.
struct Item {
    path: PathBuf,
    state: State,
}

impl Item {
    fn of(path: PathBuf, has_checksum: bool, found: Result<()>, remedy: &'static str) -> Self {
        let state = match found {
            Ok(()) if has_checksum => State::Whole,
            Ok(()) => State::Unchecked,
            Err(why) => State::Damaged { why, remedy },
        };
        Self { path, state }
    }
}

/// Whether a file is as it was written.
enum State {
    Whole,
    /// A file without a checksum, which can be read.
    Unchecked,
    /// Kept draws of a run that has no checkpoint yet.
    Begun,
    Damaged {
        why: anyhow::Error,
        remedy: &'static str,
    },
}

/// The state of the files of runs in a folder as text, and whether none of them is damaged.
///
/// # Errors
/// If there is no such folder, or nothing in it.
pub fn report(folder: &Path) -> Result<(String, bool)> {
    anyhow::ensure!(
        folder.is_dir(),
        "{}: there is no such folder; name that of a run, or one that has runs in it",
        folder.display()
    );
    let mut items = Vec::new();
    look(folder, &mut items)?;
    anyhow::ensure!(
        !items.is_empty(),
        "{}: nothing in this folder",
        folder.display()
    );
    let short = |item: &Item| {
        let path = item.path.strip_prefix(folder).unwrap_or(&item.path);
        path.display().to_string()
    };
    let of = |which: fn(&State) -> bool| items.iter().filter(move |i| which(&i.state));
    let unchecked: Vec<_> = of(|s| matches!(s, State::Unchecked)).map(short).collect();
    let held = size(store::bytes_in(folder));
    let whole = of(|s| matches!(s, State::Whole)).count();
    let mut out = vec![
        format!("{}: {held}", folder.display()),
        format!("whole      {whole}"),
    ];
    if !unchecked.is_empty() {
        const SHOWN: usize = 5;
        let more = match unchecked.len().saturating_sub(SHOWN) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let names = unchecked[..unchecked.len().min(SHOWN)].join(", ");
        out.push(format!(
            "unchecked  {}, which have no checksum: {names}{more}",
            unchecked.len()
        ));
    }
    let begun: Vec<_> = of(|s| matches!(s, State::Begun)).map(short).collect();
    if !begun.is_empty() {
        out.push(format!(
            "begun      {}, kept draws of runs that have no checkpoint yet, which begin again: {}",
            begun.len(),
            begun.join(", ")
        ));
    }
    let damaged: Vec<_> = of(|s| matches!(s, State::Damaged { .. })).collect();
    out.push(format!("damaged    {}", damaged.len()));
    for item in &damaged {
        if let State::Damaged { why, remedy } = &item.state {
            out.push(format!("\n{}: {why:#}", short(item)));
            let said = out.last().is_some_and(|line| line.ends_with(remedy));
            if !said {
                out.push(format!("  {remedy}"));
            }
        }
    }
    Ok((out.join("\n"), damaged.is_empty()))
}

/// Look at everything in a folder; links are not followed.
fn look(folder: &Path, items: &mut Vec<Item>) -> Result<()> {
    let mut entries: Vec<_> = folder.read_dir()?.collect::<std::io::Result<_>>()?;
    entries.sort_by_key(|e| e.file_name());
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let (name, kind) = (name.to_string_lossy(), entry.file_type()?);
        if name.starts_with('.') || kind.is_symlink() || is_temporary(&name) {
            continue;
        }
        if kind.is_dir() && checkpoint::is_there(&path) {
            generations(&path, items);
            continue;
        }
        let is_tree = kind.is_dir() && name.ends_with(".zarr");
        if kind.is_dir() && !is_tree {
            look(&path, items)?;
            continue;
        }
        let found = match () {
            () if name == "draws.zarr" => {
                zarr::check(&path).and_then(|()| draws::check_files(folder, None))
            }
            () if is_tree => zarr::check(&path),
            () if name.ends_with(".safetensors") => weights::check_weights(&path),
            () if name.ends_with(".json") => store::read_json::<Value>(&path).map(|_| ()),
            () => Ok(()),
        };
        // Before the first checkpoint there is nothing to lose: a run that was killed begins again.
        if found.is_err() && has_just_begun(folder) {
            items.push(Item {
                path,
                state: State::Begun,
            });
            continue;
        }
        // Kept draws are nowhere else.
        let remedy = match found.is_err() && name != "draws.zarr" && has_checkpoint(folder) {
            true => "the same command with --resume writes it anew from the checkpoint",
            false => "restore it from a backup, or run again",
        };
        let has_checksum = is_tree || name.ends_with(".safetensors");
        items.push(Item::of(path, has_checksum, found, remedy));
    }
    Ok(())
}

/// Whether a run in this folder can be read from a checkpoint.
fn has_checkpoint(folder: &Path) -> bool {
    let found = checkpoint::generations(&folder.join("checkpoint"));
    found.iter().any(|(_, whole)| whole.is_ok())
}

/// The generations of a checkpoint, with what they count on.
fn generations(folder: &Path, items: &mut Vec<Item>) {
    let found = checkpoint::generations(folder);
    let whole = [&found[0].1, &found[1].1].map(|w| w.is_ok());
    for (k, (path, found)) in found.into_iter().enumerate() {
        // The first checkpoint has none before it.
        if k == 1 && !path.exists() {
            continue;
        }
        let remedy = match (whole[1 - k], k) {
            (true, 0) => "a run goes on from the checkpoint before it, previous.safetensors",
            (true, _) => {
                "nothing is lost: the newest checkpoint is whole, and the next one takes its place"
            }
            _ => "the run cannot go on from here: restore the folder from a backup, or run again",
        };
        items.push(Item::of(path, true, found, remedy));
    }
    let rest = folder.read_dir().into_iter().flatten().flatten();
    let rest = rest
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "json"));
    for path in rest {
        let found = store::read_json::<Value>(&path).map(|_| ());
        items.push(Item::of(
            path,
            false,
            found,
            "delete it: it is made again when it is needed",
        ));
    }
}
