//! Whether nobody else has a database open, and its owner is kept from starting while rows come, go or are linked anew.
//!
//! Three things say so: the processes that can be seen, the owner's own lock, if it has one, and SQLite, which gives a database in
//! exclusive mode to no one beside whom it is open, whoever sees whom. All three end with this process.

use super::kind::Mend;
use super::rows::hex;
use crate::deferral::Deferral;
use crate::error::Error;
use crate::identity::FileId;
use crate::platform::files::temporary;
use crate::platform::metadata::{self, MetadataExt};
use crate::platform::process;
use crate::stop::Stop;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for the owner's lock.
const LOCK_MAX: Duration = Duration::from_millis(200);

/// The owner's lock, held.
pub(super) struct Alone {
    _lock: Option<Connection>,
}

impl Alone {
    /// Takes the owner's lock, if it has one, once nobody is seen that has the database open.
    pub(super) fn enter(file: &Path, mend: &Mend) -> Result<Self, Stop> {
        nobody_seen(file)?;
        let Some(path) = (mend.lock)(file) else { return Ok(Self { _lock: None }) };
        let busy = || Stop::from(Deferral::Busy { agent: mend.owner, lock: "lock" });
        let fail = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(),
            _ => Error::new(&path, "take the owner's lock", std::io::Error::other(error)).into(),
        };
        make_private(&path).map_err(|cause| Error::new(&path, "take the owner's lock", cause))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let lock =
            Connection::open_with_flags(&path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(fail)?;
        lock.busy_timeout(LOCK_MAX).map_err(fail)?;
        lock.execute_batch("BEGIN EXCLUSIVE").map_err(fail)?;
        Ok(Self { _lock: Some(lock) })
    }
}

/// Defers if another process is seen that has the database open.
pub(super) fn nobody_seen(file: &Path) -> Result<(), Stop> {
    let fail = |cause| Error::new(file, Error::OPEN, cause);
    let id = FileId::of(&metadata::at(file).map_err(fail)?);
    // The file itself must not be opened here: to close it again would give SQLite's locks away.
    let any = temporary().map_err(fail)?;
    let own = std::process::id();
    let other = process::holders(&any, id).into_iter().find(|holder| holder.pid != own);
    other.map_or(Ok(()), |holder| Err(Deferral::Open { pid: holder.pid, name: holder.name }.into()))
}

/// Makes the folder of a lock, for its owner alone.
fn make_private(path: &Path) -> std::io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let mut maker = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
    match maker.create(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        done => done?,
    }
    let found = std::fs::symlink_metadata(folder)?;
    if found.is_dir() { Ok(()) } else { Err(std::io::Error::other("its folder is no folder")) }
}

/// OpenClaw's lock for everything that belongs to a state directory: a database in a folder for each user, named by the hash of
/// the path of the state's own database. `None` if the file does not lie in a state directory.
pub(super) fn openclaws_lock(file: &Path) -> Option<PathBuf> {
    let folder = file.parent().filter(|folder| folder.ends_with("agent"))?;
    let state = folder.parent()?.parent().filter(|agents| agents.ends_with("agents"))?.parent()?;
    let state = metadata::real_path(&state.join("state/openclaw.sqlite")).ok()?;
    let (locks, user) = (metadata::real_path(Path::new(LOCKS)).ok()?, metadata::at(file).ok()?.uid());
    let hash = sha256(state.as_os_str().as_encoded_bytes());
    let key = hex(&hash[..4]);
    Some(
        locks
            .join(format!("openclaw-state-locks-{user}"))
            .join(format!("gateway-lifecycle.{key}.lock.sqlite")),
    )
}

/// Where OpenClaw puts such folders.
const LOCKS: &str = "/tmp";

/// SHA-256, as OpenClaw names its locks by it.
fn sha256(bytes: &[u8]) -> [u8; 32] {
    let (start, rounds) = constants();
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    let mut state = start;
    for block in message.chunks_exact(64) {
        let word = |bytes: &[u8]| bytes.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let mut words: Vec<u32> = block.chunks_exact(4).map(word).collect();
        for at in 16..64 {
            let (old, new) = (words[at - 15], words[at - 2]);
            let low = old.rotate_right(7) ^ old.rotate_right(18) ^ (old >> 3);
            let high = new.rotate_right(17) ^ new.rotate_right(19) ^ (new >> 10);
            words.push(words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high));
        }
        // a to h of the standard; each round moves them on by one.
        let mut own = state;
        for (word, round) in words.iter().zip(rounds) {
            let [first, second, third, _, fifth, sixth, seventh, last] = own;
            let high = fifth.rotate_right(6) ^ fifth.rotate_right(11) ^ fifth.rotate_right(25);
            let choice = (fifth & sixth) ^ (!fifth & seventh);
            let one = last.wrapping_add(high).wrapping_add(choice).wrapping_add(round).wrapping_add(*word);
            let low = first.rotate_right(2) ^ first.rotate_right(13) ^ first.rotate_right(22);
            let most = (first & second) ^ (first & third) ^ (second & third);
            own.rotate_right(1);
            own[4] = own[4].wrapping_add(one);
            own[0] = one.wrapping_add(low).wrapping_add(most);
        }
        for (sum, own) in state.iter_mut().zip(own) {
            *sum = sum.wrapping_add(own);
        }
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

/// The first 32 bits of the fractions of the square roots of the first 8 primes, and of the cube roots of the first 64.
fn constants() -> ([u32; 8], [u32; 64]) {
    let mut primes = (2_u128..).filter(|number| (2..*number).all(|divisor| number % divisor > 0));
    let (mut start, mut rounds) = ([0; 8], [0; 64]);
    for at in 0..64 {
        let prime = primes.next().unwrap_or_default();
        // The root of the prime, shifted by 32 bits, in whole numbers.
        let root = |power: u32| {
            let goal = prime << (32 * power);
            let (mut low, mut high) = (0_u128, 1_u128 << 37);
            while low + 1 < high {
                let middle = u128::midpoint(low, high);
                if middle.pow(power) <= goal { low = middle } else { high = middle }
            }
            u32::try_from(low & 0xffff_ffff).unwrap_or_default()
        };
        if at < 8 {
            start[at] = root(2);
        }
        rounds[at] = root(3);
    }
    (start, rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B; and what the name of the lock of a real OpenClaw was.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let hex = |bytes: &[u8]| hex(&sha256(bytes));
        assert_eq!(hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(
            hex(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(
            &hex(["", "home", "u", ".openclaw/state/openclaw.sqlite"].join("/").as_bytes())[..8],
            "1454932d"
        );
    }
}
