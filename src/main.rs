//! The command line: arguments in, exit codes out. Everything else is in the library.

use clap::{Args, Parser, Subcommand};
use ergodic::error::Interrupted;
use ergodic::front::kernel::kernelspec::Target;
use ergodic::front::{bench, docs, doctor, jupyter, notebook, repl, report, run, show};
use ergodic::ranks::{self, Ranks};
use ergodic::simulation::session::{self, Session};
use ergodic::store;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A scripting laboratory for sampling the weights of neural networks.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit codes: 0 done · 1 script or input error · 2 usage · 3 every chain failed · 130 interrupted (checkpoint written)"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script. `ergodic run SCRIPT --help` lists the script's own parameters.
    #[command(disable_help_flag = true)]
    Run(RunArgs),
    /// Start an interactive session.
    Repl {
        /// In Rust instead of Rhai, with the prelude loaded (feature evcxr; after `ergodic notebook setup`).
        #[arg(long)]
        rust: bool,
        /// Threads to use (default: all).
        #[arg(long, value_parser = threads)]
        threads: Option<usize>,
    },
    /// Use scripts in Jupyter: JupyterLab, notebooks, VS Code.
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Run notebooks without a browser, and get ready for notebooks in Rust.
    #[command(after_help = NOTEBOOK_HELP)]
    Notebook {
        #[command(subcommand)]
        command: Notebook,
    },
    /// Show the summaries of what is on disk, finished or not.
    Show {
        /// Folders of runs, or of a script's results.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write one HTML page that tells everything of runs on disk: verdicts, tables, figures.
    #[command(
        after_help = "The page needs nothing else and no network: send it, print it, read it on a phone.\nExample: ergodic report runs/quickstart"
    )]
    Report {
        /// Folders of runs, or of a script's results.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// The file (default: RUN/report.html).
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
    },
    /// Put runs beside each other: ESS per second, R̂, and means with their difference in standard errors.
    Compare {
        /// Folders of runs, or of a script's results; all are compared with the first run.
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the reference: of everything, or of one name.
    Docs {
        /// A function, namespace or object, as `sampler::sgld`, `prior`, `run`.
        name: Option<String>,
        /// The whole reference as Markdown.
        #[arg(long)]
        all: bool,
        /// The overview as a Markdown table, as it stands in the README.
        #[arg(long, conflicts_with = "all")]
        table: bool,
        /// The source of a recipe, to be read as an example.
        #[arg(long, conflicts_with_all = ["all", "table"])]
        source: bool,
    },
    /// Say what this machine offers and what is missing.
    Doctor,
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
        /// Where chains step: cpu, or cuda:0, cuda:1, … for a GPU.
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

#[derive(Subcommand)]
enum KernelCommand {
    /// Tell Jupyter of this program.
    Install {
        /// Name in menus.
        #[arg(long, default_value = "Rhai (ergodic)")]
        display_name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Remove the kernel again.
    Uninstall {
        #[command(flatten)]
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

#[derive(Args)]
struct Place {
    /// Name of the kernel, for `jupyter console --kernel NAME`.
    #[arg(long, default_value = jupyter::NAME)]
    name: String,
    /// In an environment, as a virtual environment or conda's (default: for this user).
    #[arg(long, value_name = "FOLDER", conflicts_with = "folder")]
    prefix: Option<PathBuf>,
    /// In this folder of kernels.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Place {
    fn target(&self) -> Target {
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

#[derive(Subcommand)]
enum Notebook {
    /// Run the cells of a notebook and write their outputs; the first error ends it with exit code 1.
    Run {
        /// The notebook.
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
        /// Say nothing of cells that run well.
        #[arg(long)]
        quiet: bool,
    },
    /// Compile the library once for cells in Rust: some minutes, 2 GB in the cache. Does nothing if that is done.
    Setup {
        /// Where to (default: ergodic/rust in the user's cache; sessions find another place by ERGODIC_RUST_FOLDER).
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
    },
    /// Serve Jupyter; Jupyter calls this.
    #[command(hide = true)]
    Kernel {
        /// The file that says where to listen.
        connection: PathBuf,
    },
}

#[derive(Args)]
struct RunArgs {
    /// The script.
    script: Option<PathBuf>,
    /// Set a parameter of the script: --set name=value.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Seed of all randomness (default: 1).
    #[arg(long, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Where chains step: cpu, or cuda:0, cuda:1, … for a GPU.
    #[arg(long, default_value = "cpu", value_parser = device)]
    device: String,
    /// Threads to use (default: all).
    #[arg(long, allow_negative_numbers = true, value_parser = threads)]
    threads: Option<usize>,
    /// Folder for results (default: runs/SCRIPT, runs/SCRIPT-2, …).
    #[arg(long)]
    out: Option<PathBuf>,
    /// Seconds between checkpoints (default: 30).
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    checkpoint: Option<f64>,
    /// Cut steps and sizes so that any script ends within a minute.
    #[arg(long)]
    quick: bool,
    /// Continue an interrupted run, bit for bit.
    #[arg(long)]
    resume: bool,
    /// Print the value of the last expression as JSON, and nothing else. (Otherwise it is shown if the script printed nothing.)
    #[arg(long)]
    json: bool,
    /// Print only what the script prints.
    #[arg(long)]
    quiet: bool,
    /// Do only the K-th of N parts of the chains (of the ladders, where they exchange temperatures), in --out/shard-K-of-N.
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Put N finished shards together: their chains are not run again, the script goes on with all of them.
    #[arg(long, value_name = "N", conflicts_with = "shard", value_parser = clap::value_parser!(u16).range(1..))]
    merge: Option<u16>,
    /// Show the script's parameters, or without a script this help.
    #[arg(long, short)]
    help: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_string(), value.to_string()))
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
        _ => Err("expected K/N, as 3/8: the third of eight".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let s = text
        .parse()
        .ok()
        .filter(|s: &f64| *s > 0.0 && s.is_finite());
    s.ok_or("expected a number of seconds > 0".into())
}

/// What a panic does: a reader that has gone away is no error, anything else is ours.
fn report_panic(info: &std::panic::PanicHookInfo) {
    let text = info.to_string();
    if text.contains("failed printing to std") {
        std::process::exit(0);
    }
    eprintln!("error: a defect of ergodic, please report it: {text}");
}

fn main() -> ExitCode {
    // The process that Rust cells run in is this program too, and goes no further.
    #[cfg(feature = "evcxr")]
    notebook::rust::hook();
    std::panic::set_hook(Box::new(report_panic));
    // A backtrace in an error message helps nobody who writes scripts; a panic still prints one if asked.
    if std::env::var_os("RUST_LIB_BACKTRACE").is_none() {
        // SAFETY: no other thread is running yet.
        unsafe { std::env::set_var("RUST_LIB_BACKTRACE", "0") };
    }
    // Large pages where the system has them: buffers of a few megabytes otherwise miss the TLB, by up to a third of a step's time.
    // SAFETY: the option may be set at any time.
    unsafe { libmimalloc_sys::mi_option_set(libmimalloc_sys::mi_option_large_os_pages, 1) };
    let cli = Cli::parse();
    // A kernel is interrupted by messages, and told to end by signals, which it handles itself.
    let serves = matches!(
        &cli.command,
        Command::Kernel(KernelCommand::Start { .. })
            | Command::Notebook {
                command: Notebook::Kernel { .. }
            }
    );
    if !serves {
        handle_interrupts();
    }
    let result = match cli.command {
        Command::Run(args) => return run_script(args),
        Command::Repl { rust: true, .. } => rust_repl(),
        Command::Repl { threads, .. } => repl::run(with_threads(threads)),
        Command::Kernel(command) => kernel(command),
        Command::Notebook { command } => notebook_command(command),
        Command::Show { runs, json } => runs.iter().try_for_each(|r| {
            if json {
                println!("{}", serde_json::to_string_pretty(&show::json(r)?)?);
            } else {
                println!("{}", show::text(r)?);
            }
            Ok(())
        }),
        Command::Report { runs, out } => {
            report::report(&runs, out.as_deref()).map(|path| println!("report  {}", path.display()))
        }
        Command::Plot { runs, out } => draw(&runs, out.as_deref()),
        Command::Compare { runs, json } => report::compare(&runs).and_then(|c| {
            if json {
                println!("{}", serde_json::to_string_pretty(&c.to_json())?);
            } else {
                print!("{c}");
            }
            Ok(())
        }),
        Command::Docs { all: true, .. } => {
            print!("{}", ergodic::script::reference::markdown());
            Ok(())
        }
        Command::Docs { table: true, .. } => {
            print!("{}", ergodic::script::reference::table());
            Ok(())
        }
        Command::Docs {
            name, source: true, ..
        } => docs::source(name.as_deref()).map(|text| print!("{text}")),
        Command::Docs { name, .. } => docs::lookup(name.as_deref()).map(|text| println!("{text}")),
        Command::Bench { list: true, .. } => {
            println!("{}", bench::list());
            Ok(())
        }
        Command::Bench {
            only,
            seconds,
            threads,
            device,
            out,
            compare,
            json,
            ..
        } => {
            use_threads(threads);
            bench::run(&bench::Request {
                only,
                seconds,
                threads,
                device,
                out,
                compare,
                json,
            })
            .map(|text| println!("{text}"))
        }
        Command::Doctor => {
            println!("{}", doctor::report(with_threads(None).threads));
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if Interrupted::is(&e) => error(&format!("{e:#}"), 130),
        Err(e) => error(&format!("{e:#}"), 1),
    }
}

fn kernel(command: KernelCommand) -> anyhow::Result<()> {
    match command {
        KernelCommand::Install {
            display_name,
            place,
        } => println!(
            "{}",
            jupyter::install(&place.name, &display_name, &place.target())?
        ),
        KernelCommand::Uninstall { place } => {
            println!("{}", jupyter::uninstall(&place.name, &place.target())?);
        }
        KernelCommand::List => println!("{}", jupyter::list()),
        KernelCommand::Start {
            connection_file,
            threads,
        } => {
            use_threads(threads);
            jupyter::start(&connection_file, with_threads(threads))?;
        }
    }
    Ok(())
}

/// Draw the figures of several folders; with --out, each of several below a folder of its own.
fn draw(runs: &[PathBuf], out: Option<&Path>) -> anyhow::Result<()> {
    for (k, folder) in runs.iter().enumerate() {
        let place = out.map(|out| match runs.len() {
            1 => out.to_path_buf(),
            _ => out.join((k + 1).to_string()),
        });
        for path in report::plot(folder, place.as_deref())? {
            println!("figure  {}", path.display());
        }
    }
    Ok(())
}

/// Let Ctrl-C save and stop.
fn handle_interrupts() {
    let handler = ctrlc::set_handler(|| {
        #[cfg(feature = "evcxr")]
        if let Some(stop) = RUST.get() {
            stop();
            return;
        }
        if session::interrupt() {
            // The second Ctrl-C: the last checkpoint on disk is whole, leave now.
            std::process::exit(130);
        }
        if !store::writes_nothing() {
            eprintln!("\ninterrupted: saving (once more to leave at once)");
        }
    });
    if let Err(e) = handler {
        eprintln!("warning: Ctrl-C will not save: {e}");
    }
}

/// What Ctrl-C calls while a process of Rust cells runs.
#[cfg(feature = "evcxr")]
static RUST: std::sync::OnceLock<Arc<dyn Fn() + Send + Sync>> = std::sync::OnceLock::new();

#[cfg(feature = "evcxr")]
fn rust_repl() -> ergodic::error::Result<()> {
    notebook::rust::repl::run(&|stop| drop(RUST.set(stop)))
}

#[cfg(not(feature = "evcxr"))]
fn rust_repl() -> ergodic::error::Result<()> {
    Err(anyhow::anyhow!(notebook::WITHOUT_EVCXR))
}

fn notebook_command(command: Notebook) -> ergodic::error::Result<()> {
    match command {
        Notebook::Run {
            notebook,
            out,
            in_place,
            timeout,
            quiet,
        } => {
            let request = notebook::execute::Request {
                notebook,
                out,
                in_place,
                timeout,
                quiet,
            };
            let written = notebook::execute::run(&request)?;
            if !quiet {
                println!("{}", written.display());
            }
            Ok(())
        }
        #[cfg(feature = "evcxr")]
        Notebook::Setup {
            folder,
            source,
            force,
            no_kernel,
        } => {
            let request = notebook::rust::setup::Request {
                folder,
                source,
                force,
            };
            notebook::rust::setup::setup(&request)?;
            if !no_kernel {
                let folder = notebook::rust::kernel::install(&Target::User)?;
                println!(
                    "Jupyter knows the kernel \"Rust (ergodic)\" by {}",
                    folder.display()
                );
            }
            Ok(())
        }
        #[cfg(feature = "evcxr")]
        Notebook::Kernel { connection } => notebook::rust::kernel::start(&connection),
        #[cfg(not(feature = "evcxr"))]
        Notebook::Setup { .. } | Notebook::Kernel { .. } => {
            Err(anyhow::anyhow!(notebook::WITHOUT_EVCXR))
        }
    }
}

fn error(message: &str, code: u8) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

/// Size the pool that gradients of lone chains are computed in.
fn use_threads(threads: Option<usize>) {
    if let Some(n) = threads {
        // Fails only if the pool exists already, which it cannot here.
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build_global();
    }
}

fn with_threads(threads: Option<usize>) -> Session {
    let mut session = Session::new("runs".into());
    session.threads = threads.unwrap_or(session.threads).max(1);
    session
}

fn run_script(args: RunArgs) -> ExitCode {
    let Some(script) = args.script else {
        let mut command = <Cli as clap::CommandFactory>::command();
        let text = command
            .find_subcommand_mut("run")
            .map(|c| {
                c.clone()
                    .bin_name("ergodic run")
                    .render_long_help()
                    .to_string()
            })
            .unwrap_or_default();
        if args.help {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        eprintln!("error: no script given\n\n{text}");
        return ExitCode::from(2);
    };
    if args.help {
        return match run::help(&script) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(e) => error(&format!("{e:#}"), 1),
        };
    }
    let ranks: Arc<dyn Ranks> = match ranks::open() {
        Ok(ranks) => ranks.into(),
        Err(e) => return error(&format!("{e:#}"), 1),
    };
    // Ranks on one machine share its cores.
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share = (ranks.size() > 1).then(|| (cores / ranks.local_size()).max(1));
    let threads = args.threads.or(share);
    use_threads(threads);
    let request = run::Request {
        shard: args.shard,
        merge: args.merge.map(usize::from),
        ranks: ranks.clone(),
        script,
        settings: args.settings,
        out: args.out,
        seed: args.seed,
        threads,
        device: args.device,
        checkpoint: args.checkpoint,
        quick: args.quick,
        resume: args.resume,
        json: args.json,
        quiet: args.quiet || args.json,
    };
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| run::run(&request)));
    let result = result.unwrap_or_else(|_| {
        Err(ergodic::script::Failure {
            message: "stopped; what was checkpointed can be continued with --resume".into(),
            code: 1,
        })
    });
    let code = match result {
        Ok(text) => {
            if !text.is_empty() {
                println!("{text}");
            }
            0
        }
        Err(failure) if failure.code == 130 && ranks.size() == 1 => {
            eprintln!("{failure}");
            130
        }
        Err(failure) => return leave(&*ranks, &failure.message, failure.code),
    };
    match ranks.finish() {
        Ok(()) => ExitCode::from(code),
        Err(e) => error(&format!("{e:#}"), 1),
    }
}

/// End with an error, and with it all ranks: the others would wait for this one.
fn leave(ranks: &dyn Ranks, message: &str, code: u8) -> ExitCode {
    if ranks.size() == 1 {
        return error(message, code);
    }
    if ranks.rank() > 0 {
        // What went wrong everywhere, the first rank tells, and ends the job before this; the launcher needs a second for it.
        std::thread::sleep(std::time::Duration::from_secs(3));
    }
    // In one piece, since the launcher mixes what ranks write.
    let text = format!("error: rank {}: {message}\n", ranks.rank());
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    ranks.abort(code)
}
