//! `ergodic notebook run`: the cells of a notebook one after the other, without a browser.

use super::cells::{Cells, Scripts, Stop};
use super::format::{Notebook, Output};
use super::record;
use crate::error::{Interrupted, Result};
use crate::front::jupyter;
use crate::output;
use crate::simulation::session;
use anyhow::{Context, bail, ensure};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The notebook.
    pub notebook: PathBuf,
    /// Where the notebook goes with its outputs; by default beside it, as NAME.run.ipynb.
    pub out: Option<PathBuf>,
    /// Write into the notebook itself.
    pub in_place: bool,
    /// Seconds that a cell may take.
    pub timeout: Option<f64>,
    /// Say nothing of cells that run well.
    pub quiet: bool,
}

impl Request {
    fn out(&self) -> PathBuf {
        match &self.out {
            Some(out) => out.clone(),
            None if self.in_place => self.notebook.clone(),
            None => self.notebook.with_extension("run.ipynb"),
        }
    }
}

/// Run a notebook and write it with its outputs, those so far if a cell fails. Returns where it is. `on_interrupt` is told what Ctrl-C is
/// to call, where it has to reach another process.
pub fn run(request: &Request, on_interrupt: &dyn Fn(Stop)) -> Result<PathBuf> {
    session::clear_interrupt();
    let is_record = record::is_record(&request.notebook);
    ensure!(
        !is_record || !request.in_place,
        "{}: a record stays as it is; its outputs go into a notebook, which --out can name",
        request.notebook.display()
    );
    let notebook = match is_record {
        true => record::read(&request.notebook)?,
        false => Notebook::read(&request.notebook)?,
    };
    let out = std::path::absolute(request.out())?;
    let file = request.notebook.display().to_string();
    let name = jupyter::session_name(&request.notebook);
    let folder = request
        .notebook
        .parent()
        .filter(|p| !p.as_os_str().is_empty() && !is_record);
    // As in Jupyter, relative paths begin where the notebook is; those of a record where its session was.
    if let Some(folder) = folder {
        std::env::set_current_dir(folder)
            .with_context(|| format!("cannot enter {}", folder.display()))?;
    }
    let mut cells: Box<dyn Cells> = match notebook.language().as_str() {
        "rust" => {
            let cells = rust()?;
            let stop = cells.stop();
            on_interrupt(Arc::new(move || {
                session::interrupt();
                stop();
            }));
            cells.wait()?;
            cells
        }
        "rhai" | "ergodic" => Box::new(Scripts::new(&name)),
        "" => bail!("{file} does not say its language; save it once with a kernel"),
        other => bail!("{file} is in {other}; ergodic runs notebooks in Rhai and in Rust"),
    };
    let result = execute(notebook, &mut *cells, request, |n| n.write(&out));
    result.with_context(|| format!("{file} (its outputs are in {})", out.display()))?;
    Ok(out)
}

#[cfg(feature = "evcxr")]
fn rust() -> Result<Box<dyn Cells>> {
    Ok(Box::new(super::rust::RustCells::start()?))
}

#[cfg(not(feature = "evcxr"))]
fn rust() -> Result<Box<dyn Cells>> {
    bail!(super::WITHOUT_EVCXR)
}

/// Run all cells of a notebook up to the first that fails, and write it after every one.
pub(crate) fn execute(
    mut notebook: Notebook,
    cells: &mut dyn Cells,
    request: &Request,
    write: impl Fn(&Notebook) -> Result<()>,
) -> Result<()> {
    let code = notebook.code();
    notebook.clear();
    for (k, (at, source)) in code.iter().enumerate() {
        let first = source
            .lines()
            .find(|l| !l.trim().is_empty())
            .unwrap_or_default();
        let place = format!("cell {} of {} (\"{}\")", k + 1, code.len(), first.trim());
        if session::interrupted() {
            return Err(Interrupted { what: place }.into());
        }
        let begin = Instant::now();
        let (outputs, late) = within(request.timeout, cells, source);
        let count = u32::try_from(k + 1).unwrap_or(u32::MAX);
        notebook.set_outputs(*at, count, &outputs);
        write(&notebook)?;
        let seconds = begin.elapsed().as_secs_f64();
        if late {
            session::clear_interrupt();
            bail!(
                "{place} took longer than {} s",
                request.timeout.unwrap_or_default()
            );
        }
        let failed = outputs.iter().find_map(|o| match o {
            Output::Error {
                name,
                value,
                traceback,
            } => Some((name, value, traceback)),
            _ => None,
        });
        match failed {
            Some((name, ..)) if name == "Interrupted" => {
                return Err(Interrupted { what: place }.into());
            }
            Some((_, value, traceback)) if !notebook.may_fail(*at) => {
                let lines = match traceback.is_empty() {
                    true => value.clone(),
                    false => output::plain(&traceback.join("\n")),
                };
                bail!("{place} failed:\n{lines}")
            }
            _ if !request.quiet => output::remark(format_args!("{place}: {seconds:.1} s")),
            _ => {}
        }
    }
    if code.is_empty() {
        write(&notebook)?;
    }
    Ok(())
}

/// Run a cell, and ask it to stop once its time is over. Returns whether that was so.
fn within(timeout: Option<f64>, cells: &mut dyn Cells, source: &str) -> (Vec<Output>, bool) {
    let Some(seconds) = timeout else {
        return (cells.execute(source), false);
    };
    let stop = cells.stop();
    let (done, over) = mpsc::channel::<()>();
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let watch = std::thread::spawn(move || {
        let late = over.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        let mut running = late;
        while running {
            stop();
            // Again for those that do not listen at first, or are still being compiled.
            running =
                over.recv_timeout(Duration::from_secs(10)) == Err(mpsc::RecvTimeoutError::Timeout);
        }
        late
    });
    let outputs = cells.execute(source);
    drop(done);
    (outputs, watch.join().unwrap_or(false))
}
