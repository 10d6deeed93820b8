//! A Gaussian that is bent in its first two components.

use super::{Analytic, EXAMPLES, NOISE, SEED, even_dim, vector};
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::banana`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "banana",
    doc: "A twisted Gaussian, the banana: U = w_0²/2s² + ½ (w_1 + b (w_0² - s²))² + ½ Σ_{i≥2} w_i², s = `scale`, b = `curvature`.\n\n\
          Exact: w_0 ~ N(0, s²T) and w_1 + b (w_0² - s²) ~ N(0, T) are independent, and so are the others, w_i ~ N(0, T). Hence w_1 has \
          mean b s² (1 - T), which is 0 at T = 1, and variance T + 2 b² s⁴ T²; w_0 and w_1 are not correlated.\n\n\
          Source: Haario, Saksman & Tamminen 1999, with s = 10 and b = 0.03 (\"moderately twisted\") or b = 0.1 (\"strongly twisted\").",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(2.0)),
            "2",
            "Number of parameters, even; the first two are twisted.",
        ),
        option(
            "curvature",
            Kind::Float(Range::Any),
            "0.03",
            "b, how far the banana is bent, per unit of w_0².",
        ),
        option(
            "scale",
            Kind::Float(Range::Positive),
            "10",
            "s, the standard deviation of w_0 at T = 1.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::banana(#{ dim: 4, curvature: 0.1 })",
    build: |o| {
        let (b, s) = (o.float("curvature")?, o.float("scale")?);
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let x = w[0] as f64;
            let straight = w[1] as f64 + b * (x * x - s * s);
            if let Some(g) = grad {
                g.copy_from_slice(w);
                g[0] = (x / (s * s) + 2.0 * b * x * straight) as f32;
                g[1] = straight as f32;
            }
            let others: f64 = w[2..].iter().map(|w| *w as f64 * *w as f64).sum();
            0.5 * ((x / s).powi(2) + straight * straight + others)
        };
        Analytic::build(
            o,
            format!("banana, curvature {b}, scale {s}"),
            vector(even_dim(o)?),
            Box::new(energy),
        )
    },
};
