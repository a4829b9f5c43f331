//! `tailor config`: whether the configuration is right, what it comes to, and what may be in it.

use super::failed;
use crate::args::ConfigWhat;
use crate::say::eprint_message;
use crate::settings::schema;
use crate::status::Status;

pub(crate) fn run(what: &ConfigWhat) -> Status {
    let at = match what {
        ConfigWhat::Check(at) | ConfigWhat::Print(at) => at,
        ConfigWhat::Schema => {
            println!("{:#}", schema());
            return Status::Clean;
        }
    };
    let loaded = match at.load().and_then(|loaded| loaded.daemon().map(|_| loaded)) {
        Ok(loaded) => loaded,
        Err(error) => return failed(&error),
    };
    for stray in &loaded.strays {
        eprint_message(&stray.to_string());
    }
    let files: Vec<String> = loaded.files.iter().map(|path| path.display().to_string()).collect();
    let files = if files.is_empty() { "no file".to_string() } else { files.join(", ") };
    if matches!(what, ConfigWhat::Print(_)) {
        println!("# from {files}");
        print!("{}", loaded.table);
    } else {
        println!("configuration OK ({files})");
    }
    if loaded.strays.is_empty() { Status::Clean } else { Status::Findings }
}
