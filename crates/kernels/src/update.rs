//! Passes and sums that several samplers share, and those of the optimisers.

use super::map::{kernel, reduction};
use super::simd;

kernel! {
    /// Langevin: `w ← w - drift·g + sigma·η`.
    pub LANGEVIN = langevin(w; g; eta; drift, sigma) {
        w = w - drift * g + sigma * eta;
    }
}

kernel! {
    /// Fresh momenta `p ~ N(0, M·T)`.
    pub DRAW_MOMENTUM = draw_momentum(p; mass; eta; temperature) {
        p = root(temperature * mass) * eta;
    }
}

kernel! {
    /// Fresh momenta `p ~ N(0, sigma²)`.
    pub SCALED_NOISE = scaled_noise(p; ; eta; sigma) {
        p = sigma * eta;
    }
}

kernel! {
    /// First part of a velocity-Verlet step: `p ← p - kick·g`, then `w ← w + dt·p/M`.
    pub KICK_AND_DRIFT = kick_and_drift(w, p; g, mass; ; kick, dt) {
        p -= kick * g;
        w += dt * (p / mass);
    }
}

kernel! {
    /// `p ← p - kick·g`.
    pub KICK = kick(p; g; ; kick) {
        p -= kick * g;
    }
}

kernel! {
    /// Running mean and sum of squared deviations (Welford); `inverse` is 1/k at the k-th sample x.
    pub WELFORD = welford(mean, m2; x; ; inverse) {
        let before = x - mean;
        mean += before * inverse;
        m2 += before * (x - mean);
    }
}

kernel! {
    /// `x ← value`.
    pub FILL = fill_with(x; ; ; value) {
        x = value;
    }
}

reduction! {
    /// Σ a·b.
    pub DOT = sum dot(a, b) { a * b }
}

reduction! {
    /// Σ (a-c)·b.
    pub DISTANCE_DOT = sum distance_dot(a, c, b) { (a - c) * b }
}

reduction! {
    /// Σ a²(a-c)·b.
    pub CUBIC_DOT = sum cubic_dot(a, c, b) { a * a * (a - c) * b }
}

reduction! {
    /// Σ a.
    pub TOTAL = sum total(a) { a }
}

reduction! {
    /// Σ (a-b)².
    pub SQUARED_DISTANCE = sum squared_distance(a, b) { (a - b) * (a - b) }
}

reduction! {
    /// Σ p²/M: twice the kinetic energy.
    pub TWICE_KINETIC = sum twice_kinetic(p, mass) { p * p / mass }
}

/// Σ a·b in double precision.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    (DOT.cpu)(&[a, b])
}

/// Σ (a-b)² in double precision.
pub fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    (SQUARED_DISTANCE.cpu)(&[a, b])
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

kernel! {
    /// One step of Adam (Kingma & Ba 2015) on `inverse·g`, after `w ← kept·w`; `correct1 = 1/(1-b1^t)`, `correct2 = 1/(1-b2^t)`.
    pub ADAM = adam(w, a, b; g; ; inverse, kept, lr, b1, b2, epsilon, correct1, correct2) {
        let s = inverse * g;
        a = b1 * a + (1.0 - b1) * s;
        b = b2 * b + (1.0 - b2) * s * s;
        w = kept * w - lr * (a * correct1) / (root(b * correct2) + epsilon);
    }
}

kernel! {
    /// One step of gradient descent with momentum on `inverse·g`: `v ← μv + g`, `w ← w - lr·v`.
    pub HEAVY_BALL = heavy_ball(w, v; g; ; inverse, lr, momentum) {
        v = momentum * v + inverse * g;
        w -= lr * v;
    }
}
