//! Which parents the next entry may have, so that the live branch grows by this entry and nothing else changes.

use super::seen::TextKey;
use crate::format::Shape;
use crate::model::entry::{Entry, Kind, Link, Role, Service};
use crate::model::ids::Id;
use crate::model::transcript::Transcript;
use crate::rule::Feature;
use crate::session::Session;
use crate::session::tokens::BranchPosition;
use alloc::collections::VecDeque;
use alloc::vec;
use serde::{Deserialize, Serialize};

/// How many entries of the newest turn are remembered.
const TURN_MAX: usize = 64;

#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Branch {
    /// Only the order of the lines counts, and no entry has an id.
    List(Shape),
    /// The order of the lines counts, and calls and results find each other wherever they are.
    Log,
    /// A path: an entry's parent is the newest entry.
    Path {
        head: TextKey,
        /// No entry with an id comes after the newest one of the branch.
        last: bool,
    },
    Graph(Graph),
}

/// The newest turn of a graph, in the main conversation. Each of its entries descends from its first one through
/// entries of the turn, so the same entries are gathered whichever is the leaf.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Graph {
    /// Its entries, and whether they are messages.
    turn: VecDeque<(TextKey, bool)>,
    /// The entry from which the leaf was found.
    tip: TextKey,
    /// A `last-prompt` record names an entry of the turn: what comes has to come below that.
    named: bool,
}

impl Branch {
    /// The end of a session's branch, and the first entry that belongs to it.
    pub(super) fn from_session(session: &Session<'_>) -> Result<(Self, u32), Feature> {
        let entries = &session.transcript.entries;
        let newest = session.newest().map(|newest| session.turn(newest));
        let members = session.live.iter().copied().filter(|&entry| Some(session.turn(entry)) == newest);
        let ends = session.live.last().copied().into_iter().chain(session.leaf);
        let first = members.min();
        let floor = ends.chain(first).min().unwrap_or(entries.len() as u32);
        let tree = entries.iter().any(|entry| entry.id.is_some());
        let branch = match session.format.shape {
            Shape::Tree if tree => {
                let head = session.live.last().copied().ok_or(Feature::Unplaced)?;
                let last = entries.iter().rposition(|entry| entry.id.is_some()) == Some(head as usize);
                Self::Path { head: key_of(session, head)?, last }
            }
            Shape::Graph => Self::Graph(Graph::from_session(session, first.ok_or(Feature::Unplaced)?)?),
            // Entries of subagents may be in between, and their runs are not told apart.
            Shape::Log if entries.iter().any(|entry| entry.is_sidechain) => return Err(Feature::Unplaced),
            Shape::Log => Self::Log,
            // A later record may replace any of them.
            Shape::Upserts => return Err(Feature::Unplaced),
            shape => Self::List(shape),
        };
        Ok((branch, floor))
    }

    pub(super) fn weight(&self) -> usize {
        if let Self::Graph(graph) = self { graph.turn.capacity() * size_of::<(TextKey, bool)>() } else { 0 }
    }

    /// Whether results have to come directly after their calls.
    pub(super) fn is_ordered(&self) -> bool {
        !matches!(self, Self::Graph(_) | Self::Log)
    }

    /// Adds an entry whose id is new, and returns its place. `begins` says whether a turn begins with it.
    pub(super) fn hang(
        &mut self,
        added: &Transcript,
        entry: u32,
        begins: bool,
    ) -> Result<BranchPosition, Feature> {
        let found = &added.entries[entry as usize];
        let key = |id: Id| TextKey::from_text(added.ids.text(id));
        let parent = match found.parent {
            Link::To(id) => Some(key(id)),
            Link::Root | Link::Missing => None,
        };
        match (self, found.id.map(key)) {
            // The first id would turn the list into a path.
            (Self::List(Shape::Tree), id) => {
                if id.is_some() {
                    Err(Feature::Unplaced)
                } else {
                    Ok(BranchPosition::Live)
                }
            }
            // Messages that a compaction had replaced may be in context again.
            (Self::Log, _) if found.is_sidechain => Err(Feature::Unplaced),
            (Self::Graph(graph), None) if found.kind == Kind::Leaf => {
                let target = added.target_of(entry).id.map(key);
                if target != Some(graph.tip) {
                    return Err(Feature::Unplaced);
                }
                graph.named = true;
                Ok(BranchPosition::Beside)
            }
            (_, None) | (Self::List(_) | Self::Log, _) if found.kind == Kind::Opaque => {
                Ok(BranchPosition::Beside)
            }
            (Self::List(_) | Self::Log, _) => Ok(BranchPosition::Live),
            (_, None) => Err(Feature::Unplaced),
            (Self::Path { last, .. }, Some(_)) if found.is_sidechain => {
                *last = false;
                Ok(BranchPosition::Beside)
            }
            (Self::Path { head, last }, Some(id)) => {
                let follows = *last && found.parent == Link::Missing;
                if !follows && parent != Some(*head) {
                    return Err(Feature::Unplaced);
                }
                (*head, *last) = (id, true);
                Ok(BranchPosition::Live)
            }
            (Self::Graph(graph), Some(id)) => graph.hang(found, (id, parent), begins),
        }
    }
}

/// The key by which children name an entry as their parent.
fn key_of(session: &Session<'_>, entry: u32) -> Result<TextKey, Feature> {
    let id = session.entry(entry).id.ok_or(Feature::Unplaced)?;
    if session.by_id(id) == Some(entry) {
        Ok(TextKey::from_text(session.transcript.ids.text(id)))
    } else {
        Err(Feature::Unplaced)
    }
}

impl Graph {
    /// The newest turn, which begins with the entry `first`.
    fn from_session(session: &Session<'_>, first: u32) -> Result<Self, Feature> {
        let entries = &session.transcript.entries;
        let count = entries.len() as u32;
        let (Some(leaf), Some(tip)) = (session.leaf, session.ends.tip) else { return Err(Feature::Unplaced) };
        if session.ends.last != Some(tip) {
            return Err(Feature::Unplaced);
        }
        let mut inside = vec![false; entries.len()];
        inside[first as usize] = true;
        for entry in 0..count {
            let parent = session.parent(entry).filter(|&parent| inside[parent as usize]);
            let found = session.entry(entry);
            let own = session.turn(entry) == session.turn(first) || found.kind == Kind::Message(Role::Tool);
            inside[entry as usize] |=
                (own || !found.is_spoken()) && parent.is_some_and(|parent| parent < entry);
        }
        let backwards = |entry: u32| {
            session.parent(entry).is_some_and(|parent| parent >= entry && inside[parent as usize])
        };
        let outside = |&entry: &u32| session.turn(entry) == session.turn(first) && !inside[entry as usize];
        let said_last = |&entry: &u32| {
            let found = session.entry(entry);
            found.id.is_some() && found.is_spoken() && found.is_main() && !session.superseded(entry)
        };
        let is_last = (0..count).rev().find(said_last) == Some(leaf);
        let whole = inside[leaf as usize] && inside[tip as usize] && !session.live.iter().any(outside);
        if !is_last || !whole || (0..count).any(backwards) {
            return Err(Feature::Unplaced);
        }
        let named = (0..count).rev().find(|&entry| session.kind(entry) == Kind::Leaf);
        let named = named.and_then(|named| session.target(named));
        let named = named.is_some_and(|named| inside[named as usize]);
        let mut graph = Self { turn: VecDeque::new(), tip: key_of(session, tip)?, named };
        for entry in (0..count).filter(|&entry| inside[entry as usize] && !session.superseded(entry)) {
            graph.remember(key_of(session, entry)?, session.entry(entry).is_spoken());
        }
        Ok(graph)
    }

    fn remember(&mut self, id: TextKey, spoken: bool) {
        self.turn.push_back((id, spoken));
        if self.turn.len() > TURN_MAX {
            let oldest = self.turn.iter().position(|&(known, _)| known != self.tip);
            oldest.and_then(|at| self.turn.remove(at));
        }
    }

    fn hang(
        &mut self,
        found: &Entry,
        (id, parent): (TextKey, Option<TextKey>),
        begins: bool,
    ) -> Result<BranchPosition, Feature> {
        let known = parent.and_then(|parent| self.turn.iter().find(|&&(known, _)| known == parent));
        let (held, said, spoken) = (known.is_some(), known.is_some_and(|(_, said)| *said), found.is_spoken());
        if spoken && !(held && found.is_main()) {
            // A subagent's entry, beside the main conversation. Entries with results may still be gathered.
            let beside = !held && !found.is_main() && found.kind != Kind::Message(Role::Tool);
            let alone = begins || found.group.is_none();
            return if beside && alone { Ok(BranchPosition::Beside) } else { Err(Feature::Unplaced) };
        }
        // Every row of the main conversation becomes the leaf, and what is not above it is left.
        let moves = spoken || !(found.is_sidechain || found.service == Service::Progress);
        if parent != Some(self.tip) && moves && (self.named || !spoken) {
            return Err(Feature::Unplaced);
        }
        let place = match (spoken, parent == Some(self.tip)) {
            (true, true) => BranchPosition::Live,
            (true, false) if said => BranchPosition::Sibling,
            (false, true) => BranchPosition::Waiting,
            (live, _) => BranchPosition::Unclear { live },
        };
        if spoken && begins {
            self.turn.clear();
            self.named = false;
        }
        if spoken || parent == Some(self.tip) {
            self.tip = id;
        }
        if held {
            self.remember(id, spoken);
        }
        Ok(place)
    }
}
