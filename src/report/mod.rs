//! Finished runs, read back from their folders and told: `ergodic report`, `plot`, `show` and `compare`.
//!
//! | file | what it is |
//! |---|---|
//! | `read.rs`, `record.rs`, `layout.rs` | what is in a folder of results |
//! | `runs/` | many folders: what `ergodic ls` lists |
//! | `verdict.rs`, `checks.rs` | what speaks for the numbers, and what against |
//! | `kinds.rs`, `sampled.rs` | what is told of each kind of result |
//! | `tables.rs`, `about.rs`, `figures.rs`, `gallery.rs` | numbers, words and figures of every kind of result |
//! | `html.rs`, `page.rs`, `section.rs`, `style.css` | one self-contained page |
//! | `index.rs`, `index.js` | the index of many runs |
//! | `compare.rs`, `diff.rs`, `settings.rs` | runs beside each other |
//!
//! Numbers come from the summaries that scripts have; nothing is computed here that is not there.

mod about;
pub(crate) mod address;
mod checks;
pub mod compare;
pub mod diff;
pub mod figures;
pub(crate) mod gallery;
mod html;
pub(crate) mod index;
pub(crate) mod kinds;
pub(crate) mod layout;
mod page;
pub mod part;
pub mod read;
pub mod record;
pub mod runs;
mod sampled;
mod section;
mod settings;
mod tables;
pub mod verdict;

pub(crate) use html::document;

use crate::error::Result;
use crate::store;
use read::Results;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Which parts of a script have which colour: "k" keywords, "c" comments, "s" strings, "n" numbers, "f" functions. In order.
pub(crate) type Paint = fn(&str) -> Vec<(Range<usize>, &'static str)>;

/// The page of one or several results.
pub fn html(all: &[Results], paint: Paint) -> Result<String> {
    page::page(all, (None, ""), paint)
}

/// The page of a run as it is now, kept up to date by a script; it leads back to `/`.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn live_page(folder: &Path, live: &str, paint: Paint) -> Result<String> {
    page::page(&[Results::of(folder)?], (Some("/"), live), paint)
}

/// Write the page of one or several results; returns its path.
///
/// # Errors
/// If the name does not end in `.html`, or the file cannot be written.
pub fn write(all: &[Results], file: &Path, paint: Paint) -> Result<PathBuf> {
    check_name(file)?;
    store::write_atomic(file, html(all, paint)?.as_bytes())?;
    Ok(file.to_path_buf())
}

/// Fail unless a page may have this name.
pub(crate) fn check_name(file: &Path) -> Result<()> {
    let ending = file.extension().unwrap_or_default();
    anyhow::ensure!(
        ending.eq_ignore_ascii_case("html") || ending.eq_ignore_ascii_case("htm"),
        "{}: a report is a page; give it a name that ends in .html",
        file.display()
    );
    anyhow::ensure!(
        !file.is_dir(),
        "{}: this is a folder, not a file",
        file.display()
    );
    Ok(())
}
