//! Late lines: those of a leftover that are missing from the transcript, and the text of the transcript with them.

use super::left::{FINISH, Leftover};
use crate::ask::error::Error;
use crate::ask::stop::Stop;
use crate::disk::appends::{END_BYTES, end_hash, ends_line_at, lines_end};
use crate::disk::new_text::{NewText, copy_span, read_up_to, same_bytes};
use crate::platform::FileExt;
use crate::platform::metadata::MetadataExt;
use crate::swap::restore::text_before;
use crate::swap::snapshot::Snapshot;
use crate::vault::{self, Account, Ledger, Vault};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use transcript::{Fault, Source, Span};

/// How much is read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// The part of a leftover that is not in the transcript yet.
pub(super) struct Late<'l> {
    pub(super) leftover: &'l Leftover,
    now: &'l Snapshot,
    /// Complete lines that will be brought over.
    lines: Vec<Span>,
    /// What cannot be brought over, and is kept in the vault instead.
    dropped: Vec<Span>,
    /// Where to go on.
    resume: ResumePoint,
    /// How far the leftover is accounted for once that is done.
    upto: u64,
}

/// Where the part of a leftover that is not accounted for begins, and where in the transcript it belongs.
#[derive(Clone, Copy)]
struct ResumePoint {
    /// How many bytes of the leftover are accounted for.
    known: u64,
    /// Where in the transcript the rest goes.
    at: u64,
    /// How many bytes are there already, from a copy of ours that was interrupted.
    torn: u64,
}

/// Whether the part of an old file that is accounted for has changed since.
enum AccountedPart {
    /// It has not.
    Same,
    /// These lines of it were edited in place.
    Edited(Span),
    /// A program has truncated it at this line, and gone on from there.
    GoesOnFrom(u64),
    /// Nothing here can tell.
    Unknown,
}

impl<'l> Late<'l> {
    /// `free` says that no program has the leftover open for writing.
    pub(super) fn from_leftover(
        leftover: &'l Leftover,
        now: &'l Snapshot,
        vault: &Vault,
        free: bool,
    ) -> io::Result<Self> {
        let resume = leftover.resume(now)?;
        let known = resume.known;
        let mut late = Self { leftover, now, lines: Vec::new(), dropped: Vec::new(), resume, upto: known };
        let (start, lost) = match accounted_part(leftover, known, now, vault)? {
            AccountedPart::Same => (known, None),
            AccountedPart::Edited(span) => (known, Some(span)),
            AccountedPart::GoesOnFrom(line) => (line, None),
            AccountedPart::Unknown => {
                late.resume.torn = 0;
                (leftover.length, Some(Span::new(0, leftover.length)))
            }
        };
        late.dropped.extend(lost.filter(|_| free));
        late.split(start, free)?;
        Ok(late)
    }

    /// Splits the rest into complete lines and lines that the disk has lost, which have zeros in them. The last line may be
    /// incomplete if no program can continue it and it goes to the end of the transcript.
    fn split(&mut self, start: u64, free: bool) -> io::Result<()> {
        let end = self.end();
        if start >= end {
            return Ok(());
        }
        let (mut lines, mut dropped) = (Vec::new(), Vec::new());
        let mut reader = BufReader::with_capacity(PIECE_BYTES, self.bytes_of(Span::new(start, end)));
        let (mut line, mut at, mut zeros) = (start, start, false);
        loop {
            let window = reader.fill_buf()?;
            if window.is_empty() {
                break;
            }
            let found = memchr::memchr(b'\n', window);
            let taken = found.map_or(window.len(), |found| found + 1);
            zeros |= memchr::memchr(0, &window[..taken]).is_some();
            reader.consume(taken);
            at += taken as u64;
            if found.is_some() {
                push(if zeros { &mut dropped } else { &mut lines }, Span::new(line, at));
                (line, zeros) = (at, false);
            }
        }
        let mut upto = line;
        if line < at && free {
            let goes_last = self.resume.at + self.resume.torn >= self.now.bytes();
            push(if zeros || !goes_last { &mut dropped } else { &mut lines }, Span::new(line, at));
            upto = at;
        }
        let length = self.leftover.length;
        let there = dropped.into_iter().map(|span| Span::new(span.start.min(length), span.end.min(length)));
        self.dropped.extend(there.filter(|span| !span.is_empty()));
        (self.lines, self.upto) = (lines, upto);
        Ok(())
    }

    /// Where the text of the leftover ends. If the disk has lost its end, the transcript may still have it.
    fn end(&self) -> u64 {
        let copied = if self.resume.torn > 0 { self.resume.known + self.resume.torn } else { 0 };
        self.leftover.length.max(copied)
    }

    /// Fills the buffer with the text of the leftover. Where the disk has lost bytes of it, they are taken from the copy in
    /// the transcript that was interrupted, if that has them.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        let end = at + buffer.len() as u64;
        let read = read_up_to(&self.leftover.file, buffer, at)?;
        buffer[read..].fill(0);
        let ResumePoint { known, at: to, torn } = self.resume;
        let both = at.max(known)..end.min(known + torn);
        if both.is_empty() {
            return Ok(());
        }
        let mut copy = vec![0; (both.end - both.start) as usize];
        self.now.file.read_exact_at(&mut copy, to + both.start - known)?;
        let lost = buffer[(both.start - at) as usize..].iter_mut().zip(copy).filter(|(byte, _)| **byte == 0);
        lost.for_each(|(byte, copy)| *byte = copy);
        Ok(())
    }

    fn bytes_of(&self, span: Span) -> Bytes<'_> {
        Bytes { late: self, span }
    }

    fn bytes(&self) -> u64 {
        self.lines.iter().map(|span| span.len()).sum()
    }

    /// What the merge removes: from the transcript a copy that was interrupted, and from the leftover what is dropped.
    fn removed(&self) -> Vec<(&File, Span)> {
        let torn = (&*self.now.file, Span::new(self.resume.at, self.resume.at + self.resume.torn));
        [torn].into_iter().chain(self.dropped()).collect()
    }

    fn dropped(&self) -> impl Iterator<Item = (&File, Span)> {
        self.dropped.iter().map(|span| (&self.leftover.file, *span))
    }

    fn dropped_bytes(&self) -> u64 {
        self.dropped.iter().map(|span| span.len()).sum()
    }

    /// Keeps in the vault what cannot be brought over, if there are no lines to insert.
    pub(super) fn keep_dropped(&self, now: &Snapshot, vault: &Vault) -> Result<(), Stop> {
        if self.dropped.is_empty() {
            return Ok(());
        }
        let pending = vault.begin(&now.path)?;
        let (at, bytes) = (now.bytes(), self.dropped_bytes());
        let run = now.read(|source| {
            let edit = vault::MergeEdit { at, length: 0, removed: self.dropped().collect() };
            pending.keep_merge(source, at + bytes, vec![edit], None, Vec::new())
        })?;
        run.landed();
        Ok(())
    }
}

/// A span of the text of a leftover.
struct Bytes<'l> {
    late: &'l Late<'l>,
    span: Span,
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.span.len().min(buffer.len() as u64) as usize;
        self.late.read_at(&mut buffer[..length], self.span.start)?;
        self.span.start += length as u64;
        Ok(length)
    }
}

fn push(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.end == span.start => last.end = span.end,
        _ => spans.push(span),
    }
}

impl Leftover {
    /// Where to go on, given the transcript as it is now.
    fn resume(&self, now: &Snapshot) -> io::Result<ResumePoint> {
        let ledger = &self.ledger;
        let end = lines_end(&now.file, now.bytes())?;
        let is_end = |at| Ok::<_, io::Error>(at <= now.bytes() && ends_line_at(&now.file, at)?);
        // A program that has put a file of its own at the path has usually copied what was there.
        let is_ours = ledger.current == now.metadata.ino();
        if !self.is_old() && ledger.current == self.swap.new.inode {
            // This is the new file, and it was never at the path, or is not any more. From `ledger.at` on, it has copies of
            // the old file's lines, then lines that others appended to it. If the old file is at the path again, those
            // belong before the lines that were appended to the old file since.
            let own = Span::new(ledger.at.min(self.length), self.length);
            if self.swap.old.inode != now.metadata.ino() || !is_end(ledger.known)? {
                let known = (ledger.at + ledger.upto - ledger.known).min(self.length);
                return Ok(ResumePoint { known, at: end, torn: 0 });
            }
            let copied = self.copied(own, now, ledger.known)?;
            return Ok(copied.unwrap_or(ResumePoint { known: own.start, at: ledger.known, torn: 0 }));
        }
        // A file in the vault outlives runs that do not know of it.
        if !is_end(ledger.at)? || (self.is_kept && !is_ours) {
            return Ok(ResumePoint { known: ledger.known, at: end, torn: 0 });
        }
        // A copy was under way. The transcript has all of it, a part or nothing; bytes that the disk has lost are
        // zeros.
        let begun = Span::new(ledger.known, ledger.upto.max(ledger.known));
        let copied = self
            .copied(begun, now, ledger.at)?
            // If the leftover ends before the copy begins, it can add nothing to an incomplete one.
            .filter(|copied| copied.torn == 0 || (is_ours && self.length > begun.start));
        Ok(copied.unwrap_or(ResumePoint { known: begun.start, at: ledger.at, torn: 0 }))
    }

    /// Where to go on if the transcript has a copy of a span of this file at `at`: all of it, or its beginning. Zeros match
    /// anything, on either side, because a disk may return them for bytes that it has lost. `None` if there is no copy.
    fn copied(&self, span: Span, now: &Snapshot, at: u64) -> io::Result<Option<ResumePoint>> {
        let Some(room) = now.bytes().checked_sub(at) else { return Ok(None) };
        let there = span.len().min(room);
        // Another program has appended to the transcript after the incomplete copy, which ends with the last line whose
        // bytes are the same in both.
        let gone_on = |same| {
            let torn = lines_end(&now.file, at + same)?.saturating_sub(at);
            Ok((torn > 0).then_some(ResumePoint { known: span.start, at, torn }))
        };
        let (mut left, mut right) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
        let (mut done, mut same, mut last, mut whole) = (0, 0, 0, there == span.len());
        while done < there {
            let length = (there - done).min(PIECE_BYTES as u64) as usize;
            let (left, right) = (&mut left[..length], &mut right[..length]);
            let read = read_up_to(&self.file, left, span.start + done)?;
            left[read..].fill(0);
            now.file.read_exact_at(right, at + done)?;
            for (n, (one, other)) in left.iter().zip(&*right).enumerate() {
                match (one, other) {
                    (0, _) => {}
                    (_, 0) => whole = false,
                    _ if one == other => same = done + n as u64 + 1,
                    _ => return gone_on(same),
                }
            }
            last = left[length - 1];
            done += length as u64;
        }
        // Zeros match anything, so a line that continues after them is another program's.
        if last == 0 && there < room && !ends_line_at(&now.file, at + there)? {
            return gone_on(same);
        }
        let all = ResumePoint { known: span.end.min(self.length.max(span.start)), at: at + there, torn: 0 };
        Ok(Some(if whole { all } else { ResumePoint { known: span.start, at, torn: there } }))
    }
}

/// Whether the first `known` bytes of a leftover, which are accounted for, have changed since. They are not examined again
/// once a later run has brought lines over.
fn accounted_part(
    leftover: &Leftover,
    known: u64,
    now: &Snapshot,
    vault: &Vault,
) -> io::Result<AccountedPart> {
    if !leftover.is_old() || leftover.is_from_later_run {
        return Ok(AccountedPart::Same);
    }
    let swap = &leftover.swap;
    let caught_up = Span::new(swap.after, swap.after + known.saturating_sub(swap.before));
    let before = (swap.new.inode == now.metadata.ino() && caught_up.end <= now.bytes())
        .then(|| text_before(vault, &leftover.record, now))
        .transpose()?
        .flatten();
    let Some(before) = before else {
        // The old text cannot be restored any more. Only the hash of its last bytes is known.
        let end = Span::new(swap.before.saturating_sub(END_BYTES), swap.before);
        let mut bytes = vec![0; end.len() as usize];
        let there = leftover.length >= known && leftover.file.read_exact_at(&mut bytes, end.start).is_ok();
        let same = there && end_hash(&bytes) == swap.end;
        return Ok(if same { AccountedPart::Same } else { AccountedPart::Unknown });
    };
    copy_span(&now.file, caught_up, &before)?;
    let all = Span::new(0, known.min(leftover.length));
    let same = same_bytes(&leftover.file, all, &before, 0, &|| false)?.unwrap_or(0);
    if same == all.len() {
        return Ok(AccountedPart::Same);
    }
    let line = lines_end(&leftover.file, same)?;
    if leftover.length < known {
        return Ok(AccountedPart::GoesOnFrom(line));
    }
    // An edit in place leaves the lines after it as they were.
    let mut last = known;
    while last > line {
        let start = lines_end(&leftover.file, last - 1)?;
        let piece = Span::new(start, last);
        if same_bytes(&leftover.file, piece, &before, start, &|| false)? != Some(piece.len()) {
            break;
        }
        last = start;
    }
    Ok(if last < known {
        AccountedPart::Edited(Span::new(line, last))
    } else {
        AccountedPart::GoesOnFrom(line)
    })
}

/// The text of the transcript with the late lines inserted.
///
/// Late lines of an old file go after the lines that both files have, and before those that other programs have appended to
/// the new file since. So the lines of each program keep their order, and the last line, from which an agent goes on, stays
/// last.
pub(super) struct MergedText<'a> {
    /// The leftovers that have lines to insert, in the order of their places in the transcript.
    others: Vec<&'a Late<'a>>,
    parts: Vec<MergedPart>,
    length_before: u64,
}

/// Part of the merged text.
#[derive(Clone, Copy)]
enum MergedPart {
    /// A span of the transcript as it is.
    Kept(Span),
    /// A span of the leftover with this number.
    Late(usize, Span),
}

impl MergedPart {
    fn len(&self) -> u64 {
        match self {
            Self::Kept(span) | Self::Late(_, span) => span.len(),
        }
    }
}

impl<'a> MergedText<'a> {
    /// `None` if there are no late lines.
    pub(super) fn new(late: &'a [Late<'a>], now: &Snapshot) -> Option<Self> {
        let mut others: Vec<&Late<'_>> = late.iter().filter(|late| !late.lines.is_empty()).collect();
        if others.is_empty() {
            return None;
        }
        others.sort_by_key(|late| late.resume.at);
        let (mut parts, mut at) = (Vec::new(), 0);
        for (index, late) in others.iter().enumerate() {
            parts.push(MergedPart::Kept(Span::new(at, late.resume.at.max(at))));
            parts.extend(late.lines.iter().map(|span| MergedPart::Late(index, *span)));
            at = at.max(late.resume.at + late.resume.torn);
        }
        parts.push(MergedPart::Kept(Span::new(at, now.bytes())));
        Some(Self { others, parts, length_before: now.bytes() })
    }

    /// How far each leftover is accounted for once this text is at the path, in a file with the inode `current`.
    pub(super) fn accounts(&self, late: &[Late<'_>], current: u64) -> Vec<Account> {
        let account = |late: &Late<'_>| {
            let before = self.others.iter().filter(|other| other.resume.at <= late.resume.at);
            let (come, gone) = before.fold((0, 0), |(come, gone), other| {
                // Lines that are appended to it later go after these.
                (
                    come + other.bytes(),
                    gone + if other.resume.at < late.resume.at { other.resume.torn } else { 0 },
                )
            });
            let at = (late.resume.at + come).saturating_sub(gone);
            let ledger = Ledger { known: late.upto, upto: late.upto, at, current };
            Account { run: late.leftover.record.run.clone(), ledger }
        };
        late.iter().map(account).collect()
    }

    /// Keeps in the vault what this text changes.
    pub(super) fn keep(
        &self,
        pending: vault::Pending,
        accounts: Vec<Account>,
        swap: vault::Swap,
        now: &Snapshot,
    ) -> Result<vault::Run, Stop> {
        let (mut at, mut before, mut edits) = (0, 0, Vec::new());
        for late in &self.others {
            at += late.resume.at.max(before) - before;
            let length = late.bytes();
            edits.push(vault::MergeEdit { at, length, removed: late.removed() });
            at += length;
            before = before.max(late.resume.at + late.resume.torn);
        }
        let dropped: u64 = self.others.iter().map(|late| late.dropped_bytes()).sum();
        let before = self.length_before + dropped;
        let kept =
            pending.keep_merge(&MergedSource { merged: self, now }, before, edits, Some(swap), accounts);
        kept.map_err(|halt| {
            halt.stop(|Fault { at }| {
                Error::new(&now.path, FINISH, io::Error::other(format!("byte {at} cannot be read")))
            })
        })
    }
}

impl NewText for MergedText<'_> {
    fn parts(&self) -> Vec<(u64, Option<Span>)> {
        let kept = |part: &MergedPart| if let MergedPart::Kept(span) = part { Some(*span) } else { None };
        self.parts.iter().map(|part| (part.len(), kept(part))).collect()
    }

    fn write(&self, original: &File, out: &File) -> io::Result<()> {
        for part in &self.parts {
            match part {
                MergedPart::Kept(span) => copy_span(original, *span, out)?,
                MergedPart::Late(index, span) => {
                    io::copy(&mut self.others[*index].bytes_of(*span), &mut { out })?;
                }
            }
        }
        Ok(())
    }
}

/// The merged text, readable at any offset.
struct MergedSource<'a> {
    merged: &'a MergedText<'a>,
    now: &'a Snapshot,
}

impl Source for MergedSource<'_> {
    fn len(&self) -> u64 {
        self.merged.length()
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let (mut start, mut filled) = (0, 0);
        for part in &self.merged.parts {
            let end = start + part.len();
            let from = at + filled as u64;
            if from < end && filled < buffer.len() {
                let length = (end - from).min((buffer.len() - filled) as u64) as usize;
                let room = &mut buffer[filled..filled + length];
                let read = match part {
                    MergedPart::Kept(span) => self.now.file.read_exact_at(room, span.start + from - start),
                    MergedPart::Late(index, span) => {
                        self.merged.others[*index].read_at(room, span.start + from - start)
                    }
                };
                read.map_err(|_| Fault { at: from })?;
                filled += length;
            }
            start = end;
        }
        Ok(filled)
    }
}
