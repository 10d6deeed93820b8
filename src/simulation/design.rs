//! Which cells a grid of settings has.

use crate::error::{Result, did_you_mean};
use crate::rng::{Purpose, Stream};
use anyhow::{anyhow, ensure};
use serde_json::{Value, json};

/// A setting that is varied, and its values; or, of designs that draw points, its two ends.
pub type Setting = (String, Vec<Value>);

/// Which points of the space of settings are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// All combinations; the last setting changes fastest.
    Full,
    /// So many points drawn uniformly between the ends; whole numbers where both ends are.
    Random(usize),
    /// So many points of Halton's sequence (Halton 1960), which fill the space evenly.
    Halton(usize),
}

/// The settings of every cell. `log` are those that are spread evenly in their logarithm; `seed` is that of random points.
///
/// # Errors
/// If there is no setting or no value, or ends are no two numbers in order.
pub fn cells(
    settings: &[Setting],
    design: Design,
    log: &[String],
    seed: u64,
) -> Result<Vec<Vec<Value>>> {
    ensure!(!settings.is_empty(), "grid: there is no setting to vary");
    if let Some((name, _)) = settings.iter().find(|(_, values)| values.is_empty()) {
        anyhow::bail!("grid: '{name}' has no values");
    }
    if let Some(name) = log.iter().find(|n| settings.iter().all(|(s, _)| s != *n)) {
        let hint = did_you_mean(
            name,
            settings.iter().map(|(s, _)| s.as_str()).collect::<Vec<_>>(),
        );
        anyhow::bail!("grid: option 'log' names '{name}', which is no setting{hint}");
    }
    let points = match design {
        Design::Full => {
            let mut out = vec![Vec::new()];
            for (_, values) in settings {
                let longer = |cell: &Vec<Value>| {
                    let each = values
                        .iter()
                        .map(|v| [&cell[..], std::slice::from_ref(v)].concat());
                    each.collect::<Vec<_>>()
                };
                out = out.iter().flat_map(longer).collect();
                ensure!(
                    out.len() <= 1_000_000,
                    "grid: there are more than a million cells"
                );
            }
            return Ok(out);
        }
        Design::Random(points) | Design::Halton(points) => points,
    };
    let ends = settings.iter().map(|(name, values)| {
        let found: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
        let least = if log.contains(name) { 0.0 } else { f64::NEG_INFINITY };
        match found[..] {
            [a, b] if values.len() == 2 && a < b && a > least => {
                let whole = values.iter().all(Value::is_i64);
                Ok((a, b, log.contains(name), whole))
            }
            _ => Err(anyhow!(
                "grid: '{name}' must be its two ends, as [0.1, 10]{}, for a design that draws points",
                if log.contains(name) { ", both > 0" } else { "" }
            )),
        }
    });
    let ends = ends.collect::<Result<Vec<_>>>()?;
    ensure!(
        ends.len() <= PRIMES.len(),
        "grid: there are more than {} settings",
        PRIMES.len()
    );
    let one = |point: usize| {
        let each = ends.iter().enumerate().map(|(k, (a, b, log, whole))| {
            let u = match design {
                Design::Random(_) => {
                    Stream::new(seed, Purpose::Initialise, k, point as u64).uniform(0)
                }
                _ => radical_inverse(point + 1, PRIMES[k]),
            };
            // Whole numbers have half a step of room at both ends.
            let room = if *whole { 0.5 } else { 0.0 };
            let (from, to) = (a - room, b + room);
            let x = match log {
                true => (from.ln() + u * (to.ln() - from.ln())).exp(),
                false => from + u * (to - from),
            };
            match whole {
                true => json!(x.round().clamp(*a, *b) as i64),
                false => json!(x),
            }
        });
        each.collect()
    };
    Ok((0..points).map(one).collect())
}

const PRIMES: [usize; 16] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53];

/// The digits of n in this base, behind the point in reverse order.
fn radical_inverse(mut n: usize, base: usize) -> f64 {
    let (mut out, mut share) = (0.0, 1.0 / base as f64);
    while n > 0 {
        out += share * (n % base) as f64;
        share /= base as f64;
        n /= base;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, values: Value) -> Setting {
        (name.into(), values.as_array().unwrap().clone())
    }

    #[test]
    fn designs_have_the_cells_they_say() {
        let two = [
            setting("a", json!([1, 2])),
            setting("b", json!(["x", "y", "z"])),
        ];
        let full = cells(&two, Design::Full, &[], 1).unwrap();
        assert_eq!(full.len(), 6);
        assert_eq!(
            (&full[1], &full[5]),
            (&vec![json!(1), json!("y")], &vec![json!(2), json!("z")])
        );
        let ends = [
            setting("a", json!([0.0, 1.0])),
            setting("b", json!([1.0, 100.0])),
        ];
        let halton = cells(&ends, Design::Halton(3), &["b".into()], 1).unwrap();
        let expected = [
            (0.5, 100f64.powf(1.0 / 3.0)),
            (0.25, 100f64.powf(2.0 / 3.0)),
            (0.75, 100f64.powf(1.0 / 9.0)),
        ];
        for (cell, (a, b)) in halton.iter().zip(expected) {
            assert!(
                (cell[0].as_f64().unwrap() - a).abs() < 1e-12
                    && (cell[1].as_f64().unwrap() - b).abs() < 1e-9
            );
        }
        let widths = [setting("width", json!([2, 8]))];
        let whole = cells(&widths, Design::Halton(500), &[], 1).unwrap();
        let count = |n: i64| whole.iter().filter(|c| c[0] == json!(n)).count();
        assert!((2..9).all(|n| (70..73).contains(&count(n))));
        let random = |seed| cells(&ends, Design::Random(50), &[], seed).unwrap();
        assert_eq!(random(3), random(3));
        assert_ne!(random(3), random(4));
        assert!(
            random(3)
                .iter()
                .all(|c| (0.0..1.0).contains(&c[0].as_f64().unwrap()))
        );
        assert!(
            cells(&two, Design::Random(3), &[], 1)
                .unwrap_err()
                .to_string()
                .contains("its two ends")
        );
        assert!(cells(&two, Design::Full, &["c".into()], 1).is_err());
        assert!(cells(&[], Design::Full, &[], 1).is_err());
    }
}
