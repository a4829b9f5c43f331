//! S4: images that are refused, or make the request be refused.

use super::{Cover, Help, Rule, about};
use crate::Depth;
use crate::entry::Image;
use crate::finding::{Finding, Fix, Guard, Held, Op, Severity};
use crate::format::Format;
use crate::format::Shape;
use crate::image::{self, Kind, Stub};
use crate::json::{self, Kind as Json};
use crate::marker;
use crate::policy::Images;
use crate::session::Session;
use crate::source::{Fault, Span, read_span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

pub(super) struct UnsendableImage;

/// How much of a JPEG is looked at for its size, which stands behind segments of any length.
const HEAD_BYTES: u64 = 256 << 10;

impl Rule for UnsendableImage {
    fn code(&self) -> &'static str {
        "S4"
    }

    fn name(&self) -> &'static str {
        "unsendable-image"
    }

    fn help(&self) -> Help {
        Help {
            what: "An image in context is larger than providers take, there are too many, one is sent twice, or it is not \
                   of the kind that it is said to be.",
            why: "\"image exceeds 5 MB maximum\", \"image dimensions exceed max allowed size for many-image requests: 2000 \
                  pixels\", \"request_too_large\": every request is refused from then on, also that of a compaction.",
            fix: "A wrong media type is put right. With --allow S4, or --only images, a line of text stands in the place of \
                  an image that is refused, of the oldest ones beyond the limits, and of copies; the data is in the vault.",
            source: "claude-code #34120, #16173, #2104, #83206; Anthropic: 5 MB, 8,000 pixels, 2,000 pixels beyond 20 images, \
                     100 images, 32 MB a request",
        }
    }

    fn cover(&self, format: &dyn Format) -> Cover {
        if format.content().images.is_some() { Cover::Fixed } else { Cover::Never }
    }

    fn check(&self, session: &Session<'_>, out: &mut Vec<Finding>) -> Result<(), Fault> {
        let mut images: Vec<Image> = session
            .transcript
            .images()
            .iter()
            .copied()
            .filter(|image| session.in_context(image.entry))
            .collect();
        images.sort_by_key(|image| (session.sequence(image.entry), image.data.start));
        for image in &mut images {
            look_farther(session, image)?;
        }
        // Each line of a data set is a request of its own.
        let alone = |image: &Image| session.is_whole_conversation(image.entry);
        for images in images.chunk_by(|one, next| one.entry == next.entry || !(alone(one) || alone(next))) {
            let gone = judge(session, &session.policy.images, images)?;
            for (image, why) in images.iter().zip(gone) {
                match why {
                    Some((severity, why)) => out.push(stub(session, image, severity, why)?),
                    None => out.extend(mislabelled(session, image)?),
                }
            }
        }
        Ok(())
    }
}

/// Reads on where the first bytes of a JPEG did not tell its size.
fn look_farther(session: &Session<'_>, image: &mut Image) -> Result<(), Fault> {
    if image.facts.kind == Some(Kind::Jpeg) && image.facts.pixels.is_none() {
        let base64 = image::base64_of(image);
        let head = Span::new(base64.start, base64.end.min(base64.start + HEAD_BYTES));
        image.facts = image::facts(&read_span(session.source, head)?);
    }
    Ok(())
}

type Reason = Option<(Severity, String)>;

fn refused(session: &Session<'_>) -> Severity {
    session.format.content().images.unwrap_or(Severity::Note)
}

/// Why each image is not to be sent.
fn judge(session: &Session<'_>, limits: &Images, images: &[Image]) -> Result<Vec<Reason>, Fault> {
    // OpenAI makes large images small itself.
    let refused = refused(session);
    let strict = refused == Severity::Error;
    let many = limits.many > 0 && images.len() as u64 > limits.many;
    let (mut gone, mut left): (Vec<Reason>, Vec<usize>) = (Vec::new(), Vec::new());
    for (n, image) in images.iter().enumerate() {
        let bytes = image::base64_of(image).len();
        let longest = image.facts.pixels.map_or(0, |(width, height)| u64::from(width.max(height)));
        let over = |limit: u64, value: u64| limit > 0 && value > limit;
        let why = if over(limits.bytes_max, bytes) {
            Some((refused, format!("image of {bytes} bytes (limit {})", limits.bytes_max)))
        } else if strict && over(limits.pixels_max, longest) {
            Some((refused, format!("image of {longest} pixels (limit {})", limits.pixels_max)))
        } else if strict && many && over(limits.many_pixels_max, longest) {
            let limit = limits.many_pixels_max;
            Some((
                refused,
                format!("image of {longest} pixels among more than {} (limit {limit})", limits.many),
            ))
        } else if let Some(first) = twin(session, images, &left, n)? {
            Some((Severity::Note, format!("the same image as on line {}", session.entry(first).line)))
        } else {
            left.push(n);
            None
        };
        gone.push(why);
    }
    // Of the rest the oldest go, as far as there is still too much.
    let mut count = left.len() as u64;
    let mut sum: u64 = left.iter().map(|&n| images[n].data.len()).sum();
    for n in left {
        let too_many = limits.count_max > 0 && count > limits.count_max;
        let too_much = limits.total_bytes_max > 0 && sum > limits.total_bytes_max;
        if too_many || too_much {
            let what = if too_many { "many images" } else { "many bytes of images" };
            gone[n] = Some((refused, format!("one of the oldest of too {what}")));
            (count, sum) = (count - 1, sum - images[n].data.len());
        }
    }
    Ok(gone)
}

/// The entry of an earlier image with the same data. Only those of one length and beginning are compared.
fn twin(session: &Session<'_>, images: &[Image], earlier: &[usize], n: usize) -> Result<Option<u32>, Fault> {
    let own = &images[n];
    let like = |other: &&Image| {
        other.data.len() == own.data.len() && other.facts == own.facts && other.data.len() >= 1000
    };
    for other in earlier.iter().map(|&at| &images[at]).filter(like) {
        if hash(session, other.data)? == hash(session, own.data)? {
            return Ok(Some(other.entry));
        }
    }
    Ok(None)
}

fn hash(session: &Session<'_>, span: Span) -> Result<blake3::Hash, Fault> {
    let mut hasher = blake3::Hasher::new();
    session.source.pieces(span, &mut |bytes| {
        hasher.update(bytes);
        true
    })?;
    Ok(hasher.finalize())
}

/// A line of text in the place of an image, and of copies of its data in the same entry.
fn stub(session: &Session<'_>, image: &Image, severity: Severity, why: String) -> Result<Finding, Fault> {
    let hash = match session.depth {
        Depth::Plan => hash(session, image.data)?,
        Depth::Sizes => blake3::Hash::from_bytes([0; blake3::OUT_LEN]),
    };
    let size =
        image.facts.pixels.map_or_else(String::new, |(width, height)| format!(", {width}x{height} pixels"));
    let kind = image.facts.kind.map_or_else(|| "image".to_string(), |kind| format!("{kind} image"));
    let chars = image.data.len();
    let folder = session.policy.spill.as_ref();
    let text = marker::text(chars, chars, &marker::Id::new(&hash), folder, &(kind + &size));
    let block = match image.stub {
        Stub::Block => format!(r#"{{"type":"text","text":"{text}"}}"#),
        Stub::Item => format!(r#"{{"type":"input_text","text":"{text}"}}"#),
        Stub::Part => format!(r#"{{"text":"{text}"}}"#),
        Stub::Nothing => {
            let fix = Fix::held(Held::NothingElse);
            return Ok(Finding { fix, ..about(&UnsendableImage, session, image.entry, severity, why) });
        }
    };
    let mut ops = vec![Op::Keep(image.data), Op::Replace { at: image.block, with: block.into_bytes() }];
    let copies = copies(session, image)?;
    ops.extend(copies.into_iter().map(|at| Op::Replace { at, with: text.clone().into_bytes() }));
    let fix = Fix::guarded(Guard::Images, ops);
    Ok(Finding { fix, ..about(&UnsendableImage, session, image.entry, severity, why) })
}

/// The insides of other strings of the entry that hold the same data, as `toolUseResult` does.
fn copies(session: &Session<'_>, image: &Image) -> Result<Vec<Span>, Fault> {
    let doc = json::parse(session.source, session.entry(image.entry).span)?;
    let Some(root) = doc.as_ref().and_then(json::Doc::root) else { return Ok(Vec::new()) };
    // Copies stand beside the message, and only Claude Code makes them.
    let Some(side) = root.get("toolUseResult").filter(|_| session.format.shape() == Shape::Graph) else {
        return Ok(Vec::new());
    };
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

/// Puts a media type right that the first bytes belie.
fn mislabelled(session: &Session<'_>, image: &Image) -> Result<Option<Finding>, Fault> {
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
    let severity = refused(session);
    let message = format!("a {kind} image that is said to be {said}");
    let fix = Fix::safe(vec![Op::Replace { at, with: with.into_bytes() }]);
    Ok(Some(Finding { fix, ..about(&UnsendableImage, session, image.entry, severity, message) }))
}
