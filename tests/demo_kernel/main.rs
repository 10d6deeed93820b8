//! A toy kernel to test the front end with.

mod calculator;
mod language;

use anyhow::{Result, bail};
use ergodic::front::kernel::kernelspec::{self, Spec, Target};
use ergodic::front::kernel::{Kernel, cursor};
use language::Demo;
use std::path::{Path, PathBuf};

const LOGO: &[u8] = br##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><circle cx="32" cy="32" r="28" fill="#36c"/></svg>"##;
const USAGE: &str = "usage: demo-kernel CONNECTION_FILE | install (--user | --prefix P | --folder F) | uninstall … | list";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["install", place @ ..] => {
            let program = std::env::current_exe()?.display().to_string();
            let spec = Spec {
                name: "demo",
                display_name: "Demo",
                language: "demo",
                argv: &[program, "{connection_file}".into()],
                resources: &[("logo-svg.svg", LOGO)],
                ..Spec::default()
            };
            println!("{}", kernelspec::install(&spec, &target(place)?)?.display());
        }
        ["uninstall", place @ ..] => {
            println!(
                "{}",
                kernelspec::uninstall("demo", &target(place)?)?.display()
            );
        }
        ["list"] => {
            for found in kernelspec::list() {
                println!(
                    "{}\t{}\t{}",
                    found.name,
                    found.display_name,
                    found.folder.display()
                );
            }
        }
        [file] => {
            let kernel = Kernel {
                history: std::env::var_os("DEMO_HISTORY").map(PathBuf::from),
                ..Kernel::default()
            };
            kernel.run(Path::new(file), Demo::default())?;
        }
        _ => bail!(USAGE),
    }
    Ok(())
}

fn target(place: &[&str]) -> Result<Target> {
    Ok(match place {
        ["--user"] => Target::User,
        ["--prefix", prefix] => Target::Prefix(prefix.into()),
        ["--folder", folder] => Target::Folder(folder.into()),
        _ => bail!(USAGE),
    })
}

/// The name that ends at a cursor: where it starts, and the name.
pub(crate) fn name_before(code: &str, at: usize) -> (usize, &str) {
    let before = &code[..cursor::byte(code, at)];
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_alphanumeric() || *c == '_')
        .last();
    let start = start.map_or(before.len(), |(i, _)| i);
    (cursor::point(code, start), &before[start..])
}
