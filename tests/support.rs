//! A folder for each test, and how to run the program in it.

#[cfg(unix)]
mod powerless; // The program without root's rights.

pub(crate) use crate::folder::skipped;
#[cfg(unix)]
#[allow(unused_imports, reason = "not all tests need them")]
pub(crate) use powerless::{NOBODY, give_to_powerless, is_root};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder that is deleted when the test ends. The test uses `files`; the program's home folder is beside it.
pub(crate) struct Dir {
    temporary: tempfile::TempDir,
}

impl Dir {
    pub(crate) fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// The same in memory, if possible, where syncing takes no time.
    pub(crate) fn in_memory() -> Self {
        Self::at(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn at(temporary: tempfile::TempDir) -> Self {
        for name in ["files", "home", "tmp"] {
            fs::create_dir(temporary.path().join(name)).unwrap();
        }
        Self { temporary }
    }

    /// The folder of the files under test.
    pub(crate) fn files(&self) -> PathBuf {
        self.temporary.path().join("files")
    }

    /// Keeps the folder after the test, to examine a failure.
    pub(crate) fn keep(self) -> PathBuf {
        self.temporary.keep()
    }

    /// The home folder of the program.
    pub(crate) fn home(&self) -> PathBuf {
        self.temporary.path().join("home")
    }

    /// A path among the files under test.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.files().join(name)
    }

    /// Writes a file with an old modification time.
    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        make_old(&path);
        path
    }

    /// All names in the folder of files, at any depth, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        list(&self.files(), &self.files(), &mut names);
        names.sort();
        names
    }

    /// Runs the program.
    pub(crate) fn tailor<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> FinishedRun {
        run(self.command().args(arguments), b"")
    }

    /// Runs the program with this standard input.
    pub(crate) fn pipe(&self, input: &[u8], arguments: &[&str]) -> FinishedRun {
        run(self.command().args(arguments), input)
    }

    /// The program in a clean environment, without arguments.
    pub(crate) fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_tailor"))
    }

    /// Another program in the same environment.
    pub(crate) fn command_of(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let home = self.home();
        command.env_clear().current_dir(self.files()).env("RUST_BACKTRACE", "0");
        // Windows has names of its own for these, and starts no program that does not know where the system is.
        command.envs([("HOME", &home), ("USERPROFILE", &home), ("LOCALAPPDATA", &home)]);
        let temporary = self.temporary.path().join("tmp");
        command.envs([("TMPDIR", &temporary), ("TEMP", &temporary), ("TMP", &temporary)]);
        // The release workflow tests in-place repairs on systems where they are off by default.
        for kept in ["TAILOR_PLAIN_SYSTEM", "SYSTEMROOT"] {
            command.envs(std::env::var_os(kept).map(|value| (kept, value)));
        }
        for (key, below) in
            [("XDG_CONFIG_HOME", ".config"), ("XDG_STATE_HOME", ".state"), ("XDG_DATA_HOME", ".data")]
        {
            command.env(key, home.join(below));
        }
        command
    }
}

/// Runs a command of [`Dir::command`]. The program must end by itself, however bad the input is.
#[track_caller]
pub(crate) fn run(command: &mut Command, input: &[u8]) -> FinishedRun {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // The program need not read all of it.
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains("panicked"), "{stderr}");
    let Some(status) = output.status.code() else { panic!("ended by a signal: {}", output.status) };
    FinishedRun { status, stdout: output.stdout, stderr }
}

/// All names below a folder, at any depth, unsorted.
pub(crate) fn list(root: &Path, folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            list(root, &path, names);
        } else {
            names.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

/// Whether `UPDATE` is set: expectations are written instead of compared. All other assertions still run.
pub(crate) fn updates() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// How a file differs from this text, which `UPDATE=1` writes there.
pub(crate) fn differs(path: &Path, text: &str) -> Option<String> {
    if updates() {
        fs::write(path, text).unwrap();
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    let at = there.lines().zip(text.lines()).position(|(there, now)| there != now);
    let at = at.unwrap_or_else(|| there.lines().count().min(text.lines().count()));
    let now = text.lines().nth(at).unwrap_or("the end of the file");
    let say = || format!("{}:{}: UPDATE=1 takes this over:\n{now}", path.display(), at + 1);
    (there != text).then(say)
}

/// Asserts that a file holds this text, which `UPDATE=1` writes there.
#[track_caller]
pub(crate) fn as_written(path: &Path, text: &str) {
    assert_eq!(differs(path, text), None);
}

/// Whether `TAILOR_THOROUGH` is set, as in `.ci/run` and `.ci/long`, so that slow tests run.
pub(crate) fn is_thorough() -> bool {
    std::env::var_os("TAILOR_THOROUGH").is_some()
}

/// Sets a file's modification time to long ago.
pub(crate) fn make_old(path: &Path) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

/// How a run ended.
pub(crate) struct FinishedRun {
    /// The exit code.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: String,
}

impl FinishedRun {
    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The objects of `--format json`, the summary last.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let lines: Result<Vec<Value>, _> = self.text().lines().map(serde_json::from_str).collect();
        lines.unwrap_or_else(|error| panic!("{error}: {}\n{}", self.text(), self.stderr))
    }

    /// The result for the only file.
    #[track_caller]
    pub(crate) fn file(&self) -> Value {
        let mut lines = self.json();
        assert_eq!(lines.len(), 2, "{}\n{}", self.text(), self.stderr);
        lines.remove(0)
    }

    /// The codes found in the only file.
    #[track_caller]
    pub(crate) fn codes(&self) -> Vec<String> {
        let file = self.file();
        let findings = file["findings"].as_array().unwrap();
        findings.iter().map(|finding| finding["code"].as_str().unwrap().to_string()).collect()
    }
}

/// A pi session in which a tool's result is lost: the smallest that `fix` repairs.
pub(crate) const BROKEN: &str = concat!(
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
    "\n",
    r#"{"type":"message","id":"a1","parentId":null,"timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"user","content":"go"}}"#,
    "\n",
    r#"{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-07-01T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{}}],"stopReason":"toolUse"}}"#,
    "\n",
    r#"{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-07-01T10:00:03.000Z","message":{"role":"user","content":"well?"}}"#,
    "\n",
);

/// A Codex session with this token count and this window, as its provider reports them.
pub(crate) fn codex_session(tokens: u64, window: u64) -> String {
    let said = |role: &str, kind: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": "words"}]});
    let usage = json!({"input_tokens": tokens - 100, "cached_input_tokens": 0, "output_tokens": 100, "total_tokens": tokens});
    let counted =
        json!({"total_token_usage": usage, "last_token_usage": usage, "model_context_window": window});
    let lines = [
        (
            "session_meta",
            json!({"id": "0190f5fe-0000-7000-8000-000000000001", "timestamp": "2026-07-01T10:00:00.000Z",
            "cwd": "/w", "originator": "codex_cli_rs", "cli_version": "0.50.0"}),
        ),
        ("response_item", said("user", "input_text")),
        ("response_item", said("assistant", "output_text")),
        ("event_msg", json!({"type": "token_count", "info": counted})),
    ];
    let line = |(kind, payload): (&str, Value)| {
        format!("{}\n", json!({"timestamp": "2026-07-01T10:00:00.000Z", "type": kind, "payload": payload}))
    };
    lines.into_iter().map(line).collect()
}

/// A healthy pi session.
pub(crate) const WHOLE: &str = concat!(
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-07-01T10:00:00.000Z","cwd":"/w"}"#,
    "\n",
    r#"{"type":"message","id":"a1","parentId":null,"timestamp":"2026-07-01T10:00:01.000Z","message":{"role":"user","content":"go"}}"#,
    "\n",
);
