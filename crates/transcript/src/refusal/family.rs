//! A family of errors, and whose fault they are.

/// What is to blame for a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Something in the session, or in the file.
    Session,
    /// The account, the network, the provider, the machine, or the agent's settings.
    Elsewhere,
    /// The text does not tell: a search of the session may.
    Untold,
}

/// A family of errors.
#[derive(Debug)]
pub struct Family {
    /// Its name in `tailor explain --list`.
    pub name: &'static str,
    /// Patterns of which one decides: see `pattern`.
    pub says: &'static [&'static str],
    /// Patterns that count if no family's `says` fits and no `clause` is known: single words decide last.
    pub hints: &'static [&'static str],
    /// What is to blame.
    pub blame: Blame,
    /// Codes of rules, most likely first; empty if the error is not about the session. C1, C3, C4, C8, C9 and
    /// C10 are not rules: they are locks, disks, files that are gone, databases, and what another provider wrote.
    pub codes: &'static [&'static str],
    /// What it means, in one or two sentences.
    pub what: &'static str,
    /// What a repair does if one of these rules has findings; empty if no repair helps.
    pub fix: &'static str,
    /// What else to do, whatever was found; may be empty.
    pub advice: &'static str,
    /// Texts by which the README shows it; empty if it does not.
    pub shown: &'static [&'static str],
    /// What the README says to run for it.
    pub command: &'static str,
    /// Who writes such texts.
    pub source: &'static str,
}

impl Family {
    /// Whether a code is one of its own, in letters of any case.
    pub fn has(&self, code: &str) -> bool {
        self.codes.iter().any(|own| own.eq_ignore_ascii_case(code))
    }
}

/// What the rows of the table leave out.
pub(super) const NONE: Family = Family {
    name: "",
    says: &[],
    hints: &[],
    blame: Blame::Session,
    codes: &[],
    what: "",
    fix: "",
    advice: "",
    shown: &[],
    command: "",
    source: "",
};
