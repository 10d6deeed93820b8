//! `ergodic docs`: the reference, generated from what is bound.

use crate::error::{Result, nearest};
use crate::script::{all_items, reference};

/// Pages on a subject rather than a name.
pub const PAGES: &[(&str, &str)] = &[
    ("performance", include_str!("pages/performance.md")),
    ("samplers", include_str!("pages/samplers.md")),
    ("learning", include_str!("pages/learning.md")),
    ("ladders", include_str!("pages/ladders.md")),
    ("notebooks", include_str!("pages/notebooks.md")),
];

/// The text for `ergodic docs NAME`: an item, a namespace, an object, or without a name the list of all.
pub fn lookup(name: Option<&str>) -> Result<String> {
    let items = all_items();
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
    if found.is_empty() && !with_option.is_empty() {
        let mut out = String::new();
        for item in with_option {
            for o in item.options.iter().filter(|o| o.name == wanted) {
                out += &format!(
                    "option '{}' of {} ({}): {}\n",
                    o.name,
                    item.path(),
                    o.kind.describe(),
                    o.doc
                );
            }
        }
        return Ok(out);
    }
    if found.is_empty() {
        let names: Vec<String> = items
            .iter()
            .flat_map(|i| [i.path(), i.name.clone()])
            .collect();
        let near = match nearest(wanted, names.iter().map(String::as_str)) {
            Some(name) => format!("; did you mean '{name}'?"),
            None => "; `ergodic docs` lists everything".to_string(),
        };
        anyhow::bail!("nothing is called '{wanted}'{near}");
    }
    Ok(found
        .into_iter()
        .map(|i| i.markdown())
        .collect::<Vec<_>>()
        .join("\n"))
}
