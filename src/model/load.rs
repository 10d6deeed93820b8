//! Parameters of a model from a safetensors file, by the names of its tensors.

use super::Layout;
use crate::error::{Result, did_you_mean};
use crate::store::weights::load_weights;
use anyhow::{bail, ensure};
use std::path::Path;

/// The parameter vector of a layout from a file that has its tensors, in any order, and no others.
pub fn weights(layout: &Layout, path: &Path) -> Result<Vec<f32>> {
    let file = path.display();
    let tensors = load_weights(path)?;
    let mut out = vec![0f32; layout.len()];
    for t in layout.tensors() {
        let Some((_, shape, values)) = tensors.iter().find(|(name, ..)| *name == t.name) else {
            bail!(
                "'{file}' has no tensor '{}', which the model has; the file must hold every tensor of the model{}",
                t.name,
                did_you_mean(&t.name, tensors.iter().map(|(n, ..)| n.as_str()))
            );
        };
        ensure!(
            *shape == t.shape,
            "'{file}': tensor '{}' has shape {shape:?}, but the model's has {:?}",
            t.name,
            t.shape
        );
        out[t.range.clone()].copy_from_slice(values);
    }
    if let Some((name, ..)) = tensors.iter().find(|(n, ..)| layout.tensor(n).is_err()) {
        bail!(
            "'{file}' has a tensor '{name}', which the model does not have; is it from another model?"
        );
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::weights::save_weights;

    #[test]
    fn tensors_are_found_by_name_and_must_fit() {
        let folder = std::env::temp_dir().join(format!("ergodic-load-{}", std::process::id()));
        let path = folder.join("w.safetensors");
        let layout = Layout::new([("a".into(), vec![2]), ("b".into(), vec![1, 2])]);
        let save = |tensors: &[(&str, Vec<usize>)]| {
            let values = [1.0, 2.0];
            let tensors: Vec<_> = tensors
                .iter()
                .map(|(n, s)| (n.to_string(), s.clone(), &values[..s.iter().product()]))
                .collect();
            save_weights(&path, &tensors, &[]).unwrap();
            weights(&layout, &path).map_err(|e| e.to_string())
        };
        assert_eq!(
            save(&[("b", vec![1, 2]), ("a", vec![2])]),
            Ok(vec![1.0, 2.0, 1.0, 2.0])
        );
        let message = save(&[("a", vec![2])]).unwrap_err();
        assert!(message.contains("no tensor 'b'"), "{message}");
        let message = save(&[("a", vec![2]), ("b", vec![2])]).unwrap_err();
        assert!(
            message.contains("shape [2], but the model's has [1, 2]"),
            "{message}"
        );
        let message = save(&[("a", vec![2]), ("b", vec![1, 2]), ("c", vec![1])]).unwrap_err();
        assert!(message.contains("a tensor 'c'"), "{message}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
