//! Reads a text into entries while it is written, in another thread.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use transcript::scan::Scanner;

/// How many pieces may wait.
const PIECES_MAX: usize = 4;

/// A thread that reads what it is given. It ends when nothing more can come.
pub(super) struct ReadAhead {
    pieces: SyncSender<Vec<u8>>,
    /// Pieces that were read, for their memory.
    done: Receiver<Vec<u8>>,
    reading: JoinHandle<Scanner<'static>>,
}

impl ReadAhead {
    pub(super) fn begin() -> io::Result<Self> {
        let ((pieces, given), (back, done)) = (sync_channel::<Vec<u8>>(PIECES_MAX), channel());
        let read = move || {
            let mut scanner = Scanner::new();
            for mut piece in given {
                scanner.feed(&piece);
                piece.clear();
                // Nobody may want it any more.
                let _ = back.send(piece);
            }
            scanner
        };
        Ok(Self { pieces, done, reading: Builder::new().spawn(read)? })
    }

    /// Takes the next bytes, and gives an empty piece.
    pub(super) fn take(&self, piece: Vec<u8>) -> Vec<u8> {
        // If the thread is gone, the text is read again.
        let _ = self.pieces.send(piece);
        self.done.try_recv().unwrap_or_default()
    }

    /// What read all of it; `None` if the text has to be read again.
    pub(super) fn finish(self) -> Option<Scanner<'static>> {
        drop(self.pieces);
        self.reading.join().ok()
    }
}
