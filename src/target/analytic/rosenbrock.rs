//! Rosenbrock's valley, in pairs.

use super::{Analytic, EXAMPLES, NOISE, SEED, even_dim, vector};
use crate::options::{Entry, Kind, Range, option};
use crate::target::Potential;
use std::sync::Arc;

/// `potential::rosenbrock`.
pub(super) const ENTRY: Entry<Arc<dyn Potential>> = Entry {
    name: "rosenbrock",
    doc: "Rosenbrock's curved valley: U = Σ over pairs (x, y) of (a - x)² + b (y - x²)², with x = w_0, w_2, … and y = w_1, w_3, …\n\n\
          Exact: pairs are independent, x ~ N(a, T/2), and y given x ~ N(x², T/2b). Hence y has mean a² + T/2 and variance \
          T/2b + 2a²T + T²/2, and its covariance with x is aT.\n\n\
          Source: Rosenbrock 1960, with a = 1 and b = 100, as a function to minimise; as a density Goodman & Weare 2010 (at T = 20).",
    arguments: &[],
    options: &[
        option(
            "dim",
            Kind::Int(Range::AtLeast(2.0)),
            "2",
            "Number of parameters, even: two per pair.",
        ),
        option(
            "a",
            Kind::Float(Range::Any),
            "1",
            "a, where the minimum is: x = a, y = a².",
        ),
        option(
            "b",
            Kind::Float(Range::Positive),
            "100",
            "b, how steep the walls of the valley are.",
        ),
        EXAMPLES,
        NOISE,
        SEED,
    ],
    example: "potential::rosenbrock(#{ dim: 4, b: 10.0 })",
    build: |o| {
        let (a, b) = (o.float("a")?, o.float("b")?);
        let energy = move |w: &[f32], grad: Option<&mut [f32]>| {
            let offsets = |pair: &[f32]| {
                let (x, y) = (pair[0] as f64, pair[1] as f64);
                (x, a - x, y - x * x)
            };
            if let Some(g) = grad {
                for (g, pair) in g.chunks_exact_mut(2).zip(w.chunks_exact(2)) {
                    let (x, along, across) = offsets(pair);
                    g[0] = (-2.0 * along - 4.0 * b * x * across) as f32;
                    g[1] = (2.0 * b * across) as f32;
                }
            }
            w.chunks_exact(2)
                .map(|pair| {
                    let (_, along, across) = offsets(pair);
                    along * along + b * across * across
                })
                .sum()
        };
        Analytic::build(
            o,
            format!("Rosenbrock, a = {a}, b = {b}"),
            vector(even_dim(o)?),
            Box::new(energy),
        )
    },
};
