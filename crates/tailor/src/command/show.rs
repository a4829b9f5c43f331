//! `tailor show`: prints the full text of a cut.

use super::{CommandError, CommandResult, ended, output_closed};
use crate::args::ShowArgs;
use crate::status::ExitStatus;
use crate::terminal::Harmless;
use keeper::{OriginalText, Vault};
use spans::literal::Decoder;
use std::io::{self, IsTerminal, Read, Write};

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;

pub(crate) fn run(show: &ShowArgs) -> CommandResult {
    let vault = show.config.load().and_then(|config| show.vault.open(&config))?;
    let mut status = ExitStatus::Clean;
    let spelling = match (show.json.is_json(), io::stdout().is_terminal()) {
        (true, _) => Spelling::Json,
        (_, true) => Spelling::Harmless,
        _ => Spelling::AsIs,
    };
    for id in &show.ids {
        status = status.max(ended(one(show, &vault, id, spelling)));
    }
    Ok(status)
}

/// How a text is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    AsIs,
    /// For a terminal.
    Harmless,
    /// As an object of JSON.
    Json,
}

fn one(show: &ShowArgs, vault: &Vault, id: &str, spelling: Spelling) -> CommandResult {
    let text = vault.text(id)?;
    match print(text, show.raw, spelling) {
        Ok(()) => Ok(ExitStatus::Clean),
        Err(ShowTrouble::Output(error)) => Err(output_closed("standard output", &error)),
        Err(ShowTrouble::Text(error)) => {
            let place = vault.root().display();
            Err(CommandError::from(format!(
                "{place}: could not read all of the text {id}: {error} (what was printed is not to be trusted)"
            )))
        }
    }
}

enum ShowTrouble {
    Text(io::Error),
    Output(io::Error),
}

fn print(mut text: OriginalText, raw: bool, spelling: Spelling) -> Result<(), ShowTrouble> {
    let mut out = io::stdout().lock();
    if spelling == Spelling::Json {
        write!(out, r#"{{"type":"text","text_id":"{}","text":""#, text.id()).map_err(ShowTrouble::Output)?;
    }
    let mut decoder = (!raw).then(Decoder::default);
    let mut harmless = Harmless::default();
    let mut buffer = vec![0; READ_BYTES];
    let (mut plain, mut last) = (Vec::new(), b'\n');
    loop {
        let got = text.read(&mut buffer).map_err(ShowTrouble::Text)?;
        plain.clear();
        match &mut decoder {
            Some(decoder) if got > 0 => decoder.feed(&buffer[..got], &mut plain),
            Some(_) => decoder.take().unwrap_or_default().finish(&mut plain),
            None => plain.extend_from_slice(&buffer[..got]),
        }
        match spelling {
            Spelling::AsIs => {}
            Spelling::Harmless => plain = harmless.pass(&plain, got == 0).into_bytes(),
            Spelling::Json => plain = harmless.escape(&plain, got == 0).into_bytes(),
        }
        last = plain.last().copied().unwrap_or(last);
        match spelling {
            Spelling::Harmless if got == 0 && last != b'\n' => plain.push(b'\n'),
            Spelling::Json if got == 0 => plain.extend(b"\"}\n"),
            _ => {}
        }
        out.write_all(&plain).map_err(ShowTrouble::Output)?;
        if got == 0 {
            return out.flush().map_err(ShowTrouble::Output);
        }
    }
}
