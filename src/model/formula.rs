//! Losses that are formulas of outputs and targets, compiled with their derivatives.

use super::named::Named;
use super::rows::{RowTargets, Sums, TileTargets};
use super::{Declared, Layout};
use crate::error::Result;
use crate::kernels::elementwise::misclassified;
use crate::kernels::tensor::{Binary, Graph, Scratch, Symbol, Tape, Tensor, Unary};
use anyhow::{Context, ensure};
use std::cell::RefCell;
use std::sync::Arc;

/// The loss of an example from its outputs, its target (of classes the label) and the parameters of the loss, as tensors that are traced.
pub type Write = Arc<dyn Fn(&Tensor, &Tensor, &Named) -> Result<Tensor> + Send + Sync>;

/// A loss that is compiled.
pub struct Formula {
    text: String,
    parameters: Vec<Declared>,
    tape: Arc<Tape>,
    link: Option<Unary>,
    outputs: usize,
    targets: usize,
    /// Whether rows have weights, which stand behind their targets.
    weighted: bool,
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.tape.bytes() == other.tape.bytes()
    }
}

impl std::fmt::Debug for Formula {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

thread_local! {
    /// Registers of tapes; outputs and targets side by side, losses, slopes.
    static BUFFERS: RefCell<(Scratch, Vec<f32>, Vec<f64>)> = RefCell::default();
}

impl Formula {
    /// Compile the loss of a model with so many outputs and of targets with so many components; `link` makes means of the first outputs, and
    /// where rows are `weighted` each loss is multiplied by the weight of its row.
    ///
    /// # Errors
    /// If it gives no number that depends on the outputs.
    pub fn new(
        name: &str,
        parameters: Vec<Declared>,
        outputs: usize,
        targets: usize,
        link: Option<Unary>,
        write: &Write,
        weighted: bool,
    ) -> Result<Self> {
        let layout = Layout::default().and(parameters.clone())?;
        let own = layout.traced()?;
        let out = Tensor::from(Symbol::columns(0..outputs));
        let y = Tensor::from(Symbol::columns(outputs..outputs + targets));
        let energy = write(&out, &y, &own)?;
        ensure!(
            energy.shape()?.rank() == 0,
            "the loss must be one number, but is a tensor of shape {}; sum it",
            energy.shape()?
        );
        let columns = outputs + targets + usize::from(weighted);
        let energy = match weighted {
            true => {
                let weight = Tensor::from(Symbol::columns(columns - 1..columns));
                energy.binary(Binary::Multiply, &weight.reshape(&[])?)?
            }
            false => energy,
        };
        let graph = Graph::new(&energy.symbol()?)?;
        let tape = Tape::with_moving(&graph, layout.len(), columns, outputs)?;
        ensure!(tape.is_active(), "the loss does not depend on the outputs");
        Ok(Self {
            text: name.into(),
            parameters,
            tape: Arc::new(tape),
            link,
            outputs,
            targets,
            weighted,
        })
    }

    /// An energy of parameters and of rows of so many inputs and targets, which stand for outputs and targets of a model.
    pub fn of_rows(text: &str, tape: Arc<Tape>, inputs: usize, targets: usize) -> Self {
        Self {
            text: text.into(),
            parameters: Vec::new(),
            tape,
            link: None,
            outputs: inputs,
            targets,
            weighted: false,
        }
    }

    /// How many outputs of the model it takes.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// How many numbers it predicts of a row with real targets.
    pub fn predicted(&self) -> usize {
        self.targets
    }

    /// The means of real targets from outputs: the first of them, or what a link makes of those; NaN where there are too few.
    pub fn means(&self, outputs: &[f32]) -> Vec<f32> {
        let mean = |k: usize, out: &[f32]| {
            let x = out.get(k).copied().unwrap_or(f32::NAN);
            match self.link {
                Some(Unary::Exp) => x.exp(),
                Some(Unary::Sigmoid) => 1.0 / (1.0 + (-x).exp()),
                _ => x,
            }
        };
        let each = outputs.chunks_exact(self.outputs);
        each.flat_map(|out| (0..self.targets).map(move |k| mean(k, out)))
            .collect()
    }

    /// Logarithms of the probabilities of classes, up to a constant per row: what the loss says of each label. Where that is no distribution, as of a loss
    /// with weights of classes, and there is an output for each class, these.
    pub fn logits(&self, own: &[f32], outputs: &[f32], classes: usize) -> Vec<f32> {
        let rows = outputs.len() / self.outputs;
        let mut all = vec![0.0; rows * classes];
        for class in 0..classes {
            let labels = vec![class as u32; rows];
            let targets = TileTargets::alike(RowTargets::Classes(&labels));
            let losses = self.of_each(own, targets, outputs);
            for (row, loss) in losses.iter().enumerate() {
                all[row * classes + class] = -*loss as f32;
            }
        }
        let sum = |row: &[f32]| row.iter().map(|x| f64::from(*x).exp()).sum::<f64>();
        let is_law = all
            .chunks_exact(classes)
            .all(|row| (sum(row) - 1.0).abs() < 1e-3);
        match self.outputs == classes && !is_law {
            true => outputs.to_vec(),
            false => all,
        }
    }

    /// A kernel of this name that computes it on an accelerator; see [`Tape::kernel`].
    ///
    /// # Errors
    /// If it is too long for that.
    pub fn kernel(&self, name: &str, labels: bool) -> Result<String> {
        let sizes = [self.outputs, self.targets];
        let kernel = self.tape.kernel(name, sizes, labels, self.weighted);
        kernel.with_context(|| format!("no device computes the loss {}", self.text))
    }

    /// What it is.
    pub fn describe(&self) -> &str {
        &self.text
    }

    /// The parameters of its own.
    pub fn parameters(&self) -> &[Declared] {
        &self.parameters
    }

    /// What it computes, as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.tape.bytes()
    }

    /// Outputs and targets side by side, and room for a loss per row.
    fn rows(
        &self,
        targets: TileTargets,
        outputs: &[f32],
        rows: &mut Vec<f32>,
        losses: &mut Vec<f64>,
    ) {
        rows.clear();
        let each = outputs.chunks_exact(self.outputs);
        losses.clear();
        losses.resize(each.len(), 0.0);
        let positions = each.len().checked_div(targets.weights.len()).unwrap_or(1);
        for (i, out) in each.enumerate() {
            rows.extend_from_slice(out);
            match targets.of {
                RowTargets::Classes(labels) => rows.push(labels[i] as f32),
                RowTargets::Values(values) => {
                    rows.extend_from_slice(&values[i * self.targets..][..self.targets]);
                }
            }
            if self.weighted {
                rows.push(targets.weights.get(i / positions).copied().unwrap_or(1.0));
            }
        }
    }

    /// The loss of each row.
    pub fn of_each(&self, own: &[f32], targets: TileTargets, outputs: &[f32]) -> Vec<f64> {
        BUFFERS.with_borrow_mut(|(scratch, rows, losses)| {
            self.rows(targets, outputs, rows, losses);
            self.tape.evaluate_rows(own, rows, losses, None, scratch);
            losses.clone()
        })
    }

    /// Sums over rows, the derivatives with respect to outputs, and the gradient with respect to its own parameters, in `slopes` that were 0. Where a
    /// row has several positions, each counts that much less; the sums are those of all positions.
    pub fn evaluate(
        &self,
        own: &[f32],
        slopes: &mut [f64],
        targets: TileTargets,
        positions: usize,
        outputs: &[f32],
        delta: &mut [f32],
    ) -> Sums {
        BUFFERS.with_borrow_mut(|(scratch, rows, losses)| {
            self.rows(targets, outputs, rows, losses);
            let mut sums = Sums::default();
            let both = Some((&mut *delta, &mut *slopes));
            self.tape.evaluate_rows(own, rows, losses, both, scratch);
            sums.loss = losses.iter().sum();
            if positions > 1 {
                let share = 1.0 / positions as f64;
                slopes.iter_mut().for_each(|s| *s *= share);
                delta.iter_mut().for_each(|d| *d *= share as f32);
            }
            if let (RowTargets::Classes(labels), true) = (targets.of, self.outputs > 1) {
                let each = outputs.chunks_exact(self.outputs).zip(labels);
                let wrong = each.map(|(z, label)| {
                    let label = *label as usize;
                    f64::from(u8::from(label >= z.len() || misclassified(z, label)))
                });
                sums.errors = wrong.sum();
            }
            sums
        })
    }
}
