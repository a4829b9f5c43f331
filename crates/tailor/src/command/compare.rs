//! `tailor diff`: whether two copies of a session hold the same records, such as a file from before a move to a database and
//! the session there. Says nothing of what is in them.

use super::{CommandResult, output_closed};
use crate::amount::plural;
use crate::args::DiffArgs;
use crate::place::shown;
use crate::say::is_quiet;
use crate::sessions::describe_error;
use crate::status::ExitStatus;
use crate::terminal::plain;
use keeper::Stop;
use serde::Serialize;
use spans::json::{self, Value};
use spans::source::read_span;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use transcript::{Fault, Source, Span};

/// Of longer records only the bytes are compared, and not what they are called.
const NAMED_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn run(asked: &DiffArgs) -> CommandResult {
    // Each is read once, and both are there until all is said: what is at their paths may change meanwhile.
    let mut found = None;
    let compare = |old: &dyn Source| {
        let compare = |new: &dyn Source| Differences::between(old, new);
        found = Some(keeper::read(&asked.new, None, compare).map_err(|stop| could_not(&asked.new, stop)));
        Ok::<_, Fault>(())
    };
    let read = keeper::read(&asked.old, None, compare).map_err(|stop| could_not(&asked.old, stop));
    let found = read.and_then(|()| found.transpose())?;
    let found = found.flatten().ok_or("a copy changed while it was read; run it again")?;
    found.print(asked).map_err(|error| output_closed("standard output", &error))?;
    Ok(if found.is_none() { ExitStatus::Clean } else { ExitStatus::Findings })
}

fn could_not(path: &Path, stop: Stop) -> String {
    match stop {
        Stop::Failed(error) => describe_error(path, &error),
        reason => format!("{}: could not compare it: {reason}", path.display()),
    }
}

/// A line that is not empty.
#[derive(Clone, Copy)]
struct ComparedRecord {
    line: u64,
    span: Span,
    hash: blake3::Hash,
}

fn records(source: &dyn Source) -> Result<Vec<ComparedRecord>, Fault> {
    let (mut found, mut at, mut start, mut line) = (Vec::new(), 0, 0, 1);
    let mut hasher = blake3::Hasher::new();
    let mut end = |hasher: &mut blake3::Hasher, start: u64, at: u64, line: u64| {
        if at > start {
            found.push(ComparedRecord { line, span: Span::new(start, at), hash: hasher.finalize() });
        }
        hasher.reset();
    };
    source.pieces(Span::new(0, source.len()), &mut |bytes| {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n");
            hasher.update(text.unwrap_or(part));
            at += part.len() as u64;
            if text.is_some() {
                end(&mut hasher, start, at - 1, line);
                (start, line) = (at, line + 1);
            }
        }
        true
    })?;
    end(&mut hasher, start, at, line);
    Ok(found)
}

/// How the records of two copies belong together, judged by their bytes.
struct Alignment {
    only_old: Vec<ComparedRecord>,
    only_new: Vec<ComparedRecord>,
    /// Records that both hold, in another order: as few as possible.
    moved: Vec<[ComparedRecord; 2]>,
}

impl Alignment {
    fn between(old: &[ComparedRecord], new: &[ComparedRecord]) -> Self {
        let mut there: HashMap<blake3::Hash, VecDeque<usize>> = HashMap::new();
        for (at, record) in new.iter().enumerate() {
            there.entry(record.hash).or_default().push_back(at);
        }
        let (mut only_old, mut pairs) = (Vec::new(), Vec::new());
        for record in old {
            match there.get_mut(&record.hash).and_then(VecDeque::pop_front) {
                Some(at) => pairs.push((*record, at)),
                None => only_old.push(*record),
            }
        }
        let mut left: Vec<usize> = there.into_values().flatten().collect();
        left.sort_unstable();
        let stays = ascending(&pairs.iter().map(|(_, at)| *at).collect::<Vec<_>>());
        let moved = pairs.iter().zip(stays).filter(|(_, stays)| !stays);
        Self {
            only_old,
            only_new: left.into_iter().map(|at| new[at]).collect(),
            moved: moved.map(|((record, at), _)| [*record, new[*at]]).collect(),
        }
    }
}

/// Which of some different numbers belong to the longest sequence in which they ascend.
fn ascending(numbers: &[usize]) -> Vec<bool> {
    // For each length, where the sequence of that length ends that ends with the smallest number.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (at, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length < ends.len() {
            ends[length] = at;
        } else {
            ends.push(at);
        }
    }
    let mut is_in = vec![false; numbers.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        is_in[at] = true;
        next = before[at];
    }
    is_in
}

/// A record by which it can be found.
#[derive(Serialize)]
struct NamedRecord {
    line: u64,
    bytes: u64,
    #[serde(rename = "kind", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// Of a header, what is in it but for the version of the format.
    #[serde(skip)]
    unversioned: Option<Vec<u8>>,
}

impl ComparedRecord {
    /// `None` if it is not the record any more.
    fn named(&self, source: &dyn Source) -> Result<Option<NamedRecord>, Fault> {
        let Self { line, span, hash } = *self;
        let mut hasher = blake3::Hasher::new();
        source.pieces(span, &mut |bytes| {
            hasher.update(bytes);
            true
        })?;
        if hasher.finalize() != hash {
            return Ok(None);
        }
        let doc = if span.len() > NAMED_BYTES_MAX { None } else { json::parse(source, span)? };
        let text = |key: &str| {
            let text = doc.as_ref()?.get(key).and_then(Value::text)?;
            Some(String::from_utf8_lossy(&text).into_owned())
        };
        let entry = text("id").or_else(|| text("uuid"));
        let version = doc.as_ref().and_then(|doc| doc.get("version")).map(Value::span);
        let unversioned = match version.filter(|_| text("type").as_deref() == Some("session")) {
            Some(version) => {
                let mut rest = read_span(source, Span::new(span.start, version.start))?;
                rest.extend(read_span(source, Span::new(version.end, span.end))?);
                Some(rest)
            }
            None => None,
        };
        let kind = text("type").or_else(|| text("table")).or_else(|| text("role"));
        Ok(Some(NamedRecord { line, bytes: span.len(), kind, entry, unversioned }))
    }
}

impl NamedRecord {
    fn shown(&self) -> String {
        let parts = [self.kind.as_deref(), self.entry.as_deref()];
        let name: Vec<String> = parts.into_iter().flatten().map(plain).collect();
        let name = if name.is_empty() { plural(self.bytes, "byte") } else { name.join(" ") };
        format!("line {} ({name})", self.line)
    }
}

/// What is not the same.
struct Differences {
    records: [usize; 2],
    only_old: Vec<NamedRecord>,
    only_new: Vec<NamedRecord>,
    /// Entries with one id and other bytes.
    changed: Vec<[NamedRecord; 2]>,
    /// Records that both have, at another place in the order.
    moved: Vec<[NamedRecord; 2]>,
}

/// One line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum CompareLine<'a> {
    OnlyOld(&'a NamedRecord),
    OnlyNew(&'a NamedRecord),
    Changed {
        old: &'a NamedRecord,
        new: &'a NamedRecord,
    },
    Moved {
        old: &'a NamedRecord,
        new: &'a NamedRecord,
    },
    DiffSummary {
        old_records_total: usize,
        new_records_total: usize,
        only_old_total: usize,
        only_new_total: usize,
        changed_total: usize,
        moved_total: usize,
    },
}

impl Differences {
    /// `None` if a copy is not what it was when it was read first.
    fn between(old: &dyn Source, new: &dyn Source) -> Result<Option<Self>, Fault> {
        let (of_old, of_new) = (records(old)?, records(new)?);
        let Alignment { only_old, only_new, moved } = Alignment::between(&of_old, &of_new);
        let named =
            |source: &dyn Source, records: Vec<ComparedRecord>| -> Result<Option<Vec<NamedRecord>>, Fault> {
                records.iter().map(|record| record.named(source)).collect()
            };
        let (moved_old, moved_new) = moved.into_iter().map(|[one, other]| (one, other)).unzip();
        let all =
            [named(old, only_old)?, named(new, only_new)?, named(old, moved_old)?, named(new, moved_new)?];
        let [Some(only_old), Some(only_new), Some(moved_old), Some(moved_new)] = all else { return Ok(None) };
        let moved = moved_old.into_iter().zip(moved_new).map(|(one, other)| [one, other]).collect();
        Ok(Some(Self::new([of_old.len(), of_new.len()], only_old, only_new, moved)))
    }

    fn new(
        records: [usize; 2],
        old: Vec<NamedRecord>,
        new: Vec<NamedRecord>,
        moved: Vec<[NamedRecord; 2]>,
    ) -> Self {
        let key = |named: &NamedRecord| Some((named.entry.clone()?, named.kind.clone()));
        let mut by_id: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (at, other) in new.iter().enumerate() {
            if let Some(key) = key(other) {
                by_id.entry(key).or_default().push_back(at);
            }
        }
        let mut new: Vec<Option<NamedRecord>> = new.into_iter().map(Some).collect();
        let (mut only_old, mut changed) = (Vec::new(), Vec::new());
        for one in old {
            let same = key(&one).and_then(|key| new[by_id.get_mut(&key)?.pop_front()?].take());
            match same {
                Some(other) => changed.push([one, other]),
                None => only_old.push(one),
            }
        }
        Self { records, only_old, only_new: new.into_iter().flatten().collect(), changed, moved }
    }

    /// Whether there is none. A move to a database may write a header of another version.
    fn is_none(&self) -> bool {
        let is_version = |[one, other]: &[NamedRecord; 2]| {
            one.unversioned.is_some() && one.unversioned == other.unversioned
        };
        self.only_old.is_empty()
            && self.only_new.is_empty()
            && self.moved.is_empty()
            && self.changed.iter().all(is_version)
    }

    fn print(&self, asked: &DiffArgs) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        if asked.json.is_json() {
            self.json(&mut out)?;
        } else {
            self.text(asked, &mut out)?;
        }
        out.flush()
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let [old_records_total, new_records_total] = self.records;
        let (only_old, only_new) = (self.only_old.iter(), self.only_new.iter());
        let summary = CompareLine::DiffSummary {
            old_records_total,
            new_records_total,
            only_old_total: only_old.len(),
            only_new_total: only_new.len(),
            changed_total: self.changed.len(),
            moved_total: self.moved.len(),
        };
        let changed = self.changed.iter().map(|[old, new]| CompareLine::Changed { old, new });
        let moved = self.moved.iter().map(|[old, new]| CompareLine::Moved { old, new });
        let all = only_old.map(CompareLine::OnlyOld).chain(only_new.map(CompareLine::OnlyNew));
        let all = all.chain(changed).chain(moved);
        for line in all.chain([summary]) {
            writeln!(out, "{}", crate::terminal::json(&serde_json::to_string(&line)?))?;
        }
        Ok(())
    }

    fn text(&self, asked: &DiffArgs, out: &mut impl Write) -> io::Result<()> {
        let (old, new) = (plain(&shown(&asked.old)), plain(&shown(&asked.new)));
        for (name, alone) in [(&old, &self.only_old), (&new, &self.only_new)] {
            for record in alone {
                writeln!(out, "only in {name}: {}", record.shown())?;
            }
        }
        for [one, other] in &self.changed {
            writeln!(out, "differs: {} of {old}, line {} of {new}", one.shown(), other.line)?;
        }
        for [one, other] in &self.moved {
            writeln!(out, "in another order: {} of {old} is line {} of {new}", one.shown(), other.line)?;
        }
        if is_quiet() {
            return Ok(());
        }
        let records = |count: usize| plural(count as u64, "record");
        let same = self.records[0] - self.only_old.len() - self.changed.len();
        writeln!(
            out,
            "{} in both, {} of them in another order; {} only in {old}, {} only in {new}, {} with the same id but other content",
            records(same),
            self.moved.len(),
            self.only_old.len(),
            self.only_new.len(),
            self.changed.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(old: &str, new: &str) -> ([Vec<u64>; 2], Vec<[u64; 2]>, bool) {
        let (found, moved) = moved(old, new);
        assert_eq!(moved, Vec::<[u64; 2]>::new());
        found
    }

    /// The lines that only one has, those that differ, whether that is nothing; and those in another order.
    #[expect(clippy::type_complexity, reason = "lines")]
    fn moved(old: &str, new: &str) -> (([Vec<u64>; 2], Vec<[u64; 2]>, bool), Vec<[u64; 2]>) {
        let found = Differences::between(&old.as_bytes(), &new.as_bytes()).unwrap().unwrap();
        let lines = |all: &[NamedRecord]| all.iter().map(|record| record.line).collect();
        let pairs =
            |all: &[[NamedRecord; 2]]| all.iter().map(|[one, other]| [one.line, other.line]).collect();
        let alone = [lines(&found.only_old), lines(&found.only_new)];
        ((alone, pairs(&found.changed), found.is_none()), pairs(&found.moved))
    }

    #[test]
    fn what_either_lacks_is_told_by_its_line() {
        let old = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n{\"id\":\"c\",\"x\":1}\ntorn";
        assert_eq!(compared(old, old), ([vec![], vec![]], vec![], true));
        let lacks = "{\"id\":\"a\"}\n{\"id\":\"c\",\"x\":2}\n{\"id\":\"d\"}\n{\"id\":\"a\"}\n";
        assert_eq!(compared(old, lacks), ([vec![1, 4, 6], vec![3, 4]], vec![[5, 2]], false));
        assert_eq!(compared("", ""), ([vec![], vec![]], vec![], true));
    }

    #[test]
    fn only_the_version_of_a_header_may_differ() {
        let old = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#;
        let other = |was: &str, is: &str| compared(old, &old.replace(was, is));
        let differs = |is_none| ([vec![], vec![]], vec![[1, 1]], is_none);
        assert_eq!(other("version\":3", "version\":4"), differs(true));
        assert_eq!(other("version\":3", "version\":\"4.1\""), differs(true));
        assert_eq!(other("/w", "/v"), differs(false));
        assert_eq!(other(",\"cwd\":\"/w\"", ""), differs(false));
        assert_eq!(other("\"version\":3,", ""), differs(false));
        assert_eq!(other("session", "message").1, Vec::<[u64; 2]>::new());
    }

    #[test]
    fn another_order_is_a_difference() {
        let text = |order: &[u32]| {
            order.iter().map(|n| format!("{{\"id\":\"e{n}\"}}\n")).collect::<Vec<_>>().concat()
        };
        let old = text(&[1, 2, 3, 4, 5]);
        let found = |order: &[u32]| moved(&old, &text(order));
        let none = || [vec![], vec![]];
        assert_eq!(found(&[1, 2, 3, 4, 5]), ((none(), vec![], true), vec![]));
        assert_eq!(found(&[5, 1, 2, 3, 4]), ((none(), vec![], false), vec![[5, 1]]));
        assert_eq!(found(&[1, 4, 2, 6, 5]).1, [[2, 3]]);
        // Which of two equal ones it is does not matter.
        let twice = text(&[1, 2, 1]);
        assert_eq!(moved(&twice, &twice), ((none(), vec![], true), vec![]));
    }

    /// A file that somebody overwrites between two reads.
    struct Overwritten(std::cell::Cell<usize>);

    impl Source for Overwritten {
        fn len(&self) -> u64 {
            11
        }

        fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
            let text = if self.0.replace(1) == 0 { b"{\"id\":\"a\"}\n" } else { b"{\"id\":\"b\"}\n" };
            let from = &text[usize::try_from(at).unwrap()..];
            let length = from.len().min(buffer.len());
            buffer[..length].copy_from_slice(&from[..length]);
            Ok(length)
        }
    }

    #[test]
    fn a_record_that_changes_while_it_is_read_gets_no_name() {
        let old = Overwritten(std::cell::Cell::new(0));
        assert!(Differences::between(&old, &"".as_bytes()).unwrap().is_none());
    }
}
