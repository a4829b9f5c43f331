//! Which long files are being read, noted on the disk: what a daemon had in hand when it was killed is not the first thing that the
//! next one reads. And long files may not take all workers.

use keeper::{Folder, Stamp};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shorter files are not noted.
const NOTED_BYTES_MIN: u64 = 1 << 20;
/// Longer files are read by only some of the workers at a time.
const LONG_BYTES_MIN: u64 = 64 << 20;
/// How many long files are read at a time.
const LONG_MAX: usize = 2;
/// How long a long file waits until another one is read.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// How long a file waits with which one daemon was killed; twice as long for each one more.
const KILLED_PAUSE: Duration = Duration::from_secs(10 * 60);
/// The longest such wait.
const KILLED_PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest file of notes that is read.
const NOTES_BYTES_MAX: u64 = 1 << 20;

const ENDING: &str = ".reading";

/// A file that is being read, or was when a daemon was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    path: PathBuf,
    /// Its length and time then.
    stamp: (u64, (i64, i64)),
    /// How many daemons were killed while they read it.
    killed: u32,
}

/// What is being read.
pub(crate) struct Reading {
    began: Instant,
    /// `None` if notes cannot be written.
    notes: Option<Notes>,
    state: Mutex<State>,
}

/// Where notes are written.
struct Notes {
    folder: Folder,
    name: String,
    file: File,
}

#[derive(Default)]
struct State {
    now: Vec<Note>,
    suspects: Vec<Note>,
    long: usize,
}

/// A file is being read until this is dropped.
pub(crate) struct BeingRead<'r> {
    reading: &'r Reading,
    path: PathBuf,
    is_long: bool,
}

impl Reading {
    /// Reads what daemons that were killed had in hand, and begins notes of this one.
    pub(crate) fn open(state: &Path) -> Self {
        // At a first start there is no such folder yet.
        let folder = Folder::make_as_owner(state).ok();
        let suspects = folder.as_ref().map(left).unwrap_or_default();
        let state = Mutex::new(State { suspects, ..State::default() });
        let reading = Self { began: Instant::now(), notes: folder.and_then(Notes::begin), state };
        // Suspects stay known until they were read, however often the daemon starts.
        reading.write(&reading.state());
        reading
    }

    /// The files that are not read at first, and how long each waits.
    pub(crate) fn suspects(&self) -> Vec<(PathBuf, Duration)> {
        self.state().suspects.iter().map(|note| (note.path.clone(), pause(note.killed))).collect()
    }

    /// Notes that a file is being read; or how long to wait with it.
    pub(crate) fn begin(
        &self,
        path: &Path,
        stamp: Stamp,
        data_bytes: u64,
    ) -> Result<Option<BeingRead<'_>>, Duration> {
        if stamp.bytes < NOTED_BYTES_MIN {
            return Ok(None);
        }
        let mut state = self.state();
        let is_long = data_bytes >= LONG_BYTES_MIN;
        if is_long && state.long >= LONG_MAX {
            return Err(LONG_PAUSE);
        }
        let mut note = Note { path: path.to_path_buf(), stamp: (stamp.bytes, stamp.modified), killed: 0 };
        if let Some(at) = state.suspects.iter().position(|known| known.path == path) {
            let known = &state.suspects[at];
            let wait = pause(known.killed).saturating_sub(self.began.elapsed());
            // Once it has changed, it is another file.
            if known.stamp == note.stamp {
                if !wait.is_zero() {
                    return Err(wait);
                }
                note.killed = known.killed;
            }
            state.suspects.remove(at);
        }
        state.long += usize::from(is_long);
        state.now.push(note);
        self.write(&state);
        Ok(Some(BeingRead { reading: self, path: path.to_path_buf(), is_long }))
    }

    /// The daemon ends by itself: nothing that is being read had to do with it.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.now.clear();
        if state.suspects.is_empty()
            && let Some(Notes { folder, name, .. }) = &self.notes
        {
            drop(folder.remove(name));
        } else {
            self.write(&state);
        }
    }

    /// What the next daemon is to know if this one is killed now. The kernel keeps it, so it need not be synced.
    fn write(&self, state: &State) {
        let Some(Notes { file, .. }) = &self.notes else { return };
        let read = state.now.iter().map(|note| line(note, 1));
        let text: String = read.chain(state.suspects.iter().map(|note| line(note, 0))).collect();
        // A line that is not whole says nothing.
        drop(file.write_all_at(text.as_bytes(), 0).and_then(|()| file.set_len(text.len() as u64)));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    fn begin(folder: Folder) -> Option<Self> {
        let name = format!("{}{ENDING}", std::process::id());
        let file = folder.open_or_create(&name).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self { folder, name, file })
    }
}

impl Drop for BeingRead<'_> {
    fn drop(&mut self) {
        let mut state = self.reading.state();
        state.long -= usize::from(self.is_long);
        if let Some(at) = state.now.iter().position(|note| note.path == self.path) {
            state.now.remove(at);
        }
        self.reading.write(&state);
    }
}

fn pause(killed: u32) -> Duration {
    (KILLED_PAUSE * 2_u32.saturating_pow(killed.saturating_sub(1).min(16))).min(KILLED_PAUSE_MAX)
}

fn line(Note { path, stamp: (bytes, (seconds, nanos)), killed }: &Note, more: u32) -> String {
    let mut line = format!("{} {bytes} {seconds} {nanos} ", killed.saturating_add(more));
    for byte in path.as_os_str().as_bytes() {
        // Writing to a text cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
    line + ".\n"
}

fn note(line: &str) -> Option<Note> {
    let mut words = line.strip_suffix('.')?.split(' ');
    let killed = words.next()?.parse().ok()?;
    let stamp = (words.next()?.parse().ok()?, (words.next()?.parse().ok()?, words.next()?.parse().ok()?));
    let hex = words.next()?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let path: Option<Vec<u8>> = hex.chunks(2).map(byte).collect();
    Some(Note { path: OsString::from_vec(path?).into(), stamp, killed })
}

/// What daemons left that do not run any more. Their notes are removed.
fn left(folder: &Folder) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for name in folder.names().unwrap_or_default().iter().filter(|name| name.ends_with(ENDING)) {
        let Ok(file) = folder.open_or_create(name) else { continue };
        let mut text = String::new();
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok()
            && file.take(NOTES_BYTES_MAX).read_to_string(&mut text).is_ok()
        {
            notes.extend(text.lines().filter_map(note));
            drop(folder.remove(name));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use keeper::FileId;

    #[test]
    fn what_a_daemon_was_killed_with_is_not_tried_first() {
        let dir = tempfile::tempdir().unwrap();
        let stamp =
            |bytes| Stamp { file: FileId { device: 1, inode: 1 }, bytes, modified: (7, -1), changed: (8, 0) };
        let path = PathBuf::from(OsString::from_vec(b"/s/\xff bad\nname.jsonl".to_vec()));
        // At a first start there is no folder.
        let state = dir.path().join("tailor/watch");
        let kill = |reading: Reading| {
            // As the kernel does it: what is written stays, and the lock goes.
            let own = state.join(&reading.notes.as_ref().unwrap().name);
            let text = std::fs::read(&own).unwrap();
            drop(reading);
            std::fs::remove_file(&own).unwrap();
            std::fs::write(own.with_file_name("1.reading"), text).unwrap();
        };
        for (killed, wait) in [(0, 0), (1, 10), (2, 20), (3, 40)] {
            let reading = Reading::open(&state);
            let suspects = reading.suspects();
            assert_eq!(suspects.len(), usize::from(killed > 0));
            assert!(suspects.iter().all(|(known, after)| *known == path && after.as_secs() == wait * 60));
            // Others are read, and short ones are not noted.
            assert!(reading.begin(Path::new("/s/other"), stamp(2 << 20), 0).is_ok());
            assert!(reading.begin(&path, stamp(5), 5).unwrap().is_none());
            if killed > 0 {
                let left = reading.begin(&path, stamp(2 << 20), 0).err().unwrap();
                assert!(left <= Duration::from_secs(wait * 60) && left > Duration::from_secs(wait * 60 - 9));
            }
            let earlier = Instant::now().checked_sub(Duration::from_secs(wait * 60)).unwrap();
            let begun = Reading { began: earlier, ..reading };
            std::mem::forget(begun.begin(&path, stamp(2 << 20), 0).unwrap());
            kill(begun);
        }
        // Once it has changed, and once the daemon has ended by itself, nothing is known of it.
        let reading = Reading::open(&state);
        drop(reading.begin(&path, stamp(3 << 20), 0).unwrap());
        reading.end();
        drop(reading);
        assert!(Reading::open(&state).suspects().is_empty());
    }

    #[test]
    fn long_files_leave_workers_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let reading = Reading::open(dir.path());
        let stamp =
            Stamp { file: FileId { device: 1, inode: 1 }, bytes: 1 << 40, modified: (0, 0), changed: (0, 0) };
        let begin = |name: &str, data| reading.begin(Path::new(name), stamp, data);
        let first = begin("a", 1 << 40).unwrap();
        let _second = begin("b", 1 << 30).unwrap();
        assert!(begin("c", 1 << 30).is_err());
        // Most of it is a hole.
        drop(begin("d", 4096).unwrap());
        drop(first);
        assert!(begin("c", 1 << 30).is_ok());
    }
}
