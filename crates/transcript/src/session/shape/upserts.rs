//! Records by id: the last one with an id counts, at the place of the first (Gemini CLI).

use crate::model::entry::Kind;
use crate::session::traits::Traits;
use crate::session::view::{NONE, Session};
use alloc::vec;
use alloc::vec::Vec;

pub(super) static UPSERTS: Traits = Traits {
    join: |session| session.join_upserts(),
    emptied_records_stay: true,
    short_ids_below: usize::MAX,
    ..Traits::BASE
};

impl Session<'_> {
    /// Gemini CLI: of the records with one id the last one counts, at the place of the first. Records that were rewound, or
    /// that a later list of messages replaced, are not live.
    fn join_upserts(&mut self) {
        let mut order: Vec<u32> = Vec::new();
        let mut places = vec![NONE; self.transcript.ids.len()];
        // Ids are shared if another record would be read without one. A record that a list has replaced never is.
        self.shared.fill(false);
        for (index, entry) in (0..).zip(&self.transcript.entries) {
            match (entry.kind, entry.id) {
                (Kind::Boundary, _) => {
                    order.clear();
                    places.fill(NONE);
                    self.shared.fill(false);
                    order.push(index);
                }
                (Kind::Leaf, _) => {
                    let to = self.transcript.target_of(index).id;
                    // Rewinding to an unknown id removes everything.
                    let keep = to.map(|to| places[to.index()]).filter(|&place| place != NONE).unwrap_or(0);
                    for gone in order.drain(keep as usize..) {
                        if let Some(id) = self.transcript.entries[gone as usize].id {
                            places[id.index()] = NONE;
                        }
                    }
                }
                (_, Some(id)) if places[id.index()] != NONE => {
                    order[places[id.index()] as usize] = index;
                    self.shared[id.index()] = true;
                }
                (_, Some(id)) => {
                    places[id.index()] = order.len() as u32;
                    order.push(index);
                }
                _ => {}
            }
        }
        order.retain(|&entry| self.kind(entry) != Kind::Opaque);
        for &entry in &order {
            self.context[entry as usize] = true;
        }
        self.set_live(order);
    }
}
