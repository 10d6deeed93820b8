//! What is where in a folder of results, found without reading any numbers.

use super::record::Record;
use crate::simulation::sharding::is_shard;
use crate::store::{self, checkpoint, disk};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file that says which grid is in a folder.
pub(crate) const GRID: &str = "grid.json";

/// What a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// That of a grid, with a folder of results per cell.
    Grid,
    /// That of a script's or a session's results, with a folder per run.
    Results,
    /// That of a run, a training, populations or a benchmark.
    Part,
}

impl Kind {
    /// What a folder is; none if it is nothing of ours.
    pub fn of(folder: &Path) -> Option<Self> {
        let is_grid = || {
            let grid = store::read_json::<Value>(&folder.join(GRID));
            grid.is_ok_and(|g| g["source"].is_string() && g["grid"].is_array())
        };
        let is_results = || {
            // One that cannot be read may be that of a script.
            !matches!(Record::of(folder), Ok(None))
                || subfolders(folder)
                    .iter()
                    .any(|p| is_part(p) || is_shard(&name(p)))
        };
        match folder {
            _ if is_grid() => Some(Self::Grid),
            _ if is_part(folder) => Some(Self::Part),
            _ => is_results().then_some(Self::Results),
        }
    }
}

/// The last part of a path.
pub(crate) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Whether a folder is that of a run, a training, populations or a benchmark; of one that has lost its checkpoint, too.
pub(super) fn is_part(folder: &Path) -> bool {
    let own_record = || {
        let record = store::read_json::<Value>(&folder.join("run.json"));
        record.is_ok_and(|r| r.get("source").is_none() && r["versions"].is_object())
    };
    checkpoint::is_there(&folder.join("checkpoint"))
        || folder.join("benchmark.json").is_file()
        || own_record()
}

/// The folders in a folder, by name; hidden ones and links are none.
pub(super) fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = disk::entries(folder);
    let seen = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    let mut out: Vec<_> = seen.map(|e| e.path()).collect();
    out.retain(|p| !name(p).starts_with('.'));
    out.sort_by_key(|p| natural(p));
    out
}

/// The folders of what a script has run, in the order in which it did: as its record says, else by when they were made.
pub(super) fn part_folders(folder: &Path, record: Option<&Record>) -> Vec<PathBuf> {
    let mut out = subfolders(folder);
    out.retain(|p| is_part(p));
    let said = record.map_or(&[][..], |r| &r.parts);
    let made = |p: &Path| p.metadata().and_then(|m| m.created()).ok();
    out.sort_by_key(|p| {
        let own = name(p);
        let at = said.iter().position(|n| *n == own);
        (at.unwrap_or(usize::MAX), made(p))
    });
    out
}

/// The names of the shards in a folder.
pub(super) fn shards(folder: &Path) -> Vec<String> {
    let names = subfolders(folder).into_iter().map(|p| name(&p));
    names.filter(|n| is_shard(n)).collect()
}

/// Names in an order in which run-10 comes after run-9.
fn natural(path: &Path) -> (String, u64, String) {
    let name = name(path);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].parse().unwrap_or(0);
    (stem.to_string(), number, name)
}

/// When a folder was made, or last changed where that is not known.
pub(super) fn made(folder: &Path) -> SystemTime {
    let found = folder
        .metadata()
        .and_then(|m| m.created().or_else(|_| m.modified()));
    found.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["sweep-10", "sweep-9", "alone", "sweep-1"].map(PathBuf::from);
        names.sort_by_key(|p| natural(p));
        assert_eq!(
            names,
            ["alone", "sweep-1", "sweep-9", "sweep-10"].map(PathBuf::from)
        );
    }
}
