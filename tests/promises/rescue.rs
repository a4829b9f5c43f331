//! Healthy sessions, damaged and repaired: the providers accept the result, and no user text is lost.

use super::damage;
use super::folder::real_files;
use super::judge::healthy;
use super::oracle::{RequestRefusal, UNFINISHED, refusals};
use super::reader::{leaf, rows};
use super::requests::refusals_of;
use super::spell::spell;
use super::stories;
use super::story::{DIALECTS, Dialect};
use super::{Case, config, is_no_worse, loss, lossy, read_all, repaired, tried};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use transcript::finding::{Held, Safety, Severity};
use transcript::plan::Rendered;
use transcript::policy::{Selection, SignedThinking};
use transcript::scan::detect;
use transcript::{Awaits, Finding, Piece, Plan, Policy, examine};

/// The folders in a folder, if it exists.
pub(crate) fn folders(of: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(of).into_iter().flatten();
    let mut inside: Vec<PathBuf> = inside.map(|entry| entry.unwrap().path()).collect();
    inside.sort();
    inside
}

/// Pairing rules: a misplaced line is reported as several of these.
const PAIRING: [&str; 8] = ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"];

/// Refusals without a finding.
pub(crate) fn unannounced<'a>(
    mut refusals: Vec<RequestRefusal>,
    bytes: &[u8],
    given: impl Into<transcript::Case<'a>>,
) -> Vec<RequestRefusal> {
    let found = examine(&bytes, given).unwrap();
    let codes: BTreeSet<&str> = found.findings.iter().map(|finding| finding.rule.code()).collect();
    let said = |class: &str| {
        let paired = PAIRING.contains(&class) && codes.iter().any(|code| PAIRING.contains(code));
        // An empty message has an empty text, reasoning is thinking, a call without an id has no result, and in a data
        // set missing arguments are reported as not being an object.
        let other = [("M2", "M1"), ("M1", "M2"), ("M3", "M5"), ("P1", "P11"), ("P9", "D1")];
        let alike = other.iter().any(|(said, found)| *said == class && codes.contains(found));
        // Different codes describe the bytes that make a line unreadable.
        let unread = class == "B9" && codes.iter().any(|code| code.starts_with('B'));
        // The other half of a pair may be after another object, on a line that is not repaired yet.
        let glued = |finding: &Finding| finding.rule.code() == "B2" && waits(finding);
        let hidden = PAIRING.contains(&class) && found.findings.iter().any(glued);
        paired || alike || unread || hidden || class == UNFINISHED || codes.contains(class)
    };
    refusals.retain(|refusal| !said(refusal.class));
    refusals
}

#[test]
fn what_a_fixture_becomes_is_accepted_or_said_not_to_be() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut files = Vec::new();
    for format in folders(&fixtures).into_iter().filter(|format| format.is_dir()) {
        let name = format.file_name().unwrap().to_str().unwrap().to_string();
        for case in folders(&format).into_iter().filter(|case| case.is_dir()) {
            let bytes =
                fs::read(case.join("out.jsonl")).or_else(|_| fs::read(case.join("in.jsonl"))).unwrap();
            files.push((name.clone(), case.display().to_string(), bytes));
        }
    }
    for told in stories::all() {
        let allow = told.arguments.windows(2).filter(|pair| pair[0] == "--allow").map(|pair| pair[1].clone());
        let selection = Selection { allow: allow.collect(), ..Selection::default() };
        let policy = Policy { selection, ..Policy::default() };
        let after = repaired(&told.bytes, &policy).map_or(told.bytes, |(_, after, _)| after);
        files.push((told.format.to_string(), format!("story {}", told.story), after));
    }
    let mut wrong = Vec::new();
    for (format, name, bytes) in files {
        let Some(refusals) = refusals_of(&format, &bytes) else { continue };
        let left = unannounced(refusals, &bytes, &Policy::default());
        wrong.extend(left.iter().map(|refusal| format!("{format}: {name}: {refusal:?}")));
    }
    assert!(wrong.is_empty(), "{} would be refused:\n{}", wrong.len(), wrong.join("\n"));
}

/// Before the repair each refusal has a finding, and afterwards there is no refusal.
#[test]
fn real_transcripts_are_accepted_or_said_not_to_be() {
    let Some(files) = real_files() else { return };
    let (mut wrong, mut known) = (Vec::new(), 0);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let format = examine(&bytes.as_slice(), &Policy::default()).unwrap().facts.format;
        let Some(refusals) = format.and_then(|format| refusals_of(format.name, &bytes)) else { continue };
        known += 1;
        let left = unannounced(refusals, &bytes, &Policy::default());
        wrong.extend(left.iter().map(|refusal| format!("{}: {refusal:?}", path.display())));
    }
    eprintln!("{known} transcripts of known formats");
    assert!(wrong.is_empty(), "{} would be refused:\n{}", wrong.len(), wrong.join("\n"));
}

/// The policy of somebody who wants a session back: lines and ids may change, and thinking may be removed.
pub(crate) fn rescue_policy() -> Policy {
    let codes = transcript::rule::RULES.iter().map(|rule| rule.code());
    let wanted = |code: &&str| code.starts_with(['P', 'T', 'M']) || *code == "B5";
    let allow = codes.filter(wanted).map(str::to_string).collect();
    Policy {
        thinking: SignedThinking::Strip,
        result_chars_max: 2000,
        selection: Selection { allow, ..Selection::default() },
        ..Policy::default()
    }
}

/// A healthy session, which is one that is recognised, with up to five damages; and how many lines it had.
/// || A first user message alone, or an empty file, has no format, so nothing is promised for those.
fn damaged() -> impl Strategy<Value = (usize, Case)> {
    let told = (prop::sample::select(DIALECTS.to_vec()), healthy())
        .prop_map(|(dialect, story)| (dialect, spell(dialect, &story)))
        .prop_filter("recognised", |(_, lines)| is_recognised(&damage::befall(lines.clone(), &[])));
    (told, proptest::collection::vec(damage::known(), 1..6)).prop_map(|((dialect, lines), damages)| {
        let before = lines.len();
        let bytes = damage::befall(lines, &damages);
        (before, Case { dialect, damages, policy: rescue_policy(), hold_history: false, bytes })
    })
}

fn is_recognised(bytes: &[u8]) -> bool {
    detect(&bytes).unwrap().is_some()
}

/// The text before a plan, reconstructed from the text after it and what the plan has removed.
pub(crate) fn undone(before: &[u8], after: &[u8], plan: &Plan) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    for edit in plan.edits() {
        let kept = edit.at.start as usize - out.len();
        out.extend_from_slice(&after[at..at + kept]);
        at += kept + edit.with.iter().map(Piece::len).sum::<u64>() as usize;
        out.extend_from_slice(&before[edit.at.start as usize..edit.at.end as usize]);
    }
    out.extend_from_slice(&after[at..]);
    out
}

/// How a damaged session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RescueEnd {
    Accepted,
    /// Not accepted, and there is a finding.
    Announced,
    /// There is no plan, with a reason.
    NoPlan,
    /// So much is lost that the file is not recognised.
    Unknown,
}

/// How the session ends. If its newest turn waits for a tool, the conversation is continued first: until then nothing
/// is sent, and that turn is never changed.
pub(crate) fn end(case: &Case) -> Result<RescueEnd, TestCaseError> {
    let (mut end, after) = end_now(case)?;
    let found = || examine(&after.as_slice(), case.given()).unwrap();
    let unfinished = || refusals(case.dialect, &after).iter().any(|refusal| refusal.class == UNFINISHED);
    let waiting = || found().findings.iter().any(waits) || found().facts.awaits == Some(Awaits::Tool);
    if end == RescueEnd::Announced && (waiting() || unfinished()) {
        let bytes = goes_on(case.dialect, after);
        end = end_now(&Case { bytes, ..case.clone() })?.0;
    }
    Ok(end)
}

fn waits(finding: &Finding) -> bool {
    finding.fix.safety == Safety::Held(Held::NewestTurn)
}

/// The user no longer waits for the tool, and the model answers.
fn goes_on(dialect: Dialect, mut bytes: Vec<u8>) -> Vec<u8> {
    let mut parent = leaf(dialect, &rows(&bytes)).map_or(json!(null), Value::from);
    for (id, role) in [("0000f001", "user"), ("0000f002", "assistant")] {
        let content = json!([{ "type": "text", "text": "go on" }]);
        let said = json!({ "role": role, "content": content });
        let line = match dialect {
            Dialect::Pi | Dialect::PiFlat => json!({
                "type": "message", "id": id, "parentId": parent, "timestamp": "2026-07-02T10:00:00.000Z",
                "message": { "role": role, "content": content, "stopReason": "stop" },
            }),
            Dialect::ClaudeCode => json!({
                "parentUuid": parent, "isSidechain": false, "sessionId": "5e000000-0000-4000-8000-0000000000aa",
                "type": role, "message": said, "uuid": id, "timestamp": "2026-07-02T10:00:00.000Z",
            }),
            Dialect::OpenAiChat => json!({ "role": role, "content": "go on" }),
            Dialect::Anthropic => said,
        };
        bytes.extend_from_slice(line.to_string().as_bytes());
        bytes.push(b'\n');
        parent = json!(id);
    }
    bytes
}

/// How the session ends at once, and its text.
fn end_now(case: &Case) -> Result<(RescueEnd, Vec<u8>), TestCaseError> {
    let mended = tried(&case.bytes, case.given());
    if mended.before.facts.format.is_none() {
        return Ok((RescueEnd::Unknown, Vec::new()));
    }
    let Ok(repair) = mended.repair else { return Ok((RescueEnd::NoPlan, Vec::new())) };
    let after = read_all(&Rendered::new(&case.bytes.as_slice(), &repair.plan));
    prop_assert_eq!(undone(&case.bytes, &after, &repair.plan), case.bytes.clone());
    let again = tried(&after, case.given()).repair.map(|repair| repair.plan);
    prop_assert!(again.as_ref().is_ok_and(Plan::is_empty), "{:?}\n{}", again, lossy(&after));
    let lost = loss::difference(case.dialect, &case.bytes, &after, &case.policy);
    prop_assert!(lost.is_empty(), "{:#?}\n{}", lost, lossy(&after));
    is_no_worse(case)?;
    let refusals = refusals(case.dialect, &after);
    let mut unannounced = unannounced(refusals.clone(), &after, case.given());
    // Entries that an agent adds by itself do not end the wait for a tool; pairs are only checked once it is over.
    if examine(&after.as_slice(), case.given()).unwrap().facts.awaits == Some(Awaits::Tool) {
        unannounced.retain(|refusal| refusal.class != "P1");
    }
    prop_assert!(unannounced.is_empty(), "{:#?}\n{}", unannounced, lossy(&after));
    Ok((if refusals.is_empty() { RescueEnd::Accepted } else { RescueEnd::Announced }, after))
}

proptest! {
    #![proptest_config(config())]

    /// Damage is repaired so that the providers accept the session, or a finding says why they will not; no user text
    /// is lost, a second run changes nothing, and the plan knows every byte that it removed.
    #[test]
    fn damaged_sessions_are_rescued((_, case) in damaged()) {
        end(&case)?;
    }
}

/// Sessions of up to so many lines are counted together; those in the first two groups are hardly sessions.
const SIZES: [usize; 5] = [3, SMALL, 12, 24, usize::MAX];

/// The shortest of the real sessions in the corpus has 15 lines.
const SMALL: usize = 6;

/// At least 99 of 100 damaged sessions end accepted, and the others are refused or announced, with a reason. A file of
/// which too little is left to be recognised is refused; it counts as not accepted.
/// || Five damages may leave a line or two of sessions with up to six lines: of those, 93 of 100 are accepted with four
/// lines or more, and half with fewer. They have to keep all other promises. With `SHOW_REFUSED` in the environment,
/// each session that is not accepted is printed.
#[test]
fn nearly_all_damaged_sessions_end_accepted() {
    let mut runner = TestRunner::new(config());
    let (strategy, shown) = (damaged(), std::env::var_os("SHOW_REFUSED").is_some());
    let (mut ends, mut sizes) = (RescueEnds::new(), BTreeMap::<usize, RescueEnds>::new());
    let mut silent = Vec::new();
    for number in 0..runner.config().cases * 5 {
        let (lines, case) = strategy.new_tree(&mut runner).expect("most stories are recognised").current();
        let end = match end(&case) {
            Ok(end) => end,
            Err(why) => {
                let told = if shown { told(&case) } else { format!("{:?} {:?}", case.dialect, case.damages) };
                silent.push(format!("case {number}: {why}\n{told}"));
                continue;
            }
        };
        *ends.entry((case.dialect, end)).or_default() += 1;
        let size = SIZES.into_iter().find(|most| lines <= *most).unwrap_or_default();
        *sizes.entry(size).or_default().entry((case.dialect, end)).or_default() += 1;
        if end != RescueEnd::Accepted && shown {
            eprintln!("case {number} {end:?} of {lines} {}", told(&case));
        }
    }
    for (lines, ends) in &sizes {
        let (accepted, all) = accepted(ends);
        eprintln!("up to {lines} lines: {accepted} of {all} are accepted");
    }
    sizes.retain(|lines, _| *lines > SMALL);
    let (accepted, all) = sizes.values().map(accepted).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    eprintln!("{accepted} of {all} with more than {SMALL} lines are accepted; of all sizes: {ends:?}");
    assert!(silent.is_empty(), "{} are wrong:\n{}", silent.len(), silent.join("\n\n"));
    assert!(accepted * 100 >= all * 99, "{ends:?}");
}

/// How many sessions of each dialect ended in each way.
type RescueEnds = BTreeMap<(Dialect, RescueEnd), usize>;

/// How many sessions are accepted, and how many there are.
fn accepted(ends: &RescueEnds) -> (usize, usize) {
    let accepted = ends.iter().filter(|((_, end), _)| *end == RescueEnd::Accepted);
    (accepted.map(|(_, count)| count).sum(), ends.values().sum())
}

/// A case that is not accepted, with its findings and the result.
fn told(case: &Case) -> String {
    let mended = tried(&case.bytes, case.given());
    let head = format!("{:?} {:?}\n{}", case.dialect, case.damages, lossy(&case.bytes));
    let repair = match mended.repair {
        Ok(repair) => repair,
        Err(why) => return format!("{head}\nno plan: {why:?}"),
    };
    let after = read_all(&Rendered::new(&case.bytes.as_slice(), &repair.plan));
    let found = examine(&after.as_slice(), case.given()).unwrap().findings;
    let found = found.iter().map(|finding| (finding.rule, &finding.message, &finding.fix.safety));
    let refusals = refusals(case.dialect, &after);
    format!("{head}\nbecame\n{}\n{:?}\n{refusals:#?}", lossy(&after), found.collect::<Vec<_>>())
}

/// The same for a session that is too long to print.
pub(crate) fn shown_in_short(format: &str, case: &Case) -> String {
    let repair = match tried(&case.bytes, case.given()).repair {
        Ok(repair) => repair,
        Err(why) => return format!("no plan: {why:?}"),
    };
    let after = read_all(&Rendered::new(&case.bytes.as_slice(), &repair.plan));
    let found = examine(&after.as_slice(), case.given()).unwrap().findings;
    let found = found.iter().filter(|finding| finding.severity == Severity::Error);
    let found: Vec<_> =
        found.map(|finding| (finding.line, finding.rule, &finding.message, &finding.fix.safety)).collect();
    format!("{found:?}\n{:?}", refusals_of(format, &after))
}
