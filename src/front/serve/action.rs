//! What can be asked of a run: to stop, and to go on.

use crate::error::Result;
use crate::platform;
use crate::report::record::Record;
use crate::report::runs::{Found, State};
use crate::script::library;
use crate::store::claim;
use anyhow::{Context, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What can be asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Save and end, as by Ctrl-C.
    Stop,
    /// Go on where it was interrupted.
    Continue,
}

impl Action {
    /// What can be asked of this one; nothing of one that has ended, or of another machine's.
    pub fn of(found: &Found) -> Option<Self> {
        match found.state {
            State::Running(_) => claim::owner_here(&found.folder).map(|_| Self::Stop),
            State::Interrupted => {
                let record = found.record.as_ref()?;
                (!record.script.is_empty()).then_some(Self::Continue)
            }
            _ => None,
        }
    }

    /// Its name in addresses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Continue => "continue",
        }
    }

    /// Do it; what was begun, if something was.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn perform(self, found: &Found) -> Result<Option<Begun>> {
        match self {
            Self::Stop => {
                let owner = claim::owner_here(&found.folder).context("nobody is at this run")?;
                ensure!(owner != std::process::id(), "this process is at it itself");
                let kill = Command::new("kill")
                    .args(["-INT", &owner.to_string()])
                    .status();
                let done = kill.context("cannot run 'kill'")?;
                ensure!(done.success(), "process {owner} could not be asked to stop");
                Ok(None)
            }
            Self::Continue => Begun::of(found).map(Some),
        }
    }
}

/// A run that goes on, in a process of its own which stays when this one ends.
pub struct Begun {
    /// Its folder.
    pub folder: PathBuf,
    child: Child,
    said: tempfile::NamedTempFile,
}

/// Fail unless the script that would run is the one that the page shows, and this user began it.
fn may_go_on(found: &Found, record: &Record, own: &File) -> Result<()> {
    let source = library::read_text(Path::new(&record.script));
    let by_hand = || {
        let (command, folder) = (record.command(), found.folder.display());
        format!("go on by hand: {command} --out {folder} --resume")
    };
    ensure!(
        source.with_context(|| record.script.clone())? == record.source,
        "{} is not what it was when this run began; {}",
        record.script,
        by_hand()
    );
    // What the page does not ask about.
    ensure!(
        record.folders.is_empty(),
        "it was begun with folders in which it may read or write; {}",
        by_hand()
    );
    ensure!(
        platform::same_user(&found.folder.join("run.json"), own)?,
        "this run is another user's"
    );
    Ok(())
}

impl Begun {
    fn of(found: &Found) -> Result<Self> {
        let record = found.record.as_ref().context("it has no record")?;
        let said = tempfile::NamedTempFile::new()?;
        may_go_on(found, record, said.as_file())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(record.arguments());
        command
            .arg("--out")
            .arg(&found.folder)
            .args(["--resume", "--quiet"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::from(said.reopen()?));
        // Ctrl-C ends this process, and not the run.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(Self {
            folder: found.folder.clone(),
            child: command.spawn().context("cannot start ergodic run")?,
            said,
        })
    }

    /// What it says, if it has ended with an error.
    pub fn trouble(&mut self) -> Option<String> {
        let ended = self.child.try_wait().ok()??;
        // Interrupted: its folder says so.
        if ended.success() || ended.code() == Some(130) {
            return None;
        }
        let text = std::fs::read_to_string(self.said.path()).unwrap_or_default();
        let first = text.lines().find(|l| !l.trim().is_empty());
        Some(first.unwrap_or("it has ended with an error").to_string())
    }
}
