//! What is adapted, from the options of a sampler.

use super::{Adaptation, SCALARS, VECTORS};
use crate::error::Result;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::sampler::directions::{self, Kept};
use crate::sampler::metric::Metric;
use crate::target::Target;
use crate::target::prior::Parameters;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The option `adapt`.
pub const ADAPT: Spec = option(
    "adapt",
    Kind::Bool,
    "true",
    "Adapt the step size during burn-in.",
);

/// The option `adapt_mass`.
pub const ADAPT_MASS: Spec = option(
    "adapt_mass",
    Kind::Bool,
    "true",
    "Adapt the masses during burn-in, if it has at least 50 steps and the step size is adapted.",
);

/// The option `masses`.
pub const MASSES: Spec = optional(
    "masses",
    Kind::Object("Parameters"),
    "1 for each",
    "M_i to begin with: `parameters([[…]])`, a number for each parameter.",
);

/// The option `rank`.
pub const RANK: Spec = optional(
    "rank",
    Kind::Int(Range::Between(0.0, 64.0)),
    "8 in `sample` and `sweep` of at most 100 parameters (not of hmc), else 0",
    "Directions along which masses differ from a diagonal, at most, learnt in burn-in: for parameters that depend on each other, as those of regressions, and networks with a few stiff directions. Each costs two passes over the \
     parameters per gradient, and four draws of memory with as many gradients. Not within walls, nor with minibatches.",
);

impl Adaptation {
    /// From the options `adapt` and, if there are any, `acceptance`, `adapt_mass`, `rank` and `masses`, of a sampler with state vectors and scalars of its own.
    pub fn from_options(o: &Options, own: (&[&'static str], &[&'static str])) -> Result<Self> {
        let step = o.bool(ADAPT.name)?;
        let mass = step && o.bool(ADAPT_MASS.name)?;
        Self::new(o, (step, mass), own)
    }

    /// Of masses alone, from the options `adapt_mass`, `rank` and `masses`; none where all masses are the same.
    pub fn of_masses(o: &Options, own: (&[&'static str], &[&'static str])) -> Result<Option<Self>> {
        let out = Self::new(o, (false, o.bool(ADAPT_MASS.name)?), own)?;
        Ok(Some(out).filter(|out| out.mass || out.first.is_some()))
    }

    fn new(
        o: &Options,
        (step, mass): (bool, bool),
        (vectors, scalars): (&[&'static str], &[&'static str]),
    ) -> Result<Self> {
        let rank = o.opt_int(RANK.name).unwrap_or(0) as usize;
        anyhow::ensure!(
            rank == 0 || mass,
            "{}: option 'rank' is {rank}, but masses do not adapt: see 'adapt_mass'",
            o.owner()
        );
        let most = directions::kept(rank);
        let metric = Metric {
            rank,
            vector: VECTORS.len() + vectors.len(),
            scalar: SCALARS.len() + scalars.len(),
        };
        let numbered = [
            ("direction", rank),
            ("kept_draw", most),
            ("kept_gradient", most),
        ];
        Ok(Self {
            acceptance: o.opt_float("acceptance").unwrap_or(f64::NAN),
            step,
            mass,
            first: masses(o)?,
            metric,
            kept: Kept {
                most,
                first: metric.vector + rank,
            },
            vectors: names(&[&VECTORS, vectors], &numbered),
            scalars: names(&[&SCALARS, scalars], &[("stretch", rank)]),
        })
    }

    /// Of the step size alone, to this acceptance, for a sampler without masses and with scalars of its own.
    pub fn of_step(acceptance: f64, step: bool, scalars: &[&'static str]) -> Self {
        Self {
            acceptance,
            step,
            mass: false,
            first: None,
            metric: Metric::default(),
            kept: Kept { most: 0, first: 0 },
            vectors: &[],
            scalars: names(&[&SCALARS, scalars], &[]),
        }
    }

    /// Fail if the masses cannot be what they are asked to be on this target.
    pub fn check(&self, owner: &str, target: &Target, minibatches: bool) -> Result<()> {
        let (given, dim) = (self.first.as_ref().map(|m| m.len()), target.dim());
        anyhow::ensure!(
            given.is_none_or(|n| n == dim),
            "sampler::{owner}: option 'masses' has {} numbers, but there are {dim} parameters",
            given.unwrap_or(0)
        );
        let why = match () {
            _ if self.metric.rank == 0 => return Ok(()),
            () if target.prior().has_walls() => {
                "a wall reflects momenta rightly only where masses are a diagonal"
            }
            () if minibatches => "the noise of minibatch gradients would pass for stiff directions",
            () => return Ok(()),
        };
        anyhow::bail!(
            "sampler::{owner}: option 'rank' is {}, but {why}; leave it out",
            self.metric.rank
        )
    }
}

/// The option `masses`, checked.
fn masses(o: &Options) -> Result<Option<Arc<Vec<f32>>>> {
    let Some(given) = o.object::<Parameters>(MASSES.name) else {
        return Ok(None);
    };
    let vector = given.vectors.first();
    let good = |m: &&Arc<Vec<f32>>| m.iter().all(|m| m.is_finite() && *m > 0.0);
    anyhow::ensure!(
        vector.filter(good).is_some(),
        "{}: option 'masses' must hold numbers above 0",
        o.owner()
    );
    Ok(vector.cloned())
}

/// Names, and then those with numbers from 0. They are kept until the end of the process, once each.
pub fn names(plain: &[&[&'static str]], numbered: &[(&str, usize)]) -> &'static [&'static str] {
    static KNOWN: Mutex<BTreeMap<String, &'static [&'static str]>> = Mutex::new(BTreeMap::new());
    let mut all: Vec<String> = plain.concat().into_iter().map(String::from).collect();
    for (name, count) in numbered {
        all.extend((0..*count).map(|i| format!("{name}_{i}")));
    }
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    known.entry(all.join(" ")).or_insert_with(|| {
        let each = all.into_iter().map(|name| &*name.leak());
        each.collect::<Vec<_>>().leak()
    })
}
