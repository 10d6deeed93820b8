//! What flows through an ONNX graph, and where its rows are.
//!
//! ONNX counts the examples as an axis like any other: PyTorch moves it about and merges it with its neighbours, `[positions·rows, width]`. Here a
//! tensor has its rows in front, apart from all other axes, and a [`Value`] knows where ONNX sees them.

use crate::error::Result;
use crate::kernels::tensor::Tensor;
use anyhow::{bail, ensure};
use std::ops::Range;

/// The length of an axis of rows. It is a prime that no other axis comes near to, so that its multiples tell where the rows are.
pub const ROWS: usize = i32::MAX as usize;

/// A tensor as ONNX sees it.
#[derive(Clone)]
pub struct Value {
    /// Its numbers, with the rows in front.
    pub tensor: Tensor,
    /// Where ONNX has the rows, if there are any.
    rows: Option<Place>,
    /// Whether the numbers are integers or truth values.
    pub whole: bool,
}

/// Where rows are among the other axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// So many other axes come before them.
    at: usize,
    /// Whether they are one axis with the one before.
    left: bool,
    /// Whether they are one axis with the one behind.
    right: bool,
}

impl Place {
    /// The axis that has the rows.
    fn axis(self) -> usize {
        self.at - usize::from(self.left)
    }
}

impl Value {
    /// A tensor that is the same for all rows.
    pub fn fixed(tensor: Tensor, whole: bool) -> Self {
        let rows = None;
        Self {
            tensor,
            rows,
            whole,
        }
    }

    /// Numbers that are known.
    pub fn numbers(values: Vec<f64>, dims: &[usize], whole: bool) -> Result<Self> {
        Ok(Self::fixed(Tensor::from_f64(values, dims)?, whole))
    }

    /// Integers along one axis; there may be none.
    pub fn list(values: Vec<f64>) -> Result<Self> {
        let count = values.len();
        let all = candle_core::Tensor::from_vec(values, count, &candle_core::Device::Cpu)?;
        Ok(Self::fixed(Tensor::Concrete(all), true))
    }

    /// A tensor with rows in front: `[rows, …]`.
    pub fn per_row(tensor: Tensor, whole: bool) -> Self {
        let rows = Some(Place {
            at: 0,
            left: false,
            right: false,
        });
        Self {
            tensor,
            rows,
            whole,
        }
    }

    /// Other numbers in the same shape.
    pub fn with(&self, tensor: Tensor) -> Self {
        Self {
            tensor,
            ..self.clone()
        }
    }

    /// As integers, or not.
    pub fn with_whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// Whether it has rows.
    pub fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Whether its numbers are known before there are parameters and data.
    pub fn is_known(&self) -> bool {
        matches!(self.tensor, Tensor::Concrete(_))
    }

    /// Its numbers, if they are known.
    pub fn to_f64(&self, what: &str) -> Result<Vec<f64>> {
        ensure!(
            self.is_known(),
            "{what} depends on parameters or on the data; it must be known when the model is read"
        );
        if self.own()?.contains(&0) {
            return Ok(Vec::new());
        }
        self.tensor.to_f64(what)
    }

    /// The same as integers.
    pub fn to_ints(&self, what: &str) -> Result<Vec<i64>> {
        Ok(self.to_f64(what)?.into_iter().map(|x| x as i64).collect())
    }

    /// Its axes without the rows.
    fn own(&self) -> Result<Vec<usize>> {
        Ok(self.tensor.shape()?.dims)
    }

    /// Which of its own axes an axis of ONNX is made of, and whether the rows are there.
    fn span(&self, axis: usize) -> (Range<usize>, bool) {
        let Some(p) = self.rows else {
            return (axis..axis + 1, false);
        };
        let end = p.at + usize::from(p.right);
        match axis.cmp(&p.axis()) {
            std::cmp::Ordering::Less => (axis..axis + 1, false),
            std::cmp::Ordering::Equal => (p.axis()..end, true),
            std::cmp::Ordering::Greater => {
                let at = end + axis - p.axis() - 1;
                (at..at + 1, false)
            }
        }
    }

    /// Number of axes.
    pub fn rank(&self) -> Result<usize> {
        let merged = self
            .rows
            .map_or(0, |p| usize::from(p.left) + usize::from(p.right));
        Ok(self.own()?.len() + usize::from(self.has_rows()) - merged)
    }

    /// Lengths of the axes; that with the rows is a multiple of [`ROWS`].
    pub fn dims(&self) -> Result<Vec<usize>> {
        let own = self.own()?;
        let each = (0..self.rank()?).map(|axis| {
            let (span, rows) = self.span(axis);
            let product: usize = own[span].iter().product();
            if rows { product * ROWS } else { product }
        });
        Ok(each.collect())
    }

    /// The axis that an attribute means, which counts from the end if it is negative.
    pub fn axis(&self, axis: i64) -> Result<usize> {
        let rank = self.rank()?;
        let at = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(at) {
            Ok(at) if at < rank => Ok(at),
            _ => bail!("there is no axis {axis}; the tensor has {rank}"),
        }
    }

    /// An axis as the tensor counts them; never one with rows.
    pub fn inner(&self, axis: usize) -> Result<i64> {
        let (span, rows) = self.span(axis);
        ensure!(
            !rows,
            "along axis {axis}, which is that of the examples, it would mix them"
        );
        Ok((span.start + usize::from(self.has_rows())) as i64)
    }

    /// The same numbers in another shape.
    pub fn reshape(&self, to: &[usize]) -> Result<Self> {
        let Some(p) = self.rows else {
            let dims: Vec<_> = to.iter().map(|n| *n as i64).collect();
            return Ok(self.with(self.tensor.reshape(&dims)?));
        };
        let open: Vec<_> = (0..to.len())
            .filter(|i| to[*i] > 0 && to[*i].is_multiple_of(ROWS))
            .collect();
        let wrong = || {
            anyhow::anyhow!(
                "a tensor {} cannot be reshaped to {} without mixing examples; export the model with a batch axis of open length",
                shown(&self.dims().unwrap_or_default()),
                shown(to)
            )
        };
        let [axis] = open[..] else {
            bail!(wrong());
        };
        let before: usize = self.own()?[..p.at].iter().product();
        let outer: usize = to[..axis].iter().product();
        let merged = to[axis] / ROWS;
        ensure!(outer > 0 && before.is_multiple_of(outer), wrong());
        let left = before / outer;
        ensure!(merged.is_multiple_of(left), wrong());
        let right = merged / left;
        let mut own = to[..axis].to_vec();
        own.extend([left, right].iter().filter(|n| **n > 1));
        own.extend(&to[axis + 1..]);
        Ok(Self {
            tensor: self.shaped(&own)?,
            rows: Some(Place {
                at: axis + usize::from(left > 1),
                left: left > 1,
                right: right > 1,
            }),
            whole: self.whole,
        })
    }

    /// The tensor with these axes besides the rows.
    fn shaped(&self, own: &[usize]) -> Result<Tensor> {
        let rows = self.has_rows().then_some(-1);
        let dims = own.iter().map(|n| *n as i64);
        self.tensor
            .reshape(&rows.into_iter().chain(dims).collect::<Vec<_>>())
    }

    /// Axes in another order: the i-th is what `order[i]` was.
    pub fn permute(&self, order: &[usize]) -> Result<Self> {
        let mut out = self.clone();
        let mut wanted = Vec::new();
        for axis in order {
            let (span, rows) = self.span(*axis);
            if let (true, Some(p)) = (rows, &mut out.rows) {
                p.at = wanted.len() + usize::from(p.left);
            }
            wanted.extend(span);
        }
        out.tensor = self.tensor.permute(&wanted)?;
        Ok(out)
    }

    /// Some entries along an axis.
    pub fn pick(&self, axis: usize, entries: &[usize]) -> Result<Self> {
        let length = self.dims()?[axis];
        if entries.len() == length && entries.iter().enumerate().all(|(i, e)| i == *e) {
            return Ok(self.clone());
        }
        let inner = self.inner(axis)?;
        ensure!(
            entries.iter().all(|e| *e < length),
            "an entry beyond the {length} of axis {axis}"
        );
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            ensure!(self.rank()? == 1, "it would give a tensor without elements");
            return Self::list(Vec::new());
        };
        if entries.windows(2).all(|e| e[1] == e[0] + 1) {
            let part = self.tensor.slice(inner, *first as i64, *last as i64 + 1)?;
            return Ok(self.with(part));
        }
        let mut own = self.own()?;
        let at = self.span(axis).0.start;
        let outside: usize = own[..at].iter().product();
        let inside: usize = own[at + 1..].iter().product();
        own[at] = entries.len();
        let from = (0..outside).flat_map(|o| {
            let each = entries.iter();
            each.flat_map(move |e| (0..inside).map(move |i| Some((o * length + e) * inside + i)))
        });
        Ok(self.with(self.tensor.take(own, from, 0.0)?))
    }

    /// With leading axes of length 1, as many as it takes.
    fn extended(&self, rank: usize) -> Result<Self> {
        let dims = self.dims()?;
        match rank.saturating_sub(dims.len()) {
            0 => Ok(self.clone()),
            extra => self.reshape(&[vec![1; extra], dims].concat()),
        }
    }

    /// Values whose axes are matched from the last one, but for so many of the last ones, with their rows at one place.
    fn aligned(values: &[&Value], apart: usize) -> Result<Vec<Value>> {
        let ranks = values.iter().map(|v| v.rank());
        let rank = ranks.collect::<Result<Vec<_>>>()?.into_iter().max();
        let rank = rank.unwrap_or(0);
        let extended = values.iter().map(|v| v.extended(rank));
        let mut out = extended.collect::<Result<Vec<_>>>()?;
        let traced = out.iter().find(|v| !v.is_known()).map(|v| v.tensor.clone());
        let Some(p) = out.iter().find_map(|v| v.rows) else {
            return out.into_iter().map(|v| v.like(traced.as_ref())).collect();
        };
        ensure!(
            p.axis() + apart < rank || apart == 0,
            "it would mix examples: those of one operand are axis {} of {rank}",
            p.axis()
        );
        for v in &mut out {
            let Some(own) = v.rows else {
                let mut dims = v.dims()?;
                ensure!(
                    dims[p.axis()] == 1,
                    "one operand has {} entries along axis {}, where another has the examples; export the model with a batch axis of open length",
                    dims[p.axis()],
                    p.axis()
                );
                let ones = vec![1; usize::from(p.left) + usize::from(p.right)];
                dims.splice(p.axis()..=p.axis(), ones);
                *v = v.reshape(&dims)?.like(traced.as_ref())?;
                continue;
            };
            ensure!(
                own == p,
                "the operands have their examples along different axes"
            );
        }
        Ok(out)
    }

    /// In the precision of what is traced.
    fn like(&self, traced: Option<&Tensor>) -> Result<Self> {
        match traced {
            Some(t) => Ok(self.with(self.tensor.like(t)?)),
            None => Ok(self.clone()),
        }
    }

    /// A function of the elements of some tensors, which are repeated along axes of length 1.
    pub fn elementwise(
        values: &[&Value],
        f: impl Fn(&[&Tensor]) -> Result<Tensor>,
    ) -> Result<Self> {
        let all = Self::aligned(values, 0)?;
        let tensors: Vec<_> = all.iter().map(|v| &v.tensor).collect();
        let tensor = f(&tensors)?;
        let rows = all.iter().find_map(|v| v.rows);
        let whole = all.iter().all(|v| v.whole);
        Ok(Self {
            tensor,
            rows,
            whole,
        })
    }

    /// Tensors one after the other along an axis.
    pub fn concat(values: &[&Value], axis: usize) -> Result<Self> {
        let all = Self::aligned(values, 0)?;
        let first = all.iter().find(|v| v.has_rows()).or(all.first());
        let Some(first) = first else {
            bail!("there are no tensors");
        };
        let inner = first.inner(axis)?;
        let tensors: Vec<_> = all.iter().map(|v| &v.tensor).collect();
        Ok(first.with(Tensor::concat(&tensors, inner)?))
    }

    /// The product of one or two tensors whose axes have these names; see [`Tensor::einsum`].
    pub fn einsum(equation: &str, values: &[&Value]) -> Result<Self> {
        let plain = equation.replace(' ', "");
        let Some((left, out)) = plain.split_once("->") else {
            bail!("the equation '{equation}' does not say what comes out");
        };
        // Rows stand in front of the tensors; only their names must move there.
        let mut rows = None;
        let mut names: Vec<String> = left.split(',').map(str::to_string).collect();
        for (name, value) in names.iter_mut().zip(values) {
            if let Some(p) = value.rows {
                ensure!(
                    !p.left && !p.right && p.at < name.chars().count(),
                    "the equation '{equation}' does not fit, or has the examples in one axis with others"
                );
                let mut all: Vec<char> = name.chars().collect();
                let own = all.remove(p.at);
                rows = Some(own);
                *name = std::iter::once(own).chain(all).collect();
            }
        }
        let inner: String = out.chars().filter(|c| Some(*c) != rows).collect();
        let first: String = rows.into_iter().collect();
        let equation = format!("{}->{first}{inner}", names.join(","));
        let tensors: Vec<_> = values.iter().map(|v| &v.tensor).collect();
        let found = Tensor::einsum(&equation, &tensors)?;
        let Some(at) = out.chars().position(|c| Some(c) == rows) else {
            return Ok(Self::fixed(found, false));
        };
        let rest = 1..out.chars().count();
        let mut order: Vec<_> = rest.collect();
        order.insert(at, 0);
        Self::per_row(found, false).permute(&order)
    }

    /// As the output of a model: [rows, outputs] or [rows, positions, outputs].
    pub fn output(&self) -> Result<Tensor> {
        let dims = self.dims()?;
        let Some(p) = self.rows.filter(|p| !p.left && !p.right) else {
            bail!("it is {}, and has no axis of examples", shown(&dims));
        };
        let rest = (0..dims.len()).filter(|a| *a != p.axis());
        let first = self.permute(&std::iter::once(p.axis()).chain(rest).collect::<Vec<_>>())?;
        match dims.len() {
            1 => Ok(first.reshape(&[ROWS, 1])?.tensor),
            2 | 3 => Ok(first.tensor),
            _ => bail!(
                "it is {}, but must be [rows, outputs] or [rows, positions, outputs]; name another one by the option 'output'",
                shown(&dims)
            ),
        }
    }

    /// Matrix product, as NumPy's.
    pub fn matmul(&self, other: &Value) -> Result<Self> {
        let (a, b) = (self.dims()?, other.dims()?);
        ensure!(
            !a.is_empty() && !b.is_empty(),
            "a single number has no rows and columns: a product of matrices needs at least one axis on both sides"
        );
        if a.len() == 1 {
            let out = self.reshape(&[1, a[0]])?.matmul(other)?;
            let mut dims = out.dims()?;
            dims.remove(dims.len() - 1 - usize::from(b.len() > 1));
            return out.reshape(&dims);
        }
        if b.len() == 1 {
            let out = self.matmul(&other.reshape(&[b[0], 1])?)?;
            let mut dims = out.dims()?;
            dims.pop();
            return out.reshape(&dims);
        }
        if !other.has_rows() && b.len() == 2 {
            // The examples may be rows of the left matrix.
            ensure!(
                !self.span(a.len() - 1).1,
                "it would mix examples, which are the last axis of the left operand"
            );
            let (left, right) = (&self.tensor, &other.tensor);
            return Ok(self.with(left.like(right)?.matmul(&right.like(left)?)?));
        }
        let all = Self::aligned(&[self, other], 2)?;
        let first = all.iter().find(|v| v.has_rows()).unwrap_or(&all[0]);
        Ok(first.with(all[0].tensor.matmul(&all[1].tensor)?))
    }
}

/// Lengths of axes, as messages show them.
pub fn shown(dims: &[usize]) -> String {
    let each = dims.iter().map(|n| match n / ROWS {
        1 if n.is_multiple_of(ROWS) => "rows".into(),
        k if k > 0 && n.is_multiple_of(ROWS) => format!("rows·{k}"),
        _ => n.to_string(),
    });
    format!("[{}]", each.collect::<Vec<_>>().join(", "))
}
