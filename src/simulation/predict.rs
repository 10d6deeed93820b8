//! Predictions for new inputs, averaged over the draws that a run has kept.

use super::draws::{KeptDraws, TARGET};
use super::prediction::predicted;
use super::run::Run;
use super::session::Session;
use crate::dataset::{Inputs, Split, Targets};
use crate::engine::batched::Batched;
use crate::engine::report::Slots;
use crate::engine::{Engine, Vector};
use crate::error::Result;
use crate::model::loss::Loss;
use crate::options::{Kind, Options, Range, Value, option};
use crate::target::network::Network;
use crate::verb::{Call, Verb};
use anyhow::{anyhow, bail, ensure};
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The verb `predict`.
pub static PREDICT: Verb<Session, (Arc<Run>, Value), Json> = Verb {
    name: "predict",
    arguments: &["run", "inputs"],
    options: &[
        option(
            "temperature",
            Kind::Int(Range::NonNegative),
            "0",
            "Which temperature of a sweep or a ladder, by its index.",
        ),
        TARGET,
    ],
    doc: "What the networks of a run say of new inputs, averaged over the draws that it has kept (its option `keep`).\n\n\
          Inputs are an array or a tensor [rows, columns], as they are in the data's file: where the data set was scaled by its training split, they are too. Or they are the name \
          of a split, \"test\". \
          `#{ mean, sd, draws }`: for each row the mean over the draws and their standard deviation, of the probability of each class, or of each component of a real target. \
          The sd says how far networks differ, not how noisy targets are.",
    example: "let t = target(model::mlp(#{ layers: [1, 4, 1] }), dataset::arrays([0.0, 1.0, 2.0], [0.1, 0.9, 2.2]), #{ energy: \"sum\", prior: prior::gaussian(1) });\n\
              let r = sample(t, sampler::hmc(), #{ steps: 200, chains: 2, keep: 10 });\n\
              predict(r, [[0.5], [1.5]]).mean",
    call: Call::Checked(|(run, inputs), o, session| predict(&run, &inputs, o, session)),
};

/// Draws that an accelerator has at a time.
const TOGETHER: usize = 64;

/// Means and standard deviations of what is predicted of each row.
fn predict(run: &Run, inputs: &Value, o: &Options, session: &Session) -> Result<Json> {
    let target = run.target(o)?;
    let placed = session.placed(&target)?;
    let (target, devices) = (&*placed.target, &placed.devices);
    let network = target.network("predict")?;
    let split = split(inputs, network)?;
    let info = &run.info;
    let temperature = o.size("temperature")?;
    ensure!(
        temperature < info.temperatures.len(),
        "predict: run '{}' has {}, so there is none with index {temperature}",
        info.name,
        crate::error::count(info.temperatures.len(), "temperature")
    );
    let draws = KeptDraws::of(run)?;
    let first = temperature * info.chains;
    let healthy = (first..first + info.chains).filter(|c| run.failures[*c].is_none());
    let all: Vec<_> = healthy
        .flat_map(|c| (0..draws.count(c)).map(move |i| (c, i)))
        .collect();
    ensure!(
        !all.is_empty(),
        "predict: run '{}' has no draw of a healthy chain there",
        info.name
    );
    let each = match (devices, inputs) {
        (Some(devices), Value::Text(name)) => {
            let mut each = Vec::with_capacity(all.len());
            for some in all.chunks(TOGETHER) {
                let draw = |(chain, i): &(usize, usize)| draws.draw(info, *chain, *i);
                let w = some.iter().map(draw).collect::<Result<Vec<_>>>()?;
                let mut device = Batched::new(devices, target, w.len(), 0, &Slots::NONE)?;
                device.write(Vector::Params, &w.concat())?;
                let outputs = w.iter().zip(device.predict(name)?);
                each.extend(outputs.map(|(w, outputs)| said(network, w, outputs)));
            }
            each
        }
        _ => {
            if !target.is_by_candle() {
                session.computes_here("predict: outputs for new rows");
            }
            let one = |(chain, i): &(usize, usize)| {
                let w = draws.draw(info, *chain, *i)?;
                Ok(said(network, &w, network.predict(&w, &split)?))
            };
            all.par_iter().map(one).collect::<Result<Vec<_>>>()?
        }
    };
    let (width, count) = (each[0].len(), each.len() as f64);
    let mean: Vec<f64> = (0..width)
        .map(|k| each.iter().map(|d| d[k]).sum::<f64>() / count)
        .collect();
    let sd = |k: usize| {
        let squares: f64 = each.iter().map(|d| (d[k] - mean[k]).powi(2)).sum();
        (squares / (count - 1.0).max(1.0)).sqrt()
    };
    let sd: Vec<f64> = (0..width).map(sd).collect();
    let rows = |all: &[f64]| {
        all.chunks(width / split.rows)
            .map(<[f64]>::to_vec)
            .collect::<Vec<_>>()
    };
    Ok(json!({ "mean": rows(&mean), "sd": rows(&sd), "draws": all.len() }))
}

/// The rows, with no targets.
fn split(inputs: &Value, network: &Network) -> Result<Split> {
    let dim = network.dataset().dim;
    let wrong = || {
        anyhow!(
            "predict: the inputs are {}, but must be an array or a tensor [rows, {dim}] of numbers, or the name of a split",
            inputs.describe()
        )
    };
    if let Value::Text(name) = inputs {
        return Ok(Split::clone(network.dataset().split(name)?));
    }
    let Value::List(rows) = inputs else {
        return Err(wrong());
    };
    ensure!(!rows.is_empty(), "predict: there are no rows");
    let data = network.dataset();
    let numbers = data.prepare(rows).map_err(|e| anyhow!("predict: {e:#}"))?;
    if let Some(name) = data.prepared_split(rows) {
        bail!(
            "predict: these are inputs of the split \"{name}\" as data.inputs gives them, which are scaled already, but predict scales rows as the file has them; \
             write predict(run, \"{name}\")"
        );
    }
    let targets = Targets::Values {
        width: 1,
        data: vec![0.0; rows.len()],
    };
    Split::new(dim, Inputs::F32(numbers), targets)
}

/// What one network says: probabilities of classes, or means of real targets.
fn said(network: &Network, w: &[f32], outputs: Vec<f32>) -> Vec<f64> {
    let outputs = predicted(network, w, outputs);
    let classes = network.dataset().classes;
    if classes == 0 || *network.loss() == Loss::SquaredError {
        return outputs.into_iter().map(f64::from).collect();
    }
    let softmax = |z: &[f32]| {
        let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let each: Vec<f64> = z.iter().map(|z| f64::from(z - most).exp()).collect();
        let sum: f64 = each.iter().sum();
        each.into_iter().map(move |x| x / sum).collect::<Vec<_>>()
    };
    outputs.chunks(classes).flat_map(softmax).collect()
}
