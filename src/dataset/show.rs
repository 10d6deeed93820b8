//! How data sets are shown: what they are, where they come from, and their first rows.

use super::{Dataset, Targets};
use crate::plot;
use crate::table::{Table, number};
use std::fmt::{self, Write};

/// Rows, inputs and targets that are shown.
const ROWS: usize = 5;
const INPUTS: usize = 8;
const TARGETS: usize = 4;

/// Images that are shown, and pixels along the sides of an image that is not too large for that.
const PICTURES: usize = 10;
const PIXELS: usize = 256;

/// Characters of a text that are shown.
const TEXT: usize = 40;

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.with_rows())
    }
}

impl Dataset {
    /// What it is, and below it its first rows.
    pub(super) fn with_rows(&self) -> Table {
        let mut summary = String::new();
        // Writing to a string does not fail.
        let _ = self.summary(&mut summary);
        let mut titles = vec!["row".to_string()];
        let named = self.form.as_deref();
        let (dim, width) = (self.dim, self.train.targets.width());
        match (&self.characters, named.map(super::Form::names)) {
            (Some(_), _) => titles.push("text".into()),
            (None, Some(names)) => titles.extend(names.into_iter().take(INPUTS)),
            (None, None) => titles.extend((0..dim.min(INPUTS)).map(|k| format!("x{k}"))),
        }
        if self.characters.is_none() && dim > INPUTS {
            titles.push("…".into());
        }
        let targets = named.map_or(&[][..], |f| &f.targets);
        let title = |k: usize| match (targets.get(k), width) {
            (Some(name), _) => name.clone(),
            (None, 1) => "y".into(),
            (None, _) => format!("y{k}"),
        };
        titles.extend((0..width.min(TARGETS)).map(title));
        if width > TARGETS {
            titles.push("…".into());
        }
        let rows = self.train.rows.min(ROWS);
        let mut table = Table::new(titles).line_above(summary);
        (0..rows).for_each(|i| table.push(self.cells(i)));
        table.above.push(match self.train.rows > rows {
            true => format!("the first {rows} training rows:"),
            false => "the training rows:".into(),
        });
        table
    }

    /// The first training inputs as small pictures, if they are images.
    pub(super) fn thumbnails(&self) -> Option<String> {
        let (height, width, colours, planes) = match self.shape[..] {
            [h, w] => (h, w, 1, false),
            [c @ (1 | 3), h, w] => (h, w, c, true),
            [h, w, c @ (1 | 3)] => (h, w, c, false),
            _ => return None,
        };
        let sizes = 4..=PIXELS;
        if !sizes.contains(&height) || !sizes.contains(&width) || self.characters.is_some() {
            return None;
        }
        let picture = |row: usize| {
            let x = self.train.shown(row).0;
            let at = |pixel: usize, c: usize| match planes {
                true => x[c * height * width + pixel],
                false => x[pixel * colours + c],
            };
            // Grey is equal parts of all colours.
            let of = |pixel| (0..3).map(move |c| (pixel, c.min(colours - 1)));
            let all = (0..height * width).flat_map(of);
            all.map(|(pixel, c)| at(pixel, c)).collect()
        };
        let pictures: Vec<Vec<f64>> = (0..self.train.rows.min(PICTURES)).map(picture).collect();
        Some(plot::pictures(&pictures, (width, height)))
    }

    /// A training row, in words.
    fn cells(&self, row: usize) -> Vec<String> {
        let (x, y) = self.train.shown(row);
        let mut out = vec![row.to_string()];
        match &self.characters {
            Some(known) => {
                let text: String = x.iter().take(TEXT).map(|t| known[*t as usize]).collect();
                let more = if x.len() > TEXT { "…" } else { "" };
                out.push(format!("{text:?}{more}"));
            }
            None => out.extend(x.iter().take(INPUTS).map(|x| number(*x))),
        }
        if self.characters.is_none() && x.len() > INPUTS {
            out.push("…".into());
        }
        let word = |y: &f64| match (&self.class_names, &self.characters) {
            (Some(names), _) => names[*y as usize].clone(),
            (_, Some(known)) => format!("{:?}", known[*y as usize]),
            _ => number(*y),
        };
        out.extend(y.iter().take(TARGETS).map(word));
        if y.len() > TARGETS {
            out.push("…".into());
        }
        out
    }

    fn summary(&self, f: &mut String) -> fmt::Result {
        let task = match self.classes {
            0 if self.outputs == 1 => "regression".into(),
            0 => format!("regression of {} values", self.outputs),
            k if matches!(self.train.targets, Targets::Sequence { .. }) => {
                format!("{k} classes at each of {} positions", self.positions())
            }
            k => format!("{k} classes"),
        };
        write!(
            f,
            "{}: {} inputs{}, {task}, {}",
            self.name,
            self.dim,
            match self.shape.len() {
                0 | 1 => String::new(),
                _ => format!(" {:?}", self.shape),
            },
            human_bytes(self.bytes())
        )?;
        for (name, s) in self.splits() {
            write!(
                f,
                "\n  {name:<12}{} rows, {}",
                s.rows,
                human_bytes(s.bytes())
            )?;
            let counts = s.class_counts(self.classes);
            match (counts.iter().min(), counts.iter().max()) {
                // A long list of counts helps nobody; its extremes show whether the classes are balanced.
                (Some(low), Some(high)) if counts.len() > 20 => {
                    write!(f, ", {low} to {high} per class")?
                }
                (Some(_), Some(_)) => {
                    let list: Vec<_> = counts.iter().map(usize::to_string).collect();
                    write!(f, ", per class {}", list.join(" "))?
                }
                _ => {}
            }
        }
        for (what, text) in &self.provenance {
            write!(f, "\n  {what:<12}{text}")?;
        }
        Ok(())
    }
}

/// A number of bytes as a person reads it.
fn human_bytes(n: usize) -> String {
    match n as f64 {
        x if x < 1e3 => format!("{n} B"),
        x if x < 1e6 => format!("{:.1} kB", x / 1e3),
        x if x < 1e9 => format!("{:.1} MB", x / 1e6),
        x => format!("{:.2} GB", x / 1e9),
    }
}
