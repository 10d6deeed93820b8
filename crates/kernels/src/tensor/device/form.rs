//! What a pass needs beforehand: its kernels, and the lists that they read.

use super::super::elements::Spread;
use super::super::operation::NOWHERE;
use super::super::pass::Pass;
use super::super::program::Instruction;
use super::Store;
use super::source::{Index, Users, slopes, values};

/// How an operand of a pass over elements is repeated, with the place of its list.
#[derive(Debug, Clone)]
pub struct Repeated {
    pub index: Index,
    pub list: usize,
}

/// A sum over the users of each element: a kernel, what it reads, and where its lists begin.
#[derive(Debug, Clone)]
pub struct Gather {
    pub kernel: String,
    pub reads: Vec<String>,
    pub users: Users,
    /// Where users begin, and the users.
    pub lists: [usize; 2],
    /// Of [`Users::Run`]: run, whole, before.
    pub run: [usize; 3],
}

/// Where the matrices of a batch are within a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrices {
    /// So far apart.
    Even(usize),
    /// As a list says, which begins here.
    Listed(usize),
}

/// What a pass needs.
#[derive(Debug, Clone)]
pub enum Form {
    /// Static kernels do.
    Plain,
    /// A function of elements: its kernel, and per operand that of its gradient, if it has one.
    Element {
        values: String,
        spreads: Vec<Repeated>,
        slopes: Vec<Option<Gather>>,
    },
    /// Numbers from their places, listed, and the way back.
    Take {
        list: usize,
        fill: f32,
        back: Gather,
    },
    /// The way back of each operand.
    Concat(Vec<Gather>),
    /// A dense layer, a norm or a convolution: the way back of what channels have, weights or biases.
    Channels(Gather),
    /// Products: where the matrices of both operands are, and per operand whether each is used once and all are covered; if not, the way back.
    Products {
        at: [Matrices; 2],
        once: [bool; 2],
        back: [Gather; 2],
    },
}

impl Gather {
    fn new(
        store: &mut Store,
        kernel: super::source::Kernel,
        users: Users,
        lists: [Vec<u32>; 2],
    ) -> Self {
        let (kernel, reads) = store.kernel(kernel);
        Self {
            kernel,
            reads,
            users,
            lists: lists.map(|l| if l.is_empty() { 0 } else { store.list(l) }),
            run: [0; 3],
        }
    }

    /// Of the gradient itself, over these users.
    fn plain(store: &mut Store, users: Users, lists: [Vec<u32>; 2]) -> Self {
        Self::new(store, slopes(None, 0, &[], users), users, lists)
    }

    /// Over what came from an element, as this list says.
    fn listed(store: &mut Store, from: &[u32], width: usize) -> Self {
        Self::plain(store, Users::Listed, users(from, width))
    }
}

/// Where the users of each of `width` elements begin, and the users, in order.
fn users(from: &[u32], width: usize) -> [Vec<u32>; 2] {
    let mut starts = vec![0u32; width + 1];
    let known = || from.iter().enumerate().filter(|(_, i)| **i != NOWHERE);
    known().for_each(|(_, i)| starts[*i as usize + 1] += 1);
    for i in 0..width {
        starts[i + 1] += starts[i];
    }
    let mut next = starts.clone();
    let mut all = vec![0; starts[width] as usize];
    for (e, i) in known() {
        let at = &mut next[*i as usize];
        all[*at as usize] = e as u32;
        *at += 1;
    }
    [starts, all]
}

/// How a spread is read and how it is added up.
fn repeated(spread: &Spread, width: usize) -> (Index, Users, Vec<u32>, [Vec<u32>; 2]) {
    let none = || [Vec::new(), Vec::new()];
    match spread {
        Spread::Same => (Index::Same, Users::Same, Vec::new(), none()),
        Spread::One => (Index::One, Users::All, Vec::new(), none()),
        Spread::Again => (Index::Again, Users::Again, Vec::new(), none()),
        Spread::Listed(list) => (
            Index::Listed,
            Users::Listed,
            list.clone(),
            users(list, width),
        ),
    }
}

/// Places at the same distance from each other, or listed.
fn matrices(store: &mut Store, at: &[usize]) -> Matrices {
    let step = at.get(1).copied().unwrap_or(0);
    match at.iter().enumerate().all(|(i, x)| *x == i * step) {
        true => Matrices::Even(step),
        false => Matrices::Listed(store.list(at.iter().map(|x| *x as u32).collect())),
    }
}

impl Form {
    pub(super) fn new(instruction: &Instruction, store: &mut Store) -> Self {
        let width = |which: usize| instruction.operands[which].width;
        match &instruction.pass {
            Pass::Element(f, spreads) => {
                let found: Vec<_> = spreads
                    .iter()
                    .enumerate()
                    .map(|(k, s)| repeated(s, width(k)))
                    .collect();
                let indices: Vec<_> = found.iter().map(|f| f.0).collect();
                let slope =
                    |(which, (_, users, _, lists)): (usize, &(_, Users, _, [Vec<u32>; 2]))| {
                        let active = instruction.active && instruction.operands[which].active;
                        let kernel = active.then(|| slopes(Some(*f), which, &indices, *users))?;
                        // A gradient that is 0 whatever comes back.
                        let moves = kernel.reads.iter().any(|r| r == "d");
                        moves.then(|| Gather::new(store, kernel, *users, lists.clone()))
                    };
                let slopes = found.iter().enumerate().map(slope).collect();
                let (values, _) = store.kernel(values(*f, &indices));
                let spreads = found
                    .into_iter()
                    .map(|(index, _, list, _)| Repeated {
                        index,
                        list: if list.is_empty() { 0 } else { store.list(list) },
                    })
                    .collect();
                Self::Element {
                    values,
                    spreads,
                    slopes,
                }
            }
            Pass::Copy { from, run } => {
                let run = *run as u32;
                let all: Vec<u32> = from.iter().flat_map(|i| *i..*i + run).collect();
                Self::take(store, all, 0.0, width(0))
            }
            Pass::Take { from, fill } => Self::take(store, from.to_vec(), *fill, width(0)),
            Pass::Concat(runs) => {
                let whole = runs.iter().sum();
                let mut before = 0;
                let each = runs.iter().map(|run| {
                    let mut back = Gather::plain(store, Users::Run, Default::default());
                    back.run = [*run, whole, before];
                    before += run;
                    back
                });
                Self::Concat(each.collect())
            }
            Pass::Dense(_) => Self::again(store),
            Pass::Norm(n) if n.channels == 0 => Self::Plain,
            Pass::Norm(n) if n.inner == 1 => Self::again(store),
            Pass::Norm(n) => Self::channels(store, instruction.width, n.channels, n.inner),
            Pass::Convolve(c) if instruction.operands.len() > 2 => {
                let lines = c.groups * c.filters;
                Self::channels(store, instruction.width, lines, c.columns().1)
            }
            Pass::Products { shape, pairs } => {
                let [m, n, k] = *shape;
                let places = [
                    pairs.iter().map(|p| p.0).collect::<Vec<_>>(),
                    pairs.iter().map(|p| p.1).collect(),
                ];
                let sizes = [m * k, k * n];
                let mut once = [false; 2];
                let back = [0, 1].map(|which| {
                    let (size, at) = (sizes[which], &places[which]);
                    let in_order = at.iter().enumerate().all(|(i, x)| *x == i * size);
                    once[which] = in_order && at.len() * size == width(which);
                    match once[which] {
                        true => Gather::plain(store, Users::Same, Default::default()),
                        false => {
                            let from: Vec<u32> = at
                                .iter()
                                .flat_map(|x| *x as u32..(*x + size) as u32)
                                .collect();
                            Gather::listed(store, &from, width(which))
                        }
                    }
                });
                Self::Products {
                    at: places.map(|at| matrices(store, &at)),
                    once,
                    back,
                }
            }
            Pass::Attention(_)
            | Pass::Convolve(_)
            | Pass::Embed { .. }
            | Pass::Reduce(..)
            | Pass::Softmax { .. } => Self::Plain,
        }
    }

    /// Channels side by side, again and again.
    fn again(store: &mut Store) -> Self {
        Self::Channels(Gather::plain(store, Users::Again, Default::default()))
    }

    /// Channels of so many neighbours.
    fn channels(store: &mut Store, width: usize, channels: usize, inner: usize) -> Self {
        let from = (0..width).map(|e| (e / inner % channels) as u32);
        let from: Vec<u32> = from.collect();
        Self::Channels(Gather::listed(store, &from, channels))
    }

    fn take(store: &mut Store, list: Vec<u32>, fill: f32, width: usize) -> Self {
        let back = Gather::listed(store, &list, width);
        Self::Take {
            list: store.list(list),
            fill,
            back,
        }
    }
}
