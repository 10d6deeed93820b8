//! `model::pretrained`: a language model from a folder as Hugging Face's `save_pretrained` writes it.
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | from a folder to a model |
//! | `config.rs`, `files.rs` | what config.json says; the files of weights |
//! | `weights.rs` | the tensors, each taken once |
//! | `parts.rs`, `rotary.rs` | what decoders are made of |
//! | `gpt2.rs`, `gpt_neox.rs`, `llama.rs` | the families |

mod config;
mod files;
mod gpt2;
mod gpt_neox;
mod llama;
mod parts;
mod rotary;
#[cfg(test)]
mod tests;
mod weights;

use super::Model;
use super::custom::{CHECKPOINT, Custom, Parameters};
use super::freeze::{FREEZE, Freeze};
use super::initialise::Initialise;
use crate::access;
use crate::error::{Result, in_file};
use crate::kernels::tensor::{Symbol, Tensor};
use crate::options::{Entry, Kind, Options, Range, optional, required};
use anyhow::{Context, bail, ensure};
use config::Config;
use gpt_neox::GptNeox;
use gpt2::Gpt2;
use llama::Llama;
use std::path::Path;
use std::sync::Arc;
use weights::Weights;

/// Positions where nobody says how many: attention takes their square.
const POSITIONS: usize = 1024;

/// `model::pretrained`.
pub const ENTRY: Entry<Arc<dyn Model>> = Entry {
    name: "pretrained",
    doc: "A language model from a folder as `save_pretrained` of the Python package transformers writes it; it begins with the numbers of the folder.\n\n\
          The folder has config.json and the weights: model.safetensors or pytorch_model.bin, or several files and their index. Families (`model_type`): gpt2, gpt_neox (Pythia), llama, mistral, qwen2. \
          float16 and bfloat16 are read to float32. The network is traced and compiled with its derivatives, as that of model::custom is; dropout is off. \
          What is not supported is refused by name: quantised weights, sliding windows shorter than the context, other scalings of rotary positions than linear and llama3.\n\n\
          Inputs are tokens [rows, context], outputs the scores of each next token [rows, context, vocabulary]: `dataset::tokens` and `dataset::text` give both, \
          with `context: net.inputs` and `vocabulary: net.vocabulary`. Parameters have the names of the checkpoint, in the order in which they are used; `net.weights()` gives their numbers, to begin with \
          or to restrict to, as in `llc(t, s, #{ start: net.weights(), restrict: \"transformer.h.0.attn.c_attn.weight[:, 0..16]\" })`. \
          `transformer.h.0.attn.head1`, the name of its attention and the number of a head, from 0, stands for a head's slices of queries, keys, values, their biases, and outputs; \
          where several heads share keys and values, each has them.",
    arguments: &["folder"],
    options: &[
        required("folder", Kind::Text, "The folder."),
        optional(
            "context",
            Kind::Int(Range::Between(1.0, 1048576.0)),
            "all positions that config.json says, but at most 1024",
            "Positions of a row.",
        ),
        FREEZE,
        CHECKPOINT,
    ],
    example: "let net = model::pretrained(\"tests/data/pretrained\", #{ context: 16 });\n\
              let data = dataset::tokens(\"tests/data/tokens.npy\", #{ context: net.inputs, vocabulary: net.vocabulary });\n\
              target(net, data).energies(net.weights()).loss",
    build: |o| {
        let folder = o.text("folder")?;
        in_file(folder, build(o, Path::new(folder)))
    },
};

/// Sizes that all families have.
struct Size {
    layers: usize,
    width: usize,
    heads: usize,
    words: usize,
    positions: usize,
}

/// A family of networks, with the sizes of one of them.
trait Decoder {
    fn size(&self) -> &Size;

    /// What the names of all tensors but the head begin with, in a network that has one.
    fn body(&self) -> &'static str;

    /// Ends of the names of tensors that are no weights.
    fn buffers(&self) -> &'static [&'static str];

    /// What attention of a layer is called, and the slices of its tensors that one head has.
    fn head(&self, layer: usize, head: usize) -> (String, Vec<String>);

    /// Scores [rows, context, words] of tokens [rows, context].
    fn trace(&self, w: &mut Weights, x: &Tensor, context: usize) -> Result<Tensor>;
}

fn decoder(c: &Config) -> Result<Box<dyn Decoder>> {
    if let Some(how) = c.get("quantization_config") {
        let method = how.get("quant_method").and_then(|m| m.as_str());
        bail!(
            "its weights are quantised ({}), which is not supported; save the network without quantisation",
            method.unwrap_or("config.json: 'quantization_config'")
        );
    }
    Ok(match c.family()? {
        "gpt2" => Box::new(Gpt2::new(c)?),
        "gpt_neox" => Box::new(GptNeox::new(c)?),
        family @ ("llama" | "mistral" | "qwen2") => Box::new(Llama::new(c, family)?),
        other => bail!(
            "networks of the family \"{other}\" (config.json: 'model_type') are not supported; there are gpt2, gpt_neox, llama, mistral and qwen2. \
             Others may be read as ONNX files, by model::onnx"
        ),
    })
}

/// Names of the heads, each with its slices of tensors that are parameters.
fn heads(decoder: &dyn Decoder, body: &str, known: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut out = Vec::new();
    for layer in 0..decoder.size().layers {
        for head in 0..decoder.size().heads {
            let (attention, slices) = decoder.head(layer, head);
            let attention = format!("{body}{attention}");
            let slices = slices.iter().map(|s| format!("{attention}.{s}"));
            let is_known = |s: &String| s.split('[').next().is_some_and(|t| known.contains(&t));
            let slices: Vec<_> = slices.filter(is_known).collect();
            if !slices.is_empty() {
                out.push((format!("{attention}.head{head}"), slices));
            }
        }
    }
    out
}

fn build(o: &Options, folder: &Path) -> Result<Arc<dyn Model>> {
    let shown = folder.display();
    access::read(folder).with_context(|| format!("'{shown}'"))?;
    ensure!(folder.exists(), "there is no folder '{shown}'");
    ensure!(
        folder.is_dir(),
        "'{shown}' is a file, but the folder is needed that has config.json and the weights"
    );
    let within = |e: anyhow::Error| e.context(format!("'{shown}'"));
    let mut freeze = Freeze::from_options(o)?;
    read(folder, o, &mut freeze).map_err(within)
}

fn read(folder: &Path, o: &Options, freeze: &mut Freeze) -> Result<Arc<dyn Model>> {
    let decoder = decoder(&Config::read(folder)?)?;
    let positions = decoder.size().positions;
    let context = match o.opt_int("context") {
        None => positions.min(POSITIONS),
        Some(given) => given as usize,
    };
    ensure!(
        context <= positions,
        "option 'context' is {context}, but by config.json the network knows {positions} positions"
    );
    let mut weights = Weights::new(files::read(folder)?, freeze, decoder.body());
    let x = Symbol::input(Some(context)).into();
    let body = weights.body_name();
    let scores = decoder.trace(&mut weights, &x, context)?;
    let declared = weights.finish(decoder.buffers())?;
    let known: Vec<_> = declared.iter().map(|d| &*d.name).collect();
    freeze.check(&known)?;
    ensure!(
        !declared.is_empty(),
        "option 'freeze': all parameters stay as they are, so that there are none"
    );
    let heads = heads(&*decoder, body, &known);
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
    let all = Parameters::new(name.as_deref(), declared, Initialise::Pytorch)?;
    let model = Custom::new(
        all.of_kind("pretrained").with_parts(heads),
        &scores.symbol()?,
        Some(context),
    )?;
    let model = model.with_checkpoints(o.bool("checkpoint")?);
    Ok(Arc::new(model.with_vocabulary(decoder.size().words)))
}
