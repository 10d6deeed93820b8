//! Many runs: what `ergodic ls` lists, `ergodic rm` deletes and an index page shows.
//!
//! A run is what one script has left in its folder, or a session, or a whole grid. Lists read no traces: of each run they take its record,
//! the descriptions of its checkpoints, its tags and who owns its folder.

mod brief;
mod ours;
mod table;

use super::layout::{GRID, Kind, made, name, part_folders, shards, subfolders};
use super::record::Record;
use crate::access;
use crate::diagnostic::Verdict;
use crate::error::Result;
use crate::store::{self, claim, tags};
use anyhow::Context;
use brief::Brief;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub use ours::only_ours;
pub(crate) use ours::{has_just_begun, is_of_run};
pub use table::{LIST, RUNS, Runs, Sort, date, duration, size};

/// How deep below a folder runs are looked for.
const DEPTH: usize = 8;

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It has come to its end.
    Finished,
    /// Somebody is at it: who.
    Running(String),
    /// It was stopped or killed, and can be resumed.
    Interrupted,
    /// The script ended with this error.
    Failed(String),
    /// Something of it cannot be read: why.
    Damaged(String),
}

/// A run, without its numbers.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it is.
    pub folder: PathBuf,
    /// What it has done, as "train, sweep".
    pub kind: String,
    /// How far it is.
    pub state: State,
    /// The part that is done of what is not finished, where that is known.
    pub share: Option<f64>,
    /// What is not finished, where there are several.
    pub open: String,
    /// The worst verdict of its runs.
    pub verdict: Option<Verdict>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Bytes on disk.
    pub bytes: u64,
    /// When it began.
    pub begun: SystemTime,
    /// Seconds that it took, or has computed so far.
    pub seconds: f64,
    /// The folders of what it has run, to be opened; of a grid, those of its cells.
    pub parts: Vec<PathBuf>,
    /// The record of its script.
    pub record: Option<Record>,
}

impl Found {
    /// What a folder is; none if it is no run.
    pub fn of(folder: &Path) -> Option<Self> {
        // One that has just begun has nothing but its lock.
        let begins = || claim::owner_of(folder).map(|_| Kind::Results);
        let mut found = match Kind::of(folder).or_else(begins)? {
            Kind::Grid => grid(folder),
            Kind::Results if !shards(folder).is_empty() && parts_of(folder, None).is_empty() => {
                sharded(folder)
            }
            Kind::Results => results(folder)?,
            Kind::Part => part(folder),
        };
        let mut all: Vec<_> = tags::of(folder);
        let inner = shards(folder)
            .into_iter()
            .flat_map(|s| tags::of(&folder.join(s)));
        all.extend(inner);
        all.sort();
        all.dedup();
        (found.tags, found.bytes) = (all, store::bytes_in(folder));
        Some(found)
    }

    /// Whether it has all of these tags.
    pub fn has_tags(&self, wanted: &[String]) -> bool {
        wanted.iter().all(|t| self.tags.contains(t))
    }
}

/// All runs in and below a folder, in order of time. Of a grid they are its cells.
///
/// # Errors
/// If there is no such folder.
pub fn find(folder: &Path) -> Result<Vec<Found>> {
    let shown = folder.display();
    access::read(folder).with_context(|| shown.to_string())?;
    anyhow::ensure!(folder.exists(), "{shown}: there is no such folder");
    anyhow::ensure!(folder.is_dir(), "{shown}: this is a file, not a folder");
    let mut out = Vec::new();
    match Kind::of(folder) {
        Some(Kind::Results | Kind::Part) => out.extend(Found::of(folder)),
        _ => below(folder, DEPTH, &mut out),
    }
    out.sort_by_key(|f| f.begun);
    Ok(out)
}

fn below(folder: &Path, depth: usize, out: &mut Vec<Found>) {
    for inner in subfolders(folder) {
        match Found::of(&inner) {
            Some(found) => out.push(found),
            None if depth > 0 => below(&inner, depth - 1, out),
            None => {}
        }
    }
}

/// Whether there are shards in a folder.
pub fn has_shards(folder: &Path) -> bool {
    !shards(folder).is_empty()
}

/// The folders of results within that of a grid or of shards.
pub(crate) fn inner(folder: &Path) -> Vec<PathBuf> {
    let mut out = subfolders(folder);
    out.retain(|p| Kind::of(p) == Some(Kind::Results));
    out
}

fn parts_of(folder: &Path, record: Option<&Record>) -> Vec<Brief> {
    let folders = part_folders(folder, record);
    folders.iter().map(|p| Brief::of(p)).collect()
}

/// The kinds of several things, as "train, 3 sample".
fn kinds<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for kind in all {
        match counts.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, n)) => *n += 1,
            None => counts.push((kind, 1)),
        }
    }
    let shown = counts.into_iter().map(|(kind, n)| match n {
        1 => kind.to_string(),
        n => format!("{n} {kind}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn found(folder: &Path, kind: String, state: State) -> Found {
    Found {
        folder: folder.into(),
        kind,
        state,
        share: None,
        open: String::new(),
        verdict: None,
        tags: Vec::new(),
        bytes: 0,
        begun: made(folder),
        seconds: 0.0,
        parts: Vec::new(),
        record: None,
    }
}

impl Found {
    /// Take over what these say.
    fn with(mut self, parts: &[Brief]) -> Self {
        let open = parts.iter().rev().find(|p| !p.done);
        self.share = open.and_then(|p| p.share);
        if let (Some(open), 2..) = (open, parts.len()) {
            self.open = name(&open.folder);
        }
        self.verdict = parts.iter().filter_map(|p| p.verdict).max();
        self.seconds = parts.iter().map(|p| p.seconds).sum();
        self.parts = parts.iter().map(|p| p.folder.clone()).collect();
        if let Some(why) = parts.iter().find_map(|p| p.damage.clone())
            && !matches!(self.state, State::Running(_))
        {
            self.state = State::Damaged(why);
        }
        self
    }
}

/// What a script or a session has left; none of one that was killed before it had anything.
fn results(folder: &Path) -> Option<Found> {
    let record = Record::of(folder);
    let said = record.as_ref().ok().and_then(Option::as_ref);
    let parts = parts_of(folder, said);
    let open = parts.iter().any(|p| !p.done);
    let state = match (claim::owner_of(folder), &record) {
        (Some(owner), _) => State::Running(owner),
        (None, Err(e)) => State::Damaged(format!("{e:#}")),
        (None, Ok(Some(record))) => match record.status.as_str() {
            "done" => State::Finished,
            status if status.is_empty() || status.starts_with("interrupted") => State::Interrupted,
            status => State::Failed(status.to_string()),
        },
        (None, Ok(None)) if open => State::Interrupted,
        (None, Ok(None)) if parts.is_empty() => return None,
        // That of a session, which has no record.
        (None, Ok(None)) => State::Finished,
    };
    let kind = match parts.is_empty() {
        true => "script".into(),
        false => kinds(parts.iter().map(|p| p.kind.as_str())),
    };
    let mut out = found(folder, kind, state).with(&parts);
    if let Some(record) = record.ok().flatten() {
        let took = record
            .seconds
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        let ended = record.written.zip(took);
        let ended = ended.and_then(|(at, took)| at.checked_sub(took));
        out.begun = record.started.or(ended).unwrap_or(out.begun);
        out.seconds = out.seconds.max(record.seconds.unwrap_or(0.0));
        out.record = Some(record);
    }
    if matches!(out.state, State::Running(_)) {
        let since = out.begun.elapsed().map_or(0.0, |t| t.as_secs_f64());
        out.seconds = out.seconds.max(since);
    }
    Some(out)
}

/// A run whose script's folder was not named with it, or is gone.
fn part(folder: &Path) -> Found {
    let brief = Brief::of(folder);
    let home = folder.parent().unwrap_or(folder);
    let state = match (claim::owner_of(home), brief.done) {
        (_, true) => State::Finished,
        (Some(owner), false) => State::Running(owner),
        (None, false) => State::Interrupted,
    };
    found(folder, brief.kind.clone(), state).with(&[brief])
}

/// The runs of a grid or of shards as one; `all` is how many there will be.
fn together(folder: &Path, kind: String, all: usize, inner: Vec<Found>) -> Found {
    let done = inner.iter().filter(|f| f.state == State::Finished).count();
    let worst = inner.iter().map(|f| &f.state).max().cloned();
    let running = inner
        .iter()
        .find(|f| matches!(f.state, State::Running(_)))
        .map(|f| f.state.clone());
    let state = match (running, worst) {
        (Some(running), _) => running,
        (None, Some(state @ (State::Failed(_) | State::Damaged(_)))) => state,
        _ if done >= all => State::Finished,
        _ => State::Interrupted,
    };
    Found {
        share: Some(done as f64 / all.max(1) as f64).filter(|_| state != State::Finished),
        verdict: inner.iter().filter_map(|f| f.verdict).max(),
        seconds: inner.iter().map(|f| f.seconds).sum(),
        begun: inner.iter().map(|f| f.begun).min().unwrap_or(made(folder)),
        record: inner.iter().find_map(|f| f.record.clone()),
        parts: inner.into_iter().map(|f| f.folder).collect(),
        ..found(folder, kind, state)
    }
}

fn grid(folder: &Path) -> Found {
    let definition: Value = store::read_json(&folder.join(GRID)).unwrap_or_default();
    let values = |setting: &Value| setting[1].as_array().map_or(0, Vec::len);
    let settings = definition["grid"].as_array().into_iter().flatten();
    let all = settings.map(values).fold(1, usize::saturating_mul);
    let cells: Vec<_> = inner(folder).iter().filter_map(|p| results(p)).collect();
    together(folder, format!("grid of {all}"), all, cells)
}

fn sharded(folder: &Path) -> Found {
    let names = shards(folder);
    let all = names
        .iter()
        .filter_map(|n| n.rsplit_once('-')?.1.parse().ok());
    let all = all.max().unwrap_or(names.len());
    let each: Vec<_> = names
        .iter()
        .filter_map(|n| results(&folder.join(n)))
        .collect();
    let first = each.first().map_or(String::new(), |f| f.kind.clone());
    together(folder, format!("{first} in {all} shards"), all, each)
}

/// The last part of a path, or the path where it has none.
pub(crate) fn label(folder: &Path) -> String {
    match name(folder) {
        none if none.is_empty() => folder.display().to_string(),
        name => name,
    }
}
