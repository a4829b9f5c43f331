//! Texts that are to be gone for good, such as a secret that a tool printed.

use super::file::is_wiped;
use super::{LOCK, Vault, open_run, run_of};
use crate::error::Error;
use crate::folder::Folder;
use crate::platform::FileExt;
use crate::platform::OFlags;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// Bytes that are written at once.
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
    /// everything else of these runs can still be put back.
    ///
    /// # Errors
    ///
    /// When there is no such text or several, or a run cannot be read or written.
    pub fn forget(&self, digits: &str) -> Result<Forgotten, Error> {
        let fail = |cause| Error::new(self.root(), "forget the text", cause);
        let id = self.only(digits)?;
        let wipe = || -> io::Result<u64> {
            // Nobody writes to the vault or clears it meanwhile.
            let Some(root) = Folder::at(self.root())? else { return Ok(0) };
            let lock = root.open(LOCK, OFlags::RDWR | OFlags::CREATE)?;
            lock.lock()?;
            let Some(runs) = self.all_runs()? else { return Ok(0) };
            let mut count = 0;
            for folder in runs.names()? {
                let Some(folder) = runs.child(&folder)? else { continue };
                let names = folder.names()?;
                let names: HashSet<&str> = names.iter().filter_map(|name| Some(run_of(name)?.0)).collect();
                for run in names {
                    count += u64::from(wipe(&folder, run, &id)?);
                }
            }
            Ok(count)
        };
        let runs = wipe().map_err(fail)?;
        Ok(Forgotten { id, runs })
    }
}

/// Overwrites the text with this hash in the file of a run, if it is there.
fn wipe(folder: &Folder, run: &str, id: &str) -> io::Result<bool> {
    let Some((file, _)) = open_run(folder, run, OFlags::RDWR)? else { return Ok(false) };
    let file = Arc::new(file);
    let record = super::file::read_index(&file, run)?;
    let Some(stored) = record.texts.iter().find(|stored| stored.hash.to_string() == id) else {
        return Ok(false);
    };
    let (mut at, end) = stored.frame;
    if is_wiped(&file, stored)? {
        return Ok(false);
    }
    let zeros = [0; BLOCK_BYTES];
    while at < end {
        let length = (end - at).min(BLOCK_BYTES as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
        at += length;
    }
    file.sync_all()?;
    Ok(true)
}
