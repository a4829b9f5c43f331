//! Transcripts that their agent has compressed (`.jsonl.zst`, Codex after a week): read, and never changed.
//!
//! The agent unpacks such a file before it goes on with it, and looks for the plain one first, so a plain one beside it
//! is the transcript and this one is not looked at.

use crate::ask::error::Error;
use crate::ask::outcome::{Ending, Outcome};
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::options::{Mode, Options};
use crate::swap::content::FileContent;
use crate::swap::snapshot::Snapshot;
use std::io::{self, Read};
use std::path::Path;
use transcript::examine;

/// More than this is not unpacked: a file of some megabytes can say that it holds anything.
const UNPACKED_BYTES_MAX: u64 = 16 << 30;

/// Looks at a compressed transcript. Whatever the mode, it stays as it is.
pub(crate) fn examine_file(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Stop> {
    const VERB: &str = "unpack the file";
    let snapshot = Snapshot::open(path, root)?;
    let decoder = zstd::Decoder::new(&*snapshot.file).map_err(|cause| Error::new(path, VERB, cause))?;
    let stream = Limited { inside: decoder, left: UNPACKED_BYTES_MAX };
    let content = FileContent::spool_as(path, VERB, stream)?;
    let found = content.read(|source| examine(source, options.case(source)?))?;
    let saves = found.bytes_after != found.facts.bytes;
    let mut outcome = Outcome::looked(found, snapshot.bytes());
    if saves && options.mode != Mode::Look && outcome.ending == Ending::Findings {
        outcome.ending = Ending::Refused(Refusal::Compressed);
    }
    Ok(outcome)
}

/// A stream that fails rather than give more than it may.
struct Limited<R> {
    inside: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inside.read(buffer)?;
        self.left =
            self.left.checked_sub(got as u64).ok_or_else(|| io::Error::other("it holds more than 16 GiB"))?;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use crate::maintain;
    use transcript::Policy;

    const LOST: &str = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{}"}}]}"#,
        "\n",
        r#"{"role":"tool","tool_call_id":"x","content":"whose?"}"#,
        "\n",
        r#"{"role":"user","content":"go on"}"#,
    );

    fn options(mode: Mode) -> Options {
        let mut policy = Policy::default();
        policy.selection.allow = vec!["P2".into()];
        Options { policy: policy.into(), mode, ..Options::default() }
    }

    #[test]
    fn is_read_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl.zst");
        let packed = zstd::encode_all(LOST.as_bytes(), 3).unwrap();
        std::fs::write(&path, &packed).unwrap();
        let looked = maintain(&path, None, &options(Mode::Look)).unwrap();
        let found = looked.before.unwrap();
        assert_eq!((looked.ending, found.facts.entries), (Ending::Findings, 3));
        let mended = maintain(&path, None, &options(Mode::Fix)).unwrap();
        assert_eq!(mended.ending, Ending::Refused(Refusal::Compressed));
        assert_eq!(std::fs::read(&path).unwrap(), packed);
    }

    #[test]
    fn the_plain_one_beside_it_is_the_transcript() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("s.jsonl.zst"), "").unwrap();
        let names = || find(&[dir.path()]).into_iter().map(|found| found.unwrap().path).collect::<Vec<_>>();
        assert_eq!(names(), [dir.path().join("s.jsonl.zst")]);
        std::fs::write(dir.path().join("s.jsonl"), "").unwrap();
        assert_eq!(names(), [dir.path().join("s.jsonl")]);
    }

    #[test]
    fn what_is_not_compressed_is_an_error_and_a_stream_has_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl.zst");
        std::fs::write(&path, LOST).unwrap();
        let error = maintain(&path, None, &options(Mode::Look)).err().unwrap().to_string();
        assert!(error.contains("could not unpack the file"), "{error}");
        let mut limited = Limited { inside: &b"12345"[..], left: 4 };
        assert!(io::copy(&mut limited, &mut io::sink()).is_err());
    }
}
