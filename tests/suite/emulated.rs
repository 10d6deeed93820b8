//! An accelerator that is this machine: the C++ compiler of the system compiles the kernels, and loops run their blocks and threads.
//!
//! It is stricter than a GPU. A kernel that writes past the end of an allocation, gets a pointer to nowhere or an argument of another
//! type than it declares, or forgets that a grid may have fewer rows than there are chains, fails the test.

use anyhow::{Context, bail, ensure};
use ergodic::error::Result;
use ergodic::kernels::device::{Arg, Device, Factor, NO_CANDLE, Pointer, Precision, Product};
use ergodic::kernels::gemm::{Matrix, multiply};
use libloading::Library;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a CUDA compiler has built in.
const SHIM: &str = r#"
#include <math.h>
#define __global__
#define __device__
struct Index { unsigned x, y, z; };
static Index blockIdx, threadIdx, blockDim, gridDim;
#line 1 "kernels.cu"
"#;

/// Every multiplication and addition is rounded by itself, as with nvrtc's --fmad=false.
const FLAGS: [&str; 8] = [
    "-xc++",
    "-std=c++17",
    "-O1",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-shared",
    "-fPIC",
];

/// Threads of a block.
const BLOCK: usize = 256;
/// Rows of a grid at most; fewer than the chains of a test, so that kernels must loop over the rest.
const ROWS: usize = 2;
/// Bytes with a pattern before and after each allocation.
const MARGIN: usize = 64;
const PATTERN: u8 = 0xa5;

/// Sources that were compiled, in order.
pub type Sources = Arc<Mutex<Vec<String>>>;

/// The emulated accelerator.
pub struct Emulated {
    compiler: &'static str,
    /// Address and size of what is allocated.
    memory: RefCell<BTreeMap<u64, usize>>,
    kernels: RefCell<HashMap<String, Kernel>>,
    sources: Sources,
    precision: Precision,
    candle: bool,
}

/// Blocks in x, rows of blocks, threads of a block, addresses of the arguments.
type Run = unsafe extern "C" fn(u32, u32, u32, *const *const c_void);

struct Kernel {
    parameters: Vec<Parameter>,
    run: Run,
    /// Has the code of `run`.
    _library: Arc<Library>,
}

#[derive(Debug, Clone, PartialEq)]
struct Parameter {
    /// Its type in C.
    c: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Pointer,
    Int,
    Long,
    Float,
}

impl Emulated {
    /// None without a C++ compiler.
    pub fn new() -> Option<Self> {
        let works = |c: &&str| {
            let output = Command::new(c).arg("--version").output();
            output.is_ok_and(|o| o.status.success())
        };
        Some(Self {
            compiler: ["c++", "g++", "clang++"].into_iter().find(works)?,
            memory: RefCell::default(),
            kernels: RefCell::default(),
            sources: Sources::default(),
            precision: Precision::Full,
            candle: false,
        })
    }

    /// The same; every source that is compiled is added to a list.
    pub fn listing(sources: &Sources) -> Option<Self> {
        let mut device = Self::new()?;
        device.sources = sources.clone();
        Some(device)
    }

    /// The same; the factors of products are rounded.
    pub fn rounding(precision: Precision) -> Option<Self> {
        let mut device = Self::new()?;
        device.precision = precision;
        Some(device)
    }

    /// The same; candle's CPU device is in the place of its own.
    pub fn with_candle() -> Option<Self> {
        let mut device = Self::new()?;
        device.candle = true;
        Some(device)
    }

    /// Panics unless these bytes are within one allocation; no bytes may also be nowhere.
    fn check(&self, what: &str, at: Pointer, bytes: usize) {
        let memory = self.memory.borrow();
        let inside = memory
            .range(..=at.0)
            .next_back()
            .is_some_and(|(start, size)| at.0 + bytes as u64 <= start + *size as u64);
        assert!(
            inside || (at, bytes) == (Pointer::NULL, 0),
            "{what}: {bytes} bytes at {:#x} are not within an allocation",
            at.0
        );
    }

    /// Panics if something was written just before or after an allocation.
    fn check_margins(&self, after: &str) {
        for (start, size) in &*self.memory.borrow() {
            for at in [start - MARGIN as u64, start + *size as u64] {
                // SAFETY: `allocate` made these margins.
                let margin = unsafe { std::slice::from_raw_parts(at as *const u8, MARGIN) };
                assert!(
                    margin.iter().all(|b| *b == PATTERN),
                    "{after} wrote outside the {size} bytes at {start:#x}"
                );
            }
        }
    }

    /// The matrices of a factor, after checking that they are there.
    fn matrices(&self, p: &Product, f: &Factor, rows: usize, columns: usize) -> Vec<*mut f32> {
        let batch = p.batch;
        if p.listed {
            self.check("a list of matrices", f.data, 8 * batch);
            // SAFETY: checked.
            let list = unsafe { std::slice::from_raw_parts(f.data.0 as *const u64, batch) };
            let each = list.iter().map(|at| {
                self.check("multiply", Pointer(*at), 4 * rows * columns);
                *at as *mut f32
            });
            return each.collect();
        }
        let at = |i: usize| f.data.offset(4 * i * f.stride);
        self.check(
            "multiply",
            f.data,
            4 * ((batch - 1) * f.stride + rows * columns),
        );
        (0..batch).map(|i| at(i).0 as *mut f32).collect()
    }

    /// The compiled library of a source, from an earlier run if there is one.
    fn build(&self, source: &str) -> Result<PathBuf> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let mut hash = DefaultHasher::new();
        (self.compiler, FLAGS, source).hash(&mut hash);
        // Unit tests of the kernels have no folder of their own.
        let folder = option_env!("CARGO_TARGET_TMPDIR");
        let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
        let library = folder.join(format!("emulated-{:016x}.so", hash.finish()));
        if !library.exists() {
            let own = format!(
                "emulated-{}-built-{}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            let own = |end: &str| folder.join(format!("{own}.{end}"));
            let (input, output) = (own("cpp"), own("so"));
            std::fs::write(&input, source)?;
            let mut command = Command::new(self.compiler);
            let result = command
                .args(FLAGS)
                .arg(&input)
                .arg("-o")
                .arg(&output)
                .output()?;
            std::fs::remove_file(&input)?;
            ensure!(
                result.status.success(),
                "the kernels do not compile:\n{}",
                String::from_utf8_lossy(&result.stderr)
            );
            std::fs::rename(&output, &library)?;
        }
        Ok(library)
    }
}

/// To the nearest number with so many bits, the even one of two.
fn rounded(x: f32, precision: Precision) -> f32 {
    match precision.rounding() {
        Some((_, bits)) if x.is_finite() => {
            let dropped = 23 - bits;
            let odd = x.to_bits() >> dropped & 1;
            let up = x.to_bits() + (1 << (dropped - 1)) - 1 + odd;
            f32::from_bits(up >> dropped << dropped)
        }
        _ => x,
    }
}

#[test]
fn rounding_is_that_of_ieee_754() {
    for (precision, x, nearest) in [
        (Precision::Full, 1.000_000_1, 1.000_000_1),
        (Precision::Bf16, 1.0 + 1.0 / 256.0, 1.0),
        (Precision::Bf16, 1.0 + 3.0 / 256.0, 1.0 + 4.0 / 256.0),
        (Precision::Bf16, -1.005, -1.007_812_5),
        (Precision::Tf32, 1.0 + 1.0 / 2048.0, 1.0),
        (Precision::Tf32, 1.0 + 1.1 / 2048.0, 1.0 + 1.0 / 1024.0),
        (Precision::Bf16, f32::NEG_INFINITY, f32::NEG_INFINITY),
    ] {
        assert_eq!(rounded(x, precision), nearest, "{x} in {precision:?}");
    }
}

/// The names of the kernels in a source.
pub fn names(source: &str) -> Vec<String> {
    let kernels = kernels(source).unwrap_or_else(|e| panic!("{e:#}"));
    kernels.into_iter().map(|(name, _)| name).collect()
}

/// Name and parameters of the kernels in a source.
fn kernels(source: &str) -> Result<Vec<(String, Vec<Parameter>)>> {
    let signature = |text: &str| {
        let (name, rest) = text.trim_start().strip_prefix("void")?.split_once('(')?;
        let (parameters, _) = rest.split_once(')')?;
        Some((name.trim().to_string(), parameters.to_string()))
    };
    let mut out = Vec::new();
    for text in source.split("__global__").skip(1) {
        let (name, list) = signature(text).with_context(|| format!("no kernel: '{text:.60}'"))?;
        let parameters = list.split(',').map(parameter).collect::<Result<_>>();
        out.push((name.clone(), parameters.with_context(|| name)?));
    }
    Ok(out)
}

fn parameter(text: &str) -> Result<Parameter> {
    if let Some((c, _)) = text.rsplit_once('*') {
        let (c, kind) = (format!("{}*", c.trim()), Kind::Pointer);
        return Ok(Parameter { c, kind });
    }
    let words: Vec<_> = text.split_whitespace().filter(|w| *w != "const").collect();
    let c = words[..words.len().saturating_sub(1)].join(" ");
    let kind = match &*c {
        "int" | "unsigned" | "unsigned int" => Kind::Int,
        "long long" | "unsigned long long" | "double" => Kind::Long,
        "float" => Kind::Float,
        _ => bail!("parameter '{}' has a type that no Arg has", text.trim()),
    };
    Ok(Parameter { c, kind })
}

/// A function that runs all threads of a grid.
fn runner(name: &str, parameters: &[Parameter]) -> String {
    let arguments: Vec<_> = parameters
        .iter()
        .enumerate()
        .map(|(i, p)| format!("*({}*)args[{i}]", p.c))
        .collect();
    format!(
        "extern \"C\" __attribute__((visibility(\"default\")))\n\
         void run_{name}(unsigned blocks, unsigned rows, unsigned threads, void** args) {{\n\
         gridDim = {{blocks, rows, 1}}; blockDim = {{threads, 1, 1}};\n\
         for (unsigned y = 0; y < rows; y++) for (unsigned b = 0; b < blocks; b++) for (unsigned t = 0; t < threads; t++) {{\n\
         blockIdx = {{b, y, 0}}; threadIdx = {{t, 0, 0}};\n\
         {name}({});\n}} }}\n",
        arguments.join(", ")
    )
}

impl Device for Emulated {
    fn describe(&self) -> String {
        format!("emulated, kernels compiled by {}", self.compiler)
    }

    fn free_memory(&self) -> Result<u64> {
        let used: usize = self.memory.borrow().values().sum();
        Ok((8u64 << 30).saturating_sub(used as u64))
    }

    fn allocate(&self, bytes: usize) -> Result<Pointer> {
        let layout = Layout::from_size_align(bytes + 2 * MARGIN, MARGIN)?;
        // SAFETY: the size is not 0, and what is written is within it.
        let start = unsafe {
            let base = alloc_zeroed(layout);
            if base.is_null() {
                handle_alloc_error(layout);
            }
            base.write_bytes(PATTERN, MARGIN);
            base.add(MARGIN + bytes).write_bytes(PATTERN, MARGIN);
            base.add(MARGIN) as u64
        };
        self.memory.borrow_mut().insert(start, bytes);
        Ok(Pointer(start))
    }

    fn release(&self, memory: Pointer) {
        let found = self.memory.borrow_mut().remove(&memory.0);
        let bytes =
            found.unwrap_or_else(|| panic!("release: nothing is allocated at {:#x}", memory.0));
        // SAFETY: `allocate` made it with this layout, and it is forgotten now.
        unsafe {
            let layout = Layout::from_size_align_unchecked(bytes + 2 * MARGIN, MARGIN);
            dealloc((memory.0 as *mut u8).sub(MARGIN), layout);
        }
    }

    fn upload(&self, bytes: &[u8], to: Pointer) -> Result<()> {
        self.check("upload", to, bytes.len());
        // SAFETY: checked.
        unsafe { std::ptr::copy(bytes.as_ptr(), to.0 as *mut u8, bytes.len()) };
        Ok(())
    }

    fn download(&self, from: Pointer, bytes: &mut [u8]) -> Result<()> {
        self.check("download", from, bytes.len());
        // SAFETY: checked.
        unsafe { std::ptr::copy(from.0 as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn copy(&self, from: Pointer, to: Pointer, bytes: usize) -> Result<()> {
        self.check("copy from", from, bytes);
        self.check("copy to", to, bytes);
        // SAFETY: checked.
        unsafe { std::ptr::copy(from.0 as *const u8, to.0 as *mut u8, bytes) };
        Ok(())
    }

    fn compile(&self, source: &str, names: &[&str]) -> Result<()> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let found = kernels(source)?;
        let runners: String = found.iter().map(|(name, p)| runner(name, p)).collect();
        let built = self.build(&format!("{SHIM}{source}\n{runners}"))?;
        // A copy: a library that is loaded twice has its variables once, and tests run side by side.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let copy = built.with_file_name(format!("emulated-{}-{count}.so", std::process::id()));
        std::fs::copy(&built, &copy)?;
        // SAFETY: the library is ours and runs nothing when it is loaded.
        let library = unsafe { Library::new(&copy) };
        std::fs::remove_file(&copy)?;
        let library = Arc::new(library?);
        for name in names {
            let (_, parameters) = found
                .iter()
                .find(|(n, _)| n == name)
                .with_context(|| format!("no kernel '{name}'"))?;
            // SAFETY: `runner` wrote it with this type.
            let run = unsafe { *library.get::<Run>(format!("run_{name}").as_str())? };
            let (parameters, _library) = (parameters.clone(), library.clone());
            let kernel = Kernel {
                parameters,
                run,
                _library,
            };
            self.kernels.borrow_mut().insert(name.to_string(), kernel);
        }
        self.sources.lock().unwrap().push(source.to_string());
        Ok(())
    }

    fn launch(&self, name: &str, width: usize, chains: usize, args: &[Arg]) -> Result<()> {
        let kernels = self.kernels.borrow();
        let kernel = kernels
            .get(name)
            .with_context(|| format!("kernel '{name}' is not compiled"))?;
        assert_eq!(args.len(), kernel.parameters.len(), "arguments of '{name}'");
        let values: Vec<u64> = args
            .iter()
            .zip(&kernel.parameters)
            .enumerate()
            .map(|(i, (arg, p))| {
                // The bytes of a shorter argument come first, on little-endian machines.
                let (kind, value) = match *arg {
                    Arg::Pointer(p) => (Kind::Pointer, p.0),
                    Arg::Int(x) => (Kind::Int, x as u32 as u64),
                    Arg::Long(x) => (Kind::Long, x),
                    Arg::Float(x) => (Kind::Float, x.to_bits() as u64),
                };
                assert_eq!(kind, p.kind, "argument {i} of '{name}', which is a {}", p.c);
                if kind == Kind::Pointer {
                    self.check(&format!("argument {i} of '{name}'"), Pointer(value), 0);
                }
                value
            })
            .collect();
        let addresses: Vec<_> = values
            .iter()
            .map(|v| v as *const u64 as *const c_void)
            .collect();
        // SAFETY: number and kinds of the arguments are those of the kernel; what it writes outside of an allocation is found below.
        unsafe {
            (kernel.run)(
                width.div_ceil(BLOCK) as u32,
                chains.min(ROWS) as u32,
                BLOCK as u32,
                addresses.as_ptr(),
            );
        }
        self.check_margins(&format!("kernel '{name}'"));
        Ok(())
    }

    fn multiply(&self, p: &Product) -> Result<()> {
        if p.batch == 0 {
            return Ok(());
        }
        assert!(!p.out.transposed, "a product has a row-major result");
        // SAFETY, for both: `matrices` has checked them, and nobody else has the result while it is written.
        let factor = |f: Factor, rows, columns| {
            let all = self.matrices(p, &f, rows, columns);
            let data = |at: *mut f32| unsafe { std::slice::from_raw_parts(at, rows * columns) };
            let round = |at| {
                let each = data(at).iter().map(|x| rounded(*x, self.precision));
                each.collect()
            };
            all.into_iter().map(round).collect::<Vec<Vec<f32>>>()
        };
        let matrix = |data, f: Factor, rows, columns| match f.transposed {
            true => Matrix::new(data, columns, rows).transposed(),
            false => Matrix::new(data, rows, columns),
        };
        let out = self.matrices(p, &p.out, p.m, p.n);
        let (left, right) = (factor(p.a, p.m, p.k), factor(p.b, p.k, p.n));
        for ((a, b), out) in left.iter().zip(&right).zip(out) {
            let (a, b) = (matrix(a, p.a, p.m, p.k), matrix(b, p.b, p.k, p.n));
            let out = unsafe { std::slice::from_raw_parts_mut(out, p.m * p.n) };
            multiply(out, a, b, p.add);
        }
        Ok(())
    }

    fn candle(&self) -> Result<candle_core::Device> {
        match self.candle {
            true => Ok(candle_core::Device::Cpu),
            false => bail!(NO_CANDLE),
        }
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let all: Vec<_> = self.memory.borrow().keys().copied().collect();
        all.into_iter().for_each(|at| self.release(Pointer(at)));
    }
}
