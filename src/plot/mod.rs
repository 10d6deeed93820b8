//! Figures: series in, SVG, PDF or PNG out.
//!
//! A [`Figure`] is plain data: panels with axes and series. [`traces`], [`histogram`] and [`sweep`] build the usual
//! ones, [`ridges`] a panel, [`density`] and [`band`] series; [`Figure::stack`] and [`Figure::beside`] put several
//! figures together, [`Figure::to_svg`] and [`Figure::save`] draw. Numbers that cannot be drawn (NaN, infinite, not
//! positive on a log axis) are left out, so that no data makes drawing fail.

mod bar;
mod canvas;
mod contours;
mod decimate;
mod density;
mod extent;
mod field;
mod frame;
mod glyphs;
mod heat;
mod histogram;
mod html;
mod label;
pub(crate) mod ladder;
pub(crate) mod learning;
mod legend;
mod letters;
mod pictures;
pub(crate) mod ranks;
mod recipes;
mod ridges;
mod save;
mod shades;
mod style;
mod svg;
mod terminal;
mod ticks;

use std::path::Path;

use crate::error::Result;

pub use contours::even_levels;
pub use density::{density, density_within};
pub use heat::{edges, panel as heat};
pub use html::address;
pub(crate) use label::name;
pub use label::{average, number};
pub use pictures::{base64, pictures};
pub(crate) use recipes::labels;
pub use recipes::{band, distributions, histogram, sweep, traces};
pub use ridges::ridges;
pub use style::{Legend, PALETTES, Style};

/// A drawing of one or more panels on a white page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// Heading above all panels; empty for none.
    pub title: String,
    /// The panels, row by row. A figure without panels draws one empty pair of axes.
    pub panels: Vec<Panel>,
    /// Panels side by side in a row; 0 counts as 1.
    pub columns: usize,
    /// Panels of a column have one x range, and only the lowest of them has x labels.
    pub shared_x: bool,
    /// Size, letters, colours, legend.
    pub style: Style,
}

impl Figure {
    /// A figure of a single panel.
    pub fn of(panel: Panel) -> Self {
        Self {
            panels: vec![panel],
            columns: 1,
            ..Self::default()
        }
    }

    /// The same figure under another heading.
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The same figure in another style.
    pub fn styled(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// The panels of all figures in one column. Where their x axes have one label and one scale, they share the range.
    /// A figure's heading becomes the title of its first panel, if that has none.
    pub fn stack(figures: Vec<Figure>) -> Self {
        let panels = Self::all_panels(figures);
        let shared_x = panels
            .windows(2)
            .all(|two| two[0].x.label == two[1].x.label && two[0].x.scale == two[1].x.scale);
        Self {
            panels,
            columns: 1,
            shared_x,
            ..Self::default()
        }
    }

    /// The panels of all figures side by side, so many in a row, each with axes of its own. A figure's heading becomes
    /// the title of its first panel, if that has none.
    pub fn beside(figures: Vec<Figure>, columns: usize) -> Self {
        Self {
            panels: Self::all_panels(figures),
            columns,
            ..Self::default()
        }
    }

    fn all_panels(figures: Vec<Figure>) -> Vec<Panel> {
        let mut panels: Vec<Panel> = Vec::new();
        for figure in figures {
            let first = panels.len();
            panels.extend(figure.panels);
            if let Some(panel) = panels.get_mut(first)
                && panel.title.is_empty()
            {
                panel.title = figure.title;
            }
        }
        panels
    }

    /// The drawing as an SVG document.
    ///
    /// # Errors
    /// If its style leaves no room for it.
    pub fn to_svg(&self) -> Result<String> {
        svg::render(self, svg::ALONE, self.style.size)
    }

    /// The drawing as a PDF document of one page, with its own font.
    ///
    /// # Errors
    /// As [`Figure::to_svg`].
    pub fn to_pdf(&self) -> Result<Vec<u8>> {
        save::pdf(&self.to_svg()?)
    }

    /// The drawing as a PNG image, with as many dots per inch as its style says.
    ///
    /// # Errors
    /// As [`Figure::to_svg`], and if it has too many pixels.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        save::png(&self.to_svg()?, self.style.dpi)
    }

    /// The drawing as an image of a notebook: never wider than its cell, and light on dark where the notebook is.
    pub fn to_html(&self) -> Result<String> {
        Ok(html::image(&self.to_svg()?, &self.title))
    }

    /// The same, smaller and with legends under the panels: to stand on a page with others, which a telephone shows too.
    pub fn to_inline_svg(&self) -> Result<String> {
        Ok(svg::fitting(&svg::render(self, svg::INLINE, None)?))
    }

    /// Every panel as a figure of its own, unless panels share their x axis; the first keeps the heading.
    pub fn apart(self) -> Vec<Figure> {
        if self.shared_x || self.panels.len() < 2 {
            return vec![self];
        }
        let mut title = self.title;
        let single = |panel| Figure::of(panel).titled(std::mem::take(&mut title));
        self.panels.into_iter().map(single).collect()
    }

    /// Writes the drawing to `path`, which must end in `.svg`, `.pdf` or `.png`. Missing folders are made; the file
    /// appears complete or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        save::save(self, path)
    }
}

/// One pair of axes and what is drawn in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Panel {
    /// Heading of the panel; empty for none.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first lowest.
    pub series: Vec<Series>,
    /// Notes: small lines of text under the title.
    pub annotations: Vec<String>,
    /// How its series get their colours.
    pub colours: Colours,
    /// A unit is as long along x as along y.
    pub equal: bool,
}

/// How the series of a panel get their colours.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Colours {
    /// One after the other out of a palette.
    #[default]
    Turn,
    /// In an order, as by time: from blue (the first) to red (the last).
    Order,
    /// By a number that each has, as its temperature: a bar beside the frame, with this axis, stands for their legend.
    By(Axis, Vec<f64>),
}

impl Colours {
    /// Whether a legend tells the series apart.
    fn has_legend(&self) -> bool {
        !matches!(self, Self::By(..))
    }
}

impl Panel {
    /// A panel with these axes and series, without title or notes.
    pub fn new(x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self {
            x,
            y,
            series,
            ..Self::default()
        }
    }
}

/// One axis of a panel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    /// Text beside the axis; empty for none.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Lowest and highest value shown. `None`, or a range that cannot be (empty, infinite, not positive on a log axis):
    /// chosen from the data.
    pub range: Option<(f64, f64)>,
    /// Values to mark and what to write there, in place of numbers. None: round numbers.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis that covers the data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// A logarithmic axis that covers the positive data.
    pub fn log(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Log,
            ..Self::default()
        }
    }

    /// The same axis from `low` to `high`.
    pub fn with_range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The same axis with these texts in place of numbers. Where they would touch, some are left out.
    pub fn with_ticks(mut self, ticks: Vec<(f64, String)>) -> Self {
        self.ticks = ticks;
        self
    }
}

/// How an axis maps values to lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal differences take equal lengths.
    #[default]
    Linear,
    /// Equal ratios take equal lengths.
    Log,
}

/// Numbers and the way they are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend; empty for none. A panel has a legend when more than one of its series has a label.
    pub label: String,
    /// How the numbers are drawn.
    pub kind: Kind,
    /// Abscissas; for [`Kind::Bars`] the edges of the bins, one more than `y`; for [`Kind::Density`] and [`Kind::Cells`] the edges of the
    /// columns, for [`Kind::Contours`] the columns of the grid.
    pub x: Vec<f64>,
    /// Ordinates. What is beyond the shorter of `x` and `y` is left out. For [`Kind::Density`] and [`Kind::Cells`] the edges of the rows,
    /// for [`Kind::Contours`] the rows of the grid.
    pub y: Vec<f64>,
    /// Half lengths of the error bars of [`Kind::Points`] and [`Kind::LinePoints`].
    pub y_error: Option<Vec<f64>>,
    /// Which markers are hollow, as those of points that are not to be trusted. What is beyond its end is filled.
    pub hollow: Vec<bool>,
}

/// The way a [`Series`] is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A line, broken where a point cannot be drawn.
    Line,
    /// A dashed grey line, as for a theory or a reference.
    Dashed,
    /// Markers.
    Points,
    /// Markers joined by a line.
    LinePoints,
    /// Steps over bins, lightly filled.
    Bars,
    /// The strip between two curves over `x`; without a label it takes the colour of the next series.
    Band {
        /// The lower curve.
        lower: Vec<f64>,
        /// The upper curve.
        upper: Vec<f64>,
    },
    /// Filled cells between the edges `x` and `y`: the greater the value, the darker blue. Cells whose value is not
    /// positive are not drawn.
    Density {
        /// One row after the other, that between the first two `y` first.
        values: Vec<f64>,
    },
    /// Filled cells between the edges `x` and `y`, from blue (`low` and less) through white to red (`high` and more), with their numbers where there is
    /// room. Cells whose value is not finite are crossed.
    Cells {
        /// One row after the other, that between the first two `y` first.
        values: Vec<f64>,
        /// The value of the bluest colour.
        low: f64,
        /// The value of the reddest.
        high: f64,
    },
    /// Lines of equal value on the grid `x`, `y`, from blue (the lowest level) to red (the highest).
    Contours {
        /// One row after the other, that of the first `y` first.
        values: Vec<f64>,
        /// The values that have a line.
        levels: Vec<f64>,
    },
    /// A dashed horizontal line at this y.
    HLine(f64),
    /// A dashed vertical line at this x.
    VLine(f64),
    /// A grey strip between two x.
    Shade(f64, f64),
}

impl Series {
    /// A line through the points.
    pub fn line(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self::new(label, Kind::Line, x, y)
    }

    /// A dashed grey line through the points.
    pub fn dashed(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self::new(label, Kind::Dashed, x, y)
    }

    /// A marker at every point.
    pub fn points(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self::new(label, Kind::Points, x, y)
    }

    /// Markers joined by a line.
    pub fn line_points(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self::new(label, Kind::LinePoints, x, y)
    }

    /// A histogram: `edges` of the bins, one more than `heights`.
    pub fn bars(label: impl Into<String>, edges: Vec<f64>, heights: Vec<f64>) -> Self {
        Self::new(label, Kind::Bars, edges, heights)
    }

    /// The strip between two curves.
    pub fn band(label: impl Into<String>, x: Vec<f64>, lower: Vec<f64>, upper: Vec<f64>) -> Self {
        Self::new(label, Kind::Band { lower, upper }, x, Vec::new())
    }

    /// A two-dimensional histogram: edges of columns and rows, and a value for each cell, row after row.
    pub fn density(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>, values: Vec<f64>) -> Self {
        Self::new(label, Kind::Density { values }, x, y)
    }

    /// A heat map: edges of columns and rows, a value for each cell, row after row, and the range of the colours.
    fn cells((x, y): (Vec<f64>, Vec<f64>), values: Vec<f64>, (low, high): (f64, f64)) -> Self {
        Self::new("", Kind::Cells { values, low, high }, x, y)
    }

    /// Lines at these levels of a function with a value for each point of the grid, row after row.
    pub fn contours(
        label: impl Into<String>,
        (x, y): (Vec<f64>, Vec<f64>),
        values: Vec<f64>,
        levels: Vec<f64>,
    ) -> Self {
        Self::new(label, Kind::Contours { values, levels }, x, y)
    }

    /// A dashed horizontal line.
    pub fn hline(label: impl Into<String>, y: f64) -> Self {
        Self::new(label, Kind::HLine(y), Vec::new(), Vec::new())
    }

    /// A dashed vertical line.
    pub fn vline(label: impl Into<String>, x: f64) -> Self {
        Self::new(label, Kind::VLine(x), Vec::new(), Vec::new())
    }

    /// A grey strip from one x to another.
    pub fn shade(label: impl Into<String>, from: f64, to: f64) -> Self {
        Self::new(label, Kind::Shade(from, to), Vec::new(), Vec::new())
    }

    /// Whether it takes a colour of its own.
    fn has_own_colour(&self) -> bool {
        match self.kind {
            Kind::Band { .. } => !self.label.is_empty(),
            Kind::Line | Kind::LinePoints | Kind::Points | Kind::Bars => true,
            _ => false,
        }
    }

    /// The same series with error bars `y ± error`.
    pub fn with_error(mut self, error: Vec<f64>) -> Self {
        self.y_error = Some(error);
        self
    }

    /// The same series with hollow markers where this says so.
    pub fn with_hollow(mut self, hollow: Vec<bool>) -> Self {
        self.hollow = hollow;
        self
    }

    fn new(label: impl Into<String>, kind: Kind, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self {
            label: label.into(),
            kind,
            x,
            y,
            y_error: None,
            hollow: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
