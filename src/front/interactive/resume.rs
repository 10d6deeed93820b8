//! Going on with what was interrupted: an input of this session, or the run of an earlier one by its recorded cell.

use super::{Cut, Interactive};
use crate::error::listed;
use crate::script::explore::names::Names;
use crate::script::{Failure, Value, Variables};
use crate::simulation::session::continuing::placed;
use crate::simulation::transcript::{self, Cell};
use anyhow::Context;
use std::path::Path;

impl Interactive {
    /// Let the input that was interrupted last go on: its runs where they were, everything else of it once more. What has happened
    /// since stays: its variables, unless the input has one of that name, and its runs, whose names are not taken again.
    pub(super) fn go_on(&mut self) -> Result<Value, Failure> {
        let Some(Cut { cell, variables }) = self.interrupted.clone() else {
            return Err(Failure::plain(
                "nothing was interrupted in this session; with the folder of a run, as %continue runs/notebook-1/sample-1, one of an earlier \
                 session goes on (`ergodic ls` lists them)"
                    .into(),
            ));
        };
        self.replay(cell, Some(variables))
    }

    /// Let the run in a folder go on, by the cell of this session or of an earlier one that made it.
    pub(super) fn go_on_with(&mut self, run: &Path) -> Result<Value, Failure> {
        let cell = self.cell_of(run);
        let cell = cell.map_err(|e| Failure::plain(format!("continue: {e:#}")))?;
        self.replay(cell, None)
    }

    /// The recorded cell that made a run.
    fn cell_of(&self, run: &Path) -> anyhow::Result<Cell> {
        let shown = run.display();
        let (home, above, name) = placed(run)?;
        let cells = transcript::read(&home).or_else(|e| match transcript::read(run) {
            Ok(cells) => {
                let runs: Vec<_> = cells.iter().flat_map(|c| &c.runs).collect();
                let runs = runs.iter().map(|r| run.join(r).display().to_string());
                let runs: Vec<_> = runs.collect();
                anyhow::bail!(
                    "{shown}: this is the folder of a session; name one of its runs: {}",
                    listed(&runs)
                )
            }
            Err(_) => Err(e),
        })?;
        let made = |c: &Cell| c.within.is_none() && c.runs.contains(&name);
        let at = cells.iter().rposition(made);
        let at = at.with_context(|| {
            let file = home.join(transcript::FILE);
            format!(
                "{}: no cell in this file made the run {shown}",
                file.display()
            )
        })?;
        let interpreter = self.interpreter();
        let missing = missing(&cells, at, &|name| interpreter.defines(name));
        anyhow::ensure!(
            missing.is_empty(),
            "{} of {} made {shown}, and needs what earlier cells make; execute these first, then continue: {}",
            label(&cells, at),
            home.join(transcript::FILE).display(),
            missing.join(", ")
        );
        let mut cell = cells[at].clone();
        let own = interpreter.session().home().canonicalize();
        cell.within = Some(home).filter(|_| own.ok().as_deref() != Some(&*above));
        Ok(cell)
    }

    /// Run a cell once more, with its runs under their names and where they were; the `variables` are those before it.
    fn replay(&mut self, old: Cell, variables: Option<Variables>) -> Result<Value, Failure> {
        let (session, settings, now) = {
            let i = self.interpreter.borrow();
            (i.session().clone(), i.settings(), i.variables_now())
        };
        let mut then = session.replaying(&old);
        let then = then
            .as_mut()
            .map_err(|e| Failure::plain(format!("{e:#}")))?;
        then.resume = true;
        let cell = Cell {
            within: old.within.clone(),
            ..self.cell(&old.file, &old.source)
        };
        {
            let mut i = self.interpreter.borrow_mut();
            i.set_parameters(old.settings.clone());
            i.set_session(then.clone());
            if let Some(variables) = variables {
                i.set_variables(variables.and(&now));
            }
        }
        let cell = Cell {
            seed: old.seed,
            quick: old.quick,
            device: old.device.clone(),
            settings: old.settings.clone(),
            ..cell
        };
        let (result, cell) = self.recorded(cell);
        let mut i = self.interpreter.borrow_mut();
        i.set_parameters(settings);
        i.set_session(session);
        match &result {
            Ok(_) => self.interrupted = None,
            Err(failure) if failure.code == 130 => {}
            Err(_) => i.set_variables(now),
        }
        drop(i);
        if let (Ok(_), true, Some(other)) = (&result, old.failed, &old.within) {
            // A cell that is a comment there reproduces nothing.
            let added = transcript::append(other, cell);
            added.map_err(|e| Failure::plain(format!("{e:#}")))?;
        }
        result
    }
}

/// What messages call a cell: its number in the notebook, or in the transcript.
fn label(cells: &[Cell], at: usize) -> String {
    let file = &cells[at].file;
    match file.starts_with("In [") {
        true => file.clone(),
        false => format!("cell [{}]", at + 1),
    }
}

/// The cells before one that make what it needs and what is not known, in order.
fn missing(cells: &[Cell], at: usize, known: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut needed = Names::of(&cells[at].source).needed;
    needed.retain(|name| !known(name));
    let mut out = Vec::new();
    for k in (0..at).rev().filter(|k| !cells[*k].failed) {
        let names = Names::of(&cells[k].source);
        let makes: Vec<_> = names.made.intersection(&needed).cloned().collect();
        if makes.is_empty() {
            continue;
        }
        needed.retain(|name| !makes.contains(name));
        needed.extend(names.needed.into_iter().filter(|name| !known(name)));
        out.push(format!("{} ({})", label(cells, k), makes.join(", ")));
    }
    out.reverse();
    out
}
