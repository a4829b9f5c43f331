//! What of the content of messages later entries may turn into a finding: questions without an answer, thinking with
//! nothing behind it, and dead weight of which there was none.

use super::reason::Reason;
use crate::format::Format;
use crate::model::entry::{Entry, Kind, QuirkKind, Role, Service};
use crate::model::finding::{Finding, Safety, Severity};
use crate::model::transcript::Transcript;
use crate::rule::mirrored_reply::MIRROR;
use crate::rule::{
    Feature, Flow, Heals, RULES, Rule, Titles, Told, flow, is_from_user, lacks_a_user, minding, minds,
};
use crate::session::{Session, traits};

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct Content {
    pub(super) format: &'static dyn Format,
    /// A person has spoken in context, or nobody asks whether that is so.
    user: bool,
    /// It was told that nobody has.
    lacking: bool,
    /// The last that was said is a person's.
    asked: bool,
    /// The newest turn may end with thinking.
    thought: bool,
    /// Nobody minds in this format what is empty.
    empty_is_nothing: bool,
    /// There are empty texts that the agent does not send, and that is known, so that more of them are nothing new.
    blank: bool,
    /// The same of altered thought signatures.
    altered: bool,
    /// Rows of another session are known.
    foreign: bool,
    /// Ordinals that do not count on are known, or the last one.
    unordered: bool,
    ordinal: Option<u64>,
    /// What the rows name as their session.
    session: Option<u64>,
    /// The same of dead weight of each kind.
    progress: bool,
    snapshots: bool,
    aside: bool,
    beside: bool,
    /// What the session is called, and whether it is known that this is not seen, or nobody asks.
    titles: Titles,
    unseen: bool,
}

impl Content {
    pub(super) fn of(session: &Session<'_>, findings: &[Finding]) -> Result<Self, Reason> {
        let policy = session.policy;
        let told = |rule: &Rule| findings.iter().any(|finding| finding.rule.code() == rule.code());
        // Nobody is asked, or all know.
        let known = |feature| minding(policy, feature).all(|rule| rule.told != Told::Each && told(rule));
        // Of empty texts; an empty result is another matter under the same code.
        let no_result = |entry: u32| session.transcript.results_of(entry).is_empty();
        let about_texts = |finding: &Finding| {
            finding.rule.wakes.contains(&Feature::EmptyText) && finding.entry.is_some_and(no_result)
        };
        let texts_known = !minds(policy, Feature::EmptyText) || findings.iter().any(about_texts);
        let counts = |rule: &&'static Rule| {
            rule.told == Told::Counted && policy.selection.allow.iter().any(|own| own == rule.code())
        };
        // What may go then is told anew when something comes behind it.
        let stays = |finding: &Finding| finding.saves_bytes.is_some() && finding.fix.safety == Safety::None;
        // What comes to hang on a compaction hangs on its copy too, and then something came of that.
        let heals = |finding: &Finding| match finding.rule.heals {
            Heals::Never => false,
            Heals::Copies => finding.entry.is_some_and(|entry| session.shares_its_id(entry)),
            Heals::Always => true,
        };
        if findings.iter().any(|finding| stays(finding) || heals(finding)) || RULES.iter().any(counts) {
            return Err(Reason::Unsettled);
        }
        let newest = session.newest().map(|newest| session.turn(newest));
        let thinks = |&entry: &u32| session.transcript.quirks_of(entry).iter().any(|quirk| ends(quirk.kind));
        let in_turn = |&entry: &u32| Some(session.turn(entry)) == newest;
        let empty_is_nothing =
            session.format.content().empty.is_none() && session.format.content().blank.is_none();
        // A message of nothing but empty texts is told as such; once a line of it says more, its texts are.
        let is_blank = |entry: u32| {
            session.transcript.quirks_of(entry).iter().any(|quirk| quirk.kind == QuirkKind::Blank)
        };
        let mut turn = session.live.iter().copied().filter(in_turn);
        if !empty_is_nothing && !texts_known && turn.any(is_blank) {
            return Err(Reason::Unsettled);
        }
        let last = session.live.iter().rev().map(|&entry| flow_of(session.transcript, entry));
        let asked = last.into_iter().find(|flow| *flow != Flow::Neither) == Some(Flow::Asks);
        Ok(Self {
            format: session.format,
            user: !minds(policy, Feature::NoUser) || !lacks_a_user(session),
            lacking: minding(policy, Feature::NoUser).any(told) && lacks_a_user(session),
            asked,
            thought: session.live.iter().copied().filter(in_turn).any(|entry| thinks(&entry)),
            empty_is_nothing,
            blank: session.format.content().blank == Some(Severity::Note) && texts_known,
            altered: known(Feature::AlteredThought),
            foreign: known(Feature::Foreign),
            unordered: known(Feature::Ordinal),
            ordinal: session.transcript.ordinals.map(|(_, last)| last),
            session: session.transcript.session,
            progress: known(Feature::Progress),
            snapshots: known(Feature::Snapshot),
            aside: known(Feature::Aside),
            beside: known(Feature::Beside),
            titles: Titles::of(session.transcript),
            unseen: known(Feature::Title),
        })
    }

    /// Takes in the titles of all that is added; the file has so many bytes now.
    pub(super) fn name(&mut self, added: &Transcript, bytes: u64) -> Result<(), Reason> {
        added.entries.iter().for_each(|entry| self.titles.take(entry));
        let unseen = self.titles.unseen(bytes).is_some();
        if unseen && !self.unseen { Err(Reason::Content) } else { Ok(()) }
    }

    /// Takes in the ordinals of all that is added.
    pub(super) fn count_on(&mut self, added: &Transcript) -> Result<(), Reason> {
        let Some((first, last)) = added.ordinals else { return Ok(()) };
        let breaks = self.ordinal.is_some_and(|before| before.checked_add(1) != Some(first));
        self.ordinal = Some(last);
        if breaks && !self.unordered { Err(Reason::Content) } else { Ok(()) }
    }

    /// Whether one more entry changes nothing of what was told; `begins` says that a turn begins with it.
    pub(super) fn fits(self, added: &Transcript, entry: u32, begins: bool) -> Result<(), Reason> {
        let found = &added.entries[entry as usize];
        let known = match found.service {
            Service::None => true,
            Service::Progress => self.progress,
            Service::Snapshot => self.snapshots,
            // It may be seen again.
            Service::Title | Service::MadeTitle => !self.unseen,
        };
        let quirks = added.quirks_of(entry);
        let odd = quirks.iter().any(|quirk| match quirk.kind {
            QuirkKind::Blank | QuirkKind::BlankResult(..) | QuirkKind::Hollow if self.empty_is_nothing => {
                false
            }
            QuirkKind::Blank => !self.blank,
            QuirkKind::AlteredThought => !self.altered,
            QuirkKind::Foreign => !self.foreign,
            QuirkKind::Ordinal => !self.unordered,
            kind => !ends(kind),
        });
        let again = self.asked && flow_of(added, entry) == Flow::Asks;
        let alone = match found.kind {
            _ if from_user(self.format, added, entry) => self.lacking,
            // That nobody asked is told; that calls stand there, where that matters, is told in other words.
            Kind::Message(Role::Assistant) => {
                let first = self.format.content().begins_with_user.is_some();
                !self.user && (!self.lacking || first && !added.calls_of(entry).is_empty())
            }
            _ => false,
        };
        let foreign = !self.foreign && added.session.is_some() && added.session != self.session;
        let mirror = added.id_text(found.model) == MIRROR;
        let images = !added.images_of(entry).is_empty();
        // A line that is a whole conversation waits for nothing.
        let whole = self.format.results().of_conversations();
        let unanswered = whole && added.calls_of(entry).len() > added.results_of(entry).len();
        // What thinking belongs to does not come any more.
        let cut_off = self.thought && (begins || found.kind == Kind::Message(Role::Tool));
        if !known || odd || again || alone || images || foreign || mirror || cut_off || unanswered {
            return Err(Reason::Content);
        }
        Ok(())
    }

    /// Takes an entry of the live branch in.
    pub(super) fn take(&mut self, added: &Transcript, entry: u32, begins: bool) {
        let found = &added.entries[entry as usize];
        self.user |= from_user(self.format, added, entry);
        match flow_of(added, entry) {
            Flow::Asks => self.asked = true,
            Flow::Answers => self.asked = false,
            Flow::Neither => {}
        }
        if begins || found.kind == Kind::Message(Role::Assistant) {
            self.thought = added.quirks_of(entry).iter().any(|quirk| ends(quirk.kind));
        }
    }

    /// An entry that is not on the live branch.
    pub(super) fn leave(self, entry: &Entry) -> Result<(), Reason> {
        let spoken = matches!(entry.kind, Kind::Message(_) | Kind::Note);
        let known = if entry.aside { self.aside } else { self.beside };
        if spoken && !known { Err(Reason::Branched) } else { Ok(()) }
    }
}

fn from_user(format: &dyn Format, added: &Transcript, entry: u32) -> bool {
    is_from_user(&added.entries[entry as usize], traits(format.shape()))
}

fn ends(kind: QuirkKind) -> bool {
    matches!(kind, QuirkKind::ThinkingLast | QuirkKind::ReasoningLast)
}

fn flow_of(transcript: &Transcript, entry: u32) -> Flow {
    let hollow = transcript.quirks_of(entry).iter().any(|quirk| quirk.kind == QuirkKind::Hollow);
    flow(&transcript.entries[entry as usize], hollow, !transcript.calls_of(entry).is_empty())
}
