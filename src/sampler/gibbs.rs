//! Gibbs sampling of deep linear networks, layer by layer.

use super::{Accuracy, ConfiguredSampler, Sampler};
use crate::engine::Chains;
use crate::engine::Vector::{Gradient, Params};
use crate::engine::report::{self, Report};
use crate::error::Result;
use crate::kernels::normal::fill_normal;
use crate::options::Entry;
use crate::rng::Purpose;
use crate::target::Target;
use crate::target::network::regression::Strengths;
use std::sync::Arc;

/// Samples exp(-U/T) exactly: draws each layer from its Gaussian law given the others.
struct Gibbs;

/// `sampler::gibbs`.
pub const ENTRY: Entry<Arc<ConfiguredSampler>> = Entry {
    name: "gibbs",
    doc: "Samples exp(-U/T) of a deep linear network exactly: draws every layer from its Gaussian law given the others, from the first layer to the last and back.\n\n\
          Geman & Geman (1984), on blocks. With y = A W B x, the law of the layer W given the layers behind it (A) and before it (B) is Gaussian with the precision (2s/T) AᵀA ⊗ B⟨x xᵀ⟩Bᵀ + prior, \
          which the eigenvectors of both factors make diagonal. There is no step size, nothing to tune, and no direction is stiff: where the curvatures of a product of \
          layers span nine decades, as in the problems of Hitchcock & Hoogland (2025), trajectories stand still and sweeps relax. For `model::deep_linear` with the squared error of real \
          targets under a Gaussian prior (`prior::gaussian`, `prior::l2`, `prior::localised`, and so in `llc`). A step is a sweep: some 10 d²r operations per layer of width d, r the narrowest layer behind or before it, on this machine, whatever the number of examples.",
    arguments: &[],
    options: &[],
    example: "{ let p = llc_problem(#{ class: \"1K\", index: 1, n: 10_000, noise: 0.5, data: \"moments\" });\n  llc(p.target, sampler::gibbs(), #{ start: p.start, steps: 100, gamma: 10.0 }) }",
    build: |o| Ok(ConfiguredSampler::new(Gibbs, o)),
};

impl Sampler for Gibbs {
    fn name(&self) -> &'static str {
        "gibbs"
    }

    fn info(&self) -> &'static [Report] {
        &[report::VIRIAL]
    }

    fn accuracy(&self) -> Accuracy {
        Accuracy::Exact
    }

    fn check(&self, target: &Target) -> Result<()> {
        let prior = target.prior();
        anyhow::ensure!(
            prior.is_gaussian(),
            "sampler::gibbs needs a Gaussian prior (prior::gaussian, prior::l2 or prior::localised), not {}",
            prior.describe()
        );
        let network = target.network("sampler::gibbs")?;
        network
            .regression()
            .map(|_| ())
            .map_err(|e| e.context("sampler::gibbs"))
    }

    fn step(&self, chains: &mut Chains) -> Result<()> {
        let (n, dim) = (chains.len(), chains.dim());
        let mut w = vec![0f32; n * dim];
        chains.engine.download(Params, &mut w)?;
        let priors = chains.engine.prior_precisions();
        for (c, w) in w.chunks_exact_mut(dim).enumerate() {
            let target = chains.engine.target();
            let temperature = chains.members[c].temperature;
            let strengths = Strengths {
                likelihood: target.scale() / temperature,
                prior: priors[c] / temperature,
                centre: target.prior().pull().1,
            };
            let regression = target.network("sampler::gibbs")?.regression()?;
            let mut double: Vec<f64> = w.iter().map(|x| f64::from(*x)).collect();
            regression.sweep(&mut double, &strengths, |k, out| {
                fill_normal(&chains.streams(Purpose::Noise, k as u16)[c], out);
            })?;
            w.iter_mut().zip(double).for_each(|(w, x)| *w = x as f32);
        }
        chains.engine.write(Params, &w)?;
        chains.engine.gradient()?;
        chains.report_virial(Gradient)
    }
}
