//! How alike the chains of one temperature are: overlaps and distances of their kept draws.

use super::draws::KeptDraws;
use super::run::Run;
use super::session::Session;
use crate::error::Result;
use crate::kernels::update::{dot, squared_distance};
use crate::options::{Kind, Options, optional};
use crate::target::Target;
use crate::verb::{Call, Verb};
use anyhow::{anyhow, ensure};
use rayon::prelude::*;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// The verb `overlaps`.
pub static OVERLAPS: Verb<Session, (Arc<Run>,), Json> = Verb {
    name: "overlaps",
    arguments: &["run"],
    options: &[
        optional(
            "split",
            Kind::Choice(&["train", "test", "validation"]),
            "none",
            "Compare also what the networks say of the inputs of this split.",
        ),
        optional(
            "target",
            Kind::Object("Target"),
            "that of the run",
            "What was sampled; needed with `split` for runs that were opened from their folder.",
        ),
    ],
    doc: "How alike two replicas are, per temperature: every pair of healthy chains, after every step at which both have kept a draw (the option `keep` of the run).\n\n\
          `#{ temperatures, overlap, distance2 }`: `overlap` has for each temperature all q = w·w'/(|w||w'|), whose distribution is P(q); `distance2` all |w - w'|²/N. \
          With `split` also `output_distance2`, the mean squared difference of the outputs per row, and, for classes, `disagreement`, the share of examples \
          whose most likely class differs. Values of one pair come one after the other, in the order of the draws: they are correlated as the chains are.",
    example: "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 3, keep: 10 });\n\
              overlaps(r).overlap[0].len()",
    call: Call::Checked(|(run,), o, session| {
        if o.opt_text("split").is_some() {
            session.computes_here("overlaps: outputs");
        }
        overlaps(&run, o)
    }),
};

/// What is compared of two draws.
struct Draw {
    w: Vec<f32>,
    /// Outputs, `[rows, width]`, if they are compared.
    outputs: Vec<f32>,
}

fn overlaps(run: &Run, o: &Options) -> Result<Json> {
    let info = &run.info;
    let draws = KeptDraws::of(run)?;
    let split = o.opt_text("split");
    let target = match split {
        Some(_) => Some(run.target(o)?),
        None => None,
    };
    let network = target
        .as_ref()
        .map(|t| t.network("overlaps: option 'split'"));
    let network = network.transpose()?;
    let rows = match (network, split) {
        (Some(n), Some(split)) => n.dataset().split(split)?.rows,
        _ => 1,
    };
    let classes = network.map_or(0, |n| n.dataset().classes);
    let draw = |chain: usize, i: usize| -> Result<Draw> {
        let w = draws.draw(info, chain, i)?;
        let outputs = match (network, split) {
            (Some(n), Some(split)) => n.predict(&w, n.dataset().split(split)?)?,
            _ => Vec::new(),
        };
        Ok(Draw { w, outputs })
    };
    let (mut all, names) = (
        Map::new(),
        ["overlap", "distance2", "output_distance2", "disagreement"],
    );
    let shown = match (network, classes) {
        (None, _) => 2,
        (Some(_), 0) => 3,
        (Some(_), _) => 4,
    };
    let mut found = vec![Vec::new(); shown];
    for temperature in 0..info.temperatures.len() {
        let first = temperature * info.chains;
        let chains: Vec<_> = (first..first + info.chains)
            .filter(|c| run.failures[*c].is_none())
            .collect();
        ensure!(
            chains.len() > 1,
            "overlaps: run '{}' has {} at T = {:e} that did not fail, but two are needed",
            info.name,
            crate::error::count(chains.len(), "chain"),
            info.temperatures[temperature]
        );
        let least = chains.iter().map(|c| draws.count(*c)).min().unwrap_or(0);
        // Draw by draw, so that only those of one step are in memory; one row per pair.
        let each = (0..least).into_par_iter().map(|i| {
            let here = chains
                .iter()
                .map(|c| draw(*c, i))
                .collect::<Result<Vec<_>>>()?;
            let pairs = (0..here.len()).flat_map(|a| (a + 1..here.len()).map(move |b| (a, b)));
            Ok(pairs
                .map(|(a, b)| compare(&here[a], &here[b], (rows, classes)))
                .collect::<Vec<_>>())
        });
        let each = each.collect::<Result<Vec<_>>>()?;
        let pairs = chains.len() * (chains.len() - 1) / 2;
        for (k, found) in found.iter_mut().enumerate() {
            let pairs = (0..pairs).flat_map(|p| each.iter().map(move |at| at[p][k]));
            found.push(pairs.collect::<Vec<f64>>());
        }
    }
    all.insert("temperatures".into(), json!(info.temperatures));
    for (name, found) in names.iter().zip(found) {
        all.insert((*name).into(), json!(found));
    }
    Ok(all.into())
}

/// Overlap, distance² per parameter, distance² of the outputs per row, share of examples whose largest output is another.
fn compare(a: &Draw, b: &Draw, (rows, classes): (usize, usize)) -> [f64; 4] {
    let norm = (dot(&a.w, &a.w) * dot(&b.w, &b.w)).sqrt();
    let largest = |z: &[f32]| {
        let best = z.iter().enumerate().max_by(|x, y| x.1.total_cmp(y.1));
        best.map(|(i, _)| i)
    };
    // Of a sequence every position is an example.
    let each = |d: &'_ Draw| {
        d.outputs
            .chunks_exact(classes.max(1))
            .map(largest)
            .collect::<Vec<_>>()
    };
    let (x, y) = (each(a), each(b));
    let differ = x.iter().zip(&y).filter(|(x, y)| x != y).count();
    [
        dot(&a.w, &b.w) / norm,
        squared_distance(&a.w, &b.w) / a.w.len() as f64,
        squared_distance(&a.outputs, &b.outputs) / rows as f64,
        differ as f64 / x.len() as f64,
    ]
}

impl Run {
    /// What was sampled: the option `target`, or what is known of a run that was made in this process.
    pub(super) fn target(&self, o: &Options) -> Result<Arc<Target>> {
        let known = || self.origin.as_ref().map(|origin| origin.target.clone());
        let target = o.object::<Target>("target").or_else(known).ok_or_else(|| {
            anyhow!(
                "{}: run '{}' was opened from its folder, which has no model and no data; give the option target",
                o.owner(),
                self.info.name
            )
        })?;
        ensure!(
            target.dim() == self.info.parameters && target.describe() == self.info.target,
            "{}: the target is another one than that of run '{}': it is {}, and was {}",
            o.owner(),
            self.info.name,
            target.describe(),
            self.info.target
        );
        Ok(target)
    }
}
