//! T99, which tests/additions/run adds to a copy of the source: the model said tick.

use super::base::{Cover, FindingSink, Help, Rule, RuleInfo, about};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::json::{self, Doc};
use spans::source::Fault;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "T99",
        name: "ticking",
        help: Help { what: "The model said tick.", why: "", fix: "It says tock.", source: "" },
        ..RuleInfo::BASE
    },
    cover: |format| if format.name == "otter" { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for &entry in &session.live {
        let doc = json::parse(session.source, session.entry(entry).span)?;
        let says = doc.as_ref().and_then(Doc::root).and_then(|root| root.get("says"));
        if let Some(says) = says.filter(|says| says.is("tick")) {
            let fix = Fix::safe(vec![Op::Replace { at: says.span(), with: b"\"tock\"".to_vec() }]);
            let found = about(&RULE, session, entry, Severity::Warning, "it ticks".to_string());
            out.push(Finding { fix, ..found });
        }
    }
    Ok(())
}
