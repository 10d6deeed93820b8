//! Tensors by name, as closures of parameters see them.

use crate::error::{Result, did_you_mean};
use crate::kernels::tensor::Tensor;
use std::sync::Arc;

/// Tensors by name; clones share them.
#[derive(Clone)]
pub struct Named(Arc<Vec<(String, Tensor)>>);

impl Named {
    /// These tensors.
    pub fn new(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        Self(Arc::new(tensors.into_iter().collect()))
    }

    /// The tensor of that name.
    ///
    /// # Errors
    /// If there is none; the message proposes the nearest one.
    pub fn get(&self, name: &str) -> Result<Tensor> {
        let found = self.0.iter().find(|(n, _)| n == name);
        let (_, tensor) = found.ok_or_else(|| {
            let hint = did_you_mean(name, self.names().collect::<Vec<_>>());
            anyhow::anyhow!("there is no parameter '{name}'{hint}")
        })?;
        Ok(tensor.clone())
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}
