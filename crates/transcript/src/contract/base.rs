//! What a contract consists of: clauses, each something that a door refuses, with its source and how sure it is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem::discriminant;

/// What an API accepts as the history of a request. A contract is a constant in a file of its own; one line in
/// [`super::CONTRACTS`] registers it.
pub struct Contract {
    /// Its name, as `--for` takes it.
    pub name: &'static str,
    /// What people call the API.
    pub title: &'static str,
    /// Names of the provider in sessions, and in `--for`.
    pub providers: &'static [&'static str],
    /// How the names of models begin that this provider made, for sessions that record no provider.
    pub models: &'static [&'static str],
    /// What it refuses.
    pub clauses: &'static [Clause],
    /// The contract whose clauses also hold, where this one has none of their kind.
    pub over: Option<&'static Self>,
    /// What differs for some models.
    pub variants: &'static [Variant],
}

/// A contract that says nothing.
pub(super) const BASE: Contract =
    Contract { name: "", title: "", providers: &[], models: &[], clauses: &[], over: None, variants: &[] };

/// What differs for models whose names begin like one of these.
pub struct Variant {
    /// Beginnings of the names.
    pub models: &'static [&'static str],
    /// What it refuses beside the contract, or in its place.
    pub clauses: &'static [Clause],
}

/// Something that a door or a trainer refuses.
pub struct Clause<T: 'static = Term> {
    /// What.
    pub term: T,
    /// How sure that is.
    pub sure: Sure,
    /// Where that is known from.
    pub source: &'static str,
}

impl<T: Copy> Clause<T> {
    /// What an SDK, a schema or a page of the provider says.
    pub(super) const fn known(term: T, source: &'static str) -> Self {
        Self { term, sure: Sure::Source, source }
    }

    /// What errors say that people reported.
    pub(super) const fn reported(term: T, source: &'static str) -> Self {
        Self { term, sure: Sure::Tracker, source }
    }

    /// What is believed.
    pub(super) const fn believed(term: T, source: &'static str) -> Self {
        Self { term, sure: Sure::Belief, source }
    }
}

/// How sure a clause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// The source of an SDK, a schema, or a page of the provider says so.
    Source,
    /// Quoted errors say so.
    Tracker,
    /// It is believed, and nobody looked.
    Belief,
}

impl Sure {
    /// In a word, for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Tracker => "reported",
            Self::Belief => "believed",
        }
    }
}

/// The characters of an id or a name: letters of ASCII, digits, and some others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters {
    /// What else may occur; `None` for anything.
    pub others: Option<&'static str>,
    /// How short it may be.
    pub min: usize,
    /// How long it may be.
    pub max: usize,
    /// Whether it begins with a letter or `_`.
    pub begins_with_letter: bool,
}

impl Letters {
    /// Letters, digits, `_` and `-`.
    pub(super) const fn word(max: usize) -> Self {
        Self { others: Some("_-"), min: 1, max, begins_with_letter: false }
    }

    /// Any characters.
    pub(super) const fn any(max: usize) -> Self {
        Self { others: None, min: 0, max, begins_with_letter: false }
    }

    /// Nothing but letters and digits.
    pub(super) const fn exactly(length: usize) -> Self {
        Self { others: Some(""), min: length, max: length, begins_with_letter: false }
    }

    /// Whether a text is of these.
    pub fn take(&self, text: &[u8]) -> bool {
        let fits = |others: &str| {
            text.iter().all(|byte| byte.is_ascii_alphanumeric() || others.as_bytes().contains(byte))
        };
        let begins = text.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        (self.min..=self.max).contains(&text.len())
            && (!self.begins_with_letter || begins)
            && self.others.is_none_or(fits)
    }

    fn words(&self) -> String {
        let lengths = match (self.min, self.max) {
            (min, max) if min == max => format!("exactly {min}"),
            (_, usize::MAX) => "any length".to_string(),
            (_, max) => format!("at most {max}"),
        };
        let first = if self.begins_with_letter { ", a letter or `_` first" } else { "" };
        match self.others {
            None => format!("any characters, {lengths}"),
            Some("") => format!("letters and digits, {lengths}{first}"),
            Some(others) => format!("letters, digits and `{others}`, {lengths}{first}"),
        }
    }
}

/// What a door asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// Ids of calls are of these characters.
    CallIds(Letters),
    /// Items that have an id of this kind begin it with this, and it has at most 64 characters.
    ItemIds(&'static [(&'static str, &'static str)]),
    /// Names of tools are of these characters.
    ToolNames(Letters),
    /// Arguments are a JSON object.
    ArgumentsAreObject,
    /// Arguments are JSON.
    ArgumentsAreJson,
    /// A block of text is not blank.
    NoBlankText,
    /// A message holds something.
    NoEmptyMessage,
    /// Each call has a result right after its message.
    CallsAnswered,
    /// Each result has its call in the message before.
    ResultsHaveCalls,
    /// No two calls of a request have one id.
    UniqueCallIds,
    /// User and model take turns.
    Alternates,
    /// The first message is a user's.
    BeginsWithUser,
    /// There is a user's message.
    NeedsUser,
    /// No user message comes right after a result.
    NoUserAfterResult,
    /// Instructions come first only.
    NoSystemInside,
    /// Images are of these kinds, and are what their label says.
    Images(&'static [&'static str]),
    /// There are no images.
    NoImages,
    /// No image is in a result.
    NoImagesInResults,
    /// The base64 of an image has at most so many bytes.
    ImageBytes(u64),
    /// Thinking mode wants reasoning beside calls.
    ReasoningWithCalls,
    /// The first call of a turn is signed, since the last message of the user; this stands for a lost signature.
    CallsSigned(&'static str),
    /// The first call of an earlier turn is signed, too.
    EarlierCallsSigned,
    /// A request has at most so many bytes.
    RequestBytes(u64),
}

/// Whether a term is of the same kind as another, so that only one of them can hold.
pub(super) fn is_like<T>(one: &T, other: &T) -> bool {
    discriminant(one) == discriminant(other)
}

impl Term {
    /// What it is about: stable, for programs.
    pub fn about(self) -> &'static str {
        match self {
            Self::CallIds(_) => "call-ids",
            Self::ItemIds(_) => "item-ids",
            Self::ToolNames(_) => "tool-names",
            Self::ArgumentsAreObject | Self::ArgumentsAreJson => "arguments",
            Self::NoBlankText => "blank-text",
            Self::NoEmptyMessage => "empty-message",
            Self::CallsAnswered => "open-call",
            Self::ResultsHaveCalls => "lone-result",
            Self::UniqueCallIds => "repeated-call-id",
            Self::Alternates => "same-role-again",
            Self::BeginsWithUser => "first-message",
            Self::NeedsUser => "no-user",
            Self::NoUserAfterResult => "user-after-result",
            Self::NoSystemInside => "system-inside",
            Self::Images(_) => "images",
            Self::NoImages => "no-images",
            Self::NoImagesInResults => "images-in-results",
            Self::ImageBytes(_) => "image-size",
            Self::ReasoningWithCalls => "reasoning",
            Self::CallsSigned(_) => "call-signatures",
            Self::EarlierCallsSigned => "earlier-call-signatures",
            Self::RequestBytes(_) => "request-size",
        }
    }

    /// What the door asks for, for tables.
    pub fn words(self) -> String {
        match self {
            Self::CallIds(letters) => format!("call ids: {}", letters.words()),
            Self::ItemIds(kinds) => {
                let each = |(kind, prefix): &(&str, &str)| format!("{kind} `{prefix}`");
                let kinds: Vec<String> = kinds.iter().map(each).collect();
                format!("item ids: at most 64 characters, and begin by kind: {}", kinds.join(", "))
            }
            Self::ToolNames(letters) => format!("tool names: {}", letters.words()),
            Self::ArgumentsAreObject => "arguments are a JSON object".into(),
            Self::ArgumentsAreJson => "arguments are JSON".into(),
            Self::NoBlankText => "no blank text block".into(),
            Self::NoEmptyMessage => "no empty message".into(),
            Self::CallsAnswered => "results right after their calls".into(),
            Self::ResultsHaveCalls => "no result without its call".into(),
            Self::UniqueCallIds => "call ids unique in the request".into(),
            Self::Alternates => "user and model take turns".into(),
            Self::BeginsWithUser => "user message first".into(),
            Self::NeedsUser => "at least one user message".into(),
            Self::NoUserAfterResult => "no user message right after a result".into(),
            Self::NoSystemInside => "system messages first only".into(),
            Self::Images(kinds) => format!("images: {}", kinds.join(", ")),
            Self::NoImages => "no images".into(),
            Self::NoImagesInResults => "no images in results".into(),
            Self::ImageBytes(most) => format!("images of at most {most} bytes of base64"),
            Self::ReasoningWithCalls => "thinking mode: reasoning beside calls".into(),
            Self::CallsSigned(placeholder) => {
                format!("first call of a turn signed, or `{placeholder}` in place of the signature")
            }
            Self::EarlierCallsSigned => "first call of an earlier turn signed, too".into(),
            Self::RequestBytes(most) => format!("requests of at most {most} bytes"),
        }
    }
}
