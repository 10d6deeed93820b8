//! Reading draws one after the other; what is damaged is found.

use super::super::{bytes::decode, cannot};
use super::stream::{Found, Stream, lock};
use super::{CHECKSUM, checksum};
use crate::error::Result;
use crate::platform::read_exact_at;
use anyhow::{anyhow, bail};
use half::f16;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result as IoResult};
use std::path::Path;
use std::time::Duration;

impl Stream {
    /// What reads the draws of a chain.
    pub fn reader(&self, chain: usize) -> Reader<'_> {
        Reader {
            stream: self,
            chain,
            open: self.draws.tensors.iter().map(|_| None).collect(),
        }
    }

    /// Fail if a file in which the first draws of a chain are, so many of each, is missing or has not the length that it was made with.
    pub fn check_files(&self, made: impl Fn(usize) -> usize) -> Result<()> {
        let draws = &self.draws;
        for tensor in 0..draws.tensors.len() {
            let (cut, bytes) = (draws.cut(tensor), draws.chunk_bytes(tensor) + CHECKSUM);
            // Of each file along the chains: one of these, and where those end of which so many chunks were begun.
            let mut files = BTreeMap::<_, (usize, BTreeMap<usize, u64>)>::new();
            for chain in 0..draws.all_chains() {
                let begun = made(chain).min(draws.steps.len()).div_ceil(cut.draws);
                let file = files.entry(cut.file(draws.place(chain)));
                let (_, ends) = file.or_insert_with(|| (chain, BTreeMap::new()));
                let end = ends.entry(begun).or_default();
                *end = (draws.offset(tensor, chain) + bytes as u64).max(*end);
            }
            for (chain, ends) in files.values() {
                let most = ends.values().max().copied().unwrap_or(0);
                for chunk in 0..draws.chunks(tensor) {
                    // As long as it was made for some chains, or for all.
                    let Some(least) = ends.range(chunk + 1..).map(|(_, end)| *end).max() else {
                        break;
                    };
                    check_file(&self.path(tensor, *chain, chunk), least, most)?;
                }
            }
        }
        Ok(())
    }

    /// Fail if a chunk of draws that were made is not as it was written.
    pub(super) fn check(&self) -> Result<()> {
        let chains = self.draws.all_chains();
        for tensor in 0..self.draws.tensors.len() {
            let chunks = self.draws.chunks(tensor);
            for (chain, chunk) in (0..chains).flat_map(|c| (0..chunks).map(move |k| (c, k))) {
                self.chunk(tensor, chain, chunk)?;
            }
        }
        Ok(())
    }

    /// The file and the place of a chunk whose checksum is right; none if none of its draws was made.
    fn chunk(&self, tensor: usize, chain: usize, chunk: usize) -> Result<Option<Found>> {
        let path = self.path(tensor, chain, chunk);
        let at = [tensor, chain, chunk];
        let Some((file, start)) = self.find(tensor, chain, chunk)? else {
            return Ok(None);
        };
        let right = || -> IoResult<bool> {
            if lock(&self.sound).contains(&at) {
                return Ok(true);
            }
            let length = self.draws.chunk_bytes(tensor);
            let mut bytes = vec![0; length + CHECKSUM];
            read_exact_at(&file, &mut bytes, start)?;
            let (content, sum) = bytes.split_at(length);
            let whole = checksum(content) == sum;
            // Of a run that was killed: who reads it stops at its checkpoint, and what that counts on was flushed.
            let flushed = || {
                self.flushed_draws(at, content)
                    .is_some_and(|draws| draws > 0)
            };
            Ok(whole || self.is_not_flushed(at) || flushed())
        };
        // Whoever makes draws at this time writes numbers and checksum one after the other.
        let tries = if self.is_growing() { 5 } else { 1 };
        for _ in 0..tries {
            if right().map_err(|e| cannot("read", &path, e))? {
                lock(&self.sound).insert(at);
                return Ok(Some((file, start)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!(
            "'{}' is damaged: its checksum is wrong. Draws of other chains and tensors are not affected; a run that is not finished makes its last draws again with --resume",
            path.display()
        )
    }
}

/// What follows from it for a run.
const LOST: &str = "with draws that were made: restore it from a backup, or run again";

/// Fail unless a file is there and has so many bytes.
fn check_file(path: &Path, least: u64, most: u64) -> Result<()> {
    match path.metadata() {
        Ok(file) if (least..=most).contains(&file.len()) => Ok(()),
        Ok(file) => bail!(
            "'{}' has {} bytes where {most} were written, {LOST}",
            path.display(),
            file.len()
        ),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(missing(path)),
        Err(e) => Err(cannot("read", path, e)),
    }
}

fn missing(path: &Path) -> anyhow::Error {
    anyhow!("'{}' is missing, {LOST}", path.display())
}

/// What reads the draws of a chain; chunks stay open from one draw to the next.
pub struct Reader<'a> {
    stream: &'a Stream,
    chain: usize,
    /// Per tensor: which chunk, and its file and place there if there is one.
    open: Vec<Option<(usize, Option<Found>)>>,
}

impl Reader<'_> {
    /// Append a tensor of the `k`-th draw, which was made.
    ///
    /// # Errors
    /// If it cannot be read, or its chunk is damaged or missing.
    pub fn read(&mut self, tensor: usize, k: usize, out: &mut Vec<f32>) -> Result<()> {
        let (stream, draws) = (self.stream, &self.stream.draws);
        let (chunk, at) = stream.place(tensor, k);
        let numbers = draws.numbers(tensor);
        let found = match &self.open[tensor] {
            Some((of, file)) if *of == chunk => file,
            _ => {
                let file = stream.chunk(tensor, self.chain, chunk)?;
                &self.open[tensor].insert((chunk, file)).1
            }
        };
        let Some((file, start)) = found else {
            return Err(missing(&stream.path(tensor, self.chain, chunk)));
        };
        let mut bytes = vec![0; numbers * draws.size()];
        let offset = start + (at * bytes.len()) as u64;
        read_exact_at(file, &mut bytes, offset)
            .map_err(|e| cannot("read", &stream.path(tensor, self.chain, chunk), e))?;
        match draws.half {
            true => {
                let halves = bytes.as_chunks::<2>().0.iter();
                out.extend(halves.map(|b| f16::from_le_bytes(*b).to_f32()));
            }
            false => out.extend(decode::<f32>(&bytes)),
        }
        Ok(())
    }
}
