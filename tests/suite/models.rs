//! The contract of models: hand-derived gradients against candle's autograd and finite differences, in double precision.

use super::support::check_along;
use candle_core::{DType, Device, Tensor, Var};
use ergodic::dataset::{Dataset, Inputs, Split, Targets};
use ergodic::kernels::elementwise::Activation;
use ergodic::kernels::normal::fill_normal;
use ergodic::model::from_candle::from_candle;
use ergodic::model::initialise::Initialise;
use ergodic::model::loss::Loss;
use ergodic::model::mlp::Mlp;
use ergodic::model::{Layout, Model};
use ergodic::rng::{Purpose, Stream};
use ergodic::target::network::Network;
use ergodic::target::{Potential, Rows, Workspace};
use std::sync::Arc;

fn normals(n: usize, step: u64) -> Vec<f32> {
    let mut x = vec![0.0; n];
    fill_normal(&Stream::new(5, Purpose::Dataset, 0, step), &mut x);
    x
}

const ROWS: usize = 700;

pub fn dataset(dim: usize, outputs: usize, classes: bool) -> Arc<Dataset> {
    let targets = if classes {
        Targets::Classes((0..ROWS).map(|i| (i * 7 % outputs) as u32).collect())
    } else {
        Targets::Values {
            width: outputs,
            data: normals(ROWS * outputs, 2),
        }
    };
    let split = Split::new(dim, Inputs::F32(normals(ROWS * dim, 1)), targets).unwrap();
    Arc::new(
        Dataset::new(
            "made up",
            if classes { outputs } else { 0 },
            split,
            None,
            Vec::new(),
        )
        .unwrap(),
    )
}

/// The summed loss by candle, in double precision.
fn reference_loss(
    model: &dyn Model,
    w: &Tensor,
    data: &Dataset,
    loss: &Loss,
) -> candle_core::Result<Tensor> {
    let Inputs::F32(x) = &data.train.inputs else {
        unreachable!()
    };
    let x = Tensor::from_slice(x, (ROWS, data.dim), &Device::Cpu)?.to_dtype(DType::F64)?;
    let out = model.forward_tensor(w, &x)?;
    match (&data.train.targets, loss) {
        (Targets::Classes(labels), Loss::CrossEntropy) => {
            let labels = Tensor::from_slice(labels, ROWS, &Device::Cpu)?;
            candle_nn::loss::cross_entropy(&out, &labels)? * ROWS as f64
        }
        (Targets::Classes(labels), Loss::SquaredError) => {
            let mut y = vec![0f64; ROWS * data.outputs];
            labels
                .iter()
                .enumerate()
                .for_each(|(i, l)| y[i * data.outputs + *l as usize] = 1.0);
            (out - Tensor::from_slice(&y, (ROWS, data.outputs), &Device::Cpu)?)?
                .sqr()?
                .sum_all()
        }
        (Targets::Values { data: y, .. }, _) => {
            let y =
                Tensor::from_slice(y, (ROWS, data.outputs), &Device::Cpu)?.to_dtype(DType::F64)?;
            (out - y)?.sqr()?.sum_all()
        }
        (Targets::Made(_), _) => unreachable!("these data are in memory"),
        (Targets::Sequence { .. }, _) => unreachable!("rows have one label here"),
        (_, Loss::Formula(_)) => unreachable!("formulas have tests of their own"),
    }
}

/// Compare loss and gradient of one model with candle and with central differences.
pub fn check(name: &str, model: Arc<dyn Model>, data: Arc<Dataset>, loss: Loss) {
    let n = model.layout().len();
    // Off the initial point, so that biases take part.
    let w: Vec<f32> = model
        .initialise(Stream::new(1, Purpose::Initialise, 0, 0))
        .iter()
        .zip(normals(n, 3))
        .map(|(a, b)| a + 0.05 * b)
        .collect();
    let network = Network::new(model.clone(), data.clone(), Some(loss.clone())).unwrap();
    let mut grad = vec![f32::NAN; n];
    let sums = network
        .sums(&w, Rows::All, Some(&mut grad), &mut Workspace::default())
        .unwrap();

    let exact: Vec<f64> = w.iter().map(|x| *x as f64).collect();
    let var = Var::from_slice(&exact, n, &Device::Cpu).unwrap();
    let value = reference_loss(&*model, var.as_tensor(), &data, &loss).unwrap();
    let by_candle = value
        .backward()
        .unwrap()
        .get(var.as_tensor())
        .unwrap()
        .to_vec1::<f64>()
        .unwrap();
    let value = value.to_scalar::<f64>().unwrap();
    assert!(
        (sums.loss / value - 1.0).abs() < 1e-5,
        "{name}: loss {} against {value}",
        sums.loss
    );

    let norm = by_candle.iter().map(|g| g * g).sum::<f64>().sqrt();
    let distance = by_candle
        .iter()
        .zip(&grad)
        .map(|(a, b)| (a - *b as f64).powi(2))
        .sum::<f64>()
        .sqrt();
    assert!(
        distance < 2e-5 * norm,
        "{name}: gradient off by {:.1e} of its length",
        distance / norm
    );

    let exactly = |w: &[f64]| {
        let w = Tensor::from_slice(w, n, &Device::Cpu).unwrap();
        reference_loss(&*model, &w, &data, &loss)
            .unwrap()
            .to_scalar::<f64>()
            .unwrap()
    };
    let directions: Vec<_> = (0..3).map(|d| normals(n, 10 + d)).collect();
    check_along(
        name,
        exactly,
        &exact,
        &grad,
        &directions,
        (1e-7, 1e-4 * norm),
    );
}

#[test]
fn mlp_gradients_match_autograd_and_finite_differences() {
    for name in Activation::NAMES {
        let f = Activation::parse(name).unwrap();
        for (classes, loss) in [
            (true, Loss::CrossEntropy),
            (true, Loss::SquaredError),
            (false, Loss::SquaredError),
        ] {
            for bias in [true, false] {
                let net = Mlp::new("mlp", vec![9, 13, 7, 4], f, f, bias, Initialise::He);
                check(
                    &format!("{name}, {loss:?}, bias {bias}"),
                    Arc::new(net),
                    dataset(9, 4, classes),
                    loss.clone(),
                );
            }
        }
    }
}

#[test]
fn deep_linear_gradients_match_autograd_and_finite_differences() {
    let identity = Activation::Identity;
    let net = Mlp::new(
        "deep_linear",
        vec![6, 5, 5, 3],
        identity,
        identity,
        false,
        Initialise::Glorot,
    );
    check(
        "deep linear",
        Arc::new(net),
        dataset(6, 3, false),
        Loss::SquaredError,
    );
}

/// A model that implements no more than `forward_tensor`.
struct Bare(Mlp);

impl Model for Bare {
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn layout(&self) -> &Layout {
        self.0.layout()
    }
    fn inputs(&self) -> usize {
        self.0.inputs()
    }
    fn outputs(&self) -> usize {
        self.0.outputs()
    }
    fn initialise(&self, stream: Stream) -> Vec<f32> {
        self.0.initialise(stream)
    }
    fn forward_tensor(&self, params: &Tensor, inputs: &Tensor) -> candle_core::Result<Tensor> {
        self.0.forward_tensor(params, inputs)
    }
}

#[test]
fn a_model_with_only_a_forward_pass_gets_its_gradient_from_autograd() {
    let net = Mlp::new(
        "mlp",
        vec![9, 8, 4],
        Activation::Tanh,
        Activation::Identity,
        true,
        Initialise::He,
    );
    check(
        "autograd",
        Arc::new(Bare(net)),
        dataset(9, 4, true),
        Loss::CrossEntropy,
    );
}

/// A network of candle has the outputs of the native one at the same weights, which go from candle's variables to it and back.
#[test]
fn a_network_of_candle_is_a_model() {
    use candle_nn::{Activation as Of, Module, VarBuilder, VarMap, linear, seq};
    let build = |vb: VarBuilder| {
        let [first, second] = [vb.pp("first"), vb.pp("second")];
        let net = seq().add(linear(9, 8, first)?).add(Of::Relu);
        Ok(net.add(linear(8, 4, second)?))
    };
    let net = from_candle(9, build).unwrap();
    let names: Vec<_> = net.layout().tensors().iter().map(|t| &*t.name).collect();
    assert_eq!(
        names,
        ["first.weight", "first.bias", "second.weight", "second.bias"]
    );
    check(
        "candle",
        net.clone(),
        dataset(9, 4, true),
        Loss::CrossEntropy,
    );
    let variables = VarMap::new();
    let vb = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
    let trained = build(vb).unwrap();
    let w = net.layout().weights_of(&variables).unwrap();
    let x = Tensor::from_vec(normals(5 * 9, 3), (5, 9), &Device::Cpu).unwrap();
    let numbers = |t: Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let native = Mlp::new(
        "mlp",
        vec![9, 8, 4],
        Activation::Relu,
        Activation::Identity,
        true,
        Initialise::He,
    );
    let flat = |w: &[f32]| Tensor::from_slice(w, w.len(), &Device::Cpu).unwrap();
    let outputs = |net: &dyn Model, w: &[f32]| numbers(net.forward_tensor(&flat(w), &x).unwrap());
    let here = numbers(trained.forward(&x).unwrap());
    for other in [outputs(&*net, &w), outputs(&native, &w)] {
        for (a, b) in here.iter().zip(other) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
    let moved: Vec<f32> = w.iter().map(|w| w + 0.25).collect();
    net.layout().set_variables(&moved, &variables).unwrap();
    assert_eq!(net.layout().weights_of(&variables).unwrap(), moved);
    assert_eq!(
        numbers(trained.forward(&x).unwrap()),
        outputs(&*net, &moved)
    );
    let wrong = net.layout().weights_of(&VarMap::new()).unwrap_err();
    assert_eq!(wrong.to_string(), "there is no variable 'first.weight'");
    let wrong = from_candle(10, build).err().unwrap();
    assert!(format!("{wrong:#}").contains("shape mismatch"), "{wrong:#}");
}

#[test]
fn shards_on_several_threads_give_the_same_bits() {
    let net = Mlp::new(
        "mlp",
        vec![9, 40, 4],
        Activation::Relu,
        Activation::Identity,
        true,
        Initialise::He,
    );
    let network = Network::new(Arc::new(net), dataset(9, 4, true), None).unwrap();
    let w = network.initialise(Stream::new(1, Purpose::Initialise, 0, 0));
    let run = |threads: usize| {
        let mut work = Workspace::new(threads);
        let mut grad = vec![0.0; w.len()];
        let sums = network
            .sums(&w, Rows::All, Some(&mut grad), &mut work)
            .unwrap();
        (
            sums.loss.to_bits(),
            sums.errors,
            grad.iter().map(|g| g.to_bits()).collect::<Vec<_>>(),
        )
    };
    for threads in [2, 3, 5] {
        assert_eq!(run(1), run(threads), "{threads} threads");
    }
}

/// candle multiplies a transposed left side with a broadcast right side wrongly (0.11): we must never rely on it.
#[test]
fn candle_broadcast_matmul_is_only_used_contiguous() {
    let a = Tensor::arange(0f32, 24.0, &Device::Cpu)
        .unwrap()
        .reshape((2, 4, 3))
        .unwrap();
    let b = Tensor::arange(0f32, 8.0, &Device::Cpu)
        .unwrap()
        .reshape((1, 4, 2))
        .unwrap();
    let left = a.transpose(1, 2).unwrap();
    let right = b.broadcast_as((2, 4, 2)).unwrap().contiguous().unwrap();
    let product = left
        .contiguous()
        .unwrap()
        .matmul(&right)
        .unwrap()
        .to_vec3::<f32>()
        .unwrap();
    for (k, page) in product.iter().enumerate() {
        for (i, row) in page.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                let expected: f32 = (0..4)
                    .map(|l| (k * 12 + l * 3 + i) as f32 * (l * 2 + j) as f32)
                    .sum();
                assert_eq!(*value, expected);
            }
        }
    }
}
