//! The lines of a table, of whatever kind of file it is.

use super::columns::{Header, Role, columns};
use crate::dataset::file::File;
use crate::error::Result;
use crate::options::Options;
use anyhow::{Context, anyhow, bail};
use csv::{ByteRecord, ReaderBuilder};
use std::borrow::Cow;

/// What is done with a line: its cells as text, and its number.
pub type Take<'a> = &'a mut dyn FnMut(&ByteRecord, u64) -> Result<()>;

/// What kind of file a table is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Text with a character between cells.
    Text,
    /// Parquet, of which the first line has the names.
    Parquet,
}

impl Lines {
    /// Fail if a file is of the other kind.
    pub fn ensure(self, f: &File) -> Result<()> {
        let path = &f.path;
        match (self, f.bytes.starts_with(b"PAR1")) {
            (Self::Text, true) => bail!("'{path}' is a Parquet file, which dataset::parquet reads"),
            (Self::Parquet, false) => {
                bail!("'{path}' is no Parquet file; dataset::csv reads text")
            }
            _ => Ok(()),
        }
    }

    /// What data sets of such files are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "csv",
            Self::Parquet => "parquet",
        }
    }

    /// What messages call a line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "line",
            Self::Parquet => "row",
        }
    }

    /// Whether the first line holds the names of columns.
    pub fn named(self, options: &Options, path: &str, first: &ByteRecord) -> Result<bool> {
        match self {
            Self::Text => is_header(options, path, first),
            Self::Parquet => Ok(true),
        }
    }

    /// Go through all lines.
    pub fn each(self, options: &Options, f: &File, take: Take) -> Result<()> {
        match self {
            Self::Text => each_of_text(options, f, take),
            #[cfg(feature = "parquet")]
            Self::Parquet => super::parquet::each(f, take),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => bail!(
                "'{}': this program was built without Parquet; build it with `cargo build --release --features parquet`, or write the table as CSV",
                f.path
            ),
        }
    }
}

fn each_of_text(options: &Options, f: &File, take: Take) -> Result<()> {
    let content = f.content()?;
    let separator = separator(options)?;
    closed_quotes(&content, separator).map_err(|what| anyhow!("'{}', {what}", f.path))?;
    // Flexible, so that a ragged line is reported in our words.
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .from_reader(&content[..]);
    let mut record = ByteRecord::new();
    while reader
        .read_byte_record(&mut record)
        .with_context(|| format!("cannot read '{}'", f.path))?
    {
        let line = record.position().map_or(0, |p| {
            // The reader's count stands before the blank lines that it skips.
            let rest = content.get(p.byte() as usize..).unwrap_or_default();
            let blank = rest.iter().take_while(|b| matches!(b, b'\n' | b'\r'));
            p.line() + blank.filter(|&&b| b == b'\n').count() as u64
        });
        take(&record, line)?;
    }
    Ok(())
}

/// Fail if a quote that opens a cell does not close, or closes in the middle of another cell: the reader takes all lines between for one.
fn closed_quotes(content: &[u8], separator: u8) -> std::result::Result<(), String> {
    let utf16 = [&[0xff, 0xfe][..], &[0xfe, 0xff]];
    if utf16.iter().any(|mark| content.starts_with(mark)) {
        return Err(
            "line 1: this is UTF-16; convert the file first, as with iconv -f utf-16 -t utf-8"
                .into(),
        );
    }
    if !content.contains(&b'"') {
        return Ok(());
    }
    let mut rest = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let (mut line, mut begins) = (1, true);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if !(begins && *first == b'"') {
            line += usize::from(*first == b'\n');
            begins = [separator, b'\n', b'\r'].contains(first);
            continue;
        }
        let opened = line;
        loop {
            match rest {
                [b'"', b'"', after @ ..] => rest = after,
                [b'"', after @ ..] => {
                    rest = after;
                    break;
                }
                [b, after @ ..] => {
                    line += usize::from(*b == b'\n');
                    rest = after;
                }
                [] => {
                    return Err(format!(
                        "line {opened}: a quote opens a cell here, and never closes"
                    ));
                }
            }
        }
        let blank = |b: &&u8| [b' ', b'\t'].contains(b) && **b != separator;
        let next = rest.iter().find(|b| !blank(b));
        if line > opened && next.is_some_and(|b| ![separator, b'\n', b'\r'].contains(b)) {
            return Err(format!(
                "line {opened}: a quote opens a cell here, and closes in the middle of another in line {line}; write quotes within a cell as \"\""
            ));
        }
        begins = false;
    }
    Ok(())
}

fn separator(options: &Options) -> Result<u8> {
    let owner = options.owner();
    match options.text("separator")? {
        "tab" | "\t" => Ok(b'\t'),
        s => match s.as_bytes() {
            &[b] if b.is_ascii() && !matches!(b, b'"' | b'\n' | b'\r') => Ok(b),
            _ => bail!(
                "{owner}: option 'separator' is {s:?}, but must be one ASCII character other than a quote"
            ),
        },
    }
}

/// Whether the first line of a text holds the names of columns.
fn is_header(options: &Options, path: &str, first: &ByteRecord) -> Result<bool> {
    let is_number = |c: &[u8]| text(c).parse::<f64>().is_ok();
    let numbers = first.iter().filter(|c| is_number(c)).count();
    match options.text("header")? {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ if numbers == 0 => Ok(true),
        // Names that pandas gives to columns without one.
        _ if numbers > 1
            && first
                .iter()
                .enumerate()
                .all(|(j, c)| *c == *j.to_string().as_bytes()) =>
        {
            bail!(
                "'{path}', line 1: 0, 1, 2, … may be names of columns or an example; say header: \"yes\" or \"no\""
            )
        }
        _ if numbers == first.len() => Ok(false),
        _ => {
            // Words may stand where no number is needed.
            let file = Header {
                path,
                names: &None,
                width: first.len(),
            };
            let roles = columns(options, file).map(|c| c.roles);
            let mut cells = first.iter().zip(roles.unwrap_or_default());
            let some = first.iter().len() > 0 && cells.len() > 0;
            if some && cells.all(|(c, role)| role != Role::Number || is_number(c)) {
                return Ok(false);
            }
            // Guessing would drop a damaged first example, or read names as numbers.
            bail!(
                "'{path}', line 1: {numbers} of {} cells are numbers; say header: \"yes\" if it holds column names, or \"no\"",
                first.len()
            )
        }
    }
}

/// A cell as text.
pub fn text(cell: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(cell.trim_ascii())
}
