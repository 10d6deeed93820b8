//! Scripts that call our functions, with options that they know and values that they do not expect.

use arbitrary::{Result, Unstructured};
use ergodic::script::all_items;
use ergodic::script::item::Item;
use std::sync::LazyLock;

static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(|| {
    // What never ends, asks, or takes minutes as it is.
    let wild = ["sleep", "input", "exit", "llc_benchmark"];
    let calm = |item: &Item| !wild.contains(&item.name.as_str());
    all_items().into_iter().filter(calm).collect()
});

/// Values of every kind, and of none.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "20",
    "1_000_000_000_000",
    "9223372036854775807",
    "0.0",
    "0.5",
    "-0.5",
    "1e-300",
    "1e300",
    "1.0/0.0",
    "0.0/0.0",
    "()",
    "true",
    "\"\"",
    "\"cost\"",
    "\"test\"",
    "\"ψ/..\"",
    "'x'",
    "[]",
    "[1]",
    "[1.0, 2.0]",
    "[2, 3, 2]",
    "[[1.0, 2.0], [3.0, 4.0]]",
    "#{}",
    "#{ a: 1 }",
    "|x| x",
    "|| 1",
    "|p, x| x.matmul(p.a)",
    "0..3",
    "tensor([[1.0, 2.0], [3.0, 4.0]])",
    "tensor([])",
    "potential::gaussian()",
    "target(potential::gaussian())",
    "sampler::hmc()",
    "model::mlp(#{ layers: [2, 3, 2] })",
    "dataset::digits(2)",
    "observable::cost()",
    "prior::gaussian(1.0)",
];

/// The script that these choices make.
pub fn of(bytes: &[u8]) -> String {
    let mut script = String::new();
    let mut choices = Unstructured::new(bytes);
    for line in 0..6 {
        if choices.is_empty() {
            break;
        }
        // Whatever happens, the next line is tried.
        let call = call(&mut choices, line).unwrap_or_default();
        script.push_str(&format!(
            "let v{line} = (); try {{ v{line} = {call}; print(v{line}); }} catch {{ }}\n"
        ));
    }
    script
}

fn call(choices: &mut Unstructured<'_>, line: usize) -> Result<String> {
    let item = choices.choose(&ITEMS)?;
    let mut arguments = Vec::new();
    for _ in 0..choices.int_in_range(0..=3)? {
        arguments.push(value(choices, line)?);
    }
    if !item.options.is_empty() && choices.ratio(3, 4)? {
        // Small, unless something else is chosen.
        let mut options = vec!["steps: 20".to_string()];
        for _ in 0..choices.int_in_range(0..=4)? {
            let option = choices.choose(item.options)?.name;
            options.retain(|o| !o.starts_with(&format!("{option}:")));
            options.push(format!("{option}: {}", value(choices, line)?));
        }
        if !item.options.iter().any(|o| o.name == "steps") {
            options.remove(0);
        }
        arguments.push(format!("#{{ {} }}", options.join(", ")));
    }
    let (name, arguments) = (&item.name, arguments.join(", "));
    Ok(match (item.object.is_empty(), item.namespace.is_empty()) {
        (false, _) => format!("({}).{name}({arguments})", value(choices, line)?),
        (true, true) => format!("{name}({arguments})"),
        (true, false) => format!("{}::{name}({arguments})", item.namespace),
    })
}

fn value(choices: &mut Unstructured<'_>, line: usize) -> Result<String> {
    Ok(match line > 0 && choices.ratio(2, 5)? {
        true => format!("v{}", choices.int_in_range(0..=line - 1)?),
        false => choices.choose(VALUES)?.to_string(),
    })
}
