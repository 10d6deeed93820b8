//! What kinds of values options take, and in which ranges.

use super::{Default, Spec};

/// The numbers an option accepts.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    /// Any finite number.
    Any,
    /// > 0.
    Positive,
    /// ≥ 0.
    NonNegative,
    /// 0 < x < 1.
    Open01,
    /// 0 ≤ x ≤ 1.
    Closed01,
    /// 0 ≤ x < 1.
    From0To1,
    /// Between two numbers, both included.
    Between(f64, f64),
    /// At least this number.
    AtLeast(f64),
    /// From one number to another, each of which is allowed itself or not.
    Within {
        /// The lower end, -∞ for none, and whether it is allowed.
        low: (f64, bool),
        /// The upper end, ∞ for none, and whether it is allowed.
        high: (f64, bool),
    },
}

impl Range {
    /// A range as a script writes it: `x > 0`, `x >= 4`, `0 < x <= 1`; none if it is not written so.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |t: &str| t.parse::<f64>().ok().filter(|x| x.is_finite());
        let end = |sign: &str, t: &str| {
            let allowed = match sign {
                "<" | ">" => false,
                "<=" | ">=" => true,
                _ => return None,
            };
            Some((number(t)?, allowed))
        };
        let parts: Vec<_> = text.split_whitespace().collect();
        let (none, all) = ((f64::NEG_INFINITY, false), (f64::INFINITY, false));
        let (low, high) = match parts[..] {
            ["x", sign, a] if sign.starts_with('>') => (end(sign, a)?, all),
            ["x", sign, b] => (none, end(sign, b)?),
            [a, first, "x", second, b] if first.starts_with('<') && second.starts_with('<') => {
                (end(first, a)?, end(second, b)?)
            }
            _ => return None,
        };
        Some(Range::Within { low, high })
    }

    /// Whether a number is in it.
    pub fn holds(self, x: f64) -> bool {
        x.is_finite()
            && match self {
                Range::Any => true,
                Range::Positive => x > 0.0,
                Range::NonNegative => x >= 0.0,
                Range::Open01 => x > 0.0 && x < 1.0,
                Range::Closed01 => (0.0..=1.0).contains(&x),
                Range::From0To1 => (0.0..1.0).contains(&x),
                Range::Between(a, b) => (a..=b).contains(&x),
                Range::AtLeast(a) => x >= a,
                Range::Within { low, high } => {
                    (x > low.0 || low.1 && x == low.0) && (x < high.0 || high.1 && x == high.0)
                }
            }
    }

    /// The range in words.
    pub fn describe(self) -> String {
        match self {
            Range::Any => "any finite number".into(),
            Range::Positive => "> 0".into(),
            Range::NonNegative => "≥ 0".into(),
            Range::Open01 => "0 < x < 1".into(),
            Range::Closed01 => "0 ≤ x ≤ 1".into(),
            Range::From0To1 => "0 ≤ x < 1".into(),
            Range::Between(a, b) => format!("{a} … {b}"),
            Range::AtLeast(a) => format!("≥ {a}"),
            Range::Within { low, high } => {
                let sign = |end: (f64, bool), strict: &'static str, other: &'static str| match end.1
                {
                    true => other,
                    false => strict,
                };
                match (low.0.is_finite(), high.0.is_finite()) {
                    (true, false) => format!("{} {}", sign(low, ">", "≥"), low.0),
                    (false, true) => format!("{} {}", sign(high, "<", "≤"), high.0),
                    _ => format!(
                        "{} {} x {} {}",
                        low.0,
                        sign(low, "<", "≤"),
                        sign(high, "<", "≤"),
                        high.0
                    ),
                }
            }
        }
    }
}

/// What kind of value an option takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A number; integers are accepted.
    Float(Range),
    /// A whole number; a float without a fraction is accepted.
    Int(Range),
    /// A number or a schedule.
    Schedule(Range),
    /// `true` or `false`.
    Bool,
    /// A string.
    Text,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An array of numbers.
    Floats(Range),
    /// An array of whole numbers.
    Ints(Range),
    /// A whole number (for "every n steps") or a trigger.
    Trigger,
    /// A map with these entries.
    Map(&'static [Spec]),
    /// An object of the program, by the name of its type.
    Object(&'static str),
    /// An array of objects.
    Objects(&'static str),
    /// Decided by the component itself.
    Anything(&'static str),
}

impl Kind {
    /// The kind and its range, for the reference.
    pub fn describe(self) -> String {
        match self {
            Kind::Float(r) => format!("number, {}", r.describe()),
            Kind::Int(r) => format!("integer, {}", r.describe()),
            Kind::Schedule(r) => format!("number or schedule, {}", r.describe()),
            Kind::Bool => "true or false".into(),
            Kind::Text => "string".into(),
            Kind::Choice(c) => c
                .iter()
                .map(|c| format!("\"{c}\""))
                .collect::<Vec<_>>()
                .join(" · "),
            Kind::Floats(r) => format!("array of numbers, {}", r.describe()),
            Kind::Ints(r) => format!("array of integers, {}", r.describe()),
            Kind::Trigger => "integer or trigger".into(),
            Kind::Map(entries) => {
                let entry = |e: &Spec| {
                    let default = match e.default {
                        Default::Required => String::new(),
                        Default::Absent(text) | Default::Is(text) => format!("; default {text}"),
                    };
                    format!("{}: {}{default}", e.name, e.kind.describe())
                };
                let entries: Vec<_> = entries.iter().map(entry).collect();
                format!("map of {}", entries.join(" · "))
            }
            Kind::Object(n) => n.into(),
            Kind::Objects(n) => format!("array of {n}s"),
            Kind::Anything(n) => n.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn ranges_are_read_as_scripts_write_them() {
        let cases = [
            ("x > 0", "> 0", 1e-9, 0.0),
            ("x >= 4", "≥ 4", 4.0, 3.9),
            ("x <= 1", "≤ 1", 1.0, 1.1),
            ("0 < x <= 1", "0 < x ≤ 1", 1.0, 0.0),
            ("0 <= x < 1", "0 ≤ x < 1", 0.0, 1.0),
        ];
        for (text, words, inside, outside) in cases {
            let r = Range::parse(text).unwrap();
            assert_eq!(r.describe(), words);
            assert!(r.holds(inside) && !r.holds(outside), "{text}");
            assert!(!r.holds(f64::NAN) && !r.holds(f64::INFINITY), "{text}");
        }
        for text in ["", "x", "> 0", "x = 1", "0 > x < 1", "x > inf", "x > a"] {
            assert!(Range::parse(text).is_none(), "{text}");
        }
    }
}
