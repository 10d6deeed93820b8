//! The reference and the book: complete, with examples that run, and found by their words.

use super::support::{Scratch, ergodic, evaluate, evaluate_in, root, text};
use ergodic::front::docs::{self, PAGES};
use ergodic::options::{Default, Options};
use ergodic::script::all_items;
use std::path::Path;

#[test]
fn every_item_is_documented_and_every_example_runs() {
    let mut examples = 0;
    for item in all_items() {
        assert!(item.doc.len() > 5, "{} has no documentation", item.path());
        assert!(
            item.doc.lines().next().unwrap().len() < 200,
            "{}: the first line is long",
            item.path()
        );
        for option in item.options {
            assert!(
                option.doc.len() > 5,
                "{}: option {} has no documentation",
                item.path(),
                option.name
            );
        }
        assert!(
            item.options.is_empty() || !item.example.is_empty(),
            "{} has options but no example",
            item.path()
        );
        if !item.example.is_empty() {
            examples += 1;
            match evaluate(&item.example) {
                // What is a feature of the build has no example without it.
                Err(e) if e.message.contains("this program was built without") => {}
                Err(e) => panic!("the example of {}:\n{e}", item.path()),
                Ok(_) => {}
            }
        }
    }
    assert!(examples > 40, "only {examples} examples");
}

/// The words of a drawing: names, titles, legends, and not the numbers at ticks, which depend on the machine's arithmetic.
fn words(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1);
    let texts = texts.filter_map(|t| t.split('>').nth(1)?.split('<').next());
    texts
        .map(str::trim)
        .filter(|t| t.contains(char::is_alphabetic))
        .collect()
}

/// And every figure of a page is drawn by the script before it; with UPDATE set, those in `docs/figures` are drawn anew.
#[test]
#[ignore = "long: tests/run"]
fn the_scripts_of_every_page_run() {
    let (mut run, mut shown) = (0, 0);
    for (name, text) in PAGES {
        for part in text.split("```rhai\n").skip(1) {
            let (script, rest) = part.split_once("```").unwrap();
            let scratch = Scratch::new();
            if let Err(e) = evaluate_in(&scratch, script) {
                panic!("page {name}:\n{script}\n{e}");
            }
            run += 1;
            for figure in rest.split("](figures/").skip(1) {
                let figure = figure.split(')').next().unwrap();
                let drawn = scratch.join("out/figures").join(figure);
                let drawn = std::fs::read_to_string(drawn);
                let drawn =
                    drawn.unwrap_or_else(|e| panic!("page {name}, {figure}: {e}\n{script}"));
                let kept = root().join("docs/figures").join(figure);
                if std::env::var_os("UPDATE").is_some() {
                    std::fs::write(&kept, &drawn).unwrap();
                }
                let kept = std::fs::read_to_string(kept).unwrap();
                assert_eq!(words(&drawn), words(&kept), "page {name}, {figure}");
                shown += 1;
            }
        }
    }
    assert!(run > 30, "only {run} scripts");
    assert!(shown > 8, "only {shown} figures");
}

/// Every page is a chapter of the book and is known to `ergodic docs`, and every link leads somewhere.
#[test]
fn the_book_has_every_page() {
    let docs = root().join("docs");
    let read = |file: &Path| std::fs::read_to_string(file).unwrap();
    let links = |text: &str| -> Vec<String> {
        let parts = text
            .split("](")
            .skip(1)
            .filter_map(|part| part.split(')').next());
        let here = parts.filter(|link| !link.contains("://"));
        here.map(|link| link.split('#').next().unwrap().to_string())
            .collect()
    };
    let mut chapters = links(&read(&docs.join("SUMMARY.md")));
    // Written by docs/build.
    chapters.retain(|chapter| chapter != "reference.md");
    let mut pages: Vec<String> = PAGES.iter().map(|(name, _)| format!("{name}.md")).collect();
    pages.insert(0, "introduction.md".into());
    assert_eq!(chapters, pages);
    // A page would hide what scripts can call.
    let items = all_items();
    for (page, _) in PAGES {
        assert!(
            !items
                .iter()
                .any(|i| i.name == *page || i.namespace == *page),
            "{page}"
        );
    }
    let mut files: Vec<_> = std::fs::read_dir(&docs)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md" && name != "reference.md")
        .collect();
    files.sort();
    pages.sort();
    assert_eq!(files, pages);
    let all = pages.iter().map(|page| docs.join(page));
    for file in all.chain([root().join("README.md"), root().join("CONTRIBUTING.md")]) {
        for link in links(&read(&file)) {
            let target = file.parent().unwrap().join(&link);
            assert!(target.exists(), "{}: no '{link}'", file.display());
        }
    }
}

#[test]
fn the_job_script_of_a_page_is_what_the_program_writes() {
    let (_, page) = PAGES.iter().find(|(name, _)| *name == "cluster").unwrap();
    let between = |from: &str, to: &str| Some(page.split_once(from)?.1.split_once(to)?.0);
    let scratch = Scratch::new();
    scratch.file("chains.rhai", between("```rhai\n", "```").unwrap());
    let words = between("```sh\nergodic ", " > job.sh").unwrap();
    let mut command = ergodic();
    let output = command
        .args(words.split(' '))
        .current_dir(scratch.join("."));
    let output = output.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let job = String::from_utf8(output.stdout).unwrap();
    let shown = between("This is `job.sh`:\n\n```sh\n", "```");
    assert_eq!(shown, Some(&*job));
}

#[test]
fn the_reference_can_be_searched() {
    let of = |words: &str| docs::lookup(Some(words)).unwrap();
    for (words, page) in [
        ("virial", "laws"),
        ("T excess", "laws"),
        ("SLURM", "own"),
        ("job arrays", "own"),
        ("round trips", "ladders"),
        ("GPUs", "performance"),
        ("parallel tempering", "ladders"),
    ] {
        let found = of(words);
        let is_found =
            |line: &str| line.starts_with(&format!("  {page} ")) && line.ends_with("(page)");
        assert!(found.lines().any(is_found), "{words}:\n{found}");
    }
    assert!(of("noise scale of minibatches").contains("gradient"));
    let e = docs::lookup(Some("xyzzyq")).unwrap_err().to_string();
    assert!(
        e.contains("nothing is called 'xyzzyq', and no page speaks of it"),
        "{e}"
    );
}

#[test]
fn every_default_passes_its_own_check() {
    for item in all_items() {
        for spec in item.options {
            if let Default::Is(_) = spec.default {
                let one: &'static [_] = std::slice::from_ref(spec);
                Options::check(&item.path(), one, Vec::new()).unwrap();
            }
        }
    }
}
