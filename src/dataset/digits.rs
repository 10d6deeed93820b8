//! `dataset::digits`: 1797 handwritten digits, bundled with the program.
//!
//! Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, the test
//! part; licence CC BY 4.0. The file `digits.csv.gz` holds 64 pixels 0–16 and the label 0–9 per line.

use super::resize::bilinear;
use super::{Dataset, Inputs, PER_CLASS, SEED, Scale, Split, TEST, Targets, VALIDATION, scale};
use crate::error::Result;
use crate::options::{Entry, Kind, Options, Range, option};
use anyhow::{anyhow, ensure};
use flate2::read::GzDecoder;
use std::io::Read;
use std::sync::Arc;

const DATA: &[u8] = include_bytes!("digits.csv.gz");
const ROWS: usize = 1797;
/// Pixels along a side.
const SIDE: usize = 8;
/// The largest pixel value.
const INK: u8 = 16;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "digits",
    doc: "1797 handwritten digits of 8×8 pixels in 10 classes, bundled with the program.\n\
        Source: Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, \
        1998, test part (doi 10.24432/C50P49), licence CC BY 4.0.\n\
        A fifth of every class is the test split unless `test` says otherwise; it does not depend on `per_class`. \
        `size: 16` resizes to 16×16 pixels, the 256 inputs of the networks of Baldock and Marzari, who use 5, 50 and 500 \
        examples per class (at most about 140 are available here).",
    arguments: &["per_class"],
    options: &[
        PER_CLASS,
        TEST,
        option(
            "size",
            Kind::Int(Range::Between(8.0, 16.0)),
            "8",
            "Pixels along a side: 8 as recorded, or 16 by bilinear interpolation, which keeps the mean.",
        ),
        option(
            "scale",
            Kind::Choice(scale::NAMES),
            "unit",
            "Scaling of pixels: \"unit\" divides by 16, to 0 … 1; \"standard\" gives every pixel mean 0 and variance 1 over \
             the training split, and 0 where it is constant; \"none\" keeps 0 … 16.",
        ),
        VALIDATION,
        SEED,
    ],
    example: "dataset::digits(#{ per_class: 50, size: 16 })",
    build,
};

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let size = options.size("size")?;
    ensure!(
        size == SIDE || size == 2 * SIDE,
        "{}: option 'size' is {size}, but must be 8 or 16",
        options.owner()
    );
    let scale: Scale = options.text("scale")?.parse()?;
    let mut text = String::new();
    GzDecoder::new(DATA).read_to_string(&mut text)?;
    let (pixels, labels) = parse(&text)?;
    ensure!(
        labels.len() == ROWS,
        "the bundled digits have {} rows, not {ROWS}",
        labels.len()
    );
    let unit = if scale == Scale::Unit {
        1.0 / INK as f32
    } else {
        1.0
    };
    let mut x: Vec<f32> = pixels.iter().map(|&p| p as f32 * unit).collect();
    if size == 2 * SIDE {
        x = x
            .chunks_exact(SIDE * SIDE)
            .flat_map(|image| bilinear(image, (SIDE, SIDE), size))
            .collect();
    }
    let all = Split::new(size * size, Inputs::F32(x), Targets::Classes(labels))?;
    let mut provenance = vec![
        (
            "source",
            "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, \
             test part, doi 10.24432/C50P49"
                .to_string(),
        ),
        ("licence", "CC BY 4.0".to_string()),
    ];
    if size != SIDE {
        provenance.push((
            "size",
            format!("resized from {SIDE}×{SIDE} to {size}×{size} pixels, bilinear"),
        ));
    }
    if scale == Scale::Unit {
        provenance.push(("scale", format!("unit, pixels divided by {INK}")));
    }
    let provenance = provenance
        .into_iter()
        .map(|(k, v)| (k.to_string(), v))
        .collect();
    let seed = options.int("seed")?;
    // The order matters: the test rows are chosen first, so that no other option changes them.
    let mut d = Dataset::new("digits", 10, all, None, provenance)?
        .with_test(options.float("test")?, seed)?
        .with_validation(options.float("validation")?, seed)?;
    if let Some(n) = options.opt_int("per_class") {
        d = d.subset_per_class(n as usize, seed)?;
    }
    if scale == Scale::Standard {
        d = d.scaled(scale)?;
    }
    d.shape = vec![size, size];
    Ok(Arc::new(d))
}

/// Pixels and labels of the text of the file.
fn parse(text: &str) -> Result<(Vec<u8>, Vec<u32>)> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (i, line) in text.lines().enumerate() {
        let wrong = |what: String| anyhow!("bundled digits, line {}: {what}", i + 1);
        let row = line
            .split(',')
            .map(|cell| {
                cell.parse::<u8>()
                    .map_err(|_| wrong(format!("'{cell}' is no number 0 … 255")))
            })
            .collect::<Result<Vec<u8>>>()?;
        let [image @ .., label] = &row[..] else {
            return Err(wrong("it is empty".into()));
        };
        if image.len() != SIDE * SIDE {
            return Err(wrong(format!(
                "{} cells instead of {}",
                row.len(),
                SIDE * SIDE + 1
            )));
        }
        if let Some(p) = image.iter().find(|&&p| p > INK) {
            return Err(wrong(format!("a pixel is {p}, above {INK}")));
        }
        if *label > 9 {
            return Err(wrong(format!("the label is {label}, above 9")));
        }
        pixels.extend_from_slice(image);
        labels.push(*label as u32);
    }
    Ok((pixels, labels))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{build, message, text};
    use super::*;
    use crate::options::Value;

    fn inputs(s: &Split) -> Vec<f32> {
        let mut x = vec![0.0; s.rows * s.dim];
        s.copy(0..s.rows, &mut x);
        x
    }

    #[test]
    fn the_bundled_file_is_complete() {
        let d = build(
            &ENTRY,
            &[("test", Value::Float(0.0)), ("scale", text("none"))],
        )
        .unwrap();
        assert!(d.test.is_none());
        assert_eq!(
            (d.train.rows, d.dim, d.classes, d.outputs),
            (1797, 64, 10, 10)
        );
        // Counts of the published test part.
        assert_eq!(
            d.train.class_counts(10),
            [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
        );
        let x = inputs(&d.train);
        assert_eq!(x[..5], [0.0, 0.0, 5.0, 13.0, 9.0]);
        assert_eq!(x.iter().fold(0f32, |m, &x| m.max(x)), 16.0);
    }

    #[test]
    fn the_test_split_is_a_fifth_of_every_class_whatever_per_class_is() {
        let all = build(&ENTRY, &[]).unwrap();
        let few = build(
            &ENTRY,
            &[
                ("per_class", Value::Int(5)),
                ("validation", Value::Float(0.1)),
            ],
        )
        .unwrap();
        assert_eq!(all.test, few.test);
        assert_eq!(few.train.class_counts(10), [5; 10]);
        assert!(few.validation.is_some());
        let (train, test) = (
            all.train.class_counts(10),
            all.test.as_ref().unwrap().class_counts(10),
        );
        for (a, b) in train.iter().zip(test) {
            assert!((b as f64 - 0.2 * (a + b) as f64).abs() <= 1.0);
        }
        assert_ne!(
            all.test,
            build(&ENTRY, &[("seed", Value::Int(2))]).unwrap().test
        );
    }

    #[test]
    fn scales_are_as_described() {
        let unit = build(&ENTRY, &[]).unwrap();
        let raw = build(&ENTRY, &[("scale", text("none"))]).unwrap();
        let (u, r) = (inputs(&unit.train), inputs(&raw.train));
        assert!(u.iter().zip(&r).all(|(u, r)| u * 16.0 == *r));
        let standard = build(&ENTRY, &[("scale", text("standard"))]).unwrap();
        let (x, n) = (inputs(&standard.train), standard.train.rows as f64);
        for j in 0..64 {
            let column = || x.iter().skip(j).step_by(64).map(|&x| x as f64);
            let (mean, square) = (
                column().sum::<f64>() / n,
                column().map(|x| x * x).sum::<f64>() / n,
            );
            // Pixels of the margin are never inked and stay 0.
            let expected = if column().all(|x| x == 0.0) { 0.0 } else { 1.0 };
            assert!(
                mean.abs() < 1e-5 && (square - expected).abs() < 1e-4,
                "{j}: {mean} {square}"
            );
        }
        assert!(x.iter().take(64).any(|&x| x == 0.0));
    }

    #[test]
    fn doubling_keeps_constants_ramps_and_the_mean() {
        assert!(bilinear(&[3.0; 64], (8, 8), 16).iter().all(|&x| x == 3.0));
        let image: Vec<f32> = (0..64).map(|i| ((i * 37) % 17) as f32).collect();
        let big = bilinear(&image, (8, 8), 16);
        // Weights are sixteenths and pixels whole numbers, so that both sums are exact.
        assert_eq!(big.iter().sum::<f32>(), 4.0 * image.iter().sum::<f32>());
        let ramp: Vec<f32> = (0..64).map(|i| (i % 8) as f32).collect();
        let row: Vec<f32> = bilinear(&ramp, (8, 8), 16)[16..32].to_vec();
        assert_eq!(row[..4], [0.0, 0.25, 0.75, 1.25]);
        assert_eq!(row[15], 7.0);
        let d = build(&ENTRY, &[("size", Value::Int(16))]).unwrap();
        assert_eq!(d.dim, 256);
    }

    #[test]
    fn wrong_options_and_wrong_lines_are_refused() {
        assert!(message(&ENTRY, &[("size", Value::Int(12))]).contains("must be 8 or 16"));
        assert!(message(&ENTRY, &[("per_class", Value::Int(500))]).contains("has only"));
        let line = |pixel: &str, label: &str| format!("{}{pixel},{label}\n", "0,".repeat(63));
        assert!(parse(&line("16", "9")).is_ok());
        for bad in [
            line("17", "1"),
            line("1", "10"),
            line("1,1", "1"),
            line("x", "1"),
            line("-1", "1"),
            "\n".into(),
        ] {
            assert!(
                parse(&bad).unwrap_err().to_string().contains("line 1"),
                "{bad}"
            );
        }
    }
}
