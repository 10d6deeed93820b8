//! `ergodic docs`: the reference, generated from what is bound.

use crate::error::{Result, nearest};
use crate::script::recipes::{self, RECIPES, recipe_items};
use crate::script::{all_items, reference};

/// Pages on a subject rather than a name.
pub const PAGES: &[(&str, &str)] = &[
    ("own", include_str!("pages/own.md")),
    ("data", include_str!("pages/data.md")),
    ("python", include_str!("pages/python.md")),
    ("sessions", include_str!("pages/sessions.md")),
    ("performance", include_str!("pages/performance.md")),
    ("samplers", include_str!("pages/samplers.md")),
    ("learning", include_str!("pages/learning.md")),
    ("ladders", include_str!("pages/ladders.md")),
    ("reports", include_str!("pages/reports.md")),
    ("recipes", include_str!("pages/recipes.md")),
    ("notebooks", include_str!("pages/notebooks.md")),
    ("limits", include_str!("pages/limits.md")),
    ("trust", include_str!("pages/trust.md")),
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
        return Ok(text.to_string());
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
        let names: Vec<String> = items
            .iter()
            .flat_map(|i| [i.path(), i.name.clone(), i.namespace.clone()])
            .collect();
        let near = match nearest(wanted, names.iter().map(String::as_str)) {
            Some(name) => format!("; did you mean '{name}'?"),
            None => "; `ergodic docs` lists everything".to_string(),
        };
        anyhow::bail!("nothing is called '{wanted}'{near}");
    }
    let found = found.into_iter().map(|i| i.markdown());
    Ok(recipe
        .into_iter()
        .chain(found)
        .collect::<Vec<_>>()
        .join("\n"))
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
