//! `tailor completions` and `tailor man`: made from the definitions of the arguments, so that they cannot differ; and
//! `tailor schema`.

use super::{CommandResult, output_closed};
use crate::amount::age;
use crate::args::{Args, Complete, Completions, Json, Man};
use crate::say::print_json;
use crate::sessions::{ListedSession, candidates};
use crate::status::ExitStatus;
use crate::terminal::plain;
use clap::{CommandFactory, ValueHint};
use clap_complete::Shell;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// How many sessions a shell is offered.
const SESSIONS_MAX: usize = 50;

pub(crate) fn completions(asked: &Completions) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(asked.shell, &mut Args::command(), "tailor", &mut text);
    let text = with_sessions(asked.shell, String::from_utf8_lossy(&text).into_owned());
    if asked.json.is_json() {
        let (shell, place) = (asked.shell.to_string(), place(asked.shell));
        return Ok(print_json(&Script { shell, place, text }));
    }
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| output_closed("standard output", &error))?;
    Ok(ExitStatus::Clean)
}

/// The line of `completions --json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "completions")]
struct Script {
    shell: String,
    place: &'static str,
    #[serde(rename = "script")]
    text: String,
}

/// Where a shell finds its completions, or the file that is to read them.
fn place(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => "~/.local/share/bash-completion/completions/tailor",
        Shell::Zsh => "${fpath[1]}/_tailor",
        Shell::Fish => "~/.config/fish/completions/tailor.fish",
        Shell::Elvish => "~/.config/elvish/rc.elv",
        _ => "$PROFILE",
    }
}

/// The JSON Schema of all that `--json` prints.
pub(crate) fn schema(json: Json) -> CommandResult {
    let text = include_str!("../output.schema.json");
    if json.is_json() {
        return Ok(print_json(&serde_json::from_str::<serde_json::Value>(text)?));
    }
    print!("{text}");
    Ok(ExitStatus::Clean)
}

/// What scripts need to know besides what `clap_complete` tells them.
struct Words {
    /// Commands that take a session.
    commands: Vec<String>,
    /// Options that take a value, as they are written.
    valued: Vec<String>,
    /// Long options whose value is a list of known names, the name of that value, and these names.
    lists: BTreeMap<String, (String, Vec<String>)>,
}

impl Words {
    fn from_command(all: &clap::Command) -> Self {
        let is_session = |arg: &clap::Arg| arg.get_value_hint() == ValueHint::AnyPath;
        let takes_session = |command: &&clap::Command| command.get_positionals().any(is_session);
        let commands = all.get_subcommands().filter(takes_session);
        let commands = commands.flat_map(clap::Command::get_name_and_visible_aliases).map(str::to_string);
        let args = || all.get_subcommands().chain([all]).flat_map(clap::Command::get_arguments);
        let with_value = || args().filter(|arg| !arg.is_positional() && arg.get_action().takes_values());
        let written = |arg: &clap::Arg| {
            let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
            let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
            let longs = longs.into_iter().map(|long| format!("--{long}"));
            longs.chain(shorts.into_iter().map(|short| format!("-{short}"))).collect::<Vec<_>>()
        };
        let valued: BTreeSet<String> = with_value().flat_map(written).collect();
        let list = |arg: &clap::Arg| {
            let names = arg.get_possible_values().iter().map(|value| value.get_name().to_string()).collect();
            let value = arg.get_value_names()?.first()?.to_string();
            Some((arg.get_long()?.to_string(), (value, names)))
        };
        let lists = with_value().filter(|arg| arg.get_value_delimiter() == Some(',')).filter_map(list);
        Self { commands: commands.collect(), valued: valued.into_iter().collect(), lists: lists.collect() }
    }

    fn listed(&self) -> String {
        self.lists.keys().map(|long| format!("--{long}")).collect::<Vec<_>>().join(" ")
    }
}

/// A script that also offers the ids of sessions where a command takes one, and each name of a list. `clap_complete`'s own way
/// to ask the program is not stable yet, so the scripts that it generates ask for ids by `tailor complete`. Those for Elvish
/// and `PowerShell` ask it for names too.
fn with_sessions(shell: Shell, text: String) -> String {
    let mut all = Args::command();
    all.build();
    let words = Words::from_command(&all);
    match shell {
        Shell::Bash => {
            let own = BASH.replace("COMMANDS", &words.commands.join(" "));
            text + &own.replace("VALUED", &words.valued.join(" ")).replace("LISTS", &words.listed())
        }
        Shell::Zsh => zsh(&text, &words),
        Shell::Fish => text + &fish(&all, &words),
        Shell::Elvish => text + ELVISH,
        _ => text.replacen(POWERSHELL_BEGIN, &format!("{POWERSHELL_BEGIN}\n{POWERSHELL}"), 1),
    }
}

fn zsh(text: &str, words: &Words) -> String {
    let mut out = String::new();
    let mut is_skipped = false;
    for line in text.lines() {
        // A list of names may take many lines.
        if is_skipped {
            is_skipped = !line.ends_with("))' \\");
            continue;
        }
        let list = words.lists.iter().find(|(long, _)| line.contains(&format!("--{long}=[")));
        let begin = list
            .and_then(|(_, (value, names))| Some((line.split_once(&format!(":{value}:("))?.0, value, names)));
        if let Some((begin, value, names)) = begin {
            out.extend([begin, ":", value, ":_sequence compadd - ", &names.join(" "), "' \\\n"]);
            is_skipped = !line.ends_with("))' \\");
            continue;
        }
        // Arguments without a name.
        let is_nameless = line.trim_start_matches(['\'', '*']).starts_with(':');
        out += &if is_nameless { line.replace(":_files'", ":_tailor_paths'") } else { line.to_string() };
        out.push('\n');
    }
    let end = out.rfind("\nif [ ").unwrap_or(out.len());
    format!("{}{ZSH}{}", &out[..end], &out[end..])
}

fn fish(all: &clap::Command, words: &Words) -> String {
    let line = |when: &str, what: &str| format!("complete -c tailor -n '{when}' {what}\n");
    let of = |name: &str, what: &str| line(&format!("__fish_seen_subcommand_from {name}"), what);
    let ids = "-a '(tailor complete (commandline -ct) 2>/dev/null)'";
    let sessions = words.commands.iter().map(|name| of(name, ids));
    // `clap_complete` writes the values of options only.
    let values = all.get_subcommands().filter_map(|command| {
        let names = command.get_positionals().flat_map(clap::Arg::get_possible_values);
        let names: Vec<String> = names.map(|value| value.get_name().to_string()).collect();
        (!names.is_empty()).then(|| of(command.get_name(), &format!("-a '{}'", names.join(" "))))
    });
    let lists = words.lists.iter().map(|(long, (_, names))| {
        let names = names.join(" ");
        line(
            "string match -q \"*,*\" -- (commandline -ct)",
            &format!(
                "-l {long} -x -a '(__fish_complete_list , \"string split \\\" \\\" -- \\\"{names}\\\"\")'"
            ),
        )
    });
    sessions.chain(values).chain(lists).collect()
}

const BASH: &str = r#"
_tailor_and_sessions() {
    local cur=$2 prev=$3 begin= word before= command= id
    local -i words=0
    if [[ $cur == *,* && " LISTS " == *" $prev "* ]]; then
        begin=${cur%,*},
        cur=${cur##*,}
    fi
    _tailor "$1" "$cur" "$prev"
    if [[ -n $begin ]]; then
        COMPREPLY=("${COMPREPLY[@]/#/$begin}")
        return
    fi
    [[ $cur == -* || " VALUED " == *" $prev "* ]] && return
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $word != -* && " VALUED " != *" $before "* ]]; then
            [[ -z $command ]] && command=$word || words+=1
        fi
        before=$word
    done
    [[ -n $command && " COMMANDS " == *" $command "* ]] || return
    # The first is the agent.
    [[ $command == resume && $words -eq 0 ]] && return
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

/// Asks for names and ids, and otherwise does what `clap_complete` has generated.
const ELVISH: &str = r#"
var tailor-generated = $edit:completion:arg-completer[tailor]
set edit:completion:arg-completer[tailor] = {|@words|
    var own = []
    if (> (count $words) 2) {
        set own = [(try { e:tailor complete $words[-1] -- (all $words[1..-1]) 2>/dev/null | from-lines } catch { nop })]
    }
    if (> (count $own) 0) {
        for line $own {
            var parts = [(str:split "\t" $line)]
            put $parts[0]
        }
    } else {
        try { $tailor-generated $@words } catch { nop }
    }
}
"#;

/// The line after which what is below goes into the script.
const POWERSHELL_BEGIN: &str = "    param($wordToComplete, $commandAst, $cursorPosition)";
const POWERSHELL: &str = r#"
    $before = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.Extent.Text })
    if ($before.Count -gt 0 -and -not $wordToComplete.StartsWith('-')) {
        $own = @(tailor complete "$wordToComplete" '--' @before 2>$null)
        if ($own.Count -gt 0) {
            return $own | ForEach-Object {
                $name, $about = $_ -split "`t", 2
                if (-not $about) { $about = $name }
                [CompletionResult]::new($name, $name, [CompletionResultType]::ParameterValue, $about)
            }
        }
    }
"#;

/// The names that fit after these words, and whether ids of sessions fit.
fn fitting(before: &[String], begin: &str) -> (Vec<String>, bool) {
    let mut all = Args::command();
    all.build();
    let words = Words::from_command(&all);
    let is_value = |n: usize| n > 0 && words.valued.contains(&before[n - 1]);
    let mut plain = (0..before.len()).filter(|n| !before[*n].starts_with('-') && !is_value(*n));
    let Some(command) = plain.next().and_then(|n| all.find_subcommand(&before[n])) else {
        return (Vec::new(), false);
    };
    let names = |arg: &clap::Arg| -> Vec<String> {
        arg.get_possible_values().iter().map(|value| value.get_name().to_string()).collect()
    };
    if let Some(option) = before.last().filter(|_| is_value(before.len())) {
        let is_it = |arg: &&clap::Arg| {
            let short = arg.get_short().map(|short| format!("-{short}"));
            arg.get_long().map(|long| format!("--{long}")) == Some(option.clone())
                || short == Some(option.clone())
        };
        let Some(arg) = command.get_arguments().find(is_it) else { return (Vec::new(), false) };
        // The names before it, if it is a list.
        let is_list = arg.get_value_delimiter() == Some(',');
        let known = if is_list { begin.rfind(',').map_or("", |comma| &begin[..=comma]) } else { "" };
        let names = names(arg).into_iter().map(|name| format!("{known}{name}"));
        return (names.filter(|name| name.starts_with(begin)).collect(), false);
    }
    let places: Vec<&clap::Arg> = command.get_positionals().collect();
    let Some(place) = places.get(plain.count()).or(places.last()) else { return (Vec::new(), false) };
    let names = names(place).into_iter().filter(|name| name.starts_with(begin)).collect();
    (names, place.get_value_hint() == ValueHint::AnyPath)
}

/// The ids of the newest sessions that begin so; after a tab, whose they are and how old. After words, the names too.
pub(crate) fn complete(asked: &Complete) -> ExitStatus {
    if !asked.before.is_empty() {
        let (names, may_be_session) = fitting(&asked.before, &asked.begin);
        for name in &names {
            println!("{name}");
        }
        if !may_be_session {
            return ExitStatus::Clean;
        }
    }
    let sessions = candidates(&[]);
    let named = sessions.iter().map(ListedSession::unknown).filter_map(|session| {
        let id = session.id().filter(|id| id.starts_with(&asked.begin))?;
        Some((plain(id), format!("{} {} ago", session.agent_name(), age(session.age))))
    });
    named.take(SESSIONS_MAX).for_each(|(id, whose)| println!("{id}\t{whose}"));
    ExitStatus::Clean
}

pub(crate) fn man(asked: &Man) -> CommandResult {
    let folder = &asked.folder;
    let made =
        std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    made.map_err(|error| format!("{}: could not write the manual: {error}", folder.display()))?;
    Ok(ExitStatus::Clean)
}

#[cfg(test)]
mod tests {
    use super::{Args, CommandFactory, Shell, place};

    #[test]
    fn the_help_names_the_same_places() {
        let mut all = Args::command();
        let help = all.find_subcommand_mut("completions").unwrap().render_help().to_string();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(help.contains(place(shell)), "{shell}");
        }
    }
}
