//! Compares a conversation with a contract: what the door would refuse, what it may refuse, what would be lost.

use super::base::{Clause, Letters, Sure, Term};
use super::outline::{Arguments, Message, Outline, Part, What};
use super::recorded::{Recorded, recorded};
use super::{Target, mends};
use crate::model::entry::{ContentIssueKind, Role};
use crate::model::finding::Severity;
use crate::model::image::Image;
use crate::model::policy::{Depth, Policy};
use crate::read::scan::Reading;
use crate::session::Session;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::source::Fault;

/// The longest id of an item.
const ITEM_ID_MAX: usize = 64;

/// How a door reacts to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reaction {
    /// It refuses the request for certain.
    Refuses,
    /// It may refuse it.
    MayRefuse,
    /// It takes the request without that.
    Loses,
    /// The agent sees to it when it sends.
    Mended,
}

impl Reaction {
    /// The word for it, for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refuses => "refused",
            Self::MayRefuse => "may-be-refused",
            Self::Loses => "lost",
            Self::Mended => "mended",
        }
    }
}

/// Something in a session that a door would not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// How the door reacts.
    pub reaction: Reaction,
    /// What it is about; see [`Term::about`].
    pub about: &'static str,
    /// What is wrong, in a few words.
    pub what: String,
    /// Where that is known from.
    pub source: &'static str,
    /// The line of the first such place.
    pub line: u64,
    /// How many such places there are.
    pub count: u64,
}

/// What a door makes of a session.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Who answered so far.
    pub recorded: Vec<Recorded>,
    /// How many messages the request has.
    pub messages: usize,
    /// Its agent, if it mends something itself.
    pub agent: Option<&'static str>,
    /// What the door objects to, what is certain first.
    pub objections: Vec<Objection>,
}

/// Says what a door makes of a session. `None` if the format of the file is unknown, or its lines are not those of one
/// conversation.
pub fn judge(reading: &Reading<'_>, target: &Target<'_>) -> Result<Option<Verdict>, Fault> {
    let policy = Policy::default();
    let Some(session) = Session::of(reading, &policy, Depth::Sizes) else { return Ok(None) };
    if !session.format.results.of_messages() {
        return Ok(None);
    }
    let outline = Outline::of(&session)?;
    let mends = mends::of(session.format.name);
    let mut judge = Judge {
        session: &session,
        outline: &outline,
        mended: mends.map_or(&[], |mends| mends.about),
        found: Vec::new(),
    };
    let clauses = target.clauses();
    for clause in &clauses {
        judge.check(clause);
    }
    let recorded = recorded(&session)?;
    judge.lost(target, &recorded);
    let mut objections = judge.found;
    objections.sort_by_key(|objection| (objection.reaction, objection.line));
    let agent = mends.map(|mends| mends.agent);
    Ok(Some(Verdict { recorded, messages: outline.messages.len(), agent, objections }))
}

struct Judge<'j, 'a> {
    session: &'j Session<'a>,
    outline: &'j Outline,
    mended: &'static [&'static str],
    found: Vec<Objection>,
}

impl<'j> Judge<'j, '_> {
    fn check(&mut self, clause: &'static Clause) {
        match clause.term {
            Term::CallIds(letters) => self.call_ids(clause, letters),
            Term::ItemIds(kinds) => self.item_ids(clause, kinds),
            Term::ToolNames(letters) => self.tool_names(clause, letters),
            Term::ArgumentsAreObject => self.arguments(clause, &[Arguments::Object, Arguments::Missing]),
            Term::ArgumentsAreJson => {
                self.arguments(clause, &[Arguments::Object, Arguments::Json, Arguments::Missing]);
            }
            Term::NoBlankText => self.each_part(clause, "blank text", &mut |_, part| {
                matches!(part.what, What::Text { blank: true, .. })
            }),
            Term::NoEmptyMessage => self.empty_messages(clause),
            Term::CallsAnswered => self.open_calls(clause),
            Term::ResultsHaveCalls => self.lone_results(clause),
            Term::UniqueCallIds => self.repeated_ids(clause),
            Term::Alternates => self.neighbours(clause, "a second message of the same role", |one, next| {
                one.role == next.role && one.role != Role::System
            }),
            Term::BeginsWithUser => self.beginning(clause),
            Term::NeedsUser => self.no_user(clause),
            Term::NoUserAfterResult => {
                self.neighbours(clause, "a user message right after a result", |one, next| {
                    one.role == Role::Tool && next.role == Role::User
                });
            }
            Term::NoSystemInside => {
                self.neighbours(clause, "a system message after the conversation began", |one, next| {
                    one.role != Role::System && next.role == Role::System
                });
            }
            Term::Images(_) | Term::NoImages | Term::NoImagesInResults | Term::ImageBytes(_) => {
                self.images(clause);
            }
            Term::ReasoningWithCalls => self.reasoning(clause),
            Term::CallsSigned(_) => self.signatures(clause, self.last_spoken(), usize::MAX),
            Term::EarlierCallsSigned => self.signatures(clause, 0, self.last_spoken()),
            Term::RequestBytes(most) => {
                if self.outline.bytes > most {
                    self.object(
                        clause,
                        0,
                        format!("about {} bytes, and {most} are taken", self.outline.bytes),
                    );
                }
            }
        }
    }

    /// Notes an objection, folded with those that say the same.
    fn object(&mut self, clause: &'static Clause, entry: u32, what: String) {
        let about = clause.term.about();
        let reaction = match clause.sure {
            _ if self.is_mended(clause.term) => Reaction::Mended,
            Sure::Source => Reaction::Refuses,
            Sure::Tracker | Sure::Belief => Reaction::MayRefuse,
        };
        self.note(Objection { reaction, about, what, source: clause.source, line: 0, count: 1 }, entry);
    }

    /// Whether the agent sees to it: as far as blank and empty content goes, its format says so.
    fn is_mended(&self, term: Term) -> bool {
        let format = self.session.format;
        let leaves_out = |severity: Option<Severity>| {
            !format.agents.is_empty() && severity.is_none_or(|severity| severity == Severity::Note)
        };
        match term {
            Term::NoBlankText => leaves_out(format.content.blank),
            Term::NoEmptyMessage => leaves_out(format.content.empty),
            _ => self.mended.contains(&term.about()),
        }
    }

    fn note(&mut self, objection: Objection, entry: u32) {
        let line = self.session.transcript.entries.get(entry as usize).map_or(1, |entry| entry.line);
        let same = |own: &&mut Objection| own.about == objection.about && own.what == objection.what;
        match self.found.iter_mut().find(same) {
            Some(own) => own.count += 1,
            None => self.found.push(Objection { line, ..objection }),
        }
    }

    fn messages(&self) -> impl Iterator<Item = &'j Message> + use<'j> {
        self.outline.messages.iter()
    }

    fn calls(&self) -> impl Iterator<Item = (u32, usize)> + use<'j> {
        self.messages().flat_map(calls_of)
    }

    fn each_part(
        &mut self,
        clause: &'static Clause,
        what: &str,
        is_meant: &mut dyn FnMut(&Message, &Part) -> bool,
    ) {
        for message in self.messages() {
            for part in message.parts.iter().filter(|part| is_meant(message, part)) {
                self.object(clause, part.entry, what.to_string());
            }
        }
    }

    fn neighbours(&mut self, clause: &'static Clause, what: &str, are_meant: fn(&Message, &Message) -> bool) {
        let outline = self.outline;
        for pair in outline.messages.windows(2).filter(|pair| are_meant(&pair[0], &pair[1])) {
            self.object(clause, pair[1].entry, what.to_string());
        }
    }

    fn call_ids(&mut self, clause: &'static Clause, letters: Letters) {
        for (entry, call) in self.calls() {
            let id = self.session.transcript.id_text(self.session.call(call as u32).id);
            // A call without an id is found as such.
            if !id.is_empty() && !letters.take(id) {
                self.object(clause, entry, "a call id that is not accepted".to_string());
            }
        }
    }

    fn item_ids(&mut self, clause: &'static Clause, kinds: &'static [(&'static str, &'static str)]) {
        for item in &self.outline.items {
            let prefix =
                kinds.iter().find(|(kind, _)| kind.as_bytes() == item.kind).map(|(_, prefix)| *prefix);
            let begins = prefix.is_none_or(|prefix| item.id.starts_with(prefix.as_bytes()));
            if !begins || item.id.len() > ITEM_ID_MAX {
                let kind = String::from_utf8_lossy(&item.kind).into_owned();
                self.object(clause, item.entry, format!("the id of an item of type {kind}"));
            }
        }
    }

    fn tool_names(&mut self, clause: &'static Clause, letters: Letters) {
        for (entry, call) in self.calls() {
            let found = self.session.call(call as u32);
            let name = self.session.transcript.id_text(found.name);
            let lacks = name.is_empty() && found.name_at().is_empty();
            if !lacks && !letters.take(name) {
                self.object(clause, entry, "a tool name that is not accepted".to_string());
            }
        }
    }

    fn arguments(&mut self, clause: &'static Clause, taken: &[Arguments]) {
        let what = match clause.term {
            Term::ArgumentsAreObject => "arguments that are no JSON object",
            _ => "arguments that are no JSON",
        };
        self.each_part(clause, what, &mut |_, part| match part.what {
            What::Call { arguments, .. } => !taken.contains(&arguments),
            _ => false,
        });
    }

    /// Messages that hold nothing. What the outline does not know of, such as documents and calls of the API's own tools, is
    /// something: its entry is not noted as empty.
    fn empty_messages(&mut self, clause: &'static Clause) {
        let shows = |part: &Part| !matches!(part.what, What::Text { blank: true, .. });
        let is_noted = |message: &Message| {
            let mut issues = self.session.transcript.issues_of(message.entry).iter();
            issues.any(|issue| matches!(issue.kind, ContentIssueKind::Empty | ContentIssueKind::Blank))
        };
        let is_empty = |message: &&Message| !message.parts.iter().any(shows) && is_noted(message);
        for message in self.messages().filter(is_empty).collect::<Vec<_>>() {
            self.object(clause, message.entry, "a message that holds nothing".to_string());
        }
    }

    /// Calls without a result in the next message.
    fn open_calls(&mut self, clause: &'static Clause) {
        for (at, message) in self.messages().enumerate() {
            let next = self.outline.messages.get(at + 1).filter(|next| next.role == Role::Tool);
            let results = next.map_or(&[][..], |next| &next.parts);
            for (entry, call) in calls_of(message) {
                if !results.iter().any(|part| self.answers(part, call)) {
                    self.object(clause, entry, "a call without a result after it".to_string());
                }
            }
        }
    }

    /// Whether a part is the result of a call.
    fn answers(&self, part: &Part, call: usize) -> bool {
        match part.what {
            What::MadeUp { call: own } => own == call,
            What::Result { index } => {
                let key = self.session.call(call as u32).key;
                key == self.session.result(index).key || self.session.result_of(call as u32) == Some(index)
            }
            _ => false,
        }
    }

    /// Results without a call in the message before, and second ones.
    fn lone_results(&mut self, clause: &'static Clause) {
        for (at, message) in self.messages().enumerate().filter(|(_, message)| message.role == Role::Tool) {
            let before = at.checked_sub(1).map(|before| &self.outline.messages[before]);
            let mut calls: Vec<(u32, usize)> = before.into_iter().flat_map(calls_of).collect();
            for part in message.parts.iter().filter(|part| matches!(part.what, What::Result { .. })) {
                match calls.iter().position(|(_, call)| self.answers(part, *call)) {
                    Some(own) => drop(calls.remove(own)),
                    None => {
                        self.object(clause, part.entry, "a result without its call before it".to_string());
                    }
                }
            }
        }
    }

    fn repeated_ids(&mut self, clause: &'static Clause) {
        let mut seen = HashSet::new();
        for (entry, call) in self.calls() {
            if self.session.call(call as u32).id.is_some_and(|id| !seen.insert(id)) {
                self.object(clause, entry, "a call id that an earlier call has".to_string());
            }
        }
    }

    fn beginning(&mut self, clause: &'static Clause) {
        let first = self.messages().find(|message| message.role != Role::System);
        if let Some(first) = first.filter(|first| first.role != Role::User) {
            self.object(clause, first.entry, "a conversation that the user does not begin".to_string());
        }
    }

    fn no_user(&mut self, clause: &'static Clause) {
        if self.messages().all(|message| message.role != Role::User) {
            self.object(clause, 0, "no user message".to_string());
        }
    }

    fn images(&mut self, clause: &'static Clause) {
        let images = self.session.transcript.images();
        for message in self.messages() {
            for part in &message.parts {
                let What::Image { index, result } = part.what else { continue };
                if let Some(what) =
                    images.get(index).and_then(|image| refused(clause.term, image, result.is_some()))
                {
                    self.object(clause, part.entry, what);
                }
            }
        }
    }

    fn reasoning(&mut self, clause: &'static Clause) {
        let transcript = self.session.transcript;
        let entries: HashSet<u32> = self.calls().map(|(entry, _)| entry).collect();
        let lacks = |entry: &u32| {
            !self.session.format.content.reasons_beside || transcript.unreasoned.contains(entry)
        };
        let mut lacking: Vec<u32> = entries.into_iter().filter(lacks).collect();
        lacking.sort_unstable();
        for entry in lacking {
            self.object(clause, entry, "calls without reasoning, if the model thinks".to_string());
        }
    }

    /// Where the user last spoke.
    fn last_spoken(&self) -> usize {
        self.outline.messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0)
    }

    /// First calls of the model's messages in this stretch that have no signature.
    fn signatures(&mut self, clause: &'static Clause, from: usize, to: usize) {
        for message in self.messages().take(to).skip(from) {
            let first = message.parts.iter().find(|part| matches!(part.what, What::Call { .. }));
            if let Some(part) = first.filter(|part| matches!(part.what, What::Call { signed: false, .. })) {
                self.object(clause, part.entry, "a call without its thought signature".to_string());
            }
        }
    }

    /// What only the provider takes that made it.
    fn lost(&mut self, target: &Target<'_>, recorded: &[Recorded]) {
        let is_own = |maker: Option<&'static str>| maker.is_none_or(|maker| maker == target.contract.name);
        let maker = |line: u64| {
            let of_line = recorded.iter().find(|own| (own.lines[0]..=own.lines[1]).contains(&line));
            of_line.and_then(|own| own.contract)
        };
        for message in self.messages() {
            for part in message.parts.iter().filter(|part| matches!(part.what, What::Thinking)) {
                let line = self.session.entry(part.entry).line;
                if is_own(maker(line)) {
                    continue;
                }
                let what = "signed thinking, which only its own provider takes back".to_string();
                let source = "pydantic-ai 2.68.0 canonical_system";
                let objection = Objection {
                    reaction: Reaction::Loses,
                    about: "thinking",
                    what,
                    source,
                    line: 0,
                    count: 1,
                };
                self.note(objection, part.entry);
            }
        }
    }
}

/// The calls of a message, with their entries.
fn calls_of(message: &Message) -> impl Iterator<Item = (u32, usize)> {
    message.parts.iter().filter_map(|part| match part.what {
        What::Call { index, .. } => Some((part.entry, index)),
        _ => None,
    })
}

/// Why an image is refused, if it is.
fn refused(term: Term, image: &Image, in_result: bool) -> Option<String> {
    match term {
        Term::NoImages => Some("an image".to_string()),
        Term::NoImagesInResults => in_result.then(|| "an image in a result".to_string()),
        Term::ImageBytes(most) => {
            let bytes = image.data.len() - image.data_from;
            (bytes > most).then(|| format!("an image of more than {most} bytes"))
        }
        Term::Images(kinds) => {
            let takes = |kind: &str| kinds.contains(&kind);
            match (image.facts.kind, image.said) {
                (None, _) => Some("an image that is none of the accepted kinds".to_string()),
                (Some(kind), _) if !takes(kind.media_type()) => Some(format!("an image of kind {kind}")),
                (Some(kind), Some(said)) if kind != said => {
                    Some("an image whose label names another kind".to_string())
                }
                _ => None,
            }
        }
        _ => None,
    }
}
