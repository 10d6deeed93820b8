//! Tests of the store: each plays a process that was killed, a disk that lies, or a file that was edited.

mod checkpoint;
mod claim;
mod files;
mod journal;
mod zarr;

use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own for a test, deleted at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("ergodic-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The suffix of a process that cannot exist: Linux has no ids this large.
const DEAD: &str = "99999999-1-0";

/// Damages `file` in many ways and calls `check` after each; the file is as before in the end.
fn damage(file: &Path, mut check: impl FnMut(&str)) {
    let whole = fs::read(file).unwrap();
    let step = (whole.len() / 400).max(1);
    for at in (0..whole.len()).step_by(step) {
        fs::write(file, &whole[..at]).unwrap();
        check(&format!("cut at {at}"));
        for mask in [0x01, 0x02, 0x10, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= mask;
            fs::write(file, bytes).unwrap();
            check(&format!("byte {at} flipped by {mask:#x}"));
        }
    }
    fs::write(file, [&whole[..], b"}"].concat()).unwrap();
    check("one byte too long");
    fs::write(file, whole).unwrap();
}
