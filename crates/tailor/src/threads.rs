//! As many threads as this machine has processors, or as its limits leave: one is enough to work. Where threads end
//! (`ulimit -u`, a limit of a control group, memory), rayon's own pool would end the program.

use rayon::ThreadPoolBuilder;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, available_parallelism};

/// Sets the pool up with the threads that can be had. Only the thread that calls this one works if there is no other.
pub(crate) fn prepare() -> Result<(), String> {
    let wanted = available_parallelism().map_or(1, usize::from);
    let pool = match wanted.min(to_be_had(wanted)) {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread(),
        threads => ThreadPoolBuilder::new().num_threads(threads),
    };
    pool.build_global()
        .map_err(|error| format!("no thread can be started (see ulimit -u, ulimit -v): {error}"))
}

/// How many threads can be there at a time. A pool whose threads cannot all be started cannot be made smaller afterwards.
fn to_be_had(wanted: usize) -> usize {
    let start = |_| {
        let (stay, end) = channel::<()>();
        // It ends when `stay` is dropped.
        let thread = Builder::new().spawn(move || end.recv().is_err()).ok()?;
        Some((stay, thread))
    };
    let started: Vec<(Sender<()>, _)> = (0..wanted).map_while(start).collect();
    // Others are started beside the pool; some room is left for these.
    let threads = if started.len() < wanted { started.len() / 2 } else { wanted };
    for (stay, thread) in started {
        drop(stay);
        let _ = thread.join();
    }
    threads
}
