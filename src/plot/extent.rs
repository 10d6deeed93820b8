//! What a panel holds: the values its axes must cover and the entries of its legend.

use super::field::is_shown;
use super::ticks::{Span, drawable};
use super::{Axis, Kind, Panel, Scale, Series};

/// Index and text of the legend's entries; none for fewer than two labels, and none for what a bar of colours stands for.
pub(super) fn legend(panel: &Panel) -> Vec<(usize, String)> {
    let in_bar = |one: &Series| !panel.colours.has_legend() && one.has_own_colour();
    let entries: Vec<(usize, String)> = panel
        .series
        .iter()
        .enumerate()
        .filter(|(_, one)| !one.label.is_empty() && !in_bar(one))
        .map(|(i, one)| {
            let empty = !has_data(one, panel);
            let note = if empty { " (no data)" } else { "" };
            (i, format!("{}{note}", one.label))
        })
        .collect();
    match entries.len() {
        // The only line among others that a bar tells apart needs its name.
        0 | 1 if panel.colours.has_legend() => Vec::new(),
        _ => entries,
    }
}

/// Whether there is anything of the series to draw.
fn has_data(one: &Series, panel: &Panel) -> bool {
    let (x, y) = (panel.x.scale, panel.y.scale);
    match &one.kind {
        Kind::HLine(level) => drawable(y, *level),
        Kind::Density { values } => is_grid(one) && values.iter().any(|v| is_shown(*v)),
        Kind::Contours { values, .. } => is_grid(one) && values.iter().any(|v| v.is_finite()),
        Kind::Cells { values, .. } => is_grid(one) && !values.is_empty(),
        _ => x_values(one, y).iter().any(|value| drawable(x, *value)),
    }
}

/// Whether there is at least one cell.
fn is_grid(one: &Series) -> bool {
    one.x.len() > 1 && one.y.len() > 1
}

/// Whether the panel has nothing to draw but reference lines and shades.
pub(super) fn is_empty(panel: &Panel) -> bool {
    let is_reference =
        |one: &Series| matches!(one.kind, Kind::HLine(_) | Kind::VLine(_) | Kind::Shade(..));
    !panel
        .series
        .iter()
        .any(|one| !is_reference(one) && has_data(one, panel))
}

/// The abscissas that must be within the x axis: those with an ordinate that can be drawn.
pub(super) fn x_values(one: &Series, y_scale: Scale) -> Vec<f64> {
    let with = |y: &[f64]| -> Vec<f64> {
        let pairs = one.x.iter().zip(y).filter(|(_, y)| drawable(y_scale, **y));
        pairs.map(|(x, _)| *x).collect()
    };
    match &one.kind {
        Kind::Line | Kind::Dashed | Kind::Points | Kind::LinePoints => with(&one.y),
        Kind::Bars if one.y.is_empty() => Vec::new(),
        Kind::Bars | Kind::Density { .. } | Kind::Cells { .. } | Kind::Contours { .. } => {
            one.x.clone()
        }
        Kind::Band { upper, .. } => with(upper),
        Kind::VLine(x) => vec![*x],
        Kind::Shade(from, to) => vec![*from, *to],
        Kind::HLine(_) => Vec::new(),
    }
}

/// The ordinates that must be within the y axis, ends of error bars among them.
pub(super) fn y_values(one: &Series, y_scale: Scale) -> Vec<f64> {
    let mut values = match &one.kind {
        Kind::Band { lower, upper } => [lower.as_slice(), upper].concat(),
        Kind::HLine(y) => vec![*y],
        Kind::VLine(_) | Kind::Shade(..) => Vec::new(),
        _ => one.y.clone(),
    };
    if let (Kind::Points | Kind::LinePoints, Some(errors)) = (&one.kind, &one.y_error) {
        let pairs = one.y.iter().zip(errors);
        let bars = pairs.filter(|(y, error)| drawable(y_scale, **y) && error.is_finite());
        values.extend(bars.flat_map(|(y, error)| match y_scale {
            Scale::Linear => [y - error.abs(), y + error.abs()],
            // Bars that come close to zero would stretch the axis without end: a decade will do.
            Scale::Log => [(y - error.abs()).max(y / 10.0), y + error.abs()],
        }));
    }
    values
}

/// The range of an axis; `from_zero` puts zero at its low end if no value is negative.
pub(super) fn span_of(axis: &Axis, values: impl Iterator<Item = f64>, from_zero: bool) -> Span {
    if let Some(span) = Span::fixed(axis.scale, axis.range) {
        return span;
    }
    let values: Vec<f64> = values.collect();
    let from_zero = from_zero && axis.scale == Scale::Linear && !values.iter().any(|v| *v < 0.0);
    let zero = from_zero.then_some(0.0);
    let span = Span::around(axis.scale, values.into_iter().chain(zero));
    match from_zero {
        true => span.between(0.0, span.high),
        false => span,
    }
}

/// Whether one of the series is a histogram.
pub(super) fn has_bars(panel: &Panel) -> bool {
    panel.series.iter().any(|one| one.kind == Kind::Bars)
}
