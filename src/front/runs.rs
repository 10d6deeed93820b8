//! `ergodic ls`, `ergodic rm` and `ergodic tag`: runs as a collection.

use crate::error::{self, Result};
use crate::output;
use crate::report::layout::Kind;
use crate::report::runs::{self, Found, RUNS, Runs, Sort, State, size};
use crate::store::claim::Claim;
use crate::store::{self, tags};
use anyhow::{Context, bail, ensure};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The runs in and below folders, as text or as JSON.
pub fn list(folders: &[PathBuf], tags: &[String], sort: Sort, json: bool) -> Result<String> {
    let by_default = folders == [PathBuf::from(RUNS)];
    let found = match by_default && !Path::new(RUNS).exists() {
        true => Runs::default(),
        false => Runs::of(folders, tags, sort)?,
    };
    if json {
        return Ok(serde_json::to_string_pretty(&found.to_json())?);
    }
    if !found.all.is_empty() {
        return Ok(found.table().to_string());
    }
    let places: Vec<_> = folders.iter().map(|f| f.display().to_string()).collect();
    let with = match tags {
        [] => String::new(),
        tags => format!(" with the tag {}", tags.join(", ")),
    };
    Ok(format!("no runs{with} in {}", places.join(", ")))
}

/// What `ergodic rm` is asked for.
#[derive(Debug, Clone, Default)]
pub struct Removal {
    /// Folders of runs, or with tags folders to look in.
    pub runs: Vec<PathBuf>,
    /// `--tag`.
    pub tags: Vec<String>,
    /// `--yes`.
    pub yes: bool,
    /// `--dry-run`.
    pub dry_run: bool,
}

/// Delete runs, once it is clear that all of them may be.
///
/// # Errors
/// If one is no run, has something else in it, or is being written; then none is deleted.
pub fn remove(request: &Removal) -> Result<()> {
    let found = wanted(request)?;
    for run in &found {
        check(run)?;
    }
    let table = Runs { all: found };
    if table.all.is_empty() {
        output::line("nothing to delete");
        return Ok(());
    }
    output::line(table.table());
    let bytes = table.all.iter().map(|f| f.bytes).sum();
    let what = format!("{}, {}", error::count(table.all.len(), "run"), size(bytes));
    if request.dry_run {
        output::line(format_args!("{what}: would be deleted"));
        return Ok(());
    }
    if !request.yes && !confirmed(&what)? {
        output::line("nothing deleted");
        return Ok(());
    }
    for run in &table.all {
        delete(&run.folder)?;
    }
    output::line(format_args!("{what}: deleted"));
    Ok(())
}

/// The runs that are meant, once each, with their real paths.
fn wanted(request: &Removal) -> Result<Vec<Found>> {
    let mut folders = request.runs.clone();
    if !request.tags.is_empty() {
        if folders.is_empty() {
            folders.push(RUNS.into());
        }
        return Ok(Runs::of(&folders, &request.tags, Sort::Time)?.all);
    }
    let whole = |p: &PathBuf| p.canonicalize().unwrap_or_else(|_| p.clone());
    let all: Vec<_> = folders.iter().map(whole).collect();
    let mut out: Vec<Found> = Vec::new();
    for (k, folder) in folders.iter().enumerate() {
        let shown = folder.display();
        ensure!(
            folder.symlink_metadata().is_ok(),
            "{shown}: there is no such folder"
        );
        ensure!(
            !folder.is_symlink(),
            "{shown}: this is a link; name the folder itself, {}",
            all[k].display()
        );
        ensure!(folder.is_dir(), "{shown}: this is a file, not a run");
        // What is in another that goes, goes with it.
        let twice = all[..k].contains(&all[k]);
        let within = all.iter().any(|p| *p != all[k] && all[k].starts_with(p));
        if twice || within {
            continue;
        }
        let Some(found) = Found::of(folder) else {
            let below = runs::find(folder)?.len();
            let hint = match below {
                0 => String::new(),
                n => format!("; {} are below it: name them", error::count(n, "run")),
            };
            bail!("{shown}: this is not the folder of a run, so it is not deleted{hint}");
        };
        out.push(found);
    }
    Ok(out)
}

/// Fail unless a run may be deleted.
fn check(run: &Found) -> Result<()> {
    let shown = run.folder.display();
    if let State::Running(owner) = &run.state {
        bail!("{shown}: {owner} is writing here; wait until it has ended, or stop it");
    }
    let grid = run.folder.canonicalize().ok();
    let grid = grid.as_deref().and_then(Path::parent);
    let grid = grid.filter(|p| Kind::of(p) == Some(Kind::Grid));
    if let Some(State::Running(owner)) = grid.and_then(Found::of).map(|f| f.state) {
        bail!(
            "{shown}: {owner} is writing the grid that this is a cell of; wait until it has ended"
        );
    }
    if let Err(why) = runs::only_ours(&run.folder) {
        bail!(
            "{shown}: {why}, so it is not deleted; move that away, or delete the folder yourself"
        );
    }
    Ok(())
}

/// Ask on the terminal.
fn confirmed(what: &str) -> Result<bool> {
    let input = std::io::stdin();
    ensure!(
        input.is_terminal(),
        "rm: {what} would be deleted, and nobody can be asked; confirm with --yes"
    );
    output::print(format_args!("{what}: delete? [y/N] "));
    std::io::stdout().flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Delete a run while nobody else can begin to write there.
fn delete(folder: &Path) -> Result<()> {
    let whole = folder
        .canonicalize()
        .with_context(|| format!("{}", folder.display()))?;
    let home = match Kind::of(&whole) {
        // What has a script's folder above it is owned with that.
        Some(Kind::Part) => {
            let above = whole.parent().filter(|p| Kind::of(p).is_some());
            above.map(Path::to_path_buf)
        }
        _ => Some(whole.clone()),
    };
    let mut claims: Vec<Claim> = Vec::new();
    for owned in home.into_iter().chain(runs::inner(&whole)) {
        claims.push(Claim::of(&owned)?);
    }
    store::remove_folder(&whole)
}

/// Give a run tags, or take them away; returns those that it has then, in a line.
pub fn tag(run: &Path, names: &[String], remove: bool) -> Result<String> {
    let shown = run.display();
    ensure!(run.is_dir(), "{shown}: there is no such folder");
    ensure!(
        Kind::of(run).is_some(),
        "{shown}: this is not the folder of a run; `ergodic ls` lists them"
    );
    let whole = run.canonicalize().unwrap_or_else(|_| run.into());
    if let Some(above) = whole
        .parent()
        .filter(|p| Kind::of(p) == Some(Kind::Results))
    {
        bail!(
            "{shown}: this is a part of a run; give the tag to that, {}",
            above.display()
        );
    }
    let known = tags::of(run);
    let missing = names.iter().find(|t| remove && !known.contains(t));
    if let Some(missing) = missing {
        let hint = error::did_you_mean(missing, known.iter().map(String::as_str));
        bail!("{shown}: it has no tag '{missing}'{hint}");
    }
    let all = match remove {
        true => tags::change(run, &[], names)?,
        false => tags::change(run, names, &[])?,
    };
    Ok(match all.is_empty() {
        true => format!("{shown}: no tags"),
        false => format!("{shown}: {}", all.join(", ")),
    })
}
