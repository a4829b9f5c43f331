//! The programs that write a format: what people call them, and the command that resumes a session.

use super::base::Format;

/// A program that writes a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// What people call it.
    pub name: &'static str,
    /// The home folder that tells its sessions from those of other agents with the same format; empty for the usual
    /// one.
    pub home: &'static str,
    /// How to resume a session; `None` if that is not known.
    pub resume: Option<Resume>,
    /// What else it stores about its sessions.
    pub index: Option<Index>,
}

/// What an agent stores about its sessions outside their files. It shows that a file was lost, or that the agent does
/// not know a file; the texts say what the agent does then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// A JSON object in the folder of the transcripts. Each value has a session's id (`sessionId`), and may name its
    /// file (`sessionFile`).
    List {
        /// The file's name.
        name: &'static str,
        /// What to say about sessions whose file is gone.
        lost: &'static str,
        /// What to say about files that are not in the list.
        unknown: &'static str,
    },
    /// A database beside the folder in which the agent finds sessions. It holds each session's id as plain text; ids of
    /// deleted rows may still be in its bytes.
    Database {
        /// The beginning and the end of its name; a number is between them.
        name: [&'static str; 2],
        /// What to say about sessions whose ids are not in it.
        unknown: &'static str,
    },
    /// A folder beside a transcript, named like the session.
    Folders {
        /// What to say about sessions of which only the folder is left.
        lost: &'static str,
        /// What to say about files without any message.
        emptied: &'static str,
    },
}

/// How an agent resumes a session: a command that ends with the session's id, which is part of the file's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The command without the id.
    pub command: &'static [&'static str],
    /// The folder in which it finds sessions, at any depth.
    pub below: &'static str,
    /// How many folders above the file the name is that ends with the id; 0 means the file itself.
    pub above: usize,
    /// What the id begins with.
    pub prefix: &'static str,
    /// How many hexadecimal digits and hyphens follow.
    pub digits: usize,
}

impl Resume {
    /// A file whose name ends with a UUID.
    pub(crate) const BY_FILE: Self =
        Self { command: &[], below: "sessions", above: 0, prefix: "", digits: 36 };
}

impl Agent {
    /// An agent of which only the name is known.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self { name, home: "", resume: None, index: None }
    }

    /// An agent that keeps its sessions in a folder of its own.
    pub(crate) const fn at(name: &'static str, home: &'static str) -> Self {
        Self { name, home, resume: None, index: None }
    }

    /// An agent that can be started on a session.
    pub(crate) const fn resumed(name: &'static str, resume: Resume) -> Self {
        Self { name, home: "", resume: Some(resume), index: None }
    }

    /// Adds what the agent stores outside its session files.
    pub(crate) const fn with(self, index: Index) -> Self {
        Self { index: Some(index), ..self }
    }

    /// The agent's id for the session in this file; `None` for files that it would not resume.
    pub fn session_id<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Resume { below, above, prefix, digits, .. } = self.resume?;
        let mut folders = path.rsplit('/').skip(above);
        let name = folders.next()?;
        let name = if above == 0 { name.split_once('.').map_or(name, |(stem, _)| stem) } else { name };
        let id = name.get(name.len().checked_sub(prefix.len() + digits)?..)?;
        let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let is_id = id.strip_prefix(prefix)?.bytes().all(is_digit) && !id.starts_with('-');
        (is_id && folders.any(|folder| folder == below)).then_some(id)
    }

    /// The command that resumes the session in this file. None of its words needs quotes in a shell.
    pub fn resume<'p>(&self, path: &'p str) -> Option<impl Iterator<Item = &'p str> + use<'p>> {
        let id = self.session_id(path)?;
        Some(self.resume?.command.iter().copied().chain([id]))
    }
}

impl Format {
    /// The program that wrote a file of this format, judged by its path; if no program is known, the format's name.
    pub fn agent(&self, path: &str) -> Agent {
        let has = |home: &str| path.split('/').any(|folder| folder == home);
        let other = self.agents.iter().find(|agent| !agent.home.is_empty() && has(agent.home));
        other.or(self.agents.first()).copied().unwrap_or(Agent::named(self.name))
    }
}

#[cfg(test)]
mod tests {
    use crate::format::FORMATS;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    const ID: &str = "0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f";

    fn resumed(format: &str, path: &str) -> (&'static str, Option<String>) {
        let format = FORMATS.iter().find(|known| known.name == format).unwrap();
        let agent = format.agent(path);
        (agent.name, agent.resume(path).map(|words| words.collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn each_agent_is_resumed_by_the_id_in_the_path() {
        let rows = [
            ("claude-code", "Claude Code", ".claude/projects/-w/ID.jsonl", "claude --resume ID"),
            (
                "codex",
                "Codex",
                ".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-ID.jsonl",
                "codex resume ID",
            ),
            (
                "codex",
                "Codex",
                ".codex/sessions/2026/07/01/rollout-2026-07-01T10-00-00-ID.jsonl.zst",
                "codex resume ID",
            ),
            ("copilot-cli", "Copilot CLI", ".copilot/session-state/ID/events.jsonl", "copilot --resume ID"),
            ("pi", "pi", ".pi/agent/sessions/--w--/2026-07-01T10-00-00-000Z_ID.jsonl", "pi --session ID"),
            ("qwen-code", "Qwen Code", ".qwen/projects/-w/chats/ID.jsonl", "qwen --resume ID"),
            ("kimi-cli", "Kimi CLI", ".kimi/sessions/0123/ID/context.jsonl", "kimi --session ID"),
            (
                "kimi-code",
                "Kimi Code",
                ".kimi-code/sessions/wd_w_0123/session_ID/agents/main/wire.jsonl",
                "kimi --session session_ID",
            ),
            (
                "vibe",
                "Mistral Vibe",
                ".vibe/logs/session/session_20260701_100000_0d0f7b2c/messages.jsonl",
                "vibe --resume 0d0f7b2c",
            ),
        ];
        for (format, name, path, command) in rows {
            let path = "/h/".to_string() + &path.replace("ID", ID);
            assert_eq!(resumed(format, &path), (name, Some(command.replace("ID", ID))), "{path}");
        }
    }

    #[test]
    fn what_the_agent_would_not_resume_has_no_command() {
        for (format, name, path) in [
            // A subagent's file, a copy elsewhere, and a file named by hand.
            ("claude-code", "Claude Code", ".claude/projects/-w/ID/subagents/agent-a0b1.jsonl"),
            ("claude-code", "Claude Code", "backup/ID.jsonl"),
            ("claude-code", "Claude Code", ".claude/projects/-w/é.jsonl"),
            ("claude-code", "Claude Code", ".claude/projects/-w/$(reboot)-4c3d-8e4f-5a6b7c8d9e0f.jsonl"),
            ("codex", "Codex", ".codex/archived_sessions/rollout-2026-07-01T10-00-00-ID.jsonl"),
            ("claude-code", "iFlow", ".iflow/projects/-w/ID.jsonl"),
            ("pi", "OpenClaw", ".openclaw/agents/main/sessions/ID.jsonl"),
            ("gemini-cli", "Gemini CLI", ".gemini/tmp/w/chats/session-2026-07-01T10-00-0d0f7b2c.jsonl"),
        ] {
            let path = "/h/".to_string() + &path.replace("ID", ID);
            assert_eq!(resumed(format, &path), (name, None), "{path}");
        }
    }

    #[test]
    fn every_format_that_has_folders_names_its_agents() {
        for format in FORMATS.iter().filter(|format| !format.roots.is_empty()) {
            assert!(!format.agents.is_empty(), "{format:?}");
            for agent in format.agents.iter().filter(|agent| !agent.home.is_empty()) {
                let is_home = |home: &str| home.split('/').next() == Some(agent.home);
                assert!(format.roots.iter().any(|root| is_home(root.home)), "{format:?} {agent:?}");
            }
        }
    }
}
