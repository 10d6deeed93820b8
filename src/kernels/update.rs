//! The parameter updates of the samplers: one pass over the parameters each, noise made on the way.

use super::normal::{BLOCK, normal_block};
use super::simd;
use crate::rng::Stream;

/// Call `f(range, normals)` for consecutive blocks that cover `0..n`.
#[inline(always)]
fn with_normals(stream: &Stream, n: usize, mut f: impl FnMut(std::ops::Range<usize>, &[f32])) {
    for b in 0..n.div_ceil(BLOCK) {
        let start = b * BLOCK;
        let end = (start + BLOCK).min(n);
        f(start..end, &normal_block(stream, b)[..end - start]);
    }
}

simd! {
    /// Langevin: `w ← w - drift·g + sigma·η`.
    pub fn langevin(w: &mut [f32], g: &[f32], drift: f32, sigma: f32, stream: &Stream) {
        with_normals(stream, w.len(), |r, eta| {
            for ((w, g), e) in w[r.clone()].iter_mut().zip(&g[r]).zip(eta) {
                *w = *w - drift * *g + sigma * *e;
            }
        });
    }
}

/// The scalars of one pseudo-Langevin step (theory §1), all derived from c1, T and δt.
#[derive(Debug, Clone, Copy)]
pub struct PseudoLangevin {
    /// c1², what is left of the momentum.
    pub keep: f32,
    /// ½(1+c1²)δt, weight of the gradient.
    pub force: f32,
    /// (1+c1²)(1-c1²)T, variance of the full noise per unit mass.
    pub heat: f32,
    /// (1+c1²)²(δt/2)², share of the minibatch variance that is taken off.
    pub relief: f32,
    /// δt.
    pub dt: f32,
}

simd! {
    /// Pseudo-Langevin (Zambon 2026, eq. 23): `Π ← c1²Π - ½(1+c1²)δt g + σR`, then `w ← w + δt Π/M`,
    /// with `σ² = (1+c1²)[(1-c1²)MT - (1+c1²)(δt/2)²V]`.
    pub fn pseudo_langevin(
        w: &mut [f32], p: &mut [f32], g: &[f32], mass: &[f32], variance: &[f32], k: &PseudoLangevin, stream: &Stream,
    ) {
        let k = *k;
        with_normals(stream, w.len(), |r, eta| {
            let w = w[r.clone()].iter_mut().zip(p[r.clone()].iter_mut());
            let rest = g[r.clone()].iter().zip(&mass[r.clone()]).zip(&variance[r]).zip(eta);
            for ((w, p), (((g, m), v), e)) in w.zip(rest) {
                let s2 = k.heat * *m - k.relief * *v;
                let s2 = if s2 > 0.0 { s2 } else { 0.0 };
                *p = k.keep * *p - k.force * *g + s2.sqrt() * *e;
                *w += k.dt * (*p / *m);
            }
        });
    }
}

simd! {
    /// Fresh momenta `p ~ N(0, M·T)`.
    pub fn draw_momentum(p: &mut [f32], mass: &[f32], temperature: f32, stream: &Stream) {
        with_normals(stream, p.len(), |r, eta| {
            for ((p, m), e) in p[r.clone()].iter_mut().zip(&mass[r]).zip(eta) {
                *p = (temperature * *m).sqrt() * *e;
            }
        });
    }
}

simd! {
    /// First half of a velocity-Verlet step: `p ← p - kick·g`, then `w ← w + dt·p/M`.
    pub fn kick_and_drift(w: &mut [f32], p: &mut [f32], g: &[f32], mass: &[f32], kick: f32, dt: f32) {
        for (((w, p), g), m) in w.iter_mut().zip(p).zip(g).zip(mass) {
            *p -= kick * *g;
            *w += dt * (*p / *m);
        }
    }
}

simd! {
    /// `p ← p - kick·g`.
    pub fn kick(p: &mut [f32], g: &[f32], kick: f32) {
        for (p, g) in p.iter_mut().zip(g) {
            *p -= kick * *g;
        }
    }
}

simd! {
    /// Running mean and sum of squared deviations (Welford), after the `count`-th sample `x`.
    pub fn welford(mean: &mut [f32], m2: &mut [f32], x: &[f32], count: f32) {
        let inverse = 1.0 / count;
        for ((mean, m2), x) in mean.iter_mut().zip(m2).zip(x) {
            let d = *x - *mean;
            *mean += d * inverse;
            *m2 += d * (*x - *mean);
        }
    }
}

/// Sum over `i` of `f(i)` in double precision, by sixteen running sums: vectorises and has a fixed order.
#[inline(always)]
fn sum_by_lanes(n: usize, f: impl Fn(usize) -> f64) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0f64; LANES];
    let whole = n / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane += f(start + l);
        }
    }
    for i in whole..n {
        lanes[i - whole] += f(i);
    }
    lanes.iter().sum()
}

simd! {
    /// Σ a·b in double precision.
    pub fn dot(a: &[f32], b: &[f32]) -> f64 {
        let b = &b[..a.len()];
        sum_by_lanes(a.len(), |i| a[i] as f64 * b[i] as f64)
    }
}

simd! {
    /// Σ (a-b)² in double precision.
    pub fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
        let b = &b[..a.len()];
        sum_by_lanes(a.len(), |i| {
            let d = a[i] as f64 - b[i] as f64;
            d * d
        })
    }
}

simd! {
    /// Σ p²/M in double precision: twice the kinetic energy.
    pub fn twice_kinetic(p: &[f32], mass: &[f32]) -> f64 {
        let mass = &mass[..p.len()];
        sum_by_lanes(p.len(), |i| p[i] as f64 * p[i] as f64 / mass[i] as f64)
    }
}

simd! {
    /// `out += x`.
    pub fn add(out: &mut [f32], x: &[f32]) {
        for (o, x) in out.iter_mut().zip(x) {
            *o += *x;
        }
    }
}

simd! {
    /// `out ← scale·out + precision·(w - centre)`: the gradient of the energy from the summed loss gradient.
    pub fn scale_and_pull(out: &mut [f32], scale: f32, w: &[f32], precision: f32, centre: &[f32]) {
        if centre.is_empty() {
            for (o, w) in out.iter_mut().zip(w) {
                *o = scale * *o + precision * *w;
            }
        } else {
            for ((o, w), c) in out.iter_mut().zip(w).zip(centre) {
                *o = scale * *o + precision * (*w - *c);
            }
        }
    }
}

simd! {
    /// One step of Adam (Kingma & Ba 2015); `correct1 = 1/(1-b1^t)`, `correct2 = 1/(1-b2^t)`.
    pub fn adam(
        w: &mut [f32], m: &mut [f32], v: &mut [f32], g: &[f32],
        lr: f32, b1: f32, b2: f32, epsilon: f32, correct1: f32, correct2: f32,
    ) {
        for (((w, m), v), g) in w.iter_mut().zip(m).zip(v).zip(g) {
            *m = b1 * *m + (1.0 - b1) * *g;
            *v = b2 * *v + (1.0 - b2) * *g * *g;
            *w -= lr * (*m * correct1) / ((*v * correct2).sqrt() + epsilon);
        }
    }
}

simd! {
    /// One step of gradient descent with momentum: `v ← μv + g`, `w ← w - lr·v`.
    pub fn heavy_ball(w: &mut [f32], v: &mut [f32], g: &[f32], lr: f32, momentum: f32) {
        for ((w, v), g) in w.iter_mut().zip(v).zip(g) {
            *v = momentum * *v + *g;
            *w -= lr * *v;
        }
    }
}
