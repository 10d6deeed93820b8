use super::super::draws::CHUNK_BYTES;
use super::*;

fn stream(name: &str, half: bool) -> Stream {
    let root = std::env::temp_dir().join(format!("ergodic-{name}-{}", std::process::id()));
    let draws = Draws {
        chains: 2,
        temperatures: Some(2),
        steps: vec![10, 20, 30],
        // The second has a chunk per draw.
        tensors: vec![
            ("w".into(), vec![2, 2]),
            ("big".into(), vec![CHUNK_BYTES / 2]),
        ],
        open: false,
        half,
    };
    Stream::new(root, draws, (0..4).collect())
}

fn read(s: &Stream, tensor: usize, chain: usize, k: usize) -> Vec<f32> {
    let mut out = Vec::new();
    s.reader(chain).read(tensor, k, &mut out).unwrap();
    out
}

#[test]
fn draws_come_back_and_what_was_not_made_is_nan() {
    for half in [false, true] {
        let s = stream("stream", half);
        s.describe(&[1.0, 2.0]).unwrap();
        s.write(0, 3, 0, &[1.0, 2.0, 3.0, 4.0]).unwrap();
        s.write(0, 3, 2, &[0.5; 4]).unwrap();
        s.write(1, 0, 1, &vec![-1.0; CHUNK_BYTES / 2]).unwrap();
        s.sync().unwrap();
        let other = Stream::open(&s.root).unwrap();
        assert_eq!(other.draws, s.draws);
        assert_eq!(read(&other, 0, 3, 0), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(read(&other, 0, 3, 2), [0.5; 4]);
        assert!(read(&other, 0, 3, 1).iter().all(|x| x.is_nan()));
        assert!(read(&other, 0, 0, 0).iter().all(|x| x.is_nan()));
        assert_eq!(read(&other, 1, 0, 1)[7], -1.0);
        // A run that goes on makes its last draw again, and the next.
        other.write(0, 3, 2, &[9.0; 4]).unwrap();
        other.write(0, 3, 1, &[8.0; 4]).unwrap();
        assert_eq!(read(&Stream::open(&s.root).unwrap(), 0, 3, 1), [8.0; 4]);
        // Damage is found, whatever is read of the chunk.
        let path = s.path(0, 3, 0);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[s.draws.offset(0, 3) as usize + 1] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let damaged = Stream::open(&s.root).unwrap();
        let found = damaged.reader(3).read(0, 2, &mut Vec::new());
        assert!(format!("{:#}", found.unwrap_err()).contains("damaged"));
        assert!(s.root.join("big/c/0/1/0/0").exists());
        std::fs::remove_dir_all(&s.root).unwrap();
    }
}

#[test]
fn a_tensor_with_the_name_of_a_coordinate_is_refused() {
    let mut s = stream("names", false);
    assert!(s.draws.check().is_ok());
    s.draws.tensors[0].0 = "step".into();
    assert!(s.draws.check().is_err());
}
