//! Not a rule: reports entries that are in the file but not loaded, with one finding per file.
//!
//! Nothing is dead weight that a repair could bring back: as long as a link of the session is broken, all of it stays.

use super::base::{FindingSink, Rule, about};
use super::{dangling_parent, lost_turns};
use crate::model::entry::Kind;
use crate::model::finding::{Finding, Fix, Guard, Held, Op, Severity};
use crate::session::Session;
use alloc::string::ToString;
use alloc::vec::Vec;
use hashbrown::HashSet;
use spans::source::Fault;

/// Dead weight from this size on is worth a warning.
const WARNING_BYTES: u64 = 10 << 20;

/// Reports those of these entries that may be removed, as one finding; nothing if there are none.
pub(super) fn report(
    rule: &'static Rule,
    session: &Session<'_>,
    entries: impl Iterator<Item = u32>,
    message: &str,
    out: &mut FindingSink<'_>,
) -> Result<(), Fault> {
    let entries: Vec<u32> = entries.collect();
    let Some(&first) = entries.first() else { return Ok(()) };
    let targets: HashSet<u32> =
        session.live.iter().chain(&session.leaf).filter_map(|&entry| session.target(entry)).collect();
    let may_go = |entry: &u32| !targets.contains(entry) && may_go(session, *entry);
    let going: Vec<u32> = entries.into_iter().filter(may_go).collect();
    let bytes: u64 = going.iter().map(|&entry| session.transcript.own_bytes(entry) + 1).sum();
    let severity = if bytes >= WARNING_BYTES { Severity::Warning } else { Severity::Note };
    let ops: Vec<Op> = going.into_iter().map(Op::DropEntry).collect();
    let fix = match ops.is_empty() {
        true => Fix::NONE,
        false if is_in_doubt(session)? => Fix::held(Held::BrokenLinks),
        false => Fix::guarded(Guard::History, ops),
    };
    let saves_bytes = Some(if fix.ops.is_empty() { 0 } else { bytes });
    let told = about(rule, session, first, severity, message.to_string());
    out.push(Finding { saves_bytes, fix, ..told });
    Ok(())
}

/// Whether a repair could still change which entries are loaded: a parent is not in the file, parents go in a circle, the
/// record that names the newest entry names none, or one on another branch than the last row, which other readers take,
/// records stand in lines that nobody can read yet, or turns may be on no branch by accident.
pub(super) fn is_in_doubt(session: &Session<'_>) -> Result<bool, Fault> {
    if !session.format.shape.has_parents() {
        return Ok(false);
    }
    let entries = 0..session.transcript.entries.len() as u32;
    let broken = dangling_parent::all_dangling(session).next().is_some() || !session.circles().is_empty();
    let newest = entries.rev().find(|&entry| session.kind(entry) == Kind::Leaf);
    let unnamed = newest.is_some_and(|newest| session.target(newest).is_none());
    let elsewhere = session.ends.tip != session.ends.last;
    let hidden = || Ok(session.damaged_lines()?.iter().any(|line| line.records > 0 || line.user));
    if broken || unnamed || elsewhere || lost_turns::are_possible(session) { Ok(true) } else { hidden() }
}

/// Whether nothing needs an entry: neither another entry, nor the agent, which may append children to it.
fn may_go(session: &Session<'_>, entry: u32) -> bool {
    !session.is_newest(entry)
        && !session.is_pending(entry)
        && !session.shares_its_id(entry)
        && !session.is_labelled(entry)
}

#[cfg(test)]
mod tests {
    use crate::mend;
    use crate::model::policy::Policy;
    use crate::plan::Rendered;
    use crate::rule::Group;
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use spans::source::Span;

    /// Six turns in a row; nothing of them is dead weight.
    fn rows(claude: bool) -> Vec<String> {
        let row = |n: u32| {
            let (before, role) = (n.wrapping_sub(1), ["user", "assistant"][n as usize % 2]);
            let (id, parent) =
                (format!("\"e{n}\""), if n == 0 { "null".to_string() } else { format!("\"e{before}\"") });
            // Rows are far apart, so that no agent goes on at the row before a missing one.
            let time = format!("\"timestamp\":\"2026-07-01T10:{n:02}:00.000Z\"");
            if claude {
                let end = if role == "user" {
                    String::new()
                } else {
                    format!(",\"id\":\"m{n}\",\"stop_reason\":\"end_turn\"")
                };
                format!(
                    "{{\"type\":\"{role}\",\"uuid\":{id},\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"s\",{time},\"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"t{n}\"}}]{end}}}}}"
                )
            } else {
                let end = if role == "user" { "" } else { ",\"stopReason\":\"stop\"" };
                format!(
                    "{{\"type\":\"message\",\"id\":{id},\"parentId\":{parent},{time},\"message\":{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":\"t{n}\"}}]{end}}}}}"
                )
            }
        };
        let head =
            (!claude).then(|| "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}".to_string());
        head.into_iter().chain((0..12).map(row)).collect()
    }

    fn lines<'r>(rows: impl Iterator<Item = &'r String>) -> String {
        rows.flat_map(|row| [row.as_str(), "\n"]).collect()
    }

    fn after(text: &str, policy: &Policy) -> String {
        let source = text.as_bytes();
        let Ok(repair) = mend(&source, policy).unwrap().repair else { return text.to_string() };
        let rendered = Rendered::new(&source, &repair.plan);
        let all = Span::new(0, repair.plan.length_after());
        String::from_utf8(spans::source::read_span(&rendered, all).unwrap()).unwrap()
    }

    #[test]
    fn where_a_row_is_lost_no_other_row_goes() {
        let codes = || Group::DeadWeight.codes().map(ToString::to_string);
        let mut alone = Policy::default();
        alone.selection.select = codes().collect();
        alone.selection.allow = codes().collect();
        let mut group = alone.clone();
        group.selection.select.extend(Group::DeadWeight.first().map(ToString::to_string));
        for claude in [false, true] {
            let rows = rows(claude);
            for lost in 0..rows.len() {
                let left: Vec<&String> =
                    rows.iter().enumerate().filter(|(n, _)| *n != lost).map(|(_, row)| row).collect();
                let text = lines(left.into_iter());
                assert_eq!(after(&text, &alone), text, "without {}", rows[lost]);
                let mended = after(&text, &group);
                for n in (0..12).filter(|n| !rows[lost].contains(&format!("\"t{n}\""))) {
                    assert!(mended.contains(&format!("\"t{n}\"")), "t{n} is gone, {lost}:\n{mended}");
                }
            }
        }
    }

    #[test]
    fn abandoned_branches_go_only_from_a_session_whose_links_are_whole() {
        let mut policy = Policy::default();
        policy.selection.select = ["S18".to_string()].into();
        policy.selection.allow = ["S18".to_string()].into();
        let mut rows = rows(true);
        let beside = rows[10].replace("\"e10\"", "\"left\"").replace("t10", "left");
        rows.insert(11, beside.clone());
        assert!(!after(&lines(rows.iter()), &policy).contains("left"));
        rows.remove(5);
        assert!(after(&lines(rows.iter()), &policy).contains("left"));
    }
}
