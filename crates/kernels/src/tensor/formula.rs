//! Graphs as formulas.

use super::element::Element;
use super::graph::Graph;
use super::operation::{Binary, Unary};
use super::unrolled::{Number, Term, Unrolled};
use crate::Result;
use std::borrow::Cow;

/// Characters of a formula, at most.
const LONGEST: usize = 160;

// How tightly things bind.
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const POWER: u8 = 4;
const ATOM: u8 = 5;

/// What is still to be written.
enum Item {
    Text(Cow<'static, str>),
    /// A number, and how tightly it must bind to go without parentheses.
    Number(Number, u8),
}

/// What a function is called in formulas and fingerprints.
pub fn word(element: Element) -> &'static str {
    match element {
        Element::One(Unary::Power(_)) => "powi",
        Element::One(f) => f.name(),
        Element::Two(Binary::Add) => " + ",
        Element::Two(Binary::Subtract) => " - ",
        Element::Two(Binary::Max) => "max",
        Element::Two(Binary::Min) => "min",
        Element::Two(f) => f.name(),
        Element::Choose => "choose",
    }
}

impl Graph {
    /// One of the numbers that come out, in the words of a script: `w` for parameters and `x` for columns; cut off with … after 160 characters.
    ///
    /// # Errors
    /// If the graph was traced for a model.
    pub fn formula(&self, element: usize) -> Result<String> {
        let all = Unrolled::new(self)?;
        let mut text = String::new();
        let mut characters = 0;
        // Without recursion: a graph may be deeper than the stack.
        let mut items = vec![Item::Number(all.number(element), 0)];
        while let Some(item) = items.pop() {
            let piece = match item {
                Item::Text(piece) => piece,
                Item::Number(n, binding) => write(all.term(n), binding, &mut items).into(),
            };
            characters += piece.chars().count();
            text.push_str(&piece);
            if characters > LONGEST {
                let cut = text.char_indices().nth(LONGEST - 1);
                text.truncate(cut.map_or(text.len(), |(at, _)| at));
                text.push('…');
                break;
            }
        }
        Ok(text)
    }
}

/// The text of a leaf; of anything else, its pieces are put on `items`, last first.
fn write(term: Term, binding: u8, items: &mut Vec<Item>) -> String {
    let (element, operands) = match term {
        Term::Constant(value) => return write_number(value, binding),
        Term::Parameter(index) => return format!("w[{index}]"),
        Term::Column(column) => return format!("x[{column}]"),
        Term::Apply(element, operands) => (element, operands),
    };
    let operand = |i: usize, binding| operands[i].map(|n| Item::Number(n, binding));
    let text = |text: &'static str| Some(Item::Text(text.into()));
    let name = word(element);
    let (own, left, right) = match element {
        Element::Two(Binary::Add) => (SUM, SUM, SUM),
        Element::Two(Binary::Subtract) => (SUM, SUM, PRODUCT),
        Element::Two(Binary::Multiply) => (PRODUCT, PRODUCT, PRODUCT),
        Element::Two(Binary::Divide) => (PRODUCT, PRODUCT, SIGN),
        Element::One(Unary::Negate) => (SIGN, SIGN, 0),
        Element::Two(Binary::Power) | Element::One(Unary::Power(_)) => (POWER, ATOM, ATOM),
        _ => (ATOM, 0, 0),
    };
    let mut pieces = Vec::new();
    match element {
        Element::One(Unary::Negate) => pieces.extend([text(name), operand(0, left)]),
        Element::One(Unary::Power(n)) => {
            let exponent = write_number(n.into(), right);
            let power = Item::Text(format!("**{exponent}").into());
            pieces.extend([operand(0, left), Some(power)]);
        }
        _ if own < ATOM => pieces.extend([operand(0, left), text(name), operand(1, right)]),
        _ => {
            for i in (0..3).filter(|i| operands[*i].is_some()) {
                pieces.extend([text(if i > 0 { ", " } else { "" }), operand(i, 0)]);
            }
        }
    }
    let start = match own {
        ATOM => format!("{name}("),
        _ if own >= binding => String::new(),
        _ => "(".to_string(),
    };
    if own == ATOM || own < binding {
        pieces.push(text(")"));
    }
    items.extend(pieces.into_iter().flatten().rev());
    start
}

fn write_number(value: f64, binding: u8) -> String {
    let size = value.abs();
    let text = if size == 0.0 || !size.is_finite() || (1e-4..1e15).contains(&size) {
        format!("{value}")
    } else {
        format!("{value:e}")
    };
    let negative = value.is_sign_negative() && !value.is_nan();
    if negative && SIGN < binding {
        format!("({text})")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::double_tests::{E, mixture, vector, w, x};

    #[test]
    fn formulas() {
        let text = |e: E| e.graph().formula(0).unwrap();
        assert_eq!(
            text(mixture()),
            "-ln(0.5*exp(-5*(x[0] - w[0])**2) + 0.5*exp(-5*(x[0] - w[1])**2))"
        );
        assert_eq!(
            text(w(0) - (w(1) - 1e-9) / (w(2) * x(0))),
            "w[0] - (w[1] - 1e-9)/(w[2]*x[0])"
        );
        assert_eq!(
            text((-w(0)).powi(-2).max(w(1).powf(w(0) + 1.0))),
            "max((-w[0])**(-2), w[1]**(w[0] + 1))"
        );
        assert_eq!(text(-(w(0) + w(1)) * -2.5), "-(w[0] + w[1])*-2.5");
        assert_eq!(text(E::from(-2.0).powf(w(0))), "(-2)**w[0]");
        let long = text(vector(1000).sum());
        assert_eq!((long.chars().count(), long.ends_with('…')), (160, true));
    }
}
