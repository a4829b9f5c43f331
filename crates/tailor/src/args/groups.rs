//! The commands as `tailor -h` lists them: the ten of an ordinary day, and by `--help` the others in groups.

use clap::Command;
use clap::builder::Styles;
use std::fmt::Write;

const EVERYDAY: (&str, &[&str]) = (
    "Everyday commands",
    &["doctor", "explain", "fix", "undo", "resume", "recover", "top", "report", "scan", "watch"],
);

const OTHERS: &[(&str, &[&str])] = &[
    ("Long sessions", &["compact", "chunk"]),
    ("Texts that were cut, and originals", &["show", "forget", "gc"]),
    ("Sessions that are gone or changed", &["keep"]),
    ("Sessions in databases", &["export", "diff", "prune"]),
    ("The daemon and the configuration", &["status", "config"]),
    ("For programs and shells", &["schema", "completions"]),
];

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}";

/// How wide the names are, with what stands between them and what they mean.
const NAME_COLUMNS: usize = 13;

/// The program with its commands in groups.
pub(super) fn grouped(all: Command) -> Command {
    let everyday = group(&all, EVERYDAY);
    let others: String = OTHERS.iter().map(|others| group(&all, *others)).collect();
    let names: Vec<&str> = OTHERS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let more = format!("{everyday}More commands (tailor --help): {}", names.join(", "));
    let template = format!("{TEMPLATE}{}\n{{options}}{{after-help}}", heading("Options"));
    all.help_template(template)
        .before_help(more)
        .before_long_help((everyday + &others).trim_end().to_string())
}

fn heading(text: &str) -> String {
    let style = Styles::default();
    format!("{0}{text}:{0:#}", style.get_header())
}

fn group(all: &Command, (title, names): (&str, &[&str])) -> String {
    let literal = *Styles::default().get_literal();
    let mut text = heading(title) + "\n";
    for command in names.iter().filter_map(|name| all.find_subcommand(name)) {
        let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string));
        let other = command.get_visible_aliases().next().map(|other| format!(" [alias: {other}]"));
        let gap = " ".repeat(NAME_COLUMNS.saturating_sub(name.len()));
        let (about, other) = (about.unwrap_or_default(), other.unwrap_or_default());
        let _ = writeln!(text, "  {literal}{name}{literal:#}{gap}{about}{other}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::{EVERYDAY, OTHERS};
    use crate::args::Args;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_one_group() {
        let all = Args::command();
        let mut visible: Vec<&str> = all
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> =
            [EVERYDAY].iter().chain(OTHERS).flat_map(|(_, names)| names.to_vec()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
        assert_eq!(EVERYDAY.1.len(), 10);
    }
}
