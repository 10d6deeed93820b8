//! What draws are kept, and how their arrays are cut into chunks, and these put into files.

use super::super::bytes::encode;
use super::{CHECKSUM, checksum, is_plain};
use crate::error::Result;
use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Bytes of a chunk at most, if a single draw is not larger.
pub(super) const CHUNK_BYTES: usize = 4 << 20;

/// Bytes of a file at most, if a chunk is not larger.
const FILE_BYTES: usize = 64 << 20;

/// Bytes of an entry of the index, with which a file begins: where a chunk is, and its length.
const ENTRY: usize = 16;

/// The entry of a chunk that a file does not have.
const NONE: [u64; 2] = [u64::MAX; 2];

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
    /// Whether it was not known how many there would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Draws of a chunk at most, where it was not known how many there would be: a file takes the room of all its chunks from the beginning.
    /// None in folders of version 0.1.0, whose chunks are as large as they may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<usize>,
    /// The step at which burn-in was found to end, if draws were made before: those are not draws of the law.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burn_in: Option<u64>,
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

    /// Chains at all temperatures.
    pub fn all_chains(&self) -> usize {
        self.chains * self.temperatures.unwrap_or(1)
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u128 {
        self.bytes_with(0)
    }

    /// Bytes of all of them, where no length is less than this.
    fn bytes_with(&self, least: usize) -> u128 {
        let product = |of: &[usize]| {
            of.iter()
                .fold(1u128, |all, n| all.saturating_mul((*n).max(least) as u128))
        };
        let temperatures = self.temperatures.unwrap_or(1);
        let draws = product(&[self.chains, temperatures, self.steps.len()]);
        let shapes = self.tensors.iter().map(|(_, shape)| product(shape));
        let numbers = shapes.fold(0, u128::saturating_add);
        numbers
            .saturating_mul(draws)
            .saturating_mul(self.size() as u128)
    }

    /// Bytes of a chunk, without its checksum.
    pub(super) fn chunk_bytes(&self, tensor: usize) -> usize {
        self.cut(tensor).draws * self.numbers(tensor) * self.size()
    }

    /// Chunks of a tensor that each chain has.
    pub(super) fn chunks(&self, tensor: usize) -> usize {
        self.steps.len().div_ceil(self.cut(tensor).draws)
    }

    /// How a tensor is cut.
    pub(super) fn cut(&self, tensor: usize) -> Cut {
        let draw = (self.numbers(tensor) * self.size()).max(1);
        let rungs = self.temperatures.unwrap_or(1).max(1);
        let most = match self.open {
            true => self.expected.unwrap_or(usize::MAX).max(1),
            false => self.steps.len().max(1),
        };
        let of_all = draw.saturating_mul(rungs * self.chains.max(1));
        let draws = (FILE_BYTES / of_all).min(CHUNK_BYTES / draw).clamp(1, most);
        let places = (FILE_BYTES / (draw * draws)).max(1);
        Cut {
            draws,
            chains: (places / rungs).clamp(1, self.chains.max(1)),
            temperatures: places.min(rungs),
        }
    }

    /// Number and temperature of a chain, which are ordered by temperature.
    pub(super) fn place(&self, chain: usize) -> [usize; 2] {
        [chain % self.chains, chain / self.chains]
    }

    /// Where the chunks of a chain are in their files.
    pub(super) fn offset(&self, tensor: usize, chain: usize) -> u64 {
        let cut = self.cut(tensor);
        cut.offset(cut.within(self.place(chain)), self.chunk_bytes(tensor))
    }

    /// Where a file says of a chunk of this chain whether it has it.
    pub(super) fn entry(&self, tensor: usize, chain: usize) -> u64 {
        (self.cut(tensor).within(self.place(chain)) * ENTRY) as u64
    }

    /// The index of the file in which this chain is, and the places of the chunks that it has: those of these chains.
    pub(super) fn index(&self, tensor: usize, chain: usize, own: &[usize]) -> (Vec<u8>, Vec<u64>) {
        let (cut, bytes) = (self.cut(tensor), self.chunk_bytes(tensor));
        let file = cut.file(self.place(chain));
        let mut all = vec![NONE; cut.chains * cut.temperatures];
        let places = own.iter().map(|c| self.place(*c));
        for place in places.filter(|place| cut.file(*place) == file) {
            let i = cut.within(place);
            all[i] = [cut.offset(i, bytes), (bytes + CHECKSUM) as u64];
        }
        let has = all
            .iter()
            .filter(|entry| **entry != NONE)
            .map(|entry| entry[0]);
        let has = has.collect();
        let mut out = encode(all.as_flattened());
        out.extend(checksum(&out));
        (out, has)
    }

    /// Whether an entry of an index is that of a chunk.
    pub(super) fn has(entry: [u8; ENTRY]) -> bool {
        entry != [u8::MAX; ENTRY]
    }

    /// Fail if the tensors cannot be arrays beside the coordinates, or are larger than any disk.
    pub fn check(&self) -> Result<()> {
        // Whatever is computed of the lengths fits then, also beside one that is zero.
        ensure!(
            self.bytes_with(1) < 1 << 60,
            "so many draws of so many chains are larger than any disk"
        );
        for (name, _) in &self.tensors {
            ensure!(
                is_plain(name) && !["chain", "draw", "temperature", "step"].contains(&&**name),
                "the tensor '{name}' cannot be kept: an array of draws cannot have this name"
            );
        }
        Ok(())
    }

    /// Dimensions and shapes: of the array, of a file and of a chunk in it.
    pub(super) fn layout(&self, tensor: usize) -> (Vec<String>, [Vec<usize>; 3]) {
        let (name, shape) = &self.tensors[tensor];
        let cut = self.cut(tensor);
        let mut dims = vec!["chain".to_string(), "draw".to_string()];
        let mut lengths = vec![
            [self.chains, cut.chains, 1],
            [self.steps.len(), cut.draws, cut.draws],
        ];
        if let Some(count) = self.temperatures {
            dims.push("temperature".into());
            lengths.push([count, cut.temperatures, 1]);
        }
        for (i, length) in shape.iter().enumerate() {
            dims.push(format!("{name}_dim_{i}"));
            let within = (*length).max(1);
            lengths.push([*length, within, within]);
        }
        let shapes = [0, 1, 2].map(|of| lengths.iter().map(|l| l[of]).collect());
        (dims, shapes)
    }
}

/// How a tensor is cut: a chunk has consecutive draws of one chain at one temperature, a file the chunks of several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Draws in a chunk.
    pub draws: usize,
    /// Chains in a file.
    chains: usize,
    /// Temperatures in a file; all of them, if there is more than one chain.
    temperatures: usize,
}

impl Cut {
    /// Which file a chain is in, along chains and temperatures.
    pub fn file(self, [number, temperature]: [usize; 2]) -> [usize; 2] {
        [number / self.chains, temperature / self.temperatures]
    }

    /// Which of the chunks of its file is that of a chain.
    fn within(self, [number, temperature]: [usize; 2]) -> usize {
        (number % self.chains) * self.temperatures + temperature % self.temperatures
    }

    /// Where the i-th chunk of a file begins, each of which has so many bytes.
    fn offset(self, i: usize, bytes: usize) -> u64 {
        let index = self.chains * self.temperatures * ENTRY + CHECKSUM;
        (index + i * (bytes + CHECKSUM)) as u64
    }
}
