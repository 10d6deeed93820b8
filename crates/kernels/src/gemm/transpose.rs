//! Transposes, block by block.

use super::reach;

/// Rows of a block: as many as a register has floats.
const ROWS: usize = 8;

/// Columns of a block: a cache line of each row.
const COLUMNS: usize = 16;

/// `to[i·width + j] = from[j·stride + i]` for j below `rows`, i below `columns`.
pub fn transpose(
    from: &[f32],
    stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [f32],
    width: usize,
) {
    assert!(
        from.len() >= reach(rows, columns, stride) && to.len() >= reach(columns, rows, width),
        "matrix larger than its slice"
    );
    #[cfg(target_arch = "x86_64")]
    let has_registers = crate::level() != crate::Level::Baseline;
    for i in (0..columns).step_by(COLUMNS) {
        for j in (0..rows).step_by(ROWS) {
            #[cfg(target_arch = "x86_64")]
            if has_registers && i + COLUMNS <= columns && j + ROWS <= rows {
                let (from, to) = (&from[j * stride + i..], &mut to[i * width + j..]);
                // SAFETY: the machine has AVX2, and the block lies within both matrices, which their slices hold.
                unsafe { block(from.as_ptr(), stride, to.as_mut_ptr(), width) };
                continue;
            }
            for x in i..columns.min(i + COLUMNS) {
                for y in j..rows.min(j + ROWS) {
                    to[x * width + y] = from[y * stride + x];
                }
            }
        }
    }
}

/// The transpose of a block of `ROWS` by `COLUMNS`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn block(from: *const f32, stride: usize, to: *mut f32, width: usize) {
    use std::arch::x86_64::*;
    for i in (0..COLUMNS).step_by(4) {
        // Four columns of two rows: of j, and of j + 4 in the upper half.
        let pair = |j: usize| unsafe {
            let from = from.add(j * stride + i);
            let lower = _mm256_castps128_ps256(_mm_loadu_ps(from));
            _mm256_insertf128_ps::<1>(lower, _mm_loadu_ps(from.add(4 * stride)))
        };
        let [a, b, c, d] = [pair(0), pair(1), pair(2), pair(3)];
        // Of rows a, b and of rows c, d: columns 0 and 1, and columns 2 and 3.
        let [ab, ab_2] = [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)];
        let [cd, cd_2] = [_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)];
        let columns = [
            _mm256_shuffle_ps::<0x44>(ab, cd),
            _mm256_shuffle_ps::<0xEE>(ab, cd),
            _mm256_shuffle_ps::<0x44>(ab_2, cd_2),
            _mm256_shuffle_ps::<0xEE>(ab_2, cd_2),
        ];
        for (x, column) in columns.into_iter().enumerate() {
            // SAFETY: the caller's: both blocks may be read and written.
            unsafe { _mm256_storeu_ps(to.add((i + x) * width), column) };
        }
    }
}
