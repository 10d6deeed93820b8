//! `dataset::text`: the bytes or characters of a file.

use super::file::File;
use super::sequences::{MOST_TOKENS, TEST_ROWS, VALIDATION_ROWS, dataset, rows};
use super::tokenizer::Tokenizer;
use super::{Dataset, SEED};
use crate::error::Result;
use crate::memory;
use crate::options::{Entry, Kind, Options, Range, option, optional, required};
use anyhow::{anyhow, ensure};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const ENTRY: Entry<Arc<Dataset>> = Entry {
    name: "text",
    doc: "The tokens, bytes or characters of a text file (also gzipped): rows of a fixed number of them, and the next one at each position.\n\n\
        The rows are cut from the file one after the other, and the label at each position is the token after it: every token but the first is predicted once. \
        An incomplete row at the end is left out. The rows of the test split are chosen at random (`test: 0` keeps all of them, in order, in the training split). Tokens are bytes (vocabulary 256), or the different characters of the file, numbered in Unicode order: \
        then the vocabulary, `dataset.classes`, is their number, and the summary lists them. With `tokenizer` they are those of a tokenizer.json, \
        as the Python package tokenizers gives them for the whole text without special tokens at its ends; special tokens within the text, as \"<|endoftext|>\" between documents, count as such. \
        A model::pretrained, which may know more tokens than its tokenizer, needs `vocabulary: net.vocabulary`.",
    arguments: &["path"],
    options: &[
        required("path", Kind::Text, "The file."),
        option(
            "context",
            Kind::Int(Range::Between(1.0, 1048576.0)),
            "64",
            "Input tokens of a row; each has a label.",
        ),
        option(
            "level",
            Kind::Choice(&["characters", "bytes"]),
            "characters",
            "What a token is: a character of UTF-8 text, or a byte of any file.",
        ),
        optional(
            "tokenizer",
            Kind::Text,
            "by level",
            "The file tokenizer.json, or a folder that has it.",
        ),
        optional(
            "vocabulary",
            Kind::Int(Range::Between(2.0, MOST_TOKENS as f64)),
            "as many as there are",
            "Number of different tokens, which are 0, 1, 2, …: at least those that there are.",
        ),
        TEST_ROWS,
        VALIDATION_ROWS,
        SEED,
    ],
    example: "dataset::text(\"README.md\", #{ context: 32, level: \"bytes\" })",
    build,
};

fn build(options: &Options) -> Result<Arc<Dataset>> {
    let f = File::open(options.text("path")?)?;
    let bytes = f.content()?;
    memory::check_elements::<u32>(
        &[bytes.len()],
        &format!("'{}': {} tokens", f.path, bytes.len()),
    )?;
    let context = options.size("context")?;
    let mut provenance = vec![f.provenance()];
    let mut known = None;
    let tokenizer = options.opt_text("tokenizer");
    ensure!(
        tokenizer.is_none() || !options.was_given("level"),
        "{}: options 'level' and 'tokenizer' are both given; leave out one",
        options.owner()
    );
    let (count, tokens): (usize, Vec<u32>) = match (tokenizer, options.text("level")?) {
        (Some(json), _) => {
            let t = Tokenizer::read(json)?;
            let tokens = t.tokens(&f.path, as_text(&f.path, &bytes)?)?;
            let count = t.vocabulary()?;
            provenance.push(t.provenance);
            (count, tokens)
        }
        (None, "bytes") => (256, bytes.iter().map(|b| u32::from(*b)).collect()),
        _ => {
            let (characters, tokens) = characters(&f.path, &bytes)?;
            let list: String = characters.iter().take(256).collect();
            let more = if characters.len() > 256 { " …" } else { "" };
            provenance.push(("characters".into(), format!("{list:?}{more}")));
            let count = characters.len();
            known = Some(Arc::new(characters));
            (count, tokens)
        }
    };
    let vocabulary = match options.opt_int("vocabulary") {
        None => count,
        Some(given) => {
            let known = if tokenizer.is_some() {
                "the tokenizer knows"
            } else {
                "there are"
            };
            ensure!(
                given as usize >= count,
                "{}: option 'vocabulary' is {given}, but {known} {count} tokens",
                options.owner()
            );
            given as usize
        }
    };
    let what = format!("'{}'", f.path);
    let all = rows(&what, &tokens, &[tokens.len()], context)?;
    let used = all.rows * context + 1;
    provenance.push((
        "text".into(),
        format!(
            "{} tokens, the last {} not used",
            tokens.len(),
            tokens.len() - used
        ),
    ));
    let d = dataset("text", vocabulary, all, provenance, options)?;
    Ok(Arc::new(Dataset {
        characters: known,
        ..d
    }))
}

/// A file as text.
fn as_text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|e| {
        anyhow!(
            "'{path}' is not text in UTF-8: byte {} is not part of a character; convert it, or take level: \"bytes\"",
            e.valid_up_to()
        )
    })
}

/// The different characters of a text, and the text in their numbers.
fn characters(path: &str, bytes: &[u8]) -> Result<(Vec<char>, Vec<u32>)> {
    let text = as_text(path, bytes)?;
    let all: Vec<char> = text.chars().collect::<BTreeSet<_>>().into_iter().collect();
    ensure!(
        all.len() > 1,
        "'{path}' has fewer than two different characters, so there is nothing to learn"
    );
    let number = |c| all.partition_point(|other| *other < c) as u32;
    let tokens = text.chars().map(number).collect();
    Ok((all, tokens))
}

#[cfg(test)]
mod tests {
    use super::super::Inputs;
    use super::super::testing::{Folder, build, gzip, message, text};
    use super::*;
    use crate::options::Value;

    fn whole(context: i64) -> [(&'static str, Value); 2] {
        [("context", Value::Int(context)), ("test", Value::Int(0))]
    }

    fn given(path: &str, level: &str, context: i64) -> Vec<(&'static str, Value)> {
        let mut given = vec![("path", text(path)), ("level", text(level))];
        given.extend(whole(context));
        given
    }

    #[test]
    fn characters_are_numbered_and_every_one_is_foretold_once() {
        let folder = Folder::new();
        let content = "abäcabäb€"; // a b c ä €
        for bytes in [content.as_bytes().to_vec(), gzip(content.as_bytes())] {
            let path = folder.write("a.txt", bytes);
            let d = build(&ENTRY, &given(&path, "characters", 2)).unwrap();
            assert_eq!((d.dim, d.classes, d.train.rows), (2, 5, 4));
            assert_eq!(d.train.inputs, Inputs::Tokens(vec![0, 1, 3, 2, 0, 1, 3, 1]));
            assert_eq!(d.train.labels().unwrap(), [1, 3, 2, 0, 1, 3, 1, 4]);
            assert!(d.to_string().contains("\"abcä€\""), "{d}");
        }
        let path = folder.write("b.txt", content);
        let d = build(&ENTRY, &given(&path, "bytes", 5)).unwrap();
        assert_eq!((d.classes, d.train.rows), (256, 2));
        assert_eq!(d.train.labels().unwrap()[..3], [98, 195, 164]);
        assert!(
            d.to_string().contains("13 tokens, the last 2 not used"),
            "{d}"
        );
    }

    #[test]
    fn rows_are_divided_at_random() {
        let folder = Folder::new();
        let path = folder.write("a", "to be or not to be, that is the question ".repeat(20));
        let d = build(&ENTRY, &[("path", text(&path)), ("context", Value::Int(8))]).unwrap();
        let sizes: Vec<_> = d.splits().map(|(_, s)| s.rows).collect();
        assert_eq!(sizes, [82, 20]);
    }

    #[test]
    fn files_that_are_no_text_or_too_short_are_refused() {
        let folder = Folder::new();
        let path = folder.write("a", b"ab\xffcd");
        let e = message(&ENTRY, &given(&path, "characters", 2));
        assert!(
            e.contains("byte 2") && e.contains("level: \"bytes\""),
            "{e}"
        );
        let e = message(&ENTRY, &given(&path, "bytes", 5));
        assert!(
            e.contains("5 tokens is too short for a context of 5") && e.contains("at most 4"),
            "{e}"
        );
        let path = folder.write("b", "aaaa");
        assert!(message(&ENTRY, &given(&path, "characters", 2)).contains("nothing to learn"));
        assert!(message(&ENTRY, &given(&folder.path("c"), "bytes", 2)).contains("no such file"));
    }
}
