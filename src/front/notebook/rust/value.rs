//! The value of a cell, and whether there is more to come of it.

use ra_ap_syntax::ast::{self, AstNode};
use ra_ap_syntax::{Edition, SourceFile, SyntaxNode, T};

/// What shows a value.
pub const SHOW: &str = ".evcxr_display();";

/// A cell whose last expression shows its value by a statement of the cell's own.
///
/// evcxr adds that statement itself, and where the expression moves a variable it takes the compiler's word on that for a failure to show the
/// value, and prints it as `{:?}` instead.
pub fn shown(code: &str) -> String {
    let start = first_of_rust(code);
    let (before, rust) = code.split_at(start);
    const HEAD: &str = "fn cell() {";
    let parsed = SourceFile::parse(&format!("{HEAD}{rust}\n}}"), Edition::CURRENT);
    let tree = parsed.tree();
    let function = tree.syntax().children().find_map(ast::Fn::cast);
    let body = function.and_then(|f| f.body()?.stmt_list());
    let Some(body) = body else {
        return code.to_string();
    };
    let place = |node: &SyntaxNode| {
        let range = node.text_range();
        [range.start(), range.end()].map(|at| usize::from(at) - HEAD.len())
    };
    match (body.tail_expr(), body.statements().last()) {
        (Some(value), _) if parsed.errors().is_empty() && may_move(&value) => {
            let [from, to] = place(value.syntax());
            let (head, text, tail) = (&rust[..from], &rust[from..to], &rust[to..]);
            match binds_tightly(&value) {
                true => format!("{before}{head}{text}{SHOW}{tail}"),
                false => format!("{before}{head}({text}){SHOW}{tail}"),
            }
        }
        // What evcxr adds would make an error of it that nobody understands.
        (None, Some(ast::Stmt::LetStmt(last)))
            if parsed.errors().len() == 1 && last.semicolon_token().is_none() =>
        {
            let [_, to] = place(last.syntax());
            format!("{before}{};{}", &rust[..to], &rust[to..])
        }
        _ => code.to_string(),
    }
}

/// How far something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It can be run.
    Whole,
    /// A bracket, a string or a comment is open.
    InPart,
    /// It is wrong, whatever follows.
    Badly,
}

/// How far a cell is written.
pub fn state(code: &str) -> Written {
    let rust = &code[first_of_rust(code)..];
    let alone = SourceFile::parse(rust, Edition::CURRENT);
    let open = ["\"` symbol to terminate", "*/` symbols to terminate"];
    let is_open = |e: String| open.iter().any(|what| e.contains(what));
    if alone.errors().iter().any(|e| is_open(e.to_string())) {
        return Written::InPart;
    }
    let mut depth = 0;
    for element in alone.syntax_node().descendants_with_tokens() {
        match element.kind() {
            T!['('] | T!['['] | T!['{'] => depth += 1,
            T![')'] | T![']'] | T!['}'] => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return Written::Badly;
        }
    }
    let whole = SourceFile::parse(
        &format!("fn cell() {{{}\n}}", shown(rust)),
        Edition::CURRENT,
    );
    match depth {
        0 if whole.errors().is_empty() => Written::Whole,
        0 => Written::Badly,
        _ => Written::InPart,
    }
}

/// Where Rust begins, after evcxr's commands, blank lines and comments.
fn first_of_rust(code: &str) -> usize {
    let passed = |line: &&str| {
        let line = line.trim();
        line.is_empty() || line.starts_with(['!', ':']) || line.starts_with("//")
    };
    let lines = code.split_inclusive('\n').take_while(passed);
    lines.map(str::len).sum()
}

/// Whether an expression may move variables and has a value. Macros may be items.
fn may_move(e: &ast::Expr) -> bool {
    !matches!(
        e,
        ast::Expr::PathExpr(_)
            | ast::Expr::Literal(_)
            | ast::Expr::MacroExpr(_)
            | ast::Expr::ForExpr(_)
            | ast::Expr::WhileExpr(_)
            | ast::Expr::LoopExpr(_)
            | ast::Expr::ReturnExpr(_)
    )
}

/// Whether a method can be called on an expression as it stands.
fn binds_tightly(e: &ast::Expr) -> bool {
    matches!(
        e,
        ast::Expr::CallExpr(_)
            | ast::Expr::MethodCallExpr(_)
            | ast::Expr::TryExpr(_)
            | ast::Expr::FieldExpr(_)
            | ast::Expr::IndexExpr(_)
            | ast::Expr::ParenExpr(_)
    )
}

#[cfg(test)]
mod tests {
    use super::{Written, shown, state};

    #[test]
    fn open_brackets_strings_and_comments_need_more() {
        for open in [
            "fn f() {",
            "let a = [1,",
            "f(",
            "\"text",
            "/* a",
            "{ '}'",
            "// )\n(",
        ] {
            assert_eq!(state(open), Written::InPart, "{open}");
        }
        for whole in [
            "",
            "1 + 1",
            "let x = 2",
            "f('(')",
            "\"(\\\"\"",
            "// (",
            "/* ( */ 1",
            "fn f<'a>(x: &'a str) {}",
            ":dep (",
            ":opt 2\nmod a { use b::c; }",
            "'\\n'",
            "kernel! { pub K = k(p; g) { p = p - g; } }",
        ] {
            assert_eq!(state(whole), Written::Whole, "{whole}");
        }
        for wrong in [")", "1 )", "let = 2;", "fn 1() {}"] {
            assert_eq!(state(wrong), Written::Badly, "{wrong}");
        }
    }

    #[test]
    fn last_expressions_are_shown_and_nothing_else_changes() {
        for same in [
            "",
            ":opt 2",
            "let x = 1;",
            "x",
            "f(x);",
            "println!(\"x\")",
            "kernel! { a }",
            "for i in 0..3 { f(i) }",
            "fn f() { 1 }",
            "let broken = (",
            "struct A;\nimpl A { fn f(self) -> A { self } }",
        ] {
            assert_eq!(shown(same), same);
        }
        for (code, expected) in [
            ("Figure::of(panel)", "Figure::of(panel).evcxr_display();"),
            (
                "let a = 1;\nf(a)? // ü",
                "let a = 1;\nf(a)?.evcxr_display(); // ü",
            ),
            (
                ":opt 2\n\nx.y(|z| z)\n",
                ":opt 2\n\nx.y(|z| z).evcxr_display();\n",
            ),
            ("a + b", "(a + b).evcxr_display();"),
            (
                "if a { b } else { c }",
                "(if a { b } else { c }).evcxr_display();",
            ),
            ("let x = f(1)?", "let x = f(1)?;"),
            (
                "let x = 1;\nlet y = 2 // two",
                "let x = 1;\nlet y = 2; // two",
            ),
        ] {
            assert_eq!(shown(code), expected);
        }
    }
}
