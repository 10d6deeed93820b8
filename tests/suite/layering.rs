//! The layers: a module uses only modules above it, and only `script` names Rhai.

use super::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Top to bottom; a module may use itself and those before it. The first three are the crate `ergodic-kernels`.
const LAYERS: [&str; 28] = [
    "kernels",
    "memory",
    "rng",
    "error",
    "platform",
    "access",
    "output",
    "schedule",
    "trigger",
    "options",
    "ranks",
    "table",
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

/// The file that a path of modules leads to, and the name that it takes from there.
fn file_of<'a>(path: &[&str], modules: &'a BTreeSet<String>) -> Option<&'a String> {
    (1..=path.len())
        .rev()
        .find_map(|n| modules.get(&path[..n].join("::")))
}

/// Paths that a `use` names: `a::{b, c::{d}}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some((before, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.trim().to_string()];
    };
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (c, depth) {
            (',', 0) => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(c),
        }
    }
    let parts = parts.iter().filter(|p| !p.trim().is_empty());
    parts
        .flat_map(|part| paths(&format!("{}{}", before.trim(), part.trim())))
        .collect()
}

/// A folder's `mod.rs` is its face: what it has, those inside may use, and the other way round.
#[test]
fn no_files_use_each_other_in_a_circle() {
    no_circle_in(&root().join("src"), 1000);
    no_circle_in(&root().join("crates/kernels/src"), 50);
}

/// The files of a crate, of which at least so many uses of each other must be found.
fn no_circle_in(folder: &Path, least: usize) {
    let mut files = Vec::new();
    sources(folder, &mut files);
    let module = |file: &Path| {
        let inside = file.strip_prefix(folder).unwrap();
        let path = inside.with_extension("");
        let names: Vec<_> = path.iter().map(|n| n.to_string_lossy()).collect();
        names.join("::").trim_end_matches("::mod").to_string()
    };
    let tests = |name: &str| name == "tests" || name.ends_with("_tests");
    files.retain(|f| !module(f).split("::").any(tests));
    let modules: BTreeSet<String> = files.iter().map(|f| module(f)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let own = module(file);
        let here: Vec<&str> = own.split("::").collect();
        let source = std::fs::read_to_string(file).unwrap();
        let code: Vec<_> = source
            .lines()
            .take_while(|l| *l != "#[cfg(test)]")
            .filter(|l| !l.trim_start().starts_with("//"))
            .collect();
        let code = code.join(" ");
        let named = code.split("use ").skip(1);
        let named = named.filter_map(|rest| rest.split(';').next());
        for path in named.flat_map(paths) {
            let mut parts: Vec<&str> = path.split("::").map(str::trim).collect();
            let up = parts.iter().take_while(|p| **p == "super").count();
            let full: Vec<&str> = match parts[0] {
                "crate" => parts.split_off(1),
                "super" => [&here[..here.len().saturating_sub(up)], &parts[up..]].concat(),
                _ => continue,
            };
            let Some(other) = file_of(&full, &modules) else {
                continue;
            };
            let face = |a: &str, b: &str| b.strip_prefix(a).is_some_and(|r| r.starts_with("::"));
            if own != *other && !face(&own, other) && !face(other, &own) {
                uses.entry(own.clone()).or_default().insert(other.clone());
            }
        }
    }
    let arrows: usize = uses.values().map(BTreeSet::len).sum();
    assert!(
        arrows >= least,
        "only {arrows} uses found: the test has lost its sight"
    );
    // What nothing uses that is left is in no circle; then what uses nothing that is left.
    loop {
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        let before = uses.len();
        uses.retain(|own, _| used.contains(own));
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.values_mut()
            .for_each(|to| to.retain(|t| left.contains(t)));
        uses.retain(|_, to| !to.is_empty());
        if uses.len() == before {
            break;
        }
    }
    assert!(
        uses.is_empty(),
        "files that use each other in a circle: {uses:#?}"
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

/// Files of scripts and runs pass one place, where it is looked whether they may be read or written, and where a test can make them fail.
#[test]
fn files_are_read_and_changed_in_one_place() {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let may = ["store/disk.rs", "access.rs", "platform.rs", "main.rs"];
    let calls = "read read_to_string read_dir write rename copy hard_link metadata create_dir create_dir_all remove_file remove_dir remove_dir_all";
    let calls: Vec<_> = calls
        .split(' ')
        .map(|call| format!("fs::{call}("))
        .collect();
    let more = [
        ".read_dir()",
        "fs::File::",
        "File::create",
        "File::options",
        "OpenOptions",
    ];
    let mut seen = 0;
    for file in &files {
        let path = file.strip_prefix(root().join("src")).unwrap();
        let tests = path.iter().any(|p| p.to_string_lossy().contains("test"));
        let source = std::fs::read_to_string(file).unwrap();
        let code = source.split("\n#[cfg(test)]").next().unwrap_or_default();
        let std = code.contains("std::fs");
        let code = code.lines();
        let code = code.filter(|l| !l.trim_start().starts_with("//"));
        let named: Vec<_> = code
            .filter(|l| {
                let opens = std && l.contains("File::open(");
                opens || more.iter().any(|m| l.contains(m)) || calls.iter().any(|c| l.contains(c))
            })
            .collect();
        seen += named.len();
        // The command line has folders of its own, as that of the kernel.
        if tests || path.starts_with("front") || may.iter().any(|m| path == Path::new(m)) {
            continue;
        }
        assert!(named.is_empty(), "{}: {named:?}", file.display());
    }
    assert!(seen > 50, "only {seen} found: the test has lost its sight");
}

/// Every crate that a manifest names stands in the list of dependencies, with its reason, and no other. What a manifest asks for at least is what all
/// tests ran with: an older version may not even compile.
#[test]
fn every_dependency_has_its_reason_and_the_version_that_is_tested() {
    let list = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let rows = list
        .lines()
        .filter_map(|l| l.strip_prefix("| ")?.split(" | ").next());
    let rows = rows.filter(|first| *first != "crate");
    let listed: BTreeSet<String> = rows
        .flat_map(|names| names.split(", "))
        .map(|name| name.split(" (").next().unwrap().to_string())
        .collect();
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut named = BTreeSet::new();
    for manifest in ["Cargo.toml", "crates/kernels/Cargo.toml"] {
        let text = std::fs::read_to_string(root().join(manifest)).unwrap();
        let mut dependencies = false;
        for line in text.lines() {
            if line.starts_with('[') {
                dependencies = line.contains("dependencies]");
            } else if let Some((name, asked)) = line.split_once(" = ").filter(|_| dependencies) {
                named.insert(name.to_string());
                let digit = |c: char| c.is_ascii_digit();
                let version = asked.split('"').find(|part| part.starts_with(digit));
                let locked = format!("name = \"{name}\"\nversion = \"{}", version.unwrap());
                let rest = lock.split_once(&locked).map(|(_, rest)| rest);
                // Behind a plus there are remarks.
                let same = rest.is_some_and(|rest| rest.starts_with(['"', '+']));
                assert!(same, "{manifest}: {line} is not the version of Cargo.lock");
            }
        }
    }
    assert_eq!(listed, named);
}

/// A patch that no longer fits would be found only by who runs them all.
#[test]
fn every_mutant_fits_the_source() {
    let folder = root().join("tests/mutants").read_dir().unwrap().flatten();
    let patches: Vec<_> = folder.map(|e| e.path()).collect();
    let patches = patches
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "patch"));
    let mut hunks = 0;
    for path in patches {
        let patch = std::fs::read_to_string(path).unwrap();
        for file in patch.split("\n--- a/").skip(1) {
            let (name, changes) = file.split_once('\n').unwrap();
            let source = std::fs::read_to_string(root().join(name.trim())).unwrap();
            for hunk in changes.split("\n@@ ").skip(1) {
                let lines = hunk.lines().skip(1);
                let before = lines.filter(|l| !l.starts_with('+'));
                let before: Vec<_> = before.map(|l| l.get(1..).unwrap_or_default()).collect();
                assert!(
                    source.contains(&before.join("\n")),
                    "{}: {name}",
                    path.display()
                );
                hunks += 1;
            }
        }
    }
    assert!(
        hunks > 10,
        "only {hunks} found: the test has lost its sight"
    );
}

/// The weekly workflow has a job for each reader that is fuzzed.
#[test]
fn every_reader_is_fuzzed_weekly() {
    let names = |file: &str, begin: &str, end: char| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let (_, rest) = text.split_once(begin).unwrap();
        let (list, _) = rest.split_once(end).unwrap();
        let names = list.split([' ', ',']).filter(|name| !name.is_empty());
        names.map(str::to_string).collect::<Vec<_>>()
    };
    let weekly = names(".github/workflows/weekly.yml", "reader: [", ']');
    assert_eq!(weekly, names("tests/fuzz/run", "all=(", ')'));
    assert!(weekly.len() > 20);
    assert!(root().join("tests/fuzz/corpus.tar.gz").is_file());
}
