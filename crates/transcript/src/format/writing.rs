//! Builds a JSON object.

use alloc::vec::Vec;

/// Text of an unfinished object; puts a comma between fields.
pub(crate) struct Writing(Vec<u8>);

impl Writing {
    pub(crate) fn new() -> Self {
        Self(b"{".to_vec())
    }

    /// A field whose value is given as JSON.
    pub(crate) fn raw(mut self, key: &str, json: &[u8]) -> Self {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        spans::literal::quote(key.as_bytes(), &mut self.0);
        self.0.push(b':');
        self.0.extend_from_slice(json);
        self
    }

    /// A field whose value is a text, which is escaped.
    pub(crate) fn text(self, key: &str, text: &[u8]) -> Self {
        let mut literal = Vec::new();
        spans::literal::quote(text, &mut literal);
        self.raw(key, &literal)
    }

    /// A field whose value is a list with these elements.
    pub(crate) fn list(self, key: &str, elements: &[u8]) -> Self {
        self.raw(key, &[b"[", elements, b"]"].concat())
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}
