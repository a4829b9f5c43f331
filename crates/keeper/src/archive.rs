//! The archive of `keep`: what sessions were, whoever changed them. A session is a path at which bytes lie; what they mean is not
//! known here.
//!
//! Below the root, folders have mode 0700 and files 0600:
//!
//! ```text
//! lock             locked by whoever writes; names who wrote last
//! packs/<file>     chunks of texts, compressed; each is there once
//! sessions/<file>  the states of generations: lines of JSON that name the chunks of a text in their order
//! recent/<file>    both, of sessions that are growing; deleted once the same is in the other two
//! ```
//!
//! A process appends to files that it made itself, until they are full or it ends, and nothing is ever changed in one. So any
//! program can copy the folder at any time, and what was cut off at the end of a file is the only thing that a crash can damage.
//! `frame` says how they are laid out, and `cut` where texts are cut.

mod chunks;
mod clear;
mod cut;
mod frame;
mod generation;
mod growth;
mod keep;

pub use clear::{Dropped, KeepLimits, TextsIn};
pub use generation::{End, Generation};
pub use keep::{Change, REST_EVERY};
pub(crate) use keep::{Look, MendedSince, acting_as_owner, is_absent};

use crate::disk::folder::Folder;
use crate::platform::own::Own;
use crate::platform::{FileExt, OFlags};
use chunks::Chunks;
use growth::Growth;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";
/// The longest name of who wrote last.
const NAME_BYTES_MAX: usize = 64;

/// The folder of generations.
pub struct Archive {
    root: PathBuf,
    /// What the folder held when we last wrote to it.
    kept: Option<Kept>,
    /// How we call ourselves in its lock.
    name: String,
}

/// What is in an archive.
pub struct Kept {
    chunks: Chunks,
    /// By their ids.
    generations: BTreeMap<String, Generation>,
    /// The id of the generation that lies at a path now.
    current: HashMap<PathBuf, String>,
    /// Sessions that have grown since they were read.
    growing: HashMap<PathBuf, Growth>,
}

/// An archive that nobody else writes to meanwhile.
pub(crate) struct Writing<'a> {
    pub(crate) kept: &'a mut Kept,
    _lock: File,
}

/// What was found wrong with an archive.
#[derive(Debug, Default)]
pub struct Damage {
    /// How many bytes of its files are none that were put there.
    pub bytes: u64,
    /// How many chunks are damaged or missing.
    pub chunks: u64,
    /// Generations that need them.
    pub generations: Vec<Generation>,
}

impl Archive {
    /// The archive at a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        let now = jiff::Timestamp::now().as_microsecond();
        Self { root, kept: None, name: format!("{}-{now}", std::process::id()) }
    }

    /// The default place; `None` if no home folder is known.
    pub fn default_root() -> Option<PathBuf> {
        Some(Own::State.folder()?.join("kept"))
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What is in it now; `None` if there is none.
    pub fn read(&self) -> io::Result<Option<Kept>> {
        Folder::at(&self.root)?.map(Kept::load).transpose()
    }

    /// Keeps others from writing to it. Reads it if somebody else has written to it since.
    pub(crate) fn write(&mut self) -> io::Result<Writing<'_>> {
        let root = Folder::make(&self.root)?;
        let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        lock.lock()?;
        let mut last = vec![0; NAME_BYTES_MAX];
        let length = lock.read_at(&mut last, 0)?;
        if self.kept.is_none() || last[..length] != *self.name.as_bytes() {
            self.kept = None;
            lock.set_len(0)?;
            lock.write_all_at(self.name.as_bytes(), 0)?;
        }
        let kept = match self.kept.take() {
            Some(kept) => kept,
            None => Kept::load(root)?,
        };
        Ok(Writing { kept: self.kept.insert(kept), _lock: lock })
    }

    /// How many bytes it had when we last read it; 0 if we have not.
    pub fn bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, Kept::bytes)
    }

    /// Forgets what was read: something could not be written, so it may not be what is on the disk.
    pub fn let_go(&mut self) {
        self.kept = None;
    }
}

impl Kept {
    fn load(root: Folder) -> io::Result<Self> {
        let mut generations: BTreeMap<String, Generation> = BTreeMap::new();
        let chunks = Chunks::load(root, &mut |text| {
            let Ok(found) = serde_json::from_slice::<Generation>(text) else { return };
            let before = generations.get(&found.id);
            if before.is_some_and(|before| before.at > found.at) {
                return;
            }
            if let Some(whole) = found.after(before) {
                generations.insert(whole.id.clone(), whole);
            }
        })?;
        let open = generations.values().filter(|generation| generation.ended.is_none());
        let current = open.map(|generation| (generation.path.clone(), generation.id.clone())).collect();
        Ok(Self { chunks, generations, current, growing: HashMap::new() })
    }

    /// All generations, those of a session one after the other, oldest first.
    pub fn generations(&self) -> Vec<&Generation> {
        let mut all: Vec<&Generation> = self.generations.values().collect();
        all.sort_by(|one, other| (&one.path, one.began).cmp(&(&other.path, other.began)));
        all
    }

    /// How many bytes the archive has.
    pub fn bytes(&self) -> u64 {
        self.chunks.bytes()
    }

    /// Writes the first `bytes` of a generation, and returns how many of them are lost: what is damaged is left out.
    pub fn copy(&mut self, generation: &Generation, bytes: u64, out: &mut dyn Write) -> io::Result<u64> {
        let (mut at, mut lost) = (0, 0);
        for part in &generation.parts {
            let wanted = part.bytes.min(bytes.saturating_sub(at));
            if wanted == 0 {
                break;
            }
            match self.chunks.get(part) {
                Ok(text) => out.write_all(text.get(..wanted as usize).ok_or(ErrorKind::UnexpectedEof)?)?,
                Err(_) => lost += wanted,
            }
            at += wanted;
        }
        Ok(lost)
    }

    /// Reads every chunk.
    pub fn check(&mut self) -> Damage {
        let bytes = self.chunks.files.iter().flatten().map(|stored| stored.damaged_bytes).sum();
        let mut damage = Damage { bytes, ..Damage::default() };
        let mut known: HashMap<blake3::Hash, bool> = HashMap::new();
        for generation in self.generations.values() {
            let mut is_whole = true;
            for part in &generation.parts {
                let is_there = *known.entry(part.hash).or_insert_with(|| self.chunks.get(part).is_ok());
                is_whole &= is_there;
            }
            if !is_whole {
                damage.generations.push(generation.clone());
            }
        }
        damage.chunks = known.values().filter(|is_there| !**is_there).count() as u64;
        damage
    }
}

#[cfg(test)]
mod tests;
