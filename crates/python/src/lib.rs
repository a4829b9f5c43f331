//! The Python module `session_tailor`: `transcript` over bytes, over messages and over Arrow.
//!
//! `python/session_tailor/__init__.pyi` documents the functions. What is given is a column of sessions in any form that
//! Arrow's PyCapsule interface hands over (`column`); a task goes over its rows batch by batch (`task`, `row`), without
//! Python's lock and without files; the answer is an Arrow stream again (`table`).
#![forbid(unsafe_code)]

mod column;
mod json;
mod row;
mod table;
mod task;

use column::Columns;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::input::AnyArray;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::available_parallelism;
use table::{GivenBatches, ROW, Table, UNREADABLE};
use task::{Task, TaskJob};
use transcript::contract::trainer;
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

/// Fields by which a dict is a row of data.
const CONVERSATIONS: &[&str] =
    &["messages", "conversations", "conversation", "contents", "input", "prompt", "chosen", "text"];

/// What a function was given.
enum Input {
    /// One session.
    Bytes(Vec<u8>),
    /// One session, as messages.
    Messages(Vec<u8>),
    /// Rows, as conversations or as objects that hold them.
    Rows(Vec<Vec<u8>>),
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
        if let Ok(list) = given.cast::<PyList>() {
            return Self::list(&list);
        }
        Self::arrow(given)?.map_err(|error| {
            let kind = given.get_type();
            let said = "expected bytes, str, a list of messages (dicts), of conversations or of rows, or Arrow data (an \
                        object with __arrow_c_array__ or __arrow_c_stream__; of a datasets.DatasetDict pass one split)";
            let given = kind.name().map_or_else(|_| String::new(), |name| format!(", not {name}"));
            let error = if given.is_empty() { error.to_string() } else { String::new() };
            PyTypeError::new_err(format!("{said}{given}{error}"))
        })
    }
}

impl Input {
    /// A list of messages is one session. One of lists, or of dicts that name no role, is rows: each a conversation, or an object
    /// with one.
    fn list(list: &Bound<'_, PyList>) -> PyResult<Self> {
        let Some(first) = list.iter().next() else { return Ok(Self::Messages(Vec::new())) };
        let are_conversations = first.is_instance_of::<PyList>();
        if !are_conversations && !holds_conversation(&first) {
            return Ok(Self::Messages(lines_of(list)?));
        }
        let mut rows = Vec::new();
        for row in list {
            let row = if are_conversations {
                let named = PyDict::new(row.py());
                named.set_item("messages", row)?;
                named.into_any()
            } else {
                row
            };
            let mut line = lines_of(&PyList::new(row.py(), [row])?)?;
            line.pop();
            rows.push(line);
        }
        Ok(Self::Rows(rows))
    }

    /// The inner error is about an object that is no Arrow data.
    fn arrow(given: Borrowed<'_, '_, PyAny>) -> PyResult<PyResult<Self>> {
        // Hugging Face's data sets are views of tables.
        let copied = if given.hasattr("with_format")? && given.hasattr("_indices")? {
            Some(given.py().import("session_tailor._copied")?.call_method1("of_dataset", (given,))?)
        } else if table::is_misread(given) {
            Some(given.py().import("session_tailor._copied")?.call_method1("copied", (given,))?)
        } else {
            None
        };
        let given = copied.as_ref().map_or(given, Bound::as_borrowed);
        let arrow = catch_unwind(AssertUnwindSafe(|| given.extract()));
        Ok(arrow.map_err(|_| PyValueError::new_err(UNREADABLE))?.map(Self::Arrow))
    }
}

/// Whether it is a row of data and not a message.
fn holds_conversation(given: &Bound<'_, PyAny>) -> bool {
    let has = |key: &&str| given.contains(*key).unwrap_or(false);
    given.is_instance_of::<PyDict>()
        && !["role", "type", "parts"].iter().any(&has)
        && CONVERSATIONS.iter().any(has)
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
struct TaskOptions {
    column: Option<String>,
    trainer: Option<String>,
    format: Option<String>,
    profile: Option<String>,
    select: Option<Vec<String>>,
    ignore: Option<Vec<String>>,
    allow: Option<Vec<String>>,
    result_chars_max: Option<u64>,
    window_tokens: Option<u64>,
    threads: Option<usize>,
}

impl TaskOptions {
    /// A name that is mistyped is an error.
    fn from_dict(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut asked = Self::default();
        for (name, value) in given.into_iter().flatten() {
            match &*name.extract::<PyBackedStr>()? {
                "column" => asked.column = value.extract()?,
                "trainer" => asked.trainer = value.extract()?,
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
fn run(py: Python<'_>, task: Task, given: Input, options: &TaskOptions) -> PyResult<Table> {
    let given = match given {
        Input::Bytes(text) | Input::Messages(text) => GivenBatches::texts(&[&text], ""),
        Input::Rows(rows) => GivenBatches::texts(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>(), ROW),
        Input::Arrow(arrow) => GivenBatches::arrow(arrow)?,
    };
    let is_training = matches!(task, Task::Train(_));
    if options.trainer.is_some() && !is_training {
        return Err(PyTypeError::new_err("`trainer` is an option of check"));
    }
    let find = if is_training { Columns::whole } else { Columns::find };
    let columns = find(given.fields(), options.column.as_deref()).map_err(PyTypeError::new_err)?;
    let threads = match options.threads {
        Some(0) => available_parallelism().map_or(1, NonZero::get),
        asked => asked.unwrap_or(1),
    };
    let job = TaskJob { task, policy: options.policy()?, threads, columns };
    py.detach(|| given.run(job))
}

/// What is wrong, as a table with one row a finding, in the order of rows and lines.
///
/// `sessions` is one session (bytes or str: the lines of its file; or a list of messages, dicts), or rows: a list of
/// conversations (lists of messages) or of rows (dicts with `messages`, `conversations`, ...), a `datasets.Dataset`, or Arrow
/// data: a batch, a table, an array, a data frame. Of Arrow data a text or binary column holds one session a row, or a column
/// `messages`, `conversations` or `contents` of lists of structs holds one conversation a row.
///
/// Columns: row (uint64, from 0), column (string: where in the row, such as `messages[2]`, or the column alone), line (uint64:
/// within a session of several lines), code, severity, message, fix (string), saves_bytes, more (uint64). A row that is no
/// session has one finding without a code, which says why.
///
/// Options: column (its name), format (take rows for this one, as lines of a data set: "openai-dataset"), profile, select,
/// ignore, allow (lists of rules), result_chars_max, window_tokens, threads (1; 0 for all cores). trainer (such as
/// "openai-finetune", "llamafactory", "trl"): what this one would refuse or drop (error), or may (warning), by all columns of a
/// row; then code is what it is about, such as "roles", and docs/contracts.md says more.
///
/// >>> import pyarrow as pa, session_tailor
/// >>> asked = '{"role": "user", "content": "list"}\n'
/// >>> orphan = '{"role": "tool", "tool_call_id": "x", "content": "whose?"}\n'
/// >>> found = pa.table(session_tailor.check(pa.table({"session": [asked, asked + orphan, "no session"]})))
/// >>> found.select(["row", "line", "code", "severity"]).to_pylist()  # doctest: +NORMALIZE_WHITESPACE
/// [{'row': 1, 'line': 2, 'code': 'P2', 'severity': 'error'},
///  {'row': 2, 'line': None, 'code': None, 'severity': 'error'}]
/// >>> found.group_by("code").aggregate([("row", "count")]).num_rows
/// 2
/// >>> rows = [{"conversations": [{"from": "human", "value": "hi"}, {"from": "human", "value": "hello?"}]}]
/// >>> [(one["row"], one["column"], one["code"]) for one in session_tailor.check(rows, trainer="llamafactory").to_pylist()]
/// [(0, 'conversations[1].from', 'turns'), (0, 'conversations', 'no-assistant')]
#[pyfunction]
#[pyo3(signature = (sessions, /, **options))]
fn check(py: Python<'_>, sessions: Input, options: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
    let options = TaskOptions::from_dict(options)?;
    let task = match &options.trainer {
        Some(name) => Task::Train(trainer::find(name).ok_or_else(|| unknown("trainer", name))?),
        None => Task::Check,
    };
    run(py, task, sessions, &options)
}

/// Repairs sessions: what was given, mended.
///
/// Of one session (bytes, str, or a list of messages) a tuple: the session, the outcome, and the reason or None. Of Arrow
/// data the same columns with the same types, and two more: tailor_outcome and tailor_reason (string); of a list of rows or
/// conversations such a table with their JSON in `row`. Every row comes
/// back, in its place; one that cannot be mended as it was.
///
/// Outcomes: clean (nothing is wrong), fixed (mended; the reason names what is left), findings (nothing to mend by itself;
/// the reason names what is wrong), refused (a repair would not be safe), unreadable (no session: null, empty, unknown).
///
/// Options as of `check`.
///
/// >>> import pyarrow as pa, pyarrow.compute as pc, session_tailor
/// >>> messages = [{"role": "user", "content": "list"}, {"role": "assistant", "content": "ok"}]
/// >>> orphan = {"role": "tool", "tool_call_id": "x", "content": "whose?"}
/// >>> session_tailor.mend([*messages, orphan], allow=["P2"]) == (messages, "fixed", None)
/// True
/// >>> mended = pa.table(session_tailor.mend(pa.table({"id": [7, 8], "messages": [messages, None]})))
/// >>> kept = mended.filter(pc.is_in(mended["tailor_outcome"], pa.array(["clean", "fixed"])))
/// >>> kept["id"].to_pylist(), mended["tailor_reason"].to_pylist()
/// ([7], [None, 'the row is null'])
#[pyfunction]
#[pyo3(signature = (sessions, /, **options))]
fn mend<'py>(
    py: Python<'py>,
    sessions: Input,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let as_messages = matches!(sessions, Input::Messages(_));
    let is_one = as_messages || matches!(sessions, Input::Bytes(_));
    let table = run(py, Task::Mend, sessions, &TaskOptions::from_dict(options)?)?;
    if is_one { table.one(py, as_messages) } else { Ok(Bound::new(py, table)?.into_any()) }
}

/// What fills sessions: a table with one row a session.
///
/// Columns: row (uint64); error, why the row is no session, and then nothing else is told; format; model, the last one that
/// spoke (string); and, all uint64:
///
/// - bytes, lines, entries, calls, results, image_count: how much there is;
/// - context_tokens: what the model is sent next, estimated where no provider has counted it;
/// - all bytes by what becomes of them: context_bytes, compacted_bytes (before the last compaction), off_branch_bytes (on
///   abandoned branches), unsent_bytes (never sent), no_entry_bytes (line breaks, damage);
/// - all bytes by what they are: results_bytes, calls_bytes, assistant_bytes, thinking_bytes, user_bytes, notes_bytes (of the
///   agent to itself), images_bytes, side_copies_bytes (texts stored again for display), envelope_bytes (ids, times),
///   bookkeeping_bytes (never sent).
///
/// >>> import session_tailor
/// >>> (weight,) = session_tailor.weigh([{"role": "user", "content": "list"}, {"role": "assistant", "content": "ok"}]).to_pylist()
/// >>> weight["format"], weight["entries"], weight["bytes"] == weight["context_bytes"] + weight["no_entry_bytes"]
/// ('openai-chat', 2, True)
#[pyfunction]
#[pyo3(signature = (sessions, /, **options))]
fn weigh(py: Python<'_>, sessions: Input, options: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
    run(py, Task::Weigh, sessions, &TaskOptions::from_dict(options)?)
}

/// What is in context, in chunks that a summariser can take: a table with one row a chunk.
///
/// Columns: row, chunk (from 1), line (of its first message), messages, chars, tokens (uint64), text, error (string). Calls
/// and their results are never parted; tokens are estimated (four characters each). The limits are those of `tailor chunk`:
/// max_tokens (40 % of window_tokens), max_chars, summary_chars_max, budget_tokens.
///
/// >>> import session_tailor
/// >>> messages = [{"role": "user", "content": "list"}, {"role": "assistant", "content": "a.txt"}]
/// >>> for chunk in session_tailor.chunk(messages, max_tokens=8000).to_pylist():
/// ...     print(chunk["chunk"], chunk["messages"], repr(chunk["text"]))
/// 1 2 '[user]\nlist\n\n[assistant]\na.txt\n\n'
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
    let options = TaskOptions::from_dict(options)?;
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
/// >>> import pyarrow as pa, session_tailor
/// >>> print(session_tailor.explain("P2").splitlines()[0])
/// P2 result-without-call
/// >>> error = "prompt is too long: 201234 tokens > 200000 maximum"
/// >>> [row["known"] for row in session_tailor.explain(pa.array([error, "no idea"])).to_pylist()]
/// [True, False]
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
    let table =
        run(py, Task::Explain, Input::arrow(what.as_borrowed())??, &TaskOptions::from_dict(options)?)?;
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
