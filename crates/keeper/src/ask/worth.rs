//! Whether mending a file is worth writing all of it anew. A daemon that did so for every little thing would write a
//! session of megabytes hundreds of times a day.

use crate::ask::deferral::Deferral;
use transcript::finding::Severity;
use transcript::{Examination, Finding, Policy, Repair};

/// What makes it worth while: any of these, an error that is mended, or messages that come back. 0 switches one off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worth {
    /// So many bytes are saved.
    pub saved_bytes_min: u64,
    /// So much of the file is saved, or of what the model is sent: where texts keep their place in the file, only that.
    pub saved_percent_min: u64,
    /// The context fills so much of its window, and would fill less of it.
    pub context_percent_min: u64,
}

impl Default for Worth {
    fn default() -> Self {
        Self { saved_bytes_min: 1 << 20, saved_percent_min: 2, context_percent_min: 80 }
    }
}

impl Worth {
    /// Why a repair has to wait until it is worth more.
    pub(crate) fn waits(self, before: &Examination, repair: &Repair, policy: &Policy) -> Option<Deferral> {
        let after = repair.after.as_ref()?;
        let bytes = before.facts.bytes;
        let saved = bytes.saturating_sub(after.facts.bytes);
        let reaches = |part: u64, of: u64, percent: u64| {
            percent > 0 && part.saturating_mul(100) >= of.saturating_mul(percent)
        };
        let shorter = (self.saved_bytes_min > 0 && saved >= self.saved_bytes_min)
            || reaches(saved, bytes, self.saved_percent_min);
        let (tokens, window) = (before.context_tokens.tokens, before.context_tokens.window(policy));
        let unsent = tokens.saturating_sub(after.context_tokens.tokens);
        let lighter = reaches(unsent, tokens, self.saved_percent_min) && unsent > 0;
        let full = window > 0 && unsent > 0 && reaches(tokens, window, self.context_percent_min);
        let worth =
            shorter || lighter || full || errors(after) < errors(before) || before.messages.brought_back > 0;
        (!worth).then_some(Deferral::NotWorth { saved, bytes })
    }
}

fn errors(found: &Examination) -> u64 {
    found.findings.iter().filter(|finding| finding.severity == Severity::Error).map(Finding::count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::mend;

    /// A session with a result of so many characters that is cut, after this much that is not.
    fn session(result: usize, more: usize) -> String {
        let line = |id: &str, parent: &str, said: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{said}}}"#
            )
        };
        let text = |chars: usize| "lorem ipsum ".repeat(chars / 12);
        let result = format!(
            r#"{{"role":"toolResult","toolCallId":"t","toolName":"bash","content":[{{"type":"text","text":"{}"}}],"isError":false}}"#,
            text(result)
        );
        let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"bash","arguments":{}}],"stopReason":"toolUse"}"#;
        let header =
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
        let user = format!(r#"{{"role":"user","content":"{}"}}"#, text(more));
        let end = r#"{"role":"assistant","content":[{"type":"text","text":"ok"}],"stopReason":"stop"}"#;
        let lines = [
            header.to_string(),
            line("a", "null", &user),
            line("b", "\"a\"", call),
            line("c", "\"b\"", &result),
            line("d", "\"c\"", end),
        ];
        lines.join("\n") + "\n"
    }

    fn waits(worth: Worth, text: &str, window_tokens: u64) -> bool {
        let policy = Policy { window_tokens: Some(window_tokens), ..Policy::default() };
        let mended = mend(&text.as_bytes(), &policy).unwrap();
        let repair = mended.repair.unwrap();
        assert!(!repair.plan.is_empty());
        worth.waits(&mended.before, &repair, &policy).is_some()
    }

    #[test]
    fn each_limit_counts_by_itself() {
        const NONE: Worth = Worth { saved_bytes_min: 0, saved_percent_min: 0, context_percent_min: 0 };
        // Some 8,000 of 1,000,000 characters are cut, and 250,000 tokens are sent.
        let text = session(40_000, 960_000);
        let million = 1_000_000;
        for (worth, expected) in [
            (NONE, true),
            (Worth::default(), true),
            (Worth { saved_bytes_min: 5_000, ..NONE }, false),
            (Worth { saved_bytes_min: 50_000, ..NONE }, true),
            (Worth { saved_percent_min: 1, ..NONE }, true),
            (Worth { context_percent_min: 20, ..NONE }, false),
            (Worth { context_percent_min: 40, ..NONE }, true),
        ] {
            assert_eq!(waits(worth, &text, million), expected, "{worth:?}");
        }
        assert!(!waits(Worth::default(), &text, 200_000), "the context is full");
        assert!(!waits(Worth { saved_percent_min: 10, ..NONE }, &session(40_000, 0), million));
        assert!(waits(Worth { context_percent_min: 1, ..NONE }, &text, 0), "the window is not known");
        let unsent = format!(
            "{{\"type\":\"custom\",\"id\":\"x\",\"parentId\":\"d\",\"data\":\"{}\"}}\n",
            "x".repeat(960_000)
        );
        let mostly_unsent = session(40_000, 0) + &unsent;
        assert!(
            !waits(Worth { saved_percent_min: 10, ..NONE }, &mostly_unsent, million),
            "a fifth of what is sent"
        );
    }

    #[test]
    fn an_error_does_not_wait() {
        let text = session(100, 0).replace("\"toolCallId\":\"t\"", "\"toolCallId\":\"u\"");
        assert!(!waits(Worth { saved_bytes_min: 0, saved_percent_min: 0, context_percent_min: 0 }, &text, 0));
    }
}
