//! Draws that are kept: the parameters themselves, written while a run goes on, to be looked at afterwards.

use super::keep::Keep;
use super::plan::Plan;
use super::run::{Run, RunInfo};
use crate::error::{Result, did_you_mean};
use crate::memory::gib;
use crate::model::Layout;
use crate::options::{Kind, Spec, optional};
use crate::store::zarr::{Draws, Reader, Stream};
use crate::store::{free_space, remove_folder};
use crate::target::Target;
use crate::target::prior::Parameters;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The option of verbs that look at draws again.
pub(super) const TARGET: Spec = optional(
    "target",
    Kind::Object("Target"),
    "that of the run",
    "What was sampled; needed for runs that were opened from their folder.",
);

/// The folder of the draws in that of a run.
const FOLDER: &str = "draws.zarr";

impl Plan {
    /// What is kept of a run on this target, and where the tensors are in a chain's parameters.
    ///
    /// # Errors
    /// If there is no such tensor, or one that cannot be an array.
    fn draws(&self, keep: &Keep, layout: &Layout) -> Result<(Draws, Vec<Range<usize>>)> {
        let known = || layout.tensors().iter().map(|t| t.name.as_str());
        for name in &keep.tensors {
            ensure!(
                known().any(|k| k == name),
                "{}: option 'keep_tensors' names '{name}', which the model does not have{}",
                self.kind,
                did_you_mean(name, known())
            );
        }
        let wanted = |name: &String| keep.tensors.is_empty() || keep.tensors.contains(name);
        let tensors: Vec<_> = layout
            .tensors()
            .iter()
            .filter(|t| wanted(&t.name))
            .collect();
        let draws = Draws {
            chains: self.chains,
            temperatures: (self.kind != "sample").then_some(self.temperatures.len()),
            steps: keep.steps.clone(),
            tensors: tensors
                .iter()
                .map(|t| (t.name.clone(), t.shape.clone()))
                .collect(),
            half: keep.half,
            open: self.course.is_some(),
            expected: self.course.as_ref().map(|course| {
                let steps = keep.steps.iter();
                steps.filter(|step| **step <= course.first).count()
            }),
            burn_in: None,
        };
        draws.check().with_context(|| self.kind)?;
        Ok((draws, tensors.iter().map(|t| t.range.clone()).collect()))
    }

    /// Fail early if the draws cannot be kept in this folder; otherwise how much there will be of them, in words, if it is much.
    pub(super) fn check_keep(&self, target: &Target, folder: &Path) -> Result<Option<String>> {
        let Some(keep) = &self.keep else {
            return Ok(None);
        };
        let bytes = self.draws(keep, target.layout())?.0.bytes();
        let there = folder.ancestors().find(|f| f.exists());
        if let Some(free) = there.and_then(free_space) {
            ensure!(
                bytes < u128::from(free),
                "{}: {} draws per chain are {:.1} GiB, but {:.1} GiB are free in '{}'; keep fewer, only some tensors (keep_tensors), or half the digits (keep_as: \"f16\")",
                self.kind,
                keep.steps.len(),
                gib(bytes),
                gib(u128::from(free)),
                folder.display()
            );
        }
        let text = || format!("'{}' keeps {:.1} GiB of draws", self.name, gib(bytes));
        Ok((bytes > 1 << 28).then(text))
    }
}

/// What writes the draws of a run.
pub(super) struct Keeper {
    stream: Stream,
    ranges: Vec<Range<usize>>,
}

impl Keeper {
    /// Of these chains of a run in this folder, if it keeps any; `shared` says that others write into the same files.
    pub fn of(
        plan: &Plan,
        target: &Target,
        folder: &Path,
        own: Vec<usize>,
        shared: bool,
    ) -> Result<Option<Self>> {
        let Some(keep) = &plan.keep else {
            return Ok(None);
        };
        let (mut draws, ranges) = plan.draws(keep, target.layout())?;
        // What goes on is cut as it was.
        if let Ok(begun) = Stream::open(&folder.join(FOLDER)) {
            draws.expected = begun.draws().expected;
        }
        let mut stream = Stream::new(folder.join(FOLDER), draws, own);
        stream.shared = shared;
        Ok(Some(Self { stream, ranges }))
    }

    /// Whether a draw is made after this step.
    pub fn fires(&self, step: u64) -> bool {
        self.stream.draws().steps.binary_search(&step).is_ok()
    }

    /// Write what readers need to know.
    pub fn describe(&self, temperatures: &[f64]) -> Result<()> {
        self.stream.begin()?;
        self.stream.describe(temperatures)
    }

    /// Write what readers need to know, where the run has ended at this step.
    pub fn describe_up_to(&self, step: u64, burn_in: u64, temperatures: &[f64]) -> Result<()> {
        self.stream.describe_up_to(step, burn_in, temperatures)
    }

    /// Whether there are any: whoever needs the room may remove the draws of a run that has ended.
    pub fn is_there(&self) -> bool {
        self.stream.is_there()
    }

    /// Fail if a file is missing or cut off with draws of chains, each with the step up to which they were made.
    pub fn check_files(&self, chains: impl Iterator<Item = (usize, u64)>) -> Result<()> {
        let made: BTreeMap<_, _> = chains.collect();
        let steps = &self.stream.draws().steps;
        let count = |step: &u64| steps.partition_point(|s| s <= step);
        self.stream
            .check_files(|chain| made.get(&chain).map_or(0, count))
    }

    /// Whether the run had ended.
    pub fn has_ended(&self) -> bool {
        self.is_there() && !self.stream.is_growing()
    }

    /// Say what is there of a run that had ended and goes on, of each chain up to a step: if it is killed, what was made before counts.
    pub fn go_on(&self, chains: impl Iterator<Item = (usize, u64)>) -> Result<()> {
        let steps = &self.stream.draws().steps;
        let count = |step| steps.partition_point(|s| *s <= step);
        self.stream
            .go_on(chains.map(|(chain, step)| (chain, count(step))))
    }

    /// Flush what was written.
    pub fn sync(&self) -> Result<()> {
        self.stream.sync()
    }

    /// Take over the draws of some chains from the folder of a shard.
    pub fn merge(&self, shard: &Path, chains: &[usize]) -> Result<()> {
        check_files(shard, None)?;
        let from = Stream::open(&shard.join(FOLDER))?;
        chains.iter().try_for_each(|c| self.stream.take(&from, *c))
    }

    /// Write the parameters of a chain after a step.
    pub fn write(&self, chain: usize, step: u64, w: &[f32]) -> Result<()> {
        let Ok(k) = self.stream.draws().steps.binary_search(&step) else {
            return Ok(());
        };
        let mut ranges = self.ranges.iter().enumerate();
        ranges.try_for_each(|(t, range)| self.stream.write(t, chain, k, &w[range.clone()]))
    }
}

/// The draws of a run, to be read.
pub struct KeptDraws {
    stream: Stream,
    /// After which steps they were made.
    steps: Vec<u64>,
    /// One of so many is taken.
    apart: usize,
    /// How many of those were made in a burn-in whose end was not known, and count for nothing.
    first: usize,
    /// How many there are of each chain.
    counts: Vec<usize>,
}

impl KeptDraws {
    /// Of a run that keeps some, finished or not.
    pub fn of(run: &Run) -> Result<Self> {
        ensure!(
            run.info.kept.is_some(),
            "run '{}' kept no draws; give it the option keep: {}",
            run.info.name,
            (run.info.steps / 1000).max(1)
        );
        let stream = Stream::open(&run.folder.join(FOLDER))?;
        // Of a run that was thinned the last of every so many are left.
        let apart = run.info.thinned.max(1);
        let every = stream.draws().steps.iter().skip(apart - 1);
        let mut steps: Vec<u64> = every.step_by(apart).copied().collect();
        let first = steps.partition_point(|s| *s <= run.info.burn_in);
        steps.drain(..first);
        let counts = run
            .failures
            .iter()
            .zip(&run.steps)
            .map(|(failed, step)| match failed {
                Some(f) => steps.partition_point(|s| *s < f.step),
                None => steps.partition_point(|s| s <= step),
            });
        let counts: Vec<_> = counts.collect();
        ensure!(
            counts.len() == stream.draws().all_chains(),
            "'{}' is damaged: it has draws of {} chains, and the run {}",
            run.folder.join(FOLDER).display(),
            stream.draws().all_chains(),
            counts.len()
        );
        Ok(Self {
            stream,
            steps,
            apart,
            first,
            counts,
        })
    }

    /// Fail if a file of them is missing or cut off.
    pub(super) fn check_files(&self) -> Result<()> {
        self.stream.check_files(|chain| match self.counts[chain] {
            0 => 0,
            count => self.place(count - 1) + 1,
        })
    }

    /// Which of all draws that were made is the `i`-th of these.
    fn place(&self, i: usize) -> usize {
        (self.first + i + 1) * self.apart - 1
    }

    /// After which steps they were made.
    pub fn steps(&self) -> &[u64] {
        &self.steps
    }

    /// How many there are of a chain.
    pub fn count(&self, chain: usize) -> usize {
        self.counts[chain]
    }

    /// The `i`-th draw of a chain, all parameters.
    ///
    /// # Errors
    /// If there is none, or only some of the tensors were kept.
    pub fn draw(&self, info: &RunInfo, chain: usize, i: usize) -> Result<Vec<f32>> {
        self.check(info, chain, i)?;
        self.chain(info, chain)?.draw(i)
    }

    /// The draws of a chain, to be read one after the other, all parameters.
    ///
    /// # Errors
    /// If only some of the tensors were kept.
    pub fn chain(&self, info: &RunInfo, chain: usize) -> Result<ChainDraws<'_>> {
        let (name, tensors) = (&info.name, self.stream.draws().tensors.len());
        ensure!(
            tensors == info.tensors.len(),
            "run '{name}' kept only {} of its {} tensors; all are needed here (leave out keep_tensors)",
            tensors,
            info.tensors.len()
        );
        Ok(ChainDraws {
            reader: self.stream.reader(chain),
            draws: self,
            tensors,
            parameters: info.parameters,
        })
    }

    /// All draws of one tensor of a chain, one after the other, and its shape.
    ///
    /// # Errors
    /// If it was not kept.
    pub fn tensor(
        &self,
        info: &RunInfo,
        name: &str,
        chain: usize,
    ) -> Result<(Vec<f32>, Vec<usize>)> {
        let tensors = &self.stream.draws().tensors;
        let known = tensors.iter().map(|(n, _)| n.as_str());
        let Some(at) = tensors.iter().position(|(n, _)| n == name) else {
            bail!(
                "run '{}' kept no tensor '{name}'{}",
                info.name,
                did_you_mean(name, known)
            );
        };
        self.check(info, chain, 0)?;
        let (mut reader, mut out) = (self.stream.reader(chain), Vec::new());
        for i in 0..self.counts[chain] {
            reader.read(at, self.place(i), &mut out)?;
        }
        Ok((out, tensors[at].1.clone()))
    }

    fn check(&self, info: &RunInfo, chain: usize, i: usize) -> Result<()> {
        let chains = self.counts.len();
        ensure!(
            chain < chains,
            "run '{}' has {chains} chains, so there is none with index {chain}",
            info.name
        );
        ensure!(
            i < self.counts[chain],
            "chain {chain} of run '{}' has {} draws, so there is none with index {i}",
            info.name,
            self.counts[chain]
        );
        Ok(())
    }
}

/// Remove what there is of draws in the folder of a run that begins: what was there before its first checkpoint may have been of other chains.
pub(super) fn remove(folder: &Path) -> Result<()> {
    let kept = folder.join(FOLDER);
    match kept.exists() {
        true => remove_folder(&kept),
        false => Ok(()),
    }
}

/// Fail if a file with draws that were kept of the run in this folder is missing or cut off. It is read from there, where it has to be, unless it is given.
pub fn check_files(folder: &Path, run: Option<&Run>) -> Result<()> {
    let kept = folder.join(FOLDER);
    if !kept.exists() {
        return Ok(());
    }
    let stream = Stream::open(&kept)?;
    let all = stream.draws().steps.len();
    if stream.check_files(|_| all).is_ok() {
        return Ok(());
    }
    // Of chains that have failed, or are on their way, there are fewer; to know how many, the run has to be read. Without a checkpoint nobody counts on any.
    let of = |run: &Run| match run.info.kept {
        Some(_) => KeptDraws::of(run)?.check_files(),
        None => Ok(()),
    };
    match run {
        Some(run) => of(run),
        None => Run::open(folder).map_or(Ok(()), |run| of(&run)),
    }
}

/// The draws of a chain, one after the other.
pub struct ChainDraws<'a> {
    reader: Reader<'a>,
    draws: &'a KeptDraws,
    tensors: usize,
    parameters: usize,
}

impl ChainDraws<'_> {
    /// The `i`-th draw, all parameters.
    pub fn draw(&mut self, i: usize) -> Result<Vec<f32>> {
        let mut out = Vec::with_capacity(self.parameters);
        for tensor in 0..self.tensors {
            self.reader.read(tensor, self.draws.place(i), &mut out)?;
        }
        Ok(out)
    }
}

impl Run {
    /// The `i`-th draw that was kept of a chain; chains are ordered by temperature, then by number.
    pub fn draw(&self, chain: usize, i: usize) -> Result<Arc<Parameters>> {
        let w = KeptDraws::of(self)?.draw(&self.info, chain, i)?;
        let vectors = vec![Arc::new(w)];
        Ok(Arc::new(Parameters { vectors }))
    }

    /// Mean and standard deviation of each parameter over the draws that were kept at the lowest temperature.
    ///
    /// # Errors
    /// If there are less than ten, or not all tensors were kept.
    pub fn moments(&self) -> Result<[Vec<f32>; 2]> {
        let (info, kept) = (&self.info, KeptDraws::of(self)?);
        let lowest = info.temperatures.iter().enumerate();
        let lowest = lowest.min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |t| t.0);
        let mut sums = vec![[0.0f64; 2]; info.parameters];
        let mut first = Vec::new();
        let mut count = 0u64;
        for chain in lowest * info.chains..(lowest + 1) * info.chains {
            if self.failures[chain].is_some() {
                continue;
            }
            let mut draws = kept.chain(info, chain)?;
            for i in 0..kept.count(chain) {
                let w = draws.draw(i)?;
                if first.is_empty() {
                    first.clone_from(&w);
                }
                for ((sum, w), origin) in sums.iter_mut().zip(&w).zip(&first) {
                    let x = f64::from(*w) - f64::from(*origin);
                    sum[0] += x;
                    sum[1] += x * x;
                }
                count += 1;
            }
        }
        ensure!(
            count >= 10,
            "run '{}' has kept {count} draws at its lowest temperature; mean and spread of every parameter need ten at least: give `keep`",
            info.name
        );
        let n = count as f64;
        let mean = |(s, origin): (&[f64; 2], &f32)| (f64::from(*origin) + s[0] / n) as f32;
        let deviation =
            |s: &[f64; 2]| ((s[1] - s[0] * s[0] / n).max(0.0) / (n - 1.0)).sqrt() as f32;
        Ok([
            sums.iter().zip(&first).map(mean).collect(),
            sums.iter().map(deviation).collect(),
        ])
    }
}
