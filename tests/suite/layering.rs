//! The layers: a module uses only modules above it, and only `script` names Rhai.

use super::support::root;
use std::path::{Path, PathBuf};

/// Top to bottom; a module may use itself and those before it.
const LAYERS: [&str; 26] = [
    "error",
    "output",
    "memory",
    "rng",
    "schedule",
    "trigger",
    "options",
    "ranks",
    "table",
    "kernels",
    "diagnostic",
    "store",
    "plot",
    "object",
    "verb",
    "dataset",
    "model",
    "target",
    "engine",
    "sampler",
    "observable",
    "simulation",
    "report",
    "registry",
    "builders",
    "script",
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The module of the crate that a file belongs to.
fn layer(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let first = inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy();
    first.trim_end_matches(".rs").to_string()
}

/// Names after `crate::` in code, not in comments.
fn uses(source: &str) -> Vec<String> {
    let code = source
        .lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut out = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let inner = group.split('}').next().unwrap_or("");
            out.extend(
                inner
                    .split(',')
                    .map(|n| n.trim().split("::").next().unwrap_or("").to_string()),
            );
        } else {
            out.push(
                rest.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect(),
            );
        }
    }
    out
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS
        .iter()
        .position(|l| *l == layer)
        .or((layer == "front").then_some(LAYERS.len()))
        .or((layer == "prelude").then_some(LAYERS.len() + 1))
}

#[test]
fn a_module_uses_only_modules_above_it() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let mut wrong = Vec::new();
    let mut arrows = 0;
    for file in &files {
        let own = layer(file);
        if own == "lib" || own == "main" {
            continue;
        }
        let own_rank =
            rank(&own).unwrap_or_else(|| panic!("{}: '{own}' is in no layer", file.display()));
        for used in uses(&std::fs::read_to_string(file).unwrap()) {
            let Some(used_rank) = rank(&used) else {
                continue;
            };
            arrows += 1;
            if used_rank > own_rank {
                wrong.push(format!("{}: {own} uses {used}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        arrows > 100,
        "only {arrows} uses found: the test has lost its sight"
    );
}

#[test]
fn only_the_script_folder_names_rhai() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    for file in files.iter().filter(|f| layer(f) != "script") {
        let source = std::fs::read_to_string(file).unwrap();
        let code = source.lines().filter(|l| !l.trim_start().starts_with("//"));
        let named: Vec<_> = code.filter(|l| l.contains("rhai::")).collect();
        assert!(named.is_empty(), "{}: {named:?}", file.display());
    }
}
