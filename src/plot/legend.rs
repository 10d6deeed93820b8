//! Legends: beside the frame, or in rows under it.

use super::canvas::{Anchor, Canvas, fit_text, text_width};
use super::frame::Frame;
use super::glyphs;
use super::letters::{EDGE, FAINT_TEXT, KEY, LEGEND_ROW, TEXT, TICK_SIZE, lettering};
use super::svg::Plot;
use crate::error::Result;

/// Rows of a legend that is under its panel.
const MOST_ROWS: usize = 5;

impl Plot<'_> {
    fn key(&self, canvas: &Canvas, place: (f64, f64), i: usize) -> Result<()> {
        let kind = &self.panel.series[i].kind;
        glyphs::key((canvas, &self.order), place, kind, self.looks[i])
    }

    /// Beside the frame.
    pub(super) fn draw_legend(&self, canvas: &Canvas, frame: &Frame) -> Result<()> {
        let entries = &self.entries;
        let rows = ((frame.bottom - frame.top) / LEGEND_ROW).max(1.0) as usize;
        let shown = match entries.len() {
            all if all <= rows => all,
            _ => rows - 1,
        };
        let left = frame.right + EDGE;
        let width = self.legend_width - KEY - EDGE;
        let mut y = frame.top + LEGEND_ROW / 2.0;
        for (i, label) in &entries[..shown] {
            self.key(canvas, (left, y), *i)?;
            let (label, size) = fit_text(label, TICK_SIZE, width);
            canvas.text(
                &label,
                (left + KEY, y),
                lettering(size, TEXT, Anchor::Start),
            )?;
            y += LEGEND_ROW;
        }
        if shown < entries.len() {
            let more = format!("… {} more", entries.len() - shown);
            canvas.text(
                &more,
                (left, y),
                lettering(TICK_SIZE, FAINT_TEXT, Anchor::Start),
            )?;
        }
        Ok(())
    }

    /// Row and left end of each entry of a legend under the frame, one after the other as words in a text.
    pub(super) fn legend_rows(&self) -> Vec<(usize, f64)> {
        let room = self.page.panel.0 - 2.0 * EDGE;
        let (mut row, mut left) = (0, 0.0);
        let place = |(_, label): &(usize, String)| {
            let width = (KEY + text_width(label, TICK_SIZE) + EDGE).min(room);
            if left + width > room && left > 0.0 {
                (row, left) = (row + 1, 0.0);
            }
            let at = (row, left);
            left += width;
            at
        };
        let mut places: Vec<_> = self.entries.iter().map(place).collect();
        places.retain(|place| place.0 < MOST_ROWS);
        places
    }

    /// Under it, down to `bottom`.
    pub(super) fn draw_legend_below(&self, canvas: &Canvas, left: f64, bottom: f64) -> Result<()> {
        let entries = &self.entries;
        let places = self.legend_rows();
        let room = self.page.panel.0 - 2.0 * EDGE - KEY;
        let first = bottom - self.legend_height;
        for (k, ((i, label), (row, along))) in entries.iter().zip(&places).enumerate() {
            let (x, y) = (left + EDGE + along, first + *row as f64 * LEGEND_ROW);
            // The last one that has room stands for those that have none.
            if k + 1 == places.len() && places.len() < entries.len() {
                let more = format!("… {} more", entries.len() - k);
                let faint = lettering(TICK_SIZE, FAINT_TEXT, Anchor::Start);
                return canvas.text(&more, (x, y), faint);
            }
            self.key(canvas, (x, y), *i)?;
            let (label, size) = fit_text(label, TICK_SIZE, room);
            let ink = lettering(size, TEXT, Anchor::Start);
            canvas.text(&label, (x + KEY, y), ink)?;
        }
        Ok(())
    }
}
