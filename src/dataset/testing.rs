//! What the tests of the kinds share: folders that clean up after themselves, and shorter calls.

use super::Dataset;
use crate::error::Result;
use crate::options::{Entry, Options, Value};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own below the system's temporary folder, removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty folder.
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ergodic-dataset-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of a file of the folder.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    /// Write a file and give its path.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left behind is no reason to fail a test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Build a data set as a script does; of an option given twice the last value counts.
pub fn build(entry: &Entry<Arc<Dataset>>, given: &[(&str, Value)]) -> Result<Arc<Dataset>> {
    let given = given
        .iter()
        .rev()
        .map(|(n, v)| (n.to_string(), v.clone()))
        .collect();
    (entry.build)(&Options::check(entry.name, entry.options, given)?)
}

/// The message with which building a data set fails.
pub fn message(entry: &Entry<Arc<Dataset>>, given: &[(&str, Value)]) -> String {
    match build(entry, given) {
        Ok(d) => panic!("built {d}"),
        Err(e) => format!("{e:#}"),
    }
}

/// A string value.
pub fn text(t: &str) -> Value {
    Value::Text(t.into())
}

/// `bytes`, gzipped.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    e.write_all(bytes).unwrap();
    e.finish().unwrap()
}
