//! Losses as a script names them: `loss::…`, and closures.

use super::Declared;
use super::formula::{Formula, Write};
use super::likelihood::{
    bernoulli, categorical, entry, laplace, normal, ordinal, poisson, student_t,
};
use super::loss::Loss;
use super::named::Named;
use super::place::Place;
use super::support::Support;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::kernels::tensor::{Binary, Reduce, Tensor, Unary};
use crate::options::{Entry, Kind, Options, Range, Value, option, optional, required};
use anyhow::ensure;
use std::sync::Arc;

/// How many outputs a loss takes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outputs {
    /// Any number.
    Any,
    /// So many for each component of a target.
    PerTarget(usize),
    /// One for each class.
    PerClass,
    /// One, of classes.
    OneOfClasses,
}

/// A loss as a script names it, before it is put on a model and its data.
#[derive(Clone)]
pub enum Chosen {
    /// One of those that need no formula.
    Known(Loss),
    /// A formula.
    Written {
        /// What it is called.
        name: String,
        /// Its own parameters; an ordered one of no length gets one number less than there are classes.
        parameters: Vec<Declared>,
        /// Outputs that it takes.
        outputs: Outputs,
        /// What makes means of the targets of the first outputs.
        link: Option<Unary>,
        /// The formula.
        write: Write,
    },
}

crate::object::object!(Chosen: "Loss", text: |l| l.describe());

impl Chosen {
    fn describe(&self) -> String {
        match self {
            Self::Known(loss) => loss.name(),
            Self::Written { name, .. } => name.clone(),
        }
    }

    /// From an option: a loss, or its name.
    ///
    /// # Errors
    /// If it is neither.
    pub fn from_value(value: &Value) -> Result<Self> {
        let wrong = |found: String| {
            anyhow::anyhow!(
                "target: option 'loss' is {found}, but must be \"cross_entropy\", \"squared_error\", a loss as loss::gaussian(0.1), or a closure |out, y| …"
            )
        };
        match value {
            Value::Text(name) => {
                let known = [Loss::CrossEntropy, Loss::SquaredError];
                let found = known.into_iter().find(|l| l.name() == *name);
                let own = REGISTRY.iter().find(|e| e.name == name);
                let hint = match own {
                    Some(e) => format!(
                        ", which is written loss::{}({})",
                        e.name,
                        e.arguments.join(", ")
                    ),
                    None => crate::error::did_you_mean(name, Loss::NAMES.iter().copied()),
                };
                Ok(Self::Known(
                    found.ok_or_else(|| wrong(format!("\"{name}\"{hint}")))?,
                ))
            }
            other => {
                let found = other.as_object::<Self>();
                Ok((*found.ok_or_else(|| wrong(other.describe()))?).clone())
            }
        }
    }

    /// The loss of a model with so many outputs, at each position, on a data set.
    ///
    /// # Errors
    /// If they do not fit, or the formula gives no number that depends on the outputs.
    pub fn on(&self, outputs: usize, data: &Dataset) -> Result<Loss> {
        let (name, parameters, wanted, link, write) = match self {
            Self::Known(loss) => return Ok(loss.clone()),
            Self::Written {
                name,
                parameters,
                outputs,
                link,
                write,
            } => (name, parameters, outputs, link, write),
        };
        let width = match data.classes {
            0 => data.train.targets.width(),
            _ => 1,
        };
        let needed = match wanted {
            Outputs::Any => None,
            Outputs::PerTarget(each) => {
                ensure!(
                    data.classes == 0,
                    "the loss {name} needs real targets, but '{}' has classes",
                    data.name
                );
                Some((
                    each * width,
                    format!("{each} for each of {width} target components"),
                ))
            }
            Outputs::PerClass | Outputs::OneOfClasses => {
                ensure!(
                    data.classes > 0,
                    "the loss {name} needs classes, but '{}' has real targets",
                    data.name
                );
                match wanted {
                    Outputs::PerClass => Some((data.classes, "one for each class".into())),
                    _ => Some((1, "one, for classes in an order".into())),
                }
            }
        };
        if let Some((needed, why)) = needed {
            ensure!(
                outputs == needed,
                "the loss {name} takes {needed} outputs ({why}), but the model has {outputs}"
            );
        }
        let mut parameters = parameters.clone();
        for d in parameters
            .iter_mut()
            .filter(|d| d.support == Support::Ordered && d.shape.is_empty())
        {
            ensure!(
                data.classes > 1,
                "the loss {name} needs at least two classes, but '{}' has {}",
                data.name,
                data.classes
            );
            d.shape = vec![data.classes - 1];
        }
        let formula = Formula::new(
            name,
            parameters,
            outputs,
            width,
            *link,
            write,
            data.train.weights.is_some(),
        )?;
        Ok(Loss::Formula(Arc::new(formula)))
    }
}

/// The parameter that a scale is, if it is one.
fn sampled(scale: &Place) -> Vec<Declared> {
    match scale {
        Place::Number(_) => Vec::new(),
        Place::Parameter(name) => vec![Declared {
            name: name.clone(),
            shape: Vec::new(),
            support: Support::Positive,
        }],
    }
}

/// A scale as a part of a formula.
fn tensor(scale: &Place, own: &Named, like: &Tensor) -> Result<Tensor> {
    match scale {
        Place::Number(x) => Tensor::number(*x, like),
        Place::Parameter(name) => own.get(name),
    }
}

const SCALE: Kind = Kind::Anything("number > 0, or the name of a parameter that is then sampled");

/// A loss with a scale.
fn with_scale(
    o: &Options,
    option: &str,
    of: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Arc<Chosen>> {
    let scale = Place::of(o, option, true)?;
    Ok(Arc::new(Chosen::Written {
        name: format!(
            "{}({})",
            o.owner().trim_start_matches("loss::"),
            scale.describe()
        ),
        parameters: sampled(&scale),
        outputs: Outputs::PerTarget(1),
        link: None,
        write: Arc::new(move |out, y, own| of(y, out, &tensor(&scale, own, out)?)),
    }))
}

fn written(
    name: String,
    outputs: Outputs,
    link: Option<Unary>,
    write: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Arc<Chosen> {
    Arc::new(Chosen::Written {
        name,
        parameters: Vec::new(),
        outputs,
        link,
        write: Arc::new(move |out, y, _| write(out, y)),
    })
}

/// `loss::…`.
pub const REGISTRY: &[Entry<Arc<Chosen>>] = &[
    Entry {
        name: "squared_error",
        doc: "|target - output|², summed over components, without ½; of classes the target is 1 for the label and 0 elsewhere.",
        arguments: &[],
        options: &[],
        example: "loss::squared_error()",
        build: |_| Ok(Arc::new(Chosen::Known(Loss::SquaredError))),
    },
    Entry {
        name: "cross_entropy",
        doc: "-ln softmax(output)[label]. With `smoothing` ε the target is 1 - ε for the label and ε/(K - 1) for each other class; `class_weights` multiply the losses of the rows of each class.",
        arguments: &[],
        options: &[
            option(
                "smoothing",
                Kind::Float(Range::From0To1),
                "0",
                "ε, what the other classes share.",
            ),
            optional(
                "class_weights",
                Kind::Floats(Range::NonNegative),
                "all 1",
                "A weight per class.",
            ),
        ],
        example: "loss::cross_entropy(#{ smoothing: 0.1 })",
        build: cross_entropy,
    },
    Entry {
        name: "focal",
        doc: "-(1 - p)^γ ln p, where p = softmax(output)[label] (Lin et al. 2017, eq. 4): examples that are classified well count less.",
        arguments: &["gamma"],
        options: &[option(
            "gamma",
            Kind::Float(Range::NonNegative),
            "2",
            "γ; 0 is the cross-entropy.",
        )],
        example: "loss::focal(2.0)",
        build: |o| {
            let gamma = o.float("gamma")?;
            Ok(written(
                format!("focal({gamma})"),
                Outputs::PerClass,
                None,
                move |out, y| {
                    let nll = categorical(y, out)?;
                    let p = nll.unary(Unary::Negate)?.unary(Unary::Exp)?;
                    let rest = Tensor::number(1.0, &p)?.binary(Binary::Subtract, &p)?;
                    rest.power(gamma)?.binary(Binary::Multiply, &nll)
                },
            ))
        },
    },
    Entry {
        name: "gaussian",
        doc: "-ln N(target; output, sd²), summed over components: with `energy: \"sum\"` and T = 1 the posterior of a network with Gaussian noise.\n\nThe noise is a number, or the name of a parameter that is sampled with the weights and has a prior of its own.",
        arguments: &["sd"],
        options: &[required("sd", SCALE, "Standard deviation of the noise.")],
        example: "target(model::mlp(#{ layers: [1, 8, 1] }), dataset::arrays([0.0, 1.0, 2.0], [0.1, 0.9, 2.2]), #{\n    loss: loss::gaussian(\"sigma\"), energy: \"sum\",\n    prior: #{ \"*\": prior::normal(0, 1), sigma: prior::half_cauchy(1) },\n})",
        build: |o| with_scale(o, "sd", normal),
    },
    Entry {
        name: "laplace",
        doc: "-ln of a Laplace density of the target about the output, summed over components: |y - f|/scale + ln(2 scale).",
        arguments: &["scale"],
        options: &[required("scale", SCALE, "Scale of the noise.")],
        example: "loss::laplace(0.5)",
        build: |o| with_scale(o, "scale", laplace),
    },
    Entry {
        name: "student_t",
        doc: "-ln of Student's t density of the target about the output, summed over components: noise with outliers.",
        arguments: &["nu", "scale"],
        options: &[
            required(
                "nu",
                Kind::Float(Range::Positive),
                "ν, the degrees of freedom.",
            ),
            required("scale", SCALE, "Scale of the noise."),
        ],
        example: "loss::student_t(4, 0.5)",
        build: |o| {
            let (nu, scale) = (o.float("nu")?, Place::of(o, "scale", true)?);
            Ok(Arc::new(Chosen::Written {
                name: format!("student_t({nu}, {})", scale.describe()),
                parameters: sampled(&scale),
                outputs: Outputs::PerTarget(1),
                link: None,
                write: Arc::new(move |out, y, own| {
                    student_t(y, nu, out, &tensor(&scale, own, out)?)
                }),
            }))
        },
    },
    Entry {
        name: "heteroscedastic",
        doc: "-ln N(target; mean, sd²) where the network says both: of 2k outputs the first k are means, the others ln sd.",
        arguments: &[],
        options: &[],
        example: "target(model::mlp(#{ layers: [1, 8, 2] }), dataset::arrays([0.0, 1.0, 2.0], [0.1, 0.9, 2.2]), #{ loss: loss::heteroscedastic(), energy: \"sum\" })",
        build: |_| {
            Ok(written(
                "heteroscedastic".into(),
                Outputs::PerTarget(2),
                None,
                |out, y| {
                    let k = y.length()? as i64;
                    normal(
                        y,
                        &out.entries(0, k)?,
                        &out.entries(k, k)?.unary(Unary::Exp)?,
                    )
                },
            ))
        },
    },
    Entry {
        name: "poisson",
        doc: "-ln of a Poisson probability of counts, whose logarithm of the rate is the output: exp(f) - y f, summed over components, without ln y!.",
        arguments: &[],
        options: &[],
        example: "loss::poisson()",
        build: |_| {
            Ok(written(
                "poisson".into(),
                Outputs::PerTarget(1),
                Some(Unary::Exp),
                |out, y| poisson(y, out),
            ))
        },
    },
    Entry {
        name: "multi_label",
        doc: "-ln of independent yes or no: ln(1 + exp(f)) - y f for each component y = 0 or 1, summed.",
        arguments: &[],
        options: &[],
        example: "loss::multi_label()",
        build: |_| {
            Ok(written(
                "multi_label".into(),
                Outputs::PerTarget(1),
                Some(Unary::Sigmoid),
                |out, y| bernoulli(y, out),
            ))
        },
    },
    Entry {
        name: "ordinal",
        doc: "-ln P(label) for classes in an order: P(label ≤ k) = 1/(1 + exp(f - cuts_k)), where f is the only output and the K - 1 increasing `cuts` are sampled with the weights.",
        arguments: &[],
        options: &[],
        example: "loss::ordinal()",
        build: |_| {
            Ok(Arc::new(Chosen::Written {
                name: "ordinal".into(),
                parameters: vec![Declared {
                    name: "cuts".into(),
                    shape: Vec::new(),
                    support: Support::Ordered,
                }],
                outputs: Outputs::OneOfClasses,
                link: None,
                write: Arc::new(|out, y, own| ordinal(y, out, &own.get("cuts")?)),
            }))
        },
    },
];

fn cross_entropy(o: &Options) -> Result<Arc<Chosen>> {
    let (smoothing, weights) = (o.float("smoothing")?, o.floats("class_weights"));
    if smoothing == 0.0 && weights.is_none() {
        return Ok(Arc::new(Chosen::Known(Loss::CrossEntropy)));
    }
    let name = match &weights {
        None => format!("cross_entropy(smoothing {smoothing})"),
        Some(w) => format!("cross_entropy(smoothing {smoothing}, weights {w:?})"),
    };
    Ok(written(name, Outputs::PerClass, None, move |out, y| {
        let count = out.length()?;
        let each = smoothing / (count.max(2) - 1) as f64;
        // Σ_k q_k ln p_k with q = ε/(K-1) and 1 - ε for the label.
        let all = out
            .reduce_all(Reduce::Sum)?
            .binary(Binary::Multiply, &Tensor::number(each, out)?)?;
        let own = entry(y, out)?.binary(
            Binary::Multiply,
            &Tensor::number(1.0 - smoothing - each, out)?,
        )?;
        let loss = out.log_sum_exp(None, false)?;
        let loss = loss
            .binary(Binary::Subtract, &all)?
            .binary(Binary::Subtract, &own)?;
        let Some(weights) = &weights else {
            return Ok(loss);
        };
        ensure!(
            weights.len() == count,
            "loss::cross_entropy: {} class_weights for {count} classes",
            weights.len()
        );
        let weights = Tensor::from_f64(weights.clone(), &[count])?;
        entry(y, &weights)?.binary(Binary::Multiply, &loss)
    }))
}
