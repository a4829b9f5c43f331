//! Why a file is left alone for good, and what can be done about that.

use std::fmt;
use std::path::{Path, PathBuf};
use transcript::compact::Unable;
use transcript::overflow::Cause;
use transcript::verdict::Worse;

/// Why a file is left alone for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has other names, which a new file would not have.
    HardLinks(u64),
    /// It is a mount point by itself: who has it there would keep the old file.
    MountedAlone {
        /// Where, as that process sees it.
        at: PathBuf,
        /// The process, if its mounts are not ours.
        pid: Option<u32>,
    },
    /// It lies in the upper layer of an overlay, and this is the layer: who has the overlay would keep the old file.
    ContainerLayer(PathBuf),
    /// It is a link that leads out of the folder that was asked for.
    LinkOutOfRoot,
    /// It is not a file.
    NotAFile,
    /// It belongs to somebody else.
    ForeignOwner(u32),
    /// Root would work in a folder that another user than the file's owner may rename or replace.
    LooseFolder(PathBuf),
    /// It holds more entries than we keep in mind.
    TooManyEntries,
    /// The agent keeps offsets into it, or proofs of what it holds, in another place.
    CountedElsewhere(&'static str),
    /// Its first line does not say whether the agent keeps offsets into it.
    UnknownHistory,
    /// Its agent has compressed it.
    Compressed,
    /// The repair would do harm.
    Worse(Worse),
    /// Its conversation cannot be compacted.
    Unable(Unable),
    /// Its last request failed for another reason than its length.
    NotTooLong(Cause),
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
    /// The model has signed its thinking over what this run left.
    SignedSince(String),
    /// What the run wrote is not there any more.
    ChangedSince {
        /// In which line, from 1.
        line: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HardLinks(names) => write!(
                f,
                "it has {names} hard links; replacing it would part them (use --out DIR, or unlink the others)"
            ),
            Self::MountedAlone { at, pid } => f.write_str(&mounted_alone(at, *pid)),
            Self::ContainerLayer(upper) => write!(
                f,
                "it lies in a container's layer, {}; programs in the container would keep writing to the old file \
                 (run tailor inside the container, or use --out DIR)",
                upper.display()
            ),
            Self::LinkOutOfRoot => {
                f.write_str("it is a link that leads out of its folder (name the file it leads to)")
            }
            Self::Compressed => f.write_str(
                "its agent has compressed it, and unpacks it before it goes on (mend a copy: zstd -d FILE)",
            ),
            Self::NotAFile => f.write_str("it is not a regular file"),
            Self::ForeignOwner(uid) => write!(f, "it belongs to user {uid} (run as that user, or as root)"),
            Self::LooseFolder(folder) => f.write_str(&loose_folder(folder)),
            Self::TooManyEntries => {
                write!(f, "it holds more than {} entries", transcript::scan::ENTRIES_MAX)
            }
            Self::CountedElsewhere(what) => {
                write!(f, "{what}; any change would make the agent reject it (use --out DIR)")
            }
            Self::UnknownHistory => {
                f.write_str("its first line does not say how Codex keeps its history (use --out DIR)")
            }
            Self::Worse(worse) | Self::Unable(Unable::Worse(worse)) => {
                write!(f, "{worse}; the original stays")
            }
            Self::Unable(unable) => write!(f, "{unable}"),
            Self::NotTooLong(cause) => write!(
                f,
                "the request did not fail for its length ({}); --level N shortens it all the same",
                cause.name()
            ),
            Self::GivenUp(attempts) => write!(
                f,
                "recovered {attempts} times in a row, and the model has not answered since (--level N tries again)"
            ),
            Self::BuiltUpon { line, alone } => {
                write!(
                    f,
                    "the conversation went on, in line {line}, from the compaction that this run wrote; without it the \
                     agent would lose sight of all that came before ("
                )?;
                f.write_str(if *alone {
                    "nothing was taken out: to go on from an older message, go back to it in the agent, in pi with /tree)"
                } else {
                    "--partly leaves the compaction and puts all else back)"
                })
            }
            Self::SignedSince(run) => f.write_str(&signed_since(run)),
            Self::NothingToUndo => f.write_str("there is no run to undo (--vault DIR looks elsewhere)"),
            Self::NoSuchRun(run) => {
                write!(f, "there is no run {run} (--list shows those of a file, --vault DIR looks elsewhere)")
            }
            Self::AlreadyUndone(run) => write!(f, "run {run} is undone already (--list shows the others)"),
            Self::LaterRun(run) => write!(f, "run {run} changed the same place later (undo it first)"),
            Self::ChangedSince { line } => write!(
                f,
                "the bytes at line {line} are not those that this run wrote: changed since by another program \
                 (tailor show prints the texts that were cut)"
            ),
        }
    }
}

fn loose_folder(folder: &Path) -> String {
    format!(
        "another user may rename or replace the folder {} (run as the owner of the file, or take write access to the \
         folder away from others)",
        folder.display()
    )
}

fn mounted_alone(at: &Path, pid: Option<u32>) -> String {
    let whom = pid.map_or(String::new(), |pid| format!(" for process {pid}"));
    format!(
        "it is mounted by itself, at {}{whom}; programs there would keep writing to the old file (mount its folder \
         instead, or use --out DIR)",
        at.display()
    )
}

/// That the model has signed over what a run left, and what can be done.
fn signed_since(run: &str) -> String {
    format!(
        "the model has signed its thinking over what this run left, and the API would refuse that thinking beside what \
         comes back (tailor fix --thinking strip removes it, then undo with --run {run}; --ignore-thinking undoes it all \
         the same)"
    )
}
