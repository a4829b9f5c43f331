//! Whole old files. Where names are exchanged in steps, the replaced file itself goes into the vault, beside the file of the run,
//! and stays for as long: `RUN.whole` needs none of our records to be put back, and shows what is appended to it later.

use super::{Record, Run, Vault, is_run, read_run};
use crate::base::step::{Step, before};
use crate::disk::folder::{Folder, Place};
use crate::disk::new_text::copy_span;
use crate::platform::{OFlags, System, This};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use transcript::Span;

const ENDING: &str = ".whole";

impl Run {
    /// Moves the whole old file, which has this name beside the transcript, into the vault; copies it if that is elsewhere.
    pub(crate) fn keep_whole(&self, place: &Place, name: &str, old: &File) -> io::Result<()> {
        before(Step::KeepWhole)?;
        if place.move_to(name, &self.folder, &name_of(&self.name)).is_err() {
            let whole = self.folder.begin(&name_of(&self.name))?;
            copy_span(old, Span::new(0, old.metadata()?.len()), &whole.file)?;
            This::sync(&whole.file)?;
            whole.place(&name_of(&self.name))?;
            before(Step::Unlink)?;
            place.remove(name)?;
        }
        before(Step::SyncUnlink)?;
        self.folder.sync()?;
        place.sync()
    }
}

impl Vault {
    /// The files at or below a path, which has no symbolic links in it, whose old file was appended to in the vault.
    pub(crate) fn grown(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(runs) = self.all_runs()? else { return Ok(Vec::new()) };
        let mut grown = Vec::new();
        for folder in runs.names()? {
            let Some(folder) = runs.child(folder)? else { continue };
            for name in folder.names()? {
                let Some(run) = run_of(&name) else { continue };
                let (Ok(Some(record)), Some(found)) = (read_run(&folder, run), folder.metadata_of(&name)?)
                else {
                    continue;
                };
                let has_grown = known(&record).is_some_and(|known| found.len() > known);
                if has_grown && record.path.starts_with(path) {
                    grown.push(record.path);
                }
            }
        }
        grown.dedup();
        Ok(grown)
    }

    /// The old files of runs over a file that are kept whole.
    pub(crate) fn wholes(&self, path: &Path) -> io::Result<Vec<(Record, File)>> {
        let Some(folder) = self.runs_over(path)? else { return Ok(Vec::new()) };
        let mut wholes = Vec::new();
        for name in folder.names()? {
            let Some(run) = run_of(&name) else { continue };
            // A record that cannot be read counts as none.
            let Ok(Some(record)) = read_run(&folder, run) else { continue };
            if let Some(file) = folder.open_file(&name, OFlags::RDONLY)?.filter(|_| record.path == path) {
                wholes.push((record, file));
            }
        }
        Ok(wholes)
    }
}

/// How much of the old file of a run is accounted for.
fn known(record: &Record) -> Option<u64> {
    let swap = record.swap.as_ref()?;
    Some(record.ledger.map_or(swap.before, |ledger| ledger.known))
}

/// The name of the old file of a run.
pub(super) fn name_of(run: &str) -> String {
    format!("{run}{ENDING}")
}

/// The run whose old file has this name.
fn run_of(name: &str) -> Option<&str> {
    name.strip_suffix(ENDING).filter(|run| is_run(run))
}

/// Removes the old file of a run, if it is there.
pub(super) fn remove(folder: &Folder, run: &str) -> io::Result<()> {
    match folder.remove(name_of(run)) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
