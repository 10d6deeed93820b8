//! A training in progress, and its checkpoint.

use super::job::Record;
use super::resume::shown_older;
use super::train::Trained;
use crate::error::Result;
use crate::model::Layout;
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint;
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

impl Course {
    /// One that starts here.
    pub fn new(w: Vec<f32>) -> Self {
        Self {
            a: vec![0.0; w.len()],
            b: vec![0.0; w.len()],
            best: w.clone(),
            w,
            history: Vec::new(),
            best_score: f64::INFINITY,
            best_epoch: 0,
            epoch: 0,
            stopped: false,
        }
    }
}

impl Kept for Vec<Course> {
    fn keep<'a>(&'a mut self, archive: &mut Archive<'a>) -> Result<()> {
        for (i, c) in self.iter_mut().enumerate() {
            archive.made(
                &format!("numbers.{i}"),
                c,
                |c| {
                    let stopped = f64::from(u8::from(c.stopped));
                    vec![c.best_score, c.best_epoch as f64, c.epoch as f64, stopped]
                },
                |c, found| {
                    let [score, best, epoch, stopped] = found[..] else {
                        anyhow::bail!("the checkpoint's 'numbers.{i}' are not four");
                    };
                    (c.best_score, c.best_epoch) = (score, best as u64);
                    (c.epoch, c.stopped) = (epoch as u64, stopped > 0.0);
                    Ok(())
                },
            )?;
            let vectors = [
                ("w", &mut c.w),
                ("a", &mut c.a),
                ("b", &mut c.b),
                ("best", &mut c.best),
            ];
            for (kind, v) in vectors {
                archive.list(&format!("{kind}.{i}"), v)?;
            }
            archive.list(&format!("history.{i}"), &mut c.history)?;
        }
        Ok(())
    }
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
        let mut courses: Vec<_> = (0..chains).map(|_| Course::new(Vec::new())).collect();
        let Record {
            mut notes, seconds, ..
        } = Record::of(&saved.meta);
        Archive::restore(&mut courses, saved.tensors)?;
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
