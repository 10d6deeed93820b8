//! What kinds of values options take, and in which ranges.

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
}

impl Range {
    pub(super) fn holds(self, x: f64) -> bool {
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
            Kind::Object(n) => n.into(),
            Kind::Objects(n) => format!("array of {n}s"),
            Kind::Anything(n) => n.into(),
        }
    }
}
