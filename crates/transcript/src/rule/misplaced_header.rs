//! B10: the header is not the first line, or there is none.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use crate::format::{Format, Header};
use crate::model::entry::Kind;
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B10",
        name: "misplaced-header",
        help: Help {
            what: "The file does not begin with its header, or has none.",
            why: "pi reads the header from the first line alone: without it there is no session, and resuming has wiped the whole \
                  file. Imports defer such files.",
            fix: "A header that stands further down moves to the front. A lost one is only reported: its id is part of the file's \
                  name, which an index may hold.",
            source: "OpenClaw #89037, #153502; codex #24425",
        },
        stage: Stage::Lines,
        groups: &[Group::Bytes],
        model_sees: false,
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover,
    check,
};

fn cover(format: &Format) -> Cover {
    match format.header {
        Header::None => Cover::Never,
        Header::First if format.counted.is_none() => Cover::Fixed,
        Header::First | Header::Decides => Cover::Reported,
    }
}

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let entries = &session.transcript.entries;
    if entries.is_empty() || entries[0].kind == Kind::Header {
        return Ok(());
    }
    let header = (0..).zip(entries).find(|(_, entry)| entry.kind == Kind::Header);
    let (fix, message) = match header {
        Some(_) if session.format.header == Header::Decides => {
            (Fix::NONE, "the header is not the first line")
        }
        Some((header, _)) => (Fix::safe(vec![Op::ToFront(header)]), "the header is not the first line"),
        None => (Fix::NONE, "the header is lost"),
    };
    let at = header.map_or(0, |(header, _)| header);
    out.push(Finding { fix, ..about(&RULE, session, at, Severity::Error, message.to_string()) });
    Ok(())
}
