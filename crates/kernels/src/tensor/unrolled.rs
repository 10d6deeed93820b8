//! A graph number by number: what each is computed from, through shapes, slices and sums.

use super::element::Element;
use super::graph::{Graph, ValueKind};
use super::operation::{Binary, NOWHERE, Reduce};
use super::pass::Pass;
use crate::Result;
use anyhow::bail;

/// One number of a value; of a sum or an extreme also one of the pairs, pairs of pairs and so on that it is made of: rounding errors and depth
/// grow with the logarithm of the length only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    value: u32,
    element: u32,
    /// Which member the pair begins with, and how many times members were paired.
    from: u32,
    level: u8,
}

/// What a number is.
#[derive(Debug, Clone, Copy)]
pub enum Term {
    Constant(f64),
    Parameter(usize),
    /// A column of the example.
    Column(usize),
    /// A function of other numbers, as many as it has operands.
    Apply(Element, [Option<Number>; 3]),
}

/// A graph that was traced in double precision.
pub struct Unrolled<'a> {
    graph: &'a Graph,
    /// What is done for each value; nothing for leaves.
    passes: Vec<Option<Pass>>,
}

impl<'a> Unrolled<'a> {
    /// An error of a graph that was traced for a model.
    pub fn new(graph: &'a Graph) -> Result<Self> {
        let each = graph.values.iter().enumerate().map(|(v, value)| {
            let pass = match &value.kind {
                ValueKind::Apply(o) => Some(graph.pass(v, o, &value.operands)?),
                _ => None,
            };
            let of_models = |p: &Pass| {
                matches!(
                    p,
                    Pass::Softmax { .. }
                        | Pass::Convolve(_)
                        | Pass::Embed { .. }
                        | Pass::Attention(_)
                        | Pass::Norm(_)
                )
            };
            if matches!(value.kind, ValueKind::Input) || pass.as_ref().is_some_and(of_models) {
                bail!("the graph was not traced in double precision");
            }
            Ok(pass)
        });
        let passes = each.collect::<Result<_>>()?;
        Ok(Self { graph, passes })
    }

    /// One of the numbers that come out.
    pub fn number(&self, element: usize) -> Number {
        self.whole(self.graph.output, element)
    }

    fn whole(&self, value: usize, element: usize) -> Number {
        let members = match &self.passes[value] {
            Some(Pass::Reduce(_, m, _)) => *m,
            Some(Pass::Products { shape, .. }) => shape[2],
            _ => 1,
        };
        Number {
            value: value as u32,
            element: element as u32,
            from: 0,
            level: members.next_power_of_two().trailing_zeros() as u8,
        }
    }

    /// What a number is.
    pub fn term(&self, mut n: Number) -> Term {
        loop {
            let (value, e) = (&self.graph.values[n.value as usize], n.element as usize);
            let of = |which: usize, at: usize| self.whole(value.operands[which], at);
            let Some(pass) = &self.passes[n.value as usize] else {
                return match &value.kind {
                    ValueKind::Constant(all) => Term::Constant(all[e]),
                    ValueKind::Columns(range) => Term::Column(range.start + e),
                    _ => Term::Parameter(e),
                };
            };
            n = match pass {
                Pass::Element(f, spreads) => {
                    let mut operands = [None; 3];
                    for (i, spread) in spreads.iter().enumerate() {
                        let width = self.graph.values[value.operands[i]].shape.count();
                        operands[i] = Some(of(i, spread.at(e, width)));
                    }
                    return Term::Apply(*f, operands);
                }
                Pass::Copy { from, run } => of(0, from[e / run] as usize + e % run),
                Pass::Take { from, fill } => match from[e] {
                    NOWHERE => return Term::Constant(f64::from(*fill)),
                    at => of(0, at as usize),
                },
                Pass::Concat(runs) => {
                    let whole: usize = runs.iter().sum();
                    let (mut which, mut at) = (0, e % whole);
                    while at >= runs[which] {
                        at -= runs[which];
                        which += 1;
                    }
                    of(which, e / whole * runs[which] + at)
                }
                Pass::Reduce(how, m, inner) => {
                    let member = |i| Ok(of(0, (e / inner * m + i) * inner + e % inner));
                    match pair(n, *how, *m, member) {
                        Ok(number) => number,
                        Err(term) => return term,
                    }
                }
                Pass::Products { shape, pairs } => {
                    let [m, columns, k] = *shape;
                    let member = |i| {
                        let (x, y) = pairs[e / (m * columns)];
                        let a = of(0, x + e / columns % m * k + i);
                        let b = of(1, y + i * columns + e % columns);
                        let product = Element::Two(Binary::Multiply);
                        Err(Term::Apply(product, [Some(a), Some(b), None]))
                    };
                    match pair(n, Reduce::Sum, k, member) {
                        Ok(number) => number,
                        Err(term) => return term,
                    }
                }
                Pass::Dense(_)
                | Pass::Softmax { .. }
                | Pass::Convolve(_)
                | Pass::Attention(_)
                | Pass::Norm(_)
                | Pass::Embed { .. } => {
                    return Term::Constant(f64::NAN);
                }
            };
        }
    }
}

/// A pair of `m` members, or another number where it has but one.
fn pair(
    n: Number,
    how: Reduce,
    m: usize,
    member: impl Fn(usize) -> std::result::Result<Number, Term>,
) -> std::result::Result<Number, Term> {
    let (f, nothing) = match how {
        Reduce::Sum => (Binary::Add, 0.0),
        Reduce::Max => (Binary::Max, f64::NEG_INFINITY),
        Reduce::Min => (Binary::Min, f64::INFINITY),
    };
    if m == 0 {
        return Err(Term::Constant(nothing));
    }
    let Some(level) = n.level.checked_sub(1) else {
        return member(n.from as usize);
    };
    let left = Number { level, ..n };
    let from = n.from + (1 << level);
    if from as usize >= m {
        return Ok(left);
    }
    let right = Number { from, ..left };
    let operands = [Some(left), Some(right), None];
    Err(Term::Apply(Element::Two(f), operands))
}
