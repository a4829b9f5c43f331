//! Commands to propose for a session: the one that repairs its findings and nothing else, the one that resumes it, and
//! the one that undoes a change.

use crate::place::shown_word;
use crate::terminal::shell_word;
use std::path::Path;
use transcript::Finding;
use transcript::finding::{Guard, Held, Safety, Severity, Worse};
use transcript::rule::Group;

/// The command that undoes the newest change.
pub(crate) fn undo(path: &Path) -> String {
    format!("Undo: tailor undo {}", shown_word(path))
}

/// The advice to resume the session.
pub(crate) fn resume(command: &str) -> String {
    format!("Resume: {command}")
}

/// The command that repairs these findings; `None` if none has a repair. `error` is the API's error, if the session has
/// not recorded it.
pub(crate) fn command<'f>(
    findings: impl IntoIterator<Item = &'f Finding>,
    path: &Path,
    error: &str,
) -> Option<String> {
    let (mut safe, mut guarded) = (Vec::new(), Vec::new());
    let (mut blamed, mut joins) = (false, false);
    for finding in findings {
        joins |= finding.fix.safety == Safety::Safe && finding.hides_messages();
        blamed |= finding.fix.safety == Safety::Guarded(Guard::Blamed);
        let codes = match finding.fix.safety {
            Safety::Safe => &mut safe,
            Safety::Guarded(_) => &mut guarded,
            _ => continue,
        };
        if !codes.contains(&finding.rule.code()) {
            codes.push(finding.rule.code());
        }
    }
    let path = shown_word(path);
    // What comes back may need repairs of its own.
    if joins {
        return Some(format!("tailor fix {path}"));
    }
    if !safe.is_empty() {
        return Some(format!("tailor fix --select {} {path}", safe.join(",")));
    }
    let codes = guarded.join(",");
    let error =
        if blamed && !error.is_empty() { format!("--error {} ", shell_word(error)) } else { String::new() };
    (!guarded.is_empty()).then(|| format!("tailor fix --select {codes} --allow {codes} {error}{path}"))
}

/// How many bytes are history that no agent loads any more, and that `fix --only dead-weight` takes out.
pub(crate) fn dead_weight(findings: &[Finding]) -> u64 {
    let may_go = |finding: &&Finding| {
        finding.fix.safety == Safety::Guarded(Guard::History)
            && Group::DeadWeight.codes().any(|code| code == finding.rule.code())
    };
    findings.iter().filter(may_go).filter_map(|finding| finding.saves_bytes).sum()
}

/// Less of it is not worth a line.
pub(crate) const DEAD_WEIGHT_MIN: u64 = 1_000_000;

/// The command that repairs one error; `None` if none does.
pub(crate) fn next(finding: &Finding, path: &Path) -> Option<String> {
    let code = finding.rule.code();
    let option = match finding.fix.safety {
        Safety::Safe | Safety::Held(Held::NextRun) => String::new(),
        Safety::Guarded(_) => format!("--allow {code} "),
        Safety::Held(Held::Worse(Worse::NewFindings(news))) if news.curable => {
            format!("--allow {code},{} ", news.codes)
        }
        // In case no agent is there any more.
        Safety::Held(Held::NewestTurn) if finding.severity == Severity::Error => "--settle 0 ".to_string(),
        Safety::Held(held) => format!("{} ", held.option()?),
        Safety::None => return None,
    };
    Some(format!("tailor fix {option}{}", shown_word(path)))
}
