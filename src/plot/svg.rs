//! Laying out a figure: where titles, axes, legends and frames go.

use plotters::style::RGBColor;

use super::bar::{self, Bar};
use super::canvas::{Anchor, Canvas, Ink, document, fit_text, text_width};
use super::extent::{has_bars, is_empty, legend, span_of, x_values, y_values};
use super::frame::Frame;
use super::glyphs::{self, Look};
use super::letters::{EDGE, FAINT_TEXT, KEY, LABEL_SIZE, LEGEND_ROW, TEXT, TICK_SIZE, lettering};
use super::style::{self, Legend, Style};
use super::ticks::{Span, Ticks};
use super::{Figure, Panel};
use crate::error::Result;
use anyhow::ensure;

/// The sizes of a drawing, and where its legends are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    /// Width and height of a panel.
    pub(super) panel: (f64, f64),
    /// Height of a panel whose x labels stand under another one.
    shared_height: f64,
    /// Where legends are, unless the figure's style says something else.
    legend: Legend,
    /// Vertices of all lines of a panel together.
    vertices: f64,
}

/// A drawing of its own.
pub(super) const ALONE: Page = Page {
    panel: (700.0, 450.0),
    shared_height: 290.0,
    legend: Legend::Beside,
    vertices: glyphs::MOST_VERTICES,
};

/// A drawing among others on a page that a telephone shows too: narrow, so that its letters stay large.
pub(super) const INLINE: Page = Page {
    panel: (520.0, 350.0),
    shared_height: 230.0,
    legend: Legend::Below,
    vertices: 6_000.0,
};

/// The least width and height of a panel.
const LEAST: (f64, f64) = (110.0, 100.0);

/// The room that x labels take.
const X_LABELS: f64 = 56.0;
const TICK_WIDEST: f64 = 160.0;
const NOTE_SIZE: f64 = 12.0;
const TITLE_SIZE: f64 = 17.0;
const TITLE_ROW: f64 = 28.0;
const NOTE_ROW: f64 = 17.0;
const LEGEND_WIDEST: f64 = 300.0;
const MOST_NOTES: usize = 6;

const GRID: RGBColor = RGBColor(226, 226, 226);
const FRAME: RGBColor = RGBColor(60, 60, 60);

/// Where everything is.
struct Layout<'a> {
    plots: Vec<Plot<'a>>,
    columns: usize,
    lefts: Vec<f64>,
    tops: Vec<f64>,
}

impl Layout<'_> {
    fn size(&self) -> (f64, f64) {
        let last = |all: &[f64]| all.last().copied().unwrap_or(0.0);
        (last(&self.lefts), last(&self.tops))
    }
}

/// The figure as an SVG document, so large in millimetres if it says so.
pub(super) fn render(
    figure: &Figure,
    page: Page,
    millimetres: Option<(f64, f64)>,
) -> Result<String> {
    let style = &figure.style;
    style.check()?;
    let blank = [Panel::default()];
    let panels = match figure.panels.as_slice() {
        [] => &blank,
        panels => panels,
    };
    let page = Page {
        legend: match style.legend {
            Legend::Beside => page.legend,
            asked => asked,
        },
        ..page
    };
    let (layout, size) = match millimetres {
        None => {
            let layout = lay_out(figure, panels, page);
            let size = layout.size();
            (layout, (size.0.ceil(), size.1.ceil()))
        }
        Some(size) => fitted(figure, panels, page, size)?,
    };
    let svg = document(size, millimetres, |canvas| {
        // Over the frame, not the page, where there is one frame.
        let middle = match layout.columns {
            1 => (layout.plots[0].margin + layout.plots[0].page.panel.0 - 2.0 * EDGE) / 2.0,
            _ => size.0 / 2.0,
        };
        title(
            canvas,
            &figure.title,
            (middle, EDGE + 8.0),
            TITLE_SIZE + 1.0,
            size.0,
        )?;
        for (i, plot) in layout.plots.iter().enumerate() {
            let (row, column) = (i / layout.columns, i % layout.columns);
            plot.draw(canvas, (layout.lefts[column], layout.tops[row]))?;
        }
        Ok(())
    })?;
    Ok(if style.dark {
        style::darkened(&svg)
    } else {
        svg
    })
}

/// An SVG document as part of a page, never wider than its place.
pub(super) fn fitting(svg: &str) -> String {
    svg.replacen("<svg ", "<svg style=\"max-width:100%;height:auto\" ", 1)
}

/// The layout in which a figure takes this size in millimetres, and that size in pixels of its letters.
fn fitted<'a>(
    figure: &Figure,
    panels: &'a [Panel],
    page: Page,
    (width, height): (f64, f64),
) -> Result<(Layout<'a>, (f64, f64))> {
    // Letters of LABEL_SIZE pixels are of font_size points.
    let pixels = |mm: f64| mm * 72.0 / 25.4 * LABEL_SIZE / figure.style.font_size;
    let size = (pixels(width), pixels(height));
    let columns = figure.columns.clamp(1, panels.len());
    let rows = panels.len().div_ceil(columns);
    let mut page = Page {
        panel: (size.0 / columns as f64, size.1 / rows as f64),
        ..page
    };
    // What labels, notes and legends take depends on how wide and high panels are.
    for _ in 0..40 {
        page.shared_height = page.panel.1 * ALONE.shared_height / ALONE.panel.1;
        ensure!(
            page.panel.0 > LEAST.0 && page.panel.1 > LEAST.1,
            "a figure of {width} mm by {height} mm has no room for its labels at {} points; give a larger 'size' or a smaller 'font_size', or legend: \"none\"",
            figure.style.font_size
        );
        let layout = lay_out(figure, panels, page);
        let found = layout.size();
        let off = (size.0 - found.0, size.1 - found.1);
        if off.0.abs() < 0.5 && off.1.abs() < 0.5 {
            return Ok((layout, size));
        }
        page.panel.0 += off.0 / columns as f64;
        page.panel.1 += off.1 / rows as f64;
    }
    // A legend that takes a row more when it is narrower, and one less when it is not: what is too low fits.
    let layout = lay_out(figure, panels, page);
    let found = layout.size();
    Ok((layout, (size.0.max(found.0), size.1.max(found.1))))
}

fn lay_out<'a>(figure: &Figure, panels: &'a [Panel], page: Page) -> Layout<'a> {
    let columns = figure.columns.clamp(1, panels.len());
    let mut plots: Vec<Plot> = panels
        .iter()
        .map(|panel| Plot::new(panel, figure.shared_x, page, &figure.style))
        .collect();
    for column in 0..columns {
        align(&mut plots, column, columns, figure.shared_x);
    }
    let heading = if figure.title.is_empty() {
        0.0
    } else {
        TITLE_ROW
    };
    let mut tops = vec![heading + EDGE / 2.0];
    for row in plots.chunks_mut(columns) {
        let greatest = |part: fn(&Plot) -> f64| row.iter().map(part).fold(0.0, f64::max);
        let (height, head) = (greatest(|plot| plot.height), greatest(|plot| plot.head));
        for plot in row {
            plot.height = height;
            plot.head = head;
        }
        tops.push(tops[tops.len() - 1] + height);
    }
    let mut lefts = vec![0.0];
    for plot in &plots[..columns] {
        lefts.push(lefts[lefts.len() - 1] + page.panel.0 + plot.legend_width);
    }
    Layout {
        plots,
        columns,
        lefts,
        tops,
    }
}

/// Gives the panels of one column a common left margin and legend width, and common x axes if shared.
fn align(plots: &mut [Plot], column: usize, columns: usize, shared_x: bool) {
    let members = || (column..plots.len()).step_by(columns);
    let greatest = |part: fn(&Plot) -> f64| members().map(|i| part(&plots[i])).fold(0.0, f64::max);
    let (margin, legend_width) = (
        greatest(|plot| plot.margin),
        greatest(|plot| plot.legend_width),
    );
    let one_scale = members().all(|i| plots[i].panel.x.scale == plots[column].panel.x.scale);
    let spans = || members().filter(|i| !plots[*i].nothing).map(|i| plots[i].x);
    let common = match shared_x && one_scale {
        true => spans().reduce(|a, b| a.between(a.low.min(b.low), a.high.max(b.high))),
        false => None,
    };
    let last = members().next_back().unwrap_or(column);
    for plot in plots.iter_mut().skip(column).step_by(columns) {
        plot.margin = margin;
        plot.legend_width = legend_width;
    }
    if let Some(x) = common {
        for i in (column..plots.len()).step_by(columns) {
            plots[i].x = x;
            plots[i].x_labels = i == last;
            let page = plots[i].page;
            plots[i].height +=
                page.shared_height - page.panel.1 - if i == last { 0.0 } else { X_LABELS - EDGE };
        }
    }
}

/// A panel with everything that must be known before it is placed.
pub(super) struct Plot<'a> {
    pub(super) panel: &'a Panel,
    pub(super) page: Page,
    pub(super) looks: Vec<Look>,
    /// Index and text of what is in its legend.
    pub(super) entries: Vec<(usize, String)>,
    /// The colours of an order.
    pub(super) order: Vec<RGBColor>,
    bar: Option<Bar>,
    x: Span,
    y: Span,
    y_ticks: Ticks,
    /// No series has anything to draw.
    nothing: bool,
    height: f64,
    /// Height of title and notes, above the frame.
    head: f64,
    margin: f64,
    /// Width of the legend beside the frame, or height of the one under it.
    pub(super) legend_width: f64,
    pub(super) legend_height: f64,
    x_labels: bool,
}

impl<'a> Plot<'a> {
    fn new(panel: &'a Panel, low: bool, page: Page, style: &Style) -> Self {
        let x_values = || {
            panel
                .series
                .iter()
                .flat_map(|one| x_values(one, panel.y.scale))
        };
        let y_values = || {
            panel
                .series
                .iter()
                .flat_map(|one| y_values(one, panel.y.scale))
        };
        let y = span_of(&panel.y, y_values(), has_bars(panel));
        let height = if low {
            page.shared_height
        } else {
            page.panel.1
        };
        let length = height - X_LABELS - EDGE - TITLE_ROW;
        let y_ticks = y.ticks_of(&panel.y, length, |_| TICK_SIZE * 1.8);
        let widest = y_ticks
            .major
            .iter()
            .map(|(_, label)| text_width(label, TICK_SIZE).min(TICK_WIDEST))
            .fold(0.0, f64::max);
        let label_room = if panel.y.label.is_empty() {
            0.0
        } else {
            LABEL_SIZE + 10.0
        };
        let mut entries = legend(panel);
        if page.legend == Legend::None {
            entries.clear();
        }
        let legend_width = entries
            .iter()
            .map(|(_, label)| text_width(label, TICK_SIZE) + KEY + EDGE)
            .fold(0.0, f64::max);
        let bar = bar::of(panel, style);
        let mut plot = Self {
            panel,
            page,
            looks: glyphs::looks(panel, style, bar.as_ref()),
            entries,
            order: style.in_order(),
            bar,
            x: span_of(&panel.x, x_values(), false),
            y,
            y_ticks,
            nothing: is_empty(panel),
            height: 0.0,
            head: 0.0,
            margin: EDGE + label_room + widest + 10.0,
            legend_width: legend_width.min(LEGEND_WIDEST),
            legend_height: 0.0,
            x_labels: true,
        };
        if plot.legend_is_below() {
            let rows = plot.legend_rows().last().map_or(0, |place| place.0 + 1);
            plot.legend_width = plot.bar.as_ref().map_or(0.0, |bar| bar.width(length));
            plot.legend_height = rows as f64 * LEGEND_ROW;
        }
        let notes = plot.notes().len() as f64 * NOTE_ROW;
        plot.height = page.panel.1 + notes + plot.legend_height;
        plot.head = plot.title_row() + notes;
        plot
    }

    fn draw(&self, canvas: &Canvas, (left, top): (f64, f64)) -> Result<()> {
        let width = self.page.panel.0;
        let middle = left + (self.margin + width - 2.0 * EDGE) / 2.0;
        let mut row = top + EDGE;
        title(
            canvas,
            &self.panel.title,
            (middle, row),
            TITLE_SIZE - 1.0,
            width,
        )?;
        row += self.title_row();
        for note in self.notes() {
            let (note, size) = fit_text(note, NOTE_SIZE, width - self.margin);
            canvas.text(
                &note,
                (left + self.margin, row),
                lettering(size, FAINT_TEXT, Anchor::Start),
            )?;
            row += NOTE_ROW;
        }
        let mut frame = Frame {
            left: left + self.margin,
            right: left + width - 2.0 * EDGE,
            top: top + EDGE + self.head,
            bottom: top + self.height
                - self.legend_height
                - if self.x_labels { X_LABELS } else { EDGE },
            x: self.x,
            y: self.y,
        };
        if self.panel.equal {
            frame.equalise();
        }
        self.draw_axes(canvas, &frame, left)?;
        let data = self.panel.series.iter().zip(&self.looks);
        for (one, look) in data {
            let vertices = self.page.vertices / self.panel.series.len() as f64;
            glyphs::draw((canvas, &self.order), &frame, one, *look, vertices)?;
        }
        outline(canvas, &frame)?;
        if self.nothing {
            let centre = (
                (frame.left + frame.right) / 2.0,
                (frame.top + frame.bottom) / 2.0,
            );
            canvas.text(
                "no data",
                centre,
                lettering(LABEL_SIZE + 3.0, FAINT_TEXT, Anchor::Middle),
            )?;
        }
        if let Some(bar) = &self.bar {
            bar.draw(canvas, &frame)?;
        }
        match self.legend_is_below() {
            true => self.draw_legend_below(canvas, left, top + self.height),
            false => self.draw_legend(canvas, &frame),
        }
    }

    /// A bar of colours takes the place beside the frame.
    fn legend_is_below(&self) -> bool {
        self.page.legend == Legend::Below || self.bar.is_some()
    }

    fn draw_axes(&self, canvas: &Canvas, frame: &Frame, left: f64) -> Result<()> {
        let x_ticks = self
            .x
            .ticks_of(&self.panel.x, frame.right - frame.left, |label| {
                text_width(label, TICK_SIZE) + 16.0
            });
        let (grid, tick) = (line_ink(GRID, 1.0), line_ink(FRAME, 1.0));
        for (x, label) in &x_ticks.major {
            let Some(x) = frame.at_x(*x) else { continue };
            canvas.path(&[(x, frame.top), (x, frame.bottom)], grid)?;
            canvas.path(&[(x, frame.bottom), (x, frame.bottom + 5.0)], tick)?;
            if self.x_labels {
                // A long label at the right end moves in from the edge of the page.
                let rightmost = frame.right + 2.0 * EDGE - text_width(label, TICK_SIZE) / 2.0;
                let place = (x.min(rightmost), frame.bottom + 15.0);
                canvas.text(label, place, lettering(TICK_SIZE, TEXT, Anchor::Middle))?;
            }
        }
        for x in x_ticks.minor.iter().filter_map(|x| frame.at_x(*x)) {
            canvas.path(&[(x, frame.bottom), (x, frame.bottom + 3.0)], tick)?;
        }
        for (y, label) in &self.y_ticks.major {
            let Some(y) = frame.at_y(*y) else { continue };
            canvas.path(&[(frame.left, y), (frame.right, y)], grid)?;
            canvas.path(&[(frame.left - 5.0, y), (frame.left, y)], tick)?;
            let (label, size) = fit_text(label, TICK_SIZE, TICK_WIDEST);
            let place = (frame.left - 8.0, y);
            canvas.text(&label, place, lettering(size, TEXT, Anchor::End))?;
        }
        for y in self.y_ticks.minor.iter().filter_map(|y| frame.at_y(*y)) {
            canvas.path(&[(frame.left - 3.0, y), (frame.left, y)], tick)?;
        }
        if self.x_labels {
            let (label, size) = fit_text(&self.panel.x.label, LABEL_SIZE, frame.right - frame.left);
            let place = ((frame.left + frame.right) / 2.0, frame.bottom + 38.0);
            canvas.text(&label, place, lettering(size, TEXT, Anchor::Middle))?;
        }
        let (label, size) = fit_text(&self.panel.y.label, LABEL_SIZE, frame.bottom - frame.top);
        let place = (left + EDGE + 2.0, (frame.top + frame.bottom) / 2.0);
        canvas.text(&label, place, lettering(size, TEXT, Anchor::Upwards))
    }

    fn title_row(&self) -> f64 {
        match self.panel.title.is_empty() {
            true => 0.0,
            false => TITLE_ROW - 8.0,
        }
    }

    fn notes(&self) -> &'a [String] {
        let notes = &self.panel.annotations;
        &notes[..notes.len().min(MOST_NOTES)]
    }
}

fn title(canvas: &Canvas, text: &str, place: (f64, f64), size: f64, width: f64) -> Result<()> {
    let (text, size) = fit_text(text, size, (width - 2.0 * EDGE).min(2.0 * place.0));
    canvas.text(&text, place, lettering(size, TEXT, Anchor::Middle))
}

fn outline(canvas: &Canvas, frame: &Frame) -> Result<()> {
    let (left, right, top, bottom) = (frame.left, frame.right, frame.top, frame.bottom);
    let corners = [
        (left, top),
        (right, top),
        (right, bottom),
        (left, bottom),
        (left, top),
    ];
    canvas.path(&corners, line_ink(FRAME, 1.0))
}

fn line_ink(colour: RGBColor, width: f64) -> Ink {
    Ink {
        colour,
        width,
        opacity: 1.0,
    }
}
