//! Who owns a folder: one process at a time, for as long as it lives.
//!
//! The owner holds a lock of the operating system on the file `.lock` in the folder. The kernel releases it whatever the process
//! dies of, so that nothing has to be judged by ids of processes, which are given again. The file says who the owner is, for
//! messages, and goes when the owner lets go of the folder; one that a killed process has left means nothing.
//!
//! Reading needs no lock: whatever is found under its final name is whole.

use super::disk::Output;
use super::{cannot, disk, temp_files};
use crate::error::Result;
use crate::{output, platform};
use anyhow::bail;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that is locked.
pub const LOCK: &str = ".lock";

/// The folder within, where results that are about to be replaced wait.
pub const ASIDE: &str = ".replaced";
/// The same while they are moved there.
pub const MOVING: &str = ".replacing";

/// How often to try again where a former owner is just cleaning up.
const TRIES: usize = 100;

/// A folder that this process owns until this is dropped.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    /// None where the file system knows no locks.
    lock: Option<Output>,
    /// The folders that were made for it, outermost first.
    made: Vec<PathBuf>,
}

impl Claim {
    /// Claims a folder, which is made if need be.
    ///
    /// # Errors
    /// If another process owns it, or it cannot be written.
    pub fn of(folder: &Path) -> Result<Self> {
        let missing = |f: &&Path| !f.as_os_str().is_empty() && !f.exists();
        let mut made: Vec<_> = folder.ancestors().take_while(missing).collect();
        made.reverse();
        Self::locked(folder, made.into_iter().map(Path::to_path_buf).collect())
    }

    /// Fails if the folder is no longer the one that was claimed: where its disk is gone, files would be written into the folder on which it was mounted.
    pub(crate) fn ensure_stands(&self) -> Result<()> {
        let path = self.folder.join(LOCK);
        let stands = self
            .lock
            .as_ref()
            .is_none_or(|lock| platform::stands(lock.file(), &path));
        anyhow::ensure!(
            stands,
            "{}: this is no longer the folder in which the run began: it was moved or removed, or its disk is gone; go on with --resume where it is now",
            self.folder.display()
        );
        Ok(())
    }

    /// Makes the first folder of a sequence, from number `first` on, that does not exist yet, and claims it: of two processes that ask at
    /// once each gets its own. Where none can be made its name is returned without a claim, so that what writes nothing can go on.
    pub fn first_free(first: usize, name: impl Fn(usize) -> PathBuf) -> (PathBuf, Option<Self>) {
        let (mut number, mut tries) = (first, 0);
        loop {
            let folder = name(number);
            let above = disk::folder(&folder);
            let mut made = Vec::new();
            if !above.exists() {
                made.push(above.to_path_buf());
            }
            // What decides is that making a folder fails where there is one.
            let make = || {
                disk::make_folders(above)?;
                disk::make_folder(&folder)?;
                disk::sync_folder(above)
            };
            match make() {
                Err(e)
                    if e.kind() == ErrorKind::AlreadyExists
                        && folder.symlink_metadata().is_ok() =>
                {
                    number += 1
                }
                // Its former owner has just removed the empty folder above.
                Err(e) if e.kind() == ErrorKind::NotFound && tries < TRIES => tries += 1,
                Err(_) => return (folder, None),
                Ok(()) => {
                    made.push(folder.clone());
                    match Self::locked(&folder, made) {
                        Ok(claim) => return (folder, Some(claim)),
                        // Somebody has named it in the meantime.
                        Err(_) => number += 1,
                    }
                }
            }
        }
    }

    fn locked(folder: &Path, made: Vec<PathBuf>) -> Result<Self> {
        let path = folder.join(LOCK);
        for attempt in 0..TRIES {
            disk::make_folders(folder).map_err(|e| cannot("create", folder, e))?;
            let file = match Output::open_or_create(&path) {
                Ok(file) => file,
                // The former owner has removed the folder, which was empty.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(cannot("write", &path, e)),
            };
            let mut lock = match file.file().try_lock() {
                Ok(()) if platform::stands(file.file(), &path) => Some(file),
                // The former owner has removed the file before this process had its lock.
                Ok(()) => continue,
                // Somebody may only be asking who owns it.
                Err(TryLockError::WouldBlock) if attempt < 3 => {
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                }
                Err(TryLockError::WouldBlock) => bail!(in_use(folder, file.file())),
                Err(TryLockError::Error(e)) => {
                    output::remark(format_args!(
                        "NOTE: {} cannot be locked ({e}); see to it that no other process writes there",
                        folder.display()
                    ));
                    None
                }
            };
            if let Some(file) = lock.as_mut() {
                // Only for messages: a disk that is full does not matter here.
                let _ = file.end_at(0).and_then(|()| writeln!(file, "{}", owner()));
            }
            let folder = folder.to_path_buf();
            return Ok(Self { folder, lock, made });
        }
        bail!(
            "{}: this folder keeps being removed as soon as it is made",
            folder.display()
        )
    }
}

impl Drop for Claim {
    /// Nothing is left of an owner that has written nothing.
    fn drop(&mut self) {
        let path = self.folder.join(LOCK);
        // If somebody has removed the folder meanwhile, what is there now is another's.
        if self
            .lock
            .as_ref()
            .is_some_and(|l| platform::stands(l.file(), &path))
        {
            let _ = disk::remove(&path);
        }
        // Fails where there is something inside.
        let empty = |folder: &PathBuf| disk::remove_empty(folder).is_ok();
        let _ = self.made.iter().rev().all(empty);
    }
}

/// Whether there is anything in a folder but its lock, what is about to be replaced, and what killed processes had not made yet.
pub fn holds_something(folder: &Path) -> bool {
    let counts = |name: &str| ![LOCK, ASIDE, MOVING].contains(&name) && !temp_files::is_left(name);
    disk::entries(folder).any(|e| counts(&e.file_name().to_string_lossy()))
}

/// "<process id> <machine>".
fn owner() -> String {
    let machine = platform::hostname().unwrap_or_default();
    format!("{} {machine}", std::process::id())
}

/// The id of the process of this machine that owns a folder at this moment; none if nobody does, or one of another machine, or if somebody
/// has written another's id into the lock.
pub fn owner_here(folder: &Path) -> Option<u32> {
    let owner = owner_of(folder)?;
    let process = owner.strip_prefix("process ")?.parse().ok()?;
    let lock = disk::open(&folder.join(LOCK)).ok()?;
    platform::holds_lock(process, &lock).then_some(process)
}

/// Who owns a folder at this moment, as "process 4711 on thales"; none if nobody does. No claim is made.
pub fn owner_of(folder: &Path) -> Option<String> {
    let file = disk::open(&folder.join(LOCK)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        _ => return None,
    }
    let said = said(&file);
    Some(match said.split_once(' ').unwrap_or((&said, "")) {
        ("", _) => "another process".into(),
        (id, machine) if is_here(machine) => format!("process {id}"),
        (id, machine) => format!("process {id} on {machine}"),
    })
}

/// Whether this is the name of this machine, or none was said.
fn is_here(machine: &str) -> bool {
    machine.is_empty() || owner().ends_with(&format!(" {machine}"))
}

/// Bytes that an owner says of itself, at most.
const LONGEST_NAME: u64 = 1024;

/// What the owner of a folder says of itself.
fn said(mut file: &File) -> String {
    let mut said = String::new();
    for _ in 0..20 {
        said.clear();
        let _ = file.rewind();
        let _ = file.take(LONGEST_NAME).read_to_string(&mut said);
        if said.ends_with('\n') {
            break;
        }
        // Its owner has the lock but has not said its name yet.
        std::thread::sleep(Duration::from_millis(5));
    }
    said.trim().to_string()
}

/// What is said of a folder that another process owns.
fn in_use(folder: &Path, file: &File) -> String {
    let said = said(file);
    let who = match said.split_once(' ').unwrap_or((&said, "")) {
        ("", _) => "another process uses".to_string(),
        (id, _) if said == owner().trim() => format!("this process (id {id}) already uses"),
        (id, machine) if is_here(machine) => format!("another process (id {id}) uses"),
        (id, machine) => format!("another process (id {id} on {machine}) uses"),
    };
    format!(
        "{}: {who} this folder; wait until it has ended, or choose another --out",
        folder.display()
    )
}
