//! `ergodic docs`: the reference, generated from what is bound.

use crate::error::{Result, did_you_mean};
use crate::script::{all_items, reference};

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
        return Ok(out);
    };
    let wanted = name.trim_end_matches("::").trim_end_matches("()");
    let found: Vec<_> = items
        .iter()
        .filter(|i| {
            i.path() == wanted || i.name == wanted || i.namespace == wanted || i.object == wanted
        })
        .collect();
    if found.is_empty() {
        let paths: Vec<_> = items.iter().map(|i| i.path()).collect();
        let near = did_you_mean(wanted, paths.iter().map(String::as_str).collect::<Vec<_>>());
        let near = if near.len() > 200 {
            "; `ergodic docs` lists everything".to_string()
        } else {
            near
        };
        anyhow::bail!("nothing is called '{wanted}'{near}");
    }
    Ok(found
        .into_iter()
        .map(|i| i.markdown())
        .collect::<Vec<_>>()
        .join("\n"))
}
