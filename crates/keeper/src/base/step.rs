//! Names for all places at which the disk is written to, so that tests can make each of them fail, or die before it.

use std::io;

/// A place at which the disk is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Step {
    /// An original or a spilled text is written.
    WriteOriginal,
    /// … and synced.
    SyncOriginal,
    /// The undo record is written.
    WriteRecord,
    /// … and synced, and its name with it.
    SyncRecord,
    /// The temporary file is made.
    CreateTemporary,
    /// The new text is written into it.
    WriteText,
    /// It gets the mode, owner, access list and attributes of the old file.
    CopyAttributes,
    /// It is synced.
    SyncText,
    /// What was appended meanwhile is copied, without a lease.
    CatchUp,
    /// The ledger says what is about to be copied.
    Note,
    /// Read lease on the old file.
    LeaseOld,
    /// All bytes of a file that has grown are compared with what was read.
    Compare,
    /// The rest of what was appended is copied, under the lease.
    CatchUpLast,
    /// … and synced.
    SyncTail,
    /// Write lease on the new file.
    LeaseNew,
    /// The new file gets the times of the old one.
    SetTimes,
    /// The new file gets a name beside the old one.
    Name,
    /// The old and the new file exchange their names.
    Exchange,
    /// Where that takes two steps: the old file gets another second name.
    Link,
    /// Where a file has one name only, or an open one cannot be replaced: the old file leaves its name.
    Aside,
    /// … and the new one takes its first.
    Rename,
    /// Where nobody is kept out: the new text is read back through its name.
    ReadBack,
    /// What was still appended to the old file is copied.
    Drain,
    /// … and synced.
    SyncNew,
    /// The new name is synced.
    SyncFolder,
    /// Where names were exchanged in steps: the whole old file goes into the vault.
    KeepWhole,
    /// The old file loses its last name.
    Unlink,
    /// … and that is synced.
    SyncUnlink,
    /// A store is locked for one transaction.
    #[cfg(feature = "stores")]
    LockRows,
    /// A row of it is written.
    #[cfg(feature = "stores")]
    WriteRow,
    /// The transaction ends.
    #[cfg(feature = "stores")]
    CommitRows,
    /// A file of ours that is no longer needed is removed.
    Clean,
}

/// Must be called before each of these steps. Does nothing outside tests.
#[cfg_attr(not(test), expect(clippy::unnecessary_wraps, reason = "in tests it fails"))]
pub(crate) fn before(step: Step) -> io::Result<()> {
    #[cfg(test)]
    return fault::reached(step);
    #[cfg(not(test))]
    {
        let _ = step;
        Ok(())
    }
}

/// Makes steps of this thread fail.
#[cfg(test)]
#[allow(dead_code, reason = "the state machine, which uses all of it, runs on Linux")]
pub(crate) mod fault {
    use super::Step;
    use std::cell::{Cell, RefCell};
    use std::io;

    /// What goes wrong.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum StepFault {
        /// The step with this number, from 0, fails with this error number.
        Error { at: usize, errno: i32 },
        /// From this step on nothing works any more, as if the program had died there.
        Death { at: usize },
    }

    /// What other programs do at the moment before a step, which is given with its number.
    type Meanwhile = Box<dyn FnMut(usize, Step)>;

    #[derive(Default)]
    struct FaultState {
        fault: Option<StepFault>,
        steps: Vec<Step>,
        meanwhile: Option<Meanwhile>,
    }

    thread_local! {
        static STATE: RefCell<FaultState> = RefCell::default();
        static SYSTEM: Cell<FaultySystem> = const { Cell::new(HERE) };
    }

    /// What the system and its file system do for this thread.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct FaultySystem {
        pub(crate) leases: Leases,
        pub(crate) names: NameCalls,
    }

    /// This one.
    pub(crate) const HERE: FaultySystem = FaultySystem { leases: Leases::Given, names: NameCalls::Exchanged };

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Leases {
        Given,
        /// It has no leases, but says who has a file open.
        Seen,
        /// It has no leases, and does not let itself be asked.
        Unseen,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum NameCalls {
        /// It exchanges them.
        Exchanged,
        /// It does not, but gives a file a second one.
        Linked,
        /// It does neither, so the old file steps aside.
        Single,
    }

    /// Runs `work` on such a system.
    pub(crate) fn on<T>(system: FaultySystem, work: impl FnOnce() -> T) -> T {
        struct Back;
        impl Drop for Back {
            fn drop(&mut self) {
                SYSTEM.set(HERE);
            }
        }
        SYSTEM.set(system);
        let _back = Back;
        work()
    }

    /// What the system does for this thread.
    pub(crate) fn system() -> FaultySystem {
        SYSTEM.get()
    }

    /// Runs `work` with a fault, or none, and gives the steps that it took.
    pub(crate) fn with<T>(fault: Option<StepFault>, work: impl FnOnce() -> T) -> (T, Vec<Step>) {
        meanwhile(fault, |_, _| {}, work)
    }

    /// Runs `work` with a fault, or none, and `others` do something before each step.
    pub(crate) fn meanwhile<T>(
        fault: Option<StepFault>,
        others: impl FnMut(usize, Step) + 'static,
        work: impl FnOnce() -> T,
    ) -> (T, Vec<Step>) {
        let state = FaultState { fault, steps: Vec::new(), meanwhile: Some(Box::new(others)) };
        STATE.with_borrow_mut(|old| *old = state);
        let end = End;
        let value = work();
        let steps = STATE.with_borrow_mut(|state| std::mem::take(&mut state.steps));
        drop(end);
        (value, steps)
    }

    /// Nothing fails any more, also if a test has.
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            STATE.with_borrow_mut(std::mem::take);
        }
    }

    pub(super) fn reached(step: Step) -> io::Result<()> {
        STATE.with_borrow_mut(|state| {
            let number = state.steps.len();
            state.steps.push(step);
            if let Some(others) = &mut state.meanwhile {
                others(number, step);
            }
            match state.fault {
                Some(StepFault::Error { at, errno }) if at == number => {
                    Err(io::Error::from_raw_os_error(errno))
                }
                Some(StepFault::Death { at }) if at <= number => Err(io::Error::other("died here")),
                _ => Ok(()),
            }
        })
    }
}
