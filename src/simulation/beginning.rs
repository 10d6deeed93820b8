//! The beginning of a script's results: what they replace goes aside until the end, and once there are some, the script's record and tags are written.

use crate::error::Result;
use crate::output;
use crate::store::claim::ASIDE;
use crate::store::{self, aside, tags};
use serde_json::{Value, json};
use std::path::Path;

/// What in a folder stays where it is when the rest is replaced.
pub(crate) type Stays = fn(&str) -> bool;

/// What is to be done when a script's results begin.
#[derive(Debug, Default)]
pub struct Beginning {
    /// The record of the script, as far as it is known.
    record: Value,
    tags: Vec<String>,
    /// Whether what is in the folder is replaced, and what of it stays.
    replaces: Option<Stays>,
    /// Names of what was run, in order.
    pub parts: Vec<String>,
    /// Whether anything was to be written, and whether a job has.
    entered: bool,
    begun: bool,
}

impl Beginning {
    /// What is to be done.
    pub fn new(record: Value, tags: Vec<String>, replaces: Option<Stays>) -> Self {
        Self {
            record,
            tags,
            replaces,
            ..Self::default()
        }
    }

    /// Before anything is written: set aside what is replaced.
    pub fn make_room(&mut self, out: &Path) -> Result<()> {
        let first = !std::mem::replace(&mut self.entered, true);
        match self.replaces.filter(|_| first) {
            Some(stays) => aside::set(out, stays),
            None => Ok(()),
        }
    }

    /// Now that there is something: write the record and the tags.
    pub fn begun(&mut self, out: &Path) -> Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        tags::change(out, &self.tags, &[])?;
        match self.record.is_null() {
            true => Ok(()),
            false => store::write_json(&out.join("run.json"), &self.record),
        }
    }

    /// Whether no job has written anything.
    pub fn is_idle(&self) -> bool {
        !self.begun
    }

    /// Whether what was to be replaced stays, since nothing has come in its place.
    pub fn keeps_old(&self, well: bool) -> bool {
        self.replaces.is_some() && !(self.entered && (self.begun || well))
    }

    /// At the end: forget what was replaced if all is well, and put it back if nothing has come in its place.
    pub fn end(&self, out: &Path, well: bool) -> Result<()> {
        let shown = out.display();
        match self.replaces {
            Some(stays) if self.keeps_old(well) => {
                if aside::waits(out) {
                    aside::restore(out, stays)?;
                }
                output::remark(format_args!(
                    "NOTE: nothing has begun in {shown}, which is as it was"
                ));
            }
            _ if !aside::waits(out) => {}
            _ if well => aside::discard(out),
            _ => output::remark(format_args!(
                "NOTE: the results that were in {shown} before are in {shown}/{ASIDE} until a run in their place has ended well"
            )),
        }
        Ok(())
    }

    /// Take note of what is run, for the record.
    pub fn note(&mut self, part: &str) {
        if !self.parts.iter().any(|p| p == part) {
            self.parts.push(part.into());
        }
    }
}

/// Seconds since 1970: now, or those of the record of what goes on.
pub fn since(out: &Path, goes_on: bool) -> Value {
    let before: Option<Value> = store::read_json(&out.join("run.json")).ok();
    let before = before.filter(|_| goes_on);
    let before = before.map(|r| r["started"].clone()).filter(Value::is_u64);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    before.unwrap_or_else(|| json!(now.map_or(0, |d| d.as_secs())))
}
