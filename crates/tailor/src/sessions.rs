//! The sessions on this machine, newest first: what is known of each, and which one an id names.

pub(crate) mod row;

use crate::amount::grouped;
use crate::config::Loaded;
use crate::daemons::Daemons;
use crate::place::{portable_text, shown_word};
use crate::remedy;
use keeper::{
    FoundFile, Lack, Options, Sight, Stray, Vault, Verdicts, changed_since, find, is_in_use, known_roots,
    known_stores, maintain, owner_of, recovered_since,
};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use transcript::format::{Agent, FORMATS, Format, Index, Root};
use transcript::overflow::{Cause, Failure};
use transcript::policy::Budget;
use transcript::{Examination, Finding, Headline, Messages, Severity};

/// How many characters of an id are enough to search for it.
const ID_CHARS_MIN: usize = 4;
/// How long an agent may have written nothing and still be using a session. Older ones are not checked.
const USE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// A context that was refused as too long, but is shorter than this part of the window, has been shortened since.
const REFUSED_PERCENT_MIN: u64 = 60;
/// A context that fills at least this part of the window leaves no room for a long turn.
pub(crate) const NEARLY_FULL_PERCENT_MIN: u64 = 90;
/// A session is bloated if a repair would save at least this part of it, and at least this much.
const BLOATED_PERCENT_MIN: u64 = 20;
const BLOATED_BYTES_MIN: u64 = 100_000;

/// A file with the name of a session.
pub(crate) struct Candidate {
    found: FoundFile,
    pub(crate) modified: SystemTime,
}

impl Candidate {
    /// `None` if it is gone.
    fn of(found: FoundFile) -> Option<Self> {
        let of_file = || found.path.symlink_metadata().and_then(|there| there.modified()).ok();
        let modified = found.written.or_else(of_file)?;
        Some(Self { found, modified })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.found.path
    }

    #[cfg(feature = "interactive")]
    pub(crate) fn found(&self) -> &FoundFile {
        &self.found
    }

    /// How long ago it was written.
    pub(crate) fn age(&self) -> Duration {
        self.modified.elapsed().unwrap_or_default()
    }

    /// Whether the session has this id, or one that begins with it. A word that cannot be the beginning of an id, such
    /// as the name of a missing file, must be the whole id.
    pub(crate) fn has_id(&self, id: &str) -> bool {
        let path = self.found.path.to_str().unwrap_or_default();
        let agents = FORMATS.iter().flat_map(|format| format.agents);
        let stem = self.found.path.file_stem().and_then(|stem| stem.to_str());
        let is_digits = id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let mut ids = agents.filter_map(|agent| agent.session_id(path)).chain(stem);
        ids.any(|own| own == id || (is_digits && own.starts_with(id)))
    }
}

/// The sessions below these paths, or those of known agents, newest first, without sidechains.
pub(crate) fn candidates(paths: &[PathBuf]) -> Vec<Candidate> {
    candidates_and_errors(paths).0
}

/// The sessions below these paths, newest first, without sidechains, and what could not be searched for them.
pub(crate) fn candidates_and_errors(paths: &[PathBuf]) -> (Vec<Candidate>, Vec<keeper::Error>) {
    let (mut all, errors) = found(paths);
    all.retain(|candidate| !is_sidechain(candidate.path()));
    (all, errors)
}

/// The sessions below these paths with sidechains, which fill a disk like any other.
#[cfg(feature = "interactive")]
pub(crate) fn with_sidechains(paths: &[PathBuf]) -> Vec<Candidate> {
    found(paths).0
}

fn found(paths: &[PathBuf]) -> (Vec<Candidate>, Vec<keeper::Error>) {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for found in find(&roots(paths)) {
        match found {
            Ok(found) => all.extend(Candidate::of(found)),
            Err(error) => errors.push(error),
        }
    }
    all.sort_by(|one: &Candidate, other| (other.modified, one.path()).cmp(&(one.modified, other.path())));
    (all, errors)
}

/// Whether a file holds the conversation of a subagent, which cannot be resumed.
fn is_sidechain(path: &Path) -> bool {
    let named = |folder: &Path, name: &str| folder.file_name().is_some_and(|own| own == name);
    let is_agent = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"agent-"));
    let other_agent = path
        .parent()
        .is_some_and(|own| own.parent().is_some_and(|above| named(above, "agents")) && !named(own, "main"));
    is_agent
        || (other_agent && named(path, "wire.jsonl"))
        || path.ancestors().any(|above| named(above, "subagents"))
}

/// A path from the command line. If there is no such file, it may be a session's id or the beginning of one.
pub(crate) fn path_or_id(path: OsString) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    let id = path.to_str().filter(|text| {
        text.len() >= ID_CHARS_MIN
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    });
    let Some(id) = id.filter(|_| path.symlink_metadata().is_err()) else { return Ok(path) };
    let all = candidates(&[]);
    let mut named = all.iter().filter(|candidate| candidate.has_id(id));
    match (named.next(), named.next()) {
        (Some(one), None) => Ok(one.path().to_path_buf()),
        (Some(one), Some(other)) => Err(ambiguous(id, one.path(), other.path())),
        // The command reports that the file does not exist.
        (None, _) => Ok(path),
    }
}

/// The error for a path that is neither a file nor the id of a session.
pub(crate) fn no_such_session(path: &Path) -> String {
    format!("{}: no file or session id of this name", portable_text(path))
}

/// The text of an error about the session at this path. If there is no such file, the user may have meant an id. The
/// error alone does not tell, because it may be about another file, such as an original.
pub(crate) fn describe_error(path: &Path, error: &keeper::Error) -> String {
    let is_missing = error.is_of_no_file() && path.symlink_metadata().is_err();
    if is_missing {
        return no_such_session(path);
    }
    // As everything else names it.
    format!("{}: {}", portable_text(error.path()), error.reason(&shown_word(error.path())))
}

/// The error for an id that more than one session has.
pub(crate) fn ambiguous(id: &str, one: &Path, other: &Path) -> String {
    format!("more than one session id starts with {id}: {} and {}", shown_word(one), shown_word(other))
}

/// The paths, or where known agents keep their sessions.
pub(crate) fn roots(paths: &[PathBuf]) -> Vec<PathBuf> {
    let stores = || if cfg!(feature = "stores") { known_stores() } else { Vec::new() };
    if paths.is_empty() { [known_roots(), stores()].concat() } else { paths.to_vec() }
}

/// Whether this names the agent: its name, the first word of that, its command or its format.
pub(crate) fn is_called(agent: Option<Agent>, format: Option<&Format>, text: &str) -> bool {
    let is = |name: &str| name.eq_ignore_ascii_case(text);
    let by_agent = |agent: Agent| {
        let command = agent.resume.and_then(|resume| resume.command.first().copied());
        is(agent.name) || agent.name.split(' ').next().is_some_and(is) || command.is_some_and(is)
    };
    agent.is_some_and(by_agent) || format.is_some_and(|format| is(format.name))
}

/// An error if no agent has this name.
pub(crate) fn check_agent(text: &str) -> Result<(), String> {
    let agents = FORMATS.iter().flat_map(|format| format.agents.iter().map(move |agent| (*agent, *format)));
    if agents.clone().any(|(agent, format)| is_called(Some(agent), Some(format), text)) {
        return Ok(());
    }
    let first = |(agent, _): (Agent, _)| agent.name.split(' ').next().unwrap_or_default().to_lowercase();
    let names: BTreeSet<String> = agents.map(first).collect();
    Err(format!("no agent is called {text} ({})", Vec::from_iter(names).join(", ")))
}

/// How to examine sessions.
pub(crate) struct Looks {
    options: Options,
    verdicts: Option<Verdicts>,
    /// The vault, to know what was recovered.
    vault: Option<Vault>,
    daemons: Daemons,
}

impl Looks {
    /// With the options of `scan`, so that both can use the other's verdicts.
    pub(crate) fn new(config: &Loaded, paths: &[PathBuf]) -> Self {
        let policy = config.policies().map(|policy| policy.budget = Budget::default());
        let options = Options { policy, ..Options::default() };
        let verdicts =
            config.cache(false).and_then(|folder| Verdicts::open(&folder, &options, &roots(paths)).ok());
        let daemons = Daemons::new(config.socket());
        Self { options, verdicts, vault: config.vault().ok().map(Vault::new), daemons }
    }

    /// The verdict on a session if it has not changed since; otherwise, if `may_read`, what is found now. `None` if the
    /// file is not a session, or nothing is known about it.
    pub(crate) fn session(
        &self,
        candidate: &Candidate,
        may_read: bool,
    ) -> Result<Option<ListedSession>, keeper::Error> {
        let (path, root) = (candidate.path(), candidate.found.root.as_deref());
        let outcome = match &self.verdicts {
            Some(verdicts) if may_read => verdicts.maintain(path, root, &self.options)?,
            None if may_read => maintain(path, root, &self.options)?,
            verdicts => {
                let known = verdicts.as_ref().zip(Sight::now(path));
                match known.and_then(|(verdicts, now)| verdicts.known(path, &now)) {
                    Some(known) => known,
                    None => return Ok(Some(ListedSession::unknown(candidate))),
                }
            }
        };
        let looked = outcome.before.filter(|looked| looked.facts.format.is_some());
        Ok(looked.map(|looked| self.of_look(candidate, looked)))
    }

    fn of_look(&self, candidate: &Candidate, mut looked: Examination) -> ListedSession {
        let (path, format) = (candidate.path().to_path_buf(), looked.facts.format);
        let window = looked.context_tokens.window(self.options.policy.for_format(format));
        let is_used = candidate.age() < USE_MAX && is_in_use(&path, &looked.facts);
        let fill = Fill::new(&looked, window, Answer::new(&looked, &path, self.vault.as_ref()));
        // A daemon shortens it before it dies.
        let turns_left =
            looked.facts.turns_left.filter(|&left| left == 0 || !self.daemons.repair_stored(&path));
        looked.facts.turns_left = turns_left;
        let (state, command) = judged(&looked, &path, fill, is_used);
        let found = looked.findings.iter().map(|finding| (finding.rule.code(), finding.severity)).collect();
        ListedSession {
            agent: format.map(|format| format.agent(&path.to_string_lossy())),
            format,
            dead_weight: remedy::dead_weight(&looked.findings),
            headline: looked.headline,
            messages: looked.messages,
            bytes: looked.facts.bytes,
            tokens: Some(looked.context_tokens.tokens),
            window,
            state,
            is_long: fill == Fill::TooLong,
            is_used,
            found,
            turns_left,
            failed: looked.facts.failed,
            command,
            ..ListedSession::of_path(candidate)
        }
    }
}

/// How a session is, and the command that repairs it and nothing else, if it needs one. Its path is the last word.
fn judged(looked: &Examination, path: &Path, fill: Fill, is_used: bool) -> (SessionState, Option<String>) {
    let state = SessionState::from_examination(looked, fill, is_used);
    let command = match &state {
        SessionState::Dead(codes) | SessionState::Broken(codes) | SessionState::Forgets(codes) => {
            let is_error = |finding: &&Finding| codes.contains(&finding.rule.code());
            remedy::command(looked.findings.iter().filter(is_error), path, "")
                .or_else(|| Some(format!("tailor explain {} {}", codes[0], shown_word(path))))
        }
        SessionState::TooLong => Some(format!("tailor recover {}", shown_word(path))),
        SessionState::Dying(_) if looked.bytes_after == looked.facts.bytes => {
            let warnings = looked.findings.iter().filter(|finding| finding.severity == Severity::Warning);
            remedy::command(warnings, path, "").or_else(|| Some(format!("tailor top {}", shown_word(path))))
        }
        SessionState::Bloated | SessionState::Dying(_) => Some(format!("tailor fix {}", shown_word(path))),
        SessionState::NearlyFull => Some(format!("tailor top {}", shown_word(path))),
        SessionState::Refused => Some(format!("tailor explain {}", shown_word(path))),
        SessionState::Ok
        | SessionState::InUse
        | SessionState::Empty
        | SessionState::Unreadable
        | SessionState::Unknown => None,
    };
    (state, command)
}

/// The state of a session that is only read, whatever its agent does at the moment.
pub(crate) fn judged_apart(looked: &Examination, path: &Path, window: u64) -> (SessionState, Option<String>) {
    judged(looked, path, Fill::new(looked, window, Answer::new(looked, path, None)), false)
}

/// The folder that a session is about, in a word.
pub(crate) fn project(headline: &Headline) -> Option<&str> {
    headline.folder.as_deref()?.rsplit(['/', '\\']).find(|name| !name.is_empty())
}

/// A session, and what is wrong with it.
pub(crate) struct ListedSession {
    pub(crate) path: PathBuf,
    pub(crate) modified: SystemTime,
    /// Time since it was written.
    pub(crate) age: Duration,
    pub(crate) format: Option<&'static Format>,
    /// The agent that wrote it.
    pub(crate) agent: Option<Agent>,
    pub(crate) headline: Headline,
    pub(crate) messages: Messages,
    pub(crate) bytes: u64,
    /// The tokens of the live context; `None` if nothing is known.
    pub(crate) tokens: Option<u64>,
    pub(crate) window: u64,
    pub(crate) state: SessionState,
    /// Whether it is too long for the model's window, apart from other problems.
    pub(crate) is_long: bool,
    pub(crate) is_used: bool,
    /// The rules with findings, and their severity.
    pub(crate) found: BTreeSet<(&'static str, Severity)>,
    /// How much of it no agent loads any more, and a fix takes out when asked.
    pub(crate) dead_weight: u64,
    /// In about how many turns its agent will not load all of it any more, if that is near.
    pub(crate) turns_left: Option<u64>,
    /// The error of the last turn.
    pub(crate) failed: Option<Failure>,
    /// The command that repairs this session and nothing else.
    pub(crate) command: Option<String>,
    /// Why it could not be read, or why there is nothing in it.
    pub(crate) trouble: Option<String>,
}

impl ListedSession {
    fn of_path(candidate: &Candidate) -> Self {
        Self {
            path: candidate.path().to_path_buf(),
            modified: candidate.modified,
            age: candidate.age(),
            format: None,
            agent: None,
            headline: Headline::default(),
            messages: Messages::default(),
            bytes: 0,
            tokens: None,
            window: 0,
            state: SessionState::Unknown,
            is_long: false,
            is_used: false,
            found: BTreeSet::new(),
            dead_weight: 0,
            turns_left: None,
            failed: None,
            command: None,
            trouble: None,
        }
    }

    /// What could not be read at all; `None` if it is gone.
    pub(crate) fn unreadable(error: &keeper::Error) -> Option<Self> {
        let path = error.path();
        let found = FoundFile { path: path.to_path_buf(), root: None, written: None };
        let candidate = Candidate::of(found)?;
        let trouble = Some(error.reason(&shown_word(path)));
        Some(Self { state: SessionState::Unreadable, trouble, ..Self::unknown(&candidate) })
    }

    /// This session as one in which nothing can be read, and why.
    pub(crate) fn unread(self, state: SessionState, trouble: String) -> Self {
        Self { state, trouble: Some(trouble), command: None, ..self }
    }

    /// A session that was not examined.
    pub(crate) fn unknown(candidate: &Candidate) -> Self {
        let name = candidate.path().to_string_lossy();
        let is_below = |root: &Root| name.contains(&format!("/{}/", root.home));
        let format = FORMATS.iter().find(|format| format.roots.iter().any(is_below)).copied();
        let bytes = candidate.path().symlink_metadata().map_or(0, |there| there.len());
        let owner = owner_of(candidate.path());
        let is_owner = |agent: &&Agent| owner.is_some_and(|owner| owner.starts_with(agent.name));
        let owner = || FORMATS.iter().flat_map(|format| format.agents).find(is_owner).copied();
        let agent = format.map(|format| format.agent(&name)).or_else(owner);
        Self { format, agent, bytes, ..Self::of_path(candidate) }
    }

    /// The agent's id for it.
    pub(crate) fn id(&self) -> Option<&str> {
        self.agent.and_then(|agent| agent.session_id(self.path.to_str()?))
    }

    /// Reports a session whose messages are gone, if its agent is known to leave such files.
    pub(crate) fn emptied(&self) -> Option<Stray> {
        let agent = self.agent?;
        let Some(Index::Folders { emptied, .. }) = agent.index else { return None };
        let (id, path) = (self.id()?.to_string(), self.path.clone());
        Some(Stray { agent, lack: Lack::Messages, advice: emptied, id, path })
    }

    /// The name of its agent.
    pub(crate) fn agent_name(&self) -> &'static str {
        self.agent.map_or("?", |agent| agent.name)
    }

    /// How much of the window its context fills, in percent.
    pub(crate) fn percent(&self) -> u64 {
        percent(self.tokens.unwrap_or(0), self.window)
    }

    /// The name of the project folder.
    pub(crate) fn project(&self) -> Option<&str> {
        project(&self.headline)
    }

    /// How many messages its agent sends, if a repair brings some back.
    pub(crate) fn forgotten(&self) -> Option<String> {
        let Messages { seen, all, brought_back, .. } = self.messages;
        let [seen, all, back] = [seen, all, brought_back].map(|count| grouped(count as u64));
        let told = format!("{seen} of {all} messages are sent; the repair brings {back} back");
        (brought_back > 0).then_some(told)
    }

    /// The command that resumes it, and the folder in which to run it.
    pub(crate) fn resume(&self) -> Option<(Vec<&str>, Option<&Path>)> {
        let words = self.agent?.resume(self.path.to_str()?)?.collect();
        Some((words, self.headline.folder.as_deref().map(Path::new)))
    }
}

/// A part of the window in percent, rounded up; 0 if the window is unknown.
fn percent(tokens: u64, window: u64) -> u64 {
    if window == 0 { 0 } else { tokens.saturating_mul(100).div_ceil(window) }
}

/// Whether the last request was refused as too long, and the session was not recovered since.
pub(crate) fn is_refused(looked: &Examination, path: &Path, vault: Option<&Vault>) -> bool {
    let Some(failed) = looked.facts.failed.filter(|failed| failed.cause == Cause::ContextOverflow) else {
        return false;
    };
    let since = |vault: &Vault| recovered_since(vault, &keeper::real_path(path).ok()?, &failed).ok();
    !vault.and_then(since).unwrap_or(false)
}

/// What the provider said to the last request, if that would be sent again as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It answered, or failed for another reason than the request.
    Given,
    TooLong,
    /// The request was wrong.
    Refused,
}

impl Answer {
    fn new(looked: &Examination, path: &Path, vault: Option<&Vault>) -> Self {
        if is_refused(looked, path, vault) {
            return Self::TooLong;
        }
        let Some(failed) = looked.facts.failed.filter(|failed| failed.is_refusal) else { return Self::Given };
        let since = |vault: &Vault| changed_since(vault, &keeper::real_path(path).ok()?, &failed).ok();
        let is_other = failed.cause == Cause::ContextOverflow || vault.and_then(since).unwrap_or(false);
        if is_other { Self::Given } else { Self::Refused }
    }
}

/// How a session fits the model's window, and the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Fits,
    /// The provider refuses it for another reason than its length.
    Refused,
    /// The next long turn may be refused.
    NearlyFull,
    /// It is refused, or would be.
    TooLong,
}

impl Fill {
    fn new(looked: &Examination, window: u64, answer: Answer) -> Self {
        let filled = percent(looked.context_tokens.tokens, window);
        match filled {
            _ if filled > 100 || (answer == Answer::TooLong && filled > REFUSED_PERCENT_MIN) => Self::TooLong,
            _ if answer == Answer::Refused => Self::Refused,
            NEARLY_FULL_PERCENT_MIN.. if is_asked_in_vain(looked) => Self::TooLong,
            NEARLY_FULL_PERCENT_MIN.. => Self::NearlyFull,
            _ => Self::Fits,
        }
    }
}

/// Whether a session ends with a second prompt that nobody has answered: all that is left of a refusal where the agent records no
/// errors (Vibe).
fn is_asked_in_vain(looked: &Examination) -> bool {
    let last = looked.facts.lines;
    looked.findings.iter().any(|finding| finding.rule.is_about_unanswered() && finding.line == last)
}

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    Ok,
    /// Its agent does not load all of the conversation, and the API refuses the rest; and the rules with errors.
    Dead(Vec<&'static str>),
    /// That is so in about as many turns.
    Dying(u64),
    /// A repair would save much.
    Bloated,
    /// The agent or the API would refuse it, because of these rules.
    Broken(Vec<&'static str>),
    /// It can be sent, but damage of its links hides messages from the agent: these rules.
    Forgets(Vec<&'static str>),
    /// It is too long for the model's window.
    TooLong,
    /// The provider refuses it, for a reason that only its answer tells.
    Refused,
    /// It fills the model's window nearly.
    NearlyFull,
    /// There is no conversation in the file.
    Empty,
    /// The file, or the database, could not be read.
    Unreadable,
    /// An agent is using it.
    InUse,
    /// Not examined yet.
    Unknown,
}

impl SessionState {
    fn from_examination(looked: &Examination, fill: Fill, is_used: bool) -> Self {
        let bytes = looked.facts.bytes;
        // Limits of `scan` do not apply here.
        let is_broken =
            |finding: &&Finding| finding.severity == Severity::Error && !finding.rule.code().starts_with('L');
        let broken: BTreeSet<&str> =
            looked.findings.iter().filter(is_broken).map(|finding| finding.rule.code()).collect();
        let saved = bytes.saturating_sub(looked.bytes_after);
        let turns_left = looked.facts.turns_left;
        if turns_left == Some(0) {
            Self::Dead(broken.into_iter().collect())
        } else if !broken.is_empty() && looked.findings.iter().filter(is_broken).all(Finding::hides_messages)
        {
            Self::Forgets(broken.into_iter().collect())
        } else if !broken.is_empty() {
            Self::Broken(broken.into_iter().collect())
        } else if fill == Fill::TooLong {
            Self::TooLong
        } else if fill == Fill::Refused {
            Self::Refused
        } else if let Some(turns) = turns_left {
            Self::Dying(turns)
        } else if !is_used
            && saved >= BLOATED_BYTES_MIN
            && saved.saturating_mul(100) >= bytes.saturating_mul(BLOATED_PERCENT_MIN)
        {
            Self::Bloated
        } else if fill == Fill::NearlyFull {
            Self::NearlyFull
        } else if is_used {
            Self::InUse
        } else {
            Self::Ok
        }
    }

    /// Whether the session cannot be resumed, or not with all of its messages.
    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self, Self::Dead(_) | Self::Broken(_) | Self::Forgets(_) | Self::TooLong | Self::Refused)
            || self.is_unread()
    }

    /// Whether there is nothing to read, or nothing could be read.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(self, Self::Empty | Self::Unreadable)
    }

    /// Whether its command is worth a line: it cannot be resumed now, or will not be soon, or takes up too much room.
    pub(crate) fn needs_help(&self) -> bool {
        self.is_stuck() || matches!(self, Self::Dying(_) | Self::Bloated)
    }

    /// The rules with errors.
    pub(crate) fn codes(&self) -> &[&'static str] {
        if let Self::Dead(codes) | Self::Broken(codes) | Self::Forgets(codes) = self { codes } else { &[] }
    }

    /// The state in one word.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Dead(_) => "dead",
            Self::Dying(_) => "dying",
            Self::Bloated => "bloated",
            Self::Broken(_) => "broken",
            Self::Forgets(_) => "forgets",
            Self::TooLong => "too long",
            Self::Refused => "refused",
            Self::NearlyFull => "nearly full",
            Self::Empty => "empty",
            Self::Unreadable => "unreadable",
            Self::InUse => "in use",
            Self::Unknown => "?",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::Policy;

    const PATH: &str = ".openclaw/agents/main/sessions/0d0f7b2c-1a2b-4c3d-8e4f-5a6b7c8d9e0f.jsonl";

    #[test]
    fn of_a_session_that_was_not_looked_at_only_the_path_tells() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PATH);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{}\n").unwrap();
        let looks = Looks {
            options: Options::default(),
            verdicts: None,
            vault: None,
            daemons: Daemons::new(PathBuf::new()),
        };
        let all = candidates(&[dir.path().to_path_buf()]);
        let session = looks.session(&all[0], false).unwrap().unwrap();
        assert_eq!((session.agent_name(), session.bytes, session.tokens), ("OpenClaw", 3, None));
        assert_eq!((&session.state, session.id()), (&SessionState::Unknown, None));
        // Reading it shows that it is not a session.
        assert!(looks.session(&all[0], true).unwrap().is_none());
    }

    /// The state of a session with these findings, tokens and savings.
    fn state(codes: &[(&str, Severity)], tokens: u64, saved: u64) -> SessionState {
        let mut looked = transcript::examine(&b"{}\n".as_slice(), &Policy::default()).unwrap();
        let of = transcript::examine(&TORN.as_bytes(), &Policy::default()).unwrap();
        let like = &of.findings[0];
        for (code, severity) in codes {
            let mut finding = like.clone();
            (finding.rule, finding.severity) = (transcript::rule::find(code).unwrap(), *severity);
            finding.line = looked.facts.lines;
            looked.findings.push(finding);
        }
        looked.context_tokens.tokens = tokens;
        looked.facts.bytes = 1_000_000;
        looked.bytes_after = 1_000_000 - saved;
        SessionState::from_examination(&looked, Fill::new(&looked, 1_000, Answer::Given), false)
    }

    /// A session with something wrong in it.
    const TORN: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-07-01T10:00:00.000Z\",\"cwd\":\"/w\"}\n{\"a";

    #[test]
    fn the_worst_that_is_wrong_counts() {
        use Severity::{Error, Note, Warning};
        assert_eq!(state(&[("S1", Warning), ("S5", Note)], 890, 99_999), SessionState::Ok);
        assert_eq!(state(&[], 891, 0), SessionState::NearlyFull);
        assert_eq!(state(&[("M7", Note)], 890, 0), SessionState::Ok);
        assert_eq!(state(&[("M7", Note)], 891, 200_000), SessionState::TooLong);
        assert_eq!(state(&[("S1", Warning)], 1_000, 200_000), SessionState::Bloated);
        assert_eq!(state(&[], 1_001, 900_000), SessionState::TooLong);
        let broken = state(&[("P2", Error), ("P1", Error), ("P1", Error), ("S1", Warning)], 5_000, 900_000);
        assert_eq!(broken, SessionState::Broken(vec!["P1", "P2"]));
        // A limit that is exceeded is not a defect.
        assert_eq!(state(&[("L1", Error)], 0, 0), SessionState::Ok);
    }

    #[test]
    fn agents_have_several_names() {
        let format = FORMATS.iter().find(|format| format.name == "claude-code").copied();
        let agent = format.map(|format| format.agent(""));
        for name in ["Claude Code", "claude", "CLAUDE-CODE"] {
            assert!(is_called(agent, format, name), "{name}");
        }
        assert!(!is_called(agent, format, "code") && !is_called(None, None, ""));
    }
}
