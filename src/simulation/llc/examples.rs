//! What the losses of single examples tell about the distribution around w0: influence, susceptibilities, the singular fluctuation; and
//! WBIC, from their mean.
//!
//! With `U = nβ·L(w) + ½γ|w-w0|²` and `L` the mean of the losses ℓ_i, means over the distribution respond to weights of examples by
//! covariances, which the draws give. Their errors are from the scatter over blocks of draws that are long against the autocorrelation time.

use super::Estimate;
use crate::diagnostic;
use crate::error::Result;
use crate::memory;
use crate::observable::example_losses::name;
use crate::plot::{self, Axis, Figure, Scale};
use crate::simulation::evaluation::Evaluation;
use crate::simulation::session::Session;
use std::ops::Range;

/// The draws of the losses, around their means.
struct Losses {
    /// `[draws of all healthy chains, examples]`.
    centred: Vec<f64>,
    examples: usize,
    /// Draws of each chain.
    lengths: Vec<usize>,
    /// See [`Losses::cut`].
    blocks: Vec<Range<usize>>,
    /// Rows of the split, and positions of a row.
    rows: usize,
    positions: usize,
    /// Whether positions are examples.
    apart: bool,
}

impl Losses {
    fn new(estimate: &Estimate, split: &str) -> Result<Self> {
        let (run, name) = (&estimate.run, name(split));
        let column = run.info.column(&name);
        let components = column.ok().and_then(|(_, c)| c.components.as_ref());
        let (dimension, labels) = components.ok_or_else(|| {
            anyhow::anyhow!(
                "'{}' has no losses of single examples of the split \"{split}\"; give llc the option \
                 `observe: [observable::example_losses(#{{ split: \"{split}\" }})]`",
                run.info.name
            )
        })?;
        let examples = labels.len();
        let size = (examples * run.info.draws * run.info.chains) as u128;
        memory::check(16 * size, &format!("the losses of {examples} examples"))?;
        let columns = (0..examples)
            .map(|k| run.draws(&name, k, 0, true))
            .collect::<Result<Vec<_>>>()?;
        let lengths: Vec<_> = columns[0].iter().map(Vec::len).collect();
        let draws: usize = lengths.iter().sum();
        let mut centred = vec![0.0; draws * examples];
        for (k, chains) in columns.iter().enumerate() {
            for (i, x) in around_mean(chains).into_iter().enumerate() {
                centred[i * examples + k] = x;
            }
        }
        let (rows, positions) = estimate.target.potential().rows_and_positions(split)?;
        let mut out = Self {
            centred,
            examples,
            lengths,
            blocks: Vec::new(),
            rows,
            positions,
            apart: dimension.starts_with("position"),
        };
        out.blocks = out.cut();
        Ok(out)
    }

    fn each_draw(&self) -> impl Iterator<Item = &[f64]> {
        self.centred.chunks_exact(self.examples)
    }

    fn draws(&self) -> f64 {
        (self.centred.len() / self.examples) as f64
    }

    /// Consecutive draws of one chain, a block after the other: as many as there are ten autocorrelation times of the slowest square, but two
    /// per chain at least.
    fn cut(&self) -> Vec<Range<usize>> {
        let mut first = 0;
        let mut chains = Vec::new();
        for length in &self.lengths {
            chains.push(first..first + length);
            first += length;
        }
        let time = |k: usize| {
            let square = |t: usize| self.centred[t * self.examples + k].powi(2);
            let squares: Vec<Vec<f64>> = chains
                .iter()
                .map(|c| c.clone().map(square).collect())
                .collect();
            diagnostic::integrated_autocorrelation_time(&squares)
        };
        // NaN, as of a loss that never changes, says nothing.
        let slowest = (0..self.examples).map(time).fold(1.0, f64::max);
        let long = (10.0 * slowest).ceil();
        let cut = |chain: Range<usize>| {
            let count = ((chain.len() as f64 / long) as usize).max(2);
            let at = move |i: usize| chain.start + i * chain.len() / count;
            (0..count).map(move |i| at(i)..at(i + 1))
        };
        chains.iter().cloned().flat_map(cut).collect()
    }

    /// Means over all draws of the `width` numbers that `add` adds for each, and their standard errors.
    fn averaged(
        &self,
        width: usize,
        mut add: impl FnMut(usize, &[f64], &mut [f64]),
    ) -> (Vec<f64>, Vec<f64>) {
        let mut of_block = vec![0.0; width];
        let (mut total, mut means, mut squares) =
            (of_block.clone(), of_block.clone(), of_block.clone());
        for block in &self.blocks {
            of_block.fill(0.0);
            for t in block.clone() {
                let draw = &self.centred[t * self.examples..][..self.examples];
                add(t, draw, &mut of_block);
            }
            for (k, sum) in of_block.iter().enumerate() {
                let mean = sum / block.len() as f64;
                total[k] += sum;
                means[k] += mean;
                squares[k] += mean * mean;
            }
        }
        let count = self.blocks.len() as f64;
        for (square, mean) in squares.iter_mut().zip(&means) {
            let scatter = *square - mean * mean / count;
            // Below 0 by rounding; NaN stays.
            let scatter = if scatter < 0.0 { 0.0 } else { scatter };
            *square = (scatter / (count * (count - 1.0))).sqrt();
        }
        total.iter_mut().for_each(|x| *x /= self.draws());
        (total, squares)
    }

    /// Correlations of `width` pairs of numbers, which `pair` gives around their means for each draw, and their standard errors: those of the mean of
    /// `xy - ½ρ(x² + y²)` with x and y in units of their standard deviations, whose scatter over blocks is that of ρ (the delta method, as a jackknife
    /// over blocks to first order). NaN for what never changes.
    fn correlated(
        &self,
        width: usize,
        pair: impl Fn(usize, &[f64], &mut [[f64; 2]]),
    ) -> (Vec<f64>, Vec<f64>) {
        let mut pairs = vec![[0.0; 2]; width];
        let (squares, _) = self.averaged(3 * width, |t, draw, out| {
            pair(t, draw, &mut pairs);
            for (sums, [x, y]) in out.as_chunks_mut::<3>().0.iter_mut().zip(&pairs) {
                sums[0] += x * x;
                sums[1] += y * y;
                sums[2] += x * y;
            }
        });
        // ρ, and the inverse standard deviations.
        let scales = squares.as_chunks::<3>().0.iter();
        let scales: Vec<[f64; 3]> = scales
            .map(|[xx, yy, xy]| {
                let (x, y) = (1.0 / xx.sqrt(), 1.0 / yy.sqrt());
                [(xy * (x * y)).clamp(-1.0, 1.0), x, y]
            })
            .collect();
        let (_, errors) = self.averaged(width, |t, draw, out| {
            pair(t, draw, &mut pairs);
            for ((sum, [x, y]), [rho, a, b]) in out.iter_mut().zip(&pairs).zip(&scales) {
                let (x, y) = (x * a, y * b);
                *sum += x * y - 0.5 * rho * (x * x + y * y);
            }
        });
        (scales.into_iter().map(|[rho, ..]| rho).collect(), errors)
    }

    /// -L and ℓ_i - L of every example i in a draw: L is the mean loss over all examples where it was recorded, else that over the other observed ones.
    fn against_rest(
        cost: Option<&Vec<f64>>,
        t: usize,
        draw: &[f64],
    ) -> impl Iterator<Item = [f64; 2]> {
        let total: f64 = draw.iter().sum();
        let own = cost.map(|cost| cost[t]);
        let others = (draw.len() - 1) as f64;
        draw.iter().map(move |x| {
            let mean = own.unwrap_or_else(|| (total - x) / others);
            [-mean, x - mean]
        })
    }
}

/// Rows of a square matrix, times a factor.
fn rows(all: &[f64], k: usize, factor: f64) -> Vec<Vec<f64>> {
    let row = |r: &[f64]| r.iter().map(|x| factor * x).collect();
    all.chunks_exact(k).map(row).collect()
}

/// Susceptibilities of single examples, and their standard errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Susceptibilities {
    /// `-Cov(L, ℓ_i - L)`.
    pub estimate: Vec<f64>,
    /// Standard errors of `estimate`.
    pub mcse: Vec<f64>,
    /// `-Corr(L, ℓ_i - L)`.
    pub correlation: Vec<f64>,
    /// Standard errors of `correlation`.
    pub correlation_mcse: Vec<f64>,
}

/// All chains, less their common mean.
fn around_mean(chains: &[Vec<f64>]) -> Vec<f64> {
    let count: usize = chains.iter().map(Vec::len).sum();
    let mean = chains.iter().flatten().sum::<f64>() / count as f64;
    chains.iter().flatten().map(|x| x - mean).collect()
}

impl Estimate {
    /// `-β Cov(ℓ_i, ℓ_j)`, `[examples, examples]`: how the mean loss of example j responds to the weight of example i in
    /// `nβL = β Σ w_i ℓ_i` (the Bayesian influence function of Kreer et al. 2025, times β). A position of a row of P has weight β/P there.
    /// And the standard errors of all these.
    ///
    /// # Errors
    /// If the losses of single examples of this split were not observed, or the matrix does not fit into memory.
    pub fn influence(&self, split: &str) -> Result<[Vec<Vec<f64>>; 2]> {
        let losses = Losses::new(self, split)?;
        let k = losses.examples;
        // Sums, means, squares, and once more as a script's arrays.
        memory::check(
            96 * (k * k) as u128,
            &format!("the influence of {k} examples"),
        )?;
        let (means, errors) = losses.averaged(k * k, |_, draw, out| {
            for (row, x) in out.chunks_exact_mut(k).zip(draw) {
                row.iter_mut().zip(draw).for_each(|(s, y)| *s += x * y);
            }
        });
        let share = if losses.apart { losses.positions } else { 1 };
        let beta = self.point.nbeta / (self.n * share) as f64;
        Ok([rows(&means, k, -beta), rows(&errors, k, beta)])
    }

    /// `Corr(ℓ_i, ℓ_j)`, `[examples, examples]`: the influence of one on the other on a scale from -1 to 1, with the sign that examples which are learnt
    /// together have 1; and the standard errors.
    ///
    /// # Errors
    /// As those of [`Estimate::influence`].
    pub fn correlations(&self, split: &str) -> Result<[Vec<Vec<f64>>; 2]> {
        let losses = Losses::new(self, split)?;
        let k = losses.examples;
        memory::check(
            224 * (k * k) as u128,
            &format!("the correlations of {k} examples"),
        )?;
        let (rho, errors) = losses.correlated(k * k, |_, draw, out| {
            for (row, x) in out.chunks_exact_mut(k).zip(draw) {
                row.iter_mut().zip(draw).for_each(|(p, y)| *p = [*x, *y]);
            }
        });
        Ok([rows(&rho, k, 1.0), rows(&errors, k, 1.0)])
    }

    /// The correlations as a heat map.
    ///
    /// # Errors
    /// As those of [`Estimate::influence`].
    pub fn correlations_figure(&self, split: &str) -> Result<Figure> {
        let [rho, _] = self.correlations(split)?;
        let at: Vec<f64> = (0..rho.len()).map(|k| k as f64).collect();
        let edges = plot::edges(&at, Scale::Linear);
        let name = || Axis::linear(format!("observed example of \"{split}\""));
        let edges = (edges.clone(), edges);
        let panel = plot::heat((name(), name()), edges, rho.concat(), (-1.0, 1.0));
        Ok(Figure::of(panel).titled("correlation of losses"))
    }

    /// `χ_i = -Cov(L, ℓ_i - L)`: 1/nβ of the response of ⟨L⟩ to data that shift towards example i (Baker et al. 2025; of a part of the
    /// model, if only that moved). L is the loss over all examples where `cost` was recorded, otherwise the mean over the *other*
    /// observed examples: with its own it would be mostly a variance. Also on a scale from -1 to 1, `-Corr(L, ℓ_i - L)`; and the standard errors.
    ///
    /// # Errors
    /// If the losses of single examples of this split were not observed, or of one alone and no cost.
    pub fn susceptibilities(&self, split: &str) -> Result<Susceptibilities> {
        let losses = Losses::new(self, split)?;
        let cost = self.run.draws("cost", 0, 0, true).ok();
        let cost = cost.map(|chains| around_mean(&chains));
        let (cost, k) = (cost.as_ref(), losses.examples);
        anyhow::ensure!(
            cost.is_some() || k > 1,
            "the susceptibility of a single example needs the loss over all; observe observable::cost() too"
        );
        let (estimate, mcse) = losses.averaged(k, |t, draw, out| {
            let pairs = Losses::against_rest(cost, t, draw);
            out.iter_mut()
                .zip(pairs)
                .for_each(|(c, [x, y])| *c += x * y);
        });
        let (correlation, correlation_mcse) = losses.correlated(k, |t, draw, out| {
            let pairs = Losses::against_rest(cost, t, draw);
            out.iter_mut().zip(pairs).for_each(|(p, pair)| *p = pair);
        });
        Ok(Susceptibilities {
            estimate,
            mcse,
            correlation,
            correlation_mcse,
        })
    }

    /// `ν = ½ β Σ_i Var(ℓ_i)`, the singular fluctuation (Watanabe 2010), and its standard error: that of the chains, and where not all n
    /// training examples were observed, that of the choice.
    ///
    /// # Errors
    /// If the losses of training examples were not observed, or those of positions were.
    pub fn singular_fluctuation(&self) -> Result<(f64, f64)> {
        let losses = Losses::new(self, "train")?;
        anyhow::ensure!(
            !losses.apart,
            "the singular fluctuation needs losses of rows, not of positions; use observable::example_losses(#{{ each: \"row\" }})"
        );
        let k = losses.examples;
        let mut variances = vec![0.0; k];
        let mut each = Vec::with_capacity(losses.centred.len() / k);
        for draw in losses.each_draw() {
            for (v, x) in variances.iter_mut().zip(draw) {
                *v += x * x / losses.draws();
            }
            each.push(draw.iter().map(|x| x * x).sum::<f64>() / k as f64);
        }
        let mut rest = &each[..];
        let chains: Vec<_> = losses
            .lengths
            .iter()
            .map(|n| {
                let (own, other) = rest.split_at(*n);
                rest = other;
                own
            })
            .collect();
        // Of k out of n, drawn without replacement.
        let left_out = 1.0 - k as f64 / losses.rows as f64;
        let of_choice = match left_out > 0.0 {
            true => diagnostic::sd(&[variances]) * (left_out / k as f64).sqrt(),
            false => 0.0,
        };
        let factor = 0.5 * self.point.nbeta;
        Ok((
            factor * diagnostic::mean(&chains),
            factor * diagnostic::mcse_mean(&chains).hypot(of_choice),
        ))
    }

    /// `WBIC = n⟨L⟩` at β = 1/ln n (Watanabe 2013), an estimate of the free energy if L is a negative log-likelihood, and its standard
    /// error. From n·L(w0) + λ̂/β, so that a paired baseline makes it precise too; localised by γ as λ̂ is.
    ///
    /// # Errors
    /// If β is another, only differences of losses are known, or rows are sequences, whose L is a mean over positions.
    pub fn wbic(&self, session: &Session) -> Result<(f64, f64)> {
        let n = self.n as f64;
        anyhow::ensure!(
            self.target.potential().examples() == self.n,
            "WBIC needs the loss itself, but these data give that of {} examples only up to a constant",
            self.n
        );
        let beta = self.point.nbeta / n;
        let positions = self.target.potential().rows_and_positions("train");
        anyhow::ensure!(
            positions.map_or(1, |(_, p)| p) == 1,
            "WBIC needs negative log-likelihoods of rows, but the loss of a sequence is the mean over its positions"
        );
        anyhow::ensure!(
            (beta * n.ln() - 1.0).abs() < 0.01,
            "WBIC is a mean at β = 1/ln n = {:.4}, but β is {beta:.4} here",
            1.0 / n.ln()
        );
        let placed = session.placed(&self.target)?;
        let devices = placed.devices.as_deref();
        let at_start =
            Evaluation::new(&placed.target, &self.start, devices, session.threads)?.loss()?;
        Ok((n * at_start + self.lambda / beta, self.mcse / beta))
    }
}
