//! Errors with which an API or an agent refuses a session, and which rules they are about, in one table. Nothing else
//! knows error texts, except those of content filters.
//!
//! ```
//! use transcript::refusal;
//! let known = refusal::find("messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9");
//! assert_eq!(known.unwrap().codes, ["P2", "P3", "P8"]);
//! ```

use super::{
    aborted_call_with_result, altered_thought, blocked_content, bound_thinking, broken_ordinals,
    broken_record, byte_order_mark, call_without_arguments, call_without_result, displaced_result,
    duplicate_call_id, duplicate_result, empty_text, empty_turn, foreign_encoding, glued_lines, half_pair,
    invalid_thinking, invalid_tool_name, line_separator, misordered_results, misplaced_header,
    missing_reasoning, named_by_error, no_user_turn, nul_bytes, oversized_for_summary, oversized_result,
    oversized_side_copy, oversized_turn, owner_schema, progress_entry, reasoning_alone, result_before_call,
    result_without_call, same_role_again, split_server_pair, torn_line, unacceptable_call_id,
    unreadable_line, unreadable_size, unseen_title, unsendable_document, unsendable_image,
};
use crate::model::refusal::{BLOCKED, says_one_of};

/// A known error.
#[derive(Debug)]
pub struct KnownError {
    /// The error contains one of these texts; `*` stands for anything. Case, quotes and white space do not matter.
    pub says: &'static [&'static str],
    /// Codes of rules, most likely first; empty if the error is not about the session. C1, C3, C4, C8 and C9 are not
    /// rules: they are locks, disks and files that are gone.
    pub codes: &'static [&'static str],
    /// What it means, in one or two sentences.
    pub what: &'static str,
    /// What a repair does if one of these rules has findings; empty if no repair helps.
    pub fix: &'static str,
    /// What else to do, whatever was found; may be empty.
    pub advice: &'static str,
}

/// All known errors. The first match counts, so special texts come before general ones.
pub static REFUSALS: &[KnownError] = &[
    KnownError {
        says: &[
            "tool_use ids were found without tool_result",
            "tool use concurrency issues",
            "must be followed by tool messages",
            "insufficient tool messages",
            "No tool output found for",
            "number of function response parts is equal to the number of function call parts",
        ],
        codes: &[
            call_without_result::RULE.info.code,
            displaced_result::RULE.info.code,
            misordered_results::RULE.info.code,
            result_before_call::RULE.info.code,
        ],
        what: "A tool call has no result directly after it: the result was lost, or something is between them.",
        fix: "tailor fix FILE puts results where they belong, and a neutral one where there is none.",
        advice: "",
    },
    KnownError {
        says: &[
            "unexpected tool_use_id found in tool_result",
            "No tool call found for function call output",
            "tool id(*) not found",
            "tool_call_id is not found",
            "missing field tool_call_id",
            "must be a response to a prece*ding message with tool_calls",
            "function response turn comes immediately after a function call turn",
        ],
        codes: &[
            result_without_call::RULE.info.code,
            aborted_call_with_result::RULE.info.code,
            result_before_call::RULE.info.code,
        ],
        what: "The request has a result without its call: the call was compacted away, cut off, or never finished.",
        fix: "tailor fix FILE takes such results out; --allow P2 also in files of bare messages.",
        advice: "",
    },
    KnownError {
        says: &[
            "unexpected tool_use_id found in *_tool_result",
            "must have a corresponding server_tool_use",
            "without a corresponding *_tool_result block",
            "mcp_tool_use ids were found without mcp_tool_result",
        ],
        codes: &[split_server_pair::RULE.info.code],
        what: "A tool ran on the provider's side, and its call and its result are not in one assistant message: something \
               was written between them, or one of them is missing.",
        fix: "tailor fix FILE puts them together, and takes out what has no other half.",
        advice: "",
    },
    KnownError {
        says: &["Duplicate value for tool_call_id", "Duplicate item found with id"],
        codes: &[duplicate_result::RULE.info.code, duplicate_call_id::RULE.info.code],
        what: "One call has several results, or two calls share an id.",
        fix: "tailor fix FILE keeps the best of several results; --allow P6 gives a later pair an id of its own.",
        advice: "",
    },
    KnownError {
        says: &["each tool_use must have a single result"],
        codes: &[duplicate_result::RULE.info.code],
        what: "One call has several results.",
        fix: "tailor fix FILE keeps the best of them.",
        advice: "",
    },
    KnownError {
        says: &["tool_use ids must be unique", "reuses id * already seen"],
        codes: &[duplicate_call_id::RULE.info.code],
        what: "Two calls share an id.",
        fix: "tailor fix --allow P6 FILE gives the later pair an id of its own.",
        advice: "",
    },
    KnownError {
        says: &["Expected toolResult blocks at * but found", "Did not find * tool_result block"],
        codes: &[misordered_results::RULE.info.code, displaced_result::RULE.info.code],
        what: "The results of a turn are in another order than their calls, or come after text.",
        fix: "tailor fix FILE moves results to directly after their calls.",
        advice: "",
    },
    KnownError {
        says: &[
            "tool_use.input: Field required",
            "tool_use.input: Input should be",
            "Input should be a valid dictionary",
            "invalid function arguments json string",
        ],
        codes: &[call_without_arguments::RULE.info.code],
        what: "A call has no arguments, or they are not a JSON object.",
        fix: "tailor scan FILE names the call.",
        advice: "Rewind to before a call that was cut off.",
    },
    KnownError {
        says: &[".name: string does not match pattern", "tool_use.name: String should match pattern"],
        codes: &[invalid_tool_name::RULE.info.code],
        what: "A tool name holds characters that the API does not accept.",
        fix: "tailor scan FILE names the call.",
        advice: "",
    },
    KnownError {
        says: &[
            "tool_use.id: String should match pattern",
            "tool_use_id: String should match pattern",
            "call_id: string too long",
            "must be a-z, A-Z, 0-9, with a length of 9",
            "tool call id is invalid",
        ],
        codes: &[unacceptable_call_id::RULE.info.code],
        what: "Tool call ids come from another provider, and this one does not accept their form.",
        fix: "",
        advice: "Continue with the provider that the session was started with, or let the agent translate ids.",
    },
    KnownError {
        says: &["String should match pattern"],
        codes: &[unacceptable_call_id::RULE.info.code, invalid_tool_name::RULE.info.code],
        what: "A tool call id or a tool name holds characters that the API does not accept.",
        fix: "tailor scan FILE names the call.",
        advice: "If the ids are another provider's, continue with that one, or let the agent translate them.",
    },
    KnownError {
        says: &[
            "messages*.role: Field required",
            "messages*.content: Field required",
            "Missing required parameter: messages",
        ],
        codes: &[unreadable_line::RULE.info.code, empty_turn::RULE.info.code],
        what: "A message of the request has no role or no content: its record is damaged, or was never whole.",
        fix: "tailor fix FILE writes a damaged name again where only one will do, and takes out what is no record.",
        advice: "",
    },
    KnownError {
        says: &["cache_control cannot be set for empty text blocks"],
        codes: &[empty_text::RULE.info.code],
        what: "A text block is empty, and the agent marked it for the prompt cache.",
        fix: "tailor fix FILE takes empty texts out.",
        advice: "",
    },
    KnownError {
        says: &[
            "text content blocks must be non-empty",
            "content blocks must contain non-whitespace",
            "text content is empty",
            "MissingParameter: input.content.text",
        ],
        codes: &[empty_text::RULE.info.code, empty_turn::RULE.info.code],
        what: "A text in the request is empty, or nothing but white space.",
        fix: "tailor fix FILE takes empty texts out, and says so where a tool printed nothing.",
        advice: "",
    },
    KnownError {
        says: &[
            "role assistant must not be empty",
            "all messages must have non-empty content",
            "Improperly formed request",
        ],
        codes: &[empty_turn::RULE.info.code, empty_text::RULE.info.code],
        what: "A message of the request is empty, mostly a turn that failed before its first word.",
        fix: "tailor fix FILE takes empty turns out.",
        advice: "",
    },
    KnownError {
        says: &["bound to a different conversation", "prefix_mismatch_behavior"],
        codes: &[bound_thinking::RULE.info.code],
        what: "Signed thinking is bound to everything before it, and something there has changed.",
        fix: "",
        advice: "tailor undo FILE if Tailor changed it with --thinking ignore; else remove the later thinking: tailor fix --thinking strip takes it out with the next change that it makes.",
    },
    KnownError {
        says: &[
            "thinking blocks * cannot be modified",
            "Invalid signature in thinking",
            "final block * cannot be thinking",
            "thinking block must contain non-whitespace thinking",
            "thinking block must contain thinking",
            "Expected thinking or redacted_thinking, but found",
        ],
        codes: &[invalid_thinking::RULE.info.code, bound_thinking::RULE.info.code],
        what: "A thinking block was altered, has no valid signature, or is in a place where none is allowed.",
        fix: "tailor fix FILE removes such blocks whole.",
        advice: "A switch of model or account needs a new session.",
    },
    KnownError {
        says: &[
            "encrypted content * could not be verified",
            "Encrypted * content could not be decrypted",
            "invalid_encrypted_content",
        ],
        codes: &[named_by_error::UNVERIFIABLE.info.code, reasoning_alone::RULE.info.code],
        what: "Encrypted reasoning, or an encrypted compaction, was made for another account, machine or model.",
        fix: "",
        advice: "tailor fix --error 'TEXT' --allow M14 FILE takes the encrypted items of a Codex session out; TEXT is this error. \
                 Or go on with the account and the model that the session was begun with.",
    },
    KnownError {
        says: &["tool result content could not be processed", "Invalid encrypted_content in"],
        codes: &[named_by_error::EXPIRED.info.code],
        what: "A result of a tool that ran on the provider's side is sealed, and its key is gone.",
        fix: "",
        advice: "tailor fix --error 'TEXT' --allow M11 FILE takes such results out, with their calls; TEXT is this error.",
    },
    KnownError {
        says: &["Tool reference * not found"],
        codes: &[named_by_error::DANGLING.info.code],
        what: "A search for tools, earlier in the session, found a tool that is not offered any more.",
        fix: "",
        advice: "Add the MCP server or the tool again; or tailor fix --error 'TEXT' --allow M12 FILE takes the reference out; TEXT \
                 is this error.",
    },
    KnownError {
        says: &[
            "without its required following item",
            "without its required reasoning item",
            "Item with id * not found",
            "array too long* maximum length 0",
        ],
        codes: &[reasoning_alone::RULE.info.code],
        what: "An OpenAI reasoning item lacks the item that belongs to it, or comes from another account or model.",
        fix: "tailor fix FILE takes reasoning out that nothing follows.",
        advice: "Items of another account need a new session.",
    },
    KnownError {
        says: &["Corrupted thought signature", "missing a thought_signature"],
        codes: &[altered_thought::RULE.info.code],
        what: "Gemini misses the thought signature of a call, or finds it altered.",
        fix: "",
        advice: "A lost signature cannot be restored: continue with another model, or rewind to before that call.",
    },
    KnownError {
        says: &["roles must alternate", "incorrect role information"],
        codes: &[same_role_again::RULE.info.code],
        what: "Two messages of one role follow each other, which this model's template does not accept.",
        fix: "",
        advice: "Tailor deletes nothing that a person said. Let the agent or a proxy merge such messages.",
    },
    KnownError {
        says: &["does not support assistant message prefill", "No user query found"],
        codes: &[no_user_turn::RULE.info.code],
        what: "The request does not end with a user message, or holds none.",
        fix: "",
        advice: "Send a message: a session that ends with an assistant message is complete. After a compaction without a user message, the agent has to add one.",
    },
    KnownError {
        says: &["function call turn comes immediately after a user turn"],
        codes: &[
            no_user_turn::RULE.info.code,
            displaced_result::RULE.info.code,
            misordered_results::RULE.info.code,
        ],
        what: "Gemini accepts calls only directly after a user's turn or results: the conversation begins with calls, or \
               something stands before them.",
        fix: "tailor fix FILE moves results back to directly after their calls.",
        advice: "If the conversation begins with calls, the agent has to add a user message before them; Tailor invents none.",
    },
    KnownError {
        says: BLOCKED,
        codes: &[blocked_content::RULE.info.code],
        what: "The provider's filter refuses something that was said or read in the session.",
        fix: "",
        advice: "Go back to before the turn that is refused; Tailor deletes nothing that a person said.",
    },
    KnownError {
        says: &["PDF pages may be provided", "PDF specified was not valid"],
        codes: &[unsendable_document::RULE.info.code],
        what: "A PDF in the session has too many pages, or is not a PDF.",
        fix: "tailor fix --allow S20 FILE puts a line of text in its place.",
        advice: "",
    },
    KnownError {
        says: &[
            "reasoning_content in the thinking mode must be passed back",
            "content[].thinking in the thinking mode must be passed back",
            "reasoning_content is missing",
        ],
        codes: &[missing_reasoning::RULE.info.code],
        what: "A reasoning model wants its reasoning back with each message that calls tools, and some have none.",
        fix: "tailor fix --allow M13 FILE puts an empty one there.",
        advice: "A newer version of the agent may do so itself; or use a model that is not in thinking mode.",
    },
    KnownError {
        says: &["request contains * images, exceeding the maximum"],
        codes: &[unsendable_image::RULE.info.code],
        what: "The request has more images than this provider accepts.",
        fix: "tailor fix --only images --max-images 50 FILE puts a line of text in the place of the oldest; the error says \
              the number.",
        advice: "",
    },
    KnownError {
        says: &[
            "image dimensions exceed",
            "many-image requests",
            "exceeds 5 MB maximum",
            "exceeds * MB maximum",
            "request_too_large",
            "413",
            "Request Entity Too Large",
            "media_unstrippable",
            "Could not process image",
            "image was specified using the * media type",
        ],
        codes: &[unsendable_image::RULE.info.code],
        what: "Images in the request are too large, too many, or of another type than their label says.",
        fix: "tailor fix --only images FILE puts a line of text in the place of those that are refused.",
        advice: "tailor recover FILE shortens what is not images; if the error isn't recorded in the session, pass it: --error 'TEXT'.",
    },
    KnownError {
        says: &[
            "prompt is too long",
            "input is too long",
            "input length and max_tokens exceed",
            "exceed context limit",
            "exceeds the context window",
            "ran out of room in the model's context window",
            "exceeds the available context size",
            "exceeded model token limit",
            "input token count * exceeds",
            "maximum prompt length",
            "Context overflow",
            "context_length_exceeded",
            "model_context_window_exceeded",
            "maximum context length",
            "Summary unavailable due to context limits",
            "Auto-compaction could not recover",
        ],
        codes: &[
            oversized_result::RULE.info.code,
            oversized_turn::RULE.info.code,
            oversized_for_summary::RULE.info.code,
        ],
        what: "The conversation does not fit into the model's window, often because of a few results.",
        fix: "tailor fix FILE shortens long results; --cut-results says to what.",
        advice: "tailor recover FILE shortens the session until it fits; if the error isn't recorded in the session, pass it: --error 'TEXT'.",
    },
    KnownError {
        says: &[
            "Invalid string length",
            "ERR_STRING_TOO_LONG",
            "Cannot create a string longer than",
            "heap out of memory",
            "token too long",
        ],
        codes: &[
            unreadable_size::RULE.info.code,
            progress_entry::RULE.info.code,
            oversized_side_copy::RULE.info.code,
        ],
        what: "The file, or one line of it, is longer than the program can read at once.",
        fix: "tailor fix --only dead-weight FILE takes out what is not loaded.",
        advice: "tailor top FILE shows what fills it.",
    },
    KnownError {
        says: &[
            "did not contain valid UTF-8",
            "no low surrogate in string",
            "surrogates not allowed",
            "lone leading surrogate",
        ],
        codes: &[foreign_encoding::RULE.info.code, half_pair::RULE.info.code],
        what: "The file contains bytes or escapes that are half a character.",
        fix: "tailor fix FILE puts a replacement character there.",
        advice: "",
    },
    KnownError {
        says: &["Unknown event type"],
        codes: &[],
        what: "The program that opens the session is older than the one that wrote it, and does not know one of its records.",
        fix: "",
        advice: "Nothing is wrong with the file. Update that program.",
    },
    KnownError {
        says: &["Bad control character in string literal", "Invalid control character at"],
        codes: &[broken_record::RULE.info.code, nul_bytes::RULE.info.code],
        what: "A string holds a raw line break, NUL or other control character, which JSON does not allow.",
        fix: "tailor fix FILE writes them as escapes and puts the record on one line.",
        advice: "",
    },
    KnownError {
        says: &["Unexpected token <*JSON"],
        codes: &[unreadable_line::RULE.info.code],
        what: "HTML came instead of JSON: a proxy or a wrong address answered. It may be in the file too.",
        fix: "tailor fix FILE takes lines out that hold no record.",
        advice: "If no such line is in the file, the session is fine: check the address and the proxy.",
    },
    KnownError {
        says: &["Unexpected token*JSON", "Unexpected non-whitespace character after JSON"],
        codes: &[
            torn_line::RULE.info.code,
            glued_lines::RULE.info.code,
            nul_bytes::RULE.info.code,
            byte_order_mark::RULE.info.code,
            broken_record::RULE.info.code,
            unreadable_line::RULE.info.code,
        ],
        what: "A line is not valid JSON: it is torn, glued to another one, or damaged.",
        fix: "tailor fix FILE repairs what it can and lists the rest.",
        advice: "",
    },
    KnownError {
        says: &[
            "Unexpected end of JSON",
            "Unterminated string",
            "Expected : before value",
            "Extra data: line 1 column",
        ],
        codes: &[
            torn_line::RULE.info.code,
            glued_lines::RULE.info.code,
            line_separator::RULE.info.code,
            broken_record::RULE.info.code,
        ],
        what: "A line is torn, glued to another one, or split.",
        fix: "tailor fix FILE repairs what it can and lists the rest.",
        advice: "",
    },
    KnownError {
        says: &["Session file is corrupted"],
        codes: &[
            owner_schema::REFUSED.info.code,
            broken_record::RULE.info.code,
            unreadable_line::RULE.info.code,
        ],
        what: "Copilot CLI refuses a whole session over one record. What follows the line number says which field it is.",
        fix: "tailor fix FILE corrects that field, where the value can be told.",
        advice: "A newer Copilot CLI accepts more: if nothing is found in the file, update it.",
    },
    KnownError {
        says: &["session file changed while embedded prompt lock was released"],
        codes: &["C1"],
        what: "OpenClaw saw its session file replaced in the middle of a turn, and gave up the turn.",
        fix: "",
        advice: "Send the message again. Tailor waits for OpenClaw's lock; another program that rewrites does not.",
    },
    KnownError {
        says: &["session file locked"],
        codes: &["C3"],
        what: "OpenClaw waits for a lock that another process holds, or that a dead one left behind.",
        fix: "",
        advice: "tailor fix FILE removes the lock of a dead process, and names the live one otherwise.",
    },
    KnownError {
        says: &["No space left on device", "ENOSPC"],
        codes: &["C4", torn_line::RULE.info.code],
        what: "The disk was full; the last line may be torn.",
        fix: "tailor fix FILE repairs the last line.",
        advice: "Make room first (tailor gc removes old originals).",
    },
    KnownError {
        says: &["expected ordinal * got", "missing an ordinal"],
        codes: &[broken_ordinals::RULE.info.code],
        what: "Codex numbers the records of its rollout, and a number is wrong.",
        fix: "",
        advice: "Update Codex to 0.154 or later, which skips repeated ordinals, and resume the thread. Tailor does not renumber.",
    },
    KnownError {
        says: &["transcript header does not match"],
        codes: &[misplaced_header::RULE.info.code],
        what: "OpenClaw imports a file whose header is missing, or names another session than the file does.",
        fix: "tailor fix FILE moves a header to the front; it invents none.",
        advice: "If the file was renamed, rename it to the id in its first line.",
    },
    KnownError {
        says: &[
            "session * not found",
            "No conversation found",
            "No saved session found",
            "No session or task matched",
        ],
        codes: &[
            torn_line::RULE.info.code,
            nul_bytes::RULE.info.code,
            misplaced_header::RULE.info.code,
            unseen_title::RULE.info.code,
            "C8",
            "C9",
        ],
        what: "The agent does not see the file: its first or last line is damaged, its title is out of sight, or it has \
               moved or been deleted.",
        fix: "tailor fix FILE repairs the line or the title.",
        advice: "If the file is gone, the agent's retention took it.",
    },
    KnownError {
        says: &["database disk image is malformed", "database is locked", "file is not a database"],
        codes: &[],
        what: "The agent's own database is damaged or in use; it is not the transcript.",
        fix: "",
        advice: "Stop the agent, keep a copy of the database, and start it again: Codex rebuilds a damaged one.",
    },
    KnownError {
        says: &["overloaded_error", "529 Overloaded"],
        codes: &[],
        what: "The provider is overloaded. The session has nothing to do with it.",
        fix: "",
        advice: "Wait, and send the message again.",
    },
    KnownError {
        says: &["rate_limit_error", "rate limit", "too many requests"],
        codes: &[],
        what: "The account is over its rate limit. The session has nothing to do with it.",
        fix: "",
        advice: "Wait, and send the message again; a shorter session uses less of the limit.",
    },
    KnownError {
        says: &["credit balance", "insufficient_quota", "exceeded your current quota"],
        codes: &[],
        what: "The account has no credit left. The session has nothing to do with it.",
        fix: "",
        advice: "Check plan and billing with the provider.",
    },
    KnownError {
        says: &[
            "authentication_error",
            "OAuth token has expired",
            "token expired",
            "invalid x-api-key",
            "invalid_api_key",
            "failed with status code 401",
            "failed with status code 403",
        ],
        codes: &[],
        what: "The provider does not accept the login or the key. The session has nothing to do with it.",
        fix: "",
        advice: "Log in again with the agent, or check its key.",
    },
    KnownError {
        says: &["model is not supported", "cannot specify both", "field in the request * is illegal"],
        codes: &[],
        what: "The model is not available, or does not support a setting of the request. The session has nothing to do \
               with it.",
        fix: "",
        advice: "Choose another model, or change the agent's settings.",
    },
    KnownError {
        says: &["Request timed out", "Connection error", "Internal server error"],
        codes: &[],
        what: "The provider was not reached, or failed by itself. The session has nothing to do with it.",
        fix: "",
        advice: "Send the message again; if it keeps failing, check the network and the provider's status page.",
    },
];

/// Finds the error in a text, which may have other text around it.
pub fn find(text: &str) -> Option<&'static KnownError> {
    REFUSALS.iter().find(|refusal| says_one_of(text, refusal.says))
}

#[cfg(test)]
mod tests;
