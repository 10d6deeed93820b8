//! The recipes that are part of the program.

use super::item::Item;
use super::recipe;
use std::sync::OnceLock;

/// Files of a folder that are part of the program, each with its name.
macro_rules! texts {
    ($folder:literal, $ending:literal, [$($name:literal)*]) => {
        &[$(($name, include_str!(concat!($folder, $name, $ending)))),*]
    };
}
pub(crate) use texts;

/// The recipes, by name: the one list of them.
pub const RECIPES: &[(&str, &str)] = texts!("../../stdlib/", ".rhai", [
    "annealing"
    "baselines"
    "calibration"
    "ensemble"
    "ladder"
    "layers"
    "learning_curve"
    "llc_protocol"
    "local_entropy"
    "method_comparison"
    "response"
    "transition"
]);

/// The source of a recipe.
pub(crate) fn source(name: &str) -> Option<&'static str> {
    RECIPES.iter().find(|(n, _)| *n == name).map(|(_, s)| *s)
}

/// What the recipes offer, each under the name of its recipe.
pub fn recipe_items() -> &'static [Item] {
    static ITEMS: OnceLock<Vec<Item>> = OnceLock::new();
    ITEMS.get_or_init(|| {
        let each = RECIPES.iter();
        each.flat_map(|(name, text)| recipe::items(name, text, "map"))
            .collect()
    })
}
