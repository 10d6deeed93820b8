//! `ergodic docs`: the reference, generated from what is bound.

use crate::error::{Result, nearest};
use crate::script::item::Item;
use crate::script::recipes::{self, RECIPES, recipe_items, texts};
use crate::script::{all_items, reference};

/// Pages on a subject rather than a name, in the order of the book.
pub const PAGES: &[(&str, &str)] = texts!("../../docs/", ".md", [
    "first-run" "reading-a-summary" "against-temperature" "your-table" "which-sampler" "two-valleys" "back-to-a-run"
    "tour" "python" "commands" "sessions" "notebooks"
    "own" "data" "pytorch" "recipes" "gallery" "reports" "files" "from-python" "cluster" "performance" "trust" "limits"
    "laws" "samplers" "pseudo-langevin" "learning" "ladders" "checks"
    "results" "speed" "scaling"
    "architecture" "dependencies"
]);

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
                out += &line(&i.path(), i.brief());
            }
        }
        out += "\nRecipes (import \"NAME\" as NAME; --source prints one)\n";
        for i in recipe_items() {
            out += &line(&i.path(), i.brief());
        }
        out += "\nPages\n";
        for (name, text) in PAGES {
            out += &line(name, first_line(text));
        }
        return Ok(out);
    };
    if let Some((_, text)) = PAGES.iter().find(|(page, _)| *page == name) {
        // Only tables of Markdown ask for these backslashes.
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
        if let Some(hits) = search(&items, name) {
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
];

/// Lines that a search shows.
const HITS: usize = 12;

/// The entries of the reference and the parts of pages that have all the words, those first that have them most; none if there are none.
fn search(items: &[Item], words: &str) -> Option<String> {
    let of_item = |item: &Item| {
        let mut text = item.doc.to_string();
        text.extend(item.options.iter().flat_map(|o| [" ", o.name, " ", o.doc]));
        (item.path(), text, line(&item.path(), item.brief()))
    };
    let of_page = |(page, text): &(&'static str, &'static str)| {
        let (page, title) = (*page, first_line(text));
        text.split("\n## ").enumerate().map(move |(i, part)| {
            let title = match i {
                0 => title.to_string(),
                _ => format!("{title}: {}", first_line(part)),
            };
            let shown = line(page, &format!("{title} (page)"));
            (title, part.to_string(), shown)
        })
    };
    let wanted = meanings(words);
    let score = |title: &str, text: &str| {
        let (title, text) = (title.to_lowercase(), text.to_lowercase());
        let times = |of: &str, ways: &[String]| -> usize {
            ways.iter().map(|w| of.matches(w.as_str()).count()).sum()
        };
        let each = wanted
            .iter()
            .map(|ways| 20 * times(&title, ways).min(1) + times(&text, ways));
        let counts: Vec<_> = each.collect();
        match counts.contains(&0) {
            true => 0,
            false => counts.iter().sum(),
        }
    };
    let mut hits: Vec<_> = items
        .iter()
        .map(of_item)
        .chain(PAGES.iter().flat_map(of_page))
        .map(|(title, text, line)| (score(&title, &text), line))
        .filter(|(score, _)| *score > 0)
        .collect();
    hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let lines: String = hits.into_iter().take(HITS).map(|(_, line)| line).collect();
    (!lines.is_empty())
        .then(|| format!("'{words}' stands in these; `ergodic docs NAME` shows one:\n\n{lines}"))
}

/// The words of a query in lower case and the singular, each with its synonyms; one that is a synonym as a whole is one word.
fn meanings(words: &str) -> Vec<Vec<String>> {
    let words = words.to_lowercase();
    let same = |word: &str| {
        let same = SYNONYMS.iter().find(|same| same.contains(&word))?;
        Some(same.iter().map(|w| w.to_string()).collect::<Vec<_>>())
    };
    let ways = |word: &str| {
        let singular = match word.strip_suffix('s') {
            Some(rest) if rest.chars().count() > 2 && !rest.ends_with(['s', 'u', 'i']) => rest,
            _ => word,
        };
        same(singular).unwrap_or_else(|| vec![singular.to_string()])
    };
    match same(words.trim()) {
        Some(all) => vec![all],
        None => words.split_whitespace().map(ways).collect(),
    }
}

/// A line of a list: a name, and what it is.
fn line(name: &str, what: &str) -> String {
    format!("  {name:<34} {what}\n")
}

/// The heading of a page, or of a part of one.
pub(super) fn first_line(text: &str) -> &str {
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("# ")
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
