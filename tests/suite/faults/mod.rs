//! Every change of the disk that a run makes fails, is cut short, or is the last one before a crash. What goes on after it with --resume has the
//! bytes of the run that nothing happened to.
//!
//! A child of this process runs the script with its changes watched ([`ergodic::store::disk`]), so that this process stays as it is.

mod journal;

use super::continued::untimed;
use super::folders::content;
use super::support::{Scratch, ergodic, evaluate, text};
use ergodic::front::run::{Request, run};
use ergodic::front::verify;
use ergodic::memory;
use ergodic::ranks::SingleProcess;
use ergodic::store::disk::{self, Change, Watch};
use journal::{Disk, Keeps};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, exit};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of each verb that saves. Checkpoints are due at once, and looked for every 10 ms: so there is one after every record.
const SCRIPT: &str = r#"
    let data = dataset::digits(#{ per_class: 2 });
    let posterior = target(model::mlp(#{ layers: [64, 2, 10] }), data, #{ energy: "sum", prior: prior::gaussian(1.0) });
    let net = target(model::mlp(#{ layers: [64, 2, 10] }), data, #{ prior: prior::l2(10.0) });
    let sgld = sampler::sgld(#{ step: 1e-3, batch: 10 });
    let hmc = sampler::hmc(#{ leapfrog: 2 });
    let slow = [|s| { sleep(0.011); 1.0 }];
    train(net, optimizer::adam(#{ epochs: 3, batch: 10 }), #{ name: "train" });
    let swept = sweep(net, sgld, #{ temperatures: [1e-4, 1e-3], chains: 1, steps: 4, every: 1, keep: 2, observe: slow, name: "sweep" });
    let ladder = exchange(posterior, hmc, #{ temperatures: [1.0, 2.0], chains: 1, steps: 4, every: 1, observe: slow, name: "exchange" });
    let coefficient = llc(target(potential::normal_crossing(#{ examples: 100 })), sgld, #{ start: parameters([0.0, 0.0]), chains: 2, steps: 4, name: "llc" });
    let populations = smc(posterior, hmc, #{ particles: 4, populations: 1, moves: 1, ess: 0.6, name: "smc" });
    [swept.summary().to_map(), ladder.summary().to_map(), coefficient.to_map(), populations.ln_z_populations]
"#;

/// Which change something happens to, counted from 0, and what.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One change fails.
    Fails(usize),
    /// The disk is full from a change on: no file can be made any more, or written.
    Full(usize),
    /// Half of what is written gets there, then the process is gone.
    Torn(usize),
    /// Not a change: one request of memory is refused.
    NoMemory(usize),
}

/// What makes a fault in a child.
struct Faulty {
    fault: Fault,
    changes: AtomicUsize,
}

impl Watch for Faulty {
    fn before(&self, change: Change<'_>) -> io::Result<()> {
        let k = self.changes.fetch_add(1, Ordering::Relaxed);
        let full = || Err(ErrorKind::StorageFull.into());
        match (self.fault, change) {
            (Fault::Fails(at), _) if k == at => Err(io::Error::other("no answer from the disk")),
            (Fault::Full(at), Change::Create(_) | Change::Folder(_) | Change::Link { .. })
                if k >= at =>
            {
                full()
            }
            (
                Fault::Full(at),
                Change::Write {
                    path,
                    at: place,
                    bytes,
                },
            ) if k >= at => {
                write(path, place, &bytes[..bytes.len() / 2]);
                full()
            }
            (Fault::Torn(at), change) if k == at => {
                if let Change::Write { path, at, bytes } = change {
                    write(path, at, &bytes[..bytes.len() / 2]);
                }
                exit(GONE)
            }
            _ => Ok(()),
        }
    }
}

/// Requests of memory of a child.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// What a child ends with that was killed.
const GONE: i32 = 77;

fn write(path: &Path, at: u64, bytes: &[u8]) {
    use std::io::{Seek, SeekFrom};
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// What writes down all changes in a child.
struct Recorder(Mutex<io::BufWriter<std::fs::File>>);

impl Watch for Recorder {
    fn before(&self, change: Change<'_>) -> io::Result<()> {
        journal::put(&mut *self.0.lock().unwrap(), change)
    }
}

/// The variables that tell a child what to do: which script, where to, which fault.
const SCRIPT_AT: &str = "FAULTS_SCRIPT";
const OUT: &str = "FAULTS_OUT";
const FAULT: &str = "FAULTS_FAULT";

#[test]
#[ignore = "the children of the tests below"]
fn child() {
    let Some([script, out, fault]) = variables() else {
        return;
    };
    let words: Vec<_> = fault.split(' ').collect();
    let at = || words[1].parse().unwrap();
    let watched = |fault| {
        let changes = AtomicUsize::new(0);
        disk::watch(Faulty { fault, changes });
    };
    match words[0] {
        "record" => {
            let file = io::BufWriter::new(std::fs::File::create(words[1]).unwrap());
            disk::watch(Recorder(Mutex::new(file)));
        }
        "fails" => watched(Fault::Fails(at())),
        "full" => watched(Fault::Full(at())),
        "no-memory" => {
            let at: usize = at();
            memory::watch(move || REQUESTS.fetch_add(1, Ordering::Relaxed) == at);
        }
        _ => watched(Fault::Torn(at())),
    }
    let request = Request {
        script: script.into(),
        settings: Vec::new(),
        out: Some(out.into()),
        seed: None,
        threads: Some(1),
        device: String::new(),
        checkpoint: Some(1e-9),
        quick: false,
        resume: false,
        force: false,
        tags: Vec::new(),
        json: false,
        quiet: true,
        shard: None,
        merge: None,
        cell: false,
        permissions: Default::default(),
        ranks: Arc::new(SingleProcess),
        console: None,
    };
    let code = run(&request).map_or_else(
        |failure| {
            eprintln!("error: {failure}");
            failure.code
        },
        |_| 0,
    );
    println!("{} requests", REQUESTS.load(Ordering::Relaxed));
    // Before the test is reported as passed.
    exit(code.into());
}

fn variables() -> Option<[String; 3]> {
    let one = |name| std::env::var(name).ok();
    Some([one(SCRIPT_AT)?, one(OUT)?, one(FAULT)?])
}

/// The child that runs the script with its results in `out`.
fn start(script: &Path, out: &Path, fault: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "faults::child",
        "--include-ignored",
        "--nocapture",
    ]);
    command
        .env(SCRIPT_AT, script)
        .env(OUT, out)
        .env(FAULT, fault);
    command.output().unwrap()
}

/// Go on with what is in a folder, or begin there.
fn resume(script: &Path, out: &Path, begun: bool) -> Output {
    let mut command = ergodic();
    command.args(["run", "--quiet", "--threads", "1", "--out"]);
    command
        .args([out, script])
        .args(begun.then_some("--resume"));
    command.output().unwrap()
}

/// What a script has made: its value, its files, and descriptions without times.
fn results(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = content(out);
    let record = std::fs::read(out.join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["status"], "done");
    let value = untimed(record["result"].clone());
    found.insert("its value".into(), value.to_string().into());
    for (name, bytes) in &mut found {
        if name.ends_with(".json") {
            let value = untimed(serde_json::from_slice(bytes).unwrap());
            *bytes = value.to_string().into();
        }
    }
    found
}

/// The results in `out` are those expected, with nothing beside them.
fn judge(out: &Path, expected: &BTreeMap<String, Vec<u8>>, may_leave: bool) -> Result<(), String> {
    let mut found = results(out);
    // Where it was the removal of a file that failed, the file is still there, which costs disk space only.
    let left = [".tmp-", ".old-", "flushed-", ".lock"];
    found.retain(|name, _| !(may_leave && left.iter().any(|l| name.contains(l))));
    let other = |a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        let other = a.iter().filter(|(name, bytes)| b.get(*name) != Some(bytes));
        other.map(|(name, _)| name.clone()).collect()
    };
    match (other(expected, &found), other(&found, expected)) {
        (a, b) if a.is_empty() && b.is_empty() => Ok(()),
        (a, b) => Err(format!("missing or not the same: {a:?}; there: {b:?}")),
    }
}

/// What is expected, and how many changes there are.
struct Undisturbed {
    scratch: Scratch,
    script: PathBuf,
    expected: BTreeMap<String, Vec<u8>>,
    log: PathBuf,
    out: PathBuf,
}

fn undisturbed() -> Undisturbed {
    let scratch = Scratch::new();
    let (script, out) = (scratch.file("s.rhai", SCRIPT), scratch.join("out"));
    let log = scratch.join("log");
    let ended = start(&script, &out, &format!("record {}", log.display()));
    assert!(ended.status.success(), "{}", text(&ended));
    let expected = results(&out);
    Undisturbed {
        scratch,
        script,
        expected,
        log,
        out,
    }
}

/// All changes of `count`, or with each run of the suite every so-and-so-many-th: `FAULTS=all` takes all of them.
fn chosen(count: usize, every: usize) -> Vec<usize> {
    let every = if std::env::var("FAULTS").is_ok_and(|f| f == "all") {
        1
    } else {
        every
    };
    (0..count).step_by(every).collect()
}

/// Do it for all of these on two threads; what went wrong, all together.
fn for_all<T: Sync + std::fmt::Debug>(all: &[T], one: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(this) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one(this)));
                    let done = done.unwrap_or_else(|_| Err("the test has panicked".into()));
                    if let Err(why) = done {
                        wrong.lock().unwrap().push(format!("{this:?}: {why}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        all.len(),
        wrong.join("\n")
    );
    println!("{} faults", all.len());
}

/// A run with a fault ends with a message, and --resume completes it.
fn survives(this: &Undisturbed, fault: Fault) -> Result<(), String> {
    let (name, at) = match fault {
        Fault::Fails(at) => ("fails", at),
        Fault::Full(at) => ("full", at),
        Fault::Torn(at) => ("torn", at),
        Fault::NoMemory(at) => ("no-memory", at),
    };
    let out = this.scratch.join(format!("{name}-{at}"));
    let ended = start(&this.script, &out, &format!("{name} {at}"));
    let said = text(&ended);
    match ended.status.code() {
        // What failed was of no account.
        Some(0) => judge(&out, &this.expected, true)?,
        Some(1) if said.contains("error: ") && !said.contains("panicked") => {}
        Some(GONE) => {}
        _ => return Err(format!("it ended with {:?}: {said}", ended.status)),
    }
    goes_on(this, &out, true).map_err(|e| format!("{e}; at first: {said}"))?;
    std::fs::remove_dir_all(&out).unwrap();
    Ok(())
}

/// Continue what is in a folder, which must lead to the results of the run that nothing happened to.
fn goes_on(this: &Undisturbed, out: &Path, may_leave: bool) -> Result<(), String> {
    let entries = out.read_dir().into_iter().flatten().flatten();
    // Before anything is there, nothing could be lost.
    let begun = entries.map(|e| e.file_name()).any(|name| name != ".lock");
    // What was cut off is no damage.
    match verify::report(out) {
        Ok((_, true)) => {}
        Err(e) if !begun || e.to_string().contains("nothing in this folder") => {}
        Ok((said, false)) => return Err(format!("`doctor --check` says: {said}")),
        Err(e) => return Err(format!("`doctor --check` fails: {e:#}")),
    }
    let resumed = resume(&this.script, out, begun);
    if !resumed.status.success() {
        return Err(format!("it did not go on: {}", text(&resumed)));
    }
    judge(out, &this.expected, may_leave)
}

#[test]
#[ignore = "long: tests/run"]
fn a_run_goes_on_after_any_change_that_fails() {
    let this = undisturbed();
    let count = Disk::read(&this.log).len();
    let faults = chosen(count, 23).into_iter();
    let faults: Vec<_> = faults
        .flat_map(|k| [Fault::Fails(k), Fault::Full(k), Fault::Torn(k)])
        .collect();
    for_all(&faults, |fault| survives(&this, *fault));
}

#[test]
#[ignore = "long: tests/run"]
fn a_run_goes_on_after_any_request_of_memory_that_is_refused() {
    let this = undisturbed();
    let all = start(
        &this.script,
        &this.scratch.join("counted"),
        &format!("no-memory {}", usize::MAX),
    );
    let said = text(&all);
    let count = said
        .lines()
        .find_map(|l| l.strip_suffix(" requests"))
        .unwrap();
    // Where tests run one by one the name of the test stands before it.
    let count = count.rsplit(' ').next().unwrap();
    let faults: Vec<_> = (0..count.parse().unwrap()).map(Fault::NoMemory).collect();
    assert!(faults.len() > 5, "{said}");
    for_all(&faults, |fault| survives(&this, *fault));
}

#[test]
#[ignore = "long: tests/run"]
fn a_run_goes_on_after_a_crash_between_any_two_changes() {
    let this = undisturbed();
    let log = Disk::read(&this.log);
    assert_eq!(log.hasty(), [] as [(&Path, &Path); 0]);
    let states = chosen(log.len() + 1, 17).into_iter();
    let states: Vec<_> = states
        .flat_map(|k| Keeps::all(k as u64).map(|keeps| (k, keeps)))
        .collect();
    for_all(&states, |(k, keeps)| {
        let place = this.scratch.join(format!("crash-{k}-{keeps:?}"));
        let out = log.after(*k, *keeps, &this.out, &place);
        // What was saved is there, whatever becomes of what came later.
        let saved = log.saved_before(*k);
        if let Some(lost) = saved
            .iter()
            .find(|part| !out.join(part).join("checkpoint").is_dir())
        {
            return Err(format!("'{lost}' is lost"));
        }
        goes_on(&this, &out, false)?;
        std::fs::remove_dir_all(&place).unwrap();
        Ok(())
    });
}

/// The variable that makes a child try the examples.
const EXAMPLES: &str = "FAULTS_EXAMPLES";

#[test]
#[ignore = "the child of the next test"]
fn examples_without_memory() {
    if std::env::var(EXAMPLES).is_err() {
        return;
    }
    static AT: AtomicUsize = AtomicUsize::new(0);
    memory::watch(|| REQUESTS.fetch_add(1, Ordering::Relaxed) == AT.load(Ordering::Relaxed));
    let (mut refused, mut wrong) = (0, Vec::new());
    for item in ergodic::script::all_items() {
        for at in 0..3 {
            AT.store(at, Ordering::Relaxed);
            REQUESTS.store(0, Ordering::Relaxed);
            let ended = std::panic::catch_unwind(|| {
                evaluate(&item.example)
                    .map(|_| ())
                    .map_err(|e| e.to_string())
            });
            if REQUESTS.load(Ordering::Relaxed) <= at {
                break;
            }
            refused += 1;
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(said)) if said.contains("of memory are refused") => {}
                other => wrong.push(format!("{} at {at}: {other:?}", item.path())),
            }
        }
    }
    println!("{refused} requests were refused");
    assert!(refused > 100 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Wherever an example of the reference asks for memory and is refused it ends with a message that says so, or does without.
#[test]
#[ignore = "long: tests/run"]
fn examples_without_memory_end_with_a_message() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "faults::examples_without_memory",
        "--include-ignored",
        "--nocapture",
    ]);
    let ended = command.env(EXAMPLES, "1").output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended));
}
