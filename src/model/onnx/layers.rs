//! Operators of ONNX that are layers: products, convolutions, windows, norms.

use super::node::{LONGEST, Node, Operator};
use super::value::Value;
use crate::error::Result;
use crate::kernels::tensor::{Binary, Reduce, Tensor, Windows};
use anyhow::{anyhow, bail, ensure};

pub const OPERATORS: &[(&str, Operator)] = &[
    ("AveragePool", Operator::Value(|n| pool(n, Reduce::Sum))),
    ("BatchNormalization", Operator::Value(batch_norm)),
    ("Conv", Operator::Value(convolve)),
    ("Einsum", Operator::Value(einsum)),
    ("Gemm", Operator::Value(gemm)),
    (
        "GlobalAveragePool",
        Operator::Value(|n| global(n, |x| x.mean(Some(-1), false))),
    ),
    (
        "GlobalMaxPool",
        Operator::Value(|n| global(n, |x| x.reduce(Reduce::Max, -1, false))),
    ),
    ("GroupNormalization", Operator::Value(group_norm)),
    ("InstanceNormalization", Operator::Value(instance_norm)),
    ("LayerNormalization", Operator::Value(layer_norm)),
    ("LogSoftmax", Operator::Value(|n| softmax(n, true))),
    (
        "MatMul",
        Operator::Value(|n| n.input(0)?.matmul(n.input(1)?)),
    ),
    ("MaxPool", Operator::Value(|n| pool(n, Reduce::Max))),
    ("RMSNormalization", Operator::Value(rms_norm)),
    ("SimplifiedLayerNormalization", Operator::Value(rms_norm)),
    ("Softmax", Operator::Value(|n| softmax(n, false))),
];

fn binary(a: &Value, f: Binary, b: &Value) -> Result<Value> {
    Value::elementwise(&[a, b], |t| t[0].binary(f, t[1]))
}

fn times(x: &Value, factor: f64) -> Result<Value> {
    match factor == 1.0 {
        true => Ok(x.clone()),
        false => binary(
            x,
            Binary::Multiply,
            &Value::numbers(vec![factor], &[], false)?,
        ),
    }
}

/// α a b + β c
fn gemm(n: &Node) -> Result<Value> {
    let turned = |i: usize, name: &str| match n.flag(name, false) {
        true => n.input(i)?.permute(&[1, 0]),
        false => n.input(i).cloned(),
    };
    let product = turned(0, "transA")?.matmul(&turned(1, "transB")?)?;
    let product = times(&product, n.float("alpha", 1.0))?;
    match n.optional(2) {
        Some(c) => binary(&product, Binary::Add, &times(c, n.float("beta", 1.0))?),
        None => Ok(product),
    }
}

/// How windows lie on the axes of images behind rows and channels.
struct Layout {
    kernel: Vec<usize>,
    stride: Vec<usize>,
    dilation: Vec<usize>,
    /// Before and behind each axis.
    edges: Vec<[usize; 2]>,
    /// What the last window lacks where results are rounded up.
    more: Vec<usize>,
}

fn layout(n: &Node, image: &[usize], kernel: Vec<usize>) -> Result<Layout> {
    let axes = kernel.len();
    ensure!(
        image.len() == axes,
        "its filters have {axes} axes, but the images {}",
        image.len()
    );
    let all = |name: &str| -> Result<Vec<usize>> {
        let given = n.sizes(name)?.unwrap_or(vec![1; axes]);
        let fine = given.len() == axes && given.iter().all(|n| (1..=LONGEST).contains(n));
        ensure!(fine, "its '{name}' is {given:?}");
        Ok(given)
    };
    let (stride, dilation) = (all("strides")?, all("dilations")?);
    let reach = |i: usize| dilation[i] * (kernel[i].max(1) - 1) + 1;
    let pads = n.sizes("pads")?.unwrap_or(vec![0; 2 * axes]);
    let fine = pads.len() == 2 * axes && pads.iter().all(|n| *n <= LONGEST);
    ensure!(fine, "its 'pads' are {pads:?}");
    ensure!(
        kernel.iter().all(|n| *n <= LONGEST),
        "its filters have the lengths {kernel:?}"
    );
    let automatic = n.text("auto_pad", "NOTSET");
    let edge = |i: usize| match &*automatic {
        "SAME_UPPER" | "SAME_LOWER" => {
            let windows = image[i].div_ceil(stride[i]);
            let all = (windows.saturating_sub(1) * stride[i] + reach(i)).saturating_sub(image[i]);
            let less = all / 2;
            Ok(if automatic == "SAME_UPPER" {
                [less, all - less]
            } else {
                [all - less, less]
            })
        }
        "NOTSET" | "" => Ok([pads[i], pads[i + axes]]),
        "VALID" => Ok([0, 0]),
        other => bail!("the padding '{other}' is not supported"),
    };
    let edges = (0..axes).map(edge).collect::<Result<Vec<_>>>()?;
    let up = n.flag("ceil_mode", false);
    let more = |i: usize| {
        let length = image[i] + edges[i][0] + edges[i][1];
        let over = length
            .checked_sub(reach(i))
            .map_or(0, |rest| rest % stride[i]);
        // A window that begins in the padding behind is none.
        let begins = length - over - reach(i) + stride[i];
        let counts = up && over > 0 && begins < image[i] + edges[i][0];
        if counts { stride[i] - over } else { 0 }
    };
    let fits = (0..axes).all(|i| reach(i) <= image[i] + edges[i][0] + edges[i][1]);
    ensure!(
        fits,
        "its filters of {kernel:?} do not fit into images of {image:?}"
    );
    let more = (0..axes).map(more).collect();
    Ok(Layout {
        kernel,
        stride,
        dilation,
        edges,
        more,
    })
}

/// Of a signal along one axis an image of height 1.
fn two<T: Copy>(given: &[T], first: T) -> Result<[T; 2]> {
    match given {
        [x] => Ok([first, *x]),
        [y, x] => Ok([*y, *x]),
        _ => bail!(
            "images with {} axes are not supported, only with 1 or 2",
            given.len()
        ),
    }
}

impl Layout {
    fn windows(&self, padded: bool) -> Result<Windows> {
        let before: Vec<_> = self.edges.iter().map(|e| e[0]).collect();
        Ok(Windows {
            stride: two(&self.stride, 1)?,
            padding: if padded { [0, 0] } else { two(&before, 0)? },
            dilation: two(&self.dilation, 1)?,
        })
    }

    /// Whether padding is the same at both edges.
    fn is_even(&self) -> bool {
        self.edges.iter().all(|[a, b]| a == b) && self.more.iter().all(|m| *m == 0)
    }

    /// Images with their padding.
    fn padded(&self, x: &Tensor, fill: f32) -> Result<Tensor> {
        let all = self.edges.iter().zip(&self.more);
        let all: Vec<_> = all.map(|([a, b], more)| [*a, b + more]).collect();
        x.pad(&two(&all, [0, 0])?, fill)
    }
}

/// Images `[rows, channels, height, width]`, and the lengths of their axes behind the channels.
fn images(n: &Node) -> Result<(Value, Vec<usize>)> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    ensure!(
        dims.len() >= 3 && (!x.has_rows() || x.inner(1).is_ok_and(|at| at == 1)),
        "images must be [rows, channels, …], but they are {}",
        super::value::shown(&dims)
    );
    let size = dims[2..].to_vec();
    let [h, w] = two(&size, 1)?;
    Ok((x.reshape(&[dims[0], dims[1], h, w])?, size))
}

/// Images in the number of axes that they had.
fn back(x: Value, axes: usize) -> Result<Value> {
    let dims = x.dims()?;
    match axes {
        1 => x.reshape(&[dims[0], dims[1], dims[3]]),
        _ => Ok(x),
    }
}

fn convolve(n: &Node) -> Result<Value> {
    let (x, size) = images(n)?;
    let filters = n.input(1)?;
    let dims = filters.dims()?;
    ensure!(
        dims.len() == size.len() + 2,
        "its filters have {} axes",
        dims.len()
    );
    let l = layout(n, &size, dims[2..].to_vec())?;
    let [kh, kw] = two(&l.kernel, 1)?;
    let filters = filters.reshape(&[dims[0], dims[1], kh, kw])?;
    let groups = usize::try_from(n.int("group", 1)).unwrap_or(0);
    let image = match l.is_even() {
        true => x.tensor.clone(),
        false => l.padded(&x.tensor, 0.0)?,
    };
    let windows = l.windows(!l.is_even())?;
    let filters = filters.tensor.like(&image)?;
    let out = x.with(image.conv2d(&filters, windows, groups)?);
    let out = match n.optional(2) {
        Some(bias) => binary(&out, Binary::Add, &bias.reshape(&[1, dims[0], 1, 1])?)?,
        None => out,
    };
    back(out, size.len())
}

fn pool(n: &Node, how: Reduce) -> Result<Value> {
    let (x, size) = images(n)?;
    let kernel = n.sizes("kernel_shape")?;
    let l = layout(
        n,
        &size,
        kernel.ok_or_else(|| anyhow!("it has no 'kernel_shape'"))?,
    )?;
    let [kh, kw] = two(&l.kernel, 1)?;
    let most = how == Reduce::Max;
    let image = l.padded(&x.tensor, if most { f32::NEG_INFINITY } else { 0.0 })?;
    let windows = l.windows(true)?;
    let mut out = x.with(image.pool2d(how, [kh, kw], windows)?);
    let whole = n.flag("count_include_pad", false) && l.more.iter().all(|m| *m == 0);
    if !most && !whole {
        // Means of what is there: padding counts only where it was asked for, and never what rounding up adds.
        let with_edges = n.flag("count_include_pad", false);
        let count = |axis: usize, length: usize| -> Vec<f64> {
            let [before, behind] = l.edges[axis];
            let (low, high) = match with_edges {
                true => (0, length + before + behind),
                false => (before, before + length),
            };
            let windows = (length + before + behind + l.more[axis]
                - (l.dilation[axis] * (l.kernel[axis] - 1) + 1))
                / l.stride[axis]
                + 1;
            let there = |w: usize| {
                let inside =
                    |k: usize| (low..high).contains(&(w * l.stride[axis] + k * l.dilation[axis]));
                l.kernel[axis] as f64
                    / (0..l.kernel[axis]).filter(|k| inside(*k)).count().max(1) as f64
            };
            (0..windows).map(there).collect()
        };
        let each: Vec<_> = size.iter().enumerate().map(|(i, n)| count(i, *n)).collect();
        let (rows, columns) = match &each[..] {
            [x] => (vec![1.0], x.clone()),
            [y, x, ..] => (y.clone(), x.clone()),
            [] => bail!("there are no images"),
        };
        if rows.iter().chain(&columns).any(|s| *s != 1.0) {
            let shares = rows.iter().flat_map(|y| columns.iter().map(move |x| y * x));
            let dims = [rows.len(), columns.len()];
            out = binary(
                &out,
                Binary::Multiply,
                &Value::numbers(shares.collect(), &dims, false)?,
            )?;
        }
    }
    back(out, size.len())
}

/// Of all pixels of a channel.
fn global(n: &Node, f: fn(&Tensor) -> Result<Tensor>) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    ensure!(dims.len() >= 3, "it needs images");
    let flat = x.reshape(&[dims[0], dims[1], dims[2..].iter().product()])?;
    let mut to = dims;
    to[2..].fill(1);
    flat.with(f(&flat.tensor)?).reshape(&to)
}

/// A vector over channels, for tensors [rows, channels, …].
fn channels(v: &Value, rank: usize) -> Result<Value> {
    let mut dims = vec![1; rank];
    dims[1] = v.dims()?.iter().product();
    v.reshape(&dims)
}

/// With the statistics of the file: (x - mean)/√(variance + ε) scale + bias.
fn batch_norm(n: &Node) -> Result<Value> {
    n.only("training_mode", 0)?;
    let x = n.input(0)?;
    let rank = x.rank()?;
    ensure!(rank >= 2, "it needs a tensor [rows, channels, …]");
    let mean = n.input(3)?.to_f64("its mean")?;
    let variance = n.input(4)?.to_f64("its variance")?;
    let epsilon = n.float("epsilon", 1e-5);
    let count = [mean.len()];
    let factors = variance
        .iter()
        .map(|v| 1.0 / (v + epsilon).sqrt())
        .collect();
    let factors = Value::numbers(factors, &count, false)?;
    let factor = binary(n.input(1)?, Binary::Multiply, &factors)?;
    let shift = binary(
        &factor,
        Binary::Multiply,
        &Value::numbers(mean, &count, false)?,
    )?;
    let shift = binary(n.input(2)?, Binary::Subtract, &shift)?;
    let scaled = binary(x, Binary::Multiply, &channels(&factor, rank)?)?;
    binary(&scaled, Binary::Add, &channels(&shift, rank)?)
}

/// Of mean 0 and variance 1 over groups of channels.
fn grouped(n: &Node, groups: usize) -> Result<Value> {
    let x = n.input(0)?;
    x.inner(1)?;
    Ok(x.with(x.tensor.group_norm(groups, n.float("epsilon", 1e-5))?))
}

fn instance_norm(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    ensure!(dims.len() >= 2, "it needs a tensor [rows, channels, …]");
    let out = grouped(n, dims[1])?;
    let out = binary(&out, Binary::Multiply, &channels(n.input(1)?, dims.len())?)?;
    binary(&out, Binary::Add, &channels(n.input(2)?, dims.len())?)
}

fn group_norm(n: &Node) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    ensure!(dims.len() >= 2, "it needs a tensor [rows, channels, …]");
    let groups = n.int("num_groups", 1).max(1) as usize;
    let out = grouped(n, groups)?;
    // Before version 21 there is one number for each group.
    let each = |v: &Value| -> Result<Value> {
        let count: usize = v.dims()?.iter().product();
        match count == dims[1] {
            true => channels(v, dims.len()),
            false => {
                let all: Vec<_> = (0..dims[1]).map(|c| c * count / dims[1]).collect();
                channels(&v.pick(0, &all)?, dims.len())
            }
        }
    };
    let out = binary(&out, Binary::Multiply, &each(n.input(1)?)?)?;
    binary(&out, Binary::Add, &each(n.input(2)?)?)
}

/// Over the axes from one on, with a weight and perhaps a bias.
fn norm(n: &Node, centre: bool) -> Result<Value> {
    let x = n.input(0)?;
    let dims = x.dims()?;
    let axis = x.axis(n.int("axis", -1))?;
    x.inner(axis)?;
    let merged = [&dims[..axis], &[dims[axis..].iter().product()]].concat();
    let flat = x.reshape(&merged)?;
    let out = flat.tensor.normalised(n.float("epsilon", 1e-5), centre)?;
    let out = flat.with(out).reshape(&dims)?;
    let out = match n.optional(1) {
        Some(weight) => binary(&out, Binary::Multiply, weight)?,
        None => out,
    };
    match n.optional(2) {
        Some(bias) if centre => binary(&out, Binary::Add, bias),
        _ => Ok(out),
    }
}

fn layer_norm(n: &Node) -> Result<Value> {
    norm(n, true)
}

fn rms_norm(n: &Node) -> Result<Value> {
    norm(n, false)
}

fn softmax(n: &Node, logarithm: bool) -> Result<Value> {
    let x = n.input(0)?;
    let old = n.opset < 13;
    let axis = x.axis(n.int("axis", if old { 1 } else { -1 }))?;
    ensure!(
        !old || axis + 1 == x.rank()?,
        "before version 13 it is over several axes at once, which is not supported; export with opset_version=17"
    );
    Ok(x.with(x.tensor.softmax(x.inner(axis)?, logarithm)?))
}

/// Products of one or two tensors, summed over what the result does not name.
fn einsum(n: &Node) -> Result<Value> {
    Value::einsum(&n.text("equation", ""), &n.given())
}
