//! B8: line breaks and control characters inside the strings of a record.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about_damaged_line};
use crate::read::salvage::DamageCause;
use crate::session::Session;
use alloc::format;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "B8",
        name: "broken-record",
        help: Help {
            what: "A string holds raw line breaks or other control characters, so that its record is not JSON or spans several lines; or \
                   there are line breaks between its parts.",
            why: "JSON requires them to be escaped. Agents skip each of the lines, so the record is lost, and often a tool result with it.",
            fix: "In a string they are written as escapes, elsewhere they are taken out; the text is the same, and lines that were \
                  one record become one again.",
            source: "copilot-cli #2649",
        },
        stage: Stage::Bytes,
        groups: &[Group::Bytes],
        entry_decides: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Fixed,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let causes = [DamageCause::Control, DamageCause::Broken];
    for damaged in session
        .damaged_lines()?
        .iter()
        .filter(|damaged| causes.contains(&damaged.cause) && !damaged.is_torn())
    {
        let count = damaged.edits.len();
        let message = match damaged.cause {
            DamageCause::Broken => {
                format!("line breaks and other raw characters at {count} places inside a record")
            }
            _ => format!("raw control characters at {count} places inside a record"),
        };
        out.push(about_damaged_line(&RULE, damaged, message));
    }
    Ok(())
}
