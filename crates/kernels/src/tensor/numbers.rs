//! Numbers that follow from parameters alone, as observables do: a compiled graph without rows.
//!
//! Single numbers and sums are computed in double precision, everything else in single precision. Sums of functions of elements need no buffer.

use super::Graph;
use super::device::OnDevice;
use super::element::{Element, Slice, values};
use super::elements::Spread;
use super::operation::{Binary, Reduce, Unary};
use super::pass::Pass;
use super::program::{Given, Instruction, Operand, Program, Source};
use super::view::View;
use crate::Result;
use crate::update::{TOTAL, dot};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// A compiled graph of parameters.
#[derive(Debug, Clone)]
pub struct Numbers {
    program: Program,
    /// The constants in double precision.
    exact: Vec<f64>,
    /// Which pass made the numbers that begin here.
    makers: BTreeMap<usize, usize>,
    /// Functions of elements that only sums read, which compute them on the way.
    within: Vec<bool>,
    outputs: Vec<Operand>,
}

/// Elements at a time.
const CHUNK: usize = 2048;

thread_local! {
    /// What passes have made, in single precision; single numbers in double precision, by pass.
    static BUFFERS: RefCell<(Vec<f32>, Vec<f64>)> = RefCell::default();
}

impl Numbers {
    /// Compile a graph whose parameters lie at these ranges of a vector.
    ///
    /// # Errors
    /// If it depends on inputs.
    pub fn compile(graph: &Graph, parameters: &[Range<usize>]) -> Result<Self> {
        anyhow::ensure!(!graph.shape().rows, "the graph depends on inputs");
        let (mut program, exact, output) = Program::compile_alone(graph, parameters)?;
        let outputs = match program.shared.last() {
            Some(last) if joins(last) && is_made_by(&output.source, last) => {
                let outputs = last.operands.clone();
                program.shared.pop();
                outputs
            }
            _ => vec![output],
        };
        let starts = program.shared.iter().enumerate().map(|(i, x)| (x.out, i));
        let makers = starts.collect();
        let mut out = Self {
            within: vec![false; program.shared.len()],
            program,
            exact,
            makers,
            outputs,
        };
        out.within = (0..out.within.len()).map(|i| out.only_summed(i)).collect();
        Ok(out)
    }

    /// How many numbers there are.
    pub fn count(&self) -> usize {
        self.outputs.iter().map(|o| o.width).sum()
    }

    /// The same for an accelerator, in single precision but for sums, and where the numbers begin among those that no row changes.
    pub fn on_device(&self) -> (OnDevice, usize) {
        let mut program = self.program.clone();
        let start = program.shared_length;
        program.shared.push(Instruction {
            pass: Pass::Concat(self.outputs.iter().map(|o| o.width).collect()),
            operands: self.outputs.clone(),
            out: start,
            width: self.count(),
            active: false,
        });
        program.shared_length += self.count();
        (OnDevice::new(program), start)
    }

    /// Whether a pass is a function of elements that only sums of all of them read.
    fn only_summed(&self, i: usize) -> bool {
        let made = &self.program.shared[i];
        let plain = |s: &Spread| matches!(s, Spread::Same | Spread::One);
        let fits = matches!(&made.pass, Pass::Element(_, spreads) if spreads.iter().all(plain));
        let reads = |o: &Operand| is_made_by(&o.source, made);
        let users = self.program.shared.iter();
        let mut users = users.filter(|u| u.operands.iter().any(reads)).peekable();
        fits && made.width > 1
            && users.peek().is_some()
            && users.all(|u| u.width == 1 && matches!(u.pass, Pass::Reduce(Reduce::Sum, ..)))
            && !self.outputs.iter().any(reads)
    }

    /// The numbers at these parameters.
    pub fn evaluate(&self, parameters: &[f32], out: &mut [f64]) {
        BUFFERS.with_borrow_mut(|(singles, doubles)| {
            let length = self.program.shared_length;
            singles.resize(length.max(singles.len()), 0.0);
            doubles.resize(self.within.len().max(doubles.len()), 0.0);
            for (i, made) in self.program.shared.iter().enumerate() {
                if self.within[i] {
                    continue;
                }
                let (below, here) = singles.split_at_mut(made.out);
                let given = self.program.given(parameters, below);
                if made.width == 1 {
                    doubles[i] = self.one(made, &given, doubles);
                    here[0] = doubles[i] as f32;
                } else {
                    let views = self.program.alone(made, &given);
                    made.pass
                        .forward(1, &views, &mut here[..made.width], &mut [], None);
                }
            }
            let given = self.program.given(parameters, singles);
            let mut at = 0;
            for o in &self.outputs {
                let own = &mut out[at..at + o.width];
                match own {
                    [one] => *one = self.number(o, &given, doubles),
                    many => {
                        let view = given.view(o, |_| &[]);
                        let each = many.iter_mut().zip(view.data);
                        each.for_each(|(out, x)| *out = f64::from(*x));
                    }
                }
                at += o.width;
            }
        });
    }

    /// An operand that is one number.
    fn number(&self, o: &Operand, given: &Given, doubles: &[f64]) -> f64 {
        match &o.source {
            Source::Shared(r) => doubles[self.makers[&r.start]],
            Source::Constant(r) => self.exact[r.start],
            _ => f64::from(given.view(o, |_| &[]).data[0]),
        }
    }

    /// What a pass makes that gives one number.
    fn one(&self, made: &Instruction, given: &Given, doubles: &[f64]) -> f64 {
        match &made.pass {
            Pass::Element(f, _) => {
                let mut of = [[0.0]; 3];
                for (x, o) in of.iter_mut().zip(&made.operands) {
                    x[0] = self.number(o, given, doubles);
                }
                let mut out = [0.0];
                f.values(|k| &of[k][..], Slice(0, &mut out[..]));
                out[0]
            }
            Pass::Reduce(Reduce::Sum, ..) => {
                let o = &made.operands[0];
                let maker = match &o.source {
                    Source::Shared(r) => self.makers.get(&r.start).filter(|i| self.within[**i]),
                    _ => None,
                };
                match maker {
                    Some(i) => self.sum(&self.program.shared[*i], given),
                    None => (TOTAL.cpu)(&[given.view(o, |_| &[]).data]),
                }
            }
            pass => {
                let mut out = [0.0];
                pass.forward(1, &self.program.alone(made, given), &mut out, &mut [], None);
                f64::from(out[0])
            }
        }
    }

    /// The sum of a function of elements.
    fn sum(&self, made: &Instruction, given: &Given) -> f64 {
        let Pass::Element(f, spreads) = &made.pass else {
            return f64::NAN;
        };
        let views: Vec<View> = self.program.alone(made, given);
        match (f, &spreads[..]) {
            (Element::One(Unary::Power(2)), [Spread::Same]) => dot(views[0].data, views[0].data),
            (Element::Two(Binary::Multiply), [Spread::Same, Spread::Same]) => {
                dot(views[0].data, views[1].data)
            }
            _ => {
                let (mut repeated, mut out) = ([[0.0; CHUNK]; 3], [0.0; CHUNK]);
                for (all, (view, spread)) in repeated.iter_mut().zip(views.iter().zip(spreads)) {
                    if *spread == Spread::One {
                        all.fill(view.data[0]);
                    }
                }
                let mut sum = 0.0;
                for start in (0..made.width).step_by(CHUNK) {
                    let count = CHUNK.min(made.width - start);
                    let mut of: [&[f32]; 3] = [&[]; 3];
                    for (k, (view, spread)) in views.iter().zip(spreads).enumerate() {
                        of[k] = match spread {
                            Spread::One => &repeated[k][..count],
                            _ => &view.data[start..start + count],
                        };
                    }
                    values(*f, of, &mut out[..count]);
                    sum += (TOTAL.cpu)(&[&out[..count]]);
                }
                sum
            }
        }
    }
}

/// Whether a pass writes its operands one after the other.
fn joins(made: &Instruction) -> bool {
    let whole = |(run, o): (&usize, &Operand)| *run == o.width;
    matches!(&made.pass, Pass::Concat(runs) if runs.iter().zip(&made.operands).all(whole))
}

fn is_made_by(source: &Source, made: &Instruction) -> bool {
    matches!(source, Source::Shared(r) if r.start == made.out)
}

#[cfg(test)]
mod tests {
    use super::super::{Symbol, Tensor};
    use super::*;

    /// Numbers that are compiled are those that are computed at once: sums and single numbers to the digits of double precision.
    #[test]
    fn compiled_numbers_are_those_of_tensors() {
        let n = 5000;
        let w: Vec<f32> = (0..n)
            .map(|i| ((i * 37 % 101) as f32 - 50.0) / 20.0)
            .collect();
        let parts = vec![
            ("a".to_string(), vec![3000]),
            ("b".to_string(), vec![40, 50]),
        ];
        let write = |all: &Tensor, a: &Tensor, b: &Tensor| -> Result<Vec<Tensor>> {
            let scaled = Tensor::apply(
                super::super::Operation::Binary(Binary::Multiply),
                &[a, &Tensor::number(0.1, a)?],
            )?;
            Ok(vec![
                all.norm2()?,
                a.norm2()?.binary(Binary::Divide, &b.norm2()?)?,
                scaled.unary(Unary::Tanh)?.reduce_all(Reduce::Sum)?,
                b.matmul(&b.transpose(0, 1)?)?.reduce_all(Reduce::Max)?,
                a.slice(0, 2, 6)?,
                b.mean(Some(0), false)?,
            ])
        };
        let traced = Tensor::from(Symbol::parameters(n, parts));
        let found = write(
            &traced,
            &traced.named("a").unwrap(),
            &traced.named("b").unwrap(),
        );
        let flat: Vec<Tensor> = found
            .unwrap()
            .iter()
            .map(|t| t.flatten().unwrap())
            .collect();
        let all = Tensor::concat(&flat.iter().collect::<Vec<_>>(), 0).unwrap();
        let graph = Graph::new(&all.symbol().unwrap()).unwrap();
        let compiled = Numbers::compile(&graph, &[0..n, 0..3000, 3000..n]).unwrap();
        let mut out = vec![0.0; compiled.count()];
        compiled.evaluate(&w, &mut out);
        let double = |x: &[f32], shape: &[usize]| {
            Tensor::from_f64(x.iter().map(|x| f64::from(*x)).collect(), shape).unwrap()
        };
        let exact = write(
            &double(&w, &[n]),
            &double(&w[..3000], &[3000]),
            &double(&w[3000..], &[40, 50]),
        );
        let exact: Vec<f64> = exact
            .unwrap()
            .iter()
            .flat_map(|t| t.to_f64("it").unwrap())
            .collect();
        assert_eq!(out.len(), exact.len());
        for (i, (x, y)) in out.iter().zip(&exact).enumerate() {
            // Sums of squares have all digits, other numbers those of single precision.
            let digits = if i < 2 { 1e-13 } else { 2e-6 };
            assert!((x - y).abs() <= digits * y.abs().max(1.0), "{i}: {x} {y}");
        }
    }
}
