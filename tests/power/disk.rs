//! A model of the page cache: what a disk may hold after a power cut.
//!
//! The model replays the calls of a trace. Written bytes stay in memory until their file is synced. Before that, the
//! kernel may write back any page in any of its states. Changed names stay in memory until their folder is synced.
//! Before that, any change of names may reach the disk, independently of the others.
//!
//! A cut then applies the losses to the real files, so that every file keeps its inode.

use crate::rng::Rng;
use crate::trace::{SystemCall, path_of, unquoted};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

const PAGE_BYTES: usize = 4096;

/// The number of an inode in [`Disk::inodes`].
type Number = usize;

type FolderNames = BTreeMap<PathBuf, Number>;

enum Inode {
    Folder,
    File(FileText),
}

/// A regular file.
struct FileText {
    /// Its bytes at the last sync, then after each call since.
    versions: Vec<Vec<u8>>,
    /// Ranges that were copied from another file. The trace does not show these bytes.
    copied: Vec<(usize, usize)>,
    /// What programs other than the one under test wrote to this inode.
    theirs: Vec<u8>,
}

/// Names that change together.
struct NameChange {
    names: Vec<(PathBuf, Option<Number>)>,
}

impl NameChange {
    fn is_in(&self, folder: &Path) -> bool {
        self.names.iter().any(|(name, _)| name.parent() == Some(folder))
    }

    fn happen(&self, names: &mut FolderNames) {
        for (name, inode) in &self.names {
            match inode {
                Some(inode) => names.insert(name.clone(), *inode),
                None => names.remove(name),
            };
        }
    }
}

/// The files and folders below `roots`.
pub(super) struct Disk {
    roots: Vec<PathBuf>,
    /// The working folder of the programs.
    current: PathBuf,
    inodes: Vec<Inode>,
    /// Names as programs see them.
    names: FolderNames,
    /// Files without a name, by what strace calls them, and the descriptors that they were opened with.
    unnamed: HashMap<PathBuf, Number>,
    descriptors: HashMap<usize, Number>,
    /// Names that are certainly on disk.
    lasting: FolderNames,
    /// Changes that may be on disk, oldest first.
    pending: Vec<NameChange>,
    /// Names whose removal was faked. A cut can bring them back with their inodes.
    ghosts: HashMap<PathBuf, Number>,
    /// Whether a program found such a name, which no real disk would have shown.
    haunted: bool,
}

/// A file that a cut left.
pub(super) struct Left {
    pub(super) path: PathBuf,
    /// What programs other than the one under test wrote to this inode, lost or not.
    pub(super) theirs: Vec<u8>,
}

impl Disk {
    /// Everything that exists now, as if synced.
    pub(super) fn read(roots: &[PathBuf], current: &Path) -> Self {
        let mut disk = Self {
            roots: roots.to_vec(),
            current: current.to_path_buf(),
            inodes: Vec::new(),
            names: FolderNames::new(),
            unnamed: HashMap::new(),
            descriptors: HashMap::new(),
            lasting: FolderNames::new(),
            pending: Vec::new(),
            ghosts: HashMap::new(),
            haunted: false,
        };
        for root in roots {
            disk.add(root, Inode::Folder);
            for path in below(root) {
                let folder = path.is_dir();
                let inode =
                    if folder { Inode::Folder } else { Inode::File(FileText::new(fs::read(&path).unwrap())) };
                disk.add(&path, inode);
            }
        }
        disk.lasting = disk.names.clone();
        disk
    }

    fn add(&mut self, path: &Path, inode: Inode) -> Number {
        self.inodes.push(inode);
        let number = self.inodes.len() - 1;
        self.names.insert(path.to_path_buf(), number);
        number
    }

    /// Marks a file as written by another program, synced up to the first of `ends` and then appended to.
    pub(super) fn appended(&mut self, path: &Path, ends: impl IntoIterator<Item = usize>) {
        let text = self.text(path).unwrap();
        let whole = text.versions[0].clone();
        text.versions = ends.into_iter().map(|end| whole[..end].to_vec()).collect();
        assert_eq!(text.versions.last(), Some(&whole), "all of it was appended");
        text.theirs = whole;
    }

    fn text(&mut self, path: &Path) -> Option<&mut FileText> {
        let path = normal(&self.current.join(path));
        let number = *self.names.get(&path).or_else(|| self.unnamed.get(&path))?;
        match &mut self.inodes[number] {
            Inode::File(text) => Some(text),
            Inode::Folder => None,
        }
    }

    /// Replays a trace. Where calls overlap, the trace does not tell their order. So a write takes effect when it
    /// begins and a sync when it ends: the disk may then hold more than the model demands, but never less.
    pub(super) fn replay(&mut self, calls: &[SystemCall]) {
        let mut events: Vec<(usize, bool, &SystemCall)> = Vec::new();
        for call in calls {
            let at = if call.is_write() { call.begun } else { call.ended };
            events.push((at, call.is_write(), call));
        }
        events.sort_by_key(|(at, _, _)| *at);
        for (_, writes, call) in events {
            if writes { self.write(call) } else { self.other(call) }
        }
    }

    fn write(&mut self, call: &SystemCall) {
        let list = call.list();
        let place = usize::from(["copy_file_range", "splice"].contains(&call.name.as_str())) * 2;
        let Some(path) = path_of(list[place]) else { return };
        let theirs = call.name == "write" && list[0].starts_with("1<");
        let length = call.number();
        let Some(text) = self.text(&path) else { return };
        let mut now = text.versions.last().unwrap().clone();
        match call.name.as_str() {
            "write" | "writev" => {
                let bytes = &unquoted(list[1])[..length];
                now.extend(bytes);
                if theirs {
                    text.theirs.extend(bytes);
                }
            }
            "pwrite64" => {
                let at: usize = list[3].parse().unwrap();
                now.resize(now.len().max(at + length), 0);
                now[at..at + length].copy_from_slice(&unquoted(list[1])[..length]);
            }
            "copy_file_range" | "sendfile" if place == 0 || list[3] == "NULL" => {
                text.copied.push((now.len(), now.len() + length));
                now.resize(now.len() + length, 0);
            }
            "copy_file_range" => {
                let at: usize = list[3].trim_matches(['[', ']']).parse().unwrap();
                text.copied.push((at, at + length));
                now.resize(now.len().max(at + length), 0);
            }
            "ftruncate" => now.resize(list[1].parse().unwrap(), 0),
            other => panic!("the model does not know {other}: {call:?}"),
        }
        text.versions.push(now);
    }

    fn other(&mut self, call: &SystemCall) {
        let list = call.list();
        let at = |folder: usize| self.path(path_of(list[folder]).as_deref(), list[folder + 1]);
        match call.name.as_str() {
            "fsync" | "fdatasync" => self.sync(&path_of(list[0]).unwrap_or_default()),
            "openat" if list[2].contains("O_TMPFILE") => self.open_unnamed(&at(0), call),
            "open" => self.open(&self.path(None, list[0]), list[1]),
            "openat" | "openat2" => self.open(&at(0), list[2]),
            "mkdir" => self.create(&self.path(None, list[0]), Inode::Folder),
            "mkdirat" => self.create(&at(0), Inode::Folder),
            "rename" => self.rename(&self.path(None, list[0]), &self.path(None, list[1]), false),
            "renameat" => self.rename(&at(0), &at(2), false),
            "renameat2" => self.rename(&at(0), &at(2), list[4].contains("RENAME_EXCHANGE")),
            "link" => self.link(&self.path(None, list[0]), &self.path(None, list[1])),
            "linkat" => self.link(&at(0), &at(2)),
            "unlink" => self.unlink(&self.path(None, list[0]), call.is_faked()),
            "unlinkat" => self.unlink(&at(0), call.is_faked()),
            "fcntl" => {}
            other => panic!("the model does not know {other}: {call:?}"),
        }
    }

    fn path(&self, folder: Option<&Path>, name: &str) -> PathBuf {
        let name = String::from_utf8(unquoted(name)).unwrap();
        normal(&folder.unwrap_or(&self.current).join(name))
    }

    fn sync(&mut self, path: &Path) {
        if let Some(text) = self.text(path) {
            text.versions.drain(..text.versions.len() - 1);
        }
        for change in self.pending.extract_if(.., |change| change.is_in(path)) {
            change.happen(&mut self.lasting);
        }
    }

    fn open(&mut self, path: &Path, flags: &str) {
        self.haunted |= self.ghosts.contains_key(path);
        if let Some(text) = self.text(path) {
            if flags.contains("O_TRUNC") {
                text.versions.push(Vec::new());
            }
        } else if flags.contains("O_CREAT") {
            self.create(path, Inode::File(FileText::new(Vec::new())));
        }
    }

    fn open_unnamed(&mut self, folder: &Path, call: &SystemCall) {
        if let Some(path) = path_of(&call.result).filter(|_| self.has(folder)) {
            self.inodes.push(Inode::File(FileText::new(Vec::new())));
            self.unnamed.insert(path, self.inodes.len() - 1);
            self.descriptors.insert(call.number(), self.inodes.len() - 1);
        }
    }

    fn create(&mut self, path: &Path, inode: Inode) {
        if self.has(path) {
            let inode = self.add(path, inode);
            self.pending.push(NameChange { names: vec![(path.to_path_buf(), Some(inode))] });
        }
    }

    fn has(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    fn change(&mut self, names: Vec<(PathBuf, Option<Number>)>) {
        let change = NameChange { names };
        change.happen(&mut self.names);
        self.pending.push(change);
    }

    fn rename(&mut self, from: &Path, to: &Path, exchange: bool) {
        let Some(&inode) = self.names.get(from) else { return };
        let back = if exchange { self.names.get(to).copied() } else { None };
        self.change(vec![(from.to_path_buf(), back), (to.to_path_buf(), Some(inode))]);
    }

    fn link(&mut self, from: &Path, to: &Path) {
        let descriptor = from.strip_prefix("/proc/self/fd").ok().and_then(|fd| fd.to_str()?.parse().ok());
        let unnamed = descriptor.and_then(|fd: usize| self.descriptors.get(&fd));
        if let Some(&inode) = self.names.get(from).or(unnamed) {
            self.change(vec![(to.to_path_buf(), Some(inode))]);
        }
    }

    fn unlink(&mut self, path: &Path, faked: bool) {
        let Some(&inode) = self.names.get(path) else { return };
        if faked {
            self.ghosts.insert(path.to_path_buf(), inode);
        }
        self.change(vec![(path.to_path_buf(), None)]);
    }

    /// A real path for each inode that still has one.
    fn places(&self) -> BTreeMap<Number, PathBuf> {
        self.names.iter().chain(&self.ghosts).map(|(path, inode)| (*inode, path.clone())).collect()
    }

    /// Fills in copied bytes and compares the model with the real files. They differ if overlapping calls took effect
    /// in another order than in the trace.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if self.haunted {
            return Err("a program opened a file that it had removed".to_string());
        }
        let really: BTreeSet<PathBuf> = self.roots.iter().flat_map(|root| below(root)).collect();
        let mut names: BTreeSet<PathBuf> = self.names.keys().chain(self.ghosts.keys()).cloned().collect();
        names.retain(|name| !self.roots.contains(name));
        if really != names {
            return Err(format!("names differ: {:?}", really.symmetric_difference(&names)));
        }
        for (number, path) in self.places() {
            let Inode::File(text) = &mut self.inodes[number] else { continue };
            let really = fs::read(&path).unwrap();
            for (start, end) in &text.copied {
                for version in &mut text.versions {
                    let end = (*end).min(version.len()).min(really.len());
                    if *start < end {
                        version[*start..end].copy_from_slice(&really[*start..end]);
                    }
                }
            }
            let newest = text.versions.last().unwrap();
            if *newest != really {
                let same = newest.iter().zip(&really).take_while(|(one, other)| one == other).count();
                let (newest, really) = (newest.len(), really.len());
                let name = path.display();
                return Err(format!(
                    "{name} has {really} bytes, {newest} by the trace, and differs at {same}"
                ));
            }
        }
        Ok(())
    }

    /// Cuts the power: takes from the real files what may be lost. Returns the files that remain.
    pub(super) fn cut(&self, rng: &mut Rng) -> Vec<Left> {
        let places = self.places();
        let names = self.names_after(rng, &places);
        // A hard link keeps each inode while all names are removed and made again.
        let aside = self.roots[0].with_extension("aside");
        fs::create_dir(&aside).unwrap();
        for (number, path) in &places {
            if matches!(self.inodes[*number], Inode::File(_)) {
                fs::hard_link(path, aside.join(number.to_string())).unwrap();
            }
        }
        for path in self.roots.iter().flat_map(|root| below(root)).rev() {
            if !path.is_dir() {
                fs::remove_file(&path).unwrap();
            } else if !names.contains_key(&path) {
                fs::remove_dir(&path).unwrap();
            }
        }
        let mut left = Vec::new();
        for (path, number) in names {
            let Inode::File(text) = &self.inodes[number] else { continue };
            let real = aside.join(number.to_string());
            fs::hard_link(&real, &path).unwrap();
            text.lose(&File::options().write(true).open(real).unwrap(), rng);
            left.push(Left { path, theirs: text.theirs.clone() });
        }
        fs::remove_dir_all(aside).unwrap();
        left
    }

    /// Names that are on disk after a cut.
    fn names_after(&self, rng: &mut Rng, places: &BTreeMap<Number, PathBuf>) -> FolderNames {
        let mut names = self.lasting.clone();
        let luck = rng.below(4);
        for change in &self.pending {
            if happens(luck, rng) {
                change.happen(&mut names);
            }
        }
        // An inode that is really gone cannot come back. Then no change of names is lost.
        if names.values().any(|number| !places.contains_key(number)) {
            names.clone_from(&self.names);
        }
        let all = names.clone();
        names.retain(|path, _| {
            path.ancestors().skip(1).take_while(|above| self.has(above)).all(|above| all.contains_key(above))
        });
        names
    }
}

impl FileText {
    fn new(bytes: Vec<u8>) -> Self {
        Self { versions: vec![bytes], copied: Vec::new(), theirs: Vec::new() }
    }

    /// Gives the file any length and each page any state that they had since the last sync.
    fn lose(&self, file: &File, rng: &mut Rng) {
        let lengths = || self.versions.iter().map(Vec::len);
        let (shortest, longest) = (lengths().min().unwrap(), lengths().max().unwrap());
        let newest = self.versions.len() - 1;
        let length = match rng.below(4) {
            0 => self.versions[0].len(),
            1 => self.versions[newest].len(),
            2 => self.versions[rng.below(self.versions.len() as u64) as usize].len(),
            _ => shortest + rng.below((longest - shortest + 1) as u64) as usize,
        };
        let mut bytes = vec![0; length];
        let luck = rng.below(4);
        for at in (0..length).step_by(PAGE_BYTES) {
            let version = match (happens(luck, rng), rng.below(4)) {
                (false, _) => 0,
                (true, 0) => rng.below(newest as u64 + 1) as usize,
                (true, _) => newest,
            };
            let old = &self.versions[version];
            let end = length.min(at + PAGE_BYTES).min(old.len());
            if at < end {
                bytes[at..end].copy_from_slice(&old[at..end]);
            }
        }
        file.write_all_at(&bytes, 0).unwrap();
        file.set_len(length as u64).unwrap();
    }
}

/// Whether something unsynced is on disk: never, always or by chance.
fn happens(luck: u64, rng: &mut Rng) -> bool {
    match luck {
        0 => false,
        1 => true,
        _ => rng.below(2) == 0,
    }
}

/// Everything below a folder. A folder comes before its contents.
fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.clone());
        if path.is_dir() {
            found.extend(below(&path));
        }
    }
    found
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Dir;
    use crate::trace::calls;

    const SEEDS: u64 = 40;

    /// What is in the folder after a cut, by name.
    fn after_cut(seed: u64, trace: &str) -> BTreeMap<String, Vec<u8>> {
        let dir = Dir::in_memory();
        let root = dir.files().canonicalize().unwrap();
        fs::write(root.join("a"), vec![b'x'; 3 * PAGE_BYTES]).unwrap();
        let mut disk = Disk::read(std::slice::from_ref(&root), &root);
        disk.appended(Path::new("a"), [PAGE_BYTES, 3 * PAGE_BYTES]);
        disk.replay(&calls(&trace.replace("ROOT", root.to_str().unwrap())));
        if trace.contains("rename(") {
            fs::rename(root.join("a"), root.join("b")).unwrap();
        }
        disk.check().unwrap();
        let left = disk.cut(&mut Rng::new(seed)).into_iter();
        left.map(|left| {
            (left.path.file_name().unwrap().to_str().unwrap().into(), fs::read(&left.path).unwrap())
        })
        .collect()
    }

    #[test]
    fn bytes_last_once_their_file_is_synced() {
        let whole = vec![b'x'; 3 * PAGE_BYTES];
        let mut lost = 0;
        for seed in 0..SEEDS {
            let text = &after_cut(seed, "")["a"];
            assert!(text.starts_with(&whole[..PAGE_BYTES]), "seed {seed}: a synced page is lost");
            lost += u64::from(*text != whole);
            assert_eq!(after_cut(seed, "1 fsync(3<ROOT/a>) = 0\n")["a"], whole, "seed {seed}");
        }
        assert!(0 < lost && lost < SEEDS, "{lost} of {SEEDS} cuts lost bytes");
    }

    #[test]
    fn names_last_once_their_folder_is_synced() {
        let rename = "1 rename(\"a\", \"b\") = 0\n";
        let mut undone = 0;
        for seed in 0..SEEDS {
            let names = after_cut(seed, rename);
            assert_eq!(names.len(), 1, "seed {seed}: a rename is atomic");
            undone += u64::from(names.contains_key("a"));
            let synced = after_cut(seed, &format!("{rename}1 fsync(3<ROOT>) = 0\n"));
            assert!(synced.contains_key("b"), "seed {seed}");
        }
        assert!(0 < undone && undone < SEEDS, "{undone} of {SEEDS} cuts undid the rename");
    }
}
