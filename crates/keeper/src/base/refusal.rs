//! Why a file is left alone for good, and what can be done about that.

use std::fmt;
use std::path::{Path, PathBuf};
use transcript::compact::Unable;
use transcript::overflow::Cause;
use transcript::shorten::Length;
use transcript::verdict::Worse;

/// Why a file is left alone for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has other names, which a new file would not have.
    HardLinks(u64),
    /// It is a mount point of its own: programs that use it there would keep the old file.
    MountedAlone {
        /// Where, as that process sees it.
        at: PathBuf,
        /// The process, if its mounts are not ours.
        pid: Option<u32>,
    },
    /// It is in the upper layer of an overlay, reached through that layer: programs that use the overlay would keep the
    /// old file.
    ContainerLayer(PathBuf),
    /// It is a link that leads out of the folder that was searched.
    LinkOutOfRoot,
    /// It is not a file.
    NotAFile,
    /// It belongs to another user.
    ForeignOwner(u32),
    /// Somebody has marked it as not to be written to, and the system replaces no such file.
    ReadOnly,
    /// A link on its path belongs to somebody else than root and its owner, who could lead root anywhere.
    AnothersLink(PathBuf),
    /// Root cannot act as its owner here.
    NotAsOwner(u32),
    /// Root would work in a folder that another user than the file's owner may rename or replace.
    LooseFolder(PathBuf),
    /// It holds more entries than we keep in mind.
    TooManyEntries(usize),
    /// The agent keeps offsets into it, or proofs of what it holds, in another place.
    CountedElsewhere(&'static str),
    /// Its first line does not say whether the agent keeps offsets into it.
    UnknownHistory,
    /// Its agent has compressed it.
    Compressed,
    /// It is a database of so many sessions, and none of them was named.
    NamesNoSession(usize),
    /// It is in a database that must not be written to, for this reason.
    StoreStays(String),
    /// SQLite would need so many bytes on the disk to write it anew, and there are fewer.
    NoRoom {
        /// How many it needs.
        needed: u64,
        /// How many are free.
        room: u64,
    },
    /// The repair would do harm.
    Worse(Worse),
    /// Its conversation cannot be compacted.
    Unable(Unable),
    /// Its last request failed for another reason than its length.
    NotTooLong(Cause),
    /// It was refused as too long, and fills only a small part of the window.
    Short(Length),
    /// At its shortest it is longer than the window.
    StillTooLong {
        /// How many tokens it would have.
        tokens: u64,
        /// How many the window has.
        window: u64,
        /// Why older messages cannot be left out, if they cannot.
        unable: Option<Unable>,
    },
    /// It was recovered so often in a row, and the model has not answered since.
    GivenUp(u64),
    /// No run over it is left to be taken back.
    NothingToUndo,
    /// There is no run of that name.
    NoSuchRun(String),
    /// The run was taken back before, or is one that took another back.
    AlreadyUndone(String),
    /// A later run changed the same place.
    LaterRun(String),
    /// The conversation went on from the compaction that the run wrote.
    BuiltUpon {
        /// In which line, from 1.
        line: u64,
        /// The run did nothing else.
        alone: bool,
    },
    /// Texts that the run took out were forgotten.
    Forgotten {
        /// In how many places.
        texts: usize,
        /// The run did nothing else.
        alone: bool,
    },
    /// The run took out secrets, and kept nothing.
    TookSecrets(String),
    /// The model has signed its thinking over what this run left.
    SignedSince(String),
    /// What the run wrote is not there any more.
    ChangedSince {
        /// In which line, from 1.
        line: u64,
        /// How many edits the run made.
        edits: usize,
        /// How many of them can go back.
        back: usize,
        /// The ids of the texts that the others cut.
        texts: Vec<String>,
    },
}

const COMPRESSED: &str =
    "its agent has compressed it and unpacks it when it resumes (to repair a copy, run: zstd -d FILE)";
const LINK_OUT_OF_ROOT: &str =
    "it is a symlink that points outside its folder (pass the file that it points to)";

/// What limits the number of entries.
const TOO_MANY_ENTRIES: &str = "more might not fit into a quarter of the memory that this process may use";

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HardLinks(names) => f.write_str(&hard_links(*names)),
            Self::MountedAlone { at, pid } => f.write_str(&mounted_alone(at, *pid)),
            Self::ContainerLayer(upper) => write!(
                f,
                "it is in a container's writable layer, {}; programs in the container would keep writing to the old file \
                 (run tailor inside the container, or use --copy-to DIR)",
                upper.display()
            ),
            Self::LinkOutOfRoot => f.write_str(LINK_OUT_OF_ROOT),
            Self::Compressed => f.write_str(COMPRESSED),
            Self::NamesNoSession(sessions) => write!(
                f,
                "it is a database of {sessions} sessions; name one as 'FILE#SESSION' (tailor scan FILE lists them)"
            ),
            Self::StoreStays(why) => write!(f, "its rows stay as they are: {why}"),
            Self::NoRoom { needed, room } => f.write_str(&no_room(*needed, *room)),
            Self::NotAFile => f.write_str("it is not a regular file"),
            Self::ForeignOwner(uid) => f.write_str(&foreign_owner(*uid)),
            Self::ReadOnly => {
                f.write_str("it is marked read-only (run attrib -R on it, or use --copy-to DIR)")
            }
            Self::AnothersLink(link) => f.write_str(&anothers_link(link)),
            Self::NotAsOwner(uid) => f.write_str(&not_as_owner(*uid)),
            Self::LooseFolder(folder) => f.write_str(&loose_folder(folder)),
            Self::TooManyEntries(most) => write!(f, "it has more than {most} entries: {TOO_MANY_ENTRIES}"),
            Self::CountedElsewhere(what) => {
                write!(f, "{what}; any change would make the agent reject it (use --copy-to DIR)")
            }
            Self::UnknownHistory => {
                f.write_str("its first line does not say how Codex keeps its history (use --copy-to DIR)")
            }
            Self::Worse(worse) | Self::Unable(Unable::Worse(worse)) => {
                write!(f, "{worse}; the file is unchanged")
            }
            Self::Unable(unable) => write!(f, "{unable}"),
            Self::NotTooLong(_) => f.write_str("the error is not about the length of the session"),
            Self::Short(length) => f.write_str(&short(length)),
            Self::StillTooLong { tokens, window, unable } => {
                f.write_str(&still_too_long(*tokens, *window, *unable))
            }
            Self::GivenUp(attempts) => write!(
                f,
                "recovered {attempts} times in a row, and the model has not answered since (pass --level N to try again)"
            ),
            Self::BuiltUpon { line, alone } => f.write_str(&built_upon(*line, *alone)),
            Self::Forgotten { texts, alone } => f.write_str(&forgotten(*texts, *alone)),
            Self::TookSecrets(run) => write!(
                f,
                "run {run} took out secrets, and nothing keeps these: it cannot be undone (--list shows the runs before it, and --run undoes one of them)"
            ),
            Self::SignedSince(run) => f.write_str(&signed_since(run)),
            Self::NothingToUndo => f.write_str("no run to undo (pass --vault DIR to look elsewhere)"),
            Self::NoSuchRun(run) => {
                write!(
                    f,
                    "no run {run} (--list shows the runs of a file; pass --vault DIR to look elsewhere)"
                )
            }
            Self::AlreadyUndone(run) => write!(f, "run {run} is already undone (--list shows the others)"),
            Self::LaterRun(run) => write!(f, "a later run, {run}, changed the same place (undo it first)"),
            Self::ChangedSince { line, edits, back, texts } => {
                f.write_str(&changed_since(*line, *edits, *back, texts))
            }
        }
    }
}

fn changed_since(line: u64, edits: usize, back: usize, texts: &[String]) -> String {
    let rest = match back {
        0 => String::new(),
        _ => format!("; {back} of {edits} edits can still be put back with --partly"),
    };
    let of = match (back, edits - back) {
        (0, _) => "that was cut",
        (_, 1) => "of the other",
        _ => "of the others",
    };
    let ways = match texts {
        [] => String::new(),
        [one] => format!(" (tailor show {one} prints the text {of})"),
        [first, second] => format!(" (tailor show {first} and tailor show {second} print texts {of})"),
        [first, second, more @ ..] => {
            let more = more.len();
            format!(" (tailor show {first}, tailor show {second} and {more} more print texts {of})")
        }
    };
    format!("another program has changed line {line} since this run{rest}{ways}")
}

fn built_upon(line: u64, alone: bool) -> String {
    let way_out = if alone {
        "nothing was removed: to continue from an older message, go back to it in the agent, in pi with /tree"
    } else {
        "--partly keeps the compaction and restores everything else"
    };
    format!(
        "the session continues, at line {line}, from the compaction that this run wrote; without it the agent would \
         lose everything before it ({way_out})"
    )
}

fn short(length: &Length) -> String {
    let Length { tokens, window, foreign, .. } = length;
    let percent = tokens.saturating_mul(100) / window;
    match foreign {
        Some(named) => format!(
            "the refused request had {named} tokens, but this session has only {tokens}: the error is about another \
             session, or the instructions and tools are too long"
        ),
        None => format!("it is not too long: {tokens} of {window} tokens ({percent}%)"),
    }
}

fn still_too_long(tokens: u64, window: u64, unable: Option<Unable>) -> String {
    let why = unable.map(|unable| format!(": {unable}")).unwrap_or_default();
    format!("at its shortest it would still have {tokens} of {window} tokens{why}")
}

fn forgotten(texts: usize, alone: bool) -> String {
    if alone {
        return "all that this run cut was removed by tailor forget; nothing else can be put back"
            .to_string();
    }
    format!(
        "{texts} of the texts that this run cut were removed by tailor forget and cannot be put back (--partly restores \
         everything else)"
    )
}

fn no_room(needed: u64, room: u64) -> String {
    format!(
        "SQLite needs {needed} bytes of free space to write it anew, and {room} are free; until then it uses the free pages for \
         what comes next"
    )
}

fn hard_links(names: u64) -> String {
    format!(
        "it has {names} hard links, and replacing it would separate them (use --copy-to DIR, or remove the other links)"
    )
}

fn foreign_owner(uid: u32) -> String {
    format!("it belongs to user {uid} (run as that user, or on Linux as root)")
}

fn anothers_link(link: &Path) -> String {
    format!(
        "the symlink {} on its path belongs to another user, who could lead root anywhere (pass a path without it)",
        link.display()
    )
}

fn not_as_owner(uid: u32) -> String {
    format!(
        "root works on it as its owner, and cannot become user {uid} here, which takes CAP_SETUID and CAP_SETGID (run as that user)"
    )
}

fn loose_folder(folder: &Path) -> String {
    format!(
        "another user may rename or replace the folder {} (run as the owner of the file, or remove the write \
         access of others to the folder)",
        folder.display()
    )
}

fn mounted_alone(at: &Path, pid: Option<u32>) -> String {
    let whom = pid.map_or(String::new(), |pid| format!(" for process {pid}"));
    format!(
        "it is mounted as a single file, at {}{whom}; programs there would keep writing to the old file (mount its folder \
         instead, or use --copy-to DIR)",
        at.display()
    )
}

/// That the model has signed over what a run left, and what can be done.
fn signed_since(run: &str) -> String {
    format!(
        "the model has since signed thinking over the repaired text, and the API would refuse that thinking after an \
         undo (remove it with tailor fix --thinking strip, then undo with --run {run}; or pass --ignore-thinking to undo \
         anyway)"
    )
}
