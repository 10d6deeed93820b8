//! `ergodic docs`: the reference, generated from what is bound.

use crate::error::{Result, nearest};
use crate::script::item::Item;
use crate::script::recipes::{self, RECIPES, recipe_items};
use crate::script::{all_items, reference};

/// Pages on a subject rather than a name, in the order of the book.
pub const PAGES: &[(&str, &str)] = &[
    ("tour", include_str!("../../docs/tour.md")),
    ("python", include_str!("../../docs/python.md")),
    ("commands", include_str!("../../docs/commands.md")),
    ("sessions", include_str!("../../docs/sessions.md")),
    ("notebooks", include_str!("../../docs/notebooks.md")),
    ("own", include_str!("../../docs/own.md")),
    ("data", include_str!("../../docs/data.md")),
    ("recipes", include_str!("../../docs/recipes.md")),
    ("reports", include_str!("../../docs/reports.md")),
    ("files", include_str!("../../docs/files.md")),
    ("performance", include_str!("../../docs/performance.md")),
    ("trust", include_str!("../../docs/trust.md")),
    ("limits", include_str!("../../docs/limits.md")),
    ("laws", include_str!("../../docs/laws.md")),
    ("samplers", include_str!("../../docs/samplers.md")),
    (
        "pseudo-langevin",
        include_str!("../../docs/pseudo-langevin.md"),
    ),
    ("learning", include_str!("../../docs/learning.md")),
    ("ladders", include_str!("../../docs/ladders.md")),
    ("checks", include_str!("../../docs/checks.md")),
    ("results", include_str!("../../docs/results.md")),
    ("speed", include_str!("../../docs/speed.md")),
    ("scaling", include_str!("../../docs/scaling.md")),
    ("architecture", include_str!("../../docs/architecture.md")),
    ("dependencies", include_str!("../../docs/dependencies.md")),
];

/// The text for `ergodic docs NAME`: an item, a namespace, an object, or without a name the list of all.
pub fn lookup(name: Option<&str>) -> Result<String> {
    let mut items = all_items();
    let Some(name) = name else {
        let mut out = String::from(
            "ergodic docs NAME shows options and an example; --all prints the whole reference as Markdown.\n",
        );
        for (heading, items) in reference::groups(&items) {
            out += &format!("\n{heading}\n");
            for i in items {
                out += &format!("  {:<34} {}\n", i.path(), i.brief());
            }
        }
        out += "\nRecipes (import \"NAME\" as NAME; --source prints one)\n";
        for i in recipe_items() {
            out += &format!("  {:<34} {}\n", i.path(), i.brief());
        }
        out += "\nPages\n";
        for (name, text) in PAGES {
            let title = text.lines().next().unwrap_or_default();
            out += &format!("  {name:<34} {}\n", title.trim_start_matches("# "));
        }
        return Ok(out);
    };
    if let Some((_, text)) = PAGES.iter().find(|(page, _)| *page == name) {
        // Which only tables of Markdown ask for.
        return Ok(text.replace("\\|", "|").replace("\\_", "_"));
    }
    let wanted = name.trim_end_matches("::").trim_end_matches("()");
    let recipe = reference::recipe(wanted);
    items.extend(
        recipe_items()
            .iter()
            .filter(|i| i.namespace != wanted)
            .cloned(),
    );
    let found: Vec<_> = items
        .iter()
        .filter(|i| {
            i.path() == wanted || i.name == wanted || i.namespace == wanted || i.object == wanted
        })
        .collect();
    let with_option: Vec<_> = items
        .iter()
        .filter(|i| i.options.iter().any(|o| o.name == wanted))
        .collect();
    if found.is_empty() && recipe.is_none() && !with_option.is_empty() {
        let mut out = String::new();
        for item in with_option {
            for o in item.options.iter().filter(|o| o.name == wanted) {
                out += &format!(
                    "- option '{}' of {} ({}): {}\n",
                    o.name,
                    item.path(),
                    o.kind.describe(),
                    o.doc
                );
            }
        }
        return Ok(out);
    }
    if found.is_empty() && recipe.is_none() {
        let hits = search(&items, name);
        if !hits.is_empty() {
            return Ok(hits);
        }
        let names: Vec<String> = items
            .iter()
            .flat_map(|i| [i.path(), i.name.clone(), i.namespace.clone()])
            .collect();
        let near = match nearest(wanted, names.iter().map(String::as_str)) {
            Some(name) => format!("; did you mean '{name}'?"),
            None => "; `ergodic docs` lists everything".to_string(),
        };
        anyhow::bail!("nothing is called '{wanted}', and no page speaks of it{near}");
    }
    let found = found.into_iter().map(|i| i.markdown());
    Ok(recipe
        .into_iter()
        .chain(found)
        .collect::<Vec<_>>()
        .join("\n"))
}

/// Words for the same thing, of which the reference has one.
const SYNONYMS: &[&[&str]] = &[
    &["gpu", "cuda", "accelerator"],
    &["checkpoint", "resume", "continue"],
    &["slurm", "job array"],
    &["parallel tempering", "replica exchange"],
    &["llc", "learning coefficient", "rlct"],
    &["learning rate", "step size", "lr"],
    &["evidence", "marginal likelihood", "ln z"],
    &[
        "weight decay",
        "regularisation",
        "regularization",
        "prior::l2",
    ],
    &["plot", "figure"],
    &["cross-validation", "cross validation", "loo"],
    &["posterior predictive", "predict"],
    &["huggingface", "hugging face", "pretrained"],
    &["pytorch", "torch"],
    &["ensemble", "ensembles"],
];

/// Lines that a search shows.
const HITS: usize = 12;

/// Where the reference and the pages speak of some words, best first; empty if they do not.
fn search(items: &[Item], words: &str) -> String {
    let wanted = meanings(words);
    // How often, and how prominently, all the words occur.
    let score = |title: &str, text: &str| {
        let (title, text) = (title.to_lowercase(), text.to_lowercase());
        let count = |ways: &Vec<String>| {
            let times = |of: &str| {
                ways.iter()
                    .map(|w| of.matches(w.as_str()).count())
                    .sum::<usize>()
            };
            20 * times(&title).min(1) + times(&text)
        };
        let counts: Vec<usize> = wanted.iter().map(count).collect();
        match counts.iter().min() {
            Some(&least) if least > 0 => counts.iter().sum(),
            _ => 0,
        }
    };
    let mut hits: Vec<(usize, String)> = Vec::new();
    for item in items {
        let options: Vec<_> = item
            .options
            .iter()
            .map(|o| format!("{} {}", o.name, o.doc))
            .collect();
        let text = format!("{} {}", item.doc, options.join(" "));
        let line = format!("  {:<34} {}", item.path(), item.brief());
        hits.push((score(&item.path(), &text), line));
    }
    for (page, text) in PAGES {
        let mut heading = "";
        for (i, part) in text.split("\n## ").enumerate() {
            let title = part
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("# ");
            heading = if i == 0 { title } else { heading };
            let at = if i == 0 {
                heading.to_string()
            } else {
                format!("{heading}: {title}")
            };
            hits.push((score(&at, part), format!("  {page:<34} {at} (page)")));
        }
    }
    hits.retain(|(score, _)| *score > 0);
    hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    hits.truncate(HITS);
    match hits.is_empty() {
        true => String::new(),
        false => {
            let lines: Vec<_> = hits.into_iter().map(|(_, line)| line).collect();
            format!(
                "Where '{words}' is spoken of; `ergodic docs NAME` shows one:\n\n{}",
                lines.join("\n")
            )
        }
    }
}

/// The words of a query in lower case and the singular, those that belong together as one; each with its synonyms.
fn meanings(words: &str) -> Vec<Vec<String>> {
    let words = words.to_lowercase();
    if let Some(same) = SYNONYMS.iter().find(|same| same.contains(&words.trim())) {
        return vec![same.iter().map(|w| w.to_string()).collect()];
    }
    let singular = |word: &str| match word.strip_suffix('s') {
        Some(rest) if rest.chars().count() > 3 && !rest.ends_with(['s', 'u', 'i']) => {
            rest.to_string()
        }
        _ => word.to_string(),
    };
    let ways = |word: &str| match SYNONYMS.iter().find(|same| same.contains(&word)) {
        Some(same) => same.iter().map(|w| w.to_string()).collect(),
        None => vec![singular(word)],
    };
    words.split_whitespace().map(ways).collect()
}

/// The text for `ergodic docs NAME --source`: a recipe, to be read as an example.
pub fn source(name: Option<&str>) -> Result<&'static str> {
    let wanted = name.unwrap_or_default();
    let recipe = wanted.split("::").next().unwrap_or_default();
    recipes::source(recipe).ok_or_else(|| {
        let names: Vec<_> = RECIPES.iter().map(|(name, _)| *name).collect();
        let near = nearest(recipe, names.iter().copied());
        let hint = near.map_or(String::new(), |n| format!("; did you mean '{n}'?"));
        anyhow::anyhow!(
            "--source prints a recipe, and none is called '{wanted}'{hint}\nrecipes: {}",
            names.join(", ")
        )
    })
}
