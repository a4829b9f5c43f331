//! `tailor` alone: what to do next.

use crate::status::Status;
use crate::terminal::plain;
use keeper::known_roots;

const NEXT: &str = "\
Next:
  tailor scan            shows what is wrong with them; it only reads
  tailor fix --dry-run   shows what a repair would change
  tailor fix             repairs what is safe; `tailor undo PATH` restores it
  tailor watch           keeps repairing them while they grow
  tailor help            all commands and options";

pub(crate) fn run() -> Status {
    let roots = known_roots();
    if roots.is_empty() {
        eprintln!("No agent sessions found. Pass a file or folder: tailor scan PATH");
    } else {
        eprintln!("Sessions found in:");
        for root in roots {
            eprintln!("  {}", plain(&root.to_string_lossy()));
        }
    }
    eprintln!("{NEXT}");
    Status::Error
}
