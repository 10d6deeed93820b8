//! Leave-one-out cross-validation from the kept draws of a run.

mod compare;
mod likelihood;

pub use compare::{LooComparison, compare};

use super::draws::{KeptDraws, TARGET};
use super::run::Run;
use super::session::Session;
use super::standing::Judged;
use super::summary::{Summary, with_error};
use crate::diagnostic::Verdict;
use crate::diagnostic::psis::{
    LEAST_DRAWS, largest_k, leave_one_out, relative_efficiency, sum_with_error,
};
use crate::error::{Result, count, go_on};
use crate::memory;
use crate::options::{Kind, Range, option};
use crate::plot::{Axis, Figure, Panel, Series};
use crate::table::Table;
use crate::target::Target;
use crate::verb::{Call, Verb};
use anyhow::ensure;
use likelihood::Likelihood;
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Numbers that are held at a time: ln likelihoods of some examples by all draws. 256 MiB.
const TOGETHER: usize = 1 << 25;

/// Draws of a chain that a thread reads one after the other.
const STRETCH: usize = 64;

/// Examples that are named where k̂ is too large.
const NAMED: usize = 8;

/// How well each training example is predicted by all others.
#[derive(Debug, Clone)]
pub struct Loo {
    /// Name of the run.
    pub name: String,
    /// T of the draws.
    pub temperature: f64,
    /// Draws of all chains together.
    pub draws: usize,
    /// One kept draw of so many was used.
    pub thinned: usize,
    /// The examples: rows of the training split whose weight is not 0.
    pub rows: Vec<u32>,
    /// ln of the predictive density of each by the posterior of all others, in nats.
    pub elpd: Vec<f64>,
    /// The share of each in the effective number of parameters.
    pub p: Vec<f64>,
    /// k̂ of each.
    pub k: Vec<f64>,
    /// Effective draws over draws, of the likelihood of each.
    pub efficiency: Vec<f64>,
    /// Checksum of what is predicted, to tell whether two are of the same data.
    targets: u32,
    /// How far it can be relied on.
    pub judged: Judged,
}

/// Leave out each training example of the run in turn.
///
/// # Errors
/// If the run has kept too few draws, or the target has no examples.
pub fn loo(run: &Run, target: &Target, temperature: usize) -> Result<Loo> {
    let info = &run.info;
    ensure!(
        temperature < info.temperatures.len(),
        "loo: run '{}' has {}, so there is none with index {temperature}",
        info.name,
        count(info.temperatures.len(), "temperature")
    );
    let kept = KeptDraws::of(run)?;
    let first = temperature * info.chains;
    let chains: Vec<usize> = (first..first + info.chains)
        .filter(|c| run.failures[*c].is_none())
        .collect();
    let length = chains.iter().map(|c| kept.count(*c)).min().unwrap_or(0);
    let draws = length * chains.len();
    ensure!(
        draws >= LEAST_DRAWS,
        "loo: run '{}' has kept {} of healthy chains there, but at least {LEAST_DRAWS} are needed; keep more (the option keep)",
        info.name,
        count(draws, "draw")
    );
    let t = info.temperatures[temperature];
    let likelihood = Likelihood::of(target, info.law(), t)?;
    let rows = likelihood.rows();
    let together = (TOGETHER / draws).clamp(1, rows.len());
    memory::check(
        (together * draws * 16) as u128,
        &format!("loo: ln likelihoods of {together} examples by {draws} draws"),
    )?;
    // Of neighbouring draws the file is read once.
    let stretches: Vec<(usize, std::ops::Range<usize>)> = chains
        .iter()
        .flat_map(|c| {
            let each = (0..length).step_by(STRETCH);
            each.map(|i| (*c, i..(i + STRETCH).min(length)))
        })
        .collect();
    let mut found = Vec::with_capacity(rows.len());
    for some in rows.chunks(together) {
        let of_stretch = |(chain, draws): &(usize, std::ops::Range<usize>)| {
            let mut own = kept.chain(info, *chain)?;
            let of_draw = |i| {
                go_on("loo")?;
                likelihood.of_rows(&own.draw(i)?, some)
            };
            draws.clone().map(of_draw).collect::<Result<Vec<_>>>()
        };
        let by_stretch = stretches.par_iter().map(of_stretch);
        let by_draw = by_stretch.collect::<Result<Vec<_>>>()?.concat();
        let of_row = |k: usize| {
            let all: Vec<f64> = by_draw.iter().map(|d| d[k]).collect();
            let by_chain: Vec<&[f64]> = all.chunks(length).collect();
            let efficiency = relative_efficiency(&by_chain);
            let left = leave_one_out(&all, likelihood.beta(some[k]), efficiency);
            (left, efficiency)
        };
        found.par_extend((0..some.len()).into_par_iter().map(of_row));
    }
    let mut out = Loo {
        name: info.name.clone(),
        temperature: t,
        draws,
        thinned: info.thinned.max(1),
        targets: likelihood.checksum(&rows),
        rows,
        elpd: found.iter().map(|(l, _)| l.elpd).collect(),
        p: found.iter().map(|(l, _)| l.p).collect(),
        k: found.iter().map(|(l, _)| l.k).collect(),
        efficiency: found.iter().map(|(_, e)| *e).collect(),
        judged: Judged::converged(),
    };
    let of_run = &Summary::new(run)?.judgements[temperature];
    if of_run.verdict != Verdict::Converged {
        let says = format!("run '{}': {}", info.name, of_run.says());
        out.judged.add(of_run.verdict, says);
    }
    let unreliable = out.unreliable().len();
    if unreliable > 0 {
        let says = format!(
            "k̂ is above {:.2} for {unreliable} of {}, whose weights have too heavy a tail",
            out.largest_k(),
            count(out.k.len(), "example")
        );
        out.judged.add(Verdict::NotYet, says);
    }
    Ok(out)
}

impl Loo {
    /// The k̂ above which an example is not reliable.
    pub fn largest_k(&self) -> f64 {
        largest_k(self.draws)
    }

    /// Indices of the examples whose k̂ is too large or unknown, the largest first.
    pub fn unreliable(&self) -> Vec<usize> {
        // Of what cannot be judged nothing good is said.
        let bad = |i: &usize| self.k[*i].is_nan() || self.k[*i] > self.largest_k();
        let mut out: Vec<usize> = (0..self.k.len()).filter(bad).collect();
        out.sort_by(|a, b| self.k[*b].total_cmp(&self.k[*a]));
        out
    }

    /// The sum over examples of what the posterior of all others predicts, and its standard error.
    pub fn elpd_loo(&self) -> (f64, f64) {
        sum_with_error(&self.elpd)
    }

    /// The effective number of parameters and its standard error.
    pub fn p_loo(&self) -> (f64, f64) {
        sum_with_error(&self.p)
    }

    /// As a map.
    pub fn to_map(&self) -> Map<String, Value> {
        let ((elpd, se), (p, p_se)) = (self.elpd_loo(), self.p_loo());
        let n = self.rows.len() as f64;
        let one = |i: &usize| json!({ "example": self.rows[*i], "k": self.k[*i], "elpd": self.elpd[*i], "p": self.p[*i] });
        let bad: Vec<Value> = self.unreliable().iter().map(one).collect();
        let entries = [
            ("elpd_loo", json!(elpd)),
            ("elpd_se", json!(se)),
            ("p_loo", json!(p)),
            ("p_se", json!(p_se)),
            ("looic", json!(-2.0 * elpd)),
            ("nll", json!(-elpd / n)),
            ("nll_se", json!(se / n)),
            ("draws", json!(self.draws)),
            ("examples", json!(self.rows)),
            ("elpd", json!(self.elpd)),
            ("p", json!(self.p)),
            ("k", json!(self.k)),
            ("efficiency", json!(self.efficiency)),
            ("largest_k", json!(self.largest_k())),
            ("unreliable", json!(bad)),
            ("verdict", json!(self.judged.verdict)),
            ("reasons", json!(self.judged.reasons)),
        ];
        let pairs = entries.into_iter();
        pairs.map(|(k, v)| (k.to_string(), v)).collect()
    }

    /// The sums, and below them the examples that are not reliable.
    pub fn table(&self) -> Table {
        let ((elpd, se), (p, p_se)) = (self.elpd_loo(), self.p_loo());
        let n = self.rows.len() as f64;
        let bad = self.unreliable();
        let thinned = match self.thinned {
            1 => String::new(),
            n => format!(", one of {n} kept"),
        };
        let mut out = Table::new([
            "elpd_loo",
            "p_loo",
            "looic",
            "nll per example",
            "k̂ too large",
        ])
        .line_above(format!(
            "PSIS-LOO of run '{}' at T = {:.3e}: {} by {}{thinned}",
            self.name,
            self.temperature,
            count(self.rows.len(), "example"),
            count(self.draws, "draw"),
        ));
        out.above.extend(self.judged.line("estimate"));
        out.push([
            with_error(elpd, se),
            with_error(p, p_se),
            with_error(-2.0 * elpd, 2.0 * se),
            with_error(-elpd / n, se / n),
            format!("{} of {}", bad.len(), self.rows.len()),
        ]);
        let limit = self.largest_k();
        if !bad.is_empty() {
            let name = |i: &usize| format!("{} ({:.2})", self.rows[*i], self.k[*i]);
            let named: Vec<_> = bad.iter().take(NAMED).map(name).collect();
            let more = match bad.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            out.below.push(format!(
                "NOTE: k̂ is above {limit:.2} for the examples {}{more}: the posterior leans on them, and what is said of them without them is not reliable; draw more, or leave them out in earnest",
                named.join(", ")
            ));
        }
        out
    }

    /// k̂ of every example, and the limit.
    pub fn figure(&self) -> Figure {
        let x = self.rows.iter().map(|r| f64::from(*r)).collect();
        let finite = |k: &f64| if k.is_finite() { *k } else { f64::NAN };
        let k = self.k.iter().map(finite).collect();
        let series = vec![
            Series::points("", x, k),
            Series::hline("limit", self.largest_k()),
        ];
        Figure::of(Panel::new(
            Axis::linear("example"),
            Axis::linear("k̂"),
            series,
        ))
    }

    /// The figure, for notebooks.
    fn drawing(&self) -> Option<String> {
        self.figure().to_html().ok()
    }
}

impl fmt::Display for Loo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

crate::object::object! {
    Loo: "Loo",
    entries: to_map, "loo.to_map() -> map", "All entries as a map.", "the result of loo",
    table: table,
    drawing: drawing,
}

/// The verb `loo`.
pub static LOO: Verb<Session, (Arc<Run>,), Arc<Loo>> = Verb {
    name: "loo",
    arguments: &["run"],
    options: &[
        option(
            "temperature",
            Kind::Int(Range::NonNegative),
            "0",
            "Which temperature of a sweep or a ladder, by its index.",
        ),
        TARGET,
    ],
    doc: "Leave-one-out cross-validation by Pareto-smoothed importance sampling (PSIS-LOO; Vehtari et al. 2017, 2024), from the draws that a run has kept (its option `keep`).\n\n\
          How well the posterior of all other training examples predicts each: draws are reweighted by p(y|x,w)^-β, and the largest weights smoothed. The likelihood is that of `run.prediction`: β = s/nT for classes, a Gaussian \
          of variance nT/2s for squared errors. An example is a row, with all its positions; one of weight 0 is no example. The largest weights are the min(S/5, 3√(S/r)) largest of S draws, r being the effective share of draws \
          for the likelihood of the example. Entries: elpd_loo, elpd_se, p_loo, p_se, looic, nll (-elpd_loo/n, to be held against that of a test split), nll_se, draws, examples (their rows); elpd, p, k (k̂) and efficiency (r) of each; largest_k, \
          min(1 - 1/log10 S, 0.7); unreliable, maps of example, k, elpd, p where k̂ is larger or unknown; verdict and reasons: those of the run, and examples whose k̂ is larger. `run.thin(n)` uses one draw of n; `compare(#{ a: loo(r), b: loo(q) })` compares models.",
    example: "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 5 }), #{ energy: \"sum\", prior: prior::gaussian(1) });\n\
              loo(sample(t, sampler::hmc(), #{ steps: 200, chains: 2, keep: 2 })).elpd_loo",
    call: Call::Checked(|(run,), o, session| {
        session.computes_here("loo");
        let target = run.target(o)?;
        loo(&run, &target, o.size("temperature")?).map(Arc::new)
    }),
};
