//! Memory of a device.

use crate::error::Result;
use crate::kernels::device::{Device, Pointer};

/// Memory of the device; given back when dropped.
pub(super) struct Buffer<'d> {
    device: &'d dyn Device,
    /// Where it is.
    pub at: Pointer,
    bytes: usize,
}

impl<'d> Buffer<'d> {
    /// So many bytes, zeroed.
    pub fn new(device: &'d dyn Device, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(16);
        let at = device.allocate(bytes)?;
        Ok(Self { device, at, bytes })
    }

    /// With this content.
    pub fn of<T: Copy>(device: &'d dyn Device, data: &[T]) -> Result<Self> {
        let buffer = Self::new(device, size_of_val(data))?;
        device.upload(bytes(data), buffer.at)?;
        Ok(buffer)
    }

    /// Make it at least this long; what it held is lost.
    pub fn grow(&mut self, bytes: usize) -> Result<Pointer> {
        if self.bytes < bytes {
            *self = Self::new(self.device, bytes)?;
        }
        Ok(self.at)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.device.release(self.at);
    }
}

/// Numbers as bytes.
pub(super) fn bytes<T: Copy>(data: &[T]) -> &[u8] {
    // SAFETY: only called with numbers and `Stream`s, which have no padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

/// Numbers as bytes to be written.
pub(super) fn bytes_mut<T: Copy>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`; any bits are a number.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
}
