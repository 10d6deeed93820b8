//! `grid`: a closure in every cell of a grid of settings.

use super::convert::{self, from_json, to_json};
use super::{Binder, Bound, Call, OrRaise, raise};
use crate::error::Result;
use crate::options::{Kind, Range, Spec, Value, option, optional};
use crate::plot::Figure;
use crate::simulation::cells::Cells;
use crate::simulation::design::{Design, Setting, cells};
use crate::simulation::session::Session;
use anyhow::{Context as _, anyhow};
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, Map};
use std::any::TypeId;
use std::sync::Arc;
use std::time::Instant;

const OPTIONS: &[Spec] = &[
    option(
        "design",
        Kind::Choice(&["full", "random", "halton"]),
        "full",
        "\"full\" all combinations, of which the last name changes fastest · \"random\" points drawn between the two ends of each setting · \"halton\" points that fill the space evenly.",
    ),
    option(
        "points",
        Kind::Int(Range::AtLeast(1.0)),
        "20",
        "How many points, of \"random\" and \"halton\".",
    ),
    option(
        "log",
        Kind::Anything("array of names"),
        "[]",
        "Settings that points spread evenly in their logarithm.",
    ),
    optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "that of the session",
        "Seed of \"random\".",
    ),
    optional(
        "name",
        Kind::Text,
        "grid-1, grid-2, …",
        "Name of the grid, with which the names of its runs begin.",
    ),
];

pub(super) fn bind(b: &mut Binder) {
    b.called(
        "grid(settings, closure, #{ options }) -> Cells",
        "A table of what a closure finds in every cell of a grid of settings: `grid(#{ width: [4, 8, 16], lambda: [1, 10] }, |p| …)`.\n\n\
         The closure gets p with the settings by name, and gives a number, or a map of numbers and texts: a column each. Runs within it have names of their cell, and so seeds of their own; \
         with `--resume` those that have ended are not run again. `print(table)` shows it, `table.column(name)` is a column, `table.save(name)` writes CSV, plot::grid draws it. \
         `ergodic run script.rhai --grid width=4,8,16` makes a grid of whole scripts instead, whose cells can run side by side, on several machines and as a job array.",
        &[TypeId::of::<Map>(), TypeId::of::<FnPtr>(), TypeId::of::<Map>()],
        |call, arguments| {
            let settings = arguments[0].clone().cast::<Map>();
            let options = arguments[2].clone().cast::<Map>();
            grid(call, &settings, &arguments[1].clone().cast(), options)
        },
    )
    .with(
        OPTIONS,
        "let table = grid(#{ n: [1, 2, 3], power: [1, 2] }, |p| #{ value: p.n ** p.power });\ntable.column(\"value\")",
    );
    b.raw(
        "",
        "grid",
        &[TypeId::of::<Map>(), TypeId::of::<FnPtr>()],
        |call, arguments| {
            let settings = arguments[0].clone().cast::<Map>();
            grid(call, &settings, &arguments[1].clone().cast(), Map::new())
        },
    );
    b.function(
        "cells.column(name) -> array",
        "A column of a grid's table: of a setting, or of what was found; `()` where nothing was.",
        |c: &mut Arc<Cells>, name: &str| -> Bound<Array> {
            let all = c.column(name).or_raise()?;
            Ok(all
                .iter()
                .map(|v| {
                    if v.is_null() {
                        Dynamic::UNIT
                    } else {
                        from_json(v)
                    }
                })
                .collect())
        },
    );
    let context = b.context.clone();
    b.function(
        "cells.save(name) -> string",
        "Write the table of a grid as CSV, with all digits, into the folder of the results (or to an absolute path); returns the path.",
        move |c: &mut Arc<Cells>, name: &str| -> Bound<String> {
            let path = context.session.place("cells.save", "", name).or_raise()?;
            if path.extension().is_none_or(|e| e != "csv") {
                return Err(raise(anyhow!("cells.save: the name is \"{name}\", but must end with .csv")));
            }
            if context.session.leads() {
                crate::store::write_atomic(&path, c.to_csv().as_bytes()).or_raise()?;
            }
            Ok(path.display().to_string())
        },
    );
    b.called(
        "plot::grid(cells, value, x) -> Figure",
        "What was found in a grid against one of its settings, a line for each combination of the others.\n\nWith a fourth argument, another setting, it is a colour over both: `plot::grid(table, \"error\", \"width\", \"lambda\")`.",
        &[TypeId::of::<Arc<Cells>>(), TypeId::of::<rhai::ImmutableString>(), TypeId::of::<rhai::ImmutableString>()],
        |_, a| figure(a, None),
    )
    .with(
        &[],
        "let table = grid(#{ n: [1, 2, 3], power: [1, 2] }, |p| #{ value: p.n ** p.power });\nplot::grid(table, \"value\", \"n\")",
    );
    b.raw(
        "plot",
        "grid",
        &[
            TypeId::of::<Arc<Cells>>(),
            TypeId::of::<rhai::ImmutableString>(),
            TypeId::of::<rhai::ImmutableString>(),
            TypeId::of::<rhai::ImmutableString>(),
        ],
        |_, a| figure(a, Some(3)),
    );
}

fn figure(a: &[&mut Dynamic], heat: Option<usize>) -> Bound<Dynamic> {
    let cells = a[0].clone().cast::<Arc<Cells>>();
    let name = |k: usize| a[k].to_string();
    let heat = heat.map(name);
    let figure: Result<Figure> = cells.figure(&name(1), &name(2), heat.as_deref());
    figure.map(Dynamic::from).or_raise()
}

/// Names within a cell begin with that of the cell, until this is dropped.
struct Scope<'a>(&'a Session);

impl<'a> Scope<'a> {
    fn enter(session: &'a Session, name: String) -> Self {
        session.set_scope(name);
        Self(session)
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.0.set_scope(String::new());
    }
}

fn grid(call: &Call, settings: &Map, f: &FnPtr, options: Map) -> Bound<Dynamic> {
    let session = &call.context.session;
    let (all, points, name) = plan(call, settings, options).or_raise()?;
    let names: Vec<String> = all.iter().map(|(name, _)| name.clone()).collect();
    let mut rows = Vec::new();
    let begun = Instant::now();
    for (k, point) in points.iter().enumerate() {
        if session.interrupt.interrupted() {
            return Err(raise(anyhow!(
                "grid '{name}': interrupted in cell {} of {}",
                k + 1,
                points.len()
            )));
        }
        let what: Vec<_> = names
            .iter()
            .zip(point)
            .map(|(n, v)| format!("{n} = {v}"))
            .collect();
        if !session.quiet {
            let left = match k {
                0 => String::new(),
                k => {
                    let each = begun.elapsed().as_secs_f64() / k as f64;
                    format!(", about {:.0} s left", each * (points.len() - k) as f64)
                }
            };
            session.console.remark(&format!(
                "{name}: cell {} of {}, {}{left}",
                k + 1,
                points.len(),
                what.join(", ")
            ));
        }
        let p: Map = names
            .iter()
            .zip(point)
            .map(|(n, v)| (n.as_str().into(), from_json(v)))
            .collect();
        let scope = Scope::enter(session, format!("{name}-{:04}-", k + 1));
        let found = f.call_raw(call.native, None, [Dynamic::from(p)]);
        drop(scope);
        let found = found.map_err(|mut e| {
            within(
                &mut e,
                &format!("in cell {} of '{name}' ({})", k + 1, what.join(", ")),
            );
            e
        })?;
        rows.push((point.clone(), to_json(&found, &|x| x.to_string())));
    }
    let cells = Cells {
        settings: names,
        rows,
    };
    Ok(Dynamic::from(Arc::new(cells)))
}

/// Say in an error where it is.
fn within(e: &mut EvalAltResult, place: &str) {
    match e {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => within(inner, place),
        EvalAltResult::ErrorRuntime(v, _) if v.is_string() => *v = format!("{place}: {v}").into(),
        _ => {}
    }
}

/// The settings, the cells and the name.
fn plan(
    call: &Call,
    settings: &Map,
    options: Map,
) -> Result<(Vec<Setting>, Vec<Vec<serde_json::Value>>, String)> {
    let o = convert::options(call, "grid", OPTIONS, &options)?;
    let one = |(name, values): (&rhai::Identifier, &Dynamic)| {
        let json = to_json(values, &|x| x.to_string());
        let values = match json {
            serde_json::Value::Array(values) => values,
            _ => anyhow::bail!(
                "grid: the values of '{name}' must be an array, as #{{ {name}: [1, 2, 3] }}"
            ),
        };
        Ok((name.to_string(), values))
    };
    let all = settings.iter().map(one).collect::<Result<Vec<_>>>()?;
    let points = o.size("points")?;
    let design = match o.text("design")? {
        "random" => Design::Random(points),
        "halton" => Design::Halton(points),
        _ => Design::Full,
    };
    let log = match o.get("log") {
        Some(Value::List(list)) => {
            let text = |v: &Value| match v {
                Value::Text(t) => Some(t.clone()),
                _ => None,
            };
            list.iter().map(text).collect::<Option<Vec<_>>>()
        }
        _ => None,
    };
    let log = log.context("grid: option 'log' must be an array of names")?;
    let session = &call.context.session;
    let found = cells(
        &all,
        design,
        &log,
        o.opt_int("seed").unwrap_or(session.seed),
    )?;
    let name = session.name_run("grid", o.opt_text("name"))?;
    Ok((all, found, name))
}
