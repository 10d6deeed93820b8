//! What a disk holds after a crash: of the changes that were made, those that were flushed, and any of the others.
//!
//! A file is flushed with its bytes, a folder with the names in it; neither flushes the other (POSIX says no more). A name that is renamed
//! is in one of its two places, never in both or none.

use ergodic::store::disk::Change;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// What becomes of changes that were not flushed.
#[derive(Clone, Copy, Debug)]
pub enum Keeps {
    /// All of them are on the disk: the process was killed, not the machine.
    All,
    /// None.
    Nothing,
    /// Names, but no bytes.
    Names,
    /// Bytes, but no names.
    Bytes,
    /// Any of them, by lot; the last of the bytes in part.
    Some(u64),
}

impl Keeps {
    /// One of each, with this lot.
    pub fn all(lot: u64) -> [Self; 5] {
        [
            Self::All,
            Self::Nothing,
            Self::Names,
            Self::Bytes,
            Self::Some(lot),
        ]
    }
}

/// A change that owns what it says.
#[derive(Debug)]
enum Logged {
    Folder(PathBuf),
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Length(PathBuf, u64),
    Flush(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Write a change down: a line of its kind, its paths and its number, then its bytes.
pub fn put(out: &mut impl Write, change: Change<'_>) -> io::Result<()> {
    let none = Path::new("");
    let (kind, path, other, number, bytes): (_, _, _, _, &[u8]) = match change {
        Change::Folder(path) => ("folder", path, none, 0, &[]),
        Change::Create(path) => ("create", path, none, 0, &[]),
        Change::Write { path, at, bytes } => ("write", path, none, at, bytes),
        Change::Length { path, bytes } => ("length", path, none, bytes, &[]),
        Change::Flush(path) => ("flush", path, none, 0, &[]),
        Change::Rename { from, to } => ("rename", from, to, 0, &[]),
        Change::Link { from, to } => ("link", from, to, 0, &[]),
        Change::Remove(path) => ("remove", path, none, 0, &[]),
    };
    let (path, other, count) = (path.display(), other.display(), bytes.len());
    writeln!(out, "{kind}\t{path}\t{other}\t{number}\t{count}")?;
    out.write_all(bytes)?;
    // A child ends in the middle.
    out.flush()
}

/// All changes of a run.
pub struct Disk(Vec<Logged>);

impl Disk {
    pub fn read(path: &Path) -> Self {
        let mut file = io::BufReader::new(std::fs::File::open(path).unwrap());
        let (mut all, mut line) = (Vec::new(), String::new());
        while file.read_line(&mut line).unwrap() > 0 {
            let words: Vec<_> = line.trim_end_matches('\n').split('\t').collect();
            let [kind, path, other, number, count] = words[..] else {
                panic!("{line}");
            };
            let (path, other) = (PathBuf::from(path), PathBuf::from(other));
            let number = number.parse().unwrap();
            let mut bytes = vec![0; count.parse().unwrap()];
            io::Read::read_exact(&mut file, &mut bytes).unwrap();
            all.push(match kind {
                "folder" => Logged::Folder(path),
                "create" => Logged::Create(path),
                "write" => Logged::Write(path, number, bytes),
                "length" => Logged::Length(path, number),
                "flush" => Logged::Flush(path),
                "rename" => Logged::Rename(path, other),
                "link" => Logged::Link(path, other),
                _ => Logged::Remove(path),
            });
            line.clear();
        }
        Self(all)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The parts of the run whose first checkpoint was saved before change `k`: it got its name, and that was flushed.
    pub fn saved_before(&self, k: usize) -> Vec<String> {
        let mut named = Vec::new();
        let mut saved = Vec::new();
        for change in &self.0[..k] {
            match change {
                Logged::Rename(_, to) if to.ends_with("checkpoint") => {
                    named.extend(to.parent().map(Path::to_path_buf));
                }
                Logged::Flush(path) if named.contains(path) => {
                    saved.push(path.file_name().unwrap().to_str().unwrap().to_string());
                }
                _ => {}
            }
        }
        saved
    }

    /// Checkpoints that get their name before names are on the disk on which they count: those of lists, and of kept draws.
    pub fn hasty(&self) -> Vec<(&Path, &Path)> {
        let (mut new, mut hasty) = (BTreeSet::<&Path>::new(), Vec::new());
        let counts = |path: &Path| {
            name_of(path).starts_with("lists-") || path.iter().any(|p| p == "draws.zarr")
        };
        for change in &self.0 {
            match change {
                Logged::Create(path) | Logged::Folder(path) | Logged::Link(_, path)
                    if counts(path) =>
                {
                    new.insert(path);
                }
                Logged::Flush(folder) => new.retain(|path| path.parent() != Some(folder)),
                Logged::Remove(path) => drop(new.remove(&**path)),
                Logged::Rename(from, to) => {
                    new.remove(&**from);
                    if counts(to) {
                        new.insert(to);
                    }
                    let part = to.parent().and_then(Path::parent).unwrap();
                    if name_of(to) == "current.safetensors" {
                        let all = new.iter().filter(|path| path.starts_with(part));
                        hasty.extend(all.map(|path| (&**to, *path)));
                    }
                }
                _ => {}
            }
        }
        hasty
    }

    /// Make what a crash leaves that comes before change `k`, in the folder `place`; where the run's own folder `out` is then.
    pub fn after(&self, k: usize, keeps: Keeps, out: &Path, place: &Path) -> PathBuf {
        let above = out.parent().unwrap();
        let mut model = Model::new(above);
        self.0[..k].iter().for_each(|change| model.make(change));
        std::fs::create_dir_all(place).unwrap();
        model.crash(keeps);
        model.write(0, place);
        place.join(out.file_name().unwrap())
    }
}

fn name_of(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Bytes of a file that are not flushed yet.
#[derive(Debug, Clone)]
enum Bytes {
    At(u64, Vec<u8>),
    Length(u64),
}

/// A change of the names in a folder: the name, and what has it from now on.
type Name = (String, Option<usize>);

#[derive(Debug)]
enum Node {
    File {
        flushed: Vec<u8>,
        since: Vec<Bytes>,
    },
    Folder {
        flushed: BTreeMap<String, usize>,
        /// Each with its number among all changes, which a name that moves has in both of its folders.
        since: Vec<(usize, Vec<Name>)>,
        now: BTreeMap<String, usize>,
    },
}

fn apply(bytes: &mut Vec<u8>, change: &Bytes) {
    match change {
        Bytes::Length(to) => bytes.resize(*to as usize, 0),
        Bytes::At(at, new) => {
            let (at, end) = (*at as usize, *at as usize + new.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[at..end].copy_from_slice(new);
        }
    }
}

fn name(names: &mut BTreeMap<String, usize>, (name, node): &Name) {
    match node {
        Some(node) => names.insert(name.clone(), *node),
        None => names.remove(name),
    };
}

/// Files and folders below one whose own name is on the disk.
struct Model {
    root: PathBuf,
    nodes: Vec<Node>,
    changes: usize,
}

impl Model {
    fn new(root: &Path) -> Self {
        let (root, changes) = (root.into(), 0);
        let nodes = vec![Self::folder()];
        Self {
            root,
            nodes,
            changes,
        }
    }

    fn folder() -> Node {
        let (flushed, since, now) = Default::default();
        Node::Folder {
            flushed,
            since,
            now,
        }
    }

    fn names(&self, folder: usize) -> &BTreeMap<String, usize> {
        match &self.nodes[folder] {
            Node::Folder { now, .. } => now,
            Node::File { .. } => panic!("a file has no names"),
        }
    }

    /// The node that has a path now.
    fn find(&self, path: &Path) -> Option<usize> {
        let within = path.strip_prefix(&self.root).unwrap();
        let mut parts = within.iter().map(|p| p.to_str().unwrap());
        parts.try_fold(0, |folder, part| self.names(folder).get(part).copied())
    }

    /// The folder that has a path, and its name there.
    fn place(&self, path: &Path) -> (usize, String) {
        let folder = self.find(path.parent().unwrap());
        let file = path.file_name().unwrap().to_str().unwrap();
        (
            folder.unwrap_or_else(|| panic!("{}", path.display())),
            file.into(),
        )
    }

    /// Change names, all at once.
    fn rename(&mut self, changes: &[(usize, Name)]) {
        self.changes += 1;
        let number = self.changes;
        for (folder, change) in changes {
            let Node::Folder { now, since, .. } = &mut self.nodes[*folder] else {
                panic!("a file has no names");
            };
            name(now, change);
            match since.last_mut() {
                Some((last, all)) if *last == number => all.push(change.clone()),
                _ => since.push((number, vec![change.clone()])),
            }
        }
    }

    fn add(&mut self, path: &Path, node: Node) {
        let (folder, name) = self.place(path);
        self.nodes.push(node);
        let new = self.nodes.len() - 1;
        self.rename(&[(folder, (name, Some(new)))]);
    }

    fn change_bytes(&mut self, path: &Path, change: Bytes) {
        let file = self.find(path).unwrap();
        let Node::File { since, .. } = &mut self.nodes[file] else {
            panic!("{} is a folder", path.display());
        };
        since.push(change);
    }

    fn make(&mut self, change: &Logged) {
        match change {
            Logged::Folder(path) if self.find(path).is_none() => self.add(path, Self::folder()),
            Logged::Folder(_) => {}
            Logged::Create(path) if self.find(path).is_some() => {
                self.change_bytes(path, Bytes::Length(0));
            }
            Logged::Create(path) => {
                let (flushed, since) = Default::default();
                self.add(path, Node::File { flushed, since });
            }
            Logged::Write(path, at, bytes) => {
                self.change_bytes(path, Bytes::At(*at, bytes.clone()));
            }
            Logged::Length(path, to) => self.change_bytes(path, Bytes::Length(*to)),
            Logged::Flush(path) => {
                let node = self.find(path).unwrap();
                self.flush(node);
            }
            Logged::Rename(from, to) => {
                let ((a, old), (b, new)) = (self.place(from), self.place(to));
                let node = self.names(a).get(&old).copied();
                // Two names of one file are not renamed to each other.
                if node != self.names(b).get(&new).copied() {
                    self.rename(&[(a, (old, None)), (b, (new, node))]);
                }
            }
            Logged::Link(from, to) => {
                let (node, (folder, name)) = (self.find(from), self.place(to));
                self.rename(&[(folder, (name, node))]);
            }
            Logged::Remove(path) => {
                let (folder, name) = self.place(path);
                if let Some(node) = self.find(path) {
                    self.empty(node);
                }
                self.rename(&[(folder, (name, None))]);
            }
        }
    }

    /// Remove all names in a folder, one by one.
    fn empty(&mut self, folder: usize) {
        if let Node::Folder { now, .. } = &self.nodes[folder] {
            for (name, node) in now.clone() {
                self.empty(node);
                self.rename(&[(folder, (name, None))]);
            }
        }
    }

    fn flush(&mut self, node: usize) {
        let moved: Vec<usize> = match &mut self.nodes[node] {
            Node::File { flushed, since } => {
                since.drain(..).for_each(|change| apply(flushed, &change));
                return;
            }
            Node::Folder { since, .. } => since.iter().map(|(number, _)| *number).collect(),
        };
        // What is renamed is in one of its two places.
        for other in &mut self.nodes {
            if let Node::Folder { flushed, since, .. } = other {
                let both = |number: &usize| moved.contains(number);
                since.retain(|(number, names)| {
                    if both(number) {
                        names.iter().for_each(|change| name(flushed, change));
                    }
                    !both(number)
                });
            }
        }
    }

    /// Let what was not flushed be on the disk, or be lost.
    fn crash(&mut self, keeps: Keeps) {
        let changes: Vec<bool> = match keeps {
            Keeps::All | Keeps::Names => vec![true; self.changes + 1],
            Keeps::Nothing | Keeps::Bytes => vec![false; self.changes + 1],
            Keeps::Some(lot) => {
                let mut lots = Lots(lot);
                (0..=self.changes).map(|_| lots.next()).collect()
            }
        };
        let mut lots = Lots(match keeps {
            Keeps::Some(lot) => lot ^ 0x5555,
            _ => 0,
        });
        for node in &mut self.nodes {
            match node {
                Node::Folder { flushed, since, .. } => {
                    let kept = since.drain(..).filter(|(number, _)| changes[*number]);
                    for (_, names) in kept {
                        names.iter().for_each(|change| name(flushed, change));
                    }
                }
                Node::File { flushed, since } => {
                    for change in since.drain(..) {
                        match (keeps, change) {
                            (Keeps::All | Keeps::Bytes, change) => apply(flushed, &change),
                            (Keeps::Nothing | Keeps::Names, _) => {}
                            (Keeps::Some(_), change) if lots.next() => apply(flushed, &change),
                            (Keeps::Some(_), Bytes::At(at, bytes)) if lots.next() => {
                                let half = bytes[..bytes.len() / 2].to_vec();
                                apply(flushed, &Bytes::At(at, half));
                            }
                            (Keeps::Some(_), _) => {}
                        }
                    }
                }
            }
        }
    }

    /// Write what is flushed to a folder that is there.
    fn write(&self, node: usize, to: &Path) {
        match &self.nodes[node] {
            Node::File { flushed, .. } => std::fs::write(to, flushed).unwrap(),
            Node::Folder { flushed, .. } => {
                std::fs::create_dir_all(to).unwrap();
                for (name, node) in flushed {
                    self.write(*node, &to.join(name));
                }
            }
        }
    }
}

/// Heads or tails: a congruential generator (Knuth, MMIX), of which the highest bit is taken.
struct Lots(u64);

impl Lots {
    fn next(&mut self) -> bool {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 >> 63 == 1
    }
}
