//! Figures in scripts: of runs, and what is done with figures.

use super::binder::Binder;
use super::convert::{number, numbers};
use super::words::a_kind;
use super::{Bound, OrRaise, drawings, raise};
use crate::plot::{Colours, Figure, Panel, Scale, Series};
use crate::report::figures;
use crate::simulation::evidence::Transition;
use crate::simulation::exchange::LadderReport;
use crate::simulation::loo::Loo;
use crate::simulation::run::Run;
use anyhow::anyhow;
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub(super) fn bind(b: &mut Binder) {
    b.object::<Figure>("Figure", |f| {
        format!(
            "figure '{}' with {} panels; .save(\"name.svg\") writes it, as SVG, PDF or PNG",
            f.title,
            f.panels.len()
        )
    });
    of_runs(b);
    drawings::bind(b);
    together(b);
    changed(b);
    styled(b);
    let context = b.context.clone();
    b.function(
        "figure.save(name) -> string",
        "Write the figure into the folder `figures` of the results (or to an absolute path), as SVG, PDF or PNG by the name's ending; returns the path.",
        move |f: &mut Figure, name: &str| -> Bound<String> {
            let path = context.session.figure_path("figure.save", name).or_raise()?;
            if context.session.leads() {
                f.save(&path).or_raise()?;
            }
            context.session.note_figure(&path);
            Ok(path.display().to_string())
        },
    );
}

/// Figures of runs.
fn of_runs(b: &mut Binder) {
    b.function(
        "plot::sweep(run, names) -> Figure",
        "One or several observables of a sweep against temperature, with error bars.\n\n`names` is a string or an array of strings, one panel each. \
         Several runs in an array are drawn in the same panels.",
        |runs: Dynamic, names: Dynamic| figures::sweep_of(&all_runs(&runs)?, &strings(&names)?).or_raise(),
    )
    .function(
        "plot::traces(run, name) -> Figure",
        "The trace of an observable, one line per chain, burn-in shaded; a sweep shows the first chain of every temperature.",
        |run: Arc<Run>, name: &str| -> Bound<Figure> { figures::traces(&run, name).or_raise() },
    )
    .function("plot::histogram(run, name) -> Figure", "The distribution of an observable after burn-in, one outline per temperature.", |run: Arc<Run>, name: &str| -> Bound<Figure> {
        figures::histogram(&run, name).or_raise()
    })
    .function(
        "plot::calibration(run, split) -> Figure",
        "How often predictions are right against how sure they are: a reliability diagram, a line per temperature.\n\n\
         Over 15 bins of the confidence of which those with fewer than 5 rows are left out. \
         Bars are the standard deviation of the fraction if predictions are as sure as right. Needs `predict: [split]`.",
        |run: Arc<Run>, split: &str| -> Bound<Figure> { figures::calibration(&run, split).or_raise() },
    )
    .with(
        &[],
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(), #{ energy: \"sum\", prior: prior::gaussian(1) });\n\
         plot::calibration(sample(t, sampler::hmc(), #{ steps: 200, chains: 2, every: 5, predict: [\"test\"] }), \"test\")",
    )
    .function(
        "plot::khat(loo) -> Figure",
        "k̂ of every example that was left out, and the value above which it is not reliable.",
        |x: Arc<Loo>| -> Figure { x.figure() },
    )
    .with(
        &[],
        "let t = target(model::mlp(#{ layers: [64, 10] }), dataset::digits(#{ per_class: 5 }), #{ energy: \"sum\", prior: prior::gaussian(1) });\n\
         plot::khat(loo(sample(t, sampler::hmc(), #{ steps: 200, chains: 2, keep: 2 })))",
    )
    .defaulted(
        "plot::overlaps(overlaps, name) -> Figure",
        "P(q), the distribution of the overlap of two replicas, a line per temperature with a strip of one standard error, from what overlaps(run) gives.\n\n\
         `name` is one of its quantities: \"overlap\" if it is left out, or \"output_overlap\", \"distance2\", \"output_distance2\", \"disagreement\". `overlaps(run, #{ reference: start }).reference` has those with a point.",
        "overlap".to_string(),
        |found: rhai::Map, name: &str| overlaps(&found, name),
    )
    .with(&[], "plot::overlaps(overlaps(sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 4, keep: 10 })), \"distance2\")")
    .defaulted(
        "plot::ranks(run, name, temperature) -> Figure",
        "How the draws of each healthy chain rank among those of all chains, at one temperature (by its index; 0 if it is left out).\n\n\
         Outlines that are flat at 1 belong to chains that agree; a slope, a hill or a valley shows which chain is too high, too narrow or too wide (Vehtari et al. 2021).",
        0,
        |run: Arc<Run>, name: &str, t: i64| ranks(&run, name, t),
    )
    .with(&[], "plot::ranks(sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 200, chains: 4, observe: [observable::cost()] }), \"cost\", 0)");
}

/// P(q), from what `overlaps` gives.
fn overlaps(found: &rhai::Map, name: &str) -> Bound<Figure> {
    let wrong = || {
        raise(anyhow!(
            "plot::overlaps takes what overlaps(run) gives, and the name of a quantity in it; there is no '{name}'"
        ))
    };
    let within = |of: &rhai::Map, key: &str| {
        let map = of.get(key).and_then(|x| x.clone().try_cast::<rhai::Map>());
        map.ok_or_else(wrong)
    };
    let list = |of: &rhai::Map, key: &str| {
        let list = of.get(key).and_then(|x| x.clone().try_cast::<Array>());
        list.ok_or_else(wrong)
    };
    let rows = |of: &rhai::Map, key: &str| {
        let row = |x: Dynamic| numbers(&x.try_cast::<Array>().ok_or_else(wrong)?);
        list(of, key)?
            .into_iter()
            .map(row)
            .collect::<Bound<Vec<_>>>()
    };
    let of = within(&within(found, "statistics")?, name)?;
    let labels = numbers(&list(found, "temperatures")?)?;
    let densities = rows(&of, "density")?.into_iter();
    let each = labels
        .iter()
        .zip(densities.zip(rows(&of, "density_error")?));
    let names = crate::plot::labels(&labels);
    let each = each
        .zip(names)
        .map(|((_, (density, error)), name)| (name, density, error));
    let label = match name {
        "overlap" => "q".to_string(),
        other => other.replace('_', " "),
    };
    let edges = numbers(&list(&of, "edges")?)?;
    Ok(crate::plot::distributions(&label, &edges, each.collect()).by_temperature(&labels))
}

/// Several figures in one.
fn together(b: &mut Binder) {
    b.function(
        "plot::stack(figures) -> Figure",
        "Figures below each other.",
        |figures: Array| -> Bound<Figure> { Ok(Figure::stack(all_figures(figures)?)) },
    )
    .function(
        "plot::beside(figures, columns) -> Figure",
        "Figures side by side, so many in a row.",
        |figures: Array, columns: i64| -> Bound<Figure> {
            let columns = usize::try_from(columns).ok().filter(|c| *c > 0);
            let columns = columns
                .ok_or_else(|| raise(anyhow!("plot::beside: there must be at least one column")))?;
            Ok(Figure::beside(all_figures(figures)?, columns))
        },
    )
    .with(
        &[],
        "plot::beside([plot::curve([1, 2], [1, 4]), plot::curve([1, 2], [1, 8])], 2)",
    );
    b.function(
        "plot::overlay(figures) -> Figure",
        "The curves of several figures in the panel of the first.",
        overlay,
    );
}

/// Figures like another one, but for axes, a title or lines.
fn changed(b: &mut Binder) {
    b.function(
        "figure.log_x() -> Figure",
        "Logarithmic horizontal axes.",
        |f: &mut Figure| with_panels(f, |p| p.x.scale = Scale::Log),
    )
    .with(&[], "plot::curve([1, 10, 100], [1, 2, 3]).log_x()");
    b.function(
        "figure.log_y() -> Figure",
        "Logarithmic vertical axes.",
        |f: &mut Figure| with_panels(f, |p| p.y.scale = Scale::Log),
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
            Ok(with_line(f, Series::hline(label, number(&y)?)))
        },
    )
    .function(
        "figure.vline(label, x) -> Figure",
        "With a vertical line in its first panel, as for a threshold.",
        |f: &mut Figure, label: &str, x: Dynamic| -> Bound<Figure> {
            Ok(with_line(f, Series::vline(label, number(&x)?)))
        },
    )
    .with(
        &[],
        "plot::curve([1, 2, 3], [1, 4, 9]).vline(\"threshold\", 1.5)",
    );
    b.function(
        "figure.x_range(lowest, highest) -> Figure",
        "With horizontal axes from one number to another.",
        |f: &mut Figure, low: Dynamic, high: Dynamic| -> Bound<Figure> {
            let range = drawings::range("figure.x_range", &low, &high)?;
            Ok(with_panels(f, |p| p.x.range = Some(range)))
        },
    )
    .with(&[], "plot::curve([1, 2, 3], [1, 4, 9]).x_range(0, 4)");
    b.function(
        "figure.y_range(lowest, highest) -> Figure",
        "With vertical axes from one number to another.",
        |f: &mut Figure, low: Dynamic, high: Dynamic| -> Bound<Figure> {
            let range = drawings::range("figure.y_range", &low, &high)?;
            Ok(with_panels(f, |p| p.y.range = Some(range)))
        },
    )
    .with(&[], "plot::curve([1, 2, 3], [1, 4, 9]).y_range(0, 10)");
}

/// Figures in another style.
fn styled(b: &mut Binder) {
    b.function(
        "figure.styled(#{ options }) -> Figure",
        "In another style, as a paper or a slide needs it.\n\n\
         `preset`: \"paper\" (one column, 86 mm by 64 mm, letters of 8 points, the legend below), \"slide\" (254 mm by 143 mm, 20 points) or \"screen\". \
         `size`: [width, height] of the whole figure in millimetres. `font_size`: of the axes' names, in points. \
         `legend`: \"beside\", \"below\" or \"none\"; `labels`: an array of names for it. \
         `palette`: \"okabe_ito\", \"viridis\", \"grey\" or an array of colours as \"#1f77b4\"; series in an order go from the first colour to the last. \
         `theme`: \"light\" or \"dark\". `dpi`: of a PNG (300). \
         `title`, `x_label`, `y_label`: texts; `x_range`, `y_range`: [lowest, highest]; `x_ticks`, `y_ticks`: where numbers stand; `log_x`, `log_y`; \
         `equal`: a unit is as long along x as along y. What is about axes holds for all panels.",
        drawings::styled,
    )
    .with(
        &[],
        "plot::curve([1, 2, 3], [1, 4, 9], #{ y_label: \"y\" }).styled(#{ preset: \"paper\", size: [86, 50], x_label: \"x\", x_ticks: [1, 2, 3] })",
    );
}

/// A copy with every panel changed.
fn with_panels(f: &Figure, change: impl FnMut(&mut Panel)) -> Figure {
    let mut f = f.clone();
    f.panels.iter_mut().for_each(change);
    f
}

/// A copy with one line more in the first panel.
fn with_line(f: &Figure, line: Series) -> Figure {
    let mut f = f.clone();
    if let Some(p) = f.panels.first_mut() {
        p.series.push(line);
    }
    f
}

fn overlay(figures: Array) -> Bound<Figure> {
    let mut figures = all_figures(figures)?.into_iter();
    let mut first = figures
        .next()
        .ok_or_else(|| raise(anyhow!("plot::overlay: the array is empty")))?;
    for other in figures {
        for (panel, more) in first.panels.iter_mut().zip(other.panels) {
            panel.series.extend(more.series);
            panel.y.label = common(&panel.y.label, &more.y.label);
            match (&mut panel.colours, more.colours) {
                (Colours::By(_, own), Colours::By(_, values)) => own.extend(values),
                // What has no number has no place in a bar.
                (own @ Colours::By(..), _) => *own = Colours::Order,
                _ => {}
            }
        }
    }
    Ok(first)
}

/// What two labels end with, word by word ("error" of "training error" and "test error"), or the first where that is nothing.
fn common(a: &str, b: &str) -> String {
    let words = a.rsplit(' ').zip(b.rsplit(' '));
    let count = words.take_while(|(a, b)| a == b).count();
    let from = a.split(' ').count() - count;
    match count {
        0 => a.into(),
        _ => a.split(' ').skip(from).collect::<Vec<_>>().join(" "),
    }
}

fn ranks(run: &Run, name: &str, temperature: i64) -> Bound<Figure> {
    let t = usize::try_from(temperature).map_err(|_| {
        raise(anyhow!(
            "{temperature} is not an index; indices count from 0"
        ))
    })?;
    figures::ranks(run, name, t).or_raise()
}

fn strings(x: &Dynamic) -> Bound<Vec<String>> {
    let one = |x: &Dynamic| {
        x.clone().into_string().map_err(|t| {
            raise(anyhow!(
                "a name of a trace must be a string, not {}",
                a_kind(t)
            ))
        })
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
            .ok_or_else(|| raise(anyhow!("plot::sweep takes runs, not {}", a_kind(name))))
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
            .ok_or_else(|| raise(anyhow!("expected figures, not {}", a_kind(name))))
    };
    figures.into_iter().map(one).collect()
}

/// Figures of ladders.
pub(super) fn ladders(b: &mut Binder) {
    b.function(
        "plot::index_process(run) -> Figure",
        "Where replicas of an exchange are, how often neighbours swap, and how replicas get through the ladder.\n\n\
         The rungs of four replicas of the first ladder in the first 250 records after burn-in; the swap rate of every pair, and the flow from the cold end beside that of equal rejections.",
        |r: Arc<Run>| -> Bound<Figure> {
            LadderReport::new(&r).map(figures::index_process).or_raise()
        },
    )
    .function(
        "plot::energies(run) -> Figure",
        "Histograms of the tempered energy of an exchange on every rung: neighbours must overlap for swaps and for evidence.",
        |r: Arc<Run>| -> Bound<Figure> { figures::energies(&r).or_raise() },
    )
    .function(
        "plot::barrier(run) -> Figure",
        "The communication barrier Λ of an exchange from the hot end up to T, and its local form -dΛ/d ln T: where it is steep, rungs must be close.",
        |r: Arc<Run>| -> Bound<Figure> { figures::barrier(&r).or_raise() },
    )
    .function(
        "plot::heat_capacity(transition) -> Figure",
        "The heat capacity along a ladder with its error, and the 68 % interval of the temperature where it peaks.",
        |t: Arc<Transition>| figures::heat_capacity(&t),
    );
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn a_label_is_what_those_of_two_figures_end_with() {
        assert_eq!(common("training error", "test error"), "error");
        assert_eq!(common("error", "test error"), "error");
        assert_eq!(common("cost", "cost"), "cost");
        assert_eq!(common("cost", "energy"), "cost");
    }
}
