//! `tailor diff`: whether two copies of a session hold the same records, such as a file from before a move to a database and
//! the session there. Says nothing of what is in them.

use super::{failed, output_closed};
use crate::amount::plural;
use crate::args::Diff;
use crate::place::shown;
use crate::say::is_quiet;
use crate::sessions::describe_error;
use crate::status::Status;
use crate::terminal::plain;
use keeper::Stop;
use serde::Serialize;
use spans::json::{self, Value};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use transcript::{Fault, Source, Span};

/// Of longer records only the bytes are compared, and not what they are called.
const NAMED_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn run(asked: &Diff) -> Status {
    let read = |path: &Path| {
        keeper::read(path, None, records).map_err(|stop| match stop {
            Stop::Failed(error) => describe_error(path, &error),
            reason => format!("{}: could not compare it: {reason}", path.display()),
        })
    };
    let (old, new) = match read(&asked.old).and_then(|old| Ok((old, read(&asked.new)?))) {
        Ok(both) => both,
        Err(error) => return failed(&error),
    };
    // What is in both needs no name.
    let alone = [missing(&old, &new), missing(&new, &old)];
    let named = |path: &Path, alone: Vec<Record>| {
        let name = |source: &dyn Source| alone.iter().map(|record| record.named(source)).collect();
        keeper::read(path, None, name)
    };
    let [of_old, of_new] = alone;
    let both = named(&asked.old, of_old).and_then(|of_old| Ok([of_old, named(&asked.new, of_new)?]));
    let [of_old, of_new]: [Vec<Named>; 2] = match both {
        Ok(both) => both,
        Err(error) => return failed(&error),
    };
    let found = Differences::new([old.len(), new.len()], of_old, of_new);
    match found.print(asked) {
        Ok(()) if found.is_none() => Status::Clean,
        Ok(()) => Status::Findings,
        Err(error) => output_closed("standard output", &error),
    }
}

/// A line that is not empty.
#[derive(Clone, Copy)]
struct Record {
    line: u64,
    span: Span,
    hash: blake3::Hash,
}

fn records(source: &dyn Source) -> Result<Vec<Record>, Fault> {
    let (mut found, mut at, mut start, mut line) = (Vec::new(), 0, 0, 1);
    let mut hasher = blake3::Hasher::new();
    let mut end = |hasher: &mut blake3::Hasher, start: u64, at: u64, line: u64| {
        if at > start {
            found.push(Record { line, span: Span::new(start, at), hash: hasher.finalize() });
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

/// The records of one that the other does not hold, or not as often.
fn missing(one: &[Record], other: &[Record]) -> Vec<Record> {
    let mut there: HashMap<blake3::Hash, u64> = HashMap::new();
    for record in other {
        *there.entry(record.hash).or_default() += 1;
    }
    let is_missing = |record: &&Record| match there.get_mut(&record.hash) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    one.iter().filter(is_missing).copied().collect()
}

/// A record by which it can be found.
#[derive(Serialize)]
struct Named {
    line: u64,
    bytes: u64,
    #[serde(rename = "kind", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
}

impl Record {
    fn named(&self, source: &dyn Source) -> Result<Named, Fault> {
        let Self { line, span, .. } = *self;
        let doc = if span.len() > NAMED_BYTES_MAX { None } else { json::parse(source, span)? };
        let text = |key: &str| {
            let text = doc.as_ref()?.get(key).and_then(Value::text)?;
            Some(String::from_utf8_lossy(&text).into_owned())
        };
        let entry = text("id").or_else(|| text("uuid"));
        let kind = text("type").or_else(|| text("table")).or_else(|| text("role"));
        Ok(Named { line, bytes: span.len(), kind, entry })
    }
}

impl Named {
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
    only_old: Vec<Named>,
    only_new: Vec<Named>,
    /// The same entry with other bytes.
    changed: Vec<[Named; 2]>,
}

/// One line of `--json`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum JsonLine<'a> {
    OnlyOld(&'a Named),
    OnlyNew(&'a Named),
    Changed {
        old: &'a Named,
        new: &'a Named,
    },
    DiffSummary {
        old_records_total: usize,
        new_records_total: usize,
        only_old_total: usize,
        only_new_total: usize,
        changed_total: usize,
    },
}

impl Differences {
    fn new(records: [usize; 2], old: Vec<Named>, new: Vec<Named>) -> Self {
        let key = |named: &Named| Some((named.entry.clone()?, named.kind.clone()));
        let mut by_id: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (at, other) in new.iter().enumerate() {
            if let Some(key) = key(other) {
                by_id.entry(key).or_default().push_back(at);
            }
        }
        let mut new: Vec<Option<Named>> = new.into_iter().map(Some).collect();
        let (mut only_old, mut changed) = (Vec::new(), Vec::new());
        for one in old {
            let same = key(&one).and_then(|key| new[by_id.get_mut(&key)?.pop_front()?].take());
            match same {
                Some(other) => changed.push([one, other]),
                None => only_old.push(one),
            }
        }
        Self { records, only_old, only_new: new.into_iter().flatten().collect(), changed }
    }

    /// Whether there is none. Headers name a version, which a move changes.
    fn is_none(&self) -> bool {
        let is_header = |[one, _]: &[Named; 2]| one.kind.as_deref() == Some("session");
        self.only_old.is_empty() && self.only_new.is_empty() && self.changed.iter().all(is_header)
    }

    fn print(&self, asked: &Diff) -> io::Result<()> {
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
        let summary = JsonLine::DiffSummary {
            old_records_total,
            new_records_total,
            only_old_total: only_old.len(),
            only_new_total: only_new.len(),
            changed_total: self.changed.len(),
        };
        let changed = self.changed.iter().map(|[old, new]| JsonLine::Changed { old, new });
        let all = only_old.map(JsonLine::OnlyOld).chain(only_new.map(JsonLine::OnlyNew)).chain(changed);
        for line in all.chain([summary]) {
            writeln!(out, "{}", crate::terminal::json(&serde_json::to_string(&line)?))?;
        }
        Ok(())
    }

    fn text(&self, asked: &Diff, out: &mut impl Write) -> io::Result<()> {
        let (old, new) = (plain(&shown(&asked.old)), plain(&shown(&asked.new)));
        for (name, alone) in [(&old, &self.only_old), (&new, &self.only_new)] {
            for record in alone {
                writeln!(out, "only in {name}: {}", record.shown())?;
            }
        }
        for [one, other] in &self.changed {
            writeln!(out, "differs: {} of {old}, line {} of {new}", one.shown(), other.line)?;
        }
        if is_quiet() {
            return Ok(());
        }
        let records = |count: usize| plural(count as u64, "record");
        let same = self.records[0] - self.only_old.len() - self.changed.len();
        writeln!(
            out,
            "{} in both; {} only in {old}, {} only in {new}, {} with the same id but other content",
            records(same),
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
        let (one, other) = (records(&old.as_bytes()).unwrap(), records(&new.as_bytes()).unwrap());
        let named = |text: &str, alone: Vec<Record>| -> Vec<Named> {
            alone.iter().map(|record| record.named(&text.as_bytes()).unwrap()).collect()
        };
        let (of_old, of_new) = (named(old, missing(&one, &other)), named(new, missing(&other, &one)));
        let found = Differences::new([one.len(), other.len()], of_old, of_new);
        let lines = |all: &[Named]| all.iter().map(|record| record.line).collect();
        let changed = found.changed.iter().map(|[one, other]| [one.line, other.line]).collect();
        ([lines(&found.only_old), lines(&found.only_new)], changed, found.is_none())
    }

    #[test]
    fn what_either_lacks_is_told_by_its_line() {
        let old = "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n{\"id\":\"c\",\"x\":1}\ntorn";
        assert_eq!(compared(old, old), ([vec![], vec![]], vec![], true));
        let moved = old.replace("version\":3", "version\":4");
        assert_eq!(compared(old, &moved), ([vec![], vec![]], vec![[1, 1]], true));
        let lacks = "{\"id\":\"a\"}\n{\"id\":\"c\",\"x\":2}\n{\"id\":\"d\"}\n{\"id\":\"a\"}\n";
        assert_eq!(compared(old, lacks), ([vec![1, 4, 6], vec![3, 4]], vec![[5, 2]], false));
        assert_eq!(compared("", ""), ([vec![], vec![]], vec![], true));
    }
}
