//! `tailor gc`: removes runs from the vault that are too old or too many.

use super::failed;
use crate::amount::{plural, size};
use crate::args::Gc;
use crate::say::eprint_message;
use crate::status::Status;
use keeper::Keep;

pub(crate) fn run(gc: &Gc) -> Status {
    let vault = match gc.config.load().and_then(|config| gc.vault.open(&config)) {
        Ok(vault) => vault,
        Err(error) => return failed(&error),
    };
    let freed = match vault.gc(Keep { age: gc.older_than, bytes: gc.max_bytes }, gc.dry_run) {
        Ok(freed) => freed,
        Err(error) => return failed(&error),
    };
    for error in &freed.errors {
        eprint_message(&format!("{error}; kept"));
    }
    let leftovers =
        if freed.leftovers > 0 { plural(freed.leftovers, "leftover") + ", " } else { String::new() };
    println!(
        "{} {}, {leftovers}{}; kept {}, {}",
        if gc.dry_run { "would remove" } else { "removed" },
        plural(freed.runs, "run"),
        size(freed.bytes),
        plural(freed.runs_kept, "run"),
        size(freed.bytes_kept)
    );
    if freed.errors.is_empty() { Status::Clean } else { Status::Error }
}
