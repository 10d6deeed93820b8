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
        expected: None,
        burn_in: None,
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
fn files_that_are_gone_or_cut_off_are_found() {
    let s = stream("gone", false);
    s.describe(&[1.0, 2.0]).unwrap();
    for tensor in 0..2 {
        let values = vec![0.0; s.draws.numbers(tensor)];
        (0..3).for_each(|k| s.write(tensor, 3, k, &values).unwrap());
    }
    let made = |n| move |chain| if chain == 3 { n } else { 0 };
    assert!(s.check_files(made(3)).is_ok());
    std::fs::remove_file(s.path(1, 3, 2)).unwrap();
    assert!(s.check_files(made(2)).is_ok());
    for said in [
        s.check_files(made(3)).unwrap_err(),
        s.reader(3).read(1, 2, &mut Vec::new()).unwrap_err(),
    ] {
        assert!(
            said.to_string().contains("big/c/0/2/0/0' is missing"),
            "{said}"
        );
    }
    let file = File::options().write(true).open(s.path(1, 3, 0)).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let said = s.check_files(made(1)).unwrap_err();
    assert!(said.to_string().contains(" were written"), "{said}");
    file.set_len(file.metadata().unwrap().len() + 2).unwrap();
    assert!(s.check_files(made(1)).is_err());
    std::fs::remove_dir_all(&s.root).unwrap();
}

#[test]
fn metadata_that_is_damaged_is_found() {
    let s = stream("metadata", false);
    s.describe(&[1.0, 2.0]).unwrap();
    assert!(super::super::check(&s.root).is_ok());
    for name in ["step/c/0", "temperature/c/0", "w/zarr.json"] {
        let (path, whole) = (s.root.join(name), std::fs::read(s.root.join(name)).unwrap());
        let mut bytes = whole.clone();
        // A digit, where it is text.
        let at = whole.windows(2).position(|two| two == b"2,").unwrap_or(3);
        bytes[at] = whole[at] ^ 1;
        std::fs::write(&path, &bytes).unwrap();
        let said = format!("{:#}", super::super::check(&s.root).unwrap_err());
        assert!(said.contains("damaged"), "{said}");
        // What says which draws there are is checked before it is believed.
        assert_eq!(Stream::open(&s.root).is_err(), name.ends_with("c/0"));
        std::fs::write(&path, &whole).unwrap();
    }
    std::fs::remove_dir_all(&s.root).unwrap();
}

#[test]
fn a_tensor_with_the_name_of_a_coordinate_is_refused() {
    let mut s = stream("names", false);
    assert!(s.draws.check().is_ok());
    s.draws.tensors[0].0 = "step".into();
    assert!(s.draws.check().is_err());
}

#[test]
fn draws_that_are_damaged_before_a_run_goes_on_are_found() {
    let s = stream("resumed", false);
    s.begin().unwrap();
    s.describe(&[1.0, 2.0]).unwrap();
    s.write(0, 3, 0, &[1.0; 4]).unwrap();
    let sum = (
        s.path(0, 3, 0),
        s.draws.offset(0, 3) as usize + s.draws.chunk_bytes(0),
    );
    // Killed between a draw and its checksum, before anything was flushed: nothing is damaged that anybody counts on.
    let mut torn = std::fs::read(&sum.0).unwrap();
    torn[sum.1] ^= 1;
    std::fs::write(&sum.0, &torn).unwrap();
    assert!(Stream::open(&s.root).unwrap().check().is_ok());
    torn[sum.1] ^= 1;
    std::fs::write(&sum.0, &torn).unwrap();
    s.write(0, 3, 1, &[2.0; 4]).unwrap();
    s.sync().unwrap();
    // Killed after it, in the middle of a draw.
    s.write(0, 3, 2, &[3.0; 4]).unwrap();
    let (path, start) = (s.path(0, 3, 0), s.draws.offset(0, 3) as usize);
    let flip = |at: usize| {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[start + at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    };
    flip(2 * 16 + 5);
    let other = || Stream::open(&s.root).map(|o| Stream::new(o.root, o.draws, s.own.clone()));
    // What was flushed can be read, and what comes behind it is made again.
    assert_eq!(read(&other().unwrap(), 0, 3, 1), [2.0; 4]);
    let again = other().unwrap();
    again.write(0, 3, 2, &[3.0; 4]).unwrap();
    again.sync().unwrap();
    assert_eq!(read(&other().unwrap(), 0, 3, 2), [3.0; 4]);
    let expected = std::fs::read(&path).unwrap();
    // The same bytes as if nothing had happened, also where it goes on from an earlier checkpoint.
    let earlier = other().unwrap();
    earlier.write(0, 3, 1, &[2.0; 4]).unwrap();
    earlier.write(0, 3, 2, &[3.0; 4]).unwrap();
    assert!(std::fs::read(&path).unwrap() == expected);
    // A draw that was flushed is damaged: nobody gives the chunk a new checksum.
    flip(16 + 5);
    let said = other().unwrap().write(0, 3, 2, &[3.0; 4]).unwrap_err();
    assert!(format!("{said:#}").contains("damaged"), "{said:#}");
    let found = other().unwrap().reader(3).read(0, 0, &mut Vec::new());
    assert!(format!("{:#}", found.unwrap_err()).contains("damaged"));
    // No more is said of what is flushed once the run has ended.
    s.describe_up_to(30, 0, &[1.0, 2.0]).unwrap();
    assert_eq!(s.flushed_files().count(), 0);
    std::fs::remove_dir_all(&s.root).unwrap();
}

/// Whatever number of the metadata is wrong: an error or nothing, no panic, and no search without an end.
#[test]
fn no_number_of_the_metadata_is_believed() {
    let root = std::env::temp_dir().join(format!("ergodic-numbers-{}", std::process::id()));
    let draws = Draws {
        chains: 3,
        temperatures: Some(2),
        steps: vec![10, 20, 30],
        tensors: vec![("w".into(), vec![2, 5])],
        open: true,
        expected: Some(2),
        burn_in: None,
        half: false,
    };
    let s = Stream::new(root, draws, (0..6).collect());
    s.describe(&[1.0, 2.0]).unwrap();
    for (chain, k) in (0..6).flat_map(|c| (0..3).map(move |k| (c, k))) {
        s.write(0, chain, k, &[1.0; 10]).unwrap();
    }
    s.describe_up_to(30, 0, &[1.0, 2.0]).unwrap();
    let all = |s: &Stream| s.check_files(|_| 3).and_then(|()| s.check());
    all(&Stream::open(&s.root).unwrap()).unwrap();
    let path = s.root.join(METADATA);
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = text.find("\"draws\": {").unwrap();
    let own = begin..begin + text[begin..].find('}').unwrap();
    let mut refused = 0;
    let digits = text.char_indices().filter(|(_, c)| c.is_ascii_digit());
    for ((at, old), new) in
        digits.flat_map(|d| ["0", "1", "9", "4000000000000000000"].map(|n| (d, n)))
    {
        let wrong = [&text[..at], new, &text[at + 1..]].concat();
        std::fs::write(&path, &wrong).unwrap();
        let found = Stream::open(&s.root).and_then(|s| all(&s));
        // Of what the program itself reads every number counts, but for how many draws were expected.
        let expected = text[..at].ends_with("\"expected\": ");
        if own.contains(&at) && new != old.to_string() && !expected {
            assert!(found.is_err(), "{wrong}");
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused}");
    std::fs::remove_dir_all(&s.root).unwrap();
}

/// A run that had ended goes on, and is killed between its first draw and the checksum of the chunk.
#[test]
fn a_run_that_had_ended_goes_on_after_a_kill() {
    let s = stream("extended", false);
    s.begin().unwrap();
    s.describe(&[1.0, 2.0]).unwrap();
    s.write(0, 3, 0, &[1.0; 4]).unwrap();
    s.sync().unwrap();
    s.describe_up_to(30, 0, &[1.0, 2.0]).unwrap();
    assert!(!s.is_growing());
    let again = || Stream::new(s.root.clone(), s.draws.clone(), s.own.clone());
    again().go_on([(3, 1)].into_iter()).unwrap();
    let path = s.path(0, 3, 0);
    let mut torn = std::fs::read(&path).unwrap();
    torn[s.draws.offset(0, 3) as usize + 16] ^= 1;
    std::fs::write(&path, torn).unwrap();
    again().write(0, 3, 1, &[2.0; 4]).unwrap();
    assert_eq!(read(&again(), 0, 3, 0), [1.0; 4]);
    assert_eq!(read(&again(), 0, 3, 1), [2.0; 4]);
    std::fs::remove_dir_all(&s.root).unwrap();
}

/// What looks as if a process had left it may be at work on another host.
#[test]
fn files_that_ranks_are_making_are_not_taken_for_left_over() {
    for shared in [true, false] {
        let mut s = stream("shared", false);
        s.shared = shared;
        s.describe(&[1.0, 2.0]).unwrap();
        let other = temp_files::name(&s.path(0, 3, 0), "tmp", "4294967295-1-0");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "").unwrap();
        s.write(0, 3, 0, &[1.0; 4]).unwrap();
        assert_eq!(other.exists(), shared);
        std::fs::remove_dir_all(&s.root).unwrap();
    }
}
