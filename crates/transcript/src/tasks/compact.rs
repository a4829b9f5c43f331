//! Compaction: a summary replaces the older part of a conversation, in the form that the owning agent uses.
//!
//! What is written is what the agent would have written itself. In a tree nothing is deleted: pi gets a `compaction`
//! entry after the newest one; Claude Code gets a boundary and a summary before the first entry that stays, which
//! becomes their child. Where only the order of the lines counts, one message replaces those that are left out. The
//! summary may come from anywhere.

use crate::examine::context::Context;
use crate::examine::holds::Holds;
use crate::examine::look::{Examination, look};
use crate::examine::mend::Repair;
use crate::examine::verdict::{Loss, RepairBaseline, Worse};
use crate::format::{Compaction, Header};
use crate::model::entry::{DamageKind, Kind, Link, Role};
use crate::model::finding::{Held, Op};
use crate::model::policy::Depth;
use crate::model::situation::Case;
use crate::plan::thinking::{unbind, vanishes};
use crate::plan::{self, Plan, Rendered, fresh_id};
use crate::read::scan::Reading;
use crate::rule::bound_thinking;
use crate::rule::{forbidden, shorten_message};
use crate::session::own::stands_for_others;
use crate::session::tokens::{tokens_from, tokens_of};
use crate::session::{Compacts, Session, traits};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use spans::json::{self, Doc, Value};
use spans::literal::quote;
use spans::source::{Fault, read_span};

/// How to compact a conversation.
#[derive(Clone, Copy, Debug)]
pub struct CompactRequest<'a> {
    /// What stays.
    pub stay: Stay,
    /// The summary of the rest; without it, a sentence that says how much is missing.
    pub summary: Option<&'a str>,
    /// Longest text of a message that stays; 0 for any length. User texts are cut as well.
    pub message_chars_max: u64,
}

/// What stays of a conversation. Instructions always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// At most this many messages from the end, starting at a user message. If none of them is a user message, all of
    /// them; and more if a call would be separated from its result.
    Last(u64),
    /// As many of the newest messages as fit into a context of this many estimated tokens: whole turns, unless they
    /// would leave more than half of that room unused.
    Fitting(u64),
    /// The message that begins at byte `at`, and everything after it, if that leaves out this many messages.
    From {
        /// Where it begins.
        at: u64,
        /// How many messages come before it.
        left_out: u64,
    },
}

/// The result of a compaction.
pub struct Compacted {
    /// The transcript as it is.
    pub before: Examination,
    /// The plan; or why there is none.
    pub repair: Result<Repair, Unable>,
    /// How the conversation was divided.
    pub shares: Shares,
}

/// How a conversation was divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Messages that stay in context.
    pub kept: u64,
    /// Messages that are left out.
    pub left_out: u64,
    /// Offset of the first message that stays.
    pub from: u64,
}

/// Why a conversation is not compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unable {
    /// The format is not known.
    UnknownFormat,
    /// Nothing can be left out or cut.
    Nothing,
    /// Its entries have no ids (pi's first version).
    NoIds,
    /// Its last line is torn.
    Torn,
    /// Its newest messages, which belong together, are longer than the target.
    NoRoom,
    /// There is no place at which it could be divided.
    NoPlace,
    /// The new text, read again, has another context than expected.
    Unsure,
    /// The first message to stay is no longer at its place.
    Moved,
    /// Thinking whose signature covers earlier messages would stay and become invalid.
    SignedThinking,
    /// It is not allowed by the file, or by what counts its lines.
    Held(Held),
    /// Its header is lost, without which its agent does not read it.
    NoHeader,
    /// It is not known how its agent would read a compaction.
    NotWritten,
    /// It would do harm.
    Worse(Worse),
}

/// Why work on a conversation ended early.
#[derive(Debug)]
pub enum NotDrawn {
    /// It cannot be done, for this reason.
    Unable(Unable),
    /// The source cannot be read.
    Fault(Fault),
}

impl From<Unable> for NotDrawn {
    fn from(unable: Unable) -> Self {
        Self::Unable(unable)
    }
}

impl From<Fault> for NotDrawn {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownFormat => "its format is not known",
            Self::Nothing => "no more messages are in context than are to stay, and none is too long",
            Self::NoIds => "its entries have no ids (pi gives them ids when it opens the session)",
            Self::Torn => "its last line is torn (tailor fix takes it out)",
            Self::NoRoom => "its newest turn alone is too long",
            Self::NoPlace => {
                "there is no message from which on the conversation could go on alone: its lines are out of order, or \
                 ids are used twice"
            }
            Self::Unsure => {
                "read again, it would have something else in context than what was to stay; the original stays"
            }
            Self::Moved => "it is not what it was when its messages were read (run it again)",
            Self::SignedThinking => {
                "thinking that would stay is signed over what would go (--thinking strip removes it, ignore goes on)"
            }
            Self::Held(held) => return write!(f, "{held}"),
            Self::NoHeader => "its header is lost, and its agent reads nothing without one",
            Self::NotWritten => "Tailor cannot write a compaction for this agent (tailor fix shortens long results)",
            Self::Worse(worse) => return write!(f, "{worse}"),
        })
    }
}

/// Draws the plan of a compaction, and checks the result: that nothing is wrong that was not wrong before, and that the
/// context is the summary and exactly what was to stay.
///
/// ```
/// use transcript::compact::{CompactRequest, Stay, compact};
/// let text = br#"{"role":"user","content":"one"}
/// {"role":"assistant","content":"two"}
/// {"role":"user","content":"three"}
/// "#;
/// let request = CompactRequest { stay: Stay::Last(1), summary: Some("They counted."), message_chars_max: 0 };
/// let done = compact(&transcript::Reading::new(&&text[..]).unwrap(), &Default::default(), &request).unwrap();
/// assert_eq!((done.shares.kept, done.shares.left_out), (1, 2));
/// let plan = done.repair.ok().unwrap().plan;
/// assert_eq!(plan.edits().len(), 1);
/// ```
pub fn compact<'a>(
    reading: &Reading<'_>,
    case: impl Into<Case<'a>>,
    request: &CompactRequest<'_>,
) -> Result<Compacted, Fault> {
    let case = case.into();
    let mut drawn = Err(Unable::UnknownFormat.into());
    let before = look(reading, case, Depth::Sizes, &Holds::default(), &mut |session, _| {
        drawn = draw(session, request);
    })?;
    let CompactDrawing { plan, shares, kept } = match drawn {
        Ok(drawing) => drawing,
        Err(NotDrawn::Unable(unable)) => {
            return Ok(Compacted { before, repair: Err(unable), shares: Shares::default() });
        }
        Err(NotDrawn::Fault(fault)) => return Err(fault),
    };
    let mut now = Vec::new();
    let rendered = Rendered::new(reading.source, &plan);
    let compacted = Reading::as_format(&rendered, case.policy.format)?;
    let after = look(&compacted, case, Depth::Sizes, &Holds::default(), &mut |session, _| {
        now = names(session, &Context::from_session(session).entries);
    })?;
    let loss = match before.facts.format.map(|format| traits(format.shape).compacts) {
        Some(Compacts::InPlace) => Loss::Texts,
        _ if request.message_chars_max > 0 => Loss::Texts,
        _ => Loss::Context,
    };
    let repair = match RepairBaseline::from_original(&before).compare(&after, &plan.origins(), loss) {
        Err(worse) => Err(Unable::Worse(worse)),
        Ok(()) if kept != now => Err(Unable::Unsure),
        Ok(()) => Ok(Repair { plan, after: Some(after) }),
    };
    Ok(Compacted { before, repair, shares })
}

/// How a conversation would be divided.
///
/// # Errors
///
/// When it cannot be divided, or the source cannot be read.
pub fn divide<'a>(reading: &Reading<'_>, case: impl Into<Case<'a>>, stay: Stay) -> Result<Shares, NotDrawn> {
    let session = Session::of(reading, case.into(), Depth::Sizes).ok_or(Unable::UnknownFormat)?;
    let request = CompactRequest { stay, summary: None, message_chars_max: 0 };
    draw(&session, &request).map(|drawing| drawing.shares)
}

/// Identifies the messages among these entries by their ids, or by their content if they have none.
fn names(session: &Session<'_>, entries: &[u32]) -> Vec<Vec<u8>> {
    let counted = entries.iter().filter(|&&entry| Context::counts(session, entry));
    counted.map(|&entry| session.transcript.id_text(session.entry(entry).id).to_vec()).collect()
}

struct CompactDrawing {
    plan: Plan,
    shares: Shares,
    /// What is to be in context, as from [`names`].
    kept: Vec<Vec<u8>>,
}

fn draw(session: &Session<'_>, request: &CompactRequest<'_>) -> Result<CompactDrawing, NotDrawn> {
    if let Some(why) = session.read_only() {
        return Err(Unable::Held(Held::ReadOnly(why)).into());
    }
    if let Some(why) = session.situation.rows_only {
        return Err(Unable::Held(Held::RowsOnly(why)).into());
    }
    let context = Context::from_session(session);
    let place = match place(session, &context, request.stay) {
        Err(NotDrawn::Unable(Unable::Nothing)) if request.message_chars_max > 0 => 0,
        place => place?,
    };
    let (gone, kept) = context.entries.split_at(place);
    let mut shares = Shares {
        from: kept.first().map_or(0, |&entry| session.entry(entry).span.start),
        ..Shares::default()
    };

    let mut stay = kept.to_vec();
    stay.retain(|&entry| place == 0 || !vanishes(session, entry));
    shares.kept = Context::count(session, &stay);
    let mut names = names(session, &stay);
    let mut steps = Vec::new();
    if place > 0 {
        shares.left_out = left_out(session, gone)?;
        steps.extend(unbind(session, kept).ok_or(Unable::SignedThinking)?);
        steps.extend(insert(session, &context, place, request, shares.left_out)?);
        if session.shape.compacts == Compacts::InPlace {
            // The new message counts, and has no id.
            names.push(Vec::new());
        }
    }
    for &entry in kept.iter().filter(|_| request.message_chars_max > 0) {
        if Context::counts(session, entry)
            && !session.is_pending(entry)
            && let Some((_, fix)) = shorten_message(session, entry, request.message_chars_max)?
        {
            steps.extend(fix.ops);
        }
    }
    if steps.is_empty() {
        return Err(Unable::Nothing.into());
    }
    if let Some(held) = forbidden(session, &steps)? {
        return Err(Unable::Held(held).into());
    }
    let mut plan = plan::draw(session, &mut steps.iter())?;
    plan.unsettles_memory = bound_thinking::binds(session);
    Ok(CompactDrawing { plan, shares, kept: names })
}

/// The position of the first entry that stays.
fn place(session: &Session<'_>, context: &Context, stay: Stay) -> Result<usize, NotDrawn> {
    let entries = &context.entries;
    let suits = Suits::for_session(session, context);
    if session.shape.compacts == Compacts::AtEnd
        && entries.iter().all(|&entry| session.entry(entry).id.is_none())
        && left_out(session, entries)? > 0
    {
        return Err(Unable::NoIds.into());
    }
    let place = match stay {
        Stay::From { at, left_out: expected } => {
            let found = entries.iter().position(|&entry| session.entry(entry).span.start == at);
            let found = found.filter(|&at| suits.at(at)).ok_or(Unable::Moved)?;
            let gone = left_out(session, &entries[..found])?;
            return if gone == expected { Ok(found) } else { Err(Unable::Moved.into()) };
        }
        Stay::Last(keep) => last(session, context, &suits, keep.max(1))?,
        Stay::Fitting(tokens) => fitting(session, context, &suits, tokens)?,
    };
    // Keeping more may have left nothing to leave out.
    if left_out(session, &entries[..place])? == 0 { Err(Unable::Nothing.into()) } else { Ok(place) }
}

/// Whether the message at a position is the user's.
fn is_person(session: &Session<'_>, context: &Context, at: usize) -> bool {
    let entry = context.entries[at];
    session.kind(entry) == Kind::Message(Role::User) && session.transcript.results_of(entry).is_empty()
}

/// The position from which on this many messages stay.
fn last(session: &Session<'_>, context: &Context, suits: &Suits<'_>, keep: u64) -> Result<usize, NotDrawn> {
    let entries = &context.entries;
    let (mut counted, mut from) = (0, entries.len());
    for at in (0..entries.len()).rev().filter(|&at| Context::counts(session, entries[at])) {
        // Entries of one message count as one.
        let turn = |at: usize| session.turn(entries[at]);
        counted += u64::from(from == entries.len() || turn(at) != turn(from));
        if counted > keep {
            break;
        }
        from = at;
    }
    if left_out(session, &entries[..from.min(entries.len())])? == 0 {
        return Err(Unable::Nothing.into());
    }
    let person = |&at: &usize| is_person(session, context, at);
    let suiting = || (from..entries.len()).filter(|&at| suits.at(at));
    let further = || (1..from).rev().find(|&at| suits.at(at));
    let found = suiting().find(person).or_else(|| suiting().next()).or_else(further);
    Ok(found.ok_or(Unable::NoPlace)?)
}

/// The position from which on the messages fit into this many tokens.
fn fitting(
    session: &Session<'_>,
    context: &Context,
    suits: &Suits<'_>,
    tokens: u64,
) -> Result<usize, Unable> {
    let (stays, costs) = tokens_from(session, &context.entries);
    let room = tokens.saturating_sub(stays);
    let all = costs.len();
    let from = (1..all).rev().take_while(|&at| costs[at] <= room).last().ok_or(Unable::NoRoom)?;
    let first = (from..all).find(|&at| suits.at(at)).ok_or(Unable::NoRoom)?;
    let mut persons = (first..all).take_while(|&at| costs[at] >= costs[first] / 2);
    let whole = persons.find(|&at| is_person(session, context, at) && suits.at(at));
    Ok(whole.unwrap_or(first))
}

/// How many messages are in context, without our own that replaces others.
pub(crate) fn said_in(session: &Session<'_>) -> Result<u64, Fault> {
    left_out(session, &Context::from_session(session).entries)
}

/// How many messages these entries are, without our own that replaces others.
fn left_out(session: &Session<'_>, entries: &[u32]) -> Result<u64, Fault> {
    let first = entries.iter().position(|&entry| Context::counts(session, entry));
    let Some(first) = first else { return Ok(0) };
    let own = usize::from(stands_for_others(session, entries[first])?);
    Ok(Context::count(session, &entries[first + own..]))
}

/// Which positions may be the first that stays.
struct Suits<'a> {
    session: &'a Session<'a>,
    context: &'a Context,
    /// Graph: the entries on the path from the leaf to the root.
    on_chain: Vec<bool>,
    /// The last position of a user or assistant message: after it, nothing of the conversation would stay.
    last: usize,
    /// For each position, the greatest end offset of all entries before it.
    highest: Vec<u64>,
}

impl<'a> Suits<'a> {
    fn for_session(session: &'a Session<'a>, context: &'a Context) -> Self {
        let mut on_chain = alloc::vec![false; session.transcript.entries.len()];
        for entry in session.path(session.leaf) {
            on_chain[entry as usize] = true;
        }
        let speaks =
            |&entry: &u32| matches!(session.kind(entry), Kind::Message(Role::User | Role::Assistant));
        let last = context.entries.iter().rposition(speaks).unwrap_or(0);
        let mut end = 0;
        let highest = context.entries.iter().map(|&entry| {
            let before = end;
            end = end.max(session.entry(entry).span.end);
            before
        });
        Self { session, context, on_chain, last, highest: highest.collect() }
    }

    /// Whether each entry after this one names its parent: pi stops at one that does not.
    fn is_linked(&self, entry: u32) -> bool {
        let (session, place) = (self.session, self.session.place(entry).unwrap_or(0));
        session.live[place + 1..].iter().all(|&later| matches!(session.entry(later).parent, Link::To(_)))
    }

    fn at(&self, position: usize) -> bool {
        let Some(entry) = head(self.session, self.context, position) else { return false };
        let (session, found) = (self.session, self.session.entry(entry));
        let id = core::str::from_utf8(session.transcript.id_text(found.id)).unwrap_or_default();
        let named = !id.is_empty() && !session.shares_its_id(entry);
        let begins = Context::counts(session, entry) && found.kind != Kind::Message(Role::Tool);
        let own_line = !session.shares_its_line(entry);
        let in_order = || {
            let start = session.entry(self.context.entries[position]).span.start;
            self.highest[position] <= start
                && self.context.entries[position..]
                    .iter()
                    .all(|&later| session.entry(later).span.start >= start)
        };
        let fits = match session.shape.compacts {
            Compacts::AtEnd => named && self.is_linked(entry),
            Compacts::Linked => {
                named
                    && own_line
                    && self.on_chain[entry as usize]
                    && !found.parent_at().is_empty()
                    && in_order()
            }
            Compacts::Before | Compacts::InPlace => own_line,
        };
        (1..=self.last).contains(&position) && begins && fits && self.context.parts_at(position)
    }
}

/// The first entry of the message at a position of which something remains once bound thinking is removed.
fn head(session: &Session<'_>, context: &Context, position: usize) -> Option<u32> {
    let &first = context.entries.get(position)?;
    let left = context.entries[position..].iter().copied().find(|&entry| !vanishes(session, entry))?;
    (session.turn(left) == session.turn(first)).then_some(left)
}

/// The steps that add the compaction, and remove what must be removed if only the order of lines counts.
fn insert(
    session: &Session<'_>,
    context: &Context,
    place: usize,
    request: &CompactRequest<'_>,
    left_out: u64,
) -> Result<Vec<Op>, NotDrawn> {
    let compacts = session.shape.compacts;
    let first = head(session, context, place).ok_or(Unable::NoPlace)?;
    let summary = words(compacts, request.summary, left_out);
    if compacts == Compacts::AtEnd
        && session.transcript.damage.iter().any(|found| found.kind == DamageKind::Torn)
    {
        return Err(Unable::Torn.into());
    }
    let before = match compacts {
        Compacts::AtEnd => session.live.last().copied(),
        Compacts::Linked => session.parent(context.entries[place]),
        Compacts::Before | Compacts::InPlace => None,
    };
    let near = if compacts == Compacts::AtEnd { before.unwrap_or(first) } else { first };
    let doc = json::parse(session.source, session.entry(near).span)?.ok_or(Unable::NoPlace)?;
    let time = moment(session, before.filter(|_| compacts == Compacts::Linked), &doc)?;
    let id = |n: &[u8], taken: &str| {
        fresh_id(session, near, (session.entry(near).span.start, n), &|id| id == taken)
    };
    let one = id(b"compaction", "");
    let two = id(b"summary", &one);
    let failed = core::cell::Cell::new(None);
    let raw = |value: Value<'_>| {
        let written = read_span(session.source, value.span());
        let written = written.map_err(|fault| failed.set(Some(fault))).unwrap_or_default();
        String::from_utf8_lossy(&written).into_owned().into_bytes()
    };
    let id_of = |entry: Option<u32>| {
        entry.map_or(&[][..], |entry| session.transcript.id_text(session.entry(entry).id))
    };
    let lines = (session.format.compaction)(&Compaction {
        doc: &doc,
        raw: &raw,
        ids: [&one, &two],
        parent: id_of(before),
        first_kept: id_of(Some(first)),
        time: &time,
        summary: &summary,
        tokens_before: tokens_of(session)?.tokens,
    });
    if let Some(fault) = failed.get() {
        return Err(fault.into());
    }
    if let Some(why) = unreadable(session, &lines) {
        return Err(why.into());
    }
    let mut steps = Vec::new();
    let hung = if compacts == Compacts::Linked { Some(two) } else { None };
    if let Some(parent) = hung {
        let mut with = Vec::new();
        quote(parent.as_bytes(), &mut with);
        steps.push(Op::Replace { at: session.entry(first).parent_at(), with });
        steps.extend(name_what_stays(session, first));
    }
    if compacts == Compacts::InPlace {
        let goes = |&&entry: &&u32| Context::counts(session, entry);
        steps.extend(context.entries[..place].iter().filter(goes).map(|&entry| Op::DropEntry(entry)));
    }
    steps.push(whole_lines(session, context.entries[place], &lines)?);
    Ok(steps)
}

/// Claude Code resumes at the row that the last `last-prompt` record names if that is not above the last row, as what a
/// compaction replaces is not any more. So the record names the last row instead.
fn name_what_stays(session: &Session<'_>, first: u32) -> Option<Op> {
    let record =
        (0..session.transcript.entries.len() as u32).rfind(|&entry| session.kind(entry) == Kind::Leaf)?;
    let named = session.target(record).filter(|&named| !session.is_above(first, named));
    let tip = session.ends.tip.filter(|_| named.is_some())?;
    let mut with = Vec::new();
    quote(session.transcript.id_text(session.entry(tip).id), &mut with);
    Some(Op::Replace { at: session.transcript.target_of(record).at, with })
}

/// Why the agent would not read such a compaction.
fn unreadable(session: &Session<'_>, lines: &[Vec<u8>]) -> Option<Unable> {
    let first = session.transcript.entries.first();
    let headless =
        session.format.header != Header::None && first.is_none_or(|entry| entry.kind != Kind::Header);
    if lines.is_empty() { Some(Unable::NotWritten) } else { headless.then_some(Unable::NoHeader) }
}

/// When the entry before was written, or else the one whose envelope is copied.
fn moment(session: &Session<'_>, before: Option<u32>, doc: &Doc) -> Result<String, Fault> {
    let time = match before {
        Some(before) => json::parse(session.source, session.entry(before).span)?.as_ref().and_then(time_of),
        None => None,
    };
    Ok(time.or_else(|| time_of(doc)).unwrap_or_default())
}

/// Inserts lines at the end of a branch, or before an entry.
fn whole_lines(session: &Session<'_>, first: u32, lines: &[Vec<u8>]) -> Result<Op, Fault> {
    let at_end = session.shape.compacts == Compacts::AtEnd;
    let entry = session.entry(first);
    let at = if at_end { session.transcript.bytes } else { entry.span.start };
    // The file's own line ends.
    let mut two = [0; 2];
    let got = session.source.read(entry.span.end, &mut two)?;
    let end_of_line: &[u8] = if &two[..got] == b"\r\n" { b"\r\n" } else { b"\n" };
    let mut with = Vec::new();
    let mut last = [b'\n'];
    if at_end && at > 0 {
        session.source.read(at - 1, &mut last)?;
    }
    if last != *b"\n" {
        with.extend_from_slice(end_of_line);
    }
    for line in lines {
        with.extend_from_slice(line);
        with.extend_from_slice(if entry.listed { b"," } else { b"" });
        with.extend_from_slice(end_of_line);
    }
    Ok(Op::Insert { at, with })
}

/// The text that replaces the messages that are left out.
fn words(compacts: Compacts, summary: Option<&str>, left_out: u64) -> String {
    let plural = if left_out == 1 { "" } else { "s" };
    match (summary, compacts) {
        (Some(summary), Compacts::InPlace) => {
            format!("[tailor: summary of {left_out} earlier message{plural}]\n\n{summary}")
        }
        (Some(summary), _) => summary.to_string(),
        (None, _) => format!(
            "[tailor: {left_out} earlier message{plural} left out of context, because the request was too long. \
             Continue from where you left off.]"
        ),
    }
}

fn time_of(doc: &Doc) -> Option<String> {
    let text: Cow<'_, [u8]> = doc.get("timestamp")?.text()?;
    core::str::from_utf8(&text).ok().map(ToString::to_string)
}
