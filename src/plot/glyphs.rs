//! Drawing the series of a panel inside its frame.

use plotters::style::RGBColor;

use super::bar::Bar;
use super::canvas::{Canvas, Ink};
use super::decimate::{self, Pixel};
use super::frame::{Frame, runs};
use super::style::Style;
use super::ticks::Span;
use super::{Colours, Kind, Panel, Series, field, heat, shades};
use crate::error::Result;

/// Dashes of reference lines, in turn.
const DASHES: [Pixel; 3] = [(7.0, 4.0), (2.0, 3.0), (14.0, 5.0)];

/// Dashes of curves.
const CURVE_DASH: Pixel = (5.0, 3.5);

const REFERENCE: RGBColor = RGBColor(70, 70, 70);
const SHADE: RGBColor = RGBColor(120, 120, 120);
const MOST_MARKERS: usize = 3000;

/// Vertices of all lines of a panel together; more would make a large file and no better picture.
pub(super) const MOST_VERTICES: f64 = 16_000.0;

/// How a series looks: a place in the order of colours, marker shapes or dashes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Look {
    colour: RGBColor,
    turn: usize,
}

/// The looks of all series of a panel.
pub(super) fn looks(panel: &Panel, style: &Style, bar: Option<&Bar>) -> Vec<Look> {
    let count = panel
        .series
        .iter()
        .filter(|one| one.has_own_colour())
        .count();
    let (palette, order) = (style.in_turn(), style.in_order());
    let look = |turn: usize| match &panel.colours {
        Colours::Turn => coloured_look(&palette, turn),
        Colours::Order => Look {
            colour: shades::ordered(&order, turn, count),
            turn,
        },
        Colours::By(_, values) => {
            let value = values.get(turn).copied().unwrap_or(f64::NAN);
            let colour = bar.and_then(|bar| bar.colour(value)).unwrap_or(REFERENCE);
            Look { colour, turn }
        }
    };
    let (mut coloured, mut dashed) = (0, 0);
    panel
        .series
        .iter()
        .map(|one| match one.kind {
            Kind::Shade(..) => Look {
                colour: SHADE,
                turn: 0,
            },
            Kind::HLine(_) | Kind::VLine(_) => {
                dashed += 1;
                Look {
                    colour: REFERENCE,
                    turn: dashed - 1,
                }
            }
            Kind::Dashed => Look {
                colour: REFERENCE,
                turn: 0,
            },
            _ if one.has_own_colour() => {
                coloured += 1;
                look(coloured - 1)
            }
            // A band of the colour to come; densities and contours have colours of their own.
            _ => look(coloured),
        })
        .collect()
}

/// Draws a series of a panel with about so many vertices at most.
pub(super) fn draw(
    (canvas, order): (&Canvas, &[RGBColor]),
    frame: &Frame,
    one: &Series,
    look: Look,
    vertices: f64,
) -> Result<()> {
    let points = || frame.points(&one.x, &one.y, Span::place);
    // Two columns of 0.75 pixels are narrower than a line: no light shows between the strokes of a dense trace.
    let column = (4.0 * (frame.right - frame.left) / vertices).max(0.75);
    match &one.kind {
        Kind::Line => {
            let ink = ink(look, 1.6, 0.9);
            lines(canvas, frame, &points(), column, ink)?;
            lone_points(canvas, frame, &points(), ink)
        }
        Kind::Dashed => {
            for run in runs(&points()) {
                for visible in frame.clip_line(&decimate::line(&run, column)) {
                    canvas.dashes(&visible, CURVE_DASH, ink(look, 1.3, 1.0))?;
                }
            }
            Ok(())
        }
        Kind::LinePoints => {
            lines(canvas, frame, &points(), column, ink(look, 1.6, 1.0))?;
            markers(canvas, frame, one, &points(), look)
        }
        Kind::Points => markers(canvas, frame, one, &points(), look),
        Kind::Bars => bars(canvas, frame, one, look),
        Kind::Band { lower, upper } => {
            let lower = frame.points(&one.x, lower, Span::place_or_bottom);
            let upper = frame.points(&one.x, upper, Span::place);
            band(canvas, frame, &lower, &upper, look)
        }
        Kind::Density { values } => field::density(canvas, frame, one, values),
        Kind::Cells { values, low, high } => heat::cells(canvas, frame, one, values, (*low, *high)),
        Kind::Contours { values, levels } => {
            field::contour_lines((canvas, order), frame, one, values, levels)
        }
        Kind::HLine(y) => match frame.at_y(*y) {
            Some(y) if frame.has_y(y) => {
                let dash = DASHES[look.turn % DASHES.len()];
                canvas.dashes(
                    &[(frame.left, y), (frame.right, y)],
                    dash,
                    ink(look, 1.4, 1.0),
                )
            }
            _ => Ok(()),
        },
        Kind::VLine(x) => match frame.at_x(*x) {
            Some(x) if frame.has_x(x) => {
                let dash = DASHES[look.turn % DASHES.len()];
                canvas.dashes(
                    &[(x, frame.bottom), (x, frame.top)],
                    dash,
                    ink(look, 1.4, 1.0),
                )
            }
            _ => Ok(()),
        },
        Kind::Shade(from, to) => match frame.at_x(*from).zip(frame.at_x(*to)) {
            Some((from, to)) => {
                let corners = [
                    (from, frame.bottom),
                    (from, frame.top),
                    (to, frame.top),
                    (to, frame.bottom),
                ];
                canvas.area(
                    &corners.map(|corner| frame.inside(corner)),
                    ink(look, 1.0, 0.2),
                )
            }
            None => Ok(()),
        },
    }
}

/// Draws the sample of a series in a legend, 24 pixels wide from `left`.
pub(super) fn key(
    (canvas, order): (&Canvas, &[RGBColor]),
    (left, y): Pixel,
    kind: &Kind,
    look: Look,
) -> Result<()> {
    let (right, middle) = (left + 24.0, left + 12.0);
    let block = [
        (left, y - 6.0),
        (right, y - 6.0),
        (right, y + 6.0),
        (left, y + 6.0),
    ];
    match kind {
        Kind::Line => canvas.path(&[(left, y), (right, y)], ink(look, 2.4, 1.0)),
        Kind::Points => marker(canvas, (middle, y), look, false),
        Kind::LinePoints => {
            canvas.path(&[(left, y), (right, y)], ink(look, 1.6, 1.0))?;
            marker(canvas, (middle, y), look, false)
        }
        Kind::Bars => {
            canvas.area(&block, ink(look, 1.0, 0.15))?;
            let steps = [block[3], block[0], block[1], block[2], block[3]];
            canvas.path(&steps, ink(look, 1.8, 1.0))
        }
        Kind::Band { .. } => canvas.area(&block, ink(look, 1.0, 0.25)),
        Kind::HLine(_) | Kind::VLine(_) => {
            let dash = DASHES[look.turn % DASHES.len()];
            canvas.dashes(&[(left, y), (right, y)], dash, ink(look, 1.6, 1.0))
        }
        Kind::Dashed => canvas.dashes(&[(left, y), (right, y)], CURVE_DASH, ink(look, 1.4, 1.0)),
        Kind::Density { .. } | Kind::Cells { .. } => field::density_key(canvas, left, y),
        Kind::Contours { .. } => field::contours_key(canvas, order, left, y),
        Kind::Shade(..) => canvas.area(&block, ink(look, 1.0, 0.2)),
    }
}

fn coloured_look(palette: &[RGBColor], turn: usize) -> Look {
    let RGBColor(r, g, b) = palette[turn % palette.len()];
    // After one round of the palette, darker and lighter shades; black has lighter ones only.
    let (toward, share) = match (turn / palette.len()) % 3 {
        0 => (0.0, 0.0),
        1 if (r, g, b) == (0, 0, 0) => (255.0, 0.3),
        1 => (0.0, 0.4),
        _ => (255.0, 0.5),
    };
    let shade = |c: u8| (f64::from(c) * (1.0 - share) + toward * share).round() as u8;
    Look {
        colour: RGBColor(shade(r), shade(g), shade(b)),
        turn,
    }
}

fn ink(look: Look, width: f64, opacity: f64) -> Ink {
    Ink {
        colour: look.colour,
        width,
        opacity,
    }
}

fn lines(
    canvas: &Canvas,
    frame: &Frame,
    points: &[Option<Pixel>],
    column: f64,
    ink: Ink,
) -> Result<()> {
    for run in runs(points) {
        for visible in frame.clip_line(&decimate::line(&run, column)) {
            canvas.path(&visible, ink)?;
        }
    }
    Ok(())
}

/// Dots for the points between two gaps, through which no line goes.
fn lone_points(canvas: &Canvas, frame: &Frame, points: &[Option<Pixel>], ink: Ink) -> Result<()> {
    let lone: Vec<Pixel> = runs(points)
        .into_iter()
        .filter(|run| run.len() == 1)
        .flatten()
        .filter(|(x, y)| frame.has_x(*x) && frame.has_y(*y))
        .collect();
    for i in decimate::markers(&lone, MOST_MARKERS) {
        canvas.disc(lone[i], 1.2, ink, true)?;
    }
    Ok(())
}

fn markers(
    canvas: &Canvas,
    frame: &Frame,
    one: &Series,
    points: &[Option<Pixel>],
    look: Look,
) -> Result<()> {
    let (indices, places): (Vec<usize>, Vec<Pixel>) = points
        .iter()
        .enumerate()
        .filter_map(|(i, point)| Some((i, (*point)?)))
        .filter(|(_, point)| frame.has_x(point.0))
        .unzip();
    for kept in decimate::markers(&places, MOST_MARKERS) {
        let (i, place) = (indices[kept], places[kept]);
        let error = one.y_error.as_ref().and_then(|errors| errors.get(i));
        if let Some(error) = error {
            error_bar(canvas, frame, place.0, one.y[i], error.abs(), look)?;
        }
        if frame.has_y(place.1) {
            let hollow = one.hollow.get(i).copied().unwrap_or(false);
            marker(canvas, place, look, hollow)?;
        }
    }
    Ok(())
}

fn error_bar(canvas: &Canvas, frame: &Frame, x: f64, y: f64, error: f64, look: Look) -> Result<()> {
    let low = frame.y.place_or_bottom(y - error);
    let high = frame.y.place_or_bottom(y + error);
    let Some((low, high)) = low.zip(high).filter(|_| error > 0.0) else {
        return Ok(());
    };
    let ink = ink(look, 1.3, 1.0);
    let (low, high) = (frame.height_of(low), frame.height_of(high));
    if let Some((from, to)) = frame.clip((x, low), (x, high)) {
        canvas.path(&[from, to], ink)?;
    }
    // An end that was cut off has no cap.
    for (value, end) in [(y - error, low), (y + error, high)] {
        if frame.y.contains(value) {
            canvas.path(&[(x - 4.0, end), (x + 4.0, end)], ink)?;
        }
    }
    Ok(())
}

fn marker(canvas: &Canvas, (x, y): Pixel, look: Look, hollow: bool) -> Result<()> {
    const SQUARE: [Pixel; 4] = [(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)];
    const TRIANGLE: [Pixel; 3] = [(0.0, -4.6), (4.3, 3.2), (-4.3, 3.2)];
    const DIAMOND: [Pixel; 4] = [(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)];
    let (filled, line) = (ink(look, 1.0, 1.0), ink(look, 1.4, 1.0));
    let inside = Ink {
        colour: RGBColor(255, 255, 255),
        ..filled
    };
    let shape = |corners: &[Pixel]| {
        let mut at: Vec<_> = corners.iter().map(|(a, b)| (x + a, y + b)).collect();
        canvas.area(&at, if hollow { inside } else { filled })?;
        at.extend_from_within(..1);
        canvas.path(if hollow { &at } else { &[] }, line)
    };
    match look.turn % 4 {
        0 if hollow => {
            canvas.disc((x, y), 3.6, inside, true)?;
            canvas.disc((x, y), 3.6, line, false)
        }
        0 => canvas.disc((x, y), 3.6, filled, true),
        1 => shape(&SQUARE),
        2 => shape(&TRIANGLE),
        _ => shape(&DIAMOND),
    }
}

fn bars(canvas: &Canvas, frame: &Frame, one: &Series, look: Look) -> Result<()> {
    let floor = frame
        .inside((
            frame.left,
            frame
                .y
                .place_or_bottom(0.0)
                .map_or(frame.bottom, |part| frame.height_of(part)),
        ))
        .1;
    let mut steps: Vec<Pixel> = Vec::new();
    for (edges, height) in one.x.windows(2).zip(&one.y) {
        let Some((left, right)) = frame.at_x(edges[0]).zip(frame.at_x(edges[1])) else {
            continue;
        };
        let top = frame
            .y
            .place_or_bottom(*height)
            .map_or(floor, |part| frame.height_of(part));
        steps.extend([frame.inside((left, top)), frame.inside((right, top))]);
    }
    if let (Some(first), Some(last)) = (steps.first().copied(), steps.last().copied()) {
        steps.insert(0, (first.0, floor));
        steps.push((last.0, floor));
    }
    let steps = decimate::line(&steps, 0.25);
    canvas.area(&steps, ink(look, 1.0, 0.12))?;
    canvas.path(&steps, ink(look, 1.8, 1.0))
}

fn band(
    canvas: &Canvas,
    frame: &Frame,
    lower: &[Option<Pixel>],
    upper: &[Option<Pixel>],
    look: Look,
) -> Result<()> {
    let pairs: Vec<Option<(Pixel, Pixel)>> =
        lower.iter().zip(upper).map(|(l, u)| (*l).zip(*u)).collect();
    for run in pairs.split(Option::is_none) {
        let (low, high): (Vec<Pixel>, Vec<Pixel>) = run.iter().flatten().copied().unzip();
        let mut corners = decimate::line(&low, 1.0);
        corners.extend(decimate::line(&high, 1.0).into_iter().rev());
        let corners: Vec<Pixel> = corners
            .into_iter()
            .map(|corner| frame.inside(corner))
            .collect();
        canvas.area(&corners, ink(look, 1.0, 0.25))?;
    }
    Ok(())
}
