//! Black-box tests: the built program, its arguments, and files. The comment beside each module says what it tests.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]
#![cfg(unix)]

mod bad_input; // Files that are broken, huge, hostile or not ours: a clear outcome, and no byte lost.
mod cache; // The index of verdicts: unchanged files are not read again, and results stay the same.
mod cells; // docs/rules: what each rule does in each format, and a fixture that shows it.
mod checks; // `scan` in CI: output formats, limits, the baseline; the GitHub Action and the hooks of this repository.
mod contracts; // docs/contracts.md and `tailor scan --for`: what providers accept.
mod corpus; // Promises, checked on all transcripts below $TAILOR_CORPUS.
mod cost; // What hostile sessions cost: at most in proportion to their length, counted in instructions.
mod disk; // A full file system: nothing changes, and the message says what to do.
mod doctor; // A home folder with sessions of several agents: the list, ids, `resume`, `explain` without a file.
mod documents; // Files that are one JSON array of messages: read and mended as lines are.
mod errors; // How well errors are read: a collection of texts, in two halves.
mod explain; // `tailor explain` with errors: what they are about, which lines cause them, and what repairs them.
mod fix; // `tailor fix`: what it changes, keeps and prints.
mod fixtures; // The stories and all fixtures: what is found, and what `fix` makes of it.
mod floors; // The direction of imports.
mod folder; // Real transcripts, and what is said where there are none.
mod foreign; // Files of other programs are nobody's sessions.
mod forgets; // Sessions of which the agent sends only a part, and what is said of an error that stays.
mod formats; // Which format a file has.
mod gate; // What agents reveal about being at work, and that `tailor fix` obeys it.
mod hooks; // `tailor hook`, which agents run, and `fix --wait`.
#[cfg(feature = "images")]
mod images; // `--images downscale`: what is made small, what is not, and that it all comes back.
#[cfg(feature = "interactive")]
mod keep; // `tailor keep`: what was deleted, emptied or rewritten comes back, as it was when it is asked for.
mod keys; // `tailor top` driven by keys: what a terminal shows, and that it is given back.
mod limits; // Few threads, little memory, unknown groups: done all the same, or a clear message; never a panic.
mod lines; // `--lines`: many sessions on one standard input, told of, repaired, packed and set aside.
mod mounts; // Files that are mount points or in container layers are refused; folders are not. And a home on a network.
mod order; // The system calls of a run: their order, and what remains if any of them fails or the program dies there.
mod people; // What people see: width, colours, suggestions, completions; and what Ctrl-C leaves.
mod places; // `explain`: a place that an error names, in sessions of all formats.
mod plainer; // Formats that may be taken for a plainer one.
mod power; // `tailor fix` and a power cut: nothing is lost but what the disk lost.
mod profiles; // profiles/cases.md: its cases are in the tests; and the profiles on real transcripts.
mod readme; // README.md and docs/: examples that run, links that work, a picture that is up to date.
mod recover; // `tailor recover`, `compact` and `chunk`: a long session can continue, and undo restores every byte.
mod repository; // `tailor.toml` at the root of a repository: what it sets below it, and what it may not set.
mod rng; // Repeatable random numbers.
mod scan; // `tailor scan`: exit codes, selection, its JSON.
mod secrets; // Keys, tokens and passwords: found everywhere, told nowhere, masked, and gone.
mod sent; // What agents send of a session, against what the real programs sent.
mod stories; // What happens in sessions of every agent, written once and spelled in each format.
mod strangers; // Root among the files of other users: what they put in the way leads nowhere.
mod support; // A folder for each test, and how to run the program in it.
mod tidy; // House rules that the compiler does not check.
mod top; // `tailor top` and `tailor report`: the output at two widths, the JSON, the page as a file.
mod trace; // Parses strace's output.
mod undo; // `tailor undo`, `show` and `gc`: what was removed comes back, and is kept as long as it should be.
mod units; // The units in systemd/: whether systemd accepts them, and how much they expose; and the agent in launchd/.
mod watch; // `tailor watch`, `status` and `config`: with writers, killed, reloaded, and given wrong input.
