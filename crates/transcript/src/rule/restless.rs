//! Z1, for tests alone: what the model said is never right, so that the repair would not come to an end.

use super::base::{Cover, Found, Help, Rule, RuleInfo, about};
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::json::{self, Doc};
use spans::source::Fault;

/// Each is put in the place of the other.
const TEXTS: [&str; 2] = ["tick", "tock"];

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "Z1",
        name: "restless",
        help: Help { what: "The model said tick, or tock.", why: "", fix: "It says the other.", source: "" },
        ..RuleInfo::BASE
    },
    cover: |format| if format.name() == "otter" { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
    for &entry in &session.live {
        if session.entry(entry).kind != Kind::Message(Role::Assistant) {
            continue;
        }
        let doc = json::parse(session.source, session.entry(entry).span)?;
        let Some(said) = doc.as_ref().and_then(Doc::root).and_then(|root| root.get("says")) else {
            continue;
        };
        let Some(now) = TEXTS.iter().position(|text| said.is(text)) else { continue };
        let with = alloc::format!("\"{}\"", TEXTS[1 - now]).into_bytes();
        let fix = Fix::safe(vec![Op::Replace { at: said.span(), with }]);
        let message = TEXTS[now].to_string();
        out.push(Finding { fix, ..about(&RULE, session, entry, Severity::Warning, message) });
    }
    Ok(())
}
