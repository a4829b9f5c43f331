//! A leftover: whether it can be trusted, and how far it is accounted for.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::ask::writers;
use crate::base::step::{Step, before};
use crate::disk::beside::{self, run_of};
use crate::disk::folder::Place;
use crate::disk::lease::Lease;
use crate::platform::metadata::{self, Metadata, MetadataExt};
use crate::platform::{OFlags, owner};
use crate::swap::replace::put_back;
use crate::swap::snapshot::{Snapshot, as_owner};
use crate::vault::{Ledger, Record, RunState, Swap, Vault};
use std::fs::File;
use std::io::{self, ErrorKind};

/// What failed, in an error.
pub(super) const FINISH: &str = "finish an interrupted run";

/// The second file of a run that has not finished, beside a transcript.
pub(super) struct Leftover {
    name: String,
    pub(super) file: File,
    pub(super) length: u64,
    inode: u64,
    pub(super) record: Record,
    pub(super) swap: Swap,
    /// How much of this file is accounted for.
    pub(super) ledger: Ledger,
    /// Whether the ledger is that of a later run, which brought lines over.
    pub(super) is_from_later_run: bool,
    /// Whether it is in the vault already, where it stays.
    pub(super) is_kept: bool,
}

/// The leftovers of a transcript.
pub(super) fn left_of(now: &Snapshot, names: &[String], vault: &Vault) -> Result<Vec<Leftover>, Error> {
    let fail = |cause| Error::new(&now.path, "look for what an interrupted run left", cause);
    let mut found = Vec::new();
    for (name, run) in names.iter().filter_map(|name| Some((name, run_of(name)?))) {
        // A record that cannot be read counts as none.
        let Ok(Some(record)) = vault.run(run) else { continue };
        if record.path.file_name() != Some(now.place.name()) {
            continue;
        }
        if let OpenedLeftover::Ours(leftover) =
            Leftover::open(&now.place, name, record, Some(&now.metadata)).map_err(fail)?
        {
            found.push(*leftover);
        }
    }
    // If the vault cannot be read, to keep originals there fails with a better message.
    for (record, file) in vault.wholes(&now.path).unwrap_or_default() {
        let name = record.run.clone();
        if let OpenedLeftover::Ours(whole) =
            Leftover::from_file(file, &name, record, Some(&now.metadata)).map_err(fail)?
        {
            found.push(Leftover { is_kept: true, ..*whole });
        }
    }
    found.retain(Leftover::has_work);
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let left: Vec<(String, u64)> = found.iter().map(|one| (one.record.run.clone(), one.inode)).collect();
    for leftover in &mut found {
        leftover.apply_later_runs(now, vault, &left)?;
    }
    found.retain(Leftover::has_work);
    Ok(found)
}

/// Removes the second name of a file, if a run gave it that and died before it gave the first one to the new file. `true` if
/// there was one.
pub(crate) fn remove_second_name(now: &Snapshot, vault: &Vault) -> Result<bool, Error> {
    let fail = |cause| Error::new(&now.path, FINISH, cause);
    if now.metadata.nlink() != 2 {
        return Ok(false);
    }
    let names = now.place.names().map_err(fail)?;
    for (name, run) in names.iter().filter_map(|name| Some((name, run_of(name)?))) {
        let Ok(Some(record)) = vault.run(run) else { continue };
        let opened = Leftover::open(&now.place, name, record, Some(&now.metadata)).map_err(fail)?;
        if matches!(opened, OpenedLeftover::SecondName) {
            before(Step::Clean).and_then(|()| now.place.remove(name)).map_err(fail)?;
            now.place.sync().map_err(fail)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives the old file of a run that has these second names beside it its name back, if the run died while nothing had that
/// name: it left both its files. `true` if there was one.
pub(super) fn bring_back(place: &Place, names: &[String], vault: &Vault) -> Result<bool, Stop> {
    let fail = |cause| Error::new(&place.path_of(place.name()), FINISH, cause);
    for (name, run) in names.iter().filter_map(|name| Some((name, run_of(name)?))) {
        // A record that cannot be read counts as none.
        let Some(record) =
            Some(run).filter(|_| beside::is_aside(name)).and_then(|run| vault.run(run).ok()?)
        else {
            continue;
        };
        if record.path.file_name() != Some(place.name())
            || !has_died_in_between(place, &record).map_err(fail)?
        {
            continue;
        }
        let _acting = as_owner(&place.path_of(name))?;
        // A program may have come since.
        let came = place.open_file(place.name(), OFlags::RDONLY).map_err(fail)?;
        if came.is_some_and(|came| writers::holds(&Lease::read(&came), &came)) {
            return Err(Deferral::OldFileOpen.into());
        }
        before(Step::Clean).and_then(|()| put_back(place, name)).map_err(fail)?;
        return Ok(true);
    }
    Ok(false)
}

/// Whether both files of a run are beside the path, so that it has none of them.
fn has_died_in_between(place: &Place, record: &Record) -> io::Result<bool> {
    let new = beside::name(&record.run);
    for (name, is_old) in [(beside::aside(&new), true), (new, false)] {
        match Leftover::open(place, &name, record.clone(), None)? {
            OpenedLeftover::Ours(left) if left.is_old() == is_old => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// What was found under the name of a leftover.
pub(super) enum OpenedLeftover {
    Ours(Box<Leftover>),
    /// It is a second name of the transcript, given by a run that died right after that.
    SecondName,
    Gone,
    /// With the reason.
    NotOurs(&'static str),
}

impl Leftover {
    pub(super) fn open(
        place: &Place,
        name: &str,
        record: Record,
        transcript: Option<&Metadata>,
    ) -> io::Result<OpenedLeftover> {
        let file = match place.open(name, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => file,
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(OpenedLeftover::Gone),
            Err(cause) if metadata::is_link(&cause) => return Ok(OpenedLeftover::NotOurs("it is a link")),
            Err(cause) if cause.kind() == ErrorKind::PermissionDenied => {
                return Ok(OpenedLeftover::NotOurs("it cannot be read"));
            }
            Err(cause) => return Err(cause),
        };
        Self::from_file(file, name, record, transcript)
    }

    fn from_file(
        file: File,
        name: &str,
        record: Record,
        transcript: Option<&Metadata>,
    ) -> io::Result<OpenedLeftover> {
        let Some(swap) = record.swap.clone() else {
            return Ok(OpenedLeftover::NotOurs("its run has replaced no file"));
        };
        let found = metadata::of_file(&file)?;
        let inode = found.ino();
        let is_transcript = transcript.is_some_and(|transcript| transcript.ino() == inode);
        if found.nlink() == 2 && is_transcript && inode == swap.old.inode {
            return Ok(OpenedLeftover::SecondName);
        }
        if !found.is_file() || found.nlink() != 1 || !owner::is_ours_or_of(&file, &found, transcript) {
            return Ok(OpenedLeftover::NotOurs("it is somebody else's, or has another name"));
        }
        if inode != swap.old.inode && inode != swap.new.inode {
            return Ok(OpenedLeftover::NotOurs("it is not the file that its run left there"));
        }
        let start = Ledger { known: swap.before, upto: swap.before, at: swap.after, current: swap.new.inode };
        let ledger = record.ledger.unwrap_or(start);
        if ledger == Ledger::CLOSED {
            return Ok(OpenedLeftover::NotOurs("its run has come to its end"));
        }
        let (name, length) = (name.to_string(), found.len());
        let (is_from_later_run, is_kept) = (false, false);
        Ok(OpenedLeftover::Ours(Box::new(Self {
            name,
            file,
            length,
            inode,
            record,
            swap,
            ledger,
            is_from_later_run,
            is_kept,
        })))
    }

    /// Whether it is the text from before the run, and not the new one.
    pub(super) fn is_old(&self) -> bool {
        self.inode == self.swap.old.inode
    }

    /// Whether it has to go, or has come into the vault and was appended to since.
    fn has_work(&self) -> bool {
        !self.is_kept || self.length > self.ledger.known
    }

    /// Nothing of it is missing in the transcript: removes it, or has the vault keep the old file whole.
    pub(super) fn settle(&self, now: &Snapshot, vault: &Vault) -> io::Result<()> {
        let known = Ledger { known: self.length, upto: self.length, ..self.ledger };
        if self.is_kept {
            self.note(vault, &known);
        } else if self.is_old() && beside::is_old(&self.name) {
            vault.run_for_notes(&self.record)?.keep_whole(&now.place, &self.name, &self.file)?;
            self.note(vault, &known);
        } else {
            self.remove(&now.place)?;
            self.note(vault, &Ledger::CLOSED);
        }
        self.mark(now, vault);
        Ok(())
    }

    /// Takes over from later runs how far this file is accounted for. A later run counts only if it has landed. Its record
    /// says so, unless it died before that was recorded; then the inodes at the path and under its second name show it.
    fn apply_later_runs(
        &mut self,
        now: &Snapshot,
        vault: &Vault,
        left: &[(String, u64)],
    ) -> Result<(), Error> {
        for record in vault.runs(&now.path)?.into_iter().flatten() {
            let Some(swap) = &record.swap else { continue };
            let landed = record.state != RunState::Kept
                || swap.new.inode == now.metadata.ino()
                || left.iter().any(|(run, inode)| *run == record.run && *inode == swap.old.inode);
            let accounts = record.accounts.iter().filter(|account| account.run == self.record.run);
            for account in accounts.filter(|_| landed) {
                if !self.is_from_later_run || account.ledger.known >= self.ledger.known {
                    self.ledger = account.ledger;
                    self.is_from_later_run = true;
                }
            }
        }
        Ok(())
    }

    /// Records how far it is accounted for. If that fails, the run that brought the lines over has
    /// it in its record too.
    pub(super) fn note(&self, vault: &Vault, ledger: &Ledger) {
        let note = || {
            let run = vault.run_for_notes(&self.record)?;
            run.note(ledger)?;
            run.sync()
        };
        let _: io::Result<()> = note();
    }

    fn remove(&self, place: &Place) -> io::Result<()> {
        before(Step::Clean)?;
        place.remove(&self.name)?;
        place.sync()
    }

    /// Records in the vault whether the run landed.
    fn mark(&self, now: &Snapshot, vault: &Vault) {
        if self.record.state != RunState::Kept {
            return;
        }
        let Ok(run) = vault.run_for_notes(&self.record) else { return };
        if self.is_old() {
            run.landed();
        } else if self.swap.old.inode == now.metadata.ino() {
            run.forget();
        }
    }

    /// Removes a leftover whose transcript is gone, unless it has lines that were appended during the replacement.
    pub(super) fn abandoned(&self, place: &Place, vault: &Vault) -> Result<(), Error> {
        let fail = |cause| Error::new(&place.path_of(&self.name), FINISH, cause);
        let known = if self.is_old() { self.ledger.known } else { self.ledger.at };
        if self.length > known {
            let why = "its transcript is gone, but this file holds lines that came last";
            return Err(fail(io::Error::other(why)).with_way_out("remove it if nobody needs them"));
        }
        self.remove(place).map_err(fail)?;
        if let Some(run) = vault.run_for_notes(&self.record).ok().filter(|_| !self.is_old()) {
            run.forget();
        }
        Ok(())
    }
}
