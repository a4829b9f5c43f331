//! What a Tailor that was killed left beside a transcript, and what becomes of it.
//!
//! The second file of a replacement is called `.tailor-HASH-INODE-BEFORE-AFTER.tmp`: a hash of the transcript's name,
//! the old file's inode, and the lengths of the text before and after, all in hex. So it tells by itself what it
//! is, whichever vault was in use: a file with another inode is a new text that was never put in place; the one with
//! this inode is the old file, whose bytes from BEFORE on other programs appended.

use crate::error::Error;
use crate::lease::Lease;
use crate::outcome::Deferral;
use crate::replace::sync_folder;
use crate::snapshot::Snapshot;
use crate::step::{Step, before};
use crate::tail;
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

const BEGIN: &str = ".tailor-";
const END: &str = ".tmp";
/// End of the name that an old file has for an instant where names cannot be exchanged.
const ASIDE_END: &str = ".old";

/// A file that one of us left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Leftover {
    path: PathBuf,
    /// Hash of the transcript's name.
    of: String,
    inode: u64,
    /// Length of the text that was read.
    before: u64,
    /// Length of what it became.
    after: u64,
}

/// The name for the second file of a replacement.
pub(crate) fn name(path: &Path, inode: u64, before: u64, after: u64) -> PathBuf {
    let hash = hash_of(path);
    path.with_file_name(format!("{BEGIN}{hash}-{inode:x}-{before:x}-{after:x}{END}"))
}

/// Another name for the same file, for an instant.
pub(crate) fn aside(temporary: &Path) -> PathBuf {
    temporary.with_extension(&ASIDE_END[1..])
}

fn hash_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    blake3::hash(name.as_encoded_bytes()).to_hex()[..16].to_string()
}

impl Leftover {
    fn parse(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_prefix(BEGIN)?;
        let name = name.strip_suffix(END).or_else(|| name.strip_suffix(ASIDE_END))?;
        let mut parts = name.split('-');
        let of = parts.next()?.to_string();
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (inode, before, after) = (number()?, number()?, number()?);
        (of.len() == 16 && parts.next().is_none()).then(|| Self {
            path: path.to_path_buf(),
            of,
            inode,
            before,
            after,
        })
    }
}

/// Finishes what was left of replacements of one file, of which we hold the lock. `true` if something was left; then
/// the file may have grown.
pub(crate) fn settle(snapshot: &Snapshot) -> Result<bool, Error> {
    let folder = snapshot.path.parent().unwrap_or(Path::new("/"));
    let of = hash_of(&snapshot.path);
    let own = in_folder(folder)?.into_iter().filter(|leftover| leftover.of == of);
    let mut any = false;
    for leftover in own {
        finish(&leftover, snapshot)?;
        any = true;
    }
    Ok(any)
}

/// Finishes what was left of replacements of files at or below a path. Gives what went wrong; files that another
/// Tailor is working on are passed over.
pub fn settle_all(path: &Path) -> Vec<Error> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    let depth = if path.is_dir() { usize::MAX } else { 1 };
    let walk = WalkDir::new(folder).max_depth(depth).into_iter().filter_map(Result::ok);
    let found: Vec<Leftover> = walk.filter_map(|entry| Leftover::parse(entry.path())).collect();
    let mut errors = Vec::new();
    for leftover in found {
        let settled = match target(&leftover) {
            Ok(Some(path)) => settle_path(&path),
            Ok(None) => abandoned(&leftover),
            Err(error) => Err(error),
        };
        errors.extend(settled.err());
    }
    errors
}

fn settle_path(path: &Path) -> Result<(), Error> {
    match Snapshot::open_locked(path, None)? {
        Ok(Ok(snapshot)) => settle(&snapshot).map(drop),
        Ok(Err(Deferral::Locked)) | Err(_) => Ok(()),
        Ok(Err(reason)) => {
            Err(Error::new(path, "finish an interrupted run", io::Error::other(reason.to_string())))
        }
    }
}

fn in_folder(folder: &Path) -> Result<Vec<Leftover>, Error> {
    let fail = |cause| Error::new(folder, "look for what an interrupted run left", cause);
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(fail)? {
        found.extend(Leftover::parse(&entry.map_err(fail)?.path()));
    }
    Ok(found)
}

/// The transcript that a leftover belongs to.
fn target(leftover: &Leftover) -> Result<Option<PathBuf>, Error> {
    let folder = leftover.path.parent().unwrap_or(Path::new("/"));
    let fail = |cause| Error::new(folder, "look for what an interrupted run left", cause);
    for entry in folder.read_dir().map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if hash_of(&path) == leftover.of {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Of a transcript that is gone nothing is kept, but for lines that were appended to it while it was replaced.
fn abandoned(leftover: &Leftover) -> Result<(), Error> {
    let fail = |cause| Error::new(&leftover.path, "finish an interrupted run", cause);
    let Some((_, metadata)) = open(leftover).map_err(fail)? else { return Ok(()) };
    if metadata.ino() == leftover.inode && metadata.len() > leftover.before {
        let why = "its transcript is gone, but this file holds lines that came last; remove it if nobody needs them";
        return Err(fail(io::Error::other(why)));
    }
    remove(leftover).map_err(fail)
}

/// `None` if it is gone, or no file of ours.
fn open(leftover: &Leftover) -> io::Result<Option<(File, std::fs::Metadata)>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(&leftover.path, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => return Ok(None),
        other => File::from(other?),
    };
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}

fn remove(leftover: &Leftover) -> io::Result<()> {
    before(Step::Clean)?;
    std::fs::remove_file(&leftover.path)
}

fn finish(leftover: &Leftover, now: &Snapshot) -> Result<(), Error> {
    let fail = |cause| Error::new(&now.path, "finish an interrupted run", cause);
    let Some((old, metadata)) = open(leftover).map_err(fail)? else { return Ok(()) };
    if metadata.ino() != leftover.inode || metadata.ino() == now.metadata.ino() {
        // Never put in place, or the old file has only just got its second name.
        return remove(leftover).map_err(fail);
    }
    // Nobody may be in the middle of a line when we look for the last time.
    let lease = Lease::read(&old);
    bring_over(leftover, &old, &now.path).map_err(fail)?;
    match lease {
        // Who holds it may write more: the next run looks again.
        Err(crate::lease::Refused::Busy) => Ok(()),
        _ => remove(leftover).map_err(fail),
    }
}

/// Appends the complete lines that came to the old file from `before` on and are not in the new one.
fn bring_over(leftover: &Leftover, old: &File, path: &Path) -> io::Result<()> {
    let new = File::open(path)?;
    let from = if new.metadata()?.len() >= leftover.after { leftover.after } else { 0 };
    let mut there: HashMap<[u8; 32], u64> = HashMap::new();
    each_line(&new, from, &mut |_, hash| {
        *there.entry(hash).or_default() += 1;
        Ok(())
    })?;
    let mut missing = Vec::new();
    each_line(old, leftover.before, &mut |span, hash| {
        match there.get_mut(&hash).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => missing.push(span),
        }
        Ok(())
    })?;
    if missing.is_empty() {
        return Ok(());
    }
    before(Step::Drain)?;
    let mut to = tail::open_to_append(path)?;
    for (n, (start, end)) in missing.into_iter().enumerate() {
        let mut line = vec![0; (end - start) as usize];
        old.read_exact_at(&mut line, start)?;
        if n == 0 {
            line = join(&new, line)?;
        }
        to.write_all(&line)?;
    }
    before(Step::SyncNew)?;
    to.sync_all()?;
    before(Step::SyncFolder)?;
    sync_folder(path)
}

/// What to append so that the line stands for itself: a file whose last line is torn may end in the beginning of
/// this very line, if the disk lost its end.
fn join(new: &File, line: Vec<u8>) -> io::Result<Vec<u8>> {
    let end = new.metadata()?.len();
    let back = end.min(line.len() as u64);
    let mut last = vec![0; back as usize];
    new.read_exact_at(&mut last, end - back)?;
    let torn = match memchr::memrchr(b'\n', &last) {
        Some(at) => &last[at + 1..],
        None => &last[..],
    };
    if torn.is_empty() {
        return Ok(line);
    }
    Ok(match line.strip_prefix(torn) {
        Some(rest) => rest.to_vec(),
        None => [b"\n", &line[..]].concat(),
    })
}

/// Visits the complete lines from a place on, as spans with their line break, and the hash of each.
fn each_line(
    file: &File,
    from: u64,
    visit: &mut dyn FnMut((u64, u64), [u8; 32]) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = file;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut start, mut at, mut hash) = (from, from, blake3::Hasher::new());
    loop {
        let window = reader.fill_buf()?;
        if window.is_empty() {
            return Ok(());
        }
        let line = memchr::memchr(b'\n', window);
        let taken = line.map_or(window.len(), |line| line + 1);
        hash.update(&window[..taken]);
        reader.consume(taken);
        at += taken as u64;
        if line.is_some() {
            visit((start, at), *hash.finalize().as_bytes())?;
            start = at;
            hash.reset();
        }
    }
}
