//! Losses: a number per example, and its derivative with respect to the model's outputs.

use super::formula::Formula;
pub use super::rows::{RowTargets, Sums, TileTargets};
use crate::error::Result;
use crate::kernels::elementwise::{double, misclassified, softmax_rows, squared_error};
use crate::kernels::sequence::softmax_shares;
use crate::kernels::update::dot;
use crate::model::Declared;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Outputs whose place the gradient takes.
    static COPY: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// A loss per example. `L(w)` is its mean over examples; that of a row with labels at several positions is the mean over them.
#[derive(Debug, Clone, PartialEq)]
pub enum Loss {
    /// `-ln softmax(output)[label]`
    CrossEntropy,
    /// `|target - output|²`, summed over components, without ½
    SquaredError,
    /// A formula.
    Formula(Arc<Formula>),
}

const NO_CLASSES: &str = "cross_entropy needs a data set with classes, this one has real targets; use loss: \"squared_error\"";

/// Change what belongs to each row, so many numbers one after the other, by its weight, if there are weights.
fn weigh<T>(all: &mut [T], weights: &[f32], change: impl Fn(&mut T, f32)) {
    let each = all.len().checked_div(weights.len()).unwrap_or(0);
    for (of_row, w) in all.chunks_exact_mut(each.max(1)).zip(weights) {
        of_row.iter_mut().for_each(|x| change(x, *w));
    }
}

impl Loss {
    /// Names, as in scripts.
    pub const NAMES: &'static [&'static str] = &["cross_entropy", "squared_error"];

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Loss::CrossEntropy => Self::NAMES[0].into(),
            Loss::SquaredError => Self::NAMES[1].into(),
            Loss::Formula(f) => f.describe().into(),
        }
    }

    /// The parameters of its own.
    pub fn parameters(&self) -> &[Declared] {
        match self {
            Loss::Formula(f) => f.parameters(),
            _ => &[],
        }
    }

    /// The loss of each position of rows with these outputs, times the weight of its row; `own` are the parameters of the loss itself.
    ///
    /// # Errors
    /// If the targets are no classes, but the loss is the cross-entropy.
    pub fn of_each(
        &self,
        own: &[f32],
        targets: TileTargets,
        columns: usize,
        outputs: &[f32],
    ) -> Result<Vec<f64>> {
        let each = outputs.chunks_exact(columns);
        let mut losses: Vec<f64> = match (self, targets.of) {
            (Loss::Formula(f), _) => return Ok(f.of_each(own, targets, outputs)),
            (Loss::CrossEntropy, RowTargets::Classes(labels)) => {
                let loss = |(z, label): (&[f32], &u32)| {
                    let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max) as f64;
                    let sum: f64 = z.iter().map(|z| (*z as f64 - most).exp()).sum();
                    most + sum.ln() - z[*label as usize] as f64
                };
                each.zip(labels).map(loss).collect()
            }
            (Loss::SquaredError, RowTargets::Classes(labels)) => {
                let loss =
                    |(z, label): (&[f32], &u32)| dot(z, z) - 2.0 * z[*label as usize] as f64 + 1.0;
                each.zip(labels).map(loss).collect()
            }
            (Loss::SquaredError, RowTargets::Values(values)) => {
                let square = |(z, y): (&f32, &f32)| (*z as f64 - *y as f64).powi(2);
                let loss = |(z, y): (&[f32], &[f32])| z.iter().zip(y).map(square).sum();
                each.zip(values.chunks_exact(columns)).map(loss).collect()
            }
            (Loss::CrossEntropy, RowTargets::Values(_)) => anyhow::bail!(NO_CLASSES),
        };
        weigh(&mut losses, targets.weights, |l, w| *l *= f64::from(w));
        Ok(losses)
    }

    /// Loss and errors of positions with these outputs; fills `delta` with dLoss/dOutput (of the sum over rows, not their mean). A `delta` without room
    /// is one that goes in place of the outputs.
    ///
    /// A row has labels at `positions` positions, of `columns` outputs each, and its loss is their mean; one with real targets has one.
    /// `own` are the parameters of the loss itself; the gradient with respect to them goes into `slopes`, which were 0. `log_sum` is room for a number
    /// per position.
    pub fn evaluate(
        &self,
        own: &[f32],
        slopes: &mut [f64],
        targets: TileTargets,
        [positions, columns]: [usize; 2],
        (outputs, delta): (&mut [f32], &mut [f32]),
        log_sum: &mut [f64],
    ) -> Result<Sums> {
        let mut with = |outputs: &[f32], delta: &mut [f32]| {
            self.evaluate_apart(
                own,
                slopes,
                targets,
                [positions, columns],
                outputs,
                delta,
                log_sum,
            )
        };
        if !delta.is_empty() {
            return with(outputs, delta);
        }
        COPY.with_borrow_mut(|copy| {
            copy.clear();
            copy.extend_from_slice(outputs);
            with(copy, outputs)
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn evaluate_apart(
        &self,
        own: &[f32],
        slopes: &mut [f64],
        targets: TileTargets,
        [positions, columns]: [usize; 2],
        outputs: &[f32],
        delta: &mut [f32],
        log_sum: &mut [f64],
    ) -> Result<Sums> {
        let mut sums = Sums::default();
        // What a position counts in its row: exactly 1 where it is the only one.
        let share = 1.0 / positions as f32;
        match (self, targets.of) {
            (Loss::Formula(f), _) => {
                sums = f.evaluate(own, slopes, targets, positions, outputs, delta);
            }
            (Loss::CrossEntropy, RowTargets::Classes(labels)) => {
                delta.copy_from_slice(outputs);
                match positions {
                    1 => softmax_rows(delta, columns, log_sum),
                    _ => softmax_shares(delta, columns, log_sum, share),
                }
                let each = outputs
                    .chunks_exact(columns)
                    .zip(delta.chunks_exact_mut(columns));
                for (((z, d), &label), l) in each.zip(labels).zip(log_sum.iter()) {
                    let label = label as usize;
                    sums.loss += *l - z[label] as f64;
                    sums.errors += f64::from(misclassified(z, label));
                    d[label] -= share;
                }
            }
            (Loss::SquaredError, RowTargets::Values(values)) => {
                sums.loss = squared_error(outputs, values, delta);
            }
            (Loss::SquaredError, RowTargets::Classes(labels)) => {
                // The target is 1 for the label and 0 elsewhere: |z - target|² = |z|² - 2 z_label + 1.
                double(outputs, delta);
                let each = outputs
                    .chunks_exact(columns)
                    .zip(delta.chunks_exact_mut(columns));
                for ((z, d), &label) in each.zip(labels) {
                    let label = label as usize;
                    sums.loss += dot(z, z) - 2.0 * z[label] as f64 + 1.0;
                    sums.errors += f64::from(misclassified(z, label));
                    d[label] -= 2.0;
                }
                if positions > 1 {
                    delta.iter_mut().for_each(|d| *d *= share);
                }
            }
            (Loss::CrossEntropy, RowTargets::Values(_)) => {
                anyhow::bail!(NO_CLASSES)
            }
        }
        if !targets.weights.is_empty() && !matches!(self, Loss::Formula(_)) {
            sums.loss = self.of_each(own, targets, columns, outputs)?.iter().sum();
            weigh(delta, targets.weights, |d, w| *d *= w);
        }
        sums.loss /= positions as f64;
        sums.errors /= positions as f64;
        Ok(sums)
    }
}
