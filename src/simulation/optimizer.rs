//! Optimisers: not samplers, but where chains start and what they are compared with.

use crate::error::Result;
use crate::kernels::map::Kernel;
use crate::kernels::update;
use crate::options::{Entry, Kind, Options, Range, Spec, option};
use crate::rng::{Purpose, Stream};
use crate::schedule::Schedule;
use std::sync::Arc;

/// The rule by which a gradient moves the parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Kingma & Ba (2015).
    Adam {
        /// Decay of the first moment.
        b1: f32,
        /// Decay of the second moment.
        b2: f32,
        /// Added to the root.
        epsilon: f32,
        /// Share of the parameters that is taken off per unit of learning rate (Loshchilov & Hutter 2019).
        decay: f32,
    },
    /// Gradient descent with momentum.
    Sgd {
        /// Share of the velocity that is kept.
        momentum: f32,
    },
}

/// When training stops before its last epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyStopping {
    /// Never.
    Never,
    /// When the loss on the validation split has not improved.
    Loss,
    /// When the error on the validation split has not improved.
    Error,
}

/// An optimiser with its schedule.
#[derive(Debug, Clone)]
pub struct Optimizer {
    /// Name and options, for summaries.
    pub text: String,
    /// Rule.
    pub rule: Rule,
    /// Learning rate by epoch.
    pub lr: Schedule,
    /// Epochs at most.
    pub epochs: u64,
    /// Examples per minibatch.
    pub batch: usize,
    /// Early stopping.
    pub early_stopping: EarlyStopping,
    /// Epochs without improvement that are waited for.
    pub patience: u64,
}

const EPOCHS: Spec = option(
    "epochs",
    Kind::Int(Range::AtLeast(1.0)),
    "50",
    "Passes over the training examples, at most.",
);
const BATCH: Spec = option(
    "batch",
    Kind::Int(Range::AtLeast(1.0)),
    "128",
    "Examples per minibatch, shuffled anew every epoch.",
);
const EARLY: Spec = option(
    "early_stopping",
    Kind::Choice(&["none", "loss", "error"]),
    "none",
    "Stop when this has not improved on the validation split, and keep the best parameters. Needs `validation` in the data set.",
);
const PATIENCE: Spec = option(
    "patience",
    Kind::Int(Range::AtLeast(1.0)),
    "20",
    "Epochs without improvement before stopping early.",
);

const ADAM_LR: Spec = option(
    "lr",
    Kind::Schedule(Range::Positive),
    "1e-3",
    "Learning rate, or a schedule over epochs, e.g. schedule::decay(1e-4, 0.8, 1000).",
);
const BETA1: Spec = option(
    "beta1",
    Kind::Float(Range::From0To1),
    "0.9",
    "Decay of the mean gradient.",
);
const BETA2: Spec = option(
    "beta2",
    Kind::Float(Range::From0To1),
    "0.999",
    "Decay of the mean squared gradient.",
);
const EPSILON: Spec = option(
    "epsilon",
    Kind::Float(Range::Positive),
    "1e-8",
    "Added to the root of the mean square.",
);

fn adam(o: &Options, decay: f32) -> Result<Rule> {
    Ok(Rule::Adam {
        b1: o.float("beta1")? as f32,
        b2: o.float("beta2")? as f32,
        epsilon: o.float("epsilon")? as f32,
        decay,
    })
}

/// `optimizer::…`.
pub const REGISTRY: &[Entry<Arc<Optimizer>>] = &[
    Entry {
        name: "adam",
        doc: "Adam (Kingma & Ba 2015), on the gradient of L + R/s.",
        arguments: &[],
        options: &[
            ADAM_LR, BETA1, BETA2, EPSILON, EPOCHS, BATCH, EARLY, PATIENCE,
        ],
        example: "optimizer::adam(#{ lr: schedule::decay(1e-3, 0.8, 10), epochs: 40, batch: 128 })",
        build: |o| build(o, "adam", adam(o, 0.0)?),
    },
    Entry {
        name: "adamw",
        doc: "Adam with decoupled weight decay (Loshchilov & Hutter 2019): `w ← (1 - lr·weight_decay) w` before each step of Adam.\n\n\
              Decays all parameters, as `torch.optim.AdamW` given all of them does.",
        arguments: &[],
        options: &[
            ADAM_LR,
            BETA1,
            BETA2,
            EPSILON,
            option(
                "weight_decay",
                Kind::Float(Range::NonNegative),
                "0.01",
                "Fraction of the parameters that is subtracted per unit of learning rate.",
            ),
            EPOCHS,
            BATCH,
            EARLY,
            PATIENCE,
        ],
        example: "optimizer::adamw(#{ lr: 1e-3, weight_decay: 0.05, epochs: 20, batch: 32 })",
        build: |o| build(o, "adamw", adam(o, o.float("weight_decay")? as f32)?),
    },
    Entry {
        name: "sgd",
        doc: "Stochastic gradient descent with momentum, on the gradient of L + R/s: `v ← μv + g`, `w ← w - lr·v`.",
        arguments: &[],
        options: &[
            option(
                "lr",
                Kind::Schedule(Range::Positive),
                "1e-2",
                "Learning rate, or a schedule over epochs.",
            ),
            option(
                "momentum",
                Kind::Float(Range::From0To1),
                "0.9",
                "μ, the share of the velocity that is kept.",
            ),
            EPOCHS,
            BATCH,
            EARLY,
            PATIENCE,
        ],
        example: "optimizer::sgd(#{ lr: 0.05, momentum: 0.9, epochs: 20 })",
        build: |o| {
            build(
                o,
                "sgd",
                Rule::Sgd {
                    momentum: o.float("momentum")? as f32,
                },
            )
        },
    },
];

fn build(o: &Options, name: &str, rule: Rule) -> Result<Arc<Optimizer>> {
    let early_stopping = match o.text("early_stopping")? {
        "loss" => EarlyStopping::Loss,
        "error" => EarlyStopping::Error,
        _ => EarlyStopping::Never,
    };
    let options: Vec<_> = o
        .describe()
        .into_iter()
        .map(|(k, v)| format!("{k} {v}"))
        .collect();
    Ok(Arc::new(Optimizer {
        text: format!("{name}: {}", options.join(", ")),
        rule,
        lr: o.schedule("lr")?,
        epochs: o.int("epochs")?,
        batch: o.size("batch")?,
        early_stopping,
        patience: o.int("patience")?,
    }))
}

impl Optimizer {
    /// What moves parameters by a gradient of `1/inverse` times the energy, and its scalars: over the parameters, as many of two vectors of the optimiser
    /// as it writes, and the gradient. `step` counts from 1.
    pub fn rule(&self, epoch: u64, step: u64, inverse: f32) -> (&'static Kernel, Vec<f32>) {
        let lr = self.lr.at(epoch) as f32;
        match self.rule {
            Rule::Adam {
                b1,
                b2,
                epsilon,
                decay,
            } => {
                let correct =
                    |b: f32| (1.0 / (1.0 - (b as f64).powi(step.min(1 << 30) as i32))) as f32;
                let kept = 1.0 - lr * decay;
                let (c1, c2) = (correct(b1), correct(b2));
                (
                    &update::ADAM,
                    vec![inverse, kept, lr, b1, b2, epsilon, c1, c2],
                )
            }
            Rule::Sgd { momentum } => (&update::HEAVY_BALL, vec![inverse, lr, momentum]),
        }
    }

    /// Move `w` by the gradient; `a` and `b` are the optimiser's two vectors. See [`Optimizer::rule`].
    pub fn apply(
        &self,
        w: &mut [f32],
        [a, b]: [&mut [f32]; 2],
        grad: &[f32],
        (epoch, step): (u64, u64),
        inverse: f32,
    ) {
        let (kernel, scalars) = self.rule(epoch, step, inverse);
        let mut written = [w, a, b];
        let stream = Stream::new(0, Purpose::Train, 0, 0);
        kernel.run(
            &mut written[..kernel.outs.len()],
            &[grad],
            &scalars,
            &stream,
        );
    }
}

crate::object::object!(Optimizer: "Optimizer", text: |o| o.text.clone());
