//! What several tests need: running scripts, scratch folders.

use ergodic::script::{Failure, Interpreter};
use ergodic::simulation::session::Session;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ergodic-test-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Write a file into it, with the folders above it.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Run a script in this process; its value as JSON.
pub fn evaluate(source: &str) -> Result<serde_json::Value, Failure> {
    evaluate_in(&Scratch::new(), source)
}

/// The same, with results in the folder `out` of a scratch folder.
pub fn evaluate_in(scratch: &Scratch, source: &str) -> Result<serde_json::Value, Failure> {
    let session = Session::new(scratch.join("out"));
    let mut interpreter = Interpreter::new(session, BTreeMap::new());
    let value = interpreter.run("test.rhai", source)?;
    Ok(interpreter.json(&value))
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program, to be run in the repository's root.
pub fn ergodic() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ergodic"));
    command.current_dir(root());
    // Set by tests/run, to be told how long tests take; cargo would compile anew for it.
    command.env_remove("RUSTC_BOOTSTRAP");
    command
}

pub fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Central differences of a loss along some directions, against what a gradient says of them; off by at most `bound`.
pub fn check_along(
    name: &str,
    loss: impl Fn(&[f64]) -> f64,
    at: &[f64],
    gradient: &[f32],
    directions: &[Vec<f32>],
    (h, bound): (f64, f64),
) {
    for direction in directions {
        let moved = |h: f64| -> Vec<f64> {
            let both = at.iter().zip(direction);
            both.map(|(w, d)| w + h * *d as f64).collect()
        };
        let difference = (loss(&moved(h)) - loss(&moved(-h))) / (2.0 * h);
        let both = gradient.iter().zip(direction);
        let along: f64 = both.map(|(g, d)| *g as f64 * *d as f64).sum();
        assert!(
            (difference - along).abs() < bound,
            "{name}: {along} along a direction, {difference} by differences"
        );
    }
}

/// Mean over seeds of `found` against `truth`, in standard errors of that mean.
pub fn deviation(found: &[f64], truth: f64) -> f64 {
    let n = found.len() as f64;
    let mean = found.iter().sum::<f64>() / n;
    let variance = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean - truth) / (variance / n).sqrt()
}

/// ln Z, and the weight of the left mode, of Gaussians of width ½ at -3 (0.6) and 2.5 (0.4) on the first axis, under a prior of width 2.
pub fn law_of_mixture(dim: u32) -> (f64, f64) {
    // Of width σ² + τ² around 0.
    let width: f64 = 0.25 + 4.0;
    let weight = |a: f64, c: f64| a * (-0.5 * c * c / width).exp();
    let (left, right) = (weight(0.6, 3.0), weight(0.4, 2.5));
    let ln_z = (left + right).ln() - 0.5 * f64::from(dim) * (std::f64::consts::TAU * width).ln();
    (ln_z, left / (left + right))
}
