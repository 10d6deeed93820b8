//! The user's cache.

use crate::error::Result;
use anyhow::Context;
use std::path::PathBuf;

/// The folder for caches of all programs: `XDG_CACHE_HOME`, or `.cache` in `HOME`.
///
/// # Errors
/// If neither is set.
pub fn folder() -> Result<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    set("XDG_CACHE_HOME")
        .or_else(|| Some(set("HOME")?.join(".cache")))
        .context("cannot tell where caches go; set XDG_CACHE_HOME")
}
