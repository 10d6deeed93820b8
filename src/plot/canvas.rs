//! A page to draw on in pixels: lines, areas, markers and text, through plotters' SVG backend.

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::decimate::Pixel;
use crate::error::Result;

/// The backend knows whole numbers only: it draws on a page this much larger, shown at its proper size.
const FINE: f64 = 8.0;

/// Plotters writes `size / 1.24` as the font size.
const FONT_FACTOR: f64 = 1.24;

/// Which point of a text lies at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// Reading upwards, centred at its place.
    Upwards,
}

/// Size, colour and anchor of a text; it is centred vertically at its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lettering {
    pub size: f64,
    pub colour: RGBColor,
    pub anchor: Anchor,
}

/// Colour, width and opacity of a line; the width does not matter for an area.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink {
    pub colour: RGBColor,
    pub width: f64,
    pub opacity: f64,
}

/// The page.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Pixels of a page that a document takes at most.
const WIDEST: f64 = 900.0;

/// An SVG document of this size in pixels, white, with what `draw` puts on it; shown so large in millimetres, if it says so.
pub(super) fn document(
    (width, height): Pixel,
    millimetres: Option<Pixel>,
    draw: impl FnOnce(&Canvas) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    let (wide, high) = (fine(width), fine(height));
    {
        let backend = SVGBackend::with_string(&mut svg, (wide.unsigned_abs(), high.unsigned_abs()));
        let canvas = Canvas {
            area: backend.into_drawing_area(),
        };
        canvas.area.fill(&WHITE).map_err(failed)?;
        draw(&canvas)?;
        canvas.area.present().map_err(failed)?;
    }
    let drawn_at = format!("<svg width=\"{wide}\" height=\"{high}\"");
    // What shows it as an image of its own width cuts off what is wider than this.
    let scale = (WIDEST / width).min(1.0);
    let (width, height) = match millimetres {
        Some((width, height)) => (format!("{width}mm"), format!("{height}mm")),
        None => (
            (width * scale).round().to_string(),
            (height * scale).round().to_string(),
        ),
    };
    let shown_at = format!("<svg width=\"{width}\" height=\"{height}\" stroke-linejoin=\"round\"");
    Ok(svg.replacen(&drawn_at, &shown_at, 1))
}

impl Canvas<'_> {
    /// A line through the points.
    pub(super) fn path(&self, points: &[Pixel], ink: Ink) -> Result<()> {
        if points.len() < 2 {
            return Ok(());
        }
        let style = ShapeStyle {
            color: ink.colour.mix(ink.opacity),
            filled: false,
            stroke_width: fine(ink.width).unsigned_abs(),
        };
        let element = PathElement::new(all_fine(points), style);
        self.area.draw(&element).map_err(failed)
    }

    /// A line of dashes through the points, `on` pixels long with gaps of `off`.
    pub(super) fn dashes(&self, points: &[Pixel], (on, off): Pixel, ink: Ink) -> Result<()> {
        let mut dash: Vec<Pixel> = points.first().copied().into_iter().collect();
        // Whether a dash is being drawn, and what is left of it or of the gap.
        let (mut down, mut left) = (true, on);
        for two in points.windows(2) {
            let (from, to) = (two[0], two[1]);
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            let mut along = 0.0;
            while length - along > left {
                along += left;
                let part = along / length;
                dash.push((
                    from.0 + (to.0 - from.0) * part,
                    from.1 + (to.1 - from.1) * part,
                ));
                if down {
                    self.path(&dash, ink)?;
                    dash.clear();
                }
                down = !down;
                left = if down { on } else { off };
            }
            left -= length - along;
            if down {
                dash.push(to);
            }
        }
        self.path(if down { &dash } else { &[] }, ink)
    }

    /// A filled area with these corners.
    pub(super) fn area(&self, corners: &[Pixel], ink: Ink) -> Result<()> {
        if corners.len() < 3 {
            return Ok(());
        }
        let element = Polygon::new(all_fine(corners), ink.colour.mix(ink.opacity));
        self.area.draw(&element).map_err(failed)
    }

    /// A disc, filled or drawn by a line of its ink's width.
    pub(super) fn disc(&self, centre: Pixel, radius: f64, ink: Ink, filled: bool) -> Result<()> {
        let style = ShapeStyle {
            color: ink.colour.mix(ink.opacity),
            filled,
            stroke_width: fine(ink.width).unsigned_abs(),
        };
        let element = Circle::new((fine(centre.0), fine(centre.1)), fine(radius), style);
        self.area.draw(&element).map_err(failed)
    }

    /// A line of text; characters that an SVG cannot hold become blanks.
    pub(super) fn text(&self, text: &str, place: Pixel, lettering: Lettering) -> Result<()> {
        let horizontal = match lettering.anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle | Anchor::Upwards => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let font = ("sans-serif", lettering.size * FINE * FONT_FACTOR).into_font();
        let font = match lettering.anchor {
            Anchor::Upwards => font.transform(FontTransform::Rotate270),
            _ => font,
        };
        // The baseline is set here, as renderers differ in the centring that the backend asks for; it puts a bottom
        // anchor half an x-height up.
        let below = lettering.size * 0.6;
        let place = match lettering.anchor {
            Anchor::Upwards => (place.0 + below, place.1),
            _ => (place.0, place.1 + below),
        };
        let style = TextStyle::from(font)
            .color(&lettering.colour)
            .pos(Pos::new(horizontal, VPos::Bottom));
        let clean: String = text.chars().map(printable).collect();
        self.area
            .draw_text(&clean, &style, (fine(place.0), fine(place.1)))
            .map_err(failed)
    }
}

/// An upper estimate of a text's width: the fonts that stand in for "sans-serif" differ, the wide ones count.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.99,
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => 0.64,
        c if c.is_ascii() => 0.8,
        '⁰'..='₟' | '¹' | '²' | '³' => 0.45,
        // Ideographs and the like are square.
        c if c as u32 >= 0x2e80 => 1.05,
        _ => 0.8,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The text and the size at which it fits `width`: made smaller down to three quarters, then cut.
pub(super) fn fit_text(text: &str, size: f64, width: f64) -> (String, f64) {
    let full = text_width(text, size);
    if full <= width {
        return (text.to_string(), size);
    }
    let smaller = (size * width / full).max(size * 0.75);
    let mut cut = text.to_string();
    if text_width(&cut, smaller) > width {
        while !cut.is_empty() && text_width(&cut, smaller) + smaller > width {
            cut.pop();
        }
        cut = format!("{}…", cut.trim_end());
    }
    (cut, smaller)
}

fn printable(c: char) -> char {
    match c {
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => ' ',
        c => c,
    }
}

fn all_fine(points: &[Pixel]) -> Vec<(i32, i32)> {
    points
        .iter()
        .map(|point| (fine(point.0), fine(point.1)))
        .collect()
}

/// In units of the backend. The cast saturates and takes NaN to zero; the bound keeps the backend's sums in range.
fn fine(pixels: f64) -> i32 {
    ((pixels * FINE).round() as i32).clamp(-100_000_000, 100_000_000)
}

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("cannot draw the figure: {error}")
}
