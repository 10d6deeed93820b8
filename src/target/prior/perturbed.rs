//! Priors with terms that probe a system: a coupling to a reference, and a field.

use super::PriorEnergy;
use crate::kernels::update::dot;
use std::sync::Arc;

impl PriorEnergy {
    /// The prior with ½k|w - reference|² more, up to a constant: it is completed to one square with what is quadratic already.
    pub fn coupled(&self, k: f64, reference: &[f32]) -> Self {
        let precision = self.precision + k;
        let own = |i: usize| f64::from(self.centre.get(i).copied().unwrap_or(0.0));
        let mean = |(i, r): (usize, &f32)| {
            ((self.precision * own(i) + k * f64::from(*r)) / precision) as f32
        };
        let centre = match precision > 0.0 {
            true => Arc::new(reference.iter().enumerate().map(mean).collect()),
            false => self.centre.clone(),
        };
        Self {
            text: format!("{} + ½k|w-w_ref|², k = {k}", self.text),
            precision,
            centre,
            ..self.clone()
        }
    }

    /// The prior with -h·w more, h the field.
    pub fn in_field(&self, field: &[f32]) -> Self {
        let sum = |(i, h): (usize, &f32)| h + self.field.get(i).copied().unwrap_or(0.0);
        let norm = (dot(field, field) / field.len().max(1) as f64).sqrt();
        Self {
            text: format!("{} - h·w, |h|/√N = {norm:.6e}", self.text),
            field: Arc::new(field.iter().enumerate().map(sum).collect()),
            ..self.clone()
        }
    }

    /// -h·w.
    pub(super) fn field_energy(&self, w: &[f32]) -> f64 {
        match self.field.is_empty() {
            true => 0.0,
            false => -dot(&self.field, w),
        }
    }

    /// Add its gradient.
    #[inline]
    pub(super) fn add_field(&self, out: &mut [f32]) {
        for (out, h) in out.iter_mut().zip(self.field.iter()) {
            *out -= h;
        }
    }

    /// Why nothing can be drawn from it, where a term has been added to what could be.
    pub(super) fn perturbed(&self) -> Option<String> {
        let bent = self.precision > 0.0 && (self.has_walls() || self.rest.is_some());
        (bent || !self.field.is_empty()).then(|| {
            format!(
                "nothing can be drawn from the prior '{}', to which a term was added",
                self.text
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Prior;
    use super::*;
    use crate::model::Layout;

    /// Energies differ from their formula by a constant, gradients are those of the formula.
    #[test]
    fn couplings_and_fields_add_up() {
        let layout = Layout::new([("a".to_string(), vec![3])]);
        let centre = Arc::new(vec![1.0, 0.0, -0.5]);
        let priors = [
            (Prior::None, 0.0, [0.0; 3]),
            (Prior::Gaussian { precision: 2.0 }, 2.0, [0.0; 3]),
            (
                Prior::Localised { gamma: 0.5, centre },
                0.5,
                [1.0, 0.0, -0.5],
            ),
        ];
        let (reference, field) = ([0.25f32, -1.0, 2.0], [0.5f32, 0.0, -1.5]);
        for (prior, p, c) in priors {
            let prior = prior.resolve(&layout, &[]).unwrap();
            let both = prior
                .coupled(1.5, &reference)
                .in_field(&field)
                .in_field(&field);
            let both = both.strengthened(2.0);
            let formula = |w: &[f32; 3]| -> f64 {
                let of = |i: usize| {
                    let (w, r) = (f64::from(w[i]), f64::from(reference[i]));
                    0.5 * p * (w - c[i]).powi(2) + 0.75 * (w - r).powi(2)
                        - 2.0 * f64::from(field[i]) * w
                };
                2.0 * (0..3).map(of).sum::<f64>()
            };
            let points = [[0.0f32; 3], [1.0, 2.0, 3.0], [-0.5, 0.25, 1.5]];
            let apart = points.map(|w| both.energy(&w) - formula(&w));
            assert!((apart[1] - apart[0]).abs() < 1e-5 && (apart[2] - apart[0]).abs() < 1e-5);
            let mut gradient = [0.0f32; 3];
            both.gradient(&points[2], &mut gradient);
            for i in 0..3 {
                let moved = |h: f32| {
                    let mut w = points[2];
                    w[i] += h;
                    formula(&w)
                };
                let slope = (moved(0.125) - moved(-0.125)) / 0.25;
                assert!(
                    (f64::from(gradient[i]) - slope).abs() < 1e-5,
                    "{i}: {gradient:?} {slope}"
                );
            }
            assert!(!both.is_flat() && !both.is_proper() && both.terms(3).is_err());
            assert_eq!(prior.coupled(1.5, &reference).improper(), None);
        }
    }
}
