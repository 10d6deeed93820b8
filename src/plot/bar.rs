//! The bar beside a frame that says which colour stands for which number.

use super::canvas::{Anchor, Canvas, Ink, text_width};
use super::frame::Frame;
use super::letters::{LABEL_SIZE, TEXT, TICK_SIZE, lettering};
use super::style::Style;
use super::ticks::{Span, Ticks};
use super::{Axis, Colours, Kind, Panel, Scale, field, shades};
use crate::error::Result;
use plotters::style::RGBColor;

/// Width of the bar, and the room around it.
const WIDTH: f64 = 14.0;
const ROOM: f64 = 14.0;

/// Colours of the bar.
pub(super) const STEPS: usize = 48;

/// What the colours of a panel stand for.
pub(super) struct Bar {
    axis: Axis,
    span: Span,
    colours: Vec<RGBColor>,
}

/// The bar of a panel, if its colours stand for numbers.
pub(super) fn of(panel: &Panel, style: &Style) -> Option<Bar> {
    if let Colours::By(axis, values) = &panel.colours {
        let coloured = panel.series.iter().filter(|one| one.has_own_colour());
        let shown = values.iter().zip(coloured).map(|(value, _)| *value);
        let span = Span::tight(axis.scale, shown)?;
        return Some(Bar {
            axis: axis.clone(),
            span,
            colours: style.in_order(),
        });
    }
    panel.series.iter().find_map(|one| {
        let (axis, range, colours) = match &one.kind {
            Kind::Cells { low, high, .. } => {
                (Axis::default(), (*low, *high), shades::DIVERGING.to_vec())
            }
            Kind::Density { values } if one.x.len() > 1 && one.y.len() > 1 => {
                let name = if one.label.is_empty() {
                    "density"
                } else {
                    &one.label
                };
                let most = field::greatest(one, values);
                (Axis::linear(name), (0.0, most), shades::BLUES.to_vec())
            }
            _ => return None,
        };
        Some(Bar {
            axis,
            span: Span::fixed(Scale::Linear, Some(range))?,
            colours,
        })
    })
}

impl Bar {
    /// The colour that stands for a number.
    pub(super) fn colour(&self, value: f64) -> Option<RGBColor> {
        let part = self.span.place(value)?;
        Some(shades::between(&self.colours, part))
    }

    fn ticks(&self, height: f64) -> Ticks {
        self.span.ticks_of(&self.axis, height, |_| TICK_SIZE * 1.8)
    }

    /// The room that it takes beside a frame of this height.
    pub(super) fn width(&self, height: f64) -> f64 {
        let ticks = self.ticks(height).major;
        let widest = ticks.iter().map(|(_, text)| text_width(text, TICK_SIZE));
        let label = if self.axis.label.is_empty() {
            0.0
        } else {
            LABEL_SIZE + 6.0
        };
        ROOM + WIDTH + 8.0 + widest.fold(0.0, f64::max) + label + ROOM / 2.0
    }

    /// Draws it beside the frame.
    pub(super) fn draw(&self, canvas: &Canvas, frame: &Frame) -> Result<()> {
        let (left, right) = (frame.right + ROOM, frame.right + ROOM + WIDTH);
        let ink = |colour| Ink {
            colour,
            width: 1.0,
            opacity: 1.0,
        };
        for k in 0..STEPS {
            let [from, to] = [k, k + 1].map(|k| frame.height_of(k as f64 / STEPS as f64));
            // Each reaches under the next, or light would show between them.
            let to = if k + 1 < STEPS { to - 0.4 } else { to };
            let block = [(left, from), (right, from), (right, to), (left, to)];
            let part = (k as f64 + 0.5) / STEPS as f64;
            canvas.area(&block, ink(shades::between(&self.colours, part)))?;
        }
        let mut widest = 0.0_f64;
        for (value, text) in self.ticks(frame.bottom - frame.top).major {
            let Some(part) = self.span.place(value) else {
                continue;
            };
            let y = frame.height_of(part);
            canvas.path(&[(right, y), (right + 4.0, y)], ink(TEXT))?;
            canvas.text(
                &text,
                (right + 8.0, y),
                lettering(TICK_SIZE, TEXT, Anchor::Start),
            )?;
            widest = widest.max(text_width(&text, TICK_SIZE));
        }
        let place = (
            right + 8.0 + widest + LABEL_SIZE / 2.0 + 4.0,
            (frame.top + frame.bottom) / 2.0,
        );
        canvas.text(
            &self.axis.label,
            place,
            lettering(LABEL_SIZE, TEXT, Anchor::Upwards),
        )
    }
}
