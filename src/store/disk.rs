//! The one place where files are read and changed, for scripts and the runs they make.
//!
//! What a script may not read or write fails here (`access.rs`). Changes can be watched, one by one: a test makes any of them fail, cuts it
//! short, or looks at what a crash after it leaves.

use super::noted;
use crate::{access, platform};
use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A change of a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Make a folder.
    Folder(&'a Path),
    /// Make a file, or empty the one that is there.
    Create(&'a Path),
    /// Write into a file.
    Write {
        /// The file.
        path: &'a Path,
        /// The place of the first byte in it.
        at: u64,
        /// What is written.
        bytes: &'a [u8],
    },
    /// Cut a file off, or lengthen it with zeros.
    Length {
        /// The file.
        path: &'a Path,
        /// Its new length.
        bytes: u64,
    },
    /// Flush the content of a file, or the names in a folder, to the disk.
    Flush(&'a Path),
    /// Give a file or a folder another name, and take that from whatever had it.
    Rename {
        /// The name until now.
        from: &'a Path,
        /// The name from now on.
        to: &'a Path,
    },
    /// Give a file a second name.
    Link {
        /// The name that it has.
        from: &'a Path,
        /// The name that it gets.
        to: &'a Path,
    },
    /// Remove a file, or a folder with everything in it.
    Remove(&'a Path),
}

/// What is asked before every change.
pub trait Watch: Send + Sync {
    /// An error is what the change fails with; it is then not made.
    fn before(&self, change: Change<'_>) -> io::Result<()>;
}

static WATCH: OnceLock<Box<dyn Watch>> = OnceLock::new();

/// Ask `by` before every change that this process makes from now on.
///
/// # Panics
/// If changes are watched already.
pub fn watch(by: impl Watch + 'static) {
    let set = WATCH.set(Box::new(by));
    assert!(set.is_ok(), "changes of the disk are watched already");
}

fn ask(change: Change<'_>) -> io::Result<()> {
    match change {
        Change::Folder(path) => access::make_folder(path)?,
        Change::Create(path) => access::write(path)?,
        Change::Remove(path) => access::rename(path)?,
        Change::Link { from, to } => {
            access::read(from)?;
            access::rename(to)?;
        }
        Change::Rename { from, to } => {
            access::rename(from)?;
            access::rename(to)?;
            noted::written(to);
        }
        // The file was opened to be written.
        Change::Write { .. } | Change::Length { .. } | Change::Flush(_) => {}
    }
    WATCH.get().map_or(Ok(()), |by| by.before(change))
}

/// The folder that holds a path.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Open a file to read it; what is none (a pipe, a device) is refused, because it may never end, or never begin.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    access::read(path)?;
    // A folder is told by whoever reads it.
    let kind = fs::metadata(path)?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is no regular file but a pipe or a device; write what comes from it into a file",
        ));
    }
    let file = File::open(path)?;
    if kind.is_file() {
        noted::read(path, || File::open(path));
    }
    Ok(file)
}

/// The bytes of a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (mut file, mut out) = (open(path)?, Vec::new());
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    out.try_reserve_exact(length)?;
    file.read_to_end(&mut out)?;
    Ok(out)
}

/// The bytes of a file that somebody else may have made: so many of them at most, whatever it says of its length.
pub(crate) fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut out)?;
    match out.len() as u64 > most {
        true => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has more than {} MiB", most >> 20),
        )),
        false => Ok(out),
    }
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(open(path)?)
}

/// What is in a folder; nothing if it cannot be read.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    list(folder).into_iter().flatten()
}

/// What is in a folder.
pub(crate) fn list(folder: &Path) -> io::Result<impl Iterator<Item = DirEntry> + use<>> {
    access::read(folder)?;
    Ok(fs::read_dir(folder)?.flatten())
}

/// A file that is open to be written.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    path: PathBuf,
    /// Where the next bytes go.
    at: u64,
}

impl Output {
    /// A new file, or an emptied one.
    pub fn create(path: &Path) -> io::Result<Self> {
        ask(Change::Create(path))?;
        Ok(Self::of(File::create(path)?, path))
    }

    /// A file that is there, or an empty one in its place.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        match path.exists() {
            true => access::write(path)?,
            false => ask(Change::Create(path))?,
        }
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        Ok(Self::of(options.open(path)?, path))
    }

    /// A file that is there, and of which it is known that it may be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self::of(file, path))
    }

    /// A file that is there, and to which other hosts write as well. Over NFS each host writes back whole pages, with what the others' parts of them were when it read them,
    /// unless every write goes through to the disk.
    pub fn open_shared(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true);
        if platform::is_on_nfs(path) {
            platform::write_through(&mut options);
        }
        Ok(Self::of(options.open(path)?, path))
    }

    fn of(file: File, path: &Path) -> Self {
        let (path, at) = (path.into(), 0);
        Self { file, path, at }
    }

    /// Bytes from a place on.
    pub fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let path = &self.path;
        ask(Change::Write { path, at, bytes })?;
        platform::write_all_at(&self.file, bytes, at)
    }

    /// Cut it off, or lengthen it with zeros, and go on from its new end.
    pub fn end_at(&mut self, bytes: u64) -> io::Result<()> {
        let path = &self.path;
        ask(Change::Length { path, bytes })?;
        self.file.set_len(bytes)?;
        self.at = bytes;
        Ok(())
    }

    /// Flush it to the disk.
    pub fn flush_to_disk(&self) -> io::Result<()> {
        ask(Change::Flush(&self.path))?;
        self.file.sync_all()
    }

    /// The place of the next byte.
    pub fn place(&self) -> u64 {
        self.at
    }

    /// The file, to read it or to lock it.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Make a folder, and those above it, so that their names are on the disk.
pub(super) fn make_folders(path: &Path) -> io::Result<()> {
    each_missing(path, &|path| {
        make_folder(path)?;
        sync_folder(folder(path))
    })
}

/// Make a folder, and those above it, whose names the caller flushes later.
pub(super) fn make_folders_unflushed(path: &Path) -> io::Result<()> {
    each_missing(path, &make_folder)
}

fn each_missing(path: &Path, make: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    path.parent()
        .map_or(Ok(()), |above| each_missing(above, make))?;
    match make(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => match path.metadata() {
            Ok(there) if there.is_dir() => Ok(()),
            Ok(_) => Err(ErrorKind::NotADirectory.into()),
            // Somebody has just removed it.
            Err(e) => Err(e),
        },
        made => made,
    }
}

/// Make a folder that is not there.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    ask(Change::Folder(path))?;
    fs::create_dir(path)
}

/// Give a file or a folder another name.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    ask(Change::Rename { from, to })?;
    fs::rename(from, to)
}

/// Give a file a second name.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    ask(Change::Link { from, to })?;
    fs::hard_link(from, to)
}

/// Remove a file or a link; a folder with everything in it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let folder = path.symlink_metadata()?.is_dir();
    ask(Change::Remove(path))?;
    match folder {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Remove a folder that has nothing in it.
pub(super) fn remove_empty(path: &Path) -> io::Result<()> {
    access::rename(path)?;
    fs::remove_dir(path)
}

/// Flush a file to the disk.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    ask(Change::Flush(path))?;
    // Windows flushes only files that were opened for writing.
    let mut options = File::options();
    let options = options.read(true).write(cfg!(windows));
    options.open(path)?.sync_all()
}

/// Flush the names in a folder to the disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    ask(Change::Flush(folder))?;
    platform::flush_folder(folder)
}
