//! The command that repairs what was found in a session, and nothing else.

use crate::place::shown_word;
use std::path::Path;
use transcript::Finding;
use transcript::finding::Safety;

/// The command; `None` if Tailor repairs none of this.
pub(crate) fn command<'f>(findings: impl IntoIterator<Item = &'f Finding>, path: &Path) -> Option<String> {
    let (mut safe, mut guarded) = (Vec::new(), Vec::new());
    for finding in findings {
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
    (!guarded.is_empty()).then(|| format!("tailor fix --select {codes} --allow {codes} {path}"))
}
