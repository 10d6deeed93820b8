//! A training in progress, and its checkpoint.

use crate::error::Result;
use crate::store::archive::{Archive, Kept};

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
            archive.grows(&format!("history.{i}"), &mut c.history)?;
        }
        Ok(())
    }
}
