//! Interrupted or killed in the middle, continued, and the same bits: every verb that takes `resume`.

use super::folders::content;
use super::support::{Scratch, ergodic, evaluate, text};
use ergodic::error::Interrupt;
use ergodic::object::Shown;
use ergodic::script::{Failure, Interpreter, all_items};
use ergodic::simulation::console::{Bar, Console, Stage, Task};
use ergodic::simulation::session::Session;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// What the calls need; in a session, a cell of its own.
const GIVEN: &str = r#"
    let data = dataset::digits(#{ per_class: 10 });
    let net = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ prior: prior::l2(10.0) });
    let posterior = target(model::mlp(#{ layers: [64, 6, 10] }), data, #{ energy: "sum", prior: prior::gaussian(1.0) });
    let crossing = target(potential::normal_crossing(#{ examples: 500 }));
    let hmc = sampler::hmc(#{ leapfrog: 3 });
    let sgld = sampler::sgld(#{ step: 1e-3, batch: 20 });
    let origin = parameters([0.0, 0.0]);
    let o = #{};
"#;

/// A verb, a call of it that takes a tenth of a second or more, and what of its value is no file of its folder.
const CALLS: &[(&str, &str, &str)] = &[
    (
        "sample",
        "sample(net, sgld, #{ temperature: 1e-3, chains: 2, steps: 4000, every: 40, keep: 400, observe: [observable::cost(), |s| s.params.sum()] } + o)",
        "x.done",
    ),
    (
        "sweep",
        "sweep(net, sampler::pseudo_langevin(#{ batch: 20 }), #{ temperatures: [1e-4, 1e-3], chains: 1, steps: 3000, every: 30 } + o)",
        "x.done",
    ),
    (
        "exchange",
        "exchange(posterior, hmc, #{ temperatures: [1.0, 1.5, 2.5], chains: 1, steps: 600, every: 3, tune: 2 } + o)",
        "x.done",
    ),
    (
        "train",
        "train(net, optimizer::adam(#{ epochs: 200, batch: 20 }), #{ chains: 2, checkpoints: [10] } + o)",
        "()",
    ),
    (
        "llc",
        "llc(crossing, sgld, #{ start: origin, steps: 8000, halve: true } + o)",
        "x.to_map()",
    ),
    (
        "llc_curve",
        "llc_curve(parameters([[0.0, 0.0], [0.5, 0.0], [0.0, 0.3]]), crossing, sgld, #{ steps: 6000, chains: 2 } + o)",
        "x.to_map()",
    ),
    (
        "calibrate_llc",
        "calibrate_llc(crossing, sgld, #{ start: origin, steps: 4000 } + o)",
        "x.to_map()",
    ),
    (
        "llc_benchmark",
        "llc_benchmark(#{ problems: 3, n: 1000, samplers: [sampler::sgld(#{ batch: 50 })], step_sizes: [1e-5, 1e-6], steps: 600 } + o)",
        "()",
    ),
    (
        "smc",
        "smc(posterior, hmc, #{ particles: 16, populations: 2, moves: 3 } + o)",
        "[x.ln_z_populations, x.temperatures, x.families]",
    ),
    (
        "sweep_until",
        "sweep(net, sgld, #{ temperatures: [1e-4, 1e-3], chains: 2, steps: 400, every: 20, keep: 100, predict: \"test\", until: #{ ess: 1e4, at_most: 4000 } } + o)",
        "[x.done, x.prediction(\"test\", 1)]",
    ),
    (
        "exchange_until",
        "exchange(posterior, hmc, #{ temperatures: [1.0, 1.5, 2.5], chains: 1, steps: 200, every: 3, until: #{ ess: 1e4, at_most: 700 } } + o)",
        "x.done",
    ),
    (
        "smc_until",
        "smc(posterior, hmc, #{ particles: 16, populations: 2, moves: 1, until: #{ ess: 25, rhat: 1.2, at_most: 9 } } + o)",
        "[x.ln_z_populations, x.to_map().moves]",
    ),
    (
        "llc_until",
        "llc(crossing, sgld, #{ start: origin, steps: 1000, until: #{ ess: 800.0, at_most: 20_000 } } + o)",
        "x.to_map()",
    ),
    (
        "validate",
        "validate(net, sampler::pseudo_langevin(#{ batch: 20 }), #{ temperature: 1e-3, stops: 3, steps: 300, draws: 40, chains: 2 } + o)",
        "x",
    ),
];

/// Stops what runs, once something of it was done in this session.
struct Stopper {
    interrupt: Interrupt,
    /// Where the results go, and where they are copied to before.
    copy: Option<(PathBuf, PathBuf)>,
    /// Pictures so far of all bars.
    seen: Arc<Mutex<usize>>,
    /// That of them at which it stops.
    at: usize,
}

impl Bar for Stopper {
    fn show(&self, _: &Stage) {
        let mut seen = self.seen.lock().unwrap();
        *seen += 1;
        if *seen != self.at {
            return;
        }
        if let Some((from, to)) = &self.copy {
            copy(from, to);
        }
        self.interrupt.interrupt();
    }

    fn finish(&self, _: &Stage) {}
}

/// Says nothing, and makes bars.
struct Stopping(Box<dyn Fn() -> Arc<dyn Bar> + Send + Sync>);

impl Console for Stopping {
    fn print(&self, _: &str) {}

    fn remark(&self, _: &str) {}

    fn show(&self, _: &Shown) {}

    fn begin(&self, _: &Task) -> Arc<dyn Bar> {
        (self.0)()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(path, target).unwrap()),
        }
    }
}

/// The value of a call, with `resume: folder` if there is one, in a new session whose results go to `out`. It is stopped at the picture of
/// that number of its progress; with `killed`, what there was on the disk then goes there.
fn call(
    out: &Path,
    (source, value): (&str, &str),
    folder: Option<&Path>,
    stop: Option<usize>,
    killed: Option<PathBuf>,
) -> Result<Value, Failure> {
    let mut session = Session::new(out.into()).recording();
    (session.quiet, session.checkpoint_every) = (false, Some(0.001));
    let interrupt = session.interrupt.clone();
    let (copy, seen) = (killed.map(|k| (out.to_path_buf(), k)), Arc::default());
    session.console = Arc::new(Stopping(Box::new(move || {
        Arc::new(Stopper {
            interrupt: interrupt.clone(),
            copy: copy.clone(),
            seen: Arc::clone(&seen),
            at: stop.unwrap_or(0),
        })
    })));
    let mut interpreter = Interpreter::new(session.clone(), Default::default());
    let with = match folder {
        Some(folder) => format!("o = #{{ resume: {:?} }};", folder.display().to_string()),
        None => String::new(),
    };
    // As a session does it: what is needed, then the cell that is recorded.
    for (k, cell) in [GIVEN, &with, &format!("let x = {source};")]
        .iter()
        .enumerate()
    {
        session
            .transcript()
            .begin(session.cell(&format!("In [{k}]"), cell));
        let result = interpreter.run("cell", cell);
        session
            .transcript()
            .end(result.as_ref().err().map(|f| &*f.message));
        let _ = result?;
    }
    let found = interpreter.run("cell", value)?;
    Ok(untimed(interpreter.json(&found)))
}

/// Without what is never the same.
pub fn untimed(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.retain(|k, _| !["seconds", "started", "notes"].contains(&&**k));
            map.values_mut().for_each(|v| *v = untimed(v.take()));
        }
        Value::Array(all) => all.iter_mut().for_each(|v| *v = untimed(v.take())),
        _ => {}
    }
    value
}

/// All results of a folder: files to the byte, descriptions without times.
fn results(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = content(folder).into_iter().collect();
    found.retain(|(name, _)| !name.ends_with("cells.rhai") && name != ".lock");
    for (name, bytes) in &mut found {
        if name.ends_with(".json")
            && let Ok(value) = serde_json::from_slice(bytes)
        {
            *bytes = untimed(value).to_string().into_bytes();
        }
    }
    found
}

/// The only folder of a run that began in a session, the others being parts of it.
fn run_of(out: &Path) -> PathBuf {
    let all = out.read_dir().unwrap().flatten().map(|e| e.path());
    let mut runs: Vec<_> = all.filter(|p| p.join("checkpoint").is_dir()).collect();
    runs.sort();
    runs.swap_remove(0)
}

macro_rules! tests {
    ($list:ident: $($verb:ident),*) => {
        const $list: &[&str] = &[$(stringify!($verb)),*];

        $(#[test]
        fn $verb() {
            let (_, source, value) = CALLS.iter().find(|(verb, ..)| *verb == stringify!($verb)).unwrap();
            goes_on(source, value);
        })*
    };
}
tests!(
    TESTED: sample,
    sweep,
    exchange,
    train,
    llc,
    llc_curve,
    calibrate_llc,
    llc_benchmark,
    smc,
    validate
);
tests!(GOING_ON: sweep_until, exchange_until, smc_until, llc_until);

#[test]
fn every_call_is_tested() {
    let all: BTreeSet<_> = CALLS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(all, [TESTED, GOING_ON].concat().into_iter().collect());
}

#[test]
fn every_verb_that_takes_resume_is_among_these() {
    let items = all_items();
    let takes = items
        .iter()
        .filter(|i| i.options.iter().any(|o| o.name == "resume"));
    let takes: BTreeSet<_> = takes.map(|i| i.path()).collect();
    assert_eq!(takes, TESTED.iter().map(|verb| verb.to_string()).collect());
}

/// Stop it in the middle, by an interrupt and by a kill, and go on in both ways: the results are those of what was not stopped.
fn goes_on(source: &str, value: &str) {
    let (scratch, this) = (Scratch::new(), (source, value));
    let whole = scratch.join("whole");
    let expected = call(&whole, this, None, None, None).unwrap();
    let files = results(&whole);
    for killed in [false, true] {
        let first = scratch.join(format!("first-{killed}"));
        // What a kill leaves is an earlier checkpoint than the interrupt saves.
        let left = killed.then(|| scratch.join("killed"));
        let stopped = call(&first, this, None, Some(3), left.clone()).unwrap_err();
        assert_eq!(stopped.code, 130, "{stopped}");
        let left = left.unwrap_or(first);
        let run = run_of(&left);
        // By the command, in another session, from the same beginning.
        let place = scratch.join(format!("command-{killed}"));
        copy(&left, &place.join("earlier"));
        commanded(&place, run.file_name().unwrap().as_ref());
        same(&files, &results(&place.join("earlier")), "%continue");
        // By the option, with more interrupts on the way.
        for k in 0..3 {
            let out = scratch.join(format!("more-{killed}-{k}"));
            let stop = (k < 2).then_some(2);
            match call(&out, this, Some(&run), stop, None) {
                Ok(found) => {
                    assert!(k > 0, "it ended before it was interrupted once more");
                    assert_eq!(found, expected);
                    break;
                }
                Err(e) => assert!(k < 2 && e.code == 130, "{e}"),
            }
        }
        same(&files, &results(&left), "resume");
        for home in [&left, &place.join("earlier")] {
            let again = scratch.join("again");
            let found = call(
                &again,
                this,
                Some(&home.join(run.file_name().unwrap())),
                None,
                None,
            );
            assert_eq!(found.unwrap(), expected);
        }
    }
}

/// Fail unless two folders have the same results.
fn same(a: &[(String, Vec<u8>)], b: &[(String, Vec<u8>)], how: &str) {
    let other = a.iter().filter(|x| !b.contains(x));
    let other = other.chain(b.iter().filter(|x| !a.contains(x)));
    let other: BTreeSet<_> = other.map(|(name, _)| name).collect();
    assert!(other.is_empty(), "{how}: not the same are {other:?}");
}

/// `:continue FOLDER` in a new session, in that place.
fn commanded(place: &Path, run: &Path) {
    let mut child = ergodic();
    let child = child.current_dir(place).arg("repl").stdin(Stdio::piped());
    let mut child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let given = GIVEN.replace('\n', " ");
    let command = format!(
        "{given}\n:continue {}\n",
        Path::new("earlier").join(run).display()
    );
    use std::io::Write;
    child
        .stdin
        .take()
        .unwrap()
        .write_all(command.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!text(&output).contains("error:"), "{}", text(&output));
}

/// A call with what has no such option, and what is said of it.
const NEVER: &[(&str, &str)] = &[
    ("verify(run, #{ resume: run.folder })", "so it begins anew"),
    (
        "observe(run, [observable::cost()], #{ resume: run.folder })",
        "so it begins anew",
    ),
    (
        "benchmark(t, sampler::hmc(), #{ resume: run.folder })",
        "so it begins anew",
    ),
    (
        "laplace(t, parameters([0.1, 0.1]), #{ resume: run.folder })",
        "so it begins anew",
    ),
    (
        "fn mine(given) { options(given, #{ steps: 3 }) } mine(#{ resume: run.folder })",
        "continue with --resume, or in a session with %continue FOLDER",
    ),
    // Whose folder it is.
    (
        "train(t, optimizer::adam(), #{ resume: run.folder })",
        "it was made by sample",
    ),
    (
        "smc(t, sampler::hmc(), #{ resume: run.folder })",
        "it was made by sample",
    ),
    (
        "train(t, optimizer::adam(#{ epochs: 1 })); open(run.folder + `/../train-1`)",
        "train-1 was made by train and is no run; `ergodic show",
    ),
    (
        "sample(t, sampler::hmc(), #{ steps: 20, resume: p.name })",
        "there is no such folder",
    ),
];

#[test]
fn what_cannot_go_on_says_so() {
    for (call, says) in NEVER {
        let source = format!(
            "let t = target(potential::gaussian(#{{ dim: 2, examples: 50 }}), #{{ prior: prior::gaussian(1.0) }});
            let run = sample(t, sampler::hmc(), #{{ steps: 20, chains: 2, every: 1, keep: 2 }});
            let p = #{{ name: \"nowhere\" }};
            {call}"
        );
        let said = evaluate(&source).expect_err(call).to_string();
        assert!(said.contains(says), "{call}: {said}");
    }
}
