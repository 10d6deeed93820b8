//! Operators of ONNX that are functions of single elements.

use super::node::Operator::{One, Two};
use super::node::{Node, Operator};
use super::value::Value;
use crate::error::Result;
use crate::kernels::tensor::{Binary, Tensor, Unary};
use anyhow::{bail, ensure};

pub const OPERATORS: &[(&str, Operator)] = &[
    ("Abs", One(Unary::Abs)),
    ("Atan", One(Unary::Atan)),
    ("Cos", One(Unary::Cos)),
    ("Cosh", One(Unary::Cosh)),
    ("Erf", One(Unary::Erf)),
    ("Exp", One(Unary::Exp)),
    ("Log", One(Unary::Ln)),
    ("Neg", One(Unary::Negate)),
    ("Reciprocal", One(Unary::Power(-1))),
    ("Relu", One(Unary::Relu)),
    ("Sigmoid", One(Unary::Sigmoid)),
    ("Sin", One(Unary::Sin)),
    ("Sinh", One(Unary::Sinh)),
    ("Softplus", One(Unary::Softplus)),
    ("Sqrt", One(Unary::Sqrt)),
    ("Tan", One(Unary::Tan)),
    ("Tanh", One(Unary::Tanh)),
    ("Add", Two(Binary::Add)),
    ("And", Two(Binary::Multiply)),
    ("Equal", Two(Binary::Equal)),
    ("Greater", Two(Binary::Greater)),
    ("GreaterOrEqual", Two(Binary::GreaterEqual)),
    ("Less", Two(Binary::Less)),
    ("LessOrEqual", Two(Binary::LessEqual)),
    ("Max", Two(Binary::Max)),
    ("Min", Two(Binary::Min)),
    ("Mul", Two(Binary::Multiply)),
    ("Or", Two(Binary::Max)),
    ("Sub", Two(Binary::Subtract)),
    ("Sum", Two(Binary::Add)),
    ("Xor", Two(Binary::NotEqual)),
    ("Cast", Operator::Value(cast)),
    ("CastLike", Operator::Value(cast)),
    ("Ceil", Operator::Value(|n| known(n, f64::ceil))),
    ("Celu", Operator::Value(celu)),
    ("Clip", Operator::Value(clip)),
    ("Div", Operator::Value(divide)),
    ("Dropout", Operator::Value(same)),
    (
        "Elu",
        Operator::Value(|n| of(n, |x| x.elu(n.float("alpha", 1.0)))),
    ),
    ("Floor", Operator::Value(|n| known(n, f64::floor))),
    ("Gelu", Operator::Value(gelu)),
    ("HardSigmoid", Operator::Value(hard_sigmoid)),
    ("HardSwish", Operator::Value(|n| of(n, hard_swish))),
    ("Identity", Operator::Value(same)),
    (
        "IsNaN",
        Operator::Value(|n| Ok(of(n, |x| x.binary(Binary::NotEqual, x))?.with_whole(true))),
    ),
    (
        "LeakyRelu",
        Operator::Value(|n| of(n, |x| x.leaky_relu(n.float("alpha", 0.01)))),
    ),
    ("Mean", Operator::Value(mean)),
    ("Mish", Operator::Value(|n| of(n, mish))),
    ("Mod", Operator::Value(modulo)),
    ("Not", Operator::Value(|n| Ok(of(n, not)?.with_whole(true)))),
    ("PRelu", Operator::Value(prelu)),
    ("Pow", Operator::Value(power)),
    ("Round", Operator::Value(|n| known(n, f64::round_ties_even))),
    ("Selu", Operator::Value(selu)),
    ("Sign", Operator::Value(|n| of(n, sign))),
    ("Softsign", Operator::Value(|n| of(n, softsign))),
    ("Swish", Operator::Value(swish)),
    ("ThresholdedRelu", Operator::Value(thresholded)),
    ("Where", Operator::Value(choose)),
];

/// A function of the first operand.
fn of(n: &Node, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Value> {
    let x = n.input(0)?;
    Ok(x.with(f(&x.tensor)?).with_whole(false))
}

fn number(x: f64, like: &Tensor) -> Result<Tensor> {
    Tensor::number(x, like)?.like(like)
}

fn with_number(x: &Tensor, f: Binary, y: f64) -> Result<Tensor> {
    x.binary(f, &number(y, x)?)
}

fn same(n: &Node) -> Result<Value> {
    n.input(0).cloned()
}

/// A function without a derivative, of numbers that are known.
fn known(n: &Node, f: fn(f64) -> f64) -> Result<Value> {
    let x = n.input(0)?;
    let all = x.to_f64("its operand, as it has no derivative,")?;
    map(x, all.into_iter().map(f).collect())
}

/// Other numbers in the shape of a value.
fn map(like: &Value, numbers: Vec<f64>) -> Result<Value> {
    Value::numbers(numbers, &like.dims()?, like.whole)
}

/// Numbers of ONNX's types: integers are cut, floats stay.
fn cast(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let (whole, truth) = match n.optional(1) {
        Some(like) => (like.whole, false),
        None => match n.int("to", 1) {
            1 | 10 | 11 | 16 => (false, false),
            9 => (true, true),
            2..=7 | 12 | 13 => (true, false),
            other => bail!("type {other} is not supported"),
        },
    };
    if truth {
        return Ok(of(n, |x| with_number(x, Binary::NotEqual, 0.0))?.with_whole(true));
    }
    if !whole || x.whole {
        return Ok(x.clone().with_whole(whole));
    }
    let all = x.to_f64("what becomes an integer")?;
    Ok(map(x, all.into_iter().map(f64::trunc).collect())?.with_whole(true))
}

fn celu(n: &Node) -> Result<Value> {
    let alpha = n.float("alpha", 1.0);
    of(n, |x| {
        let x = with_number(x, Binary::Divide, alpha)?.elu(1.0)?;
        with_number(&x, Binary::Multiply, alpha)
    })
}

fn selu(n: &Node) -> Result<Value> {
    let (alpha, gamma) = (n.float("alpha", 1.673_263_2), n.float("gamma", 1.050_701));
    of(n, |x| with_number(&x.elu(alpha)?, Binary::Multiply, gamma))
}

fn clip(n: &Node) -> Result<Value> {
    let mut x = n.input(0)?.clone();
    for (name, input, f) in [("min", 1, Binary::Max), ("max", 2, Binary::Min)] {
        if let Some(limit) = n.number(name, input)? {
            x = x.with(with_number(&x.tensor, f, limit)?);
        }
    }
    Ok(x)
}

/// Of integers the quotient is cut.
fn divide(n: &Node) -> Result<Value> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let out = Value::elementwise(&[a, b], |t| t[0].binary(Binary::Divide, t[1]))?;
    match out.whole {
        false => Ok(out),
        true => {
            let all = out.to_f64("a quotient of integers")?;
            map(&out, all.into_iter().map(f64::trunc).collect())
        }
    }
}

fn modulo(n: &Node) -> Result<Value> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let cut = n.flag("fmod", false);
    let quotient = Value::elementwise(&[a, b], |t| t[0].binary(Binary::Divide, t[1]))?;
    let all = quotient
        .to_f64("its operand, as it has no derivative,")?
        .into_iter();
    let quotient = map(
        &quotient,
        all.map(|x| if cut { x.trunc() } else { x.floor() })
            .collect(),
    )?;
    let product = Value::elementwise(&[b, &quotient], |t| t[0].binary(Binary::Multiply, t[1]))?;
    Value::elementwise(&[a, &product], |t| t[0].binary(Binary::Subtract, t[1]))
}

fn gelu(n: &Node) -> Result<Value> {
    let f = match &*n.text("approximate", "none") {
        "none" => Unary::Gelu,
        "tanh" => Unary::GeluTanh,
        other => bail!("the approximation '{other}' is not supported"),
    };
    of(n, |x| x.unary(f))
}

fn hard_sigmoid(n: &Node) -> Result<Value> {
    let (alpha, beta) = (n.float("alpha", 0.2), n.float("beta", 0.5));
    of(n, |x| ramp(x, alpha, beta))
}

/// αx + β between 0 and 1.
fn ramp(x: &Tensor, alpha: f64, beta: f64) -> Result<Tensor> {
    let line = with_number(&with_number(x, Binary::Multiply, alpha)?, Binary::Add, beta)?;
    let least = with_number(&line, Binary::Max, 0.0)?;
    with_number(&least, Binary::Min, 1.0)
}

fn hard_swish(x: &Tensor) -> Result<Tensor> {
    x.binary(Binary::Multiply, &ramp(x, 1.0 / 6.0, 0.5)?)
}

fn mish(x: &Tensor) -> Result<Tensor> {
    let gate = x.unary(Unary::Softplus)?.unary(Unary::Tanh)?;
    x.binary(Binary::Multiply, &gate)
}

fn swish(n: &Node) -> Result<Value> {
    let alpha = n.float("alpha", 1.0);
    of(n, |x| match alpha == 1.0 {
        true => x.unary(Unary::Silu),
        false => {
            let gate = with_number(x, Binary::Multiply, alpha)?.unary(Unary::Sigmoid)?;
            x.binary(Binary::Multiply, &gate)
        }
    })
}

fn softsign(x: &Tensor) -> Result<Tensor> {
    let below = with_number(&x.unary(Unary::Abs)?, Binary::Add, 1.0)?;
    x.binary(Binary::Divide, &below)
}

fn sign(x: &Tensor) -> Result<Tensor> {
    let above = with_number(x, Binary::Greater, 0.0)?;
    above.binary(Binary::Subtract, &with_number(x, Binary::Less, 0.0)?)
}

fn not(x: &Tensor) -> Result<Tensor> {
    with_number(x, Binary::Equal, 0.0)
}

fn thresholded(n: &Node) -> Result<Value> {
    let alpha = n.float("alpha", 1.0);
    of(n, |x| {
        x.binary(Binary::Multiply, &with_number(x, Binary::Greater, alpha)?)
    })
}

fn mean(n: &Node) -> Result<Value> {
    let all = n.given();
    let share = 1.0 / all.len().max(1) as f64;
    let sum = two(&all, Binary::Add)?;
    Ok(sum.with(with_number(&sum.tensor, Binary::Multiply, share)?))
}

fn prelu(n: &Node) -> Result<Value> {
    Value::elementwise(&[n.input(0)?, n.input(1)?], |t| {
        let below = with_number(t[0], Binary::Min, 0.0)?;
        let below = below.binary(Binary::Multiply, t[1])?;
        t[0].unary(Unary::Relu)?.binary(Binary::Add, &below)
    })
}

fn power(n: &Node) -> Result<Value> {
    let (x, exponent) = (n.input(0)?, n.input(1)?);
    if exponent.is_known() && exponent.dims()?.iter().all(|d| *d == 1) && exponent.rank()? <= 1 {
        let e = exponent.to_f64("its exponent")?[0];
        let out = match e == 0.5 {
            true => x.tensor.unary(Unary::Sqrt)?,
            false => x.tensor.power(e)?,
        };
        return Ok(x.with(out));
    }
    Value::elementwise(&[x, exponent], |t| t[0].binary(Binary::Power, t[1]))
}

fn choose(n: &Node) -> Result<Value> {
    let (a, b) = (n.input(1)?, n.input(2)?);
    Value::elementwise(&[n.input(0)?, a, b], |t| t[0].choose(t[1], t[2]))
        .map(|v| v.with_whole(a.whole && b.whole))
}

/// A function of pairs, of the first two operands, of what comes out and the third, and so on.
pub fn two(all: &[&Value], f: Binary) -> Result<Value> {
    let [first, rest @ ..] = all else {
        bail!("it has no operands");
    };
    ensure!(
        !rest.is_empty() || matches!(f, Binary::Add | Binary::Max | Binary::Min),
        "its second operand is missing"
    );
    let mut out = (*first).clone();
    for other in rest {
        out = Value::elementwise(&[&out, other], |t| t[0].binary(f, t[1]))?;
        if f.compares() {
            out.whole = true;
        }
    }
    Ok(out)
}
