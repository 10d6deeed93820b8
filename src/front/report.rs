//! `ergodic report`, `ergodic plot` and `ergodic compare`: what has been run, told.

use super::show;
use crate::error::Result;
use crate::report::compare::{Entry, SideBySide};
use crate::report::gallery;
use crate::report::read::Results;
use crate::script::explore::tokens::paint;
use crate::simulation::summary::Summary;
use std::path::{Path, PathBuf};

/// Write a report of all folders into one page; returns its path.
pub fn report(folders: &[impl AsRef<Path>], out: Option<&Path>) -> Result<PathBuf> {
    let file = match (out, folders) {
        (Some(out), _) => out.to_path_buf(),
        (None, [one]) => one.as_ref().join("report.html"),
        _ => anyhow::bail!(
            "several folders go into one report: say where with --out, as --out report.html"
        ),
    };
    let all = folders.iter().map(|f| Results::of(f.as_ref()));
    let all = all.collect::<Result<Vec<_>>>()?;
    crate::report::write(&all, &file, paint)
}

/// Write the standard figures of everything in a folder, into the folder `figures` of each or below `out`; returns their paths.
pub fn plot(folder: &Path, out: Option<&Path>) -> Result<Vec<PathBuf>> {
    let parts = show::parts(folder)?;
    let mut paths = Vec::new();
    let several = parts.len() > 1;
    for part in &parts {
        let summary = part.of.run().map(|r| Summary::new(r)).transpose()?;
        let place = match out {
            None => part.folder.join("figures"),
            Some(out) if several => out.join(&part.name),
            Some(out) => out.to_path_buf(),
        };
        for d in gallery::drawings(part, summary.as_ref())? {
            let path = place.join(format!("{}.svg", d.name));
            d.figure.save(&path)?;
            paths.push(path);
        }
    }
    anyhow::ensure!(
        !paths.is_empty(),
        "{}: there is nothing to draw yet",
        folder.display()
    );
    Ok(paths)
}

/// The runs of all folders beside each other.
pub fn compare(folders: &[PathBuf]) -> Result<SideBySide> {
    let mut entries: Vec<Entry> = Vec::new();
    for folder in folders {
        for part in show::parts(folder)? {
            let Some(run) = part.of.run().cloned() else {
                continue;
            };
            let summary = Summary::new(&run)?;
            let home = part.folder.parent().and_then(Path::file_name);
            let home = home.unwrap_or_default().to_string_lossy().into_owned();
            entries.push(Entry {
                label: format!("{home}/{}", part.name),
                run,
                done: part.of.done(),
                summary,
            });
        }
    }
    // The name alone is enough where no two have the same.
    let names: Vec<_> = entries.iter().map(|e| e.run.info.name.clone()).collect();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    if once.len() == names.len() {
        let both = entries.iter_mut().zip(names);
        both.for_each(|(e, name)| e.label = name);
    }
    SideBySide::new(entries)
}
