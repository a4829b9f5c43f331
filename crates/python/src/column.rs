//! Rows of Arrow as bytes: a column of texts with one session each, or columns of nested messages with one conversation a
//! row. And back, in the type that they had.

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, OffsetSizeTrait, RecordBatch, StructArray};
use arrow_array::{BinaryViewArray, GenericBinaryArray, LargeBinaryArray, UInt64Array};
use arrow_cast::cast;
use arrow_json::ReaderBuilder;
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use std::borrow::Cow;
use std::sync::Arc;

/// Columns that hold the messages of a conversation, and those beside them that belong to the line of a data set.
const NESTED: &[(&str, &[&str])] = &[
    ("messages", &["tools", "functions"]),
    ("conversations", &["system", "tools"]),
    ("contents", &["systemInstruction", "system_instruction", "tools"]),
];

/// What a row holds.
pub(crate) enum Cell<'a> {
    Text(Cow<'a, [u8]>),
    /// Nothing that can be read, for this reason.
    Unreadable(String),
}

/// Where the sessions of a batch are.
pub(crate) enum Rows {
    Binary(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    /// The distinct texts, and which of them each row has.
    Distinct(Box<Rows>, Vec<Option<usize>>),
    /// Conversations; of rows that are not UTF-8, why.
    Nested(RecordBatch, Vec<Option<String>>),
    /// Some of them as lines.
    Written(Written),
    /// Rows of nothing but null.
    Null,
}

/// Conversations one after another, as lines of a data set.
pub(crate) struct Written {
    /// Which row is the first.
    first: usize,
    text: Vec<u8>,
    /// Where the lines end.
    ends: Vec<usize>,
    rows: RecordBatch,
}

/// Which columns of a batch are read: their places. More than one only where messages are nested.
pub(crate) struct Columns(Vec<usize>);

impl Columns {
    /// The columns that were asked for, or the only ones that can be meant.
    pub(crate) fn find(fields: &[FieldRef], asked: Option<&str>) -> Result<Self, String> {
        let place = |name: &str| fields.iter().position(|field| field.name() == name);
        let list = || fields.iter().map(|field| format!("{} ({})", field.name(), field.data_type()));
        let list = || list().collect::<Vec<_>>().join(", ");
        let nested = |name: &str| place(name).filter(|&at| is_nested(fields[at].data_type()));
        let found = match asked {
            Some(name) => place(name).ok_or_else(|| format!("no column {name:?}; there are: {}", list()))?,
            None => match NESTED.iter().find_map(|(name, _)| nested(name)) {
                Some(at) => at,
                None => {
                    let texts = || (0..fields.len()).filter(|&at| is_text(fields[at].data_type()));
                    let named = texts().find(|&at| NESTED.iter().any(|(name, _)| fields[at].name() == name));
                    match (named, texts().next(), texts().nth(1)) {
                        (Some(at), _, _) | (None, Some(at), None) => at,
                        _ => return Err(format!("which column? pass column=NAME; there are: {}", list())),
                    }
                }
            },
        };
        let field = &fields[found];
        if is_text(field.data_type()) {
            return Ok(Self(vec![found]));
        }
        if !is_nested(field.data_type()) || holds_binary(field.data_type()) {
            return Err(format!(
                "column {:?} is {}; sessions are text or binary, and nested messages a list of structs without binary",
                field.name(),
                field.data_type()
            ));
        }
        let beside =
            NESTED.iter().find(|(name, _)| name == field.name()).map_or(&[][..], |(_, beside)| beside);
        let beside = beside.iter().filter_map(|name| place(name));
        Ok(Self(std::iter::once(found).chain(beside).collect()))
    }

    /// The rows of a batch.
    pub(crate) fn rows(&self, batch: &StructArray) -> Result<Rows, ArrowError> {
        let first = &batch.columns()[self.0[0]];
        if !is_nested(first.data_type()) {
            return Rows::of(first);
        }
        let columns: Vec<ArrayRef> = self.0.iter().map(|&at| batch.columns()[at].clone()).collect();
        let fields: Vec<FieldRef> = self.0.iter().map(|&at| batch.fields()[at].clone()).collect();
        // A conversation stands in its own field, whatever the column is called.
        let known = NESTED.iter().any(|(name, _)| name == fields[0].name());
        let named = |field: &FieldRef| Arc::new(field.as_ref().clone().with_name("messages"));
        let fields = if known { fields } else { fields.iter().map(named).collect() };
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
        let broken = broken_rows(&rows)?;
        Ok(Rows::Nested(rows, broken))
    }

    /// The columns of a batch, with other texts in some rows. `texts` are those rows and their texts, in order.
    pub(crate) fn replace(
        &self,
        batch: &StructArray,
        texts: &[(usize, Vec<u8>)],
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let mut columns = batch.columns().to_vec();
        let first = &columns[self.0[0]];
        let made = if is_nested(first.data_type()) {
            let Rows::Nested(rows, _) = self.rows(batch)? else { return Ok(columns) };
            let texts: Vec<&[u8]> = texts.iter().map(|(_, text)| text.as_slice()).collect();
            nested(&rows.schema(), &texts)?.columns().to_vec()
        } else {
            vec![texts_as(first.data_type(), texts.iter().map(|(_, text)| text.as_slice()))?]
        };
        let mut from: Vec<(usize, usize)> = (0..batch.len()).map(|row| (0, row)).collect();
        for (n, (row, _)) in texts.iter().enumerate() {
            from[*row] = (1, n);
        }
        for (&at, made) in self.0.iter().zip(made) {
            columns[at] = interleave(&[columns[at].as_ref(), made.as_ref()], &from)?;
        }
        Ok(columns)
    }

    /// Why a text cannot stand in a row of this type; `None` if it can.
    pub(crate) fn refuses(
        &self,
        batch: &StructArray,
        rows: &Rows,
        row: usize,
        text: &[u8],
    ) -> Option<String> {
        let Rows::Nested(nested_rows, _) = rows else {
            let kind = value_type(batch.columns()[self.0[0]].data_type());
            let is_string = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            return (is_string && std::str::from_utf8(text).is_err())
                .then(|| "the mended text is not UTF-8, which its column asks for".to_string());
        };
        let schema = nested_rows.schema();
        let is_same = nested(&schema, &[text]).and_then(|_| {
            let before = nested_rows.slice(row, 1);
            let again = nested(&schema, &[&lines_of(&before)?])?;
            Ok(again.columns().iter().zip(before.columns()).all(|(one, other)| one == other))
        });
        match is_same {
            Ok(true) => None,
            Ok(false) => Some("the row would not come back the same from JSON".to_string()),
            Err(error) => Some(format!("the mended row does not fit the type of its column: {error}")),
        }
    }
}

impl Rows {
    /// Rows of texts.
    fn of(array: &ArrayRef) -> Result<Self, ArrowError> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Binary(BinaryArray::from(array.as_string::<i32>().clone())),
            DataType::LargeUtf8 => Self::Large(LargeBinaryArray::from(array.as_string::<i64>().clone())),
            DataType::Utf8View => Self::View(array.as_string_view().clone().to_binary_view()),
            DataType::Binary => Self::Binary(array.as_binary::<i32>().clone()),
            DataType::LargeBinary => Self::Large(array.as_binary::<i64>().clone()),
            DataType::BinaryView => Self::View(array.as_binary_view().clone()),
            DataType::Null => Self::Null,
            DataType::Dictionary(_, _) => {
                let array = array.as_any_dictionary();
                if array.values().is_empty() {
                    return Ok(Self::Null);
                }
                let keys = array.normalized_keys();
                let key = |row: usize| (!array.keys().is_null(row)).then(|| keys[row]);
                Self::Distinct(Box::new(Self::of(array.values())?), (0..array.len()).map(key).collect())
            }
            other => Self::of(&cast(array, value_type(other))?)?,
        })
    }

    /// Conversations from one row to another, written together: that is several times as fast as each by itself. `None` if
    /// each has to be, or is text already.
    pub(crate) fn written(&self, from: usize, to: usize) -> Option<Self> {
        let Self::Nested(rows, broken) = self else { return None };
        if !broken.is_empty() {
            return None;
        }
        let rows = rows.slice(from, to - from);
        let text = lines_of(&rows).ok()?;
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let ends: Vec<usize> = ends.collect();
        let is_whole = ends.len() == rows.num_rows();
        is_whole.then_some(Self::Written(Written { first: from, text, ends, rows }))
    }

    pub(crate) fn get(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Binary(array) => text_of(array, row),
            Self::Large(array) => text_of(array, row),
            Self::View(array) if array.is_valid(row) => Cell::Text(array.value(row).into()),
            Self::Distinct(values, keys) => match keys.get(row) {
                Some(Some(key)) => values.get(*key),
                _ => Cell::null(),
            },
            Self::Nested(_, broken) if broken.get(row).is_some_and(Option::is_some) => {
                Cell::Unreadable(broken[row].clone().unwrap_or_default())
            }
            Self::Nested(rows, _) if rows.column(0).is_valid(row) => match lines_of(&rows.slice(row, 1)) {
                Ok(line) => Cell::Text(line.into()),
                Err(error) => Cell::Unreadable(format!("the row cannot be written as JSON: {error}")),
            },
            Self::Written(written) => written.get(row),
            Self::View(_) | Self::Nested(_, _) | Self::Null => Cell::null(),
        }
    }
}

impl Written {
    fn get(&self, row: usize) -> Cell<'_> {
        let at = row - self.first;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        if self.rows.column(0).is_valid(at) {
            Cell::Text(self.text[start..self.ends[at]].into())
        } else {
            Cell::null()
        }
    }
}

impl Cell<'_> {
    fn null() -> Self {
        Self::Unreadable("the row is null".to_string())
    }
}

fn text_of<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>, row: usize) -> Cell<'_> {
    if array.is_valid(row) { Cell::Text(array.value(row).into()) } else { Cell::null() }
}

/// What is encoded, of a type that encodes values of another.
fn value_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => value_type(values),
        DataType::RunEndEncoded(_, values) => value_type(values.data_type()),
        plain => plain,
    }
}

fn is_text(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Null, Utf8, Utf8View};
    matches!(value_type(kind), Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | Null)
}

/// The type of what a list holds.
fn item(kind: &DataType) -> Option<&Field> {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView};
    match kind {
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) | FixedSizeList(item, _) => {
            Some(item)
        }
        _ => None,
    }
}

fn is_nested(kind: &DataType) -> bool {
    item(kind).is_some_and(|item| matches!(item.data_type(), DataType::Struct(_)))
}

/// Whether a type holds bytes, which JSON cannot say.
fn holds_binary(kind: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, Map, Struct};
    match kind {
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => true,
        Struct(fields) => fields.iter().any(|field| holds_binary(field.data_type())),
        Map(entries, _) => holds_binary(entries.data_type()),
        list => item(list).is_some_and(|item| holds_binary(item.data_type())),
    }
}

/// Rows as lines of a data set. What is null is left out: where rows differ in their keys, Arrow fills them so.
fn lines_of(rows: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = WriterBuilder::new().with_explicit_nulls(false).build::<_, LineDelimited>(Vec::new());
    writer.write(rows)?;
    writer.finish()?;
    Ok(writer.into_inner())
}

/// Rows of these lines.
fn nested(schema: &SchemaRef, lines: &[&[u8]]) -> Result<RecordBatch, ArrowError> {
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

/// Texts as an array of a type of texts.
fn texts_as<'t>(kind: &DataType, texts: impl Iterator<Item = &'t [u8]>) -> Result<ArrayRef, ArrowError> {
    let mut builder = BinaryBuilder::new();
    texts.for_each(|text| builder.append_value(text));
    let plain: ArrayRef = Arc::new(builder.finish());
    // A cast straight to a dictionary of strings is not offered from bytes.
    cast(&cast(&plain, value_type(kind))?, kind)
}

/// Which rows hold strings that are not UTF-8: who hands them over need not have looked.
fn broken_rows(rows: &RecordBatch) -> Result<Vec<Option<String>>, ArrowError> {
    let is_sound =
        |rows: &RecordBatch| rows.columns().iter().try_for_each(|column| column.to_data().validate_full());
    if is_sound(rows).is_ok() {
        return Ok(Vec::new());
    }
    let alone = |row: usize| {
        let row = UInt64Array::from(vec![row as u64]);
        let columns = rows.columns().iter().map(|column| take(column.as_ref(), &row, None));
        let alone = RecordBatch::try_new(rows.schema(), columns.collect::<Result<_, _>>()?)?;
        Ok(is_sound(&alone).err().map(|error| format!("the row is not sound: {error}")))
    };
    (0..rows.num_rows()).map(alone).collect()
}
