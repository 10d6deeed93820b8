//! Safetensors bytes with stable content: the same tensors and metadata always give the same bytes.
//!
//! The library sorts tensors by type and name and keeps the metadata in a hash map, so a file would lose the order of its
//! tensors and differ from run to run. Here the order is kept in the metadata, and the metadata is sorted.

use std::borrow::Cow;
use std::collections::HashMap;

use anyhow::{Context, bail, ensure};
use safetensors::{Dtype, SafeTensors, View};
use serde_json::{Map, Value};

use crate::error::Result;

/// The metadata entry with the names of the tensors in their order, as a JSON list.
const ORDER: &str = "order";
/// The header entry that is not a tensor, hence a name that no tensor may have.
const METADATA: &str = "__metadata__";
/// Bytes of the header's length, at the beginning of the file.
const LENGTH: usize = 8;

/// A tensor to be written: where its numbers lie stays with the caller until its bytes are asked for.
pub(super) struct Source<'a> {
    pub dtype: Dtype,
    pub shape: &'a [usize],
    pub elements: usize,
    pub encode: Box<dyn Fn() -> Vec<u8> + 'a>,
}

impl View for Source<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned((self.encode)())
    }
    fn data_len(&self) -> usize {
        self.elements * self.dtype.bitsize() / 8
    }
}

/// The bytes of a file with these tensors and this metadata.
pub(super) fn serialize(
    tensors: Vec<(&str, Source<'_>)>,
    metadata: &[(String, String)],
) -> Result<Vec<u8>> {
    let names: Vec<&str> = tensors.iter().map(|(name, _)| *name).collect();
    for (i, (name, source)) in tensors.iter().enumerate() {
        ensure!(
            !names[..i].contains(name),
            "two tensors are named '{name}'; names must differ"
        );
        ensure!(
            *name != METADATA,
            "a tensor cannot be named '{METADATA}', which the format reserves"
        );
        let expected = source
            .shape
            .iter()
            .try_fold(1usize, |n, d| n.checked_mul(*d));
        ensure!(
            expected == Some(source.elements),
            "tensor '{name}' has shape {:?} but {} numbers",
            source.shape,
            source.elements
        );
    }
    let mut all: HashMap<String, String> = metadata.iter().cloned().collect();
    ensure!(
        all.insert(ORDER.into(), serde_json::to_string(&names)?)
            .is_none(),
        "the metadata entry '{ORDER}' is reserved for the order of the tensors; choose another name"
    );
    let mut bytes = safetensors::serialize(tensors, Some(all))?;
    edit_metadata(&mut bytes, |_| ())?;
    Ok(bytes)
}

/// Replaces a metadata entry by a value of the same length, in place.
pub(super) fn replace_metadata(bytes: &mut [u8], key: &str, value: &str) -> Result<()> {
    edit_metadata(bytes, |metadata| {
        metadata.insert(key.into(), value.into());
    })
}

/// Edits the metadata and sorts it, within the space that the header has.
fn edit_metadata(bytes: &mut [u8], edit: impl FnOnce(&mut Map<String, Value>)) -> Result<()> {
    let (space, _) = SafeTensors::read_metadata(bytes)?;
    let place = &mut bytes[LENGTH..LENGTH + space];
    let mut header: Map<String, Value> = serde_json::from_slice(place)?;
    let metadata = header
        .get_mut(METADATA)
        .and_then(Value::as_object_mut)
        .context("the header has no metadata")?;
    edit(metadata);
    metadata.sort_keys();
    let text = serde_json::to_vec(&header)?;
    ensure!(text.len() <= space, "the metadata outgrew the header");
    place[..text.len()].copy_from_slice(&text);
    place[text.len()..].fill(b' ');
    Ok(())
}

/// A parsed file: its tensors, its metadata, and the names of the tensors in the order they were given.
pub(super) struct Parsed<'a> {
    pub tensors: SafeTensors<'a>,
    pub metadata: HashMap<String, String>,
    pub names: Vec<String>,
}

/// Parses a file. Files from elsewhere carry no order; theirs is the order of the data.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed<'_>> {
    let tensors = SafeTensors::deserialize(bytes)?;
    let (_, header) = SafeTensors::read_metadata(bytes)?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let names = match metadata.get(ORDER) {
        Some(order) => {
            let names: Vec<String> =
                serde_json::from_str(order).context("the order of the tensors is not a list")?;
            let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut known = tensors.names();
            sorted.sort_unstable();
            known.sort_unstable();
            if sorted != known {
                bail!("the order of the tensors names other tensors than there are");
            }
            names
        }
        None => header.offset_keys(),
    };
    Ok(Parsed {
        tensors,
        metadata,
        names,
    })
}
