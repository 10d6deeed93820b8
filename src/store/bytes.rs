//! Numbers to little-endian bytes and back.
//!
//! Fixed-size blocks, so that the loops compile to plain copies on the little-endian machines this runs on.

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
            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                let mut block = [0; size_of::<$t>()];
                block.copy_from_slice(bytes);
                <$t>::from_le_bytes(block)
            }
        }
    )*};
}

element!(f32: f32::NAN, f64: f64::NAN, i64: 0, u64: 0);

/// All the bytes of `values`.
pub(super) fn encode<T: Element>(values: &[T]) -> Vec<u8> {
    let mut out = vec![0; values.len() * T::SIZE];
    for (value, block) in values.iter().zip(out.chunks_exact_mut(T::SIZE)) {
        value.put(block);
    }
    out
}

/// The numbers in `bytes`; a remainder too short for a number is left out (callers check lengths first).
pub(super) fn decode<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::SIZE).map(T::get).collect()
}
