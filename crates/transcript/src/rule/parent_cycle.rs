//! T2: entries that are their own ancestors.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about};
use super::dangling_parent;
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T2",
        name: "parent-cycle",
        help: Help {
            what: "Following the parents of an entry leads back to it.",
            why: "Agents without a guard loop for ever; others lose everything before the cycle.",
            fix: "The link that points forward in the file is cut: its entry is linked to the one before it, as if the \
                  line between them had been lost. A result stays with its call.",
            source: "claude-code #22245, #22042, #22057",
        },
        stage: Stage::Links,
        groups: &[Group::Tree],
        joins_unsent: true,
        wakes: &[],
        ..RuleInfo::BASE
    },
    cover: |format| if format.shape.has_parents() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for entry in session.circles() {
        let live = session.is_live(entry);
        let severity = if live { Severity::Error } else { Severity::Warning };
        let before = dangling_parent::nearest_before(session, entry);
        let at = session.entry(entry).parent_at();
        let fix = match before {
            Some(before) => dangling_parent::surely(dangling_parent::link(session, entry, before)),
            None => Fix::safe(vec![Op::Replace { at, with: b"null".to_vec() }]),
        };
        let message = "parent links lead back to this entry".to_string();
        out.push(Finding { fix, ..about(&RULE, session, entry, severity, message) });
    }
    Ok(())
}
