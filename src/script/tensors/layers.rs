//! What layers of networks are made of, as methods of tensors.

use super::super::binder::Binder;
use super::super::convert::options;
use super::super::item::Item;
use super::super::{Call, OrRaise};
use super::convert::integers;
use crate::error::Result;
use crate::kernels::tensor::{Reduce, Tensor, Windows};
use crate::options::{Kind, Options, Range, Spec, Value, option, optional};
use anyhow::{anyhow, bail, ensure};
use rhai::{Array, Dynamic, Map};
use std::any::TypeId;

const PAIR: Kind = Kind::Anything("integer, or [vertical, horizontal]");

const STRIDE: Spec = option("stride", PAIR, "1", "Steps from one window to the next.");
const PADDING: Spec = option("padding", PAIR, "0", "Zeros at each edge.");
const DILATION: Spec = option(
    "dilation",
    PAIR,
    "1",
    "Distances between the entries that one window takes.",
);
const GROUPS: Spec = option(
    "groups",
    Kind::Int(Range::AtLeast(1.0)),
    "1",
    "Groups of channels, each with filters of its own.",
);

const CONVOLUTION: &[Spec] = &[STRIDE, PADDING, DILATION, GROUPS];
const POOL: &[Spec] = &[
    optional(
        "stride",
        PAIR,
        "the window",
        "Steps from one window to the next.",
    ),
    option(
        "padding",
        PAIR,
        "0",
        "Entries at each edge, at most half of a window: they are never the largest, and 0 in a mean.",
    ),
];
const ATTENTION: &[Spec] = &[option(
    "causal",
    Kind::Bool,
    "false",
    "Whether keys that come later than a query are hidden from it; the last query is at the last key.",
)];
const ROTARY: &[Spec] = &[
    option(
        "base",
        Kind::Float(Range::Positive),
        "10000",
        "Base of the angles.",
    ),
    optional(
        "width",
        Kind::Int(Range::AtLeast(1.0)),
        "all",
        "So many of the numbers turn, an even number; the others stay.",
    ),
    option(
        "first",
        Kind::Int(Range::NonNegative),
        "0",
        "The first position.",
    ),
];

/// A method of tensors with other arguments, and options as a map that may be left out.
fn method(
    b: &mut Binder,
    signature: &'static str,
    doc: &'static str,
    specs: &'static [Spec],
    example: &str,
    others: &[&[TypeId]],
    f: fn(&[Tensor], &[i64], &Options) -> Result<Tensor>,
) {
    let item = Item {
        options: specs,
        example: example.into(),
        ..Item::from_signature(signature, doc)
    };
    let name = item.name.clone();
    let owner = format!("tensor.{name}");
    let map = TypeId::of::<Map>();
    for others in others {
        let plain = [&[TypeId::of::<Tensor>()], *others].concat();
        for types in [&plain[..], &[&plain[..], &[map]].concat()] {
            let owner = owner.clone();
            b.raw("", &name, types, move |call: &Call, arguments| {
                let tensors = arguments.iter().filter_map(|x| x.read_lock::<Tensor>());
                let tensors: Vec<_> = tensors.map(|t| t.clone()).collect();
                let sizes = arguments.iter().find_map(|x| x.read_lock::<Array>());
                let number = arguments.iter().find_map(|x| x.as_int().ok());
                let sizes = match (sizes, number) {
                    (Some(list), _) => integers(&list, &owner)?,
                    (None, number) => number.into_iter().collect(),
                };
                let map = arguments.iter().find_map(|x| x.read_lock::<Map>());
                let map = map.map(|m| m.clone()).unwrap_or_default();
                let made = options(call, &owner, specs, &map);
                let made = made.and_then(|o| f(&tensors, &sizes, &o));
                made.map(Dynamic::from).or_raise()
            });
        }
    }
    b.items.push(item);
}

/// A length for both axes, or one for each.
fn pair(o: &Options, name: &str, other: [usize; 2]) -> Result<[usize; 2]> {
    let size = |v: &Value| match v {
        Value::Int(x) => usize::try_from(*x).ok(),
        _ => None,
    };
    let found = match o.get(name) {
        None => return Ok(other),
        Some(Value::List(l)) => match &l[..] {
            [a, b] => size(a).zip(size(b)).map(|(a, b)| [a, b]),
            _ => None,
        },
        Some(one) => size(one).map(|x| [x, x]),
    };
    found.ok_or_else(|| {
        anyhow!(
            "{}: option '{name}' must be a whole number, or two, [vertical, horizontal]",
            o.owner()
        )
    })
}

fn windows(o: &Options, stride: [usize; 2]) -> Result<Windows> {
    Ok(Windows {
        stride: pair(o, "stride", stride)?,
        padding: pair(o, "padding", [0, 0])?,
        dilation: pair(o, "dilation", [1, 1])?,
    })
}

fn convolve(t: &[Tensor], _: &[i64], o: &Options) -> Result<Tensor> {
    t[0].conv2d(&t[1], windows(o, [1, 1])?, o.size("groups")?)
}

fn convolve_lines(t: &[Tensor], _: &[i64], o: &Options) -> Result<Tensor> {
    let one = |name: &str, other: usize| match pair(o, name, [other; 2])? {
        [a, b] if a == b => Ok(a),
        _ => bail!("{}: option '{name}' must be one number", o.owner()),
    };
    let (stride, padding) = (one("stride", 1)?, one("padding", 0)?);
    t[0].conv1d(
        &t[1],
        stride,
        padding,
        one("dilation", 1)?,
        o.size("groups")?,
    )
}

fn pool(how: Reduce, t: &[Tensor], sizes: &[i64], o: &Options) -> Result<Tensor> {
    let size = match *sizes {
        [a] => [a, a],
        [a, b] => [a, b],
        _ => bail!("{}: the window must be a whole number, or two", o.owner()),
    };
    ensure!(
        size.iter().all(|s| *s > 0),
        "{}: a window has at least one entry",
        o.owner()
    );
    let size = size.map(|s| s as usize);
    t[0].pool2d(how, size, windows(o, size)?)
}

pub(super) fn bind(b: &mut Binder) {
    let (tensor, integer, array) = (
        TypeId::of::<Tensor>(),
        TypeId::of::<i64>(),
        TypeId::of::<Array>(),
    );
    method(
        b,
        "tensor.conv2d(filters, #{ options }) -> Tensor",
        "Images [rows, channels, height, width] times filters [filters, channels / groups, height, width], as PyTorch's conv2d.\n\nA bias is added as `+ p.b.reshape([-1, 1, 1])`.",
        CONVOLUTION,
        "model::custom(#{ inputs: 64, params: #{ w: [4, 1, 3, 3], head: [10, 144] },\n    forward: |p, x| x.reshape([-1, 1, 8, 8]).conv2d(p.w).relu().flatten().matmul(p.head.t()) })",
        &[&[tensor]],
        convolve,
    );
    method(
        b,
        "tensor.conv1d(filters, #{ options }) -> Tensor",
        "Signals [rows, channels, length] times filters [filters, channels / groups, length], as PyTorch's conv1d.",
        CONVOLUTION,
        "tensor::normal([2, 10], 1).conv1d(tensor::normal([3, 2, 4], 2), #{ padding: 1 })",
        &[&[tensor]],
        convolve_lines,
    );
    method(
        b,
        "tensor.max_pool2d(size, #{ options }) -> Tensor",
        "The largest of each window of images [rows, channels, height, width]; equal ones share the gradient.",
        POOL,
        "tensor::normal([2, 8, 8], 1).max_pool2d(2)",
        &[&[integer], &[array]],
        |t, s, o| pool(Reduce::Max, t, s, o),
    );
    method(
        b,
        "tensor.avg_pool2d(size, #{ options }) -> Tensor",
        "The mean of each window of images [rows, channels, height, width].",
        POOL,
        "tensor::normal([2, 8, 8], 1).avg_pool2d([2, 4])",
        &[&[integer], &[array]],
        |t, s, o| pool(Reduce::Sum, t, s, o),
    );
    method(
        b,
        "tensor.attention(keys, values, #{ options }) -> Tensor",
        "softmax(q kᵀ/√d) v of queries […, positions, width] with keys and values, page by page.",
        ATTENTION,
        "tensor::normal([2, 5, 4], 1).attention(tensor::normal([2, 5, 4], 2), tensor::normal([2, 5, 4], 3), #{ causal: true })",
        &[&[tensor, tensor]],
        |t, _, o| t[0].attention(&t[1], &t[2], o.bool("causal")?),
    );
    method(
        b,
        "tensor.rotary(#{ options }) -> Tensor",
        "Rotary positions of […, positions, width] (Su et al. 2021): the two halves turn by angles p·base^(-2i/width).",
        ROTARY,
        "tensor::normal([5, 8], 1).rotary(#{ base: 10000.0 })",
        &[&[]],
        |t, _, o| {
            let all = t[0].shape()?.dims.last().copied().unwrap_or(0);
            let width = o.opt_int("width").map_or(all, |w| w as usize);
            t[0].rotary(o.float("base")?, width, o.size("first")?)
        },
    );
    plain(b);
}

/// Methods with numbers alone.
fn plain(b: &mut Binder) {
    b.function(
        "tensor.embedding(table) -> Tensor",
        "The rows of a table [words, width] that whole numbers from 0 name: [rows, positions] becomes [rows, positions, width].",
        |t: &mut Tensor, table: Tensor| t.embedding(&table).or_raise(),
    )
    .with(&[], "tensor([0, 2, 1]).embedding(tensor::normal([3, 4], 1))");
    b.function(
        "tensor::einsum(equation, tensors) -> Tensor",
        "The product of one or two tensors, summed over the axes that the result does not name, as NumPy's einsum.\n\nEach axis has a letter; those of the rows of a traced tensor come first: `tensor::einsum(\"nthd,nshd->nhts\", [q, k])`.",
        |equation: &str, tensors: Array| einsum(equation, &tensors).or_raise(),
    )
    .with(&[], "tensor::einsum(\"ik,kj->ij\", [tensor::normal([2, 3], 1), tensor::normal([3, 4], 2)])");
    b.function(
        "tensor.pad(edges) -> Tensor",
        "With zeros before and behind along the last axes: `pad([[1, 1], [2, 0]])` is for the last two.",
        |t: &mut Tensor, edges: Array| pad(t, &edges, 0.0).or_raise(),
    )
    .with(&[], "tensor::ones([2, 2]).pad([[1, 1]])");
    b.function(
        "tensor.gather(indices) -> Tensor",
        "Of the last axis the entries that whole numbers from 0 name, one for each place of the other axes: [rows, n] and [rows] give [rows]. NaN where there is no such entry.",
        |t: &mut Tensor, indices: Tensor| t.gather(&indices).or_raise(),
    )
    .with(&[], "tensor([[0.1, 0.9], [0.4, 0.6]]).gather(tensor([1, 0]))");
    b.function(
        "tensor.cumsum(axis) -> Tensor",
        "The sums of the entries up to each along an axis.",
        |t: &mut Tensor, axis: i64| t.cumsum(axis).or_raise(),
    );
    b.function(
        "tensor.clamp(low, high) -> Tensor",
        "No less than one number, and no more than another, element by element.",
        |t: &mut Tensor, low: f64, high: f64| t.clamp(low, high).or_raise(),
    );
    b.function(
        "tensor.leaky_relu(slope) -> Tensor",
        "x, or slope·x where it is negative.",
        |t: &mut Tensor, slope: f64| t.leaky_relu(slope).or_raise(),
    );
    b.function(
        "tensor.elu(alpha) -> Tensor",
        "x, or alpha·(e^x - 1) where it is negative.",
        |t: &mut Tensor, alpha: f64| t.elu(alpha).or_raise(),
    );
    b.defaulted(
        "tensor.layer_norm(epsilon) -> Tensor",
        "(x - mean)/√(variance + ε) along the last axis, without weights.",
        1e-5,
        |t: &mut Tensor, epsilon: f64| t.normalised(epsilon, true).or_raise(),
    );
    b.defaulted(
        "tensor.rms_norm(epsilon) -> Tensor",
        "x/√(mean of x² + ε) along the last axis, without weights.",
        1e-5,
        |t: &mut Tensor, epsilon: f64| t.normalised(epsilon, false).or_raise(),
    );
    b.function(
        "tensor.group_norm(groups) -> Tensor",
        "(x - mean)/√(variance + 10⁻⁵) of groups of the channels of [rows, channels, …], without weights; as many groups as channels is an instance norm.",
        |t: &mut Tensor, groups: i64| {
            let groups = usize::try_from(groups).unwrap_or(0);
            t.group_norm(groups, 1e-5).or_raise()
        },
    )
    .with(&[], "tensor::normal([4, 3, 3], 1).group_norm(2)");
}

fn einsum(equation: &str, tensors: &[Dynamic]) -> Result<Tensor> {
    let each = tensors.iter().map(|t| {
        let found = t.read_lock::<Tensor>().map(|t| t.clone());
        found.ok_or_else(|| anyhow!("einsum: a list of tensors is needed, [a, b]"))
    });
    let each = each.collect::<Result<Vec<_>>>()?;
    Tensor::einsum(equation, &each.iter().collect::<Vec<_>>())
}

fn pad(t: &Tensor, edges: &[Dynamic], fill: f32) -> Result<Tensor> {
    let edge = |e: &Dynamic| {
        let list = e
            .read_lock::<Array>()
            .map(|l| l.to_vec())
            .unwrap_or_default();
        let sizes = list
            .iter()
            .map(|x| x.as_int().ok().and_then(|x| usize::try_from(x).ok()));
        match sizes.collect::<Option<Vec<_>>>().as_deref() {
            Some([a, b]) => Ok([*a, *b]),
            _ => Err(anyhow!(
                "pad: each edge must be [before, behind], two whole numbers from 0"
            )),
        }
    };
    t.pad(&edges.iter().map(edge).collect::<Result<Vec<_>>>()?, fill)
}
