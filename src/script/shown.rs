//! Values as an interactive session shows them: text, tables as HTML, figures as SVG.

use super::binder::Binder;
use super::words::a_kind;
use super::{Bound, Interpreter, OrRaise as _, Value, kinds, raise};
use crate::error::count;
use crate::object::Shown;
use crate::table::Table;
use anyhow::anyhow;
use rhai::{Array, Dynamic, ImmutableString, Map, NativeCallContext};
use std::sync::Arc;

/// Elements of an array, and rows of a table, of which more are not shown; how many are shown then.
const MOST: usize = 100;
const FIRST: usize = 20;

/// The same for characters of a string, and for those of the cell of a table.
const LONG: usize = 10_000;
const BEGINNING: usize = 1_000;
const CELL: usize = 80;

pub(super) fn bind(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "display(value)",
        "Show a value at once, as an interactive session shows the last one of an input: figures and tables in a notebook, both as text on a terminal.",
        move |native: NativeCallContext, value: Dynamic| {
            if context.session.leads() {
                let shown = shown(&value, &|x| written(&native, x));
                context.spent.say(shown.text.len());
                context.session.console.show(&shown);
            }
        },
    )
    .with(&[], "display(plot::curve([1, 2, 3], [1.0, 4.0, 9.0]))");
    b.function(
        "table(columns, rows) -> Display",
        "A table with these columns, in this order, to be shown or printed.\n\n\
         A row is an array with a value for each column, or a map, of which the entries with the names of the columns are taken. Maps alone are shown as tables too, but with their names sorted.",
        |native: NativeCallContext, columns: Array, rows: Array| -> Bound<Arc<Shown>> {
            let write = |x: &Dynamic| written(&native, x);
            let mut table = Table::new(columns.iter().map(&write));
            for (k, row) in rows.iter().take(shown_of(rows.len())).enumerate() {
                table.push(cells(&table.header, row, k, &write)?);
            }
            table.below.extend(cut(rows.len(), " rows"));
            Ok(Arc::new(Shown::table(&table)))
        },
    )
    .with(&[], "table([\"step\", \"error\"], [[0.1, 0.02], #{ step: 0.2, error: 0.05 }])");
    b.function(
        "markdown(text) -> Display",
        "Text in Markdown, which a notebook shows with its headings, lists and formulas, and a terminal as it is.",
        |text: &str| Arc::new(Shown { markdown: Some(text.into()), ..Shown::text(text) }),
    )
    .with(&[], "markdown(\"**Result**: the sampler is exact.\")");
    b.function(
        "html(text) -> Display",
        "A piece of HTML, which a notebook shows as such, and a terminal as it is.",
        |text: &str| {
            Arc::new(Shown {
                html: Some(text.into()),
                ..Shown::text(text)
            })
        },
    )
    .with(&[], "html(\"<b>Result</b>: the sampler is exact.\")");
    let context = b.context.clone();
    b.defaulted(
        "clear_output(wait)",
        "Remove what the cell of a notebook has shown so far; with `true`, only when it shows something new, so that an animation does not flicker. A terminal keeps it.",
        false,
        move |wait: bool| {
            if context.session.leads() {
                context.session.console.clear(wait);
            }
        },
    )
    .with(&[], "clear_output()");
    let context = b.context.clone();
    b.defaulted(
        "input(prompt) -> string",
        "Ask whoever runs the session for a line of text. A script that is to run unattended takes values by `param` instead.",
        ImmutableString::default(),
        move |prompt: ImmutableString| -> Bound<String> {
            context.spent.say(prompt.len());
            context.session.console.ask(&prompt).or_raise()
        },
    )
    .with(&[], "let ask = || input(\"temperature? \").parse_float();");
}

/// A value as `print` shows it.
fn written(native: &NativeCallContext, x: &Dynamic) -> String {
    let said = native.call_fn::<String>("to_string", (x.clone(),));
    said.unwrap_or_else(|_| x.to_string())
}

/// The cells of a row that a script gives.
fn cells(columns: &[String], row: &Dynamic, at: usize, write: Write) -> Bound<Vec<String>> {
    if let Some(map) = row.read_lock::<Map>() {
        let of = |name: &String| map.get(name.as_str());
        let text = |name| of(name).map_or(String::new(), |x| cell(x, write));
        return Ok(columns.iter().map(text).collect());
    }
    let wanted = columns.len();
    let Some(list) = row.read_lock::<Array>() else {
        let kind = a_kind(row.type_name());
        return Err(raise(anyhow!(
            "table: rows[{at}] is {kind}, but a row is an array of {wanted} values or a map"
        )));
    };
    match list.len() == wanted {
        true => Ok(list.iter().map(|x| cell(x, write)).collect()),
        false => Err(raise(anyhow!(
            "table: rows[{at}] has {} for {}",
            count(list.len(), "value"),
            count(wanted, "column")
        ))),
    }
}

/// How many of so many are shown.
fn shown_of(count: usize) -> usize {
    if count > MOST { FIRST } else { count }
}

/// That they are not all.
fn cut(count: usize, what: &str) -> Option<String> {
    (count > MOST).then(|| format!("… {}{what} in all", grouped(count)))
}

/// A number with commas: 20,000.
fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
        Some(object) => Shown {
            text: crate::error::printable(&write(value)).into(),
            ..object
        },
        None => match table(value, write) {
            Some(table) => Shown::table(&table),
            None => Shown::text(crate::error::printable(&brief(value, write))),
        },
    }
}

/// A value as `print` shows it, or the beginning of it and its length if it is long.
fn brief(value: &Dynamic, write: Write) -> String {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        let count = text.chars().count();
        if count > LONG {
            let beginning: String = text.chars().take(BEGINNING).collect();
            return format!("{beginning}\n… {} characters in all", grouped(count));
        }
    }
    if let Some(list) = value.read_lock::<Array>() {
        let deep = list.iter().any(|x| x.is_array() || x.is_map());
        if deep || list.len() > MOST {
            return listed(&list, write, &|x| write(x));
        }
    }
    write(value)
}

/// An array in one line.
fn listed(list: &Array, write: Write, number: Write) -> String {
    let all = list.iter().take(shown_of(list.len()));
    let items: Vec<_> = all.map(|x| within(x, write, number)).collect();
    let more = cut(list.len(), "").map(|text| format!(", {text}"));
    format!("[{}{}]", items.join(", "), more.unwrap_or_default())
}

/// A value in one line.
fn inline(value: &Dynamic, write: Write, number: Write) -> String {
    if let Some(list) = value.read_lock::<Array>() {
        return listed(&list, write, number);
    }
    if let Some(map) = value.read_lock::<Map>() {
        let one = |(name, x): (&_, &Dynamic)| format!("{name}: {}", within(x, write, number));
        let items: Vec<_> = map.iter().map(one).collect();
        return format!("#{{ {} }}", items.join(", "));
    }
    match value.is_float() {
        true => number(value),
        false => write(value),
    }
}

/// The same within an array or a map: strings have quotes.
fn within(value: &Dynamic, write: Write, number: Write) -> String {
    match value.read_lock::<ImmutableString>() {
        Some(text) => format!("{:?}", text.as_str()),
        None => inline(value, write, number),
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
    let maps = list.iter().take(shown_of(list.len()));
    let maps: Option<Vec<_>> = maps.map(|x| x.read_lock::<Map>()).collect();
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
    out.below.extend(cut(list.len(), " rows"));
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
    let number = |x: &Dynamic| x.as_float().map_or_else(|_| write(x), short);
    let text = inline(value, write, &number);
    match text.char_indices().nth(CELL) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
