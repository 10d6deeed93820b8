//! What layers of networks are made of: windows, tables, norms, attention.

use super::attention::Attention;
use super::operation::NOWHERE;
use super::window::Convolution;
use super::{Binary, Operation, Reduce, Shape, Tensor, Unary};
use crate::Result;
use anyhow::ensure;

/// How windows lie on an image: [vertically, horizontally].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Steps from one window to the next.
    pub stride: [usize; 2],
    /// Pixels of padding at each edge.
    pub padding: [usize; 2],
    /// Distances between the pixels that one window takes.
    pub dilation: [usize; 2],
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            stride: [1, 1],
            padding: [0, 0],
            dilation: [1, 1],
        }
    }
}

impl Windows {
    fn settings(self) -> [[usize; 2]; 3] {
        [self.stride, self.padding, self.dilation]
    }
}

impl Tensor {
    /// Entries of the numbers of each row, in a shape; `fill` stands where there is none.
    pub fn take(
        &self,
        dims: Vec<usize>,
        from: impl Iterator<Item = Option<usize>>,
        fill: f32,
    ) -> Result<Tensor> {
        let from = from.map(|i| i.map_or(NOWHERE, |i| i as u32)).collect();
        let fill = fill.to_bits();
        Self::apply(Operation::Take { dims, from, fill }, &[self])
    }

    /// The lengths of the axes behind the rows, which must be so many.
    fn lengths(&self, what: &str, names: &str, count: usize) -> Result<Vec<usize>> {
        let shape = self.shape()?;
        ensure!(
            shape.dims.len() == count,
            "{what}: a tensor {}{names}] is needed, but this has shape {shape}",
            if shape.rows { "[rows, " } else { "[" }
        );
        Ok(shape.dims)
    }

    /// With entries before and behind along the last axes; `fill` stands there.
    pub fn pad(&self, edges: &[[usize; 2]], fill: f32) -> Result<Tensor> {
        let shape = self.shape()?;
        let first = shape.dims.len().checked_sub(edges.len());
        let first = first.ok_or_else(|| {
            anyhow::anyhow!("pad: {} axes of a tensor of shape {shape}", edges.len())
        })?;
        let edge = |axis: usize| axis.checked_sub(first).map_or([0, 0], |i| edges[i]);
        let out = shape.dims.iter().enumerate();
        let out: Vec<usize> = out.map(|(i, n)| n + edge(i)[0] + edge(i)[1]).collect();
        let to = Shape {
            dims: out.clone(),
            ..shape.clone()
        };
        let count = to.check("pad")?.count();
        let place = |mut at: usize| {
            let (mut from, mut step) = (0, 1);
            for axis in (0..out.len()).rev() {
                let i = (at % out[axis]).checked_sub(edge(axis)[0]);
                from += step * i.filter(|i| *i < shape.dims[axis])?;
                at /= out[axis];
                step *= shape.dims[axis];
            }
            Some(from)
        };
        self.take(out.clone(), (0..count).map(place), fill)
    }

    /// Windows of images `[channels, height, width]` times filters `[filters, channels / groups, height, width]`, as PyTorch's conv2d.
    pub fn conv2d(&self, filters: &Tensor, how: Windows, groups: usize) -> Result<Tensor> {
        let image = self.lengths("conv2d", "channels, height, width", 3)?;
        let given = filters.shape()?;
        ensure!(!given.rows, "conv2d: filters are the same for all rows");
        let c = Convolution::new("conv2d", &image, &given.dims, groups, how.settings())?;
        if !self.is_energy() && !filters.is_energy() {
            return Self::apply(Operation::Convolve(c), &[self, filters]);
        }
        let (window, windows) = c.columns();
        let columns = self.take(vec![groups, window, windows], c.places(), 0.0)?;
        let filters = filters.shaped(vec![groups, c.filters, window])?;
        filters.matmul(&columns)?.shaped(c.shape())
    }

    /// The same along one axis: `[channels, length]` and `[filters, channels / groups, length]`.
    pub fn conv1d(
        &self,
        filters: &Tensor,
        stride: usize,
        padding: usize,
        dilation: usize,
        groups: usize,
    ) -> Result<Tensor> {
        let signal = self.lengths("conv1d", "channels, length", 2)?;
        let given = filters.shape()?.dims;
        ensure!(
            given.len() == 3,
            "conv1d: filters must be [filters, channels, length], but they are {given:?}"
        );
        let how = Windows {
            stride: [1, stride],
            padding: [0, padding],
            dilation: [1, dilation],
        };
        let filters = filters.shaped(vec![given[0], given[1], 1, given[2]])?;
        let out = self
            .shaped(vec![signal[0], 1, signal[1]])?
            .conv2d(&filters, how, groups)?;
        let dims = out.shape()?.dims;
        out.shaped(vec![dims[0], dims[2]])
    }

    /// The largest of each window of images `[channels, height, width]`, or their mean, in which padding counts as 0.
    pub fn pool2d(&self, how: Reduce, size: [usize; 2], windows: Windows) -> Result<Tensor> {
        let what = if how == Reduce::Sum {
            "avg_pool2d"
        } else {
            "max_pool2d"
        };
        let image = self.lengths(what, "channels, height, width", 3)?;
        let filters = [image[0], 1, size[0], size[1]];
        let c = Convolution::new(what, &image, &filters, image[0], windows.settings())?;
        ensure!(
            (0..2).all(|i| 2 * windows.padding[i] <= size[i]),
            "{what}: the padding is more than half of a window"
        );
        let fill = if how == Reduce::Max {
            f32::NEG_INFINITY
        } else {
            0.0
        };
        let (window, count) = c.columns();
        let taken = self.take(vec![image[0], window, count], c.places(), fill)?;
        let axis = 1 + i64::from(taken.shape()?.rows);
        let out = match how {
            Reduce::Sum => taken.mean(Some(axis), false)?,
            how => taken.reduce(how, axis, false)?,
        };
        out.shaped(c.shape())
    }

    /// The rows of a table `[words, width]` that the numbers name.
    pub fn embedding(&self, table: &Tensor) -> Result<Tensor> {
        if let (Tensor::Concrete(_), Ok([words, _])) =
            (self, <[usize; 2]>::try_from(table.shape()?.dims))
        {
            let all = self.to_f64("embedding")?;
            let wrong = all
                .iter()
                .find(|x| !(x.fract() == 0.0 && (0.0..words as f64).contains(*x)));
            if let Some(x) = wrong {
                anyhow::bail!("embedding: {x} names none of the {words} rows of the table");
            }
        }
        Self::apply(Operation::Embed, &[self, table])
    }

    /// Of the last axis the entries that numbers name, one for each place of the other axes; NaN where there is none.
    pub fn gather(&self, indices: &Tensor) -> Result<Tensor> {
        let n = self.shape()?.dims.last().copied().unwrap_or(0);
        let places = Self::from_f64((0..n).map(|i| i as f64).collect(), &[n])?.like(self)?;
        let chosen = indices.unsqueeze(-1)?.binary(Binary::Equal, &places)?;
        let entries = chosen.choose(self, &Self::number(0.0, self)?)?;
        // None is nothing by nothing.
        let count = chosen.reduce(Reduce::Sum, -1, false)?;
        entries
            .reduce(Reduce::Sum, -1, false)?
            .binary(Binary::Divide, &count)
    }

    /// Sums of the entries up to each along an axis.
    pub fn cumsum(&self, axis: i64) -> Result<Tensor> {
        let shape = self.shape()?;
        let at = shape.axis("cumsum", axis)? + usize::from(shape.rows);
        let n = shape.dims[at - usize::from(shape.rows)];
        let upper = (0..n * n).map(|i| f64::from(u8::from(i / n <= i % n)));
        let upper = Self::from_f64(upper.collect(), &[n, n])?.like(self)?;
        let last = shape.rank() as i64 - 1;
        let swapped = |t: &Tensor| match at as i64 == last {
            true => Ok(t.clone()),
            false => t.transpose(at as i64, last),
        };
        swapped(&swapped(self)?.matmul(&upper)?)
    }

    /// Numbers in the precision of another tensor; what is traced has that of its graph.
    pub fn like(&self, other: &Tensor) -> Result<Tensor> {
        let single = other.is_single() || matches!(other, Tensor::Traced(_)) && !other.is_energy();
        if !single || !matches!(self, Tensor::Concrete(_)) {
            return Ok(self.clone());
        }
        let all = self.to_f64("a constant")?.into_iter().map(|x| x as f32);
        Self::from_f32(all.collect(), &self.shape()?.dims)
    }

    /// No less than one number, and no more than another.
    pub fn clamp(&self, low: f64, high: f64) -> Result<Tensor> {
        ensure!(low <= high, "clamp: {low} is more than {high}");
        let least = self.binary(Binary::Max, &Self::number(low, self)?)?;
        least.binary(Binary::Min, &Self::number(high, self)?)
    }

    /// x, or a multiple of it where it is negative.
    pub fn leaky_relu(&self, slope: f64) -> Result<Tensor> {
        let zero = Self::number(0.0, self)?;
        let below = self.binary(Binary::Min, &zero)?;
        let below = below.binary(Binary::Multiply, &Self::number(slope, self)?)?;
        self.unary(Unary::Relu)?.binary(Binary::Add, &below)
    }

    /// x, or α(e^x - 1) where it is negative.
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        let (zero, one) = (Self::number(0.0, self)?, Self::number(1.0, self)?);
        // Cut first, so that nothing overflows where it is not used.
        let below = self.binary(Binary::Min, &zero)?.unary(Unary::Exp)?;
        let below = below.binary(Binary::Subtract, &one)?;
        let below = below.binary(Binary::Multiply, &Self::number(alpha, self)?)?;
        self.unary(Unary::Relu)?.binary(Binary::Add, &below)
    }

    /// Of mean 0 and variance 1 along the last axis, where ε is added to the variance; without `centre` of mean square 1.
    pub fn normalised(&self, epsilon: f64, centre: bool) -> Result<Tensor> {
        if !self.is_energy() {
            let epsilon = epsilon.to_bits();
            return Self::apply(Operation::Normalise { centre, epsilon }, &[self]);
        }
        let x = match centre {
            true => self.binary(Binary::Subtract, &self.mean(Some(-1), true)?)?,
            false => self.clone(),
        };
        let variance = x.unary(Unary::Power(2))?.mean(Some(-1), true)?;
        let shifted = variance.binary(Binary::Add, &Self::number(epsilon, &variance)?)?;
        x.binary(Binary::Divide, &shifted.unary(Unary::Sqrt)?)
    }

    /// The same over groups of channels, the first axis, and all that is behind it.
    pub fn group_norm(&self, groups: usize, epsilon: f64) -> Result<Tensor> {
        let shape = self.shape()?;
        let channels = shape.dims.first().copied().unwrap_or(0);
        ensure!(
            groups > 0 && channels > 0 && channels.is_multiple_of(groups),
            "group_norm: {groups} groups of the {channels} channels of a tensor of shape {shape}"
        );
        let parts = self.shaped(vec![groups, shape.count() / groups])?;
        parts.normalised(epsilon, true)?.shaped(shape.dims)
    }

    /// Attention of queries `[…, t, d]` to keys `[…, s, d]` and values `[…, s, e]`: softmax(q kᵀ/√d) v; `causal` hides keys that come later.
    ///
    /// Heads of keys and values, the axis before their positions, may be fewer than those of queries if they divide them.
    pub fn attention(&self, keys: &Tensor, values: &Tensor, causal: bool) -> Result<Tensor> {
        let (q, k, v) = (self.shape()?, keys.shape()?, values.shape()?);
        let scale = 1.0 / (q.dims.last().copied().unwrap_or(1) as f64).sqrt();
        let energy = [self, keys, values].iter().any(|t| t.is_energy());
        // Vectors of rows are no positions.
        let whole = q.rows == k.rows && q.rows == v.rows;
        let fits = Attention::new(&q, &k, &v, scale, causal);
        if let (false, true, Ok(_)) = (energy, whole, &fits) {
            let scale = scale.to_bits();
            return Self::apply(
                Operation::Attention { causal, scale },
                &[self, keys, values],
            );
        }
        if let (Ok(a), true) = (fits, whole)
            && a.groups < a.heads
        {
            // Keys and values once for each head that they serve.
            let lead = q.dims.len() - 3;
            let (heads, groups) = (q.dims[lead], k.dims[lead]);
            let split = |t: &Tensor, s: &Shape, each: usize| {
                let mut dims = s.dims.clone();
                dims[lead] = groups;
                dims.insert(lead + 1, each);
                t.shaped(dims)
            };
            let out = split(self, &q, heads / groups)?.composed_attention(
                &split(keys, &k, 1)?,
                &split(values, &v, 1)?,
                causal,
            )?;
            let mut dims = q.dims;
            dims.pop();
            dims.extend(v.dims.last());
            return out.shaped(dims);
        }
        self.composed_attention(keys, values, causal)
    }

    /// The same from products and a softmax: in energies, and where operands are repeated.
    fn composed_attention(&self, keys: &Tensor, values: &Tensor, causal: bool) -> Result<Tensor> {
        let (q, k) = (self.shape()?, keys.shape()?);
        let last_two = |s: &Shape| match s.dims[..] {
            [.., t, d] => Ok([t, d]),
            _ => Err(anyhow::anyhow!(
                "attention: tensors […, positions, width] are needed, but one has shape {s}"
            )),
        };
        let ([t, d], [s, _]) = (last_two(&q)?, last_two(&k)?);
        let scores = self.matmul(&keys.t()?)?;
        let scale = Self::number(1.0 / (d as f64).sqrt(), &scores)?;
        let mut scores = scores.binary(Binary::Multiply, &scale)?;
        if causal {
            ensure!(
                t <= s,
                "attention: {t} queries, but only {s} keys come up to them"
            );
            // The last query is at the last key.
            let later = |i: usize| i % s > i / s + s - t;
            let hidden = (0..t * s).map(|i| if later(i) { f64::NEG_INFINITY } else { 0.0 });
            let hidden = Self::from_f64(hidden.collect(), &[t, s])?.like(&scores)?;
            scores = scores.binary(Binary::Add, &hidden)?;
        }
        scores.softmax(-1, false)?.matmul(values)
    }

    /// Rotary positions (Su et al. 2021) of `[…, positions, width]`: the halves of the first `width` numbers turn by angles p·base^(-2i/width).
    pub fn rotary(&self, base: f64, width: usize, first: usize) -> Result<Tensor> {
        let shape = self.shape()?;
        let [.., _, all] = shape.dims[..] else {
            anyhow::bail!(
                "rotary: a tensor […, positions, width] is needed, but this has shape {shape}"
            );
        };
        ensure!(
            width > 0 && width <= all && width.is_multiple_of(2),
            "rotary: an even width of at most {all} is needed, not {width}"
        );
        let power = |i: usize| -2.0 * i as f64 / width as f64;
        let each: Vec<_> = (0..width / 2).map(|i| base.powf(power(i))).collect();
        self.turned(&each, first)
    }

    /// The same where number i and the one half a width behind it turn by p times the i-th of these angles.
    pub fn turned(&self, angles: &[f64], first: usize) -> Result<Tensor> {
        let shape = self.shape()?;
        let (half, width) = (angles.len(), 2 * angles.len());
        let (positions, all) = match shape.dims[..] {
            [.., positions, all] if (1..=all).contains(&width) => (positions, all),
            _ => anyhow::bail!(
                "rotary: a tensor […, positions, width] with a width of at least {width} is needed, but this has shape {shape}"
            ),
        };
        let angle = |i: usize| (first + i / half) as f64 * angles[i % half];
        let table = |f: fn(f64) -> f64| {
            let each = (0..positions * half).map(|i| f(angle(i)));
            Self::from_f64(each.collect(), &[positions, half])?.like(self)
        };
        let (cos, sin) = (table(f64::cos)?, table(f64::sin)?);
        let part = |from: usize, to: usize| self.slice(-1, from as i64, to as i64);
        let (a, b) = (part(0, half)?, part(half, width)?);
        let times = |x: &Tensor, f: &Tensor| x.binary(Binary::Multiply, f);
        let left = times(&a, &cos)?.binary(Binary::Subtract, &times(&b, &sin)?)?;
        let right = times(&b, &cos)?.binary(Binary::Add, &times(&a, &sin)?)?;
        match width == all {
            true => Self::concat(&[&left, &right], -1),
            false => Self::concat(&[&left, &right, &part(width, all)?], -1),
        }
    }
}
