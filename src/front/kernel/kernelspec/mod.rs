//! Kernel specifications: the folders by which Jupyter finds kernels and knows how to start them.

mod places;

pub use places::Target;

use super::id;
use anyhow::{Context, Result, bail, ensure};
use places::Surroundings;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What Jupyter should know about a kernel.
#[derive(Debug, Clone, Default)]
pub struct Spec<'a> {
    /// Name of its folder and on the command line: letters, digits, dots, dashes and underscores.
    pub name: &'a str,
    /// Name in menus.
    pub display_name: &'a str,
    /// Name of the language.
    pub language: &'a str,
    /// Command that starts it; `{connection_file}` stands for the file that [`Kernel::run`](super::Kernel::run) needs.
    pub argv: &'a [String],
    /// Environment variables of the command.
    pub env: &'a [(&'a str, &'a str)],
    /// What front ends may want to know, as an object.
    pub metadata: Value,
    /// Further files: `logo-64x64.png`, `logo-svg.svg`, `kernel.js`, …
    pub resources: &'a [(&'a str, &'a [u8])],
}

/// A kernel that Jupyter finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Name in menus.
    pub display_name: String,
    /// Name of the language.
    pub language: String,
    /// Command that starts it.
    pub argv: Vec<String>,
    /// Its folder.
    pub folder: PathBuf,
}

/// Install a kernel, in place of one of the same name. Returns its folder.
pub fn install(spec: &Spec, target: &Target) -> Result<PathBuf> {
    let name = checked(spec.name)?;
    ensure!(
        spec.argv.iter().any(|a| a.contains("{connection_file}")),
        "the command of kernel '{name}' must contain {{connection_file}}, so that it learns where to listen"
    );
    let kernels = target.kernels(&Surroundings::here())?;
    let folder = kernels.join(&name);
    let what = || {
        format!(
            "cannot install the kernel '{name}' in {}; choose another place, or one you may write to",
            folder.display()
        )
    };
    std::fs::create_dir_all(&kernels).with_context(what)?;
    // The tilde keeps Jupyter from taking them for kernels.
    let new = kernels.join(format!("~{name}-{}", id::fresh()));
    let old = kernels.join(format!("~{name}-{}", id::fresh()));
    let done = write(spec, &new).and_then(|()| replace(&new, &folder, &old));
    let _ = std::fs::remove_dir_all(&new);
    let _ = std::fs::remove_dir_all(&old);
    done.with_context(what)?;
    Ok(folder)
}

fn write(spec: &Spec, folder: &Path) -> Result<()> {
    std::fs::create_dir(folder)?;
    let env: serde_json::Map<_, _> = spec
        .env
        .iter()
        .map(|(k, v)| (k.to_string(), json!(v)))
        .collect();
    let metadata = match &spec.metadata {
        Value::Null => json!({}),
        metadata => metadata.clone(),
    };
    let content = json!({
        "argv": spec.argv,
        "display_name": spec.display_name,
        "language": spec.language,
        "interrupt_mode": "message",
        "env": env,
        "metadata": metadata,
    });
    let text = serde_json::to_string_pretty(&content)? + "\n";
    std::fs::write(folder.join("kernel.json"), text)?;
    for (name, bytes) in spec.resources {
        ensure!(
            !name.is_empty()
                && !name.contains(['/', '\\'])
                && *name != "kernel.json"
                && !name.starts_with('.'),
            "'{name}' cannot be the name of a file of a kernel"
        );
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// Put `new` in the place of `folder`, which is kept as `old` until that has worked.
fn replace(new: &Path, folder: &Path, old: &Path) -> Result<()> {
    let existed = folder.symlink_metadata().is_ok();
    if existed {
        std::fs::rename(folder, old)?;
    }
    if let Err(e) = std::fs::rename(new, folder) {
        if existed {
            std::fs::rename(old, folder)?;
        }
        return Err(e.into());
    }
    Ok(())
}

/// All kernels that Jupyter finds; of several with the same name, the one it takes.
pub fn list() -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for kernels in Surroundings::here().all_kernels() {
        let Ok(entries) = std::fs::read_dir(&kernels) else {
            continue;
        };
        let mut here: Vec<_> = entries.flatten().filter_map(|e| read(&e.path())).collect();
        here.retain(|f| found.iter().all(|g| g.name != f.name));
        found.extend(here);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// What a kernel's folder says, if it is one.
fn read(folder: &Path) -> Option<Found> {
    let text = std::fs::read_to_string(folder.join("kernel.json")).ok()?;
    let content: Value = serde_json::from_str(&text).ok()?;
    let text = |key: &str| content[key].as_str().unwrap_or_default().to_string();
    let argv = content["argv"].as_array().into_iter().flatten();
    Some(Found {
        name: folder.file_name()?.to_str()?.to_lowercase(),
        display_name: text("display_name"),
        language: text("language"),
        argv: argv.filter_map(Value::as_str).map(Into::into).collect(),
        folder: folder.to_path_buf(),
    })
}

/// Remove a kernel. Returns the folder that was removed.
pub fn uninstall(name: &str, target: &Target) -> Result<PathBuf> {
    let name = checked(name)?;
    let kernels = target.kernels(&Surroundings::here())?;
    let folder = kernels.join(&name);
    if !folder.join("kernel.json").is_file() {
        let elsewhere = list().into_iter().find(|f| f.name == name);
        bail!(
            "there is no kernel '{name}' in {}{}",
            kernels.display(),
            elsewhere.map_or_else(String::new, |f| format!(
                "; there is one in {}",
                f.folder.display()
            ))
        );
    }
    let removed = match folder.symlink_metadata() {
        // The link, not what it points to, which is somebody else's.
        Ok(metadata) if metadata.is_symlink() => std::fs::remove_file(&folder),
        _ => std::fs::remove_dir_all(&folder),
    };
    removed.with_context(|| format!("cannot remove {}", folder.display()))?;
    Ok(folder)
}

/// Jupyter's own rule; it also keeps the name from leading to another folder.
fn checked(name: &str) -> Result<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    ensure!(
        !name.is_empty() && name.chars().all(fits) && !name.starts_with('.'),
        "'{name}' cannot be the name of a kernel; use letters, digits, '.', '-' and '_', with no dot at the start"
    );
    Ok(name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec<'a>(argv: &'a [String], display_name: &'a str) -> Spec<'a> {
        Spec {
            name: "Demo",
            display_name,
            language: "demo",
            argv,
            env: &[("A", "1")],
            resources: &[
                ("logo-svg.svg", b"<svg/>"),
                ("kernel.js", b"define(() => {})"),
            ],
            ..Spec::default()
        }
    }

    #[test]
    fn install_replaces_and_uninstall_removes() {
        let root = std::env::temp_dir().join(format!("kernelspec-{}", id::fresh()));
        let target = Target::Prefix(root.clone());
        let argv = ["demo", "{connection_file}"].map(String::from);
        let folder = install(&spec(&argv, "One"), &target).unwrap();
        assert_eq!(folder, root.join("share/jupyter/kernels/demo"));
        std::fs::write(folder.join("stale"), "").unwrap();
        assert_eq!(install(&spec(&argv, "Two"), &target).unwrap(), folder);
        assert!(!folder.join("stale").exists());
        let found = read(&folder).unwrap();
        assert_eq!(
            (found.name.as_str(), found.display_name.as_str()),
            ("demo", "Two")
        );
        assert_eq!(found.argv, argv);
        let text = std::fs::read_to_string(folder.join("kernel.json")).unwrap();
        let content: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(content["interrupt_mode"], "message");
        assert_eq!(content["env"], json!({"A": "1"}));
        assert_eq!(content["metadata"], json!({}));
        assert_eq!(
            std::fs::read(folder.join("logo-svg.svg")).unwrap(),
            b"<svg/>"
        );
        // Nothing temporary is left.
        assert_eq!(
            std::fs::read_dir(root.join("share/jupyter/kernels"))
                .unwrap()
                .count(),
            1
        );
        assert_eq!(uninstall("demo", &target).unwrap(), folder);
        assert!(!folder.exists());
        let error = uninstall("demo", &target).unwrap_err().to_string();
        assert!(error.contains("no kernel 'demo'"), "{error}");
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_failed_install_leaves_the_old_one() {
        let root = std::env::temp_dir().join(format!("kernelspec-{}", id::fresh()));
        let target = Target::Folder(root.clone());
        let argv = ["{connection_file}".to_string()];
        let folder = install(&spec(&argv, "One"), &target).unwrap();
        let mut broken = spec(&argv, "Two");
        broken.resources = &[("../escape", b"")];
        assert!(install(&broken, &target).is_err());
        assert_eq!(read(&folder).unwrap().display_name, "One");
        for name in ["", "..", "a/b", ".x", "ψ"] {
            broken.name = name;
            assert!(install(&broken, &target).is_err());
            assert!(uninstall(name, &target).is_err());
        }
        let deaf = ["demo".to_string()];
        assert!(install(&spec(&deaf, "x"), &target).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
