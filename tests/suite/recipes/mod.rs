//! Recipes: what they find against what is known, and how they are imported, documented, checked, resumed.
//!
//! Null hypothesis of every comparison: what the recipe finds has the mean computed here. The bound is four standard errors, as measured.

mod imports;
mod prediction;
mod probes;
mod reference;
mod sampling;
mod temperature;

use super::support::evaluate;
use serde_json::Value;

fn found(source: &str) -> Value {
    evaluate(source).unwrap_or_else(|e| panic!("{e}\n{source}"))
}

fn refused(source: &str) -> String {
    evaluate(source)
        .err()
        .map(|e| e.message)
        .unwrap_or_default()
}

fn number(value: &Value, key: &str) -> f64 {
    let mut at = value;
    for part in key.split('.') {
        at = &at[part];
    }
    at.as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

/// ln Γ(n) of a whole number.
fn ln_gamma(n: u32) -> f64 {
    (1..n).map(|k| f64::from(k).ln()).sum()
}

fn near(name: &str, (value, error): (f64, f64), expected: f64) {
    assert!(
        error > 0.0 && (value - expected).abs() < 4.0 * error,
        "{name}: {value} ± {error}, expected {expected}"
    );
}
