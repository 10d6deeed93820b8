use super::*;
use crate::options::Value;
use crate::rng::{Purpose, Stream};
use std::f64::consts::TAU;

fn made(given: &[(&str, Value)]) -> Result<Arc<dyn Model>> {
    let folder = ("folder", Value::Text("tests/data/pretrained".into()));
    let given = given.iter().cloned().chain([folder]);
    let given = given.map(|(n, v)| (n.to_string(), v)).collect();
    ENTRY.make("model", given)
}

#[test]
fn a_folder_is_a_model_of_tokens_with_the_names_of_the_checkpoint() {
    let net = made(&[]).unwrap();
    assert_eq!(
        (
            net.inputs(),
            net.positions(),
            net.outputs(),
            net.vocabulary()
        ),
        (32, 32, 32 * 320, Some(320))
    );
    let names: Vec<_> = net.layout().tensors().iter().map(|t| &*t.name).collect();
    assert_eq!(
        names[..3],
        [
            "transformer.wte.weight",
            "transformer.wpe.weight",
            "transformer.h.0.ln_1.weight"
        ]
    );
    assert_eq!(
        (names.len(), *names.last().unwrap()),
        (28, "transformer.ln_f.bias")
    );
    // Numbers of the file, not a draw.
    let two = [1, 2].map(|seed| net.initialise(Stream::new(seed, Purpose::Initialise, 0, 0)));
    assert_eq!(two[0], two[1]);
}

#[test]
fn a_head_is_a_part_with_its_slices() {
    let net = made(&[]).unwrap();
    let head = net.layout().part("transformer.h.1.attn.head2").unwrap();
    let names: Vec<_> = head.iter().map(|p| (&*p.name, &p.shape[..])).collect();
    let of = "transformer.h.1.attn";
    let expected: [(String, &[usize]); 7] = [
        (format!("{of}.c_attn.weight[:, 16..24]"), &[32, 8]),
        (format!("{of}.c_attn.bias[16..24]"), &[8]),
        (format!("{of}.c_attn.weight[:, 48..56]"), &[32, 8]),
        (format!("{of}.c_attn.bias[48..56]"), &[8]),
        (format!("{of}.c_attn.weight[:, 80..88]"), &[32, 8]),
        (format!("{of}.c_attn.bias[80..88]"), &[8]),
        (format!("{of}.c_proj.weight[16..24]"), &[8, 32]),
    ];
    let expected: Vec<_> = expected.iter().map(|(n, s)| (&**n, *s)).collect();
    assert_eq!(names, expected);
    // Without the tensors that stay as they are.
    let frozen = Value::Text("transformer.h.1.attn.c_attn".into());
    let net = made(&[("freeze", frozen)]).unwrap();
    let head = net.layout().part("transformer.h.1.attn.head2").unwrap();
    assert_eq!(head.len(), 1);
}

#[test]
fn what_cannot_be_frozen_or_does_not_fit_is_refused() {
    let e = |given: &[(&str, Value)]| format!("{:#}", made(given).err().unwrap());
    let text = |t: &str| Value::Text(t.into());
    assert!(
        e(&[("freeze", text("wte"))])
            .contains("there is no parameter 'wte'; there are transformer.wte.weight")
    );
    assert!(e(&[("freeze", text("transformer"))]).contains("all parameters stay"));
    assert!(
        e(&[("context", Value::Int(33))])
            .contains("option 'context' is 33, but by config.json the network knows 32 positions")
    );
    assert!(e(&[("folder", text("README.md"))]).contains("'README.md' is a file"));
    assert!(e(&[("folder", text("src"))]).contains("config.json"));
}

#[test]
fn angles_are_those_of_the_papers() {
    let of = |rope: &str| {
        let c = Config::of(&format!(
            r#"{{ "max_position_embeddings": 64, "rope_theta": 100.0, "rope_scaling": {rope} }}"#
        ));
        c.frequencies(8, 1.0).map(|f| f.0)
    };
    let plain = of("null").unwrap();
    for (f, expected) in plain
        .iter()
        .zip([1.0, 100f64.powf(-0.25), 0.1, 100f64.powf(-0.75)])
    {
        assert!((f - expected).abs() < 1e-15);
    }
    let slow = of(r#"{ "type": "linear", "factor": 2.0 }"#).unwrap();
    assert!(plain.iter().zip(&slow).all(|(p, s)| p / 2.0 == *s));
    let llama = of(r#"{ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64 }"#).unwrap();
    let turns = plain.iter().map(|f| 64.0 * f / TAU);
    for ((f, p), turns) in llama.iter().zip(&plain).zip(turns) {
        let expected = match turns {
            t if t >= 4.0 => *p,
            t if t <= 1.0 => p / 8.0,
            t => p / 8.0 + (t - 1.0) / 3.0 * (p - p / 8.0),
        };
        assert!((f - expected).abs() < 1e-15);
    }
    assert!(
        of(r#"{ "type": "linear" }"#)
            .unwrap_err()
            .to_string()
            .contains("need 'factor'")
    );
    assert!(
        of(r#"{ "type": "dynamic" }"#)
            .unwrap_err()
            .to_string()
            .contains("\"dynamic\" are not supported")
    );
}
