//! A potential of some of the parameters, the others held where they are: weight-restricted learning coefficients
//! (Wang, Hoogland, van Wingerden, Furman & Murfet 2024).

use super::network::{Accelerated, Free};
use super::{OpenCandle, Potential, Rows, Workspace};
use crate::error::Result;
use crate::kernels::gemm_baseline::Product;
use crate::model::loss::Sums;
use crate::model::{Layout, Part};
use crate::rng::Stream;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The same mean loss, as a function of the free parameters.
#[derive(Clone)]
pub struct Restricted {
    inner: Arc<dyn Potential>,
    layout: Layout,
    /// Where the free parameters are among all, in the order of the layout.
    free: Vec<Part>,
    /// All parameters; those that do not move stay as they are here.
    fixed: Arc<Vec<f32>>,
}

thread_local! {
    /// All parameters and their gradient, of the evaluation this thread is at.
    static WHOLE: RefCell<[Vec<f32>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

impl Restricted {
    /// Hold everything but these parts of tensors at `fixed`.
    ///
    /// # Errors
    /// If `fixed` has another length than the parameters, no part is given, or parts overlap.
    pub fn new(inner: Arc<dyn Potential>, free: Vec<Part>, fixed: Arc<Vec<f32>>) -> Result<Self> {
        let n = inner.layout().len();
        anyhow::ensure!(
            fixed.len() == n,
            "a point of {} parameters for a model of {n}",
            fixed.len()
        );
        anyhow::ensure!(!free.is_empty(), "no parameters are left to move");
        let runs = free.iter().flat_map(|t| &t.runs);
        let mut ranges: Vec<_> = runs.cloned().collect();
        ranges.sort_by_key(|r| r.start);
        if let Some(twice) = ranges.windows(2).find(|r| r[0].end > r[1].start) {
            let here = |t: &&Part| t.runs.iter().any(|r| r.contains(&twice[1].start));
            let there = free.iter().filter(here);
            let names: Vec<_> = there.map(|t| format!("'{}'", t.name)).collect();
            anyhow::bail!(
                "parts of the parameters are named twice: {}",
                names.join(" and ")
            );
        }
        let tensors = free.iter().map(|t| (t.name.clone(), t.shape.clone()));
        Ok(Self {
            layout: Layout::new(tensors),
            inner,
            free,
            fixed,
        })
    }

    /// Where the free parameters are, one after the other.
    fn runs(&self) -> impl Iterator<Item = &Range<usize>> {
        self.free.iter().flat_map(|t| &t.runs)
    }

    /// The free ones of all parameters.
    pub fn free(&self, all: &[f32]) -> Vec<f32> {
        self.free.iter().flat_map(|t| t.of(all)).collect()
    }

    /// Do something at all parameters, with `w` in place of the free ones; then take the free part of the gradient, if it is wanted.
    fn at<R>(
        &self,
        w: &[f32],
        grad: Option<&mut [f32]>,
        f: impl FnOnce(&[f32], Option<&mut [f32]>) -> Result<R>,
    ) -> Result<R> {
        // Taken out, not borrowed: another potential of this kind may be inside.
        let [mut all, mut whole] = WHOLE.with_borrow_mut(std::mem::take);
        all.clear();
        all.extend_from_slice(&self.fixed);
        let mut at = 0;
        for run in self.runs() {
            all[run.clone()].copy_from_slice(&w[at..at + run.len()]);
            at += run.len();
        }
        whole.resize(all.len(), 0.0);
        let wanted = grad.is_some();
        let result = f(&all, wanted.then_some(&mut whole[..]));
        if let Some(grad) = grad {
            let mut at = 0;
            for run in self.runs() {
                grad[at..at + run.len()].copy_from_slice(&whole[run.clone()]);
                at += run.len();
            }
        }
        WHOLE.with_borrow_mut(|kept| *kept = [all, whole]);
        result
    }
}

impl Potential for Restricted {
    fn describe(&self) -> String {
        let names: Vec<_> = self.free.iter().map(|t| t.name.as_str()).collect();
        format!("{}\nonly {} move", self.inner.describe(), names.join(", "))
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn examples(&self) -> usize {
        self.inner.examples()
    }

    fn likelihood_n(&self) -> usize {
        self.inner.likelihood_n()
    }

    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        self.at(w, grad, |all, grad| self.inner.sums(all, rows, grad, work))
    }

    fn sums_at_anchor(&self, w: &[f32], grad: &mut [f32], work: &mut Workspace) -> Result<Sums> {
        self.at(w, Some(grad), |all, grad| {
            self.inner
                .sums_at_anchor(all, grad.unwrap_or_default(), work)
        })
    }

    fn splits(&self) -> Vec<&'static str> {
        self.inner.splits()
    }

    fn split_sums(&self, w: &[f32], split: &str, work: &mut Workspace) -> Result<(Sums, usize)> {
        self.at(w, None, |all, _| self.inner.split_sums(all, split, work))
    }

    fn example_losses(&self, w: &[f32], split: &str, rows: &[u32]) -> Result<Vec<f64>> {
        self.at(w, None, |all, _| {
            self.inner.example_losses(all, split, rows)
        })
    }

    fn rows_and_positions(&self, split: &str) -> Result<(usize, usize)> {
        self.inner.rows_and_positions(split)
    }

    fn accelerated(&self) -> Result<Accelerated> {
        let mut inner = self.inner.accelerated()?;
        anyhow::ensure!(
            inner.free.is_none(),
            "no device holds parameters of a model twice; take --device cpu"
        );
        let mut end = 0;
        let part = |run: &Range<usize>| {
            end += run.len();
            (end - run.len()..end, run.clone())
        };
        inner.free = Some(Free {
            parts: self.runs().map(part).collect(),
            fixed: self.fixed.clone(),
        });
        Ok(inner)
    }

    fn by_candle(&self, device: OpenCandle) -> Result<Option<Arc<dyn Potential>>> {
        let inner = self.inner.by_candle(device)?;
        Ok(inner.map(|inner| {
            Arc::new(Self {
                inner,
                ..self.clone()
            }) as _
        }))
    }

    fn products(&self) -> Vec<Product> {
        self.inner.products()
    }

    fn sizes(&self) -> (usize, usize) {
        self.inner.sizes()
    }

    fn classifies(&self) -> bool {
        self.inner.classifies()
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.free(&self.inner.initialise(stream))
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.inner.fingerprint(hash);
        hash.update(self.describe().as_bytes());
        self.fixed
            .iter()
            .for_each(|x| hash.update(&x.to_le_bytes()));
    }
}
