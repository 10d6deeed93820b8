//! Figures of a script's own numbers.

use super::binder::Binder;
use super::convert::{number, numbers};
use super::words::a_kind;
use super::{Bound, OrRaise, raise};
use crate::plot::{self, Axis, Figure, Legend, Panel, Scale, Series, Style};
use anyhow::anyhow;
use rhai::{Array, Dynamic, Map};

/// Options of every figure with one panel.
const AXES: [&str; 5] = ["x_label", "y_label", "log_x", "log_y", "title"];

/// How many contours there are when the script does not say, and how many there may be.
const LEVELS: usize = 10;
const MOST_LEVELS: i64 = 200;

/// The same for bins along each axis of a density.
const BINS: usize = 50;
const MOST_BINS: i64 = 1000;

pub(super) fn bind(b: &mut Binder) {
    b.defaulted(
        "plot::curve(x, y, #{ options }) -> Figure",
        "A line through points. Options: `label`, `x_label`, `y_label`, `error` (array), `log_x`, `log_y`, `title`.",
        Map::new(),
        |x: Array, y: Array, options: Map| curve("plot::curve", x, y, options),
    )
    .with(&[], "plot::curve([1, 2, 3], [1.0, 4.0, 9.0], #{ x_label: \"x\", y_label: \"x²\" })");
    b.defaulted(
        "plot::points(x, y, #{ options }) -> Figure",
        "Markers at points, not joined. Options: `label`, `x_label`, `y_label`, `error` (array), `log_x`, `log_y`, `title`.",
        Map::new(),
        |x: Array, y: Array, options: Map| curve("plot::points", x, y, options),
    )
    .with(&[], "plot::points([1, 2, 3], [1.1, 3.9, 9.2], #{ label: \"measured\", error: [0.2, 0.2, 0.3] })");
    b.defaulted(
        "plot::band(x, lower, upper, #{ options }) -> Figure",
        "The strip between two curves. Options: `label`, `x_label`, `y_label`, `log_x`, `log_y`, `title`.",
        Map::new(),
        band,
    )
    .with(&[], "plot::band([0, 1, 2], [0.8, 0.5, 0.3], [1.2, 0.8, 0.5], #{ label: \"one standard deviation\" })");
    b.defaulted(
        "plot::density(x, y, #{ options }) -> Figure",
        "How densely the points (x, y) lie: a two-dimensional histogram, the denser the darker.\n\n\
         Options: `bins` along each axis (50), `x_range` and `y_range` (arrays of two numbers), `label`, `x_label`, `y_label`, `title`.",
        Map::new(),
        density,
    )
    .with(&[], "plot::density([0.1, 0.2, 0.2, 0.9], [1.0, 1.1, 1.2, 0.3], #{ bins: 4, x_range: [0, 1], x_label: \"w0\", y_label: \"w1\" })");
    b.defaulted(
        "plot::contours(x, y, z, #{ options }) -> Figure",
        "Lines of equal z on the grid of x and y, from blue (the lowest level) to red (the highest).\n\n\
         `z` is an array of rows, one for each y, with one number for each x. \
         Options: `levels` (how many, 10 at equal distances, or an array of values), `label`, `x_label`, `y_label`, `log_x`, `log_y`, `title`.",
        Map::new(),
        contours,
    )
    .with(&[], "plot::contours([0, 1, 2], [0, 1], [[0.0, 1.0, 4.0], [1.0, 2.0, 5.0]], #{ levels: [0.5, 1.5, 3.0], label: \"U\" })");
    b.defaulted(
        "plot::heat(rows, #{ options }) -> Figure",
        "A heat map of a matrix: a colour for every number, from blue (`low` and less) through white to red (`high` and more), and the number where there is room.\n\n\
         `rows` is an array of rows, the first at the bottom. A number that is not finite is a crossed cell. Options: `low` and `high` (minus and plus the largest size), `x` and `y` (the middles of columns and rows; 0, 1, 2, …), `x_label`, `y_label`, `log_x`, `log_y`, `title`.",
        Map::new(),
        heat,
    )
    .with(&[], "plot::heat([[1.0, -0.4], [-0.4, 1.0]], #{ low: -1, high: 1, title: \"correlations\" })");
    b.defaulted(
        "plot::ridges(curves, #{ options }) -> Figure",
        "Curves in an order, as by time, each shifted upwards above the one before, with its label at the left.\n\n\
         `curves` is an array of maps `#{ label, x, y }`. Options: `reference` (such a map, drawn dashed into each curve), `x_label`, `y_label`, `title`.",
        Map::new(),
        ridges,
    )
    .with(
        &[],
        "plot::ridges([#{ label: \"t = 1\", x: [0, 1, 2], y: [0, 2, 0] }, #{ label: \"t = 9\", x: [0, 1, 2], y: [0, 1, 1] }], #{ reference: #{ label: \"flat\", x: [0, 2], y: [0.7, 0.7] } })",
    );
}

/// The options of a call: known ones only.
struct Given {
    call: &'static str,
    options: Map,
}

impl Given {
    fn new(call: &'static str, options: Map, known: &[&[&'static str]]) -> Bound<Self> {
        let known: Vec<&str> = known.concat();
        let mut options = options;
        options.retain(|_, value| !value.is_unit());
        if let Some(odd) = options.keys().find(|k| !known.contains(&k.as_str())) {
            let hint = crate::error::did_you_mean(odd, known);
            return Err(raise(anyhow!("{call} has no option '{odd}'{hint}")));
        }
        Ok(Self { call, options })
    }

    fn text(&self, name: &str) -> String {
        let value = self.options.get(name);
        value.map(ToString::to_string).unwrap_or_default()
    }

    fn axis(&self, label: &str, log: &str) -> Axis {
        let is_log = self.options.get(log).map(|v| v.as_bool().unwrap_or(false));
        match is_log {
            Some(true) => Axis::log(self.text(label)),
            _ => Axis::linear(self.text(label)),
        }
    }

    fn wrong(&self, name: &str, wanted: &str, got: &Dynamic) -> Box<rhai::EvalAltResult> {
        raise(anyhow!(
            "{}: the option '{name}' is {got}, but must be {wanted}",
            self.call
        ))
    }

    fn array(&self, name: &str) -> Bound<Option<Vec<f64>>> {
        let Some(value) = self.options.get(name) else {
            return Ok(None);
        };
        match value.read_lock::<Array>() {
            Some(list) => numbers(&list).map(Some),
            None => Err(self.wrong(name, "an array of numbers", value)),
        }
    }

    fn range(&self, name: &str) -> Bound<Option<(f64, f64)>> {
        match (self.array(name)?.as_deref(), self.options.get(name)) {
            (Some([low, high]), _) if low < high && (high - low).is_finite() => {
                Ok(Some((*low, *high)))
            }
            (_, Some(odd)) => Err(self.wrong(name, "[lowest, highest]", odd)),
            _ => Ok(None),
        }
    }

    fn count(&self, name: &str, default: usize, most: i64) -> Bound<usize> {
        let Some(value) = self.options.get(name) else {
            return Ok(default);
        };
        match value.as_int() {
            Ok(count) if (1..=most).contains(&count) => Ok(count as usize),
            _ => Err(self.wrong(name, &format!("a whole number from 1 to {most}"), value)),
        }
    }

    /// A figure of these series, with the axes that the options say.
    fn figure(&self, series: Vec<Series>) -> Figure {
        let (x, y) = (self.axis("x_label", "log_x"), self.axis("y_label", "log_y"));
        Figure::of(Panel::new(x, y, series)).titled(self.text("title"))
    }
}

/// As many of one as of the other.
fn same_length(call: &str, (one, a): (&str, usize), (other, b): (&str, usize)) -> Bound<()> {
    match a == b {
        true => Ok(()),
        false => Err(raise(anyhow!("{call}: {a} {one} for {b} {other}"))),
    }
}

fn curve(call: &'static str, x: Array, y: Array, options: Map) -> Bound<Figure> {
    let given = Given::new(call, options, &[&["label", "error"], &AXES])?;
    let (x, y) = (numbers(&x)?, numbers(&y)?);
    same_length(call, ("x values", x.len()), ("y values", y.len()))?;
    let label = given.text("label");
    let mut series = match call {
        "plot::points" => Series::points(label, x, y),
        _ if x.len() > 60 => Series::line(label, x, y),
        _ => Series::line_points(label, x, y),
    };
    if let Some(error) = given.array("error")? {
        series = series.with_error(error);
    }
    Ok(given.figure(vec![series]))
}

fn band(x: Array, lower: Array, upper: Array, options: Map) -> Bound<Figure> {
    let call = "plot::band";
    let given = Given::new(call, options, &[&["label"], &AXES])?;
    let (x, lower, upper) = (numbers(&x)?, numbers(&lower)?, numbers(&upper)?);
    for (name, bound) in [("lower values", &lower), ("upper values", &upper)] {
        same_length(call, ("x values", x.len()), (name, bound.len()))?;
    }
    Ok(given.figure(vec![Series::band(given.text("label"), x, lower, upper)]))
}

fn density(x: Array, y: Array, options: Map) -> Bound<Figure> {
    let call = "plot::density";
    let known = [
        "bins", "x_range", "y_range", "label", "x_label", "y_label", "title",
    ];
    let given = Given::new(call, options, &[&known])?;
    let (x, y) = (numbers(&x)?, numbers(&y)?);
    same_length(call, ("x values", x.len()), ("y values", y.len()))?;
    let bins = given.count("bins", BINS, MOST_BINS)?;
    let (across, upward) = (given.range("x_range")?, given.range("y_range")?);
    let series = plot::density_within(&x, &y, bins, across, upward, &given.text("label"));
    let ends = |edges: &[f64]| edges.first().copied().zip(edges.last().copied());
    let (across, upward) = (ends(&series.x), ends(&series.y));
    let mut figure = given.figure(vec![series]);
    for panel in &mut figure.panels {
        (panel.x.range, panel.y.range) = (across, upward);
    }
    Ok(figure)
}

fn contours(x: Array, y: Array, z: Array, options: Map) -> Bound<Figure> {
    let call = "plot::contours";
    let given = Given::new(call, options, &[&["levels", "label"], &AXES])?;
    let (x, y) = (numbers(&x)?, numbers(&y)?);
    same_length(call, ("rows of z", z.len()), ("y values", y.len()))?;
    let values = matrix(call, "z", &z, Some(x.len()))?.concat();
    let levels = match given.options.get("levels") {
        Some(list) if list.is_array() => given.array("levels")?.unwrap_or_default(),
        _ => plot::even_levels(&values, given.count("levels", LEVELS, MOST_LEVELS)?),
    };
    let series = Series::contours(given.text("label"), (x, y), values, levels);
    Ok(given.figure(vec![series]))
}

/// Rows of numbers, each with as many as there are x values, or as the first has.
fn matrix(call: &str, name: &str, z: &Array, width: Option<usize>) -> Bound<Vec<Vec<f64>>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(z.len());
    for (i, row) in z.iter().enumerate() {
        let Some(row) = row.read_lock::<Array>() else {
            let got = a_kind(row.type_name());
            return Err(raise(anyhow!(
                "{call}: {name} must be an array of rows, but {name}[{i}] is {got}"
            )));
        };
        let of_row = format!("numbers in {name}[{i}]");
        let (what, width) = match width {
            Some(width) => ("x values", width),
            None => ("in the first row", rows.first().map_or(row.len(), Vec::len)),
        };
        same_length(call, (&of_row, row.len()), (what, width))?;
        rows.push(numbers(&row)?);
    }
    Ok(rows)
}

fn heat(rows: Array, options: Map) -> Bound<Figure> {
    let call = "plot::heat";
    let given = Given::new(call, options, &[&["low", "high", "x", "y"], &AXES])?;
    let rows = matrix(call, "rows", &rows, None)?;
    let (wide, high) = (rows.first().map_or(0, Vec::len), rows.len());
    let values = rows.concat();
    let finite = values.iter().filter(|x| x.is_finite());
    let most = finite.fold(0.0, |m: f64, x| m.max(x.abs()));
    let bound = |name: &str, own: f64| given.options.get(name).map_or(Ok(own), number);
    let own = if most > 0.0 { most } else { 1.0 };
    let range = (bound("low", -own)?, bound("high", own)?);
    if !(range.0 < range.1 && (range.1 - range.0).is_finite()) {
        let (low, high) = range;
        return Err(raise(anyhow!(
            "{call}: the colours go from {low} to {high}, but must go upwards"
        )));
    }
    let (across, upward) = (
        given.axis("x_label", "log_x"),
        given.axis("y_label", "log_y"),
    );
    let middles = |name: &str, count: usize, what| -> Bound<Vec<f64>> {
        let counted = || (0..count).map(|k| k as f64).collect();
        let at = given.array(name)?.unwrap_or_else(counted);
        let named = format!("numbers in the option '{name}'");
        same_length(call, (&named, at.len()), (what, count))?;
        Ok(at)
    };
    let x = plot::edges(&middles("x", wide, "columns")?, across.scale);
    let y = plot::edges(&middles("y", high, "rows")?, upward.scale);
    let panel = plot::heat((across, upward), (x, y), values, range);
    Ok(Figure::of(panel).titled(given.text("title")))
}

fn ridges(curves: Array, options: Map) -> Bound<Figure> {
    let known = ["reference", "x_label", "y_label", "title"];
    let given = Given::new("plot::ridges", options, &[&known])?;
    let reference = given.options.get("reference").map(labelled).transpose()?;
    let curves: Bound<Vec<_>> = curves.iter().map(labelled).collect();
    let mut panel = plot::ridges(&given.text("x_label"), curves?, reference);
    panel.y.label = given.text("y_label");
    Ok(Figure::of(panel).titled(given.text("title")))
}

/// A map `#{ label, x, y }`.
fn labelled(curve: &Dynamic) -> Bound<(String, Vec<f64>, Vec<f64>)> {
    let call = "plot::ridges";
    let Some(map) = curve.read_lock::<Map>() else {
        let got = a_kind(curve.type_name());
        return Err(raise(anyhow!(
            "{call}: a curve must be a map #{{ label, x, y }}, not {got}"
        )));
    };
    let given = Given::new(
        "a curve of plot::ridges",
        map.clone(),
        &[&["label", "x", "y"]],
    )?;
    let needed = |name: &str| {
        let missing = || raise(anyhow!("{call}: a curve needs '{name}'"));
        given.array(name)?.ok_or_else(missing)
    };
    let (x, y) = (needed("x")?, needed("y")?);
    same_length(call, ("x values", x.len()), ("y values", y.len()))?;
    Ok((given.text("label"), x, y))
}

/// Options of a style.
const STYLE: [&str; 17] = [
    "preset",
    "size",
    "font_size",
    "legend",
    "labels",
    "palette",
    "theme",
    "dpi",
    "title",
    "x_label",
    "y_label",
    "x_range",
    "y_range",
    "x_ticks",
    "y_ticks",
    "log_x",
    "log_y",
];

/// A figure in another style.
pub(super) fn styled(figure: &mut Figure, options: Map) -> Bound<Figure> {
    let given = Given::new("figure.styled", options, &[&STYLE, &["equal"]])?;
    let mut figure = figure.clone();
    figure.style = given.style(figure.style)?;
    if given.has("title") {
        figure.title = given.text("title");
    }
    for (label, range, ticks, log, axis) in [
        (
            "x_label",
            "x_range",
            "x_ticks",
            "log_x",
            (|p| &mut p.x) as fn(&mut Panel) -> &mut Axis,
        ),
        ("y_label", "y_range", "y_ticks", "log_y", |p| &mut p.y),
    ] {
        let (range, ticks, log) = (given.range(range)?, given.array(ticks)?, given.flag(log)?);
        for panel in &mut figure.panels {
            let axis = axis(panel);
            if given.has(label) {
                axis.label = given.text(label);
            }
            axis.range = range.or(axis.range);
            match log {
                Some(true) => axis.scale = Scale::Log,
                Some(false) => axis.scale = Scale::Linear,
                None => {}
            }
            if let Some(ticks) = &ticks {
                axis.ticks = ticks.iter().map(|x| (*x, plot::number(*x))).collect();
            }
        }
    }
    if let Some(equal) = given.flag("equal")? {
        figure.panels.iter_mut().for_each(|p| p.equal = equal);
    }
    if let Some(names) = given.texts("labels")? {
        let series = figure.panels.iter_mut().flat_map(|p| &mut p.series);
        let named: Vec<_> = series.filter(|s| !s.label.is_empty()).collect();
        same_length(
            given.call,
            ("labels", names.len()),
            ("series with a label", named.len()),
        )?;
        named
            .into_iter()
            .zip(names)
            .for_each(|(s, name)| s.label = name);
    }
    Ok(figure)
}

impl Given {
    fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    fn flag(&self, name: &str) -> Bound<Option<bool>> {
        let flag = |value: &Dynamic| {
            value
                .as_bool()
                .map_err(|_| self.wrong(name, "true or false", value))
        };
        self.options.get(name).map(flag).transpose()
    }

    fn texts(&self, name: &str) -> Bound<Option<Vec<String>>> {
        let Some(value) = self.options.get(name) else {
            return Ok(None);
        };
        let wrong = || self.wrong(name, "an array of texts", value);
        let list = value.read_lock::<Array>().ok_or_else(wrong)?;
        let text = |x: &Dynamic| x.clone().into_string().map_err(|_| wrong());
        list.iter().map(text).collect::<Bound<_>>().map(Some)
    }

    /// One of some words.
    fn word<T>(
        &self,
        name: &str,
        known: &[&str],
        of: impl Fn(&str) -> Option<T>,
    ) -> Bound<Option<T>> {
        let Some(value) = self.options.get(name) else {
            return Ok(None);
        };
        let word = value.to_string();
        match of(&word) {
            Some(found) => Ok(Some(found)),
            None => Err(raise(anyhow!(
                "{}: the option '{name}' is \"{word}\", but must be one of {}{}",
                self.call,
                known.join(", "),
                crate::error::did_you_mean(&word, known.iter().copied())
            ))),
        }
    }

    /// A style like this one but for what the options say.
    fn style(&self, own: Style) -> Bound<Style> {
        let preset = self.word("preset", &Style::PRESETS, Style::preset)?;
        let mut style = match preset {
            Some(preset) => Style {
                palette: own.palette,
                dark: own.dark,
                ..preset
            },
            None => own,
        };
        if let Some(value) = self.options.get("size") {
            style.size = match self.array("size")?.as_deref() {
                Some([width, height]) => Some((*width, *height)),
                _ => return Err(self.wrong("size", "[width, height] in millimetres", value)),
            };
        }
        for (name, place) in [("font_size", &mut style.font_size), ("dpi", &mut style.dpi)] {
            if let Some(value) = self.options.get(name) {
                *place = number(value)?;
            }
        }
        if let Some(legend) = self.word("legend", &Legend::NAMES, Legend::named)? {
            style.legend = legend;
        }
        let themes = |name: &str| ["light", "dark"].iter().position(|own| *own == name);
        if let Some(theme) = self.word("theme", &["light", "dark"], themes)? {
            style.dark = theme == 1;
        }
        style.palette = match self.options.get("palette") {
            None => style.palette,
            Some(list) if list.is_array() => {
                let colours = self.texts("palette")?.unwrap_or_default();
                let colours = colours.iter().map(|c| Style::colour(c));
                colours.collect::<crate::error::Result<_>>().or_raise()?
            }
            Some(name) => Style::colours(&name.to_string()).or_raise()?,
        };
        style.check().or_raise()?;
        Ok(style)
    }
}

/// The range of an axis, as a method takes it.
pub(super) fn range(call: &str, low: &Dynamic, high: &Dynamic) -> Bound<(f64, f64)> {
    let (low, high) = (number(low)?, number(high)?);
    match low < high && (high - low).is_finite() {
        true => Ok((low, high)),
        false => Err(raise(anyhow!(
            "{call}: the range is from {low} to {high}, but must go upwards"
        ))),
    }
}
