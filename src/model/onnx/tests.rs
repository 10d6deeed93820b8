use super::proto::{
    Attribute, Entry, Graph, Length, Named, Node, Opset, Shape, Tensor, TensorType, Type,
};
use super::value::{ROWS, Value};
use super::*;
use crate::rng::{Purpose, Stream};

fn input(dims: &[i64]) -> Named {
    let length = |n: &i64| Length {
        value: (*n).max(0),
        name: if *n > 0 { String::new() } else { "open".into() },
    };
    let shape = Some(Shape {
        dims: dims.iter().map(length).collect(),
    });
    Named {
        name: "x".into(),
        kind: Some(Type {
            tensor: Some(TensorType { kind: 1, shape }),
        }),
    }
}

fn floats(name: &str, dims: &[i64], floats: &[f32]) -> Tensor {
    Tensor {
        name: name.into(),
        kind: 1,
        dims: dims.to_vec(),
        floats: floats.to_vec(),
        ..Tensor::default()
    }
}

fn node(operator: &str, inputs: &[&str], output: &str) -> Node {
    Node {
        operator: operator.into(),
        name: format!("node_{output}"),
        inputs: inputs.iter().map(|i| i.to_string()).collect(),
        outputs: vec![output.into()],
        ..Node::default()
    }
}

/// A product with weights [2, 2] and what comes after it.
fn message(dims: &[i64], after: Vec<Node>) -> proto::Model {
    let mut nodes = vec![node("MatMul", &["x", "fc.weight"], "h")];
    nodes.extend(after);
    let output = nodes.last().map(|n| n.outputs[0].clone());
    proto::Model {
        opsets: vec![Opset {
            domain: String::new(),
            version: 17,
        }],
        graph: Some(Graph {
            nodes,
            initializers: vec![floats("fc.weight", &[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            inputs: vec![input(dims)],
            remarks: Vec::new(),
            outputs: vec![Named {
                name: output.unwrap_or_default(),
                kind: None,
            }],
        }),
        ..proto::Model::default()
    }
}

fn read(m: proto::Model, folder: &Path) -> Result<Arc<dyn Model>> {
    let wanted = Wanted {
        name: "net".into(),
        ..Wanted::default()
    };
    Network::new(m, folder)?.model(wanted)
}

fn fails(m: proto::Model) -> String {
    match read(m, Path::new(".")) {
        Ok(net) => panic!("read as {}", net.describe()),
        Err(e) => format!("{e:#}"),
    }
}

#[test]
fn many_operators_are_known() {
    let mut names: Vec<_> = operators::all().map(|(n, _)| *n).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 100, "{count}");
}

#[test]
fn a_model_begins_with_the_numbers_of_its_file() {
    let net = read(
        message(&[0, 2], vec![node("Relu", &["h"], "y")]),
        Path::new("."),
    )
    .unwrap();
    let w = net.initialise(Stream::new(7, Purpose::Initialise, 0, 0));
    assert_eq!(w, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(net.layout().tensors()[0].name, "fc.weight");
    assert_eq!((net.inputs(), net.outputs()), (2, 2));
    assert!(
        net.describe().starts_with("onnx \"net\""),
        "{}",
        net.describe()
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let unknown = fails(message(&[0, 2], vec![node("GRU", &["h"], "y")]));
    assert!(unknown.contains("the node 'node_y' (GRU)"), "{unknown}");
    assert!(
        unknown.contains("the operator 'GRU' is not supported"),
        "{unknown}"
    );
    let open = fails(message(&[0, 0], vec![]));
    assert!(
        open.contains("lengths of the input 'x' open: open"),
        "{open}"
    );
    let mut old = message(&[0, 2], vec![]);
    old.opsets[0].version = 5;
    assert!(fails(old).contains("version 5"));
    let lost = fails(message(&[0, 2], vec![node("Add", &["h", "nothing"], "y")]));
    assert!(lost.contains("'nothing', which nothing has made"), "{lost}");
    let mut mixes = node("ReduceSum", &["h"], "y");
    mixes.attributes.push(Attribute {
        name: "axes".into(),
        ints: vec![0],
        ..Attribute::default()
    });
    let mixes = fails(message(&[0, 2], vec![mixes]));
    assert!(
        mixes.contains("along axis 0, which is that of the examples"),
        "{mixes}"
    );
    let mut short = message(&[0, 2], vec![]);
    short.graph.as_mut().unwrap().initializers[0].floats.pop();
    assert!(fails(short).contains("it has 3 numbers, but its shape [2, 2] needs 4"));
}

/// Lengths and steps far beyond those of any model, as a fuzzer writes them, are errors and no panics.
#[test]
fn numbers_out_of_all_bounds_are_refused() {
    let product = node("MatMul", &["h", "scalar"], "y");
    let mut scalar = message(&[0, 2], vec![product]);
    let graph = scalar.graph.as_mut().unwrap();
    graph.initializers.push(floats("scalar", &[], &[1.0]));
    assert!(fails(scalar).contains("a single number has no rows"));
    let with = |mut node: Node, given: &[(&str, Vec<i64>)]| {
        let ints = |(name, ints): &(&str, Vec<i64>)| Attribute {
            name: (*name).into(),
            ints: ints.clone(),
            ..Attribute::default()
        };
        node.attributes.extend(given.iter().map(ints));
        node
    };
    let (least, most) = (i64::MIN, i64::MAX);
    for pads in [[0, least, 0, 0], [0, most, 0, most], [0, -1, 0, most]] {
        for mode in ["constant", "edge", "reflect", "wrap"] {
            let mut pad = with(node("Pad", &["h"], "y"), &[("pads", pads.to_vec())]);
            pad.attributes.push(Attribute {
                name: "mode".into(),
                text: mode.into(),
                ..Attribute::default()
            });
            let said = fails(message(&[0, 2], vec![pad]));
            assert!(said.contains("it pads an axis by"), "{said}");
        }
    }
    for name in ["kernel_shape", "strides", "dilations", "pads"] {
        for value in [most, 1 << 40] {
            let mut given = vec![("kernel_shape", vec![1, 1])];
            given.retain(|(n, _)| *n != name);
            given.push((name, vec![value; if name == "pads" { 4 } else { 2 }]));
            let pool = with(node("MaxPool", &["h"], "y"), &given);
            let said = fails(message(&[0, 1, 4, 2], vec![pool]));
            assert!(said.contains("(MaxPool)"), "{said}");
        }
    }
    let slice = |from: &str, to: &str, [start, end, step]: [i64; 3]| {
        let given = [
            ("starts", start),
            ("ends", end),
            ("axes", 1),
            ("steps", step),
        ];
        let given = given.map(|(name, value)| (name, vec![value]));
        with(node("Slice", &[from], to), &given)
    };
    for one in [[0, most, most], [most, least, least], [least, most, 1]] {
        let nodes = vec![slice("h", "y", one)];
        assert!(read(message(&[0, 2], nodes), Path::new(".")).is_ok());
    }
    // An axis without entries, backwards.
    let nodes = vec![
        slice("h", "e", [0, 0, 1]),
        slice("e", "y", [most, least, -1]),
    ];
    let _ = read(message(&[0, 2], nodes), Path::new("."));
}

#[test]
fn numbers_of_their_own_file_lie_below_the_folder() {
    let folder = std::env::temp_dir().join(format!("ergodic-onnx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let bytes: Vec<u8> = [9f32, 1.0, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    std::fs::write(folder.join("net.data"), bytes).unwrap();
    let with = |location: &str, offset: &str| {
        let entry = |key: &str, value: &str| Entry {
            key: key.into(),
            value: value.into(),
        };
        let mut m = message(&[0, 2], vec![]);
        let t = &mut m.graph.as_mut().unwrap().initializers[0];
        t.floats.clear();
        t.location = 1;
        t.external = vec![
            entry("location", location),
            entry("offset", offset),
            entry("length", "16"),
        ];
        read(m, &folder)
    };
    let w = with("net.data", "4")
        .unwrap()
        .initialise(Stream::new(1, Purpose::Initialise, 0, 0));
    assert_eq!(w, [1.0, 2.0, 3.0, 4.0]);
    for (location, offset, what) in [
        ("../net.data", "4", "not below the folder"),
        ("/etc/passwd", "0", "not below the folder"),
        ("net.data", "8", "of '"),
        ("none", "0", "none"),
    ] {
        let e = format!("{:#}", with(location, offset).err().unwrap());
        assert!(e.contains(what), "{e}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn rows_may_be_any_axis_and_merge_with_their_neighbours() {
    let x = crate::kernels::tensor::Tensor::from(Symbol::input(Some(24)));
    let x = Value::per_row(x.reshape(&[-1, 2, 3, 4]).unwrap(), false);
    assert_eq!(x.dims().unwrap(), [ROWS, 2, 3, 4]);
    // [rows·2, 3, 4], then [3, rows·2, 4], [3, rows, 2, 4], [3·rows, 8] and back.
    let merged = x.reshape(&[2 * ROWS, 3, 4]).unwrap();
    let turned = merged.permute(&[1, 0, 2]).unwrap();
    assert_eq!(turned.dims().unwrap(), [3, 2 * ROWS, 4]);
    let apart = turned.reshape(&[3, ROWS, 2, 4]).unwrap();
    let left = apart.reshape(&[3 * ROWS, 8]).unwrap();
    assert_eq!(left.dims().unwrap(), [3 * ROWS, 8]);
    let again = left
        .reshape(&[3, ROWS, 2, 4])
        .unwrap()
        .permute(&[1, 2, 0, 3])
        .unwrap();
    assert_eq!(again.dims().unwrap(), [ROWS, 2, 3, 4]);
    // This would take numbers of one row to another.
    let wrong = turned.reshape(&[ROWS, 3, 2, 4]).err().unwrap().to_string();
    assert!(wrong.contains("without mixing examples"), "{wrong}");
    assert!(wrong.contains("[3, rows·2, 4]"), "{wrong}");
}
