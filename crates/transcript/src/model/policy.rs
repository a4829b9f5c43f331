//! The policy of a run: limits, and which rules may act. Plain data.

use crate::model::finding::{Finding, Safety};
use crate::model::image::ImageKind;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use spans::cut::CutLines;
use spans::literal::Unit;
use spans::marker::TextFolder;

/// The context window assumed for an unknown model, in tokens.
pub const WINDOW_TOKENS: u64 = 200_000;

/// The limit of a result that nobody has chosen.
pub(crate) const RESULT_CHARS_MAX: u64 = 32_000;

/// Limits and permissions of one run, with the windows that configurations state. A limit of 0 is switched off. What is the case
/// with a session while it is looked at is a [`Situation`](crate::situation::Situation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The name of the format that a text is taken for, as of one line of a data set whose format is known; by default the
    /// text says it.
    pub format: Option<&'static str>,
    /// Longest text of a tool result. Default 32,000 (OpenClaw #10915).
    pub result_chars_max: u64,
    /// What stays of a result that is longer. Default: three quarters from the beginning, one quarter from the end.
    pub shape: CutShape,
    /// Other limits for single tools, which replace the general one; see [`is_named`] for names.
    pub tool_chars_max: Vec<(String, u64)>,
    /// Limits of single tools that apply before the general one, each with a shape of its own.
    pub tool_caps: Vec<ToolCap>,
    /// Tools whose results are never cut.
    pub tools_keep: Vec<String>,
    /// If not empty, only results of these tools are cut.
    pub tools_only: Vec<String>,
    /// Whether results that hold an image are left alone (OpenClaw #5057).
    pub skip_images: bool,
    /// Longest sum of the results for one assistant message. Default 200,000 (ChatCLI).
    pub turn_chars_max: u64,
    /// No result is cut below this because its turn is too long. Default 2,000 (OpenClaw's floor).
    pub turn_floor_chars: u64,
    /// Longest text of one message that a summariser can take. Default 100,000 (OpenClaw #10915).
    pub summary_chars_max: u64,
    /// The model's context window in tokens; 0 if it is unknown. Default: known from the file or the model's name, or
    /// else 200,000.
    pub window_tokens: Option<u64>,
    /// Windows that the configuration of agents states for their models. They count before what the model's name tells, and after
    /// what a session or an error says.
    pub model_windows: Arc<[ModelWindow]>,
    /// Longest string in copies of a result that the model never sees. Default 8,000 (OpenClaw bounds its
    /// `details` by 8,192 bytes).
    pub side_chars_max: u64,
    /// Which images can be sent.
    pub images: Images,
    /// Makes images smaller that are too large. Default: none, and a line of text replaces them.
    pub downscale: Option<Downscale>,
    /// Longest text of one assistant message in context. Default 0: any length.
    pub reply_chars_max: u64,
    /// How results are shortened as the conversation goes on. Default: not at all.
    pub stale: Stale,
    /// How results are shortened when the window fills up. Default: from 80 % of it on, to below 60 %.
    pub crowded: Crowded,
    /// How lengths are counted.
    pub unit: Unit,
    /// What to do with an edit before signed thinking.
    pub thinking: SignedThinking,
    /// The folder in which markers say that the full text is a plain file. The caller writes the file.
    pub spill: Option<TextFolder>,
    /// What a check allows. Default: anything.
    pub budget: Budget,
    /// What a person calls a secret, besides what everybody does.
    pub secrets: Arc<[OwnSecret]>,
    /// Which rules report and act.
    pub selection: Selection,
}

/// A kind of secret that a person knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnSecret {
    /// Its name, as findings and masks say it.
    pub name: String,
    /// What it begins with; letters, digits, dots, hyphens and underscores follow, eight at least.
    pub begins: String,
}

/// A model's context window, according to the configuration of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelWindow {
    /// The format of the agent's sessions.
    pub format: &'static str,
    /// The model, as its messages name it.
    pub model: String,
    /// How many tokens it takes.
    pub tokens: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            format: None,
            result_chars_max: RESULT_CHARS_MAX,
            shape: CutShape::default(),
            tool_chars_max: Vec::new(),
            tool_caps: Vec::new(),
            tools_keep: Vec::new(),
            tools_only: Vec::new(),
            skip_images: false,
            turn_chars_max: 200_000,
            turn_floor_chars: 2_000,
            summary_chars_max: 100_000,
            window_tokens: None,
            model_windows: Arc::default(),
            side_chars_max: 8_000,
            images: Images::default(),
            downscale: None,
            reply_chars_max: 0,
            stale: Stale::default(),
            crowded: Crowded::default(),
            unit: Unit::Chars,
            thinking: SignedThinking::Keep,
            spill: None,
            budget: Budget::default(),
            secrets: Arc::default(),
            selection: Selection::default(),
        }
    }
}

impl Policy {
    /// The model's context window, if only the policy is known.
    pub fn window_tokens(&self) -> u64 {
        self.window_tokens.unwrap_or(WINDOW_TOKENS)
    }

    /// Whether results of a tool may be cut at all.
    pub fn may_cut(&self, tool: &[u8]) -> bool {
        let only = self.tools_only.is_empty() || is_named(&self.tools_only, tool);
        only && !is_named(&self.tools_keep, tool)
    }

    /// Whether everything before the newest turn stays as it is: results never become stale, and assistant messages
    /// have no limit.
    pub(crate) fn is_about_the_newest(&self) -> bool {
        !self.ages() && self.reply_chars_max == 0
    }

    /// Leaves older history alone while a prompt cache may hold it, for a situation in which that is held. Rules that would change it do not even run, so that
    /// appends can be judged alone ([`crate::judge`]).
    pub fn leave_history(&mut self) {
        (self.stale.shorten_at, self.stale.clear_at, self.reply_chars_max) = (0, 0, 0);
        if self.crowded.spares_caches() {
            self.crowded.trim_percent = 0;
        }
    }

    /// Whether results become stale.
    fn ages(&self) -> bool {
        self.stale.shorten_at > 0 || self.stale.clear_at > 0 || self.crowded.spares_caches()
    }

    /// Whether some fix would change what the agent has sent many times, and so cost the prompt cache: stale results,
    /// assistant messages, and thinking that is removed because of an edit before it.
    pub fn rewrites_history(&self) -> bool {
        self.ages() || self.reply_chars_max > 0 || self.thinking != SignedThinking::Keep
    }

    /// The limits for a result of a tool, in the order in which they apply: the first that it exceeds counts.
    pub fn caps_for(&self, tool: &[u8], error: bool) -> [Option<Cap>; 2] {
        if !self.may_cut(tool) {
            return [None; 2];
        }
        let named = |pattern: &str| is_named(&[pattern], tool);
        let asked = self.tool_chars_max.iter().rfind(|(pattern, _)| named(pattern)).map(|(_, limit)| *limit);
        let own = self.tool_caps.iter().find(|own| named(&own.tool));
        let own = own.filter(|own| asked.is_none() && (own.errors || !error)).map(|own| own.cap);
        let chars_max = asked.unwrap_or(self.result_chars_max);
        let all = Cap { chars_max, lines_max: 0, shape: self.shape, paged: false };
        [own, Some(all)].map(|cap| cap.filter(|cap| cap.chars_max > 0))
    }
}

/// How detailed an examination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// No more than how long the text would be afterwards; notes in markers are estimated.
    Sizes,
    /// A plan that can be tried, but without the ids of texts that are cut: these need not be hashed.
    Trial,
    /// A plan that can be carried out.
    Plan,
}

/// Which images can be sent. The defaults are Anthropic's limits, which are the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images {
    /// Longest base64 of one. Default 5 MiB.
    pub bytes_max: u64,
    /// Longest side of one in pixels. Default 8,000.
    pub pixels_max: u64,
    /// With more images than this, each must be smaller. Default 20.
    pub many: u64,
    /// Longest side in pixels then. Default 2,000.
    pub many_pixels_max: u64,
    /// Most images. Default 100.
    pub count_max: u64,
    /// Longest base64 of all together. Default 30 million, of the 32 MB of a request.
    pub total_bytes_max: u64,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            bytes_max: 5 << 20,
            pixels_max: 8_000,
            many: 20,
            many_pixels_max: 2_000,
            count_max: 100,
            total_bytes_max: 30_000_000,
        }
    }
}

/// An image that is too large, and how large it may be.
#[derive(Clone, Copy, Debug)]
pub struct TooLarge<'b> {
    /// The file, as it was before base64.
    pub file: &'b [u8],
    /// Its kind, according to its first bytes.
    pub kind: ImageKind,
    /// Longest side of the smaller image, in pixels.
    pub pixels_max: u32,
    /// Most bytes of the smaller image.
    pub bytes_max: u64,
}

/// Makes an image smaller: a file of the same kind within the limits, or `None` if it cannot be decoded or made small
/// enough. The same input gives the same output. It is a callback because decoders of untrusted images allocate and may
/// panic, which this crate must not do.
#[derive(Clone, Copy)]
pub struct Downscale(pub fn(TooLarge<'_>) -> Option<Vec<u8>>);

/// Without the function's address, which differs between runs.
impl fmt::Debug for Downscale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Downscale")
    }
}

impl PartialEq for Downscale {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Downscale {}

/// Whether a tool has one of these names: in any case, with or without the `@` of ChatCLI; `*` stands for anything.
pub fn is_named<S: AsRef<[u8]>>(names: &[S], tool: &[u8]) -> bool {
    let tool = tool.strip_prefix(b"@").unwrap_or(tool);
    names.iter().any(|name| {
        let name = name.as_ref();
        matches(name.strip_prefix(b"@").unwrap_or(name), tool)
    })
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // The last star, and how much of the text it has matched so far.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&text[t]) => (p, t) = (p + 1, t + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, t) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// A limit, and what stays of a text that exceeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Longest text.
    pub chars_max: u64,
    /// Most lines of one text; 0 for any number. With a limit, only lines from the beginning stay.
    pub lines_max: u64,
    /// What stays.
    pub shape: CutShape,
    /// The text is a file that can be read on, so the marker names the next line.
    pub paged: bool,
}

/// A limit for one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCap {
    /// The tools; see [`is_named`].
    pub tool: String,
    /// The limit.
    pub cap: Cap,
    /// Whether the limit applies to failed results as well.
    pub errors: bool,
}

/// What stays of a text that is cut, and where it may be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutShape {
    /// How much stays at each end.
    pub kept: Kept,
    /// Whether to cut at line ends.
    pub lines: CutLines,
}

/// How much of a text stays at its beginning and at its end. If a result has several texts, a share is spent on them in
/// order, while sizes apply to the first and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// As much as the limit allows, with this percentage from the beginning; line breaks around the marker count.
    Within(u64),
    /// As much as the limit allows, with this percentage from the beginning; the marker is not counted.
    Percent(u64),
    /// These sizes, whatever the limit is. If the limit is not larger than their sum, it is spent on the beginning.
    Sizes {
        /// At the beginning.
        head: u64,
        /// At the end.
        tail: u64,
    },
}

impl Default for Kept {
    fn default() -> Self {
        Self::Within(75)
    }
}

/// How results are shortened as the conversation goes on. An age of 0 switches a step off, and never means "all". The
/// default numbers are ChatCLI's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The unit of an age.
    pub turns: Turns,
    /// From this age on a result is shortened.
    pub shorten_at: u64,
    /// How much then stays at the beginning.
    pub head_chars: u64,
    /// How much then stays at the end.
    pub tail_chars: u64,
    /// Where it is then cut.
    pub lines: CutLines,
    /// It is not shortened to save less than this.
    pub slack_chars: u64,
    /// From this age on only a marker stays.
    pub clear_at: u64,
    /// How much of the beginning then stays as well.
    pub clear_head_chars: u64,
    /// What the marker then says in addition to sizes.
    pub note: Note,
    /// Results whose original was shorter than this stay as they are.
    pub chars_min: u64,
    /// Tools whose results never become stale.
    pub tools_keep: Vec<String>,
    /// Whether failed results never become stale.
    pub errors_keep: bool,
}

impl Default for Stale {
    fn default() -> Self {
        Self {
            turns: Turns::Assistant,
            shorten_at: 0,
            head_chars: 2_000,
            tail_chars: 500,
            lines: CutLines::Inside,
            slack_chars: 100,
            clear_at: 0,
            clear_head_chars: 0,
            note: Note::Kind,
            chars_min: 3_000,
            tools_keep: Vec::new(),
            errors_keep: true,
        }
    }
}

/// The unit of a result's age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Assistant messages after the result.
    Assistant,
    /// User messages after the result.
    User,
}

/// What a marker says if nothing else remains of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// How many lines it had, and what kind of text it was.
    Kind,
    /// Which tool it is from.
    Tool,
}

/// How results are shortened when the window fills up. Off while the first share is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowded {
    /// From this much of the window on, in percent, long results are trimmed.
    pub trim_percent: u64,
    /// Results longer than this are trimmed. 0 for what suits the agent: a quarter of the limit of results, or of the length to
    /// which the agent itself cuts them if that is less, with a little to spare.
    pub trim_chars_max: u64,
    /// How much of a trimmed result stays at the beginning.
    pub head_chars: u64,
    /// How much of a trimmed result stays at the end.
    pub tail_chars: u64,
    /// From this much of the window on, in percent, only markers stay, beginning with the oldest result, until the
    /// context is below it; 0 for never. If it is below the first share, results are trimmed in that order too, and no more of
    /// them than it takes.
    pub clear_percent: u64,
    /// Skip clearing if it would free fewer than this many characters.
    pub clear_chars_min: u64,
    /// How many of the newest assistant messages stay as they are, with everything after the first of them.
    pub keep_assistants: u64,
    /// Nothing is done before the newest assistant message is this old, in milliseconds: until then a prompt cache may
    /// hold what would change. An unknown age counts as too young. 0 means at once.
    pub cache_ttl_ms: u64,
    /// Where the provider has not counted, four characters are a token, as in OpenClaw's pruner.
    pub counts_quarters: bool,
}

/// A session that is nearly too long will be refused, and then no prompt cache helps it. It goes on for a while after that.
impl Default for Crowded {
    fn default() -> Self {
        Self { trim_percent: 80, clear_percent: 60, keep_assistants: 1, ..Self::OFF }
    }
}

impl Crowded {
    /// Nothing is shortened.
    pub const OFF: Self = Self {
        trim_percent: 0,
        trim_chars_max: 0,
        head_chars: 0,
        tail_chars: 0,
        clear_percent: 0,
        clear_chars_min: 0,
        keep_assistants: 0,
        cache_ttl_ms: 0,
        counts_quarters: false,
    };

    /// Whether it waits until no prompt cache holds what would change, as it has to where the session is not about to be
    /// refused.
    pub fn spares_caches(&self) -> bool {
        self.trim_percent > 0 && self.cache_ttl_ms > 0
    }
}

/// Limits of a check. Nothing is cut because of them. 0 switches one off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Length of the file.
    pub file_bytes_max: u64,
    /// Length of a line, without white space around its record.
    pub line_bytes_max: u64,
    /// Length of the text of a result.
    pub result_chars_max: u64,
    /// Sum of the results for one assistant message.
    pub turn_chars_max: u64,
    /// Tokens that the model would be sent next.
    pub context_tokens_max: u64,
    /// Whether the context must also fit the session's context window.
    pub context_fits_window: bool,
    /// Up to this much above a limit, in percent, there is only a note.
    pub tolerance_percent: u64,
}

/// What to do with a visible change before thinking blocks whose signature covers everything before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignedThinking {
    /// Hold the change back.
    #[default]
    Keep,
    /// Make the change and remove the later thinking blocks of the branch.
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
    /// Also make the guarded fixes of these rules.
    pub allow: Vec<String>,
    /// Of these rules as well, because a profile says so.
    pub allowed_by_profile: Vec<String>,
}

impl Selection {
    /// Whether a rule is selected.
    pub fn includes(&self, code: &str) -> bool {
        let named = |codes: &[String]| codes.iter().any(|named| named == code);
        (self.select.is_empty() || named(&self.select)) && !named(&self.ignore)
    }

    /// Whether the fix of a finding is made.
    pub fn applies(&self, finding: &Finding) -> bool {
        match finding.fix.safety {
            Safety::Safe => true,
            Safety::Guarded(_) => self.allows(finding.rule.code()),
            Safety::Held(_) | Safety::None => false,
        }
    }

    /// Whether somebody names a rule that does not run otherwise.
    pub fn asks_for(&self, code: &str) -> bool {
        self.allows(code) || self.select.iter().any(|named| named == code)
    }

    /// Whether the user lets a rule do more than what is safe.
    pub fn allows(&self, code: &str) -> bool {
        self.allow.iter().chain(&self.allowed_by_profile).any(|allowed| allowed == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::situation::{Case, Situation};

    #[test]
    fn what_rewrites_history_is_told_by_the_policy() {
        let plain = Policy { result_chars_max: 7, ..Policy::default() };
        let stale = |shorten_at, clear_at| Policy {
            stale: Stale { shorten_at, clear_at, ..Stale::default() },
            ..plain.clone()
        };
        let crowded = Crowded { trim_percent: 30, cache_ttl_ms: 1, ..Crowded::default() };
        let all = [
            stale(2, 0),
            stale(0, 4),
            Policy { crowded, ..plain.clone() },
            Policy { reply_chars_max: 9, ..plain.clone() },
            Policy { thinking: SignedThinking::Strip, ..plain.clone() },
        ];
        assert!(!plain.rewrites_history());
        assert!(all.iter().all(Policy::rewrites_history));
        for mut policy in all {
            policy.leave_history();
            let situation = Situation { hold_history: true, ..Situation::default() };
            let thinking = Case { policy: &policy, situation: &situation }.thinking();
            assert!(policy.is_about_the_newest() && thinking == SignedThinking::Keep);
            assert_eq!(policy.result_chars_max, 7);
        }
    }

    #[test]
    fn names_of_tools_are_patterns_in_any_case() {
        for (pattern, tool) in [
            ("read", "Read"),
            ("ex*", "exec"),
            ("*", "anything"),
            ("@tree", "tree"),
            ("tree", "@tree"),
            ("mcp__*__list", "mcp__a__b__list"),
            ("*shell*", "run_shell"),
        ] {
            assert!(is_named(&[pattern], tool.as_bytes()), "{pattern} {tool}");
        }
        for (pattern, tool) in [("read", "read_file"), ("ex*", "index"), ("", "a"), ("a*b", "abc"), ("a", "")]
        {
            assert!(!is_named(&[pattern], tool.as_bytes()), "{pattern} {tool}");
        }
    }
}
