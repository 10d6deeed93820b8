//! `ergodic bench`: the speed of a fixed list of workloads, beside the time of their matrix products alone.
//!
//! `tests/bench/` has the same workloads, under the same names, in PyTorch, JAX and BlackJAX.

use crate::error::{Result, did_you_mean};
use crate::kernels::update::LANGEVIN;
use crate::memory;
use crate::output;
use crate::rng::{Purpose, Stream};
use crate::script::Interpreter;
use crate::simulation::session::Session;
use crate::store;
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What is measured.
enum Work {
    /// A script whose value is that of `benchmark`.
    Script(&'static str),
    /// The Langevin update of so many parameters, noise included, on one thread.
    Update(usize),
}

struct Workload {
    name: &'static str,
    about: &'static str,
    work: Work,
}

/// A network on spin vectors with the prior of Zambon (2026), sampled as `$sampler` says.
macro_rules! spins {
    ($layers:literal, $sampler:literal, $options:literal) => {
        Work::Script(concat!(
            "let net = model::mlp(#{ layers: ", $layers, ", output: \"relu\" });\n",
            "let spins = target(net, dataset::spin_vectors(#{ test: 0 }), #{ prior: prior::l2(10.0) });\n",
            "benchmark(spins, sampler::", $sampler, ", #{ temperature: 1e-5, seconds: param(\"seconds\", 3.0)", $options, " })"
        ))
    };
}

/// SGLD of a network written in a script, 100-50-100-10 with ReLU; `$gate` and `$more` make it another.
macro_rules! custom {
    ($gate:literal, $hidden:literal, $more:literal) => {
        Work::Script(concat!(
            "let net = model::custom(#{ params: [[\"w1\", [50, 100]], [\"b1\", [50]], [\"w2\", [100, 50]], [\"b2\", [100]], ",
            $gate,
            "[\"w3\", [10, 100]], [\"b3\", [10]]], inputs: 100, ",
            $more,
            "forward: |p, x| {\n\
             let h = (x.matmul(p.w1.t()) + p.b1).relu();\n\
             h = (h.matmul(p.w2.t()) + p.b2).relu()",
            $hidden,
            ";\n(h.matmul(p.w3.t()) + p.b3).relu() } });\n",
            "let spins = target(net, dataset::spin_vectors(#{ test: 0 }), #{ prior: prior::l2(10.0) });\n",
            "benchmark(spins, sampler::sgld(#{ step: 1e-3, batch: 558 }), #{ temperature: 1e-5, seconds: param(\"seconds\", 3.0) })"
        ))
    };
}

/// A record of `$observable` of a network, in the place of a step.
macro_rules! record {
    ($observable:literal) => {
        Work::Script(concat!(
            "let net = model::mlp(#{ layers: [100, 50, 100, 10], output: \"relu\" });\n",
            "let spins = target(net, dataset::spin_vectors(#{ test: 0 }));\n",
            "let b = benchmark(spins, sampler::sgld(#{ step: 1e-3, batch: 558 }), #{ seconds: param(\"seconds\", 3.0), observe: [",
            $observable,
            "] });\n",
            "b.seconds_per_step = b.seconds_per_record.values()[0];\n",
            "b.steps_per_second = 1.0 / b.seconds_per_step;\n",
            "b.floor_seconds = ();\nb.limit_seconds = ();\n",
            "b"
        ))
    };
}

/// SGLD of an attention-only transformer on sequences that repeat.
macro_rules! transformer {
    ($data:literal, $net:literal, $batch:literal) => {
        Work::Script(concat!(
            "let data = dataset::induction(#{ test: 0, ",
            $data,
            " });\n",
            "let net = model::transformer(#{ vocabulary: data.classes, context: data.dim, ",
            $net,
            " });\n",
            "benchmark(target(net, data), sampler::sgld(#{ step: 1e-7, batch: ",
            $batch,
            " }), #{ seconds: param(\"seconds\", 3.0) })"
        ))
    };
}

/// SGLD of a network of the layers library: `$net` is a layer for images of `$shape`, of which a batch has 64.
macro_rules! images {
    ($pixels:literal, $shape:literal, $net:literal) => {
        Work::Script(concat!(
            "import \"layers\" as nn;\nlet model = nn::model(nn::",
            $net,
            ", #{ inputs: ",
            $shape,
            " });\n",
            "let data = dataset::spin_vectors(#{ dim: ",
            $pixels,
            ", train: 1024, test: 0 });\n",
            "benchmark(target(model, data), sampler::sgld(#{ step: 1e-7, batch: 64 }), #{ seconds: param(\"seconds\", 3.0) })"
        ))
    };
}

/// SGLD of a GPT of the layers library, 128 tokens in a row, whose embedding is also its last layer.
macro_rules! gpt {
    ($vocabulary:literal, $net:literal, $batch:literal) => {
        Work::Script(concat!(
            "import \"layers\" as nn;\n",
            "let net = nn::model(nn::gpt(#{ context: 128, vocabulary: ",
            $vocabulary,
            ", ",
            $net,
            " }), #{ inputs: [128] });\n",
            "let data = dataset::induction(#{ context: 128, train: 256, test: 0, vocabulary: ",
            $vocabulary,
            " });\n",
            "benchmark(target(net, data), sampler::sgld(#{ step: 1e-9, batch: ",
            $batch,
            " }), #{ seconds: param(\"seconds\", 3.0) })"
        ))
    };
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "sgld-11k",
        about: "SGLD, 100-50-100-10, batch 558, one chain",
        work: spins!(
            "[100, 50, 100, 10]",
            "sgld(#{ step: 1e-3, batch: 558 })",
            ""
        ),
    },
    Workload {
        name: "sgld-11k-16",
        about: "the same, 16 chains",
        work: spins!(
            "[100, 50, 100, 10]",
            "sgld(#{ step: 1e-3, batch: 558 })",
            ", chains: 16"
        ),
    },
    Workload {
        name: "sgld-11k-1000",
        about: "the same, 1000 chains",
        work: spins!(
            "[100, 50, 100, 10]",
            "sgld(#{ step: 1e-3, batch: 558 })",
            ", chains: 1000"
        ),
    },
    Workload {
        name: "custom-11k",
        about: "sgld-11k written in a script, model::custom: recognised as layers",
        work: custom!("", "", ""),
    },
    Workload {
        name: "custom-gate-11k",
        about: "the same with a gate on the second hidden layer: compiled to passes",
        work: custom!("[\"g\", [100, 50]], ", " * h.matmul(p.g.t()).sigmoid()", ""),
    },
    Workload {
        name: "custom-norm-11k",
        about: "the same with that gate and a norm behind it",
        work: custom!(
            "[\"g\", [100, 50]], ",
            " * h.matmul(p.g.t()).sigmoid();\nh = h.layer_norm(1e-5)",
            ""
        ),
    },
    Workload {
        name: "custom-scale-11k",
        about: "sgld-11k with a factor per hidden unit: compiled to passes, the products of sgld-11k",
        work: custom!("[\"g\", [100]], ", " * p.g", ""),
    },
    Workload {
        name: "custom-autograd-11k",
        about: "custom-11k called at every step, with gradients by candle's autograd",
        work: custom!("", "", "interpret: true, "),
    },
    Workload {
        name: "sgld-102k",
        about: "SGLD, 100-500-100-10, batch 5080, one chain",
        work: spins!(
            "[100, 500, 100, 10]",
            "sgld(#{ step: 1e-3, batch: 5080 })",
            ""
        ),
    },
    Workload {
        name: "sgld-1m",
        about: "SGLD, 100-5000-100-10, batch 2000, one chain",
        work: spins!(
            "[100, 5000, 100, 10]",
            "sgld(#{ step: 1e-3, batch: 2000 })",
            ""
        ),
    },
    Workload {
        name: "pl-11k",
        about: "pseudo-Langevin, 100-50-100-10, batch 558, between refreshes",
        work: spins!(
            "[100, 50, 100, 10]",
            "pseudo_langevin(#{ batch: 558, variance_batches: 200 })",
            ""
        ),
    },
    Workload {
        name: "pl-102k",
        about: "pseudo-Langevin, 100-500-100-10, batch 5080, between refreshes",
        work: spins!(
            "[100, 500, 100, 10]",
            "pseudo_langevin(#{ batch: 5080, variance_batches: 50 })",
            ""
        ),
    },
    Workload {
        name: "pl-1m",
        about: "pseudo-Langevin, 100-5000-100-10, batch 2000, between refreshes",
        work: spins!(
            "[100, 5000, 100, 10]",
            "pseudo_langevin(#{ batch: 2000, variance_batches: 20 })",
            ""
        ),
    },
    Workload {
        name: "hmc-11k",
        about: "HMC, 100-50-100-10, all 55,800 examples, 10 leapfrog steps per step",
        work: spins!(
            "[100, 50, 100, 10]",
            "hmc(#{ leapfrog: 10, dt: 0.05, adapt: false })",
            ""
        ),
    },
    Workload {
        name: "deep-linear",
        about: "SGLD, deep linear, four 300 × 300 matrices, batch 500, one chain",
        work: Work::Script(
            "let net = model::deep_linear(#{ widths: [300, 300, 300, 300, 300] });\n\
             let data = dataset::spin_vectors(#{ dim: 300, classes: 300, train: 10_000, test: 0 });\n\
             let linear = target(net, data, #{ loss: \"squared_error\" });\n\
             benchmark(linear, sampler::sgld(#{ step: 1e-6, batch: 500 }), #{ temperature: 1e-5, seconds: param(\"seconds\", 3.0) })",
        ),
    },
    Workload {
        name: "deep-linear-rmsprop",
        about: "RMSProp-SGLD on the same",
        work: Work::Script(
            "let net = model::deep_linear(#{ widths: [300, 300, 300, 300, 300] });\n\
             let data = dataset::spin_vectors(#{ dim: 300, classes: 300, train: 10_000, test: 0 });\n\
             let linear = target(net, data, #{ loss: \"squared_error\" });\n\
             benchmark(linear, sampler::rmsprop_sgld(#{ step: 1e-8, batch: 500, preconditioner: \"running\" }), #{ temperature: 1e-5, seconds: param(\"seconds\", 3.0) })",
        ),
    },
    Workload {
        name: "replicas-32",
        about: "HMC, 32 replicas of 256-40-40-40-10, all 500 examples, 10 leapfrog steps per step",
        work: Work::Script(
            "let net = model::mlp(#{ layers: [256, 40, 40, 40, 10], activation: \"tanh\" });\n\
             let data = dataset::spin_vectors(#{ dim: 256, train: 500, test: 0 });\n\
             let replicas = target(net, data, #{ prior: prior::l2(10.0) });\n\
             benchmark(replicas, sampler::hmc(#{ leapfrog: 10, dt: 0.02, adapt: false }), \
             #{ temperature: 1e-3, chains: 32, seconds: param(\"seconds\", 3.0) })",
        ),
    },
    Workload {
        name: "transformer",
        about: "SGLD, attention only, 2 layers, width 64, 4 heads, vocabulary 64, context 64, batch 32",
        work: transformer!(
            "vocabulary: 64, context: 64, train: 1024",
            "layers: 2, width: 64, heads: 4",
            "32"
        ),
    },
    Workload {
        name: "transformer-4m",
        about: "SGLD, attention only, 4 layers, width 256, 8 heads, vocabulary 5000, context 1024, batch 4",
        work: transformer!(
            "vocabulary: 5000, context: 1024, train: 64",
            "layers: 4, width: 256, heads: 8",
            "4"
        ),
    },
    Workload {
        name: "lenet-5",
        about: "SGLD, LeNet-5 of the layers library on 28×28 pixels, batch 64",
        work: images!("784", "[1, 28, 28]", "lenet5(10, 2)"),
    },
    Workload {
        name: "resnet-8",
        about: "SGLD, ResNet-8 of the layers library with group norms on 3×32×32 pixels, batch 64",
        work: images!("3072", "[3, 32, 32]", "resnet8(3, 10)"),
    },
    Workload {
        name: "gpt-4m",
        about: "SGLD, GPT of the layers library, 4 blocks, width 256, vocabulary 2800, 8 rows of 128 tokens",
        work: gpt!("2800", "width: 256, heads: 8, blocks: 4", "8"),
    },
    Workload {
        name: "gpt2-124m",
        about: "SGLD, GPT-2 small of the layers library, 1 row of 128 tokens",
        work: gpt!("50257", "width: 768, heads: 12, blocks: 12", "1"),
    },
    Workload {
        name: "noise-1m",
        about: "Langevin update of 1,000,000 parameters, noise included, on one thread",
        work: Work::Update(1_000_000),
    },
    Workload {
        name: "record-native-11k",
        about: "one record of observable::norm2 of 11k parameters",
        work: record!("observable::norm2()"),
    },
    Workload {
        name: "record-closure-11k",
        about: "the same as a closure of the parameters: compiled",
        work: record!("|s| s.params.norm2()"),
    },
    Workload {
        name: "record-called-11k",
        about: "the same as a closure that needs more than parameters: called at every record",
        work: record!("|s| s.params.norm2() + 0.0 * s.temperature"),
    },
];

/// One line of the result.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    name: String,
    seconds_per_step: f64,
    steps_per_second: f64,
    normals_per_second: f64,
    floor_seconds: Option<f64>,
    #[serde(default)]
    limit_seconds: Option<f64>,
    chains: usize,
    threads: usize,
    /// Most bytes the process held beyond what it held before it built the workload.
    peak_rss_bytes: Option<u64>,
    needed_bytes: u64,
    /// (peak - needed)/needed, where more than 50 MB are needed; below, the threads' packing buffers are most of it.
    memory_overhead: Option<f64>,
}

/// What the command line asks for.
pub struct Request {
    /// Names of workloads; all when empty.
    pub only: Vec<String>,
    /// Seconds per workload.
    pub seconds: f64,
    /// Threads.
    pub threads: Option<usize>,
    /// Where chains step.
    pub device: String,
    /// Where to write the result.
    pub out: Option<PathBuf>,
    /// An earlier result to compare with.
    pub compare: Option<PathBuf>,
    /// Print JSON.
    pub json: bool,
}

/// The names and what they are.
pub fn list() -> String {
    let lines = WORKLOADS
        .iter()
        .map(|w| format!("{:<19} {}", w.name, w.about));
    lines.collect::<Vec<_>>().join("\n")
}

/// Measure and report.
pub fn run(request: &Request) -> Result<String> {
    let mut chosen = Vec::new();
    for name in &request.only {
        let known = WORKLOADS.iter().map(|w| w.name);
        let found = WORKLOADS.iter().find(|w| w.name == name);
        chosen.push(found.with_context(|| {
            format!(
                "no workload is called '{name}'{}; `ergodic bench --list` shows all",
                did_you_mean(name, known)
            )
        })?);
    }
    if chosen.is_empty() {
        chosen.extend(WORKLOADS);
    }
    let earlier = request.compare.as_deref().map(read).transpose()?;
    let mut rows = Vec::new();
    for w in &chosen {
        // Each in a process of its own, so that its memory is its own.
        rows.push(match chosen.len() {
            1 => measure(w, request)?,
            _ => in_child(w, request)?,
        });
        if !request.json && chosen.len() > 1 {
            output::remark(w.name);
        }
    }
    let result = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "simd": format!("{:?}", crate::kernels::level()),
        "workloads": rows,
    });
    if let Some(path) = &request.out {
        store::write_json(path, &result)?;
    }
    if request.json {
        return Ok(serde_json::to_string_pretty(&result)?);
    }
    Ok(table(&rows, earlier.as_deref()))
}

fn read(path: &Path) -> Result<Vec<Row>> {
    let what = || format!("{}: not a result of `ergodic bench --out`", path.display());
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let value: Value = serde_json::from_str(&text).with_context(what)?;
    serde_json::from_value(value["workloads"].clone()).with_context(what)
}

fn in_child(w: &Workload, request: &Request) -> Result<Row> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "bench",
        "--json",
        "--only",
        w.name,
        "--seconds",
        &request.seconds.to_string(),
        "--device",
        &request.device,
    ]);
    if let Some(n) = request.threads {
        command.args(["--threads", &n.to_string()]);
    }
    let output = command.output()?;
    ensure!(
        output.status.success(),
        "{}: {}",
        w.name,
        String::from_utf8_lossy(&output.stderr)
            .trim()
            .trim_start_matches("error: ")
    );
    let value: Value = serde_json::from_slice(&output.stdout)?;
    Ok(serde_json::from_value(value["workloads"][0].clone())?)
}

fn measure(w: &Workload, request: &Request) -> Result<Row> {
    let mut row = match w.work {
        Work::Script(source) => from_script(w.name, source, request)?,
        Work::Update(n) => update(w.name, n, request.seconds),
    };
    row.memory_overhead = row
        .peak_rss_bytes
        .filter(|_| row.needed_bytes > 50_000_000)
        .map(|p| p as f64 / row.needed_bytes as f64 - 1.0);
    Ok(row)
}

fn from_script(name: &str, source: &str, request: &Request) -> Result<Row> {
    let mut session = Session::new("runs".into());
    session.threads = request.threads.unwrap_or(session.threads);
    session.choose_device(&request.device)?;
    let settings = BTreeMap::from([("seconds".to_string(), request.seconds.to_string())]);
    let mut interpreter = Interpreter::new(session, settings);
    // What the program and its interpreter hold does not count.
    let _ = interpreter.run(name, "param(\"seconds\", 3.0)");
    let base = memory::resident().unwrap_or(0);
    let value = match interpreter.run(name, source) {
        Ok(value) => interpreter.json(&value),
        Err(failure) => bail!("{}", failure.message),
    };
    let mut fields = value;
    fields["name"] = json!(name);
    let peak = fields["peak_bytes"].as_u64();
    fields["peak_rss_bytes"] = json!(peak.map(|p| p.saturating_sub(base)));
    Ok(serde_json::from_value(fields)?)
}

fn update(name: &str, n: usize, seconds: f64) -> Row {
    let base = memory::resident().unwrap_or(0);
    let (mut w, g) = (vec![0.1f32; n], vec![0.2f32; n]);
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || begin.elapsed() < Duration::from_secs_f64(seconds) {
        let stream = Stream::new(1, Purpose::Noise, 0, times.len() as u64);
        let start = Instant::now();
        LANGEVIN.run(&mut [&mut w], &[&g], &[1e-9, 1e-6], &stream);
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let each = times[times.len() / 2];
    Row {
        name: name.into(),
        seconds_per_step: each,
        steps_per_second: 1.0 / each,
        normals_per_second: n as f64 / each,
        floor_seconds: None,
        limit_seconds: None,
        chains: 1,
        threads: 1,
        peak_rss_bytes: memory::peak().map(|p| p.saturating_sub(base)),
        needed_bytes: 8 * n as u64,
        memory_overhead: None,
    }
}

fn table(rows: &[Row], earlier: Option<&[Row]>) -> String {
    let mut out = format!(
        "{:<19} {:>6} {:>12} {:>12} {:>11} {:>11} {:>7} {:>11} {:>9} {:>9}{}\n",
        "workload",
        "chains",
        "steps/s",
        "µs/step",
        "GEMMs µs",
        "limit µs",
        "/ limit",
        "normals/s",
        "needs MB",
        "uses MB",
        if earlier.is_some() {
            "   before µs    speed"
        } else {
            ""
        }
    );
    let mb = |b: u64| format!("{:.1}", b as f64 / 1e6);
    let or_dash = |x: Option<String>| x.unwrap_or_else(|| "-".into());
    for r in rows {
        out += &format!(
            "{:<19} {:>6} {:>12.1} {:>12.1} {:>11} {:>11} {:>7} {:>11.2e} {:>9} {:>9}",
            r.name,
            r.chains,
            r.steps_per_second,
            1e6 * r.seconds_per_step,
            or_dash(r.floor_seconds.map(|f| format!("{:.1}", 1e6 * f))),
            or_dash(r.limit_seconds.map(|l| format!("{:.1}", 1e6 * l))),
            or_dash(
                r.limit_seconds
                    .map(|l| format!("{:.2}", r.seconds_per_step / l))
            ),
            r.normals_per_second,
            mb(r.needed_bytes),
            or_dash(r.peak_rss_bytes.map(mb)),
        );
        if let Some(earlier) = earlier {
            out += &match earlier.iter().find(|e| e.name == r.name) {
                Some(e) => format!(
                    " {:>11.1} {:>7.2}×",
                    1e6 * e.seconds_per_step,
                    e.seconds_per_step / r.seconds_per_step
                ),
                None => format!(" {:>11} {:>8}", "-", "-"),
            };
        }
        out.push('\n');
    }
    out += "steps/s counts single chains; µs/step is one step of all chains; GEMMs: the matrix products of a step alone, the fastest of several ways;\n\
            limit: their operations at the rate of the best product of two matrices of side 1024, all threads, measured beside each workload\n\
            needs: parameters, gradients, state, activations of the minibatch, data; uses: what the process held at its peak beyond its start";
    out
}
