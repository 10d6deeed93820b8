//! Accelerators: what a device must offer so that all samplers run on it.
//!
//! A device allocates memory, compiles kernels from CUDA C at run time, launches them and multiplies matrices. Everything else
//! (which kernels, in which order) is in `engine::batched`, and is the same for every device. The kernels are plain C without
//! barriers or shared memory: each thread computes its elements alone. So a test can compile them with the C compiler of any
//! machine and hold the whole path to the CPU's numbers without a GPU.

#[cfg(feature = "cuda")]
pub mod cuda;

use crate::Result;
use anyhow::bail;

/// CUDA C that every kernel of a sampler begins with: random streams, loops over chains and elements.
pub const PRELUDE: &str = include_str!("prelude.cu");

/// CUDA C of the kernels that do not come from samplers, behind [`PRELUDE`].
pub const STATIC: &str = concat!(
    include_str!("prelude.cu"),
    include_str!("losses.cu"),
    include_str!("network.cu"),
    include_str!("program.cu")
);

/// CUDA C that generated kernels of compiled graphs begin with: [`PRELUDE`] and the functions of elements.
pub const ELEMENTS: &str = concat!(include_str!("prelude.cu"), include_str!("elements.cu"));

/// What [`ELEMENTS`] lacks of the functions that losses use.
pub const LOSSES: &str = include_str!("losses.cu");

/// An address in the device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer(pub u64);

impl Pointer {
    /// No memory.
    pub const NULL: Pointer = Pointer(0);

    /// The address so many bytes further on.
    pub fn offset(self, bytes: usize) -> Pointer {
        Pointer(self.0 + bytes as u64)
    }
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Arg {
    /// Any pointer.
    Pointer(Pointer),
    /// `int`
    Int(i32),
    /// `unsigned long long`
    Long(u64),
    /// `float`
    Float(f32),
}

/// A factor of a batched product.
#[derive(Debug, Clone, Copy)]
pub struct Factor {
    /// The first matrix, row-major.
    pub data: Pointer,
    /// Floats from one matrix of the batch to the next.
    pub stride: usize,
    /// Whether it is stored transposed.
    pub transposed: bool,
}

impl Factor {
    /// Matrices as they are stored.
    pub fn new(data: Pointer, stride: usize) -> Self {
        Self {
            data,
            stride,
            transposed: false,
        }
    }

    /// Their transposes.
    pub fn transposed(self) -> Self {
        Self {
            transposed: !self.transposed,
            ..self
        }
    }
}

/// `out = a·b` (or `out += a·b`) for every matrix of a batch: `[m, k]·[k, n]`, all row-major and without gaps.
///
/// Of a batch that is `listed`, the data of factors and result are lists of addresses on the device, a 64-bit number each, and strides do not count.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
    /// Left factor.
    pub a: Factor,
    /// Right factor.
    pub b: Factor,
    /// Result; `transposed` must be false.
    pub out: Factor,
    /// Matrices in the batch.
    pub batch: usize,
    /// Whether to add to what `out` holds.
    pub add: bool,
    /// Whether there is a list of addresses in place of equal distances.
    pub listed: bool,
}

/// What the factors of products are rounded to; sums are in single precision always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Single precision.
    #[default]
    Full,
    /// NVIDIA's TF32: 10 bits behind the leading one.
    Tf32,
    /// bfloat16: 7 bits behind the leading one.
    Bf16,
}

impl Precision {
    /// By its name in `--device`.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "tf32" => Some(Self::Tf32),
            "bf16" => Some(Self::Bf16),
            _ => None,
        }
    }

    /// Its name there, and how many bits behind the leading one factors have; none in single precision.
    pub fn rounding(self) -> Option<(&'static str, u32)> {
        match self {
            Self::Full => None,
            Self::Tf32 => Some(("tf32", 10)),
            Self::Bf16 => Some(("bf16", 7)),
        }
    }
}

/// Why a device is none of candle's.
pub const NO_CANDLE: &str = "a build with `--features candle-cuda`, which needs nvcc of the CUDA toolkit, computes it there through candle";

/// An accelerator. Calls are queued in order; only [`Device::download`] waits.
pub trait Device: Send {
    /// One line for `ergodic doctor` and run.json.
    fn describe(&self) -> String;

    /// Bytes free.
    fn free_memory(&self) -> Result<u64>;

    /// Allocate, zeroed.
    fn allocate(&self, bytes: usize) -> Result<Pointer>;

    /// Give memory back.
    fn release(&self, memory: Pointer);

    /// Copy to the device. The bytes may be changed after the call.
    fn upload(&self, bytes: &[u8], to: Pointer) -> Result<()>;

    /// Copy from the device, after everything that was queued.
    fn download(&self, from: Pointer, bytes: &mut [u8]) -> Result<()>;

    /// Copy within the device.
    fn copy(&self, from: Pointer, to: Pointer, bytes: usize) -> Result<()>;

    /// Compile `extern "C" __global__` kernels of this CUDA C source; the names can then be launched. An error shows the compiler's log.
    fn compile(&self, source: &str, names: &[&str]) -> Result<()>;

    /// Run a kernel with at least `width` threads in x (blocks of 256), for `chains` rows in y (at most 65,535 blocks; kernels loop over the rest).
    fn launch(&self, name: &str, width: usize, chains: usize, args: &[Arg]) -> Result<()>;

    /// Multiply, in full single precision unless the device was opened with another.
    fn multiply(&self, product: &Product) -> Result<()>;

    /// The same device as candle opens it, for models that have no kernels.
    ///
    /// # Errors
    /// If this build has no such device.
    fn candle(&self) -> Result<candle_core::Device> {
        bail!(NO_CANDLE)
    }
}
