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

impl Starts {
    /// Whether there are several chains at every temperature, and all of them start at one point.
    pub fn one_point(&self, target: &Target) -> bool {
        let groups = (0..self.count).step_by(self.per_temperature.max(1));
        self.given.is_some()
            && self.per_temperature > 1
            && groups.clone().all(|first| {
                let home = self.of(first, target);
                (first + 1..first + self.per_temperature).all(|c| self.of(c, target) == home)
            })
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
        // As many vectors as chains: one each. Otherwise the chains of every temperature get them in turn.
        let turn = chain % self.per_temperature % p.vectors.len();
        p.vectors[if p.vectors.len() == self.count {
            chain
        } else {
            turn
        }]
        .clone()
    }
}
