//! What the L rules share: how far something exceeds a limit given for the run. These limits belong to a check, so
//! there is no fix.

use crate::model::finding::Severity;
use crate::session::Session;
use alloc::format;
use alloc::string::String;

/// The reason for these rules.
pub(super) const WHY: &str = "A limit that was asked for is exceeded. It belongs to the check and not to the fix \
                              policy: nothing is cut because of it.";
/// Their source.
pub(super) const SOURCE: &str = "budget gates of ccboard #40; a tolerance band as in mergeCraft #571";

/// The severity and the message for a measure; `None` if there is no limit, or it is not exceeded. Within the tolerance
/// it is a note; above, the check fails.
pub(super) fn over(
    session: &Session<'_>,
    limit: u64,
    measure: u64,
    what: &str,
    unit: &str,
) -> Option<(Severity, String)> {
    if limit == 0 || measure <= limit {
        return None;
    }
    let percent = session.policy.budget.tolerance_percent;
    let within = (measure - limit).saturating_mul(100) <= limit.saturating_mul(percent);
    let (severity, band) = if within {
        (Severity::Note, format!(", within the tolerance of {percent} %"))
    } else {
        (Severity::Error, String::new())
    };
    Some((severity, format!("{what} {measure} {unit} (limit {limit}{band})")))
}
