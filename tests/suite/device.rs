//! The kernels of accelerators do what those of the CPU do: the same bits where the order of operations is the same.
//!
//! They run on [`Emulated`](crate::emulated::Emulated), and with the feature `cuda` on the first GPU too.

pub mod bench;
mod generated;
mod layers;
mod memory;
pub mod nvrtc;
mod parameters;

use bench::{Bench, args, numbers, same};
use ergodic::kernels::{device::STATIC, math, normal::fill_normal};

/// Kernels that show what the functions of the prelude do.
const TRIALS: &str = r#"
extern "C" __global__ void trial_normals(int n, int chains, const Stream *streams, float *out) {
    for_each_chain(chain, chains) {
        const Stream s = streams[chain];
        float four[4];
        normals4(s.key[0], s.key[1], s.high[0], s.high[1], s.high[2], (unsigned)THREAD, four);
        for (int k = 0; k < 4; k++) {
            long long element = THREAD / 16 * 64 + THREAD % 16 + 16 * k;
            if (element < n) out[(long long)chain * n + element] = four[k];
        }
    }
}
extern "C" __global__ void trial_functions(const float *x, int n, float *out) {
    if (THREAD >= n) return;
    float v = x[THREAD];
    float *o = out + 8 * THREAD;
    o[0] = ln32(v);
    o[1] = exp32(v);
    o[2] = tanh32(v);
    o[3] = logistic32(v);
    sin_cos_eighth(v, o + 4, o + 5);
    o[6] = max(0.5f, v);
    o[7] = choose(v > 1.0f, root(v), v);
}
"#;

fn devices() -> Vec<Bench> {
    bench::devices(&format!("{STATIC}{TRIALS}"))
}

const SHAPES: [(usize, usize, usize); 4] = [(1, 1, 1), (3, 7, 5), (1, 300, 3), (5, 33, 17)];

#[test]
fn functions_and_normals_have_the_bits_of_the_cpu() {
    for d in devices() {
        let mut x = numbers(5000, 1, true);
        x.extend((0..4000).map(|i| i as f32 / 16000.0 - 0.125));
        let out = d.room::<f32>(8 * x.len());
        d.launch(
            "trial_functions",
            x.len(),
            1,
            args![d.put(&x), x.len(), out],
        );
        let expected: Vec<f32> = x
            .iter()
            .flat_map(|&x| {
                let (s, c) = math::sin_cos_eighth(x);
                let larger = if 0.5 > x { 0.5 } else { x };
                let chosen = if x > 1.0 { x.sqrt() } else { x };
                [
                    math::ln(x),
                    math::exp(x),
                    math::tanh(x),
                    math::logistic(x),
                    s,
                    c,
                    larger,
                    chosen,
                ]
            })
            .collect();
        same(&d.get(out, 8 * x.len()), &expected, "functions");
        for (n, chains) in [(1, 1), (63, 3), (64, 1), (5001, 3)] {
            let (streams, at) = d.streams(chains);
            let out = d.room::<f32>(n * chains);
            d.launch(
                "trial_normals",
                n.div_ceil(64) * 16,
                chains,
                args![n, chains, at, out],
            );
            let mut expected = vec![0.0; n * chains];
            for (s, chunk) in streams.iter().zip(expected.chunks_mut(n)) {
                fill_normal(s, chunk);
            }
            same(&d.get(out, n * chains), &expected, "normals");
        }
    }
}

#[test]
fn batches_hold_the_rows_that_the_cpu_would_draw() {
    for d in devices() {
        for (n, m, chains) in [
            (1usize, 1usize, 1usize),
            (10, 7, 3),
            (70_001, 1030, 3),
            (u32::MAX as usize, 8, 1),
        ] {
            let (streams, at) = d.streams(chains);
            let out = d.room::<u32>(m * chains);
            d.launch(
                "draw_indices",
                m.div_ceil(4),
                chains,
                args![n, m, at, chains, out],
            );
            let mut expected = vec![0; m * chains];
            for (s, chunk) in streams.iter().zip(expected.chunks_mut(m)) {
                s.indices(n, chunk);
            }
            assert_eq!(d.get::<u32>(out, m * chains), expected);
        }
        let (rows, start) = (50usize, 4usize);
        for (chains, m, dim) in SHAPES {
            let m = m.min(40);
            let floats = numbers(rows * dim, 2, true);
            let bytes: Vec<i8> = (0..rows * dim)
                .map(|i| (i * 37 % 256) as u8 as i8)
                .collect();
            let labels: Vec<u32> = (0..rows).map(|i| (i * 1313) as u32).collect();
            let drawn: Vec<u32> = (0..chains * m).map(|i| (i * 17 % rows) as u32).collect();
            let (f, b, l, numbers) = (d.put(&floats), d.put(&bytes), d.put(&labels), d.put(&drawn));
            let (out, out_labels) = (d.room::<f32>(chains * m * dim), d.room::<u32>(chains * m));
            let range: Vec<u32> = (0..chains)
                .flat_map(|_| (0..m).map(|r| (start + r) as u32))
                .collect();
            for (kind, which) in [("gather", &drawn), ("copy_rows", &range)] {
                let value = |data: &dyn Fn(usize) -> f32| -> Vec<f32> {
                    which
                        .iter()
                        .flat_map(|&r| (0..dim).map(move |k| r as usize * dim + k))
                        .map(data)
                        .collect()
                };
                for (ending, data, expected) in [
                    ("f32", f, value(&|i| floats[i])),
                    ("i8", b, value(&|i| bytes[i] as f32)),
                ] {
                    let name = format!("{kind}_{ending}");
                    match kind {
                        "gather" => d.launch(
                            &name,
                            m * dim,
                            chains,
                            args![data, dim, numbers, m, chains, m, out],
                        ),
                        _ => d.launch(
                            &name,
                            m * dim,
                            chains,
                            args![data, dim, start as i64, chains, m, out],
                        ),
                    }
                    same(&d.get(out, chains * m * dim), &expected, kind);
                }
                if kind == "gather" {
                    d.launch(
                        "gather_labels",
                        m,
                        chains,
                        args![l, 1usize, numbers, m, chains, m, out_labels],
                    );
                } else {
                    d.launch(
                        "copy_labels",
                        m,
                        chains,
                        args![l, 1usize, start as i64, chains, m, out_labels],
                    );
                }
                let expected: Vec<u32> = which.iter().map(|&r| labels[r as usize]).collect();
                assert_eq!(d.get::<u32>(out_labels, chains * m), expected);
            }
        }
    }
}
