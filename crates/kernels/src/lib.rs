//! The hot loops of `ergodic`, with what they are built on: random streams and the memory that is left.
//!
//! They are a crate of their own so that they are compiled as one piece, whatever the rest is: then no function of the standard library that a
//! loop calls stays outside it. In `ergodic`, which is compiled in many pieces and not optimised again at link time, code that runs at every step
//! keeps to loops and to functions that are marked `#[inline]`; the `map` of arrays and the `collect` of iterators are not.
//!
//! * [`gemm`](mod@gemm) — matrix products on row-major slices.
//! * [`gemm_baseline`] — the time of the matrix products alone.
//! * [`math`] — exp, log, tanh that the compiler can vectorise, with the same bits on every SIMD level.
//! * [`normal`] — Philox normals, made in registers, block by block.
//! * [`update`] — one fused pass over the parameters per sampler step.
//! * [`dense`] — fully connected layers: a product and what follows it.
//! * [`elementwise`] — activations, losses, gathers around the products.
//! * [`sequence`] — what transformers need around the products.
//! * [`tensor`] — tensors that scripts compute with: at once, or traced and compiled.
//! * [`device`] — what an accelerator must offer, and CUDA.
//! * [`rng`], [`memory`] — random streams; whether something fits.
//!
//! Every loop is written once in plain Rust and compiled for several instruction sets by [`simd!`]; the best one is chosen
//! at run time. No fused multiply–add is used, so that all of them give the same bits.

#![warn(missing_docs)]

pub mod dense;
pub mod device;
pub mod elementwise;
pub mod gather;
pub mod gemm;
pub mod gemm_baseline;
pub mod map;
pub mod math;
pub mod memory;
pub mod normal;
pub mod rng;
pub mod sequence;
pub mod tensor;
pub mod thread_pool;
pub mod update;

// The emulated device of the program's tests, which names this crate as the program does.
#[cfg(test)]
extern crate self as ergodic;
#[cfg(test)]
mod kernels {
    pub use crate::{device, gemm};
}
#[cfg(test)]
mod error {
    pub use crate::Result;
}
#[cfg(test)]
mod testing;

use std::sync::LazyLock;

/// The result of everything that can fail.
pub type Result<T, E = anyhow::Error> = std::result::Result<T, E>;

/// The instruction sets a kernel is compiled for, from the best to what there is everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors.
    Avx2,
    /// What every machine of this architecture has (SSE2, NEON).
    Baseline,
}

/// The best level of this machine, or the lower one that the variable `ERGODIC_SIMD` names: `avx2`, `baseline`.
#[inline]
pub fn level() -> Level {
    static LEVEL: LazyLock<Level> = LazyLock::new(|| {
        let asked = asked_level().ok().flatten();
        asked.map_or(best_level(), |asked| asked.max(best_level()))
    });
    *LEVEL
}

/// The level that `ERGODIC_SIMD` names, if it names one.
///
/// # Errors
/// If there is none of this name.
pub fn asked_level() -> Result<Option<Level>> {
    let Some(name) = std::env::var_os("ERGODIC_SIMD") else {
        return Ok(None);
    };
    match name.to_str() {
        Some("avx512") => Ok(Some(Level::Avx512)),
        Some("avx2") => Ok(Some(Level::Avx2)),
        Some("baseline") => Ok(Some(Level::Baseline)),
        _ => anyhow::bail!(
            "ERGODIC_SIMD is {name:?}, but must be avx512, avx2 or baseline; what a machine does not have is never used"
        ),
    }
}

fn best_level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl")
            && std::is_x86_feature_detected!("avx512bw")
        {
            return Level::Avx512;
        }
        if std::is_x86_feature_detected!("avx2") {
            return Level::Avx2;
        }
    }
    Level::Baseline
}

/// Compile a function for every [`Level`] and call the best one.
///
/// The body must be one that the compiler can vectorise: plain loops over slices, helpers `#[inline(always)]`.
#[macro_export]
macro_rules! simd {
    ($(#[$meta:meta])* pub fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        pub fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
                fn avx512($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                match $crate::level() {
                    // SAFETY: `level` has found the features on this machine.
                    $crate::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    $crate::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::Level::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
