//! What draws are kept, and how their arrays are cut into chunks.

use super::is_plain;
use crate::error::Result;
use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Bytes of a chunk at most, if a single draw is not larger.
pub(super) const CHUNK_BYTES: usize = 4 << 20;

/// What is written: an array `[chain, draw, …]` per tensor, with a dimension `temperature` behind the draws where there are several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draws {
    /// Chains per temperature.
    pub chains: usize,
    /// How many temperatures; none if there is no such dimension.
    pub temperatures: Option<usize>,
    /// After which steps the draws are made: on disk the coordinate `step`.
    #[serde(skip)]
    pub steps: Vec<u64>,
    /// Names and shapes of the tensors.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// Whether they are kept in half precision.
    pub half: bool,
    /// Whether it was not known how many there would be: chunks are then as large as they may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

impl Draws {
    /// Bytes of one number.
    pub(super) fn size(&self) -> usize {
        if self.half { 2 } else { 4 }
    }

    /// Numbers of a tensor.
    pub(super) fn numbers(&self, tensor: usize) -> usize {
        self.tensors[tensor].1.iter().product()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u128 {
        let numbers: usize = (0..self.tensors.len()).map(|t| self.numbers(t)).sum();
        let chains = self.chains * self.temperatures.unwrap_or(1);
        (self.size() * numbers) as u128 * chains as u128 * self.steps.len() as u128
    }

    /// Bytes of a chunk, without its checksum.
    pub(super) fn chunk_bytes(&self, tensor: usize) -> usize {
        self.per_chunk(tensor) * self.numbers(tensor) * self.size()
    }

    /// Draws in a chunk.
    pub(super) fn per_chunk(&self, tensor: usize) -> usize {
        let draw = (self.numbers(tensor) * self.size()).max(1);
        let most = match self.open {
            true => usize::MAX,
            false => self.steps.len().max(1),
        };
        (CHUNK_BYTES / draw).clamp(1, most)
    }

    /// Fail if the tensors cannot be arrays beside the coordinates.
    pub fn check(&self) -> Result<()> {
        for (name, _) in &self.tensors {
            ensure!(
                is_plain(name) && !["chain", "draw", "temperature", "step"].contains(&&**name),
                "the tensor '{name}' cannot be kept: an array of draws cannot have this name"
            );
        }
        Ok(())
    }

    /// Dimensions and shapes, of the array and of a chunk.
    pub(super) fn layout(&self, tensor: usize) -> (Vec<String>, Vec<usize>, Vec<usize>) {
        let (name, shape) = &self.tensors[tensor];
        let mut dims = vec!["chain".to_string(), "draw".to_string()];
        let mut lengths = vec![self.chains, self.steps.len()];
        let mut chunk = vec![1, self.per_chunk(tensor)];
        if let Some(count) = self.temperatures {
            dims.push("temperature".into());
            lengths.push(count);
            chunk.push(1);
        }
        for (i, length) in shape.iter().enumerate() {
            dims.push(format!("{name}_dim_{i}"));
            lengths.push(*length);
            chunk.push((*length).max(1));
        }
        (dims, lengths, chunk)
    }
}
