//! How much of a conversation there is, for the verdict.

use super::context::Messages;
use crate::model::entry::Kind;
use crate::model::finding::{Guard, Op, Safety};
use crate::session::Session;
use hashbrown::HashSet;

/// What persons said, and how much of the conversation there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// Fingerprint of what persons said.
    pub(crate) hash: u64,
    /// In how many texts they said it.
    pub(crate) texts: u64,
    /// Messages that the model sees.
    pub(crate) seen: usize,
    /// Messages on the live branch.
    pub(crate) live: usize,
}

impl Conversation {
    pub(crate) fn from_session(session: &Session<'_>, seen: usize) -> Self {
        let spoken = |&&entry: &&u32| matches!(session.kind(entry), Kind::Message(_));
        let live = session.live.iter().filter(spoken).count();
        Self { hash: session.transcript.user_text, texts: session.transcript.user_texts, seen, live }
    }

    /// What of it the plan of a stage takes out because somebody asked for that by name: messages of the agent, and, of
    /// history that is not loaded, what persons said. A copy that goes says nothing that the other one does not.
    pub(crate) fn released(session: &Session<'_>, steps: &[(Safety, &[Op])]) -> Self {
        let (mut going, mut said) = (HashSet::new(), HashSet::new());
        for (safety, op) in steps.iter().flat_map(|(safety, ops)| ops.iter().map(move |op| (safety, op))) {
            match (op, safety) {
                (Op::DropCopy(entry), _) => _ = said.insert(*entry),
                (Op::DropEntry(entry), Safety::Guarded(why)) => {
                    going.insert(*entry);
                    if *why == Guard::History {
                        said.insert(*entry);
                    }
                }
                _ => {}
            }
        }
        let texts = said.into_iter().filter_map(|entry| session.transcript.said_in(entry));
        let (hash, texts) = texts.fold((0, 0), |(hash, texts): (u64, u64), said| {
            (hash.wrapping_add(said.hash), texts + said.texts)
        });
        Self { hash, texts, seen: Messages::seen_in(session, going.into_iter()), live: 0 }
    }
}
