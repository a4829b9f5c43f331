//! Removes texts from the vault for good, such as a secret that a tool printed.

use super::file::is_wiped;
use super::record::StoredFrame;
use super::{LOCK, Vault, all_names, open_run};
use crate::error::Error;
use crate::folder::Folder;
use crate::platform::writing::sync;
use crate::platform::{FileExt, OFlags};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// How many bytes are overwritten with one write.
const BLOCK_BYTES: usize = 8 << 10;

/// A text that was overwritten.
#[derive(Debug)]
pub struct Forgotten {
    /// The hash of the text, in hex; its marker names the first digits.
    pub id: String,
    /// How many runs had kept it.
    pub runs: u64,
}

impl Vault {
    /// Overwrites the text whose hash begins with these hex digits in every run that kept it. The records stay, so that
    /// everything else of these runs can still be put back. What runs that died left behind is removed.
    ///
    /// # Errors
    ///
    /// When there is no such text or several, or a run cannot be read or written: the text may be in that one still, and
    /// is gone from all others.
    pub fn forget(&self, digits: &str) -> Result<Forgotten, Error> {
        const VERB: &str = "forget the text";
        let fail = |cause| Error::new(self.root(), VERB, cause);
        let id = self.only(digits)?;
        let mut forgotten = Forgotten { id, runs: 0 };
        let Some(root) = Folder::at(self.root()).map_err(fail)? else { return Ok(forgotten) };
        // No run and no `gc` may use the vault meanwhile.
        let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let Some(runs) = self.all_runs().map_err(fail)? else { return Ok(forgotten) };
        remove_unfinished(&runs).map_err(fail)?;
        let mut failed = None;
        for (run, folder) in all_names(&runs).map_err(fail)? {
            let wiped = runs
                .child(&folder)
                .and_then(|folder| folder.map_or(Ok(false), |folder| wipe(&folder, &run, &forgotten.id)));
            match wiped {
                Ok(wiped) => forgotten.runs += u64::from(wiped),
                Err(cause) => {
                    failed.get_or_insert(Error::new(&runs.path_of(&folder).join(&run), VERB, cause));
                }
            }
        }
        failed.map_or(Ok(forgotten), Err)
    }
}

/// Removes unfinished files of runs that died, which may hold any text.
fn remove_unfinished(runs: &Folder) -> io::Result<()> {
    for folder in runs.names()? {
        let Some(folder) = runs.child(&folder)? else { continue };
        for name in folder.names()?.iter().filter(|name| Folder::is_unfinished(name)) {
            folder.remove(name)?;
        }
    }
    Ok(())
}

/// Overwrites the text with this hash in the file of a run, if it is there.
fn wipe(folder: &Folder, run: &str, id: &str) -> io::Result<bool> {
    let Some((file, _)) = open_run(folder, run, OFlags::RDWR)? else { return Ok(false) };
    let file = Arc::new(file);
    let record = super::file::read_index(&file, run)?;
    let Some(stored) = record.texts.iter().find(|stored| stored.hash.to_string() == id) else {
        return Ok(false);
    };
    if stored.frame.0 == stored.frame.1 || is_wiped(&file, stored)? {
        return Ok(false);
    }
    // Rows are kept whole, with the text in them.
    if let Some(rows) = record.rows {
        overwrite(&file, &rows.frame)?;
    }
    overwrite(&file, stored)?;
    Ok(true)
}

fn overwrite(file: &File, stored: &StoredFrame) -> io::Result<()> {
    let (start, end) = stored.frame;
    let zeros = [0; BLOCK_BYTES];
    for at in (start + 1..end).step_by(BLOCK_BYTES) {
        let length = (end - at).min(BLOCK_BYTES as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
    }
    sync(file)?;
    // A first byte of 0 marks the text as gone. It is written last, so that this is true even after a power cut.
    file.write_all_at(&[0], start)?;
    sync(file)
}
