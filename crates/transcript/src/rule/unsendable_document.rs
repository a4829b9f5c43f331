//! S20: documents that the API refuses.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::model::entry::{ContentIssue, ContentIssueKind};
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::session::Session;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use spans::json::{self, Value, ValueKind as Json};
use spans::marker;
use spans::source::{Fault, Span, read_span};

/// The longest request that Anthropic accepts.
const BYTES_MAX: u64 = 32 << 20;
/// The most pages in a request: with a window of 200,000 tokens, and with a larger one.
const PAGES_MAX: usize = 100;
const PAGES_MAX_LARGE: usize = 600;
/// How many bytes of compressed objects are read in a document, and how far its header may be from its start.
const UNPACKED_BYTES_MAX: usize = 16 << 20;
const HEAD_BYTES_MAX: usize = 1 << 10;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S20",
        name: "unsendable-document",
        help: Help {
            what: "A PDF in context has more pages or bytes than Anthropic takes, alone or with those after it, or is no PDF.",
            why: "\"A maximum of 100 PDF pages may be provided\", \"The PDF specified was not valid\": every request is \
                  refused from then on, also that of a compaction.",
            fix: "With --allow S20 a line of text replaces the document; the data is in the vault. If several are too \
                  long together, the newest stay.",
            source: "claude-code #5707, #6197, #6231; Anthropic: 100 pages, 600 with a window of a million tokens, 32 MB",
        },
        groups: &[Group::Images],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.server_tools { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let is_document =
        |issue: &&ContentIssue| issue.kind == ContentIssueKind::Document && session.in_context(issue.entry);
    let mut found = Vec::new();
    // The newest documents are counted first, because the user is asking about them.
    let mut sum = Size::default();
    for document in session.transcript.issues().iter().rev().filter(is_document) {
        let Some(block) = json::parse(session.source, document.block)? else { continue };
        let source = block.get("source").filter(|source| {
            source.get("type").is_some_and(|kind| kind.is("base64"))
                && source.get("media_type").is_some_and(|kind| kind.is("application/pdf"))
        });
        let data = source.and_then(|source| source.get("data"));
        let Some(data) = data.filter(|data| data.kind() == Json::String) else { continue };
        let told = match size(session, data)? {
            Err(why) => Some((Severity::Error, why.to_string())),
            Ok(own) => own.refused("document of").or_else(|| {
                let all = sum.and(&own);
                let told = all.refused("this document and later ones of");
                sum = if told.is_some() { sum } else { all };
                told
            }),
        };
        if let Some((severity, why)) = told {
            found.push(replaced(session, document, data.inner(), severity, why)?);
        }
    }
    found.into_iter().rev().for_each(|finding| out.push(finding));
    Ok(())
}

/// A finding that replaces a document by a line of text.
fn replaced(
    session: &Session<'_>,
    document: &ContentIssue,
    data: Span,
    severity: Severity,
    why: String,
) -> Result<Finding, Fault> {
    let hash = blake3::hash(&read_span(session.source, data)?);
    let folder = session.policy.spill.as_ref();
    let text = marker::text(data.len(), data.len(), &marker::TextId::new(&hash), folder, "PDF document");
    let with = format!(r#"{{"type":"text","text":"{text}"}}"#).into_bytes();
    let ops = vec![Op::Keep(data), Op::Replace { at: document.block, with }];
    let fix = Fix::guarded(Guard::Documents, ops);
    Ok(Finding { fix, ..about(&RULE, session, document.entry, severity, why) })
}

/// What counts towards the limits of a request.
#[derive(Clone, Copy, Default)]
struct Size {
    bytes: u64,
    pages: usize,
}

impl Size {
    fn and(&self, other: &Self) -> Self {
        Self { bytes: self.bytes + other.bytes, pages: self.pages + other.pages }
    }

    /// The severity and the reason, if the API refuses this much.
    fn refused(&self, what: &str) -> Option<(Severity, String)> {
        let Self { bytes, pages } = *self;
        if bytes > BYTES_MAX {
            return Some((Severity::Error, format!("{what} {bytes} bytes (limit {BYTES_MAX})")));
        }
        let severity = if pages > PAGES_MAX_LARGE { Severity::Error } else { Severity::Warning };
        let why =
            || format!("{what} {pages} pages (limit {PAGES_MAX}, with a large window {PAGES_MAX_LARGE})");
        (pages > PAGES_MAX).then(|| (severity, why()))
    }
}

/// The size of a document, or why it is not one.
fn size(session: &Session<'_>, data: Value<'_>) -> Result<Result<Size, &'static str>, Fault> {
    let bytes = data.inner().len();
    if bytes > BYTES_MAX {
        return Ok(Ok(Size { bytes, pages: 0 }));
    }
    // Base64 of `%PDF-`.
    if !data.prefix().starts_with(b"JVBERi") {
        return Ok(Err("document labelled PDF that is not a PDF"));
    }
    let Ok(file) = STANDARD.decode(read_span(session.source, data.inner())?) else {
        return Ok(Err("document whose data is not base64"));
    };
    Ok(Ok(Size { bytes, pages: pages(&file) + packed_pages(&file) }))
}

/// How many pages are among the uncompressed objects.
fn pages(objects: &[u8]) -> usize {
    let types = memmem::find_iter(objects, b"/Type").filter(|at| {
        let rest = objects[at + 5..].trim_ascii_start();
        rest.starts_with(b"/Page") && !rest.starts_with(b"/Pages")
    });
    types.count()
}

/// How many pages are among compressed objects, which exist since PDF 1.5.
fn packed_pages(file: &[u8]) -> usize {
    let (mut count, mut room) = (0, UNPACKED_BYTES_MAX);
    for at in memmem::find_iter(file, b"/ObjStm") {
        let head = &file[at..file.len().min(at + HEAD_BYTES_MAX)];
        let Some(begin) = memmem::find(head, b"stream") else { continue };
        let packed = file[at + begin + b"stream".len()..].trim_ascii_start();
        // Objects are counted as far as they fit into the buffer and are complete.
        let objects =
            decompress_to_vec_zlib_with_limit(packed, room).unwrap_or_else(|stopped| stopped.output);
        room -= objects.len().min(room);
        count += pages(&objects);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec_zlib;

    #[test]
    fn pages_among_compressed_objects_count() {
        let objects = b"1 0 2 40 <</Type /Page /Parent 9 0 R>> <</Type/Page>> <</Type /Pages /Count 2>>";
        let packed = compress_to_vec_zlib(objects, 6);
        let stream = |data: &[u8]| {
            let head = format!(
                "7 0 obj <</Type /ObjStm /N 3 /First 8 /Filter /FlateDecode /Length {}>> stream\r\n",
                data.len()
            );
            [head.as_bytes(), data, b"\nendstream endobj "].concat()
        };
        let file =
            [b"%PDF-1.5 1 0 obj <</Type /Page>> ".as_slice(), &stream(&packed), &stream(&packed)].concat();
        assert_eq!((pages(&file), packed_pages(&file)), (1, 4));
        // Truncated, of another kind, and without a beginning.
        assert_eq!(packed_pages(&stream(&packed[..packed.len() / 2])), 0);
        assert_eq!(packed_pages(&stream(b"not deflated")), 0);
        assert_eq!(packed_pages(b"/ObjStm"), 0);
    }

    #[test]
    fn what_unpacks_to_much_is_not_unpacked_whole() {
        let much = b"<</Type /Page>> ".repeat(UNPACKED_BYTES_MAX / 8);
        let file = [b"/ObjStm stream\n".as_slice(), &compress_to_vec_zlib(&much, 6)].concat();
        let count = packed_pages(&file);
        assert!(count > PAGES_MAX && count <= UNPACKED_BYTES_MAX / 16, "{count}");
    }
}
