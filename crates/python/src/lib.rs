//! The Python module `session_tailor`: `transcript` over bytes, over messages and over Arrow.
//!
//! `python/session_tailor/__init__.pyi` documents the functions. What is given is a column of sessions in any form that
//! Arrow's PyCapsule interface hands over (`column`); a task goes over its rows batch by batch (`task`, `row`), without
//! Python's lock and without files; the answer is an Arrow stream again (`table`).
#![forbid(unsafe_code)]

mod column;
mod row;
mod table;
mod task;

use column::Columns;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::input::AnyArray;
use std::panic::{AssertUnwindSafe, catch_unwind};
use table::{Given, Table, UNREADABLE};
use task::{Job, Task};
use transcript::format::FORMATS;
use transcript::policy::WINDOW_TOKENS;
use transcript::profile;
use transcript::rule::{self, Rule};
use transcript::{Policy, refusal};

/// The part of the window that a chunk takes, as `tailor chunk` has it.
const SHARE_PERCENT: u64 = 40;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Table, check, chunk, explain, mend, weigh};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// What a function was given.
enum Input {
    /// One session.
    Bytes(Vec<u8>),
    /// One session, as messages.
    Messages(Vec<u8>),
    Arrow(AnyArray),
}

impl<'py> FromPyObject<'_, 'py> for Input {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.extract::<PyBackedStr>() {
            return Ok(Self::Bytes(text.as_bytes().to_vec()));
        }
        if let Ok(bytes) = given.extract::<PyBackedBytes>() {
            return Ok(Self::Bytes(bytes.to_vec()));
        }
        if let Ok(messages) = given.cast::<PyList>() {
            return Ok(Self::Messages(lines_of(&messages)?));
        }
        let arrow = catch_unwind(AssertUnwindSafe(|| given.extract()));
        arrow.map_err(|_| PyValueError::new_err(UNREADABLE))?.map(Self::Arrow).map_err(|error: PyErr| {
            let kind = given.get_type();
            let said = "expected bytes, str, a list of messages (dicts), or Arrow data (an object with \
                        __arrow_c_array__ or __arrow_c_stream__)";
            let given = kind.name().map_or_else(|_| String::new(), |name| format!(", not {name}"));
            let error = if given.is_empty() { error.to_string() } else { String::new() };
            PyTypeError::new_err(format!("{said}{given}{error}"))
        })
    }
}

/// Messages as lines of JSON.
fn lines_of(messages: &Bound<'_, PyList>) -> PyResult<Vec<u8>> {
    let json = messages.py().import("json")?;
    let how = PyDict::new(messages.py());
    how.set_item("ensure_ascii", false)?;
    how.set_item("separators", (",", ":"))?;
    let mut lines = Vec::new();
    for message in messages {
        if !message.is_instance_of::<PyDict>() {
            return Err(PyTypeError::new_err(
                "expected a list of messages, each a dict; for many sessions pass Arrow data",
            ));
        }
        let line = json.call_method("dumps", (&message,), Some(&how))?;
        match line.extract::<PyBackedStr>() {
            Ok(line) => lines.extend_from_slice(line.as_bytes()),
            // Half of a surrogate pair has no UTF-8; its escape does.
            Err(_) => lines.extend_from_slice(
                json.call_method1("dumps", (&message,))?.extract::<PyBackedStr>()?.as_bytes(),
            ),
        }
        lines.push(b'\n');
    }
    Ok(lines)
}

/// What all tasks can be told.
#[derive(Default)]
struct Options {
    column: Option<String>,
    format: Option<String>,
    profile: Option<String>,
    select: Option<Vec<String>>,
    ignore: Option<Vec<String>>,
    allow: Option<Vec<String>>,
    result_chars_max: Option<u64>,
    window_tokens: Option<u64>,
    threads: Option<usize>,
}

impl Options {
    /// A name that is mistyped is an error.
    fn of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut asked = Self::default();
        for (name, value) in given.into_iter().flatten() {
            match &*name.extract::<PyBackedStr>()? {
                "column" => asked.column = value.extract()?,
                "format" => asked.format = value.extract()?,
                "profile" => asked.profile = value.extract()?,
                "select" => asked.select = value.extract()?,
                "ignore" => asked.ignore = value.extract()?,
                "allow" => asked.allow = value.extract()?,
                "result_chars_max" => asked.result_chars_max = value.extract()?,
                "window_tokens" => asked.window_tokens = value.extract()?,
                "threads" => asked.threads = value.extract()?,
                other => {
                    return Err(PyTypeError::new_err(format!("no option {other:?}; help(check) lists them")));
                }
            }
        }
        Ok(asked)
    }

    fn policy(&self) -> PyResult<Policy> {
        let mut policy = match &self.profile {
            None => Policy::default(),
            Some(name) => {
                let known = profile::find(name).ok_or_else(|| unknown("profile", name))?;
                known.policy()
            }
        };
        if let Some(name) = &self.format {
            let known = FORMATS.iter().find(|format| format.name == name);
            policy.format = Some(known.ok_or_else(|| unknown("format", name))?.name);
        }
        let codes = |named: &Option<Vec<String>>| {
            let code = |name: &String| {
                rule::find(name).map(|rule| rule.code().to_string()).ok_or_else(|| unknown("rule", name))
            };
            named.iter().flatten().map(code).collect::<PyResult<Vec<_>>>()
        };
        policy.selection.select = codes(&self.select)?;
        policy.selection.ignore = codes(&self.ignore)?;
        policy.selection.allow = codes(&self.allow)?;
        policy.result_chars_max = self.result_chars_max.unwrap_or(policy.result_chars_max);
        policy.window_tokens = self.window_tokens.or(policy.window_tokens);
        Ok(policy)
    }
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("no such {what}: {name:?}"))
}

/// Does a task with what was given.
fn run(py: Python<'_>, task: Task, given: Input, options: &Options) -> PyResult<Table> {
    let given = match given {
        Input::Bytes(text) | Input::Messages(text) => Given::one(text),
        Input::Arrow(arrow) => Given::arrow(arrow)?,
    };
    let columns = Columns::find(given.fields(), options.column.as_deref()).map_err(PyTypeError::new_err)?;
    let job = Job { task, policy: options.policy()?, threads: options.threads.unwrap_or(1), columns };
    py.detach(|| given.run(job))
}

/// What is wrong, as a table with one row a finding, in the order of rows and lines.
///
/// `sessions` is one session (bytes or str: the lines of its file; or a list of messages, dicts) or Arrow data: a batch, a
/// table, an array, a data frame. Of Arrow data a text or binary column holds one session a row, or a column `messages`,
/// `conversations` or `contents` of lists of structs holds one conversation a row.
///
/// Columns: row, line (uint64), code, severity, message, fix (string), saves_bytes, more (uint64). A row that is no session
/// has one finding without a code, which says why.
///
/// Options: column (its name), format (take rows for this one, as lines of a data set: "openai-dataset"), profile, select,
/// ignore, allow (lists of rules), result_chars_max, window_tokens, threads (1; 0 counts as 1).
///
///     found = pyarrow.table(session_tailor.check(table, column="session"))
///     found.group_by("code").aggregate([("row", "count")])
#[pyfunction]
#[pyo3(signature = (sessions, /, **options))]
fn check(py: Python<'_>, sessions: Input, options: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
    run(py, Task::Check, sessions, &Options::of(options)?)
}

/// Repairs sessions: what was given, mended.
///
/// Of one session (bytes, str, or a list of messages) a tuple: the session, the outcome, and the reason or None. Of Arrow
/// data the same columns with the same types, and two more: tailor_outcome and tailor_reason (string). Every row comes
/// back, in its place; one that cannot be mended as it was.
///
/// Outcomes: clean (nothing is wrong), fixed (mended; the reason names what is left), findings (nothing to mend by itself;
/// the reason names what is wrong), refused (a repair would not be safe), unreadable (no session: null, empty, unknown).
///
/// Options as of `check`.
///
///     mended = pyarrow.table(session_tailor.mend(table))
///     kept = mended.filter(pc.is_in(mended["tailor_outcome"], pa.array(["clean", "fixed"])))
#[pyfunction]
#[pyo3(signature = (sessions, /, **options))]
fn mend<'py>(
    py: Python<'py>,
    sessions: Input,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let as_messages = matches!(sessions, Input::Messages(_));
    let is_one = as_messages || matches!(sessions, Input::Bytes(_));
    let table = run(py, Task::Mend, sessions, &Options::of(options)?)?;
    if is_one { table.one(py, as_messages) } else { Ok(Bound::new(py, table)?.into_any()) }
}

/// What fills sessions: a table with one row a session.
///
/// Columns: row (uint64), error, format, model (string), bytes, lines, entries, calls, results, context_tokens, image_count,
/// and bytes by what becomes of them (context_bytes, compacted_bytes, ...) and by what they are (results_bytes,
/// thinking_bytes, ...), all uint64. A row that is no session has an error and nothing else.
///
///     pyarrow.table(session_tailor.weigh(table)).sort_by([("context_tokens", "descending")])
#[pyfunction]
#[pyo3(signature = (sessions, /, **options))]
fn weigh(py: Python<'_>, sessions: Input, options: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
    run(py, Task::Weigh, sessions, &Options::of(options)?)
}

/// What is in context, in chunks that a summariser can take: a table with one row a chunk.
///
/// Columns: row, chunk (from 1), line (of its first message), messages, chars, tokens (uint64), text, error (string). Calls
/// and their results are never parted; tokens are estimated (four characters each). The limits are those of `tailor chunk`:
/// max_tokens (40 % of window_tokens), max_chars, summary_chars_max, budget_tokens.
///
///     for chunk in session_tailor.chunk(open(path, "rb").read(), max_tokens=8000).to_pylist():
///         summarise(chunk["text"])
#[pyfunction]
#[pyo3(signature = (sessions, /, *, max_tokens=None, max_chars=0, summary_chars_max=100_000, budget_tokens=0, **options))]
fn chunk(
    py: Python<'_>,
    sessions: Input,
    max_tokens: Option<u64>,
    max_chars: u64,
    summary_chars_max: u64,
    budget_tokens: u64,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Table> {
    let options = Options::of(options)?;
    let window_tokens = options.window_tokens.unwrap_or(WINDOW_TOKENS);
    let task = Task::Chunk {
        tokens_max: max_tokens.unwrap_or(window_tokens.saturating_mul(SHARE_PERCENT) / 100),
        chars_max: max_chars,
        message_chars_max: summary_chars_max,
        window_tokens,
        budget_tokens,
    };
    run(py, task, sessions, &options)
}

/// What a rule, a profile or an error of a provider is about.
///
/// Of a str a text, or None if it is not known. Of Arrow data (a column of error texts) a table: row (uint64), known (bool),
/// what, codes (of the rules that find the cause), fix, advice (string).
///
///     print(session_tailor.explain("prompt is too long: 201234 tokens > 200000 maximum"))
#[pyfunction]
#[pyo3(signature = (what, /, **options))]
fn explain<'py>(
    py: Python<'py>,
    what: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(text) = what.extract::<PyBackedStr>() {
        return Ok(explained(&text).into_pyobject(py)?.into_any());
    }
    let table = run(py, Task::Explain, Input::Arrow(what.extract()?), &Options::of(options)?)?;
    Ok(Bound::new(py, table)?.into_any())
}

/// What a code, a profile or an error text is about.
fn explained(text: &str) -> Option<String> {
    let of_rule = |rule: &&Rule| {
        let help = rule.help();
        let (code, name) = (rule.code(), rule.name());
        format!(
            "{code} {name}\n\n{}\n\nWhy: {}\n\nFix: {}\n\nSource: {}",
            help.what, help.why, help.fix, help.source
        )
    };
    let profile = profile::find(text)
        .map(|found| format!("{}\n\n{}\n\nSource: {}", found.name, found.what, found.source));
    profile.or_else(|| rule::find(text).as_ref().map(of_rule)).or_else(|| {
        let known = refusal::find(text)?;
        let codes = known.codes.join(", ");
        let told = [known.what, &codes, known.fix, known.advice];
        Some(told.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n"))
    })
}
