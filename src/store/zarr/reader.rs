//! Reading draws one after the other; what is damaged is found.

use super::super::{bytes::decode, cannot};
use super::stream::{Found, Stream, lock};
use super::{CHECKSUM, checksum};
use crate::error::Result;
use crate::platform::read_exact_at;
use anyhow::bail;
use half::f16;
use std::io::Result as IoResult;
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

    /// Fail if a chunk of draws that were made is not as it was written.
    pub(super) fn check(&self) -> Result<()> {
        let chains = self.draws.chains * self.draws.temperatures.unwrap_or(1);
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
        for _ in 0..5 {
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

/// What reads the draws of a chain; chunks stay open from one draw to the next.
pub struct Reader<'a> {
    stream: &'a Stream,
    chain: usize,
    /// Per tensor: which chunk, and its file and place there if there is one.
    open: Vec<Option<(usize, Option<Found>)>>,
}

impl Reader<'_> {
    /// Append a tensor of the `k`-th draw; NaN if it was never made.
    ///
    /// # Errors
    /// If it cannot be read, or its chunk is damaged.
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
            out.extend(std::iter::repeat_n(f32::NAN, numbers));
            return Ok(());
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
