//! What a text is estimated at: measured numbers, as data.
//!
//! Measured in November 2026 on 52 public sessions of Claude Code, Codex, pi and Kimi CLI that hold the provider's own
//! numbers: fitted to every second file of each agent, with the least relative error, and judged on the others
//! (`real_estimates_are_near_what_providers_counted` prints the table). Both halves were seen while the form of the estimate
//! was chosen. Kimi CLI's three files are variants of one session, and Copilot's figure goes by two files. Agents that are
//! not named here were not measured. What an agent adds is a fact of its format.

use super::Entries;
use crate::format::{Estimate, Format};
use crate::model::context_tokens::Rates;
use crate::model::entry::{Entry, Kind, Mark, PieceKind, Role};
use crate::session::Session;
use spans::json::JsonText;

/// What an image is taken to cost. Providers count its pixels, and 1,600 is what Anthropic asks for one as large as it
/// keeps them (<https://docs.anthropic.com/en/docs/build-with-claude/vision>).
pub const IMAGE_TOKENS: u64 = 1_600;

/// Costs are counted in thousandths of a token.
pub(crate) const UNIT: u64 = 1_000;

/// How many thousandths of a token a character is, by how the model's name begins; the first that fits counts.
const TOKENISERS: &[(&str, u64)] = &[
    // According to Anthropic, the tokeniser since Opus 4.7 makes 1.0 to 1.35 times as many tokens of a text.
    ("claude-opus-4-7", 441),
    ("claude-opus-4-8", 441),
    ("claude-opus-5", 441),
    ("claude-sonnet-5", 441),
    ("claude-fable", 441),
    ("claude", 327),
    ("gpt", 280),
    ("o1", 280),
    ("o3", 280),
    ("o4", 280),
    ("gemini", 280),
];

/// A character of Chinese, Japanese or Korean.
const DENSE_CHAR: u64 = 1_000;
/// A byte of a thinking block with its signature, where it is sent.
const THINKING_BYTE: u64 = 180;
/// A byte of an attachment, which holds more than its text.
const ATTACHMENT_BYTE: u64 = 280;

/// A byte of an agent's instructions, which are English prose.
const INSTRUCTIONS_BYTE: u64 = 210;

/// Context windows by how the model's name begins, up to the end of a number in it; the first that fits counts. Claude since 4.6:
/// <https://platform.claude.com/docs/en/models/opus-4-6/overview>, read in November 2026; older ones have 200,000, or more where
/// the account asks for it. The others are what their providers published when the models came out.
const WINDOWS: &[(&str, u64)] = &[
    ("claude-opus-4-6", 1_000_000),
    ("claude-opus-4-7", 1_000_000),
    ("claude-opus-4-8", 1_000_000),
    ("claude-opus-5", 1_000_000),
    ("claude-sonnet-4-6", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("claude-fable", 1_000_000),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-5.3-codex-spark", 128_000),
    ("gpt-5", 400_000),
    ("gpt-5.1", 400_000),
    ("gpt-5.2", 400_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini", 1_048_576),
];

impl Rates {
    /// Four characters are a token, as other systems count.
    pub(crate) const QUARTER: Self =
        Self { base: 0, char: Estimate::BASE.char, thinking: Estimate::BASE.char };

    /// Characters themselves, in thousandths.
    pub(crate) const CHARACTERS: Self = Self { base: 0, char: UNIT, thinking: UNIT };

    /// Those of a session.
    pub(crate) fn for_session(session: &Session<'_>) -> Self {
        Self::with(session.format, super::model_of(session))
    }

    /// Those of sessions of a format with this model.
    pub(super) fn with(format: &Format, model: &[u8]) -> Self {
        let (model, estimate) = (named(model), &format.estimate);
        let thinking = format.content.thinking && estimate.sends_thinking;
        Self {
            base: first(estimate.added, model).unwrap_or(0),
            char: first(TOKENISERS, model).unwrap_or(estimate.char),
            thinking: if thinking { THINKING_BYTE } else { 0 },
        }
    }

    /// So many characters.
    pub(crate) fn text(self, chars: u64) -> u64 {
        chars.saturating_mul(self.char)
    }

    /// The text of a result.
    pub(crate) fn body(self, text: &JsonText) -> u64 {
        if is_dense(text.inner.len(), text.chars) { dense(text.chars) } else { self.text(text.chars) }
    }

    /// A piece of an entry, in tokens.
    pub(crate) fn piece(self, piece: &Mark) -> u64 {
        let cost = match piece.kind {
            PieceKind::Side => 0,
            PieceKind::Image => IMAGE_TOKENS * UNIT,
            PieceKind::Thinking => piece.span.len() * self.thinking,
            PieceKind::Result if is_dense(piece.span.len(), piece.chars) => piece.chars * DENSE_CHAR,
            _ => self.text(piece.chars),
        };
        cost.div_ceil(UNIT)
    }

    /// All that the model sees of an entry.
    pub(super) fn entry(self, all: Entries<'_>, index: u32) -> u64 {
        let (transcript, found) = (all.transcript, all.entry(index));
        let calls: u64 = transcript.calls_of(index).map(|call| transcript.calls[call].sent_bytes).sum();
        let thinking: u64 = transcript.thinking_of(index).iter().map(|block| block.block.len()).sum();
        let (mut cost, mut chars, mut images) = (0, found.text_chars, 0);
        for result in transcript.results_of(index) {
            images += u64::from(transcript.results[result].images);
            for text in transcript.bodies_of(result) {
                cost += self.body(text);
                chars = chars.saturating_sub(text.chars);
            }
        }
        // Those of results are among those of the entry, but not all formats note both.
        images = images.max(transcript.images_of(index).len() as u64);
        cost += self.text(chars + calls) + thinking * self.thinking + images * IMAGE_TOKENS * UNIT;
        let attached = found.text_chars == 0
            && matches!(found.kind, Kind::Note | Kind::Boundary)
            && !(all.format.results.of_conversations() && found.kind == Kind::Note);
        if attached { cost + found.span.len() * ATTACHMENT_BYTE } else { cost }
    }

    /// Instructions whose text is not read on its own.
    pub(super) fn instructions(session: &Session<'_>, index: u32) -> u64 {
        session.entry(index).span.len() * INSTRUCTIONS_BYTE
    }
}

/// Whether an entry holds instructions whose text is not read; the newest replaces those before it.
pub(super) fn is_instructions(found: &Entry) -> bool {
    found.kind == Kind::Message(Role::System) && found.text_chars == 0 && !found.is_sidechain
}

/// So many characters of Chinese, Japanese or Korean.
pub(crate) fn dense(chars: u64) -> u64 {
    chars.saturating_mul(DENSE_CHAR)
}

/// Whether a text takes more than twice as many bytes as it has characters: it is mostly Chinese, Japanese or Korean,
/// of which each character may be a token.
pub(crate) fn is_dense(bytes: u64, chars: u64) -> bool {
    bytes > chars.saturating_mul(2)
}

/// The context window of a model; `None` if its name does not tell.
pub(super) fn window_of(model: &[u8]) -> Option<u64> {
    // `gpt-5` is another model than `gpt-5.9`.
    let model = named(model);
    let ends =
        |begin: &str| !model.get(begin.len()).is_some_and(|next| next.is_ascii_digit() || *next == b'.');
    let found = WINDOWS.iter().find(|(begin, _)| model.starts_with(begin.as_bytes()) && ends(begin));
    found.map(|(_, window)| *window)
}

/// A model's name without its provider's.
fn named(model: &[u8]) -> &[u8] {
    model.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

fn first(table: &[(&str, u64)], model: &[u8]) -> Option<u64> {
    table.iter().find(|(begin, _)| model.starts_with(begin.as_bytes())).map(|(_, number)| *number)
}
