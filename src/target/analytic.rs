//! Analytic targets: energies with known answers, with examples whose gradient noise is known too.
//!
//! The loss of example i is `U(w) + ξ_i·w` with `Σ_i ξ_i = 0`: over all examples the noise cancels exactly, over a minibatch of m
//! drawn with replacement the gradient has variance `noise²/m` per component (up to the finite sample).

use super::{Potential, Rows, Workspace};
use crate::error::Result;
use crate::model::Layout;
use crate::model::loss::Sums;
use crate::options::{Entry, Kind, Options, Range, Spec, option};
use crate::rng::{Purpose, Stream};
use std::sync::Arc;

/// A function of the parameters with a hand-derived gradient.
type Energy = Box<dyn Fn(&[f32], Option<&mut [f32]>) -> f64 + Send + Sync>;

/// An analytic energy with noisy examples.
pub struct Analytic {
    text: String,
    layout: Layout,
    energy: Energy,
    /// ξ, `[n, N]`; one row of zeros without noise.
    noise: Vec<f32>,
    examples: usize,
}

const EXAMPLES: Spec = option(
    "examples",
    Kind::Int(Range::AtLeast(1.0)),
    "1",
    "n, the number of examples that carry the noise.",
);
const NOISE: Spec = option(
    "noise",
    Kind::Float(Range::NonNegative),
    "0",
    "Standard deviation of one example's gradient around the mean, per component.",
);
const SEED: Spec = option(
    "seed",
    Kind::Int(Range::NonNegative),
    "1",
    "Seed of the noise.",
);

/// `potential::…`: analytic energies, as the first argument of `target`.
pub const REGISTRY: &[Entry<Arc<dyn Potential>>] = &[
    Entry {
        name: "gaussian",
        doc: "An anisotropic Gaussian: U = ½ Σ k_i (w_i - 1)², k spaced geometrically from 1 to `condition`.\n\n\
              Exact: mean 1, variance T/k_i.",
        arguments: &[],
        options: &[
            option(
                "dim",
                Kind::Int(Range::AtLeast(1.0)),
                "10",
                "Number of parameters.",
            ),
            option(
                "condition",
                Kind::Float(Range::AtLeast(1.0)),
                "10",
                "Ratio of the largest to the smallest curvature.",
            ),
            EXAMPLES,
            NOISE,
            SEED,
        ],
        example: "potential::gaussian(#{ dim: 4, condition: 100.0 })",
        build: |o| {
            let (dim, condition) = (checked_dim(o)?, o.float("condition")?);
            let k: Vec<f64> = (0..dim).map(|i| stiffness(i, dim, condition)).collect();
            let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
                let d = |i: usize| w[i] as f64 - 1.0;
                if let Some(g) = grad {
                    g.iter_mut()
                        .enumerate()
                        .for_each(|(i, g)| *g = (k[i] * d(i)) as f32);
                }
                (0..w.len()).map(|i| 0.5 * k[i] * d(i) * d(i)).sum()
            };
            Analytic::build(
                o,
                format!("Gaussian of condition {condition}"),
                dim,
                Box::new(energy),
            )
        },
    },
    Entry {
        name: "double_well",
        doc: "Independent double wells: U = Σ barrier·(w_i² - 1)² + tilt·w_i.\n\n\
              The weight of the left well is known by one-dimensional quadrature.",
        arguments: &[],
        options: &[
            option(
                "dim",
                Kind::Int(Range::AtLeast(1.0)),
                "1",
                "Number of parameters, one well pair each.",
            ),
            option(
                "barrier",
                Kind::Float(Range::Positive),
                "1",
                "Height of the barrier at w = 0.",
            ),
            option(
                "tilt",
                Kind::Float(Range::Any),
                "0.3",
                "Energy difference per unit of w.",
            ),
            EXAMPLES,
            NOISE,
            SEED,
        ],
        example: "potential::double_well(#{ barrier: 2.0 })",
        build: |o| {
            let (barrier, tilt) = (o.float("barrier")?, o.float("tilt")?);
            let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
                let well = |x: f32| x as f64 * x as f64 - 1.0;
                if let Some(g) = grad {
                    for (g, w) in g.iter_mut().zip(w) {
                        *g = (4.0 * barrier * *w as f64 * well(*w) + tilt) as f32;
                    }
                }
                w.iter()
                    .map(|w| barrier * well(*w).powi(2) + tilt * *w as f64)
                    .sum()
            };
            Analytic::build(
                o,
                format!("double well, barrier {barrier}, tilt {tilt}"),
                checked_dim(o)?,
                Box::new(energy),
            )
        },
    },
];

/// Curvature i of a Gaussian: geometric from 1 to `condition`.
pub fn stiffness(i: usize, dim: usize, condition: f64) -> f64 {
    condition.powf(i as f64 / (dim.max(2) - 1) as f64)
}

/// The number of parameters, if parameters and noise fit into memory and the noise has examples to live in.
fn checked_dim(o: &Options) -> Result<usize> {
    let (dim, examples) = (o.size("dim")?, o.size("examples")?);
    anyhow::ensure!(
        examples.checked_mul(dim).is_some_and(|n| n < 1 << 28),
        "{}: examples × dim is more than 2^28",
        o.owner()
    );
    anyhow::ensure!(
        o.float("noise")? == 0.0 || examples > 1,
        "{}: option 'noise' needs at least two examples, so that their noise can cancel",
        o.owner()
    );
    Ok(dim)
}

impl Analytic {
    fn build(o: &Options, text: String, dim: usize, energy: Energy) -> Result<Arc<dyn Potential>> {
        let (examples, noise) = (o.size("examples")?, o.float("noise")?);
        let stream = Stream::new(o.int("seed")?, Purpose::Dataset, 0, 0);
        let mut xi = vec![0f32; examples * dim];
        if noise > 0.0 && examples > 1 {
            crate::kernels::normal::fill_normal(&stream, &mut xi);
            for j in 0..dim {
                let column = |f: &dyn Fn(f64) -> f64| {
                    (0..examples)
                        .map(|i| f(xi[i * dim + j] as f64))
                        .sum::<f64>()
                        / examples as f64
                };
                let mean = column(&|x| x);
                let sd = column(&|x| (x - mean).powi(2)).sqrt();
                for i in 0..examples {
                    xi[i * dim + j] = ((xi[i * dim + j] as f64 - mean) / sd * noise) as f32;
                }
            }
        }
        let layout = Layout::new([("w".to_string(), vec![dim])]);
        Ok(Arc::new(Analytic {
            text: format!("{text}, N = {dim}"),
            layout,
            energy,
            noise: xi,
            examples,
        }))
    }
}

impl Potential for Analytic {
    fn describe(&self) -> String {
        self.text.clone()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn examples(&self) -> usize {
        self.examples
    }

    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        _: &mut Workspace,
    ) -> Result<Sums> {
        let dim = w.len();
        let mut grad = grad;
        let mut loss = (self.energy)(w, grad.as_deref_mut());
        let count = match rows {
            Rows::All => self.examples,
            Rows::Indices(i) => i.len(),
        };
        loss *= count as f64;
        if let Some(g) = grad.as_deref_mut() {
            g.iter_mut().for_each(|g| *g *= count as f32);
        }
        if let Rows::Indices(indices) = rows {
            for &i in indices {
                let xi = &self.noise[i as usize * dim..(i as usize + 1) * dim];
                loss += crate::kernels::update::dot(xi, w);
                if let Some(g) = grad.as_deref_mut() {
                    crate::kernels::update::add(g, xi);
                }
            }
        }
        Ok(Sums { loss, errors: 0 })
    }

    fn split_sums(&self, _: &[f32], split: &str, _: &mut Workspace) -> Result<(Sums, usize)> {
        anyhow::bail!("an analytic target has no split \"{split}\"")
    }

    fn classifies(&self) -> bool {
        false
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.noise
            .iter()
            .for_each(|x| hash.update(&x.to_le_bytes()));
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        let mut w = vec![0.0; self.layout.len()];
        crate::kernels::normal::fill_normal(&stream, &mut w);
        w
    }
}
