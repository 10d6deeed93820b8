//! Problems with a known answer, ready to be estimated: network, data, target and true weights.

use crate::dataset::Dataset;
use crate::error::Result;
use crate::model::Model;
use crate::model::deep_linear::learning_coefficient;
use crate::model::deep_linear::problem::NAMES;
use crate::model::deep_linear::{CLASSES, Class, Problem};
use crate::object::Held;
use crate::options::Value;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::simulation::session::Session;
use crate::store::weights::save_weights;
use crate::target::network::Network;
use crate::target::prior::{Parameters, Prior};
use crate::target::{EnergyScale, Target};
use crate::verb::{Call, Verb};
use serde_json::{Value as Json, json};
use std::fmt;
use std::sync::Arc;

/// Options of `llc_problem(#{…})`.
pub const OPTIONS: &[Spec] = &[
    optional(
        "class",
        Kind::Choice(NAMES),
        "\"1K\" unless widths are given",
        "Class of random problems (Hitchcock & Hoogland 2025, table 1; \"1K\" is an addition): its name is roughly the number of parameters.",
    ),
    option(
        "index",
        Kind::Int(Range::NonNegative),
        "0",
        "Which problem of the class.",
    ),
    optional(
        "widths",
        Kind::Ints(Range::AtLeast(1.0)),
        "random",
        "H_0 … H_M, in place of a class. All layers then have rank `rank` on shared units: the most singular weights with this product.",
    ),
    optional(
        "rank",
        Kind::Int(Range::NonNegative),
        "0",
        "Rank of the product, with `widths`.",
    ),
    N,
    DATA,
    NOISE,
    option(
        "seed",
        Kind::Int(Range::NonNegative),
        "1",
        "Seed of shapes, weights and data.",
    ),
];

/// The option `n`, as in the benchmark.
pub(crate) const N: Spec = option(
    "n",
    Kind::Int(Range::Between(2.0, 4294967295.0)),
    "1_000_000",
    "n, examples.",
);

/// The option `data`, as in the benchmark.
pub(crate) const DATA: Spec = option(
    "data",
    Kind::Choice(&["rows", "moments"]),
    "rows",
    "\"rows\" generates each example when it is read · \"moments\" compresses all of them to H_0 rows with the same second moments, which give \
     the same loss (up to a constant) and gradient, exactly.",
);

/// The option `noise`, as in the benchmark.
pub(crate) const NOISE: Spec = option(
    "noise",
    Kind::Float(Range::NonNegative),
    "0.5",
    "Standard deviation of the noise on a component of a target.",
);

/// A problem with its data.
pub struct Posed {
    /// Widths, weights and truth.
    pub problem: Problem,
    /// The network.
    pub model: Arc<dyn Model>,
    /// The data.
    pub data: Arc<Dataset>,
    /// Squared error of the network on the data.
    pub target: Arc<Target>,
    /// The true weights.
    pub start: Arc<Parameters>,
}

/// The class of that name.
pub fn class(name: &str) -> Class {
    let found = CLASSES.iter().find(|c| c.name == name);
    *found.unwrap_or(&CLASSES[0])
}

/// From the options of `llc_problem`.
pub fn pose(o: &Options, threads: usize) -> Result<Posed> {
    let seed = o.int("seed")?;
    let problem = match (o.opt_text("class"), o.sizes("widths")) {
        (Some(_), Some(_)) => anyhow::bail!(
            "{}: options 'class' and 'widths' are both given; a class draws its widths",
            o.owner()
        ),
        (name, None) => {
            anyhow::ensure!(
                o.opt_int("rank").is_none(),
                "{}: option 'rank' needs 'widths'; a class draws its ranks",
                o.owner()
            );
            Problem::draw(class(name.unwrap_or("1K")), seed, o.int("index")?)?
        }
        (None, Some(widths)) => {
            let rank = o.opt_int("rank").unwrap_or(0) as usize;
            Problem::singular(widths, rank, seed)?
        }
    };
    let setting = Setting {
        n: o.size("n")?,
        noise: o.float("noise")?,
        moments: o.text("data")? == "moments",
    };
    Posed::new(problem, setting, seed, threads)
}

/// What data a problem gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// n.
    pub n: usize,
    /// Standard deviation of the noise.
    pub noise: f64,
    /// Whether data are compressed to their moments.
    pub moments: bool,
}

impl Posed {
    /// A problem with data of its own.
    pub fn new(problem: Problem, setting: Setting, seed: u64, threads: usize) -> Result<Self> {
        let model = problem.model();
        let mut data = problem.data(setting.n, setting.noise, seed)?;
        if setting.moments {
            data = data.moments(threads)?;
        }
        let data = Arc::new(data);
        let network = Network::new(model.clone(), data.clone(), None)?;
        let target = Target::new(Arc::new(network), EnergyScale::Mean, &Prior::None)?;
        let start = Parameters {
            vectors: vec![problem.weights.clone()],
        };
        Ok(Self {
            problem,
            model,
            data,
            target: Arc::new(target),
            start: Arc::new(start),
        })
    }
}

impl Posed {
    /// Write the true weights as safetensors, `w1` … in PyTorch's layout.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &std::path::Path) -> Result<()> {
        let tensors = self.model.layout().views(&self.problem.weights);
        save_weights(path, &tensors, &[])
    }
}

impl fmt::Display for Posed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p, t) = (&self.problem, &self.problem.truth);
        write!(
            f,
            "{}\n  product of rank {}, learning coefficient {} of multiplicity {}",
            self.model.describe(),
            p.rank,
            t.lambda,
            t.multiplicity
        )?;
        if p.regular > t.lambda {
            write!(
                f,
                "\n  at these weights the local coefficient is at least {}: half the rank of the Jacobian",
                p.regular
            )?;
        }
        write!(f, "\n{}", self.data)
    }
}

crate::object::object! {
    Posed: "Problem",
    fields: {
        "model" => |p| p.model.held(),
        "data" => |p| p.data.held(),
        "target" => |p| p.target.held(),
        "start" => |p| p.start.held(),
        "truth" => |p| p.problem.truth.lambda.into(),
        "multiplicity" => |p| p.problem.truth.multiplicity.into(),
        "regular" => |p| p.problem.regular.into(),
        "rank" => |p| p.problem.rank.into(),
        "widths" => |p| p.problem.widths.clone().into(),
    },
}

/// The verb `llc_problem`.
pub static LLC_PROBLEM: Verb<Session, (), Arc<Posed>> = Verb {
    name: "llc_problem",
    arguments: &[],
    options: OPTIONS,
    doc: "A deep linear network with true weights, its data, and its exact learning coefficient: a problem of the benchmark of Hitchcock & Hoogland (2025, D.1).\n\n\
         Fields: `model`, `data`, `target`, `start` (the true weights), `widths`, `rank`, `truth` (λ, Aoyagi's formula), `multiplicity`, and `regular`: half the rank of \
         the Jacobian at the weights. λ is the least coefficient over all weights with this product, and that of the weights themselves is at least `regular`: \
         where that is larger, estimates at `start` rightly lie above λ. With `widths` and `rank` the weights are those where both agree.",
    example: "llc_problem(#{ widths: [5, 6, 9, 4], rank: 1, n: 10_000, data: \"moments\" })",
    call: Call::Checked(|(), o, session| pose(o, session.threads).map(Arc::new)),
};

/// The verb `learning_coefficient`.
pub(crate) static LEARNING_COEFFICIENT: Verb<(), (Vec<Value>, i64), Json> = Verb {
    name: "learning_coefficient",
    arguments: &["widths", "rank"],
    options: &[],
    doc: "λ and multiplicity of a deep linear network of these widths whose product has this rank, exactly: `#{ lambda, multiplicity }`.\n\n\
         Aoyagi (2024), as corrected: the last condition on the set Σ has min, where Hitchcock & Hoogland (2025) print max. With three widths it is Aoyagi & \
         Watanabe's reduced-rank regression (2005).",
    example: "learning_coefficient([5, 6, 9, 4], 1)",
    call: Call::Checked(|(widths, rank), _, ()| {
        let width = |x: &Value| match x {
            Value::Int(x) => usize::try_from(*x).ok(),
            _ => None,
        };
        let widths: Option<Vec<_>> = widths.iter().map(width).collect();
        let (Some(widths), Ok(rank)) = (widths, usize::try_from(rank)) else {
            anyhow::bail!(
                "learning_coefficient: widths and rank must be whole numbers, not negative"
            );
        };
        let found = learning_coefficient(&widths, rank)?;
        Ok(json!({ "lambda": found.lambda, "multiplicity": found.multiplicity }))
    }),
};
