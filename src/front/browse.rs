//! The reference in a pager and in a browser.

use super::cache;
use super::docs::{self, PAGES, first_line};
use crate::error::Result;
use crate::output;
use crate::report::document;
use anyhow::Context;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, html};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Print a text, on a terminal through `PAGER`, or `less` if that is not set.
pub fn paged(text: &str) {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
    let mut words = pager.split_whitespace();
    let Some(program) = words.next().filter(|_| std::io::stdout().is_terminal()) else {
        return output::line(text);
    };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    // Colours as they are, and no pager for what fits on the screen.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    match command.spawn() {
        Ok(mut child) => {
            // Whoever leaves before the end wants no more of it.
            if let Some(mut input) = child.stdin.take() {
                let _ = writeln!(input, "{text}");
            }
            let _ = child.wait();
        }
        Err(_) => output::line(text),
    }
}

/// Show a page, or what `ergodic docs NAME` says, in a browser: of the book, if it was built and is beside the program; returns the file.
///
/// # Errors
/// If there is nothing of that name, or the file cannot be written.
pub fn open(name: Option<&str>) -> Result<PathBuf> {
    let file = match name.map_or(Some("index"), page_of).and_then(in_book) {
        Some(file) => file,
        None => written(name)?,
    };
    let opener = std::env::var("BROWSER").ok().filter(|b| !b.is_empty());
    let opener = opener.unwrap_or_else(|| match std::env::consts::OS {
        "macos" => "open".into(),
        "windows" => "explorer".into(),
        _ => "xdg-open".into(),
    });
    let mut command = Command::new(&opener);
    command.arg(&file).stdin(Stdio::null());
    let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if started.is_err() {
        output::remark(format_args!(
            "NOTE: no browser could be started ({opener}; set BROWSER); open the file yourself"
        ));
    }
    Ok(file)
}

/// The page of that name, if it is one.
fn page_of(name: &str) -> Option<&'static str> {
    PAGES
        .iter()
        .map(|(page, _)| *page)
        .find(|page| *page == name)
}

/// A page of the book that lies beside the program, where a package or `docs/build` has put it.
fn in_book(page: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let places = ["book", "../book", "../share/doc/ergodic/book"];
    let files = places.map(|place| folder.join(place).join(format!("{page}.html")));
    files.into_iter().find(|file| file.is_file())
}

/// A text of the reference as a page in the user's cache.
fn written(name: Option<&str>) -> Result<PathBuf> {
    let folder = cache::folder()?.join(format!("ergodic/docs-{}", env!("CARGO_PKG_VERSION")));
    for (page, text) in PAGES {
        write(&folder, page, text)?;
    }
    let index = write(&folder, "index", &index())?;
    match (name, name.and_then(page_of)) {
        (None, _) => Ok(index),
        (_, Some(page)) => Ok(index.with_file_name(format!("{page}.html"))),
        (Some(name), None) => write(&folder, "name", &docs::lookup(Some(name))?),
    }
}

fn write(folder: &Path, stem: &str, text: &str) -> Result<PathBuf> {
    let file = folder.join(format!("{stem}.html"));
    let title = first_line(text).trim_start_matches(['#', ' ']);
    let body = format!(
        "<header><p class=\"kicker\"><a href=\"index.html\">all pages</a></p></header>\n<main>{}</main>\n",
        rendered(text)
    );
    let page = document(&format!("{title} – ergodic"), &body, "", ("", ""));
    crate::store::write_atomic(&file, page.as_bytes()).context("cannot write the page")?;
    Ok(file)
}

/// The list of pages, as a page.
fn index() -> String {
    let mut out = String::from("# ergodic\n\n");
    for (name, text) in PAGES {
        out += &format!("* [{}]({name}.md)\n", first_line(text));
    }
    out + "\n`ergodic docs NAME` shows a function, `ergodic docs --all` the whole reference.\n"
}

/// Markdown as HTML; links to other pages lead to theirs.
fn rendered(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Start(Tag::Link {
            link_type: LinkType::Inline,
            dest_url,
            title,
            id,
        }) => Event::Start(Tag::Link {
            link_type: LinkType::Inline,
            dest_url: dest_url.replace(".md", ".html").into(),
            title,
            id,
        }),
        // Nothing of a text is taken for a page of its own.
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        other => other,
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_rendered_with_links_to_each_other() {
        let page =
            rendered("# A\n\n[b](b.md#c) `x|y` <script>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert!(page.contains("<a href=\"b.html#c\">b</a>") && page.contains("<td>2</td>"));
        assert!(!page.contains("<script>"));
        assert!(index().contains("[A tour](tour.md)"));
    }
}
