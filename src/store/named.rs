//! Named tensors in any of the formats of weights: PyTorch's .pt and .pth, .safetensors, NumPy's .npz.
//!
//! What a file is, its first bytes say; what it shall be, its ending.

use super::pytorch::{self, Zip};
use super::tensors::DataRef;
use super::weights::{self, Found, save_weights, single};
use super::{cannot, npy, write_atomic};
use crate::error::Result;
use anyhow::{Context, anyhow, bail, ensure};
use npy::Numbers;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, Write};
use std::path::Path;
use zip::write::{SimpleFileOptions, ZipWriter};
use zip::{CompressionMethod, ZipArchive};

/// The tensors of a file in single precision; of several state dicts in it those of one that has this key.
///
/// # Errors
/// If it is none of the formats, or damaged.
pub fn read(path: &Path, key: Option<&str>) -> Result<Found> {
    let mut file = super::disk::open(path).map_err(|e| cannot("read", path, e))?;
    let mut start = Vec::new();
    let begun = (&mut file).take(14).read_to_end(&mut start);
    begun
        .and_then(|_| file.rewind())
        .map_err(|e| cannot("read", path, e))?;
    let read = || match start[..] {
        [b'P', b'K', 3, 4, ..] => archive(file, key),
        // Where a header of safetensors begins; its length may be as a pickle begins.
        [_, _, _, _, _, _, _, _, b'{', ..] => {
            ensure!(key.is_none(), NO_KEYS);
            weights::read(file, path)
        }
        [0x80, _, 0x8a, 0x0a, 0x6c, 0xfc, ..] => bail!(
            "it is in PyTorch's format of before 1.6; load it there and save it again: torch.save(torch.load(path), path)"
        ),
        [0x80, 2..=5, ..] => bail!(
            "it is a bare pickle, not what torch.save writes; save the state dict: torch.save(model.state_dict(), path)"
        ),
        [_, ..] if path.extension().is_some_and(|e| e == "pt" || e == "pth") => bail!(
            "it is none of torch.save's files, which are zip archives; is it whole, and the right file?"
        ),
        _ => weights::read(file, path),
    };
    read().with_context(|| format!("cannot load weights from '{}'", path.display()))
}

/// Only PyTorch's files have several state dicts.
const NO_KEYS: &str = "the option 'key' is for PyTorch's .pt and .pth, and it is neither";

/// The tensors of a zip archive.
fn archive(file: File, key: Option<&str>) -> Result<Found> {
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|e| {
        anyhow!(
            "it begins as a zip archive, but is none ({e}); it is probably incomplete: get it again"
        )
    })?;
    if let Some(pickle) = pytorch::pickle_of(&zip) {
        return pytorch::read(&mut zip, &pickle, key);
    }
    ensure!(key.is_none(), NO_KEYS);
    arrays(&mut zip)
}

/// How many bytes a compressed one may become.
pub(super) const DEFLATES: u64 = 1032;

/// The arrays of an archive as numpy.savez writes it.
fn arrays(zip: &mut Zip) -> Result<Found> {
    let mut found = Found::default();
    for i in 0..zip.len() {
        let mut entry = zip
            .by_index(i)
            .map_err(|e| anyhow!("entry {i} of the archive cannot be read ({e})"))?;
        let name = entry
            .name()
            .map_err(|e| anyhow!("the name of entry {i}: {e}"))?;
        let Some(name) = name.strip_suffix(".npy").map(str::to_string) else {
            bail!(
                "it is a zip archive with '{name}' in it, neither torch.save's nor numpy.savez's"
            );
        };
        let most = entry.compressed_size().saturating_mul(DEFLATES);
        let array = npy::read(&mut entry as &mut dyn Read, most)
            .map_err(|e| anyhow!("array '{name}': {e}"))?;
        match array.data {
            Numbers::Float(x) => {
                let values = single(x).with_context(|| format!("array '{name}'"))?;
                found.tensors.push((name, array.shape, values));
            }
            _ => found.left_out(&name, "whole numbers"),
        }
    }
    Ok(found)
}

/// Writes named tensors, atomically, in the format that the ending names.
///
/// # Errors
/// If it is none that weights can have, or the file cannot be written.
pub fn write(path: &Path, tensors: &[(String, Vec<usize>, &[f32])]) -> Result<()> {
    let bytes = match path.extension().and_then(|e| e.to_str()) {
        Some("safetensors") => return save_weights(path, tensors, &[]),
        Some("npz") => zipped(tensors.iter().map(|(name, shape, values)| {
            let content = npy::encode(shape, DataRef::F32(values));
            (format!("{name}.npy"), content)
        })),
        Some("pt" | "pth") => {
            let described = tensors.iter().map(|(n, s, _)| (n.as_str(), s.as_slice()));
            let about = [
                ("archive/data.pkl", pytorch::pickled(described)),
                ("archive/byteorder", b"little".to_vec()),
            ];
            let about = about.map(|(name, bytes)| (name.to_string(), bytes));
            let storages = tensors.iter().enumerate().map(|(k, (_, _, values))| {
                (format!("archive/data/{k}"), super::bytes::encode(values))
            });
            // The format, not the program.
            let version = ("archive/version".to_string(), b"3\n".to_vec());
            zipped(about.into_iter().chain(storages).chain([version]))
        }
        _ => bail!(
            "'{}' ends with none of .pt, .pth, .safetensors and .npz, the formats of weights",
            path.display()
        ),
    };
    let bytes = bytes.map_err(|e| anyhow!("cannot save weights to '{}' ({e})", path.display()))?;
    match super::writes_nothing() {
        true => Ok(()),
        false => write_atomic(path, &bytes),
    }
}

/// A zip archive of entries as they are, each at a multiple of 64 bytes, so that PyTorch can map it.
fn zipped(entries: impl Iterator<Item = (String, Vec<u8>)>) -> zip::result::ZipResult<Vec<u8>> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .with_alignment(64)
            .large_file(content.len() >= u32::MAX as usize);
        out.start_file(name, options)?;
        out.write_all(&content)?;
    }
    Ok(out.finish()?.into_inner())
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
