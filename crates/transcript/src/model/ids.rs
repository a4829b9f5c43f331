//! The ids of a transcript, each stored once.

use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::num::NonZeroU32;
use hashbrown::hash_table::Entry as TableEntry;
use hashbrown::{DefaultHashBuilder, HashTable};
use spans::fingerprint;

/// An interned id: of an entry, a call, a message, a model. Equal ids are equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(NonZeroU32);

impl Id {
    /// Position among the ids, for tables.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All ids of one transcript, each stored once.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Hashes of the texts. Computing them again whenever the table grows would cost more than storing them.
    hashes: Vec<u32>,
    table: HashTable<Id>,
    hasher: DefaultHashBuilder,
    /// The most recent ids, by a quick hash: models, tools and messages repeat often.
    recent: [Option<Id>; RECENT],
}

/// How many recent ids are tried before the table.
const RECENT: usize = 16;

impl Ids {
    /// How many different ids there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The decoded text of an id.
    pub fn text(&self, id: Id) -> &[u8] {
        stored(&self.bytes, &self.ends, id)
    }

    /// The decoded texts of all ids.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let starts = core::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start as usize..end as usize])
    }

    /// The id with this text, if there is one.
    pub fn find(&self, text: &[u8]) -> Option<Id> {
        let hash = self.hasher.hash_one(text) as u32;
        self.table.find(fingerprint::mix(hash.into()), |&id| self.text(id) == text).copied()
    }

    pub(super) fn intern(&mut self, text: &[u8]) -> Option<Id> {
        let last = text.last().copied().unwrap_or_default();
        let glance = (text.len() ^ usize::from(last)) % RECENT;
        if let Some(id) = self.recent[glance].filter(|&id| self.text(id) == text) {
            return Some(id);
        }
        let id = self.intern_in_table(text)?;
        self.recent[glance] = Some(id);
        Some(id)
    }

    fn intern_in_table(&mut self, text: &[u8]) -> Option<Id> {
        let Self { bytes, ends, hashes, table, hasher, .. } = self;
        let id = Id(NonZeroU32::new(u32::try_from(ends.len() + 1).ok()?)?);
        let end = u32::try_from(bytes.len() + text.len()).ok()?;
        let hash = hasher.hash_one(text) as u32;
        let same = |&id: &Id| hashes[id.index()] == hash && stored(bytes, ends, id) == text;
        match table
            .entry(fingerprint::mix(hash.into()), same, |id| fingerprint::mix(hashes[id.index()].into()))
        {
            TableEntry::Occupied(known) => Some(*known.get()),
            TableEntry::Vacant(vacant) => {
                vacant.insert(id);
                hashes.push(hash);
                bytes.extend_from_slice(text);
                ends.push(end);
                Some(id)
            }
        }
    }
}

/// The text of one id in the storage of all.
fn stored<'b>(bytes: &'b [u8], ends: &[u32], id: Id) -> &'b [u8] {
    let start = if id.index() == 0 { 0 } else { ends[id.index() - 1] };
    &bytes[start as usize..ends[id.index()] as usize]
}
