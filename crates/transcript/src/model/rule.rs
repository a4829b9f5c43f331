//! What is known of a rule without asking it, and sets of rules. What a rule looks for is not known here.

use core::fmt;
use serde::{Deserialize, Serialize};

/// A rule, as findings name it.
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct RuleInfo {
    /// Stable short code.
    pub(crate) code: &'static str,
    /// Stable name.
    pub(crate) name: &'static str,
    /// What a person wants to know about it.
    pub(crate) help: Help,
    /// When its fixes are made.
    pub(crate) stage: Stage,
    /// What it is about.
    pub(crate) groups: &'static [Group],
    /// Whether its fixes change history that the agent has sent many times, and prompt caches hold.
    pub(crate) rewrites_history: bool,
    /// Whether the model may be sent other characters after a fix in place.
    pub(crate) model_sees: bool,
    /// Whether its fixes join parts of a session that the agent has not sent together since a line was lost.
    pub(crate) joins_unsent: bool,
    /// Whether its fixes make ids up.
    pub(crate) makes_ids: bool,
    /// Whether an entry alone, and none that comes behind it, decides what is found in it.
    pub(crate) entry_decides: bool,
    /// Whether it is asked when a session is brought back below its context window.
    pub(crate) recovers: bool,
    /// What an append may hold that it minds, beyond what any rule may mind; as long as it does not say, any record.
    pub(crate) wakes: &'static [Feature],
    /// Whether more of what was found is told.
    pub(crate) told: Repeats,
    /// Whether an append can undo what was found.
    pub(crate) heals: Heals,
    /// Whether it tells how far something stands from an end of the file.
    pub(crate) distant: bool,
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
        told: Repeats::Each,
        heals: Heals::Never,
        distant: false,
    };

    /// Its stable short code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Its stable name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What a person wants to know about it.
    pub fn help(&self) -> Help {
        self.help
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

/// What an append can be or bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Feature {
    // Any rule may mind these, so a full look follows whatever is asked for.
    /// The file is not what was known of it with more behind it, or its format is not clear.
    Rewritten,
    /// What was found before may depend on what comes.
    Unsettled,
    /// A line that is not one whole record, or strings that not everything can say.
    Damage,
    /// It does not hang on the newest entry, or the context was compacted.
    Unplaced,
    /// An id that may have been used before.
    Reused,
    /// A call or a result that does not belong to the one before.
    Unpaired,
    /// A turn that failed or was interrupted.
    Failure,
    /// A message holds something odd.
    Odd,

    // These are minded by rules that say so.
    /// Anything at all.
    Record,
    /// A result that may be over the limit for its tool.
    LongResult,
    /// Results of the newest turn that may be over their limit together.
    LongTurn,
    /// A message too long for a summariser.
    LongText,
    /// A copy beside a result that may be over its limit.
    LongSide,
    /// So many bytes that a program cannot read the file at once.
    LongFile,
    /// An image.
    Image,
    /// A text of nothing.
    EmptyText,
    /// Thinking that nothing of its message comes behind.
    LoneThinking,
    /// A signature of a thought that is not the provider's.
    AlteredThought,
    /// A person speaks before anybody answered.
    Again,
    /// Somebody speaks, and no user is in context.
    NoUser,
    /// A row of another session.
    Foreign,
    /// An ordinal that does not count on.
    Ordinal,
    /// A copy of what the model said.
    Mirror,
    /// A record of progress.
    Progress,
    /// A record that a later one of its kind replaces.
    Snapshot,
    /// What was logged of a request.
    RequestLog,
    /// A message of a subagent.
    Sidechain,
    /// A message beside the live branch.
    Beside,
    /// So many bytes that the title is out of sight.
    Title,
}

/// Whether an append can undo what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heals {
    /// It cannot.
    Never,
    /// Where an entry shares its id with another: what hangs on one hangs on both.
    Copies,
    /// Anywhere.
    Always,
}

/// Whether more of what was found is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Each time.
    Each,
    /// Once in a file.
    Once,
    /// Once in a file, as long as it may not go; what may go is counted.
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
    /// How records hang together.
    Tree,
}

impl Group {
    const ALL: [Self; 6] =
        [Self::Pairing, Self::Content, Self::Images, Self::DeadWeight, Self::Bytes, Self::Tree];

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
        }
    }

    /// The group with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name().eq_ignore_ascii_case(name))
    }
}

/// What has to be right before the rest can be looked at: fixes of an earlier stage are made by themselves, and then
/// all is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Bytes that keep records from being read.
    Bytes,
    /// Which records there are.
    Lines,
    /// How they hang together.
    Links,
    /// What they say to each other.
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
    /// None of these rules, of which there are at most 128.
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
