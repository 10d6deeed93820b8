//! `ergodic run`: one script from its file to its results.

use super::permissions::Permissions;
use crate::error::{self, Result, did_you_mean};
use crate::kernels::device::Precision;
use crate::output;
use crate::ranks::{self, Communicator};
use crate::report::layout::{GRID, Kind};
use crate::report::record::{FORMAT, Newer, Record};
use crate::report::runs;
use crate::script::{Failure, Interpreter, Value as Scripted, declared, library};
use crate::simulation::beginning::{Beginning, Stays, since};
use crate::simulation::console::Console;
use crate::simulation::run::versions;
use crate::simulation::session::Session;
use crate::simulation::sharding::{is_shard, shard_folder};
use crate::simulation::terminal::Terminal;
use crate::simulation::transcript::{self, Cell};
use crate::store::claim::{Claim, LOCK, holds_something};
use crate::store::tags::{self, TAGS};
use crate::store::{self, aside, noted};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What the command line says about a run.
#[derive(Clone)]
pub struct Request {
    /// The script.
    pub script: PathBuf,
    /// `--set name=value`.
    pub settings: Vec<(String, String)>,
    /// `--out`.
    pub out: Option<PathBuf>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--threads`.
    pub threads: Option<usize>,
    /// `--device`.
    pub device: String,
    /// `--checkpoint`.
    pub checkpoint: Option<f64>,
    /// `--quick`.
    pub quick: bool,
    /// `--resume`.
    pub resume: bool,
    /// `--force`.
    pub force: bool,
    /// `--tag`.
    pub tags: Vec<String>,
    /// `--json`.
    pub json: bool,
    /// `--quiet`.
    pub quiet: bool,
    /// `--shard`, from 0, of how many.
    pub shard: Option<(usize, usize)>,
    /// `--merge`.
    pub merge: Option<usize>,
    /// Whether it is a cell of a grid, whose record is written also where the script made no run.
    pub cell: bool,
    /// What the script may do.
    pub permissions: Permissions,
    /// The processes of the job.
    pub ranks: Arc<dyn Communicator>,
    /// Where it talks to; the terminal if nowhere else.
    pub console: Option<Arc<dyn Console>>,
}

/// Read a script; the error names it.
pub fn read(script: &Path) -> Result<String> {
    anyhow::ensure!(
        !script.is_dir(),
        "{}: this is a folder, not a script",
        script.display()
    );
    library::read_text(script).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            anyhow::anyhow!("{}: there is no such script", script.display())
        }
        std::io::ErrorKind::InvalidData => {
            anyhow::anyhow!("{}: not a text file (UTF-8)", script.display())
        }
        _ => anyhow::anyhow!("{}: {e}", script.display()),
    })
}

/// The script's own help: its heading and its parameters.
pub fn help(script: &Path) -> Result<String> {
    let source = read(script)?;
    let heading: Vec<_> = source
        .lines()
        .take_while(|l| l.starts_with("//!"))
        .map(|l| l[3..].trim())
        .collect();
    let mut out = format!("{}\n{}\n", script.display(), heading.join("\n"));
    let parameters = declared(&source);
    out += if parameters.is_empty() {
        "\nThis script has no parameters.\n"
    } else {
        "\nParameters (--set name=value):\n"
    };
    for p in parameters {
        out += &format!("  {:<16} {} (default {})\n", p.name, p.doc, p.default);
    }
    out += "\n`ergodic run --help` lists the options of the command itself.\n";
    Ok(error::printable(&out).into())
}

fn fail(e: anyhow::Error) -> Failure {
    let message = format!("{e:#}");
    Failure { message, code: 1 }
}

/// Run it. Output of the script goes to standard output as it comes; the returned text is what is left to print there.
pub fn run(request: &Request) -> std::result::Result<String, Failure> {
    let source = read(&request.script).map_err(fail)?;
    let names = declared(&source);
    for (name, _) in &request.settings {
        if !names.iter().any(|d| d.name == *name) {
            let known: Vec<_> = names.iter().map(|d| d.name.as_str()).collect();
            let hint = did_you_mean(name, known);
            return Err(Failure {
                message: format!("--set {name}: the script has no such parameter{hint}"),
                code: 1,
            });
        }
    }
    let ranks = request.ranks.clone();
    let (out, claim) = agreed_folder(request, &*ranks).map_err(fail)?;
    let mut session = Session::new(PathBuf::new()).moved(out, claim);
    session.ranks = ranks;
    if request.resume {
        ensure_same(request, &session.out, &source).map_err(fail)?;
    }
    let of = request.merge.unwrap_or(0);
    for number in 0..of {
        let shard = session.out.join(shard_folder(number, of));
        ensure_same(request, &shard, &source).map_err(fail)?;
    }
    let permissions = &request.permissions;
    let restricted = permissions.restrict(&request.script, &session.out);
    let restricted = restricted.map_err(fail)?;
    let done = run_in(request, &source, session.clone());
    drop(restricted);
    let ended = match session.leads() {
        true => session.beginning().end(&session.out, done.is_ok()),
        false => Ok(()),
    };
    session.release();
    match ended {
        Err(e) if done.is_ok() => Err(fail(e)),
        _ => done,
    }
}

/// Fail if what is resumed is of another script; one that was moved, or changed, is the same.
fn ensure_same(request: &Request, out: &Path, source: &str) -> Result<()> {
    let record = match Record::of(out) {
        Err(e) if e.is::<Newer>() => return Err(e),
        // One that is damaged is written anew.
        found => found.ok().flatten(),
    };
    let Some(before) = record.filter(|r| !r.script.is_empty()) else {
        return Ok(());
    };
    let named = Path::new(&before.script).file_name() == request.script.file_name();
    let verb = match request.merge {
        Some(_) => "--merge",
        None => "--resume",
    };
    request
        .permissions
        .ensure_trust(verb, before.untrusted, out)?;
    anyhow::ensure!(
        named || before.source == source,
        "{verb}: what is in {} is of the script '{}', not of '{}'; go on with that one, or choose another --out",
        out.display(),
        before.script,
        request.script.display()
    );
    Ok(())
}

/// What is known of a script before it runs, as its record has it.
fn record_of(request: &Request, source: &str, session: &Session) -> Value {
    let settings: BTreeMap<_, _> = request.settings.iter().cloned().collect();
    let defaults = declared(source).into_iter().map(|d| (d.name, d.default));
    let defaults: BTreeMap<_, _> = defaults.collect();
    let mut record = json!({
        "format": FORMAT, "script": request.script.display().to_string(), "source": source, "settings": settings, "defaults": defaults, "seed": session.seed, "threads": session.threads,
        "device": session.device.0, "quick": request.quick, "versions": versions(), "started": since(&session.out, request.resume), "status": "",
    });
    request.permissions.note(&mut record);
    record
}

/// Run it in a session of its own.
fn run_in(
    request: &Request,
    source: &str,
    mut session: Session,
) -> std::result::Result<String, Failure> {
    let out = session.out.clone();
    (session.shard, session.merge) = (request.shard, request.merge);
    let leads = session.leads();
    if !leads {
        store::write_nothing();
    }
    session.seed = request.seed.unwrap_or(session.seed);
    session.threads = request.threads.unwrap_or(session.threads);
    session.checkpoint_every = request.checkpoint;
    (session.quick, session.resume) = (request.quick, request.resume);
    session.untrusted = request.permissions.untrusted;
    session.most_steps = request.permissions.max_steps;
    session.quiet = request.quiet || !leads;
    session.console = match &request.console {
        Some(console) => console.clone(),
        None => Arc::new(Terminal { json: request.json }),
    };
    let device = if request.device.is_empty() {
        "cpu"
    } else {
        &request.device
    };
    let device = &device_of(device, &*session.ranks);
    session.choose_device(device).map_err(fail)?;
    // A device that does not open should not be found out about after an hour of training.
    drop(session.open_device().map_err(fail)?);
    let mut record = record_of(request, source, &session);
    let replaces = Some(stays(request)).filter(|_| request.force && holds_something(&out));
    *session.beginning() = Beginning::new(record.clone(), request.tags.clone(), replaces);
    let settings: BTreeMap<_, _> = request.settings.iter().cloned().collect();
    let mut interpreter = Interpreter::new(session.clone(), settings);
    let begin = Instant::now();
    let file = request.script.display().to_string();
    let (result, read) =
        noted::during(library::is_data(&out), || match transcript::cells(source) {
            Some(cells) => replay(request, &mut interpreter, cells),
            None => interpreter.run(&file, source),
        });
    let seconds = begin.elapsed().as_secs_f64();
    let value = result
        .as_ref()
        .map(|v| interpreter.json(v))
        .unwrap_or_default();
    // What is resumed and gets no further, because it would be another run, keeps its record.
    let refused = session.resume && result.is_err() && session.beginning().is_idle();
    let kept = refused || session.beginning().keeps_old(result.is_ok());
    let written = (request.cell || holds_something(&out)) && !kept;
    if leads && written {
        record["imported"] = json!(interpreter.imported());
        record["read"] = json!(read);
        record["parts"] = json!(session.beginning().parts);
        record["timings"] = json!({ "seconds": seconds });
        let status = result.as_ref().map_or_else(|f| &*f.message, |_| "done");
        record["status"] = status.into();
        record["result"] = value.clone();
        record["printed"] = interpreter.printed().into();
        let stands = interpreter.session().ensure_stands();
        let saved = stands.and_then(|()| store::write_json(&out.join("run.json"), &record));
        let tagged = saved.and_then(|()| tags::change(&out, &request.tags, &[]));
        if let Err(e) = tagged {
            // The script's own failure, and its exit code, come first.
            if result.is_ok() {
                return Err(fail(e));
            }
            output::remark(format_args!("warning: {e:#}"));
        }
    }
    let value_shown = result?;
    let mut text = String::new();
    if !leads {
        return Ok(text);
    }
    let place = written.then(|| format!("results {} ({seconds:.1} s)", out.display()));
    if request.json {
        text = serde_json::to_string_pretty(&value).unwrap_or_default();
        if let Some(place) = place.filter(|_| !request.quiet) {
            output::remark(place);
        }
    } else if !request.quiet {
        let mut lines = Vec::new();
        if !value_shown.is_unit() && interpreter.printed().is_empty() {
            lines.push(interpreter.show(&value_shown));
        }
        for figure in interpreter.session().figures() {
            let path = figure.display().to_string().replace('\n', "\\n");
            lines.push(format!("figure  {}", error::printable(&path)));
        }
        lines.extend(place);
        text = lines.join("\n");
    }
    if request.quick && !request.json {
        text += "\nrun with --quick: steps and sizes were cut, the numbers are for trying things out only";
    }
    Ok(text)
}

/// Run the cells of a transcript, each as it was executed; what the command line says comes first.
fn replay(
    request: &Request,
    interpreter: &mut Interpreter,
    cells: Vec<Cell>,
) -> std::result::Result<Scripted, Failure> {
    let session = interpreter.session().clone();
    let (mut value, mut made) = (Scripted::UNIT, BTreeSet::new());
    for mut cell in cells {
        if cell.failed || cell.source.trim().is_empty() {
            session.take_names(&cell.runs);
            continue;
        }
        cell.seed = request.seed.unwrap_or(cell.seed);
        cell.quick |= request.quick;
        if !request.device.is_empty() {
            cell.device.clone_from(&session.device.0);
        }
        cell.settings.extend(request.settings.iter().cloned());
        let mut then = session.replaying(&cell).map_err(fail)?;
        // A cell that continued a run of another one.
        then.resume |= cell.runs.iter().any(|run| made.contains(run));
        if cell.within.is_none() {
            made.extend(cell.runs);
        }
        interpreter.set_parameters(cell.settings);
        interpreter.set_session(then);
        value = interpreter.run(&cell.file, &cell.source)?;
    }
    interpreter.set_session(session);
    Ok(value)
}

/// Whether nothing but shards is in a folder, and the record of an attempt to merge them.
fn only_shards(out: &Path) -> bool {
    let shard = |e: std::fs::DirEntry| {
        let name = e.file_name();
        ["run.json", TAGS, LOCK].iter().any(|n| name == *n) || is_shard(&name.to_string_lossy())
    };
    out.read_dir().is_ok_and(|d| d.flatten().all(shard))
}

/// Whether something in a folder of results has begun, whatever command it was: a run, a cell of a grid, or a shard.
pub(super) fn has_begun(part: &Path) -> bool {
    part.is_dir() && Kind::of(part).is_some()
}

/// What --force leaves where it is: the shards that are merged.
fn stays(request: &Request) -> Stays {
    match request.merge {
        Some(_) => is_shard,
        None => |_| false,
    }
}

/// The GPU of this process: "cuda" without a number is that of its number on the machine.
fn device_of(device: &str, ranks: &dyn Communicator) -> String {
    let own = ranks.local_rank();
    match device
        .strip_prefix("cuda")
        .map(|rest| rest.split(':').collect::<Vec<_>>())
    {
        Some(words) if words == [""] => format!("cuda:{own}"),
        Some(words) if words.len() == 2 && Precision::of(words[1]).is_some() => {
            format!("cuda:{own}:{}", words[1])
        }
        _ => device.into(),
    }
}

/// The folder that the first rank chooses and owns, before anybody writes into it.
fn agreed_folder(request: &Request, ranks: &dyn Communicator) -> Result<(PathBuf, Option<Claim>)> {
    let chosen = match ranks.rank() {
        0 => folder(request),
        _ => Ok((PathBuf::new(), None)),
    };
    let (chosen, claim) = ranks::agree(ranks, chosen)?;
    let mut bytes = chosen.to_string_lossy().into_owned().into_bytes();
    ranks.broadcast_bytes(&mut bytes, 0)?;
    Ok((PathBuf::from(String::from_utf8(bytes)?), claim))
}

/// The folder for results: `--out`, or runs/NAME, runs/NAME-2, … so that nothing is overwritten. It is this process's own as long as the
/// claim lasts; there is none where nothing can be written, which the first run says.
fn folder(request: &Request) -> Result<(PathBuf, Option<Claim>)> {
    anyhow::ensure!(
        request.out.is_some() || (request.shard.is_none() && request.merge.is_none()),
        "--shard and --merge need --out: the folder that all shards have in common"
    );
    match (&request.out, request.shard) {
        (Some(out), Some((number, of))) => named(request, &out.join(shard_folder(number, of))),
        (Some(out), None) => named(request, out),
        (None, _) => numbered(request),
    }
}

/// The folder that the command line names.
fn named(request: &Request, out: &Path) -> Result<(PathBuf, Option<Claim>)> {
    let shown = out.display();
    anyhow::ensure!(
        !out.exists() || out.is_dir(),
        "--out {shown}: this is a file, not a folder"
    );
    anyhow::ensure!(
        !out.join(GRID).exists(),
        "--out {shown}: there is a grid in this folder; go on with its --grid and --resume, delete it with `ergodic rm`, or choose another"
    );
    let nothing = || format!("--out {shown}: there is nothing to continue in this folder");
    anyhow::ensure!(
        !request.resume || holds_something(out) || aside::is_there(out),
        nothing()
    );
    let claim = Claim::of(out)?;
    // From here on nobody else changes what is in it.
    aside::settle(out, stays(request), has_begun)?;
    let used = holds_something(out);
    if used && !request.resume && !(request.merge.is_some() && only_shards(out)) {
        may_be_replaced(request, out)?;
    }
    anyhow::ensure!(!request.resume || used, nothing());
    Ok((out.into(), Some(claim)))
}

/// Fail unless what is in a folder may be replaced.
pub(super) fn may_be_replaced(request: &Request, out: &Path) -> Result<()> {
    let shown = out.display();
    if let Err(why) = runs::only_ours(out) {
        anyhow::bail!("--out {shown}: this folder is not empty, and {why}; choose another");
    }
    anyhow::ensure!(
        request.force,
        "--out {shown}: this folder is not empty; continue what is in it with --resume, begin anew in its place with --force, or choose another"
    );
    anyhow::ensure!(
        request.merge.is_some() || !runs::has_shards(out),
        "--out {shown}: there are shards in this folder, which --force does not replace; delete it with `ergodic rm`, or choose another"
    );
    Ok(())
}

/// The name of a script without its folder and its ending.
pub fn stem(script: &Path) -> String {
    let stem = script.file_stem();
    stem.map_or("run".into(), |s| s.to_string_lossy().into_owned())
}

/// The next folder of this script, or the last one that it has written to.
fn numbered(request: &Request) -> Result<(PathBuf, Option<Claim>)> {
    let stem = stem(&request.script);
    let candidate = |k: usize| {
        PathBuf::from("runs").join(match k {
            1 => stem.clone(),
            k => format!("{stem}-{k}"),
        })
    };
    let exist = (1..).take_while(|k| candidate(*k).exists()).count();
    if !request.resume {
        return Ok(Claim::first_free(exist + 1, candidate));
    }
    let used = (1..=exist).rev().map(candidate);
    let last = used
        .into_iter()
        .find(|f| holds_something(f) || aside::is_there(f));
    let last = last.with_context(|| {
        format!(
            "--resume: there is nothing to continue in {}; name the folder with --out",
            candidate(1).display()
        )
    })?;
    let claim = Claim::of(&last).context("--resume")?;
    aside::settle(&last, stays(request), has_begun)?;
    Ok((last, Some(claim)))
}
