//! Ranges of axes, the ticks on them and the numbers beside the ticks.

use super::{Axis, Scale, label};

/// Values of a greater magnitude cannot be drawn: differences and ratios of them may overflow.
const LARGEST: f64 = 1e150;

/// Positive values below this are too small for a logarithmic axis.
const SMALLEST: f64 = 1e-150;

/// A range that can be drawn: finite, not empty, positive if logarithmic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    scale: Scale,
    pub low: f64,
    pub high: f64,
}

/// Ticks within a span.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Ticks {
    /// Ticks with a label.
    pub major: Vec<(f64, String)>,
    /// Ticks without.
    pub minor: Vec<f64>,
}

/// Whether an axis of this scale can show the value.
pub(super) fn drawable(scale: Scale, value: f64) -> bool {
    value.abs() <= LARGEST && (scale == Scale::Linear || value >= SMALLEST)
}

impl Span {
    /// The range asked for, if it can be.
    pub(super) fn fixed(scale: Scale, range: Option<(f64, f64)>) -> Option<Self> {
        let (a, b) = range?;
        let (low, high) = (a.min(b), a.max(b));
        let span = Self { scale, low, high };
        (drawable(scale, a) && drawable(scale, b) && !span.is_narrow()).then_some(span)
    }

    /// The range of the drawable values, if they differ.
    pub(super) fn tight(scale: Scale, values: impl Iterator<Item = f64>) -> Option<Self> {
        let drawable = values.filter(|value| drawable(scale, *value));
        let extremes = drawable.map(|value| (value, value));
        let range = extremes.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)));
        Self::fixed(scale, range)
    }

    /// The range of the drawable values with some room; around a single value if they are all the same. Without any: a
    /// unit or a decade.
    pub(super) fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let extremes = values
            .filter(|value| drawable(scale, *value))
            .map(|value| (value, value))
            .reduce(|(low, high), (value, _)| (low.min(value), high.max(value)));
        let (low, high) = extremes.unwrap_or(match scale {
            Scale::Linear => (0.0, 1.0),
            Scale::Log => (1.0, 10.0),
        });
        let span = Self { scale, low, high };
        match scale {
            Scale::Linear if span.is_narrow() => {
                let middle = low + (high - low) / 2.0;
                let room = if middle.abs() < SMALLEST {
                    1.0
                } else {
                    middle.abs() * 0.1
                };
                span.between(middle - room, middle + room)
            }
            Scale::Linear => {
                let room = (high - low) * 0.04;
                span.between(low - room, high + room)
            }
            Scale::Log if span.is_narrow() => span.between(low / 3.0, high * 3.0),
            Scale::Log => {
                let room = (high / low).powf(0.04);
                span.between(low / room, high * room)
            }
        }
    }

    /// The same scale over another range.
    pub(super) fn between(self, low: f64, high: f64) -> Self {
        Self { low, high, ..self }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end, bounded far outside. None if it cannot be drawn.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let part = match self.scale {
            _ if !drawable(self.scale, value) => return None,
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        Some(part.clamp(-1e4, 1e4))
    }

    /// Like [`Span::place`], with what lies below every positive number at the low end.
    pub(super) fn place_or_bottom(&self, value: f64) -> Option<f64> {
        match self.scale {
            Scale::Log if (-LARGEST..SMALLEST).contains(&value) => Some(0.0),
            _ => self.place(value),
        }
    }

    /// Whether the value is within the range.
    pub(super) fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The ticks that the axis asks for, or else those of [`Span::ticks`]. The labels that would touch others are left
    /// out.
    pub fn ticks_of(&self, axis: &Axis, length: f64, extent: impl Fn(&str) -> f64) -> Ticks {
        if axis.ticks.is_empty() {
            return self.ticks(length, extent);
        }
        let mut given: Vec<(f64, String)> = axis.ticks.clone();
        given.retain(|(value, _)| self.contains(*value) && drawable(self.scale, *value));
        given.sort_by(|a, b| a.0.total_cmp(&b.0));
        let minor = given.iter().map(|(value, _)| *value).collect();
        let with_label = |stride: usize| given.iter().step_by(stride).cloned().collect();
        (1..=given.len())
            .map(|stride| Ticks {
                major: with_label(stride),
                minor: Vec::new(),
            })
            .find(|ticks| self.fits(ticks, length, &extent))
            .map(|ticks| Ticks { minor, ..ticks })
            .unwrap_or_default()
    }

    /// Ticks for an axis of this many pixels, such that labels as long as `extent` says do not touch.
    pub fn ticks(&self, length: f64, extent: impl Fn(&str) -> f64) -> Ticks {
        let fits = |ticks: &Ticks| self.fits(ticks, length, &extent);
        let decades = (self.high / self.low).log10();
        if self.scale == Scale::Log && decades > 1.0 {
            return (1..)
                .map(|stride| self.log_ticks(stride, fits))
                .find(|ticks| ticks.major.len() < 3 || (ticks.major.len() <= 12 && fits(ticks)))
                .unwrap_or_default();
        }
        let target = (length / 38.0).clamp(3.0, 7.0) as usize;
        (1..=target)
            .rev()
            .map(|count| self.linear_ticks(count))
            .find(fits)
            .unwrap_or_default()
    }

    /// Whether the labels do not touch.
    fn fits(&self, ticks: &Ticks, length: f64, extent: impl Fn(&str) -> f64) -> bool {
        ticks.major.windows(2).all(|two| {
            let apart = self
                .place(two[1].0)
                .zip(self.place(two[0].0))
                .map_or(0.0, |(b, a)| b - a);
            apart * length >= (extent(&two[0].1) + extent(&two[1].1)) / 2.0
        })
    }

    /// Ticks at about `count` round numbers.
    fn linear_ticks(&self, count: usize) -> Ticks {
        let raw = (self.high - self.low) / count as f64;
        let power = raw.log10().floor();
        let unit = power_of_ten(power as i32);
        let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * unit >= raw * 0.8);
        let (factor, power) = factor.map_or((1.0, power as i32 + 1), |f| (f, power as i32));
        // Multiples of a power of ten: dividing by 10^-power is exact where multiplying by 10^power is not.
        let value = |i: f64| match power {
            ..0 => i * factor / power_of_ten(-power),
            _ => i * factor * power_of_ten(power),
        };
        let step = value(1.0);
        let first = (self.low / step - 1e-6).ceil();
        let values: Vec<f64> = (0..=2 * count.max(4))
            .map(|i| value(first + i as f64))
            .take_while(|v| *v <= self.high + step * 1e-6)
            // Zero without a sign.
            .map(|v| if v == 0.0 { 0.0 } else { v })
            .collect();
        let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        // Small differences of large numbers are easier to see without an exponent.
        let is_offset = largest < 1e9 && power < 0;
        let label = |v: f64| match largest {
            ..1e-3 => scientific(v, power),
            _ if largest > 1e5 && !is_offset => scientific(v, power),
            _ => format!("{v:.*}", usize::try_from(-power).unwrap_or(0)),
        };
        Ticks {
            major: values.into_iter().map(|v| (v, label(v))).collect(),
            minor: Vec::new(),
        }
    }

    /// Ticks at every `stride`-th decade, and at 2 and 5 times these if there are few decades and the labels fit.
    fn log_ticks(&self, stride: i32, fits: impl Fn(&Ticks) -> bool) -> Ticks {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let multiples = |digits: &'static [f64]| {
            (first..=last)
                .flat_map(move |power| digits.iter().map(move |digit| (*digit, power)))
                .filter(|(digit, power)| self.holds(digit * power_of_ten(*power)))
        };
        let labelled = |(digit, power): (f64, i32)| {
            let value = digit * power_of_ten(power);
            (value, power_label(digit, power, first, last))
        };
        let minor: Vec<f64> = match last - first {
            ..=8 => multiples(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
                .map(|(digit, power)| digit * power_of_ten(power))
                .collect(),
            9..=60 => multiples(&[1.0])
                .map(|(digit, power)| digit * power_of_ten(power))
                .collect(),
            _ => Vec::new(),
        };
        let decades = Ticks {
            major: multiples(&[1.0])
                .filter(|(_, power)| power.rem_euclid(stride) == 0)
                .map(labelled)
                .collect(),
            minor,
        };
        if stride == 1 && decades.major.len() < 3 {
            let finer = Ticks {
                major: multiples(&[1.0, 2.0, 5.0]).map(labelled).collect(),
                minor: decades.minor.clone(),
            };
            if fits(&finer) {
                return finer;
            }
        }
        decades
    }

    /// Whether a tick at this value is within the range, give or take rounding.
    fn holds(&self, value: f64) -> bool {
        self.place(value)
            .is_some_and(|place| (-1e-9..=1.0 + 1e-9).contains(&place))
    }

    /// Whether the range is too narrow for ticks to differ.
    fn is_narrow(&self) -> bool {
        let width = self.high - self.low;
        width <= self.low.abs().max(self.high.abs()) * 1e-10 || width < SMALLEST
    }
}

/// `10⁻⁶`, or `0.1` where the axis has few decades around one.
fn power_label(digit: f64, power: i32, first: i32, last: i32) -> String {
    match (first, last) {
        (-3.., ..=4) => {
            let decimals = usize::try_from(-power).unwrap_or(0);
            format!("{:.decimals$}", digit * power_of_ten(power))
        }
        _ => label::power(&digit.to_string(), power),
    }
}

/// `v`, a multiple of 10^power, as `1.5×10⁻⁷` without needless zeros.
fn scientific(v: f64, power: i32) -> String {
    if v == 0.0 {
        return "0".to_string();
    }
    let digits = (v.abs().log10() + 1e-9).floor() as i32 - power;
    let text = format!("{v:.*e}", usize::try_from(digits).unwrap_or(0));
    let (mut mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    if mantissa.contains('.') {
        mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    }
    label::power(mantissa, exponent.parse().unwrap_or(0))
}

/// Exact as far as a number can be, unlike `powi`.
fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, low: f64, high: f64, length: f64) -> Vec<String> {
        let ticks = Span { scale, low, high }.ticks(length, |label| label.len() as f64 * 4.0);
        ticks.major.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_labels_are_readable() {
        let linear = |low, high| labels(Scale::Linear, low, high, 200.0);
        assert_eq!(linear(0.0, 0.42), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(linear(-1.0, 1.0), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(
            linear(0.0, 2e-7),
            ["0", "5×10⁻⁸", "10⁻⁷", "1.5×10⁻⁷", "2×10⁻⁷"]
        );
        assert_eq!(
            linear(0.0, 1e6),
            ["0", "2×10⁵", "4×10⁵", "6×10⁵", "8×10⁵", "10⁶"]
        );
        assert_eq!(linear(0.0, 1e5)[1], "20000");
        assert_eq!(linear(1e6, 1e6 + 0.01)[1], "1000000.005");
    }

    #[test]
    fn log_labels_are_powers() {
        let log = |low, high| labels(Scale::Log, low, high, 560.0);
        assert_eq!(log(1e-9, 2e-5), ["10⁻⁹", "10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵"]);
        assert_eq!(
            log(9e-7, 3.3e-5),
            ["10⁻⁶", "2×10⁻⁶", "5×10⁻⁶", "10⁻⁵", "2×10⁻⁵"]
        );
        assert_eq!(log(0.05, 200.0), ["0.1", "1", "10", "100"]);
        assert!((2..=12).contains(&log(1e-140, 1e140).len()));
    }

    #[test]
    fn odd_ranges_have_spans_and_ticks() {
        let odd = [
            0.0,
            -0.0,
            1.0,
            -3.0,
            5e-324,
            1e-300,
            1e300,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
        ];
        for scale in [Scale::Linear, Scale::Log] {
            for a in odd {
                for b in odd {
                    let span = Span::around(scale, [a, b].into_iter());
                    assert!(
                        span.low < span.high && span.high.is_finite(),
                        "{a} {b} {span:?}"
                    );
                    assert!(scale == Scale::Linear || span.low > 0.0);
                    assert!(
                        !span.ticks(500.0, |_| 40.0).major.is_empty(),
                        "{a} {b} {span:?}"
                    );
                    let fixed = Span::fixed(scale, Some((a, b)));
                    assert!(fixed.is_none_or(|span| span.low < span.high));
                }
            }
        }
        assert_eq!(Span::fixed(Scale::Log, Some((0.0, 1.0))), None);
        assert!(Span::around(Scale::Log, [f64::NAN].into_iter()).contains(1.0));
    }
}
