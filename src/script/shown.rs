//! Values as an interactive session shows them: text, tables as HTML, figures as SVG.

use super::binder::Binder;
use super::{Interpreter, Value, kinds};
use crate::object::Shown;
use crate::table::Table;
use rhai::{Array, Dynamic, Map, NativeCallContext};

pub(super) fn bind(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "display(value)",
        "Show a value at once, as an interactive session shows the last one of an input: figures and tables in a notebook, both as text on a terminal.",
        move |native: NativeCallContext, value: Dynamic| {
            let text = |x: &Dynamic| {
                let said = native.call_fn::<String>("to_string", (x.clone(),));
                said.unwrap_or_else(|_| x.to_string())
            };
            if context.session.leads() {
                context.session.console.show(&shown(&value, &text));
            }
        },
    )
    .with(&[], "display(plot::curve([1, 2, 3], [1.0, 4.0, 9.0]))");
}

impl Interpreter {
    /// A value in all the ways it can be shown.
    pub fn shown(&self, value: &Value) -> Shown {
        shown(value, &|x| self.show(x))
    }
}

/// How a value is written.
type Write<'a> = &'a dyn Fn(&Dynamic) -> String;

fn shown(value: &Dynamic, write: Write) -> Shown {
    let object = kinds::of(value).and_then(|known| (known.shown)(value));
    match object {
        Some(figure) if figure.svg.is_some() => figure,
        // What it prints is shorter than what it shows.
        other => Shown {
            text: crate::error::printable(&write(value)).into(),
            html: match other {
                Some(object) => object.html,
                None => table(value, write).map(|t| t.to_html()),
            },
            ..Shown::default()
        },
    }
}

/// The table that an array or a map is, if it is one.
fn table(value: &Dynamic, write: Write) -> Option<Table> {
    if let Some(list) = value.read_lock::<Array>() {
        return of_maps(&list, write);
    }
    let map = value.read_lock::<Map>()?;
    if map.is_empty() {
        return None;
    }
    let mut out = Table::new(["name", "value"]);
    map.iter()
        .for_each(|(k, v)| out.push([k.to_string(), cell(v, write)]));
    Some(out)
}

/// An array of maps as a table with a row for each.
fn of_maps(list: &Array, write: Write) -> Option<Table> {
    let maps: Option<Vec<_>> = list.iter().map(|x| x.read_lock::<Map>()).collect();
    let maps = maps.filter(|m| !m.is_empty())?;
    let mut names: Vec<String> = Vec::new();
    for name in maps.iter().flat_map(|m| m.keys()) {
        if !names.iter().any(|n| n == name.as_str()) {
            names.push(name.to_string());
        }
    }
    let mut out = Table::new(names.clone());
    for map in &maps {
        out.push(names.iter().map(|n| {
            map.get(n.as_str())
                .map_or(String::new(), |x| cell(x, write))
        }));
    }
    Some(out)
}

/// A number to six digits, without zeros at the end.
fn short(x: f64) -> String {
    let text = crate::simulation::summary::with_error(x, f64::NAN);
    let (digits, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
    match digits.contains('.') {
        true => format!(
            "{}{exponent}",
            digits.trim_end_matches('0').trim_end_matches('.')
        ),
        false => text,
    }
}

/// A value in the cell of a table: numbers to six digits.
fn cell(value: &Dynamic, write: Write) -> String {
    match value.as_float() {
        Ok(x) => short(x),
        Err(_) => {
            let text = write(value);
            match text.char_indices().nth(80) {
                None => text,
                Some((at, _)) => format!("{}…", &text[..at]),
            }
        }
    }
}
