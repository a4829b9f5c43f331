//! `tailor forget`: removes a text that was cut from the vault for good.

use super::{CommandResult, failed};
use crate::amount::plural;
use crate::args::ForgetArgs;
use crate::say::{eprint_message, print_json};
use crate::status::ExitStatus;
use keeper::{Archive, Keeper, Vault, Verdicts};
use serde::Serialize;
use std::io::Read;
use transcript::policy::OwnSecret;
use transcript::secret::SecretByHash;

/// Shorter texts are in too many sessions by chance.
const KEPT_BYTES_MIN: usize = 8;

/// One line of `--json`.
#[derive(Serialize)]
struct ForgetLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text_id: &'a str,
    /// From how many runs it was removed; 0 if it was forgotten before.
    runs: u64,
    /// In how many kept generations it was blanked.
    generations: u64,
}

pub(crate) fn run(forget: &ForgetArgs) -> CommandResult {
    let config = forget.config.load()?;
    let vault = forget.vault.open(&config)?;
    let mut keeper = Keeper::new(Archive::new(config.archive()?), None);
    let mut status = ExitStatus::Clean;
    // The index holds titles of sessions, so it is deleted as well. The next look creates a new one.
    if !forget.dry_run
        && let Some(Err(cause)) = Verdicts::default_folder().map(|folder| Verdicts::forget(&folder))
    {
        status = failed(&format!("could not remove the index of verdicts: {cause}"));
    }
    let own = &config.policies().all().secrets.clone();
    for hash in &forget.secret {
        status = status.max(forget_secret(forget, &vault, &mut keeper, hash, own));
    }
    for id in &forget.ids {
        // First: the vault alone knows what to look for.
        let generations = forget_kept(&mut keeper, &vault, id)?;
        match vault.forget(id) {
            Ok(done) if forget.json.is_json() => {
                status = status.max(print_json(&ForgetLine {
                    kind: "forgotten",
                    text_id: &done.id,
                    runs: done.runs,
                    generations,
                }));
            }
            Ok(done) if done.runs == 0 => println!("{id}: already forgotten"),
            Ok(done) => {
                let kept = match generations {
                    0 => String::new(),
                    _ => format!(", blanked in {}", plural(generations, "kept generation")),
                };
                println!("{id}: removed from {}{kept}; undo cannot put it back", plural(done.runs, "run"));
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

/// Blanks a text in what is kept of sessions. Returns in how many generations it was.
fn forget_kept(keeper: &mut Keeper, vault: &Vault, id: &str) -> Result<u64, keeper::Error> {
    let mut text = Vec::new();
    let is_read = vault.text(id).is_ok_and(|mut kept| kept.read_to_end(&mut text).is_ok());
    let is_known = is_read && text.len() >= KEPT_BYTES_MIN;
    if is_known { keeper.forget(&|_| vec![text.clone()], false) } else { Ok(0) }
}

/// One line of `--json` about a secret.
#[derive(Serialize)]
struct SecretLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    secret_hash: &'a str,
    /// How many runs held it.
    runs: u64,
    /// In how many kept generations it stood.
    generations: u64,
}

fn forget_secret(
    forget: &ForgetArgs,
    vault: &Vault,
    keeper: &mut Keeper,
    hash: &str,
    own: &[OwnSecret],
) -> ExitStatus {
    let (is_dry, secret) = (forget.dry_run, SecretByHash::new(hash, own));
    // What one of them cannot read does not keep it in the other.
    let runs = vault.forget_secret(hash, own, is_dry);
    let generations = keeper.forget(&|kept| secret.texts_in(kept), is_dry);
    let (runs, generations) = match (runs, generations) {
        (Ok(runs), Ok(generations)) => (runs, generations),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => return failed(&error),
        (Err(error), Err(other)) => return failed(&error).max(failed(&other)),
    };
    if forget.json.is_json() {
        return print_json(&SecretLine { kind: "secret-forgotten", secret_hash: hash, runs, generations });
    }
    let held = [(runs, "run"), (generations, "kept generation")];
    let held: Vec<_> =
        held.iter().filter(|(count, _)| *count > 0).map(|(count, of)| plural(*count, of)).collect();
    let held = held.join(" and ");
    match (held.is_empty(), is_dry) {
        (true, _) => println!("{hash}: in no run and in nothing that is kept"),
        (false, true) => println!("{hash}: in {held}"),
        (false, false) => {
            println!("{hash}: removed from {held}; undo cannot put back what held it");
            eprint_message(
                "if --spill or --copy-to wrote files, look for it there with tailor scan --only secrets",
            );
        }
    }
    ExitStatus::Clean
}
