//! Priors: the part R(w) of the energy that knows no data.

mod density;
mod formulas;
pub mod law;
mod map;
mod perturbed;
mod reference;
mod registry;

pub use density::Each;
pub use formulas::Term;
pub(super) use reference::Reference;
pub use registry::REGISTRY;

use crate::error::Result;
use crate::kernels::tensor::Tensor;
use crate::kernels::update::{dot, squared_distance};
use crate::model::initialise::{Initialise, Role};
use crate::model::named::Named;
use crate::model::{Declared, Layout};
use crate::rng::Stream;
use density::Density;
use std::fmt;
use std::sync::Arc;

/// -ln of a joint density of named parameters, as a tensor that is traced.
pub type Energy = Arc<dyn Fn(&Named) -> Result<Tensor> + Send + Sync>;

/// A prior as a script names it, before it is put on a model.
#[derive(Clone)]
pub enum Prior {
    /// R = 0.
    None,
    /// R = ½·precision·|w|².
    Gaussian {
        /// Inverse variance at T = 1.
        precision: f64,
    },
    /// R = (λ/2N)|w|² (Zambon 2026, eq. 3).
    L2 {
        /// λ.
        lambda: f64,
    },
    /// R = ½γ|w - w0|² (Hitchcock & Hoogland 2025, appendix).
    Localised {
        /// γ.
        gamma: f64,
        /// w0.
        centre: Arc<Vec<f32>>,
    },
    /// R = 0 where |w_i| < width_i/2, infinite elsewhere (Baldock & Marzari 2019).
    Box {
        /// One width for all, or one per tensor of the model.
        widths: Vec<f64>,
    },
    /// One law for each number, on its own.
    Each(Each),
    /// Weights N(0, c/fan) as initial weights are drawn, biases N(0, bias²).
    Scaled {
        /// c/fan.
        weights: Initialise,
        /// Standard deviation of biases.
        bias: f64,
    },
    /// A prior for each of these parts of the parameters, by name; "*" is all others.
    Map(Vec<(String, Arc<Prior>)>),
    /// R is what a closure gives.
    Joint {
        /// Parameters that it has beside those of the model.
        parameters: Vec<Declared>,
        /// The closure.
        energy: Energy,
    },
}

impl fmt::Debug for Prior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Parameters that a script can hold: a trained or sampled point.
#[derive(Debug, Clone)]
pub struct Parameters {
    /// One vector of length N per chain.
    pub vectors: Vec<Arc<Vec<f32>>>,
}

impl Parameters {
    /// A checksum of all numbers, as of little-endian floats: what tells two of them apart in words.
    pub fn checksum(&self) -> u32 {
        let mut hash = crc32fast::Hasher::new();
        let all = self.vectors.iter().flat_map(|w| w.iter());
        all.for_each(|x| hash.update(&x.to_le_bytes()));
        hash.finalize()
    }
}

/// A prior on a model's parameters.
#[derive(Debug, Clone)]
pub struct PriorEnergy {
    text: String,
    precision: f64,
    centre: Arc<Vec<f32>>,
    /// Half width per parameter range; empty without walls.
    walls: Vec<(std::ops::Range<usize>, f32)>,
    /// A tensor without walls, where others have some.
    flat: Option<String>,
    /// What is neither quadratic nor a wall, this many times as strong.
    rest: Option<(Arc<Density>, f64)>,
    /// h of a term -h·w; empty without.
    field: Arc<Vec<f32>>,
    /// What ladders end in, if not in R, and how strong it is here.
    reference: Option<(Arc<Reference>, f64)>,
}

impl Prior {
    /// The prior, as a script has it.
    pub fn describe(&self) -> String {
        match self {
            Prior::None => "none".into(),
            Prior::Gaussian { precision } => format!("½·{precision}·|w|²"),
            Prior::L2 { lambda } => format!("(λ/2N)|w|², λ = {lambda}"),
            Prior::Localised { gamma, .. } => format!("½γ|w-w0|², γ = {gamma}"),
            Prior::Box { widths } => format!("uniform box of width {widths:?}"),
            Prior::Each(each) => each.describe(),
            Prior::Scaled { weights, bias } => {
                format!("weights scaled by {weights:?}, biases normal(0, {bias})")
            }
            Prior::Map(map) => {
                let each = map
                    .iter()
                    .map(|(name, p)| format!("{name} ~ {}", p.describe()));
                each.collect::<Vec<_>>().join(", ")
            }
            Prior::Joint { parameters, .. } => match &parameters[..] {
                [] => "a closure".into(),
                all => {
                    let names: Vec<_> = all.iter().map(|d| d.name.as_str()).collect();
                    format!("a closure, with {}", names.join(", "))
                }
            },
        }
    }

    /// Put the prior on parameters of this layout, in these roles.
    ///
    /// # Errors
    /// If it does not fit them.
    pub fn resolve(&self, layout: &Layout, roles: &[Role]) -> Result<PriorEnergy> {
        let n = layout.len();
        let mut out = PriorEnergy {
            text: self.describe(),
            precision: 0.0,
            centre: Arc::default(),
            walls: Vec::new(),
            flat: None,
            rest: None,
            field: Arc::default(),
            reference: None,
        };
        match self {
            Prior::None => {}
            Prior::Gaussian { precision } => out.precision = *precision,
            Prior::L2 { lambda } => out.precision = lambda / n as f64,
            Prior::Localised { gamma, centre } => {
                anyhow::ensure!(
                    centre.len() == n,
                    "prior::localised: the centre has {} parameters, the model {n}",
                    centre.len()
                );
                out.precision = *gamma;
                out.centre = centre.clone();
            }
            Prior::Box { widths } => {
                let tensors = layout.tensors();
                anyhow::ensure!(
                    widths.len() == 1 || widths.len() == tensors.len(),
                    "prior::uniform_box: {} widths for {} tensors ({}); give one width, or one per tensor",
                    widths.len(),
                    tensors.len(),
                    tensors
                        .iter()
                        .map(|t| t.name.as_str())
                        .collect::<Vec<_>>()
                        .join(", ")
                );
                let width = |i: usize| widths[if widths.len() == 1 { 0 } else { i }];
                out.walls = tensors
                    .iter()
                    .enumerate()
                    .map(|(i, t)| (t.range.clone(), (width(i) / 2.0) as f32))
                    .collect();
            }
            Prior::Each(_) | Prior::Scaled { .. } | Prior::Map(_) | Prior::Joint { .. } => {
                self.resolve_parts(layout, roles, &mut out)?;
            }
        }
        if out.rest.is_none() && layout.has_supports() {
            anyhow::ensure!(
                matches!(self, Prior::None),
                "the prior {} is one of numbers without bounds, but some parameters have a support; give a map of priors by name",
                self.describe()
            );
            out.rest = Some((Arc::new(Density::new(layout, Vec::new(), None)?), 1.0));
        }
        Ok(out)
    }
}

impl PriorEnergy {
    /// R(w), infinite outside the walls.
    pub fn energy(&self, w: &[f32]) -> f64 {
        self.energy_times(1.0, w)
    }

    /// R(w) of the [strengthened](PriorEnergy::strengthened) prior.
    pub fn energy_times(&self, strength: f64, w: &[f32]) -> f64 {
        let reference = self.reference_energy(strength, w);
        let strength = if self.has_reference() { 1.0 } else { strength };
        let rest = match &self.rest {
            Some((density, own)) => own * strength * density.energy(w, 0.0, None),
            None => 0.0,
        };
        self.energy_with(rest + reference, strength, w)
    }

    /// R(w), where the part of it that is not quadratic is known from [`PriorEnergy::add_rest`].
    pub fn energy_given(&self, rest: f64, w: &[f32]) -> f64 {
        self.energy_with(rest, 1.0, w)
    }

    fn energy_with(&self, rest: f64, strength: f64, w: &[f32]) -> f64 {
        if self.outside(w) {
            return f64::INFINITY;
        }
        let rest = rest + strength * self.field_energy(w);
        if self.precision == 0.0 {
            return rest;
        }
        let square = if self.centre.is_empty() {
            dot(w, w)
        } else {
            squared_distance(w, &self.centre)
        };
        0.5 * (self.precision * strength) * square + rest
    }

    /// The quadratic part of ∇R is `precision·(w - centre)`; an empty centre is the origin.
    pub fn pull(&self) -> (f64, &[f32]) {
        (self.precision, &self.centre)
    }

    /// ∇R at w.
    pub fn gradient(&self, w: &[f32], out: &mut [f32]) {
        // scale_and_pull adds to what is there, scaled by 0.
        out.fill(0.0);
        let precision = self.precision as f32;
        crate::kernels::update::scale_and_pull(out, 0.0, w, precision, &self.centre);
        self.add_rest(w, out);
    }

    /// Add to `out` the part of ∇R that is not quadratic; that part of R, without what a field adds.
    #[inline]
    pub fn add_rest(&self, w: &[f32], out: &mut [f32]) -> f64 {
        self.add_field(out);
        let rest = match &self.rest {
            Some((density, strength)) => strength * density.energy(w, *strength, Some(out)),
            None => 0.0,
        };
        rest + self.add_reference(w, out)
    }

    /// The part of R that is not quadratic as a sum of formulas of so many parameters, and how many times as strong it is.
    ///
    /// # Errors
    /// If a part has no formula.
    pub fn terms(&self, parameters: usize) -> Result<(Vec<Term>, f64)> {
        anyhow::ensure!(
            self.field.is_empty(),
            "no device computes a field; take --device cpu"
        );
        anyhow::ensure!(
            !self.has_reference(),
            "no device computes the reference of a ladder; take --device cpu"
        );
        match &self.rest {
            Some((density, strength)) => Ok((density.terms(parameters)?, *strength)),
            None => Ok((Vec::new(), 1.0)),
        }
    }

    /// Hard walls: half the width of the box per range of parameters.
    pub fn walls(&self) -> &[(std::ops::Range<usize>, f32)] {
        &self.walls
    }

    /// Whether there are hard walls.
    pub fn has_walls(&self) -> bool {
        !self.walls.is_empty()
    }

    fn outside(&self, w: &[f32]) -> bool {
        self.walls
            .iter()
            .any(|(r, half)| w[r.clone()].iter().any(|x| x.abs() >= *half))
    }

    /// Reflect parameters that crossed a wall back into the box, and turn their momenta round.
    pub fn reflect(&self, w: &mut [f32], mut momentum: Option<&mut [f32]>) {
        for (range, half) in &self.walls {
            let half = *half as f64;
            for i in range.clone() {
                let x = w[i] as f64;
                if x.abs() < half || x.is_nan() {
                    continue;
                }
                // Unfolded, the box repeats with period 4·half, every second copy mirrored; infinity gives NaN, which the caller finds.
                let phase = (x + half).rem_euclid(4.0 * half);
                let mirrored = phase >= 2.0 * half;
                let inside = if mirrored {
                    3.0 * half - phase
                } else {
                    phase - half
                };
                let limit = (half as f32).next_down();
                w[i] = if inside.is_nan() {
                    f32::NAN
                } else {
                    (inside as f32).clamp(-limit, limit)
                };
                if let Some(p) = momentum.as_deref_mut()
                    && mirrored
                {
                    p[i] = -p[i];
                }
            }
        }
    }

    /// Whether R is the same everywhere within its walls, if it has any.
    pub fn is_flat(&self) -> bool {
        self.precision == 0.0 && self.is_quadratic()
    }

    /// Whether it is a Gaussian of independent numbers with one precision, and nothing else.
    pub fn is_gaussian(&self) -> bool {
        self.precision > 0.0 && self.is_quadratic() && !self.has_walls()
    }

    /// Whether R is ½p|w - c|² within its walls, at any strength.
    fn is_quadratic(&self) -> bool {
        self.rest.is_none() && !self.has_reference() && self.field.is_empty()
    }

    /// The prior of `strength` times the energy R: what is left of it when U is divided by a temperature of `strength`.
    pub fn strengthened(&self, strength: f64) -> Self {
        if let Some((q, own)) = &self.reference {
            return Self {
                reference: Some((q.clone(), own + strength - 1.0)),
                ..self.clone()
            };
        }
        Self {
            precision: self.precision * strength,
            rest: self
                .rest
                .as_ref()
                .map(|(d, own)| (d.clone(), own * strength)),
            field: match self.field.is_empty() {
                true => self.field.clone(),
                false => Arc::new(
                    self.field
                        .iter()
                        .map(|h| (f64::from(*h) * strength) as f32)
                        .collect(),
                ),
            },
            ..self.clone()
        }
    }

    /// Whether it, or its reference, is a distribution, so that parameters can be drawn from it.
    pub fn is_proper(&self) -> bool {
        self.improper().is_none()
    }

    /// Why nothing can be drawn from it, if so.
    pub fn improper(&self) -> Option<String> {
        if self.has_reference() {
            return None;
        }
        if let Some(why) = self.perturbed() {
            return Some(why);
        }
        if let Some(flat) = &self.flat {
            let prior = &self.text;
            return Some(format!(
                "nothing can be drawn from the prior '{prior}': '{flat}' has none"
            ));
        }
        match &self.rest {
            Some((density, _)) => {
                let why = density.undrawable()?;
                Some(format!(
                    "nothing can be drawn from the prior '{}': {why}",
                    self.text
                ))
            }
            None if self.precision > 0.0 || self.has_walls() => None,
            None => Some(format!(
                "nothing can be drawn from the prior '{}', which is no distribution; give the target prior::gaussian or prior::uniform_box",
                self.text
            )),
        }
    }

    /// ln ∫ exp(-R) dw over the N parameters; infinite if the prior is no distribution.
    pub fn ln_normaliser(&self, parameters: usize) -> f64 {
        if self.perturbed().is_some() || self.flat.is_some() {
            return f64::INFINITY;
        }
        if self.rest.is_some() {
            // Laws are normalised.
            let known = self.rest.iter().all(|(d, _)| d.undrawable().is_none());
            return if known { 0.0 } else { f64::INFINITY };
        }
        if self.has_walls() {
            // A box has no energy within its walls.
            let side = |(range, half): &(std::ops::Range<usize>, f32)| {
                range.len() as f64 * (2.0 * f64::from(*half)).ln()
            };
            return self.walls.iter().map(side).sum();
        }
        0.5 * parameters as f64 * (std::f64::consts::TAU / self.precision).ln()
    }

    /// ⟨w²⟩ of a parameter under exp(-R), averaged over the parameters; 0 if it is no distribution.
    pub fn mean_square(&self) -> f64 {
        if let Some((q, _)) = &self.reference {
            return q.mean_square();
        }
        if let Some((density, _)) = &self.rest {
            return density.mean_square();
        }
        if self.has_walls() {
            let sum = |(range, half): &(std::ops::Range<usize>, f32)| {
                range.len() as f64 * f64::from(*half).powi(2) / 3.0
            };
            let count: usize = self.walls.iter().map(|(range, _)| range.len()).sum();
            return self.walls.iter().map(sum).sum::<f64>() / count.max(1) as f64;
        }
        if self.precision == 0.0 {
            return 0.0;
        }
        let centre = dot(&self.centre, &self.centre) / self.centre.len().max(1) as f64;
        centre + 1.0 / self.precision
    }

    /// Fill `w` with a draw from exp(-R), or from its reference, if it [is a distribution](PriorEnergy::is_proper).
    pub fn draw(&self, stream: &Stream, w: &mut [f32]) {
        if let Some((q, _)) = &self.reference {
            return q.draw(stream, w);
        }
        if let Some((density, _)) = &self.rest {
            density.draw(stream, w);
            return;
        }
        if self.has_walls() {
            for (range, half) in &self.walls {
                for i in range.clone() {
                    let x = 2.0 * stream.uniform(i as u32) - 1.0;
                    // Rounding to single precision must not put it on the wall.
                    w[i] =
                        ((x * f64::from(*half)) as f32).clamp(-half.next_down(), half.next_down());
                }
            }
            return;
        }
        crate::kernels::normal::fill_normal(stream, w);
        let sigma = self.precision.sqrt().recip() as f32;
        for (i, w) in w.iter_mut().enumerate() {
            *w = sigma * *w + self.centre.get(i).copied().unwrap_or(0.0);
        }
    }

    /// Enter what its text does not say into a checksum.
    pub fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.centre
            .iter()
            .chain(self.field.iter())
            .for_each(|x| hash.update(&x.to_le_bytes()));
        if let Some((density, _)) = &self.rest {
            hash.update(&density.bytes());
        }
        if let Some((q, _)) = &self.reference {
            q.fingerprint(hash);
        }
    }

    /// The formula.
    pub fn describe(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout::new([("a".to_string(), vec![2]), ("b".to_string(), vec![1])])
    }

    #[test]
    fn energies_follow_their_formulae() {
        let w = [1.0, -2.0, 0.5];
        let energy = |p: Prior| p.resolve(&layout(), &[]).unwrap().energy(&w);
        assert_eq!(energy(Prior::None), 0.0);
        assert_eq!(energy(Prior::Gaussian { precision: 2.0 }), 5.25);
        assert_eq!(energy(Prior::L2 { lambda: 6.0 }), 5.25);
        assert_eq!(
            energy(Prior::Localised {
                gamma: 2.0,
                centre: Arc::new(vec![1.0, 0.0, 0.5])
            }),
            4.0
        );
        assert_eq!(
            energy(Prior::Box {
                widths: vec![4.1, 1.1]
            }),
            0.0
        );
        assert_eq!(
            energy(Prior::Box {
                widths: vec![4.1, 1.0]
            }),
            f64::INFINITY
        );
    }

    /// Null: draws have the moments of exp(-R); four standard errors of each.
    #[test]
    fn draws_are_those_of_the_prior_and_it_is_normalised() {
        let centre = Arc::new(vec![1.0, -1.0, 0.5]);
        let gaussian = Prior::Localised {
            gamma: 4.0,
            centre: centre.clone(),
        };
        let walls = Prior::Box {
            widths: vec![2.0, 6.0],
        };
        // Mean and variance of each parameter, and fourth central moment.
        let laws = [
            (gaussian, [1.0, -1.0, 0.5], [0.25; 3], [3.0 * 0.0625; 3]),
            (
                walls,
                [0.0; 3],
                [1.0 / 3.0, 1.0 / 3.0, 3.0],
                [0.2, 0.2, 16.2],
            ),
        ];
        let draws = 20_000;
        for (prior, means, variances, fourths) in laws {
            let prior = prior.resolve(&layout(), &[]).unwrap();
            let mut moments = [[0.0; 2]; 3];
            let mut w = [0.0; 3];
            for k in 0..draws {
                prior.draw(&Stream::new(3, crate::rng::Purpose::Prior, 0, k), &mut w);
                assert!(prior.energy(&w).is_finite());
                for i in 0..3 {
                    let x = f64::from(w[i]) - means[i];
                    moments[i][0] += x / draws as f64;
                    moments[i][1] += x * x / draws as f64;
                }
            }
            for i in 0..3 {
                let n = draws as f64;
                assert!(moments[i][0].abs() < 4.0 * (variances[i] / n).sqrt());
                let error = ((fourths[i] - variances[i] * variances[i]) / n).sqrt();
                assert!((moments[i][1] - variances[i]).abs() < 4.0 * error, "{i}");
            }
        }
        let normaliser = |p: Prior| p.resolve(&layout(), &[]).unwrap().ln_normaliser(3);
        assert!(
            (normaliser(Prior::Box {
                widths: vec![2.0, 6.0]
            }) - 24f64.ln())
            .abs()
                < 1e-12
        );
        let gaussian = normaliser(Prior::Gaussian { precision: 2.0 });
        assert!((gaussian - 1.5 * std::f64::consts::PI.ln()).abs() < 1e-12);
        assert_eq!(normaliser(Prior::None), f64::INFINITY);
    }

    #[test]
    fn walls_reflect_and_turn_momenta() {
        let walls = Prior::Box { widths: vec![2.0] }
            .resolve(&layout(), &[])
            .unwrap();
        let (mut w, mut p) = ([1.25, -0.5, -3.5], [1.0, 1.0, 1.0]);
        walls.reflect(&mut w, Some(&mut p));
        assert_eq!((w, p), ([0.75, -0.5, 0.5], [-1.0, 1.0, 1.0]));
        let mut w = [1.0, f32::NAN, f32::INFINITY];
        walls.reflect(&mut w, None);
        assert!(w[0] < 1.0 && w[1].is_nan() && w[2].is_nan());
    }
}
