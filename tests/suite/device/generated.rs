//! The CUDA source of kernels that are written once says what their Rust does.

use super::bench::{A, devices, near, numbers, same};
use super::nvrtc;
use ergodic::kernels::device::STATIC;
use ergodic::kernels::map::{Kernel, Reduction};
use ergodic::kernels::update::*;

static PASSES: [&Kernel; 6] = [
    &LANGEVIN,
    &DRAW_MOMENTUM,
    &KICK_AND_DRIFT,
    &KICK,
    &WELFORD,
    &FILL,
];
static SUMS: [&Reduction; 4] = [&DOT, &TOTAL, &SQUARED_DISTANCE, &TWICE_KINETIC];

fn source() -> String {
    let passes = PASSES.iter().map(|k| k.cuda());
    let sums = SUMS.iter().map(|k| k.cuda());
    passes
        .chain(sums)
        .fold(STATIC.to_string(), |all, k| all + k.as_str())
}

#[test]
fn generated_kernels_compile_under_nvrtc() {
    nvrtc::compile_all(&[source()]);
}

#[test]
fn generated_passes_have_the_bits_of_the_cpu() {
    for d in devices(&source()) {
        for (kernel, (chains, n, stride)) in PASSES
            .into_iter()
            .flat_map(|k| [(1, 1usize, 1), (3, 201, 210)].map(|s| (k, s)))
        {
            let vector = |i: usize| numbers(chains * stride, 20 + i as u64, true);
            let mut outs: Vec<_> = (0..kernel.outs.len()).map(vector).collect();
            let ins: Vec<_> = (0..kernel.ins.len()).map(|i| vector(9 + i)).collect();
            let k = kernel.scalars.len();
            let scalars = numbers(chains * k, 7, false);
            let (streams, streams_at) = d.streams(chains);
            let outs_at: Vec<_> = outs.iter().map(|x| d.put(x)).collect();
            let mut args = vec![A::from(n as i64), A::from(stride as i64), A::from(chains)];
            args.extend(outs_at.iter().map(|x| A::from(*x)));
            args.extend(ins.iter().map(|x| A::from(d.put(x))));
            args.extend([A::from(d.put(&scalars)), A::from(streams_at)]);
            d.launch(kernel.name, n.div_ceil(64) * 16, chains, &args);
            for c in 0..chains {
                let part = c * stride..c * stride + n;
                let mut outs: Vec<_> = outs.iter_mut().map(|x| &mut x[part.clone()]).collect();
                let ins: Vec<_> = ins.iter().map(|x| &x[part.clone()]).collect();
                kernel.run(&mut outs, &ins, &scalars[c * k..][..k], &streams[c]);
            }
            for (at, expected) in outs_at.iter().zip(&outs) {
                same(&d.get(*at, chains * stride), expected, kernel.name);
            }
        }
    }
}

#[test]
fn generated_sums_agree_with_the_cpu() {
    let parts = Reduction::PARTIALS;
    for d in devices(&source()) {
        for (sum, (chains, n, stride)) in SUMS
            .into_iter()
            .flat_map(|k| [(1, 1usize, 1), (3, 2201, 2210)].map(|s| (k, s)))
        {
            let ins: Vec<_> = (0..sum.ins.len())
                .map(|i| numbers(chains * stride, i as u64, false))
                .collect();
            let partials = d.room::<f64>(chains * parts);
            let mut args = vec![A::from(n as i64), A::from(stride as i64), A::from(chains)];
            args.extend(ins.iter().map(|x| A::from(d.put(x))));
            args.push(A::from(partials));
            d.launch(sum.name, parts, chains, &args);
            let values: Vec<_> = d
                .get::<f64>(partials, chains * parts)
                .chunks(parts)
                .map(|p| sum.finish(p.iter().copied()))
                .collect();
            let expected: Vec<_> = (0..chains)
                .map(|c| {
                    let ins: Vec<_> = ins.iter().map(|x| &x[c * stride..][..n]).collect();
                    (sum.cpu)(&ins)
                })
                .collect();
            near(&values, &expected, 1e-11, sum.name);
        }
    }
}
