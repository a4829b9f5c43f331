//! Commands to propose for a session: the one that repairs its findings and nothing else, the one that resumes it, and
//! the one that undoes a change.

use crate::place::shown_word;
use crate::terminal::shell_word;
use std::path::Path;
use transcript::Finding;
use transcript::finding::{Guard, Safety};

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
    let (mut safe, mut guarded, mut blamed) = (Vec::new(), Vec::new(), false);
    for finding in findings {
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
    if !safe.is_empty() {
        return Some(format!("tailor fix --select {} {path}", safe.join(",")));
    }
    let codes = guarded.join(",");
    let error =
        if blamed && !error.is_empty() { format!("--error {} ", shell_word(error)) } else { String::new() };
    (!guarded.is_empty()).then(|| format!("tailor fix --select {codes} --allow {codes} {error}{path}"))
}
