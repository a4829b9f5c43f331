//! `tailor config`: checks, prints and creates configurations.

use super::{CommandError, CommandResult};
use crate::args::{ConfigRead, ConfigWhat};
use crate::config::{Loaded, own_file};
use crate::place::portable_text;
use crate::say::{eprint_message, is_quiet, print_json};
use crate::settings::{commented, schema};
use crate::status::ExitStatus;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(what: &ConfigWhat) -> CommandResult {
    match what {
        ConfigWhat::Check(asked) => check(asked),
        ConfigWhat::Print(asked) => print(asked),
        ConfigWhat::Init(init) => write(init.file.clone().or_else(own_file), init.json.is_json()),
        ConfigWhat::Schema(json) if json.is_json() => Ok(print_json(&schema())),
        ConfigWhat::Schema(_) => {
            println!("{:#}", schema());
            Ok(ExitStatus::Clean)
        }
    }
}

/// One line of `config check --json`.
#[derive(Serialize)]
struct ConfigProblem<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    severity: &'static str,
    message: &'a str,
}

/// The line of `config print --json`, and the last one of `config check --json`.
#[derive(Serialize)]
struct Configuration<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    config_files: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<&'a toml::Table>,
}

impl<'a> Configuration<'a> {
    fn from_loaded(loaded: &'a Loaded, with_settings: bool) -> Self {
        let config_files = loaded.files.iter().map(|path| path.to_string_lossy()).collect();
        let settings = with_settings.then_some(&loaded.table);
        Self { kind: "configuration", config_files, settings }
    }
}

fn check(asked: &ConfigRead) -> CommandResult {
    let loaded = read(asked)?;
    let warnings = warnings(&loaded);
    for warning in &warnings {
        tell(asked, "warning", warning);
    }
    let status = if warnings.is_empty() { ExitStatus::Clean } else { ExitStatus::Findings };
    if asked.json.is_json() {
        return Ok(status.max(print_json(&Configuration::from_loaded(&loaded, false))));
    }
    if warnings.is_empty() && !is_quiet() {
        println!("configuration OK ({})", loaded.files_in_words());
    }
    Ok(status)
}

fn print(asked: &ConfigRead) -> CommandResult {
    let loaded = read(asked)?;
    let warnings = warnings(&loaded);
    for warning in &warnings {
        eprint_message(warning);
    }
    let status = if warnings.is_empty() { ExitStatus::Clean } else { ExitStatus::Findings };
    if asked.json.is_json() {
        return Ok(status.max(print_json(&Configuration::from_loaded(&loaded, true))));
    }
    println!("# from {}", loaded.files_in_words());
    print!("{}", loaded.table);
    Ok(status)
}

/// What is probably not meant: variables without a meaning, and roots that are not there.
fn warnings(loaded: &Loaded) -> Vec<String> {
    loaded.strays.iter().map(ToString::to_string).chain(loaded.missing_roots()).collect()
}

/// Reads the configuration, or says all that is wrong.
fn read(asked: &ConfigRead) -> Result<Loaded, CommandError> {
    let read = asked.at.read().and_then(|loaded| match loaded.senseless() {
        wrong if wrong.is_empty() => Ok(loaded),
        wrong => Err(wrong),
    });
    read.map_err(|wrong| {
        for wrong in &wrong {
            tell(asked, "error", wrong);
        }
        CommandError::Told(ExitStatus::Error)
    })
}

fn tell(asked: &ConfigRead, severity: &'static str, message: &str) {
    if asked.json.is_json() {
        print_json(&ConfigProblem { kind: "problem", severity, message });
    } else {
        eprint_message(message);
    }
}

/// The line of `config init --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "config-file")]
struct Initial {
    path: String,
    /// If it was written to no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// Writes an initial file; never replaces one.
fn write(path: Option<PathBuf>, as_json: bool) -> CommandResult {
    let path = path.ok_or("no home folder is known; name the file")?;
    if path == Path::new("-") && as_json {
        return Ok(print_json(&Initial { path: "-".to_string(), text: Some(commented()) }));
    }
    if path == Path::new("-") {
        print!("{}", commented());
        return Ok(ExitStatus::Clean);
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let made = made.and_then(|()| File::create_new(&path)?.write_all(commented().as_bytes()));
    made.map_err(|cause| format!("{}: could not write a configuration: {cause}", path.display()))?;
    if as_json {
        return Ok(print_json(&Initial { path: portable_text(&path), text: None }));
    }
    if !is_quiet() {
        println!("{}: written (next: edit it, then run tailor config check)", path.display());
    }
    Ok(ExitStatus::Clean)
}
