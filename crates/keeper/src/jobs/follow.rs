//! A file that was looked at before: what was appended to it is judged alone, as long as that is enough.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::outcome::{Ending, Outcome};
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::jobs::carry::{Drawn, Next, carry, sealed};
use crate::jobs::leave::{may_be_remembered, may_write};
use crate::jobs::maintain::maintain;
use crate::options::{Mode, Options};
use crate::platform::identity::Stamp;
use crate::platform::metadata;
use crate::swap::content::FileContent;
use crate::swap::snapshot::{Snapshot, as_owner};
use std::path::Path;
use std::sync::Arc;
use transcript::judge::{Judge, Judgement};
use transcript::overflow::Failure;
use transcript::{Digest, Facts, Situation};

/// What is remembered of a file that was looked at. Holds nothing of its text.
pub struct Remembered {
    judge: Judge,
    file: Stamp,
    /// Something could be mended and was not, and the reason may be gone by now.
    pending: bool,
    /// What could be mended waits for an agent that may remember it.
    memory_waits: bool,
    /// How long it is when it is worth another look, although nothing new was found: its context has grown as well.
    again_bytes: Option<u64>,
}

/// A look at a shorter file costs less than remembering it is worth.
const BYTES_MIN: u64 = 64 << 10;

/// A file that waits to be worth a rewrite is not looked at again before it has grown by this much, or an eighth.
const AGAIN_BYTES_MIN: u64 = 64 << 10;

/// What an append changes.
enum AppendOutcome {
    /// Nothing.
    Same,
    /// Nothing, and what was wrong before still cannot be repaired.
    Ends(Ending),
    /// Only a look can tell.
    Unknown,
}

impl Remembered {
    /// `None` if later appends cannot be judged by it.
    pub(crate) fn new(judge: Judge, file: Stamp, pending: bool) -> Option<Self> {
        judge.is_of_use().then_some(Self { judge, file, pending, memory_waits: false, again_bytes: None })
    }

    /// What the index holds about a file in which nothing could be mended; `facts` are those of the last look.
    pub(crate) fn restored(judge: Judge, facts: &Facts, file: Stamp, options: &Options) -> Option<Self> {
        Self::new(judge.restored(options.policy.for_format(facts.format), facts), file, false)
    }

    /// What later appends are judged by; `None` if it is not worth storing.
    pub(crate) fn judge_of(&self, file: Stamp) -> Option<&Judge> {
        let is_all = self.file == file && self.bytes() == file.bytes && !self.pending;
        (is_all && self.is_worth_it() && self.judge.counted().is_some()).then_some(&self.judge)
    }

    /// The digest of a look at the file as it is now, derived from the one before the append; `None` if it has to be examined.
    pub(crate) fn grown_digest<'a>(&self, before: Digest<'a>) -> Option<Digest<'a>> {
        Some(before.grown(*self.judge.facts(), self.judge.counted()?))
    }

    /// Whether the file is so long that it is worth remembering.
    pub fn is_worth_it(&self) -> bool {
        self.bytes() >= BYTES_MIN
    }

    /// What was found is not worth a rewrite yet.
    fn waiting(self) -> Self {
        let bytes = self.bytes();
        Self { again_bytes: Some(bytes + (bytes / 8).max(AGAIN_BYTES_MIN)), ..self }
    }

    /// How long the file was, up to the end of its last line.
    pub fn bytes(&self) -> u64 {
        self.judge.facts().bytes
    }

    /// How the last turn in it failed.
    pub fn failed(&self) -> Option<Failure> {
        self.judge.facts().failed
    }

    /// How much memory this takes, about, in bytes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.judge.weight()
    }

    fn judge(&mut self, path: &Path, root: Option<&Path>, options: &Options) -> Result<AppendOutcome, Stop> {
        if !Arc::ptr_eq(self.judge.policy(), options.policy.for_format(self.judge.facts().format)) {
            return Ok(AppendOutcome::Unknown);
        }
        let snapshot = match Snapshot::open(path, root) {
            Err(Stop::Refused(_)) => return Ok(AppendOutcome::Unknown),
            other => other?,
        };
        let (before, now) = (self.file, Stamp::from_metadata(&snapshot.metadata));
        // Who writes without making it longer has changed what was there, also if its time was put back.
        if before.file != now.file || (snapshot.bytes() <= before.bytes && before != now) {
            return Ok(AppendOutcome::Unknown);
        }
        // What has begun and is not whole yet would be torn by now.
        if snapshot.read(|source| self.judge.append(source))? != Judgement::Same {
            return Ok(AppendOutcome::Unknown);
        }
        self.file = now;
        if self.again_bytes.is_some_and(|again| snapshot.bytes() >= again) {
            return Ok(AppendOutcome::Unknown);
        }
        if options.mode != Mode::Fix || !self.pending {
            return Ok(AppendOutcome::Same);
        }
        let facts = self.judge.facts();
        let closed = may_write(&snapshot, facts, options, &[]).err().map(Ending::from_stop).transpose()?;
        let remembered = if self.memory_waits { may_be_remembered(&snapshot, facts, options) } else { None };
        Ok(remembered.map(Ending::Deferred).or(closed).map_or(AppendOutcome::Unknown, AppendOutcome::Ends))
    }
}

/// As [`crate::maintain`], with what is remembered from the last time, and to be remembered for the next: of what was
/// looked at before, only the end is read again, if that is enough. `None` if what was appended changes nothing.
///
/// # Errors
///
/// As for [`crate::maintain`].
pub fn follow(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    remembered: &mut Option<Remembered>,
) -> Result<Option<Outcome>, Error> {
    if sealed(path).is_some() {
        return maintain(path, root, options).map(Some);
    }
    let _acting = match as_owner(path) {
        Ok(acting) => acting,
        Err(stop) => return Outcome::from_result(Err(stop)).map(Some),
    };
    if let Some(mut known) = remembered.take() {
        let judged = known.judge(path, root, options);
        match judged.or_else(|stop| Ending::from_stop(stop).map(AppendOutcome::Ends))? {
            AppendOutcome::Unknown => {}
            AppendOutcome::Same => {
                *remembered = Some(known);
                return Ok(None);
            }
            AppendOutcome::Ends(ending) => {
                *remembered = Some(known);
                return Ok(Some(Outcome::without_look(ending)));
            }
        }
    }
    let (outcome, seen) =
        carry(path, root, options, &|content, situation| draw(content, options, situation))?;
    *remembered = seen.and_then(|seen| seen.after(path, &outcome));
    Ok(Some(outcome))
}

/// What was seen of a file: what it was, and what could be remembered of it before and after a repair.
struct FollowedFile {
    file: Stamp,
    before: Judge,
    after: Option<Judge>,
}

fn draw(
    content: &FileContent,
    options: &Options,
    situation: &Situation,
) -> Result<Drawn<FollowedFile>, Stop> {
    let file = Stamp::from_metadata(&content.metadata);
    if options.mode != Mode::Fix {
        let (judge, before) = content.scan(&options.policy, |read, source, policy| {
            Judge::new_scanned(read, source, policy, situation)
        })?;
        return Ok(Drawn {
            before,
            next: Next::Leave,
            seen: Some(FollowedFile { file, before: judge, after: None }),
        });
    }
    let (mended, before, after) = content
        .scan(&options.policy, |read, source, policy| Judge::mend_scanned(read, source, policy, situation))?;
    // Only a look at which nothing was held for the moment can be built upon.
    let seen = (!situation.hold_remembered).then_some(FollowedFile { file, before, after });
    Ok(Drawn { seen, ..Drawn::mended(mended) })
}

impl FollowedFile {
    fn after(self, path: &Path, outcome: &Outcome) -> Option<Remembered> {
        let Self { file, before, after } = self;
        match &outcome.ending {
            Ending::Fixed => {
                let now = metadata::at(path).ok();
                after
                    .zip(now)
                    .and_then(|(judge, now)| Remembered::new(judge, Stamp::from_metadata(&now), false))
            }
            // A repair that would do harm may do none when more has come.
            Ending::Refused(Refusal::Worse(_)) => None,
            Ending::Deferred(Deferral::NotWorth { .. }) => {
                Remembered::new(before, file, false).map(Remembered::waiting)
            }
            ending => {
                let pending = matches!(ending, Ending::Deferred(_) | Ending::Refused(_));
                let memory_waits = matches!(
                    ending,
                    Ending::Deferred(Deferral::Remembered { .. } | Deferral::MayRemember { .. })
                );
                Remembered::new(before, file, pending).map(|known| Remembered { memory_waits, ..known })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vault;
    use crate::bytes_read;
    use crate::spawned::NO_FORKS;
    use std::fs::File;
    use std::io::Write;
    use std::time::Duration;
    use transcript::Policy;
    use transcript::policy::Selection;

    fn append(path: &Path, text: &str) {
        File::options().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn call(id: usize) -> String {
        format!(
            r#"{{"role":"assistant","tool_calls":[{{"id":"{id}","function":{{"name":"ls","arguments":"{{}}"}}}}]}}"#
        ) + "\n"
    }

    fn result(id: usize, chars: usize) -> String {
        let text = "x".repeat(chars);
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#) + "\n"
    }

    /// Appends of all kinds, with what is remembered and without: the same comes of it, and of a long file that is well
    /// only the end is read.
    #[test]
    fn a_file_that_is_followed_ends_like_one_that_is_looked_at() {
        let _forks = NO_FORKS.read();
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("followed.jsonl"), dir.path().join("looked-at.jsonl"));
        // Nobody asks here.
        let selection = Selection { ignore: vec!["M8".into()], ..Selection::default() };
        let policy = Policy { result_chars_max: 1_000, selection, ..Policy::default() };
        let vault = Some(Vault::new(dir.path().join("vault")));
        let options = Options { policy: policy.into(), mode: Mode::Fix, vault, ..Options::default() };
        let mut remembered = None;
        let (mut same, mut fixed) = (0, 0);
        for n in 0..400 {
            for path in [&one, &other] {
                append(path, &(call(n) + &result(n, if n % 50 == 30 { 5_000 } else { 900 })));
            }
            let before = bytes_read();
            let followed = follow(&one, None, &options, &mut remembered).unwrap();
            let read = bytes_read() - before;
            let looked = crate::maintain(&other, None, &options).unwrap();
            let Some(followed) = followed else {
                same += 1;
                assert!(read < 40_000, "{read} bytes of {}", looked.bytes);
                assert_eq!(looked.ending, Ending::Clean);
                continue;
            };
            fixed += usize::from(followed.ending == Ending::Fixed);
            assert_eq!((followed.ending, followed.bytes_after), (looked.ending, looked.bytes_after));
        }
        // The first look, and each repair; what came of a repair is remembered too.
        assert_eq!((same, fixed), (391, 8));
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&other).unwrap());
        // Written anew in place, with the same length, where nobody looks for an append.
        let mut text = std::fs::read(&one).unwrap();
        let middle = text.len() / 2;
        text[middle] ^= 1;
        std::fs::write(&one, text).unwrap();
        assert!(follow(&one, None, &options, &mut remembered).unwrap().is_some());
    }

    #[test]
    fn what_cannot_be_mended_yet_costs_no_look() {
        let _forks = NO_FORKS.read();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        append(&path, &(call(0) + &result(0, 50_000)));
        append(&path, &(1..300).map(|n| call(n) + &result(n, 900)).collect::<String>());
        let hour = Duration::from_secs(3_600);
        let vault = Some(Vault::new(dir.path().join("vault")));
        let mut options = Options { mode: Mode::Fix, settle: hour, vault, ..Options::default() };
        let mut remembered = None;
        let first = follow(&path, None, &options, &mut remembered).unwrap().unwrap();
        assert!(matches!(first.ending, Ending::Deferred(_)) && first.before.is_some());
        append(&path, &(call(300) + &result(300, 900)));
        let before = bytes_read();
        let second = follow(&path, None, &options, &mut remembered).unwrap().unwrap();
        assert!(matches!(second.ending, Ending::Deferred(_)) && second.before.is_none());
        assert!(bytes_read() - before < 40_000);
        options.settle = Duration::ZERO;
        let third = follow(&path, None, &options, &mut remembered).unwrap().unwrap();
        assert_eq!(third.ending, Ending::Fixed);
    }
}
