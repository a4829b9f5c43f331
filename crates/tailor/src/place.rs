//! Paths as reports print them: relative to the current folder, so that they are the same on every machine.

use crate::terminal::shell_word;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};

/// Characters that need no escape in a URL.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The path relative to the current folder, if it is below that, without detours.
pub(crate) fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    below(path, &here)
}

fn below(path: &Path, here: &Path) -> PathBuf {
    let path = path.strip_prefix(here).unwrap_or(path);
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// The relative path with Unix separators, to be compared or read on other systems. As bytes, because names need
/// not be text.
pub(crate) fn portable(path: &Path) -> Vec<u8> {
    let mut bytes = relative(path).into_os_string().into_encoded_bytes();
    if MAIN_SEPARATOR != '/' {
        bytes.iter_mut().filter(|byte| **byte == MAIN_SEPARATOR as u8).for_each(|byte| *byte = b'/');
    }
    bytes
}

/// The relative path with Unix separators, as text.
pub(crate) fn portable_text(path: &Path) -> String {
    String::from_utf8_lossy(&portable(path)).into_owned()
}

/// The path for people: relative to the current folder, or beginning with `~`.
pub(crate) fn shown(path: &Path) -> String {
    match below_home(path) {
        Some(below) => format!("~/{}", below.display()),
        None => relative(path).display().to_string(),
    }
}

/// The path as a word for a shell, in a command to be pasted, perhaps in another folder: it stays relative only if
/// the user gave it like that.
pub(crate) fn shown_word(path: &Path) -> String {
    match path.is_absolute().then(home).flatten().and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) if !below.as_os_str().is_empty() => format!("~/{}", shell_word(&below.to_string_lossy())),
        _ => match shell_word(&below(path, Path::new("")).to_string_lossy()) {
            option if option.starts_with('-') && option != "-" => format!("./{option}"),
            word => word,
        },
    }
}

/// The path below the home folder, if it is not below the current folder.
fn below_home(path: &Path) -> Option<PathBuf> {
    let below = relative(path).strip_prefix(home()?).ok()?.to_path_buf();
    (!below.as_os_str().is_empty()).then_some(below)
}

fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute() && home.parent().is_some())
}

/// The path as a `file:` URL, or as a relative one.
pub(crate) fn uri(path: &Path) -> String {
    let bytes = portable(path);
    let encoded = percent_encode(&bytes, PLAIN);
    match bytes.first() {
        _ if !relative(path).is_absolute() => encoded.to_string(),
        Some(b'/') => format!("file://{encoded}"),
        // It begins with a drive letter.
        _ => format!("file:///{encoded}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{below, uri};
    use std::path::Path;

    #[test]
    fn all_spellings_of_a_path_are_one() {
        let here = Path::new("/a/b");
        for path in ["c/d.jsonl", "./c/d.jsonl", "c//d.jsonl", "/a/b/c/d.jsonl", "/a/b/./c/./d.jsonl"] {
            assert_eq!(below(Path::new(path), here), Path::new("c/d.jsonl"), "{path}");
        }
        assert_eq!(below(Path::new("/x/d.jsonl"), here), Path::new("/x/d.jsonl"));
    }

    #[test]
    fn addresses_hold_no_odd_characters() {
        assert_eq!(uri(Path::new("a b/ü\u{1b}[2J%.jsonl")), "a%20b/%C3%BC%1B%5B2J%25.jsonl");
        assert_eq!(uri(Path::new("/x/y z")), "file:///x/y%20z");
    }
}
