//! A training in progress, and its checkpoint.

use super::resume::shown_older;
use super::train::Trained;
use crate::error::Result;
use crate::model::Layout;
use crate::store::checkpoint::{self, Checkpoint, DataRef, TensorData, TensorRef};
use crate::target::prior::Parameters;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// One training in progress.
#[derive(Clone)]
pub struct Course {
    /// Parameters.
    pub w: Vec<f32>,
    /// The optimiser's first vector.
    pub a: Vec<f32>,
    /// The optimiser's second vector.
    pub b: Vec<f32>,
    /// The best parameters so far.
    pub best: Vec<f32>,
    /// Rows of the history.
    pub history: Vec<f64>,
    /// Score of the best parameters.
    pub best_score: f64,
    /// Their epoch.
    pub best_epoch: u64,
    /// Epochs done.
    pub epoch: u64,
    /// Whether it has stopped early.
    pub stopped: bool,
}

/// Write the courses into a checkpoint of the training's folder.
pub fn save(
    courses: &[Course],
    folder: &Path,
    what: &serde_json::Value,
    notes: &[String],
    done: bool,
    seconds: f64,
) -> Result<()> {
    let numbers = |c: &Course| {
        let stopped = f64::from(u8::from(c.stopped));
        [c.best_score, c.best_epoch as f64, c.epoch as f64, stopped]
    };
    let numbers: Vec<_> = courses.iter().map(numbers).collect();
    let mut tensors = Vec::new();
    for (i, (c, numbers)) in courses.iter().zip(&numbers).enumerate() {
        let all = [
            ("w", c.w.len(), DataRef::F32(&c.w)),
            ("a", c.a.len(), DataRef::F32(&c.a)),
            ("b", c.b.len(), DataRef::F32(&c.b)),
            ("best", c.best.len(), DataRef::F32(&c.best)),
            ("numbers", numbers.len(), DataRef::F64(numbers)),
            ("history", c.history.len(), DataRef::F64(&c.history)),
        ];
        tensors.extend(all.map(|(kind, len, data)| {
            let shape = vec![len];
            (format!("{kind}.{i}"), TensorRef { shape, data })
        }));
    }
    let meta = json!({ "what": what, "notes": notes, "done": done, "seconds": seconds });
    checkpoint::save(&folder.join("checkpoint"), &meta, &tensors)
}

/// The notes in a description that [`save`] or the like wrote.
pub fn notes_of(meta: &Value) -> Vec<String> {
    let all = meta["notes"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(String::from).collect()
}

/// Put back what [`save`] wrote; returns the seconds spent so far.
pub fn restore(courses: &mut [Course], saved: Checkpoint) -> Result<f64> {
    for (name, tensor) in saved.tensors {
        let Some((kind, i)) = name.rsplit_once('.') else {
            continue;
        };
        let Some(c) = i.parse::<usize>().ok().and_then(|i| courses.get_mut(i)) else {
            continue;
        };
        match (kind, tensor.data) {
            ("w", TensorData::F32(x)) => c.w = x,
            ("a", TensorData::F32(x)) => c.a = x,
            ("b", TensorData::F32(x)) => c.b = x,
            ("best", TensorData::F32(x)) => c.best = x,
            ("history", TensorData::F64(x)) => c.history = x,
            ("numbers", TensorData::F64(x)) if x.len() == 4 => {
                (c.best_score, c.best_epoch, c.epoch, c.stopped) =
                    (x[0], x[1] as u64, x[2] as u64, x[3] > 0.0);
            }
            (kind, _) => anyhow::bail!("the checkpoint's '{kind}' has another type than it should"),
        }
    }
    Ok(saved.meta["seconds"].as_f64().unwrap_or(0.0))
}

/// Most trainings side by side.
const MOST: usize = 1_000_000;

impl Trained {
    /// A training from its folder: the newest checkpoint, and whether it is complete; none if the folder is that of something else.
    /// Its parameters are the last ones, and there are no checkpoints of epochs.
    pub fn load(folder: &Path) -> Result<Option<(Self, bool)>> {
        let Some((saved, generation)) = checkpoint::load(&folder.join("checkpoint"))? else {
            return Ok(None);
        };
        let what = saved.meta["what"].clone();
        let text = |key: &str| what[key].as_str().unwrap_or_default().to_string();
        let (Some(columns), Some(chains)) = (what["columns"].as_array(), what["chains"].as_u64())
        else {
            return Ok(None);
        };
        let columns: Vec<_> = columns.iter().filter_map(Value::as_str).collect();
        anyhow::ensure!(
            !columns.is_empty() && (1..=MOST as u64).contains(&chains),
            "{}: the checkpoint has no columns, or an odd number of chains",
            folder.display()
        );
        let columns: Vec<_> = columns.into_iter().map(String::from).collect();
        let done = saved.meta["done"] == json!(true);
        let empty = || Course {
            w: Vec::new(),
            a: Vec::new(),
            b: Vec::new(),
            best: Vec::new(),
            history: Vec::new(),
            best_score: f64::INFINITY,
            best_epoch: 0,
            epoch: 0,
            stopped: false,
        };
        let mut courses: Vec<_> = (0..chains).map(|_| empty()).collect();
        let mut notes = notes_of(&saved.meta);
        let seconds = restore(&mut courses, saved)?;
        let epoch = courses.iter().map(|c| c.epoch).min().unwrap_or(0);
        notes.extend(shown_older(&format!("at epoch {epoch}"), generation));
        // Whether the best or the last epoch was kept, the record says.
        let record = crate::store::read_json::<Value>(&folder.join("run.json"));
        let record = record.unwrap_or_default();
        let kept = |(c, course): (usize, &Course)| {
            let said = record["best_epoch"].get(c).and_then(Value::as_u64);
            said.unwrap_or(course.epoch)
        };
        let best_epoch = courses.iter().enumerate().map(kept).collect();
        let (vectors, history) = courses
            .into_iter()
            .map(|c| (Arc::new(c.w), c.history))
            .unzip();
        let name = folder.file_name().unwrap_or_default();
        let trained = Self {
            name: name.to_string_lossy().into_owned(),
            text: text("optimizer"),
            params: Arc::new(Parameters { vectors }),
            columns,
            history,
            best_epoch,
            seconds,
            checkpoints: Vec::new(),
            target: text("target"),
            notes,
            folder: folder.into(),
            layout: Layout::new([]),
        };
        Ok(Some((trained, done)))
    }
}
