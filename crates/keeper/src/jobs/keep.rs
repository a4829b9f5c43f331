//! `keep`: copies what sessions become into the archive, and puts them back.

use crate::archive::{
    Archive, Change, Dropped, Generation, KeepLimits, Kept, Look, MendedSince, TextsIn, Writing,
    acting_as_owner, is_absent,
};
use crate::ask::error::Error;
use crate::disk::folder::{Folder, Place, as_owner_of, folder_of};
use crate::places::store::real_path;
use crate::platform::acting;
use crate::vault::Vault;
use jiff::Timestamp;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long others may have to wait until they can write to the archive.
const WRITING_MAX: Duration = Duration::from_millis(500);
/// How much is compared at a time, of files that have grown.
const VERIFIED_BYTES_MAX: u64 = 16 << 20;
const VERB: &str = "keep what sessions become";

/// Keeps sessions in an archive.
pub struct Keeper {
    archive: Archive,
    /// Tells which changes were Tailor's own.
    vault: Option<Vault>,
}

impl Keeper {
    /// Keeps sessions in this archive.
    pub fn new(archive: Archive, vault: Option<Vault>) -> Self {
        Self { archive, vault }
    }

    /// Looks at sessions one after the other, and keeps what they have become; `seen` is told what each look has shown.
    ///
    /// # Errors
    ///
    /// When the archive cannot be written.
    pub fn look(
        &mut self,
        paths: &[PathBuf],
        seen: &mut dyn FnMut(&Path, Result<Change, Error>),
    ) -> Result<(), Error> {
        let mut left = paths.iter().peekable();
        while left.peek().is_some() {
            self.write(|writing, is_mended| {
                let began = Instant::now();
                while began.elapsed() < WRITING_MAX
                    && let Some(path) = left.next()
                {
                    let looked = match without_links(path) {
                        Ok(path) => writing.look(&path, is_mended)?,
                        Err(cause) => Look::Unreadable(cause),
                    };
                    let result = match looked {
                        Look::Seen(change) => Ok(change),
                        Look::Unreadable(cause) => Err(Error::new(path, Error::OPEN, cause)),
                    };
                    seen(path, result);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Compares what has grown with what was read before, as far as it takes no long time.
    ///
    /// # Errors
    ///
    /// When the archive cannot be written.
    pub fn verify(&mut self) -> Result<(), Error> {
        self.write(|writing, is_mended| writing.verify(VERIFIED_BYTES_MAX, is_mended))
    }

    /// Looks after the archive: reads once more what has stopped growing, and notes which sessions are gone. Returns how many are.
    ///
    /// # Errors
    ///
    /// When the archive cannot be written.
    pub fn rest(&mut self) -> Result<u64, Error> {
        self.write(|writing, is_mended| {
            writing.rest(is_mended)?;
            writing.look_for_gone()
        })
    }

    /// Makes whole chunks of all pieces, and drops what is beyond the limits.
    ///
    /// # Errors
    ///
    /// When the archive cannot be written.
    pub fn bound(&mut self, limits: KeepLimits) -> Result<Dropped, Error> {
        self.write(|writing, _| writing.bound(limits))
    }

    /// Puts asterisks in the place of texts wherever they were kept. Returns in how many generations that was; with `is_dry` nothing
    /// changes.
    ///
    /// # Errors
    ///
    /// When the archive cannot be written.
    pub fn forget(&mut self, texts_in: TextsIn<'_>, is_dry: bool) -> Result<u64, Error> {
        if !self.archive.root().exists() {
            return Ok(0);
        }
        self.write(|writing, _| writing.forget(texts_in, is_dry))
    }

    /// How many bytes the archive has; 0 if nothing was kept yet.
    pub fn bytes(&self) -> u64 {
        self.archive.bytes()
    }

    fn write<T>(
        &mut self,
        act: impl FnOnce(&mut Writing<'_>, MendedSince<'_>) -> io::Result<T>,
    ) -> Result<T, Error> {
        let vault = self.vault.clone();
        let is_mended = |path: &Path, since| vault.as_ref().is_some_and(|vault| has_run(vault, path, since));
        let done = self.archive.write().and_then(|mut writing| {
            let done = act(&mut writing, &is_mended)?;
            writing.sync()?;
            Ok(done)
        });
        done.map_err(|cause| {
            self.archive.let_go();
            Error::new(self.archive.root(), VERB, cause)
        })
    }
}

/// Whether a run has changed a file since a time.
fn has_run(vault: &Vault, path: &Path, since: i64) -> bool {
    let runs = vault.runs(path).unwrap_or_default();
    let times = runs.iter().flatten().filter_map(|run| run.time.parse::<Timestamp>().ok());
    times.map(Timestamp::as_millisecond).any(|time| time >= since)
}

/// The path without links, also of a file that is gone.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    match real_path_as_owner(path) {
        Err(cause) if is_absent(&cause) => {
            let (folder, name) = (real_path_as_owner(folder_of(path)), path.file_name().unwrap_or_default());
            Ok(folder.map_or_else(|_| path.to_path_buf(), |folder| folder.join(name)))
        }
        real => real,
    }
}

fn real_path_as_owner(path: &Path) -> io::Result<PathBuf> {
    let _acting = acting_as_owner(path)?;
    real_path(path)
}

/// Writes the first `bytes` of a generation to a path where nothing is, and makes the folders that are missing. Returns how many of
/// them are lost: with `partly`, damaged chunks are left out.
///
/// # Errors
///
/// When something is there, a chunk is damaged and `partly` is not set, or a file cannot be written. Then nothing is there.
pub fn put_back(
    kept: &mut Kept,
    generation: &Generation,
    bytes: u64,
    to: &Path,
    partly: bool,
) -> Result<u64, Error> {
    const VERB: &str = "restore the session";
    let links = if to == generation.path { Links::Refused } else { Links::Followed };
    let mut fill = |file: &File| copy_to(kept, generation, bytes, partly, file);
    let written = as_owner_of(folder_of(to), || write_new(to, links, &mut fill));
    written.map_err(|cause| match cause.kind() {
        ErrorKind::AlreadyExists => Error::new(to, VERB, io::Error::other("there is a file"))
            .with_way_out("nothing is replaced; pass --to PATH to put it elsewhere"),
        ErrorKind::InvalidData => {
            Error::new(to, VERB, cause).with_way_out("pass --partly to restore the rest")
        }
        _ => Error::new(to, VERB, cause),
    })
}

fn copy_to(
    kept: &mut Kept,
    generation: &Generation,
    bytes: u64,
    partly: bool,
    file: &File,
) -> io::Result<u64> {
    if acting::is_another() && !generation.attributes.are_of_the_owner_of(file)? {
        return Err(io::Error::other(
            "the folder belongs to somebody else than the session did; --to PATH puts it elsewhere",
        ));
    }
    let mut out = BufWriter::new(file);
    let lost = kept.copy(generation, bytes, &mut out)?;
    out.flush()?;
    if lost > 0 && !partly {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("{lost} bytes of it are damaged")));
    }
    // A home that is put elsewhere may belong to somebody else.
    let _ = generation.attributes.give(file);
    Ok(lost)
}

/// Makes a file that appears complete or not at all, and replaces none.
fn write_new(path: &Path, links: Links, fill: &mut dyn FnMut(&File) -> io::Result<u64>) -> io::Result<u64> {
    let (folder, name) = (folder_for(path, links)?, path.file_name().ok_or(ErrorKind::IsADirectory)?);
    let beside = format!(".tailor-{}-{}.tmp", Timestamp::now().as_microsecond(), std::process::id());
    let new = folder.create(&beside)?;
    let written = fill(&new).and_then(|lost| {
        new.sync_all()?;
        folder.link(&beside, name)?;
        Ok(lost)
    });
    folder.remove(&beside)?;
    folder.sync()?;
    written
}

/// Whether links on a path are followed.
#[derive(Clone, Copy)]
enum Links {
    /// It is one that the user wrote.
    Followed,
    /// It had none when the session was kept.
    Refused,
}

/// The folder for a file. Makes it and those above it if they are missing.
fn folder_for(path: &Path, links: Links) -> io::Result<Folder> {
    let (folder, there) = (folder_of(path), nearest_folder(path));
    let below = folder.strip_prefix(there).unwrap_or(folder);
    let real = match links {
        Links::Refused => there.to_path_buf(),
        Links::Followed => real_path(there)?,
    };
    let held = Place::hold(&real.join("file"))?;
    below.components().try_fold((*held).clone(), |folder, name| folder.make_child(name))
}

/// The lowest folder of a path that is there.
fn nearest_folder(path: &Path) -> &Path {
    let above = folder_of(path).ancestors().find(|above| above.exists());
    above.unwrap_or(Path::new("."))
}
