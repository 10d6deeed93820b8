//! The command line: arguments in, exit codes out. Everything else is in the library.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

use clap::{CommandFactory, FromArgMatches};
use ergodic::error::Interrupted;
use ergodic::front::arguments::{Cli, Command, KernelCommand, NotebookCommand, RunArgs};
#[cfg(feature = "evcxr")]
use ergodic::front::kernel::kernelspec::Target;
use ergodic::front::{
    bench, browse, docs, doctor, grid, jupyter, lsp, manual, notebook, permissions, repl, report,
    run, runs, serve, show, slurm, stack, verify,
};
use ergodic::kernels;
use ergodic::memory;
use ergodic::output;
use ergodic::plot::Style;
use ergodic::ranks::{self, Communicator};
use ergodic::script::Interpreter;
use ergodic::simulation::progress;
use ergodic::simulation::session::{self, Session};
use ergodic::store;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[cfg(not(system_allocator))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Bytes that are free below which a package that panics may have lacked memory: for the stack of a thread, for instance.
const HARDLY_ANY: u64 = 64 << 20;

/// Say that a panic is a defect of ours, or that hardly any memory is left. [`main`] decides the exit code.
fn report_panic(info: &std::panic::PanicHookInfo) {
    if ergodic::error::panic_is_caught() {
        return;
    }
    let is_short = memory::available_memory().is_some_and(|free| free < HARDLY_ANY);
    output::remark(match is_short {
        true => format!(
            "error: hardly any memory is left, of the machine or of a limit (ulimit -v, a container), and something could not go on: {}",
            info.payload_as_str().unwrap_or_default()
        ),
        false => format!("error: a defect of ergodic, please report it: {info}"),
    });
}

fn main() -> ExitCode {
    // The process that Rust cells run in is this program too, and goes no further.
    #[cfg(feature = "evcxr")]
    notebook::rust::hook();
    stack::with_room(run_command)
}

fn run_command() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    // A backtrace in an error message helps nobody who writes scripts; a panic still prints one if asked.
    if std::env::var_os("RUST_LIB_BACKTRACE").is_none() {
        // SAFETY: no other thread is running yet.
        unsafe { std::env::set_var("RUST_LIB_BACKTRACE", "0") };
    }
    // Large pages where the system has them: buffers of a few megabytes otherwise miss the TLB, by up to a third of a step's time.
    // SAFETY: the option may be set at any time.
    unsafe { libmimalloc_sys::mi_option_set(libmimalloc_sys::mi_option_large_os_pages, 1) };
    // A panic has said what it is.
    let code = std::panic::catch_unwind(command).unwrap_or(1);
    ExitCode::from(match output::failure() {
        None => code,
        Some(why) => {
            let lost = format!(
                "standard output could not be written, and what was to be printed is incomplete ({why})"
            );
            error(&lost, code.max(1))
        }
    })
}

/// The command line, with the version of this program.
fn cli_of() -> clap::Command {
    let (short, long) = manual::version(ergodic_version::COMMIT);
    Cli::command().version(short).long_version(long)
}

/// Do what the command line asks for; returns the exit code.
fn command() -> u8 {
    let found = cli_of().try_get_matches();
    let cli = match found.and_then(|all| Cli::from_arg_matches(&all)) {
        Ok(cli) => cli,
        // Help and version are no errors, and go to standard output.
        Err(e) if e.use_stderr() => {
            let _ = e.print();
            return 2;
        }
        Err(e) => {
            output::keep(e.print());
            return 0;
        }
    };
    if let Err(e) = kernels::asked_level() {
        return error(&format!("{e:#}"), 2);
    }
    watch_interrupts(&cli.command);
    match perform(cli.command) {
        Ok(code) => code,
        Err(e) if Interrupted::is(&e) => error(&format!("{e:#}"), 130),
        Err(e) => error(&format!("{e:#}"), 1),
    }
}

/// Do what a command says; returns the exit code of a script, 0 for all else.
fn perform(command: Command) -> anyhow::Result<u8> {
    match command {
        Command::Run(args) => return Ok(run_script(*args)),
        Command::Check { scripts } => return check(&scripts),
        Command::Slurm {
            shards,
            cores,
            time,
            out,
            run,
        } => {
            let script = run.first().map(std::path::Path::new);
            let name = script
                .and_then(|s| s.file_stem())
                .map_or("ergodic".into(), |s| s.to_string_lossy());
            let (shards, cores) = (usize::from(shards), usize::from(cores));
            output::line(slurm::script(&name, &run, shards, cores, &time, &out));
        }
        Command::Lsp => lsp::serve()?,
        Command::Serve { folder, port, host } => serve::serve(&folder, (host, port))?,
        Command::Completions { shell } => {
            output::line(manual::completions(cli_of(), shell).trim_end())
        }
        Command::Man { folder } => {
            for path in manual::pages(cli_of(), &folder)? {
                output::line(format_args!("page  {}", path.display()));
            }
        }
        Command::Repl { rust: true, .. } => rust_repl()?,
        Command::Repl { threads, .. } => repl::run(with_threads(threads))?,
        Command::Kernel(command) => kernel(command)?,
        Command::Notebook { command } => notebook_command(command)?,
        Command::Show { runs, json } => {
            for r in &runs {
                if json {
                    output::line(serde_json::to_string_pretty(&show::json(r)?)?);
                } else {
                    output::line(ergodic::error::printable(&show::text(r)?));
                }
            }
        }
        Command::Ls {
            folders,
            tags,
            sort,
            json,
        } => {
            let text = runs::list(&folders, &tags, sort, json)?;
            output::line(ergodic::error::printable(&text));
        }
        Command::Diff { a, b, json } => {
            let text = report::diff(&a, &b, json)?;
            output::print(ergodic::error::printable(&text));
        }
        Command::Rm {
            runs,
            tags,
            yes,
            dry_run,
        } => runs::remove(&runs::Removal {
            runs,
            tags,
            yes,
            dry_run,
        })?,
        Command::Tag { run, tags, remove } => output::line(runs::tag(&run, &tags, remove)?),
        Command::Report { runs, out } => {
            let path = report::report(&runs, out.as_deref())?;
            output::line(format_args!("report  {}", path.display()));
        }
        Command::Plot {
            runs,
            out,
            format,
            preset,
        } => {
            let style = Style::preset(&preset).unwrap_or_default();
            draw(&runs, out.as_deref(), (&style, &format))?;
        }
        Command::Compare { runs, json: true } => {
            let table = report::compare(&runs)?.to_json();
            output::line(serde_json::to_string_pretty(&table)?);
        }
        Command::Compare { runs, .. } => {
            let table = report::compare(&runs)?.to_string();
            output::print(ergodic::error::printable(&table));
        }
        Command::Docs { all: true, .. } => output::print(ergodic::script::reference::markdown()),
        Command::Docs {
            name, source, open, ..
        } => {
            let name = (!name.is_empty()).then(|| name.join(" "));
            match (source, open) {
                (true, _) => output::print(docs::source(name.as_deref())?),
                (_, true) => output::line(browse::open(name.as_deref())?.display()),
                _ => browse::paged(&docs::lookup(name.as_deref())?),
            }
        }
        Command::Bench { list: true, .. } => output::line(bench::list()),
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
            output::line(bench::run(&bench::Request {
                only,
                seconds,
                threads,
                device,
                out,
                compare,
                json,
            })?);
        }
        Command::Doctor { check: None } => {
            output::line(doctor::report(with_threads(None).threads));
        }
        Command::Doctor {
            check: Some(folder),
        } => {
            let (text, is_sound) = verify::report(&folder)?;
            output::line(ergodic::error::printable(&text));
            return Ok(u8::from(!is_sound));
        }
    }
    Ok(0)
}

/// Handle Ctrl-C as fits the command.
fn watch_interrupts(command: &Command) {
    // A kernel is interrupted by messages, and told to end by signals, which it handles itself.
    let serves = matches!(
        command,
        Command::Kernel(KernelCommand::Start { .. })
            | Command::Notebook {
                command: NotebookCommand::Kernel { .. }
            }
    );
    if !serves {
        // A session loses its variables if it is left, and notebooks write what they have.
        let stays = matches!(command, Command::Repl { .. } | Command::Notebook { .. });
        handle_interrupts(!stays);
    }
}

fn kernel(command: KernelCommand) -> anyhow::Result<()> {
    match command {
        KernelCommand::Install {
            display_name,
            place,
        } => output::line(jupyter::install(
            &place.name,
            &display_name,
            &place.target(),
        )?),
        KernelCommand::Uninstall { place } => {
            output::line(jupyter::uninstall(&place.name, &place.target())?);
        }
        KernelCommand::List => output::line(jupyter::list()),
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
fn draw(runs: &[PathBuf], out: Option<&Path>, style: (&Style, &str)) -> anyhow::Result<()> {
    for (k, folder) in runs.iter().enumerate() {
        let place = out.map(|out| match runs.len() {
            1 => out.to_path_buf(),
            _ => out.join((k + 1).to_string()),
        });
        for path in report::plot(folder, place.as_deref(), style)? {
            output::line(format_args!("figure  {}", path.display()));
        }
    }
    Ok(())
}

/// Let Ctrl-C save and stop; with `leaves`, also what does not look for it.
fn handle_interrupts(leaves: bool) {
    let handler = ctrlc::set_handler(move || {
        if let Some(stop) = RUST.get() {
            stop();
            return;
        }
        if session::interrupt() {
            // The second Ctrl-C: the last checkpoint on disk is whole, leave now.
            std::process::exit(130);
        }
        let does = match progress::saves() {
            true => "saving the run",
            false => "stopping; no run is under way, so there is nothing to save",
        };
        if !store::writes_nothing() {
            output::remark(format_args!(
                "\ninterrupted: {does} (once more to leave at once)"
            ));
        }
        if leaves {
            std::thread::spawn(permissions::leave_if_idle);
        }
    });
    if let Err(e) = handler {
        output::remark(format_args!("warning: Ctrl-C will not save: {e}"));
    }
}

/// What Ctrl-C calls while a process of Rust cells runs.
static RUST: std::sync::OnceLock<Arc<dyn Fn() + Send + Sync>> = std::sync::OnceLock::new();

#[cfg(feature = "evcxr")]
fn rust_repl() -> ergodic::error::Result<()> {
    notebook::rust::repl::run(&|stop| drop(RUST.set(stop)))
}

#[cfg(not(feature = "evcxr"))]
fn rust_repl() -> ergodic::error::Result<()> {
    Err(anyhow::anyhow!(notebook::WITHOUT_EVCXR))
}

/// Say what is wrong in scripts; 1 if anything is.
fn check(scripts: &[std::path::PathBuf]) -> anyhow::Result<u8> {
    let mut count = 0;
    for script in scripts {
        let source = run::read(script)?;
        let mut interpreter = Interpreter::new(Session::new("runs".into()), Default::default());
        let found = interpreter.check(&script.display().to_string(), &source);
        count += found.len();
        for text in found {
            output::line(ergodic::error::printable(&text));
        }
    }
    if count == 0 {
        output::line("nothing found");
    }
    Ok(u8::from(count > 0))
}

fn notebook_command(command: NotebookCommand) -> ergodic::error::Result<()> {
    match command {
        NotebookCommand::Run {
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
            let written = notebook::execute::run(&request, &|stop| drop(RUST.set(stop)))?;
            if !quiet {
                output::line(written.display());
            }
            Ok(())
        }
        #[cfg(feature = "evcxr")]
        NotebookCommand::Setup {
            folder,
            source,
            force,
            no_kernel,
            yes,
        } => {
            let request = notebook::rust::setup::Request {
                folder,
                source,
                force,
                yes,
            };
            notebook::rust::setup::setup(&request)?;
            if !no_kernel {
                let folder = notebook::rust::kernel::install(&Target::User)?;
                output::line(format_args!(
                    "Jupyter knows the kernel \"Rust (ergodic)\" by {}",
                    folder.display()
                ));
            }
            Ok(())
        }
        #[cfg(feature = "evcxr")]
        NotebookCommand::Kernel { connection } => notebook::rust::kernel::start(&connection),
        #[cfg(not(feature = "evcxr"))]
        NotebookCommand::Setup { .. } | NotebookCommand::Kernel { .. } => {
            Err(anyhow::anyhow!(notebook::WITHOUT_EVCXR))
        }
    }
}

fn error(message: &str, code: u8) -> u8 {
    output::remark(format_args!("error: {}", ergodic::error::message(message)));
    code
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

fn run_script(args: RunArgs) -> u8 {
    let Some(script) = args.script else {
        let mut command = Cli::command();
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
            output::line(&text);
            return 0;
        }
        output::remark(format_args!("error: no script given\n\n{text}"));
        return 2;
    };
    if args.help {
        return match run::help(&script) {
            Ok(text) => {
                output::print(&text);
                0
            }
            Err(e) => error(&format!("{e:#}"), 1),
        };
    }
    let ranks: Arc<dyn Communicator> = match ranks::open() {
        Ok(ranks) => ranks.into(),
        Err(e) => return error(&format!("{e:#}"), 1),
    };
    // Ranks on one machine share its cores.
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let share = (ranks.size() > 1).then(|| (cores / ranks.local_size()).max(1));
    let threads = args.threads.or(share);
    use_threads(threads);
    if let Err(e) = args.permissions.limit(ranks.local_size()) {
        return error(&format!("{e:#}"), 1);
    }
    let request = run::Request {
        permissions: args.permissions,
        shard: args.shard,
        merge: args.merge.map(usize::from),
        cell: false,
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
        force: args.force,
        tags: args.tags.clone(),
        json: args.json,
        quiet: args.quiet,
        console: None,
    };
    let each = args
        .grid
        .iter()
        .map(|(name, text)| (name.clone(), grid::values(text)));
    let grid = grid::Grid {
        settings: each.collect(),
        jobs: usize::from(args.jobs),
    };
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| match grid.settings.is_empty() {
        true => run::run(&request),
        false => grid::run(&request, &grid),
    }));
    let result = result.unwrap_or_else(|_| {
        Err(ergodic::script::Failure {
            message: "stopped; what was checkpointed can be continued with --resume".into(),
            code: 1,
        })
    });
    ended(&*ranks, result)
}

/// Say how a run has ended, and leave the job; the exit code.
fn ended(ranks: &dyn Communicator, result: Result<String, ergodic::script::Failure>) -> u8 {
    let code = match result {
        Ok(text) => {
            if !text.is_empty() {
                output::line(&text);
            }
            0
        }
        Err(failure) if failure.code == 130 && ranks.size() == 1 => {
            output::remark(&failure);
            130
        }
        Err(failure) => return leave(ranks, &failure.message, failure.code),
    };
    match ranks.finish() {
        Ok(()) => code,
        Err(e) => error(&format!("{e:#}"), 1),
    }
}

/// End with an error, and with it all ranks: the others would wait for this one.
fn leave(ranks: &dyn Communicator, message: &str, code: u8) -> u8 {
    if ranks.size() == 1 {
        return error(message, code);
    }
    if ranks.rank() > 0 {
        // What went wrong everywhere, the first rank tells, and ends the job before this; the launcher needs a second for it.
        std::thread::sleep(std::time::Duration::from_secs(3));
    }
    // In one piece, since the launcher mixes what ranks write.
    let text = format!("error: rank {}: {message}\n", ranks.rank());
    output::remark_part(text);
    ranks.abort(code)
}
