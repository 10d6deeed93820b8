//! The tensors of a checkpoint while a network is traced: each is taken once, as a parameter or as it is.

use crate::error::{Result, did_you_mean, listed};
use crate::kernels::tensor::{Symbol, Tensor};
use crate::memory;
use crate::model::custom::{Declared, Start};
use crate::model::freeze::Freeze;
use crate::store::weights::Found;
use anyhow::{bail, ensure};
use std::collections::BTreeMap;

/// Bytes per number of a tensor that stays as it is, measured: a graph has them in double precision, and as keys that tell equal ones.
const STILL: u128 = 44;

/// What is left of a checkpoint, and the parameters that were taken.
pub struct Weights<'a> {
    left: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    others: Vec<(String, String)>,
    taken: Vec<Declared>,
    /// Numbers that stay as they are.
    still: usize,
    freeze: &'a mut Freeze,
    /// What the names of all but the head begin with: a whole network has its body in a field.
    body: &'static str,
}

impl<'a> Weights<'a> {
    /// All of them; `body` is the field of the body in a network with a head.
    pub fn new(found: Found, freeze: &'a mut Freeze, body: &'static str) -> Self {
        let all = found.tensors.into_iter();
        let left: BTreeMap<_, _> = all.map(|(name, shape, x)| (name, (shape, x))).collect();
        let within = left.keys().any(|name| name.starts_with(body));
        Self {
            left,
            others: found.others,
            taken: Vec::new(),
            still: 0,
            freeze,
            body: if within { body } else { "" },
        }
    }

    /// What the names of the body begin with in this checkpoint.
    pub fn body_name(&self) -> &'static str {
        self.body
    }

    /// A tensor of the body.
    pub fn body(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.head(&format!("{}{name}", self.body), shape)
    }

    /// A tensor outside of it.
    pub fn head(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let Some((found, numbers)) = self.left.remove(name) else {
            if let Some((_, kind)) = self.others.iter().find(|(n, _)| n == name) {
                bail!(
                    "'{name}' is of type {kind}; floats of 16, 32 or 64 bits are read, and quantised weights are not: save the network without quantisation"
                );
            }
            bail!(
                "there is no tensor '{name}', which config.json asks for{}. Is the checkpoint whole, and of a language model?",
                did_you_mean(name, self.left.keys().map(String::as_str))
            );
        };
        ensure!(
            found == shape,
            "the tensor '{name}' is {found:?}, but by config.json it must be {shape:?}"
        );
        let odd = numbers.iter().filter(|x| !x.is_finite()).count();
        ensure!(
            odd == 0,
            "{odd} of the {} numbers of '{name}' are not finite",
            numbers.len()
        );
        if self.freeze.has(name) {
            self.still += numbers.len();
            let bytes = STILL * self.still as u128;
            memory::check(bytes, "the tensors that stay as they are")?;
            return Tensor::from_f32(numbers, shape);
        }
        let symbol = Symbol::parameter(self.taken.len(), shape);
        self.taken.push(Declared {
            name: name.into(),
            shape: shape.to_vec(),
            start: Start::Numbers(numbers),
        });
        Ok(symbol.into())
    }

    /// The matrix [words, width] that turns vectors into scores of words, under one of these names: that of the words themselves where they are tied.
    pub fn scores(
        &mut self,
        names: &[&str],
        words: &Tensor,
        tied: bool,
        shape: &[usize],
    ) -> Result<Tensor> {
        let there = names.iter().find(|n| self.left.contains_key(**n));
        let there = there.or(names.first()).copied().unwrap_or_default();
        if !tied {
            return self.head(there, shape);
        }
        // Some checkpoints have the same numbers twice.
        self.left.remove(there);
        Ok(words.clone())
    }

    /// The parameters, after everything was taken; `buffers` ends the names of what is no weight.
    pub fn finish(self, buffers: &[&str]) -> Result<Vec<Declared>> {
        let is_buffer = |name: &str| buffers.iter().any(|b| name.ends_with(b));
        let over: Vec<_> = self.left.keys().filter(|n| !is_buffer(n)).collect();
        ensure!(
            over.is_empty(),
            "there {} by config.json not part of the network: {}; is config.json that of this checkpoint?",
            if over.len() == 1 {
                "is a tensor that is"
            } else {
                "are tensors that are"
            },
            listed(&over)
        );
        let over: Vec<_> = self
            .others
            .iter()
            .map(|o| &o.0)
            .filter(|n| !is_buffer(n))
            .collect();
        ensure!(
            over.is_empty(),
            "there are tensors that are no floats: {}; quantised weights are not read",
            listed(&over)
        );
        Ok(self.taken)
    }
}
