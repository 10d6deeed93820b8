//! Writing a figure to a file: complete or not at all.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};

use super::Figure;
use crate::error::Result;

/// Draws `figure` and moves it to `path`, making missing folders.
pub(super) fn save(figure: &Figure, path: &Path) -> Result<()> {
    check_ending(path)?;
    let svg = figure
        .to_svg()
        .with_context(|| format!("cannot draw the figure '{}'", path.display()))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| {
            format!(
                "cannot make the folder '{}' for the figure '{}'",
                folder.display(),
                path.display()
            )
        })?;
    }
    let aside = name_aside(path);
    let written = fs::write(&aside, svg).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // What could not be moved is of no use; the error below is the one to report.
        let _ = fs::remove_file(&aside);
    }
    written.with_context(|| format!("cannot write the figure '{}'", path.display()))
}

fn check_ending(path: &Path) -> Result<()> {
    match path.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("svg") => Ok(()),
        Some(ending) => bail!(
            "cannot save the figure '{}': the ending '.{}' is not supported; supported: .svg",
            path.display(),
            ending.to_string_lossy()
        ),
        None => bail!(
            "cannot save the figure '{}': the name has no ending; supported: .svg",
            path.display()
        ),
    }
}

/// A name in the same folder that no other writer uses.
fn name_aside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}-{count}.tmp", process::id()));
    path.with_file_name(name)
}
