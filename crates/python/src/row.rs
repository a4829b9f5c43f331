//! What is done with the rows of a batch. Nothing that a row holds ends more than that row.

use crate::column::{ColumnCell, SessionRows};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use transcript::finding::Safety;
use transcript::row::{self, RepairedRow, RowOutcome};
use transcript::{Finding, Policy};

/// How many rows a thread takes at a time.
const BLOCK_ROWS: usize = 64;

/// Does `work` for each of so many rows, on so many threads; in order. `lost` stands for a row whose work panicked.
pub(crate) fn each<T: Send>(
    (rows, count): (&SessionRows, usize),
    threads: usize,
    work: &(dyn Fn(&SessionRows, usize) -> T + Sync),
    lost: fn(String) -> T,
) -> Vec<T> {
    let one = |rows: &SessionRows, row| {
        catch_unwind(AssertUnwindSafe(|| work(rows, row)))
            .unwrap_or_else(|_| lost("an error in session_tailor itself; please report it".to_string()))
    };
    let all = |block: usize| {
        let (from, to) = (block * BLOCK_ROWS, ((block + 1) * BLOCK_ROWS).min(count));
        let written = catch_unwind(AssertUnwindSafe(|| rows.written(from, to))).ok().flatten();
        let rows = written.as_ref().unwrap_or(rows);
        (from..to).map(|row| one(rows, row)).collect::<Vec<T>>()
    };
    let blocks = count.div_ceil(BLOCK_ROWS);
    let threads = threads.clamp(1, blocks.max(1));
    if threads == 1 {
        return (0..blocks).flat_map(all).collect();
    }
    let (next, (send, done)) = (AtomicUsize::new(0), mpsc::channel());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (send, next, all) = (send.clone(), &next, &all);
            scope.spawn(move || {
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    if block >= blocks || send.send((block, all(block))).is_err() {
                        return;
                    }
                }
            });
        }
    });
    drop(send);
    let mut blocks: Vec<(usize, Vec<T>)> = done.into_iter().collect();
    blocks.sort_by_key(|(block, _)| *block);
    blocks.into_iter().flat_map(|(_, rows)| rows).collect()
}

/// The text of a row; an error says why there is none.
pub(crate) fn text(rows: &SessionRows, row: usize) -> Result<Cow<'_, [u8]>, String> {
    match rows.get(row) {
        ColumnCell::Text(bytes) => Ok(bytes),
        ColumnCell::Unreadable(why) => Err(why),
    }
}

/// What is wrong with a row; an error says why that is not known.
pub(crate) fn check(
    rows: &SessionRows,
    row: usize,
    policy: &Policy,
) -> Result<Vec<(Finding, String)>, String> {
    let text = text(rows, row)?;
    let done = row::check(&text, policy);
    match done.reason {
        Some(why) if done.findings.is_empty() => Err(why),
        _ => Ok(done.findings.into_iter().map(|found| place(found, &text)).collect()),
    }
}

/// A finding, and its place in a row of data.
fn place(finding: Finding, text: &[u8]) -> (Finding, String) {
    let place = row::place(&finding, text);
    (finding, place)
}

/// Repairs a row of a batch. `refuses` says why a text cannot stand in it.
pub(crate) fn repair(
    rows: &SessionRows,
    row: usize,
    policy: &Policy,
    refuses: &dyn Fn(&[u8]) -> Option<String>,
) -> RepairedRow {
    let done = text(rows, row).map_or_else(unreadable, |text| row::repair(&text, policy));
    match done.text.as_deref().and_then(refuses) {
        Some(why) => RepairedRow::left(RowOutcome::Refused, Some(why), Vec::new()),
        None => done,
    }
}

/// A row that could not be read, for this reason.
pub(crate) fn unreadable(why: String) -> RepairedRow {
    RepairedRow::left(RowOutcome::Unreadable, Some(why), Vec::new())
}

/// The word that the program prints for a fix.
pub(crate) fn fix_name(finding: &Finding) -> &'static str {
    match finding.fix.safety {
        Safety::Safe => "safe",
        Safety::Guarded(_) => "guarded",
        Safety::Held(_) => "held",
        Safety::None => "none",
    }
}
