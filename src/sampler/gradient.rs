//! Estimators of ∇U: how a stochastic sampler gets its gradient, a choice apart from the sampler.

use crate::engine::Vector::{self, Gradient, Params, Scratch, State};
use crate::engine::report::{self, Report};
use crate::engine::{Chains, Draw};
use crate::error::Result;
use crate::kernels::map::kernel;
use crate::kernels::update::{DISTANCE_DOT, SQUARED_DISTANCE};
use crate::options::{Entry, Kind, Options, Range, Spec, option, optional};
use crate::rng::Purpose;
use crate::target::Target;
use crate::target::prior::Parameters;
use std::fmt;
use std::sync::Arc;

/// An estimate of ∇U, unbiased.
#[derive(Debug, Clone)]
pub struct Estimator {
    /// The minibatch; none for all examples.
    draw: Option<Draw>,
    /// Whether control variates are used.
    control: bool,
    /// What is reported of the gradients that steps follow.
    reported: Reported,
    /// w0 of both.
    anchor: Anchor,
}

/// What is reported of the gradient that a step follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    /// Nothing.
    Nothing,
    /// The loss, and the virial (1/N) Σ (w - w0)_i g_i.
    Loss,
    /// Both, and the loss at w0 on the same minibatch.
    Paired,
}

/// Where control variates are anchored.
#[derive(Debug, Clone, PartialEq)]
enum Anchor {
    /// Where each chain starts.
    Start,
    /// At this point.
    At(Arc<Vec<f32>>),
}

/// The option `batch`, the same for every stochastic sampler.
pub const BATCH: Spec = optional(
    "batch",
    Kind::Int(Range::AtLeast(1.0)),
    "100",
    "m, examples per minibatch, drawn independently at every step; short for gradient::minibatch(#{ batch: m }).",
);

/// The option `gradient`, the same for every stochastic sampler.
pub const GRADIENT: Spec = optional(
    "gradient",
    Kind::Object("Gradient"),
    "gradient::minibatch(#{ batch })",
    "How ∇U is estimated; see the namespace `gradient`.",
);

/// [`BATCH`], for samplers that use all examples unless told otherwise.
pub const BATCH_OR_ALL: Spec = optional(
    "batch",
    Kind::Int(Range::AtLeast(1.0)),
    "all examples",
    "m, examples per minibatch; short for gradient::minibatch(#{ batch: m }).",
);

/// [`GRADIENT`], for samplers that use all examples unless told otherwise.
pub const GRADIENT_OR_ALL: Spec = optional(
    "gradient",
    Kind::Object("Gradient"),
    "gradient::full()",
    "How ∇U is estimated; see the namespace `gradient`.",
);

const SIZE: Spec = option(
    "batch",
    Kind::Int(Range::AtLeast(1.0)),
    "100",
    "m, examples per minibatch.",
);

const REPLACEMENT: Spec = option(
    "replacement",
    Kind::Bool,
    "true",
    "Whether examples are drawn independently, so that one can be drawn twice. Otherwise the noise is smaller by the factor (n-m)/(n-1).",
);

/// `gradient::…`.
pub const REGISTRY: &[Entry<Arc<Estimator>>] = &[
    Entry {
        name: "full",
        doc: "∇U over all examples: no noise.",
        arguments: &[],
        options: &[],
        example: "sampler::sgld(#{ step: 1e-5, gradient: gradient::full() })",
        build: |_| Ok(Arc::new(Estimator::FULL)),
    },
    Entry {
        name: "minibatch",
        doc: "`s·∇L_B(w) + ∇R(w)`: the gradient over a fresh random minibatch, which is unbiased.",
        arguments: &["batch"],
        options: &[SIZE, REPLACEMENT],
        example: "sampler::sgld(#{ step: 1e-5, gradient: gradient::minibatch(#{ batch: 50, replacement: false }) })",
        build: |o| {
            Ok(Arc::new(Estimator {
                draw: Some(draw(o)?),
                ..Estimator::FULL
            }))
        },
    },
    Entry {
        name: "control_variates",
        doc: "`∇L_B(w) - ∇L_B(w0) + ∇L(w0)` in place of ∇L_B(w): a minibatch gradient whose noise shrinks with |w - w0|².\n\n\
              The gradient at the anchor w0 is taken over the same minibatch, and over all examples once at the start of the run, so a step costs \
              two minibatch gradients. Worth it near w0 (Baker, Fearnhead, Fox & Nemeth 2019; Nagapetyan et al. 2017): the summary's \
              measured noise says whether it is.",
        arguments: &[],
        options: &[
            SIZE,
            REPLACEMENT,
            optional(
                "anchor",
                Kind::Object("Parameters"),
                "where each chain starts",
                "w0: a result of `train`, `run.params()` or `parameters([…])`, of which the first vector is taken.",
            ),
        ],
        example: "sampler::sgld(#{ step: 1e-5, gradient: gradient::control_variates(#{ batch: 50 }) })",
        build: |o| {
            let given = o.object::<Parameters>("anchor");
            let at = given.as_ref().and_then(|p| p.vectors.first().cloned());
            anyhow::ensure!(
                given.is_none() || at.is_some(),
                "{}: option 'anchor' holds no parameters",
                o.owner()
            );
            Ok(Arc::new(Estimator {
                draw: Some(draw(o)?),
                control: true,
                anchor: at.map_or(Anchor::Start, Anchor::At),
                ..Estimator::FULL
            }))
        },
    },
];

fn draw(o: &Options) -> Result<Draw> {
    Ok(Draw {
        batch: o.size("batch")?,
        replacement: o.bool("replacement")?,
    })
}

kernel! {
    /// `g ← g - a + full`: the control variate.
    CONTROL = control_variate(g; at_anchor, full; ; ) {
        g = g - at_anchor + full;
    }
}

/// A place that no sampler uses: parameters that are away, or a first gradient.
const ASIDE: Vector = Scratch(40);

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(draw) = self.draw else {
            return write!(f, "all examples");
        };
        let how = if draw.replacement {
            ""
        } else {
            " without replacement"
        };
        write!(f, "minibatches of {}{how}", draw.batch)?;
        match &self.anchor {
            _ if !self.control => Ok(()),
            Anchor::Start => write!(f, ", control variates around the start"),
            Anchor::At(w) => {
                let vectors = vec![w.clone()];
                let checksum = Parameters { vectors }.checksum();
                write!(f, ", control variates around point {checksum:08x}")
            }
        }
    }
}

impl Estimator {
    /// Over all examples.
    pub const FULL: Self = Self {
        draw: None,
        control: false,
        reported: Reported::Nothing,
        anchor: Anchor::Start,
    };

    /// From a sampler's options `batch` and `gradient`.
    pub fn from_options(o: &Options) -> Result<Self> {
        Self::or(o, Self::minibatch(100))
    }

    /// From a sampler's options `batch` and `gradient`; `otherwise` if neither is given.
    pub fn or(o: &Options, otherwise: Self) -> Result<Self> {
        let batch = o.opt_int("batch");
        match o.object::<Self>("gradient") {
            Some(_) if batch.is_some() => anyhow::bail!(
                "{}: options 'batch' and 'gradient' are both given; put the batch into the gradient",
                o.owner()
            ),
            Some(e) => Ok(Self::clone(&e)),
            None => Ok(batch.map_or(otherwise, |m| Self::minibatch(m as usize))),
        }
    }

    /// From independent draws of m examples.
    pub fn minibatch(batch: usize) -> Self {
        Self {
            draw: Some(Draw::independent(batch)),
            ..Self::FULL
        }
    }

    /// The same, which also reports the loss of the gradient that a step follows, and its virial around `w0`; if `paired`, the loss at `w0` on the
    /// same minibatch too (over all examples there is nothing to pair).
    ///
    /// # Errors
    /// If it has control variates around another point: one anchor serves both.
    pub fn reporting(&self, w0: &Arc<Vec<f32>>, paired: bool) -> Result<Self> {
        let at = Anchor::At(w0.clone());
        anyhow::ensure!(
            !self.control || self.anchor == Anchor::Start || self.anchor == at,
            "gradient::control_variates: the anchor is not the point that losses are compared with; leave the option 'anchor' out"
        );
        let reported = match paired && self.draw.is_some() {
            true => Reported::Paired,
            false => Reported::Loss,
        };
        Ok(Self {
            reported,
            anchor: at,
            ..self.clone()
        })
    }

    /// What it reports of the gradient that a step follows.
    pub fn reports(&self) -> &'static [Report] {
        const ALL: [Report; 3] = [
            report::GRADIENT_LOSS,
            report::GRADIENT_VIRIAL,
            report::GRADIENT_LOSS_AT_START,
        ];
        match self.reported {
            Reported::Nothing => &[],
            Reported::Loss => &ALL[..2],
            Reported::Paired => &ALL,
        }
    }

    /// How minibatches are drawn; none over all examples.
    pub fn draw(&self) -> Option<Draw> {
        self.draw
    }

    /// m; none over all examples.
    pub fn batch(&self) -> Option<usize> {
        self.draw.map(|d| d.batch)
    }

    /// Names of its state vectors, which are the last of the chain's.
    pub fn vectors(&self) -> &'static [&'static str] {
        match (self.control, self.reported) {
            (true, _) => &["anchor", "anchor_gradient"],
            (false, Reported::Nothing) => &[],
            (false, _) => &["anchor"],
        }
    }

    /// Whether it takes noise away by control variates. [`Estimator::vectors`] does not tell: an anchor is also kept where losses are reported.
    pub fn has_control_variates(&self) -> bool {
        self.control
    }

    /// Fail if it cannot work on this target.
    pub fn check(&self, target: &Target, owner: &str) -> Result<()> {
        let (n, dim) = (target.examples(), target.dim());
        if let Some(d) = self.draw {
            anyhow::ensure!(
                d.batch <= n,
                "sampler::{owner}: option 'batch' is {}, but the target has only n = {n} examples; give batch: {} or less, or gradient: gradient::full()",
                d.batch,
                n.div_ceil(3)
            );
        }
        if let Anchor::At(w) = &self.anchor {
            anyhow::ensure!(
                w.len() == dim,
                "gradient::control_variates: the anchor has {} parameters, the model {dim}",
                w.len()
            );
        }
        Ok(())
    }

    /// The vectors that hold the anchor and, with control variates, the full gradient there.
    fn anchor(&self, chains: &Chains) -> [Vector; 2] {
        let first = chains.engine.vectors() - self.vectors().len();
        [State(first), State(first + 1)]
    }

    /// Prepare the chains, once their parameters are set.
    pub fn init(&self, chains: &mut Chains) -> Result<()> {
        if self.vectors().is_empty() {
            return Ok(());
        }
        let [anchor, full] = self.anchor(chains);
        match &self.anchor {
            Anchor::Start => chains.copy(Params, anchor)?,
            Anchor::At(w) => chains.engine.write_all(anchor, w)?,
        }
        if !self.control {
            return Ok(());
        }
        Self::at(chains, anchor, |chains| chains.engine.gradient_at_anchor())?;
        chains.copy(Gradient, full)
    }

    /// Do something with the parameters of `v` in place of the chains' own.
    fn at(chains: &mut Chains, v: Vector, f: impl FnOnce(&mut Chains) -> Result<()>) -> Result<()> {
        chains.copy(Params, ASIDE)?;
        chains.copy(v, Params)?;
        f(chains)?;
        chains.copy(ASIDE, Params)
    }

    /// The estimate of ∇U from fresh minibatches, into [`Gradient`]. Equal `purpose` and `sub` mean equal minibatches.
    pub fn estimate(&self, chains: &mut Chains, purpose: Purpose, sub: u16) -> Result<()> {
        // Of the gradient that a step follows, if they are asked for.
        let follows = (purpose, sub) == (Purpose::Minibatch, 0);
        let reports = follows && self.reported != Reported::Nothing;
        self.compute(chains, purpose, sub, reports)?;
        if reports {
            chains.report_loss(report::GRADIENT_LOSS)?;
            let [anchor, _] = self.anchor(chains);
            let per = 1.0 / chains.dim() as f64;
            let vectors = [Params, anchor, Gradient];
            chains.report_sum(report::GRADIENT_VIRIAL, &DISTANCE_DOT, &vectors, per)?;
        }
        Ok(())
    }

    /// The estimate; of pairs, the loss at the anchor is reported too.
    fn compute(
        &self,
        chains: &mut Chains,
        purpose: Purpose,
        sub: u16,
        reports: bool,
    ) -> Result<()> {
        let Some(draw) = self.draw else {
            return chains.engine.gradient();
        };
        let pair = reports && self.reported == Reported::Paired;
        if self.control || pair {
            let [anchor, _] = self.anchor(chains);
            Self::at(chains, anchor, |chains| match self.control {
                true => chains.minibatch_gradient(purpose, sub, draw),
                false => chains.minibatch_loss(purpose, sub, draw),
            })?;
            if pair {
                chains.report_loss(report::GRADIENT_LOSS_AT_START)?;
            }
        }
        if self.control {
            // The loss of the last minibatches is to be the one at the chain's own parameters, so these come last.
            chains.copy(Gradient, ASIDE)?;
        }
        chains.minibatch_gradient(purpose, sub, draw)?;
        if self.control {
            let [_, full] = self.anchor(chains);
            chains.map(&CONTROL, &[Gradient, ASIDE, full], |_, _| -> [f32; 0] {
                []
            })?;
        }
        Ok(())
    }

    /// The variance of the estimate at the chains' parameters, averaged over the components, from two minibatches.
    pub fn variance(&self, chains: &mut Chains) -> Result<Vec<f64>> {
        const FIRST: Vector = Scratch(41);
        self.estimate(chains, Purpose::Probe, 0)?;
        chains.copy(Gradient, FIRST)?;
        self.estimate(chains, Purpose::Probe, 1)?;
        let n = chains.dim() as f64;
        let squares = chains.sum(&SQUARED_DISTANCE, &[Gradient, FIRST])?;
        Ok(squares.into_iter().map(|s| s / (2.0 * n)).collect())
    }
}

crate::object::object!(Estimator: "Gradient");
