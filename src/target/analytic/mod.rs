//! Analytic targets: energies with known answers, with examples whose gradient noise is known too.
//!
//! The loss of example i is `U(w) + ξ_i·w` with `Σ_i ξ_i = 0`: over all examples the noise cancels exactly, over a minibatch of m
//! drawn with replacement the gradient has variance `noise²/m` per component (up to the finite sample). Only `mixture` has real
//! examples instead.

mod banana;
mod double_well;
mod eight_schools;
mod funnel;
mod gaussian;
mod gaussian_mixture;
mod mixture;
#[cfg(test)]
mod mixture_tests;
mod normal_crossing;
mod rosenbrock;
mod student_t;
#[cfg(test)]
mod tests;

use super::{Potential, Rows, Workspace};
use crate::error::{Result, did_you_mean};
use crate::model::Layout;
use crate::model::deep_linear::LearningCoefficient;
use crate::model::loss::Sums;
use crate::options::{Entry, Kind, Options, Range, Spec, option};
use crate::rng::{Purpose, Stream};
pub use gaussian::stiffness;
use std::sync::Arc;

/// A function of the parameters with a hand-derived gradient, in double precision inside.
type Energy = Box<dyn Fn(&[f32], Option<&mut [f32]>) -> f64 + Send + Sync>;

/// An analytic energy with noisy examples.
pub(crate) struct Analytic {
    text: String,
    layout: Layout,
    energy: Energy,
    /// ξ, `[n, N]`; zeros without noise.
    noise: Vec<f32>,
    examples: usize,
    /// Its learning coefficient, where it is known.
    coefficient: Option<LearningCoefficient>,
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

/// The table of potentials, and their names as a text of the documentation.
macro_rules! potentials {
    ($first:ident, $($name:ident),* $(,)?) => {
        /// `potential::…`: analytic energies, as the first argument of `target`.
        pub const REGISTRY: &[Entry<Arc<dyn Potential>>] = &[$first::ENTRY, $($name::ENTRY),*];

        macro_rules! names {
            () => {
                concat!("\"", stringify!($first), "\"", $(", \"", stringify!($name), "\""),*)
            };
        }
        pub(super) use names;
    };
}
potentials! {
    gaussian,
    double_well,
    banana,
    funnel,
    eight_schools,
    normal_crossing,
    rosenbrock,
    student_t,
    mixture,
    gaussian_mixture,
}

/// The entry of that name; the error proposes the nearest one.
pub fn named(name: &str) -> Result<&'static Entry<Arc<dyn Potential>>> {
    REGISTRY.iter().find(|e| e.name == name).ok_or_else(|| {
        anyhow::anyhow!(
            "there is no potential '{name}'{}",
            did_you_mean(name, REGISTRY.iter().map(|e| e.name))
        )
    })
}

/// The option `dim`, after the checks of [`checked`].
fn checked_dim(o: &Options) -> Result<usize> {
    checked(o, o.size("dim")?)
}

/// The option `dim`, if it is even; of potentials that come in pairs.
fn even_dim(o: &Options) -> Result<usize> {
    let dim = checked_dim(o)?;
    anyhow::ensure!(
        dim.is_multiple_of(2),
        "{}: option 'dim' is {dim}, but must be even",
        o.owner()
    );
    Ok(dim)
}

/// The number of parameters, if parameters and noise fit into memory and the noise has examples to live in.
fn checked(o: &Options, dim: usize) -> Result<usize> {
    let examples = o.size("examples")?;
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

/// One tensor `w` of so many parameters.
fn vector(dim: usize) -> Layout {
    Layout::new([("w".to_string(), vec![dim])])
}

impl Analytic {
    /// With the noise that the options ask for; `text` names everything that defines the energy but N. Call [`checked`] first.
    fn build(
        o: &Options,
        text: String,
        layout: Layout,
        energy: Energy,
    ) -> Result<Arc<dyn Potential>> {
        Self::with_coefficient(o, text, layout, energy, None)
    }

    /// The same, with its learning coefficient.
    fn with_coefficient(
        o: &Options,
        text: String,
        layout: Layout,
        energy: Energy,
        coefficient: Option<LearningCoefficient>,
    ) -> Result<Arc<dyn Potential>> {
        let (examples, noise) = (o.size("examples")?, o.float("noise")?);
        let dim = layout.len();
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
        Ok(Arc::new(Analytic {
            text: format!("{text}, N = {dim}"),
            layout,
            energy,
            noise: xi,
            examples,
            coefficient,
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

    fn learning_coefficient(&self) -> Option<LearningCoefficient> {
        self.coefficient
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
        Ok(Sums { loss, errors: 0.0 })
    }

    fn split_sums(&self, _: &[f32], split: &str, _: &mut Workspace) -> Result<(Sums, usize)> {
        anyhow::bail!("an analytic target has no split \"{split}\"")
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.noise
            .iter()
            .for_each(|x| hash.update(&x.to_le_bytes()));
    }
}
