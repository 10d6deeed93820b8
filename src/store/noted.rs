//! The files that a script has read, each with what tells two versions of it apart.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Files by name, each as "2734 bytes, crc32 0a1b2c3d".
pub(crate) type Files = BTreeMap<String, String>;

/// Of larger files only three pieces are read, because to read all of them takes long.
const LARGEST: u64 = 1 << 30;
/// Such a piece.
const PIECE: u64 = 1 << 20;

struct Notes {
    /// Which files are noted.
    which: Box<dyn Fn(&Path) -> bool>,
    files: BTreeMap<PathBuf, String>,
    written: BTreeSet<PathBuf>,
}

thread_local! {
    static NOTES: RefCell<Vec<Notes>> = const { RefCell::new(Vec::new()) };
}

/// Call a function, and note the files for which `which` is true that it reads on this thread, as they were when it opened them first. A file that it had written before is left out.
pub(crate) fn during<R>(
    which: impl Fn(&Path) -> bool + 'static,
    f: impl FnOnce() -> R,
) -> (R, Files) {
    let depth = NOTES.with_borrow_mut(|all| {
        all.push(Notes {
            which: Box::new(which),
            files: BTreeMap::new(),
            written: BTreeSet::new(),
        });
        all.len()
    });
    let out = f();
    let notes = NOTES.with_borrow_mut(|all| {
        // One that panicked has left its own.
        all.truncate(depth);
        all.pop()
    });
    let files = notes.into_iter().flat_map(|n| n.files);
    let named = files.map(|(path, version)| (path.display().to_string(), version));
    (out, named.collect())
}

impl Notes {
    fn are_about(&self, path: &Path) -> bool {
        !self.written.contains(path) && !self.files.contains_key(path) && (self.which)(path)
    }
}

/// A file was opened to be read; `again` opens it once more.
pub(super) fn read(path: &Path, again: impl Fn() -> io::Result<File>) {
    NOTES.with_borrow_mut(|all| {
        let mut version = None;
        for notes in all.iter_mut().filter(|n| n.are_about(path)) {
            let version = version.get_or_insert_with(|| version_of(&again));
            notes.files.insert(path.into(), version.clone());
        }
    });
}

/// A file was given its name.
pub(super) fn written(path: &Path) {
    NOTES.with_borrow_mut(|all| {
        for notes in all.iter_mut().filter(|n| n.are_about(path)) {
            notes.written.insert(path.into());
        }
    });
}

fn version_of(open: &impl Fn() -> io::Result<File>) -> String {
    let version = || -> io::Result<String> {
        let mut file = open()?;
        let bytes = file.metadata()?.len();
        let (pieces, whose) = match bytes > LARGEST {
            true => (vec![0, bytes / 2, bytes - PIECE], " of three pieces"),
            false => ((0..bytes).step_by(PIECE as usize).collect(), ""),
        };
        let (mut hash, mut piece) = (crc32fast::Hasher::new(), Vec::new());
        for at in pieces {
            piece.clear();
            file.seek(SeekFrom::Start(at))?;
            (&mut file).take(PIECE).read_to_end(&mut piece)?;
            hash.update(&piece);
        }
        Ok(format!(
            "{bytes} bytes, crc32{whose} {:08x}",
            hash.finalize()
        ))
    };
    // Whoever opened it meets the error, too.
    version().unwrap_or_default()
}
