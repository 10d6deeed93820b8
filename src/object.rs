//! Objects: what verbs and constructors return and scripts hold, each described once, beside its type.
//!
//! An [`Object`] says what its type is called, how it prints, what it is made of, and which table it is. Scripts hold it in a shared form,
//! [`Held`], mostly `Arc<T>`. What binds types to scripts, shows them in notebooks or takes them as options asks these two traits; the list of
//! all types is [`registry`](crate::registry).

use crate::options::Value;
use crate::plot::Figure;
use crate::schedule::Schedule;
use crate::table::{Table, number};
use crate::trigger::Trigger;
use serde_json::Value as Json;
use std::any::Any;
use std::sync::Arc;

/// Columns of a figure drawn with characters.
const COLUMNS: usize = 80;

/// Rows of numbers, and numbers of a row, of which more are not shown.
pub(crate) const ROWS: usize = 20;
const CELLS: usize = 12;

/// A value in all the ways it can be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// For a terminal.
    pub text: String,
    /// For a notebook: tables and figures.
    pub html: Option<String>,
    /// For a notebook: a figure.
    pub svg: Option<String>,
    /// For a notebook: an explanation.
    pub markdown: Option<String>,
}

impl Shown {
    /// Plain text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A table, as text and as HTML.
    pub fn table(table: &Table) -> Self {
        Self {
            html: Some(table.to_html()),
            ..Self::text(table.to_string())
        }
    }

    /// Rows of numbers, the beginning of them if there are many.
    pub fn matrix(what: &str, rows: &[Vec<f64>]) -> Self {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cut = |row: &Vec<f64>| {
            let mut cells: Vec<String> = row.iter().take(CELLS).map(|x| number(*x)).collect();
            if row.len() > CELLS {
                cells.push("…".into());
            }
            cells
        };
        let mut cells: Vec<_> = rows.iter().take(ROWS).map(cut).collect();
        if rows.len() > ROWS {
            cells.push(vec!["⋮".into()]);
        }
        let lines: Vec<String> = cells
            .iter()
            .map(|row| format!("[{}]", row.join(", ")))
            .collect();
        let mut titles: Vec<String> = (0..width.min(CELLS)).map(|k| k.to_string()).collect();
        if width > CELLS {
            titles.push("…".into());
        }
        let mut table = Table::new(titles).line_above(what);
        table.rows = cells;
        Self {
            text: format!("{what}\n{}", lines.join("\n")),
            ..Self::table(&table)
        }
    }

    /// Its formats by MIME type.
    pub fn formats(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("text/plain", Some(&self.text)),
            ("text/html", self.html.as_ref()),
            ("image/svg+xml", self.svg.as_ref()),
            ("text/markdown", self.markdown.as_ref()),
        ];
        let there = all.into_iter().filter_map(|(m, t)| Some((m, t?.as_str())));
        there.collect()
    }

    /// As evcxr's protocol has it: what a cell prints between these marks is shown in the notebook.
    pub fn evcxr(&self) -> String {
        let block = |(mime, text): (&str, &str)| {
            let text = text.trim_end_matches('\n');
            format!("EVCXR_BEGIN_CONTENT {mime}\n{text}\nEVCXR_END_CONTENT\n")
        };
        self.formats().into_iter().map(block).collect()
    }
}

/// A property of an object: its name, and what it is.
pub(crate) type Field<T> = (&'static str, fn(&T) -> Value);

/// The method that takes an object apart.
#[derive(Debug, Clone, Copy)]
pub struct Entries {
    /// Its signature: `ladder.to_map() -> map`.
    pub method: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// What messages call the object, if single entries are read as `object["name"]` too.
    pub index: Option<&'static str>,
}

/// The first text, if there is one.
pub(crate) const fn first(texts: &[&'static str]) -> Option<&'static str> {
    match texts {
        [first, ..] => Some(first),
        [] => None,
    }
}

/// What a verb or a constructor returns.
pub trait Object: Any + Send + Sync {
    /// Name of the type, as scripts and messages call it.
    const NAME: &'static str;

    /// Properties, which a script reads as `object.name`.
    const FIELDS: &'static [Field<Self>] = &[];

    /// The method that gives [`to_json`](Self::to_json), if there is one.
    const ENTRIES: Option<Entries> = None;

    /// The text that `print` shows.
    fn text(&self) -> String;

    /// All numbers and texts that it is made of.
    fn to_json(&self) -> Json {
        Json::Null
    }

    /// The value of a script that ends with it, in run.json and by `--json`.
    fn result(&self) -> Json {
        Json::String(crate::error::printable(&self.text()).into())
    }

    /// The table that a notebook shows.
    fn table(&self) -> Option<Table> {
        None
    }

    /// What a notebook shows below the table, as HTML.
    fn drawing(&self) -> Option<String> {
        None
    }

    /// The value that options see in its place, as parameters in the place of a training.
    fn as_option(&self) -> Option<Value> {
        None
    }

    /// It in all the ways it can be shown.
    fn shown(&self) -> Shown {
        let table = self.table().map(|t| t.to_html());
        let parts: Vec<String> = table.into_iter().chain(self.drawing()).collect();
        Shown {
            html: (!parts.is_empty()).then(|| parts.concat()),
            ..Shown::text(self.text())
        }
    }
}

/// The form in which scripts hold objects: cheap to clone.
pub trait Held: Any + Clone + Send + Sync {
    /// The object.
    type Object: Object + ?Sized;

    /// The object.
    fn object(&self) -> &Self::Object;

    /// The object as a value, which [`from_any`](Self::from_any) takes back.
    fn held(&self) -> Value;

    /// What [`held`](Self::held) gave; none if it is of another type.
    fn from_any(x: &Arc<dyn Any + Send + Sync>) -> Option<Self>;

    /// The value that options see.
    fn value(&self) -> Value {
        self.object().as_option().unwrap_or_else(|| self.held())
    }
}

impl<T: Object> Held for Arc<T> {
    type Object = T;

    fn object(&self) -> &T {
        self
    }

    fn held(&self) -> Value {
        Value::Object(self.clone(), T::NAME)
    }

    fn from_any(x: &Arc<dyn Any + Send + Sync>) -> Option<Self> {
        x.clone().downcast().ok()
    }
}

/// Forms that are no `Arc` of a sized type: how to get at the object.
macro_rules! held {
    ($form:ty => $object:ty, $get:expr) => {
        impl $crate::object::Held for $form {
            type Object = $object;

            fn object(&self) -> &Self::Object {
                let get: fn(&Self) -> &Self::Object = $get;
                get(self)
            }

            fn held(&self) -> $crate::options::Value {
                let name = <$object as $crate::object::Object>::NAME;
                $crate::options::Value::Object(std::sync::Arc::new(self.clone()), name)
            }

            fn from_any(x: &std::sync::Arc<dyn std::any::Any + Send + Sync>) -> Option<Self> {
                x.downcast_ref::<Self>().cloned()
            }
        }
    };
}

pub(crate) use held;

impl<T: ?Sized> From<Arc<T>> for Value
where
    Arc<T>: Held,
{
    fn from(x: Arc<T>) -> Self {
        x.value()
    }
}

impl<T: ?Sized> From<&Arc<T>> for Value
where
    Arc<T>: Held,
{
    fn from(x: &Arc<T>) -> Self {
        x.value()
    }
}

/// Describe a type: its name, then what there is of `text` (how it prints; else by `Display`), `fields`, `entries` (a method of the type that has
/// all of them, the script's method, its documentation, and what messages call the object if it is indexed), `table`, `drawing` and `option`.
macro_rules! object {
    (
        $type:ty: $name:literal
        $(, text: $text:expr)?
        $(, fields: { $($field:literal => $get:expr),* $(,)? })?
        $(, entries: $to_json:ident, $method:literal, $doc:literal $(, $index:literal)?)?
        $(, table: $table:ident)?
        $(, drawing: $drawing:ident)?
        $(, option: $option:expr)?
        $(,)?
    ) => {
        impl $crate::object::Object for $type {
            const NAME: &'static str = $name;

            $(const FIELDS: &'static [$crate::object::Field<Self>] = &[$(($field, $get)),*];)?

            $(const ENTRIES: Option<$crate::object::Entries> = Some($crate::object::Entries {
                method: $method,
                doc: $doc,
                index: $crate::object::first(&[$($index)?]),
            });

            fn to_json(&self) -> serde_json::Value {
                self.$to_json().into()
            })?

            fn text(&self) -> String {
                $crate::object::object!(@text self $(, $text)?)
            }

            $(fn table(&self) -> Option<$crate::table::Table> {
                self.$table().into()
            })?

            $(fn drawing(&self) -> Option<String> {
                self.$drawing()
            })?

            $(fn as_option(&self) -> Option<$crate::options::Value> {
                let option: fn(&Self) -> $crate::options::Value = $option;
                Some(option(self))
            })?
        }
    };
    (@text $self:ident, $text:expr) => {{
        let text: fn(&Self) -> String = $text;
        text($self)
    }};
    (@text $self:ident) => {
        $self.to_string()
    };
}
pub(crate) use object;

impl Object for Figure {
    const NAME: &'static str = "Figure";

    fn text(&self) -> String {
        format!(
            "figure '{}' with {} panels; .save(\"name.svg\") writes it",
            self.title,
            self.panels.len()
        )
    }

    fn shown(&self) -> Shown {
        match self.to_svg() {
            Ok(svg) => Shown {
                html: self.to_html().ok(),
                svg: Some(svg),
                ..Shown::text(self.to_text(COLUMNS, false))
            },
            Err(e) => Shown::text(format!("figure '{}': {e:#}", self.title)),
        }
    }
}
held!(Figure => Figure, |x| x);

impl Object for Shown {
    const NAME: &'static str = "Display";

    fn text(&self) -> String {
        self.text.clone()
    }

    fn shown(&self) -> Shown {
        self.clone()
    }
}

object!(Schedule: "Schedule");
object!(Trigger: "Trigger");

impl From<Schedule> for Value {
    fn from(x: Schedule) -> Self {
        Arc::new(x).into()
    }
}

impl From<Trigger> for Value {
    fn from(x: Trigger) -> Self {
        Arc::new(x).into()
    }
}
