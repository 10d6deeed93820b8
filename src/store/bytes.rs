//! Numbers to little-endian bytes and back.
//!
//! Fixed-size blocks, so that the loops compile to plain copies on the little-endian machines this runs on.

use half::{bf16, f16};
use std::io;

/// A number that is stored as little-endian bytes.
pub(super) trait Element: Copy {
    /// Bytes of one number.
    const SIZE: usize;
    /// What stands where no value was written.
    const FILL: Self;
    /// Stores the number; `out` has [`Self::SIZE`] bytes.
    fn put(self, out: &mut [u8]);
    /// Loads the number; `bytes` has [`Self::SIZE`] bytes.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! element {
    ($($t:ty: $fill:expr),*) => {$(
        impl Element for $t {
            const SIZE: usize = size_of::<$t>();
            const FILL: Self = $fill;
            #[inline]
            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn get(bytes: &[u8]) -> Self {
                let mut block = [0; size_of::<$t>()];
                block.copy_from_slice(bytes);
                <$t>::from_le_bytes(block)
            }
        }
    )*};
}

element!(f32: f32::NAN, f64: f64::NAN, f16: f16::NAN, bf16: bf16::NAN, i64: 0, u64: 0);

/// How much is converted at a time: much larger than a system call costs, small enough to stay in the processor's cache.
pub(super) const PIECE: usize = 1 << 18;

/// All the bytes of `values`.
pub(super) fn encode<T: Element>(values: &[T]) -> Vec<u8> {
    let mut out = vec![0; values.len() * T::SIZE];
    put_all(values, &mut out);
    out
}

/// The bytes of `values`, handed over in pieces of at most [`PIECE`], until one is refused.
pub(super) fn encode_pieces<T: Element>(
    values: &[T],
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; (values.len() * T::SIZE).min(PIECE)];
    for part in values.chunks(PIECE / T::SIZE) {
        let piece = &mut buffer[..part.len() * T::SIZE];
        put_all(part, piece);
        each(piece)?;
    }
    Ok(())
}

/// The numbers in `bytes`; a remainder too short for a number is left out (callers check lengths first).
pub(super) fn decode<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::SIZE).map(T::get).collect()
}

fn put_all<T: Element>(values: &[T], out: &mut [u8]) {
    for (value, block) in values.iter().zip(out.chunks_exact_mut(T::SIZE)) {
        value.put(block);
    }
}
