//! Signatures of messages: HMAC-SHA256 over header, parent header, metadata and content.

use anyhow::{Context, Result, ensure};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many signatures are remembered.
const REMEMBERED: usize = 1 << 16;

/// Signatures that were seen, and their order.
type Seen = (HashSet<Vec<u8>>, VecDeque<Vec<u8>>);

/// Signs and checks with one key; with an empty key, nothing is signed and everything is taken.
pub struct Signer {
    key: Option<Hmac<Sha256>>,
    seen: Mutex<Seen>,
}

impl Signer {
    /// A signer with a key.
    pub fn new(key: &[u8]) -> Self {
        Self {
            // A key of any length fits.
            key: (!key.is_empty())
                .then(|| Hmac::new_from_slice(key).ok())
                .flatten(),
            seen: Mutex::default(),
        }
    }

    /// The signature of some parts, in hexadecimal.
    pub fn sign<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let Some(mac) = self.mac(parts) else {
            return Vec::new();
        };
        let digits = mac.finalize().into_bytes();
        digits
            .iter()
            .flat_map(|b| format!("{b:02x}").into_bytes())
            .collect()
    }

    /// An error unless the signature is right and new: who can only listen must not be able to repeat a message.
    pub fn check<'a>(&self, signature: &[u8], parts: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        let Some(mac) = self.mac(parts) else {
            return Ok(());
        };
        let bytes = hexadecimal(signature).context("its signature is not hexadecimal")?;
        ensure!(
            mac.verify_slice(&bytes).is_ok(),
            "its signature is wrong: the client uses another key"
        );
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (set, order) = &mut *seen;
        ensure!(set.insert(bytes.clone()), "it was received before");
        order.push_back(bytes);
        if order.len() > REMEMBERED
            && let Some(oldest) = order.pop_front()
        {
            set.remove(&oldest);
        }
        Ok(())
    }

    fn mac<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> Option<Hmac<Sha256>> {
        let mut mac = self.key.clone()?;
        parts.for_each(|part| mac.update(part));
        Some(mac)
    }
}

fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |d: u8| char::from(d).to_digit(16);
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_hmac_sha256() {
        // RFC 4231, test case 2, cut into parts.
        let signature = Signer::new(b"Jefe")
            .sign([&b"what do ya want "[..], b"for ", b"", b"nothing?"].into_iter());
        assert_eq!(
            String::from_utf8(signature).unwrap(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn only_the_right_key_fits() {
        let parts = || [&b"{}"[..], b"{}"].into_iter();
        let (signer, other) = (Signer::new(b"key"), Signer::new(b"another"));
        let signature = signer.sign(parts());
        assert!(other.check(&signature, parts()).is_err());
        assert!(signer.check(b"", parts()).is_err());
        assert!(signer.check(b"zz", parts()).is_err());
        assert!(signer.check(&signature[1..], parts()).is_err());
        assert!(signer.check(&signature[2..], parts()).is_err());
        assert!(signer.check(&signature, parts()).is_ok());
        assert!(signer.check(&signature, parts()).is_err(), "once only");
    }

    #[test]
    fn without_a_key_nothing_is_signed() {
        let signer = Signer::new(b"");
        assert!(signer.sign([&b"x"[..]].into_iter()).is_empty());
        assert!(signer.check(b"whatever", [&b"x"[..]].into_iter()).is_ok());
    }
}
