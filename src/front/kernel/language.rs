//! What the kernel knows of a language before a cell runs.

use serde_json::Value;
use std::sync::Arc;

/// Asks the running cell to stop; called from other threads, and only while a cell runs. It must return at once, and must not
/// use the kernel's [`Handle`](super::Handle), which waits for it.
pub type Interrupter = Arc<dyn Fn() + Send + Sync>;

/// What a language is.
#[derive(Debug, Clone, Default)]
pub struct Info {
    /// Name of the program.
    pub implementation: String,
    /// Version of the program.
    pub implementation_version: String,
    /// Name of the language.
    pub language: String,
    /// Version of the language.
    pub language_version: String,
    /// MIME type of its scripts, such as `text/x-python`.
    pub mimetype: String,
    /// Extension of its scripts, with the dot.
    pub file_extension: String,
    /// CodeMirror's mode that highlights it: a name, or an object with a name and a MIME type to fall back on; null if there is none.
    pub codemirror_mode: Value,
    /// Pygments' name of a lexer that highlights it; empty if there is none.
    pub pygments_lexer: String,
    /// What a console shows first.
    pub banner: String,
    /// Entries of the help menu: text and address.
    pub help_links: Vec<(String, String)>,
}
