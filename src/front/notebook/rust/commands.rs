//! Commands of cells that evcxr alone would not do right here: `:dep` of a crate that the library has already, and `:opt`.

use super::folder::Prepared;
use crate::error::Result;
use std::fs;
use std::path::Path;

/// Crates that cells use as the library has them, without `:dep`: a second copy would have types of its own.
const SHARED: [&str; 7] = [
    "anyhow",
    "candle-core",
    "candle-nn",
    "ergodic",
    "plotters",
    "rand",
    "serde_json",
];

/// What is left for evcxr to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Commands {
    /// The cell without what is done already; its lines keep their numbers.
    pub code: String,
    /// What is to be told, in lines.
    pub notes: String,
    /// The level of optimisation that cells are compiled with from now on, if there is another.
    pub level: Option<u8>,
}

impl Commands {
    /// Of a cell; `level` is that of the cells so far.
    ///
    /// # Errors
    /// If a crate is asked for in a version that cannot be had.
    pub fn of(code: &str, prepared: &Prepared, level: u8) -> Result<Self> {
        let mut out = Self::default();
        for line in code.lines() {
            let text = line.trim();
            let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            match word {
                ":dep" => {
                    if let Some(note) = shared(rest.trim(), prepared)? {
                        out.notes += &(note + "\n");
                        out.code.push('\n');
                        continue;
                    }
                }
                ":opt" => {
                    let wanted = rest.trim();
                    out.level = wanted
                        .parse()
                        .ok()
                        .or(wanted.is_empty().then_some(2 - level.min(2)));
                }
                _ => {}
            }
            out.code += line;
            out.code.push('\n');
        }
        Ok(out)
    }
}

/// What is to be said of a dependency that is there already; none of any other.
fn shared(wanted: &str, prepared: &Prepared) -> Result<Option<String>> {
    let (name, spec) = wanted.split_once('=').unwrap_or((wanted, ""));
    let alike = |x: &str| x.replace('-', "_");
    let Some(name) = SHARED.iter().find(|s| alike(s) == alike(name.trim())) else {
        return Ok(None);
    };
    let version = prepared.version_of(name)?;
    let number = spec.split('"').find(|part| {
        part.trim_start_matches(['=', '^', '~'])
            .starts_with(|c: char| c.is_ascii_digit())
    });
    if let Some(number) = number {
        let number = number.trim_start_matches(['=', '^', '~']);
        // Versions that begin with 0 differ in what comes next.
        let parts = if version.starts_with("0.") { 2 } else { 1 };
        let differ = number
            .split('.')
            .zip(version.split('.'))
            .take(parts)
            .any(|(a, b)| a != b);
        anyhow::ensure!(
            !differ,
            "cells have {name} {version}, of which ergodic is made, and can have no other version beside it, but {number} is asked for"
        );
    }
    let features = match spec.contains("features") {
        true => ", with the features that ergodic needs and no others",
        false => "",
    };
    Ok(Some(format!(
        "{name} {version} is there without :dep, shared with ergodic{features}"
    )))
}

/// Have cells compiled with that optimisation: what the workspace says counts, and not what evcxr writes in their own manifest.
pub(super) fn optimise(workspace: &Path, level: u8) -> Result<()> {
    let text = format!(
        "[workspace]\nmembers = [\"cells\", \"kept\"]\nresolver = \"3\"\n\n[profile.dev]\nopt-level = {}\n",
        level.min(3)
    );
    Ok(fs::write(workspace.join("Cargo.toml"), text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_has_is_not_loaded_again() {
        let folder = std::env::temp_dir().join(format!("ergodic-commands-{}", std::process::id()));
        let prepared = Prepared {
            version: "1".into(),
            source: "s".into(),
            rustc: "r".into(),
            toolchain: None,
            features: Vec::new(),
            variables: Default::default(),
            folder: folder.clone(),
        };
        fs::create_dir_all(prepared.template()).unwrap();
        let lock = "[[package]]\nname = \"candle-core\"\nversion = \"0.11.1\"\n\n[[package]]\nname = \"serde_json\"\nversion = \"1.0.2\"\n";
        fs::write(prepared.template().join("Cargo.lock"), lock).unwrap();
        let of = |code: &str| Commands::of(code, &prepared, 0);
        let found = of(":dep candle_core = \"0.11\"\n:dep libm\nlet x = 1;").unwrap();
        assert_eq!(found.code, "\n:dep libm\nlet x = 1;\n");
        assert!(
            found
                .notes
                .starts_with("candle-core 0.11.1 is there without :dep")
        );
        for fine in [
            "serde_json",
            "serde_json = \"1\"",
            "serde_json = { version = \"=1.0.2\", features = [\"std\"] }",
        ] {
            assert_eq!(
                of(&format!(":dep {fine}")).unwrap().notes.lines().count(),
                1,
                "{fine}"
            );
        }
        let other = of(":dep candle-core = \"0.9\"").unwrap_err().to_string();
        assert!(other.contains("0.9 is asked for"), "{other}");
        assert_eq!(of(":opt 3").unwrap().level, Some(3));
        assert_eq!(of(":opt").unwrap().level, Some(2));
        assert_eq!(of("let opt = 1;").unwrap().level, None);
        fs::remove_dir_all(folder).unwrap();
    }
}
