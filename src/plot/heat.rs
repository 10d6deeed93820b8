//! Heat maps: a colour for every cell, from blue through white to red.

use super::canvas::{Anchor, Canvas, Ink, text_width};
use super::frame::Frame;
use super::letters::lettering;
use super::shades;
use super::{Axis, Panel, Scale, Series};
use crate::error::Result;
use plotters::style::RGBColor;

/// Of numbers, on light ground and on dark.
const SIZE: f64 = 13.0;
const DARK: RGBColor = RGBColor(30, 30, 30);
const LIGHT: RGBColor = RGBColor(255, 255, 255);

/// Of a cell without a value, and of its cross.
const NONE: RGBColor = RGBColor(214, 214, 214);
const CROSS: RGBColor = RGBColor(120, 120, 120);

/// The edges of cells around these centres: in the middle between neighbours, of their logarithms on a logarithmic axis.
pub fn edges(centres: &[f64], scale: Scale) -> Vec<f64> {
    let to = |x: f64| if scale == Scale::Log { x.ln() } else { x };
    let from = |x: f64| if scale == Scale::Log { x.exp() } else { x };
    let at: Vec<f64> = centres.iter().map(|x| to(*x)).collect();
    let half = |k: usize| match at.len() {
        // A cell alone is a decade wide, or one.
        1 if scale == Scale::Log => 10f64.ln() / 2.0,
        1 => 0.5,
        n => (at[(k + 1).min(n - 1)] - at[(k + 1).min(n - 1) - 1]) / 2.0,
    };
    let Some(first) = at.first() else {
        return Vec::new();
    };
    let mut out = vec![from(first - half(0))];
    out.extend((0..at.len()).map(|k| from(at[k] + half(k))));
    out
}

/// A panel that its cells fill, with these edges of columns and rows, values row after row, and the range of the colours.
pub fn panel(
    (x, y): (Axis, Axis),
    edges: (Vec<f64>, Vec<f64>),
    values: Vec<f64>,
    range: (f64, f64),
) -> Panel {
    let filled = |axis: Axis, edges: &[f64]| match edges {
        [first, .., last] => axis.with_range(*first, *last),
        _ => axis,
    };
    let (x, y) = (filled(x, &edges.0), filled(y, &edges.1));
    Panel::new(x, y, vec![Series::cells(edges, values, range)])
}

/// A value as a cell has it: three digits.
fn digits(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        m if (1e-3..1e5).contains(&m) => {
            // What rounds to 1.00 is no 1.000.
            let places = (2.0 - (m * 1.0005).log10().floor()).clamp(0.0, 5.0) as usize;
            format!("{x:.places$}")
        }
        _ => format!("{x:.1e}"),
    }
}

/// Draws the cells: a colour for each, and its number where there is room. A cell without a value is grey and crossed.
pub(super) fn cells(
    canvas: &Canvas,
    frame: &Frame,
    one: &Series,
    values: &[f64],
    (low, high): (f64, f64),
) -> Result<()> {
    let columns = one.x.len().saturating_sub(1).max(1);
    for (ends, row) in one.y.windows(2).zip(values.chunks(columns)) {
        let Some((bottom, top)) = frame.at_y(ends[0]).zip(frame.at_y(ends[1])) else {
            continue;
        };
        for (ends, value) in one.x.windows(2).zip(row) {
            let Some((left, right)) = frame.at_x(ends[0]).zip(frame.at_x(ends[1])) else {
                continue;
            };
            let ((left, top), (right, bottom)) =
                (frame.inside((left, top)), frame.inside((right, bottom)));
            if right <= left || bottom <= top {
                continue;
            }
            let part = (value - low) / (high - low);
            let colour = match value.is_finite() {
                true => shades::diverging(part),
                false => NONE,
            };
            let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
            canvas.area(&corners, ink(colour))?;
            let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
            let text = digits(*value);
            if !value.is_finite() {
                let [a, b, c, d] = corners;
                canvas.path(&[a, c], ink(CROSS))?;
                canvas.path(&[b, d], ink(CROSS))?;
            } else if text_width(&text, SIZE) + 4.0 < right - left && bottom - top > SIZE + 4.0 {
                let dark = (part - 0.5).abs() > 0.32;
                let colour = if dark { LIGHT } else { DARK };
                canvas.text(&text, middle, lettering(SIZE, colour, Anchor::Middle))?;
            }
        }
    }
    Ok(())
}

fn ink(colour: RGBColor) -> Ink {
    Ink {
        colour,
        width: 1.0,
        opacity: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_meet_in_the_middle() {
        assert_eq!(edges(&[1.0, 2.0, 4.0], Scale::Linear), [0.5, 1.5, 3.0, 5.0]);
        let log = edges(&[1.0, 100.0], Scale::Log);
        for (x, expected) in log.iter().zip([0.1, 10.0, 1000.0]) {
            assert!((x / expected - 1.0).abs() < 1e-12, "{log:?}");
        }
        assert_eq!(edges(&[3.0], Scale::Linear), [2.5, 3.5]);
        assert!(edges(&[], Scale::Log).is_empty());
    }

    #[test]
    fn numbers_in_cells_are_short() {
        let all = [0.0, -0.51234, 12.345, 4343.0, 1e-6, 0.99999].map(digits);
        assert_eq!(all, ["0", "-0.512", "12.3", "4343", "1.0e-6", "1.00"]);
    }
}
