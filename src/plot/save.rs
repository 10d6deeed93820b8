//! Writing a figure to a file: complete or not at all.

use std::path::Path;

use anyhow::{Context, bail};

use super::Figure;
use crate::error::Result;
use crate::store::write_atomic;

/// Draws `figure` and moves it to `path`, making missing folders.
pub(super) fn save(figure: &Figure, path: &Path) -> Result<()> {
    check_ending(path)?;
    let svg = figure
        .to_svg()
        .with_context(|| format!("cannot draw the figure '{}'", path.display()))?;
    write_atomic(path, svg.as_bytes())
        .with_context(|| format!("cannot write the figure '{}'", path.display()))
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
