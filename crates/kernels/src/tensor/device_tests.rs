//! Every operation that other tests try, on a device: forward and backward against the passes of this machine.

use super::device::{OnDevice, Place, run};
use super::layer_tests;
use super::tests::{self, Trial};
use crate::device::{Device, ELEMENTS, Pointer, STATIC};
use crate::testing::{bench::skip, emulated, nvrtc};
use std::collections::BTreeMap;

/// Chains of a trial: more than the emulated device has rows of blocks.
const CHAINS: usize = 3;
const ROWS: usize = 5;

/// Numbers between the parameters of one chain and those of the next.
const GAP: usize = 3;

fn bytes<T: Copy>(data: &[T]) -> &[u8] {
    // SAFETY: only called with numbers.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

fn put<T: Copy>(device: &dyn Device, data: &[T]) -> Pointer {
    let at = device.allocate(size_of_val(data).max(4)).unwrap();
    device.upload(bytes(data), at).unwrap();
    at
}

fn get(device: &dyn Device, at: Pointer, count: usize) -> Vec<f32> {
    let mut out = vec![0u8; 4 * count];
    device.download(at, &mut out).unwrap();
    out.chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// Outputs and gradients of all chains, `[chains, rows, outputs]` and `[chains, n + GAP]`.
fn on_device(
    device: &dyn Device,
    program: &OnDevice,
    (w, dim): (&[f32], usize),
    x: &[f32],
    delta: &[f32],
) -> [Vec<f32>; 2] {
    let plan = program.plan(ROWS, CHAINS, dim);
    let mut memory = BTreeMap::from([
        (Place::Inputs, put(device, x)),
        (Place::Parameters, put(device, w)),
        (Place::Gradient, put(device, &vec![0f32; w.len()])),
        (Place::Constants, put(device, program.constants())),
        (Place::Lists, put(device, program.lists())),
    ]);
    for (place, count) in &plan.sizes {
        let bytes = if *place == Place::Addresses { 8 } else { 4 } * count.max(&1);
        // What nobody has written must not count.
        let at = device.allocate(bytes).unwrap();
        let fill = if *place == Place::Common { 0 } else { 0xff };
        device.upload(&vec![fill; bytes], at).unwrap();
        memory.insert(*place, at);
    }
    let last = program.last();
    device
        .upload(bytes(delta), memory[&Place::Delta(last)])
        .unwrap();
    for steps in [&plan.prepare, &plan.forward, &plan.backward, &plan.finish] {
        run(steps, device, CHAINS, |place| Ok(memory[&place])).unwrap();
    }
    let out = [
        get(device, memory[&Place::Value(last)], delta.len()),
        get(device, memory[&Place::Gradient], w.len()),
    ];
    memory.into_values().for_each(|at| device.release(at));
    out
}

/// Compare the trials that tests make with what a device says.
fn compare(trials: Vec<(String, Trial)>) {
    let Some(device) = emulated::Emulated::new() else {
        return skip("no C++ compiler found");
    };
    let names = emulated::names(STATIC);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    device.compile(STATIC, &names).unwrap();
    let programs: Vec<_> = trials
        .into_iter()
        .map(|(name, t)| (name, OnDevice::new(t.program.clone()), t))
        .collect();
    // One source for all.
    let mut kernels: BTreeMap<String, String> = BTreeMap::new();
    for (_, p, _) in &programs {
        kernels.extend(p.each_kernel().map(|(n, s)| (n.to_string(), s.to_string())));
    }
    let source: String = kernels.values().map(String::as_str).collect();
    let names: Vec<_> = kernels.keys().map(String::as_str).collect();
    let source = format!("{ELEMENTS}\n{source}");
    device.compile(&source, &names).unwrap();
    nvrtc::compile_all(&[source]);
    for (name, program, t) in &programs {
        let n = t.ranges.last().unwrap().end;
        let w: Vec<Vec<f32>> = (0..CHAINS as u64)
            .map(|c| tests::normals(n, 11 + c))
            .collect();
        let x = tests::normals(CHAINS * ROWS * t.inputs, 21);
        let delta = tests::normals(CHAINS * ROWS * t.outputs, 22);
        let dim = n + GAP;
        let all: Vec<f32> = w
            .iter()
            .flat_map(|w| [&w[..], &[0.0; GAP]].concat())
            .collect();
        let [values, gradients] = on_device(&device, program, (&all, dim), &x, &delta);
        for (c, w) in w.iter().enumerate() {
            let part = |v: &[f32], one: usize| v[c * one..(c + 1) * one].to_vec();
            let x = part(&x, ROWS * t.inputs);
            let delta = part(&delta, ROWS * t.outputs);
            let [expected, slopes] = t.run_rows(ROWS, w, &x, &delta);
            let found = part(&values, ROWS * t.outputs);
            near(name, "values", &found, &expected);
            near(name, "gradient", &part(&gradients, dim)[..n], &slopes);
            assert_eq!(part(&gradients, dim)[n..], [0.0; GAP], "{name}");
        }
    }
}

fn near(name: &str, what: &str, a: &[f32], b: &[f32]) {
    let size = b.iter().map(|x| x.abs()).filter(|x| x.is_finite());
    let size = size.fold(1e-3f32, f32::max);
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        let same = a == b || a.is_nan() && b.is_nan();
        assert!(
            same || (a - b).abs() <= 1e-5 * size + 1e-5 * b.abs(),
            "{name}: {what} {i} is {a:e} on the device, {b:e} here"
        );
    }
}

#[test]
#[ignore = "long: tests/run"]
fn every_operation_on_a_device() {
    let trials = tests::recorded(|| {
        tests::all();
        layer_tests::all();
    });
    assert!(trials.len() > 150, "{}", trials.len());
    compare(trials);
}
