//! Which text is in which pack. Who needs it, and for how long, is not known here.

use super::folder::Folder;
use super::pack::{self, Entry, Text};
use blake3::Hash;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};

/// What all packs together hold.
pub(super) struct Catalogue {
    pub(super) folder: Folder,
    pub(super) packs: Vec<Pack>,
    places: HashMap<Hash, Place>,
    /// Names of packs that could not be read, and why.
    pub(super) broken: Vec<(String, io::Error)>,
}

/// A pack that could be read.
pub(super) struct Pack {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// How many texts are in it, also such as another pack holds too.
    pub(super) texts: usize,
}

/// Where a text is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Number of the pack.
    pub(super) pack: usize,
    pub(super) entry: Entry,
}

impl Catalogue {
    /// Reads the ends of all packs in a folder. Of several copies of a text the newest counts: it was made because an
    /// older one was no good, or by two runs at once.
    pub(super) fn load(folder: Folder) -> io::Result<Self> {
        let mut all = Self { folder, packs: Vec::new(), places: HashMap::new(), broken: Vec::new() };
        for name in all.folder.names()?.into_iter().filter(|name| pack::is_pack(name)) {
            match all.read(&name) {
                Ok(Some((bytes, entries))) => all.add(name, bytes, entries),
                Ok(None) => {}
                Err(cause) => all.broken.push((name, cause)),
            }
        }
        Ok(all)
    }

    fn read(&self, name: &str) -> io::Result<Option<(u64, Vec<Entry>)>> {
        let Some(file) = self.folder.read(name)? else { return Ok(None) };
        Ok(Some((file.metadata()?.len(), pack::entries(&file)?)))
    }

    fn add(&mut self, name: String, bytes: u64, entries: Vec<Entry>) {
        let pack = self.packs.len();
        self.packs.push(Pack { name, bytes, texts: entries.len() });
        for entry in entries {
            let place = self.places.entry(entry.hash).or_insert(Place { pack, entry });
            if place.entry.kept < entry.kept {
                *place = Place { pack, entry };
            }
        }
    }

    /// All texts, in no order.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.values()
    }

    /// When the newest text was kept, in milliseconds since 1970.
    pub(super) fn newest(&self) -> Option<u64> {
        self.places().map(|place| place.entry.kept).max()
    }

    /// The hashes that begin with these hex digits, sorted.
    pub(super) fn beginning_with(&self, digits: &str) -> Vec<Hash> {
        let begins = |hash: &&Hash| hash.to_hex().starts_with(digits);
        let mut hashes: Vec<Hash> = self.places.keys().filter(begins).copied().collect();
        hashes.sort_by_key(|hash| *hash.as_bytes());
        hashes
    }

    /// Opens a text; `None` if it is not there.
    pub(super) fn open(&self, hash: &Hash) -> io::Result<Option<Text>> {
        let Some(place) = self.places.get(hash) else { return Ok(None) };
        Text::open(self.file(place.pack)?, &place.entry).map(Some)
    }

    /// Opens a pack.
    pub(super) fn file(&self, pack: usize) -> io::Result<File> {
        let name = self.packs.get(pack).map(|pack| &pack.name).ok_or(ErrorKind::NotFound)?;
        Ok(self.folder.read(name)?.ok_or(ErrorKind::NotFound)?)
    }

    /// Whether a text is there and is what was put there.
    pub(super) fn has_whole(&self, hash: &Hash) -> bool {
        let text = self.open(hash);
        text.is_ok_and(|text| text.is_some_and(|mut text| io::copy(&mut text, &mut io::sink()).is_ok()))
    }

    /// Why a text may be missing that was kept.
    pub(super) fn excuse(&self) -> String {
        let first = self.broken.first();
        first.map_or_else(String::new, |(name, cause)| {
            format!("; it may be in {}, which cannot be read: {cause}", self.folder.path_of(name).display())
        })
    }
}
