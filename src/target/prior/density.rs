//! Densities of named tensors: a law for each number, whose location and scale may be other parameters, and joint densities as closures.

use super::law::Law;
use crate::error::{Result, did_you_mean};
use crate::kernels::tensor::{Scratch, Tape};
use crate::model::place::Place;
use crate::model::support::Support;
use crate::model::{Layout, TensorSpec};
use crate::rng::Stream;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The law of each number of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    /// The law.
    pub law: Law,
    /// Whether only its positive half is meant.
    pub half: bool,
    /// Its location.
    pub location: Place,
    /// Its scale.
    pub scale: Place,
}

impl Each {
    /// A law about 0 with scale 1.
    pub fn of(law: Law) -> Self {
        Self {
            law,
            half: false,
            location: Place::Number(0.0),
            scale: Place::Number(1.0),
        }
    }

    /// Where its numbers lie.
    pub fn support(&self) -> Support {
        match self.half {
            true => Support::Positive,
            false => self.law.support(),
        }
    }

    /// The parameters that it names.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        [&self.location, &self.scale]
            .into_iter()
            .filter_map(|p| match p {
                Place::Parameter(name) => Some(name.as_str()),
                Place::Number(_) => None,
            })
    }

    /// As a script has it.
    pub fn describe(&self) -> String {
        let (a, b) = (self.location.describe(), self.scale.describe());
        self.law.describe(self.half, &a, &b)
    }

    /// Whether it is a law of parameters of this support.
    fn check(&self, name: &str, support: Support) -> Result<()> {
        let fits = match support {
            Support::Ordered => self.support() == Support::Real,
            own => self.support() == own,
        };
        let hint = match (support, self.law.is_symmetric() && !self.half) {
            (Support::Positive, true) => {
                ": take the half of it, e.g. prior::half_normal(1), or gamma, inverse_gamma, lognormal"
            }
            (Support::Interval(..), _) => ": take uniform or beta",
            _ => "",
        };
        anyhow::ensure!(
            fits,
            "the prior of '{name}' is {}, whose numbers are {}, but '{name}' is {}{hint}",
            self.describe(),
            match self.support() {
                Support::Real => "all real numbers".into(),
                other => other.describe(),
            },
            support.describe()
        );
        Ok(())
    }
}

/// A location or scale where it is looked up.
#[derive(Debug, Clone)]
pub(super) enum At {
    Number(f64),
    /// The same for all.
    One(usize),
    /// One for each, from here on.
    Each(usize),
}

impl At {
    #[inline]
    pub(super) fn index(&self, i: usize) -> Option<usize> {
        match self {
            At::Number(_) => None,
            At::One(k) => Some(*k),
            At::Each(k) => Some(k + i),
        }
    }

    #[inline]
    fn value(&self, x: &[f64], i: usize) -> f64 {
        match self {
            At::Number(a) => *a,
            At::One(k) => x[*k],
            At::Each(k) => x[k + i],
        }
    }
}

/// A law on a range of the parameters.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub range: Range<usize>,
    pub each: Each,
    pub location: At,
    pub scale: At,
    pub ordered: bool,
}

/// A density of the parameters with respect to their values; the logarithms of |dx/du| are added where they have coordinates.
#[derive(Debug, Default)]
pub struct Density {
    /// In an order in which every law comes after those of the parameters it names.
    pub(super) pieces: Vec<Piece>,
    /// Parameters that are not their own coordinates.
    pub(super) mapped: Vec<(Range<usize>, Support)>,
    /// A joint energy of the coordinates.
    pub(super) joint: Option<Arc<Tape>>,
    /// Why nothing can be drawn from it.
    undrawable: Option<String>,
}

thread_local! {
    /// Values of all parameters and slopes with respect to them; registers of tapes.
    static BUFFERS: RefCell<(Vec<f64>, Vec<f64>, Scratch)> = RefCell::default();
}

impl Density {
    /// Laws by tensor, and perhaps a joint energy.
    ///
    /// # Errors
    /// If a law names what does not exist, or names go in a circle, or a law is not one of such numbers.
    pub fn new(
        layout: &Layout,
        laws: Vec<(TensorSpec, Each)>,
        joint: Option<Tape>,
    ) -> Result<Self> {
        let mut mapped = Vec::new();
        for tensor in layout.tensors() {
            let support = layout.support(&tensor.range);
            if support != Support::Real {
                mapped.push((tensor.range.clone(), support));
            }
        }
        let mut pieces = Vec::new();
        for (tensor, each) in laws {
            let support = layout.support(&tensor.range);
            let name = layout.value_name(&tensor);
            each.check(name, support)?;
            let place = |place: &Place| match place {
                Place::Number(x) => Ok(At::Number(*x)),
                Place::Parameter(other) => {
                    let found = layout.value(other)?;
                    anyhow::ensure!(
                        other != name,
                        "the prior of '{name}' names '{other}' itself"
                    );
                    match found.range.len() {
                        1 => Ok(At::One(found.range.start)),
                        n if n == tensor.range.len() => Ok(At::Each(found.range.start)),
                        n => anyhow::bail!(
                            "the prior of '{name}', {} numbers, names '{other}', which has {n}; it must have one, or as many",
                            tensor.range.len()
                        ),
                    }
                }
            };
            if let (Place::Parameter(scale), support) = (&each.scale, Support::Positive) {
                let found = layout.value(scale)?.range.clone();
                anyhow::ensure!(
                    layout.support(&found) == support,
                    "the scale of the prior of '{name}' is '{scale}', which must be positive: give it a prior of positive numbers, e.g. prior::half_cauchy(1)"
                );
            }
            pieces.push(Piece {
                location: place(&each.location)?,
                scale: place(&each.scale)?,
                range: tensor.range.clone(),
                ordered: support == Support::Ordered,
                each,
            });
        }
        let mut out = Self {
            mapped,
            joint: joint.map(Arc::new),
            ..Self::default()
        };
        out.arrange(pieces)?;
        out.undrawable = out.why_undrawable(layout);
        Ok(out)
    }

    /// Put every law behind those of the parameters that it names.
    fn arrange(&mut self, mut open: Vec<Piece>) -> Result<()> {
        while !open.is_empty() {
            let waits = |p: &Piece| {
                let names = |k: usize| open.iter().any(|o| o.range.contains(&k));
                [&p.location, &p.scale]
                    .into_iter()
                    .filter_map(|a| a.index(0))
                    .any(names)
            };
            let (ready, rest): (Vec<_>, Vec<_>) = open.iter().cloned().partition(|p| !waits(p));
            anyhow::ensure!(
                !ready.is_empty(),
                "priors name each other in a circle: {}",
                rest.iter()
                    .map(|p| p.each.describe())
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            self.pieces.extend(ready);
            open = rest;
        }
        Ok(())
    }

    fn why_undrawable(&self, layout: &Layout) -> Option<String> {
        if self.joint.is_some() {
            return Some("of a closure only the density is known".into());
        }
        let flat = layout.tensors().iter().find(|t| {
            let here: usize = self
                .pieces
                .iter()
                .map(|p| overlap(&p.range, &t.range))
                .sum();
            here < t.range.len()
        });
        flat.map(|t| format!("'{}' has none", layout.value_name(t)))
    }

    /// Why nothing can be drawn from it, if so.
    pub fn undrawable(&self) -> Option<&str> {
        self.undrawable.as_deref()
    }

    /// -ln of the density with respect to the coordinates; its gradient, times `strength`, is added to `grad`.
    pub fn energy(&self, w: &[f32], strength: f64, grad: Option<&mut [f32]>) -> f64 {
        BUFFERS.with_borrow_mut(|(x, slopes, scratch)| {
            x.clear();
            x.extend(w.iter().map(|w| f64::from(*w)));
            for (range, support) in &self.mapped {
                support.values(&w[range.clone()], &mut x[range.clone()]);
            }
            slopes.clear();
            slopes.resize(x.len(), 0.0);
            let mut energy: f64 = self.pieces.iter().map(|p| p.add(x, slopes)).sum();
            for (range, support) in &self.mapped {
                energy -= support.ln_jacobian(&w[range.clone()]);
                support.pull_back(&w[range.clone()], &mut slopes[range.clone()]);
            }
            if let Some(joint) = &self.joint {
                energy += joint.evaluate(w, [&[] as &[f32]], Some(&mut slopes[..]), scratch);
            }
            if let Some(grad) = grad {
                let each = grad.iter_mut().zip(&*slopes);
                each.for_each(|(g, s)| *g += (strength * s) as f32);
            }
            energy
        })
    }

    /// Fill the coordinates with a draw, if it can be drawn.
    pub fn draw(&self, stream: &Stream, w: &mut [f32]) {
        let mut rng = stream.rng();
        let mut x = vec![0.0; w.len()];
        for p in &self.pieces {
            for (i, k) in p.range.clone().enumerate() {
                let (a, b) = (p.location.value(&x, i), p.scale.value(&x, i));
                let drawn = p.each.law.draw(a, b, &mut rng).unwrap_or(f64::NAN);
                x[k] = if p.each.half { drawn.abs() } else { drawn };
            }
            if p.ordered {
                x[p.range.clone()].sort_by(f64::total_cmp);
            }
        }
        w.iter_mut().zip(&x).for_each(|(w, x)| *w = *x as f32);
        for (range, support) in &self.mapped {
            support.coordinates(&x[range.clone()], &mut w[range.clone()]);
        }
    }

    /// ⟨w²⟩ averaged over the parameters; infinite where a law has no variance.
    pub fn mean_square(&self) -> f64 {
        let number = |at: &At| match at {
            At::Number(x) => *x,
            _ => f64::INFINITY,
        };
        let each = self.pieces.iter().map(|p| {
            p.range.len() as f64
                * p.each
                    .law
                    .mean_square(number(&p.location), number(&p.scale))
        });
        let count: usize = self.pieces.iter().map(|p| p.range.len()).sum();
        each.sum::<f64>() / count.max(1) as f64
    }

    /// What a closure computes, as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.joint.as_ref().map_or(Vec::new(), |tape| tape.bytes())
    }
}

impl Piece {
    /// What is added to the energies of its numbers: half a law has twice its density; that of ordered numbers is that of all their orders.
    pub(super) fn constant(&self) -> f64 {
        let count = self.range.len() as f64;
        match (self.each.half, self.ordered) {
            (true, _) => -count * std::f64::consts::LN_2,
            (_, true) => -libm::lgamma(count + 1.0),
            _ => 0.0,
        }
    }

    /// -ln of its density; slopes with respect to values are added.
    fn add(&self, x: &[f64], slopes: &mut [f64]) -> f64 {
        let mut energy = self.constant();
        let alone = |at: &At| !matches!(at, At::Each(_));
        if alone(&self.location) && alone(&self.scale) {
            let (a, b) = (self.location.value(x, 0), self.scale.value(x, 0));
            let own = self.range.clone();
            let (e, da, db) = self.each.law.sum(&x[own.clone()], a, b, &mut slopes[own]);
            self.pass_on(0, da, db, slopes);
            return energy + e;
        }
        for (i, k) in self.range.clone().enumerate() {
            let (a, b) = (self.location.value(x, i), self.scale.value(x, i));
            let (e, [dx, da, db]) = self.each.law.at(x[k], a, b);
            energy += e;
            slopes[k] += dx;
            self.pass_on(i, da, db, slopes);
        }
        energy
    }

    /// Add the derivatives with respect to location and scale to those of the parameters that they are.
    fn pass_on(&self, i: usize, da: f64, db: f64, slopes: &mut [f64]) {
        for (at, slope) in [(&self.location, da), (&self.scale, db)] {
            if let Some(k) = at.index(i) {
                slopes[k] += slope;
            }
        }
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// The laws of a map by what they are laws of; a name that is not there is one of a parameter that the prior adds.
pub(super) fn unknown<'a>(layout: &Layout, name: &'a str) -> Option<&'a str> {
    let known = layout.part(name).is_ok() || layout.value(name).is_ok();
    (!known).then_some(name)
}

/// The message for a name that is neither a tensor nor named by another prior.
pub(super) fn misspelt(layout: &Layout, name: &str) -> anyhow::Error {
    let names: Vec<_> = layout
        .tensors()
        .iter()
        .map(|t| layout.value_name(t))
        .collect();
    anyhow::anyhow!(
        "prior: there is no parameter '{name}', and no other prior names it{}; there are {}",
        did_you_mean(name, names.iter().copied()),
        crate::error::listed(&names)
    )
}
