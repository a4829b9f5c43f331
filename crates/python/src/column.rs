//! Rows of Arrow as bytes: a column of texts with one session each, or columns of nested messages with one conversation a
//! row. And back, in the type that they had.

use crate::json::{RowLines, nested};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, OffsetSizeTrait, RecordBatch, StructArray};
use arrow_array::{BinaryViewArray, GenericBinaryArray, LargeBinaryArray};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};
use arrow_select::interleave::interleave;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Columns that hold the messages of a conversation, and those beside them that belong to the line of a data set.
const NESTED: &[(&str, &[&str])] = &[
    ("messages", &["tools", "functions"]),
    ("conversations", &["system", "tools"]),
    ("contents", &["systemInstruction", "system_instruction", "tools"]),
];

/// What a row holds.
pub(crate) enum ColumnCell<'a> {
    Text(Cow<'a, [u8]>),
    /// Nothing that can be read, for this reason.
    Unreadable(String),
}

/// Where the sessions of a batch are.
pub(crate) enum SessionRows {
    Binary(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    /// The distinct texts, and which of them each row has.
    Distinct(Box<SessionRows>, Vec<Option<usize>>),
    /// Conversations.
    Nested(RecordBatch),
    /// Rows of data, with all their columns.
    Whole(RecordBatch),
    /// Some of them as lines, and which row is the first.
    Written(RowLines, usize),
    /// Rows of nothing but null.
    Null,
    /// Rows that Arrow itself cannot handle, for this reason.
    Lost(String),
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
        let guess = || {
            let texts = || (0..fields.len()).filter(|&at| is_text(fields[at].data_type()));
            let named = || texts().find(|&at| NESTED.iter().any(|(name, _)| fields[at].name() == name));
            let only = || texts().next().filter(|_| texts().nth(1).is_none());
            let found = NESTED.iter().find_map(|(name, _)| nested(name)).or_else(named).or_else(only);
            found.ok_or_else(|| format!("which column? pass column=NAME; there are: {}", list()))
        };
        let missing = |name| format!("no column {name:?}; there are: {}", list());
        let found = asked.map_or_else(guess, |name| place(name).ok_or_else(|| missing(name)))?;
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

    /// Rows with all their columns but those with bytes, or those of a column of texts, which hold a row each.
    pub(crate) fn whole(fields: &[FieldRef], asked: Option<&str>) -> Result<Self, String> {
        if asked.is_some() || (fields.len() == 1 && is_text(fields[0].data_type())) {
            return Self::find(fields, asked);
        }
        Ok(Self((0..fields.len()).filter(|&at| !holds_binary(fields[at].data_type())).collect()))
    }

    /// Rows of these columns.
    pub(crate) fn whole_rows(&self, batch: &StructArray) -> Result<SessionRows, ArrowError> {
        let columns: Vec<ArrayRef> = self.0.iter().map(|&at| batch.columns()[at].clone()).collect();
        if let [only] = &columns[..]
            && is_text(only.data_type())
        {
            return SessionRows::from_array(only);
        }
        let fields: Vec<FieldRef> = self.0.iter().map(|&at| batch.fields()[at].clone()).collect();
        Ok(SessionRows::Whole(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
    }

    /// The name of the column that holds a session, of a batch with these.
    pub(crate) fn name<'f>(&self, fields: &'f [FieldRef]) -> &'f str {
        self.0.first().map_or("", |&at| fields[at].name())
    }

    /// The rows of a batch.
    pub(crate) fn rows(&self, batch: &StructArray) -> Result<SessionRows, ArrowError> {
        let first = &batch.columns()[self.0[0]];
        if !is_nested(first.data_type()) {
            return SessionRows::from_array(first);
        }
        let columns: Vec<ArrayRef> = self.0.iter().map(|&at| batch.columns()[at].clone()).collect();
        let fields: Vec<FieldRef> = self.0.iter().map(|&at| batch.fields()[at].clone()).collect();
        // A conversation stands in its own field, whatever the column is called.
        let known = NESTED.iter().any(|(name, _)| name == fields[0].name());
        let named = |field: &FieldRef| Arc::new(field.as_ref().clone().with_name("messages"));
        let fields = if known { fields } else { fields.iter().map(named).collect() };
        Ok(SessionRows::Nested(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
    }

    /// The columns of a batch, with other texts in some rows. `texts` are those rows and their texts, in order. It is an error
    /// if there is no room for them, such as in a column of strings, which holds 2 GiB.
    pub(crate) fn replace(
        &self,
        batch: &StructArray,
        texts: &[(usize, Vec<u8>)],
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let mut columns = batch.columns().to_vec();
        let kind = columns[self.0[0]].data_type();
        let lines: Vec<&[u8]> = texts.iter().map(|(_, text)| text.as_slice()).collect();
        let made = if is_nested(kind) {
            let SessionRows::Nested(rows) = self.rows(batch)? else { return Ok(columns) };
            nested(&rows.schema(), &lines)?.columns().to_vec()
        } else {
            vec![texts_as(kind, &lines)?]
        };
        let mut from: Vec<(usize, usize)> = (0..batch.len()).map(|row| (0, row)).collect();
        for (n, (row, _)) in texts.iter().enumerate() {
            from[*row] = (1, n);
        }
        for (&at, made) in self.0.iter().zip(made) {
            // Arrow panics where offsets do not reach.
            let both = || interleave(&[columns[at].as_ref(), made.as_ref()], &from);
            let both = catch_unwind(AssertUnwindSafe(both));
            columns[at] = both.unwrap_or_else(|_| Err(too_much()))?;
        }
        Ok(columns)
    }

    /// Why a text cannot stand in a row of this type; `None` if it can.
    pub(crate) fn refuses(
        &self,
        batch: &StructArray,
        rows: &SessionRows,
        row: usize,
        text: &[u8],
    ) -> Option<String> {
        let SessionRows::Nested(nested_rows) = rows else {
            let kind = value_type(batch.columns()[self.0[0]].data_type());
            let is_string = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            return (is_string && std::str::from_utf8(text).is_err())
                .then(|| "the mended text is not UTF-8, which its column asks for".to_string());
        };
        let schema = nested_rows.schema();
        let is_same = nested(&schema, &[text]).and_then(|_| {
            let before = nested_rows.slice(row, 1);
            let again = nested(&schema, &[RowLines::from_rows(nested_rows, row..row + 1)?.get(0)?])?;
            Ok(again.columns().iter().zip(before.columns()).all(|(one, other)| one == other))
        });
        match is_same {
            Ok(true) => None,
            Ok(false) => Some("the row would not come back the same from JSON".to_string()),
            Err(error) => Some(format!("the mended row does not fit the type of its column: {error}")),
        }
    }
}

impl SessionRows {
    /// Rows of texts.
    fn from_array(array: &ArrayRef) -> Result<Self, ArrowError> {
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
                Self::Distinct(
                    Box::new(Self::from_array(array.values())?),
                    (0..array.len()).map(key).collect(),
                )
            }
            other => Self::from_array(&cast(array, value_type(other))?)?,
        })
    }

    /// Conversations from one row to another, written together, which is faster than each by itself. `None` if they cannot be,
    /// or are text already.
    pub(crate) fn written(&self, from: usize, to: usize) -> Option<Self> {
        let lines = match self {
            Self::Nested(rows) => RowLines::from_rows(rows, from..to),
            Self::Whole(rows) => RowLines::from_whole(rows, from..to),
            _ => return None,
        };
        Some(Self::Written(lines.ok()?, from))
    }

    pub(crate) fn get(&self, row: usize) -> ColumnCell<'_> {
        match self {
            Self::Binary(array) => text_of(array, row),
            Self::Large(array) => text_of(array, row),
            Self::View(array) if array.is_valid(row) => ColumnCell::Text(array.value(row).into()),
            Self::Distinct(values, keys) => match keys.get(row) {
                Some(Some(key)) => values.get(*key),
                _ => ColumnCell::null(),
            },
            Self::Nested(rows) if rows.column(0).is_null(row) => ColumnCell::null(),
            Self::Nested(rows) => ColumnCell::written(RowLines::from_rows(rows, row..row + 1)),
            Self::Whole(rows) => ColumnCell::written(RowLines::from_whole(rows, row..row + 1)),
            Self::Written(lines, first) => lines.cell(row - first),
            Self::Lost(why) => ColumnCell::Unreadable(why.clone()),
            Self::View(_) | Self::Null => ColumnCell::null(),
        }
    }
}

impl ColumnCell<'_> {
    pub(crate) fn null() -> Self {
        Self::Unreadable("the row is null".to_string())
    }

    /// The first of some rows.
    fn written(lines: Result<RowLines, ArrowError>) -> Self {
        match lines {
            Ok(lines) => lines.cell(0).into_owned(),
            Err(error) => Self::Unreadable(format!("the row cannot be written as JSON: {error}")),
        }
    }

    fn into_owned(self) -> ColumnCell<'static> {
        match self {
            Self::Text(text) => ColumnCell::Text(text.into_owned().into()),
            Self::Unreadable(why) => ColumnCell::Unreadable(why),
        }
    }
}

fn text_of<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>, row: usize) -> ColumnCell<'_> {
    if array.is_valid(row) { ColumnCell::Text(array.value(row).into()) } else { ColumnCell::null() }
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

/// Texts as an array of a type of texts.
fn texts_as(kind: &DataType, texts: &[&[u8]]) -> Result<ArrayRef, ArrowError> {
    let plain: ArrayRef = match value_type(kind) {
        DataType::LargeUtf8 | DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter_values(texts)),
        DataType::Utf8View | DataType::BinaryView => Arc::new(BinaryViewArray::from_iter_values(texts)),
        _ if is_too_long(texts.iter().copied()) => return Err(too_much()),
        _ => Arc::new(BinaryArray::from_iter_values(texts)),
    };
    // A cast straight to a dictionary of strings is not offered from bytes.
    cast(&cast(&plain, value_type(kind))?, kind)
}

/// Whether texts are more than a column of strings holds.
pub(crate) fn is_too_long<'t>(texts: impl Iterator<Item = &'t [u8]>) -> bool {
    i32::try_from(texts.map(<[u8]>::len).sum::<usize>()).is_err()
}

pub(crate) fn too_much() -> ArrowError {
    ArrowError::ComputeError("more than 2 GiB, which is all that this type of column holds".to_string())
}
