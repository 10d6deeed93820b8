//! Jobs: what takes long, is saved while it goes on, and can be resumed to the same bits.
//!
//! [`drive`] owns the name, the folder, the progress, the checkpoints, interruptions, resuming and the agreement of several processes; a
//! [`Job`] says what it is, goes on for a while, and names the numbers that it consists of.

use super::console::Task;
use super::progress::Progress;
use super::resume;
use super::session::Session;
use crate::error::{Interrupted, Result};
use crate::ranks::{agree, any};
use crate::store;
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint::{self, Checkpoint, Tensors};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is known of a job beside its numbers.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// What is to be said of its course, as that it went on from an older checkpoint.
    pub notes: Vec<String>,
    /// Seconds of computing, over all sessions.
    pub seconds: f64,
    /// Whether it has come to its end.
    pub done: bool,
    /// The part of it that is done, if that was written.
    pub share: Option<f64>,
    /// What computes it, if that was written.
    pub by: Option<By>,
}

/// What computes a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct By {
    /// The device.
    pub device: String,
    /// The instructions of the processor.
    pub simd: String,
}

impl Record {
    /// What the description in a checkpoint says.
    pub fn of(meta: &Value) -> Self {
        let notes = meta["notes"].as_array().into_iter().flatten();
        Self {
            notes: notes.filter_map(Value::as_str).map(String::from).collect(),
            seconds: meta["seconds"].as_f64().unwrap_or(0.0),
            done: meta["done"].as_bool().unwrap_or(false),
            share: meta["share"].as_f64(),
            by: By::deserialize(&meta["by"]).ok(),
        }
    }
}

impl By {
    fn of(session: &Session) -> Self {
        Self {
            device: session.device.0.clone(),
            simd: format!("{:?}", crate::kernels::level()),
        }
    }
}

/// Where a job stands.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    /// How much of it is done.
    pub done: u64,
    /// Chains that have failed.
    pub failed: usize,
    /// Whether there is more to do.
    pub more: bool,
    /// A number to be watched, with its name.
    pub watched: Option<(String, f64)>,
    /// How much there will be to do in all, if that is more or less than its size; 0 if not.
    pub expected: u64,
    /// How it stands, in words.
    pub said: Option<String>,
}

/// Something that takes long.
pub trait Job: Kept {
    /// What comes out of it.
    type Output;

    /// Its name, and that of its folder.
    fn name(&self) -> &str;

    /// How a message about the folder begins.
    fn whose(&self) -> &'static str {
        "this run was"
    }

    /// What must be the same for it to be resumed.
    fn fingerprint(&self) -> Value {
        Value::Null
    }

    /// What progress counts, and how much there is to do.
    fn size(&self) -> (&'static str, u64);

    /// Where it stands.
    fn standing(&self) -> Standing;

    /// Whether ranks divide it: otherwise each of them does the whole.
    fn is_divided(&self) -> bool {
        false
    }

    /// Where it stands, in words: "at step 5 of 100".
    fn place(&self) -> String;

    /// Begin, where nothing was saved.
    fn begin(&mut self, _folder: &Path, _record: &mut Record, _session: &Session) -> Result<()> {
        Ok(())
    }

    /// Go on until `until`, or an interruption; at least a bit.
    fn advance(&mut self, until: Instant) -> Result<()>;

    /// What stands in a checkpoint beside the numbers and the record; `done` says that it is the last one.
    fn describe(&self, _done: bool) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("what".to_string(), self.fingerprint())]))
    }

    /// Fail unless a checkpoint is one of this job.
    fn check(&self, folder: &Path, meta: &Value) -> Result<()> {
        let (was, is) = (&meta["what"], self.fingerprint());
        anyhow::ensure!(
            *was == is,
            "{}: {} started with other settings{}; continue it with the same ones, or choose another folder",
            folder.display(),
            self.whose(),
            match was.is_null() || was["job"] != is["job"] {
                true => format!(" (it was made by {})", super::run::kind(meta)),
                false => resume::difference(was, &is),
            }
        );
        Ok(())
    }

    /// Take over the numbers of a checkpoint, whose description is `meta`.
    fn restore(&mut self, tensors: Tensors, _meta: &Value, _folder: &Path) -> Result<()>
    where
        Self: Sized,
    {
        Archive::restore(self, tensors)
    }

    /// Write a checkpoint.
    fn save(&mut self, folder: &Path, record: &Record, _session: &Session) -> Result<()>
    where
        Self: Sized,
    {
        let meta = described(self.describe(record.done)?, record);
        let archive = Archive::of(self)?;
        checkpoint::save(&folder.join("checkpoint"), &meta, &archive.tensors())
    }

    /// The result, with what belongs to it written.
    fn finish(self, folder: &Path, record: Record, session: &Session) -> Result<Self::Output>;

    /// Whether `open` shows what there is of it so far.
    fn opens(&self) -> bool {
        false
    }
}

/// A job that has no result on disk but its checkpoint: its script prints what came out.
#[derive(Debug, Clone)]
pub struct Printed {
    /// "calibration", "validation".
    pub kind: String,
    /// What is known of it.
    pub record: Record,
}

impl Printed {
    /// From its folder; none if the folder is that of something else.
    ///
    /// # Errors
    /// If the checkpoint cannot be read.
    pub fn load(folder: &Path) -> Result<Option<Self>> {
        let found = checkpoint::load(&folder.join("checkpoint"))?;
        Ok(found.and_then(|(saved, _)| {
            let kind = saved.meta["what"]["job"].as_str()?.to_string();
            let record = Record::of(&saved.meta);
            Some(Self { kind, record })
        }))
    }
}

/// A description, with the record.
pub fn described(mut meta: Map<String, Value>, record: &Record) -> Value {
    if !record.notes.is_empty() {
        meta.insert("notes".into(), record.notes.clone().into());
    }
    meta.insert("seconds".into(), record.seconds.into());
    meta.insert("done".into(), record.done.into());
    meta.insert("share".into(), record.share.into());
    if let Some(by) = &record.by {
        meta.insert("by".into(), json!(by));
    }
    Value::Object(meta)
}

/// Do a job, or what is left of it.
///
/// # Errors
/// [`Interrupted`] after an interruption, with what there is saved.
pub fn drive<J: Job>(job: J, session: &Session) -> Result<J::Output> {
    let ranks = &*session.ranks;
    let name = job.name().to_string();
    let folder = agree(ranks, session.begin(&name))?;
    let found = match session.resume {
        true => agree(ranks, resume::newest(&folder, session))?,
        false => None,
    };
    let mut drive = Drive {
        job,
        name,
        folder,
        record: Record {
            by: Some(By::of(session)),
            ..Record::default()
        },
        session,
        begin: Instant::now(),
        before: 0.0,
    };
    let goes_on = found.is_some();
    match found {
        Some((saved, older)) => drive.restore(saved, older)?,
        None => drive.start()?,
    }
    // What was finished may go on where more is asked for, as a benchmark of more problems.
    drive.record.done &= !any(ranks, drive.job.standing().more)?;
    if drive.record.done {
        return drive.job.finish(&drive.folder, drive.record, session);
    }
    if goes_on {
        agree(ranks, drive.reopen())?;
    }
    let (unit, total) = drive.job.size();
    let first = drive.job.standing().done as f64;
    let first: f64 = match drive.job.is_divided() {
        true => ranks.all_gather(&[first])?.iter().flatten().sum(),
        false => first,
    };
    let task = Task {
        name: drive.name.clone(),
        unit,
        total,
        first: first as u64,
        goes_on: session.goes_on_later(&drive.folder),
    };
    let progress = Progress::new(session, task);
    drive.go_on(&progress)?;
    drop(progress);
    (drive.record.done, drive.record.share) = (true, Some(1.0));
    drive.save()?;
    drive.job.finish(&drive.folder, drive.record, session)
}

/// A job on its way.
struct Drive<'a, J> {
    job: J,
    name: String,
    folder: PathBuf,
    record: Record,
    session: &'a Session,
    /// When this session took it up.
    begin: Instant,
    /// Seconds of computing in the sessions before.
    before: f64,
}

impl<J: Job> Drive<'_, J> {
    fn restore(&mut self, saved: Checkpoint, older: Option<String>) -> Result<()> {
        let (ranks, Checkpoint { meta, tensors }) = (&*self.session.ranks, saved);
        agree(ranks, self.job.check(&self.folder, &meta))?;
        self.record = Record::of(&meta);
        self.before = self.record.seconds;
        agree(ranks, self.job.restore(tensors, &meta, &self.folder))?;
        let (place, notes) = (self.job.place(), &mut self.record.notes);
        resume::fell_back(&self.name, &place, older, notes, self.session);
        Ok(())
    }

    /// Go on with what was saved: neither the script's record nor its own say any longer that it has ended.
    ///
    /// # Errors
    /// If another device has computed it so far. Other instructions of the processor only round differently.
    fn reopen(&mut self) -> Result<()> {
        let now = By::of(self.session);
        let saved = self.record.by.replace(now.clone()).unwrap_or(now.clone());
        let shown = self.folder.display();
        anyhow::ensure!(
            resume::without_number(&saved.device) == resume::without_number(&now.device),
            "{shown}: {} computed with --device {}, which is now {}; continue it with the same one",
            self.job.whose(),
            saved.device,
            now.device
        );
        if saved.simd != now.simd {
            let note = format!(
                "'{}' was begun with {} instructions and goes on with {}: its last digits are not those of a run without interruption",
                self.name, saved.simd, now.simd
            );
            if self.session.leads() {
                self.session.console.remark(&format!("NOTE: {note}"));
            }
            self.record.notes.push(note);
        }
        self.session.begun()?;
        match self.session.leads() {
            true => store::remove_file(&self.folder.join("run.json")),
            false => Ok(()),
        }
    }

    fn start(&mut self) -> Result<()> {
        let ranks = &*self.session.ranks;
        let begun = self.job.begin(&self.folder, &mut self.record, self.session);
        self.before = self.record.seconds;
        if any(ranks, begun.as_ref().is_err_and(Interrupted::is))? {
            let what = format!("'{}' before its first step", self.name);
            return Err(Interrupted { what }.into());
        }
        agree(ranks, begun)?;
        self.save()?;
        agree(ranks, self.session.begun())
    }

    fn save(&mut self) -> Result<()> {
        let (folder, session) = (&self.folder, self.session);
        self.record.seconds = self.before + self.begin.elapsed().as_secs_f64();
        let saved = session
            .ensure_stands()
            .and_then(|()| self.job.save(folder, &self.record, session));
        // A disk that is full on one rank stops all of them.
        agree(&*session.ranks, resume::saving(saved, folder, session))
    }

    /// Go on to the end of the job, with a checkpoint now and then.
    fn go_on(&mut self, progress: &Progress) -> Result<()> {
        let session = self.session;
        let (mut saved, mut took) = (Instant::now(), 0.0);
        loop {
            let standing = self.job.standing();
            // Where a disk is slow, or there is much to save, nine tenths of the time are for the chains.
            let usual = f64::max(30.0, 9.0 * took);
            let every = session.checkpoint_every.unwrap_or(usual);
            let due = session.leads() && saved.elapsed().as_secs_f64() >= every;
            let flag = |x: bool| f64::from(u8::from(x));
            let all = session.ranks.all_gather(&[
                flag(standing.more),
                flag(session.interrupt.interrupted()),
                flag(due),
                standing.done as f64,
                standing.failed as f64,
            ])?;
            let some = |k: usize| all.iter().any(|n| n[k] > 0.0);
            let ranks = match self.job.is_divided() {
                true => all.len(),
                false => 1,
            };
            let sum = |k: usize| all[..ranks].iter().map(|n| n[k]).sum::<f64>() as u64;
            if let Some((name, value)) = &standing.watched {
                progress.watch(name, *value);
            }
            let total = match standing.expected {
                0 => self.job.size().1,
                more => more,
            };
            progress.expect(total, standing.said.clone());
            progress.set(sum(3), sum(4) as usize);
            self.record.share = Some(sum(3) as f64 / total.max(1) as f64);
            if !some(0) {
                return Ok(());
            }
            let on = session.goes_on(&self.folder, self.job.opens());
            if some(1) {
                self.save()?;
                let what = format!("'{}' {}; {on}", self.name, self.job.place());
                return Err(Interrupted { what }.into());
            }
            if some(2) {
                let begin = Instant::now();
                self.save()?;
                saved = Instant::now();
                took = (saved - begin).as_secs_f64();
            }
            let slice = Duration::from_secs_f64(every.clamp(0.01, 0.25));
            // What did not end when it was interrupted is lost, with what came after the last checkpoint.
            self.job.advance(Instant::now() + slice).map_err(|e| {
                let Some(Interrupted { what }) = e.downcast_ref() else {
                    return e;
                };
                let name = &self.name;
                let what = format!("'{name}': {what}; its last checkpoint is kept: {on}");
                Interrupted { what }.into()
            })?;
        }
    }
}
