//! The benchmark of learning-coefficient estimators: all problems × samplers × step sizes (Hitchcock & Hoogland 2025, §3).
//!
//! A cell is one problem, one sampler and one step size. Cells are independent, run side by side, one thread each where there are enough
//! problems, and what is finished is on disk: an interrupted benchmark goes on with `--resume`.

use super::problems::{self, Posed, Setting};
use super::protocol::{BASELINE, Baseline, GAMMA, Point, Prepared};
use super::table::{Benchmark, Cell, Known};
use crate::error::{Interrupted, Result};
use crate::model::deep_linear::Problem;
use crate::model::deep_linear::problem::NAMES;
use crate::options::{Kind, Options, Range, Spec, Value, option, optional};
use crate::ranks::{agree, any};
use crate::sampler::Configured;
use crate::sampler::preconditioned_sgld::PRECONDITIONER;
use crate::simulation::parts::shard_folder;
use crate::simulation::plan::{self, Plan};
use crate::simulation::progress::Progress;
use crate::simulation::session::{self, Session};
use crate::simulation::unsaved;
use crate::store::{read_json, write_json, write_own_json};
use crate::trigger::Trigger;
use crate::verb::{Call, Verb};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Options of `llc_benchmark(#{…})`.
pub const OPTIONS: &[Spec] = &[
    option("class", Kind::Choice(NAMES), "1K", "Class of problems."),
    option(
        "problems",
        Kind::Int(Range::Between(1.0, 1e5)),
        "10",
        "Number of problems.",
    ),
    option(
        "first",
        Kind::Int(Range::NonNegative),
        "0",
        "Index of the first problem.",
    ),
    optional(
        "samplers",
        Kind::Objects("Sampler"),
        "sgld, rmsprop_sgld, adam_sgld, sghmc, sgnht, each with batch 500, preconditioners running as in the paper",
        "The samplers; their step sizes are those of the next option.",
    ),
    optional(
        "step_sizes",
        Kind::Anything("array of numbers, or array with such an array per sampler"),
        "each sampler's own",
        "Step sizes of every sampler.",
    ),
    option(
        "chains",
        Kind::Int(Range::Between(1.0, 1000.0)),
        "1",
        "Chains per cell.",
    ),
    option(
        "steps",
        Kind::Int(Range::Between(10.0, 1e9)),
        "50_000",
        "Steps per chain.",
    ),
    option(
        "burn_in",
        Kind::Float(Range::NonNegative),
        "0.9",
        "Part of the steps (below 1) or number of steps (from 1) that is not averaged.",
    ),
    GAMMA,
    BASELINE,
    problems::N,
    problems::DATA,
    problems::NOISE,
    option(
        "seed",
        Kind::Int(Range::NonNegative),
        "1",
        "Seed of problems and chains.",
    ),
    optional(
        "name",
        Kind::Text,
        "benchmark-1, …",
        "Name of the benchmark and of its folder.",
    ),
];

/// Whether a file has cells: benchmark.json, or that of a rank, benchmark-3.json.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    name.is_some_and(|n| n.starts_with("benchmark") && n.ends_with(".json"))
}

/// A sampler at its step sizes.
struct Contender {
    label: String,
    at: Vec<(f64, Arc<Configured>)>,
}

/// All cells.
pub fn run(o: &Options, session: &Session) -> Result<Benchmark> {
    let contenders = contenders(o)?;
    let (first, mut count) = (o.int("first")?, o.int("problems")?);
    let mut steps = o.int("steps")?;
    if session.quick {
        (count, steps) = (count.min(3), steps.min(300));
    }
    let name = session.name_run("benchmark", o.opt_text("name"))?;
    let folder = agree(&*session.ranks, session.begin(&name))?;
    let path = folder.join("benchmark.json");
    let class = problems::class(o.text("class")?);
    let seed = o.int("seed")?;
    let setting = Setting {
        n: o.size("n")?,
        noise: o.float("noise")?,
        moments: o.text("data")? == "moments",
    };
    let mut words = o.describe();
    words.retain(|(k, _)| {
        !["name", "problems", "steps", "samplers", "step_sizes"].contains(&k.as_str())
    });
    words.push(("steps".into(), steps.to_string()));
    let problem = |index| -> Result<(Problem, Known)> {
        let p = Problem::draw(class, seed, index)?;
        let known = Known {
            problem: index,
            widths: p.widths.clone(),
            rank: p.rank,
            truth: p.truth.lambda,
            regular: p.regular,
            parameters: p.weights.len(),
        };
        Ok((p, known))
    };
    let indices: Vec<u64> = (first..first + count).collect();
    let known = indices.iter().map(|i| problem(*i).map(|(_, k)| k));
    let mut out = Benchmark {
        setting: json!({
            "options": words,
            "samplers": contenders.iter().map(|c| &c.label).collect::<Vec<_>>(),
        }),
        samplers: contenders.iter().map(|c| c.label.clone()).collect(),
        step_sizes: contenders
            .iter()
            .map(|c| c.at.iter().map(|a| a.0).collect())
            .collect(),
        steps: steps * o.int("chains")?,
        problems: known.collect::<Result<_>>()?,
        cells: Vec::new(),
    };
    // Every process writes what it has measured into a file of its own, until all is put together.
    let ranks = &*session.ranks;
    let parts = |folder: &Path| -> Vec<PathBuf> {
        let files = folder.read_dir().into_iter().flatten().flatten();
        let mut found: Vec<_> = files.map(|f| f.path()).filter(|p| is_part(p)).collect();
        found.sort();
        found
    };
    let mut earlier = match session.resume {
        true => parts(&folder),
        false => Vec::new(),
    };
    for number in 0..session.merge.unwrap_or(0) {
        let folder = session
            .out
            .join(shard_folder(number, session.merge.unwrap_or(0)));
        earlier.push(folder.join(&name).join("benchmark.json"));
    }
    for file in earlier.iter().filter(|f| f.exists()) {
        let before: Benchmark = read_json(file)?;
        anyhow::ensure!(
            before.setting == out.setting && before.step_sizes == out.step_sizes,
            "{}: this benchmark was started with other settings; resume with the same script and --set values, or choose another --out",
            file.display()
        );
        out.take(before.cells);
    }
    out.cells.retain(|c| indices.contains(&c.problem));
    let (number, of) = session.shard.unwrap_or((ranks.rank(), ranks.size()));
    let own: Vec<u64> = indices.iter().copied().skip(number).step_by(of).collect();
    // Nobody may take a file for an earlier one that was written meanwhile.
    ranks.barrier()?;
    let own_path = match ranks.size() {
        1 => path.clone(),
        _ => path.with_file_name(format!("benchmark-{number}.json")),
    };
    let point = Point {
        nbeta: setting.n as f64 / (setting.n as f64).ln(),
        gamma: o.float("gamma")?,
        baseline: Baseline::from_options(o)?,
    };
    let per_problem: usize = contenders.iter().map(|c| c.at.len()).sum();
    let total = (per_problem * indices.len()) as u64;
    let progress = Progress::new(session, &name, "estimates", total, out.cells.len() as u64);
    let workers = session.threads.clamp(1, own.len().max(1));
    let threads = session.threads / workers;
    let (next, shared) = (AtomicUsize::new(0), Mutex::new((out, Instant::now())));
    let lock = || shared.lock().unwrap_or_else(|e| e.into_inner());
    let work = || -> Result<()> {
        while let Some(index) = own.get(next.fetch_add(1, Ordering::Relaxed)) {
            let missing = |s: usize, k: usize| {
                let found = |c: &Cell| (c.problem, c.sampler, c.step) == (*index, s, k);
                !lock().0.cells.iter().any(found)
            };
            let todo: Vec<_> = contenders
                .iter()
                .enumerate()
                .flat_map(|(s, c)| (0..c.at.len()).map(move |k| (s, k)))
                .filter(|(s, k)| missing(*s, *k))
                .collect();
            if todo.is_empty() {
                continue;
            }
            let posed = Posed::new(problem(*index)?.0, setting, seed + index, threads)?;
            for (s, k) in todo {
                let seed = session::seed_of(seed, &format!("{index} {s} {k}"));
                let plan = plan(o, &posed, (steps, seed))?;
                let sampler = &contenders[s].at[k].1;
                let mut cell = measure(&posed, sampler, point, &plan, session, threads)?;
                (cell.problem, cell.sampler, cell.step) = (*index, s, k);
                let mut held = lock();
                held.0.cells.push(cell);
                progress.set(held.0.cells.len() as u64, 0);
                if held.1.elapsed().as_secs_f64() > session.checkpoint_every {
                    write_own_json(&own_path, &held.0)?;
                    held.1 = Instant::now();
                }
            }
        }
        Ok(())
    };
    let results: Vec<Result<()>> = std::thread::scope(|s| {
        let running: Vec<_> = (0..workers).map(|_| s.spawn(work)).collect();
        let join = |t: std::thread::ScopedJoinHandle<Result<()>>| match t.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.into_iter().map(join).collect()
    });
    progress.finish();
    let mut out = shared.into_inner().unwrap_or_else(|e| e.into_inner()).0;
    write_own_json(&own_path, &out)?;
    let error = results.into_iter().find_map(Result::err);
    let interrupted = any(ranks, error.as_ref().is_some_and(Interrupted::is))?;
    let mine = match error.filter(|e| !Interrupted::is(e)) {
        Some(e) => Err(e),
        None => Ok(serde_json::to_vec(&out.cells)?),
    };
    let mine = agree(ranks, mine)?;
    if interrupted {
        let what = format!(
            "'{name}' with {} of {total} cells; continue with --resume",
            out.cells.len()
        );
        return Err(Interrupted { what }.into());
    }
    for bytes in ranks.gather_bytes(&mine, 0)?.unwrap_or_default() {
        out.take(serde_json::from_slice(&bytes)?);
    }
    out.cells.sort_by_key(|c| (c.problem, c.sampler, c.step));
    let mut all = serde_json::to_vec(&out.cells)?;
    ranks.broadcast_bytes(&mut all, 0)?;
    out.cells = serde_json::from_slice(&all)?;
    agree(ranks, write_json(&path, &out))?;
    if session.leads() {
        for part in parts(&folder).iter().filter(|p| **p != path) {
            let _ = std::fs::remove_file(part);
        }
    }
    Ok(out)
}

/// The plan of a cell.
fn plan(o: &Options, posed: &Posed, (steps, seed): (u64, u64)) -> Result<Plan> {
    let start = Some(posed.start.clone());
    let burn_in = plan::burn_in(o.owner(), o, steps)?;
    Ok(Plan {
        name: "cell".into(),
        burn_in,
        // About two hundred records of what is averaged.
        every: Trigger::Every(((steps - burn_in) / 200).max(1)),
        ..Plan::bare("llc_benchmark", (o.size("chains")?, start), steps, seed)
    })
}

fn measure(
    posed: &Posed,
    sampler: &Arc<Configured>,
    point: Point,
    plan: &Plan,
    session: &Session,
    threads: usize,
) -> Result<Cell> {
    let prepared = Prepared::new(&posed.target, sampler, &posed.start.vectors[0], point, None)?;
    anyhow::ensure!(
        !prepared.observes(),
        "llc_benchmark: sampler::{} accepts or rejects; use `llc` for it",
        sampler.name()
    );
    let run = unsaved(plan, &prepared.target, &prepared.sampler, session, threads)?;
    let seconds = run.seconds;
    let reasons = run.failures.iter().flatten();
    let failed: Vec<_> = reasons
        .map(|f| format!("{} at step {}", f.reason, f.step))
        .collect();
    let found = match failed.len() == plan.chains {
        true => None,
        false => Some(prepared.estimate(Arc::new(run), threads)?),
    };
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    Ok(Cell {
        problem: 0,
        sampler: 0,
        step: 0,
        estimate: found.as_ref().and_then(|e| finite(e.lambda)),
        mcse: found.as_ref().and_then(|e| finite(e.mcse)),
        virial: found.as_ref().and_then(|e| finite(e.virial.temperature)),
        failed,
        seconds,
    })
}

/// The samplers at their step sizes.
fn contenders(o: &Options) -> Result<Vec<Contender>> {
    let mut samplers: Vec<Arc<Configured>> = o.objects("samplers");
    if samplers.is_empty() {
        for name in ["sgld", "rmsprop_sgld", "adam_sgld", "sghmc", "sgnht"] {
            samplers.push(named(name)?);
        }
    }
    let grids = match o.get("step_sizes") {
        None => {
            let own = |s: &Arc<Configured>| s.step_size().map(|(_, x)| vec![x]);
            samplers.iter().map(own).collect::<Option<Vec<_>>>()
        }
        Some(Value::List(list)) => grids(list, samplers.len()),
        Some(_) => None,
    };
    let grids = grids.ok_or_else(|| {
        anyhow::anyhow!(
            "{}: option 'step_sizes' must be an array of numbers > 0, or an array with one such array for each of the {} samplers",
            o.owner(),
            samplers.len()
        )
    })?;
    let one = |(sampler, grid): (Arc<Configured>, Vec<f64>)| -> Result<Contender> {
        let (option, _) = sampler.step_size().ok_or_else(|| {
            anyhow::anyhow!(
                "{}: sampler::{} has no fixed step size that could be varied",
                o.owner(),
                sampler.name()
            )
        })?;
        let at = grid.into_iter().map(|step| {
            let changed = sampler.with(option, step)?;
            Ok((step, changed.unwrap_or_else(|| sampler.clone())))
        });
        Ok(Contender {
            label: label(&sampler),
            at: at.collect::<Result<_>>()?,
        })
    };
    samplers.into_iter().zip(grids).map(one).collect()
}

/// One grid for all, or one each.
fn grids(list: &[Value], samplers: usize) -> Option<Vec<Vec<f64>>> {
    let number = |v: &Value| match v {
        Value::Int(x) => Some(*x as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    };
    let grid = |list: &[Value]| -> Option<Vec<f64>> {
        let all: Vec<f64> = list.iter().map(number).collect::<Option<_>>()?;
        (!all.is_empty() && all.iter().all(|x| *x > 0.0 && x.is_finite())).then_some(all)
    };
    if let Some(one) = grid(list) {
        return Some(vec![one; samplers]);
    }
    let each = list.iter().map(|v| match v {
        Value::List(own) => grid(own),
        _ => None,
    });
    each.collect::<Option<Vec<_>>>()
        .filter(|g| g.len() == samplers)
}

/// A sampler by its name, with minibatches of 500; its preconditioner, if it has one, runs on as in the paper.
fn named(name: &str) -> Result<Arc<Configured>> {
    let found = crate::sampler::REGISTRY.iter().find(|e| e.name == name);
    let entry = found.ok_or_else(|| anyhow::anyhow!("there is no sampler '{name}'"))?;
    let mut given = vec![("batch".to_string(), Value::Int(500))];
    if entry.options.iter().any(|o| o.name == PRECONDITIONER.name) {
        given.push((PRECONDITIONER.name.into(), Value::Text("running".into())));
    }
    (entry.build)(&Options::check(name, entry.options, given)?)
}

/// What a sampler is called in tables: its name, and how its gradient is estimated if not by plain minibatches.
fn label(sampler: &Configured) -> String {
    let estimator = sampler.estimator();
    match (estimator.batch(), estimator.to_string()) {
        (None, _) => format!("{}, exact gradient", sampler.name()),
        (_, text) if text.contains("control") => format!("{}, control variates", sampler.name()),
        _ => sampler.name().to_string(),
    }
}

/// The verb `llc_benchmark`.
pub static LLC_BENCHMARK: Verb<Session, (), Arc<Benchmark>> = Verb {
    name: "llc_benchmark",
    arguments: &[],
    options: OPTIONS,
    doc: "Estimate the learning coefficients of many deep linear networks by several samplers at several step sizes (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).\n\n\
         `print(benchmark)` is a table with a line per sampler and step size: `failed`, the share of problems without an estimate; `error`, mean and standard deviation of \
         (λ̂-λ)/λ, and its median; `local`, the mean against the larger of λ and half the rank of the Jacobian, a lower bound of the local coefficient; `order`, the share of pairs of problems \
         that are ordered rightly; `coverage`, how often λ lies within 1.96 of our standard errors. `plot::llc_benchmark(benchmark)` draws it. What is finished is saved: \
         an interrupted benchmark goes on with `--resume`.",
    example: "llc_benchmark(#{ problems: 2, n: 10_000, steps: 100, samplers: [sampler::sgld(#{ batch: 50 })], step_sizes: [1e-7, 1e-6] })",
    call: Call::Checked(|(), o, session| run(o, session).map(Arc::new)),
};
