//! Compiled programs against candle in double precision: values, gradients by autograd, and finite differences.

use super::element::Element;
use super::{Binary, Graph, Names, Program, Reduce, Symbol, Tensor, Unary, Vector, Whole};
use crate::Result;
use crate::normal::fill_normal;
use crate::rng::{Purpose, Stream};
use crate::thread_pool::Team;
use candle_core::{DType, Device, Var};
use std::cell::RefCell;
use std::ops::Range;

const ROWS: usize = 37;

pub(super) fn normals(n: usize, step: u64) -> Vec<f32> {
    let mut x = vec![0.0; n];
    fill_normal(&Stream::new(9, Purpose::Tensor, 0, step), &mut x);
    x
}

pub(super) struct Trial {
    graph: Graph,
    pub program: Program,
    shapes: Vec<Vec<usize>>,
    pub ranges: Vec<Range<usize>>,
    pub inputs: usize,
    pub outputs: usize,
}

thread_local! {
    /// Trials that are kept for others, and not made here, while somebody wants them.
    static KEPT: RefCell<Option<Vec<(String, Trial)>>> = const { RefCell::new(None) };
}

/// The trials that tests make.
pub(super) fn recorded(tests: impl FnOnce()) -> Vec<(String, Trial)> {
    KEPT.set(Some(Vec::new()));
    tests();
    KEPT.take().unwrap_or_default()
}

pub(super) type Function = dyn Fn(&[Tensor], &Tensor) -> Result<Tensor>;

fn trial(shapes: &[&[usize]], inputs: usize, f: &Function) -> Trial {
    let symbols = shapes.iter().enumerate();
    let symbols: Vec<Tensor> = symbols
        .map(|(i, s)| Symbol::parameter(i, s).into())
        .collect();
    let out = f(&symbols, &Symbol::input(Some(inputs)).into()).unwrap();
    let Tensor::Traced(out) = out.flatten().unwrap() else {
        panic!("nothing was traced")
    };
    let mut at = 0;
    let ranges: Vec<_> = shapes
        .iter()
        .map(|s| {
            let start = at;
            at += s.iter().product::<usize>();
            start..at
        })
        .collect();
    let graph = Graph::new(&out).unwrap();
    Trial {
        program: Program::compile(&graph, &ranges).unwrap(),
        outputs: graph.shape().count(),
        graph,
        shapes: shapes.iter().map(|s| s.to_vec()).collect(),
        ranges,
        inputs,
    }
}

impl Trial {
    pub(super) fn passes(&self) -> (usize, usize) {
        self.program.passes()
    }

    /// Outputs, and the gradient of `Σ outputs·delta`, with the rows in so many blocks.
    fn run(
        &self,
        w: &[f32],
        x: &[f32],
        delta: &[f32],
        blocks: usize,
        threads: usize,
    ) -> [Vec<f32>; 2] {
        self.run_in(ROWS, w, x, delta, (blocks, threads))
    }

    /// The same for so many rows, in one block.
    pub fn run_rows(&self, rows: usize, w: &[f32], x: &[f32], delta: &[f32]) -> [Vec<f32>; 2] {
        self.run_in(rows, w, x, delta, (1, 1))
    }

    fn run_in(
        &self,
        all: usize,
        w: &[f32],
        x: &[f32],
        delta: &[f32],
        (blocks, threads): (usize, usize),
    ) -> [Vec<f32>; 2] {
        let [values, before, deltas] = self.program.widths();
        let room = |widths: &[usize]| -> Vec<Vec<f32>> {
            widths.iter().map(|n| vec![f32::NAN; n * all]).collect()
        };
        let (mut values, mut before, mut deltas) = (room(&values), room(&before), room(&deltas));
        deltas.last_mut().unwrap().copy_from_slice(delta);
        let shared = self.program.prepare(w);
        for k in 0..blocks {
            let (a, z) = (k * all / blocks, (k + 1) * all / blocks);
            fn part(v: &mut [Vec<f32>], all: usize, a: usize, z: usize) -> Vec<&mut [f32]> {
                let each = v.iter_mut().map(|v| {
                    let width = v.len() / all;
                    &mut v[a * width..z * width]
                });
                each.collect()
            }
            let x = &x[a * self.inputs..z * self.inputs];
            let (mut v, mut b) = (part(&mut values, all, a, z), part(&mut before, all, a, z));
            let mut d = part(&mut deltas, all, a, z);
            self.program.forward(w, &shared, z - a, x, &mut v, &mut b);
            self.program.backward(w, &shared, z - a, x, &v, &b, &mut d);
        }
        let mut grad = vec![0.0; w.len()];
        let team = Team::new(threads);
        self.program.gradient(
            w,
            &shared,
            all,
            x,
            [&values, &before, &deltas],
            &mut grad,
            &team,
        );
        [values.pop().unwrap(), grad]
    }

    /// The same pass by pass, in memory that is planned.
    fn run_whole(
        &self,
        w: &[f32],
        x: &[f32],
        delta: &[f32],
        checkpoint: bool,
        threads: usize,
    ) -> [Vec<f32>; 2] {
        let (plan, team) = (self.program.plan(true, checkpoint), Team::new(threads));
        let shared = self.program.prepare(w);
        let (mut values, mut grad) = (vec![f32::NAN; delta.len()], vec![0.0; w.len()]);
        let mut again = values.clone();
        let (mut delta, mut memory) = (delta.to_vec(), vec![f32::NAN; ROWS * plan.length()]);
        let mut whole = Whole {
            parameters: w,
            shared: &shared,
            rows: ROWS,
            inputs: x,
            outputs: &mut values,
            delta: &mut delta,
            memory: &mut memory,
        };
        self.program.forward_whole(&plan, &mut whole, &team);
        let outputs = whole.outputs.to_vec();
        // Where the plan says that nobody reads the outputs any more, nobody does.
        if plan.replaces() {
            whole.outputs.copy_from_slice(whole.delta);
            whole.delta = &mut [];
        }
        self.program
            .backward_whole(&plan, &mut whole, &mut grad, &team);
        let alone = self.program.plan(false, false);
        assert!(alone.length() <= plan.length());
        whole.outputs = &mut again;
        self.program.forward_whole(&alone, &mut whole, &team);
        assert_eq!(bits(&again), bits(&outputs), "without gradients");
        [outputs, grad]
    }

    /// `Σ outputs·delta` by candle, in double precision.
    fn exact(
        &self,
        w: &candle_core::Tensor,
        x: &[f32],
        delta: &[f32],
    ) -> (candle_core::Tensor, Vec<f64>) {
        let tensor = |v: &[f32], shape: (usize, usize)| {
            let t = candle_core::Tensor::from_slice(v, shape, &Device::Cpu).unwrap();
            t.to_dtype(DType::F64).unwrap()
        };
        let each = self.ranges.iter().zip(&self.shapes).map(|(r, s)| {
            w.narrow(0, r.start, r.len())
                .unwrap()
                .reshape(s.as_slice())
                .unwrap()
        });
        let out = self
            .graph
            .evaluate(&each.collect::<Vec<_>>(), &tensor(x, (ROWS, self.inputs)))
            .unwrap();
        let values = out.flatten_all().unwrap().to_vec1().unwrap();
        let sum = (out * tensor(delta, (ROWS, self.outputs)))
            .unwrap()
            .sum_all();
        (sum.unwrap(), values)
    }
}

/// How far apart two vectors are, over the length of the second.
fn apart(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let squares = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - b).powi(2));
    let length = b.iter().map(|b| b * b).sum::<f64>().sqrt();
    squares.sum::<f64>().sqrt() / length.max(1e-3)
}

pub(super) fn check(name: &str, shapes: &[&[usize]], inputs: usize, f: &Function) -> Trial {
    let t = trial(shapes, inputs, f);
    let kept = KEPT.with_borrow_mut(|kept| {
        let kept = kept.as_mut();
        kept.map(|all| all.push((name.to_string(), trial(shapes, inputs, f))))
    });
    if kept.is_some() {
        return t;
    }
    let n = t.ranges.last().unwrap().end;
    let w = normals(n, 1);
    let x = normals(ROWS * inputs, 2);
    let delta = normals(ROWS * t.outputs, 3);
    let [values, grad] = t.run(&w, &x, &delta, 1, 1);
    let exact: Vec<f64> = w.iter().map(|x| f64::from(*x)).collect();
    let var = Var::from_slice(&exact, n, &Device::Cpu).unwrap();
    let (sum, expected) = t.exact(var.as_tensor(), &x, &delta);
    let off = apart(&values, &expected);
    assert!(off < 3e-6, "{name}: values off by {off:.1e}");
    let store = sum.backward().unwrap();
    let by_candle = store
        .get(var.as_tensor())
        .unwrap()
        .to_vec1::<f64>()
        .unwrap();
    let off = apart(&grad, &by_candle);
    assert!(
        off < 2e-5,
        "{name}: gradient off by {off:.1e} from autograd"
    );
    let value = |w: &[f64]| {
        let w = candle_core::Tensor::from_slice(w, n, &Device::Cpu).unwrap();
        t.exact(&w, &x, &delta).0.to_scalar::<f64>().unwrap()
    };
    let norm = by_candle.iter().map(|g| g * g).sum::<f64>().sqrt();
    for step in 4..7 {
        let direction = normals(n, step);
        let moved = |h: f64| {
            let both = exact.iter().zip(&direction);
            value(&both.map(|(w, d)| w + h * f64::from(*d)).collect::<Vec<_>>())
        };
        let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
        let both = grad.iter().zip(&direction);
        let along: f64 = both.map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        assert!(
            (difference - along).abs() < 1e-4 * norm.max(1.0) * (n as f64).sqrt(),
            "{name}: {along} along a direction, {difference} by differences"
        );
    }
    // Neither blocks nor threads change a bit: not even those of rows, whose sums have one order.
    for (blocks, threads) in [(2, 1), (5, 3)] {
        let [other, g] = t.run(&w, &x, &delta, blocks, threads);
        assert_eq!(
            bits(&g),
            bits(&t.run(&w, &x, &delta, blocks, 1)[1]),
            "{name}"
        );
        assert!(
            apart(&other, &expected) < 3e-6,
            "{name}: in {blocks} blocks"
        );
    }
    // Nor do threads where each pass is shared, and computing a segment again changes nothing.
    let whole = t.run_whole(&w, &x, &delta, false, 1);
    for (checkpoint, threads) in [(false, 3), (true, 1), (true, 2)] {
        let again = t.run_whole(&w, &x, &delta, checkpoint, threads);
        assert_eq!(
            again.map(|v| bits(&v)),
            [bits(&whole[0]), bits(&whole[1])],
            "{name}, checkpoint {checkpoint}"
        );
    }
    assert!(apart(&whole[0], &expected) < 3e-6, "{name}: pass by pass");
    assert!(
        apart(&whole[1], &by_candle) < 2e-5,
        "{name}: gradient pass by pass"
    );
    t
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|x| x.to_bits()).collect()
}

/// All that are trials.
pub(super) fn all() {
    functions_of_each_element();
    functions_of_pairs_with_every_broadcast();
    products_of_every_kind();
    shapes_sums_and_choices();
}

fn positive(t: &Tensor) -> Result<Tensor> {
    let number = |x| Tensor::number(x, t);
    let small = t
        .unary(Unary::Power(2))?
        .binary(Binary::Multiply, &number(0.2)?)?;
    small.binary(Binary::Add, &number(0.5)?)
}

#[test]
fn functions_of_each_element() {
    let mut all: Vec<Unary> = Unary::NAMED.iter().map(|(_, f)| *f).collect();
    all.extend([
        Unary::Negate,
        Unary::Power(2),
        Unary::Power(3),
        Unary::Power(-2),
        Unary::Power(0),
    ]);
    for f in all {
        // Of rows, and of what no row changes.
        check(&format!("{f:?} of rows"), &[&[5], &[5]], 5, &move |p, x| {
            let h = x.binary(Binary::Multiply, &p[0])?;
            let h = if matches!(f, Unary::Ln | Unary::Sqrt | Unary::Power(-2)) {
                positive(&h)?
            } else {
                h
            };
            h.unary(f)?.binary(Binary::Multiply, &p[1])
        });
        check(&format!("{f:?} of parameters"), &[&[5]], 5, &move |p, x| {
            let h = if matches!(f, Unary::Ln | Unary::Sqrt | Unary::Power(-2)) {
                positive(&p[0])?
            } else {
                p[0].clone()
            };
            h.unary(f)?
                .binary(Binary::Add, &p[0])?
                .binary(Binary::Multiply, x)
        });
    }
}

#[test]
fn functions_of_pairs_with_every_broadcast() {
    use Binary::*;
    // Operands per row [3, 4]; of the parameters each of these.
    let shapes: [&[usize]; 7] = [&[3, 4], &[4], &[3, 1], &[], &[1, 1, 4], &[1], &[1, 3, 1]];
    for f in [
        Add,
        Subtract,
        Multiply,
        Divide,
        Power,
        Max,
        Min,
        LnAddExp,
        Less,
        GreaterEqual,
        Equal,
    ] {
        for shape in shapes {
            for swapped in [false, true] {
                check(
                    &format!("{f:?} {shape:?} {swapped}"),
                    &[&[12], shape],
                    12,
                    &move |p, x| {
                        let mut a = x.binary(Multiply, &p[0])?.reshape(&[-1, 3, 4])?;
                        let mut b = p[1].clone();
                        if matches!(f, Divide | Power) {
                            (a, b) = (positive(&a)?, positive(&b)?);
                        }
                        let c = match swapped {
                            false => a.binary(f, &b)?,
                            true => b.binary(f, &a)?,
                        };
                        // So that comparisons have a gradient around them.
                        c.binary(Multiply, &a)?.binary(Add, &b)
                    },
                );
            }
        }
        for (one, other) in [([3, 4], [3, 1]), ([3, 1], [1, 4]), ([1, 1], [3, 4])] {
            let (m, n) = (one[0] * one[1], other[0] * other[1]);
            check(
                &format!("{f:?} of rows {one:?} {other:?}"),
                &[&[12], &[12]],
                12,
                &move |p, x| {
                    let cut = |t: &Tensor, count: usize, to: [usize; 2]| {
                        t.slice(1, 0, count as i64)?
                            .reshape(&[-1, to[0] as i64, to[1] as i64])
                    };
                    let a = positive(&cut(&x.binary(Multiply, &p[0])?, m, one)?)?;
                    let b = positive(&cut(&x.binary(Multiply, &p[1])?, n, other)?)?;
                    a.binary(f, &b)?.binary(Multiply, &a)
                },
            );
        }
    }
}

#[test]
fn products_of_every_kind() {
    let cases: [(&str, &[&[usize]], &Function); 9] = [
        ("layer", &[&[7, 12], &[7]], &|p, x| {
            x.matmul(&p[0].t()?)?
                .binary(Binary::Add, &p[1])?
                .unary(Unary::Gelu)
        }),
        ("layer, flipped", &[&[12, 7], &[1, 7]], &|p, x| {
            p[1].binary(Binary::Add, &x.matmul(&p[0])?)?
                .unary(Unary::Tanh)
        }),
        ("vector", &[&[12]], &|p, x| x.matmul(&p[0])),
        ("layer of several vectors", &[&[4, 5], &[5]], &|p, x| {
            x.reshape(&[-1, 3, 4])?
                .matmul(&p[0])?
                .binary(Binary::Add, &p[1])?
                .unary(Unary::Relu)
        }),
        ("rows by rows", &[&[12], &[12]], &|p, x| {
            let a = x.binary(Binary::Multiply, &p[0])?.reshape(&[-1, 3, 4])?;
            let b = x.binary(Binary::Add, &p[1])?.reshape(&[-1, 4, 3])?;
            a.matmul(&b)
        }),
        ("left of rows", &[&[2, 3], &[12]], &|p, x| {
            p[0].matmul(&x.binary(Binary::Multiply, &p[1])?.reshape(&[-1, 3, 4])?)
        }),
        ("vector left of rows", &[&[3]], &|p, x| {
            p[0].matmul(&x.reshape(&[-1, 3, 4])?)
        }),
        ("stacks", &[&[2, 3, 4], &[12]], &|p, x| {
            x.binary(Binary::Multiply, &p[1])?
                .reshape(&[-1, 2, 2, 3])?
                .matmul(&p[0])
        }),
        (
            "parameters",
            &[&[6, 3], &[3, 12], &[5, 6], &[6]],
            &|p, x| {
                let w = p[0].matmul(&p[1])?;
                let u = p[2].matmul(&p[3])?;
                x.matmul(&w.t()?)?
                    .matmul(&p[2].t()?)?
                    .binary(Binary::Add, &u)
            },
        ),
    ];
    for (name, shapes, f) in cases {
        let t = check(name, shapes, 12, f);
        let (rows, shared) = t.program.passes();
        match name {
            "layer" | "layer, flipped" | "layer of several vectors" => {
                assert_eq!((rows, shared), (1, 0), "{name}")
            }
            "parameters" => assert_eq!((rows, shared), (2, 2), "{name}"),
            _ => {}
        }
        assert_eq!(
            t.program.layers().is_some(),
            name != "layer of several vectors" && (name.starts_with("layer") || name == "vector"),
            "{name}"
        );
    }
}

#[test]
fn shapes_sums_and_choices() {
    let rows =
        |p: &[Tensor], x: &Tensor| x.binary(Binary::Multiply, &p[0])?.reshape(&[-1, 2, 3, 2]);
    for axis in [1, 2, 3, -1] {
        for how in [Reduce::Sum, Reduce::Max, Reduce::Min] {
            check(
                &format!("{how:?} along {axis}"),
                &[&[12]],
                12,
                &move |p, x| rows(p, x)?.reduce(how, axis, axis == 2),
            );
            check(
                &format!("{how:?} of parameters"),
                &[&[2, 3, 2]],
                12,
                &move |p, x| {
                    let axis = if axis > 0 { axis - 1 } else { axis };
                    let s = p[0].reduce(how, axis, false)?.reduce_all(how)?;
                    x.binary(Binary::Multiply, &s)?
                        .binary(Binary::Add, &p[0].flatten()?.mean(None, false)?)
                },
            );
        }
        for logarithm in [false, true] {
            check(
                &format!("softmax {logarithm} along {axis}"),
                &[&[12]],
                12,
                &move |p, x| rows(p, x)?.softmax(axis, logarithm),
            );
        }
        check(
            &format!("slices along {axis}"),
            &[&[12]],
            12,
            &move |p, x| {
                let all = rows(p, x)?;
                let cut = all.slice(axis, 0, -1)?;
                let last = all.select(axis, -1)?.unsqueeze(axis)?;
                Tensor::concat(&[&cut, &last, &last], axis)
            },
        );
    }
    for (a, b) in [(1, 2), (2, 3), (1, 3), (-1, -2)] {
        check(&format!("transpose {a} {b}"), &[&[12]], 12, &move |p, x| {
            rows(p, x)?.transpose(a, b)
        });
        check(
            "transpose of parameters",
            &[&[2, 3, 2]],
            12,
            &move |p, x| {
                let axis = |i: i64| if i > 0 { i - 1 } else { i };
                x.binary(
                    Binary::Multiply,
                    &p[0].transpose(axis(a), axis(b))?.flatten()?,
                )
            },
        );
    }
    check("parts that all rows share", &[&[12], &[4]], 12, &|p, x| {
        Tensor::concat(&[&p[1], &x.binary(Binary::Multiply, &p[0])?, &p[1]], -1)
    });
    check("choose", &[&[12], &[12]], 12, &|p, x| {
        let a = x.binary(Binary::Multiply, &p[0])?;
        let zero = Tensor::number(0.0, &a)?;
        a.binary(Binary::Greater, &zero)?
            .choose(&a.unary(Unary::Power(2))?, &p[1])
    });
    // What is only compared has no gradient, and neither has what it was computed from.
    check("compared only", &[&[12], &[12], &[12]], 12, &|p, x| {
        let a = x.binary(Binary::Multiply, &p[0])?.unary(Unary::Exp)?;
        let b = p[1].unary(Unary::Exp)?.unary(Unary::Tanh)?;
        let c = a.binary(Binary::Greater, &b)?;
        c.choose(&p[2], x)?.binary(Binary::Multiply, &c)
    });
    check("a value used many times", &[&[12]], 12, &|p, x| {
        let a = x.binary(Binary::Multiply, &p[0])?;
        let b = a.binary(Binary::Multiply, &a)?.binary(Binary::Add, &a)?;
        let c = b.unary(Unary::Tanh)?.binary(Binary::Subtract, &a)?;
        c.binary(Binary::Multiply, &b)?
            .binary(Binary::Divide, &positive(&b)?)
    });
}

#[test]
fn what_is_equal_is_computed_once() {
    let t = trial(&[&[4]], 4, &|p, x| {
        let a = x.binary(Binary::Multiply, &p[0])?.unary(Unary::Exp)?;
        let b = p[0].binary(Binary::Multiply, x)?.unary(Unary::Exp)?;
        a.binary(Binary::Add, &b)
    });
    assert_eq!(t.program.passes(), (3, 0));
}

#[test]
fn extremes_are_those_of_floats() {
    let inf = f32::INFINITY;
    let x = [
        0.0,
        -0.0,
        1e-40,
        -1.0,
        inf,
        -inf,
        f32::NAN,
        88.5,
        89.0,
        -200.0,
    ];
    let of = |f: Unary| {
        let mut out = vec![0.0; x.len()];
        super::element::values(Element::One(f), [&x, &[], &[]], &mut out);
        out
    };
    let ln = of(Unary::Ln);
    assert_eq!((ln[0], ln[1], ln[4]), (-inf, -inf, inf));
    assert!(
        (ln[2] - 1e-40f32.ln()).abs() < 1e-4 && ln[3].is_nan() && ln[5].is_nan() && ln[6].is_nan()
    );
    let exp = of(Unary::Exp);
    assert!((exp[7] / 88.5f32.exp() - 1.0).abs() < 1e-6);
    assert_eq!((exp[4], exp[5], exp[8], exp[9]), (inf, 0.0, inf, 0.0));
    assert!(exp[6].is_nan());
    let softplus = of(Unary::Softplus);
    assert!(softplus[6].is_nan() && softplus[4] == inf && softplus[5] == 0.0);
    for f in [
        Unary::Relu,
        Unary::Abs,
        Unary::Tanh,
        Unary::Sigmoid,
        Unary::Gelu,
    ] {
        assert!(of(f)[6].is_nan(), "{f:?}");
    }
}

#[test]
fn deep_graphs_neither_overflow_the_stack_nor_repeat_themselves() {
    let t = trial(&[&[2]], 2, &|p, x| {
        let mut a = x.clone();
        for _ in 0..20_000 {
            a = a.binary(Binary::Add, &p[0])?;
        }
        Ok(a)
    });
    assert_eq!(t.program.passes().0, 20_000);
    let t = trial(&[&[2]], 2, &|p, x| {
        let mut a = x.binary(Binary::Multiply, &p[0])?;
        for _ in 0..200 {
            a = a.binary(Binary::Add, &a)?;
        }
        Ok(a)
    });
    assert_eq!(t.program.passes().0, 201);
}

#[test]
fn vectors_of_parameters_are_tensors_whose_sums_are_in_double_precision() {
    let numbers: Vec<f32> = vec![0.1, -2.0, 3.5, 0.7];
    let names: Names = std::sync::Arc::new(|name: &str, w: &[f32]| match name {
        "w" => Ok((w[1..4].to_vec(), vec![3, 1])),
        _ => anyhow::bail!("no tensor '{name}'"),
    });
    let vector = |names| Tensor::Vector(Vector::new(numbers.clone().into(), names));
    let v = vector(Some(names));
    let item = |t: Result<Tensor>| t.unwrap().item("").unwrap();
    let double = || numbers.iter().map(|x| f64::from(*x));
    assert_eq!(item(v.reduce_all(Reduce::Sum)), double().sum::<f64>());
    assert_eq!(item(v.mean(None, false)), double().sum::<f64>() / 4.0);
    assert_eq!(item(v.norm2()), double().map(|x| x * x).sum::<f64>());
    assert_eq!(item(v.reduce_all(Reduce::Min)), -2.0);
    assert_eq!(item(v.index(-1)), f64::from(0.7f32));
    let exact = double().map(f64::exp).sum::<f64>().ln();
    assert!((item(v.log_sum_exp(None, false)) - exact).abs() < 1e-14);
    // What is done to elements gives a vector, in single precision and with its names.
    let square = v.binary(Binary::Multiply, &v).unwrap();
    let root = square.unary(Unary::Sqrt).unwrap();
    let part = root.part("w").unwrap();
    assert_eq!(part.as_vector().unwrap().numbers()[..], [2.0, 3.5, 0.7]);
    let shifted = part.binary(Binary::Add, &Tensor::number(1.0, &part).unwrap());
    assert!(shifted.unwrap().as_vector().is_some());
    let cut = v.entries(1, 2).unwrap();
    assert_eq!(cut.as_vector().unwrap().numbers()[..], [-2.0, 3.5]);
    // Anything else is a tensor like any other.
    assert_eq!(v.named("w").unwrap().shape().unwrap().dims, [3, 1]);
    let square = v.reshape(&[2, 2]).unwrap();
    assert!(square.as_vector().is_none() && square.is_single());
    let double = v.binary(Binary::Add, &Tensor::from_f64(vec![1.0], &[]).unwrap());
    assert!(!double.unwrap().is_single());
    for error in [
        v.part("u").err(),
        vector(None).part("w").err(),
        v.index(4).err(),
    ] {
        assert!(error.is_some());
    }
}
