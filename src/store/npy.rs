//! The .npy format of one array (NumPy Enhancement Proposal 1), read with every size checked before it is believed.
//!
//! The header is parsed here and not by a library: the ones at hand multiply a lying shape without checking.

use super::tensors::DataRef;
use crate::memory;
use half::f16;
use std::io::Read;

/// A C-ordered array.
pub struct Array {
    /// Sizes of the dimensions.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: Numbers,
    /// Whether they are floats in single precision.
    pub single: bool,
}

/// Numbers by what they can mean: bytes that may be spins or pixels, whole numbers that may be labels, and others.
pub enum Numbers {
    /// Bytes with a sign.
    I8(Vec<i8>),
    /// Bytes without one.
    U8(Vec<u8>),
    /// Other whole numbers.
    Whole(Vec<f64>),
    /// Floating-point numbers.
    Float(Vec<f64>),
}

impl Numbers {
    /// The numbers in double precision, which holds all but the largest 64-bit integers exactly.
    pub fn into_f64(self) -> Vec<f64> {
        match self {
            Numbers::I8(v) => v.into_iter().map(f64::from).collect(),
            Numbers::U8(v) => v.into_iter().map(f64::from).collect(),
            Numbers::Whole(v) | Numbers::Float(v) => v,
        }
    }
}

/// What a header says.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub descr: String,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// Read an array of at most `most` bytes; an error is a clause about the array.
pub fn read(r: &mut dyn Read, most: u64) -> Result<Array, String> {
    let header = read_header(r)?;
    let (big, kind) = match header.descr.split_at_checked(1) {
        Some((">", kind)) => (true, kind),
        Some(("<" | "|" | "=", kind)) => (false, kind),
        _ => (false, &header.descr[..]),
    };
    let item = match kind {
        "i1" | "u1" => 1,
        "i2" | "u2" | "f2" => 2,
        "i4" | "u4" | "f4" => 4,
        "i8" | "u8" | "f8" => 8,
        _ => {
            return Err(format!(
                "its type '{}' is not supported; supported are f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 (convert it by .astype)",
                header.descr
            ));
        }
    };
    let shape = &header.shape;
    let bytes = shape
        .iter()
        .try_fold(item, |n: u64, &s| n.checked_mul(s as u64))
        .filter(|&n| n <= most)
        .ok_or_else(|| {
            format!("its header claims the shape {shape:?}, more than the file can hold")
        })?;
    let count = bytes / item;
    memory::check(
        (bytes + 8 * count).into(),
        &format!("an array of shape {shape:?}"),
    )
    .map_err(|e| e.to_string())?;
    let raw = take(r, bytes + 1)?;
    if raw.len() as u64 != bytes {
        let found = if raw.len() as u64 > bytes {
            "more".into()
        } else {
            raw.len().to_string()
        };
        return Err(format!(
            "its shape {shape:?} of type {kind} takes {bytes} bytes, but {found} follow"
        ));
    }
    let data = match decode(&raw, kind, big) {
        data if !header.fortran || shape.len() < 2 => data,
        Numbers::I8(v) => Numbers::I8(c_order(&v, shape)),
        Numbers::U8(v) => Numbers::U8(c_order(&v, shape)),
        Numbers::Whole(v) => Numbers::Whole(c_order(&v, shape)),
        Numbers::Float(v) => Numbers::Float(c_order(&v, shape)),
    };
    Ok(Array {
        single: kind == "f4",
        shape: header.shape,
        data,
    })
}

/// The next bytes, or all that are left.
pub(super) fn take(r: &mut dyn Read, n: u64) -> Result<Vec<u8>, String> {
    // As much as it may be: by doubling it would take up to three times that for a while.
    let mut out = Vec::with_capacity(n as usize);
    match r.take(n).read_to_end(&mut out) {
        Ok(_) => Ok(out),
        Err(e) => Err(format!("it is damaged ({e}); get the file again")),
    }
}

/// All that stands before the numbers.
pub(super) fn read_header(r: &mut dyn Read) -> Result<Header, String> {
    let start = take(r, 8)?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err("it does not begin as an .npy array does".into());
    }
    let width = match start.get(6) {
        Some(1) => 2,
        Some(2 | 3) => 4,
        v => {
            return Err(format!(
                "version {v:?} of the .npy format is unknown; known are 1, 2 and 3"
            ));
        }
    };
    let length = take(r, width)?
        .iter()
        .rev()
        .fold(0u64, |n, &b| n << 8 | b as u64);
    // The header of an array of numbers is a line; NumPy refuses more than 10000 bytes by default, too.
    if length > 10_000 {
        return Err(format!(
            "its header claims {length} bytes, more than that of any array of numbers"
        ));
    }
    let text = take(r, length)?;
    let text = String::from_utf8_lossy(&text);
    parse(&text).ok_or_else(|| {
        let start: String = text.trim().chars().take(120).collect();
        format!("its header is not that of an array of numbers: {start:?}")
    })
}

/// Numbers of one of the types that [`read`] knows, most significant byte first if `big`.
fn decode(raw: &[u8], kind: &str, big: bool) -> Numbers {
    macro_rules! decode {
        ($t:ty) => {{
            let one = |b: &[u8]| {
                let mut a = [0; size_of::<$t>()];
                a.copy_from_slice(b);
                if big {
                    <$t>::from_be_bytes(a)
                } else {
                    <$t>::from_le_bytes(a)
                }
            };
            raw.chunks_exact(size_of::<$t>())
                .map(|b| one(b) as f64)
                .collect()
        }};
    }
    match kind {
        "i1" => Numbers::I8(raw.iter().map(|&b| b as i8).collect()),
        "u1" => Numbers::U8(raw.to_vec()),
        "i2" => Numbers::Whole(decode!(i16)),
        "u2" => Numbers::Whole(decode!(u16)),
        "i4" => Numbers::Whole(decode!(i32)),
        "u4" => Numbers::Whole(decode!(u32)),
        "i8" => Numbers::Whole(decode!(i64)),
        "u8" => Numbers::Whole(decode!(u64)),
        "f2" => {
            let bits: Vec<f64> = decode!(u16);
            let number = |x: f64| f64::from(f16::from_bits(x as u16));
            Numbers::Float(bits.into_iter().map(number).collect())
        }
        "f4" => Numbers::Float(decode!(f32)),
        _ => Numbers::Float(decode!(f64)),
    }
}

/// An array of floats as a file, version 1.0 of the format.
pub(super) fn encode(shape: &[usize], data: DataRef) -> Vec<u8> {
    let sizes: Vec<_> = shape.iter().map(|d| format!("{d},")).collect();
    let kind = match data {
        DataRef::F32(_) | DataRef::Rows(_) => "f4",
        DataRef::F64(_) => "f8",
        DataRef::U64(_) => "u8",
        DataRef::I64(_) => "i8",
    };
    let mut header = format!(
        "{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({}), }}",
        sizes.join(" ")
    );
    // Magic, version and length take 10 bytes; the data begin at a multiple of 64.
    let room = (10 + header.len() + 1).next_multiple_of(64) - 11;
    while header.len() < room {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    let mut put = |piece: &[u8]| {
        out.extend_from_slice(piece);
        Ok(())
    };
    // Appending to a vector does not fail.
    let _ = data.pieces(&mut put);
    out
}

/// The three entries of a header such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse(text: &str) -> Option<Header> {
    let after = |key: &str| -> Option<&str> {
        let (_, rest) = text.split_once(&format!("'{key}'"))?;
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    };
    let descr = after("descr")?
        .strip_prefix('\'')?
        .split_once('\'')?
        .0
        .to_string();
    let order = after("fortran_order")?;
    let fortran = order.starts_with("True");
    let sizes = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let shape = sizes
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.parse().ok())
        .collect::<Option<Vec<usize>>>()?;
    (fortran || order.starts_with("False")).then_some(Header {
        descr,
        fortran,
        shape,
    })
}

/// Elements stored first index fastest, put last index fastest.
fn c_order<T: Copy>(from: &[T], shape: &[usize]) -> Vec<T> {
    let mut index = vec![0; shape.len()];
    let mut strides = vec![1; shape.len()];
    for i in 1..shape.len() {
        // Not above the number of elements, unless a size is 0 and there are none.
        strides[i] = strides[i - 1] * shape[i - 1];
    }
    let mut out = Vec::with_capacity(from.len());
    let mut at = 0;
    for _ in 0..from.len() {
        out.push(from[at]);
        for i in (0..shape.len()).rev() {
            index[i] += 1;
            at += strides[i];
            if index[i] < shape[i] {
                break;
            }
            at -= shape[i] * strides[i];
            index[i] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_anything_else_is_refused() {
        let h = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!(
            h,
            Header {
                descr: "<f4".into(),
                fortran: false,
                shape: vec![3, 4]
            }
        );
        assert_eq!(
            parse("{'shape':(5,),'fortran_order':True,'descr':'|i1'}")
                .unwrap()
                .shape,
            [5]
        );
        assert_eq!(
            parse("{'descr': '<f4', 'fortran_order': False, 'shape': ()}")
                .unwrap()
                .shape,
            Vec::<usize>::new()
        );
        for bad in [
            "",
            "((((((((",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn fortran_order_is_turned_into_c_order() {
        // Element (i, j, k) is 100i + 10j + k.
        let shape = [2, 3, 2];
        let mut stored = vec![];
        for k in 0..2 {
            for j in 0..3 {
                (0..2).for_each(|i| stored.push(100 * i + 10 * j + k));
            }
        }
        assert_eq!(
            c_order(&stored, &shape),
            [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]
        );
        assert_eq!(c_order::<u8>(&[], &[0, 3]), Vec::<u8>::new());
    }
}
