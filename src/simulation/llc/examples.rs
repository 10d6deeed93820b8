//! What the losses of single examples tell about the distribution around w0: influence, susceptibilities, the singular fluctuation; and
//! WBIC, from their mean.
//!
//! With `U = nβ·L(w) + ½γ|w-w0|²` and `L` the mean of the losses ℓ_i, means over the distribution respond to weights of examples by
//! covariances, which the draws give.

use super::Estimate;
use crate::diagnostic;
use crate::error::Result;
use crate::observable::example_losses::{DIMENSIONS, NAME};
use crate::target::Workspace;

/// The draws of the losses, around their means.
struct Losses {
    /// `[draws of all healthy chains, examples]`.
    centred: Vec<f64>,
    examples: usize,
    /// Draws of each chain.
    lengths: Vec<usize>,
}

impl Losses {
    fn new(estimate: &Estimate) -> Result<Self> {
        let run = &estimate.run;
        let (_, column) = run.info.column(NAME).map_err(|_| {
            anyhow::anyhow!(
                "'{}' has no losses of single examples; give llc the option `observe: [observable::{NAME}()]`",
                run.info.name
            )
        })?;
        let examples = column.width();
        let columns = (0..examples)
            .map(|k| run.draws(NAME, k, 0, true))
            .collect::<Result<Vec<_>>>()?;
        let lengths: Vec<_> = columns[0].iter().map(Vec::len).collect();
        let draws: usize = lengths.iter().sum();
        let mut centred = vec![0.0; draws * examples];
        for (k, chains) in columns.iter().enumerate() {
            let mean = chains.iter().flatten().sum::<f64>() / draws as f64;
            for (i, x) in chains.iter().flatten().enumerate() {
                centred[i * examples + k] = x - mean;
            }
        }
        Ok(Self {
            centred,
            examples,
            lengths,
        })
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.centred.chunks_exact(self.examples)
    }

    fn draws(&self) -> f64 {
        (self.centred.len() / self.examples) as f64
    }
}

impl Estimate {
    /// β Cov(ℓ_i, ℓ_j) with a minus: how the mean loss of example j responds to the weight of example i in `nβL = β Σ w_i ℓ_i`,
    /// `[examples, examples]` (the Bayesian influence function of Kreer et al. 2025, times β).
    ///
    /// # Errors
    /// If the losses of single examples were not observed.
    pub fn influence(&self) -> Result<Vec<Vec<f64>>> {
        let losses = Losses::new(self)?;
        let k = losses.examples;
        let mut sums = vec![vec![0.0; k]; k];
        for row in losses.rows() {
            for (i, x) in row.iter().enumerate() {
                for (s, y) in sums[i][i..].iter_mut().zip(&row[i..]) {
                    *s += x * y;
                }
            }
        }
        let factor = -self.point.nbeta / self.n as f64 / losses.draws();
        for i in 0..k {
            for j in i..k {
                sums[i][j] *= factor;
                sums[j][i] = sums[i][j];
            }
        }
        Ok(sums)
    }

    /// `χ_i = -Cov(L, ℓ_i - L)`, L the mean over the observed examples: 1/nβ of the response of ⟨L⟩ to data that shift towards example i
    /// (Baker et al. 2025; with `restrict` it is the susceptibility of that part of the model).
    ///
    /// # Errors
    /// If the losses of single examples were not observed.
    pub fn susceptibilities(&self) -> Result<Vec<f64>> {
        let losses = Losses::new(self)?;
        let mut chi = vec![0.0; losses.examples];
        for row in losses.rows() {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            for (c, x) in chi.iter_mut().zip(row) {
                *c -= mean * (x - mean);
            }
        }
        let draws = losses.draws();
        chi.iter_mut().for_each(|c| *c /= draws);
        Ok(chi)
    }

    /// `ν = ½ β Σ_i Var(ℓ_i)`, the singular fluctuation (Watanabe 2010), and its Monte Carlo standard error. Of observed examples that are
    /// fewer than n, times what is missing.
    ///
    /// # Errors
    /// If the losses of single examples were not observed, or those of positions were.
    pub fn singular_fluctuation(&self) -> Result<(f64, f64)> {
        let losses = Losses::new(self)?;
        let (_, column) = self.run.info.column(NAME)?;
        anyhow::ensure!(
            column
                .components
                .as_ref()
                .is_some_and(|(name, _)| name == DIMENSIONS[0]),
            "the singular fluctuation is made of losses of rows, not of positions; use observable::{NAME}(#{{ each: \"row\" }})"
        );
        let each: Vec<f64> = losses
            .rows()
            .map(|row| row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64)
            .collect();
        let mut rest = &each[..];
        let chains = losses.lengths.iter().map(|n| {
            let (own, other) = rest.split_at(*n);
            rest = other;
            own
        });
        let chains: Vec<_> = chains.collect();
        let factor = 0.5 * self.point.nbeta;
        Ok((
            factor * diagnostic::mean(&chains),
            factor * diagnostic::mcse_mean(&chains),
        ))
    }

    /// `WBIC = n⟨L⟩` at β = 1/ln n (Watanabe 2013), an estimate of the free energy if L is a negative log-likelihood, and its standard
    /// error. From n·L(w0) + λ̂/β, so that a paired baseline makes it precise too; localised by γ as λ̂ is.
    ///
    /// # Errors
    /// If β is another, or only differences of losses are known.
    pub fn wbic(&self, threads: usize) -> Result<(f64, f64)> {
        let n = self.n as f64;
        anyhow::ensure!(
            self.target.examples() == self.n,
            "WBIC needs the loss itself, but these data have that of {} examples up to a constant",
            self.n
        );
        let beta = self.point.nbeta / n;
        anyhow::ensure!(
            (beta * n.ln() - 1.0).abs() < 0.01,
            "WBIC is a mean at β = 1/ln n = {:.4}, but β is {beta:.4} here",
            1.0 / n.ln()
        );
        let mut work = Workspace::new(threads);
        let at_start = self.target.energies(&self.start, &mut work)?.loss;
        Ok((n * at_start + self.lambda / beta, self.mcse / beta))
    }
}
