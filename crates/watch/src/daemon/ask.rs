//! Answers clients: `tailor status` over a socket, and metrics over HTTP.
//!
//! Few clients are served at a time, each with a limit on the length of its request and on its time. If there are too
//! many, a new client replaces the oldest one, so silent clients cannot block others. The loop itself makes each
//! answer, so an answer also shows that the loop is alive. Clients cannot change anything.

use crate::config::Listen;
use crate::daemon::event::{Event, StatusAnswer};
use crate::status::Status;
use keeper::{as_owner_of, folder_of, plain};
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::fs::{DirBuilder, Permissions};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long the loop may take to answer, and a client to send or receive.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// How many clients are served at a time.
const CLIENTS_MAX: usize = 16;
/// Longest answer to `tailor status`.
const STATUS_BYTES_MAX: u64 = 1 << 20;
/// The loop makes the answer; the client's thread only reads and writes.
const STACK_BYTES: usize = 256 * 1024;
/// How long to wait after a connection could not be accepted.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// Asks the daemons that listen on some sockets, all at once, and waits for two seconds in all. Any of them may be somebody
/// else's: an answer has a length at most, and nothing in it reaches a terminal as it is.
///
/// # Errors
///
/// For each that there is no daemon at, or that does not answer.
pub fn ask(sockets: &[PathBuf]) -> Vec<Result<Status, String>> {
    let until = Instant::now() + PATIENCE;
    let (answer, answers) = channel();
    for (n, socket) in sockets.iter().enumerate() {
        let (answer, socket) = (answer.clone(), socket.clone());
        // Each that hangs does so on a thread of its own, which ends with the program. Without threads none is asked.
        let ask = move || drop(answer.send((n, ask_one(&socket))));
        let _ = Builder::new().stack_size(STACK_BYTES).spawn(ask);
    }
    drop(answer);
    let mut said: Vec<Option<Result<Status, String>>> = sockets.iter().map(|_| None).collect();
    while let Ok((n, answer)) = answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
        said[n] = Some(answer);
    }
    let late = |socket: &PathBuf| Err(no_answer(socket, &"it takes longer than two seconds"));
    said.into_iter().zip(sockets).map(|(said, socket)| said.unwrap_or_else(|| late(socket))).collect()
}

fn no_answer(socket: &Path, cause: &dyn fmt::Display) -> String {
    format!("{}: no daemon answers: {cause}", socket.display())
}

fn ask_one(socket: &Path) -> Result<Status, String> {
    let fail = |cause: &dyn fmt::Display| no_answer(socket, cause);
    let connect = || UnixStream::connect(socket);
    let stream = as_owner_of(folder_of(socket), connect).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => fail(&"is it running?"),
        _ => fail(&cause),
    })?;
    let mut text = String::new();
    stream.take(STATUS_BYTES_MAX).read_to_string(&mut text).map_err(|cause| fail(&cause))?;
    let answer = serde_json::from_str(&text).map_err(|cause| fail(&cause))?;
    serde_json::from_value(harmless(answer)).map_err(|cause| fail(&cause))
}

/// An answer whose texts are all shown as they are.
fn harmless(answer: Value) -> Value {
    match answer {
        Value::String(text) => Value::String(plain(&text)),
        Value::Array(all) => all.into_iter().map(harmless).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, harmless(value))).collect(),
        other => other,
    }
}

/// Answers `tailor status`, on a thread of its own.
pub(crate) fn serve_status(socket: &Path, events: SyncSender<Event>) -> io::Result<()> {
    let listener = bind(socket)?;
    let answer = move |mut stream: &UnixStream| {
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(answer) = question(&events) else { return Ok(()) };
        stream.write_all(&serde_json::to_vec(&answer.status)?)?;
        stream.write_all(b"\n")
    };
    serve("status", Listener::Unix(listener), answer)
}

/// Serves `/metrics` and `/healthz`, on a thread of its own.
pub(crate) fn serve_metrics(listen: &Listen, events: SyncSender<Event>) -> io::Result<()> {
    let timed = move |stream: &UnixStream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        http(stream, &events)
    };
    let listener = match listen {
        Listen::Tcp(address) => Listener::Tcp(TcpListener::bind(address)?),
        Listen::Unix(path) => Listener::Unix(bind(path)?),
    };
    serve("metrics", listener, timed)
}

/// A socket that clients connect to.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// The next client. Both kinds of stream are treated alike.
    fn accept(&self) -> io::Result<UnixStream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| OwnedFd::from(stream).into()),
            Self::Unix(listener) => listener.accept().map(|(stream, _)| stream),
        }
    }
}

fn serve(
    name: &'static str,
    listener: Listener,
    answer: impl Fn(&UnixStream) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let answer = Arc::new(answer);
    let mut clients: VecDeque<(Arc<UnixStream>, JoinHandle<()>)> = VecDeque::new();
    let mut begin = move |stream: UnixStream| -> io::Result<()> {
        clients.retain(|(_, thread)| !thread.is_finished());
        if clients.len() >= CLIENTS_MAX
            && let Some((oldest, _)) = clients.pop_front()
        {
            // The thread that waits for it wakes up and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let (answer, own) = (answer.clone(), Arc::new(stream));
        let stream = own.clone();
        let thread = Builder::new().name(name.to_string()).stack_size(STACK_BYTES).spawn(move || {
            if let Err(cause) = answer(&stream) {
                tracing::debug!(event = "asked", reason = %cause, "could not answer");
            }
            // The client waits for the end of the stream, and the list keeps it open.
            let _ = stream.shutdown(Shutdown::Both);
        })?;
        clients.push_back((own, thread));
        Ok(())
    };
    let serve = move || {
        loop {
            // No descriptors or threads are left, or the connection was closed at once.
            if listener.accept().and_then(&mut begin).is_err() {
                std::thread::sleep(REFUSED_PAUSE);
            }
        }
    };
    Builder::new().name(name.to_string()).spawn(serve).map(drop)
}

/// Opens a socket that only its owner can reach. Takes over one that a killed daemon left behind.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let listener = match UnixListener::bind(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
            if !is_socket {
                return Err(io::Error::other("this path exists and is not a socket; it is left alone"));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::other("another program answers there"));
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        other => other?,
    };
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The loop's answer, if it comes in time.
fn question(events: &SyncSender<Event>) -> Option<Box<StatusAnswer>> {
    let (answer, answered) = sync_channel(1);
    events.try_send(Event::Ask(answer)).ok()?;
    answered.recv_timeout(PATIENCE).ok().map(Box::new)
}

fn http(mut stream: impl Read + Write, events: &SyncSender<Event>) -> io::Result<()> {
    let request = request(&mut stream)?;
    let mut words = request.split(|byte| *byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = match (method, path) {
        (b"GET", b"/metrics" | b"/healthz") => match (question(events), path) {
            (Some(answer), b"/metrics") => {
                ("200 OK", "text/plain; version=0.0.4; charset=utf-8", answer.metrics)
            }
            (Some(_), _) => ("200 OK", "text/plain", "ok\n".to_string()),
            (None, _) => ("503 Service Unavailable", "text/plain", "the loop does not answer\n".to_string()),
        },
        (b"GET", _) => ("404 Not Found", "text/plain", "there are /metrics and /healthz\n".to_string()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".to_string()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The head of a request, or the part that arrived in time.
fn request(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() < REQUEST_BYTES_MAX && Instant::now() < until {
        let got = stream.read(&mut buffer)?;
        head.extend_from_slice(&buffer[..got]);
        if got == 0 || head.windows(4).any(|end| end == b"\r\n\r\n") {
            break;
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_taken_over_from_the_dead_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/socket");
        let living = bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(bind(&path).is_err());
        drop(living);
        bind(&path).unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(bind(&file).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
    }

    /// Another user's socket may be asked: `sudo tailor status` asks all.
    #[test]
    fn whatever_a_daemon_answers_does_no_harm_and_takes_two_seconds_at_most() {
        let dir = tempfile::tempdir().unwrap();
        let listen = |name: &str| UnixListener::bind(dir.path().join(name)).unwrap();
        let evil = serde_json::to_string("\x1b]0;t\x07\u{202e}\n").unwrap();
        let status = serde_json::to_string(&Status::default()).unwrap().replace("\"\"", &evil);
        let (loud, full, slow, silent) = (listen("loud"), listen("full"), listen("slow"), listen("silent"));
        std::thread::spawn(move || loud.accept().unwrap().0.write_all(status.as_bytes()));
        std::thread::spawn(move || {
            let mut stream = slow.accept().unwrap().0;
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(PATIENCE / 10);
            }
        });
        std::thread::spawn(move || {
            let mut stream = full.accept().unwrap().0;
            while stream.write_all(&vec![b' '; 1 << 16]).is_ok() {}
        });
        let start = Instant::now();
        let names = ["loud", "full", "slow", "silent", "none"].map(|name| dir.path().join(name));
        let said = ask(&names);
        assert!(start.elapsed() < PATIENCE * 2);
        drop(silent);
        let status = said[0].as_ref().unwrap();
        for text in [&status.version, &status.mode, &status.stores_mode] {
            assert_eq!(text, "\\u{1b}]0;t\\u{7}\\u{202e}\\u{a}");
        }
        let why: Vec<&str> =
            said[1..].iter().map(|said| said.as_ref().unwrap_err().rsplit(": ").next().unwrap()).collect();
        assert!(why[0].contains("EOF"), "{why:?}");
        assert_eq!(
            why[1..],
            ["it takes longer than two seconds", "it takes longer than two seconds", "is it running?"]
        );
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = bind(&path).unwrap();
        let echo = |mut stream: &UnixStream| {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            stream.write_all(&byte)
        };
        serve("test", Listener::Unix(listener), echo).unwrap();
        let _silent: Vec<UnixStream> =
            (0..4 * CLIENTS_MAX).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let mut asks = UnixStream::connect(&path).unwrap();
        asks.set_read_timeout(Some(PATIENCE)).unwrap();
        asks.write_all(b"x").unwrap();
        let mut answer = Vec::new();
        asks.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"x");
    }

    #[test]
    fn a_request_has_a_bound() {
        let (events, _kept) = sync_channel(1);
        let ask = |text: &[u8]| {
            let mut stream = Pipe { input: io::Cursor::new(text.to_vec()), output: Vec::new() };
            http(&mut stream, &events).unwrap();
            String::from_utf8(stream.output).unwrap().lines().next().unwrap().to_string()
        };
        assert_eq!(ask(b"GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(ask(b"POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(ask(b""), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(ask(&vec![b'x'; 100_000]), "HTTP/1.1 405 Method Not Allowed");
    }

    struct Pipe {
        input: io::Cursor<Vec<u8>>,
        output: Vec<u8>,
    }

    impl Read for &mut Pipe {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.input.read(buffer)
        }
    }

    impl Write for &mut Pipe {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.output.write(buffer)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
