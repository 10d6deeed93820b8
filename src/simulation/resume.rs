//! Whether a run can start, and whether it is the one that a checkpoint on disk belongs to.

use super::parts::Maker;
use super::run::{Meta, RunInfo};
use super::session::Session;
use super::state::State;
use crate::error::Result;
use crate::store::checkpoint::{self, Checkpoint, Tensors};
use std::path::Path;

/// Put the state of an earlier session back, if `--resume` asks for it and there is one.
pub(super) fn resume(
    folder: &Path,
    info: &RunInfo,
    state: &mut State,
    maker: &Maker,
    session: &Session,
) -> Result<Option<Meta>> {
    if !session.resume {
        return Ok(None);
    }
    let Some((tensors, meta)) = load(folder)? else {
        return Ok(None);
    };
    check(folder, &meta.info, info)?;
    maker.restore(state, tensors, &meta)?;
    Ok(Some(meta))
}

/// The checkpoint in a folder, if `--resume` asks for it and there is one; an error unless it was started as `what` says. `whose` begins the
/// message: "this training was".
pub(super) fn settings(
    folder: &Path,
    what: &serde_json::Value,
    whose: &str,
    session: &Session,
) -> Result<Option<Checkpoint>> {
    if !session.resume {
        return Ok(None);
    }
    let Some((saved, _)) = checkpoint::load(&folder.join("checkpoint"))? else {
        return Ok(None);
    };
    anyhow::ensure!(
        saved.meta["what"] == *what,
        "{}: {whose} started with other settings; resume with the same script and --set values, or choose another --out",
        folder.display()
    );
    Ok(Some(saved))
}

/// What the checkpoint in the folder of a run holds, if there is one.
pub(super) fn load(folder: &Path) -> Result<Option<(Tensors, Meta)>> {
    let Some((saved, _)) = checkpoint::load(&folder.join("checkpoint"))? else {
        return Ok(None);
    };
    let meta = serde_json::from_value(saved.meta).map_err(|e| {
        anyhow::anyhow!(
            "{}: the checkpoint is of another version ({e})",
            folder.display()
        )
    })?;
    Ok(Some((saved.tensors, meta)))
}

/// Fail unless a saved run is the one that a script now asks for.
pub(super) fn check(folder: &Path, saved: &RunInfo, info: &RunInfo) -> Result<()> {
    let mut saved = saved.clone();
    if info.ladder.is_some() {
        // Rungs move while they are tuned; those at the start are in the fingerprint.
        saved.temperatures.clone_from(&info.temperatures);
    }
    if let Some((name, was, is)) = changed(&saved, info) {
        anyhow::bail!(
            "{}: this run was started with another closure as the observable '{name}'; resume with the same closure, or choose another --out\n\
             it was {was}\nit is  {is}",
            folder.display()
        );
    }
    anyhow::ensure!(
        saved == *info,
        "{}: this run was started with other settings{}; resume with the same script and --set values, or choose another --out",
        folder.display(),
        difference(&saved, info)
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

/// A value in few words.
fn short(value: &serde_json::Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 100 {
        format!("{}…", text.chars().take(100).collect::<String>())
    } else {
        text
    }
}

/// " (steps was 100, is 200)": the first field in which two runs differ.
fn difference(old: &RunInfo, new: &RunInfo) -> String {
    let (old, new) = (
        serde_json::to_value(old).unwrap_or_default(),
        serde_json::to_value(new).unwrap_or_default(),
    );
    let fields = old.as_object().into_iter().flatten();
    fields
        .filter_map(|(k, v)| {
            new.get(k)
                .filter(|w| *w != v)
                .map(|w| format!(" ({k} was {}, is {})", short(v), short(w)))
        })
        .next()
        .unwrap_or_default()
}
