//! Functions of elements as CUDA C: the functions themselves, of numbers that write down what is done to them.

use super::element::{Element, Results};
use super::real::{Order, Real, sealed};
use std::cell::RefCell;
use std::fmt::Write;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What was written down: a variable that is read, a literal, or a step.
struct Node {
    text: String,
    /// Its type, if it is a step.
    step: Option<&'static str>,
    of: Vec<u32>,
}

thread_local! {
    /// What the function that is being written down has done so far.
    static NODES: RefCell<Vec<Node>> = const { RefCell::new(Vec::new()) };
}

/// A number in C, in double or single precision.
#[derive(Debug, Clone, Copy)]
pub struct Code<const DOUBLE: bool>(u32);

/// A condition in C.
#[derive(Debug, Clone, Copy)]
pub struct Condition(u32);

/// Some lines of C, what they are about, and which variables they read.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Declarations, one a line.
    pub lines: String,
    /// The expressions of the results.
    pub results: Vec<String>,
    /// The variables that they read, in the order in which they were named.
    pub reads: Vec<String>,
}

fn push(text: String, step: Option<&'static str>, of: Vec<u32>) -> u32 {
    NODES.with_borrow_mut(|nodes| {
        nodes.push(Node { text, step, of });
        nodes.len() as u32 - 1
    })
}

fn name(nodes: &[Node], i: u32) -> String {
    let node = &nodes[i as usize];
    match node.step {
        Some(_) => format!("t{i}"),
        None => node.text.clone(),
    }
}

/// A step: `pattern` with a `#` for each operand.
fn step(kind: &'static str, pattern: &str, of: &[u32]) -> u32 {
    let names = NODES.with_borrow(|nodes| of.iter().map(|i| name(nodes, *i)).collect::<Vec<_>>());
    let mut names = names.iter();
    let mut text = String::new();
    for c in pattern.chars() {
        match c {
            '#' => text.push_str(names.next().map_or("", String::as_str)),
            c => text.push(c),
        }
    }
    push(text, Some(kind), of.to_vec())
}

impl<const DOUBLE: bool> Code<DOUBLE> {
    const TYPE: &'static str = if DOUBLE { "double" } else { "float" };

    /// A variable.
    pub fn variable(name: impl Into<String>) -> Self {
        Self(push(name.into(), None, Vec::new()))
    }

    fn step(pattern: &str, of: &[u32]) -> Self {
        Self(step(Self::TYPE, pattern, of))
    }

    fn call(self, function: &str) -> Self {
        Self::step(&format!("{function}(#)"), &[self.0])
    }

    fn power(self, n: i32) -> Self {
        Self::step(&format!("real_powi(#, {n})"), &[self.0])
    }
}

/// A number as C has it.
fn literal(x: f64, double: bool) -> String {
    let wide = if double { "(double)" } else { "" };
    let bits = |bits: u32| format!("{wide}float_of({bits:#x}u)");
    let text = match (double, x.is_finite()) {
        (true, true) => format!("{x:?}"),
        (false, true) if (x as f32).is_finite() => format!("{:?}f", x as f32),
        _ => return bits((x as f32).to_bits()),
    };
    match text.starts_with('-') {
        true => format!("({text})"),
        false => text,
    }
}

macro_rules! operators {
    ($($trait:ident $f:ident $pattern:literal;)*) => {
        $(impl<const DOUBLE: bool> $trait for Code<DOUBLE> {
            type Output = Self;

            fn $f(self, other: Self) -> Self {
                Self::step($pattern, &[self.0, other.0])
            }
        })*
    };
}
operators! {
    Add add "# + #";
    Sub sub "# - #";
    Mul mul "# * #";
    Div div "# / #";
}

impl<const DOUBLE: bool> Neg for Code<DOUBLE> {
    type Output = Self;

    fn neg(self) -> Self {
        Self::step("-#", &[self.0])
    }
}

impl<const DOUBLE: bool> sealed::Sealed for Code<DOUBLE> {}

/// The functions of [`Real`] by their names in `device/elements.cu`.
macro_rules! functions {
    ($($f:ident)*) => {
        impl<const D: bool> Real for Code<D> {
            const DOUBLE: bool = D;
            type Condition = Condition;

            fn of(x: f64) -> Self {
                Self(push(literal(x, D), None, Vec::new()))
            }

            fn is(self, order: Order, other: Self) -> Condition {
                let sign = match order {
                    Order::Less => "# < #",
                    Order::LessEqual => "# <= #",
                    Order::Greater => "# > #",
                    Order::GreaterEqual => "# >= #",
                    Order::Equal => "# == #",
                    Order::NotEqual => "# != #",
                };
                Condition(step("bool", sign, &[self.0, other.0]))
            }

            fn choose(condition: Condition, a: Self, b: Self) -> Self {
                Self::step("# ? # : #", &[condition.0, a.0, b.0])
            }

            fn powf(self, exponent: Self) -> Self {
                Self::step("real_powf(#, #)", &[self.0, exponent.0])
            }

            fn powi(x: &[Self], n: i32, out: &mut [Self]) {
                out.iter_mut().zip(x).for_each(|(out, x)| *out = x.power(n));
            }

            $(fn $f(self) -> Self {
                self.call(concat!("real_", stringify!($f)))
            })*
        }
    };
}
functions!(exp ln sqrt abs sin cos tan tanh sinh cosh atan sigmoid softplus erf erf_slope normal_cdf normal_density);

/// The result for one operand.
pub struct Result<'a, const DOUBLE: bool>(pub usize, pub &'a mut Option<Code<DOUBLE>>);

impl<const DOUBLE: bool> Results<Code<DOUBLE>> for Result<'_, DOUBLE> {
    type Numbers = Code<DOUBLE>;

    fn each(
        &mut self,
        operand: usize,
        [x, y, z]: [&Code<DOUBLE>; 3],
        f: impl Fn(Code<DOUBLE>, Code<DOUBLE>, Code<DOUBLE>) -> Code<DOUBLE>,
    ) {
        if operand == self.0 {
            *self.1 = Some(f(*x, *y, *z));
        }
    }

    fn powers(
        &mut self,
        n: i32,
        [x, y]: [&Code<DOUBLE>; 2],
        f: impl Fn(Code<DOUBLE>, Code<DOUBLE>) -> Code<DOUBLE>,
    ) {
        *self.1 = Some(f(x.power(n), *y));
    }
}

/// Write a function down.
pub fn write<const DOUBLE: bool>(f: impl FnOnce() -> Vec<Code<DOUBLE>>) -> Written {
    NODES.with_borrow_mut(Vec::clear);
    let results = f();
    NODES.with_borrow_mut(|nodes| {
        let mut needed = vec![false; nodes.len()];
        results.iter().for_each(|r| needed[r.0 as usize] = true);
        for i in (0..nodes.len()).rev().filter(|i| nodes[*i].step.is_some()) {
            if needed[i] {
                nodes[i].of.iter().for_each(|o| needed[*o as usize] = true);
            }
        }
        let mut out = Written {
            lines: String::new(),
            results: results.iter().map(|r| name(nodes, r.0)).collect(),
            reads: Vec::new(),
        };
        for (i, node) in nodes.iter().enumerate().filter(|(i, _)| needed[*i]) {
            match node.step {
                Some(kind) => {
                    let _ = writeln!(out.lines, "const {kind} t{i} = {};", node.text);
                }
                None => out.reads.push(node.text.clone()),
            }
        }
        nodes.clear();
        out
    })
}

fn operands() -> [Code<false>; 3] {
    ["x0", "x1", "x2"].map(Code::variable)
}

/// `f(x0, x1, x2)`.
pub fn values(f: Element) -> Written {
    write(|| {
        let (x, mut out) = (operands(), None);
        f.values(|i| &x[i], Result(0, &mut out));
        out.into_iter().collect()
    })
}

/// `d · ∂f/∂x` for one operand, where f gave y; nothing if it has no gradient.
pub fn slopes(f: Element, which: usize) -> Written {
    write(|| {
        let (x, mut out) = (operands(), None);
        let (y, d) = (Code::variable("y"), Code::variable("d"));
        f.slopes(|i| &x[i], &y, &d, Result(which, &mut out));
        out.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::operation::{Binary, Unary};
    use super::*;

    #[test]
    fn functions_are_written_down_as_they_are() {
        let relu = values(Element::One(Unary::Relu));
        assert_eq!(
            relu.lines,
            "const bool t6 = x0 < 0.0f;\nconst float t7 = t6 ? 0.0f : x0;\n"
        );
        assert_eq!(relu.results, ["t7"]);
        let product = slopes(Element::Two(Binary::Multiply), 0);
        assert!(product.lines.ends_with(" = d * x1;\n") && product.lines.lines().count() == 1);
        assert!(product.reads.contains(&"x1".to_string()) && !product.reads.contains(&"x0".into()));
        let sum = slopes(Element::Two(Binary::Add), 1);
        assert_eq!((&*sum.lines, &*sum.results[0]), ("", "d"));
        assert!(
            literal(-0.1, false) == "(-0.1f)"
                && literal(f64::INFINITY, true).contains("0x7f800000u")
        );
    }
}
