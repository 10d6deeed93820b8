//! A few tensors in a file that other programs read: `.npy` has one, `.safetensors` any number, by name.

use super::named::DEFLATES;
use super::npy::{self, Numbers};
use super::tensors::{DataRef, Layout, Reader, TensorRef};
use super::{cannot, write_atomic};
use crate::error::{Result, did_you_mean};
use anyhow::{Context, anyhow, bail, ensure};
use safetensors::Dtype;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use zip::ZipArchive;

/// Numbers in the precision they have in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Floats {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision; whole numbers too.
    F64(Vec<f64>),
}

/// A tensor: lengths of its axes, and its numbers, row-major.
pub type Single = (Vec<usize>, Floats);

fn data(floats: &Floats) -> DataRef<'_> {
    match floats {
        Floats::F32(v) => DataRef::F32(v),
        Floats::F64(v) => DataRef::F64(v),
    }
}

/// Which format a path asks for.
fn is_npy(path: &Path) -> Result<bool> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Ok(true),
        Some("safetensors") => Ok(false),
        _ => bail!(
            "'{}' ends neither with .npy nor with .safetensors, the formats of tensors",
            path.display()
        ),
    }
}

/// Write named tensors, atomically; an `.npy` file has one, without its name.
pub fn save(path: &Path, tensors: &[(String, Single)]) -> Result<()> {
    let bytes = if is_npy(path)? {
        let [(_, (shape, numbers))] = tensors else {
            bail!(
                "'{}': an .npy file has one tensor, not {}; use .safetensors",
                path.display(),
                tensors.len()
            );
        };
        npy::encode(shape, data(numbers))
    } else {
        let views: Vec<_> = tensors
            .iter()
            .map(|(name, (shape, numbers))| {
                let (shape, data) = (shape.clone(), data(numbers));
                (name.clone(), TensorRef::new(shape, data))
            })
            .collect();
        let mut file = Vec::new();
        Layout::new(&views, &[])
            .and_then(|layout| Ok(layout.write(&mut file)?))
            .with_context(|| format!("cannot save '{}'", path.display()))?;
        file
    };
    match super::writes_nothing() {
        true => Ok(()),
        false => write_atomic(path, &bytes),
    }
}

/// Read a tensor: of a safetensors file the one of that name, which may be left out if it has one only.
pub fn load(path: &Path, name: Option<&str>) -> Result<Single> {
    let ending = path.extension().and_then(|e| e.to_str());
    if ending == Some("npz") {
        return of_npz(path, name)
            .with_context(|| format!("cannot load from '{}'", path.display()));
    }
    if let Some("pt" | "pth") = ending {
        let found = super::named::read(path, None)?.tensors;
        let names: Vec<_> = found.iter().map(|t| t.0.as_str()).collect();
        let chosen = choose(&names, name);
        let chosen = chosen.with_context(|| format!("cannot load from '{}'", path.display()))?;
        let at = names.iter().position(|n| *n == chosen).unwrap_or(0);
        let (_, shape, numbers) = &found[at];
        return Ok((shape.clone(), Floats::F32(numbers.clone())));
    }
    let npy = is_npy(path)?;
    let file = super::disk::open(path).map_err(|e| cannot("read", path, e))?;
    if npy {
        ensure!(
            name.is_none(),
            "'{}': the tensor of an .npy file has no name",
            path.display()
        );
        let size = file.metadata().map_err(|e| cannot("read", path, e))?.len();
        let found = npy::read(&mut BufReader::new(file), size)
            .map_err(|e| anyhow!("'{}': {e}", path.display()))?;
        let (shape, single) = (found.shape, found.single);
        return Ok((shape, floats(found.data, single)));
    }
    named(file, path, name).with_context(|| format!("cannot load from '{}'", path.display()))
}

/// An array of an archive as numpy.savez writes it.
fn of_npz(path: &Path, name: Option<&str>) -> Result<Single> {
    let file = super::disk::open(path).map_err(|e| cannot("read", path, e))?;
    let zip = ZipArchive::new(BufReader::new(file));
    let mut zip = zip.map_err(|e| anyhow!("it is no zip archive ({e}), or incomplete"))?;
    let names: Vec<_> = zip.file_names().flatten().collect();
    let names = names.iter().filter_map(|n| n.strip_suffix(".npy"));
    let chosen = choose(&names.collect::<Vec<_>>(), name)?.to_string();
    let mut entry = zip
        .by_name(&format!("{chosen}.npy"))
        .map_err(|e| anyhow!("array '{chosen}' cannot be read ({e})"))?;
    let most = entry.compressed_size().saturating_mul(DEFLATES);
    let found = npy::read(&mut entry as &mut dyn Read, most)
        .map_err(|e| anyhow!("array '{chosen}': {e}"))?;
    let (shape, single) = (found.shape, found.single);
    Ok((shape, floats(found.data, single)))
}

fn floats(data: Numbers, single: bool) -> Floats {
    let all = data.into_f64();
    match single {
        true => Floats::F32(all.into_iter().map(|x| x as f32).collect()),
        false => Floats::F64(all),
    }
}

/// The name that is wanted, or the only one.
fn choose<'a>(names: &[&'a str], wanted: Option<&str>) -> Result<&'a str> {
    let wanted = match (wanted, names) {
        (Some(name), _) => name,
        (None, [only]) => only,
        _ => bail!(
            "it has {} tensors ({}); name one",
            names.len(),
            crate::error::listed(names)
        ),
    };
    let found = names.iter().copied().find(|n| *n == wanted);
    found.ok_or_else(|| {
        let hint = did_you_mean(wanted, names.iter().copied());
        anyhow!("it has no tensor '{wanted}'{hint}")
    })
}

fn named(file: File, path: &Path, name: Option<&str>) -> Result<Single> {
    let reader = Reader::new(file, path).context("it is damaged or not a safetensors file")?;
    let names: Vec<_> = reader.names.iter().map(String::as_str).collect();
    let name = choose(&names, name)?;
    let info = reader.info(name)?;
    let numbers = match info.dtype {
        Dtype::F32 => Floats::F32(reader.numbers(name, |_| ())?),
        Dtype::F64 => Floats::F64(reader.numbers(name, |_| ())?),
        Dtype::I64 => {
            let all: Vec<i64> = reader.numbers(name, |_| ())?;
            Floats::F64(all.into_iter().map(|x| x as f64).collect())
        }
        other => bail!(
            "tensor '{name}' is {other}, but only F32, F64 and I64 can be loaded; convert it first (in PyTorch: tensor.float())"
        ),
    };
    Ok((info.shape.clone(), numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_come_back_with_shape_and_precision() {
        let folder = std::env::temp_dir().join(format!("ergodic-single-{}", std::process::id()));
        let all = [
            (
                vec![2, 3],
                Floats::F32((0..6).map(|x| x as f32 / 3.0).collect()),
            ),
            (vec![], Floats::F64(vec![std::f64::consts::PI])),
            (vec![4], Floats::F64(vec![1e-300, -0.0, 2.0, 3.5])),
        ];
        for (i, tensor) in all.iter().enumerate() {
            for end in ["npy", "safetensors"] {
                let path = folder.join(format!("{i}.{end}"));
                save(&path, &[("t".into(), tensor.clone())]).unwrap();
                assert_eq!(load(&path, None).unwrap(), *tensor, "{i} {end}");
            }
            let npy = std::fs::read(folder.join(format!("{i}.npy"))).unwrap();
            let start = 10 + usize::from(npy[8]) + 256 * usize::from(npy[9]);
            assert!(start.is_multiple_of(64) && npy[start - 1] == b'\n');
        }
        let path = folder.join("both.npz");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        for i in [0, all.len() - 1] {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(format!("{i}.npy"), options).unwrap();
            let npy = std::fs::read(folder.join(format!("{i}.npy"))).unwrap();
            std::io::Write::write_all(&mut zip, &npy).unwrap();
        }
        zip.finish().unwrap();
        for i in [0, all.len() - 1] {
            assert_eq!(load(&path, Some(&i.to_string())).unwrap(), all[i], "{i}");
        }
        let path = folder.join("two.safetensors");
        let two: Vec<_> = ["a", "b"].map(|n| (n.to_string(), all[0].clone())).to_vec();
        save(&path, &two).unwrap();
        let said = |r: Result<Single>| format!("{:#}", r.unwrap_err());
        assert!(said(load(&path, None)).contains("2 tensors (a, b)"));
        assert!(said(load(&path, Some("c"))).contains("no tensor 'c'"));
        assert!(said(load(&folder.join("none.npy"), None)).contains("check the name"));
        assert!(said(load(&folder.join("x.txt"), None)).contains("neither"));
        std::fs::write(folder.join("bad.npy"), b"\x93NUMPY\x01\x00\x05\x00abc").unwrap();
        assert!(said(load(&folder.join("bad.npy"), None)).contains("bad.npy"));
        assert!(save(&folder.join("two.npy"), &two).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
