//! A count of tokens that is carried on: adds what is appended to a session, without reading the rest again.

use super::rates::{self, UNIT};
use super::{
    COUNT_TIMES_MAX, ContextTokens, Entries, RECENT_TIMES_MIN, ReportedTokens, SEARCH_BYTES_MAX, falls,
    omitted_in, usage_of, window_in_error,
};
use crate::model::context_tokens::{Count, NewestNumber, Rates};
use crate::model::entry::{Entry, Kind};
use crate::model::transcript::Transcript;
use spans::fingerprint;
use spans::source::Fault;

/// Where an appended entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BranchPosition {
    /// Not on the live branch.
    Beside,
    /// At the end of the live branch.
    Live,
    /// On the live branch, beside the end of it: results of calls that were made together.
    Sibling,
    /// At the end of the live branch, once a message follows it.
    Waiting,
    /// Only a look can tell what becomes live with it.
    Unclear {
        /// Whether it is on the live branch itself.
        live: bool,
    },
}

impl BranchPosition {
    /// Whether it is on the live branch.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Live | Self::Sibling | Self::Unclear { live: true })
    }
}

impl NewestNumber {
    pub(super) fn new(all: Entries<'_>, at: u32, tokens: u64) -> Self {
        let found = all.entry(at);
        Self { tokens, line: found.line, group: group_of(all.transcript, found) }
    }
}

fn group_of(transcript: &Transcript, entry: &Entry) -> Option<u64> {
    entry.group.map(|group| fingerprint::hash(transcript.ids.text(group)))
}

impl Count {
    /// The tokens by this count.
    pub(crate) fn context_tokens(&self) -> ContextTokens {
        let estimated = self.rates.base + self.sum.div_ceil(UNIT);
        let window = self.window.or(self.stated.map(|(window, _)| window)).or(self.model_window);
        let number = self.number.as_ref().filter(|_| self.is_whole());
        let Some((number, gone)) = number.zip(self.gone) else {
            return ContextTokens { tokens: estimated, estimated, counted: None, window };
        };
        // A number that was reported after a cut may not show that it knows of it. It is never less than the texts.
        let there = number.tokens.saturating_sub(gone).max(self.before().min(number.tokens));
        ContextTokens {
            tokens: there.saturating_add(self.since.div_ceil(UNIT)),
            estimated,
            counted: Some(ReportedTokens { tokens: number.tokens, line: number.line }),
            window,
        }
    }

    /// What the texts up to the newest number are estimated at.
    fn before(&self) -> u64 {
        self.sum.saturating_sub(self.since).div_ceil(UNIT)
    }

    /// Whether the newest number can be that of all that the agent sent: some servers leave out what was cached.
    pub(super) fn is_whole(&self) -> bool {
        let covers = |recent: u64| {
            let least = recent.div_ceil(UNIT).saturating_mul(RECENT_TIMES_MIN);
            self.number.as_ref().is_some_and(|number| number.tokens >= least)
        };
        self.is_most() || self.recent.is_some_and(covers)
    }

    /// Whether the newest number is at least half of what stands up to it.
    pub(super) fn is_most(&self) -> bool {
        let number = self.number.as_ref();
        number.is_some_and(|number| number.tokens.saturating_mul(COUNT_TIMES_MAX) >= self.before())
    }

    /// Takes in an entry that was appended; false if that takes a look at the whole session, and this is of no use any
    /// more.
    pub(crate) fn take(
        &mut self,
        added: Entries<'_>,
        index: u32,
        place: BranchPosition,
    ) -> Result<bool, Fault> {
        let found = added.entry(index);
        if place == BranchPosition::Beside {
            return if found.kind == Kind::Opaque { self.search(added, found) } else { Ok(true) };
        }
        let model = found.model.map(|model| added.transcript.ids.text(model));
        let is_other = |model: &[u8]| {
            Rates::with(added.format, model) != self.rates
                || rates::window_of(model) != self.model_window
                || self.stated.is_some_and(|(_, stated)| stated != fingerprint::hash(model))
        };
        if model.is_some_and(is_other)
            || rates::is_instructions(found)
            || omitted_in(added, self.rates, index)? > 0
        {
            return Ok(false);
        }
        let cost = self.rates.entry(added, index);
        let (now, waiting) = match place {
            BranchPosition::Live => (cost, core::mem::take(&mut self.waiting)),
            BranchPosition::Waiting => {
                self.waiting = self.waiting.saturating_add(cost);
                (0, 0)
            }
            BranchPosition::Sibling if self.waiting == 0 => (cost, 0),
            BranchPosition::Unclear { live: false } if cost == 0 => (0, 0),
            _ => return Ok(false),
        };
        let is_of_number = self.number.as_ref().is_some_and(|number| {
            number.group.is_some() && number.group == group_of(added.transcript, found)
        });
        self.sum = self.sum.saturating_add(now).saturating_add(waiting);
        self.since = self.since.saturating_add(waiting);
        if !is_of_number {
            self.since = self.since.saturating_add(now);
        }
        self.search(added, found)
    }

    /// Looks for numbers in an entry.
    fn search(&mut self, added: Entries<'_>, found: &Entry) -> Result<bool, Fault> {
        self.left = self.left.saturating_sub(found.span.len());
        if let Some(usage) = usage_of(added, found)? {
            if usage.tokens > 0 {
                let before = self.number.as_ref().map_or(0, |number| number.tokens);
                // The first number, or one that may know of a cut.
                let Some(gone) = self.gone_next.filter(|gone| *gone == 0 || !falls(before, usage.tokens))
                else {
                    return Ok(false);
                };
                let group = group_of(added.transcript, found);
                self.number = Some(NewestNumber { tokens: usage.tokens, line: found.line, group });
                (self.since, self.gone, self.recent) = (0, Some(gone), None);
                // What else could confirm it is in what was not read again.
                if !self.is_most() {
                    return Ok(false);
                }
                let states = added.format.states_window;
                // Either the error still counts, or what was stated before it.
                if self.window_in_error && (states || !found.ends_request()) {
                    return Ok(false);
                }
                (self.window, self.window_in_error) = (self.window.filter(|_| states), false);
                self.left = SEARCH_BYTES_MAX.saturating_sub(found.span.len());
            }
            if usage.window > 0 {
                (self.window, self.window_in_error) = (Some(usage.window), false);
            }
        }
        if found.ends_request() {
            // What stands before that error would count again.
            if self.window_in_error {
                return Ok(false);
            }
            if let Some(window) = window_in_error(added, found)? {
                (self.window, self.window_in_error) = (Some(window), true);
            }
        }
        Ok(self.left > 0 || self.number.is_none() && self.window.is_none())
    }
}
