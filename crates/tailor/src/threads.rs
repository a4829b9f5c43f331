//! Uses as many threads as the machine has processors, or as limits allow; one is enough. Where threads are limited
//! (`ulimit -u`, control groups, memory), rayon's own pool would end the program.

use rayon::ThreadPoolBuilder;
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
