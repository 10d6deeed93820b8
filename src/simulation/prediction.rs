//! Posterior prediction: running averages over the draws of a chain, by split, without keeping a draw.

use super::run::Column;
use super::run::Group;
use super::temper::Temper;
use crate::dataset::{Split, Targets};
use crate::diagnostic::{PredictionSums, Truth};
use crate::error::Result;
use crate::model::loss::{Loss, RowTargets, TileTargets};
use crate::target::Target;
use crate::target::network::Network;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Averages over one split.
pub struct Predictor<'a> {
    target: &'a Target,
    law: Temper,
    network: &'a Network,
    name: String,
    split: Arc<Split>,
    sums: PredictionSums,
    /// What outputs are compared with, for squared errors; empty for classes by cross entropy.
    values: Vec<f32>,
}

/// Name of the split of a running score's column: these are no draws, and no summary averages them.
pub const RUNNING: &str = "running_";

/// Logits of the classes, or means of real targets, from the outputs of a network at w.
pub(super) fn predicted(network: &Network, w: &[f32], outputs: Vec<f32>) -> Vec<f32> {
    match (network.loss(), network.dataset().classes) {
        (Loss::Formula(f), 0) => f.means(&outputs),
        (Loss::Formula(f), classes) => f.logits(network.own_parameters(w), &outputs, classes),
        _ => outputs,
    }
}

/// β of p(y|x,w)^β and, for squared errors, the variance σ² of p(y|x,w) = N(f, σ²): U/T = (s/nT) Σ loss. Where a row has several
/// positions, y is the label at one of them, and its loss counts that much less. Where only the prior is tempered, T is 1.
pub(super) fn likelihood(
    target: &Target,
    law: Temper,
    network: &Network,
    temperature: f64,
) -> (f64, f64) {
    let temperature = match law {
        Temper::Prior => 1.0,
        _ => temperature,
    };
    let positions = network.model().positions() as f64;
    let per_example = target.scale() / (target.examples() as f64 * temperature) / positions;
    match network.loss() {
        Loss::SquaredError => (1.0, 0.5 / per_example),
        Loss::CrossEntropy | Loss::Formula(_) => (per_example, f64::NAN),
    }
}

impl<'a> Predictor<'a> {
    /// For a split of the target; fails if there is none, or no network.
    pub fn new(target: &'a Target, law: Temper, name: &str) -> Result<Self> {
        let network = target.network("option 'predict'")?;
        let split = network.dataset().split(name)?.clone();
        // Each position is predicted by itself.
        let positions = network.model().positions();
        let outputs = match network.loss() {
            Loss::Formula(_) if split.labels().is_some() => network.dataset().classes,
            Loss::Formula(f) => f.predicted(),
            _ => network.model().outputs() / positions,
        };
        let values = match (&split.targets, network.loss()) {
            (
                Targets::Classes(_) | Targets::Sequence { .. },
                Loss::CrossEntropy | Loss::Formula(_),
            ) => Vec::new(),
            (Targets::Classes(labels) | Targets::Sequence { labels, .. }, Loss::SquaredError) => {
                let one_hot =
                    |l: u32| (0..outputs).map(move |k| f32::from(u8::from(k == l as usize)));
                labels.iter().copied().flat_map(one_hot).collect()
            }
            (Targets::Values { data, .. }, _) => data.clone(),
            (Targets::Made(law), _) => {
                let mut values = vec![0.0; split.rows * law.width];
                split.copy_values(0..split.rows, &mut values);
                values
            }
        };
        Ok(Self {
            target,
            law,
            network,
            name: name.into(),
            sums: PredictionSums::new(split.rows * positions, outputs),
            split,
            values,
        })
    }

    /// Numbers that are kept per chain.
    pub fn width(&self) -> usize {
        PredictionSums::width(self.sums.rows(), self.sums.outputs())
    }

    /// Take in the draw w; its outputs may be known.
    pub fn update(
        &self,
        sums: &mut [f64],
        w: &[f32],
        outputs: Option<Vec<f32>>,
        temperature: f64,
    ) -> Result<()> {
        let mut outputs = match outputs {
            Some(known) => known,
            None => self.network.predict(w, &self.split)?,
        };
        let mut ln_likelihoods = Vec::new();
        let formula = match self.network.loss() {
            Loss::Formula(f) => Some((f, self.network.own_parameters(w))),
            _ => None,
        };
        if let (Some((f, own)), None) = (formula, self.split.labels()) {
            let targets = TileTargets::alike(RowTargets::Values(&self.values));
            ln_likelihoods = f.of_each(own, targets, &outputs);
            ln_likelihoods.iter_mut().for_each(|l| *l = -*l);
        }
        outputs = predicted(self.network, w, outputs);
        let truth = match self.split.labels() {
            Some(labels) if self.values.is_empty() => Truth::Classes(labels),
            _ if formula.is_some() => Truth::LnLikelihoods(&ln_likelihoods),
            _ => Truth::Values {
                values: &self.values,
                noise_variance: likelihood(self.target, self.law, self.network, temperature).1,
            },
        };
        self.sums.update(sums, &outputs, truth);
        Ok(())
    }

    /// Noise-free targets of the split, where the data set has them.
    fn clean(&self) -> Option<&[f32]> {
        let clean = self.network.dataset().clean.as_ref();
        clean.filter(|_| self.name == "test").map(|c| c.as_slice())
    }

    /// Names of the scores whose course is recorded.
    fn running(&self) -> Vec<&'static str> {
        match (self.values.is_empty(), self.clean()) {
            (true, _) => vec!["error", "nll", "brier", "ece"],
            (false, Some(_)) => vec!["generalisation_error", "squared_error", "nll"],
            (false, None) => vec!["squared_error", "nll"],
        }
    }

    /// Their columns.
    pub fn columns(&self) -> impl Iterator<Item = Column> {
        self.running().into_iter().map(|score| Column {
            name: format!("{RUNNING}{score}_{}", self.name),
            group: Group::SampleStats,
            components: None,
        })
    }

    /// Their values now.
    pub fn now(&self, sums: &[f64], temperature: f64) -> Vec<f64> {
        let scores = self.scores(sums, temperature);
        let value = |name: &str| scores.get(name).and_then(Value::as_f64);
        let names = self.running().into_iter();
        names.map(|n| value(n).unwrap_or(f64::NAN)).collect()
    }

    /// All scores.
    pub fn scores(&self, sums: &[f64], temperature: f64) -> Map<String, Value> {
        let (beta, _) = likelihood(self.target, self.law, self.network, temperature);
        let mut out = Map::new();
        let waic = match self.split.labels() {
            Some(labels) if self.values.is_empty() => {
                let s = self.sums.classification(sums, labels, beta);
                out.insert("draws".into(), json!(s.draws));
                out.insert("error".into(), json!(s.error));
                out.insert("brier".into(), json!(s.brier));
                out.insert("ece".into(), json!(s.ece));
                let bins = s.reliability.iter();
                let column = |f: &dyn Fn(&crate::diagnostic::ReliabilityBin) -> f64| {
                    bins.clone().map(|b| json!(f(b))).collect::<Vec<_>>()
                };
                out.insert(
                    "reliability".into(),
                    json!({
                        "rows": column(&|b| b.rows as f64),
                        "confidence": column(&|b| b.confidence),
                        "accuracy": column(&|b| b.accuracy),
                    }),
                );
                s.waic
            }
            _ => {
                let s = self.sums.regression(sums, &self.values, self.clean(), beta);
                out.insert("draws".into(), json!(s.draws));
                out.insert("squared_error".into(), json!(s.squared_error));
                if self.clean().is_some() {
                    let g = json!(s.generalisation_error);
                    out.insert("generalisation_error".into(), g);
                }
                s.waic
            }
        };
        for (name, value) in [
            ("nll", waic.bayes_loss),
            ("nll_se", waic.bayes_loss_se),
            ("gibbs_loss", waic.gibbs_loss),
            ("functional_variance", waic.functional_variance),
            ("singular_fluctuation", waic.singular_fluctuation),
            ("waic", waic.waic),
            ("p_waic", waic.p_waic),
            ("elpd_waic", waic.elpd_waic),
            ("elpd_se", waic.elpd_se),
            ("largest_variance", waic.largest_variance),
            ("beta", beta),
        ] {
            out.insert(name.into(), json!(value));
        }
        out
    }

    /// All scores of all chains of one temperature together.
    pub fn merged<'s>(
        &self,
        chains: impl Iterator<Item = &'s [f64]>,
        temperature: f64,
    ) -> Map<String, Value> {
        let mut all = self.sums.start();
        chains.for_each(|c| self.sums.merge(&mut all, c));
        self.scores(&all, temperature)
    }

    /// The split's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
