//! The settings of runs and scripts, one by one: what `ergodic diff` lays beside each other.

use super::part::Part;
use super::record::Record;
use super::verdict::temperature;
use crate::simulation::run::{Group, Run};
use serde_json::Value;

/// Names and values.
pub(super) type Settings = Vec<(String, String)>;

/// What a script was given, and what it ran on.
pub(super) fn of_record(record: &Record) -> Settings {
    let number = |x: Option<u64>| x.map_or(String::new(), |x| x.to_string());
    let mut out = vec![("script".to_string(), record.script.clone())];
    let set = record.parameters().into_iter();
    out.extend(set.map(|(name, value)| (format!("--set {name}"), value)));
    out.push(("seed".into(), number(record.seed)));
    out.push(("device".into(), record.device.clone()));
    out.push(("quick".into(), record.quick.to_string()));
    out.push(("threads".into(), number(record.threads)));
    let read = record.read.iter();
    out.extend(read.map(|(file, version)| (format!("reads {file}"), version.clone())));
    // The device of a build is no setting of a run.
    let versions = record.versions.iter().filter(|(name, _)| *name != "device");
    out.extend(versions.map(|(name, value)| (name.clone(), plain(value))));
    out
}

/// What a part was given.
pub(super) fn of_part(part: &Part) -> Settings {
    match part.of.run() {
        Some(run) => of_run(run),
        None => part.of.settings(),
    }
}

fn of_run(run: &Run) -> Settings {
    let i = &run.info;
    let mut out: Settings = Vec::new();
    let mut put = |name: &str, value: String| out.push((name.into(), value));
    put("kind", i.kind.clone());
    for (k, line) in i.target.lines().enumerate() {
        put(&format!("target, line {}", k + 1), line.into());
    }
    for (k, line) in i.data_in_words().into_iter().enumerate() {
        put(&format!("data, line {}", k + 1), line);
    }
    put("sampler", i.sampler.clone());
    for (name, value) in &i.options {
        put(&format!("sampler {name}"), value.clone());
    }
    let temperatures: Vec<_> = i.temperatures.iter().map(|t| temperature(*t)).collect();
    put("temperatures", temperatures.join(", "));
    put("schedules", i.schedules.join("; "));
    put("ladder", i.ladder.clone().unwrap_or_default());
    put("chains", i.chains.to_string());
    put("steps", i.steps.to_string());
    put("burn_in", i.burn_in.to_string());
    put("until", i.course.map_or(String::new(), |c| c.to_string()));
    put("every", i.every.clone());
    let observed = i.columns.iter().filter(|c| c.group == Group::Posterior);
    let observed: Vec<_> = observed.map(|c| c.name.as_str()).collect();
    put("observe", observed.join(", "));
    for (name, text) in &i.closures {
        put(&format!("closure {name}"), text.clone());
    }
    put("n", i.n.to_string());
    put("m", i.m.map_or("full batch".into(), |m| m.to_string()));
    put("scale", i.scale.to_string());
    put("parameters", i.parameters.to_string());
    let kept = serde_json::to_value(&i.kept).unwrap_or_default();
    put("keep", plain(&kept));
    put("device", i.device.clone());
    put("quick", i.quick.to_string());
    put("seed", i.seed.to_string());
    out
}

/// A value without quotes; nothing for null.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What differs, in the order of the first: names, and both values.
pub(super) fn different(a: Settings, b: Settings) -> Vec<(String, [String; 2])> {
    let value = |of: &Settings, name: &str| {
        let found = of.iter().find(|(n, _)| n == name);
        found.map_or(String::new(), |(_, v)| v.clone())
    };
    let mut names: Vec<&String> = a.iter().map(|(n, _)| n).collect();
    for (name, _) in &b {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let both = names
        .into_iter()
        .map(|n| (n.clone(), [value(&a, n), value(&b, n)]));
    both.filter(|(_, [x, y])| x != y).collect()
}

/// Lines beyond which two texts are not compared line by line.
const MOST_LINES: usize = 3000;

/// The lines of two texts that differ, as "-12 | old" and "+12 | new".
pub(super) fn lines(a: &str, b: &str) -> Vec<String> {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    if a.len().max(b.len()) > MOST_LINES {
        return vec![format!(
            "{} and {} lines, too many to compare",
            a.len(),
            b.len()
        )];
    }
    // The longest common subsequence of what is left.
    let width = b.len() + 1;
    let mut longest = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = match a[i] == b[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let taken = |i: usize, j: usize| longest[i * width + j];
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || taken(i + 1, j) >= taken(i, j + 1)) {
            out.push(format!("-{:<3} | {}", i + 1, a[i]));
            i += 1;
        } else {
            out.push(format!("+{:<3} | {}", j + 1, b[j]));
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_are_shown() {
        let found = lines("a\nb\nc\nd", "a\nx\nc\nd\ne");
        assert_eq!(found, ["-2   | b", "+2   | x", "+5   | e"]);
        assert!(lines("a\nb", "a\nb").is_empty());
        assert_eq!(lines("", "a"), ["+1   | a"]);
    }

    #[test]
    fn a_setting_of_one_alone_differs() {
        let pair = |k: &str, v: &str| (k.to_string(), v.to_string());
        let found = different(
            vec![pair("step", "1"), pair("batch", "5")],
            vec![pair("step", "1"), pair("mass", "2")],
        );
        let both = |a: &str, b: &str| [a.to_string(), b.to_string()];
        assert_eq!(
            found,
            [
                ("batch".into(), both("5", "")),
                ("mass".into(), both("", "2"))
            ]
        );
    }
}
