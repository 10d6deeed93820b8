//! Memory and matrix products of a device.

use super::bench::{Bench, devices, doubles, near, numbers, same};
use ergodic::kernels::device::{Factor, Pointer, Product};

#[test]
fn memory_is_zeroed_and_copied_in_order() {
    for d in devices("") {
        assert!(!d.0.describe().is_empty() && d.0.free_memory().unwrap() > 1 << 20);
        let x = numbers(1000, 1, false);
        let (from, to) = (d.put(&x), d.0.allocate(4000).unwrap());
        same(&d.get(to, 1000), &[0.0; 1000], "fresh memory");
        d.0.copy(from.offset(400), to.offset(40), 800).unwrap();
        d.0.upload(&[0; 400], from.offset(400)).unwrap();
        let mut expected = vec![0.0; 1000];
        expected[10..210].copy_from_slice(&x[100..300]);
        same(&d.get(to, 1000), &expected, "copied");
        d.0.release(from);
        d.0.release(to);
        d.0.release(d.0.allocate(0).unwrap());
    }
}

#[test]
fn an_unknown_kernel_and_a_broken_one_are_refused() {
    for d in devices("") {
        assert!(d.0.launch("nothing", 1, 1, &[]).is_err());
        let broken = "extern \"C\" __global__ void broken(int n) { undeclared = n; }";
        let log = format!("{:#}", d.0.compile(broken, &["broken"]).unwrap_err());
        assert!(log.contains("undeclared"), "{log}");
        let other = "extern \"C\" __global__ void kernel(int n) {}";
        assert!(d.0.compile(other, &["another"]).is_err());
    }
}

/// All ways to multiply, in single precision against double: the error of a sum of k products is below k rounding errors of its terms.
#[test]
fn products_are_those_of_the_definition() {
    for d in devices("") {
        for (m, n, k, batch) in [
            (1, 1, 1, 1),
            (5, 3, 7, 3),
            (33, 17, 65, 2),
            (4, 9, 1, 1),
            (0, 3, 2, 2),
            (2, 2, 3, 0),
        ] {
            for case in 0..32 {
                let [ta, tb, add, shared, listed] = [1, 2, 4, 8, 16].map(|bit| case & bit != 0);
                product(&d, [m, n, k, batch], [ta, tb], [add, shared, listed]);
            }
        }
    }
}

fn product(
    d: &Bench,
    [m, n, k, batch]: [usize; 4],
    transposed: [bool; 2],
    [add, shared, listed]: [bool; 3],
) {
    let strides = [if shared { 0 } else { m * k + 5 }, k * n + 2, m * n + 3];
    let numbers = [1, 2, 3].map(|i| numbers(strides[i - 1] * batch + m * k, i as u64, false));
    let [a, b, out] = [0, 1, 2].map(|i| Factor {
        data: d.put(&numbers[i]),
        stride: strides[i],
        transposed: i < 2 && transposed[i],
    });
    // The same matrices, by lists of where they are.
    let addresses = |f: Factor| {
        let at = |i| f.data.offset(4 * i * f.stride).0;
        let data = d.put(&(0..batch).map(at).collect::<Vec<u64>>());
        Factor { data, ..f }
    };
    let given = match listed {
        true => [a, b, out].map(addresses),
        false => [a, b, out],
    };
    d.0.multiply(&Product {
        m,
        n,
        k,
        a: given[0],
        b: given[1],
        out: given[2],
        batch,
        add,
        listed,
    })
    .unwrap();
    let mut expected = doubles(&numbers[2]);
    for i in 0..batch {
        for (row, column) in (0..m).flat_map(|r| (0..n).map(move |c| (r, c))) {
            let x = |l| {
                numbers[0][i * strides[0]
                    + if transposed[0] {
                        l * m + row
                    } else {
                        row * k + l
                    }] as f64
            };
            let y = |l| {
                numbers[1][i * strides[1]
                    + if transposed[1] {
                        column * k + l
                    } else {
                        l * n + column
                    }] as f64
            };
            let sum: f64 = (0..k).map(|l| x(l) * y(l)).sum();
            let at = &mut expected[i * strides[2] + row * n + column];
            *at = if add { *at + sum } else { sum };
        }
    }
    let what = format!(
        "[{m}, {k}]·[{k}, {n}] × {batch}, {transposed:?}, add {add}, shared {shared}, listed {listed}"
    );
    // The largest terms are about 60².
    near(
        &doubles(&d.get(out.data, numbers[2].len())),
        &expected,
        1e-3,
        &what,
    );
    [a, b, out]
        .into_iter()
        .map(|f| f.data)
        .for_each(|p: Pointer| d.0.release(p));
}
