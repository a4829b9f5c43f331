//! The files of the archive, and what is where in them.

use super::frame::{Frame, Frames, HEADER_BYTES, Kind, frames};
use crate::disk::folder::Folder;
use crate::platform::writing::{sync, sync_data};
use blake3::Hash;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use zstd::bulk::Compressor;

/// As hard as `zstd` does by itself.
const LEVEL: i32 = 3;
/// A file that is longer is not appended to any more.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// How much is gathered before it is written.
const GATHERED_BYTES_MAX: usize = 1 << 20;

/// A folder of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Rack {
    /// What growing sessions have grown by since their last whole chunk.
    Recent,
    /// Chunks.
    Packs,
    /// States of generations.
    Sessions,
}

impl Rack {
    /// In the order in which they are read: what leaves the first one is in the others before.
    pub(super) const ALL: [Self; 3] = [Self::Recent, Self::Sessions, Self::Packs];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Recent => "recent",
            Self::Packs => "packs",
            Self::Sessions => "sessions",
        }
    }
}

/// A part of a text: the chunk with this hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, u64)", into = "(String, u64)")]
pub(super) struct Part {
    pub(super) hash: Hash,
    pub(super) bytes: u64,
}

impl From<Part> for (String, u64) {
    fn from(part: Part) -> Self {
        (part.hash.to_hex().to_string(), part.bytes)
    }
}

impl From<(String, u64)> for Part {
    /// What is no hash is that of no chunk.
    fn from((hex, bytes): (String, u64)) -> Self {
        Self { hash: Hash::from_hex(&hex).unwrap_or(Hash::from_bytes([0; 32])), bytes }
    }
}

/// A file of the archive.
pub(super) struct Stored {
    pub(super) rack: Rack,
    pub(super) name: String,
    pub(super) file: Arc<File>,
    pub(super) bytes: u64,
    pub(super) damaged_bytes: u64,
}

/// A file that this process appends to. Nobody else does, and once it is left it never changes.
struct Open {
    number: usize,
    gathered: Vec<u8>,
    is_dirty: bool,
}

/// All files, and where each chunk is.
pub(super) struct Chunks {
    root: Folder,
    /// A file that was deleted is `None`.
    pub(super) files: Vec<Option<Stored>>,
    index: HashMap<Hash, (usize, Frame)>,
    open: HashMap<Rack, Open>,
    compressor: Compressor<'static>,
    /// Counts the files that this process makes.
    made: u32,
}

impl Chunks {
    /// Reads where everything is, and gives each state of a generation to `state`, those of a file in their order.
    pub(super) fn load(root: Folder, state: &mut dyn FnMut(&[u8])) -> io::Result<Self> {
        let (index, open) = <(HashMap<_, _>, HashMap<_, _>)>::default();
        let compressor = Compressor::new(LEVEL)?;
        let mut chunks = Self { root, files: Vec::new(), index, open, compressor, made: 0 };
        for rack in Rack::ALL {
            let Some(folder) = chunks.root.child(rack.name())? else { continue };
            for name in folder.names()? {
                // It may have been deleted since.
                let Some(file) = folder.open_file(&name, crate::platform::OFlags::RDONLY)? else { continue };
                chunks.load_file(rack, name, file, state)?;
            }
        }
        Ok(chunks)
    }

    fn load_file(
        &mut self,
        rack: Rack,
        name: String,
        file: File,
        state: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        let Frames { all, mut damaged_bytes } = frames(&file)?;
        for frame in all {
            match (frame.kind, frame) {
                (Kind::Chunk, frame) => self.know(self.files.len(), frame),
                (Kind::Generation, frame) => match frame.read(&file) {
                    Ok(text) => state(&text),
                    Err(_) => damaged_bytes += u64::from(frame.packed),
                },
            }
        }
        let bytes = file.metadata()?.len();
        self.files.push(Some(Stored { rack, name, file: Arc::new(file), bytes, damaged_bytes }));
        Ok(())
    }

    fn know(&mut self, number: usize, frame: Frame) {
        self.index.insert(frame.hash, (number, frame));
    }

    /// Where a chunk is.
    pub(super) fn place(&self, hash: &Hash) -> Option<(usize, Frame)> {
        self.index.get(hash).copied()
    }

    fn rack_of(&self, number: usize) -> Option<Rack> {
        Some(self.files[number].as_ref()?.rack)
    }

    /// Stores a chunk there, unless it is there or in a place that lasts longer.
    pub(super) fn put(&mut self, rack: Rack, text: &[u8]) -> io::Result<Part> {
        let part = Part { hash: blake3::hash(text), bytes: text.len() as u64 };
        let there = self.place(&part.hash).and_then(|(number, _)| self.rack_of(number));
        if there.is_none_or(|there| there < rack) {
            let (number, frame) = self.append(rack, Kind::Chunk, part.hash, text)?;
            self.know(number, frame);
        }
        Ok(part)
    }

    /// Stores the state of a generation.
    pub(super) fn put_state(&mut self, rack: Rack, text: &[u8]) -> io::Result<()> {
        self.append(rack, Kind::Generation, blake3::hash(text), text).map(drop)
    }

    /// A chunk.
    pub(super) fn get(&mut self, part: &Part) -> io::Result<Vec<u8>> {
        let (number, frame) = self.place(&part.hash).ok_or(ErrorKind::NotFound)?;
        let rack = self.rack_of(number);
        if let Some(open) = rack.and_then(|rack| self.open.get(&rack)).filter(|open| open.number == number)
            && !open.gathered.is_empty()
        {
            self.write(rack.unwrap_or(Rack::Packs))?;
        }
        let stored = self.files[number].as_ref().ok_or(ErrorKind::NotFound)?;
        frame.read(&stored.file)
    }

    fn append(&mut self, rack: Rack, kind: Kind, hash: Hash, text: &[u8]) -> io::Result<(usize, Frame)> {
        let packed = self.compressor.compress(text)?;
        let frame = Frame { kind, hash, at: 0, packed: packed.len() as u32, plain: text.len() as u32 };
        self.append_frame(rack, frame, &packed)
    }

    /// Appends a frame that is compressed already.
    pub(super) fn append_frame(
        &mut self,
        rack: Rack,
        frame: Frame,
        packed: &[u8],
    ) -> io::Result<(usize, Frame)> {
        let full = self.open.get(&rack).is_some_and(|open| self.length(open.number) >= FILE_BYTES_MAX);
        if full {
            self.close(rack)?;
        }
        if !self.open.contains_key(&rack) {
            self.begin(rack)?;
        }
        let Some(open) = self.open.get_mut(&rack) else { return Err(ErrorKind::NotFound.into()) };
        let number = open.number;
        let Some(stored) = &mut self.files[number] else { return Err(ErrorKind::NotFound.into()) };
        let frame = Frame { at: stored.bytes, ..frame };
        open.gathered.extend_from_slice(&frame.header());
        open.gathered.extend_from_slice(packed);
        open.is_dirty = true;
        stored.bytes = frame.end();
        if open.gathered.len() >= GATHERED_BYTES_MAX {
            self.write(rack)?;
        }
        Ok((number, frame))
    }

    fn length(&self, number: usize) -> u64 {
        self.files[number].as_ref().map_or(0, |stored| stored.bytes)
    }

    /// Begins a file of a name that no file has had.
    fn begin(&mut self, rack: Rack) -> io::Result<()> {
        self.made += 1;
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ");
        let name = format!("{now}-{}-{}.zst", std::process::id(), self.made);
        let folder = self.root.make_child(rack.name())?;
        let file = Arc::new(folder.create(&name)?);
        folder.sync()?;
        let number = self.files.len();
        self.files.push(Some(Stored { rack, name, file, bytes: 0, damaged_bytes: 0 }));
        self.open.insert(rack, Open { number, gathered: Vec::new(), is_dirty: false });
        Ok(())
    }

    fn write(&mut self, rack: Rack) -> io::Result<()> {
        let Some(open) = self.open.get_mut(&rack) else { return Ok(()) };
        let Some(stored) = &self.files[open.number] else { return Ok(()) };
        let written = (&*stored.file).write_all(&open.gathered);
        open.gathered.clear();
        if written.is_err() {
            // What follows the frame that was cut off would not lie where it is said to.
            self.open.remove(&rack);
        }
        written
    }

    /// Makes what was stored durable: the chunks before the states that name them.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        for rack in [Rack::Packs, Rack::Recent, Rack::Sessions] {
            self.write(rack)?;
            let Some(open) = self.open.get_mut(&rack).filter(|open| open.is_dirty) else { continue };
            let Some(stored) = &self.files[open.number] else { continue };
            sync_data(&stored.file)?;
            open.is_dirty = false;
        }
        Ok(())
    }

    /// Leaves the file that is appended to.
    pub(super) fn close(&mut self, rack: Rack) -> io::Result<()> {
        self.write(rack)?;
        if let Some(open) = self.open.remove(&rack)
            && let Some(stored) = &self.files[open.number]
        {
            sync(&stored.file)?;
        }
        Ok(())
    }

    /// Writes the chunks of a file that are needed into another one.
    pub(super) fn copy_needed(&mut self, number: usize, needed: &HashSet<Hash>) -> io::Result<()> {
        let of_file = |(of, frame): &(usize, Frame)| *of == number && needed.contains(&frame.hash);
        let mut frames: Vec<Frame> = self.all().filter(of_file).map(|(_, frame)| frame).collect();
        frames.sort_by_key(|frame| frame.at);
        let Some(file) = self.files[number].as_ref().map(|stored| stored.file.clone()) else { return Ok(()) };
        for frame in frames {
            let whole = frame.whole(&file)?;
            let (number, frame) = self.append_frame(Rack::Packs, frame, &whole[HEADER_BYTES..])?;
            self.know(number, frame);
        }
        Ok(())
    }

    /// Whether a part is on this rack.
    pub(super) fn is_on(&self, rack: Rack, part: &Part) -> bool {
        self.place(&part.hash).is_some_and(|(number, _)| self.rack_of(number) == Some(rack))
    }

    /// How long the file on this rack is that is appended to.
    pub(super) fn open_bytes(&self, rack: Rack) -> u64 {
        self.open.get(&rack).map_or(0, |open| self.length(open.number))
    }

    /// Deletes a file, of which nothing is needed any more.
    pub(super) fn delete(&mut self, number: usize) -> io::Result<()> {
        let Some(stored) = self.files[number].take() else { return Ok(()) };
        self.open.retain(|_, open| open.number != number);
        self.index.retain(|_, (of, _)| *of != number);
        match self.root.child(stored.rack.name())? {
            Some(folder) => folder.remove(&stored.name),
            None => Ok(()),
        }
    }

    /// The files on a rack.
    pub(super) fn on(&self, rack: Rack) -> Vec<usize> {
        let is_there = |number: &usize| self.rack_of(*number) == Some(rack);
        (0..self.files.len()).filter(is_there).collect()
    }

    /// All chunks, with the file that each is in.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, Frame)> {
        self.index.values().copied()
    }

    /// How many bytes all files have.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().flatten().map(|stored| stored.bytes).sum()
    }
}
