//! `ergodic check`: what is certainly wrong in a script, found without running it.
//!
//! Names that nothing has, functions of namespaces that are not there, options that no table has, and values that are written out and of
//! another kind than an option takes. What depends on values that are computed is not looked at.

use super::item::Item;
use super::report::{self, Failure};
use super::{Interpreter, calls};
use crate::error::{did_you_mean, nearest};
use crate::options::{Spec, Value, accepts, no_option};
use rhai::{AST, ASTNode, Expr, FnCallExpr, FnPtr, OptimizationLevel, Position, Stmt};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What is wrong, and where.
type Finding = (Position, String);

impl Interpreter {
    /// What is certainly wrong in a script, each with its place, in their order; nothing is run.
    pub fn check(&mut self, file: &str, source: &str) -> Vec<String> {
        let located = |at: Position, text: &str| report::located(file, source, at, text);
        match self.findings(source) {
            Ok(all) => {
                let each = all.into_iter();
                each.map(|(at, text)| located(at, &format!("error: {text}")))
                    .collect()
            }
            Err((at, text)) => vec![Failure::plain(located(at, &text)).message],
        }
    }

    /// The same as lines and columns, which count from 1, and texts. Of a script that cannot be compiled: what has to be mended first.
    pub fn mistakes(&mut self, source: &str) -> Vec<(usize, usize, String)> {
        let found = self.findings(source);
        let found = found.unwrap_or_else(|first| vec![first]).into_iter();
        found
            .map(|(at, text)| (at.line().unwrap_or(1), at.position().unwrap_or(1), text))
            .collect()
    }

    fn findings(&mut self, source: &str) -> Result<Vec<Finding>, Finding> {
        // Maps of constants would be values by then.
        self.engine.set_optimization_level(OptimizationLevel::None);
        let compiled = calls::compile(&self.engine, &self.scope, source, &[]);
        let (ast, moved) = match compiled {
            Ok(both) => both,
            Err(e) => return Err(Failure::syntax(source, &e)),
        };
        let mut known = Known::new(&self.items, &self.engine.gen_fn_signatures(true));
        let captured = captured(&ast);
        for f in ast.iter_functions() {
            known.own.insert(f.name.to_string());
            let own = f
                .params
                .iter()
                .skip(captured.get(f.name).copied().unwrap_or(0));
            known.variables.extend(own.map(ToString::to_string));
        }
        ast.walk(&mut |path: &[ASTNode]| {
            if let Some(ASTNode::Stmt(s)) = path.last() {
                known.declared(s);
            }
            true
        });
        let mut found: BTreeMap<(usize, usize), Finding> = BTreeMap::new();
        let mut note = |(position, text): Finding| {
            let position = moved.original(position);
            let at = (
                position.line().unwrap_or(0),
                position.position().unwrap_or(0),
            );
            found.entry(at).or_insert((position, text));
        };
        ast.walk(&mut |path: &[ASTNode]| {
            match path.last() {
                Some(ASTNode::Expr(Expr::FnCall(x, p)) | ASTNode::Stmt(Stmt::FnCall(x, p))) => {
                    known.call(x, *p).into_iter().for_each(&mut note);
                }
                Some(ASTNode::Expr(Expr::MethodCall(x, p))) => {
                    known.method(x, *p).into_iter().for_each(&mut note);
                }
                Some(ASTNode::Expr(Expr::Variable(x, _, p))) if x.2.is_empty() => {
                    known.variable(&x.1, *p).into_iter().for_each(&mut note);
                }
                _ => {}
            }
            true
        });
        Ok(found.into_values().collect())
    }
}

/// How many of a closure's parameters are variables that it captures: the first ones, which are no declarations.
fn captured(ast: &AST) -> HashMap<String, usize> {
    let mut out = HashMap::new();
    ast.walk(&mut |path: &[ASTNode]| {
        if let Some(ASTNode::Expr(Expr::FnCall(x, _))) = path.last()
            && x.name == "curry"
            && let Some(Expr::DynamicConstant(f, _)) = x.args.first()
            && let Some(f) = f.read_lock::<FnPtr>()
        {
            out.insert(f.fn_name().to_string(), x.args.len() - 1);
        }
        true
    });
    out
}

/// What there is.
struct Known<'a> {
    items: &'a [Item],
    /// Names of functions that are bound.
    native: HashSet<String>,
    namespaces: BTreeSet<&'a str>,
    /// Functions of the script.
    own: HashSet<String>,
    /// Variables, wherever they are declared.
    variables: HashSet<String>,
    /// Names of imported scripts, of which nothing is known.
    imports: HashSet<String>,
}

impl<'a> Known<'a> {
    fn new(items: &'a [Item], signatures: &[String]) -> Self {
        let bare = |s: &String| {
            let head = s.split('(').next().unwrap_or(s);
            head.rsplit("::").next().unwrap_or(head).trim().to_string()
        };
        Self {
            native: signatures
                .iter()
                .map(bare)
                .chain(items.iter().map(|i| i.name.clone()))
                .collect(),
            namespaces: items
                .iter()
                .map(|i| i.namespace.as_str())
                .filter(|n| !n.is_empty())
                .collect(),
            items,
            own: HashSet::new(),
            variables: HashSet::new(),
            imports: HashSet::new(),
        }
    }

    fn declared(&mut self, s: &Stmt) {
        match s {
            Stmt::Var(x, ..) => drop(self.variables.insert(x.0.name.to_string())),
            Stmt::For(x, ..) => {
                let names = [Some(&x.0), x.1.as_ref()];
                self.variables
                    .extend(names.into_iter().flatten().map(|n| n.name.to_string()));
            }
            Stmt::TryCatch(x, ..) => {
                if let Expr::Variable(name, ..) = &x.expr {
                    self.variables.insert(name.1.to_string());
                }
            }
            Stmt::Import(x, ..) => drop(self.imports.insert(x.1.name.to_string())),
            _ => {}
        }
    }

    fn variable(&self, name: &str, position: Position) -> Option<Finding> {
        if self.variables.contains(name) || self.own.contains(name) || name == "global" {
            return None;
        }
        let hint = did_you_mean(
            name,
            self.variables
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
        Some((position, format!("there is no variable '{name}'{hint}")))
    }

    fn call(&self, x: &FnCallExpr, position: Position) -> Vec<Finding> {
        if x.op_token.is_some() {
            return Vec::new();
        }
        let name = x.name.as_str();
        let space: Vec<&str> = x.namespace.path.iter().map(|i| i.name.as_str()).collect();
        if let [first, ..] = space[..] {
            if self.imports.contains(first) || first == "global" {
                return Vec::new();
            }
            if !self.namespaces.contains(first) {
                let hint = did_you_mean(first, self.namespaces.iter().copied().collect::<Vec<_>>());
                return vec![(position, format!("there is no namespace '{first}'{hint}"))];
            }
            let there = || self.items.iter().filter(|i| i.namespace == first);
            if !there().any(|i| i.name == name) {
                let hint = did_you_mean(name, there().map(|i| i.name.as_str()).collect::<Vec<_>>());
                return vec![(
                    position,
                    format!("there is no function '{first}::{name}'{hint}"),
                )];
            }
            return self.options(first, false, x);
        }
        let symbol = !name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if symbol
            || self.own.contains(name)
            || self.variables.contains(name)
            || name.starts_with("anon$")
        {
            return Vec::new();
        }
        if !self.native.contains(name) && !OF_THE_LANGUAGE.contains(&name) {
            let names = self
                .items
                .iter()
                .filter(|i| i.namespace.is_empty() && i.object.is_empty());
            let names = names
                .map(|i| i.name.as_str())
                .chain(self.own.iter().map(String::as_str));
            let hint = did_you_mean(name, names.collect::<Vec<_>>());
            return vec![(position, format!("there is no function '{name}'{hint}"))];
        }
        self.options("", false, x)
    }

    /// A method that is not there, if one of nearly the same name is, and likewise its options: a map may hold closures by any name.
    fn method(&self, x: &FnCallExpr, position: Position) -> Vec<Finding> {
        let name = x.name.as_str();
        let there = [&self.native, &self.own, &self.variables];
        if there.iter().any(|names| names.contains(name)) || OF_THE_LANGUAGE.contains(&name) {
            return self.options("", true, x);
        }
        let methods = self.items.iter().filter(|i| !i.object.is_empty());
        let near = nearest(name, methods.map(|i| i.name.as_str()));
        let near = near.filter(|_| name.len() >= 4);
        let text = |near| format!("there is no method '{name}'; did you mean '{near}'?");
        near.map(|near| (position, text(near)))
            .into_iter()
            .collect()
    }

    /// The options of a call that are written out.
    fn options(&self, space: &str, method: bool, x: &FnCallExpr) -> Vec<Finding> {
        let Some(Expr::Map(map, _)) = x.args.last() else {
            return Vec::new();
        };
        let called = |i: &&Item| {
            i.namespace == space && i.object.is_empty() != method && i.name == x.name.as_str()
        };
        let items: Vec<&Item> = self.items.iter().filter(called).collect();
        let known: Vec<&Spec> = items.iter().flat_map(|i| i.options).collect();
        // Of recipes and verbs that pass options on, nothing is known.
        let Some(path) = items
            .iter()
            .find(|i| !i.options.is_empty())
            .map(|i| i.path())
        else {
            return Vec::new();
        };
        if OPEN.contains(&path.as_str()) {
            return Vec::new();
        }
        let one = |(key, value): &(rhai::Ident, Expr)| {
            let name = key.name.as_str();
            let Some(spec) = known.iter().find(|s| s.name == name) else {
                let near = nearest(name, known.iter().map(|s| s.name));
                let text = no_option(&path, name, known.iter().map(|s| s.name));
                return (!method || near.is_some()).then_some((key.pos, text));
            };
            let wrong = accepts(&literal(value)?, spec).err()?;
            Some((value.position(), format!("{path}: option '{name}' {wrong}")))
        };
        map.0.iter().filter_map(one).collect()
    }
}

/// Functions that are bound nowhere.
const OF_THE_LANGUAGE: [&str; 10] = [
    "Fn",
    "call",
    "curry",
    "eval",
    "is_shared",
    "is_def_var",
    "is_def_fn",
    "type_of",
    "print",
    "debug",
];

/// What takes options of others beside its own.
const OPEN: [&str; 2] = ["target::analytic", "model::custom"];

/// A value that is written out.
fn literal(x: &Expr) -> Option<Value> {
    Some(match x {
        Expr::BoolConstant(b, _) => Value::Bool(*b),
        Expr::IntegerConstant(i, _) => Value::Int(*i),
        Expr::FloatConstant(f, _) => Value::Float(**f),
        Expr::StringConstant(s, _) => Value::Text(s.to_string()),
        Expr::Array(list, _) => Value::List(list.iter().map(literal).collect::<Option<_>>()?),
        _ => return None,
    })
}
