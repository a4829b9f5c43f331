//! What an image in a message is, judged by its first bytes: kind and size in pixels. Only the beginning of the base64
//! is decoded; the pixels are never read.

use alloc::vec::Vec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use spans::json::{Value, ValueKind as Json};
use spans::source::Span;

/// An image as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Index of the entry.
    pub entry: u32,
    /// The block, an element of an array.
    pub block: Span,
    /// The inside of the literal with the data: base64, or a `data:` URL.
    pub data: Span,
    /// How many bytes of it come before the base64.
    pub data_from: u64,
    /// The media type's literal, if it has its own.
    pub media_at: Span,
    /// The kind according to the media type.
    pub said: Option<ImageKind>,
    /// The kind and size according to its first bytes.
    pub facts: ImageFacts,
    /// What can replace it.
    pub stub: Stub,
}

/// Kinds of images that providers accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// Portable network graphics.
    Png,
    /// Photographs.
    Jpeg,
    /// Few colours, or animated.
    Gif,
    /// Google's.
    Webp,
}

impl ImageKind {
    /// The media type, as written in messages.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    fn of_media_type(text: &[u8]) -> Option<Self> {
        let text = text.strip_prefix(b"image/jpg").map_or(text, |_| b"image/jpeg");
        [Self::Png, Self::Jpeg, Self::Gif, Self::Webp]
            .into_iter()
            .find(|kind| kind.media_type().as_bytes() == text)
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::Webp => "WebP",
        })
    }
}

/// What the first bytes of an image tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// Its kind; `None` if it is none of those.
    pub kind: Option<ImageKind>,
    /// Width and height in pixels, if the bytes reach that far.
    pub pixels: Option<(u32, u32)>,
}

/// The kind of text that can replace an image, so that programs that read the image there read the text as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stub {
    /// A block `{"type":"text","text":…}`.
    Block,
    /// An item `{"type":"input_text","text":…}` of `OpenAI`'s Responses API.
    Item,
    /// A part `{"text":…}` of Gemini's API.
    Part,
    /// Nothing: only images are read there.
    Nothing,
}

/// The types of blocks that are images, and of files, which may be images.
const IMAGES: &[&str] = &["image", "image_url", "input_image", "image-data"];
const FILES: &[&str] = &["file", "file-data", "media", "blob"];

fn is_of(block: Value<'_>, types: &[&str]) -> bool {
    block.get("type").is_some_and(|kind| types.iter().any(|name| kind.is(name)))
}

/// Whether a block may hold an image.
pub(crate) fn may_be(block: Value<'_>) -> bool {
    is_of(block, IMAGES) || is_of(block, FILES) || inline(block).is_some()
}

/// The data in a part of Gemini's API.
fn inline(part: Value<'_>) -> Option<Value<'_>> {
    let [camel, snake] = part.pick(["inlineData", "inline_data"]);
    camel.or(snake).filter(|data| !data.is_null())
}

/// The image in a block; `None` if it holds no data itself. Its entry is not set.
pub(crate) fn of_block(block: Value<'_>) -> Option<Image> {
    // Anthropic's messages; Gemini's parts; all others.
    let source = block.get("source").or_else(|| inline(block)).unwrap_or(block);
    // Dialects in which the image may be a URL: OpenAI's and the AI SDK's.
    let address = block.get("image_url").map(|image| image.get("url").unwrap_or(image));
    let address = address.or_else(|| block.get("url"));
    let data = source.get("data").or_else(|| block.get("image")).or(address);
    let data = data.filter(|data| data.kind() == Json::String && data.span().len() > 2)?;
    let names = ["mimeType", "media_type", "mediaType", "mime_type", "mime"];
    let media = source.pick(names).into_iter().flatten().next();
    let told = media.and_then(Value::text);
    if !is_of(block, IMAGES) && !told.as_ref().is_some_and(|told| told.starts_with(b"image/")) {
        return None;
    }
    let prefix = data.prefix();
    let (said, media, data_from) = match prefix.strip_prefix(b"data:") {
        Some(rest) => {
            let comma = memchr::memchr(b',', rest)?;
            let kind = rest[..comma].split(|&b| b == b';').next().and_then(ImageKind::of_media_type);
            (kind, None, 5 + comma + 1)
        }
        // The URL of an image elsewhere.
        None if address.is_some() || prefix.starts_with(b"http:") || prefix.starts_with(b"https:") => {
            return None;
        }
        None => (told.and_then(|text| ImageKind::of_media_type(&text)), media, 0),
    };
    Some(Image {
        entry: 0,
        block: block.span(),
        data: data.inner(),
        data_from: data_from as u64,
        media_at: media.map(Value::span).unwrap_or_default(),
        said,
        facts: facts(&prefix[data_from..]),
        stub: match is_of(block, &["input_image"]) {
            true => Stub::Item,
            false if inline(block).is_some() => Stub::Part,
            false => Stub::Block,
        },
    })
}

/// What the beginning of base64 data tells.
pub(crate) fn facts(base64: &[u8]) -> ImageFacts {
    let alphabet = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'+' || **b == b'/';
    let length = base64.iter().take_while(alphabet).count() / 4 * 4;
    let bytes: Vec<u8> = STANDARD.decode(&base64[..length]).unwrap_or_default();
    let kind = kind(&bytes);
    let pixels = match kind {
        Some(ImageKind::Png) => big(&bytes, 16).zip(big(&bytes, 20)),
        Some(ImageKind::Gif) => little(&bytes, 6, 2).zip(little(&bytes, 8, 2)),
        Some(ImageKind::Webp) => webp(&bytes),
        Some(ImageKind::Jpeg) => jpeg(&bytes),
        None => None,
    };
    ImageFacts { kind, pixels }
}

fn kind(bytes: &[u8]) -> Option<ImageKind> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some(ImageKind::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageKind::Jpeg),
        [b'G', b'I', b'F', b'8', ..] => Some(ImageKind::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageKind::Webp),
        _ => None,
    }
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at + length)?.iter().rev();
    Some(digits.fold(0, |number, &byte| number << 8 | u32::from(byte)))
}

/// Simple (`VP8 `), lossless (`VP8L`) and extended (`VP8X`) files have their size in three different places.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((little(bytes, 26, 2)? & 0x3fff, little(bytes, 28, 2)? & 0x3fff)),
        _ => None,
    }
}

/// The size is in the first frame header, which comes after segments of any length.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        match marker {
            0xff => at += 1,
            // All frame headers; the exceptions are tables and extensions.
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(&marker) => {
                let half =
                    |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
                return half(at + 7).zip(half(at + 5));
            }
            _ => at += 2 + usize::from(u16::from_be_bytes(bytes.get(at + 2..at + 4)?.try_into().ok()?)),
        }
    }
}

/// The span of the base64 itself.
pub(crate) fn base64_of(image: &Image) -> Span {
    Span::new(image.data.start + image.data_from, image.data.end)
}

#[cfg(test)]
mod tests {
    use super::{ImageFacts, ImageKind, STANDARD, facts};
    use base64::Engine;

    fn facts_of(bytes: &[u8]) -> ImageFacts {
        facts(STANDARD.encode(bytes).as_bytes())
    }

    #[test]
    fn kind_and_size_are_in_the_first_bytes() {
        let png = [
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
            &1170_u32.to_be_bytes(),
            &2532_u32.to_be_bytes(),
            b"\x08\x06",
        ]
        .concat();
        assert_eq!(facts_of(&png), ImageFacts { kind: Some(ImageKind::Png), pixels: Some((1170, 2532)) });
        assert_eq!(facts_of(&png[..20]).pixels, None);
        assert_eq!(facts_of(b"GIF89a\x20\x03\x58\x02\0\0\0").pixels, Some((800, 600)));
        let jpeg =
            b"\xff\xd8\xff\xe0\0\x06JFIF\xff\xc4\0\x03\0\xff\xff\xc2\0\x11\x08\x02\x58\x03\x20\x03\0\0";
        assert_eq!(facts_of(jpeg), ImageFacts { kind: Some(ImageKind::Jpeg), pixels: Some((800, 600)) });
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0\0\0";
        assert_eq!(facts_of(extended), ImageFacts { kind: Some(ImageKind::Webp), pixels: Some((800, 600)) });
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x1f\xc3\x95\0\0\0";
        assert_eq!(facts_of(lossless).pixels, Some((800, 600)));
        let simple = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x20\x03\x58\x02\0\0";
        assert_eq!(facts_of(simple).pixels, Some((800, 600)));
    }

    #[test]
    fn any_bytes_are_looked_at() {
        for text in ["", "A", "////", "iVBORw0KGgo\\u2026", "not base64 at all", "/9j/4AAAAAAA"] {
            facts(text.as_bytes());
        }
        assert_eq!(facts_of(b"%PDF-1.4"), ImageFacts::default());
    }
}
