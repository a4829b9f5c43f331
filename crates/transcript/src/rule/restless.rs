//! Z1, for tests only: it objects to any assistant message, so that a repair never ends.

use super::base::{Cover, FindingSink, Help, Rule, RuleInfo, about};
use crate::model::entry::{Kind, Role};
use crate::model::finding::{Finding, Fix, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec;
use spans::json::{self, Doc};
use spans::source::Fault;

/// Each replaces the other.
const TEXTS: [&str; 2] = ["tick", "tock"];

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "Z1",
        name: "restless",
        help: Help { what: "The model said tick, or tock.", why: "", fix: "It says the other.", source: "" },
        ..RuleInfo::BASE
    },
    cover: |format| if format.name == "otter" { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    for &entry in &session.live {
        if session.kind(entry) != Kind::Message(Role::Assistant) {
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

mod tests {
    use super::RULE;
    use crate::format::FORMATS;
    use crate::judge::{Judge, Judgement};
    use crate::model::policy::Policy;
    use crate::model::situation::Situation;
    use crate::rule::{Cover, Feature, find};
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    /// A rule is a file and a line: waking the judge of appends, and being in a table of all rules, needs no more.
    #[test]
    fn a_rule_that_says_nothing_of_appends_is_woken_by_each() {
        let text = "{\"otter\":1,\"session\":\"s1\"}\n{\"who\":\"me\",\"says\":\"go\"}\n".to_string();
        let policy = Arc::new(Policy::default());
        let (mut judge, found) = Judge::new(&text.as_bytes(), &policy, &Situation::default()).unwrap();
        assert!(judge.is_of_use() && found.findings.is_empty());
        let more = text + "{\"who\":\"model\",\"says\":\"tick\"}\n";
        assert_eq!(judge.append(&more.as_bytes()), Ok(Judgement::Look(Feature::Record)));
        let (mended, ..) = Judge::mend(&more.as_bytes(), &policy, &Situation::default()).unwrap();
        let codes: Vec<_> = mended.before.findings.iter().map(|found| found.rule.code()).collect();
        assert_eq!(codes, [RULE.code()]);
        let rule = find("restless").unwrap();
        let covered = FORMATS.iter().filter(|format| rule.cover(format) == Cover::Fixed);
        assert_eq!(covered.map(|format| format.name).collect::<Vec<_>>(), ["otter"]);
    }
}
