//! State dicts as `torch.save` writes them: a zip archive of a pickle, which says how tensors lie in storages, and of these.
//!
//! candle's own functions for such files stop at strides, prefer no order, and believe sizes: only its [pickle machine](super::pickle) is used.

use super::bytes;
use super::npy::take;
use super::pickle::{self, LONGEST};
use super::weights::{Found, single};
use crate::error::{Result, did_you_mean, listed};
use crate::memory;
use anyhow::{Context, anyhow, bail, ensure};
use candle_core::pickle::Object;
use half::{bf16, f16};
use std::cmp::Reverse;
use std::fs::File;
use std::io::{BufReader, Read};
use zip::ZipArchive;

/// An archive that is being read.
pub(super) type Zip = ZipArchive<BufReader<File>>;
/// Names of a dictionary and what they stand for.
type Entries = Vec<(Object, Object)>;

/// Python writes dictionaries in pieces of so many entries, each of which candle turns round.
const PIECE: usize = 1000;
/// How to save what can be loaded.
const ADVICE: &str = "save the state dict: torch.save(model.state_dict(), path)";

/// Whether an archive is PyTorch's: the name of its pickle.
pub(super) fn pickle_of(zip: &Zip) -> Option<String> {
    let names = (0..zip.len()).filter_map(|i| zip.name_for_index(i)?.ok());
    let mut pickles = names.filter(|n| n.ends_with("/data.pkl"));
    pickles.next().map(|name| name.into_owned())
}

/// The tensors of a state dict in their order; of several in the file that of the key.
pub(super) fn read(zip: &mut Zip, pickle: &str, key: Option<&str>) -> Result<Found> {
    let root = pickle.trim_end_matches("data.pkl").to_string();
    if zip.by_name(&format!("{root}constants.pkl")).is_ok() {
        bail!("it is a TorchScript module; {ADVICE}");
    }
    let order = entry(zip, &format!("{root}byteorder"), LONGEST).unwrap_or_default();
    ensure!(
        order != b"big",
        "its numbers are big-endian; save it on another machine"
    );
    let object = entry(zip, pickle, LONGEST)
        .and_then(|bytes| pickle::parse(&bytes).map_err(|e| anyhow!(e)))?;
    let mut found = Found::default();
    let mut last = (String::new(), Vec::new());
    for (name, value) in state_dict(&object, key)? {
        let Object::Unicode(name) = name else {
            continue;
        };
        let stored = match Stored::of(value).with_context(|| format!("tensor '{name}'"))? {
            Some(stored) => stored,
            None => {
                // Numbers and texts are no parameters. What asks to be called is worth a word.
                if let Object::Reduce { callable, .. } = value {
                    found.left_out(name, &class(callable));
                }
                continue;
            }
        };
        if !stored.is_float() {
            found.left_out(name, &stored.kind);
            continue;
        }
        let about = || format!("tensor '{name}'");
        if last.0 != stored.key {
            let numbers = storage(zip, &root, &stored).with_context(about)?;
            last = (stored.key.clone(), numbers);
        }
        let values = stored.gather(&last.1).with_context(about)?;
        found.tensors.push((name.clone(), stored.shape, values));
    }
    Ok(found)
}

/// The content of an entry, of at most so many bytes.
fn entry(zip: &mut Zip, name: &str, most: u64) -> Result<Vec<u8>> {
    let mut file = zip
        .by_name(name)
        .map_err(|e| anyhow!("'{name}' cannot be read from the archive ({e})"))?;
    // A claimed size is believed only as far as compression allows: deflate packs at most 1032 to 1.
    let size = file.size();
    let possible = file.compressed_size().saturating_mul(1032);
    ensure!(
        size <= possible.min(most),
        "'{name}' claims {size} bytes, more than it can have"
    );
    memory::check(size.into(), name)?;
    // To the end and beyond, where its checksum is compared.
    let read = take(&mut file as &mut dyn Read, size + 1).map_err(|e| {
        let other = match e.contains("checksum") {
            true => "; without torch.serialization.set_crc32_options(False), if that wrote it",
            false => "",
        };
        anyhow!("'{name}': {e}{other}")
    })?;
    ensure!(read.len() as u64 == size, "'{name}' is cut off");
    Ok(read)
}

/// All numbers of a storage.
fn storage(zip: &mut Zip, root: &str, stored: &Stored) -> Result<Vec<f32>> {
    let raw = entry(zip, &format!("{root}data/{}", stored.key), u64::MAX)?;
    memory::check_elements::<f32>(&[raw.len()], "its numbers")?;
    Ok(match stored.kind.as_str() {
        "Float" => bytes::decode::<f32>(&raw),
        "Half" => bytes::decode::<f16>(&raw)
            .iter()
            .map(|x| x.to_f32())
            .collect(),
        "BFloat16" => bytes::decode::<bf16>(&raw)
            .iter()
            .map(|x| x.to_f32())
            .collect(),
        _ => single(bytes::decode(&raw))?,
    })
}

/// A tensor as the pickle describes it.
struct Stored {
    /// Type of its numbers: "Float", "Long", …
    kind: String,
    key: String,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl Stored {
    /// What an object describes; none if it is no tensor.
    fn of(object: &Object) -> Result<Option<Self>> {
        let Object::Reduce { callable, args } = object else {
            return Ok(None);
        };
        Self::made(&class(callable), args)
    }

    /// The same of a function of PyTorch's and its arguments.
    fn made(function: &str, args: &Object) -> Result<Option<Self>> {
        let wrong = || anyhow!("the pickle describes it in a way that PyTorch does not");
        let Object::Tuple(args) = args else {
            return Ok(None);
        };
        match (function, &args[..]) {
            ("torch._utils._rebuild_tensor_v2", [storage, offset, shape, strides, ..]) => {
                let made = Self::from_parts(storage, offset, shape, strides);
                made.map(Some).ok_or_else(wrong)
            }
            (
                "torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state",
                [tensor, ..],
            ) => Self::of(tensor),
            ("torch._tensor._rebuild_from_type_v2", [function, _, args, ..]) => {
                Self::made(&class(function), args)
            }
            (function, _) if function.starts_with("torch._utils._rebuild") => bail!(
                "it is not stored as numbers side by side ({function}); convert it first (tensor.to_dense(), tensor.dequantize())"
            ),
            _ => Ok(None),
        }
    }

    fn from_parts(id: &Object, offset: &Object, shape: &Object, strides: &Object) -> Option<Self> {
        let Object::PersistentLoad(id) = id else {
            return None;
        };
        let Object::Tuple(id) = &**id else {
            return None;
        };
        let [
            _,
            Object::Class { class_name, .. },
            Object::Unicode(key),
            ..,
        ] = &id[..]
        else {
            return None;
        };
        let sizes = |o: &Object| match o {
            Object::Tuple(all) => all.iter().map(size).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let (shape, strides) = (sizes(shape)?, sizes(strides)?);
        (shape.len() == strides.len()).then_some(Self {
            kind: class_name.trim_end_matches("Storage").into(),
            key: key.clone(),
            offset: size(offset)?,
            shape,
            strides,
        })
    }

    fn is_float(&self) -> bool {
        ["Float", "Double", "Half", "BFloat16"].contains(&self.kind.as_str())
    }

    /// Its numbers, row-major, of those of its storage.
    fn gather(&self, storage: &[f32]) -> Result<Vec<f32>> {
        let (shape, have) = (&self.shape, storage.len());
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
        if count == Some(0) {
            return Ok(Vec::new());
        }
        let axes = || shape.iter().zip(&self.strides);
        let last = axes().try_fold(self.offset, |at, (d, s)| {
            at.checked_add((d - 1).checked_mul(*s)?)
        });
        let (Some(count), Some(_)) = (count, last.filter(|last| *last < have)) else {
            bail!(
                "its shape {shape:?} with strides {:?} from {} on does not fit into its storage of {have} numbers",
                self.strides,
                self.offset
            );
        };
        memory::check_elements::<f32>(&[count], "its numbers")?;
        let mut index = vec![0; shape.len()];
        let (mut at, mut out) = (self.offset, Vec::with_capacity(count));
        for _ in 0..count {
            out.push(storage[at]);
            for ((i, d), s) in index.iter_mut().zip(shape).zip(&self.strides).rev() {
                *i += 1;
                at += s;
                if *i < *d {
                    break;
                }
                at -= d * s;
                *i = 0;
            }
        }
        Ok(out)
    }
}

fn size(object: &Object) -> Option<usize> {
    match object {
        Object::Int(x) => usize::try_from(*x).ok(),
        Object::Long(x) => usize::try_from(*x).ok(),
        _ => None,
    }
}

/// The name of a class or a function.
fn class(object: &Object) -> String {
    match object {
        Object::Class {
            module_name,
            class_name,
        } => format!("{module_name}.{class_name}"),
        _ => "something else".into(),
    }
}

fn is_tensor(value: &Object) -> bool {
    !matches!(Stored::of(value), Ok(None))
}

/// The entries of the state dict of a file.
fn state_dict<'a>(object: &'a Object, key: Option<&str>) -> Result<Vec<&'a (Object, Object)>> {
    let mut all = Vec::new();
    dictionaries(object, "", 4, &mut all);
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let shown = |name: &&str| match *name {
        "" => "\"\" (the outermost)".to_string(),
        name => format!("\"{name}\""),
    };
    let entries = match (key, &all[..]) {
        (Some(key), _) => {
            let found = all.iter().find(|(name, _)| name == key);
            found.map(|(_, entries)| *entries).ok_or_else(|| {
                let known = did_you_mean(key, names.iter().copied());
                anyhow!("it has no state dict under the key \"{key}\"{known}")
            })?
        }
        (None, [(_, only)]) => *only,
        (None, []) => bail!("{}; {ADVICE}", instead(object)),
        _ => {
            let largest = all.iter().min_by_key(|(_, entries)| Reverse(entries.len()));
            bail!(
                "it has {} state dicts, under the keys {}; choose one: #{{ key: {:?} }}",
                all.len(),
                listed(&names.iter().map(shown).collect::<Vec<_>>()),
                largest.map_or("", |(name, _)| name)
            )
        }
    };
    Ok(ordered(entries).collect())
}

/// The entries of a dictionary in the order in which it was written.
fn ordered(entries: &Entries) -> impl Iterator<Item = &(Object, Object)> {
    entries.chunks(PIECE).flat_map(|piece| piece.iter().rev())
}

/// All dictionaries with tensors in them, with the keys that lead there.
fn dictionaries<'a>(
    object: &'a Object,
    path: &str,
    deeper: usize,
    out: &mut Vec<(String, &'a Entries)>,
) {
    let Object::Dict(entries) = object else {
        return;
    };
    if entries.iter().any(|(_, value)| is_tensor(value)) {
        out.push((path.into(), entries));
    }
    for (name, value) in ordered(entries) {
        if let (Object::Unicode(name), Some(deeper)) = (name, deeper.checked_sub(1)) {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            dictionaries(value, &path, deeper, out);
        }
    }
}

/// What a file has that is no state dict.
fn instead(object: &Object) -> String {
    match object {
        Object::Build { callable, .. } => match &**callable {
            Object::Reduce { callable, .. } => {
                format!(
                    "it is a whole object, {}, whose code is not run",
                    class(callable)
                )
            }
            _ => "it is a whole object, whose code is not run".into(),
        },
        other if is_tensor(other) => "it is a tensor without a name".into(),
        Object::Reduce { callable, .. } => {
            format!(
                "it asks for a call of {}, which is not made",
                class(callable)
            )
        }
        _ => "it has no tensors by name".into(),
    }
}

/// The pickle of tensors of these names and shapes in storages 0, 1, …, of protocol 2.
pub(super) fn pickled<'a>(tensors: impl Iterator<Item = (&'a str, &'a [usize])>) -> Vec<u8> {
    const EMPTY: &[u8] = b"ccollections\nOrderedDict\n)R";
    let mut out = [b"\x80\x02", EMPTY, b"("].concat();
    for (k, (name, shape)) in tensors.enumerate() {
        let numbers = |axes: &[usize]| axes.iter().fold(1, |n: usize, d| n.saturating_mul(*d));
        let count = numbers(shape);
        let strides: Vec<usize> = (1..=shape.len()).map(|i| numbers(&shape[i..])).collect();
        text(&mut out, name);
        out.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        text(&mut out, "storage");
        out.extend(b"ctorch\nFloatStorage\n");
        text(&mut out, &k.to_string());
        text(&mut out, "cpu");
        whole(&mut out, count);
        out.extend(b"tQK\x00");
        for sizes in [shape, &strides] {
            out.push(b'(');
            sizes.iter().for_each(|n| whole(&mut out, *n));
            out.push(b't');
        }
        out.push(0x89);
        out.extend(EMPTY);
        out.extend(b"tR");
    }
    out.extend(b"u.");
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'X');
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn whole(out: &mut Vec<u8>, n: usize) {
    match i32::try_from(n) {
        Ok(n) => {
            out.push(b'J');
            out.extend(n.to_le_bytes());
        }
        Err(_) => {
            out.extend([0x8a, 8]);
            out.extend((n as u64).to_le_bytes());
        }
    }
}
