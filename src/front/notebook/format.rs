//! Notebook files (nbformat 4): cells in, outputs out; whatever else is in the file stays as it is, in its order.

use crate::error::Result;
use crate::store::write_atomic;
use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use std::path::Path;

/// A notebook, as it stands in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Notebook {
    content: Value,
    /// Blanks per level in the file.
    indent: usize,
}

/// What a cell has put out.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Printed text: "stdout" or "stderr".
    Stream(&'static str, String),
    /// Something shown, by MIME type.
    Display(Map<String, Value>),
    /// The value of the cell, by MIME type.
    Result(Map<String, Value>),
    /// Why it failed.
    Error {
        /// Kind of the error.
        name: String,
        /// What went wrong.
        value: String,
        /// Lines to show.
        traceback: Vec<String>,
    },
}

impl Output {
    /// As the file has it.
    fn to_json(&self, count: u32) -> Value {
        match self {
            Self::Stream(name, text) => {
                json!({"name": name, "output_type": "stream", "text": lines(text)})
            }
            Self::Display(data) => {
                json!({"data": in_lines(data), "metadata": {}, "output_type": "display_data"})
            }
            Self::Result(data) => json!({
                "data": in_lines(data), "execution_count": count, "metadata": {}, "output_type": "execute_result",
            }),
            Self::Error {
                name,
                value,
                traceback,
            } => {
                json!({"ename": name, "evalue": value, "output_type": "error", "traceback": traceback})
            }
        }
    }
}

/// Texts of several lines are arrays in the file, so that changes can be compared line by line.
fn in_lines(data: &Map<String, Value>) -> Map<String, Value> {
    let one = |(mime, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => lines(text),
            other => other.clone(),
        };
        (mime.clone(), value)
    };
    data.iter().map(one).collect()
}

fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

/// Text that may be an array of lines.
fn joined(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_string(),
    }
}

/// Whether a cell has a tag.
fn tagged(cell: &Value, tag: &str) -> bool {
    let tags = cell["metadata"]["tags"].as_array();
    tags.is_some_and(|tags| tags.iter().any(|t| t == tag))
}

impl Notebook {
    /// Read a notebook.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not a notebook", path.display()))
    }

    /// A notebook from its text.
    pub fn parse(text: &str) -> Result<Self> {
        let content: Value = serde_json::from_str(text)?;
        let major = content["nbformat"].as_u64();
        ensure!(
            major == Some(4),
            "its nbformat is {}, but must be 4; open it in Jupyter and save it",
            major.map_or("missing".into(), |m| m.to_string())
        );
        ensure!(content["cells"].is_array(), "it has no cells");
        let second = text.lines().nth(1).unwrap_or_default();
        let indent = second.len() - second.trim_start_matches(' ').len();
        Ok(Self {
            content,
            indent: if indent == 0 { 1 } else { indent },
        })
    }

    /// A notebook of these cells in Rust.
    pub fn of_rust(sources: &[String]) -> Self {
        let cell = |(k, source): (usize, &String)| {
            json!({
                "cell_type": "code", "id": format!("cell-{}", k + 1), "metadata": {}, "execution_count": null, "source": lines(source), "outputs": [],
            })
        };
        let cells: Vec<_> = sources.iter().enumerate().map(cell).collect();
        Self {
            content: json!({
                "cells": cells,
                "metadata": {"kernelspec": {"name": "ergodic-rust", "display_name": "Rust (ergodic)", "language": "rust"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            }),
            indent: 1,
        }
    }

    /// The language of its kernel, in small letters; empty if the file does not say.
    pub fn language(&self) -> String {
        let metadata = &self.content["metadata"];
        let known = [
            &metadata["kernelspec"]["language"],
            &metadata["language_info"]["name"],
            &metadata["kernelspec"]["name"],
        ];
        let found = known.iter().find_map(|v| v.as_str());
        found.unwrap_or_default().to_lowercase()
    }

    /// The code cells that are to be run: where they are, and their text. Those tagged `skip-execution` are left out.
    pub fn code(&self) -> Vec<(usize, String)> {
        let cells = self.content["cells"].as_array().into_iter().flatten();
        cells
            .enumerate()
            .filter(|(_, c)| c["cell_type"] == "code" && !tagged(c, "skip-execution"))
            .map(|(i, c)| (i, joined(&c["source"])))
            .filter(|(_, source)| !source.trim().is_empty())
            .collect()
    }

    /// Whether a cell may fail, by its tag `raises-exception`.
    pub fn may_fail(&self, cell: usize) -> bool {
        tagged(&self.content["cells"][cell], "raises-exception")
    }

    /// Remove what the code cells have put out that are to be run.
    pub fn clear(&mut self) {
        let cells = self.content["cells"].as_array_mut().into_iter().flatten();
        let run = |c: &&mut Value| c["cell_type"] == "code" && !tagged(c, "skip-execution");
        for cell in cells.filter(run) {
            cell["outputs"] = json!([]);
            cell["execution_count"] = Value::Null;
        }
    }

    /// Enter what a cell has put out.
    pub fn set_outputs(&mut self, cell: usize, count: u32, outputs: &[Output]) {
        let cell = &mut self.content["cells"][cell];
        cell["execution_count"] = json!(count);
        cell["outputs"] = merged(outputs).iter().map(|o| o.to_json(count)).collect();
    }

    /// The text of the file.
    pub fn to_text(&self) -> Result<String> {
        let mut out = Vec::new();
        let indent = " ".repeat(self.indent);
        let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        serde::Serialize::serialize(&self.content, &mut serializer)?;
        out.push(b'\n');
        Ok(String::from_utf8(out)?)
    }

    /// Write the file: whole, or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_atomic(path, self.to_text()?.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Text that follows text on the same stream is one output.
fn merged(outputs: &[Output]) -> Vec<Output> {
    let mut out: Vec<Output> = Vec::new();
    for o in outputs {
        match (out.last_mut(), o) {
            (Some(Output::Stream(last, text)), Output::Stream(name, more)) if last == name => {
                text.push_str(more);
            }
            _ => out.push(o.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"{
 "metadata": {
  "zebra": {"b": 1, "a": [1.5, null]},
  "kernelspec": {"display_name": "Rust", "language": "rust", "name": "rust"}
 },
 "cells": [
  {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# Ä\n", "text"]},
  {"cell_type": "code", "id": "c", "metadata": {"own": true}, "execution_count": 7, "source": ["let a = 1;\n", "a"], "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}]},
  {"cell_type": "code", "id": "d", "metadata": {"tags": ["skip-execution"]}, "execution_count": null, "source": "loop {}", "outputs": []},
  {"cell_type": "code", "id": "e", "metadata": {"tags": ["raises-exception"]}, "execution_count": null, "source": "1 / 0", "outputs": []}
 ],
 "nbformat_minor": 5,
 "nbformat": 4
}
"##;

    #[test]
    fn what_is_not_run_stays_as_it_is() {
        let mut notebook = Notebook::parse(TEXT).unwrap();
        let before: Value = serde_json::from_str(TEXT).unwrap();
        assert_eq!(notebook.language(), "rust");
        let code = notebook.code();
        assert_eq!(
            code,
            [(1, "let a = 1;\na".to_string()), (3, "1 / 0".to_string())]
        );
        assert!(notebook.may_fail(3) && !notebook.may_fail(1));
        let same = Notebook::parse(&notebook.to_text().unwrap()).unwrap();
        assert_eq!(same, notebook);
        notebook.clear();
        notebook.set_outputs(1, 1, &[]);
        let after: Value = serde_json::from_str(&notebook.to_text().unwrap()).unwrap();
        assert_eq!(after["metadata"], before["metadata"]);
        let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            keys(&after),
            ["metadata", "cells", "nbformat_minor", "nbformat"]
        );
        assert_eq!(keys(&after["metadata"]["zebra"]), ["b", "a"]);
        assert_eq!(after["cells"][0], before["cells"][0]);
        assert_eq!(
            after["cells"][1]["metadata"],
            before["cells"][1]["metadata"]
        );
        assert_eq!(after["cells"][1]["execution_count"], 1);
        // Jupyter indents by one blank, and so does the file.
        assert!(
            notebook
                .to_text()
                .unwrap()
                .starts_with("{\n \"metadata\": {\n  \"zebra\"")
        );
    }

    #[test]
    fn outputs_are_as_nbformat_wants_them() {
        let mut notebook = Notebook::parse(TEXT).unwrap();
        let data = |text: &str| Map::from_iter([("text/plain".to_string(), json!(text))]);
        let outputs = [
            Output::Stream("stdout", "a\n".into()),
            Output::Stream("stdout", "b".into()),
            Output::Stream("stderr", "c".into()),
            Output::Display(data("x\ny")),
            Output::Result(data("1")),
            Output::Error {
                name: "Error".into(),
                value: "no".into(),
                traceback: vec!["no".into()],
            },
        ];
        notebook.set_outputs(1, 3, &outputs);
        assert_eq!(
            notebook.content["cells"][1]["outputs"],
            json!([
                {"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]},
                {"output_type": "stream", "name": "stderr", "text": ["c"]},
                {"output_type": "display_data", "data": {"text/plain": ["x\n", "y"]}, "metadata": {}},
                {"output_type": "execute_result", "execution_count": 3, "data": {"text/plain": ["1"]}, "metadata": {}},
                {"output_type": "error", "ename": "Error", "evalue": "no", "traceback": ["no"]},
            ])
        );
        assert_eq!(notebook.content["cells"][1]["execution_count"], 3);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, why) in [
            ("{", "EOF"),
            ("{\"nbformat\": 3, \"worksheets\": []}", "nbformat is 3"),
            ("{\"cells\": []}", "nbformat is missing"),
            ("{\"nbformat\": 4}", "no cells"),
        ] {
            let e = Notebook::parse(text).unwrap_err();
            assert!(format!("{e:#}").contains(why), "{text}: {e:#}");
        }
    }
}
