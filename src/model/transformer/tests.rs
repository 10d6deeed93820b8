//! Sizes, places and initial parameters; gradients are tested in `tests/suite/transformer.rs`.

use super::*;
use crate::options::Value;

fn build(given: &[(&str, Value)]) -> Result<Arc<dyn Model>> {
    let given = given.iter().map(|(n, v)| (n.to_string(), v.clone()));
    (ENTRY.build)(&Options::check(ENTRY.name, ENTRY.options, given.collect())?)
}

const SIZES: [(&str, Value); 2] = [
    ("vocabulary", Value::Int(5000)),
    ("context", Value::Int(1024)),
];

#[test]
fn the_network_of_the_paper_has_its_size_and_its_heads_are_slices() {
    let net = build(&SIZES).unwrap();
    let n = 2 * 5000 * 256 + 1024 * 256 + 4 * (4 * 256 * 256 + 2 * 256) + 2 * 256;
    assert_eq!(net.layout().len(), n);
    assert_eq!(
        (net.inputs(), net.positions(), net.outputs()),
        (1024, 1024, 1024 * 5000)
    );
    for matrix in ["query", "key", "value", "out"] {
        let t = net
            .layout()
            .tensor(&format!("block2.attn.{matrix}"))
            .unwrap();
        assert_eq!(t.shape, [8, 32, 256]);
    }
}

#[test]
fn places_are_those_of_the_layout() {
    for (layer_norm, bias) in [(true, true), (true, false), (false, true), (false, false)] {
        let more = [
            ("layer_norm", Value::Bool(layer_norm)),
            ("bias", Value::Bool(bias)),
        ];
        let options = [&SIZES[..], &more].concat();
        let given = options.iter().map(|(n, v)| (n.to_string(), v.clone()));
        let o = Options::check(ENTRY.name, ENTRY.options, given.collect()).unwrap();
        let net = Transformer::new(settings(&o).unwrap()).unwrap();
        let start = |name: &str| net.layout.tensor(name).map(|t| t.range.start);
        let p = &net.places;
        for (l, b) in p.blocks.iter().enumerate() {
            let attn = |name: &str| start(&format!("block{}.attn.{name}", l + 1)).unwrap();
            assert_eq!(b.query_key, attn("query")..attn("value"));
            assert_eq!(b.value, attn("value")..attn("out"));
            assert_eq!(b.out.start, attn("out"));
            if bias {
                assert_eq!(b.query_key_bias, attn("query_bias")..attn("value_bias"));
                assert_eq!(b.value_bias, attn("value_bias")..attn("out_bias"));
                assert_eq!(b.out_bias.start, attn("out_bias"));
            }
            if layer_norm {
                assert_eq!(
                    b.norm.start,
                    start(&format!("block{}.norm.weight", l + 1)).unwrap()
                );
            }
        }
        assert_eq!(p.unembed.start, start("unembed").unwrap());
        assert_eq!(p.unembed_bias.end, net.layout.len());
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let message = |more: &[(&str, Value)]| {
        build(&[&SIZES[..], more].concat())
            .err()
            .unwrap()
            .to_string()
    };
    let e = message(&[("heads", Value::Int(7))]);
    assert!(
        e.contains("256 is not a multiple of the number of heads, 7"),
        "{e}"
    );
    let e = message(&[
        ("width", Value::Int(65536)),
        ("head_width", Value::Int(65536)),
    ]);
    assert!(e.contains("more than 2^32 parameters"), "{e}");
    assert!(
        build(&[])
            .err()
            .unwrap()
            .to_string()
            .contains("needs the option 'vocabulary'")
    );
}

#[test]
fn initial_parameters_are_those_of_transformer_lens() {
    let net = build(&[&SIZES[..], &[("bias", Value::Bool(true))]].concat()).unwrap();
    let w = net.initialise(Stream::new(1, crate::rng::Purpose::Initialise, 0, 0));
    let of = |name: &str| &w[net.layout().tensor(name).unwrap().range.clone()];
    assert!(of("block3.norm.weight").iter().all(|x| *x == 1.0));
    assert!(
        of("final_norm.bias")
            .iter()
            .chain(of("block1.attn.out_bias"))
            .all(|x| *x == 0.0)
    );
    let out = of("block4.attn.out");
    let variance = out.iter().map(|x| (*x as f64).powi(2)).sum::<f64>() / out.len() as f64;
    // Null: variance 0.64/256, with a relative standard error of √(2/n).
    assert!((variance * 400.0 - 1.0).abs() < 4.0 * (2.0 / out.len() as f64).sqrt());
}

/// The traced graph, which accelerators compute, is the network: by candle, with every variant.
#[test]
fn the_traced_graph_is_the_same_network() {
    let sizes = [
        ("vocabulary", Value::Int(7)),
        ("context", Value::Int(5)),
        ("layers", Value::Int(2)),
        ("width", Value::Int(6)),
        ("heads", Value::Int(2)),
        ("head_width", Value::Int(4)),
    ];
    for (layer_norm, bias) in [(true, true), (true, false), (false, true), (false, false)] {
        let more = [
            ("layer_norm", Value::Bool(layer_norm)),
            ("bias", Value::Bool(bias)),
        ];
        let given = [&sizes[..], &more].concat();
        let given = given.iter().map(|(n, v)| (n.to_string(), v.clone()));
        let o = Options::check(ENTRY.name, ENTRY.options, given.collect()).unwrap();
        let net = Transformer::new(settings(&o).unwrap()).unwrap();
        let mut w = vec![0.0; net.layout.len()];
        fill_normal(
            &Stream::new(2, crate::rng::Purpose::Initialise, 0, 0),
            &mut w,
        );
        let w = Tensor::from_vec(w, net.layout.len(), &candle_core::Device::Cpu).unwrap();
        let tokens: Vec<f32> = (0..15).map(|i| (i * 4 % 7) as f32).collect();
        let tokens = Tensor::from_vec(tokens, (3, 5), &candle_core::Device::Cpu).unwrap();
        let (graph, parameters) = graph::graph(&net).unwrap();
        let each = parameters.iter().map(|(r, shape)| {
            let own = w.narrow(0, r.start, r.len()).unwrap();
            own.reshape(shape.as_slice()).unwrap()
        });
        let found = graph.evaluate(&each.collect::<Vec<_>>(), &tokens).unwrap();
        let expected = net.forward_tensor(&w, &tokens).unwrap();
        let largest = |t: &Tensor| {
            t.abs()
                .unwrap()
                .max_all()
                .unwrap()
                .to_scalar::<f32>()
                .unwrap()
        };
        let expected = expected.flatten_all().unwrap();
        let apart = largest(&(found.flatten_all().unwrap() - &expected).unwrap());
        // Without norms outputs are large, and so is what single precision leaves open.
        let most = apart / largest(&expected);
        assert!(most < 2e-6, "layer_norm {layer_norm}, bias {bias}: {most}");
    }
}
