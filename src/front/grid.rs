//! `ergodic run --grid`: a script in every cell of a grid of its parameters, and one table of what it ends with.
//!
//! A cell is a run of the script in a folder of its own, with a seed of its own. Nothing but folders ties cells to each other: so they may be run one
//! after the other, side by side, by the ranks of a job or by shards that never hear of each other, and what was begun goes on.

use super::permissions::Permissions;
use super::run::{self, Request};
use crate::error::{self, Result};
use crate::output;
use crate::ranks::SingleProcess;
use crate::report::layout::GRID;
use crate::report::runs::inner;
use crate::script::library::code;
use crate::script::{Failure, declared};
use crate::simulation::cells::Cells;
use crate::simulation::console::{Bar, Console, Stage, Task};
use crate::simulation::design::{Design, Setting, cells};
use crate::simulation::resume::without_number;
use crate::simulation::session::seed_of;
use crate::store::claim::{Claim, holds_something};
use crate::store::{self, aside, tags};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What is varied, and how many cells are run side by side.
#[derive(Debug, Clone)]
pub struct Grid {
    /// `--grid name=value,value`: names and values as they are written.
    pub settings: Vec<(String, Vec<String>)>,
    /// `--jobs`.
    pub jobs: usize,
}

/// Cells whose failures are shown.
const SHOWN: usize = 3;

/// The setting that is no parameter of the script.
const SEED: &str = "seed";

/// `4,8,[1, 2]` at its commas, but for those within brackets and strings.
pub fn values(text: &str) -> Vec<String> {
    let (mut out, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            _ => {}
        }
        let end = out.len() - 1;
        match c {
            ',' if depth == 0 && !quoted => out.push(String::new()),
            c => out[end].push(c),
        }
    }
    out.iter().map(|v| v.trim().to_string()).collect()
}

/// One cell.
struct Cell {
    values: Vec<Value>,
    folder: PathBuf,
    request: Request,
}

/// Everything about a grid that does not change while it runs.
struct Plan {
    out: PathBuf,
    settings: Vec<String>,
    cells: Vec<Cell>,
}

/// A value as the table has it.
fn as_json(text: &str) -> Value {
    let number = serde_json::from_str(text).ok().filter(Value::is_number);
    number.unwrap_or_else(|| match text {
        "true" => json!(true),
        "false" => json!(false),
        other => json!(other.trim_matches('"')),
    })
}

fn folder_name(settings: &[(String, String)], number: usize) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let one = |(name, value): &(String, String)| format!("{name}={value}");
    let plain = settings
        .iter()
        .all(|(_, value)| !value.is_empty() && value.chars().all(fine));
    let name = settings.iter().map(one).collect::<Vec<_>>().join(",");
    match plain && name.len() <= 120 {
        true => name,
        false => format!("cell-{:04}", number + 1),
    }
}

impl Plan {
    fn new(request: &Request, grid: &Grid, source: &str) -> Result<Self> {
        let names = declared(source);
        for (k, (name, _)) in grid.settings.iter().enumerate() {
            let known: Vec<_> = names
                .iter()
                .map(|d| d.name.as_str())
                .chain([SEED])
                .collect();
            ensure!(
                known.contains(&name.as_str()),
                "--grid {name}: the script has no such parameter{}",
                error::did_you_mean(name, known.iter().copied())
            );
            let twice = grid.settings[..k].iter().any(|(n, _)| n == name)
                || request.settings.iter().any(|(n, _)| n == name);
            ensure!(!twice, "--grid {name}: this parameter is set twice");
        }
        for (name, values) in &grid.settings {
            let again = (1..values.len()).find(|k| values[..*k].contains(&values[*k]));
            if let Some(k) = again {
                anyhow::bail!("--grid {name}: the value {} stands there twice", values[k]);
            }
        }
        let out = folder(request)?;
        let settings: Vec<Setting> = grid
            .settings
            .iter()
            .map(|(name, values)| (name.clone(), values.iter().map(|v| json!(v)).collect()))
            .collect();
        let threads = request
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        let seed = request.seed.unwrap_or(1);
        let one = |(number, point): (usize, Vec<Value>)| {
            let texts = point
                .iter()
                .map(|v| v.as_str().unwrap_or_default().to_string());
            let own: Vec<_> = settings.iter().map(|(n, _)| n.clone()).zip(texts).collect();
            let name = folder_name(&own, number);
            let folder = out.join(&name);
            let given = own.iter().find(|(n, _)| n == SEED);
            let seed = match given {
                Some((_, text)) => text
                    .parse()
                    .with_context(|| format!("--grid seed={text}: expected whole numbers"))?,
                None => seed_of(seed, &name),
            };
            let varied = own.iter().filter(|(n, _)| n != SEED).cloned();
            Ok(Cell {
                values: own.iter().map(|(_, v)| as_json(v)).collect(),
                request: Request {
                    settings: request.settings.iter().cloned().chain(varied).collect(),
                    out: Some(folder.clone()),
                    seed: Some(seed),
                    threads: Some((threads / grid.jobs).max(1)),
                    quiet: true,
                    json: true,
                    force: false,
                    tags: Vec::new(),
                    shard: None,
                    merge: None,
                    cell: true,
                    ranks: Arc::new(SingleProcess),
                    console: Some(Arc::new(Silent)),
                    // The whole grid is restricted as one.
                    permissions: Permissions {
                        trust: true,
                        ..request.permissions.clone()
                    },
                    ..request.clone()
                },
                folder,
            })
        };
        let points = cells(&settings, Design::Full, &[], seed)?;
        let plan = Self {
            settings: settings.iter().map(|(n, _)| n.clone()).collect(),
            cells: points
                .into_iter()
                .enumerate()
                .map(one)
                .collect::<Result<_>>()?,
            out,
        };
        plan.define(request, grid, source)?;
        Ok(plan)
    }

    /// Write down which grid is in the folder, or make sure that it is this one.
    fn define(&self, request: &Request, grid: &Grid, source: &str) -> Result<()> {
        let path = self.out.join(GRID);
        let alone = request.shard.is_none() && request.merge.is_none() && request.ranks.size() == 1;
        if request.force {
            ensure!(
                alone,
                "--force with --grid is for one process; delete the grid with `ergodic rm` and begin anew"
            );
            make_room(request, &self.out)?;
        } else if alone {
            settle(&self.out)?;
        }
        let mut now = json!({
            "script": request.script.display().to_string(), "source": source, "settings": request.settings, "grid": grid.settings,
            "seed": request.seed.unwrap_or(1), "quick": request.quick, "device": request.device,
        });
        request.permissions.note(&mut now);
        let shown = self.out.display();
        // Of several that begin together one writes it, which takes a moment.
        for _ in 0..50 {
            if path.exists() || !holds_something(&self.out) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
        if !path.exists() {
            ensure!(
                !holds_something(&self.out),
                "--out {shown}: there is something else in this folder; choose another"
            );
            ensure!(
                request.merge.is_none(),
                "--out {shown}: there is no grid in this folder"
            );
            return self.write(&path, &now, request);
        }
        let before: Value = store::read_json(&path)?;
        let kind = |of: &Value| without_number(of["device"].as_str().unwrap_or_default());
        let other = |key: &str| match key {
            // A merge runs nothing. Folders of version 0.1.0 do not say on which device.
            "device" if request.merge.is_some() || before.get(key).is_none() => false,
            "device" => kind(&before) != kind(&now),
            _ => before[key] != now[key] && before.get(key).is_some(),
        };
        let differs = ["source", "settings", "grid", "seed", "quick", "device"]
            .into_iter()
            .find(|key| other(key));
        if let Some(what) = differs {
            let what = match what {
                "source" => "script, as it then was",
                "grid" => "--grid",
                "settings" => "--set",
                "quick" => "--quick",
                "device" => "--device",
                _ => "--seed",
            };
            anyhow::bail!(
                "--out {shown}: the grid in this folder has another {what}; choose another folder"
            );
        }
        let untrusted = before["untrusted"] == true;
        request
            .permissions
            .ensure_trust("--grid", untrusted, &self.out)?;
        ensure!(
            request.resume || !alone,
            "--out {shown}: there is a grid in this folder already; go on with --resume, begin anew in its place with --force, or choose another"
        );
        tags::change(&self.out, &request.tags, &[]).map(drop)
    }

    fn write(&self, path: &Path, definition: &Value, request: &Request) -> Result<()> {
        store::write_json(path, definition)?;
        tags::change(&self.out, &request.tags, &[]).map(drop)
    }

    /// What a cell ended with, if it has.
    fn found(cell: &Cell) -> Option<Value> {
        let record: Value = store::read_json(&cell.folder.join("run.json")).ok()?;
        (record["status"] == "done").then(|| record["result"].clone())
    }

    fn describe(&self, cell: &Cell) -> String {
        let each = self
            .settings
            .iter()
            .zip(&cell.values)
            .map(|(n, v)| match v {
                Value::String(s) => format!("{n} = {s}"),
                v => format!("{n} = {v}"),
            });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Fail where cells that are to stand in one table have imported or read a file that was changed between them.
    fn ensure_same_files(&self) -> Result<()> {
        let mut known: BTreeMap<String, (String, &Cell)> = BTreeMap::new();
        for cell in &self.cells {
            for (file, content) in files(&cell.folder) {
                let (first, by) = known
                    .entry(file.clone())
                    .or_insert_with(|| (content.clone(), cell));
                ensure!(
                    *first == content,
                    "{}: {file} was changed between the cells {} and {}; delete the folders of those that were run with the older one, and go on with --resume",
                    self.out.display(),
                    self.describe(by),
                    self.describe(cell)
                );
            }
        }
        Ok(())
    }

    fn collect(&self) -> Cells {
        let row = |c: &Cell| (c.values.clone(), Self::found(c).unwrap_or_default());
        Cells {
            settings: self.settings.clone(),
            rows: self.cells.iter().map(row).collect(),
        }
    }
}

/// Set aside what a grid replaces; it is forgotten once all cells have ended.
fn make_room(request: &Request, out: &Path) -> Result<()> {
    settle(out)?;
    if !holds_something(out) {
        return Ok(());
    }
    run::may_be_replaced(request, out)?;
    let claims = claims(out)?;
    let set = aside::set(out, |_| false);
    drop(claims);
    set
}

/// Whoever has these knows that nobody is at a grid, in whichever of its folders.
fn claims(out: &Path) -> Result<Vec<Claim>> {
    let folders = std::iter::once(out.to_path_buf()).chain(inner(out));
    folders.map(|f| Claim::of(&f)).collect()
}

/// Put back what was set aside if no cell has begun in its place.
fn settle(out: &Path) -> Result<()> {
    if !aside::is_there(out) {
        return Ok(());
    }
    // Who is at it has settled this.
    match claims(out) {
        Ok(_held) => aside::settle(out, |_| false, run::has_begun),
        Err(_) => Ok(()),
    }
}

/// The folder of the grid: `--out`, or the next one of the script.
fn folder(request: &Request) -> Result<PathBuf> {
    let together = request.shard.is_some() || request.merge.is_some() || request.ranks.size() > 1;
    ensure!(
        request.out.is_some() || !together,
        "--grid with --shard, --merge or under mpirun needs --out: the folder that all have in common"
    );
    if let Some(out) = &request.out {
        return Ok(out.clone());
    }
    let stem = run::stem(&request.script);
    let candidate = |k: usize| Path::new("runs").join(format!("{stem}-grid-{k}"));
    let free = (1..).find(|k| !candidate(*k).exists()).unwrap_or(1);
    match request.resume {
        false => Ok(candidate(free)),
        true => {
            ensure!(
                free > 1,
                "--resume: there is no grid {}; name the folder with --out",
                candidate(1).display()
            );
            Ok(candidate(free - 1))
        }
    }
}

/// Nobody sees what cells print: it is in the run.json of each.
struct Silent;

impl Console for Silent {
    fn print(&self, _: &str) {}

    fn remark(&self, _: &str) {}

    fn begin(&self, _: &Task) -> Arc<dyn Bar> {
        Arc::new(Silent)
    }
}

impl Bar for Silent {
    fn show(&self, _: &Stage) {}

    fn finish(&self, _: &Stage) {}
}

/// The files that a cell has imported and read, each with what tells versions of it apart.
fn files(cell: &Path) -> Vec<(String, String)> {
    let record: Value = store::read_json(&cell.join("run.json")).unwrap_or_default();
    let all = |key: &str, verb: &str| -> Vec<_> {
        let texts = record[key].as_object().into_iter().flatten();
        let named = texts.filter_map(|(file, text)| {
            let file = format!("{file}, which the script {verb},");
            Some((file, text.as_str()?.to_string()))
        });
        named.collect()
    };
    let mut imported = all("imported", "imports");
    imported.iter_mut().for_each(|(_, text)| *text = code(text));
    [imported, all("read", "reads")].concat()
}

fn fail(e: anyhow::Error) -> Failure {
    Failure {
        message: format!("{e:#}"),
        code: 1,
    }
}

/// Run the cells that are this process's; the returned text is what is left to print.
pub fn run(request: &Request, grid: &Grid) -> std::result::Result<String, Failure> {
    let source = run::read(&request.script).map_err(fail)?;
    let leads = request.ranks.rank() == 0;
    // The first rank makes the folder, before the others look for it.
    let plan = if leads {
        Some(Plan::new(request, grid, &source))
    } else {
        None
    };
    let plan = crate::ranks::agree(&*request.ranks, plan.transpose()).map_err(fail)?;
    let plan = match plan {
        Some(plan) => plan,
        None => Plan::new(request, grid, &source).map_err(fail)?,
    };
    let permissions = &request.permissions;
    let restricted = permissions.restrict(&request.script, &plan.out);
    let _restricted = restricted.map_err(fail)?;
    let (number, of) = request
        .shard
        .unwrap_or((request.ranks.rank(), request.ranks.size()));
    let failures = match request.merge {
        Some(_) => Ok(Vec::new()),
        None => run_cells(request, grid, &plan, (number, of)),
    };
    if leads {
        settle(&plan.out).map_err(fail)?;
    }
    let failures = failures?;
    request.ranks.barrier().map_err(fail)?;
    if !leads {
        return Ok(String::new());
    }
    plan.ensure_same_files().map_err(fail)?;
    let cells = plan.collect();
    if plan.cells.iter().all(|c| Plan::found(c).is_some()) {
        aside::discard(&plan.out);
    }
    let text = report(request, &plan, &cells).map_err(fail)?;
    if !failures.is_empty() {
        let count = error::count(failures.len(), "cell");
        let shown = &failures[..failures.len().min(SHOWN)];
        let rest = match failures.len() - shown.len() {
            0 => String::new(),
            n => format!("\nand {n} more"),
        };
        return Err(Failure {
            message: format!("{text}\n{count} failed:\n{}{rest}", shown.join("\n")),
            code: 1,
        });
    }
    Ok(text)
}

/// Run every n-th cell that has not ended; what failed.
fn run_cells(
    request: &Request,
    grid: &Grid,
    plan: &Plan,
    (number, of): (usize, usize),
) -> std::result::Result<Vec<String>, Failure> {
    let own: Vec<_> = plan.cells.iter().skip(number).step_by(of).collect();
    let open: Vec<_> = own.iter().filter(|c| Plan::found(c).is_none()).collect();
    if open.len() < own.len() && !request.quiet {
        output::remark(format_args!(
            "{} of {} cells have ended before",
            own.len() - open.len(),
            own.len()
        ));
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    let begun = Instant::now();
    let work = || {
        while let Some(cell) = open.get(next.fetch_add(1, Ordering::SeqCst)) {
            if error::interrupted() {
                return;
            }
            let mut own = cell.request.clone();
            own.resume = holds_something(&cell.folder);
            let cell_begun = Instant::now();
            let result = run::run(&own);
            let all = done.fetch_add(1, Ordering::SeqCst) + 1;
            let what = plan.describe(cell);
            let how = match result {
                Ok(_) => "done".to_string(),
                Err(f) if f.code == 130 => return,
                Err(f) => {
                    let mut failures = failures.lock().unwrap_or_else(|e| e.into_inner());
                    failures.push(format!("{what}: {}", f.message));
                    "failed".into()
                }
            };
            if !request.quiet {
                let left = begun.elapsed().as_secs_f64() / all as f64 * (open.len() - all) as f64;
                output::remark(format_args!(
                    "{all} of {}: {what}: {how} in {:.1} s, about {left:.0} s left",
                    open.len(),
                    cell_begun.elapsed().as_secs_f64()
                ));
            }
        }
    };
    std::thread::scope(|s| {
        for _ in 0..grid.jobs.min(open.len()) {
            s.spawn(work);
        }
    });
    if error::interrupted() {
        return Err(Failure {
            message: format!(
                "interrupted; {} has what is there, go on with --resume",
                plan.out.display()
            ),
            code: 130,
        });
    }
    Ok(failures.into_inner().unwrap_or_else(|e| e.into_inner()))
}

/// Write the table, and say it.
fn report(request: &Request, plan: &Plan, cells: &Cells) -> Result<String> {
    let missing = cells.missing();
    ensure!(
        request.merge.is_none() || missing == 0,
        "--merge: {missing} of {} cells have not ended; go on with their shards",
        cells.rows.len()
    );
    let table = plan.out.join("cells.csv");
    store::write_atomic(&table, cells.to_csv().as_bytes())?;
    if request.json {
        return Ok(serde_json::to_string_pretty(&cells.to_map())?);
    }
    let text = match missing {
        0 => cells.table().to_string(),
        n => format!("{n} of {} cells are not there yet", cells.rows.len()),
    };
    Ok(format!("{text}\ntable   {}", table.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_at_their_own_commas() {
        assert_eq!(values("4,8, 16"), ["4", "8", "16"]);
        assert_eq!(
            values("[1, 2],\"a,b\",f(1, 2)"),
            ["[1, 2]", "\"a,b\"", "f(1, 2)"]
        );
        assert_eq!(
            (as_json("1e-3"), as_json("tanh"), as_json("true")),
            (json!(1e-3), json!("tanh"), json!(true))
        );
    }

    #[test]
    fn folders_are_named_by_their_settings_if_those_are_short() {
        let cell = |value: &str| {
            folder_name(
                &[("width".into(), "4".into()), ("x".into(), value.into())],
                6,
            )
        };
        assert_eq!(cell("1e-3"), "width=4,x=1e-3");
        assert_eq!(cell("a/b"), "cell-0007");
        assert_eq!(cell(&"9".repeat(200)), "cell-0007");
    }
}
