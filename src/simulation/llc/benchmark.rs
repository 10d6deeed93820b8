//! The benchmark of learning-coefficient estimators: all problems × samplers × step sizes (Hitchcock & Hoogland 2025, §3).
//!
//! A cell is one problem, one sampler and one step size. Cells are independent, run side by side, one thread each where there are enough
//! problems, and what is finished is on disk: an interrupted benchmark goes on with `--resume`.

use super::contenders::{Contender, contenders};
use super::problems::{self, Posed, Setting};
use super::protocol::{BASELINE, Baseline, GAMMA, Point, Prepared};
use super::table::{Benchmark, Cell, FILE, Known};
use super::workers::side_by_side;
use crate::error::Result;
use crate::model::deep_linear::Problem;
use crate::model::deep_linear::problem::{Class, NAMES};
use crate::options::{Kind, Options, Range, Spec, option, optional};
use crate::ranks::agree;
use crate::simulation::in_memory::{InMemory, Subject};
use crate::simulation::job::{Job, Record, Standing, described, drive};
use crate::simulation::plan::{self, Plan};
use crate::simulation::session::{self, Session};
use crate::simulation::sharding::shard_folder;
use crate::store::archive::{Archive, Kept};
use crate::store::checkpoint::{self, Tensors};
use crate::store::{read_json, write_json};
use crate::trigger::Trigger;
use crate::verb::{Call, RESUME, Verb};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::Path;
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
        "Fraction of the steps (if below 1) or number of steps (if 1 or more) that is not averaged.",
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
    RESUME,
];

/// All cells.
pub fn run(o: &Options, session: &Session) -> Result<Benchmark> {
    let contenders = contenders(o)?;
    let (first, mut count) = (o.int("first")?, o.int("problems")?);
    let mut steps = o.int("steps")?;
    if session.quick {
        (count, steps) = (count.min(3), steps.min(300));
    }
    let name = session.name_run("benchmark", o.opt_text("name"))?;
    let (class, seed) = (problems::class(o.text("class")?), o.int("seed")?);
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
    let indices: Vec<u64> = (first..first + count).collect();
    let known = |index: &u64| -> Result<Known> {
        let p = Problem::draw(class, seed, *index)?;
        Ok(Known {
            problem: *index,
            widths: p.widths.clone(),
            rank: p.rank,
            truth: p.truth.lambda,
            regular: p.regular,
            parameters: p.weights.len(),
        })
    };
    let (number, of) = session
        .shard
        .unwrap_or((session.ranks.rank(), session.ranks.size()));
    let own: Vec<u64> = indices.iter().copied().skip(number).step_by(of).collect();
    let workers = session.threads.clamp(1, own.len().max(1));
    let job = Contest {
        out: Benchmark {
            setting: json!({
                "options": words,
                "samplers": contenders.iter().map(Contender::options).collect::<Vec<_>>(),
            }),
            samplers: contenders.iter().map(|c| c.label.clone()).collect(),
            step_sizes: contenders
                .iter()
                .map(|c| c.at.iter().map(|a| a.0).collect())
                .collect(),
            steps: steps * o.int("chains")?,
            problems: indices.iter().map(known).collect::<Result<_>>()?,
            cells: Vec::new(),
        },
        going: (0..workers).map(|_| None).collect(),
        todo: Mutex::new(own.clone().into()),
        own,
        rules: Rules {
            o,
            session,
            contenders,
            class,
            setting,
            seed,
            steps,
            threads: session.threads / workers,
            point: Point {
                nbeta: setting.n as f64 / (setting.n as f64).ln(),
                gamma: o.float("gamma")?,
                baseline: Baseline::from_options(o)?,
            },
        },
        name,
    };
    drive(job, session)
}

/// A benchmark that goes on. Every process measures problems of its own.
struct Contest<'a> {
    name: String,
    rules: Rules<'a>,
    /// The cells that are known here.
    out: Benchmark,
    /// The problems of this process.
    own: Vec<u64>,
    /// Those of them that nobody has begun in this session.
    todo: Mutex<VecDeque<u64>>,
    /// What each worker is at.
    going: Vec<Option<Going>>,
}

/// How cells are measured.
struct Rules<'a> {
    o: &'a Options,
    session: &'a Session,
    contenders: Vec<Contender>,
    class: Class,
    setting: Setting,
    seed: u64,
    steps: u64,
    /// Threads per worker.
    threads: usize,
    point: Point,
}

/// A problem, and its cells that are missing.
struct Going {
    index: u64,
    posed: Posed,
    /// Sampler and step size of the cells to measure.
    missing: VecDeque<(usize, usize)>,
    running: Option<(Plan, Prepared, InMemory)>,
}

impl Rules<'_> {
    /// Sampler and step size of the cells of a problem that are not there.
    fn missing(&self, index: u64, cells: &[Cell]) -> VecDeque<(usize, usize)> {
        let found = |(s, k): &(usize, usize)| {
            let same = |c: &Cell| (c.problem, c.sampler, c.step) == (index, *s, *k);
            !cells.iter().any(same)
        };
        let samplers = self.contenders.iter().enumerate();
        let all = samplers.flat_map(|(s, c)| (0..c.at.len()).map(move |k| (s, k)));
        all.filter(found).collect()
    }

    /// A problem of which these cells are to be measured.
    fn begin(&self, index: u64, missing: VecDeque<(usize, usize)>) -> Result<Going> {
        let problem = Problem::draw(self.class, self.seed, index)?;
        Ok(Going {
            index,
            posed: Posed::new(problem, self.setting, self.seed + index, self.threads)?,
            missing,
            running: None,
        })
    }

    fn subject<'a>(&'a self, plan: &'a Plan, prepared: &'a Prepared) -> Subject<'a> {
        let (target, sampler) = (&*prepared.target, &*prepared.sampler);
        (plan, target, sampler, self.session, self.threads)
    }

    /// Go on with the next cell of a problem until `until`, or an interruption; the cell, if it is finished.
    fn go_on(&self, going: &mut Going, until: Instant) -> Result<Option<Cell>> {
        let Some(&(sampler, step)) = going.missing.front() else {
            return Ok(None);
        };
        let (plan, prepared, mut run) = match going.running.take() {
            Some(running) => running,
            None => {
                let seed =
                    session::seed_of(self.seed, &format!("{} {sampler} {step}", going.index));
                let plan = plan(self.o, &going.posed, (self.steps, seed))?;
                let configured = &self.contenders[sampler].at[step].1;
                let (target, start) = (&going.posed.target, &going.posed.start.vectors[0]);
                let prepared = Prepared::new(target, configured, start, self.point, None)?;
                anyhow::ensure!(
                    !prepared.observes(),
                    "llc_benchmark: sampler::{} accepts or rejects; use `llc` for it",
                    configured.name()
                );
                let run = InMemory::new(self.subject(&plan, &prepared))?;
                (plan, prepared, run)
            }
        };
        if run.advance(self.subject(&plan, &prepared), Some(until))? {
            going.running = Some((plan, prepared, run));
            return Ok(None);
        }
        let run = run.finish(&plan);
        let seconds = run.seconds;
        let reasons = run.failures.iter().flatten();
        let failed: Vec<_> = reasons
            .map(|f| format!("{} at step {}", f.reason, f.step))
            .collect();
        let found = match failed.len() == plan.chains {
            true => None,
            false => Some(prepared.estimate(Arc::new(run), self.session)?),
        };
        going.missing.pop_front();
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        Ok(Some(Cell {
            problem: going.index,
            sampler,
            step,
            estimate: found.as_ref().and_then(|e| finite(e.lambda)),
            mcse: found.as_ref().and_then(|e| finite(e.mcse)),
            virial: found.as_ref().and_then(|e| finite(e.virial.temperature)),
            failed,
            seconds,
        }))
    }
}

impl Contest<'_> {
    /// Take over cells that are not there yet.
    fn take(&mut self, cells: Vec<Cell>) {
        self.out.take(cells);
        let Benchmark {
            problems, cells, ..
        } = &mut self.out;
        cells.retain(|c| problems.iter().any(|k| k.problem == c.problem));
    }

    /// Cells of a problem.
    fn per_problem(&self) -> usize {
        self.rules.contenders.iter().map(|c| c.at.len()).sum()
    }

    /// Cells of this process that are there.
    fn done(&self) -> usize {
        let own = |c: &&Cell| self.own.contains(&c.problem);
        self.out.cells.iter().filter(own).count()
    }
}

impl Kept for Contest<'_> {
    // Cells have texts, and stand in the description.
    fn keep<'a>(&'a mut self, _: &mut Archive<'a>) -> Result<()> {
        Ok(())
    }
}

impl Job for Contest<'_> {
    type Output = Benchmark;

    fn name(&self) -> &str {
        &self.name
    }

    fn whose(&self) -> &'static str {
        "this benchmark was"
    }

    fn fingerprint(&self) -> Value {
        json!({ "job": "benchmark", "setting": self.out.setting, "step_sizes": self.out.step_sizes })
    }

    fn size(&self) -> (&'static str, u64) {
        let problems = match self.rules.session.shard {
            Some(_) => self.own.len(),
            None => self.out.problems.len(),
        };
        ("estimates", (problems * self.per_problem()) as u64)
    }

    fn is_divided(&self) -> bool {
        true
    }

    fn standing(&self) -> Standing {
        let done = self.done();
        Standing {
            done: done as u64,
            more: done < self.own.len() * self.per_problem(),
            ..Standing::default()
        }
    }

    fn place(&self) -> String {
        format!("with {} of {} cells", self.out.cells.len(), self.size().1)
    }

    /// Shards are put together.
    fn begin(&mut self, _: &Path, _: &mut Record, session: &Session) -> Result<()> {
        let shards = session.merge.unwrap_or(0);
        for number in 0..shards {
            let folder = session
                .out
                .join(shard_folder(number, shards))
                .join(&self.name);
            let file = folder.join(FILE);
            if !file.exists() {
                continue;
            }
            let part: Benchmark = read_json(&file)?;
            let same =
                (&part.setting, &part.step_sizes) == (&self.out.setting, &self.out.step_sizes);
            anyhow::ensure!(
                same,
                "{}: this benchmark was started with other settings; merge with the same script and --set values",
                file.display()
            );
            self.take(part.cells);
        }
        Ok(())
    }

    fn advance(&mut self, until: Instant) -> Result<()> {
        let (rules, todo) = (&self.rules, &self.todo);
        let cells = Mutex::new(std::mem::take(&mut self.out.cells));
        let lock = || cells.lock().unwrap_or_else(|e| e.into_inner());
        let interrupted = || rules.session.interrupt.interrupted();
        let work = |going: &mut Option<Going>| -> Result<()> {
            while !interrupted() {
                if going.as_ref().is_none_or(|g| g.missing.is_empty()) {
                    let next = todo.lock().unwrap_or_else(|e| e.into_inner()).pop_front();
                    let Some(index) = next else {
                        return Ok(());
                    };
                    let missing = rules.missing(index, &lock());
                    // Of a problem that is finished no data are needed.
                    *going = match missing.is_empty() {
                        true => None,
                        false => Some(rules.begin(index, missing)?),
                    };
                }
                if let Some(going) = going {
                    lock().extend(rules.go_on(going, until)?);
                }
                if Instant::now() >= until {
                    break;
                }
            }
            Ok(())
        };
        let done = side_by_side(&mut self.going, work);
        self.out.cells = cells.into_inner().unwrap_or_else(|e| e.into_inner());
        done
    }

    fn describe(&self, _: bool) -> Result<Map<String, Value>> {
        let out = serde_json::to_value(&self.out)?;
        Ok(Map::from_iter([
            ("what".to_string(), self.fingerprint()),
            ("benchmark".to_string(), out),
        ]))
    }

    fn restore(&mut self, _: Tensors, meta: &Value, _: &Path) -> Result<()> {
        self.take(Benchmark::deserialize(&meta["benchmark"])?.cells);
        Ok(())
    }

    fn save(&mut self, folder: &Path, record: &Record, session: &Session) -> Result<()> {
        let mine = serde_json::to_vec(&self.out.cells)?;
        let all = session.ranks.gather_bytes(&mine, 0)?.unwrap_or_default();
        for bytes in all {
            self.take(serde_json::from_slice(&bytes)?);
        }
        let meta = described(self.describe(record.done)?, record);
        checkpoint::save(&folder.join("checkpoint"), &meta, &[])
    }

    fn finish(mut self, folder: &Path, _: Record, session: &Session) -> Result<Benchmark> {
        let mut all = serde_json::to_vec(&self.out.cells)?;
        session.ranks.broadcast_bytes(&mut all, 0)?;
        self.out.cells = serde_json::from_slice(&all)?;
        let key = |c: &Cell| (c.problem, c.sampler, c.step);
        self.out.cells.sort_by_key(key);
        agree(&*session.ranks, write_json(&folder.join(FILE), &self.out))?;
        Ok(self.out)
    }
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

/// The verb `llc_benchmark`.
pub static LLC_BENCHMARK: Verb<Session, (), Arc<Benchmark>> = Verb {
    name: "llc_benchmark",
    arguments: &[],
    options: OPTIONS,
    doc: "Estimate the learning coefficients of many deep linear networks by several samplers at several step sizes (Hitchcock & Hoogland 2025, figs. 3, 5 to 8).\n\n\
         `print(benchmark)` is a table with a line per sampler and step size: `failed`, the share of problems without an estimate; `error`, mean and standard deviation of \
         (λ̂-λ)/λ, and its median; `local`, the mean against the larger of λ and half the rank of the Jacobian, a lower bound of the local coefficient; `order`, the share of pairs of problems \
         that are in the right order; `coverage`, how often λ lies within 1.96 estimated standard errors. `plot::llc_benchmark(benchmark)` draws it. Finished cells are saved: \
         an interrupted benchmark is continued with `--resume`.",
    example: "llc_benchmark(#{ problems: 2, n: 10_000, steps: 100, samplers: [sampler::sgld(#{ batch: 50 })], step_sizes: [1e-7, 1e-6] })",
    call: Call::Checked(|(), o, session| run(o, session).map(Arc::new)),
};
