//! Streams that are compressed with zstd or gzip, or not at all.

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::Path;

/// The default of the `zstd` program; higher levels are slower and hardly smaller.
const ZSTD_LEVEL: i32 = 3;

/// How a stream is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Zstd,
    Gzip,
}

impl Packing {
    /// As the name of a file says.
    pub(crate) fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::Plain,
        }
    }

    /// Decompresses a stream, whose first bytes say how it is compressed.
    pub(crate) fn unpack<'r>(mut stream: impl Read + 'r) -> io::Result<(Self, Box<dyn Read + 'r>)> {
        let mut first = Vec::new();
        stream.by_ref().take(4).read_to_end(&mut first)?;
        let packing = match first[..] {
            [0x28, 0xb5, 0x2f, 0xfd] => Self::Zstd,
            [0x1f, 0x8b, ..] => Self::Gzip,
            _ => Self::Plain,
        };
        let stream = BufReader::with_capacity(1 << 16, Cursor::new(first).chain(stream));
        Ok((
            packing,
            match packing {
                Self::Plain => Box::new(stream),
                Self::Zstd => Box::new(zstd::Decoder::with_buffer(stream)?),
                Self::Gzip => Box::new(MultiGzDecoder::new(stream)),
            },
        ))
    }

    /// Compresses what is written to `out`.
    pub(crate) fn pack<W: Write>(self, out: W) -> io::Result<PackedStream<W>> {
        Ok(match self {
            Self::Plain => PackedStream::Plain(out),
            Self::Zstd => PackedStream::Zstd(zstd::Encoder::new(out, ZSTD_LEVEL)?),
            Self::Gzip => PackedStream::Gzip(GzEncoder::new(out, Compression::default())),
        })
    }
}

/// A stream that is compressed while it is written.
pub(crate) enum PackedStream<W: Write> {
    Plain(W),
    Zstd(zstd::Encoder<'static, W>),
    Gzip(GzEncoder<W>),
}

impl<W: Write> PackedStream<W> {
    /// Finishes the stream; without this it could not be decompressed.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Zstd(out) => out.finish(),
            Self::Gzip(out) => out.finish(),
        }
    }
}

impl<W: Write> Write for PackedStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
        }
    }
}
