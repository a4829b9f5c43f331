//! How each format writes messages: one row per format.
//!
//! Shares nothing with the program under test. A row consists of templates for lines, in which `$NAME` is replaced:
//!
//! | | |
//! |---|---|
//! | `$TEXT` | what is said, as it stands between the quotes of a JSON string |
//! | `$ID`, `$TOOL` | the call's id, and the name of its tool |
//! | `$CALLS` | the calls of a message, by `call` or, if their results are in, by `answered` |
//! | `$STARTS` | the same calls by `start` |
//! | `$RESULTS` | their results, by `result`, where they stand beside the calls |
//! | `$NN`, `$PP` | the number of the line, and of the line before it, in two digits |
//! | `$TURN` | the number of the user's message |
//! | `$MIME`, `$DATA` | what a picture claims to be, and its bytes in base64 |
//!
//! A template may have several lines; a line that becomes empty is left out.

/// What happens in a session.
#[derive(Clone, Debug)]
pub(crate) enum StoryEvent {
    /// A user message.
    User(String),
    /// An assistant message.
    Said(String),
    /// An assistant message with calls: ids and tools.
    Asked(Vec<(&'static str, &'static str)>),
    /// The result of the call with this id.
    Result(&'static str, String),
    /// A user message with a picture.
    Shown(String, Picture),
    /// A user message with a part of a kind that no agent writes.
    Strange(String),
    /// The result of the call with this id, with a picture.
    Seen(&'static str, String, Picture),
    /// An assistant message behind thinking that its provider has signed.
    Thought(String),
}

/// What a picture claims to be, and its bytes in base64.
pub(crate) type Picture = (&'static str, &'static str);

/// How a format writes events.
pub(crate) struct FormatSpelling {
    pub(crate) name: &'static str,
    /// Lines before the first message.
    head: &'static str,
    user: &'static str,
    said: &'static str,
    asked: &'static str,
    call: &'static str,
    /// Between calls.
    between: &'static str,
    start: &'static str,
    /// A call with its result, if both are in one record.
    answered: &'static str,
    result: &'static str,
    /// A user message with a picture, a result with a picture, and text behind signed thinking. A story with what a
    /// format has no template for is not told in it.
    shown: &'static str,
    seen: &'static str,
    thought: &'static str,
    pub(crate) kind: FileForm,
    /// Its files are recognised and never changed: only their bytes are checked.
    pub(crate) is_opaque: bool,
    /// The text that names the message before; in the first message it becomes `null`.
    root: &'static str,
}

/// How messages form a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileForm {
    /// Each message has lines of its own.
    Lines,
    /// A record of the assistant is written again with each result (`answered`).
    Upserts,
    /// The results are in the assistant's record (`answered`).
    Whole,
    /// A line is a whole conversation: `head` with `$MESSAGES`. A second, plain one follows.
    Conversations,
}

const ROW: FormatSpelling = FormatSpelling {
    name: "",
    head: "",
    user: "",
    said: "",
    asked: "",
    call: CHAT_CALL,
    between: ",",
    start: "",
    answered: "",
    result: "",
    shown: "",
    seen: "",
    thought: "",
    kind: FileForm::Lines,
    root: "",
    is_opaque: false,
};

const CHAT_CALL: &str = r#"{"id":"$ID","type":"function","function":{"name":"$TOOL","arguments":"{}"}}"#;
const BARE_CALL: &str = r#"{"id":"$ID","name":"$TOOL","arguments":"{}"}"#;
const ANTHROPIC_CALL: &str = r#"{"type":"tool_use","id":"$ID","name":"$TOOL","input":{}}"#;
const ATIF_CALL: &str = r#"{"tool_call_id":"$ID","function_name":"$TOOL","arguments":{}}"#;
const GEMINI_CALL: &str = r#"{"functionCall":{"id":"$ID","name":"$TOOL","args":{}}}"#;

pub(crate) const ROWS: &[FormatSpelling] = &[
    FormatSpelling {
        name: "ai-sdk-model",
        user: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"}]}"#,
        said: r#"{"role":"assistant","content":[{"type":"text","text":"$TEXT"}]}"#,
        asked: r#"{"role":"assistant","content":[$CALLS]}"#,
        call: r#"{"type":"tool-call","toolCallId":"$ID","toolName":"$TOOL","input":{}}"#,
        result: r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"$ID","toolName":"$TOOL","output":{"type":"text","value":"$TEXT"}}]}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image","image":"$DATA","mediaType":"$MIME"}]}"#,
        seen: r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"$ID","toolName":"$TOOL","output":{"type":"content","value":[{"type":"text","text":"$TEXT"},{"type":"media","data":"$DATA","mediaType":"$MIME"}]}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "ai-sdk-ui",
        user: r#"{"id":"m$NN","role":"user","parts":[{"type":"text","text":"$TEXT"}]}"#,
        said: r#"{"id":"m$NN","role":"assistant","parts":[{"type":"text","text":"$TEXT"}]}"#,
        asked: r#"{"id":"m$NN","role":"assistant","parts":[$CALLS]}"#,
        call: r#"{"type":"dynamic-tool","toolName":"$TOOL","toolCallId":"$ID","state":"input-available","input":{}}"#,
        answered: r#"{"type":"dynamic-tool","toolName":"$TOOL","toolCallId":"$ID","state":"output-available","input":{},"output":"$TEXT"}"#,
        kind: FileForm::Whole,
        shown: r#"{"id":"m$NN","role":"user","parts":[{"type":"text","text":"$TEXT"},{"type":"file","mediaType":"$MIME","url":"data:$MIME;base64,$DATA"}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "anthropic",
        user: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"}]}"#,
        said: r#"{"role":"assistant","content":[{"type":"text","text":"$TEXT"}]}"#,
        asked: r#"{"role":"assistant","content":[$CALLS]}"#,
        call: ANTHROPIC_CALL,
        result: r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":"$TEXT"}]}"#,
        shown: r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}},{"type":"text","text":"$TEXT"}]}"#,
        seen: r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":[{"type":"text","text":"$TEXT"},{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}}]}]}"#,
        thought: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2lnbmVkLTEB"},{"type":"text","text":"$TEXT"}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "bedrock-converse",
        user: r#"{"role":"user","content":[{"text":"$TEXT"}]}"#,
        said: r#"{"role":"assistant","content":[{"text":"$TEXT"}]}"#,
        asked: r#"{"role":"assistant","content":[$CALLS]}"#,
        call: r#"{"toolUse":{"toolUseId":"$ID","name":"$TOOL","input":{}}}"#,
        result: r#"{"role":"user","content":[{"toolResult":{"toolUseId":"$ID","content":[{"text":"$TEXT"}],"status":"success"}}]}"#,
        thought: r#"{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Hm.","signature":"c2lnbmVkLTEB"}}},{"text":"$TEXT"}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "langchain",
        user: r#"{"type":"human","data":{"content":"$TEXT","additional_kwargs":{},"response_metadata":{},"type":"human","id":"h$NN"}}"#,
        said: r#"{"type":"ai","data":{"content":"$TEXT","additional_kwargs":{},"type":"ai","tool_calls":[],"invalid_tool_calls":[]}}"#,
        asked: r#"{"type":"ai","data":{"content":"","additional_kwargs":{},"type":"ai","tool_calls":[$CALLS],"invalid_tool_calls":[]}}"#,
        call: r#"{"name":"$TOOL","args":{},"id":"$ID","type":"tool_call"}"#,
        result: r#"{"type":"tool","data":{"content":"$TEXT","type":"tool","name":"$TOOL","tool_call_id":"$ID","status":"success"}}"#,
        shown: r#"{"type":"human","data":{"content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"type":"human"}}"#,
        seen: r#"{"type":"tool","data":{"content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"type":"tool","name":"$TOOL","tool_call_id":"$ID","status":"success"}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "llamaindex",
        user: r#"{"role":"user","additional_kwargs":{},"blocks":[{"block_type":"text","text":"$TEXT"}]}"#,
        said: r#"{"role":"assistant","additional_kwargs":{},"blocks":[{"block_type":"text","text":"$TEXT"}]}"#,
        asked: r#"{"role":"assistant","additional_kwargs":{},"blocks":[$CALLS]}"#,
        call: r#"{"block_type":"tool_call","tool_call_id":"$ID","tool_name":"$TOOL","tool_kwargs":{}}"#,
        result: r#"{"role":"tool","additional_kwargs":{"tool_call_id":"$ID","name":"$TOOL"},"blocks":[{"block_type":"text","text":"$TEXT"}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "autogen",
        user: r#"{"content":"$TEXT","source":"user","type":"UserMessage"}"#,
        said: r#"{"content":"$TEXT","thought":null,"source":"assistant","type":"AssistantMessage"}"#,
        asked: r#"{"content":[$CALLS],"thought":null,"source":"assistant","type":"AssistantMessage"}"#,
        call: BARE_CALL,
        result: r#"{"content":[{"content":"$TEXT","name":"$TOOL","call_id":"$ID","is_error":false}],"type":"FunctionExecutionResultMessage"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "atif",
        user: r#"{"step_id":1$NN,"source":"user","message":"$TEXT"}"#,
        said: r#"{"step_id":1$NN,"source":"agent","message":"$TEXT"}"#,
        asked: r#"{"step_id":1$NN,"source":"agent","message":"","tool_calls":[$CALLS],"observation":{"results":[$RESULTS]}}"#,
        call: ATIF_CALL,
        answered: ATIF_CALL,
        result: r#"{"source_call_id":"$ID","content":"$TEXT"}"#,
        kind: FileForm::Whole,
        ..ROW
    },
    FormatSpelling {
        name: "claude-stream-json",
        is_opaque: true,
        head: r#"{"type":"system","subtype":"init","session_id":"s1","tools":["Bash"],"model":"claude-opus-4-6"}"#,
        user: r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"$TEXT"}]},"parent_tool_use_id":null,"session_id":"s1"}"#,
        said: r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"$TEXT"}]},"parent_tool_use_id":null,"session_id":"s1"}"#,
        asked: r#"{"type":"assistant","message":{"role":"assistant","content":[$CALLS]},"parent_tool_use_id":null,"session_id":"s1"}"#,
        call: ANTHROPIC_CALL,
        result: r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":"$TEXT"}]},"parent_tool_use_id":null,"session_id":"s1"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "pydantic-ai",
        user: r#"{"parts":[{"content":"$TEXT","timestamp":"2026-11-01T10:00:00Z","part_kind":"user-prompt"}],"kind":"request"}"#,
        said: r#"{"parts":[{"content":"$TEXT","part_kind":"text"}],"usage":{"input_tokens":0},"kind":"response"}"#,
        asked: r#"{"parts":[$CALLS],"usage":{"input_tokens":0},"kind":"response"}"#,
        call: r#"{"tool_name":"$TOOL","args":{},"tool_call_id":"$ID","part_kind":"tool-call"}"#,
        result: r#"{"parts":[{"tool_name":"$TOOL","content":"$TEXT","tool_call_id":"$ID","part_kind":"tool-return"}],"kind":"request"}"#,
        thought: r#"{"parts":[{"content":"Hm.","signature":"c2lnbmVkLTEB","part_kind":"thinking"},{"content":"$TEXT","part_kind":"text"}],"kind":"response"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "openai-responses",
        user: r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"$TEXT"}]}"#,
        said: r#"{"type":"message","id":"msg_$NN","role":"assistant","status":"completed","content":[{"type":"output_text","text":"$TEXT"}]}"#,
        asked: "$CALLS",
        call: r#"{"type":"function_call","id":"fc_$ID","call_id":"$ID","name":"$TOOL","arguments":"{}"}"#,
        between: "\n",
        result: r#"{"type":"function_call_output","call_id":"$ID","output":"$TEXT"}"#,
        shown: r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"$TEXT"},{"type":"input_image","image_url":"data:$MIME;base64,$DATA"}]}"#,
        seen: r#"{"type":"function_call_output","call_id":"$ID","output":[{"type":"input_text","text":"$TEXT"},{"type":"input_image","image_url":"data:$MIME;base64,$DATA"}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "anthropic-dataset",
        head: r#"{"messages":[$MESSAGES],"system":"Be terse."}"#,
        user: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"}]}"#,
        said: r#"{"role":"assistant","content":[{"type":"text","text":"$TEXT"}]}"#,
        asked: r#"{"role":"assistant","content":[$CALLS]}"#,
        call: ANTHROPIC_CALL,
        result: r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":"$TEXT"}]}"#,
        kind: FileForm::Conversations,
        shown: r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}},{"type":"text","text":"$TEXT"}]}"#,
        seen: r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":[{"type":"text","text":"$TEXT"},{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}}]}]}"#,
        thought: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2lnbmVkLTEB"},{"type":"text","text":"$TEXT"}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "claude-code",
        user: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","type":"user","message":{"role":"user","content":"$TEXT"},"uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        said: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","message":{"model":"claude-opus-4-6","id":"msg_$NN","type":"message","role":"assistant","content":[{"type":"text","text":"$TEXT"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":9}},"requestId":"req_$NN","type":"assistant","uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        asked: "$CALLS",
        call: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","message":{"model":"claude-opus-4-6","id":"msg_turn$TURN_$MESSAGE","type":"message","role":"assistant","content":[{"type":"tool_use","id":"$ID","name":"$TOOL","input":{"command":"ls"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":9}},"requestId":"req_turn$TURN_$MESSAGE","type":"assistant","uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        between: "\n",
        result: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","type":"user","message":{"role":"user","content":[{"tool_use_id":"$ID","type":"tool_result","content":"$TEXT","is_error":false}]},"uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        root: r#""0a000000-0000-4000-8000-000000000000""#,
        shown: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}},{"type":"text","text":"$TEXT"}]},"uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        seen: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","type":"user","message":{"role":"user","content":[{"tool_use_id":"$ID","type":"tool_result","content":[{"type":"text","text":"$TEXT"},{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}}],"is_error":false}]},"uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        thought: r#"{"parentUuid":"0a000000-0000-4000-8000-0000000000$PP","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"5e000000-0000-4000-8000-0000000000aa","version":"2.1.200","gitBranch":"main","message":{"model":"claude-opus-5-5","id":"msg_$NN","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2lnbmVkLTEB"},{"type":"text","text":"$TEXT"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":9}},"requestId":"req_$NN","type":"assistant","uuid":"0a000000-0000-4000-8000-0000000000$NN","timestamp":"2026-07-01T10:00:$NN.000Z"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "codex",
        head: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"session_meta","payload":{"id":"0198c0de-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.140.0","source":"cli","model_provider":"openai","base_instructions":{"text":"You are terse."}}}"#,
        user: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"$TEXT"}]}}
{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"event_msg","payload":{"type":"user_message","message":"$TEXT","images":[],"local_images":[],"text_elements":[]}}"#,
        said: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"$TEXT"}]}}"#,
        asked: "$CALLS",
        call: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"response_item","payload":{"type":"function_call","name":"$TOOL","arguments":"{}","call_id":"$ID"}}"#,
        between: "\n",
        result: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"$ID","output":"$TEXT"}}"#,
        shown: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"$TEXT"},{"type":"input_image","image_url":"data:$MIME;base64,$DATA"}]}}
{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"event_msg","payload":{"type":"user_message","message":"$TEXT","images":[],"local_images":[],"text_elements":[]}}"#,
        seen: r#"{"timestamp":"2026-08-01T10:00:$NN.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"$ID","output":[{"type":"input_text","text":"$TEXT"},{"type":"input_image","image_url":"data:$MIME;base64,$DATA"}]}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "copilot-cli",
        head: r#"{"type":"session.start","data":{"sessionId":"5b0c","version":1,"producer":"copilot-agent","copilotVersion":"1.0.80","startTime":"2026-08-01T10:00:00.000Z","context":{"cwd":"/w"}},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":null}"#,
        user: r#"{"type":"user.message","data":{"content":"$TEXT","transformedContent":"$TEXT","attachments":[]},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        said: r#"{"type":"assistant.message","data":{"messageId":"m$NN","model":"gpt-5","content":"$TEXT","toolRequests":[]},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        asked: r#"{"type":"assistant.message","data":{"messageId":"m$NN","model":"gpt-5","content":"","toolRequests":[$CALLS]},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}
$STARTS"#,
        call: r#"{"toolCallId":"$ID","name":"$TOOL","arguments":{},"type":"function"}"#,
        start: r#"{"type":"tool.execution_start","data":{"toolCallId":"$ID","toolName":"$TOOL","arguments":{}},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        result: r#"{"type":"tool.execution_complete","data":{"toolCallId":"$ID","success":true,"result":{"content":"$TEXT","detailedContent":"$TEXT"}},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        shown: r#"{"type":"user.message","data":{"content":"$TEXT","transformedContent":"$TEXT","attachments":[{"type":"blob","data":"$DATA","mimeType":"$MIME","displayName":"shot.png"}]},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        seen: r#"{"type":"tool.execution_complete","data":{"toolCallId":"$ID","success":true,"result":{"content":"$TEXT","binaryResultsForLlm":[{"data":"$DATA","mimeType":"$MIME","type":"image"}]}},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        thought: r#"{"type":"assistant.message","data":{"messageId":"m$NN","model":"claude-opus-5.5","content":"$TEXT","toolRequests":[],"reasoningOpaque":"c2ln"},"id":"e0000000-0000-4000-8000-0000000000$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"e0000000-0000-4000-8000-0000000000$PP"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "cursor",
        is_opaque: true,
        user: r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\n$TEXT\n</user_query>"}]}}"#,
        said: r#"{"role":"assistant","message":{"content":[{"type":"text","text":"$TEXT"}]}}"#,
        asked: r#"{"role":"assistant","message":{"content":[$CALLS]}}"#,
        call: r#"{"type":"tool_use","name":"$TOOL","input":{"command":"ls"}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "droid",
        head: r#"{"type":"session_start","id":"f1","title":"List files","sessionTitle":"List files","owner":"me","version":2,"cwd":"/w"}"#,
        user: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"user","content":[{"type":"text","text":"$TEXT"}]}}"#,
        said: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"assistant","content":[{"type":"text","text":"$TEXT"}]}}"#,
        asked: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"assistant","content":[$CALLS]}}"#,
        call: ANTHROPIC_CALL,
        result: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":"$TEXT"}]}}"#,
        shown: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}},{"type":"text","text":"$TEXT"}]}}"#,
        seen: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"$ID","content":[{"type":"text","text":"$TEXT"},{"type":"image","source":{"type":"base64","media_type":"$MIME","data":"$DATA"}}]}]}}"#,
        thought: r#"{"type":"message","id":"d$NN","timestamp":"2026-08-01T10:00:$NN.000Z","parentId":"d$PP","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2lnbmVkLTEB"},{"type":"text","text":"$TEXT"}]}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "gemini-cli",
        head: r#"{"sessionId":"7f2e","projectHash":"ab12","startTime":"2026-08-01T10:00:00.000Z","lastUpdated":"2026-08-01T10:00:00.000Z","kind":"main"}"#,
        user: r#"{"id":"u$NN","timestamp":"2026-08-01T10:00:$NN.000Z","type":"user","content":[{"text":"$TEXT"}]}"#,
        said: r#"{"id":"g$NN","timestamp":"2026-08-01T10:00:$NN.000Z","type":"gemini","content":"$TEXT","model":"gemini-3-pro"}"#,
        asked: r#"{"id":"g_$MESSAGE","timestamp":"2026-08-01T10:00:$NN.000Z","type":"gemini","content":"","model":"gemini-3-pro","toolCalls":[$CALLS]}"#,
        call: r#"{"id":"$ID","name":"$TOOL","args":{},"status":"executing","timestamp":"2026-08-01T10:00:03.000Z","result":null}"#,
        answered: r#"{"id":"$ID","name":"$TOOL","args":{},"status":"success","timestamp":"2026-08-01T10:00:03.000Z","result":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}}],"resultDisplay":"$TEXT"}"#,
        kind: FileForm::Upserts,
        shown: r#"{"id":"u$NN","timestamp":"2026-08-01T10:00:$NN.000Z","type":"user","content":[{"text":"$TEXT"},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "gemini-contents",
        user: r#"{"role":"user","parts":[{"text":"$TEXT"}]}"#,
        said: r#"{"role":"model","parts":[{"text":"$TEXT"}]}"#,
        asked: r#"{"role":"model","parts":[$CALLS]}"#,
        call: GEMINI_CALL,
        result: r#"{"role":"user","parts":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}}]}"#,
        shown: r#"{"role":"user","parts":[{"text":"$TEXT"},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]}"#,
        seen: r#"{"role":"user","parts":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "gemini-dataset",
        head: r#"{"contents":[$MESSAGES]}"#,
        user: r#"{"role":"user","parts":[{"text":"$TEXT"}]}"#,
        said: r#"{"role":"model","parts":[{"text":"$TEXT"}]}"#,
        asked: r#"{"role":"model","parts":[$CALLS]}"#,
        call: GEMINI_CALL,
        result: r#"{"role":"user","parts":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}}]}"#,
        kind: FileForm::Conversations,
        shown: r#"{"role":"user","parts":[{"text":"$TEXT"},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]}"#,
        seen: r#"{"role":"user","parts":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "goose-legacy",
        is_opaque: true,
        head: r#"{"working_dir":"/w","description":"List files","message_count":2,"total_tokens":900}"#,
        user: r#"{"role":"user","created":17501048$NN,"content":[{"type":"text","text":"$TEXT"}]}"#,
        said: r#"{"role":"assistant","created":17501048$NN,"content":[{"type":"text","text":"$TEXT"}]}"#,
        asked: r#"{"role":"assistant","created":17501048$NN,"content":[$CALLS]}"#,
        call: r#"{"type":"toolRequest","id":"$ID","toolCall":{"status":"success","value":{"name":"$TOOL","arguments":{"command":"ls"}}}}"#,
        result: r#"{"role":"user","created":17501048$NN,"content":[{"type":"toolResponse","id":"$ID","toolResult":{"status":"success","value":[{"type":"text","text":"$TEXT"}]}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "grok-build",
        head: r#"{"type":"system","content":"You are Grok"}"#,
        user: r#"{"type":"user","content":[{"type":"text","text":"$TEXT"}],"prompt_index":0}"#,
        said: r#"{"type":"assistant","content":"$TEXT","model_id":"grok-4.5"}"#,
        asked: r#"{"type":"assistant","content":"","tool_calls":[$CALLS],"model_id":"grok-4.5"}"#,
        call: BARE_CALL,
        result: r#"{"type":"tool_result","tool_call_id":"$ID","content":"$TEXT"}"#,
        shown: r#"{"type":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"prompt_index":0}"#,
        ..ROW
    },
    FormatSpelling {
        name: "hermes",
        head: r#"{"role":"session_meta","model":"hermes-4","platform":"telegram","tools":[],"timestamp":"2026-04-03T15:36:20"}"#,
        user: r#"{"role":"user","content":"$TEXT","timestamp":"2026-08-01T10:00:$NN"}"#,
        said: r#"{"role":"assistant","content":"$TEXT","timestamp":"2026-08-01T10:00:$NN","finish_reason":"stop"}"#,
        asked: r#"{"role":"assistant","content":"","tool_calls":[$CALLS],"timestamp":"2026-08-01T10:00:$NN","finish_reason":"stop"}"#,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID","timestamp":"2026-08-01T10:00:$NN"}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"timestamp":"2026-08-01T10:00:$NN"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "kimi-cli",
        head: r#"{"role":"_system_prompt","content":"You are a coding agent."}"#,
        user: r#"{"role":"_checkpoint","id":$TURN}
{"role":"user","content":"$TEXT"}"#,
        said: r#"{"role":"assistant","content":[{"type":"think","think":"hm","encrypted":null},{"type":"text","text":"$TEXT"}]}
{"role":"_usage","token_count":1200}"#,
        asked: r#"{"role":"assistant","content":[{"type":"think","think":"hm","encrypted":null}],"tool_calls":[$CALLS]}
{"role":"_usage","token_count":1200}"#,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID"}"#,
        shown: r#"{"role":"_checkpoint","id":$TURN}
{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "kimi-cli-wire",
        is_opaque: true,
        head: r#"{"type":"metadata","protocol_version":"1.10"}"#,
        user: r#"{"timestamp":17855784$NN.0,"message":{"type":"TurnBegin","payload":{"user_input":[{"type":"text","text":"$TEXT"}]}}}"#,
        said: r#"{"timestamp":17855784$NN.1,"message":{"type":"ContentPart","payload":{"type":"text","text":"$TEXT"}}}"#,
        asked: "$CALLS",
        call: r#"{"timestamp":17855784$NN.2,"message":{"type":"ToolCall","payload":{"type":"function","id":"$ID","function":{"name":"$TOOL","arguments":"{}"},"extras":null}}}"#,
        between: "\n",
        result: r#"{"timestamp":17855784$NN.9,"message":{"type":"ToolResult","payload":{"tool_call_id":"$ID","return_value":{"is_error":false,"output":"$TEXT","message":"","display":[],"extras":null}}}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "kimi-code",
        head: r#"{"type":"metadata","protocol_version":"1.4","created_at":1785578400000}"#,
        user: r#"{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"$TEXT"}],"toolCalls":[]},"time":17855784$NN000}"#,
        said: r#"{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"st1","turnId":"0","step":1},"time":17855784$NN000}
{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"c1","turnId":"0","step":1,"stepUuid":"st1","part":{"type":"text","text":"$TEXT"}},"time":17855784$NN000}"#,
        asked: r#"{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"st1","turnId":"0","step":1},"time":17855784$NN000}
$CALLS"#,
        call: r#"{"type":"context.append_loop_event","event":{"type":"tool.call","uuid":"c$ID","stepUuid":"st1","toolCallId":"$ID","name":"$TOOL","args":{}},"time":17855784$NN000}"#,
        between: "\n",
        result: r#"{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"c$ID","toolCallId":"$ID","result":{"output":"$TEXT","isError":false}},"time":17855784$NN000}"#,
        ..ROW
    },
    FormatSpelling {
        name: "kiro",
        is_opaque: true,
        user: r#"{"version":"v1","kind":"Prompt","data":{"message_id":"k$NN","content":[{"kind":"text","data":"$TEXT"}]}}"#,
        said: r#"{"version":"v1","kind":"AssistantMessage","data":{"message_id":"k$NN","content":[{"kind":"text","data":"$TEXT"}]}}"#,
        asked: r#"{"version":"v1","kind":"AssistantMessage","data":{"message_id":"k$NN","content":[$CALLS]}}"#,
        call: r#"{"kind":"toolUse","data":{"toolUseId":"$ID","name":"$TOOL","input":{"command":"ls"}}}"#,
        result: r#"{"version":"v1","kind":"ToolResults","data":{"message_id":"k$NN","content":[{"kind":"toolResult","data":{"toolUseId":"$ID","content":[{"kind":"text","data":"$TEXT"}],"status":"success"}}]}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "nanobot",
        head: r#"{"_type":"metadata","key":"telegram:42","created_at":"2026-08-01T10:00:00","updated_at":"2026-08-01T10:05:00","metadata":{},"last_consolidated":0}"#,
        user: r#"{"role":"user","content":"$TEXT","timestamp":"2026-08-01T10:00:$NN"}"#,
        said: r#"{"role":"assistant","content":"$TEXT","timestamp":"2026-08-01T10:00:$NN"}"#,
        asked: r#"{"role":"assistant","content":"","tool_calls":[$CALLS],"timestamp":"2026-08-01T10:00:$NN"}"#,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID","timestamp":"2026-08-01T10:00:$NN"}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"timestamp":"2026-08-01T10:00:$NN"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "openai-chat",
        head: r#"{"role":"system","content":"You are terse."}"#,
        user: r#"{"role":"user","content":"$TEXT"}"#,
        said: r#"{"role":"assistant","content":"$TEXT"}"#,
        asked: r#"{"role":"assistant","content":null,"tool_calls":[$CALLS]}"#,
        result: r#"{"role":"tool","tool_call_id":"$ID","content":"$TEXT"}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "openai-dataset",
        head: r#"{"messages":[$MESSAGES],"tools":[]}"#,
        user: r#"{"role":"user","content":"$TEXT"}"#,
        said: r#"{"role":"assistant","content":"$TEXT"}"#,
        asked: r#"{"role":"assistant","content":"","tool_calls":[$CALLS]}"#,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID"}"#,
        kind: FileForm::Conversations,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "opencode",
        head: r#"{"store":"opencode","table":"session","id":"ses_1","parent_id":null,"cwd":"/w","title":"List files","version":"1.18.33"}"#,
        user: r#"{"store":"opencode","table":"message","id":"msg_$NN","session_id":"ses_1","timestamp":17955784$NN000,"data":{"role":"user","time":{"created":17955784$NN000},"agent":"build"}}
{"store":"opencode","table":"part","id":"prt_$NN","session_id":"ses_1","message_id":"msg_$PP","role":"user","model":null,"timestamp":17955784$NN000,"data":{"type":"text","text":"$TEXT"}}"#,
        said: r#"{"store":"opencode","table":"message","id":"msg_$NN","session_id":"ses_1","timestamp":17955784$NN000,"data":{"role":"assistant","modelID":"claude-opus-4-6","finish":"stop"}}
{"store":"opencode","table":"part","id":"prt_$NN","session_id":"ses_1","message_id":"msg_$PP","role":"assistant","model":"claude-opus-4-6","timestamp":17955784$NN000,"data":{"type":"text","text":"$TEXT"}}"#,
        asked: r#"{"store":"opencode","table":"message","id":"msg_turn$TURN_$MESSAGE","session_id":"ses_1","timestamp":17955784$NN000,"data":{"role":"assistant","modelID":"claude-opus-4-6","finish":"tool-calls"}}
$CALLS"#,
        call: r#"{"store":"opencode","table":"part","id":"prt_$NN","session_id":"ses_1","message_id":"msg_turn$TURN_$MESSAGE","role":"assistant","model":"claude-opus-4-6","timestamp":17955784$NN000,"data":{"type":"tool","tool":"$TOOL","callID":"$ID","state":{"status":"running","input":{"command":"ls"},"time":{"start":1}}}}"#,
        between: "\n",
        answered: r#"{"store":"opencode","table":"part","id":"prt_$NN","session_id":"ses_1","message_id":"msg_turn$TURN_$MESSAGE","role":"assistant","model":"claude-opus-4-6","timestamp":17955784$NN000,"data":{"type":"tool","tool":"$TOOL","callID":"$ID","state":{"status":"completed","input":{"command":"ls"},"output":"$TEXT","metadata":{"exit":0},"time":{"start":1,"end":2}}}}"#,
        kind: FileForm::Whole,
        shown: r#"{"store":"opencode","table":"message","id":"msg_$NN","session_id":"ses_1","timestamp":17955784$NN000,"data":{"role":"user","time":{"created":17955784$NN000},"agent":"build"}}
{"store":"opencode","table":"part","id":"prt_$NN","session_id":"ses_1","message_id":"msg_$PP","role":"user","model":null,"timestamp":17955784$NN000,"data":{"type":"file","mime":"$MIME","filename":"cat.png","url":"data:$MIME;base64,$DATA"}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "pi",
        head: r#"{"type":"session","version":3,"id":"5f0c1a2e-0000-4000-8000-000000000001","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
        user: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"user","content":[{"type":"text","text":"$TEXT"}],"timestamp":17829000$NN000}}"#,
        said: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"assistant","content":[{"type":"text","text":"$TEXT"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-5","stopReason":"stop","timestamp":17829000$NN000}}"#,
        asked: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"assistant","content":[$CALLS],"api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-5","stopReason":"toolUse","timestamp":17829000$NN000}}"#,
        call: r#"{"type":"toolCall","id":"$ID","name":"$TOOL","arguments":{"command":"ls"}}"#,
        result: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"toolResult","toolCallId":"$ID","toolName":"$TOOL","content":[{"type":"text","text":"$TEXT"}],"isError":false,"timestamp":17829000$NN000}}"#,
        root: r#""e01""#,
        shown: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image","data":"$DATA","mimeType":"$MIME"}],"timestamp":17829000$NN000}}"#,
        seen: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"toolResult","toolCallId":"$ID","toolName":"$TOOL","content":[{"type":"text","text":"$TEXT"},{"type":"image","data":"$DATA","mimeType":"$MIME"}],"isError":false,"timestamp":17829000$NN000}}"#,
        thought: r#"{"type":"message","id":"e$NN","parentId":"e$PP","timestamp":"2026-07-01T10:00:$NN.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","thinkingSignature":"c2lnbmVkLTE="},{"type":"text","text":"$TEXT"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-fable-5-1","stopReason":"stop","timestamp":17829000$NN000}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "picoclaw",
        user: r#"{"role":"user","content":"$TEXT","created_at":"2026-08-01T10:00:$NNZ"}"#,
        said: r#"{"role":"assistant","content":"$TEXT","created_at":"2026-08-01T10:00:$NNZ"}"#,
        asked: r#"{"role":"assistant","content":"","tool_calls":[$CALLS],"created_at":"2026-08-01T10:00:$NNZ"}"#,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID","created_at":"2026-08-01T10:00:$NNZ"}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"created_at":"2026-08-01T10:00:$NNZ"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "qwen-code",
        user: r#"{"uuid":"019f0000-0000-7000-8000-0000000000$NN","parentUuid":"019f0000-0000-7000-8000-0000000000$PP","sessionId":"019f0000-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:$NN.000Z","type":"user","cwd":"/w","version":"0.20.0","message":{"role":"user","parts":[{"text":"$TEXT"}]}}"#,
        said: r#"{"uuid":"019f0000-0000-7000-8000-0000000000$NN","parentUuid":"019f0000-0000-7000-8000-0000000000$PP","sessionId":"019f0000-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:$NN.000Z","type":"assistant","cwd":"/w","version":"0.20.0","model":"qwen3-coder-plus","message":{"role":"model","parts":[{"text":"$TEXT"}]}}"#,
        asked: r#"{"uuid":"019f0000-0000-7000-8000-0000000000$NN","parentUuid":"019f0000-0000-7000-8000-0000000000$PP","sessionId":"019f0000-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:$NN.000Z","type":"assistant","cwd":"/w","version":"0.20.0","model":"qwen3-coder-plus","message":{"role":"model","parts":[$CALLS]}}"#,
        call: GEMINI_CALL,
        result: r#"{"uuid":"019f0000-0000-7000-8000-0000000000$NN","parentUuid":"019f0000-0000-7000-8000-0000000000$PP","sessionId":"019f0000-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:$NN.000Z","type":"tool_result","cwd":"/w","version":"0.20.0","message":{"role":"user","parts":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}}]},"toolCallResult":{"callId":"$ID","status":"success","resultDisplay":"$TEXT"}}"#,
        root: r#""019f0000-0000-7000-8000-000000000000""#,
        shown: r#"{"uuid":"019f0000-0000-7000-8000-0000000000$NN","parentUuid":"019f0000-0000-7000-8000-0000000000$PP","sessionId":"019f0000-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:$NN.000Z","type":"user","cwd":"/w","version":"0.20.0","message":{"role":"user","parts":[{"text":"$TEXT"},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]}}"#,
        seen: r#"{"uuid":"019f0000-0000-7000-8000-0000000000$NN","parentUuid":"019f0000-0000-7000-8000-0000000000$PP","sessionId":"019f0000-0000-7000-8000-000000000001","timestamp":"2026-08-01T10:00:$NN.000Z","type":"tool_result","cwd":"/w","version":"0.20.0","message":{"role":"user","parts":[{"functionResponse":{"id":"$ID","name":"$TOOL","response":{"output":"$TEXT"}}},{"inlineData":{"mimeType":"$MIME","data":"$DATA"}}]},"toolCallResult":{"callId":"$ID","status":"success","resultDisplay":"$TEXT"}}"#,
        ..ROW
    },
    FormatSpelling {
        name: "reasonix",
        user: r#"{"role":"user","content":"$TEXT"}"#,
        said: r#"{"role":"assistant","content":"$TEXT"}"#,
        asked: r#"{"role":"assistant","content":"","tool_calls":[$CALLS]}"#,
        call: BARE_CALL,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID"}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}]}"#,
        ..ROW
    },
    FormatSpelling {
        name: "sharegpt",
        head: r#"{"conversations":[$MESSAGES],"model":"hermes-4","completed":true}"#,
        user: r#"{"from":"human","value":"$TEXT"}"#,
        said: r#"{"from":"gpt","value":"$TEXT"}"#,
        asked: r#"{"from":"gpt","value":"<tool_call>{}</tool_call>"}"#,
        result: r#"{"from":"tool","value":"<tool_response>$TEXT</tool_response>"}"#,
        kind: FileForm::Conversations,
        ..ROW
    },
    FormatSpelling {
        name: "vibe",
        user: r#"{"role":"user","content":"$TEXT","injected":false,"message_id":"m$NN"}"#,
        said: r#"{"role":"assistant","content":"$TEXT","injected":false,"message_id":"m$NN"}"#,
        asked: r#"{"role":"assistant","content":"","tool_calls":[$CALLS],"injected":false,"message_id":"m$NN"}"#,
        result: r#"{"role":"tool","content":"$TEXT","tool_call_id":"$ID","injected":false,"message_id":"m$NN"}"#,
        shown: r#"{"role":"user","content":[{"type":"text","text":"$TEXT"},{"type":"image_url","image_url":{"url":"data:$MIME;base64,$DATA"}}],"injected":false,"message_id":"m$NN"}"#,
        ..ROW
    },
    FormatSpelling {
        name: "vscode-chat",
        is_opaque: true,
        head: r#"{"kind":0,"v":{"version":3,"sessionId":"v1","requests":[]}}"#,
        user: r#"{"kind":2,"k":["requests"],"v":[{"requestId":"r$NN","message":{"text":"$TEXT"}}]}"#,
        said: r#"{"kind":1,"k":["requests",0,"response"],"v":[{"value":"$TEXT"}]}"#,
        ..ROW
    },
];

/// A line without its end, and its events.
#[derive(Clone, Debug)]
pub(crate) struct StoryLine {
    pub(crate) events: Vec<usize>,
    pub(crate) text: String,
}

/// The texts of a file's second conversation.
const SECOND: [&str; 2] = ["thanks", "Any time."];

impl FormatSpelling {
    /// Whether the format has what happens.
    pub(crate) fn has(&self, event: &StoryEvent) -> bool {
        match event {
            StoryEvent::Shown(..) => !self.shown.is_empty(),
            StoryEvent::Seen(..) => !self.seen.is_empty(),
            StoryEvent::Thought(_) => !self.thought.is_empty(),
            StoryEvent::Strange(_) => self.kind != FileForm::Conversations && self.strange() != self.user,
            _ => true,
        }
    }

    /// A user message with a part of a kind that no agent writes.
    fn strange(&self) -> String {
        let parts = [
            (r#""data":{"type":"text","text":"$TEXT"}"#, r#""data":{"type":"hologram","text":"$TEXT"}"#),
            (
                r#"{"type":"input_text","text":"$TEXT"}"#,
                r#"{"type":"input_text","text":"$TEXT"},{"type":"hologram"}"#,
            ),
            (r#"{"type":"text","text":"$TEXT"}"#, r#"{"type":"text","text":"$TEXT"},{"type":"hologram"}"#),
            (r#"{"text":"$TEXT"}"#, r#"{"text":"$TEXT"},{"hologram":{}}"#),
            (
                r#"{"block_type":"text","text":"$TEXT"}"#,
                r#"{"block_type":"text","text":"$TEXT"},{"block_type":"hologram"}"#,
            ),
            (r#""message":"$TEXT"}"#, r#""message":[{"type":"text","text":"$TEXT"},{"type":"hologram"}]}"#),
            (r#""part_kind":"user-prompt"}"#, r#""part_kind":"user-prompt"},{"part_kind":"hologram"}"#),
            (r#""attachments":[]"#, r#""attachments":[{"type":"hologram"}]"#),
            (r#""content":"$TEXT""#, r#""content":[{"type":"text","text":"$TEXT"},{"type":"hologram"}]"#),
        ];
        let own = parts.iter().find(|(known, _)| self.user.contains(known));
        own.map_or(self.user.to_string(), |(known, strange)| self.user.replacen(known, strange, 1))
    }

    /// Spells a story.
    pub(crate) fn spell(&self, story: &[StoryEvent]) -> Vec<StoryLine> {
        let mut pen = Pen { row: self, story, lines: Vec::new(), turns: 0 };
        if self.kind == FileForm::Conversations {
            return pen.conversations();
        }
        pen.write(&[], self.head);
        let head = pen.lines.len();
        for at in 0..story.len() {
            pen.event(at);
        }
        if let Some(first) = pen.lines.get_mut(head).filter(|_| !self.root.is_empty()) {
            first.text = first.text.replace(self.root, "null");
        }
        pen.lines
    }
}

struct Pen<'a> {
    row: &'a FormatSpelling,
    story: &'a [StoryEvent],
    lines: Vec<StoryLine>,
    turns: usize,
}

impl Pen<'_> {
    fn conversations(mut self) -> Vec<StoryLine> {
        let second = [StoryEvent::User(SECOND[0].into()), StoryEvent::Said(SECOND[1].into())];
        let all: Vec<usize> = (0..self.story.len()).collect();
        for (story, events) in [(self.story, all), (&second[..], Vec::new())] {
            let messages: Vec<String> = story.iter().map(|event| self.template(story, event)).collect();
            self.write(&events, &self.row.head.replace("$MESSAGES", &messages.join(",")));
        }
        self.lines
    }

    fn event(&mut self, at: usize) {
        let (story, event) = (self.story, &self.story[at]);
        if let StoryEvent::User(_) | StoryEvent::Shown(..) | StoryEvent::Strange(_) = event {
            self.turns += 1;
        }
        match (event, self.row.kind) {
            (StoryEvent::Result(..), FileForm::Whole) => {}
            (StoryEvent::Asked(calls), FileForm::Whole) => {
                let results = answers(story, at + 1..story.len(), calls);
                let events: Vec<usize> =
                    [at].into_iter().chain(results.iter().map(|(event, ..)| *event)).collect();
                let line = self.with_calls(calls, &results);
                self.write(&events, &line.replace("$MESSAGE", &at.to_string()));
            }
            (StoryEvent::Result(id, _), FileForm::Upserts) => {
                let Some(asked) = call_of(story, at, id) else { return };
                let StoryEvent::Asked(calls) = &story[asked] else { return };
                let line = self.with_calls(calls, &answers(story, asked..at + 1, calls));
                self.write(&[asked, at], &line.replace("$MESSAGE", &asked.to_string()));
            }
            _ => {
                let text = self.template(story, event).replace("$MESSAGE", &at.to_string());
                self.write(&[at], &text);
            }
        }
    }

    fn template(&self, story: &[StoryEvent], event: &StoryEvent) -> String {
        match event {
            StoryEvent::User(text) => self.row.user.replace("$TEXT", text),
            StoryEvent::Strange(text) => self.row.strange().replace("$TEXT", text),
            StoryEvent::Said(text) => self.row.said.replace("$TEXT", text),
            StoryEvent::Asked(calls) => self.with_calls(calls, &[]),
            StoryEvent::Thought(text) => self.row.thought.replace("$TEXT", text),
            StoryEvent::Shown(text, picture) => pictured(self.row.shown, *picture).replace("$TEXT", text),
            StoryEvent::Result(id, text) => result(self.row.result, story, id).replace("$TEXT", text),
            StoryEvent::Seen(id, text, picture) => {
                pictured(&result(self.row.seen, story, id), *picture).replace("$TEXT", text)
            }
        }
    }

    /// A message with calls, some of which have results.
    fn with_calls(
        &self,
        calls: &[(&'static str, &'static str)],
        results: &[(usize, &'static str, &str)],
    ) -> String {
        let spell = |(id, tool): &(&str, &str), waiting: &str| {
            let result = results.iter().rev().find(|(_, own, _)| own == id);
            let template = if result.is_some() { self.row.answered } else { waiting };
            let text = result.map_or("", |(_, _, text)| text);
            template.replace("$ID", id).replace("$TOOL", tool).replace("$TEXT", text)
        };
        let calls_spelled: Vec<String> = calls.iter().map(|call| spell(call, self.row.call)).collect();
        let starts: Vec<String> = calls.iter().map(|call| spell(call, self.row.start)).collect();
        let asked = self.row.asked.replace("$CALLS", &calls_spelled.join(self.row.between));
        let beside: Vec<String> = results
            .iter()
            .map(|(_, id, text)| self.row.result.replace("$ID", id).replace("$TEXT", text))
            .collect();
        asked.replace("$STARTS", &starts.join("\n")).replace("$RESULTS", &beside.join(","))
    }

    /// Numbers lines and adds them.
    fn write(&mut self, events: &[usize], text: &str) {
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            let number = self.lines.len() + 1;
            let line =
                line.replace("$NN", &format!("{number:02}")).replace("$PP", &format!("{:02}", number - 1));
            let text = line.replace("$TURN", &self.turns.to_string());
            self.lines.push(StoryLine { events: events.to_vec(), text });
        }
    }
}

fn result(template: &str, story: &[StoryEvent], id: &str) -> String {
    template.replace("$ID", id).replace("$TOOL", tool_of(story, id))
}

fn pictured(template: &str, (mime, data): Picture) -> String {
    template.replace("$MIME", mime).replace("$DATA", data)
}

/// The newest message before `at` with a call of this id.
fn call_of(story: &[StoryEvent], at: usize, id: &str) -> Option<usize> {
    story[..at].iter().rposition(
        |event| matches!(event, StoryEvent::Asked(calls) if calls.iter().any(|(own, _)| *own == id)),
    )
}

fn tool_of(story: &[StoryEvent], id: &str) -> &'static str {
    let mut calls = story.iter().filter_map(|event| match event {
        StoryEvent::Asked(calls) => calls.iter().find(|(own, _)| *own == id),
        _ => None,
    });
    calls.next().map_or("ls", |(_, tool)| tool)
}

/// The results of these calls among some events, up to where an id is used again.
fn answers<'a>(
    story: &'a [StoryEvent],
    among: std::ops::Range<usize>,
    calls: &[(&'static str, &'static str)],
) -> Vec<(usize, &'static str, &'a str)> {
    let first = among.start;
    let again = |event: &StoryEvent| matches!(event, StoryEvent::Asked(more) if more.iter().any(|(id, _)| calls.iter().any(|(own, _)| own == id)));
    let own = among.take_while(|at| *at == first || !again(&story[*at]));
    let results = own.filter_map(|at| match &story[at] {
        StoryEvent::Result(id, text) => Some((at, *id, text.as_str())),
        _ => None,
    });
    results.filter(|(_, id, _)| calls.iter().any(|(own, _)| own == id)).collect()
}
