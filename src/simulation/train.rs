//! Training: optimise parameters, for starting points and as the baseline.

use super::job::{Job, Record, Standing, drive};
use super::optimizer::{EarlyStopping, Optimizer};
use super::resume;
use super::session::{self, Interrupt, Session};
use super::trained::{Trained, weights};
use super::training_state::Course;
use crate::engine::batched::Batched;
use crate::engine::report::Slots;
use crate::error::Result;
use crate::kernels::update::dot;
use crate::memory;
use crate::model::loss::Sums;
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::rng::{Purpose, Stream};
use crate::store;
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint::Tensors;
use crate::target::prior::Parameters;
use crate::target::{Target, Workspace};
use crate::verb::{Call, RESUME, Verb};
use anyhow::Context;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Options of `train(target, optimizer, #{…})`.
pub const OPTIONS: &[Spec] = &[
    option(
        "chains",
        Kind::Int(Range::Between(1.0, 1e6)),
        "1",
        "Independent training runs, from different initial parameters.",
    ),
    optional(
        "start",
        Kind::Object("Parameters"),
        "drawn by the model",
        "Initial parameters.",
    ),
    optional(
        "checkpoints",
        Kind::Ints(Range::NonNegative),
        "none",
        "Epochs after which parameters are written to a file of their own, for `trained.checkpoint(epoch)`; 0 is the start.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed and the name of the training",
        "Seed of this training.",
    ),
    optional(
        "name",
        Kind::Text,
        "train-1, …",
        "Name of the training and of its folder.",
    ),
    RESUME,
];

/// Train `chains` parameter vectors.
pub fn train(
    target: &Target,
    optimizer: &Optimizer,
    o: &Options,
    session: &Session,
) -> Result<Arc<Trained>> {
    let splits = target.potential().splits();
    anyhow::ensure!(
        optimizer.early_stopping == EarlyStopping::Never || splits.contains(&"validation"),
        "train: early_stopping needs a validation split; make one with `validation: 0.15` in the data set's options"
    );
    anyhow::ensure!(
        optimizer.early_stopping != EarlyStopping::Error || target.potential().classifies(),
        "train: early_stopping \"error\" needs classes; use \"loss\""
    );
    let name = session.name_run("train", o.opt_text("name"))?;
    let chains = o.size("chains")?;
    let seed = o
        .opt_int("seed")
        .unwrap_or_else(|| session::seed_of(session.seed, &name));
    let epochs = match session.quick {
        true => optimizer.epochs.min((optimizer.epochs / 10).max(5)),
        false => optimizer.epochs,
    };
    let checkpoints = checkpoints(o, optimizer.epochs, epochs)?;
    let parameters = target.dim() as u128;
    memory::check(
        parameters * chains as u128 * 16 + parameters * 64,
        &format!("'{name}' ({chains} chains of {parameters} parameters)"),
    )?;
    let placed = session.placed(target)?;
    let (target, devices) = (&*placed.target, placed.devices.as_deref());
    let courses = courses(target, o.object("start"), chains, seed)?;
    let columns = columns(target, &splits);
    let what = json!({
        "fingerprint": fingerprint(target, &courses), "checkpoints": checkpoints,
        "target": target.describe(), "optimizer": optimizer.text, "epochs": epochs, "chains": chains, "seed": seed, "columns": columns,
    });
    let trainer = Trainer {
        target,
        optimizer,
        seed,
        n: target.examples(),
        splits,
        epochs,
        interrupt: session.interrupt.clone(),
    };
    let on_devices = |d| Batched::new(d, target, chains, 2, &Slots::NONE);
    let job = Training {
        device: devices.map(on_devices).transpose()?,
        name,
        what,
        courses,
        trainer,
        columns,
        checkpoints,
        share: (session.threads / chains).max(1),
        folder: PathBuf::new(),
    };
    drive(job, session)
}

/// Trainings at their start: at these parameters, in turn, or where the model draws them.
fn courses(
    target: &Target,
    start: Option<Arc<Parameters>>,
    chains: usize,
    seed: u64,
) -> Result<Vec<Course>> {
    anyhow::ensure!(
        start.as_ref().is_none_or(|p| !p.vectors.is_empty()),
        "train: option 'start' holds no parameters"
    );
    let course = |c: usize| {
        let w = match &start {
            Some(p) => (*p.vectors[c % p.vectors.len()]).clone(),
            None => target
                .potential()
                .initialise(Stream::new(seed, Purpose::Initialise, c, 0)),
        };
        anyhow::ensure!(
            w.len() == target.dim(),
            "train: option 'start' has {} parameters, but the model has {}",
            w.len(),
            target.dim()
        );
        Ok(Course::new(w))
    };
    (0..chains).map(course).collect()
}

/// Names of the columns of the history.
fn columns(target: &Target, splits: &[&str]) -> Vec<String> {
    let mut out = vec!["epoch".to_string(), "lr".into(), "loss".into()];
    for split in splits {
        out.push(format!("loss_{split}"));
        if target.potential().classifies() {
            out.push(format!("error_{split}"));
        }
    }
    out
}

/// A checksum of the target and the starts.
fn fingerprint(target: &Target, courses: &[Course]) -> u32 {
    let mut hash = target.hashed();
    let starts = courses.iter().flat_map(|c| &c.w);
    starts.for_each(|x| hash.update(&x.to_le_bytes()));
    hash.finalize()
}

/// A training that goes on.
struct Training<'a> {
    name: String,
    what: Value,
    courses: Vec<Course>,
    trainer: Trainer<'a>,
    /// Where an accelerator trains all chains at once.
    device: Option<Batched<'a>>,
    columns: Vec<String>,
    /// Epochs after which parameters are written.
    checkpoints: Vec<u64>,
    /// Threads per chain.
    share: usize,
    folder: PathBuf,
}

impl Training<'_> {
    /// Epochs that all chains have done.
    fn epoch(&self) -> u64 {
        self.courses.iter().map(|c| c.epoch).min().unwrap_or(0)
    }

    fn keeps_best(&self) -> bool {
        self.trainer.optimizer.early_stopping != EarlyStopping::Never
    }
}

impl Kept for Training<'_> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        self.courses.keep(archive)
    }
}

impl Job for Training<'_> {
    type Output = Arc<Trained>;

    fn name(&self) -> &str {
        &self.name
    }

    fn whose(&self) -> &'static str {
        "this training was"
    }

    fn fingerprint(&self) -> Value {
        self.what.clone()
    }

    fn size(&self) -> (&'static str, u64) {
        ("epochs", self.trainer.epochs * self.courses.len() as u64)
    }

    fn standing(&self) -> Standing {
        let going = |c: &Course| !c.stopped && c.epoch < self.trainer.epochs;
        // The loss of the first one, as of its last epoch.
        let row = self.courses[0].history.rchunks_exact(self.columns.len());
        let loss = self.columns.iter().position(|c| c == "loss");
        let watched = row.clone().next().zip(loss);
        Standing {
            done: self.courses.iter().map(|c| c.epoch).sum(),
            failed: 0,
            more: self.courses.iter().any(going),
            watched: watched.map(|(row, at)| ("loss".into(), row[at])),
            ..Standing::default()
        }
    }

    fn place(&self) -> String {
        format!("at epoch {} of {}", self.epoch(), self.trainer.epochs)
    }

    fn begin(&mut self, folder: &Path, _: &mut Record, _: &Session) -> Result<()> {
        self.folder = folder.into();
        if self.checkpoints.contains(&0) {
            for (i, c) in self.courses.iter().enumerate() {
                let path = weights(folder, i, Some(0));
                write_weights(&path, &self.name, self.trainer.target, &c.w)?;
            }
        }
        Ok(())
    }

    fn restore(&mut self, tensors: Tensors, _: &Value, folder: &Path) -> Result<()> {
        self.folder = folder.into();
        Archive::restore(&mut self.courses, tensors)?;
        check_epochs(&self.courses, &self.checkpoints, folder)
    }

    /// An epoch of every chain.
    fn advance(&mut self, _: Instant) -> Result<()> {
        if let Some(device) = &mut self.device {
            let done = self.trainer.epoch_on(device, &mut self.courses)?;
            let written = |c: &Course| done && !c.stopped && self.checkpoints.contains(&c.epoch);
            for (i, c) in self.courses.iter().enumerate().filter(|c| written(c.1)) {
                let path = weights(&self.folder, i, Some(c.epoch));
                write_weights(&path, &self.name, self.trainer.target, &c.w)?;
            }
            return Ok(());
        }
        let (trainer, share) = (&self.trainer, self.share);
        let courses = self.courses.par_iter_mut().enumerate();
        courses.try_for_each_init(
            || Workspace::new(share),
            |work, (i, c)| {
                let before = c.epoch;
                trainer.epoch(i, c, work)?;
                if c.epoch > before && self.checkpoints.contains(&c.epoch) {
                    let path = weights(&self.folder, i, Some(c.epoch));
                    write_weights(&path, &self.name, trainer.target, &c.w)?;
                }
                Ok(())
            },
        )
    }

    fn finish(self, folder: &Path, record: Record, session: &Session) -> Result<Arc<Trained>> {
        let (reached, best) = (self.epoch(), self.keeps_best());
        let target = self.trainer.target;
        let kept = |c: &Course| if best { c.best_epoch } else { c.epoch };
        let best_epoch = self.courses.iter().map(kept).collect();
        let each = self.courses.into_iter().map(|c| {
            let w = if best { c.best } else { c.w };
            (Arc::new(w), c.history)
        });
        let (vectors, history) = each.unzip();
        let written = self.checkpoints.into_iter().filter(|e| *e <= reached);
        let trained = Trained {
            name: self.name,
            text: self.trainer.optimizer.text.clone(),
            params: Arc::new(Parameters { vectors }),
            columns: self.columns,
            history,
            best_epoch,
            seconds: record.seconds,
            checkpoints: written.collect(),
            target: target.describe(),
            notes: record.notes,
            folder: folder.into(),
            layout: target.layout().clone(),
        };
        resume::saving(write(&trained, target), &trained.folder, session)?;
        Ok(Arc::new(trained))
    }
}

/// Fail unless the parameters after the epochs so far are on disk as they were written: they are not made again.
fn check_epochs(courses: &[Course], epochs: &[u64], folder: &Path) -> Result<()> {
    for (chain, course) in courses.iter().enumerate() {
        for epoch in epochs.iter().filter(|e| **e <= course.epoch) {
            let path = weights(folder, chain, Some(*epoch));
            store::weights::check_weights(&path).with_context(|| {
                format!(
                    "cannot use '{}'; restore it from a backup, or delete '{}' to train afresh",
                    path.display(),
                    folder.display()
                )
            })?;
        }
    }
    Ok(())
}

/// The epochs in the option `checkpoints`, in order; fewer and closer together if `--quick` cut the epochs.
fn checkpoints(o: &Options, asked: u64, epochs: u64) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for epoch in o.floats("checkpoints").unwrap_or_default() {
        anyhow::ensure!(
            epoch <= asked as f64,
            "train: option 'checkpoints' has epoch {epoch}, but there are only {asked} epochs"
        );
        all.push((epoch * epochs as f64 / asked as f64).ceil() as u64);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

pub(super) struct Trainer<'a> {
    pub target: &'a Target,
    pub optimizer: &'a Optimizer,
    seed: u64,
    pub n: usize,
    pub splits: Vec<&'static str>,
    pub epochs: u64,
    pub interrupt: Interrupt,
}

impl Trainer<'_> {
    /// One pass over the examples.
    fn epoch(&self, chain: usize, c: &mut Course, work: &mut Workspace) -> Result<()> {
        if c.stopped || c.epoch >= self.epochs {
            return Ok(());
        }
        let order = self.order(chain, c.epoch);
        let batch = self.optimizer.batch.min(self.n);
        let per_epoch = self.n.div_ceil(batch) as u64;
        let mut grad = vec![0.0; c.w.len()];
        let (mut loss, inverse) = (0.0, (1.0 / self.target.scale()) as f32);
        let before = c.clone();
        for (k, indices) in order.chunks(batch).enumerate() {
            if self.interrupt.interrupted() {
                // Back to the last whole epoch, which is what a checkpoint can hold.
                *c = before;
                return Ok(());
            }
            loss += self
                .target
                .minibatch_gradient(&c.w, indices, &mut grad, work)?
                * indices.len() as f64;
            let step = c.epoch * per_epoch + k as u64 + 1;
            let own = [&mut c.a[..], &mut c.b[..]];
            self.optimizer
                .apply(&mut c.w, own, &grad, (c.epoch, step), inverse);
            self.target.prior().reflect(&mut c.w, None);
        }
        self.note(chain, c, loss / self.n as f64, |w, split| {
            self.target.potential().split_sums(w, split, work)
        })
    }

    /// The examples of an epoch, in their order.
    pub(super) fn order(&self, chain: usize, epoch: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.n as u32).collect();
        order.shuffle(&mut Stream::new(self.seed, Purpose::Train, chain, epoch).rng());
        order
    }

    /// Enter an epoch into the history, and decide whether it was the last; `sums` are those over a split.
    pub(super) fn note(
        &self,
        chain: usize,
        c: &mut Course,
        loss: f64,
        mut sums: impl FnMut(&[f32], &str) -> Result<(Sums, usize)>,
    ) -> Result<()> {
        anyhow::ensure!(
            loss.is_finite() && dot(&c.w, &c.w).is_finite(),
            "train: the loss or a parameter became infinite or NaN in epoch {} of chain {chain}; lower the learning rate",
            c.epoch + 1
        );
        c.history
            .extend([(c.epoch + 1) as f64, self.optimizer.lr.at(c.epoch), loss]);
        c.epoch += 1;
        let mut score = loss;
        for split in &self.splits {
            let (sums, rows) = sums(&c.w, split)?;
            let (loss, error) = (sums.loss / rows as f64, sums.errors / rows as f64);
            c.history.push(loss);
            if self.target.potential().classifies() {
                c.history.push(error);
            }
            if *split == "validation" {
                score = if self.optimizer.early_stopping == EarlyStopping::Error {
                    error
                } else {
                    loss
                };
            }
        }
        if score < c.best_score {
            c.best_score = score;
            c.best_epoch = c.epoch;
            c.best.copy_from_slice(&c.w);
        }
        let waited = c.epoch - c.best_epoch;
        c.stopped = self.optimizer.early_stopping != EarlyStopping::Never
            && waited >= self.optimizer.patience;
        Ok(())
    }
}

fn write_weights(path: &Path, training: &str, target: &Target, w: &[f32]) -> Result<()> {
    let about = [("training".to_string(), training.to_string())];
    store::weights::save_weights(path, &target.layout().views(w), &about)
}

/// Weights and history on disk.
fn write(trained: &Trained, target: &Target) -> Result<()> {
    for (i, w) in trained.params.vectors.iter().enumerate() {
        let path = weights(&trained.folder, i, None);
        write_weights(&path, &trained.name, target, w)?;
    }
    let width = trained.columns.len();
    let rows = |h: &Vec<f64>| -> Vec<Vec<f64>> { h.chunks(width).map(<[f64]>::to_vec).collect() };
    let value = json!({
        "training": trained.name,
        "optimizer": trained.text,
        "target": target.describe(),
        "columns": trained.columns,
        "history": trained.history.iter().map(rows).collect::<Vec<_>>(),
        "best_epoch": trained.best_epoch,
        "notes": trained.notes,
        "timings": { "seconds": trained.seconds },
        "versions": super::run::versions(),
    });
    store::write_json(&trained.folder.join("run.json"), &value)
}

/// The verb `train`.
pub static TRAIN: Verb<Session, (Arc<Target>, Arc<Optimizer>), Arc<Trained>> = Verb {
    name: "train",
    arguments: &["target", "optimizer"],
    options: OPTIONS,
    doc: "Optimise parameters on L + R/s: starting points for samplers, and the baseline they are compared with.\n\n\
         Every epoch's learning rate, mean minibatch loss, and loss and error on the test and validation splits are kept: \
         `trained.history(\"error_test\")`. With early stopping the best parameters on the validation split are kept, otherwise the last.",
    example: "train(target(model::mlp(#{ layers: [64, 10] }), dataset::digits()), optimizer::adam(#{ epochs: 2 }))",
    call: Call::Checked(|(target, optimizer), o, session| train(&target, &optimizer, o, session)),
};
