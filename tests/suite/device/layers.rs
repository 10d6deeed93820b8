//! Activations, their derivatives, losses.

use super::bench::{args, doubles, near, numbers, same};
use super::{SHAPES, devices};
use ergodic::kernels::device::Pointer;
use ergodic::kernels::elementwise::{self, Activation};
use ergodic::kernels::gemm::Part;

#[test]
fn activations_and_their_derivatives_match_nan_included() {
    use Activation::{Gelu, Identity, Logistic, Relu, Tanh};
    for d in devices() {
        for (kind, f) in [Relu, Tanh, Logistic, Gelu, Identity]
            .into_iter()
            .enumerate()
        {
            for ((chains, rows, columns), with_bias) in
                SHAPES.into_iter().flat_map(|s| [(s, true), (s, false)])
            {
                let (n, stride, offset) = (rows * columns, 2 * columns + 3, columns + 1);
                let z = numbers(chains * n, 3, true);
                let params = numbers(chains * stride, 4, false);
                let deltas = numbers(chains * n, 5, true);
                let (at, before, delta) = (d.put(&z), d.room::<f32>(chains * n), d.put(&deltas));
                let bias = if with_bias { offset as i64 } else { -1 };
                let args = args![
                    at,
                    chains,
                    rows,
                    columns,
                    d.put(&params),
                    stride as i64,
                    bias,
                    kind,
                    before
                ];
                d.launch("bias_activation", n, chains, args);
                d.launch(
                    "times_derivative",
                    n,
                    chains,
                    args![delta, chains, rows, columns, at, before, kind],
                );
                let (mut a, mut x, mut g) = (z.clone(), z.clone(), deltas.clone());
                for c in 0..chains {
                    let part = c * n..(c + 1) * n;
                    let bias = if with_bias {
                        &params[c * stride + offset..][..columns]
                    } else {
                        &[]
                    };
                    let (a, x) = (&mut a[part.clone()], &mut x[part.clone()]);
                    let mut before = vec![0.0; n];
                    let apply = |z: &mut [f32], f, before: &mut [f32]| {
                        let z = &mut Part::whole(z, rows, columns);
                        let before = &mut Part::whole(before, rows, columns);
                        elementwise::bias_and_activation(z, bias, f, before);
                    };
                    apply(x, Identity, &mut before);
                    apply(a, f, &mut before);
                    let mut delta = Part::whole(&mut g[part], rows, columns);
                    elementwise::times_derivative(&mut delta, a, x, f);
                }
                same(&d.get(before, chains * n), &x, "before");
                if f == Gelu {
                    near(&doubles(&d.get(at, chains * n)), &doubles(&a), 1e-6, "gelu");
                    near(
                        &doubles(&d.get(delta, chains * n)),
                        &doubles(&g),
                        2e-6,
                        "gelu'",
                    );
                } else {
                    same(&d.get(at, chains * n), &a, f.name());
                    same(&d.get(delta, chains * n), &g, f.name());
                }
            }
        }
    }
}

/// Loss, errors and derivative of a row, as `Loss::evaluate` has them.
fn row_loss(kind: &str, z: &[f32], label: usize, values: &[f32]) -> (f64, u32, Vec<f32>) {
    let mut best = 0;
    (0..z.len()).for_each(|k| {
        if z[k] > z[best] {
            best = k
        }
    });
    let wrong = u32::from(best != label && kind != "squared_error_values");
    if kind == "cross_entropy" {
        let (mut delta, mut log_sum) = (z.to_vec(), [0.0]);
        elementwise::softmax_rows(&mut delta, z.len(), &mut log_sum);
        delta[label] -= 1.0;
        return (log_sum[0] - z[label] as f64, wrong, delta);
    }
    let target = |k: usize| {
        if kind == "squared_error_values" {
            values[k]
        } else {
            f32::from(k == label)
        }
    };
    let differences = || z.iter().enumerate().map(|(k, z)| z - target(k));
    (
        differences().map(|x| x as f64 * x as f64).sum(),
        wrong,
        differences().map(|x| 2.0 * x).collect(),
    )
}

#[test]
fn losses_are_those_of_the_cpu() {
    for d in devices() {
        for (kind, (chains, rows, columns)) in [
            "cross_entropy",
            "squared_error_values",
            "squared_error_classes",
        ]
        .into_iter()
        .flat_map(|k| SHAPES.map(|s| (k, s)))
        {
            let n = chains * rows;
            let outputs = numbers(n * columns, 6, true);
            let values = numbers(n * columns, 7, false);
            let labels: Vec<u32> = (0..n).map(|i| (i * 5 % columns) as u32).collect();
            let targets = if kind == "squared_error_values" {
                d.put(&values)
            } else {
                d.put(&labels)
            };
            let (delta, loss, wrong) = (
                d.room::<f32>(n * columns),
                d.room::<f64>(n),
                d.room::<u32>(n),
            );
            let at = d.put(&outputs);
            let expected: Vec<_> = (0..n)
                .map(|r| {
                    let row = r * columns..(r + 1) * columns;
                    row_loss(
                        kind,
                        &outputs[row.clone()],
                        labels[r] as usize,
                        &values[row],
                    )
                })
                .collect();
            for delta in [Pointer::NULL, delta] {
                d.launch(
                    kind,
                    rows,
                    chains,
                    args![
                        at,
                        chains,
                        rows,
                        columns,
                        1usize,
                        targets,
                        Pointer::NULL,
                        delta,
                        loss,
                        wrong
                    ],
                );
                let losses: Vec<_> = expected.iter().map(|e| e.0).collect();
                near(&d.get(loss, n), &losses, 1e-14, kind);
                assert_eq!(
                    d.get::<u32>(wrong, n),
                    expected.iter().map(|e| e.1).collect::<Vec<_>>()
                );
            }
            same(
                &d.get(delta, n * columns),
                &expected.into_iter().flat_map(|e| e.2).collect::<Vec<_>>(),
                kind,
            );
        }
    }
}
