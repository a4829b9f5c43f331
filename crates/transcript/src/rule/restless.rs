//! Z1, for tests alone: what the model said is never right, so that the repair would not come to an end.

use super::{Cover, Help, Rule, about};
use crate::entry::{Kind, Role};
use crate::finding::{Finding, Fix, Op, Severity};
use crate::format::Format;
use crate::found::Found;
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::json::{self, Doc};
use spans::source::Fault;

pub(super) struct Restless;

/// Each is put in the place of the other.
const TEXTS: [&str; 2] = ["tick", "tock"];

impl Rule for Restless {
    fn code(&self) -> &'static str {
        "Z1"
    }

    fn name(&self) -> &'static str {
        "restless"
    }

    fn help(&self) -> Help {
        Help { what: "The model said tick, or tock.", why: "", fix: "It says the other.", source: "" }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.name() == "otter" { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Found<'_>) -> Result<(), Fault> {
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
            out.push(Finding { fix, ..about(&Restless, session, entry, Severity::Warning, message) });
        }
        Ok(())
    }
}
