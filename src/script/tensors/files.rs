//! Tensors in files.

use super::super::{Binder, Bound, OrRaise};
use super::tensors;
use crate::error::Result;
use crate::kernels::tensor::Tensor;
use crate::store::tensor_file::{self, Floats, Single};
use rhai::{Array, Map};

pub(super) fn bind(b: &mut Binder) {
    let context = b.context.clone();
    b.function(
        "tensor.save(path) -> string",
        "Write it as .npy or, under the name \"tensor\", as .safetensors; a relative path is below the folder of results. Returns the path, which tensor::load takes.\n\n\
         A relative path that leads out of the folder, by \"..\", is an error.",
        move |t: &mut Tensor, path: &str| -> Bound<String> {
            let path = context.session.place("tensor.save", "", path).or_raise()?;
            let write = || tensor_file::save(&path, &[("tensor".into(), stored(t)?)]);
            write().or_raise()?;
            Ok(path.display().to_string())
        },
    );
    let context = b.context.clone();
    b.function(
        "tensor::save(path, tensors) -> string",
        "Write a map of tensors by name as .safetensors, as tensor.save does one: PyTorch's `safetensors.torch.load_file` reads it.",
        move |path: &str, map: Map| -> Bound<String> {
            let path = context.session.place("tensor::save", "", path).or_raise()?;
            let names: Vec<_> = map.keys().map(|k| k.to_string()).collect();
            let all: Array = map.values().cloned().collect();
            let all = tensors(&all, "tensor::save")?;
            let each = names.into_iter().zip(&all).map(|(n, t)| Ok((n, stored(t)?)));
            let write = || tensor_file::save(&path, &each.collect::<Result<Vec<_>>>()?);
            write().or_raise()?;
            Ok(path.display().to_string())
        },
    )
    .with(&[], "tensor::load(tensor::save(\"both.safetensors\", #{ a: tensor::eye(2), b: tensor([1, 2]) }), \"b\")");
    b.function(
        "tensor::load(path) -> Tensor",
        "A tensor from an .npy file as NumPy's `save` writes it, or the only one of a .safetensors file; `tensor::load(path, name)` reads one of several, of PyTorch's .pt and .pth and of .npz, too.",
        |path: &str| load(path, None).or_raise(),
    )
    .with(&[], "tensor::load(tensor([[1, 2], [3, 4]]).save(\"matrix.npy\"))");
    b.function(
        "tensor::load(path, name) -> Tensor",
        "",
        |path: &str, name: &str| load(path, Some(name)).or_raise(),
    );
}

/// A tensor as a file has it.
fn stored(t: &Tensor) -> Result<Single> {
    let shape = t.shape()?.dims;
    let all = t.to_f64("save")?;
    Ok(match t.is_single() {
        true => (
            shape,
            Floats::F32(all.into_iter().map(|x| x as f32).collect()),
        ),
        false => (shape, Floats::F64(all)),
    })
}

fn load(path: &str, name: Option<&str>) -> Result<Tensor> {
    let (shape, numbers) = tensor_file::load(path.as_ref(), name)?;
    match numbers {
        Floats::F32(v) => Tensor::from_f32(v, &shape),
        Floats::F64(v) => Tensor::from_f64(v, &shape),
    }
}
