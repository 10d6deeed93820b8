//! The generalised Gauss-Newton matrix of the loss of a network of dense layers, whole or in its approximations.
//!
//! G = Σ_i Jᵀ_i Λ_i J_i, J_i being the derivative of the outputs of example i by the parameters and Λ_i the second derivative
//! of its loss by the outputs: the Hessian without the curvature of the network (Schraudolph 2002; Martens 2020). With
//! Λ = Σ_k s_k s_kᵀ it is a sum of squares of gradients that backpropagation gives of s_k; in a layer with inputs a and
//! gradients δ such a gradient is δ ⊗ a.

use super::Network;
use crate::dataset::Split;
use crate::error::Result;
use crate::kernels::gemm::{Matrix, multiply};
use crate::memory;
use crate::model::loss::Loss;
use crate::model::{Block, Dense, Tile};
use anyhow::{Context, bail, ensure};
use std::ops::Range;

/// Rows of a tile.
const ROWS: usize = 256;

/// What is kept of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// Everything: N² numbers.
    Full,
    /// Everything that concerns the last layer.
    LastLayer,
    /// A Kronecker product for each layer (Martens & Grosse 2015; Ritter, Botev & Barber 2018).
    Kronecker,
    /// The diagonal.
    Diagonal,
}

/// A part of the matrix: that of some parameters.
pub struct Part {
    /// Where they are among all, output by output, in each input by input and the bias last.
    pub places: Vec<usize>,
    /// The part.
    pub of: Of,
}

/// What is kept of it.
pub enum Of {
    /// All of it, `[places, places]`.
    Full(Vec<f64>),
    /// The two factors of outputs and inputs, of which the second is a mean over examples: `[outputs, outputs]`, `[inputs, inputs]`.
    Kronecker(Vec<f64>, Vec<f64>),
    /// Its diagonal.
    Diagonal(Vec<f64>),
}

impl Network {
    /// The Gauss-Newton matrix of the sum of the losses of all training examples.
    ///
    /// # Errors
    /// If the model is not made of dense layers, the loss is a formula, or there is no room for the matrix.
    pub fn gauss_newton(&self, w: &[f32], structure: Structure) -> Result<Vec<Part>> {
        let layers = self.model.dense().with_context(|| {
            format!(
                "the Gauss-Newton matrix is computed for fully connected layers (model::mlp), not for {}",
                self.model.describe().lines().next().unwrap_or_default()
            )
        })?;
        if let Loss::Formula(f) = &self.loss {
            bail!(
                "the Gauss-Newton matrix is computed for the losses \"cross_entropy\" and \"squared_error\", not for {}",
                f.describe()
            );
        }
        ensure!(
            self.dataset.likelihood_n.is_none(),
            "a data set compressed to second moments has no single examples; take the original data"
        );
        let mut sums = Sums::new(&layers, structure)?;
        let split = &self.dataset.train;
        let mut tile = Tile::default();
        for start in (0..split.rows).step_by(ROWS) {
            crate::error::go_on("a Gauss-Newton matrix")?;
            let rows = start..(start + ROWS).min(split.rows);
            for block in &mut tile.blocks(&*self.model, rows.len(), 1, true) {
                split.copy(rows.clone(), block.inputs);
                self.model.forward(self.parts(w).0, block)?;
                self.add(&layers, &mut sums, w, split, rows.clone(), block)?;
            }
        }
        Ok(sums.parts())
    }

    /// Add some rows whose outputs are known.
    fn add(
        &self,
        layers: &[Dense],
        sums: &mut Sums,
        w: &[f32],
        split: &Split,
        rows: Range<usize>,
        block: &mut Block,
    ) -> Result<()> {
        // Of a row that counts twice every square counts twice.
        let roots: Vec<f32> = match &split.weights {
            Some(all) => all[rows].iter().map(|w| w.sqrt()).collect(),
            None => vec![1.0; rows.len()],
        };
        let columns = self.model.outputs();
        let outputs = block
            .activations
            .last()
            .map_or(&[][..], |a| &a[..])
            .to_vec();
        let inputs: Vec<Vec<f32>> = layers
            .iter()
            .enumerate()
            .map(|(l, layer)| match l {
                0 => with_one(block.inputs, layer),
                l => with_one(block.activations[l - 1], layer),
            })
            .collect();
        sums.add_inputs(&inputs, &roots);
        for k in 0..columns {
            if let Some(last) = block.deltas.last_mut() {
                let each = last
                    .chunks_exact_mut(columns)
                    .zip(outputs.chunks_exact(columns));
                for ((s, z), root) in each.zip(&roots) {
                    self.root_of_curvature(k, z, *root, s);
                }
            }
            self.model.backward(self.parts(w).0, block)?;
            sums.add_gradients(&inputs, &block.deltas);
        }
        Ok(())
    }

    /// s_k of Λ = Σ_k s_k s_kᵀ at these outputs, times a factor.
    fn root_of_curvature(&self, k: usize, outputs: &[f32], factor: f32, s: &mut [f32]) {
        if self.loss == Loss::SquaredError {
            s.fill(0.0);
            s[k] = std::f32::consts::SQRT_2 * factor;
            return;
        }
        // diag(p) - p pᵀ = Σ_k p_k (e_k - p)(e_k - p)ᵀ.
        let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let each = |z: &f32| f64::from(z - most).exp();
        let total: f64 = outputs.iter().map(each).sum();
        let root = (each(&outputs[k]) / total).sqrt() * f64::from(factor);
        for (j, (s, z)) in s.iter_mut().zip(outputs).enumerate() {
            let unit = f64::from(u8::from(j == k));
            *s = (root * (unit - each(z) / total)) as f32;
        }
    }
}

/// Inputs of a layer with a 1 for the bias behind each row, if it has one.
fn with_one(inputs: &[f32], layer: &Dense) -> Vec<f32> {
    if layer.bias.is_empty() {
        return inputs.to_vec();
    }
    let rows = inputs.chunks_exact(layer.fan_in);
    rows.flat_map(|row| row.iter().copied().chain([1.0]))
        .collect()
}

/// Where the parameters of a layer are.
fn places(layer: &Dense) -> Vec<usize> {
    let of_output = |o: usize| {
        let weight = move |j: usize| match layer.flipped {
            false => layer.weight.start + o * layer.fan_in + j,
            true => layer.weight.start + j * layer.fan_out + o,
        };
        let bias = (!layer.bias.is_empty()).then_some(layer.bias.start + o);
        (0..layer.fan_in).map(weight).chain(bias)
    };
    (0..layer.fan_out).flat_map(of_output).collect()
}

/// Sums over rows.
struct Sums {
    layers: Range<usize>,
    structure: Structure,
    /// Inputs of each layer, the bias counted, and its outputs.
    shapes: Vec<(usize, usize)>,
    parts: Vec<Part>,
    /// The sum of the weights of rows.
    rows: f64,
    /// Products in single precision, of one tile.
    product: Vec<f32>,
}

impl Sums {
    fn new(layers: &[Dense], structure: Structure) -> Result<Self> {
        let used = match structure {
            Structure::LastLayer => layers.len() - 1..layers.len(),
            _ => 0..layers.len(),
        };
        let all: Vec<Vec<usize>> = layers[used.clone()].iter().map(places).collect();
        let shape = |l: &Dense| (l.fan_in + usize::from(!l.bias.is_empty()), l.fan_out);
        let shapes: Vec<_> = layers.iter().map(shape).collect();
        let whole = matches!(structure, Structure::Full | Structure::LastLayer);
        let parts = if whole {
            let places = all.concat();
            let n = places.len();
            // The matrix, its eigenvectors, and work.
            memory::check(
                32 * (n as u128).pow(2),
                &format!("the curvature of {n} parameters"),
            )?;
            let of = Of::Full(vec![0.0; n * n]);
            vec![Part { places, of }]
        } else {
            let part = |(places, (inputs, outputs)): (Vec<usize>, &(usize, usize))| {
                let of = match structure {
                    Structure::Kronecker => {
                        Of::Kronecker(vec![0.0; outputs * outputs], vec![0.0; inputs * inputs])
                    }
                    _ => Of::Diagonal(vec![0.0; places.len()]),
                };
                Part { places, of }
            };
            all.into_iter().zip(&shapes).map(part).collect()
        };
        Ok(Self {
            layers: used,
            structure,
            shapes,
            parts,
            rows: 0.0,
            product: Vec::new(),
        })
    }

    /// Take in what goes into the layers.
    fn add_inputs(&mut self, inputs: &[Vec<f32>], roots: &[f32]) {
        self.rows += roots.iter().map(|r| f64::from(r * r)).sum::<f64>();
        for ((part, x), (fan_in, _)) in self.parts.iter_mut().zip(inputs).zip(&self.shapes) {
            if let Of::Kronecker(_, sum) = &mut part.of {
                let weighted = x.chunks_exact(*fan_in).zip(roots);
                let weighted: Vec<f32> = weighted
                    .flat_map(|(row, root)| row.iter().map(move |x| x * root))
                    .collect();
                add_squares(sum, &mut self.product, &weighted, *fan_in);
            }
        }
    }

    /// Take in gradients by the inputs of the activation functions.
    fn add_gradients(&mut self, inputs: &[Vec<f32>], deltas: &[&mut [f32]]) {
        if matches!(self.structure, Structure::Full | Structure::LastLayer) {
            let rows = deltas[0].len() / self.shapes[0].1;
            let mut gradients = Vec::new();
            for row in 0..rows {
                for l in self.layers.clone() {
                    let (fan_in, fan_out) = self.shapes[l];
                    let x = &inputs[l][row * fan_in..(row + 1) * fan_in];
                    let delta = &deltas[l][row * fan_out..(row + 1) * fan_out];
                    gradients.extend(delta.iter().flat_map(|d| x.iter().map(move |x| d * x)));
                }
            }
            let part = &mut self.parts[0];
            if let Of::Full(sum) = &mut part.of {
                add_squares(sum, &mut self.product, &gradients, part.places.len());
            }
            return;
        }
        for (l, part) in self.parts.iter_mut().enumerate() {
            let (fan_in, fan_out) = self.shapes[l];
            match &mut part.of {
                Of::Kronecker(sum, _) => {
                    add_squares(sum, &mut self.product, deltas[l], fan_out);
                }
                Of::Diagonal(sum) => {
                    let square = |x: &[f32]| x.iter().map(|x| x * x).collect::<Vec<_>>();
                    let (d, x) = (square(deltas[l]), square(&inputs[l]));
                    let rows = d.len() / fan_out;
                    let (d, x) = (
                        Matrix::new(&d, rows, fan_out),
                        Matrix::new(&x, rows, fan_in),
                    );
                    self.product.resize(sum.len(), 0.0);
                    multiply(&mut self.product, d.transposed(), x, false);
                    add_to(sum, &self.product);
                }
                Of::Full(_) => {}
            }
        }
    }

    /// The parts, of which one factor of a product is divided by the number of rows.
    fn parts(mut self) -> Vec<Part> {
        for part in &mut self.parts {
            if let Of::Kronecker(_, inputs) = &mut part.of {
                inputs.iter_mut().for_each(|x| *x /= self.rows);
            }
        }
        self.parts
    }
}

/// Add xᵀx to a sum in double precision; x is `[rows, columns]`.
fn add_squares(sum: &mut [f64], product: &mut Vec<f32>, x: &[f32], columns: usize) {
    let x = Matrix::new(x, x.len() / columns, columns);
    product.resize(sum.len(), 0.0);
    multiply(product, x.transposed(), x, false);
    add_to(sum, product);
}

fn add_to(sum: &mut [f64], product: &[f32]) {
    let pairs = sum.iter_mut().zip(product);
    pairs.for_each(|(s, p)| *s += f64::from(*p));
}
