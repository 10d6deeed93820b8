//! Figures in a terminal: dots of Braille, two by four to a character, with numbers at the axes.

use super::extent::{has_bars, legend, span_of, x_values, y_values};
use super::ticks::Span;
use super::{Axis, Figure, Kind, Panel, Series};
use std::fmt::Write;

/// Rows of characters of a panel.
const ROWS: usize = 16;

/// Columns that the numbers of the y axis take.
const NUMBERS: usize = 9;

/// ANSI colours, in the order of the series.
const COLOURS: [u8; 6] = [34, 33, 32, 35, 36, 31];

/// The dots of a Braille character, by column and row.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Darker and darker.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// What is drawn so far.
struct Canvas {
    columns: usize,
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    dots: u8,
    shade: Option<char>,
    colour: u8,
}

impl Canvas {
    fn new(columns: usize) -> Self {
        Self {
            columns,
            cells: vec![Cell::default(); columns * ROWS],
        }
    }

    /// Dots across and up.
    fn size(&self) -> (f64, f64) {
        ((2 * self.columns) as f64, (4 * ROWS) as f64)
    }

    /// The dot at parts of the width and the height, from the lower left; none outside.
    fn at(&self, x: f64, y: f64) -> (i64, i64) {
        let (width, height) = self.size();
        let round = |part: f64, length: f64| (part * (length - 1.0)).round() as i64;
        (round(x, width), round(1.0 - y, height))
    }

    fn dot(&mut self, (x, y): (i64, i64), colour: u8) {
        let inside = (0..2 * self.columns as i64).contains(&x) && (0..4 * ROWS as i64).contains(&y);
        if !inside {
            return;
        }
        let (x, y) = (x as usize, y as usize);
        let cell = &mut self.cells[y / 4 * self.columns + x / 2];
        cell.dots |= DOTS[x % 2][y % 4];
        cell.colour = colour;
    }

    fn line(&mut self, a: (i64, i64), b: (i64, i64), colour: u8) {
        let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).max(1);
        // Far outside it would take for ever; nothing of it is seen.
        if steps > 100_000 {
            return;
        }
        for k in 0..=steps {
            let between = |from: i64, to: i64| from + ((to - from) * k) / steps;
            self.dot((between(a.0, b.0), between(a.1, b.1)), colour);
        }
    }

    fn row(&self, row: usize, colours: bool) -> String {
        let mut out = String::new();
        let mut now = 0;
        for cell in &self.cells[row * self.columns..][..self.columns] {
            let (c, colour) = match (cell.dots, cell.shade) {
                (0, Some(shade)) => (shade, cell.colour),
                (0, None) => (' ', now),
                (dots, _) => (
                    char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
                    cell.colour,
                ),
            };
            if colours && colour != now {
                let _ = write!(out, "\x1b[{colour}m");
                now = colour;
            }
            out.push(c);
        }
        if now != 0 {
            out += "\x1b[0m";
        }
        out
    }
}

impl Figure {
    /// The figure as text, so many columns wide, in colours if the terminal has them: panel under panel.
    pub fn to_text(&self, columns: usize, colours: bool) -> String {
        let mut out = String::new();
        if !self.title.is_empty() {
            let _ = writeln!(out, "{}", self.title);
        }
        for panel in &self.panels {
            out += &draw(panel, columns.max(NUMBERS + 20), colours);
        }
        out.trim_end().to_string()
    }
}

fn draw(panel: &Panel, columns: usize, colours: bool) -> String {
    let series = || panel.series.iter();
    let x = span_of(
        &panel.x,
        series().flat_map(|one| x_values(one, panel.y.scale)),
        false,
    );
    let y = span_of(
        &panel.y,
        series().flat_map(|one| y_values(one, panel.y.scale)),
        has_bars(panel),
    );
    let mut canvas = Canvas::new(columns - NUMBERS - 1);
    for (k, one) in series().enumerate() {
        let mut painter = Painter {
            canvas: &mut canvas,
            one,
            x: &x,
            y: &y,
            colour: COLOURS[k % COLOURS.len()],
        };
        painter.paint();
    }
    let mut out = String::new();
    let mut heading = vec![panel.title.clone(), panel.y.label.clone()];
    heading.retain(|t| !t.is_empty());
    if !heading.is_empty() {
        let _ = writeln!(out, "{:NUMBERS$} {}", "", heading.join(" · "));
    }
    let numbers = numbers(&panel.y, &y);
    for row in 0..ROWS {
        let number = numbers
            .iter()
            .find(|(at, _)| *at == row)
            .map_or("", |(_, text)| text);
        let _ = writeln!(
            out,
            "{number:>width$}┤{}",
            canvas.row(row, colours),
            width = NUMBERS
        );
    }
    out += &foot(panel, &x, canvas.columns);
    let legend = legend(panel).into_iter().map(|(k, text)| match colours {
        true => format!("\x1b[{}m●\x1b[0m {text}", COLOURS[k % COLOURS.len()]),
        false => text,
    });
    let legend: Vec<_> = legend.collect();
    if !legend.is_empty() {
        let _ = writeln!(out, "{:NUMBERS$} {}", "", legend.join("   "));
    }
    for note in &panel.annotations {
        let _ = writeln!(out, "{:NUMBERS$} {note}", "");
    }
    out
}

/// The rows of characters that have a number of the y axis, and it.
fn numbers(axis: &Axis, y: &Span) -> Vec<(usize, String)> {
    let ticks = y.ticks_of(axis, ROWS as f64, |_| 2.0);
    let row = |(value, text): (f64, String)| {
        let part = y.place(value)?;
        (0.0..=1.0).contains(&part).then(|| {
            let text: String = text.chars().take(NUMBERS).collect();
            (((1.0 - part) * (ROWS - 1) as f64).round() as usize, text)
        })
    };
    ticks.major.into_iter().filter_map(row).collect()
}

/// The x axis with its numbers and its label.
fn foot(panel: &Panel, x: &Span, columns: usize) -> String {
    let mut line: Vec<char> = vec![' '; columns];
    let ticks = x.ticks_of(&panel.x, columns as f64, |text| {
        text.chars().count() as f64 + 2.0
    });
    for (value, text) in ticks.major {
        let Some(part) = x.place(value).filter(|p| (0.0..=1.0).contains(p)) else {
            continue;
        };
        let length = text.chars().count();
        let middle = (part * (columns - 1) as f64).round() as usize;
        let from = middle
            .saturating_sub(length / 2)
            .min(columns.saturating_sub(length));
        for (to, c) in line[from..].iter_mut().zip(text.chars()) {
            *to = c;
        }
    }
    let line: String = line.into_iter().collect();
    let mut out = format!(
        "{:NUMBERS$}└{}\n{:NUMBERS$} {}\n",
        "",
        "─".repeat(columns),
        "",
        line.trim_end()
    );
    if !panel.x.label.is_empty() {
        let _ = writeln!(out, "{:NUMBERS$} {:^columns$}", "", panel.x.label);
    }
    out
}

/// A series that is being drawn.
struct Painter<'a> {
    canvas: &'a mut Canvas,
    one: &'a Series,
    x: &'a Span,
    y: &'a Span,
    colour: u8,
}

impl Painter<'_> {
    fn paint(&mut self) {
        let one = self.one;
        match &one.kind {
            Kind::Line => self.curve(&one.y, 1),
            Kind::Dashed => self.curve(&one.y, 2),
            Kind::Band { lower, upper } => {
                self.curve(lower, 1);
                self.curve(upper, 1);
            }
            Kind::Points => self.markers(),
            Kind::LinePoints => {
                self.curve(&one.y, 1);
                self.markers();
            }
            Kind::Bars => self.bars(),
            Kind::HLine(level) => {
                if let Some(part) = self.y.place(*level) {
                    let (right, at) = self.canvas.at(1.0, part);
                    (0..=right)
                        .step_by(4)
                        .for_each(|px| self.canvas.dot((px, at), self.colour));
                }
            }
            Kind::VLine(value) => self.upright(*value, 3),
            Kind::Shade(from, to) => {
                self.upright(*from, 5);
                self.upright(*to, 5);
            }
            Kind::Density { values } | Kind::Contours { values, .. } => {
                shade(self.canvas, one, values, (self.x, self.y), self.colour)
            }
            // From the bluest, the lightest, to the reddest.
            Kind::Cells { values, low, high } => {
                let part = |v: &f64| ((v - low) / (high - low)).clamp(0.01, 1.0);
                let parts: Vec<f64> = values.iter().map(part).collect();
                shade(self.canvas, one, &parts, (self.x, self.y), self.colour)
            }
        }
    }

    fn points(&self, ys: &[f64]) -> Vec<Option<(i64, i64)>> {
        let place =
            |(a, b): (&f64, &f64)| Some(self.canvas.at(self.x.place(*a)?, self.y.place(*b)?));
        self.one.x.iter().zip(ys).map(place).collect()
    }

    /// Lines from point to point: each, or only every so many.
    fn curve(&mut self, ys: &[f64], every: usize) {
        for pair in self.points(ys).windows(2).step_by(every) {
            if let [Some(a), Some(b)] = pair {
                self.canvas.line(*a, *b, self.colour);
            }
        }
    }

    /// Two by two dots at each point, and the error bar.
    fn markers(&mut self) {
        let one = self.one;
        for (k, at) in self.points(&one.y).into_iter().enumerate() {
            let Some((px, py)) = at else { continue };
            for (i, j) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                self.canvas.dot((px + i, py + j), self.colour);
            }
            let error = one
                .y_error
                .as_ref()
                .and_then(|e| e.get(k))
                .filter(|e| e.is_finite());
            let ends =
                error.map(|e| [one.y[k] - e, one.y[k] + e].map(|v| self.y.place_or_bottom(v)));
            if let Some([Some(low), Some(high)]) = ends {
                let (low, high) = (self.canvas.at(0.0, low).1, self.canvas.at(0.0, high).1);
                self.canvas.line((px, low), (px, high), self.colour);
            }
        }
    }

    fn bars(&mut self) {
        for (edges, height) in self.one.x.windows(2).zip(&self.one.y) {
            let (Some(a), Some(b)) = (self.x.place(edges[0]), self.x.place(edges[1])) else {
                continue;
            };
            let height = self.y.place_or_bottom(*height).unwrap_or(0.0);
            let ((a, up), (b, bottom)) = (self.canvas.at(a, height), self.canvas.at(b, 0.0));
            self.canvas.line((a, up), (b, up), self.colour);
            self.canvas.line((a, up), (a, bottom), self.colour);
            self.canvas.line((b, up), (b, bottom), self.colour);
        }
    }

    /// A dotted line from top to bottom.
    fn upright(&mut self, x: f64, every: usize) {
        if let Some(part) = self.x.place(x) {
            let ((at, bottom), (_, top)) = (self.canvas.at(part, 0.0), self.canvas.at(part, 1.0));
            (top..=bottom)
                .step_by(every)
                .for_each(|py| self.canvas.dot((at, py), self.colour));
        }
    }
}

/// A shade for every character: the greatest value is the darkest.
fn shade(canvas: &mut Canvas, one: &Series, values: &[f64], (x, y): (&Span, &Span), colour: u8) {
    let most = values
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let width = match one.kind {
        Kind::Contours { .. } => one.x.len(),
        _ => one.x.len().saturating_sub(1),
    };
    if width == 0 || most <= 0.0 {
        return;
    }
    // The cell of a value: that whose lower edge, or point, is the last one before it.
    let index = |edges: &[f64], span: &Span, part: f64| {
        edges
            .iter()
            .rposition(|e| span.place(*e).is_some_and(|p| p <= part))
    };
    let columns = canvas.columns;
    for row in 0..ROWS {
        for column in 0..columns {
            let part = (
                (column as f64 + 0.5) / columns as f64,
                1.0 - (row as f64 + 0.5) / ROWS as f64,
            );
            let (Some(i), Some(j)) = (index(&one.x, x, part.0), index(&one.y, y, part.1)) else {
                continue;
            };
            let value = values.get(j * width + i).copied().unwrap_or(0.0);
            if i < width && value > 0.0 {
                let level = ((value / most * SHADES.len() as f64) as usize).min(SHADES.len() - 1);
                let cell = &mut canvas.cells[row * columns + column];
                (cell.shade, cell.colour) = (Some(SHADES[level]), colour);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagonal_goes_from_corner_to_corner() {
        let x: Vec<f64> = (0..=10).map(f64::from).collect();
        let panel = Panel::new(
            Axis::linear("time").with_range(0.0, 10.0),
            Axis::linear("loss").with_range(0.0, 10.0),
            vec![Series::line("", x.clone(), x)],
        );
        let text = Figure::of(panel).titled("Diagonal").to_text(60, false);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "Diagonal");
        assert!(lines[1].ends_with("loss"));
        let rows = &lines[2..2 + ROWS];
        let first = |line: &str| line.chars().skip(NUMBERS + 1).position(|c| c != ' ');
        assert_eq!(first(rows[ROWS - 1]), Some(0), "{text}");
        assert!(
            rows[0].chars().count() == 60 && first(rows[0]) > Some(45),
            "{text}"
        );
        assert!(
            rows.windows(2).all(|two| first(two[0]) > first(two[1])),
            "{text}"
        );
        assert!(
            rows[0].trim_start().starts_with("10") && rows[ROWS - 1].trim_start().starts_with('0'),
            "{text}"
        );
        assert!(text.contains("time"));
    }

    #[test]
    fn nothing_that_can_be_in_a_figure_makes_it_fail() {
        let odd = vec![f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 1e-300];
        for x in [Axis::linear("x"), Axis::log("x")] {
            for y in [Axis::linear("y"), Axis::log("y")] {
                let series = vec![
                    Series::line("a", odd.clone(), odd.clone()),
                    Series::line_points("b", odd.clone(), odd.clone()).with_error(odd.clone()),
                    Series::bars("c", odd.clone(), odd.clone()),
                    Series::band("d", odd.clone(), odd.clone(), odd.clone()),
                    Series::density("e", odd.clone(), odd.clone(), odd.clone()),
                    Series::contours("f", (odd.clone(), odd.clone()), odd.clone(), odd.clone()),
                    Series::hline("g", f64::NAN),
                    Series::vline("h", -1.0),
                    Series::shade("i", 1.0, f64::INFINITY),
                ];
                let panel = Panel::new(x.clone(), y.clone(), series);
                assert!(Figure::of(panel).to_text(5, true).lines().count() > ROWS);
            }
        }
        assert_eq!(Figure::default().to_text(80, false), "");
    }

    #[test]
    fn colours_are_taken_back_at_the_end_of_each_line() {
        let panel = Panel::new(
            Axis::default(),
            Axis::default(),
            vec![
                Series::points("a", vec![1.0], vec![1.0]),
                Series::hline("b", 1.0),
            ],
        );
        let text = Figure::of(panel).to_text(40, true);
        for line in text.lines().filter(|l| l.contains("\x1b[3")) {
            assert!(line.rfind("\x1b[0m") > line.rfind("\x1b[3"), "{line:?}");
        }
    }
}
