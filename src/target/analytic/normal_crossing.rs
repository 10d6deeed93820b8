//! Normal crossings: the singularities whose learning coefficient is known.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked, vector};
use crate::model::deep_linear::LearningCoefficient;
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::normal_crossing`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "normal_crossing",
    doc: "A normal crossing, the normal form of a singularity: U = Π_j w_j^{2k_j}, k = `exponents`.\n\n\
          Exact: the learning coefficient is λ = min_j 1/(2k_j), and its multiplicity m is the number of j that attain it: in a region around 0, \
          ∫ exp(-βU) dw ~ C β^{-λ} (ln β)^{m-1}, so that β⟨U⟩ → λ - (m - 1)/ln β as β → ∞. With a single exponent, ⟨U⟩ = T/2k at any T \
          without any prior.\n\n\
          U is 0 wherever a w_j is: with several exponents exp(-U/T) cannot be normalised, so add prior::gaussian or prior::uniform_box. \
          For energy: \"tempered\", ask for n `examples`.\n\n\
          Source: Watanabe 2009, Algebraic geometry and statistical learning theory (there K(w) is in this form after resolution).",
    arguments: &["exponents"],
    options: &[
        option(
            "exponents",
            Kind::Ints(Range::Between(1.0, 100.0)),
            "[2, 1]",
            "k_j, one for each parameter; U has twice this power of it.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "target(potential::normal_crossing([2, 1], #{ examples: 1000 }), #{ energy: \"tempered\", prior: prior::uniform_box(2.0) })",
    build: |o| {
        let exponents = o.sizes("exponents").unwrap_or_default();
        let Some(largest) = exponents.iter().max() else {
            anyhow::bail!(
                "{}: option 'exponents' is empty; give one k_j per parameter",
                o.owner()
            );
        };
        let multiplicity = exponents.iter().filter(|k| *k == largest).count();
        let text = format!(
            "normal crossing, exponents {exponents:?}, λ = 1/{}, multiplicity {multiplicity}",
            2 * largest
        );
        let dim = checked(o, exponents.len())?;
        let powers: Vec<i32> = exponents.iter().map(|k| 2 * *k as i32).collect();
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let product: f64 = w
                .iter()
                .zip(&powers)
                .map(|(w, power)| (*w as f64).powi(*power))
                .product();
            if let Some(g) = grad {
                for ((g, w), power) in g.iter_mut().zip(w).zip(&powers) {
                    // At w_j = 0 every component has a factor of 0, as all powers are at least 2.
                    *g = if *w == 0.0 {
                        0.0
                    } else {
                        (*power as f64 * product / *w as f64) as f32
                    };
                }
            }
            product
        };
        let coefficient = LearningCoefficient {
            lambda: 0.5 / *largest as f64,
            multiplicity: multiplicity as u64,
        };
        Analytic::with_coefficient(o, text, vector(dim), Box::new(energy), Some(coefficient))
    },
};
