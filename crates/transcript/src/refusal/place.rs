//! The place that an error names: a path into the request, a number of a message, or a line of the file.

use super::family::Blame;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The list in which a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Messages of Anthropic, Converse and Cloudflare: instructions are elsewhere, and the results of a turn are one
    /// message.
    Message,
    /// Messages of Chat Completions: instructions are the first one, and each result is one.
    ChatMessage,
    /// Items of OpenAI's Responses: as messages of Chat Completions, and each call is an item too.
    Item,
    /// Contents of Gemini: as messages of Anthropic.
    Content,
    /// A line of a file.
    Line,
    /// A setting of the request, such as `tools`: it is not in the session.
    Setting,
}

/// A place in a request or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As written in the error.
    pub written: String,
    /// What the number counts.
    pub unit: Unit,
    /// Which message, item, content or line it is, as the error counts.
    pub number: Option<u64>,
    /// Which block of the message, counted from 0.
    pub block: Option<u64>,
    /// What the path ends with: the name of a field.
    pub field: String,
    /// The number of the first message: 0 or 1.
    pub base: u64,
}

/// Words that begin a path.
const ROOTS: &[(&str, Unit)] = &[
    ("messages", Unit::Message),
    // DashScope and SiliconFlow write the singular.
    ("message", Unit::ChatMessage),
    ("input", Unit::Item),
    ("contents", Unit::Content),
    // FastAPI begins with where it found the field; `messages` and `input` after it count more.
    ("body", Unit::Setting),
    // A setting of the request, whose path Anthropic, Bedrock and OpenAI write in the same way.
    ("tools", Unit::Setting),
    ("toolConfig", Unit::Setting),
    ("tool_config", Unit::Setting),
    ("functions", Unit::Setting),
    ("system", Unit::Setting),
    ("system_instruction", Unit::Setting),
    ("tool_choice", Unit::Setting),
    ("thinking", Unit::Setting),
    ("context_management", Unit::Setting),
    ("output_config", Unit::Setting),
    ("output_format", Unit::Setting),
    ("response_format", Unit::Setting),
    ("generation_config", Unit::Setting),
    ("generationConfig", Unit::Setting),
    ("reasoning", Unit::Setting),
    ("mcp_servers", Unit::Setting),
    ("metadata", Unit::Setting),
];

/// Sentences that name a number, where `#` is it, with what it counts and which number is the first.
const SENTENCES: &[(&str, Unit, u64)] = &[
    // Moonshot counts from 0 (K6 of its reports: the instructions are message 0).
    ("the message at position #", Unit::ChatMessage, 0),
    // DeepSeek.
    ("message index #", Unit::ChatMessage, 0),
    // LangChain and its bridges.
    ("message at index #", Unit::ChatMessage, 0),
    ("messages at index #", Unit::ChatMessage, 0),
    // Vertex counts from 1: "in the 12. content block".
    ("in the #. content block", Unit::Content, 1),
    // Gemini counts contents from 1: "function call `default_api:x`, position 2".
    (", position #.", Unit::Content, 1),
    (" , position #", Unit::Content, 1),
    ("in message #", Unit::ChatMessage, 0),
    // Trainers and Copilot CLI.
    ("(line #:", Unit::Line, 1),
    ("on line #", Unit::Line, 1),
    ("Line #:", Unit::Line, 1),
    ("Line #,", Unit::Line, 1),
    ("line #: ", Unit::Line, 1),
];

/// Names of fields, and the part of a message that they are about.
const PARTS: &[(&str, &[&str])] = &[
    ("id", &["id", "call_id", "tool_call_id", "tool_use_id", "toolUseId"]),
    ("name", &["name"]),
    ("arguments", &["arguments", "args"]),
    ("image", &["image_url", "image", "inline_data", "inlineData", "media_type"]),
    ("document", &["document", "file", "file_data", "file_url"]),
    (
        "reasoning",
        &[
            "thinking",
            "redacted_thinking",
            "signature",
            "encrypted_content",
            "summary",
            "reasoning",
            "reasoning_content",
            "reasoning_details",
            "reasoning_text",
            "reasoningContent",
        ],
    ),
    ("cache", &["cache_control"]),
    ("role", &["role"]),
    ("type", &["type"]),
    ("output", &["output"]),
    ("content", &["content", "text", "parts"]),
];

impl Place {
    /// The first place that a text names. A path counts more than a sentence.
    pub(super) fn find(text: &str) -> Option<Self> {
        let mut paths = Vec::new();
        for (root, unit) in ROOTS {
            for (at, _) in text.match_indices(root) {
                paths.extend(path(text, at, root, *unit).map(|place| (at, place)));
            }
        }
        // What the session holds is more than a setting that the same text mentions.
        paths.sort_by_key(|(at, place)| (place.unit == Unit::Setting, place.number.is_none(), *at));
        let (_, first) = paths.first().cloned().unzip();
        // The first message that is named counts, and of its parts the one that is named most closely.
        let same = |place: &Self| first.as_ref().is_some_and(|first| is_deeper(place, first));
        let paths = paths.into_iter().map(|(_, place)| place);
        paths
            .filter(same)
            .max_by_key(|place| place.written.len())
            .or(first.clone())
            .or_else(|| sentence(text))
            .or_else(|| named_setting(text))
    }

    /// What is to blame for the refusal of this place; `None` for a line of a file.
    pub(super) fn blame(&self) -> Option<Blame> {
        match self.unit {
            Unit::Setting => Some(Blame::Elsewhere),
            Unit::Line => None,
            _ => self.number.map(|_| Blame::Session),
        }
    }

    /// The part of a message that the path is about: see [`PARTS`].
    pub(super) fn part(&self) -> &'static str {
        let words: Vec<&str> = segments(&self.written).collect();
        let of = |(at, word): (usize, &&str)| {
            // `toolUse.input` is arguments; `input[3]` is the list.
            let word = if at > 0 && *word == "input" { "arguments" } else { word };
            PARTS.iter().find(|(_, names)| names.contains(&word)).map(|(part, _)| *part)
        };
        let known: Vec<&'static str> = words.iter().enumerate().filter_map(of).collect();
        let special =
            ["cache", "document", "image", "reasoning"].into_iter().find(|part| known.contains(part));
        match known.last() {
            Some(last @ &("content" | "role" | "type" | "image" | "reasoning")) => special.unwrap_or(last),
            Some(last) => last,
            None if !self.field.is_empty() => "field",
            None => "",
        }
    }
}

/// Whether a path leads from the message at another one into its parts.
fn is_deeper(path: &Place, message: &Place) -> bool {
    path.number.is_some() && path.number == message.number && path.written.starts_with(&message.written)
}

/// The words and numbers of a path.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).filter(|word| !word.is_empty())
}

/// What stands before a root where the whole request has a name.
const BODIES: &[&str] = &["body.", "request.", "params.", "payload."];

/// A path that begins with a root: `messages.3.content`, `messages[3]`, `messages.[3]`, `/messages/3/content`,
/// `[messages][3]`, `('body', 'messages', 3)`, `["input",3,"id"]`.
fn path(text: &str, at: usize, root: &str, unit: Unit) -> Option<Place> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let before = text[..at].chars().next_back();
    let is_inside = !BODIES.iter().any(|body| text[..at].ends_with(body));
    if is_inside
        && before.is_some_and(|c| is_word(c) || c == '.' && unit != Unit::Content && unit != Unit::Setting)
    {
        return None;
    }
    let start = at + root.len();
    let mut end = start;
    let mut number: Option<u64> = None;
    let (mut block, mut field) = (None, String::new());
    loop {
        let rest = &text[end..];
        let joint = if unit == Unit::Setting && root != "body" { plain_joint(rest) } else { joint(rest) };
        // `"input.5.type","message"` are two texts.
        let is_plain = !before.is_some_and(|c| "\"'`".contains(c));
        let joint = if is_plain && rest[..joint].contains(',') { 0 } else { joint };
        let word: &str = rest[joint..].split(|c| !is_word(c)).next().unwrap_or_default();
        if joint == 0 || word.is_empty() || word.starts_with('-') {
            break;
        }
        match word.parse::<u64>() {
            Ok(value) if number.is_none() && field.is_empty() => number = Some(value),
            Ok(value) if block.is_none() => block = Some(value),
            Ok(_) => {}
            Err(_) => field = word.to_string(),
        }
        end += joint + word.len();
    }
    let starts_text = !text[..at].contains(is_word) || text[..at].trim_end().ends_with(['"', '\'', ':', '`']);
    let is_told = match unit {
        Unit::Setting => {
            end > start || (starts_text && text[end..].starts_with(':')) || is_param(text, at, end)
        }
        Unit::ChatMessage => number.is_some(),
        _ => number.is_some() || end > start && before.is_some_and(|c| ".,'\"[/".contains(c)),
    };
    if !is_told {
        return None;
    }
    let brackets = text[start..].starts_with(['[', ']']) || text[start..].starts_with(".[");
    let unit = if unit == Unit::Message && (brackets || text[start..].starts_with(['\'', '"'])) {
        Unit::ChatMessage
    } else {
        unit
    };
    let written = text[at..end].to_string();
    let written = if written.ends_with(|c: char| c.is_ascii_digit()) && text[end..].starts_with(']') {
        written + "]"
    } else {
        written
    };
    Some(Place { written, unit, number, block, field, base: 0 })
}

/// Whether a word is the whole value of `param`, as OpenAI names what it refuses.
fn is_param(text: &str, at: usize, end: usize) -> bool {
    let before = text[..at].trim_end_matches(['"', '\'', ' ']);
    let after = text[end..].starts_with(['"', '\'']);
    after && before.strip_suffix(':').is_some_and(|key| key.trim_end_matches(['"', '\'']).ends_with("param"))
}

/// What `OpenAI` writes before the name of a parameter that it refuses.
const BEFORE_PARAMETERS: &[&str] = &["Invalid '", "parameter: '"];

/// What pydantic writes after the path of a field that it refuses.
const AFTER_FIELDS: &[&str] =
    &[": Input should", ": Field required", ": Extra inputs", ": Value error", ": String should"];

/// Parts of a message that are no settings, where a path begins with them.
const OF_MESSAGES: &[&str] =
    &["tool_calls", "tool_use", "tool_result", "function", "function_call", "prompt", "union_tag", "literal"];

/// A setting that is named in a sentence or before one: whatever is neither messages nor input, nor a part of them.
fn named_setting(text: &str) -> Option<Place> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    let quoted = BEFORE_PARAMETERS.iter().find_map(|before| {
        let (_, rest) = text.split_once(before)?;
        rest.split_once('\'').map(|(name, _)| name)
    });
    let before = AFTER_FIELDS.iter().find_map(|after| {
        let (before, _) = text.split_once(after)?;
        Some(&before[before.trim_end_matches(is_part).len()..])
    });
    let name = quoted.or(before).filter(|name| name.chars().all(is_part))?;
    let root = segments(name).next().filter(|root| !root.starts_with(|c: char| c.is_ascii_digit()))?;
    let is_sent = OF_MESSAGES.contains(&root)
        || PARTS.iter().any(|(_, names)| names.contains(&root))
        || ROOTS.iter().any(|(of, unit)| *of == root && *unit != Unit::Setting);
    let (written, field) = (name.to_string(), String::new());
    let place = Place { written, unit: Unit::Setting, number: None, block: None, field, base: 0 };
    (!is_sent).then_some(place)
}

/// How long the characters between two parts of a path are; 0 if the path ends.
fn joint(text: &str) -> usize {
    let joints = [
        "', '", "','", "\", \"", "\",\"", "', ", "',", "\", ", "\",", ", '", ", \"", ",'", ",\"", "][",
        "]['", "].[", "].", ".[", "['", "[\"", "/", "[", ".", ",",
    ];
    let fits = |joint: &&str| {
        text.strip_prefix(*joint)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    };
    let found = joints.into_iter().filter(fits).max_by_key(|joint| joint.len());
    // A comma joins only what is quoted: `messages, 3` is a sentence.
    found.filter(|joint| *joint != ",").map_or(0, str::len)
}

/// How long a joint is in a path of names and numbers without quotes, which JSON around it cannot be taken for.
fn plain_joint(text: &str) -> usize {
    let joints = ["].", "[", "."].into_iter();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    joints
        .filter(|joint| text.strip_prefix(*joint).is_some_and(|rest| rest.starts_with(is_word)))
        .map(str::len)
        .max()
        .unwrap_or(0)
}

/// A number in a sentence: see [`SENTENCES`].
fn sentence(text: &str) -> Option<Place> {
    SENTENCES.iter().find_map(|(sentence, unit, base)| {
        let (before, after) = sentence.split_once('#')?;
        text.match_indices(before).find_map(|(at, _)| {
            let start = at + before.len();
            let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
            let number = text[start..start + digits].replace(',', "").parse().ok()?;
            text[start + digits..].starts_with(after).then(|| Place {
                written: text[at..start + digits].trim_start_matches([' ', ',', '(']).to_string(),
                unit: *unit,
                number: Some(number),
                block: None,
                field: String::new(),
                base: *base,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{Place, Unit};

    use Unit::{ChatMessage, Content, Item, Line, Message, Setting};

    /// A text; what its place counts, the number, the block, the part, and how it is written.
    type Row = (&'static str, Unit, Option<u64>, Option<u64>, &'static str, &'static str);

    const PLACES: &[Row] = &[
        ("messages.12.content.0: unexpected", Message, Some(12), Some(0), "content", "messages.12.content.0"),
        ("400 messages.3: `tool_use` ids", Message, Some(3), None, "", "messages.3"),
        ("Invalid parameter: messages.[7].role", ChatMessage, Some(7), None, "role", "messages.[7].role"),
        (
            "'messages[7].content[2].text'",
            ChatMessage,
            Some(7),
            Some(2),
            "content",
            "messages[7].content[2].text",
        ),
        ("Invalid 'input[646].name': string", Item, Some(646), None, "name", "input[646].name"),
        ("the message at position 8 with role", ChatMessage, Some(8), None, "", "the message at position 8"),
        ("messages: 2 errors, messages.1.content", Message, Some(1), None, "content", "messages.1.content"),
        (
            "at 'messages.3.member.content.1.member.toolUse.toolUseId' failed",
            Message,
            Some(3),
            Some(1),
            "id",
            "messages.3.member.content.1.member.toolUse.toolUseId",
        ),
        (
            "contents[2].parts[0].function_call",
            Content,
            Some(2),
            Some(0),
            "content",
            "contents[2].parts[0].function_call",
        ),
        (
            "* GenerateContentRequest.contents[1].parts: x",
            Content,
            Some(1),
            None,
            "content",
            "contents[1].parts",
        ),
        ("in the 12. content block is missing", Content, Some(12), None, "", "in the 12"),
        ("at message index 96. For more", ChatMessage, Some(96), None, "", "message index 96"),
        ("Error at '/messages/3/content'", Message, Some(3), None, "content", "messages/3/content"),
        (
            "'loc': ('body', 'messages', 2, 'typed-dict', 'send_to')",
            ChatMessage,
            Some(2),
            None,
            "field",
            "messages', 2, 'typed-dict', 'send_to",
        ),
        (
            "\"loc\":[\"body\",\"messages\",2,\"content\"]",
            ChatMessage,
            Some(2),
            None,
            "content",
            "messages\",2,\"content",
        ),
        (
            "\"path\":[\"input\",1,\"content\",0,\"refusal\"]",
            Item,
            Some(1),
            Some(0),
            "content",
            "input\",1,\"content\",0,\"refusal",
        ),
        ("Invalid [messages][3][content]", ChatMessage, Some(3), None, "content", "messages][3][content"),
        ("Session file is corrupted (line 20712: SyntaxError", Line, Some(20_712), None, "", "line 20712"),
        (
            "tools.11.custom.input_schema: JSON",
            Setting,
            Some(11),
            None,
            "field",
            "tools.11.custom.input_schema",
        ),
        ("tools: Tool names must be unique", Setting, None, None, "", "tools"),
        ("Invalid 'user': string too long", Setting, None, None, "", "user"),
        ("context_management: Extra inputs", Setting, None, None, "", "context_management"),
        (
            "messages.1.content.1.tool_use.input: Field",
            Message,
            Some(1),
            Some(1),
            "arguments",
            "messages.1.content.1.tool_use.input",
        ),
        (
            "messages.2.content.0.image.source.base64.data: x",
            Message,
            Some(2),
            Some(0),
            "image",
            "messages.2.content.0.image.source.base64.data",
        ),
    ];

    #[test]
    fn places_are_read_as_providers_write_them() {
        for &(text, unit, number, block, part, written) in PLACES {
            let place = Place::find(text).unwrap_or_else(|| panic!("{text}"));
            let found = (place.unit, place.number, place.block, place.part(), place.written.as_str());
            assert_eq!(found, (unit, number, block, part, written), "{text}");
        }
        for text in ["", "messages", "messages: at least one", "input is long", "messages 4", "system prompt"]
        {
            assert_eq!(Place::find(text), None, "{text}");
        }
    }
}
