//! M8: nothing that a person said is in context.

use super::{Cover, Help, Rule, about};
use crate::entry::{Kind, Role};
use crate::finding::{Finding, Severity};
use crate::format::Format;
use crate::session::Session;
use crate::source::Fault;
use alloc::string::ToString;
use alloc::vec::Vec;

pub(super) struct NoUserTurn;

impl Rule for NoUserTurn {
    fn code(&self) -> &'static str {
        "M8"
    }

    fn name(&self) -> &'static str {
        "no-user-turn"
    }

    fn help(&self) -> Help {
        Help {
            what: "What the agent would send holds no message of a user: a compaction kept turns of the model and of tools \
                   alone.",
            why: "\"No user query found in messages\" (LM Studio, llama.cpp). A session that ends with the model's words \
                  (\"does not support assistant message prefill\") is whole, and not reported.",
            fix: "None: nothing is put into a person's mouth.",
            source: "hermes-agent #58331; claude-code #52433",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.results().of_messages() { Cover::Reported } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let spoken = |&entry: &u32| {
            session.in_context(entry) && session.entry(entry).kind == Kind::Message(Role::Assistant)
        };
        let first = session.live.iter().copied().find(spoken);
        if let Some(entry) = first.filter(|_| lacks_a_user(session)) {
            let message = "no message of a user is in context".to_string();
            out.push(about(&NoUserTurn, session, entry, Severity::Note, message));
        }
        Ok(())
    }
}

/// Whether no user message is in context.
pub(crate) fn lacks_a_user(session: &Session<'_>) -> bool {
    let user =
        |&entry: &u32| session.in_context(entry) && session.entry(entry).kind == Kind::Message(Role::User);
    !session.live.iter().any(user)
}
