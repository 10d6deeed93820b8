//! The names that a script makes, and those that it needs from scripts before it.

use super::tokens::{KEYWORDS, Kind, tokens};
use std::collections::BTreeSet;

/// Names in a script.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Variables, functions and imports that it makes.
    pub made: BTreeSet<String>,
    /// What it names before it makes it, or does not make.
    pub needed: BTreeSet<String>,
}

impl Names {
    /// Those of a script.
    pub fn of(source: &str) -> Self {
        let mut out = Self::default();
        // A variable is there once its statement has ended.
        let mut begun = Vec::new();
        let all = tokens(source);
        let all: Vec<_> = all
            .iter()
            .filter(|t| !matches!(t.kind, Kind::Comment(_) | Kind::Text(true)))
            .collect();
        for (k, token) in all.iter().enumerate() {
            let before = k.checked_sub(1).map_or("", |b| all[b].text);
            let after = all.get(k + 1).map_or("", |a| a.text);
            let name = token.text.to_string();
            match token.kind {
                Kind::Mark if token.is(";") => out.made.extend(begun.drain(..)),
                Kind::Name if KEYWORDS.contains(&token.text) => {}
                Kind::Name if ["let", "const"].contains(&before) => begun.push(name),
                Kind::Name if ["fn", "as", "for", "|"].contains(&before) => {
                    out.made.insert(name);
                }
                // Properties, entries of maps and what is in a namespace belong to others.
                Kind::Name if [".", "?", "::"].contains(&before) || after == ":" => {}
                Kind::Name if !out.made.contains(&name) => {
                    out.needed.insert(name);
                }
                _ => {}
            }
        }
        out.made.extend(begun);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_needed_before_they_are_made() {
        let source = "import \"x\" as mine;\nlet run = sample(t, sampler::hmc(), #{ steps: n });\nlet a = a + 1;\nfn f(x) { x }\nrun.step + f(a) + mine::g() // why\n";
        let names = Names::of(source);
        let made: Vec<_> = names.made.iter().collect();
        assert_eq!(made, ["a", "f", "mine", "run"]);
        for needed in ["a", "n", "sample", "t"] {
            assert!(names.needed.contains(needed), "{needed}");
        }
        for other in ["run", "steps", "step", "hmc", "why", "g"] {
            assert!(!names.needed.contains(other), "{other}");
        }
    }
}
