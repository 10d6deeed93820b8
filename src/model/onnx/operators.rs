//! The operators of ONNX that are known, by their names.

use super::node::Node;
pub use super::node::Operator;
use super::value::Value;
use super::{axes, elements, layers, sequences};
use crate::error::{Result, did_you_mean};
use crate::kernels::tensor::Unary;
use anyhow::anyhow;

/// All that are known.
pub fn all() -> impl Iterator<Item = &'static (&'static str, Operator)> {
    let all = [
        elements::OPERATORS,
        layers::OPERATORS,
        axes::OPERATORS,
        sequences::OPERATORS,
    ];
    all.into_iter().flatten()
}

/// The operator of this name.
///
/// # Errors
/// If it is unknown.
pub fn find(domain: &str, name: &str) -> Result<Operator> {
    let known = || all().filter(|_| matches!(domain, "" | "ai.onnx" | "com.microsoft"));
    let found = known().find(|(n, _)| *n == name);
    found.map(|(_, o)| *o).ok_or_else(|| {
        let hint = did_you_mean(name, known().map(|(n, _)| *n).collect::<Vec<_>>());
        let from = match domain {
            "" => String::new(),
            domain => format!(" of the domain '{domain}'"),
        };
        anyhow!("the operator '{name}'{from} is not supported{hint}")
    })
}

impl Operator {
    /// What comes out.
    pub fn apply(self, n: &Node) -> Result<Vec<Value>> {
        let one = match self {
            Operator::One(f) => {
                let x = n.input(0)?;
                let whole = x.whole && matches!(f, Unary::Abs | Unary::Negate | Unary::Relu);
                x.with(x.tensor.unary(f)?).with_whole(whole)
            }
            Operator::Two(f) => elements::two(&n.given(), f)?,
            Operator::Value(f) => f(n)?,
            Operator::Values(f) | Operator::Sequence(f) => return f(n),
        };
        Ok(vec![one])
    }
}
