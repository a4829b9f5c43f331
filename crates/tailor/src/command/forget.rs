//! `tailor forget`: a text that was cut, removed from the vault for good.

use super::failed;
use crate::amount::plural;
use crate::args::Forget;
use crate::say::eprint_message;
use crate::status::Status;
use keeper::Verdicts;

pub(crate) fn run(forget: &Forget) -> Status {
    let vault = match forget.config.load().and_then(|config| forget.vault.open(&config)) {
        Ok(vault) => vault,
        Err(error) => return failed(&error),
    };
    let mut status = Status::Clean;
    // Titles of sessions are in there. It begins anew with the next look.
    if let Some(Err(cause)) = Verdicts::default_folder().map(|folder| Verdicts::forget(&folder)) {
        status = failed(&format!("could not remove the index of verdicts: {cause}"));
    }
    for id in &forget.ids {
        match vault.forget(id) {
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
    status
}
