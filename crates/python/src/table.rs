//! What functions are given and give back: Arrow batches, one or a stream of them.

use crate::task::TaskJob;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeBinaryArray, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};
use pyo3_arrow::PyField;
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_schema_pycapsule, to_stream_pycapsule};
use pyo3_arrow::input::AnyArray;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of a column of rows that came as a list.
pub(crate) const ROW: &str = "row";

/// What is said of arrays on which Arrow's own code gives up.
pub(crate) const UNREADABLE: &str =
    "Arrow cannot read this batch as it lies; copy it first, as pyarrow's take does";

/// Whether what an object holds has to be copied before it is read: of fixed-size lists Arrow's code misreads slices.
pub(crate) fn is_misread(given: Borrowed<'_, '_, PyAny>) -> bool {
    let has = |of: &Bound<'_, PyAny>| {
        of.extract::<PyField>().is_ok_and(|field| has_fixed(field.into_inner().data_type()))
    };
    // pyarrow's tables and arrays have no type themselves.
    let types = ["schema", "type"].into_iter().filter_map(|name| given.getattr(name).ok());
    std::iter::once(given.to_owned()).chain(types).any(|of| has(&of))
}

fn has_fixed(kind: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    match kind {
        FixedSizeList(..) => true,
        Struct(fields) => fields.iter().any(|field| has_fixed(field.data_type())),
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) | Map(item, _) => {
            has_fixed(item.data_type())
        }
        _ => false,
    }
}

type Reader = Box<dyn ArrayReader + Send>;

/// Batches as they come.
pub(crate) struct GivenBatches {
    field: FieldRef,
    /// The columns; of an array that is no batch, itself.
    fields: Fields,
    batches: Reader,
    /// Whether all of it is in memory already.
    is_whole: bool,
}

impl GivenBatches {
    /// Texts, of a column of this name.
    pub(crate) fn texts(texts: &[&[u8]], name: &str) -> Self {
        let array: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(texts));
        let field = field_of(&DataType::LargeBinary).as_ref().clone().with_name(name);
        Self::new(Box::new(ArrayIterator::new([Ok(array)], Arc::new(field))), true)
    }

    pub(crate) fn arrow(given: AnyArray) -> PyResult<Self> {
        let is_whole = matches!(given, AnyArray::Array(_));
        Ok(Self::new(given.into_reader()?, is_whole))
    }

    fn new(batches: Reader, is_whole: bool) -> Self {
        let field = batches.field();
        let fields = match field.data_type() {
            DataType::Struct(fields) => fields.clone(),
            _ if field.name() == ROW => Fields::from(vec![field.clone()]),
            _ => Fields::from(vec![field.as_ref().clone().with_name("session")]),
        };
        Self { field, fields, batches, is_whole }
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Does a task with all of it, or, of a stream, whenever a batch is asked for.
    pub(crate) fn run(self, job: TaskJob) -> PyResult<Table> {
        let Self { field, fields, batches, is_whole } = self;
        let made = Field::new(field.name(), DataType::Struct(job.fields(&fields)), field.is_nullable());
        let made = Arc::new(made.with_metadata(field.metadata().clone()));
        let (mut given, mut before, mut ready) = (batches, 0, VecDeque::new());
        let mut next = move || {
            while ready.is_empty() {
                let batch = match given.next()? {
                    Ok(batch) => batch,
                    Err(error) => return Some(Err(without_nul(&error))),
                };
                let batch = match batch.as_struct_opt() {
                    Some(batch) => Ok(batch.clone()),
                    None => StructArray::try_new(fields.clone(), vec![batch], None),
                };
                match batch.and_then(|batch| Ok((job.run(&batch, before)?, batch.len() as u64))) {
                    Ok((done, rows)) => {
                        ready.extend(done);
                        before += rows;
                    }
                    Err(error) => return Some(Err(without_nul(&error))),
                }
            }
            ready.pop_front().map(|done| Ok(Arc::new(done) as ArrayRef))
        };
        let lost = || ArrowError::ComputeError(UNREADABLE.to_string());
        let batches = std::iter::from_fn(move || {
            catch_unwind(AssertUnwindSafe(&mut next)).unwrap_or_else(|_| Some(Err(lost())))
        });
        let batches = if is_whole {
            let done = batches.collect::<Result<Vec<_>, _>>();
            Batches::Whole(done.map_err(|error| PyValueError::new_err(error.to_string()))?)
        } else {
            Batches::Stream(Some(Box::new(ArrayIterator::new(batches, made.clone()))))
        };
        Ok(Table { field: made, batches: Mutex::new(batches) })
    }
}

/// The field of an array that has none.
fn field_of(kind: &DataType) -> FieldRef {
    Arc::new(Field::new("", kind.clone(), true))
}

/// An error in words that C can have.
fn without_nul(error: &ArrowError) -> ArrowError {
    ArrowError::ComputeError(error.to_string().replace('\0', "\u{fffd}"))
}

/// Answers.
enum Batches {
    Whole(Vec<ArrayRef>),
    /// `None` once it was read.
    Stream(Option<Reader>),
}

/// An answer, as anything that speaks Arrow reads it: `pyarrow.table(it)`, `polars.DataFrame(it)`, `duckdb.from_arrow(it)`.
#[pyclass(frozen, module = "session_tailor")]
pub(crate) struct Table {
    field: FieldRef,
    batches: Mutex<Batches>,
}

impl Table {
    /// All batches of an answer that was not a stream.
    fn whole(&self) -> Option<Vec<ArrayRef>> {
        match &*self.batches.lock().unwrap_or_else(PoisonError::into_inner) {
            Batches::Whole(batches) => Some(batches.clone()),
            Batches::Stream(_) => None,
        }
    }

    fn reader(&self) -> PyResult<Reader> {
        match &mut *self.batches.lock().unwrap_or_else(PoisonError::into_inner) {
            Batches::Whole(batches) => {
                let batches: Vec<_> = batches.iter().cloned().map(Ok).collect();
                Ok(Box::new(ArrayIterator::new(batches, self.field.clone())))
            }
            Batches::Stream(stream) => stream.take().ok_or_else(|| {
                PyValueError::new_err("this stream was read already; of a stream the answer can be read once")
            }),
        }
    }

    /// What `mend` gives back for one session: what it was given, the outcome, and the reason.
    pub(crate) fn one<'py>(&self, py: Python<'py>, as_messages: bool) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.whole().and_then(|batches| batches.into_iter().next());
        let batch = batch.as_ref().and_then(|batch| batch.as_struct_opt());
        let batch = batch.ok_or_else(|| PyValueError::new_err("no answer"))?;
        let text = batch.column(0).as_binary::<i64>().value(0);
        let session = if as_messages { messages_of(py, text)? } else { PyBytes::new(py, text).into_any() };
        let reason = batch.column(2).as_string::<i32>();
        let reason = reason.is_valid(0).then(|| reason.value(0));
        Ok((session, batch.column(1).as_string::<i32>().value(0), reason).into_pyobject(py)?.into_any())
    }
}

/// Lines of JSON as messages.
fn messages_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let json = py.import("json")?;
    let messages = PyList::empty(py);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        messages.append(json.call_method1("loads", (PyBytes::new(py, line),))?)?;
    }
    Ok(messages.into_any())
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_stream_pycapsule(py, self.reader()?, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.field.as_ref())
    }

    fn __len__(&self) -> PyResult<usize> {
        let batches = self.whole().ok_or_else(|| {
            PyTypeError::new_err("the length of a stream is not known before it is read; use to_pyarrow()")
        })?;
        Ok(batches.iter().map(Array::len).sum())
    }

    fn __bool__(&self) -> PyResult<bool> {
        Ok(self.__len__()? > 0)
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        let DataType::Struct(fields) = self.field.data_type() else { return Vec::new() };
        fields.iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        let rows = self.whole().map(|batches| batches.iter().map(Array::len).sum::<usize>());
        let rows = rows.map_or_else(|| "a stream".to_string(), |rows| format!("{rows} rows"));
        format!("<session_tailor.Table of {rows}: {}>", self.column_names().join(", "))
    }

    /// The table as a `pyarrow.Table`.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The table as a list of dicts.
    fn to_pylist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pylist")
    }
}
