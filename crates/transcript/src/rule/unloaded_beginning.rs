//! S23: a conversation of which the agent does not load the beginning.

use super::base::{Cover, FindingSink, Help, Repeats, Rule, RuleInfo, about_place};
use super::superseded_sent_texts;
use crate::model::finding::{Finding, Fix, Severity};
use crate::session::Session;
use crate::session::load::Loaded;
use alloc::format;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S23",
        name: "unloaded-beginning",
        help: Help {
            what: "The conversation is longer than what its agent loads of it, or will be in a few turns like the last ones. OpenClaw \
                   loads 8 bytes for each token of the context window that the session records, at most 64 MiB and 10,000 events, from \
                   the newest back, and counts everything on the branch, also what is never sent.",
            why: "What does not fit is left out. The conversation then begins in its middle and is refused at every turn, also after a \
                  restart: \"messages: first message must use the \"user\" role\", \"Message ordering conflict - please try again. If \
                  this persists, use /new to start a fresh session.\"",
            fix: "The same as S22, which is usually nearly all of it. If it is still too long, shorten results: --cut-results, \
                  --stale-*.",
            source: "OpenClaw 2026.9.6, resolveEmbeddedSessionContextLimits and readSessionTranscriptBoundedActiveContextCore",
        },
        model_sees: false,
        recovers: true,
        wakes: &[],
        repeats: Repeats::Once,
        ..RuleInfo::BASE
    },
    cover: |format| if format.keeps_sent_texts { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let Some(loaded) = Loaded::from_session(session) else { return Ok(()) };
    let Some(turns) = loaded.turns_left() else { return Ok(()) };
    let (bytes, entries, limit) = (loaded.bytes, loaded.entries, loaded.limit);
    let (severity, what) = if turns == 0 {
        let unseen = loaded.unseen;
        (Severity::Error, format!("{unseen} messages at its beginning are not loaded, so it is refused"))
    } else {
        (Severity::Warning, format!("not all is loaded any more in about {turns} turns like the last ones"))
    };
    let message = format!(
        "{what}: {bytes} bytes in {entries} entries, of which at most {} in {} are loaded (window of {} tokens)",
        limit.bytes_max, limit.entries_max, limit.window_tokens
    );
    let ops = superseded_sent_texts::ops(session)?.all;
    let fix = if ops.is_empty() { Fix::NONE } else { Fix::safe(ops) };
    // Not at the same place, so that an error of which a warning is left counts as repaired.
    let newest = session.live.last().filter(|_| turns > 0).map(|&entry| session.entry(entry));
    let (line, at) = newest.map_or((1, 0), |newest| (newest.line, newest.span.start));
    out.push(Finding { at, fix, ..about_place(&RULE, line, severity, message) });
    Ok(())
}
