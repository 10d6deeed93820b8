//! The reference: complete, with examples that run; the README shows what there is.

use super::support::evaluate;
use ergodic::options::{Default, Options};
use ergodic::script::all_items;

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

#[test]
#[ignore = "long: tests/run"]
fn the_scripts_of_every_page_run() {
    for (name, text) in ergodic::front::docs::PAGES {
        let scripts: Vec<_> = text.split("```rhai\n").skip(1).collect();
        assert!(!scripts.is_empty(), "{name} has no example");
        for script in scripts {
            let script = script.split("```").next().unwrap();
            if let Err(e) = evaluate(script) {
                panic!("page {name}:\n{script}\n{e}");
            }
        }
    }
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
