//! What a Tailor that was killed left beside a transcript, and what becomes of it.
//!
//! The second file of a replacement is called `.tailor-NAME-INODE-BEFORE-AFTER-END.tmp`: a hash of the transcript's
//! name, the old file's inode, the lengths of the text before and after, and a hash of its last bytes before, all in
//! hex. So it tells by itself what it is, whichever vault was in use: a file with another inode is a new text that
//! was never put in place; the one with this inode is the old file, to which other programs appended from BEFORE
//! on, unless END tells that one of them wrote it anew.

use crate::error::Error;
use crate::gate::Pass;
use crate::lease::{Lease, Refused};
use crate::new_text::{NewText, copy_span};
use crate::outcome::Deferral;
use crate::replace::Replacement;
use crate::snapshot::Snapshot;
use crate::step::{Step, before};
use crate::tail::Known;
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use transcript::Span;
use walkdir::WalkDir;

const BEGIN: &str = ".tailor-";
const END: &str = ".tmp";
/// End of the name that an old file has for an instant where names cannot be exchanged.
const ASIDE_END: &str = ".old";

/// How much is read at a time.
const PIECE_BYTES: usize = 64 * 1024;

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
    /// Hash of the last bytes of the text that was read.
    end: String,
}

/// The name for the second file of a replacement by a text of `after` bytes.
pub(crate) fn name(old: &Snapshot, after: u64) -> PathBuf {
    let (name, inode, before) = (hash_of(&old.path), old.metadata.ino(), old.bytes());
    let end = short(&old.known().end());
    old.path.with_file_name(format!("{BEGIN}{name}-{inode:x}-{before:x}-{after:x}-{end}{END}"))
}

/// Another name for the same file, for an instant.
pub(crate) fn aside(temporary: &Path) -> PathBuf {
    temporary.with_extension(&ASIDE_END[1..])
}

fn hash_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    short(name.as_encoded_bytes())
}

/// How many hex digits of a hash stand in a name.
const DIGITS: usize = 16;

fn short(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..DIGITS].to_string()
}

impl Leftover {
    fn parse(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_prefix(BEGIN)?;
        let name = name.strip_suffix(END).or_else(|| name.strip_suffix(ASIDE_END))?;
        let mut parts = name.split('-');
        let of = parts.next()?.to_string();
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (inode, before, after) = (number()?, number()?, number()?);
        let end = parts.next()?.to_string();
        let sound = of.len() == DIGITS && end.len() == DIGITS && parts.next().is_none();
        sound.then(|| Self { path: path.to_path_buf(), of, inode, before, after, end })
    }

    /// Whether the old file, which is so long now, still begins with the text that was read.
    fn begins_as_read(&self, old: &File, length: u64) -> io::Result<bool> {
        if length < self.before {
            return Ok(false);
        }
        Ok(short(&Known::of(old, self.before)?.end()) == self.end)
    }
}

/// How the leftovers of one file stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// There are none.
    Nothing,
    /// All lines are in their place, but a program has an old file open and may write more to it.
    Held,
    /// Something was done about one of them. The snapshot may be of a file that is not at the path any more: look again.
    Something,
}

/// Finishes what was left of replacements of one file, of which we hold the lock.
pub(crate) fn settle(snapshot: &Snapshot) -> Result<Result<Settled, Deferral>, Error> {
    let mut settled = Settled::Nothing;
    for leftover in left_of(&snapshot.path)? {
        match finish(&leftover, snapshot)? {
            Ok(Settled::Nothing) => {}
            Ok(Settled::Held) => settled = Settled::Held,
            other => return Ok(other),
        }
    }
    Ok(Ok(settled))
}

/// Finishes what was left of replacements of files at or below a path. Gives what went wrong; files that another
/// Tailor is working on are passed over.
pub fn settle_all(path: &Path) -> Vec<Error> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = if path.is_dir() { path } else { parent };
    let depth = if path.is_dir() { usize::MAX } else { 1 };
    let walk = WalkDir::new(folder).max_depth(depth).into_iter().filter_map(Result::ok);
    let found: Vec<Leftover> = walk.filter_map(|entry| Leftover::parse(entry.path())).collect();
    let mut errors = Vec::new();
    for leftover in found {
        let settled = match target(&leftover) {
            Ok(Some(path)) => settle_first(&path),
            Ok(None) => abandoned(&leftover),
            Err(error) => Err(error),
        };
        errors.extend(settled.err());
    }
    errors
}

/// How often a file is looked at again after something was settled. Each round settles one leftover for good, unless
/// its program goes on writing to it.
pub(crate) const ROUNDS_MAX: usize = 8;

/// How long late lines are tried to be put into place before they are left to the next run. Most programs are out in
/// milliseconds.
const LATE_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 5 });

/// After which time that is tried again.
const LATE_EVERY: Duration = Duration::from_millis(20);

/// Puts lines into place that came late to a file that one of us has replaced. Gives why they still have to wait; then
/// nothing is lost, and another call goes on.
///
/// # Errors
///
/// When what an interrupted run left, or the transcript, cannot be read or written.
pub fn settle_late(path: &Path) -> Result<Option<Deferral>, Error> {
    let until = Instant::now() + LATE_PATIENCE;
    loop {
        match settle_path(path)? {
            Some(_) if Instant::now() < until => sleep(LATE_EVERY),
            waits => return Ok(waits.map(|why| Deferral::LateLines(why.why()))),
        }
    }
}

/// Gives why something that was left has to wait.
fn settle_path(path: &Path) -> Result<Option<Deferral>, Error> {
    for _ in 0..ROUNDS_MAX {
        let snapshot = match Snapshot::open_locked(path, None)? {
            Ok(Ok(snapshot)) => snapshot,
            Ok(Err(reason)) => return Ok(Some(reason)),
            // Nothing of ours can be there.
            Err(_) => return Ok(None),
        };
        match settle(&snapshot)? {
            Ok(Settled::Something) => {}
            Ok(Settled::Nothing) => return Ok(None),
            Ok(Settled::Held) => return Ok(Some(Deferral::HeldOpen)),
            Err(reason) => return Ok(Some(reason)),
        }
    }
    Ok(Some(Deferral::Changed))
}

/// The same at the start, when a path that another Tailor is working on is left to it.
fn settle_first(path: &Path) -> Result<(), Error> {
    match settle_path(path)? {
        None | Some(Deferral::OtherTailor) => Ok(()),
        Some(reason) => {
            Err(Error::new(path, "finish an interrupted run", io::Error::other(reason.to_string())))
        }
    }
}

/// What was left of replacements of a file.
fn left_of(path: &Path) -> Result<Vec<Leftover>, Error> {
    let (folder, of) = (path.parent().unwrap_or(Path::new("/")), hash_of(path));
    let fail = |cause| Error::new(folder, "look for what an interrupted run left", cause);
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(fail)? {
        let leftover = Leftover::parse(&entry.map_err(fail)?.path());
        found.extend(leftover.filter(|leftover| leftover.of == of));
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

fn finish(leftover: &Leftover, now: &Snapshot) -> Result<Result<Settled, Deferral>, Error> {
    let fail = |cause| Error::new(&now.path, "finish an interrupted run", cause);
    let Some((old, metadata)) = open(leftover).map_err(fail)? else { return Ok(Ok(Settled::Nothing)) };
    if metadata.ino() != leftover.inode || metadata.ino() == now.metadata.ino() {
        // Never put in place, or the old file has only just got its second name.
        return remove(leftover).map(|()| Ok(Settled::Something)).map_err(fail);
    }
    // Nobody may be in the middle of a line when we look for the last time.
    let lease = Lease::read(&old);
    let merged = Merged::new(leftover, &old, now).map_err(fail)?;
    if let Some(merged) = merged {
        let work = Replacement::stage(now, merged.length())?;
        work.write(&merged, || Ok(()))?;
        // Whoever calls us has asked already.
        let landed = work.land(|| Ok(Ok(Pass::default())))?;
        return Ok(landed.map(|_| Settled::Something));
    }
    match lease {
        Err(Refused::Busy) => Ok(Ok(Settled::Held)),
        _ => remove(leftover).map(|()| Ok(Settled::Something)).map_err(fail),
    }
}

/// The text that holds what came to either file.
///
/// Lines that came to the old one go where they belong in the new one: behind those that are in both, before those
/// that other programs have appended since. So each program's lines keep their order, and the last line, from
/// which an agent goes on, stays the last. If a program has written the old file anew, it is its text that counts,
/// and the new one's late lines go behind it.
struct Merged<'a> {
    old: &'a File,
    /// Parts of the new file, and of the old one.
    parts: Vec<(From, Span)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    New,
    Old,
}

impl<'a> Merged<'a> {
    /// `None` if the new file has all of it.
    fn new(leftover: &Leftover, old: &'a File, now: &Snapshot) -> io::Result<Option<Self>> {
        // Its program may have cut the new file short meanwhile, so that this place is none any more.
        let sound = now.bytes() >= leftover.after && begins_line(&now.file, leftover.after)?;
        let there = lines(&now.file, if sound { leftover.after } else { 0 }, now.bytes())?;
        let length = old.metadata()?.len();
        let parts = if leftover.begins_as_read(old, length)? {
            let came = lines(old, leftover.before, length)?;
            bring_over(old, &came, now, &there, sound)?
        } else {
            give_back(&lines(old, 0, length)?, length, now, &there)?
        };
        Ok(parts.map(|parts| Self { old, parts }))
    }
}

/// Whether a line begins at this place.
fn begins_line(file: &File, at: u64) -> io::Result<bool> {
    let mut before = [b'\n'];
    if let Some(at) = at.checked_sub(1) {
        file.read_exact_at(&mut before, at)?;
    }
    Ok(before == *b"\n")
}

/// The new file with the lines that came to the old one; `None` if it has them. `in_order` says whether the lines that
/// are there are those that came since.
fn bring_over(
    old: &File,
    came: &[Line],
    now: &Snapshot,
    there: &[Line],
    in_order: bool,
) -> io::Result<Option<Vec<(From, Span)>>> {
    let common = came.iter().zip(there).take_while(|(one, other)| one.hash == other.hash).count();
    let missing = missing(&came[common..], &there[common..]);
    let Some(&first) = missing.first() else { return Ok(None) };
    // If some that came late were brought over already, behind what others had appended, the rest follows them.
    let at_once = in_order && missing.len() == came.len() - common;
    let end = there.last().map_or(now.bytes(), |line| line.span.end);
    let at = there.get(common).filter(|_| at_once).map_or(end, |line| line.span.start);
    let rest = Span::new(at, now.bytes());
    let rest = Span::new(rest.start + torn_bytes(&now.file, rest, old, first)?, rest.end);
    let mut parts = vec![(From::New, Span::new(0, at))];
    parts.extend(missing.into_iter().map(|line| (From::Old, line)));
    parts.push((From::New, rest));
    Ok(Some(parts))
}

/// The old file with the lines that came to the new one; `None` if that has them all, because it has been given back
/// before.
fn give_back(
    old: &[Line],
    length: u64,
    now: &Snapshot,
    there: &[Line],
) -> io::Result<Option<Vec<(From, Span)>>> {
    if missing(old, &lines(&now.file, 0, now.bytes())?).is_empty() {
        return Ok(None);
    }
    let late = missing(there, old).into_iter().map(|line| (From::New, line));
    Ok(Some([(From::Old, Span::new(0, length))].into_iter().chain(late).collect()))
}

/// How many of the last bytes are the beginning of a line without its end, which the disk lost.
fn torn_bytes(new: &File, rest: Span, old: &File, line: Span) -> io::Result<u64> {
    if rest.is_empty() || rest.len() >= line.len() {
        return Ok(0);
    }
    let (mut torn, mut whole) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    let mut at = 0;
    while at < rest.len() {
        let length = (rest.len() - at).min(PIECE_BYTES as u64) as usize;
        new.read_exact_at(&mut torn[..length], rest.start + at)?;
        old.read_exact_at(&mut whole[..length], line.start + at)?;
        if torn[..length] != whole[..length] {
            return Ok(0);
        }
        at += length as u64;
    }
    Ok(rest.len())
}

/// The lines of `one` that are not in `other`, each as often as it is missing.
fn missing(one: &[Line], other: &[Line]) -> Vec<Span> {
    let mut count: HashMap<[u8; 32], u64> = HashMap::new();
    for line in other {
        *count.entry(line.hash).or_default() += 1;
    }
    let mut missing = Vec::new();
    for line in one {
        match count.get_mut(&line.hash).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => missing.push(line.span),
        }
    }
    missing
}

impl NewText for Merged<'_> {
    fn length(&self) -> u64 {
        self.parts.iter().map(|(_, span)| span.len()).sum()
    }

    fn write(&self, original: &File, out: &File) -> io::Result<()> {
        for (from, span) in &self.parts {
            copy_span(if *from == From::Old { self.old } else { original }, *span, out)?;
        }
        Ok(())
    }
}

/// A complete line, with its line break.
struct Line {
    span: Span,
    hash: [u8; 32],
}

/// The complete lines between two places.
fn lines(file: &File, from: u64, to: u64) -> io::Result<Vec<Line>> {
    let mut file = file;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::with_capacity(PIECE_BYTES, file.take(to.saturating_sub(from)));
    let mut lines = Vec::new();
    let (mut start, mut at, mut hash) = (from, from, blake3::Hasher::new());
    loop {
        let window = reader.fill_buf()?;
        if window.is_empty() {
            return Ok(lines);
        }
        let end = memchr::memchr(b'\n', window);
        let taken = end.map_or(window.len(), |end| end + 1);
        hash.update(&window[..taken]);
        reader.consume(taken);
        at += taken as u64;
        if end.is_some() {
            lines.push(Line { span: Span::new(start, at), hash: *hash.finalize().as_bytes() });
            start = at;
            hash.reset();
        }
    }
}
