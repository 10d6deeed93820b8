//! A potential with parameters beside its own, which only the prior knows: the scales of a hierarchical prior.

use super::network::{Accelerated, Network};
use super::prior::Prior;
use super::{OpenCandle, Potential, Rows, Workspace};
use crate::error::Result;
use crate::kernels::gemm_baseline::Product;
use crate::model::initialise::{Role, with_normals};
use crate::model::loss::Sums;
use crate::model::{Layout, Part};
use crate::rng::Stream;
use std::sync::Arc;

/// The same mean loss, which does not depend on the further parameters.
#[derive(Clone)]
struct Extended {
    inner: Arc<dyn Potential>,
    layout: Layout,
    /// Number of parameters that the loss depends on.
    own: usize,
}

/// The potential with the parameters that a prior adds; itself if there are none.
///
/// # Errors
/// See [`Prior::parameters`].
pub(super) fn with(inner: Arc<dyn Potential>, prior: &Prior) -> Result<Arc<dyn Potential>> {
    let more = prior.parameters(inner.layout())?;
    if more.is_empty() {
        return Ok(inner);
    }
    Ok(Arc::new(Extended {
        layout: inner.layout().clone().and(more)?,
        own: inner.layout().len(),
        inner,
    }))
}

impl Potential for Extended {
    fn describe(&self) -> String {
        self.inner.describe()
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
        mut grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        if let Some(grad) = &mut grad {
            grad[self.own..].fill(0.0);
        }
        let grad = grad.map(|g| &mut g[..self.own]);
        self.inner.sums(&w[..self.own], rows, grad, work)
    }

    fn sums_at_anchor(&self, w: &[f32], grad: &mut [f32], work: &mut Workspace) -> Result<Sums> {
        let (own, rest) = grad.split_at_mut(self.own);
        rest.fill(0.0);
        self.inner.sums_at_anchor(&w[..self.own], own, work)
    }

    fn splits(&self) -> Vec<&'static str> {
        self.inner.splits()
    }

    fn split_sums(&self, w: &[f32], split: &str, work: &mut Workspace) -> Result<(Sums, usize)> {
        self.inner.split_sums(&w[..self.own], split, work)
    }

    fn example_losses(&self, w: &[f32], split: &str, rows: &[u32]) -> Result<Vec<f64>> {
        self.inner.example_losses(&w[..self.own], split, rows)
    }

    fn rows_and_positions(&self, split: &str) -> Result<(usize, usize)> {
        self.inner.rows_and_positions(split)
    }

    fn network(&self) -> Option<&Network> {
        self.inner.network()
    }

    fn accelerated(&self) -> Result<Accelerated> {
        self.inner.accelerated()
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

    fn part(&self, name: &str) -> Result<Vec<Part>> {
        self.inner.part(name).or_else(|_| self.layout.part(name))
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

    fn roles(&self) -> Vec<Role> {
        self.inner.roles()
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        let own = self.inner.initialise(stream);
        let more = self.layout.len() - self.own;
        with_normals(own, more, &stream.sub_stream(2))
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.inner.fingerprint(hash);
    }
}
