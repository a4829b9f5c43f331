//! Joins entries: finds the live branch, what of it is in context, and which result answers which call.
//!
//! The live branch is the one that the owning agent would load, by its own rules. A walk up the parents ends at a cycle or a
//! missing parent, as it does in the agents, and of an entry that was written several times the last version counts.

use super::shape::traits;
use super::view::{Answers, Ends, NONE, Session};
use crate::format::Shape;
use crate::model::entry::{Entry, Kind, Link};
use crate::model::policy::Depth;
use crate::model::situation::Case;
use crate::read::scan::{Reading, Scanned};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::OnceCell;
use hashbrown::HashMap;
use spans::source::Source;

impl<'a> Session<'a> {
    /// Joins the entries that were read. `None` if their format is unknown.
    pub(crate) fn of(reading: &'a Reading<'a>, case: impl Into<Case<'a>>, depth: Depth) -> Option<Self> {
        Self::new(&reading.scanned, reading.source, case.into(), depth)
    }

    /// Joins the entries of a transcript. `None` if its format is unknown.
    pub(crate) fn new(
        read: &'a Scanned,
        source: &'a dyn Source,
        Case { policy, situation }: Case<'a>,
        depth: Depth,
    ) -> Option<Self> {
        let Scanned { format, undecided, transcript, .. } = read;
        let format = (*format)?;
        let mut session = Self {
            transcript,
            format,
            shape: traits(format.shape),
            undecided: *undecided,
            source,
            policy,
            situation,
            depth,
            live: Vec::new(),
            answers: vec![Answers::Unseen; transcript.results.len()],
            place: vec![NONE; transcript.entries.len()],
            leaf: None,
            ends: Ends::default(),
            rank: Vec::new(),
            by_rank: Vec::new(),
            context: vec![false; transcript.entries.len()],
            by_id: vec![NONE; transcript.ids.len()],
            parents: Vec::new(),
            repeats_ids: false,
            kinds: Vec::with_capacity(transcript.entries.len()),
            groups: false,
            shared: vec![false; transcript.ids.len()],
            labelled: vec![false; transcript.ids.len()],
            result_of: vec![NONE; transcript.calls.len()],
            pending_from: NONE,
            damaged_lines: OnceCell::new(),
            first_marker: OnceCell::new(),
            bound_thinking: OnceCell::new(),
            tokens: OnceCell::new(),
            last_spoken: OnceCell::new(),
            turn_ends: OnceCell::new(),
            edited: HashMap::new(),
            runs: Vec::new(),
        };
        for (index, entry) in (0..).zip(&transcript.entries) {
            session.kinds.push(entry.kind);
            session.groups |= entry.group.is_some();
            if let Some(id) = entry.id {
                if session.by_id[id.index()] != NONE {
                    session.shared[id.index()] = true;
                    session.repeats_ids = true;
                }
                session.by_id[id.index()] = index;
            }
            if entry.kind == Kind::Opaque
                && let Some(target) = transcript.target_of(index).id
            {
                session.labelled[target.index()] = true;
            }
        }
        session.parents = session.links();
        (session.shape.join)(&mut session);
        session.pair();
        session.elect();
        session.find_pending();
        Some(session)
    }

    fn links(&self) -> Vec<u32> {
        let mut before = NONE;
        let link = |(index, entry): (u32, &Entry)| {
            let parent = match entry.parent {
                Link::To(id) => self.by_id[id.index()],
                // OpenClaw writes rows without a parent; the row before is meant.
                Link::Missing if self.format.shape == Shape::Tree => before,
                Link::Root | Link::Missing => NONE,
            };
            if entry.id.is_some() {
                before = index;
            }
            parent
        };
        (0..).zip(&self.transcript.entries).map(link).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::examine::mend::examine;
    use crate::model::policy::Policy;
    use crate::session::Awaits;
    use alloc::format;
    use alloc::string::String;
    use core::fmt::Write;

    /// Checks what a pi session with these messages after its header awaits.
    #[track_caller]
    fn check(messages: &[&str], expected: Option<Awaits>) {
        let mut text = String::from(r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#);
        for (n, message) in messages.iter().enumerate() {
            let parent = if n == 0 { "null".into() } else { format!(r#""e{}""#, n - 1) };
            write!(text, "\n{{\"id\":\"e{n}\",\"parentId\":{parent},{message}}}").unwrap();
        }
        let found = examine(&(text + "\n").as_bytes(), &Policy::default()).unwrap();
        assert_eq!(found.facts.awaits, expected, "{messages:?}");
    }

    const ASKED: &str = r#""type":"message","message":{"role":"user","content":"go"}"#;
    const CALLED: &str = r#""type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"a","arguments":{}},{"type":"toolCall","id":"d","name":"a","arguments":{}}],"stopReason":"toolUse"}"#;
    const FIRST: &str = r#""type":"message","message":{"role":"toolResult","toolCallId":"c","content":"x"}"#;
    const SECOND: &str = r#""type":"message","message":{"role":"toolResult","toolCallId":"d","content":"x"}"#;
    const SAID: &str = r#""type":"message","message":{"role":"assistant","content":[],"stopReason":"stop"}"#;
    const NOTED: &str = r#""type":"custom_message","content":"note""#;

    #[test]
    fn the_end_of_the_branch_says_what_it_waits_for() {
        check(&[], None);
        check(&[ASKED], Some(Awaits::Model));
        check(&[ASKED, SAID], None);
        check(&[ASKED, SAID, NOTED], None);
        check(&[ASKED, NOTED], Some(Awaits::Model));
        check(&[ASKED, CALLED], Some(Awaits::Tool));
        check(&[ASKED, CALLED, FIRST], Some(Awaits::Tool));
        check(&[ASKED, CALLED, FIRST, SECOND], Some(Awaits::Model));
        check(&[ASKED, CALLED, FIRST, SECOND, SAID], None);
        // Without its call, it still says that it stopped for one.
        check(&[ASKED, &CALLED.replace("toolCall", "gone")], Some(Awaits::Tool));
        check(&[ASKED, &CALLED.replace("toolUse", "aborted")], None);
        check(&[ASKED, CALLED, ASKED], Some(Awaits::Model));
    }

    #[test]
    fn what_is_off_the_branch_waits_for_nothing() {
        let back = r#""type":"leaf","targetId":"e1""#;
        check(&[ASKED, SAID, ASKED, back], None);
    }
}
