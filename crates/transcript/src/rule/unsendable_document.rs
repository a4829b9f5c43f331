//! S20: documents that make the request be refused.

use super::base::{Cover, Found, Group, Help, Rule, RuleInfo, about};
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Finding, Fix, Guard, Op, Severity};
use crate::session::Session;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use spans::json::{self, Kind as Json, Value};
use spans::marker;
use spans::source::{Fault, read_span};

/// The longest request that Anthropic takes.
const BYTES_MAX: u64 = 32 << 20;
/// The most pages of a request: with a window of 200,000 tokens, and with a larger one.
const PAGES_MAX: usize = 100;
const PAGES_MAX_LARGE: usize = 600;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S20",
        name: "unsendable-document",
        help: Help {
            what: "A PDF in context has more pages or bytes than Anthropic takes, or is no PDF.",
            why: "\"A maximum of 100 PDF pages may be provided\", \"The PDF specified was not valid\": every request is \
                  refused from then on, also that of a compaction.",
            fix: "With --allow S20 a line of text stands in the place of the document; the data is in the vault. Pages that are \
                  inside compressed objects are not counted, so a long document may be missed.",
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

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    let documents =
        session.transcript.issues().iter().filter(|issue| issue.kind == ContentIssueKind::Document);
    for document in documents.filter(|issue| session.in_context(issue.entry)) {
        let Some(block) = json::parse(session.source, document.block)? else { continue };
        let source = block.get("source").filter(|source| {
            source.get("type").is_some_and(|kind| kind.is("base64"))
                && source.get("media_type").is_some_and(|kind| kind.is("application/pdf"))
        });
        let Some(data) =
            source.and_then(|source| source.get("data")).filter(|data| data.kind() == Json::String)
        else {
            continue;
        };
        let Some((severity, why)) = refused(session, data)? else { continue };
        let data = data.inner();
        let hash = blake3::hash(&read_span(session.source, data)?);
        let folder = session.policy.spill.as_ref();
        let text = marker::text(data.len(), data.len(), &marker::Id::new(&hash), folder, "PDF document");
        let with = format!(r#"{{"type":"text","text":"{text}"}}"#).into_bytes();
        let ops = vec![Op::Keep(data), Op::Replace { at: document.block, with }];
        let fix = Fix::guarded(Guard::Documents, ops);
        out.push(Finding { fix, ..about(&RULE, session, document.entry, severity, why) });
    }
    Ok(())
}

/// Why a document is refused, if it is.
fn refused(session: &Session<'_>, data: Value<'_>) -> Result<Option<(Severity, String)>, Fault> {
    let bytes = data.inner().len();
    if bytes > BYTES_MAX {
        return Ok(Some((Severity::Error, format!("document of {bytes} bytes (limit {BYTES_MAX})"))));
    }
    // It begins with `%PDF-`.
    if !data.prefix().starts_with(b"JVBERi") {
        return Ok(Some((Severity::Error, "document that is labelled PDF and is none".into())));
    }
    let Ok(file) = STANDARD.decode(read_span(session.source, data.inner())?) else {
        return Ok(Some((Severity::Error, "document whose data is not base64".into())));
    };
    let pages = pages(&file);
    let severity = if pages > PAGES_MAX_LARGE { Severity::Error } else { Severity::Warning };
    let why =
        || format!("document of {pages} pages (limit {PAGES_MAX}, with a large window {PAGES_MAX_LARGE})");
    Ok((pages > PAGES_MAX).then(|| (severity, why())))
}

/// How many pages there are that can be seen without taking anything apart.
fn pages(file: &[u8]) -> usize {
    let types = memmem::find_iter(file, b"/Type").filter(|at| {
        let rest = file[at + 5..].trim_ascii_start();
        rest.starts_with(b"/Page") && !rest.starts_with(b"/Pages")
    });
    types.count()
}
