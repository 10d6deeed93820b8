use super::*;
use std::io::Cursor;
use std::path::PathBuf;

const SIX: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn data(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/data/pytorch").join(name)
}

/// A file in a folder of its own, and its content.
struct Kept(PathBuf);

impl Kept {
    fn new(name: &str, content: &[u8]) -> Self {
        let name = format!("ergodic-named-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    /// What is said of it.
    fn refused(name: &str, content: &[u8]) -> String {
        let file = Self::new(name, content);
        let said = format!("{:#}", read(&file.0, None).unwrap_err());
        assert!(said.contains(name), "{said}");
        said
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn tensors_of_pytorch_are_read_however_they_lie_in_storages() {
    let found = read(&data("kinds.pt"), None).unwrap();
    let names: Vec<_> = found.tensors.iter().map(|t| t.0.as_str()).collect();
    let expected = [
        "double_transposed",
        "half",
        "bfloat16_slice",
        "every_second",
        "expanded",
        "parameter",
        "shared",
        "scalar",
        "empty",
    ];
    assert_eq!(names, expected, "in the order of the file");
    for (name, shape, values) in &found.tensors {
        let (expected, of): (&[f32], &[usize]) = match name.as_str() {
            "every_second" => (&[0.0, 2.0, 4.0, 6.0, 8.0, 10.0], &[2, 3]),
            "expanded" => (&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0], &[2, 3]),
            "scalar" => (&[0.5], &[]),
            "empty" => (&[], &[0, 3]),
            _ => (&SIX, &[2, 3]),
        };
        assert_eq!((&values[..], &shape[..]), (expected, of), "{name}");
    }
    let others = [("num_batches_tracked", "Long"), ("mask", "Bool")];
    assert_eq!(found.others, others.map(|(n, k)| (n.into(), k.into())));
}

#[test]
fn of_several_state_dicts_one_is_chosen() {
    let whole = read(&data("mlp.pt"), None).unwrap();
    assert_eq!(whole.tensors[0].0, "0.weight");
    // The optimizer's tensors are under numbers: that is no second one.
    assert_eq!(read(&data("checkpoint.pt"), None).unwrap(), whole);
    assert_eq!(read(&data("two.pt"), Some("model")).unwrap(), whole);
    let twice = read(&data("two.pt"), Some("ema")).unwrap();
    assert_eq!(twice.tensors[0].2[0], 2.0 * whole.tensors[0].2[0]);
    let said = |name: &str, key| format!("{:#}", read(&data(name), key).unwrap_err());
    assert!(
        said("two.pt", None).contains("\"model\", \"ema\""),
        "{}",
        said("two.pt", None)
    );
    assert!(said("two.pt", Some("modl")).contains("did you mean 'model'?"));
    assert!(said("legacy.pt", None).contains("before 1.6"));
    assert!(
        said("module.pt", None)
            .contains("torch.nn.modules.container.Sequential, whose code is not run")
    );
    let npz = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/example.npz");
    let key = read(&npz, Some("model")).unwrap_err();
    assert!(format!("{key:#}").contains("'key' is for PyTorch's"));
}

/// A file as torch.save writes it, of this pickle and one storage.
fn archive(pickle: &[u8], storage: &[f32]) -> Vec<u8> {
    let storage = super::super::bytes::encode(storage);
    let entries = [
        ("archive/data.pkl", pickle.to_vec()),
        ("archive/data/0", storage),
    ];
    zipped(entries.into_iter().map(|(n, b)| (n.to_string(), b))).unwrap()
}

#[test]
fn what_pickles_ask_for_is_not_run_and_not_believed() {
    let pickle = |shape: &[usize]| pytorch::pickled([("w", shape)].into_iter());
    let said = |name: &str, pickle: &[u8]| Kept::refused(name, &archive(pickle, &SIX));
    let call =
        |inside: &str| format!("cposix\nsystem\nX\x16\0\0\0touch /tmp/ergodic-run\u{85}R{inside}");
    let bytes = |text: &str| -> Vec<u8> { text.chars().map(|c| c as u8).collect() };
    let message = said("call", &bytes(&format!("\u{80}\u{2}{}", call("."))));
    assert!(
        message.contains("call of posix.system, which is not made"),
        "{message}"
    );
    assert!(!Path::new("/tmp/ergodic-run").exists());
    let whole = said("big", &pickle(&[1 << 40, 1 << 40]));
    assert!(
        whole.contains("does not fit into its storage of 6 numbers"),
        "{whole}"
    );
    assert!(said("more", &pickle(&[7])).contains("shape [7]"));
    // All of it the same number: a matrix of 2^40 numbers in a storage of 6.
    let strides = pickle(&[1 << 20, 1 << 20]);
    let wide = [0x4a, 0, 0, 16, 0, 0x4a, 1, 0, 0, 0];
    let at = strides.windows(10).position(|w| w == wide).unwrap();
    let mut expanded = strides.clone();
    expanded[at + 1..at + 5].fill(0);
    expanded[at + 6..at + 10].fill(0);
    let message = said("expanded", &expanded);
    assert!(message.contains("of memory are needed"), "{message}");
    // A storage with a type that is none, a tensor with arguments that are none.
    let other = String::from_utf8(pickle(&[6])).unwrap_err().into_bytes();
    let replaced = |from: &str, to: &str| {
        let at = other
            .windows(from.len())
            .position(|w| w == from.as_bytes())
            .unwrap();
        [&other[..at], to.as_bytes(), &other[at + from.len()..]].concat()
    };
    for (from, to, expected) in [
        ("FloatStorage", "ComplexFloatStorage", "has no float"),
        ("_rebuild_tensor_v2", "_rebuild_sparse_tensor", "to_dense()"),
        ("tQ", "t0", "op-code 48"),
        (
            "ctorch\nFloatStorage\n",
            "K\x07",
            "in a way that PyTorch does not",
        ),
    ] {
        let file = Kept::new("other", &archive(&replaced(from, to), &SIX));
        match read(&file.0, None) {
            Ok(found) => assert_eq!(found.others[0].1, "ComplexFloat", "{expected}"),
            Err(e) => assert!(format!("{e:#}").contains(expected), "{e:#}"),
        }
    }
}

#[test]
fn damaged_and_other_files_say_what_they_are() {
    let whole = std::fs::read(data("mlp.pt")).unwrap();
    for length in [5, 100, 1000, whole.len() - 1] {
        let message = Kept::refused("short.pt", &whole[..length]);
        assert!(message.contains("probably incomplete"), "{message}");
    }
    // A bit of the numbers is not what it was.
    let weight = whole
        .windows(12)
        .position(|w| w == b"mlp/data/0FB")
        .unwrap();
    let mut flipped = whole.clone();
    flipped[weight + 120] ^= 1;
    let message = Kept::refused("flipped.pt", &flipped);
    assert!(
        message.contains("'0.weight'") && message.contains("get the file again"),
        "{message}"
    );
    let other = |name: &str, entries: &[(&str, &[u8])]| {
        let entries = entries.iter().map(|(n, b)| (n.to_string(), b.to_vec()));
        Kept::refused(name, &zipped(entries).unwrap())
    };
    assert!(
        other("text.zip", &[("a.txt", b"abc")]).contains("neither torch.save's nor numpy.savez's")
    );
    let script = [("m/data.pkl", &b"."[..]), ("m/constants.pkl", b".")];
    assert!(other("script.pt", &script).contains("TorchScript"));
    let big = [("m/data.pkl", &b"."[..]), ("m/byteorder", b"big")];
    assert!(other("big.pt", &big).contains("big-endian"));
    assert!(Kept::refused("x.pt", b"\x80\x04abcdefghijkl").contains("bare pickle"));
    assert!(Kept::refused("y.pt", b"nothing of the kind").contains("none of torch.save's files"));
    assert!(Kept::refused("none.pt", b"").contains("0 bytes"));
    let storages = zipped(
        [(
            "a/data.pkl".to_string(),
            pytorch::pickled([("w", &[2][..])].into_iter()),
        )]
        .into_iter(),
    );
    assert!(
        Kept::refused("no-storage.pt", &storages.unwrap()).contains("'a/data/0' cannot be read")
    );
    let f64s = [("w", vec![1], 1e300)];
    let mut large = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, shape, x) in &f64s {
        large
            .start_file(format!("{name}.npy"), SimpleFileOptions::default())
            .unwrap();
        large
            .write_all(&npy::encode(shape, DataRef::F64(&[*x])))
            .unwrap();
    }
    let large = large.finish().unwrap().into_inner();
    assert!(Kept::refused("large.npz", &large).contains("'w': 1e300 is too large"));
    let said = write(Path::new("w.onnx"), &[]).unwrap_err().to_string();
    assert!(said.contains("none of .pt, .pth, .safetensors and .npz"));
}

#[test]
fn halves_of_other_programs_are_read() {
    use safetensors::Dtype;
    use safetensors::tensor::{TensorView, serialize};
    let halves: Vec<u8> = [1.0, -0.5]
        .into_iter()
        .flat_map(|x| half::f16::from_f32(x).to_le_bytes())
        .collect();
    let brain: Vec<u8> = [1.0, -0.5]
        .into_iter()
        .flat_map(|x| half::bf16::from_f32(x).to_le_bytes())
        .collect();
    let view = |kind, bytes| TensorView::new(kind, vec![2], bytes).unwrap();
    let count = 7i64.to_le_bytes();
    let all = [
        ("half", view(Dtype::F16, &halves)),
        ("brain", view(Dtype::BF16, &brain)),
        (
            "count",
            TensorView::new(Dtype::I64, vec![], &count).unwrap(),
        ),
    ];
    let file = Kept::new("halves", &serialize(all, None).unwrap());
    let found = read(&file.0, None).unwrap();
    let names: Vec<_> = found.tensors.iter().map(|t| t.0.as_str()).collect();
    assert_eq!(
        (names.len(), &found.others[..]),
        (2, &[("count".to_string(), "I64".to_string())][..])
    );
    assert!(
        found.tensors.iter().all(|t| t.2 == [1.0, -0.5]),
        "{names:?}"
    );
    // NumPy's float16, too.
    let mut npy = npy::encode(&[2], DataRef::F32(&[0.0]));
    npy.truncate(npy.len() - 4);
    let at = npy.windows(3).position(|w| w == b"<f4").unwrap();
    npy[at + 2] = b'2';
    npy.extend(&halves);
    let zip = zipped([("h.npy".to_string(), npy)].into_iter()).unwrap();
    let file = Kept::new("halves.npz", &zip);
    assert_eq!(read(&file.0, None).unwrap().tensors[0].2, [1.0, -0.5]);
}

/// Nothing panics, whatever byte of a file or of its pickle is another one.
#[test]
#[ignore = "long: tests/run"]
fn damage_is_an_error_or_harmless() {
    let whole = std::fs::read(data("kinds.pt")).unwrap();
    let file = Kept::new("damage.pt", &whole);
    let check = |bytes: &[u8]| {
        // To write over a file is to wait for the disk, to make one is not.
        std::fs::remove_file(&file.0).unwrap();
        std::fs::write(&file.0, bytes).unwrap();
        drop(read(&file.0, None));
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
        check(&bytes);
        check(&whole[..at]);
    }
    // The checksum of the archive hides what happens in the pickle.
    let mut zip = ZipArchive::new(BufReader::new(File::open(data("kinds.pt")).unwrap())).unwrap();
    let mut pickle = Vec::new();
    let mut entry = zip.by_name("kinds/data.pkl").unwrap();
    entry.read_to_end(&mut pickle).unwrap();
    for at in 0..pickle.len() {
        for other in [
            pickle[at] ^ 1,
            pickle[at].wrapping_add(1),
            b'(',
            b'R',
            b'h',
            0x86,
            0xff,
        ] {
            let mut bytes = pickle.clone();
            bytes[at] = other;
            check(&archive(&bytes, &SIX));
        }
    }
}
