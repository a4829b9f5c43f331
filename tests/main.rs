//! Black-box tests: the built program, its arguments, and files. What a module holds stands beside its name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod bad_input; // Files that are broken, huge, hostile or not ours: a clear outcome, and no byte lost.
mod cache; // The index of verdicts: what has not changed is not read again, and nobody can tell.
mod cells; // docs/rules.md: the table, and that each cell of it has a fixture that shows it.
mod checks; // `scan` in CI: shapes of results, limits, the baseline; the Action and the hooks of this repository.
mod corpus; // Promises, checked on all transcripts below $TAILOR_CORPUS.
mod cost; // What hostile sessions cost: in proportion to their length, counted in instructions.
mod disk; // A file system without room: nothing changes, and the message names the way out.
mod doctor; // A home with sessions of several agents: the list, ids, `resume`, `explain` without a file.
mod explain; // `tailor explain` of errors: what they are about, which lines, and what settles it.
mod fix; // `tailor fix`: what it changes, what it keeps, what it says.
mod fixtures; // The stories and everything in fixtures/: what is found, and what becomes of it.
mod floors; // Which way imports run.
mod folder; // The transcripts in a folder.
mod formats; // Which format a file has: one or none, and never the wrong one.
mod gate; // What agents say about being at work, and that `tailor fix` obeys.
mod hooks; // `tailor hook`, which agents run, and `fix --wait`.
#[cfg(feature = "images")]
mod images; // `--images downscale`: what is made small, what is not, and that it all comes back.
mod limits; // Few threads, little memory, unknown groups: done all the same, or a clear message; never a panic.
mod live; // `tailor fix` beside programs that append to the same session: no line is lost.
mod mounts; // Single files mounted elsewhere, and layers of containers: refused, and folders that are not.
mod order; // The system calls of a run: their order, and what a death or a failure at any of them leaves.
mod people; // What people see: width, colours, suggestions, completions; and what Ctrl-C leaves.
mod plainer; // Which formats may be taken for a plainer one.
mod power; // `tailor fix` and a power cut: what the disk lost is all that is lost.
mod profiles; // docs/profiles.md: that it says what the tests show; and the profiles over real transcripts.
mod readme; // README.md and docs/: examples that run, links that lead somewhere, a picture that is true.
mod recover; // `tailor recover`, `compact` and `chunk`: what is too long goes on, and every byte can come back.
mod scan; // `tailor scan`: exit codes, selection, the shape of its JSON.
mod stories; // What happens in sessions of every agent, told once and spelled in each format.
mod support; // A folder of its own for each test, and the program running in it.
mod tidy; // The house rules that no compiler knows.
mod top; // `tailor top` and `tailor report`: what is printed at two widths, the JSON, the page as a file.
mod trace; // What strace saw, call by call.
mod undo; // `tailor undo`, `show` and `gc`: what was taken out comes back, and is kept for as long as it should be.
mod units; // The units in systemd/: that systemd understands them, and how much they leave open; and the agent in launchd/.
mod watch; // `tailor watch`, `status` and `config`: beside writers, killed, reloaded, misled.
