//! Data made by a model: teacher and student.

use super::Model;
use crate::dataset::{Dataset, Inputs, Split, Targets};
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::options::{Entry, Kind, Options, Range, option, required};
use crate::rng::{Purpose, Stream};
use candle_core::{Device, Tensor};
use std::sync::Arc;

/// `dataset::teacher`.
pub const REGISTRY: &[Entry<Arc<Dataset>>] = &[ENTRY];

const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "teacher",
    doc: "The outputs of a model with randomly drawn parameters for random inputs, with noise: regression with a known truth.\n\n\
          `y = f(x) + noise·η` with x and η standard normal, and f the model with the parameters that its `init` draws from the seed (Iwagaki & \
          Watanabe, §3.1: tanh(B tanh(Ax)) of width 10-3-10, noise 0.1, parameters uniform in 0..1). The test split keeps its noise-free targets: \
          `predict: \"test\"` then gives the generalisation error of the averaged prediction.",
    arguments: &["model"],
    options: &[
        required("model", Kind::Object("Model"), "The teacher f."),
        option(
            "noise",
            Kind::Float(Range::NonNegative),
            "0.1",
            "Standard deviation of the noise on a target component.",
        ),
        option(
            "train",
            Kind::Int(Range::AtLeast(1.0)),
            "1000",
            "Training rows.",
        ),
        option(
            "test",
            Kind::Int(Range::NonNegative),
            "10_000",
            "Test rows.",
        ),
        option(
            "seed",
            Kind::Int(Range::NonNegative),
            "1",
            "Seed of inputs, noise and teacher.",
        ),
    ],
    example: "dataset::teacher(model::mlp(#{ layers: [10, 3, 10], activation: \"tanh\", output: \"tanh\", bias: false, init: \"uniform\" }), #{ test: 100 })",
    build,
};

fn build(o: &Options) -> Result<Arc<Dataset>> {
    let missing = || anyhow::anyhow!("{}: option 'model' holds no model", o.owner());
    let model = o.object::<Arc<dyn Model>>("model").ok_or_else(missing)?;
    let (seed, noise) = (o.int("seed")?, o.float("noise")?);
    let (train, test) = (o.size("train")?, o.size("test")?);
    anyhow::ensure!(
        (train + test)
            .checked_mul(model.inputs() + model.outputs())
            .is_some_and(|n| n < 1 << 31),
        "{}: more than 2^31 numbers",
        o.owner()
    );
    let stream = |use_of: usize| Stream::new(seed, Purpose::Dataset, use_of, 0);
    let parameters = model.initialise(stream(0));
    // Inputs, noise: streams 1 and 2 of the training split, 3 and 4 of the test split.
    let split = |rows: usize, first: usize| -> Result<(Split, Vec<f32>)> {
        let mut x = vec![0f32; rows * model.inputs()];
        fill_normal(&stream(first), &mut x);
        let clean = answers(&**model, &parameters, &x, rows)?;
        let mut y = vec![0f32; clean.len()];
        fill_normal(&stream(first + 1), &mut y);
        y.iter_mut()
            .zip(&clean)
            .for_each(|(y, f)| *y = f + noise as f32 * *y);
        let targets = Targets::Values {
            width: model.outputs(),
            data: y,
        };
        Ok((Split::new(model.inputs(), Inputs::F32(x), targets)?, clean))
    };
    let (training, _) = split(train, 1)?;
    let testing = (test > 0).then(|| split(test, 3)).transpose()?;
    let (testing, clean) = testing.unzip();
    let provenance = vec![
        (
            "teacher".to_string(),
            format!("{}, seed {seed}", model.describe()),
        ),
        ("noise".to_string(), format!("{noise}")),
    ];
    let mut data = Dataset::new("teacher", 0, training, testing, provenance)?;
    data.clean = clean.map(Arc::new);
    Ok(Arc::new(data))
}

fn answers(model: &dyn Model, parameters: &[f32], x: &[f32], rows: usize) -> Result<Vec<f32>> {
    let parameters = Tensor::from_slice(parameters, parameters.len(), &Device::Cpu)?;
    let x = Tensor::from_slice(x, (rows, model.inputs()), &Device::Cpu)?;
    Ok(model
        .forward_tensor(&parameters, &x)?
        .flatten_all()?
        .to_vec1()?)
}
