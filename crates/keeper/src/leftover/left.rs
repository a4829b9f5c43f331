//! A file of ours beside a transcript: whether it is to be believed, and how far it is accounted for.

use crate::beside::run_of;
use crate::error::Error;
use crate::place::Place;
use crate::platform::facts::{self, Metadata, MetadataExt};
use crate::platform::{OFlags, owner};
use crate::snapshot::Snapshot;
use crate::step::{Step, before};
use crate::vault::{Ledger, Record, State, Swap, Vault};
use std::fs::File;
use std::io::{self, ErrorKind};

/// What is done here, for errors.
pub(super) const FINISH: &str = "finish an interrupted run";

/// A file of ours beside a transcript.
pub(super) struct Leftover {
    name: String,
    pub(super) file: File,
    pub(super) length: u64,
    inode: u64,
    pub(super) record: Record,
    pub(super) swap: Swap,
    /// How much of the old file is accounted for.
    pub(super) ledger: Ledger,
    /// Whether that is known from a later run, which brought lines over.
    pub(super) brought: bool,
}

/// The leftovers of a transcript.
pub(super) fn left_of(now: &Snapshot, vault: &Vault) -> Result<Vec<Leftover>, Error> {
    let fail = |cause| Error::new(&now.path, "look for what an interrupted run left", cause);
    let names = now.place.names().map_err(fail)?;
    let mut found = Vec::new();
    for (name, run) in names.iter().filter_map(|name| Some((name, run_of(name)?))) {
        // A record that cannot be read is as good as none.
        let Ok(Some(record)) = vault.run(run) else { continue };
        if record.path.file_name() != Some(now.place.name()) {
            continue;
        }
        if let Opened::Ours(leftover) =
            Leftover::open(&now.place, name, record, Some(&now.metadata)).map_err(fail)?
        {
            found.push(*leftover);
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let left: Vec<(String, u64)> = found.iter().map(|one| (one.record.run.clone(), one.inode)).collect();
    for leftover in &mut found {
        leftover.learn(now, vault, &left)?;
    }
    Ok(found)
}

/// What stands under the name of a leftover.
pub(super) enum Opened {
    Ours(Box<Leftover>),
    Gone,
    /// And why not.
    NotOurs(&'static str),
}

impl Leftover {
    pub(super) fn open(
        place: &Place,
        name: &str,
        record: Record,
        transcript: Option<&Metadata>,
    ) -> io::Result<Opened> {
        let Some(swap) = record.swap.clone() else {
            return Ok(Opened::NotOurs("its run has replaced no file"));
        };
        let file = match place.open(name, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(file) => file,
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Opened::Gone),
            Err(cause) if facts::is_link(&cause) => return Ok(Opened::NotOurs("it is a link")),
            Err(cause) if cause.kind() == ErrorKind::PermissionDenied => {
                return Ok(Opened::NotOurs("it cannot be read"));
            }
            Err(cause) => return Err(cause),
        };
        let found = facts::of(&file)?;
        let inode = found.ino();
        if !found.is_file() || found.nlink() != 1 || !owner::is_ours_or_of(&file, &found, transcript) {
            return Ok(Opened::NotOurs("it is somebody else's, or has another name"));
        }
        if inode != swap.old.inode && inode != swap.new.inode {
            return Ok(Opened::NotOurs("it is not the file that its run left there"));
        }
        let start = Ledger { known: swap.before, upto: swap.before, at: swap.after, current: swap.new.inode };
        let ledger = record.ledger.unwrap_or(start);
        if ledger == Ledger::CLOSED {
            return Ok(Opened::NotOurs("its run has come to its end"));
        }
        let (name, length) = (name.to_string(), found.len());
        let brought = false;
        Ok(Opened::Ours(Box::new(Self { name, file, length, inode, record, swap, ledger, brought })))
    }

    /// Whether it is the text from before the run, and not the new one.
    pub(super) fn is_old(&self) -> bool {
        self.inode == self.swap.old.inode
    }

    /// Takes from later runs how far this file is accounted for. One counts if it has landed, which its record says, or
    /// the names of its two files, if nobody lived to write it down.
    fn learn(&mut self, now: &Snapshot, vault: &Vault, left: &[(String, u64)]) -> Result<(), Error> {
        for record in vault.runs(&now.path)?.into_iter().flatten() {
            let Some(swap) = &record.swap else { continue };
            let landed = record.state != State::Kept
                || swap.new.inode == now.metadata.ino()
                || left.iter().any(|(run, inode)| *run == record.run && *inode == swap.old.inode);
            let accounts = record.accounts.iter().filter(|account| account.run == self.record.run);
            for account in accounts.filter(|_| landed) {
                if !self.brought || account.ledger.known >= self.ledger.known {
                    self.ledger = account.ledger;
                    self.brought = true;
                }
            }
        }
        Ok(())
    }

    /// Writes down how far it is accounted for. What cannot be written is known from the run that brought the lines over.
    pub(super) fn note(&self, vault: &Vault, ledger: &Ledger) {
        let note = || {
            let run = vault.run_for_notes(&self.record)?;
            run.note(ledger)?;
            run.sync()
        };
        let _: io::Result<()> = note();
    }

    pub(super) fn remove(&self, place: &Place) -> io::Result<()> {
        before(Step::Clean)?;
        place.remove(&self.name)?;
        place.sync()
    }

    /// Says in the vault what became of the run.
    pub(super) fn mark(&self, now: &Snapshot, vault: &Vault) {
        if self.record.state != State::Kept {
            return;
        }
        let Ok(run) = vault.run_for_notes(&self.record) else { return };
        if self.is_old() {
            run.landed();
        } else if self.swap.old.inode == now.metadata.ino() {
            run.forget();
        }
    }

    /// Of a transcript that is gone nothing is kept, but for lines that were appended to it while it was replaced.
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
