//! Spells stories the way agents write them, byte for byte and in their key order.

use super::story::{
    CallId, Dialect, StoryCall, StoryResult, StoryStep, StoryText, StoryThinking, StoryTurn, TOOLS,
};

/// A line without its end.
#[derive(Clone, Debug)]
pub(crate) struct SpelledLine {
    /// The id of the entry, if it has one.
    pub id: Option<String>,
    pub bytes: Vec<u8>,
}

/// Spells a story.
pub(crate) fn spell(dialect: Dialect, story: &[StoryStep]) -> Vec<SpelledLine> {
    let mut pen = Pen {
        dialect,
        lines: Vec::new(),
        main: Vec::new(),
        parent: None,
        aside: false,
        flagged: false,
        calls: 0,
        late: Vec::new(),
    };
    pen.begin();
    for step in story {
        pen.step(step);
        if matches!(step, StoryStep::Says(_) | StoryStep::Turn(_)) && !pen.late.is_empty() {
            for (call, answer) in std::mem::take(&mut pen.late) {
                pen.result(&call, &answer);
            }
        }
    }
    pen.lines
}

struct Asked {
    id: String,
    tool: &'static str,
    /// The entry of the call.
    entry: Option<String>,
}

struct Pen {
    dialect: Dialect,
    lines: Vec<SpelledLine>,
    /// Ids of the conversation, in order.
    main: Vec<String>,
    parent: Option<String>,
    aside: bool,
    /// Lines of the branch are marked as a subagent's.
    flagged: bool,
    calls: usize,
    /// Results that come late.
    late: Vec<(Asked, StoryResult)>,
}

fn literal(text: &str) -> String {
    format!("\"{text}\"")
}

fn block(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

impl Pen {
    fn begin(&mut self) {
        let header = match self.dialect {
            Dialect::Pi => {
                r#"{"type":"session","version":3,"id":"5e5510","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#
            }
            Dialect::PiFlat => {
                r#"{"type":"session","id":"5e5510","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#
            }
            _ => return,
        };
        self.lines.push(SpelledLine { id: None, bytes: header.into() });
    }

    fn raw(&mut self, line: String) {
        self.lines.push(SpelledLine { id: None, bytes: line.into_bytes() });
    }

    fn time(&self) -> String {
        let n = self.lines.len();
        format!("2026-07-01T10:{:02}:{:02}.000Z", n / 60, n % 60)
    }

    /// Appends an entry of a tree, or its equivalent in a file without ids.
    fn entry(&mut self, fields: &str, tail: &str) -> Option<String> {
        let time = self.time();
        let n = self.lines.len();
        let parent = self.parent.as_ref().map_or("null".to_string(), |parent| literal(parent));
        let (id, line) = match self.dialect {
            Dialect::Pi => {
                let id = format!("{:08x}", 0xa0 + n);
                let line =
                    format!(r#"{{{fields},"id":"{id}","parentId":{parent},"timestamp":"{time}"{tail}}}"#);
                (Some(id), line)
            }
            Dialect::PiFlat => (None, format!(r#"{{{fields},"timestamp":"{time}"{tail}}}"#)),
            Dialect::ClaudeCode => {
                let id = format!("{:08x}-0000-4000-a000-000000000000", 0xa0 + n);
                let aside = self.aside && self.flagged;
                let line = format!(
                    r#"{{"parentUuid":{parent},"isSidechain":{aside},"cwd":"/w","sessionId":"S",{fields},"uuid":"{id}","timestamp":"{time}"{tail}}}"#
                );
                (Some(id), line)
            }
            Dialect::OpenAiChat | Dialect::Anthropic => (None, format!("{{{fields}{tail}}}")),
        };
        self.lines.push(SpelledLine { id: id.clone(), bytes: line.into_bytes() });
        if let Some(id) = &id {
            self.parent = Some(id.clone());
            if !self.aside {
                self.main.push(id.clone());
            }
        }
        id
    }

    fn step(&mut self, step: &StoryStep) {
        match step {
            StoryStep::Says(text) => self.says(&literal(text)),
            StoryStep::Turn(turn) => self.turn(turn),
            StoryStep::Compaction(keeps) => self.compaction(usize::from(*keeps)),
            StoryStep::Quiet => self.quiet(),
            StoryStep::Note(text) => self.note(text),
            StoryStep::Aside(back, turn) => self.side_branch(usize::from(*back), turn),
        }
    }

    fn says(&mut self, content: &str) {
        match self.dialect {
            Dialect::Pi | Dialect::PiFlat => {
                let message = format!(r#","message":{{"role":"user","content":{content}}}"#);
                self.entry(r#""type":"message""#, &message);
            }
            Dialect::ClaudeCode => {
                let fields = format!(r#""type":"user","message":{{"role":"user","content":{content}}}"#);
                self.entry(&fields, "");
            }
            Dialect::OpenAiChat | Dialect::Anthropic => {
                self.entry(&format!(r#""role":"user","content":{content}"#), "");
            }
        }
    }

    fn quiet(&mut self) {
        match self.dialect {
            Dialect::Pi if self.parent.is_some() && self.lines.len().is_multiple_of(2) => {
                let target = self.parent.clone().unwrap_or_default();
                self.entry(r#""type":"label""#, &format!(r#","targetId":"{target}","label":"here""#));
            }
            Dialect::Pi | Dialect::PiFlat => {
                self.entry(r#""type":"custom","customType":"x""#, r#","data":{"n":1.10}"#);
            }
            Dialect::ClaudeCode if self.lines.len().is_multiple_of(2) => {
                self.entry(r#""type":"progress","data":{"type":"bash_progress","output":"…"}"#, "");
            }
            Dialect::ClaudeCode => self.raw(r#"{"type":"ai-title","aiTitle":"t","sessionId":"S"}"#.into()),
            Dialect::OpenAiChat | Dialect::Anthropic => {}
        }
    }

    fn note(&mut self, text: &str) {
        match self.dialect {
            Dialect::Pi | Dialect::PiFlat => {
                let fields =
                    format!(r#""type":"custom_message","customType":"y","content":"{text}","display":true"#);
                self.entry(&fields, "");
            }
            Dialect::ClaudeCode => {
                let fields =
                    format!(r#""isMeta":true,"type":"user","message":{{"role":"user","content":"{text}"}}"#);
                self.entry(&fields, "");
            }
            Dialect::OpenAiChat | Dialect::Anthropic => {
                self.entry(&format!(r#""role":"system","content":"{text}""#), "");
            }
        }
    }

    fn compaction(&mut self, keeps: usize) {
        match self.dialect {
            Dialect::Pi => {
                let Some(kept) = self.main.len().checked_sub(keeps.max(1)).map(|at| self.main[at].clone())
                else {
                    return;
                };
                let tail = format!(r#","summary":"So far.","firstKeptEntryId":"{kept}","tokensBefore":9"#);
                self.entry(r#""type":"compaction""#, &tail);
            }
            Dialect::PiFlat => {
                let kept = self.lines.len().saturating_sub(keeps).max(1);
                let tail = format!(r#","summary":"So far.","firstKeptEntryIndex":{kept},"tokensBefore":9"#);
                self.entry(r#""type":"compaction""#, &tail);
            }
            Dialect::ClaudeCode => self.compact_boundary(keeps),
            Dialect::OpenAiChat | Dialect::Anthropic => {}
        }
    }

    fn compact_boundary(&mut self, keeps: usize) {
        let Some(tail) = self.main.last().cloned() else { return };
        let head = &self.main[self.main.len() - keeps.clamp(1, self.main.len())];
        let kept = if keeps > 0 {
            format!(
                r#","preservedSegment":{{"headUuid":"{head}","anchorUuid":"{tail}","tailUuid":"{tail}"}}"#
            )
        } else {
            String::new()
        };
        let fields = format!(
            r#""logicalParentUuid":"{tail}","type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{{"trigger":"auto","preTokens":9{kept}}}"#
        );
        self.parent = None;
        self.entry(&fields, "");
        let fields = r#""type":"user","message":{"role":"user","content":"So far."},"isVisibleInTranscriptOnly":true,"isCompactSummary":true"#;
        self.entry(fields, "");
    }

    fn side_branch(&mut self, back: usize, turn: &StoryTurn) {
        if matches!(self.dialect, Dialect::OpenAiChat | Dialect::Anthropic | Dialect::PiFlat) {
            return;
        }
        let from = self.parent.clone();
        self.parent = self.main.len().checked_sub(back + 1).map(|at| self.main[at].clone());
        (self.aside, self.flagged) = (true, back % 2 == 1);
        self.turn(turn);
        self.aside = false;
        self.parent = from;
    }

    fn asked(&mut self, calls: &[StoryCall]) -> Vec<Asked> {
        let mut asked: Vec<Asked> = Vec::new();
        for (n, call) in calls.iter().enumerate() {
            if call.id != CallId::Again {
                self.calls += 1;
            }
            let id = match call.id {
                CallId::Numbered => format!("{}:{n}", TOOLS[call.tool]),
                _ => format!("toolu_{}", self.calls),
            };
            asked.push(Asked { id, tool: TOOLS[call.tool], entry: None });
        }
        asked
    }

    fn turn(&mut self, turn: &StoryTurn) {
        let mut asked = self.asked(&turn.calls);
        match self.dialect {
            Dialect::Pi | Dialect::PiFlat => self.pi_turn(turn, &asked),
            Dialect::ClaudeCode => self.claude_turn(turn, &mut asked),
            Dialect::OpenAiChat => self.openai_turn(turn, &asked),
            Dialect::Anthropic => {
                let content = anthropic_content(turn, &asked).join(",");
                let stop = if turn.calls.is_empty() { "end_turn" } else { "tool_use" };
                let model = model(turn);
                self.entry(
                    &format!(
                        r#""role":"assistant","model":"{model}","content":[{content}],"stop_reason":"{stop}""#
                    ),
                    "",
                );
            }
        }
        self.results(turn, asked);
    }

    fn results(&mut self, turn: &StoryTurn, asked: Vec<Asked>) {
        let mut now = Vec::new();
        for (call, asked) in turn.calls.iter().zip(asked) {
            for answer in &call.answers {
                let again = Asked { id: asked.id.clone(), tool: asked.tool, entry: asked.entry.clone() };
                if answer.late && !self.aside {
                    self.late.push((again, answer.clone()));
                } else {
                    now.push((again, answer.clone()));
                }
            }
        }
        let blocks = matches!(self.dialect, Dialect::ClaudeCode | Dialect::Anthropic);
        if blocks && turn.grouped && !now.is_empty() {
            let mut content: Vec<String> =
                now.iter().map(|(asked, answer)| result_block(&asked.id, answer)).collect();
            content.extend(turn.trailing.as_ref().map(|text| block(text)));
            self.says(&format!("[{}]", content.join(",")));
            return;
        }
        for (asked, answer) in now {
            self.result(&asked, &answer);
        }
    }

    fn result(&mut self, asked: &Asked, answer: &StoryResult) {
        let texts = texts_of(answer);
        match self.dialect {
            Dialect::Pi | Dialect::PiFlat => {
                let blocks: Vec<String> = texts.iter().map(|text| block(text)).collect();
                let side = answer.side.as_ref().map_or(String::new(), |side| {
                    format!(r#","details":{{"diff":"{side}","filePath":"{side}"}}"#)
                });
                let (id, tool, error) = (&asked.id, asked.tool, answer.error);
                let message = format!(
                    r#","message":{{"role":"toolResult","toolCallId":"{id}","toolName":"{tool}","content":[{}]{side},"isError":{error},"timestamp":1782900000000}}"#,
                    blocks.join(",")
                );
                self.entry(r#""type":"message""#, &message);
            }
            Dialect::ClaudeCode => {
                let tail = answer.side.as_ref().map_or(String::new(), |side| {
                    format!(r#","toolUseResult":{{"stdout":"{side}","stderr":"","filePath":"{side}"}}"#)
                });
                let fields = format!(
                    r#""type":"user","message":{{"role":"user","content":[{}]}}"#,
                    result_block(&asked.id, answer)
                );
                if asked.entry.is_some() {
                    self.parent.clone_from(&asked.entry);
                }
                self.entry(&fields, &tail);
            }
            Dialect::OpenAiChat => {
                let (id, tool, text) = (&asked.id, asked.tool, texts.concat());
                self.entry(
                    &format!(r#""role":"tool","tool_call_id":"{id}","name":"{tool}","content":"{text}""#),
                    "",
                );
            }
            Dialect::Anthropic => self.says(&format!("[{}]", result_block(&asked.id, answer))),
        }
    }

    fn pi_turn(&mut self, turn: &StoryTurn, asked: &[Asked]) {
        let mut content = Vec::new();
        if turn.thinking != StoryThinking::None {
            content.push(r#"{"type":"thinking","thinking":"hm","thinkingSignature":"RXFC"}"#.to_string());
        }
        content.extend(turn.text.as_ref().map(|text| block(text)));
        for (call, asked) in turn.calls.iter().zip(asked) {
            let partial = if call.partial { r#","partialJson":"{\"pa""# } else { "" };
            content.push(format!(
                r#"{{"type":"toolCall","id":"{}","name":"{}","arguments":{{"path":"x","n":1e2}}{partial}}}"#,
                asked.id, asked.tool
            ));
        }
        let stop = match turn {
            StoryTurn { aborted: true, .. } => "aborted",
            StoryTurn { calls, .. } if calls.is_empty() => "stop",
            _ => "toolUse",
        };
        let message = format!(
            r#","message":{{"role":"assistant","content":[{}],"model":"{}","stopReason":"{stop}","timestamp":1782900000000}}"#,
            content.join(","),
            model(turn)
        );
        self.entry(r#""type":"message""#, &message);
    }

    /// A line for each block, all with one `message.id`, each the child of the one before.
    fn claude_turn(&mut self, turn: &StoryTurn, asked: &mut [Asked]) {
        let message = self.lines.len();
        let stop = if turn.calls.is_empty() { "\"end_turn\"" } else { "\"tool_use\"" };
        let before_calls =
            usize::from(turn.thinking != StoryThinking::None) + usize::from(turn.text.is_some());
        for (n, content) in anthropic_content(turn, asked).into_iter().enumerate() {
            let fields = format!(
                r#""message":{{"id":"msg_{message}","type":"message","role":"assistant","model":"{}","content":[{content}],"stop_reason":{stop},"usage":{{"input_tokens":3}}}},"requestId":"req_{message}","type":"assistant""#,
                model(turn)
            );
            let tail = if turn.aborted { r#","isApiErrorMessage":true"# } else { "" };
            let id = self.entry(&fields, tail);
            if n >= before_calls {
                asked[n - before_calls].entry = id;
            }
        }
    }

    fn openai_turn(&mut self, turn: &StoryTurn, asked: &[Asked]) {
        let content = turn.text.as_ref().map_or("null".to_string(), |text| literal(text));
        let calls: Vec<String> = asked
            .iter()
            .map(|asked| {
                format!(
                    r#"{{"id":"{}","type":"function","function":{{"name":"{}","arguments":"{{\"path\": \"x\"}}"}}}}"#,
                    asked.id, asked.tool
                )
            })
            .collect();
        let calls =
            if calls.is_empty() { String::new() } else { format!(r#","tool_calls":[{}]"#, calls.join(",")) };
        self.entry(&format!(r#""role":"assistant","content":{content}{calls}"#), "");
    }
}

fn model(turn: &StoryTurn) -> &'static str {
    if turn.thinking == StoryThinking::Bound { "claude-opus-5-5" } else { "claude-sonnet-4-5" }
}

fn texts_of(answer: &StoryResult) -> Vec<StoryText> {
    if answer.synthetic {
        return vec![
            "[openclaw] missing tool result in session history; inserted synthetic error result.".to_string(),
        ];
    }
    answer.texts.clone()
}

fn anthropic_content(turn: &StoryTurn, asked: &[Asked]) -> Vec<String> {
    let mut content = Vec::new();
    if turn.thinking != StoryThinking::None {
        content.push(r#"{"type":"thinking","thinking":"","signature":"RXFC"}"#.to_string());
    }
    content.extend(turn.text.as_ref().map(|text| block(text)));
    for (call, asked) in turn.calls.iter().zip(asked) {
        let input = if call.partial { "" } else { r#","input":{"path":"x","n":1.50}"# };
        content.push(format!(r#"{{"type":"tool_use","id":"{}","name":"{}"{input}}}"#, asked.id, asked.tool));
    }
    content
}

fn result_block(id: &str, answer: &StoryResult) -> String {
    let texts = texts_of(answer);
    let content = if let [text] = &texts[..] {
        literal(text)
    } else {
        let mut blocks: Vec<String> = texts.iter().map(|text| block(text)).collect();
        blocks.push(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0"}}"#
                .to_string(),
        );
        format!("[{}]", blocks.join(","))
    };
    let error = answer.error;
    format!(r#"{{"tool_use_id":"{id}","type":"tool_result","content":{content},"is_error":{error}}}"#)
}
