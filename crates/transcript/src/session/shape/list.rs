//! The order of the lines is all there is.

use crate::model::entry::Kind;
use crate::session::traits::{Compacts, Traits};
use crate::session::view::Session;

pub(super) static LIST: Traits = Traits {
    join: |session| session.join_list(),
    sent_as_written: true,
    short_ids_below: usize::MAX,
    compacts: Compacts::InPlace,
    ..Traits::BASE
};

impl Session<'_> {
    pub(super) fn join_list(&mut self) {
        let live = (0..).zip(&self.transcript.entries).filter(|(_, entry)| entry.kind != Kind::Opaque);
        self.set_live(live.map(|(index, _)| index).collect());
        self.context.fill(true);
    }
}
