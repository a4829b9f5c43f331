//! `tailor forget`: removes a text that was cut from the vault for good.

use super::{CommandResult, failed};
use crate::amount::plural;
use crate::args::ForgetArgs;
use crate::say::{eprint_message, print_json};
use crate::status::ExitStatus;
use keeper::Verdicts;
use serde::Serialize;

/// One line of `--json`.
#[derive(Serialize)]
struct ForgetLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text_id: &'a str,
    /// From how many runs it was removed; 0 if it was forgotten before.
    runs: u64,
}

pub(crate) fn run(forget: &ForgetArgs) -> CommandResult {
    let vault = forget.config.load().and_then(|config| forget.vault.open(&config))?;
    let mut status = ExitStatus::Clean;
    // The index holds titles of sessions, so it is deleted as well. The next look creates a new one.
    if let Some(Err(cause)) = Verdicts::default_folder().map(|folder| Verdicts::forget(&folder)) {
        status = failed(&format!("could not remove the index of verdicts: {cause}"));
    }
    for id in &forget.ids {
        match vault.forget(id) {
            Ok(done) if forget.json.is_json() => {
                status = status.max(print_json(&ForgetLine {
                    kind: "forgotten",
                    text_id: &done.id,
                    runs: done.runs,
                }));
            }
            Ok(done) if done.runs == 0 => println!("{id}: already forgotten"),
            Ok(done) => {
                println!("{id}: removed from {}; undo cannot put it back", plural(done.runs, "run"));
                eprint_message(&format!(
                    "if --spill wrote plain files, delete {}.txt there too",
                    done.id.get(..12).unwrap_or(id)
                ));
            }
            Err(error) => status = status.max(failed(&error)),
        }
    }
    Ok(status)
}
