//! `ergodic doctor`: what this machine offers, and what is missing.

use super::jupyter;
use super::kernel::kernelspec;
use crate::kernels;
use crate::memory::available_memory;
use std::path::Path;
use std::process::Command;

/// One line per finding.
pub fn report(threads: usize) -> String {
    let mut out = vec![
        format!(
            "ergodic {} on {} {}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        format!("threads    {threads}"),
        format!("simd       {:?}", kernels::level()),
        format!(
            "gemm       {:.0} GFLOP/s on one thread (f32, 558×100×100)",
            gemm_rate()
        ),
        match available_memory() {
            Some(b) => format!("memory     {:.1} GiB free", b as f64 / (1u64 << 30) as f64),
            None => "memory     unknown on this system".into(),
        },
        format!("device     cpu{}", cuda()),
    ];
    for (what, command, use_) in [
        ("jupyter", "jupyter", "notebooks"),
        ("evcxr", "evcxr", "Rust notebooks"),
        ("mpi", "mpirun", "runs over several machines"),
    ] {
        let found = Command::new(command)
            .arg("--version")
            .output()
            .ok()
            .filter(|o| o.status.success());
        let line = found
            .and_then(|o| String::from_utf8(o.stdout).ok())
            .and_then(|t| {
                // Jupyter's first line is a heading.
                let line = t.lines().find(|l| l.contains(|c: char| c.is_ascii_digit()));
                line.map(str::to_string)
            });
        out.push(match line {
            Some(version) if what == "mpi" && !cfg!(feature = "mpi") => {
                format!("{what:<10} {version}; this program is built without the feature mpi")
            }
            Some(version) => format!("{what:<10} {version}"),
            None => format!("{what:<10} not found; only needed for {use_}"),
        });
    }
    out.push(format!("kernel     {}", kernel()));
    out.join("\n")
}

/// Whether Jupyter knows this program.
fn kernel() -> String {
    let found = kernelspec::list()
        .into_iter()
        .find(|k| k.name == jupyter::NAME);
    let Some(kernel) = found else {
        return "not installed; `ergodic kernel install` adds it to Jupyter".into();
    };
    let (folder, program) = (kernel.folder.display(), kernel.argv.first());
    match program.map(Path::new) {
        Some(p) if p.is_file() => format!("{folder}, starts {}", p.display()),
        _ => format!(
            "{folder}, but the program it starts is gone; `ergodic kernel install` repairs it"
        ),
    }
}

/// Speed of the product that the small nets of Zambon (2026) spend their time in.
fn gemm_rate() -> f64 {
    use kernels::gemm::{Matrix, multiply};
    let (m, k, n) = (558, 100, 100);
    let (a, b) = (vec![1f32; m * k], vec![1f32; k * n]);
    let mut c = vec![0f32; m * n];
    let begin = std::time::Instant::now();
    let mut count = 0;
    while begin.elapsed().as_millis() < 50 {
        multiply(&mut c, Matrix::new(&a, m, k), Matrix::new(&b, k, n), false);
        count += 1;
    }
    2.0 * (m * k * n * count) as f64 / begin.elapsed().as_secs_f64() / 1e9
}

/// The first GPU, or why there is none.
fn cuda() -> String {
    #[cfg(feature = "cuda")]
    match crate::kernels::device::cuda::Cuda::open(0, Default::default()) {
        Ok(device) => {
            use crate::kernels::device::Device;
            format!(", cuda:0 ({})", device.describe())
        }
        Err(e) => format!("; no cuda:0: {e:#}"),
    }
    #[cfg(not(feature = "cuda"))]
    "; built without the feature cuda".into()
}
