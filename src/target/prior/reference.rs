//! A Gaussian in the place of the prior at the hot end of a ladder.

use super::PriorEnergy;
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::rng::Stream;
use anyhow::ensure;
use std::sync::Arc;

/// A Gaussian q of independent numbers, by the energy -ln q.
#[derive(Debug)]
pub struct Reference {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    /// -ln q at the mean.
    least: f64,
}

impl Reference {
    /// By mean and standard deviation of each number.
    ///
    /// # Errors
    /// If these are not as many, or not finite, or a deviation is not above 0.
    pub fn new(mean: Vec<f32>, deviation: Vec<f32>) -> Result<Self> {
        ensure!(
            mean.len() == deviation.len(),
            "target.with_reference: {} means and {} standard deviations",
            mean.len(),
            deviation.len()
        );
        for (i, (m, s)) in mean.iter().zip(&deviation).enumerate() {
            ensure!(
                m.is_finite() && s.is_finite() && *s > 0.0,
                "target.with_reference: parameter {i} has mean {m} and standard deviation {s}, which must be finite and above 0"
            );
        }
        let own = |s: &f32| f64::from(*s).ln() + 0.5 * std::f64::consts::TAU.ln();
        Ok(Self {
            least: deviation.iter().map(own).sum(),
            mean,
            deviation,
        })
    }

    fn terms<'a>(&'a self, w: &'a [f32]) -> impl Iterator<Item = (f64, f64)> + 'a {
        let each = w.iter().zip(&self.mean).zip(&self.deviation);
        each.map(|((w, m), s)| {
            let s = f64::from(*s);
            ((f64::from(*w) - f64::from(*m)) / s, s)
        })
    }

    /// -ln q.
    fn energy(&self, w: &[f32]) -> f64 {
        self.least + 0.5 * self.terms(w).map(|(z, _)| z * z).sum::<f64>()
    }

    fn add_gradient(&self, strength: f64, w: &[f32], out: &mut [f32]) {
        for (out, (z, s)) in out.iter_mut().zip(self.terms(w)) {
            *out += (strength * z / s) as f32;
        }
    }

    pub(super) fn draw(&self, stream: &Stream, w: &mut [f32]) {
        fill_normal(stream, w);
        let each = w.iter_mut().zip(&self.mean).zip(&self.deviation);
        each.for_each(|((w, m), s)| *w = m + s * *w);
    }

    pub(super) fn mean_square(&self) -> f64 {
        let each = self.mean.iter().zip(&self.deviation);
        let sum: f64 = each
            .map(|(m, s)| f64::from(*m).powi(2) + f64::from(*s).powi(2))
            .sum();
        sum / self.mean.len().max(1) as f64
    }

    pub(super) fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        let all = self.mean.iter().chain(&self.deviation);
        all.for_each(|x| hash.update(&x.to_le_bytes()));
    }
}

impl PriorEnergy {
    /// R with a reference q: [strengthened](PriorEnergy::strengthened) T times it is R - (T-1) ln q, so that exp(-(s·L + R)/T) becomes q at infinite T.
    ///
    /// # Errors
    /// If there are walls, beyond which q has draws.
    pub(in crate::target) fn with_reference(&self, reference: Reference) -> Result<Self> {
        ensure!(
            !self.has_walls(),
            "target.with_reference: the prior has walls, and the reference has draws beyond them"
        );
        Ok(Self {
            text: format!("{}; ladders end in a Gaussian", self.text),
            reference: Some((Arc::new(reference), 0.0)),
            ..self.clone()
        })
    }

    /// Whether there is a reference.
    pub(crate) fn has_reference(&self) -> bool {
        self.reference.is_some()
    }

    /// What temperatures divide beside the likelihood: R + ln q with a reference, R normalised where it can be; else nothing.
    pub(crate) fn tempered_part(&self, w: &[f32]) -> f64 {
        let Some((q, _)) = &self.reference else {
            return 0.0;
        };
        let normaliser = self.ln_normaliser(w.len());
        let normaliser = if normaliser.is_finite() {
            normaliser
        } else {
            0.0
        };
        self.energy(w) + normaliser - q.energy(w)
    }

    /// What the reference adds to this many times the energy.
    pub(super) fn reference_energy(&self, strength: f64, w: &[f32]) -> f64 {
        match &self.reference {
            Some((q, own)) if own + strength != 1.0 => (own + strength - 1.0) * q.energy(w),
            _ => 0.0,
        }
    }

    /// Add its gradient; its energy.
    #[inline]
    pub(super) fn add_reference(&self, w: &[f32], out: &mut [f32]) -> f64 {
        match &self.reference {
            Some((q, own)) if *own != 0.0 => {
                q.add_gradient(*own, w, out);
                own * q.energy(w)
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Prior;
    use super::*;
    use crate::model::Layout;

    /// R - (T-1) ln q and its gradient, and what T divides.
    #[test]
    fn tempered_priors_become_the_reference() {
        let layout = Layout::new([("a".to_string(), vec![2])]);
        let prior = Prior::Gaussian { precision: 2.0 }
            .resolve(&layout, &[])
            .unwrap();
        let (mean, deviation) = ([0.5f32, -1.0], [0.25f32, 2.0]);
        let both = || Reference::new(mean.to_vec(), deviation.to_vec()).unwrap();
        let prior = prior.with_reference(both()).unwrap();
        let w = [0.75f32, 1.0];
        let q = 0.5 * (1.0 + 1.0) + 0.5f64.ln() + std::f64::consts::TAU.ln();
        let r = 0.5625 + 1.0;
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(prior.energy(&w), r);
        close(prior.energy_times(3.0, &w), r + 2.0 * q);
        close(prior.tempered_part(&w), r + std::f64::consts::PI.ln() - q);
        let hot = prior.strengthened(3.0);
        close(hot.energy(&w), r + 2.0 * q);
        let mut gradient = [0.0; 2];
        let rest = {
            hot.gradient(&w, &mut gradient);
            hot.add_rest(&w, &mut [0.0; 2])
        };
        close(hot.energy_given(rest, &w), r + 2.0 * q);
        close(f64::from(gradient[0]), 1.5 + 2.0 * 4.0);
        close(f64::from(gradient[1]), 2.0 + 2.0 * 0.5);
        assert!(prior.is_proper() && !prior.is_flat() && prior.terms(2).is_err());
        let none = Prior::None.resolve(&layout, &[]).unwrap();
        assert!(none.with_reference(both()).unwrap().is_proper());
        let walls = Prior::Box { widths: vec![2.0] };
        let walls = walls.resolve(&layout, &[]).unwrap();
        assert!(walls.with_reference(both()).is_err());
        assert!(Reference::new(vec![0.0], vec![0.0]).is_err());
    }
}
