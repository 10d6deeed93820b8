//! Where in a script a cursor is: in a namespace, behind a dot, within the options of a call, within the value of one of them.

use super::tokens::{Kind, Token};

/// What is called: `space::name` or `name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callee<'a> {
    /// The namespace, or empty.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// Whether it is a method, called behind a dot.
    pub method: bool,
}

/// What stands before a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver<'a> {
    /// A variable.
    Variable(&'a str),
    /// The result of a call.
    Call(Callee<'a>),
    /// A string.
    Text,
    /// An array that is written there.
    Array,
    /// Anything else.
    Unknown,
}

/// Where a cursor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place<'a> {
    /// In a comment, in a string that is no option, in a number: nothing can be said.
    Nowhere,
    /// Where an expression can stand.
    Free,
    /// Behind `space::`.
    Namespace(&'a str),
    /// Behind a dot.
    Method(Receiver<'a>),
    /// Where the name of an option can stand, with those that are there already.
    Option(Callee<'a>, Vec<&'a str>),
    /// Where the name of an entry can stand in a map that is the value of an option, with those that are there already.
    Entry(Callee<'a>, &'a str, Vec<&'a str>),
    /// Where the value of an option stands; within a string or not.
    Value(Callee<'a>, &'a str, bool),
    /// In a string that names something of a variable: `run.trace("…`, `plot::traces(run, "…`, `summary["…`.
    Text(&'a str),
}

/// The bracket that the cursor is in: its token.
fn enclosing(tokens: &[Token]) -> Option<usize> {
    let mut open = Vec::new();
    for (i, t) in tokens
        .iter()
        .enumerate()
        .filter(|(_, t)| t.kind == Kind::Mark)
    {
        match t.text {
            "(" | "[" | "{" | "#{" => open.push(i),
            ")" | "]" | "}" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()
}

/// The call whose bracket is the last of these tokens.
fn callee<'a>(tokens: &[Token<'a>]) -> Option<Callee<'a>> {
    let [before @ .., name, bracket] = tokens else {
        return None;
    };
    if !bracket.is("(") || name.kind != Kind::Name {
        return None;
    }
    let namespace = match before {
        [.., space, mark] if mark.is("::") => space.text,
        _ => "",
    };
    let method = before.last().is_some_and(|t| t.is("."));
    Some(Callee {
        namespace,
        name: name.text,
        method,
    })
}

/// What stands before a dot that follows these tokens.
fn receiver<'a>(tokens: &[Token<'a>]) -> Receiver<'a> {
    let Some(last) = tokens.last() else {
        return Receiver::Unknown;
    };
    match last.kind {
        Kind::Text(true) => Receiver::Text,
        Kind::Name
            if !tokens[..tokens.len() - 1]
                .last()
                .is_some_and(|t| t.is(".") || t.is("::")) =>
        {
            Receiver::Variable(last.text)
        }
        Kind::Mark if last.text == ")" || last.text == "]" => {
            // Its opening bracket is the one that encloses all before the closing one.
            match enclosing(&tokens[..tokens.len() - 1]) {
                Some(open) if last.text == ")" => {
                    callee(&tokens[..=open]).map_or(Receiver::Unknown, Receiver::Call)
                }
                Some(open) => match open.checked_sub(1).map(|i| tokens[i]) {
                    Some(t) if t.kind == Kind::Name || t.is(")") || t.is("]") => Receiver::Unknown,
                    _ => Receiver::Array,
                },
                None => Receiver::Unknown,
            }
        }
        _ => Receiver::Unknown,
    }
}

/// What is called with the map that begins with `tokens[open]` as its options.
fn configured<'a>(tokens: &[Token<'a>], open: usize) -> Option<Callee<'a>> {
    let call = enclosing(&tokens[..open])?;
    callee(&tokens[..=call])
}

/// The names that are given in the map that begins with `tokens[open]`, and that of the value at the end, if the end is within one.
fn entries<'a>(tokens: &[Token<'a>], open: usize) -> (Vec<&'a str>, Option<&'a str>) {
    let (mut depth, mut names, mut value) = (0, Vec::new(), None);
    for pair in tokens[open..].windows(2) {
        let [t, next] = pair else { continue };
        match t.text {
            _ if t.kind == Kind::Name && next.is(":") && depth == 1 && value.is_none() => {
                names.push(t.text)
            }
            "(" | "[" | "{" | "#{" if t.kind == Kind::Mark => depth += 1,
            ")" | "]" | "}" if t.kind == Kind::Mark => depth -= 1,
            _ => {}
        }
        if depth == 1 && next.is(":") {
            value = names.last().copied();
        } else if depth == 1 && next.is(",") {
            value = None;
        }
    }
    (names, value)
}

/// The variable that a string in the bracket `tokens[open]` says something of: that whose method is called or that is indexed, or the first argument.
fn subject<'a>(tokens: &[Token<'a>], open: usize) -> Option<&'a str> {
    let name = |t: &Token<'a>| (t.kind == Kind::Name).then_some(t.text);
    let before = tokens[..open].last()?;
    match &tokens[..open] {
        _ if tokens[open].is("[") => name(before),
        [rest @ .., dot, _] if dot.is(".") => match receiver(rest) {
            Receiver::Variable(name) => Some(name),
            _ => None,
        },
        _ => match &tokens[open + 1..] {
            [first, comma, ..] if comma.is(",") => name(first),
            _ => None,
        },
    }
}

/// The innermost call whose arguments the cursor, in bytes, is in, and which of them, from 0.
pub fn call<'a>(tokens: &[Token<'a>], cursor: usize) -> Option<(Callee<'a>, usize)> {
    let before = tokens
        .iter()
        .filter(|t| t.start < cursor && !matches!(t.kind, Kind::Comment(_)));
    let before: Vec<_> = before.copied().collect();
    let mut end = before.len();
    while let Some(open) = enclosing(&before[..end]) {
        if let Some(callee) = callee(&before[..=open]) {
            let commas = (open + 1..end)
                .filter(|k| before[*k].is(",") && enclosing(&before[..*k]) == Some(open));
            return Some((callee, commas.count()));
        }
        end = open;
    }
    None
}

/// Where the cursor, in bytes, is in the script of these tokens.
pub fn place<'a>(tokens: &[Token<'a>], cursor: usize) -> Place<'a> {
    let count = tokens.iter().take_while(|t| t.start < cursor).count();
    let (mut before, mut within) = (&tokens[..count], None);
    // The word that is being written does not say where it is.
    if let Some(last) = before.last() {
        let inside = cursor < last.end()
            || (cursor == last.end()
                && matches!(last.kind, Kind::Text(false) | Kind::Comment(false)));
        let line_comment = cursor == last.end() && last.text.starts_with("//");
        match last.kind {
            Kind::Comment(_) if inside || line_comment => return Place::Nowhere,
            Kind::Number if cursor <= last.end() => return Place::Nowhere,
            Kind::Text(_) if inside => within = Some(*last),
            _ => {}
        }
        if within.is_some() || last.kind == Kind::Name && cursor <= last.end() {
            before = &before[..count - 1];
        }
    }
    let clean: Vec<_> = before
        .iter()
        .filter(|t| !matches!(t.kind, Kind::Comment(_)))
        .copied()
        .collect();
    match &clean[..] {
        [.., space, mark] if mark.is("::") && within.is_none() => {
            return Place::Namespace(space.text);
        }
        // Two dots are a range.
        [rest @ .., mark]
            if mark.is(".") && within.is_none() && !rest.last().is_some_and(|t| t.is(".")) =>
        {
            return Place::Method(receiver(rest));
        }
        _ => {}
    }
    let text = within.is_some();
    let nothing = match text {
        true => Place::Nowhere,
        false => Place::Free,
    };
    let Some(mut open) = enclosing(&clean) else {
        return nothing;
    };
    let indexed = |open: usize| {
        open.checked_sub(1)
            .is_some_and(|i| clean[i].kind == Kind::Name)
    };
    // Of an array that is the value of an option.
    if clean[open].is("[")
        && !indexed(open)
        && let Some(outer) = enclosing(&clean[..open])
    {
        open = outer;
    }
    if !clean[open].is("#{") {
        let named = subject(&clean, open).filter(|_| text && !clean[open].is("{"));
        return named.map_or(nothing, Place::Text);
    }
    let (names, value) = entries(&clean, open);
    if let Some(callee) = configured(&clean, open) {
        return match value {
            Some(option) => Place::Value(callee, option, text),
            None if text => nothing,
            None => Place::Option(callee, names),
        };
    }
    // Of a map that is the value of an option.
    let outer = enclosing(&clean[..open]).filter(|outer| clean[*outer].is("#{"));
    let owner = outer.and_then(|outer| {
        let (_, option) = entries(&clean[..open], outer);
        Some((configured(&clean, outer)?, option?))
    });
    match owner.filter(|_| value.is_none() && !text) {
        Some((callee, option)) => Place::Entry(callee, option, names),
        None => nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    /// The place of the mark ‸ in a script.
    fn at(marked: &str) -> Place<'_> {
        let cursor = marked.find('‸').unwrap();
        let source: String = marked.replace('‸', "");
        let source: &'static str = Box::leak(source.into_boxed_str());
        place(&tokens(source), cursor)
    }

    #[test]
    fn the_call_around_a_cursor_is_known() {
        let at = |marked: &str| {
            let cursor = marked.find('‸').unwrap();
            let source: &'static str = Box::leak(marked.replace('‸', "").into_boxed_str());
            call(&tokens(source), cursor).map(|(c, k)| (c.namespace, c.name, k))
        };
        assert_eq!(at("sample(t, ‸"), Some(("", "sample", 1)));
        assert_eq!(
            at("sample(t, sampler::hmc(#{ step: [1, ‸"),
            Some(("sampler", "hmc", 0))
        );
        assert_eq!(
            at("sample(t, f(1, 2), #{ a: 1, b: ‸ })"),
            Some(("", "sample", 2))
        );
        assert_eq!(at("sample(t)‸"), None);
        assert_eq!(at("let x = (1 + ‸"), None);
    }

    fn verb(name: &str) -> Callee<'_> {
        Callee {
            namespace: "",
            name,
            method: false,
        }
    }

    fn of<'a>(namespace: &'a str, name: &'a str) -> Callee<'a> {
        Callee {
            namespace,
            name,
            method: false,
        }
    }

    #[test]
    fn namespaces_and_methods() {
        assert_eq!(at("let s = sampler::‸"), Place::Namespace("sampler"));
        assert_eq!(at("let s = sampler::hm‸c()"), Place::Namespace("sampler"));
        assert_eq!(at("run.su‸"), Place::Method(Receiver::Variable("run")));
        assert_eq!(
            at("run.summary().‸"),
            Place::Method(Receiver::Call(Callee {
                namespace: "",
                name: "summary",
                method: true
            }))
        );
        assert_eq!(at("f(1, [2]).‸"), Place::Method(Receiver::Call(verb("f"))));
        assert_eq!(
            at("dataset::digits(#{ a: 1 }).‸"),
            Place::Method(Receiver::Call(of("dataset", "digits")))
        );
        assert_eq!(at("[1, 2].‸"), Place::Method(Receiver::Array));
        assert_eq!(at("a[1].‸"), Place::Method(Receiver::Unknown));
        assert_eq!(at("\"a\".‸"), Place::Method(Receiver::Text));
        assert_eq!(at("a.b.‸"), Place::Method(Receiver::Unknown));
        assert_eq!(at("for i in 0..‸"), Place::Free);
    }

    #[test]
    fn options_and_their_values() {
        assert_eq!(
            at("sample(t, s, #{ ‸"),
            Place::Option(verb("sample"), vec![])
        );
        assert_eq!(
            at("sample(t, s, #{ steps: 10, ch‸"),
            Place::Option(verb("sample"), vec!["steps"])
        );
        assert_eq!(
            at("sample(t, sampler::hmc(#{ dt: 1 }), #{ steps: f(1, 2), ‸ })"),
            Place::Option(verb("sample"), vec!["steps"])
        );
        assert_eq!(
            at("sample(t, sampler::hmc(#{ ‸"),
            Place::Option(of("sampler", "hmc"), vec![])
        );
        assert_eq!(
            at("model::mlp(#{ activation: \"re‸"),
            Place::Value(of("model", "mlp"), "activation", true)
        );
        assert_eq!(
            at("model::mlp(#{ activation: \"re‸\" })"),
            Place::Value(of("model", "mlp"), "activation", true)
        );
        assert_eq!(
            at("sample(t, s, #{ start: ‸"),
            Place::Value(verb("sample"), "start", false)
        );
        assert_eq!(
            at("sample(t, s, #{ observe: [observable::cost(), ‸"),
            Place::Value(verb("sample"), "observe", false)
        );
        assert_eq!(
            at("sample(t, s, #{ observe: [observable::‸"),
            Place::Namespace("observable")
        );
        assert_eq!(at("let m = #{ a: ‸"), Place::Free);
        assert_eq!(
            at("sample(t, s, #{ steps: 10, until: #{ ess: 400, ‸"),
            Place::Entry(verb("sample"), "until", vec!["ess"])
        );
        assert_eq!(at("sample(t, s, #{ until: #{ ess: ‸"), Place::Free);
        assert_eq!(at("sample(t, s, #{ a: #{ b: #{ ‸"), Place::Free);
    }

    #[test]
    fn strings_that_name_something_of_a_variable() {
        for marked in [
            "run.trace(\"co‸\", 0)",
            "plot::traces(run, \"co‸",
            "plot::sweep(run, [\"cost\", \"‸",
            "run[\"‸",
        ] {
            assert_eq!(at(marked), Place::Text("run"), "{marked}");
        }
        for marked in ["f(\"‸", "f(g(), \"‸", "if a { \"‸", "[\"‸"] {
            assert_eq!(at(marked), Place::Nowhere, "{marked}");
        }
    }

    #[test]
    fn words_elsewhere() {
        assert_eq!(at("‸"), Place::Free);
        assert_eq!(at("sam‸"), Place::Free);
        assert_eq!(at("f(‸"), Place::Free);
        assert_eq!(at("// sam‸"), Place::Nowhere);
        assert_eq!(at("let a = \"sam‸"), Place::Nowhere);
        assert_eq!(at("let a = 12‸"), Place::Nowhere);
        assert_eq!(at("if a { ‸"), Place::Free);
        // Brackets that never close do not confuse what is behind them.
        assert_eq!(at("f([(‸"), Place::Free);
        assert_eq!(at(")]}‸"), Place::Free);
    }
}
