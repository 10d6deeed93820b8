//! Runs: what a simulation leaves behind, in memory and on disk.

use super::exchange::Ladders;
use super::keep::Kept;
use super::origin::Origin;
use super::standing::Judged;
use super::temper::Temper;
use super::transcript;
use super::until::Course;
use crate::access;
use crate::diagnostic;
use crate::error::{Result, count};
use crate::store::archive::Archive;
use crate::store::{checkpoint, disk};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the chains of other shards have no draws.
pub(crate) const ELSEWHERE: &str = "is in another shard";

/// Why and when a chain stopped before its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Step after which it was stopped.
    pub step: u64,
    /// Why.
    pub reason: String,
}

/// The trace of the energy that β multiplies, where chains exchange temperatures.
pub(crate) const TEMPERED_ENERGY: &str = "tempered_energy";

/// The trace of which replica is at a temperature.
pub(crate) const REPLICA: &str = "replica";

/// Where a column of the records belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Group {
    /// Observables.
    Posterior,
    /// What the sampler reports.
    SampleStats,
}

/// One recorded quantity: a number, or a vector with named components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the trace.
    pub name: String,
    /// Group in the trace store.
    pub group: Group,
    /// Dimension name and labels of a vector.
    pub components: Option<(String, Vec<String>)>,
}

impl Column {
    /// Numbers per record.
    pub fn width(&self) -> usize {
        self.components.as_ref().map_or(1, |(_, l)| l.len())
    }

    /// The name of a component, with its label; of what is one number, that of the trace.
    pub fn name_of(&self, component: usize) -> String {
        match &self.components {
            Some((_, labels)) => format!("{}_{}", self.name, labels[component]),
            None => self.name.clone(),
        }
    }
}

/// All about a run but its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Name of the run and of its folder.
    pub name: String,
    /// "sample", "sweep" or "exchange".
    pub kind: String,
    /// The target, in words.
    pub target: String,
    /// Name of the sampler.
    pub sampler: String,
    /// Its options.
    pub options: Vec<(String, String)>,
    /// What must be said of the sampler's law, with numbers.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Temperatures, one per group of chains; at the end of the schedule if there is one, infinite for the prior.
    #[serde(with = "temperatures")]
    pub temperatures: Vec<f64>,
    /// Temperatures in words, where they are schedules.
    pub schedules: Vec<String>,
    /// Chains per temperature.
    pub chains: usize,
    /// Steps per chain, burn-in included.
    pub steps: u64,
    /// Steps of burn-in.
    pub burn_in: u64,
    /// When a record is made.
    pub every: String,
    /// What it went on for, if that many steps were not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// Records per chain in burn-in.
    pub warm_draws: usize,
    /// Records per chain after burn-in.
    pub draws: usize,
    /// What is recorded.
    pub columns: Vec<Column>,
    /// n, training examples.
    pub n: usize,
    /// m, minibatch size.
    pub m: Option<usize>,
    /// s, the likelihood scale (nβ when tempered).
    pub scale: f64,
    /// N, parameters.
    pub parameters: usize,
    /// Names and shapes of the parameter tensors.
    pub tensors: Vec<(String, Vec<usize>)>,
    /// Whether the temperatures are constant after burn-in.
    pub steady: bool,
    /// Checksum of data and starting points: what must be the same for a run to be resumed.
    pub fingerprint: String,
    /// A checksum of the target, its data included; none in folders of version 0.1.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_checksum: Option<u32>,
    /// The provenance of the data set, in order: pairs such as ("file", "iris.csv (2734 bytes, crc32 0a1b2c3d)"), ("scale", "standard"). Empty without a data set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<(String, String)>,
    /// Which draws are kept, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// One record and one draw of so many are left, if the run was thinned; otherwise 0.
    #[serde(skip)]
    pub thinned: usize,
    /// Observables that are closures: their text, and what they have captured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub closures: BTreeMap<String, String>,
    /// Whether the chains of a temperature act on each other, so that they are no independent repetitions.
    #[serde(default)]
    pub coupled: bool,
    /// How chains exchange temperatures, if they do: all chains with the same number are one ladder.
    #[serde(default)]
    pub ladder: Option<String>,
    /// What temperatures divide; see [`RunInfo::law`].
    #[serde(default)]
    pub temper: Option<Temper>,
    /// Whether temperatures divide the energy of a prior that is not flat.
    #[serde(default)]
    pub prior_tempered: bool,
    /// Whether there are hard walls, at which Gaussian approximations end.
    pub walls: bool,
    /// Whether the sampler accepts or rejects by U over all examples, so that its law holds at any step size.
    #[serde(default)]
    pub exact: bool,
    /// The mean squared distance between the starts of the chains of a temperature, where they were given.
    #[serde(default)]
    pub start_spread: Option<f64>,
    /// Seed.
    pub seed: u64,
    /// Whether steps were cut by --quick.
    pub quick: bool,
    /// Where the chains stepped: "cpu", "cuda:0".
    pub device: String,
    /// Where that was an accelerator: which part computed where, a line for each place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
}

/// JSON has no infinity: that of the prior is written as the word "inf".
mod temperatures {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Temperature {
        Number(f64),
        Word(String),
    }

    pub fn serialize<S: Serializer>(all: &[f64], to: S) -> Result<S::Ok, S::Error> {
        let one = |t: &f64| match t.is_finite() {
            true => Temperature::Number(*t),
            false => Temperature::Word("inf".into()),
        };
        all.iter().map(one).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        let one = |t| match t {
            Temperature::Number(t) => Ok(t),
            Temperature::Word(w) if w == "inf" => Ok(f64::INFINITY),
            Temperature::Word(w) => Err(D::Error::custom(format!("'{w}' is not a temperature"))),
        };
        let all = Vec::<Temperature>::deserialize(from)?;
        all.into_iter().map(one).collect()
    }
}

impl RunInfo {
    /// Whether there is a dimension of temperatures, of one entry even.
    pub fn has_temperatures(&self) -> bool {
        self.kind != "sample"
    }

    /// What its temperatures divide; ladders of earlier versions do not say so.
    pub fn law(&self) -> Temper {
        self.temper.unwrap_or(match self.ladder {
            Some(_) if !self.prior_tempered => Temper::Likelihood,
            _ => Temper::Energy,
        })
    }

    /// The pairs of [`RunInfo::data`] as "file: iris.csv (2734 bytes, crc32 0a1b2c3d)", one string each.
    pub(crate) fn data_in_words(&self) -> Vec<String> {
        let line = |(what, how): &(String, String)| format!("{what}: {how}");
        self.data.iter().map(line).collect()
    }

    /// Number of chains, all temperatures together.
    pub fn all_chains(&self) -> usize {
        self.temperatures.len() * self.chains
    }

    /// Numbers per record.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// Offset of a column within a record, and the column.
    pub fn column(&self, name: &str) -> Result<(usize, &Column)> {
        let mut at = 0;
        for c in &self.columns {
            if c.name == name {
                return Ok((at, c));
            }
            at += c.width();
        }
        let known = self.columns.iter().map(|c| c.name.as_str());
        anyhow::bail!(
            "run '{}' has no trace '{name}'{}",
            self.name,
            crate::error::did_you_mean(name, known)
        )
    }

    /// The offset of a number within a record, by the name of its trace and the index of its component, or by the name of the component alone, as "weights_w1".
    fn place(&self, name: &str, component: usize) -> Result<usize> {
        let missing = match self.column(name) {
            Ok((at, column)) if component < column.width() => return Ok(at + component),
            Ok((_, column)) => anyhow::bail!(
                "trace '{name}' of run '{}' has {} components",
                self.name,
                column.width()
            ),
            Err(missing) => missing,
        };
        let names = self
            .columns
            .iter()
            .flat_map(|c| (0..c.width()).map(|k| c.name_of(k)));
        let place = names
            .zip(0..)
            .find(|(own, _)| own == name && component == 0);
        place.map(|(_, at)| at).ok_or(missing)
    }

    /// Whether there is such a trace, or such a component of one.
    pub fn records(&self, name: &str) -> bool {
        self.place(name, 0).is_ok()
    }
}

/// What is in a folder that is that of no run.
pub(super) fn within(folder: &Path) -> String {
    if !folder.is_dir() {
        return ", nor such a folder".into();
    }
    let inner = disk::entries(folder);
    let runs = inner.filter(|e| e.path().join("checkpoint").is_dir());
    let mut runs: Vec<_> = runs.map(|e| e.path().display().to_string()).collect();
    runs.sort();
    match runs.is_empty() {
        true => "; is it the folder of a run?".into(),
        false => format!("; the runs are within: {}", crate::error::listed(&runs)),
    }
}

/// What made a checkpoint: the verb, or what its job is called.
pub(crate) fn kind(meta: &serde_json::Value) -> String {
    let what = &meta["what"];
    let said = meta["info"]["kind"].as_str().or(what["job"].as_str());
    said.map_or_else(
        || match what["columns"].is_array() {
            true => "train".into(),
            false => "smc".into(),
        },
        String::from,
    )
}

/// A finished run. Chains are ordered by temperature, then by number.
#[derive(Debug, Clone)]
pub struct Run {
    /// All but the numbers.
    pub info: RunInfo,
    /// Folder on disk.
    pub folder: PathBuf,
    /// Records, per chain, `[rows, width]`; a failed chain has fewer rows.
    pub records: Vec<Vec<f64>>,
    /// Failed chains.
    pub failures: Vec<Option<Failure>>,
    /// Last parameters, per chain.
    pub params: Vec<Arc<Vec<f32>>>,
    /// Steps done, per chain.
    pub steps: Vec<u64>,
    /// Posterior predictions, once the run is finished.
    pub scores: Vec<Scores>,
    /// The ladders, where chains exchange temperatures.
    pub ladders: Option<Ladders>,
    /// What is to be said of its course, as that it went on from an older checkpoint.
    pub notes: Vec<String>,
    /// Seconds of computing, over all sessions.
    pub seconds: f64,
    /// What made it, if that was in this process.
    pub origin: Option<Origin>,
    /// Per temperature, the verdict on the run whose kept draws were measured; empty for a run that was sampled.
    pub of_source: Vec<Judged>,
    /// Whether it is finished and all that its folder has.
    pub(super) whole: bool,
}

/// Posterior prediction on a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Name of the split.
    pub split: String,
    /// Scores by name, per temperature, over all draws of all healthy chains.
    pub temperatures: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// The part of a checkpoint that is not tensors.
#[derive(Serialize, Deserialize)]
pub(crate) struct Meta {
    /// What the run is.
    pub info: RunInfo,
    /// Failed chains.
    pub failures: Vec<Option<Failure>>,
    /// Posterior predictions, once the run is complete.
    #[serde(default)]
    pub scores: Vec<Scores>,
    /// See [`Run::notes`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Seconds so far.
    pub seconds: f64,
    /// Whether the run is complete.
    pub done: bool,
    /// The part of its steps that is done.
    #[serde(default)]
    pub share: Option<f64>,
}

impl Run {
    /// A trace's values after burn-in: per chain, of component `component` (0 where `name` is that of a component). Failed chains are left out if `healthy`.
    pub fn draws(
        &self,
        name: &str,
        component: usize,
        temperature: usize,
        healthy: bool,
    ) -> Result<Vec<Vec<f64>>> {
        let at = self.info.place(name, component)?;
        anyhow::ensure!(
            temperature < self.info.temperatures.len(),
            "run '{}' has {} temperatures, which count from 0",
            self.info.name,
            self.info.temperatures.len()
        );
        let first = temperature * self.info.chains;
        Ok((first..first + self.info.chains)
            .filter(|c| !healthy || self.failures[*c].is_none())
            .map(|c| {
                self.column_values(c, at)
                    .skip(self.info.warm_draws)
                    .collect()
            })
            .collect())
    }

    /// The same run with one record of `apart`, and one kept draw: the last of each so many, counted from the first step, as if recorded that much more rarely.
    ///
    /// # Errors
    /// If nothing would be left after burn-in.
    pub fn thin(&self, apart: usize) -> Result<Self> {
        let info = &self.info;
        anyhow::ensure!(apart > 0, "run.thin: 0 given; thin by 1 or more");
        let (warm, all) = (
            info.warm_draws / apart,
            (info.warm_draws + info.draws) / apart,
        );
        anyhow::ensure!(
            all > warm,
            "run.thin: run '{}' has {} after burn-in, too few to keep one of {apart}",
            info.name,
            crate::error::count(info.draws, "record")
        );
        let width = info.width().max(1);
        let thinned = |records: &Vec<f64>| {
            let rows = records.chunks(width).skip(apart - 1).step_by(apart);
            rows.flatten().copied().collect()
        };
        Ok(Self {
            records: self.records.iter().map(thinned).collect(),
            whole: false,
            info: RunInfo {
                warm_draws: warm,
                draws: all - warm,
                every: format!("{}, one of {apart} left", info.every),
                thinned: info.thinned.max(1) * apart,
                ..info.clone()
            },
            ..self.clone()
        })
    }

    /// The chains of one temperature alone, by index, as a run of their own.
    pub(crate) fn at_temperature(&self, k: usize) -> Self {
        let group = k * self.info.chains..(k + 1) * self.info.chains;
        Self {
            info: RunInfo {
                temperatures: vec![self.info.temperatures[k]],
                ..self.info.clone()
            },
            records: self.records[group.clone()].to_vec(),
            whole: false,
            failures: self.failures[group.clone()].to_vec(),
            params: self.params.get(group.clone()).unwrap_or_default().to_vec(),
            steps: self.steps[group].to_vec(),
            scores: Vec::new(),
            ladders: None,
            ..self.clone()
        }
    }

    /// All values of one trace of one chain, burn-in included; `component` is 0 where `name` is that of a component.
    pub fn trace(&self, name: &str, component: usize, chain: usize) -> Result<Vec<f64>> {
        let at = self.info.place(name, component)?;
        anyhow::ensure!(
            chain < self.records.len(),
            "run '{}' has {} chains, which count from 0",
            self.info.name,
            self.records.len()
        );
        Ok(self.column_values(chain, at).collect())
    }

    fn column_values(&self, chain: usize, at: usize) -> impl Iterator<Item = f64> + '_ {
        self.records[chain]
            .iter()
            .skip(at)
            .step_by(self.info.width().max(1))
            .copied()
    }

    /// The scores of the posterior prediction on a split, at a temperature.
    pub fn prediction(
        &self,
        split: &str,
        temperature: usize,
    ) -> Result<&serde_json::Map<String, serde_json::Value>> {
        let known: Vec<_> = self.scores.iter().map(|s| s.split.as_str()).collect();
        let found = self.scores.iter().find(|s| s.split == split);
        let missing = || match known[..] {
            [] => anyhow::anyhow!(
                "run '{}' kept no predictions; give it the option predict: \"{split}\"",
                self.info.name
            ),
            _ => anyhow::anyhow!(
                "run '{}' kept predictions of {} only, not of \"{split}\"",
                self.info.name,
                known.join(", ")
            ),
        };
        let scores = found.ok_or_else(missing)?;
        scores.temperatures.get(temperature).ok_or_else(|| {
            anyhow::anyhow!(
                "run '{}' has {} temperatures, so there is none with index {temperature}",
                self.info.name,
                scores.temperatures.len()
            )
        })
    }

    /// Draws as traces that are independent of each other: those of chains that act on each other become one, their mean.
    pub fn independent(&self, draws: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        if !self.info.coupled || draws.is_empty() {
            return draws;
        }
        let count = draws.len() as f64;
        let shortest = draws.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |i: usize| draws.iter().map(|c| c[i]).sum::<f64>() / count;
        vec![(0..shortest).map(mean).collect()]
    }

    /// All numbers of draws, one trace per chain. Where chains act on each other, errors are those of their mean.
    pub fn summarise(&self, draws: Vec<Vec<f64>>) -> diagnostic::Summary {
        let mut numbers = diagnostic::summarise(&draws);
        if self.info.coupled {
            let mean = self.independent(draws);
            numbers.mcse_mean = diagnostic::mcse_mean(&mean);
            let size = (numbers.sd / numbers.mcse_mean).powi(2);
            numbers.ess_bulk = numbers.ess_bulk.min(size);
        }
        numbers
    }

    /// How many chains of a temperature failed; those of other shards are not counted.
    pub fn failed(&self, temperature: usize) -> usize {
        let chains = self.info.chains;
        let here = &self.failures[temperature * chains..(temperature + 1) * chains];
        let failed = here.iter().flatten();
        failed.filter(|f| f.reason != ELSEWHERE).count()
    }

    /// Chains at a temperature that are not in another shard.
    pub fn chains_here(&self, temperature: usize) -> usize {
        let chains = self.info.chains;
        let here = &self.failures[temperature * chains..(temperature + 1) * chains];
        let elsewhere = here.iter().flatten().filter(|f| f.reason == ELSEWHERE);
        chains - elsewhere.count()
    }

    /// That chains have failed, in words, where one that fails takes those of its number at all temperatures with it: a ladder without a replica is none.
    pub fn broken(&self) -> Option<String> {
        let (chains, rungs) = (self.info.chains, self.info.temperatures.len());
        let why = |c: usize| (0..rungs).find_map(|t| self.failures[t * chains + c].as_ref());
        let failed = (0..chains).filter_map(why);
        let broken = failed.filter(|f| f.reason != ELSEWHERE).count();
        let of = |noun| count(self.chains_here(0), noun);
        (broken > 0).then(|| match self.ladders {
            Some(_) => format!("a chain failed in {broken} of {}", of("ladder")),
            None => format!(
                "{broken} of {} failed at some temperature, and are left out at all",
                of("chain")
            ),
        })
    }

    /// Whether it has come to its end.
    pub fn done(&self) -> bool {
        self.least_step() >= self.info.steps
    }

    /// Draws that every healthy chain has.
    pub fn draws_so_far(&self) -> usize {
        let (info, all) = (&self.info, self.records.iter().zip(&self.failures));
        let rows = |r: &Vec<f64>| r.len() / info.width().max(1);
        let healthy = all.filter(|(_, f)| f.is_none());
        let least = healthy.map(|(r, _)| rows(r).saturating_sub(info.warm_draws));
        match self.done() {
            true => info.draws,
            false => least.min().unwrap_or(0),
        }
    }

    /// What is to be said of it while it is not finished: how far it is, what there is of it, and how it goes on.
    pub fn unfinished(&self) -> Option<String> {
        let (step, steps) = (self.least_step(), self.info.steps);
        let has = match self.draws_so_far() {
            0 if step == 0 => "nothing is kept yet".into(),
            0 if step < self.info.burn_in => "still in burn-in, no draws yet".into(),
            n => format!("{n} of {} draws each so far", self.info.draws),
        };
        let on = transcript::goes_on(&self.folder);
        (!self.done()).then(|| format!("UNFINISHED at step {step} of {steps}: {has}; {on}"))
    }

    /// Steps that every healthy chain has done.
    pub fn least_step(&self) -> u64 {
        let healthy = self
            .steps
            .iter()
            .zip(&self.failures)
            .filter(|(_, f)| f.is_none());
        healthy.map(|(s, _)| *s).min().unwrap_or(self.info.steps)
    }

    /// A run that was saved before, finished or not, from its folder.
    pub fn open(folder: &Path) -> Result<Self> {
        access::read(folder).with_context(|| folder.display().to_string())?;
        if let Some((run, _)) = Self::load(folder)? {
            return Ok(run);
        }
        let saved = checkpoint::load(&folder.join("checkpoint"))?;
        let kind = saved.map_or_else(String::new, |(saved, _)| kind(&saved.meta));
        let shown = folder.display();
        anyhow::bail!(
            "open: {shown} was made by {kind} and is no run; `ergodic show {shown}` shows it, and the option resume: \"{shown}\" of its verb continues or returns it"
        )
    }

    /// A run from its folder: the newest checkpoint, complete or not; none if the folder is that of a training.
    pub fn load(folder: &Path) -> Result<Option<(Self, bool)>> {
        let found = checkpoint::load(&folder.join("checkpoint"))?;
        let Some((saved, generation)) = found else {
            anyhow::bail!(
                "{}: there is no checkpoint here{}",
                folder.display(),
                within(folder)
            )
        };
        if saved.meta.get("what").is_some() {
            return Ok(None);
        }
        let meta: Meta = serde_json::from_value(saved.meta).map_err(|e| {
            anyhow::anyhow!(
                "{}: the checkpoint is of another kind or version ({e})",
                folder.display()
            )
        })?;
        let mut archive = Archive::from(saved.tensors);
        let (mut params, mut steps) = (Vec::<f32>::new(), Vec::<u64>::new());
        archive.copied("params", &mut params)?;
        archive.copied("steps", &mut steps)?;
        let info = &meta.info;
        let chains = info.chains.checked_mul(info.temperatures.len());
        anyhow::ensure!(
            chains == Some(steps.len())
                && meta.failures.len() == steps.len()
                && info.burn_in <= info.steps
                && info.warm_draws.checked_mul(info.width()).is_some(),
            "{}: the checkpoint is damaged: its numbers do not belong together",
            folder.display()
        );
        let mut records = vec![Vec::<f64>::new(); steps.len()];
        for (i, r) in records.iter_mut().enumerate() {
            archive.copied(&format!("records.{i}"), r)?;
        }
        let ladders = match meta.info.ladder {
            Some(_) => {
                let mut ladders = Ladders::new(&meta.info.temperatures, meta.info.chains)?;
                ladders.keep(&mut archive)?;
                Some(ladders)
            }
            None => None,
        };
        let params = params.chunks(meta.info.parameters.max(1));
        let mut run = Self {
            info: meta.info,
            folder: folder.into(),
            records,
            failures: meta.failures,
            params: params.map(|w| Arc::new(w.to_vec())).collect(),
            steps,
            scores: meta.scores,
            ladders,
            notes: meta.notes,
            seconds: meta.seconds,
            origin: None,
            of_source: Vec::new(),
            whole: meta.done,
        };
        run.sort_by_rung();
        let at = format!("at step {} of {}", run.least_step(), run.info.steps);
        run.notes.extend(generation.shown(&at));
        Ok(Some((run, meta.done)))
    }

    /// From chains that are replicas to chains that are temperatures: the records that any replica made there, and the state of the one that
    /// is there now.
    pub(super) fn sort_by_rung(&mut self) {
        let Some(ladders) = &self.ladders else {
            return;
        };
        let (count, rungs, width) = (ladders.count(), ladders.rungs(), self.info.width());
        let mut records = vec![Vec::new(); self.records.len()];
        for (ladder, path) in ladders.paths.iter().enumerate() {
            for (row, rung_of) in path.chunks_exact(rungs).enumerate() {
                for (replica, rung) in rung_of.iter().enumerate() {
                    let made = &self.records[replica * count + ladder];
                    let to: &mut Vec<f64> = &mut records[*rung as usize * count + ladder];
                    // A replica that failed leaves its rung without records from then on.
                    if let Some(record) = made.get(row * width..(row + 1) * width)
                        && to.len() == row * width
                    {
                        to.extend_from_slice(record);
                    }
                }
            }
        }
        self.records = records;
        let by_place = ladders.chains_by_place();
        self.failures = by_place.iter().map(|c| self.failures[*c].clone()).collect();
        self.steps = by_place
            .iter()
            .filter_map(|c| self.steps.get(*c).copied())
            .collect();
        self.params = by_place
            .iter()
            .filter_map(|c| self.params.get(*c).cloned())
            .collect();
    }
}

/// What made the numbers: program, machine, instruction set.
pub(crate) fn versions() -> serde_json::Value {
    json!({
        "ergodic": env!("CARGO_PKG_VERSION"),
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "simd": format!("{:?}", crate::kernels::level()),
        "device": "cpu",
    })
}
