//! Expressions as formulas.

use super::operation::Operation;
use super::{Expression, Kind, Node};
use std::borrow::Cow;
use std::fmt;

/// Characters of a formula, at most.
const LONGEST: usize = 160;

// How tightly things bind.
const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;
const POWER: u8 = 4;
const ATOM: u8 = 5;

/// What is still to be written.
enum Item<'a> {
    Text(Cow<'static, str>),
    /// A node, and how tightly it must bind to go without parentheses.
    Node(&'a Node, u8),
}

impl fmt::Display for Expression {
    /// In the words of a script, `w` for parameters and `x` for inputs; cut off with … after 160 characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut characters = 0;
        // Without recursion: a graph may be deeper than the stack.
        let mut items = vec![Item::Node(&self.0, 0)];
        while let Some(item) = items.pop() {
            let piece = match item {
                Item::Text(piece) => piece,
                Item::Node(node, binding) => write_node(node, binding, &mut items).into(),
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
        f.pad(&text)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text of a leaf; of anything else, its pieces are put on `items`, last first.
fn write_node<'a>(node: &'a Node, binding: u8, items: &mut Vec<Item<'a>>) -> String {
    let operation = match node.kind {
        Kind::Constant(value) => return write_number(value, binding),
        Kind::Parameter(index) => return format!("w[{index}]"),
        Kind::Input(column) => return format!("x[{column}]"),
        Kind::Apply(operation) => operation,
    };
    let operand = |i: usize, binding| node.operands[i].as_ref().map(|e| Item::Node(&e.0, binding));
    let text = |text: &'static str| Some(Item::Text(text.into()));
    let name = operation.name();
    let (own, left, right) = match operation {
        Operation::Add => (SUM, SUM, SUM),
        Operation::Subtract => (SUM, SUM, PRODUCT),
        Operation::Multiply => (PRODUCT, PRODUCT, PRODUCT),
        Operation::Divide => (PRODUCT, PRODUCT, SIGN),
        Operation::Negate => (SIGN, SIGN, 0),
        Operation::Powf | Operation::Powi(_) => (POWER, ATOM, ATOM),
        _ => (ATOM, 0, 0),
    };
    let mut pieces = match operation {
        Operation::Negate => [text(name), operand(0, left), None, None],
        Operation::Powi(n) => {
            let exponent = write_number(n.into(), right);
            let power = Item::Text(format!("**{exponent}").into());
            [operand(0, left), Some(power), None, None]
        }
        _ if own < ATOM => [operand(0, left), text(name), operand(1, right), None],
        _ => {
            let second = operand(1, 0);
            let comma = second.as_ref().and_then(|_| text(", "));
            [operand(0, 0), comma, second, text(")")]
        }
    };
    let start = match own {
        ATOM => format!("{name}("),
        _ if own >= binding => String::new(),
        _ => {
            pieces[3] = text(")");
            "(".to_string()
        }
    };
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
    use super::super::Vector;
    use super::super::tests::{mixture, w, x};
    use super::*;

    #[test]
    fn formulas() {
        let text = |e: Expression| e.to_string();
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
        assert_eq!(text(Expression::constant(-2.0).powf(w(0))), "(-2)**w[0]");
        let long = text(Vector::parameters(1000).sum());
        assert_eq!((long.chars().count(), long.ends_with('…')), (160, true));
    }
}
