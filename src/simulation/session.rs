//! Sessions: where results go, and the settings that one command line shares among all runs of a script.

pub mod continuing;

use super::beginning::Beginning;
use super::console::Console;
use super::terminal::Terminal;
use super::transcript::{self, Transcript};
use crate::access;
use crate::error::Result;
use crate::kernels::device::{Device, Precision};
use crate::ranks::{Communicator, SingleProcess};
use crate::store::claim::{Claim, holds_something};
use crate::store::tags::TAGS;
use crate::store::writes_nothing;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

pub use crate::error::{Interrupt, clear_interrupt, interrupt, interrupted, interrupted_for};

/// How to get at accelerators: one or several, which share the chains.
pub type Open = Arc<dyn Fn() -> Result<Vec<Box<dyn Device>>> + Send + Sync>;

/// The words of a device's name, and what its products are rounded to.
pub(crate) fn words(name: &str) -> (Vec<&str>, Precision) {
    let mut words: Vec<_> = name.split(':').collect();
    match words.last().copied().and_then(Precision::of) {
        Some(precision) => {
            words.pop();
            (words, precision)
        }
        None => (words, Precision::Full),
    }
}

/// How to get at one of them.
type OpenOne = Box<dyn Fn() -> Result<Box<dyn Device>> + Send + Sync>;

/// The accelerator of that name, and how it is opened.
fn one_device(name: &str) -> Result<(String, OpenOne)> {
    let (words, precision) = words(name);
    let number = match words[..] {
        [_] => Some(0),
        [_, n] => n.parse::<usize>().ok(),
        _ => None,
    };
    match (words.first().copied(), number) {
        #[cfg(feature = "cuda")]
        (Some("cuda"), Some(n)) => {
            let open = move || -> Result<Box<dyn Device>> {
                use crate::kernels::device::cuda::Cuda;
                Ok(Box::new(Cuda::open(n, precision)?))
            };
            let with = precision.rounding().map(|(p, _)| format!(":{p}"));
            let with = with.unwrap_or_default();
            Ok((format!("cuda:{n}{with}"), Box::new(open)))
        }
        _ => anyhow::bail!(
            "--device {name}: this build knows \"cpu\"{}",
            match cfg!(feature = "cuda") {
                true =>
                    " and \"cuda:0\", \"cuda:1\", …, several with commas between them, each also with products of lower precision: \"cuda:0:tf32\", \"cuda:0:bf16\"",
                false => "; build with --features cuda for GPUs",
            }
        ),
    }
}

/// The session of this process, once it is needed, and what makes it.
static CURRENT: Mutex<Current> = Mutex::new((None, of_program));

type Current = (Option<Session>, fn() -> Session);

/// A session that is numbered by the name of the program.
fn of_program() -> Session {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(Path::file_stem);
    let name = name.map_or("rust".into(), |n| n.to_string_lossy().into_owned());
    Session::new(PathBuf::new()).numbered(&name)
}

/// The folder of figures in that of a script's results.
const FIGURES: &str = "figures";

/// Files of the program itself in the folder of a script's results; those that begin with a dot are others.
const OWN: [&str; 7] = [
    "run.json",
    "checkpoint",
    "trace.zarr",
    "draws.zarr",
    TAGS,
    transcript::FILE,
    transcript::RUST_FILE,
];

/// What all runs of one script share. Clones share also which names are taken.
#[derive(Clone)]
pub struct Session {
    /// Folder of the script's results.
    pub out: PathBuf,
    /// Master seed.
    pub seed: u64,
    /// Threads to use.
    pub threads: usize,
    /// Where chains step: "cpu" or the name of an accelerator, and how it is opened.
    pub device: (String, Option<Open>),
    /// Cut steps and sizes so that a script ends within a minute.
    pub quick: bool,
    /// Where what scripts print goes, and how far runs are.
    pub console: Arc<dyn Console>,
    /// No progress, and no remarks.
    pub quiet: bool,
    /// Continue what is in `out`.
    pub resume: bool,
    /// The script is one of somebody else: how long it computes by itself, and how large its values get, is limited.
    pub untrusted: bool,
    /// Steps that the script may make, those of samplers not counted.
    pub most_steps: Option<u64>,
    /// Somebody tries things out, and this command makes what was interrupted go on. What is run once more gets another name, not an error.
    pub interactive: Option<&'static str>,
    /// Seconds between checkpoints; none for 30, or nine times as many as the last one took, if that is longer.
    pub checkpoint_every: Option<f64>,
    /// The processes that share the work.
    pub ranks: Arc<dyn Communicator>,
    /// Which shard of how many this is, from 0.
    pub shard: Option<(usize, usize)>,
    /// How many shards are to be put together.
    pub merge: Option<usize>,
    /// To stop what this session runs, and nothing else of the process.
    pub interrupt: Interrupt,
    claim: Arc<Mutex<Option<Claim>>>,
    beginning: Arc<Mutex<Beginning>>,
    names: Arc<Mutex<Names>>,
    /// The names of the next runs, where they are known before.
    planned: Arc<Mutex<VecDeque<String>>>,
    transcript: Arc<Mutex<Transcript>>,
    /// What names of runs begin with.
    scope: Arc<Mutex<String>>,
    figures: Arc<Mutex<Vec<PathBuf>>>,
    /// What was said to be computed on this machine.
    said: Arc<Mutex<HashSet<String>>>,
}

/// Names of runs that are taken, and how many of a kind there are.
type Names = HashMap<String, usize>;

impl Session {
    /// A session that writes into `out`.
    pub fn new(out: PathBuf) -> Self {
        Self {
            out,
            seed: 1,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            device: ("cpu".into(), None),
            quick: false,
            console: Arc::new(Terminal { json: false }),
            quiet: true,
            resume: false,
            untrusted: false,
            most_steps: None,
            interactive: None,
            checkpoint_every: None,
            ranks: Arc::new(SingleProcess),
            shard: None,
            merge: None,
            interrupt: Interrupt::default(),
            claim: Arc::default(),
            beginning: Arc::default(),
            names: Arc::default(),
            planned: Arc::default(),
            transcript: Arc::default(),
            scope: Arc::default(),
            figures: Arc::default(),
            said: Arc::default(),
        }
    }

    /// The same session, writing into the first folder `runs/NAME-1`, `runs/NAME-2`, … that is free. It shows progress, and runs that
    /// are repeated get another name.
    pub fn numbered(self, name: &str) -> Self {
        // Where nothing can be written there is no claim, and the first run says so.
        let (out, claim) = Claim::first_free(1, |k| PathBuf::from(format!("runs/{name}-{k}")));
        let mut session = self.moved(out, claim);
        session.quiet = false;
        session.interactive = Some("");
        session
    }

    /// The session of this process, in which the verbs of Rust code run unless they are given another: the one that was
    /// [made current](Session::make_current), else a [numbered](Session::numbered) one with the name of the program, in a notebook `notebook`.
    pub fn current() -> Self {
        let mut current = CURRENT.lock().unwrap_or_else(|e| e.into_inner());
        let (current, new) = &mut *current;
        current.get_or_insert_with(*new).clone()
    }

    /// Make this the session of this process, in the place of the one before.
    pub fn make_current(&self) {
        CURRENT.lock().unwrap_or_else(|e| e.into_inner()).0 = Some(self.clone());
    }

    /// What makes the session of this process if it has none when it needs one.
    pub fn current_is_made_by(new: fn() -> Self) {
        CURRENT.lock().unwrap_or_else(|e| e.into_inner()).1 = new;
    }

    /// The same session, writing into a folder that has been claimed for it, if it could be.
    pub fn moved(mut self, out: PathBuf, claim: Option<Claim>) -> Self {
        self.out = out;
        self.claim = Arc::new(Mutex::new(claim));
        self
    }

    /// Make the folder of results this session's own, if it is not yet. Nobody else writes there from now on.
    fn own(&self) -> Result<()> {
        let mut claim = self.claim.lock().unwrap_or_else(|e| e.into_inner());
        if claim.is_none() && self.writes() {
            *claim = Some(Claim::of(&self.out)?);
        }
        Ok(())
    }

    /// The same, to write there now.
    fn enter(&self) -> Result<()> {
        self.own()?;
        match self.writes() {
            true => self.beginning().make_room(&self.out),
            false => Ok(()),
        }
    }

    /// Whether this process writes the results.
    fn writes(&self) -> bool {
        self.leads() && !writes_nothing()
    }

    /// What is done when the results of this session begin.
    pub fn beginning(&self) -> MutexGuard<'_, Beginning> {
        self.beginning.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Say that there is something in the folder of results from now on.
    ///
    /// # Errors
    /// If the record of the script cannot be written.
    pub fn begun(&self) -> Result<()> {
        match self.writes() {
            true => self.beginning().begun(&self.out),
            false => Ok(()),
        }
    }

    /// Fail if the folder of results is no longer the one that was claimed.
    ///
    /// # Errors
    /// If it is gone, or another folder is in its place.
    pub(crate) fn ensure_stands(&self) -> Result<()> {
        let claim = self.claim.lock().unwrap_or_else(|e| e.into_inner());
        claim.as_ref().map_or(Ok(()), Claim::ensure_stands)
    }

    /// Let go of the folder of results.
    pub fn release(&self) {
        *self.claim.lock().unwrap_or_else(|e| e.into_inner()) = None;
    }

    /// The folder of a run that begins now, or goes on.
    ///
    /// # Errors
    /// If another process owns the folder of results, or there is a run in its place that is not to go on.
    pub fn begin(&self, run: &str) -> Result<PathBuf> {
        self.enter()?;
        self.beginning().note(run);
        if self.writes() {
            self.transcript().save()?;
        }
        let folder = self.out.join(run);
        anyhow::ensure!(
            self.resume || !self.leads() || !holds_something(&folder),
            "{}: there is a run in this folder already; continue it with --resume, or choose another name or another --out",
            folder.display()
        );
        Ok(folder)
    }

    /// Begin the names of runs with this from now on, as those of a cell of a grid.
    pub fn set_scope(&self, scope: String) {
        *self.scope.lock().unwrap_or_else(|e| e.into_inner()) = scope;
    }

    /// The folder name of the next run: the planned one, else the requested one, else `kind-1`, `kind-2`, ….
    pub fn name_run(&self, kind: &str, requested: Option<&str>) -> Result<String> {
        let scope = self.scope.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let planned = self.planned().pop_front();
        // A transcript may come from anybody.
        let mut parts = planned.iter().flat_map(|name| Path::new(name).components());
        anyhow::ensure!(
            parts.all(|part| matches!(part, Component::Normal(_))),
            "the transcript names a run {planned:?}, which is no name within its folder"
        );
        let name = match (planned, scope.is_empty()) {
            (Some(name), _) => {
                self.take_names([&name]);
                name
            }
            (None, true) => self.name_within(kind, requested)?,
            (None, false) => {
                let requested = requested.map(|name| format!("{scope}{name}"));
                self.name_within(&format!("{scope}{kind}"), requested.as_deref())?
            }
        };
        let mut transcript = self.transcript();
        transcript.note(&name);
        if let Some(home) = transcript.home() {
            self.console.named(&home, &name);
        }
        drop(transcript);
        Ok(name)
    }

    fn planned(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.planned.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Names that no other run gets.
    pub fn take_names<'a>(&self, names: impl IntoIterator<Item = &'a String>) {
        let mut all = self.names.lock().unwrap_or_else(|e| e.into_inner());
        all.extend(names.into_iter().map(|name| (name.clone(), 1)));
    }

    fn name_within(&self, kind: &str, requested: Option<&str>) -> Result<String> {
        let mut names = self.names.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(name) = requested {
            let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            anyhow::ensure!(
                !name.is_empty()
                    && name.len() <= 80
                    && name.chars().all(fine)
                    && !name.starts_with('.'),
                "{kind}: option 'name' is \"{name}\", but must be 1 to 80 letters, digits, '-', '_' or '.', not starting with a dot"
            );
            let reserved = name == FIGURES || OWN.contains(&name);
            let mut free = name.to_string();
            if self.interactive.is_some() && !reserved {
                let mut number = 2;
                while names.contains_key(&free) {
                    free = format!("{name}-{number}");
                    number += 1;
                }
            }
            anyhow::ensure!(
                !reserved && !names.contains_key(&free),
                "{kind}: there is a run named \"{name}\" already; give each run a name of its own"
            );
            names.insert(free.clone(), 1);
            return Ok(free);
        }
        loop {
            let count = names.entry(format!("{kind} ")).or_insert(0);
            *count += 1;
            let name = format!("{kind}-{count}");
            if !names.contains_key(&name) {
                names.insert(name.clone(), 1);
                return Ok(name);
            }
        }
    }

    /// The device of that name: "cpu", "cuda", "cuda:1", or with products of lower precision "cuda:1:tf32" or "cuda:1:bf16"; several with commas
    /// between them share the chains. They are opened by the first run.
    pub fn choose_device(&mut self, name: &str) -> Result<()> {
        if name == "cpu" {
            self.device = (name.into(), None);
            return Ok(());
        }
        let each = name.split(',').map(one_device);
        let (names, each): (Vec<_>, Vec<_>) = each.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let mut seen = names.clone();
        seen.sort_unstable();
        seen.dedup();
        anyhow::ensure!(
            seen.len() == names.len(),
            "--device {name}: a device is named twice"
        );
        let open =
            move || -> Result<Vec<Box<dyn Device>>> { each.iter().map(|open| open()).collect() };
        self.device = (names.join(","), Some(Arc::new(open)));
        Ok(())
    }

    /// Open the accelerators, if there are some.
    pub fn open_device(&self) -> Result<Option<Vec<Box<dyn Device>>>> {
        self.device.1.as_ref().map(|open| open()).transpose()
    }

    /// Say, once, that something is computed on this machine though the session has another device.
    pub(crate) fn computes_here(&self, what: &str) {
        let (name, Some(_)) = &self.device else {
            return;
        };
        let mut said = self.said.lock().unwrap_or_else(|e| e.into_inner());
        if said.insert(what.into()) {
            self.console.remark(&format!(
                "NOTE: computed on this machine, not on {name}: {what}"
            ));
        }
    }

    /// Whether this process writes and prints what all of them have found.
    pub fn leads(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// What can be done after an interrupt, in words; `opens` says that the run can be opened.
    pub fn goes_on(&self, run: &Path, opens: bool) -> String {
        let folder = run.display();
        let on = match self.interactive {
            None => return "continue with --resume".into(),
            Some("") => format!("the option resume \"{folder}\" continues it"),
            Some(command) => format!("{command} resumes it"),
        };
        match opens {
            true => format!("{on}, open(\"{folder}\") shows what there is so far"),
            false => on,
        }
    }

    /// How a run goes on when this session is over, in words.
    pub fn goes_on_later(&self, run: &Path) -> String {
        let folder = run.display();
        match self.interactive {
            None => "continue with --resume".into(),
            Some("") => format!("continue with the option resume \"{folder}\""),
            Some(command) => format!("continue with {command} {folder}"),
        }
    }

    /// Where something that a script writes goes: a name below `folder` in the results; absolute paths are taken as they are. `what` begins
    /// the message.
    ///
    /// # Errors
    /// If the name leads out of the folder, or another process owns the results.
    pub fn place(&self, what: &str, folder: &str, name: &str) -> Result<PathBuf> {
        let within = match folder {
            "" => "the folder of the results".to_string(),
            folder => format!("the folder '{folder}' of the results"),
        };
        anyhow::ensure!(
            !name.is_empty() && !name.split(['/', '\\']).any(|part| part == ".."),
            "{what}: the name is \"{name}\", but must be a name within {within}, or an absolute path"
        );
        let path = self.out.join(folder).join(name);
        // What the program itself keeps there would be lost, and its lock with it.
        let inside = access::inside(&path, &self.out).unwrap_or_default();
        let own = |part: &&OsStr| {
            part.as_encoded_bytes().starts_with(b".") || OWN.iter().any(|own| part == own)
        };
        // Figures have a folder of their own.
        let free = inside.starts_with(FIGURES);
        if let Some(part) = inside.iter().find(own).filter(|_| !free) {
            let part = part.to_string_lossy();
            anyhow::bail!(
                "{what}: the name is \"{name}\", but \"{part}\" is one of the program's own; choose another"
            );
        }
        match Path::new(name).is_absolute() {
            true => self.own()?,
            false => self.enter()?,
        }
        Ok(path)
    }

    /// Where a figure of that name goes; see [`Session::place`].
    pub fn figure_path(&self, what: &str, name: &str) -> Result<PathBuf> {
        self.place(what, FIGURES, name)
    }

    /// Take note of a figure that was saved.
    pub fn note_figure(&self, path: &Path) {
        let path = path.to_path_buf();
        let mut figures = self.figures.lock().unwrap_or_else(|e| e.into_inner());
        if !figures.contains(&path) {
            figures.push(path);
        }
    }

    /// The figures saved so far.
    pub fn figures(&self) -> Vec<PathBuf> {
        self.figures
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }
}

/// The seed of one run: different for every run of a script, whatever else the script does.
///
/// Runs that shared a seed would share their noise, step by step, and not be independent.
pub(crate) fn seed_of(master: u64, run: &str) -> u64 {
    // SplitMix64 (Steele et al. 2014) of the master seed and a checksum of the name; below 2^53, so that JSON keeps it.
    let mut z = master.wrapping_add(
        0x9E37_79B9_7F4A_7C15u64.wrapping_mul(1 + crc32fast::hash(run.as_bytes()) as u64),
    );
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) >> 11
}

impl AsRef<()> for Session {
    fn as_ref(&self) -> &() {
        &()
    }
}

impl AsRef<Session> for Session {
    fn as_ref(&self) -> &Session {
        self
    }
}
