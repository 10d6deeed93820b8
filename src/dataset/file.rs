//! Reading files: opening with a message that helps, gzip by content, and the checks that labels of all files share.

use super::Split;
use crate::access;
use crate::error::{Result, in_file, nearest};
use crate::memory::{self, Growing};
use crate::store::disk;
use anyhow::{Context, anyhow, bail, ensure};
use flate2::bufread::MultiGzDecoder;
use std::borrow::Cow;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Bytes that are decompressed between two looks at the memory.
const PIECE: u64 = 1 << 20;

/// A file held in memory as it lies on disk; sizes that a header claims are checked against what is really there.
pub(super) struct File {
    /// The path as the script gave it.
    pub path: String,
    /// The content, still compressed if it is.
    pub bytes: Vec<u8>,
}

impl File {
    /// Read a file whole.
    pub fn open(path: &str) -> Result<File> {
        in_file(path, Self::read(path))
    }

    fn read(path: &str) -> Result<File> {
        let p = Path::new(path);
        access::read(p).with_context(|| format!("cannot read '{path}'"))?;
        if p.is_dir() {
            bail!("cannot read '{path}': it is a folder, but a file is expected");
        }
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = disk::open(p)?;
            let size = file.metadata()?.len();
            memory::check(size.into(), "the file").map_err(std::io::Error::other)?;
            let mut out = Vec::with_capacity(size as usize);
            file.read_to_end(&mut out)?;
            Ok(out)
        };
        match read() {
            Ok(bytes) if bytes.is_empty() => bail!("'{path}' is empty (0 bytes)"),
            Ok(bytes) => Ok(File {
                path: path.into(),
                bytes,
            }),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                bail!("cannot read '{path}': there is no such file{}", hint(p))
            }
            Err(e) => bail!("cannot read '{path}': {e}"),
        }
    }

    /// The whole content, decompressed, if there is memory for it.
    pub fn content(&self) -> Result<Cow<'_, [u8]>> {
        if self.is_gzip() {
            Ok(Cow::Owned(self.read_up_to(&mut *self.reader(), u64::MAX)?))
        } else {
            Ok(Cow::Borrowed(&self.bytes))
        }
    }

    /// Whether the content is compressed; names do not matter.
    fn is_gzip(&self) -> bool {
        self.bytes.starts_with(&[0x1f, 0x8b])
    }

    /// The content, decompressed as it is read.
    pub fn reader(&self) -> Box<dyn Read + '_> {
        if self.is_gzip() {
            Box::new(MultiGzDecoder::new(&self.bytes[..]))
        } else {
            Box::new(&self.bytes[..])
        }
    }

    /// Up to `limit` decoded bytes of `reader`; memory grows with what is read, not with what a header promises.
    pub fn read_up_to(&self, reader: &mut dyn Read, limit: u64) -> Result<Vec<u8>> {
        let what = format!("'{}', decompressed,", self.path);
        let (mut out, mut growing) = (Vec::new(), Growing::new(&what));
        let mut rest = reader.take(limit);
        loop {
            // Piece by piece, because a small file may hold more than all memory.
            let read = (&mut rest).take(PIECE).read_to_end(&mut out);
            if read.map_err(|e| self.damaged(&e))? == 0 {
                break;
            }
            growing.reached(out.len())?;
        }
        Ok(out)
    }

    /// The error for compressed content that cannot be decoded.
    fn damaged(&self, e: &dyn std::fmt::Display) -> anyhow::Error {
        anyhow!(
            "'{}' is damaged: its compressed data cannot be decoded ({e}); the file is probably incomplete, \
             get it again",
            self.path
        )
    }

    /// A line of provenance that tells two versions of a file apart.
    pub fn provenance(&self) -> (String, String) {
        let mut crc = flate2::Crc::new();
        crc.update(&self.bytes);
        let text = format!(
            "{} ({} bytes, crc32 {:08x})",
            self.path,
            self.bytes.len(),
            crc.sum()
        );
        ("file".into(), text)
    }
}

/// What to say after "there is no such file": a similar name, or where the search began.
fn hint(path: &Path) -> String {
    let parent = disk::folder(path);
    let Ok(folder) = disk::list(parent) else {
        let here = std::env::current_dir().unwrap_or_default();
        let from = if path.is_relative() {
            format!(" (relative paths start from {})", here.display())
        } else {
            String::new()
        };
        return format!("; nor is there a folder '{}'{from}", parent.display());
    };
    let names: Vec<String> = folder
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(n) => format!("; did you mean '{}'?", parent.join(n).display()),
        None => format!(" in the folder '{}'", parent.display()),
    }
}

/// A number of a file as a class label, or what is wrong with it.
pub(super) fn label(x: f64) -> std::result::Result<u32, String> {
    if x.fract() == 0.0 && (0.0..u16::MAX as f64).contains(&x) {
        Ok(x as u32)
    } else {
        Err(format!(
            "is {x}, but a class label is a whole number 0, 1, 2, … below {}",
            u16::MAX
        ))
    }
}

/// The number of classes of training labels, after checking that there are at least two and that none is missing.
///
/// `what` is what messages call the labels.
pub(super) fn count_classes(what: &str, labels: &[u32]) -> Result<usize> {
    let classes = labels.iter().max().map_or(0, |&m| m as usize + 1);
    let mut seen = vec![false; classes];
    labels.iter().for_each(|&l| seen[l as usize] = true);
    if seen.iter().filter(|&&s| s).count() == 1 {
        bail!(
            "{what} are all {}: with one class there is nothing to learn",
            classes - 1
        );
    }
    if let Some(missing) = seen.iter().position(|&s| !s) {
        bail!(
            "{what} run up to {}, but no row has the label {missing}; number the classes 0, 1, 2, … without gaps",
            classes - 1
        );
    }
    Ok(classes)
}

/// Fail if a test label is not one of the `classes` training labels.
pub(super) fn check_test_labels(what: &str, test: &Split, classes: usize) -> Result<()> {
    let Some(labels) = test.row_labels() else {
        return Ok(());
    };
    if let Some(row) = labels.iter().position(|&l| l as usize >= classes) {
        bail!(
            "{what}: the label of row {row} is {}, but the training labels only run from 0 to {}",
            labels[row],
            classes - 1
        );
    }
    Ok(())
}

/// Fail unless there are as many labels as inputs.
pub(super) fn check_counts(inputs: (&str, usize), labels: (&str, usize)) -> Result<()> {
    ensure!(
        inputs.1 == labels.1,
        "{} has {} examples, but {} has {} targets; the two must belong together",
        inputs.0,
        inputs.1,
        labels.0,
        labels.1
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Folder, gzip};
    use super::*;

    fn error(path: &str) -> String {
        File::open(path).err().unwrap().to_string()
    }

    #[test]
    fn gzip_is_recognised_by_content_and_not_by_name() {
        let folder = Folder::new();
        for (name, bytes) in [("a", gzip(b"hello")), ("b.gz", b"hello".to_vec())] {
            let f = File::open(&folder.write(name, bytes)).unwrap();
            let mut r = f.reader();
            assert_eq!(f.read_up_to(&mut *r, 99).unwrap(), b"hello");
            assert!(f.provenance().1.contains("crc32"));
        }
    }

    #[test]
    fn files_that_cannot_be_opened_are_named_with_the_reason() {
        let folder = Folder::new();
        folder.write("numbers.csv", "1");
        assert!(error(&folder.path("number.csv")).contains("did you mean '"));
        assert!(
            error(&folder.path("zzzzzzzzzzzzzzzzzzzzzzzzzzzz"))
                .contains("no such file in the folder")
        );
        assert!(error("no-such-folder/x.csv").contains("relative paths start from"));
        assert!(error(&folder.path("")).contains("is a folder, but a file is expected"));
        assert!(error(&folder.write("empty", "")).contains("is empty (0 bytes)"));
        assert!(error("a\0b").contains("cannot read"));
        assert!(error("/dev/zero").contains("no regular file"));
    }

    #[test]
    fn damaged_gzip_is_said_to_be_damaged() {
        let folder = Folder::new();
        let whole = gzip(&[7; 1000]);
        let mut flipped = whole.clone();
        flipped[14] ^= 0x55;
        for bad in [
            whole[..whole.len() - 6].to_vec(),
            flipped,
            b"\x1f\x8bnot gzip".to_vec(),
        ] {
            let f = File::open(&folder.write("x.gz", bad)).unwrap();
            let mut r = f.reader();
            let e = f.read_up_to(&mut *r, 9999).unwrap_err().to_string();
            assert!(
                e.contains("is damaged") && e.contains("get it again"),
                "{e}"
            );
        }
    }

    #[test]
    fn labels_are_whole_numbers_without_gaps() {
        assert_eq!(label(3.0), Ok(3));
        for x in [-1.0, 1.5, f64::NAN, f64::INFINITY, 65535.0] {
            assert!(label(x).is_err(), "{x}");
        }
        assert_eq!(count_classes("labels", &[0, 2, 1]).unwrap(), 3);
        assert!(
            count_classes("labels", &[4, 4])
                .unwrap_err()
                .to_string()
                .contains("all 4")
        );
        let e = count_classes("labels", &[0, 2]).unwrap_err().to_string();
        assert!(e.contains("no row has the label 1"), "{e}");
    }
}
