//! The innermost loops of matrix products: a tile of the result stays in registers while its sums run.
//!
//! Every element is one chain of fused multiply–adds, in the order of its terms. So it has the same bits however a product is cut into tiles, whichever
//! instruction set computes them, and whoever computes which part. (Only machines without fused multiply–adds round twice.)

/// A register of floats.
trait Register: Copy {
    /// Floats in it.
    const LANES: usize;
    /// Which of them are meant.
    type Mask: Copy;
    /// The first `n` of them.
    unsafe fn mask(n: usize) -> Self::Mask;
    unsafe fn zero() -> Self;
    /// The same number everywhere.
    unsafe fn all(x: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn load_some(from: *const f32, mask: Self::Mask) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn store_some(self, to: *mut f32, mask: Self::Mask);
    /// `self + a·b`.
    unsafe fn plus(self, a: Self, b: Self) -> Self;
}

/// A tile of a product: some rows and columns of the result, and some terms of its sums.
#[derive(Clone, Copy)]
pub struct Tile {
    /// Terms.
    pub terms: usize,
    /// The first element of the left factor.
    pub a: *const f32,
    /// From one of its rows to the next.
    pub a_row: usize,
    /// From one of its columns to the next.
    pub a_column: usize,
    /// The first element of the right factor, whose rows are contiguous.
    pub b: *const f32,
    /// From one of its rows to the next.
    pub b_row: usize,
    /// The first element of the result.
    pub c: *mut f32,
    /// From one of its rows to the next.
    pub c_row: usize,
    /// Columns of the result.
    pub columns: usize,
    /// Whether sums begin with what the result holds.
    pub add: bool,
}

/// A tile of `ROWS` rows, `FULL` registers of columns, and one more of which perhaps only some columns are meant.
#[inline(always)]
unsafe fn tile<R: Register, L: Register, const ROWS: usize, const FULL: usize>(t: &Tile) {
    unsafe {
        let at_last = FULL * R::LANES;
        let mask = L::mask(t.columns - at_last);
        let mut sums = [[R::zero(); FULL]; ROWS];
        let mut lasts = [L::zero(); ROWS];
        if t.add {
            for (i, (row, last)) in sums.iter_mut().zip(&mut lasts).enumerate() {
                let from = t.c.add(i * t.c_row);
                for (j, sum) in row.iter_mut().enumerate() {
                    *sum = R::load(from.add(j * R::LANES));
                }
                *last = L::load_some(from.add(at_last), mask);
            }
        }
        let (mut a, mut b) = (t.a, t.b);
        for _ in 0..t.terms {
            let mut right = [R::zero(); FULL];
            for (j, x) in right.iter_mut().enumerate() {
                *x = R::load(b.add(j * R::LANES));
            }
            let right_last = L::load_some(b.add(at_last), mask);
            for (i, (row, last)) in sums.iter_mut().zip(&mut lasts).enumerate() {
                let left = *a.add(i * t.a_row);
                for (sum, right) in row.iter_mut().zip(right) {
                    *sum = sum.plus(R::all(left), right);
                }
                *last = last.plus(L::all(left), right_last);
            }
            // After the last term they may point past the end of what there is.
            a = a.wrapping_add(t.a_column);
            b = b.wrapping_add(t.b_row);
        }
        for (i, (row, last)) in sums.iter().zip(&lasts).enumerate() {
            let c = t.c.add(i * t.c_row);
            for (j, sum) in row.iter().enumerate() {
                sum.store(c.add(j * R::LANES));
            }
            last.store_some(c.add(at_last), mask);
        }
    }
}

/// What computes a tile.
pub type Kernel = unsafe fn(&Tile);

/// The tiles of an instruction set.
pub struct Set {
    /// Floats of a register.
    pub lanes: usize,
    /// What computes a tile of so many rows that is so many registers wide, both less one.
    kernels: &'static [&'static [Kernel]],
    /// The same where half a register is enough for the last columns.
    halves: &'static [&'static [Kernel]],
}

impl Set {
    /// Registers of the widest tile.
    pub fn widest(&self) -> usize {
        self.kernels.len()
    }

    /// Rows of the highest tile of so many columns.
    pub fn highest(&self, columns: usize) -> usize {
        self.kernels[columns.div_ceil(self.lanes) - 1].len()
    }

    /// What computes tiles of so many rows and columns.
    pub fn kernel(&self, rows: usize, columns: usize) -> Kernel {
        let vectors = columns.div_ceil(self.lanes);
        let kernels = match vectors * self.lanes - columns >= self.lanes / 2 {
            true => self.halves,
            false => self.kernels,
        };
        kernels[vectors - 1][rows - 1]
    }
}

/// The tiles of an instruction set: the numbers of rows for each number of full registers that are followed by a last one.
macro_rules! set {
    ($name:ident, $register:ty, $half:ty, [$($feature:meta)?], $($full:literal: [$($rows:literal)*])*) => {
        static $name: Set = {
            $(#[$feature])?
            unsafe fn one<L: Register, const ROWS: usize, const FULL: usize>(t: &Tile) {
                unsafe { tile::<$register, L, ROWS, FULL>(t) }
            }
            Set {
                lanes: <$register as Register>::LANES,
                kernels: &[$(&[$(one::<$register, $rows, $full>),*]),*],
                halves: &[$(&[$(one::<$half, $rows, $full>),*]),*],
            }
        };
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Register;
    use std::arch::x86_64::*;

    impl Register for __m512 {
        const LANES: usize = 16;
        type Mask = __mmask16;
        #[inline(always)]
        unsafe fn mask(n: usize) -> __mmask16 {
            (u32::MAX >> (32 - n)) as u16
        }
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { _mm512_setzero_ps() }
        }
        #[inline(always)]
        unsafe fn all(x: f32) -> Self {
            unsafe { _mm512_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn load_some(from: *const f32, mask: __mmask16) -> Self {
            unsafe { _mm512_maskz_loadu_ps(mask, from) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn store_some(self, to: *mut f32, mask: __mmask16) {
            unsafe { _mm512_mask_storeu_ps(to, mask, self) }
        }
        #[inline(always)]
        unsafe fn plus(self, a: Self, b: Self) -> Self {
            unsafe { _mm512_fmadd_ps(a, b, self) }
        }
    }

    impl Register for __m256 {
        const LANES: usize = 8;
        type Mask = __m256i;
        #[inline(always)]
        unsafe fn mask(n: usize) -> __m256i {
            unsafe {
                let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), lanes)
            }
        }
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { _mm256_setzero_ps() }
        }
        #[inline(always)]
        unsafe fn all(x: f32) -> Self {
            unsafe { _mm256_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn load_some(from: *const f32, mask: __m256i) -> Self {
            unsafe { _mm256_maskload_ps(from, mask) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn store_some(self, to: *mut f32, mask: __m256i) {
            unsafe { _mm256_maskstore_ps(to, mask, self) }
        }
        #[inline(always)]
        unsafe fn plus(self, a: Self, b: Self) -> Self {
            unsafe { _mm256_fmadd_ps(a, b, self) }
        }
    }
}
#[cfg(target_arch = "x86_64")]
set!(AVX512, std::arch::x86_64::__m512, std::arch::x86_64::__m256, [target_feature(enable = "avx512f,avx512vl,avx2,fma")],
    0: [1 2 3 4 5 6 7 8 9 10 11 12]
    1: [1 2 3 4 5 6 7 8 9 10 11 12]
    2: [1 2 3 4 5 6 7 8]
    3: [1 2 3 4 5 6]);

#[cfg(target_arch = "x86_64")]
set!(AVX2, std::arch::x86_64::__m256, std::arch::x86_64::__m256, [target_feature(enable = "avx2,fma")],
    0: [1 2 3 4 5 6 7 8]
    1: [1 2 3 4 5 6]);

/// Four floats: NEON has a fused multiply–add, what every x86 has does not.
impl Register for [f32; 4] {
    const LANES: usize = 4;
    type Mask = usize;
    #[inline(always)]
    unsafe fn mask(n: usize) -> usize {
        n
    }
    #[inline(always)]
    unsafe fn zero() -> Self {
        [0.0; 4]
    }
    #[inline(always)]
    unsafe fn all(x: f32) -> Self {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { from.cast::<Self>().read() }
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, mask: usize) -> Self {
        unsafe {
            let mut x = [0.0; 4];
            std::ptr::copy_nonoverlapping(from, x.as_mut_ptr(), mask);
            x
        }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { to.cast::<Self>().write(self) }
    }
    #[inline(always)]
    unsafe fn store_some(self, to: *mut f32, mask: usize) {
        unsafe { std::ptr::copy_nonoverlapping(self.as_ptr(), to, mask) }
    }
    #[inline(always)]
    unsafe fn plus(mut self, a: Self, b: Self) -> Self {
        for ((x, a), b) in self.iter_mut().zip(a).zip(b) {
            *x = match cfg!(target_arch = "aarch64") {
                true => a.mul_add(b, *x),
                false => *x + a * b,
            };
        }
        self
    }
}

set!(BASELINE, [f32; 4], [f32; 4], [],
    0: [1 2 3 4]
    1: [1 2 3 4 5]
    2: [1 2 3 4]);

/// The tiles for this machine.
pub fn set() -> &'static Set {
    #[cfg(target_arch = "x86_64")]
    match crate::level() {
        crate::Level::Avx512 => return &AVX512,
        crate::Level::Avx2 if std::is_x86_feature_detected!("fma") => return &AVX2,
        _ => {}
    }
    &BASELINE
}

/// All the tiles that this machine can compute, and whether their multiply–adds are fused.
#[cfg(test)]
pub fn sets() -> Vec<(&'static Set, bool)> {
    let mut all = vec![(&BASELINE, cfg!(target_arch = "aarch64"))];
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            all.push((&AVX2, true));
        }
        if crate::level() == crate::Level::Avx512 {
            all.push((&AVX512, true));
        }
    }
    all
}
