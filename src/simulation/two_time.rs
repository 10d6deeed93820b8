//! How alike a chain is to its own past: overlaps and distances between kept draws of two times.

use super::draws::KeptDraws;
use super::run::Run;
use crate::error::{Result, count};
use crate::kernels::update::{dot, squared_distance};
use crate::options::{Kind, Range, option};
use crate::verb::{Call, Verb};
use anyhow::ensure;
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The verb `two_time`.
pub static TWO_TIME: Verb<(), (Arc<Run>,), Json> = Verb {
    name: "two_time",
    arguments: &["run"],
    options: &[option(
        "waiting",
        Kind::Int(Range::Between(1.0, 1000.0)),
        "5",
        "How many waiting times: kept draws, from the first on, evenly spaced in the logarithm of the step.",
    )],
    doc: "Two-time correlations: how much of a draw is left later, w(t) beside w(t_w) of the same chain, from the kept draws (the option `keep` of the run).\n\n\
          `#{ temperatures, steps, waiting, overlap, overlap_error, distance2, distance2_error }`: for each temperature and each waiting time t_w, of which `waiting` has the \
          steps, q = w(t)·w(t_w)/(|w(t)||w(t_w)|) and |w(t) - w(t_w)|²/N at t_w and all kept draws after it (the last ones of `steps`), means over the chains \
          that did not fail with standard errors from the spread between them. In equilibrium a curve depends on t - t_w alone; where it depends on t_w, the \
          chains age. With `burn_in: 0` and `keep: trigger::logarithmic(…)` the whole relaxation is seen.",
    example: "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 3, keep: 10 });\n\
              two_time(r).overlap[0][0]",
    call: Call::Checked(|(run,), o, ()| two_time(&run, o.size("waiting")?)),
};

/// Overlaps and distances by waiting time, at the draws from there on.
type Curves = Vec<Vec<[f64; 2]>>;

/// The draws where waiting ends: indices, increasing.
fn waiting(steps: &[u64], wanted: usize) -> Vec<usize> {
    let (first, last) = (steps[0].max(1) as f64, steps[steps.len() - 1] as f64);
    let at = |k: usize| first * (last / first).powf(k as f64 / wanted as f64);
    let nearest = |x: f64| steps.partition_point(|s| (*s as f64) < x - 0.5);
    let mut all: Vec<_> = (0..wanted).map(|k| nearest(at(k))).collect();
    all.dedup();
    all
}

fn two_time(run: &Run, wanted: usize) -> Result<Json> {
    let info = &run.info;
    let draws = KeptDraws::of(run)?;
    let of_chain = |chain: usize, from: &[usize], least: usize| -> Result<Curves> {
        let mut kept = draws.chain(info, chain)?;
        let mut curves = vec![Vec::new(); from.len()];
        let mut past: Vec<Vec<f32>> = Vec::new();
        for i in 0..least {
            let w = kept.draw(i)?;
            if from.contains(&i) {
                past.push(w.clone());
            }
            for (before, curve) in past.iter().zip(&mut curves) {
                let norm = (dot(&w, &w) * dot(before, before)).sqrt();
                let distance = squared_distance(&w, before) / w.len() as f64;
                curve.push([dot(&w, before) / norm, distance]);
            }
        }
        Ok(curves)
    };
    let mut found: [Vec<Json>; 4] = Default::default();
    let mut waited = Vec::new();
    for temperature in 0..info.temperatures.len() {
        let first = temperature * info.chains;
        let chains = first..first + info.chains;
        let healthy: Vec<_> = chains.filter(|c| run.failures[*c].is_none()).collect();
        let least = healthy.iter().map(|c| draws.count(*c)).min().unwrap_or(0);
        ensure!(
            least > 1,
            "two_time: run '{}' has {} per chain at T = {:e}, but two are needed",
            info.name,
            count(least, "draw"),
            info.temperatures[temperature]
        );
        let from = waiting(&draws.steps()[..least], wanted);
        let each = healthy.par_iter().map(|c| of_chain(*c, &from, least));
        let each = each.collect::<Result<Vec<_>>>()?;
        for which in 0..2 {
            let (mut means, mut errors) = (Vec::new(), Vec::new());
            for k in 0..from.len() {
                let at = |j: usize| {
                    let values: Vec<f64> = each.iter().map(|c| c[k][j][which]).collect();
                    mean_and_error(&values)
                };
                let (mean, error): (Vec<_>, Vec<_>) = (0..least - from[k]).map(at).unzip();
                means.push(mean);
                errors.push(error);
            }
            found[2 * which].push(json!(means));
            found[2 * which + 1].push(json!(errors));
        }
        let steps = from.iter().map(|i| draws.steps()[*i]);
        waited.push(json!(steps.collect::<Vec<_>>()));
    }
    let [overlap, overlap_error, distance2, distance2_error] = found;
    Ok(json!({
        "temperatures": info.temperatures,
        "steps": draws.steps(),
        "waiting": waited,
        "overlap": overlap,
        "overlap_error": overlap_error,
        "distance2": distance2,
        "distance2_error": distance2_error,
    }))
}

/// The mean over chains, and its standard error from their spread; of one chain there is none.
fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (
        mean,
        (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt()),
    )
}
