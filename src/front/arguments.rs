//! The arguments of the command line: what `--help` tells, and what is refused before anything runs.

use super::jupyter;
use super::kernel::kernelspec::Target;
use super::permissions::{Permissions, seconds};
use crate::report::runs::{RUNS, Sort};
use crate::simulation::session::Session;
use crate::store::tags;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A scripting laboratory for sampling the weights of neural networks.
#[derive(Parser)]
#[command(
    name = "ergodic",
    version,
    after_help = "Exit codes: 0 done · 1 script or input error · 2 usage · 3 every chain failed · 130 interrupted (checkpoint written)"
)]
pub struct Cli {
    #[command(subcommand)]
    /// What to do.
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Run a script. `ergodic run SCRIPT --help` lists the script's own parameters.
    #[command(disable_help_flag = true)]
    Run(Box<RunArgs>),
    /// Find what is certainly wrong in scripts, without running them: misspelt names, unknown options, values of another kind.
    Check {
        /// The scripts.
        #[arg(required = true, value_name = "SCRIPT")]
        scripts: Vec<PathBuf>,
    },
    /// Print a job script for SLURM: an array of shards of a run, or of a grid.
    #[command(
        after_help = "Example: ergodic slurm --shards 8 --out results/width -- sweep.rhai --grid width=4,8,16 > job.sh && sbatch job.sh"
    )]
    Slurm {
        /// Number of jobs.
        #[arg(long, default_value = "8", value_parser = clap::value_parser!(u16).range(1..))]
        shards: u16,
        /// Cores of each job.
        #[arg(long, default_value = "4", value_parser = clap::value_parser!(u16).range(1..))]
        cores: u16,
        /// Time limit of each job, as SLURM writes it.
        #[arg(long, default_value = "24:00:00")]
        time: String,
        /// Folder for results, which all jobs have in common.
        #[arg(long)]
        out: PathBuf,
        /// The script, and options of `ergodic run`, behind `--`.
        #[arg(required = true, last = true, value_name = "SCRIPT AND OPTIONS")]
        run: Vec<String>,
    },
    /// Serve an editor: diagnostics, completion, help and formatting of scripts, over the Language Server Protocol on standard input and output.
    Lsp,
    /// Show runs as they go on, in a browser: tables and curves that grow, verdicts, and buttons to stop and to go on.
    Serve {
        /// The folder with the runs.
        #[arg(default_value = RUNS)]
        folder: PathBuf,
        /// Port; 0 takes one that is free.
        #[arg(long, default_value = "8765")]
        port: u16,
        /// Address to listen at. Others than this machine's own can then reach it, and what they send and get is not encrypted.
        #[arg(long, default_value = "127.0.0.1")]
        host: std::net::IpAddr,
    },
    /// Print completions of this command line for a shell: `ergodic completions bash > ~/.local/share/bash-completion/completions/ergodic`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a folder, as `~/.local/share/man/man1`.
    Man {
        /// The folder.
        folder: PathBuf,
    },
    /// Start an interactive session.
    Repl {
        /// In Rust instead of Rhai, with the prelude loaded (feature evcxr; after `ergodic notebook setup`).
        #[arg(long)]
        rust: bool,
        /// Threads to use (default: all).
        #[arg(long, value_parser = threads)]
        threads: Option<usize>,
    },
    /// Use scripts in Jupyter: JupyterLab, notebooks, and what else speaks its protocol.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Run notebooks without a browser, and get ready for notebooks in Rust.
    #[command(after_help = NOTEBOOK_HELP)]
    Notebook {
        #[command(subcommand)]
        #[allow(missing_docs)]
        command: NotebookCommand,
    },
    /// List runs, in order of time: how far each is, its verdict, its tags, its size.
    #[command(
        after_help = "Examples: ergodic ls · ergodic ls runs/width --tag pilot · ergodic ls --sort size --json"
    )]
    Ls {
        /// Folders to look in, and below.
        #[arg(default_value = RUNS, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// Only those with this tag; with several, those that have all.
        #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = tag)]
        tags: Vec<String>,
        /// The order: time, name or size.
        #[arg(long, default_value = "time", value_parser = sort, value_name = "ORDER")]
        sort: Sort,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one run: settings, results, verdicts, files, and what to do next; finished or not.
    Show {
        /// Folders of runs, or of a script's results.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say in what two runs differ: settings first, script and versions included, then results.
    Diff {
        /// The folder of a run, or of a script's results.
        #[arg(value_name = "A")]
        a: PathBuf,
        /// The one that is held against it: differences are those of B minus A.
        #[arg(value_name = "B")]
        b: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete runs. Nothing else is deleted, and none that is being written.
    #[command(after_help = "Examples: ergodic rm runs/pilot-3 · ergodic rm --tag pilot --dry-run")]
    Rm {
        /// Folders of runs; with --tag, folders to look in (default: runs).
        #[arg(required_unless_present = "tags", value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// All that have this tag; with several, those that have all.
        #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = tag)]
        tags: Vec<String>,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
        /// Say what would be deleted, and delete nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Give a run tags, or take them away; without tags, print those it has.
    Tag {
        /// The folder of a run.
        run: PathBuf,
        /// Tags, without spaces.
        #[arg(value_name = "TAG", value_delimiter = ',', value_parser = tag)]
        tags: Vec<String>,
        /// Take these tags away.
        #[arg(long, requires = "tags")]
        remove: bool,
    },
    /// Write one HTML page with everything about runs on disk: verdicts, tables, figures. Of a folder of many runs, an index and a page each.
    #[command(
        after_help = "A page needs no other file and no network: send it, print it, read it on a phone.\nExamples: ergodic report runs/quickstart · ergodic report runs"
    )]
    Report {
        /// Folders of runs, of a script's results, or of many of them.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// The file (default: RUN/report.html, or FOLDER/index.html of many; with it, the pages of many lie in a folder beside it).
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Draw the standard figures of runs on disk as SVG.
    Plot {
        /// Folders of runs, or of a script's results.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Folder for the figures (default: the folder `figures` of each run).
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
        /// Format of the files.
        #[arg(long, value_parser = ["svg", "pdf", "png"], default_value = "svg")]
        format: String,
        /// Style: for the screen, for a column of a paper, for a slide.
        #[arg(long, value_parser = crate::plot::Style::PRESETS, default_value = "screen")]
        preset: String,
    },
    /// Compare runs side by side: ESS per second, R̂, and means with their difference in standard errors.
    Compare {
        /// Folders of runs, or of a script's results; all are compared with the first run.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the reference: of everything, or of one name; or search it for words.
    Docs {
        /// A function, namespace, object or page, as `sampler::sgld`, `prior`, `run`, `data`; or words to search for, as `T excess`.
        name: Vec<String>,
        /// The whole reference as Markdown.
        #[arg(long)]
        all: bool,
        /// The source of a recipe, to be read as an example.
        #[arg(long, conflicts_with = "all")]
        source: bool,
        /// In a browser: the page of the book, if it was built and lies beside the program.
        #[arg(long, conflicts_with_all = ["all", "source"])]
        open: bool,
    },
    /// Say what this machine offers and what is missing; or, with --check, whether the files of a run are as they were written.
    Doctor {
        /// Check every file of this run, or of all runs in this folder, and say how to get back what is damaged. Exit code 1 if something is.
        #[arg(long, value_name = "RUN")]
        check: Option<PathBuf>,
    },
    /// Measure the speed of a fixed list of workloads. Let nothing else run.
    Bench {
        /// Only these workloads.
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        only: Vec<String>,
        /// Seconds per workload.
        #[arg(long, default_value = "3", allow_negative_numbers = true, value_parser = seconds)]
        seconds: f64,
        /// Threads to use (default: all).
        #[arg(long, value_parser = threads)]
        threads: Option<usize>,
        /// Where chains step: cpu, or cuda:0, cuda:1, … for a GPU, cuda:0,cuda:1 for both; cuda:0:tf32 and cuda:0:bf16 round the factors of products.
        #[arg(long, default_value = "cpu", value_parser = device)]
        device: String,
        /// Write the result to this file.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Compare with a file that --out wrote.
        #[arg(long, value_name = "FILE")]
        compare: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// List the workloads.
        #[arg(long)]
        list: bool,
    },
}

/// Commands of `kernel`.
#[derive(Subcommand)]
pub enum KernelCommand {
    /// Make this program known to Jupyter.
    Install {
        /// Name in menus.
        #[arg(long, default_value = "Rhai (ergodic)")]
        display_name: String,
        #[command(flatten)]
        #[allow(missing_docs)]
        place: Place,
    },
    /// Remove the kernel again.
    Uninstall {
        #[command(flatten)]
        #[allow(missing_docs)]
        place: Place,
    },
    /// List the kernels that Jupyter finds here.
    List,
    /// Serve one notebook; Jupyter calls this.
    Start {
        /// The file that says where to listen.
        connection_file: PathBuf,
        /// Threads to use (default: all).
        #[arg(long, value_parser = threads)]
        threads: Option<usize>,
    },
}

/// Where Jupyter finds a kernel.
#[derive(Args)]
pub struct Place {
    /// Name of the kernel, for `jupyter console --kernel NAME`.
    #[arg(long, default_value = jupyter::NAME)]
    pub name: String,
    /// In an environment, as a virtual environment or conda's (default: for this user).
    #[arg(long, value_name = "FOLDER", conflicts_with = "folder")]
    prefix: Option<PathBuf>,
    /// In this folder of kernels.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Place {
    /// The folder of kernels that is meant.
    pub fn target(&self) -> Target {
        match (&self.prefix, &self.folder) {
            (Some(prefix), _) => Target::Prefix(prefix.clone()),
            (_, Some(folder)) => Target::Folder(folder.clone()),
            _ => Target::User,
        }
    }
}

const NOTEBOOK_HELP: &str = "\
A notebook runs in the language of its kernel, Rhai or Rust. Rust needs a program built with
    cargo install --path . --locked --features evcxr
and once `ergodic notebook setup`. `ergodic docs notebooks` tells more.";

/// Commands of `notebook`.
#[derive(Subcommand)]
pub enum NotebookCommand {
    /// Run the cells of a notebook and write their outputs; the first error ends it with exit code 1.
    Run {
        /// The notebook, or the record of a session of Rust cells: runs/notebook-1/cells.rs.
        #[arg(value_name = "FILE.ipynb")]
        notebook: PathBuf,
        /// Where the notebook goes with its outputs (default: beside it, as NAME.run.ipynb).
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Write the outputs into the notebook itself.
        #[arg(long, conflicts_with = "out")]
        in_place: bool,
        /// Seconds that a cell may take (default: no limit).
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
        timeout: Option<f64>,
        /// Say nothing about cells that run without errors.
        #[arg(long)]
        quiet: bool,
    },
    /// Compile the library once for cells in Rust: some minutes, 2 GB in the cache. Does nothing if that is done.
    Setup {
        /// Folder to compile into (default: ergodic/rust in the user's cache; sessions find another one by ERGODIC_RUST_FOLDER).
        #[arg(long)]
        folder: Option<PathBuf>,
        /// Source of this program (default: where it was compiled).
        #[arg(long)]
        source: Option<PathBuf>,
        /// Compile again in any case.
        #[arg(long)]
        force: bool,
        /// Do not make the kernel "Rust (ergodic)" known to Jupyter.
        #[arg(long)]
        no_kernel: bool,
        /// Install the source of Rust's standard library, if it is missing, without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Serve Jupyter; Jupyter calls this.
    #[command(hide = true)]
    Kernel {
        /// The file that says where to listen.
        connection: PathBuf,
    },
}

/// Arguments of `run`.
#[derive(Args)]
pub struct RunArgs {
    /// The script.
    pub script: Option<PathBuf>,
    /// Set a parameter of the script: --set name=value.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
    /// Seed of all randomness (default: 1).
    #[arg(long, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Where chains step: cpu, or cuda:0, cuda:1, … for a GPU.
    #[arg(long, default_value = "cpu", value_parser = device)]
    pub device: String,
    /// Threads to use (default: all).
    #[arg(long, allow_negative_numbers = true, value_parser = threads)]
    pub threads: Option<usize>,
    /// Folder for results (default: runs/SCRIPT, runs/SCRIPT-2, …).
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Seconds between checkpoints (default: 30, or more where they would take over a tenth of the time).
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub checkpoint: Option<f64>,
    /// Cut steps and sizes so that any script ends within a minute.
    #[arg(long)]
    pub quick: bool,
    /// Continue an interrupted run, bit for bit.
    #[arg(long)]
    pub resume: bool,
    /// Begin anew in --out, in the place of the results that are there. They are kept in OUT/.replaced until the new run has ended well.
    #[arg(long, requires = "out", conflicts_with = "resume")]
    pub force: bool,
    /// Give the results a tag, or several: --tag pilot --tag width=8. `ergodic ls --tag` finds them.
    #[arg(long = "tag", value_name = "TAG", value_delimiter = ',', value_parser = tag)]
    pub tags: Vec<String>,
    /// Print the value of the last expression as JSON; all else goes to standard error. (Otherwise it is shown if the script printed nothing.)
    #[arg(long)]
    pub json: bool,
    /// Print only what the script prints.
    #[arg(long)]
    pub quiet: bool,
    /// Do only the K-th of N parts of the chains (of the ladders, where they exchange temperatures), in --out/shard-K-of-N.
    #[arg(long, value_name = "K/N", value_parser = shard)]
    pub shard: Option<(usize, usize)>,
    /// Put N finished shards together: their chains are not run again, the script goes on with all of them.
    #[arg(long, value_name = "N", conflicts_with = "shard", value_parser = clap::value_parser!(u16).range(1..))]
    pub merge: Option<u16>,
    /// Run the script in every cell of a grid: --grid width=4,8,16 --grid lambda=1,10, with parameters of the script, or seed. One table of what it ends with.
    #[arg(long = "grid", value_name = "NAME=VALUES", value_parser = setting)]
    pub grid: Vec<(String, String)>,
    /// Cells of a grid that are run side by side; they share the threads.
    #[arg(long, value_name = "N", default_value = "1", requires = "grid", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: u16,
    /// What the script may do.
    #[command(flatten)]
    pub permissions: Permissions,
    /// Show the script's parameters, or without a script this help.
    #[arg(long, short)]
    pub help: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_string(), value.to_string()))
}

fn sort(text: &str) -> Result<Sort, String> {
    text.parse()
}

fn tag(text: &str) -> Result<String, String> {
    tags::checked(text)
}

fn device(text: &str) -> Result<String, String> {
    let checked = Session::new("runs".into()).choose_device(text);
    checked
        .map(|()| text.to_string())
        .map_err(|e| e.to_string())
}

fn threads(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| (1..=1024).contains(n));
    n.ok_or("expected a whole number from 1 to 1024".into())
}

/// "3/8" is the third of eight; counted from 0 inside.
fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text
        .split_once('/')
        .map(|(k, n)| (k.trim().parse::<usize>(), n.trim().parse::<usize>()));
    match parts {
        Some((Ok(k), Ok(n))) if 1 <= k && k <= n && n <= 65_535 => Ok((k - 1, n)),
        _ => Err("expected K/N, such as 3/8: the third of eight".into()),
    }
}
