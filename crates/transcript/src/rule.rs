//! What may be wrong with a session. Each rule is one file; [`RULES`] lists them all.
//!
//! A rule sees the whole session and yields findings. It changes nothing: a fix is a list of
//! [`crate::model::finding::Op`] steps, some with new bytes, and only [`crate::plan`] makes edits of the file of them. Codes are
//! stable and listed in docs/rules.md; names say what is wrong, not how it is repaired.

#![expect(clippy::unnecessary_wraps, reason = "all checks have one signature, and some read no bytes")]

use crate::format::Format;
use crate::model::finding::{Finding, Severity};
use crate::model::policy::Policy;
use crate::model::rule::Codes;

mod abandoned_compaction;
mod aborted_call_with_result;
mod altered_thought;
mod base;
mod before_compaction;
mod blocked_content;
pub(crate) mod bound_thinking;
mod broken_ordinals;
mod broken_record;
mod byte_order_mark;
mod call_without_arguments;
mod call_without_result;
mod context_over_limit;
mod control_text;
mod copied_entry;
mod counted;
mod counter_past_end;
mod crowded_window;
mod dangling_boundary;
mod dangling_parent;
mod dead_weight;
mod displaced_result;
mod duplicate_call_id;
mod duplicate_result;
mod empty_text;
mod empty_turn;
mod error_flood;
mod foreign_encoding;
mod foreign_rows;
mod glued_lines;
mod half_pair;
mod impossible_counter;
mod invalid_thinking;
mod invalid_tool_name;
mod line_separator;
mod lost_turns;
pub(crate) mod mirrored_reply;
mod misordered_results;
mod misplaced_header;
mod missing_reasoning;
mod named_by_error;
mod no_user_turn;
mod nul_bytes;
mod off_branch;
mod over_limit;
mod oversized_file;
pub(crate) mod oversized_for_summary;
mod oversized_line;
mod oversized_reply;
mod oversized_result;
mod oversized_side_copy;
pub(crate) mod oversized_turn;
mod owner_schema;
mod parent_cycle;
mod progress_entry;
mod reasoning_alone;
mod refused_part;
mod removal;
mod request_log;
#[cfg(test)]
mod restless;
mod result_before_call;
mod result_over_limit;
mod result_without_call;
mod same_role_again;
mod secret_in_text;
mod sidechain_entry;
mod split_server_pair;
mod stale_result;
mod superseded_compaction;
pub(crate) mod superseded_read;
mod superseded_record;
mod superseded_sent_texts;
mod superseded_snapshot;
mod tool_stop_without_call;
mod torn_line;
mod trim;
mod turn_over_limit;
mod unacceptable_call_id;
mod unknown_kind;
mod unloaded_beginning;
mod unreadable_line;
pub(crate) mod unreadable_size;
pub(crate) mod unseen_title;
mod unsendable_document;
mod unsendable_image;
mod untrainable_row;

pub use base::Feature;
pub use base::{Cover, FindingSink, Group, Help, Limit, Rule, RuleInfo, Stage};
pub(crate) use base::{Heals, Repeats, tool_of};
pub(crate) use call_without_result::next_user;
pub(crate) use counted::{forbidden, record_of};
pub(crate) use crowded_window::may_be_crowded;
pub(crate) use displaced_result::speaks;
pub(crate) use invalid_tool_name::are_plain;
pub(crate) use no_user_turn::{is_from_user, lacks_a_user};
pub(crate) use oversized_reply::shorten_message;
pub(crate) use same_role_again::{RoleFlow, flow};
pub(crate) use trim::most;
pub(crate) use unacceptable_call_id::is_taken;
pub(crate) use unknown_kind::Doubt;
pub(crate) use unseen_title::Titles;

/// All rules, in the order in which they run: pairing, sizes, ages, bytes, and at the end limits that the caller set
/// for `scan`. Where fixes of one stage overlap, that of the later rule is made.
pub const RULES: &[&Rule] = &[
    &call_without_result::RULE,
    &result_without_call::RULE,
    &aborted_call_with_result::RULE,
    &displaced_result::RULE,
    &duplicate_result::RULE,
    &duplicate_call_id::RULE,
    &misordered_results::RULE,
    &result_before_call::RULE,
    &call_without_arguments::RULE,
    &invalid_tool_name::RULE,
    &unacceptable_call_id::RULE,
    &tool_stop_without_call::RULE,
    &split_server_pair::RULE,
    &oversized_result::RULE,
    &oversized_turn::RULE,
    &oversized_for_summary::RULE,
    &oversized_side_copy::RULE,
    &stale_result::RULE,
    &crowded_window::RULE,
    &superseded_read::RULE,
    &oversized_reply::RULE,
    &superseded_record::RULE,
    &superseded_sent_texts::RULE,
    &unloaded_beginning::RULE,
    &torn_line::RULE,
    &glued_lines::RULE,
    &nul_bytes::RULE,
    &foreign_encoding::RULE,
    &half_pair::RULE,
    &line_separator::RULE,
    &byte_order_mark::RULE,
    &broken_record::RULE,
    &unreadable_line::RULE,
    &misplaced_header::RULE,
    &control_text::RULE,
    &dangling_parent::RULE,
    &parent_cycle::RULE,
    &abandoned_compaction::RULE,
    &dangling_boundary::RULE,
    &lost_turns::RULE,
    &copied_entry::RULE,
    &foreign_rows::RULE,
    &broken_ordinals::RULE,
    &counter_past_end::RULE,
    &impossible_counter::RULE,
    &mirrored_reply::RULE,
    &owner_schema::UNFINISHED,
    &owner_schema::REFUSED,
    &unknown_kind::RULE,
    &empty_turn::RULE,
    &empty_text::RULE,
    &invalid_thinking::RULE,
    &reasoning_alone::RULE,
    &altered_thought::RULE,
    &same_role_again::RULE,
    &no_user_turn::RULE,
    &blocked_content::RULE,
    &named_by_error::EXPIRED,
    &named_by_error::DANGLING,
    &refused_part::RULE,
    &named_by_error::UNVERIFIABLE,
    &missing_reasoning::RULE,
    &error_flood::RULE,
    &untrainable_row::ARGUMENTS,
    &untrainable_row::UNDECLARED,
    &untrainable_row::AGAIN,
    &untrainable_row::NOTHING,
    &unsendable_image::RULE,
    &unsendable_document::RULE,
    &progress_entry::RULE,
    &superseded_snapshot::RULE,
    &request_log::RULE,
    &sidechain_entry::RULE,
    &before_compaction::RULE,
    &superseded_compaction::RULE,
    &off_branch::RULE,
    &unseen_title::RULE,
    &unreadable_size::RULE,
    &bound_thinking::RULE,
    &secret_in_text::RULE,
    &oversized_file::RULE,
    &oversized_line::RULE,
    &result_over_limit::RULE,
    &turn_over_limit::RULE,
    &context_over_limit::RULE,
    #[cfg(test)]
    &restless::RULE,
];

/// The facts about all rules, in the same order.
const INFOS: [&RuleInfo; RULES.len()] = {
    let (mut infos, mut n) = ([&RULES[0].info; RULES.len()], 0);
    while n < RULES.len() {
        infos[n] = &RULES[n].info;
        n += 1;
    }
    infos
};

/// The empty set of rules.
pub(crate) const NONE: Codes = Codes::none(&INFOS);

/// The rule with this code or name, in any case.
pub fn find(text: &str) -> Option<&'static Rule> {
    RULES
        .iter()
        .copied()
        .find(|rule| rule.code().eq_ignore_ascii_case(text) || rule.name().eq_ignore_ascii_case(text))
}

/// Whether a finding describes the file rather than a problem, so that a repair of something else may reveal it: notes
/// about content, about dead weight, and about how far something is from the end.
pub fn is_remark(finding: &Finding) -> bool {
    let rule = finding.rule;
    let is_in = |group| rule.groups.contains(&group);
    finding.severity == Severity::Note && (rule.distant || is_in(Group::Content) || is_in(Group::DeadWeight))
}

/// The rules that run in a format and that an append with this feature wakes.
pub(crate) fn woken_by(
    policy: &Policy,
    format: &Format,
    feature: Feature,
) -> impl Iterator<Item = &'static Rule> {
    let woken = RULES.iter().copied().filter(move |rule| rule.wakes.contains(&feature));
    woken.filter(move |rule| runs(rule, policy, format))
}

/// Whether a rule runs: it is selected, and covers the format.
pub(crate) fn runs(rule: &Rule, policy: &Policy, format: &Format) -> bool {
    let selection = &policy.selection;
    let is_asked_for = !rule.on_request || selection.asks_for(rule.code());
    selection.includes(rule.code()) && is_asked_for && rule.cover(format) != Cover::Never
}

impl Group {
    /// The codes of its rules.
    pub fn codes(self) -> impl Iterator<Item = &'static str> {
        RULES.iter().filter(move |rule| rule.groups.contains(&self)).map(|rule| rule.code())
    }

    /// The codes of the rules that run with it, because it shows only after their safe repairs what its own rules are
    /// about: what is not loaded is known once bytes and links are whole.
    pub fn first(self) -> impl Iterator<Item = &'static str> {
        let comes_first = |rule: &&&Rule| matches!(rule.stage, Stage::Bytes | Stage::Links);
        let rules = RULES.iter().filter(comes_first).filter(move |_| self == Self::DeadWeight);
        rules.map(|rule| rule.code())
    }
}
