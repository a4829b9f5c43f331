//! Healthy sessions, damaged and mended: the providers take what comes out, and nothing that a person said is lost.

use super::damage::{self, Damage};
use super::oracle::{Refusal, refusals};
use super::reader;
use super::story::Dialect;
use super::tried;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use transcript::{Policy, examine};

/// What rules about the content of messages are for; those come with another issue.
const CONTENT: [&str; 3] = ["M1", "M2", "M3"];

fn dialect(format: &str) -> Option<Dialect> {
    match format {
        "pi" => Some(Dialect::Pi),
        "claude-code" => Some(Dialect::ClaudeCode),
        "openai-chat" => Some(Dialect::OpenAiChat),
        "anthropic" => Some(Dialect::Anthropic),
        _ => None,
    }
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let mut inside: Vec<PathBuf> = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    inside
}

/// Who calls and who answers: one misplaced line is told as several of these.
const PAIRING: [&str; 8] = ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"];

/// Refusals that no finding announces.
fn unannounced(dialect: Dialect, bytes: &[u8], policy: &Policy) -> Vec<Refusal> {
    let found = examine(&bytes, policy).unwrap();
    let codes: BTreeSet<&str> = found.findings.iter().map(|finding| finding.rule.code()).collect();
    let mut refusals = refusals(dialect, bytes);
    let said = |class: &str| {
        let paired = PAIRING.contains(&class) && codes.iter().any(|code| PAIRING.contains(code));
        paired || codes.contains(class)
    };
    refusals.retain(|refusal| !said(refusal.class) && !CONTENT.contains(&refusal.class));
    refusals
}

#[test]
fn what_a_fixture_becomes_is_accepted_or_said_not_to_be() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut wrong = Vec::new();
    for format in folders(&fixtures) {
        let Some(dialect) = dialect(format.file_name().unwrap().to_str().unwrap()) else { continue };
        for case in folders(&format) {
            let bytes = fs::read(case.join("out.jsonl")).unwrap();
            let left = unannounced(dialect, &bytes, &Policy::default());
            wrong.extend(left.iter().map(|refusal| format!("{}: {refusal:?}", case.display())));
        }
    }
    assert!(wrong.is_empty(), "{} would be refused:\n{}", wrong.len(), wrong.join("\n"));
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in folders(folder) {
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
}

/// Before mending each refusal has its finding, and afterwards there is none.
#[test]
fn real_transcripts_are_accepted_or_said_not_to_be() {
    let Some(corpus) = std::env::var_os("TAILOR_CORPUS") else {
        eprintln!("SKIPPED: TAILOR_CORPUS names no folder of transcripts");
        return;
    };
    let (mut files, mut wrong, mut known) = (Vec::new(), Vec::new(), 0);
    gather(Path::new(&corpus), &mut files);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let format = examine(&bytes.as_slice(), &Policy::default()).unwrap().facts.format;
        let Some(dialect) = format.and_then(|format| dialect(format.name())) else { continue };
        known += 1;
        let left = unannounced(dialect, &bytes, &Policy::default());
        wrong.extend(left.iter().map(|refusal| format!("{}: {refusal:?}", path.display())));
    }
    eprintln!("{known} transcripts of known formats");
    assert!(wrong.is_empty(), "{} would be refused:\n{}", wrong.len(), wrong.join("\n"));
}
