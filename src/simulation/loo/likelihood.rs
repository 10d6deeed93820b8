//! ln p(y|x, w) of training examples.

use crate::error::Result;
use crate::model::loss::Loss;
use crate::simulation::prediction;
use crate::simulation::temper::Temper;
use crate::target::Target;
use crate::target::network::Network;

/// The likelihood of single rows of the training split, and how strongly each is in the posterior.
pub struct Likelihood<'a> {
    target: &'a Target,
    network: &'a Network,
    positions: usize,
    /// The power of p in the posterior, of a row of weight 1.
    beta: f64,
    /// Of squared errors: what multiplies the loss in -ln p, and what is added to it.
    gaussian: Option<(f64, f64)>,
}

impl<'a> Likelihood<'a> {
    /// That of the law at this temperature.
    pub fn of(target: &'a Target, law: Temper, temperature: f64) -> Result<Self> {
        let network = target.network("loo")?;
        let (_, positions) = target.potential().rows_and_positions("train")?;
        let (beta, variance) = prediction::likelihood(target, law, network, temperature);
        let outputs = network.model().outputs() as f64;
        let gaussian = (*network.loss() == Loss::SquaredError).then(|| {
            let norm = 0.5 * outputs * (std::f64::consts::TAU * variance).ln();
            (0.5 / variance, norm)
        });
        Ok(Self {
            target,
            network,
            positions,
            beta,
            gaussian,
        })
    }

    fn weight(&self, row: u32) -> f64 {
        let weights = self.network.dataset().train.weights.as_ref();
        weights.map_or(1.0, |w| f64::from(w[row as usize]))
    }

    /// The rows that are in the posterior.
    pub fn rows(&self) -> Vec<u32> {
        let all = 0..self.network.dataset().train.rows as u32;
        all.filter(|r| self.weight(*r) > 0.0).collect()
    }

    /// The power of p in the posterior.
    pub fn beta(&self, row: u32) -> f64 {
        self.beta * self.weight(row)
    }

    /// ln p of each of these rows, of all its positions together.
    pub fn of_rows(&self, w: &[f32], rows: &[u32]) -> Result<Vec<f64>> {
        let losses = self.target.potential().example_losses(w, "train", rows)?;
        let of_row = |(losses, row): (&[f64], &u32)| {
            let loss = losses.iter().sum::<f64>() / self.weight(*row);
            match self.gaussian {
                Some((precision, norm)) => -precision * loss - norm,
                None => -loss,
            }
        };
        Ok(losses
            .chunks(self.positions)
            .zip(rows)
            .map(of_row)
            .collect())
    }

    /// A checksum of what these rows are to be predicted.
    pub fn checksum(&self, rows: &[u32]) -> u32 {
        let train = &self.network.dataset().train;
        let mut hash = crc32fast::Hasher::new();
        rows.iter().for_each(|r| hash.update(&r.to_le_bytes()));
        match train.labels() {
            Some(labels) => labels.iter().for_each(|l| hash.update(&l.to_le_bytes())),
            None => {
                let mut values = vec![0.0; train.rows * train.targets.width()];
                train.copy_values(0..train.rows, &mut values);
                values.iter().for_each(|y| hash.update(&y.to_le_bytes()));
            }
        }
        hash.finalize()
    }
}
