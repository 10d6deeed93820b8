//! Neal's funnel.

use super::{Analytic, EXAMPLES, NOISE, SEED, checked_dim};
use crate::model::Layout;
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::funnel`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "funnel",
    doc: "Neal's funnel: v ~ N(0, scale²) and x_i ~ N(0, e^v), so U = v²/2s² + Σ_i (½ x_i² e^{-v} + ½ v), s = `scale`.\n\n\
          w_0 is the tensor `v`, the other N - 1 parameters are the tensor `x`. Exact at T = 1: v has mean 0 and variance s², x_i mean 0 and \
          variance e^{s²/2} (90.02 for s = 3, but heavy-tailed: judge by v). At temperature T: v ~ N(½ (N - 1) s² (T - 1), s²T), and \
          x_i given v ~ N(0, T e^v).\n\n\
          Source: Neal 2003, Slice sampling, section 8, with N = 10 and s = 3.",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(2.0)),
            "10",
            "Number of parameters, v included.",
        ),
        option(
            "scale",
            Kind::Float(Range::Positive),
            "3",
            "s, the standard deviation of v at T = 1.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::funnel(#{ dim: 4, scale: 1.5 })",
    build: |o| {
        let (dim, s) = (checked_dim(o)?, o.float("scale")?);
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let (v, x) = (w[0] as f64, &w[1..]);
            let precision = (-v).exp();
            let mut square = 0.0;
            for x in x {
                square += *x as f64 * *x as f64;
            }
            let count = x.len() as f64;
            if let Some(g) = grad {
                g[0] = (v / (s * s) + 0.5 * (count - precision * square)) as f32;
                for (g, x) in g[1..].iter_mut().zip(x) {
                    *g = (precision * *x as f64) as f32;
                }
            }
            0.5 * ((v / s).powi(2) + precision * square + count * v)
        };
        let layout = Layout::new([("v".to_string(), vec![1]), ("x".to_string(), vec![dim - 1])]);
        Analytic::build(o, format!("funnel, scale {s}"), layout, Box::new(energy))
    },
};
