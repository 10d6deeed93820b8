//! Calls of closures that variables hold: `f(3)`.
//!
//! Rhai calls them `f.call(3)`, and looks for a function f where it reads `f(3)`. So a script is compiled, looked through for
//! calls that cannot succeed, since the name is that of a variable and of no function, and compiled with those written in
//! Rhai's way. What worked before is compiled as it was; positions are those of the script as it was written.

use super::powers;
use rhai::{AST, ASTNode, Engine, Expr, FnCallExpr, ParseError, Position, Scope, Stmt};
use std::collections::{BTreeSet, HashSet};

/// What is put between the name and the arguments.
const CALL: &str = ".call";

/// Where a script was changed: line, column after the name, and length of the name, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Moved(BTreeSet<(usize, usize, usize)>);

impl Moved {
    /// A position of the changed script as one of the script that was written.
    pub fn original(&self, position: Position) -> Position {
        let (Some(line), Some(column)) = (position.line(), position.position()) else {
            return position;
        };
        let mut back = 0;
        for (_, after, name) in self.0.range((line, 0, 0)..(line + 1, 0, 0)) {
            match (column - back).checked_sub(*after) {
                None => break,
                // What was put in belongs to the name.
                Some(within) if within < CALL.len() => {
                    back = column - (after - name);
                    break;
                }
                Some(_) => back += CALL.len(),
            }
        }
        Position::new(line as u16, (column - back) as u16)
    }

    /// The script with what was put in.
    fn apply(&self, source: &str) -> String {
        let mut out = String::with_capacity(source.len() + CALL.len() * self.0.len());
        for (number, line) in source.split_inclusive('\n').enumerate() {
            let (mut rest, mut done) = (line, 0);
            for (_, after, _) in self.0.range((number + 1, 0, 0)..(number + 2, 0, 0)) {
                let at = rest.char_indices().nth(after - 1 - done);
                let (before, behind) = rest.split_at(at.map_or(rest.len(), |(i, _)| i));
                out += before;
                out += CALL;
                (rest, done) = (behind, after - 1);
            }
            out += rest;
        }
        out
    }
}

/// Compile a script, in which functions of those names are known besides its own.
pub(super) fn compile(
    engine: &Engine,
    scope: &Scope,
    source: &str,
    known: &[String],
) -> Result<(AST, Moved), ParseError> {
    let ast = engine.compile_with_scope(scope, source)?;
    powers::check(source)?;
    let moved = calls_of_variables(engine, scope, &ast, source, known);
    if moved.0.is_empty() {
        return Ok((ast, moved));
    }
    match engine.compile_with_scope(scope, moved.apply(source)) {
        Ok(changed) => Ok((changed, moved)),
        Err(_) => Ok((ast, Moved::default())),
    }
}

fn calls_of_variables(
    engine: &Engine,
    scope: &Scope,
    ast: &AST,
    source: &str,
    known: &[String],
) -> Moved {
    let mut variables: HashSet<String> = scope.iter_raw().map(|(n, ..)| n.to_string()).collect();
    let mut functions: HashSet<String> = known.iter().cloned().collect();
    for f in ast.iter_functions() {
        functions.insert(f.name.into());
        variables.extend(f.params.iter().map(ToString::to_string));
    }
    let mut calls: Vec<(String, usize, Position)> = Vec::new();
    let mut call = |x: &FnCallExpr, position: &Position| {
        if x.op_token.is_none() && x.namespace.is_empty() && !x.capture_parent_scope {
            calls.push((x.name.to_string(), x.args.len(), *position));
        }
    };
    ast.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Stmt(Stmt::Var(x, ..))) => drop(variables.insert(x.0.name.to_string())),
            Some(ASTNode::Stmt(Stmt::For(x, ..))) => {
                let names = [Some(&x.0), x.1.as_ref()];
                variables.extend(names.into_iter().flatten().map(|n| n.name.to_string()));
            }
            Some(ASTNode::Expr(Expr::FnCall(x, position))) => call(x, position),
            Some(ASTNode::Stmt(Stmt::FnCall(x, position))) => call(x, position),
            _ => {}
        }
        true
    });
    calls.retain(|(name, ..)| variables.contains(name) && !functions.contains(name));
    if !calls.is_empty() {
        // Only now, for the list is long.
        let native = engine.gen_fn_signatures(true);
        let native: HashSet<_> = native.iter().map(|s| name_and_arity(s)).collect();
        calls.retain(|(name, arity, _)| !native.contains(&(name.as_str(), *arity)));
    }
    let lines: Vec<&str> = source.lines().collect();
    let place = |(name, _, position): (String, usize, Position)| {
        let (line, column) = (position.line()?, position.position()?);
        let from = lines.get(line - 1)?.chars().skip(column - 1);
        let length = name.chars().count();
        // Positions within templates may be off.
        let there = from.take(length).eq(name.chars());
        there.then_some((line, column + length, length))
    };
    Moved(calls.into_iter().filter_map(place).collect())
}

/// Of a signature as Rhai writes it, `name(a: T, b: Map<K, V>) -> R`.
fn name_and_arity(signature: &str) -> (&str, usize) {
    let (name, rest) = signature.split_once('(').unwrap_or((signature, ")"));
    let (mut depth, mut commas) = (1, 0);
    for c in rest.chars() {
        match c {
            '(' | '<' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if depth > 1 => depth -= 1,
            ',' if depth == 1 => commas += 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    let empty = rest.starts_with(')');
    (name, if empty { 0 } else { commas + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_script_as_written() {
        let source = "let f = |x| x;\nlet y = f(1) + f(2) + z;";
        let scope = Scope::new();
        let (_, moved) = compile(&Engine::new(), &scope, source, &[]).unwrap();
        let changed = moved.apply(source);
        assert_eq!(
            changed.lines().nth(1).unwrap(),
            "let y = f.call(1) + f.call(2) + z;"
        );
        for (there, here) in [
            (1, 1),
            (9, 9),
            (10, 9),
            (11, 9),
            (15, 10),
            (18, 13),
            (21, 16),
            (22, 16),
            (26, 16),
            (27, 17),
            (33, 23),
        ] {
            let original = moved.original(Position::new(2, there));
            assert_eq!(original, Position::new(2, here), "{there}");
        }
    }

    #[test]
    fn what_works_is_left_alone() {
        let engine = Engine::new();
        for source in [
            "fn f(x) { x } let f = |x| x + 1; f(3)",
            "let len = |x| 3; len([1])",
            "let f = |x| x; f.call(3)",
            "let x = 3; x.to_string()",
        ] {
            let (_, moved) = compile(&engine, &Scope::new(), source, &[]).unwrap();
            assert!(moved.0.is_empty(), "{source}");
        }
    }
}
