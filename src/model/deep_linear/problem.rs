//! Problems with a known learning coefficient: a deep linear network, its true weights, and the regression they answer
//! (Lau et al. 2024; Hitchcock & Hoogland 2025, D.1).

use super::coefficient::{LearningCoefficient, learning_coefficient, regular_coefficient};
use super::network;
use crate::dataset::{Dataset, LinearRows, Split};
use crate::error::Result;
use crate::kernels::gemm::{Matrix, multiply};
use crate::kernels::normal::fill_normal;
use crate::memory;
use crate::model::Model;
use crate::model::initialise::Initialise;
use crate::rng::{Purpose, Stream};
use std::sync::Arc;

/// A class of problems: ranges of the number of layers and of their widths (table 1 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Name, about the number of parameters.
    pub name: &'static str,
    layers: [usize; 2],
    widths: [usize; 2],
}

/// The classes of the paper, and one that takes seconds.
pub const CLASSES: &[Class] = &[
    class("1K", [2, 6], [5, 20]),
    class("100K", [2, 10], [50, 500]),
    class("1M", [2, 20], [100, 1000]),
    class("10M", [2, 20], [500, 2000]),
    class("100M", [2, 40], [500, 3000]),
];

const fn class(name: &'static str, layers: [usize; 2], widths: [usize; 2]) -> Class {
    Class {
        name,
        layers,
        widths,
    }
}

/// Names of the classes.
pub(crate) const NAMES: &[&str] = &["1K", "100K", "1M", "10M", "100M"];

/// A deep linear network at weights that give its data but for the noise.
#[derive(Debug, Clone)]
pub struct Problem {
    /// H_0 … H_M.
    pub widths: Vec<usize>,
    /// The true weights, in the model's layout.
    pub weights: Arc<Vec<f32>>,
    /// Rank of their product.
    pub rank: usize,
    /// The learning coefficient of the network for a product of this rank: the least over all weights that give it.
    pub truth: LearningCoefficient,
    /// Half the rank of the Jacobian at the weights: not above the local coefficient there, and equal to it where the zero set is smooth.
    pub regular: f64,
}

// What the random numbers of a problem are for, as streams of `Purpose::Dataset` beside those of data sets.
const SHAPE: usize = 32;
const WEIGHTS: usize = 64;

/// Rows and columns of a layer that are not zero; they come first.
#[derive(Debug, Clone, Copy)]
struct Kept {
    rows: usize,
    columns: usize,
}

impl Problem {
    /// The `index`-th random problem of a class: layers and widths uniform in their ranges, weights N(0, 2/(H_l + H_{l-1})), and every layer
    /// with probability ½ cut to a rank uniform in 0..=min(H_l, H_{l-1}), by zeros in its last rows or in its last columns.
    pub fn draw(class: Class, seed: u64, index: u64) -> Result<Self> {
        let stream = Stream::new(seed, Purpose::Dataset, SHAPE, index);
        let mut element = 0;
        let mut draw = |[from, to]: [usize; 2]| {
            element += 1;
            from + (stream.uniform(element - 1) * (to - from + 1) as f64) as usize
        };
        let layers = draw(class.layers);
        let widths: Vec<_> = (0..=layers).map(|_| draw(class.widths)).collect();
        let mut kept = Vec::new();
        for pair in widths.windows(2) {
            let (columns, rows) = (pair[0], pair[1]);
            let mut layer = Kept { rows, columns };
            if draw([0, 1]) == 1 {
                let rank = draw([0, rows.min(columns)]);
                match draw([0, 1]) {
                    0 => layer.rows = rank,
                    _ => layer.columns = rank,
                }
            }
            kept.push(layer);
        }
        Self::new(widths, &kept, seed, index)
    }

    /// A problem of these widths whose layers all have the given rank and share its units: the most singular weights with a product of this
    /// rank, where the local coefficient is the global one.
    pub fn singular(widths: Vec<usize>, rank: usize, seed: u64) -> Result<Self> {
        let kept = Kept {
            rows: rank,
            columns: rank,
        };
        let layers = vec![kept; widths.len().saturating_sub(1)];
        Self::new(widths, &layers, seed, 0)
    }

    fn new(widths: Vec<usize>, kept: &[Kept], seed: u64, index: u64) -> Result<Self> {
        let layers = kept.len();
        anyhow::ensure!(
            layers > 0 && !widths.contains(&0),
            "a deep linear problem has widths {widths:?}, but needs at least two, for inputs and outputs, each at least 1"
        );
        // Units that a layer hands on: neither a zero row nor met by a zero column. Products of random matrices have the largest rank that
        // these leave.
        let rank = |from: usize, to: usize| {
            let units = |l: usize| match l {
                l if l == from => kept[l].columns,
                l if l == to => kept[l - 1].rows,
                l => kept[l - 1].rows.min(kept[l].columns),
            };
            (from..=to).map(units).min().unwrap_or(0)
        };
        let rank_of_all = rank(0, layers.max(1));
        let truth = learning_coefficient(&widths, rank_of_all)?;
        let above: Vec<_> = (1..=layers)
            .map(|l| match l {
                l if l == layers => widths[layers],
                l => rank(l, layers),
            })
            .collect();
        let below: Vec<_> = (0..layers)
            .map(|l| if l == 0 { widths[0] } else { rank(0, l) })
            .collect();
        let count = widths.windows(2).map(|w| w[0] as u128 * w[1] as u128);
        let count = count.fold(0, u128::saturating_add);
        memory::check(count.saturating_mul(4), "the weights of a problem")?;
        let count = count as usize;
        let mut weights = Vec::with_capacity(count);
        for (l, (pair, kept)) in widths.windows(2).zip(kept).enumerate() {
            let (columns, rows) = (pair[0], pair[1]);
            let mut w = vec![0f32; rows * columns];
            fill_normal(
                &Stream::new(seed, Purpose::Dataset, WEIGHTS + l, index),
                &mut w,
            );
            let scale = (2.0 / (rows + columns) as f64).sqrt() as f32;
            for (i, row) in w.chunks_exact_mut(columns).enumerate() {
                let live = if i < kept.rows { kept.columns } else { 0 };
                row[..live].iter_mut().for_each(|x| *x *= scale);
                row[live..].fill(0.0);
            }
            weights.extend(w);
        }
        Ok(Self {
            regular: regular_coefficient(&above, &below),
            widths,
            weights: Arc::new(weights),
            rank: rank_of_all,
            truth,
        })
    }

    /// The network.
    pub fn model(&self) -> Arc<dyn Model> {
        network(self.widths.clone(), Initialise::Glorot)
    }

    /// n examples, made when they are read unless they fit into 256 MiB: inputs uniform in (-10, 10), targets W_M … W_1 x + N(0, noise²).
    pub fn data(&self, n: usize, noise: f64, seed: u64) -> Result<Dataset> {
        let law = LinearRows {
            dim: self.widths[0],
            width: self.widths[self.widths.len() - 1],
            matrix: self.product(),
            limit: 10.0,
            noise: noise as f32,
            seed,
        };
        let shape: Vec<_> = self.widths.iter().map(usize::to_string).collect();
        let provenance = vec![(
            "truth".to_string(),
            format!(
                "deep linear {}, rank {}, noise {noise}, seed {seed}",
                shape.join("-"),
                self.rank
            ),
        )];
        let split = Split::made(Arc::new(law), n)?.in_memory(1 << 28);
        let mut data = Dataset::new("deep linear", 0, split, None, provenance)?;
        data.rank = Some(self.rank);
        Ok(data)
    }

    /// W_M … W_1, `[H_M, H_0]`.
    pub fn product(&self) -> Vec<f32> {
        let (mut at, mut total) = (0, Vec::new());
        for pair in self.widths.windows(2) {
            let (columns, rows) = (pair[0], pair[1]);
            let w = &self.weights[at..at + rows * columns];
            at += w.len();
            if total.is_empty() {
                total = w.to_vec();
                continue;
            }
            let first = self.widths[0];
            let mut next = vec![0f32; rows * first];
            let below = Matrix::new(&total, columns, first);
            multiply(&mut next, Matrix::new(w, rows, columns), below, false);
            total = next;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rank by elimination with full pivoting.
    fn rank(mut m: Vec<Vec<f64>>) -> usize {
        let mut rank = 0;
        let largest = |m: &[Vec<f64>], from: usize| {
            let mut best = (0.0, from, 0);
            for (i, row) in m.iter().enumerate().skip(from) {
                for (j, x) in row.iter().enumerate() {
                    if x.abs() > best.0 {
                        best = (x.abs(), i, j);
                    }
                }
            }
            best
        };
        let scale = largest(&m, 0).0;
        while rank < m.len() {
            let (value, i, j) = largest(&m, rank);
            if value <= 1e-5 * scale {
                break;
            }
            m.swap(rank, i);
            let pivot = m[rank].clone();
            for row in &mut m[rank + 1..] {
                let factor = row[j] / pivot[j];
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(x, p)| *x -= factor * p);
            }
            rank += 1;
        }
        rank
    }

    fn rows(m: &[f32], columns: usize) -> Vec<Vec<f64>> {
        let row = |r: &[f32]| r.iter().map(|x| f64::from(*x)).collect();
        m.chunks_exact(columns).map(row).collect()
    }

    /// The ranks that the zeros leave are those of the matrices: of the product, and of the Jacobian, column by column.
    #[test]
    fn ranks_are_those_of_the_matrices() {
        let small = class("tiny", [2, 4], [2, 5]);
        let mut cut = 0;
        for index in 0..60 {
            let p = Problem::draw(small, 3, index).unwrap();
            let (first, last) = (p.widths[0], p.widths[p.widths.len() - 1]);
            assert_eq!(rank(rows(&p.product(), first)), p.rank, "{:?}", p.widths);
            let mut jacobian = Vec::new();
            for i in 0..p.weights.len() {
                let mut moved = p.clone();
                let at = |h: f32| {
                    let mut w = (*p.weights).clone();
                    w[i] += h;
                    w
                };
                // The product is linear in one weight: the difference is exact but for rounding.
                moved.weights = Arc::new(at(1.0));
                let up = moved.product();
                moved.weights = Arc::new(at(-1.0));
                let down = moved.product();
                let d = up.iter().zip(&down).map(|(u, d)| f64::from(u - d) / 2.0);
                jacobian.push(d.collect());
            }
            assert_eq!(rank(jacobian) as f64 / 2.0, p.regular, "{:?}", p.widths);
            cut += usize::from(p.rank < first.min(last));
        }
        assert!(
            cut > 20,
            "most problems are of low rank, but only {cut} of 60"
        );
    }

    #[test]
    fn classes_have_their_names_and_sizes() {
        let names: Vec<_> = CLASSES.iter().map(|c| c.name).collect();
        assert_eq!(names, NAMES);
        for c in &CLASSES[..2] {
            for index in 0..20 {
                let p = Problem::draw(*c, 1, index).unwrap();
                assert!((c.layers[0]..=c.layers[1]).contains(&(p.widths.len() - 1)));
                assert!(
                    p.widths
                        .iter()
                        .all(|w| (c.widths[0]..=c.widths[1]).contains(w))
                );
            }
        }
    }

    #[test]
    fn the_most_singular_weights_have_the_least_jacobian() {
        let p = Problem::singular(vec![5, 6, 9, 4], 1, 2).unwrap();
        assert_eq!((p.rank, p.truth.lambda), (1, 9.5));
        // r(H_0 + H_M) - r²: the smooth part alone.
        assert_eq!(p.regular, 4.0);
    }
}
