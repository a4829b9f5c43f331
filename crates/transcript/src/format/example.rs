//! The example of docs/formats.md, built into the tests: a format is one file and one line.

use super::FORMATS;
use super::base::{Format, Level};
use crate::examine::mend::{examine, mend};
use crate::model::policy::Policy;
use crate::plan::Rendered;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use spans::source::Source;

const PAGE: &str = include_str!("../../../../docs/formats.md");

/// What stands between these two lines of the page.
fn block(begin: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(begin).expect("the page has such a block");
    rest.split_once("```").expect("a block ends").0
}

/// What Otter writes, as the page shows it.
fn lines() -> &'static str {
    block("Say that *Otter* writes this:\n\n```json\n")
}

#[test]
fn the_file_of_the_page_is_the_one_that_is_built() {
    assert_eq!(block("### The file\n\n```rust\n"), include_str!("otter.rs"));
}

#[test]
fn its_lines_are_told_and_read() {
    let found = examine(&lines().as_bytes(), &Policy::default()).unwrap();
    assert_eq!(found.facts.format.map(Format::name), Some("otter"));
    assert_eq!((found.facts.calls, found.facts.results), (1, 1));
    assert_eq!(found.findings.len(), 0);
    let claims = FORMATS.iter().filter(|format| format.name() == "otter" && format.level() == Level::Archive);
    assert_eq!(claims.count(), 1);
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
