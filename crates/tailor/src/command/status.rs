//! `tailor status`: how the daemon is doing.

use super::failed;
use crate::amount::{plural, size};
use crate::args::{AskStatus, Format};
use crate::config::Loaded;
use crate::say::eprint_message;
use crate::status::Status;
use crate::terminal::plain;
use watch::RootStatus;

pub(crate) fn run(asked: &AskStatus) -> Status {
    // A configuration that the daemon has refused, or will, is no reason not to ask it.
    let loaded = asked.at.load();
    if let Err(error) = &loaded {
        eprint_message(error);
    }
    let socket = loaded.as_ref().map_or_else(|_| asked.at.socket(), Loaded::socket);
    let status = match watch::ask(&socket) {
        Ok(status) => status,
        Err(error) => return failed(&error),
    };
    match asked.format {
        Format::Json => match serde_json::to_string(&status) {
            Ok(text) => println!("{}", crate::terminal::json(&text)),
            Err(error) => return failed(&error),
        },
        Format::Human => human(&status),
    }
    if status.tripped + status.hindered > 0 || status.config_error.is_some() || loaded.is_err() {
        Status::Findings
    } else {
        Status::Clean
    }
}

fn human(status: &watch::Status) {
    println!(
        "{} (process {}, version {}), running for {}",
        status.mode,
        status.pid,
        status.version,
        time(status.uptime_seconds)
    );
    status.roots.iter().for_each(root);
    let hindered =
        if status.hindered > 0 { format!(", {} hindered", status.hindered) } else { String::new() };
    println!(
        "{}: {} waiting, {} at work, {} left alone{hindered}; {}, {} to save",
        plural(status.files, "file"),
        status.waiting,
        status.at_work,
        status.tripped,
        plural(status.findings, "finding"),
        size(status.saves_bytes)
    );
    println!("{}: {} fixed, {} saved", plural(status.looks, "look"), status.fixed, size(status.saved_bytes));
    for trouble in &status.troubles {
        let (path, reason) = (plain(&trouble.path), plain(&trouble.reason));
        println!("{path}: {} {} ago: {reason}", trouble.outcome, time(trouble.looked_seconds_ago));
    }
    for path in &status.too_long {
        println!("{}: the API refused it as too long (run: tailor recover)", plain(path));
    }
    if let Some(error) = &status.config_error {
        println!("still running with the old configuration: {}", plain(error));
    }
}

fn root(root: &RootStatus) {
    let reason = root.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
    let (files, folders) = (plural(root.files, "file"), plural(root.folders, "watched folder"));
    println!("{}: {}, {files}, {folders}{reason}", plain(&root.path), root.state);
}

fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
