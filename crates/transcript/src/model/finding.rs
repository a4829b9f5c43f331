//! Findings of rules, their fixes, and the reasons why a fix is not made.

use crate::model::ids::Id;
use crate::model::rule::{Codes, RuleInfo};
use crate::model::transcript::Transcript;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use spans::source::Span;

/// How many errors are compared by their places; fewer in tests, which would have to read megabytes.
pub(crate) const ERRORS_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 20 };

/// How many steps one run makes in a stage. The next run makes the rest.
pub(crate) const STEPS_MAX: usize = 1 << 17;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Bloat, or a risk.
    Warning,
    /// The session will be refused, or is unreadable.
    Error,
}

impl Severity {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule applied to a place: what is wrong there.
#[derive(Clone)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static RuleInfo,
    /// How bad it is here.
    pub severity: Severity,
    /// Line in the file, from 1.
    pub line: u64,
    /// The entry, call and tool that it is about, by id and name.
    pub labels: Labels,
    /// A repair of something else uncovered it; it is not among the findings of the original.
    pub uncovered: bool,
    /// How many more findings like it are not listed.
    pub more: u64,
    /// Where it is, as an offset in the text that was examined.
    pub(crate) at: u64,
    /// What it is about within an entry that holds many messages.
    pub(crate) spot: Option<Span>,
    pub(crate) entry: Option<u32>,
    pub(crate) call: Option<Id>,
    pub(crate) tool: Option<Id>,
    /// How long the text is, if that is what is wrong.
    pub chars: Option<u64>,
    /// How many bytes the fix would take out, if saving bytes is its only purpose. Appends since the last full examination
    /// are not counted.
    pub saves_bytes: Option<u64>,
    /// What is wrong, without any content of the transcript.
    pub message: String,
    /// What can be done.
    pub fix: Fix,
    /// The secret that it is about.
    pub secret: Option<SecretMark>,
}

/// What may be said of a secret: never the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretMark {
    /// What it looks like.
    #[serde(rename = "secret_kind")]
    pub kind: String,
    /// How many characters it has.
    pub chars: u64,
    /// Its first two characters and its last two; empty for one that is shorter than 16.
    pub ends: String,
    /// The first digits of the BLAKE3 hash of it; of a key of several lines, of its letters and digits.
    #[serde(rename = "secret_hash")]
    pub hash: String,
    /// How often it stands there.
    pub times: u64,
}

impl SecretMark {
    /// How many hex digits of the hash are shown.
    const HASH_DIGITS: usize = 16;
    /// Of a shorter one, four characters are too much.
    const ENDS_BYTES_MIN: usize = 16;

    /// What may be said of this secret; a `block` has several lines.
    pub(crate) fn new(kind: &str, secret: &[u8], block: bool) -> Self {
        let mut hasher = blake3::Hasher::new();
        if block {
            hash_letters(secret, &mut hasher);
        } else {
            hasher.update(secret);
        }
        let hash = hasher.finalize().to_hex();
        let is_shown = !block && secret.len() >= Self::ENDS_BYTES_MIN && secret.is_ascii();
        let end = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ends = if is_shown {
            end(&secret[..2]) + "\u{2026}" + &end(&secret[secret.len() - 2..])
        } else {
            String::new()
        };
        let chars = String::from_utf8_lossy(secret).chars().count() as u64;
        Self { kind: kind.into(), chars, ends, hash: hash[..Self::HASH_DIGITS].into(), times: 1 }
    }
}

/// Hashes the letters and digits of a text, but for those of escapes: lines of a key end in several ways.
fn hash_letters(text: &[u8], hasher: &mut blake3::Hasher) {
    let mut is_escape = false;
    for byte in text {
        if byte.is_ascii_alphanumeric() && !is_escape {
            hasher.update(&[*byte]);
        }
        is_escape = *byte == b'\\';
    }
}

impl fmt::Display for SecretMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, chars, ends, hash, times } = self;
        write!(f, "{kind} of {chars} characters")?;
        if !ends.is_empty() {
            write!(f, ", {ends}")?;
        }
        if *times > 1 {
            write!(f, ", {times} times")?;
        }
        write!(f, " (secret {hash})")
    }
}

/// Ids and names from the transcript, decoded. They are untrusted text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// Id of the entry, if it is about one that has an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Id of the call, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Name of the tool, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl Finding {
    /// How many findings it represents: itself, and those that are not listed.
    pub fn count(&self) -> u64 {
        1 + self.more
    }

    /// Whether it keeps messages from being sent rather than the session: a link is broken.
    pub fn hides_messages(&self) -> bool {
        self.rule.joins_unsent
    }

    /// Copies ids and names from the transcript, which is dropped next, and drops the steps of the fix, which the plan has
    /// by now.
    pub(crate) fn label(&mut self, transcript: &Transcript) {
        let text =
            |id: Option<Id>| id.map(|id| String::from_utf8_lossy(transcript.ids.text(id)).into_owned());
        let entry = self.entry.and_then(|entry| transcript.entries[entry as usize].id);
        self.labels = Labels { entry: text(entry), call: text(self.call), tool: text(self.tool) };
        self.fix.ops = Vec::new();
    }
}

/// What repairs a finding, and whether that may be made at this place.
#[derive(Clone)]
pub struct Fix {
    /// Whether it is made.
    pub safety: Safety,
    /// Its steps; empty once the plan is drawn.
    pub(crate) ops: Vec<Op>,
}

impl Fix {
    /// No fix, or one that Tailor does not make.
    pub const NONE: Self = Self { safety: Safety::None, ops: Vec::new() };

    /// A fix that loses nothing beyond what the policy asks for.
    pub fn safe(ops: Vec<Op>) -> Self {
        Self { safety: Safety::Safe, ops }
    }

    /// A fix that is made only with `--allow CODE`.
    pub fn guarded(why: Guard, ops: Vec<Op>) -> Self {
        Self { safety: Safety::Guarded(why), ops }
    }

    /// A fix that the rule makes elsewhere, but not at this place.
    pub fn held(why: Held) -> Self {
        Self { safety: Safety::Held(why), ops: Vec::new() }
    }
}

/// Whether a fix is made at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Safety {
    /// Made by `fix` and the daemon.
    Safe,
    /// Made only with `--allow CODE`.
    Guarded(Guard),
    /// Not made here, for this reason.
    Held(Held),
    /// There is no fix.
    None,
}

/// Why a fix needs `--allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guard {
    /// It rewrites ids.
    RewritesIds,
    /// It changes how many lines there are, and another file may count them.
    ChangesLineCount,
    /// It removes the newest entry, whose id a running agent may hold in memory.
    NewestEntry,
    /// It escapes characters that are legal as they are.
    Respells,
    /// There is more than one possible repair, and a lot of history may return to the context.
    Guesses,
    /// What it takes out is not loaded, but could be rewound to.
    History,
    /// It removes an image that the model has seen.
    Images,
    /// It makes an image smaller than the model has seen it.
    Pixels,
    /// It removes thinking that may be valid.
    Thinking,
    /// It adds a line that only some versions of the agent need.
    Appends,
    /// It removes a message because another one has the same text.
    Copy,
    /// Only the API's error says that what it changes is refused.
    Blamed,
    /// It removes a document that the model has seen.
    Documents,
    /// The agent has cut it already to what it keeps, and the session has room for that.
    HasRoom,
    /// It removes what a file held before the model read it again.
    ReadAgain,
    /// It removes what the model has seen, and nothing keeps it.
    Secrets,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RewritesIds => "it rewrites ids of calls",
            Self::ChangesLineCount => {
                "it changes the number of lines, and a file beside this one may count them"
            }
            Self::Respells => "the text is valid, and only some readers fail on it",
            Self::Guesses => "the lost link is a guess, and old history may come back",
            Self::History => "no longer sent to the model, but you could not rewind to it",
            Self::Images => "it removes images that the model has seen",
            Self::Pixels => "it makes images smaller than the model has seen them",
            Self::Copy => "some screens show this copy of the message and not the other one",
            Self::Documents => "it removes documents that the model has seen",
            Self::ReadAgain => "the model would no longer see what the file held before",
            Self::Secrets => "the model would no longer see it, and undo cannot put it back",
            Self::HasRoom => "its agent keeps results of this length, and the context has room",
            Self::Blamed => "only the API's error tells whether this is refused",
            Self::Appends => "it adds a line at the end, which only some versions of the agent need",
            Self::Thinking => "it removes thinking that may be valid",
            Self::NewestEntry => "it removes the newest entry, which a running agent may build on",
        })
    }
}

/// Why a fix is held back at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Held {
    /// The model would see the change, and thinking signed after it would become invalid.
    SignedThinking,
    /// As `SignedThinking`, for an error: the session may be refused as it is.
    SignedAndBroken,
    /// As `SignedThinking`, for thinking later on the same line, which is a whole conversation.
    SignedOnTheLine,
    /// The model would see the change, its signatures cover earlier messages, and a process may hold the conversation in
    /// memory.
    InMemory,
    /// Thinking comes after a text that Tailor has cut. It is valid unless the agent still had the whole text in memory.
    Remembered,
    /// The newest turn still waits for a result.
    NewestTurn,
    /// The session was written to a short while ago, and the fix would rewrite what a prompt cache may hold.
    RecentlyUsed,
    /// The model's last message is too recent, or has no time, so that a prompt cache may hold what would change.
    WarmCache,
    /// Other entries share the id, or point at the entry in ways that would break.
    Referenced,
    /// Nothing of the file may be changed.
    ReadOnly(#[serde(skip)] &'static str),
    /// It does more than shorten texts of settled results of earlier turns, and here nothing else is changed.
    SettledOnly(#[serde(skip)] &'static str),
    /// It would add an entry, or move one, and here each is a row of a database.
    RowsOnly(#[serde(skip)] &'static str),
    /// It would change the number or the order of lines, which another file counts.
    Counted(#[serde(skip)] &'static str),
    /// It would move lines whose byte offsets something else holds.
    Offsets(#[serde(skip)] &'static str),
    /// The agent skips the line as it is, and would refuse the whole file because of the repaired line.
    Checked,
    /// An image cannot be replaced by words there.
    NothingElse,
    /// There is no unambiguous repair here.
    Tangled,
    /// A link of the session is broken, and what looks unused may be needed once it is mended.
    BrokenLinks,
    /// Records of unknown kinds may change what the agent sends.
    UnknownKind,
    /// This run has made as many changes as one run may.
    NextRun,
    /// The repair was tried, and would make something worse.
    #[serde(skip)]
    Worse(Worse),
}

impl Held {
    /// The option of `tailor fix` that makes the fix anyway.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Self::SignedThinking | Self::SignedAndBroken | Self::Remembered => Some("--thinking strip"),
            Self::SignedOnTheLine => Some("--thinking ignore"),
            Self::InMemory => Some("--settle 0"),
            Self::RecentlyUsed => Some("--settle-stale 0"),
            Self::WarmCache => Some("--crowded-cache-ttl 0"),
            Self::UnknownKind => Some("--allow V2"),
            Self::NewestTurn
            | Self::Referenced
            | Self::ReadOnly(_)
            | Self::SettledOnly(_)
            | Self::RowsOnly(_)
            | Self::Counted(_)
            | Self::Offsets(_)
            | Self::Checked
            | Self::NothingElse
            | Self::Tangled
            | Self::BrokenLinks
            | Self::NextRun
            | Self::Worse(_) => None,
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SignedThinking => {
                "signed thinking follows, which the change would invalidate (--thinking strip removes it, ignore cuts anyway)"
            }
            Self::SignedAndBroken => {
                "the session may be refused as it is, but signed thinking follows, which the repair would invalidate (--thinking strip repairs it and removes that thinking)"
            }
            Self::InMemory => {
                "an agent may hold the conversation in memory, and would sign its next thinking over the old text (--settle 0 changes it now)"
            }
            Self::Remembered => {
                "it is valid unless the agent still had the whole text in memory; if the API refuses the session, --thinking strip removes it"
            }
            Self::SignedOnTheLine => {
                "signed thinking follows on the line, which the change would invalidate (--thinking ignore changes it anyway)"
            }
            Self::NewestTurn => "the newest turn still waits for a result; its tools may be running",
            Self::RecentlyUsed => {
                "the session was used a short while ago, and a prompt cache may hold what would change (--settle-stale 0 changes it now)"
            }
            Self::WarmCache => {
                "the model's last message is too young, or has no time, so a prompt cache may hold what would change (--crowded-cache-ttl 0 changes it now)"
            }
            Self::Referenced => "other entries share its id, or a label points at it",
            Self::Checked => {
                "the agent skips the line now, and would refuse the whole file over the replaced value"
            }
            Self::ReadOnly(why) => return write!(f, "Tailor only reads this file: {why}"),
            Self::SettledOnly(why) | Self::RowsOnly(why) => why,
            Self::Counted(place) => {
                return write!(f, "lines cannot be added, removed or moved here: their number is stored in {place}");
            }
            Self::Offsets(place) => {
                return write!(
                    f,
                    "no line can move or become longer here, so texts are only shortened: byte offsets are kept in {place}"
                );
            }
            Self::NothingElse => "only an image can be there, so no text can replace it",
            Self::UnknownKind => {
                "records of an unknown kind, or fields that are not known, may change what the agent sends (V2; --allow V2 makes it)"
            }
            Self::NextRun => {
                return write!(f, "one run makes at most {STEPS_MAX} changes; run tailor fix again for the rest");
            }
            Self::Tangled => "no unambiguous repair here",
            Self::BrokenLinks => {
                "it is not certain that these messages are unused: a link of the session is broken, or its records disagree about the newest one"
            }
            Self::Worse(worse) => return write!(f, "{worse}"),
        })
    }
}

/// Why a repair is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worse {
    /// The result has errors or warnings that the original does not have.
    NewFindings(NewProblems),
    /// A user's text would be missing.
    UserTextLost,
    /// The model would see fewer messages than the policy allows to go.
    Shortened,
    /// Nothing of the conversation would be left.
    Emptied,
    /// The file would not be recognised any more.
    FormatLost,
    /// There are too many errors to compare the two.
    TooMany,
    /// This rule would still want changes after the last round.
    Unsettled(&'static str),
}

impl fmt::Display for Worse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewFindings(news) => write!(f, "the repair would bring a new problem ({})", news.codes),
            Self::UserTextLost => f.write_str("the repair would lose something that a person said"),
            Self::Shortened => f.write_str("the repair would hide messages that the model sees now"),
            Self::Emptied => f.write_str("the repair would leave nothing of the conversation"),
            Self::FormatLost => f.write_str("the repair would make the file unrecognisable"),
            Self::TooMany => write!(
                f,
                "more than {ERRORS_MAX} errors are too many to check a repair; repair one rule at a time (--select CODE)"
            ),
            Self::Unsettled(code) => write!(f, "the repair of {code} would not come to an end"),
        }
    }
}

/// The new problems that a repair would cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewProblems {
    /// The rules with new findings.
    pub codes: Codes,
    /// Whether each of them has a fix that `--allow` makes.
    pub curable: bool,
}

/// One step of a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Replaces bytes. Of two such steps that overlap, the later one counts.
    Replace {
        /// The bytes to take out.
        at: Span,
        /// The bytes to put in.
        with: Vec<u8>,
    },
    /// Shortens a text: replaces a part of it by a marker. Of several for one text, the last one counts.
    Cut {
        /// The inside of the literal.
        text: Span,
        /// The bytes to take out.
        at: Span,
        /// The bytes to put in.
        with: Vec<u8>,
    },
    /// Takes an element out of an array of an entry, with its comma.
    DropBlock {
        /// The entry.
        entry: u32,
        /// The element.
        block: Span,
    },
    /// Takes an entry out; its children are re-linked.
    DropEntry(u32),
    /// Moves an entry to after another one; links follow.
    Move {
        /// What moves.
        entry: u32,
        /// Where to.
        after: u32,
    },
    /// Takes out an entry that has another copy; nothing is re-linked.
    DropCopy(u32),
    /// Moves an entry to the front of the file.
    ToFront(u32),
    /// Adds the missing result of a call.
    Answer(u32),
    /// Stores the inside of a literal as it is now: a marker of this fix names it by its address.
    Keep(Span),
    /// Inserts whole lines, with their line breaks, where a line begins or at the end.
    Insert {
        /// Where.
        at: u64,
        /// The lines.
        with: Vec<u8>,
    },
}
