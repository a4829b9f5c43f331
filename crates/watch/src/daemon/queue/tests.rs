//! Tests of the queue with invented times; no clock and no sleep.

use super::*;
use keeper::FileId;
use proptest::prelude::*;

const SOON: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(3_600);

fn at(seconds: i64) -> Tick {
    Tick::from_millis(seconds * 1_000)
}

fn stamp(bytes: u64) -> Stamp {
    Stamp { file: FileId { device: 1, inode: 2 }, bytes, modified: (3, 0), changed: (4, 0) }
}

fn queue(late: Option<Duration>) -> Queue {
    Queue::new(Settle { soon: SOON, late }, 100)
}

fn path() -> &'static Path {
    Path::new("s.jsonl")
}

/// Takes the only file, which must become due at exactly this moment.
#[track_caller]
fn take(queue: &mut Queue, seconds: i64) -> Job {
    assert_eq!(queue.deadline(), Some(at(seconds)));
    assert_eq!(queue.next(Tick::from_millis(seconds * 1_000 - 1)), None);
    queue.next(at(seconds)).unwrap()
}

#[test]
fn a_file_is_due_when_it_has_been_quiet() {
    let mut queue = queue(None);
    assert!(queue.touch(path(), 0, at(0)));
    assert!(queue.touch(path(), 0, at(3)));
    let job = take(&mut queue, 8);
    assert_eq!((job.pace, job.known), (Pace::Soon, None));
    assert_eq!(queue.done(&job, &Done::Settled(stamp(1)), at(9)), AfterLook::Rests);
    assert_eq!(queue.deadline(), None);
}

#[test]
fn what_a_walk_finds_old_is_due_at_once_and_then_only_when_it_differs() {
    let mut queue = queue(None);
    assert!(queue.found(path(), 0, (stamp(1), 1), LATE, at(10)));
    let job = queue.next(at(10)).unwrap();
    queue.done(&job, &Done::Settled(stamp(1)), at(11));
    queue.found(path(), 0, (stamp(1), 2), LATE, at(20));
    assert_eq!(queue.deadline(), None);
    queue.found(path(), 0, (stamp(2), 3), Duration::from_secs(1), at(30));
    assert_eq!(take(&mut queue, 34).known, None);
}

#[test]
fn a_change_while_it_is_looked_at_makes_it_due_again() {
    let mut queue = queue(None);
    queue.touch(path(), 0, at(0));
    let job = take(&mut queue, 5);
    queue.touch(path(), 0, at(6));
    assert_eq!(queue.next(at(100)), None, "it is given out once at a time");
    queue.done(&job, &Done::Settled(stamp(1)), at(7));
    assert_eq!(take(&mut queue, 11).known, Some(stamp(1)));
}

#[test]
fn older_history_waits_for_longer_quiet() {
    let mut queue = queue(Some(LATE));
    queue.touch(path(), 0, at(0));
    let job = take(&mut queue, 5);
    assert_eq!(job.pace, Pace::Soon);
    queue.done(&job, &Done::Settled(stamp(1)), at(6));
    let job = take(&mut queue, 3_600);
    assert_eq!((job.pace, job.known), (Pace::Late, None));
    queue.done(&job, &Done::Settled(stamp(1)), at(3_601));
    assert_eq!(queue.deadline(), None);
    // A file that is already old is due at once.
    queue.found(Path::new("old.jsonl"), 0, (stamp(9), 1), LATE, at(3_700));
    assert_eq!(queue.next(at(3_700)).unwrap().pace, Pace::Late);
}

#[test]
fn what_is_put_off_comes_back_when_it_was_said_to() {
    let mut queue = queue(None);
    queue.touch(path(), 0, at(0));
    let job = take(&mut queue, 5);
    let done =
        Done::Deferred { as_it_is: Some(stamp(1)), after: Duration::from_secs(600), cure: Cure::Change };
    assert_eq!(queue.done(&job, &done, at(5)), AfterLook::Retries(Duration::from_secs(600)));
    // A walk that finds the same file does not make it due earlier, but a change does.
    queue.found(path(), 0, (stamp(1), 1), LATE, at(6));
    assert_eq!(queue.deadline(), Some(at(605)));
    queue.touch(path(), 0, at(7));
    take(&mut queue, 12);
}

#[test]
fn what_others_hold_is_asked_for_less_and_less() {
    let mut queue = queue(None);
    queue.touch(path(), 0, at(0));
    let mut now = 5;
    for wait in [60, 120, 240, 480, 600, 600] {
        let job = take(&mut queue, now);
        let after = Duration::from_secs(60);
        queue.done(&job, &Done::Deferred { as_it_is: None, after, cure: Cure::Others }, at(now));
        queue.touch(path(), 0, at(now + 1));
        now += wait;
    }
    assert_eq!(queue.deadline(), Some(at(now)));
}

#[test]
fn what_a_file_waits_for_brings_it_back_when_it_is_over() {
    for cure in [Cure::Close, Cure::Exit(7)] {
        let mut queue = queue(None);
        queue.touch(path(), 0, at(0));
        let put_off = Done::Deferred { as_it_is: None, after: Duration::from_secs(60), cure };
        let job = take(&mut queue, 5);
        queue.done(&job, &put_off, at(5));
        // Another cure.
        queue.free(path(), Cure::Exit(8));
        assert_eq!((queue.deadline(), queue.wait_is_over(path())), (Some(at(65)), false));
        // A change: something else may be wrong now. It still waits.
        queue.touch(path(), 0, at(6));
        let job = take(&mut queue, 11);
        queue.done(&job, &put_off, at(11));
        assert_eq!((queue.deadline(), queue.wait_is_over(path())), (Some(at(131)), false));
        queue.free(path(), cure);
        assert!(queue.wait_is_over(path()));
        let job = queue.next(at(12)).unwrap();
        // The cure happens before the look ends.
        queue.free(path(), cure);
        queue.done(&job, &put_off, at(13));
        let job = queue.next(at(13)).unwrap();
        // A cure before the look began does not make it due again.
        queue.done(&job, &put_off, at(14));
        assert_eq!((queue.deadline(), queue.wait_is_over(path())), (Some(at(74)), false));
    }
}

#[test]
fn a_file_that_waits_for_quiet_has_waited_when_it_changes() {
    let mut queue = queue(None);
    queue.touch(path(), 0, at(0));
    let job = take(&mut queue, 5);
    let growing = Done::Deferred { as_it_is: None, after: SOON, cure: Cure::Change };
    queue.done(&job, &growing, at(5));
    assert!(!queue.wait_is_over(path()));
    queue.touch(path(), 0, at(6));
    assert!(queue.wait_is_over(path()));
    let job = take(&mut queue, 11);
    queue.done(&job, &growing, at(11));
    assert!(!queue.wait_is_over(path()));
}

#[test]
fn what_keeps_failing_is_left_alone() {
    let mut queue = queue(None);
    queue.touch(path(), 0, at(0));
    let mut now = 5;
    for wait in [1, 2, 4, 8] {
        let job = take(&mut queue, now);
        assert_eq!(queue.done(&job, &Done::Failed, at(now)), AfterLook::Retries(Duration::from_secs(wait)));
        now += i64::try_from(wait).unwrap();
    }
    for rest in [REST_MIN, REST_MIN * 2] {
        let job = take(&mut queue, now);
        assert_eq!(queue.done(&job, &Done::Failed, at(now)), AfterLook::Tripped(rest));
        assert_eq!(queue.tripped(), 1);
        queue.touch(path(), 0, at(now + 1));
        now += i64::try_from(rest.as_secs()).unwrap();
    }
    let job = take(&mut queue, now);
    queue.done(&job, &Done::Settled(stamp(1)), at(now));
    assert_eq!(queue.tripped(), 0);
}

#[test]
fn what_the_surroundings_hinder_is_tried_again_and_never_left_alone() {
    let mut queue = queue(None);
    queue.touch(path(), 0, at(0));
    let mut now = 5;
    for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300] {
        let job = take(&mut queue, now);
        assert_eq!(queue.done(&job, &Done::Hindered, at(now)), AfterLook::Retries(Duration::from_secs(wait)));
        assert_eq!((queue.hindered(), queue.tripped()), (1, 0));
        // A change to a known file makes no room.
        queue.touch(path(), 0, at(now));
        now += i64::try_from(wait).unwrap().max(5);
    }
    let job = take(&mut queue, now);
    queue.done(&job, &Done::Failed, at(now));
    assert_eq!(queue.hindered(), 0);
    let job = take(&mut queue, now + 1);
    queue.done(&job, &Done::Hindered, at(now + 1));
    assert_eq!(queue.hindered(), 1);
    queue.drop_root(0);
    assert_eq!(queue.hindered(), 0);
}

#[test]
fn what_is_mended_in_vain_is_left_alone() {
    let about = |places: &[u64], errors| Done::Mended {
        now: Some(stamp(1)),
        repaired: Repaired { places: places.iter().copied().collect(), gain: true, errors },
    };
    let mut queue = queue(None);
    let mut mend = |seconds, done: Done| {
        queue.touch(path(), 0, at(seconds));
        let job = queue.next(at(seconds + 5)).unwrap();
        let after = queue.done(&job, &done, at(seconds + 5));
        (matches!(after, AfterLook::Tripped(_)), queue.tripped())
    };
    // Each turn something new is repaired, wherever it stands: the newest result is cut and an older one ages.
    for n in 1..50 {
        assert_eq!(mend(i64::try_from(n).unwrap() * 10, about(&[n, 1_000 - n], false)), (false, 0));
    }
    // A program writes the old text back each time, with more after it. An error is repaired however often it comes back.
    for n in 0..9 {
        assert_eq!(mend(1_000 + n * 10, about(&[3, 149], true)), (false, 0));
    }
    for n in 0..4_u8 {
        assert_eq!(mend(2_000 + i64::from(n) * 10, about(&[3, 149, 150 + u64::from(n)], false)), (false, 0));
    }
    assert_eq!(mend(3_000, about(&[3, 160], false)), (true, 1));
}

/// A walk that began before the file was there does not name it, and its root or its store may be gone by now. Otherwise the file
/// would be given out twice at a time.
#[test]
fn what_is_being_looked_at_is_known_until_the_look_ends() {
    for forget in [|queue: &mut Queue| queue.walked(0, 7), |queue: &mut Queue| queue.drop_root(0)] {
        let mut queue = queue(None);
        queue.touch(path(), 0, at(0));
        let job = take(&mut queue, 5);
        forget(&mut queue);
        queue.touch(path(), 0, at(6));
        assert_eq!(queue.next(at(100)), None);
        queue.done(&job, &Done::Settled(stamp(1)), at(101));
        assert_eq!(queue.next(at(101)).map(|job| job.path), Some(job.path));
    }
    let mut queue = queue(None);
    queue.found(Path::new("opencode.db"), 0, (stamp(1), 1), LATE, at(0));
    let store = queue.next(at(0)).unwrap();
    queue.listed(&store.path, &[session("a", stamp(1), LATE)], at(0));
    queue.done(&store, &listed(), at(0));
    let job = queue.next(at(0)).unwrap();
    queue.walked(0, 2);
    assert!(queue.knows(&job.path) && !queue.knows(&store.path));
    queue.done(&job, &Done::Settled(stamp(1)), at(1));
    queue.walked(0, 3);
    assert_eq!(queue.files(), 0);
}

#[test]
fn there_is_a_limit_to_what_is_known() {
    let mut queue = Queue::new(Settle { soon: SOON, late: None }, 2);
    let mut touch = |name: &str| queue.touch(Path::new(name), 0, at(0));
    assert_eq!([touch("a"), touch("b"), touch("c"), touch("a")], [true, true, false, true]);
    queue.walked(0, 7);
    assert_eq!((queue.files(), queue.deadline()), (0, None));
}

/// Something that may happen to a few files.
#[derive(Clone, Debug)]
enum Act {
    Wait(u16),
    Touch(u8),
    Found(u8, u8, u16),
    Next,
    Done(u8, u8),
    Free(u8),
    Renew,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..20_000_u16).prop_map(Act::Wait),
        (0..4_u8).prop_map(Act::Touch),
        (0..4_u8, 0..3_u8, 0..10_000_u16).prop_map(|(file, stamp, quiet)| Act::Found(file, stamp, quiet)),
        Just(Act::Next),
        (0..8_u8, 0..9_u8).prop_map(|(which, how)| Act::Done(which, how)),
        (0..4_u8).prop_map(Act::Free),
        Just(Act::Renew),
    ]
}

fn ending(how: u8) -> Done {
    let second = Duration::from_secs(1);
    match how {
        0 | 1 => Done::Settled(stamp(u64::from(how))),
        2 => Done::Mended { now: Some(stamp(0)), repaired: Repaired { gain: true, ..Repaired::default() } },
        3 => Done::Mended { now: None, repaired: Repaired::default() },
        4 => Done::Deferred { as_it_is: Some(stamp(1)), after: second, cure: Cure::Change },
        5 => Done::Deferred { as_it_is: None, after: second, cure: Cure::Others },
        6 => Done::Hindered,
        7 => Done::Deferred { as_it_is: None, after: second, cure: Cure::Close },
        _ => Done::Failed,
    }
}

proptest! {
    /// However the clock jumps, forwards or backwards, no file is given out twice, and each changed file is looked at
    /// in the end.
    #[test]
    fn a_clock_that_jumps_loses_nothing(
        acts in proptest::collection::vec((act(), any::<i64>()), 1..100),
        late in any::<bool>(),
    ) {
        let mut queue = queue(late.then_some(LATE));
        let mut touched = std::collections::HashSet::new();
        let mut out: Vec<Job> = Vec::new();
        for (act, now) in acts {
            let tick = Tick::from_millis(now);
            match act {
                Act::Touch(file) => {
                    queue.touch(Path::new(&file.to_string()), 0, tick);
                    touched.insert(file.to_string());
                }
                Act::Next => if let Some(job) = queue.next(tick) {
                    prop_assert!(out.iter().all(|other| other.path != job.path));
                    touched.remove(&*job.path.to_string_lossy());
                    out.push(job);
                },
                Act::Done(which, how) => if !out.is_empty() {
                    let job = out.remove(usize::from(which) % out.len());
                    queue.done(&job, &ending(how), tick);
                },
                _ => queue.renew(queue.settle),
            }
        }
        let end = Tick::from_millis(i64::MAX);
        for round in 0..100 {
            for job in out.drain(..) {
                queue.done(&job, &ending(0), end);
            }
            let Some(job) = queue.next(end) else { break };
            touched.remove(&*job.path.to_string_lossy());
            out.push(job);
            prop_assert!(round < 99, "it does not come to rest");
        }
        prop_assert!(touched.is_empty(), "never looked at: {touched:?}");
    }

    /// Whatever the order of events: no file is given out twice at a time or before it has been quiet, and each changed
    /// file is looked at in the end.
    #[test]
    fn nothing_is_early_nothing_is_doubled_and_nothing_is_forgotten(
        acts in proptest::collection::vec(act(), 1..200),
        late in proptest::option::of(5_000..50_000_u64),
    ) {
        let settle = Settle { soon: SOON, late: late.map(Duration::from_millis) };
        let mut queue = Queue::new(settle, 100);
        let mut now = 0_i64;
        let mut touched: HashMap<Arc<Path>, i64> = HashMap::new();
        let mut out: Vec<Job> = Vec::new();
        for act in acts {
            let tick = Tick::from_millis(now);
            match act {
                Act::Wait(millis) => now += i64::from(millis),
                Act::Touch(file) => {
                    let path = Arc::from(Path::new(&file.to_string()));
                    prop_assert!(queue.touch(&path, 0, tick));
                    touched.insert(path, now);
                }
                Act::Found(file, bytes, quiet) => {
                    let quiet = Duration::from_millis(u64::from(quiet));
                    let path: Arc<Path> = Arc::from(Path::new(&file.to_string()));
                    queue.found(&path, 0, (stamp(u64::from(bytes)), 1), quiet, tick);
                    touched.remove(&path);
                }
                Act::Next => if let Some(job) = queue.next(tick) {
                    prop_assert!(job.due <= tick);
                    prop_assert!(out.iter().all(|other| other.path != job.path));
                    if let Some(last) = touched.remove(&job.path) {
                        prop_assert!(now - last >= 5_000, "quiet for {} ms only", now - last);
                    }
                    out.push(job);
                },
                Act::Done(which, how) => if !out.is_empty() {
                    let job = out.remove(usize::from(which) % out.len());
                    queue.done(&job, &ending(how), tick);
                },
                Act::Free(file) => queue.free(Path::new(&file.to_string()), Cure::Close),
                Act::Renew => queue.renew(settle),
            }
            prop_assert!(queue.tripped() + queue.hindered() <= queue.files());
            prop_assert!(queue.waiting() + out.len() <= queue.files());
        }
        for job in out.drain(..) {
            queue.done(&job, &ending(0), Tick::from_millis(now));
        }
        let mut rounds = 0;
        while let Some(due) = queue.deadline() {
            let job = queue.next(due.max(Tick::from_millis(now))).unwrap();
            touched.remove(&job.path);
            queue.done(&job, &ending(0), due.max(Tick::from_millis(now)));
            rounds += 1;
            prop_assert!(rounds < 50, "it does not come to rest");
        }
        prop_assert!(touched.is_empty(), "never looked at: {touched:?}");
    }
}

fn session(name: &str, stamp: Stamp, quiet: Duration) -> Listed {
    Listed { path: Path::new("opencode.db#").join(name), stamp, quiet }
}

fn listed() -> Done {
    Done::Listed { now: stamp(1), rest: Duration::from_secs(1) }
}

#[test]
fn a_store_is_listed_however_often_it_is_written_to() {
    let mut queue = queue(None);
    let store = Path::new("opencode.db");
    if !may_be_read(store) {
        return; // built without the feature `stores` of `keeper`
    }
    for second in 0..4 {
        queue.touch(store, 0, at(second));
    }
    let job = take(&mut queue, 5);
    queue.touch(store, 0, at(6));
    let due = Done::Listed { now: stamp(1), rest: Duration::from_secs(20) };
    assert_eq!(queue.done(&job, &due, at(7)), AfterLook::Rests);
    // Not before it has rested.
    take(&mut queue, 27);
}

#[test]
fn sessions_are_due_each_by_itself_and_go_with_their_store() {
    let mut queue = queue(None);
    queue.found(Path::new("opencode.db"), 0, (stamp(1), 1), LATE, at(0));
    let job = queue.next(at(0)).unwrap();
    let both = [session("a", stamp(1), LATE), session("b", stamp(2), Duration::from_secs(1))];
    assert_eq!(queue.listed(&job.path, &both, at(0)), (Vec::new(), true));
    assert_eq!(queue.done(&job, &listed(), at(0)), AfterLook::Rests);
    let first = queue.next(at(0)).unwrap();
    assert_eq!((&*first.path, first.store.as_deref()), (&*both[0].path, Some(&*job.path)));
    // It is written to while it is looked at.
    queue.listed(&job.path, &[session("a", stamp(3), Duration::ZERO), both[1].clone()], at(1));
    queue.done(&first, &Done::Settled(stamp(1)), at(2));
    let second = queue.next(at(4)).unwrap();
    assert_eq!(&*second.path, &*both[1].path);
    queue.done(&second, &Done::Settled(stamp(2)), at(4));
    assert!(queue.next(at(6)).is_some_and(|job| job.path == first.path));
    // A walk sees no sessions.
    queue.found(Path::new("opencode.db"), 0, (stamp(1), 2), LATE, at(10));
    queue.walked(0, 2);
    assert_eq!(queue.files(), 3);
    let (gone, _) = queue.listed(&job.path, &both[..1], at(11));
    assert_eq!(gone, [Arc::from(&*both[1].path)]);
    queue.done(&first, &Done::Settled(stamp(3)), at(11));
    queue.walked(0, 3);
    assert_eq!((queue.files(), queue.waiting()), (0, 0));
}
