//! Uses as many threads as the machine has processors, or as limits allow; one is enough. Where threads are limited
//! (`ulimit -u`, control groups, memory), rayon's own pool would end the program.

use rayon::ThreadPoolBuilder;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, available_parallelism};

/// Sets up the pool with the requested threads, or as many of them as there are. Without a pool the calling thread does all the work.
pub(crate) fn prepare(jobs: Option<NonZeroUsize>) -> Result<(), String> {
    let wanted = jobs.or_else(|| available_parallelism().ok()).map_or(1, usize::from);
    let pool = match wanted.min(to_be_had(wanted)) {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread(),
        threads => ThreadPoolBuilder::new().num_threads(threads),
    };
    pool.build_global()
        .map_err(|error| format!("no thread can be started (see ulimit -u, ulimit -v): {error}"))
}

/// How many threads the words of the command line ask for. That is read before anything else: to find a session by its id in
/// another user's database, threads are needed while the rest is read.
pub(crate) fn asked(words: impl IntoIterator<Item = OsString>) -> Option<NonZeroUsize> {
    let mut words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next().filter(|word| word != "--") {
        // Other short options may stand before it: -qj4.
        let option = word.starts_with('-').then(|| word.trim_start_matches(['-', 'q', 'v']));
        let count =
            option.and_then(|option| option.strip_prefix("jobs").or_else(|| option.strip_prefix('j')));
        let count = match count {
            Some("") => words.next(),
            count => count.map(|count| count.trim_start_matches('=').to_string()),
        };
        if let Some(Ok(count)) = count.map(|count| count.parse()) {
            return Some(count);
        }
    }
    None
}

/// How many threads can run at a time. A pool that cannot start all of its threads cannot be made smaller afterwards.
fn to_be_had(wanted: usize) -> usize {
    let start = |_| {
        let (stay, end) = channel::<()>();
        // The thread ends when `stay` is dropped.
        let thread = Builder::new().spawn(move || end.recv().is_err()).ok()?;
        Some((stay, thread))
    };
    let started: Vec<(Sender<()>, _)> = (0..wanted).map_while(start).collect();
    // Other threads are started beside the pool, so some room is left for them.
    let threads = if started.len() < wanted { started.len() / 2 } else { wanted };
    for (stay, thread) in started {
        drop(stay);
        let _ = thread.join();
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::asked;
    use std::ffi::OsString;

    #[test]
    fn the_number_of_threads_is_found_wherever_it_stands() {
        let found = |line: &str| asked(line.split(' ').map(OsString::from)).map_or(0, usize::from);
        for line in
            ["scan -j 3 x", "-j3 scan", "scan x --jobs=3", "--jobs 3", "scan -qj3 x", "scan --json -j=3"]
        {
            assert_eq!(found(line), 3, "{line}");
        }
        for line in ["scan x", "scan --json x", "scan -- -j3", "scan -j x", "scan -j", "scan j3"] {
            assert_eq!(found(line), 0, "{line}");
        }
    }
}
