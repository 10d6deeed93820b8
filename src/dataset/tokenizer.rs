//! Tokens that a tokenizer.json makes of a text.

use super::file::File;
use super::sequences::MOST_TOKENS;
use crate::access;
use crate::error::{Result, in_file, of_package};
use crate::memory;
use anyhow::{Context, anyhow, ensure};
use std::path::Path;

/// Bytes of memory per byte of text while it is taken apart.
const BYTES: u128 = 200;

/// A tokenizer, as the package tokenizers of Hugging Face saves it.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// Where it comes from.
    pub provenance: (String, String),
}

impl Tokenizer {
    /// From a file, or the folder that has it.
    pub fn read(path: &str) -> Result<Self> {
        access::read(Path::new(path)).with_context(|| format!("cannot read '{path}'"))?;
        let within = Path::new(path).join("tokenizer.json");
        let path = match Path::new(path).is_dir() {
            true => within.display().to_string(),
            false => path.to_string(),
        };
        let file = File::open(&path)?;
        let read = || {
            serde_json::from_slice::<serde::de::IgnoredAny>(&file.bytes)
                .map_err(|e| anyhow!("'{path}' is no tokenizer.json: {e}"))?;
            // The package panics at some of what is no JSON, and of what is none of its own.
            let made = of_package("it cannot be read", || {
                tokenizers::Tokenizer::from_bytes(&file.bytes).map_err(|e| anyhow!("{e}"))
            });
            let mut inner = made.map_err(|e| anyhow!("'{path}' is no tokenizer.json: {e}"))?;
            // What it was told to do with the sentences of another program.
            inner.with_padding(None);
            inner
                .with_truncation(None)
                .map_err(|e| anyhow!("'{path}': {e}"))?;
            Ok(inner)
        };
        Ok(Self {
            inner: in_file(&path, read())?,
            provenance: ("tokenizer".into(), file.provenance().1),
        })
    }

    /// How many tokens it knows: the largest of their numbers, and one.
    pub fn vocabulary(&self) -> Result<usize> {
        let all = self.inner.get_vocab(true);
        let count = all.values().max().map_or(0, |t| *t as usize + 1);
        ensure!(
            (2..=MOST_TOKENS).contains(&count),
            "the tokenizer knows {count} tokens, but 2 to {MOST_TOKENS} are possible"
        );
        Ok(count)
    }

    /// The tokens of a text, without any that would be put at its ends.
    pub fn tokens(&self, path: &str, text: &str) -> Result<Vec<u32>> {
        let bytes = BYTES * text.len() as u128;
        memory::check(bytes, &format!("'{path}', taken apart into tokens,"))?;
        let encoded = of_package("it cannot do what its file says", || {
            let encoded = self.inner.encode_fast(text, false);
            encoded.map_err(|e| anyhow!("{e}"))
        });
        let encoded = encoded.map_err(|e| anyhow!("'{path}': the tokenizer fails: {e}"))?;
        Ok(encoded.get_ids().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Folder, build, message, text};
    use super::super::text::ENTRY;
    use super::*;
    use crate::options::Value;

    const JSON: &str = "tests/data/pretrained/tokenizer.json";

    /// The package panics at these.
    #[test]
    fn what_is_no_tokenizer_is_refused() {
        let folder = Folder::new();
        let whole = std::fs::read_to_string(JSON).unwrap();
        let (model, decoder) = (
            whole.find("\"model\"").unwrap(),
            whole.find("\"decoder\"").unwrap(),
        );
        for broken in [
            whole[..decoder + 14].to_string(),
            format!("{}\u{1}{}", &whole[..decoder + 14], &whole[decoder + 14..]),
            format!("{}3,{}", &whole[..decoder + 11], &whole[decoder + 11..]),
            format!("{}[],{}", &whole[..decoder + 11], &whole[decoder + 11..]),
            whole[..model].to_string(),
            "[]".into(),
        ] {
            let path = folder.write("tokenizer.json", &broken);
            let said = Tokenizer::read(&path).err().unwrap().to_string();
            assert!(said.contains("is no tokenizer.json"), "{said}");
        }
    }

    /// As the Python package has them: tests/interop/test_pretrained.py compares more.
    #[test]
    fn tokens_are_those_of_the_package() {
        let t = Tokenizer::read("tests/data/pretrained").unwrap();
        assert_eq!(t.vocabulary().unwrap(), 320);
        let ids = t.tokens("x", "Apache License\n  naïve 你 1.0").unwrap();
        assert_eq!(
            ids,
            [
                32, 79, 64, 312, 68, 303, 314, 198, 220, 305, 64, 127, 107, 85, 68, 220, 160, 121,
                254, 220, 16, 13, 15
            ]
        );
    }

    #[test]
    fn a_text_is_cut_into_rows_of_tokens() {
        let given = [
            ("path", text("LICENSE-APACHE")),
            ("tokenizer", text(JSON)),
            ("context", Value::Int(32)),
            ("vocabulary", Value::Int(400)),
            ("test", Value::Int(0)),
        ];
        let d = build(&ENTRY, &given).unwrap();
        assert_eq!((d.dim, d.classes), (32, 400));
        let expected = (Tokenizer::read(JSON).unwrap())
            .tokens("x", &std::fs::read_to_string("LICENSE-APACHE").unwrap())
            .unwrap();
        assert_eq!(d.train.rows, (expected.len() - 1) / 32);
        assert_eq!(d.train.labels().unwrap(), &expected[1..=d.train.rows * 32]);
        let few = [&given[..], &[("vocabulary", Value::Int(300))]].concat();
        assert!(message(&ENTRY, &few).contains("the tokenizer knows 320 tokens"));
        let both = [&given[..], &[("level", text("bytes"))]].concat();
        assert!(message(&ENTRY, &both).contains("'level' and 'tokenizer'"));
        let folder = Folder::new();
        let wrong = [
            &given[..],
            &[("tokenizer", text(&folder.write("t.json", "{}")))],
        ]
        .concat();
        assert!(message(&ENTRY, &wrong).contains("is no tokenizer.json"));
    }
}
