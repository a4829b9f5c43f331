//! Whole old files. Where names are exchanged in steps, the replaced file itself goes into the vault, beside the file of the run,
//! and stays for as long: `RUN.whole` needs none of our records to be put back, and shows what is appended to it later.

use super::whole_name::{name_of, run_of};
use super::{Record, Run, Vault, read_run};
use crate::base::step::{Step, before};
use crate::disk::folder::Place;
use crate::disk::new_text::copy_span;
use crate::platform::{OFlags, System, This};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use transcript::Span;

impl Run {
    /// Moves the whole old file, which has this name beside the transcript, into the vault; copies it if that is elsewhere. If the run
    /// took out secrets, the file goes, and so do those of earlier runs, which have them too.
    pub(crate) fn keep_whole(&self, place: &Place, name: &str, old: &File) -> io::Result<()> {
        before(Step::KeepWhole)?;
        if self.takes_secrets {
            self.remove_wholes()?;
            before(Step::Unlink)?;
            place.remove(name)?;
        } else if place.move_to(name, &self.folder, &name_of(&self.name)).is_err() {
            self.copy_whole(old)?;
            before(Step::Unlink)?;
            place.remove(name)?;
        }
        before(Step::SyncUnlink)?;
        self.folder.sync()?;
        place.sync()
    }

    fn copy_whole(&self, old: &File) -> io::Result<()> {
        let whole = self.folder.begin(&name_of(&self.name))?;
        copy_span(old, Span::new(0, old.metadata()?.len()), &whole.file)?;
        This::sync(&whole.file)?;
        whole.place(&name_of(&self.name))
    }

    fn remove_wholes(&self) -> io::Result<()> {
        let names = self.folder.names()?;
        names.iter().filter(|name| run_of(name).is_some()).try_for_each(|name| self.folder.remove(name))
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
