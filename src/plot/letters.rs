//! Letters and measures that all parts of a figure have in common, in pixels of its page.

use super::canvas::{Anchor, Lettering};
use plotters::style::RGBColor;

/// The room between a part and what is beside it.
pub(super) const EDGE: f64 = 14.0;

/// Numbers at ticks, and names in legends.
pub(super) const TICK_SIZE: f64 = 13.0;

/// Names of axes.
pub(super) const LABEL_SIZE: f64 = 15.0;

/// Height of an entry of a legend.
pub(super) const LEGEND_ROW: f64 = 20.0;

/// The sample of a series in a legend, and the room around it.
pub(super) const KEY: f64 = 32.0;

pub(super) const TEXT: RGBColor = RGBColor(30, 30, 30);
pub(super) const FAINT_TEXT: RGBColor = RGBColor(90, 90, 90);

pub(super) fn lettering(size: f64, colour: RGBColor, anchor: Anchor) -> Lettering {
    Lettering {
        size,
        colour,
        anchor,
    }
}
