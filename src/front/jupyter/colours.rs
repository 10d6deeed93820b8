//! Rhai's colours in notebooks: an extension of JupyterLab, written beside the kernel, and the lexer of exports.

use crate::error::Result;
use crate::front::kernel::kernelspec::Target;
use crate::script::explore::tokens::KEYWORDS;
use anyhow::Context;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the extension.
const NAME: &str = "ergodic-rhai";

const SCRIPT: &str = include_str!("../../../editors/jupyterlab/rhai.js");

/// The variable of the kernel that names the lexer by which Pygments colours what is exported.
const LEXER: &str = "ERGODIC_LEXER";

/// Where JupyterLab looks for the extension, told from the folder of a kernel; nowhere if the user has named a folder of kernels.
fn place(kernel: &Path, target: &Target) -> Option<PathBuf> {
    match target {
        Target::Folder(_) => None,
        _ => Some(kernel.parent()?.parent()?.join("labextensions").join(NAME)),
    }
}

/// Write the extension, in place of an earlier one.
pub fn install(kernel: &Path, target: &Target) -> Result<()> {
    let Some(folder) = place(kernel, target) else {
        return Ok(());
    };
    let version = env!("CARGO_PKG_VERSION");
    // With the version, so that browsers do not go on with an old one.
    let script = format!("static/rhai-{version}.js");
    let about = json!({
        "name": NAME,
        "version": version,
        "description": "Rhai for the editor, from `ergodic kernel install`",
        "license": "MIT OR Apache-2.0",
        "jupyterlab": {
            "extension": true,
            "_build": {"load": script, "extension": "./extension"},
        },
    });
    let write = || -> std::io::Result<()> {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(folder.join("static"))?;
        std::fs::write(folder.join("package.json"), format!("{about:#}\n"))?;
        let text = SCRIPT.replace("@KEYWORDS@", &KEYWORDS.join(" "));
        std::fs::write(folder.join(&script), text)
    };
    write().with_context(|| {
        format!(
            "the kernel is installed, but its colours cannot be written into {}",
            folder.display()
        )
    })
}

/// Remove the extension, unless another kernel beside the one that is gone needs it.
pub fn uninstall(kernel: &Path, target: &Target) -> Result<()> {
    let Some(folder) = place(kernel, target).filter(|f| f.exists()) else {
        return Ok(());
    };
    let kernels = kernel.parent().map(std::fs::read_dir);
    let others = kernels.into_iter().flatten().flatten().flatten();
    let mut specs = others.map(|k| std::fs::read_to_string(k.path().join("kernel.json")));
    if specs.any(|s| s.is_ok_and(|s| s.contains("\"language\": \"rhai\""))) {
        return Ok(());
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// What the kernel has to be told so that exports are coloured as Rhai: nothing if the Python of the environment has no lexer for it
/// (`pip install editors/pygments`), since nbconvert shows code without colours then.
pub fn environment(target: &Target) -> &'static [(&'static str, &'static str)] {
    let python = match target {
        Target::Prefix(prefix) => prefix.join("bin/python"),
        _ => "python3".into(),
    };
    let ask = "from pygments.lexers import get_lexer_by_name; get_lexer_by_name('rhai')";
    let answer = Command::new(python).args(["-c", ask]).output();
    match answer.is_ok_and(|a| a.status.success()) {
        true => &[(LEXER, "rhai")],
        false => &[],
    }
}

/// Pygments' name of the language; that of a near one, if Rhai has no lexer.
pub fn lexer() -> String {
    std::env::var(LEXER).unwrap_or_else(|_| "scala".into())
}
