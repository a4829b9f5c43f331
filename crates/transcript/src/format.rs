//! What agents write and what their lines mean. Each agent is one file; [`FORMATS`] lists them all.
//!
//! A [`Format`] is data about another program: how to recognise its files, what a line means in terms of
//! [`crate::entry`], which branch it would load, how it writes a result, and how it writes its files. It decides nothing;
//! rules do.

mod agent;
mod ai_sdk;
mod anthropic;
mod atif;
mod autogen;
mod base;
mod bedrock;
mod claude_code;
mod codex;
mod common;
mod copilot;
mod dataset;
mod droid;
#[cfg(test)]
mod example;
pub(crate) mod fields;
mod gemini_cli;
mod gemini_contents;
mod grok_build;
mod kimi_code;
pub(crate) mod kinds;
mod langchain;
mod llamaindex;
pub(crate) mod names;
mod openai_chat;
mod opencode;
mod order;
#[cfg(test)]
mod otter;
mod pi;
mod pydantic_ai;
mod qwen_code;
mod read_only;
mod responses;
mod writing;

pub use agent::{Agent, Index, Resume};
pub use base::*;
pub(crate) use common::written_ms;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spans::json::Doc;

/// All formats. A file has the one format that alone claims it.
pub const FORMATS: &[&Format] = &[
    &pi::FORMAT,
    &claude_code::FORMAT,
    &codex::FORMAT,
    &copilot::FORMAT,
    &gemini_cli::FORMAT,
    &qwen_code::FORMAT,
    &kimi_code::FORMAT,
    &grok_build::FORMAT,
    &anthropic::FORMAT,
    &bedrock::FORMAT,
    &langchain::FORMAT,
    &llamaindex::FORMAT,
    &autogen::FORMAT,
    &pydantic_ai::FORMAT,
    &responses::FORMAT,
    &droid::FORMAT,
    &openai_chat::BARE,
    &openai_chat::KIMI_CLI,
    &openai_chat::VIBE,
    &openai_chat::PICOCLAW,
    &openai_chat::NANOBOT,
    &openai_chat::HERMES,
    &openai_chat::REASONIX,
    &ai_sdk::MODEL,
    &ai_sdk::SCREEN,
    &gemini_contents::FORMAT,
    &atif::FORMAT,
    &opencode::FORMAT,
    &dataset::OPENAI,
    &dataset::ANTHROPIC,
    &dataset::SHAREGPT,
    &dataset::GEMINI,
    &read_only::VSCODE_CHAT,
    &read_only::KIMI_CLI_WIRE,
    &read_only::CURSOR,
    &read_only::KIRO,
    &read_only::GOOSE_LEGACY,
    &read_only::CLAUDE_STREAM,
    #[cfg(test)]
    &otter::FORMAT,
];

/// Objects that decide the format.
const HEAD_OBJECTS: usize = 40;

/// Columns in which tables of conversations have them as JSON texts.
const TEXT_COLUMNS: &[&str] = &["messages", "conversations", "conversation", "trajectory"];

/// Values that those objects may hold together, to bound memory.
const HEAD_NODES: usize = 1 << 18;

/// Whether this many objects, with this many values, are enough to decide the format.
pub(crate) fn is_head(objects: usize, nodes: usize) -> bool {
    objects >= HEAD_OBJECTS || nodes >= HEAD_NODES
}

/// A format is serialised as its name.
impl Serialize for Format {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for &'static Format {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        FORMATS
            .iter()
            .copied()
            .find(|format| format.name == name)
            .ok_or_else(|| Error::custom("no such format"))
    }
}

/// The votes on the first objects of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    objects: usize,
    nodes: usize,
    /// Formats with a vote of [`Vote::Own`] or [`Vote::Like`].
    own: Bits,
    /// Formats that are ruled out.
    foreign: Bits,
    /// Objects that no format calls its own, but one might if a damaged name in them were whole.
    corrupted: usize,
    /// Formats that objects may be of, without telling it for certain.
    near: Bits,
    /// Objects that some format calls its own.
    telling: usize,
    /// Those of them that have fields of other programs.
    dialect: usize,
    /// Which of [`TEXT_COLUMNS`] holds a conversation as a text in one of them.
    text_column: Option<usize>,
}

/// A bit for each of [`FORMATS`].
type Bits = u64;
const _: () = assert!(FORMATS.len() <= Bits::BITS as usize);

impl Head {
    /// The votes on these objects. `nodes` counts all values that were read, including those of lines that were dropped.
    pub(crate) fn from_docs(docs: &mut dyn Iterator<Item = &Doc>, nodes: usize) -> Self {
        let mut head = Self::default();
        docs.for_each(|doc| head.add(doc));
        Self { nodes, ..head }
    }

    /// Adds the votes on one more object.
    pub(crate) fn add(&mut self, doc: &Doc) {
        self.objects += 1;
        self.nodes += doc.size();
        let is_text = |name: &&str| doc.get(name).is_some_and(|text| text.prefix().starts_with(br#"[{\""#));
        self.text_column = self.text_column.or_else(|| TEXT_COLUMNS.iter().position(is_text));
        let (mut own, mut like, mut fits, mut may_fit, mut corrupted) = (0, 0, 0, 0, false);
        for (n, format) in FORMATS.iter().enumerate() {
            match vote(format, doc) {
                Vote::Own => own |= 1 << n,
                Vote::Like => like |= 1 << n,
                Vote::Fits => fits |= 1 << n,
                Vote::MayFit => may_fit |= 1 << n,
                Vote::Corrupted => corrupted = true,
                Vote::Foreign => self.foreign |= 1 << n,
                Vote::Silent => {}
            }
        }
        if own != 0 {
            self.foreign |= !(own | fits);
        } else if like != 0 {
            (own, self.foreign) = (like, self.foreign | !(like | fits | may_fit));
        }
        self.corrupted += usize::from(corrupted && own == 0);
        self.telling += usize::from(own != 0);
        self.dialect += usize::from(own != 0 && own == like);
        self.near |= fits | may_fit;
        self.own |= own;
    }

    /// Whether the votes so far decide the format.
    pub(crate) fn full(&self) -> bool {
        is_head(self.objects, self.nodes)
    }

    /// The format by the votes so far: the only one that claims the file, if most of its objects are whole.
    pub(crate) fn format(&self) -> Option<&'static Format> {
        let claimed = self.own & !self.foreign;
        let whole = self.corrupted == 0 || self.corrupted * 2 < self.objects;
        if claimed.is_power_of_two() && whole {
            FORMATS.get(claimed.trailing_zeros() as usize).copied()
        } else {
            None
        }
    }
}

/// The formats of bare messages.
fn bare() -> Bits {
    let own = FORMATS.iter().enumerate().filter(|(_, format)| format.is_bare());
    own.fold(0, |bits, (n, _)| bits | 1 << n)
}

impl Head {
    /// By what the format was recognised, or why none was, in a few words.
    pub(crate) fn why(&self, format: Option<&Format>) -> String {
        let names = |bits: Bits| {
            let is_among = |(n, _): &(usize, &&Format)| bits & (1 << n) != 0;
            FORMATS.iter().enumerate().filter(is_among).map(|(_, format)| format.name).collect::<Vec<_>>()
        };
        let Self { objects, own, foreign, near, telling, dialect, .. } = *self;
        match (format, &names(own)[..], &names(near & !foreign & bare())[..]) {
            (Some(_), ..) if objects == 0 => String::from("read as told"),
            (Some(_), ..) => {
                let more = match dialect {
                    0 => String::new(),
                    count => format!(", {count} of them with fields that other programs add"),
                };
                format!("{telling} of its first {objects} objects are of this format alone{more}")
            }
            (None, [], []) => match self.text_column.and_then(|index| TEXT_COLUMNS.get(index)) {
                Some(name) => format!(
                    "its conversations are JSON texts in the column `{name}`; rows that hold them as lists can be read: \
                     jq -c '{{messages: (.{name} | fromjson)}}'"
                ),
                None => String::new(),
            },
            (None, [], likely) => format!(
                "its objects may be as in {}, but nothing tells that for certain: --as FORMAT reads them so",
                likely.join(" or ")
            ),
            (None, [one], _) => format!("some of its objects are as in {one}, and others are not"),
            (None, mixed, _) => {
                format!("some of its objects are as in {}, others as in {}", mixed[0], mixed[1..].join(", "))
            }
        }
    }
}

/// The vote of a format on an object, in which a name may be damaged.
fn vote(format: &Format, doc: &Doc) -> Vote {
    let vote = (format.vote)(doc);
    if !matches!(vote, Vote::Silent | Vote::Foreign) || names::is_sound(format.names, doc) {
        return vote;
    }
    let mut mended = doc.clone();
    names::mend(format.names, &mut mended, &mut names::SoundKeys::default());
    if matches!((format.vote)(&mended), Vote::Own | Vote::Like | Vote::Fits) { Vote::Corrupted } else { vote }
}

#[cfg(test)]
mod tests {
    use super::common::{later, written_ms};
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use spans::json;
    use spans::source::Span;

    /// The format of a file with these lines.
    fn detected(lines: &[&str]) -> Option<&'static str> {
        let bytes = lines.join("\n").into_bytes();
        crate::read::scan::scan(&bytes.as_slice()).unwrap().format.map(|format| format.name)
    }

    const CHAT: [&str; 3] = [
        r#"{"role":"user","content":"list"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
        r#"{"role":"tool","tool_call_id":"c","content":"a.txt"}"#,
    ];

    const MESSAGES: [&str; 3] = [
        r#"{"role":"user","content":"list"}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ls","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"a.txt"}]}"#,
    ];

    #[test]
    fn an_archive_has_a_gate() {
        let archives = super::FORMATS.iter().filter(|format| format.level == super::SupportLevel::Archive);
        let open: alloc::vec::Vec<&str> =
            archives.filter(|format| format.gates.is_empty()).map(|format| format.name).collect();
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_format_of_messages_lists_its_kinds() {
        let bare =
            super::FORMATS.iter().filter(|format| format.kinds.is_empty() && format.results.of_messages());
        let names: alloc::vec::Vec<&str> = bare.map(|format| format.name).collect();
        // Otter is made up by these tests.
        assert_eq!(names, ["otter"]);
    }

    #[test]
    fn a_name_that_was_written_over_does_not_hide_the_format() {
        let corrupted = [
            r#"{"role":"us\u0001r","content":"go"}"#,
            "{\"role\":\"user\",\"con\u{fffd}ent\":\"go\"}",
            r#"{"r#le":"user","content":"go"}"#,
            // Only the name is missing, and no other one fits.
            r#"{"rule":"user","content":"go"}"#,
        ];
        for line in corrupted {
            assert_eq!(detected(&[&CHAT[..], &[line]].concat()), Some("openai-chat"), "{line}");
            assert_eq!(detected(&[&MESSAGES[..], &[line]].concat()), Some("anthropic"), "{line}");
            // Half of the objects are unknown.
            assert_eq!(detected(&[CHAT[0], line]), None, "{line}");
            assert_eq!(detected(&[line]), None, "{line}");
        }
        let tool = r#"{"role":"tool","tool_c%ll_id":"c","content":"b"}"#;
        assert_eq!(detected(&[&CHAT[..], &[tool]].concat()), Some("openai-chat"));
        assert_eq!(detected(&[&MESSAGES[..], &[tool]].concat()), None, "no message of Anthropic's");
    }

    #[test]
    fn what_another_program_writes_is_not_taken_for_damage() {
        let others = [
            // Names that another program may use.
            r#"{"role":"user","contents":"go"}"#,
            r#"{"rule":"narrator","content":"go"}"#,
            r#"{"rule":["user"],"content":"go"}"#,
            r#"{"ruled":"user","content":"go"}"#,
            r#"{"role":"narrator","content":"go"}"#,
            // Two overwritten names, or one beside something unknown.
            r#"{"role":"us#r","c#ntent":"go"}"#,
            r#"{"r#le":"user","content":"go","time":1}"#,
            // Records of their own.
            r#"{"version":1,"session":"s"}"#,
            r#"{"content":"go"}"#,
            r#"{"a":1}"#,
            // Another format's record, or what would be one with a whole name.
            r#"{"r;le":"assistant","content":"","tool_calls":[{"id":"d","name":"ls","arguments":"{}"}]}"#,
            r#"{"role":"assistant","content":"","t;ol_calls":[{"id":"d","name":"ls","arguments":"{}"}]}"#,
            r#"{"r;le":"assistant","content":[{"type":"tool-call","toolCallId":"d","toolName":"ls","input":{}}]}"#,
            r#"{"role":"user","content":"go","created_at":"2026-07-01T10:00:00Z","type":"x"}"#,
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
        ];
        for line in others {
            assert_eq!(detected(&[&CHAT[..], &[line]].concat()), None, "{line}");
            assert_eq!(detected(&[&MESSAGES[..], &[line]].concat()), None, "{line}");
        }
    }

    #[test]
    fn a_field_more_makes_no_message_unknown() {
        let fields = [
            r#""reasoning_details":[{"type":"reasoning.text","text":"hm"}]"#,
            r#""thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"}]"#,
            r#""provider_specific_fields":{}"#,
            r#""extra_content":{"google":{"thought_signature":"s"}}"#,
            r#""cache_control":{"type":"ephemeral"}"#,
            r#""timestamp":"2026-07-01T10:00:00Z""#,
            r#""id":"m1""#,
            r#""seq":4"#,
            r#""né":1"#,
            r#""x#y":1"#,
        ];
        for field in fields {
            let line = format!("{{\"role\":\"user\",\"content\":\"go\",{field}}}");
            assert_eq!(detected(&[&CHAT[..], &[&line]].concat()), Some("openai-chat"), "{field}");
            assert_eq!(detected(&[&MESSAGES[..], &[&line]].concat()), Some("anthropic"), "{field}");
            let every = CHAT.map(|line| line.replacen('{', &format!("{{{field},"), 1));
            assert_eq!(detected(&every.each_ref().map(String::as_str)), Some("openai-chat"), "{field}");
            let every = MESSAGES.map(|line| line.replacen('{', &format!("{{{field},"), 1));
            assert_eq!(detected(&every.each_ref().map(String::as_str)), Some("anthropic"), "{field}");
        }
        assert_eq!(detected(&[&CHAT[..], &[r#"{"role":"assistant"}"#]].concat()), Some("openai-chat"));
        let custom = r#"{"role":"assistant","tool_calls":[{"id":"d","type":"custom","custom":{"name":"sh","input":"ls"}}]}"#;
        assert_eq!(detected(&[CHAT[0], custom]), Some("openai-chat"));
    }

    #[test]
    fn rows_with_fields_of_their_own_are_messages_only_beside_calls() {
        let row =
            |role: &str, more: &str| format!("{{\"role\":\"{role}\",\"conversation_id\":\"c\",{more}}}");
        let rows = [row("user", r#""content":"list""#), row("assistant", r#""content":"a.txt""#)];
        assert_eq!(detected(&rows.each_ref().map(String::as_str)), None);
        let call = r#""tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]"#;
        let rows = [&rows[..], &[row("assistant", call)]].concat();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        assert_eq!(detected(&rows), Some("openai-chat"));
        // The calls of one dialect and the results of another.
        assert_eq!(detected(&[MESSAGES[0], MESSAGES[1], CHAT[2]]), None);
        assert_eq!(detected(&[CHAT[0], CHAT[1], MESSAGES[2]]), None);
        // Blocks of Bedrock, beside results of another dialect.
        let used = r#"{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"ls","input":{}}}]}"#;
        assert_eq!(detected(&[used]), Some("bedrock-converse"));
        assert_eq!(detected(&[used, CHAT[2]]), None);
        // A legacy session of Goose that lost its first line.
        let goose = r#"{"role":"user","created":1750000000,"content":[{"type":"text","text":"list"}]}"#;
        assert_eq!(detected(&[goose]), None);
    }

    #[test]
    fn pi_is_told_by_what_only_pi_writes() {
        let said = r#"{"type":"message","timestamp":"2026-07-01T10:00:00.000Z","message":{"role":"user","content":"list"}}"#;
        let own = [
            r#"{"type":"message","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"a"}],"stopReason":"stop"}}"#,
            r#"{"type":"message","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}]}}"#,
            r#"{"type":"message","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"toolResult","toolCallId":"c","content":[]}}"#,
            r#"{"type":"custom","timestamp":"2026-07-01T10:00:01.000Z","customType":"x"}"#,
            r#"{"type":"compaction","timestamp":"2026-07-01T10:00:01.000Z","summary":"","firstKeptEntryIndex":1}"#,
        ];
        assert_eq!(detected(&[said]), None);
        for line in own {
            assert_eq!(detected(&[said, line]), Some("pi"), "{line}");
            assert_eq!(detected(&[said, line, CHAT[0]]), None, "{line}");
        }
        let others = [
            r#"{"type":"message","id":"d","timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"text","text":"a"}]}}"#,
            r#"{"type":"message","timestamp":5,"message":{"role":"toolResult","toolCallId":"c"}}"#,
            r#"{"type":"custom","timestamp":"2026-07-01T10:00:01.000Z","name":"x"}"#,
            r#"{"type":"message","message":{"role":"assistant","content":[]}}"#,
        ];
        for line in others {
            assert_eq!(detected(&[said, line]), None, "{line}");
        }
    }

    #[test]
    fn what_only_begins_like_a_format_is_nobodys() {
        let misses = [
            // Another agent's event log.
            &[
                r#"{"type":"session","version":0,"id":"s","createdAt":1783950000000,"cwd":"/w","delegationDepth":0}"#,
                r#"{"type":"turn/start","seq":1,"time":1783950000001,"data":{}}"#,
                r#"{"type":"user/message","seq":4,"time":1783950000002,"data":{"text":"list"}}"#,
            ][..],
            // A Claude Code record without links.
            &[r#"{"type":"user","message":{"role":"user","content":"list"},"uuid":"u","timestamp":"t"}"#],
            // Codex's, without a payload, and with an additional field.
            &[r#"{"timestamp":"t","type":"response_item","payload":"list"}"#],
            &[r#"{"timestamp":"t","type":"response_item","payload":{},"seq":1}"#],
            // Copilot's, without an envelope.
            &[r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e"}"#],
            // Gemini CLI's header, without a project.
            &[r#"{"sessionId":"s","startTime":"t","kind":"main"}"#],
            // Qwen Code's, without a parent.
            &[
                r#"{"uuid":"u","sessionId":"s","timestamp":"t","type":"user","message":{"role":"user","parts":[]}}"#,
            ],
            // Kimi Code's, with a field of another log.
            &[r#"{"type":"context.append_message","uuid":"u","message":{}}"#],
            // Grok Build's, from another program.
            &[r#"{"type":"user","content":"list","uuid":"u"}"#],
        ];
        for lines in misses {
            assert_eq!(detected(lines), None, "{lines:?}");
        }
    }

    #[test]
    fn the_time_of_an_object_is_its_own_or_that_of_its_message() {
        for (text, expected) in [
            (r#"{"timestamp":"1970-01-01T00:00:01.500Z","message":{"timestamp":9}}"#, Some(1_500)),
            (r#"{"timestamp":"1970-01-01T01:00:02+01:00"}"#, Some(2_000)),
            (r#"{"timestamp":7}"#, Some(7)),
            (r#"{"timestamp":"noon","message":{"timestamp":1782900001000}}"#, Some(1_782_900_001_000)),
            (r#"{"timestamp":"1969-01-01T00:00:00Z"}"#, None),
            (r#"{"role":"assistant"}"#, None),
        ] {
            let doc = json::parse(&text.as_bytes(), Span::new(0, text.len() as u64)).unwrap().unwrap();
            assert_eq!(written_ms(&doc), expected, "{text}");
        }
    }

    #[test]
    fn a_millisecond_later_in_the_same_spelling() {
        assert_eq!(later(b"2026-07-01T10:00:00.000Z"), "2026-07-01T10:00:00.001Z");
        assert_eq!(later(b"2026-12-31T23:59:59.999Z"), "2027-01-01T00:00:00.000Z");
        assert_eq!(later(b"yesterday"), "yesterday");
    }
}
