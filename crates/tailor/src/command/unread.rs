//! What `tailor doctor` lists although there is nothing to read in it: empty files, and headers without a conversation.

use crate::amount::grouped;
use crate::place::{shown, shown_word};
use crate::sessions::{Candidate, ListedSession, SessionState};
use keeper::{is_read, read, searched_roots};
use spans::{Fault, Span};
use std::path::Path;
use std::time::Duration;

/// Agents write the header of a session before its first message.
const AGE_MIN: Duration = Duration::from_secs(60);
/// How many folders are named where nothing was found.
const NAMED_MAX: usize = 4;

/// The session in a file, or what to say of a file that should have one.
pub(super) fn see(
    candidate: &Candidate,
    session: Option<ListedSession>,
    all: &[Candidate],
) -> Option<ListedSession> {
    if candidate.age() < AGE_MIN {
        return session;
    }
    let Some(session) = session else { return no_session(candidate) };
    let is_header = session.tokens.is_some() && session.messages.all == 0 && session.bytes > 0;
    if session.state.is_stuck() || !is_header || session.agent.is_none() || session.emptied().is_some() {
        return Some(session);
    }
    let trouble = match session.id().and_then(|id| namesake(candidate, id, all)) {
        Some(path) => {
            format!("a header without a conversation; another file has this id: {}", shown_word(path))
        }
        None => "a header without a conversation: if there was one, only a backup has it".to_string(),
    };
    Some(session.unread(SessionState::Empty, trouble))
}

/// The file of another session with this id.
fn namesake<'a>(own: &Candidate, id: &str, all: &'a [Candidate]) -> Option<&'a Path> {
    all.iter().map(Candidate::path).find(|path| *path != own.path() && path.to_string_lossy().contains(id))
}

/// A file of an agent in which there is not one character, or one that is no database although its name says so.
pub(super) fn no_session(candidate: &Candidate) -> Option<ListedSession> {
    let path = candidate.path();
    let file = ListedSession::unknown(candidate);
    file.agent?;
    let nothing = match file.bytes {
        0 => "no bytes".to_string(),
        bytes => format!("{} NUL bytes, as a power cut leaves them", grouped(bytes)),
    };
    if is_hollow(path) {
        let trouble = format!("{nothing}: only a backup has the conversation");
        return Some(file.unread(SessionState::Empty, trouble));
    }
    let trouble = "not a database that its agent or Tailor can read: only a backup has the sessions";
    is_read(path).then(|| file.unread(SessionState::Unreadable, trouble.to_string()))
}

fn is_hollow(path: &Path) -> bool {
    let looked = read(path, None, |source| {
        let mut holds = false;
        source.pieces(Span { start: 0, end: source.len() }, &mut |piece| {
            holds = piece.iter().any(|byte| *byte != 0);
            !holds
        })?;
        Ok::<bool, Fault>(!holds)
    });
    looked.unwrap_or(false)
}

/// Where sessions were searched for.
pub(super) fn searched() -> String {
    let all = searched_roots();
    let named: Vec<String> = all.iter().take(NAMED_MAX).map(|path| shown(path)).collect();
    format!(" in {} and {} more folders of agents", named.join(", "), all.len().saturating_sub(NAMED_MAX))
}
