//! Why an append is not judged by itself.

use core::fmt;

/// Why an append is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The format is not known, or what was appended makes it another one.
    Format,
    /// The last look ended within a line.
    Unfinished,
    /// The file is shorter than before.
    Shorter,
    /// The last bytes that were known are not there any more.
    Rewritten,
    /// A line is not one whole record.
    Damaged,
    /// The context was compacted, or a header stands where none belongs.
    Boundary,
    /// An entry hangs on another one than the newest.
    Branched,
    /// An id may have been used before.
    Reused,
    /// A result has no open call, or a call no id.
    Unpaired,
    /// Something stands between a call and its result.
    Displaced,
    /// The conversation went on and left a call without a result.
    LeftOpen,
    /// A text is longer than its limit, or may be.
    Oversized,
    /// A message holds something that may be refused, or nothing, or nobody answered the one before.
    Content,
    /// What was found before may depend on what comes.
    Unsettled,
    /// The policy looks at more than the newest turn.
    Policy,
    /// The end of the session is unusual, or has more open ends than are remembered.
    Tangled,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => "the format is unknown or may be another one now",
            Self::Unfinished => "the last look ended within a line",
            Self::Shorter => "the file is shorter than before",
            Self::Rewritten => "bytes that were known have changed",
            Self::Damaged => "a line is not one whole record",
            Self::Boundary => "the context was compacted",
            Self::Branched => "an entry hangs on another one than the newest",
            Self::Reused => "an id may have been used before",
            Self::Unpaired => "a result has no open call",
            Self::Displaced => "something stands between a call and its result",
            Self::LeftOpen => "a call was left without a result",
            Self::Oversized => "a text is too long, or may be",
            Self::Content => "a message holds something that may be refused",
            Self::Unsettled => "what was found before may depend on what comes",
            Self::Policy => "the policy looks at more than the newest turn",
            Self::Tangled => "the end of the session is unusual",
        })
    }
}
