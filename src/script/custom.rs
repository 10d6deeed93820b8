//! `model::custom`: a closure over tensors as a model, traced or called at every step.

use super::Call;
use super::convert::to_value;
use super::tensors::{from_dynamic, shape_of};
use super::words::a_kind;
use super::{Binder, Bound, OrRaise, closure, raise};
use crate::error::{Result, did_you_mean};
use crate::kernels::tensor::{Symbol, Tensor};
use crate::model::custom::{self, Custom, Declared, Interpreted, Parameters, Start};
use crate::model::initialise::{Initialise, NAMES};
use crate::model::named::Named;
use crate::model::{Model, TensorSpec};
use crate::options::{Options, Value};
use anyhow::{Context as _, anyhow, ensure};
use rhai::{Array, Dynamic, FnPtr, Map, NativeCallContext};
use std::sync::Arc;

const OWNER: &str = "model::custom";

/// The closure, and what it is called with.
const FORWARD: &str = "model::custom: forward";
const ARGUMENTS: &[&str] = &["the parameters", "the inputs"];

pub(super) fn bind(b: &mut Binder) {
    b.object::<Named>("ModelParameters", |p| {
        p.names().collect::<Vec<_>>().join(", ")
    });
    b.engine
        .register_indexer_get(|p: &mut Named, name: &str| p.get(name).or_raise());
    let context = b.context.clone();
    b.function(
        "model::custom(#{ options }) -> Model",
        "A model that you write: `forward: |p, x| …` gives the outputs [rows, outputs] from the parameters p.name and the inputs x [rows, inputs].\n\n\
         The closure is called once, with symbols, and compiled with its derivatives; from then on it is not called again. So it may loop and branch on \
         numbers and shapes, but not on parameters or inputs: there, use choose, maximum, gt and the like. Operations are those of tensor(). The \
         first axis is that of the examples, which cannot be mixed; all others are yours. A product with parameters is a layer where a bias and an activation follow. If that is all there \
         is, whether written x.matmul(p.w.t()) with w [out, in] or x.matmul(p.w) with w [in, out], the model is computed by the passes of \
         model::mlp, to the same bits. With `--device` the accelerator computes it, as any other model that is compiled. What does not depend on the examples, \
         such as p.a.matmul(p.b), is computed once per step.\n\n\
         Parameters lie in the vector, and in files of weights, in the order of their names; an array of [name, shape] keeps its own order. Initial \
         numbers are drawn as model::mlp draws them: a factor of a product is a weight, what is added to it its bias. With `interpret: true` the closure is \
         called at every step instead, many times slower, for what cannot be traced; with `--device` that needs a build with the feature candle-cuda.",
        move |native: NativeCallContext, map: Map| -> Bound<Arc<dyn Model>> {
            let call = Call { context: &context, native: &native };
            build(&call, &map)
        },
    )
    .with(
        custom::OPTIONS,
        "let net = model::custom(#{\n    params: #{ w: [8, 64], gate: [8, 64], out: [10, 8], bias: [10] },\n    \
         forward: |p, x| {\n        let h = x.matmul(p.w.t()).tanh() * x.matmul(p.gate.t()).sigmoid();\n        h.matmul(p.out.t()) + p.bias\n    },\n});\n\
         target(net, dataset::digits())",
    );
}

fn build(call: &Call, map: &Map) -> Bound<Arc<dyn Model>> {
    let o = check(call, map).or_raise()?;
    let declared = map.get("params").map(declared).transpose().or_raise()?;
    let law = Initialise::from_options(&o).or_raise()?;
    let parameters = Parameters::new(o.opt_text("name"), declared.unwrap_or_default(), law);
    let parameters = parameters.or_raise()?;
    let inputs = o.opt_int("inputs").map(|n| n as usize);
    let forward = map
        .get("forward")
        .and_then(|f| f.clone().try_cast::<FnPtr>())
        .ok_or_else(|| raise(anyhow!("{OWNER}: forward must be a closure |p, x| …")))?;
    match o.bool("interpret").or_raise()? {
        true => interpreted(call, parameters, &forward, inputs).or_raise(),
        false => {
            let checkpoint = o.bool("checkpoint").or_raise()?;
            traced(call, parameters, &forward, inputs, checkpoint)
        }
    }
}

/// The options that are neither maps nor closures, checked; the others are only looked for.
fn check(call: &Call, map: &Map) -> Result<Options> {
    let given = map.iter().map(|(k, v)| {
        let value = match k.as_str() {
            "params" | "forward" => Value::Other(a_kind(v.type_name())),
            _ => to_value(v, call),
        };
        (k.to_string(), value)
    });
    Options::check(OWNER, custom::OPTIONS, given.collect())
}

/// A map of shapes by name, or an array of `[name, shape]`.
fn declared(params: &Dynamic) -> Result<Vec<Declared>> {
    if let Some(map) = params.read_lock::<Map>() {
        return map.iter().map(|(k, v)| one(k, v)).collect();
    }
    let wrong = || {
        anyhow!(
            "{OWNER}: params must be a map of shapes by name, or an array of [name, shape], but is {}",
            a_kind(params.type_name())
        )
    };
    let list = params.read_lock::<Array>().ok_or_else(wrong)?;
    let each = list.iter().map(|entry| {
        let pair = entry.read_lock::<Array>();
        match pair.as_deref().map(|p| &p[..]) {
            Some([name, shape]) => {
                let name = name.clone().into_string().map_err(|t| {
                    anyhow!(
                        "{OWNER}: the name of a parameter is {}, not a string",
                        a_kind(t)
                    )
                })?;
                one(&name, shape)
            }
            _ => Err(anyhow!(
                "{OWNER}: an entry of the array params is not [name, shape]"
            )),
        }
    });
    each.collect()
}

fn one(name: &str, given: &Dynamic) -> Result<Declared> {
    let what = || format!("{OWNER}: the parameter '{name}'");
    let Some(map) = given.read_lock::<Map>() else {
        return Ok(Declared {
            name: name.into(),
            shape: shape_of(given).with_context(what)?,
            start: Start::AsModel,
        });
    };
    const KNOWN: [&str; 3] = ["shape", "init", "init_scale"];
    for key in map.keys() {
        ensure!(
            KNOWN.contains(&key.as_str()),
            "{}: no option '{key}'{}",
            what(),
            did_you_mean(key, KNOWN)
        );
    }
    let shape = map
        .get("shape")
        .ok_or_else(|| anyhow!("{}: option 'shape' is missing", what()))?;
    let dims = shape_of(shape).with_context(what)?;
    let scale = match map.get("init_scale") {
        Some(x) => from_dynamic(x)?.item("init_scale").with_context(what)?,
        None => 1.0,
    };
    ensure!(
        scale > 0.0 && scale.is_finite(),
        "{}: option 'init_scale' is {scale}, but must be > 0",
        what()
    );
    let start = match map.get("init") {
        None => Start::AsModel,
        Some(init) => match init.read_lock::<rhai::ImmutableString>() {
            Some(law) => Start::Law(Initialise::named(&law, scale).ok_or_else(|| {
                anyhow!(
                    "{}: init \"{}\" is unknown{}",
                    what(),
                    *law,
                    did_you_mean(&law, NAMES.iter().copied())
                )
            })?),
            None => {
                let t = from_dynamic(init).with_context(what)?;
                let numbers = t.to_f64("init").with_context(what)?;
                let own = t.shape()?.dims;
                ensure!(
                    own.len() <= 1 || own == dims,
                    "{}: init has shape {own:?}, but the parameter has {dims:?}",
                    what()
                );
                match own.is_empty() {
                    true => Start::Law(Initialise::Constant(numbers[0])),
                    false => Start::Numbers(numbers.into_iter().map(|x| x as f32).collect()),
                }
            }
        },
    };
    Ok(Declared {
        name: name.into(),
        shape: dims,
        start,
    })
}

/// The result of a closure, which must be a tensor.
fn result(value: Dynamic) -> Result<Tensor> {
    let name = value.type_name();
    value.try_cast::<Tensor>().ok_or_else(|| {
        anyhow!(
            "{OWNER}: forward must give a tensor [rows, outputs], but gave {}",
            a_kind(name)
        )
    })
}

fn traced(
    call: &Call,
    parameters: Parameters,
    forward: &FnPtr,
    inputs: Option<usize>,
    checkpoint: bool,
) -> Bound<Arc<dyn Model>> {
    let tensors = parameters.layout().tensors().iter().enumerate();
    let symbol =
        |(i, t): (usize, &TensorSpec)| (t.name.clone(), Symbol::parameter(i, &t.shape).into());
    let p = Named::new(tensors.map(symbol));
    let x = Tensor::from(Symbol::input(inputs));
    closure::expect(FORWARD, forward, ARGUMENTS, "", call.native).or_raise()?;
    let value = forward.call_raw(call.native, None, [Dynamic::from(p), Dynamic::from(x)])?;
    let model = || {
        let Tensor::Traced(out) = result(value)? else {
            anyhow::bail!("{OWNER}: forward gives numbers that depend neither on p nor on x");
        };
        let model = Custom::new(parameters, &out, inputs)?;
        Ok(model.with_checkpoints(checkpoint))
    };
    Ok(Arc::new(model().or_raise()?))
}

fn interpreted(
    call: &Call,
    parameters: Parameters,
    forward: &FnPtr,
    inputs: Option<usize>,
) -> Result<Arc<dyn Model>> {
    let inputs = inputs.ok_or_else(|| {
        anyhow!(
            "{OWNER}: with `interpret: true` the option `inputs` is needed, e.g. `inputs: data.dim`"
        )
    })?;
    let forward =
        closure::Frozen::new(FORWARD, forward, ARGUMENTS, closure::Called::Running, call)?;
    let definition = forward.definition();
    let names: Vec<_> = parameters
        .layout()
        .tensors()
        .iter()
        .map(|t| t.name.clone())
        .collect();
    let run = move |w: &[candle_core::Tensor], x: &candle_core::Tensor| {
        let tensors = w.iter().cloned().map(Tensor::Concrete);
        let p = Named::new(names.iter().cloned().zip(tensors));
        let arguments = [Dynamic::from(p), Dynamic::from(Tensor::Concrete(x.clone()))];
        let out = result(forward.call(arguments)?)?;
        let out = out.concrete(OWNER)?.to_device(x.device())?;
        Ok(out.to_dtype(x.dtype())?)
    };
    Ok(Arc::new(Interpreted::new(
        parameters,
        inputs,
        definition,
        Arc::new(run),
    )?))
}
