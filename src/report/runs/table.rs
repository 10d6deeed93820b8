//! Runs as a table, as numbers and words by name, and in words that fit into a line.

use super::{Found, State, find};
use crate::dataset::date;
use crate::error::Result;
use crate::table::Table;
use crate::verb::{Call, Either, Verb};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder in which scripts leave their results.
pub const RUNS: &str = "runs";

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The oldest first.
    Time,
    /// By their folders.
    Name,
    /// The largest first.
    Size,
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "time" => Ok(Self::Time),
            "name" => Ok(Self::Name),
            "size" => Ok(Self::Size),
            _ => Err("expected time, name or size".into()),
        }
    }
}

/// Several runs, without their numbers.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// They, in order.
    pub all: Vec<Found>,
}

impl Runs {
    /// All runs in and below folders that have all of these tags, once each.
    ///
    /// # Errors
    /// If a folder is not there.
    pub fn of(folders: &[PathBuf], tags: &[String], sort: Sort) -> Result<Self> {
        let mut all: Vec<Found> = Vec::new();
        for folder in folders {
            let whole = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.into());
            let known: Vec<_> = all.iter().map(|f| whole(&f.folder)).collect();
            let new = find(folder)?.into_iter();
            all.extend(new.filter(|f| f.has_tags(tags) && !known.contains(&whole(&f.folder))));
        }
        match sort {
            Sort::Time => all.sort_by_key(|f| f.begun),
            Sort::Name => all.sort_by(|a, b| a.folder.cmp(&b.folder)),
            Sort::Size => all.sort_by_key(|f| std::cmp::Reverse(f.bytes)),
        }
        Ok(Self { all })
    }

    /// A line each.
    pub fn table(&self) -> Table {
        let head = [
            "begun (UTC)",
            "run",
            "kind",
            "state",
            "verdict",
            "took",
            "size",
            "tags",
        ];
        let mut out = Table::new(head);
        for f in &self.all {
            out.push(f.cells());
        }
        let kept = |k: &usize| *k < 7 || self.all.iter().any(|f| !f.tags.is_empty());
        let columns: Vec<usize> = (0..8).filter(kept).collect();
        for row in out.rows.iter_mut().chain([&mut out.header]) {
            *row = columns.iter().map(|k| row[*k].clone()).collect();
        }
        out
    }

    /// All that is known of each, by name.
    pub fn to_json(&self) -> Value {
        self.all.iter().map(Found::to_json).collect()
    }
}

impl Found {
    /// How far it is, in words.
    pub fn state(&self) -> String {
        // What is not finished is not at 100 %.
        let percent = |s: f64| (100.0 * s).round().min(99.0);
        let share = match (self.share, self.open.as_str()) {
            (None, _) => String::new(),
            (Some(s), "") => format!(" at {:.0} %", percent(s)),
            (Some(s), open) => format!(" at {:.0} % of {open}", percent(s)),
        };
        match &self.state {
            State::Finished => "finished".into(),
            State::Running(owner) => format!("running{share} ({owner})"),
            State::Interrupted => format!("interrupted{share}"),
            State::Failed(_) => format!("failed{share}"),
            State::Damaged(_) => "damaged".into(),
        }
    }

    /// Why it has failed, or cannot be read.
    pub fn message(&self) -> Option<&str> {
        match &self.state {
            State::Failed(why) | State::Damaged(why) => Some(why),
            _ => None,
        }
    }

    /// Its verdict in a word; a dash where there is none.
    pub fn verdict(&self) -> String {
        self.verdict.map_or("–".into(), |v| v.to_string())
    }

    fn cells(&self) -> [String; 8] {
        [
            date(self.begun).trim_end_matches(" UTC").to_string(),
            self.folder.display().to_string(),
            self.kind.clone(),
            self.state(),
            self.verdict(),
            duration(self.seconds),
            size(self.bytes),
            self.tags.join(", "),
        ]
    }

    /// All that is known of it, by name.
    pub fn to_json(&self) -> Value {
        let state = match &self.state {
            State::Finished => "finished",
            State::Running(_) => "running",
            State::Interrupted => "interrupted",
            State::Failed(_) => "failed",
            State::Damaged(_) => "damaged",
        };
        let owner = match &self.state {
            State::Running(owner) => Some(owner),
            _ => None,
        };
        let seconds = |t: SystemTime| {
            t.duration_since(UNIX_EPOCH)
                .map_or(0.0, |d| d.as_secs_f64())
        };
        let parts = self.parts.iter().map(|p| p.display().to_string());
        let mut out = json!({
            "folder": self.folder.display().to_string(), "begun": date(self.begun), "time": seconds(self.begun), "kind": self.kind,
            "state": state, "share": self.share, "owner": owner, "message": self.message(), "verdict": self.verdict,
            "tags": self.tags, "bytes": self.bytes, "seconds": self.seconds, "parts": parts.collect::<Vec<_>>(),
        });
        if let Some(record) = &self.record {
            out["script"] = json!(record.script);
            let number = |v: &str| serde_json::from_str(v).ok().filter(Value::is_number);
            let value = |v: String| number(&v).unwrap_or_else(|| json!(v.trim_matches('"')));
            let pairs = record.parameters().into_iter();
            let settings: Map<_, _> = pairs.map(|(k, v)| (k, value(v))).collect();
            out["settings"] = settings.into();
            out["seed"] = json!(record.seed);
            out["quick"] = json!(record.quick);
        }
        out
    }
}

/// Year, month, day, hour and minute in UTC.
pub fn date(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let day = date::text((seconds / 86_400) as i64);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{day} {hour:02}:{minute:02} UTC")
}

/// Seconds as "3.2 s", "4 min 05 s" or "2 h 10 min".
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 59.95 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Bytes as "812 kB" or "1.2 GB".
pub fn size(bytes: u64) -> String {
    let x = bytes as f64;
    match x {
        x if x < 1e3 => format!("{bytes} B"),
        x if x < 1e6 => format!("{:.0} kB", x / 1e3),
        x if x < 1e9 => format!("{:.1} MB", x / 1e6),
        x => format!("{:.1} GB", x / 1e9),
    }
}

crate::object::object! {
    Runs: "Runs",
    text: |r| match r.all.len() {
        0 => "no runs".into(),
        _ => r.table().to_string(),
    },
    fields: {
        "folders" => |r| r.all.iter().map(|f| f.folder.display().to_string().into()).collect::<Vec<crate::options::Value>>().into(),
    },
    entries: to_json, "runs.to_array() -> array", "A map per run, in their order.\n\nEntries: folder, begun, time (seconds since 1970), kind, state (finished, running, interrupted, failed, damaged), share, owner, message, verdict, tags, bytes, seconds, parts (folders that `open` takes), and script, settings (every parameter of the script, set or not), seed, quick where there is a record of a script.",
    table: table,
}

/// The arguments of `runs`: a folder, or none.
pub type Place = Either<(String,), ()>;

/// The verb `runs`.
pub static LIST: Verb<(), Place, Arc<Runs>> = Verb {
    name: "runs",
    arguments: &["folder"],
    options: &[],
    doc: "All runs in and below a folder, or in `runs`, in order of time: what `ergodic ls` lists. Nothing of their numbers is read.\n\n\
         A run is what one script has left in its folder, or a session, or a grid. `open` reads one of its parts.",
    example: "let t = target(potential::gaussian());\nlet run = sample(t, sampler::hmc(), #{ steps: 200, chains: 2 });\nlet all = runs(run.folder);\nopen(all.to_array()[0].parts[0]).done",
    call: Call::Checked(|place, _, ()| {
        let folder = match place {
            Either::First((folder,)) => PathBuf::from(folder),
            Either::Second(()) => PathBuf::from(RUNS),
        };
        Runs::of(&[folder], &[], Sort::Time).map(Arc::new)
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |s| date(UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_827_696), "2000-02-29 12:34 UTC");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!(
            [999, 12_345, 1_250_000, 3_000_000_000].map(size),
            ["999 B", "12 kB", "1.2 MB", "3.0 GB"]
        );
        assert_eq!(
            [0.25, 59.94, 59.96, 125.0, 7500.0].map(duration),
            ["0.2 s", "59.9 s", "1 min 00 s", "2 min 05 s", "2 h 05 min"]
        );
    }
}
