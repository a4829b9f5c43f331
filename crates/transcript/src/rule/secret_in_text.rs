//! X1: keys, tokens and passwords in texts.
//!
//! One pass over the bytes finds the places where a secret may stand; only the strings around these are decoded. A second pass,
//! where there are secrets, finds the same texts elsewhere.

use super::base::{Cover, FindingSink, Group, Help, Rule, RuleInfo, Stage, about, about_place};
use super::bound_thinking::may_go;
use crate::model::entry::ContentIssueKind;
use crate::model::finding::{Finding, Fix, Guard, Held, Op, SecretMark, Severity};
use crate::model::policy::SignedThinking;
use crate::secret::{BYTES_BEFORE, BYTES_MAX, FoundSecret, SecretFinder, as_written, replacement};
use crate::session::Session;
use aho_corasick::AhoCorasick;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use hashbrown::HashMap;
use memchr::{memchr, memmem};
use spans::json::{self, Value, ValueKind};
use spans::literal::{Unit, decode, piece};
use spans::source::{Fault, Source, Span, read_span};

/// How much is searched at a time.
const SEARCHED_BYTES: usize = 1 << 18;

/// A shorter text may be a part of another word by chance.
const LONG_BYTES_MIN: usize = 20;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "X1",
        name: "secret-in-text",
        help: Help {
            what: "A text holds what looks like a key, a token or a password. Of a secret, Tailor says its kind, length, first and last two \
                   characters and hash, never itself.",
            why: "Transcripts are synced, attached to bug reports and read by other tools, and a key in one is as good as published. It stays \
                  in every later request as well.",
            fix: "`[tailor: secret removed: github-token, 40 chars]` takes its place, and that of the same text elsewhere in the session: \
                  in messages, results, arguments, titles, copies and snapshots; never in ids, signatures, encrypted content or images. \
                  Signed thinking that quotes it, or comes after it, goes whole with --thinking strip; otherwise the secret stays. \
                  The run keeps no original, so undo is refused; what was kept before goes with `tailor forget --secret`. Revoke the \
                  key all the same.",
            source: "langfuse-cli #13, claude-code-transcripts, agent-trace: scrubbers that lose lines or break signatures; \
                     docs/secrets.md lists the kinds",
        },
        stage: Stage::Secrets,
        groups: &[Group::Secrets],
        on_request: true,
        ..RuleInfo::BASE
    },
    cover: |_| Cover::Fixed,
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut search = Search::new(session);
    let mut places = Vec::new();
    let whole = Span::new(0, session.source.len());
    for_each_window(session.source, whole, &mut |bytes, owned, base| {
        search.finder.candidates(bytes, owned, &mut |at| places.push(base + at as u64));
    })?;
    search.look_at(&places, None)?;
    search.look_elsewhere()?;
    out.extend(search.findings());
    Ok(())
}

/// Sees a window, which part of it no other one has, and its offset.
type WindowReader<'w> = &'w mut dyn FnMut(&[u8], Range<usize>, u64);

/// Calls `each` with windows of a source that overlap, with the part of each that no other one has, and with its offset.
fn for_each_window(source: &dyn Source, span: Span, each: WindowReader<'_>) -> Result<(), Fault> {
    let mut buffer = vec![0; (SEARCHED_BYTES + BYTES_MAX).min(span.len() as usize + 1)];
    let (mut at, mut before) = (span.start, 0);
    while at < span.end {
        let from = at - before;
        let wanted = (span.end - from).min(buffer.len() as u64) as usize;
        source.fill(from, &mut buffer[..wanted])?;
        let owned = before as usize..wanted.min(before as usize + SEARCHED_BYTES - BYTES_BEFORE);
        at = from + owned.end as u64;
        each(&buffer[..wanted], owned, from);
        before = (BYTES_BEFORE as u64).min(at - span.start);
    }
    Ok(())
}

/// Where a secret stands: the entry, or the place where there is none, and which secret.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SecretPlace {
    at: u64,
    entry: Option<u32>,
    hash: String,
}

/// What is found there.
struct Standing {
    mark: SecretMark,
    ops: Vec<Op>,
    /// Why it is not taken out.
    held: Option<Held>,
}

/// A secret in a text.
struct Sighting {
    at: Range<usize>,
    mark: SecretMark,
}

/// A secret whose text is looked for elsewhere.
struct SeenSecret {
    text: Vec<u8>,
    mark: SecretMark,
}

struct Search<'s> {
    session: &'s Session<'s>,
    finder: SecretFinder,
    seen: HashMap<Vec<u8>, SecretMark>,
    found: BTreeMap<SecretPlace, Standing>,
    /// The bytes that are found to be secrets: where they end, by where they begin.
    taken: BTreeMap<u64, u64>,
}

impl<'s> Search<'s> {
    fn new(session: &'s Session<'s>) -> Self {
        let finder = SecretFinder::new(&session.policy.secrets);
        Self { session, finder, seen: HashMap::new(), found: BTreeMap::new(), taken: BTreeMap::new() }
    }

    /// Looks at the strings that hold these places, which are sorted, for all secrets or for those that are known.
    fn look_at(&mut self, places: &[u64], known: Option<&[SeenSecret]>) -> Result<(), Fault> {
        let mut rest = places;
        while let Some(&at) = rest.first() {
            let Some(entry) = self.entry_at(at) else {
                rest = &rest[1..];
                self.look_at_damage(at, known)?;
                continue;
            };
            let end = self.session.entry(entry).span.end;
            let (inside, later) = rest.split_at(rest.partition_point(|at| *at < end));
            self.look_at_entry(entry, inside, known)?;
            rest = later;
        }
        Ok(())
    }

    /// The innermost entry that holds a place.
    fn entry_at(&self, at: u64) -> Option<u32> {
        let entries = &self.session.transcript.entries;
        let after = entries.partition_point(|entry| entry.span.start <= at);
        let holds = |entry: &usize| at < entries[*entry].span.end;
        let last = after.checked_sub(1)?;
        // The entries of a list lie in the document that holds it.
        let outer = if entries[last].listed { after } else { 1 };
        (0..after).rev().take(outer).find(holds).map(|entry| entry as u32)
    }

    fn look_at_entry(
        &mut self,
        entry: u32,
        places: &[u64],
        known: Option<&[SeenSecret]>,
    ) -> Result<(), Fault> {
        let span = self.session.entry(entry).span;
        let Some(doc) = json::parse(self.session.source, span)? else { return Ok(()) };
        let strings = doc.root().map_or_else(Vec::new, |root| strings_at(root, places));
        for inner in strings {
            let raw = read_span(self.session.source, inner)?;
            let text = decode(&raw);
            let sightings = self.sightings(&text, known);
            let ranges = raw_ranges(&raw, &sightings);
            for (sighting, range) in sightings.into_iter().zip(ranges) {
                let at = Span::new(inner.start + range.start as u64, inner.start + range.end as u64);
                self.add(entry, at, sighting.mark);
            }
        }
        Ok(())
    }

    /// The secrets in a decoded text, in order.
    fn sightings(&mut self, text: &[u8], known: Option<&[SeenSecret]>) -> Vec<Sighting> {
        match known {
            Some(known) => known.iter().flat_map(|seen| seen.sightings(text)).collect(),
            None => self.finder.find(text).iter().map(|found| self.sighting(found, text)).collect(),
        }
    }

    /// A secret that a detector found. Its text is remembered.
    fn sighting(&mut self, found: &FoundSecret, text: &[u8]) -> Sighting {
        let (at, secret) = (found.at.clone(), &text[found.at.clone()]);
        if let Some(mark) = self.seen.get(secret) {
            return Sighting { at, mark: mark.clone() };
        }
        let mark = self.finder.mark(found, text);
        if found.spreads {
            self.seen.insert(secret.to_vec(), mark.clone());
        }
        Sighting { at, mark }
    }

    /// Notes that a secret stands in an entry, and how it is taken out.
    fn add(&mut self, entry: u32, at: Span, mark: SecretMark) {
        let before = self.taken.range(..at.end).next_back();
        if before.is_some_and(|(_, end)| *end > at.start) {
            return;
        }
        self.taken.insert(at.start, at.end);
        let (op, held) = match self.signed_block(entry, at) {
            Some(block) => (Op::DropBlock { entry, block }, self.why_thinking_stays(entry)),
            None => (Op::Replace { at, with: self.mask(&mark, at) }, None),
        };
        let start = self.session.entry(entry).span.start;
        let place = SecretPlace { at: start, entry: Some(entry), hash: mark.hash.clone() };
        let standing = self.found.entry(place).or_insert(Standing {
            mark: SecretMark { times: 0, ..mark },
            ops: Vec::new(),
            held,
        });
        standing.mark.times += 1;
        standing.ops.push(op);
        standing.held = standing.held.or(held);
    }

    /// What takes the place of a secret, no longer than that where every line has to stay where it is.
    fn mask(&self, mark: &SecretMark, at: Span) -> Vec<u8> {
        let words = replacement(mark).into_bytes();
        let has_room = self.session.transcript.offsets.is_none() || words.len() as u64 <= at.len();
        if has_room { words } else { vec![b'*'; at.len() as usize] }
    }

    /// The block of signed thinking around a place.
    fn signed_block(&self, entry: u32, at: Span) -> Option<Span> {
        let blocks = self.session.transcript.thinking_of(entry);
        let block = blocks.iter().find(|thinking| thinking.block.contains(at) && !thinking.fixed)?.block;
        let mut issues = self.session.transcript.issues_of(entry).iter();
        let is_unsigned =
            issues.any(|issue| issue.block == block && issue.kind == ContentIssueKind::Unsigned);
        (!is_unsigned).then_some(block)
    }

    /// Why signed thinking that quotes a secret is not taken out.
    fn why_thinking_stays(&self, entry: u32) -> Option<Held> {
        match self.session.case().thinking() {
            SignedThinking::Keep => Some(Held::SignedThinking),
            _ if may_go(self.session, entry) => None,
            _ => Some(Held::Tangled),
        }
    }

    /// Looks at bytes of no record: nothing is changed there.
    fn look_at_damage(&mut self, at: u64, known: Option<&[SeenSecret]>) -> Result<(), Fault> {
        let source = self.session.source;
        let (start, end) = (at.saturating_sub(BYTES_BEFORE as u64), source.len().min(at + BYTES_MAX as u64));
        let raw = read_span(source, Span::new(start, end))?;
        for Sighting { at: range, mark } in self.sightings(&raw, known) {
            let found = Span::new(start + range.start as u64, start + range.end as u64);
            if found.start <= at + BYTES_BEFORE as u64
                && at < found.end
                && self.taken.insert(found.start, found.end).is_none()
            {
                let place = SecretPlace { at: found.start, entry: None, hash: mark.hash.clone() };
                self.found.insert(place, Standing { mark, ops: Vec::new(), held: Some(Held::Tangled) });
            }
        }
        Ok(())
    }

    /// Finds the same texts where no detector sees them.
    fn look_elsewhere(&mut self) -> Result<(), Fault> {
        let seen: Vec<SeenSecret> = core::mem::take(&mut self.seen)
            .into_iter()
            .flat_map(|(text, mark)| spellings(text, mark))
            .collect();
        if seen.is_empty() {
            return Ok(());
        }
        let needles = seen.iter().map(|seen| plain_run(&seen.text));
        let Ok(automaton) = AhoCorasick::new(needles) else { return Ok(()) };
        let mut places = Vec::new();
        let whole = Span::new(0, self.session.source.len());
        for_each_window(self.session.source, whole, &mut |bytes, owned, base| {
            let starts = automaton.find_overlapping_iter(bytes).map(|found| found.start());
            places.extend(starts.filter(|start| owned.contains(start)).map(|start| base + start as u64));
        })?;
        let is_new = |at: &u64| self.taken.range(..=*at).next_back().is_none_or(|(_, end)| end <= at);
        places.retain(is_new);
        places.sort_unstable();
        self.look_at(&places, Some(&seen))
    }

    /// All that was found, in the order of the file.
    fn findings(self) -> Vec<Finding> {
        let session = self.session;
        let finding = |(place, standing): (SecretPlace, Standing)| {
            let Standing { mark, ops, held } = standing;
            let fix = held.map_or_else(|| Fix::guarded(Guard::Secrets, ops), Fix::held);
            let message = format!("{mark}");
            let found = if let Some(entry) = place.entry {
                about(&RULE, session, entry, Severity::Warning, message)
            } else {
                let line = line_of(session, place.at);
                Finding { at: place.at, ..about_place(&RULE, line, Severity::Warning, message) }
            };
            Finding { fix, secret: Some(mark), ..found }
        };
        self.found.into_iter().map(finding).collect()
    }
}

/// The line of a place that is in no entry.
fn line_of(session: &Session<'_>, at: u64) -> u64 {
    let damage =
        session.transcript.damage.iter().find(|damage| damage.span.start <= at && at < damage.span.end);
    let before = session.transcript.entries.partition_point(|entry| entry.span.start <= at);
    let entry = before.checked_sub(1).map(|entry| session.transcript.entries[entry].line);
    damage.map(|damage| damage.line).or(entry).unwrap_or(1)
}

impl SeenSecret {
    /// Where it stands in a text. A short one may be a part of another word.
    fn sightings<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Sighting> + 't {
        let length = self.text.len();
        let is_apart = move |at: &usize| {
            let around = [at.checked_sub(1), Some(at + length)];
            let mut around = around.into_iter().flatten().filter_map(|at| text.get(at));
            length >= LONG_BYTES_MIN || !around.any(u8::is_ascii_alphanumeric)
        };
        let places = memmem::find_iter(text, &self.text).filter(is_apart);
        places.map(move |at| Sighting { at: at..at + length, mark: self.mark.clone() })
    }
}

/// The text of a secret, and how JSON in a string writes it.
fn spellings(text: Vec<u8>, mark: SecretMark) -> impl Iterator<Item = SeenSecret> {
    let inner = as_written(&text);
    let other = (inner != text).then(|| SeenSecret { text: inner, mark: mark.clone() });
    core::iter::once(SeenSecret { text, mark }).chain(other)
}

/// The longest part of a text that is written the same everywhere.
fn plain_run(text: &[u8]) -> &[u8] {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.split(|byte| !is_plain(byte)).max_by_key(|run| <[u8]>::len(run)).unwrap_or(text)
}

/// The insides of the strings that hold one of these places, which are sorted. Ids, signatures, encrypted content and images
/// are left out, and so are keys.
fn strings_at(root: Value<'_>, places: &[u64]) -> Vec<Span> {
    let holds = |value: Value<'_>| {
        let span = value.span();
        places.get(places.partition_point(|at| *at < span.start)).is_some_and(|at| *at < span.end)
    };
    let (mut strings, mut left) = (Vec::new(), vec![(root, false)]);
    while let Some((value, is_free)) = left.pop() {
        match value.kind() {
            ValueKind::String => strings.push(value.inner()),
            ValueKind::Array => {
                left.extend(value.items().filter(|item| holds(*item)).map(|item| (item, is_free)));
            }
            ValueKind::Object => {
                for (key, field) in value.fields().filter(|(_, field)| holds(*field)) {
                    // What a tool is called with, and what it says, has names of its own.
                    let holds_fields = field.kind() != ValueKind::String;
                    let is_free = is_free || (holds_fields && FREE.iter().any(|name| key.is(name)));
                    if is_free || !is_protected(key, value) {
                        left.push((field, is_free));
                    }
                }
            }
            _ => {}
        }
    }
    strings.sort_unstable();
    strings
}

/// Under these names stand the arguments of a call.
const FREE: &[&str] = &["input", "arguments", "args", "parameters", "rawInput"];

/// Parts of the names of what an agent or a provider goes by.
const PROTECTED: &[&str] = &["signature", "encrypted", "opaque", "redacted", "fingerprint", "checksum"];

/// Names beside which `data` or `url` is an image.
const IMAGE: &[&str] = &["media_type", "mimeType", "mime_type", "mediaType"];

/// Whether the text under a name must stay: it is an id or a signature, encrypted, or an image.
fn is_protected(key: Value<'_>, object: Value<'_>) -> bool {
    let name = key.prefix();
    let ends = |end: &[u8]| name.ends_with(end);
    let lower = name.to_ascii_lowercase();
    let has = |part: &&str| memmem::find(&lower, part.as_bytes()).is_some();
    let is_id = name == b"id" || ends(b"_id") || ends(b"Id") || ends(b"ID") || lower.ends_with(b"uuid");
    let is_data = name == b"data" || name == b"base64";
    let is_image = || {
        let is_said = IMAGE.iter().any(|name| object.get(name).is_some());
        let is_encrypted =
            object.get("type").is_some_and(|kind| memmem::find(kind.prefix(), b"redacted").is_some());
        is_said || is_encrypted || name == b"base64"
    };
    is_id || PROTECTED.iter().any(has) || (is_data && is_image())
}

/// Where secrets stand in a literal as it is written. They are in order.
fn raw_ranges(raw: &[u8], sightings: &[Sighting]) -> Vec<Range<usize>> {
    if sightings.is_empty() || memchr(b'\\', raw).is_none() {
        return sightings.iter().map(|sighting| sighting.at.clone()).collect();
    }
    let mut ends: Vec<usize> =
        sightings.iter().flat_map(|sighting| [sighting.at.start, sighting.at.end]).collect();
    ends.sort_unstable();
    let (mut written, mut said, mut known) = (0, 0, HashMap::new());
    for end in ends {
        while said < end && written < raw.len() {
            let unit = piece(&raw[written..]);
            written += unit.raw.max(1);
            said += unit.length(Unit::Bytes) as usize;
        }
        known.insert(end, written.min(raw.len()));
    }
    let place = |at: usize| known.get(&at).copied().unwrap_or(raw.len());
    sightings.iter().map(|sighting| place(sighting.at.start)..place(sighting.at.end)).collect()
}

#[cfg(test)]
mod tests {
    use crate::examine::mend::mend;
    use crate::model::finding::{Held, Safety};
    use crate::model::policy::{Policy, Selection, SignedThinking};
    use crate::plan::Rendered;
    use crate::secret::tests::{noise, pem, token};
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;
    use spans::literal::quote;
    use spans::source::{Span, read_span};

    fn policy(thinking: SignedThinking) -> Policy {
        let codes = || alloc::vec![String::from("X1")];
        let selection = Selection { select: codes(), allow: codes(), ..Selection::default() };
        Policy { thinking, selection, ..Policy::default() }
    }

    /// The text after a fix, and what its findings say.
    fn masked(text: &str, policy: &Policy) -> (String, Vec<(u64, Safety, u64)>) {
        let source = text.as_bytes();
        let mended = mend(&source, policy).unwrap();
        let plan = mended.repair.ok().unwrap().plan;
        assert_eq!(plan.removes_secrets(), !plan.is_empty());
        let rendered = Rendered::new(&source, &plan);
        let bytes = read_span(&rendered, Span::new(0, plan.length_after())).unwrap();
        let findings = mended.before.findings.iter().filter(|finding| finding.rule.code() == "X1");
        let told = findings.map(|found| (found.line, found.fix.safety, found.secret.as_ref().unwrap().times));
        (String::from_utf8(bytes).unwrap(), told.collect())
    }

    fn json(text: &str) -> String {
        let mut quoted = Vec::new();
        quote(text.as_bytes(), &mut quoted);
        String::from_utf8(quoted).unwrap()
    }

    fn session(messages: &[String]) -> String {
        let head = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/w\"}\n";
        let lines = (0..).zip(messages).map(|(n, message)| {
            let parent = if n == 0 { "null".into() } else { format!("\"e{}\"", n - 1) };
            format!("{{\"type\":\"message\",\"id\":\"e{n}\",\"parentId\":{parent},\"message\":{message}}}\n")
        });
        String::from(head) + &lines.collect::<String>()
    }

    fn said(role: &str, text: &str) -> String {
        format!(
            "{{\"role\":\"{role}\",\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"stopReason\":\"stop\"}}",
            json(text)
        )
    }

    #[test]
    fn a_secret_goes_everywhere_but_from_ids_signatures_and_images() {
        let (secret, value) = (token(), noise(30, 5) + "4b");
        let arguments = json(&format!("{{\"id\":\"{secret}\",\"run\":\"export A_KEY=\\\"{value}\\\"\"}}"));
        let call = format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"toolCall\",\"id\":\"{secret}\",\"name\":\"sh\",\"arguments\":{{\"id\":\"{secret}\",\"all\":{arguments}}}}}],\"stopReason\":\"toolUse\"}}"
        );
        let result = format!(
            "{{\"role\":\"toolResult\",\"toolCallId\":\"{secret}\",\"toolName\":\"sh\",\"content\":[{{\"type\":\"text\",\"text\":{}}},{{\"type\":\"image\",\"data\":\"{secret}\",\"mimeType\":\"image/png\"}}],\"details\":{{\"textSignature\":\"{secret}\",\"out\":\"{secret} {value}\"}}}}",
            json(&format!("a\n{secret}\nA_KEY={value} and %20{value}"))
        );
        let text = session(&[said("user", &secret), call, result, said("assistant", &value)]);
        let (after, told) = masked(&text, &policy(SignedThinking::Keep));
        assert_eq!(text.matches(&*secret).count() - after.matches(&*secret).count(), 5, "{after}");
        assert_eq!(after.matches(&*secret).count(), 4, "{after}");
        assert!(!after.contains(&*value), "{after}");
        assert!(after.contains("[tailor: secret removed: github-token, 40 chars]"));
        assert!(after.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{after}");
        assert!(
            told.len() == 6 && told.iter().all(|(_, safety, _)| matches!(safety, Safety::Guarded(_))),
            "{told:?}"
        );
        assert_eq!(masked(&after, &policy(SignedThinking::Keep)), (after, Vec::new()), "a fixed point");
    }

    #[test]
    fn a_key_of_several_lines_goes_whole_at_any_depth_of_escapes() {
        let key = pem("\n", 3);
        let nested = json(&json(&format!("key: {key}\nend")));
        let text = session(&[said("user", &format!("see\n{key}\nend")), said("assistant", &nested)]);
        let (after, _) = masked(&text, &policy(SignedThinking::Keep));
        assert!(after.contains("see\\n[tailor: secret removed: private-key, "), "{after}");
        assert!(!after.contains("PRIVATE") && after.matches("\\\\nend").count() == 1, "{after}");
    }

    #[test]
    fn signed_thinking_that_quotes_a_secret_goes_whole_or_stays() {
        let secret = token();
        let thinks = |thought: &str| {
            format!(
                "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"{thought}\",\"thinkingSignature\":\"c2lnbmVkLTEA\"}},{{\"type\":\"text\",\"text\":\"yes\"}}],\"model\":\"claude-opus-5-5\",\"stopReason\":\"stop\"}}"
            )
        };
        let text = session(&[
            said("user", "go"),
            thinks(&secret),
            said("user", "on"),
            thinks("fine"),
            said("user", "end"),
            said("assistant", &secret),
        ]);
        let (after, told) = masked(&text, &policy(SignedThinking::Keep));
        assert_eq!(told.iter().map(|told| told.1).next(), Some(Safety::Held(Held::SignedThinking)));
        assert!(after.matches(&*secret).count() == 1 && after.contains("fine"), "{after}");
        let (after, _) = masked(&text, &policy(SignedThinking::Strip));
        assert!(!after.contains(&*secret) && !after.contains("thinkingSignature"), "{after}");
    }

    #[test]
    fn a_secret_in_bytes_of_no_record_is_reported_and_stays() {
        let secret = token();
        let text = session(&[said("user", "go")])
            + "{\"torn\": \""
            + &secret
            + "\n"
            + &session(&[said("user", "x")]);
        let (after, told) = masked(&text, &policy(SignedThinking::Keep));
        assert_eq!(
            (after.contains(&*secret), told),
            (true, alloc::vec![(3, Safety::Held(Held::Tangled), 1)])
        );
    }

    #[test]
    fn without_a_request_nothing_is_searched() {
        let text = session(&[said("user", &token())]);
        let found = mend(&text.as_bytes(), &Policy::default()).unwrap().before.findings;
        assert!(found.iter().all(|finding| finding.rule.code() != "X1"));
    }

    /// Windows overlap, so that a secret is found wherever it lies.
    #[test]
    fn no_secret_falls_between_two_windows() {
        let secret = token();
        for pad in (super::SEARCHED_BYTES - 400..super::SEARCHED_BYTES + 50).step_by(37) {
            let text = session(&[said("user", &(String::from("x ").repeat(pad / 2) + &secret))]);
            assert!(!masked(&text, &policy(SignedThinking::Keep)).0.contains(&*secret), "{pad}");
        }
    }
}
