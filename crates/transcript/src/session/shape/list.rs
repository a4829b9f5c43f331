//! The order of the lines is all there is.

use crate::model::entry::Kind;
use crate::session::view::Session;

impl Session<'_> {
    pub(in crate::session) fn join_list(&mut self) {
        let live = (0..).zip(&self.transcript.entries).filter(|(_, entry)| entry.kind != Kind::Opaque);
        self.set_live(live.map(|(index, _)| index).collect());
        self.context.fill(true);
    }
}
