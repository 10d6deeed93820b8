//! The transformer: gradients derived by hand against candle's autograd and finite differences in double precision, causality, rows
//! and threads, and what is refused.

use super::support::{check_along, evaluate};
use candle_core::{DType, Device, Tensor, Var};
use ergodic::dataset::{Dataset, Inputs, Split, Targets};
use ergodic::kernels::normal::fill_normal;
use ergodic::model::loss::Loss;
use ergodic::model::transformer::{Settings, Transformer};
use ergodic::model::{Model, Tile};
use ergodic::rng::{Purpose, Stream};
use ergodic::target::network::Network;
use ergodic::target::{Potential, Rows, Workspace};
use std::sync::Arc;

const VOCABULARY: usize = 7;

fn settings(context: usize) -> Settings {
    Settings {
        vocabulary: VOCABULARY,
        context,
        layers: 2,
        width: 12,
        heads: 3,
        head_width: 5,
        layer_norm: true,
        bias: false,
        init_scale: 0.3,
    }
}

fn tokens(n: usize, step: u64) -> Vec<u32> {
    let mut out = vec![0; n];
    Stream::new(3, Purpose::Dataset, 0, step).indices(VOCABULARY, &mut out);
    out
}

fn dataset(rows: usize, context: usize) -> Arc<Dataset> {
    let targets = Targets::Sequence {
        positions: context,
        labels: tokens(rows * context, 2),
    };
    let inputs = Inputs::Tokens(tokens(rows * context, 1));
    let split = Split::new(context, inputs, targets).unwrap();
    Arc::new(Dataset::new("made up", VOCABULARY, split, None, Vec::new()).unwrap())
}

fn normals(n: usize, step: u64) -> Vec<f32> {
    let mut x = vec![0.0; n];
    fill_normal(&Stream::new(5, Purpose::Dataset, 0, step), &mut x);
    x
}

/// Off the initial point, so that biases and layer norms take part.
fn parameters(model: &Transformer) -> Vec<f32> {
    let w = model.initialise(Stream::new(1, Purpose::Initialise, 0, 0));
    let noise = normals(w.len(), 3);
    w.iter().zip(noise).map(|(a, b)| a + 0.1 * b).collect()
}

fn network(s: Settings, rows: usize, loss: Option<Loss>) -> (Network, Vec<f32>) {
    let data = dataset(rows, s.context);
    let model = Transformer::new(s).unwrap();
    let w = parameters(&model);
    (Network::new(Arc::new(model), data, loss).unwrap(), w)
}

fn gradient(n: &Network, w: &[f32], rows: Rows, threads: usize) -> (f64, f64, Vec<f32>) {
    let mut grad = vec![f32::NAN; w.len()];
    let sums = n
        .sums(w, rows, Some(&mut grad), &mut Workspace::new(threads))
        .unwrap();
    (sums.loss, sums.errors, grad)
}

/// The summed loss by candle, in double precision.
fn reference(n: &Network, w: &Tensor) -> candle_core::Result<Tensor> {
    let split = &n.dataset().train;
    let (rows, context) = (split.rows, split.dim);
    let mut x = vec![0.0; rows * context];
    split.copy(0..rows, &mut x);
    let x = Tensor::from_slice(&x, (rows, context), &Device::Cpu)?.to_dtype(DType::F64)?;
    let out = n
        .model()
        .forward_tensor(w, &x)?
        .reshape((rows * context, VOCABULARY))?;
    let labels = split.labels().unwrap();
    let all = labels.len();
    if *n.loss() == Loss::CrossEntropy {
        let labels = Tensor::from_slice(labels, all, &Device::Cpu)?;
        return candle_nn::loss::cross_entropy(&out, &labels)? * rows as f64;
    }
    let mut y = vec![0f64; all * VOCABULARY];
    labels
        .iter()
        .enumerate()
        .for_each(|(i, l)| y[i * VOCABULARY + *l as usize] = 1.0);
    let y = Tensor::from_slice(&y, (all, VOCABULARY), &Device::Cpu)?;
    (out - y)?.sqr()?.sum_all()? / context as f64
}

/// Compare loss and gradient with candle and with central differences.
fn check(s: Settings, rows: usize, loss: Loss) {
    let name = format!("{s:?}, {rows} rows, {loss:?}");
    let (net, w) = network(s, rows, Some(loss));
    let n = w.len();
    let (value, _, grad) = gradient(&net, &w, Rows::All, 1);
    let exact: Vec<f64> = w.iter().map(|x| *x as f64).collect();
    let var = Var::from_slice(&exact, n, &Device::Cpu).unwrap();
    let by_candle = reference(&net, var.as_tensor()).unwrap();
    let store = by_candle.backward().unwrap();
    let by_candle = by_candle.to_scalar::<f64>().unwrap();
    assert!(
        (value / by_candle - 1.0).abs() < 1e-5,
        "{name}: loss {value} against {by_candle}"
    );
    let expected = store
        .get(var.as_tensor())
        .unwrap()
        .to_vec1::<f64>()
        .unwrap();
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let length = norm(&mut expected.iter().copied());
    // Tensor by tensor: a small one must be right, too. Keys' biases have no gradient but rounding errors.
    for t in net.layout().tensors() {
        let pairs = || expected[t.range.clone()].iter().zip(&grad[t.range.clone()]);
        let distance = norm(&mut pairs().map(|(a, b)| a - *b as f64));
        let own = norm(&mut pairs().map(|(a, _)| *a));
        assert!(
            distance < 3e-5 * own + 1e-6 * length,
            "{name}: gradient of {} off by {distance:.1e} of {own:.1e}",
            t.name
        );
    }
    let exactly = |w: &[f64]| {
        let w = Tensor::from_slice(w, n, &Device::Cpu).unwrap();
        reference(&net, &w).unwrap().to_scalar::<f64>().unwrap()
    };
    let directions: Vec<_> = (0..2).map(|d| normals(n, 10 + d)).collect();
    check_along(
        &name,
        exactly,
        &exact,
        &grad,
        &directions,
        (1e-6, 1e-4 * length),
    );
}

#[test]
fn gradients_match_autograd_and_finite_differences() {
    for (layer_norm, bias) in [(true, false), (false, false), (true, true), (false, true)] {
        for (context, rows) in [(1, 5), (9, 13)] {
            let s = Settings {
                layer_norm,
                bias,
                ..settings(context)
            };
            check(s, rows, Loss::CrossEntropy);
        }
    }
    check(settings(6), 4, Loss::SquaredError);
}

#[test]
fn contexts_of_several_groups_and_without_kept_probabilities_are_the_same_function() {
    check(settings(70), 3, Loss::CrossEntropy);
    let s = Settings {
        layers: 1,
        ..settings(150)
    };
    check(s, 2, Loss::CrossEntropy);
}

/// More parameters than a small network has: then threads share tiles, in blocks of different sizes.
#[test]
fn tiles_of_several_blocks_add_up() {
    let s = Settings {
        width: 64,
        head_width: 40,
        ..settings(20)
    };
    check(s, 131, Loss::CrossEntropy);
}

#[test]
fn several_threads_give_the_same_bits() {
    let wide = Settings {
        width: 64,
        head_width: 40,
        ..settings(20)
    };
    for s in [settings(20), wide] {
        let (net, w) = network(s, 131, None);
        let bits = |threads: usize| {
            let (loss, errors, grad) = gradient(&net, &w, Rows::All, threads);
            let grad: Vec<_> = grad.iter().map(|g| g.to_bits()).collect();
            (loss.to_bits(), errors.to_bits(), grad)
        };
        for threads in [2, 3] {
            assert_eq!(bits(1), bits(threads), "{threads} threads");
        }
    }
}

#[test]
fn a_minibatch_is_the_sum_of_its_rows_in_any_order() {
    let (net, w) = network(settings(20), 40, None);
    let rows = [7, 39, 0, 7];
    let (loss, errors, grad) = gradient(&net, &w, Rows::Indices(&rows), 1);
    let (mut sum, mut wrong, mut total) = (0.0, 0.0, vec![0.0; w.len()]);
    for r in [0, 7, 39, 7] {
        let (loss, errors, grad) = gradient(&net, &w, Rows::Indices(&[r]), 1);
        (sum, wrong) = (sum + loss, wrong + errors);
        total.iter_mut().zip(grad).for_each(|(t, g)| *t += g);
    }
    assert!((loss - sum).abs() < 1e-5 && (errors - wrong).abs() < 1e-12);
    let largest = grad.iter().fold(0f32, |m, g| m.max(g.abs()));
    assert!(
        grad.iter()
            .zip(&total)
            .all(|(a, b)| (a - b).abs() < 1e-5 * largest)
    );
}

/// The fraction of positions, as seen from the outputs.
#[test]
fn errors_are_fractions_of_positions_and_the_loss_is_their_mean() {
    let (net, w) = network(settings(9), 11, None);
    let split = &net.dataset().train;
    let out = net.predict(&w, split).unwrap();
    let (mut loss, mut wrong) = (0.0, 0.0);
    for (z, label) in out.chunks(VOCABULARY).zip(split.labels().unwrap()) {
        let own = z[*label as usize] as f64;
        loss += z.iter().map(|z| (*z as f64).exp()).sum::<f64>().ln() - own;
        wrong += f64::from(z.iter().any(|z| *z as f64 > own));
    }
    let sums = net
        .sums(&w, Rows::All, None, &mut Workspace::default())
        .unwrap();
    assert!((sums.loss - loss / 9.0).abs() < 1e-5);
    assert!((sums.errors - wrong / 9.0).abs() < 1e-9);
}

/// Logits of one row of tokens.
fn logits(model: &Transformer, w: &[f32], row: &[f32]) -> anyhow::Result<Vec<f32>> {
    let mut tile = Tile::default();
    let mut blocks = tile.blocks(model, 1, 1, false);
    blocks[0].inputs.copy_from_slice(row);
    model.forward(w, &mut blocks[0])?;
    Ok(blocks[0].activations.last().unwrap().to_vec())
}

#[test]
fn no_position_sees_a_later_token_and_every_position_sees_earlier_ones() {
    for context in [9, 70, 140] {
        let model = Transformer::new(settings(context)).unwrap();
        let w = parameters(&model);
        let row: Vec<f32> = tokens(context, 1).into_iter().map(|t| t as f32).collect();
        let before = logits(&model, &w, &row).unwrap();
        for changed in [0, context / 2, context - 1] {
            let mut other = row.clone();
            other[changed] = (other[changed] + 1.0) % VOCABULARY as f32;
            let after = logits(&model, &w, &other).unwrap();
            let (early, late) = before.split_at(changed * VOCABULARY);
            assert_eq!(early, &after[..early.len()]);
            let late = late
                .chunks(VOCABULARY)
                .zip(after[early.len()..].chunks(VOCABULARY));
            assert!(late.into_iter().all(|(a, b)| a != b));
        }
    }
}

#[test]
fn what_is_no_token_is_refused_by_the_model() {
    let model = Transformer::new(settings(3)).unwrap();
    let w = parameters(&model);
    for bad in [7.0, -1.0, 0.5, f32::NAN] {
        let e = logits(&model, &w, &[0.0, 1.0, bad])
            .unwrap_err()
            .to_string();
        assert!(e.contains("at position 2 is not a token below 7"), "{e}");
    }
}

#[test]
fn models_and_data_that_do_not_fit_are_refused() {
    let model = |s: Settings| -> Arc<dyn Model> { Arc::new(Transformer::new(s).unwrap()) };
    let message = |m, d| Network::new(m, d, None).err().unwrap().to_string();
    let e = message(model(settings(8)), dataset(3, 9));
    assert!(e.contains("takes 8 inputs, but 'made up' has 9"), "{e}");
    let few = Settings {
        vocabulary: 5,
        ..settings(9)
    };
    let e = message(model(few), dataset(3, 9));
    assert!(
        e.contains("has 5 outputs, but 'made up' has 7 classes"),
        "{e}"
    );
    let sequence = |labels| Targets::Sequence {
        positions: 9,
        labels,
    };
    let one = |inputs, targets| {
        let split = Split::new(9, inputs, targets).unwrap();
        Arc::new(Dataset::new("other", VOCABULARY, split, None, Vec::new()).unwrap())
    };
    let e = message(
        model(settings(9)),
        one(Inputs::Tokens(vec![0; 9]), Targets::Classes(vec![1])),
    );
    assert!(
        e.contains("9 positions of a row, but 'other' has 1 targets"),
        "{e}"
    );
    let e = message(
        model(settings(9)),
        one(Inputs::F32(vec![0.0; 9]), sequence(vec![0; 9])),
    );
    assert!(
        e.contains("takes tokens, but the inputs of 'other' are not tokens"),
        "{e}"
    );
    let mut large = vec![0; 18];
    large[13] = 7;
    let e = message(
        model(settings(9)),
        one(Inputs::Tokens(large), sequence(vec![0; 18])),
    );
    assert!(
        e.contains("has token 7 at position 4 of row 1 of the train split"),
        "{e}"
    );
    let split = |labels| Split::new(9, Inputs::Tokens(vec![0; 18]), sequence(labels)).unwrap();
    let mut labels = vec![0; 18];
    labels[10] = 7;
    let e = Dataset::new("d", VOCABULARY, split(labels), None, Vec::new())
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("label of position 1 of row 1 of the training split is 7"),
        "{e}"
    );
}

/// From the data to the scores: two blocks with two heads are enough to copy.
#[test]
fn a_transformer_is_trained_sampled_and_scored() {
    let said = evaluate(
        r#"
        let data = dataset::induction(#{ vocabulary: 8, context: 15, train: 400, test: 100 });
        let net = model::transformer(#{ vocabulary: data.classes, context: data.dim, layers: 2, width: 32, heads: 2 });
        let t = target(net, data);
        let start = train(t, optimizer::adam(#{ lr: 0.01, epochs: 40, batch: 50 }));
        let run = sample(t, sampler::sgld(#{ step: 1e-3, batch: 50 }), #{
            temperature: 1e-6, start: start, chains: 2, steps: 100, every: 10,
            observe: [observable::cost(), observable::error(), observable::error("test")], predict: "test" });
        #{ draws: run.summary(), scores: run.prediction("test") }
        "#,
    );
    let said = said.unwrap_or_else(|e| panic!("{e}"));
    let number = |of: &str, name: &str| {
        let found = said[of][name].as_f64();
        found.unwrap_or_else(|| panic!("{of}: {name} in {said}"))
    };
    // The first segment is 3 to 7 of 16 tokens: about two thirds of the labels can be copied.
    let (loss, error) = (8f64.ln(), 7.0 / 8.0);
    assert!(number("draws", "cost") < 0.8 * loss, "{said}");
    assert!(number("draws", "error") < 0.8 * error, "{said}");
    assert!(number("draws", "error_test") < 0.8 * error, "{said}");
    // At this temperature draws are alike: the averaged prediction is that of each draw.
    let apart = number("scores", "error") - number("draws", "error_test");
    assert!(apart.abs() < 0.02, "{said}");
    assert!(number("scores", "nll") < 0.8 * loss, "{said}");
}

/// A head is the same slice of its four matrices, and of their biases.
#[test]
fn heads_are_parts_by_name() {
    for bias in [false, true] {
        let model = Transformer::new(Settings {
            bias,
            ..settings(4)
        })
        .unwrap();
        let part = model.layout().part("block2.attn.head3").unwrap();
        let mut names: Vec<_> = part.iter().map(|t| t.name.as_str()).collect();
        let mut expected = vec![
            "block2.attn.query[2]",
            "block2.attn.key[2]",
            "block2.attn.value[2]",
            "block2.attn.out[2]",
        ];
        if bias {
            expected.extend([
                "block2.attn.query_bias[2]",
                "block2.attn.key_bias[2]",
                "block2.attn.value_bias[2]",
            ]);
        }
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
        let size: usize = part.iter().map(|t| t.count()).sum();
        assert_eq!(size, 4 * 5 * 12 + if bias { 3 * 5 } else { 0 });
        // All heads together are the matrices.
        let heads = (1..=3).flat_map(|h| {
            model
                .layout()
                .part(&format!("block1.attn.head{h}"))
                .unwrap()
        });
        let of_heads: usize = heads.map(|t| t.count()).sum();
        let whole = model.layout().part("block1.attn").unwrap();
        let of_block: usize = whole.iter().map(|t| t.count()).sum();
        assert_eq!(of_heads + if bias { 12 } else { 0 }, of_block);
    }
    let model = Transformer::new(settings(4)).unwrap();
    let said = model
        .layout()
        .part("block1.attn.head4")
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("block1.attn.head1 … block2.attn.head3"),
        "{said}"
    );
}

/// What a checkpoint of a long training holds is what a short one ends with; it survives an interruption, and is refused where there is none.
#[test]
fn checkpoints_are_where_training_was() {
    const SETTING: &str =
        "let data = dataset::induction(#{ vocabulary: 8, context: 6, train: 64, test: 0 });
         let u = target(model::transformer(#{ vocabulary: 8, context: 6, layers: 1, width: 8, heads: 2 }), data);
         let fit = |epochs, o| train(u, optimizer::adamw(#{ epochs: epochs, batch: 16, weight_decay: 0.1 }), o + #{ seed: 4, chains: 2 });";
    let found = evaluate(&format!(
        "{SETTING}
         let long = fit.call(5, #{{ checkpoints: [5, 2, 0, 2] }});
         let short = fit.call(2, #{{}});
         let same = |a, b| {{ let out = true; for c in 0..2 {{ if a.vector(c).to_array() != b.vector(c).to_array() {{ out = false; }} }} out }};
         [long.checkpoints, same.call(long.checkpoint(2), short.params()), same.call(long.checkpoint(5), long.params()), same.call(long.checkpoint(0), long.params())]"
    ))
    .unwrap();
    assert_eq!(found, serde_json::json!([[0, 2, 5], true, true, false]));
    let said = evaluate(&format!(
        "{SETTING} fit.call(3, #{{ checkpoints: [1] }}).checkpoint(2)"
    ));
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("kept no parameters of epoch 2") && said.contains("[1]"),
        "{said}"
    );
    let said = evaluate(&format!("{SETTING} fit.call(3, #{{ checkpoints: [4] }})"));
    let said = said.unwrap_err().to_string();
    assert!(said.contains("has epoch 4, but there are only 3"), "{said}");
}

/// Null hypothesis: the coefficient is the same before and after the loss falls. It is far from that, for all weights; chains at the two
/// points are thermal, and the losses of the data that cannot be foretold stay where they are.
#[test]
#[ignore = "long: tests/run"]
fn the_coefficient_rises_when_the_transformer_learns_to_copy() {
    let found = evaluate(
        "let data = dataset::induction(#{ vocabulary: 16, context: 16, train: 1024, test: 200 });
         let u = target(model::transformer(#{ vocabulary: 16, context: 16, layers: 2, width: 32, heads: 4 }), data);
         let t = train(u, optimizer::adamw(#{ lr: 5e-3, weight_decay: 0.05, batch: 32, epochs: 16 }), #{ checkpoints: [1, 16], seed: 1 });
         let loss = t.history(\"loss_test\");
         let out = [loss[0], loss[15]];
         for epoch in [1, 16] {
             let e = llc(u, sampler::rmsprop_sgld(#{ batch: 64, step: 1e-4 }), #{ start: t.checkpoint(epoch), gamma: 100, steps: 400, chains: 2, seed: 1 });
             out += [e.estimate, e.mcse, e.virial];
         }
         out",
    )
    .unwrap();
    let x: Vec<f64> = serde_json::from_value(found).unwrap();
    assert!(x[0] > 2.4 && x[1] < 1.9, "ln 16 is 2.77: {x:?}");
    assert!(
        (x[4] - 1.0).abs() < 0.1 && (x[7] - 1.0).abs() < 0.1,
        "{x:?}"
    );
    assert!(
        x[5] - x[2] > 4.0 * x[3].hypot(x[6]) && x[5] > 2.0 * x[2],
        "{x:?}"
    );
}

/// What is remembered of an anchor is what is computed there, and is not taken for another point.
#[test]
fn an_anchor_is_remembered_and_no_other_point() {
    let (n, w) = network(settings(5), 9, None);
    let other: Vec<f32> = w.iter().map(|w| 1.01 * w).collect();
    let mut work = Workspace::new(1);
    for at in [&w, &w, &other, &w] {
        let (mut anchor, mut plain) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        let a = n.sums_at_anchor(at, &mut anchor, &mut work).unwrap();
        let b = n.sums(at, Rows::All, Some(&mut plain), &mut work).unwrap();
        assert_eq!((a.loss, anchor), (b.loss, plain));
    }
}
