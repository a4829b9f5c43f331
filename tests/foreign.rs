//! Files of other programs are nobody's sessions: no format claims them. tests/foreign/lines.jsonl holds a few lines of each, made
//! up from the programs' documentation.

use crate::support::root;
use serde_json::Value;
use std::fs;
use transcript::{Policy, examine};

#[test]
fn a_format_claims_a_file_only_by_what_nobody_else_writes() {
    let table = fs::read_to_string(root().join("tests/foreign/lines.jsonl")).unwrap();
    let mut claimed = Vec::new();
    for row in table.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let lines: Vec<String> =
            row["lines"].as_array().unwrap().iter().map(|line| format!("{line}\n")).collect();
        // Each line might also be a file of its own.
        let files = [lines.concat()].into_iter().chain(lines);
        for file in files {
            if let Some(format) = examine(&file.as_bytes(), &Policy::default()).unwrap().facts.format {
                claimed.push(format!("{}: {} claims {file}", row["of"], format.name));
            }
        }
    }
    assert!(table.lines().count() >= 40);
    assert!(claimed.is_empty(), "{}", claimed.join("\n"));
}
