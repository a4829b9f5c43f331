//! P5: more than one result for a call.

use super::{Help, Rule, about_result, drop_results, severity_in_context};
use crate::finding::Finding;
use crate::session::{Answers, Session};
use crate::source::Fault;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

pub(super) struct DuplicateResult;

impl Rule for DuplicateResult {
    fn code(&self) -> &'static str {
        "P5"
    }

    fn name(&self) -> &'static str {
        "duplicate-result"
    }

    fn help(&self) -> Help {
        Help {
            what: "One call has several results.",
            why: "\"each tool_use must have a single result. Found multiple `tool_result` blocks with id\"; Gemini \
                  answers INVALID_ARGUMENT. Often a real result that came after one that a repair had invented.",
            fix: "One stays: a real one before an invented one, a success before an error, the first before later ones. \
                  The others are taken out.",
            source: "Anthropic Messages; cline #7419, Roo-Code #9248",
        }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let mut again: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, answers) in session.answers.iter().enumerate() {
            if let Answers::Again(call) = *answers {
                again.entry(call).or_default().push(index);
            }
        }
        for (call, others) in again {
            let all = session.result_of(call).into_iter().chain(others);
            // Off-branch copies of a result are never sent with it.
            let mut all: Vec<usize> =
                all.filter(|&result| session.is_live(session.result(result).entry)).collect();
            all.sort_by_key(|&result| {
                let found = session.result(result);
                let before_call = session.place(found.entry) < session.place(session.call(call).entry);
                (found.synthetic, found.error, before_call, result)
            });
            for &extra in all.iter().skip(1) {
                let entry = session.result(extra).entry;
                let severity = severity_in_context(session, entry);
                let message = "another result answers the same call".to_string();
                let fix = drop_results(session, &[extra]);
                out.push(Finding {
                    fix,
                    ..about_result(&DuplicateResult, session, extra, severity, message)
                });
            }
        }
        Ok(())
    }
}
