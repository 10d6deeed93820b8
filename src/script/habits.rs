//! What hands write that are used to Python: what was written, and how it is written here.
//!
//! One table of habits, looked up where a script failed, whether it could not be read or met a name that is not there. A script
//! that works is never looked at, so a habit needs no more than to be told from what else could stand at the place of the error.

use super::explore::tokens::{KEYWORDS, Kind, Token, tokens};
use rhai::Position;

/// A habit: tokens side by side, which of them the caret is put under, and what to say. Of a pattern, `NAME` is a name, `TEXT` a
/// string, `CHARS` a text between single quotes, `END` what can end an expression, `SPACE` the name of a namespace, `ANY`
/// anything and `EOL` the end of a line; all else is itself. In the advice, `{0}` is the first token, `{text}` the text within the
/// quotes, and `{template}` that with `${…}` for `{…}`.
type Habit = (&'static [&'static str], usize, &'static str);

/// The first that fits is told of.
#[rustfmt::skip]
const HABITS: &[Habit] = &[
    // Text.
    (&["f", "TEXT"], 0, "f\"…\" is Python; text with values in it stands between backticks: `{template}`"),
    (&["r", "TEXT"], 0, "r\"…\" is Python; text in which \\ means itself is #\"{text}\"#"),
    (&["CHARS"], 0, "text stands between double quotes: \"{text}\"; single quotes are for one character"),
    (&["TEXT", "%", "ANY"], 1, "% does not format; values go into text between backticks: `x = ${x}`"),
    (&["TEXT", ".", "format"], 2, "values go into text between backticks: `x = ${x}`"),
    // Functions.
    (&["def", "NAME"], 0, "a function is fn {1}(…) { … }; its last expression is what it gives"),
    (&["lambda"], 0, "lambda is Python; a function without a name is |x| x + 1"),
    (&["fn", "NAME", "(", "NAME", ":"], 4, "parameters have no types here: fn {1}({3}, …) { … }"),
    (&["fn", "NAME", "(", "NAME", "="], 4, "parameters have no defaults here; take a map of options and check it with options(given, #{ {3}: … })"),
    (&["class", "NAME"], 0, "there are no classes here; a map holds what belongs together: #{ name: value }"),
    (&["END", "@", "ANY"], 1, "a product of tensors is {0}.matmul({2})"),
    (&["@", "NAME"], 0, "there are no decorators here; call the function with a closure"),
    // Options.
    (&["(", "{", "NAME", ":"], 1, "a map begins with #{ : write #{ {2}: … }"),
    (&["(", "{", "TEXT", ":"], 1, "a map begins with #{ : write #{ {2}: … }"),
    (&[",", "{", "NAME", ":"], 1, "a map begins with #{ : write #{ {2}: … }"),
    (&[",", "{", "TEXT", ":"], 1, "a map begins with #{ : write #{ {2}: … }"),
    (&["=", "{", "NAME", ":"], 1, "a map begins with #{ : write #{ {2}: … }"),
    (&["=", "{", "TEXT", ":"], 1, "a map begins with #{ : write #{ {2}: … }"),
    (&["(", "NAME", "="], 2, "there are no keyword arguments; options are one map: #{ {1}: … }"),
    (&[",", "NAME", "="], 2, "there are no keyword arguments; options are one map: #{ {1}: … }"),
    (&["(", "NAME", ":"], 2, "options stand in a map: #{ {1}: … }"),
    (&[",", "NAME", ":"], 2, "options stand in a map: #{ {1}: … }"),
    // Statements.
    (&["let", "NAME", ":"], 2, "variables have no types here: let {1} = …"),
    (&["=", "(", "ANY", ","], 1, "there are no tuples; an array is [{2}, …]"),
    (&["let", "RESERVED"], 1, "'{1}' is a word of the language; take another name, as {1}_"),
    (&["let", "("], 1, "one name at a time: let a = …; let b = …;"),
    (&["var", "NAME"], 0, "a new variable is let {1} = …"),
    (&["import", "numpy", "as", "NAME"], 1, "there is no NumPy here, and nothing to import: arrays, linspace(…) and tensor(…) are built in; `ergodic docs` lists all"),
    (&["import", "numpy"], 1, "there is no NumPy here, and nothing to import: arrays, linspace(…) and tensor(…) are built in; `ergodic docs` lists all"),
    (&["import", "NAME"], 1, "there are no Python modules here; `import \"{1}\" as {1};` takes a recipe or a script of your own, and what is built in needs no import"),
    (&["from", "NAME", "import"], 0, "there are no Python modules here, and what is built in needs no import; a recipe or a script of your own is `import \"{1}\" as {1};`"),
    (&["for", "NAME", "in", "NAME", "(", "ANY", ")", ":"], 7, "what is repeated stands in braces: for {1} in {3}({5}) { … }"),
    (&["elif"], 0, "elif is Python; write else if"),
    (&["else", ":"], 1, "what follows stands in braces: else { … }"),
    (&["try", ":"], 1, "what is tried stands in braces: try { … } catch (e) { … }"),
    (&["except"], 0, "except is Python; write try { … } catch (e) { … }"),
    (&["with", "ANY"], 0, "there is no with here; open(…) and load(…) return what they read"),
    (&["pass"], 0, "pass is Python; an empty block is { }"),
    (&["del", "NAME"], 0, "nothing has to be deleted here; m.remove(\"key\") removes a key from a map"),
    (&["END", ":", "EOL"], 1, "a block does not begin with a colon: it stands in braces, { … }"),
    (&["END", "+", "+"], 1, "there is no ++; write {0} += 1"),
    (&["END", "-", "-"], 1, "there is no --; write {0} -= 1"),
    (&["print", "(", "ANY", ","], 0, "print takes one value; text with several in it stands between backticks: print(`${{2}} and …`)"),
    (&["print", "TEXT"], 0, "print is a function: print({1})"),
    (&["#"], 0, "a comment begins with //"),
    // Expressions.
    (&["END", "for", "NAME", "in"], 1, "there are no comprehensions; write array.map(|{2}| …), or a loop that pushes: for {2} in … { out.push(…); }"),
    (&["END", "if"], 1, "a choice begins with if: if condition { a } else { b }"),
    (&["END", "and"], 1, "and is written &&"),
    (&["END", "or"], 1, "or is written ||"),
    (&["END", "is", "not"], 1, "is not is written !="),
    (&["END", "is"], 1, "is is written =="),
    (&["END", "not", "in"], 1, "not in is written !(x in list)"),
    (&["not", "ANY"], 0, "not is written !"),
    (&["True"], 0, "True is written true"),
    (&["False"], 0, "False is written false"),
    (&["None"], 0, "None is written ()"),
    (&["null"], 0, "null is written ()"),
    (&["nil"], 0, "nil is written ()"),
    (&["NaN"], 0, "not a number is 0.0/0.0"),
    (&["inf"], 0, "infinity is 1.0/0.0"),
    (&["np", ".", "NAME"], 0, "there is no NumPy here; what is built in needs no prefix: {2}(…), tensor(…), linspace(…); `ergodic docs` lists all"),
    (&["numpy", ".", "NAME"], 0, "there is no NumPy here; what is built in needs no prefix: {2}(…), tensor(…), linspace(…); `ergodic docs` lists all"),
    (&["torch", ".", "NAME"], 0, "there is no PyTorch here; tensors are tensor(…), and `ergodic docs` lists all"),
    (&["math", ".", "pi"], 0, "π is PI()"),
    (&["math", ".", "NAME"], 0, "functions of numbers need no prefix: {2}(…)"),
    (&["pi"], 0, "π is PI()"),
    (&["SPACE", ".", "NAME"], 1, "'{0}' is a namespace: write {0}::{2}"),
    (&["[", "ANY", ".", "."], 2, "a part of an array is a.extract(from..to), a part of a tensor t.slice(…)"),
    (&["[", "ANY", ":"], 2, "a part of an array is a.extract(from..to), a part of a tensor t.slice(…)"),
    (&["str", "("], 0, "a value as text is x.to_string(), or `${x}` within backticks"),
    (&["float", "("], 0, "an integer as a number is x.to_float()"),
    (&[".", "append", "("], 1, "an array grows by a.push(x)"),
    (&[".", "length"], 1, "the length of an array is a.len()"),
    (&["enumerate", "("], 0, "a loop over elements with their index is for (x, i) in a { … }"),
    (&["isinstance", "("], 0, "the type of a value is type_of(x)"),
    (&["assert", "("], 0, "there is no assert; write if !(condition) { throw \"what is wrong\"; }"),
    (&["raise", "ANY"], 0, "an error is thrown: throw \"what is wrong\";"),
];

/// Words that no variable can have for a name.
const RESERVED: [&str; 26] = [
    "var",
    "static",
    "begin",
    "end",
    "shared",
    "each",
    "then",
    "goto",
    "unless",
    "exit",
    "match",
    "case",
    "public",
    "protected",
    "new",
    "use",
    "with",
    "is",
    "module",
    "package",
    "super",
    "thread",
    "sync",
    "yield",
    "default",
    "null",
];

/// What Python would have let pass at a place, and where exactly.
///
/// What cannot be read is noticed at the habit or right behind it; a name that is not there (`met`) is part of the habit.
pub(super) fn find(
    source: &str,
    position: Position,
    met: bool,
    is_space: &dyn Fn(&str) -> bool,
) -> Option<(Position, String)> {
    let code = code(source);
    let at = byte(source, position)?;
    let here = code.iter().position(|t| t.end() > at).unwrap_or(code.len());
    let fits = |habit: &Habit, from: usize| {
        let (pattern, caret, advice) = habit;
        let mut i = from;
        for wanted in *pattern {
            if *wanted == "EOL" {
                let last = code.get(i.checked_sub(1)?)?;
                let next = code.get(i).map_or(source.len(), |t| t.start);
                if !source[last.end()..next].contains('\n') && i < code.len() {
                    return None;
                }
                continue;
            }
            let token = code.get(i)?;
            let before = (i > from).then(|| &code[i - 1]);
            if !is(token, wanted, is_space) || before.is_some_and(|b| !follows(source, b, token)) {
                return None;
            }
            // `==` is not `=`.
            if *wanted == "=" && source[token.end()..].starts_with('=') {
                return None;
            }
            i += 1;
        }
        (i > here || (i == here && !met)).then(|| {
            let seen = &code[from..i];
            (place(source, seen[*caret].start), fill(advice, seen))
        })
    };
    let longest = HABITS.iter().map(|(p, ..)| p.len()).max().unwrap_or(0);
    let starts = || (here.saturating_sub(longest)..=here).rev();
    HABITS
        .iter()
        .find_map(|habit| starts().find_map(|from| fits(habit, from)))
}

/// The tokens of a script that are no comments.
pub(super) fn code(source: &str) -> Vec<Token<'_>> {
    let mut all = tokens(source);
    all.retain(|t| !matches!(t.kind, Kind::Comment(_)));
    all
}

/// Whether two tokens belong to one habit: on one line, unless something is open, and `++` together.
fn follows(source: &str, before: &Token, token: &Token) -> bool {
    let between = &source[before.end()..token.start];
    let open = ["(", "[", "{", ",", "="].contains(&before.text);
    let twice = before.kind == Kind::Mark && before.text == token.text;
    (open || !between.contains('\n')) && (!twice || between.is_empty() || open)
}

fn is(token: &Token, wanted: &str, is_space: &dyn Fn(&str) -> bool) -> bool {
    let name = token.kind == Kind::Name && !KEYWORDS.contains(&token.text);
    match wanted {
        "NAME" => name,
        "TEXT" => matches!(token.kind, Kind::Text(_)) && token.text.starts_with('"'),
        "CHARS" => token.text.starts_with('\'') && token.text.chars().count() != 3,
        "RESERVED" => token.kind == Kind::Name && RESERVED.contains(&token.text),
        "SPACE" => name && is_space(token.text),
        "ANY" => true,
        "END" => match token.kind {
            Kind::Name => name || ["true", "false", "this"].contains(&token.text),
            Kind::Number | Kind::Text(_) => true,
            _ => [")", "]", "}"].contains(&token.text),
        },
        word => token.text == word && !matches!(token.kind, Kind::Text(_)),
    }
}

fn fill(advice: &str, seen: &[Token]) -> String {
    let quoted = seen.iter().find(|t| matches!(t.kind, Kind::Text(_)));
    let text = quoted.map_or("", |t| t.text.trim_matches(['"', '\'']));
    let mut out = advice.replace("{text}", text);
    out = out.replace("{template}", &template(text));
    for (i, token) in seen.iter().enumerate() {
        out = out.replace(&format!("{{{i}}}"), token.text);
    }
    out
}

/// A text with `{x:.2f}` in it as one with `${x}`.
fn template(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (inside, after) = behind.split_once('}').unwrap_or((behind, ""));
        let value = inside.split([':', '!']).next().unwrap_or_default();
        out += &format!("{before}${{{value}}}");
        rest = after;
    }
    out + rest
}

/// Whether a script has a variable of this name somewhere, to which a function has no way.
pub(super) fn declares(source: &str, name: &str) -> bool {
    let code = code(source);
    code.windows(2)
        .any(|w| w[0].text == "let" && w[1].text == name)
}

/// Whether the variable at a place is given a value there, as Python makes a new one.
pub(super) fn is_assigned(source: &str, position: Position) -> bool {
    let at = byte(source, position);
    let code = code(source);
    let next = code.iter().position(|t| Some(t.start) == at);
    let next = next.and_then(|i| code.get(i + 1));
    next.is_some_and(|t| t.is("=") && !source[t.end()..].starts_with('='))
}

/// Where a statement without its `;` ends, if the line before the place is one.
pub(super) fn missing_end(source: &str, position: Position) -> Option<Position> {
    let at = byte(source, position)?;
    let code = code(source);
    let last = code.iter().take_while(|t| t.end() <= at).last()?;
    let between = &source[last.end()..at];
    between.contains('\n').then(|| place(source, last.end()))
}

pub(super) fn byte(source: &str, position: Position) -> Option<usize> {
    let (line, column) = (position.line()?, position.position()?);
    let starts = source.split_inclusive('\n').take(line - 1).map(str::len);
    let start: usize = starts.sum();
    let rest = &source[start..];
    let before: usize = rest.chars().take(column - 1).map(char::len_utf8).sum();
    Some(start + before)
}

pub(super) fn place(source: &str, byte: usize) -> Position {
    let before = &source[..byte];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    Position::new(narrow(line), narrow(column))
}
