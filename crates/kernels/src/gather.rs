//! Copies of the rows of a data set into the batches that models read.

use super::simd;

/// How many rows ahead of the copy a row is asked for: rows lie anywhere in memory, and waiting for each would take longer than
/// everything else that is done element by element.
const AHEAD: usize = 12;

/// Ask for the cache lines of a row.
#[inline(always)]
fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of_val(row)).step_by(64).take(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is within the row; a prefetch has no effect but on time.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.as_ptr().cast::<i8>().add(at)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

macro_rules! gather {
    ($(#[$meta:meta])* $name:ident($($extra:ident: $extra_type:ty)?), $type:ty, $widen:expr) => {
        simd! {
            $(#[$meta])*
            pub fn $name(data: &[$type], dim: usize, rows: &[u32], $($extra: $extra_type,)? out: &mut [f32]) {
                assert_eq!(out.len(), rows.len() * dim, "length of a batch");
                let row = |r: u32| &data[r as usize * dim..][..dim];
                for r in rows.iter().take(AHEAD) {
                    prefetch(row(*r));
                }
                for (i, (out, r)) in out.chunks_exact_mut(dim).zip(rows).enumerate() {
                    if let Some(next) = rows.get(i + AHEAD) {
                        prefetch(row(*next));
                    }
                    for (o, x) in out.iter_mut().zip(row(*r)) {
                        *o = $widen(*x);
                    }
                }
            }
        }
    };
}

gather! {
    /// Rows of floats, in the order of `rows`.
    floats(), f32, |x| x
}

gather! {
    /// Rows of small integers, as floats, in the order of `rows`.
    spins(), i8, |x| x as f32
}

gather! {
    /// Rows of tokens, as floats, in the order of `rows`.
    tokens(), u32, |x| x as f32
}

/// A byte in these units, rounded once.
#[inline(always)]
fn in_units(x: u8, unit: f64) -> f32 {
    (f64::from(x) * unit) as f32
}

gather! {
    /// Rows of bytes in these units, as floats, in the order of `rows`.
    bytes(unit: f64), u8, |x| in_units(x, unit)
}

simd! {
    /// Bytes in these units, as floats.
    pub fn widen_bytes(from: &[u8], unit: f64, to: &mut [f32]) {
        assert_eq!(from.len(), to.len(), "length of a batch");
        for (o, x) in to.iter_mut().zip(from) {
            *o = in_units(*x, unit);
        }
    }
}

simd! {
    /// Small integers as floats.
    pub fn widen(from: &[i8], to: &mut [f32]) {
        assert_eq!(from.len(), to.len(), "length of a batch");
        for (o, x) in to.iter_mut().zip(from) {
            *o = *x as f32;
        }
    }
}

simd! {
    /// Tokens as floats, exactly.
    pub fn widen_tokens(from: &[u32], to: &mut [f32]) {
        assert_eq!(from.len(), to.len(), "length of a batch");
        for (o, x) in to.iter_mut().zip(from) {
            *o = *x as f32;
        }
    }
}
