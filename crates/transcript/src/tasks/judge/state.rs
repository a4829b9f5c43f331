//! What has to be remembered of a session that was looked at, and what an appended entry is to it.

use super::branch::Branch;
use super::seen::Seen;
use super::turn::Turn;
use crate::examine::context::says;
use crate::format::{Format, Shape};
use crate::model::entry::{ContentIssueKind, Kind, Link, Role, Service, Stop};
use crate::model::finding::{Finding, Guard, Held, Op, Safety, Severity};
use crate::model::policy::{Policy, SignedThinking};
use crate::model::rule::Codes;
use crate::model::transcript::Transcript;
use crate::rule::mirrored_reply::MIRROR;
use crate::rule::unreadable_size::WHOLE_BYTES_MAX;
use crate::rule::{
    Feature, Flow, Heals, RULES, Repeats, Titles, are_plain, bound_thinking, flow, is_from_user, is_taken,
    lacks_a_user, minding, most, oversized_for_summary,
};
use crate::session::tokens::Place;
use crate::session::{Awaits, Session, traits};
use alloc::vec::Vec;
use core::cell::Cell;
use serde::{Deserialize, Serialize};
use spans::json::Odd;

/// A set of rules as their codes.
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

/// What is asked for, and what was told of it.
pub(super) struct Asked<'a> {
    pub(super) policy: &'a Policy,
    format: &'static Format,
    /// Rules that tell a thing once, and have told it.
    told: Codes,
    /// Only a look can tell the numbers: there is more of what one of these has told, or of what is on no branch.
    unclear: Cell<bool>,
}

impl Asked<'_> {
    /// A feature is there, or it is not; an error if it is, and a rule minds it that has not told all it has to tell.
    pub(super) fn about(&self, there: bool, feature: Feature) -> Result<(), Feature> {
        for rule in minding(self.policy, self.format, feature).filter(|_| there) {
            if !self.told.has(rule.code()) {
                return Err(feature);
            }
            self.unclear.set(true);
        }
        Ok(())
    }

    /// The same of what may undo what was told.
    fn undoes(&self, there: bool, feature: Feature) -> Result<(), Feature> {
        let told = || minding(self.policy, self.format, feature).any(|rule| self.told.has(rule.code()));
        if there && told() { Err(feature) } else { Ok(()) }
    }
}

/// What was taken in.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub(super) place: Place,
    /// It is a message more.
    pub(super) says: bool,
}

/// What is known of a session that can be judged.
#[derive(Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct State {
    format: &'static Format,
    seen: Seen,
    branch: Branch,
    turn: Turn,
    /// Rules that tell a thing once, and have told it.
    #[serde(with = "codes")]
    told: Codes,
    /// Some fixes make ids up, and one that looks like those could change them.
    makes_ids: bool,
    /// Some findings are about the newest turn.
    in_turn: bool,
    /// Thinking that is bound to what comes before changes what is found.
    binding: bool,
    /// The last that was said is a person's.
    asks: bool,
    /// The newest turn says something.
    says: bool,
    /// The newest turn may end with thinking.
    thought: bool,
    /// Nobody minds in this format what is empty.
    empty_is_nothing: bool,
    /// There are empty texts that the agent does not send, and that is known, so that more of them are nothing new.
    blank: bool,
    /// No user is in context.
    lacks_a_user: bool,
    ordinal: Option<u64>,
    /// What the rows name as their session.
    session: Option<u64>,
    titles: Titles,
}

impl State {
    pub(super) fn of(session: &Session<'_>, findings: &[Finding]) -> Result<Self, Feature> {
        let (policy, format, transcript) = (session.policy, session.format, session.transcript);
        let turn = Turn::of(session)?;
        let (branch, floor) = Branch::of(session)?;
        let in_turn = settled(session, findings, floor, turn.is_open())?;
        let mut told = crate::rule::NONE;
        findings
            .iter()
            .filter(|found| found.rule.repeats != Repeats::Each)
            .for_each(|found| told.insert(found.rule.code()));
        // Of empty texts; an empty result is another matter under the same code.
        let no_result = |entry: u32| transcript.results_of(entry).is_empty();
        let about_texts = |finding: &Finding| {
            finding.rule.wakes.contains(&Feature::EmptyText) && finding.entry.is_some_and(no_result)
        };
        let minded = minding(policy, format, Feature::EmptyText).next().is_some();
        let texts_known = !minded || findings.iter().any(about_texts);
        let newest = session.newest().map(|newest| session.turn(newest));
        let in_newest = |&entry: &u32| Some(session.turn(entry)) == newest;
        let issues =
            || session.live.iter().copied().filter(in_newest).flat_map(|entry| transcript.issues_of(entry));
        let empty_is_nothing = format.content.empty.is_none() && format.content.blank.is_none();
        // A message of nothing but empty texts is told as such; once a line of it says more, its texts are.
        if !empty_is_nothing && !texts_known && issues().any(|issue| issue.kind == ContentIssueKind::Blank) {
            return Err(Feature::Unsettled);
        }
        let last = session.live.iter().rev().map(|&entry| flow_of(transcript, entry));
        Ok(Self {
            format,
            seen: Seen::of(&transcript.ids, transcript.bytes),
            branch,
            turn,
            told,
            makes_ids: findings.iter().any(|finding| finding.rule.makes_ids),
            in_turn,
            binding: is_binding(session, findings),
            asks: last.into_iter().find(|flow| *flow != Flow::Neither) == Some(Flow::Asks),
            says: session.live.iter().any(|entry| in_newest(entry) && says(session, *entry)),
            thought: issues().any(|issue| ends(issue.kind)),
            empty_is_nothing,
            blank: format.content.blank == Some(Severity::Note) && texts_known,
            lacks_a_user: lacks_a_user(session),
            ordinal: transcript.ordinals.map(|(_, last)| last),
            session: transcript.session,
            titles: Titles::of(transcript),
        })
    }

    pub(super) fn weight(&self) -> usize {
        self.seen.weight() + self.branch.weight() + self.turn.weight()
    }

    /// Whether more texts that were cut would change what is found of thinking.
    pub(super) fn minds_cuts(&self) -> bool {
        !self.binding
    }

    /// Takes all of it in, and gives the last message of the model among it that is on the live branch, and what
    /// there is to count, unless only a look can tell. `breaks`: how many lines end in each result, if that matters; `cut`: some texts were cut.
    pub(super) fn take_all(
        &mut self,
        added: &Transcript,
        (breaks, cut): (&[u64], bool),
        policy: &Policy,
        awaits: &mut Option<Awaits>,
    ) -> Result<(Option<u32>, Option<Vec<Taken>>), Feature> {
        if !added.damage.is_empty() {
            return Err(Feature::Damage);
        }
        let asked = Asked { policy, format: self.format, told: self.told, unclear: Cell::new(false) };
        self.binding |= cut;
        self.titled(added, &asked)?;
        asked.about(added.bytes > WHOLE_BYTES_MAX, Feature::LongFile)?;
        asked.about(added.session.is_some() && added.session != self.session, Feature::Foreign)?;
        if let Some((first, last)) = added.ordinals {
            let breaks = self.ordinal.is_some_and(|before| before.checked_add(1) != Some(first));
            asked.about(breaks, Feature::Ordinal)?;
            self.ordinal = Some(last);
        }
        let (mut spoke, mut all) = (None, Vec::with_capacity(added.entries.len()));
        for entry in 0..added.entries.len() as u32 {
            let taken = self.take(added, breaks, entry, &asked)?;
            all.push(taken);
            if taken.place.is_live() {
                let found = &added.entries[entry as usize];
                self.turn.awaits(found, awaits);
                spoke = if found.kind == Kind::Message(Role::Assistant) { Some(entry) } else { spoke };
            }
        }
        added.ids.texts().for_each(|text| self.seen.insert(text));
        Ok((spoke, (!asked.unclear.get()).then_some(all)))
    }

    /// Takes in what the session is called; one that is out of sight may be seen again.
    fn titled(&mut self, added: &Transcript, asked: &Asked<'_>) -> Result<(), Feature> {
        let named = |service| matches!(service, Service::Title | Service::MadeTitle);
        let renamed = added.entries.iter().any(|entry| named(entry.service));
        asked.undoes(renamed, Feature::Title)?;
        added.entries.iter().for_each(|entry| self.titles.take(entry));
        asked.about(self.titles.unseen(added.bytes).is_some(), Feature::Title)
    }

    /// Takes one more entry in.
    fn take(
        &mut self,
        added: &Transcript,
        breaks: &[u64],
        entry: u32,
        asked: &Asked<'_>,
    ) -> Result<Taken, Feature> {
        let found = &added.entries[entry as usize];
        let begins = self.turn.begins(added, entry);
        self.is_plain(added, entry, begins)?;
        self.pairs(added, entry)?;
        self.notable(added, entry, begins, asked)?;
        self.is_new(added, entry, begins)?;
        let place = self.branch.hang(added, entry, begins)?;
        // What nobody said is not seen by the model, whether it is on the branch or not.
        if !place.is_live() {
            if !added.calls_of(entry).is_empty() || !added.results_of(entry).is_empty() {
                return Err(Feature::Unplaced);
            }
            let spoken = matches!(found.kind, Kind::Message(_) | Kind::Note);
            let beside = if found.is_sidechain { Feature::Sidechain } else { Feature::Beside };
            asked.about(spoken, beside)?;
            asked.unclear.set(asked.unclear.get() || spoken && !found.is_sidechain);
            return Ok(Taken { place, says: false });
        }
        self.turn.take(added, breaks, entry, asked, self.branch.is_ordered())?;
        self.lacks_a_user &= !self.is_from_user(added, entry);
        match flow_of(added, entry) {
            Flow::Asks => self.asks = true,
            Flow::Answers => self.asks = false,
            Flow::Neither => {}
        }
        if begins || found.kind == Kind::Message(Role::Assistant) {
            self.thought = added.issues_of(entry).iter().any(|issue| ends(issue.kind));
        }
        let says = self.says(added, entry, begins, asked);
        Ok(Taken { place, says })
    }

    /// Whether an entry of the live branch is one message more. Its results answer calls of the newest turn.
    fn says(&mut self, added: &Transcript, entry: u32, begins: bool, asked: &Asked<'_>) -> bool {
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
        // Others may share a message as well.
        asked.unclear.set(asked.unclear.get() || found.group.is_some());
        says
    }

    /// Whether an entry is one that any rule might mind.
    fn is_plain(&self, added: &Transcript, entry: u32, begins: bool) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        let moves =
            matches!(found.kind, Kind::Boundary | Kind::Header | Kind::Leaf) || added.has_target(entry);
        let binds =
            !added.thinking_of(entry).is_empty() && bound_thinking::model_binds(added.id_text(found.model));
        let reopens = self.in_turn && !begins && !added.calls_of(entry).is_empty();
        let odd = added.issues_of(entry).iter().any(|issue| match issue.kind {
            ContentIssueKind::BlankResult(..) | ContentIssueKind::Empty => !self.empty_is_nothing,
            ContentIssueKind::Blank
            | ContentIssueKind::AlteredThought
            | ContentIssueKind::Foreign
            | ContentIssueKind::Ordinal => false,
            kind => !ends(kind),
        });
        let checks = [
            (found.glued || found.odd != Odd::default(), Feature::Damage),
            (moves, Feature::Unplaced),
            (found.stop == Stop::Aborted, Feature::Failure),
            (binds && self.binding || reopens, Feature::Unsettled),
            (odd, Feature::Odd),
        ];
        checks.into_iter().find(|(there, _)| *there).map_or(Ok(()), |(_, feature)| Err(feature))
    }

    /// Whether the calls and results of an entry are as its provider takes them.
    fn pairs(&self, added: &Transcript, entry: u32) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        let (calls, results) = (added.calls_of(entry), added.results_of(entry));
        // A line that is a whole conversation waits for nothing.
        let unanswered = self.format.results.of_conversations() && calls.len() > results.len();
        let mixed = !results.is_empty() && found.kind != Kind::Message(Role::Tool);
        let waits = found.stop == Stop::ToolUse && calls.is_empty() && self.branch.is_ordered();
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

    /// Whether an entry has what a rule minds that is asked for.
    fn notable(
        &self,
        added: &Transcript,
        entry: u32,
        begins: bool,
        asked: &Asked<'_>,
    ) -> Result<(), Feature> {
        let (found, policy) = (&added.entries[entry as usize], asked.policy);
        let issue = |kind| added.issues_of(entry).iter().any(|issue| issue.kind == kind);
        let (too_long, too_dense) = oversized_for_summary::too_much(policy, found.text_chars);
        let limit = policy.side_chars_max;
        let side = || added.sides_of(entry).iter().any(|side| most(policy, &[*side]) > limit);
        let list = || added.side_lists_of(entry).iter().any(|list| list.at.len() > limit);
        // That nobody asked is told once; that calls stand there, where that matters, is told in other words.
        let first = self.format.content.begins_with_user.is_some() && !added.calls_of(entry).is_empty();
        let otherwise = self.is_from_user(added, entry) || first;
        asked.undoes(self.lacks_a_user && otherwise, Feature::NoUser)?;
        let speaks = found.kind == Kind::Message(Role::Assistant);
        // What thinking belongs to does not come any more.
        let alone = self.thought && (begins || found.kind == Kind::Message(Role::Tool));
        let empty = issue(ContentIssueKind::Blank) && !self.blank && !self.empty_is_nothing;
        for (there, feature) in [
            (true, Feature::Record),
            (too_long || too_dense, Feature::LongText),
            (limit > 0 && (side() || list()), Feature::LongSide),
            (!added.images_of(entry).is_empty(), Feature::Image),
            (empty, Feature::EmptyText),
            (alone, Feature::LoneThinking),
            (issue(ContentIssueKind::AlteredThought), Feature::AlteredThought),
            (self.asks && flow_of(added, entry) == Flow::Asks, Feature::Again),
            (self.lacks_a_user && speaks, Feature::NoUser),
            (issue(ContentIssueKind::Foreign), Feature::Foreign),
            (issue(ContentIssueKind::Ordinal), Feature::Ordinal),
            (added.id_text(found.model) == MIRROR, Feature::Mirror),
            (found.service == Service::Progress, Feature::Progress),
            (found.service == Service::Snapshot, Feature::Snapshot),
            (found.service == Service::RequestLog, Feature::RequestLog),
        ] {
            asked.about(there, feature)?;
        }
        Ok(())
    }

    /// Whether the ids that name something new are new.
    fn is_new(&mut self, added: &Transcript, entry: u32, begins: bool) -> Result<(), Feature> {
        let found = &added.entries[entry as usize];
        // What hangs on an entry that is not there yet, or on itself, may close a circle.
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

/// Whether findings stay as they are when usual things are appended; if so, whether some are about the newest turn.
/// `floor` is the first entry that an append may have to do with.
fn settled(session: &Session<'_>, findings: &[Finding], floor: u32, open: bool) -> Result<bool, Feature> {
    let policy = session.policy;
    let mut settled = policy.is_about_the_newest();
    // What may go is told anew when something comes behind it.
    settled &= !RULES.iter().any(|rule| {
        rule.repeats == Repeats::Counted && policy.selection.allow.iter().any(|own| own == rule.code())
    });
    let strip = policy.thinking_in_force() == SignedThinking::Strip;
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
            // What comes to hang on an entry hangs on its copy too.
            Heals::Copies => finding.entry.is_some_and(|entry| session.shares_its_id(entry)),
            Heals::Always => true,
        };
        // Whether the API has refused thinking depends on how the last turn ended.
        let refused = rule.code() == bound_thinking::CODE && (safety == Safety::Safe || is_error);
        let may_go = finding.saves_bytes.is_some() && safety == Safety::None;
        let held = safety == Safety::Held(Held::RecentlyUsed) && is_error;
        settled &= !(newest.contains(&safety) || (strip && safety != Safety::None));
        settled &= !(heals || refused || may_go || held);
        let own = touched(session, finding).is_some_and(|entry| entry >= floor);
        settled &= !own || !open && is_told_by_itself(session, finding, floor);
        in_turn |= own;
    }
    if settled { Ok(in_turn) } else { Err(Feature::Unsettled) }
}

/// Whether thinking that is bound to what comes before changes what is found: fixes wait that it may hold back, or texts
/// were cut before it, or nobody knows.
fn is_binding(session: &Session<'_>, findings: &[Finding]) -> bool {
    let may = |finding: &Finding| matches!(finding.fix.safety, Safety::Safe | Safety::Guarded(_));
    let visible = findings.iter().any(|finding| finding.rule.model_sees && may(finding));
    let gated = visible && session.policy.thinking_in_force() != SignedThinking::Ignore;
    let remembered = findings.iter().any(|finding| finding.rule.code() == bound_thinking::CODE);
    gated || !(remembered || bound_thinking::is_uncut(session))
}

/// The last entry that a finding has to do with.
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

/// Whether only the entry itself, and no later one of its turn, decides about the finding.
fn is_told_by_itself(session: &Session<'_>, finding: &Finding, floor: u32) -> bool {
    // In a graph the order of the turn's entries, and so what comes before signed thinking, may still change.
    let binds = |&entry: &u32| {
        entry >= floor
            && !session.transcript.thinking_of(entry).is_empty()
            && bound_thinking::model_binds(session.transcript.id_text(session.entry(entry).model))
    };
    let moves = session.format.shape == Shape::Graph
        && session.policy.thinking_in_force() != SignedThinking::Ignore
        && session.live.iter().any(binds);
    finding.rule.entry_decides && (!finding.rule.model_sees || !moves)
}

fn ends(kind: ContentIssueKind) -> bool {
    matches!(kind, ContentIssueKind::ThinkingLast | ContentIssueKind::ReasoningLast)
}

fn flow_of(transcript: &Transcript, entry: u32) -> Flow {
    let hollow = transcript.issues_of(entry).iter().any(|issue| issue.kind == ContentIssueKind::Empty);
    flow(&transcript.entries[entry as usize], hollow, !transcript.calls_of(entry).is_empty())
}
