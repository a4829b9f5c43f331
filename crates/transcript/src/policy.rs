//! What is asked for: limits, and which rules may act. Plain data; who chooses it is not known here.

use crate::finding::{Finding, Safety};
use crate::literal::Unit;
use crate::marker::Folder;
use alloc::string::String;
use alloc::vec::Vec;

/// Limits and permissions of one run. A limit of 0 is switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Longest text of a tool result. Default 32,000 (OpenClaw #10915).
    pub result_chars_max: u64,
    /// Share of the limit that stays at the beginning, in percent; the rest stays at the end.
    pub head_percent: u64,
    /// Other limits for single tools, by name.
    pub tool_chars_max: Vec<(String, u64)>,
    /// Tools whose results are never cut.
    pub tools_keep: Vec<String>,
    /// If not empty, only results of these tools are cut.
    pub tools_only: Vec<String>,
    /// Longest sum of the results that answer one message of the model. Default 200,000 (ChatCLI).
    pub turn_chars_max: u64,
    /// No result is cut below this for the sake of its turn. Default 2,000 (OpenClaw's floor).
    pub turn_floor_chars: u64,
    /// Longest text of one message that a summariser can take. Default 100,000 (OpenClaw #10915).
    pub summary_chars_max: u64,
    /// The model's context window in tokens. Default 200,000.
    pub window_tokens: u64,
    /// Longest string in copies of a result that the model never sees. Default 8,000 (OpenClaw bounds its
    /// `details` by 8,192 bytes).
    pub side_chars_max: u64,
    /// How lengths are counted.
    pub unit: Unit,
    /// What to do where an edit would come before signed thinking.
    pub thinking: SignedThinking,
    /// Where markers say that the whole text also lies as a plain file. Writing it there is not done here.
    pub spill: Option<Folder>,
    /// Which rules report and act.
    pub selection: Selection,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            result_chars_max: 32_000,
            head_percent: 75,
            tool_chars_max: Vec::new(),
            tools_keep: Vec::new(),
            tools_only: Vec::new(),
            turn_chars_max: 200_000,
            turn_floor_chars: 2_000,
            summary_chars_max: 100_000,
            window_tokens: 200_000,
            side_chars_max: 8_000,
            unit: Unit::Chars,
            thinking: SignedThinking::Keep,
            spill: None,
            selection: Selection::default(),
        }
    }
}

impl Policy {
    /// The limit for results of a tool, if there is one.
    pub fn limit_for(&self, tool: &[u8]) -> Option<u64> {
        let named = |names: &[String]| names.iter().any(|name| name.as_bytes() == tool);
        if named(&self.tools_keep) || (!self.tools_only.is_empty() && !named(&self.tools_only)) {
            return None;
        }
        let own = self.tool_chars_max.iter().rfind(|(name, _)| name.as_bytes() == tool);
        Some(own.map_or(self.result_chars_max, |(_, limit)| *limit)).filter(|&limit| limit > 0)
    }
}

/// What to do where a change that the model would see comes before thinking blocks whose signature covers
/// everything before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignedThinking {
    /// Hold the change back.
    #[default]
    Keep,
    /// Make the change and remove the later thinking blocks of the branch whole.
    Strip,
    /// Make the change.
    Ignore,
}

/// Which rules report, and which of their fixes are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// If not empty, only these rules.
    pub select: Vec<String>,
    /// Never these rules.
    pub ignore: Vec<String>,
    /// Guarded fixes of these rules are made as well.
    pub allow: Vec<String>,
}

impl Selection {
    /// Whether a rule takes part.
    pub fn includes(&self, code: &str) -> bool {
        let named = |codes: &[String]| codes.iter().any(|named| named == code);
        (self.select.is_empty() || named(&self.select)) && !named(&self.ignore)
    }

    /// Whether the fix of a finding is made.
    pub fn applies(&self, finding: &Finding) -> bool {
        match finding.fix.safety {
            Safety::Safe => true,
            Safety::Guarded(_) => self.allow.iter().any(|named| named == finding.rule.code()),
            Safety::Held(_) | Safety::None => false,
        }
    }
}
