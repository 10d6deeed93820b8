//! Energies that a user wrote as a closure or an expression: traced once, differentiated, and run as a tape.

use super::network::{Accelerated, check_in_memory};
use super::{Potential, Rows, Workspace};
use crate::dataset::{Dataset, Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::tensor::{Graph, Program, Scratch, Symbol, Tape, Tensor};
use crate::model::Layout;
use crate::model::formula::Formula;
use crate::model::loss::{Loss, Sums};
use std::cell::RefCell;
use std::sync::Arc;

/// A loss per example, `ℓ(w, x, y)`, or an energy U(w) without data.
pub struct Traced {
    text: String,
    layout: Layout,
    tape: Arc<Tape>,
    data: Option<Arc<Dataset>>,
    /// Inputs and targets of the examples, `[n, width]`, with all digits of the file; nothing without data.
    rows: Vec<f64>,
    width: usize,
    examples: usize,
    /// Variants of each example.
    copies: usize,
}

thread_local! {
    /// Registers of the tapes and a gradient in double precision, reused.
    static BUFFERS: RefCell<(Scratch, Vec<f64>)> = RefCell::default();
}

/// Columns of an example of a data set as energies see it: those of its input, and those of its target.
pub fn columns(data: &Dataset) -> (usize, usize) {
    (data.dim, data.train.targets.width())
}

impl Traced {
    /// From an energy of parameters of this layout and, with data, the columns of its training examples: input, then target (for classes
    /// the label).
    ///
    /// # Errors
    /// If it is no single number, or uses what does not exist.
    pub fn potential(
        energy: &Tensor,
        layout: Layout,
        data: Option<&Dataset>,
    ) -> Result<Arc<dyn Potential>> {
        let parameters = layout.len();
        if let Some(d) = data {
            anyhow::ensure!(
                d.train.weights.is_none(),
                "the rows of '{}' have weights, which only losses of networks use; let the weight be an input, and multiply by it in the closure",
                d.name
            );
            let (inputs, targets) = columns(d);
            let what = format!("the rows of '{}'", d.name);
            crate::memory::check_elements::<f64>(&[d.train.rows, inputs + targets], &what)?;
        }
        let width = data.map_or(0, |d| columns(d).0 + columns(d).1);
        let graph = Graph::new(&energy.symbol()?)?;
        let tape = Tape::compile(&graph, parameters, width)?;
        let of = data.map_or(String::new(), |d| format!(" on '{}'", d.name));
        Ok(Arc::new(Self {
            text: format!("{}{of}, N = {parameters}", graph.formula(0)?),
            layout,
            tape: Arc::new(tape),
            data: data.map(|d| Arc::new(d.clone())),
            rows: data.map_or(Vec::new(), |d| table(&d.train)),
            width,
            examples: data.map_or(1, |d| d.train.rows),
            copies: data.map_or(1, |d| d.copies),
        }))
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.width..(i + 1) * self.width]
    }
}

/// One row, of which nobody reads anything.
fn empty_row() -> Result<Dataset> {
    let inputs = Inputs::F32(vec![0.0]);
    let targets = Targets::Values {
        width: 1,
        data: vec![0.0],
    };
    Dataset::new(
        "nothing",
        0,
        Split::new(1, inputs, targets)?,
        None,
        Vec::new(),
    )
}

/// Inputs and targets side by side.
fn table(split: &Split) -> Vec<f64> {
    let (inputs, targets) = (split.inputs_f64(), split.targets_f64());
    let targets = targets.chunks_exact(split.targets.width());
    let rows = inputs.chunks_exact(split.dim).zip(targets);
    rows.flat_map(|(x, y)| [x, y].concat()).collect()
}

impl Potential for Traced {
    fn describe(&self) -> String {
        self.text.clone()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn examples(&self) -> usize {
        self.examples
    }

    fn likelihood_n(&self) -> usize {
        self.examples / self.copies
    }

    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        _: &mut Workspace,
    ) -> Result<Sums> {
        BUFFERS.with_borrow_mut(|(scratch, buffer)| {
            let wanted = grad.is_some();
            buffer.clear();
            buffer.resize(w.len(), 0.0);
            let into = wanted.then_some(&mut buffer[..]);
            let loss = match rows {
                Rows::All => {
                    let all = (0..self.examples).map(|i| self.row(i));
                    self.tape.evaluate(w, all, into, scratch)
                }
                Rows::Indices(i) => {
                    let some = i.iter().map(|i| self.row(*i as usize));
                    self.tape.evaluate(w, some, into, scratch)
                }
            };
            if let Some(grad) = grad {
                grad.iter_mut()
                    .zip(buffer)
                    .for_each(|(g, x)| *g = *x as f32);
            }
            Ok(Sums { loss, errors: 0.0 })
        })
    }

    fn accelerated(&self) -> Result<Accelerated> {
        let dataset = match &self.data {
            // Other splits have no losses.
            Some(d) => Dataset {
                test: None,
                validation: None,
                ..Dataset::clone(d)
            },
            None => empty_row()?,
        };
        check_in_memory(&dataset)?;
        anyhow::ensure!(
            dataset.positions() == 1,
            "no device computes a closure of rows with several labels; take --device cpu"
        );
        let (inputs, targets) = columns(&dataset);
        let graph = Graph::new(&Symbol::input(Some(inputs)))?;
        let formula = Formula::of_rows(&self.text, self.tape.clone(), inputs, targets);
        Ok(Accelerated {
            // The outputs are the inputs, and the energy is the loss.
            program: Program::compile(&graph, &[])?,
            positions: 1,
            dataset: Arc::new(dataset),
            loss: Loss::Formula(Arc::new(formula)),
            own: 0..self.layout.len(),
            free: None,
        })
    }

    fn split_sums(&self, _: &[f32], split: &str, _: &mut Workspace) -> Result<(Sums, usize)> {
        anyhow::bail!("a target written as an expression has no split \"{split}\"")
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        hash.update(&self.tape.bytes());
        for x in &self.rows {
            // Numbers of single precision have the checksum that they always had.
            match f64::from(*x as f32) == *x {
                true => hash.update(&(*x as f32).to_le_bytes()),
                false => hash.update(&x.to_le_bytes()),
            }
        }
    }
}
