//! Variants of training examples: shifted, mirrored, with noise. They are a function of the seed, the example and the number of the variant,
//! so that they are the same in every epoch, after a resume and on any number of threads.
//!
//! The k variants of n examples are k·n rows, and the mean loss is over all of them, while the likelihood counts n. So the law that is
//! sampled is a fixed one, U = n·⟨loss⟩ + R, that of examples whose log-likelihood is the mean over their variants. It is not the posterior
//! of the n examples.

use super::{Dataset, Inputs, Split, Targets, Use, stream};
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use anyhow::ensure;
use std::sync::Arc;

/// Bytes up to which variants are kept in memory; more are made when they are read.
const STORED: usize = 1 << 28;

/// What is done to an example; nothing to its first variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Augment {
    /// Variants of an example, itself included.
    pub copies: usize,
    /// Pixels by which an image is shifted at most, down or up and right or left; 0 is what comes in.
    pub shift: usize,
    /// Whether an image is mirrored, left to right, in one of two variants.
    pub flip: bool,
    /// Standard deviation of the normal noise on each component.
    pub noise: f64,
    /// Seed.
    pub seed: u64,
}

/// The variants of the rows of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct Variants {
    base: Split,
    law: Augment,
    /// Height and width of an image; channels are before them.
    image: (usize, usize),
}

impl Variants {
    /// Copy the inputs of these rows: row r is variant r / n of example r mod n.
    pub(super) fn read(&self, rows: impl Iterator<Item = u32>, out: &mut [f32]) {
        let n = self.base.rows as u32;
        for (row, x) in rows.zip(out.chunks_exact_mut(self.base.dim)) {
            self.base.gather(&[row % n], x);
            if row >= n {
                self.vary(row, x);
            }
        }
    }

    fn vary(&self, row: u32, x: &mut [f32]) {
        let Augment {
            shift, flip, noise, ..
        } = self.law;
        let stream = stream(self.law.seed, Use::Variant, u64::from(row));
        let (height, width) = self.image;
        let by = |element| {
            let all = (2 * shift + 1) as f64;
            (stream.uniform(element) * all).floor().min(all - 1.0) as isize - shift as isize
        };
        let (down, right) = (by(0), by(1));
        if flip && stream.uniform(2) < 0.5 {
            x.chunks_exact_mut(width).for_each(<[f32]>::reverse);
        }
        if (down, right) != (0, 0) {
            for image in x.chunks_exact_mut(height * width) {
                let old = image.to_vec();
                for (k, new) in image.iter_mut().enumerate() {
                    let i = (k / width)
                        .checked_add_signed(-down)
                        .filter(|i| *i < height);
                    let j = (k % width)
                        .checked_add_signed(-right)
                        .filter(|j| *j < width);
                    *new = i.zip(j).map_or(0.0, |(i, j)| old[i * width + j]);
                }
            }
        }
        if noise > 0.0 {
            let mut z = vec![0f32; x.len()];
            fill_normal(&stream.sub_stream(1), &mut z);
            for (x, z) in x.iter_mut().zip(z) {
                *x += noise as f32 * z;
            }
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.base.rows * self.law.copies
    }

    /// Enter them into a checksum.
    pub(super) fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.base.fingerprint(hash);
        hash.update(format!("{:?}", self.law).as_bytes());
    }

    /// Memory that the examples take.
    pub(super) fn bytes(&self) -> usize {
        self.base.bytes()
    }
}

impl Dataset {
    /// The data set with so many variants of each training example; the other splits stay as they are.
    ///
    /// # Errors
    /// If inputs that are shifted or mirrored are no images, or there are variants already.
    pub fn augmented(&self, law: &Augment) -> Result<Dataset> {
        self.ensure_examples("augment")?;
        self.ensure_unweighted("augment")?;
        ensure!(
            !matches!(self.train.inputs, Inputs::Tokens(_)),
            "augment: the inputs of '{}' are tokens, not numbers",
            self.name
        );
        ensure!(
            law.copies >= 2,
            "augment: one copy is the example itself; ask for 2 or more"
        );
        let image = match self.shape[..] {
            [.., height, width] => (height, width),
            _ => (1, self.dim),
        };
        ensure!(
            self.shape.len() > 1 || (law.shift == 0 && !law.flip),
            "augment: inputs of '{}' have the shape {:?}; only images, [height, width] or [channels, height, width], are shifted or mirrored",
            self.name,
            self.shape
        );
        ensure!(
            law.shift < image.0.max(2) && law.shift < image.1,
            "augment: a shift by {} pixels leaves nothing of images of {}×{}",
            law.shift,
            image.0,
            image.1
        );
        ensure!(
            law.shift > 0 || law.flip || law.noise > 0.0,
            "augment: nothing is changed; give 'shift', 'flip' or 'noise'"
        );
        let n = self.train.rows;
        let targets = repeated(&self.train, law.copies);
        let base = Split {
            targets: Targets::Classes(vec![0; n]),
            doubles: None,
            ..Split::clone(&self.train)
        };
        let variants = Variants {
            base,
            law: law.clone(),
            image,
        };
        let split = Split::new(self.dim, Inputs::Varied(Arc::new(variants)), targets)?;
        let mut d = self.clone();
        d.train = Arc::new(split.in_memory(STORED));
        d.copies = law.copies;
        let what = [
            (law.shift > 0).then(|| format!("shifted by up to {} pixels", law.shift)),
            law.flip.then(|| "mirrored".to_string()),
            (law.noise > 0.0).then(|| format!("noise of sd {}", law.noise)),
        ];
        let what: Vec<_> = what.into_iter().flatten().collect();
        Ok(d.note(
            "augment",
            format!(
                "{} variants of each of {n} training examples ({}), seed {}; the loss is their mean, and the likelihood counts {n} \
                 examples: not the posterior of the examples alone",
                law.copies,
                what.join(", "),
                law.seed
            ),
        ))
    }
}

/// The targets of a split, so often one after the other.
fn repeated(s: &Split, times: usize) -> Targets {
    match &s.targets {
        Targets::Classes(l) => Targets::Classes(l.repeat(times)),
        Targets::Sequence { positions, labels } => Targets::Sequence {
            positions: *positions,
            labels: labels.repeat(times),
        },
        Targets::Values { width, data } => Targets::Values {
            width: *width,
            data: data.repeat(times),
        },
        Targets::Made(law) => {
            let data = s.targets_f64().into_iter().map(|y| y as f32);
            Targets::Values {
                width: law.width,
                data: data.collect::<Vec<_>>().repeat(times),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::testing;

    fn images(law: &Augment) -> Result<Dataset> {
        let x: Vec<f32> = (1..=24).map(|x| x as f32).collect();
        let split = Split::new(12, Inputs::F32(x), Targets::Classes(vec![0, 1]))?;
        let mut d = Dataset::new("d", 2, split, None, vec![])?;
        d.shape = vec![3, 4];
        d.augmented(law)
    }

    const LAW: Augment = Augment {
        copies: 200,
        shift: 1,
        flip: true,
        noise: 0.0,
        seed: 5,
    };

    /// Each variant is one of the 3·3·2 images that can come out, written down by an independent rule; all of them come.
    #[test]
    fn variants_are_shifted_and_mirrored_images() {
        let d = images(&LAW).unwrap();
        assert_eq!((d.train.rows, d.copies), (400, 200));
        assert_eq!(d.train.class_counts(2), [200, 200]);
        let Inputs::F32(x) = &d.train.inputs else {
            panic!("a small data set is in memory")
        };
        let pixel = |r: usize, i: i32, j: i32, flip: bool| -> f32 {
            let j = if flip { 3 - j } else { j };
            match (0..3).contains(&i) && (0..4).contains(&j) {
                true => (12 * r as i32 + 4 * i + j + 1) as f32,
                false => 0.0,
            }
        };
        let mut seen = std::collections::BTreeSet::new();
        for (row, image) in x.chunks(12).enumerate() {
            let mut found = 0;
            for (k, (down, right, flip)) in (-1..2)
                .flat_map(|a| (-1..2).flat_map(move |b| [(a, b, false), (a, b, true)]))
                .enumerate()
            {
                let expected: Vec<f32> = (0..12)
                    .map(|p| pixel(row % 2, p / 4 - down, p % 4 - right, flip))
                    .collect();
                if expected == image {
                    found += 1;
                    seen.insert(k);
                    assert!(row >= 2 || (down, right, flip) == (0, 0, false));
                }
            }
            assert_eq!(found, 1, "row {row}");
        }
        assert_eq!(seen.len(), 18);
        assert_eq!(d.train, images(&LAW).unwrap().train);
        let other = Augment { seed: 6, ..LAW };
        assert_ne!(d.train, images(&other).unwrap().train);
    }

    /// Null: the noise has mean 0 and the standard deviation asked for; bounds of four standard errors.
    #[test]
    fn noise_has_its_width_and_rows_do_not_depend_on_how_they_are_read() {
        let law = Augment {
            copies: 2,
            shift: 0,
            flip: false,
            noise: 0.25,
            seed: 1,
        };
        let d = testing::build(&crate::dataset::digits::ENTRY, &[]).unwrap();
        let n = d.train.rows;
        let made = d.augmented(&law).unwrap();
        let all = made.train.inputs_f64();
        let (old, new) = all.split_at(n * 64);
        let noise: Vec<f64> = old.iter().zip(new).map(|(a, b)| b - a).collect();
        let count = noise.len() as f64;
        let mean = noise.iter().sum::<f64>() / count;
        let variance = noise.iter().map(|x| x * x).sum::<f64>() / count;
        assert!(mean.abs() < 4.0 * 0.25 / count.sqrt(), "{mean}");
        let bound = 4.0 * 0.0625 * (2.0 / count).sqrt();
        assert!((variance - 0.0625).abs() < bound, "{variance}");
        let variants = Variants {
            base: Split::clone(&d.train),
            law,
            image: (8, 8),
        };
        let rows = [n as u32 + 7, 3, 2 * n as u32 - 1];
        let (mut some, mut stored) = (vec![0f32; 3 * 64], vec![0f32; 3 * 64]);
        variants.read(rows.into_iter(), &mut some);
        made.train.gather(&rows, &mut stored);
        assert_eq!(some, stored);
    }

    #[test]
    fn what_cannot_be_varied_is_said() {
        for (law, expected) in [
            (Augment { copies: 1, ..LAW }, "ask for 2 or more"),
            (
                Augment { shift: 4, ..LAW },
                "leaves nothing of images of 3×4",
            ),
            (
                Augment {
                    shift: 0,
                    flip: false,
                    ..LAW
                },
                "give 'shift', 'flip' or 'noise'",
            ),
        ] {
            let e = images(&law).unwrap_err().to_string();
            assert!(e.contains(expected), "{e}");
        }
        let twice = images(&LAW).unwrap().augmented(&LAW).unwrap_err();
        assert!(
            twice
                .to_string()
                .contains("200 variants of each example; do this before")
        );
    }
}
