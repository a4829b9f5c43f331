//! S10: a file that its agent cannot read.

use super::base::{Cover, Feature, FindingSink, Help, Repeats, Rule, RuleInfo, about_place};
use crate::model::finding::Severity;
use crate::session::Session;
use alloc::format;
use spans::source::Fault;

/// V8's longest string in characters (`0x1fffffe8`): programs on Node read a whole session into one string.
pub(crate) const WHOLE_BYTES_MAX: u64 = 536_870_888;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S10",
        name: "unreadable-size",
        help: Help {
            what: "The file is larger than its agent can read: the agent reads a whole session into one JavaScript string.",
            why: "\"RangeError: Invalid string length\", \"Cannot create a string longer than 0x1fffffe8 characters\", \"heap out \
                  of memory\".",
            fix: "None of its own: limits (S1, S2, S5) and `fix --only dead-weight` (S6 to S9, S18, S19) make the file smaller, and \
                  `scan` says by how much.",
            source: "claude-code #79196, #80379; OpenClaw #71555",
        },
        entry_decides: true,
        wakes: &[Feature::LongFile],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.in_one_string { Cover::Reported } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let bytes = session.transcript.bytes;
    if bytes > WHOLE_BYTES_MAX {
        let message = format!("a file of {bytes} bytes (a string of JavaScript ends at {WHOLE_BYTES_MAX})");
        out.push(about_place(&RULE, 1, Severity::Warning, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::WHOLE_BYTES_MAX;
    use crate::examine::holds::Holds;
    use crate::examine::survey::Survey;
    use crate::model::policy::{Depth, Policy};
    use crate::read::scan::scan;
    use crate::session::Session;

    #[test]
    fn only_what_is_longer_than_a_string_may_be_is_told() {
        let text = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n";
        let (source, policy) = (&&text[..], Policy::default());
        let mut read = scan(source).unwrap();
        for (bytes, count) in [(WHOLE_BYTES_MAX, 0), (WHOLE_BYTES_MAX + 1, 1)] {
            read.transcript.bytes = bytes;
            let session = Session::new(&read, source, (&policy).into(), Depth::Sizes).unwrap();
            let holds = Holds::default();
            let found = Survey::run(&session, &holds, false).unwrap().findings;
            assert_eq!(found.iter().filter(|finding| finding.rule.code() == "S10").count(), count);
        }
    }
}
