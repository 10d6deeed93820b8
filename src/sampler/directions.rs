//! The directions of a [`Metric`], learnt from draws and their gradients.
//!
//! As the low-rank masses of nutpie: in the coordinates in which the diagonal is 1, long directions are those in which draws vary most, stiff ones those in which gradients do, and the variance
//! along one is λ = sqrt(Var(x)/Var(∇U/T)). Two things differ, for networks with more parameters than draws. Stiff directions are made more exact by products with the
//! Hessian. And λ is measured on draws that the direction was not made of: where there are few, chance alone finds directions in which those it was made of vary.

use super::metric::{ADD_DIRECTION, ALONG_DRAW, INNER, MASS, Metric, PRODUCT, SCALE};
use crate::diagnostic::eigenvectors;
use crate::engine::Vector::{self, Gradient, Params, Scratch};
use crate::engine::{Chains, PerChain};
use crate::error::Result;
use crate::kernels::map::{kernel, reduction};
use crate::kernels::update::{DOT, FILL};

/// Draws and gradients of a window that are kept.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// How many at most.
    pub most: usize,
    /// The state vector that is the first draw; gradients come after the draws.
    pub first: usize,
}

/// The change of a standard deviation² below which a direction is not worth its cost, as nutpie's.
const CUTOFF: f64 = 2.0;

/// Candidates of a larger share outside those before them are another direction.
const OTHER: f64 = 0.1;

/// Where candidates are, and what products with the Hessian need.
const CANDIDATES: usize = 64;
const HOME: Vector = Scratch(62);
const AHEAD: Vector = Scratch(63);

reduction! {
    /// Σ M (x-c)·(y-c).
    COVARIANCE = sum directions_covariance(x, y, centre, mass) { mass * ((x - centre) * (y - centre)) }
}

kernel! {
    /// `b ← b + by·(x-c)`.
    pub ADD_DRAW = directions_add_draw(b; x, centre; ; by) {
        b += by * (x - centre);
    }
}

kernel! {
    /// `b ← b + by·g/M`.
    ADD_GRADIENT = directions_add_gradient(b; g, mass; ; by) {
        b += by * (g / mass);
    }
}

kernel! {
    /// `b ← by·(g-h)/M`.
    DIFFERENCE = directions_difference(b; g, h, mass; ; by) {
        b = by * ((g - h) / mass);
    }
}

/// Draws that are kept for so many directions.
pub const fn kept(rank: usize) -> usize {
    match rank {
        0 => 0,
        _ => 4 * rank + 16,
    }
}

/// Vectors that are needed to learn so many.
pub const fn scratch(rank: usize) -> usize {
    match rank {
        0 => 0,
        _ => 3 * rank + 2,
    }
}

impl Kept {
    /// Draws below which nothing is learnt.
    pub const LEAST: usize = 16;

    fn draw(self, i: usize) -> Vector {
        Vector::State(self.first + i)
    }

    fn gradient(self, i: usize) -> Vector {
        Vector::State(self.first + self.most + i)
    }

    /// Keep the draw that is number `n`, from 1, of a window of so many, if its turn has come; `gradient` is that at the draw, or near it: that of langevin is half a step behind.
    pub fn note(self, chains: &mut Chains, n: u64, window: u64, gradient: Vector) -> Result<()> {
        let so_far = |n: u64| (n * self.most as u64 / window.max(self.most as u64)) as usize;
        let slot = so_far(n);
        if slot == so_far(n - 1) {
            return Ok(());
        }
        chains.copy(Params, self.draw(slot - 1))?;
        chains.copy(gradient, self.gradient(slot - 1))
    }

    /// How many a window of so many draws has left.
    pub fn of(self, window: u64) -> usize {
        self.most.min(window as usize)
    }
}

/// Learn directions for masses whose diagonal is known, from this many draws around their mean.
pub fn learn(
    metric: &Metric,
    kept: Kept,
    chains: &mut Chains,
    count: usize,
    mean: Vector,
) -> Result<()> {
    let candidates = candidates(metric, kept, chains, count, mean)?;
    let variances = variances(&candidates, kept, chains, count, mean)?;
    // Per chain: the candidates that are worth it, the most unlike 1 first.
    let held_out = (count / 2) as f64;
    let least = CUTOFF.ln().max(3.0 / held_out.sqrt());
    let chosen: Vec<Vec<usize>> = (0..chains.len())
        .map(|c| {
            let size = |i: &usize| variances[*i][c].ln().abs();
            let mut all: Vec<usize> = (0..candidates.len())
                .filter(|i| size(i) > least && size(i).is_finite())
                .collect();
            all.sort_by(|a, b| size(b).total_cmp(&size(a)));
            all.truncate(metric.rank);
            all
        })
        .collect();
    for j in 0..metric.rank {
        chains.map(&FILL, &[metric.direction(j)], |_, _| [0.0])?;
        for (i, candidate) in candidates.iter().enumerate() {
            let which: Vec<bool> = chosen.iter().map(|of| of.get(j) == Some(&i)).collect();
            if which.contains(&true) {
                chains
                    .engine
                    .copy(*candidate, metric.direction(j), &which)?;
            }
        }
        for (c, of) in chosen.iter().enumerate() {
            let beyond = of.get(j).map_or(0.0, |i| variances[*i][c] - 1.0);
            chains.scalars(c)[metric.scalar + j] = beyond;
        }
    }
    Ok(())
}

/// Directions of length 1 at right angles to each other that half of the draws suggest: stiff ones, those that the Hessian makes of them before them, and long ones.
fn candidates(
    metric: &Metric,
    kept: Kept,
    chains: &mut Chains,
    count: usize,
    mean: Vector,
) -> Result<Vec<Vector>> {
    let used: Vec<usize> = (0..count).step_by(2).collect();
    let rank = metric.rank.min(used.len());
    let at = |family: usize, j: usize| Scratch(CANDIDATES + family * rank + j);
    let [exact, stiff, long] = [0, 1, 2];
    let stiffness = principal(chains, rank, &used, |chains, i, k| {
        chains.sum(&PRODUCT, &[kept.gradient(i), kept.gradient(k), MASS])
    })?;
    let length = principal(chains, rank, &used, |chains, i, k| {
        chains.sum(&COVARIANCE, &[kept.draw(i), kept.draw(k), mean, MASS])
    })?;
    for j in 0..rank {
        for v in [at(stiff, j), at(long, j)] {
            chains.map(&FILL, &[v], |_, _| [0.0])?;
        }
        for (n, i) in used.iter().enumerate() {
            let by = |of: &[Principal], c: usize| [of[c].weights[j][n] as f32];
            let vectors = [at(stiff, j), kept.gradient(*i), MASS];
            chains.map(&ADD_GRADIENT, &vectors, |c, _| by(&stiffness, c))?;
            let vectors = [at(long, j), kept.draw(*i), mean];
            chains.map(&ADD_DRAW, &vectors, |c, _| by(&length, c))?;
        }
        let sizes: Vec<f64> = stiffness.iter().map(|p| p.variances[j]).collect();
        hessian_product(chains, at(stiff, j), at(exact, j), &sizes)?;
    }
    let all: Vec<Vector> = (0..3)
        .flat_map(|f| (0..rank).map(move |j| at(f, j)))
        .collect();
    for (i, v) in all.iter().enumerate() {
        let before = chains.sum(&INNER, &[*v, *v, MASS])?;
        // Twice is enough to be at right angles in single precision.
        for other in all[..i].iter().chain(&all[..i]) {
            let along = chains.sum(&INNER, &[*v, *other, MASS])?;
            chains.map(&ADD_DIRECTION, &[*v, *other], |c, _| [-along[c] as f32])?;
        }
        let after = chains.sum(&INNER, &[*v, *v, MASS])?;
        chains.map(&SCALE, &[*v], |c, _| {
            let new = after[c] > OTHER * before[c] && after[c].is_finite();
            [if new { after[c].powf(-0.5) as f32 } else { 0.0 }]
        })?;
    }
    Ok(all)
}

/// What half of the draws of a chain vary most along.
struct Principal {
    /// Per direction: what each draw is multiplied by.
    weights: Vec<Vec<f64>>,
    /// Variance along it, over that of the diagonal.
    variances: Vec<f64>,
}

/// The principal directions of some vectors whose inner products `product` gives, T where a variance is that of the diagonal; zeros where there are none.
fn principal(
    chains: &mut Chains,
    rank: usize,
    used: &[usize],
    mut product: impl FnMut(&mut Chains, usize, usize) -> Result<PerChain<f64>>,
) -> Result<Vec<Principal>> {
    let m = used.len();
    let mut gram = vec![vec![0.0; m * m]; chains.len()];
    for i in 0..m {
        for k in 0..=i {
            for (gram, x) in gram.iter_mut().zip(product(chains, used[i], used[k])?) {
                (gram[i * m + k], gram[k * m + i]) = (x, x);
            }
        }
    }
    let of = |(gram, t): (&Vec<f64>, f64)| {
        let (values, vectors) = eigenvectors(gram, m).unwrap_or_default();
        // The largest first.
        let pairs = values.iter().zip(vectors.chunks_exact(m)).rev();
        let found = pairs.take(rank).filter(|(value, _)| **value > 0.0);
        let (variances, weights) = found
            .map(|(value, v)| {
                let weights = v.iter().map(|x| x / value.sqrt()).collect();
                (value / (t * m as f64), weights)
            })
            .unzip();
        let mut out = Principal { weights, variances };
        out.weights.resize(rank, vec![0.0; m]);
        out.variances.resize(rank, 1.0);
        out
    };
    let temperatures = chains.each(|m| m.temperature);
    Ok(gram.iter().zip(temperatures).map(of).collect())
}

/// The Hessian's product with a direction, by the gradients at two points so far apart as the chain goes along it: half of `sizes`, the stiffness.
fn hessian_product(
    chains: &mut Chains,
    direction: Vector,
    into: Vector,
    sizes: &[f64],
) -> Result<()> {
    let step = |c: usize, m: &crate::engine::Member| (m.temperature / sizes[c].max(1.0)).sqrt();
    chains.copy(Params, HOME)?;
    for (sign, then) in [(1.0, AHEAD), (-1.0, Gradient)] {
        chains.map(&ADD_DIRECTION, &[Params, direction], |c, m| {
            [(sign * step(c, m)) as f32]
        })?;
        chains.engine.gradient()?;
        chains.copy(Gradient, then)?;
        chains.copy(HOME, Params)?;
    }
    chains.map(&DIFFERENCE, &[into, AHEAD, Gradient, MASS], |c, m| {
        [(0.5 / step(c, m)) as f32]
    })
}

/// λ of every candidate, per chain, by the other half of the draws; NaN where there is no candidate.
fn variances(
    candidates: &[Vector],
    kept: Kept,
    chains: &mut Chains,
    count: usize,
    mean: Vector,
) -> Result<Vec<Vec<f64>>> {
    let mut out = Vec::with_capacity(candidates.len());
    for b in candidates {
        let mut squares = vec![[0.0; 2]; chains.len()];
        for i in (1..count).step_by(2) {
            let of_draw = chains.sum(&ALONG_DRAW, &[*b, kept.draw(i), mean, MASS])?;
            let of_gradient = chains.sum(&DOT, &[*b, kept.gradient(i)])?;
            for (c, s) in squares.iter_mut().enumerate() {
                s[0] += of_draw[c].powi(2);
                s[1] += of_gradient[c].powi(2);
            }
        }
        // Both have T, which cancels.
        out.push(squares.iter().map(|[x, g]| (x / g).sqrt()).collect());
    }
    Ok(out)
}
