//! What code in a cell tells the process that runs the cells, beyond what it prints: lines with a mark at their beginning.

use crate::object::Shown;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Set in the process that cells run in, if whoever runs them understands marks.
pub const WANTED: &str = "ERGODIC_CELLS";

/// No line that people print begins with it.
pub(super) const START: &str = "\u{1}ergodic ";

/// Whether marks are understood.
pub fn wanted() -> bool {
    std::env::var_os(WANTED).is_some()
}

/// One such line.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// A cell has been compiled and runs.
    Running,
    /// The cell ended early, by an error or by a panic.
    Failed(String),
    /// The cell is over: all that it printed on this stream has come.
    Done,
    /// Something is shown.
    Shown(Shown),
    /// The value of the last expression.
    Value(Shown),
    /// What was shown so far is to go, at once or when something else is shown.
    Clear(bool),
    /// The folder of the session, and the name of a run there.
    Named(PathBuf, String),
    /// How far a run is: its name, how that is shown, whether it is over.
    Progress(String, Shown, bool),
}

impl Mark {
    /// As a line.
    pub fn line(&self) -> String {
        let content = match self {
            Self::Running => json!({"running": true}),
            Self::Failed(how) => json!({"failed": how}),
            Self::Done => json!({"done": true}),
            Self::Shown(s) | Self::Value(s) => {
                json!({"text": s.text, "html": s.html, "svg": s.svg, "markdown": s.markdown, "value": matches!(self, Self::Value(_))})
            }
            Self::Clear(wait) => json!({"clear": wait}),
            Self::Named(home, run) => json!({"named": run, "home": home}),
            Self::Progress(name, s, over) => {
                json!({"run": name, "text": s.text, "html": s.html, "over": over})
            }
        };
        format!("{START}{content}\n")
    }

    /// From a line, if it is one.
    pub fn parse(line: &str) -> Option<Self> {
        let content: Value = serde_json::from_str(line.strip_prefix(START)?).ok()?;
        let text = |key: &str| content[key].as_str().map(str::to_string);
        Some(if content["running"] == true {
            Self::Running
        } else if content["done"] == true {
            Self::Done
        } else if let Some(how) = text("failed") {
            Self::Failed(how)
        } else if let Some(wait) = content["clear"].as_bool() {
            Self::Clear(wait)
        } else if let Some(run) = text("named") {
            Self::Named(text("home")?.into(), run)
        } else if let Some(run) = text("run") {
            Self::Progress(
                run,
                Shown {
                    text: text("text")?,
                    html: text("html"),
                    ..Shown::default()
                },
                content["over"] == true,
            )
        } else {
            let shown = Shown {
                text: text("text")?,
                html: text("html"),
                svg: text("svg"),
                markdown: text("markdown"),
            };
            match content["value"] == true {
                true => Self::Value(shown),
                false => Self::Shown(shown),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_from_their_lines() {
        let shown = Shown {
            text: "a\nb".into(),
            html: Some("<b>\u{1}</b>".into()),
            ..Shown::default()
        };
        let all = [
            Mark::Running,
            Mark::Failed("panic".into()),
            Mark::Done,
            Mark::Clear(true),
            Mark::Named("runs/notebook-1".into(), "sweep-1".into()),
            Mark::Shown(shown.clone()),
            Mark::Value(shown),
            Mark::Progress("sweep-1".into(), Shown::text("50 %"), false),
        ];
        for mark in all {
            let line = mark.line();
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            assert_eq!(Mark::parse(line.trim_end()), Some(mark));
        }
        assert_eq!(Mark::parse("{\"done\": true}"), None);
    }
}
