//! Nested rows as lines of JSON, and back. What texts hold is copied once, a register at a time; only that makes nested
//! rows about as fast as text.

use crate::column::Cell;
use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericListArray, GenericStringArray, OffsetSizeTrait, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::writer::{EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use std::ops::Range;

/// So many bytes are looked at together.
const REGISTER_BYTES: usize = 32;

/// Rows as lines of a data set. What is null is left out: where rows differ in their keys, Arrow fills them so.
pub(crate) struct Lines {
    text: Vec<u8>,
    /// Where they end; `None` for a row that is null.
    ends: Vec<(usize, bool)>,
}

impl Lines {
    /// Writes these rows. A row is null if its first column is.
    pub(crate) fn of(rows: &RecordBatch, which: Range<usize>) -> Result<Self, ArrowError> {
        let options = EncoderOptions::default();
        let schema = rows.schema_ref();
        let columns = schema.fields().iter().zip(rows.columns());
        let columns =
            columns.map(|(field, array)| Ok((key(field.name()), Writer::of(field, array, &options)?)));
        let mut columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
        let rows_left = which.len().saturating_sub(1);
        let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(which.len()));
        for row in which {
            let is_null = rows.column(0).is_null(row);
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

    pub(crate) fn cell(&self, at: usize) -> Cell<'_> {
        if self.ends[at].1 {
            return Cell::null();
        }
        match self.get(at) {
            Ok(line) => Cell::Text(line.into()),
            Err(error) => Cell::Unreadable(format!("the row is not sound: {error}")),
        }
    }
}

/// Writes the values of an array.
enum Writer<'a> {
    Text(&'a GenericStringArray<i32>),
    LargeText(&'a GenericStringArray<i64>),
    List(&'a GenericListArray<i32>, Box<Self>),
    LargeList(&'a GenericListArray<i64>, Box<Self>),
    /// Keys and their values.
    Object(&'a dyn Array, Vec<(Vec<u8>, Self)>),
    Other(NullableEncoder<'a>),
}

impl<'a> Writer<'a> {
    fn of(
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Self, ArrowError> {
        Ok(match field.data_type() {
            DataType::Utf8 => Self::Text(array.as_string()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string()),
            DataType::List(item) => {
                let list = array.as_list();
                Self::List(list, Box::new(Self::of(item, list.values(), options)?))
            }
            DataType::LargeList(item) => {
                let list = array.as_list();
                Self::LargeList(list, Box::new(Self::of(item, list.values(), options)?))
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns =
                    columns.map(|(field, array)| Ok((key(field.name()), Self::of(field, array, options)?)));
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

fn object(columns: &mut [(Vec<u8>, Writer<'_>)], row: usize, out: &mut Vec<u8>) {
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
    let mut rest = text;
    loop {
        let (plain, special) = rest.split_at(plain_length(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else { break };
        rest = after;
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

/// How much of a text stands in quotes as it is.
fn plain_length(text: &[u8]) -> usize {
    let (registers, _) = text.as_chunks::<REGISTER_BYTES>();
    // Without a branch inside, a register at a time.
    let whole = |bytes: &&[u8; REGISTER_BYTES]| bytes.iter().fold(true, |all, &byte| all & is_plain(byte));
    let start = registers.iter().take_while(whole).count() * REGISTER_BYTES;
    let (words, rest) = text[start..].as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let special = special_in(u64::from_le_bytes(*word));
        if special != 0 {
            return start + n * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let end = text.len() - rest.len();
    end + rest.iter().position(|&byte| !is_plain(byte)).unwrap_or(rest.len())
}

fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// The highest bit of the first of eight bytes that is not plain, and perhaps of later ones; 0 if all are.
fn special_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, b' ') | is(b'"') | is(b'\\')
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
    use super::{quoted, special_in};

    #[test]
    fn texts_are_quoted_as_serde_json_quotes_them() {
        let all: String = (0..0x180).filter_map(char::from_u32).collect();
        for text in (0..all.len()).filter_map(|at| all.get(at..)).chain(["", "plain", "\u{1f600}\""]) {
            for padding in 0..40 {
                let text = "x".repeat(padding) + text;
                let mut own = Vec::new();
                quoted(text.as_bytes(), &mut own);
                let said = String::from_utf8(own).unwrap_or_default();
                assert_eq!(serde_json::from_str::<String>(&said).ok().as_ref(), Some(&text), "{said}");
            }
        }
    }

    #[test]
    fn the_first_special_byte_of_eight_is_found() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut word = [b'a'; 8];
                word[at] = byte;
                let found = special_in(u64::from_le_bytes(word));
                let expected = if super::is_plain(byte) { 0 } else { 0x80 << (8 * at) };
                assert_eq!(found, expected, "{byte}");
            }
        }
    }
}
