//! Observables that are one number each.

use super::{Handle, Observable, View};
use crate::engine::report;
use crate::error::Result;
use crate::kernels::update::{dot, squared_distance};
use crate::options::{Entry, Kind, Options, Spec, option, required};
use crate::target::Target;
use std::sync::Arc;

type Check = Box<dyn Fn(&Target) -> Result<()> + Send + Sync>;
type Measure = Box<dyn Fn(&mut View) -> Result<f64> + Send + Sync>;

/// Numbers that need to know what the sampler reports, or where the run started.
const OF_A_RUN: [&str; 5] = [
    "distance2",
    "overlap",
    "kinetic_temperature",
    "virial_temperature",
    "acceptance",
];

/// Why nothing is classified wrongly.
pub(crate) const NO_ERRORS: &str = "there are no classification errors where the data set has no classes, or the loss takes other outputs than one for each class; of the \
     latter the option `predict: [\"test\"]` has them: run.prediction(\"test\").error";

/// A number and how to read it.
struct Number {
    name: String,
    split: Option<String>,
    check: Option<Check>,
    measure: Measure,
}

impl Observable for Number {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn check(&self, target: &Target) -> Result<()> {
        self.check.as_ref().map_or(Ok(()), |c| c(target))
    }

    fn of_parameters(&self) -> bool {
        !OF_A_RUN.contains(&&*self.name)
    }

    fn split(&self) -> Option<&str> {
        self.split.as_deref()
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        out[0] = (self.measure)(view)?;
        Ok(())
    }
}

fn number(
    name: &str,
    measure: impl Fn(&mut View) -> Result<f64> + Send + Sync + 'static,
) -> Result<Handle> {
    Ok(Arc::new(Box::new(Number {
        name: name.into(),
        split: ["cost", "energy"].contains(&name).then(|| "train".into()),
        check: None,
        measure: Box::new(measure),
    })))
}

pub(super) const SPLIT: Spec = option(
    "split",
    Kind::Choice(&["train", "test", "validation"]),
    "train",
    "Which part of the data set.",
);

/// A number on a split: `name` on the training split, `name_test` and so on elsewhere.
fn on_split(o: &Options, name: &str, which: usize) -> Result<Handle> {
    let split = o.text("split")?.to_string();
    let name = if split == "train" {
        name.to_string()
    } else {
        format!("{name}_{split}")
    };
    let wanted = split.clone();
    let owner = o.owner().to_string();
    Ok(Arc::new(Box::new(Number {
        name,
        split: Some(split.clone()),
        check: Some(Box::new(move |target: &Target| {
            let potential = target.potential();
            anyhow::ensure!(which == 0 || potential.classifies(), "{owner}: {NO_ERRORS}");
            let splits = potential.splits();
            anyhow::ensure!(
                wanted == "train" || splits.contains(&wanted.as_str()),
                "{owner}: the target has no {wanted} split{}",
                if splits.is_empty() {
                    String::new()
                } else {
                    format!(", only train, {}", splits.join(", "))
                }
            );
            Ok(())
        })),
        measure: Box::new(move |v| Ok(v.split(&split)?[which])),
    })))
}

macro_rules! entry {
    ($const:ident, $name:literal, $doc:literal, $example:literal, $measure:expr) => {
        /// See its documentation.
        pub const $const: Entry<Handle> = Entry {
            name: $name,
            doc: $doc,
            arguments: &[],
            options: &[],
            example: $example,
            build: |_| number($name, $measure),
        };
    };
}

entry!(
    COST,
    "cost",
    "The cost L(w): mean loss per training example, over all of them.\n\nCosts a forward pass over the training data per record.",
    "observable::cost()",
    |v| Ok(v.energies()?.loss)
);
entry!(
    ENERGY,
    "energy",
    "The energy U(w) = s·L(w) + R(w), over all training examples.",
    "observable::energy()",
    |v| Ok(v.energies()?.total)
);
entry!(
    NORM2,
    "norm2",
    "|w|², the squared norm of all parameters.",
    "observable::norm2()",
    |v| { Ok(dot(v.chain.w, v.chain.w)) }
);
entry!(
    DISTANCE2,
    "distance2",
    "|w - w_start|², the squared distance to the start of the run.",
    "observable::distance2()",
    |v| Ok(squared_distance(v.chain.w, &(v.start)()))
);
entry!(
    OVERLAP,
    "overlap",
    "w·w_start / (|w| |w_start|), the overlap with the start of the run.",
    "observable::overlap()",
    |v| {
        let (w, start) = (v.chain.w, (v.start)());
        Ok(dot(w, &start) / (dot(w, w) * dot(&start, &start)).sqrt())
    }
);
entry!(
    GRADIENT_NORM2,
    "gradient_norm2",
    "|∇U|², the squared norm of the gradient of the energy over all training examples.\n\n\
     Its mean is T⟨ΔU⟩, T times the mean trace of the Hessian (integrate ∇·(e^{-U/T} ∇U); no walls). Costs a gradient per record.",
    "observable::gradient_norm2()",
    |v| {
        let mut gradient = vec![0.0; v.chain.w.len()];
        v.target
            .energies_and_gradient(v.chain.w, &mut gradient, v.work)?;
        Ok(dot(&gradient, &gradient))
    }
);
entry!(
    KINETIC_TEMPERATURE,
    "kinetic_temperature",
    "(1/N) Σ p_i²/M_i, which is T by equipartition; averaged over the steps since the last record.\n\nNaN for samplers without momenta.",
    "observable::kinetic_temperature()",
    |v| Ok(v.reported(report::KINETIC))
);
entry!(
    VIRIAL_TEMPERATURE,
    "virial_temperature",
    "(1/N) Σ (w-c)_i ∂U/∂w_i, c the mean of burn-in, which is T by the virial theorem (no walls); averaged over the steps since the last record.\n\n\
     It uses the gradient that the sampler has computed anyway. Every summary shows it with a verdict, even when it is not asked for.",
    "observable::virial_temperature()",
    |v| Ok(v.reported(report::VIRIAL))
);
entry!(
    ACCEPTANCE,
    "acceptance",
    "Mean acceptance probability since the last record; NaN for samplers that always move.",
    "observable::acceptance()",
    |v| Ok(v.reported(report::ACCEPTANCE_RATE))
);

/// `observable::error`.
pub const ERROR: Entry<Handle> = Entry {
    name: "error",
    doc: "The fraction of misclassified examples on a split (Zambon 2026, eq. 4).\n\n\
          Its trace is called `error` on the training split, `error_test` on the test split.",
    arguments: &["split"],
    options: &[SPLIT],
    example: "observable::error(\"test\")",
    build: |o| on_split(o, "error", 1),
};

/// `observable::loss`.
pub const LOSS: Entry<Handle> = Entry {
    name: "loss",
    doc: "The mean loss per example on a split.\n\nIts trace is called `loss` on the training split (the same as `cost`), `loss_test` on the test split.",
    arguments: &["split"],
    options: &[SPLIT],
    example: "observable::loss(\"test\")",
    build: |o| on_split(o, "loss", 0),
};

/// The values of a named parameter.
struct Values {
    name: String,
}

impl Observable for Values {
    fn name(&self) -> String {
        let fine = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        self.name.chars().map(fine).collect()
    }

    /// The full name of the tensor, if the trace's name may also be that of another tensor or of a number by its index; none otherwise.
    fn definition(&self) -> Option<String> {
        let name = self.name();
        let index = name
            .strip_prefix('w')
            .is_some_and(|i| i.parse::<usize>().is_ok());
        (index || name != self.name).then(|| format!("all values of {}", self.name))
    }

    fn check(&self, target: &Target) -> Result<()> {
        let count = target.layout().value(&self.name)?.range.len();
        anyhow::ensure!(
            count <= MOST_VALUES,
            "observable::parameter(\"{}\"): {count} numbers are too many for a trace, of which there may be {MOST_VALUES}; keep draws instead: `keep`",
            self.name
        );
        Ok(())
    }

    fn components(&self, target: &Target) -> Option<(String, Vec<String>)> {
        let found = target.layout().value(&self.name).ok()?;
        let labels = (0..found.range.len()).map(|i| i.to_string()).collect();
        (!found.shape.is_empty()).then(|| (format!("{}_component", self.name()), labels))
    }

    fn measure(&self, view: &mut View, out: &mut [f64]) -> Result<()> {
        let (values, _) = view.target.layout().numbers(&self.name, view.chain.w)?;
        out.copy_from_slice(&values);
        Ok(())
    }
}

/// Numbers of a parameter that a trace may have.
const MOST_VALUES: usize = 10_000;

/// `observable::parameter`.
pub const PARAMETER: Entry<Handle> = Entry {
    name: "parameter",
    doc: "A parameter: one number w_i by its index in the flat vector, or all values of a tensor by its name.\n\nThe trace is called `w` with the index, as `w0`, or as the tensor. Of a parameter with bounds it has the values, not the coordinates: `sigma`, not `log_sigma`.",
    arguments: &["which"],
    options: &[required(
        "which",
        Kind::Anything("index, or name of a tensor"),
        "i, from 0 to N-1, or a name.",
    )],
    example: "observable::parameter(0)",
    build: |o| {
        if let Some(name) = o.opt_text("which") {
            return Ok(Arc::new(Box::new(Values { name: name.into() })));
        }
        let i = o.opt_int("which").ok_or_else(|| {
            anyhow::anyhow!(
                "{}: option 'which' must be an index ≥ 0, or the name of a tensor",
                o.owner()
            )
        })? as usize;
        Ok(Arc::new(Box::new(Number {
            name: format!("w{i}"),
            split: None,
            check: Some(Box::new(move |t: &Target| {
                anyhow::ensure!(
                    i < t.dim(),
                    "observable::parameter({i}): the model has only {} parameters",
                    t.dim()
                );
                Ok(())
            })),
            measure: Box::new(move |v| Ok(v.chain.w[i] as f64)),
        })))
    },
};
