//! The devices of this machine, and what tests do with them: copies, launches, comparisons.

use crate::emulated::{Emulated, names};
use ergodic::kernels::device::{Arg, Device, Pointer};
use ergodic::kernels::normal::fill_normal;
use ergodic::rng::{Purpose, Stream};

/// A test must not pass by finding nothing to test, where the whole suite is asked for.
pub fn skip(what: &str) {
    let all = std::env::var("ERGODIC_TEST_ALL").is_ok_and(|v| v == "1");
    assert!(!all, "ERGODIC_TEST_ALL=1, but {what}");
    println!("SKIP: {what}");
}

/// The devices of this machine, with all kernels of a source.
pub fn devices(source: &str) -> Vec<Bench> {
    let mut all: Vec<Box<dyn Device>> = Vec::new();
    match Emulated::new() {
        Some(device) => all.push(Box::new(device)),
        None => skip("no C++ compiler found"),
    }
    #[cfg(feature = "cuda")]
    match ergodic::kernels::device::cuda::Cuda::open(0, Default::default()) {
        Ok(device) => all.push(Box::new(device)),
        // Not `skip`: a GPU cannot be installed.
        Err(e) => println!("SKIP: no GPU: {e:#}"),
    }
    let names = names(source);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    if !names.is_empty() {
        all.iter().for_each(|d| d.compile(source, &names).unwrap());
    }
    all.into_iter().map(Bench).collect()
}

/// A device, with the copies that a test needs.
pub struct Bench(pub Box<dyn Device>);

/// Numbers without padding.
pub trait Plain: Copy + Default {}
impl Plain for i8 {}
impl Plain for u8 {}
impl Plain for u16 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for f32 {}
impl Plain for f64 {}

impl Bench {
    pub fn put<T: Plain>(&self, data: &[T]) -> Pointer {
        let at = self.0.allocate(size_of_val(data)).unwrap();
        // SAFETY: numbers are bytes.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) };
        self.0.upload(bytes, at).unwrap();
        at
    }

    /// Room for numbers, 77 before anything is written.
    pub fn room<T: Plain + From<u8>>(&self, n: usize) -> Pointer {
        self.put(&vec![T::from(77); n])
    }

    pub fn get<T: Plain>(&self, at: Pointer, n: usize) -> Vec<T> {
        let mut out = vec![T::default(); n];
        // SAFETY: numbers are bytes, and any bytes are a number.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), size_of_val(&out[..]))
        };
        self.0.download(at, bytes).unwrap();
        out
    }

    pub fn streams(&self, chains: usize) -> (Vec<Stream>, Pointer) {
        let all: Vec<_> = (0..chains)
            .map(|c| Stream::new(5 << 40 | 3, Purpose::Noise, c, 1 << 35 | 7).sub_stream(9))
            .collect();
        let words: Vec<u32> = all
            .iter()
            .flat_map(|s| s.key.into_iter().chain(s.high))
            .collect();
        (all, self.put(&words))
    }

    pub fn launch(&self, name: &str, width: usize, chains: usize, args: &[A]) {
        let args: Vec<_> = args.iter().map(|a| a.0).collect();
        self.0.launch(name, width, chains, &args).unwrap();
    }
}

/// Arguments, written short.
pub struct A(pub Arg);
impl From<Pointer> for A {
    fn from(p: Pointer) -> A {
        A(Arg::Pointer(p))
    }
}
impl From<usize> for A {
    fn from(n: usize) -> A {
        A(Arg::Int(n as i32))
    }
}
impl From<i64> for A {
    fn from(n: i64) -> A {
        A(Arg::Long(n as u64))
    }
}
impl From<f64> for A {
    fn from(x: f64) -> A {
        A(Arg::Long(x.to_bits()))
    }
}
impl From<f32> for A {
    fn from(x: f32) -> A {
        A(Arg::Float(x))
    }
}
macro_rules! args {
    ($($a:expr),* $(,)?) => { &[$($crate::device::bench::A::from($a)),*] };
}
pub(crate) use args;

/// Numbers of many sizes and both signs; with `special`, also NaN, infinities and zeros.
pub fn numbers(n: usize, seed: u64, special: bool) -> Vec<f32> {
    let mut out = vec![0.0; n];
    fill_normal(&Stream::new(seed, Purpose::Dataset, 0, 0), &mut out);
    for (i, x) in out.iter_mut().enumerate() {
        *x *= [0.1, 1.0, 3.0, 20.0][i / 3 % 4];
        if special && i % 7 == 5 {
            *x = [
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                0.0,
                -0.0,
                1e-40,
                1e30,
            ][i / 7 % 7];
        }
    }
    out
}

/// Equal to the last bit; only which NaN it is does not count.
#[track_caller]
pub fn same(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(
            a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            "{what}: element {i} is {a:e} and not {b:e}"
        );
    }
}

#[track_caller]
pub fn near(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let close =
            (a - b).abs() <= tolerance * b.abs().max(1.0) || a == b || a.is_nan() && b.is_nan();
        assert!(close, "{what}: element {i} is {a:e} and not {b:e}");
    }
}

pub fn doubles(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| *x as f64).collect()
}
