//! The joint test of Geweke (Journal of the American Statistical Association 99 (2004) 799), of the whole exchange: parameters, data and
//! ladder together, with the loop that runs really have.
//!
//! θ ~ N(0, τ²), and y ~ N(θ, σ²) in d directions. If y is redrawn given the parameters on all rungs, and the ladder moved given y, again and
//! again, then θ on rung 0 and y keep the joint law they are drawn from. A wrong move or swap shifts it, however slightly, without end.

use crate::diagnostic;
use crate::error::Result;
use crate::model::Layout;
use crate::model::loss::Sums;
use crate::options::Options;
use crate::rng::{Purpose, Stream};
use crate::sampler::{self, ConfiguredSampler};
use crate::schedule::Schedule;
use crate::simulation::exchange::{Exchange, Pairs, betas_of};
use crate::simulation::plan::Plan;
use crate::simulation::run_in_memory;
use crate::simulation::session::Session;
use crate::simulation::temper::Temper;
use crate::target::prior::{Parameters, Prior};
use crate::target::{EnergyScale, Potential, Rows, Target, Workspace};
use std::sync::Arc;

/// Directions.
const D: usize = 2;
/// σ², the variance of the data around the parameters; that of the prior is 1.
const NOISE: f64 = 0.25;

/// E = |θ - y|²/2σ².
struct Data {
    layout: Layout,
    y: Vec<f64>,
}

impl Potential for Data {
    fn describe(&self) -> String {
        "data".into()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn examples(&self) -> usize {
        1
    }

    fn sums(
        &self,
        w: &[f32],
        _: Rows,
        grad: Option<&mut [f32]>,
        _: &mut Workspace,
    ) -> Result<Sums> {
        let off = |i: usize| f64::from(w[i]) - self.y[i];
        if let Some(g) = grad {
            (0..D).for_each(|i| g[i] = (off(i) / NOISE) as f32);
        }
        Ok(Sums {
            loss: (0..D).map(|i| off(i).powi(2)).sum::<f64>() / (2.0 * NOISE),
            errors: 0.0,
        })
    }

    fn split_sums(&self, _: &[f32], _: &str, _: &mut Workspace) -> Result<(Sums, usize)> {
        anyhow::bail!("no splits")
    }

    fn fingerprint(&self, _: &mut crc32fast::Hasher) {}
}

fn sampler() -> Arc<ConfiguredSampler> {
    use crate::options::Value;
    let entry = sampler::REGISTRY.iter().find(|e| e.name == "hmc").unwrap();
    let given = [
        ("leapfrog", Value::Int(2)),
        ("dt", Value::Float(0.3)),
        ("adapt", Value::Bool(false)),
    ];
    let given = given.map(|(k, v)| (k.to_string(), v)).into_iter().collect();
    let options = Options::check("sampler::hmc", entry.options, given).unwrap();
    (entry.build)(&options).unwrap()
}

/// One redrawing of y, given the parameters on all rungs: its law is a Gaussian in every direction.
fn redraw(theta: &[Arc<Vec<f32>>], betas: &[f64], stream: Stream) -> Vec<f64> {
    // ln p(y|θ_1) + Σ_{k>1} [-β_k |θ_k - y|²/2σ² - ln Z_k(y)], ln Z_k(y) = -|y|²/2(σ²/β_k + 1) + const.
    let tempered = betas[1..].iter().filter(|b| **b > 0.0);
    let precision: f64 = 1.0 / NOISE
        + tempered
            .map(|b| b / NOISE - 1.0 / (NOISE / b + 1.0))
            .sum::<f64>();
    let one = |i: usize| {
        let pulls = theta.iter().zip(betas);
        let mean = pulls.map(|(t, b)| b * f64::from(t[i]) / NOISE).sum::<f64>() / precision;
        mean + precision.sqrt().recip() * stream.normal(i as u32)
    };
    (0..D).map(one).collect()
}

/// Traces of θ², y² and θy on rung 0, and θ² on rung 2, over so many redrawings.
fn traces(temperatures: &[f64], pairs: Pairs, rounds: u64) -> Vec<Vec<f64>> {
    let betas = betas_of(temperatures).unwrap();
    let sampler = sampler();
    let session = Session::new("unused".into());
    let draw = |rung: usize| {
        let mut w = vec![0.0; D];
        crate::kernels::normal::fill_normal(&Stream::new(1, Purpose::Prior, rung, 0), &mut w);
        Arc::new(w)
    };
    let mut theta: Vec<_> = (0..betas.len()).map(draw).collect();
    let mut out = vec![Vec::new(); 4];
    for round in 0..rounds {
        let y = redraw(&theta, &betas, Stream::new(2, Purpose::Dataset, 0, round));
        let layout = Layout::new([("theta".to_string(), vec![D])]);
        let potential = Arc::new(Data {
            layout,
            y: y.clone(),
        });
        let prior = Prior::Gaussian { precision: 1.0 };
        let target = Target::new(potential, EnergyScale::Mean, &prior).unwrap();
        let start = Arc::new(Parameters {
            vectors: theta.clone(),
        });
        let mut plan = Plan::bare("exchange", (1, Some(start)), 6, 100 + round);
        plan.every = crate::trigger::Trigger::Every(6);
        plan.temperatures = temperatures
            .iter()
            .map(|t| Schedule::Constant(*t))
            .collect();
        plan.temper = Temper::Likelihood;
        plan.exchange = Some(Exchange {
            every: 2,
            pairs,
            rounds: 0,
            minimise: 0,
            from_prior: false,
        });
        let run = run_in_memory((&plan, &target, &sampler, &session, 1)).unwrap();
        theta = run.params.clone();
        let square = |w: &[f32]| w.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>();
        let product: f64 = (0..D).map(|i| f64::from(theta[0][i]) * y[i]).sum();
        out[0].push(square(&theta[0]));
        out[1].push(y.iter().map(|y| y * y).sum());
        out[2].push(product);
        out[3].push(square(&theta[2]));
    }
    out
}

/// Null: ⟨|θ|²⟩ = d on rung 0, and y of variance 1 + σ², covariance 1 with θ as long as θ is the one it was drawn from; here it is the one after
/// the move, which has the same law given y. On the rung of β, θ has variance V + (V β/σ²)²(1 + σ²), 1/V = 1 + β/σ². Four standard errors each.
#[test]
fn parameters_data_and_ladder_keep_their_joint_law() {
    for (pairs, prior) in [(Pairs::Alternating, true), (Pairs::Random, false)] {
        let mut temperatures = vec![1.0, 2.0, 5.0];
        temperatures.extend(prior.then_some(f64::INFINITY));
        let beta = 0.2;
        let v = 1.0 / (1.0 + beta / NOISE);
        let warm = v + (v * beta / NOISE).powi(2) * (1.0 + NOISE);
        let d = D as f64;
        let truths = [d, d * (1.0 + NOISE), d, d * warm];
        let traces = traces(&temperatures, pairs, 12_000);
        for (k, (trace, truth)) in traces.into_iter().zip(truths).enumerate() {
            let numbers = diagnostic::summarise(&[trace]);
            let off = (numbers.mean - truth) / numbers.mcse_mean;
            println!(
                "{pairs:?} {k}: {} ± {}, {truth}: {off:.2}",
                numbers.mean, numbers.mcse_mean
            );
            assert!(
                off.abs() < 4.0,
                "{pairs:?} {k}: {} ± {}, not {truth}",
                numbers.mean,
                numbers.mcse_mean
            );
        }
    }
}
