//! Where chains start.

use crate::rng::{Purpose, Stream};
use crate::target::Target;
use crate::target::prior::Parameters;
use std::sync::Arc;

/// Where chains start. Points that the model draws are drawn again whenever they are asked for, instead of being kept.
#[derive(Clone)]
pub struct Starts {
    pub(super) given: Option<Arc<Parameters>>,
    /// Number of chains.
    pub count: usize,
    pub(super) per_temperature: usize,
    pub(super) seed: u64,
    pub(super) from_prior: bool,
}

/// The mean of |w - w'|² over all pairs; none if there is no pair.
pub fn spread<W: AsRef<Vec<f32>>>(points: &[W]) -> Option<f64> {
    let mut sum = 0.0;
    for (k, a) in points.iter().enumerate() {
        for b in &points[..k] {
            let pairs = a.as_ref().iter().zip(b.as_ref());
            sum += pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        }
    }
    let pairs = points.len() * points.len().saturating_sub(1) / 2;
    (pairs > 0).then(|| sum / pairs as f64)
}

/// Which of given points belongs to a chain: as many as chains are one each, otherwise the chains of every temperature get them in turn.
pub fn turn(points: &Parameters, chain: usize, (count, per_temperature): (usize, usize)) -> usize {
    match points.vectors.len() {
        n if n == count => chain,
        n => chain % per_temperature % n,
    }
}

impl Starts {
    /// The spread of the chains of a temperature where they start, the largest of all; none where starts were not given, or there is one chain.
    pub fn spread(&self, target: &Target) -> Option<f64> {
        self.given.as_ref()?;
        let groups = (0..self.count).step_by(self.per_temperature.max(1));
        let of = |first: usize| {
            let starts = (first..first + self.per_temperature).map(|c| self.of(c, target));
            spread(&starts.collect::<Vec<_>>())
        };
        groups.filter_map(of).reduce(f64::max)
    }

    /// The start of one chain.
    pub fn of(&self, chain: usize, target: &Target) -> Arc<Vec<f32>> {
        let Some(p) = &self.given else {
            let stream = Stream::new(self.seed, Purpose::Initialise, chain, 0);
            if self.from_prior {
                let mut w = vec![0.0; target.dim()];
                target.prior().draw(&stream, &mut w);
                return Arc::new(w);
            }
            return Arc::new(target.potential().initialise(stream));
        };
        p.vectors[turn(p, chain, (self.count, self.per_temperature))].clone()
    }
}
