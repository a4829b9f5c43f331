//! Makes text safe and fit for a terminal. Transcripts are full of escape sequences, so nothing from a file reaches a
//! terminal unchanged. Text is fitted to the terminal's width, colours and characters.

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use keeper::is_shown_escaped;
pub(crate) use keeper::plain;
use std::borrow::Cow;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use terminal_size::{Height, Width, terminal_size_of};
use textwrap::{Options, WordSeparator, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// A terminal's properties. Other outputs use [`Screen::NONE`]: lines are not wrapped, and there are no colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Its width; `None` if lines are not wrapped.
    columns: Option<usize>,
    colour: bool,
    /// Whether it shows only ASCII.
    ascii: bool,
}

/// Narrower lines are not wrapped, because that would not help.
const COLUMNS_MIN: usize = 20;

impl Screen {
    pub(crate) const NONE: Self = Self { columns: None, colour: false, ascii: false };

    pub(crate) fn of_stdout() -> Self {
        let size = || terminal_size_of(io::stdout());
        Self::new(AutoStream::choice(&io::stdout()), io::stdout().is_terminal(), size)
    }

    pub(crate) fn of_stderr() -> Self {
        let size = || terminal_size_of(io::stderr());
        Self::new(AutoStream::choice(&io::stderr()), io::stderr().is_terminal(), size)
    }

    /// `choice` has considered `NO_COLOR`, `CLICOLOR_FORCE` and `TERM`.
    fn new(choice: ColorChoice, is_terminal: bool, size: impl FnOnce() -> Option<(Width, Height)>) -> Self {
        let colour = choice != ColorChoice::Never;
        if !is_terminal {
            return Self { colour, ..Self::NONE };
        }
        let columns = size().map(|(Width(columns), _)| usize::from(columns));
        Self { columns: columns.filter(|columns| *columns >= COLUMNS_MIN), colour, ascii: is_ascii() }
    }

    /// Its width, if lines are wrapped.
    pub(crate) fn columns(self) -> Option<usize> {
        self.columns
    }

    /// Whether it shows only ASCII.
    pub(crate) fn ascii(self) -> bool {
        self.ascii
    }

    /// Writes text in a style, if there are colours.
    pub(crate) fn paint(self, style: Style, out: &mut String, write: impl FnOnce(&mut String)) {
        if !self.colour {
            return write(out);
        }
        // Writing to a string cannot fail.
        _ = write!(out, "{style}");
        write(out);
        _ = write!(out, "{style:#}");
    }

    /// A line that must not be wrapped.
    pub(crate) fn whole(self, text: &str) -> Cow<'_, str> {
        if self.ascii { spelled_out(text).into() } else { text.into() }
    }

    /// A line, wrapped between words. A command at its end stays in one piece, so that it can be copied.
    pub(crate) fn fit(self, text: &str) -> Cow<'_, str> {
        const INDENT: &str = "    ";
        let text = self.whole(text);
        let Some(columns) = self.columns.filter(|columns| text.width() > *columns) else { return text };
        let Some(at) = command_at(&text) else { return wrap(&text, columns, INDENT).into() };
        let (said, command) = text.split_at(at);
        let said = wrap(said.trim_end(), columns, INDENT);
        let last = said.lines().last().map_or(0, UnicodeWidthStr::width);
        let between =
            if last + 1 + command.width() > columns { format!("\n{INDENT}") } else { " ".to_string() };
        (said + &between + command).into()
    }
}

/// Where the command at the end of a line begins.
fn command_at(text: &str) -> Option<usize> {
    let before = ["run: ", "Run: ", "Undo: ", "Resume: ", "go on with: ", "starting: "];
    let after = before.iter().filter_map(|before| text.rfind(before).map(|at| at + before.len()));
    let at = after.chain(text.rfind(": tailor ").map(|at| at + 2)).max()?;
    // A sentence that continues after a command is wrapped like any other.
    let goes_on = [". ", "; ", " ("].iter().any(|mark| text[at..].contains(mark)) || text.ends_with('.');
    (!goes_on).then_some(at)
}

/// Text wrapped between words into lines of at most so many columns; all but the first begin with `indent`.
pub(crate) fn wrap(text: &str, columns: usize, indent: &str) -> String {
    let options = Options::new(columns)
        .subsequent_indent(indent)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::wrap(text, options).join("\n")
}

/// Whether the locale is limited to ASCII. One that is not set counts as UTF-8, as on today's terminals.
pub(crate) fn is_ascii() -> bool {
    let said = |key| std::env::var(key).ok().filter(|value| !value.is_empty());
    let locale = said("LC_ALL").or_else(|| said("LC_CTYPE")).or_else(|| said("LANG"));
    locale.is_some_and(|locale| !locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// Escapes all characters that are not ASCII. Our own escape sequences are ASCII.
pub(crate) fn spelled_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '…' => out += "...",
            '→' => out += "->",
            '–' => out.push('-'),
            '×' => out.push('x'),
            c if c.is_ascii() => out.push(c),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    out
}

/// A long text from outside that is printed for its own sake, piece by piece.
#[derive(Default)]
pub(crate) struct Harmless {
    /// The beginning of a character whose end has not arrived yet.
    rest: Vec<u8>,
}

impl Harmless {
    /// The next bytes, as text that moves the cursor nowhere but on. Lines and tabs stay.
    pub(crate) fn pass(&mut self, bytes: &[u8], last: bool) -> String {
        let text = self.whole(bytes, last);
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' | '\t' => out.push(c),
                _ => out += &plain(c.encode_utf8(&mut [0; 4])),
            }
        }
        out
    }

    /// The next bytes, as part of a string of JSON.
    pub(crate) fn escape(&mut self, bytes: &[u8], last: bool) -> String {
        let quoted = serde_json::Value::String(self.whole(bytes, last)).to_string();
        json(&quoted[1..quoted.len() - 1])
    }

    /// The next bytes, as far as they are whole characters.
    fn whole(&mut self, bytes: &[u8], last: bool) -> String {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() - if last { 0 } else { unfinished(&self.rest) };
        let text = String::from_utf8_lossy(&self.rest[..whole]).into_owned();
        self.rest.drain(..whole);
        text
    }
}

/// How many bytes at the end belong to an incomplete character.
fn unfinished(bytes: &[u8]) -> usize {
    let back = bytes.iter().rev().take(3).position(|byte| byte & 0xc0 != 0x80);
    let wanted = |first: u8| match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    back.map_or(0, |back| if wanted(bytes[bytes.len() - 1 - back]) > back + 1 { back + 1 } else { 0 })
}

/// Escapes in JSON text what JSON allows and a terminal might interpret.
pub(crate) fn json(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        // Nearly all of it is printable ASCII, and copied in one piece.
        let calm = rest.bytes().position(|byte| !matches!(byte, b' '..=b'~')).unwrap_or(rest.len());
        out.push_str(&rest[..calm]);
        let mut chars = rest[calm..].chars();
        match chars.next() {
            Some(c) if is_shown_escaped(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(out, "\\u{unit:04x}"));
            }
            c => out.extend(c),
        }
        rest = chars.as_str();
    }
    out
}

/// A text as one word for a shell, without anything that could reach the terminal as an escape sequence.
pub(crate) fn shell_word(text: &str) -> String {
    if text.chars().any(is_shown_escaped) {
        let byte = |byte: u8| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        return format!("$'{}'", text.bytes().map(byte).collect::<String>());
    }
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%,".contains(c);
    let quoted = || format!("'{}'", text.replace('\'', r"'\''"));
    if text.chars().all(plain) { text.to_string() } else { quoted() }
}

#[cfg(test)]
mod tests {
    use super::{Harmless, Screen, json, plain, shell_word};

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in [
            ("/a-b_c.d/e", "/a-b_c.d/e"),
            ("a b's", r"'a b'\''s'"),
            ("a\u{1b}[2J'\u{202e}", r"$'a\x1b[2J\'\xe2\x80\xae'"),
        ] {
            assert_eq!(shell_word(path), word);
        }
    }

    #[test]
    fn lines_fit_the_screen() {
        let screen = Screen { columns: Some(30), colour: false, ascii: false };
        assert_eq!(
            screen.fit("a/long/path/that/is/wider/than.jsonl:3: P1 no result"),
            ["a/long/path/that/is/wider/than.jsonl:3:", "    P1 no result"].join("\n")
        );
        assert_eq!(Screen::NONE.fit(&"word ".repeat(100)), "word ".repeat(100));
        let ascii = Screen { ascii: true, ..Screen::NONE };
        assert_eq!(ascii.fit("日é… ok"), "\\u{65e5}\\u{e9}... ok");
    }

    #[test]
    fn a_command_at_the_end_is_not_broken() {
        let screen = Screen { columns: Some(30), colour: false, ascii: false };
        for (text, lines) in [
            (
                "It is still too long. Run: tailor recover --level 2 a/long/path",
                ["It is still too long. Run:", "    tailor recover --level 2 a/long/path"],
            ),
            (
                "tailor: one two three. Undo: tailor undo s",
                ["tailor: one two three. Undo:", "    tailor undo s"],
            ),
            (
                "tailor: it is too long for a screen: tailor undo s",
                ["tailor: it is too long for a", "    screen: tailor undo s"],
            ),
            (
                "to see it: tailor show ID; and more follows",
                ["to see it: tailor show ID; and", "    more follows"],
            ),
        ] {
            assert_eq!(screen.fit(text), lines.join("\n"));
        }
    }

    #[test]
    fn a_long_text_keeps_its_lines_and_characters() {
        let text = "a\té\n日😀\x1b[2J\u{202e}".as_bytes();
        for size in 1..=text.len() {
            let mut harmless = Harmless::default();
            let mut out: String = text.chunks(size).map(|bytes| harmless.pass(bytes, false)).collect();
            out += &harmless.pass(b"\xf0\x9f", true);
            assert_eq!(out, "a\té\n日😀\\u{1b}[2J\\u{202e}\u{fffd}", "{size}");
        }
    }

    #[test]
    fn no_clipboard_no_title_no_colour_no_bidi() {
        assert_eq!(plain("\x1b]52;c;ZXZpbA==\x07"), "\\u{1b}]52;c;ZXZpbA==\\u{7}");
        assert_eq!(plain("a\u{202e}b\u{9b}31m"), "a\\u{202e}b\\u{9b}31m");
        assert_eq!(plain("sitzung é 日本"), "sitzung é 日本");
        assert_eq!(json("{\"a\":\"\u{202e}\u{e0041}\u{9b}é\"}"), "{\"a\":\"\\u202e\\udb40\\udc41\\u009bé\"}");
    }
}
