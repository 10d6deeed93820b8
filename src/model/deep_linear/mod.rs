//! Deep linear networks: a product of matrices, no biases.

pub mod coefficient;
pub mod problem;

pub use coefficient::{LearningCoefficient, learning_coefficient};
pub use problem::{CLASSES, Class, Problem};

use super::Model;
use super::initialise::{self, Initialise};
use super::mlp::{Mlp, widths};
use crate::kernels::elementwise::Activation;
use crate::options::{Entry, Kind, Range, required};
use std::sync::Arc;

/// `model::deep_linear`.
pub const ENTRY: Entry<Arc<dyn Model>> = Entry {
    name: "deep_linear",
    doc: "A deep linear network: `y = W_M … W_1 x`, no biases.\n\n\
          Tensors are named `w1` [H_1, H_0], `w2`, …. Its local learning coefficient is known exactly (Aoyagi; Hitchcock & Hoogland 2025), \
          which makes it the benchmark of learning-coefficient estimators.",
    arguments: &[],
    options: &[
        required(
            "widths",
            Kind::Ints(Range::AtLeast(1.0)),
            "H_0 … H_M, from input to output, at least two.",
        ),
        initialise::OPTION,
        initialise::SCALE,
    ],
    example: "model::deep_linear(#{ widths: [5, 4, 3], init: \"glorot\" })",
    build: |o| Ok(network(widths(o, "widths")?, Initialise::from_options(o)?)),
};

fn network(widths: Vec<usize>, initialise: Initialise) -> Arc<dyn Model> {
    let identity = Activation::Identity;
    Arc::new(Mlp::new(
        "deep_linear",
        widths,
        identity,
        identity,
        false,
        initialise,
    ))
}
