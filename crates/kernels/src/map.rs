//! Kernels: element-wise passes and sums over parameter vectors, written once for every device.
//!
//! [`kernel!`](crate::map::kernel) takes a body in the words that Rust and C share (assignments, arithmetic, `let`, and
//! the functions `root`, `max`, `choose`). rustc compiles it into one fused SIMD loop; [`Kernel::cuda`] puts the same words into a
//! CUDA kernel, whose floats are rounded alike. A noise variable is a standard normal number made on the way, with the same bits
//! everywhere.

use super::normal::BLOCK;
use crate::rng::Stream;
use std::fmt::Write;

/// A fused element-wise pass.
pub struct Kernel {
    /// Name, unique among kernels.
    pub name: &'static str,
    /// Vectors that are read and written.
    pub outs: &'static [&'static str],
    /// Vectors that are read.
    pub ins: &'static [&'static str],
    /// The normal number per element, if there is one.
    pub noise: &'static [&'static str],
    /// Numbers that are the same for all elements of a chain.
    pub scalars: &'static [&'static str],
    /// What is done to an element.
    pub body: &'static str,
    /// The loop for one chain on the CPU.
    pub cpu: Loop,
}

/// Outs, ins, scalars, stream of the noise, first element (a multiple of 64).
pub type Loop = fn(&mut [&mut [f32]], &[&[f32]], &[f32], &Stream, usize);

/// A sum over elements, or the largest of something, in double precision.
pub struct Reduction {
    /// Name, unique among kernels.
    pub name: &'static str,
    /// Vectors that are read.
    pub ins: &'static [&'static str],
    /// What is added (or compared) for an element.
    pub body: &'static str,
    /// Whether the largest is wanted instead of the sum.
    pub largest: bool,
    /// The loop for one chain on the CPU.
    pub cpu: fn(&[&[f32]]) -> f64,
}

/// √x, in the bodies of kernels.
#[inline(always)]
pub fn root(x: f32) -> f32 {
    x.sqrt()
}

/// The larger of two numbers, the second if the first is NaN; in the bodies of kernels.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    choose(a > b, a, b)
}

/// `a` if the condition holds, otherwise `b`; in the bodies of kernels.
#[inline(always)]
pub fn choose<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// Scalars in single precision, as kernels take them. The `map` of arrays is not inlined.
#[inline(always)]
pub fn single<const K: usize>(scalars: [f64; K]) -> [f32; K] {
    let mut out = [0.0; K];
    for k in 0..K {
        out[k] = scalars[k] as f32;
    }
    out
}

/// The block of 64 elements from `start` on.
#[inline(always)]
pub fn block(x: &[f32], start: usize) -> &[f32; BLOCK] {
    x[start..start + BLOCK]
        .first_chunk()
        .unwrap_or(&[0.0; BLOCK])
}

/// The block of 64 elements from `start` on.
#[inline(always)]
pub fn block_mut(x: &mut [f32], start: usize) -> &mut [f32; BLOCK] {
    match x[start..start + BLOCK].first_chunk_mut() {
        Some(block) => block,
        None => unreachable!("the range is a block long"),
    }
}

/// Define a [`Kernel`]: `NAME = name(written; read; noise; scalars) { body }`.
#[macro_export]
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis $static:ident = $name:ident(
        $($out:ident),*; $($in:ident),*; $($noise:ident)?; $($k:ident),*
    ) { $($body:tt)* }) => {
        $(#[$meta])*
        $vis static $static: $crate::map::Kernel = {
            #[allow(unused_imports)]
            use $crate::map::{choose, max, root};

            /// One element: what becomes of the written numbers.
            #[inline(always)]
            #[allow(clippy::too_many_arguments, unused_mut, unused_parens, unused_assignments)]
            fn element($(mut $out: f32,)* $($in: f32,)* $($noise: f32,)? $($k: f32,)*) -> [f32; [$(stringify!($out)),*].len()] {
                $($body)*
                [$($out,)*]
            }

            $crate::simd! {
                pub fn cpu(outs: &mut [&mut [f32]], ins: &[&[f32]], scalars: &[f32], stream: &$crate::rng::Stream, first: usize) {
                    let ([$($out,)*], [$($in,)*], &[$($k,)*]) = (outs, ins, scalars) else {
                        unreachable!("a kernel is called with the vectors and scalars it names")
                    };
                    let n = [$($out.len(),)*][0];
                    let _ = (stream, first);
                    const BLOCK: usize = $crate::normal::BLOCK;
                    // Whole blocks have a length that the compiler knows.
                    let whole = n / BLOCK * BLOCK;
                    for start in (0..whole).step_by(BLOCK) {
                        $(let $out = $crate::map::block_mut($out, start);)*
                        $(let $in = $crate::map::block($in, start);)*
                        $(let $noise = $crate::normal::normal_block(stream, (first + start) / BLOCK);)?
                        for i in 0..BLOCK {
                            [$($out[i],)*] = element($($out[i],)* $($in[i],)* $($noise[i],)? $($k,)*);
                        }
                    }
                    $(let $noise = $crate::normal::normal_block(stream, (first + whole) / BLOCK);)?
                    for i in whole..n {
                        [$($out[i],)*] = element($($out[i],)* $($in[i],)* $($noise[i - whole],)? $($k,)*);
                    }
                }
            }

            $crate::map::Kernel {
                name: stringify!($name),
                outs: &[$(stringify!($out)),*],
                ins: &[$(stringify!($in)),*],
                noise: &[$(stringify!($noise))?],
                scalars: &[$(stringify!($k)),*],
                body: stringify!($($body)*),
                cpu,
            }
        };
    };
}
pub use kernel;

/// Define a [`Reduction`]: `NAME = sum name(read) { expression }` or `NAME = largest name(read) { expression }`.
#[macro_export]
macro_rules! reduction {
    ($(#[$meta:meta])* $vis:vis $static:ident = $how:ident $name:ident($($in:ident),*) { $body:expr }) => {
        $(#[$meta])*
        $vis static $static: $crate::map::Reduction = {
            #[inline(always)]
            fn element($($in: f64),*) -> f64 {
                $body
            }

            $crate::simd! {
                pub fn cpu(ins: &[&[f32]]) -> f64 {
                    let [$($in,)*] = ins else {
                        unreachable!("a reduction is called with the vectors it names")
                    };
                    let n = [$($in.len(),)*][0];
                    $(let $in = &$in[..n];)*
                    $crate::map::$how(n, |i| element($($in[i] as f64),*))
                }
            }

            $crate::map::Reduction {
                name: stringify!($name),
                ins: &[$(stringify!($in)),*],
                body: stringify!($body),
                largest: matches!(stringify!($how).as_bytes(), b"largest"),
                cpu,
            }
        };
    };
}
pub use reduction;

/// Fold `f(i)` over `i` in sixteen lanes: vectorises and has a fixed order.
#[inline(always)]
fn by_lanes(n: usize, start: f64, f: impl Fn(usize) -> f64, join: impl Fn(f64, f64) -> f64) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [start; LANES];
    let whole = n / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        for (l, lane) in lanes.iter_mut().enumerate() {
            *lane = join(*lane, f(at + l));
        }
    }
    for i in whole..n {
        lanes[i - whole] = join(lanes[i - whole], f(i));
    }
    lanes.into_iter().fold(start, join)
}

/// Σ f(i).
#[inline(always)]
pub fn sum(n: usize, f: impl Fn(usize) -> f64) -> f64 {
    by_lanes(n, 0.0, f, |a, b| a + b)
}

/// The largest f(i); NaN is passed over.
#[inline(always)]
pub fn largest(n: usize, f: impl Fn(usize) -> f64) -> f64 {
    by_lanes(n, f64::NEG_INFINITY, f, |a, b| if b > a { b } else { a })
}

impl Kernel {
    /// Run it over whole vectors on this thread.
    pub fn run(&self, outs: &mut [&mut [f32]], ins: &[&[f32]], scalars: &[f32], stream: &Stream) {
        (self.cpu)(outs, ins, scalars, stream, 0);
    }

    /// The same as CUDA C; it needs `device/prelude.cu` before it.
    ///
    /// Parameters: elements per chain, their stride from chain to chain, chains, a pointer per vector, scalars `[chains, k]`, streams
    /// `[chains]`. A thread makes four elements, from one block of Philox: those that share it on the CPU.
    pub fn cuda(&self) -> String {
        let (mut arguments, mut load, mut store) = (String::new(), String::new(), String::new());
        for v in self.outs {
            let _ = write!(arguments, ", float* {v}_of");
            let _ = write!(load, "float {v} = {v}_of[at]; ");
            let _ = write!(store, "{v}_of[at] = {v}; ");
        }
        for v in self.ins {
            let _ = write!(arguments, ", const float* {v}_of");
            let _ = write!(load, "const float {v} = {v}_of[at]; ");
        }
        for (i, k) in self.scalars.iter().enumerate() {
            let n = self.scalars.len();
            let _ = write!(load, "const float {k} = scalars[chain * {n} + {i}]; ");
        }
        let mut normals = String::new();
        if let [eta] = self.noise {
            normals = "float noise[4]; const Stream s = streams[chain]; \
                       normals4(s.key[0], s.key[1], s.high[0], s.high[1], s.high[2], (unsigned)THREAD, noise);"
                .into();
            let _ = write!(load, "const float {eta} = noise[word]; ");
        }
        format!(
            "extern \"C\" __global__ void {name}(unsigned long long n, unsigned long long stride, int chains{arguments}, \
             const float* scalars, const Stream* streams) {{\n\
             for_each_chain(chain, chains) {{\n{normals}\n\
             for (int word = 0; word < 4; word++) {{\n\
             const unsigned long long element = THREAD / 16 * {BLOCK} + THREAD % 16 + 16 * word;\n\
             if (element >= n) continue;\n\
             const unsigned long long at = chain * stride + element;\n\
             {load}\n{body}\n{store}\n}} }} }}\n",
            name = self.name,
            body = in_c(self.body, true),
        )
    }
}

impl Reduction {
    /// Partial results per chain that the CUDA version makes.
    pub const PARTIALS: usize = 1024;

    /// From partial results to the result.
    pub fn finish(&self, parts: impl Iterator<Item = f64>) -> f64 {
        if self.largest {
            parts.fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a })
        } else {
            parts.sum()
        }
    }

    /// The same as CUDA C: parameters as [`Kernel::cuda`]'s, then the partial results `[chains, PARTIALS]`.
    pub fn cuda(&self) -> String {
        let (mut arguments, mut load) = (String::new(), String::new());
        for v in self.ins {
            let _ = write!(arguments, ", const float* {v}_of");
            let _ = write!(load, "const double {v} = {v}_of[at]; ");
        }
        let body = in_c(self.body, false);
        let (start, join) = if self.largest {
            let join =
                format!("const double value = ({body}); if (value > result) result = value;");
            ("-1e308", join)
        } else {
            ("0", format!("result += ({body});"))
        };
        format!(
            "extern \"C\" __global__ void {name}(unsigned long long n, unsigned long long stride, int chains{arguments}, double* partials) {{\n\
             if (THREAD >= {p}) return;\n\
             for_each_chain(chain, chains) {{\n\
             double result = {start};\n\
             for (unsigned long long element = THREAD; element < n; element += {p}) {{\n\
             const unsigned long long at = chain * stride + element;\n\
             {load}\n{join}\n}}\n\
             partials[chain * {p} + THREAD] = result;\n}} }}\n",
            name = self.name,
            p = Self::PARTIALS,
        )
    }
}

/// Rust's words for C: `let` declares a constant, and literals are of single precision in kernels.
fn in_c(body: &str, single: bool) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        let word = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .unwrap_or(rest.len());
        if word == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (token, after) = rest.split_at(word);
        match token {
            "let" => {
                out += if single {
                    "const float"
                } else {
                    "const double"
                }
            }
            number if c.is_ascii_digit() && single => {
                out += number;
                out += "f";
            }
            other => out += other,
        }
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    kernel! {
        /// A kernel with everything.
        TRIAL = trial(x, y; g; eta; k) {
            let up = max(g, 0.0);
            x = x + k * up + 0.5 * eta;
            y = choose(x > 1.0, root(x), y);
        }
    }

    reduction! {
        /// A sum.
        NORM = sum norm(a, b) { a * b }
    }

    reduction! {
        /// A maximum.
        LARGEST = largest most(a) { a * 2.0 }
    }

    #[test]
    fn a_kernel_does_what_its_body_says_also_in_pieces() {
        let n = 150;
        let g: Vec<f32> = (0..n).map(|i| i as f32 / 20.0 - 3.0).collect();
        let stream = Stream::new(3, Purpose::Noise, 0, 7);
        let (mut x, mut y) = (vec![0.0; n], vec![-1.0; n]);
        TRIAL.run(&mut [&mut x, &mut y], &[&g], &[0.7], &stream);
        let mut eta = vec![0.0; n];
        crate::normal::fill_normal(&stream, &mut eta);
        for i in 0..n {
            let expected = 0.7 * g[i].max(0.0) + 0.5 * eta[i];
            assert_eq!(x[i], expected);
            assert_eq!(
                y[i],
                if expected > 1.0 {
                    expected.sqrt()
                } else {
                    -1.0
                }
            );
        }
        let (mut u, mut v) = (vec![0.0; n], vec![-1.0; n]);
        let ((u0, u1), (v0, v1)) = (u.split_at_mut(64), v.split_at_mut(64));
        (TRIAL.cpu)(&mut [u1, v1], &[&g[64..]], &[0.7], &stream, 64);
        (TRIAL.cpu)(&mut [u0, v0], &[&g[..64]], &[0.7], &stream, 0);
        assert_eq!((u, v), (x, y));
        assert_eq!((NORM.cpu)(&[&[1.0, 2.0], &[3.0, 0.25]]), 3.5);
        assert_eq!((LARGEST.cpu)(&[&[1.0, 4.0, f32::NAN, -7.0]]), 8.0);
    }

    #[test]
    fn the_cuda_source_says_the_same() {
        let c = TRIAL.cuda();
        assert!(c.contains("const float up = max(g, 0.0f)"), "{c}");
        assert!(c.contains("0.5f * eta"), "{c}");
        assert!(NORM.cuda().contains("result += (a * b)"));
    }
}
