//! What a transcript says, what is wrong with it, and which edits repair it.
//!
//! This crate is pure: no file, no clock, no thread, no randomness, no log, and it never panics on any bytes.
//! Data flows one way, and every step is a type:
//!
//! ```text
//! Source -scan-> Transcript -session-> Session -rules-> Finding -draw-> Plan -render-> pieces of bytes
//! ```
//!
//! [`examine`] stops at the findings and what fixing them would save. [`mend`] draws the plan, reads the planned text
//! again, and checks that it is no worse than the original and that nothing is left to change.
//!
//! ```
//! let text = br#"{"role":"user","content":"look"}
//! {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{}"}}]}
//! {"role":"tool","tool_call_id":"c","content":"a.txt"}
//! {"role":"tool","tool_call_id":"x","content":"whose?"}
//! "#;
//! let found = transcript::examine(&&text[..], &transcript::Policy::default()).unwrap();
//! assert_eq!(found.findings[0].rule.code(), "P2");
//! assert_eq!(found.findings[0].line, 4);
//! ```
//!
//! # Around a transcript
//!
//! | what | where |
//! |---|---|
//! | the input of a summariser, in chunks that fit | [`chunk`] |
//! | whether an error means that the context is too long, and how many tokens to ask for after an answer was cut off | [`overflow`] |
//! | policies with the limits that other systems use | [`profile`] |
//! | shortening a session that is still too long | [`shorten`](mod@shorten), [`recover`](mod@recover), [`compact`](mod@compact) |
//! | one session among many: a row of a table, a line of a data set | [`row`](mod@row) |
//! | whether an append changes what was found, without reading the whole file | [`judge`] |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod contract;
mod examine;
pub mod format;
mod model;
pub mod plan;
mod read;
pub mod refusal;
pub mod rule;
pub mod secret;
pub mod session;
mod tasks;
pub mod weight;

pub use examine::context::Messages;
pub use examine::digest::Digest;
pub use examine::headline::Headline;
pub use examine::look::Examination;
pub use examine::mend::{
    Mended, Repair, examine, examine_read, examine_scanned, mend, mend_read, mend_scanned,
};
pub use examine::verdict;
pub use model::finding::{Finding, Severity};
pub use model::policy::Policy;
pub use model::situation::{Case, Situation};
pub use model::{finding, image, policy, profile, situation};
pub use plan::{Piece, Plan, Rendered};
pub use read::scan::Reading;
pub use read::{parts, scan};
pub use session::{Awaits, Facts, tokens};
pub use spans::{Fault, Source, Span};
pub use tasks::{chunk, compact, judge, recover, request, row, shorten};

/// The words that all formats share: entry, tool call, tool result, boundary, branch.
pub mod entry {
    pub use crate::model::draft::{Draft, SIDE_BYTES_MIN};
    pub use crate::model::entry::*;
    pub use crate::model::ids::{Id, Ids};
    pub use crate::model::image::Image;
    pub use crate::model::transcript::Transcript;
}

/// Why a request failed, by the provider's error text, and how the last turn of a session failed.
pub mod overflow {
    pub use crate::model::overflow::*;
    pub use crate::session::failure::{Failure, answered_since, last_error, last_failure};
}
