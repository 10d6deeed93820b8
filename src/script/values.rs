//! Vectors of numbers in scripts: parameters and slices of them.

use super::closure::State;
use super::grids::numbers;
use super::{Binder, Bound, OrRaise};
use crate::diagnostic::{mean, sd};
use crate::model::Layout;
use crate::target::prior::Parameters;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// A vector of numbers, perhaps with named tensors in it.
#[derive(Clone)]
pub(super) struct Values {
    data: Arc<Vec<f32>>,
    layout: Option<Arc<Layout>>,
}

impl Values {
    pub fn new(data: Vec<f32>) -> Self {
        Self {
            data: Arc::new(data),
            layout: None,
        }
    }

    pub fn with_layout(data: Vec<f32>, layout: Arc<Layout>) -> Self {
        Self {
            data: Arc::new(data),
            layout: Some(layout),
        }
    }

    /// All numbers.
    pub fn all(&self) -> &[f32] {
        &self.data
    }

    /// As the only vector of some parameters.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            vectors: vec![self.data.clone()],
        }
    }

    /// The numbers of a named tensor, and its shape.
    pub fn part(&self, name: &str) -> crate::error::Result<(Vec<f32>, Vec<usize>)> {
        let layout = self
            .layout
            .as_ref()
            .ok_or_else(|| anyhow::anyhow!("this vector has no named tensors"))?;
        let t = layout.tensor(name)?;
        Ok((self.data[t.range.clone()].to_vec(), t.shape.clone()))
    }

    fn map(&self, f: impl Fn(f32) -> f32) -> Self {
        Self {
            data: Arc::new(self.data.iter().map(|x| f(*x)).collect()),
            layout: self.layout.clone(),
        }
    }

    fn fold(&self, start: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        self.data.iter().fold(start, |a, x| f(a, *x as f64))
    }
}

pub(super) fn bind(b: &mut Binder) {
    b.object::<Values>("Values", |v| {
        let shown: Vec<_> = v.data.iter().take(8).map(|x| format!("{x:?}")).collect();
        let more = if v.data.len() > 8 {
            format!(", … {} in all", v.data.len())
        } else {
            String::new()
        };
        format!("[{}{more}]", shown.join(", "))
    });
    b.object::<State>("State", |s| {
        format!(
            "chain {} at step {}, T = {:e}",
            s.chain, s.step, s.temperature
        )
    });
    b.engine
        .register_get("params", |s: &mut State| s.params.clone())
        .register_get("step", |s: &mut State| s.step)
        .register_get("chain", |s: &mut State| s.chain)
        .register_get("temperature", |s: &mut State| s.temperature)
        .register_get("info", |s: &mut State| -> Map { s.info.clone() });
    b.engine
        .register_indexer_get(|v: &mut Values, i: i64| -> Bound<f64> {
            let n = v.data.len() as i64;
            let at = if i < 0 { n + i } else { i };
            let found = usize::try_from(at)
                .ok()
                .and_then(|a| v.data.get(a))
                .copied();
            found
                .map(f64::from)
                .ok_or_else(|| anyhow::anyhow!("index {i} of a vector of {n} numbers"))
                .or_raise()
        });
    b.function("values.slice(tensor) -> Values", "The named tensor of a parameter vector, flattened; names as in the model's layout (\"w1\", \"b1\", …).", |v: &mut Values, name: &str| -> Bound<Values> {
        Ok(Values::new(v.part(name).or_raise()?.0))
    })
    .function("values.abs() -> Values", "Absolute values.", |v: &mut Values| v.map(f32::abs))
    .function("values.square() -> Values", "Squares.", |v: &mut Values| v.map(|x| x * x))
    .function("values.max() -> number", "The largest.", |v: &mut Values| v.fold(f64::NEG_INFINITY, f64::max))
    .function("values.min() -> number", "The smallest.", |v: &mut Values| v.fold(f64::INFINITY, f64::min))
    .function("values.sum() -> number", "The sum.", |v: &mut Values| v.fold(0.0, |a, x| a + x))
    .function("values.mean() -> number", "The mean.", |v: &mut Values| v.fold(0.0, |a, x| a + x) / v.data.len() as f64)
    .function("values.norm2() -> number", "The sum of squares.", |v: &mut Values| v.fold(0.0, |a, x| a + x * x))
    .function("values.len() -> integer", "How many numbers.", |v: &mut Values| v.data.len() as i64)
    .function("values.to_array() -> array", "As an array of numbers.", |v: &mut Values| -> Array {
        v.data.iter().map(|x| Dynamic::from(*x as f64)).collect()
    });
    let of_array = |what: &'static str, f: fn(&[f64]) -> f64| {
        move |a: &mut Array| -> Bound<f64> { numbers(a, what).map(|x| f(&x)) }
    };
    b.function(
        "array.mean() -> number",
        "The mean of the numbers.",
        of_array("mean", |x| mean(&[x])),
    )
    .with(&[], "[1, 2, 4.5].mean()")
    .function(
        "array.sd() -> number",
        "The standard deviation of the numbers, with n - 1; NaN of fewer than two.",
        of_array("sd", |x| sd(&[x])),
    )
    .function(
        "array.sum() -> number",
        "The sum of the numbers.",
        of_array("sum", |x| x.iter().sum()),
    )
    .function(
        "array.min() -> number",
        "The smallest of the numbers.",
        of_array("min", |x| x.iter().copied().fold(f64::INFINITY, f64::min)),
    )
    .function(
        "array.max() -> number",
        "The largest of the numbers.",
        of_array("max", |x| {
            x.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
    );
}
