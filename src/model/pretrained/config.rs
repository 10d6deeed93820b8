//! The file config.json of a folder: what a network is made of.

use super::rotary::Frequencies;
use crate::error::{Result, did_you_mean, listed};
use crate::kernels::tensor::Unary;
use crate::store::read_json;
use anyhow::{anyhow, bail, ensure};
use serde_json::{Map, Value};
use std::path::Path;

/// Its entries.
pub struct Config(Map<String, Value>);

/// The functions of one element that are known, by their names there.
const ACTIVATIONS: &[(&str, Unary)] = &[
    ("gelu", Unary::Gelu),
    ("gelu_python", Unary::Gelu),
    ("gelu_new", Unary::GeluTanh),
    ("gelu_fast", Unary::GeluTanh),
    ("gelu_accurate", Unary::GeluTanh),
    ("gelu_pytorch_tanh", Unary::GeluTanh),
    ("gelu_python_tanh", Unary::GeluTanh),
    ("silu", Unary::Silu),
    ("swish", Unary::Silu),
    ("relu", Unary::Relu),
    ("tanh", Unary::Tanh),
    ("sigmoid", Unary::Sigmoid),
];

impl Config {
    /// That of a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        match read_json(&folder.join("config.json"))? {
            Value::Object(entries) => Ok(Self(entries)),
            _ => bail!("config.json is no object {{…}}"),
        }
    }

    #[cfg(test)]
    pub fn of(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// Whether there is an entry, perhaps null.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// An entry that is there and not null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|v| !v.is_null())
    }

    /// The family of networks.
    pub fn family(&self) -> Result<&str> {
        let found = self.get("model_type").and_then(Value::as_str);
        found.ok_or_else(|| anyhow!("config.json has no 'model_type', the family of the network"))
    }

    fn wrong(name: &str, found: &Value, expected: &str) -> anyhow::Error {
        anyhow!("config.json: '{name}' is {found}, but must be {expected}")
    }

    fn missing(&self, name: &str) -> anyhow::Error {
        let known = self.0.keys().map(String::as_str);
        anyhow!("config.json has no '{name}'{}", did_you_mean(name, known))
    }

    /// A whole number of at least 1, if it is there.
    pub fn opt_size(&self, name: &str) -> Result<Option<usize>> {
        let Some(found) = self.get(name) else {
            return Ok(None);
        };
        let n = found.as_u64().and_then(|n| usize::try_from(n).ok());
        let n = n.filter(|n| (1..=1 << 31).contains(n));
        n.map(Some)
            .ok_or_else(|| Self::wrong(name, found, "a whole number of at least 1"))
    }

    /// A whole number of at least 1.
    pub fn size(&self, name: &str) -> Result<usize> {
        self.opt_size(name)?.ok_or_else(|| self.missing(name))
    }

    /// A positive number.
    pub fn positive(&self, name: &str, default: f64) -> Result<f64> {
        match self.get(name) {
            None => Ok(default),
            Some(found) => {
                positive(found).ok_or_else(|| Self::wrong(name, found, "a positive number"))
            }
        }
    }

    /// Whether something is so.
    pub fn bool(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(found) => found
                .as_bool()
                .ok_or_else(|| Self::wrong(name, found, "true or false")),
        }
    }

    /// The function between two layers.
    pub fn activation(&self, name: &str, default: &str) -> Result<Unary> {
        let wanted = match self.get(name) {
            None => default,
            Some(found) => found
                .as_str()
                .ok_or_else(|| Self::wrong(name, found, "the name of a function"))?,
        };
        let found = ACTIVATIONS.iter().find(|(n, _)| *n == wanted);
        let known: Vec<_> = ACTIVATIONS.iter().map(|(n, _)| n).collect();
        let found = found.ok_or_else(|| {
            anyhow!(
                "config.json: '{name}' is \"{wanted}\", which is not supported; there are {}",
                listed(&known)
            )
        });
        Ok(found?.1)
    }

    /// Fail unless something that is not supported has this value, which is also that of where it is missing.
    pub fn only(&self, name: &str, value: bool) -> Result<()> {
        ensure!(
            self.bool(name, value)? == value,
            "config.json: '{name}' is {}, which is not supported",
            !value
        );
        Ok(())
    }

    /// Width of a head: that of the network divided by the heads.
    pub fn head(width: usize, heads: usize) -> Result<usize> {
        ensure!(
            width.is_multiple_of(heads),
            "config.json: a width of {width} does not divide into {heads} heads"
        );
        Ok(width / heads)
    }

    /// What the parts of a head of this width turn by from one position to the next: of the first `share` of its numbers.
    ///
    /// Newer files have it in `rope_parameters`, older ones in `rope_theta` and `rope_scaling`, GPT-NeoX in `rotary_pct` and `rotary_emb_base`.
    pub fn frequencies(&self, head: usize, share: f64) -> Result<Frequencies> {
        let empty = Map::new();
        let of = |name: &str| match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(Self::wrong(name, other, "an object {…}")),
        };
        let (new, old) = (of("rope_parameters")?, of("rope_scaling")?);
        let map = new.or(old).unwrap_or(&empty);
        let number = |names: &[&str]| {
            let places = names.iter().filter_map(|n| Some((*n, map.get(*n)?)));
            let outside = names.iter().filter_map(|n| Some((*n, self.0.get(*n)?)));
            let found = places.chain(outside).find(|(_, v)| !v.is_null());
            found
                .map(|(n, v)| positive(v).ok_or_else(|| Self::wrong(n, v, "a positive number")))
                .transpose()
        };
        let base = number(&["rope_theta", "rotary_emb_base"])?.unwrap_or(10_000.0);
        let share = number(&["partial_rotary_factor", "rotary_pct"])?.unwrap_or(share);
        ensure!(
            share <= 1.0,
            "config.json: {share} of a head are to turn, more than there is"
        );
        let plain = Frequencies::plain(base, (head as f64 * share) as usize)?;
        let kind = map.get("rope_type").or_else(|| map.get("type"));
        let kind = kind.and_then(Value::as_str).unwrap_or("default");
        let needed = |name: &str| {
            let missing = || anyhow!("config.json: the rotary positions \"{kind}\" need '{name}'");
            number(&[name])?.ok_or_else(missing)
        };
        match kind {
            "default" => Ok(plain),
            "linear" => Ok(plain.linear(needed("factor")?)),
            "llama3" => {
                let positions = match map.contains_key("original_max_position_embeddings") {
                    true => needed("original_max_position_embeddings")?,
                    false => needed("max_position_embeddings")?,
                };
                let bounds = [needed("low_freq_factor")?, needed("high_freq_factor")?];
                ensure!(
                    bounds[0] < bounds[1],
                    "config.json: 'low_freq_factor' is {}, but must be below 'high_freq_factor', {}",
                    bounds[0],
                    bounds[1]
                );
                Ok(plain.llama3(needed("factor")?, bounds, positions))
            }
            other => bail!(
                "config.json: rotary positions of the type \"{other}\" are not supported; there are \"default\", \"linear\" and \"llama3\""
            ),
        }
    }
}

fn positive(value: &Value) -> Option<f64> {
    value.as_f64().filter(|x| *x > 0.0 && x.is_finite())
}
