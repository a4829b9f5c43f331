//! Qwen Code's writer lease (`session-writer-lease.ts`).
//!
//! A Qwen Code that writes a session holds `tmp/session-writer-locks/<session>.lock` below its folder. Before each line, it
//! compares the inode, the number of links and the length of the transcript, and does not write to a file that was replaced.
//! So the file may be replaced only if there is no lease, or if the owner of an active lease is proven dead. A process id
//! proves something only on the same host, since the same boot and in the same pid namespace. A sealed lease pins the length
//! and the hash of the transcript, and a managed one those of a prefix: such files are refused. The lease is left alone; Qwen
//! Code takes it over by itself.

use super::target::{GateAnswer, GateTarget, LockFile, default_root, open_unless, root_above, stem};
use crate::ask::deferral::Deferral;
use crate::ask::stop::Stop;
use crate::base::refusal::Refusal;
use crate::platform::{ProcessState, around, process};
use serde::Deserialize;
use std::path::Path;

const AGENT: &str = "Qwen Code";

/// The schema version of managed leases.
const MANAGED: u32 = 3;

#[derive(Deserialize)]
struct QwenLease {
    #[serde(rename = "schema_version")]
    schema: u32,
    state: Option<String>,
    pid: u32,
    hostname: String,
    /// `linux:<boot id>:<start time>`.
    #[serde(rename = "process_start_identity")]
    identity: Option<String>,
    #[serde(rename = "pid_namespace_id")]
    namespace: Option<u64>,
}

pub(super) fn ask(target: &GateTarget<'_>) -> GateAnswer {
    let root = root_above(target.path, "projects", 2).map(Path::to_path_buf);
    let root = root.or_else(|| default_root("QWEN_RUNTIME_DIR", ".qwen"));
    let (Some(root), Some(session)) = (root, stem(target.path)) else { return Ok(None) };
    let path = root.join("tmp/session-writer-locks").join(format!("{session}.lock"));
    let Some(note) = LockFile::read(&path)? else { return Ok(None) };
    // Qwen Code does not write to a session whose lease it cannot read.
    let lease = serde_json::from_slice::<QwenLease>(&note.bytes).ok();
    open_unless(lease.map_or(Some(Deferral::Unprovable { agent: AGENT }.into()), |lease| objection(&lease)))
}

/// Why to stop because of a lease; `None` if its owner is proven dead.
fn objection(lease: &QwenLease) -> Option<Stop> {
    match (lease.schema, lease.state.as_deref()) {
        (MANAGED, _) => {
            return Some(Stop::from(Refusal::CountedElsewhere(
                "Qwen Code keeps a hash of its lines (managed session)",
            )));
        }
        (_, Some("sealed")) => {
            return Some(Stop::from(Refusal::CountedElsewhere("Qwen Code has sealed its length and hash")));
        }
        (1, None) | (2, Some("active")) => {}
        _ => return Some(Deferral::Unprovable { agent: AGENT }.into()),
    }
    let Some(start) = comparable(lease) else { return Some(Deferral::Unprovable { agent: AGENT }.into()) };
    let alive = process::life(lease.pid, Some(start)) == ProcessState::Alive;
    alive.then(|| Deferral::InUse { agent: AGENT, pid: lease.pid, status: None }.into())
}

/// The start time of the owner, if its process id means the same here.
fn comparable(lease: &QwenLease) -> Option<u64> {
    let (boot, start) = lease.identity.as_deref()?.strip_prefix("linux:")?.split_once(':')?;
    let same = around::host_name()? == lease.hostname.as_bytes()
        && boot.to_ascii_lowercase() == process::boot_id()?
        && lease.namespace? == process::pid_namespace()?;
    same.then_some(start.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::super::target::tests::{GateCase, deferral, is_open};
    use super::*;
    use crate::platform::process::{boot_id, pid_namespace, start};
    use crate::spawned::dead;
    use serde_json::{Value, json};
    use std::fs;
    use std::path::PathBuf;

    const SESSION: &str = "0c0c0c0c-0000-4000-8000-000000000000";

    fn case() -> (tempfile::TempDir, GateCase, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let case = GateCase::new(dir.path().join(format!("projects/-w/chats/{SESSION}.jsonl")), "x");
        let locks = dir.path().join("tmp/session-writer-locks");
        fs::create_dir_all(&locks).unwrap();
        let lease = locks.join(format!("{SESSION}.lock"));
        (dir, case, lease)
    }

    /// A lease of ours, with some fields otherwise.
    fn lease(others: &Value) -> String {
        let own = std::process::id();
        let mut lease = json!({
            "schema_version": 2,
            "state": "active",
            "session_id": SESSION,
            "owner_id": "o",
            "pid": own,
            "hostname": rustix::system::uname().nodename().to_str().unwrap(),
            "process_start_identity": format!("linux:{}:{}", boot_id().unwrap(), start(own).unwrap()),
            "pid_namespace_id": pid_namespace().unwrap(),
        });
        for (key, value) in others.as_object().unwrap() {
            lease[key] = value.clone();
        }
        lease.to_string()
    }

    #[test]
    fn no_lease_and_the_lease_of_the_dead_are_free() {
        let (_dir, case, path) = case();
        assert!(is_open(&ask(&case.target())));
        let recycled = json!({"process_start_identity": format!("linux:{}:1", boot_id().unwrap())});
        let first = json!({"schema_version": 1, "state": null, "pid": dead()});
        for others in [json!({"pid": dead()}), recycled, first] {
            fs::write(&path, lease(&others)).unwrap();
            assert!(is_open(&ask(&case.target())), "{others}");
            assert!(path.exists(), "the lease is Qwen's to remove");
        }
    }

    #[test]
    fn the_lease_of_the_living_holds() {
        let (_dir, case, path) = case();
        for others in [json!({}), json!({"schema_version": 1, "state": null})] {
            fs::write(&path, lease(&others)).unwrap();
            let found = deferral(ask(&case.target()));
            assert_eq!(found, Deferral::InUse { agent: AGENT, pid: std::process::id(), status: None });
        }
    }

    #[test]
    fn what_proves_nothing_holds_too() {
        let (_dir, case, path) = case();
        let elsewhere = [
            json!({"hostname": "another"}),
            json!({"process_start_identity": "linux:00000000-0000-0000-0000-000000000000:1"}),
            json!({"process_start_identity": "darwin:Mon"}),
            json!({"process_start_identity": null}),
            json!({"pid_namespace_id": 1}),
            json!({"pid_namespace_id": null}),
            json!({"state": "paused"}),
            json!({"schema_version": 4}),
            json!({"pid": -1}),
        ];
        for others in elsewhere {
            let mut dead = json!({"pid": dead()});
            dead.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
            fs::write(&path, lease(&dead)).unwrap();
            assert_eq!(deferral(ask(&case.target())), Deferral::Unprovable { agent: AGENT }, "{others}");
        }
        for broken in ["", "{", "[]", &" ".repeat(100_000)] {
            fs::write(&path, broken).unwrap();
            assert_eq!(deferral(ask(&case.target())), Deferral::Unprovable { agent: AGENT });
        }
    }

    #[test]
    fn sealed_and_managed_sessions_are_refused() {
        let (_dir, case, path) = case();
        for others in [
            json!({"state": "sealed", "pid": dead()}),
            json!({"schema_version": 3, "pid": dead()}),
            json!({"schema_version": 3, "state": "sealed"}),
        ] {
            fs::write(&path, lease(&others)).unwrap();
            let answer = ask(&case.target());
            assert!(matches!(answer, Err(Stop::Refused(Refusal::CountedElsewhere(_)))), "{others}");
        }
    }

    #[test]
    fn a_file_that_is_no_session_of_qwens_has_no_lease() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["..jsonl", "a b.jsonl"] {
            let case = GateCase::new(dir.path().join("projects/-w/chats").join(name), "x");
            assert!(is_open(&ask(&case.target())), "{name}");
        }
    }
}
