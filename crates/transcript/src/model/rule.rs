//! The facts about a rule that can be read without running it, and sets of rules. The checks themselves are in
//! [`crate::rule`].

use crate::model::policy::Budget;
use core::fmt;
use serde::{Deserialize, Serialize};

/// The facts about a rule; a finding refers to its rule by them.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct RuleInfo {
    /// Stable short code.
    pub(crate) code: &'static str,
    /// Stable name.
    pub(crate) name: &'static str,
    /// The text of `tailor explain CODE`.
    pub(crate) help: Help,
    /// The stage in which its fixes are made.
    pub(crate) stage: Stage,
    /// What it is about.
    pub(crate) groups: &'static [Group],
    /// Whether its fixes change history that the agent has sent many times, so that prompt caches hold it.
    pub(crate) rewrites_history: bool,
    /// Whether the model sees what its replacements change. If not, they keep signed thinking valid.
    pub(crate) model_sees: bool,
    /// Whether its fixes join parts of a session that the agent has not sent together since a line was lost.
    pub(crate) joins_unsent: bool,
    /// Whether its fixes generate ids, which an appended id could collide with.
    pub(crate) makes_ids: bool,
    /// Whether no later entry of the turn can change what is found in an entry.
    pub(crate) entry_decides: bool,
    /// Whether `recover` runs it when it brings a session back below its context window.
    pub(crate) recovers: bool,
    /// Which features of an append could give this rule a new finding, so that the file has to be examined again. The first
    /// features of [`Feature`] wake every rule and are not listed. By default any record wakes it.
    pub(crate) wakes: &'static [Feature],
    /// Whether it reports each occurrence, or only the first.
    pub(crate) repeats: Repeats,
    /// Whether an append can make a finding go away.
    pub(crate) heals: Heals,
    /// Whether it is about how far something is from an end of the file, which changes as the file grows.
    pub(crate) distant: bool,
    /// Whether it is about records that are read in part or not at all.
    pub(crate) unreadable: bool,
    /// Whether it reports messages of the user that come after one without an answer.
    pub(crate) unanswered: bool,
    /// The limit without which it never finds anything.
    pub(crate) limit: Option<Limit>,
    /// Whether it runs only where somebody selects or allows it.
    pub(crate) on_request: bool,
}

/// A limit of a check.
#[derive(Clone, Copy)]
pub struct Limit {
    /// The option that sets it.
    pub option: &'static str,
    /// Whether it is set.
    pub is_set: fn(&Budget) -> bool,
}

impl RuleInfo {
    /// What holds for most rules.
    pub(crate) const BASE: Self = Self {
        code: "",
        name: "",
        help: Help { what: "", why: "", fix: "", source: "" },
        stage: Stage::Talk,
        groups: &[],
        rewrites_history: false,
        model_sees: true,
        joins_unsent: false,
        makes_ids: false,
        entry_decides: false,
        recovers: false,
        wakes: &[Feature::Record],
        repeats: Repeats::Each,
        heals: Heals::Never,
        distant: false,
        unreadable: false,
        unanswered: false,
        limit: None,
        on_request: false,
    };

    /// Its stable short code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Its stable name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The text of `tailor explain CODE`.
    pub fn help(&self) -> Help {
        self.help
    }

    /// Whether it is about records that are read in part or not at all.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Whether it reports messages of the user that come after one without an answer.
    pub fn is_about_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Whether it runs only where somebody selects or allows it.
    pub fn is_on_request(&self) -> bool {
        self.on_request
    }

    /// The limit without which it never finds anything.
    pub fn limit(&self) -> Option<Limit> {
        self.limit
    }
}

impl fmt::Debug for RuleInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.name)
    }
}

/// The text of `tailor explain`.
#[derive(Clone, Copy, Debug)]
pub struct Help {
    /// What is wrong, in one sentence.
    pub what: &'static str,
    /// Why that hurts; error texts of APIs that come from it.
    pub why: &'static str,
    /// What `fix` does, and when it does not.
    pub fix: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

/// What can be true of an append. [`crate::judge`] computes it from the appended lines, and a rule lists in
/// `wakes` those that it has to run again for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Feature {
    // These concern every rule: the file is always examined again.
    /// The known part of the file has changed, or its format is not clear.
    Rewritten,
    /// An earlier finding may depend on what is appended.
    Unsettled,
    /// A line that is not one whole record, or a string that some readers refuse.
    Damage,
    /// Its parent is not the newest entry, or the context was compacted.
    Unplaced,
    /// An id that may have been used before.
    Reused,
    /// A call that is malformed or left open, or a result of no open call.
    Unpaired,
    /// A turn that failed or was interrupted.
    Failure,
    /// A message with a content issue.
    Odd,

    // These concern only the rules that list them in `wakes`.
    /// Anything at all.
    Record,
    /// A result that may be over the limit for its tool.
    LongResult,
    /// Results of the newest turn that may be over their limit together.
    LongTurn,
    /// The context fills so much of its window that old results are to be shortened, or that is not known.
    Crowded,
    /// The result of reading a file that was read before.
    Reread,
    /// A message too long for a summariser.
    LongText,
    /// A copy beside a result that may be over its limit.
    LongSide,
    /// So many bytes that a program cannot read the file at once.
    LongFile,
    /// An image.
    Image,
    /// An empty text.
    EmptyText,
    /// Thinking with nothing after it in its message.
    LoneThinking,
    /// A thought signature that was altered.
    AlteredThought,
    /// A second user message before any answer.
    Again,
    /// A message while no user message is in context.
    NoUser,
    /// A row of another session.
    Foreign,
    /// An ordinal that does not count on.
    Ordinal,
    /// A copy of an assistant message.
    Mirror,
    /// A record of progress.
    Progress,
    /// A record that a later one of its kind replaces, or after which earlier ones are not read.
    Snapshot,
    /// A log of a request.
    RequestLog,
    /// A message of a subagent.
    Sidechain,
    /// A message beside the live branch.
    Beside,
    /// So many bytes that the agent does not find the title any more.
    Title,
}

/// Whether an append can make a finding go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heals {
    /// It cannot.
    Never,
    /// Where an entry shares its id with another, since a child of one is a child of both.
    Copies,
    /// Where the API refused signed thinking, since how the last turn ended tells that.
    Refusals,
    /// Anywhere.
    Always,
}

/// How often a rule reports what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Each occurrence.
    Each,
    /// Once per file.
    Once,
    /// Once per file where the policy does not let the fix be made, and each occurrence where it does.
    Counted,
}

/// Rules that are about one thing, and can be chosen together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Calls and their results.
    Pairing,
    /// What messages hold, and who speaks.
    Content,
    /// Images.
    Images,
    /// What no agent loads.
    DeadWeight,
    /// Bytes that keep records from being read.
    Bytes,
    /// How records are linked.
    Tree,
    /// Keys, tokens and passwords.
    Secrets,
}

impl Group {
    const ALL: [Self; 7] = [
        Self::Pairing,
        Self::Content,
        Self::Images,
        Self::DeadWeight,
        Self::Bytes,
        Self::Tree,
        Self::Secrets,
    ];

    /// The names of all groups.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let (mut names, mut n) = ([""; Self::ALL.len()], 0);
        while n < names.len() {
            names[n] = Self::ALL[n].name();
            n += 1;
        }
        names
    };

    const fn name(self) -> &'static str {
        match self {
            Self::Pairing => "pairing",
            Self::Content => "content",
            Self::Images => "images",
            Self::DeadWeight => "dead-weight",
            Self::Bytes => "bytes",
            Self::Tree => "tree",
            Self::Secrets => "secrets",
        }
    }

    /// The group with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name().eq_ignore_ascii_case(name))
    }
}

/// When a fix is made. The fixes of one stage are made together; then everything is read again before the next stage,
/// because damage hides what later stages are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Secrets, before anything that a later stage takes out is kept.
    Secrets,
    /// Repairs of bytes that keep records from being read.
    Bytes,
    /// Adding and removing records.
    Lines,
    /// Links between records.
    Links,
    /// The conversation itself.
    #[default]
    Talk,
}

/// A set of the rules in a list.
#[derive(Clone, Copy)]
pub struct Codes {
    rules: &'static [&'static RuleInfo],
    /// A bit for each rule of the list.
    bits: u128,
}

impl Codes {
    /// The empty set of these rules. There may be at most 128.
    pub(crate) const fn none(rules: &'static [&'static RuleInfo]) -> Self {
        assert!(rules.len() <= 128, "a set of rules has a bit for each");
        Self { rules, bits: 0 }
    }

    pub(crate) fn insert(&mut self, code: &str) {
        let place = self.rules.iter().position(|rule| rule.code == code);
        self.bits |= place.map_or(0, |place| 1 << place);
    }

    pub(crate) fn has(self, code: &str) -> bool {
        self.iter().any(|own| own == code)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// In the order of the list.
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        let has = move |(place, _): &(usize, _)| self.bits & (1 << place) != 0;
        self.rules.iter().enumerate().filter(has).map(|(_, rule)| rule.code)
    }
}

impl PartialEq for Codes {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Codes {}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, code) in self.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            f.write_str(code)?;
        }
        Ok(())
    }
}
