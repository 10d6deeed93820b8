//! Values as a front end can show them: the same thing in several formats.

use serde_json::{Map, Value, json};

/// One thing in several formats, by MIME type; the front end shows the richest that it knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rich {
    /// Data by MIME type: text as a string, JSON as such, anything binary in base64.
    pub data: Map<String, Value>,
    /// Settings of the display, by MIME type.
    pub metadata: Map<String, Value>,
}

impl Rich {
    /// Plain text, which every display should have for front ends that know no better.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().with("text/plain", text.into())
    }

    /// Add a format.
    pub fn with(mut self, mime: &str, data: impl Into<Value>) -> Self {
        self.data.insert(mime.into(), data.into());
        self
    }

    /// Add a setting of a format, such as the width of an image.
    pub fn with_setting(mut self, mime: &str, name: &str, value: impl Into<Value>) -> Self {
        let settings = self.metadata.entry(mime).or_insert_with(|| json!({}));
        if let Some(settings) = settings.as_object_mut() {
            settings.insert(name.into(), value.into());
        }
        self
    }

    /// The plain text, if there is one.
    pub fn plain(&self) -> Option<&str> {
        self.data.get("text/plain").and_then(Value::as_str)
    }
}
