use super::*;
use crate::kernels::elementwise::Activation;
use crate::model::initialise::Initialise;
use crate::model::mlp::Mlp;
use crate::model::naming::{RENAME, TRANSPOSE};
use crate::options::{OptionMap, Options, Spec, Value};
use crate::store::weights::save_weights;
use std::path::PathBuf;

const SPECS: &[Spec] = &[RENAME, TRANSPOSE];

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("ergodic-load-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mlp(widths: &[usize]) -> Mlp {
    let initialise = Initialise::Pytorch;
    let widths = widths.to_vec();
    Mlp::new(
        "mlp",
        widths,
        Activation::Tanh,
        Activation::Identity,
        true,
        initialise,
    )
}

fn naming(rename: &[(&str, &str)], transpose: Option<Value>) -> Naming {
    let pairs = rename.iter().map(|(a, b)| (a.to_string(), Value::from(*b)));
    let given = match rename {
        [] => OptionMap::new(),
        _ => OptionMap::new().with("rename", Value::Map(pairs.collect())),
    };
    let given = match transpose {
        None => given,
        Some(t) => given.with("transpose", t),
    };
    Naming::from_options(&Options::check("load", SPECS, given.into_pairs()).unwrap()).unwrap()
}

#[test]
fn tensors_are_found_by_name_and_must_fit() {
    let folder = Folder::new("names");
    let path = folder.0.join("w.safetensors");
    let layout = Layout::new([("a".into(), vec![2]), ("b".into(), vec![1, 2])]);
    let save = |tensors: &[(&str, Vec<usize>)]| {
        let values = [1.0, 2.0];
        let tensors: Vec<_> = tensors
            .iter()
            .map(|(n, s)| (n.to_string(), s.clone(), &values[..s.iter().product()]))
            .collect();
        save_weights(&path, &tensors, &[]).unwrap();
        weights(&layout, &path).map_err(|e| e.to_string())
    };
    assert_eq!(
        save(&[("b", vec![1, 2]), ("a", vec![2])]),
        Ok(vec![1.0, 2.0, 1.0, 2.0])
    );
    let message = save(&[("a", vec![2])]).unwrap_err();
    assert!(message.contains("no tensor 'b'"), "{message}");
    let message = save(&[("a", vec![2]), ("b", vec![2])]).unwrap_err();
    assert!(
        message.contains("shape [2], but the model's has [1, 2]"),
        "{message}"
    );
    let message = save(&[("a", vec![2]), ("b", vec![1, 2]), ("c", vec![1])]).unwrap_err();
    assert!(message.contains("a tensor 'c'"), "{message}");
}

/// Every combination of names and orders comes back, through every format.
#[test]
fn what_is_saved_loads_with_the_same_options() {
    let folder = Folder::new("back");
    let net = mlp(&[2, 3, 3, 2]);
    let w: Vec<f32> = (0..net.layout().len()).map(|i| i as f32).collect();
    let names = [
        ("0.weight", "w1"),
        ("0.bias", "b1"),
        ("2.weight", "w2"),
        ("2.bias", "b2"),
    ];
    let last = [("4.weight", "w3"), ("4.bias", "b3")];
    let all = [&names[..], &last].concat();
    let cases = [
        naming(&[], None),
        naming(&all, None),
        naming(&[("net.*", "*")], Some(vec!["w1", "w3"].into())),
        naming(&all, Some(vec!["*.weight"].into())),
        naming(&names, Some(true.into())),
        naming(
            &[("layers.*.kernel", "w*"), ("layers.1.bias", "b1")],
            Some(vec!["w2"].into()),
        ),
    ];
    for (k, mut naming) in cases.into_iter().enumerate() {
        for end in ["pt", "pth", "npz", "safetensors"] {
            let path = folder.0.join(format!("{k}.{end}"));
            let saved = saved(&net, &w, &path, &naming).unwrap();
            let views: Vec<_> = saved
                .iter()
                .map(|(n, s, x)| (n.clone(), s.clone(), &x[..]))
                .collect();
            named::write(&path, &views).unwrap();
            let loaded = load(&net, &path, &mut naming, None).unwrap();
            assert_eq!((loaded.w, loaded.notes), (w.clone(), vec![]), "{k} {end}");
            let found = named::read(&path, None).unwrap();
            assert_eq!(found.tensors, saved, "{k} {end}");
            assert_eq!(
                saved_like(&net, &w, &path, &mut naming, None).unwrap(),
                saved
            );
        }
    }
}

/// Tensors of a file with these names, of the shapes and values of the model's.
fn file(net: &Mlp, w: &[f32], names: &[&str]) -> Found {
    let tensors = net.layout().tensors().iter().zip(names);
    let tensors =
        tensors.map(|(t, n)| (n.to_string(), t.shape.clone(), w[t.range.clone()].to_vec()));
    Found {
        tensors: tensors.collect(),
        others: Vec::new(),
    }
}

fn read(net: &Mlp, found: &Found) -> Result<(Vec<f32>, Vec<String>), String> {
    let mut notes = Vec::new();
    let pairs = pairs(
        net,
        Path::new("x"),
        found,
        &mut Naming::default(),
        &mut notes,
    );
    let mut w = vec![0.0; net.layout().len()];
    for p in pairs.map_err(|e| e.to_string())? {
        w[p.tensor.range.clone()].copy_from_slice(&p.stored.2);
    }
    Ok((w, notes))
}

#[test]
fn names_are_found_out_where_there_is_one_reading() {
    // 4-8-4 and 5-5-5-5: shapes alone do not tell layers apart, numbers do.
    for widths in [&[4, 8, 4][..], &[5; 4], &[1; 14]] {
        let net = mlp(widths);
        let w: Vec<f32> = (0..net.layout().len()).map(|i| i as f32).collect();
        let names = (0..widths.len() - 1).flat_map(|l| {
            [
                format!("net.{}.weight", 2 * l),
                format!("net.{}.bias", 2 * l),
            ]
        });
        let names: Vec<_> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut found = file(&net, &w, &names);
        let said = "as with #{ rename: #{ \"net.0.weight\": \"w1\", \"net.0.bias\": \"b1\", \"net.2.weight\": \"w2\"";
        // As in a file that sorts its tensors by name: "10" before "2".
        for _ in 0..2 {
            let (read, notes) = read(&net, &found).unwrap();
            assert_eq!(read, w);
            assert!(notes[0].contains(said), "{notes:?}");
            found.tensors.sort_by(|a, b| a.0.cmp(&b.0));
        }
    }
    let net = mlp(&[5, 5, 5]);
    let w = vec![0.0; net.layout().len()];
    let said = |names: &[&str]| read(&net, &file(&net, &w, names)).unwrap_err();
    let message = said(&["in.weight", "in.bias", "out.weight", "out.bias"]);
    let example = "for example by #{ rename: #{ \"in.weight\": \"w1\", \"in.bias\": \"b1\", \"out.weight\": \"w2\", \"out.bias\": \"b2\" } }";
    assert!(message.contains(example), "{message}");
    // One that is called as in the model: others are missing, not renamed.
    let message = said(&["w1", "0.bias", "2.weight", "2.bias"]);
    assert!(message.contains("no tensor 'b1'"), "{message}");
    let net = mlp(&[5, 5]);
    let message = said(&["0.weight", "0.bias"]);
    assert!(
        message.contains(
            "shapes are not the model's: it has 0.weight [5, 5], 0.bias [5]; the model has w1"
        ),
        "{message}"
    );
    let more = read(
        &net,
        &file(
            &mlp(&[5, 5, 5]),
            &w,
            &["0.weight", "0.bias", "2.weight", "2.bias"],
        ),
    );
    assert!(
        more.unwrap_err()
            .contains("more tensors than the model: 2.weight, 2.bias")
    );
}

#[test]
fn a_matrix_the_other_way_round_is_said_with_the_option_that_helps() {
    let net = mlp(&[2, 3, 3, 2]);
    let w = vec![0.0; net.layout().len()];
    let mut found = file(&net, &w, &["w1", "b1", "w2", "b2", "w3", "b3"]);
    for t in &mut found.tensors {
        t.1.reverse();
    }
    let message = read(&net, &found).unwrap_err();
    assert!(
        message.contains("name all that are transposed in the option 'transpose'; of w2, which fit both ways, the shape does not tell"),
        "{message}"
    );
}

#[test]
fn options_that_name_nothing_say_so() {
    let net = mlp(&[2, 3]);
    let w = vec![0.0; 9];
    let said = |rename: &[(&str, &str)], transpose: &[&str]| {
        let found = file(&net, &w, &["0.weight", "0.bias"]);
        let mut naming = naming(rename, Some(transpose.to_vec().into()));
        match pairs(&net, Path::new("x"), &found, &mut naming, &mut Vec::new()) {
            Ok(_) => String::new(),
            Err(e) => e.to_string(),
        }
    };
    let right = [("0.weight", "w1"), ("0.bias", "b1")];
    let with = |more| [&right[..], &[more]].concat();
    assert!(said(&with(("0.weigth", "w1")), &[]).contains("did you mean '0.weight'?"));
    assert!(said(&right, &["w2"]).contains("'transpose' has \"w2\", but there is no such tensor"));
    assert!(said(&right, &["b1"]).contains("no matrix: its shape is [3]"));
    assert!(said(&right, &["w1"]).contains("#{ transpose: [] }"));
    assert!(
        said(&[("0.weight", "w1"), ("0.bias", "w1")], &[])
            .contains("both '0.weight' and '0.bias' are 'w1'")
    );
    assert!(
        said(&with(("0.bias", "b2")), &[])
            .contains("has \"b2\", which the model does not have; did you mean 'b1'?")
    );
    assert_eq!(said(&right, &[]), "");
    let refused = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(a, b)| (a.to_string(), Value::from(*b)));
        let given = vec![("rename".to_string(), Value::Map(pairs.collect()))];
        Naming::from_options(&Options::check("load", SPECS, given).unwrap())
            .unwrap_err()
            .to_string()
    };
    for pair in [("*.weight", "w1"), ("a.weight", "w*"), ("*.*", "*.*")] {
        assert!(refused(&[pair]).contains("one * on both sides or none"));
    }
}

#[test]
fn a_guess_follows_the_file_where_prefixes_differ() {
    let net = mlp(&[4; 5]);
    let w: Vec<f32> = (0..net.layout().len()).map(|i| i as f32).collect();
    let names =
        ["enc.0", "enc.2", "dec.0", "dec.2"].map(|l| [format!("{l}.weight"), format!("{l}.bias")]);
    let names: Vec<_> = names.iter().flatten().map(String::as_str).collect();
    let said = read(&net, &file(&net, &w, &names)).unwrap_err();
    let guess = "\"enc.2.weight\": \"w2\", \"enc.2.bias\": \"b2\", \"dec.0.weight\": \"w3\"";
    assert!(
        said.contains("say which is which") && said.contains(guess),
        "{said}"
    );
    // A beginning that is taken away leaves shapes and numbers.
    let names =
        ["0", "2", "4", "6"].map(|l| [format!("module.{l}.weight"), format!("module.{l}.bias")]);
    let names: Vec<_> = names.iter().flatten().map(String::as_str).collect();
    let mut naming = naming(&[("module.*", "*")], None);
    let found = file(&net, &w, &names);
    let pairs = pairs(&net, Path::new("x"), &found, &mut naming, &mut Vec::new()).unwrap();
    assert!(
        pairs
            .iter()
            .all(|p| p.stored.2 == w[p.tensor.range.clone()])
    );
}

/// Ten and more layers under one name, one under another, in a file that has its names in alphabetical order.
#[test]
fn numbers_count_where_another_name_stands_beside_them() {
    let net = mlp(&[4; 13]);
    let w: Vec<f32> = (0..net.layout().len()).map(|i| i as f32).collect();
    let layer = |l: usize| match l {
        11 => "head.0".to_string(),
        l => format!("body.{}", 2 * l),
    };
    let names = (0..12).flat_map(|l| ["weight", "bias"].map(|of| format!("{}.{of}", layer(l))));
    let names: Vec<_> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut found = file(&net, &w, &names);
    found.tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let said = read(&net, &found).unwrap_err();
    let guess = "\"body.0.weight\": \"w1\", \"body.0.bias\": \"b1\", \"body.2.weight\": \"w2\"";
    assert!(
        said.contains("say which is which") && said.contains(guess),
        "{said}"
    );
    // Where shapes tell the two names apart there is one reading.
    let net = mlp(&[[4; 12].to_vec(), vec![3]].concat());
    let w: Vec<f32> = (0..net.layout().len()).map(|i| i as f32).collect();
    let mut found = file(&net, &w, &names);
    found.tensors.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(read(&net, &found).unwrap().0, w);
}
