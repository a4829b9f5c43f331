//! Reads a text into entries while it is written: another thread reads what is there already.

use crate::content::FileSource;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use transcript::Span;
use transcript::parts::Parts;
use transcript::scan::Scanned;

/// A thread that reads a text up to where it is told.
pub(super) struct ReadAhead {
    ends: Sender<u64>,
    reading: JoinHandle<Option<Scanned>>,
}

impl ReadAhead {
    pub(super) fn begin(text: &File) -> io::Result<Self> {
        let (text, (ends, told)) = (text.try_clone()?, channel());
        let reading = Builder::new().spawn(move || read(&text, &told))?;
        Ok(Self { ends, reading })
    }

    /// Says up to where there are whole lines.
    pub(super) fn up_to(&self, end: u64) {
        // A thread that has given up asks for no more.
        let _ = self.ends.send(end);
    }

    /// The entries of what it was told; `None` if the text has to be read again in one piece.
    pub(super) fn finish(self) -> Option<Scanned> {
        drop(self.ends);
        self.reading.join().ok()?
    }
}

fn read(text: &File, ends: &Receiver<u64>) -> Option<Scanned> {
    let mut start = ends.recv().ok()?;
    let mut parts = Parts::begin(&FileSource::new(text, start), start).ok()??;
    for end in ends {
        let part = parts.reader().read(&FileSource::new(text, end), Span::new(start, end)).ok()?;
        if !parts.add(&part) {
            return None;
        }
        start = end;
    }
    parts.finish()
}
