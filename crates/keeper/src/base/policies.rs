//! The policy for each agent's transcripts. `transcript` knows what its numbers mean.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transcript::format::Format;
use transcript::{Fault, Policy, Source, scan};

/// A policy for all transcripts, and others for those of single agents.
#[derive(Clone, Debug)]
pub struct Policies {
    all: Arc<Policy>,
    agents: BTreeMap<String, Arc<Policy>>,
    /// The agents that read a transcript again for each turn, and so remember nothing.
    reloading: BTreeSet<String>,
}

impl From<Policy> for Policies {
    fn from(all: Policy) -> Self {
        Self::new(all, [])
    }
}

impl Default for Policies {
    fn default() -> Self {
        Policy::default().into()
    }
}

impl Policies {
    /// A policy, and those for agents by the name of their format.
    pub fn new(all: Policy, agents: impl IntoIterator<Item = (String, Policy)>) -> Self {
        let agents = agents.into_iter().map(|(name, policy)| (name, Arc::new(policy)));
        Self { all: Arc::new(all), agents: agents.collect(), reloading: BTreeSet::new() }
    }

    /// These policies, where these agents read a transcript again for each turn.
    #[must_use]
    pub fn reloading(self, agents: impl IntoIterator<Item = String>) -> Self {
        Self { reloading: agents.into_iter().collect(), ..self }
    }

    /// Whether an agent reads a transcript again for each turn, according to the configuration.
    pub fn reloads(&self, format: Option<&Format>) -> bool {
        format.is_some_and(|format| self.reloading.contains(format.name))
    }

    /// The policy for transcripts of agents that have none of their own.
    pub fn all(&self) -> &Arc<Policy> {
        &self.all
    }

    /// The policy for transcripts of a format.
    pub fn for_format(&self, format: Option<&Format>) -> &Arc<Policy> {
        format.and_then(|format| self.agents.get(format.name)).unwrap_or(&self.all)
    }

    /// The policy for a transcript. Reads only as much as it takes to recognise the format.
    ///
    /// # Errors
    ///
    /// When the source cannot be read.
    pub fn choose(&self, source: &dyn Source) -> Result<&Arc<Policy>, Fault> {
        Ok(self.for_format(if self.agents.is_empty() { None } else { scan::detect(source)? }))
    }

    /// Each of them.
    pub fn each(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.all).chain(self.agents.values()).map(AsRef::as_ref)
    }

    /// These policies, with a change to each of them.
    #[must_use]
    pub fn map(&self, change: impl Fn(&mut Policy)) -> Self {
        let changed = |policy: &Policy| {
            let mut policy = policy.clone();
            change(&mut policy);
            policy
        };
        let agents = self.agents.iter().map(|(name, policy)| (name.clone(), changed(policy)));
        Self::new(changed(&self.all), agents).reloading(self.reloading.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_policy_comes_first() {
        let policy = |chars| Policy { result_chars_max: chars, ..Policy::default() };
        let policies = Policies::new(policy(1), [("openai-chat".to_string(), policy(2))]);
        let chat =
            br#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{}"}}]}"#;
        for (text, chars) in [(&chat[..], 2), (b"what?", 1), (b"", 1)] {
            assert_eq!(policies.choose(&text).unwrap().result_chars_max, chars);
        }
    }
}
