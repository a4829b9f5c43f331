//! What is remembered of a session, and what an appended entry changes about it.

use super::branch::Branch;
use super::seen::{Reads, SeenIds, reads};
use super::turn::NewestTurn;
use crate::examine::context::says;
use crate::format::{Format, Shape};
use crate::model::entry::{ContentIssueKind, Kind, Link, Role, Service, StopReason};
use crate::model::finding::{Finding, Guard, Held, Op, Safety, Severity};
use crate::model::policy::{Policy, SignedThinking};
use crate::model::rule::Codes;
use crate::model::transcript::Transcript;
use crate::rule::mirrored_reply::MIRROR;
use crate::rule::unreadable_size::WHOLE_BYTES_MAX;
use crate::rule::{
    Feature, Heals, RULES, Repeats, RoleFlow, Titles, are_plain, bound_thinking, flow, is_from_user,
    is_taken, lacks_a_user, most, oversized_for_summary, woken_by,
};
use crate::session::tokens::BranchPosition;
use crate::session::{Answers, Awaits, Session, traits};
use alloc::vec::Vec;
use core::cell::Cell;
use serde::{Deserialize, Serialize};
use spans::json::Odd;

/// Serialises a set of rules as their codes.
mod codes {
    use super::{Codes, Vec};
    use alloc::string::String;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(codes: &Codes, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(codes.iter())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Codes, D::Error> {
        let mut codes = crate::rule::NONE;
        Vec::<String>::deserialize(from)?.iter().for_each(|code| codes.insert(code));
        Ok(codes)
    }
}

/// What a run asks of an append, and which rules have already reported.
pub(super) struct FeatureCheck<'a> {
    pub(super) policy: &'a Policy,
    format: &'static Format,
    /// Rules that report only once per file, and have done so.
    reported: Codes,
    /// Whether only a look can tell the numbers, because the append adds to a finding of such a rule, or to abandoned
    /// branches.
    unclear: Cell<bool>,
}

impl FeatureCheck<'_> {
    /// Checks a feature. It is an error if it is `there` and wakes a selected rule, unless that rule has already
    /// reported.
    pub(super) fn feature(&self, present: bool, feature: Feature) -> Result<(), Feature> {
        for rule in woken_by(self.policy, self.format, feature).filter(|_| present) {
            if !self.reported.has(rule.code()) {
                return Err(feature);
            }
            self.unclear.set(true);
        }
        Ok(())
    }

    /// Checks a feature that may make a reported finding go away.
    fn healing(&self, present: bool, feature: Feature) -> Result<(), Feature> {
        let reported =
            || woken_by(self.policy, self.format, feature).any(|rule| self.reported.has(rule.code()));
        if present && reported() { Err(feature) } else { Ok(()) }
    }
}

/// What has to be read for an append beside its entries.
pub(super) struct AppendedFacts {
    /// See [`super::turn::line_breaks`].
    pub(super) breaks: Vec<u64>,
    /// Texts were cut.
    pub(super) is_cut: bool,
    /// The files that calls read.
    pub(super) reads: Reads,
}

/// What is known of an appended entry.
#[derive(Clone, Copy)]
pub(super) struct AppendedEntry {
    pub(super) place: BranchPosition,
    /// Whether it counts as one more message.
    pub(super) says: bool,
}

/// What is known of all that was appended.
pub(super) struct TakenEntries {
    /// The last live assistant message.
    pub(super) spoke: Option<u32>,
    pub(super) all: Vec<AppendedEntry>,
    /// Only a look can tell how many messages and findings there are now.
    pub(super) unclear: bool,
}

/// What is known of a session that can be judged.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct JudgedSession {
    format: &'static Format,
    seen: SeenIds,
    branch: Branch,
    turn: NewestTurn,
    /// Rules that report only once per file, and have done so.
    #[serde(with = "codes")]
    reported: Codes,
    /// Some fixes invent ids, and a similar id in the file could change them.
    makes_ids: bool,
    /// Some findings are about the newest turn.
    in_turn: bool,
    /// An edit before bound thinking would change findings.
    binding: bool,
    /// The last message is the user's.
    asks: bool,
    /// The newest turn has content.
    says: bool,
    /// The newest turn may end with thinking.
    thought: bool,
    /// Empty content is no problem in this format.
    empty_is_nothing: bool,
    /// Empty texts that the agent does not send were reported, so more of them add nothing.
    blank: bool,
    /// No user message is in context.
    lacks_a_user: bool,
    ordinal: Option<u64>,
    /// The session id in the rows.
    session: Option<u64>,
    titles: Titles,
}

impl JudgedSession {
    pub(super) fn from_session(session: &Session<'_>, findings: &[Finding]) -> Result<Self, Feature> {
        let (policy, format, transcript) = (session.policy, session.format, session.transcript);
        let files = reads(session.source, format, transcript).map_err(|_| Feature::Rewritten)?;
        let turn = NewestTurn::from_session(session, &files)?;
        let (branch, floor) = Branch::from_session(session)?;
        let in_turn = are_stable(session, findings, floor, turn.is_open())?;
        let mut reported = crate::rule::NONE;
        findings
            .iter()
            .filter(|found| found.rule.repeats != Repeats::Each)
            .for_each(|found| reported.insert(found.rule.code()));
        // Only empty texts count here; an empty result has the same code.
        let no_result = |entry: u32| transcript.results_of(entry).is_empty();
        let about_texts = |finding: &Finding| {
            finding.rule.wakes.contains(&Feature::EmptyText) && finding.entry.is_some_and(no_result)
        };
        let wakes = woken_by(policy, format, Feature::EmptyText).next().is_some();
        let texts_known = !wakes || findings.iter().any(about_texts);
        let newest = session.newest().map(|newest| session.turn(newest));
        let in_newest = |&entry: &u32| Some(session.turn(entry)) == newest;
        let issues =
            || session.live.iter().copied().filter(in_newest).flat_map(|entry| transcript.issues_of(entry));
        let empty_is_nothing = format.content.empty.is_none() && format.content.blank.is_none();
        // A message that has nothing but empty texts is reported as a whole; with more text in a later line, its empty
        // texts are.
        if !empty_is_nothing && !texts_known && issues().any(|issue| issue.kind == ContentIssueKind::Blank) {
            return Err(Feature::Unsettled);
        }
        let mut seen = SeenIds::from_ids(&transcript.ids, transcript.bytes);
        for answers in &session.answers {
            if let Answers::Call(call) | Answers::Again(call) = answers
                && let Some(file) = files.get(call)
            {
                seen.insert(&file.0);
            }
        }
        let last = session.live.iter().rev().map(|&entry| flow_of(transcript, entry));
        Ok(Self {
            format,
            seen,
            branch,
            turn,
            reported,
            makes_ids: findings.iter().any(|finding| finding.rule.makes_ids),
            in_turn,
            binding: is_binding(session, findings),
            asks: last.into_iter().find(|flow| *flow != RoleFlow::Neither) == Some(RoleFlow::Asks),
            says: session.live.iter().any(|entry| in_newest(entry) && says(session, *entry)),
            thought: issues().any(|issue| ends(issue.kind)),
            empty_is_nothing,
            blank: format.content.blank == Some(Severity::Note) && texts_known,
            lacks_a_user: lacks_a_user(session),
            ordinal: transcript.ordinals.map(|(_, last)| last),
            session: transcript.session,
            titles: Titles::from_transcript(transcript),
        })
    }

    pub(super) fn weight(&self) -> usize {
        self.seen.weight() + self.branch.weight() + self.turn.weight()
    }

    /// Whether more cut texts would change the findings about thinking.
    pub(super) fn cuts_matter(&self) -> bool {
        !self.binding
    }

    /// Adds all appended entries.
    pub(super) fn take_all(
        &mut self,
        added: &Transcript,
        more: &AppendedFacts,
        policy: &Policy,
        awaits: &mut Option<Awaits>,
    ) -> Result<TakenEntries, Feature> {
        if !added.damage.is_empty() {
            return Err(Feature::Damage);
        }
        let check =
            FeatureCheck { policy, format: self.format, reported: self.reported, unclear: Cell::new(false) };
        self.binding |= more.is_cut;
        self.take_titles(added, &check)?;
        check.feature(added.bytes > WHOLE_BYTES_MAX, Feature::LongFile)?;
        check.feature(added.session.is_some() && added.session != self.session, Feature::Foreign)?;
        if let Some((first, last)) = added.ordinals {
            let breaks = self.ordinal.is_some_and(|before| before.checked_add(1) != Some(first));
            check.feature(breaks, Feature::Ordinal)?;
            self.ordinal = Some(last);
        }
        let (mut spoke, mut all) = (None, Vec::with_capacity(added.entries.len()));
        for entry in 0..added.entries.len() as u32 {
            let taken = self.take(added, more, entry, &check)?;
            all.push(taken);
            if taken.place.is_live() {
                let found = &added.entries[entry as usize];
                self.turn.awaits(found, awaits);
                spoke = if found.kind == Kind::Message(Role::Assistant) { Some(entry) } else { spoke };
            }
        }
        added.ids.texts().for_each(|text| self.seen.insert(text));
        Ok(TakenEntries { spoke, all, unclear: check.unclear.get() })
    }

    /// Adds titles. One that agents could not find may be found now.
    fn take_titles(&mut self, added: &Transcript, check: &FeatureCheck<'_>) -> Result<(), Feature> {
        let named = |service| matches!(service, Service::Title | Service::MadeTitle);
        let renamed = added.entries.iter().any(|entry| named(entry.service));
        check.healing(renamed, Feature::Title)?;
        added.entries.iter().for_each(|entry| self.titles.take(entry));
        check.feature(self.titles.unseen(added.bytes).is_some(), Feature::Title)
    }

    /// Adds an entry.
    fn take(
        &mut self,
        added: &Transcript,
        more: &AppendedFacts,
        entry: u32,
        check: &FeatureCheck<'_>,
    ) -> Result<AppendedEntry, Feature> {
        let found = &added.entries[entry as usize];
        let begins = self.turn.begins(added, entry);
        self.is_plain(added, entry, begins)?;
        self.pairs(added, entry)?;
        self.notable(added, entry, begins, check)?;
        self.is_new(added, entry, begins)?;
        let place = self.branch.hang(added, entry, begins)?;
        // The model never sees such an entry, whether it is on the branch or not.
        if !place.is_live() {
            if !added.calls_of(entry).is_empty() || !added.results_of(entry).is_empty() {
                return Err(Feature::Unplaced);
            }
            let spoken = matches!(found.kind, Kind::Message(_) | Kind::Note);
            let beside = if found.is_sidechain { Feature::Sidechain } else { Feature::Beside };
            check.feature(spoken, beside)?;
            check.unclear.set(check.unclear.get() || spoken && !found.is_sidechain);
            return Ok(AppendedEntry { place, says: false });
        }
        self.turn.take(added, more, entry, check, self.branch.is_ordered())?;
        for file in self.turn.files_read() {
            check.feature(self.seen.may_hold(&file.0), Feature::Reread)?;
            self.seen.insert(&file.0);
        }
        self.lacks_a_user &= !self.is_from_user(added, entry);
        match flow_of(added, entry) {
            RoleFlow::Asks => self.asks = true,
            RoleFlow::Answers => self.asks = false,
            RoleFlow::Neither => {}
        }
        if begins || found.kind == Kind::Message(Role::Assistant) {
            self.thought = added.issues_of(entry).iter().any(|issue| ends(issue.kind));
        }
        let says = self.says(added, entry, begins, check);
        Ok(AppendedEntry { place, says })
    }

    /// Whether an entry of the live branch is one more message. Its results answer calls of the newest turn.
    fn says(&mut self, added: &Transcript, entry: u32, begins: bool, check: &FeatureCheck<'_>) -> bool {
        let found = &added.entries[entry as usize];
        let says = match found.kind {
            Kind::Message(Role::Assistant) => found.text_chars > 0 || !added.calls_of(entry).is_empty(),
            Kind::Message(Role::User) => found.text_chars > 0,
            Kind::Message(Role::Tool) => !added.results_of(entry).is_empty(),
            Kind::Note => found.text_chars > 0 && !traits(self.format.shape).notes_are_summaries,
            _ => return false,
        };
        if begins || found.kind == Kind::Message(Role::Assistant) {
            let again = self.says && !begins;
            self.says = says || again;
            return says && !again;
        }
        // Other entries may belong to a message too.
        check.unclear.set(check.unclear.get() || found.group.is_some());
        says
    }

    /// Whether an entry has nothing unusual that only a look can judge.
    fn is_plain(&self, added: &Transcript, entry: u32, begins: bool) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        // Of a graph the branch decides.
        let names = found.kind == Kind::Leaf && self.format.shape == Shape::Graph;
        let moves = matches!(found.kind, Kind::Boundary | Kind::Header | Kind::Leaf)
            || added.has_target(entry)
            || added.edits().iter().any(|edit| edit.entry == entry);
        let binds =
            !added.thinking_of(entry).is_empty() && bound_thinking::model_binds(added.id_text(found.model));
        let reopens = self.in_turn && !begins && !added.calls_of(entry).is_empty();
        let odd = added.issues_of(entry).iter().any(|issue| match issue.kind {
            ContentIssueKind::BlankResult(..) | ContentIssueKind::Empty => !self.empty_is_nothing,
            ContentIssueKind::Blank
            | ContentIssueKind::AlteredThought
            | ContentIssueKind::Foreign
            | ContentIssueKind::Ordinal
            | ContentIssueKind::TurnBegins => false,
            kind => !ends(kind),
        });
        let checks = [
            (found.glued || found.odd != Odd::default(), Feature::Damage),
            (moves && !names, Feature::Unplaced),
            (found.stop == StopReason::Aborted || found.service == Service::Failure, Feature::Failure),
            (binds && self.binding || reopens, Feature::Unsettled),
            (odd, Feature::Odd),
        ];
        checks.into_iter().find(|(present, _)| *present).map_or(Ok(()), |(_, feature)| Err(feature))
    }

    /// Whether the provider accepts the entry's calls and results.
    fn pairs(&self, added: &Transcript, entry: u32) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        let (calls, results) = (added.calls_of(entry), added.results_of(entry));
        // No later line can answer calls of a whole conversation.
        let unanswered = self.format.results.of_conversations() && calls.len() > results.len();
        let mixed = !results.is_empty() && found.kind != Kind::Message(Role::Tool);
        let waits = found.stop == StopReason::ToolUse && calls.is_empty() && self.branch.is_ordered();
        let strange = |call: &_| self.format.has_plain_ids && !is_taken(added.id_text(*call));
        let found = &added.calls[calls.clone()];
        let odd = found.iter().any(|call| call.partial || strange(&call.id));
        if unanswered || mixed || waits || odd || !are_plain(self.format, added, calls) {
            return Err(Feature::Unpaired);
        }
        Ok(())
    }

    fn is_from_user(&self, added: &Transcript, entry: u32) -> bool {
        is_from_user(&added.entries[entry as usize], traits(self.format.shape))
    }

    /// Whether an entry has a feature that wakes a selected rule.
    fn notable(
        &self,
        added: &Transcript,
        entry: u32,
        begins: bool,
        check: &FeatureCheck<'_>,
    ) -> Result<(), Feature> {
        let (found, policy) = (&added.entries[entry as usize], check.policy);
        let issue = |kind| added.issues_of(entry).iter().any(|issue| issue.kind == kind);
        let (too_long, too_dense) = oversized_for_summary::too_much(policy, found.text_chars);
        let limit = policy.side_chars_max;
        let side = || added.sides_of(entry).iter().any(|side| most(policy, &[*side]) > limit);
        let list = || added.side_lists_of(entry).iter().any(|list| list.at.len() > limit);
        // A missing user message is reported once; if calls come first, where that matters, the report is another one.
        let first = self.format.content.begins_with_user.is_some() && !added.calls_of(entry).is_empty();
        let otherwise = self.is_from_user(added, entry) || first;
        check.healing(self.lacks_a_user && otherwise, Feature::NoUser)?;
        let speaks = found.kind == Kind::Message(Role::Assistant);
        // Nothing can follow this thinking any more.
        let alone = self.thought && (begins || found.kind == Kind::Message(Role::Tool));
        let empty = issue(ContentIssueKind::Blank) && !self.blank && !self.empty_is_nothing;
        for (present, feature) in [
            (true, Feature::Record),
            (too_long || too_dense, Feature::LongText),
            (limit > 0 && (side() || list()), Feature::LongSide),
            (!added.images_of(entry).is_empty(), Feature::Image),
            (empty, Feature::EmptyText),
            (alone, Feature::LoneThinking),
            (issue(ContentIssueKind::AlteredThought), Feature::AlteredThought),
            (self.asks && flow_of(added, entry) == RoleFlow::Asks, Feature::Again),
            (self.lacks_a_user && speaks, Feature::NoUser),
            (issue(ContentIssueKind::Foreign), Feature::Foreign),
            (issue(ContentIssueKind::Ordinal), Feature::Ordinal),
            (added.id_text(found.model) == MIRROR, Feature::Mirror),
            (found.service == Service::Progress, Feature::Progress),
            (
                matches!(found.service, Service::Snapshot | Service::SentTexts | Service::Reset),
                Feature::Snapshot,
            ),
            (found.service == Service::RequestLog, Feature::RequestLog),
        ] {
            check.feature(present, feature)?;
        }
        Ok(())
    }

    /// Whether the ids of new things were not used before.
    fn is_new(&mut self, added: &Transcript, entry: u32, begins: bool) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        // An entry whose parent is not there yet, or is itself, may close a cycle.
        if let Link::To(id) = found.parent
            && !self.seen.may_hold(added.ids.text(id))
        {
            return Err(Feature::Unplaced);
        }
        let mut ids: Vec<_> = [found.id, found.group.filter(|_| begins)].into_iter().flatten().collect();
        for call in &added.calls[added.calls_of(entry)] {
            ids.push(call.id.ok_or(Feature::Unpaired)?);
        }
        for text in ids.into_iter().map(|id| added.ids.text(id)) {
            if self.seen.may_hold(text) || self.makes_ids && memchr::memmem::find(text, b"__").is_some() {
                return Err(Feature::Reused);
            }
            self.seen.insert(text);
        }
        Ok(())
    }
}

/// Whether the findings stay the same when ordinary entries are appended; if so, returns whether some are about the
/// newest turn. `floor` is the first entry that an append may affect.
fn are_stable(session: &Session<'_>, findings: &[Finding], floor: u32, open: bool) -> Result<bool, Feature> {
    let policy = session.policy;
    let mut stable = policy.is_about_the_newest();
    // How full the window is changes with each append.
    stable &= !findings.iter().any(|finding| finding.rule.wakes.contains(&Feature::Crowded));
    // What may be removed is reported again when the file grows.
    stable &=
        !RULES.iter().any(|rule| rule.repeats == Repeats::Counted && policy.selection.allows(rule.code()));
    let strip = session.case().thinking() == SignedThinking::Strip;
    let mut in_turn = false;
    for finding in findings {
        let (rule, safety) = (finding.rule, finding.fix.safety);
        let is_error = finding.severity == Severity::Error;
        let newest = [
            Safety::Held(Held::NewestTurn),
            Safety::Held(Held::SignedAndBroken),
            Safety::Guarded(Guard::NewestEntry),
        ];
        let heals = match rule.heals {
            Heals::Never => false,
            // Children of an entry are also children of its copy.
            Heals::Copies => finding.entry.is_some_and(|entry| session.shares_its_id(entry)),
            Heals::Refusals => safety == Safety::Safe || is_error,
            Heals::Always => true,
        };
        let may_go = finding.saves_bytes.is_some() && safety == Safety::None;
        let held = safety == Safety::Held(Held::RecentlyUsed) && is_error;
        stable &= !(newest.contains(&safety) || (strip && safety != Safety::None));
        stable &= !(heals || may_go || held);
        let own = touched(session, finding).is_some_and(|entry| entry >= floor);
        stable &= !own || !open && entry_alone_decides(session, finding, floor);
        in_turn |= own;
    }
    if stable { Ok(in_turn) } else { Err(Feature::Unsettled) }
}

/// Whether bound thinking affects findings: it may hold back fixes, texts before it were cut, or that is unknown.
fn is_binding(session: &Session<'_>, findings: &[Finding]) -> bool {
    let may = |finding: &Finding| matches!(finding.fix.safety, Safety::Safe | Safety::Guarded(_));
    let visible = findings.iter().any(|finding| finding.rule.model_sees && may(finding));
    let gated = visible && session.case().thinking() != SignedThinking::Ignore;
    let remembered = findings.iter().any(|finding| finding.rule.heals == Heals::Refusals);
    gated || !(remembered || bound_thinking::is_uncut(session))
}

/// The last entry that a finding involves.
fn touched(session: &Session<'_>, finding: &Finding) -> Option<u32> {
    let entries = &session.transcript.entries;
    let at = |at: u64| (entries.partition_point(|entry| entry.span.start <= at) as u32).checked_sub(1);
    let of_op = |op: &Op| match *op {
        Op::Replace { at: span, .. } | Op::Cut { at: span, .. } => at(span.end),
        Op::DropBlock { entry, .. } | Op::DropEntry(entry) | Op::DropCopy(entry) | Op::ToFront(entry) => {
            Some(entry)
        }
        Op::Move { entry, after } => Some(entry.max(after)),
        Op::Answer(call) => Some(session.call(call).entry),
        Op::Keep(_) | Op::Insert { .. } => None,
    };
    finding.fix.ops.iter().filter_map(of_op).chain(finding.entry).max()
}

/// Whether the entry alone decides about the finding, and no later one of its turn.
fn entry_alone_decides(session: &Session<'_>, finding: &Finding, floor: u32) -> bool {
    // In a graph, the order of the turn's entries may still change, and so what comes before signed thinking.
    let binds = |&entry: &u32| {
        entry >= floor
            && !session.transcript.thinking_of(entry).is_empty()
            && bound_thinking::model_binds(session.transcript.id_text(session.entry(entry).model))
    };
    let moves = session.format.shape == Shape::Graph
        && session.case().thinking() != SignedThinking::Ignore
        && session.live.iter().any(binds);
    finding.rule.entry_decides && (!finding.rule.model_sees || !moves)
}

fn ends(kind: ContentIssueKind) -> bool {
    matches!(kind, ContentIssueKind::ThinkingLast | ContentIssueKind::ReasoningLast)
}

fn flow_of(transcript: &Transcript, entry: u32) -> RoleFlow {
    let empty = transcript.issues_of(entry).iter().any(|issue| issue.kind == ContentIssueKind::Empty);
    flow(&transcript.entries[entry as usize], empty, !transcript.calls_of(entry).is_empty())
}
