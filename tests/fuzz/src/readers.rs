//! Readers of files, scripts, notebooks and messages: each takes the bytes of the fuzzer.

use crate::scripts;
use ergodic::front::{kernel, notebook};
use ergodic::script::Interpreter;
use ergodic::simulation::session::Session;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A name, the file that the bytes are written to, and the script that reads it.
const FILES: &[[&str; 3]] = &[
    ["csv", "a.csv", r#"print(dataset::csv("FOLDER/a.csv"))"#],
    [
        "npy",
        "a.npy",
        r#"print(tensor::load("FOLDER/a.npy")); print(dataset::npy("FOLDER/a.npy", "FOLDER/y.npy"))"#,
    ],
    [
        "mapped",
        "a.npy",
        r#"print(dataset::npy("FOLDER/a.npy", "FOLDER/y.npy", #{ mapped: true }))"#,
    ],
    ["npz", "a.npz", r#"print(dataset::npz("FOLDER/a.npz"))"#],
    [
        "idx",
        "train-images-idx3-ubyte",
        r#"print(dataset::idx("FOLDER"))"#,
    ],
    [
        "safetensors",
        "a.safetensors",
        r#"try { print(tensor::load("FOLDER/a.safetensors")) } catch { } print(dataset::safetensors("FOLDER/a.safetensors"))"#,
    ],
    [
        "weights",
        "a.safetensors",
        r#"print(model::mlp(#{ layers: [2, 2] }).load("FOLDER/a.safetensors"))"#,
    ],
    [
        "pytorch",
        "a.pt",
        r#"try { print(tensor::load("FOLDER/a.pt")) } catch { } print(model::mlp(#{ layers: [2, 2] }).load("FOLDER/a.pt"))"#,
    ],
    [
        "onnx",
        "a.onnx",
        r#"let m = model::onnx("FOLDER/a.onnx"); print(m); print(m.weights().len())"#,
    ],
    [
        "config",
        "config.json",
        r#"print(model::pretrained("FOLDER"))"#,
    ],
    [
        "model",
        "model.safetensors",
        r#"print(model::pretrained("FOLDER"))"#,
    ],
    [
        "tokenizer",
        "tokenizer.json",
        r#"print(dataset::text("FOLDER/text.txt", #{ tokenizer: "FOLDER/tokenizer.json", context: 4 }))"#,
    ],
    [
        "text",
        "text.txt",
        r#"print(dataset::text("FOLDER/text.txt", #{ context: 4 })); print(dataset::text("FOLDER/text.txt", #{ tokenizer: "FOLDER/tokenizer.json", context: 4 }))"#,
    ],
    [
        "tokens",
        "a.bin",
        r#"print(dataset::tokens("FOLDER/a.bin", #{ context: 4, vocabulary: 100 }))"#,
    ],
    ["json", "a.json", r#"print(read_json("FOLDER/a.json"))"#],
    ["run.json", "run/run.json", LOOK],
    ["checkpoint", "run/checkpoint/current.safetensors", LOOK],
    ["summary", "run/checkpoint/summary.json", LOOK],
    ["zarr", "run/trace.zarr/zarr.json", LOOK],
    ["array", "run/trace.zarr/posterior/zarr.json", LOOK],
    ["chunk", "run/trace.zarr/sample_stats/energy/c/0/0/0", LOOK],
    ["draws", "kept/draws.zarr/zarr.json", DRAW],
    ["steps", "kept/draws.zarr/step/c/0", DRAW],
    ["kept", "kept/draws.zarr/w/c/0/0/0", DRAW],
];

/// What there is to a run on disk.
const LOOK: &str = r#"let r = open("FOLDER/run"); print(r); print(r.summary()); print(r.trace("energy", 0)); print(r.verdict())"#;

/// What reads draws that were kept.
const DRAW: &str = r#"let r = open("FOLDER/kept"); print(r.draw(0, 1)); print(r.kept("w", 1))"#;

/// Something that reads bytes.
pub struct Reader {
    interpreter: Interpreter,
    how: How,
}

enum How {
    /// As a file, which a script reads.
    File(PathBuf, String),
    /// As a script.
    Script,
    /// As the choices that make a script of our functions.
    Calls,
    Notebook,
    /// As what a client of a kernel sends.
    Messages,
}

impl Reader {
    pub fn named(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("ergodic-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let how = match name {
            "script" => How::Script,
            "calls" => How::Calls,
            "notebook" => How::Notebook,
            "messages" => How::Messages,
            _ => {
                let known = FILES.iter().find(|f| f[0] == name);
                let [_, file, script] =
                    known.unwrap_or_else(|| panic!("no reader is called {name}"));
                fill(&folder);
                let script = script.replace("FOLDER", &folder.display().to_string());
                How::File(folder.join(file), script)
            }
        };
        let mut session = Session::new(folder.join("out"));
        session.quiet = true;
        session.most_steps = Some(20_000);
        Self {
            interpreter: Interpreter::new(session, BTreeMap::new()),
            how,
        }
    }

    pub fn read(&mut self, bytes: &[u8]) {
        let source = match &self.how {
            How::File(path, script) => {
                fs::write(path, bytes).expect("room for the file");
                script.clone()
            }
            How::Script => String::from_utf8_lossy(bytes).into_owned(),
            How::Calls => scripts::of(bytes),
            How::Notebook => return notebook::fuzz(bytes),
            How::Messages => return kernel::fuzz(bytes),
        };
        // An error is an answer, too.
        let _ = self.interpreter.run("fuzz.rhai", &source);
        self.interpreter.reset();
    }
}

/// The files that are read beside the one that changes.
fn fill(folder: &Path) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    let from = |name: &str| fs::read(data.join(name)).expect("tests/data");
    for name in [
        "y.npy",
        "idx/train-labels-idx1-ubyte",
        "idx/t10k-images-idx3-ubyte",
        "idx/t10k-labels-idx1-ubyte",
        "pretrained/config.json",
        "pretrained/model.safetensors",
        "pretrained/tokenizer.json",
    ] {
        let file = name.rsplit('/').next().expect("a name");
        fs::write(folder.join(file), from(name)).expect("room for the files");
    }
    fs::write(
        folder.join("text.txt"),
        "to be or not to be, that is the question",
    )
    .expect("room for the text");
    let packed = from("format-1.tar.gz");
    tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]))
        .unpack(folder)
        .expect("a run of tests/data");
    for (old, new) in [("ladder", "run"), ("run", "kept")] {
        fs::rename(folder.join("format-1/done").join(old), folder.join(new))
            .expect("a run of tests/data");
    }
}
