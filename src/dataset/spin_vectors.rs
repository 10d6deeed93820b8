//! `dataset::spin_vectors`: noisy copies of random ±1 vectors (Zambon et al., eq. 2).

use super::{Dataset, Inputs, SEED, Split, Targets, Use, VALIDATION, stream};
use crate::error::{Result, go_on, interrupted};
use crate::options::{Entry, Kind, Options, Range, option};
use anyhow::ensure;
use rayon::prelude::*;
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "spin_vectors",
    doc: "Random spin vectors: each example is the ±1 vector of its class with every component flipped at random.\n\
        Reference vectors v(k) ∈ {±1}^dim and labels y are uniform; component i of an example is v_i(y) with probability \
        1 - flip and -v_i(y) with probability flip, all independent (Zambon et al., pseudo-Langevin, section II.1, eq. 2). \
        With the defaults about a tenth of the examples are nearer to another class than to their own (section III).\n\
        Row i of a split depends on the seed, dim, classes and flip only: a larger split starts with the rows of a smaller one. One byte per \
        component.",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(1.0)),
            "100",
            "Components of a vector, d in the paper.",
        ),
        option(
            "classes",
            Kind::Int(Range::Between(2.0, 65535.0)),
            "10",
            "Number of classes, K in the paper.",
        ),
        option(
            "flip",
            Kind::Float(Range::Closed01),
            "0.355",
            "Probability of flipping a component, p_f in the paper.",
        ),
        option(
            "train",
            Kind::Int(Range::Between(1.0, 4294967295.0)),
            "55800",
            "Number of training examples; P = 5N in the paper, here for N = 11160 parameters.",
        ),
        option(
            "test",
            Kind::Int(Range::Between(0.0, 4294967295.0)),
            "10000",
            "Number of test examples, of the same reference vectors; about 0.18 P in the paper; 0 for no test split.",
        ),
        VALIDATION,
        SEED,
    ],
    example: "dataset::spin_vectors(#{ train: 2000, test: 500 })",
    build,
};

/// Rows that a thread generates at a time.
const BLOCK: usize = 1024;

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let (dim, classes, seed) = (
        options.size("dim")?,
        options.size("classes")?,
        options.int("seed")?,
    );
    let flip = options.float("flip")?;
    let check = |rows: usize, width: usize| {
        ensure!(
            rows.checked_mul(width)
                .is_some_and(|n| n <= isize::MAX as usize),
            "{}: {rows} vectors of {width} components do not fit in memory",
            options.owner()
        );
        Ok(())
    };
    check(classes, dim)?;
    // Philox counts blocks of four elements in 32 bits.
    ensure!(
        dim <= u32::MAX as usize,
        "{}: option 'dim' is {dim}, more than 2^32 - 1",
        options.owner()
    );
    let rows = [classes, options.size("train")?, options.size("test")?];
    let all = rows.iter().fold(0usize, |n, r| n.saturating_add(*r));
    let what = format!("{}: {all} vectors of {dim} components", options.owner());
    crate::memory::check_elements::<i8>(&[all, dim], &what)?;
    let vectors = class_vectors(seed, classes, dim);
    let split = |what, rows| -> Result<Split> {
        check(rows, dim)?;
        let mut x = vec![0i8; rows * dim];
        let mut labels = vec![0u32; rows];
        examples(seed, what, &vectors, flip, dim, &mut x, &mut labels);
        go_on("the making of a data set")?;
        Split::new(dim, Inputs::I8(x), Targets::Classes(labels))
    };
    let train = split(Use::TrainRow, options.size("train")?)?;
    let test = match options.size("test")? {
        0 => None,
        rows => Some(split(Use::TestRow, rows)?),
    };
    let provenance = vec![
        (
            "source".into(),
            "generated; Zambon et al., pseudo-Langevin, eq. 2".into(),
        ),
        (
            "generator".into(),
            format!("dim {dim}, classes {classes}, flip {flip:?}, seed {seed}"),
        ),
    ];
    let d = Dataset::new("spin_vectors", classes, train, test, provenance)?;
    Ok(Arc::new(
        d.with_validation(options.float("validation")?, seed)?,
    ))
}

/// The reference vectors of `spin_vectors`, row-major `[classes, dim]`.
pub fn class_vectors(seed: u64, classes: usize, dim: usize) -> Vec<i8> {
    let mut v = vec![0; classes * dim];
    for (k, row) in v.chunks_exact_mut(dim).enumerate() {
        let s = stream(seed, Use::ClassVector, k as u64);
        for (b, four) in row.chunks_mut(4).enumerate() {
            for (x, w) in four.iter_mut().zip(s.block(b as u32)) {
                *x = if w >> 31 == 0 { 1 } else { -1 };
            }
        }
    }
    v
}

/// Fill inputs and labels; row i reads stream i and nothing else.
fn examples(
    seed: u64,
    what: Use,
    vectors: &[i8],
    flip: f64,
    dim: usize,
    x: &mut [i8],
    labels: &mut [u32],
) {
    let classes = (vectors.len() / dim) as u64;
    // A word below the threshold flips: the probability is exact to 2^-33, and exact for 0 and 1.
    let threshold = (flip * (1u64 << 32) as f64).round() as u64;
    x.par_chunks_mut(BLOCK.saturating_mul(dim))
        .zip(labels.par_chunks_mut(BLOCK))
        .enumerate()
        // What is left out after an interrupt is nobody's data set.
        .filter(|_| !interrupted())
        .for_each(|(block, (x, labels))| {
            for (i, (row, label)) in x.chunks_exact_mut(dim).zip(labels).enumerate() {
                let s = stream(seed, what, (block * BLOCK + i) as u64);
                let y = (s.sub_stream(1).block(0)[0] as u64 * classes) >> 32;
                *label = y as u32;
                let v = &vectors[y as usize * dim..][..dim];
                for (b, (x, v)) in row.chunks_mut(4).zip(v.chunks(4)).enumerate() {
                    for ((x, &v), w) in x.iter_mut().zip(v).zip(s.block(b as u32)) {
                        *x = if (w as u64) < threshold { -v } else { v };
                    }
                }
            }
        });
}

#[cfg(test)]
mod tests {
    use super::super::testing::{build, message};
    use super::*;
    use crate::options::Value;

    fn make(train: i64, more: &[(&str, Value)]) -> Arc<Dataset> {
        let mut given = vec![("train", Value::Int(train)), ("test", Value::Int(100))];
        given.extend_from_slice(more);
        build(&ENTRY, &given).unwrap()
    }

    fn spins(s: &Split) -> &[i8] {
        match &s.inputs {
            Inputs::I8(x) => x,
            _ => panic!("spins are bytes"),
        }
    }

    /// Null: every component is flipped with probability 0.355, independently; the count is binomial.
    #[test]
    fn components_are_flipped_at_the_rate_asked_for() {
        let d = make(10_000, &[]);
        let v = class_vectors(1, 10, 100);
        let flipped = |j: Option<usize>| {
            let rows = spins(&d.train).chunks(100).zip(d.train.labels().unwrap());
            rows.flat_map(|(x, &y)| x.iter().zip(&v[y as usize * 100..]).enumerate())
                .filter(|(i, (x, v))| j.is_none_or(|j| *i == j) && x != v)
                .count() as f64
        };
        for (count, n) in [
            (flipped(None), 1e6),
            (flipped(Some(0)), 1e4),
            (flipped(Some(99)), 1e4),
        ] {
            let sigma = (n * 0.355f64 * 0.645).sqrt();
            assert!((count - 0.355 * n).abs() < 4.0 * sigma, "{count} of {n}");
        }
    }

    /// Null: labels are uniform over 10 classes; chi-squared has mean 9 and standard deviation sqrt(18).
    #[test]
    fn labels_are_uniform() {
        let d = make(50_000, &[]);
        let counts = d.train.class_counts(10);
        let chi2: f64 = counts.iter().map(|&c| (c as f64 - 5e3).powi(2) / 5e3).sum();
        assert!(chi2 < 9.0 + 4.0 * 18f64.sqrt(), "chi2 = {chi2}");
    }

    /// Null: components of reference vectors are fair and independent; their sum has variance 100·1000.
    #[test]
    fn reference_vectors_are_fair() {
        let sum: f64 = class_vectors(5, 100, 1000).iter().map(|&x| x as f64).sum();
        assert!(sum.abs() < 4.0 * 1e5f64.sqrt(), "{sum}");
    }

    /// The paper (section III) chooses flip 0.355 so that about a tenth of the vectors is nearer to another class. The
    /// fraction varies with the reference vectors drawn; "about" is taken as 0.05 … 0.15.
    #[test]
    fn about_a_tenth_is_nearer_to_another_class() {
        let d = make(5_000, &[]);
        let v = class_vectors(1, 10, 100);
        let strayed = |&(x, &y): &(&[i8], &u32)| {
            let overlap = |k: usize| -> i32 {
                x.iter()
                    .zip(&v[k * 100..])
                    .map(|(a, b)| (a * b) as i32)
                    .sum()
            };
            (0..10).any(|k| overlap(k) > overlap(y as usize))
        };
        let rows = spins(&d.train).chunks(100).zip(d.train.labels().unwrap());
        let fraction = rows.filter(strayed).count() as f64 / 5e3;
        assert!((0.05..0.15).contains(&fraction), "{fraction}");
    }

    #[test]
    fn a_row_does_not_depend_on_how_many_are_asked_for() {
        let (few, many) = (make(1500, &[]), make(4000, &[("test", Value::Int(3))]));
        assert!(*spins(&few.train) == spins(&many.train)[..150_000]);
        assert!(*few.train.labels().unwrap() == many.train.labels().unwrap()[..1500]);
        let (a, b) = (few.test.as_ref().unwrap(), many.test.as_ref().unwrap());
        assert_eq!(&spins(a)[..300], spins(b));
        assert_ne!(&spins(a)[..300], &spins(&few.train)[..300]);
    }

    #[test]
    fn the_seed_decides_and_the_limits_of_flip_are_exact() {
        assert!(make(50, &[]).train == make(50, &[]).train);
        assert_ne!(
            make(50, &[]).train,
            make(50, &[("seed", Value::Int(2))]).train
        );
        let v = class_vectors(1, 10, 100);
        for (flip, sign) in [(0, 1), (1, -1)] {
            let d = make(50, &[("flip", Value::Int(flip))]);
            for (x, &y) in spins(&d.train).chunks(100).zip(d.train.labels().unwrap()) {
                assert!(
                    x.iter()
                        .zip(&v[y as usize * 100..])
                        .all(|(x, v)| *x == sign * v)
                );
            }
        }
    }

    #[test]
    fn a_component_takes_one_byte_and_odd_dimensions_work() {
        let d = make(1000, &[]);
        assert_eq!(d.train.bytes(), 1000 * 100 + 1000 * 4);
        let d = make(7, &[("dim", Value::Int(3)), ("classes", Value::Int(2))]);
        assert!(spins(&d.train).iter().all(|x| x.abs() == 1) && d.outputs == 2);
        let d = make(
            1000,
            &[("test", Value::Int(0)), ("validation", Value::Float(0.1))],
        );
        assert!(d.test.is_none() && d.validation.as_ref().unwrap().rows == 100);
    }

    #[test]
    fn sizes_beyond_memory_are_an_error() {
        let huge = [
            ("dim", Value::Int(4_000_000_000)),
            ("train", Value::Int(4_000_000_000)),
        ];
        assert!(message(&ENTRY, &huge).contains("memory"));
    }
}
