//! `tailor export`: a session from a database as lines of JSON, as it is stored.

use super::failed;
use crate::args::ExportArgs;
use crate::status::ExitStatus;

#[cfg(not(feature = "stores"))]
pub(crate) fn run(_: &ExportArgs) -> ExitStatus {
    failed(&crate::value::not_built_in("stores"))
}

#[cfg(feature = "stores")]
pub(crate) fn run(asked: &ExportArgs) -> ExitStatus {
    use super::output_closed;
    use crate::amount::plural;
    use crate::say::eprint_message;
    use crate::sessions::describe_error;
    use keeper::Stop;
    use std::io;

    /// How many rows that could not be read are named.
    const NAMED: usize = 10;

    let path = asked.path.display();
    let export = match keeper::export(&asked.path) {
        Ok(Some(export)) => export,
        Ok(None) => {
            return failed(&format!(
                "{path}: could not export it: it is no session in a database that Tailor reads (tailor scan FILE lists \
                 those in a database)"
            ));
        }
        Err(Stop::Failed(error)) => return failed(&describe_error(&asked.path, &error)),
        Err(reason) => return failed(&format!("{path}: could not export it: {reason}")),
    };
    if let Err(error) = export.write(&mut io::stdout().lock()) {
        return output_closed("standard output", &error);
    }
    if let Some(remark) = &export.remark {
        eprint_message(&format!("{path}: {remark}"));
    }
    if export.lost.is_empty() {
        return ExitStatus::Clean;
    }
    let lost = plural(export.lost.len() as u64, "row");
    eprint_message(&format!("{path}: {lost} could not be read as the agent would have it:"));
    export.lost.iter().take(NAMED).for_each(|why| eprint_message(&format!("  {why}")));
    ExitStatus::Findings
}
