//! What an interactive session needs to know of a script that is being written: what could come next, what a word means, whether it is
//! finished. The REPL and the Jupyter kernel ask the same questions here.

mod complete;
pub mod declarations;
mod inspect;
pub mod layout;
pub mod names;
pub(crate) mod place;
pub mod tokens;

pub use complete::{Completions, Match};

use super::item::Item;
use super::{Interpreter, habits, recipes};
use crate::dataset::Dataset;
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use crate::simulation::trained::Trained;
use place::{Place, place};
use reference::Reference;
use rhai::{Array, Dynamic, ImmutableString, Map, ParseError, ParseErrorType};
use std::sync::Arc;

mod reference;

/// Whether a script can be run as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completeness {
    /// It can, or its error is no missing end.
    Complete,
    /// More has to come, indented by so many steps.
    Incomplete(usize),
    /// It cannot, whatever comes.
    Invalid,
}

/// A variable of a session.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Type, as scripts call it.
    pub kind: String,
    /// Its value in a line.
    pub value: String,
    /// What strings name of it: keys of a map, observables of a run, columns of a training, splits of a data set.
    pub names: Vec<String>,
    /// Whether these are properties too, as the keys of a map are.
    pub indexed: bool,
}

/// Longest value of a variable in a list.
const LINE: usize = 70;

/// Keys of a map that are offered at most.
const KEYS: usize = 1000;

/// What strings name of a value, and whether these are properties too.
fn names(value: &Dynamic) -> (Vec<String>, bool) {
    if let Some(map) = value.read_lock::<Map>() {
        return (
            map.keys().take(KEYS).map(ToString::to_string).collect(),
            true,
        );
    }
    if let Some(summary) = value.read_lock::<Arc<Summary>>() {
        return (summary.to_map().keys().cloned().collect(), true);
    }
    if let Some(run) = value.read_lock::<Arc<Run>>() {
        let columns = run.info.columns.iter();
        return (columns.map(|c| c.name.clone()).collect(), false);
    }
    if let Some(trained) = value.read_lock::<Arc<Trained>>() {
        return (trained.columns.clone(), false);
    }
    let data = value.read_lock::<Arc<Dataset>>();
    let splits = data.iter().flat_map(|d| d.splits());
    (splits.map(|(name, _)| name.into()).collect(), false)
}

impl Interpreter {
    /// The variables, as they were made.
    pub fn variables(&self) -> Vec<Variable> {
        let mut out: Vec<Variable> = Vec::new();
        // From the newest to the oldest; only the newest of a name can be seen.
        for (name, _, value) in self.scope.iter_raw() {
            if out.iter().any(|v| v.name == name) {
                continue;
            }
            let text = self.brief(value);
            let first = text.lines().next().unwrap_or_default();
            let more = text.lines().count() > 1 || first.chars().count() > LINE;
            let cut: String = first.chars().take(LINE).collect();
            let (names, indexed) = names(value);
            out.push(Variable {
                names,
                indexed,
                name: name.into(),
                kind: self.engine.map_type_name(value.type_name()).into(),
                value: if more { format!("{cut}…") } else { cut },
            });
        }
        out.reverse();
        out
    }

    /// A value as `print` shows it, or the beginning of it: arrays may have millions of elements.
    fn brief(&self, value: &Dynamic) -> String {
        let list = |open: &str, close: &str, items: &mut dyn Iterator<Item = String>| {
            let mut out = open.to_string();
            for (k, item) in items.enumerate() {
                out.push_str(if k > 0 { ", " } else { "" });
                if out.len() > 4 * LINE {
                    return out;
                }
                out.push_str(&item);
            }
            out + close
        };
        let item = |x: &Dynamic| match x.read_lock::<ImmutableString>() {
            Some(text) => format!("{:?}", text.chars().take(LINE).collect::<String>()),
            None => self.brief(x),
        };
        if let Some(all) = value.read_lock::<Array>() {
            return list("[", "]", &mut all.iter().map(item));
        }
        if let Some(all) = value.read_lock::<Map>() {
            let mut items = all
                .iter()
                .map(|(k, x)| format!("{:?}: {}", k.as_str(), item(x)));
            return list("#{", "}", &mut items);
        }
        if let Some(text) = value.read_lock::<ImmutableString>() {
            return text.chars().take(LINE + 1).collect();
        }
        self.show(value)
    }

    /// What could stand at `cursor`, in bytes.
    pub fn complete(&self, source: &str, cursor: usize) -> Completions {
        let items = self.items_in(source);
        complete::complete(&self.known(&items, source), source, cursor)
    }

    /// What the word at `cursor`, in bytes, means, as Markdown.
    pub fn inspect(&self, source: &str, cursor: usize) -> Option<String> {
        let items = self.items_in(source);
        inspect::inspect(&self.known(&items, source), source, cursor)
    }

    /// What can be called, with the recipes that the script itself imports.
    fn items_in(&self, source: &str) -> Vec<Item> {
        let mut out = self.known_items().into_owned();
        for (name, alias) in imports(source) {
            if !out.iter().any(|i| i.namespace == alias) {
                let own = recipes::recipe_items().iter();
                let own = own.filter(|i| i.namespace == name);
                out.extend(own.map(|i| i.clone().called(alias)));
            }
        }
        out
    }

    fn known<'a>(&self, items: &'a [Item], source: &str) -> Reference<'a> {
        let mut known = Reference {
            items,
            variables: self.variables(),
        };
        for declared in declarations::declared(source) {
            if known.variable(declared.name).is_none() {
                let kind = declared.made_by.and_then(|made| known.type_of(made));
                known.variables.push(Variable {
                    name: declared.name.into(),
                    kind: kind.unwrap_or_default(),
                    value: String::new(),
                    names: Vec::new(),
                    indexed: false,
                });
            }
        }
        known
    }

    /// The signatures of the function whose call the cursor, in bytes, is in, and which of its arguments that is.
    pub fn signatures(&self, source: &str, cursor: usize) -> (Vec<Item>, usize) {
        let items = self.items_in(source);
        let Some((callee, argument)) = place::call(&tokens::tokens(source), cursor) else {
            return (Vec::new(), 0);
        };
        let known = self.known(&items, source);
        (known.called(callee).cloned().collect(), argument)
    }

    /// Why a script cannot be run in a new session, if it cannot be compiled.
    pub fn completeness_error(&self, source: &str) -> Option<String> {
        self.engine.compile(source).err().map(|e| e.to_string())
    }

    /// Whether more has to be typed before it can run.
    pub fn completeness(&self, source: &str) -> Completeness {
        let depth = open_brackets(source);
        let unfinished = match self.engine.compile_with_scope(&self.scope, source) {
            // An open comment is no error, but what follows would belong to it.
            Ok(_) => ends_within(source),
            Err(e) => match e.err_type() {
                ParseErrorType::UnexpectedEOF => true,
                ParseErrorType::BadInput(_) if ends_within(source) => true,
                _ if self.stays_wrong(source, &e) => return Completeness::Invalid,
                ParseErrorType::BadInput(_) => false,
                _ => depth > 0,
            },
        };
        match unfinished {
            true => Completeness::Incomplete(depth.max(0) as usize),
            false => Completeness::Complete,
        }
    }
    /// Whether what follows cannot mend an error: it is there without the last word already, or at a mark that nothing can change.
    fn stays_wrong(&self, source: &str, e: &ParseError) -> bool {
        let code = habits::code(source);
        let (Some(last), Some(at)) = (code.last(), habits::byte(source, e.position())) else {
            return false;
        };
        if at >= last.start {
            let closes = [")", "]", "}", ";", ","].iter().any(|mark| last.is(mark));
            return at == last.start && closes;
        }
        let shorter = &source[..last.start];
        match self.engine.compile_with_scope(&self.scope, shorter) {
            Err(before) => before.position() == e.position() && before.err_type() == e.err_type(),
            Ok(_) => false,
        }
    }
}

/// What a script imports by a name that it spells out, and as what.
pub fn imports(source: &str) -> Vec<(&str, &str)> {
    let all = tokens::tokens(source);
    let one = |w: &[tokens::Token<'_>]| -> bool {
        let words = w[0].text == "import" && w[2].text == "as";
        words && w[1].kind == tokens::Kind::Text(true) && w[3].kind == tokens::Kind::Name
    };
    let found = all.windows(4).filter(|w| one(w));
    found
        .map(|w| (w[1].text.trim_matches(['"', '`']), w[3].text))
        .collect()
}

/// Whether a string or comment that goes over lines is not closed.
fn ends_within(source: &str) -> bool {
    let open = |t: &tokens::Token| match t.kind {
        tokens::Kind::Comment(closed) => !closed,
        tokens::Kind::Text(closed) => !closed && !t.text.starts_with(['"', '\'']),
        _ => false,
    };
    tokens::tokens(source).last().is_some_and(open)
}

/// Brackets that are still open.
fn open_brackets(source: &str) -> i32 {
    let change = |t: tokens::Token| match t.text {
        _ if t.kind != tokens::Kind::Mark => 0,
        "(" | "[" | "{" | "#{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    };
    tokens::tokens(source).into_iter().map(change).sum()
}

/// Where in the script the cursor is.
fn place_at(source: &str, cursor: usize) -> Place<'_> {
    place(&tokens::tokens(source), cursor)
}
