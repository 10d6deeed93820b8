//! Operators and functions of each element, between tensors and numbers, both ways round.

use super::super::native::NativeEngine;
use super::super::{Binder, Bound, OrRaise, branches};
use crate::kernels::tensor::{Binary, Tensor, Unary};
use anyhow::anyhow;
use rhai::Dynamic;

/// A function of two tensors, or of a tensor and a number.
fn pairs(e: &mut NativeEngine, name: &str, f: Binary) {
    let right = move |a: &Tensor, x: f64| -> Bound<Tensor> {
        let number = Tensor::number(x, a).or_raise()?;
        a.binary(f, &number).or_raise()
    };
    let left = move |x: f64, b: &Tensor| -> Bound<Tensor> {
        Tensor::number(x, b).or_raise()?.binary(f, b).or_raise()
    };
    e.register_fn(name, move |a: Tensor, b: Tensor| a.binary(f, &b).or_raise())
        .register_fn(name, move |a: Tensor, x: f64| right(&a, x))
        .register_fn(name, move |a: Tensor, x: i64| right(&a, x as f64))
        .register_fn(name, move |x: f64, b: Tensor| left(x, &b))
        .register_fn(name, move |x: i64, b: Tensor| left(x as f64, &b));
}

/// A comparison that gives true or false.
fn decisions(e: &mut NativeEngine, name: &'static str, f: Binary, holds: fn(f64, f64) -> bool) {
    let right = move |a: &Tensor, x: f64| -> Bound<bool> {
        match a {
            Tensor::Traced(_) => traced(name, f, a, &Tensor::number(x, a).or_raise()?),
            _ => Ok(holds(one(a, name)?, x)),
        }
    };
    let left = move |x: f64, b: &Tensor| -> Bound<bool> {
        match b {
            Tensor::Traced(_) => traced(name, f, &Tensor::number(x, b).or_raise()?, b),
            _ => Ok(holds(x, one(b, name)?)),
        }
    };
    e.register_fn(name, move |a: Tensor, x: f64| right(&a, x))
        .register_fn(name, move |a: Tensor, x: i64| right(&a, x as f64))
        .register_fn(name, move |x: f64, b: Tensor| left(x, &b))
        .register_fn(name, move |x: i64, b: Tensor| left(x as f64, &b));
    // Of two tensors, == and != say whether they are the same.
    let whole = matches!(f, Binary::Equal | Binary::NotEqual);
    e.register_fn(name, move |a: Tensor, b: Tensor| match (&a, &b) {
        (Tensor::Traced(_), _) | (_, Tensor::Traced(_)) => traced(name, f, &a, &b),
        _ if whole => equal(&a, &b).map(|same| same == (f == Binary::Equal)),
        _ => Ok(holds(one(&a, name)?, one(&b, name)?)),
    });
}

/// A comparison of symbols.
fn traced(name: &str, f: Binary, a: &Tensor, b: &Tensor) -> Bound<bool> {
    branches::decide(name, f, a, b).or_raise()
}

/// The only number of a tensor, which a comparison needs.
fn one(t: &Tensor, name: &str) -> Bound<f64> {
    let what = format!("the comparison {name}");
    let each = "for each element use lt, le, gt, ge, eq or ne, as a.lt(b)";
    t.item(&what).map_err(|e| anyhow!("{e}; {each}")).or_raise()
}

/// Whether shapes and numbers are equal.
fn equal(a: &Tensor, b: &Tensor) -> Bound<bool> {
    let compare = || {
        let what = "the comparison ==";
        let (x, y) = (a.to_f64(what)?, b.to_f64(what)?);
        Ok(a.shape()? == b.shape()? && x == y)
    };
    compare().or_raise()
}

/// A tensor, or a number as one.
fn tensor(x: &Dynamic, like: &Tensor, what: &str) -> crate::error::Result<Tensor> {
    match x.clone().try_cast::<Tensor>() {
        Some(t) => Ok(t),
        None => Tensor::number(super::number(x, what)?, like),
    }
}

pub(super) fn bind(b: &mut Binder) {
    elements(b);
    let e = &mut b.engine;
    for (name, f) in [
        ("+", Binary::Add),
        ("-", Binary::Subtract),
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("**", Binary::Power),
        ("pow", Binary::Power),
        // Of a tensor and a whole number these are methods, along that axis.
        ("max", Binary::Max),
        ("min", Binary::Min),
    ] {
        pairs(e, name, f);
    }
    e.register_fn("-", |a: Tensor| a.unary(Unary::Negate).or_raise());
    // Whole powers are products.
    for name in ["**", "pow"] {
        e.register_fn(name, |a: Tensor, x: f64| a.power(x).or_raise())
            .register_fn(name, |a: Tensor, x: i64| a.power(x as f64).or_raise());
    }
    decisions(e, "<", Binary::Less, |a, b| a < b);
    decisions(e, ">", Binary::Greater, |a, b| a > b);
    decisions(e, "<=", Binary::LessEqual, |a, b| a <= b);
    decisions(e, ">=", Binary::GreaterEqual, |a, b| a >= b);
    decisions(e, "==", Binary::Equal, |a, b| a == b);
    decisions(e, "!=", Binary::NotEqual, |a, b| a != b);
}

/// Methods for each element, with their entries in the reference.
macro_rules! unary {
    ($b:expr, $($f:ident $signature:literal $doc:literal;)*) => {$(
        $b.function($signature, $doc, |a: Tensor| -> Bound<Tensor> { a.unary(Unary::$f).or_raise() });
    )*};
}

macro_rules! binary {
    ($b:expr, $($f:ident $name:literal $signature:literal $doc:literal;)*) => {$(
        pairs(&mut $b.engine, $name, Binary::$f);
        $b.function($signature, $doc, |a: Tensor, b: Tensor| -> Bound<Tensor> { a.binary(Binary::$f, &b).or_raise() });
    )*};
}

fn elements(b: &mut Binder) {
    unary!(b,
        Exp "tensor.exp() -> Tensor" "e to the power of each element.";
        Ln "tensor.ln() -> Tensor" "Natural logarithms; NaN of negative numbers.";
        Sqrt "tensor.sqrt() -> Tensor" "Square roots; NaN of negative numbers.";
        Abs "tensor.abs() -> Tensor" "Absolute values.";
        Sin "tensor.sin() -> Tensor" "Sines, of radians.";
        Cos "tensor.cos() -> Tensor" "Cosines, of radians.";
        Tan "tensor.tan() -> Tensor" "Tangents, of radians.";
        Tanh "tensor.tanh() -> Tensor" "Hyperbolic tangents.";
        Sinh "tensor.sinh() -> Tensor" "Hyperbolic sines.";
        Cosh "tensor.cosh() -> Tensor" "Hyperbolic cosines.";
        Atan "tensor.atan() -> Tensor" "Arctangents, in radians.";
        Sigmoid "tensor.sigmoid() -> Tensor" "1/(1+e^-x), the activation \"logistic\" of model::mlp.";
        Relu "tensor.relu() -> Tensor" "max(0, x).";
        Softplus "tensor.softplus() -> Tensor" "ln(1 + e^x), without overflow.";
        Gelu "tensor.gelu() -> Tensor" "x Φ(x), with the exact normal distribution function.";
        GeluTanh "tensor.gelu_tanh() -> Tensor" "x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))), the form of gelu that GPT-2 has.";
        Silu "tensor.silu() -> Tensor" "x/(1+e^-x).";
        Erf "tensor.erf() -> Tensor" "Error functions.";
    );
    binary!(b,
        Max "maximum" "tensor.maximum(other) -> Tensor" "The larger of each pair of elements, of a tensor and another or a number.";
        Min "minimum" "tensor.minimum(other) -> Tensor" "The smaller of each pair of elements.";
        LnAddExp "ln_add_exp" "tensor.ln_add_exp(other) -> Tensor" "ln(e^a + e^b) of each pair of elements, without overflow.";
        Less "lt" "tensor.lt(other) -> Tensor" "1 where it is less, otherwise 0, for each pair of elements; without a gradient.";
        LessEqual "le" "tensor.le(other) -> Tensor" "1 where it is less or equal, otherwise 0.";
        Greater "gt" "tensor.gt(other) -> Tensor" "1 where it is greater, otherwise 0.";
        GreaterEqual "ge" "tensor.ge(other) -> Tensor" "1 where it is greater or equal, otherwise 0.";
        Equal "eq" "tensor.eq(other) -> Tensor" "1 where it is equal, otherwise 0; `a == b` says whether all are.";
        NotEqual "ne" "tensor.ne(other) -> Tensor" "1 where it is not equal, otherwise 0.";
    );
    b.function(
        "choose(condition, a, b) -> Tensor",
        "The elements of a where the condition is not 0, otherwise those of b; a and b may be numbers.",
        |c: Tensor, x: Dynamic, y: Dynamic| -> Bound<Tensor> {
            let chosen = || {
                let like = [&x, &y].into_iter().find_map(|v| v.clone().try_cast::<Tensor>());
                let like = like.as_ref().unwrap_or(&c);
                let (x, y) = (tensor(&x, like, "choose: a")?, tensor(&y, like, "choose: b")?);
                c.choose(&x, &y)
            };
            chosen().or_raise()
        },
    )
    .with(&[], "let x = tensor([-2.0, 3.0]); choose(x.gt(0), x, 0.1 * x)");
}
