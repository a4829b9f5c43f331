//! Scans or repairs one file or stream.

use crate::ask::deferral::Deferral;
use crate::ask::error::Error;
use crate::ask::outcome::{Ending, Outcome, Unsupported};
use crate::ask::stop::{Halt, Stop};
use crate::base::policies::Policies;
use crate::jobs::carry::{
    Drawn, Next, STORE_TRIES, carry, carry_stored, carry_stream, gone_is_back, knowing,
};
use crate::jobs::find;
use crate::jobs::packed;
use crate::jobs::stored;
use crate::jobs::stored::Stored;
use crate::options::{Mode, Options};
use crate::places::store::{IN_DATABASE, Store, split};
use crate::platform::metadata;
use crate::swap::content::FileContent;
use crate::swap::snapshot::{Snapshot, as_owner};
use crate::vault::PackedTexts;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use transcript::finding::{Fix, Held, Safety};
use transcript::plan::Plan;
use transcript::{Case, Fault, Reading, Rendered, Situation, Source, Span, examine_scanned, mend_scanned};

/// Examines one file, and does with it what the mode says.
///
/// `root` is the folder that the user named, if it was a folder: links that lead out of it are not followed.
///
/// # Errors
///
/// When the file cannot be read or written. Then it is unchanged, unless the error says otherwise.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    maintain_shown(path, root, options, |_, _| Ok(())).map(|(outcome, _)| outcome)
}

/// Examines or repairs a file, and calls `show` with the text as it is and the plan that was drawn for it, before anything is
/// written, and again if the file had to be examined again. Also returns what the last call of `show` returned; that plan is the
/// one of the outcome, if it has one.
///
/// # Errors
///
/// As for [`maintain`].
pub fn maintain_shown<S>(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    show: impl Fn(&dyn Source, &Plan) -> Result<S, Fault>,
) -> Result<(Outcome, Option<S>), Error> {
    let acting = gone_is_back(path, options).and_then(|()| as_owner(path));
    let _acting = match acting {
        Ok(acting) => acting,
        Err(stop) => return Ok((Outcome::from_result(Err(stop))?, None)),
    };
    if find::plain(path).is_some() {
        return Ok((Outcome::from_result(packed::examine_file(path, root, options))?, None));
    }
    if let Some(done) = maintain_stored(path, root, options, &show)? {
        return Ok(done);
    }
    // A session that could not be opened is in a database whose tables are others.
    let file = split(path).map(|(file, _)| file);
    let store = Store::for_path(file.unwrap_or(path)).map(|store| Unsupported::Store(*store));
    if let Some(why) = store.or(file.map(|_| Unsupported::UnknownFormat)) {
        metadata::of_link(file.unwrap_or(path)).map_err(|cause| Error::new(path, Error::OPEN, cause))?;
        return Ok((Outcome::without_look(Ending::Unsupported(why)), None));
    }
    carry(path, root, options, &|content, situation| draw(content, options, situation, &show))
}

/// Examines a stream. Unless the mode is [`Mode::Look`] it is repaired, and the caller writes the result. What is cut out
/// of it is stored if there is a vault.
///
/// # Errors
///
/// When the stream cannot be read, or the originals cannot be kept.
pub fn maintain_stream<S>(
    stream: impl Read,
    options: &Options,
    show: impl Fn(&dyn Source, &Plan) -> Result<S, Fault>,
) -> Result<Stream<S>, Error> {
    let content = FileContent::spool(stream)?;
    // A stream has no writers, and no agent remembers it, so it is treated like a copy.
    let mode = if options.mode == Mode::Look { Mode::Look } else { Mode::CopyTo("-".into()) };
    let options = Options { mode, ..options.clone() };
    let (outcome, shown) =
        carry_stream(&content, &options, &|content, situation| draw(content, &options, situation, &show))?;
    Ok(Stream { content, outcome, shown })
}

/// A stream that was examined, and perhaps repaired.
pub struct Stream<S> {
    content: FileContent,
    /// What was done.
    pub outcome: Outcome,
    /// What `show` returned; `None` if there was no plan.
    pub shown: Option<S>,
}

impl<S> Stream<S> {
    /// Writes the text, repaired if it was.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let (mut out, mut done) = (BufWriter::new(out), Ok(()));
        let written = self.content.read(|source| {
            let unchanged = Plan::unchanged(source.len());
            let plan = &self.outcome.plan;
            let text = Rendered::new(source, if plan.is_empty() { &unchanged } else { plan });
            text.pieces(Span::new(0, text.len()), &mut |bytes| {
                done = out.write_all(bytes);
                done.is_ok()
            })
        });
        written.map_err(|stop| io::Error::other(stop.to_string()))?;
        done.and_then(|()| out.flush())
    }
}

/// Opens one file and lets `work` read it.
///
/// `root` is as for [`maintain`].
///
/// # Errors
///
/// When the file cannot be read, or is refused.
pub fn read<T, E: Into<Halt>>(
    path: &Path,
    root: Option<&Path>,
    work: impl FnOnce(&dyn Source) -> Result<T, E>,
) -> Result<T, Stop> {
    let acting = as_owner(path)?;
    if let Some(content) = stored::text(path, root)? {
        drop(acting);
        return content.read(work);
    }
    let snapshot = Snapshot::open(path, root)?;
    // What is open can be read as whoever we are; the work is the caller's.
    drop(acting);
    snapshot.read(work)
}

/// Opens one file, reads it whole, and lets `work` ask of it by the policy for it.
///
/// # Errors
///
/// As for [`read`].
pub fn read_to_examine<T, E: Into<Halt>>(
    path: &Path,
    root: Option<&Path>,
    policies: &Policies,
    situation: &Situation,
    work: impl FnOnce(&Reading<'_>, Case<'_>) -> Result<T, E>,
) -> Result<T, Stop> {
    let acting = as_owner(path)?;
    if let Some(stored) = stored::open(path, root)? {
        drop(acting);
        let situation = &knowing(situation, &stored);
        return stored
            .content
            .read_whole(policies, |reading, policy| work(reading, Case { policy, situation }));
    }
    let snapshot = Snapshot::open(path, root)?;
    drop(acting);
    snapshot.read_whole(policies, |reading, policy| work(reading, Case { policy, situation }))
}

/// `None` if the path stands for no session in a store.
fn maintain_stored<S>(
    path: &Path,
    root: Option<&Path>,
    options: &Options,
    show: &dyn Fn(&dyn Source, &Plan) -> Result<S, Fault>,
) -> Result<Option<(Outcome, Option<S>)>, Error> {
    let mut last = None;
    for _ in 0..STORE_TRIES {
        let stored = match stored::open_to_scan(path, root) {
            Ok(None) => return Ok(None),
            Ok(Some(stored)) => stored,
            Err(stop) => return Ok(Some((Outcome::from_result(Err(stop))?, None))),
        };
        let copies = matches!(options.mode, Mode::CopyTo(_));
        let done = match stored.only().filter(|_| !copies) {
            None => (Outcome::from_result(look_at_stored(&stored, options))?, None),
            Some(only) => carry_stored(&stored, only, options, &|content, situation| {
                draw(content, options, situation, show)
            })?,
        };
        let is_late = done.0.ending == Ending::Deferred(Deferral::Changed);
        last = Some(done);
        if !is_late {
            break;
        }
    }
    Ok(last)
}

/// Looks at a session in a store. Whatever the mode, it stays as it is.
fn look_at_stored(stored: &Stored, options: &Options) -> Result<Outcome, Stop> {
    let (content, situation) = (&stored.content, &knowing(&options.situation, stored));
    let mut found = content.scan(&options.policy, |read, source, policy| {
        examine_scanned(read, source, Case { policy, situation })
    })?;
    found.bytes_after = found.facts.bytes;
    for finding in &mut found.findings {
        if let Safety::Safe | Safety::Guarded(_) = finding.fix.safety {
            finding.fix = Fix::held(Held::ReadOnly(IN_DATABASE));
        }
    }
    let mut outcome = Outcome::looked(found, content.bytes());
    if options.mode != Mode::Look && outcome.ending == Ending::Findings {
        let why = stored.hindrance().map(Ending::Refused);
        outcome.ending = why.unwrap_or(Ending::Unsupported(Unsupported::Stored));
    }
    Ok(outcome)
}

/// Examines a file or, unless the mode is [`Mode::Look`], draws a repair and shows it.
fn draw<S>(
    content: &FileContent,
    options: &Options,
    situation: &Situation,
    show: &dyn Fn(&dyn Source, &Plan) -> Result<S, Fault>,
) -> Result<Drawn<S>, Stop> {
    if options.mode == Mode::Look {
        let before = content.scan(&options.policy, |read, source, policy| {
            examine_scanned(read, source, Case { policy, situation })
        })?;
        return Ok(Drawn { before, next: Next::Leave, seen: None });
    }
    let drawn = draw_repair(content, options, situation)?;
    let seen = match &drawn.next {
        Next::Change(job) => Some(content.read(|source| show(source, &job.repair.plan))?),
        _ => None,
    };
    Ok(Drawn { seen, ..drawn })
}

/// Draws the plan that repairs a file. If the vault `keeps` what it removes, another thread compresses that while the plan is
/// checked; nothing is written yet.
fn draw_repair<T>(content: &FileContent, options: &Options, situation: &Situation) -> Result<Drawn<T>, Stop> {
    let keeps = options.mode == Mode::Fix;
    let checked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut packing = None;
        let mended = content.scan(&options.policy, |read, source, policy| {
            mend_scanned(read, source, Case { policy, situation }, &mut |plan| {
                if keeps && PackedTexts::is_worth_it(plan.texts()) {
                    let texts = plan.texts().to_vec();
                    let pack =
                        || content.read(|source| Ok::<_, Fault>(PackedTexts::ahead(source, texts, &checked)));
                    packing = Builder::new().spawn_scoped(scope, pack).ok();
                }
            })
        });
        checked.store(true, Ordering::Relaxed);
        let packed = packing.and_then(|packing| packing.join().ok()?.ok()).unwrap_or_default();
        let mut drawn = Drawn::mended(mended?);
        if let Next::Change(job) = &mut drawn.next {
            job.packed = packed;
        }
        Ok(drawn)
    })
}
