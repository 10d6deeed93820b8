//! One node of an ONNX graph: its operands and attributes, and what operators do with them.

use super::numbers::Numbers;
use super::proto::{Attribute, Node as Message};
use super::value::Value;
use crate::error::Result;
use crate::kernels::tensor::{Binary, Unary};
use anyhow::{anyhow, bail};
use std::path::Path;

/// A node whose operands are there.
pub struct Node<'a> {
    pub message: &'a Message,
    /// Operands; one that is left out is none.
    pub inputs: Vec<Option<Value>>,
    /// The first operand, if it is a sequence of tensors.
    pub sequence: Option<Vec<Value>>,
    /// The version of the operators.
    pub opset: i64,
    /// How many rows the file has been made for, if it says so.
    pub batch: Option<usize>,
    /// The folder of the file.
    pub folder: &'a Path,
}

impl Node<'_> {
    /// An operand.
    pub fn input(&self, i: usize) -> Result<&Value> {
        self.optional(i)
            .ok_or_else(|| anyhow!("operand {i} is missing"))
    }

    /// An operand that may be left out.
    pub fn optional(&self, i: usize) -> Option<&Value> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// The sequence of tensors that is the first operand.
    pub fn sequence(&self) -> Result<&[Value]> {
        let found = self.sequence.as_deref();
        found.ok_or_else(|| anyhow!("its first operand is no sequence of tensors"))
    }

    /// All operands that are given.
    pub fn given(&self) -> Vec<&Value> {
        self.inputs.iter().flatten().collect()
    }

    /// An attribute, if it is given.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.message.attributes.iter().find(|a| a.name == name)
    }

    /// An integer.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |a| a.int)
    }

    /// Whether an integer is 1.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.int(name, i64::from(default)) != 0
    }

    /// A number.
    pub fn float(&self, name: &str, default: f64) -> f64 {
        self.attribute(name).map_or(default, |a| f64::from(a.float))
    }

    /// Integers, if they are given.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.attribute(name).map(|a| a.ints.clone())
    }

    /// Lengths, if they are given.
    pub fn sizes(&self, name: &str) -> Result<Option<Vec<usize>>> {
        self.ints(name).map(|all| sizes(name, &all)).transpose()
    }

    /// A word.
    pub fn text(&self, name: &str, default: &str) -> String {
        let given = self.attribute(name);
        given.map_or(default.into(), |a| {
            String::from_utf8_lossy(&a.text).into_owned()
        })
    }

    /// An error if an attribute is anything but this integer.
    pub fn only(&self, name: &str, value: i64) -> Result<()> {
        match self.int(name, value) {
            given if given == value => Ok(()),
            given => bail!("its attribute '{name}' is {given}, but only {value} is supported"),
        }
    }

    /// Integers that are an attribute in older files and an operand in newer ones.
    pub fn listed(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>> {
        match self.optional(input) {
            Some(v) => v.to_ints(&format!("'{name}'")).map(Some),
            None => Ok(self.ints(name)),
        }
    }

    /// A number that is an attribute in older files and an operand in newer ones.
    pub fn number(&self, name: &str, input: usize) -> Result<Option<f64>> {
        match self.optional(input) {
            Some(v) => Ok(v.to_f64(&format!("'{name}'"))?.first().copied()),
            None => Ok(self.attribute(name).map(|a| f64::from(a.float))),
        }
    }
}

/// The greatest length of a filter, a stride, a gap or a pad.
pub const LONGEST: usize = 1 << 20;

/// What an operator does with its operands.
#[derive(Clone, Copy)]
pub enum Operator {
    /// A function of each element.
    One(Unary),
    /// A function of pairs of elements; of more operands, one after the other.
    Two(Binary),
    /// Anything with one result.
    Value(fn(&Node) -> Result<Value>),
    /// Anything with several results.
    Values(fn(&Node) -> Result<Vec<Value>>),
    /// A sequence of tensors.
    Sequence(fn(&Node) -> Result<Vec<Value>>),
}

/// Integers as lengths.
pub fn sizes(what: &str, all: &[i64]) -> Result<Vec<usize>> {
    let each = all.iter().map(|n| {
        usize::try_from(*n).map_err(|_| anyhow!("'{what}' has the length {n}, which is below 0"))
    });
    each.collect()
}

impl Numbers {
    /// As a value that is known.
    pub fn into_value(self) -> Result<Value> {
        let whole = matches!(self.data, super::numbers::Data::Whole(_));
        let data = self.data.into_f64();
        match (&self.dims[..], whole) {
            ([0], true) => Value::list(data),
            (dims, _) => Value::numbers(data, dims, whole),
        }
    }
}
