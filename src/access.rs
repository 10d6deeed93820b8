//! The folders in which a script may read and write while it runs: those that [`restrict`] names, or all that its user may.
//!
//! Links are followed first, and `..` is resolved, so that neither leads out of a folder. Whoever can make links in these folders while the script runs
//! is trusted: scripts cannot.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Folders and files that may be read and written; with those below them.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// None if all may be read.
    pub reads: Option<Vec<PathBuf>>,
    /// None if all may be written.
    pub writes: Option<Vec<PathBuf>>,
}

/// The restrictions that hold now, each with its number: what one of them forbids is forbidden.
static NOW: RwLock<Vec<(u64, Access)>> = RwLock::new(Vec::new());

/// A restriction, which ends when this is dropped.
#[must_use]
pub struct Restricted(u64);

impl Drop for Restricted {
    fn drop(&mut self) {
        let mut now = NOW.write().unwrap_or_else(|e| e.into_inner());
        now.retain(|(number, _)| *number != self.0);
    }
}

/// Let this process read and write only this, until the value is dropped. What does not exist yet may come later.
///
/// # Errors
/// If a path cannot be resolved.
pub fn restrict(to: Access) -> io::Result<Restricted> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let all = |paths: Option<Vec<PathBuf>>| -> io::Result<_> {
        let each = |all: Vec<PathBuf>| all.iter().map(|p| resolved(p)).collect();
        paths.map(each).transpose()
    };
    let (reads, writes) = (all(to.reads)?, all(to.writes)?);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut now = NOW.write().unwrap_or_else(|e| e.into_inner());
    now.push((number, Access { reads, writes }));
    Ok(Restricted(number))
}

/// The message of an error that comes of [`restrict`].
#[derive(Debug)]
pub struct Forbidden(String);

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Forbidden {}

/// Whether an error comes of [`restrict`].
pub fn is_forbidden(e: &io::Error) -> bool {
    e.get_ref().is_some_and(|e| e.is::<Forbidden>())
}

/// Fail if a file or folder may not be read, whether it is there or not.
pub fn read(path: &Path) -> io::Result<()> {
    for (_, access) in NOW.read().unwrap_or_else(|e| e.into_inner()).iter() {
        if let Some(all) = &access.reads {
            within(resolved(path), all, ("read", "--allow-read"))?;
        }
    }
    Ok(())
}

/// Fail if a file may not be written. Links are followed.
pub fn write(path: &Path) -> io::Result<()> {
    writes(|| resolved(path), |_| false)
}

/// Fail if a name may not be given to something else, or taken away. A link is its own name, not what it leads to.
pub fn rename(path: &Path) -> io::Result<()> {
    writes(|| named(path), |_| false)
}

/// Fail if a folder may not be made. Those above one that may be written may be.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let above = |all: &[PathBuf]| {
        resolved(path).is_ok_and(|place| all.iter().any(|a| a.starts_with(&place)))
    };
    writes(|| resolved(path), above)
}

fn writes(
    place: impl Fn() -> io::Result<PathBuf>,
    other: impl Fn(&[PathBuf]) -> bool,
) -> io::Result<()> {
    for (_, access) in NOW.read().unwrap_or_else(|e| e.into_inner()).iter() {
        if let Some(all) = access.writes.as_ref().filter(|all| !other(all)) {
            within(place(), all, ("write", "--allow-write"))?;
        }
    }
    Ok(())
}

fn within(
    place: io::Result<PathBuf>,
    all: &[PathBuf],
    (verb, option): (&str, &str),
) -> io::Result<()> {
    if place.is_ok_and(|place| all.iter().any(|a| place.starts_with(a))) {
        return Ok(());
    }
    let all: Vec<_> = all.iter().map(|a| a.display().to_string()).collect();
    let what = format!(
        "this script may {verb} only within {}; if it is to be trusted with more, run it with {option} FOLDER, or with --trust",
        all.join(", ")
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, Forbidden(what)))
}

/// A path relative to a folder, with the links of both followed; none if it lies elsewhere, or cannot be followed.
pub(crate) fn inside(path: &Path, folder: &Path) -> Option<PathBuf> {
    let (path, folder) = (resolved(path).ok()?, resolved(folder).ok()?);
    path.strip_prefix(folder).ok().map(Path::to_path_buf)
}

/// A name in the folder that the rest of a path leads to.
fn named(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(resolved(folder)?.join(name)),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

/// The place to which a path leads: the part of it that exists is followed through its links, the rest are plain names.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    for there in path.ancestors() {
        let found = match (there.canonicalize(), there.symlink_metadata()) {
            // Somebody has made it in between. A link to nothing would be followed by whoever makes the file.
            (Err(_), Ok(_)) => Ok(there.canonicalize()?),
            (found, _) => found,
        };
        match found {
            Ok(place) => return Ok(missing.iter().rev().fold(place, |at, name| at.join(name))),
            // No name where the path ends in `..`, which leads nowhere then.
            Err(e) => missing.push(there.file_name().ok_or(e)?),
        }
    }
    Err(ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Ranks make the folders of one run.
    #[test]
    fn a_folder_that_somebody_makes_meanwhile_is_no_error() {
        let root = std::env::temp_dir().join(format!("ergodic-made-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        for round in 0..300 {
            let deep = root.join(format!("{round}/a/b/c/d"));
            let names: Vec<_> = deep.ancestors().take(5).collect();
            std::thread::scope(|scope| {
                let made = scope.spawn(|| fs::create_dir_all(&deep).unwrap());
                while !made.is_finished() {
                    for name in &names {
                        assert!(resolved(name).unwrap().ends_with(name.file_name().unwrap()));
                    }
                }
            });
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn neither_links_nor_dots_lead_out() {
        let root = std::env::temp_dir().join(format!("ergodic-access-{}", std::process::id()));
        let (inside, outside) = (root.join("in"), root.join("out"));
        fs::create_dir_all(inside.join("deep")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "x").unwrap();
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, inside.join(name)).unwrap();
        };
        link(&outside, "folder");
        link(&outside.join("secret"), "file");
        link(&outside.join("new"), "nothing");
        link(&inside.join("deep"), "own");
        let all = vec![resolved(&inside).unwrap()];
        let how = ("read", "--allow-read");
        let may = |path: &str| within(resolved(&inside.join(path)), &all, how).is_ok();
        for path in ["", "a", "deep/a/b", "own/a", "deep/../a", "./a"] {
            assert!(may(path), "{path}");
        }
        let out = [
            "..",
            "../out/secret",
            "../in2",
            "folder",
            "folder/secret",
            "folder/new",
            "file",
            "nothing",
            "deep/../../out/secret",
            "none/../../out/secret",
            "none/..",
            "own/../../out/secret",
        ];
        for path in out {
            assert!(!may(path), "{path}");
        }
        // The name of a link may be taken away, or given to something else.
        for path in ["folder", "file", "nothing", "own"] {
            assert!(
                within(named(&inside.join(path)), &all, how).is_ok(),
                "{path}"
            );
        }
        assert!(within(named(&inside.join("folder/secret")), &all, how).is_err());
        let said = within(resolved(&outside), &all, how).unwrap_err();
        assert!(is_forbidden(&said) && said.to_string().contains("--allow-read FOLDER"));
        fs::remove_dir_all(root).unwrap();
    }
}
