//! Models that are written with candle.

use super::custom::{Declared, Interpreted, Parameters, Start};
use super::initialise::Initialise;
use super::{Layout, Model};
use crate::error::Result;
use anyhow::Context;
use candle_core::{DType, Device, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, Module, VarBuilder, VarMap};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a model asks a `VarBuilder` for: tensors that are known, or, where none is, new ones.
#[derive(Default)]
struct Variables {
    known: HashMap<String, Tensor>,
    new: Arc<Mutex<Vec<(String, Tensor)>>>,
}

impl SimpleBackend for Variables {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        init: Init,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        let before = new.iter().find(|(n, _)| n == name).map(|(_, t)| t);
        let tensor = match self.known.get(name).or(before) {
            Some(tensor) => tensor.clone(),
            None if self.known.is_empty() => {
                let tensor = init.var(shape.clone(), dtype, device)?.into_inner();
                new.push((name.into(), tensor.clone()));
                tensor
            }
            None => candle_core::bail!(
                "the model asks for '{name}', which it did not ask for when it was made"
            ),
        };
        if *tensor.shape() != shape {
            candle_core::bail!(
                "the model asks for '{name}' of shape {shape:?}, but it is {:?}",
                tensor.shape()
            );
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> candle_core::Result<Tensor> {
        match self.known.get(name) {
            Some(tensor) => Ok(tensor.clone()),
            None => candle_core::bail!("the model asks for '{name}' without saying its shape"),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.known.is_empty() || self.known.contains_key(name)
    }
}

/// A network of candle as a model: its parameters are the variables that `build` asks for, in their order, and gradients are candle's. It takes inputs
/// `[rows, inputs]` and gives outputs `[rows, outputs]`.
///
/// `build` is called at every evaluation, so it must ask for the same variables each time. All of them are sampled.
///
/// # Errors
/// If it cannot be built or gives no such outputs.
///
/// ```no_run
/// use candle_nn::{Activation, linear, seq};
/// use ergodic::prelude::*;
///
/// # fn main() -> Result<()> {
/// let net = from_candle(64, |vb| {
///     Ok(seq().add(linear(64, 16, vb.pp("first"))?).add(Activation::Gelu).add(linear(16, 10, vb.pp("second"))?))
/// })?;
/// let target = Target::of(&net, &dataset::Digits::new().build()?).run()?;
/// # Ok(())
/// # }
/// ```
pub fn from_candle<M: Module>(
    inputs: usize,
    build: impl Fn(VarBuilder) -> candle_core::Result<M> + Send + Sync + 'static,
) -> Result<Arc<dyn Model>> {
    let first = Variables::default();
    let new = first.new.clone();
    let vb = VarBuilder::from_backend(Box::new(first), DType::F32, Device::Cpu);
    build(vb).context("from_candle: the model is not built")?;
    let new = std::mem::take(&mut *new.lock().unwrap_or_else(PoisonError::into_inner));
    let declared = new.iter().map(|(name, tensor)| Declared {
        name: name.clone(),
        shape: tensor.dims().to_vec(),
        start: Start::AsModel,
    });
    let declared: Vec<_> = declared.collect();
    let names: Vec<_> = declared.iter().map(|d| d.name.clone()).collect();
    let definition = format!("{} {declared:?}", std::any::type_name::<M>());
    let parameters = Parameters::new(None, declared, Initialise::Pytorch)?.of_kind("candle");
    let forward = move |params: &[Tensor], x: &Tensor| {
        let variables = Variables {
            known: names.iter().cloned().zip(params.iter().cloned()).collect(),
            ..Variables::default()
        };
        let vb = VarBuilder::from_backend(Box::new(variables), x.dtype(), x.device().clone());
        Ok(build(vb)?.forward(x)?)
    };
    let model = Interpreted::new(parameters, inputs, definition, Arc::new(forward));
    Ok(Arc::new(model.context("from_candle")?))
}

impl Layout {
    /// The numbers that candle's variables of these names have now, one after the other.
    ///
    /// # Errors
    /// If one is missing or has another shape.
    pub fn weights_of(&self, variables: &VarMap) -> Result<Vec<f32>> {
        let all = variables
            .data()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut out = Vec::with_capacity(self.len());
        for t in self.tensors() {
            let found = all.get(&t.name);
            let found = found.with_context(|| format!("there is no variable '{}'", t.name))?;
            anyhow::ensure!(
                found.dims() == t.shape,
                "the variable '{}' has shape {:?}, not {:?}",
                t.name,
                found.dims(),
                t.shape
            );
            let flat = found.as_tensor().to_dtype(DType::F32)?.flatten_all()?;
            out.extend(flat.to_vec1::<f32>()?);
        }
        Ok(out)
    }

    /// Give candle's variables of these names the numbers of a vector of parameters.
    ///
    /// # Errors
    /// If one is missing or has another shape.
    pub fn set_variables(&self, w: &[f32], variables: &VarMap) -> Result<()> {
        anyhow::ensure!(
            w.len() >= self.len(),
            "{} numbers are too few for {} parameters",
            w.len(),
            self.len()
        );
        let all = variables
            .data()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for t in self.tensors() {
            let found = all.get(&t.name);
            let found = found.with_context(|| format!("there is no variable '{}'", t.name))?;
            let own = Tensor::from_slice(&w[t.range.clone()], t.shape.as_slice(), found.device())?;
            found.set(&own.to_dtype(found.dtype())?)?;
        }
        Ok(())
    }
}
