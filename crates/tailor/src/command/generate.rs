//! `tailor completions` and `tailor man`: made from the definitions of the arguments, so that they cannot differ.

use super::{failed, output_closed};
use crate::args::{Args, Completions, Man};
use crate::status::Status;
use clap::CommandFactory;
use std::io::{self, Write};

pub(crate) fn completions(asked: &Completions) -> Status {
    let mut text = Vec::new();
    clap_complete::generate(asked.shell, &mut Args::command(), "tailor", &mut text);
    match io::stdout().write_all(&text) {
        Ok(()) => Status::Clean,
        Err(error) => output_closed("standard output", &error),
    }
}

pub(crate) fn man(asked: &Man) -> Status {
    let folder = &asked.folder;
    let made =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    match made {
        Ok(()) => Status::Clean,
        Err(error) => failed(&format!("{}: could not write the manual: {error}", folder.display())),
    }
}
