//! What layers are made of, against candle in double precision, autograd and differences; convolutions also against candle's own.

use super::tests::check;
use super::{Binary, Reduce, Tensor, Windows};
use crate::Result;

/// All that are trials.
pub(super) fn all() {
    convolutions_of_every_kind();
    windows_without_filters();
    tables_norms_and_sums();
    attention_and_positions();
}

fn windows(stride: [usize; 2], padding: [usize; 2], dilation: [usize; 2]) -> Windows {
    Windows {
        stride,
        padding,
        dilation,
    }
}

/// Images that change with parameters, so that there are gradients with respect to them.
fn images(p: &Tensor, x: &Tensor, shape: &[i64]) -> Result<Tensor> {
    x.binary(Binary::Multiply, p)?
        .reshape(&[&[-1], shape].concat())
}

#[test]
fn convolutions_of_every_kind() {
    let settings = [
        ([1, 1], [0, 0], [1, 1], 1, [3, 3]),
        ([1, 1], [1, 1], [1, 1], 1, [3, 3]),
        ([2, 2], [1, 1], [1, 1], 2, [3, 3]),
        ([2, 3], [2, 1], [1, 1], 1, [4, 2]),
        ([1, 2], [2, 3], [2, 3], 4, [2, 2]),
        ([3, 1], [4, 4], [1, 2], 2, [1, 3]),
        ([1, 1], [0, 0], [1, 1], 2, [1, 1]),
        ([2, 1], [0, 0], [1, 1], 1, [1, 1]),
        // Windows that lie in the padding alone.
        ([1, 1], [5, 5], [1, 1], 1, [2, 2]),
    ];
    for (stride, padding, dilation, groups, [h, w]) in settings {
        let how = windows(stride, padding, dilation);
        let name = format!("{how:?}, {groups} groups of {h}×{w}");
        let filters = [8, 4 / groups, h, w];
        check(
            &name,
            &[&filters, &[4 * 5 * 6], &[8, 1, 1]],
            120,
            &move |p, x| {
                let image = images(&p[1], x, &[4, 5, 6])?;
                image.conv2d(&p[0], how, groups)?.binary(Binary::Add, &p[2])
            },
        );
        if stride[0] != stride[1] || padding[0] != padding[1] || dilation[0] != dilation[1] {
            continue;
        }
        let image: Vec<f64> = (0..120)
            .map(|i| f64::from(i % 7) - 0.1 * f64::from(i))
            .collect();
        let of: Vec<f64> = (0..filters.iter().product())
            .map(|i: usize| (i % 5) as f64 - 1.7)
            .collect();
        let image = Tensor::from_f64(image, &[4, 5, 6]).unwrap();
        let of = Tensor::from_f64(of, &filters).unwrap();
        let ours = image.conv2d(&of, how, groups).unwrap();
        let candle = image.concrete("").unwrap().unsqueeze(0).unwrap();
        let candle = candle
            .conv2d(
                &of.concrete("").unwrap(),
                padding[0],
                stride[0],
                dilation[0],
                groups,
            )
            .unwrap();
        assert_eq!(ours.shape().unwrap().dims, candle.dims()[1..]);
        let theirs: Vec<f64> = candle.flatten_all().unwrap().to_vec1().unwrap();
        for (a, b) in ours.to_f64("").unwrap().iter().zip(theirs) {
            assert!((a - b).abs() < 1e-9, "{name}: {a} {b}");
        }
    }
    check("along one axis", &[&[6, 2, 3], &[40]], 40, &|p, x| {
        images(&p[1], x, &[4, 10])?.conv1d(&p[0], 2, 1, 2, 2)
    });
}

#[test]
fn windows_without_filters() {
    for (stride, padding, size) in [
        ([2, 2], [0, 0], [2, 2]),
        ([1, 2], [1, 0], [3, 2]),
        ([3, 3], [1, 1], [2, 2]),
    ] {
        for how in [Reduce::Max, Reduce::Sum] {
            check(
                &format!("{how:?} {stride:?} {padding:?}"),
                &[&[60]],
                60,
                &move |p, x| {
                    images(&p[0], x, &[2, 5, 6])?.pool2d(
                        how,
                        size,
                        windows(stride, padding, [1, 1]),
                    )
                },
            );
        }
    }
    check("edges", &[&[24]], 24, &|p, x| {
        images(&p[0], x, &[2, 3, 4])?.pad(&[[1, 0], [2, 3]], 0.5)
    });
}

#[test]
fn tables_norms_and_sums() {
    check("embedding", &[&[3, 5]], 4, &|p, x| {
        let number = |v| Tensor::number(v, x);
        let words = x.binary(Binary::Greater, &number(0.0)?)?;
        let words = words.binary(Binary::Add, &x.binary(Binary::Greater, &number(0.7)?)?)?;
        words
            .embedding(&p[0])?
            .binary(Binary::Multiply, &p[0].select(0, 1)?)
    });
    check("layer norm", &[&[12], &[4], &[4]], 12, &|p, x| {
        let h = images(&p[0], x, &[3, 4])?.normalised(1e-5, true)?;
        h.binary(Binary::Multiply, &p[1])?
            .binary(Binary::Add, &p[2])
    });
    check("root mean square", &[&[12]], 12, &|p, x| {
        images(&p[0], x, &[3, 4])?.normalised(1e-5, false)
    });
    check("groups", &[&[24]], 24, &|p, x| {
        images(&p[0], x, &[4, 2, 3])?.group_norm(2, 1e-5)
    });
    for axis in [1, 2] {
        check("cumsum", &[&[12]], 12, &move |p, x| {
            images(&p[0], x, &[3, 4])?.cumsum(axis)
        });
    }
    check("clamp", &[&[12]], 12, &|p, x| {
        images(&p[0], x, &[12])?.clamp(-0.5, 0.7)
    });
    check("leaky", &[&[12]], 12, &|p, x| {
        images(&p[0], x, &[12])?.leaky_relu(0.1)
    });
    check("elu", &[&[12]], 12, &|p, x| {
        images(&p[0], x, &[12])?.elu(1.3)
    });
}

#[test]
fn attention_and_positions() {
    for causal in [false, true] {
        check(
            &format!("attention {causal}"),
            &[&[4, 6], &[4, 6], &[4, 6], &[20]],
            20,
            &move |p, x| {
                let x = images(&p[3], x, &[5, 4])?;
                let heads = |w: &Tensor| x.matmul(w)?.reshape(&[-1, 5, 2, 3])?.transpose(1, 2);
                heads(&p[0])?.attention(&heads(&p[1])?, &heads(&p[2])?, causal)
            },
        );
    }
    // As GPT-2 has it: parts of one product, read where they lie; with fewer heads of keys and values, and more queries than a group has.
    for (positions, heads, groups, causal) in [(5, 2, 2, true), (70, 4, 2, true), (67, 3, 1, false)]
    {
        let all = 3 * (heads + 2 * groups);
        let trial = check(
            &format!("{heads} heads, {groups} of keys, {positions} positions"),
            &[&[2, all], &[2 * positions]],
            2 * positions,
            &move |p, x| {
                let x = images(&p[1], x, &[positions as i64, 2])?.matmul(&p[0])?;
                let part = |from: usize, heads: usize| {
                    let part = x.slice(-1, 3 * from as i64, 3 * (from + heads) as i64)?;
                    part.reshape(&[-1, positions as i64, heads as i64, 3])?
                        .transpose(1, 2)
                };
                let (q, k) = (part(0, heads)?, part(heads, groups)?);
                let read = q.attention(&k, &part(heads + groups, groups)?, causal)?;
                read.transpose(1, 2)?
                    .reshape(&[-1, positions as i64, 3 * heads as i64])
            },
        );
        // The elements, the product and the attention: nothing is moved.
        assert_eq!(trial.passes(), (3, 0));
    }
    // Shared by all rows, and with keys that come before all queries.
    check(
        "known keys",
        &[&[2, 3, 4], &[1, 7, 4], &[1, 7, 5]],
        24,
        &|p, x| {
            let q = images(&p[0].flatten()?, x, &[2, 3, 4])?;
            let more = x.slice(-1, 0, 1)?.reshape(&[-1, 1, 1, 1])?;
            let rows = |t: &Tensor| t.unsqueeze(0)?.binary(Binary::Multiply, &more);
            q.attention(&rows(&p[1])?, &rows(&p[2])?, true)
        },
    );
    check("no rows", &[&[2, 3, 4], &[2, 3, 4]], 24, &|p, x| {
        let read = p[0].attention(&p[1], &p[0], true)?;
        images(&read.flatten()?, x, &[24])
    });
    for width in [4, 6] {
        check("rotary", &[&[30]], 30, &move |p, x| {
            images(&p[0], x, &[5, 6])?.rotary(10000.0, width, 2)
        });
    }
    // A product of two vectors depends on the distance of their positions alone.
    let at = |first: usize, seed: i32| {
        let x = (0..8).map(|i| f64::from((i * seed) % 5) - 2.0).collect();
        let x = Tensor::from_f64(x, &[1, 8]).unwrap();
        x.rotary(100.0, 8, first).unwrap()
    };
    let product = |a: usize, b: usize| {
        let all = at(a, 3).matmul(&at(b, 7).t().unwrap()).unwrap();
        all.to_f64("").unwrap()[0]
    };
    assert!((product(3, 9) - product(10, 16)).abs() < 1e-12);
    assert!((product(3, 9) - product(3, 8)).abs() > 1e-3);
}

/// Products that are large enough to be shared, of a table that is also what words are looked up in.
#[test]
fn shared_products_of_a_tied_table() {
    check("tied", &[&[260, 256], &[256]], 10, &|p, x| {
        let number = |v| Tensor::number(v, x);
        let words = x.binary(Binary::Greater, &number(0.0)?)?;
        let h = words.embedding(&p[0])?.binary(Binary::Multiply, &p[1])?;
        h.unary(super::Unary::Tanh)?.matmul(&p[0].t()?)
    });
}

/// Fewer heads of keys in numbers and in energies, against heads that are repeated by hand.
#[test]
fn grouped_queries_are_those_of_repeated_keys() {
    use super::{Graph, Scratch, Symbol, Tape};
    let x: Vec<f32> = (0..64).map(|i| (i as f32 * 0.61).sin()).collect();
    let read = |all: &Tensor, repeated: bool| -> Result<Tensor> {
        let part = |from, heads| all.entries(from, 8 * heads)?.reshape(&[heads, 4, 2]);
        let heads = |from| -> Result<Tensor> {
            let two = part(from, 2)?;
            let each = [0, 0, 1, 1].map(|h| two.slice(0, h, h + 1).unwrap());
            match repeated {
                true => Tensor::concat(&each.each_ref(), 0),
                false => Ok(two),
            }
        };
        let out = part(0, 4)?.attention(&heads(32)?, &heads(48)?, true)?;
        out.unary(super::Unary::Power(2))?.reduce_all(Reduce::Sum)
    };
    let numbers = Tensor::from_f64(x.iter().map(|x| f64::from(*x)).collect(), &[64]).unwrap();
    let traced = Tensor::from(Symbol::vector(64));
    let both = [false, true].map(|repeated| {
        let symbol = read(&traced, repeated).unwrap().symbol().unwrap();
        let tape = Tape::compile(&Graph::new(&symbol).unwrap(), 64, 0).unwrap();
        let value = tape.evaluate(&x, [&[] as &[f64]], None, &mut Scratch::default());
        (value, read(&numbers, repeated).unwrap().item("").unwrap())
    });
    let one = both[1].0;
    for found in [both[0].0, both[0].1, both[1].1] {
        assert!((found - one).abs() < 1e-12 * one, "{both:?}");
    }
    let keys = Tensor::from_f64(vec![0.0; 24], &[3, 4, 2]).unwrap();
    let queries = Tensor::from_f64(vec![0.0; 32], &[4, 4, 2]).unwrap();
    let e = queries.attention(&keys, &keys, false).err().unwrap();
    assert!(e.to_string().contains("do not fit"), "{e}");
}

/// The same in an energy, which is computed number by number.
#[test]
fn energies_have_convolutions_too() {
    use super::{Graph, Scratch, Symbol, Tape};
    let energy = |image: &Tensor, filters: &Tensor| -> Result<Tensor> {
        let how = windows([2, 1], [1, 1], [1, 1]);
        let out = image
            .reshape(&[2, 3, 4])?
            .conv2d(&filters.reshape(&[3, 2, 2, 2])?, how, 1)?;
        out.binary(Binary::Multiply, &out)?.reduce_all(Reduce::Sum)
    };
    let w: Vec<f32> = (0..48).map(|i| (i as f32 * 0.37).sin()).collect();
    let all = Tensor::from(Symbol::vector(48));
    let traced = energy(&all.entries(0, 24).unwrap(), &all.entries(24, 24).unwrap()).unwrap();
    let tape = Tape::compile(&Graph::new(&traced.symbol().unwrap()).unwrap(), 48, 0).unwrap();
    let mut gradient = vec![0.0; 48];
    let found = tape.evaluate(
        &w,
        [&[] as &[f64]],
        Some(&mut gradient),
        &mut Scratch::default(),
    );
    let part = |r: std::ops::Range<usize>| {
        Tensor::from_f64(w[r].iter().map(|x| f64::from(*x)).collect(), &[24]).unwrap()
    };
    let exact = energy(&part(0..24), &part(24..48))
        .unwrap()
        .item("")
        .unwrap();
    assert!(
        (found - exact).abs() < 1e-10 * exact.abs(),
        "{found} {exact}"
    );
}

#[test]
fn products_by_names_of_axes() {
    let numbers = |dims: &[usize], k: usize| {
        let count = dims.iter().product();
        let all = (0..count)
            .map(|i: usize| ((i * k) % 11) as f64 - 4.3)
            .collect();
        Tensor::from_f64(all, dims).unwrap()
    };
    let sizes = |c: char| match c {
        'a' => 2,
        'b' => 3,
        'c' => 4,
        _ => 5,
    };
    for equation in [
        "ab,bc->ac",
        "ab,cb->ca",
        "abc,bcd->ad",
        "abc,abd->acd",
        "abc,abd->dcba",
        "ab,cd->dbca",
        "ab,ab->",
        "ab,ab->ba",
        "abcd->db",
        "ab->",
        "ac,b->cab",
        "abc,c->ba",
    ] {
        let (left, out) = equation.split_once("->").unwrap();
        let names: Vec<&str> = left.split(',').collect();
        let tensors: Vec<Tensor> = names
            .iter()
            .enumerate()
            .map(|(i, n)| numbers(&n.chars().map(sizes).collect::<Vec<_>>(), 3 + 4 * i))
            .collect();
        let found = Tensor::einsum(equation, &tensors.iter().collect::<Vec<_>>()).unwrap();
        let found = found.to_f64("").unwrap();
        // The sum over all values of all letters.
        let letters: Vec<char> = "abcd".chars().filter(|c| left.contains(*c)).collect();
        let count = |all: &[char]| all.iter().map(|c| sizes(*c)).product::<usize>();
        let mut sums = vec![0.0; count(&out.chars().collect::<Vec<_>>())];
        for mut i in 0..count(&letters) {
            let mut at = std::collections::HashMap::new();
            for c in &letters {
                at.insert(*c, i % sizes(*c));
                i /= sizes(*c);
            }
            let place = |name: &str| name.chars().fold(0, |p, c| p * sizes(c) + at[&c]);
            let product = names.iter().zip(&tensors);
            let product = product.map(|(n, t)| t.to_f64("").unwrap()[place(n)]);
            sums[place(out)] += product.product::<f64>();
        }
        assert_eq!(found.len(), sums.len(), "{equation}");
        for (a, b) in found.iter().zip(&sums) {
            assert!(
                (a - b).abs() < 1e-10 * (1.0 + b.abs()),
                "{equation}: {a} for {b}"
            );
        }
    }
    for (equation, why) in [
        ("ab,bc", "does not say what comes out"),
        ("aa,ab->b", "none twice"),
        ("ab,bc->ad", "no operand has"),
        ("ab->ab", "is for 1 tensors, but there are 2"),
        ("abc,bc->a", "3 axes for a tensor of shape [2, 3]"),
    ] {
        let (a, b) = (numbers(&[2, 3], 1), numbers(&[3, 4], 1));
        let e = format!("{:#}", Tensor::einsum(equation, &[&a, &b]).err().unwrap());
        assert!(e.contains(why), "{e}");
    }
    // Traced, with rows and without, in both orders.
    check("einsum of rows", &[&[5, 4, 2]], 12, &|p, x| {
        let x = x.reshape(&[-1, 3, 4])?;
        let y = Tensor::einsum("nij,kjl->nlki", &[&x, &p[0]])?;
        Tensor::einsum("nlki,nij->nkl", &[&y, &x])?.flatten()
    });
    check("einsum of parameters first", &[&[5, 4]], 12, &|p, x| {
        let x = x.reshape(&[-1, 3, 4])?;
        Tensor::einsum("kj,nij->nik", &[&p[0], &x])?.flatten()
    });
    let mixed = check_fails(&|p, x| Tensor::einsum("nj,nk->jk", &[x, &p[0]]));
    assert!(mixed.contains("would mix examples"), "{mixed}");
}

fn check_fails(f: &dyn Fn(&[Tensor], &Tensor) -> Result<Tensor>) -> String {
    let p = Tensor::from(super::Symbol::parameter(0, &[2, 3]));
    let x = Tensor::from(super::Symbol::input(Some(4)));
    format!("{:#}", f(&[p], &x).err().unwrap())
}

#[test]
fn entries_that_are_named_by_numbers() {
    let x = Tensor::from_f64(vec![0.1, 0.9, f64::INFINITY, 0.4, 0.5, 0.6], &[2, 3]).unwrap();
    let i = Tensor::from_f64(vec![1.0, 2.0], &[2]).unwrap();
    assert_eq!(x.gather(&i).unwrap().to_f64("").unwrap(), [0.9, 0.6]);
    let i = Tensor::from_f64(vec![3.0, 0.0], &[2]).unwrap();
    let found = x.gather(&i).unwrap().to_f64("").unwrap();
    assert!(found[0].is_nan() && found[1] == 0.4, "{found:?}");
    check("gather", &[&[4, 3]], 5, &|p, x| {
        let scores = x.slice(1, 0, 4)?.matmul(&p[0])?;
        let label = x
            .slice(1, 4, 5)?
            .binary(Binary::Greater, &Tensor::number(0.0, x)?)?;
        scores.gather(&label.squeeze(1)?)?.unsqueeze(1)
    });
}
