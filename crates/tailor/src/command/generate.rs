//! `tailor completions` and `tailor man`: made from the definitions of the arguments, so that they cannot differ; and
//! `tailor schema`.

use super::{failed, output_closed};
use crate::amount::age;
use crate::args::{Args, Complete, Completions, Man};
use crate::sessions::{Session, candidates};
use crate::status::Status;
use crate::terminal::plain;
use clap::{CommandFactory, ValueHint};
use clap_complete::Shell;
use std::io::{self, Write};

/// How many sessions a shell is offered.
const SESSIONS_MAX: usize = 50;

pub(crate) fn completions(asked: &Completions) -> Status {
    let mut text = Vec::new();
    clap_complete::generate(asked.shell, &mut Args::command(), "tailor", &mut text);
    let text = with_sessions(asked.shell, String::from_utf8_lossy(&text).into_owned());
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Status::Clean,
        Err(error) => output_closed("standard output", &error),
    }
}

/// The JSON Schema of all that `--json` prints.
pub(crate) fn schema() -> Status {
    print!("{}", include_str!("../output.schema.json"));
    Status::Clean
}

/// A script that also offers the ids of sessions where a command takes one. `clap_complete`'s own way to ask the program
/// is not stable yet, so the scripts that it generates ask for these by `tailor complete`.
fn with_sessions(shell: Shell, text: String) -> String {
    let all = Args::command();
    let takes_session = |command: &&clap::Command| {
        command.get_positionals().any(|arg| arg.get_value_hint() == ValueHint::AnyPath)
    };
    let names =
        all.get_subcommands().filter(takes_session).flat_map(clap::Command::get_name_and_visible_aliases);
    let names: Vec<&str> = names.collect();
    match shell {
        Shell::Bash => text + &BASH.replace("COMMANDS", &names.join(" ")),
        Shell::Zsh => {
            // Arguments without a name.
            let line = |line: &str| {
                let is_nameless = line.trim_start_matches(['\'', '*']).starts_with(':');
                let to = if is_nameless { ":_tailor_paths'" } else { ":_files'" };
                line.replace(":_files'", to) + "\n"
            };
            let text: String = text.lines().map(line).collect();
            let end = text.rfind("\nif [ ").unwrap_or(text.len());
            format!("{}{ZSH}{}", &text[..end], &text[end..])
        }
        Shell::Fish => {
            let line = |name: &str, what: &str| {
                format!("complete -c tailor -n '__fish_seen_subcommand_from {name}' -a '{what}'\n")
            };
            let sessions =
                names.iter().map(|name| line(name, "(tailor complete (commandline -ct) 2>/dev/null)"));
            // `clap_complete` writes the values of options only.
            let values = all.get_subcommands().filter_map(|command| {
                let names = command.get_positionals().flat_map(clap::Arg::get_possible_values);
                let names: Vec<String> = names.map(|value| value.get_name().to_string()).collect();
                (!names.is_empty()).then(|| line(command.get_name(), &names.join(" ")))
            });
            text + &sessions.chain(values).collect::<String>()
        }
        _ => text,
    }
}

const BASH: &str = r#"
_tailor_and_sessions() {
    _tailor "$@"
    local cur=${COMP_WORDS[COMP_CWORD]} id
    [[ $COMP_CWORD -lt 2 || $cur == -* || ${COMP_WORDS[COMP_CWORD-1]} == -* ]] && return
    [[ " COMMANDS " == *" ${COMP_WORDS[1]} "* ]] || return
    # Without a word there are only options, which a dash brings as well.
    [[ -z $cur ]] && COMPREPLY=()
    while IFS= read -r id; do COMPREPLY+=("$id"); done < <(
        compgen -f -- "$cur"
        tailor complete "$cur" 2>/dev/null | cut -f 1
    )
}
complete -F _tailor_and_sessions -o filenames -o bashdefault -o default tailor
"#;

const ZSH: &str = r#"
_tailor_paths() {
    local -a ids
    ids=("${(@f)$(tailor complete "$PREFIX" 2>/dev/null | tr '\t' ':')}")
    _alternative 'files:file:_files' "sessions:session:(($(printf '%q ' "${ids[@]}")))"
}
"#;

/// The ids of the newest sessions that begin so; after a tab, whose they are and how old.
pub(crate) fn complete(asked: &Complete) -> Status {
    let sessions = candidates(&[]);
    let named = sessions.iter().map(Session::unknown).filter_map(|session| {
        let id = session.id().filter(|id| id.starts_with(&asked.begin))?;
        Some((plain(id), format!("{} {} ago", session.agent_name(), age(session.age))))
    });
    named.take(SESSIONS_MAX).for_each(|(id, whose)| println!("{id}\t{whose}"));
    Status::Clean
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
