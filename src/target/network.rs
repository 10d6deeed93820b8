//! A network's mean loss over a data set.

mod by_candle;
pub mod gauss_newton;
pub(crate) mod regression;

use super::workspace::{Shard, blocks, shards, tiles};
use super::{OpenCandle, Potential, Rows, Workspace};
use crate::dataset::{Dataset, Split, Targets};
use crate::error::Result;
use crate::kernels::elementwise::Activation;
use crate::kernels::gemm_baseline::Product;
use crate::kernels::tensor::Program;
use crate::kernels::thread_pool::Team;
use crate::kernels::update::add;
use crate::model::deep_linear::{LearningCoefficient, learning_coefficient};
use crate::model::initialise::{Role, with_normals};
use crate::model::loss::{Loss, RowTargets, Sums, TileTargets};
use crate::model::losses::Chosen;
use crate::model::{self, Block, Layout, Model, Tile};
use crate::rng::Stream;
use by_candle::Elsewhere;
use regression::Regression;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Model, data set and loss.
pub struct Network {
    model: Arc<dyn Model>,
    dataset: Arc<Dataset>,
    loss: Loss,
    /// The parameters of the model, and behind them those of the loss.
    layout: Layout,
    /// Floats that are kept of a row.
    numbers: usize,
    /// What a row counts where rows are shared out: its positions, or as many as what is kept of it is worth.
    work: usize,
    /// The last anchor.
    anchor: Mutex<Option<Arc<Anchor>>>,
    /// Where candle computes the model, if that is another device.
    elsewhere: Option<Elsewhere>,
    /// What the loss depends on, if it is a deep linear network that was asked for it.
    regression: OnceLock<Regression>,
}

/// Floats of a row that make it count as two: images of many channels, not rows of dense layers.
const HEAVY: usize = 1 << 14;

/// Outputs that are kept at a time where a loss per example is wanted.
const OUTPUTS: usize = 1 << 20;

/// Outputs of a tile of large rows whose losses a thread computes at a time.
const PART: usize = 1 << 14;

/// The first so many, which are taken off.
fn first<'a, T>(all: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (first, rest) = std::mem::take(all).split_at_mut(count);
    *all = rest;
    first
}

/// Add the sums of the parts of a tile, in their order, and their slopes to the gradient of the loss's own parameters.
fn add_in_order(
    parts: impl Iterator<Item = (Vec<f64>, Result<Sums>)>,
    total: &mut Sums,
    own_grad: &mut [f32],
) -> Result<()> {
    for (slopes, sums) in parts {
        *total += sums?;
        let each = own_grad.iter_mut().zip(slopes);
        each.for_each(|(g, s)| *g += s as f32);
    }
    Ok(())
}

/// A point, and what a pass over all training rows gives there.
struct Anchor {
    w: Vec<f32>,
    gradient: Vec<f32>,
    sums: Sums,
}

/// What an accelerator needs of a network.
pub struct Accelerated {
    /// From inputs to outputs.
    pub program: Program,
    /// Positions of a row.
    pub positions: usize,
    /// The data.
    pub dataset: Arc<Dataset>,
    /// The loss.
    pub loss: Loss,
    /// Where the loss's own parameters are.
    pub own: Range<usize>,
    /// Where only some parameters move: where each part of them is, by itself and among all, and all of them.
    pub free: Option<Free>,
}

/// Parameters of which only some move.
pub struct Free {
    /// Where the parts are in the vector of those that move, and among all.
    pub parts: Vec<(Range<usize>, Range<usize>)>,
    /// All of them.
    pub fixed: Arc<Vec<f32>>,
}

/// What a pass over rows is for.
struct Job<'a> {
    w: &'a [f32],
    split: &'a Split,
    rows: Rows<'a>,
    /// Whether gradients are wanted, or only losses.
    gradient: bool,
    /// Whether a shard is one thread's work.
    apart: bool,
    /// What no row changes.
    shared: Arc<Vec<f32>>,
}

impl Job<'_> {
    /// The inputs of a block of the tile that begins with this row.
    fn gather(&self, first: usize, block: &mut Block) {
        let at = first + block.first..first + block.first + block.rows;
        match self.rows {
            Rows::All => self.split.copy(at, block.inputs),
            Rows::Indices(i) => self.split.gather(&i[at], block.inputs),
        }
    }
}

impl Network {
    /// Put them together; an error says which sizes do not fit.
    pub fn new(model: Arc<dyn Model>, dataset: Arc<Dataset>, loss: Option<Loss>) -> Result<Self> {
        Self::with_loss(model, dataset, loss.map(Chosen::Known).as_ref())
    }

    /// The same with a loss that may be a formula.
    pub fn with_loss(
        model: Arc<dyn Model>,
        dataset: Arc<Dataset>,
        loss: Option<&Chosen>,
    ) -> Result<Self> {
        anyhow::ensure!(
            model.inputs() == dataset.dim,
            "the model takes {} inputs, but '{}' has {} components per example{}",
            model.inputs(),
            dataset.name,
            dataset.dim,
            match model.vocabulary() {
                Some(_) => "; give the model `context: data.dim`",
                None => "",
            }
        );
        let what = if dataset.classes > 0 {
            "classes"
        } else {
            "target components"
        };
        let positions = model.positions();
        anyhow::ensure!(
            positions == dataset.positions(),
            "the model answers at {positions} positions of a row, but '{}' has {} targets per row",
            dataset.name,
            dataset.positions()
        );
        anyhow::ensure!(
            model.outputs() == dataset.outputs || matches!(loss, Some(Chosen::Written { .. })),
            "the model has {} outputs, but '{}' has {} {what}{}",
            model.outputs() / positions,
            dataset.name,
            dataset.outputs / positions,
            match model.vocabulary() {
                Some(n) => format!(
                    "; give the data set `vocabulary: {n}`, or the model `vocabulary: data.classes`"
                ),
                None => String::new(),
            }
        );
        if let Some(known) = model.vocabulary() {
            dataset.check_tokens(known)?;
        }
        let default = if dataset.classes > 0 {
            Loss::CrossEntropy
        } else {
            Loss::SquaredError
        };
        let loss = match loss {
            Some(chosen) => chosen.on(model.outputs() / positions, &dataset)?,
            None => default,
        };
        anyhow::ensure!(
            dataset.classes > 0 || loss != Loss::CrossEntropy,
            "loss \"cross_entropy\" needs classes, but '{}' has real targets; use \"squared_error\"",
            dataset.name
        );
        if let Some(n) = dataset.likelihood_n {
            anyhow::ensure!(
                loss == Loss::SquaredError && is_linear(&*model),
                "'{}' has the second moments of {n} examples, which is enough for \"squared_error\" of a deep linear network only, not for {}",
                dataset.name,
                model.describe()
            );
        }
        let w = model.widths();
        let layers = w.activations.iter().chain(&w.before).chain(&w.deltas);
        let numbers = model.inputs() + layers.sum::<usize>() + w.memory;
        Ok(Self {
            numbers,
            work: match positions {
                1 => (numbers / HEAVY).max(1),
                _ => positions,
            },
            layout: model
                .layout()
                .clone()
                .and(loss.parameters().iter().cloned())?,
            model,
            dataset,
            loss,
            anchor: Mutex::new(None),
            elsewhere: None,
            regression: OnceLock::new(),
        })
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// The data set.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// The loss.
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// Sums over rows of any split; `rows` of `Indices` count within that split.
    pub fn sums_over(
        &self,
        w: &[f32],
        split: &Split,
        rows: Rows,
        grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        let count = match rows {
            Rows::All => split.rows,
            Rows::Indices(i) => i.len(),
        };
        let gradient = grad.is_some();
        if gradient {
            work.rows += count as u64;
        }
        let grad = grad.unwrap_or_default();
        if let Some(there) = &self.elsewhere {
            let wanted = gradient.then_some(grad);
            return self.sums_elsewhere(there, w, (split, rows, count), wanted, work);
        }
        let ranges: Vec<_> = shards(count, self.work, w.len()).collect();
        let job = Job {
            w,
            split,
            rows,
            gradient,
            apart: ranges.len() > 1,
            shared: self.shared(w),
        };
        let mut total = Sums::default();
        if ranges.len() == 1 {
            work.shards(1);
            self.shard(&job, 0..count, &mut work.shards[0], grad, &work.team)?;
            return Ok(work.shards[0].sums);
        }
        if work.team.size() == 1 {
            let shard = &mut work.shards(1)[0];
            for (k, range) in ranges.into_iter().enumerate() {
                self.shard_apart(&job, range, shard, grad.len())?;
                total += shard.sums;
                match k {
                    0 => grad.copy_from_slice(&shard.grad),
                    _ => add(grad, &shard.grad),
                }
            }
            return Ok(total);
        }
        work.shards(ranges.len());
        let used = &mut work.shards[..ranges.len()];
        let mut tasks: Vec<_> = used.iter_mut().zip(ranges).map(|t| (t, Ok(()))).collect();
        work.team.for_each(&mut tasks, |((shard, range), result)| {
            *result = self.shard_apart(&job, range.clone(), shard, grad.len());
        });
        tasks.into_iter().try_for_each(|(_, result)| result)?;
        used.iter().for_each(|s| total += s.sums);
        // Each element adds its shards in order, whichever thread does it.
        work.team.chunks(grad, 1 << 12, |at, out| {
            let at = at..at + out.len();
            out.copy_from_slice(&used[0].grad[at.clone()]);
            used[1..].iter().for_each(|s| add(out, &s.grad[at.clone()]));
        });
        Ok(total)
    }

    /// What no row changes: most models have none of it.
    fn shared(&self, w: &[f32]) -> Arc<Vec<f32>> {
        Arc::new(self.model.shared(self.parts(w).0))
    }

    /// The parameters of the loss, among all.
    pub(crate) fn own_parameters<'w>(&self, w: &'w [f32]) -> &'w [f32] {
        self.parts(w).1
    }

    /// The parameters of the model, and those of the loss; what is behind them belongs to a prior.
    fn parts<'w>(&self, w: &'w [f32]) -> (&'w [f32], &'w [f32]) {
        let (model, rest) = w.split_at(self.model.layout().len());
        let own = self.layout.len() - model.len();
        (model, &rest[..own])
    }

    /// One shard on one thread; its gradient, of `length` numbers, goes into its own buffer.
    fn shard_apart(
        &self,
        job: &Job,
        range: Range<usize>,
        shard: &mut Shard,
        length: usize,
    ) -> Result<()> {
        let mut own = std::mem::take(&mut shard.grad);
        own.resize(length, 0.0);
        let result = self.shard(job, range, shard, &mut own, &Team::default());
        shard.grad = own;
        result
    }

    /// One shard: tile by tile, each in blocks on the threads of the team; the gradient goes into `grad`.
    fn shard(
        &self,
        job: &Job,
        range: Range<usize>,
        shard: &mut Shard,
        grad: &mut [f32],
        team: &Team,
    ) -> Result<()> {
        shard.sums = Sums::default();
        shard.tile.shared = job.shared.clone();
        let positions = self.model.positions();
        let width = job.split.targets.width();
        let (params, own) = self.parts(job.w);
        let (grad, own_grad) = match job.gradient {
            true => grad.split_at_mut(params.len()),
            false => (grad, &mut [] as &mut [f32]),
        };
        own_grad.fill(0.0);
        for (k, range) in tiles(range, self.work, self.numbers, job.apart).enumerate() {
            let (n, first) = (range.len(), range.start);
            let (labels, values) = (&mut shard.labels, &mut shard.values);
            let targets = TileTargets {
                weights: tile_weights(job.split, job.rows, range.clone(), &mut shard.weights),
                of: tile_targets(job.split, job.rows, range, labels, values),
            };
            let count = if job.apart { 1 } else { blocks(n, self.work) };
            let whole = self.model.whole();
            if whole {
                let mut blocks = shard.tile.blocks(&*self.model, n, count, job.gradient);
                team.for_each(&mut blocks, |block| job.gather(first, block));
                self.model
                    .forward_whole(params, &mut shard.tile, job.gradient, team);
                shard.sums += self.whole_loss(own, own_grad, targets, &mut shard.tile, team)?;
                if job.gradient {
                    let tile = &mut shard.tile;
                    self.model.gradient_whole(params, tile, grad, k > 0, team);
                }
                continue;
            }
            let blocks = shard.tile.blocks(&*self.model, n, count, job.gradient);
            let mut tasks: Vec<_> = blocks
                .into_iter()
                .map(|block| {
                    let at = block.first * positions..(block.first + block.rows) * positions;
                    let targets = targets.part(at, positions, width);
                    (targets, block, vec![0.0; own.len()], Ok(Sums::default()))
                })
                .collect();
            team.for_each(&mut tasks, |(targets, block, slopes, sums)| {
                *sums = self.block(job, first, *targets, block, slopes);
            });
            let found = tasks.into_iter().map(|(.., slopes, sums)| (slopes, sums));
            add_in_order(found, &mut shard.sums, own_grad)?;
            if job.gradient {
                self.model
                    .gradient(params, &shard.tile, grad, k > 0, team)?;
            }
        }
        Ok(())
    }

    /// The loss of a tile of large rows, whose positions threads share, and the gradient of its outputs; that of its own parameters is added to `own_grad`.
    fn whole_loss(
        &self,
        own: &[f32],
        own_grad: &mut [f32],
        targets: TileTargets,
        tile: &mut Tile,
        team: &Team,
    ) -> Result<Sums> {
        let (positions, outputs) = (self.model.positions(), self.model.outputs());
        let (columns, count) = (outputs / positions, tile.rows * positions);
        // A part may be of many rows, but not of many and a half.
        let run = if positions == 1 { count } else { positions };
        let step = (PART / columns).clamp(1, run);
        let parts = (0..count).step_by(run).flat_map(|from| {
            let steps = (from..from + run).step_by(step);
            steps.map(move |at| at..(at + step).min(from + run))
        });
        let (Some(values), Some(deltas)) = (tile.activations.last_mut(), tile.deltas.last_mut())
        else {
            anyhow::bail!("loss of rows that no model has computed");
        };
        let mut rest = (&mut values[..], &mut deltas[..], &mut tile.row[..]);
        let apart = usize::from(!rest.1.is_empty());
        let mut tasks: Vec<_> = parts
            .map(|at| {
                let n = at.len();
                let numbers = first(&mut rest.0, n * columns);
                let delta = first(&mut rest.1, apart * n * columns);
                let row = first(&mut rest.2, n);
                let targets = targets.part(at, positions, self.dataset.train.targets.width());
                let slopes = vec![0.0; own.len()];
                (targets, (numbers, delta, row), slopes, Ok(Sums::default()))
            })
            .collect();
        team.for_each(
            &mut tasks,
            |(targets, (numbers, delta, row), slopes, sums)| {
                let sizes = [positions, columns];
                *sums = self
                    .loss
                    .evaluate(own, slopes, *targets, sizes, (numbers, delta), row);
            },
        );
        let found = tasks.into_iter().map(|(.., slopes, sums)| (slopes, sums));
        let mut total = Sums::default();
        add_in_order(found, &mut total, own_grad)?;
        Ok(total)
    }

    /// Everything that is done row by row: gather, forward, loss, backward.
    fn block(
        &self,
        job: &Job,
        first: usize,
        targets: TileTargets,
        block: &mut Block,
        slopes: &mut [f64],
    ) -> Result<Sums> {
        let (params, own) = self.parts(job.w);
        job.gather(first, block);
        self.model.forward(params, block)?;
        let positions = self.model.positions();
        let columns = self.model.outputs() / positions;
        let (Some(outputs), Some(delta)) = (block.activations.last_mut(), block.deltas.last_mut())
        else {
            anyhow::bail!("loss of rows that no model has computed");
        };
        let sizes = [positions, columns];
        let both = (&mut **outputs, &mut **delta);
        let sums = self
            .loss
            .evaluate(own, slopes, targets, sizes, both, block.row)?;
        if job.gradient {
            self.model.backward(params, block)?;
        }
        Ok(sums)
    }

    /// Outputs of the model for the given rows of inputs, `[rows, outputs]`.
    pub fn predict(&self, w: &[f32], split: &Split) -> Result<Vec<f32>> {
        let w = &w[..self.model.layout().len()];
        if let Some(there) = &self.elsewhere {
            return self.outputs_elsewhere(there, w, split);
        }
        let mut tile = Tile {
            shared: Arc::new(self.model.shared(w)),
            ..Tile::default()
        };
        let mut out = Vec::with_capacity(split.rows * self.model.outputs());
        for range in tiles(0..split.rows, self.work, self.numbers, true) {
            let n = range.len();
            let whole = self.model.whole();
            for block in &mut tile.blocks(&*self.model, n, 1, false) {
                split.copy(range.clone(), block.inputs);
                if !whole {
                    self.model.forward(w, block)?;
                }
            }
            if whole {
                self.model
                    .forward_whole(w, &mut tile, false, &Team::default());
            }
            let outputs = tile.activations.last().into_iter().flatten();
            out.extend(outputs.take(n * self.model.outputs()));
        }
        Ok(out)
    }
}

/// Fail unless a device can have the rows of a data set.
///
/// # Errors
/// If they are made or read only when they are needed.
pub fn check_in_memory(dataset: &Dataset) -> Result<()> {
    let here = |s: &Split| s.inputs.in_memory() && !matches!(s.targets, Targets::Made(_));
    match dataset.splits().find(|(_, s)| !here(s)) {
        Some((name, _)) => anyhow::bail!(
            "the rows of '{}' ({name}) are made or read only when they are needed, so no device has them; take --device cpu, or data that are in memory",
            dataset.name
        ),
        None => Ok(()),
    }
}

/// Whether outputs are a matrix times the inputs.
fn is_linear(model: &dyn Model) -> bool {
    let linear = |l: &model::Dense| l.activation == Activation::Identity && l.bias.is_empty();
    model
        .dense()
        .is_some_and(|layers| layers.iter().all(linear))
}

/// The targets of a tile: a slice of the split's own, or gathered into a buffer.
fn tile_targets<'a>(
    split: &'a Split,
    rows: Rows,
    tile: Range<usize>,
    labels: &'a mut Vec<u32>,
    values: &'a mut Vec<f32>,
) -> RowTargets<'a> {
    let positions = split.targets.positions();
    match (&split.targets, rows) {
        (Targets::Classes(all) | Targets::Sequence { labels: all, .. }, Rows::All) => {
            RowTargets::Classes(&all[tile.start * positions..tile.end * positions])
        }
        (Targets::Classes(_) | Targets::Sequence { .. }, Rows::Indices(i)) => {
            labels.resize(tile.len() * positions, 0);
            split.gather_labels(&i[tile], labels);
            RowTargets::Classes(labels)
        }
        (Targets::Values { width, data }, Rows::All) => {
            RowTargets::Values(&data[tile.start * width..tile.end * width])
        }
        (targets, Rows::Indices(i)) => {
            values.resize(tile.len() * targets.width(), 0.0);
            split.gather_values(&i[tile], values);
            RowTargets::Values(values)
        }
        (Targets::Made(law), Rows::All) => {
            values.resize(tile.len() * law.width, 0.0);
            split.copy_values(tile, values);
            RowTargets::Values(values)
        }
    }
}

/// The weights of the rows of a tile, if they have some.
fn tile_weights<'a>(
    split: &'a Split,
    rows: Rows,
    tile: Range<usize>,
    room: &'a mut Vec<f32>,
) -> &'a [f32] {
    match (&split.weights, rows) {
        (None, _) => &[],
        (Some(all), Rows::All) => &all[tile],
        (Some(all), Rows::Indices(i)) => {
            room.clear();
            room.extend(i[tile].iter().map(|i| all[*i as usize]));
            room
        }
    }
}

impl Potential for Network {
    fn describe(&self) -> String {
        format!(
            "{} on '{}', loss {}",
            self.model.describe(),
            self.dataset.name,
            self.loss.name()
        )
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn examples(&self) -> usize {
        self.dataset.train.rows
    }

    fn likelihood_n(&self) -> usize {
        let d = &self.dataset;
        d.likelihood_n.unwrap_or(d.train.rows / d.copies)
    }

    fn sums(
        &self,
        w: &[f32],
        rows: Rows,
        grad: Option<&mut [f32]>,
        work: &mut Workspace,
    ) -> Result<Sums> {
        self.sums_over(w, &self.dataset.train, rows, grad, work)
    }

    fn sums_at_anchor(&self, w: &[f32], grad: &mut [f32], work: &mut Workspace) -> Result<Sums> {
        let lock = || self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        // Not held while the rows are read: chains that run side by side would wait for each other.
        let known = lock().clone().filter(|a| a.w == w);
        if let Some(anchor) = known {
            grad.copy_from_slice(&anchor.gradient);
            return Ok(anchor.sums);
        }
        let sums = self.sums(w, Rows::All, Some(grad), work)?;
        *lock() = Some(Arc::new(Anchor {
            w: w.to_vec(),
            gradient: grad.to_vec(),
            sums,
        }));
        Ok(sums)
    }

    fn splits(&self) -> Vec<&'static str> {
        ["test", "validation"]
            .into_iter()
            .filter(|s| self.dataset.split(s).is_ok())
            .collect()
    }

    fn split_sums(&self, w: &[f32], split: &str, work: &mut Workspace) -> Result<(Sums, usize)> {
        let split = self.dataset.split(split)?;
        Ok((self.sums_over(w, split, Rows::All, None, work)?, split.rows))
    }

    fn example_losses(&self, w: &[f32], split: &str, rows: &[u32]) -> Result<Vec<f64>> {
        let split = self.dataset.split(split)?;
        let columns = self.model.outputs() / self.model.positions();
        let (mut labels, mut values) = (Vec::new(), Vec::new());
        let mut losses = Vec::with_capacity(rows.len() * self.model.positions());
        // Outputs of a few rows at a time: of all, those of a large vocabulary would fill the memory.
        for some in rows.chunks((OUTPUTS / self.model.outputs()).max(1)) {
            let examples = split.select(some);
            let outputs = self.predict(w, &examples)?;
            let all = 0..examples.rows;
            let targets = TileTargets {
                weights: examples.weights.as_deref().map_or(&[], Vec::as_slice),
                of: tile_targets(&examples, Rows::All, all, &mut labels, &mut values),
            };
            losses.extend(
                self.loss
                    .of_each(self.parts(w).1, targets, columns, &outputs)?,
            );
        }
        Ok(losses)
    }

    fn rows_and_positions(&self, split: &str) -> Result<(usize, usize)> {
        anyhow::ensure!(
            self.dataset.likelihood_n.is_none(),
            "a data set compressed to second moments has no single examples; sample on the original data"
        );
        Ok((self.dataset.split(split)?.rows, self.model.positions()))
    }

    fn network(&self) -> Option<&Network> {
        Some(self)
    }

    fn accelerated(&self) -> Result<Accelerated> {
        check_in_memory(&self.dataset)?;
        Ok(Accelerated {
            program: self.model.program()?,
            positions: self.model.positions(),
            dataset: self.dataset.clone(),
            loss: self.loss.clone(),
            own: self.model.layout().len()..self.layout.len(),
            free: None,
        })
    }

    fn by_candle(&self, device: OpenCandle) -> Result<Option<Arc<dyn Potential>>> {
        let Err(reason) = self.model.program() else {
            return Ok(None);
        };
        let device = device().map_err(|e| anyhow::anyhow!("{reason:#}; {e:#}"))?;
        Ok(Some(Arc::new(self.moved(device))))
    }

    fn products(&self) -> Vec<Product> {
        self.model.products()
    }

    fn sizes(&self) -> (usize, usize) {
        let w = self.model.widths();
        let activations: usize = w.activations.iter().sum();
        (
            self.model.inputs() + activations + w.memory,
            self.dataset.bytes(),
        )
    }

    fn learning_coefficient(&self) -> Option<LearningCoefficient> {
        let rank = self.dataset.rank?;
        if !is_linear(&*self.model) || self.loss != Loss::SquaredError {
            return None;
        }
        let layers = self.model.dense()?;
        let widths: Vec<_> = std::iter::once(self.model.inputs())
            .chain(layers.iter().map(|l| l.fan_out))
            .collect();
        learning_coefficient(&widths, rank).ok()
    }

    fn classifies(&self) -> bool {
        let classes = self.dataset.classes;
        // The largest output is the likeliest class only where there is one for each.
        let each = match &self.loss {
            Loss::Formula(f) => f.outputs() == classes,
            _ => true,
        };
        classes > 0 && each
    }

    fn roles(&self) -> Vec<Role> {
        self.model.roles()
    }

    fn fingerprint(&self, hash: &mut crc32fast::Hasher) {
        self.model.fingerprint(hash);
        if let Loss::Formula(f) = &self.loss {
            hash.update(&f.bytes());
        }
        for (name, split) in self.dataset.splits() {
            hash.update(name.as_bytes());
            split.fingerprint(hash);
        }
    }

    fn initialise(&self, stream: Stream) -> Vec<f32> {
        let w = self.model.initialise(stream);
        let own = self.layout.len() - w.len();
        with_normals(w, own, &stream.sub_stream(3))
    }
}
