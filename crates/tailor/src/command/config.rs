//! `tailor config`: whether the configuration is right, and what it comes to.

use super::failed;
use crate::args::ConfigWhat;
use crate::say::talk;
use crate::status::Status;

pub(crate) fn run(what: &ConfigWhat) -> Status {
    let (ConfigWhat::Check(at) | ConfigWhat::Print(at)) = what;
    let loaded = match at.load().and_then(|loaded| loaded.daemon().map(|_| loaded)) {
        Ok(loaded) => loaded,
        Err(error) => return failed(&error),
    };
    for stray in &loaded.strays {
        talk(&stray.to_string());
    }
    let files: Vec<String> = loaded.files.iter().map(|path| path.display().to_string()).collect();
    let files = if files.is_empty() { "no file".to_string() } else { files.join(", ") };
    match what {
        ConfigWhat::Check(_) => println!("configuration OK ({files})"),
        ConfigWhat::Print(_) => {
            println!("# from {files}");
            print!("{}", loaded.table);
        }
    }
    if loaded.strays.is_empty() { Status::Clean } else { Status::Findings }
}
