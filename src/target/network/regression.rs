//! Deep linear networks under the squared error: the law of one layer given the others is Gaussian.

use super::{Network, is_linear};
use crate::dataset::{Targets, moments};
use crate::diagnostic::eigenvectors;
use crate::error::Result;
use crate::kernels::gemm::{Matrix, multiply_double};
use anyhow::{Context, ensure};

/// Curvatures that far apart still leave two digits of the smallest.
const SPAN: f64 = 1e12;
/// Eigenvalues below this part of the largest are rounding.
const ROUNDING: f64 = 1e-14;
/// Half the distance of single-precision numbers near 1.
const UNIT: f64 = 1.0 / (1 << 24) as f64;
/// The part of the mean energy that rounding of the network's outputs may add.
const ROUNDED: f64 = 5e-4;

/// What the loss L of a deep linear network depends on: L = tr(P ⟨x xᵀ⟩ Pᵀ) - 2 tr(P ⟨x yᵀ⟩) + constant, P the product of the layers.
pub struct Regression {
    /// Components of the output and of the input of each layer; its weights `[output, input]` follow those of the last.
    pub layers: Vec<[usize; 2]>,
    /// ⟨x xᵀ⟩.
    inputs: Square,
    /// ⟨x yᵀ⟩, `[inputs, outputs]`.
    both: Vec<f64>,
}

/// A square FᵀF `[n, n]` by its eigenvalues and eigenvectors.
#[derive(Clone)]
struct Square {
    n: usize,
    /// F, of no more rows than there are columns.
    factor: Vec<f64>,
    /// Those above 0.
    values: Vec<f64>,
    /// Of length 1, one in a row.
    vectors: Vec<f64>,
}

impl Square {
    /// Of the smaller of FFᵀ and FᵀF: behind a narrow layer there are few directions.
    fn new(factor: Vec<f64>, n: usize) -> Result<Self> {
        let rows = factor.len() / n.max(1);
        let f = Matrix::new(&factor, rows, n);
        let wide = rows < n;
        let square = match wide {
            true => multiply_double(f, f.transposed()),
            false => multiply_double(f.transposed(), f),
        };
        let (mut values, mut vectors) = eigenvectors(&square, rows.min(n))
            .context("the layers have become so large that their product is not finite")?;
        // In ascending order.
        let least = ROUNDING * values.last().copied().unwrap_or(0.0);
        let rounding = values.iter().take_while(|x| **x <= least).count();
        values.drain(..rounding);
        vectors.drain(..rounding * rows.min(n));
        let factor = if wide {
            vectors = multiply_double(Matrix::new(&vectors, values.len(), rows), f);
            for row in vectors.chunks_exact_mut(n) {
                let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
                row.iter_mut().for_each(|x| *x /= length);
            }
            factor
        } else {
            let each = values.iter().zip(vectors.chunks_exact(n.max(1)));
            each.flat_map(|(value, row)| row.iter().map(|x| x * value.sqrt()))
                .collect()
        };
        Ok(Self {
            n,
            factor,
            values,
            vectors,
        })
    }

    fn unit(n: usize) -> Self {
        let one: Vec<f64> = (0..n * n)
            .map(|k| f64::from(u8::from(k / n.max(1) == k % n.max(1))))
            .collect();
        Self {
            n,
            factor: one.clone(),
            values: vec![1.0; n],
            vectors: one,
        }
    }

    /// The square of F·M, M a matrix `[n, columns]`.
    fn times(&self, matrix: Matrix<f64>, columns: usize) -> Result<Self> {
        let rows = self.factor.len() / self.n.max(1);
        let factor = multiply_double(Matrix::new(&self.factor, rows, self.n), matrix);
        Self::new(factor, columns)
    }

    fn basis(&self) -> Matrix<'_, f64> {
        Matrix::new(&self.vectors, self.values.len(), self.n)
    }
}

/// Strengths of likelihood and prior in a law exp(-s·L - ½p|w - w0|²).
pub struct Strengths<'a> {
    /// s.
    pub likelihood: f64,
    /// p.
    pub prior: f64,
    /// w0; the origin if it is empty.
    pub centre: &'a [f32],
}

impl Network {
    /// Its regression, if it is a deep linear network with the squared error of real targets.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn regression(&self) -> Result<&Regression> {
        let model = self.model.describe();
        let linear = is_linear(&*self.model) && self.layout.len() == self.model.layout().len();
        ensure!(
            linear,
            "the law of a layer given the others is Gaussian for deep linear networks without biases only (model::deep_linear), not for {model}"
        );
        ensure!(
            self.loss == crate::model::loss::Loss::SquaredError
                && matches!(
                    self.dataset.train.targets,
                    Targets::Values { .. } | Targets::Made(_)
                ),
            "the law of a layer given the others is Gaussian for the squared error of real targets only"
        );
        ensure!(
            self.dataset.train.weights.is_none() && self.dataset.copies == 1,
            "rows with weights or variants have no plain second moments"
        );
        let dense = self.model.dense().unwrap_or_default();
        ensure!(
            dense.iter().all(|l| !l.flipped),
            "the weights of {model} are stored as [input, output]"
        );
        if let Some(known) = self.regression.get() {
            return Ok(known);
        }
        let (d, width) = (self.dataset.dim, self.dataset.outputs);
        let mut sums = moments::sums(&self.dataset.train, width, 1);
        let rows = self.dataset.train.rows as f64;
        sums.iter_mut().for_each(|x| *x /= rows);
        let part = |from: usize, to: usize| -> Vec<f64> {
            let rows = sums.chunks_exact(d + width);
            rows.flat_map(|row| &row[from..to]).copied().collect()
        };
        // Its square root, by which it is a square.
        let (values, mut root) =
            eigenvectors(&part(0, d), d).context("the inputs are not finite")?;
        for (row, value) in root.chunks_exact_mut(d).zip(values) {
            row.iter_mut().for_each(|x| *x *= value.max(0.0).sqrt());
        }
        let inputs = Square::new(root, d)?;
        let new = Regression {
            layers: dense.iter().map(|l| [l.fan_out, l.fan_in]).collect(),
            inputs,
            both: part(d, d + width),
        };
        Ok(self.regression.get_or_init(|| new))
    }
}

impl Regression {
    /// Draw every layer given the others from exp(-s·L - ½p|w - w0|²), from the first to the last and back. `normals` gives the k-th list of standard
    /// normal numbers.
    ///
    /// Layer l enters P = A W B, A the product of the layers behind it and B of those before: the precision of W is 2s AᵀA ⊗ B⟨x xᵀ⟩Bᵀ + p, diagonal in the
    /// eigenvectors of both factors. What the likelihood does not see has the law of the prior. Per layer of width d some 10 d²r operations, and 20 r³ for the
    /// narrowest layer r behind or before it.
    ///
    /// # Errors
    /// If a product of layers is not finite, or if curvatures are too far apart for double precision.
    pub fn sweep(
        &self,
        w: &mut [f64],
        strengths: &Strengths,
        mut normals: impl FnMut(usize, &mut [f32]),
    ) -> Result<()> {
        let outputs = self.layers.last().map_or(0, |l| l[0]);
        let mut at = 0;
        let places: Vec<_> = (self.layers.iter())
            .map(|[o, i]| {
                at += o * i;
                at - o * i..at
            })
            .collect();
        let last = self.layers.len() - 1;
        // A and AᵀA of each layer.
        let unit = Square::unit(outputs);
        let mut behind = vec![(unit.vectors.clone(), unit)];
        // A and AᵀA of the layer before l.
        let back = |l: usize, w: &[f64], (a, square): &(Vec<f64>, Square)| -> Result<_> {
            let [o, i] = self.layers[l];
            let own = Matrix::new(&w[places[l].clone()], o, i);
            let a = multiply_double(Matrix::new(a, outputs, o), own);
            Ok((a, square.times(own, i)?))
        };
        for l in (1..=last).rev() {
            behind.push(back(l, w, &behind[last - l])?);
        }
        behind.reverse();
        // B⟨x xᵀ⟩Bᵀ and B⟨x yᵀ⟩ of each layer.
        let mut ahead = vec![(self.inputs.clone(), self.both.clone())];
        let mut count = 0;
        let mut draw = |w: &mut [f64],
                        l: usize,
                        (a, aa): &(Vec<f64>, Square),
                        (bb, by): &(Square, Vec<f64>)|
         -> Result<()> {
            let [o, i] = self.layers[l];
            let (left, right) = (aa.basis(), bb.basis());
            let (rows, columns) = (aa.values.len(), bb.values.len());
            let twice = 2.0 * strengths.likelihood;
            let largest = |s: &Square| s.values.last().copied().unwrap_or(0.0);
            let stiffest = twice * largest(aa) * largest(bb);
            ensure!(
                stiffest <= SPAN * strengths.prior,
                "the layers have grown until the largest curvature, {stiffest:.1e}, and that of the prior, {:.1e}, are further apart than double precision resolves: \
                 take a stronger prior (of llc: a larger gamma)",
                strengths.prior
            );
            // In the directions that the likelihood sees.
            let seen = |x: &[f64]| {
                let half = multiply_double(left, Matrix::new(x, o, i));
                multiply_double(Matrix::new(&half, rows, i), right.transposed())
            };
            let pull = {
                let a = multiply_double(left, Matrix::new(a, outputs, o).transposed());
                let b = multiply_double(right, Matrix::new(by, i, outputs));
                multiply_double(
                    Matrix::new(&a, rows, outputs),
                    Matrix::new(&b, columns, outputs).transposed(),
                )
            };
            let mut normal = vec![0f32; o * i];
            normals(count, &mut normal);
            count += 1;
            let mut new: Vec<f64> = normal.iter().map(|z| f64::from(*z)).collect();
            let mut move_by = seen(&new);
            let centre = strengths.centre.get(places[l].clone()).map(|c| {
                let c: Vec<f64> = c.iter().map(|x| f64::from(*x)).collect();
                (seen(&c), c)
            });
            let spread = strengths.prior.sqrt().recip();
            for (k, z) in move_by.iter_mut().enumerate() {
                let likelihood = twice * aa.values[k / columns] * bb.values[k % columns];
                let precision = likelihood + strengths.prior;
                let c = centre.as_ref().map_or(0.0, |(seen, _)| seen[k]);
                *z = *z * (precision.sqrt().recip() - spread)
                    + (twice * pull[k] - likelihood * c) / precision;
            }
            let half = multiply_double(Matrix::new(&move_by, rows, columns), right);
            let moved = multiply_double(left.transposed(), Matrix::new(&half, rows, i));
            (new.iter_mut().zip(&moved)).for_each(|(x, m)| *x = *x * spread + m);
            if let Some((_, c)) = &centre {
                new.iter_mut().zip(c).for_each(|(x, c)| *x += c);
            }
            // The layers to be drawn after this one make up for what single precision loses of it.
            w[places[l].clone()]
                .iter_mut()
                .zip(new)
                .for_each(|(w, x)| *w = f64::from(x as f32));
            Ok(())
        };
        let (mut rounding, mut directions) = (0.0, 0);
        for l in 0..=last {
            draw(w, l, &behind[l], &ahead[l])?;
            directions = directions.max(behind[l].1.values.len() * ahead[l].0.values.len());
            if l < last {
                let [o, i] = self.layers[l];
                let own = Matrix::new(&w[places[l].clone()], o, i);
                let (square, by) = &ahead[l];
                let next = multiply_double(own, Matrix::new(by, i, outputs));
                ahead.push((square.times(own.transposed(), o)?, next));
                // What single precision adds to the loss: a sum of i numbers has a variance of (i/6)·2⁻⁴⁸ of its square.
                let behind = behind[l].1.values.iter().sum::<f64>() / o as f64;
                let ahead = ahead[l + 1].0.values.iter().sum::<f64>();
                rounding += strengths.likelihood * i as f64 / 6.0 * UNIT * UNIT * behind * ahead;
            }
        }
        ensure!(
            2.0 * rounding <= ROUNDED * directions as f64,
            "the layers have grown until single precision hides the loss: to U/T, half the {directions} directions that it has, rounding adds {rounding:.1e}; \
             take a stronger prior (of llc: a larger gamma)"
        );
        for l in (0..last).rev() {
            behind[l] = back(l + 1, w, &behind[l + 1])?;
            draw(w, l, &behind[l], &ahead[l])?;
        }
        Ok(())
    }
}
