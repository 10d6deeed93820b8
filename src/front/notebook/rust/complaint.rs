//! What the compiler, or a panic, says of a cell: in the cell's own lines.

use super::value::SHOW;
use ariadne::{Color, Config, Label, Report, ReportKind, Source};
use evcxr::CompilationError;
use std::fmt::Write;
use std::ops::Range;

/// An error of the compiler as text, in colours. `code` is the cell as it was written, `compiled` what evcxr got of it: that with insertions.
pub(super) fn rendered(error: &CompilationError, code: &str, compiled: &str) -> String {
    let mut labels = Vec::new();
    for spanned in error.spanned_messages().iter().chain(error.help_spanned()) {
        // Without a label of its own evcxr gives a place the message.
        let label = match spanned.label.strip_prefix("error: ") {
            Some(text) if text == error.message() => "",
            _ => &*spanned.label,
        };
        if let Some(s) = &spanned.span {
            let at = |line, column| place(line, column, code, compiled);
            let from = at(s.start_line, s.start_column);
            let to = at(s.end_line, s.end_column).max(from);
            labels.push((from..to, label, spanned.is_primary));
        }
    }
    let Some((first, ..)) = labels.iter().find(|l| l.2).or(labels.first()) else {
        let text = error.rendered();
        let text = if text.is_empty() {
            error.message()
        } else {
            text
        };
        return text.replace(SHOW, "").trim_end().to_string();
    };
    const CELL: &str = "cell";
    let id = |range: &Range<usize>| (CELL, range.clone());
    let mut report = Report::build(ReportKind::Error, id(first))
        .with_config(Config::default().with_compact(true))
        .with_message(error.message());
    if let Some(code) = error.code() {
        report = report.with_code(code);
    }
    for (range, label, primary) in &labels {
        let colour = if *primary { Color::Red } else { Color::Blue };
        let mut shown = Label::new(id(range)).with_color(colour);
        if !label.is_empty() {
            shown = shown.with_message(label);
        }
        report = report.with_label(shown);
    }
    let hint = error.evcxr_extra_hint().map(str::to_string);
    for help in error.help().into_iter().chain(hint) {
        // Many stand at their place already.
        let text = format!("help: {}", help.lines().next().unwrap_or_default());
        if !labels.iter().any(|(_, label, _)| label.starts_with(&text)) {
            report.add_help(help);
        }
    }
    let mut out = Vec::new();
    let written = report.finish().write((CELL, Source::from(code)), &mut out);
    match written {
        Ok(()) => legible(String::from_utf8_lossy(&out).trim_end()),
        Err(_) => error.message(),
    }
}

/// The same text with one code for neighbours of one colour, and with the cell's own text in that of the page: the report's light grey is hard to
/// read on white.
fn legible(text: &str) -> String {
    const GREY: &str = "38;5;249";
    let (mut out, mut now) = (String::new(), "0");
    for (k, part) in text.split("\x1b[").enumerate() {
        let (wanted, rest) = match part.split_once('m') {
            Some((GREY, rest)) => ("0", rest),
            Some(both) if k > 0 => both,
            _ => ("0", part),
        };
        if rest.is_empty() {
            continue;
        }
        if wanted != now {
            out += "\x1b[0m";
            if wanted != "0" {
                let _ = write!(out, "\x1b[{wanted}m");
            }
            now = wanted;
        }
        out += rest;
    }
    if now != "0" {
        out += "\x1b[0m";
    }
    out
}

/// The character of the cell that stands at a line and a column, which count from 1, of what was compiled of it.
fn place(line: usize, column: usize, code: &str, compiled: &str) -> usize {
    let lines = code.split_inclusive('\n').take(line.saturating_sub(1));
    let begin: usize = lines.map(|l| l.chars().count()).sum();
    let of = |text: &str| {
        text.lines()
            .nth(line.saturating_sub(1))
            .unwrap_or_default()
            .to_string()
    };
    let own = of(code);
    let mut own = own.chars().peekable();
    let passed = of(compiled);
    let passed = passed.chars().take(column.saturating_sub(1));
    // What was inserted has no place of its own.
    begin + passed.filter(|c| own.next_if_eq(c).is_some()).count()
}

/// The message of a panic, with the line of the cell in place of one of the program that evcxr has made of it.
pub(super) fn of_panic(lines: &mut [String], compiled: &str, program: &str) {
    const PLACE: &str = "panicked at cells/src/lib.rs:";
    for text in lines {
        let Some((before, place)) = text.split_once(PLACE) else {
            continue;
        };
        let number = place.split(':').next().and_then(|n| n.parse().ok());
        let Some(number) = number.filter(|n| *n > 0) else {
            continue;
        };
        let Some(text_there) = program.lines().nth(number - 1) else {
            continue;
        };
        let place = match line_of_cell(number, compiled, program) {
            Some(line) => format!("in line {line} of the cell: "),
            None => "in ".into(),
        };
        *text = format!(
            "{before}panicked {place}{}",
            text_there.replace(SHOW, "").trim()
        );
    }
}

/// Which line of the cell a line of the program is. Those of the cell stand in it in their order, others between them.
fn line_of_cell(number: usize, compiled: &str, program: &str) -> Option<usize> {
    let wanted = program.lines().nth(number - 1)?.trim();
    let same = |line: &&str| line.trim() == wanted;
    // Lines that are alike are told apart by how many of them come after.
    let after = program.lines().skip(number).filter(same).count();
    let all: Vec<_> = (1..)
        .zip(compiled.lines())
        .filter(|(_, l)| same(l))
        .collect();
    Some(all[all.len().checked_sub(after + 1)?].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_cell() {
        let (code, compiled) = (
            "let λ = 1;\na + b // x",
            "let λ = 1;\n(a + b).evcxr_display(); // x",
        );
        for (line, column, at) in [
            (1, 5, 4),
            (2, 2, 11),
            (2, 6, 15),
            (9, 9, code.chars().count()),
        ] {
            assert_eq!(place(line, column, code, compiled), at, "{line}:{column}");
        }
    }

    #[test]
    fn colours_are_told_once() {
        let text = "\x1b[31mE\x1b[0m m\n\x1b[38;5;249ma\x1b[0m\x1b[38;5;249mb\x1b[0m\x1b[31mc\x1b[0m\x1b[31md\x1b[0m";
        assert_eq!(
            legible(text),
            "\x1b[0m\x1b[31mE\x1b[0m m\nab\x1b[0m\x1b[31mcd\x1b[0m"
        );
        assert_eq!(legible("plain text"), "plain text");
    }

    #[test]
    fn panics_are_told_in_lines_of_the_cell() {
        let code = "let v = vec![1];\n\nlet a = v[0];\nlet a = v[0];\nf(v[7]).evcxr_display();";
        let program = "mod runtime {\n}\nfn f() { old() }\nfn run() {\nlet v = vec![1];\nstore();\nlet a = v[0];\nlet a = v[0];\nf(v[7]).evcxr_display();\n}\n";
        for (number, line) in [(5, 1), (7, 3), (8, 4), (9, 5)] {
            assert_eq!(line_of_cell(number, code, program), Some(line));
        }
        let mut lines = vec![
            "panicked at cells/src/lib.rs:9:5:".to_string(),
            "index out of bounds".into(),
        ];
        of_panic(&mut lines, code, program);
        assert_eq!(lines[0], "panicked in line 5 of the cell: f(v[7])");
        let mut lines = vec!["panicked at cells/src/lib.rs:3:5:".to_string()];
        of_panic(&mut lines, code, program);
        assert_eq!(lines[0], "panicked in fn f() { old() }");
    }
}
