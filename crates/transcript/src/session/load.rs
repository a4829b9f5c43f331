//! What an agent loads of a session if it loads only so much, from the newest entry back. What does not fit is not sent: the
//! conversation then begins somewhere in its middle, which APIs refuse.

use super::Session;
use crate::model::entry::{Kind, Role, Service};
use crate::model::situation::LoadLimit;

/// How many of the newest turns tell how fast a session grows.
const TURNS: u64 = 5;
/// From so many turns before the end on, it is told.
const TURNS_NEAR: u64 = 10;

/// What an agent would have to load to send the whole conversation.
pub(crate) struct Loaded {
    pub(crate) limit: LoadLimit,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// How many messages it does not load.
    pub(crate) unseen: u64,
    /// Bytes and entries of the newest turns, and how many turns these are.
    newest: (u64, u64, u64),
}

impl Loaded {
    /// `None` if there is no limit.
    pub(crate) fn from_session(session: &Session<'_>) -> Option<Self> {
        let limit = session.situation.load?;
        let length = |entry: u32| session.entry(entry).span.len() + 1;
        let header =
            (0..session.transcript.entries.len() as u32).find(|&entry| session.kind(entry) == Kind::Header);
        let header = header.map_or(0, length);
        let mut loaded = Self { limit, bytes: header, entries: 0, unseen: 0, newest: (0, 0, 0) };
        let loads = |entry: &u32| session.entry(*entry).service != Service::Excluded;
        for entry in session.live[begins(session)..].iter().rev().copied().filter(loads) {
            (loaded.bytes, loaded.entries) = (loaded.bytes + length(entry), loaded.entries + 1);
            let is_message = matches!(session.kind(entry), Kind::Message(_) | Kind::Note | Kind::Boundary);
            loaded.unseen += u64::from(is_message && loaded.exceeds());
            if session.kind(entry) == Kind::Message(Role::User) && loaded.newest.2 < TURNS {
                loaded.newest = (loaded.bytes - header, loaded.entries, loaded.newest.2 + 1);
            }
        }
        Some(loaded)
    }

    fn exceeds(&self) -> bool {
        self.bytes > self.limit.bytes_max || self.entries > self.limit.entries_max
    }

    /// In how many turns like the newest ones it does not load all; 0 if it does not now, and `None` if that is far off.
    pub(crate) fn turns_left(&self) -> Option<u64> {
        if self.unseen > 0 {
            return Some(0);
        }
        let left = |used: u64, max: u64, grown: u64| {
            let grown = grown.div_ceil(self.newest.2.max(1));
            max.saturating_sub(used).checked_div(grown).map_or(u64::MAX, |turns| turns.saturating_add(1))
        };
        let bytes = left(self.bytes, self.limit.bytes_max, self.newest.0);
        let turns = bytes.min(left(self.entries, self.limit.entries_max, self.newest.1));
        (turns <= TURNS_NEAR).then_some(turns)
    }
}

/// The place of the first entry that the conversation needs: what comes before a reset or a compaction is not sent.
fn begins(session: &Session<'_>) -> usize {
    let kept = session.live.iter().position(|&entry| session.in_context(entry)).unwrap_or(0);
    let reset = session.live.iter().rposition(|&entry| session.entry(entry).service == Service::Reset);
    reset.map_or(kept, |reset| (reset + 1).max(kept))
}
