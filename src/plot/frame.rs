//! The rectangle that holds a panel's data: values to pixels, and what is inside.

use super::decimate::Pixel;
use super::ticks::Span;

/// The rectangle of a panel in which its data is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x: Span,
    pub y: Span,
}

impl Frame {
    /// Make it narrower or lower until a unit is as long along x as along y.
    pub(super) fn equalise(&mut self) {
        let (wide, high) = (self.right - self.left, self.bottom - self.top);
        let ratio = (self.x.high - self.x.low) / (self.y.high - self.y.low);
        if ratio * high < wide {
            self.right = self.left + ratio * high;
        } else {
            self.top = self.bottom - wide / ratio;
        }
    }

    pub(super) fn at_x(&self, x: f64) -> Option<f64> {
        self.x
            .place(x)
            .map(|part| self.left + part * (self.right - self.left))
    }

    pub(super) fn at_y(&self, y: f64) -> Option<f64> {
        self.y.place(y).map(|part| self.height_of(part))
    }

    pub(super) fn height_of(&self, part: f64) -> f64 {
        self.bottom - part * (self.bottom - self.top)
    }

    pub(super) fn has_x(&self, x: f64) -> bool {
        (self.left - 0.01..=self.right + 0.01).contains(&x)
    }

    pub(super) fn has_y(&self, y: f64) -> bool {
        (self.top - 0.01..=self.bottom + 0.01).contains(&y)
    }

    /// The nearest place in the frame.
    pub(super) fn inside(&self, (x, y): Pixel) -> Pixel {
        (
            x.clamp(self.left, self.right),
            y.clamp(self.top, self.bottom),
        )
    }

    /// The places of the points, none for those that cannot be drawn.
    pub(super) fn points(
        &self,
        x: &[f64],
        y: &[f64],
        place_y: impl Fn(&Span, f64) -> Option<f64>,
    ) -> Vec<Option<Pixel>> {
        x.iter()
            .zip(y)
            .map(|(&x, &y)| Some((self.at_x(x)?, self.height_of(place_y(&self.y, y)?))))
            .collect()
    }

    /// The part of the stretch from `a` to `b` that is in the frame (Liang and Barsky).
    pub(super) fn clip(&self, a: Pixel, b: Pixel) -> Option<(Pixel, Pixel)> {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
        for (rate, room) in [
            (-dx, a.0 - self.left),
            (dx, self.right - a.0),
            (-dy, a.1 - self.top),
            (dy, self.bottom - a.1),
        ] {
            match rate {
                0.0 if room < 0.0 => return None,
                0.0 => {}
                ..0.0 => enter = enter.max(room / rate),
                _ => leave = leave.min(room / rate),
            }
        }
        let at = |part: f64| (a.0 + part * dx, a.1 + part * dy);
        // An end inside stays exactly what it is, for the next stretch begins there.
        let from = if enter == 0.0 { a } else { at(enter) };
        let to = if leave == 1.0 { b } else { at(leave) };
        (enter <= leave).then_some((from, to))
    }

    /// The parts of a line that are in the frame.
    pub(super) fn clip_line(&self, run: &[Pixel]) -> Vec<Vec<Pixel>> {
        let mut parts: Vec<Vec<Pixel>> = Vec::new();
        for two in run.windows(2) {
            let Some((from, to)) = self.clip(two[0], two[1]) else {
                continue;
            };
            match parts.last_mut() {
                Some(part) if part.last() == Some(&from) => part.push(to),
                _ => parts.push(vec![from, to]),
            }
        }
        parts
    }
}

/// The stretches without gaps. A gap narrower than a pixel could not be seen and is bridged.
pub(super) fn runs(points: &[Option<Pixel>]) -> Vec<Vec<Pixel>> {
    let mut runs: Vec<Vec<Pixel>> = Vec::new();
    let mut gap = true;
    for point in points {
        match (point, runs.last_mut()) {
            (None, _) => gap = true,
            (Some(point), Some(run))
                if !gap
                    || run
                        .last()
                        .is_some_and(|last| (point.0 - last.0).abs() < 1.0) =>
            {
                run.push(*point);
                gap = false;
            }
            (Some(point), _) => {
                runs.push(vec![*point]);
                gap = false;
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    fn frame() -> Frame {
        let span = Span::fixed(Scale::Linear, Some((0.0, 1.0))).unwrap();
        Frame {
            left: 0.0,
            right: 100.0,
            top: 0.0,
            bottom: 100.0,
            x: span,
            y: span,
        }
    }

    #[test]
    fn lines_are_cut_at_the_frame() {
        let line = [
            (50.0, 50.0),
            (150.0, 50.0),
            (150.0, 150.0),
            (50.0, 50.0),
            (10.0, 10.0),
        ];
        let parts = frame().clip_line(&line);
        assert_eq!(parts[0], [(50.0, 50.0), (100.0, 50.0)]);
        assert_eq!(parts[1], [(100.0, 100.0), (50.0, 50.0), (10.0, 10.0)]);
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn gaps_are_kept_where_they_can_be_seen() {
        let points = [0.1, f64::NAN, 0.2, 0.201, f64::INFINITY, 0.202];
        let points = frame().points(&points, &[0.5; 6], Span::place);
        let lengths: Vec<usize> = runs(&points).iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 3]);
    }
}
