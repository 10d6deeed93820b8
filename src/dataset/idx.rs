//! `dataset::idx`: images in the IDX format of MNIST and its relatives, and their projection on spins.

use super::resize::bilinear;
use super::{
    Dataset, Inputs, PER_CLASS, SEED, Scale, Split, Targets, VALIDATION, file, project, scale,
};
use crate::access;
use crate::error::{Result, in_file};
use crate::memory;
use crate::options::{Entry, Kind, Options, Range, option, optional};
use anyhow::{Context, bail, ensure};
use file::File;
use std::path::Path;
use std::sync::Arc;

const LIMIT: Kind = Kind::Int(Range::AtLeast(1.0));

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "idx",
    doc: "Images and labels in the IDX format: MNIST, Fashion-MNIST and their relatives.\n\
        `path` is a folder with the four files train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and \
        t10k-labels-idx1-ubyte, also with a dot before \"idx\" and with .gz; or each file is named by its own option. \
        Whether a file is gzipped is detected from its content.\n\
        `project: d` replaces image x by d spins sign(Σ_ij x_ij P_ijk) with one random P ∈ {±1}, where sign(0) = +1 (Zambon \
        et al., pseudo-Langevin, section III, eq. 28, with d = 100 for Fashion-MNIST). Format: yann.lecun.com/exdb/mnist.",
    arguments: &["path"],
    options: &[
        optional(
            "path",
            Kind::Text,
            "every file is named",
            "Folder with the four files.",
        ),
        optional(
            "train_images",
            Kind::Text,
            "in the folder",
            "File of training images.",
        ),
        optional(
            "train_labels",
            Kind::Text,
            "in the folder",
            "File of training labels.",
        ),
        optional(
            "test_images",
            Kind::Text,
            "in the folder, if one is given",
            "File of test images.",
        ),
        optional(
            "test_labels",
            Kind::Text,
            "in the folder, if one is given",
            "File of test labels.",
        ),
        option(
            "scale",
            Kind::Choice(scale::NAMES),
            "unit",
            "Scaling of pixels: \"unit\" divides by 255, to 0 … 1; \"standard\" gives every pixel mean 0 and variance 1 over \
             the training split, and 0 where it is constant; \"none\" keeps 0 … 255.",
        ),
        optional(
            "resize",
            Kind::Int(Range::Between(1.0, 1024.0)),
            "as in the files",
            "Pixels along a side to which images are resized, bilinear; 16 for the 256 inputs of Baldock & Marzari. Not with `project`.",
        ),
        optional(
            "project",
            Kind::Int(Range::Between(1.0, 65536.0)),
            "pixels are the inputs",
            "Number of spins to project an image on; one byte each. The first spins do not depend on how many there are.",
        ),
        optional(
            "train",
            LIMIT,
            "all",
            "Number of training examples, from the start of the file.",
        ),
        optional(
            "test",
            LIMIT,
            "all",
            "Number of test examples, from the start of the file.",
        ),
        PER_CLASS,
        VALIDATION,
        SEED,
    ],
    example: "dataset::idx(\"tests/data/idx\", #{ project: 20 })",
    build,
};

/// Images and labels of one split, as in the files.
struct Examples {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
    labels: Vec<u32>,
}

/// What is done to pixels.
struct Treatment {
    scale: Scale,
    project: Option<usize>,
    resize: Option<usize>,
}

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let (owner, seed) = (options.owner(), options.int("seed")?);
    let treatment = Treatment::of(options)?;
    let mut provenance = Vec::new();
    let Some(train) = examples(options, "train", "train", &mut provenance)? else {
        bail!("{owner} needs a folder 'path' or the files 'train_images' and 'train_labels'");
    };
    let test = examples(options, "test", "t10k", &mut provenance)?;
    let (height, width) = (train.height, train.width);
    if let Some(t) = &test {
        ensure!(
            (t.height, t.width) == (height, width),
            "{owner}: training images have {}×{} pixels, but test images {}×{}",
            height,
            width,
            t.height,
            t.width
        );
    }
    let classes = train
        .labels
        .iter()
        .chain(test.iter().flat_map(|t| &t.labels))
        .max()
        .map_or(0, |&m| m as usize + 1);
    let first = train.labels.first().copied();
    ensure!(
        train.labels.iter().any(|&l| Some(l) != first),
        "{owner}: all {} training labels are the same: with one class there is nothing to learn",
        train.labels.len()
    );
    provenance.push(("images".into(), format!("{height}×{width} pixels")));
    provenance.extend(treatment.provenance(seed));
    let signs = treatment
        .project
        .map(|d| (project::signs(seed, height * width, d), d));
    let convert = |e| treatment.split(owner, e, signs.as_ref());
    let (train, test) = (convert(train)?, test.map(convert).transpose()?);
    let mut d = Dataset::new("idx", classes, train, test, provenance)?
        .with_validation(options.float("validation")?, seed)?;
    d.shape = match (treatment.project, treatment.resize) {
        (Some(spins), _) => vec![spins],
        (None, Some(side)) => vec![side, side],
        (None, None) => vec![height, width],
    };
    if let Some(n) = options.opt_int("per_class") {
        d = d.subset_per_class(n as usize, seed)?;
    }
    Ok(Arc::new(match treatment.scale {
        Scale::Standard => d.scaled(Scale::Standard)?,
        _ => d,
    }))
}

impl Treatment {
    fn of(options: &Options) -> Result<Self> {
        let owner = options.owner();
        let scale: Scale = options.text("scale")?.parse()?;
        let project = options.opt_int("project").map(|d| d as usize);
        ensure!(
            project.is_none() || scale != Scale::Standard,
            "{owner}: project takes the sign of sums of the pixels as they are; leave out scale: \"standard\""
        );
        let resize = options.opt_int("resize").map(|side| side as usize);
        ensure!(
            resize.is_none() || project.is_none(),
            "{owner}: project takes the pixels as they are; leave out resize"
        );
        Ok(Self {
            scale,
            project,
            resize,
        })
    }

    fn provenance(&self, seed: u64) -> Vec<(String, String)> {
        let resize = self.resize.map(|side| {
            (
                "resize".into(),
                format!("to {side}×{side} pixels, bilinear"),
            )
        });
        let values = match self.project {
            Some(d) => Some((
                "project".into(),
                format!("on {d} spins, Zambon et al. eq. 28, seed {seed}"),
            )),
            None if self.scale == Scale::Unit => {
                Some(("scale".into(), "unit, pixels divided by 255".into()))
            }
            None => None,
        };
        resize.into_iter().chain(values).collect()
    }

    /// Examples as inputs and targets; `signs` are those of the projection on so many spins.
    fn split(&self, owner: &str, e: Examples, signs: Option<&(Vec<i16>, usize)>) -> Result<Split> {
        let targets = Targets::Classes(e.labels);
        if let Some((p, d)) = signs {
            return Split::new(*d, Inputs::I8(project::rows(&e.pixels, p, *d)), targets);
        }
        let unit = match self.scale {
            Scale::Unit => 1.0 / 255.0,
            _ => 1.0,
        };
        let dim = e.height * e.width;
        let Some(side) = self.resize else {
            return Split::new(dim, Inputs::U8(e.pixels, unit), targets);
        };
        memory::check_elements::<f32>(
            &[e.pixels.len()],
            &format!("{owner}: {} pixels", e.pixels.len()),
        )?;
        let pixels: Vec<_> = e.pixels.iter().map(|&p| (p as f64 * unit) as f32).collect();
        let images = pixels.chunks_exact(dim);
        let new = images.flat_map(|i| bilinear(i, (e.height, e.width), side));
        Split::new(side * side, Inputs::F32(new.collect()), targets)
    }
}

/// The examples of a split, if there are files of it.
fn examples(
    options: &Options,
    which: &str,
    stem: &str,
    provenance: &mut Vec<(String, String)>,
) -> Result<Option<Examples>> {
    let owner = options.owner();
    let path = |what: &str, kind: &str| -> Result<Option<String>> {
        let option = format!("{which}_{what}");
        match (options.opt_text(&option), options.opt_text("path")) {
            (Some(p), _) => Ok(Some(p.into())),
            (None, Some(folder)) => {
                find(folder, &format!("{stem}-{what}"), kind, &option).map(Some)
            }
            (None, None) => Ok(None),
        }
    };
    match (path("images", "idx3")?, path("labels", "idx1")?) {
        (Some(i), Some(l)) => {
            let (i, l) = (File::open(&i)?, File::open(&l)?);
            provenance.extend([i.provenance(), l.provenance()]);
            read_pair(&i, &l, options.opt_int(which)).map(Some)
        }
        (None, None) => Ok(None),
        (i, _) => bail!(
            "{owner}: '{which}_{}' is given without '{which}_{}'; both are needed",
            if i.is_some() { "images" } else { "labels" },
            if i.is_some() { "labels" } else { "images" }
        ),
    }
}

/// The file of a folder, under any of its usual names.
fn find(folder: &str, stem: &str, kind: &str, option: &str) -> Result<String> {
    let p = Path::new(folder);
    access::read(p).with_context(|| format!("cannot read '{folder}'"))?;
    ensure!(
        p.exists(),
        "cannot read '{folder}': there is no such folder"
    );
    ensure!(
        p.is_dir(),
        "'{folder}' is a file, but `path` names the folder of the four IDX files; name files by 'train_images' and so on"
    );
    let names =
        [".gz", ""].map(|end| ["-", "."].map(|dot| format!("{stem}{dot}{kind}-ubyte{end}")));
    for name in names.as_flattened().iter().rev() {
        let file = p.join(name);
        if file.is_file() {
            return Ok(file.to_string_lossy().into_owned());
        }
    }
    bail!(
        "the folder '{folder}' has no file '{stem}-{kind}-ubyte', nor with a dot before \"{kind}\" or with .gz; name it by the \
         option '{option}' if it has another name"
    )
}

fn read_pair(images: &File, labels: &File, limit: Option<u64>) -> Result<Examples> {
    let (sizes, mut pixels) = in_file(&images.path, read::<3>(images))?;
    let (count, raw) = in_file(&labels.path, read::<1>(labels))?;
    let [rows, height, width] = sizes;
    file::check_counts((&images.path, rows), (&labels.path, count[0]))?;
    let keep = limit.map_or(rows, |l| rows.min(l as usize));
    pixels.truncate(keep * height * width);
    let labels = raw[..keep].iter().map(|&l| l as u32).collect();
    Ok(Examples {
        height,
        width,
        pixels,
        labels,
    })
}

/// Sizes and content of a file of unsigned bytes with `D` dimensions.
fn read<const D: usize>(f: &File) -> Result<([usize; D], Vec<u8>)> {
    let path = &f.path;
    let what = |d: usize| {
        if d == 3 {
            "an image file"
        } else {
            "a label file"
        }
    };
    let mut r = f.reader();
    let head = f.read_up_to(&mut *r, 4 + 4 * D as u64)?;
    if let Some(magic) = head.first_chunk::<4>() {
        let found = u32::from_be_bytes(*magic);
        let expected = 0x0800 + D as u32;
        let hint = match found {
            0x0801 | 0x0803 => format!(
                "; it is {}: are the two swapped?",
                what(found as usize & 15)
            ),
            _ => String::new(),
        };
        ensure!(
            found == expected,
            "'{path}' is not {} in the IDX format: it begins with {found} (0x{found:08x}) instead of {expected}{hint}",
            what(D)
        );
    }
    ensure!(
        head.len() == 4 + 4 * D,
        "'{path}' is truncated: {} bytes are less than the header of {} in the IDX format ({} bytes)",
        head.len(),
        what(D),
        4 + 4 * D
    );
    let mut sizes = [0usize; D];
    for (s, b) in sizes.iter_mut().zip(head[4..].chunks_exact(4)) {
        *s = b.iter().fold(0, |n, &b| n << 8 | b as usize);
    }
    let shape = sizes.map(|s| s.to_string()).join("×");
    ensure!(
        !sizes.contains(&0),
        "'{path}' is empty: its header says {shape}"
    );
    let expected = sizes.iter().try_fold(1u64, |n, &s| n.checked_mul(s as u64));
    // One byte more than promised is enough to see that there is too much.
    let limit = expected.and_then(|n| n.checked_add(1));
    let Some((expected, limit)) = expected.zip(limit) else {
        bail!("'{path}' is damaged: its header says {shape} bytes, more than any file holds");
    };
    memory::check(
        expected.into(),
        &format!("'{path}', whose header says {shape}"),
    )?;
    let data = f.read_up_to(&mut *r, limit)?;
    let n = data.len() as u64;
    ensure!(
        n >= expected,
        "'{path}' is truncated: its header says {shape} = {expected} bytes, but {n} follow; get it again"
    );
    ensure!(
        n == expected,
        "'{path}' is damaged: more bytes follow than the {shape} = {expected} its header says"
    );
    Ok((sizes, data))
}

#[cfg(test)]
#[path = "idx_tests.rs"]
mod tests;
