//! Which draws a run keeps.

use crate::trigger::Trigger;
use serde::{Deserialize, Serialize};

/// What is kept, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Keep {
    /// After which steps, all of them after burn-in.
    pub steps: Vec<u64>,
    /// What these follow from; none if so many were asked for.
    pub trigger: Option<Trigger>,
    /// Which tensors; all if empty.
    pub tensors: Vec<String>,
    /// Whether in half precision.
    pub half: bool,
}

/// What a run says of its draws.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Draws per chain.
    pub draws: usize,
    /// The tensors, if not all are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<String>,
    /// "f32" or "f16".
    pub precision: String,
}

impl Keep {
    /// What a run says of it.
    pub fn info(&self) -> Kept {
        Kept {
            draws: self.steps.len(),
            tensors: self.tensors.clone(),
            precision: if self.half { "f16" } else { "f32" }.into(),
        }
    }
}
