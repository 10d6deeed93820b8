//! Drawing functions of two variables: densities as filled cells, contours as lines.

use plotters::style::RGBColor;

use super::canvas::{Canvas, Ink};
use super::decimate::Pixel;
use super::frame::Frame;
use super::shades::{self, SHADES};
use super::ticks::drawable;
use super::{Scale, Series, contours};
use crate::error::Result;

/// Cells side by side and above each other; more than that could hardly be seen and would make a large file.
const MOST_CELLS: (usize, usize) = (200, 140);

/// Cells reach this far under the next one, or light would show between them where an edge is not on a pixel.
const OVERLAP: f64 = 0.4;

/// Draws the cells of a density. Without edges, or with a ragged end, there are fewer of them.
pub(super) fn density(canvas: &Canvas, frame: &Frame, one: &Series, values: &[f64]) -> Result<()> {
    let (x, y, values) = coarser(&one.x, &one.y, values);
    let places = |edges: &[f64], at: &dyn Fn(f64) -> Option<f64>| -> Vec<Option<f64>> {
        edges.iter().map(|edge| at(*edge)).collect()
    };
    let x = places(&x, &|x| frame.at_x(x));
    let y = places(&y, &|y| frame.at_y(y));
    let greatest = most(&values);
    let rows = values.chunks(x.len().saturating_sub(1).max(1));
    // From the top downwards, so that what a row reaches too far is covered by the next.
    let rows: Vec<_> = y.windows(2).zip(rows).collect();
    for (ends, row) in rows.into_iter().rev() {
        let Some((low, high)) = ends[0].zip(ends[1]) else {
            continue;
        };
        let cells: Vec<(usize, Pixel)> = x
            .windows(2)
            .zip(row)
            .map(|(ends, value)| match ends[0].zip(ends[1]) {
                Some(ends) if is_shown(*value) => (shades::shade(value / greatest), ends),
                _ => (0, (0.0, 0.0)),
            })
            .collect();
        for cells in cells.chunk_by(|a, b| a.0 == b.0) {
            let (Some((shade, first)), Some((_, last))) = (cells.first(), cells.last()) else {
                continue;
            };
            let colour = shades::blue(*shade);
            if *shade > 0 {
                cell(canvas, frame, (first.0, last.1), (low, high), colour)?;
            }
        }
    }
    Ok(())
}

/// The density of the darkest cell.
pub(super) fn greatest(one: &Series, values: &[f64]) -> f64 {
    most(&coarser(&one.x, &one.y, values).2)
}

fn most(values: &[f64]) -> f64 {
    let shown = values.iter().copied().filter(|v| is_shown(*v));
    shown.fold(0.0, f64::max)
}

/// Draws the contour lines of a function, from the lowest level to the highest in the colours of an order.
pub(super) fn contour_lines(
    (canvas, order): (&Canvas, &[RGBColor]),
    frame: &Frame,
    one: &Series,
    values: &[f64],
    levels: &[f64],
) -> Result<()> {
    let place = |place: Option<f64>| place.unwrap_or(f64::NAN);
    let x: Vec<f64> = one.x.iter().map(|x| place(frame.at_x(*x))).collect();
    let y: Vec<f64> = one.y.iter().map(|y| place(frame.at_y(*y))).collect();
    let mut levels: Vec<f64> = levels.iter().copied().filter(|v| v.is_finite()).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    for (i, level) in levels.iter().enumerate() {
        let ink = Ink {
            colour: shades::ordered(order, i, levels.len()),
            width: 1.1,
            opacity: 1.0,
        };
        for line in contours::lines(&x, &y, values, *level) {
            for visible in frame.clip_line(&thin(&line)) {
                canvas.path(&visible, ink)?;
            }
        }
    }
    Ok(())
}

/// The sample of a density in a legend: its shades.
pub(super) fn density_key(canvas: &Canvas, left: f64, y: f64) -> Result<()> {
    (0..4).try_for_each(|i| {
        let (from, to) = (left + 6.0 * i as f64, left + 6.0 * (i + 1) as f64);
        let ink = Ink {
            colour: shades::blue(1 + (SHADES - 1) * i / 3),
            width: 1.0,
            opacity: 1.0,
        };
        let block = [
            (from, y - 6.0),
            (to, y - 6.0),
            (to, y + 6.0),
            (from, y + 6.0),
        ];
        canvas.area(&block, ink)
    })
}

/// The sample of contours in a legend: a low, a middle and a high one.
pub(super) fn contours_key(canvas: &Canvas, order: &[RGBColor], left: f64, y: f64) -> Result<()> {
    (0..3).try_for_each(|i| {
        let ink = Ink {
            colour: shades::ordered(order, i, 3),
            width: 1.4,
            opacity: 1.0,
        };
        let height = y + 4.5 - 4.5 * i as f64;
        canvas.path(&[(left, height), (left + 24.0, height)], ink)
    })
}

/// Whether a cell with this value is drawn.
pub(super) fn is_shown(value: f64) -> bool {
    value > 0.0 && drawable(Scale::Linear, value)
}

fn cell(
    canvas: &Canvas,
    frame: &Frame,
    (left, right): Pixel,
    (low, high): Pixel,
    colour: RGBColor,
) -> Result<()> {
    let (left, top) = frame.inside((left.min(right), low.min(high)));
    let (right, bottom) = frame.inside((left.max(right), low.max(high)));
    // What is beyond the frame has been squeezed to nothing.
    if right <= left || bottom <= top {
        return Ok(());
    }
    let (right, bottom) = frame.inside((right + OVERLAP, bottom + OVERLAP));
    let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
    let ink = Ink {
        colour,
        width: 1.0,
        opacity: 1.0,
    };
    canvas.area(&corners, ink)
}

/// Blocks of cells made one, with the mean of their values, where there are too many.
fn coarser(x: &[f64], y: &[f64], values: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (wide, high) = (x.len().saturating_sub(1), y.len().saturating_sub(1));
    let block = (
        wide.div_ceil(MOST_CELLS.0).max(1),
        high.div_ceil(MOST_CELLS.1).max(1),
    );
    if wide == 0 || high == 0 || block == (1, 1) {
        return (x.to_vec(), y.to_vec(), values.to_vec());
    }
    let ends = |edges: &[f64], step: usize| -> Vec<f64> {
        let inner = edges.iter().copied().step_by(step);
        let last = edges.last().copied();
        let is_inner = (edges.len() - 1).is_multiple_of(step);
        inner.chain(last.filter(|_| !is_inner)).collect()
    };
    let mut sums = Vec::new();
    for rows in (0..high).step_by(block.1) {
        for columns in (0..wide).step_by(block.0) {
            let cells = (rows..(rows + block.1).min(high)).flat_map(|row| {
                (columns..(columns + block.0).min(wide)).map(move |column| row * wide + column)
            });
            let known: Vec<f64> = cells
                .filter_map(|i| values.get(i).copied())
                .filter(|v| drawable(Scale::Linear, *v))
                .collect();
            let count = known.len().max(1) as f64;
            sums.push(known.iter().map(|v| v / count).sum());
        }
    }
    (ends(x, block.0), ends(y, block.1), sums)
}

/// The line without the steps that are too short to see.
fn thin(line: &[Pixel]) -> Vec<Pixel> {
    let mut kept: Vec<Pixel> = Vec::new();
    for (i, point) in line.iter().enumerate() {
        let is_near = kept
            .last()
            .is_some_and(|last| (point.0 - last.0).hypot(point.1 - last.1) < 0.7);
        match is_near {
            // An end stays where it is.
            true if i + 1 == line.len() && kept.len() > 1 => {
                kept.pop();
                kept.push(*point);
            }
            true => {}
            false => kept.push(*point),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cells_become_fewer_with_their_mean() {
        let edges: Vec<f64> = (0..=1000).map(f64::from).collect();
        let values = vec![2.0; 1_000_000];
        let (x, y, coarse) = coarser(&edges, &edges, &values);
        assert_eq!(coarse.len(), (x.len() - 1) * (y.len() - 1));
        assert!(x.len() <= MOST_CELLS.0 + 1 && y.len() <= MOST_CELLS.1 + 1);
        assert!(coarse.iter().all(|v| (v - 2.0).abs() < 1e-12));
        assert_eq!((y[0], y[y.len() - 1]), (0.0, 1000.0));
        // A ragged end counts for nothing.
        let (_, _, coarse) = coarser(&edges, &edges, &values[..10]);
        assert_eq!(coarse[coarse.len() - 1], 0.0);
        for (x, y) in [(&edges[..0], &edges[..]), (&edges[..], &edges[..1])] {
            assert_eq!(coarser(x, y, &values[..3]).2.len(), 3);
        }
        let (x, y, coarse) = coarser(&edges[..3], &edges, &values);
        assert_eq!((x.len(), coarse.len()), (3, 2 * (y.len() - 1)));
    }

    #[test]
    fn thin_lines_keep_their_ends() {
        let line: Vec<Pixel> = (0..=100).map(|i| (f64::from(i) * 0.1, 0.0)).collect();
        let kept = thin(&line);
        assert!(kept.len() < 20);
        assert_eq!((kept.first(), kept.last()), (line.first(), line.last()));
        assert!(thin(&[]).is_empty());
    }
}
