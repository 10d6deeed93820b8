//! `ergodic lsp`, asked as an editor asks.

use super::support::{Scratch, ergodic, root};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// An editor with one script.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    count: u64,
    uri: String,
    _cache: Scratch,
}

impl Editor {
    fn new() -> Self {
        let cache = Scratch::new();
        let mut child = ergodic()
            .arg("lsp")
            .env("XDG_CACHE_HOME", cache.join("cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let uri = format!("file://{}/scripts/mine.rhai", root().display());
        let mut editor = Self {
            child,
            input,
            output,
            count: 0,
            uri,
            _cache: cache,
        };
        let about = editor.ask(
            "initialize",
            json!({"capabilities": {}, "processId": null, "rootUri": null}),
        );
        assert_eq!(about["serverInfo"]["name"], "ergodic");
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.input.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the server has left"
            );
            match line.trim() {
                "" => break,
                line => {
                    if let Some(n) = line.strip_prefix("Content-Length: ") {
                        length = n.parse().unwrap();
                    }
                }
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.count += 1;
        let id = self.count;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Show a script; what is wrong in it.
    fn open(&mut self, text: &str) -> Vec<Value> {
        let document = json!({"uri": self.uri, "languageId": "rhai", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        self.diagnostics()
    }

    fn diagnostics(&mut self) -> Vec<Value> {
        let told = self.receive();
        assert_eq!(told["method"], "textDocument/publishDiagnostics");
        told["params"]["diagnostics"].as_array().unwrap().clone()
    }

    /// Ask of the place of ‸ in a script, which is shown without it.
    fn at(&mut self, method: &str, marked: &str) -> Value {
        let (before, _) = marked.split_once('‸').unwrap();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap().encode_utf16().count();
        self.open(&marked.replace('‸', ""));
        let position = json!({"line": line, "character": column});
        let params = json!({"textDocument": {"uri": self.uri}, "position": position});
        self.ask(method, params)
    }

    fn labels(&mut self, marked: &str) -> Vec<String> {
        let found = self.at("textDocument/completion", marked);
        let items = found.as_array().unwrap().iter();
        items
            .map(|i| i["label"].as_str().unwrap().to_string())
            .collect()
    }

    fn leave(mut self) {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn an_editor_is_told_what_is_wrong_while_it_changes() {
    let mut editor = Editor::new();
    let found = editor.open("let net = model::mlp(#{ layrs: [4, 3] });\nlet x = 1;\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean 'layers'?")
    );
    assert_eq!(
        found[0]["range"]["start"],
        json!({"line": 0, "character": 24})
    );
    assert_eq!(
        found[0]["range"]["end"],
        json!({"line": 0, "character": 29})
    );
    let change = |line: u32, from: u32, to: u32, text: &str| json!({"range": {"start": {"line": line, "character": from}, "end": {"line": line, "character": to}}, "text": text});
    let uri = editor.uri.clone();
    let document = json!({"uri": uri, "version": 2});
    editor.tell(
        "textDocument/didChange",
        json!({"textDocument": document, "contentChanges": [change(0, 24, 29, "layers")]}),
    );
    assert!(editor.diagnostics().is_empty());
    editor.tell(
        "textDocument/didChange",
        json!({"textDocument": document, "contentChanges": [change(1, 8, 9, "(")]}),
    );
    assert_eq!(editor.diagnostics().len(), 1);
    editor.tell(
        "textDocument/didClose",
        json!({"textDocument": {"uri": uri}}),
    );
    assert!(editor.diagnostics().is_empty());
    editor.leave();
}

#[test]
fn an_editor_gets_names_help_and_signatures() {
    let mut editor = Editor::new();
    assert!(
        editor
            .labels("let net = model::‸")
            .contains(&"mlp".to_string())
    );
    assert!(
        editor
            .labels("sampler::sgld(#{ ‸ })")
            .contains(&"step".to_string())
    );
    // A variable has the methods of what makes it, though nothing has run.
    let script =
        "let å = \"𝛽\"; let run = sample(target(potential::gaussian()), sampler::hmc());\nrun.‸";
    let methods = editor.labels(script);
    assert!(
        methods.contains(&"summary".to_string()) && methods.contains(&"trace".to_string()),
        "{methods:?}"
    );
    let help = editor.at("textDocument/hover", "let t = tar‸get(1);");
    assert!(
        help["contents"]["value"]
            .as_str()
            .unwrap()
            .contains("The distribution to sample")
    );
    assert!(editor.at("textDocument/hover", "// com‸ment").is_null());
    let help = editor.at("textDocument/signatureHelp", "sample(t, ‸");
    let first = &help["signatures"][0];
    assert!(
        first["label"].as_str().unwrap().starts_with("sample("),
        "{help}"
    );
    assert_eq!(first["activeParameter"], 1);
    editor.leave();
}

#[test]
fn an_editor_finds_definitions_symbols_and_indents() {
    let mut editor = Editor::new();
    let here = editor.at(
        "textDocument/definition",
        "let x = 1;\nfn f(a) { a }\nf(x‸)",
    );
    assert_eq!(here["range"]["start"], json!({"line": 0, "character": 4}));
    let script = "import \"ladder\" as ladder;\nlet x = ladder::ada‸pted(1);";
    let recipe = editor.at("textDocument/definition", script);
    let file = recipe["uri"]
        .as_str()
        .unwrap()
        .strip_prefix("file://")
        .unwrap();
    let source = std::fs::read_to_string(file).unwrap();
    let line = recipe["range"]["start"]["line"].as_u64().unwrap() as usize;
    assert!(source.lines().nth(line).unwrap().starts_with("fn adapted("));
    editor.open("const A = 1;\nfn f(a) {\nlet b = a;\nb\n}\n");
    let uri = editor.uri.clone();
    let document = json!({"uri": uri});
    let found = editor.ask(
        "textDocument/documentSymbol",
        json!({"textDocument": document}),
    );
    let names: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].clone())
        .collect();
    assert_eq!(names, ["A", "f"]);
    let options = json!({"tabSize": 4, "insertSpaces": true});
    let edits = editor.ask(
        "textDocument/formatting",
        json!({"textDocument": document, "options": options}),
    );
    assert_eq!(
        edits[0]["newText"],
        "const A = 1;\nfn f(a) {\n    let b = a;\n    b\n}\n"
    );
    editor.leave();
}

#[test]
fn odd_editors_are_answered() {
    let mut editor = Editor::new();
    // Nothing is known of a script that is not open, and of places beyond its end the last one counts.
    let params =
        json!({"textDocument": {"uri": "untitled:none"}, "position": {"line": 0, "character": 0}});
    assert!(editor.ask("textDocument/hover", params).is_null());
    editor.open("let x = 1;");
    let place = json!({"line": 4_000_000_000u32, "character": 4_000_000_000u32});
    let params = json!({"textDocument": {"uri": editor.uri}, "position": place});
    editor.ask("textDocument/completion", params);
    // An address with a blank is none.
    let document =
        json!({"uri": "file:///a b.rhai", "languageId": "rhai", "version": 1, "text": ""});
    editor.tell("textDocument/didOpen", json!({"textDocument": document}));
    editor.tell("textDocument/didChange", json!({}));
    for (method, params) in [("textDocument/hover", json!({})), ("no/such", json!(null))] {
        editor.count += 1;
        let id = editor.count;
        editor.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = editor.receive();
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    editor.leave();
}
