//! `tailor config`: whether the configuration is right, what it comes to, and what may be in it.

use super::failed;
use crate::args::{ConfigAt, ConfigWhat};
use crate::config::{Loaded, own_file};
use crate::say::eprint_message;
use crate::settings::{commented, schema};
use crate::status::Status;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(what: &ConfigWhat) -> Status {
    match what {
        ConfigWhat::Check(at) => read(at, |files, loaded| {
            if loaded.strays.is_empty() {
                println!("configuration OK ({files})");
            }
        }),
        ConfigWhat::Print(at) => read(at, |files, loaded| {
            println!("# from {files}");
            print!("{}", loaded.table);
        }),
        ConfigWhat::Init(init) => write(init.file.clone().or_else(own_file)),
        ConfigWhat::Schema => {
            println!("{:#}", schema());
            Status::Clean
        }
    }
}

/// Says all that is wrong, or goes on with the files that were read and what they come to.
fn read(at: &ConfigAt, go_on: impl FnOnce(&str, &Loaded)) -> Status {
    let read = at.read().and_then(|loaded| match loaded.senseless() {
        wrong if wrong.is_empty() => Ok(loaded),
        wrong => Err(wrong),
    });
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(wrong) => {
            for wrong in &wrong {
                eprint_message(wrong);
            }
            return Status::Error;
        }
    };
    for stray in &loaded.strays {
        eprint_message(&stray.to_string());
    }
    let files: Vec<String> = loaded.files.iter().map(|path| path.display().to_string()).collect();
    go_on(&if files.is_empty() { "no file".to_string() } else { files.join(", ") }, &loaded);
    if loaded.strays.is_empty() { Status::Clean } else { Status::Findings }
}

/// Writes a file to begin with, beside nothing that is there.
fn write(path: Option<PathBuf>) -> Status {
    let Some(path) = path else { return failed(&"no home folder is known; name the file") };
    if path == Path::new("-") {
        print!("{}", commented());
        return Status::Clean;
    }
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let made = made.and_then(|()| File::create_new(&path)?.write_all(commented().as_bytes()));
    match made {
        Ok(()) => {
            println!("{}: written (next: edit it, then run tailor config check)", path.display());
            Status::Clean
        }
        Err(cause) => failed(&format!("{}: could not write a configuration: {cause}", path.display())),
    }
}
