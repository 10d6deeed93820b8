//! What recipes tell of themselves: in the reference, in completion, in help.

use super::super::support::{Scratch, ergodic, evaluate, text};
use super::found;
use ergodic::options::Default;
use ergodic::script::Interpreter;
use ergodic::script::recipes::{RECIPES, recipe_items};
use ergodic::simulation::session::Session;
use std::collections::BTreeMap;

#[test]
#[ignore = "long: tests/run"]
fn every_recipe_is_documented_and_every_example_runs() {
    assert_eq!(RECIPES.len(), 12);
    for (name, source) in RECIPES {
        assert!(source.starts_with("//! "), "{name} has no heading");
        assert!(
            recipe_items().iter().any(|i| i.namespace == *name),
            "{name} offers nothing"
        );
    }
    for item in recipe_items() {
        assert!(
            !item.doc.is_empty() && item.brief().len() < 200,
            "{}",
            item.path()
        );
        for option in item.options {
            assert!(
                option.doc.len() > 5,
                "{}: option {}",
                item.path(),
                option.name
            );
            if let Default::Is(text) = option.default {
                // It is an expression of the language, cut out whole.
                found(text);
            }
        }
        assert!(!item.example.is_empty(), "{}", item.path());
        let value = evaluate(&item.example)
            .unwrap_or_else(|e| panic!("the example of {}:\n{e}", item.path()));
        assert!(
            value.is_object() || value.is_string(),
            "{}: {value}",
            item.path()
        );
    }
    let find = recipe_items()
        .iter()
        .find(|i| i.path() == "transition::find")
        .unwrap();
    assert_eq!(
        find.signature,
        "transition::find(target, sampler, #{ options }) -> map"
    );
    let names: Vec<_> = find.options.iter().map(|o| o.name).collect();
    assert!(
        names[..3] == ["of", "low", "high"] && names.contains(&"burn_in"),
        "{names:?}"
    );
}

fn interpreter() -> Interpreter {
    let scratch = Scratch::new();
    Interpreter::new(Session::new(scratch.join("out")), BTreeMap::new())
}

#[test]
fn recipes_are_completed_and_explained_under_any_alias() {
    let mut session = interpreter();
    let names = |s: &Interpreter, source: &str| -> Vec<String> {
        let found = s.complete(source, source.len());
        found.matches.into_iter().map(|m| m.text).collect()
    };
    assert_eq!(names(&session, "import \"met"), ["method_comparison"]);
    assert_eq!(
        names(&session, "import \"ensemble\" as e; e::"),
        ["evaluate"]
    );
    let _ = session
        .run("<repl>", "import \"transition\" as tr;")
        .unwrap();
    // Imports stay, as variables do.
    let _ = session
        .run("<repl>", "let g = target(potential::gaussian());")
        .unwrap();
    assert_eq!(names(&session, "tr::fi"), ["find"]);
    assert!(names(&session, "t").contains(&"tr::".to_string()));
    assert_eq!(
        names(&session, "tr::find(g, sampler::hmc(), #{ poi"),
        ["points"]
    );
    let told = session.inspect("tr::find(", 5).unwrap();
    assert!(
        told.starts_with("### `tr::find(target, sampler, #{ options }) -> map`"),
        "{told}"
    );
    assert!(told.contains("| `width` | number, > 1 | `1.2` |"), "{told}");
    assert!(
        session
            .inspect("tr::find(g, s, #{ width: 2 })", 20)
            .unwrap()
            .contains("an option of `tr::find`")
    );
    let e = session
        .run("<repl>", "tr::find(g, sampler::hmc(), #{ widht: 2 })")
        .unwrap_err()
        .message;
    assert!(
        e.contains("did you mean 'width'") && e.contains("<repl>:1:5"),
        "{e}"
    );
    let value = session.run("<repl>", "type_of(tr::find(g, sampler::hmc(), #{ low: 0.1, high: 1.0, points: 4, rounds: 1, steps: 40, every: 1 }))");
    assert_eq!(session.json(&value.unwrap()), "map");
}

#[test]
fn the_reference_knows_recipes() {
    let docs = |arguments: &[&str]| {
        let output = ergodic().arg("docs").args(arguments).output().unwrap();
        (output.status.success(), text(&output))
    };
    let (_, all) = docs(&[]);
    assert!(
        all.contains("\nRecipes") && all.contains("  transition::find "),
        "{all}"
    );
    let (_, one) = docs(&["transition::find"]);
    assert!(
        one.starts_with("### `transition::find(")
            && one.contains("| `low` |")
            && one.contains("import \"transition\" as transition;"),
        "{one}"
    );
    let (_, whole) = docs(&["transition"]);
    assert!(
        whole.starts_with("# transition")
            && whole.contains("`transition::heat_capacity(run)")
            && whole.contains("transition.to_map"),
        "{whole}"
    );
    let (_, source) = docs(&["transition", "--source"]);
    assert!(source.starts_with("//! ") && source.contains("fn find(target, sampler, given)"));
    let (fine, missing) = docs(&["transitoin", "--source"]);
    assert!(
        !fine && missing.contains("did you mean 'transition'?"),
        "{missing}"
    );
    assert!(docs(&["--all"]).1.contains("## recipes"));
}
