//! Sessions in which a run goes on under its name: as a cell of a transcript made it, or from its folder alone.

use super::Session;
use crate::access;
use crate::error::Result;
use crate::simulation::run::within;
use crate::simulation::transcript::{self, Cell, Transcript};
use crate::store::checkpoint;
use crate::verb::Needed;
use anyhow::Context;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

impl Session {
    /// What was executed in this session.
    pub fn transcript(&self) -> MutexGuard<'_, Transcript> {
        self.transcript.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A cell that begins now.
    pub fn cell(&self, file: &str, source: &str) -> Cell {
        let device = Some(self.device.0.clone());
        Cell {
            seed: self.seed,
            quick: self.quick,
            device: device.filter(|d| d != "cpu").unwrap_or_default(),
            ..Cell::new(file, source)
        }
    }

    /// The names that the next runs get.
    pub fn plan(&self, names: impl IntoIterator<Item = String>) {
        self.planned().extend(names);
    }

    /// The names of runs that were planned and have not begun.
    pub fn take_planned(&self) -> Vec<String> {
        self.planned().drain(..).collect()
    }

    /// The folder in which the executed cells are recorded.
    pub fn home(&self) -> PathBuf {
        let home = self.transcript().home();
        home.unwrap_or_else(|| self.out.clone())
    }

    /// The same session, which records the cells that are executed in it.
    pub fn recording(mut self) -> Self {
        self.transcript = Arc::new(Mutex::new(Transcript::of(self.out.clone())));
        self
    }

    /// The same session as it was for a cell: its runs get the names that they had then, and go on where the cell continued those of
    /// another session.
    ///
    /// # Errors
    /// If there is no such device, or nothing is known of that other session.
    pub fn replaying(&self, cell: &Cell) -> Result<Self> {
        let mut session = self.clone();
        if let Some(other) = &cell.within {
            session = session.elsewhere(other.clone());
            let cells = transcript::read(other)?;
            let own = cells.iter().filter(|c| c.within.is_none());
            session.take_names(own.flat_map(|c| &c.runs));
        }
        session.planned = Arc::new(Mutex::new(cell.runs.iter().cloned().collect()));
        (session.seed, session.quick) = (cell.seed, cell.quick);
        match cell.device.as_str() {
            "" => session.choose_device("cpu")?,
            device => session.choose_device(device)?,
        }
        Ok(session)
    }

    /// The same session, to continue what is in this folder.
    fn elsewhere(&self, out: PathBuf) -> Self {
        let mut session = self.clone().moved(out, None);
        session.beginning = Arc::default();
        session.names = Arc::default();
        session.scope = Arc::default();
        session.resume = true;
        session
    }
}

/// The folder above that of a run, as it was written and in full, and the name of the run.
///
/// # Errors
/// If there is no such folder.
pub fn placed(run: &Path) -> Result<(PathBuf, PathBuf, String)> {
    let shown = run.display();
    access::read(run).with_context(|| shown.to_string())?;
    let whole = run.canonicalize();
    let whole = whole.map_err(|_| anyhow::anyhow!("{shown}: there is no such folder"))?;
    let (Some(above), Some(name)) = (whole.parent(), whole.file_name()) else {
        anyhow::bail!("{shown}: this is not the folder of a run");
    };
    let written = run
        .parent()
        .filter(|p| run.ends_with(name) && !p.as_os_str().is_empty());
    let name = name.to_string_lossy().into_owned();
    Ok((written.unwrap_or(above).into(), above.into(), name))
}

impl Needed for () {
    fn current() -> Self {}

    fn continuing(&self, _: &Path) -> Result<Self> {
        Ok(())
    }
}

impl Needed for Session {
    fn current() -> Self {
        Self::current()
    }

    /// A session in the folder above, in which the next run has the name of this one.
    fn continuing(&self, run: &Path) -> Result<Self> {
        let shown = run.display();
        anyhow::ensure!(
            self.shard.is_none() && self.merge.is_none(),
            "shards are continued with --resume"
        );
        let (home, above, name) = placed(run)?;
        anyhow::ensure!(
            checkpoint::is_there(&run.join("checkpoint")),
            "{shown}: no checkpoint was saved in this folder{}; without this option a new run begins",
            within(run)
        );
        let mut session = match self.out.canonicalize() {
            Ok(own) if own == above => {
                self.take_names([&name]);
                let mut same = self.clone();
                same.names = Arc::default();
                same
            }
            _ => self.elsewhere(home),
        };
        session.resume = true;
        session.transcript = Arc::default();
        session.planned = Arc::new(Mutex::new(VecDeque::from([name])));
        Ok(session)
    }
}
