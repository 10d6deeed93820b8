//! Whether a run can start, and whether it is the one that a checkpoint on disk belongs to.

use super::run::{Meta, RunInfo, kind};
use super::session::Session;
use crate::error::Result;
use crate::store::checkpoint::{self, Checkpoint, Generation, Tensors};
use crate::table::where_they_differ;
use serde_json::Value;
use std::path::Path;

/// The newest checkpoint in a folder, and why it is an older one if it is; none if nothing was saved.
pub(super) fn newest(
    folder: &Path,
    session: &Session,
) -> Result<Option<(Checkpoint, Option<String>)>> {
    let found = find(folder)?;
    if found.is_none() {
        begins_again(folder, session);
    }
    Ok(found.map(|(saved, generation)| (saved, generation.reason())))
}

/// What the checkpoint in the folder of a run holds, if there is one, and why it is an older one if it is.
pub(super) fn load(folder: &Path) -> Result<Option<(Tensors, Meta, Option<String>)>> {
    let Some((saved, generation)) = find(folder)? else {
        return Ok(None);
    };
    let meta = meta_of(folder, saved.meta)?;
    Ok(Some((saved.tensors, meta, generation.reason())))
}

/// The description in the checkpoint of a run.
pub(super) fn meta_of(folder: &Path, meta: Value) -> Result<Meta> {
    anyhow::ensure!(
        meta.get("what").is_none(),
        "{}: this was made by {}, and only that continues it",
        folder.display(),
        kind(&meta)
    );
    serde_json::from_value(meta).map_err(|e| {
        anyhow::anyhow!(
            "{}: the checkpoint is of another version ({e})",
            folder.display()
        )
    })
}

/// The newest checkpoint; none if there has never been one, an error if it is gone.
fn find(folder: &Path) -> Result<Option<(Checkpoint, Generation)>> {
    let found = checkpoint::load(&folder.join("checkpoint"))?;
    // What is written at the end of a run, after its last checkpoint.
    let ended = ["run.json", "trace.zarr"]
        .iter()
        .find(|f| folder.join(f).exists());
    anyhow::ensure!(
        found.is_some() || ended.is_none(),
        "{}: the checkpoint is gone, but there is a {}; restore the folder 'checkpoint' from a backup, or delete '{0}' to start afresh",
        folder.display(),
        ended.unwrap_or(&"")
    );
    Ok(found)
}

/// Say that nothing was saved of what had begun.
fn begins_again(folder: &Path, session: &Session) {
    if folder.exists() && session.leads() {
        let note = "no checkpoint was saved here, so this starts from the beginning";
        session
            .console
            .remark(&format!("NOTE: {}: {note}", folder.display()));
    }
}

/// What keeps something from being saved, and that what was saved before can go on.
pub(super) fn saving<T>(done: Result<T>, folder: &Path, session: &Session) -> Result<T> {
    done.map_err(|e| match folder.join("checkpoint").exists() {
        true => anyhow::anyhow!(
            "{e:#}; the last checkpoint is intact: {}",
            session.goes_on(folder, false)
        ),
        false => e,
    })
}

/// Say, here and in the record, that a run goes on from its older checkpoint, and from where.
pub(super) fn fell_back(
    name: &str,
    at: &str,
    older: Option<String>,
    notes: &mut Vec<String>,
    session: &Session,
) {
    let Some(reason) = older else {
        return;
    };
    let note = format!("'{name}' resumed from its older checkpoint, {at}: {reason}");
    if session.leads() {
        session.console.remark(&format!("NOTE: {note}"));
    }
    notes.push(note);
}

/// A device by its kind, as "cuda:bf16" of "cuda:1:bf16": which of several GPUs it is, as of ranks, makes no difference.
pub(crate) fn without_number(device: &str) -> String {
    let words = device.split(':').filter(|w| w.parse::<u32>().is_err());
    words.collect::<Vec<_>>().join(":")
}

/// Fail unless a saved run is the one that a script now asks for.
pub(super) fn check(folder: &Path, saved: &RunInfo, info: &RunInfo) -> Result<()> {
    let mut saved = saved.clone();
    // Where it is not there, as in folders of version 0.1.0, the fingerprint alone has the target.
    saved.target_checksum = saved.target_checksum.or(info.target_checksum);
    if saved.target_checksum == info.target_checksum {
        // The same data may lie in another file now.
        saved.data.clone_from(&info.data);
    }
    if without_number(&saved.device) == without_number(&info.device) {
        saved.device.clone_from(&info.device);
    }
    if info.ladder.is_some() {
        // Rungs move while they are tuned; those at the start are in the fingerprint.
        saved.temperatures.clone_from(&info.temperatures);
    }
    if let Some(course) = info.course {
        // Where it ends follows from what is asked now, and where burn-in ends from the draws. A run of so many steps may go on, too.
        saved.burn_in = saved.course.map_or(saved.burn_in, |c| c.burn_in);
        saved.course = Some(course);
        (saved.steps, saved.draws, saved.warm_draws) = (info.steps, info.draws, info.warm_draws);
        saved.kept.clone_from(&info.kept);
    }
    if !saved.data.is_empty() && saved.data != info.data {
        let only = |a: &RunInfo, b: &RunInfo| {
            let (all, others) = (a.data_in_words(), b.data_in_words());
            let own = all.into_iter().filter(|line| !others.contains(line));
            own.collect::<Vec<_>>().join("; ")
        };
        anyhow::bail!(
            "{}: this run was started with other data, if not with another model, loss or prior as well; continue it with the same, or choose another folder\n\
             it had {}\nnow    {}",
            folder.display(),
            only(&saved, info),
            only(info, &saved)
        );
    }
    if let Some((name, was, is)) = changed(&saved, info) {
        anyhow::bail!(
            "{}: this run was started with another closure as the observable '{name}'; continue it with the same one, or choose another folder\n\
             it was {was}\nit is  {is}",
            folder.display()
        );
    }
    anyhow::ensure!(
        saved == *info,
        "{}: this run was started with other settings{}; continue it with the same ones, or choose another folder",
        folder.display(),
        difference(&serde_json::to_value(&saved)?, &serde_json::to_value(info)?)
    );
    Ok(())
}

/// The observable whose closure is another one, and what in both differs first.
fn changed<'a>(old: &'a RunInfo, new: &'a RunInfo) -> Option<(&'a str, &'a str, &'a str)> {
    let mut both = old
        .closures
        .iter()
        .filter_map(|(name, was)| Some((name, was, new.closures.get(name)?)));
    let (name, was, is) = both.find(|(_, was, is)| was != is)?;
    let mut lines = was.lines().zip(is.lines());
    let (was, is) = lines.find(|(a, b)| a != b).unwrap_or((was, is));
    Some((name, was, is))
}

/// " (steps was 100, is 200)": the entries in which two descriptions differ, as far as they are in words.
pub(super) fn difference(old: &Value, new: &Value) -> String {
    const MOST: usize = 3;
    let entries = old.as_object().into_iter().flatten();
    let changed = entries.filter_map(|(k, was)| Some((k, was, new.get(k)?)));
    let changed: Vec<_> = changed.filter(|(_, was, is)| was != is).collect();
    let sums = ["fingerprint", "target_checksum"];
    let told = changed.iter().filter(|(k, ..)| !sums.contains(&k.as_str()));
    let told = told.map(|(k, was, is)| {
        let [was, is] = where_they_differ(&was.to_string(), &is.to_string(), 100);
        format!("{k} was {was}, is {is}")
    });
    let told: Vec<_> = told.take(MOST).collect();
    match (told.is_empty(), changed.is_empty()) {
        (false, _) => format!(" ({})", told.join("; ")),
        (true, false) => {
            " (the data, where it starts, or what it records or keeps are not the same)".into()
        }
        (true, true) => String::new(),
    }
}
