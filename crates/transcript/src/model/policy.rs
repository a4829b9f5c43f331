//! What is asked for: limits, and which rules may act. Plain data; who chooses it is not known here.

use crate::model::finding::{Finding, Safety};
use crate::model::image::Kind;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use spans::cut::Lines;
use spans::literal::Unit;
use spans::marker::Folder;

/// The context window of a model of which nothing is known, in tokens.
pub const WINDOW_TOKENS: u64 = 200_000;

/// Limits and permissions of one run. A limit of 0 is switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "choices that have nothing to do with each other")]
pub struct Policy {
    /// Longest text of a tool result. Default 32,000 (OpenClaw #10915).
    pub result_chars_max: u64,
    /// What stays of a result that is longer. Default: three quarters head, one quarter tail.
    pub shape: Shape,
    /// Other limits for single tools, in place of that for all; see [`is_named`] for names.
    pub tool_chars_max: Vec<(String, u64)>,
    /// Limits of single tools that are asked before that for all, each with a shape of its own.
    pub tool_caps: Vec<ToolCap>,
    /// Tools whose results are never cut.
    pub tools_keep: Vec<String>,
    /// If not empty, only results of these tools are cut.
    pub tools_only: Vec<String>,
    /// Whether results that hold an image are left alone (OpenClaw #5057).
    pub skip_images: bool,
    /// Longest sum of the results that answer one message of the model. Default 200,000 (ChatCLI).
    pub turn_chars_max: u64,
    /// No result is cut below this for the sake of its turn. Default 2,000 (OpenClaw's floor).
    pub turn_floor_chars: u64,
    /// Longest text of one message that a summariser can take. Default 100,000 (OpenClaw #10915).
    pub summary_chars_max: u64,
    /// The model's context window in tokens; 0 if it is unknown. Default: what the file or the model's name tells, or else
    /// 200,000.
    pub window_tokens: Option<u64>,
    /// Longest string in copies of a result that the model never sees. Default 8,000 (OpenClaw bounds its
    /// `details` by 8,192 bytes).
    pub side_chars_max: u64,
    /// Which images can be sent.
    pub images: Images,
    /// What makes images small that are too large. Default: nothing, and a line of text takes their place.
    pub downscale: Option<Downscale>,
    /// Longest text of one message of the model that is in context. Default 0: any length.
    pub reply_chars_max: u64,
    /// What becomes of results as the conversation goes on. Default: nothing.
    pub stale: Stale,
    /// What becomes of results when the window fills up. Default: nothing.
    pub crowded: Crowded,
    /// How lengths are counted.
    pub unit: Unit,
    /// What to do where an edit would come before signed thinking.
    pub thinking: SignedThinking,
    /// Whether what rewrites older history waits: the session was used a short while ago, and a prompt cache may hold
    /// that history. Such findings are told, and their fixes held back.
    pub hold_history: bool,
    /// Whether what the model sees stays as it is where the model binds its thinking to it: a process may hold the
    /// conversation in memory. Errors for which the session is refused are mended all the same.
    pub hold_remembered: bool,
    /// When this is asked, in milliseconds since 1970; `None` if the age of a prompt cache does not matter.
    pub now_ms: Option<u64>,
    /// Whether no agent is at work on the session any more: nothing will answer the calls of the newest turn.
    pub agent_gone: bool,
    /// Where markers say that the whole text also lies as a plain file. Writing it there is not done here.
    pub spill: Option<Folder>,
    /// What a check allows at most. Default: anything.
    pub budget: Budget,
    /// What the API said, for rules about what the file alone does not tell.
    pub error: Option<String>,
    /// Which rules report and act.
    pub selection: Selection,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            result_chars_max: 32_000,
            shape: Shape::default(),
            tool_chars_max: Vec::new(),
            tool_caps: Vec::new(),
            tools_keep: Vec::new(),
            tools_only: Vec::new(),
            skip_images: false,
            turn_chars_max: 200_000,
            turn_floor_chars: 2_000,
            summary_chars_max: 100_000,
            window_tokens: None,
            side_chars_max: 8_000,
            images: Images::default(),
            downscale: None,
            reply_chars_max: 0,
            stale: Stale::default(),
            crowded: Crowded::default(),
            unit: Unit::Chars,
            thinking: SignedThinking::Keep,
            hold_history: false,
            hold_remembered: false,
            now_ms: None,
            agent_gone: false,
            spill: None,
            budget: Budget::default(),
            error: None,
            selection: Selection::default(),
        }
    }
}

impl Policy {
    /// The model's context window where only the policy is known.
    pub fn window_tokens(&self) -> u64 {
        self.window_tokens.unwrap_or(WINDOW_TOKENS)
    }

    /// Whether results of a tool may be cut at all.
    pub fn may_cut(&self, tool: &[u8]) -> bool {
        let only = self.tools_only.is_empty() || is_named(&self.tools_only, tool);
        only && !is_named(&self.tools_keep, tool)
    }

    /// Whether what is behind the newest turn stays as it is, whatever comes: nothing ages, and the messages of the
    /// model have no limit.
    pub(crate) fn is_about_the_newest(&self) -> bool {
        !self.ages() && self.reply_chars_max == 0
    }

    /// Leaves older history alone, for looks while a prompt cache may hold it: what would change it is not even looked
    /// for, so that what is appended can be judged by itself ([`crate::judge`]).
    pub fn leave_history(&mut self) {
        self.hold_history = true;
        (self.stale.shorten_at, self.stale.clear_at, self.crowded.trim_percent) = (0, 0, 0);
        self.reply_chars_max = 0;
    }

    /// Whether results are shortened that the conversation has left behind.
    fn ages(&self) -> bool {
        self.stale.shorten_at > 0 || self.stale.clear_at > 0 || self.crowded.trim_percent > 0
    }

    /// Whether anything is asked for that changes what the model has been sent again and again, and so costs the
    /// cache of its prompt: old results, its own messages, and thinking that goes for the sake of an edit before it.
    pub fn rewrites_history(&self) -> bool {
        self.ages() || self.reply_chars_max > 0 || self.thinking != SignedThinking::Keep
    }

    /// What to do before signed thinking, as long as history is held.
    pub(crate) fn thinking_in_force(&self) -> SignedThinking {
        if self.hold_history { SignedThinking::Keep } else { self.thinking }
    }

    /// The limits for a result of a tool, in the order in which they are asked: the first that it exceeds counts.
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

/// How much an examination is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Everything but the addresses of what would be cut out: texts need not be hashed.
    Sizes,
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
    /// Beyond so many images their sides are to be shorter. Default 20.
    pub many: u64,
    /// Longest side then. Default 2,000.
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
    /// What its first bytes say that it is.
    pub kind: Kind,
    /// Longest side of what is asked for, in pixels.
    pub pixels_max: u32,
    /// Its longest file.
    pub bytes_max: u64,
}

/// Makes an image small: a file of the same kind within the limits, or `None` if it cannot be decoded, or made small
/// enough. The same input gives the same output. Whoever chooses the policy hands it in, because decoders of what
/// anybody may have sent allocate, and may panic; nothing here may do that.
#[derive(Clone, Copy)]
pub struct Downscale(pub fn(TooLarge<'_>) -> Option<Vec<u8>>);

/// Without its address, which is another one in each run.
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
    // The last star, and how much of the text it has taken so far.
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
    /// Most lines of one text; 0 for any number. Only lines from the beginning stay then.
    pub lines_max: u64,
    /// What stays.
    pub shape: Shape,
    /// What is cut is a file that can be read on, and the marker says from which line.
    pub paged: bool,
}

/// A limit of a tool's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCap {
    /// The tools; see [`is_named`].
    pub tool: String,
    /// The limit.
    pub cap: Cap,
    /// Whether results that say that the tool failed are held to it as well.
    pub errors: bool,
}

/// What stays of a text that is cut, and how the place of the cut is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// How much stays at each end.
    pub kept: Kept,
    /// Whether ends of lines are looked for.
    pub lines: Lines,
}

/// How much of a text stays at its beginning and at its end. If a result has several texts, a share is spent on them
/// in order, and sizes are taken from the first and from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The limit, this much of it in percent at the beginning; line breaks around the marker count against it.
    Within(u64),
    /// The limit, this much of it in percent at the beginning; what is put in comes on top.
    Percent(u64),
    /// These sizes, whatever the limit is. A limit that is no larger than both together is spent on the beginning.
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

/// What becomes of results as the conversation goes on. An age of 0 is switched off, and never means "all". The
/// numbers that are there by default are ChatCLI's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// What is counted to tell an age.
    pub turns: Turns,
    /// From this age on a result is shortened.
    pub shorten_at: u64,
    /// What stays then at the beginning.
    pub head_chars: u64,
    /// What stays then at the end.
    pub tail_chars: u64,
    /// Where it is cut then.
    pub lines: Lines,
    /// It is not shortened for the sake of less than this.
    pub slack_chars: u64,
    /// From this age on only a marker stays.
    pub clear_at: u64,
    /// And this much of the beginning.
    pub clear_head_chars: u64,
    /// What the marker says then, beside sizes.
    pub note: Note,
    /// Results that were shorter than this in the first place stay as they are.
    pub chars_min: u64,
    /// Tools whose results do not age.
    pub tools_keep: Vec<String>,
    /// Results that say that the tool failed do not age.
    pub errors_keep: bool,
}

impl Default for Stale {
    fn default() -> Self {
        Self {
            turns: Turns::Assistant,
            shorten_at: 0,
            head_chars: 2_000,
            tail_chars: 500,
            lines: Lines::Inside,
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

/// What an age is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Messages of the model behind the result.
    Assistant,
    /// Messages of persons behind the result.
    User,
}

/// What a marker says about a text of which it is all that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// How many lines it had, and what kind of text it was.
    Kind,
    /// Which tool it is from.
    Tool,
}

/// What becomes of results when the window fills up. Off while the first share is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crowded {
    /// From this much of the window on, in percent, long results are trimmed.
    pub trim_percent: u64,
    /// Results longer than this.
    pub trim_chars_max: u64,
    /// What stays of one at the beginning.
    pub head_chars: u64,
    /// What stays of one at the end.
    pub tail_chars: u64,
    /// From this much of the window on, in percent, only markers stay, from the oldest result on until it is less;
    /// 0 for never.
    pub clear_percent: u64,
    /// Unless what could be cleared is less than this together.
    pub clear_chars_min: u64,
    /// The newest messages of the model, and all that follows the first of them, stay as they are.
    pub keep_assistants: u64,
    /// Nothing is done before the newest message of the model is this old, in milliseconds: until then a prompt cache
    /// may hold what would change. An age that the transcript does not tell counts as too young. 0 for at once.
    pub cache_ttl_ms: u64,
}

/// What a check allows at most, apart from what is mended: nothing is cut for the sake of it. 0 is switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Length of the file.
    pub file_bytes_max: u64,
    /// Length of a line, without white space around its record.
    pub line_bytes_max: u64,
    /// Length of the text of a result.
    pub result_chars_max: u64,
    /// Sum of the results that answer one message of the model.
    pub turn_chars_max: u64,
    /// Size of what the model would be sent next.
    pub context_tokens_max: u64,
    /// The same, but at most the context window that the session is judged against.
    pub context_fits_window: bool,
    /// Up to this much above a limit, in percent of it, is worth a note and no more.
    pub tolerance_percent: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rewrites_history_is_told_by_the_policy() {
        let plain = Policy { result_chars_max: 7, ..Policy::default() };
        let stale = |shorten_at, clear_at| Policy {
            stale: Stale { shorten_at, clear_at, ..Stale::default() },
            ..plain.clone()
        };
        let crowded = Crowded { trim_percent: 30, ..Crowded::default() };
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
            assert!(policy.is_about_the_newest() && policy.thinking_in_force() == SignedThinking::Keep);
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
