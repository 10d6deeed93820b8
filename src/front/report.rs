//! `ergodic report`, `ergodic plot`, `ergodic compare` and `ergodic diff`: what has been run, told.

use super::show;
use crate::error::Result;
use crate::plot::Style;
use crate::report::compare::{Entry, SideBySide};
use crate::report::diff::Diff;
use crate::report::layout::Kind;
use crate::report::read::Results;
use crate::report::runs::find;
use crate::report::{gallery, index};
use crate::script::explore::tokens::paint;
use crate::simulation::summary::Summary;
use std::path::{Path, PathBuf};

/// Write a report of all folders into one page, or where one of them holds many runs, their index and a page each; returns its path.
pub fn report(folders: &[impl AsRef<Path>], out: Option<&Path>) -> Result<PathBuf> {
    let folders: Vec<PathBuf> = folders.iter().map(|f| f.as_ref().into()).collect();
    let many = |f: &PathBuf| f.is_dir() && matches!(Kind::of(f), None | Some(Kind::Grid));
    let many = folders
        .iter()
        .any(|f| many(f) && find(f).is_ok_and(|all| !all.is_empty()));
    let name = if many { "index.html" } else { "report.html" };
    let file = match (out, &folders[..]) {
        (Some(out), _) => out.to_path_buf(),
        (None, [one]) => one.join(name),
        _ => anyhow::bail!(
            "several folders go into one report: say where with --out, as --out report.html"
        ),
    };
    if many {
        crate::report::check_name(&file)?;
        return index::write(&folders, &file, out.is_some(), paint);
    }
    let all = folders.iter().map(|f| Results::of(f));
    let all = all.collect::<Result<Vec<_>>>()?;
    crate::report::write(&all, &file, paint)
}

/// Write the standard figures of everything in a folder, into the folder `figures` of each or below `out`; returns their paths.
pub fn plot(
    folder: &Path,
    out: Option<&Path>,
    (style, ending): (&Style, &str),
) -> Result<Vec<PathBuf>> {
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
            let path = place.join(format!("{}.{ending}", d.name));
            d.figure.styled(style.clone()).save(&path)?;
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

/// In what two runs differ, as text or as JSON.
pub fn diff(a: &Path, b: &Path, json: bool) -> Result<String> {
    let found = Diff::of(a, b)?;
    Ok(match json {
        true => format!("{}\n", serde_json::to_string_pretty(&found.to_json())?),
        false => found.to_string(),
    })
}

/// The runs of all folders beside each other.
pub fn compare(folders: &[PathBuf]) -> Result<SideBySide> {
    let mut entries: Vec<Entry> = Vec::new();
    // What each may be called: its name, with its folder, with all folders.
    let mut labels: Vec<[String; 3]> = Vec::new();
    for folder in folders {
        for part in show::parts(folder)? {
            let Some(entry) = Entry::of(&part, String::new())? else {
                continue;
            };
            let home = part.folder.parent().and_then(Path::file_name);
            let home = home.unwrap_or_default().to_string_lossy().into_owned();
            let whole = match part.folder.ends_with(folder) {
                true => folder.clone(),
                false => folder.join(&part.name),
            };
            let near = format!("{home}/{}", part.name);
            labels.push([
                entry.run.info.name.clone(),
                near,
                whole.display().to_string(),
            ]);
            entries.push(entry);
        }
    }
    // The shortest that tells them apart.
    let differ = |k: &usize| {
        let mut all: Vec<_> = labels.iter().map(|l| &l[*k]).collect();
        all.sort();
        all.windows(2).all(|w| w[0] != w[1])
    };
    let k = (0..3).find(differ).unwrap_or(2);
    for (entry, label) in entries.iter_mut().zip(labels) {
        entry.label = label[k].clone();
    }
    SideBySide::new(entries)
}
