//! Kernels that are written for a program: passes over elements and the sums that go back through them, as CUDA C.
//!
//! They stand behind `device/prelude.cu` and `device/elements.cu`. Arrays have a part per chain, so many floats apart; within it, rows.

use super::super::code::{self, Written};
use super::super::element::Element;
use std::fmt::Write;

/// How the elements of an operand are repeated: for each element of the result, which one of the operand's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// The same one.
    Same,
    /// The only one.
    One,
    /// All of them, again and again.
    Again,
    /// As a list says.
    Listed,
}

/// Which elements of the result use an element of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// The same one.
    Same,
    /// All.
    All,
    /// Those that are a multiple of the operand's width further on.
    Again,
    /// As a list says: where the users of each begin, and the users.
    Listed,
    /// One in a run of runs: [`Pass::Concat`](super::super::pass::Pass).
    Run,
}

/// A kernel, and which of `x0`, `x1`, `x2`, `y` and `d` it reads.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub name: String,
    pub source: String,
    pub reads: Vec<String>,
}

/// A name that C takes.
fn word(f: Element) -> String {
    let text = format!("{f:?}").to_lowercase().replace('-', "m");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(plain).collect()
}

/// The arguments of operand `x`, and the line that reads its element for element `e` of the result.
fn operand(x: usize, index: Index, arguments: &mut String, load: &mut String) {
    let _ = write!(
        arguments,
        ", const float *x{x}_of, long long x{x}_chain, long long x{x}_row"
    );
    let at = match index {
        Index::Same => "e".to_string(),
        Index::One => "0".to_string(),
        Index::Again => {
            let _ = write!(arguments, ", int x{x}_width");
            format!("e % x{x}_width")
        }
        Index::Listed => {
            let _ = write!(arguments, ", const unsigned *x{x}_list");
            format!("x{x}_list[e]")
        }
    };
    let _ = writeln!(
        load,
        "const float x{x} = x{x}_of[chain * x{x}_chain + row * x{x}_row + {at}];"
    );
}

/// The kernel of `f` of operands that are repeated like this.
///
/// Parameters: rows, elements of a row, chains, the result and its stride; per operand: address, strides of chains and rows, and its width or
/// its list. x: rows·width.
pub fn values(f: Element, spreads: &[Index]) -> Kernel {
    let Written {
        lines,
        results,
        reads,
    } = code::values(f);
    let name = spreads.iter().fold(format!("values_{}", word(f)), |n, s| {
        n + &format!("_{s:?}").to_lowercase()
    });
    let (mut arguments, mut load) = (String::new(), String::new());
    for (x, index) in spreads.iter().enumerate() {
        operand(x, *index, &mut arguments, &mut load);
    }
    let element = match spreads.iter().any(|s| *s != Index::One) {
        true => "const int e = (int)(i - row * width);\n",
        false => "",
    };
    let source = format!(
        "extern \"C\" __global__ void {name}(int rows, int width, int chains, float *out, long long out_chain{arguments}) {{\n\
         const long long i = THREAD;\n\
         if (i >= (long long)rows * width) return;\n\
         const long long row = quotient(i, width);\n{element}\
         for_each_chain(chain, chains) {{\n{load}{lines}out[chain * out_chain + i] = {};\n}} }}\n",
        results[0]
    );
    Kernel {
        name,
        source,
        reads,
    }
}

/// The kernel that adds up `d·∂f/∂x` for operand `which` over its users; without a function, `d` itself.
///
/// Parameters: rows, elements of a row of the result, chains; the gradient: address, strides of chains and rows, width, rows (1 to sum over all rows),
/// parts of each sum, whether to add; what the users need; then what is read, operands as in [`values`], y and d with their strides of
/// chains. x: rows of the gradient · parts · its width. A sum is that of its terms in order, in double precision.
pub fn slopes(f: Option<Element>, which: usize, spreads: &[Index], users: Users) -> Kernel {
    let written = match f {
        Some(f) => code::slopes(f, which),
        None => code::write::<false>(|| vec![code::Code::variable("d")]),
    };
    let Written {
        lines,
        results,
        reads,
    } = written;
    let start = match f {
        Some(f) => format!("slope{which}_{}", word(f)),
        None => "sum".into(),
    };
    let name = spreads
        .iter()
        .fold(start, |n, s| n + &format!("_{s:?}").to_lowercase());
    let name = format!("{name}_to_{users:?}").to_lowercase();
    let mut arguments = String::from(
        "int rows, int width, int chains, float *target, long long t_chain, long long t_row, int t_width, int t_rows, int parts, int add",
    );
    let (count, element) = match users {
        Users::Same => ("1", "t"),
        Users::All => ("width", "k"),
        Users::Again => ("width / t_width", "k * t_width + t"),
        Users::Listed => {
            arguments += ", const unsigned *starts, const unsigned *users";
            (
                "(int)(starts[t + 1] - starts[t])",
                "(int)users[starts[t] + k]",
            )
        }
        Users::Run => {
            arguments += ", int run, int whole, int before";
            ("1", "t / run * whole + before + t % run")
        }
    };
    let mut load = String::new();
    for (x, index) in spreads.iter().enumerate() {
        if reads.contains(&format!("x{x}")) {
            operand(x, *index, &mut arguments, &mut load);
        }
    }
    for given in ["y", "d"]
        .into_iter()
        .filter(|g| reads.iter().any(|r| r == g))
    {
        let _ = write!(
            arguments,
            ", const float *{given}_of, long long {given}_chain"
        );
        let _ = writeln!(
            load,
            "const float {given} = {given}_of[chain * {given}_chain + row * width + e];"
        );
    }
    let (row, k) = match count {
        "1" => ("j", ""),
        _ => ("j / count", "const int k = j % count;\n"),
    };
    let source = format!(
        "extern \"C\" __global__ void {name}({arguments}) {{\n\
         const long long i = THREAD;\n\
         if (i >= (long long)t_rows * parts * t_width) return;\n\
         const long long q = quotient(i, t_width);\n\
         const int t = (int)(i - q * t_width);\n\
         const int own = (int)quotient(q, parts);\n\
         const int part = (int)(q - (long long)own * parts);\n\
         const int count = {count};\n\
         const long long all = t_rows == rows ? count : (long long)count * rows;\n\
         const int from = parts == 1 ? 0 : (int)(all * part / parts);\n\
         const int to = parts == 1 ? (int)all : (int)(all * (part + 1) / parts);\n\
         for_each_chain(chain, chains) {{\n\
         double sum = 0.0;\n\
         for (int j = from; j < to; j++) {{\n\
         const long long row = t_rows == rows ? own : {row};\n{k}\
         const int e = {element};\n{load}{lines}sum += (double)({});\n}}\n\
         float *out = target + chain * t_chain + own * t_row + (long long)part * t_width + t;\n\
         *out = add ? *out + (float)sum : (float)sum;\n}} }}\n",
        results[0]
    );
    Kernel {
        name,
        source,
        reads,
    }
}
