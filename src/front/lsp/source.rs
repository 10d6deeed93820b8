//! Where a name is defined: in the script, in a script that it imports, or in a recipe.

use crate::error::Result;
use crate::report::address::{decoded, href};
use crate::script::explore::declarations::declared;
use crate::script::explore::imports;
use crate::script::explore::tokens::{Kind, tokens};
use crate::script::library::read_text;
use crate::script::recipes::RECIPES;
use anyhow::Context;
use lsp_types::Uri;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A place in a file.
pub struct Found {
    /// The file; none for the script itself.
    pub uri: Option<Uri>,
    /// Its text.
    pub text: String,
    /// Where the name is.
    pub bytes: std::ops::Range<usize>,
}

/// Where the name at `cursor` is defined, of a script in this file.
pub fn definition(script: &Uri, source: &str, cursor: usize) -> Option<Found> {
    let all = tokens(source);
    let at = all
        .iter()
        .position(|t| t.start <= cursor && cursor <= t.end() && t.kind == Kind::Name)?;
    let (before, word) = (&all[..at], all[at]);
    match before {
        [.., space, mark] if mark.is("::") => elsewhere(script, source, space.text, word.text),
        [.., mark] if mark.is(".") => None,
        // The import itself, behind `as`, or its use before `::`.
        _ if all.get(at + 1).is_some_and(|t| t.is("::")) => {
            elsewhere(script, source, word.text, "")
        }
        _ => {
            let here = declared(source);
            // The newest one before the cursor; functions may stand behind it.
            let same = || here.iter().filter(|d| d.name == word.text);
            let found = same()
                .rfind(|d| d.start <= cursor)
                .or_else(|| same().next())?;
            Some(Found {
                uri: None,
                text: source.into(),
                bytes: found.start..found.start + found.name.len(),
            })
        }
    }
}

/// A function of what is imported under this name; its beginning without a function.
fn elsewhere(script: &Uri, source: &str, alias: &str, name: &str) -> Option<Found> {
    let imported = imports(source).into_iter().find(|(_, as_)| *as_ == alias);
    let (file, text) = match imported {
        None => recipe(alias)?,
        Some((path, _)) => recipe(path).or_else(|| {
            let own = folder(script)?.join(format!("{path}.rhai"));
            Some((own.clone(), read_text(&own).ok()?))
        })?,
    };
    let function = declared(&text);
    let function = function.iter().find(|d| d.word == "fn" && d.name == name);
    if function.is_none() && !name.is_empty() {
        return None;
    }
    let bytes = function.map_or(0..0, |d| d.start..d.start + d.name.len());
    Some(Found {
        uri: Some(uri(&file)?),
        text,
        bytes,
    })
}

/// The source of a recipe, in a file that an editor can open.
fn recipe(name: &str) -> Option<(PathBuf, String)> {
    let (_, text) = RECIPES.iter().find(|(own, _)| *own == name)?;
    let file = crate::front::cache::folder().ok()?.join(format!(
        "ergodic/recipes-{}/{name}.rhai",
        env!("CARGO_PKG_VERSION")
    ));
    written(&file, text).ok()?;
    Some((file, (*text).into()))
}

fn written(file: &Path, text: &str) -> Result<()> {
    if std::fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    crate::store::write_atomic(file, text.as_bytes()).context("cannot write the recipe")
}

/// The folder of a script.
fn folder(script: &Uri) -> Option<PathBuf> {
    let path = PathBuf::from(decoded(script.as_str().strip_prefix("file://")?)?);
    path.parent().map(Path::to_path_buf)
}

/// The address of a file.
fn uri(file: &Path) -> Option<Uri> {
    let inner = file.strip_prefix("/").ok()?;
    Uri::from_str(&format!("file:///{}", href(inner))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files_come_back() {
        let file = Path::new("/home/é b/100%/x.rhai");
        let address = uri(file).unwrap();
        assert!(address.as_str().is_ascii());
        assert_eq!(folder(&address).unwrap(), file.parent().unwrap());
        assert!(folder(&Uri::from_str("untitled:Untitled-1").unwrap()).is_none());
    }
}
