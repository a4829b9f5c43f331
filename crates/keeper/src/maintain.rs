//! A file, or a stream, scanned or mended.

use crate::carry::{Drawn, Next, carry, carry_stream};
use crate::content::Content;
use crate::error::Error;
use crate::options::{Mode, Options};
use crate::outcome::Outcome;
use crate::policies::Policies;
use crate::snapshot::Snapshot;
use crate::stop::Stop;
use crate::vault::Packed;
use crate::{find, packed};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use transcript::plan::Plan;
use transcript::{Fault, Rendered, Source, Span, examine, mend_while};

/// Looks at one file and does with it what the mode says.
///
/// `root` is the folder that was asked for, if it was a folder: links that lead out of it are not followed.
///
/// # Errors
///
/// When the file cannot be read or written. Then it is as it was, unless the error says otherwise.
pub fn maintain(path: &Path, root: Option<&Path>, options: &Options) -> Result<Outcome, Error> {
    maintain_shown(path, root, options, |_, _| Ok(())).map(|(outcome, _)| outcome)
}

/// The same. `show` is shown the text as it is together with the plan that was drawn for it, before anything is written;
/// once more if the file had to be looked at again. Gives what it made of the last one, which is the plan of the outcome if
/// that has one.
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
    if find::plain(path).is_some() {
        return Ok((Outcome::of(packed::look(path, root, options))?, None));
    }
    carry(path, root, options, &|content, policies| draw(content, policies, &options.mode, &show))
}

/// The same for a stream. It is mended unless it is only to be looked at, and then whoever calls writes it. What is cut out
/// of it is kept if there is a vault.
///
/// # Errors
///
/// When the stream cannot be read, or the originals cannot be kept.
pub fn maintain_stream<S>(
    stream: impl Read,
    options: &Options,
    show: impl Fn(&dyn Source, &Plan) -> Result<S, Fault>,
) -> Result<Stream<S>, Error> {
    let content = Content::spool(stream)?;
    // Nobody appends to it, and no agent remembers it.
    let mode = if options.mode == Mode::Look { Mode::Look } else { Mode::CopyTo("-".into()) };
    let options = Options { mode, ..options.clone() };
    let (outcome, shown) =
        carry_stream(&content, &options, &|content, policies| draw(content, policies, &options.mode, &show))?;
    Ok(Stream { content, outcome, shown })
}

/// A stream that was looked at, or mended.
pub struct Stream<S> {
    content: Content,
    /// What was done.
    pub outcome: Outcome,
    /// What was made of the plan; `None` if there was none.
    pub shown: Option<S>,
}

impl<S> Stream<S> {
    /// Writes the text as it is now.
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

/// Lets `work` read one file as it is now.
///
/// `root` is as for [`maintain`].
///
/// # Errors
///
/// When the file cannot be read, or what stands at the path is refused.
pub fn read<T>(
    path: &Path,
    root: Option<&Path>,
    work: impl FnOnce(&dyn Source) -> Result<T, Fault>,
) -> Result<T, Stop> {
    Snapshot::open(path, root)?.read(work)
}

/// Looks, or draws a repair and shows it.
fn draw<S>(
    content: &Content,
    policies: &Policies,
    mode: &Mode,
    show: &dyn Fn(&dyn Source, &Plan) -> Result<S, Fault>,
) -> Result<Drawn<S>, Stop> {
    if *mode == Mode::Look {
        let before = content.read(|source| examine(source, policies.choose(source)?))?;
        return Ok(Drawn { before, next: Next::Leave, told: None });
    }
    let drawn = draw_repair(content, policies, *mode == Mode::Fix)?;
    let told = match &drawn.next {
        Next::Change(job) => Some(content.read(|source| show(source, &job.repair.plan))?),
        _ => None,
    };
    Ok(Drawn { told, ..drawn })
}

/// The plan that mends a file. What it takes out and the vault `keeps` is compressed by another processor while the plan
/// is checked; nothing is written yet.
fn draw_repair<T>(content: &Content, policies: &Policies, keeps: bool) -> Result<Drawn<T>, Stop> {
    let checked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut packing = None;
        let mended = content.read(|source| {
            mend_while(source, policies.choose(source)?, &mut |plan| {
                if keeps && Packed::is_worth_it(plan.texts()) {
                    let texts = plan.texts().to_vec();
                    let pack =
                        || content.read(|source| Ok::<_, Fault>(Packed::ahead(source, texts, &checked)));
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
