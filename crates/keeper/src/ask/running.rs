//! Whether an agent runs, where the system does not say who has a file open: by the names of programs.

use crate::ask::deferral::Deferral;
use crate::platform::ListedProcess;
use crate::platform::process;
use std::time::Duration;
use transcript::format::{Agent, Format};

/// Words in the names of agents that are names of other things too.
const COMMON: &[&str] = &["agent", "build", "chat", "cli", "code", "factory", "mistral"];

/// Programs that run others. Where the list of processes does not say which, it may be any.
const INTERPRETERS: &[&str] = &["bun", "deno", "node", "python", "python3"];

/// The folder of programs for Node, each in one of its own.
const NODE_PROGRAMS: &str = "node_modules";

/// What the processes say about the agents of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AgentLife {
    /// One of them runs: a process, and the name of its program.
    Runs(u32, String),
    /// A program runs that may be one of them.
    MayRun,
    /// None of them runs.
    Quit,
}

impl AgentLife {
    /// Of the agents that write a format.
    pub(crate) fn of_format(format: &Format) -> Self {
        Self::judge(&process::listed(), std::process::id(), &names_of_format(format))
    }

    /// Of the agent of this name.
    #[cfg(feature = "stores")]
    pub(crate) fn of_agent(name: &str) -> Self {
        Self::judge(&process::listed(), std::process::id(), &words_of(name))
    }

    /// The agent that started us asks for the repair, so it is not at work.
    fn judge(listed: &[ListedProcess], own: u32, names: &[String]) -> Self {
        let ours = ListedProcess::ancestors(listed, own);
        let mut life = if listed.is_empty() { Self::MayRun } else { Self::Quit };
        for process in listed.iter().filter(|process| !ours.contains(&process.pid)) {
            let (program, script) = process.program();
            if let Some(name) = names.iter().find(|name| program == **name || is_script(&script, name)) {
                return Self::Runs(process.pid, name.clone());
            }
            if script.is_empty() && INTERPRETERS.contains(&program.as_str()) {
                life = Self::MayRun;
            }
        }
        life
    }

    /// Why what it may remember must not change yet; `None` if it has quit, or counts as one that has forgotten a file that was
    /// not written to for `wanted`.
    pub(crate) fn remembers(self, quiet: Duration, wanted: Duration) -> Option<Deferral> {
        match self {
            Self::Runs(pid, name) => Some(Deferral::Remembered { pid, name }),
            Self::MayRun if quiet < wanted => Some(Deferral::MayRemember { quiet, wanted }),
            Self::MayRun | Self::Quit => None,
        }
    }

    /// Why to wait for one that runs.
    pub(crate) fn deferral(self) -> Option<Deferral> {
        match self {
            Self::Runs(pid, name) => Some(Deferral::Runs { pid, name }),
            Self::MayRun | Self::Quit => None,
        }
    }
}

/// What the programs that write a format may be called.
fn names_of_format(format: &Format) -> Vec<String> {
    let command = |agent: &Agent| Some(agent.resume?.command.first()?.to_string());
    let names = |agent: &Agent| words_of(agent.name).into_iter().chain(command(agent));
    format.agents.iter().flat_map(names).collect()
}

/// What the program of an agent of this name may be called.
fn words_of(name: &str) -> Vec<String> {
    name.split(' ').map(str::to_lowercase).filter(|word| !COMMON.contains(&word.as_str())).collect()
}

/// Whether an interpreter's script belongs to a program: by its own name, or by that of its package.
fn is_script(script: &str, name: &str) -> bool {
    let mut parts = script.split(['/', '\\']).skip_while(|part| *part != NODE_PROGRAMS).skip(1);
    let package = parts.by_ref().find(|part| !part.starts_with('@')).unwrap_or_default();
    ListedProcess::stem(script) == name || package.split('-').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::format::FORMATS;

    fn listed(commands: &[&str]) -> Vec<ListedProcess> {
        let process = |(pid, command): (u32, &&str)| ListedProcess::new(pid, pid.min(10), command);
        (10..).zip(commands).map(process).collect()
    }

    fn judged(format: &str, commands: &[&str]) -> AgentLife {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        AgentLife::judge(&listed(commands), 10, &names_of_format(format))
    }

    #[test]
    fn an_agent_is_known_by_its_program_or_its_script() {
        let runs = |name: &str| AgentLife::Runs(11, name.to_string());
        for (format, command, life) in [
            ("codex", "/usr/local/bin/codex resume", runs("codex")),
            ("codex", r"C:\Program Files\Codex\codex.exe", runs("codex")),
            ("codex", "node /usr/lib/node_modules/@openai/codex/bin/codex.js", runs("codex")),
            ("gemini-cli", "node /opt/node_modules/@google/gemini-cli/dist/index.js", runs("gemini")),
            ("pi", "node --no-warnings /usr/local/bin/pi --session x", runs("pi")),
            ("claude-code", "claude", runs("claude")),
            // An editor, a page about it, and a folder of that name are no agents.
            ("claude-code", "/usr/share/code/code", AgentLife::Quit),
            ("codex", "vim codex.md", AgentLife::Quit),
            ("codex", "node /srv/codex/server.js", AgentLife::Quit),
            ("codex", "claude", AgentLife::Quit),
            ("codex", "node.exe", AgentLife::MayRun),
        ] {
            assert_eq!(judged(format, &["tailor", command]), life, "{format}: {command}");
        }
    }

    #[test]
    fn who_asks_for_the_repair_does_not_hinder_it_and_no_list_proves_nothing() {
        let parent = [ListedProcess::new(7, 1, "codex"), ListedProcess::new(8, 7, "tailor fix")];
        assert_eq!(AgentLife::judge(&parent, 8, &["codex".to_string()]), AgentLife::Quit);
        assert_eq!(AgentLife::judge(&[], 8, &["codex".to_string()]), AgentLife::MayRun);
    }

    #[test]
    fn this_process_is_in_the_list() {
        let own = std::process::id();
        assert!(process::listed().iter().any(|process| process.pid == own && process.parent > 0));
    }
}
