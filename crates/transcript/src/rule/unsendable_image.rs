//! S4: images that the API refuses, or that make it refuse the request.

use super::base::{Cover, Feature, FindingSink, Group, Help, Rule, RuleInfo, about};
use crate::format::Shape;
use crate::model::finding::{Finding, Fix, Guard, Held, Op, Severity};
use crate::model::image::{self, Image, ImageKind, Stub};
use crate::model::policy::{Depth, TooLarge};
use crate::session::Session;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use spans::json::{self, ValueKind as Json};
use spans::marker;
use spans::source::{Fault, Span, read_span};

/// How much of a JPEG is read to find its size, which comes after segments of any length.
const HEAD_BYTES: u64 = 256 << 10;
/// Larger base64 is not read into memory, so those images are not made smaller.
const DOWNSCALE_BYTES_MAX: u64 = 24 << 20;

pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        code: "S4",
        name: "unsendable-image",
        help: Help {
            what: "An image in context is larger than providers take, there are too many, one is sent twice, or it is not \
                   of the type that its label says.",
            why: "\"image exceeds 5 MB maximum\", \"image dimensions exceed max allowed size for many-image requests: 2000 \
                  pixels\", \"request_too_large\": every request is refused from then on, also that of a compaction.",
            fix: "A wrong media type is corrected. With --allow S4, or --only images, a line of text replaces an image \
                  that is refused, the oldest ones beyond the limits, and copies; the data is in the vault. With \
                  --images downscale an image that is too large is made smaller instead, if it can be decoded.",
            source: "claude-code #34120, #16173, #2104, #83206; Anthropic: 5 MB, 8,000 pixels, 2,000 pixels beyond 20 images, \
                     100 images, 32 MB a request",
        },
        groups: &[Group::Images],
        entry_decides: true,
        wakes: &[Feature::Image],
        ..RuleInfo::BASE
    },
    cover: |format| if format.content.images.is_some() { Cover::Fixed } else { Cover::Never },
    check,
};

fn check(session: &Session<'_>, out: &mut FindingSink<'_>) -> Result<(), Fault> {
    let mut images: Vec<Image> =
        session.transcript.images().iter().copied().filter(|image| session.in_context(image.entry)).collect();
    images.sort_by_key(|image| (session.sequence(image.entry), image.data.start));
    for image in &mut images {
        look_farther(session, image)?;
    }
    // In a data set, each line is a request of its own.
    let alone = |image: &Image| session.is_whole_conversation(image.entry);
    for images in images.chunk_by(|one, next| one.entry == next.entry || !(alone(one) || alone(next))) {
        for (image, verdict) in images.iter().zip(judge(session, images)?) {
            match verdict {
                Fate::Gone(severity, why) => out.push(stub(session, image, severity, why)?),
                Fate::Large(severity, why) => {
                    out.push(make_small(session, image, severity, why, images)?);
                }
                Fate::Stays => out.extend(mislabelled(session, image)?),
            }
        }
    }
    Ok(())
}

/// Reads more of a JPEG whose first bytes do not hold its size.
fn look_farther(session: &Session<'_>, image: &mut Image) -> Result<(), Fault> {
    if image.facts.kind == Some(ImageKind::Jpeg) && image.facts.pixels.is_none() {
        let base64 = image::base64_of(image);
        let head = Span::new(base64.start, base64.end.min(base64.start + HEAD_BYTES));
        image.facts = image::facts(&read_span(session.source, head)?);
    }
    Ok(())
}

/// What happens to an image, and why.
enum Fate {
    /// It is sent as it is.
    Stays,
    /// A line of text takes its place.
    Gone(Severity, String),
    /// It is too large by itself, and may be made smaller.
    Large(Severity, String),
}

fn refused(session: &Session<'_>) -> Severity {
    session.format.content.images.unwrap_or(Severity::Note)
}

/// Whether sizes in pixels are limited. OpenAI shrinks large images itself.
fn is_strict(session: &Session<'_>) -> bool {
    refused(session) == Severity::Error
}

/// Whether there are so many images that each must be smaller.
fn are_many(session: &Session<'_>, images: &[Image]) -> bool {
    let many = session.policy.images.many;
    many > 0 && images.len() as u64 > many
}

/// Decides what happens to each image.
fn judge(session: &Session<'_>, images: &[Image]) -> Result<Vec<Fate>, Fault> {
    let limits = &session.policy.images;
    let many = are_many(session, images);
    let (mut verdicts, mut left): (Vec<Fate>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut twins = Twins::default();
    for (n, image) in images.iter().enumerate() {
        let large = too_large(session, image, many);
        let stays = large.is_none() || session.policy.downscale.is_some();
        let twin = if stays { twins.earlier_twin(session, image)? } else { None };
        verdicts.push(match (twin, large) {
            (Some(first), None) => {
                let why = format!("the same image as on line {}", session.entry(first).line);
                Fate::Gone(Severity::Note, why)
            }
            (None, Some(why)) if stays => Fate::Large(refused(session), why),
            (_, Some(why)) => Fate::Gone(refused(session), why),
            (None, None) => Fate::Stays,
        });
        if stays && twin.is_none() {
            left.push(n);
        }
    }
    // Of the others, the oldest are removed as long as the sum is too large. Images that are made smaller are counted
    // after that.
    let weight = |n: usize| if let Fate::Large(..) = verdicts[n] { 0 } else { images[n].data.len() };
    let weights: Vec<u64> = left.iter().map(|&n| weight(n)).collect();
    let mut count = left.len() as u64;
    let mut sum: u64 = weights.iter().sum();
    for (n, weight) in left.into_iter().zip(weights) {
        let too_many = limits.count_max > 0 && count > limits.count_max;
        let too_much = limits.total_bytes_max > 0 && sum > limits.total_bytes_max;
        if too_many || too_much {
            let what = if too_many { "many images" } else { "many bytes of images" };
            verdicts[n] = Fate::Gone(refused(session), format!("one of the oldest of too {what}"));
            (count, sum) = (count - 1, sum - weight);
        }
    }
    Ok(verdicts)
}

/// Why an image is too large by itself, if it is.
fn too_large(session: &Session<'_>, image: &Image, many: bool) -> Option<String> {
    let (limits, strict) = (&session.policy.images, is_strict(session));
    let bytes = image::base64_of(image).len();
    let longest = image.facts.pixels.map_or(0, |(width, height)| u64::from(width.max(height)));
    let over = |limit: u64, value: u64| limit > 0 && value > limit;
    if over(limits.bytes_max, bytes) {
        Some(format!("image of {bytes} bytes (limit {})", limits.bytes_max))
    } else if strict && over(limits.pixels_max, longest) {
        Some(format!("image of {longest} pixels (limit {})", limits.pixels_max))
    } else if strict && many && over(limits.many_pixels_max, longest) {
        let limit = limits.many_pixels_max;
        Some(format!("image of {longest} pixels among more than {} (limit {limit})", limits.many))
    } else {
        None
    }
}

/// The images so far. An image is read once, and only if another one has the same length.
#[derive(Default)]
struct Twins {
    /// The first image of each length, until it was read.
    first: HashMap<u64, Option<Image>>,
    /// The entry of the first image with each data.
    read: HashMap<[u8; blake3::OUT_LEN], u32>,
}

impl Twins {
    /// The entry of an earlier image with the same data.
    fn earlier_twin(&mut self, session: &Session<'_>, image: &Image) -> Result<Option<u32>, Fault> {
        let length = image.data.len();
        if length < 1000 {
            return Ok(None);
        }
        let Some(first) = self.first.get_mut(&length) else {
            self.first.insert(length, Some(*image));
            return Ok(None);
        };
        if let Some(first) = first.take() {
            self.read.insert(*hash(session, first.data)?.as_bytes(), first.entry);
        }
        match self.read.entry(*hash(session, image.data)?.as_bytes()) {
            Entry::Occupied(earlier) => Ok(Some(*earlier.get())),
            Entry::Vacant(free) => {
                free.insert(image.entry);
                Ok(None)
            }
        }
    }
}

fn hash(session: &Session<'_>, span: Span) -> Result<blake3::Hash, Fault> {
    let mut hasher = blake3::Hasher::new();
    session.source.pieces(span, &mut |bytes| {
        hasher.update(bytes);
        true
    })?;
    Ok(hasher.finalize())
}

/// Replaces an image that is too large, and its copies, by a smaller one, or by a line of text if there is none.
fn make_small(
    session: &Session<'_>,
    image: &Image,
    severity: Severity,
    why: String,
    images: &[Image],
) -> Result<Finding, Fault> {
    // Images are decoded only for a fix that will be made.
    let asked = session.depth != Depth::Sizes && session.policy.selection.allows(RULE.code);
    let mut finding = stub(session, image, severity, why)?;
    if !asked {
        finding.fix = Fix::guarded(Guard::Pixels, finding.fix.ops);
    } else if let Some(base64) = smaller(session, image, images)? {
        let old = image::base64_of(image);
        let mut ops = vec![Op::Replace { at: old, with: base64.clone().into_bytes() }];
        for copy in copies(session, image)? {
            let at = Span::new(copy.start + image.data_from, copy.end);
            ops.push(Op::Replace { at, with: base64.clone().into_bytes() });
        }
        ops.extend(media_type(session, image)?);
        finding.fix = Fix::guarded(Guard::Pixels, ops);
    }
    Ok(finding)
}

/// The base64 of a smaller image; `None` if no callback can make one.
fn smaller(session: &Session<'_>, image: &Image, images: &[Image]) -> Result<Option<String>, Fault> {
    let (limits, old) = (&session.policy.images, image::base64_of(image));
    let (Some(downscale), Some(kind)) = (session.policy.downscale, image.facts.kind) else { return Ok(None) };
    if old.len() > DOWNSCALE_BYTES_MAX {
        return Ok(None);
    }
    let Ok(file) = STANDARD.decode(read_span(session.source, old)?) else { return Ok(None) };
    let sides = [
        (limits.pixels_max, is_strict(session)),
        (limits.many_pixels_max, is_strict(session) && are_many(session, images)),
    ];
    let side = sides.into_iter().filter_map(|(limit, asked)| (asked && limit > 0).then_some(limit)).min();
    let pixels_max = side.map_or(u32::MAX, |side| u32::try_from(side).unwrap_or(u32::MAX));
    let bytes_max = if limits.bytes_max > 0 { limits.bytes_max / 4 * 3 } else { u64::MAX };
    let Some(small) = (downscale.0)(TooLarge { file: &file, kind, pixels_max, bytes_max }) else {
        return Ok(None);
    };
    // Check what the callback returned, as far as possible.
    let base64 = STANDARD.encode(&small);
    let facts = image::facts(&base64.as_bytes()[..base64.len().min(HEAD_BYTES as usize)]);
    let fits = facts.kind == Some(kind)
        && small.len() as u64 <= bytes_max
        && facts.pixels.is_some_and(|(width, height)| width.max(height) <= pixels_max);
    Ok(fits.then_some(base64))
}

/// Replaces an image, and copies of its data in the same entry, by a line of text.
fn stub(session: &Session<'_>, image: &Image, severity: Severity, why: String) -> Result<Finding, Fault> {
    let hash = match session.depth {
        Depth::Plan => hash(session, image.data)?,
        Depth::Sizes | Depth::Trial => blake3::Hash::from_bytes([0; blake3::OUT_LEN]),
    };
    let size =
        image.facts.pixels.map_or_else(String::new, |(width, height)| format!(", {width}x{height} pixels"));
    let kind = image.facts.kind.map_or_else(|| "image".to_string(), |kind| format!("{kind} image"));
    let chars = image.data.len();
    let folder = session.policy.spill.as_ref();
    let text = marker::text(chars, chars, &marker::TextId::new(&hash), folder, &(kind + &size));
    let block = match image.stub {
        Stub::Block => format!(r#"{{"type":"text","text":"{text}"}}"#),
        Stub::Item => format!(r#"{{"type":"input_text","text":"{text}"}}"#),
        Stub::Part => format!(r#"{{"text":"{text}"}}"#),
        Stub::Nothing => {
            let fix = Fix::held(Held::NothingElse);
            return Ok(Finding { fix, ..about(&RULE, session, image.entry, severity, why) });
        }
    };
    let mut ops = vec![Op::Keep(image.data), Op::Replace { at: image.block, with: block.into_bytes() }];
    let copies = copies(session, image)?;
    ops.extend(copies.into_iter().map(|at| Op::Replace { at, with: text.clone().into_bytes() }));
    let fix = Fix::guarded(Guard::Images, ops);
    Ok(Finding { fix, ..about(&RULE, session, image.entry, severity, why) })
}

/// The insides of other strings in the entry that hold the same data, such as `toolUseResult`.
fn copies(session: &Session<'_>, image: &Image) -> Result<Vec<Span>, Fault> {
    // Only Claude Code stores copies beside the message.
    if session.format.shape != Shape::Graph {
        return Ok(Vec::new());
    }
    let doc = json::parse(session.source, session.entry(image.entry).span)?;
    let root = doc.as_ref().and_then(json::Doc::root);
    let Some(side) = root.and_then(|root| root.get("toolUseResult")) else { return Ok(Vec::new()) };
    let like =
        |value: &json::Value<'_>| value.kind() == Json::String && value.inner().len() == image.data.len();
    let mut copies = Vec::new();
    for value in side.descendants().filter(like) {
        if hash(session, value.inner())? == hash(session, image.data)? {
            copies.push(value.inner());
        }
    }
    Ok(copies)
}

/// Corrects a media type that contradicts the first bytes.
fn mislabelled(session: &Session<'_>, image: &Image) -> Result<Option<Finding>, Fault> {
    let (Some(said), Some(kind)) = (image.said, image.facts.kind) else { return Ok(None) };
    let Some(right) = media_type(session, image)? else { return Ok(None) };
    let severity = refused(session);
    let message = format!("a {kind} image that is labelled {said}");
    let fix = Fix::safe(vec![right]);
    Ok(Some(Finding { fix, ..about(&RULE, session, image.entry, severity, message) }))
}

/// The step that corrects a media type that contradicts the first bytes.
fn media_type(session: &Session<'_>, image: &Image) -> Result<Option<Op>, Fault> {
    let (Some(said), Some(kind)) = (image.said, image.facts.kind) else { return Ok(None) };
    if said == kind {
        return Ok(None);
    }
    let (at, with) = if image.media_at.is_empty() {
        let head =
            read_span(session.source, Span::new(image.data.start, image.data.start + image.data_from))?;
        let end = memchr::memchr2(b';', b',', &head).unwrap_or(head.len());
        (Span::new(image.data.start + 5, image.data.start + end as u64), kind.media_type().to_string())
    } else {
        (image.media_at, format!("\"{}\"", kind.media_type()))
    };
    Ok(Some(Op::Replace { at, with: with.into_bytes() }))
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, json};
    use crate::examine::mend::mend;
    use crate::model::policy::{Downscale, Images, Policy, TooLarge};
    use crate::plan::Rendered;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;
    use base64::Engine;
    use spans::source::Source;
    use spans::source::Span;

    /// The beginning of a PNG of this size, followed by this many bytes.
    fn png(width: u32, height: u32, more: usize) -> Vec<u8> {
        let head = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes()];
        [head.concat(), vec![7; more]].concat()
    }

    fn text(images: &[Vec<u8>]) -> String {
        let line = |image: &Vec<u8>| {
            let data = STANDARD.encode(image);
            format!(
                "{{\"role\":\"user\",\"content\":[{{\"type\":\"image\",\"source\":{{\"type\":\"base64\",\"media_type\":\
                 \"image/png\",\"data\":\"{data}\"}}}},{{\"type\":\"text\",\"text\":\"look\"}}]}}\n\
                 {{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"ok\"}}]}}\n"
            )
        };
        // Without a call it could be one of OpenAI's messages.
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}]}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#;
        let lines: String = images.iter().map(line).collect();
        format!("{call}\n{result}\n{lines}")
    }

    /// The size of each image after the fix; nothing if a line of text replaced it.
    fn fixed(
        images: &[Vec<u8>],
        limits: Images,
        downscale: fn(TooLarge<'_>) -> Option<Vec<u8>>,
    ) -> Vec<Option<usize>> {
        let mut policy =
            Policy { images: limits, downscale: Some(Downscale(downscale)), ..Policy::default() };
        policy.selection.allow.push("S4".into());
        let text = text(images);
        let Ok(repair) = mend(&text.as_bytes(), &policy).unwrap().repair else { panic!("no repair") };
        let text = text.as_bytes();
        let rendered = Rendered::new(&text, &repair.plan);
        let mut after = Vec::new();
        let mut take = |piece: &[u8]| {
            after.extend_from_slice(piece);
            true
        };
        rendered.pieces(Span::new(0, rendered.len()), &mut take).unwrap();
        let lines = after.split(|&byte| byte == b'\n').skip(2).step_by(2).filter(|line| !line.is_empty());
        let data = |line: &[u8]| {
            let doc = json::parse(&line, Span::new(0, line.len() as u64)).unwrap().unwrap();
            let block = doc.get("content").unwrap().items().next().unwrap();
            block.get("source").map(|source| source.get("data").unwrap().inner().len() as usize)
        };
        lines.map(data).collect()
    }

    /// The callback's image is accepted as far as its first bytes and its length are plausible.
    #[test]
    fn what_comes_back_is_looked_at() {
        let limits = Images { bytes_max: 4_000, pixels_max: 100, ..Images::default() };
        let large = [png(200, 50, 30)];
        let base64 = |image: &[u8]| Some(image.len().div_ceil(3) * 4);
        assert_eq!(fixed(&large, limits, |_| Some(png(100, 25, 9))), [base64(&png(100, 25, 9))]);
        assert_eq!(fixed(&large, limits, |_| None), [None]);
        assert_eq!(fixed(&large, limits, |_| Some(png(101, 25, 9))), [None]);
        assert_eq!(fixed(&large, limits, |_| Some(png(100, 25, 3_000))), [None]);
        assert_eq!(fixed(&large, limits, |_| Some(b"GIF89a\x10\0\x10\0".to_vec())), [None]);
        assert_eq!(fixed(&large, limits, |_| Some(Vec::new())), [None]);
        // Exactly the size that was requested.
        let exact = |asked: TooLarge<'_>| {
            assert_eq!((asked.pixels_max, asked.bytes_max), (100, 3_000));
            assert_eq!(asked.file, png(200, 50, 30));
            None
        };
        assert_eq!(fixed(&large, limits, exact), [None]);
    }

    /// The total is known only once images are made smaller. Then the oldest are removed.
    #[test]
    fn what_is_made_small_counts_as_small() {
        let limits = Images { pixels_max: 100, total_bytes_max: 2_600, ..Images::default() };
        let large: Vec<_> = (1..=3).map(|n| png(200, n, 3_000)).collect();
        let small = |asked: TooLarge<'_>| Some([&png(100, 1, 600)[..], &asked.file[20..24]].concat());
        let length = png(100, 1, 604).len().div_ceil(3) * 4;
        assert_eq!(fixed(&large[..2], limits, small), [Some(length); 2]);
        assert_eq!(fixed(&large, limits, small), [Some(length), Some(length), Some(length)]);
        let less = Images { total_bytes_max: 2_000, ..limits };
        assert_eq!(fixed(&large, less, small), [None, Some(length), Some(length)]);
        let fewer = Images { count_max: 1, ..limits };
        assert_eq!(fixed(&large, fewer, small), [None, None, Some(length)]);
    }
}
