//! `tailor status`: shows how all daemons are doing, or the one that is named.

use super::failed;
use crate::amount::{plural, size};
use crate::args::{AskStatus, Json};
use crate::config::Loaded;
use crate::daemons::all_sockets;
use crate::say::{eprint_message, is_quiet, print_json};
use crate::status::ExitStatus;
use crate::terminal::plain;
use serde::Serialize;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use watch::RootStatus;

pub(crate) fn run(asked: &AskStatus) -> ExitStatus {
    // The daemon can answer even if the configuration is invalid.
    let loaded = asked.at.load();
    if let Err(error) = &loaded {
        eprint_message(error);
    }
    let own = loaded.as_ref().map_or_else(|_| asked.at.socket(), Loaded::socket);
    let is_named = asked.at.names_socket() || own != asked.at.socket();
    let all = if is_named { vec![own] } else { with_others(own, all_sockets()) };
    let is_alone = all.len() == 1;
    let said = all.iter().zip(watch::ask(&all));
    let worst = said.map(|(socket, said)| tell(socket, said, asked.json, is_alone)).max().unwrap_or_default();
    if loaded.is_err() { worst.max(ExitStatus::Findings) } else { worst }
}

/// All daemons that we may ask. The user's own counts if it has a socket, or if there is no other.
fn with_others(own: PathBuf, others: Vec<PathBuf>) -> Vec<PathBuf> {
    let (hidden, mut others): (Vec<_>, Vec<_>) = others.into_iter().partition(|socket| is_hidden(socket));
    for socket in hidden {
        let socket = socket.display();
        eprint_message(&format!("{socket}: belongs to another user (to ask it, run: sudo tailor status)"));
    }
    if !others.contains(&own) && (others.is_empty() || own.exists()) {
        others.insert(0, own);
    }
    others
}

fn is_hidden(socket: &Path) -> bool {
    socket.symlink_metadata().is_err_and(|cause| cause.kind() == ErrorKind::PermissionDenied)
}

/// Tells what one daemon said.
fn tell(socket: &Path, said: Result<watch::Status, String>, json: Json, is_alone: bool) -> ExitStatus {
    let status = match said {
        Ok(status) => status,
        Err(reason) => {
            if json.is_json() {
                print_json(&Down { kind: "down", socket: socket.to_string_lossy(), reason: &reason });
            }
            return failed(&reason);
        }
    };
    if json.is_json() {
        let socket = socket.to_string_lossy();
        let printed = print_json(&StatusLine { kind: "status", socket, status: &status });
        if printed != ExitStatus::Clean {
            return printed;
        }
    } else {
        if !is_alone {
            println!("{}:", plain(&socket.to_string_lossy()));
        }
        human(&status);
    }
    if status.tripped + status.hindered > 0 || status.config_error.is_some() || status.keep_error.is_some() {
        ExitStatus::Findings
    } else {
        ExitStatus::Clean
    }
}

/// A daemon that does not answer.
#[derive(Serialize)]
struct Down<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    socket: Cow<'a, str>,
    reason: &'a str,
}

/// What the daemon said, and where: there may be more than one.
#[derive(Serialize)]
struct StatusLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    socket: Cow<'a, str>,
    #[serde(flatten)]
    status: &'a watch::Status,
}

/// Texts in an answer are harmless when they come here.
fn human(status: &watch::Status) {
    if !is_quiet() {
        numbers(status);
    }
    for trouble in &status.troubles {
        let (path, reason) = (&trouble.path, &trouble.reason);
        println!("{path}: {} {} ago: {reason}", trouble.outcome, time(trouble.looked_seconds_ago));
    }
    for path in &status.too_long {
        println!("{}: the API refused it as too long (run: tailor recover)", path);
    }
    if let Some(error) = &status.keep_error {
        println!("not all is kept: {error}");
    }
    if let Some(error) = &status.config_error {
        println!("still running with the old configuration: {error}");
    }
}

fn numbers(status: &watch::Status) {
    let is_other = !status.stores_mode.is_empty() && status.stores_mode != status.mode;
    let stores = if is_other { format!(", databases: {}", status.stores_mode) } else { String::new() };
    println!(
        "{}{stores} (process {}, version {}), running for {}",
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
    if status.keep_mode == "on" {
        println!("keeping what sessions become: {} kept", size(status.archive_bytes));
    }
    println!("{}: {} fixed, {} saved", plural(status.looks, "look"), status.fixed, size(status.saved_bytes));
}

fn root(root: &RootStatus) {
    let reason = root.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (files, folders) = (plural(root.files, "file"), plural(root.folders, "watched folder"));
    println!("{}: {}, {files}, {folders}{reason}", root.path, root.state);
}

fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
