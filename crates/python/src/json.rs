//! Nested rows as lines of JSON, and back. What texts hold is copied once, 64 bytes at a time; only that makes nested
//! rows nearly as fast as text.

use crate::column::ColumnCell;
use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListArray, GenericStringArray, OffsetSizeTrait, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};
use std::ops::Range;

/// So many bytes are looked at together.
const BLOCK_BYTES: usize = 64;

/// Rows as lines of a data set. What is null is left out: where rows differ in their keys, Arrow fills them so.
pub(crate) struct RowLines {
    text: Vec<u8>,
    /// Where they end; `None` for a row that is null.
    ends: Vec<(usize, bool)>,
}

impl RowLines {
    /// Writes these rows. A row is null if its first column is.
    pub(crate) fn from_rows(rows: &RecordBatch, which: Range<usize>) -> Result<Self, ArrowError> {
        Self::write(rows, which, |rows, row| rows.column(0).is_null(row))
    }

    /// Writes these rows, whatever is null in them.
    pub(crate) fn from_whole(rows: &RecordBatch, which: Range<usize>) -> Result<Self, ArrowError> {
        Self::write(rows, which, |_, _| false)
    }

    fn write(
        rows: &RecordBatch,
        which: Range<usize>,
        is_null: fn(&RecordBatch, usize) -> bool,
    ) -> Result<Self, ArrowError> {
        let options = EncoderOptions::default();
        let schema = rows.schema_ref();
        let columns = schema.fields().iter().zip(rows.columns());
        let columns = columns
            .map(|(field, array)| Ok((key(field.name()), ValueWriter::for_field(field, array, &options)?)));
        let mut columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        let rows_left = which.len().saturating_sub(1);
        let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(which.len()));
        for row in which {
            let is_null = is_null(rows, row);
            if !is_null {
                object(&mut columns, row, &mut text);
                text.push(b'\n');
            }
            if ends.is_empty() {
                // The others are likely to be about as long.
                text.reserve(text.len() * 5 / 4 * rows_left);
            }
            ends.push((text.len(), is_null));
        }
        Ok(Self { text, ends })
    }

    /// One of them, counted from 0; who hands texts over need not have looked whether they are UTF-8.
    pub(crate) fn get(&self, at: usize) -> Result<&[u8], ArrowError> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let line = &self.text[start..self.ends[at].0];
        match simdutf8::basic::from_utf8(line) {
            Ok(_) => Ok(line),
            Err(_) => Err(ArrowError::InvalidArgumentError("a text in it is not UTF-8".to_string())),
        }
    }

    pub(crate) fn cell(&self, at: usize) -> ColumnCell<'_> {
        if self.ends[at].1 {
            return ColumnCell::null();
        }
        match self.get(at) {
            Ok(line) => ColumnCell::Text(line.into()),
            Err(error) => ColumnCell::Unreadable(format!("the row is not sound: {error}")),
        }
    }
}

/// Writes the values of an array.
enum ValueWriter<'a> {
    Text(&'a GenericStringArray<i32>),
    LargeText(&'a GenericStringArray<i64>),
    List(&'a GenericListArray<i32>, Box<Self>),
    LargeList(&'a GenericListArray<i64>, Box<Self>),
    /// Keys and their values.
    Object(&'a dyn Array, Vec<(Vec<u8>, Self)>),
    Other(NullableEncoder<'a>),
}

impl<'a> ValueWriter<'a> {
    fn for_field(
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        Ok(match field.data_type() {
            DataType::Utf8 => Self::Text(array.as_string()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string()),
            DataType::List(item) => {
                let list = array.as_list();
                Self::List(list, Box::new(Self::for_field(item, list.values(), options)?))
            }
            DataType::LargeList(item) => {
                let list = array.as_list();
                Self::LargeList(list, Box::new(Self::for_field(item, list.values(), options)?))
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns = columns
                    .map(|(field, array)| Ok((key(field.name()), Self::for_field(field, array, options)?)));
                Self::Object(array, columns.collect::<Result<_, ArrowError>>()?)
            }
            _ => {
                // It is believed that strings are UTF-8 and offsets in order.
                array.to_data().validate_full()?;
                Self::Other(make_encoder(field, array, options)?)
            }
        })
    }

    fn is_null(&self, at: usize) -> bool {
        match self {
            Self::Text(array) => array.is_null(at),
            Self::LargeText(array) => array.is_null(at),
            Self::List(array, _) => array.is_null(at),
            Self::LargeList(array, _) => array.is_null(at),
            Self::Object(array, _) => array.is_null(at),
            Self::Other(encoder) => encoder.is_null(at),
        }
    }

    fn write(&mut self, at: usize, out: &mut Vec<u8>) {
        match self {
            _ if self.is_null(at) => out.extend_from_slice(b"null"),
            Self::Text(array) => quoted(&array.value_data()[between(array.value_offsets(), at)], out),
            Self::LargeText(array) => quoted(&array.value_data()[between(array.value_offsets(), at)], out),
            Self::List(array, items) => items.write_all(between(array.value_offsets(), at), out),
            Self::LargeList(array, items) => items.write_all(between(array.value_offsets(), at), out),
            Self::Object(_, columns) => object(columns, at, out),
            Self::Other(encoder) => encoder.encode(at, out),
        }
    }

    fn write_all(&mut self, items: Range<usize>, out: &mut Vec<u8>) {
        out.push(b'[');
        for (n, item) in items.enumerate() {
            if n > 0 {
                out.push(b',');
            }
            self.write(item, out);
        }
        out.push(b']');
    }
}

fn object(columns: &mut [(Vec<u8>, ValueWriter<'_>)], row: usize, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut is_first = true;
    for (key, value) in columns.iter_mut().filter(|(_, value)| !value.is_null(row)) {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(key);
        value.write(row, out);
    }
    out.push(b'}');
}

fn between<O: OffsetSizeTrait>(offsets: &[O], at: usize) -> Range<usize> {
    offsets[at].as_usize()..offsets[at + 1].as_usize()
}

fn key(name: &str) -> Vec<u8> {
    let mut key = Vec::new();
    quoted(name.as_bytes(), &mut key);
    key.push(b':');
    key
}

/// Writes a text in quotes.
fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    dispatch!(Level::new(), simd => escaped(simd, text, out));
    out.push(b'"');
}

#[expect(clippy::inline_always, reason = "so that it is compiled for each kind of processor")]
#[inline(always)]
fn escaped<S: Simd>(simd: S, text: &[u8], out: &mut Vec<u8>) {
    let (blocks, rest) = text.as_chunks::<BLOCK_BYTES>();
    let mut last = [b' '; BLOCK_BYTES];
    last[..rest.len()].copy_from_slice(rest);
    let mut copied = 0;
    for (n, block) in blocks.iter().chain([&last]).enumerate() {
        let bytes = u8x64::load_array_ref(simd, block);
        let special = bytes.simd_eq(b'"') | bytes.simd_eq(b'\\') | bytes.simd_lt(b' ');
        let mut special = special.to_bitmask();
        while special != 0 {
            let at = n * BLOCK_BYTES + special.trailing_zeros() as usize;
            out.extend_from_slice(&text[copied..at]);
            escape(text[at], out);
            copied = at + 1;
            special &= special - 1;
        }
    }
    out.extend_from_slice(&text[copied..]);
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Rows of these lines.
pub(crate) fn nested(schema: &SchemaRef, lines: &[&[u8]]) -> Result<RecordBatch, ArrowError> {
    let builder = ReaderBuilder::new(schema.clone()).with_strict_mode(true);
    let mut decoder = builder.with_batch_size(lines.len().max(1)).build_decoder()?;
    for line in lines {
        let read = decoder.decode(line)?;
        // A decoder that has as many rows as it wants leaves the line break.
        if line.get(read..).is_some_and(|rest| !rest.trim_ascii().is_empty()) {
            return Err(ArrowError::JsonError("more than one object".to_string()));
        }
    }
    let rows = decoder.flush()?.filter(|rows| rows.num_rows() == lines.len());
    rows.ok_or_else(|| ArrowError::JsonError("not one object".to_string()))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn texts_are_quoted_as_serde_json_quotes_them() {
        let all: String = (0..0x180).filter_map(char::from_u32).collect();
        for text in (0..all.len()).filter_map(|at| all.get(at..)).chain(["", "plain", "\u{1f600}\""]) {
            for padding in [0, 1, 31, 62, 63, 64, 65] {
                let text = "x".repeat(padding) + text;
                let mut own = Vec::new();
                quoted(text.as_bytes(), &mut own);
                let said = String::from_utf8(own).unwrap_or_default();
                assert_eq!(serde_json::from_str::<String>(&said).ok().as_ref(), Some(&text), "{said}");
            }
        }
    }
}
