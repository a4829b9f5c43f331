//! Which fixes only shorten what nobody writes to any more: texts of results, and copies of them, before the newest turn, and
//! texts as they were sent that are not read any more; and which add nothing.

use crate::model::entry::{Entry, Kind, Role, Service};
use crate::model::finding::Op;
use crate::session::Session;
use spans::source::Span;

/// Whether these steps shorten texts of results before the newest prompt, and do nothing else.
pub(super) fn only_shortens(session: &Session<'_>, ops: &[Op]) -> bool {
    ops.iter().all(|op| match op {
        Op::Cut { text, .. } | Op::Keep(text) => is_of_settled_result(session, *text),
        Op::Replace { at, with } => with.is_empty() && is_of_sent_texts(session, *at),
        _ => false,
    })
}

/// Whether a step needs an entry that is not there yet, or another order of them.
pub(super) fn brings_a_line(op: &Op) -> bool {
    matches!(op, Op::Answer(_) | Op::Insert { .. } | Op::Move { .. } | Op::ToFront(_))
}

fn is_of_sent_texts(session: &Session<'_>, at: Span) -> bool {
    session.entry_around(at).is_some_and(|entry| session.entry(entry).service == Service::SentTexts)
}

fn is_of_settled_result(session: &Session<'_>, text: Span) -> bool {
    let transcript = session.transcript;
    let after = transcript.entries.partition_point(|entry| entry.span.start <= text.start);
    let Some(entry) = after.checked_sub(1) else { return false };
    let results = transcript.results_of(entry as u32);
    // What a tool that still runs has said so far is a copy without a result.
    let sides = transcript.sides_of(entry as u32).iter().filter(|_| !results.is_empty());
    let mut texts = results.clone().flat_map(|result| transcript.bodies_of(result)).chain(sides);
    let is_prompt = |entry: &Entry| entry.kind == Kind::Message(Role::User);
    texts.any(|own| own.inner.contains(text)) && transcript.entries[after..].iter().any(is_prompt)
}

#[cfg(test)]
mod tests {
    use crate::model::finding::{Held, Safety};
    use crate::{Case, Policy, Situation, mend};
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn session(lines: &[&str]) -> String {
        let mut text = String::from(
            "{\"type\":\"session\",\"version\":4,\"id\":\"s\",\"timestamp\":\"2026-11-22T17:39:00.000Z\",\"cwd\":\"/w\"}\n",
        );
        for (n, line) in lines.iter().enumerate() {
            let parent = if n == 0 { "null".into() } else { format!("\"e{}\"", n - 1) };
            let line = format!(
                "{{\"type\":\"message\",\"id\":\"e{n}\",\"parentId\":{parent},\"timestamp\":\"2026-11-22T17:39:0{n}.000Z\",\"message\":{line}}}\n"
            );
            text.push_str(&line);
        }
        text
    }

    #[test]
    fn only_results_before_the_newest_prompt_are_shortened() {
        let call = |id: &str| {
            format!(
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"{id}\",\"name\":\"ls\",\"arguments\":{{}}}}],\"stopReason\":\"toolUse\"}}"
            )
        };
        let result = |id: &str| {
            let text = "a line of a listing\\n".repeat(3_000);
            format!(
                "{{\"role\":\"toolResult\",\"toolCallId\":\"{id}\",\"toolName\":\"ls\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"isError\":false}}"
            )
        };
        let prompt = "{\"role\":\"user\",\"content\":\"list files\"}";
        let empty = "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\"}],\"stopReason\":\"stop\"}";
        let text =
            session(&[prompt, &call("c1"), &result("c1"), empty, prompt, &call("c2"), &result("c2"), empty]);
        let situation = Situation { settled_only: Some("beside its agent"), ..Situation::default() };
        let case = Case { policy: &Policy::default(), situation: &situation };
        let mended = mend(&text.as_bytes(), case).unwrap();
        let plan = mended.repair.ok().unwrap().plan;
        let third = text.find("\"id\":\"e2\"").unwrap() as u64;
        let fourth = text.find("\"id\":\"e3\"").unwrap() as u64;
        assert!(
            !plan.is_empty() && plan.edits().iter().all(|edit| edit.at.start > third && edit.at.end < fourth)
        );
        let held: Vec<_> = mended
            .before
            .findings
            .iter()
            .filter(|found| found.fix.safety == Safety::Held(Held::SettledOnly("beside its agent")))
            .map(|found| (found.rule.code(), found.line))
            .collect();
        assert!(held.contains(&("S1", 8)) && !held.contains(&("S1", 4)), "{held:?}");
        let free = mend(&text.as_bytes(), &Policy::default()).unwrap().repair.ok().unwrap().plan;
        assert!(free.edits().iter().any(|edit| edit.at.start > fourth), "this test sees nothing");
    }
}
