//! What the next entry may hang on so that the live branch grows by it and by nothing else.

use super::reason::Reason;
use super::seen::Key;
use crate::format::Shape;
use crate::model::entry::{Entry, Kind, Link, Role};
use crate::model::ids::Id;
use crate::model::transcript::Transcript;
use crate::session::Session;
use alloc::collections::VecDeque;
use alloc::vec;

/// So many entries of the newest turn are remembered.
const REGION_MAX: usize = 64;

#[derive(Clone)]
pub(super) enum Branch {
    /// The order of the lines is all there is, and no entry has an id.
    List(Shape),
    /// The order of the lines, and calls and results find each other wherever they stand.
    Log,
    /// A path: entries hang on the newest one.
    Path {
        head: Key,
        /// No entry with an id stands behind the newest one of the branch.
        last: bool,
    },
    Graph(Graph),
}

/// The newest turn of a graph. All its entries hang, over some way within it, on its first one, so that whichever is
/// the leaf, the same ones are gathered.
#[derive(Clone)]
pub(super) struct Graph {
    region: VecDeque<Key>,
    /// The end from which the leaf was found.
    tip: Key,
    /// The leaf is part of the main conversation.
    main: bool,
    /// Other ends of the main conversation would be taken if the leaf were not.
    rivals: bool,
}

impl Branch {
    /// The end of a session, and the first entry that belongs to it.
    pub(super) fn of(session: &Session<'_>) -> Result<(Self, u32), Reason> {
        let entries = &session.transcript.entries;
        let newest = session.newest().map(|newest| session.turn(newest));
        let members = session.live.iter().copied().filter(|&entry| Some(session.turn(entry)) == newest);
        let ends = session.live.last().copied().into_iter().chain(session.leaf);
        let first = members.min();
        let floor = ends.chain(first).min().unwrap_or(entries.len() as u32);
        let tree = entries.iter().any(|entry| entry.id.is_some());
        let branch = match session.format.shape() {
            Shape::Branch if tree => {
                let head = session.live.last().copied().ok_or(Reason::Tangled)?;
                let last = entries.iter().rposition(|entry| entry.id.is_some()) == Some(head as usize);
                Self::Path { head: key_of(session, head)?, last }
            }
            Shape::Graph => Self::Graph(Graph::of(session, first.ok_or(Reason::Tangled)?)?),
            // A subagent speaks in between, and its runs are told apart from the others.
            Shape::Log if entries.iter().any(|entry| entry.aside) => return Err(Reason::Tangled),
            Shape::Log => Self::Log,
            // A later record may take the place of any.
            Shape::Upserts => return Err(Reason::Tangled),
            shape => Self::List(shape),
        };
        Ok((branch, floor))
    }

    pub(super) fn weight(&self) -> usize {
        if let Self::Graph(graph) = self { graph.region.capacity() * size_of::<Key>() } else { 0 }
    }

    /// Whether results have to stand behind their calls.
    pub(super) fn is_ordered(&self) -> bool {
        !matches!(self, Self::Graph(_) | Self::Log)
    }

    /// Takes in an entry whose id is new; whether it is on the live branch. `begins`: a turn begins with it.
    pub(super) fn hang(&mut self, added: &Transcript, entry: u32, begins: bool) -> Result<bool, Reason> {
        let found = &added.entries[entry as usize];
        let key = |id: Id| Key::of(added.ids.text(id));
        let parent = match found.parent {
            Link::To(id) => Some(key(id)),
            Link::Root | Link::Missing => None,
        };
        match (self, found.id.map(key)) {
            // A leaf record, or the first id, would make it a path.
            (Self::List(Shape::Branch), id) if id.is_some() || found.kind == Kind::Leaf => {
                Err(Reason::Branched)
            }
            (Self::List(Shape::Branch), _) => Ok(true),
            // What a compaction had replaced may be in context again.
            (Self::Log, _) if found.aside || found.kind == Kind::Leaf => Err(Reason::Branched),
            (Self::List(_) | Self::Log, _) => Ok(found.kind != Kind::Opaque),
            (Self::Path { head, last }, id) if found.kind == Kind::Leaf => {
                *last &= id.is_none();
                let same = added.target_of(entry).id.map(key) == Some(*head);
                if same { Ok(false) } else { Err(Reason::Branched) }
            }
            (_, None) if found.kind == Kind::Opaque => Ok(false),
            (_, None) => Err(Reason::Tangled),
            (Self::Path { last, .. }, Some(_)) if found.aside => {
                *last = false;
                Ok(false)
            }
            (Self::Path { head, last }, Some(id)) => {
                let follows = *last && found.parent == Link::Missing;
                if !follows && parent != Some(*head) {
                    return Err(Reason::Branched);
                }
                (*head, *last) = (id, true);
                Ok(true)
            }
            (Self::Graph(graph), Some(id)) if found.is_spoken() => graph.say(found, id, parent, begins),
            (Self::Graph(graph), Some(id)) => graph.note(id, parent),
        }
    }
}

/// What an entry is called by those that hang on it.
fn key_of(session: &Session<'_>, entry: u32) -> Result<Key, Reason> {
    let id = session.entry(entry).id.ok_or(Reason::Tangled)?;
    if session.by_id(id) == Some(entry) {
        Ok(Key::of(session.transcript.ids.text(id)))
    } else {
        Err(Reason::Tangled)
    }
}

impl Graph {
    /// The newest turn, which begins with the entry `first`.
    fn of(session: &Session<'_>, first: u32) -> Result<Self, Reason> {
        let entries = &session.transcript.entries;
        let count = entries.len() as u32;
        let (Some(leaf), Some(tip)) = (session.leaf, session.ends.tip) else { return Err(Reason::Tangled) };
        let mut inside = vec![false; entries.len()];
        inside[first as usize] = true;
        for entry in 0..count {
            let Some(parent) = session.parent(entry).filter(|&parent| inside[parent as usize]) else {
                continue;
            };
            let found = session.entry(entry);
            let own = session.turn(entry) == session.turn(first) || found.kind == Kind::Message(Role::Tool);
            inside[entry as usize] |= parent < entry && (own || !found.is_spoken());
        }
        let backwards = |entry: u32| {
            session.parent(entry).is_some_and(|parent| parent >= entry && inside[parent as usize])
        };
        let outside = |&&entry: &&u32| session.turn(entry) == session.turn(first) && !inside[entry as usize];
        let main = session.entry(leaf).is_main();
        let said_last = |&entry: &u32| {
            let found = session.entry(entry);
            found.id.is_some() && found.is_spoken() && found.is_main() && !session.superseded(entry)
        };
        let overtaken = main && (0..count).rev().find(said_last) != Some(leaf);
        let whole = inside[leaf as usize] && inside[tip as usize];
        if !whole || overtaken || (0..count).any(backwards) || session.live.iter().any(|e| outside(&e)) {
            return Err(Reason::Tangled);
        }
        let tip = key_of(session, tip)?;
        let mut graph = Self { region: VecDeque::new(), tip, main, rivals: main && session.ends.main > 1 };
        for entry in (0..count).filter(|&entry| inside[entry as usize] && !session.superseded(entry)) {
            graph.remember(key_of(session, entry)?);
        }
        Ok(graph)
    }

    fn remember(&mut self, id: Key) {
        self.region.push_back(id);
        if self.region.len() > REGION_MAX {
            let oldest = self.region.iter().position(|&known| known != self.tip);
            oldest.and_then(|at| self.region.remove(at));
        }
    }

    fn holds(&self, parent: Option<Key>) -> bool {
        parent.is_some_and(|parent| self.region.contains(&parent))
    }

    /// An entry that nobody said: the leaf must stay.
    fn note(&mut self, id: Key, parent: Option<Key>) -> Result<bool, Reason> {
        let at_tip = parent == Some(self.tip);
        // It may bring an older end of the main conversation back.
        if !self.main && !at_tip {
            return Err(Reason::Branched);
        }
        self.rivals |= !at_tip;
        if at_tip {
            self.tip = id;
        }
        if self.holds(parent) {
            self.remember(id);
        }
        // Whether it is on the branch or not, the model does not see it.
        Ok(false)
    }

    /// An entry that somebody said: it must become the leaf, or have nothing to do with it.
    fn say(&mut self, found: &Entry, id: Key, parent: Option<Key>, begins: bool) -> Result<bool, Reason> {
        if !self.holds(parent) {
            // A subagent's, beside the main conversation. What has results may be gathered all the same.
            let beside = !found.is_main() && self.main && found.kind != Kind::Message(Role::Tool);
            return if beside && (begins || found.group.is_none()) {
                Ok(false)
            } else {
                Err(Reason::Branched)
            };
        }
        let at_tip = parent == Some(self.tip);
        if self.main && !found.is_main() && (self.rivals || !at_tip) {
            return Err(Reason::Branched);
        }
        self.main = found.is_main();
        self.rivals = self.main && (self.rivals || !at_tip);
        self.tip = id;
        if begins {
            self.region.clear();
        }
        self.remember(id);
        Ok(true)
    }
}
