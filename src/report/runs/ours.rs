//! Whether a folder has nothing in it but what runs leave: only such folders are deleted or replaced.

use crate::report::layout::{GRID, Kind, name};
use crate::simulation::sharding::is_shard;
use crate::simulation::transcript::{FILE, RUST_FILE};
use crate::store::claim::{ASIDE, LOCK, MOVING};
use crate::store::disk;
use crate::store::tags::TAGS;
use crate::store::temp_files::is_temporary;
use std::path::Path;

/// What is in the folder of a run beside files that scripts write.
const OF_PART: [&str; 7] = [
    "checkpoint",
    "run.json",
    "trace.zarr",
    "draws.zarr",
    "weights",
    "figures",
    TAGS,
];

/// What is in the folder of a script's results, or of a grid.
const OF_RESULTS: [&str; 9] = [
    "run.json", "figures", GRID, TAGS, LOCK, ASIDE, MOVING, FILE, RUST_FILE,
];

/// Endings of files that scripts and reports write.
const WRITTEN: [&str; 11] = [
    "json",
    "ipynb",
    "csv",
    "svg",
    "html",
    "htm",
    "npy",
    "safetensors",
    "npz",
    "pt",
    "pth",
];

/// Fail unless a folder is that of a run and has nothing else in it; says what it is, or what else there is.
pub fn only_ours(folder: &Path) -> Result<(), String> {
    // A first run leaves its files of kept draws before there is a record.
    let begun = || {
        let inner = disk::entries(folder).map(|e| e.path());
        let mut inner = inner
            .filter(|p| name(p) != LOCK && !is_temporary(&name(p)))
            .peekable();
        inner.peek().is_some() && inner.all(|p| has_just_begun(&p))
    };
    let Some(kind) = Kind::of(folder).or_else(|| begun().then_some(Kind::Results)) else {
        return Err("it is not that of a run".into());
    };
    let known: &[&str] = match kind {
        Kind::Part => &OF_PART,
        Kind::Grid | Kind::Results => &OF_RESULTS,
    };
    let entries = disk::list(folder).map_err(|e| e.to_string())?;
    for entry in entries {
        let (path, own) = (entry.path(), name(&entry.path()));
        let begun = kind == Kind::Results && has_just_begun(&path);
        if known.contains(&own.as_str()) || is_temporary(&own) || is_written(&path) || begun {
            continue;
        }
        let inner = match entry.file_type().is_ok_and(|t| t.is_dir()) {
            true => Kind::of(&path),
            false => None,
        };
        let fits = match kind {
            Kind::Grid => inner == Some(Kind::Results),
            Kind::Results => inner == Some(Kind::Part) || inner.is_some() && is_shard(&own),
            Kind::Part => false,
        };
        if !fits {
            return Err(format!("there is something else in it ('{own}')"));
        }
        only_ours(&path).map_err(|why| format!("in '{own}' {why}"))?;
    }
    Ok(())
}

/// Whether a file is one that runs leave: below the folder of results `out`, or in that of another run. Only names are looked at.
pub fn is_of_run(file: &Path, out: &Path) -> bool {
    let ours = |name: &str| {
        let all = [&OF_PART[..], &OF_RESULTS, &["weights.safetensors"]];
        all.iter().any(|names| names.contains(&name))
    };
    let mut inner = file.ancestors();
    inner.any(|path| {
        let folder = path.parent().unwrap_or(Path::new(""));
        ours(&name(path)) && (folder.starts_with(out) || folder.join("run.json").is_file())
    })
}

/// Whether a script or a report may have written a file, or all that is in a folder.
fn is_written(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(m) if m.is_dir() => {
            let mut inner = disk::entries(path);
            Kind::of(path).is_none() && inner.all(|e| is_written(&e.path()))
        }
        Ok(m) => {
            let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
            m.is_file() && WRITTEN.iter().any(|w| ending == *w)
        }
        Err(_) => false,
    }
}

/// Whether a killed process had made nothing but the files of kept draws, which come before the first checkpoint.
pub(crate) fn has_just_begun(part: &Path) -> bool {
    let ours = |name: &str| name == "draws.zarr" || is_temporary(name);
    part.is_dir() && disk::entries(part).all(|e| ours(&name(&e.path())))
}
