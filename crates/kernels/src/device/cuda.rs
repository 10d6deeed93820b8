//! An NVIDIA GPU, by the CUDA driver, cuBLAS and nvrtc.
//!
//! Everything is queued on one stream. Kernels are compiled for the very GPU at hand, without fused multiply–add, so that they round
//! as the CPU does.

use super::{Arg, Device, Factor, Pointer, Precision, Product};
use crate::Result;
use anyhow::{Context, anyhow, bail, ensure};
use cudarc::cublas::{CudaBlas, sys as blas};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg, result, sys,
};
use cudarc::nvrtc::{Ptx, result as nvrtc, sys as nvrtc_sys};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::Arc;

/// Threads of a block.
const BLOCK: usize = 256;
/// Rows of a grid at most, by CUDA's rules.
const ROWS: usize = 65_535;

/// An NVIDIA GPU. What it holds is released when it is dropped.
pub struct Cuda {
    description: String,
    /// Its `sm_…` number, for the compiler.
    architecture: String,
    blas: CudaBlas,
    precision: Precision,
    kernels: RefCell<HashMap<String, CudaFunction>>,
    /// What is compiled already.
    sources: RefCell<HashSet<String>>,
    /// Address and size of what is allocated.
    memory: RefCell<HashMap<u64, usize>>,
    stream: Arc<CudaStream>,
}

impl Cuda {
    /// The GPU of that number, counted as CUDA does.
    pub fn open(ordinal: usize, precision: Precision) -> Result<Cuda> {
        // The libraries are loaded now, unless candle has linked them; cudarc panics where one is missing.
        #[cfg(not(feature = "candle-cuda"))]
        require_libraries()?;
        let count = CudaContext::device_count().map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => anyhow!("this machine has no NVIDIA GPU that CUDA can use (see `nvidia-smi`); use the CPU"),
            sys::CUresult::CUDA_ERROR_STUB_LIBRARY => anyhow!("the libcuda that is found first is the toolkit's stub, for linking only; take its folder, `stubs`, out of LD_LIBRARY_PATH"),
            _ => anyhow!("the NVIDIA driver does not start: {e}; see `nvidia-smi`, or use the CPU"),
        })?;
        ensure!(
            ordinal < count as usize,
            "there is no CUDA device {ordinal}; there are {}",
            list(count)
        );
        let open = || -> Result<Cuda> {
            let context = CudaContext::new(ordinal)?;
            let stream = context.new_stream()?;
            let handle = CudaBlas::new(stream.clone())?;
            // SAFETY: the handle has just been made.
            unsafe {
                // Single precision throughout, unless a product asks for less.
                blas::cublasSetMathMode(*handle.handle(), blas::cublasMath_t::CUBLAS_DEFAULT_MATH)
                    .result()?;
            }
            let (major, minor) = context.compute_capability()?;
            Ok(Cuda {
                description: format!(
                    "CUDA device {ordinal}: {}, {}, compute capability {major}.{minor}, driver for CUDA {}{}",
                    context.name()?,
                    gib(context.total_mem()?),
                    driver_version()?,
                    match precision {
                        Precision::Full => "",
                        Precision::Tf32 => ", products of TF32",
                        Precision::Bf16 => ", products of bfloat16",
                    }
                ),
                precision,
                architecture: format!("sm_{major}{minor}"),
                blas: handle,
                kernels: RefCell::default(),
                sources: RefCell::default(),
                memory: RefCell::default(),
                stream,
            })
        };
        open().with_context(|| format!("CUDA device {ordinal} does not open"))
    }

    /// CUDA's calls act on the GPU that the calling thread has chosen.
    fn choose(&self) -> Result<()> {
        let chosen = self.stream.context().bind_to_thread();
        chosen.with_context(|| format!("{} does not answer", self.description))
    }

    /// Why an allocation failed.
    fn no_memory(&self, bytes: usize, e: DriverError) -> anyhow::Error {
        if e.0 != sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return anyhow!("{}: cannot allocate {}: {e}", self.description, gib(bytes));
        }
        let free = self.stream.context().mem_get_info().map_or(0, |m| m.0);
        let held: usize = self.memory.borrow().values().sum();
        anyhow!(
            "{}: no room for {}: {} are free and ergodic holds {}; use fewer chains or smaller batches, or stop other programs on the GPU",
            self.description,
            gib(bytes),
            gib(free),
            gib(held)
        )
    }

    /// The machine code of a source.
    fn build(&self, source: &str) -> Result<Vec<u8>> {
        let source = CString::new(source).context("a kernel's source has a zero byte")?;
        let program = Program(nvrtc::create_program(&source, Some(c"kernels.cu"))?);
        let options = [
            "--fmad=false".to_string(),
            format!("--gpu-architecture={}", self.architecture),
        ];
        // SAFETY, here and below: the program lives until the end of this function.
        if let Err(e) = unsafe { nvrtc::compile_program(program.0, &options) } {
            let log = unsafe { nvrtc::get_program_log(program.0) }.unwrap_or_default();
            let log: Vec<u8> = log
                .into_iter()
                .map(|c| c as u8)
                .filter(|c| *c != 0)
                .collect();
            bail!(
                "nvrtc cannot compile the kernels for {}: {e}\n{}",
                self.architecture,
                String::from_utf8_lossy(&log)
            );
        }
        let mut size = 0;
        unsafe { nvrtc_sys::nvrtcGetCUBINSize(program.0, &mut size) }.result()?;
        let mut code = vec![0; size];
        unsafe { nvrtc_sys::nvrtcGetCUBIN(program.0, code.as_mut_ptr().cast()) }.result()?;
        Ok(code)
    }
}

/// Load the libraries of CUDA; an error names the one that is missing.
#[cfg(not(feature = "candle-cuda"))]
fn require_libraries() -> Result<()> {
    // SAFETY: loading a library runs its initialisers, which is what any use of CUDA does.
    let present = unsafe {
        [
            ("the NVIDIA driver (libcuda)", sys::is_culib_present()),
            ("nvrtc of CUDA 13", nvrtc_sys::is_culib_present()),
            ("cuBLAS of CUDA 13", blas::is_culib_present()),
        ]
    };
    for (library, found) in present {
        ensure!(
            found,
            "{library} is not on this machine or not where libraries are looked for (LD_LIBRARY_PATH); use the CPU"
        );
    }
    Ok(())
}

/// A program of nvrtc.
struct Program(nvrtc_sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was made by `create_program`, and nobody has it any more. An error could only be that it is unknown.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

fn gib(bytes: usize) -> String {
    format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// The devices of this machine, for a message.
fn list(count: i32) -> String {
    let name = |i| result::device::get(i).and_then(result::device::get_name);
    let names = (0..count).map(|i| format!("{i} ({})", name(i).unwrap_or_else(|e| e.to_string())));
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

fn driver_version() -> Result<String> {
    let mut version = 0;
    // SAFETY: it writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
}

impl Device for Cuda {
    fn describe(&self) -> String {
        self.description.clone()
    }

    fn free_memory(&self) -> Result<u64> {
        let memory = self.stream.context().mem_get_info();
        Ok(memory
            .with_context(|| format!("{} does not answer", self.description))?
            .0 as u64)
    }

    fn allocate(&self, bytes: usize) -> Result<Pointer> {
        self.choose()?;
        // SAFETY: nothing but our kernels reads the memory, after it is filled; CUDA refuses to allocate nothing.
        unsafe {
            let start = result::malloc_sync(bytes.max(1)).map_err(|e| self.no_memory(bytes, e))?;
            self.memory.borrow_mut().insert(start, bytes);
            let filled = result::memset_d8_async(start, 0, bytes.max(1), self.stream.cu_stream());
            filled.context("filling the GPU's memory with zeros")?;
            Ok(Pointer(start))
        }
    }

    fn release(&self, memory: Pointer) {
        if self.memory.borrow_mut().remove(&memory.0).is_some() && self.choose().is_ok() {
            // Queued kernels may still use it. An error of theirs is reported by the next call that can.
            let _ = self.stream.synchronize();
            // SAFETY: it is ours, and forgotten now.
            let _ = unsafe { result::free_sync(memory.0) };
        }
    }

    fn upload(&self, bytes: &[u8], to: Pointer) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.choose()?;
        // SAFETY: the caller's addresses. From ordinary memory, the bytes are taken before the call returns.
        let copied = unsafe { result::memcpy_htod_async(to.0, bytes, self.stream.cu_stream()) };
        copied.with_context(|| format!("copying {} bytes to the GPU", bytes.len()))
    }

    fn download(&self, from: Pointer, bytes: &mut [u8]) -> Result<()> {
        self.choose()?;
        if !bytes.is_empty() {
            // SAFETY: the caller's addresses, and the bytes are borrowed until they have arrived.
            let copied =
                unsafe { result::memcpy_dtoh_async(bytes, from.0, self.stream.cu_stream()) };
            copied.with_context(|| format!("copying {} bytes from the GPU", bytes.len()))?;
        }
        let done = self.stream.synchronize();
        done.with_context(|| format!("{}: work that was queued earlier failed", self.description))
    }

    fn copy(&self, from: Pointer, to: Pointer, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.choose()?;
        // SAFETY: the caller's addresses.
        let copied =
            unsafe { result::memcpy_dtod_async(to.0, from.0, bytes, self.stream.cu_stream()) };
        copied.with_context(|| format!("copying {bytes} bytes within the GPU"))
    }

    fn compile(&self, source: &str, names: &[&str]) -> Result<()> {
        let known = |name: &&str| self.kernels.borrow().contains_key(*name);
        if self.sources.borrow().contains(source) && names.iter().all(known) {
            return Ok(());
        }
        let code = self.build(source)?;
        let module = self.stream.context().load_module(Ptx::from_binary(code));
        let module = module.context("loading the compiled kernels")?;
        for name in names {
            let kernel = module
                .load_function(name)
                .with_context(|| format!("no kernel '{name}'"))?;
            self.kernels.borrow_mut().insert(name.to_string(), kernel);
        }
        self.sources.borrow_mut().insert(source.to_string());
        Ok(())
    }

    fn launch(&self, name: &str, width: usize, chains: usize, args: &[Arg]) -> Result<()> {
        let kernels = self.kernels.borrow();
        let kernel = kernels
            .get(name)
            .with_context(|| format!("kernel '{name}' is not compiled"))?;
        if width == 0 || chains == 0 {
            return Ok(());
        }
        let blocks = i32::try_from(width.div_ceil(BLOCK));
        let blocks = blocks
            .with_context(|| format!("{width} threads for '{name}' are more than a grid has"))?;
        let mut launch = self.stream.launch_builder(kernel);
        for arg in args {
            match arg {
                Arg::Pointer(p) => launch.arg(&p.0),
                Arg::Int(x) => launch.arg(x),
                Arg::Long(x) => launch.arg(x),
                Arg::Float(x) => launch.arg(x),
            };
        }
        let grid = LaunchConfig {
            grid_dim: (blocks as u32, chains.min(ROWS) as u32, 1),
            block_dim: (BLOCK as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the caller's arguments; tests hold them to the kernels' parameters on the emulated device.
        let launched = unsafe { launch.launch(grid) };
        launched
            .map(|_| ())
            .with_context(|| format!("launching kernel '{name}'"))
    }

    fn multiply(&self, p: &Product) -> Result<()> {
        ensure!(
            !p.out.transposed,
            "the result of a product cannot be transposed"
        );
        if p.m == 0 || p.n == 0 || p.batch == 0 {
            return Ok(());
        }
        self.choose()?;
        let int = |x: usize| {
            i32::try_from(x).with_context(|| format!("{p:?}: {x} is too large for cuBLAS"))
        };
        // cuBLAS counts by columns: what it reads from row-major matrices is their transposes, and outᵀ = bᵀ·aᵀ.
        let operation = |f: &Factor| match f.transposed {
            true => blas::cublasOperation_t::CUBLAS_OP_T,
            false => blas::cublasOperation_t::CUBLAS_OP_N,
        };
        // The length of a row as it is stored; cuBLAS wants at least 1 even where there is nothing.
        let row = |f: &Factor, rows: usize, columns: usize| {
            int(if f.transposed { rows } else { columns }.max(1))
        };
        let one = 1f32;
        let kept = if p.add { 1f32 } else { 0f32 };
        let [ta, tb] = [operation(&p.b), operation(&p.a)];
        let [m, n, k, batch] = [int(p.n)?, int(p.m)?, int(p.k)?, int(p.batch)?];
        let [lda, ldb, ldc] = [row(&p.b, p.k, p.n)?, row(&p.a, p.m, p.k)?, m];
        let [a, b, out] = [&p.b, &p.a, &p.out].map(|f| f.data.0);
        let strides = [&p.b, &p.a, &p.out].map(|f| f.stride as i64);
        let handle = *self.blas.handle();
        let fast = match self.precision {
            Precision::Full => None,
            Precision::Tf32 => Some(blas::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32),
            Precision::Bf16 => Some(blas::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16BF),
        };
        let (alpha, beta) = (&raw const one, &raw const kept);
        let float = blas::cudaDataType_t::CUDA_R_32F;
        let any = blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
        // SAFETY: the caller's addresses, or lists of them as long as the batch; shapes and strides are those of the product.
        let multiplied = unsafe {
            match (p.listed, fast) {
                (false, None) => blas::cublasSgemmStridedBatched(
                    handle, ta, tb, m, n, k, alpha, a as _, lda, strides[0], b as _, ldb,
                    strides[1], beta, out as _, ldc, strides[2], batch,
                ),
                (true, None) => blas::cublasSgemmBatched(
                    handle, ta, tb, m, n, k, alpha, a as _, lda, b as _, ldb, beta, out as _, ldc,
                    batch,
                ),
                (false, Some(fast)) => blas::cublasGemmStridedBatchedEx(
                    handle,
                    ta,
                    tb,
                    m,
                    n,
                    k,
                    alpha.cast(),
                    a as _,
                    float,
                    lda,
                    strides[0],
                    b as _,
                    float,
                    ldb,
                    strides[1],
                    beta.cast(),
                    out as _,
                    float,
                    ldc,
                    strides[2],
                    batch,
                    fast,
                    any,
                ),
                (true, Some(fast)) => blas::cublasGemmBatchedEx(
                    handle,
                    ta,
                    tb,
                    m,
                    n,
                    k,
                    alpha.cast(),
                    a as _,
                    float,
                    lda,
                    b as _,
                    float,
                    ldb,
                    beta.cast(),
                    out as _,
                    float,
                    ldc,
                    batch,
                    fast,
                    any,
                ),
            }
            .result()
        };
        multiplied.with_context(|| format!("cuBLAS refuses {p:?}"))
    }

    #[cfg(feature = "candle-cuda")]
    fn candle(&self) -> Result<candle_core::Device> {
        ensure!(
            self.precision == Precision::Full,
            "candle multiplies in single precision; leave out the tf32 or bf16 of the device"
        );
        candle_core::Device::new_cuda(self.stream.context().ordinal())
            .with_context(|| format!("{} does not open for candle", self.description))
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        let held: Vec<_> = self.memory.borrow().keys().copied().collect();
        held.into_iter().for_each(|at| self.release(Pointer(at)));
    }
}
