//! Figures in scripts.

use super::{Binder, Bound, OrRaise, raise};
use crate::plot::{self, Axis, Figure, Panel, Scale, Series};
use crate::simulation::run::Run;
use crate::simulation::summary::Summary;
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    b.object::<Figure>("Figure", |f| {
        format!(
            "figure '{}' with {} panels; .save(\"name.svg\") writes it",
            f.title,
            f.panels.len()
        )
    });
    b.function(
        "plot::sweep(run, names) -> Figure",
        "One or several observables of a sweep against temperature, with error bars.\n\n`names` is a string or an array of strings, one panel each. \
         Several runs in an array are drawn in the same panels.",
        |runs: Dynamic, names: Dynamic| sweep(&all_runs(&runs)?, &strings(&names)?),
    )
    .function(
        "plot::traces(run, name) -> Figure",
        "The trace of an observable, one line per chain, burn-in shaded; a sweep shows the first chain of every temperature.",
        |run: Arc<Run>, name: &str| traces(&run, &canonical(name)),
    )
    .function("plot::histogram(run, name) -> Figure", "The distribution of an observable after burn-in, one outline per temperature.", |run: Arc<Run>, name: &str| {
        histogram(&run, &canonical(name))
    })
    .function(
        "plot::curve(x, y, #{ options }) -> Figure",
        "A line through points. Options: `label`, `x_label`, `y_label`, `error` (array), `log_x`, `log_y`, `title`.",
        curve,
    )
    .with(&[], "plot::curve([1, 2, 3], [1.0, 4.0, 9.0], #{ x_label: \"x\", y_label: \"x²\" })");
    b.function("plot::curve(x, y) -> Figure", "", |x: Array, y: Array| {
        curve(x, y, Map::new())
    });
    b.function(
        "plot::stack(figures) -> Figure",
        "Figures below each other.",
        |figures: Array| -> Bound<Figure> { Ok(Figure::stack(all_figures(figures)?)) },
    )
    .function(
        "plot::overlay(figures) -> Figure",
        "The curves of several figures in the panel of the first.",
        |figures: Array| -> Bound<Figure> {
            let mut figures = all_figures(figures)?.into_iter();
            let mut first = figures
                .next()
                .ok_or_else(|| raise(anyhow!("plot::overlay: the array is empty")))?;
            for other in figures {
                for (panel, more) in first.panels.iter_mut().zip(other.panels) {
                    panel.series.extend(more.series);
                }
            }
            Ok(first)
        },
    )
    .function(
        "figure.log_y() -> Figure",
        "Logarithmic vertical axes.",
        |f: &mut Figure| {
            let mut f = f.clone();
            f.panels.iter_mut().for_each(|p| p.y.scale = Scale::Log);
            f
        },
    )
    .function(
        "figure.titled(text) -> Figure",
        "With a title.",
        |f: &mut Figure, text: &str| f.clone().titled(text),
    )
    .function(
        "figure.level(label, y) -> Figure",
        "With a horizontal line in its first panel, as for a baseline.",
        |f: &mut Figure, label: &str, y: Dynamic| -> Bound<Figure> {
            let y = numbers(&[y].into_iter().collect())?[0];
            let mut f = f.clone();
            if let Some(p) = f.panels.first_mut() {
                p.series.push(Series::hline(label, y));
            }
            Ok(f)
        },
    );
    let context = b.context.clone();
    b.function(
        "figure.save(name) -> string",
        "Write the figure as SVG into the folder `figures` of the results (or to an absolute path); returns the path.",
        move |f: &mut Figure, name: &str| -> Bound<String> {
            if name.is_empty() || name.split(['/', '\\']).any(|part| part == "..") {
                return Err(raise(anyhow!("figure.save: the name is \"{name}\", but must be a name within the folder 'figures', or an absolute path")));
            }
            let path = context.session.figure_path(name);
            f.save(&path).or_raise()?;
            Ok(path.display().to_string())
        },
    );
}

/// `error.test` is the same trace as `error_test`, and `error.train` is `error`.
fn canonical(name: &str) -> String {
    name.replace(".train", "").replace('.', "_")
}

fn strings(x: &Dynamic) -> Bound<Vec<String>> {
    let one = |x: &Dynamic| {
        x.clone()
            .into_string()
            .map(|s| canonical(&s))
            .map_err(|t| raise(anyhow!("a name of a trace must be a string, not a {t}")))
    };
    match x.read_lock::<Array>() {
        Some(list) => list.iter().map(one).collect(),
        None => Ok(vec![one(x)?]),
    }
}

fn all_runs(x: &Dynamic) -> Bound<Vec<Arc<Run>>> {
    let one = |x: &Dynamic| {
        let name = x.type_name();
        x.clone()
            .try_cast::<Arc<Run>>()
            .ok_or_else(|| raise(anyhow!("plot::sweep takes runs, not a {name}")))
    };
    match x.read_lock::<Array>() {
        Some(list) => list.iter().map(one).collect(),
        None => Ok(vec![one(x)?]),
    }
}

fn all_figures(figures: Array) -> Bound<Vec<Figure>> {
    let one = |x: Dynamic| {
        let name = x.type_name();
        x.try_cast::<Figure>()
            .ok_or_else(|| raise(anyhow!("expected figures, not a {name}")))
    };
    figures.into_iter().map(one).collect()
}

fn numbers(a: &Array) -> Bound<Vec<f64>> {
    let one = |x: &Dynamic| {
        x.as_float()
            .or_else(|_| x.as_int().map(|i| i as f64))
            .map_err(|t| raise(anyhow!("expected numbers, not a {t}")))
    };
    a.iter().map(one).collect()
}

/// Which axis suits temperatures: logarithmic as soon as they span a factor of three.
fn wide(x: &[f64]) -> bool {
    let (low, high) = x
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(l, h), x| (l.min(*x), h.max(*x)));
    high > 3.0 * low
}

fn sweep(runs: &[Arc<Run>], names: &[String]) -> Bound<Figure> {
    let mut panels = Vec::new();
    for name in names {
        let mut figure: Option<Figure> = None;
        for run in runs {
            let summary = Summary::new(run).or_raise()?;
            let known = summary
                .rows
                .iter()
                .chain(&summary.stats)
                .map(|r| r.name.as_str());
            let row = summary
                .rows
                .iter()
                .chain(&summary.stats)
                .find(|r| r.name == *name);
            let row = row.ok_or_else(|| {
                let known: Vec<_> = known.collect();
                raise(anyhow!(
                    "run '{}' has no trace '{name}'{}",
                    run.info.name,
                    crate::error::did_you_mean(name, known)
                ))
            })?;
            let x = &summary.temperatures;
            let y: Vec<_> = row.numbers.iter().map(|n| n.mean).collect();
            let error: Vec<_> = row.numbers.iter().map(|n| n.mcse_mean).collect();
            let label = if runs.len() > 1 {
                run.info.name.clone()
            } else {
                name.clone()
            };
            let mut one = plot::sweep(
                "temperature T",
                x,
                vec![(label, y, Some(error))],
                wide(x),
                false,
            );
            if x.len() < 3 {
                // A line through two temperatures would claim what lies between.
                let series = one.panels.iter_mut().flat_map(|p| &mut p.series);
                series.for_each(|s| s.kind = plot::Kind::Points);
            }
            match &mut figure {
                Some(f) => f
                    .panels
                    .iter_mut()
                    .zip(one.panels)
                    .for_each(|(p, q)| p.series.extend(q.series)),
                None => figure = Some(one),
            }
        }
        if let Some(mut f) = figure {
            f.panels.iter_mut().for_each(|p| p.y.label = name.clone());
            panels.push(f);
        }
    }
    Ok(if panels.len() == 1 {
        panels.remove(0)
    } else {
        Figure::stack(panels)
    })
}

/// A label per temperature.
fn labels(run: &Run) -> Vec<String> {
    run.info
        .temperatures
        .iter()
        .map(|t| format!("T = {t:.2e}"))
        .collect()
}

fn traces(run: &Arc<Run>, name: &str) -> Bound<Figure> {
    let count = run.info.temperatures.len();
    let (chains, labels): (Vec<usize>, Vec<String>) = if count > 1 {
        (
            (0..count).map(|t| t * run.info.chains).collect(),
            labels(run),
        )
    } else {
        (
            (0..run.info.chains).collect(),
            (0..run.info.chains).map(|c| format!("chain {c}")).collect(),
        )
    };
    let values: crate::error::Result<Vec<_>> =
        chains.into_iter().map(|c| run.trace(name, 0, c)).collect();
    Ok(plot::traces(
        name,
        &values.or_raise()?,
        &labels,
        run.info.warm_draws,
    ))
}

fn histogram(run: &Arc<Run>, name: &str) -> Bound<Figure> {
    let count = run.info.temperatures.len();
    let values: crate::error::Result<Vec<_>> = (0..count)
        .map(|t| Ok(run.draws(name, 0, t, true)?.concat()))
        .collect();
    Ok(plot::histogram(name, &values.or_raise()?, &labels(run)))
}

fn curve(x: Array, y: Array, options: Map) -> Bound<Figure> {
    const KNOWN: [&str; 7] = [
        "label", "x_label", "y_label", "error", "log_x", "log_y", "title",
    ];
    if let Some(odd) = options.keys().find(|k| !KNOWN.contains(&k.as_str())) {
        let hint = crate::error::did_you_mean(odd, KNOWN);
        return Err(raise(anyhow!("plot::curve has no option '{odd}'{hint}")));
    }
    let text = |k: &str| options.get(k).map(ToString::to_string).unwrap_or_default();
    let flag = |k: &str| options.get(k).is_some_and(|v| v.as_bool().unwrap_or(false));
    let axis = |k: &str, log: bool| {
        if log {
            Axis::log(text(k))
        } else {
            Axis::linear(text(k))
        }
    };
    let (x, y) = (numbers(&x)?, numbers(&y)?);
    if x.len() != y.len() {
        return Err(raise(anyhow!(
            "plot::curve: {} x values for {} y values",
            x.len(),
            y.len()
        )));
    }
    let mut series = if x.len() > 60 {
        Series::line(text("label"), x, y)
    } else {
        Series::line_points(text("label"), x, y)
    };
    if let Some(error) = options
        .get("error")
        .and_then(|e| e.read_lock::<Array>().map(|a| numbers(&a)))
    {
        series = series.with_error(error?);
    }
    let panel = Panel::new(
        axis("x_label", flag("log_x")),
        axis("y_label", flag("log_y")),
        vec![series],
    );
    Ok(Figure::of(panel).titled(text("title")))
}
