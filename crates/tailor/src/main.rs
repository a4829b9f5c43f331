//! The binary `tailor`: arguments in, text out.

#[macro_use]
mod say;

mod amount;
mod args;
mod baseline;
mod command;
mod config;
mod daemons;
#[cfg(feature = "images")]
mod downscale;
mod log;
mod names;
mod output;
mod packing;
mod page;
mod place;
mod printer;
mod remedy;
mod report;
mod sessions;
mod settings;
mod size_report;
mod status;
mod table;
mod terminal;
mod threads;
mod tokens;
mod value;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "images")]
    if let Some(code) = downscale::child() {
        return code;
    }
    keeper::give_back();
    if let Err(error) = threads::prepare(threads::asked(std::env::args_os())) {
        say::eprint_message(&error);
        return status::ExitStatus::Error.into();
    }
    let args = args::parse();
    let args::Common { quiet, verbose, color, .. } = args.common;
    say::begin(quiet, verbose, color);
    let Some(command) = args.command else {
        return say::exit_status(command::ended(command::doctor::in_short(args.json))).into();
    };
    let done = match command {
        args::Command::Doctor(doctor) => command::doctor::run(&doctor),
        args::Command::Resume(resume) => command::resume::run(&resume),
        args::Command::Scan(scan) => command::scan::run(&scan),
        args::Command::Fix(fix) => command::fix::run(&fix),
        args::Command::Top(top) => command::top::run(&top),
        args::Command::Report(report) => command::report::run(&report),
        args::Command::Undo(undo) => command::undo::run(&undo),
        args::Command::Chunk(chunk) => command::chunk::run(&chunk),
        args::Command::Compact(compact) => command::compact::run(&compact),
        args::Command::Recover(recover) => command::recover::run(&recover),
        args::Command::Diff(diff) => command::compare::run(&diff),
        args::Command::Export(export) => command::export::run(&export),
        args::Command::Show(show) => command::show::run(&show),
        args::Command::Forget(forget) => command::forget::run(&forget),
        args::Command::Gc(gc) => command::gc::run(&gc),
        args::Command::Keep(keep) => command::keep::run(&keep.what),
        args::Command::Prune(prune) => command::prune::run(&prune),
        args::Command::Watch(watch) => command::watch::run(&watch),
        args::Command::Status(ask) => Ok(command::status::run(&ask)),
        args::Command::Config(config) => command::config::run(&config.what),
        args::Command::Explain(explain) => command::explain::run(explain),
        args::Command::Schema(json) => command::generate::schema(json),
        args::Command::Complete(asked) => Ok(command::generate::complete(&asked)),
        args::Command::Completions(asked) => command::generate::completions(&asked),
        args::Command::Man(asked) => command::generate::man(&asked),
        args::Command::Hook(hook) => Ok(command::hook::run(&hook)),
    };
    say::exit_status(command::ended(done)).into()
}
