//! Which contract a session was written under: by the provider that its format records, or the model.

use super::base::Contract;
use super::{of_model, of_provider};
use crate::model::entry::{Kind, Role};
use crate::session::Session;
use alloc::string::String;
use alloc::vec::Vec;
use spans::json::{self, Doc, Value};
use spans::source::Fault;

/// Who answered some of the turns of a session in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The provider as the session names it; empty if it names none.
    pub provider: String,
    /// The model; empty if the session names none.
    pub model: String,
    /// The name of the contract; `None` if neither provider nor model is known.
    pub contract: Option<&'static str>,
    /// The lines of the first and of the last of these turns.
    pub lines: [u64; 2],
}

/// Who answered, in the order of the conversation; the last one counts. Turns that name nobody belong to those before.
pub fn recorded(session: &Session<'_>) -> Result<Vec<Recorded>, Fault> {
    let mut all: Vec<Recorded> = Vec::new();
    let mut provider = String::new();
    let header = (0..).zip(&session.transcript.entries).find(|(_, entry)| entry.kind == Kind::Header);
    for entry in header.map(|(entry, _)| entry).into_iter().chain(session.sent()) {
        if !matches!(session.kind(entry), Kind::Header | Kind::Message(Role::Assistant)) {
            continue;
        }
        if let Some(doc) = provider_doc(session, entry)? {
            provider = doc;
        }
        let model = session.transcript.id_text(session.entry(entry).model);
        // `<synthetic>`: the agent wrote the message itself.
        if model.starts_with(b"<") {
            continue;
        }
        let model = String::from_utf8_lossy(model).into_owned();
        let line = session.entry(entry).line;
        match all.last_mut() {
            Some(last) if model.is_empty() || (last.model == model && last.provider == provider) => {
                last.lines[1] = line;
            }
            _ if model.is_empty() && provider.is_empty() => {}
            _ => {
                let found = contract_of(&provider, &model).map(|contract| contract.name);
                all.push(Recorded {
                    provider: provider.clone(),
                    model,
                    contract: found,
                    lines: [line, line],
                });
            }
        }
    }
    Ok(all)
}

/// The provider that a record names, as its format writes it.
fn provider_doc(session: &Session<'_>, entry: u32) -> Result<Option<String>, Fault> {
    let paths = session.format.provider_at;
    if paths.is_empty() {
        return Ok(None);
    }
    let doc = json::parse(session.source, session.entry(entry).span)?;
    let named = |doc: &Doc| {
        let at = |path: &&[&str]| path.iter().try_fold(doc.root()?, |value, name| value.get(name));
        paths
            .iter()
            .find_map(at)
            .and_then(Value::text)
            .map(|name| String::from_utf8_lossy(&name).into_owned())
    };
    Ok(doc.as_ref().and_then(named))
}

/// A provider that serves models of others, such as a router, is none that is known, and the model decides.
fn contract_of(provider: &str, model: &str) -> Option<&'static Contract> {
    of_provider(provider).or_else(|| of_model(model))
}
