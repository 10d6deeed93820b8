//! The Gaussian of the Laplace approximation: a precision from the Gauss-Newton matrix and the prior, and draws.

use crate::diagnostic::curvature::Block;
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::rng::{Purpose, Stream};
use crate::target::Target;
use crate::target::network::gauss_newton::{Of, Part, Structure};
use crate::target::prior::Parameters;
use anyhow::{Context, ensure};
use std::sync::Arc;

/// Relative difference of curvatures of a prior below which they count as equal: they are known by differences.
const ALIKE: f64 = 1e-3;

/// How far weights are moved to measure the curvature of a prior.
const MOVE: f32 = 1.0 / 128.0;

/// A Gaussian around an optimum.
#[derive(Debug, Clone)]
pub struct Gaussian {
    mode: Arc<Vec<f32>>,
    structure: Structure,
    blocks: Vec<Block>,
}

impl Gaussian {
    /// N(w, H⁻¹), H = G/T + ∇²R, G being the Gauss-Newton matrix of E in this structure.
    ///
    /// # Errors
    /// If the target is no network of dense layers, its prior couples parameters, or a direction is flat and there is no floor.
    pub fn around(
        target: &Target,
        w: &[f32],
        temperature: f64,
        structure: Structure,
        floor: Option<f64>,
    ) -> Result<Self> {
        let network = target.network("laplace: option 'structure'")?;
        ensure!(
            network.model().layout().len() == target.dim(),
            "laplace: some parameters are not those of the model, but of the loss or of the prior; their curvature is known by structure: \"hessian\" alone"
        );
        let parts = network.gauss_newton(w, structure).context("laplace")?;
        let scale = target.scale() / (target.examples() as f64 * temperature);
        let prior = prior_curvature(target, w)?;
        let block = |part: Part| {
            let mut block = block(part, scale, &prior)?;
            if let Some(floor) = floor {
                block.raise(floor);
            }
            ensure!(
                block.is_positive(),
                "laplace: in some directions neither the data nor the prior has any curvature; give a prior, or a floor"
            );
            Ok(block)
        };
        Ok(Self {
            mode: Arc::new(w.to_vec()),
            structure,
            blocks: parts.into_iter().map(block).collect::<Result<_>>()?,
        })
    }

    /// ln det of its precision.
    pub fn ln_det(&self) -> f64 {
        self.blocks.iter().map(Block::ln_det).sum()
    }

    /// The smallest and the largest precision.
    pub fn extremes(&self) -> (f64, f64) {
        let each = self.blocks.iter().map(Block::extremes);
        each.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((f64::NAN, f64::NAN))
    }

    /// Share of the precisions that the floor replaces.
    pub fn at_floor(&self) -> f64 {
        let raised: usize = self.blocks.iter().map(Block::at_floor).sum();
        let all: usize = self.blocks.iter().map(|b| b.places().len()).sum();
        raised as f64 / all.max(1) as f64
    }

    /// What it is, in words.
    pub fn how(&self) -> String {
        match self.structure {
            Structure::Full => "Gauss-Newton matrix".into(),
            Structure::Kronecker => {
                "Gauss-Newton matrix, a Kronecker product for each layer".into()
            }
            Structure::Diagonal => "diagonal of the Gauss-Newton matrix".into(),
            Structure::LastLayer => {
                "Gauss-Newton matrix of the last layer; the others are fixed, so there is no ln Z"
                    .into()
            }
        }
    }

    /// So many draws; the i-th of a seed is the same, however many there are.
    pub fn draws(&self, count: usize, seed: u64) -> Parameters {
        let draw = |i: usize| {
            let mut normals = vec![0.0; self.mode.len()];
            let stream = Stream::new(seed, Purpose::Approximation, 0, i as u64);
            fill_normal(&stream, &mut normals);
            let mut w: Vec<f64> = self.mode.iter().map(|w| f64::from(*w)).collect();
            self.blocks
                .iter()
                .for_each(|b| b.add_draw(&normals, &mut w));
            Arc::new(w.into_iter().map(|w| w as f32).collect())
        };
        Parameters {
            vectors: (0..count).map(draw).collect(),
        }
    }
}

/// The precision of some parameters: `scale` times the part of the matrix, plus that of the prior.
fn block(part: Part, scale: f64, prior: &[f64]) -> Result<Block> {
    let own: Vec<f64> = part.places.iter().map(|p| prior[*p]).collect();
    let scaled = |x: Vec<f64>| x.into_iter().map(|x| scale * x).collect::<Vec<_>>();
    match part.of {
        Of::Diagonal(sum) => {
            let each = scaled(sum).into_iter().zip(own).map(|(a, b)| a + b);
            Ok(Block::diagonal(part.places, each.collect()))
        }
        Of::Full(sum) => {
            let (mut matrix, n) = (scaled(sum), own.len());
            (0..n).for_each(|i| matrix[i * n + i] += own[i]);
            Block::full(part.places, &matrix)
        }
        Of::Kronecker(outputs, inputs) => {
            let fan_in = (inputs.len() as f64).sqrt().round() as usize;
            let first = &own[..fan_in];
            let alike = |(k, t): (usize, &f64)| (t - first[k % fan_in]).abs() <= ALIKE * t.abs();
            ensure!(
                own.iter().enumerate().all(alike) && first.iter().all(|t| *t >= 0.0),
                "laplace: structure \"kronecker\" needs a prior whose precision is the same for all weights of an input, and not below 0; take \"full\" or \"diagonal\""
            );
            Block::kronecker(part.places, &scaled(outputs), &inputs, first).context("laplace")
        }
    }
}

/// The diagonal of ∇²R.
///
/// # Errors
/// If R is no sum over single parameters.
fn prior_curvature(target: &Target, w: &[f32]) -> Result<Vec<f64>> {
    let prior = target.prior();
    let along = |sign: &dyn Fn(usize) -> f32| -> Vec<f64> {
        let gradient = |step: f32| {
            let moved = w.iter().enumerate().map(|(i, w)| w + step * sign(i));
            let mut out = vec![0.0; w.len()];
            prior.add_rest(&moved.collect::<Vec<_>>(), &mut out);
            out
        };
        let (up, down) = (gradient(MOVE), gradient(-MOVE));
        let each = up.iter().zip(&down).enumerate();
        let twice = 2.0 * f64::from(MOVE);
        each.map(|(i, (u, d))| f64::from(sign(i)) * (f64::from(*u) - f64::from(*d)) / twice)
            .collect()
    };
    // Of a sum over single parameters the signs do not matter.
    let together = along(&|_| 1.0);
    let stream = Stream::new(1, Purpose::Probe, 0, 0);
    let mixed = along(&|i| {
        if stream.uniform(i as u32) < 0.5 {
            -1.0
        } else {
            1.0
        }
    });
    let size = together.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let differ = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-2 * size;
    ensure!(
        !together.iter().zip(&mixed).any(differ),
        "laplace: the prior couples parameters; its curvature is known by structure: \"hessian\" alone"
    );
    let (precision, _) = prior.pull();
    Ok(together.into_iter().map(|x| precision + x).collect())
}
