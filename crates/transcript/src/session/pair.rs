//! Which result answers which call.

use super::view::{Answers, NONE, Session};
use crate::model::entry::StopReason;
use crate::model::ids::Id;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// How the calls and results with one id have paired so far. Every id of a call has one, so rare fields are boxed.
#[derive(Clone, Default)]
struct Uses {
    /// The open call, if there is just one, as nearly always.
    single: Option<u32>,
    /// The newest call with a result. One more result is of that call, also after one that came late has moved up
    /// to an earlier call.
    answered: Option<u32>,
    rare: Option<Box<RareUses>>,
}

/// What few ids need.
#[derive(Clone, Default)]
struct RareUses {
    /// The open calls, turn by turn, if there are several.
    turns: Vec<(u64, VecDeque<u32>)>,
    /// Results for which there was no call yet.
    early: Vec<u32>,
}

impl Uses {
    fn rare(&mut self) -> &mut RareUses {
        self.rare.get_or_insert_default()
    }

    fn open(&mut self, call: u32, turn: impl Fn(u32) -> u64) {
        if self.single.is_none() && self.rare.as_ref().is_none_or(|rare| rare.turns.is_empty()) {
            self.single = Some(call);
            return;
        }
        for call in self.single.take().into_iter().chain([call]) {
            let turns = &mut self.rare().turns;
            match turns.last_mut().filter(|(newest, _)| *newest == turn(call)) {
                Some((_, calls)) => calls.push_back(call),
                None => turns.push((turn(call), [call].into())),
            }
        }
    }

    /// The first open call of the newest turn that has one.
    fn close(&mut self) -> Option<u32> {
        if let Some(call) = self.single.take() {
            return Some(call);
        }
        let turns = &mut self.rare.as_mut()?.turns;
        let call = turns.last_mut().and_then(|(_, calls)| calls.pop_front());
        turns.pop_if(|(_, calls)| calls.is_empty());
        call
    }
}

/// The uses of each id. Most ids are not of calls and have none.
struct UsesById {
    /// Index into `all` for each id.
    at: Vec<u32>,
    all: Vec<Uses>,
}

impl UsesById {
    fn new(ids: usize) -> Self {
        Self { at: vec![NONE; ids], all: Vec::new() }
    }

    /// Those of an id.
    fn uses_of(&mut self, id: Id) -> &mut Uses {
        let at = &mut self.at[id.index()];
        if *at == NONE {
            *at = self.all.len() as u32;
            self.all.push(Uses::default());
        }
        &mut self.all[*at as usize]
    }
}

impl Session<'_> {
    /// Finds the result of each call, by the order along the branch and not by id alone, because later turns may use an id
    /// again.
    pub(super) fn pair(&mut self) {
        let everywhere = self.shape.pairs_anywhere;
        let order: Vec<u32> = if everywhere {
            let all = 0..self.transcript.entries.len() as u32;
            all.filter(|&entry| !self.superseded(entry)).collect()
        } else {
            core::mem::take(&mut self.live)
        };
        let mut uses = UsesById::new(self.transcript.ids.len());
        for &entry in &order {
            for call in self.transcript.calls_of(entry) {
                let said = self.is_said(call as u32);
                let Some(id) = self.call(call as u32).key.filter(|_| said) else { continue };
                uses.uses_of(id).open(call as u32, |call| self.turn(self.call(call).entry));
            }
            let hidden = self.edit_of(entry).is_some_and(|edit| edit.hides);
            for result in self.transcript.results_of(entry).filter(|_| !hidden) {
                let found = self.result(result);
                // It may name an id that is too long to be kept. Two bytes are an empty literal.
                self.answers[result] =
                    if found.call_at().len() > 2 { Answers::Unseen } else { Answers::Nothing };
                let Some(id) = found.key else { continue };
                self.answers[result] = Answers::Nothing;
                let uses = uses.uses_of(id);
                // An interrupted call waits for nothing once a later one with its id has been answered.
                let answered = uses.answered;
                let waits = |&call: &u32| Some(call) > answered || !self.is_aborted(call);
                let mut open = core::iter::from_fn(|| uses.close());
                if let Some(call) = open.find(waits) {
                    uses.answered = uses.answered.max(Some(call));
                    self.answers[result] = Answers::Call(call);
                    self.result_of[call as usize] = result as u32;
                } else if let Some(call) = uses.answered {
                    self.answers[result] = Answers::Again(call);
                } else {
                    uses.rare().early.push(result as u32);
                }
            }
        }
        if !everywhere {
            self.live = order;
        }
        // Results that stood before their call.
        let rare = uses.all.into_iter().filter_map(|uses| Some((uses.single, uses.answered, uses.rare?)));
        let mut early: Vec<_> = rare.filter(|(_, _, rare)| !rare.early.is_empty()).collect();
        early.sort_unstable_by_key(|(_, _, rare)| rare.early[0]);
        for (single, mut answered, rare) in early {
            let several = rare.turns.into_iter().flat_map(|(_, calls)| calls);
            let mut open = single.into_iter().chain(several);
            for result in rare.early {
                self.answers[result as usize] = match (open.next(), answered) {
                    (Some(call), _) => {
                        self.result_of[call as usize] = result;
                        answered = answered.max(Some(call));
                        Answers::Call(call)
                    }
                    (None, Some(call)) => Answers::Again(call),
                    (None, None) => Answers::Nothing,
                };
            }
        }
    }

    fn is_aborted(&self, call: u32) -> bool {
        self.entry(self.call(call).entry).stop == StopReason::Aborted
    }

    /// Of several results of a call, makes the best one its answer, so that all rules are about the one that stays when the
    /// others are taken out.
    pub(super) fn elect(&mut self) {
        for result in 0..self.answers.len() {
            let Answers::Again(call) = self.answers[result] else { continue };
            let Some(first) = self.result_of(call) else { continue };
            if self.worth(call, result) < self.worth(call, first) {
                self.answers[first] = Answers::Again(call);
                self.answers[result] = Answers::Call(call);
                self.result_of[call as usize] = result as u32;
            }
        }
    }

    /// Sorts the results of a call; the least is kept. Off-branch copies are never sent. A result before the call may belong
    /// to an earlier call with the same id, above a missing parent.
    fn worth(&self, call: u32, result: usize) -> (bool, bool, bool, bool, bool, usize) {
        let found = self.result(result);
        let before_call = self.place(found.entry) < self.place(self.call(call).entry);
        let apart = !self.is_in_record_of_call(result);
        (!self.is_live(found.entry), found.synthetic, before_call, apart, found.error, result)
    }

    pub(super) fn find_pending(&mut self) {
        if self.nothing_answers() {
            return;
        }
        // Only the newest turn can be pending, and that is among the last entries that the model wrote.
        let Some(newest) = self.newest() else { return };
        let turn = self.turn(newest);
        let members = || self.live.iter().copied().filter(|&entry| self.turn(entry) == turn);
        let open = |entry: u32| {
            self.transcript.calls_of(entry).any(|call| self.result_of(call as u32).is_none())
                && self.entry(entry).stop != StopReason::Aborted
        };
        if members().any(open) {
            self.pending_from = members().min().unwrap_or(NONE);
        }
    }
}
