//! Makes images smaller, in a process of its own with limits for memory and time: the images may come from anywhere,
//! and decoding one must not be able to crash Tailor. The process reads one image, writes one, and opens no files. If
//! an image cannot be made smaller, the rule replaces it by a line of text.

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as Filter, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, GenericImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use keeper::own_program;
use std::ffi::OsString;
use std::io::{self, Cursor, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use transcript::policy::TooLarge;

/// The first argument of the process that decodes. It is not a command, and not documented.
const WORD: &str = "downscale-image";
/// Most pixels that are decoded: a photograph of 40 megapixels, or a page of 1,280 by 31,000.
const PIXELS_MAX: u64 = 40_000_000;
/// Longest picture in memory as it is decoded.
const PICTURE_BYTES_MAX: u64 = 128 << 20;
/// Most pixels in a strip of a picture.
const STRIP_PIXELS_MAX: u32 = 2 << 20;
/// Memory limit of the process. The service may use 512 MiB, including this.
const MEMORY_BYTES_MAX: u64 = 400 << 20;
const CPU_SECONDS_MAX: u64 = 120;
/// JPEG quality; text stays readable.
const QUALITY: u8 = 85;
/// How many times a file that is still too long is made a quarter smaller.
const TRIES_MAX: u32 = 12;

/// Makes an image smaller; `None` if that fails.
pub(crate) fn downscale(asked: TooLarge<'_>) -> Option<Vec<u8>> {
    // One at a time, to save memory. A panic leaves nothing half done, so a poisoned lock does no harm.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut child = Command::new(own_program().ok()?)
        .args([WORD, asked.kind.media_type()])
        .args([u64::from(asked.pixels_max), asked.bytes_max].map(|limit| limit.to_string()))
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // The process reads everything before it writes. If it ends early, writing fails, and its output is ignored.
    let given = child.stdin.take().map(|mut stdin| stdin.write_all(asked.file));
    let output = child.wait_with_output().ok()?;
    (matches!(given, Some(Ok(()))) && output.status.success()).then_some(output.stdout)
}

/// Runs the decoding process, if this is it.
pub(crate) fn child() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    Some(if serve(arguments).is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(arguments: impl Iterator<Item = OsString>) -> Option<()> {
    keeper::confine(MEMORY_BYTES_MAX, CPU_SECONDS_MAX).ok()?;
    let mut arguments = arguments.map(|argument| argument.into_string().ok());
    let format = ImageFormat::from_mime_type(arguments.next()??)?;
    let pixels_max = arguments.next()??.parse().ok()?;
    let bytes_max = arguments.next()??.parse().ok()?;
    let mut file = Vec::new();
    io::stdin().lock().read_to_end(&mut file).ok()?;
    let small = shrink(&file, format, pixels_max, bytes_max)?;
    io::stdout().lock().write_all(&small).ok()
}

/// The first picture of a file, upright, within the limits, in the same format.
fn shrink(file: &[u8], format: ImageFormat, pixels_max: u32, bytes_max: u64) -> Option<Vec<u8>> {
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(PICTURE_BYTES_MAX);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > PIXELS_MAX || decoder.total_bytes() > PICTURE_BYTES_MAX {
        return None;
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = in_bytes(DynamicImage::from_decoder(decoder).ok()?);
    picture.apply_orientation(orientation);
    let mut side = pixels_max.min(width.max(height));
    for _ in 0..TRIES_MAX {
        if side < width.max(height) {
            picture = made_small(picture, side)?;
        }
        let small = encoded(&picture, format)?;
        if small.len() as u64 <= bytes_max {
            return Some(small);
        }
        side = side / 4 * 3;
    }
    None
}

/// Eight bits per channel: no provider uses more, and it halves the memory.
fn in_bytes(picture: DynamicImage) -> DynamicImage {
    let color = picture.color();
    match (color.has_color(), color.has_alpha()) {
        (true, true) => DynamicImage::ImageRgba8(picture.into_rgba8()),
        (true, false) => DynamicImage::ImageRgb8(picture.into_rgb8()),
        (false, true) => DynamicImage::ImageLumaA8(picture.into_luma_alpha8()),
        (false, false) => DynamicImage::ImageLuma8(picture.into_luma8()),
    }
}

/// The picture, with its longest side of this length.
fn made_small(picture: DynamicImage, side: u32) -> Option<DynamicImage> {
    let longest = u64::from(picture.width().max(picture.height()));
    let scaled = |length: u32| ((u64::from(length) * u64::from(side) + longest / 2) / longest).max(1) as u32;
    let (width, height) = (scaled(picture.width()), scaled(picture.height()));
    if side == 0 {
        return None;
    }
    let low = stretched(&picture, true, height)?;
    drop(picture);
    stretched(&low, false, width)
}

/// The picture with this height, or this width. Done in strips, because the filter needs four floats per pixel. It only
/// multiplies and adds, so the result is the same on every machine.
fn stretched(picture: &DynamicImage, upright: bool, length: u32) -> Option<DynamicImage> {
    let (width, height) = (picture.width(), picture.height());
    let (along, across, size) =
        if upright { (height, width, (width, length)) } else { (width, height, (length, height)) };
    let mut result = DynamicImage::new(size.0, size.1, picture.color());
    let thickness = (STRIP_PIXELS_MAX / along).clamp(1, across);
    for at in (0..across).step_by(thickness as usize) {
        let thickness = thickness.min(across - at);
        let (x, y, size, new) = if upright {
            (at, 0, (thickness, height), (thickness, length))
        } else {
            (0, at, (width, thickness), (length, thickness))
        };
        let strip = picture.crop_imm(x, y, size.0, size.1);
        result.copy_from(&strip.resize_exact(new.0, new.1, FilterType::Triangle), x, y).ok()?;
    }
    Some(result)
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Option<Vec<u8>> {
    let mut file = Cursor::new(Vec::new());
    match format {
        ImageFormat::Png => picture.write_with_encoder(PngEncoder::new_with_quality(
            &mut file,
            CompressionType::Default,
            Filter::Adaptive,
        )),
        ImageFormat::Jpeg => picture.write_with_encoder(JpegEncoder::new_with_quality(&mut file, QUALITY)),
        _ => picture.write_to(&mut file, format),
    }
    .ok()?;
    Some(file.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::image::ImageKind;

    const KINDS: [ImageKind; 4] = [ImageKind::Png, ImageKind::Jpeg, ImageKind::Gif, ImageKind::Webp];

    fn format(kind: ImageKind) -> ImageFormat {
        ImageFormat::from_mime_type(kind.media_type()).unwrap()
    }

    /// A picture that compresses badly.
    fn picture(width: u32, height: u32) -> DynamicImage {
        DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, |x, y| {
            let noise = (x * 7919 + y * 104_729).wrapping_mul(2_654_435_761).to_le_bytes();
            image::Rgb([noise[1], noise[2], noise[3]])
        }))
    }

    fn size(file: &[u8], format: ImageFormat) -> (u32, u32) {
        ImageReader::with_format(Cursor::new(file), format).into_dimensions().unwrap()
    }

    #[test]
    fn each_kind_is_made_small_and_stays_what_it_is() {
        for kind in KINDS {
            let format = format(kind);
            let file = encoded(&picture(90, 30), format).unwrap();
            let small = shrink(&file, format, 45, u64::MAX).unwrap();
            assert_eq!((size(&small, format), image::guess_format(&small).unwrap()), ((45, 15), format));
            assert_eq!(shrink(&file, format, 45, u64::MAX).unwrap(), small);
            // The same picture, but without the file's other data.
            assert_eq!(size(&shrink(&file, format, 90, u64::MAX).unwrap(), format), (90, 30));
            let few = file.len() as u64 / 4;
            let small = shrink(&file, format, u32::MAX, few).unwrap();
            assert!(small.len() as u64 <= few && size(&small, format).0 < 90, "{kind}");
            assert_eq!(shrink(&file, format, u32::MAX, 9), None, "{kind}");
            assert_eq!(shrink(&file, format, 0, u64::MAX), None, "{kind}");
        }
    }

    #[test]
    fn what_is_damaged_is_no_image() {
        for kind in KINDS {
            let format = format(kind);
            let file = encoded(&picture(40, 40), format).unwrap();
            // The upper part of a truncated JPEG can be decoded, and programs show it.
            let half = if kind == ImageKind::Jpeg { 40 } else { file.len() / 2 };
            for end in [0, 1, 8, 20, 33, half] {
                assert_eq!(shrink(&file[..end], format, 20, u64::MAX), None, "{kind} {end}");
            }
        }
    }

    /// Its header claims 60,000 by 60,000 pixels, which would be 10 GB.
    #[test]
    fn a_bomb_is_not_decoded() {
        let mut file = encoded(&picture(8, 8), ImageFormat::Png).unwrap();
        file[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        file[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
        assert_eq!(shrink(&file, ImageFormat::Png, 20, u64::MAX), None);
        let mut file = encoded(&picture(8, 8), ImageFormat::Gif).unwrap();
        file[6..10].copy_from_slice(&[0xff; 4]);
        assert_eq!(shrink(&file, ImageFormat::Gif, 20, u64::MAX), None);
    }

    /// Filtering the whole picture at once gives the same result, except for rounding.
    #[test]
    fn strips_are_not_seen() {
        let whole = picture(5_000, 900);
        let small = made_small(whole.clone(), 2_500).unwrap().into_rgb8();
        let once = whole.resize_exact(2_500, 450, FilterType::Triangle).into_rgb8();
        let far = |(one, two): (&u8, &u8)| one.abs_diff(*two) > 1;
        assert!(!small.iter().zip(once.iter()).any(far));
        assert_eq!(small.dimensions(), once.dimensions());
    }

    #[test]
    fn grey_and_deep_pictures_are_taken() {
        let all = [
            DynamicImage::ImageLuma8(picture(30, 9).into_luma8()),
            DynamicImage::ImageLumaA16(picture(30, 9).into_luma_alpha16()),
            DynamicImage::ImageRgba16(picture(30, 9).into_rgba16()),
        ];
        for picture in all {
            let file = encoded(&picture, ImageFormat::Png).unwrap();
            let small = shrink(&file, ImageFormat::Png, 10, u64::MAX).unwrap();
            assert_eq!(size(&small, ImageFormat::Png), (10, 3));
        }
    }
}
