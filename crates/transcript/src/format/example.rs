//! The example of CONTRIBUTING.md, compiled into the tests: a format is one file and one line.

use super::FORMATS;
use super::base::Gate;
use crate::compact::{CompactRequest, Stay, Unable, compact};
use crate::examine::mend::{examine, mend};
use crate::judge::{Judge, Judgement};
use crate::model::policy::{Policy, Selection};
use crate::plan::Rendered;
use crate::rule::{Cover, find};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use spans::source::Source;

const PAGE: &str = include_str!("../../../../CONTRIBUTING.md");

/// A transcript of Otter, as the page shows it.
fn lines() -> &'static str {
    let (_, rest) = PAGE.split_once("*Otter* writes this:\n\n```json\n").expect("the page shows lines");
    rest.split_once("```").expect("a block ends").0
}

#[test]
fn its_lines_are_recognised_and_read() {
    let found = examine(&lines().as_bytes(), &Policy::default()).unwrap();
    assert_eq!(found.facts.format.map(|format| format.name), Some("otter"));
    assert_eq!((found.facts.calls, found.facts.results), (1, 1));
    assert_eq!(found.findings.len(), 0);
}

#[test]
fn the_tables_of_formats_and_of_rules_have_its_row_and_column() {
    let otter = FORMATS.iter().find(|format| format.name == "otter").unwrap();
    assert_eq!((otter.written_by, otter.level.name()), ("Otter", "archive"));
    let cover = |name| find(name).unwrap().cover(otter);
    assert_eq!(cover("call-without-result"), Cover::Fixed);
    assert_eq!(cover("off-branch"), Cover::Never);
    // Fields that the file does not set have careful defaults.
    assert_eq!(otter.gates, [Gate::Idle]);
    let request = CompactRequest { stay: Stay::Last(1), summary: None, message_chars_max: 0 };
    let compacted =
        compact(&crate::Reading::new(&lines().as_bytes()).unwrap(), &Policy::default(), &request).unwrap();
    assert!(matches!(compacted.repair, Err(Unable::NotWritten)));
}

#[test]
fn appends_to_it_are_judged() {
    // A rule made for tests alone asks for a look after each append; leave it out.
    let ignore = [find("restless").unwrap().code().to_string()].into();
    let policy = Policy { selection: Selection { ignore, ..Selection::default() }, ..Policy::default() };
    let policy = Arc::new(policy);
    let (mut judge, _) = Judge::new(&lines().as_bytes(), &policy, &crate::Situation::default()).unwrap();
    let fine = lines().to_string() + "{\"who\":\"model\",\"says\":\"One file.\"}\n";
    assert_eq!(judge.append(&fine.as_bytes()), Ok(Judgement::Same));
    assert_eq!(judge.facts().entries, 5);
    let lost = fine + "{\"who\":\"tool\",\"ref\":\"r9\",\"gives\":\"whose?\"}\n";
    assert!(matches!(judge.append(&lost.as_bytes()), Ok(Judgement::Look(_))));
}

#[test]
fn a_lost_result_is_put_in_as_it_spells_one() {
    let call = lines().lines().take(3).fold(String::new(), |text, line| text + line + "\n");
    let broken =
        format!("{call}{{\"who\":\"me\",\"says\":\"and?\"}}\n{{\"who\":\"model\",\"says\":\"So.\"}}\n");
    let plan = mend(&broken.as_bytes(), &Policy::default()).unwrap().repair.unwrap().plan;
    let source = broken.as_bytes();
    let rendered = Rendered::new(&source, &plan);
    let mut after = vec![0; rendered.len() as usize];
    assert_eq!(rendered.read(0, &mut after).unwrap(), after.len());
    let after = String::from_utf8(after).unwrap();
    let put_in = after.lines().nth(3).unwrap();
    assert!(put_in.starts_with(r#"{"who":"tool","ref":"r1","gives":"[tailor"#), "{after}");
    let again = mend(&after.as_bytes(), &Policy::default()).unwrap();
    assert!(again.before.findings.is_empty() && again.repair.unwrap().plan.is_empty(), "{after}");
}
