//! Policies by name: what five other systems do to tool results, with the numbers that they do it with.
//!
//! Each number below has its source; `CC` is ChatCLI 1.188.0 (`cda4157d`), `AM` agent-max #38 (`c398bdb`), `5057` and
//! `10915` are pull requests of OpenClaw. Markers are ours under every profile, so that a second run changes nothing;
//! the numbers (kept at the beginning, kept at the end, omitted) are theirs.
//!
//! `tests/profiles/cases.md` goes through the test cases of these systems one by one: what holds, and what differs on purpose.

use crate::model::policy::{Cap, Crowded, CutShape, Kept, Note, Policy, Selection, Stale, ToolCap, Turns};
use alloc::string::String;
use alloc::vec::Vec;
use spans::cut::CutLines;
use spans::literal::Unit;

#[cfg(test)]
mod tests;

/// A policy with a name.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What `--profile` calls it.
    pub name: &'static str,
    /// What it does, in a few sentences.
    pub what: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// The version that it reproduces.
    pub version: &'static str,
    policy: fn() -> Policy,
}

impl Profile {
    /// The policy.
    pub fn policy(&self) -> Policy {
        (self.policy)()
    }
}

/// All profiles.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "default",
        what: "32,000 characters a result, three quarters of them head, cut at line ends; 200,000 a turn, the largest \
               results first. Nothing ages; from 80 % of the window on the oldest results are shortened until it is \
               below 60 %.",
        source: "the best of the others",
        version: "no other system",
        policy: Policy::default,
    },
    Profile {
        name: "chatcli",
        what: "In bytes: results over the cap of their tool (30,000; read 80,000, search 60,000, tree 50,000) keep \
               5,000 head and 1,000 tail; results over 20,000, and the largest of a turn over 200,000, keep 4,000 and \
               1,000, cut at line ends. At two turns of the model results of 3,000 and more keep 2,000 and 500, at \
               four turns one line with size and kind. Failures and results of tools that write or run something do \
               not age. Of a file that was read again only the later text stays.",
        source: "ChatCLI 1.188.0: truncation.go, tool_result_budget.go, microcompact.go and its documentation",
        version: "ChatCLI 1.188.0; repeated reads as of 1.190",
        policy: chatcli,
    },
    Profile {
        name: "chatcli-head",
        what: "The same as chatcli, but failures and results of tools that write or run something age like all others.",
        source: "ChatCLI 1.188.0 as its code does it",
        version: "ChatCLI 1.188.0; repeated reads as of 1.190",
        policy: chatcli_head,
    },
    Profile {
        name: "agent-max",
        what: "In UTF-16 units: results older than the last four messages of the user and over 400 keep 200 and a line \
               with tool and size. Shells keep 10,000, subagents 15,000, each 70 % head; file reads the first 500 lines \
               and 20,000.",
        source: "agent-max #38: context.ts, truncate.ts, shell.ts, claude-subagent.ts, fs.ts",
        version: "agent-max of 2026-05-09",
        policy: agent_max,
    },
    Profile {
        name: "openclaw-5057",
        what: "In UTF-16 units: 50,000 a result, 60 % head; results that hold an image are left alone. When 30 % of the \
               window are full, older results over 4,000 keep 1,500 and 1,500; from 50 % on the oldest become one line \
               each. The last three messages of the model, and what stands before the first one of the user, stay. \
               All that only once the model's last message is five minutes old, so that no prompt cache holds it.",
        source: "OpenClaw #5057 and its context pruning",
        version: "OpenClaw 2026.9.6 with contextPruning.mode set by hand; the cap as in #5057, which was not merged",
        policy: openclaw_5057,
    },
    Profile {
        name: "openclaw-10915",
        what: "In UTF-16 units: the first 32,000 of a result, spent on its texts in order. A message over 100,000 \
               characters, or over half the window with a fifth to spare, is reported as too long for the summariser.",
        source: "OpenClaw #10915",
        version: "OpenClaw #10915, which was not merged",
        policy: openclaw_10915,
    },
];

/// The profile with this name.
pub fn find(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name.eq_ignore_ascii_case(name))
}

/// Tools that write or run something, by the names that agents give them. CC documents that their results are
/// preserved.
const ACTING: &[&str] = &[
    "write*",
    "edit*",
    "multiedit",
    "notebookedit",
    "patch*",
    "apply_patch",
    "str_replace*",
    "create*",
    "delete*",
    "exec*",
    "run_*",
    "bash",
    "shell*",
    "coder",
];

/// Names that agents use for a shell; AM's is `run_shell`.
const SHELLS: &[&str] = &["run_shell", "bash", "shell", "exec", "exec_command"];
/// Names that agents use for reading a file; AM's is `read_file`.
const READERS: &[&str] = &["read_file", "read"];
/// Names that agents use for starting another agent; AM's is `claude-subagent`.
const SUBAGENTS: &[&str] = &["claude-subagent*", "task", "agent"];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().copied().map(String::from).collect()
}

/// The budget applies after the per-tool cap, and both are in bytes. Pairing is the same in all profiles.
fn chatcli() -> Policy {
    // CC truncation.go: 5,000 + 1,000 of what exceeds the tool's cap, cut anywhere; failures are exempt.
    let cap = |tool: &str, chars_max| ToolCap {
        tool: tool.into(),
        cap: Cap {
            chars_max,
            lines_max: 0,
            shape: CutShape { kept: Kept::Sizes { head: 5_000, tail: 1_000 }, lines: CutLines::Anywhere },
            paged: false,
        },
        errors: false,
    };
    Policy {
        unit: Unit::Bytes,
        tool_caps: [
            ("read", 80_000),
            ("search", 60_000),
            ("tree", 50_000),
            ("docs-flatten", 50_000),
            ("*", 30_000),
        ]
        .map(|(tool, chars_max)| cap(tool, chars_max))
        .into(),
        // CC tool_result_budget.go: maxToolResultChars, the preview's head and tail, and the line breaks it looks for.
        result_chars_max: 20_000,
        shape: CutShape { kept: Kept::Sizes { head: 4_000, tail: 1_000 }, lines: CutLines::Inside },
        // CC tool_result_budget.go: toolResultBudgetChars; the floor is 4,000 + 1,000 + 200.
        turn_chars_max: 200_000,
        turn_floor_chars: 5_200,
        stale: Stale {
            // CC microcompact.go: TurnsBeforeTruncate, TurnsBeforeSummarize; the other numbers are the default's.
            shorten_at: 2,
            clear_at: 4,
            tools_keep: owned(ACTING),
            errors_keep: true,
            ..Stale::default()
        },
        crowded: Crowded::OFF,
        // CC !1445: earlier reads of a path that a later one covers become stubs.
        selection: Selection { allowed_by_profile: owned(&["S24"]), ..Selection::default() },
        ..Policy::default()
    }
}

/// CC microcompact.go has no exception for any tool or failure.
fn chatcli_head() -> Policy {
    let stale = Stale { tools_keep: Vec::new(), errors_keep: false, ..chatcli().stale };
    Policy { stale, ..chatcli() }
}

fn agent_max() -> Policy {
    // AM truncate.ts: headAndTail with a ratio of 0.7.
    let both = CutShape { kept: Kept::Percent(70), lines: CutLines::Anywhere };
    let head = CutShape { kept: Kept::Percent(100), lines: CutLines::Anywhere };
    let groups = [
        // AM shell.ts, also for failures.
        (SHELLS, Cap { chars_max: 10_000, lines_max: 0, shape: both, paged: false }),
        // AM claude-subagent.ts.
        (SUBAGENTS, Cap { chars_max: 15_000, lines_max: 0, shape: both, paged: false }),
        // AM fs.ts: the default of `limit`, the cut after it, and the hint how to read on.
        (READERS, Cap { chars_max: 20_000, lines_max: 500, shape: head, paged: true }),
    ];
    let caps = groups.iter().flat_map(|&(tools, cap)| {
        tools.iter().map(move |&tool| ToolCap { tool: tool.into(), cap, errors: true })
    });
    Policy {
        unit: Unit::Utf16,
        tool_caps: caps.collect(),
        // AM caps no other tool, and no turn.
        result_chars_max: 0,
        turn_chars_max: 0,
        stale: Stale {
            turns: Turns::User,
            // AM context.ts: MAX_FRESH_TURNS; more than 400 are pruned; the first 200 stay.
            clear_at: 4,
            chars_min: 401,
            clear_head_chars: 200,
            note: Note::Tool,
            errors_keep: false,
            ..Stale::default()
        },
        crowded: Crowded::OFF,
        ..Policy::default()
    }
}

fn openclaw_5057() -> Policy {
    Policy {
        unit: Unit::Utf16,
        // 5057: contextPruning.maxToolResultChars, head and tail; image results are skipped.
        result_chars_max: 50_000,
        shape: CutShape { kept: Kept::Percent(60), lines: CutLines::Anywhere },
        skip_images: true,
        // It has no budget for a turn.
        turn_chars_max: 0,
        // pruner.ts: softTrimRatio, softTrim, hardClearRatio, minPrunableToolChars, keepLastAssistants.
        crowded: Crowded {
            trim_percent: 30,
            trim_chars_max: 4_000,
            head_chars: 1_500,
            tail_chars: 1_500,
            clear_percent: 50,
            clear_chars_min: 50_000,
            keep_assistants: 3,
            // 5057, extension.ts: the pruner runs if nothing was touched for the `ttl` of the cache, 5 minutes.
            cache_ttl_ms: 5 * 60 * 1_000,
            // pruner.ts counts four characters a token.
            counts_quarters: true,
        },
        ..Policy::default()
    }
}

fn openclaw_10915() -> Policy {
    Policy {
        unit: Unit::Utf16,
        // 10915: MAX_TOOL_RESULT_CONTENT_CHARS, from the beginning only; 100,000 and half the window are the default's.
        result_chars_max: 32_000,
        shape: CutShape { kept: Kept::Percent(100), lines: CutLines::Anywhere },
        // It has no budget for a turn.
        turn_chars_max: 0,
        crowded: Crowded::OFF,
        ..Policy::default()
    }
}
