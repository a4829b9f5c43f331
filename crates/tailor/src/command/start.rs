//! `tailor` alone: what to do next.

use crate::status::Status;
use crate::terminal::plain;
use keeper::known_roots;

const NEXT: &str = "\
Next:
  tailor scan            says what is wrong with them; it only reads
  tailor fix --dry-run   says what mending would change
  tailor fix             mends what is safe; `tailor undo PATH` puts it back
  tailor watch           looks after them for as long as it runs
  tailor help            all commands and options";

pub(crate) fn run() -> Status {
    let roots = known_roots();
    if roots.is_empty() {
        eprintln!("No sessions of a known agent are here. Name a file or a folder behind a command.");
    } else {
        eprintln!("Sessions are here:");
        for root in roots {
            eprintln!("  {}", plain(&root.to_string_lossy()));
        }
    }
    eprintln!("{NEXT}");
    Status::Error
}
