//! Convolutions: windows of images are the columns of a matrix, filters its left factor.

use crate::Result;
use crate::gemm::{Matrix, Part, multiply};
use anyhow::ensure;
use std::cell::RefCell;
use std::ops::Range;

/// A convolution (as neural networks have it, a correlation) of images `[groups·channels, height, width]` with filters
/// `[groups·filters, channels, height, width]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Groups of channels; each has filters of its own.
    pub groups: usize,
    /// Channels of a group.
    pub channels: usize,
    /// Filters of a group.
    pub filters: usize,
    /// Height and width of an image.
    pub size: [usize; 2],
    /// Height and width of a filter.
    pub kernel: [usize; 2],
    /// Height and width of what comes out.
    pub out: [usize; 2],
    /// Steps from one window to the next.
    pub stride: [usize; 2],
    /// Zeros before and behind an image.
    pub padding: [usize; 2],
    /// Distances between the pixels that one window takes.
    pub dilation: [usize; 2],
}

thread_local! {
    /// The windows of one image.
    static COLUMNS: RefCell<Vec<f32>> = RefCell::default();
}

impl Convolution {
    /// Of images and filters of these shapes; `what` is what errors call it.
    ///
    /// # Errors
    /// If they do not fit, or no window does.
    pub fn new(
        what: &str,
        image: &[usize],
        filters: &[usize],
        groups: usize,
        [stride, padding, dilation]: [[usize; 2]; 3],
    ) -> Result<Self> {
        let ([c, height, width], [f, channels, kh, kw]) = (image, filters) else {
            anyhow::bail!(
                "{what}: images must be [channels, height, width] and filters [filters, channels, height, width], but they are {image:?} and {filters:?}"
            );
        };
        ensure!(
            groups > 0 && f % groups == 0 && channels.checked_mul(groups) == Some(*c),
            "{what}: {groups} groups of {channels} channels do not make the {c} channels of the images, or {f} filters are no multiple of the groups"
        );
        ensure!(
            stride.iter().chain(&dilation).all(|x| *x > 0),
            "{what}: strides and dilations are at least 1"
        );
        let along = |i: usize| {
            let length = [height, width][i] + 2 * padding[i];
            let reach = dilation[i] * ([kh, kw][i] - 1) + 1;
            ensure!(
                reach <= length,
                "{what}: a filter that reaches over {reach} pixels does not fit into {length}"
            );
            Ok((length - reach) / stride[i] + 1)
        };
        Ok(Self {
            groups,
            channels: *channels,
            filters: f / groups,
            size: [*height, *width],
            kernel: [*kh, *kw],
            out: [along(0)?, along(1)?],
            stride,
            padding,
            dilation,
        })
    }

    /// The shape of what comes out.
    pub fn shape(&self) -> Vec<usize> {
        let [h, w] = self.out;
        vec![self.groups * self.filters, h, w]
    }

    /// The length of a window, and their number in an image.
    pub fn columns(&self) -> (usize, usize) {
        let window = self.channels * self.kernel[0] * self.kernel[1];
        (window, self.out[0] * self.out[1])
    }

    /// Where each entry of the windows of all groups comes from in the image, `[groups, window, windows]`; none is a zero of the padding.
    pub fn places(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        let ([height, width], [kh, kw]) = (self.size, self.kernel);
        let (window, windows) = self.columns();
        (0..self.groups * window * windows).map(move |i| {
            let (at, k) = (i % windows, i / windows);
            let pixel = |axis: usize, out: usize, inner: usize| {
                let x = out * self.stride[axis] + inner * self.dilation[axis];
                x.checked_sub(self.padding[axis])
                    .filter(|x| *x < self.size[axis])
            };
            let y = pixel(0, at / self.out[1], k / kw % kh)?;
            let x = pixel(1, at % self.out[1], k % kw)?;
            Some((k / (kh * kw) * height + y) * width + x)
        })
    }

    /// Whether the windows are the image.
    pub(super) fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == [0, 0]
    }

    /// Go through the lines of the windows of a group: the stretch of a matrix `[window, windows]`, and the line of the image that it is made of
    /// with the first of its pixels and where that stands; a line of the padding has none.
    fn lines(&self, mut each: impl FnMut(Range<usize>, Option<(usize, Range<usize>)>)) {
        let ([height, width], [kh, kw], [oh, ow]) = (self.size, self.kernel, self.out);
        let step = self.stride[1];
        let mut at = 0;
        for c in 0..self.channels {
            for ky in 0..kh {
                for kx in 0..kw {
                    // Windows whose pixel is within the line: padding ≤ stride·i + shift < padding + width.
                    let shift = kx * self.dilation[1];
                    let first = self.padding[1].saturating_sub(shift).div_ceil(step);
                    let end = (self.padding[1] + width)
                        .saturating_sub(shift)
                        .div_ceil(step);
                    let inside = first.min(ow)..end.min(ow).max(first.min(ow));
                    for oy in 0..oh {
                        let y = oy * self.stride[0] + ky * self.dilation[0];
                        let y = y.checked_sub(self.padding[0]).filter(|y| *y < height);
                        let line = y.filter(|_| !inside.is_empty()).map(|y| {
                            let x = inside.start * step + shift - self.padding[1];
                            ((c * height + y) * width + x, inside.clone())
                        });
                        each(at..at + ow, line);
                        at += ow;
                    }
                }
            }
        }
    }

    /// The windows of a group of an image.
    fn unfold(&self, image: &[f32], out: &mut [f32]) {
        let step = self.stride[1];
        self.lines(|to, line| {
            let out = &mut out[to];
            let Some((from, inside)) = line else {
                return out.fill(0.0);
            };
            out[..inside.start].fill(0.0);
            out[inside.end..].fill(0.0);
            let out = &mut out[inside];
            match step {
                1 => out.copy_from_slice(&image[from..from + out.len()]),
                _ => {
                    let pixels = image[from..].iter().step_by(step);
                    out.iter_mut().zip(pixels).for_each(|(o, x)| *o = *x);
                }
            }
        });
    }

    /// Add what windows have to the pixels that they are made of.
    fn fold(&self, columns: &[f32], image: &mut [f32]) {
        let step = self.stride[1];
        self.lines(|from, line| {
            let Some((to, inside)) = line else { return };
            let columns = &columns[from][inside];
            if step == 1 {
                let pixels = image[to..].iter_mut();
                return pixels.zip(columns).for_each(|(x, c)| *x += *c);
            }
            let pixels = image[to..].iter_mut().step_by(step);
            pixels.zip(columns).for_each(|(x, c)| *x += *c);
        });
    }

    /// Show the windows of each group of an image as a matrix.
    fn each_group(&self, image: &[f32], mut each: impl FnMut(usize, Matrix)) {
        let (window, windows) = self.columns();
        let pixels = self.channels * self.size[0] * self.size[1];
        for (g, part) in image.chunks_exact(pixels).enumerate() {
            if self.is_pointwise() {
                each(g, Matrix::new(part, window, windows));
                continue;
            }
            COLUMNS.with_borrow_mut(|columns| {
                columns.resize(window * windows, 0.0);
                self.unfold(part, columns);
                each(g, Matrix::new(columns, window, windows));
            });
        }
    }

    fn filters<'a>(&self, all: &'a [f32], group: usize) -> Matrix<'a> {
        let (window, _) = self.columns();
        let count = self.filters * window;
        Matrix::new(&all[group * count..][..count], self.filters, window)
    }

    /// The convolution of a row of images.
    pub fn forward(&self, image: &[f32], filters: &[f32], out: &mut [f32]) {
        let one = self.filters * self.columns().1;
        self.each_group(image, |g, columns| {
            let out = &mut out[g * one..][..one];
            multiply(out, self.filters(filters, g), columns, false);
        });
    }

    /// Add the gradient with respect to a row of images.
    pub fn add_to_image(&self, filters: &[f32], delta: &[f32], image: &mut [f32]) {
        let (window, windows) = self.columns();
        let one = self.filters * windows;
        let pixels = self.channels * self.size[0] * self.size[1];
        for (g, part) in image.chunks_exact_mut(pixels).enumerate() {
            let delta = Matrix::new(&delta[g * one..][..one], self.filters, windows);
            let filters = self.filters(filters, g).transposed();
            if self.is_pointwise() {
                multiply(part, filters, delta, true);
                continue;
            }
            COLUMNS.with_borrow_mut(|columns| {
                columns.resize(window * windows, 0.0);
                multiply(columns, filters, delta, false);
                self.fold(columns, part);
            });
        }
    }

    /// Add the gradient with respect to the filters of one row.
    pub fn add_to_filters(&self, image: &[f32], delta: &[f32], filters: &mut [f32]) {
        let (window, windows) = self.columns();
        let (one, count) = (self.filters * windows, self.filters * window);
        self.each_group(image, |g, columns| {
            let delta = Matrix::new(&delta[g * one..][..one], self.filters, windows);
            let out = &mut filters[g * count..][..count];
            let mut whole = Part::whole(out, self.filters, window);
            whole.multiply(delta, columns.transposed(), true);
        });
    }
}
