//! Deep linear networks under the squared error: the law of one layer given the others is Gaussian.

use super::{Network, is_linear};
use crate::dataset::{Targets, moments};
use crate::diagnostic::eigenvectors;
use crate::error::Result;
use crate::kernels::gemm::{Matrix, multiply_double};
use anyhow::{Context, ensure};

/// Curvatures that far apart still leave three digits of the smallest.
const SPAN: f64 = 1e13;

/// What the loss L of a deep linear network depends on: L = tr(P ⟨x xᵀ⟩ Pᵀ) - 2 tr(P ⟨x yᵀ⟩) + constant, P the product of the layers.
pub struct Regression {
    /// Components of the output and of the input of each layer; its weights `[output, input]` follow those of the last.
    pub layers: Vec<[usize; 2]>,
    /// ⟨x xᵀ⟩.
    inputs: Symmetric,
    /// ⟨x yᵀ⟩, `[inputs, outputs]`.
    both: Vec<f64>,
}

/// A symmetric matrix M = Σ_k m_k v_k v_kᵀ.
#[derive(Clone)]
struct Symmetric {
    matrix: Vec<f64>,
    /// m, not below 0.
    values: Vec<f64>,
    /// v_k, one in a row.
    vectors: Vec<f64>,
}

impl Symmetric {
    fn new(matrix: Vec<f64>, n: usize) -> Result<Self> {
        let (mut values, vectors) = eigenvectors(&matrix, n)
            .context("the layers have become so large that their product is not finite")?;
        values.iter_mut().for_each(|x| *x = x.max(0.0));
        Ok(Self {
            matrix,
            values,
            vectors,
        })
    }

    fn unit(n: usize) -> Self {
        let matrix: Vec<f64> = (0..n * n)
            .map(|k| f64::from(k / n.max(1) == k % n.max(1)))
            .collect();
        Self {
            values: vec![1.0; n],
            vectors: matrix.clone(),
            matrix,
        }
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
    pub fn regression(&self) -> Result<&Regression> {
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
        let new = Regression {
            layers: dense.iter().map(|l| [l.fan_out, l.fan_in]).collect(),
            inputs: Symmetric::new(part(0, d), d)?,
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
    /// eigenvectors of both factors. Some 20 d³ operations per layer of width d.
    ///
    /// # Errors
    /// If a product of layers is not finite.
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
        let layer = |w: &[f64], l: usize| w[places[l].clone()].to_vec();
        // A and AᵀA of each layer.
        let mut behind = vec![(Vec::new(), Symmetric::unit(outputs))];
        behind[0].0 = behind[0].1.matrix.clone();
        for l in (1..self.layers.len()).rev() {
            let [o, i] = self.layers[l];
            let before = multiply_double(
                Matrix::new(&behind[behind.len() - 1].0, outputs, o),
                Matrix::new(&layer(w, l), o, i),
            );
            let both = Matrix::new(&before, outputs, i);
            let square = multiply_double(both.transposed(), both);
            behind.push((before, Symmetric::new(square, i)?));
        }
        behind.reverse();
        // B⟨x xᵀ⟩Bᵀ and B⟨x yᵀ⟩ of each layer.
        let mut ahead = vec![(self.inputs.clone(), self.both.clone())];
        let mut count = 0;
        let mut draw = |w: &mut [f64],
                        l: usize,
                        (a, aa): &(Vec<f64>, Symmetric),
                        (bb, by): &(Symmetric, Vec<f64>)|
         -> Result<()> {
            let [o, i] = self.layers[l];
            let place = places[l].clone();
            let mut linear = multiply_double(
                Matrix::new(a, outputs, o).transposed(),
                Matrix::new(by, i, outputs).transposed(),
            );
            let twice = 2.0 * strengths.likelihood;
            let largest = |s: &Symmetric| s.values.iter().copied().fold(0.0, f64::max);
            let stiffest = twice * largest(aa) * largest(bb);
            ensure!(
                stiffest <= SPAN * strengths.prior,
                "the layers have grown until the largest curvature, {stiffest:.1e}, and that of the prior, {:.1e}, are further apart than double precision resolves: \
                 take a stronger prior (of llc: a larger gamma)",
                strengths.prior
            );
            linear.iter_mut().for_each(|x| *x *= twice);
            if let Some(centre) = strengths.centre.get(place.clone()) {
                let pull = linear.iter_mut().zip(centre);
                pull.for_each(|(x, c)| *x += strengths.prior * f64::from(*c));
            }
            let (left, right) = (
                Matrix::new(&aa.vectors, o, o),
                Matrix::new(&bb.vectors, i, i),
            );
            let half = multiply_double(left, Matrix::new(&linear, o, i));
            let mut turned = multiply_double(Matrix::new(&half, o, i), right.transposed());
            let mut noise = vec![0f32; o * i];
            normals(count, &mut noise);
            count += 1;
            for (k, (x, z)) in turned.iter_mut().zip(&noise).enumerate() {
                let precision = twice * aa.values[k / i] * bb.values[k % i] + strengths.prior;
                *x = *x / precision + f64::from(*z) / precision.sqrt();
            }
            let half = multiply_double(left.transposed(), Matrix::new(&turned, o, i));
            w[place].copy_from_slice(&multiply_double(Matrix::new(&half, o, i), right));
            Ok(())
        };
        let last = self.layers.len() - 1;
        for l in 0..=last {
            draw(w, l, &behind[l], &ahead[l])?;
            if l == last {
                break;
            }
            let [o, i] = self.layers[l];
            let own = layer(w, l);
            let own = Matrix::new(&own, o, i);
            let (bb, by) = &ahead[l];
            let half = multiply_double(own, Matrix::new(&bb.matrix, i, i));
            let square = multiply_double(Matrix::new(&half, o, i), own.transposed());
            let by = multiply_double(own, Matrix::new(by, i, outputs));
            ahead.push((Symmetric::new(square, o)?, by));
        }
        for l in (0..last).rev() {
            let [o, i] = self.layers[l + 1];
            let a = multiply_double(
                Matrix::new(&behind[l + 1].0, outputs, o),
                Matrix::new(&layer(w, l + 1), o, i),
            );
            let both = Matrix::new(&a, outputs, i);
            let square = multiply_double(both.transposed(), both);
            behind[l] = (a, Symmetric::new(square, i)?);
            draw(w, l, &behind[l], &ahead[l])?;
        }
        Ok(())
    }
}
