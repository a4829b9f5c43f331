//! How a session is recognised by a person: its title, or else how it begins, and the folder that it is about.

use crate::format::EntryPart;
use crate::model::entry::{Kind, Role};
use crate::rule::unseen_title::Titles;
use crate::session::Session;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use spans::json::{self, Doc, Value};
use spans::literal;
use spans::source::{Fault, Span};

/// How many characters of a title are kept.
const TITLE_CHARS_MAX: usize = 120;
/// How many records are asked for a folder, and how many messages for something that a person said.
const RECORDS_MAX: usize = 8;
/// Longer records are not read for it: there may be an image in them.
const RECORD_BYTES_MAX: u64 = 1 << 16;

/// Where records name the folder in which the agent works.
const FOLDERS: &[&[&str]] = &[&["cwd"], &["payload", "cwd"], &["data", "context", "cwd"], &["working_dir"]];
/// Where records hold a title.
const TITLES: &[&str] = &["customTitle", "aiTitle"];
/// What the text of a user message begins with that a program wrote.
const MADE: &[&str] = &["<", "# AGENTS.md", "Caveat: "];

/// How a person recognises a session. This is content: it is for the owner's terminal, and never for a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headline {
    /// Its title, or the first words that a person said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The folder in which the agent worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

impl Headline {
    /// Whether what comes after so many entries changes nothing about it, as long as that is no title.
    pub(crate) fn is_settled(&self, entries: usize) -> bool {
        self.title.is_some() && (self.folder.is_some() || entries >= RECORDS_MAX)
    }

    pub(super) fn from_session(session: &Session<'_>) -> Result<Self, Fault> {
        let title = match Titles::from_transcript(session.transcript).best() {
            Some(at) => titled(session, at)?,
            None => None,
        };
        let title = match title {
            None => first_words(session)?,
            title => title,
        };
        Ok(Self { title, folder: folder(session)? })
    }
}

fn titled(session: &Session<'_>, at: Span) -> Result<Option<String>, Fault> {
    let Some(doc) = parse(session, at)? else { return Ok(None) };
    Ok(TITLES.iter().find_map(|key| doc.get(key)).and_then(short))
}

fn first_words(session: &Session<'_>) -> Result<Option<String>, Fault> {
    let said = session.transcript.entries.iter().filter(|entry| {
        entry.kind == Kind::Message(Role::User) && entry.text_chars > 0 && !entry.is_sidechain
    });
    for entry in said.take(RECORDS_MAX) {
        let Some(doc) = parse(session, entry.span)? else { continue };
        let mut words = None;
        (session.format.parts)(&doc, &mut |part| {
            if let EntryPart::Text(text) = part {
                let text = short(text).filter(|text| !MADE.iter().any(|made| text.starts_with(made)));
                words = words.take().or(text);
            }
        });
        if words.is_some() {
            return Ok(words);
        }
    }
    Ok(None)
}

fn folder(session: &Session<'_>) -> Result<Option<String>, Fault> {
    for entry in session.transcript.entries.iter().take(RECORDS_MAX) {
        let Some(doc) = parse(session, entry.span)? else { continue };
        let inside = |path: &&[&str]| {
            let (first, rest) = path.split_first()?;
            rest.iter().try_fold(doc.get(first)?, |value, key| value.get(key))
        };
        if let Some(text) = FOLDERS.iter().find_map(inside).and_then(Value::text) {
            return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
        }
    }
    Ok(None)
}

fn parse(session: &Session<'_>, at: Span) -> Result<Option<Doc>, Fault> {
    if at.len() > RECORD_BYTES_MAX { Ok(None) } else { json::parse(session.source, at) }
}

/// The beginning of a text on one line; `None` if it is blank.
fn short(text: Value<'_>) -> Option<String> {
    let text = literal::decode(text.prefix());
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(TITLE_CHARS_MAX).collect();
    let line = line.trim_start_matches(char::REPLACEMENT_CHARACTER).trim();
    (!line.is_empty()).then(|| line.to_string())
}

#[cfg(test)]
mod tests {
    use crate::Policy;
    use crate::examine::mend::examine;
    use alloc::string::ToString;

    #[track_caller]
    fn is(text: &str, title: Option<&str>, folder: Option<&str>) {
        let found = examine(&text.as_bytes(), &Policy::default()).unwrap();
        assert!(found.facts.format.is_some());
        assert_eq!((found.headline.title.as_deref(), found.headline.folder.as_deref()), (title, folder));
    }

    const CLAUDE: &str = r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","cwd":"/w/shop","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"user","content":"<command-name>/clear</command-name>"}}
{"type":"user","uuid":"b","parentUuid":"a","sessionId":"s","cwd":"/w/shop","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":" fix the\n  \u00e9 login "}]}}
"#;

    #[test]
    fn a_title_counts_before_the_first_words_of_a_person() {
        is(CLAUDE, Some("fix the é login"), Some("/w/shop"));
        let made = CLAUDE.to_string() + r#"{"type":"ai-title","sessionId":"s","aiTitle":"Login"}"#;
        is(&made, Some("Login"), Some("/w/shop"));
        let given = made + "\n" + r#"{"type":"custom-title","sessionId":"s","customTitle":"Mine"}"#;
        is(&given, Some("Mine"), Some("/w/shop"));
    }

    #[test]
    fn other_formats_name_the_folder_elsewhere() {
        is(
            r#"{"timestamp":"2026-07-01T10:00:00.000Z","type":"session_meta","payload":{"id":"s","cwd":"/w/c"}}
{"timestamp":"2026-07-01T10:00:00.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}
{"timestamp":"2026-07-01T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list files"}]}}
"#,
            Some("list files"),
            Some("/w/c"),
        );
        is(
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w/p"}
"#,
            None,
            Some("/w/p"),
        );
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = CLAUDE.replace("fix the", &"é".repeat(50_000));
        let found = examine(&long.as_bytes(), &Policy::default()).unwrap();
        assert_eq!(found.headline.title, None, "so long a record is not read");
        let long = CLAUDE.replace("fix the", &"é".repeat(1_000));
        let found = examine(&long.as_bytes(), &Policy::default()).unwrap();
        assert!(
            found.headline.title.is_some_and(|title| title.chars().count() <= 120 && title.starts_with('é'))
        );
    }
}
