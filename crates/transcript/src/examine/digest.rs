//! An examination as data that can be stored: enough to print and count the findings without reading the file again. It holds
//! no plan, so nothing can be changed with it.

use super::context::Messages;
use super::headline::Headline;
use super::look::Examination;
use crate::format::{Format, OutsideCount, SupportLevel};
use crate::model::context_tokens::ContextTokens;
use crate::model::finding::{Finding, Fix, Held, Labels, Safety, SecretMark, Severity};
use crate::rule;
use crate::session::Facts;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// An examination to be stored. It refers to texts of the program, so only the build that wrote it may read it.
#[derive(Serialize, Deserialize)]
pub struct Digest<'a> {
    facts: Facts,
    headline: Cow<'a, Headline>,
    messages: Messages,
    bytes_after: u64,
    context_tokens: ContextTokens,
    findings: Vec<StoredFinding<'a>>,
}

/// A finding to be stored. Empty fields are left out, because a session may have thousands of findings.
#[derive(Serialize, Deserialize)]
struct StoredFinding<'a> {
    code: Cow<'a, str>,
    severity: Severity,
    line: u64,
    labels: Cow<'a, Labels>,
    #[serde(default, skip_serializing_if = "is_zero")]
    more: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chars: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saves_bytes: Option<u64>,
    message: Cow<'a, str>,
    fix: Safety,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<Cow<'a, SecretMark>>,
    /// Why it is held, if that is one of the texts that the caller knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<Cow<'a, str>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl<'a> Digest<'a> {
    /// An examination to be stored; `None` if it cannot be: a repair revealed a finding, or a fix was tried and made
    /// something worse.
    pub fn from_examination(found: &'a Examination, whys: &[&'static str]) -> Option<Self> {
        let format = found.facts.format;
        let stored = |finding: &'a Finding| {
            let fix = finding.fix.safety;
            let why = match fix {
                Safety::Held(Held::ReadOnly(why) | Held::SettledOnly(why) | Held::RowsOnly(why))
                    if whys.contains(&why) =>
                {
                    Some(why)
                }
                _ => None,
            };
            let stays = !finding.uncovered && restored(fix, format, why) == Some(fix);
            stays.then(|| StoredFinding {
                code: finding.rule.code().into(),
                severity: finding.severity,
                line: finding.line,
                labels: Cow::Borrowed(&finding.labels),
                more: finding.more,
                chars: finding.chars,
                saves_bytes: finding.saves_bytes,
                message: finding.message.as_str().into(),
                fix,
                secret: finding.secret.as_ref().map(Cow::Borrowed),
                why: why.map(Cow::Borrowed),
            })
        };
        Some(Self {
            facts: found.facts,
            headline: Cow::Borrowed(&found.headline),
            messages: found.messages,
            bytes_after: found.bytes_after,
            context_tokens: found.context_tokens,
            findings: found.findings.iter().map(stored).collect::<Option<_>>()?,
        })
    }

    /// What is in the transcript.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The digest after an append that does not change the findings.
    #[must_use]
    pub fn grown(self, facts: Facts, (messages, context_tokens): (Messages, ContextTokens)) -> Self {
        let bytes_after = (self.bytes_after + facts.bytes).saturating_sub(self.facts.bytes);
        Self { facts, messages, bytes_after, context_tokens, ..self }
    }

    /// The examination; `None` if it names a rule that does not exist.
    pub fn examination(self, whys: &[&'static str]) -> Option<Examination> {
        let format = self.facts.format;
        let found = |stored: StoredFinding<'_>| {
            let why = stored.why.map(|own| whys.iter().copied().find(|why| *why == own));
            // A text that is not known any more cannot be told.
            let why = why.map_or(Some(None), |known| known.map(Some))?;
            Some(Finding {
                rule: rule::find(&stored.code)?,
                severity: stored.severity,
                line: stored.line,
                labels: stored.labels.into_owned(),
                uncovered: false,
                more: stored.more,
                at: 0,
                spot: None,
                entry: None,
                call: None,
                tool: None,
                chars: stored.chars,
                saves_bytes: stored.saves_bytes,
                message: stored.message.into_owned(),
                fix: Fix { safety: restored(stored.fix, format, why)?, ops: Vec::new() },
                secret: stored.secret.map(Cow::into_owned),
            })
        };
        Some(Examination {
            headline: self.headline.into_owned(),
            messages: self.messages,
            findings: self.findings.into_iter().map(found).collect::<Option<_>>()?,
            bytes_after: self.bytes_after,
            context_tokens: self.context_tokens,
            ..Examination::of_unknown(self.facts)
        })
    }
}

/// A safety with its text, which the caller knows or the format; `None` if it is the outcome of a repair that was tried.
fn restored(safety: Safety, format: Option<&Format>, why: Option<&'static str>) -> Option<Safety> {
    Some(Safety::Held(match (safety, why) {
        (Safety::Held(Held::ReadOnly(_)), Some(why)) => Held::ReadOnly(why),
        (Safety::Held(Held::SettledOnly(_)), Some(why)) => Held::SettledOnly(why),
        (Safety::Held(Held::RowsOnly(_)), Some(why)) => Held::RowsOnly(why),
        (Safety::Held(Held::ReadOnly(_)), None) => match format?.level {
            SupportLevel::ReadOnly(why) => Held::ReadOnly(why),
            _ => Held::ReadOnly(format?.single_files_read_only?),
        },
        (Safety::Held(Held::Counted(_)), _) => match format?.counted? {
            OutsideCount::Records(place)
            | OutsideCount::Number(place)
            | OutsideCount::Lines(place)
            | OutsideCount::UpToCompaction(place)
            | OutsideCount::UpToCount(place) => Held::Counted(place),
        },
        (Safety::Held(Held::Offsets(_)), _) => Held::Offsets(format?.single_files_offsets?),
        (Safety::Held(Held::Worse(_) | Held::SettledOnly(_) | Held::RowsOnly(_)), _) => return None,
        (other, _) => return Some(other),
    }))
}
