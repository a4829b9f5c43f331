//! One damage to a file, and which lines it leaves whole.

use std::ops::Range;

/// What replaces a byte of a key.
const BYTES: [u8; 5] = [0xff, 0x00, b'"', b'\\', b'q'];

/// One damage to a line of a session, by index from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    None,
    Lost(usize),
    /// The second half is missing.
    Torn(usize),
    /// The second half and the line break are missing.
    Cut(usize),
    Doubled(usize),
    /// The line break is missing.
    Glued(usize),
    /// The line and the next one change places.
    Swapped(usize),
    Nuls(usize),
    /// A byte of a key of the line is replaced.
    Key(usize, usize, u8),
}

impl Harm {
    /// Whether a line has other bytes than before, or is gone.
    pub(crate) fn touches(&self, line: usize) -> bool {
        match *self {
            Self::Lost(at) | Self::Torn(at) | Self::Cut(at) | Self::Nuls(at) | Self::Key(at, ..) => {
                at == line
            }
            Self::None | Self::Doubled(_) | Self::Glued(_) | Self::Swapped(_) => false,
        }
    }

    /// Describes the damage, with the key.
    pub(crate) fn told(&self, lines: &[Vec<u8>]) -> String {
        let Self::Key(line, at, byte) = *self else { return format!("{self:?}") };
        let key = keys(&lines[line]).into_iter().find(|key| key.contains(&at)).unwrap();
        let name = String::from_utf8_lossy(&lines[line][key.clone()]).into_owned();
        format!("Key {line} {name}[{}] = {:?}", at - key.start, byte as char)
    }
}

/// Every possible damage to these lines.
pub(crate) fn all(lines: &[Vec<u8>]) -> Vec<Harm> {
    let mut all = Vec::new();
    for (line, bytes) in lines.iter().enumerate() {
        all.extend([Harm::Lost(line), Harm::Torn(line), Harm::Doubled(line), Harm::Nuls(line)]);
        if line + 1 < lines.len() {
            all.extend([Harm::Cut(line), Harm::Glued(line), Harm::Swapped(line)]);
        }
        for at in keys(bytes).into_iter().flatten() {
            let others = BYTES.into_iter().filter(|byte| *byte != bytes[at]);
            all.extend(others.map(|byte| Harm::Key(line, at, byte)));
        }
    }
    all
}

/// The ranges of all keys in a line, without quotes.
fn keys(line: &[u8]) -> Vec<Range<usize>> {
    let (mut keys, mut at) = (Vec::new(), 0);
    while at < line.len() {
        if line[at] == b'"' {
            let start = at + 1;
            at = start;
            while at < line.len() && line[at] != b'"' {
                at += if line[at] == b'\\' { 2 } else { 1 };
            }
            let behind = line.get(at + 1..).unwrap_or_default();
            if behind.trim_ascii_start().first() == Some(&b':') {
                keys.push(start..at);
            }
        }
        at += 1;
    }
    keys
}

/// The bytes of the damaged file.
pub(crate) fn befall(lines: &[Vec<u8>], harm: &Harm) -> Vec<u8> {
    let mut rows: Vec<(Vec<u8>, &[u8])> = lines.iter().map(|line| (line.clone(), &b"\n"[..])).collect();
    match *harm {
        Harm::None => {}
        Harm::Lost(at) => drop(rows.remove(at)),
        Harm::Torn(at) => rows[at].0.truncate(lines[at].len() / 2),
        Harm::Cut(at) => {
            rows[at].0.truncate(lines[at].len() / 2);
            rows[at].1 = b"";
        }
        Harm::Doubled(at) => rows.insert(at, rows[at].clone()),
        Harm::Glued(at) => rows[at].1 = b"",
        Harm::Swapped(at) => rows.swap(at, at + 1),
        Harm::Nuls(at) => rows[at].0.fill(0),
        Harm::Key(line, at, byte) => rows[line].0[at] = byte,
    }
    rows.into_iter().flat_map(|(line, end)| [line, end.to_vec()].concat()).collect()
}
