//! Figures: series in, SVG out.
//!
//! A [`Figure`] is plain data: panels with axes and series. [`traces`], [`histogram`] and [`sweep`] build the usual
//! ones, [`Figure::stack`] puts several above each other, [`Figure::to_svg`] and [`Figure::save`] draw. Numbers that
//! cannot be drawn (NaN, infinite, not positive on a log axis) are left out, so that no data makes drawing fail.

mod canvas;
mod decimate;
mod extent;
mod frame;
mod histogram;
mod marks;
mod recipes;
mod save;
mod svg;
mod ticks;

use std::path::Path;

use crate::error::Result;

pub use recipes::{histogram, sweep, traces};

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

    /// The panels of all figures in one column. Where their x axes have one label and one scale, they share the range.
    /// A figure's heading becomes the title of its first panel, if that has none.
    pub fn stack(figures: Vec<Figure>) -> Self {
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
        let shared_x = panels
            .windows(2)
            .all(|two| two[0].x.label == two[1].x.label && two[0].x.scale == two[1].x.scale);
        Self {
            title: String::new(),
            panels,
            columns: 1,
            shared_x,
        }
    }

    /// The drawing as an SVG document.
    pub fn to_svg(&self) -> Result<String> {
        svg::render(self)
    }

    /// Writes the drawing to `path`, which must end in `.svg`. Missing folders are made; the file appears complete or
    /// not at all.
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
            range: None,
        }
    }

    /// The same axis from `low` to `high`.
    pub fn with_range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
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
    /// Abscissas; for [`Kind::Bars`] the edges of the bins, one more than `y`.
    pub x: Vec<f64>,
    /// Ordinates. What is beyond the shorter of `x` and `y` is left out.
    pub y: Vec<f64>,
    /// Half lengths of the error bars of [`Kind::Points`] and [`Kind::LinePoints`].
    pub y_error: Option<Vec<f64>>,
}

/// The way a [`Series`] is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A line, broken where a point cannot be drawn.
    Line,
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

    /// The same series with error bars `y ± error`.
    pub fn with_error(mut self, error: Vec<f64>) -> Self {
        self.y_error = Some(error);
        self
    }

    fn new(label: impl Into<String>, kind: Kind, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self {
            label: label.into(),
            kind,
            x,
            y,
            y_error: None,
        }
    }
}

#[cfg(test)]
mod tests;
