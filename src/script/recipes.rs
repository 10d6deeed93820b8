//! The recipes that are part of the program.

use super::item::Item;
use super::recipe;
use std::sync::OnceLock;

/// The recipes, by name: the one list of them.
pub const RECIPES: &[(&str, &str)] = &[
    ("annealing", include_str!("../../stdlib/annealing.rhai")),
    ("baselines", include_str!("../../stdlib/baselines.rhai")),
    ("calibration", include_str!("../../stdlib/calibration.rhai")),
    ("ensemble", include_str!("../../stdlib/ensemble.rhai")),
    ("ladder", include_str!("../../stdlib/ladder.rhai")),
    ("layers", include_str!("../../stdlib/layers.rhai")),
    (
        "learning_curve",
        include_str!("../../stdlib/learning_curve.rhai"),
    ),
    (
        "llc_protocol",
        include_str!("../../stdlib/llc_protocol.rhai"),
    ),
    (
        "local_entropy",
        include_str!("../../stdlib/local_entropy.rhai"),
    ),
    (
        "method_comparison",
        include_str!("../../stdlib/method_comparison.rhai"),
    ),
    ("response", include_str!("../../stdlib/response.rhai")),
    ("transition", include_str!("../../stdlib/transition.rhai")),
];

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
