//! The verbs of weights: `model.weights`, and `model.load` and `model.save` of their files.

use super::session::Session;
use crate::error::{Result, count};
use crate::model::load::{load, saved, saved_like};
use crate::model::naming::{Naming, RENAME, TRANSPOSE};
use crate::model::{Layout, Model};
use crate::options::{Kind, Options, Range, Spec, Value, optional};
use crate::rng::{Purpose, Stream};
use crate::store::named;
use crate::target::Target;
use crate::target::prior::Parameters;
use crate::verb::{Call, Either, Verb};
use anyhow::{anyhow, ensure};
use std::path::Path;
use std::sync::Arc;

/// The option that chooses among state dicts.
pub(super) const KEY: Spec = optional(
    "key",
    Kind::Text,
    "the only state dict there is",
    "Which state dict of a PyTorch file: \"state_dict\" where it was saved as {\"epoch\": …, \"state_dict\": …}, \"model.net\" of one within another, \"\" the outermost.",
);

/// The verb `model.load`.
pub static LOAD: Verb<Session, (Arc<dyn Model>, String), Arc<Parameters>> = Verb {
    name: "model.load",
    arguments: &["model", "path"],
    options: &[RENAME, TRANSPOSE, KEY],
    doc: "Parameters from a file of weights: PyTorch's .pt and .pth, .safetensors, or .npz.\n\n\
          The file has every tensor of the model and no other floats, in float16, bfloat16, float32 or float64; whole numbers, such as `num_batches_tracked`, are left out with a word. Of a .pt file \
          the state dict is read (`torch.save(model.state_dict(), path)`), without running anything of it. \
          The layers of `model::mlp` are [out, in] as PyTorch's Linear, so that the state dict of a Sequential loads as it is: `0.weight, 0.bias, 2.weight, …` are w1, b1, w2, …, and a remark says so. \
          `model.save` with the same options writes such files.",
    example: "let net = model::mlp(#{ layers: [4, 8, 8, 3] });\n\
              net.load(\"tests/data/pytorch/mlp.pt\")",
    call: Call::Checked(|(model, path), o, session| {
        let mut naming = Naming::from_options(o)?;
        let loaded = load(&*model, Path::new(&path), &mut naming, o.opt_text("key"))?;
        for note in loaded.notes.iter().filter(|_| !session.quiet) {
            session.console.remark(&format!("NOTE: '{path}': {note}"));
        }
        let vectors = vec![Arc::new(loaded.w)];
        Ok(Arc::new(Parameters { vectors }))
    }),
};

/// The verb `model.weights`.
pub static WEIGHTS: Verb<Session, (Arc<dyn Model>,), Arc<Parameters>> = Verb {
    name: "model.weights",
    arguments: &["model"],
    options: &[optional(
        "seed",
        Kind::Int(Range::NonNegative),
        "from --seed",
        "Of the draw, where the model has no numbers of its own.",
    )],
    doc: "The parameters that a model begins with: those of its file, of model::onnx; otherwise a draw of its initial law.",
    example: "let net = model::onnx(\"tests/data/onnx/mlp.onnx\");\n\
              net.save(\"net.pt\", net.weights())",
    call: Call::Checked(|(model,), o, session| {
        let own = || super::session::seed_of(session.seed, "weights");
        let seed = o.opt_int("seed").unwrap_or_else(own);
        let vectors = vec![Arc::new(model.initialise(Stream::new(
            seed,
            Purpose::Initialise,
            0,
            0,
        )))];
        Ok(Arc::new(Parameters { vectors }))
    }),
};

/// What weights are of: a model, or a target, some parameters of which are not those of its model.
pub type Of = Either<(Arc<dyn Model>, String, Value), (Arc<Target>, String, Value)>;

/// The verb `model.save`.
pub static SAVE: Verb<Session, Of, String> = Verb {
    name: "model.save",
    arguments: &["model", "path", "parameters"],
    options: &[
        RENAME,
        TRANSPOSE,
        optional(
            "like",
            Kind::Text,
            "by rename and transpose alone",
            "A file of weights that `model.load` reads with these options: the new one has its names, its order and its matrices the same way round.",
        ),
        KEY,
        optional(
            "chain",
            Kind::Int(Range::NonNegative),
            "there is one vector only",
            "Which of several vectors, from 0.",
        ),
    ],
    doc: "Write parameters as a file of weights that PyTorch loads: .pt and .pth (a state dict), .safetensors or .npz, by the ending.\n\n\
          Parameters are what was trained, loaded, or a draw: `net.save(\"draw.pt\", run.draw(0, 99), #{ like: \"net.pt\" })`, then in Python \
          `net.load_state_dict(torch.load(\"draw.pt\", weights_only=True))`. The options are those of `model.load`, with the names of the file on the left there as here. Numbers are float32. \
          `target.save(path, parameters)` writes the network of a target whose prior or loss has parameters, too: these are left out. \
          A relative path is below the folder of results. Returns the path.",
    example: "let net = model::mlp(#{ layers: [4, 8, 8, 3] });\n\
              let w = net.load(\"tests/data/pytorch/mlp.pt\");\n\
              net.load(net.save(\"again.pt\", w, #{ like: \"tests/data/pytorch/mlp.pt\" }))",
    call: Call::Checked(|of, o, session| {
        let owner = o.owner();
        let (model, dim, path, given) = match of {
            Either::First((model, path, w)) => (model.clone(), model.layout().len(), path, w),
            Either::Second((target, path, w)) => {
                let model = target.network("target.save")?.model().clone();
                (model, target.dim(), path, w)
            }
        };
        let w = vector(&given, dim, model.layout(), o)?;
        let mut naming = Naming::from_options(o)?;
        let tensors = match o.opt_text("like") {
            Some(like) => saved_like(&*model, &w, Path::new(like), &mut naming, o.opt_text("key"))?,
            None => {
                ensure!(
                    o.get("key").is_none(),
                    "{owner}: the option 'key' chooses within the file of the option 'like'"
                );
                saved(&*model, &w, Path::new(&path), &naming)?
            }
        };
        let path = session.place(owner, "", &path)?;
        let tensors: Vec<_> = tensors
            .iter()
            .map(|(n, s, x)| (n.clone(), s.clone(), &x[..]))
            .collect();
        named::write(&path, &tensors)?;
        Ok(path.display().to_string())
    }),
};

/// The numbers of the network in one of some parameter vectors, each of which has so many.
fn vector(given: &Value, dim: usize, layout: &Layout, o: &Options) -> Result<Vec<f32>> {
    let owner = o.owner();
    let parameters = given.as_object::<Parameters>().ok_or_else(|| {
        anyhow!(
            "{owner} takes parameters, a training, a run or a tensor of numbers, not {}",
            given.describe()
        )
    })?;
    let vectors = &parameters.vectors;
    let chain = match (o.opt_int("chain"), vectors.len()) {
        (Some(chain), n) if (chain as usize) < n => chain as usize,
        (None, 1) => 0,
        (Some(chain), n) => anyhow::bail!(
            "{owner}: option 'chain' is {chain}, but there {}",
            if n == 1 {
                "is one vector, 0".into()
            } else {
                format!("are {n} vectors, from 0")
            }
        ),
        (None, n) => anyhow::bail!(
            "{owner}: there are {}, and a file has one; choose it by the option 'chain'",
            count(n, "vector")
        ),
    };
    let w = &vectors[chain];
    ensure!(
        w.len() == dim,
        "{owner}: the vector has {} numbers, but {dim} are needed{}",
        w.len(),
        if w.len() > dim {
            "; where a prior or a loss has parameters, write target.save(path, parameters)"
        } else {
            ""
        }
    );
    // What priors and losses have stands behind.
    let own = w.get(..layout.len());
    own.map(<[f32]>::to_vec)
        .ok_or_else(|| anyhow!("{owner}: the target has {dim} parameters, fewer than its network"))
}
