//! How alike the chains of one temperature are: overlaps and distances of their kept draws, and the distributions of these.

use super::draws::KeptDraws;
use super::plan::turn;
use super::run::Run;
use super::session::Session;
use crate::diagnostic::evidence::Estimate;
use crate::diagnostic::{Distribution, mean_over_pairs, mean_over_replicas};
use crate::error::Result;
use crate::kernels::update::{dot, squared_distance};
use crate::options::{Kind, Options, Range, option, optional};
use crate::target::Target;
use crate::target::prior::Parameters;
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
            "reference",
            Kind::Object("Parameters"),
            "none",
            "Compare each draw also with this point, as with the start of the run. Several points belong to the chains as they do in `start`.",
        ),
        option(
            "bins",
            Kind::Int(Range::Between(1.0, 1000.0)),
            "50",
            "Bins of the histograms, between the smallest and the largest value of all temperatures.",
        ),
        optional(
            "target",
            Kind::Object("Target"),
            "that of the run",
            "What was sampled; needed with `split` for runs that were opened from their folder.",
        ),
    ],
    doc: "P(q), and how alike two replicas are, per temperature: every pair of healthy chains, after every step at which both have kept a draw (the option `keep` of the run).\n\n\
          `#{ temperatures, overlap, distance2, statistics }`: `overlap` has for each temperature all q = w·w'/(|w||w'|), whose distribution is P(q); `distance2` all |w - w'|²/N. \
          With `split` also `output_overlap`, the same cosine of all outputs on the split (for classes less their mean over the classes, which softmax does not see), \
          `output_distance2`, the mean squared difference of the outputs per row, and, for classes, `disagreement`, the share of examples \
          whose most likely class differs. Values of one pair come one after the other, in the order of the draws: they are correlated as the chains are. \
          A draw without length, as outputs that are all equal, has overlap 0. With `reference` the same fields of draws and that point are in the map `reference`, chain after chain.\n\n\
          `statistics` has for each of these a map with, per temperature, `mean`, `square` (of q²), `density` (a histogram between `edges`), each also with `_error`, and, for overlaps, `binder` = 1 - ⟨q⁴⟩/3⟨q²⟩² and `binder_error`: \
          0 where q is Gaussian around 0, 2/3 where it is ±q₀. Errors come from the spread over chains alone, however long each remembers its past, and know that pairs share chains; \
          they need 4 chains (NaN below), and 8 or more to be of much use. Chains are taken as independent: give them different starts, or let an `exchange` mix them; a chain of an exchange is a whole ladder.\n\n\
          The overlap of weights changes when hidden units are permuted, or when their weights change sign (tanh) or scale (ReLU) in a way that leaves the network the same function: replicas in equivalent minima have a small q all the same, and an ergodic chain of a network whose \
          symmetries are all intact has ⟨q⟩ near 0. The overlap and the distance of outputs do not see these symmetries.",
    example: "let r = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 4, keep: 10 });\n\
              overlaps(r).statistics.overlap.binder",
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
    /// |w|, and the norm of the outputs as overlaps have them.
    norms: [f64; 2],
}

/// How draws are compared.
struct Compared {
    rows: usize,
    /// 0 without classes.
    classes: usize,
    /// The first of [`NAMES`] that there are.
    shown: usize,
}

/// What is found of two draws.
const NAMES: [&str; 5] = [
    "overlap",
    "distance2",
    "output_overlap",
    "output_distance2",
    "disagreement",
];

/// One series per pair, or per chain, of each of [`NAMES`]: `[pair][draw]`.
type Series = Vec<Vec<Vec<f64>>>;

/// The mean over pairs or chains, with its error.
type Mean = Box<dyn Fn(&[f64]) -> Estimate>;

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
    let (rows, classes) = match (network, split) {
        (Some(n), Some(split)) => (n.dataset().split(split)?.rows, n.dataset().classes),
        _ => (1, 0),
    };
    let by = Compared {
        rows,
        classes,
        shown: match (network, classes) {
            (None, _) => 2,
            (Some(_), 0) => 4,
            (Some(_), _) => 5,
        },
    };
    let of = |w: Vec<f32>| -> Result<Draw> {
        let outputs = match (network, split) {
            (Some(n), Some(split)) => n.predict(&w, n.dataset().split(split)?)?,
            _ => Vec::new(),
        };
        let norms = [dot(&w, &w).sqrt(), by.product(&outputs, &outputs).sqrt()];
        Ok(Draw { w, outputs, norms })
    };
    let points = o.object::<Parameters>("reference");
    let mut references = Vec::new();
    for point in points.iter().flat_map(|p| &p.vectors) {
        ensure!(
            point.len() == info.parameters,
            "overlaps: option 'reference' has {} parameters, the model {}",
            point.len(),
            info.parameters
        );
        references.push(of(point.to_vec())?);
    }
    let reference = |chain: usize| {
        let place = (info.temperatures.len() * info.chains, info.chains);
        points.as_ref().map(|p| &references[turn(p, chain, place)])
    };
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for temperature in 0..info.temperatures.len() {
        let first = temperature * info.chains;
        let chains: Vec<_> = (first..first + info.chains)
            .filter(|c| run.failures[*c].is_none())
            .collect();
        ensure!(
            chains.len() > 1 || points.is_some() && !chains.is_empty(),
            "overlaps: run '{}' has {} at T = {:e} that did not fail, but two are needed without a `reference`",
            info.name,
            crate::error::count(chains.len(), "chain"),
            info.temperatures[temperature]
        );
        let least = chains.iter().map(|c| draws.count(*c)).min().unwrap_or(0);
        // Draw by draw, so that only those of one step are in memory; one row per pair.
        let each = (0..least).into_par_iter().map(|i| {
            let here = chains
                .iter()
                .map(|c| of(draws.draw(info, *c, i)?))
                .collect::<Result<Vec<_>>>()?;
            let pairs = (0..here.len()).flat_map(|a| (a + 1..here.len()).map(move |b| (a, b)));
            let pairs = pairs.map(|(a, b)| by.compare(&here[a], &here[b]));
            let with = here.iter().zip(&chains);
            let with = with.filter_map(|(d, c)| Some(by.compare(d, reference(*c)?)));
            Ok((pairs.collect::<Vec<_>>(), with.collect::<Vec<_>>()))
        });
        let (of_pairs, with): (Vec<_>, Vec<_>) =
            each.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let n = chains.len();
        let over_pairs: Mean = Box::new(move |x| mean_over_pairs(n, x));
        pairs.push((by.series(&of_pairs), over_pairs));
        let over_chains: Mean = Box::new(mean_over_replicas);
        alone.push((by.series(&with), over_chains));
    }
    let bins = o.size("bins")?;
    let report = |each| {
        let mut out = by.report(each, bins);
        out.insert("temperatures".into(), json!(info.temperatures));
        out
    };
    let mut out = report(pairs);
    if points.is_some() {
        out.insert("reference".into(), report(alone).into());
    }
    Ok(out.into())
}

impl Compared {
    /// The scalar product of outputs; of classes, of what is left of them by their mean over the classes.
    fn product(&self, a: &[f32], b: &[f32]) -> f64 {
        if self.classes == 0 {
            return dot(a, b);
        }
        let sum = |z: &[f32]| z.iter().map(|x| f64::from(*x)).sum::<f64>();
        let k = self.classes;
        let of = |(a, b): (&[f32], &[f32])| dot(a, b) - sum(a) * sum(b) / k as f64;
        a.chunks_exact(k).zip(b.chunks_exact(k)).map(of).sum()
    }

    /// All of [`NAMES`].
    fn compare(&self, a: &Draw, b: &Draw) -> [f64; 5] {
        let cosine = |product: f64, k: usize| match a.norms[k] * b.norms[k] {
            norm if norm > 0.0 => product / norm,
            _ => 0.0,
        };
        let largest = |z: &[f32]| {
            let best = z.iter().enumerate().max_by(|x, y| x.1.total_cmp(y.1));
            best.map(|(i, _)| i)
        };
        // Of a sequence every position is an example.
        let each = |d: &'_ Draw| {
            d.outputs
                .chunks_exact(self.classes.max(1))
                .map(largest)
                .collect::<Vec<_>>()
        };
        let (x, y) = (each(a), each(b));
        let differ = x.iter().zip(&y).filter(|(x, y)| x != y).count();
        [
            cosine(dot(&a.w, &b.w), 0),
            squared_distance(&a.w, &b.w) / a.w.len() as f64,
            cosine(self.product(&a.outputs, &b.outputs), 1),
            squared_distance(&a.outputs, &b.outputs) / self.rows as f64,
            differ as f64 / x.len() as f64,
        ]
    }

    /// From one row per draw to one series per pair, of each quantity.
    fn series(&self, each: &[Vec<[f64; 5]>]) -> Series {
        let pairs = each.first().map_or(0, Vec::len);
        let series = |k: usize, p: usize| each.iter().map(|at| at[p][k]).collect();
        let of = |k: usize| (0..pairs).map(|p| series(k, p)).collect();
        (0..self.shown).map(of).collect()
    }

    /// All values of each quantity, and their statistics, from the series of every temperature.
    fn report(&self, each: Vec<(Series, Mean)>, bins: usize) -> Map<String, Json> {
        let (mut out, mut statistics) = (Map::new(), Map::new());
        for (k, name) in NAMES.iter().take(self.shown).enumerate() {
            let all: Vec<Vec<f64>> = each.iter().map(|(s, _)| s[k].concat()).collect();
            let edges = edges(all.iter().flatten().copied(), bins);
            let found = each
                .iter()
                .map(|(s, m)| Distribution::new(&s[k], &edges, m));
            let found: Vec<_> = found.collect();
            let mut of = Map::new();
            let mut add = |name: &str, part: &dyn Fn(&Distribution) -> Estimate| {
                let (x, e): (Vec<f64>, Vec<f64>) = found
                    .iter()
                    .map(|d| (part(d).value, part(d).standard_error))
                    .unzip();
                of.insert(name.into(), json!(x));
                of.insert(format!("{name}_error"), json!(e));
            };
            add("mean", &|d| d.mean);
            add("square", &|d| d.square);
            if name.ends_with("overlap") {
                add("binder", &|d| d.binder);
            }
            let density = |part: &dyn Fn(&Estimate) -> f64| -> Vec<Vec<f64>> {
                let of = |d: &Distribution| d.density.iter().map(part).collect();
                found.iter().map(of).collect()
            };
            of.insert("edges".into(), json!(edges));
            of.insert("density".into(), json!(density(&|e| e.value)));
            of.insert(
                "density_error".into(),
                json!(density(&|e| e.standard_error)),
            );
            statistics.insert((*name).into(), of.into());
            out.insert((*name).into(), json!(all));
        }
        out.insert("statistics".into(), statistics.into());
        out
    }
}

/// Edges of so many bins from the smallest to the largest value; of a single value, around it.
fn edges(values: impl Iterator<Item = f64> + Clone, bins: usize) -> Vec<f64> {
    let (mut low, mut high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| {
        (a.min(x), b.max(x))
    });
    let least = 1e-6 * low.abs().max(high.abs()).max(1e-6);
    if high - low < least {
        (low, high) = (low - least, high + least);
    }
    let at = |k: usize| low + (high - low) * k as f64 / bins as f64;
    (0..=bins).map(at).collect()
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
        ensure!(
            self.info
                .target_checksum
                .is_none_or(|sum| sum == target.hashed().finalize()),
            "{}: the target is another one than that of run '{}': it has other data, or other numbers",
            o.owner(),
            self.info.name
        );
        Ok(target)
    }
}
